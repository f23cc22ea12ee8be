/* Functions of complex numbers beside C's own, in long double; products beside loops. */
#include "rdna/op/complex.h"

#include <complex.h>
#include <float.h>

#include "base/random.h"
#include "math/common/test/operand.h"
#include "math/common/test/strided.h"

typedef long double complex value;

static value reals(long double re, long double im) { return __builtin_complex(re, im); }
static value value_at(const operand *o, int64_t i) { return reals(operand_get(o, i), operand_get(o, i + 1)); }

/* Where value |i| of |out| is in |t|, both with pairs. */
static int64_t place(const operand *t, const operand *out, int64_t i, bool real_t, bool real_out) {
  rdna_tensor from = t->tensor, to = out->tensor;
  from.rank -= !real_t, to.rank -= !real_out;
  return place_of(&from, &to, i);
}

static value map_by_definition(rdna_complex_map op, value x) {
  switch (op) {
    case RDNA_COMPLEX_CONJ:
      return conjl(x);
    case RDNA_COMPLEX_NEG:
      return reals(-creall(x), -cimagl(x));
    case RDNA_COMPLEX_RECIPROCAL: {
      long double square = creall(x) * creall(x) + cimagl(x) * cimagl(x);
      return reals(creall(x) / square, -cimagl(x) / square);
    }
    case RDNA_COMPLEX_SGN:
      return x == 0 ? 0 : reals(creall(x) / cabsl(x), cimagl(x) / cabsl(x));
    case RDNA_COMPLEX_SQRT:
      return csqrtl(x);
    case RDNA_COMPLEX_EXP:
      return cexpl(x);
    case RDNA_COMPLEX_LOG:
      return clogl(x);
    case RDNA_COMPLEX_SIN:
      return csinl(x);
    case RDNA_COMPLEX_COS:
      return ccosl(x);
    case RDNA_COMPLEX_TAN:
      return ctanl(x);
    case RDNA_COMPLEX_SINH:
      return csinhl(x);
    case RDNA_COMPLEX_COSH:
      return ccoshl(x);
    case RDNA_COMPLEX_TANH:
      return ctanhl(x);
    case RDNA_COMPLEX_MAP_COUNT:
      break;
  }
  fail_msg("the test does not know operation %d", (int)op);
  return 0;
}
static value zip_by_definition(rdna_complex_zip op, value a, value b, value p) {
  switch (op) {
    case RDNA_COMPLEX_ADD:
      return a + b;
    case RDNA_COMPLEX_SUB:
      return a - b;
    case RDNA_COMPLEX_MUL:
      return a * b;
    case RDNA_COMPLEX_DIV:
      return a / b;
    case RDNA_COMPLEX_ADD_SCALED:
      return a + p * b;
    case RDNA_COMPLEX_POW:
      return cpowl(a, b);
    case RDNA_COMPLEX_ZIP_COUNT:
      break;
  }
  fail_msg("the test does not know operation %d", (int)op);
  return 0;
}

static double unit(rdna_dtype dtype) { return dtype == RDNA_F64 ? DBL_EPSILON : (double)FLT_EPSILON; }

/* Fails unless (re, im) is |want| within |units| of |size|, or of its own magnitude if that is larger. */
static void agree(rdna_dtype dtype, double re, double im, value want, double units, double size, const char *what) {
  double most = largest_finite(dtype), bound = units * unit(dtype) * fmax((double)cabsl(want), size);
  double parts[2] = {re, im}, wants[2] = {(double)creall(want), (double)cimagl(want)};
  for (int i = 0; i < 2; i++) {
    bool right = isnan(wants[i])             ? isnan(parts[i])
                 : !(fabs(wants[i]) <= most) ? isinf(parts[i]) && signbit(parts[i]) == signbit(wants[i])
                                             : fabs(parts[i] - wants[i]) <= bound;
    if (!right) fail_msg("%s: (%.17g, %.17g), not (%.17g, %.17g)", what, re, im, wants[0], wants[1]);
  }
}

/* A tensor of random strides, with pairs in a last dimension unless |real|; |turned|: of (2, 3, 4) the first is the
 * fastest. */
static operand some(rdna_dtype dtype, int rank, const int64_t *shape, bool real, bool turned, int64_t gap) {
  int64_t full[4], stride[4], step = real ? 1 : 2;
  for (int k = 0; k < rank; k++) {
    int d = turned ? k : rank - 1 - k;
    full[d] = shape[d], stride[d] = step, step *= shape[d] + (k == 0 ? gap : 0);
  }
  if (!real) full[rank] = 2, stride[rank] = 1;
  return operand_make(dtype, rank + !real, full, stride, real ? 1 : 2);
}

