#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/dtype.h"
#include "kernel/manifest.h"
#include "math/common/case/values.h"
#include "math/movement/movement_kernels.h"

/* No tolerances here: the kernels and their twins move or compute the same bits. */

/* A type of the size in the kernel's name; 128 bits are two of I64. */
static rdna_dtype moved_type(const char *name) {
  const char *size = strrchr(name, '_') + 1;
  return !strcmp(size, "8") ? RDNA_U8 : !strcmp(size, "16") ? RDNA_I16 : !strcmp(size, "32") ? RDNA_I32 : RDNA_I64;
}
static int64_t parts_of(const char *name) { return strstr(name, "_128") ? 2 : 1; }

static void pick_shape(rdna__random *random, int n, struct strided_shape *shape, uint32_t least_rank) {
  *shape = (struct strided_shape){.rank = (uint32_t)rdna__random_range(random, least_rank, n < 4 ? 3 : 8), .count = 1};
  for (uint32_t d = 0; d < shape->rank; d++) {
    uint32_t size = (uint32_t)rdna__random_range(random, 1, shape->rank > 4 ? 5 : shape->rank > 2 ? 14 : 70);
    if (shape->rank == 1) size *= 40;
    strided_set_size(shape, d, size);
    shape->count *= size;
  }
}

/* Dense in a random order of dimensions, here and there with a gap; returns the values spanned. */
static int64_t pick_strides(rdna__random *random, uint32_t rank, const int64_t *size, int64_t *stride) {
  uint32_t order[STRIDED_RANK];
  int64_t step = 1, last = 0;
  for (uint32_t d = 0; d < rank; d++) order[d] = d;
  for (uint32_t d = 0; d < rank && rank > 1; d++) {
    uint32_t other = (uint32_t)rdna__random_below(random, rank), held = order[d];
    if (rdna__random_below(random, 2)) continue;
    order[d] = order[other];
    order[other] = held;
  }
  for (uint32_t k = 0; k < rank; k++) {
    stride[order[k]] = step;
    last += (size[order[k]] - 1) * step;
    step = step * size[order[k]] + (rdna__random_below(random, 4) == 0 ? 3 : 0);
  }
  return last + 1;
}

static rdna_status add(rdna__kernel_case *c, rdna__random *random, rdna__buffer_role role, rdna_dtype dtype,
                       int64_t count, size_t offset, uint8_t **out_data) {
  uint8_t *data = rdna__case_add(c, role, dtype, count, (uint32_t)offset);
  if (!data) return rdna__fail(RDNA_OUT_OF_MEMORY, "no memory for a case of %lld values", (long long)count);
  size_t bytes = (size_t)count * rdna_dtype_block_bytes(dtype);
  if (role == RDNA__IN && dtype_is_float(dtype)) {
    case_fill_hard(random, dtype, data, count);
  } else if (role == RDNA__IN && dtype == RDNA_F64) {
    for (int64_t i = 0; i < count; i++) {
      ((double *)(void *)data)[i] = ldexp(rdna__random_normal(random), (int)rdna__random_range(random, -160, 160));
    }
  } else if (role == RDNA__IN) {
    for (size_t i = 0; i < bytes; i++) data[i] = (uint8_t)rdna__random_bits(random);
  }
  if (out_data) *out_data = data;
  return RDNA_OK;
}

/* The output, whose gaps must stay poison. */
static rdna_status add_output(rdna__kernel_case *c, rdna__random *random, rdna_dtype dtype, int64_t parts, int64_t span,
                              const struct strided_shape *shape, const struct strided_operand *operand) {
  RDNA_TRY(add(c, random, RDNA__OUT, dtype, span * parts, 0, NULL));
  uint8_t *untouched = malloc((size_t)(span * parts));
  if (!untouched) return rdna__fail(RDNA_OUT_OF_MEMORY, "no memory for a case of %lld values", (long long)span);
  memset(untouched, 1, (size_t)(span * parts));
  for (uint32_t i = 0; i < shape->count; i++) {
    int64_t at;
    strided_offsets(shape, operand, 1, i, &at);
    memset(untouched + at * parts, 0, (size_t)parts);
  }
  c->buffers[c->buffer_count - 1].untouched = untouched;
  return RDNA_OK;
}

static void finish(rdna__kernel_case *c, const struct strided_shape *shape, const void *args, size_t size) {
  memcpy(c->args, args, size);
  c->grid = (rdna_grid){(shape->count + RDNA__MOVEMENT_TILE - 1) / RDNA__MOVEMENT_TILE, 1, 1};
  snprintf(c->label, sizeof c->label, "rank %u count %u row %u", shape->rank, shape->count, shape->size[0]);
}

static void sizes_of(const struct strided_shape *shape, int64_t *out_size) {
  for (uint32_t d = 0; d < shape->rank; d++) out_size[d] = shape->size[d];
}

