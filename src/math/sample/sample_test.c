#include "rdna/op/sample.h"
#include "math/common/test/volume.h"

static const rdna_dtype types[] = {RDNA_F32, RDNA_F16, RDNA_BF16, RDNA_F64};

struct problem {
  rdna_dtype dtype;
  rdna_sample_mode mode;
  rdna_sample_padding padding;
  rdna_sample_units units;
  int dims, position_dims, layout;
  int64_t n, channels, size[3], positions[3]; /* without those that are not there */
  bool odd;                                   /* places that are NaN, infinite, far away */
  bool wide;                                  /* a grid of f32 beside 16 bits */
};

#define R(v) (p->dtype == RDNA_F64 ? (v) : (double)(float)(v))

enum { TAPS = 4 };
struct tap {
  int64_t at; /* -1: outside */
  double weight, slope;
};

/* Where the padding moves a place, and by what its slope is multiplied. */
static double padded(const struct problem *p, int64_t size, double at, double *slope) {
  double low = p->units == RDNA_SAMPLE_UNITS_CENTERS ? 0 : -0.5, high = (double)(size - 1) - low;
  if (p->padding == RDNA_SAMPLE_PADDING_ZEROS) return at;
  if (p->padding == RDNA_SAMPLE_PADDING_REFLECTION && isfinite(at)) {
    if (high == low) {
      *slope = 0;
      return 0;
    }
    while (at < low || at > high) { /* one mirror after the other */
      at = at < low ? 2 * low - at : 2 * high - at;
      *slope = -*slope;
    }
  }
  if (!(at > 0 && at < (double)(size - 1))) *slope = 0;
  return isnan(at) ? 0 : fmin(fmax(at, 0), (double)(size - 1));
}

/* The cubic convolution kernel of Keys, 1981, with a = -3/4, at distance |d| of any sign, and its derivative. */
static double cubic(double d) {
  d = fabs(d);
  if (isnan(d)) return d;
  return d <= 1 ? 1.25 * d * d * d - 2.25 * d * d + 1 : d < 2 ? -0.75 * (d * d * d - 5 * d * d + 8 * d - 4) : 0;
}
static double cubic_slope(double d) {
  double sign = d < 0 ? -1 : 1;
  d = fabs(d);
  if (isnan(d)) return d;
  return sign * (d <= 1 ? 3.75 * d * d - 4.5 * d : d < 2 ? -0.75 * (3 * d * d - 10 * d + 8) : 0);
}

static int64_t inside(double at, int64_t size) { return at >= 0 && at < (double)size ? (int64_t)at : -1; }

static int taps_of(const struct problem *p, int64_t size, double v, struct tap taps[TAPS]) {
  double n = (double)size, at = v, scale = 1;
  if (p->units == RDNA_SAMPLE_UNITS_CENTERS) at = R(R(R(v + 1) / 2) * (n - 1)), scale = (n - 1) / 2;
  if (p->units == RDNA_SAMPLE_UNITS_EDGES) at = R(R(R(R(v + 1) * n) - 1) / 2), scale = n / 2;
  if (p->mode != RDNA_SAMPLE_MODE_CUBIC) at = padded(p, size, at, &scale);
  if (p->mode == RDNA_SAMPLE_MODE_NEAREST) {
    taps[0] = (struct tap){inside(rint(at), size), 1, 0};
    return 1;
  }
  double low = floor(at);
  if (p->mode == RDNA_SAMPLE_MODE_LINEAR) {
    for (int k = 0; k < 2; k++) {
      taps[k] = (struct tap){inside(low + k, size), 1 - fabs(at - low - k), k ? scale : -scale};
    }
    return 2;
  }
  for (int k = 0; k < 4; k++) {
    double of = low + k - 1, ignored = 1;
    taps[k] = (struct tap){inside(rint(padded(p, size, of, &ignored)), size), cubic(at - low - (k - 1)),
                           scale * cubic_slope(at - low - (k - 1))};
  }
  return 4;
}

