/* Sampling at any places. Along each dimension a place lies between values, its taps: 1 (nearest), 2 (linear) or 4
 * (cubic). A corner is one tap of each dimension, so there are taps^dims of them:
 *
 *     x       0     1     2     3         place 1.3, linear: value 1 with 0.7, value 2 with 0.3
 *                     ^                   cubic: values 0 to 3
 *
 * Backward, many places may take one value, in no order. So that no sum needs atomics, corners are sorted by the value
 * that they take:
 *
 *     sample_corners   of each place and corner: which value of the plane (the plane's size if none), and its weight
 *     (sort)           rows of a sample's corners, by value
 *     sample_starts    where the corners of each value begin
 *     sample_gather    a thread for a value, of up to SAMPLE_BLOCK channels, adds dout of its corners in their order
 *
 * Of p places and c channels in two dimensions, linear, in b bytes a value: forward reads 4 p c values out of the
 * image's rows, mostly of the cache, and writes p c b bytes; gathering reads dout about 4 times, and corners 12 bytes
 * each for every SAMPLE_BLOCK channels. */
#ifndef RDNA_MATH_SAMPLE_KERNELS_H
#define RDNA_MATH_SAMPLE_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "math/common/volume.h"

enum { SAMPLE_THREADS = 256, SAMPLE_BLOCK = 8 /* most channels of a thread */ };
enum sample_kind { SAMPLE_LINEAR, SAMPLE_NEAREST, SAMPLE_CUBIC };       /* as rdna_sample_mode */
enum sample_padding { SAMPLE_ZEROS, SAMPLE_BORDER, SAMPLE_REFLECTION }; /* as rdna_sample_padding */
enum sample_units { SAMPLE_EDGES, SAMPLE_CENTERS, SAMPLE_NUMBERS };     /* as rdna_sample_units */

/* How places become values, and the grid that has them. */
struct sample_grid {
  void *data;        /* of the kernel's type, or f32 if wide; sample_slope: read */
  int64_t stride[5]; /* n, z, y, x, coordinate */
  int32_t size[3];   /* of the image: z, y, x; 1 for one that it lacks */
  uint32_t dims;     /* of the image: 2 or 3 */
  uint32_t kind, padding, units, wide;
};

struct sample_args { /* forward */
  struct volume x, out;
  struct sample_grid grid;
  struct volume_order order; /* of out */
  uint32_t channels;
};

struct sample_slope_args { /* the gradient of the grid */
  struct volume x, dout;
  struct sample_grid grid;
  void *dgrid;                /* of the grid's type */
  int64_t stride[5];          /* of dgrid */
  struct strided_shape shape; /* of positions: x, y, z, n */
  uint32_t channels;
};

struct sample_corners_args {
  struct sample_grid grid;
  int32_t *values;            /* (n, corners, positions) */
  void *weights;              /* the same of f32, f64 for f64 */
  struct strided_shape shape; /* x, y, z, n */
  uint32_t corners, positions, plane;
};

struct sample_starts_args {
  const int32_t *values; /* (n, entries), sorted in each row */
  uint32_t *starts;      /* (n, plane + 1) */
  uint32_t samples, entries, plane;
};

struct sample_gather_args {
  struct volume dx, dout;
  const uint32_t *starts;     /* (n, plane + 1) */
  const uint32_t *places;     /* (n, entries): where a sorted corner was */
  const void *weights;        /* (n, entries), as they were */
  struct volume_order order;  /* of dx */
  struct strided_shape shape; /* of a sample's entries: x, y, z, corner */
  int32_t size[3];            /* of dx */
  uint32_t entries, channels;
};

/* The taps of a place along one dimension: which values, -1 for none, their weights and how fast these grow with the
 * coordinate. */
