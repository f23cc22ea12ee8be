/* Resampling (interpolation): along each dimension an output is a weighted sum of 1 (nearest), 2 (linear) or 4 (cubic)
 * neighbouring inputs, its taps. Four inputs to eight outputs, corners not aligned:
 *
 *     inputs        0       1       2       3
 *     outputs     0   1   2   3   4   5   6   7     output 3 lies at 1.25: linear, 3/4 of input 1 and 1/4 of input 2
 *
 * Backward, a thread gathers the gradient of an input from the outputs that used it, so no sum needs atomics. An
 * output's place never decreases as outputs go on, so those outputs are a range, [begin, end).
 *
 * Of b bytes of input and c of output, forward reads b (each byte from memory once) and writes c, backward the other
 * way round, at 2 to 21 operations a value of each channel (nearest to bicubic). */
#ifndef RDNA_MATH_UPSAMPLE_KERNELS_H
#define RDNA_MATH_UPSAMPLE_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "math/common/volume.h"

enum { UPSAMPLE_THREADS = 256, UPSAMPLE_BLOCK = 8 /* most channels of a thread */ };
enum upsample_kind { UPSAMPLE_NEAREST, UPSAMPLE_NEAREST_EXACT, UPSAMPLE_LINEAR, UPSAMPLE_CUBIC };

/* One dimension. Output o lies among the inputs
 *     at o * scale where corners are aligned, and for UPSAMPLE_NEAREST, which takes input floor(o * scale);
 *     at (o + 1/2) * scale - 1/2 otherwise; UPSAMPLE_NEAREST_EXACT takes input floor((o + 1/2) * scale). */
struct upsample_axis {
  int32_t in, out;
  float scale;
  float inverse; /* about 1 / scale: backward guesses an input's outputs by it; 0 if scale is 0 */
  double scale_f64;
};

struct upsample_args {
  struct volume x, out;         /* backward: dx, dout */
  struct volume_order order;    /* of the tensor that is written: out; backward: dx */
  struct upsample_axis axis[3]; /* z, y, x; those that the tensors lack are of size 1 */
  uint32_t kind;                /* enum upsample_kind, as the kernel's name says: nearest may be either of two */
  uint32_t dims;                /* that are resampled: linear 1 to 3, cubic 2 */
  uint32_t align_corners, channels;
};

