/* Device code: a kernel's arguments, read again. */
#ifndef RDNA_KERNEL_ARGUMENTS_H
#define RDNA_KERNEL_ARGUMENTS_H

#include "kernel/prelude.h"

/* The kernel's only argument |args|, of which the compiler knows nothing: it reads again what is used, and computes
 * again what follows from it, rather than keep all of it across a loop in more scalar registers than there are (they
 * spill). For the start of a long loop's body. */
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

/* The same where waves have 64 lanes, whose masks take two scalar registers each: for kernels that fit in the
 * registers elsewhere. */
template <typename type>
RDNA_DEVICE const type &arguments_again_wide(const type &args) {
#if WAVE_SIZE == 64
  return arguments_again(args);
#else
  return args;
#endif
}

#endif
