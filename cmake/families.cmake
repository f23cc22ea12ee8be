# Writes the list of kernel families that src/math/manifest.c reads, from the sources: each src/math/<folder>/<family>.hip,
# with the header beside it that defines its list RDNA_<FAMILY>_KERNELS(X).
#   cmake -DROOT=src -DOUT=families.h -P families.cmake
cmake_minimum_required(VERSION 3.18)

file(GLOB headers ${ROOT}/math/*/*_kernels.h)
set(lists)
foreach(header ${headers})
  file(READ ${header} text)
  string(REGEX MATCHALL "#define RDNA_[A-Z0-9_]+_KERNELS\\(X\\)" found "${text}")
  foreach(line ${found})
    string(REGEX REPLACE "^#define (.*)\\(X\\)$" "\\1" name "${line}")
    if(name IN_LIST lists)
      message(FATAL_ERROR "${header} defines ${name} a second time; it is in ${header_of_${name}} already")
    endif()
    list(APPEND lists ${name})
    set(header_of_${name} ${header})
  endforeach()
endforeach()

file(GLOB sources ${ROOT}/math/*/*.hip)
set(families)
set(includes)
foreach(source ${sources})
  get_filename_component(family ${source} NAME_WE)
  get_filename_component(folder ${source} DIRECTORY)
  string(TOUPPER "RDNA_${family}_KERNELS" name)
  if(NOT name IN_LIST lists)
    message(FATAL_ERROR "${source} has no list of kernels: define ${name}(X) in a *_kernels.h in ${folder} (docs/adding.md, \"A kernel family\")")
  endif()
  list(REMOVE_ITEM lists ${name})
  list(APPEND families ${family})
  file(RELATIVE_PATH include ${ROOT} ${header_of_${name}})
  list(APPEND includes "#include \"${include}\"\n")
endforeach()
foreach(name ${lists})
  string(REGEX REPLACE "^RDNA_(.*)_KERNELS$" "\\1" family ${name})
  string(TOLOWER ${family} family)
  message(FATAL_ERROR "${header_of_${name}} defines ${name}, but there is no ${family}.hip beside it")
endforeach()

list(SORT families)
list(SORT includes)
list(REMOVE_DUPLICATES includes)
list(JOIN includes "" includes)
set(rows)
set(info)
foreach(family ${families})
  string(TOUPPER ${family} upper)
  string(APPEND rows " \\\n  FAMILY(${family}, RDNA_${upper}_KERNELS)")
  string(APPEND info "#define INFO_${family}(...) INFO(${family}, __VA_ARGS__)\n")
endforeach()
file(WRITE ${OUT} "/* Made by cmake/families.cmake: one family for each .hip file of src/math. */
${includes}
/* code object (the stem of the .hip file), list of kernels */
#define FAMILIES(FAMILY)${rows}

${info}")
