#include <stdio.h>
#include <stdlib.h>

#include "math/common/case/volume.h"
#include "math/sample/sample.h"

/* What all kernels have: an image, positions, a grid whose places go beyond the image, some of them NaN or infinite. */
struct problem {
  rdna_dtype dtype, wide, places;
  int64_t n, channels;
  int32_t size[3], positions[3];
  uint32_t dims;
  rdna_tensor x, out;
  struct sample_grid grid;
};

static void make_problem(const rdna__kernel_info *kernel, rdna__random *random, int n, struct problem *p) {
  *p = (struct problem){.dtype = case_name_dtype(kernel->name), .n = rdna__random_range(random, 1, 2)};
  p->wide = p->dtype == RDNA_F64 ? RDNA_F64 : RDNA_F32;
  p->channels = n % 6 == 5 ? 16 : rdna__random_range(random, 1, 11);
  p->grid.kind = strstr(kernel->name, "cubic")     ? SAMPLE_CUBIC
                 : strstr(kernel->name, "nearest") ? SAMPLE_NEAREST
                                                   : SAMPLE_LINEAR;
  if (strstr(kernel->name, "corners")) p->grid.kind = (uint32_t)n % 3;
  p->dims = p->grid.kind == SAMPLE_CUBIC || n % 2 ? 2 : 3;
  p->grid.padding = (uint32_t)n / 2 % 3, p->grid.units = (uint32_t)n / 3 % 3, p->grid.dims = p->dims;
  p->grid.wide = p->wide == RDNA_F32 && n % 5 < 3;
  p->places = p->grid.wide ? RDNA_F32 : p->dtype;
  for (int d = 0; d < 3; d++) {
    p->size[d] = d == 0 && p->dims == 2 ? 1 : (int32_t)rdna__random_range(random, 1, 9);
    p->positions[d] = d == 0 && n % 4 == 1 ? 1 : n == 2 && d == 1 ? 0 : (int32_t)rdna__random_range(random, 1, 7);
    p->grid.size[d] = p->size[d];
  }
  bool last = n % 3 == 1;
  p->x = volume_case_tensor(p->dtype, p->n, p->channels, p->size, last);
  p->out = volume_case_tensor(p->dtype, p->n, p->channels, p->positions, n % 8 == 6 ? !last : last);
}

static int64_t places_of(const struct problem *p) { return p->n * p->positions[0] * p->positions[1] * p->positions[2]; }

static bool add_grid(rdna__kernel_case *c, rdna__random *random, struct problem *p, size_t offset) {
  int64_t count = places_of(p) * p->dims;
  void *grid = rdna__case_add(c, RDNA__IN, p->places, count, (uint32_t)(offset + offsetof(struct sample_grid, data)));
  static const double odd[] = {NAN, INFINITY, -INFINITY, 3e8, -1, 1, 0};
  for (int64_t i = 0; grid && i < count; i++) {
    double v = (rdna__random_unit(random) * 2 - 1) * (i % 5 ? 1.2 : 3.5);
    if (p->grid.units == SAMPLE_NUMBERS) v = (v + 1) * 4;
    if (i % 23 == 11) v = odd[rdna__random_below(random, 7)];
    store_double(p->places, grid, i, v);
  }
  return grid != NULL;
}
/* Contiguous: n, z, y, x, coordinate. */
static void set_strides(const struct problem *p, int64_t stride[5]) {
  stride[4] = 1, stride[3] = p->dims, stride[2] = stride[3] * p->positions[2], stride[1] = stride[2] * p->positions[1];
  stride[0] = stride[1] * p->positions[0];
}

static void *add_values(rdna__kernel_case *c, rdna__random *random, rdna__buffer_role role, const rdna_tensor *t,
                        size_t offset) {
  void *data = volume_case_add(c, role, t, offset);
  if (data && role == RDNA__IN) case_fill_doubles(random, t->dtype, data, rdna_tensor_count(t), 0);
  return data;
}

