#include "rdna/op/pool.h"
#include "math/common/test/volume.h"

static const rdna_dtype types[] = {RDNA_F32, RDNA_F16, RDNA_BF16, RDNA_F64};

/* With the three dimensions of a grid; adaptive if window is 0 there. */
struct axis {
  int64_t in, out, window, stride, pad_before, pad_after, dilation;
};

struct problem {
  rdna_dtype dtype;
  rdna_pooling pool; /* its dims always */
  bool adaptive;
  int64_t n, channels, in[3], out[3];
  int layout;
};

static struct axis axis_of(const struct problem *p, int d) { /* of z, y, x */
  int from = d - (3 - p->pool.spatial_dims);
  if (from < 0) return (struct axis){1, 1, 1, 1, 0, 0, 1};
  if (p->adaptive) return (struct axis){.in = p->in[from], .out = p->out[from], .dilation = 1};
  return (struct axis){p->in[from],
                       p->out[from],
                       p->pool.window[from],
                       p->pool.stride[from],
                       p->pool.pad_before[from],
                       p->pool.pad_after[from],
                       p->pool.dilation[from]};
}

/* Position |t| of window |o|, and whether there is such a tap. It may lie outside of the input. */
static bool tap(const struct axis *a, int64_t o, int64_t t, int64_t *position) {
  if (a->window == 0) {
    int64_t begin = (int64_t)floor((double)(o * a->in) / (double)a->out);
    *position = begin + t;
    return *position < (int64_t)ceil((double)((o + 1) * a->in) / (double)a->out);
  }
  *position = o * a->stride - a->pad_before + t * a->dilation;
  return t < a->window;
}

typedef void visitor(void *context, const int64_t position[3], const int64_t window[3], bool inside, bool padding);

/* Every tap of a window, in order; |padding|: it is not past the padding after the input. */
static void each_tap(const struct axis a[3], const int64_t o[3], visitor *visit, void *context) {
  int64_t at[3];
  for (int64_t z = 0; tap(&a[0], o[0], z, &at[0]); z++) {
    for (int64_t y = 0; tap(&a[1], o[1], y, &at[1]); y++) {
      for (int64_t x = 0; tap(&a[2], o[2], x, &at[2]); x++) {
        bool inside = true, padding = true;
        for (int d = 0; d < 3; d++) {
          inside = inside && at[d] >= 0 && at[d] < a[d].in;
          padding = padding && at[d] < a[d].in + a[d].pad_after;
        }
        visit(context, at, o, inside, padding);
      }
    }
  }
}

struct found {
  const grid *x;
  int64_t n, c;
  double best, sum, reach;
  int64_t at, count, padded;
};
static void look(void *context, const int64_t p[3], const int64_t window[3], bool inside, bool padding) {
  struct found *f = context;
  f->padded += padding;
  if (!inside) return;
  double v = grid_get(f->x, f->n, f->c, p[0], p[1], p[2]);
  f->count++;
  f->sum += v, f->reach += fabs(v);
  if (f->at >= 0 && !(v > f->best) && !isnan(v)) return;
  f->best = v, f->at = (p[0] * f->x->size[3] + p[1]) * f->x->size[4] + p[2];
}

static struct found find(const struct problem *p, const grid *x, int64_t n, int64_t c, const int64_t o[3]) {
  struct axis a[3] = {axis_of(p, 0), axis_of(p, 1), axis_of(p, 2)};
  struct found f = {.x = x, .n = n, .c = c, .best = -(double)INFINITY, .at = -1};
  each_tap(a, o, look, &f);
  return f;
}

static double divisor_of(const struct problem *p, const struct found *f) {
  if (!p->adaptive && p->pool.divisor) return (double)p->pool.divisor;
  return (double)(!p->adaptive && p->pool.count_padding ? f->padded : f->count);
}

static double error_of(rdna_dtype dtype) { return 64 * (dtype == RDNA_F64 ? 0x1p-53 : 0x1p-24); }

