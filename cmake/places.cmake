# rdna_kernel_places(target): tells |target|, by command/places.h, where the code of every kernel stands. One small file
# for each source of src/math, made anew when that source changes; see tools/kernel_places.py. A build that takes its
# kernels from another takes the finished table too, where there is one. Without RDNA_PLACES the table is empty.
function(rdna_kernel_places target)
  set(table ${CMAKE_BINARY_DIR}/places/places.c)
  if(NOT RDNA_PLACES)
    file(CONFIGURE OUTPUT ${table} CONTENT
         "#include \"command/places.h\"\nconst kernel_place kernel_places[1] = {{0}};\nconst int kernel_place_count = 0;\n")
    target_sources(${target} PRIVATE ${table})
    return()
  endif()
  if(RDNA_KERNELS_FROM)
    get_filename_component(from ${RDNA_KERNELS_FROM}/places/places.c ABSOLUTE)
    if(EXISTS ${from})
      add_custom_command(OUTPUT ${table} COMMAND ${CMAKE_COMMAND} -E copy ${from} ${table} DEPENDS ${from} VERBATIM)
      target_sources(${target} PRIVATE ${table})
      return()
    endif()
  endif()
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  find_program(RDNA_CLANG NAMES clang-19 clang REQUIRED)
  get_property(root GLOBAL PROPERTY RDNA_LAYER_ROOT_math)
  set(script ${CMAKE_SOURCE_DIR}/tools/kernel_places.py)
  set(folder ${CMAKE_BINARY_DIR}/places)
  set(includes -I${root} -I${CMAKE_SOURCE_DIR}/include -I${CMAKE_BINARY_DIR}/made)
  rdna_kernel_flags(gfx1100 device_flags)
  list(REMOVE_ITEM device_flags -c)
  file(MAKE_DIRECTORY ${folder})
  file(GLOB device_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/math/*/*.hip)
  file(GLOB twin_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/math/*/*_host.c ${CMAKE_SOURCE_DIR}/src/math/*/*_host_*.c)
  file(GLOB case_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/math/*/*_cases.c)
  list(FILTER twin_sources EXCLUDE REGEX "_(test|bench|fuzz)\\.c$")

  set(scans)
  foreach(source ${device_sources} ${twin_sources})
    get_filename_component(name ${source} NAME)
    set(flags -std=gnu17 -DRDNA_ISA=baseline)
    if(name MATCHES "\\.hip$")
      set(flags ${device_flags} ${RDNA_KERNEL_FLAGS})
    endif()
    set(scan ${folder}/${name}.txt)
    add_custom_command(OUTPUT ${scan}
      COMMAND ${Python3_EXECUTABLE} ${script} scan ${scan} ${RDNA_CLANG} ${flags} ${includes} ${source}
      DEPENDS ${script} ${source} DEPFILE ${scan}.d COMMENT "Places of ${name}" VERBATIM)
    list(APPEND scans ${scan})
  endforeach()

  add_custom_command(OUTPUT ${table}
    COMMAND ${RDNA_CLANG} -E -P ${includes} -MD -MF ${table}.d -MT ${table} ${CMAKE_SOURCE_DIR}/src/math/manifest.c
            -o ${folder}/manifest.i
    COMMAND ${Python3_EXECUTABLE} ${script} merge ${table} ${folder}/manifest.i ${scans} ${case_sources}
    DEPENDS ${script} ${CMAKE_SOURCE_DIR}/src/math/manifest.c families ${scans} ${case_sources} DEPFILE ${table}.d
    COMMENT "Places of all kernels" VERBATIM)
  target_sources(${target} PRIVATE ${table})
endfunction()
