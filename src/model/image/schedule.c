/* A noise level is sigma, how much noise there is for one part of picture; a_bar = 1 / (1 + sigma^2) is the share of
 * the picture's variance in a sample of variance 1. Settings and their defaults are diffusers'. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/image/pipeline.h"
#include "model/image/settings.h"
#include "rdna/image.h"

enum { MOST_TRAINED = 10000 };
static const double least_share = 0x1p-100;   /* its sigma and that one's square are finite */
static const double smallest_share = 0x1p-24; /* of the picture in a sample that would have none, which has no sigma */

typedef enum prediction { PREDICTION_EPSILON, PREDICTION_V, PREDICTION_SAMPLE } prediction;

/* What is read from the settings. */
typedef struct settings {
  int trained, offset;
  const char *timesteps; /* "leading", … */
  double *share;         /* (trained) a_bar of each trained timestep, ascending in noise but for the last */
  double last_sigma;     /* behind the last step */
  double last_share;     /* of ddim */
  int original;          /* of lcm: its timesteps are some of so many */
} settings;

typedef struct sampler sampler;

struct rdna_image_schedule {
  const sampler *sampler;
  prediction prediction;
  int steps, next;    /* the step that may be taken now, beside 0 */
  int first;          /* of the present sample */
  double clip;        /* of the predicted picture; 0: it is not */
  double scale;       /* of the first sample */
  bool lower_last;    /* dpmpp_2m: the last of fewer than 15 steps is of order 1 */
  bool euler_last;    /* … whatever their number */
  double stretch;     /* of lcm's timesteps */
  double *timestep;   /* (steps) */
  double *sigma, *to; /* (steps) of the sample that a step is given, and of what it makes */
  float *before;      /* (count) the picture that the last step predicted */
  size_t count;
};

struct sampler {
  const char *name;
  const char *timesteps; /* the default of timestep_spacing */
  bool scaled;           /* samples are picture + sigma noise, else of variance 1 */
  bool spaced;           /* karras and exponential too */
  bool noisy;
  bool one_more;  /* timesteps are those of one step more, without the last */
  bool clips;     /* the predicted picture is clipped, by default */
  bool distilled; /* as few steps as there are, each from the trained network of noise to a picture */
  bool strides;   /* a step makes what lies a stride of timesteps before it, whatever the next step is given */
  void (*step)(const rdna_image_schedule *s, int step, const float *raw, const float *picture, const float *noise,
               float *sample, size_t count);
};

/* ---- settings ---- */

static rdna_status number(const json_t *json, const char *name, double initial, double low, double high, double *out) {
  const json_t *value = json_object_get(json, name);
  *out = value && !json_is_null(value) ? json_number_value(value) : initial;
  if ((value && !json_is_null(value) && !json_is_number(value)) || !(*out >= low && *out <= high))
    return rdna__fail(RDNA_BAD_DATA, "the schedule's '%s' is no number from %g to %g", name, low, high);
  return RDNA_OK;
}

static rdna_status flag(const json_t *json, const char *name, bool initial, bool *out) {
  const json_t *value = json_object_get(json, name);
  *out = json_is_boolean(value) ? json_is_true(value) : initial;
  if (value && !json_is_null(value) && !json_is_boolean(value))
    return rdna__fail(RDNA_BAD_DATA, "the schedule's '%s' is neither true nor false", name);
  return RDNA_OK;
}

/* Which of the |count| |words| the setting is; |initial| where it is missing. */
static rdna_status choice(const json_t *json, const char *name, const char *const *words, int count, int initial,
                          int *out) {
  const json_t *value = json_object_get(json, name);
  *out = initial;
  if (!value || json_is_null(value)) return RDNA_OK;
  const char *text = json_string_value(value);
  for (*out = 0; *out < count; ++*out)
    if (text && strcmp(text, words[*out]) == 0) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "the schedule's '%s' is '%.40s', which is not known", name,
                    text ? text : "no text");
}

/* What else of a solver's settings dpmpp_2m would be another one with. The words of UniPC and DEIS for theirs do not
 * matter to it, nor does their order. */