/* Cubic convolution with a = -3/4 (Keys, "Cubic convolution interpolation for digital image processing", 1981). */
#define UPSAMPLE_IN_(real, suffix, floor_of, scale_of)                                                                \
  /* Returns the first input of output o (for cubic the second), and how far o lies beyond it, 0 to 1. */             \
  RDNA_SCALAR int32_t upsample_place_##suffix(const struct upsample_axis *a, uint32_t kind, bool align, int32_t o,    \
                                              real *beyond) {                                                         \
    if (kind <= UPSAMPLE_NEAREST_EXACT) {                                                                             \
      float nearest = __builtin_floorf(((float)o + (kind == UPSAMPLE_NEAREST ? 0.0f : 0.5f)) * a->scale);             \
      *beyond = 0;                                                                                                    \
      return nearest < (float)(a->in - 1) ? (int32_t)nearest : a->in - 1;                                             \
    }                                                                                                                 \
    real place = align ? a->scale_of * (real)o : a->scale_of * ((real)o + (real)0.5) - (real)0.5;                     \
    if (kind == UPSAMPLE_LINEAR && place < 0) place = 0;                                                              \
    if (place > (real)(a->in + 2)) place = (real)(a->in + 2);                                                         \
    real low = floor_of(place);                                                                                       \
    if (kind == UPSAMPLE_LINEAR && low > (real)(a->in - 1)) low = (real)(a->in - 1);                                  \
    real t = place - low;                                                                                             \
    *beyond = t > 1 ? 1 : t;                                                                                          \
    return (int32_t)low;                                                                                              \
  }                                                                                                                   \
  /* Weights of taps at a distance from the place: near less than 1, far 1 to 2; of tap number |tap|. */              \
  RDNA_SCALAR real upsample_cubic_near_##suffix(real t) { return (((real)1.25 * t - (real)2.25) * t) * t + 1; }       \
  RDNA_SCALAR real upsample_cubic_far_##suffix(real t) { return (((real) - 0.75 * t + (real)3.75) * t - 6) * t + 3; } \
  RDNA_SCALAR real upsample_weight_##suffix(uint32_t kind, real t, int32_t tap) {                                     \
    if (kind <= UPSAMPLE_NEAREST_EXACT) return 1;                                                                     \
    if (kind == UPSAMPLE_LINEAR) return tap == 0 ? 1 - t : t;                                                         \
    return tap == 0   ? upsample_cubic_far_##suffix(t + 1)                                                            \
           : tap == 1 ? upsample_cubic_near_##suffix(t)                                                               \
           : tap == 2 ? upsample_cubic_near_##suffix(1 - t)                                                           \
                      : upsample_cubic_far_##suffix(2 - t);                                                           \
  }                                                                                                                   \
  /* The weight of input i in output o: of several taps that were clamped to i, the sum. */                           \
  RDNA_SCALAR real upsample_share_##suffix(const struct upsample_axis *a, uint32_t kind, bool align, int32_t o,       \
                                           int32_t i) {                                                               \
    if (kind <= UPSAMPLE_NEAREST_EXACT) return 1;                                                                     \
    real t, share = 0;                                                                                                \
    int32_t low = upsample_place_##suffix(a, kind, align, o, &t);                                                     \
    int32_t taps = upsample_taps(kind);                                                                               \
    STRIDED_UNROLL                                                                                                    \
    for (int32_t k = 0; k < 4; k++) {                                                                                 \
      if (k < taps && upsample_input(a, kind, low, k) == i) share += upsample_weight_##suffix(kind, t, k);            \
    }                                                                                                                 \
    return share;                                                                                                     \
  }                                                                                                                   \
  /* Returns the outputs [begin, end) that use input i: guesses both ends, then corrects them step by step. */        \
  RDNA_SCALAR struct upsample_reach upsample_outputs_##suffix(const struct upsample_axis *a, uint32_t kind,           \
                                                              bool align, int32_t i) {                                \
    struct upsample_reach r;                                                                                          \
    int32_t last = upsample_taps(kind) - 1;                                                                           \
    real t;                                                                                                           \
    r.begin = upsample_guess(a, i - last);                                                                            \
    while (r.begin > 0 &&                                                                                             \
           upsample_input(a, kind, upsample_place_##suffix(a, kind, align, r.begin - 1, &t), last) >= i)              \
      r.begin--;                                                                                                      \
    while (r.begin < a->out &&                                                                                        \
           upsample_input(a, kind, upsample_place_##suffix(a, kind, align, r.begin, &t), last) < i)                   \
      r.begin++;                                                                                                      \
    r.end = upsample_guess(a, i + 1);                                                                                 \
    if (r.end < r.begin) r.end = r.begin;                                                                             \
    while (r.end > r.begin && upsample_input(a, kind, upsample_place_##suffix(a, kind, align, r.end - 1, &t), 0) > i) \
      r.end--;                                                                                                        \
    while (r.end < a->out && upsample_input(a, kind, upsample_place_##suffix(a, kind, align, r.end, &t), 0) <= i)     \
      r.end++;                                                                                                        \
    return r;                                                                                                         \
  }

struct upsample_reach {
  int32_t begin, end;
};

RDNA_SCALAR int32_t upsample_taps(uint32_t kind) {
  return kind == UPSAMPLE_CUBIC ? 4 : kind == UPSAMPLE_LINEAR ? 2 : 1;
}
/* The input of a tap, clamped to the inputs that there are. */
RDNA_SCALAR int32_t upsample_input(const struct upsample_axis *a, uint32_t kind, int32_t low, int32_t tap) {
  int32_t i = low + tap - (kind == UPSAMPLE_CUBIC);
  return i < 0 ? 0 : i < a->in ? i : a->in - 1;
}
RDNA_SCALAR int32_t upsample_guess(const struct upsample_axis *a, int32_t i) {
  float o = (float)i * a->inverse;
  return o > 0 ? o < (float)a->out ? (int32_t)o : a->out : 0;
}

UPSAMPLE_IN_(float, f32, __builtin_floorf, scale)
UPSAMPLE_IN_(double, f64, __builtin_floor, scale_f64)

#define RDNA_UPSAMPLE_TYPE_(X, type)                                                               \
  X(upsample_nearest_##type, struct upsample_args, UPSAMPLE_THREADS, rdna__upsample_case)          \
  X(upsample_linear_##type, struct upsample_args, UPSAMPLE_THREADS, rdna__upsample_case)           \
  X(upsample_cubic_##type, struct upsample_args, UPSAMPLE_THREADS, rdna__upsample_case)            \
  X(upsample_nearest_backward_##type, struct upsample_args, UPSAMPLE_THREADS, rdna__upsample_case) \
  X(upsample_linear_backward_##type, struct upsample_args, UPSAMPLE_THREADS, rdna__upsample_case)  \
  X(upsample_cubic_backward_##type, struct upsample_args, UPSAMPLE_THREADS, rdna__upsample_case)
#define RDNA_UPSAMPLE_KERNELS(X) \
  RDNA_UPSAMPLE_TYPE_(X, f32)    \
  RDNA_UPSAMPLE_TYPE_(X, f16)    \
  RDNA_UPSAMPLE_TYPE_(X, bf16)   \
  RDNA_UPSAMPLE_TYPE_(X, f64)

#endif
