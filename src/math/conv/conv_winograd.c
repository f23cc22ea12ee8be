/* Convolutions of 3 x 3 without strides in f32 by Winograd's way: see winograd_kernels.h. Images are taken a few at a
 * time, so that what lies between the steps is found in the caches and takes little memory. */
#include "math/check.h"
#include "math/conv/conv.h"
#include "math/conv/winograd_kernels.h"
#include "math/gemm/gemm.h"
#include "math/scratch.h"

enum { MOST_BYTES = 128 << 20 /* of what lies between the steps */ };

/* Of an image of |to|. */
static int64_t tiles_of(const rdna_tensor *to) { return (to->shape[2] + 1) / 2 * ((to->shape[3] + 1) / 2); }

/* As many as do not take too much memory, with |channels| of what lies between the steps. */
static int64_t images_at_once(const rdna_tensor *to, int64_t channels) {
  int64_t images = MOST_BYTES / (16 * (int64_t)sizeof(float) * tiles_of(to) * channels);
  return images < 1 ? 1 : images > to->shape[0] ? to->shape[0] : images;
}

static int64_t line_of(int64_t tiles) { return (tiles + 3) / 4 * 4; } /* at multiples of 16 bytes */

bool rdna__conv_winograd_applies(const rdna__conv_call *call, int64_t least_channels) {
  const rdna_convolution *conv = call->conv;
  const rdna_tensor *w = call->weight, *x = call->x, *y = call->y;
  if (conv->dims != 2 || conv->groups != 1 || x->dtype != RDNA_F32) return false;
  for (int d = 0; d < 2; d++) /* channels are lines of a grid */
    if (w->shape[d] < least_channels || w->shape[d] > RDNA__GRID_YZ_MAX) return false;
  for (int d = 0; d < 2; d++)
    if (w->shape[2 + d] != 3 || conv->stride[d] != 1 || conv->dilation[d] != 1) return false;
  if (call->mode == RDNA__CONV_WEIGHT && tiles_of(y) * y->shape[0] < least_channels) return false;
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
  int64_t images = images_at_once(to, rows + columns), ld = line_of(images * tiles_of(to));
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

/* The gradient of the weight: sums of images after each other are added to those before. */
static rdna_status run_weight(rdna__scratch *scratch, const rdna__conv_call *call) {
  static const rdna_dtype types[3] = {RDNA_F32, RDNA_F32, RDNA_F32};
  const char *operator= scratch->holder;
  const rdna_tensor *x = call->x, *y = call->y, *w = call->weight;
  int32_t rows = (int32_t)w->shape[0], columns = (int32_t)w->shape[1];
  struct winograd_args image = {.in = x->data, .channels = columns}, gradient = {.in = y->data, .channels = rows};
  struct winograd_args window = {.out = w->data, .channels = rows, .count = columns, .ld = columns};
  set_strides(&image, x), set_strides(&gradient, y), set_strides(&window, w);
  for (int d = 0; d < 2; d++) {
    image.before[d] = (int32_t)call->conv->before[d];
    image.size[d] = (int32_t)x->shape[2 + d], gradient.size[d] = (int32_t)y->shape[2 + d];
  }
  image.tiles_y = gradient.tiles_y = (gradient.size[0] + 1) / 2;
  image.tiles_x = gradient.tiles_x = (gradient.size[1] + 1) / 2;
  int64_t images = images_at_once(y, rows + columns), ld = line_of(images * tiles_of(y));
  image.ld = gradient.ld = ld;
  void *data[3];
  int64_t values[3] = {columns * ld, rows * ld, (int64_t)rows * columns};
  for (int i = 0; i < 3; i++) RDNA_TRY(rdna__scratch_take(scratch, (size_t)values[i] * 16 * sizeof(float), &data[i]));
  image.out = data[0], gradient.out = data[1], window.in = data[2];
  struct gemm_args product = {.a = data[1], .b = data[0], .c = data[2], .lda = ld, .ldb = ld, .ldc = columns};
  product.stride_b = values[0], product.stride_a = values[1], product.stride_c = values[2];
  product.flags = GEMM_B_TRANSPOSED, product.alpha = 1;
  for (int64_t first = 0; first < x->shape[0]; first += images) {
    int64_t left = x->shape[0] - first, count = (left < images ? left : images) * tiles_of(y);
    image.count = gradient.count = (int32_t)count;
    image.in = (const float *)x->data + first * image.stride[0];
    gradient.in = (const float *)y->data + first * gradient.stride[0];
    RDNA_TRY(launch(scratch->stream, operator, "winograd_image", &image));
    RDNA_TRY(launch(scratch->stream, operator, "winograd_gradient", &gradient));
    product.beta = first > 0 ? 1 : 0;
    RDNA_TRY(rdna__gemm_launch(scratch->stream, operator, types, product, rows, columns, count, 16));
  }
  return launch(scratch->stream, operator, "winograd_window", &window);
}

rdna_status rdna__conv_winograd(rdna_stream *stream, const char *operator, const rdna__conv_call * call) {
  rdna__scratch scratch = {.stream = stream, .holder = operator};
  return rdna__scratch_release(&scratch, (call->mode == RDNA__CONV_WEIGHT ? run_weight : run)(&scratch, call));
}
