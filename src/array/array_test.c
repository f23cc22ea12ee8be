/* Arrays against loops in double over their values, which the host has in order. The device: RDNA_TEST_DEVICE. */
#include "rdna/array.h"

#include <math.h>
#include <string.h>

#include "base/testing.h"
#include "math/common/test/device.h"
#include "rdna/op/movement.h"

enum { MOST = 4096, TRIALS = 300 };
static const rdna_scalar zero = {0, 0};

/* What an array should be: values in order. */
typedef struct model {
  int rank;
  int64_t shape[RDNA_MAX_RANK];
  double values[MOST];
} model;

static int64_t below(int64_t n) { return (int64_t)rdna__random_below(&random_state, (uint64_t)n); }

static int64_t count_of(int rank, const int64_t *shape) {
  int64_t count = 1;
  for (int i = 0; i < rank; i++) count *= shape[i];
  return count;
}

/* Index |at| of |shape| as a place for each dimension. */
static void places_of(int rank, const int64_t *shape, int64_t at, int64_t *places) {
  for (int i = rank - 1; i >= 0; i--) {
    places[i] = at % shape[i];
    at /= shape[i];
  }
}

static int64_t index_of(int rank, const int64_t *shape, const int64_t *places) {
  int64_t at = 0;
  for (int i = 0; i < rank; i++) at = at * shape[i] + places[i];
  return at;
}

static void put(rdna_dtype dtype, void *data, int64_t i, double v) {
  switch (dtype) {
    case RDNA_F32:
      ((float *)data)[i] = (float)v;
      break;
    case RDNA_F64:
      ((double *)data)[i] = v;
      break;
    case RDNA_F16: /* of small whole numbers: sign, exponent, fraction */
      if (v == 0) {
        ((uint16_t *)data)[i] = 0;
      } else {
        int exponent;
        double fraction = frexp(fabs(v), &exponent);
        ((uint16_t *)data)[i] =
            (uint16_t)((v < 0 ? 0x8000 : 0) | (exponent + 14) << 10 | ((int)(fraction * 2048) & 1023));
      }
      break;
    case RDNA_I8:
    case RDNA_U8:
      ((uint8_t *)data)[i] = (uint8_t)(int)v;
      break;
    case RDNA_I16:
    case RDNA_U16:
      ((int16_t *)data)[i] = (int16_t)v;
      break;
    case RDNA_I32:
    case RDNA_U32:
      ((int32_t *)data)[i] = (int32_t)v;
      break;
    case RDNA_I64:
    case RDNA_U64:
      ((int64_t *)data)[i] = (int64_t)v;
      break;
    default:
      ((uint8_t *)data)[i] = v != 0;
  }
}

static double get(rdna_dtype dtype, const void *data, int64_t i) {
  switch (dtype) {
    case RDNA_F32:
      return (double)((const float *)data)[i];
    case RDNA_F64:
      return ((const double *)data)[i];
    case RDNA_F16: {
      unsigned bits = ((const uint16_t *)data)[i], exponent = bits >> 10 & 31, fraction = bits & 1023;
      double v = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
                                : ldexp((exponent ? 1024 : 0) + (double)fraction, (int)(exponent ? exponent : 1) - 25);
      return bits & 0x8000 ? -v : v;
    }
    case RDNA_I8:
      return ((const int8_t *)data)[i];
    case RDNA_I16:
      return ((const int16_t *)data)[i];
    case RDNA_I32:
      return ((const int32_t *)data)[i];
    case RDNA_I64:
      return (double)((const int64_t *)data)[i];
    case RDNA_U16:
      return ((const uint16_t *)data)[i];
    case RDNA_U32:
      return ((const uint32_t *)data)[i];
    case RDNA_U64:
      return (double)((const uint64_t *)data)[i];
    default:
      return ((const uint8_t *)data)[i];
  }
}

static bool has_no_sign(rdna_dtype t) {
  return t == RDNA_U8 || t == RDNA_U16 || t == RDNA_U32 || t == RDNA_U64 || t == RDNA_BOOL;
}
static bool is_wide(rdna_dtype t) { return t == RDNA_I32 || t == RDNA_I64 || t == RDNA_U32 || t == RDNA_U64; }

/* An array of small whole numbers, which every type holds, and its model. */
static rdna_array *draw(rdna_dtype dtype, int rank, const int64_t *shape, model *m) {
  static uint8_t data[8 * MOST];
  rdna_array *array;
  m->rank = rank;
  memcpy(m->shape, shape, (size_t)rank * sizeof *shape);
  for (int64_t i = 0; i < count_of(rank, shape); i++) {
    int64_t low = has_no_sign(dtype) ? 0 : -9, high = dtype == RDNA_BOOL ? 1 : 9;
    m->values[i] = (double)(low + below(high - low + 1));
    put(dtype, data, i, m->values[i]);
  }
  assert_ok(rdna_array_from_host(stream, dtype, rank, shape, data, &array));
  return array;
}

