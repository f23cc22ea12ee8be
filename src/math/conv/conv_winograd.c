/* Convolutions of 3 x 3 without strides in f32 by Winograd's way: see winograd_kernels.h. Images are taken a few at a
 * time, so that what lies between the steps is found in the caches and takes little memory. */
#include "math/check.h"
#include "math/conv/conv.h"
#include "math/conv/winograd_kernels.h"
#include "math/gemm/gemm.h"
#include "math/scratch.h"

enum { MOST_BYTES = 128 << 20 /* of what lies between the steps */ };

bool rdna__conv_winograd_applies(const rdna__conv_call *call, int64_t least_channels) {
  const rdna_convolution *conv = call->conv;
  const rdna_tensor *w = call->weight, *x = call->x, *y = call->y;
  if (call->mode == RDNA__CONV_WEIGHT || conv->dims != 2 || conv->groups != 1 || x->dtype != RDNA_F32) return false;
  if (w->shape[0] < least_channels || w->shape[1] < least_channels) return false;
  for (int d = 0; d < 2; d++)
    if (w->shape[2 + d] != 3 || conv->stride[d] != 1 || conv->dilation[d] != 1) return false;
  return x->stride[3] == 1 && y->stride[3] == 1;
}

static void set_strides(struct winograd_args *args, const rdna_tensor *t) {
  for (int d = 0; d < 4; d++) args->stride[d] = t->shape[d] > 1 ? t->stride[d] : 0;
}

static rdna_status launch(rdna_stream *stream, const char *operator, const char * name,
                          const struct winograd_args *args) {
  rdna_grid grid = {0, (uint32_t)args->channels, 1};
  RDNA_TRY(rdna__check_groups(operator, args->count, WINOGRAD_THREADS, &grid.x));
  return rdna__launch_named(stream, name, grid, args);
}

/* Some images of |from| and |to|, of which arguments are complete but for their data and number. */
typedef struct steps {
  struct winograd_args weight, image, result;
} steps;

static rdna_status run_images(rdna_stream *stream, const char *operator, const steps * s, int64_t first,
                              int64_t images) {
  static const rdna_dtype types[3] = {RDNA_F32, RDNA_F32, RDNA_F32};
  struct winograd_args image = s->image, result = s->result;
  image.count = result.count = (int32_t)(images * image.tiles_y * image.tiles_x);
  image.in += first * image.stride[0], result.out += first * result.stride[0];
  RDNA_TRY(launch(stream, operator, "winograd_image", &image));
  struct gemm_args product = {
      .a = s->weight.out, .b = image.out, .c = (void *)result.in, .lda = s->weight.ld, .ldb = image.ld, .alpha = 1};
  product.ldc = result.ld, product.stride_a = s->weight.channels * s->weight.ld;
  product.stride_b = image.channels * image.ld, product.stride_c = result.channels * result.ld;
  RDNA_TRY(rdna__gemm_launch(stream, operator, types, product, result.channels, image.count, image.channels, 16));
  return launch(stream, operator, "winograd_result", &result);
}

static rdna_status run(rdna__scratch *scratch, const rdna__conv_call *call) {
  const char *operator= scratch->holder;
  bool forward = call->mode == RDNA__CONV_FORWARD;
  const rdna_tensor *from = forward ? call->x : call->y, *to = forward ? call->y : call->x, *w = call->weight;
  int32_t columns = (int32_t)from->shape[1], rows = (int32_t)to->shape[1];
  steps s = {{.in = w->data, .channels = rows, .count = columns, .ld = columns, .turned = !forward},
             {.in = from->data, .channels = columns},
             {.out = to->data, .channels = rows, .activation = (uint32_t)call->activation}};
  set_strides(&s.weight, w), set_strides(&s.image, from), set_strides(&s.result, to);
  if (!forward) s.weight.stride[0] = w->stride[1], s.weight.stride[1] = w->stride[0];
  if (call->bias) s.result.bias = call->bias->data;
  for (int d = 0; d < 2; d++) {
    s.image.before[d] = (int32_t)(forward ? call->conv->before[d] : 2 - call->conv->before[d]);
    s.image.size[d] = (int32_t)from->shape[2 + d], s.result.size[d] = (int32_t)to->shape[2 + d];
  }
  s.image.tiles_y = s.result.tiles_y = (s.result.size[0] + 1) / 2;
  s.image.tiles_x = s.result.tiles_x = (s.result.size[1] + 1) / 2;
  int64_t tiles = (int64_t)s.image.tiles_y * s.image.tiles_x, each = 16 * (int64_t)sizeof(float) * tiles;
  int64_t images = MOST_BYTES / (each * (rows + columns));
  if (images < 1) images = 1;
  if (images > from->shape[0]) images = from->shape[0];
  int64_t ld = (images * tiles + 3) / 4 * 4; /* lines at multiples of 16 bytes */
  s.image.ld = s.result.ld = ld;
  void *weights, *image, *sums;
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)rows * (size_t)columns * 16 * sizeof(float), &weights));
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)columns * (size_t)ld * 16 * sizeof(float), &image));
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)rows * (size_t)ld * 16 * sizeof(float), &sums));
  s.weight.out = weights, s.image.out = image, s.result.in = sums;
  RDNA_TRY(launch(scratch->stream, operator, "winograd_weight", &s.weight));
  for (int64_t first = 0; first < from->shape[0]; first += images) {
    int64_t left = from->shape[0] - first;
    RDNA_TRY(run_images(scratch->stream, operator, & s, first, left < images ? left : images));
  }
  return RDNA_OK;
}

rdna_status rdna__conv_winograd(rdna_stream *stream, const char *operator, const rdna__conv_call * call) {
  rdna__scratch scratch = {.stream = stream, .holder = operator};
  return rdna__scratch_release(&scratch, run(&scratch, call));
}
