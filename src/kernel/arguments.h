/* Device code: keeps a kernel's arguments in memory rather than in scalar registers. */
#ifndef RDNA_KERNEL_ARGUMENTS_H
#define RDNA_KERNEL_ARGUMENTS_H

#include "kernel/prelude.h"

/* Returns the kernel's only argument |args| at an address that the compiler knows nothing of: it reads again what is
 * used from there, rather than keep all of it across a loop in more scalar registers than there are. See "Arguments
 * again" in src/math/README.md. */
template <typename type>
RDNA_DEVICE const type &arguments_again(const type &args) {
#ifdef RDNA_AMD
  auto at = (const __attribute__((address_space(4))) type *)__builtin_amdgcn_kernarg_segment_ptr();
  asm volatile("" : "+s"(at));
  return *(const type *)at;
#else
  return args;
#endif
}

/* The same, but only where waves have 64 lanes, whose comparison masks take two scalar registers each: for kernels that
 * do not spill elsewhere. */
template <typename type>
RDNA_DEVICE const type &arguments_again_wide(const type &args) {
#if WAVE_SIZE == 64
  return arguments_again(args);
#else
  return args;
#endif
}

#endif
