/* Random numbers. Those of the stateless operators depend on their seed alone, but are not those of TensorFlow's CPU.
 */
#include "rdna/op/random.h"

#include <math.h>
#include <stdatomic.h>
#include <time.h>

#include "compose.h"
#include "ops.h"
#include "rdna/op/index.h"
#include "rdna/op/scan.h"
#include "rdna/op/softmax.h"
#include "rdna/op/sort.h"
#include "rdna/op/special.h"
#include "variable.h"

/* The finalizer of SplitMix64 (Steele, Lea and Flood, 2014): every bit of the result depends on every bit of |x|. */
static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/* From a seed of two integers, all in host memory: a key, and a counter of two. */
static rdna_status of_seed(call *c, int i, uint64_t *out_key) { /* of two integers, in host memory */
  int64_t seed[2];
  int count;
  TRY(call_integers(c, i, 2, seed, &count));
  if (count != 2) return call_fail(c, RDNA_INVALID_ARGUMENT, "seed must have shape [2]");
  *out_key = mix((uint64_t)seed[0] ^ mix((uint64_t)seed[1]));
  return RDNA_OK;
}

static rdna_status algorithm(call *c, int output) {
  rdna_tensor out;
  TRY(call_output(c, output, 0, NULL, &out));
  *(int32_t *)out.data = 1; /* TensorFlow's number of Philox */
  return RDNA_OK;
}

rdna_status compute_algorithm(call *c) { return algorithm(c, 0); }

rdna_status compute_key_counter(call *c) { /* number 1: and the algorithm */
  uint64_t seed = 0;
  rdna_tensor key, counter;
  TRY(of_seed(c, 0, &seed));
  TRY(call_output(c, 0, 1, (int64_t[]){1}, &key));
  TRY(call_output(c, 1, 1, (int64_t[]){2}, &counter));
  *(uint64_t *)key.data = seed;
  ((uint64_t *)counter.data)[0] = ((uint64_t *)counter.data)[1] = 0;
  return c->number ? algorithm(c, 2) : RDNA_OK;
}

struct draw {
  uint64_t seed, offset;
};

/* Where a stateful operator goes on: by its attributes, or differently in every process where they are zero. */
static struct draw next_draw(call *c, int64_t count) {
  static _Atomic uint64_t of_process;
  const struct attributes *a = c->attributes;
  uint64_t seed = mix((uint64_t)a->seed ^ mix((uint64_t)a->seed2)), drawn = (uint64_t)count;
  if (a->seed || a->seed2) return (struct draw){seed, atomic_fetch_add(c->drawn, drawn)};
  static _Atomic uint64_t start;
  uint64_t none = 0;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  atomic_compare_exchange_strong(&start, &none, mix((uint64_t)now.tv_nsec ^ mix((uint64_t)now.tv_sec)));
  return (struct draw){atomic_load(&start), atomic_fetch_add(&of_process, drawn)};
}

/* The state of tf.random.Generator, a variable of i64: a counter in two words, and a key. Every drawing goes on by as
 * many times 256 as it has numbers, as TensorFlow does. */
static rdna_status draw_from_state(call *c, int64_t count, struct draw *draw, rdna_tensor *old) {
  rdna_tensor state, fresh, next;
  int64_t words[3];
  TRY(variable_value(c, 0, &state));
  if (state.dtype != RDNA_I64 || state.rank != 1 || state.shape[0] != 3)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "the state of a generator must be three int64");
  if (old) TRY(rdna_op_copy(c->stream, &state, old));
  TRY(call_read(c, &state, words));
  *draw = (struct draw){mix((uint64_t)words[2] ^ mix((uint64_t)words[1])), (uint64_t)words[0]};
  uint64_t low = (uint64_t)words[0] + (uint64_t)count * 256;
  if (low < (uint64_t)words[0]) words[1]++;
  words[0] = (int64_t)low;
  TRY(variable_to_write(c, 0, false, &fresh));
  TRY(call_upload(c, RDNA_I64, 3, words, &next));
  return rdna_op_copy(c->stream, &next, &fresh);
}

static rdna_status draw_from_variable(call *c, int64_t count, struct draw *draw) {
  lock_variables();
  rdna_status result = draw_from_state(c, count, draw, NULL);
  unlock_variables();
  return result;
}

/* (state, algorithm, how many): number 1 also gives the old state. */
static rdna_status skip(call *c) {
  rdna_tensor old;
  struct draw draw;
  int64_t count;
  TRY(call_integer(c, 2, &count));
  if (c->number) TRY(call_output(c, 0, 1, (int64_t[]){3}, &old));
  return draw_from_state(c, count, &draw, c->number ? &old : NULL);
}
LOCKED(compute_skip, skip)

