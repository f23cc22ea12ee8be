/* rdna_op_cat: tensors joined along a dimension. */
#include <stdio.h>

#include "math/common/plan/route.h"
#include "math/common/plan/strided.h"
#include "math/movement/cat_kernels.h"
#include "rdna/op/movement.h"

enum { ROWS };
static const rdna__route routes[] = {
    [ROWS] = {.name = "rows",
              .kernels = {"cat_rows_{bytes}"},
              .when = "parts that lie densely as out does: up to 16 a launch; others are copied one by one"},
};
RDNA_FIXED_ROUTES(rdna__cat_routes, "cat", routes)

static rdna_status check(rdna_stream *stream, const rdna_tensor *const *inputs, int count, int dim,
                         const rdna_tensor *out) {
  RDNA_TRY(rdna__check_unquantized("cat", "out", out));
  RDNA_TRY(rdna__check_distinct("cat", out));
  RDNA_TRY(rdna__check_stream("cat", stream));
  if (out->rank == 0) return rdna__fail(RDNA_INVALID_ARGUMENT, "cat: out is a scalar; it needs a dimension");
  int64_t total = 0;
  for (int i = 0; i < count; i++) {
    char name[32], text[RDNA__TENSOR_TEXT], out_text[RDNA__TENSOR_TEXT];
    snprintf(name, sizeof name, "inputs[%d]", i);
    RDNA_TRY(rdna__check_unquantized("cat", name, inputs[i]));
    RDNA_TRY(rdna__check_same_dtype("cat", name, inputs[i], "out", out));
    RDNA_TRY(rdna__check_rank("cat", name, inputs[i], out->rank));
    RDNA_TRY(rdna__check_apart("cat", "out", out, name, inputs[i]));
    for (int d = 0; d < out->rank; d++) {
      if (d == dim || inputs[i]->shape[d] == out->shape[d]) continue;
      return rdna__fail(RDNA_INVALID_ARGUMENT, "cat: %s is %s and out is %s; only size %d may differ", name,
                        rdna__tensor_text(inputs[i], text), rdna__tensor_text(out, out_text), dim);
    }
    total += inputs[i]->shape[dim];
  }
  return rdna__check_size("cat", "out", out, dim, total, "the sum of the inputs'");
}

/* The tensors as rows; see cat_kernels.h. */
struct rows {
  int order[RDNA_MAX_RANK]; /* the dimensions from that of the largest stride of out to that of the smallest */
  int64_t rows;
  int64_t inner;  /* values of a part's row for each of its size of the dimension */
  int64_t stride; /* values from row to row of out */
  uint64_t bits;  /* of all that must be a multiple of a value's bytes */
};

/* Whether |x| lies in out's order without gaps. */
static bool is_dense(const rdna_tensor *x, const int *order) {
  int64_t step = 1;
  for (int k = x->rank - 1; k >= 0; k--) {
    int d = order[k];
    if (x->shape[d] != 1 && x->stride[d] != step) return false;
    step *= x->shape[d];
  }
  return true;
}

/* Whether all can be seen as rows. */
static bool find_rows(const rdna_tensor *const *inputs, int count, int dim, const rdna_tensor *out, struct rows *r) {
  int64_t bytes = (int64_t)rdna_dtype_block_bytes(out->dtype), step = 1;
  int at = 0;
  for (int d = 0; d < out->rank; d++) { /* sorted, those of equal strides as they come */
    int k = d;
    for (; k > 0 && out->stride[r->order[k - 1]] < out->stride[d]; k--) r->order[k] = r->order[k - 1];
    r->order[k] = d;
  }
  while (r->order[at] != dim) at++;
  for (int k = out->rank - 1; k > at; k--) { /* within a row out is dense */
    int d = r->order[k];
    if (out->shape[d] != 1 && out->stride[d] != step) return false;
    step *= out->shape[d];
  }
  if (out->shape[dim] != 1 && out->stride[dim] != step) return false;
  r->inner = step, r->stride = step * out->shape[dim];
  for (int k = at - 1; k >= 0; k--) { /* rows are evenly apart */
    int d = r->order[k];
    if (out->shape[d] == 1) continue;
    if (r->rows == 1) r->stride = out->stride[d];
    if (out->stride[d] != r->stride * r->rows) return false;
    r->rows *= out->shape[d];
  }
  r->bits = (uint64_t)(uintptr_t)out->data | (uint64_t)(r->stride * bytes);
  for (int i = 0; i < count; i++) {
    int64_t width = inputs[i]->shape[dim] * r->inner;
    if (!is_dense(inputs[i], r->order) || width * r->rows > STRIDED_MAX_COUNT) return false;
    if (width > 0) r->bits |= (uint64_t)(uintptr_t)inputs[i]->data | (uint64_t)(width * bytes);
  }
  return r->stride * bytes <= UINT32_MAX;
}

static rdna_status launch(rdna_stream *stream, struct cat_args *args, size_t bytes) {
  rdna_grid grid = {args->groups, 1, 1};
  if (args->parts == 0) return RDNA_OK;
  RDNA_TRY(RDNA__ROUTE_LAUNCH(stream, &routes[ROWS], 0, grid, args, rdna__route_bits(bytes)));
  args->parts = args->groups = 0;
  return RDNA_OK;
}

static rdna_status join_rows(rdna_stream *stream, const rdna_tensor *const *inputs, int count, int dim,
                             const rdna_tensor *out, const struct rows *r) {
  uint32_t value = (uint32_t)rdna_dtype_block_bytes(out->dtype), bytes = value, column = 0;
  while (bytes < 16 && r->bits % (2 * bytes) == 0) bytes *= 2;
  struct cat_args args = {.out = out->data, .stride = r->stride * value / bytes};
  for (int i = 0; i < count; i++) {
    uint32_t width = (uint32_t)(inputs[i]->shape[dim] * r->inner * value / bytes), whole = width * (uint32_t)r->rows;
    if (width == 0) continue;
    args.part[args.parts++] = (struct cat_part){
        .data = inputs[i]->data, .count = whole, .width = width, .column = column, .group = args.groups};
    args.groups += (whole + CAT_TILE - 1) / CAT_TILE;
    column += width;
    if (args.parts == CAT_PARTS) RDNA_TRY(launch(stream, &args, bytes));
  }
  return launch(stream, &args, bytes);
}

rdna_status rdna_op_cat(rdna_stream *stream, const rdna_tensor *const *inputs, int count, int dim,
                        const rdna_tensor *out) {
  struct rows rows = {.rows = 1};
  if (count < 0) return rdna__fail(RDNA_INVALID_ARGUMENT, "cat: count is %d; it must not be negative", count);
  if (!inputs && count > 0) return rdna__fail(RDNA_INVALID_ARGUMENT, "cat: inputs is NULL; pass %d tensors", count);
  RDNA_TRY(rdna__check_tensor("cat", "out", out));
  RDNA_TRY(rdna__check_dim("cat", "out", out, &dim));
  RDNA_TRY(check(stream, inputs, count, dim, out));
  if (rdna_tensor_count(out) == 0) return RDNA_OK;
  if (find_rows(inputs, count, dim, out, &rows)) return join_rows(stream, inputs, count, dim, out, &rows);
  rdna_tensor part = *out;
  for (int i = 0; i < count; i++) {
    part.shape[dim] = inputs[i]->shape[dim];
    RDNA_TRY(rdna_op_copy(stream, inputs[i], &part));
    int64_t step = part.shape[dim] * part.stride[dim];
    if (part.data) part.data = (char *)part.data + step * (int64_t)rdna_dtype_block_bytes(out->dtype);
  }
  return RDNA_OK;
}
