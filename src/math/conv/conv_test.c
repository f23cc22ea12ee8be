#include "rdna/op/conv.h"
#include "math/common/test/operand.h"
#include "math/conv/conv.h"

typedef struct problem {
  rdna_convolution conv;
  rdna_dtype dtype;
  int64_t n, in, out; /* channels of all groups */
  int64_t size[3], window[3];
  bool channels_last;
  bool weight_turned; /* the weight's channels of the result side by side, and what is spatial slowest */
  bool with_bias;
  rdna_activation activation; /* forward */
  int64_t offset;             /* values before all data */
  int64_t piece;              /* the image's gradient by rdna__conv_spread itself, if not 0 */
} problem;

enum { FORWARD, DATA, WEIGHT };

static operand make(const problem *p, int64_t first, int64_t second, const int64_t *spatial) {
  int dims = p->conv.spatial_dims;
  int64_t shape[5] = {first, second}, stride[5];
  for (int d = 0; d < dims; d++) shape[2 + d] = spatial[d];
  int64_t next = 1;
  if (p->channels_last) stride[1] = 1, next = second;
  for (int d = dims + 1; d > 1; d--) stride[d] = next, next *= shape[d];
  if (!p->channels_last) stride[1] = next, next *= second;
  stride[0] = next;
  return operand_make(p->dtype, dims + 2, shape, stride, p->offset);
}

static operand make_turned(const problem *p) {
  int dims = p->conv.spatial_dims;
  int64_t shape[5] = {p->out, p->in / p->conv.groups}, stride[5] = {1, p->out}, next = p->out * shape[1];
  for (int d = dims + 1; d > 1; d--) shape[d] = p->window[d - 2], stride[d] = next, next *= shape[d];
  return operand_make(p->dtype, dims + 2, shape, stride, p->offset);
}

static int64_t out_size(const problem *p, int d) {
  int64_t room =
      p->conv.pad_before[d] + p->size[d] + p->conv.pad_after[d] - p->conv.dilation[d] * (p->window[d] - 1) - 1;
  return room / p->conv.stride[d] + 1;
}

static int64_t at(const operand *o, int64_t first, int64_t second, const int64_t *place) {
  int64_t index = first * o->tensor.stride[0] + second * o->tensor.stride[1];
  for (int d = 0; d < o->tensor.rank - 2; d++) index += place[d] * o->tensor.stride[2 + d];
  return index;
}

static int64_t index_of(const operand *o, const int64_t digits[5]) {
  int64_t index = 0;
  for (int d = 0; d < o->tensor.rank; d++) index += digits[d] * o->tensor.stride[d];
  return index;
}

/* The next number in the mixed base of |shape|; false after the last. */
static bool next(int count, const int64_t *shape, int64_t *digits) {
  for (int d = count - 1; d >= 0; d--) {
    if (++digits[d] < shape[d]) return true;
    digits[d] = 0;
  }
  return false;
}

/* By the definition: every product of x and weight belongs to one value of y; it adds to whichever of the three is
 * asked for. Sums in double of the products and of their magnitudes, by index, and how many there were. */
static void define(const problem *p, int mode, const operand *x, const operand *w, const operand *y, double *sum,
                   double *magnitude, int64_t *count) {
  int dims = p->conv.spatial_dims;
  int64_t in = p->in / p->conv.groups, out = p->out / p->conv.groups;
  if (rdna_tensor_count(&x->tensor) == 0 || rdna_tensor_count(&y->tensor) == 0 || rdna_tensor_count(&w->tensor) == 0)
    return;
  int64_t yd[5] = {0};
  do {
    int64_t group = yd[1] / out, tap_shape[4] = {in, 1, 1, 1}, tap[4] = {0};
    for (int d = 0; d < dims; d++) tap_shape[1 + d] = p->window[d];
    do {
      int64_t place[3];
      bool inside = true;
      for (int d = 0; d < dims; d++) {
        place[d] = yd[2 + d] * p->conv.stride[d] - p->conv.pad_before[d] + tap[1 + d] * p->conv.dilation[d];
        inside = inside && place[d] >= 0 && place[d] < p->size[d];
      }
      if (!inside) continue;
      int64_t xi = at(x, yd[0], group * in + tap[0], place), wi = at(w, yd[1], tap[0], tap + 1), yi = index_of(y, yd);
      double v = mode == FORWARD ? operand_get(x, xi) * operand_get(w, wi)
                 : mode == DATA  ? operand_get(y, yi) * operand_get(w, wi)
                                 : operand_get(y, yi) * operand_get(x, xi);
      int64_t to = mode == FORWARD ? yi : mode == DATA ? xi : wi;
      sum[to] += v, magnitude[to] += fabs(v), count[to]++;
    } while (next(1 + dims, tap_shape, tap));
  } while (next(2 + dims, y->tensor.shape, yd));
}

