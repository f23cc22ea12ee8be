/* Pooling on the host, in double; |dtype| is a constant wherever these are inlined. */
#include <math.h>

#include "math/common/host/doubles.h"
#include "math/pool/pool_kernels.h"

#define INLINE static inline __attribute__((always_inline))

struct windows {
  struct pool_window z, y, x;
};

INLINE struct windows windows_at(const struct pool_axis axis[3], int32_t z, int32_t y, int32_t x) {
  return (struct windows){pool_window_at(&axis[0], z), pool_window_at(&axis[1], y), pool_window_at(&axis[2], x)};
}

/* A value of the result: its place, and what it is made of. */
struct pooled {
  struct volume_place p;
  uint32_t c;
  struct windows w;
  bool some;     /* the window holds anything */
  int64_t plane; /* of x, where the channel begins */
  int64_t to;    /* of out */
};

/* False: value |i| belongs to a channel behind the last, which a block of channels may have. */
INLINE bool pooled_at(const struct pool_args *a, int64_t i, struct pooled *o) {
  uint32_t block = a->order.channels;
  o->p = volume_place_at(&a->order, (uint32_t)(i / block));
  o->c = (uint32_t)o->p.c * block + (uint32_t)(i % block);
  if (o->c >= a->channels) return false;
  o->w = windows_at(a->axis, o->p.z, o->p.y, o->p.x);
  o->some = o->w.z.begin < o->w.z.end && o->w.y.begin < o->w.y.end && o->w.x.begin < o->w.x.end;
  o->plane = volume_channel(&a->x, o->p.n, o->c);
  o->to = volume_channel(&a->out, o->p.n, o->c) + volume_offset(&a->out, o->p.z, o->p.y, o->p.x);
  return true;
}

INLINE void max_range(const struct pool_args *a, rdna_dtype dtype, int64_t begin, int64_t end) {
  uint32_t block = a->order.channels;
  for (int64_t i = begin * block; i < end * block; i++) {
    struct pooled o;
    if (!pooled_at(a, i, &o)) continue;
    struct windows w = o.w;
    double best = -INFINITY;
    int64_t at = o.some ? ((int64_t)w.z.begin * a->axis[1].in + w.y.begin) * a->axis[2].in + w.x.begin : -1;
    for (int32_t z = w.z.begin; z < w.z.end; z += a->axis[0].dilation) {
      for (int32_t y = w.y.begin; y < w.y.end; y += a->axis[1].dilation) {
        for (int32_t x = w.x.begin; x < w.x.end; x += a->axis[2].dilation) {
          double v = load_double(dtype, a->x.data, o.plane + volume_offset(&a->x, z, y, x));
          if (!(v > best) && v == v) continue;
          best = v, at = ((int64_t)z * a->axis[1].in + y) * a->axis[2].in + x;
        }
      }
    }
    store_double(dtype, a->out.data, o.to, best);
    int64_t *indices = a->indices.data;
    if (indices)
      indices[volume_channel(&a->indices, o.p.n, o.c) + volume_offset(&a->indices, o.p.z, o.p.y, o.p.x)] = at;
  }
}

INLINE void average_range(const struct pool_args *a, rdna_dtype dtype, int64_t begin, int64_t end) {
  uint32_t block = a->order.channels;
  for (int64_t i = begin * block; i < end * block; i++) {
    struct pooled o;
    if (!pooled_at(a, i, &o)) continue;
    struct windows w = o.w;
    double sum = 0;
    for (int32_t z = w.z.begin; z < w.z.end; z++) {
      for (int32_t y = w.y.begin; y < w.y.end; y++) {
        for (int32_t x = w.x.begin; x < w.x.end; x++) {
          sum += load_double(dtype, a->x.data, o.plane + volume_offset(&a->x, z, y, x));
        }
      }
    }
    store_double(dtype, a->out.data, o.to,
                 sum / (double)(a->divisor ? a->divisor
                                : o.some   ? pool_count(w.z, w.y, w.x, a->padding)
                                           : 1));
  }
}