static void maps(void **state) {
  for (int i = 0; i < 4 * RDNA_COMPLEX_MAP_COUNT; i++) {
    rdna_complex_map op = (rdna_complex_map)(i / 4);
    rdna_dtype dtype = i % 2 ? RDNA_F64 : RDNA_F32;
    int64_t shape[3] = {3, 5 + i % 7, 9};
    operand x = some(dtype, 3, shape, false, i % 4 > 1, i % 3), out = some(dtype, 3, shape, false, i % 3 > 1, 0);
    operand_fill(&x, 2), operand_upload(&out);
    assert_ok(rdna_op_complex_map(stream, op, &x.tensor, &out.tensor));
    operand_download(&out);
    for (int64_t k = 0; k < 3 * shape[1] * 9; k++) {
      int64_t to = place(&out, &out, k, false, false);
      value want = map_by_definition(op, value_at(&x, place(&x, &out, k, false, false)));
      agree(dtype, operand_get(&out, to), operand_get(&out, to + 1), want, dtype == RDNA_F64 ? 16 : 1, 0, "map");
    }
    operand_free(&x), operand_free(&out);
  }
}

static void zips(void **state) {
  for (int i = 0; i < 6 * RDNA_COMPLEX_ZIP_COUNT; i++) {
    rdna_complex_zip op = (rdna_complex_zip)(i / 6);
    rdna_dtype dtype = i % 2 ? RDNA_F64 : RDNA_F32;
    int64_t shape[3] = {7, 5 + i, 31}, small[3] = {i % 3 ? 7 : 1, 1, 31};
    rdna_complex p = {0.3, -1.7}, scalar = {-0.6, 1.1};
    value as_value = reals(scalar.real, scalar.imag);
    int kind = i % 6 / 2; /* two tensors, a number second, a number first */
    operand a = some(dtype, 3, shape, false, i % 4 > 1, i % 3), b = some(dtype, 3, small, false, i % 3 > 1, 1);
    operand out = some(dtype, 3, shape, false, i % 5 > 2, 0);
    operand_fill(&a, 2), operand_fill(&b, 2), operand_upload(&out);
    if (kind == 0) {
      assert_ok(rdna_op_complex_zip(stream, op, &a.tensor, &b.tensor, p, &out.tensor));
    } else {
      assert_ok(rdna_op_complex_zip_scalar(stream, op, &a.tensor, scalar, kind == 2, p, &out.tensor));
    }
    operand_download(&out);
    for (int64_t k = 0; k < 7 * shape[1] * 31; k++) {
      int64_t to = place(&out, &out, k, false, false);
      value u = value_at(&a, place(&a, &out, k, false, false)), v = value_at(&b, place(&b, &out, k, false, false));
      if (kind == 1) v = as_value;
      if (kind == 2) v = u, u = as_value;
      value want = zip_by_definition(op, u, v, reals(p.real, p.imag));
      double power = 4 + 4 * (double)cabsl(v * clogl(u)), units = op == RDNA_COMPLEX_POW ? power : 8;
      if (op == RDNA_COMPLEX_POW && dtype == RDNA_F32) units = 1;
      double size = op < RDNA_COMPLEX_MUL || op == RDNA_COMPLEX_ADD_SCALED ? (double)(cabsl(u) + 2 * cabsl(v)) : 0;
      agree(dtype, operand_get(&out, to), operand_get(&out, to + 1), want, units, size, "zip");
    }
    operand_free(&a), operand_free(&b), operand_free(&out);
  }
}

static void magnitudes_and_angles(void **state) {
  for (int i = 0; i < 8; i++) {
    rdna_dtype dtype = i % 2 ? RDNA_F64 : RDNA_F32;
    int64_t shape[2] = {6, 41};
    operand x = some(dtype, 2, shape, false, i > 3, 1), size = some(dtype, 2, shape, true, i > 5, 0);
    operand angle = some(dtype, 2, shape, true, false, 2), back = some(dtype, 2, shape, false, i > 1, 0);
    operand_fill(&x, 2), operand_upload(&size), operand_upload(&angle), operand_upload(&back);
    assert_ok(rdna_op_complex_measure(stream, RDNA_COMPLEX_ABS, &x.tensor, &size.tensor));
    assert_ok(rdna_op_complex_measure(stream, RDNA_COMPLEX_ANGLE, &x.tensor, &angle.tensor));
    assert_ok(rdna_op_complex_polar(stream, &size.tensor, &angle.tensor, &back.tensor));
    operand_download(&size), operand_download(&angle), operand_download(&back);
    for (int64_t k = 0; k < 6 * 41; k++) {
      value v = value_at(&x, place(&x, &size, k, false, true));
      double abs = operand_get(&size, place(&size, &size, k, true, true));
      double turn = operand_get(&angle, place(&angle, &size, k, true, true));
      int64_t to = place(&back, &size, k, false, true);
      agree(dtype, abs, turn, reals(cabsl(v), cargl(v)), 2, 1, "abs and angle");
      value want = reals(abs * cosl((long double)turn), abs * sinl((long double)turn));
      agree(dtype, operand_get(&back, to), operand_get(&back, to + 1), want, 2, 0, "polar");
    }
    operand_free(&x), operand_free(&size), operand_free(&angle), operand_free(&back);
  }
}

