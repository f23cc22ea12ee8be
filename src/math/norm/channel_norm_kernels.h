/* Batch and group norm. A tensor is seen as (outer, runs, cols, len), and a statistic is taken over the runs and the
 * lengths of |width| neighbouring columns:
 *
 *     batch norm, channels first    (1, n, channels, spatial)                 width 1
 *     group norm, channels first    (n, 1, channels, spatial)                 width channels / groups
 *     batch norm, channels last     (1, n * spatial, channels, 1)             width 1
 *     group norm, channels last     (n, spatial, channels, 1)                 width channels / groups
 *
 * Kernels are _columns where len is 1 and _runs where it is not. The runs of a column are cut into slices.
 * channel_partial_* reduce slices, *_end join them in a fixed order, and
 * channel_map_* compute what has the tensor's shape. f32, f16 and bf16 are computed in f32, f64 in f64.
 *
 * For b bytes of a tensor: forward reads 2 b and writes b, at 3 and 1 operations a value; inference reads and writes b;
 * backward reads 4 b and writes b, at 4 and 4 operations a value. */
#ifndef RDNA_MATH_CHANNEL_NORM_KERNELS_H
#define RDNA_MATH_CHANNEL_NORM_KERNELS_H

#include <stdint.h>

#include "kernel/scalar.h"

enum {
  CHANNEL_THREADS = 256,
  CHANNEL_AHEAD = 4,    /* loads of a thread in flight */
  CHANNEL_END_OUTS = 8, /* outputs of a group that joins slices */
  CHANNEL_END_WAYS = CHANNEL_THREADS / CHANNEL_END_OUTS
};

/* How the runs of a column are cut into slices. Either a slice is |slice_runs| whole runs (parts is 1), or a run is cut
 * into |parts| slices (slice_runs is 1):
 *
 *     parts 1, slice_runs 2            parts 3, slice_runs 1
 *     run 0  [ slice 0            ]    run 0  [ slice 0 | slice 1 | slice 2 ]
 *     run 1  [ slice 0            ]    run 1  [ slice 3 | slice 4 | slice 5 ]
 *     run 2  [ slice 1            ]
 */
struct channel_slices {
  int64_t len, part; /* values of a run, and of a part of it */
  uint32_t runs, slices;
  uint32_t slice_runs; /* 1 if parts is not 1 */
  uint32_t parts;      /* of each run */
};
struct channel_slice {
  uint32_t run, run_end;
  int64_t begin, end;
};
RDNA_SCALAR struct channel_slice channel_slice_at(const struct channel_slices *a, uint32_t s) {
  uint32_t block = a->parts == 1 ? s : s / a->parts;
  struct channel_slice r;
  r.run = block * a->slice_runs; /* less than runs, if there are any */
  r.run_end = a->runs - r.run > a->slice_runs ? r.run + a->slice_runs : a->runs;
  r.begin = (int64_t)(s - block * a->parts) * a->part;
  r.end = r.begin + a->part < a->len ? r.begin + a->part : a->len;
  return r;
}
/* How many values are in a slice. */
RDNA_SCALAR int64_t channel_slice_count(struct channel_slice s) {
  return s.run_end > s.run && s.end > s.begin ? (int64_t)(s.run_end - s.run) * (s.end - s.begin) : 0;
}

/* channel_partial_moments_*: means, and sums of squared distances from them.
 * channel_partial_gradients_*: sums of dout, and of dout * (x - mean). */
struct channel_partial_args {
  const void *x;
  const void *dout; /* gradients */
  const void *mean; /* gradients: (outer, cols / width), of f32 if mean_f32 */
  void *partial;    /* (2, outer, slices, cols) of f32, or f64 for f64 */
  struct channel_slices slices;
  uint32_t outer, cols, width;
  uint32_t team; /* threads that share a run or, where len is 1, that lie side by side: a power of two up to 256 */
  uint32_t wave; /* 1: a slice is a wave's, and team is at most 32; 0: a group's. Where len is 1, 0. */
  uint32_t mean_f32;
};

/* mean, and inverse = 1 / sqrt(variance + epsilon); running = (1 - momentum) * running + momentum * new, where the
 * variance that runs is the unbiased one. */
