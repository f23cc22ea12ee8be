#include "model/image/schedule.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

rdna_status rdna_image_schedule_create(const char *text, const char *name, const char *spacing, int steps,
                                       rdna_image_schedule **out_schedule) {
  if (!text || !name || !spacing || !out_schedule || steps < 1)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_image_schedule_create needs settings, a sampler, a spacing, 1 step or more and a place");
  const rdna__sampler *found = rdna__sampler_find(name);
  if (!found)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "no sampler '%.40s'; ddim, ddpm, pndm, euler, euler_ancestral, heun, dpmpp_2m, "
                      "dpmpp_2m_sde, dpmpp_3m_sde, dpmpp_sde, unipc and lcm are",
                      name);
  bool simple = strcmp(spacing, "simple") == 0;
  if (!rdna__spacing_is_known(spacing))
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "no spacing '%.40s'; simple, karras, exponential, beta, ays, ays_xl and sgm_uniform are",
                      spacing);
  if (!simple && !found->spaced)
    return rdna__fail(RDNA_UNSUPPORTED, "sampler %s has the spacing simple, not %s", name, spacing);
  json_t *json = NULL;
  RDNA_TRY(rdna__annotate(rdna__settings_parse(text, strlen(text), &json), "a schedule's settings, a JSON object"));
  rdna_image_schedule *s = calloc(1, sizeof *s);
  rdna_status status = s ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a schedule");
  if (status == RDNA_OK) {
    s->sampler = found;
    s->levels = steps;
    status = rdna__schedule_read(json, spacing, s);
  }
  json_decref(json);
  if (status == RDNA_OK)
    *out_schedule = s;
  else
    rdna_image_schedule_release(s);
  return status;
}

void rdna_image_schedule_release(rdna_image_schedule *s) {
  if (!s) return;
  free(s->timestep);
  free(s->sigma);
  free(s->to);
  for (int i = 0; i < RDNA__SCHEDULE_PICTURES; i++) free(s->pictures[i]);
  for (int i = 0; i < RDNA__SCHEDULE_ASIDE; i++) free(s->aside[i]);
  free(s);
}

int rdna_image_schedule_steps(const rdna_image_schedule *s) { return s->steps; }
double rdna_image_schedule_initial_scale(const rdna_image_schedule *s) { return s->scale; }
bool rdna_image_schedule_needs_noise(const rdna_image_schedule *s) { return s->sampler->noisy; }

int rdna_image_schedule_step_of(const rdna_image_schedule *s, int level) {
  if (level < 0 || level >= s->levels) return -1;
  if (s->sampler->asking == ASKING_ONCE) return level;
  return s->sampler->asking == ASKING_SECOND ? level + (level > 0) : 2 * level;
}

double rdna_image_schedule_timestep(const rdna_image_schedule *s, int step) {
  return step >= 0 && step < s->steps ? s->timestep[step] : NAN;
}

double rdna_image_schedule_input_scale(const rdna_image_schedule *s, int step) {
  if (step < 0 || step >= s->steps) return NAN;
  return s->sampler->scaled ? 1 / sqrt(1 + s->sigma[step] * s->sigma[step]) : 1;
}

/* A sample is (1, sigma) of picture and noise, or that times a. */
double rdna__schedule_predict(const rdna_image_schedule *s, double sigma, double sample, double output) {
  double a = 1 / sqrt(1 + sigma * sigma), x = s->sampler->scaled ? sample * a : sample;
  if (s->prediction == PREDICTION_SAMPLE) return output;
  return s->prediction == PREDICTION_V ? a * x - a * sigma * output : x / a - sigma * output;
}

void rdna__schedule_picture(const rdna_image_schedule *s, int step, const float *sample, const float *output,
                            float *picture, size_t count) {
  for (size_t k = 0; k < count; k++)
    picture[k] = (float)rdna__schedule_predict(s, s->sigma[step], (double)sample[k], (double)output[k]);
}

