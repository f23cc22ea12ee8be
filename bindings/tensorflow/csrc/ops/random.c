/* Random numbers. Those of the stateless operators depend on their seed alone, but are not those of TensorFlow's CPU.
 */
#include "rdna/op/random.h"

#include <stdatomic.h>
#include <time.h>

#include "ops.h"
#include "rdna/op/movement.h"
#include "rdna/op/pointwise.h"
#include "rdna/op/special.h"

/* The finalizer of SplitMix64 (Steele, Lea and Flood, 2014): every bit of the result depends on every bit of |x|. */
static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/* From a seed of two integers, all in host memory: a key, and a counter of two. */
rdna_status compute_key_counter(call *c) {
  int64_t seed[2];
  int count;
  rdna_tensor key, counter;
  TRY(call_integers(c, 0, 2, seed, &count));
  if (count != 2) return call_fail(c, RDNA_INVALID_ARGUMENT, "seed must have shape [2]");
  TRY(call_output(c, 0, 1, (int64_t[]){1}, &key));
  TRY(call_output(c, 1, 1, (int64_t[]){2}, &counter));
  *(uint64_t *)key.data = mix((uint64_t)seed[0] ^ mix((uint64_t)seed[1]));
  ((uint64_t *)counter.data)[0] = ((uint64_t *)counter.data)[1] = 0;
  return RDNA_OK;
}

rdna_status compute_algorithm(call *c) {
  rdna_tensor out;
  TRY(call_output(c, 0, 0, NULL, &out));
  *(int32_t *)out.data = 1; /* TensorFlow's number of Philox */
  return RDNA_OK;
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

/* The output, whose shape is input 0, and what to draw it from: inputs key and counter, or the kernel's state. */
static rdna_status begin(call *c, bool stateless, rdna_tensor *out, struct draw *draw) {
  int64_t shape[RDNA_MAX_RANK], key, counter[2];
  int rank, count;
  TRY(call_integers(c, 0, RDNA_MAX_RANK, shape, &rank));
  TRY(call_output(c, 0, rank, shape, out));
  if (!stateless) {
    *draw = next_draw(c, rdna_tensor_count(out));
    return RDNA_OK;
  }
  TRY(call_integer(c, 1, &key));
  TRY(call_integers(c, 2, 2, counter, &count));
  *draw = (struct draw){(uint64_t)key, count ? (uint64_t)counter[0] : 0};
  return RDNA_OK;
}

static rdna_status uniform(call *c, bool stateless) {
  rdna_tensor out;
  struct draw draw;
  TRY(begin(c, stateless, &out, &draw));
  return rdna_op_random_uniform(c->stream, draw.seed, draw.offset, 0, 1, &out);
}

static rdna_status normal(call *c, bool stateless) {
  rdna_tensor out;
  struct draw draw;
  TRY(begin(c, stateless, &out, &draw));
  return rdna_op_random_normal(c->stream, draw.seed, draw.offset, 0, 1, &out);
}

/* Within two deviations: the inverse of the distribution function at a uniform number between its values there. */
static rdna_status truncated(call *c, bool stateless) {
  const float below = 0.022750131948179207f;
  rdna_tensor out, wide;
  struct draw draw;
  TRY(begin(c, stateless, &out, &draw));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  TRY(call_scratch(c, RDNA_F32, out.rank, out.shape, &wide));
  TRY(rdna_op_random_uniform(c->stream, draw.seed, draw.offset, below, 1 - below, &wide));
  TRY(rdna_op_special(c->stream, RDNA_SPECIAL_NDTRI, 0, &wide, &wide));
  return rdna_op_copy(c->stream, &wide, &out);
}

static rdna_status integers(call *c, bool stateless) {
  rdna_tensor out;
  struct draw draw;
  int64_t low, high;
  TRY(call_integer(c, stateless ? 4 : 1, &low));
  TRY(call_integer(c, stateless ? 5 : 2, &high));
  if (low >= high)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "Need minval < maxval, got %lld >= %lld", (long long)low,
                     (long long)high);
  TRY(begin(c, stateless, &out, &draw));
  return rdna_op_random_integers(c->stream, draw.seed, draw.offset, low, high, &out);
}

rdna_status compute_random_uniform(call *c) { return uniform(c, c->number); }

rdna_status compute_random_normal(call *c) { return normal(c, c->number); }

rdna_status compute_random_truncated(call *c) { return truncated(c, c->number); }

rdna_status compute_random_integers(call *c) { return integers(c, c->number); }