/* Where formulas overflow, cancel or have no digits left though the result has. */
static void hard_values(void **state) {
  static const struct {
    rdna_complex_map op;
    double re, im;
  } hard[] = {{RDNA_COMPLEX_EXP, 709.9, 1.5},
              {RDNA_COMPLEX_EXP, -745, 1},
              {RDNA_COMPLEX_EXP, (double)-INFINITY, (double)INFINITY},
              {RDNA_COMPLEX_EXP, (double)INFINITY, 0},
              {RDNA_COMPLEX_SQRT, -4, -0.0},
              {RDNA_COMPLEX_SQRT, -4, 0.0},
              {RDNA_COMPLEX_SQRT, 1e308, -1e308},
              {RDNA_COMPLEX_SQRT, 3e-320, 5e-321},
              {RDNA_COMPLEX_SQRT, 0, 0},
              {RDNA_COMPLEX_LOG, 1 + 1e-9, 1e-6},
              {RDNA_COMPLEX_LOG, 0.6, 0.8},
              {RDNA_COMPLEX_LOG, 1e-310, 1e-310},
              {RDNA_COMPLEX_LOG, 1e308, 1.5e308},
              {RDNA_COMPLEX_LOG, -1, -0.0},
              {RDNA_COMPLEX_SGN, 1e-200, 2e-200},
              {RDNA_COMPLEX_SGN, 1e300, -2e300},
              {RDNA_COMPLEX_SGN, 0, 0},
              {RDNA_COMPLEX_TANH, 400, 1},
              {RDNA_COMPLEX_TANH, 25, 1},
              {RDNA_COMPLEX_SQRT, 3, (double)INFINITY},
              {RDNA_COMPLEX_TANH, 1e-10, 1.5707},
              {RDNA_COMPLEX_TAN, 1, -25},
              {RDNA_COMPLEX_SINH, 710, 1.5},
              {RDNA_COMPLEX_COSH, -710, 1.5},
              {RDNA_COMPLEX_SIN, 1e-9, 1e-9},
              {RDNA_COMPLEX_RECIPROCAL, 1e200, 1e-200},
              {RDNA_COMPLEX_COS, 3, 30}};
  enum { COUNT = sizeof hard / sizeof *hard };
  int64_t shape[2] = {1, 2};
  for (int i = 0; i < COUNT; i++) {
    operand x = operand_make(RDNA_F64, 2, shape, NULL, 0);
    operand_set(&x, 0, hard[i].re), operand_set(&x, 1, hard[i].im);
    operand_upload(&x);
    value want = map_by_definition(hard[i].op, reals(hard[i].re, hard[i].im));
    assert_ok(rdna_op_complex_map(stream, hard[i].op, &x.tensor, &x.tensor));
    operand_download(&x);
    char what[64];
    snprintf(what, sizeof what, "operation %d of (%g, %g)", (int)hard[i].op, hard[i].re, hard[i].im);
    bool near_one = hard[i].op == RDNA_COMPLEX_LOG && hard[i].re == 0.6; /* log |x| has no digits left */
    agree(RDNA_F64, operand_get(&x, 0), operand_get(&x, 1), want, 16, 0x1p-1022, what);
    agree(RDNA_F64, operand_get(&x, 0), 0, creall(want), 32, near_one ? 1 : 0x1p-1022, what);
    agree(RDNA_F64, operand_get(&x, 1), 0, cimagl(want), 32, 0x1p-1022, what);
    operand_free(&x);
  }
  operand x = operand_make(RDNA_F64, 2, shape, NULL, 0), size = operand_make(RDNA_F64, 1, shape, NULL, 0);
  operand_set(&x, 0, 3e200), operand_set(&x, 1, -4e200), operand_upload(&x), operand_upload(&size);
  assert_ok(rdna_op_complex_measure(stream, RDNA_COMPLEX_ABS, &x.tensor, &size.tensor));
  operand_download(&size);
  assert_close(RDNA_F64, operand_get(&size, 0), 5e200, 1e185, "abs", 0);
  operand_upload(&x);
  assert_ok(rdna_op_complex_zip(stream, RDNA_COMPLEX_DIV, &x.tensor, &x.tensor, (rdna_complex){0, 0}, &x.tensor));
  operand_download(&x);
  agree(RDNA_F64, operand_get(&x, 0), operand_get(&x, 1), 1, 4, 0, "quotient of itself");
  operand_free(&x), operand_free(&size);
}