enum { IN_OFFSET = sizeof(struct strided_operand) }; /* every argument struct begins with its operands */

static rdna_status move_case(rdna__kernel_case *c, rdna__random *random, int n, rdna_dtype from, rdna_dtype to,
                             int64_t parts) {
  struct move_args args = {.from = (uint32_t)from, .to = (uint32_t)to};
  int64_t size[STRIDED_RANK] = {0};
  pick_shape(random, n, &args.shape, 1);
  sizes_of(&args.shape, size);
  int64_t out_span = pick_strides(random, args.shape.rank, size, args.operand[0].stride);
  int64_t in_span = pick_strides(random, args.shape.rank, size, args.operand[1].stride);
  if (n % 5 == 4) args.operand[1].stride[0] = 0;
  finish(c, &args.shape, &args, sizeof args);
  RDNA_TRY(add_output(c, random, to, parts, out_span, &args.shape, args.operand));
  return add(c, random, RDNA__IN, from, in_span * parts, IN_OFFSET, NULL);
}

RDNA_CASE_MAKER(rdna__move_case) {
  rdna_dtype dtype = moved_type(kernel->name);
  return move_case(out_case, random, n, dtype, dtype, parts_of(kernel->name));
}

RDNA_CASE_MAKER(rdna__lines_case) {
  static const int64_t edges[] = {1, 15, 16, 17, 31, 32, 33};
  int64_t bytes = n < 7 ? edges[n] : rdna__random_range(random, 20, 1500), lines = rdna__random_range(random, 1, 5);
  struct lines_args args = {.bytes = (uint32_t)bytes};
  args.shape.rank = 2;
  strided_set_size(&args.shape, 0, (uint32_t)((bytes + 30) / 16));
  strided_set_size(&args.shape, 1, (uint32_t)lines);
  args.shape.count = args.shape.size[0] * args.shape.size[1];
  for (int k = 0; k < 2; k++) args.operand[k].stride[1] = bytes + rdna__random_range(random, 0, 20);
  finish(out_case, &args.shape, &args, sizeof args);
  struct strided_shape values = {.rank = 2, .count = (uint32_t)(bytes * lines)};
  struct strided_operand places = {.stride = {1, args.operand[0].stride[1]}};
  strided_set_size(&values, 0, (uint32_t)bytes);
  strided_set_size(&values, 1, (uint32_t)lines);
  int64_t out_span = (lines - 1) * args.operand[0].stride[1] + bytes,
          in_span = (lines - 1) * args.operand[1].stride[1] + bytes;
  RDNA_TRY(add_output(out_case, random, RDNA_U8, 1, out_span, &values, &places));
  return add(out_case, random, RDNA__IN, RDNA_U8, in_span, IN_OFFSET, NULL);
}

/* Of those that are no blocks, nor of 8-bit floats. */
static rdna_dtype any_type(rdna__random *random) {
  static const rdna_dtype types[] = {RDNA_F32, RDNA_F16, RDNA_BF16, RDNA_F64, RDNA_I8,  RDNA_U8, RDNA_I16,
                                     RDNA_I32, RDNA_I64, RDNA_BOOL, RDNA_U16, RDNA_U32, RDNA_U64};
  return types[rdna__random_below(random, sizeof types / sizeof *types)];
}

RDNA_CASE_MAKER(rdna__convert_case) {
  rdna_dtype from = any_type(random);
  return move_case(out_case, random, n, from, any_type(random), 1);
}

RDNA_CASE_MAKER(rdna__set_case) {
  bool is_arange = !strcmp(kernel->name, "arange");
  rdna_dtype dtype = is_arange ? any_type(random) : moved_type(kernel->name);
  struct set_args args = {.value = {rdna__random_bits(random), rdna__random_bits(random)},
                          .start = rdna_scalar_real(9 * rdna__random_normal(random)),
                          .step = rdna_scalar_real(3 * rdna__random_normal(random)),
                          .dtype = (uint32_t)dtype};
  int64_t size[STRIDED_RANK] = {0};
  pick_shape(random, n, &args.shape, 1);
  if (is_arange) {
    args.shape.rank = 1;
    strided_set_size(&args.shape, 0, args.shape.count);
  }
  sizes_of(&args.shape, size);
  int64_t span = pick_strides(random, args.shape.rank, size, args.operand[0].stride);
  if (is_arange && n % 2) args.operand[0].stride[0] = 2, span = 2 * span - 1;
  finish(out_case, &args.shape, &args, sizeof args);
  return add_output(out_case, random, dtype, parts_of(kernel->name), span, &args.shape, args.operand);
}

