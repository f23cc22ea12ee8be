#include "picture/region.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/vision/resize.h"

enum { COLOURS = 3 };

/* ---- sides ---- */

static rdna_status resize(const rdna__picture *p, int width, int height, rdna__picture *out) {
  RDNA_TRY(rdna__picture_init(out, width, height, COLOURS));
  rdna_status status = rdna__resize(RDNA__FILTER_LANCZOS, p->pixels, p->height, p->width, height, width, out->pixels);
  if (status != RDNA_OK) rdna__picture_deinit(out);
  return status;
}

static int limit(int value, int low, int high) { return value < low ? low : value > high ? high : value; }

/* |from| lies in the middle of |out|, whose pixels it covers or whose edge it repeats. */
static void place(const rdna__picture *from, rdna__picture *out) {
  int left = out->width / 2 - from->width / 2, top = out->height / 2 - from->height / 2;
  for (int y = 0; y < out->height; y++)
    for (int x = 0; x < out->width; x++) {
      int row = limit(y - top, 0, from->height - 1), column = limit(x - left, 0, from->width - 1);
      memcpy(out->pixels + COLOURS * ((size_t)y * (size_t)out->width + (size_t)x),
             from->pixels + COLOURS * ((size_t)row * (size_t)from->width + (size_t)column), COLOURS);
    }
}

rdna_status rdna__picture_fit(rdna__picture *p, rdna__fit fit, int width, int height) {
  rdna__picture between, out;
  if (p->width == width && p->height == height) return RDNA_OK;
  bool wider = (int64_t)width * p->height > (int64_t)p->width * height; /* what is asked for than the picture */
  int64_t wide = width, high = height;
  if (fit == RDNA__FIT_CROP ? !wider : wider) wide = (int64_t)p->width * height / p->height;
  if (fit == RDNA__FIT_CROP ? wider : !wider) high = (int64_t)p->height * width / p->width;
  if (fit == RDNA__FIT_STRETCH) wide = width, high = height;
  if (wide < 1) wide = 1;
  if (high < 1) high = 1;
  if (wide > RDNA__PICTURE_MOST_SIDE || high > RDNA__PICTURE_MOST_SIDE)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a picture of %d x %d is too narrow for %d x %d", p->width, p->height,
                      width, height);
  RDNA_TRY(resize(p, (int)wide, (int)high, &between));
  rdna_status status = rdna__picture_init(&out, width, height, COLOURS);
  if (status == RDNA_OK) place(&between, &out);
  rdna__picture_deinit(&between);
  if (status != RDNA_OK) return status;
  out.parameters = p->parameters;
  p->parameters = NULL;
  rdna__picture_deinit(p);
  *p = out;
  return RDNA_OK;
}

rdna_status rdna__picture_crop(const rdna__picture *p, rdna__region r, rdna__picture *out) {
  RDNA_TRY(rdna__picture_init(out, r.width, r.height, p->channels));
  size_t channels = (size_t)p->channels, bytes = channels * (size_t)r.width;
  for (int y = 0; y < r.height; y++)
    memcpy(out->pixels + (size_t)y * bytes,
           p->pixels + channels * ((size_t)(r.top + y) * (size_t)p->width + (size_t)r.left), bytes);
  return RDNA_OK;
}

/* ---- masks ---- */

/* 0 to |count| - 1, mirrored without the edge itself. */
static int mirrored(int at, int count) {
  if (count == 1) return 0;
  int period = 2 * (count - 1), there = abs(at) % period;
  return there < count ? there : period - there;
}

/* One line of |count| values, |reach| mirrored ones on either side, blurred into |to|, |step| apart. Where all that is
 * seen is the same, as in most of a mask, so is the sum. */
static void blur_line(const double *line, int count, const double *weights, int reach, uint8_t *to, size_t step) {
  int same = 0; /* values up to the last one seen that equal it */
  for (int i = 0; i < count + 2 * reach; i++) {
    same = i > 0 && line[i] == line[i - 1] ? same + 1 : 1;
    int at = i - 2 * reach;
    if (at < 0) continue;
    const double *middle = line + at + reach;
    double value = weights[0] * middle[0];
    for (int k = 1; k <= reach && same <= 2 * reach; k++) value += weights[k] * (middle[-k] + middle[k]);
    to[(size_t)at * step] = (uint8_t)lrint(same > 2 * reach ? middle[0] : value);
  }
}