static rdna_status check_solver(const json_t *json) {
  static const char *const algorithms[] = {"dpmsolver++", "deis"};
  static const char *const solvers[] = {"midpoint", "bh1", "bh2", "logrho"};
  const char *kind = json_string_value(json_object_get(json, "_class_name"));
  double order;
  int which;
  RDNA_TRY(choice(json, "algorithm_type", algorithms, 2, 0, &which));
  RDNA_TRY(choice(json, "solver_type", solvers, 4, 0, &which));
  RDNA_TRY(number(json, "solver_order", 2, 1, 3, &order));
  if (order == 2 || (kind && strcmp(kind, "DPMSolverMultistepScheduler") != 0)) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "dpmpp_2m is of order 2; the schedule's 'solver_order' is %g", order);
}

/* Settings that change what steps do and are not offered: they must be off. */
static rdna_status check_rest(const json_t *json, const char *name) {
  static const char *const off[] = {"thresholding", "use_beta_sigmas", "use_lu_lambdas", "use_flow_sigmas",
                                    "use_dynamic_shifting"};
  static const char *const missing[] = {"sigma_min", "sigma_max"};
  static const struct {
    const char *name, *known;
  } texts[] = {{"interpolation_type", "linear"}, {"timestep_type", "discrete"}};
  for (size_t i = 0; i < sizeof off / sizeof *off; i++) {
    bool on;
    RDNA_TRY(flag(json, off[i], false, &on));
    if (on) return rdna__fail(RDNA_UNSUPPORTED, "the schedule's '%s' is true", off[i]);
  }
  for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
    if (json_is_number(json_object_get(json, missing[i])))
      return rdna__fail(RDNA_UNSUPPORTED, "the schedule says '%s'", missing[i]);
  /* -Infinity, which clips nothing, is what diffusers saves */
  const json_t *clipped = json_object_get(json, "lambda_min_clipped");
  if (json_is_number(clipped) && json_number_value(clipped) > -RDNA__SETTING_INFINITY)
    return rdna__fail(RDNA_UNSUPPORTED, "the schedule says 'lambda_min_clipped'");
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    int which;
    RDNA_TRY(choice(json, texts[i].name, &texts[i].known, 1, 0, &which));
  }
  if (json_is_array(json_object_get(json, "trained_betas")))
    return rdna__fail(RDNA_UNSUPPORTED, "the schedule lists 'trained_betas'");
  return strcmp(name, "dpmpp_2m") == 0 ? check_solver(json) : RDNA_OK;
}

/* Nichol and Dhariwal (2021), equation 17. */
static double cosine_share(double t) {
  double c = cos((t + 0.008) / 1.008 * acos(-1) / 2);
  return c * c;
}

/* |latent|: where nothing is said it is as Stable Diffusion was trained. */
static rdna_status read_shares(const json_t *json, bool latent, settings *out) {
  static const char *const kinds[] = {"linear", "scaled_linear", "squaredcos_cap_v2"};
  double first, last, share = 1;
  int kind, n = out->trained;
  RDNA_TRY(choice(json, "beta_schedule", kinds, 3, latent, &kind));
  RDNA_TRY(number(json, "beta_start", latent ? 0.00085 : 0.0001, 0, 0.999, &first));
  RDNA_TRY(number(json, "beta_end", latent ? 0.012 : 0.02, 0, 0.999, &last));
  for (int i = 0; i < n; i++) {
    double at = n > 1 ? (double)i / (n - 1) : 0, root = sqrt(first) + at * (sqrt(last) - sqrt(first));
    double cosine = 1 - cosine_share((i + 1.0) / n) / cosine_share((double)i / n);
    double beta = kind == 0 ? first + at * (last - first) : kind == 1 ? root * root : cosine < 0.999 ? cosine : 0.999;
    share *= (double)(1 - (float)beta); /* rounded as in training, which at the end shows */
    out->share[i] = share;
  }
  bool rescaled;
  RDNA_TRY(flag(json, "rescale_betas_zero_snr", false, &rescaled));
  if (rescaled) { /* Lin et al. (2024), algorithm 1 */
    double low = sqrt(out->share[n - 1]), high = sqrt(out->share[0]);
    if (!(high > low)) return rdna__fail(RDNA_BAD_DATA, "the schedule's noise does not grow, so it cannot be rescaled");
    for (int i = 0; i < n; i++) {
      double root = (sqrt(out->share[i]) - low) * high / (high - low);
      out->share[i] = root * root;
    }
    out->share[n - 1] = smallest_share;
  }
  if (out->share[n - 1] >= least_share && out->share[0] < 1) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "the schedule begins without noise, or ends without picture");
}

