#include "math/pointwise/contiguous.h"

#include <math.h>

#include "math/common/plan/route.h"
#include "math/common/plan/rows_along.h"
#include "math/pointwise/contiguous_kernels.h"

static const rdna__route routes[] = {
    {.name = "map",
     .kernels = {"{neg|exp|relu|sigmoid|tanh|silu|gelu_tanh|gelu_erf|affine}_{float}"},
     .when = "operations of one input, in the order in which it lies; sums, differences, products and quotients by "
             "powers of 2 with a number"},
    {.name = "zip", .kernels = {"{add|sub|mul|div|swiglu}_{float}"}, .when = "of two inputs that lie alike"},
    {.name = "row", .kernels = {"{add|sub|mul|div}_row_{float}"}, .when = "of an input and a row, such as a bias"},
};
RDNA_FIXED_ROUTES(rdna__contiguous_routes, "map and zip of dense values, swiglu", routes)

/* Names of an operation's kernels; NULL: there is none. */
typedef struct kernel_names {
  const char *f32, *f16, *bf16;
} kernel_names;

#define NAMES(name) {.f32 = #name "_f32", .f16 = #name "_f16", .bf16 = #name "_bf16"}
#define MAP_NAMES(NAME, name, expression) [RDNA_MAP_##NAME] = NAMES(name),
#define ZIP_NAMES(NAME, name, expression) [RDNA_ZIP_##NAME] = NAMES(name),
#define ROW_NAMES(NAME, name, expression) [RDNA_ZIP_##NAME] = NAMES(name##_row),
static const kernel_names map_kernels[RDNA_MAP_COUNT] = {RDNA__CONTIGUOUS_MAPS(MAP_NAMES, , )};
static const kernel_names zip_kernels[RDNA_ZIP_COUNT] = {RDNA__CONTIGUOUS_ZIPS(ZIP_NAMES)};
static const kernel_names zip_row_kernels[RDNA_ZIP_COUNT] = {RDNA__CONTIGUOUS_ZIPS(ROW_NAMES)};
static const kernel_names affine_kernels = NAMES(affine), swiglu_kernels = NAMES(swiglu);

static const char *of_type(const kernel_names *names, rdna_dtype dtype) {
  switch (dtype) {
    case RDNA_F32:
      return names->f32;
    case RDNA_F16:
      return names->f16;
    case RDNA_BF16:
      return names->bf16;
    default:
      return NULL;
  }
}

static rdna_status launch_tiles(rdna_stream *stream, const char *op_name, const char *kernel, const rdna_tensor *out,
                                const void *args) {
  rdna_grid grid = {0, 1, 1};
  int64_t tile = RDNA__CONTIGUOUS_TILE_BYTES / (int64_t)rdna_dtype_block_bytes(out->dtype);
  RDNA_TRY(rdna__check_groups(op_name, rdna_tensor_count(out), tile, &grid.x));
  return rdna__launch_named(stream, kernel, grid, args);
}

bool rdna__is_line(const rdna_tensor *const *tensors, int count) {
  const rdna_tensor *out = tensors[0];
  strided_plan plan;
  for (int k = 1; k < count; k++) {
    if (tensors[k]->rank != out->rank) return false;
    for (int i = 0; i < out->rank; i++) {
      if (tensors[k]->shape[i] != out->shape[i] || tensors[k]->stride[i] != out->stride[i]) return false;
    }
  }
  rdna__plan_begin(&plan, out);
  rdna__plan_merge(&plan);
  return plan.rank == 1 && plan.operand[0].stride[0] == 1;
}

rdna_status rdna__contiguous_map(rdna_stream *stream, rdna_map op, const rdna_tensor *x, rdna_scalar p, rdna_scalar q,
                                 const rdna_tensor *out, bool *out_launched) {
  const char *kernel = of_type(op == RDNA_MAP_AFFINE ? &affine_kernels : &map_kernels[op], x->dtype);
  *out_launched = kernel && rdna__is_line((const rdna_tensor *const[]){out, x}, 2);
  if (!*out_launched) return RDNA_OK;
  int64_t count = rdna_tensor_count(out);
  struct unary_args unary = {.x = x->data, .out = out->data, .count = count};
  struct affine_args affine = {
      .x = x->data, .out = out->data, .count = count, .scale = (float)p.real, .shift = (float)q.real};
  return launch_tiles(stream, rdna_map_name(op), kernel, out, op == RDNA_MAP_AFFINE ? (void *)&affine : &unary);
}

