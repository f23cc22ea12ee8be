#include "math/common/test/volume.h"
#include "rdna/op/vision.h"

static const rdna_dtype types[] = {RDNA_F32, RDNA_F16, RDNA_BF16, RDNA_F64};

struct problem {
  rdna_dtype dtype;
  rdna_roi options;
  int layout;
  int64_t n, channels /* of out */, size[2], k, bins[2];
  bool hard; /* boxes that are empty, turned, far too large, at a NaN, of no image */
  bool places;
};

static bool is_ps(const struct problem *p) { return p->options.mode >= RDNA_ROI_MODE_PS_ALIGN; }

/* Rounded as the type that places are computed in. */
static double in_type(const struct problem *p, double v) { return p->dtype == RDNA_F64 ? v : (double)(float)v; }
#define R(v) in_type(p, v)

enum { MOST = 40 };

/* What one dimension of a box gives each bin of each pixel: weights, which the samples' number divides. */
struct weights {
  double at[8][MOST];
  double samples;
};

/* The definition of the header, with rounded places. */
static void sample(const struct problem *p, int d, double low, double high, struct weights *w) {
  int64_t size = p->size[d], bins = p->bins[d];
  bool half = p->options.half_pixel || p->options.mode == RDNA_ROI_MODE_PS_ALIGN;
  low = R(low * R(p->options.scale)), high = R(high * R(p->options.scale));
  if (half) low = R(low - 0.5), high = R(high - 0.5);
  double length = R(high - low);
  if (!half && length < 1) length = 1;
  double bin = R(length / (double)bins);
  double count = p->options.grid ? (double)p->options.grid : fmax(ceil(bin), 0);
  if (isnan(bin)) count = (double)p->options.grid;
  w->samples = count;
  for (int64_t b = 0; b < bins; b++) {
    for (double i = 0; i < fmin(count, 4000); i++) {
      double place = R(R(low + R((double)b * bin)) + R(R((i + 0.5) * bin) / count));
      if (!(place >= -1 && place <= (double)size)) continue;
      place = fmin(fmax(place, 0), (double)(size - 1));
      for (int64_t x = 0; x < size; x++) w->at[b][x] += fmax(0, 1 - fabs(place - (double)x));
    }
  }
}

/* 1 for each pixel that a bin reaches into. */
static void cover(const struct problem *p, int d, double low, double high, struct weights *w) {
  int64_t size = p->size[d] - (p->options.mode == RDNA_ROI_MODE_PS_MEAN), bins = p->bins[d];
  double first = round(R(low * R(p->options.scale))), last = round(R(high * R(p->options.scale)));
  if (isnan(first)) first = 0;
  if (isnan(last)) last = 0;
  double bin = R(fmax(last - first + (p->options.mode == RDNA_ROI_MODE_MAX), 1) / (double)bins);
  for (int64_t b = 0; b < bins; b++) {
    for (int64_t x = 0; x < size; x++) {
      bool in = (double)x >= first + floor(R((double)b * bin)) && (double)x < first + ceil(R((double)(b + 1) * bin));
      w->at[b][x] = in;
    }
  }
}

static void fill_boxes(const struct problem *p, operand *boxes) {
  for (int64_t k = 0; k < p->k; k++) {
    double v[5] = {(double)rdna__random_range(&random_state, 0, p->n - 1)};
    for (int d = 0; d < 2; d++) {
      double size = (double)p->size[1 - d] / p->options.scale;
      v[1 + d] = (rdna__random_unit(&random_state) * 1.4 - 0.3) * size;
      v[3 + d] = v[1 + d] + rdna__random_unit(&random_state) * size;
    }
    if (p->hard) {
      if (k % 9 == 2) v[3] = v[1];
      if (k % 9 == 3) v[4] = v[2] - 3;
      if (k % 9 == 4) v[1] = -700, v[4] = 900;
      if (k % 9 == 5) v[2] = v[4] = NAN;
      if (k % 9 == 6) v[0] = (double)p->n;
      if (k % 9 == 7) v[0] = k % 2 ? -1 : NAN;
      if (k % 9 == 8) v[1] += 3000, v[3] += 3000;
    }
    for (int d = 0; d < 5; d++) operand_set(boxes, k * boxes->tensor.stride[0] + d * boxes->tensor.stride[1], v[d]);
  }
  operand_upload(boxes);
}

