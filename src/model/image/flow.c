/* Noise levels of straight lines. Settings and their defaults are diffusers'. */
#include "model/image/flow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/image/settings.h"

enum { MOST_STEPS = 10000, TRAINED = 1000, MOST_TOKENS = 1 << 28, MOST_SHIFT = 100 };

struct rdna_image_flow {
  int steps;
  double *sigma; /* (steps + 1) */
};

/* ---- settings ---- */

typedef struct shifting {
  double shift;         /* where |dynamic| is not set */
  bool dynamic, linear; /* … by the picture's tokens; by |mu| itself, not by its exponential */
  double mu;
  double last; /* of the last step; 0: wherever it comes to */
  bool karras, exponential;
} shifting;

static rdna_status check_rest(const json_t *json) {
  static const char *const off[] = {"invert_sigmas", "use_beta_sigmas", "stochastic_sampling", "use_flow_sigmas"};
  int trained;
  RDNA_TRY(rdna__setting_is(json, "_class_name", "FlowMatchEulerDiscreteScheduler"));
  for (size_t i = 0; i < sizeof off / sizeof *off; i++) RDNA_TRY(rdna__setting_is_flag(json, off[i], false));
  RDNA_TRY(rdna__setting_whole(json, "num_train_timesteps", TRAINED, 1, 1 << 20, &trained));
  if (trained == TRAINED) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "the setting 'num_train_timesteps' is %d; %d is known", trained, TRAINED);
}

/* A line through two numbers of tokens and what levels are shifted by there. */
static rdna_status read_line(const json_t *json, int tokens, double *out_mu) {
  double low, high, few, many;
  RDNA_TRY(rdna__setting_number(json, "base_shift", 0.5, -20, 20, &low));
  RDNA_TRY(rdna__setting_number(json, "max_shift", 1.15, -20, 20, &high));
  RDNA_TRY(rdna__setting_number(json, "base_image_seq_len", 256, 1, 1e9, &few));
  RDNA_TRY(rdna__setting_number(json, "max_image_seq_len", 4096, 1, 1e9, &many));
  if (few == many)
    return rdna__fail(RDNA_BAD_DATA, "the settings 'base_image_seq_len' and 'max_image_seq_len' are the same");
  *out_mu = low + (tokens - few) * (high - low) / (many - few);
  return RDNA_OK;
}

/* What FLUX.2's levels are shifted by: lines that Black Forest Labs measured for 10 and for 200 steps, and between them
 * by the steps; of large pictures the latter alone. */
static double measured_shift(int tokens, int steps) {
  double few = 8.73809524e-05 * tokens + 1.89833333, many = 0.00016927 * tokens + 0.45666666;
  return tokens > 4300 ? many : many + (many - few) / 190 * (steps - 200);
}

static rdna_status read_settings(const json_t *json, int tokens, shifting *out) {
  const char *kind;
  const json_t *last = json_object_get(json, "shift_terminal");
  *out = (shifting){0};
  RDNA_TRY(check_rest(json));
  RDNA_TRY(rdna__setting_number(json, "shift", 1, 1e-6, 1e6, &out->shift));
  RDNA_TRY(rdna__setting_flag(json, "use_dynamic_shifting", false, &out->dynamic));
  RDNA_TRY(rdna__setting_text(json, "time_shift_type", "exponential", &kind));
  out->linear = strcmp(kind, "linear") == 0;
  if (!out->linear && strcmp(kind, "exponential") != 0)
    return rdna__fail(RDNA_UNSUPPORTED, "the setting 'time_shift_type' is '%.40s'; exponential and linear are known",
                      kind);
  if (out->dynamic) RDNA_TRY(read_line(json, tokens, &out->mu));
  if (out->dynamic && !(fabs(out->mu) <= MOST_SHIFT && (out->mu > 0 || !out->linear)))
    return rdna__fail(RDNA_BAD_DATA, "levels of a picture of %d tokens are shifted by %g, which is %s", tokens, out->mu,
                      out->linear ? "not above 0 and up to 100" : "not from -100 to 100");
  if (last && !json_is_null(last) && !(json_is_number(last) && json_number_value(last) == 0))
    RDNA_TRY(rdna__setting_number(json, "shift_terminal", 0, 1e-6, 0.999, &out->last));
  RDNA_TRY(rdna__setting_flag(json, "use_karras_sigmas", false, &out->karras));
  RDNA_TRY(rdna__setting_flag(json, "use_exponential_sigmas", false, &out->exponential));
  if (!out->karras || !out->exponential) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "'use_karras_sigmas' and 'use_exponential_sigmas' are both true");
}

/* ---- levels ---- */

