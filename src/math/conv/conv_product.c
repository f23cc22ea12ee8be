/* Convolutions that are products of matrices: a window of 1 x 1, stride 1, no padding. With channels last one product
 * of all positions; with channels first one of each image, where the gradient of the weight is the sum of them, taken
 * in order. */
#include <string.h>

#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/scratch.h"
#include "math/conv/conv.h"
#include "math/gemm/gemm.h"

enum { LEAST_PLANE = 128 /* values of an image's channel, below which a tile of its product is mostly empty */ };

static const rdna__route route[] = {
    {.name = "product",
     .kernels = {"conv_weight_sum_{float}"},
     .when = "windows of one place without stride and padding: by the table of gemm; the gradient of the weight from "
             "channels first is the sum of the images'"}};
RDNA_FIXED_ROUTES(rdna__conv_product_routes, "conv that is a product of matrices", route)

/* What a tensor is a matrix, or a matrix of each image, of. */
typedef struct matrix {
  int64_t step;  /* from row to row: positions, or channels of an image */
  int64_t image; /* from image to image */
  int64_t plane; /* values of an image's channel */
} matrix;

/* Positions, all dimensions but the channels, lie evenly, and channels side by side. */
static bool is_matrix(const rdna_tensor *t, matrix *out) {
  int64_t next = -1;
  if (t->shape[1] > 1 && t->stride[1] != 1) return false;
  out->step = t->shape[1];
  for (int d = t->rank - 1; d >= 0; d--) {
    if (d == 1 || t->shape[d] == 1) continue;
    if (next >= 0 && t->stride[d] != next) return false;
    if (next < 0) out->step = t->stride[d];
    next = t->stride[d] * t->shape[d];
  }
  return true;
}

static bool in_16s(const rdna_tensor *t, int64_t step) {
  int64_t bytes = (int64_t)rdna_dtype_block_bytes(t->dtype);
  return ((uintptr_t)t->data | (uint64_t)(step * bytes)) % 16 == 0;
}

/* A channel's positions lie side by side, and channels and images at multiples of 16 bytes. */
static bool is_matrix_of_images(const rdna_tensor *t, matrix *out) {
  out->plane = 1;
  for (int d = t->rank - 1; d > 1; out->plane *= t->shape[d--])
    if (t->shape[d] > 1 && t->stride[d] != out->plane) return false;
  out->step = t->shape[1] > 1 ? t->stride[1] : out->plane, out->image = t->shape[0] > 1 ? t->stride[0] : 0;
  return out->plane >= LEAST_PLANE && in_16s(t, out->step) && in_16s(t, out->image);
}

typedef struct product {
  matrix x, y;
  bool of_images;
  bool turned;  /* the weight's channels of the result lie side by side */
  int64_t step; /* of the weight, from row to row of what lies side by side */
} product;

/* The sums of images are not to take more memory than the images. */
static bool sums_fit(const rdna__conv_call *call) {
  double images = (double)(rdna_tensor_count(call->x) + rdna_tensor_count(call->y)) *
                  (double)rdna_dtype_block_bytes(call->x->dtype);
  return (double)call->x->shape[0] * (double)rdna_tensor_count(call->weight) * sizeof(float) <= images;
}

static bool is_product(const rdna__conv_call *call, product *out) {
  const rdna_convolution *conv = call->conv;
  const rdna_tensor *w = call->weight;
  for (int d = 0; d < conv->spatial_dims; d++)
    if (w->shape[2 + d] != 1 || conv->stride[d] != 1 || conv->pad_before[d] != 0 || conv->pad_after[d] != 0)
      return false;
  memset(out, 0, sizeof *out);
  out->turned = w->shape[1] > 1 && w->stride[1] != 1, out->step = w->stride[out->turned];
  if (conv->groups != 1 || (out->turned && w->shape[0] > 1 && w->stride[0] != 1)) return false;
  if (is_matrix(call->x, &out->x) && is_matrix(call->y, &out->y)) return true;
  if (out->turned) return false;
  out->of_images = true;
  return call->x->shape[0] <= RDNA__GRID_YZ_MAX && in_16s(w, w->stride[0]) && is_matrix_of_images(call->x, &out->x) &&
         is_matrix_of_images(call->y, &out->y) && (call->mode != RDNA__CONV_WEIGHT || sums_fit(call));
}

bool rdna__conv_is_product(const rdna__conv_call *call) {
  product p;
  return is_product(call, &p);
}

/* y(position, out) = x(position, in) * weight(out, in), or x from y. */
static rdna_status run_matrix(rdna_stream *stream, const char *op_name, const rdna__conv_call *call, const product *p) {
  bool forward = call->mode == RDNA__CONV_FORWARD;
  const rdna_tensor *from = forward ? call->x : call->y, *to = rdna__conv_out(call);
  struct gemm_args args = {
      .a = from->data,
      .b = call->weight->data,
      .bias = call->bias ? call->bias->data : NULL,
      .c = to->data,
      .lda = forward ? p->x.step : p->y.step,
      .ldb = p->step,
      .ldc = forward ? p->y.step : p->x.step,
      .flags = (forward != p->turned ? GEMM_B_TRANSPOSED : 0) | (call->activation ? GEMM_MORE : 0),
      .alpha = 1,
      .activation = (uint32_t)call->activation,
  };
  rdna_dtype types[3] = {from->dtype, from->dtype, from->dtype};
  int64_t positions = rdna_tensor_count(to) / to->shape[1];
  return rdna__gemm_launch(stream, op_name, types, args, positions, to->shape[1], from->shape[1], 1);
}