/* |lines| rows or columns of |count| bytes, |step| apart, each |next| behind the last one. */
static rdna_status blur_lines(uint8_t *mask, int lines, size_t next, int count, size_t step, double sigma) {
  if (!(sigma > 0)) return RDNA_OK;
  int reach = (int)(2.5 * sigma + 0.5);
  double sum = 0, *weights = malloc((size_t)(reach + 1) * sizeof *weights);
  double *line = malloc((size_t)(count + 2 * reach) * sizeof *line);
  bool fine = weights && line;
  for (int k = 0; fine && k <= reach; k++) {
    weights[k] = exp(-k * k / (2 * sigma * sigma));
    sum += k ? 2 * weights[k] : weights[k];
  }
  for (int k = 0; fine && k <= reach; k++) weights[k] /= sum;
  for (int l = 0; fine && l < lines; l++) {
    uint8_t *values = mask + (size_t)l * next;
    for (int i = 0; i < count + 2 * reach; i++) line[i] = values[(size_t)mirrored(i - reach, count) * step];
    blur_line(line, count, weights, reach, values, step);
  }
  free(weights);
  free(line);
  return fine ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a mask");
}

rdna_status rdna__mask_blur(uint8_t *mask, int width, int height, double across, double down) {
  RDNA_TRY(blur_lines(mask, height, (size_t)width, width, 1, across));
  return blur_lines(mask, width, 1, height, (size_t)width, down);
}

/* |*begin| to |*end|, of |most|, becomes |longer| by about as much on either side, and comes inside. */
static void lengthen(int *begin, int *end, int longer, int most) {
  *begin -= longer / 2;
  *end += longer - longer / 2;
  if (*end > most) *begin -= *end - most, *end = most;
  if (*begin < 0) *end -= *begin, *begin = 0;
  if (*end > most) *end = most;
}

bool rdna__mask_region(const uint8_t *mask, int width, int height, int padding, int wide, int high, rdna__region *out) {
  int left = width, right = 0, top = height, bottom = 0;
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) {
      if (!mask[(size_t)y * (size_t)width + (size_t)x]) continue;
      if (x < left) left = x;
      if (x + 1 > right) right = x + 1;
      if (y < top) top = y;
      bottom = y + 1;
    }
  if (right == 0) return false;
  left = limit(left - padding, 0, width), right = limit(right + padding, 0, width);
  top = limit(top - padding, 0, height), bottom = limit(bottom + padding, 0, height);
  double asked = (double)wide / high;
  if ((double)(right - left) / (bottom - top) > asked)
    lengthen(&top, &bottom, (int)((right - left) / asked - (bottom - top)), height);
  else
    lengthen(&left, &right, (int)((bottom - top) * asked - (right - left)), width);
  *out = (rdna__region){left, top, right - left, bottom - top};
  return true;
}

/* ---- what is filled ---- */

enum { PASSES = 3, PARTS = 4 }; /* colours times opacity, and that */

/* One pass over a line of |count| values, |step| apart: the mean of |reach| on either side and |more| of the next ones.
 */
static void average_line(const float *from, float *to, int count, size_t step, int reach, double more) {
  double sum = 0, all = 2 * reach + 1 + 2 * more;
  for (int k = -reach; k <= reach; k++) sum += from[(size_t)limit(k, 0, count - 1) * step];
  for (int i = 0; i < count; i++) {
    double beside = from[(size_t)limit(i - reach - 1, 0, count - 1) * step];
    double next = from[(size_t)limit(i + reach + 1, 0, count - 1) * step];
    to[(size_t)i * step] = (float)((sum + more * (beside + next)) / all);
    sum += next - from[(size_t)limit(i - reach, 0, count - 1) * step];
  }
}