/* Fails unless |array| has the type, shape and values; |tolerance| is of the larger of 1 and the value. */
static void expect(rdna_array *array, rdna_dtype dtype, const model *m, double tolerance) {
  static uint8_t data[8 * MOST];
  const rdna_tensor *t = rdna_array_tensor(array);
  assert_string_equal(rdna_dtype_name(t->dtype), rdna_dtype_name(dtype));
  assert_int_equal(t->rank, m->rank);
  for (int i = 0; i < m->rank; i++) assert_int_equal(t->shape[i], m->shape[i]);
  int64_t count = count_of(m->rank, m->shape);
  memset(data, 0xff, sizeof data);
  assert_ok(rdna_array_to_host(array, data, rdna_dtype_bytes(dtype, count)));
  for (int64_t i = 0; i < count; i++) {
    double got = get(dtype, data, i), want = m->values[i];
    bool same = isnan(want)   ? isnan(got)
                : isinf(want) ? got == want
                              : fabs(got - want) <= tolerance * fmax(1, fabs(want));
    if (!same) fail_msg("value %lld of %lld is %.9g, not %.9g", (long long)i, (long long)count, got, want);
  }
}

static uint64_t live_blocks(void) {
  rdna_memory_stats stats;
  rdna_memory_get_stats(device, &stats);
  return stats.blocks;
}

/* ---- types ---- */

static const rdna_dtype plain[] = {RDNA_BOOL, RDNA_U8,  RDNA_I8,  RDNA_U16, RDNA_I16, RDNA_F16, RDNA_BF16,
                                   RDNA_U32,  RDNA_I32, RDNA_F32, RDNA_U64, RDNA_I64, RDNA_F64}; /* by their bytes */
enum { PLAIN = sizeof plain / sizeof *plain };

/* Digits of base 2 that a type's whole numbers have, and whether they have a sign; of floats those of the fraction, and
 * of the exponent. */
static void measure(rdna_dtype t, int *digits, int *sign, int *exponent) {
  static const int table[PLAIN][3] = {{1, 0, 0},  {8, 0, 0},  {7, 1, 0},  {16, 0, 0}, {15, 1, 0}, {11, 1, 5}, {8, 1, 8},
                                      {32, 0, 0}, {31, 1, 0}, {24, 1, 8}, {64, 0, 0}, {63, 1, 0}, {53, 1, 11}};
  int i = 0;
  while (plain[i] != t) i++;
  *digits = table[i][0], *sign = table[i][1], *exponent = table[i][2];
}

static bool holds(rdna_dtype type, rdna_dtype other) {
  int digits, sign, exponent, d, s, e;
  measure(type, &digits, &sign, &exponent);
  measure(other, &d, &s, &e);
  return digits >= d && sign >= s && exponent >= e;
}

static void promotes_to_the_smallest_type_that_holds_both(void **state) {
  for (int i = 0; i < PLAIN; i++) {
    for (int k = 0; k < PLAIN; k++) {
      rdna_dtype a = plain[i], b = plain[k], want = RDNA_F64; /* which also i64 with a float is, though it holds most */
      for (int c = PLAIN - 1; c >= 0; c--)
        if (holds(plain[c], a) && holds(plain[c], b)) want = plain[c];
      assert_string_equal(rdna_dtype_name(rdna_dtype_promote(a, b)), rdna_dtype_name(want));
    }
  }
  assert_int_equal(rdna_dtype_promote(RDNA_F32, RDNA_Q8_0), RDNA_DTYPE_COUNT);
  assert_int_equal(rdna_dtype_promote(RDNA_F8_E5M2, RDNA_F32), RDNA_DTYPE_COUNT);
}

/* ---- value by value ---- */

static rdna_dtype any_type(void) {
  static const rdna_dtype types[] = {RDNA_F32, RDNA_F64, RDNA_F16,  RDNA_I8,  RDNA_U8,  RDNA_I16,
                                     RDNA_I32, RDNA_I64, RDNA_BOOL, RDNA_U16, RDNA_U32, RDNA_U64};
  return types[below(sizeof types / sizeof *types)];
}

/* Shapes that can be broadcast to |shape|. */
static int part_of(int rank, const int64_t *shape, int64_t *out) {
  int own = (int)below(rank + 1);
  for (int i = 0; i < own; i++) out[i] = below(3) ? shape[rank - own + i] : 1;
  return own;
}

/* Where |m|'s value stands for index |at| of |joined|. */
static double value_for(const model *m, const model *joined, int64_t at) {
  int64_t places[RDNA_MAX_RANK], own[RDNA_MAX_RANK];
  places_of(joined->rank, joined->shape, at, places);
  for (int i = 0; i < m->rank; i++) own[i] = m->shape[i] == 1 ? 0 : places[joined->rank - m->rank + i];
  return m->values[index_of(m->rank, m->shape, own)];
}

static int64_t joined_size(const model *m, int rank, int i) {
  int own = i - (rank - m->rank);
  return own < 0 ? 1 : m->shape[own];
}

static void join(const model *const *models, int count, model *out) {
  out->rank = 0;
  for (int k = 0; k < count; k++) out->rank = models[k]->rank > out->rank ? models[k]->rank : out->rank;
  for (int i = 0; i < out->rank; i++) {
    out->shape[i] = 1;
    for (int k = 0; k < count; k++)
      if (joined_size(models[k], out->rank, i) != 1) out->shape[i] = joined_size(models[k], out->rank, i);
  }
}

static int any_shape(int64_t *shape) {
  int rank = (int)below(6);
  for (int i = 0; i < rank; i++) shape[i] = below(20) ? 1 + below(4) : 0;
  return rank;
}