static double sigma_of(double share) { return sqrt((1 - share) / share); }

static rdna_status read_settings(const json_t *json, const sampler *of, settings *out, rdna_image_schedule *s) {
  static const char *const timesteps[] = {"leading", "linspace", "trailing"};
  static const char *const predictions[] = {"epsilon", "v_prediction", "sample"};
  static const char *const lasts[] = {"zero", "sigma_min"};
  int which, initial = 0;
  double value;
  bool on;
  RDNA_TRY(check_rest(json, of->name));
  RDNA_TRY(number(json, "num_train_timesteps", 1000, 1, MOST_TRAINED, &value));
  out->trained = (int)value;
  RDNA_TRY(number(json, "steps_offset", 0, 0, MOST_TRAINED, &value));
  out->offset = (int)value;
  while (strcmp(timesteps[initial], of->timesteps) != 0) initial++;
  RDNA_TRY(choice(json, "timestep_spacing", timesteps, 3, initial, &which));
  out->timesteps = timesteps[which];
  RDNA_TRY(choice(json, "prediction_type", predictions, 3, 0, &which));
  s->prediction = (prediction)which;
  RDNA_TRY(flag(json, "clip_sample", !of->distilled, &on));
  if (of->clips && on) RDNA_TRY(number(json, "clip_sample_range", 1, 0, 1e9, &s->clip));
  out->share = malloc((size_t)out->trained * sizeof *out->share);
  if (!out->share) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a schedule");
  RDNA_TRY(read_shares(json, of->distilled, out));
  RDNA_TRY(choice(json, "final_sigmas_type", lasts, 2, 0, &which));
  out->last_sigma = which && !of->noisy ? sigma_of(out->share[0]) : 0;
  RDNA_TRY(flag(json, "set_alpha_to_one", true, &on));
  out->last_share = on ? 1 : out->share[0];
  RDNA_TRY(number(json, "original_inference_steps", 50, 1, MOST_TRAINED, &value));
  out->original = (int)value;
  RDNA_TRY(number(json, "timestep_scaling", 10, 1e-3, 1e6, &s->stretch));
  RDNA_TRY(flag(json, "lower_order_final", true, &s->lower_last));
  return flag(json, "euler_at_final", false, &s->euler_last);
}

/* ---- noise levels ---- */

/* Evenly some of those that a network was distilled at, which are evenly some of all. */
static rdna_status set_distilled(const settings *set, rdna_image_schedule *s) {
  if (s->steps > set->original || set->original > set->trained)
    return rdna__fail(RDNA_UNSUPPORTED, "%d steps of the %d that the network was distilled at, of %d; take fewer steps",
                      s->steps, set->original, set->trained);
  for (int i = 0; i < s->steps; i++) {
    int skipped = (int)((int64_t)i * set->original / s->steps);
    s->timestep[i] = (set->original - skipped) * (set->trained / set->original) - 1;
  }
  return RDNA_OK;
}

static rdna_status set_timesteps(const settings *set, rdna_image_schedule *s) {
  int n = s->steps + s->sampler->one_more;
  bool whole = !s->sampler->scaled; /* euler's evenly spaced ones are not rounded */
  for (int i = 0; i < s->steps; i++) {
    double *t = &s->timestep[i];
    if (strcmp(set->timesteps, "linspace") == 0)
      *t = n > 1 ? (double)(n - 1 - i) * (set->trained - 1) / (n - 1) : 0;
    else if (strcmp(set->timesteps, "leading") == 0)
      *t = (double)(n - 1 - i) * (set->trained / n) + set->offset;
    else
      *t = rint(set->trained - i * ((double)set->trained / s->steps)) - 1;
    if (whole) *t = rint(*t);
    if (*t < 0 || *t > set->trained - 1)
      return rdna__fail(RDNA_UNSUPPORTED, "%d steps would ask at timestep %g of %d; take fewer steps", s->steps, *t,
                        set->trained);
  }
  return RDNA_OK;
}