/* Fails unless out and dx are what loops over the definition give. */
static void check(const struct problem *p) {
  int64_t bins = is_ps(p) ? p->bins[0] * p->bins[1] : 1, channels = p->channels * bins;
  bool max = p->options.mode == RDNA_ROI_MODE_MAX, sampled = !max && p->options.mode != RDNA_ROI_MODE_PS_MEAN;
  grid x = grid_make(p->dtype, p->n, channels, 2, p->size, p->layout),
       dx = grid_make(p->dtype, p->n, channels, 2, p->size, p->layout);
  grid out = grid_make(p->dtype, p->k, p->channels, 2, p->bins, p->layout),
       dout = grid_make(p->dtype, p->k, p->channels, 2, p->bins, p->layout);
  const int64_t shape[] = {p->k, 5}, across[] = {1, p->k + 2}, all[] = {p->k, p->channels, p->bins[0], p->bins[1]};
  operand boxes = operand_make(p->dtype, 2, shape, p->layout == GAPS ? across : NULL, 0);
  operand places = operand_make(RDNA_I32, 4, all, NULL, 0), outside = operand_make(RDNA_I32, 0, NULL, NULL, 0);
  grid_fill(&x), grid_fill(&dout), fill_boxes(p, &boxes), operand_upload(&places);
  operand_set(&outside, 0, 0), operand_upload(&outside);
  const rdna_tensor *where = max && p->places ? &places.tensor : NULL;
  uint32_t *mark = p->layout ? outside.tensor.data : NULL;
  assert_ok(rdna_op_roi_pool(stream, &p->options, &x.o.tensor, &boxes.tensor, &out.o.tensor, where, mark));
  bool back = !max || p->places;
  if (back)
    assert_ok(rdna_op_roi_pool_backward(stream, &p->options, &dout.o.tensor, &boxes.tensor, where, &dx.o.tensor, mark));
  operand_download(&out.o), operand_download(&dx.o), operand_download(&places), operand_download(&outside);
  double *sums = calloc((size_t)(2 * operand_span(&dx.o) + 1), sizeof *sums), *reach = sums + operand_span(&dx.o);
  bool lost = false;
  for (int64_t k = 0; k < p->k; k++) {
    struct weights w[2] = {{{{0}}, 0}, {{{0}}, 0}};
    double v[5];
    for (int d = 0; d < 5; d++) v[d] = operand_get(&boxes, k * boxes.tensor.stride[0] + d * boxes.tensor.stride[1]);
    bool there = v[0] > -1 && v[0] < (double)p->n;
    int64_t image = there ? (int64_t)v[0] : 0;
    lost = lost || !there;
    for (int d = 0; d < 2 && there; d++) {
      if (sampled)
        sample(p, d, v[2 - d], v[4 - d], &w[d]);
      else
        cover(p, d, v[2 - d], v[4 - d], &w[d]);
    }
    for (int64_t c = 0; c < p->channels; c++) {
      for (int64_t i = 0; i < p->bins[0]; i++) {
        for (int64_t j = 0; j < p->bins[1]; j++) {
          int64_t from = is_ps(p) ? (c * p->bins[0] + i) * p->bins[1] + j : c, place = -1;
          double sum = 0, best = -(double)0x1.fffffep127f, area = 0, top = 0, g = grid_get(&dout, k, c, 0, i, j);
          for (int64_t y = 0; y < p->size[0]; y++) {
            for (int64_t z = 0; z < p->size[1]; z++) {
              double weight = w[0].at[i][y] * w[1].at[j][z], value = grid_get(&x, image, from, 0, y, z);
              if (weight == 0) continue;
              sum += weight * value, area += weight, top = fmax(top, fabs(value));
              if (value > best) best = value, place = y * p->size[1] + z;
            }
          }
          double count = sampled ? w[0].samples * w[1].samples : area;
          if (p->options.mode == RDNA_ROI_MODE_ALIGN) count = fmax(count, 1);
          double want = max ? (area > 0 ? best : 0) : sampled && there ? sum / count : area > 0 ? sum / area : 0;
          double error = max ? 0 : 0x1p-20 * (sampled ? 40 : 1) * top;
          if (p->dtype == RDNA_F64) error *= 0x1p-28;
          assert_close(p->dtype, grid_get(&out, k, c, 0, i, j), want, error, "out", (k * 100 + c) * 100 + i * 10 + j);
          int64_t at = ((k * p->channels + c) * p->bins[0] + i) * p->bins[1] + j;
          if (where && (int64_t)operand_get(&places, at) != place)
            fail_msg("place %lld of %lld is %g", (long long)at, (long long)place, operand_get(&places, at));
          for (int64_t y = 0; y < p->size[0] && back; y++) {
            for (int64_t z = 0; z < p->size[1]; z++) {
              double weight = max ? place == y * p->size[1] + z : w[0].at[i][y] * w[1].at[j][z];
              if (weight == 0) continue;
              int64_t to = grid_at(&dx, image, from, 0, y, z);
              sums[to] += max ? g : weight * g / count, reach[to] += max ? fabs(g) : fabs(weight * g / count);
            }
          }
        }
      }
    }
  }
  double unit = p->dtype == RDNA_F64 ? 0x1p-45 : 0x1p-16;
  if (back) {
    GRID_EACH(&dx, n, c, z, y, i) {
      int64_t at = grid_at(&dx, n, c, z, y, i);
      assert_close(p->dtype, grid_get(&dx, n, c, z, y, i), sums[at], unit * (reach[at] + 1), "dx", at);
    }
  }
  assert_int_equal((int)operand_get(&outside, 0), mark && lost && p->channels > 0);
  grid_check_gaps(&out), grid_check_gaps(&dx);
  free(sums);
  grid *grids[] = {&x, &dx, &out, &dout};
  for (int k = 0; k < 4; k++) grid_free(grids[k]);
  operand_free(&boxes), operand_free(&places), operand_free(&outside);
}