struct share {
  double *sums, *reach;
  const grid *x;
  int64_t n, c;
  double value;
};
static void add_share(void *context, const int64_t p[3], const int64_t window[3], bool inside, bool padding) {
  struct share *s = context;
  if (!inside) return;
  int64_t i = grid_at(s->x, s->n, s->c, p[0], p[1], p[2]);
  s->sums[i] += s->value, s->reach[i] += fabs(s->value);
}

static void check_gradient(const struct problem *p, const grid *dx, const double *sums, const double *reach) {
  GRID_EACH(dx, n, c, z, y, x) {
    int64_t i = grid_at(dx, n, c, z, y, x);
    assert_close(p->dtype, grid_get(dx, n, c, z, y, x), sums[i], error_of(p->dtype) * reach[i], "dx", i);
  }
  grid_check_gaps(dx);
}

static void check_max(const struct problem *p, const grid *x) {
  grid out = grid_make(p->dtype, p->n, p->channels, p->pool.spatial_dims, p->out, p->layout);
  grid indices = grid_make(RDNA_I64, p->n, p->channels, p->pool.spatial_dims, p->out, p->layout);
  grid dx = grid_make(p->dtype, p->n, p->channels, p->pool.spatial_dims, p->in, p->layout);
  grid dout = grid_make(p->dtype, p->n, p->channels, p->pool.spatial_dims, p->out, p->layout);
  const rdna_tensor *tx = &x->o.tensor, *to = &out.o.tensor, *ti = &indices.o.tensor, *td = &dout.o.tensor;
  grid_fill(&dout);
  if (p->adaptive) {
    assert_ok(rdna_op_adaptive_max_pool(stream, tx, to, ti));
    assert_ok(rdna_op_adaptive_max_pool_backward(stream, td, ti, &dx.o.tensor));
  } else {
    assert_ok(rdna_op_max_pool(stream, &p->pool, tx, to, ti));
    assert_ok(rdna_op_max_pool_backward(stream, &p->pool, td, ti, &dx.o.tensor));
  }
  grid *back[] = {&out, &indices, &dx};
  for (int k = 0; k < 3; k++) operand_download(&back[k]->o);
  double *sums = calloc((size_t)(2 * operand_span(&dx.o) + 1), sizeof *sums), *reach = sums + operand_span(&dx.o);
  GRID_EACH(&out, n, c, z, y, w) {
    struct found f = find(p, x, n, c, (int64_t[]){z, y, w});
    assert_close(p->dtype, grid_get(&out, n, c, z, y, w), f.best, 0, "max", w);
    assert_int_equal((int64_t)grid_get(&indices, n, c, z, y, w), f.at);
    if (f.at < 0) continue;
    int64_t i = grid_at(&dx, n, c, f.at / (dx.size[3] * dx.size[4]), f.at / dx.size[4] % dx.size[3], f.at % dx.size[4]);
    double v = grid_get(&dout, n, c, z, y, w);
    sums[i] += v, reach[i] += fabs(v);
  }
  grid_check_gaps(&out), grid_check_gaps(&indices);
  check_gradient(p, &dx, sums, reach);
  free(sums);
  if (!p->adaptive) assert_ok(rdna_op_max_pool(stream, &p->pool, tx, to, NULL));
  grid *all[] = {&out, &indices, &dx, &dout};
  for (int k = 0; k < 4; k++) grid_free(all[k]);
}