static double activated(rdna_activation activation, double v) {
  return activation == RDNA_ACTIVATION_RELU   ? (v < 0 ? 0 : v)
         : activation == RDNA_ACTIVATION_SILU ? v / (1 + exp(-v))
                                              : v;
}

/* Each of |count| products rounds the sum at most once, each time by 2^-24 of the sum of magnitudes at most. */
static void compare(const problem *p, int mode, const operand *out, const operand *bias, const double *sum,
                    const double *magnitude, const int64_t *count) {
  static const char *const names[] = {"conv", "conv_backward_data", "conv_backward_weight"};
  if (rdna_tensor_count(&out->tensor) == 0) return;
  int64_t digits[5] = {0};
  do {
    int64_t i = index_of(out, digits);
    double added = bias ? operand_get(bias, digits[1]) : 0;
    double error = 0x1p-24 * ((double)(count[i] + 2) * magnitude[i] + 4 * (magnitude[i] + fabs(added)));
    assert_close(p->dtype, operand_get(out, i),
                 mode == FORWARD ? activated(p->activation, sum[i] + added) : sum[i] + added, error, names[mode], i);
  } while (next(out->tensor.rank, out->tensor.shape, digits));
}

static void check_mode(const problem *p, int mode) {
  int64_t y_size[3];
  for (int d = 0; d < p->conv.spatial_dims; d++) y_size[d] = out_size(p, d);
  operand x = make(p, p->n, p->in, p->size), y = make(p, p->n, p->out, y_size);
  operand w = p->weight_turned ? make_turned(p) : make(p, p->out, p->in / p->conv.groups, p->window);
  operand *out = mode == FORWARD ? &y : mode == DATA ? &x : &w;
  operand bias = operand_make(p->dtype, 1, &out->tensor.shape[1], NULL, p->offset);
  operand_fill(&bias, 1);
  if (out != &x) operand_fill(&x, 1);
  if (out != &y) operand_fill(&y, 1);
  if (out != &w) operand_fill(&w, 1);
  operand_upload(out); /* NaN */
  const rdna_tensor *b = p->with_bias && mode != WEIGHT ? &bias.tensor : NULL;
  if (mode == FORWARD && p->activation)
    assert_ok(rdna_op_conv_activate(stream, &p->conv, &x.tensor, &w.tensor, b, p->activation, &y.tensor));
  else if (mode == FORWARD)
    assert_ok(rdna_op_conv(stream, &p->conv, &x.tensor, &w.tensor, b, &y.tensor));
  rdna__conv_call call = {RDNA__CONV_DATA, &p->conv, &x.tensor, &w.tensor, &y.tensor, b, RDNA_ACTIVATION_NONE};
  if (mode == DATA && p->piece)
    assert_ok(rdna__conv_spread(stream, "conv_backward_data", &call, p->piece));
  else if (mode == DATA)
    assert_ok(rdna_op_conv_backward_data(stream, &p->conv, &y.tensor, &w.tensor, b, &x.tensor));
  if (mode == WEIGHT) assert_ok(rdna_op_conv_backward_weight(stream, &p->conv, &y.tensor, &x.tensor, &w.tensor));
  operand_download(out);

  size_t values = (size_t)operand_span(out) + 1;
  double *sum = calloc(values, sizeof *sum), *magnitude = calloc(values, sizeof *magnitude);
  int64_t *count = calloc(values, sizeof *count);
  assert_true(sum && magnitude && count);
  define(p, mode, &x, &w, &y, sum, magnitude, count);
  compare(p, mode, out, b ? &bias : NULL, sum, magnitude, count);
  free(sum);
  free(magnitude);
  free(count);
  operand_free(&x);
  operand_free(&y);
  operand_free(&w);
  operand_free(&bias);
}

