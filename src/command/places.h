/* Where the code of each kernel stands. The table is made when the command is built: see tools/kernel_places.py. */
#ifndef RDNA_COMMAND_PLACES_H
#define RDNA_COMMAND_PLACES_H

typedef struct source_place {
  const char *file; /* from the repository's root */
  int line;
} source_place;

typedef struct kernel_place {
  const char *kernel, *case_maker;
  struct {
    source_place device; /* the kernel, in the macro that makes it where one does */
    source_place twin, cases;
  } at;
} kernel_place;

extern const kernel_place kernel_places[]; /* every kernel of the manifest, by name */
extern const int kernel_place_count;

#endif