/* Between two trained timesteps, as if sigma were a line. */
static double sigma_at(const settings *set, double t) {
  int low = (int)t < set->trained - 1 ? (int)t : set->trained - 1, high = low + 1 < set->trained ? low + 1 : low;
  double a = sigma_of(set->share[low]), b = sigma_of(set->share[high]);
  return a + (t - low) * (b - a);
}

/* The timestep of |sigma|, between two trained ones by its logarithm. The last one's noise, which rescaling cuts off,
 * may be less than that before it. */
static double timestep_of(const settings *set, double sigma) {
  int low = 0, n = set->trained;
  if (n < 2) return 0;
  for (int i = 0; i < n; i++)
    if (sigma_of(set->share[i]) <= sigma) low = i < n - 2 ? i : n - 2;
  double a = log(sigma_of(set->share[low])), b = log(sigma_of(set->share[low + 1]));
  double part = a == b ? 0 : (log(sigma > 1e-10 ? sigma : 1e-10) - a) / (b - a);
  return low + (part < 0 ? 0 : part > 1 ? 1 : part);
}

/* Levels between the first and the last, spaced otherwise, and the timesteps that belong to them. */
static void space(const settings *set, bool karras, rdna_image_schedule *s) {
  bool all = s->sampler->one_more; /* its ends are those of all trained timesteps */
  double most = all ? sigma_of(set->share[set->trained - 1]) : s->sigma[0];
  double least = all ? sigma_of(set->share[0]) : s->sigma[s->steps - 1];
  for (int i = 0; i < s->steps; i++) {
    double at = s->steps > 1 ? (double)i / (s->steps - 1) : 0;
    s->sigma[i] = karras ? pow(pow(most, 1.0 / 7) + at * (pow(least, 1.0 / 7) - pow(most, 1.0 / 7)), 7)
                         : exp(log(most) + at * (log(least) - log(most)));
    s->timestep[i] = timestep_of(set, s->sigma[i]);
    if (all) s->timestep[i] = karras ? rint(s->timestep[i]) : floor(s->timestep[i]);
  }
}

static rdna_status set_levels(const settings *set, const char *spacing, rdna_image_schedule *s) {
  RDNA_TRY(s->sampler->distilled ? set_distilled(set, s) : set_timesteps(set, s));
  for (int i = 0; i < s->steps; i++) s->sigma[i] = sigma_at(set, s->timestep[i]);
  if (strcmp(spacing, "simple") != 0) space(set, strcmp(spacing, "karras") == 0, s);
  for (int i = 0; i < s->steps; i++) s->to[i] = i + 1 < s->steps ? s->sigma[i + 1] : set->last_sigma;
  for (int i = 0; s->sampler->strides && i < s->steps; i++) {
    int to = (int)s->timestep[i] - set->trained / s->steps;
    s->to[i] = sigma_of(to >= 0 ? set->share[to] : set->last_share);
  }
  for (int i = 1; i < s->steps; i++)
    if (!(s->sigma[i] < s->sigma[i - 1]))
      return rdna__fail(RDNA_UNSUPPORTED,
                        "%d steps: step %d would begin with no less noise than the one before it; take fewer steps",
                        s->steps, i);
  double most = s->sigma[0];
  s->scale = !s->sampler->scaled ? 1 : strcmp(set->timesteps, "leading") == 0 ? sqrt(most * most + 1) : most;
  return RDNA_OK;
}

/* ---- steps: |raw| is what the network takes the sample for, |picture| that clipped ---- */

static void step_ddim(const rdna_image_schedule *s, int i, const float *raw, const float *picture, const float *noise,
                      float *sample, size_t count) {
  double from = s->sigma[i], to = s->to[i], a = 1 / sqrt(1 + from * from), b = 1 / sqrt(1 + to * to);
  /* the noise is what the network says, also where the picture is clipped */
  for (size_t k = 0; k < count; k++) {
    double e = ((double)sample[k] - a * (double)raw[k]) / (a * from);
    sample[k] = (float)(b * (double)picture[k] + b * to * e);
  }
}

static void step_euler(const rdna_image_schedule *s, int i, const float *raw, const float *picture, const float *noise,
                       float *sample, size_t count) {
  double from = s->sigma[i], to = s->to[i], up = 0;
  if (s->sampler->noisy) {
    up = sqrt(to * to * (from * from - to * to) / (from * from));
    to = sqrt(to * to - up * up);
  }
  for (size_t k = 0; k < count; k++) {
    double slope = ((double)sample[k] - (double)picture[k]) / from;
    sample[k] = (float)((double)sample[k] + slope * (to - from) + (up > 0 ? up * (double)noise[k] : 0));
  }
}