static void check_average(const struct problem *p, const grid *x) {
  grid out = grid_make(p->dtype, p->n, p->channels, p->pool.spatial_dims, p->out, p->layout);
  grid dx = grid_make(p->dtype, p->n, p->channels, p->pool.spatial_dims, p->in, p->layout);
  grid dout = grid_make(p->dtype, p->n, p->channels, p->pool.spatial_dims, p->out, p->layout);
  grid_fill(&dout);
  if (p->adaptive) {
    assert_ok(rdna_op_adaptive_average_pool(stream, &x->o.tensor, &out.o.tensor));
    assert_ok(rdna_op_adaptive_average_pool_backward(stream, &dout.o.tensor, &dx.o.tensor));
  } else {
    assert_ok(rdna_op_average_pool(stream, &p->pool, &x->o.tensor, &out.o.tensor));
    assert_ok(rdna_op_average_pool_backward(stream, &p->pool, &dout.o.tensor, &dx.o.tensor));
  }
  operand_download(&out.o), operand_download(&dx.o);
  double *sums = calloc((size_t)(2 * operand_span(&dx.o) + 1), sizeof *sums);
  struct share s = {.sums = sums, .reach = sums + operand_span(&dx.o), .x = &dx};
  struct axis a[3] = {axis_of(p, 0), axis_of(p, 1), axis_of(p, 2)};
  GRID_EACH(&out, n, c, z, y, w) {
    const int64_t o[] = {z, y, w};
    struct found f = find(p, x, n, c, o);
    double divisor = f.count > 0 ? divisor_of(p, &f) : 1;
    assert_close(p->dtype, grid_get(&out, n, c, z, y, w), f.sum / divisor, error_of(p->dtype) * f.reach / fabs(divisor),
                 "average", w);
    s.n = n, s.c = c, s.value = grid_get(&dout, n, c, z, y, w) / divisor;
    each_tap(a, o, add_share, &s);
  }
  grid_check_gaps(&out);
  check_gradient(p, &dx, sums, s.reach);
  free(sums);
  grid *all[] = {&out, &dx, &dout};
  for (int k = 0; k < 3; k++) grid_free(all[k]);
}

/* Equal values are common in small integers, so that the first of equals is told from others. */
static grid make_x(const struct problem *p, bool special) {
  grid x = grid_make(p->dtype, p->n, p->channels, p->pool.spatial_dims, p->in, p->layout);
  for (int64_t i = 0; i < operand_span(&x.o); i++) {
    uint64_t pick = rdna__random_below(&random_state, 40);
    operand_set(&x.o, i, (double)rdna__random_range(&random_state, -9, 9));
    if (special && pick < 3) operand_set(&x.o, i, (double)(pick == 0 ? NAN : pick == 1 ? INFINITY : -INFINITY));
  }
  operand_upload(&x.o);
  grid_keep(&x);
  return x;
}

static void pick_windows(struct problem *p, bool average) {
  for (int d = 0; d < p->pool.spatial_dims; d++) {
    p->pool.window[d] = rdna__random_range(&random_state, 1, 4);
    p->pool.stride[d] = rdna__random_range(&random_state, 1, 4);
    p->pool.dilation[d] = average ? 1 : rdna__random_range(&random_state, 1, 2);
    p->pool.pad_before[d] = rdna__random_range(&random_state, 0, p->pool.window[d] / 2);
    p->pool.pad_after[d] = rdna__random_range(&random_state, 0, p->pool.window[d] / 2);
    p->out[d] = rdna_pooling_size(&p->pool, d, p->in[d]);
    if (p->out[d] < 1) d--; /* again */
  }
}

static void formulas(void **state) {
  for (int t = 0; t < 4; t++) {
    for (int k = 0; k < 72; k++) {
      struct problem p = {.dtype = types[t], .adaptive = k % 4 == 3, .layout = k % 5 % LAYOUTS, .n = k == 8 ? 0 : 2};
      bool average = k & 1 ? k & 4 : k & 2;
      p.channels = k % 3 == 1 ? 16 : rdna__random_range(&random_state, 1, 9);
      p.pool = (rdna_pooling){RDNA_POOLING_INIT, .spatial_dims = 1 + k % 3};
      for (int d = 0; d < p.pool.spatial_dims; d++) {
        p.in[d] = rdna__random_range(&random_state, 1, p.pool.spatial_dims == 3 ? 6 : 12);
        p.out[d] = k % 8 == 7 ? 1 : rdna__random_range(&random_state, 1, p.in[d] + 2);
      }
      if (!p.adaptive) {
        p.pool.ceil = k / 6 % 2, p.pool.count_padding = k / 12 % 2, p.pool.divisor = k % 10 == 6 ? -3 : 0;
        pick_windows(&p, average);
      }
      grid x = make_x(&p, !average && k % 3 == 0);
      if (average) {
        check_average(&p, &x);
      } else {
        check_max(&p, &x);
      }
      grid_free(&x);
    }
  }
}