static void zips_are_broadcast_and_promoted(void **state) {
  static model of_a, of_b, want;
  static const rdna_zip ops[] = {RDNA_ZIP_ADD, RDNA_ZIP_MAXIMUM, RDNA_ZIP_MUL, RDNA_ZIP_DIV};
  for (int trial = 0; trial < TRIALS; trial++) {
    int64_t shape[RDNA_MAX_RANK], part[RDNA_MAX_RANK];
    int rank = any_shape(shape);
    rdna_dtype ta = any_type(), tb = any_type(), dtype = rdna_dtype_promote(ta, tb);
    rdna_array *a = draw(ta, part_of(rank, shape, part), part, &of_a);
    rdna_array *b = draw(tb, part_of(rank, shape, part), part, &of_b), *c;
    rdna_zip op = ops[below(4)];
    bool whole = dtype != RDNA_F32 && dtype != RDNA_F64 && dtype != RDNA_F16, narrow = whole && !is_wide(dtype);
    if (op == RDNA_ZIP_DIV && whole) dtype = narrow ? RDNA_F32 : RDNA_F64;
    join((const model *[]){&of_a, &of_b}, 2, &want);
    for (int64_t i = 0; i < count_of(want.rank, want.shape); i++) {
      double x = value_for(&of_a, &want, i), y = value_for(&of_b, &want, i);
      want.values[i] = op == RDNA_ZIP_ADD   ? x + y
                       : op == RDNA_ZIP_MUL ? x * y
                       : op == RDNA_ZIP_DIV ? x / y
                                            : fmax(x, y);
      if (dtype == RDNA_BOOL) want.values[i] = want.values[i] != 0;
    }
    assert_ok(rdna_array_zip(a, b, op, zero, zero, &c));
    expect(c, dtype, &want, dtype == RDNA_F16 ? 0x1p-11 : dtype == RDNA_F32 ? 0x1p-24 : 0x1p-53);
    rdna_array_release(c);
    assert_ok(rdna_array_compare(a, b, RDNA_COMPARE_LT, &c));
    for (int64_t i = 0; i < count_of(want.rank, want.shape); i++)
      want.values[i] = value_for(&of_a, &want, i) < value_for(&of_b, &want, i);
    expect(c, RDNA_BOOL, &want, 0);
    rdna_array_release(a);
    rdna_array_release(b);
    rdna_array_release(c);
  }
}

static void maps_take_integers_as_floats_where_they_must(void **state) {
  static model of_x, want;
  for (int trial = 0; trial < TRIALS / 3; trial++) {
    int64_t shape[RDNA_MAX_RANK];
    rdna_dtype type = any_type();
    rdna_array *x = draw(type, any_shape(shape), shape, &of_x), *y;
    want = of_x;
    for (int64_t i = 0; i < count_of(want.rank, want.shape); i++) want.values[i] = exp(of_x.values[i]);
    assert_ok(rdna_array_map(x, RDNA_MAP_EXP, zero, zero, &y));
    rdna_dtype dtype = is_wide(type) ? RDNA_F64 : type == RDNA_F16 || type == RDNA_F64 ? type : RDNA_F32;
    expect(y, dtype, &want, dtype == RDNA_F16 ? 0x1p-10 : dtype == RDNA_F32 ? 0x1p-22 : 0x1p-51);
    rdna_array_release(y);
    for (int64_t i = 0; i < count_of(want.rank, want.shape); i++) want.values[i] = of_x.values[i] * of_x.values[i];
    assert_ok(rdna_array_map(x, RDNA_MAP_SQUARE, zero, zero, &y));
    expect(y, type, &want, 0);
    rdna_array_release(y);
    rdna_array_release(x);
  }
}

static void where_chooses(void **state) {
  static model of_c, of_a, of_b, want;
  for (int trial = 0; trial < TRIALS / 3; trial++) {
    int64_t shape[RDNA_MAX_RANK], part[RDNA_MAX_RANK];
    int rank = any_shape(shape);
    rdna_dtype ta = any_type(), tb = any_type();
    rdna_array *c = draw(RDNA_BOOL, part_of(rank, shape, part), part, &of_c);
    rdna_array *a = draw(ta, part_of(rank, shape, part), part, &of_a);
    rdna_array *b = draw(tb, part_of(rank, shape, part), part, &of_b), *out;
    join((const model *[]){&of_c, &of_a, &of_b}, 3, &want);
    for (int64_t i = 0; i < count_of(want.rank, want.shape); i++)
      want.values[i] = value_for(value_for(&of_c, &want, i) != 0 ? &of_a : &of_b, &want, i);
    assert_ok(rdna_array_where(c, a, b, &out));
    expect(out, rdna_dtype_promote(ta, tb), &want, 0);
    rdna_array_release(out);
    rdna_array_release(a);
    rdna_array_release(b);
    rdna_array_release(c);
  }
}

/* ---- views ---- */

/* Puts |to|'s value |i| from |from|'s places that |place| gives, for each of |to|'s places. */
static void gather(model *to, const model *from, void (*place)(const int64_t *to, int64_t *from, const int64_t *how),
                   const int64_t *how) {
  int64_t places[RDNA_MAX_RANK], own[RDNA_MAX_RANK];
  for (int64_t i = 0; i < count_of(to->rank, to->shape); i++) {
    places_of(to->rank, to->shape, i, places);
    place(places, own, how);
    to->values[i] = from->values[index_of(from->rank, from->shape, own)];
  }
}