/* Its integrals are of exp(lambda), lambda = -log sigma. */
static void step_dpmpp_2m(const rdna_image_schedule *s, int i, const float *raw, const float *picture,
                          const float *noise, float *sample, size_t count) {
  double from = s->sigma[i], to = s->to[i], a = 1 / sqrt(1 + to * to);
  double keep = a * to * sqrt(1 + from * from) / from, gain = a * (1 - to / from), more = 0;
  bool first_order = i + 1 == s->steps && (to == 0 || s->euler_last || (s->lower_last && s->steps < 15));
  if (i > s->first && !first_order) more = log(from / to) / log(s->sigma[i - 1] / from) / 2;
  for (size_t k = 0; k < count; k++) {
    double x = (double)picture[k], change = more > 0 ? x - (double)s->before[k] : 0;
    sample[k] = (float)(keep * (double)sample[k] + gain * (x + more * change));
  }
}

/* Its picture is a mixture of the network's and of the sample, which at timestep 0 is the sample. */
static void step_lcm(const rdna_image_schedule *s, int i, const float *raw, const float *picture, const float *noise,
                     float *sample, size_t count) {
  const double deviation = 0.5; /* of pictures */
  double t = s->timestep[i] * s->stretch, to = s->to[i], a = 1 / sqrt(1 + to * to);
  double keep = deviation * deviation / (t * t + deviation * deviation), gain = t / sqrt(t * t + deviation * deviation);
  for (size_t k = 0; k < count; k++) {
    double x = gain * (double)picture[k] + keep * (double)sample[k];
    sample[k] = (float)(a * x + (to > 0 ? a * to * (double)noise[k] : 0));
  }
}

static const sampler samplers[] = {
    {.name = "ddim", .timesteps = "leading", .clips = true, .strides = true, .step = step_ddim},
    {.name = "euler", .timesteps = "linspace", .scaled = true, .spaced = true, .step = step_euler},
    {.name = "euler_ancestral", .timesteps = "linspace", .scaled = true, .noisy = true, .step = step_euler},
    {.name = "dpmpp_2m", .timesteps = "linspace", .spaced = true, .one_more = true, .step = step_dpmpp_2m},
    {.name = "lcm", .timesteps = "leading", .noisy = true, .clips = true, .distilled = true, .step = step_lcm},
};

/* ---- the interface ---- */

static const sampler *find_sampler(const char *name) {
  for (size_t i = 0; i < sizeof samplers / sizeof *samplers; i++)
    if (strcmp(samplers[i].name, name) == 0) return &samplers[i];
  return NULL;
}

bool rdna__sampler_is_spaced(const char *name) {
  const sampler *found = find_sampler(name);
  return found && found->spaced;
}

static rdna_status make(const json_t *json, const char *spacing, rdna_image_schedule *s) {
  settings set = {0};
  rdna_status status = read_settings(json, s->sampler, &set, s);
  if (status == RDNA_OK && s->steps > set.trained)
    status = rdna__fail(RDNA_INVALID_ARGUMENT, "%d steps; the schedule has 1 to %d", s->steps, set.trained);
  if (status == RDNA_OK) {
    s->timestep = calloc((size_t)s->steps, sizeof *s->timestep);
    s->sigma = calloc((size_t)s->steps, sizeof *s->sigma);
    s->to = calloc((size_t)s->steps, sizeof *s->to);
    status = s->timestep && s->sigma && s->to ? set_levels(&set, spacing, s)
                                              : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a schedule");
  }
  free(set.share);
  return status;
}

