/* Convolutions of 3 x 3 without strides in f32 by Winograd's way: see winograd_kernels.h. Images are taken a few at a
 * time, large ones in strips of lines of tiles, so that what lies between the steps is found in the caches and takes
 * little memory. */
#include "math/common/plan/check.h"
#include "math/common/plan/scratch.h"
#include "math/conv/conv.h"
#include "math/conv/winograd_kernels.h"
#include "math/gemm/gemm.h"

enum { MOST_BYTES = 128 << 20 /* of what lies between the steps */ };

/* Of an image of |to|: lines of tiles, and tiles. */
static int64_t lines_of(const rdna_tensor *to) { return (to->shape[2] + 1) / 2; }
static int64_t tiles_of(const rdna_tensor *to) { return lines_of(to) * ((to->shape[3] + 1) / 2); }

/* What is done at once: whole images, or a strip of one. */
typedef struct piece {
  int64_t image, images, line, lines; /* the first and how many; lines of tiles */
} piece;

/* The first piece, as large as does not take too much memory with |channels| of what lies between the steps. */
static piece first_piece(const rdna_tensor *to, int64_t channels) {
  int64_t line = 16 * (int64_t)sizeof(float) * channels * tiles_of(to) / lines_of(to), most = MOST_BYTES / line;
  int64_t images = most / lines_of(to);
  if (images > 0) return (piece){0, images < to->shape[0] ? images : to->shape[0], 0, lines_of(to)};
  return (piece){0, 1, 0, most > 0 ? most : 1};
}
/* The piece of |first|'s size, but for ends, after |p|; its |images| are 0 after the last. */
static piece next_piece(const rdna_tensor *to, const piece *first, piece p) {
  p.line += p.lines;
  if (p.line == lines_of(to)) p.line = 0, p.image += p.images;
  int64_t images = to->shape[0] - p.image, lines = lines_of(to) - p.line;
  p.images = images < first->images ? images : first->images;
  p.lines = lines < first->lines ? lines : first->lines;
  return p;
}

/* |of| the image for a piece: its lines stay all there, and zeros before them are fewer. */
static struct winograd_args image_for(const piece *p, struct winograd_args of) {
  of.in += p->image * of.stride[0];
  of.pad_before[0] -= (int32_t)(2 * p->line);
  of.tiles_y = (int32_t)p->lines, of.count = (int32_t)(p->images * p->lines * of.tiles_x);
  return of;
}
/* |of| the result or the gradient, whose values begin with the piece's; how far on they lie, in |out_at|. */
static struct winograd_args values_for(const piece *p, struct winograd_args of, int64_t *out_at) {
  *out_at = p->image * of.stride[0] + 2 * p->line * of.stride[2];
  of.size[0] -= (int32_t)(2 * p->line);
  of.tiles_y = (int32_t)p->lines, of.count = (int32_t)(p->images * p->lines * of.tiles_x);
  return of;
}

static int64_t line_of(int64_t tiles) { return (tiles + 3) / 4 * 4; } /* at multiples of 16 bytes */

/* Whether both have their channels side by side: so do then the matrices, whose tiles are rows there. */
static bool is_last(const rdna_tensor *x, const rdna_tensor *y) { return x->stride[1] == 1 && y->stride[1] == 1; }

bool rdna__conv_winograd_applies(const rdna__conv_call *call, int64_t least_channels) {
  const rdna_convolution *conv = call->conv;
  const rdna_tensor *w = call->weight, *x = call->x, *y = call->y;
  if (conv->spatial_dims != 2 || conv->groups != 1 || x->dtype != RDNA_F32) return false;
  for (int d = 0; d < 2; d++) /* channels are lines of a grid */
    if (w->shape[d] < least_channels || w->shape[d] > RDNA__GRID_YZ_MAX) return false;
  for (int d = 0; d < 2; d++)
    if (w->shape[2 + d] != 3 || conv->stride[d] != 1 || conv->dilation[d] != 1) return false;
  if (call->mode == RDNA__CONV_WEIGHT && tiles_of(y) * y->shape[0] < least_channels) return false;
  return (x->stride[3] == 1 && y->stride[3] == 1) || is_last(x, y);
}

static void set_strides(struct winograd_args *args, const rdna_tensor *t) {
  for (int d = 0; d < 4; d++) args->stride[d] = t->shape[d] > 1 ? t->stride[d] : 0;
}

