/* The operations that a chain may have: those that are worth fusing, since all of them, for each of a thread's values,
 * would be half a megabyte of code. The column |chain| of rdna/op/pointwise.def says which. */
#ifndef RDNA_MATH_FUSED_OPS_H
#define RDNA_MATH_FUSED_OPS_H

#include "math/pointwise/pointwise_ops.h"

/* How chains have an operation: not at all; in the kernel that takes anything; or in the kernel for few inputs as well,
 * which has only what is a few instructions without a branch, and so needs few registers: with the same bits on every
 * device, or FAST, by the hardware's functions. */
enum fused_chain { FUSED_NO, FUSED_SLOW, FUSED_QUICK, FUSED_FAST };

/* What is kept of a row, by its column |chain|. QUICK: what the kernel for few inputs has; SAME: what is the same bits
 * on every device; ANY: what chains have. */
#define FUSED_IF_QUICK_NO(...)
#define FUSED_IF_QUICK_SLOW(...)
#define FUSED_IF_QUICK_QUICK(...) __VA_ARGS__
#define FUSED_IF_QUICK_FAST(...) __VA_ARGS__
#define FUSED_IF_SAME_NO(...)
#define FUSED_IF_SAME_SLOW(...) __VA_ARGS__
#define FUSED_IF_SAME_QUICK(...) __VA_ARGS__
#define FUSED_IF_SAME_FAST(...)
#define FUSED_IF_ANY_NO(...)
#define FUSED_IF_ANY_SLOW(...) __VA_ARGS__
#define FUSED_IF_ANY_QUICK(...) __VA_ARGS__
#define FUSED_IF_ANY_FAST(...) __VA_ARGS__

/* A row's case in f32, if it is kept. */
#define FUSED_QUICK_MAP_(NAME, name, types, chain, integer, f32, ...) \
  FUSED_IF_QUICK_##chain(POINTWISE_MAP_CASE_(NAME, f32))
#define FUSED_SAME_MAP_(NAME, name, types, chain, integer, f32, ...) \
  FUSED_IF_SAME_##chain(POINTWISE_MAP_CASE_(NAME, f32))
#define FUSED_ANY_MAP_(NAME, name, types, chain, integer, f32, ...) FUSED_IF_ANY_##chain(POINTWISE_MAP_CASE_(NAME, f32))
#define FUSED_ANY_ZIP_(NAME, name, types, chain, integer, f32, ...) FUSED_IF_ANY_##chain(POINTWISE_ZIP_CASE_(NAME, f32))

/* Quick ones; |fast| is close or fast (fast.h) on the GPU. */
#define FUSED_QUICK_MAPS(fast) RDNA_POINTWISE_MAPS(FUSED_QUICK_MAP_, FUSED_QUICK_MAP_, pw32, fast)
/* Those that are the same bits everywhere. */
#define FUSED_SAME_MAPS RDNA_POINTWISE_MAPS(FUSED_SAME_MAP_, FUSED_SAME_MAP_, pw32, scalar)
#define FUSED_ANY_MAPS RDNA_POINTWISE_MAPS(FUSED_ANY_MAP_, FUSED_ANY_MAP_, pw32, scalar)
#define FUSED_ANY_ZIPS RDNA_POINTWISE_ZIPS(FUSED_ANY_ZIP_, FUSED_ANY_ZIP_, pw32)

#endif
