/* Products of matrices. What is recorded has two dimensions or more on both sides; |flag|: rows of the result, which
 * has two, begin at multiples of 16 bytes. */
#include <string.h>

#include "graph/build.h"
#include "graph/operands.h"
#include "rdna/op/gemm.h"

static rdna_status infer_matmul(const rdna__making *m, rdna__type *out) {
  const rdna__type *left = &m->inputs[0]->type, *right = &m->inputs[1]->type;
  rdna_array a = rdna__blank(m, left), b = rdna__blank(m, right);
  rdna_tensor batches;
  RDNA_TRY(rdna__array_join_batches(&a, &b, &batches));
  *out = (rdna__type){left->dtype, batches.rank + 2, {0}};
  memcpy(out->shape, batches.shape, (size_t)batches.rank * sizeof *batches.shape);
  out->shape[batches.rank] = left->shape[left->rank - 2];
  out->shape[batches.rank + 1] = right->shape[right->rank - 1];
  return RDNA_OK;
}

static rdna_status run_matmul(const rdna_node *node, rdna_array *const *inputs, unsigned wanted, rdna_array **out) {
  if (!node->attributes.flag) return rdna_array_matmul(inputs[0], inputs[1], out);
  rdna_array *made;
  const rdna__type *type = &node->type;
  RDNA_TRY(rdna__array_make_rows(node->stream, type->dtype, type->shape[0], type->shape[1], &made));
  return rdna__array_finish(
      rdna_op_gemm(node->stream, 1, &inputs[0]->tensor, &inputs[1]->tensor, 0, NULL, &made->tensor), made, out);
}

static rdna_node *transposed(rdna_recorder *r, rdna_node *x) {
  int dims[RDNA_MAX_RANK], rank = x->type.rank;
  for (int i = 0; i < rank; i++) dims[i] = i;
  dims[rank - 2] = rank - 1;
  dims[rank - 1] = rank - 2;
  return rdna_record_permute(r, x, dims);
}

static void gradient_matmul(rdna_recorder *r, rdna_node *node, rdna_node *const *upstream, rdna_node **out) {
  rdna_node *a = node->inputs[0], *b = node->inputs[1], *g = upstream[0];
  out[0] = rdna__sum_to(r, rdna_record_matmul(r, g, transposed(r, b)), a);
  out[1] = rdna__sum_to(r, rdna_record_matmul(r, transposed(r, a), g), b);
}

static const char *matmul_detail(const rdna_node *node) { return node->attributes.flag ? "matmul_padded" : "matmul"; }

const rdna__operator rdna__operator_matmul = {
    .name = "matmul", .infer = infer_matmul, .run = run_matmul, .gradient = gradient_matmul, .detail = matmul_detail};

static rdna_node *multiply(rdna_recorder *r, rdna_node *a, rdna_node *b) {
  return rdna__record(r, &rdna__operator_matmul, &(rdna__attributes){0}, (rdna_node *[]){a, b}, 2);
}

/* Rows of all batches by one matrix, as one product. */
static rdna_node *multiply_rows(rdna_recorder *r, rdna_node *a, rdna_node *b) {
  rdna__type type = a->type;
  int64_t k = type.shape[type.rank - 1], rows = 1;
  for (int i = 0; i < type.rank - 1; i++) rows *= type.shape[i];
  rdna_node *flat = multiply(r, rdna_record_reshape(r, a, 2, (int64_t[]){rows, k}), b);
  if (!flat) return NULL;
  type.shape[type.rank - 1] = flat->type.shape[1];
  return rdna__record_batches(r, flat, &type);
}

/* Without the dimensions that vectors have been given. */
static rdna_node *drop_dims(rdna_recorder *r, rdna_node *product, bool row, bool column) {
  if (!product || (!row && !column)) return product;
  int64_t shape[RDNA_MAX_RANK];
  int rank = 0, from = product->type.rank - 2;
  for (int i = 0; i < from; i++) shape[rank++] = product->type.shape[i];
  if (!row) shape[rank++] = product->type.shape[from];
  if (!column) shape[rank++] = product->type.shape[from + 1];
  return rdna_record_reshape(r, product, rank, shape);
}

rdna_node *rdna_record_matmul(rdna_recorder *r, rdna_node *a, rdna_node *b) {
  rdna_node *inputs[] = {a, b};
  if (rdna__record_stopped(r, "matmul", inputs, 2)) return NULL;
  rdna_dtype dtype = rdna_dtype_promote(a->type.dtype, b->type.dtype);
  rdna_status status = RDNA_OK;
  char first[RDNA__ARRAY_TEXT], second[RDNA__ARRAY_TEXT];
  if (!rdna__array_is_float(dtype))
    status = rdna__fail(RDNA_UNSUPPORTED, "matmul of %s and %s: there are products of floats; cast one of them",
                        rdna__type_text(&a->type, first), rdna__type_text(&b->type, second));
  else if (a->type.rank == 0 || b->type.rank == 0)
    status = rdna__fail(RDNA_INVALID_ARGUMENT, "matmul of %s and %s: of no dimensions is no matrix",
                        rdna__type_text(&a->type, first), rdna__type_text(&b->type, second));
  if (status != RDNA_OK) return rdna__record_failure(r, status);
  bool row = a->type.rank == 1, column = b->type.rank == 1;
  a = rdna_record_cast(r, a, dtype);
  b = rdna_record_cast(r, b, dtype);
  if (!a || !b) return NULL;
  if (row) a = rdna_record_reshape(r, a, 2, (int64_t[]){1, a->type.shape[0]});
  if (column) b = rdna_record_reshape(r, b, 2, (int64_t[]){b->type.shape[0], 1});
  if (!a || !b) return NULL;
  bool rows = a->type.rank > 2 && b->type.rank == 2;
  return drop_dims(r, rows ? multiply_rows(r, a, b) : multiply(r, a, b), row, column);
}