/* Nearly a Gaussian of |sigma|: three means over boxes (Gwosdek et al., 2011), as Pillow has it. |other| has room for
 * as much. */
static void blur_plane(float *plane, int width, int height, double sigma, float *other) {
  if (sigma == 0) return;
  double variance = sigma * sigma / PASSES;
  int reach = (int)floor((sqrt(12 * variance + 1) - 1) / 2);
  double more = (2 * reach + 1) * (reach * (reach + 1) - 3 * variance) / (6 * (variance - (reach + 1.0) * (reach + 1)));
  size_t count = (size_t)width * (size_t)height;
  for (int pass = 0; pass < PASSES; pass++) {
    for (int y = 0; y < height; y++)
      average_line(plane + (size_t)y * (size_t)width, other + (size_t)y * (size_t)width, width, 1, reach, more);
    memcpy(plane, other, count * sizeof *plane);
  }
  for (int pass = 0; pass < PASSES; pass++) {
    for (int x = 0; x < width; x++) average_line(plane + x, other + x, height, (size_t)width, reach, more);
    memcpy(plane, other, count * sizeof *plane);
  }
}

/* What is there, times its opacity, blurred; and laid |times| over what there is. */
static void lay_blurred(const uint8_t *mask, const rdna__picture *p, double sigma, int times, float *blurred,
                        float *other, float *made) {
  size_t count = (size_t)p->width * (size_t)p->height;
  for (size_t c = 0; c < PARTS; c++) {
    float *plane = blurred + c * count;
    for (size_t i = 0; i < count; i++)
      plane[i] = (float)(255 - mask[i]) / 255 * (c < COLOURS ? (float)p->pixels[COLOURS * i + c] : 1);
    blur_plane(plane, p->width, p->height, sigma, other);
  }
  const float *opacity = blurred + COLOURS * count;
  for (int k = 0; k < times; k++)
    for (size_t c = 0; c < PARTS; c++)
      for (size_t i = 0; i < count; i++)
        made[c * count + i] = blurred[c * count + i] + made[c * count + i] * (1 - opacity[i]);
}

rdna_status rdna__mask_fill(const uint8_t *mask, rdna__picture *p) {
  static const struct {
    int sigma, times;
  } rounds[] = {{256, 1}, {64, 1}, {16, 2}, {4, 4}, {2, 2}, {0, 1}};
  size_t count = (size_t)p->width * (size_t)p->height;
  float *planes = calloc(2 * PARTS + 1, count * sizeof *planes);
  if (!planes) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for what is under a mask");
  float *made = planes + PARTS * count, *other = made + PARTS * count;
  for (size_t k = 0; k < sizeof rounds / sizeof *rounds; k++)
    lay_blurred(mask, p, rounds[k].sigma, rounds[k].times, planes, other, made);
  for (size_t i = 0; i < count; i++)
    for (size_t c = 0; c < COLOURS; c++) {
      float opacity = made[COLOURS * count + i];
      p->pixels[COLOURS * i + c] = (uint8_t)lrintf(opacity > 0 ? fminf(made[c * count + i] / opacity, 255) : 0);
    }
  free(planes);
  return RDNA_OK;
}

rdna_status rdna__mask_paste(const rdna__picture *part, const uint8_t *mask, rdna__region r, rdna__picture *whole) {
  rdna__picture resized = {0};
  const uint8_t *from = part->pixels;
  if (part->width != r.width || part->height != r.height) {
    RDNA_TRY(resize(part, r.width, r.height, &resized));
    from = resized.pixels;
  }
  for (int y = 0; y < r.height; y++)
    for (int x = 0; x < r.width; x++) {
      size_t at = (size_t)(r.top + y) * (size_t)whole->width + (size_t)(r.left + x);
      const uint8_t *new = from + COLOURS *((size_t)y * (size_t)r.width + (size_t)x);
      uint8_t *to = whole->pixels + COLOURS * at;
      for (int c = 0; c < COLOURS; c++) to[c] = (uint8_t)((new[c] * mask[at] + to[c] * (255 - mask[at]) + 127) / 255);
    }
  rdna__picture_deinit(&resized);
  return RDNA_OK;
}