rdna_status rdna_image_schedule_create(const char *text, const char *name, const char *spacing, int steps,
                                       rdna_image_schedule **out_schedule) {
  if (!text || !name || !spacing || !out_schedule || steps < 1)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_image_schedule_create needs settings, a sampler, a spacing, 1 step or more and a place");
  const sampler *found = find_sampler(name);
  if (!found)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "no sampler '%.40s'; ddim, euler, euler_ancestral, dpmpp_2m and lcm are",
                      name);
  bool simple = strcmp(spacing, "simple") == 0;
  if (!simple && strcmp(spacing, "karras") != 0 && strcmp(spacing, "exponential") != 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "no spacing '%.40s'; simple, karras and exponential are", spacing);
  if (!simple && !found->spaced)
    return rdna__fail(RDNA_UNSUPPORTED, "sampler %s has the spacing simple, not %s", name, spacing);
  json_t *json = NULL;
  RDNA_TRY(rdna__annotate(rdna__settings_parse(text, strlen(text), &json), "a schedule's settings, a JSON object"));
  rdna_image_schedule *s = calloc(1, sizeof *s);
  rdna_status status = s ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a schedule");
  if (status == RDNA_OK) {
    s->sampler = found;
    s->steps = steps;
    status = make(json, spacing, s);
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
  free(s->before);
  free(s);
}

int rdna_image_schedule_steps(const rdna_image_schedule *s) { return s->steps; }
double rdna_image_schedule_initial_scale(const rdna_image_schedule *s) { return s->scale; }
bool rdna_image_schedule_needs_noise(const rdna_image_schedule *s) { return s->sampler->noisy; }

double rdna_image_schedule_timestep(const rdna_image_schedule *s, int step) {
  return step >= 0 && step < s->steps ? s->timestep[step] : NAN;
}

double rdna_image_schedule_input_scale(const rdna_image_schedule *s, int step) {
  if (step < 0 || step >= s->steps) return NAN;
  return s->sampler->scaled ? 1 / sqrt(1 + s->sigma[step] * s->sigma[step]) : 1;
}

/* What the network takes |sample| for, from its |output|: (1, sigma) of picture and noise, or that times a. */
static double predict(const rdna_image_schedule *s, int step, double sample, double output) {
  double sigma = s->sigma[step], a = 1 / sqrt(1 + sigma * sigma), x = s->sampler->scaled ? sample * a : sample;
  if (s->prediction == PREDICTION_SAMPLE) return output;
  return s->prediction == PREDICTION_V ? a * x - a * sigma * output : x / a - sigma * output;
}

rdna_status rdna_image_schedule_begin(rdna_image_schedule *s, int first, const float *picture, const float *noise,
                                      float *sample, size_t count) {
  if (!s || ((!picture || !noise || !sample) && count > 0))
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "rdna_image_schedule_begin needs a schedule, a picture, noise and a place for their mixture");
  if (first < 0 || first >= s->steps)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a sample that begins with step %d of %d", first, s->steps);
  double sigma = s->sigma[first], scale = s->sampler->scaled ? 1 : 1 / sqrt(1 + sigma * sigma);
  for (size_t k = 0; k < count; k++) sample[k] = (float)(scale * ((double)picture[k] + sigma * (double)noise[k]));
  s->first = s->next = first;
  s->count = count;
  return RDNA_OK;
}

rdna_status rdna_image_schedule_step(rdna_image_schedule *s, int step, const float *output, const float *noise,
                                     float *sample, size_t count) {
  if (!s || ((!output || !sample) && count > 0) || (count > 0 && s->sampler->noisy && !noise))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_image_schedule_step needs a schedule, an output, a sample%s",
                      s && s->sampler->noisy ? " and noise" : "");
  if (step < 0 || step >= s->steps || (step != 0 && (step != s->next || count != s->count)))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "step %d of %d with %zu values, where step %d with %zu is next", step,
                      s->steps, count, s->next, s->count);
  float *raw = malloc(count * sizeof *raw + 1), *picture = malloc(count * sizeof *picture + 1);
  if (!raw || !picture) {
    free(raw);
    free(picture);
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a step of %zu values", count);
  }
  float most = s->clip > 0 ? (float)s->clip : INFINITY;
  for (size_t k = 0; k < count; k++) {
    raw[k] = (float)predict(s, step, (double)sample[k], (double)output[k]);
    picture[k] = raw[k] > most ? most : raw[k] < -most ? -most : raw[k];
  }
  if (step != s->next) s->first = 0; /* 0 begins another sample */
  s->sampler->step(s, step, raw, picture, noise, sample, count);
  free(raw);
  free(s->before);
  s->before = picture;
  s->count = count;
  s->next = step + 1;
  return RDNA_OK;
}