/* Of zeros, infinities and NaN what C's functions have; where one part is NaN, or there is no angle, C leaves
 * signs open. */
static void special_values(void **state) {
  static const rdna_complex_map ops[] = {RDNA_COMPLEX_EXP,  RDNA_COMPLEX_SIN,  RDNA_COMPLEX_COS, RDNA_COMPLEX_TAN,
                                         RDNA_COMPLEX_SINH, RDNA_COMPLEX_COSH, RDNA_COMPLEX_TANH};
  const double parts[] = {0, -0.0, 1.5, -30, 1e300, (double)INFINITY, (double)-INFINITY, (double)NAN};
  enum { OPS = sizeof ops / sizeof *ops, PARTS = sizeof parts / sizeof *parts };
  int64_t shape[2] = {PARTS * PARTS, 2};
  operand x = operand_make(RDNA_F64, 2, shape, NULL, 0), out = operand_make(RDNA_F64, 2, shape, NULL, 0);
  for (int i = 0; i < PARTS * PARTS; i++)
    operand_set(&x, 2 * i, parts[i / PARTS]), operand_set(&x, 2 * i + 1, parts[i % PARTS]);
  operand_upload(&x);
  for (int k = 0; k < OPS; k++) {
    operand_upload(&out);
    assert_ok(rdna_op_complex_map(stream, ops[k], &x.tensor, &out.tensor));
    operand_download(&out);
    for (int i = 0; i < PARTS * PARTS; i++) {
      value want = map_by_definition(ops[k], reals(parts[i / PARTS], parts[i % PARTS]));
      double got[2] = {operand_get(&out, 2 * i), operand_get(&out, 2 * i + 1)};
      bool endless[2] = {isinf(parts[i / PARTS]), isinf(parts[i % PARTS])};
      bool open = isnan(creall(want)) || isnan(cimagl(want)) || (endless[0] && endless[1]);
      /* where tanh of infinity is 1 the array API's 0 has the sign of y, C's that of sin(2 y) */
      open |= (ops[k] == RDNA_COMPLEX_TANH && endless[0]) || (ops[k] == RDNA_COMPLEX_TAN && endless[1]);
      char what[80];
      snprintf(what, sizeof what, "operation %d of (%g, %g)", (int)ops[k], parts[i / PARTS], parts[i % PARTS]);
      if (open) {
        want = reals(fabsl(creall(want)), fabsl(cimagl(want)));
        got[0] = fabs(got[0]), got[1] = fabs(got[1]);
      }
      agree(RDNA_F64, got[0], got[1], want, 16, 0, what);
      bool turned = (creall(want) == 0 && !signbit(got[0]) != !signbit(creall(want))) ||
                    (cimagl(want) == 0 && !signbit(got[1]) != !signbit(cimagl(want)));
      if (!open && turned) fail_msg("%s: a zero has the other sign: (%g, %g)", what, got[0], got[1]);
    }
  }
  operand_free(&x), operand_free(&out);
}

typedef struct product {
  int64_t batch, m, n, k; /* batch 0: none */
  bool turned_a, turned_b, conjugate_a, conjugate_b, add, shared_a, shared_b;
  rdna_dtype dtype;
} product;

static operand matrix_of(rdna_dtype dtype, int64_t batch, int64_t rows, int64_t columns, bool turned, bool shared) {
  int64_t shape[4] = {batch, rows, columns, 2}, gap = 3;
  int64_t row = turned ? 2 : 2 * (columns + gap), column = turned ? 2 * (rows + gap) : 2;
  int64_t stride[4] = {shared ? 0 : 2 * (rows + gap) * (columns + gap), row, column, 1};
  return batch ? operand_make(dtype, 4, shape, stride, 2) : operand_make(dtype, 3, shape + 1, stride + 1, 2);
}
static value matrix_at(const operand *o, int64_t b, int64_t i, int64_t j) {
  const int64_t *stride = o->tensor.stride, batch = o->tensor.rank == 4;
  return value_at(o, (batch ? b * stride[0] : 0) + i * stride[batch] + j * stride[batch + 1]);
}