static void finish(rdna__kernel_case *c, const struct problem *p, const void *args, size_t bytes, uint32_t threads) {
  memcpy(c->args, args, bytes);
  c->grid = (rdna_grid){(threads + SAMPLE_THREADS - 1) / SAMPLE_THREADS, 1, 1};
  snprintf(c->label, sizeof c->label, "(%lld, %lld, %d, %d, %d) at (%d, %d, %d), padding %u, units %u", (long long)p->n,
           (long long)p->channels, p->size[0], p->size[1], p->size[2], p->positions[0], p->positions[1],
           p->positions[2], p->grid.padding, p->grid.units);
}

RDNA_CASE_MAKER(rdna__sample_case) {
  struct problem p;
  make_problem(kernel, random, n, &p);
  struct sample_args a = {.channels = (uint32_t)p.channels};
  const rdna_tensor *tensors[] = {&p.out, &p.x};
  a.x = volume_case_of(&p.x), a.out = volume_case_of(&p.out);
  RDNA_TRY(rdna__volume_order("case", tensors, 2, 1, &a.order));
  volume_case_block(random, p.channels, SAMPLE_BLOCK, &a.order);
  set_strides(&p, p.grid.stride), a.grid = p.grid;
  finish(out_case, &p, &a, sizeof a, a.order.shape.count);
  bool there = add_grid(out_case, random, &p, offsetof(struct sample_args, grid));
  void *x = there ? add_values(out_case, random, RDNA__IN, &p.x, offsetof(struct sample_args, x)) : NULL;
  if (!x || !add_values(out_case, random, RDNA__OUT, &p.out, offsetof(struct sample_args, out)))
    return rdna__case_no_memory(out_case);
  bool exact = p.grid.kind == SAMPLE_NEAREST;
  rdna__case_tolerance(out_case, exact ? 0 : 256 * case_unit(p.dtype) * 5, exact ? 0 : case_step(p.dtype));
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__sample_slope_case) {
  struct problem p;
  make_problem(kernel, random, n, &p);
  struct sample_slope_args a = {.shape = rdna__sample_shape(p.positions, p.n), .channels = (uint32_t)p.channels};
  a.x = volume_case_of(&p.x), a.dout = volume_case_of(&p.out);
  set_strides(&p, p.grid.stride), set_strides(&p, a.stride), a.grid = p.grid;
  finish(out_case, &p, &a, sizeof a, a.shape.count);
  bool there = add_grid(out_case, random, &p, offsetof(struct sample_slope_args, grid));
  void *x = there ? add_values(out_case, random, RDNA__IN, &p.x, offsetof(struct sample_slope_args, x)) : NULL;
  void *g = x ? add_values(out_case, random, RDNA__IN, &p.out, offsetof(struct sample_slope_args, dout)) : NULL;
  if (!g ||
      !rdna__case_add(out_case, RDNA__OUT, p.places, places_of(&p) * p.dims, offsetof(struct sample_slope_args, dgrid)))
    return rdna__case_no_memory(out_case);
  rdna__case_tolerance(out_case, 4096 * case_unit(p.dtype) * 25, case_step(p.dtype));
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__sample_corners_case) {
  struct problem p;
  make_problem(kernel, random, n, &p);
  uint32_t corners = rdna__sample_corners(p.grid.kind, p.dims);
  struct sample_corners_args a = {.shape = rdna__sample_shape(p.positions, p.n),
                                  .corners = corners,
                                  .positions = (uint32_t)(places_of(&p) / p.n),
                                  .plane = (uint32_t)(p.size[0] * p.size[1] * p.size[2])};
  set_strides(&p, p.grid.stride), a.grid = p.grid;
  finish(out_case, &p, &a, sizeof a, a.shape.count);
  int64_t entries = places_of(&p) * corners;
  bool there = add_grid(out_case, random, &p, offsetof(struct sample_corners_args, grid));
  if (!there || !rdna__case_add(out_case, RDNA__OUT, RDNA_I32, entries, offsetof(struct sample_corners_args, values)) ||
      !rdna__case_add(out_case, RDNA__OUT, p.wide, entries, offsetof(struct sample_corners_args, weights)))
    return rdna__case_no_memory(out_case);
  rdna__case_tolerance(out_case, 4 * case_unit(p.dtype), 0);
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__sample_starts_case) {
  struct sample_starts_args a = {.samples = (uint32_t)rdna__random_range(random, 1, 3),
                                 .entries = n == 0 ? 1 : (uint32_t)rdna__random_range(random, 1, 700),
                                 .plane = (uint32_t)rdna__random_range(random, 1, 300)};
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(a.samples * (a.plane + 1) + SAMPLE_THREADS - 1) / SAMPLE_THREADS, 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%u rows of %u of a plane of %u", a.samples, a.entries, a.plane);
  int32_t *values = rdna__case_add(out_case, RDNA__IN, RDNA_I32, (int64_t)a.samples * a.entries,
                                   offsetof(struct sample_starts_args, values));
  if (!values || !rdna__case_add(out_case, RDNA__OUT, RDNA_I32, (int64_t)a.samples * (a.plane + 1),
                                 offsetof(struct sample_starts_args, starts)))
    return rdna__case_no_memory(out_case);
  for (uint32_t row = 0; row < a.samples; row++) {
    int64_t v = 0;
    for (uint32_t i = 0; i < a.entries; i++) {
      if (rdna__random_below(random, 3) == 0) v += rdna__random_range(random, 0, n % 3 == 2 ? 9 : 2);
      values[row * a.entries + i] = (int32_t)(v < a.plane ? v : a.plane);
    }
  }
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__sample_gather_case) {
  struct problem p;
  make_problem(kernel, random, n, &p);
  int64_t corners = rdna__random_range(random, 1, 4), entries = places_of(&p) / p.n * corners;
  int64_t plane = (int64_t)p.size[0] * p.size[1] * p.size[2];
  struct sample_gather_args a = {.shape = rdna__sample_shape(p.positions, corners),
                                 .size = {p.size[0], p.size[1], p.size[2]},
                                 .entries = (uint32_t)entries,
                                 .channels = (uint32_t)p.channels};
  const rdna_tensor *tensors[] = {&p.x, &p.out};
  a.dx = volume_case_of(&p.x), a.dout = volume_case_of(&p.out);
  RDNA_TRY(rdna__volume_order("case", tensors, 2, 1, &a.order));
  volume_case_block(random, p.channels, SAMPLE_BLOCK, &a.order);
  finish(out_case, &p, &a, sizeof a, a.order.shape.count);
  uint32_t *starts =
      rdna__case_add(out_case, RDNA__IN, RDNA_I32, p.n * (plane + 1), offsetof(struct sample_gather_args, starts));
  uint32_t *places =
      rdna__case_add(out_case, RDNA__IN, RDNA_I32, p.n * entries, offsetof(struct sample_gather_args, places));
  void *weights =
      rdna__case_add(out_case, RDNA__IN, p.wide, p.n * entries, offsetof(struct sample_gather_args, weights));
  if (!starts || !places || !weights ||
      !add_values(out_case, random, RDNA__IN, &p.out, offsetof(struct sample_gather_args, dout)) ||
      !add_values(out_case, random, RDNA__OUT, &p.x, offsetof(struct sample_gather_args, dx)))
    return rdna__case_no_memory(out_case);
  for (int64_t s = 0; s < p.n; s++) {
    for (int64_t i = 0; i < entries; i++) {
      places[s * entries + i] = (uint32_t)rdna__random_below(random, (uint64_t)entries);
      store_double(p.wide, weights, s * entries + i, rdna__random_unit(random));
    }
    for (int64_t v = 0; v <= plane; v++) starts[s * (plane + 1) + v] = (uint32_t)(v * entries / (plane + 1));
  }
  rdna__case_tolerance(out_case, 8 * (double)(entries + 8) * case_unit(p.dtype) * 5, case_step(p.dtype));
  return RDNA_OK;
}