/* What to draw |count| numbers from, of input |i| on where an input says it. */
static rdna_status source(call *c, int i, int64_t count, struct draw *draw) {
  int64_t key, counter[2];
  int counters;
  *draw = (struct draw){0};
  switch (c->number) {
    case FROM_STATE:
      *draw = next_draw(c, count);
      return RDNA_OK;
    case FROM_SEED:
      return of_seed(c, i, &draw->seed);
    case FROM_VARIABLE:
      return draw_from_variable(c, count, draw);
    default:
      TRY(call_integer(c, i, &key));
      TRY(call_integers(c, i + 1, 2, counter, &counters));
      *draw = (struct draw){(uint64_t)key, counters ? (uint64_t)counter[0] : 0};
      return RDNA_OK;
  }
}

/* The output, whose shape is the first input, behind a variable and an algorithm the third, and what to draw it from.
 */
static rdna_status begin(call *c, rdna_tensor *out, struct draw *draw) {
  int64_t shape[RDNA_MAX_RANK];
  int rank, at = c->number == FROM_VARIABLE ? 2 : 0;
  TRY(call_integers(c, at, RDNA_MAX_RANK, shape, &rank));
  TRY(call_output(c, 0, rank, shape, out));
  return source(c, 1, rdna_tensor_count(out), draw);
}

/* |out|, of f64, uniform in [low, high): from 53 bits each, as f32's 24 would leave gaps. */
static rdna_status uniform_of_doubles(call *c, struct draw draw, double low, double high, const rdna_tensor *out) {
  const int64_t numbers = (int64_t)1 << 53;
  rdna_tensor bits;
  TRY(call_scratch(c, RDNA_I64, out->rank, out->shape, &bits));
  TRY(rdna_op_random_integers(c->stream, draw.seed, draw.offset, 0, numbers, &bits));
  TRY(rdna_op_copy(c->stream, &bits, out));
  return affine(c, out, (high - low) / (double)numbers, low, out);
}

rdna_status compute_random_uniform(call *c) {
  rdna_tensor out;
  struct draw draw;
  TRY(begin(c, &out, &draw));
  if (out.dtype == RDNA_F64) return uniform_of_doubles(c, draw, 0, 1, &out);
  return rdna_op_random_uniform(c->stream, draw.seed, draw.offset, 0, 1, &out);
}

rdna_status compute_random_normal(call *c) {
  const double half = 0x1p-54; /* of the step between two uniform numbers, as that of 0 would be infinite */
  rdna_tensor out;
  struct draw draw;
  TRY(begin(c, &out, &draw));
  if (out.dtype != RDNA_F64) return rdna_op_random_normal(c->stream, draw.seed, draw.offset, 0, 1, &out);
  TRY(uniform_of_doubles(c, draw, half, 1 + half, &out));
  return rdna_op_special(c->stream, RDNA_SPECIAL_NDTRI, 0, &out, &out);
}

/* Within two deviations: the inverse of the distribution function at a uniform number between its values there. */
rdna_status compute_random_truncated(call *c) {
  const double below = 0.022750131948179207;
  rdna_tensor out, wide;
  struct draw draw;
  TRY(begin(c, &out, &draw));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  if (out.dtype == RDNA_F64) {
    TRY(uniform_of_doubles(c, draw, below, 1 - below, &out));
    return rdna_op_special(c->stream, RDNA_SPECIAL_NDTRI, 0, &out, &out);
  }
  TRY(call_scratch(c, RDNA_F32, out.rank, out.shape, &wide));
  TRY(rdna_op_random_uniform(c->stream, draw.seed, draw.offset, (float)below, 1 - (float)below, &wide));
  TRY(rdna_op_special(c->stream, RDNA_SPECIAL_NDTRI, 0, &wide, &wide));
  return rdna_op_copy(c->stream, &wide, &out);
}

rdna_status compute_random_integers(call *c) {
  static const int limits[] = {[FROM_STATE] = 1, [FROM_KEY] = 4, [FROM_SEED] = 2, [FROM_VARIABLE] = 3};
  rdna_tensor out;
  struct draw draw;
  int64_t low, high;
  TRY(call_integer(c, limits[c->number], &low));
  TRY(call_integer(c, limits[c->number] + 1, &high));
  if (low >= high)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "Need minval < maxval, got %lld >= %lld", (long long)low,
                     (long long)high);
  TRY(begin(c, &out, &draw));
  return rdna_op_random_integers(c->stream, draw.seed, draw.offset, low, high, &out);
}

/* Any value of the type: in 32 bits each, two for those of 64. */
rdna_status compute_random_bits(call *c) {
  rdna_tensor out;
  struct draw draw;
  TRY(begin(c, &out, &draw));
  int64_t count = rdna_tensor_count(&out) * (out.dtype == RDNA_I64 ? 2 : 1);
  rdna_tensor words = rdna_tensor_contiguous(out.data, RDNA_I32, 1, &count);
  return rdna_op_random_integers(c->stream, draw.seed, draw.offset, INT32_MIN, 1ll << 31, &words);
}