static rdna_status run_binary(rdna_stream *stream, const char *op_name, const char *kernel, const rdna_tensor *a,
                              const rdna_tensor *b, const rdna_tensor *out) {
  struct binary_args args = {.a = a->data, .b = b->data, .out = out->data, .count = rdna_tensor_count(out)};
  return launch_tiles(stream, op_name, kernel, out, &args);
}

/* Whether |b| has the shape of one row of |a|, as a bias has, and all are contiguous. */
static bool is_row(const rdna_tensor *a, const rdna_tensor *b, const rdna_tensor *out) {
  if (b->rank != 1 || a->rank < 2 || b->shape[0] != a->shape[a->rank - 1] || a->rank != out->rank) return false;
  for (int i = 0; i < a->rank; i++) {
    if (a->shape[i] != out->shape[i]) return false;
  }
  return rdna__is_contiguous(a) && rdna__is_contiguous(b) && rdna__is_contiguous(out);
}

rdna_status rdna__contiguous_zip(rdna_stream *stream, rdna_zip op, const rdna_tensor *a, const rdna_tensor *b,
                                 const rdna_tensor *out, bool *out_launched) {
  const char *kernel = of_type(&zip_kernels[op], a->dtype);
  bool row = kernel && is_row(a, b, out);
  *out_launched = row || (kernel && rdna__is_line((const rdna_tensor *const[]){out, a, b}, 3));
  if (!*out_launched) return RDNA_OK;
  if (!row) return run_binary(stream, rdna_zip_name(op), kernel, a, b, out);
  int64_t cols = b->shape[0];
  struct binary_row_args args = {
      .a = a->data, .b = b->data, .out = out->data, .rows = rdna_tensor_count(a) / cols, .cols = cols};
  return launch_tiles(stream, rdna_zip_name(op), of_type(&zip_row_kernels[op], a->dtype), out, &args);
}

bool rdna__zip_number_as_map(rdna_zip op, double number, bool number_first, rdna_map *out_map, double *out_p,
                             double *out_q) {
  int exponent;
  *out_map = RDNA_MAP_AFFINE;
  *out_p = 1;
  *out_q = -0.0; /* which leaves a product of -0 as it is */
  switch (op) {
    case RDNA_ZIP_ADD:
      *out_q = number;
      return true;
    case RDNA_ZIP_SUB:
      *out_p = number_first ? -1 : 1;
      *out_q = number_first ? number : -number;
      return true;
    case RDNA_ZIP_MUL:
      *out_p = number;
      return true;
    case RDNA_ZIP_DIV:
      *out_p = 1 / number;
      return !number_first && fabs(frexp(number, &exponent)) == 0.5 && exponent > -100 && exponent < 100;
    case RDNA_ZIP_MAXIMUM:
    case RDNA_ZIP_MINIMUM:
      *out_map = RDNA_MAP_CLAMP;
      *out_p = op == RDNA_ZIP_MAXIMUM ? number : -(double)INFINITY;
      *out_q = op == RDNA_ZIP_MAXIMUM ? (double)INFINITY : number;
      return !isnan(number);
    default:
      return false;
  }
}

rdna_status rdna__contiguous_zip_number(rdna_stream *stream, rdna_zip op, const rdna_tensor *x, double number,
                                        bool number_first, const rdna_tensor *out, bool *out_launched) {
  rdna_map map;
  double p, q;
  *out_launched = false;
  if (!rdna__zip_number_as_map(op, number, number_first, &map, &p, &q)) return RDNA_OK;
  return rdna__contiguous_map(stream, map, x, rdna_scalar_real(p), rdna_scalar_real(q), out, out_launched);
}

/* Checks |out| and one input: contiguous, of the same shape and floating-point type. */
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

rdna_status rdna_op_swiglu(rdna_stream *stream, const rdna_tensor *gate, const rdna_tensor *up,
                           const rdna_tensor *out) {
  RDNA_TRY(check_pair("swiglu", "gate", gate, out));
  RDNA_TRY(check_pair("swiglu", "up", up, out));
  return run_binary(stream, "swiglu", of_type(&swiglu_kernels, gate->dtype), gate, up, out);
}