static void formulas(void **state) {
  for (int t = 0; t < 4; t++) {
    for (int k = 0; k < 48; k++) {
      struct problem p = {.dtype = types[t], .layout = k % 3, .n = 1 + k % 2, .hard = k % 5 == 3, .places = k % 8 != 1};
      p.options = (rdna_roi){RDNA_ROI_INIT, .mode = (rdna_roi_mode)(k % 4), .scale = k % 3 ? 0.25 : 1};
      p.options.half_pixel = p.options.mode == RDNA_ROI_MODE_ALIGN && k / 4 % 2;
      if (k % 2 == 0) p.options.grid = k / 8 % 4;
      p.channels = k % 6 == 1 ? 16 : rdna__random_range(&random_state, 1, is_ps(&p) ? 2 : 9);
      p.k = k == 9 ? 0 : rdna__random_range(&random_state, 1, 20);
      for (int d = 0; d < 2; d++) {
        p.size[d] = rdna__random_range(&random_state, 1, 20), p.bins[d] = rdna__random_range(&random_state, 1, 4);
      }
      check(&p);
    }
  }
}

/* More boxes than a group of threads looks at in one turn, more pixels than a tile of them has, and many bins a pixel.
 */
static void many_boxes(void **state) {
  for (int mode = 0; mode < RDNA_ROI_MODE_COUNT; mode++) {
    struct problem p = {.dtype = RDNA_F32,
                        .options = {RDNA_ROI_INIT, .mode = (rdna_roi_mode)mode, .scale = 0.5},
                        .n = 2,
                        .channels = mode >= 2 ? 1 : 9,
                        .size = {33, 20},
                        .k = 300,
                        .bins = {3, 5},
                        .places = true};
    check(&p);
    p.size[0] = 3, p.size[1] = 2, p.k = 20, p.bins[0] = 7, p.bins[1] = 7;
    check(&p);
  }
}

/* A NaN is not larger than anything, and a plane of NaN has no place. */
static void maxima_skip_nan(void **state) {
  const int64_t size[] = {2, 2}, one[] = {1, 1}, shape[] = {1, 5}, all[] = {1, 2, 1, 1};
  grid x = grid_make(RDNA_F32, 1, 2, 2, size, CONTIGUOUS), out = grid_make(RDNA_F32, 1, 2, 2, one, CONTIGUOUS);
  operand boxes = operand_make(RDNA_F32, 2, shape, NULL, 0), places = operand_make(RDNA_I32, 4, all, NULL, 0);
  static const double values[] = {NAN, 1, 3, NAN, NAN, NAN, -INFINITY, NAN}, box[] = {0, 0, 0, 1, 1};
  for (int i = 0; i < 8; i++) operand_set(&x.o, i, values[i]);
  for (int i = 0; i < 5; i++) operand_set(&boxes, i, box[i]);
  operand_upload(&x.o), operand_upload(&boxes), operand_upload(&places);
  rdna_roi options = {RDNA_ROI_INIT, .mode = RDNA_ROI_MODE_MAX, .scale = 1};
  assert_ok(rdna_op_roi_pool(stream, &options, &x.o.tensor, &boxes.tensor, &out.o.tensor, &places.tensor, NULL));
  operand_download(&out.o), operand_download(&places);
  assert_true(operand_get(&out.o, 0) == 3 && operand_get(&places, 0) == 2);
  assert_true(operand_get(&out.o, 1) == -(double)0x1.fffffep127f && operand_get(&places, 1) == -1);
  grid_free(&x), grid_free(&out), operand_free(&boxes), operand_free(&places);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(formulas),
      cmocka_unit_test(many_boxes),
      cmocka_unit_test(maxima_skip_nan),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
