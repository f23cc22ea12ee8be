/* Products of 16-bit matrices whose rows begin anywhere, as those of a vocabulary of 50,257 do: what matrix units are
 * fed by whole chunks of 16 bytes, so that such a product runs at a fifth to a fourth of the rate (of ours and of the
 * vendors'). Where the product is long enough for it, operands are copied first to rows at multiples of 16 bytes:
 *
 *     k = 5:  a b c d e|f g h i j|…   ->   a b c d e . . .|f g h i j . . .|…
 *
 * of a large one a part at a time, with the rows or columns of C that come of it. */
#include "math/gemm/gemm_aligned.h"
#include "base/status.h"
#include "device/traits.h"
#include "math/common/plan/scratch.h"
#include "rdna/op/movement.h"

enum {
  ROW = 8,           /* values in 16 bytes */
  PART_STEP = 256,   /* a multiple of every tile */
  FLOPS_A_BYTE = 150 /* of a copy, which takes 0.8 ps a byte on an H200, where aligned rows save 6 fs a FLOP */
};
static const double flops_a_launch = 1e9; /* aligned rows save 6 us on so many */

/* A or B, as stored. */
typedef struct operand {
  const void *data;
  int64_t ld;
  int64_t free, k; /* its size along C, and along the sum */
  bool along_k;    /* rows as stored are of k values, else of |free| */
  bool is_copied;
  int64_t part; /* of |free|, that one copy has */
} operand;

static bool is_unaligned(const operand *o) { return ((uintptr_t)o->data | (uint64_t)o->ld * 2) % 16 != 0; }

static int64_t rounded(int64_t value) { return (value + ROW - 1) / ROW * ROW; }

static int64_t copy_bytes(const operand *o, int64_t free) {
  return 2 * (o->along_k ? free * rounded(o->k) : o->k * rounded(free));
}

static void read_operands(const struct gemm_args *args, int64_t part_bytes, operand out[2]) {
  bool a_transposed = args->flags & GEMM_A_TRANSPOSED, b_transposed = args->flags & GEMM_B_TRANSPOSED;
  out[0] = (operand){.data = args->a, .ld = args->lda, .free = args->m, .k = args->k, .along_k = !a_transposed};
  out[1] = (operand){.data = args->b, .ld = args->ldb, .free = args->n, .k = args->k, .along_k = b_transposed};
  for (int i = 0; i < 2; i++) {
    operand *o = &out[i];
    o->is_copied = is_unaligned(o);
    o->part = o->free;
    while (o->is_copied && copy_bytes(o, o->part) > part_bytes && o->part > PART_STEP)
      o->part = (o->part / 2 + PART_STEP - 1) / PART_STEP * PART_STEP;
  }
}

bool rdna__gemm_aligned_pays(const rdna__gemm_problem *problem) {
  const struct gemm_args *args = &problem->args;
  if (problem->own || !rdna__gemm_is_half(problem->types[0]) || problem->types[1] != problem->types[0]) return false;
  if (!rdna__device_traits_of(problem->device)->is_gpu || args->batch != 1) return false;
  operand operands[2];
  read_operands(args, INT64_MAX, operands);
  double cost = 0;
  for (int i = 0; i < 2; i++) {
    if (operands[i].is_copied)
      cost += flops_a_launch + FLOPS_A_BYTE * (double)copy_bytes(&operands[i], operands[i].free);
  }
  return cost > 0 && 2.0 * args->m * args->n * args->k > cost;
}

/* |count| of |o|'s size along C from |first| on, as rows at multiples of 16 bytes in |to|. */
static rdna_status copy_part(rdna_stream *stream, rdna_dtype type, const operand *o, int64_t first, int64_t count,
                             void *to, int64_t *out_ld) {
  int64_t shape[2] = {o->along_k ? count : o->k, o->along_k ? o->k : count};
  int64_t offset = o->along_k ? first * o->ld : first;
  *out_ld = rounded(shape[1]);
  rdna_tensor from = rdna_tensor_contiguous((char *)o->data + 2 * offset, type, 2, shape);
  rdna_tensor out = rdna_tensor_contiguous(to, type, 2, shape);
  from.stride[0] = o->ld, out.stride[0] = *out_ld;
  return rdna_op_copy(stream, &from, &out);
}

/* Part |first| … of |o|, copied or where it lies. */
static rdna_status take_part(rdna_stream *stream, rdna_dtype type, const operand *o, int64_t first, int64_t count,
                             void *copy, const void **out_data, int64_t *out_ld) {
  if (o->is_copied) {
    *out_data = copy;
    return copy_part(stream, type, o, first, count, copy, out_ld);
  }
  *out_data = (const char *)o->data + 2 * (o->along_k ? first * o->ld : first);
  *out_ld = o->ld;
  return RDNA_OK;
}

/* The rows of C from |row| on and its columns from |column| on. */
static void at(struct gemm_args *args, rdna_dtype type, int64_t row, int64_t column) {
  int64_t bytes = (int64_t)rdna_dtype_block_bytes(type);
  args->c = (char *)args->c + (row * args->ldc + column) * bytes;
  if (args->residual) args->residual = (const char *)args->residual + (row * args->ld_residual + column) * bytes;
  if (args->bias) args->bias = (const char *)args->bias + (args->flags & GEMM_BIAS_OF_ROWS ? row : column) * bytes;
}

static rdna_status run_parts(rdna_stream *stream, const char *op_name, const rdna__gemm_problem *problem,
                             const operand operands[2], void *const copies[2]) {
  const operand *a = &operands[0], *b = &operands[1];
  for (int64_t column = 0; column < b->free; column += b->part) {
    rdna__gemm_problem part = *problem;
    part.args.n = (int32_t)(b->free - column < b->part ? b->free - column : b->part);
    RDNA_TRY(take_part(stream, problem->types[1], b, column, part.args.n, copies[1], &part.args.b, &part.args.ldb));
    for (int64_t row = 0; row < a->free; row += a->part) {
      rdna__gemm_problem now = part;
      now.args.m = (int32_t)(a->free - row < a->part ? a->free - row : a->part);
      RDNA_TRY(take_part(stream, problem->types[0], a, row, now.args.m, copies[0], &now.args.a, &now.args.lda));
      at(&now.args, problem->types[2], row, column);
      RDNA_TRY(rdna__gemm_run(stream, op_name, &now));
    }
  }
  return RDNA_OK;
}

rdna_status rdna__gemm_run_aligned(rdna_stream *stream, const char *op_name, const rdna__gemm_problem *problem,
                                   int64_t part_bytes) {
  operand operands[2];
  void *copies[2] = {NULL, NULL};
  rdna__scratch scratch = {.stream = stream, .holder = op_name};
  rdna_status status = RDNA_OK;
  read_operands(&problem->args, part_bytes, operands);
  for (int i = 0; i < 2 && status == RDNA_OK; i++) {
    if (operands[i].is_copied)
      status = rdna__scratch_take(&scratch, (size_t)copy_bytes(&operands[i], operands[i].part), &copies[i]);
  }
  if (status == RDNA_OK) status = run_parts(stream, op_name, problem, operands, copies);
  return rdna__scratch_release(&scratch, status);
}
