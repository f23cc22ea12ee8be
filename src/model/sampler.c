#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/random.h"
#include "base/status.h"
#include "rdna/model.h"

typedef struct candidate {
  float logit;
  int32_t id;
} candidate;

struct rdna_sampler {
  rdna_sampling sampling;
  rdna__random random;
  int32_t *recent; /* (repeat_last_n) a ring */
  int32_t recent_count, recent_next;
  candidate *candidates; /* (capacity) */
  bool *penalized;       /* (capacity) all false between calls */
  size_t capacity;
};

static rdna_status check(const rdna_sampling *s) {
  if (!(s->temperature >= 0 && isfinite(s->temperature)))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "temperature is %g, but must be from 0 on", (double)s->temperature);
  if (s->top_k < 0) return rdna__fail(RDNA_INVALID_ARGUMENT, "top_k is %d, but must be from 0 on", (int)s->top_k);
  if (!(s->top_p >= 0 && s->top_p <= 1))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "top_p is %g, but must be from 0 to 1", (double)s->top_p);
  if (!(s->min_p >= 0 && s->min_p <= 1))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "min_p is %g, but must be from 0 to 1", (double)s->min_p);
  if (!(s->repetition_penalty > 0 && isfinite(s->repetition_penalty)))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "repetition_penalty is %g, but must be above 0",
                      (double)s->repetition_penalty);
  enum { MOST_RECENT = 1 << 24 };
  if (s->repeat_last_n < 0 || s->repeat_last_n > MOST_RECENT)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "repeat_last_n is %d, but must be from 0 to %d", (int)s->repeat_last_n,
                      MOST_RECENT);
  return RDNA_OK;
}

rdna_status rdna_sampler_create(const rdna_sampling *given, rdna_sampler **out_sampler) {
  rdna_sampling known;
  const rdna_sampling *sampling = &known;
  RDNA_TRY(RDNA__OPTIONS("rdna_sampler_create", "sampling", given, &known));
  if (!out_sampler) return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_sampler_create needs a place for the sampler");
  RDNA_TRY(check(sampling));
  rdna_sampler *sampler = calloc(1, sizeof *sampler);
  if (sampler) sampler->recent = malloc((size_t)sampling->repeat_last_n * sizeof *sampler->recent + 1);
  if (!sampler || !sampler->recent) {
    free(sampler);
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a sampler");
  }
  sampler->sampling = *sampling;
  rdna__random_seed(&sampler->random, sampling->seed);
  *out_sampler = sampler;
  return RDNA_OK;
}

void rdna_sampler_release(rdna_sampler *sampler) {
  if (!sampler) return;
  free(sampler->recent);
  free(sampler->candidates);
  free(sampler->penalized);
  free(sampler);
}

rdna_status rdna_sampler_accept(rdna_sampler *sampler, int32_t id) {
  if (id < 0) return rdna__fail(RDNA_INVALID_ARGUMENT, "token id %d is negative", (int)id);
  int32_t size = sampler->sampling.repeat_last_n;
  if (size == 0) return RDNA_OK;
  sampler->recent[sampler->recent_next] = id;
  sampler->recent_next = (sampler->recent_next + 1) % size;
  if (sampler->recent_count < size) sampler->recent_count++;
  return RDNA_OK;
}

static rdna_status make_room(rdna_sampler *sampler, size_t count) {
  if (count <= sampler->capacity) return RDNA_OK;
  candidate *candidates = realloc(sampler->candidates, count * sizeof *candidates);
  if (candidates) sampler->candidates = candidates;
  bool *penalized = realloc(sampler->penalized, count * sizeof *penalized);
  if (penalized) sampler->penalized = penalized;
  if (!candidates || !penalized)
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory to sample from %zu tokens", count);
  memset(penalized, 0, count * sizeof *penalized);
  sampler->capacity = count;
  return RDNA_OK;
}

static rdna_status load(rdna_sampler *sampler, const float *logits, size_t count) {
  bool any = false;
  for (size_t i = 0; i < count; i++) {
    if (!(logits[i] < INFINITY))
      return rdna__fail(RDNA_BAD_DATA, "the logit of token %zu is %s; the model computed nonsense", i,
                        isnan(logits[i]) ? "not a number" : "infinite");
    any |= logits[i] > -INFINITY;
    sampler->candidates[i] = (candidate){logits[i], (int32_t)i};
  }
  return any ? RDNA_OK : rdna__fail(RDNA_BAD_DATA, "all %zu tokens are ruled out", count);
}

static void penalize(rdna_sampler *sampler, size_t count) {
  float penalty = sampler->sampling.repetition_penalty;
  if (penalty == 1) return;
  for (int32_t i = 0; i < sampler->recent_count; i++) {
    size_t id = (size_t)sampler->recent[i];
    if (id >= count || sampler->penalized[id]) continue; /* however often it was said, once */
    sampler->penalized[id] = true;
    float *logit = &sampler->candidates[id].logit;
    *logit = *logit > 0 ? *logit / penalty : *logit * penalty;
  }
  for (int32_t i = 0; i < sampler->recent_count; i++) {
    size_t id = (size_t)sampler->recent[i];
    if (id >= count) continue;
    sampler->penalized[id] = false;
    float *logit = &sampler->candidates[id].logit;
    /* a tiny penalty can overflow what it divides; the order of finite numbers is kept */
    if (*logit == INFINITY) *logit = 3.402823466e+38f;
  }
}

