# rdna_kernels(TARGETS targets… | all [FAMILIES families…]): compiles every src/math/<folder>/<family>.hip for every
# target with Debian's clang-19, with no vendor SDK, and packs each target's code objects into one file:
#
#     <build>/kernels/<target>.rdnapack      ninja target: kernels

if(POLICY CMP0116)
  cmake_policy(SET CMP0116 NEW)
endif()

# gfx1201 runs gfx1200's pack: their code differs in nothing but the name that it bears.
set(RDNA_ALL_TARGETS gfx900 gfx906 gfx908 gfx90a gfx942 gfx1010 gfx1030 gfx1100 gfx1150 gfx1200 sm_80)

# Of related targets, in a build of all, one pack is based on the other's images: <target>:<base>.
set(RDNA_PACK_BASES gfx1010:gfx1030 gfx1150:gfx1100 gfx1200:gfx1100 gfx906:gfx900 gfx908:gfx900 gfx942:gfx90a)

# Families that have another way on GPUs of compute capability 9.0 alone: the NVIDIA pack holds them twice, the second
# time as <family>.sm_90a, which the loader prefers there.
set(RDNA_SM_90A_FAMILIES conv_bf16 conv_f16 flash flash_backward flash_mask gemm_bf16 gemm_f16 quant_gemv)

# -ffp-contract=off: a kernel rounds where its host twin does. -mcode-object-version=4: HIP 5.2 and everything since
# loads it. -munsafe-fp-atomics: the hardware's float atomics, right on the device-local memory that we allocate.
# -fuse-cuid=none: no symbol that bears a hash of the source's path, so that any checkout gives the same bytes.
set(RDNA_KERNEL_FLAGS -std=c++17 -O3 -ffreestanding -ffp-contract=off -fno-exceptions -fno-rtti -Wall -Wextra
    -Wno-unused-parameter -Wno-unused-function -Wno-pass-failed -Wno-cuda-compat -Werror)

function(rdna_kernel_flags target out_flags)
  if(target MATCHES "^gfx")
    set(${out_flags} -x hip -nogpuinc -nogpulib --offload-device-only --no-gpu-bundle-output --offload-arch=${target}
        -munsafe-fp-atomics -mcode-object-version=4 -fuse-cuid=none -c PARENT_SCOPE)
  else()
    # PTX 7.8 is the oldest that the builtins need, 8.0 the oldest with sm_90a; the driver translates it for any later
    # GPU, sm_90a's for no other.
    set(ptx +ptx78)
    if(target STREQUAL "sm_90a")
      set(ptx +ptx80)
    endif()
    set(${out_flags} -x cuda -nocudainc -nocudalib --cuda-path=/nonexistent --cuda-device-only --cuda-gpu-arch=${target}
        -Xclang -target-feature -Xclang ${ptx} -S PARENT_SCOPE)
  endif()
endfunction()

function(rdna_kernels)
  cmake_parse_arguments(K "" "" "TARGETS;FAMILIES" ${ARGN})
  set(folder ${CMAKE_BINARY_DIR}/kernels)
  if(RDNA_KERNELS_FROM)
    get_filename_component(from ${RDNA_KERNELS_FROM} ABSOLUTE)
    if(NOT EXISTS ${from}/kernels)
      message(WARNING "RDNA_KERNELS_FROM: ${from}/kernels does not exist yet; build the target 'kernels' there")
    endif()
    file(REMOVE_RECURSE ${folder})
    file(CREATE_LINK ${from}/kernels ${folder} SYMBOLIC)
    add_custom_target(kernels)
    return()
  endif()
  if(IS_SYMLINK ${folder})
    file(REMOVE ${folder})
  endif()
  set(level 9)
  set(bases)
  if(K_TARGETS STREQUAL "all")
    set(K_TARGETS ${RDNA_ALL_TARGETS})
    set(level 19)
    set(bases ${RDNA_PACK_BASES})
  endif()
  find_program(RDNA_CLANG NAMES clang-19 clang REQUIRED)
  get_property(root GLOBAL PROPERTY RDNA_LAYER_ROOT_math)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/math/*/*.hip)

  set(packs)
  foreach(target ${K_TARGETS})
    set(images)
    foreach(source ${sources})
      get_filename_component(family ${source} NAME_WE)
      if(NOT K_FAMILIES OR family IN_LIST K_FAMILIES)
        file(RELATIVE_PATH source_name ${CMAKE_SOURCE_DIR}/src ${source})
        set(names ${target}:${family}.hsaco)
        if(target MATCHES "^sm_")
          set(names ${target}:${family}.ptx)
          if(family IN_LIST RDNA_SM_90A_FAMILIES)
            list(APPEND names sm_90a:${family}.sm_90a.ptx)
          endif()
        endif()
        foreach(name ${names})
          string(REPLACE ":" ";" name ${name})
          list(GET name 0 architecture)
          list(GET name 1 file)
          rdna_kernel_flags(${architecture} flags)
          set(image ${folder}/${target}/${file})
          add_custom_command(OUTPUT ${image}
            COMMAND ${CMAKE_C_COMPILER_LAUNCHER} ${RDNA_CLANG} ${flags} ${RDNA_KERNEL_FLAGS} -I${root}
                    -I${CMAKE_SOURCE_DIR}/include -MD -MF ${image}.d -MT ${image} ${root}/${source_name} -o ${image}
            DEPENDS ${source} DEPFILE ${image}.d COMMENT "Kernels ${family} for ${architecture}" VERBATIM)
          list(APPEND images ${image})
        endforeach()
      endif()
    endforeach()
    file(MAKE_DIRECTORY ${folder}/${target})
    set(pack ${folder}/${target}.rdnapack)
    set(base ${bases})
    list(FILTER base INCLUDE REGEX "^${target}:")
    list(TRANSFORM base REPLACE ".*:(.*)" "${folder}/\\1.rdnapack")
    set(based_on)
    if(base)
      set(based_on --base ${base})
    endif()
    add_custom_command(OUTPUT ${pack} COMMAND rdna_pack_builder ${pack} ${target} ${level} ${based_on} ${images}
      DEPENDS rdna_pack_builder ${images} ${base} COMMENT "Packing kernels for ${target}" VERBATIM)
    add_custom_target(kernels_${target} DEPENDS ${pack})
    list(APPEND packs ${pack})
  endforeach()
  add_custom_target(kernels ALL DEPENDS ${packs})
  install(FILES ${packs} DESTINATION lib/rdna/kernels)
endfunction()
