/* The operations that a chain may have: those that are worth fusing, since all of them, for each of a thread's values,
 * would be half a megabyte of code. The column |chain| of rdna/op/pointwise.def says which. */
#ifndef RDNA_MATH_FUSED_OPS_H
#define RDNA_MATH_FUSED_OPS_H

#include "math/pointwise/pointwise_ops.h"

/* What stands in a chain at all, and what only the kernel for few inputs or only the other one has: quick operations
 * are a few instructions without a branch, so that it needs few registers. */
enum fused_chain { FUSED_NO, FUSED_SLOW, FUSED_QUICK, FUSED_FAST };

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

/* A row's case in f32, if chains have it in such a way. */
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