static void check(problem p) {
  int layouts = p.dtype == RDNA_F32 || p.window[0] == 1 ? 3 : 2; /* others have nothing of their own for the third */
  for (int layout = 0; layout < layouts; layout++) {
    p.channels_last = layout > 0, p.weight_turned = layout == 2;
    for (int mode = FORWARD; mode <= WEIGHT; mode++) check_mode(&p, mode);
  }
}

static const rdna_dtype types[] = {RDNA_F32, RDNA_F16, RDNA_BF16};

static problem square(rdna_dtype dtype, int64_t in, int64_t out, int64_t size, int64_t window) {
  return (problem){
      .dtype = dtype,
      .n = 2,
      .in = in,
      .out = out,
      .size = {size, size + 1},
      .window = {window, window},
      .conv = {RDNA_CONVOLUTION_INIT, .spatial_dims = 2, .stride = {1, 1}, .dilation = {1, 1}, .groups = 1}};
}

static void windows_strides_and_padding(void **state) {
  for (int t = 0; t < 3; t++) {
    problem p = square(types[t], 3, 5, 9, 3);
    check(p);
    p.conv.pad_before[0] = p.conv.pad_after[0] = p.conv.pad_before[1] = p.conv.pad_after[1] = 1, p.with_bias = true;
    check(p);
    p.conv.stride[0] = p.conv.stride[1] = 2;
    check(p);
    p.conv.dilation[0] = 2, p.conv.dilation[1] = 3, p.conv.pad_after[1] = 4, p.offset = 1;
    check(p);
    p.window[0] = 1, p.window[1] = 2, p.conv.stride[0] = 3;
    check(p);
  }
}

/* Whole runs of 8 channels, and tiles of 64 and 128 with an edge. */
static void many_channels(void **state) {
  for (int t = 0; t < 3; t++) {
    problem p = square(types[t], 64, 72, 7, 3);
    p.conv.pad_before[0] = p.conv.pad_after[1] = 1, p.with_bias = true, p.activation = RDNA_ACTIVATION_SILU;
    check(p);
    p.conv.stride[0] = p.conv.stride[1] = 2, p.activation = RDNA_ACTIVATION_RELU;
    check(p);
    check(square(types[t], 40, 8, 12, 1));
    p = square(types[t], 24, 40, 15, 1), p.with_bias = true, p.activation = RDNA_ACTIVATION_SILU; /* products */
    check(p);
    check(square(types[t], 8, 136, 11, 2));
  }
}

/* Large enough that GPUs copy tensors into another layout: few channels, a row of the window as one run; many, in each
 * mode with and without a stride, and windows that some phases of it do not meet. */
static void copies_in_another_layout(void **state) {
  for (int t = 0; t < 3; t++) {
    problem p = square(types[t], 3, 16, 31, 7);
    p.conv.stride[0] = p.conv.stride[1] = 2, p.with_bias = true;
    for (int d = 0; d < 2; d++) p.conv.pad_before[d] = p.conv.pad_after[d] = 3;
    check(p);
    p = square(types[t], 1, 40, 41, 5), p.conv.pad_before[1] = 2, p.conv.dilation[0] = 2;
    check(p);
    check(square(types[t], 32, 21, 18, 3));
    p = square(types[t], 72, 64, 15, 3), p.conv.stride[0] = 2, p.conv.stride[1] = 3;
    check(p);
    p = square(types[t], 64, 136, 15, 1), p.conv.stride[0] = p.conv.stride[1] = 2;
    check(p);
    p.with_bias = true, p.n = 1;
    check(p);
    p = square(types[t], 32, 64, 24, 1), p.conv.groups = 2;
    check(p);
  }
}