/* how: rank, then where dimension i comes from. */
static void permuted(const int64_t *to, int64_t *from, const int64_t *how) {
  for (int i = 0; i < how[0]; i++) from[how[1 + i]] = to[i];
}
/* how: rank, dim, start, step. */
static void sliced(const int64_t *to, int64_t *from, const int64_t *how) {
  for (int i = 0; i < how[0]; i++) from[i] = i == how[1] ? how[2] + to[i] * how[3] : to[i];
}
/* how: rank of the result, of the array, whose sizes follow. */
static void repeated(const int64_t *to, int64_t *from, const int64_t *how) {
  for (int i = 0; i < how[1]; i++) from[i] = how[2 + i] == 1 ? 0 : to[how[0] - how[1] + i];
}

static rdna_array *permute_once(rdna_array *x, const model *m, model *out) {
  int64_t how[1 + RDNA_MAX_RANK] = {m->rank};
  int dims[RDNA_MAX_RANK];
  rdna_array *y;
  for (int i = 0; i < m->rank; i++) dims[i] = i;
  for (int i = m->rank - 1; i > 0; i--) {
    int k = (int)below(i + 1), d = dims[i];
    dims[i] = dims[k], dims[k] = d;
  }
  out->rank = m->rank;
  for (int i = 0; i < m->rank; i++) {
    how[1 + i] = dims[i];
    out->shape[i] = m->shape[dims[i]];
    if (below(2)) dims[i] -= m->rank;
  }
  assert_ok(rdna_array_permute(x, dims, &y));
  gather(out, m, permuted, how);
  return y;
}

static rdna_array *slice_once(rdna_array *x, const model *m, model *out) {
  rdna_array *y;
  int dim = m->rank ? (int)below(m->rank) : 0;
  if (m->rank == 0 || m->shape[dim] == 0) {
    *out = *m;
    return rdna_array_retain(x);
  }
  int64_t size = m->shape[dim], start = below(size), step = (below(2) ? 1 : -1) * (1 + below(3));
  int64_t room = step > 0 ? (size - 1 - start) / step : start / -step, count = below(room + 2);
  *out = *m;
  out->shape[dim] = count;
  assert_ok(rdna_array_slice(x, dim - (below(2) ? m->rank : 0), start, count, step, &y));
  gather(out, m, sliced, (int64_t[]){m->rank, dim, start, step});
  return y;
}

static rdna_array *broadcast_once(rdna_array *x, const model *m, model *out) {
  int64_t how[2 + RDNA_MAX_RANK] = {m->rank, m->rank};
  rdna_array *y;
  bool longer = m->rank < 5 && count_of(m->rank, m->shape) < MOST / 16 && below(2);
  out->rank = m->rank + longer;
  if (longer) out->shape[0] = 1 + below(3);
  for (int i = 0; i < m->rank; i++) {
    bool grows = m->shape[i] == 1 && count_of(m->rank, m->shape) < MOST / 16 && below(3) == 0;
    out->shape[i + longer] = grows ? 2 : m->shape[i];
    how[2 + i] = m->shape[i];
  }
  how[0] = out->rank;
  if (count_of(out->rank, out->shape) > MOST) {
    *out = *m;
    return rdna_array_retain(x);
  }
  assert_ok(rdna_array_broadcast(x, out->rank, out->shape, &y));
  gather(out, m, repeated, how);
  return y;
}

/* A shape of as many values, whose sizes are products of the old ones' factors. */
static rdna_array *reshape_once(rdna_array *x, const model *m, model *out) {
  int64_t left = count_of(m->rank, m->shape), asked[RDNA_MAX_RANK];
  rdna_array *y;
  *out = *m;
  out->rank = 0;
  if (left == 0) {
    out->rank = 2, out->shape[0] = 3, out->shape[1] = 0;
  }
  while (left > 0 && out->rank < 5) {
    int64_t size = out->rank == 4 ? left : 1 + below(left < 6 ? left : 6);
    while (left % size) size--;
    out->shape[out->rank++] = size;
    left /= size;
    if (left == 1 && below(3)) break;
  }
  for (int i = 0; i < out->rank; i++) asked[i] = out->shape[i];
  if (out->rank && left && below(2)) asked[below(out->rank)] = -1;
  assert_ok(rdna_array_reshape(x, out->rank, asked, &y));
  return y;
}

static rdna_array *expand_once(rdna_array *x, const model *m, model *out) {
  rdna_array *y, *z;
  int dim = (int)below(m->rank + 1);
  *out = *m;
  assert_ok(rdna_array_expand(x, dim - (below(2) ? m->rank + 1 : 0), &y));
  if (m->rank < 5 && below(2)) {
    out->rank++;
    for (int i = m->rank; i > dim; i--) out->shape[i] = m->shape[i - 1];
    out->shape[dim] = 1;
    return y;
  }
  assert_ok(rdna_array_squeeze(y, dim, &z));
  rdna_array_release(y);
  return z;
}