/* Whether a step begins at a level, where a sample may begin. */
static bool is_at_level(const rdna_image_schedule *s, int step) {
  if (step < 0 || step >= s->steps) return false;
  return s->sampler->asking == ASKING_ONCE || (s->sampler->asking == ASKING_SECOND ? step != 1 : step % 2 == 0);
}

void rdna__schedule_mix(const rdna_image_schedule *s, int step, const float *picture, const float *noise, float *sample,
                        size_t count) {
  double sigma = s->sigma[step], scale = s->sampler->scaled ? 1 : 1 / sqrt(1 + sigma * sigma);
  for (size_t k = 0; k < count; k++) sample[k] = (float)(scale * ((double)picture[k] + sigma * (double)noise[k]));
}

rdna_status rdna_image_schedule_begin(rdna_image_schedule *s, int first, const float *picture, const float *noise,
                                      float *sample, size_t count) {
  if (!s || ((!picture || !noise || !sample) && count > 0))
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_image_schedule_begin needs a schedule, a picture, noise and a place for their mixture");
  if (!is_at_level(s, first))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a sample that begins with step %d of %d", first, s->steps);
  rdna__schedule_mix(s, first, picture, noise, sample, count);
  s->first = s->next = first;
  s->count = count;
  return RDNA_OK;
}

int rdna__schedule_level_behind(const rdna_image_schedule *s, double share) {
  double most = rint(s->trained - share * s->trained);
  int level = 0;
  while (level < s->levels && rdna_image_schedule_timestep(s, rdna_image_schedule_step_of(s, level)) >= most) level++;
  return level;
}

void rdna__schedule_take_over(rdna_image_schedule *s, int first, size_t count) {
  s->first = s->next = first;
  s->count = count;
}

/* Room for what the sampler keeps of a sample that begins. */
static rdna_status make_room(rdna_image_schedule *s, size_t count) {
  for (int i = 0; i < s->sampler->aside; i++) {
    float *grown = realloc(s->aside[i], count * sizeof *grown + 1);
    if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a step of %zu values", count);
    s->aside[i] = grown;
  }
  return RDNA_OK;
}

/* The pictures before are one step older, and |picture| is the last. */
static void remember(rdna_image_schedule *s, float *picture) {
  free(s->pictures[RDNA__SCHEDULE_PICTURES - 1]);
  memmove(s->pictures + 1, s->pictures, (RDNA__SCHEDULE_PICTURES - 1) * sizeof *s->pictures);
  s->pictures[0] = picture;
}

rdna_status rdna_image_schedule_step(rdna_image_schedule *s, int step, const float *output, const float *noise,
                                     float *sample, size_t count) {
  if (!s || ((!output || !sample) && count > 0) || (count > 0 && s->sampler->noisy && !noise))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_schedule_step needs a schedule, an output, a sample%s",
                      s && s->sampler->noisy ? " and noise" : "");
  if (step < 0 || step >= s->steps || (step != 0 && (step != s->next || count != s->count)))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "step %d of %d with %zu values, where step %d with %zu is next", step,
                      s->steps, count, s->next, s->count);
  int first = step != s->next ? 0 : s->first; /* 0 begins another sample */
  if (step == first) RDNA_TRY(make_room(s, count));
  float *raw = malloc(count * sizeof *raw + 1), *picture = malloc(count * sizeof *picture + 1);
  if (!raw || !picture) {
    free(raw);
    free(picture);
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a step of %zu values", count);
  }
  float most = s->clip > 0 ? (float)s->clip : INFINITY;
  rdna__schedule_picture(s, step, sample, output, raw, count);
  for (size_t k = 0; k < count; k++) picture[k] = raw[k] > most ? most : raw[k] < -most ? -most : raw[k];
  s->first = first;
  const rdna__taking taking = {output, raw, picture, noise, sample, count};
  s->sampler->step(s, step, &taking);
  free(raw);
  remember(s, picture);
  s->count = count;
  s->next = step + 1;
  return RDNA_OK;
}
