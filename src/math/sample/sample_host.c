/* Host twins of sample_kernels.h: places are found in the same arithmetic as on a GPU, sums are in double. |dtype| is a
 * compile-time constant wherever a function is inlined. */
#include "math/common/host/doubles.h"
#include "math/sample/sample_kernels.h"

#define INLINE static inline __attribute__((always_inline))

struct taps {
  int count;
  int32_t at[4];
  double weight[4], slope[4];
};

/* The taps of dimension |d| (0 z, 1 y, 2 x) of a place. */
INLINE struct taps taps_of(const struct sample_grid *g, rdna_dtype dtype, const struct sample_place *p, int32_t d) {
  struct taps taps = {1, {0}, {1}, {0}};
  if (d == 0 && g->dims == 2) return taps;
  taps.count = sample_taps_count(g->kind);
  double v = load_double(g->wide ? RDNA_F32 : dtype, g->data, sample_coordinate(g->stride, p, d));
  struct sample_taps_f32 f32 = {{0}, {0}, {0}};
  struct sample_taps_f64 f64 = {{0}, {0}, {0}};
  if (dtype == RDNA_F64)
    f64 = sample_taps_of_f64(g, g->kind, g->size[d], v);
  else
    f32 = sample_taps_of_f32(g, g->kind, g->size[d], (float)v);
  for (int k = 0; k < taps.count; k++) {
    taps.at[k] = dtype == RDNA_F64 ? f64.at[k] : f32.at[k];
    taps.weight[k] = dtype == RDNA_F64 ? f64.weight[k] : (double)f32.weight[k];
    taps.slope[k] = dtype == RDNA_F64 ? f64.slope[k] : (double)f32.slope[k];
  }
  return taps;
}

struct corner {
  int32_t z, y, x;
  bool inside;
  double weight, slope[3];
};
struct corners {
  int count;
  struct corner at[16];
};

INLINE struct corners corners_of(const struct sample_grid *g, rdna_dtype dtype, const struct sample_place *p) {
  struct corners c = {0};
  struct taps z = taps_of(g, dtype, p, 0), y = taps_of(g, dtype, p, 1), x = taps_of(g, dtype, p, 2);
  for (int i = 0; i < z.count; i++) {
    for (int j = 0; j < y.count; j++) {
      for (int k = 0; k < x.count; k++) {
        c.at[c.count++] =
            (struct corner){z.at[i],
                            y.at[j],
                            x.at[k],
                            z.at[i] >= 0 && y.at[j] >= 0 && x.at[k] >= 0,
                            z.weight[i] * y.weight[j] * x.weight[k],
                            {z.slope[i] * y.weight[j] * x.weight[k], z.weight[i] * y.slope[j] * x.weight[k],
                             z.weight[i] * y.weight[j] * x.slope[k]}};
      }
    }
  }
  return c;
}

INLINE void forward_range(const struct sample_args *a, rdna_dtype dtype, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) {
    struct volume_place at = volume_place_at(&a->order, (uint32_t)i);
    struct sample_place p = {at.x, at.y, at.z, at.n};
    struct corners corners = corners_of(&a->grid, dtype, &p);
    uint32_t c = (uint32_t)at.c * a->order.channels, last = c + a->order.channels;
    for (; c < last && c < a->channels; c++) {
      double sum = 0;
      for (int k = 0; k < corners.count; k++) {
        const struct corner *o = &corners.at[k];
        if (!o->inside && a->grid.kind != SAMPLE_NEAREST) sum += 0 * o->weight; /* a NaN place */
        if (!o->inside) continue;
        double v =
            load_double(dtype, a->x.data, volume_channel(&a->x, at.n, c) + volume_offset(&a->x, o->z, o->y, o->x));
        sum += a->grid.kind == SAMPLE_NEAREST ? v : o->weight * v;
      }
      store_double(dtype, a->out.data, volume_channel(&a->out, at.n, c) + volume_offset(&a->out, at.z, at.y, at.x),
                   sum);
    }
  }
}

INLINE void slope_range(const struct sample_slope_args *a, rdna_dtype dtype, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) {
    struct sample_place p = sample_place_at(&a->shape, (uint32_t)i);
    struct corners corners = corners_of(&a->grid, dtype, &p);
    double by[3] = {0};
    for (uint32_t c = 0; c < a->channels; c++) {
      double g =
          load_double(dtype, a->dout.data, volume_channel(&a->dout, p.n, c) + volume_offset(&a->dout, p.z, p.y, p.x));
      for (int k = 0; k < corners.count; k++) {
        const struct corner *o = &corners.at[k];
        double v = 0;
        if (o->inside)
          v = g * load_double(dtype, a->x.data, volume_channel(&a->x, p.n, c) + volume_offset(&a->x, o->z, o->y, o->x));
        for (int d = 0; d < 3; d++) by[d] += v * o->slope[d]; /* NaN at a NaN place */
      }
    }
    for (int d = 3 - (int)a->grid.dims; d < 3; d++)
      store_double(a->grid.wide ? RDNA_F32 : dtype, a->dgrid, sample_coordinate(a->stride, &p, d), by[d]);
  }
}

