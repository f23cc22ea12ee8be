/* Tiles of which each is resampled by itself are together the image resampled: what laps over is the same in both. */
#include "model/image/tiles.h"

#include <math.h>
#include <stdlib.h>

#include "base/testing.h"

typedef struct resample {
  const rdna__tiling *t;
  int calls;
  int64_t largest;
} resample;

/* Nearest values; out channel c is channel c of the input's, counted around, plus c. */
static rdna_status run(void *context, const float *in, int64_t height, int64_t width, float *out) {
  resample *r = context;
  const rdna__tiling *t = r->t;
  int64_t high = height * t->up / t->down, wide = width * t->up / t->down;
  r->calls++;
  if (height > r->largest) r->largest = height;
  if (width > r->largest) r->largest = width;
  for (int64_t c = 0; c < t->out_channels; c++)
    for (int64_t y = 0; y < high; y++)
      for (int64_t x = 0; x < wide; x++)
        out[(c * high + y) * wide + x] =
            in[(c % t->in_channels * height + y * t->down / t->up) * width + x * t->down / t->up] + (float)c;
  return RDNA_OK;
}

static void check(rdna__tiling t) {
  resample tiled = {.t = &t}, whole = {.t = &t};
  int64_t count = t.in_channels * t.height * t.width;
  int64_t results = t.out_channels * (t.height * t.up / t.down) * (t.width * t.up / t.down);
  float *in = malloc((size_t)count * sizeof *in), *out = malloc((size_t)results * sizeof *out);
  float *wanted = malloc((size_t)results * sizeof *wanted);
  assert_true(in && out && wanted);
  for (int64_t i = 0; i < count; i++) in[i] = (float)(rand() % 1000);
  for (int64_t i = 0; i < results; i++) out[i] = NAN;
  t.work = run, t.context = &tiled;
  assert_int_equal(rdna__tiles_run(&t, in, out), RDNA_OK);
  assert_int_equal(run(&whole, in, t.height, t.width, wanted), RDNA_OK);
  for (int64_t i = 0; i < results; i++)
    if (!(fabsf(out[i] - wanted[i]) <= 1e-3f)) fail_msg("value %lld: %g, not %g", (long long)i, out[i], wanted[i]);
  int64_t step = t.tile / 4 * 3, rows = (t.height + step - 1) / step, columns = (t.width + step - 1) / step;
  assert_int_equal(tiled.calls, t.height <= t.tile && t.width <= t.tile ? 1 : rows * columns);
  assert_true(tiled.largest <= t.tile);
  free(in), free(out), free(wanted);
}

static void test_sizes(void **state) {
  for (int i = 0; i < 400; i++) {
    rdna__tiling t = {.in_channels = 1 + rand() % 3, .out_channels = 1 + rand() % 4, .up = 1, .down = 1};
    *(i % 2 ? &t.up : &t.down) = 1 << rand() % 4;
    t.tile = 4 * t.down * (1 + rand() % 4);
    t.height = t.down * (1 + rand() % 40);
    t.width = t.down * (1 + rand() % 40);
    check(t);
  }
}

/* The sum of all values within |far| of each place, at every place of a result |up| times as large. */
typedef struct window {
  const rdna__tiling *t;
  int64_t far, calls, largest;
} window;

static rdna_status sum(void *context, const float *in, int64_t height, int64_t width, float *out) {
  window *w = context;
  int64_t up = w->t->up, wide = width * up;
  w->calls++;
  if (height > w->largest) w->largest = height;
  for (int64_t c = 0; c < w->t->out_channels; c++)
    for (int64_t y = 0; y < height * up; y++)
      for (int64_t x = 0; x < wide; x++) {
        float all = 0;
        for (int64_t i = y / up - w->far; i <= y / up + w->far; i++)
          for (int64_t j = x / up - w->far; j <= x / up + w->far; j++)
            if (i >= 0 && j >= 0 && i < height && j < width)
              all += in[(c % w->t->in_channels * height + i) * width + j];
        out[(c * height * up + y) * wide + x] = all;
      }
  return RDNA_OK;
}

static void test_apart(void **state) {
  for (int i = 0; i < 200; i++) {
    rdna__tiling t = {.in_channels = 1 + rand() % 2,
                      .out_channels = 1 + rand() % 3,
                      .up = 1 + rand() % 3,
                      .down = 1,
                      .tile = 1 + rand() % 9,
                      .height = 1 + rand() % 24,
                      .width = 1 + rand() % 24};
    int64_t margin = rand() % 4, results = t.out_channels * t.height * t.up * t.width * t.up;
    window tiled = {.t = &t, .far = margin}, whole = tiled;
    float in[2 * 24 * 24], *out = malloc((size_t)results * sizeof *out),
                           *wanted = malloc((size_t)results * sizeof *out);
    assert_true(out && wanted);
    for (int k = 0; k < 2 * 24 * 24; k++) in[k] = (float)(rand() % 1000);
    for (int64_t k = 0; k < results; k++) out[k] = NAN;
    t.work = sum, t.context = &tiled;
    assert_int_equal(rdna__tiles_run_apart(&t, margin, in, out), RDNA_OK);
    assert_int_equal(sum(&whole, in, t.height, t.width, wanted), RDNA_OK);
    for (int64_t k = 0; k < results; k++)
      if (out[k] != wanted[k]) fail_msg("value %lld: %g, not %g", (long long)k, out[k], wanted[k]);
    assert_true(tiled.largest <= t.tile + 2 * margin);
    assert_int_equal(tiled.calls, ((t.height + t.tile - 1) / t.tile) * ((t.width + t.tile - 1) / t.tile));
    free(out), free(wanted);
  }
}

static rdna_status refuse(void *context, const float *in, int64_t height, int64_t width, float *out) {
  return --*(int *)context < 0 ? rdna__fail(RDNA_DEVICE_ERROR, "no more") : RDNA_OK;
}

static void test_failure(void **state) {
  float in[20 * 20] = {0}, out[20 * 20];
  for (int before = 0; before < 4; before++) {
    int left = before;
    const rdna__tiling t = {1, 1, 20, 20, 8, 1, 1, refuse, &left};
    assert_int_equal(rdna__tiles_run(&t, in, out), RDNA_DEVICE_ERROR);
    assert_int_equal(left, -1);
    left = before;
    assert_int_equal(rdna__tiles_run_apart(&t, 1, in, out), RDNA_DEVICE_ERROR);
    assert_int_equal(left, -1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes), cmocka_unit_test(test_apart),
                                     cmocka_unit_test(test_failure)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