static void multiply(product p) {
  rdna_complex alpha = {p.add ? 0.5 : 1, p.add ? -1.5 : 0};
  operand a = matrix_of(p.dtype, p.batch, p.m, p.k, p.turned_a, p.shared_a);
  operand b = matrix_of(p.dtype, p.batch, p.k, p.n, p.turned_b, p.shared_b);
  operand c = matrix_of(p.dtype, p.batch, p.m, p.n, false, false), before = c;
  if (p.k) operand_fill(&a, 1), operand_fill(&b, 1);
  if (p.add) operand_fill(&c, 1);
  operand_upload(&c);
  before.block = malloc(c.front + c.bytes), before.host = before.block + c.front;
  memcpy(before.block, c.block, c.front + c.bytes);
  assert_ok(rdna_op_complex_gemm(stream, alpha, &a.tensor, p.conjugate_a, &b.tensor, p.conjugate_b, p.add, &c.tensor));
  operand_download(&c);
  for (int64_t at = 0; at < (p.batch ? p.batch : 1) * p.m * p.n; at++) {
    int64_t j = at % p.n, i = at / p.n % p.m, batch = at / p.n / p.m;
    value sum = 0;
    for (int64_t k = 0; k < p.k; k++) {
      value u = matrix_at(&a, batch, i, k), v = matrix_at(&b, batch, k, j);
      sum += (p.conjugate_a ? conjl(u) : u) * (p.conjugate_b ? conjl(v) : v);
    }
    sum *= reals(alpha.real, alpha.imag);
    if (p.add) sum += matrix_at(&before, batch, i, j);
    value got = matrix_at(&c, batch, i, j);
    agree(p.dtype, (double)creall(got), (double)cimagl(got), sum, 4 + sqrt((double)p.k), 4 * sqrt((double)p.k),
          "product");
  }
  free(before.block);
  operand_free(&a), operand_free(&b), operand_free(&c);
}

static void products(void **state) {
  for (int i = 0; i < 64; i++) {
    product p = {.m = 1 + i * 5 % 23, .n = 1 + i * 7 % 29, .k = i * 11 % 37, .batch = i % 3 ? 0 : 1 + i % 4};
    p.turned_a = i & 1, p.turned_b = i >> 1 & 1, p.conjugate_a = i >> 2 & 1, p.conjugate_b = i >> 3 & 1;
    p.add = i >> 4 & 1, p.dtype = i >> 5 & 1 ? RDNA_F64 : RDNA_F32;
    p.shared_a = p.batch && i % 7 == 2, p.shared_b = p.batch && i % 5 == 1;
    multiply(p);
  }
  multiply((product){.m = 70, .n = 66, .k = 130, .dtype = RDNA_F32, .turned_b = true, .conjugate_b = true});
}

/* What is not there leaves what is as it is. */
static void edges(void **state) {
  int64_t none[3] = {0, 4, 2}, shape[3] = {3, 4, 2}, odd[2] = {3, 1};
  operand x = operand_make(RDNA_F32, 3, none, NULL, 0), y = operand_make(RDNA_F32, 3, shape, NULL, 1);
  assert_ok(rdna_op_complex_map(stream, RDNA_COMPLEX_EXP, &x.tensor, &x.tensor));
  assert_refused(rdna_op_complex_map(stream, RDNA_COMPLEX_EXP, &y.tensor, &y.tensor), RDNA_UNSUPPORTED,
                 "not at multiples of their bytes");
  y.tensor.rank = 2;
  assert_refused(rdna_op_complex_map(stream, RDNA_COMPLEX_EXP, &y.tensor, &y.tensor), RDNA_INVALID_ARGUMENT,
                 "a last dimension of 2");
  operand_free(&x), operand_free(&y);
  y = operand_make(RDNA_F32, 2, (int64_t[]){5, 2}, odd, 0);
  assert_refused(rdna_op_complex_map(stream, RDNA_COMPLEX_EXP, &y.tensor, &y.tensor), RDNA_UNSUPPORTED, "contiguous");
  operand_free(&y);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(maps),        cmocka_unit_test(zips),           cmocka_unit_test(magnitudes_and_angles),
      cmocka_unit_test(hard_values), cmocka_unit_test(special_values), cmocka_unit_test(products),
      cmocka_unit_test(edges)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
