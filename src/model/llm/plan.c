/* What a model needs of a device, found by a rehearsal: the model is opened, a session created and passes are queued on
 * a device that only counts. So the plan is the sum of what the same calls will ask of the pool, and cannot differ from
 * it. The largest passes are gone through, at the beginning of the context and at its end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "device/driver.h"
#include "model/llm/cache.h"

enum {
  DEFAULT_BATCH = 512,
  LEAST_BATCH = 32,
  LEAST_CONTEXT = 512, /* below which no shorter one is tried */
  CONTEXT_STEP = 256,
  TRIES = 16
};
#define MOST_FOR_DRIVERS (UINT64_C(512) << 20)

typedef struct rehearsal {
  rdna_device *device; /* the one that only counts */
  rdna_llm *llm;
  rdna_llm_session_options session;
  int32_t *tokens; /* (batch), zeros */
  float *logits;   /* (most rows, vocabulary), which nobody writes */
  rdna_llm_memory memory;
} rehearsal;

enum { MOST_ROWS = 64 };

static uint64_t allocated(const rehearsal *r) {
  rdna_memory_stats stats;
  rdna_memory_get_stats(r->device, &stats);
  return stats.allocated;
}

/* Passes of as many tokens as have kernels of their own, before position 0 and before the end of the context. Steps of
 * one token are recorded at the second. */
static rdna_status run_passes(rehearsal *r, rdna_llm_session *session) {
  static const int counts[] = {0, 128, 32, 16, 9, 8, 4, 2, 1, 1, 1}; /* 0: the batch */
  int batch = r->session.batch, context = rdna_llm_session_context(session);
  for (int end = 0; end < 2; end++) {
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
      int count = counts[i] ? counts[i] : batch;
      if (count > batch || count > context) continue;
      rdna__llm_session_pretend(session, end ? context - count : 0);
      RDNA_TRY(rdna_llm_session_eval(session, r->tokens, count, r->logits));
    }
    int rows = batch < MOST_ROWS ? batch : MOST_ROWS;
    if (rows > context) rows = context;
    rdna__llm_session_pretend(session, end ? context - rows : 0);
    RDNA_TRY(rdna_llm_session_eval_all(session, r->tokens, rows, r->logits));
  }
  return RDNA_OK;
}

/* Goes through a session of |context| and |batch|; r->memory becomes what it took. */
static rdna_status rehearse(rehearsal *r, int context, int batch) {
  rdna_llm_session *session;
  rdna_memory_stats stats;
  r->session.context = context;
  r->session.batch = batch < context ? batch : context;
  RDNA_TRY(rdna_memory_empty_cache(r->device));
  rdna_memory_reset_peaks(r->device);
  r->tokens = calloc((size_t)r->session.batch, sizeof *r->tokens);
  if (!r->tokens) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %d tokens", r->session.batch);
  uint64_t before = allocated(r);
  rdna_status status = rdna_llm_session_create(r->llm, &r->session, &session);
  if (status == RDNA_OK) {
    rdna_llm_memory *m = &r->memory;
    uint64_t with_session = allocated(r);
    status = run_passes(r, session);
    rdna_memory_get_stats(r->device, &stats);
    m->caches = rdna__llm_cache_kept_bytes(rdna__llm_session_cache(session));
    m->activations = with_session - before - m->caches;
    m->workspace = stats.peak_allocated - with_session;
    m->peak = stats.peak_allocated;
    m->reserved = stats.peak_reserved;
    rdna_llm_session_release(session);
  }
  free(r->tokens);
  r->tokens = NULL;
  return status;
}

static rdna_status begin(rehearsal *r, rdna_device *device, const rdna_gguf *file) {
  RDNA_TRY(rdna__device_rehearse(device, &r->device));
  RDNA_TRY(rdna_llm_open(r->device, file, NULL, NULL, &r->llm));
  r->logits = malloc((size_t)MOST_ROWS * (size_t)r->llm->info.vocabulary * sizeof *r->logits);
  if (!r->logits) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for logits");
  r->memory.mapped = r->llm->weights.mapped;
  r->memory.weights = r->memory.mapped + allocated(r);
  return RDNA_OK;
}

static void end(rehearsal *r) {
  free(r->logits);
  rdna_llm_release(r->llm);
  rdna_device_release(r->device);
}

/* What the pool may take. Some is left to the driver, for code and graphs; of memory that the host shares a quarter is
 * left to others. */
static rdna_status find_budget(rdna_device *device, rdna_llm_plan *plan) {
  rdna_memory_stats stats;
  rdna_memory_get_stats(device, &stats);
  RDNA_TRY(rdna_memory_get_info(device, &plan->device.free, &plan->device.total));
  plan->device.free += stats.reserved - stats.allocated;
  if (plan->device.free > plan->device.total) plan->device.free = plan->device.total;
  uint64_t some = plan->device.total / 32;
  if (some > MOST_FOR_DRIVERS) some = MOST_FOR_DRIVERS;
  const rdna_device_info *info = rdna_device_get_info(device);
  bool shared = info->integrated || rdna__device_driver(device)->code_format == RDNA__CODE_HOST;
  if (shared) some = plan->device.free / 4;
  if (plan->budget == 0) plan->budget = plan->device.free > some ? plan->device.free - some : 0;
  return RDNA_OK;
}