/* (logits (rows, classes), samples[, seed]): the first class up to which the probabilities add up to more than a
 * uniform number times all of them. */
rdna_status compute_multinomial(call *c) {
  rdna_tensor x, out, p, sums, u, at;
  struct draw draw;
  int64_t samples;
  TRY(call_input(c, 0, &x));
  TRY(call_integer(c, 1, &samples));
  if (x.rank != 2 || samples < 0 || x.shape[1] == 0)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "logits should be a matrix of classes, num_samples nonnegative");
  int64_t rows = x.shape[0], classes = x.shape[1], shape[] = {rows, samples};
  TRY(call_output(c, 0, 2, shape, &out));
  TRY(source(c, 2, rows * samples, &draw));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  TRY(as_type(c, &x, RDNA_F32, &p));
  TRY(like(c, &p, &sums));
  TRY(rdna_op_softmax(c->stream, &p, -1, 1, &sums));
  TRY(rdna_op_cumsum(c->stream, &sums, 1, &sums));
  TRY(call_scratch(c, RDNA_F32, 2, shape, &u));
  TRY(call_scratch(c, RDNA_I64, 2, shape, &at));
  TRY(rdna_op_random_uniform(c->stream, draw.seed, draw.offset, 0, 1, &u));
  rdna_tensor total = narrowed(&sums, 1, classes - 1, 1);
  TRY(zip(c, RDNA_ZIP_MUL, &u, &total, &u));
  TRY(rdna_op_search_sorted(c->stream, &sums, &u, true, &at));
  TRY(zip_number(c, RDNA_ZIP_MINIMUM, &at, (double)(classes - 1), &at));
  return rdna_op_copy(c->stream, &at, &out);
}

/* Input |i|, a number or one for each of the first dimension, in f64 as (batches, 1). */
static rdna_status of_batches(call *c, int i, int64_t batches, rdna_tensor *out) {
  rdna_tensor x;
  TRY(call_input(c, i, &x));
  int64_t count = rdna_tensor_count(&x);
  if (x.rank > 1 || (count != 1 && count != batches))
    return call_fail(c, RDNA_INVALID_ARGUMENT, "input %d should have length 1 or shape[0], which is %lld", i,
                     (long long)batches);
  x = reshaped(&x, 2, (int64_t[]){count, 1});
  return as_type(c, &x, RDNA_F64, out);
}

/* The normal distribution's share below each of |x|, in place */
static rdna_status share_below(call *c, const rdna_tensor *x) {
  TRY(affine(c, x, -sqrt(0.5), 0, x));
  TRY(rdna_op_special(c->stream, RDNA_SPECIAL_ERFC, 0, x, x));
  return affine(c, x, 0.5, 0, x);
}

/* |out|: a value between |least| and |most| (batches, 1) for each |u| of (0, 1), where most is so many deviations below
 * the mean that the share below it is next to 0: the density falls there as exp(-most x). */
static rdna_status draw_far(call *c, const rdna_tensor *u, const rdna_tensor *least, const rdna_tensor *most,
                            const rdna_tensor *out) {
  rdna_tensor rate, rest;
  TRY(like(c, most, &rate));
  TRY(like(c, most, &rest));
  TRY(map(c, RDNA_MAP_NEG, most, &rate));
  TRY(zip(c, RDNA_ZIP_SUB, least, most, &rest));
  TRY(zip(c, RDNA_ZIP_MUL, &rest, &rate, &rest));
  TRY(map(c, RDNA_MAP_EXPM1, &rest, &rest));
  TRY(zip(c, RDNA_ZIP_MUL, u, &rest, out));
  TRY(map(c, RDNA_MAP_LOG1P, out, out));
  TRY(zip(c, RDNA_ZIP_DIV, out, &rate, out));
  return zip(c, RDNA_ZIP_ADD, out, most, out);
}

/* (shape, means, deviations, least, most): between the two, by the inverse of the distribution function as above. What
 * lies above the mean is drawn below it, where the function's small values are exact. */
