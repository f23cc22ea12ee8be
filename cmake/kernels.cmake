# rdna_kernels(targets or all): compiles every src/math/<folder>/<family>.hip for every target with Debian's clang-19, with
# no vendor SDK, and packs each target's code objects into one file:
#
#     <build>/kernels/<target>.rdnapack      ninja target: kernels
#
# Other targets' packs are made when they are asked for by name: ninja target kernels_<target>.
#
# A family with another way for GPUs of compute capability 9.0 alone says so by defining RDNA_SM_90A_IMAGE: NVIDIA's pack
# holds it twice, the second time as <family>.sm_90a, which the loader prefers there.

if(POLICY CMP0116)
  cmake_policy(SET CMP0116 NEW)
endif()

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

# The pack of one target, ninja target kernels_<target>; |base| is the target on whose pack it is based, or "".
function(rdna_kernel_pack target level base)
  set(folder ${CMAKE_BINARY_DIR}/kernels)
  get_property(root GLOBAL PROPERTY RDNA_LAYER_ROOT_math)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/math/*/*.hip)
  set(images)
  foreach(source ${sources})
    get_filename_component(family ${source} NAME_WE)
    file(RELATIVE_PATH source_name ${CMAKE_SOURCE_DIR}/src ${source})
    set(names ${target}:${family}.hsaco)
    if(target MATCHES "^sm_")
      set(names ${target}:${family}.ptx)
      file(STRINGS ${source} twice REGEX "^#define RDNA_SM_90A_IMAGE")
      if(twice)
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
  endforeach()
  set(pack ${folder}/${target}.rdnapack)
  set(based_on)
  if(base)
    set(base ${folder}/${base}.rdnapack)
    set(based_on --base ${base})
  endif()
  add_custom_command(OUTPUT ${pack} COMMAND rdna_pack_builder ${pack} ${target} ${level} ${based_on} ${images}
    DEPENDS rdna_pack_builder ${images} ${base} COMMENT "Packing kernels for ${target}" VERBATIM)
  add_custom_target(kernels_${target} DEPENDS ${pack})
endfunction()

function(rdna_kernels targets)
  set(folder ${CMAKE_BINARY_DIR}/kernels)
  if(RDNA_KERNELS_FROM)
    get_filename_component(from ${RDNA_KERNELS_FROM} ABSOLUTE)
    if(NOT EXISTS ${from}/kernels)
      message(WARNING "RDNA_KERNELS_FROM: ${from}/kernels does not exist yet; build the target 'kernels' there")
    endif()
    file(REMOVE_RECURSE ${folder})
    file(CREATE_LINK ${from}/kernels ${folder} SYMBOLIC)
    add_custom_target(kernels)
    # those that are there when it is installed: what such a build gives away is whole too
    install(CODE "file(GLOB packs \"${from}/kernels/*.rdnapack\")
      file(INSTALL \${packs} DESTINATION \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/rdna/kernels\")")
    return()
  endif()
  if(IS_SYMLINK ${folder})
    file(REMOVE ${folder})
  endif()
  file(MAKE_DIRECTORY ${folder})
  find_program(RDNA_CLANG NAMES clang-19 clang REQUIRED)
  set(level 9)
  if(targets STREQUAL "all")
    set(targets ${RDNA_ALL_TARGETS})
    set(level 19)
    foreach(pair ${RDNA_PACK_BASES})
      string(REPLACE ":" ";" pair ${pair})
      list(GET pair 0 target)
      list(GET pair 1 base_of_${target})
    endforeach()
  endif()
  foreach(target ${targets})
    if(NOT target MATCHES "^sm_[0-9]+$" AND NOT RDNA_TARGET_MACHS MATCHES "(^|;)${target}=")
      message(FATAL_ERROR "RDNA_TARGETS: '${target}' is no GPU of src/device/targets.def; a build of all makes ${RDNA_ALL_TARGETS}")
    endif()
  endforeach()
  set(every ${targets} ${RDNA_ALL_TARGETS})
  list(REMOVE_DUPLICATES every)
  foreach(target ${every})
    rdna_kernel_pack(${target} ${level} "${base_of_${target}}")
  endforeach()
  add_custom_target(kernels ALL)
  foreach(target ${targets})
    add_dependencies(kernels kernels_${target})
    install(FILES ${folder}/${target}.rdnapack DESTINATION lib/rdna/kernels)
  endforeach()
endfunction()