static void views_of_views(void **state) {
  static model now, next;
  static rdna_array *(*const steps[])(rdna_array *, const model *, model *) = {permute_once, slice_once, broadcast_once,
                                                                               reshape_once, expand_once};
  for (int trial = 0; trial < TRIALS; trial++) {
    int64_t shape[RDNA_MAX_RANK];
    rdna_dtype dtype = any_type();
    rdna_array *x = draw(dtype, any_shape(shape), shape, &now);
    for (int i = 0; i < 7; i++) {
      rdna_array *y = steps[below(5)](x, &now, &next);
      rdna_array_release(x);
      x = y;
      now = next;
      expect(x, dtype, &now, 0);
    }
    rdna_array *whole;
    assert_ok(rdna_array_contiguous(x, &whole));
    expect(whole, dtype, &now, 0);
    rdna_array_release(whole);
    rdna_array_release(x);
  }
}

static void reshapes_are_views_where_they_can(void **state) {
  rdna_array *x, *y, *z;
  assert_ok(rdna_array_full(stream, RDNA_F32, 3, (int64_t[]){2, 3, 4}, rdna_scalar_real(1), &x));
  assert_ok(rdna_array_slice(x, 0, 1, 1, 1, &y)); /* (1, 3, 4) */
  assert_ok(rdna_array_reshape(y, 2, (int64_t[]){6, 2}, &z));
  assert_ptr_equal(rdna_array_tensor(z)->data, (float *)rdna_array_tensor(x)->data + 12);
  rdna_array_release(z);
  rdna_array_release(y);
  assert_ok(rdna_array_permute(x, (int[]){1, 0, 2}, &y)); /* (3, 2, 4): the first two lie the other way round */
  assert_ok(rdna_array_reshape(y, 3, (int64_t[]){3, 2, -1}, &z));
  assert_ptr_equal(rdna_array_tensor(z)->data, rdna_array_tensor(x)->data);
  rdna_array_release(z);
  assert_ok(rdna_array_reshape(y, 2, (int64_t[]){6, 4}, &z));
  assert_ptr_not_equal(rdna_array_tensor(z)->data, rdna_array_tensor(x)->data);
  rdna_array_release(z);
  rdna_array_release(y);
  rdna_array_release(x);
}

/* ---- over dimensions ---- */

static double reduce_values(rdna_reduction reduction, const double *values, int count) {
  double sum = 0, product = 1, least = INFINITY, most = -INFINITY;
  int last = 0;
  for (int i = 0; i < count; i++) {
    sum += values[i];
    product *= values[i];
    if (values[i] > most) last = i;
    least = fmin(least, values[i]);
    most = fmax(most, values[i]);
  }
  switch (reduction) {
    case RDNA_REDUCTION_SUM:
      return sum;
    case RDNA_REDUCTION_MEAN:
      return sum / count;
    case RDNA_REDUCTION_PROD:
      return product;
    case RDNA_REDUCTION_MIN:
      return least;
    case RDNA_REDUCTION_MAX:
      return most;
    case RDNA_REDUCTION_ARGMAX:
      return last;
    default: /* any */
      return least != 0 || most != 0;
  }
}

static void reductions(void **state) {
  static model of_x, want;
  static const rdna_reduction all[] = {RDNA_REDUCTION_SUM, RDNA_REDUCTION_MEAN, RDNA_REDUCTION_PROD,
                                       RDNA_REDUCTION_MIN, RDNA_REDUCTION_MAX,  RDNA_REDUCTION_ARGMAX,
                                       RDNA_REDUCTION_ANY};
  for (int trial = 0; trial < TRIALS; trial++) {
    int64_t shape[RDNA_MAX_RANK];
    rdna_dtype type = any_type();
    rdna_reduction reduction = all[below(7)];
    int rank = any_shape(shape);
    if (reduction == RDNA_REDUCTION_PROD) rank = rank > 1 ? 1 : rank; /* of few, which all types hold */
    for (int i = 0; i < rank; i++) shape[i] += shape[i] == 0;
    rdna_array *x = draw(type, rank, shape, &of_x), *y;
    uint32_t dims = (uint32_t)below(1 << rank);
    bool keep = below(2), real = type == RDNA_F32 || type == RDNA_F64 || type == RDNA_F16;
    want.rank = 0;
    for (int i = 0; i < rank; i++)
      if (!(dims >> i & 1) || keep) want.shape[want.rank++] = dims >> i & 1 ? 1 : shape[i];
    int64_t count = count_of(want.rank, want.shape);
    for (int64_t i = 0; i < count; i++) { /* the values whose other places are those of |i| */
      static double values[MOST];
      int found = 0;
      int64_t places[RDNA_MAX_RANK], own[RDNA_MAX_RANK];
      for (int64_t k = 0; k < count_of(rank, shape); k++) {
        places_of(rank, shape, k, places);
        int to = 0;
        for (int d = 0; d < rank; d++)
          if (!(dims >> d & 1) || keep) own[to++] = dims >> d & 1 ? 0 : places[d];
        if (index_of(want.rank, want.shape, own) == i) values[found++] = of_x.values[k];
      }
      want.values[i] = reduce_values(reduction, values, found);
    }
    rdna_dtype dtype = type;
    if (reduction == RDNA_REDUCTION_ANY) dtype = RDNA_BOOL;
    if (reduction == RDNA_REDUCTION_ARGMAX) dtype = RDNA_I64;
    if ((reduction == RDNA_REDUCTION_SUM || reduction == RDNA_REDUCTION_PROD) && !real)
      dtype = has_no_sign(type) && type != RDNA_BOOL ? RDNA_U64 : RDNA_I64;
    if (reduction == RDNA_REDUCTION_MEAN && !real) dtype = is_wide(type) ? RDNA_F64 : RDNA_F32;
    assert_ok(rdna_array_reduce(x, reduction, dims, keep, 0, &y));
    expect(y, dtype, &want, dtype == RDNA_F16 ? 0x1p-11 : dtype == RDNA_F32 ? 0x1p-23 : 0x1p-52);
    rdna_array_release(y);
    rdna_array_release(x);
  }
}

