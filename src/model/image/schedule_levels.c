/* What a folder's scheduler_config.json says of noise, as the levels at which a network is asked. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/image/schedule.h"

enum { MOST_TRAINED = 10000 };
static const double least_share = 0x1p-100;   /* its sigma and that one's square are finite */
static const double smallest_share = 0x1p-24; /* of the picture in a sample that would have none, which has no sigma */

/* What is read from the settings. */
typedef struct settings {
  int trained, offset;
  const char *timesteps; /* "leading", … */
  double *share;         /* (trained) a_bar of each trained timestep, ascending in noise but for the last */
  double last_sigma;     /* behind the last step */
  double last_share;     /* of samplers that stride */
  int original;          /* of lcm: its timesteps are some of so many */
} settings;

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

/* What else of a solver's settings ours would be another one with. The words of UniPC and DEIS for theirs do not matter
 * to the others, nor does their order. */
static rdna_status check_solver(const json_t *json, const rdna__sampler *of) {
  static const char *const algorithms[] = {"dpmsolver++", "deis", "sde-dpmsolver++"};
  static const char *const solvers[] = {"midpoint", "bh1", "bh2", "logrho"};
  const char *kind = json_string_value(json_object_get(json, "_class_name"));
  double order;
  int which;
  RDNA_TRY(choice(json, "algorithm_type", algorithms, of->noisy ? 3 : 2, 0, &which));
  RDNA_TRY(choice(json, "solver_type", solvers, 4, 0, &which));
  RDNA_TRY(number(json, "solver_order", of->solver, 1, 3, &order));
  if (order == of->solver || of->noisy || (kind && strcmp(kind, "DPMSolverMultistepScheduler") != 0)) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "%s is of order %d; the schedule's 'solver_order' is %g", of->name, of->solver,
                    order);
}

/* UniPC's own, which in another scheduler's settings say nothing. */
static rdna_status read_unipc(const json_t *json, rdna_image_schedule *s) {
  static const char *const solvers[] = {"bh2", "bh1"};
  const char *kind = json_string_value(json_object_get(json, "_class_name"));
  double order = 2;
  int which = 0;
  bool pictures = true;
  if (!kind || strcmp(kind, "UniPCMultistepScheduler") == 0) {
    RDNA_TRY(number(json, "solver_order", 2, 1, RDNA__SCHEDULE_ORDER, &order));
    RDNA_TRY(choice(json, "solver_type", solvers, 2, 0, &which));
    RDNA_TRY(flag(json, "predict_x0", true, &pictures));
    if (!pictures) return rdna__fail(RDNA_UNSUPPORTED, "the schedule's 'predict_x0' is false");
    if (json_array_size(json_object_get(json, "disable_corrector")) > 0)
      return rdna__fail(RDNA_UNSUPPORTED, "the schedule lists steps to 'disable_corrector' at");
    if (json_is_object(json_object_get(json, "solver_p")))
      return rdna__fail(RDNA_UNSUPPORTED, "the schedule has another solver as 'solver_p'");
  }
  s->order = (int)order;
  s->first_form = which == 1;
  return RDNA_OK;
}

/* Settings that one sampler alone looks at. */
static rdna_status check_own(const json_t *json, const rdna__sampler *of) {
  static const char *const small = "fixed_small";
  const char *kind = json_string_value(json_object_get(json, "_class_name"));
  int which;
  bool skips;
  if (of->solver) return check_solver(json, of);
  if (strcmp(of->name, "ddpm") == 0) return choice(json, "variance_type", &small, 1, 0, &which);
  if (of->asking != ASKING_SECOND) return RDNA_OK;
  RDNA_TRY(flag(json, "skip_prk_steps", !kind || strcmp(kind, "PNDMScheduler") != 0, &skips));
  if (skips) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED,
                    "the schedule's 'skip_prk_steps' is false; pndm without its Runge-Kutta steps is there");
}

/* Settings that change what steps do and are not offered: they must be off. */
static rdna_status check_rest(const json_t *json, const rdna__sampler *of) {
  static const char *const off[] = {"thresholding", "use_lu_lambdas", "use_flow_sigmas", "use_dynamic_shifting"};
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
  return check_own(json, of);
}

/* Nichol and Dhariwal (2021), equation 17. */
static double cosine_share(double t) {
  double c = cos((t + 0.008) / 1.008 * acos(-1) / 2);
  return c * c;
}

