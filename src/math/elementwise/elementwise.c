#include "rdna/op/elementwise.h"

#include "math/common/plan/check.h"
#include "math/elementwise/elementwise_kernels.h"

enum { TYPES = RDNA_BF16 + 1 }; /* f32, f16, bf16: the first of the enumeration */

#define TYPE_NAMES(name) {#name "_f32", #name "_f16", #name "_bf16"}

static const char *const binary_names[RDNA_BINARY_COUNT] = {
    [RDNA_ADD] = "add", [RDNA_SUB] = "sub", [RDNA_MUL] = "mul", [RDNA_DIV] = "div"};
static const char *const binary_kernels[RDNA_BINARY_COUNT][TYPES] = {[RDNA_ADD] = TYPE_NAMES(add),
                                                                     [RDNA_SUB] = TYPE_NAMES(sub),
                                                                     [RDNA_MUL] = TYPE_NAMES(mul),
                                                                     [RDNA_DIV] = TYPE_NAMES(div)};
static const char *const binary_row_kernels[RDNA_BINARY_COUNT][TYPES] = {[RDNA_ADD] = TYPE_NAMES(add_row),
                                                                         [RDNA_SUB] = TYPE_NAMES(sub_row),
                                                                         [RDNA_MUL] = TYPE_NAMES(mul_row),
                                                                         [RDNA_DIV] = TYPE_NAMES(div_row)};
static const char *const unary_names[RDNA_UNARY_COUNT] = {
    [RDNA_NEG] = "neg",   [RDNA_EXP] = "exp",   [RDNA_RELU] = "relu",           [RDNA_SIGMOID] = "sigmoid",
    [RDNA_TANH] = "tanh", [RDNA_SILU] = "silu", [RDNA_GELU_TANH] = "gelu_tanh", [RDNA_GELU_ERF] = "gelu_erf"};
static const char *const unary_kernels[RDNA_UNARY_COUNT][TYPES] = {[RDNA_NEG] = TYPE_NAMES(neg),
                                                                   [RDNA_EXP] = TYPE_NAMES(exp),
                                                                   [RDNA_RELU] = TYPE_NAMES(relu),
                                                                   [RDNA_SIGMOID] = TYPE_NAMES(sigmoid),
                                                                   [RDNA_TANH] = TYPE_NAMES(tanh),
                                                                   [RDNA_SILU] = TYPE_NAMES(silu),
                                                                   [RDNA_GELU_TANH] = TYPE_NAMES(gelu_tanh),
                                                                   [RDNA_GELU_ERF] = TYPE_NAMES(gelu_erf)};
static const char *const swiglu_kernels[TYPES] = TYPE_NAMES(swiglu);
static const char *const affine_kernels[TYPES] = TYPE_NAMES(affine);

const char *rdna_binary_name(rdna_binary op) { return (unsigned)op < RDNA_BINARY_COUNT ? binary_names[op] : "?"; }
const char *rdna_unary_name(rdna_unary op) { return (unsigned)op < RDNA_UNARY_COUNT ? unary_names[op] : "?"; }

/* |out| and one input of its shape and type, both contiguous. */
static rdna_status check_pair(const char *op_name, const char *argument, const rdna_tensor *in,
                              const rdna_tensor *out) {
  RDNA_TRY(rdna__check_float(op_name, argument, in));
  RDNA_TRY(rdna__check_tensor(op_name, "out", out));
  RDNA_TRY(rdna__check_same_dtype(op_name, "out", out, argument, in));
  RDNA_TRY(rdna__check_same_shape(op_name, "out", out, argument, in));
  RDNA_TRY(rdna__check_contiguous(op_name, argument, in));
  RDNA_TRY(rdna__check_contiguous(op_name, "out", out));
  return rdna__check_overlap(op_name, "out", out, argument, in);
}

static rdna_status launch_tiles(rdna_stream *stream, const char *op_name, const char *kernel, const rdna_tensor *out,
                                const void *args) {
  rdna_grid grid = {0, 1, 1};
  int64_t tile = RDNA__ELEMENTWISE_TILE_BYTES / (int64_t)rdna_dtype_block_bytes(out->dtype);
  RDNA_TRY(rdna__check_groups(op_name, rdna_tensor_count(out), tile, &grid.x));
  return rdna__launch_named(stream, kernel, grid, args);
}

static rdna_status run_binary(rdna_stream *stream, const char *op_name, const char *kernel, const rdna_tensor *a,
                              const rdna_tensor *b, const rdna_tensor *out) {
  struct binary_args args = {.a = a->data, .b = b->data, .out = out->data, .count = rdna_tensor_count(out)};
  return launch_tiles(stream, op_name, kernel, out, &args);
}

rdna_status rdna_op_binary(rdna_stream *stream, rdna_binary op, const rdna_tensor *a, const rdna_tensor *b,
                           const rdna_tensor *out) {
  if ((unsigned)op >= RDNA_BINARY_COUNT) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "binary: the operation is number %d; there are 0 to %d", (int)op,
                      RDNA_BINARY_COUNT - 1);
  }
  const char *name = binary_names[op];
  RDNA_TRY(check_pair(name, "a", a, out));
  RDNA_TRY(rdna__check_tensor(name, "b", b));
  RDNA_TRY(rdna__check_same_dtype(name, "b", b, "a", a));
  RDNA_TRY(rdna__check_contiguous(name, "b", b));
  bool row = a->rank > 1 && b->rank == 1 && b->shape[0] == a->shape[a->rank - 1];
  if (!row) RDNA_TRY(rdna__check_same_shape(name, "b", b, "a", a));
  RDNA_TRY(rdna__check_overlap(name, "out", out, "b", b));
  if (!row) return run_binary(stream, name, binary_kernels[op][a->dtype], a, b, out);

  int64_t cols = b->shape[0];
  struct binary_row_args args = {
      .a = a->data, .b = b->data, .out = out->data, .rows = cols > 0 ? rdna_tensor_count(a) / cols : 0, .cols = cols};
  return launch_tiles(stream, name, binary_row_kernels[op][a->dtype], out, &args);
}

rdna_status rdna_op_unary(rdna_stream *stream, rdna_unary op, const rdna_tensor *x, const rdna_tensor *out) {
  if ((unsigned)op >= RDNA_UNARY_COUNT) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "unary: the operation is number %d; there are 0 to %d", (int)op,
                      RDNA_UNARY_COUNT - 1);
  }
  RDNA_TRY(check_pair(unary_names[op], "x", x, out));
  struct unary_args args = {.x = x->data, .out = out->data, .count = rdna_tensor_count(out)};
  return launch_tiles(stream, unary_names[op], unary_kernels[op][x->dtype], out, &args);
}

rdna_status rdna_op_affine(rdna_stream *stream, const rdna_tensor *x, float scale, float shift,
                           const rdna_tensor *out) {
  RDNA_TRY(check_pair("affine", "x", x, out));
  struct affine_args args = {
      .x = x->data, .out = out->data, .count = rdna_tensor_count(out), .scale = scale, .shift = shift};
  return launch_tiles(stream, "affine", affine_kernels[x->dtype], out, &args);
}

rdna_status rdna_op_swiglu(rdna_stream *stream, const rdna_tensor *gate, const rdna_tensor *up,
                           const rdna_tensor *out) {
  RDNA_TRY(check_pair("swiglu", "gate", gate, out));
  RDNA_TRY(check_pair("swiglu", "up", up, out));
  return run_binary(stream, "swiglu", swiglu_kernels[gate->dtype], gate, up, out);
}
