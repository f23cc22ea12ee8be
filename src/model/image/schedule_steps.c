/* What samplers make of a network's answers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/image/pipeline.h"
#include "model/image/schedule.h"

/* Its share of picture, a, in a sample of variance 1. */
static double share_of(double sigma) { return 1 / sqrt(1 + sigma * sigma); }

/* ---- of one answer ---- */

static void step_ddim(rdna_image_schedule *s, int i, const rdna__taking *t) {
  double from = s->sigma[i], to = s->to[i], a = share_of(from), b = share_of(to);
  /* the noise is what the network says, also where the picture is clipped */
  for (size_t k = 0; k < t->count; k++) {
    double e = ((double)t->sample[k] - a * (double)t->raw[k]) / (a * from);
    t->sample[k] = (float)(b * (double)t->picture[k] + b * to * e);
  }
}

/* Ho et al. (2020), equations 6 and 7, between any two levels. */
static void step_ddpm(rdna_image_schedule *s, int i, const rdna__taking *t) {
  double from = s->sigma[i], to = s->to[i], a = share_of(from), b = share_of(to);
  double beta = 1 - (a * a) / (b * b), noise_from = a * a * from * from, noise_to = b * b * to * to;
  double gain = b * beta / noise_from, keep = a / b * noise_to / noise_from;
  double deviation = sqrt(noise_to / noise_from * beta);
  for (size_t k = 0; k < t->count; k++)
    t->sample[k] = (float)(gain * (double)t->picture[k] + keep * (double)t->sample[k] +
                           (deviation > 0 ? deviation * (double)t->noise[k] : 0));
}

/* Of |to|, how much is of noise that is added anew when a step comes from |from| (Song et al., 2021, with eta 1). */
static double renewed(double from, double to) { return sqrt(to * to * (from * from - to * to) / (from * from)); }

static void step_euler(rdna_image_schedule *s, int i, const rdna__taking *t) {
  double from = s->sigma[i], to = s->to[i], up = 0;
  if (s->sampler->noisy) {
    up = renewed(from, to);
    to = sqrt(to * to - up * up);
  }
  for (size_t k = 0; k < t->count; k++) {
    double slope = ((double)t->sample[k] - (double)t->picture[k]) / from;
    t->sample[k] = (float)((double)t->sample[k] + slope * (to - from) + (up > 0 ? up * (double)t->noise[k] : 0));
  }
}

/* Its picture is a mixture of the network's and of the sample, which at timestep 0 is the sample. */
static void step_lcm(rdna_image_schedule *s, int i, const rdna__taking *t) {
  const double deviation = 0.5; /* of pictures */
  double at = s->timestep[i] * s->stretch, to = s->to[i], a = share_of(to);
  double keep = deviation * deviation / (at * at + deviation * deviation),
         gain = at / sqrt(at * at + deviation * deviation);
  for (size_t k = 0; k < t->count; k++) {
    double x = gain * (double)t->picture[k] + keep * (double)t->sample[k];
    t->sample[k] = (float)(a * x + (to > 0 ? a * to * (double)t->noise[k] : 0));
  }
}

/* ---- of several answers at one step ---- */

/* Aside: the sample and the slope at the level before. */
static void step_heun(rdna_image_schedule *s, int i, const rdna__taking *t) {
  double at = s->sigma[i], change = i % 2 ? at - s->sigma[i - 1] : s->to[i] - at;
  float *begun = s->aside[0], *slopes = s->aside[1];
  for (size_t k = 0; k < t->count; k++) {
    double slope = ((double)t->sample[k] - (double)t->picture[k]) / at;
    if (i % 2) {
      t->sample[k] = (float)((double)begun[k] + change * ((double)slopes[k] + slope) / 2);
    } else {
      begun[k] = t->sample[k];
      slopes[k] = (float)slope;
      t->sample[k] = (float)((double)t->sample[k] + change * slope);
    }
  }
}

/* A step of order 1 to between two levels, and of its answer one from the first to the second. Noise is that of one
 * Brownian motion in sigma: what is drawn first is part of what the whole step adds. Aside: the sample and the noise at
 * the level before. */
