# A project of another's that finds the installed emulator by CMake, a program that finds it by pkg-config, and the
# command with its page of the manual.
#   cmake -DINSTALLED=PREFIX -DFROM=emulator -DTO=FOLDER -DPROBE=FOLDER -DGENERATOR=… -DCOMPILER=… -P consumer.cmake
file(REMOVE_RECURSE ${TO})
file(MAKE_DIRECTORY ${TO})

function(run)  # run(command…): its output is in `said`
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(result OR said MATCHES "CMake [A-Za-z ]*Warning")
    message(FATAL_ERROR "${ARGN}: ${result}\n${said}")
  endif()
  set(said "${said}" PARENT_SCOPE)
endfunction()

# the prefix may be moved: what is installed knows its place by its own
file(COPY ${INSTALLED}/ DESTINATION ${TO}/moved)
run(${CMAKE_COMMAND} -S ${FROM}/tests/consumer -B ${TO}/build -G ${GENERATOR} -DCMAKE_C_COMPILER=${COMPILER}
    -DCMAKE_PREFIX_PATH=${TO}/moved -DPROBE=${PROBE})
run(${CMAKE_COMMAND} --build ${TO}/build)
run(${CMAKE_COMMAND} -E chdir ${TO}/build ctest --output-on-failure --no-tests=error)
if(NOT said MATCHES "100% tests passed, 0 tests failed out of 6")
  message(FATAL_ERROR "the consumer's tests: ${said}")
endif()
find_program(PKG_CONFIG pkg-config REQUIRED)
set(ENV{PKG_CONFIG_PATH} ${TO}/moved/lib/pkgconfig)
run(${PKG_CONFIG} --modversion rdna_emulator)
string(STRIP "${said}" version)
file(STRINGS ${FROM}/pyproject.toml wheel REGEX "^version = ")
if(NOT wheel STREQUAL "version = \"${version}\"")
  message(FATAL_ERROR "pkg-config has version ${version}, the wheel ${wheel}")
endif()
run(${PKG_CONFIG} --libs rdna_emulator)
separate_arguments(libs UNIX_COMMAND "${said}")
run(${COMPILER} ${FROM}/tests/consumer/consumer.c -o ${TO}/consumer ${libs})

# the command: a program that does right, and one whose mistake the checker finds
run(${INSTALLED}/bin/rdna-emulate --target gfx1100 --check -- ${TO}/consumer ${PROBE})
execute_process(COMMAND ${INSTALLED}/bin/rdna-emulate --target gfx1100 --check -- ${TO}/consumer ${PROBE} unwritten
                RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE said)
if(NOT result EQUAL 66 OR NOT said MATCHES "Kernel chooses")
  message(FATAL_ERROR "a mistake ends with ${result}: ${said}")
endif()
run(${INSTALLED}/bin/rdna-emulate ${PROBE}/probe_gfx1100.hsaco chooses out:256:${TO}/first inout:${TO}/consumer:${TO}/second)
file(READ ${INSTALLED}/share/man/man1/rdna-emulate.1 page LIMIT 200)
if(NOT page MATCHES "^.TH RDNA-EMULATE 1")
  message(FATAL_ERROR "no page of the manual: ${page}")
endif()
