/* Vocabularies have 150,000 tokens and more, and a text has a few milliseconds for each that it writes, so all that
 * looks at every token is a plain loop that the compiler turns into vectors; what branches, sorts or draws looks at
 * few. */
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
  float *weights;        /* (capacity) */
  float *penalized;      /* (capacity) the logits, where the penalty changes some */
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
  free(sampler->weights);
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
  float *weights = realloc(sampler->weights, count * sizeof *weights);
  if (weights) sampler->weights = weights;
  float *penalized = realloc(sampler->penalized, count * sizeof *penalized);
  if (penalized) sampler->penalized = penalized;
  if (!candidates || !weights || !penalized)
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory to sample from %zu tokens", count);
  sampler->capacity = count;
  return RDNA_OK;
}

enum { SIDE_BY_SIDE = 8 }; /* partial results that do not wait for each other */

static float greatest(const float *logits, size_t count) {
  float top[SIDE_BY_SIDE];
  for (int k = 0; k < SIDE_BY_SIDE; k++) top[k] = -INFINITY;
  size_t whole = count - count % SIDE_BY_SIDE;
  for (size_t i = 0; i < whole; i += SIDE_BY_SIDE)
    for (int k = 0; k < SIDE_BY_SIDE; k++) top[k] = logits[i + k] > top[k] ? logits[i + k] : top[k];
  for (size_t i = whole; i < count; i++) top[0] = logits[i] > top[0] ? logits[i] : top[0];
  for (int k = 1; k < SIDE_BY_SIDE; k++) top[0] = top[k] > top[0] ? top[k] : top[0];
  return top[0];
}

static rdna_status check_logits(const float *logits, size_t count) {
  int32_t bad = 0;
  for (size_t i = 0; i < count; i++) bad |= !(logits[i] < INFINITY);
  if (!bad) return RDNA_OK;
  size_t i = 0;
  while (logits[i] < INFINITY) i++;
  return rdna__fail(RDNA_BAD_DATA, "the logit of token %zu is %s; the model computed nonsense", i,
                    isnan(logits[i]) ? "not a number" : "infinite");
}

/* The logits with those of recent tokens penalized, each once, however often it was said. */
static const float *penalize(rdna_sampler *sampler, const float *given, size_t count) {
  float *logits = sampler->penalized, penalty = sampler->sampling.repetition_penalty;
  memcpy(logits, given, count * sizeof *logits);
  for (int32_t i = 0; i < sampler->recent_count; i++) {
    size_t id = (size_t)sampler->recent[i];
    if (id >= count) continue;
    logits[id] = given[id] > 0 ? given[id] / penalty : given[id] * penalty;
    /* a tiny penalty can overflow what it divides; the order of finite numbers is kept */
    if (logits[id] == INFINITY) logits[id] = 3.402823466e+38f;
  }
  return logits;
}

/* e^x of x from minus infinity to 0, 0 below e^-87, within 2e-7 of it: x is k log(2) + r with |r| <= log(2)/2, and e^r
 * is its Taylor series. log(2) is subtracted in two parts (Cody and Waite, 1980), of which k times the first is exact.
 */
static inline float exponential(float x) {
  float at = x > -87 ? x : -87;
  float k = at * 1.44269504f + 12582912.0f - 12582912.0f; /* to the nearest whole number, by 1.5 x 2^23 */
  float r = at - k * 0.693359375f + k * 2.12194440e-4f;
  float series = 1 + r * (1 + r * (0.5f + r * (1.0f / 6 + r * (1.0f / 24 + r * (1.0f / 120 + r * (1.0f / 720))))));
  union {
    int32_t bits;
    float value;
  } power = {((int32_t)k + 127) * (1 << 23)};
  return x > -87 ? series * power.value : 0;
}

/* Of a block of weights. */
static double sum_of(const float *weights, size_t count) {
  double sums[SIDE_BY_SIDE] = {0}, sum = 0;
  size_t whole = count - count % SIDE_BY_SIDE;
  for (size_t i = 0; i < whole; i += SIDE_BY_SIDE)
    for (int k = 0; k < SIDE_BY_SIDE; k++) sums[k] += weights[i + k];
  for (size_t i = whole; i < count; i++) sums[0] += weights[i];
  for (int k = 0; k < SIDE_BY_SIDE; k++) sum += sums[k];
  return sum;
}

enum { BLOCK = 1024 };

