#include "model/image/preview.h"

#include <math.h>
#include <string.h>

enum { MOST = RDNA__PREVIEW_MOST_CHANNELS + 1 };

/* What is to be solved: |a| (n, n) symmetric, and |b| (n) of each colour. */
typedef struct normal {
  int n;
  double a[MOST][MOST], b[3][MOST];
} normal;

/* The picture's mean over the pixels of a place. */
static double colour_at(const float *picture, int height, int width, int factor, int colour, int y, int x) {
  const float *plane = picture + (long)colour * height * width * factor * factor;
  double sum = 0;
  for (int i = 0; i < factor; i++)
    for (int j = 0; j < factor; j++) sum += plane[((long)y * factor + i) * width * factor + (long)x * factor + j];
  return sum / (factor * factor);
}

static void gather(normal *s, const float *latents, int height, int width, const float *picture, int factor) {
  double row[MOST];
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) {
      for (int c = 0; c + 1 < s->n; c++) row[c] = latents[((long)c * height + y) * width + x];
      row[s->n - 1] = 1;
      for (int i = 0; i < s->n; i++)
        for (int j = 0; j < s->n; j++) s->a[i][j] += row[i] * row[j];
      for (int k = 0; k < 3; k++) {
        double colour = colour_at(picture, height, width, factor, k, y, x);
        for (int i = 0; i < s->n; i++) s->b[k][i] += row[i] * colour;
      }
    }
}

/* Cholesky's factor in place of a's lower half. A little is added to the diagonal, as there may be fewer places than
 * channels; false where that is not enough. */
static bool factor_it(normal *s) {
  double trace = 0;
  for (int i = 0; i < s->n; i++) trace += s->a[i][i];
  for (int i = 0; i < s->n; i++) s->a[i][i] += 1e-6 * trace / s->n + 1e-30;
  for (int j = 0; j < s->n; j++)
    for (int i = j; i < s->n; i++) {
      double sum = s->a[i][j];
      for (int k = 0; k < j; k++) sum -= s->a[i][k] * s->a[j][k];
      if (i == j && !(sum > 0 && isfinite(sum))) return false;
      s->a[i][j] = i == j ? sqrt(sum) : sum / s->a[j][j];
    }
  return true;
}

static bool solve(const normal *s, const double *b, double *x) {
  for (int i = 0; i < s->n; i++) {
    x[i] = b[i];
    for (int k = 0; k < i; k++) x[i] -= s->a[i][k] * x[k];
    x[i] /= s->a[i][i];
  }
  for (int i = s->n; i-- > 0;) {
    for (int k = i + 1; k < s->n; k++) x[i] -= s->a[k][i] * x[k];
    x[i] /= s->a[i][i];
    if (!isfinite(x[i])) return false;
  }
  return true;
}

bool rdna__preview_fit(rdna__preview *p, const float *latents, int channels, int height, int width,
                       const float *picture, int factor) {
  rdna__preview made = {.channels = channels};
  normal s = {.n = channels + 1};
  if (channels < 1 || channels > RDNA__PREVIEW_MOST_CHANNELS) return false;
  gather(&s, latents, height, width, picture, factor);
  if (!factor_it(&s)) return false;
  for (int k = 0; k < 3; k++)
    if (!solve(&s, s.b[k], made.weight[k])) return false;
  *p = made;
  return true;
}

void rdna__preview_make(const rdna__preview *p, const float *latents, int height, int width, float *out) {
  long places = (long)height * width;
  for (int k = 0; k < 3; k++)
    for (long i = 0; i < places; i++) {
      double value = p->weight[k][p->channels];
      for (int c = 0; c < p->channels; c++) value += p->weight[k][c] * (double)latents[c * places + i];
      out[k * places + i] = (float)value;
    }
}