static void step_dpmpp_sde(rdna_image_schedule *s, int i, const rdna__taking *t) {
  bool second = i % 2;
  double from = s->sigma[second ? i - 1 : i], to = s->to[i];
  double up = renewed(from, to), down = sqrt(to * to - up * up), gain = 1 - down / from;
  double first = second ? sqrt((from - s->sigma[i]) / (from - to)) : 0, rest = sqrt(1 - first * first);
  float *begun = s->aside[0], *drawn = s->aside[1];
  for (size_t k = 0; k < t->count; k++) {
    double x = second ? (double)begun[k] : (double)t->sample[k], noise = up > 0 ? rest * (double)t->noise[k] : 0;
    if (second) {
      noise += first * (double)drawn[k];
    } else {
      begun[k] = t->sample[k];
      drawn[k] = up > 0 ? t->noise[k] : 0;
    }
    t->sample[k] = (float)(x + gain * ((double)t->picture[k] - x) + up * noise);
  }
}

/* ---- of answers before ---- */

/* Aside: the last four answers that count, which the second one of a whole run does not: that one betters the first
 * step, and a run that begins with a picture is without it; and the first sample. Weights are those of Adams and
 * Bashforth. */
static void step_pndm(rdna_image_schedule *s, int i, const rdna__taking *t) {
  static const double weights[4][4] = {{1, 0, 0, 0},
                                       {3. / 2, -1. / 2, 0, 0},
                                       {23. / 12, -16. / 12, 5. / 12, 0},
                                       {55. / 24, -59. / 24, 37. / 24, -9. / 24}};
  bool again = s->first == 0 && i == 1;
  int number = s->first ? i - s->first : i > 1 ? i - 1 : 0; /* of the answers that count, from 0 */
  int order = number < 3 ? number : 3;
  double a = share_of(s->sigma[i]), b = share_of(s->to[i]), to = s->to[i], from = s->sigma[i];
  float *now = again ? NULL : s->aside[number % 4], *begun = s->aside[4];
  for (size_t k = 0; k < t->count; k++) {
    double x = (double)(again ? begun[k] : t->sample[k]), answer = 0;
    if (again) {
      answer = ((double)s->aside[0][k] + (double)t->output[k]) / 2;
    } else {
      now[k] = t->output[k];
      if (i == 0) begun[k] = t->sample[k];
      for (int j = 0; j <= order; j++) answer += weights[order][j] * (double)s->aside[(number - j) % 4][k];
    }
    double picture = rdna__schedule_predict(s, from, x, answer), e = (x - a * picture) / (a * from);
    t->sample[k] = (float)(b * picture + b * to * e);
  }
}

/* Whether step i of dpmpp_*m is of order 1 for being the last. */
static bool is_last_of_first_order(const rdna_image_schedule *s, int i) {
  return i + 1 == s->steps && (s->to[i] == 0 || s->euler_last || (s->lower_last && s->steps < 15));
}

/* Its integrals are of exp(lambda), lambda = -log sigma. */
static void step_dpmpp_2m(rdna_image_schedule *s, int i, const rdna__taking *t) {
  double from = s->sigma[i], to = s->to[i], a = share_of(to);
  double keep = a * to / (share_of(from) * from), gain = a * (1 - to / from), more = 0;
  if (i > s->first && !is_last_of_first_order(s, i)) more = log(from / to) / log(s->sigma[i - 1] / from) / 2;
  for (size_t k = 0; k < t->count; k++) {
    double x = (double)t->picture[k], change = more > 0 ? x - (double)s->pictures[0][k] : 0;
    t->sample[k] = (float)(keep * (double)t->sample[k] + gain * (x + more * change));
  }
}