static rdna_dtype places_type(const struct problem *p) { return p->wide && p->dtype != RDNA_F64 ? RDNA_F32 : p->dtype; }
static grid make_places(const struct problem *p, int layout) {
  int64_t size[3] = {1, 1, 1};
  for (int d = 0; d < p->position_dims; d++) size[d] = p->positions[d];
  return grid_make(places_type(p), p->n, p->dims, p->position_dims, size, layout);
}
/* The operator's grid has coordinates last: the same memory with dimension 1 at the end. */
static rdna_tensor places_last(const grid *g) {
  rdna_tensor t = g->o.tensor;
  for (int d = 1; d + 1 < t.rank; d++) t.shape[d] = g->o.tensor.shape[d + 1], t.stride[d] = g->o.tensor.stride[d + 1];
  t.shape[t.rank - 1] = g->o.tensor.shape[1], t.stride[t.rank - 1] = g->o.tensor.stride[1];
  return t;
}

static void check(const struct problem *p) {
  grid x = grid_make(p->dtype, p->n, p->channels, p->dims, p->size, p->layout);
  grid dx = grid_make(p->dtype, p->n, p->channels, p->dims, p->size, p->layout);
  grid out = grid_make(p->dtype, p->n, p->channels, p->position_dims, p->positions, p->layout);
  grid dout = grid_make(p->dtype, p->n, p->channels, p->position_dims, p->positions, p->layout);
  grid places = make_places(p, (p->layout + 1) % LAYOUTS), dplaces = make_places(p, (p->layout + 2) % LAYOUTS);
  static const double odd[] = {NAN, INFINITY, -INFINITY, 1e30, -3e5, 1, -1};
  for (int64_t i = 0; i < operand_span(&places.o); i++) {
    double v = (rdna__random_unit(&random_state) * 2 - 1) * (i % 4 ? 1.1 : 3);
    if (p->units == RDNA_SAMPLE_UNITS_NUMBERS) v = (v + 1) * 3;
    double strange = odd[i / 5 % 7];
    if (p->padding == RDNA_SAMPLE_PADDING_REFLECTION && fabs(strange) > 100)
      strange = -9; /* exact however it is folded */
    operand_set(&places.o, i, p->odd && i % 5 == 2 ? strange : v);
  }
  operand_upload(&places.o), grid_keep(&places), grid_fill(&x), grid_fill(&dout);
  rdna_tensor at = places_last(&places), dat = places_last(&dplaces);
  assert_ok(rdna_op_sample(stream, p->mode, p->padding, p->units, &x.o.tensor, &at, &out.o.tensor));
  assert_ok(rdna_op_sample_backward(stream, p->mode, p->padding, p->units, &dout.o.tensor, &x.o.tensor, &at,
                                    &dx.o.tensor, &dat));
  operand_download(&out.o), operand_download(&dx.o), operand_download(&dplaces.o);
  double *sums = calloc((size_t)(2 * operand_span(&dx.o) + 1), sizeof *sums), *reach = sums + operand_span(&dx.o);
  double unit = p->dtype == RDNA_F64 ? 0x1p-48 : 0x1p-18;
  for (int64_t n = 0; n < p->n; n++) {
    for (int64_t i = 0; i < out.size[2]; i++) {
      for (int64_t j = 0; j < out.size[3]; j++) {
        for (int64_t k = 0; k < out.size[4]; k++) {
          struct tap t[3][TAPS] = {{{0, 1, 0}}};
          int count[3] = {1, 1, 1};
          double by[3] = {0}, by_top[3] = {0};
          for (int d = 3 - p->dims; d < 3; d++)
            count[d] = taps_of(p, x.size[2 + d], grid_get(&places, n, 2 - d, i, j, k), t[d]);
          for (int64_t c = 0; c < p->channels; c++) {
            double sum = 0, top = 0, g = grid_get(&dout, n, c, i, j, k);
            for (int a = 0; a < count[0] * count[1] * count[2]; a++) {
              const struct tap *z = &t[0][a / count[2] / count[1]], *y = &t[1][a / count[2] % count[1]],
                               *w = &t[2][a % count[2]];
              if (p->mode != RDNA_SAMPLE_MODE_NEAREST) sum += 0 * (z->weight * y->weight * w->weight);
              double slopes[3] = {z->slope * y->weight * w->weight, z->weight * y->slope * w->weight,
                                  z->weight * y->weight * w->slope};
              for (int d = 0; d < 3; d++) by[d] += 0 * slopes[d];
              if (z->at < 0 || y->at < 0 || w->at < 0) continue;
              double v = grid_get(&x, n, c, z->at, y->at, w->at), weight = z->weight * y->weight * w->weight;
              int64_t to = grid_at(&dx, n, c, z->at, y->at, w->at);
              sum += weight * v, top += fabs(v), sums[to] += weight * g, reach[to] += fabs(g);
              for (int d = 0; d < 3; d++) by[d] += slopes[d] * v * g, by_top[d] += fabs(v * g) * 10;
            }
            double error = p->mode == RDNA_SAMPLE_MODE_NEAREST ? 0 : unit * 16 * top;
            assert_close(p->dtype, grid_get(&out, n, c, i, j, k), sum, error, "out", (i * 100 + j) * 100 + k);
          }
          for (int d = 3 - p->dims; d < 3; d++) {
            assert_close(places_type(p), grid_get(&dplaces, n, 2 - d, i, j, k), by[d], unit * 64 * by_top[d], "dgrid",
                         (i * 100 + j) * 100 + k);
          }
        }
      }
    }
  }
  GRID_EACH(&dx, n, c, z, y, i) {
    int64_t to = grid_at(&dx, n, c, z, y, i);
    assert_close(p->dtype, grid_get(&dx, n, c, z, y, i), sums[to], unit * 16 * reach[to], "dx", to);
  }
  grid_check_gaps(&out), grid_check_gaps(&dx), grid_check_gaps(&dplaces);
  free(sums);
  grid *all[] = {&x, &dx, &out, &dout, &places, &dplaces};
  for (int k = 0; k < 6; k++) grid_free(all[k]);
}