/* Of each image y(out, position) = weight(out, in) * x(in, position), or x from y. */
static rdna_status run_images(rdna_stream *stream, const char *op_name, const rdna__conv_call *call, const product *p) {
  bool forward = call->mode == RDNA__CONV_FORWARD;
  const rdna_tensor *from = forward ? call->x : call->y, *to = rdna__conv_out(call);
  const matrix *b = forward ? &p->x : &p->y, *c = forward ? &p->y : &p->x;
  struct gemm_args args = {
      .a = call->weight->data,
      .b = from->data,
      .bias = call->bias ? call->bias->data : NULL,
      .c = to->data,
      .lda = call->weight->stride[0],
      .ldb = b->step,
      .ldc = c->step,
      .stride_b = b->image,
      .stride_c = c->image,
      .flags = (forward ? 0 : GEMM_A_TRANSPOSED) | (call->bias ? GEMM_BIAS_OF_ROWS : 0) |
               (call->bias || call->activation ? GEMM_MORE : 0),
      .alpha = 1,
      .activation = (uint32_t)call->activation,
  };
  rdna_dtype types[3] = {from->dtype, from->dtype, from->dtype};
  return rdna__gemm_launch(stream, op_name, types, args, to->shape[1], b->plane, from->shape[1], from->shape[0]);
}

/* weight(out, in) = sum over positions of y(position, out) * x(position, in), or that turned. */
static rdna_status run_weight(rdna_stream *stream, const char *op_name, const rdna__conv_call *call, const product *p) {
  const rdna_tensor *x = call->x, *w = call->weight, *rows = p->turned ? x : call->y,
                    *columns = p->turned ? call->y : x;
  struct gemm_args args = {.a = rows->data, .b = columns->data, .c = w->data};
  args.lda = p->turned ? p->x.step : p->y.step, args.ldb = p->turned ? p->y.step : p->x.step;
  args.ldc = rows->shape[1] > 1 ? p->step : columns->shape[1];
  args.flags = GEMM_A_TRANSPOSED, args.alpha = 1;
  int64_t positions = rdna_tensor_count(x) / x->shape[1];
  return rdna__gemm_launch(stream, op_name, (rdna_dtype[3]){x->dtype, x->dtype, x->dtype}, args, rows->shape[1],
                           columns->shape[1], positions, 1);
}

/* The same of each image into |sums|, which are added up from there. */
static rdna_status run_weight_sums(rdna_stream *stream, const char *op_name, const rdna__conv_call *call,
                                   const product *p, float *sums) {
  const rdna_tensor *x = call->x, *w = call->weight;
  struct gemm_args args = {.a = call->y->data, .b = x->data, .c = sums, .lda = p->y.step, .ldb = p->x.step};
  args.stride_a = p->y.image, args.stride_b = p->x.image, args.ldc = w->shape[1], args.stride_c = rdna_tensor_count(w);
  args.flags = GEMM_B_TRANSPOSED, args.alpha = 1;
  RDNA_TRY(rdna__gemm_launch(stream, op_name, (rdna_dtype[3]){x->dtype, x->dtype, RDNA_F32}, args, w->shape[0],
                             w->shape[1], p->x.plane, x->shape[0]));
  struct conv_args sum;
  rdna__conv_args_make(RDNA__CONV_WEIGHT, call->conv, x, w, call->y, &sum);
  sum.parts = (int32_t)x->shape[0], sum.sums = sums;
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups(op_name, rdna_tensor_count(w), CONV_SUM_VALUES(sum.parts, sum.columns), &grid.x));
  return RDNA__ROUTE_LAUNCH(stream, route, 0, grid, &sum, rdna_dtype_name(x->dtype));
}

rdna_status rdna__conv_product(rdna_stream *stream, const char *op_name, const rdna__conv_call *call) {
  product p;
  if (!is_product(call, &p)) return rdna__fail(RDNA_INTERNAL, "%s: this is not a product", op_name);
  if (call->mode != RDNA__CONV_WEIGHT) return (p.of_images ? run_images : run_matrix)(stream, op_name, call, &p);
  if (!p.of_images) return run_weight(stream, op_name, call, &p);
  rdna__scratch scratch = {.stream = stream, .holder = op_name};
  void *sums;
  size_t values = (size_t)(rdna_tensor_count(call->weight) * call->x->shape[0]);
  RDNA_TRY(rdna__scratch_take(&scratch, values * sizeof(float), &sums));
  return rdna__scratch_release(&scratch, run_weight_sums(stream, op_name, call, &p, sums));
}