/* The same of the stochastic equation, whose integrals are of exp(2 lambda), up to order 3. */
static void step_dpmpp_sde_m(rdna_image_schedule *s, int i, const rdna__taking *t) {
  double from = s->sigma[i], to = s->to[i], a = share_of(to), part = to / from, h = -log(part);
  double keep = a * to / (share_of(from) * from) * part, gain = a * (1 - part * part);
  double deviation = a * to * sqrt(1 - part * part), first = 0, second = 0, near = 1, far = 1;
  int order = i - s->first + 1 < s->sampler->solver ? i - s->first + 1 : s->sampler->solver;
  if (order > 2 && i + 2 == s->steps && s->lower_last && s->steps < 15) order = 2;
  if (is_last_of_first_order(s, i) || !(h > 0)) order = 1;
  if (order > 1) near = log(s->sigma[i - 1] / from) / h; /* steps before this one, of which it is 1 */
  if (order > 2) far = log(s->sigma[i - 2] / s->sigma[i - 1]) / h;
  if (order == 2) first = gain / 2;
  if (order == 3) {
    first = a * ((1 - part * part) / (-2 * h) + 1);
    second = a * ((1 - part * part - 2 * h) / (4 * h * h) - 0.5);
  }
  for (size_t k = 0; k < t->count; k++) {
    double x = (double)t->picture[k], slope = 0, bend = 0;
    if (order > 1) slope = (x - (double)s->pictures[0][k]) / near;
    if (order > 2) {
      bend = (slope - ((double)s->pictures[0][k] - (double)s->pictures[1][k]) / far) / (near + far);
      slope += near * bend;
    }
    t->sample[k] = (float)(keep * (double)t->sample[k] + gain * x + first * slope + second * bend +
                           (deviation > 0 ? deviation * (double)t->noise[k] : 0));
  }
}

/* ---- UniPC (Zhao et al., 2023) ---- */

/* x of the |n| equations a x = b, of which the first is of ones; a is used up. */
static void solve(double a[RDNA__SCHEDULE_ORDER][RDNA__SCHEDULE_ORDER], double *b, int n, double *x) {
  for (int i = 0; i < n; i++)
    for (int r = i + 1; r < n; r++) {
      double times = a[r][i] / a[i][i];
      for (int c = i; c < n; c++) a[r][c] -= times * a[i][c];
      b[r] -= times * b[i];
    }
  for (int i = n; i-- > 0;) {
    x[i] = b[i];
    for (int c = i + 1; c < n; c++) x[i] -= a[i][c] * x[c];
    x[i] /= a[i][i];
  }
}

/* How a step of |order| from level |i| to |to| goes on:
 *
 *     a_to (to / from x / a_from + (1 - to / from) picture - size sum(weights[j] (earlier picture j - picture) /
 * places[j]))
 *
 * where the last of |order| weights is of the picture at |to|, if it is known: then place 1. */
typedef struct unified {
  double keep, gain, size, weights[RDNA__SCHEDULE_ORDER], places[RDNA__SCHEDULE_ORDER];
} unified;

static unified unify(const rdna_image_schedule *s, int i, double to, int order, bool corrects) {
  double from = s->sigma[i], h = log(to / from), a = share_of(to), grown = to / from - 1; /* exp(h) - 1 */
  double matrix[RDNA__SCHEDULE_ORDER][RDNA__SCHEDULE_ORDER], b[RDNA__SCHEDULE_ORDER];
  double size = s->first_form ? h : grown, phi = grown / h - 1, factorial = 1;
  int unknown = corrects ? order : order - 1;
  unified u = {.keep = a * to / (share_of(from) * from), .gain = -a * grown, .size = a * size};
  for (int j = 0; j + 1 < order; j++) u.places[j] = log(s->sigma[i - 1 - j] / from) / h;
  u.places[order - 1] = 1;
  for (int r = 0; r < order; r++) {
    for (int c = 0; c < order; c++) matrix[r][c] = pow(u.places[c], r);
    b[r] = phi * factorial / size;
    factorial *= r + 2;
    phi = phi / h - 1 / factorial;
  }
  if (unknown == 1)
    u.weights[0] = 0.5; /* as the authors simplify */
  else if (unknown > 1)
    solve(matrix, b, unknown, u.weights);
  return u;
}

/* out = the sample at the end of a step from level |i|. |then|: the picture there, or NULL. |earlier| (order) pictures,
 * that of the level first. */