#define SAMPLE_IN_(real, suffix, floor_of, rint_of, abs_of)                                                            \
  struct sample_taps_##suffix {                                                                                        \
    int32_t at[4];                                                                                                     \
    real weight[4], slope[4];                                                                                          \
  };                                                                                                                   \
  /* Moves a place as the padding says; its slope is multiplied by what the move does to it. */                        \
  RDNA_SCALAR real sample_padded_##suffix(const struct sample_grid *g, int32_t size, real at, real *slope) {           \
    real last = (real)(size - 1);                                                                                      \
    if (g->padding == SAMPLE_REFLECTION) {                                                                             \
      bool centers = g->units == SAMPLE_CENTERS;                                                                       \
      real low = centers ? 0 : (real) - 0.5, span = centers ? last : (real)size;                                       \
      if (span > 0) {                                                                                                  \
        real from = at - low, far = abs_of(from), flips = floor_of(far / span), rest = far - flips * span;             \
        bool odd = flips - 2 * floor_of(flips / 2) != 0;                                                               \
        rest = rest < 0 ? 0 : rest > span ? span : rest; /* of a quotient that was rounded */                          \
        at = (odd ? span - rest : rest) + low;                                                                         \
        if (odd != (from < 0)) *slope = -*slope;                                                                       \
      } else {                                                                                                         \
        at = 0, *slope = 0;                                                                                            \
      }                                                                                                                \
    }                                                                                                                  \
    if (g->padding != SAMPLE_ZEROS) {                                                                                  \
      if (!(at > 0 && at < last)) *slope *= 0;                                                                         \
      at = at > 0 ? at < last ? at : last : 0;                                                                         \
    }                                                                                                                  \
    return at;                                                                                                         \
  }                                                                                                                    \
  RDNA_SCALAR int32_t sample_inside_##suffix(real at, int32_t size) {                                                  \
    return at >= 0 && at < (real)size ? (int32_t)at : -1;                                                              \
  }                                                                                                                    \
  /* Cubic convolution with a = -3/4 (Keys, "Cubic convolution interpolation for digital image processing", 1981): the \
   * weight of a value at a distance t up to 1, of one from 1 to 2, and their derivatives. */                          \
  RDNA_SCALAR real sample_near_##suffix(real t) { return (((real)1.25 * t - (real)2.25) * t) * t + 1; }                \
  RDNA_SCALAR real sample_far_##suffix(real t) { return (((real) - 0.75 * t + (real)3.75) * t - 6) * t + 3; }          \
  RDNA_SCALAR real sample_near_slope_##suffix(real t) { return ((real)3.75 * t - (real)4.5) * t; }                     \
  RDNA_SCALAR real sample_far_slope_##suffix(real t) { return ((real) - 2.25 * t + (real)7.5) * t - 6; }               \
  RDNA_SCALAR struct sample_taps_##suffix sample_taps_of_##suffix(const struct sample_grid *g, uint32_t kind,          \
                                                                  int32_t size, real v) {                              \
    struct sample_taps_##suffix taps = {{-1, -1, -1, -1}, {0, 0, 0, 0}, {0, 0, 0, 0}};                                 \
    real n = (real)size, at = v, slope = 1;                                                                            \
    if (g->units == SAMPLE_CENTERS) at = (v + 1) / 2 * (n - 1), slope = (n - 1) / 2;                                   \
    if (g->units == SAMPLE_EDGES) at = ((v + 1) * n - 1) / 2, slope = n / 2;                                           \
    if (kind != SAMPLE_CUBIC) {                                                                                        \
      at = sample_padded_##suffix(g, size, at, &slope);                                                                \
      if (kind == SAMPLE_NEAREST) {                                                                                    \
        taps.at[0] = sample_inside_##suffix(rint_of(at), size), taps.weight[0] = 1;                                    \
        return taps;                                                                                                   \
      }                                                                                                                \
      real low = floor_of(at), t = at - low;                                                                           \
      taps.at[0] = sample_inside_##suffix(low, size), taps.at[1] = sample_inside_##suffix(low + 1, size);              \
      taps.weight[0] = 1 - t, taps.weight[1] = t;                                                                      \
      taps.slope[0] = -slope, taps.slope[1] = slope;                                                                   \
      return taps;                                                                                                     \
    }                                                                                                                  \
    real low = floor_of(at), t = at - low, ignored = 1;                                                                \
    STRIDED_UNROLL                                                                                                     \
    for (int32_t k = 0; k < 4; k++) {                                                                                  \
      taps.at[k] =                                                                                                     \
          sample_inside_##suffix(rint_of(sample_padded_##suffix(g, size, low + (real)(k - 1), &ignored)), size);       \
    }                                                                                                                  \
    taps.weight[0] = sample_far_##suffix(t + 1), taps.weight[1] = sample_near_##suffix(t);                             \
    taps.weight[2] = sample_near_##suffix(1 - t), taps.weight[3] = sample_far_##suffix(2 - t);                         \
    taps.slope[0] = slope * sample_far_slope_##suffix(t + 1), taps.slope[1] = slope * sample_near_slope_##suffix(t);   \
    taps.slope[2] = -slope * sample_near_slope_##suffix(1 - t);                                                        \
    taps.slope[3] = -slope * sample_far_slope_##suffix(2 - t);                                                         \
    return taps;                                                                                                       \
  }

