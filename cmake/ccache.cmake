# ccache where it is installed, with paths relative to the checkout, so that another clone or build folder (pip's is a new
# one each time) finds what this one compiled.
find_program(CCACHE ccache)
if(CCACHE)
  get_filename_component(checkout ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)
  set(CMAKE_C_COMPILER_LAUNCHER env CCACHE_BASEDIR=${checkout} CCACHE_NOHASHDIR=1 ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
endif()