/* Large enough that GPUs take a product of the whole window: into few channels, from channels that are not in eights,
 * planes of few positions and many, windows without overlap and with steps between their places, a bias. */
static void products_of_windows(void **state) {
  for (int t = 0; t < 3; t++) {
    problem p = square(types[t], 3, 64, 31, 4);
    p.conv.stride[0] = p.conv.stride[1] = 2, p.with_bias = t != 1;
    for (int d = 0; d < 2; d++) p.conv.pad_before[d] = p.conv.pad_after[d] = 1;
    check_mode(&p, DATA);
    p.channels_last = true;
    check_mode(&p, DATA);
    p = square(types[t], 136, 100, 4, 4), p.size[1] = 4, p.with_bias = t == 1, p.n = 5;
    check_mode(&p, DATA);
    p = square(types[t], 2, 70, 40, 3), p.conv.dilation[0] = 2, p.conv.stride[1] = 3, p.conv.pad_after[1] = 2;
    check_mode(&p, DATA);
    p = square(types[t], 5, 24, 9, 3), p.conv.spatial_dims = 3, p.size[2] = 9, p.window[2] = 2;
    p.conv.stride[2] = p.conv.dilation[2] = 1, p.conv.stride[0] = 2;
    check_mode(&p, DATA);
    p = square(types[t], 3, 4, 12, 3), p.n = 5, p.piece = 2 * 10 * 11 * 27, p.with_bias = true; /* 2, 2 and 1 */
    check_mode(&p, DATA);
    p.channels_last = true;
    check_mode(&p, DATA);
  }
}

/* One channel a group: each window that has kernels of its own and others, with and without steps and dilation, in one
 * dimension and two, planes of many tiles and many planes in one, channels in whole runs of 16 bytes and not. */
static void one_channel_a_group(void **state) {
  static const int64_t windows[] = {3, 5, 7, 2, 9}, channels[] = {8, 5, 136, 3, 16};
  for (int t = 0; t < 3; t++) {
    for (int i = 0; i < 5; i++) {
      problem p = square(types[t], channels[i], channels[i], i == 2 ? 7 : 12, windows[i]);
      p.conv.groups = channels[i], p.with_bias = i % 2 == 0;
      for (int d = 0; d < 2; d++) p.conv.pad_before[d] = windows[i] / 2, p.conv.pad_after[d] = d + windows[i] / 2;
      p.activation = i == 1 ? RDNA_ACTIVATION_RELU : RDNA_ACTIVATION_SILU;
      check(p);
      p.conv.stride[0] = p.conv.stride[1] = 2, p.offset = i == 3;
      check(p);
      p.conv.stride[0] = 1, p.conv.stride[1] = 3, p.conv.pad_before[1] = 0;
      check(p);
      p.conv.stride[1] = 1, p.conv.dilation[0] = 2, p.with_bias = false;
      p.conv.pad_before[0] = p.conv.pad_after[0] = 2 * windows[i];
      check(p);
    }
    problem line = square(types[t], 4, 4, 33, 4); /* 4 taps before the place that they make, as state spaces have it */
    line.conv.spatial_dims = 1, line.conv.groups = 4, line.conv.pad_before[0] = 3;
    check(line);
    problem wide = square(types[t], 2, 2, 3, 5);
    wide.conv.groups = 2, wide.size[1] = 301, wide.conv.pad_before[0] = wide.conv.pad_after[0] = 4;
    check(wide);
    wide.size[0] = 67, wide.size[1] = 9, wide.conv.stride[0] = wide.conv.stride[1] = 2, wide.n = 5;
    check(wide);
    wide.n = 0;
    check(wide);
  }
}