/* 16 matrices of |second| lines of |first| values, the first of which are channels or rows if |last|. */
static void set_steps(struct winograd_args *args, bool last, int64_t first, int64_t second) {
  args->last = last;
  args->step[last] = first, args->step[!last] = 1, args->step[2] = first * second;
}

static rdna_status launch(rdna_stream *stream, const char *op_name, const char *name,
                          const struct winograd_args *args) {
  rdna_grid grid = {0, args->last ? 1 : (uint32_t)args->channels, 1};
  int64_t threads = args->last ? (int64_t)args->count * args->channels : args->count;
  RDNA_TRY(rdna__check_groups(op_name, threads, WINOGRAD_THREADS, &grid.x));
  return rdna__launch_named(stream, name, grid, args);
}

/* The step from line to line of a matrix. */
static int64_t line_step(const struct winograd_args *args) { return args->step[args->last]; }

/* Arguments that are complete but for the piece. */
typedef struct steps {
  struct winograd_args weight, image, result;
} steps;

/* sums(16, rows, tiles) = weights(16, rows, columns) * image(16, columns, tiles), or that turned, with tiles first. */
static rdna_status multiply(rdna_stream *stream, const char *op_name, const steps *s, int64_t tiles) {
  static const rdna_dtype types[3] = {RDNA_F32, RDNA_F32, RDNA_F32};
  const struct winograd_args *weight = &s->weight, *image = &s->image, *result = &s->result;
  struct gemm_args product = {
      .c = (void *)result->in, .ldc = line_step(result), .stride_c = result->step[2], .alpha = 1};
  const struct winograd_args *a = image->last ? image : weight, *b = image->last ? weight : image;
  product.a = a->out, product.lda = line_step(a), product.stride_a = a->step[2];
  product.b = b->out, product.ldb = line_step(b), product.stride_b = b->step[2];
  if (!image->last) /* the weight's columns are its neighbours */
    return rdna__gemm_launch(stream, op_name, types, product, result->channels, tiles, image->channels, 16);
  product.flags = weight->last ? 0 : GEMM_B_TRANSPOSED;
  return rdna__gemm_launch(stream, op_name, types, product, tiles, result->channels, image->channels, 16);
}

static rdna_status run_piece(rdna_stream *stream, const char *op_name, const steps *s, const piece *p) {
  int64_t at;
  struct winograd_args image = image_for(p, s->image), result = values_for(p, s->result, &at);
  result.out += at;
  RDNA_TRY(launch(stream, op_name, "winograd_image", &image));
  RDNA_TRY(multiply(stream, op_name, s, image.count));
  return launch(stream, op_name, "winograd_result", &result);
}

static rdna_status run(rdna__scratch *scratch, const rdna__conv_call *call) {
  const char *op_name = scratch->holder;
  bool forward = call->mode == RDNA__CONV_FORWARD, last = is_last(call->x, call->y);
  const rdna_tensor *from = forward ? call->x : call->y, *to = forward ? call->y : call->x, *w = call->weight;
  int32_t columns = (int32_t)from->shape[1], rows = (int32_t)to->shape[1];
  steps s = {{.in = w->data, .channels = rows, .count = columns, .turned = !forward},
             {.in = from->data, .channels = columns},
             {.out = to->data, .channels = rows, .activation = (uint32_t)call->activation}};
  set_strides(&s.weight, w), set_strides(&s.image, from), set_strides(&s.result, to);
  if (!forward) s.weight.stride[0] = w->stride[1], s.weight.stride[1] = w->stride[0];
  if (call->bias) s.result.bias = call->bias->data;
  for (int d = 0; d < 2; d++) {
    s.image.pad_before[d] = (int32_t)(forward ? call->conv->pad_before[d] : 2 - call->conv->pad_before[d]);
    s.image.size[d] = (int32_t)from->shape[2 + d], s.result.size[d] = (int32_t)to->shape[2 + d];
  }
  s.image.tiles_x = s.result.tiles_x = (s.result.size[1] + 1) / 2;
  piece first = first_piece(to, rows + columns);
  int64_t ld = line_of(first.images * first.lines * s.image.tiles_x);
  bool rows_last = last && s.weight.stride[0] < s.weight.stride[1];
  set_steps(&s.weight, rows_last, rows_last ? rows : columns, rows_last ? columns : rows);
  set_steps(&s.image, last, last ? columns : ld, last ? ld : columns);
  set_steps(&s.result, last, last ? rows : ld, last ? ld : rows);
  void *weights, *image, *sums;
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)s.weight.step[2] * 16 * sizeof(float), &weights));
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)s.image.step[2] * 16 * sizeof(float), &image));
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)s.result.step[2] * 16 * sizeof(float), &sums));
  s.weight.out = weights, s.image.out = image, s.result.in = sums;
  RDNA_TRY(launch(scratch->stream, op_name, "winograd_weight", &s.weight));
  for (piece p = first; p.images > 0; p = next_piece(to, &first, p))
    RDNA_TRY(run_piece(scratch->stream, op_name, &s, &p));
  return RDNA_OK;
}

