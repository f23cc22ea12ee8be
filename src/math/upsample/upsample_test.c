#include "rdna/op/upsample.h"
#include "math/common/test/volume.h"

static const rdna_dtype types[] = {RDNA_F32, RDNA_F16, RDNA_BF16, RDNA_F64};

struct problem {
  rdna_dtype dtype;
  rdna_upsample options;
  int dims, layout;
  int64_t n, channels, in[3], out[3];
};

/* The cubic convolution kernel of Keys, 1981, with a = -3/4, at distance |d|. */
static double cubic(double d) {
  double a = -0.75;
  d = fabs(d);
  if (d <= 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
  return d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a : 0;
}

/* Writes the weight of each input, (in), in output |o| along dimension |d|, 0 to 2 for z, y, x. */
static void weights_of(const struct problem *p, int d, int64_t o, double *weights) {
  int from = d - (3 - p->dims);
  int64_t in = from < 0 ? 1 : p->in[from], out = from < 0 ? 1 : p->out[from];
  double factor = from < 0 ? 0 : p->options.factor[from];
  for (int64_t i = 0; i < in; i++) weights[i] = 0;
  if (from < 0) {
    weights[0] = 1;
    return;
  }
  if (p->options.mode <= RDNA_UPSAMPLE_MODE_NEAREST_EXACT) { /* the header says that these places are in f32 */
    float scale = factor > 0 ? (float)(1 / factor) : (float)in / (float)out;
    int64_t i = (int64_t)floorf(((float)o + (p->options.mode == RDNA_UPSAMPLE_MODE_NEAREST ? 0 : 0.5f)) * scale);
    weights[i < in ? i : in - 1] = 1;
    return;
  }
  double scale = p->options.align_corners ? (out > 1 ? (double)(in - 1) / (double)(out - 1) : 0)
                 : factor > 0             ? 1 / factor
                                          : (double)in / (double)out;
  double place = p->options.align_corners ? (double)o * scale : ((double)o + 0.5) * scale - 0.5;
  bool linear = p->options.mode == RDNA_UPSAMPLE_MODE_LINEAR;
  if (linear) place = fmin(fmax(place, 0), (double)(in - 1));
  for (int64_t i = (int64_t)floor(place) - 1; i <= (int64_t)floor(place) + 2; i++) {
    int64_t inside = i < 0 ? 0 : i < in ? i : in - 1;
    weights[inside] += linear ? fmax(0, 1 - fabs(place - (double)i)) : cubic(place - (double)i);
  }
}

static int64_t in_most(const struct problem *p) {
  int64_t most = 1;
  for (int d = 0; d < p->dims; d++) most = p->in[d] > most ? p->in[d] : most;
  return most;
}

enum { MOST = 64 };

struct weights {
  double at[3][MOST][MOST]; /* dimension, output, input */
};

static void check(const struct problem *p) {
  static struct weights w;
  grid x = grid_make(p->dtype, p->n, p->channels, p->dims, p->in, p->layout);
  grid out = grid_make(p->dtype, p->n, p->channels, p->dims, p->out, p->layout);
  grid dx = grid_make(p->dtype, p->n, p->channels, p->dims, p->in, p->layout);
  grid dout = grid_make(p->dtype, p->n, p->channels, p->dims, p->out, p->layout);
  grid_fill(&x), grid_fill(&dout);
  assert_ok(rdna_op_upsample(stream, &p->options, &x.o.tensor, &out.o.tensor));
  assert_ok(rdna_op_upsample_backward(stream, &p->options, &dout.o.tensor, &dx.o.tensor));
  operand_download(&out.o), operand_download(&dx.o);
  for (int d = 0; d < 3; d++) {
    for (int64_t o = 0; o < out.size[2 + d]; o++) weights_of(p, d, o, w.at[d][o]);
  }
  double *sums = calloc((size_t)(2 * operand_span(&dx.o) + 1), sizeof *sums), *reach = sums + operand_span(&dx.o);
  double unit = p->dtype == RDNA_F64 ? 0x1p-53 : 0x1p-24, error = unit * 32 * (double)(in_most(p) + 4);
  GRID_EACH(&out, n, c, z, y, o) {
    double sum = 0, top = 0, g = grid_get(&dout, n, c, z, y, o);
    for (int64_t i = 0; i < x.size[2]; i++) {
      for (int64_t j = 0; j < x.size[3]; j++) {
        double zy = w.at[0][z][i] * w.at[1][y][j];
        for (int64_t k = 0; k < x.size[4]; k++) {
          double v = grid_get(&x, n, c, i, j, k), weight = zy * w.at[2][o][k];
          int64_t at = grid_at(&dx, n, c, i, j, k);
          sum += weight * v, top = fmax(top, fabs(v));
          sums[at] += weight * g;
          if (weight != 0) reach[at] += fabs(g);
        }
      }
    }
    assert_close(p->dtype, grid_get(&out, n, c, z, y, o), sum, error * top, "out", o);
  }
  GRID_EACH(&dx, n, c, z, y, i) {
    int64_t at = grid_at(&dx, n, c, z, y, i);
    assert_close(p->dtype, grid_get(&dx, n, c, z, y, i), sums[at], error * (reach[at] + 4), "dx", at);
  }
  grid_check_gaps(&out), grid_check_gaps(&dx);
  free(sums);
  grid *all[] = {&x, &out, &dx, &dout};
  for (int k = 0; k < 4; k++) grid_free(all[k]);
}

static void formulas(void **state) {
  for (int t = 0; t < 4; t++) {
    for (int k = 0; k < 80; k++) {
      struct problem p = {.dtype = types[t], .layout = k % 5 % LAYOUTS, .n = k == 9 ? 0 : 1 + k % 2};
      p.options = (rdna_upsample){RDNA_UPSAMPLE_INIT, .mode = (rdna_upsample_mode)(k % 4)};
      p.options.align_corners = k % 4 >= 2 && k / 4 % 2;
      p.dims = p.options.mode == RDNA_UPSAMPLE_MODE_CUBIC ? 2 : 1 + k / 4 % 3;
      p.channels = k % 3 == 1 ? 16 : rdna__random_range(&random_state, 1, 9);
      for (int d = 0; d < p.dims; d++) {
        p.in[d] = rdna__random_range(&random_state, 1, p.dims == 3 ? 4 : 8);
        p.out[d] = k % 5 == 4 ? 2 * p.in[d] : rdna__random_range(&random_state, 1, p.dims == 3 ? 7 : 17);
        if (k % 10 == 7) p.options.factor[d] = (double)p.out[d] / (double)p.in[d] * 1.07;
      }
      check(&p);
    }
  }
}

/* Sizes at which a thread has several channels. */
static void usual_sizes(void **state) {
  for (int mode = 0; mode < RDNA_UPSAMPLE_MODE_COUNT; mode++) {
    struct problem p = {.dtype = RDNA_F32,
                        .options = {RDNA_UPSAMPLE_INIT, .mode = (rdna_upsample_mode)mode},
                        .dims = 2,
                        .n = 1,
                        .channels = 131,
                        .in = {6, 7},
                        .out = {50, 55},
                        .layout = CONTIGUOUS};
    check(&p);
    p.in[0] = 50, p.in[1] = 55, p.out[0] = 6, p.out[1] = 7, p.channels = 3;
    check(&p);
  }
}

/* Rows of four inputs, with outputs worked out by hand. */
static void by_hand(void **state) {
  static const struct {
    rdna_upsample options;
    int64_t out;
    double want[8];
  } lines[] = {
      {{RDNA_UPSAMPLE_INIT, RDNA_UPSAMPLE_MODE_NEAREST, false, {0}}, 6, {0, 0, 4, 8, 8, 12}},
      {{RDNA_UPSAMPLE_INIT, RDNA_UPSAMPLE_MODE_NEAREST_EXACT, false, {0}}, 3, {0, 8, 12}},
      {{RDNA_UPSAMPLE_INIT, RDNA_UPSAMPLE_MODE_NEAREST, false, {0}}, 3, {0, 4, 8}},
      {{RDNA_UPSAMPLE_INIT, RDNA_UPSAMPLE_MODE_LINEAR, false, {0}}, 8, {0, 1, 3, 5, 7, 9, 11, 12}},
      {{RDNA_UPSAMPLE_INIT, RDNA_UPSAMPLE_MODE_LINEAR, true, {0}}, 7, {0, 2, 4, 6, 8, 10, 12}},
      {{RDNA_UPSAMPLE_INIT, RDNA_UPSAMPLE_MODE_LINEAR, true, {0}}, 1, {0}},
      {{RDNA_UPSAMPLE_INIT, RDNA_UPSAMPLE_MODE_LINEAR, false, {2}}, 7, {0, 1, 3, 5, 7, 9, 11}},
  };
  for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
    const int64_t four = 4;
    grid x = grid_make(RDNA_F32, 1, 1, 1, &four, CONTIGUOUS),
         out = grid_make(RDNA_F32, 1, 1, 1, &lines[k].out, CONTIGUOUS);
    for (int i = 0; i < 4; i++) operand_set(&x.o, i, 4 * i);
    operand_upload(&x.o);
    assert_ok(rdna_op_upsample(stream, &lines[k].options, &x.o.tensor, &out.o.tensor));
    operand_download(&out.o);
    for (int64_t i = 0; i < lines[k].out; i++) {
      assert_close(RDNA_F32, operand_get(&out.o, i), lines[k].want[i], 1e-6, "line", i);
    }
    grid_free(&x), grid_free(&out);
  }
}

