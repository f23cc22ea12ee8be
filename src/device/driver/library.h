/* Vendors' libraries, found and bound at run time: nothing of theirs is needed to build. */
#ifndef RDNA_DEVICE_DRIVER_LIBRARY_H
#define RDNA_DEVICE_DRIVER_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct rdna__library {
  void *handle;      /* NULL until something was opened */
  char path[1024];   /* the file that is really mapped, links resolved */
  char failure[512]; /* the first thing that the dynamic linker said about a file that exists, or about any */
} rdna__library;

typedef struct rdna__symbol {
  const char *name;
  size_t offset; /* of the function pointer in the driver's table */
  bool required;
} rdna__symbol;

/* Whether the process shows an LLVM to all that is loaded later, as TensorFlow does. A distribution's HIP comes with an
 * LLVM of another release, whose constructors end the process if they meet the other's classes. */
bool rdna__library_meets_llvm(void);

/* Opens a path or a soname; |only_if_loaded| takes it only when the process has it already. A failure is noted
 * in |library| for the sentence. A library is never closed again: vendors' runtimes keep threads. */
bool rdna__library_open(rdna__library *library, const char *name, bool only_if_loaded);

/* Opens the library of the process whose file name starts with |prefix|, under whatever path it was loaded. */
bool rdna__library_open_loaded(rdna__library *library, const char *prefix);

/* Opens PREFIX* in |folder| with the highest version number first (".10" before ".9"). */
bool rdna__library_open_newest(rdna__library *library, const char *folder, const char *prefix);

/* The same in every folder that the glob |pattern| matches, the highest version first. */
bool rdna__library_open_in_folders(rdna__library *library, const char *pattern, const char *prefix);

/* The same in the folders |base|/|below|; false without a |base|. */
bool rdna__library_open_below(rdna__library *library, const char *base, const char *below, const char *prefix);

/* The same in the folder |package| of the Python site-packages around this library, around the program and in
 * $VIRTUAL_ENV. Wheels hold only SONAME files, so the unversioned name does not exist there. */
bool rdna__library_open_wheel(rdna__library *library, const char *package, const char *prefix);

/* Fills |table|; a missing optional symbol is NULL there. Returns the first missing required symbol, or NULL. */
const char *rdna__library_bind(rdna__library *library, const rdna__symbol *symbols, size_t count, void *table);

/* Folder of the file that holds this library's own code, and of the running program; "" when unknown. */
void rdna__library_own_folder(char *out_folder, size_t capacity);
void rdna__library_program_folder(char *out_folder, size_t capacity);

#endif