/* ---- products ---- */

static void products_of_matrices(void **state) {
  static model of_a, of_b, want, batch_a, batch_b, batches;
  static const rdna_dtype types[] = {RDNA_F32, RDNA_F64, RDNA_F16, RDNA_I8};
  for (int trial = 0; trial < TRIALS / 2; trial++) {
    int64_t m = 1 + below(5), k = 1 + below(6), n = 1 + below(5), shape[2], part[RDNA_MAX_RANK];
    rdna_dtype ta = types[below(4)], tb = types[below(3)];
    int rank = (int)below(3);
    for (int i = 0; i < rank; i++) shape[i] = 1 + below(3);
    bool row = below(5) == 0, column = below(5) == 0, turned = below(2);
    batch_a.rank = row ? 0 : part_of(rank, shape, part);
    memcpy(batch_a.shape, part, sizeof part);
    int at = batch_a.rank;
    if (!row) part[at++] = m;
    part[at++] = k;
    rdna_array *a = draw(ta, at, part, &of_a), *c;
    batch_b.rank = column ? 0 : part_of(rank, shape, part);
    memcpy(batch_b.shape, part, sizeof part);
    at = batch_b.rank;
    part[at++] = k;
    if (!column) part[at++] = n;
    rdna_array *b = draw(tb, at, part, &of_b);
    if (turned && at >= 2) { /* the same values, lying the other way round */
      int dims[RDNA_MAX_RANK];
      for (int i = 0; i < at; i++) dims[i] = i < at - 2 ? i : 2 * at - 3 - i;
      rdna_array *over, *whole, *back;
      assert_ok(rdna_array_permute(b, dims, &over));
      assert_ok(rdna_array_contiguous(over, &whole));
      assert_ok(rdna_array_permute(whole, dims, &back));
      rdna_array_release(over);
      rdna_array_release(whole);
      rdna_array_release(b);
      b = back;
    }
    join((const model *[]){&batch_a, &batch_b}, 2, &batches);
    want = batches;
    if (!row) want.shape[want.rank++] = m;
    if (!column) want.shape[want.rank++] = n;
    int64_t rows = row ? 1 : m, columns = column ? 1 : n;
    for (int64_t i = 0; i < count_of(batches.rank, batches.shape) * rows * columns; i++) {
      int64_t batch = i / (rows * columns), r = i / columns % rows, s = i % columns;
      /* which of the operands' matrices */
      for (int64_t q = 0; q < count_of(batch_a.rank, batch_a.shape); q++) batch_a.values[q] = (double)q;
      for (int64_t q = 0; q < count_of(batch_b.rank, batch_b.shape); q++) batch_b.values[q] = (double)q;
      int64_t ia = (int64_t)value_for(&batch_a, &batches, batch), ib = (int64_t)value_for(&batch_b, &batches, batch);
      want.values[i] = 0;
      for (int64_t q = 0; q < k; q++)
        want.values[i] += of_a.values[(ia * rows + r) * k + q] * of_b.values[(ib * k + q) * columns + s];
    }
    assert_ok(rdna_array_matmul(a, b, &c));
    expect(c, rdna_dtype_promote(ta, tb), &want, 0x1p-11);
    rdna_array_release(a);
    rdna_array_release(b);
    rdna_array_release(c);
  }
}

/* ---- what is refused ---- */

#define REFUSED(code, mentions, call)                                                               \
  do {                                                                                              \
    out = (rdna_array *)&out;                                                                       \
    assert_int_equal(call, code);                                                                   \
    if (!strstr(rdna_last_error(), mentions)) fail_msg("'%s' in: %s", mentions, rdna_last_error()); \
    assert_ptr_equal(out, &out);                                                                    \
  } while (0)