static void wrong_arguments_are_refused_and_write_nothing(void **state) {
  const rdna_status bad = RDNA_INVALID_ARGUMENT;
  const int64_t in[] = {3, 3, 3}, to[] = {6, 5, 4};
  grid x = grid_make(RDNA_F32, 1, 2, 2, in, CONTIGUOUS), out = grid_make(RDNA_F32, 1, 2, 2, to, CONTIGUOUS);
  grid c3 = grid_make(RDNA_F32, 1, 3, 2, to, CONTIGUOUS), h = grid_make(RDNA_F16, 1, 2, 2, to, CONTIGUOUS);
  grid line = grid_make(RDNA_F32, 1, 2, 1, in, CONTIGUOUS), longer = grid_make(RDNA_F32, 1, 2, 1, to, CONTIGUOUS);
  grid empty = grid_make(RDNA_F32, 1, 2, 2, (const int64_t[]){0, 3}, CONTIGUOUS);
  const rdna_tensor *X = &x.o.tensor, *O = &out.o.tensor;
  rdna_upsample options = {RDNA_UPSAMPLE_INIT, RDNA_UPSAMPLE_MODE_LINEAR, false, {0}}, q = options;
  assert_refused(rdna_op_upsample(stream, &options, X, &c3.o.tensor), bad, "out is f32 (1, 3, 6, 5)", "x is");
  assert_refused(rdna_op_upsample(stream, &options, X, &h.o.tensor), bad, "out is f16", "x is f32");
  assert_refused(rdna_op_upsample(stream, &options, X, &longer.o.tensor), bad, "(1, 2, 6)", "rank");
  assert_refused(rdna_op_upsample(stream, &options, &empty.o.tensor, O), bad, "x is f32 (1, 2, 0, 3)", "at least 1");
  assert_refused(rdna_op_upsample(stream, NULL, X, O), bad, "upsample", "options is NULL");
  assert_refused(rdna_op_upsample(NULL, &options, X, O), bad, "stream", "NULL");
  assert_refused(rdna_op_upsample_backward(stream, &options, O, NULL), bad, "dx is NULL", "tensor");
  q.mode = RDNA_UPSAMPLE_MODE_CUBIC;
  assert_refused(rdna_op_upsample(stream, &q, &line.o.tensor, &longer.o.tensor), bad, "x is f32 (1, 2, 3)", "4");
  q.mode = RDNA_UPSAMPLE_MODE_NEAREST, q.align_corners = true;
  assert_refused(rdna_op_upsample(stream, &q, X, O), bad, "align_corners", "nearest");
  q = options, q.factor[1] = -2;
  assert_refused(rdna_op_upsample(stream, &q, X, O), bad, "factor 1", "-2");
  q = options, q.mode = (rdna_upsample_mode)9;
  assert_refused(rdna_op_upsample(stream, &q, X, O), bad, "mode is 9", "3");
  rdna_tensor same = out.o.tensor;
  same.stride[3] = 0;
  assert_refused(rdna_op_upsample(stream, &options, X, &same), bad, "out is f32 (1, 2, 6, 5)", "stride of 0");
  same = out.o.tensor, same.data = x.o.tensor.data;
  assert_refused(rdna_op_upsample(stream, &options, X, &same), bad, "out", "overlap");
  operand *untouched[] = {&x.o, &out.o};
  for (int k = 0; k < 2; k++) {
    operand_download(untouched[k]);
    for (int64_t i = 0; i < operand_span(untouched[k]); i++) assert_true(operand_is_poison(untouched[k], i));
  }
  grid *all[] = {&x, &out, &c3, &h, &line, &longer, &empty};
  for (int k = 0; k < 7; k++) grid_free(all[k]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(formulas),
      cmocka_unit_test(usual_sizes),
      cmocka_unit_test(by_hand),
      cmocka_unit_test(wrong_arguments_are_refused_and_write_nothing),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