static void formulas(void **state) {
  for (int t = 0; t < 4; t++) {
    for (int k = 0; k < 72; k++) {
      struct problem p = {.dtype = types[t],
                          .layout = k % 5 % LAYOUTS,
                          .n = k == 9 ? 0 : 1 + k % 2,
                          .odd = k % 7 == 3,
                          .wide = k % 11 < 5};
      p.mode = (rdna_sample_mode)(k % 3), p.padding = (rdna_sample_padding)(k / 3 % 3);
      p.units = (rdna_sample_units)(k / 9 % 3);
      p.dims = p.mode == RDNA_SAMPLE_MODE_CUBIC ? 2 : 2 + k / 2 % 2, p.position_dims = 1 + k / 4 % 3;
      p.channels = k % 3 == 1 ? 16 : rdna__random_range(&random_state, 1, 9);
      for (int d = 0; d < 3; d++) {
        p.size[d] = rdna__random_range(&random_state, 1, 6);
        p.positions[d] = k == 17 && d == 0 ? 0 : rdna__random_range(&random_state, 1, p.position_dims == 3 ? 4 : 7);
      }
      check(&p);
    }
  }
}

/* Sizes at which threads have several channels, and more corners than one group of threads sorts. */
static void usual_sizes(void **state) {
  for (int mode = 0; mode < RDNA_SAMPLE_MODE_COUNT; mode++) {
    check(&(struct problem){.dtype = RDNA_F32,
                            .mode = (rdna_sample_mode)mode,
                            .padding = RDNA_SAMPLE_PADDING_BORDER,
                            .dims = 2,
                            .position_dims = 2,
                            .n = 1,
                            .channels = 70,
                            .size = {20, 23},
                            .positions = {45, 50}});
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(formulas),
      cmocka_unit_test(usual_sizes),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