/* How likely each is beside the most likely, |top|; their sum, of blocks in their order. */
static double weigh(const float *logits, size_t count, float top, float temperature, float *weights) {
  double total = 0;
  for (size_t at = 0; at < count; at += BLOCK) {
    size_t n = count - at < BLOCK ? count - at : BLOCK;
    for (size_t i = at; i < at + n; i++) weights[i] = exponential((logits[i] - top) / temperature);
    total += sum_of(weights + at, n);
  }
  return total;
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

/* Those whose |values| are at least |least|, in their order. */
static size_t collect(const float *logits, const float *values, size_t count, float least, candidate *out) {
  size_t kept = 0;
  for (size_t at = 0; at < count; at += SIDE_BY_SIDE) {
    size_t end = count - at < SIDE_BY_SIDE ? count : at + SIDE_BY_SIDE;
    int32_t any = 0;
    for (size_t i = at; i < end; i++) any |= values[i] >= least;
    if (!any) continue;
    for (size_t i = at; i < end; i++)
      if (values[i] >= least) out[kept++] = (candidate){logits[i], (int32_t)i};
  }
  return kept;
}

/* The |k| most likely, in any order: those that are no further from the top than a histogram of distances says that k
 * are, and of these k. */
static size_t keep_top_k(const float *logits, size_t count, float top, size_t k, float *distances, candidate *out) {
  enum { STEPS = 1024, STEPS_OF_ONE = 16 };
  uint32_t counts[STEPS] = {0};
  for (size_t i = 0; i < count; i++) {
    float distance = (top - logits[i]) * STEPS_OF_ONE;
    distances[i] = distance < STEPS - 1 ? -distance : -(STEPS - 1); /* minus infinity is as far as that */
  }
  for (size_t i = 0; i < count; i++) counts[(int32_t)-distances[i]]++;
  size_t near = counts[0];
  int32_t step = 0;
  while (near < k) near += counts[++step];
  /* of a step are distances from it to just below the next; in the last is all that is left */
  size_t found = collect(logits, distances, count, nextafterf(-(float)(step + 1), 0), out);
  select_likely(out, found, k);
  return k;
}

/* Of |c|, whose weights sum to |total| with all others that the choice is from, the fewest of the most likely that
 * reach |p| of it; sorts no more of them than it must. */
static size_t keep_top_p(candidate *c, size_t count, float top, double total, double p) {
  double sum = 0;
  size_t sorted = 0;
  for (size_t block = 64; sorted < count; block *= 4) {
    size_t n = count - sorted < block ? count - sorted : block;
    select_likely(c + sorted, count - sorted, n);
    qsort(c + sorted, n, sizeof *c, compare);
    for (size_t i = sorted; i < sorted + n; i++) {
      sum += exponential(c[i].logit - top);
      if (sum >= p * total) return i + 1;
    }
    sorted += n;
  }
  return count;
}

/* As above, of all: the unlikely are left out before anything is sorted, if the others reach |p| without them. */
static size_t keep_top_p_of_all(const float *logits, size_t count, float top, double p, float *weights,
                                candidate *out) {
  double total = weigh(logits, count, top, 1, weights);
  for (float least = 1.0f / 256;; least *= least) {
    size_t found = collect(logits, weights, count, least, out);
    double sum = 0;
    for (size_t i = 0; i < found; i++) sum += weights[out[i].id];
    if (sum >= p * total || least == 0) return keep_top_p(out, found, top, total, p);
  }
}

/* The least float that is not below |x|. */
static float not_below(double x) {
  float f = (float)x;
  return (double)f < x ? nextafterf(f, INFINITY) : f;
}

static int32_t draw_of_all(rdna__random *random, const float *logits, size_t count, float top, float temperature,
                           float *weights) {
  double target = rdna__random_unit(random) * weigh(logits, count, top, temperature, weights), sum = 0;
  size_t last = 0;
  for (size_t at = 0; at < count; at += BLOCK) {
    size_t n = count - at < BLOCK ? count - at : BLOCK;
    double with = sum + sum_of(weights + at, n);
    bool here = with > target;
    for (size_t i = at; here && i < at + n; i++) {
      if (weights[i] == 0) continue;
      sum += weights[i];
      last = i;
      if (sum > target) return (int32_t)i;
    }
    sum = with;
  }
  return (int32_t)last; /* the sum one by one was rounded below the block's */
}

static int32_t draw(rdna__random *random, const candidate *c, size_t count, float top, float temperature) {
  double total = 0, sum = 0;
  for (size_t i = 0; i < count; i++) total += exponential((c[i].logit - top) / temperature);
  double target = rdna__random_unit(random) * total;
  int32_t last = c[0].id;
  for (size_t i = 0; i < count; i++) {
    float weight = exponential((c[i].logit - top) / temperature);
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
  RDNA_TRY(check_logits(logits, count));
  const rdna_sampling *s = &sampler->sampling;
  if (s->temperature != 0 || s->repetition_penalty != 1) RDNA_TRY(make_room(sampler, count));
  if (s->repetition_penalty != 1) logits = penalize(sampler, logits, count);
  float top = greatest(logits, count), *weights = sampler->weights;
  if (top == -INFINITY) return rdna__fail(RDNA_BAD_DATA, "all %zu tokens are ruled out", count);
  candidate *c = sampler->candidates;
  size_t kept = 0; /* none: all */
  if (s->temperature == 0) {
    while (logits[ *out_id = (int32_t)kept] != top) kept++; /* survives all that follows */
    return rdna_sampler_accept(sampler, *out_id);
  }
  if (s->top_k > 0 && (size_t)s->top_k < count) kept = keep_top_k(logits, count, top, (size_t)s->top_k, weights, c);
  if (s->top_p < 1 && kept == 0) {
    kept = keep_top_p_of_all(logits, count, top, s->top_p, weights, c);
  } else if (s->top_p < 1) {
    double total = 0;
    for (size_t i = 0; i < kept; i++) total += exponential(c[i].logit - top);
    kept = keep_top_p(c, kept, top, total, s->top_p);
  }
  if (s->min_p > 0) {
    float least = not_below(top + log(s->min_p));
    size_t left = 0;
    for (size_t i = 0; i < kept; i++)
      if (c[i].logit >= least) c[left++] = c[i];
    kept = kept ? left : collect(logits, logits, count, least, c);
  }
  *out_id = kept ? draw(&sampler->random, c, kept, top, s->temperature)
                 : draw_of_all(&sampler->random, logits, count, top, s->temperature, weights);
  return rdna_sampler_accept(sampler, *out_id);
}
