/* FUSED compiles a function with the fused multiply-add instruction, which the processor may lack. */
#ifndef RDNA_KERNEL_TESTING_FUSED_H
#define RDNA_KERNEL_TESTING_FUSED_H

#include <stdbool.h>

#if defined(__x86_64__)
#define FUSED __attribute__((target("avx2,fma")))
#else
#define FUSED
#endif

static inline bool has_fused(void) {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return true;
#endif
}

#endif