/* Karras et al. (2022), equation 5 with rho 7; or evenly in their logarithm. */
static void space(const shifting *by, rdna_image_flow *f) {
  double most = f->sigma[0], least = f->sigma[f->steps - 1];
  for (int i = 0; i < f->steps; i++) {
    double at = f->steps > 1 ? (double)i / (f->steps - 1) : 0;
    f->sigma[i] = by->karras ? pow(pow(most, 1.0 / 7) + at * (pow(least, 1.0 / 7) - pow(most, 1.0 / 7)), 7)
                             : exp(log(most) + at * (log(least) - log(most)));
  }
}

static double shifted(double level, double factor) { return factor * level / (1 - level + factor * level); }

/* Level |i| before it is shifted. Trained levels were shifted themselves, where that is alike for all pictures. */
static double level_of(const shifting *by, rdna__flow_levels levels, int steps, int i) {
  if (levels != FLOW_LEVELS_TRAINED) return (double)(steps - i) / steps;
  double least = shifted(1.0 / TRAINED, by->dynamic ? 1 : by->shift);
  return steps > 1 ? 1 - (1 - least) * i / (steps - 1) : 1;
}

static rdna_status set_levels(const shifting *by, rdna__flow_levels levels, rdna_image_flow *f) {
  double factor = !by->dynamic ? by->shift : by->linear ? by->mu : exp(by->mu);
  for (int i = 0; i < f->steps; i++) f->sigma[i] = shifted(level_of(by, levels, f->steps, i), factor);
  double rest = 1 - f->sigma[f->steps - 1];
  if (by->last > 0 && !(rest > 0))
    return rdna__fail(RDNA_UNSUPPORTED, "one step cannot begin at 1 and at a 'shift_terminal' of %g; take more steps",
                      by->last);
  for (int i = 0; by->last > 0 && i < f->steps; i++) f->sigma[i] = 1 - (1 - f->sigma[i]) * (1 - by->last) / rest;
  if (by->karras || by->exponential) space(by, f);
  f->sigma[f->steps] = 0;
  return RDNA_OK;
}

rdna_status rdna_image_flow_create(const char *settings, int steps, int tokens, rdna_image_flow **out_flow) {
  return rdna__flow_create(settings, steps, tokens, FLOW_LEVELS_EVEN, out_flow);
}

rdna_status rdna__flow_create(const char *settings, int steps, int tokens, rdna__flow_levels levels,
                              rdna_image_flow **out_flow) {
  if (!settings || !out_flow || steps < 1 || steps > MOST_STEPS || tokens < 1 || tokens > MOST_TOKENS)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_image_flow_create needs settings, 1 to %d steps, a picture's tokens and a place",
                      MOST_STEPS);
  json_t *json;
  shifting by;
  RDNA_TRY(rdna__annotate(rdna__settings_parse(settings, strlen(settings), &json), "a schedule's settings"));
  rdna_status status = rdna__annotate(read_settings(json, tokens, &by), "a schedule");
  json_decref(json);
  if (levels == FLOW_LEVELS_MEASURED) by.mu = measured_shift(tokens, steps);
  if (status != RDNA_OK) return status;
  rdna_image_flow *f = calloc(1, sizeof *f);
  double *sigma = calloc((size_t)steps + 1, sizeof *sigma);
  if (!f || !sigma) {
    free(f);
    free(sigma);
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a schedule");
  }
  *f = (rdna_image_flow){.steps = steps, .sigma = sigma};
  status = set_levels(&by, levels, f);
  if (status == RDNA_OK)
    *out_flow = f;
  else
    rdna_image_flow_release(f);
  return status;
}

void rdna_image_flow_release(rdna_image_flow *f) {
  if (!f) return;
  free(f->sigma);
  free(f);
}

int rdna_image_flow_steps(const rdna_image_flow *f) { return f->steps; }

double rdna_image_flow_sigma(const rdna_image_flow *f, int step) {
  return step >= 0 && step <= f->steps ? f->sigma[step] : (double)NAN;
}

/* ---- samples ---- */

rdna_status rdna_image_flow_begin(const rdna_image_flow *f, int step, const float *picture, const float *noise,
                                  float *sample, size_t count) {
  if (!f || step < 0 || step >= f->steps || (count && (!picture || !noise || !sample)))
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_image_flow_begin needs a schedule, one of its steps, a picture, "
                      "noise and a place");
  double sigma = f->sigma[step];
  for (size_t k = 0; k < count; k++) sample[k] = (float)((1 - sigma) * (double)picture[k] + sigma * (double)noise[k]);
  return RDNA_OK;
}

rdna_status rdna_image_flow_step(const rdna_image_flow *f, int step, const float *output, float *sample, size_t count) {
  if (!f || step < 0 || step >= f->steps || (count && (!output || !sample)))
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_image_flow_step needs a schedule, one of its steps, an output and "
                      "a sample");
  double by = f->sigma[step + 1] - f->sigma[step];
  for (size_t k = 0; k < count; k++) sample[k] = (float)((double)sample[k] + by * (double)output[k]);
  return RDNA_OK;
}
