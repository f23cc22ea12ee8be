#include "model/vision/resize.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/threads.h"

enum { CHANNELS = 3, BITS = 22 }; /* of a weight's fraction: 32, less 8 of a byte and 2 for sums beyond it */

/* Which of the values along a line each new value is a sum of. */
typedef struct weights {
  int most;    /* weights of one value */
  int *first;  /* (count) */
  int *number; /* (count) */
  int32_t *of; /* (count, most), in units of 2^-BITS */
} weights;

static double bilinear(double x) { return fabs(x) < 1 ? 1 - fabs(x) : 0; }

/* Keys (1981), with a = -1/2. */
static double bicubic(double x) {
  const double a = -0.5;
  x = fabs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static double sinc(double x) { return x == 0 ? 1 : sin(M_PI * x) / (M_PI * x); }

/* Duchon (1979), with three lobes. */
static double lanczos(double x) { return fabs(x) < 3 ? sinc(x) * sinc(x / 3) : 0; }

static const struct {
  double (*value)(double x);
  double reach;
} filters[] = {[RDNA__FILTER_BILINEAR] = {bilinear, 1},
               [RDNA__FILTER_BICUBIC] = {bicubic, 2},
               [RDNA__FILTER_LANCZOS] = {lanczos, 3}};

static void weights_deinit(weights *w) {
  free(w->first);
  free(w->number);
  free(w->of);
}

/* Value |i| of |to| stands at (i + 1/2) from / to of |from|, and reads what is nearer to it than |reach|. */
static void weigh(double (*filter)(double), double scale, double reach, int from, int i, double *values, weights *w) {
  double center = (i + 0.5) * scale, stretch = scale < 1 ? 1 : scale, sum = 0;
  int first = (int)(center - reach + 0.5), end = (int)(center + reach + 0.5);
  if (first < 0) first = 0;
  if (end > from) end = from;
  for (int k = 0; k < end - first; k++) sum += values[k] = filter((k + first - center + 0.5) * (1 / stretch));
  w->first[i] = first;
  w->number[i] = end - first;
  for (int k = 0; k < end - first; k++) {
    double share = sum != 0 ? values[k] / sum : values[k];
    w->of[(size_t)i * (size_t)w->most + (size_t)k] = (int32_t)(share * (1 << BITS) + (share < 0 ? -0.5 : 0.5));
  }
}

static rdna_status weights_init(rdna__filter kind, int from, int to, weights *w) {
  double scale = (double)from / to, reach = filters[kind].reach * (scale < 1 ? 1 : scale);
  w->most = (int)ceil(reach) * 2 + 1;
  w->first = calloc((size_t)to, sizeof *w->first);
  w->number = calloc((size_t)to, sizeof *w->number);
  w->of = calloc((size_t)to * (size_t)w->most, sizeof *w->of);
  double *values = calloc((size_t)w->most, sizeof *values);
  bool fine = w->first && w->number && w->of && values;
  for (int i = 0; fine && i < to; i++) weigh(filters[kind].value, scale, reach, from, i, values, w);
  free(values);
  return fine ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory to resize a picture");
}

static uint8_t byte_of(int64_t sum) {
  int64_t value = sum >> BITS;
  return value < 0 ? 0 : value > 255 ? 255 : (uint8_t)value;
}

/* Lines of |from|, which are |line| bytes apart and whose values are |step| apart, become lines of |to|. */
typedef struct resizing {
  const weights *w;
  const uint8_t *from;
  uint8_t *to;
  int count; /* values of a new line */
  size_t from_line, to_line, from_step, to_step;
} resizing;

static void resize_lines(void *context, int64_t begin, int64_t end) {
  const resizing *r = context;
  const weights *w = r->w;
  for (int64_t line = begin; line < end; line++) {
    const uint8_t *from = r->from + (size_t)line * r->from_line;
    uint8_t *to = r->to + (size_t)line * r->to_line;
    for (int i = 0; i < r->count; i++) {
      const int32_t *of = &w->of[(size_t)i * (size_t)w->most];
      int64_t sums[CHANNELS] = {1 << (BITS - 1), 1 << (BITS - 1), 1 << (BITS - 1)};
      for (int k = 0; k < w->number[i]; k++) {
        const uint8_t *pixel = from + (size_t)(w->first[i] + k) * r->from_step;
        for (int c = 0; c < CHANNELS; c++) sums[c] += (int64_t)of[k] * pixel[c];
      }
      for (int c = 0; c < CHANNELS; c++) to[(size_t)i * r->to_step + (size_t)c] = byte_of(sums[c]);
    }
  }
}

/* A side that stays as it is is not filtered. */
static rdna_status resize_side(rdna__filter filter, int from, int to, int lines, resizing *r) {
  weights w = {0};
  enum { AT_ONCE = 8 };
  rdna_status status = weights_init(filter, from, to, &w);
  r->w = &w;
  r->count = to;
  if (status == RDNA_OK) rdna__parallel_for(lines, AT_ONCE, resize_lines, r);
  weights_deinit(&w);
  return status;
}

rdna_status rdna__resize(rdna__filter filter, const uint8_t *pixels, int height, int width, int out_height,
                         int out_width, uint8_t *out) {
  const size_t row = (size_t)width * CHANNELS, out_row = (size_t)out_width * CHANNELS;
  if (height == out_height && width == out_width) {
    memcpy(out, pixels, (size_t)height * row);
    return RDNA_OK;
  }
  const uint8_t *wide = pixels;
  uint8_t *made = NULL;
  rdna_status status = RDNA_OK;
  if (width != out_width) {
    made = height == out_height ? out : malloc((size_t)height * out_row);
    if (!made) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory to resize a picture");
    resizing across = {
        .from = pixels, .to = made, .from_line = row, .to_line = out_row, .from_step = CHANNELS, .to_step = CHANNELS};
    status = resize_side(filter, width, out_width, height, &across);
    wide = made;
  }
  if (status == RDNA_OK && height != out_height) {
    resizing down = {
        .from = wide, .to = out, .from_line = CHANNELS, .to_line = CHANNELS, .from_step = out_row, .to_step = out_row};
    status = resize_side(filter, height, out_height, out_width, &down);
  }
  if (made != out) free(made);
  return status;
}