struct channel_moments_end_args {
  const void *partial;
  void *mean, *inverse;             /* (outer, cols / width) of f32, or f64 in _f64 */
  void *running_mean, *running_var; /* (outer, cols / width) of running_dtype; each may be NULL */
  struct channel_slices slices;
  uint32_t outer, cols, width;
  double momentum, epsilon;
  uint32_t running_dtype;
};

/* With n values in a statistic, and sums over them of weight * dout and weight * dout * (x - mean):
 *     slope[0] = -sum / n * inverse,  slope[1] = -sum' / n * inverse^3
 * dweight and dbias are sums over the rest of dout * (x - mean) * inverse and of dout. */
struct channel_gradients_end_args {
  const void *partial;
  const void *spread;    /* (outer, cols / width): inverse, or a variance */
  const void *weight;    /* (cols) or NULL */
  void *slope;           /* (2, outer, cols / width) of f32, or f64 in _f64; NULL if not wanted */
  void *dweight, *dbias; /* (cols) of gradient_dtype; each may be NULL */
  struct channel_slices slices;
  uint32_t outer, cols, width;
  double epsilon;
  uint32_t variance;     /* 1: spread is a variance */
  uint32_t slope_groups; /* groups from here on do dweight and dbias */
  uint32_t spread_dtype, weight_dtype, gradient_dtype;
};

/* channel_map_scale_*: out = (x - mean) * inverse * weight + bias + other, and then max(0, that) if relu
 * channel_map_gradient_*: out = dout * inverse * weight + (x - mean) * slope[1] + slope[0], or the first term alone */
struct channel_map_args {
  const void *first;         /* x, or dout */
  const void *second;        /* other or NULL; or x, NULL without slope */
  void *out;                 /* may be first or second */
  const void *mean, *spread; /* (outer, cols / width) of statistic_dtype; spread as above */
  const void *slope;         /* (2, outer, cols / width) of f32, or f64 for f64; or NULL */
  const void *weight, *bias; /* (cols) or NULL */
  int64_t len, part;         /* values of a run, and of a part of it; where len is 1, part is the runs of a group */
  uint32_t parts;            /* of a run: 1 unless team is 256 */
  uint32_t outer, runs, cols, width;
  double epsilon;
  uint32_t variance, relu;
  uint32_t team;                      /* as above */
  uint32_t statistic_f32, weight_f32; /* mean and spread, or weight and bias, are f32, not x's type */
};

#define RDNA_CHANNEL_LAYOUT_(X, layout, type)                                                              \
  X(channel_partial_moments_##layout##_##type, struct channel_partial_args, CHANNEL_THREADS,               \
    rdna__channel_partial_case)                                                                            \
  X(channel_partial_gradients_##layout##_##type, struct channel_partial_args, CHANNEL_THREADS,             \
    rdna__channel_partial_case)                                                                            \
  X(channel_map_scale_##layout##_##type, struct channel_map_args, CHANNEL_THREADS, rdna__channel_map_case) \
  X(channel_map_gradient_##layout##_##type, struct channel_map_args, CHANNEL_THREADS, rdna__channel_map_case)
#define RDNA_CHANNEL_TYPE_(X, type)   \
  RDNA_CHANNEL_LAYOUT_(X, runs, type) \
  RDNA_CHANNEL_LAYOUT_(X, columns, type)
#define RDNA_CHANNEL_END_(X, type)                                                                                \
  X(channel_moments_end_##type, struct channel_moments_end_args, CHANNEL_THREADS, rdna__channel_moments_end_case) \
  X(channel_gradients_end_##type, struct channel_gradients_end_args, CHANNEL_THREADS, rdna__channel_gradients_end_case)
#define RDNA_CHANNEL_NORM_KERNELS(X) \
  RDNA_CHANNEL_TYPE_(X, f32)         \
  RDNA_CHANNEL_TYPE_(X, f16)         \
  RDNA_CHANNEL_TYPE_(X, bf16)        \
  RDNA_CHANNEL_TYPE_(X, f64)         \
  RDNA_CHANNEL_END_(X, f32)          \
  RDNA_CHANNEL_END_(X, f64)

#endif