static void refusals(void **state) {
  rdna_array *a, *b, *n, *other, *scalar, *out = NULL;
  rdna_stream *second;
  float values[12] = {0};
  uint64_t before = live_blocks();
  assert_ok(rdna_stream_create(device, 0, &second));
  assert_ok(rdna_array_from_host(stream, RDNA_F32, 2, (int64_t[]){3, 4}, values, &a));
  assert_ok(rdna_array_from_host(stream, RDNA_F32, 2, (int64_t[]){2, 4}, values, &b));
  assert_ok(rdna_array_from_host(second, RDNA_F32, 2, (int64_t[]){3, 4}, values, &other));
  assert_ok(rdna_array_full(stream, RDNA_I32, 2, (int64_t[]){3, 4}, zero, &n));
  assert_ok(rdna_array_full(stream, RDNA_F32, 0, NULL, zero, &scalar));
  const int64_t *none = (int64_t[]){3, -1}, *big = (int64_t[]){INT64_C(1) << 40, INT64_C(1) << 40};
  REFUSED(RDNA_INVALID_ARGUMENT, "f32 (3, 4) and f32 (2, 4)", rdna_array_zip(a, b, RDNA_ZIP_ADD, zero, zero, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "another stream", rdna_array_zip(a, other, RDNA_ZIP_ADD, zero, zero, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "no zip", rdna_array_zip(a, a, RDNA_ZIP_COUNT, zero, zero, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "no map", rdna_array_map(a, RDNA_MAP_COUNT, zero, zero, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "needs 2 arrays", rdna_array_zip(a, NULL, RDNA_ZIP_ADD, zero, zero, &out));
  REFUSED(RDNA_UNSUPPORTED, "for integers and bool", rdna_array_map(a, RDNA_MAP_BITWISE_NOT, zero, zero, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "not bool", rdna_array_where(a, a, a, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "dims 0x4", rdna_array_reduce(a, RDNA_REDUCTION_SUM, 4, false, 0, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "must be equal", rdna_array_matmul(a, b, &out));
  REFUSED(RDNA_UNSUPPORTED, "products of floats", rdna_array_matmul(n, n, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "no dimensions", rdna_array_matmul(a, scalar, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "do not fill", rdna_array_reshape(a, 2, (int64_t[]){5, -1}, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "one of them may be -1", rdna_array_reshape(a, 2, (int64_t[]){-1, -1}, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "do not fill", rdna_array_reshape(a, 2, big, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "named twice", rdna_array_permute(a, (int[]){1, -1}, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "dim 2", rdna_array_permute(a, (int[]){0, 2}, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "2 places from 3 on", rdna_array_slice(a, 1, 3, 2, 1, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "3 places from 1 on", rdna_array_slice(a, 1, 1, 3, -1, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "0 apart", rdna_array_slice(a, 1, 0, 1, 0, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "does not repeat", rdna_array_broadcast(a, 2, (int64_t[]){6, 4}, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "size 4, not 1", rdna_array_squeeze(a, 1, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "negative", rdna_array_full(stream, RDNA_F32, 2, none, zero, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "2^59", rdna_array_full(stream, RDNA_F32, 2, big, zero, &out));
  REFUSED(RDNA_UNSUPPORTED, "q8_0", rdna_array_full(stream, RDNA_Q8_0, 1, (int64_t[]){32}, zero, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "needs the values",
          rdna_array_from_host(stream, RDNA_F32, 1, (int64_t[]){2}, NULL, &out));
  assert_int_equal(rdna_array_to_host(a, values, 47), RDNA_INVALID_ARGUMENT);
  REFUSED(RDNA_INVALID_ARGUMENT, "both rows and columns", rdna_array_diagonal(a, 1, -1, 0, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "dim 2", rdna_array_diagonal(a, 0, 2, 0, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "f32 and i64 do not take the same bytes", rdna_array_bits(a, RDNA_I64, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "the same bytes", rdna_array_bits(a, RDNA_Q8_0, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "needs 1 array", rdna_array_own(NULL, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "a stream", rdna_array_empty(NULL, RDNA_F32, 0, NULL, &out));
  REFUSED(RDNA_UNSUPPORTED, "integers and bool",
          rdna_array_zip_number(a, zero, false, RDNA_ZIP_BITWISE_OR, zero, zero, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "no zip", rdna_array_zip_number(a, zero, false, RDNA_ZIP_COUNT, zero, zero, &out));
  REFUSED(RDNA_INVALID_ARGUMENT, "no question", rdna_array_compare_number(a, zero, RDNA_COMPARE_COUNT, &out));
  rdna_array_release(a);
  rdna_array_release(b);
  rdna_array_release(n);
  rdna_array_release(scalar);
  rdna_array_release(other);
  rdna_stream_release(second);
  assert_int_equal(live_blocks(), before);
}

/* Memory goes when the last view of it does. */
static void views_keep_their_memory(void **state) {
  rdna_array *x, *view;
  float value;
  uint64_t before = live_blocks();
  assert_ok(rdna_array_arange(stream, RDNA_F32, 10, rdna_scalar_real(3), rdna_scalar_real(2), &x));
  assert_ok(rdna_array_slice(x, 0, 9, 1, 1, &view));
  rdna_array_release(x);
  assert_int_equal(live_blocks(), before + 1);
  assert_ok(rdna_array_to_host(view, &value, sizeof value));
  assert_true(value == 21);
  assert_ptr_equal(rdna_array_retain(view), view);
  rdna_array_release(view);
  assert_int_equal(live_blocks(), before + 1);
  assert_ptr_equal(rdna_array_stream(view), stream);
  rdna_array_release(view);
  assert_int_equal(live_blocks(), before);
  rdna_array_release(NULL);
}

/* A number takes the array's type, or that of floats where the operation has no integers. */
static void zips_and_questions_with_numbers(void **state) {
  for (int trial = 0; trial < TRIALS; trial++) {
    static const rdna_dtype types[] = {RDNA_F32, RDNA_F64, RDNA_F16, RDNA_I8, RDNA_I16, RDNA_I32, RDNA_I64};
    static model m, want;
    rdna_dtype dtype = types[below(7)];
    int64_t shape[] = {1 + below(4), below(6)};
    rdna_array *x = draw(dtype, 2, shape, &m), *z, *divided, *question;
    int64_t number = 1 + below(9);
    bool first = below(2);
    assert_ok(rdna_array_zip_number(x, rdna_scalar_integer(number), first, RDNA_ZIP_SUB, zero, zero, &z));
    assert_ok(rdna_array_zip_number(x, rdna_scalar_integer(number), false, RDNA_ZIP_DIV, zero, zero, &divided));
    assert_ok(rdna_array_compare_number(x, rdna_scalar_integer(number), RDNA_COMPARE_LT, &question));
    want = m;
    for (int64_t i = 0; i < count_of(2, shape); i++)
      want.values[i] = first ? (double)number - m.values[i] : m.values[i] - (double)number;
    expect(z, dtype, &want, 0);
    for (int64_t i = 0; i < count_of(2, shape); i++) want.values[i] = m.values[i] / (double)number;
    bool narrow = dtype == RDNA_I8 || dtype == RDNA_I16, wide = dtype == RDNA_I32 || dtype == RDNA_I64;
    expect(divided, narrow ? RDNA_F32 : wide ? RDNA_F64 : dtype, &want, 0x1p-11);
    for (int64_t i = 0; i < count_of(2, shape); i++) want.values[i] = m.values[i] < (double)number;
    expect(question, RDNA_BOOL, &want, 0);
    rdna_array_release(x);
    rdna_array_release(z);
    rdna_array_release(divided);
    rdna_array_release(question);
  }
}

/* Of (m, k, n) the diagonals of dimensions 0 and 2, from any column or row on. */
static void diagonals(void **state) {
  for (int trial = 0; trial < TRIALS; trial++) {
    static model m, want;
    int64_t shape[] = {below(5), 1 + below(3), below(5)}, offset = below(13) - 6, k = shape[1];
    int64_t row = offset < 0 ? -offset : 0, column = offset > 0 ? offset : 0,
            rest[] = {shape[0] - row, shape[2] - column};
    int64_t count = rest[0] < rest[1] ? rest[0] : rest[1];
    rdna_array *x = draw(RDNA_I32, 3, shape, &m), *diagonal;
    assert_ok(rdna_array_diagonal(x, 0, -1, offset, &diagonal));
    want = (model){.rank = 2, .shape = {count > 0 ? count : 0, k}};
    for (int64_t i = 0; i < want.shape[0]; i++)
      for (int64_t j = 0; j < k; j++) want.values[i * k + j] = m.values[((row + i) * k + j) * shape[2] + column + i];
    expect(diagonal, RDNA_I32, &want, 0);
    rdna_array_release(x);
    rdna_array_release(diagonal);
  }
}

/* A view of floats as integers has their bits; what no other array sees may be written, and else is a copy. */
static void bits_and_memory_of_ones_own(void **state) {
  const float values[] = {1, -2, 0.5f};
  int32_t bits[3];
  float after[3];
  rdna_array *x, *view, *own, *alone;
  assert_ok(rdna_array_from_host(stream, RDNA_F32, 1, (int64_t[]){3}, values, &x));
  assert_ok(rdna_array_bits(x, RDNA_I32, &view));
  assert_ok(rdna_array_to_host(view, bits, sizeof bits));
  assert_memory_equal(bits, values, sizeof bits);
  assert_ok(rdna_array_own(x, &own));
  assert_ptr_not_equal(rdna_array_tensor(own)->data, rdna_array_tensor(x)->data);
  assert_ok(rdna_op_fill(stream, rdna_scalar_real(7), rdna_array_tensor(own)));
  assert_ok(rdna_array_to_host(x, after, sizeof after));
  assert_memory_equal(after, values, sizeof after);
  rdna_array_release(view);
  assert_ok(rdna_array_own(x, &alone));
  assert_ptr_equal(alone, x);
  rdna_array_release(own);
  assert_ok(rdna_array_own(x, &own)); /* counted twice by now */
  assert_ptr_not_equal(own, x);
  rdna_array_release(alone);
  rdna_array_release(own);
  rdna_array_release(x);
  assert_ok(rdna_array_empty(stream, RDNA_F32, 1, (int64_t[]){3}, &x));
  assert_ok(rdna_array_broadcast(x, 2, (int64_t[]){2, 3}, &view));
  rdna_array_release(x);
  assert_ok(rdna_array_own(view, &own)); /* alone, but with places that are one */
  assert_int_equal(rdna_array_tensor(own)->stride[0], 3);
  rdna_array_release(view);
  rdna_array_release(own);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(promotes_to_the_smallest_type_that_holds_both),
      cmocka_unit_test(zips_are_broadcast_and_promoted),
      cmocka_unit_test(maps_take_integers_as_floats_where_they_must),
      cmocka_unit_test(where_chooses),
      cmocka_unit_test(views_of_views),
      cmocka_unit_test(reshapes_are_views_where_they_can),
      cmocka_unit_test(reductions),
      cmocka_unit_test(products_of_matrices),
      cmocka_unit_test(refusals),
      cmocka_unit_test(views_keep_their_memory),
      cmocka_unit_test(zips_and_questions_with_numbers),
      cmocka_unit_test(diagonals),
      cmocka_unit_test(bits_and_memory_of_ones_own),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