/* Large enough, in f32, for Winograd's way on GPUs: odd and even sizes, any padding, an activation. */
static void windows_of_three(void **state) {
  problem p = square(RDNA_F32, 128, 136, 5, 3);
  p.with_bias = true, p.activation = RDNA_ACTIVATION_SILU, p.n = 1;
  for (int before = 0; before < 4; before++) {
    p.conv.pad_before[0] = before, p.conv.pad_before[1] = 3 - before, p.conv.pad_after[0] = 1;
    p.size[0] = 5 + before % 2;
    check(p);
  }
}

/* Winograd's way to the gradient of the weight, of a size for which no rule would take it. Of small whole numbers every
 * step is exact: quarters of them, whose sums stay below 2^22. */
static void check_exactly(int64_t n, int64_t in, int64_t out, const int64_t size[2], const int64_t before[2],
                          const int64_t after[2], bool turned, bool last) {
  rdna_convolution conv = {RDNA_CONVOLUTION_INIT, .spatial_dims = 2, .stride = {1, 1}, .dilation = {1, 1}, .groups = 1};
  int64_t y_size[2];
  for (int d = 0; d < 2; d++) {
    conv.pad_before[d] = before[d], conv.pad_after[d] = after[d];
    y_size[d] = size[d] + before[d] + after[d] - 2;
  }
  int64_t rows = size[0], columns = size[1], lines = y_size[0], width = y_size[1];
  problem p = {.conv = {.spatial_dims = 2}, .dtype = RDNA_F32, .channels_last = last};
  operand x = make(&p, n, in, size), y = make(&p, n, out, y_size);
  operand w = operand_make(RDNA_F32, 4, (int64_t[]){out, in, 3, 3},
                           turned ? (int64_t[]){1, out, 3 * in * out, in * out} : NULL, 0);
  operand *filled[] = {&x, &y};
  for (int i = 0; i < 2; i++) {
    for (int64_t j = 0; j < operand_span(filled[i]); j++)
      operand_set(filled[i], j, (double)rdna__random_range(&random_state, -2, 2));
    operand_upload(filled[i]);
  }
  operand_upload(&w); /* NaN */
  rdna__conv_call call = {
      .mode = RDNA__CONV_WEIGHT, .conv = &conv, .x = &x.tensor, .weight = &w.tensor, .y = &y.tensor};
  assert_true(rdna__conv_winograd_applies(&call, 1));
  assert_ok(rdna__conv_winograd(stream, "conv_backward_weight", &call));
  operand_download(&w);
  const float *xs = (const float *)x.host, *ys = (const float *)y.host;
  for (int64_t i = 0; i < out * in * 9; i++) {
    int64_t row = i / (9 * in), column = i / 9 % in, tap_y = i / 3 % 3 - before[0], tap_x = i % 3 - before[1];
    float sum = 0;
    for (int64_t j = 0; j < n * lines; j++) {
      int64_t at = j % lines + tap_y;
      if (at < 0 || at >= rows) continue;
      for (int64_t q = 0; q < width; q++) {
        int64_t of_x[5] = {j / lines, column, at, q + tap_x}, of_y[5] = {j / lines, row, j % lines, q};
        if (q + tap_x >= 0 && q + tap_x < columns) sum += xs[index_of(&x, of_x)] * ys[index_of(&y, of_y)];
      }
    }
    int64_t place[2] = {i / 3 % 3, i % 3};
    assert_true(operand_get(&w, at(&w, row, column, place)) == (double)sum);
  }
  operand_free(&x);
  operand_free(&y);
  operand_free(&w);
}

