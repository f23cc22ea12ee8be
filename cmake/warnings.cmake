# Flags that every C target of the project shares.
add_compile_options(-Wall -Wextra -Wshadow -Wvla -Wpointer-arith -Wno-unused-parameter -Wno-format-truncation -fno-math-errno -ffp-contract=off -fno-omit-frame-pointer)
add_compile_options($<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>)
if(CMAKE_C_COMPILER_ID MATCHES Clang)
  add_compile_options(-Wno-pass-failed) # a loop that sanitizers keep from vectorizing is no mistake
endif()
add_compile_definitions(_GNU_SOURCE)
if(RDNA_WERROR AND NOT RDNA_SANITIZE) # instrumented code makes gcc 12 warn of what cannot be
  add_compile_options(-Werror)
endif()
if(RDNA_FUZZ)
  # coverage in every library, or the fuzzer would see no more than its own file
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(RDNA_SANITIZE)
  add_compile_options(-fsanitize=${RDNA_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${RDNA_SANITIZE})
endif()
if(RDNA_COVERAGE)
  add_compile_options(--coverage -fprofile-abs-path)
  add_link_options(--coverage)
endif()
