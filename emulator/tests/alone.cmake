# A copy of this folder and nothing else configures without a warning, and what uses other libraries builds. The rest
# would cost a minute, and differs in nothing from the whole build.
#   cmake -DFROM=emulator -DTO=FOLDER -DGENERATOR=… -DCOMPILER=… -P alone.cmake
file(REMOVE_RECURSE ${TO})
file(COPY ${FROM}/ DESTINATION ${TO}/emulator)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(result OR said MATCHES "CMake [A-Za-z ]*Warning")
    message(FATAL_ERROR "${ARGN}: ${result}\n${said}")
  endif()
endfunction()

run(${CMAKE_COMMAND} -S ${TO}/emulator -B ${TO}/build -G ${GENERATOR} -DCMAKE_C_COMPILER=${COMPILER})
run(${CMAKE_COMMAND} --build ${TO}/build --target rdna_emulator_object)