static void gradient_of_windows_of_three(void **state) {
  for (int i = 0; i < 8; i++)
    check_exactly(1 + i % 3, 5 + 3 * i, 9 - i, (int64_t[]){3 + i, 9 - i}, (int64_t[]){i % 4, (i + 1) % 3},
                  (int64_t[]){(i + 2) % 4, i % 2}, i % 2, i / 2 % 2);
  if (rdna_device_get_info(device)->emulated) return; /* half a million tiles */
  /* more than the images that are taken at once */
  check_exactly(3, 1, 1, (int64_t[]){1460, 1459}, (int64_t[]){1, 1}, (int64_t[]){1, 1}, false, false);
  check_exactly(3, 2, 1, (int64_t[]){1200, 1199}, (int64_t[]){1, 1}, (int64_t[]){1, 1}, true, true);
}

/* An image whose steps would take 210 MB is cut into strips of at most 128 MiB: every mode is exact as above and the
 * same as our direct kernels. */
static void one_large_image(void **state) {
  enum { CHANNELS = 2, SIZE = 1811, MOST = 144 << 20 };
  if (rdna_device_get_info(device)->emulated) return; /* two million tiles */
  rdna_convolution conv = {RDNA_CONVOLUTION_INIT, .spatial_dims = 2, .stride = {1, 1},
                           .dilation = {1, 1},    .groups = 1,       .pad_before = {1, 0}};
  conv.pad_after[0] = 1, conv.pad_after[1] = 2;
  int64_t shape[] = {1, CHANNELS, SIZE, SIZE}, window[] = {CHANNELS, CHANNELS, 3, 3};
  operand t[3] = {operand_make(RDNA_F32, 4, shape, NULL, 0), operand_make(RDNA_F32, 4, window, NULL, 0),
                  operand_make(RDNA_F32, 4, shape, NULL, 0)};
  for (int mode = RDNA__CONV_FORWARD; mode <= RDNA__CONV_WEIGHT; mode++) {
    operand *out = &t[mode == RDNA__CONV_FORWARD ? 2 : mode == RDNA__CONV_DATA ? 0 : 1];
    rdna__conv_call call = {
        .mode = (rdna__conv_mode)mode, .conv = &conv, .x = &t[0].tensor, .weight = &t[1].tensor, .y = &t[2].tensor};
    for (int i = 0; i < 3; i++) {
      for (int64_t j = 0; j < operand_span(&t[i]); j++)
        operand_set(&t[i], j, &t[i] == out ? (double)NAN : (double)rdna__random_range(&random_state, -1, 1));
      operand_upload(&t[i]);
    }
    rdna_memory_stats before, after;
    assert_true(rdna__conv_winograd_applies(&call, 1));
    rdna_memory_reset_peaks(device);
    rdna_memory_get_stats(device, &before);
    assert_ok(rdna__conv_winograd(stream, "conv", &call));
    rdna_memory_get_stats(device, &after);
    assert_in_range(after.peak_allocated - before.peak_allocated, 1, MOST);
    operand_download(out);
    size_t bytes = (size_t)operand_span(out) * sizeof(float);
    float *got = malloc(bytes);
    memcpy(got, out->host, bytes);
    assert_ok(rdna__conv_direct(stream, "conv", &call));
    operand_download(out);
    for (int64_t j = 0; j < operand_span(out); j++)
      if ((double)got[j] != operand_get(out, j))
        fail_msg("mode %d [%lld]: %g, not %g", mode, (long long)j, (double)got[j], operand_get(out, j));
    free(got);
  }
  for (int i = 0; i < 3; i++) operand_free(&t[i]);
}

/* A grid has a line of groups for each channel. */
static void more_channels_than_a_grid_has_lines(void **state) {
  rdna_convolution conv = {RDNA_CONVOLUTION_INIT, .spatial_dims = 2, .stride = {1, 1}, .dilation = {1, 1}, .groups = 1};
  static const rdna__conv_mode modes[] = {RDNA__CONV_FORWARD, RDNA__CONV_DATA, RDNA__CONV_WEIGHT};
  for (int i = 0; i < 12; i++) {
    int64_t out = i & 1 ? 65536 : 65535, in = i & 2 ? 65536 : 65535;
    rdna_tensor x = rdna_tensor_contiguous(NULL, RDNA_F32, 4, (int64_t[]){1, in, 4, 4});
    rdna_tensor w = rdna_tensor_contiguous(NULL, RDNA_F32, 4, (int64_t[]){out, in, 3, 3});
    rdna_tensor y = rdna_tensor_contiguous(NULL, RDNA_F32, 4, (int64_t[]){1, out, 2, 2});
    rdna__conv_call call = {.mode = modes[i / 4], .conv = &conv, .x = &x, .weight = &w, .y = &y};
    assert_int_equal(rdna__conv_winograd_applies(&call, 1), i % 4 == 0);
  }
}

