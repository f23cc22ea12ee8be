# Writes the list of tables of routes that src/math/routes.c reads, from the sources: each RDNA_ROUTES(rdna__<name>_routes,
# or RDNA_FIXED_ROUTES(rdna__<name>_routes, in a src/math/<folder>/*.c.
#   cmake -DROOT=src -DOUT=route_tables.h -P routes.cmake
cmake_minimum_required(VERSION 3.18)

file(GLOB sources ${ROOT}/math/*/*.c)
set(tables)
foreach(source ${sources})
  file(STRINGS ${source} lines REGEX "^RDNA_(FIXED_)?ROUTES\\(")
  foreach(line ${lines})
    if(NOT line MATCHES "ROUTES\\(rdna__([a-z0-9_]+)_routes,")
      message(FATAL_ERROR "${source}: '${line}': a table of routes is called rdna__<name>_routes")
    endif()
    list(APPEND tables ${CMAKE_MATCH_1})
  endforeach()
endforeach()
list(SORT tables)
list(TRANSFORM tables REPLACE "(.+)" " \\\\\n  TABLE(\\1)" OUTPUT_VARIABLE rows)
list(JOIN rows "" rows)
file(WRITE ${OUT} "/* Made by cmake/routes.cmake: the tables of routes in src/math. */\n#define ROUTE_TABLES(TABLE)${rows}\n")