/* What a residual network has, where tensors are large enough for many groups. */
static void usual_sizes(void **state) {
  for (int layout = 0; layout < 2; layout++) {
    struct problem p = {
        .dtype = layout ? RDNA_F16 : RDNA_F32, .n = 1, .channels = 16, .in = {56, 56}, .layout = layout};
    p.pool = (rdna_pooling){RDNA_POOLING_INIT, 2, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, false, true, 0};
    for (int d = 0; d < 2; d++) p.out[d] = rdna_pooling_size(&p.pool, d, 56);
    assert_int_equal(p.out[0], 28);
    grid x = make_x(&p, false);
    check_max(&p, &x);
    check_average(&p, &x);
    p.adaptive = true, p.out[0] = p.out[1] = 1;
    check_average(&p, &x);
    grid_free(&x);
  }
}

/* Contiguous rows of whole vectors, windows 2 apart; the last of each three has nothing of the kind. */
static void strips(void **state) {
  for (int k = 0; k < 36; k++) {
    struct problem p = {.dtype = types[k % 3], .n = 2, .channels = 3, .layout = k % 7 == 6 ? GAPS : CONTIGUOUS};
    int64_t window = k % 2 ? 2 : 3;
    p.pool = (rdna_pooling){RDNA_POOLING_INIT, .spatial_dims = 2, .dilation = {1, 1}, .stride = {2, 2},
                            .window = {window, window}};
    p.in[0] = rdna__random_range(&random_state, window, 9), p.in[1] = 8 * rdna__random_range(&random_state, 1, 4);
    p.pool.pad_before[1] = window - 2, p.pool.pad_before[0] = rdna__random_range(&random_state, 0, window - 1);
    p.pool.pad_after[0] = rdna__random_range(&random_state, 0, 1), p.pool.ceil = k % 5 == 0;
    if (k % 9 == 8) p.pool.stride[k / 9 % 2] = 3;
    if (k % 9 == 7) p.pool.pad_before[1] = 0;
    for (int d = 0; d < 2; d++) p.out[d] = rdna_pooling_size(&p.pool, d, p.in[d]);
    grid x = make_x(&p, k % 2);
    check_max(&p, &x);
    grid_free(&x);
  }
}

/* Counted by hand. */
static void sizes(void **state) {
  rdna_pooling p = {RDNA_POOLING_INIT, 1, {2}, {2}, {0}, {0}, {1}, false, false, 0};
  assert_int_equal(rdna_pooling_size(&p, 0, 5), 2);
  assert_int_equal(rdna_pooling_size(&p, 0, 1), 0);
  p.ceil = true;
  assert_int_equal(rdna_pooling_size(&p, 0, 5), 3);
  assert_int_equal(rdna_pooling_size(&p, 0, 1), 1);
  p.pad_before[0] = p.pad_after[0] = 1; /* a third window of 3 would begin in the padding after it */
  assert_int_equal(rdna_pooling_size(&p, 0, 3), 2);
  p.window[0] = 3, p.dilation[0] = 2, p.stride[0] = 1, p.ceil = false;
  assert_int_equal(rdna_pooling_size(&p, 0, 7), 5);
}

static void window_of_nothing_but_padding(void **state) {
  struct problem p = {.dtype = RDNA_F32, .n = 1, .channels = 1, .in = {1}, .out = {2}};
  p.pool =
      (rdna_pooling){RDNA_POOLING_INIT, 1, {2}, {1}, {2}, {2}, {3}, false, false, 0}; /* taps -2 and 1, then -1 and 2 */
  grid x = make_x(&p, false);
  check_max(&p, &x);
  grid_free(&x);
}