RDNA_SCALAR int32_t sample_taps_count(uint32_t kind) {
  return kind == SAMPLE_CUBIC ? 4 : kind == SAMPLE_LINEAR ? 2 : 1;
}

SAMPLE_IN_(float, f32, __builtin_floorf, __builtin_rintf, __builtin_fabsf)
SAMPLE_IN_(double, f64, __builtin_floor, __builtin_rint, __builtin_fabs)

/* Where position i is: x, y, z, and what the shape counts beside them. */
struct sample_place {
  int32_t x, y, z, n;
};
RDNA_SCALAR struct sample_place sample_place_at(const struct strided_shape *shape, uint32_t i) {
  uint32_t digit[4];
  STRIDED_UNROLL
  for (uint32_t d = 0; d < 4; d++) {
    uint32_t quotient = (uint32_t)(((uint64_t)shape->magic[d] * i) >> shape->shift[d]);
    digit[d] = i - quotient * shape->size[d];
    i = quotient;
  }
  struct sample_place p = {(int32_t)digit[0], (int32_t)digit[1], (int32_t)digit[2], (int32_t)digit[3]};
  return p;
}
/* Where the coordinate of a dimension (0 z, 1 y, 2 x) of a place is. */
RDNA_SCALAR int64_t sample_coordinate(const int64_t stride[5], const struct sample_place *p, int32_t d) {
  return p->n * stride[0] + p->z * stride[1] + p->y * stride[2] + p->x * stride[3] + (2 - d) * stride[4];
}

#define RDNA_SAMPLE_TYPE_(X, type)                                                                 \
  X(sample_linear_##type, struct sample_args, SAMPLE_THREADS, rdna__sample_case)                   \
  X(sample_nearest_##type, struct sample_args, SAMPLE_THREADS, rdna__sample_case)                  \
  X(sample_cubic_##type, struct sample_args, SAMPLE_THREADS, rdna__sample_case)                    \
  X(sample_slope_linear_##type, struct sample_slope_args, SAMPLE_THREADS, rdna__sample_slope_case) \
  X(sample_slope_cubic_##type, struct sample_slope_args, SAMPLE_THREADS, rdna__sample_slope_case)  \
  X(sample_corners_##type, struct sample_corners_args, SAMPLE_THREADS, rdna__sample_corners_case)  \
  X(sample_gather_##type, struct sample_gather_args, SAMPLE_THREADS, rdna__sample_gather_case)
#define RDNA_SAMPLE_KERNELS(X) \
  RDNA_SAMPLE_TYPE_(X, f32)    \
  RDNA_SAMPLE_TYPE_(X, f16)    \
  RDNA_SAMPLE_TYPE_(X, bf16)   \
  RDNA_SAMPLE_TYPE_(X, f64)    \
  X(sample_starts, struct sample_starts_args, SAMPLE_THREADS, rdna__sample_starts_case)

#endif
