# A layer is a folder of src/ and a static library. Its include path is a folder of links to itself and
# to the layers that it may see, so an include of any other layer does not compile.
#
# By name, beside the source:  x.c  x.h  x_test.c (cmocka; arguments: x_test_ARGS)  x_bench.c  x_fuzz.c (libFuzzer)
# Files named fake_*.c stand in for vendors' libraries in tests and are built where they are used.
# Files named *_host.c or *_host_<part>.c belong to the math layer's instruction-set variants; see src/math/CMakeLists.txt.

function(rdna_layer name)
  cmake_parse_arguments(L "" "" "SEES;LINKS" ${ARGN})
  set(root ${CMAKE_BINARY_DIR}/layers/${name})
  file(MAKE_DIRECTORY ${root})
  foreach(seen ${L_SEES} ${name})
    file(CREATE_LINK ${CMAKE_SOURCE_DIR}/src/${seen} ${root}/${seen} SYMBOLIC)
  endforeach()
  set_property(GLOBAL PROPERTY RDNA_LAYER_ROOT_${name} ${root})

  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.c)
  set(tests ${sources})
  set(fuzzers ${sources})
  list(FILTER sources EXCLUDE REGEX "_(test|bench|fuzz|builder|host|host_[a-z0-9_]+)\\.c$|/main\\.c$|/fake_[a-z0-9_]+\\.c$")
  list(FILTER tests INCLUDE REGEX "_test\\.c$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.c$")
  if(NOT sources)
    file(WRITE ${CMAKE_BINARY_DIR}/empty_${name}.c "extern int rdna__${name}_layer;\nint rdna__${name}_layer;\n")
    set(sources ${CMAKE_BINARY_DIR}/empty_${name}.c)
  endif()

  add_library(rdna_${name} STATIC ${sources})
  target_include_directories(rdna_${name} PUBLIC ${CMAKE_SOURCE_DIR}/include PRIVATE ${root})
  foreach(seen ${L_SEES})
    target_link_libraries(rdna_${name} PUBLIC rdna_${seen})
  endforeach()
  target_link_libraries(rdna_${name} PUBLIC ${L_LINKS})

  if(CMOCKA_FOUND)
    foreach(test ${tests})
      get_filename_component(stem ${test} NAME_WE)
      rdna_test(${stem} LAYER ${name} SOURCES ${test} ARGS ${${stem}_ARGS})
    endforeach()
  endif()
  if(RDNA_FUZZ)
    foreach(fuzzer ${fuzzers})
      get_filename_component(stem ${fuzzer} NAME_WE)
      add_executable(${stem} ${fuzzer})
      target_include_directories(${stem} PRIVATE ${root})
      target_compile_options(${stem} PRIVATE -fsanitize=fuzzer)
      target_link_libraries(${stem} PRIVATE rdna_${name} -fsanitize=fuzzer)
    endforeach()
  endif()
endfunction()

# rdna_test(name LAYER layer SOURCES files… [LINKS libraries…] [ARGS…]): one cmocka suite, one process. Exit status 77
# says that what it needs is not here.
function(rdna_test name)
  cmake_parse_arguments(T "" "LAYER" "SOURCES;LINKS;ARGS" ${ARGN})
  get_property(root GLOBAL PROPERTY RDNA_LAYER_ROOT_${T_LAYER})
  add_executable(${name} ${T_SOURCES})
  target_include_directories(${name} PRIVATE ${root})
  target_link_libraries(${name} PRIVATE rdna_${T_LAYER} ${T_LINKS} PkgConfig::CMOCKA m)
  add_test(NAME ${T_LAYER}.${name} COMMAND ${name} ${T_ARGS})
  set_tests_properties(${T_LAYER}.${name} PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77)
endfunction()