/* sums(16, rows, columns) = gradients(16, rows, tiles) * image(16, columns, tiles)', plus what was there if |more|, or
 * that turned, as the window has it. */
static rdna_status multiply_gradient(rdna_stream *stream, const char *op_name, const struct winograd_args *image,
                                     const struct winograd_args *gradient, const struct winograd_args *window,
                                     int64_t tiles, bool more) {
  static const rdna_dtype types[3] = {RDNA_F32, RDNA_F32, RDNA_F32};
  const struct winograd_args *a = window->last ? image : gradient, *b = window->last ? gradient : image;
  struct gemm_args product = {.a = a->out, .b = b->out, .c = (void *)window->in, .alpha = 1, .beta = more ? 1 : 0};
  product.lda = line_step(a), product.ldb = line_step(b), product.ldc = line_step(window);
  product.stride_a = a->step[2], product.stride_b = b->step[2], product.stride_c = window->step[2];
  product.flags = image->last ? GEMM_A_TRANSPOSED : GEMM_B_TRANSPOSED;
  return rdna__gemm_launch(stream, op_name, types, product, a->channels, b->channels, tiles, 16);
}

/* The gradient of the weight: sums of pieces after each other are added to those before. */
static rdna_status run_weight(rdna__scratch *scratch, const rdna__conv_call *call) {
  const char *op_name = scratch->holder;
  const rdna_tensor *x = call->x, *y = call->y, *w = call->weight;
  int32_t rows = (int32_t)w->shape[0], columns = (int32_t)w->shape[1];
  struct winograd_args image = {.in = x->data, .channels = columns}, gradient = {.in = y->data, .channels = rows};
  struct winograd_args window = {.out = w->data, .channels = rows, .count = columns};
  set_strides(&image, x), set_strides(&gradient, y), set_strides(&window, w);
  for (int d = 0; d < 2; d++) {
    image.pad_before[d] = (int32_t)call->conv->pad_before[d];
    image.size[d] = (int32_t)x->shape[2 + d], gradient.size[d] = (int32_t)y->shape[2 + d];
  }
  image.tiles_x = gradient.tiles_x = (gradient.size[1] + 1) / 2;
  piece first = first_piece(y, rows + columns);
  int64_t ld = line_of(first.images * first.lines * image.tiles_x), at;
  bool last = is_last(x, y), rows_last = last && window.stride[0] < window.stride[1];
  set_steps(&image, last, last ? columns : ld, last ? ld : columns);
  set_steps(&gradient, last, last ? rows : ld, last ? ld : rows);
  set_steps(&window, rows_last, rows_last ? rows : columns, rows_last ? columns : rows);
  void *data[3];
  int64_t values[3] = {image.step[2], gradient.step[2], window.step[2]};
  for (int i = 0; i < 3; i++) RDNA_TRY(rdna__scratch_take(scratch, (size_t)values[i] * 16 * sizeof(float), &data[i]));
  image.out = data[0], gradient.out = data[1], window.in = data[2];
  for (piece p = first; p.images > 0; p = next_piece(y, &first, p)) {
    struct winograd_args some_image = image_for(&p, image), some_gradient = values_for(&p, gradient, &at);
    some_gradient.in += at;
    RDNA_TRY(launch(scratch->stream, op_name, "winograd_image", &some_image));
    RDNA_TRY(launch(scratch->stream, op_name, "winograd_gradient", &some_gradient));
    RDNA_TRY(multiply_gradient(scratch->stream, op_name, &image, &gradient, &window, some_image.count,
                               p.image > 0 || p.line > 0));
  }
  return launch(scratch->stream, op_name, "winograd_window", &window);
}

rdna_status rdna__conv_winograd(rdna_stream *stream, const char *op_name, const rdna__conv_call *call) {
  rdna__scratch scratch = {.stream = stream, .holder = op_name};
  return rdna__scratch_release(&scratch, (call->mode == RDNA__CONV_WEIGHT ? run_weight : run)(&scratch, call));
}