static rdna_status read_shares(const json_t *json, const rdna__sampler *of, settings *out) {
  static const char *const kinds[] = {"linear", "scaled_linear", "squaredcos_cap_v2"};
  double first, last, share = 1;
  int kind, n = out->trained;
  RDNA_TRY(choice(json, "beta_schedule", kinds, 3, of->distilled, &kind));
  RDNA_TRY(number(json, "beta_start", of->latent ? 0.00085 : 0.0001, 0, 0.999, &first));
  RDNA_TRY(number(json, "beta_end", of->latent ? 0.012 : 0.02, 0, 0.999, &last));
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

static rdna_status read_settings(const json_t *json, settings *out, rdna_image_schedule *s) {
  const rdna__sampler *of = s->sampler;
  static const char *const timesteps[] = {"leading", "linspace", "trailing"};
  static const char *const predictions[] = {"epsilon", "v_prediction", "sample"};
  static const char *const lasts[] = {"zero", "sigma_min"};
  int which, initial = 0;
  double value;
  bool on;
  RDNA_TRY(check_rest(json, of));
  RDNA_TRY(number(json, "num_train_timesteps", 1000, 1, MOST_TRAINED, &value));
  out->trained = (int)value;
  RDNA_TRY(number(json, "steps_offset", 0, 0, MOST_TRAINED, &value));
  out->offset = (int)value;
  while (strcmp(timesteps[initial], of->timesteps) != 0) initial++;
  RDNA_TRY(choice(json, "timestep_spacing", timesteps, 3, initial, &which));
  out->timesteps = timesteps[which];
  RDNA_TRY(choice(json, "prediction_type", predictions, 3, 0, &which));
  s->prediction = (rdna__prediction)which;
  RDNA_TRY(flag(json, "clip_sample", of->clipped, &on));
  if (of->clips && on) RDNA_TRY(number(json, "clip_sample_range", 1, 0, 1e9, &s->clip));
  out->share = malloc((size_t)out->trained * sizeof *out->share);
  if (!out->share) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a schedule");
  RDNA_TRY(read_shares(json, of, out));
  RDNA_TRY(choice(json, "final_sigmas_type", lasts, 2, 0, &which));
  out->last_sigma = which && of->ends ? sigma_of(out->share[0]) : 0;
  RDNA_TRY(flag(json, "set_alpha_to_one", of->last_whole, &on));
  out->last_share = on ? 1 : out->share[0];
  RDNA_TRY(number(json, "original_inference_steps", 50, 1, MOST_TRAINED, &value));
  out->original = (int)value;
  RDNA_TRY(number(json, "timestep_scaling", 10, 1e-3, 1e6, &s->stretch));
  RDNA_TRY(read_unipc(json, s));
  RDNA_TRY(flag(json, "lower_order_final", true, &s->lower_last));
  return flag(json, "euler_at_final", false, &s->euler_last);
}

/* ---- noise levels ---- */

/* Evenly some of those that a network was distilled at, which are evenly some of all. */
static rdna_status set_distilled(const settings *set, rdna_image_schedule *s) {
  if (s->levels > set->original || set->original > set->trained)
    return rdna__fail(RDNA_UNSUPPORTED, "%d steps of the %d that the network was distilled at, of %d; take fewer steps",
                      s->levels, set->original, set->trained);
  for (int i = 0; i < s->levels; i++) {
    int skipped = (int)((int64_t)i * set->original / s->levels);
    s->timestep[i] = (set->original - skipped) * (set->trained / set->original) - 1;
  }
  return RDNA_OK;
}

static rdna_status set_timesteps(const settings *set, rdna_image_schedule *s) {
  int n = s->levels + s->sampler->one_more;
  bool whole = !s->sampler->scaled; /* euler's evenly spaced ones are not rounded */
  for (int i = 0; i < s->levels; i++) {
    double *t = &s->timestep[i];
    if (strcmp(set->timesteps, "linspace") == 0)
      *t = n > 1 ? (double)(n - 1 - i) * (set->trained - 1) / (n - 1) : 0;
    else if (strcmp(set->timesteps, "leading") == 0)
      *t = (double)(n - 1 - i) * (set->trained / n) + set->offset;
    else
      *t = rint(set->trained - i * ((double)set->trained / s->levels)) - 1;
    if (whole) *t = rint(*t);
    if (*t < 0 || *t > set->trained - 1)
      return rdna__fail(RDNA_UNSUPPORTED, "%d steps would ask at timestep %g of %d; take fewer steps", s->levels, *t,
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
static void space(const settings *set, const char *spacing, rdna_image_schedule *s) {
  bool all = s->sampler->one_more; /* its ends are those of all trained timesteps */
  bool rounded = strcmp(spacing, "karras") == 0 || strcmp(spacing, "ays") == 0 || strcmp(spacing, "ays_xl") == 0;
  double most = all ? sigma_of(set->share[set->trained - 1]) : s->sigma[0];
  double least = all ? sigma_of(set->share[0]) : s->sigma[s->levels - 1];
  rdna__spacing_fill(spacing, most, least, s->levels, s->sigma);
  for (int i = 0; i < s->levels; i++) {
    s->timestep[i] = timestep_of(set, s->sigma[i]);
    if (all) s->timestep[i] = rounded ? rint(s->timestep[i]) : floor(s->timestep[i]);
  }
}

/* From the last trained timestep, a share of the way to 0 each. */
static void space_timesteps(const settings *set, rdna_image_schedule *s) {
  for (int i = 0; i < s->levels; i++) {
    double t = (set->trained - 1) * (1 - (double)i / s->levels);
    s->timestep[i] = s->sampler->one_more ? rint(t) : t;
    s->sigma[i] = sigma_at(set, s->timestep[i]);
  }
}

/* The levels alone, at the beginning of the places for all that is asked. */
static rdna_status set_levels(const settings *set, const char *spacing, rdna_image_schedule *s) {
  bool uniform = strcmp(spacing, "sgm_uniform") == 0;
  RDNA_TRY(s->sampler->distilled ? set_distilled(set, s) : uniform ? RDNA_OK : set_timesteps(set, s));
  for (int i = 0; i < s->levels; i++) s->sigma[i] = sigma_at(set, s->timestep[i]);
  if (uniform)
    space_timesteps(set, s);
  else if (strcmp(spacing, "simple") != 0)
    space(set, spacing, s);
  for (int i = 0; i < s->levels; i++) s->to[i] = i + 1 < s->levels ? s->sigma[i + 1] : set->last_sigma;
  for (int i = 0; s->sampler->strides && i < s->levels; i++) {
    int to = (int)s->timestep[i] - set->trained / s->levels;
    s->to[i] = sigma_of(to >= 0 ? set->share[to] : set->last_share);
  }
  for (int i = 1; i < s->levels; i++)
    if (!(s->sigma[i] < s->sigma[i - 1]))
      return rdna__fail(RDNA_UNSUPPORTED,
                        "%d steps: step %d would begin with no less noise than the one before it; take fewer steps",
                        s->levels, i);
  double most = s->sigma[0];
  s->scale = !s->sampler->scaled ? 1 : strcmp(set->timesteps, "leading") == 0 ? sqrt(most * most + 1) : most;
  return RDNA_OK;
}

/* Of n levels what is asked 2n - 1 times, from the end as places overlap: at level k > 0 in 2k, and before it in 2k - 1
 * at that level already, or between it and the one before. */
static void ask_twice(const settings *set, rdna_image_schedule *s) {
  bool between = s->sampler->asking == ASKING_BETWEEN;
  for (int k = s->levels - 1; k > 0; k--) {
    double level = s->sigma[k], before = s->sigma[k - 1], t = s->timestep[k];
    s->sigma[2 * k] = level;
    s->to[2 * k] = s->to[k];
    s->timestep[2 * k] = t;
    s->sigma[2 * k - 1] = between ? sqrt(before * level) : level;
    s->to[2 * k - 1] = level;
    s->timestep[2 * k - 1] = between ? timestep_of(set, s->sigma[2 * k - 1]) : t;
  }
  for (int k = 0; between && k + 1 < s->levels; k++) s->to[2 * k] = s->sigma[2 * k + 1];
}

/* The second of two levels or more is asked twice: first to better the first step, from as far before it as a stride.
 */
static void ask_second_twice(const settings *set, rdna_image_schedule *s) {
  if (s->levels < 2) return;
  size_t rest = (size_t)(s->levels - 1) * sizeof(double);
  memmove(s->timestep + 2, s->timestep + 1, rest);
  memmove(s->sigma + 2, s->sigma + 1, rest);
  memmove(s->to + 2, s->to + 1, rest);
  s->to[1] = s->sigma[1];
  s->sigma[1] =
      sigma_of(set->share[(int)s->timestep[1] + set->trained / s->levels]); /* a trained one in all spacings */
}

static rdna_status set_steps(const settings *set, const char *spacing, rdna_image_schedule *s) {
  rdna__asking asking = s->sampler->asking;
  s->steps = asking == ASKING_ONCE     ? s->levels
             : asking == ASKING_SECOND ? s->levels + (s->levels > 1)
                                       : 2 * s->levels - 1;
  s->timestep = calloc((size_t)s->steps, sizeof *s->timestep);
  s->sigma = calloc((size_t)s->steps, sizeof *s->sigma);
  s->to = calloc((size_t)s->steps, sizeof *s->to);
  if (!s->timestep || !s->sigma || !s->to) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a schedule");
  RDNA_TRY(set_levels(set, spacing, s));
  if (asking == ASKING_SECOND)
    ask_second_twice(set, s);
  else if (asking != ASKING_ONCE)
    ask_twice(set, s);
  return RDNA_OK;
}

rdna_status rdna__schedule_read(const json_t *json, const char *spacing, rdna_image_schedule *s) {
  settings set = {0};
  rdna_status status = read_settings(json, &set, s);
  s->trained = set.trained;
  if (status == RDNA_OK && s->levels > set.trained)
    status = rdna__fail(RDNA_INVALID_ARGUMENT, "%d steps; the schedule has 1 to %d", s->levels, set.trained);
  if (status == RDNA_OK) status = set_steps(&set, spacing, s);
  free(set.share);
  return status;
}