RDNA_CASE_MAKER(rdna__pad_case) {
  rdna_dtype dtype = moved_type(kernel->name);
  struct pad_args args = {.value = rdna__random_bits(random), .mode = (uint32_t)(n % RDNA_PAD_MODE_COUNT)};
  int64_t size[STRIDED_RANK] = {0};
  pick_shape(random, n, &args.shape, 1);
  sizes_of(&args.shape, size);
  int64_t out_span = pick_strides(random, args.shape.rank, size, args.operand[0].stride);
  for (uint32_t d = 0; d < args.shape.rank; d++) { /* an input that a reflection can fill */
    args.size[d] = rdna__random_range(random, size[d] / 2 + 1, size[d] + 2);
    int64_t spare = size[d] - args.size[d];
    args.before[d] = spare > 0
                         ? rdna__random_range(random, spare - (args.size[d] - 1) > 0 ? spare - args.size[d] + 1 : 0,
                                              spare < args.size[d] ? spare : args.size[d] - 1)
                         : -rdna__random_range(random, 0, -spare);
  }
  int64_t in_span = pick_strides(random, args.shape.rank, args.size, args.operand[1].stride);
  finish(out_case, &args.shape, &args, sizeof args);
  RDNA_TRY(add_output(out_case, random, dtype, 1, out_span, &args.shape, args.operand));
  return add(out_case, random, RDNA__IN, dtype, in_span, IN_OFFSET, NULL);
}

RDNA_CASE_MAKER(rdna__triangle_case) {
  rdna_dtype dtype = moved_type(kernel->name);
  struct triangle_args args = {.diagonal = rdna__random_range(random, -20, 20), .upper = n % 2};
  int64_t size[STRIDED_RANK] = {0};
  pick_shape(random, n, &args.shape, 2);
  sizes_of(&args.shape, size);
  int64_t out_span = pick_strides(random, args.shape.rank, size, args.operand[0].stride);
  int64_t in_span = pick_strides(random, args.shape.rank, size, args.operand[1].stride);
  finish(out_case, &args.shape, &args, sizeof args);
  RDNA_TRY(add_output(out_case, random, dtype, 1, out_span, &args.shape, args.operand));
  return add(out_case, random, RDNA__IN, dtype, in_span, IN_OFFSET, NULL);
}

RDNA_CASE_MAKER(rdna__transpose_case) {
  static const uint32_t edges[][2] = {{3, 5}, {1, 1}, {128, 128}, {129, 33}, {31, 257}, {256, 64}};
  rdna_dtype dtype = moved_type(kernel->name);
  int64_t bytes = (int64_t)rdna_dtype_block_bytes(dtype), V = 16 / bytes;
  struct transpose_args args = {.rows = (uint32_t)rdna__random_range(random, 1, 300),
                                .columns = (uint32_t)rdna__random_range(random, 1, 300)};
  if (n < 6) args.rows = edges[n][0], args.columns = edges[n][1];
  uint32_t batch = (uint32_t)rdna__random_range(random, 1, 3), tile_columns = (uint32_t)(128 / bytes);
  bool ragged = strstr(kernel->name, "ragged") != NULL, in_aligned = !ragged || n % 3 == 1;
  bool out_aligned = !ragged || n % 3 == 2;
  args.in_stride = args.columns + (in_aligned ? (V - args.columns % V) % V : rdna__random_range(random, 0, 5));
  args.out_stride = args.rows + (out_aligned ? (V - args.rows % V) % V : rdna__random_range(random, 0, 5));
  args.shape.rank = 3;
  uint32_t tile_rows = args.rows + (out_aligned ? 0 : (uint32_t)V - 1);
  strided_set_size(&args.shape, 0, (tile_rows + RDNA__TRANSPOSE_ROWS - 1) / RDNA__TRANSPOSE_ROWS);
  strided_set_size(&args.shape, 1, (args.columns + tile_columns - 1) / tile_columns);
  strided_set_size(&args.shape, 2, batch);
  args.shape.count = args.shape.size[0] * args.shape.size[1] * batch;
  args.operand[0].stride[2] = args.out_stride * args.columns;
  args.operand[1].stride[2] = args.in_stride * args.rows;
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){args.shape.count, 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%u of (%u, %u) strides %lld %lld", batch, args.rows, args.columns,
           (long long)args.in_stride, (long long)args.out_stride);
  struct strided_shape values = {.rank = 3, .count = args.rows * args.columns * batch};
  struct strided_operand places = {.stride = {1, args.out_stride, args.operand[0].stride[2]}};
  strided_set_size(&values, 0, args.rows);
  strided_set_size(&values, 1, args.columns);
  strided_set_size(&values, 2, batch);
  int64_t out_span = args.out_stride * args.columns * batch, in_span = args.in_stride * args.rows * batch;
  RDNA_TRY(add_output(out_case, random, dtype, 1, out_span, &values, &places));
  return add(out_case, random, RDNA__IN, dtype, in_span, IN_OFFSET, NULL);
}
