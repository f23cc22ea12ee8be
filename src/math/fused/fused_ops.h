/* The operations that a chain may have, by the column |chain| of rdna/op/pointwise.def: only those that are worth
 * fusing. All operations, unrolled over a thread's values, would be half a megabyte of code. */
#ifndef RDNA_MATH_FUSED_OPS_H
#define RDNA_MATH_FUSED_OPS_H

#include "math/pointwise/pointwise_ops.h"

/* How chains have an operation. NO: not at all. SLOW: only in fused_any_*. QUICK, FAST: also in fused_*, whose
 * operations are a few instructions without a branch, so that it needs few registers; both are called quick. QUICK
 * gives the same bits on every device; FAST uses the hardware's functions. */
enum fused_chain { FUSED_NO, FUSED_SLOW, FUSED_QUICK, FUSED_FAST };

/* FUSED_IF_<set>_<chain>(x) is x if rows with that |chain| are in the set, else nothing. QUICK: operations of the
 * kernel for few inputs; SAME: operations with the same bits on every device; ANY: all operations of chains. */
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

/* A row's case of a switch, in f32, if the row is in the set. */
#define FUSED_QUICK_MAP_(NAME, name, types, chain, integer, f32, ...) \
  FUSED_IF_QUICK_##chain(POINTWISE_MAP_CASE_(NAME, f32))
#define FUSED_SAME_MAP_(NAME, name, types, chain, integer, f32, ...) \
  FUSED_IF_SAME_##chain(POINTWISE_MAP_CASE_(NAME, f32))
#define FUSED_ANY_MAP_(NAME, name, types, chain, integer, f32, ...) FUSED_IF_ANY_##chain(POINTWISE_MAP_CASE_(NAME, f32))
#define FUSED_ANY_ZIP_(NAME, name, types, chain, integer, f32, ...) FUSED_IF_ANY_##chain(POINTWISE_ZIP_CASE_(NAME, f32))

/* Cases of quick maps; |fast| is close or fast (fast.h) on the GPU. */
#define FUSED_QUICK_MAPS(fast) RDNA_POINTWISE_MAPS(FUSED_QUICK_MAP_, FUSED_QUICK_MAP_, pw32, fast)
/* Cases of maps with the same bits everywhere, and of all maps and zips of chains. */
#define FUSED_SAME_MAPS RDNA_POINTWISE_MAPS(FUSED_SAME_MAP_, FUSED_SAME_MAP_, pw32, scalar)
#define FUSED_ANY_MAPS RDNA_POINTWISE_MAPS(FUSED_ANY_MAP_, FUSED_ANY_MAP_, pw32, scalar)
#define FUSED_ANY_ZIPS RDNA_POINTWISE_ZIPS(FUSED_ANY_ZIP_, FUSED_ANY_ZIP_, pw32)

#endif