static bool fits(const rehearsal *r, const rdna_llm_plan *plan) { return r->memory.reserved <= plan->budget; }

/* The longest context up to |most| that fits, with a batch of |batch|; r->memory is its. 0: not even the shortest. */
static rdna_status longest(rehearsal *r, const rdna_llm_plan *plan, int most, int batch, int *out_context) {
  int low = most < LEAST_CONTEXT ? most : LEAST_CONTEXT, high = most;
  *out_context = most;
  RDNA_TRY(rehearse(r, most, batch));
  if (fits(r, plan)) return RDNA_OK;
  double of_high = (double)r->memory.reserved;
  *out_context = 0;
  RDNA_TRY(rehearse(r, low, batch));
  if (!fits(r, plan)) return RDNA_OK;
  double of_low = (double)r->memory.reserved;
  /* memory grows along a line, but for the rounding of segments: where it meets the budget, then by steps */
  for (int i = 0; i < TRIES && high - low > CONTEXT_STEP; i++) {
    double share = ((double)plan->budget - of_low) / (of_high - of_low);
    int middle = low + (int)(share * (double)(high - low)) / CONTEXT_STEP * CONTEXT_STEP;
    if (middle <= low) middle = low + CONTEXT_STEP;
    if (middle >= high) middle = high - 1;
    RDNA_TRY(rehearse(r, middle, batch));
    *(fits(r, plan) ? &low : &high) = middle;
    *(fits(r, plan) ? &of_low : &of_high) = (double)r->memory.reserved;
  }
  *out_context = low;
  return rehearse(r, low, batch);
}

/* Chooses what was not asked for. A shorter context is better than smaller passes, until it is the shortest. */
static rdna_status choose(rehearsal *r, rdna_llm_plan *plan, int asked_context, int asked_batch) {
  int batch = asked_batch ? asked_batch : DEFAULT_BATCH, least = asked_batch ? asked_batch : LEAST_BATCH;
  int context = 0;
  plan->fits = 0;
  for (; batch >= least && !plan->fits; batch /= 2) {
    context = asked_context;
    if (asked_context)
      RDNA_TRY(rehearse(r, asked_context, batch));
    else
      RDNA_TRY(longest(r, plan, plan->model_context, batch, &context));
    plan->batch = batch;
    plan->fits = fits(r, plan);
    if (batch == 1) break;
  }
  plan->context = context ? context : r->session.context;
  if (plan->batch > plan->context) plan->batch = plan->context;
  return RDNA_OK;
}

static void say(rdna_llm_plan *plan, const char *device, int asked_context, int asked_batch) {
  char *text = plan->sentence;
  double gib = 0x1p30;
  if (!plan->fits)
    snprintf(text, sizeof plan->sentence,
             "it takes %.2f GiB with a context of %d and passes of %d tokens, and %s has %.2f GiB for it",
             (double)plan->device.reserved / gib, plan->context, plan->batch, device, (double)plan->budget / gib);
  else if (!asked_context && plan->context < plan->model_context)
    snprintf(text, sizeof plan->sentence, "a context of %d of the model's %d is what fits in the %.2f GiB of %s",
             plan->context, plan->model_context, (double)plan->budget / gib, device);
  else if (!asked_batch && plan->batch < DEFAULT_BATCH && plan->batch < plan->context)
    snprintf(text, sizeof plan->sentence, "passes of %d tokens instead of %d fit in the %.2f GiB of %s", plan->batch,
             DEFAULT_BATCH, (double)plan->budget / gib, device);
}

rdna_status rdna_llm_make_plan(rdna_device *device, const rdna_gguf *file, const rdna_llm_plan_options *options,
                               rdna_llm_plan *out_plan) {
  if (!device || !file || !out_plan)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_llm_make_plan needs a device, a file and a place for the plan");
  rdna_llm_plan_options chosen = {RDNA_LLM_PLAN_OPTIONS_INIT};
  if (options) RDNA_TRY(RDNA__OPTIONS("rdna_llm_make_plan", "options", options, &chosen));
  rehearsal r = {.session = {RDNA_LLM_SESSION_OPTIONS_INIT, .kv_dtype = RDNA_F16}};
  if (chosen.session) RDNA_TRY(RDNA__OPTIONS("rdna_llm_make_plan", "session", chosen.session, &r.session));
  int context = r.session.context, batch = r.session.batch;
  if (context < 0 || batch < 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a plan for a context of %d and passes of %d tokens", context, batch);
  rdna_llm_plan plan = {.budget = chosen.budget};
  RDNA_TRY(find_budget(device, &plan));
  rdna_status status = begin(&r, device, file);
  if (status == RDNA_OK) {
    plan.model_context = r.llm->info.context;
    plan.layers = r.llm->info.layers;
    status = choose(&r, &plan, context, batch);
  }
  if (status == RDNA_OK) {
    r.memory.free = plan.device.free, r.memory.total = plan.device.total;
    plan.device = r.memory;
    say(&plan, rdna_device_get_info(device)->name, context, batch);
    *out_plan = plan;
  }
  end(&r);
  return status;
}
