# librdna.so: all layers but the command in one shared library that shows include/rdna and nothing else, for engines and
# bindings in any language.
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/librdna.c CONTENT "/* made of the layers' archives */\ntypedef int rdna__library;\n")
add_library(rdna_shared SHARED ${CMAKE_BINARY_DIR}/librdna.c)
set_target_properties(rdna_shared PROPERTIES OUTPUT_NAME rdna VERSION ${PROJECT_VERSION} SOVERSION 0
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
target_include_directories(rdna_shared INTERFACE ${CMAKE_SOURCE_DIR}/include)
target_link_libraries(rdna_shared PRIVATE -Wl,--whole-archive rdna_base rdna_device rdna_kernel rdna_math rdna_array rdna_graph rdna_model
                      -Wl,--no-whole-archive)
if(NOT RDNA_SANITIZE) # clang leaves its sanitizers' functions to the program
  target_link_options(rdna_shared PRIVATE -Wl,--no-undefined)
endif()

include(GNUInstallDirs)
if(SKBUILD) # wheels hold no links: one file, under the name by which others load it
  set_property(TARGET rdna_shared PROPERTY VERSION 0)
endif()
install(TARGETS rdna_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_SKIP)
if(NOT SKBUILD)
  install(TARGETS rdna_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_ONLY)
endif()
install(DIRECTORY include/rdna DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
configure_file(packaging/rdna.pc.in ${CMAKE_BINARY_DIR}/rdna.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/rdna.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# An example in C that sees only the public headers and the shared library.
add_executable(generate examples/generate.c)
target_link_libraries(generate PRIVATE rdna_shared)
add_test(NAME library.generate COMMAND generate ${CMAKE_SOURCE_DIR}/examples/demo-model/rdna-demo-q8_0.gguf "And God said" 16)
# Some that train, and fail unless they have learned.
foreach(example mlp transformer)
  add_executable(${example} examples/${example}.c)
  target_link_libraries(${example} PRIVATE rdna_shared m)
  add_test(NAME library.${example} COMMAND ${example})
endforeach()
# What it exports are the public names.
if(NOT RDNA_COVERAGE) # gcov adds names of its own
  add_test(NAME library.exports COMMAND ${CMAKE_SOURCE_DIR}/tests/exports.sh $<TARGET_FILE:rdna_shared>)
endif()
# Each has a comment.
add_test(NAME library.documented COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/documented.py)
# Each public header stands alone, in C and in C++.
add_test(NAME library.headers COMMAND ${CMAKE_SOURCE_DIR}/tests/headers.sh ${CMAKE_C_COMPILER})