static void go_unified(const rdna_image_schedule *s, int i, double to, int order, const float *x, const float *then,
                       const float *const *earlier, size_t count, float *out) {
  unified u = unify(s, i, to, order, then != NULL);
  for (size_t k = 0; k < count; k++) {
    double picture = (double)earlier[0][k], sum = 0;
    for (int j = 0; j + 1 < order; j++) sum += u.weights[j] * ((double)earlier[j + 1][k] - picture) / u.places[j];
    if (then) sum += u.weights[order - 1] * ((double)then[k] - picture);
    out[k] = (float)(u.keep * (double)x[k] + u.gain * picture - u.size * sum);
  }
}

/* Betters the step before by this one's answer, then takes one. Aside: the sample at the level before. */
static void step_unipc(rdna_image_schedule *s, int i, const rdna__taking *t) {
  const float *const before[] = {s->pictures[0], s->pictures[1], s->pictures[2]};
  const float *const now[] = {t->picture, s->pictures[0], s->pictures[1]};
  double from = s->sigma[i], to = s->to[i];
  int order = s->order, had = i - s->first + 1;
  if (i > s->first) go_unified(s, i - 1, from, s->made, s->aside[0], t->picture, before, t->count, t->sample);
  if (s->lower_last && s->steps - i < order) order = s->steps - i;
  if (had < order) order = had;
  if (to == 0) order = 1;
  s->made = order;
  memcpy(s->aside[0], t->sample, t->count * sizeof *t->sample);
  if (to == 0)
    memcpy(t->sample, t->picture, t->count * sizeof *t->sample);
  else if (to < from)
    go_unified(s, i, to, order, s->aside[0], NULL, now, t->count, t->sample);
}

static const rdna__sampler samplers[] = {
    {.name = "ddim",
     .timesteps = "leading",
     .clips = true,
     .clipped = true,
     .strides = true,
     .last_whole = true,
     .step = step_ddim},
    {.name = "ddpm", .timesteps = "leading", .clips = true, .clipped = true, .noisy = true, .step = step_ddpm},
    {.name = "pndm", .timesteps = "leading", .asking = ASKING_SECOND, .aside = 5, .strides = true, .step = step_pndm},
    {.name = "euler", .timesteps = "linspace", .scaled = true, .spaced = true, .ends = true, .step = step_euler},
    {.name = "euler_ancestral", .timesteps = "linspace", .scaled = true, .noisy = true, .step = step_euler},
    {.name = "heun",
     .timesteps = "linspace",
     .asking = ASKING_AGAIN,
     .aside = 2,
     .scaled = true,
     .spaced = true,
     .clips = true,
     .latent = true,
     .step = step_heun},
    {.name = "dpmpp_2m",
     .timesteps = "linspace",
     .solver = 2,
     .spaced = true,
     .one_more = true,
     .ends = true,
     .step = step_dpmpp_2m},
    {.name = "dpmpp_2m_sde",
     .timesteps = "linspace",
     .solver = 2,
     .spaced = true,
     .one_more = true,
     .ends = true,
     .noisy = true,
     .step = step_dpmpp_sde_m},
    {.name = "dpmpp_3m_sde",
     .timesteps = "linspace",
     .solver = 3,
     .spaced = true,
     .one_more = true,
     .ends = true,
     .noisy = true,
     .step = step_dpmpp_sde_m},
    {.name = "dpmpp_sde",
     .timesteps = "linspace",
     .asking = ASKING_BETWEEN,
     .aside = 2,
     .scaled = true,
     .spaced = true,
     .noisy = true,
     .latent = true,
     .step = step_dpmpp_sde},
    {.name = "unipc",
     .timesteps = "linspace",
     .spaced = true,
     .one_more = true,
     .ends = true,
     .aside = 1,
     .step = step_unipc},
    {.name = "lcm",
     .timesteps = "leading",
     .noisy = true,
     .clips = true,
     .distilled = true,
     .latent = true,
     .step = step_lcm},
};

const rdna__sampler *rdna__sampler_find(const char *name) {
  for (size_t i = 0; i < sizeof samplers / sizeof *samplers; i++)
    if (strcmp(samplers[i].name, name) == 0) return &samplers[i];
  return NULL;
}

bool rdna__sampler_is_spaced(const char *name) {
  const rdna__sampler *found = rdna__sampler_find(name);
  return found && found->spaced;
}