INLINE void backward_range(const struct pool_backward_args *a, rdna_dtype dtype, bool largest, int64_t begin,
                           int64_t end) {
  uint32_t block = a->order.channels;
  for (int64_t i = begin * block; i < end * block; i++) {
    struct volume_place p = volume_place_at(&a->order, (uint32_t)(i / block));
    struct pool_reach rz = pool_windows_of(&a->axis[0], p.z), ry = pool_windows_of(&a->axis[1], p.y);
    struct pool_reach rx = pool_windows_of(&a->axis[2], p.x);
    uint32_t c = (uint32_t)p.c * block + (uint32_t)(i % block);
    if (c >= a->channels) continue;
    int64_t plane = volume_channel(&a->dout, p.n, c), indices = largest ? volume_channel(&a->indices, p.n, c) : 0;
    int64_t number = ((int64_t)p.z * a->axis[1].in + p.y) * a->axis[2].in + p.x;
    double sum = 0;
    for (int32_t z = rz.begin; z < rz.end; z++) {
      for (int32_t y = ry.begin; y < ry.end; y++) {
        for (int32_t x = rx.begin; x < rx.end; x++) {
          if (largest && ((const int64_t *)a->indices.data)[indices + volume_offset(&a->indices, z, y, x)] != number)
            continue;
          double v = load_double(dtype, a->dout.data, plane + volume_offset(&a->dout, z, y, x));
          if (!largest) {
            struct windows w = windows_at(a->axis, z, y, x);
            v /= (double)(a->divisor ? a->divisor : pool_count(w.z, w.y, w.x, a->padding));
          }
          sum += v;
        }
      }
    }
    store_double(dtype, a->dx.data, volume_channel(&a->dx, p.n, c) + volume_offset(&a->dx, p.z, p.y, p.x), sum);
  }
}

/* The same as a pooling of any kind, a plane in a number. */
INLINE void strips(const struct pool_strip_args *strip, rdna_dtype dtype, int64_t begin, int64_t end) {
  int32_t out_h = (int32_t)strip->shape.size[1], out_w = strip->in_w / 2, x_before = strip->window == 3;
  int64_t in = (int64_t)strip->in_h * strip->in_w, out = (int64_t)out_h * out_w;
  struct pool_args a = {.x = {(void *)(uintptr_t)strip->x, {0, in, 0, strip->in_w, 1}},
                        .out = {strip->out, {0, out, 0, out_w, 1}},
                        .indices = {strip->indices, {0, out, 0, out_w, 1}},
                        .axis = {{.in = 1, .out = 1, .window = 1, .stride = 1, .dilation = 1},
                                 {strip->in_h, out_h, strip->window, 2, strip->pad_before, strip->window, 1},
                                 {strip->in_w, out_w, strip->window, 2, x_before, 0, 1}},
                        .channels = strip->shape.size[2],
                        .order = {.channels = 1}};
  const uint32_t size[] = {(uint32_t)out_w, (uint32_t)out_h, 1, strip->shape.size[2], 1};
  for (uint32_t d = 0; d < 5; d++) strided_set_size(&a.order.shape, d, size[d]);
  max_range(&a, dtype, begin * out_w, end * out_w);
}

/* |each| is one of the above with its constants. */
#define POOL_TWIN(name, args_type, type, each)                                   \
  static void name##_##type##_range(void *context, int64_t begin, int64_t end) { \
    const struct args_type *a = context;                                         \
    each;                                                                        \
  }                                                                              \
  void RDNA_HOST_KERNEL(name##_##type)(const void *args, rdna_grid grid) {       \
    struct args_type a = *(const struct args_type *)args;                        \
    rdna__parallel_for(a.order.shape.count, 512, name##_##type##_range, &a);     \
  }
#define POOL_TWINS(type, dtype)                                                                      \
  POOL_TWIN(max_pool, pool_args, type, max_range(a, dtype, begin, end))                              \
  POOL_TWIN(average_pool, pool_args, type, average_range(a, dtype, begin, end))                      \
  POOL_TWIN(max_pool_backward, pool_backward_args, type, backward_range(a, dtype, true, begin, end)) \
  POOL_TWIN(average_pool_backward, pool_backward_args, type, backward_range(a, dtype, false, begin, end))
#define STRIP_TWIN(type, dtype)                                                                                       \
  static void strip_##type##_range(void *context, int64_t begin, int64_t end) { strips(context, dtype, begin, end); } \
  void RDNA_HOST_KERNEL(max_pool_strip_##type)(const void *args, rdna_grid grid) {                                    \
    struct pool_strip_args a = *(const struct pool_strip_args *)args;                                                 \
    int64_t rows = (int64_t)a.shape.size[1] * a.shape.size[2];                                                        \
    if (a.shape.count > 0) rdna__parallel_for(rows, 4, strip_##type##_range, &a);                                     \
  }
STRIP_TWIN(f32, RDNA_F32)
STRIP_TWIN(f16, RDNA_F16)
STRIP_TWIN(bf16, RDNA_BF16)
POOL_TWINS(f32, RDNA_F32)
POOL_TWINS(f16, RDNA_F16)
POOL_TWINS(bf16, RDNA_BF16)
POOL_TWINS(f64, RDNA_F64)