static bool more_likely(candidate a, candidate b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; }

static int compare(const void *a, const void *b) {
  const candidate *left = a, *right = b;
  return more_likely(*left, *right) ? -1 : more_likely(*right, *left);
}

/* Brings the |n| most likely of |count| to the front, in any order (Hoare's selection). */
static void select_likely(candidate *c, size_t count, size_t n) {
  size_t low = 0, high = count; /* the n-th place lies in [low, high) */
  while (high - low > 1 && n > low && n < high) {
    candidate a = c[low], b = c[low + (high - low) / 2], z = c[high - 1];
    candidate pivot = more_likely(a, b) ? (more_likely(b, z)   ? b
                                           : more_likely(a, z) ? z
                                                               : a)
                                        : (more_likely(a, z)   ? a
                                           : more_likely(b, z) ? z
                                                               : b);
    size_t i = low, j = high - 1;
    for (;;) {
      while (more_likely(c[i], pivot)) i++;
      while (more_likely(pivot, c[j])) j--;
      if (i >= j) break;
      candidate swap = c[i];
      c[i++] = c[j];
      c[j--] = swap;
    }
    /* all before i are at least as likely as the pivot, all from i on at most; the pivot itself sits at i or j */
    size_t middle = i > low ? i : low + 1;
    if (n < middle) {
      high = middle;
    } else {
      low = middle;
    }
  }
}

static double greatest(const candidate *c, size_t count) {
  float greatest_logit = -INFINITY;
  for (size_t i = 0; i < count; i++)
    if (c[i].logit > greatest_logit) greatest_logit = c[i].logit;
  return greatest_logit;
}

/* Keeps the fewest of the most likely that reach |p| together; sorts no more of them than it must. */
static size_t keep_top_p(candidate *c, size_t count, double p) {
  double top = greatest(c, count), total = 0, sum = 0;
  for (size_t i = 0; i < count; i++) total += exp(c[i].logit - top);
  size_t sorted = 0;
  for (size_t block = 64; sorted < count; block *= 4) {
    size_t n = count - sorted < block ? count - sorted : block;
    select_likely(c + sorted, count - sorted, n);
    qsort(c + sorted, n, sizeof *c, compare);
    for (size_t i = sorted; i < sorted + n; i++) {
      sum += exp(c[i].logit - top);
      if (sum >= p * total) return i + 1;
    }
    sorted += n;
  }
  return count;
}

static size_t keep_min_p(candidate *c, size_t count, double p) {
  double least = greatest(c, count) + log(p);
  size_t kept = 0;
  for (size_t i = 0; i < count; i++)
    if (c[i].logit >= least) c[kept++] = c[i];
  return kept;
}

static int32_t most_likely(const candidate *c, size_t count) {
  candidate best = c[0];
  for (size_t i = 1; i < count; i++)
    if (more_likely(c[i], best)) best = c[i];
  return best.id;
}

static int32_t draw(rdna__random *random, const candidate *c, size_t count, double temperature) {
  double top = greatest(c, count), total = 0, sum = 0;
  for (size_t i = 0; i < count; i++) total += exp((c[i].logit - top) / temperature);
  double target = rdna__random_unit(random) * total;
  int32_t last = c[0].id;
  for (size_t i = 0; i < count; i++) {
    double weight = exp((c[i].logit - top) / temperature);
    if (weight == 0) continue;
    sum += weight;
    last = c[i].id;
    if (sum > target) break;
  }
  return last;
}

rdna_status rdna_sampler_sample(rdna_sampler *sampler, const float *logits, size_t count, int32_t *out_id) {
  if (!sampler || !logits || !out_id || count == 0 || count > INT32_MAX)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_sampler_sample needs logits and a place");
  RDNA_TRY(make_room(sampler, count));
  RDNA_TRY(load(sampler, logits, count));
  const rdna_sampling *s = &sampler->sampling;
  candidate *c = sampler->candidates;
  penalize(sampler, count);
  int32_t id;
  if (s->temperature == 0) {
    id = most_likely(c, count); /* survives all that follows */
  } else {
    size_t kept = count;
    if (s->top_k > 0 && (size_t)s->top_k < kept) {
      kept = (size_t)s->top_k;
      select_likely(c, count, kept);
    }
    if (s->top_p < 1) kept = keep_top_p(c, kept, s->top_p);
    if (s->min_p > 0) kept = keep_min_p(c, kept, s->min_p);
    id = draw(&sampler->random, c, kept, s->temperature);
  }
  *out_id = id;
  return rdna_sampler_accept(sampler, id);
}
