/* What a model needs of a device and of the host, found by a rehearsal: the model is opened, a session created and
 * passes are queued on devices that only count. So the plan is the sum of what the same calls will ask of the pools,
 * and cannot differ from it. The largest passes are gone through, at the beginning of the context and at its end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "device/budget.h"
#include "device/driver.h"
#include "model/llm/cache.h"

enum {
  DEFAULT_BATCH = 512,
  LEAST_BATCH = 32,
  LEAST_CONTEXT = 512,   /* below which no shorter one is tried */
  ENOUGH_CONTEXT = 4096, /* for which nothing is left on the host */
  CONTEXT_STEP = 256,
  TRIES = 16,
  MOST_ROWS = 64
};

typedef struct rehearsal {
  const rdna_gguf *file;
  rdna_device *like, *host_like; /* the real ones */
  rdna_device *device, *host;    /* their rehearsals, which only count */
  rdna_llm *llm;
  rdna_llm_open_options split;
  rdna_llm_session_options session;
  uint64_t budget;
  int64_t most_context;
  rdna_llm_memory of_device, of_host;
  bool fits;
  uint64_t staging;
  /* of the model */
  int layers, model_context, context; /* the last is the longest that is chosen */
  bool in_place, has_experts;
} rehearsal;

static uint64_t allocated(rdna_device *device) {
  rdna_memory_stats stats;
  rdna_memory_get_stats(device, &stats);
  return stats.allocated;
}

/* ---- one rehearsal ---- */

/* Passes of as many tokens as have kernels of their own, before position 0 and before the end of the context. Steps of
 * one token are recorded at the second. */
static rdna_status run_passes(const rehearsal *r, rdna_llm_session *session, const int32_t *tokens, float *logits) {
  static const int counts[] = {0, 128, 32, 16, 9, 8, 4, 2, 1, 1, 1}; /* 0: the batch */
  int batch = r->session.batch, context = rdna_llm_session_context(session);
  for (int end = 0; end < 2; end++) {
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
      int count = counts[i] ? counts[i] : batch;
      if (count > batch) continue;
      rdna__llm_session_pretend(session, end ? context - count : 0);
      RDNA_TRY(rdna_llm_session_eval(session, tokens, count, logits));
    }
    int rows = batch < MOST_ROWS ? batch : MOST_ROWS;
    rdna__llm_session_pretend(session, end ? context - rows : 0);
    RDNA_TRY(rdna_llm_session_eval_all(session, tokens, rows, logits));
  }
  return RDNA_OK;
}

/* Notes how much memory of |device| the session took, of which |before| was allocated earlier; |cache| may be NULL. */
static void note(rdna_device *device, const rdna_llm_cache *cache, uint64_t before, uint64_t with_session,
                 rdna_llm_memory *out) {
  rdna_memory_stats stats;
  rdna_memory_get_stats(device, &stats);
  out->caches = cache ? rdna__llm_cache_kept_bytes(cache) : 0;
  out->activations = with_session - before - out->caches;
  out->workspace = stats.peak_allocated - with_session;
  out->peak = stats.peak_allocated;
  out->reserved = stats.peak_reserved;
}

static rdna_status run_session(rehearsal *r, const int32_t *tokens, float *logits) {
  rdna_llm_session *session;
  uint64_t before = allocated(r->device), host_before = allocated(r->host);
  RDNA_TRY(rdna_llm_session_create(r->llm, &r->session, &session));
  uint64_t with_session = allocated(r->device), host_with_session = allocated(r->host);
  rdna_status status = run_passes(r, session, tokens, logits);
  const rdna_llm_cache *cache = rdna__llm_session_cache(session);
  note(r->device, cache, before, with_session, &r->of_device);
  note(r->host, cache->below, host_before, host_with_session, &r->of_host);
  rdna_llm_session_release(session);
  return status;
}