rdna_status compute_random_truncated_between(call *c) {
  rdna_tensor out, given[4], ends[2], turned[2], u, wide, wrong, count, above, sign, far, is_far;
  struct draw draw;
  int64_t bad = 0;
  TRY(begin(c, &out, &draw));
  if (out.rank < 1) return call_fail(c, RDNA_INVALID_ARGUMENT, "Shape tensor must not be empty");
  int64_t batches = out.shape[0], each[] = {batches, 1};
  for (int i = 0; i < 4; i++) TRY(of_batches(c, i + 1, batches, &given[i]));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  const rdna_tensor *mean = &given[0], *deviation = &given[1];
  TRY(call_scratch(c, RDNA_BOOL, 2, each, &above));
  TRY(call_scratch(c, RDNA_BOOL, 2, each, &wrong));
  TRY(call_scratch(c, RDNA_F64, 2, each, &sign));
  TRY(call_scratch(c, RDNA_I64, 0, NULL, &count));
  for (int i = 0; i < 2; i++) {
    TRY(call_scratch(c, RDNA_F64, 2, each, &ends[i]));
    TRY(call_scratch(c, RDNA_F64, 2, each, &turned[i]));
    TRY(zip(c, RDNA_ZIP_SUB, &given[2 + i], mean, &ends[i]));
    TRY(zip(c, RDNA_ZIP_DIV, &ends[i], deviation, &ends[i]));
  }
  TRY(answers(c, RDNA_COMPARE_GT, deviation, 0, &wrong));
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_LT, &given[2], &given[3], &above));
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_LOGICAL_AND, &above, &wrong, &above));
  TRY(rdna_op_nonzero_count(c->stream, &above, &count));
  TRY(call_read(c, &count, &bad));
  if (bad != batches) return call_fail(c, RDNA_INVALID_ARGUMENT, "Invalid parameters");
  TRY(zip(c, RDNA_ZIP_ADD, &ends[0], &ends[1], &sign));
  TRY(rdna_op_compare_scalar(c->stream, RDNA_COMPARE_GT, &sign, zero, &above));
  for (int i = 0; i < 2; i++) TRY(map(c, RDNA_MAP_NEG, &ends[1 - i], &turned[i]));
  for (int i = 0; i < 2; i++) TRY(rdna_op_where(c->stream, &above, &turned[i], &ends[i], &turned[i]));
  TRY(as_type(c, &above, RDNA_F64, &sign));
  TRY(affine(c, &sign, -2, 1, &sign));
  for (int i = 0; i < 2; i++) TRY(rdna_op_copy(c->stream, &turned[i], &ends[i]));
  for (int i = 0; i < 2; i++) TRY(share_below(c, &ends[i]));
  TRY(zip(c, RDNA_ZIP_SUB, &ends[1], &ends[0], &ends[1]));
  int64_t flat[] = {batches, rdna_tensor_count(&out) / batches};
  TRY(call_scratch(c, RDNA_F32, 2, flat, &u));
  TRY(rdna_op_random_uniform(c->stream, draw.seed, draw.offset, 0, 1, &u));
  TRY(as_type(c, &u, RDNA_F64, &wide));
  TRY(affine(c, &wide, 1, 0x1p-25, &wide)); /* not 0, at which there are ends that are infinite */
  TRY(like(c, &wide, &far));
  TRY(draw_far(c, &wide, &turned[0], &turned[1], &far));
  TRY(answers(c, RDNA_COMPARE_LT, &turned[1], -37, &is_far));
  TRY(zip(c, RDNA_ZIP_MUL, &wide, &ends[1], &wide));
  TRY(zip(c, RDNA_ZIP_ADD, &wide, &ends[0], &wide));
  TRY(rdna_op_special(c->stream, RDNA_SPECIAL_NDTRI, 0, &wide, &wide));
  is_far = repeated(&is_far, 2, flat);
  TRY(rdna_op_where(c->stream, &is_far, &far, &wide, &wide));
  TRY(rdna_op_zip3(c->stream, RDNA_ZIP3_CLAMP, &wide, &turned[0], &turned[1], zero, &wide));
  TRY(zip(c, RDNA_ZIP_MUL, &wide, &sign, &wide));
  TRY(zip(c, RDNA_ZIP_MUL, &wide, deviation, &wide));
  TRY(zip(c, RDNA_ZIP_ADD, &wide, mean, &wide));
  TRY(rdna_op_zip3(c->stream, RDNA_ZIP3_CLAMP, &wide, &given[2], &given[3], zero, &wide));
  rdna_tensor to = reshaped(&out, 2, flat);
  return rdna_op_copy(c->stream, &wide, &to);
}

/* (shape, …, alpha), whose shape is the end of the output's. */
rdna_status compute_random_gamma(call *c) {
  rdna_tensor out, alpha, whole;
  struct draw draw;
  TRY(begin(c, &out, &draw));
  TRY(call_input(c, call_inputs(c) - 1, &alpha));
  bool fits = alpha.rank <= out.rank;
  for (int i = 0; fits && i < alpha.rank; i++) fits = alpha.shape[i] == out.shape[out.rank - alpha.rank + i];
  if (!fits) return call_fail(c, RDNA_INVALID_ARGUMENT, "shape must end with alpha's shape");
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  TRY(call_scratch(c, out.dtype, out.rank, out.shape, &whole));
  TRY(rdna_op_copy(c->stream, &alpha, &whole));
  return rdna_op_random_gamma(c->stream, draw.seed, draw.offset, &whole, &out);
}