INLINE void corners_range(const struct sample_corners_args *a, rdna_dtype dtype, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) {
    struct sample_place p = sample_place_at(&a->shape, (uint32_t)i);
    struct corners corners = corners_of(&a->grid, dtype, &p);
    int64_t to = (int64_t)p.n * a->corners * a->positions + i - (int64_t)p.n * a->positions;
    for (int k = 0; k < corners.count; k++, to += a->positions) {
      const struct corner *o = &corners.at[k];
      a->values[to] = o->inside ? (o->z * a->grid.size[1] + o->y) * a->grid.size[2] + o->x : (int32_t)a->plane;
      if (dtype == RDNA_F64)
        ((double *)a->weights)[to] = o->weight;
      else
        ((float *)a->weights)[to] = (float)o->weight;
    }
  }
}

INLINE void gather_range(const struct sample_gather_args *a, rdna_dtype dtype, int64_t begin, int64_t end) {
  int64_t plane = (int64_t)a->size[0] * a->size[1] * a->size[2];
  for (int64_t i = begin; i < end; i++) {
    struct volume_place at = volume_place_at(&a->order, (uint32_t)i);
    int64_t value = ((int64_t)at.z * a->size[1] + at.y) * a->size[2] + at.x, row = (int64_t)at.n * a->entries;
    const uint32_t *starts = a->starts + at.n * (plane + 1) + value;
    uint32_t c = (uint32_t)at.c * a->order.channels, count = a->channels - c;
    if (count > a->order.channels) count = a->order.channels;
    double sum[SAMPLE_BLOCK] = {0};
    for (uint32_t e = starts[0]; e < starts[1]; e++) {
      uint32_t entry = a->places[row + e];
      double weight = dtype == RDNA_F64 ? ((const double *)a->weights)[row + entry]
                                        : (double)((const float *)a->weights)[row + entry];
      struct sample_place p = sample_place_at(&a->shape, entry);
      int64_t of = volume_channel(&a->dout, at.n, c) + volume_offset(&a->dout, p.z, p.y, p.x);
      for (uint32_t k = 0; k < count; k++)
        sum[k] += weight * load_double(dtype, a->dout.data, of + k * a->dout.stride[1]);
    }
    int64_t to = volume_channel(&a->dx, at.n, c) + volume_offset(&a->dx, at.z, at.y, at.x);
    for (uint32_t k = 0; k < count; k++) store_double(dtype, a->dx.data, to + k * a->dx.stride[1], sum[k]);
  }
}

static void starts_range(void *context, int64_t begin, int64_t end) {
  const struct sample_starts_args *a = context;
  for (int64_t i = begin; i < end; i++) {
    const int32_t *row = a->values + i / (a->plane + 1) * a->entries;
    int64_t value = i % (a->plane + 1);
    uint32_t low = 0, high = a->entries;
    while (low < high) {
      uint32_t middle = low + (high - low) / 2;
      if (row[middle] < value)
        low = middle + 1;
      else
        high = middle;
    }
    a->starts[i] = low;
  }
}
void RDNA_HOST_KERNEL(sample_starts)(const void *args, rdna_grid grid) {
  struct sample_starts_args a = *(const struct sample_starts_args *)args;
  rdna__parallel_for((int64_t)a.samples * (a.plane + 1), 1024, starts_range, &a);
}

#define SAMPLE_RANGE(what, type, args, dtype)                            \
  static void what##_##type(void *context, int64_t begin, int64_t end) { \
    what##_range((const struct args *)context, dtype, begin, end);       \
  }
#define SAMPLE_TWIN(name, what, type, args_of, count)                      \
  void RDNA_HOST_KERNEL(name##_##type)(const void *args, rdna_grid grid) { \
    struct args_of a = *(const struct args_of *)args;                      \
    rdna__parallel_for(a.count, 64, what##_##type, &a);                    \
  }
#define SAMPLE_TWINS(type, dtype)                                               \
  SAMPLE_RANGE(forward, type, sample_args, dtype)                               \
  SAMPLE_RANGE(slope, type, sample_slope_args, dtype)                           \
  SAMPLE_RANGE(corners, type, sample_corners_args, dtype)                       \
  SAMPLE_RANGE(gather, type, sample_gather_args, dtype)                         \
  SAMPLE_TWIN(sample_linear, forward, type, sample_args, order.shape.count)     \
  SAMPLE_TWIN(sample_nearest, forward, type, sample_args, order.shape.count)    \
  SAMPLE_TWIN(sample_cubic, forward, type, sample_args, order.shape.count)      \
  SAMPLE_TWIN(sample_slope_linear, slope, type, sample_slope_args, shape.count) \
  SAMPLE_TWIN(sample_slope_cubic, slope, type, sample_slope_args, shape.count)  \
  SAMPLE_TWIN(sample_corners, corners, type, sample_corners_args, shape.count)  \
  SAMPLE_TWIN(sample_gather, gather, type, sample_gather_args, order.shape.count)
SAMPLE_TWINS(f32, RDNA_F32)
SAMPLE_TWINS(f16, RDNA_F16)
SAMPLE_TWINS(bf16, RDNA_BF16)
SAMPLE_TWINS(f64, RDNA_F64)