static rdna_status open_model(rehearsal *r) {
  RDNA_TRY(rdna__device_rehearse(r->like, &r->device));
  RDNA_TRY(rdna__device_rehearse(r->host_like, &r->host));
  RDNA_TRY(rdna__llm_open_on(r->device, r->host, r->file, r->split, &r->llm));
  const rdna__weights *w = &r->llm->weights;
  const rdna__nn_decoder *decoder = &r->llm->decoder;
  r->in_place = w->in_place;
  r->staging = w->staging;
  r->layers = r->llm->info.layers;
  r->context = r->model_context = r->llm->info.context;
  if (r->most_context > 0 && r->most_context < r->context) r->context = (int)r->most_context;
  for (int i = 0; i < decoder->layer_count; i++) r->has_experts |= decoder->layers[i].moe.experts > 0;
  r->of_device.mapped = w->in_place ? w->mapped : 0;
  r->of_host.mapped = (w->in_place ? 0 : w->mapped) + (r->llm->below ? r->llm->below->weights.mapped : 0);
  r->of_device.weights = r->of_device.mapped + allocated(r->device);
  r->of_host.weights = r->of_host.mapped + allocated(r->host);
  return RDNA_OK;
}

/* Rehearses a session of |context| (0: the model's) and |batch| with so many layers, or experts of layers, on the host.
 * Its devices are new ones, as a pool keeps what earlier rehearsals took. A split that cannot be does not fit. */
static rdna_status rehearse(rehearsal *r, int host_layers, int host_experts, int context, int batch) {
  int32_t *tokens = NULL;
  float *logits = NULL;
  r->split.host_layers = host_layers, r->split.host_experts = host_experts;
  r->llm = NULL, r->device = r->host = NULL;
  rdna_status status = open_model(r);
  bool possible = status != RDNA_UNSUPPORTED || (host_layers == 0 && host_experts == 0);
  if (status == RDNA_OK) {
    r->session.context = context ? context : r->context;
    r->session.batch = batch < r->session.context ? batch : r->session.context;
    tokens = calloc((size_t)r->session.batch, sizeof *tokens);
    logits = malloc((size_t)MOST_ROWS * (size_t)r->llm->info.vocabulary * sizeof *logits);
    status = tokens && logits ? run_session(r, tokens, logits)
                              : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %d tokens", batch);
  }
  free(tokens);
  free(logits);
  rdna_llm_release(r->llm);
  rdna_device_release(r->device);
  rdna_device_release(r->host);
  r->fits = status == RDNA_OK && r->of_device.reserved <= r->budget && r->of_host.reserved <= r->of_host.free &&
            r->staging <= r->of_host.free;
  return possible ? status : RDNA_OK;
}

/* ---- choices ---- */

/* Rehearses with another context and batch, but the same split. */
static rdna_status resize(rehearsal *r, int context, int batch) {
  return rehearse(r, r->split.host_layers, r->split.host_experts, context, batch);
}

/* Finds the longest context that fits with |batch|, and leaves it as the last that was rehearsed: |least| or more,
 * which may itself not fit. The model's own context is known not to. */
static rdna_status find_longest(rehearsal *r, int least, int batch) {
  int low = r->context < least ? r->context : least, high = r->context;
  double of_high = (double)r->of_device.reserved, budget = (double)r->budget;
  RDNA_TRY(resize(r, low, batch));
  if (!r->fits) return RDNA_OK;
  double of_low = (double)r->of_device.reserved;
  /* memory grows linearly but for the rounding of segments: where that line meets the budget, then by bisection */
  for (int i = 0; i < TRIES && high - low > CONTEXT_STEP; i++) {
    double share = i < 3 && of_high > budget ? (budget - of_low) / (of_high - of_low) : 0.5;
    int middle = low + (int)(share * (double)(high - low)) / CONTEXT_STEP * CONTEXT_STEP;
    if (middle <= low) middle = low + CONTEXT_STEP;
    if (middle >= high) middle = high - 1;
    RDNA_TRY(resize(r, middle, batch));
    *(r->fits ? &low : &high) = middle;
    *(r->fits ? &of_low : &of_high) = (double)r->of_device.reserved;
  }
  return resize(r, low, batch);
}

/* Chooses the context and batch that were not asked for: shortens the context down to |least| before passes get
 * smaller. */