static void wrong_arguments_are_refused_and_write_nothing(void **state) {
  const rdna_status bad = RDNA_INVALID_ARGUMENT;
  const int64_t in[] = {6, 6}, windows[] = {3, 3}, other[] = {4, 3};
  grid x = grid_make(RDNA_F32, 1, 2, 2, in, CONTIGUOUS), out = grid_make(RDNA_F32, 1, 2, 2, windows, CONTIGUOUS);
  grid indices = grid_make(RDNA_I64, 1, 2, 2, windows, CONTIGUOUS), t = grid_make(RDNA_F32, 1, 2, 2, other, CONTIGUOUS);
  grid h = grid_make(RDNA_F16, 1, 2, 2, windows, CONTIGUOUS), c3 = grid_make(RDNA_F32, 1, 3, 2, windows, CONTIGUOUS);
  grid empty = grid_make(RDNA_F32, 1, 2, 2, (const int64_t[]){0, 6}, CONTIGUOUS);
  const rdna_tensor *X = &x.o.tensor, *O = &out.o.tensor, *I = &indices.o.tensor;
  rdna_pooling p = {RDNA_POOLING_INIT, 2, {2, 2}, {2, 2}, {0}, {0}, {1, 1}, false, false, 0}, q = p;
  assert_refused(rdna_op_max_pool(stream, &p, X, &t.o.tensor, I), bad, "out is f32 (1, 2, 4, 3)", "3 windows");
  assert_refused(rdna_op_max_pool(stream, &p, X, &h.o.tensor, I), bad, "out is f16", "x is f32");
  assert_refused(rdna_op_max_pool(stream, &p, X, &c3.o.tensor, I), bad, "(1, 3, 3, 3)", "channels must be equal");
  assert_refused(rdna_op_max_pool(stream, &p, X, O, O), bad, "indices is f32", "i64");
  assert_refused(rdna_op_max_pool(stream, NULL, X, O, I), bad, "max_pool", "NULL");
  assert_refused(rdna_op_max_pool(NULL, &p, X, O, I), bad, "stream", "NULL");
  assert_refused(rdna_op_max_pool_backward(stream, &p, O, NULL, X), bad, "indices is NULL", "tensor");
  assert_refused(rdna_op_max_pool_backward(stream, &p, &t.o.tensor, I, X), bad, "dout is f32 (1, 2, 4, 3)", "dx is");
  q.stride[1] = 0;
  assert_refused(rdna_op_average_pool(stream, &q, X, O), bad, "dimension 1", "stride 0");
  q = p, q.dilation[0] = 2;
  assert_refused(rdna_op_average_pool(stream, &q, X, O), bad, "dilation 2", "average");
  q = p, q.spatial_dims = 3, q.window[2] = q.stride[2] = q.dilation[2] = 1;
  assert_refused(rdna_op_average_pool(stream, &q, X, O), bad, "x is f32 (1, 2, 6, 6)", "5");
  q = p, q.divisor = INT64_C(1) << 40;
  assert_refused(rdna_op_average_pool(stream, &q, X, O), bad, "divisor", "1099511627776");
  rdna_tensor same = out.o.tensor;
  same.stride[3] = 0;
  assert_refused(rdna_op_average_pool(stream, &p, X, &same), bad, "out is f32 (1, 2, 3, 3)", "stride of 0");
  same = out.o.tensor, same.data = x.o.tensor.data;
  assert_refused(rdna_op_average_pool(stream, &p, X, &same), bad, "out", "overlap");
  assert_refused(rdna_op_adaptive_average_pool(stream, &empty.o.tensor, O), bad, "x is f32 (1, 2, 0, 6)", "not be 0");
  operand *untouched[] = {&x.o, &out.o, &indices.o};
  for (int k = 0; k < 3; k++) {
    operand_download(untouched[k]);
    for (int64_t i = 0; i < operand_span(untouched[k]); i++) assert_true(operand_is_poison(untouched[k], i));
  }
  grid *all[] = {&x, &out, &indices, &t, &h, &c3, &empty};
  for (int k = 0; k < 7; k++) grid_free(all[k]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(formulas),
      cmocka_unit_test(usual_sizes),
      cmocka_unit_test(strips),
      cmocka_unit_test(sizes),
      cmocka_unit_test(window_of_nothing_but_padding),
      cmocka_unit_test(wrong_arguments_are_refused_and_write_nothing),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
