/* Every setting of the library, in one table: its environment name, its kind, its default and its help. The table
 * yields the parser, the command's --help, and docs/configuration.md. */
#ifndef RDNA_BASE_CONFIG_H
#define RDNA_BASE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* KEY, environment, kind (TEXT CHOICE INTEGER FLAG), default, choices or "low..high" or "", help */
#define RDNA__CONFIG_TABLE(X)                                                                                       \
  X(DRIVER, "RDNA_DRIVER", CHOICE, "auto", "auto|hip|cuda|host|null", "which driver 'auto' means")                  \
  X(EMULATE, "RDNA_EMULATE", TEXT, "", "",                                                                          \
    "GPUs to emulate, such as gfx1100,gfx1030: the hip driver then loads "                                          \
    "the emulator instead of AMD's library")                                                                        \
  X(HIP_LIBRARY, "RDNA_HIP_LIBRARY", TEXT, "", "", "path of the libamdhip64 to load, before all other places")      \
  X(CUDA_LIBRARY, "RDNA_CUDA_LIBRARY", TEXT, "", "", "path of the libcuda to load, before all other places")        \
  X(KERNEL_PATH, "RDNA_KERNEL_PATH", TEXT, "", "", "folder of kernel packs, before the installed one")              \
  X(HOST_ISA, "RDNA_HOST_ISA", CHOICE, "auto", "auto|baseline|avx2|avx512", "highest instruction set on the host")  \
  X(VENDOR, "RDNA_VENDOR", TEXT, "auto", "",                                                                        \
    "vendors' libraries that may be used: auto (all), off, or some of cublaslt,rocblas,hipblaslt,miopen")           \
  X(VENDOR_PATH, "RDNA_VENDOR_PATH", TEXT, "", "", "folder of vendors' libraries, before all other places")         \
  X(TUNE, "RDNA_TUNE", CHOICE, "auto", "off|cached|auto|full",                                                      \
    "choice among implementations: by rule alone, by stored times too, by measuring what is missing for at most "   \
    "a second in a process, or without that limit")                                                                 \
  X(TUNE_FILE, "RDNA_TUNE_FILE", TEXT, "", "",                                                                      \
    "the tuner's database; none means rdna/tune.sqlite in the user's "                                              \
    "cache folder")                                                                                                 \
  X(COMPILER, "RDNA_COMPILER", TEXT, "", "",                                                                        \
    "who compiles kernels at run time: the path or name of a clang, 'hiprtc' or 'nvrtc', or the path of its "       \
    "library; none means hiprtc with a real AMD card, else the first clang that is found, else for NVIDIA's GPUs "  \
    "nvrtc")                                                                                                        \
  X(COMPILE_CACHE, "RDNA_COMPILE_CACHE", TEXT, "", "",                                                              \
    "folder of kernels that were compiled at run time, or 'off'; none means rdna/compiled in the user's cache "     \
    "folder")                                                                                                       \
  X(COMPILE_CACHE_ENTRIES, "RDNA_COMPILE_CACHE_ENTRIES", INTEGER, "1000", "1..1000000",                             \
    "how many such kernels are kept; the least recently used go first")                                             \
  X(COMPILE_CACHE_MB, "RDNA_COMPILE_CACHE_MB", INTEGER, "256", "1..1048576", "how many MiB of them are kept")       \
  X(FUSED_COMPILE, "RDNA_FUSED_COMPILE", CHOICE, "auto", "auto|off|always",                                         \
    "chains of operations as kernels of their own, compiled at run time: in the background once a chain has moved " \
    "1 GiB, never, or before its first launch")                                                                     \
  X(DETERMINISTIC, "RDNA_DETERMINISTIC", FLAG, "0", "",                                                             \
    "1: the same bits from run to run; no choice by time, no vendor's library, no sums in any order")               \
  X(THREADS, "RDNA_THREADS", INTEGER, "0", "0..1024", "host threads; 0 means one a processor")                      \
  X(LOG, "RDNA_LOG", CHOICE, "warning", "error|warning|info|debug", "least severe message that is shown")

#define RDNA__CONFIG_KEY(key, environment, kind, initial, choices, help) RDNA__CONFIG_##key,
typedef enum rdna__config_key { RDNA__CONFIG_TABLE(RDNA__CONFIG_KEY) RDNA__CONFIG_COUNT } rdna__config_key;
#undef RDNA__CONFIG_KEY

typedef enum rdna__config_kind {
  RDNA__CONFIG_TEXT,
  RDNA__CONFIG_CHOICE,
  RDNA__CONFIG_INTEGER,
  RDNA__CONFIG_FLAG
} rdna__config_kind;

typedef struct rdna__config_entry {
  const char *key;         /* "DRIVER" */
  const char *environment; /* "RDNA_DRIVER" */
  rdna__config_kind kind;
  const char *initial;
  const char *choices;
  const char *help;
} rdna__config_entry;

extern const rdna__config_entry rdna__config_entries[RDNA__CONFIG_COUNT];

/* The environment is read once, at the first of these calls. A value that does not parse is RDNA_INVALID_ARGUMENT
 * from rdna__config_check, with the sentence, and the default from the getters. */
rdna_status rdna__config_check(void);
const char *rdna__config_text(rdna__config_key key); /* TEXT and CHOICE; lives until the key is set again */
int64_t rdna__config_integer(rdna__config_key key);
bool rdna__config_flag(rdna__config_key key);
/* Overrides the environment, for a command's option or a test. Not while another thread reads. */
rdna_status rdna__config_set(rdna__config_key key, const char *value);

#endif