static rdna_status choose_sizes(rehearsal *r, int asked_context, int asked_batch, int least) {
  int batch = asked_batch ? asked_batch : DEFAULT_BATCH, smallest = asked_batch ? asked_batch : LEAST_BATCH;
  for (;; batch /= 2) {
    RDNA_TRY(resize(r, asked_context, batch));
    if (!r->fits && !asked_context) RDNA_TRY(find_longest(r, least, batch));
    if (r->fits || batch / 2 < smallest) return RDNA_OK;
  }
}

/* Finds the fewest layers whose experts, or with |whole| all of whose weights, must stay on the host so that the rest
 * fits; |*out| is more than there are layers where nothing does. */
static rdna_status least_on_host(rehearsal *r, bool whole, int context, int batch, int *out) {
  int low = 0, high = r->layers + 1; /* the one does not fit, the other is as if it did */
  int layers = r->split.host_layers, experts = r->split.host_experts;
  while (high - low > 1) {
    int middle = (low + high) / 2;
    RDNA_TRY(rehearse(r, whole ? middle : layers, whole ? experts : middle, context, batch));
    *(r->fits ? &high : &low) = middle;
  }
  *out = high;
  return RDNA_OK;
}

/* Leaves on the host what must be, where |options| allow it: experts first, then layers. Called when the rehearsal of
 * what was asked for did not fit. */
static rdna_status choose_split(rehearsal *r, const rdna_llm_plan_options *options, int asked_context,
                                int asked_batch) {
  bool may_layers = options->host_layers == RDNA_LLM_AUTO;
  bool may_experts = options->host_experts == RDNA_LLM_AUTO && r->has_experts;
  int context = asked_context ? asked_context : r->context < ENOUGH_CONTEXT ? r->context : ENOUGH_CONTEXT;
  int batch = asked_batch ? asked_batch : DEFAULT_BATCH, layers = r->split.host_layers, experts = r->split.host_experts;
  int least = r->layers + 1;
  rdna_llm_open_options asked = r->split;
  if (may_experts) {
    RDNA_TRY(least_on_host(r, false, context, batch, &least));
    experts = least <= r->layers ? least : r->layers;
  }
  if (least > r->layers && may_layers) {
    r->split.host_layers = layers, r->split.host_experts = experts;
    RDNA_TRY(least_on_host(r, true, context, batch, &least));
    if (least <= r->layers) layers = least;
  }
  r->split = asked; /* if nothing helps */
  if (least <= r->layers) r->split.host_layers = layers, r->split.host_experts = experts;
  return RDNA_OK;
}

static rdna_status choose(rehearsal *r, const rdna_llm_plan_options *options) {
  int context = r->session.context, batch = r->session.batch;
  bool may_split = options->host_layers < 0 || options->host_experts < 0;
  RDNA_TRY(choose_sizes(r, context, batch, may_split ? ENOUGH_CONTEXT : LEAST_CONTEXT));
  if (r->fits || !may_split || r->in_place) return RDNA_OK;
  RDNA_TRY(choose_split(r, options, context, batch));
  return choose_sizes(r, context, batch, LEAST_CONTEXT);
}

/* ---- the plan ---- */

static rdna_status find_budget(rdna_device *device, rdna_llm_memory *memory, uint64_t *out_budget) {
  rdna__budget budget;
  RDNA_TRY(rdna__device_budget(device, &budget));
  memory->free = budget.free;
  memory->total = budget.total;
  *out_budget = budget.most;
  return RDNA_OK;
}

/* An estimate of the longest context that would fit; 0: none. */
static long long fitting_context(const rdna_llm_plan *plan) {
  double of_position = (double)plan->device.caches / plan->context;
  double left = (double)plan->budget - (double)(plan->device.reserved - plan->device.caches);
  return of_position > 0 && left > 0 ? (long long)(left / of_position) : 0;
}

static void say_split(rdna_llm_plan *plan, double budget, const char *device) {
  char what[96];
  if (plan->host_experts <= plan->host_layers)
    snprintf(what, sizeof what, "%d of %d layers", plan->host_layers, plan->layers);
  else if (plan->host_layers == 0)
    snprintf(what, sizeof what, "the experts of %d of %d layers", plan->host_experts, plan->layers);
  else
    snprintf(what, sizeof what, "%d of %d layers, and the experts of %d", plan->host_layers, plan->layers,
             plan->host_experts);
  snprintf(plan->sentence, sizeof plan->sentence, "the host has %s; the rest is within the %.2f GiB for it on %s", what,
           budget, device);
}