static void one_and_three_dimensions(void **state) {
  for (int t = 0; t < 3; t++) {
    problem p = {.dtype = types[t], .n = 3, .in = 6, .out = 4, .size = {17}, .window = {5}, .with_bias = true};
    p.conv = (rdna_convolution){RDNA_CONVOLUTION_INIT, .spatial_dims = 1, .stride = {2},
                                .pad_before = {4},     .dilation = {1},   .groups = 2};
    check(p);
    problem q = {.dtype = types[t], .n = 2, .in = 8, .out = 3, .size = {4, 5, 6}, .window = {2, 3, 1}};
    q.conv =
        (rdna_convolution){RDNA_CONVOLUTION_INIT,  .spatial_dims = 3,     .stride = {1, 2, 1}, .pad_before = {1, 0, 2},
                           .pad_after = {0, 1, 0}, .dilation = {1, 1, 2}, .groups = 1};
    check(q);
  }
}

static void groups_and_depthwise(void **state) {
  for (int t = 0; t < 3; t++) {
    problem p = square(types[t], 12, 18, 6, 3);
    p.conv.groups = 3, p.with_bias = true;
    check(p);
    p = square(types[t], 13, 13, 8, 3), p.conv.groups = 13, p.conv.pad_before[0] = p.conv.pad_after[0] = 1,
    p.with_bias = true;
    check(p);
    p.out = 26, p.conv.stride[1] = 2, p.activation = RDNA_ACTIVATION_SILU;
    check(p);
    p = square(types[t], 24, 24, 9, 3), p.conv.groups = 24, p.conv.pad_before[0] = p.conv.pad_after[1] = 1,
    p.with_bias = true;
    check(p);
  }
}

static void nothing_to_do(void **state) {
  problem p = square(RDNA_F32, 3, 5, 4, 3);
  p.n = 0;
  check_mode(&p, FORWARD);
  check_mode(&p, DATA);
  check_mode(&p, WEIGHT);                     /* a gradient of nothing is zero */
  p.n = 1, p.size[0] = 2, p.with_bias = true; /* smaller than the window: no positions */
  check_mode(&p, FORWARD);
}

static void nan_stays_in_its_window(void **state) {
  rdna_convolution conv = {RDNA_CONVOLUTION_INIT, .spatial_dims = 1, .stride = {1}, .pad_before = {1},
                           .pad_after = {1},      .dilation = {1},   .groups = 1};
  operand x = operand_make(RDNA_F32, 3, (int64_t[]){1, 1, 9}, NULL, 0);
  operand w = operand_make(RDNA_F32, 3, (int64_t[]){1, 1, 3}, NULL, 0);
  operand y = operand_make(RDNA_F32, 3, (int64_t[]){1, 1, 9}, NULL, 0);
  operand_fill(&x, 1);
  operand_fill(&w, 1);
  operand_set(&x, 4, (double)NAN);
  operand_upload(&x);
  operand_upload(&y);
  assert_ok(rdna_op_conv(stream, &conv, &x.tensor, &w.tensor, NULL, &y.tensor));
  operand_download(&y);
  for (int64_t i = 0; i < 9; i++) assert_int_equal(isnan(operand_get(&y, i)) != 0, i >= 3 && i <= 5);
  operand_free(&x);
  operand_free(&w);
  operand_free(&y);
}

