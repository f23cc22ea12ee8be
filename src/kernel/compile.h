/* The parts of rdna_compile: compilers, and the folder that keeps what they made. */
#ifndef RDNA_KERNEL_COMPILE_H
#define RDNA_KERNEL_COMPILE_H

#include <stdio.h>

#include "kernel/code_object.h"

enum { RDNA__COMPILE_PATH = 4096, RDNA__COMPILE_KEY = 33, RDNA__COMPILE_NOTICE = 1024, RDNA__COMPILE_TARGET = 64 };

struct rdna_code {
  void *data; /* (size) */
  size_t size;
  rdna__code_description description;
  char compiler[RDNA__COMPILE_PATH], notice[RDNA__COMPILE_NOTICE];
  char *warnings; /* NULL: none */
  bool cached;
  double milliseconds;
};

/* What a compilation reads. */
typedef struct rdna__compile_job {
  const char *source, *target, *name;
  const char *const *flags;
  int flag_count;
} rdna__compile_job;

/* The line that goes before a source, so that messages have its name and count its lines. */
void rdna__compile_line(const rdna__compile_job *job, char line[RDNA__COMPILE_PATH]);

/* What it makes; all from malloc. */
typedef struct rdna__compile_result {
  void *data; /* PTX with a NUL at its end */
  size_t size;
  char *text;  /* what the compiler said, or NULL */
  char *files; /* files that the source includes, one a line, or NULL */
} rdna__compile_result;

typedef struct rdna__compiler rdna__compiler;
struct rdna__compiler {
  rdna_status (*compile)(const rdna__compiler *compiler, const rdna__compile_job *job,
                         rdna__compile_result *out_result);
  bool is_library; /* it runs in this process */
  char path[RDNA__COMPILE_PATH];
  char identity[128]; /* changes when the compiler does: its file's size and time, or its version */
};

/* The compiler for |target|: the one that RDNA_COMPILER names; else for AMD's GPUs hiprtc of a machine with a real AMD
 * card, then clang; for NVIDIA's clang, which knows all of our header's names, then NVRTC. RDNA_UNAVAILABLE with where
 * it was looked for. */
rdna_status rdna__compiler_find(const char *target, rdna__compiler *out_compiler);
/* clang by the path or name in |chosen|, or at the usual places when that is "". */
rdna_status rdna__clang_find(const char *chosen, rdna__compiler *out_compiler);
/* hiprtc in the library |chosen|, or beside the HIP runtime in use when that is "": false when there is none. */
bool rdna__hiprtc_find(const char *chosen, rdna__compiler *out_compiler);
/* NVRTC in the library |chosen|, or at CUDA's usual places when that is "". */
bool rdna__nvrtc_find(const char *chosen, rdna__compiler *out_compiler);
/* For who compiles in a thread of its own, before it registers with atexit() what waits for that thread. A compiler
 * that is a library makes at its first use what it takes apart when the program ends, in the reverse order of what was
 * registered: it is used once now, for some 100 ms, so that the thread is waited for before. Nothing for clang. */
void rdna__compiler_settle(const char *target);
/* Puts size and time of the file at compiler->path into its identity; false when it is not there. */
bool rdna__compiler_identify(rdna__compiler *compiler, const char *version);

/* Gives the target to compile for where the code is for one device: its own name, or for an AMD card that compilers do
 * not know by a name in targets.def that of the card whose code it runs. */
void rdna__compile_target(const rdna_device *device, char target[RDNA__COMPILE_TARGET]);

/* What foreign kernels have in place of HIP's headers: scalar.h, scalar64.h and hip_subset.h. */
extern const char rdna__hip_header[];
extern const size_t rdna__hip_header_size;

/* As rdna_module_load, without keeping the device: for what is released when the device ends. */
rdna_status rdna__module_load_within(rdna_device *device, const rdna_code *code, rdna_module **out_module);

/* ---- the cache: a folder with a file KEY.code for each entry, and KEY.lock while somebody makes it ----------- */

typedef struct rdna__cache {
  char folder[RDNA__COMPILE_PATH];
  uint64_t most_entries, most_bytes;
  bool usable;                       /* may be read */
  char notice[RDNA__COMPILE_NOTICE]; /* why it cannot be used or written, or "" */
} rdna__cache;

/* Makes the folder where it is missing. |folder| as in rdna_compile_options.cache. */
void rdna__cache_open(rdna__cache *cache, const char *folder, uint64_t most_entries, uint64_t most_bytes);
/* RDNA_NOT_FOUND: no such entry, or one whose included files have changed. RDNA_BAD_DATA: it was not what was written;
 * it is gone now. Free *out_data with free(). */
rdna_status rdna__cache_read(rdna__cache *cache, const char *key, void **out_data, size_t *out_size);
/* Waits until no other process or thread makes |key|; -1 when the folder cannot be written. */
int rdna__cache_lock(rdna__cache *cache, const char *key);
void rdna__cache_unlock(rdna__cache *cache, const char *key, int lock);
/* Keeps an entry, then drops the least recently used beyond the limits; a failure goes to cache->notice. |files|: the
 * included ones, one a line, or NULL. */
void rdna__cache_write(rdna__cache *cache, const char *key, const void *data, size_t size, const char *files);

/* The code in the bytes of an entry for |key|, and the lines about its included files. RDNA_BAD_DATA. */
rdna_status rdna__cache_parse(const char *key, const uint8_t *entry, size_t size, const uint8_t **out_code,
                              size_t *out_code_size, const char **out_files, size_t *out_files_size);

#endif