static void say(const rehearsal *r, const char *device, bool asked_context, bool asked_batch, rdna_llm_plan *plan) {
  char *text = plan->sentence;
  size_t room = sizeof plan->sentence;
  double gib = 0x1p30, budget = (double)plan->budget / gib;
  bool is_split = plan->host_layers > 0 || plan->host_experts > 0;
  if (!r->fits)
    snprintf(text, room,
             "with a context of %d and passes of %d tokens it takes %.2f GiB, and %s has %.2f for it; a context of at "
             "most %lld, layers or experts on the host (--gpu-layers auto) or a smaller type of weights take less",
             plan->context, plan->batch, (double)plan->device.reserved / gib, device, budget, fitting_context(plan));
  else if (is_split)
    say_split(plan, budget, device);
  else if (!asked_context && plan->context < r->context)
    snprintf(text, room, "a context of %d of the model's %d is what fits in the %.2f GiB of %s", plan->context,
             plan->model_context, budget, device);
  else if (!asked_batch && plan->batch < DEFAULT_BATCH && plan->batch < plan->context)
    snprintf(text, room, "passes of %d tokens instead of %d fit in the %.2f GiB of %s", plan->batch, DEFAULT_BATCH,
             budget, device);
}

static rdna_status check_options(const rdna_llm_plan_options *options, const rdna_llm_session_options *session) {
  if (session->context < 0 || session->batch < 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a plan for a context of %d and passes of %d tokens", session->context,
                      session->batch);
  if (options->host_layers < RDNA_LLM_AUTO || options->host_experts < RDNA_LLM_AUTO)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a plan with %d layers and the experts of %d on the host",
                      options->host_layers, options->host_experts);
  return RDNA_OK;
}

rdna_status rdna_llm_make_plan(rdna_device *device, const rdna_gguf *file, const rdna_llm_plan_options *options,
                               rdna_llm_plan *out_plan) {
  if (!device || !file || !out_plan)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_llm_make_plan needs a device, a file and a place for the plan");
  rdna_llm_plan_options chosen = {RDNA_LLM_PLAN_OPTIONS_INIT};
  if (options) RDNA_TRY(RDNA__OPTIONS("rdna_llm_make_plan", "options", options, &chosen));
  rehearsal r = {.file = file,
                 .like = device,
                 .most_context = chosen.most_context,
                 .split = {RDNA_LLM_OPEN_OPTIONS_INIT, .host_layers = chosen.host_layers > 0 ? chosen.host_layers : 0,
                           .host_experts = chosen.host_experts > 0 ? chosen.host_experts : 0},
                 .session = {RDNA_LLM_SESSION_OPTIONS_INIT, .kv_dtype = RDNA_F16}};
  if (chosen.session) RDNA_TRY(RDNA__OPTIONS("rdna_llm_make_plan", "session", chosen.session, &r.session));
  bool asked_context = r.session.context > 0, asked_batch = r.session.batch > 0;
  RDNA_TRY(check_options(&chosen, &r.session));
  uint64_t of_host;
  RDNA_TRY(find_budget(device, &r.of_device, &r.budget));
  if (chosen.budget) r.budget = chosen.budget;
  RDNA_TRY(rdna_device_open("host", &r.host_like));
  rdna_status status = find_budget(r.host_like, &r.of_host, &of_host);
  if (status == RDNA_OK) status = choose(&r, &chosen);
  rdna_device_release(r.host_like);
  RDNA_TRY(status);
  *out_plan = (rdna_llm_plan){.context = r.session.context,
                              .batch = r.session.batch,
                              .model_context = r.model_context,
                              .layers = r.layers,
                              .host_layers = r.split.host_layers,
                              .host_experts = r.split.host_experts,
                              .fits = r.fits,
                              .budget = r.budget,
                              .device = r.of_device,
                              .host = r.of_host,
                              .staging = r.staging};
  say(&r, rdna_device_get_info(device)->name, asked_context, asked_batch, out_plan);
  return RDNA_OK;
}