static void refuses(void **state) {
  float memory[400];
  rdna_convolution c = {RDNA_CONVOLUTION_INIT, .spatial_dims = 2, .stride = {1, 1}, .dilation = {1, 1}, .groups = 1};
  rdna_tensor x = rdna_tensor_contiguous(memory, RDNA_F32, 4, (int64_t[]){1, 2, 5, 6});
  rdna_tensor w = rdna_tensor_contiguous(memory + 60, RDNA_F32, 4, (int64_t[]){4, 2, 3, 3});
  rdna_tensor y = rdna_tensor_contiguous(memory + 140, RDNA_F32, 4, (int64_t[]){1, 4, 3, 4}), t;
#define REFUSED(c, x, w, y, code, text, other) assert_refused(rdna_op_conv(stream, c, x, w, NULL, y), code, text, other)
  rdna_convolution bad = c;
  bad.stride[1] = 0;
  REFUSED(&bad, &x, &w, &y, RDNA_INVALID_ARGUMENT, "dimension 1", "stride 0");
  bad = c, bad.spatial_dims = 4;
  REFUSED(&bad, &x, &w, &y, RDNA_INVALID_ARGUMENT, "conv", "spatial_dims 4");
  bad = c, bad.groups = 0;
  REFUSED(&bad, &x, &w, &y, RDNA_INVALID_ARGUMENT, "0 groups", "conv");
  bad = c, bad.groups = 2;
  REFUSED(&bad, &x, &w, &y, RDNA_INVALID_ARGUMENT, "2 channels", "2 groups");
  bad = c, bad.pad_before[0] = 1;
  REFUSED(&bad, &x, &w, &y, RDNA_INVALID_ARGUMENT, "y is 3", "make 4");
  t = y, t.shape[1] = 3;
  REFUSED(&c, &x, &w, &t, RDNA_INVALID_ARGUMENT, "(1, 3, ...)", "(1, 4, ...)");
  t = y, t.stride[2] = 2;
  REFUSED(&c, &x, &w, &t, RDNA_INVALID_ARGUMENT, "y is f32", "overlap");
  t = x, t.stride[2] = -6;
  REFUSED(&c, &t, &w, &y, RDNA_UNSUPPORTED, "x is f32", "-6");
  t = y, t.data = memory + 100;
  REFUSED(&c, &x, &w, &t, RDNA_INVALID_ARGUMENT, "y at", "weight");
  t = w, t.dtype = RDNA_F16;
  REFUSED(&c, &x, &t, &y, RDNA_INVALID_ARGUMENT, "weight", "f16");
  t = x, t.rank = 3;
  REFUSED(&c, &t, &w, &y, RDNA_INVALID_ARGUMENT, "x is", "3");
  rdna_tensor bias = rdna_tensor_contiguous(memory + 300, RDNA_F32, 1, (int64_t[]){3});
  assert_refused(rdna_op_conv(stream, &c, &x, &w, &bias, &y), RDNA_INVALID_ARGUMENT, "bias", "4");
  assert_refused(rdna_op_conv(NULL, &c, &x, &w, NULL, &y), RDNA_INVALID_ARGUMENT, "conv", "stream is NULL");
  t = x, t.data = memory + 75;
  assert_refused(rdna_op_conv_backward_data(stream, &c, &y, &w, NULL, &t), RDNA_INVALID_ARGUMENT, "conv_backward_data",
                 "weight");
#undef REFUSED
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(windows_strides_and_padding),
      cmocka_unit_test(many_channels),
      cmocka_unit_test(copies_in_another_layout),
      cmocka_unit_test(products_of_windows),
      cmocka_unit_test(one_channel_a_group),
      cmocka_unit_test(windows_of_three),
      cmocka_unit_test(gradient_of_windows_of_three),
      cmocka_unit_test(one_large_image),
      cmocka_unit_test(more_channels_than_a_grid_has_lines),
      cmocka_unit_test(one_and_three_dimensions),
      cmocka_unit_test(groups_and_depthwise),
      cmocka_unit_test(nothing_to_do),
      cmocka_unit_test(nan_stays_in_its_window),
      cmocka_unit_test(refuses),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
