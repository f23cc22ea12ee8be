#include "rdna/op/pointwise.h"
#include "math/common/test/strided.h"

static const rdna_dtype real_types[] = {RDNA_F32, RDNA_F16, RDNA_BF16, RDNA_F64};
static const rdna_dtype integer_types[] = {RDNA_I8, RDNA_U8, RDNA_I16, RDNA_I32, RDNA_I64, RDNA_BOOL};
static const double P = 0.75, Q = 1.5;

/* What rdna/op/pointwise.def offers each operation for. */
enum { OFFERED_R = 1, OFFERED_I = 2, OFFERED_RI = 3 };
#define OFFERED(NAME, name, types, ...) OFFERED_##types,
static const uint8_t offered_maps[] = {RDNA_POINTWISE_MAPS(OFFERED, OFFERED, , )};
static const uint8_t offered_zips[] = {RDNA_POINTWISE_ZIPS(OFFERED, OFFERED, )};

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double softplus(double x) { return x > 30 ? x + exp(-x) : log1p(exp(x)); }
static double limited(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

static double map_double(rdna_map op, double x) {
  switch (op) {
    case RDNA_MAP_ABS:
      return fabs(x);
    case RDNA_MAP_NEG:
      return -x;
    case RDNA_MAP_SIGN:
      return isnan(x) ? x : (x > 0) - (x < 0);
    case RDNA_MAP_SQUARE:
      return x * x;
    case RDNA_MAP_AFFINE:
      return x * P + Q;
    case RDNA_MAP_CLAMP:
      return limited(x, P, Q);
    case RDNA_MAP_CEIL:
      return ceil(x);
    case RDNA_MAP_FLOOR:
      return floor(x);
    case RDNA_MAP_ROUND:
      return nearbyint(x);
    case RDNA_MAP_TRUNC:
      return trunc(x);
    case RDNA_MAP_SQRT:
      return sqrt(x);
    case RDNA_MAP_RSQRT:
      return 1 / sqrt(x);
    case RDNA_MAP_RECIPROCAL:
      return 1 / x;
    case RDNA_MAP_RELU:
      return isnan(x) || x > 0 ? x : 0;
    case RDNA_MAP_LEAKY_RELU:
      return x > 0 ? x : P * x;
    case RDNA_MAP_HARDSWISH:
      return x * limited(x + 3, 0, 6) / 6;
    case RDNA_MAP_HARDSIGMOID:
      return limited(x + 3, 0, 6) / 6;
    case RDNA_MAP_EXP:
      return exp(x);
    case RDNA_MAP_EXP2:
      return exp2(x);
    case RDNA_MAP_EXPM1:
      return expm1(x);
    case RDNA_MAP_LOG:
      return log(x);
    case RDNA_MAP_LOG2:
      return log2(x);
    case RDNA_MAP_LOG10:
      return log10(x);
    case RDNA_MAP_LOG1P:
      return log1p(x);
    case RDNA_MAP_SIN:
      return sin(x);
    case RDNA_MAP_COS:
      return cos(x);
    case RDNA_MAP_TAN:
      return tan(x);
    case RDNA_MAP_TANH:
      return tanh(x);
    case RDNA_MAP_ERF:
      return erf(x);
    case RDNA_MAP_SIGMOID:
      return sigmoid(x);
    case RDNA_MAP_SILU:
      return x * sigmoid(x);
    case RDNA_MAP_GELU_TANH:
      return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case RDNA_MAP_GELU_ERF:
      return 0.5 * x * erfc(-x / sqrt(2));
    case RDNA_MAP_ELU:
      return x > 0 ? Q * x : P * expm1(x);
    case RDNA_MAP_SOFTPLUS:
      return P * x > Q ? x : softplus(P * x) / P;
    case RDNA_MAP_MISH:
      return x * tanh(softplus(x));
    case RDNA_MAP_POW:
      return pow(x, P);
    case RDNA_MAP_FRAC:
      return isinf(x) ? (double)NAN : x - trunc(x);
    case RDNA_MAP_COUNT:
    case RDNA_MAP_BITWISE_NOT:
      break;
  }
  fail_msg("%s is not real", rdna_map_name(op));
  return 0;
}

static double zip_double(rdna_zip op, double a, double b) {
  double s = sigmoid(b), phi = exp(-b * b / 2) / sqrt(2 * M_PI), c = sqrt(2 / M_PI);
  double t = tanh(c * (b + 0.044715 * b * b * b));
  switch (op) {
    case RDNA_ZIP_ADD:
      return a + b;
    case RDNA_ZIP_SUB:
      return a - b;
    case RDNA_ZIP_MUL:
      return a * b;
    case RDNA_ZIP_DIV:
      return a / b;
    case RDNA_ZIP_ADD_SCALED:
      return a + P * b;
    case RDNA_ZIP_MAXIMUM:
      return isnan(a) || isnan(b) ? (double)NAN : fmax(a, b);
    case RDNA_ZIP_MINIMUM:
      return isnan(a) || isnan(b) ? (double)NAN : fmin(a, b);
    case RDNA_ZIP_SQUARED_DIFF:
      return (a - b) * (a - b);
    case RDNA_ZIP_FLOOR_DIV:
      return floor(a / b);
    case RDNA_ZIP_FMOD:
      return fmod(a, b);
    case RDNA_ZIP_REMAINDER:
      return fmod(a, b) != 0 && (fmod(a, b) < 0) != (b < 0) ? fmod(a, b) + b : fmod(a, b);
    case RDNA_ZIP_POW:
      return pow(a, b);
    case RDNA_ZIP_LERP:
      return a + P * (b - a);
    case RDNA_ZIP_RELU_GRAD:
      return b > 0 ? a : 0;
    case RDNA_ZIP_LEAKY_RELU_GRAD:
      return b > 0 ? a : P * a;
    case RDNA_ZIP_CLAMP_GRAD:
      return b >= P && b <= Q ? a : 0;
    case RDNA_ZIP_HARDSWISH_GRAD:
      return b <= -3 ? 0 : b >= 3 ? a : a * (2 * b + 3) / 6;
    case RDNA_ZIP_HARDSIGMOID_GRAD:
      return fabs(b) < 3 ? a / 6 : 0;
    case RDNA_ZIP_SIGMOID_GRAD:
      return a * b * (1 - b);
    case RDNA_ZIP_TANH_GRAD:
      return a * (1 - b * b);
    case RDNA_ZIP_SQRT_GRAD:
      return a / (2 * b);
    case RDNA_ZIP_RSQRT_GRAD:
      return -0.5 * a * b * b * b;
    case RDNA_ZIP_RECIPROCAL_GRAD:
      return -a * b * b;
    case RDNA_ZIP_ATAN2:
      return atan2(a, b);
    case RDNA_ZIP_SILU_GRAD:
      return a * (s + b * s * (1 - s));
    case RDNA_ZIP_GELU_TANH_GRAD:
      return a * (0.5 * (1 + t) + 0.5 * b * (1 - t * t) * c * (1 + 3 * 0.044715 * b * b));
    case RDNA_ZIP_GELU_ERF_GRAD:
      return a * (0.5 * erfc(-b / sqrt(2)) + b * phi);
    case RDNA_ZIP_ELU_GRAD:
      return b > 0 ? Q * a : P * a * exp(b);
    case RDNA_ZIP_SOFTPLUS_GRAD:
      return P * b > Q ? a : a * sigmoid(P * b);
    case RDNA_ZIP_SWIGLU_CLAMPED:
      b = isnan(b) ? b : b < -Q ? -Q : b > Q ? Q : b;
      a = a > Q ? Q : a;
      return a / (1 + exp(-P * a)) * (b + 1);
    case RDNA_ZIP_HEAVISIDE:
      return a == 0 ? b : a > 0;
    case RDNA_ZIP_BITWISE_AND:
    case RDNA_ZIP_BITWISE_OR:
    case RDNA_ZIP_BITWISE_XOR:
    case RDNA_ZIP_SHIFT_LEFT:
    case RDNA_ZIP_SHIFT_RIGHT:
    case RDNA_ZIP_GCD:
    case RDNA_ZIP_LCM:
    case RDNA_ZIP_NEXTAFTER: /* of each type another: nextafter_test.c */
    case RDNA_ZIP_COUNT:
      break;
  }
  fail_msg("%s is not real", rdna_zip_name(op));
  return 0;
}

/* The error allowed beside the rounding of the result: sixteen roundings of it, or of |cancels|, the size of terms that
 * cancel. */
static double slack(rdna_dtype dtype, double want, double cancels) {
  double unit = dtype == RDNA_F64 ? 0x1p-53 : 0x1p-24;
  return 16 * unit * fmax(fabs(want), cancels) + (dtype == RDNA_F64 ? 0x1p-1074 : 0x1p-146);
}

static void assert_real(const operand *out, int64_t at, double want, double cancels, const char *what) {
  rdna_dtype dtype = out->tensor.dtype;
  double got = real_get(out, at), error = slack(dtype, want, cancels);
  if (dtype != RDNA_F64) return assert_close(dtype, got, want, error, what, at);
  if (isnan(want) ? !isnan(got) : isinf(want) ? got != want : !(fabs(got - want) <= error)) {
    fail_msg("%s f64 [%lld]: got %.17g want %.17g", what, (long long)at, got, want);
  }
}

/* Replaces some values by infinities, NaN, zeros and large numbers. */
static void spice(operand *o) {
  static const double hard[] = {(double)INFINITY, -(double)INFINITY, (double)NAN, 0, -0.0, 1, -1, 3, -3, 1e4, -1e4};
  for (int64_t i = 0; i < operand_span(o); i += rdna__random_range(&random_state, 1, 60)) {
    any_set(o, i, hard[rdna__random_below(&random_state, sizeof hard / sizeof *hard)]);
  }
  operand_upload(o);
}

static void check_map(rdna_dtype dtype, rdna_map op, int n) {
  int64_t shape[RDNA_MAX_RANK];
  int rank = random_shape(shape);
  operand x = strided_make(dtype, rank, shape, n % 2), out = strided_make(dtype, rank, shape, false);
  if (n == 3) { /* contiguous and aligned: takes the contiguous kernels */
    operand_free(&x);
    operand_free(&out);
    x = operand_make(dtype, rank, shape, NULL, 0), out = operand_make(dtype, rank, shape, NULL, 0);
  }
  any_fill(&x, n == 2 ? 20 : 2);
  if (n != 2) spice(&x);
  operand_upload(&out);
  assert_ok(rdna_op_map(stream, op, &x.tensor, rdna_scalar_real(P), rdna_scalar_real(Q), &out.tensor));
  operand_download(&out);
  for (int64_t i = 0; i < rdna_tensor_count(&out.tensor); i++) {
    double v = real_get(&x, place_of(&x.tensor, &out.tensor, i)), want = map_double(op, v);
    bool cancels = op == RDNA_MAP_GELU_TANH || op == RDNA_MAP_GELU_ERF || op == RDNA_MAP_MISH;
    if (isinf(v) && v < 0 && (cancels || op == RDNA_MAP_SILU || op == RDNA_MAP_HARDSWISH)) continue; /* 0 inf */
    if (fabs(v) > 5e3 && op == RDNA_MAP_TAN) continue;
    double scale = cancels ? fabs(v) : op == RDNA_MAP_AFFINE ? 2 : 0;
    if (op == RDNA_MAP_SOFTPLUS && isfinite(v)) scale = want * (1 + fabs(v)); /* p x is rounded before exp */
    assert_real(&out, place_of(&out.tensor, &out.tensor, i), want, scale, rdna_map_name(op));
  }
  assert_gaps_whole(&out);
  operand_free(&x);
  operand_free(&out);
}

static void map_matches_double(void **state) {
  for (int t = 0; t < 4; t++) {
    for (int op = 0; op < RDNA_MAP_COUNT; op++) {
      if (!(offered_maps[op] & OFFERED_R)) continue;
      for (int n = 0; n < 4; n++) check_map(real_types[t], (rdna_map)op, n);
    }
  }
}

/* Cubes are a case of their own in pow. */
static void cubes_match_double(void **state) {
  const int64_t shape[] = {999};
  for (int t = 0; t < 4; t++) {
    operand x = operand_make(real_types[t], 1, shape, NULL, t % 2),
            out = operand_make(real_types[t], 1, shape, NULL, 0);
    any_fill(&x, 3);
    spice(&x);
    operand_upload(&out);
    assert_ok(rdna_op_map(stream, RDNA_MAP_POW, &x.tensor, rdna_scalar_real(3), rdna_scalar_real(0), &out.tensor));
    operand_download(&out);
    for (int64_t i = 0; i < shape[0]; i++) assert_real(&out, i, pow(real_get(&x, i), 3), 0, "cube");
    operand_free(&x);
    operand_free(&out);
  }
}

static void check_zip(rdna_dtype dtype, rdna_zip op, int n) {
  int64_t shape[RDNA_MAX_RANK];
  int rank = random_shape(shape);
  operand a = strided_make(dtype, rank, shape, n % 2), b = strided_make(dtype, rank, shape, n > 1);
  operand out = strided_make(dtype, rank, shape, false);
  const double number = 1.25;
  any_fill(&a, 2);
  any_fill(&b, 2);
  operand_upload(&out);
  rdna_scalar p = rdna_scalar_real(P), q = rdna_scalar_real(Q), s = rdna_scalar_real(number);
  if (n < 4) assert_ok(rdna_op_zip(stream, op, &a.tensor, &b.tensor, p, q, &out.tensor));
  if (n == 4) assert_ok(rdna_op_zip_scalar(stream, op, &a.tensor, s, false, p, q, &out.tensor));
  if (n == 5) assert_ok(rdna_op_zip_scalar(stream, op, &b.tensor, s, true, p, q, &out.tensor));
  operand_download(&out);
  for (int64_t i = 0; i < rdna_tensor_count(&out.tensor); i++) {
    double left = n == 5 ? number : real_get(&a, place_of(&a.tensor, &out.tensor, i));
    double right = n == 4 ? number : real_get(&b, place_of(&b.tensor, &out.tensor, i));
    double want = zip_double(op, left, right), cancels = 0;
    if (op == RDNA_ZIP_ADD_SCALED || op == RDNA_ZIP_LERP) cancels = fabs(left) + fabs(right);
    if (op == RDNA_ZIP_REMAINDER) cancels = fabs(right);
    if (strstr(rdna_zip_name(op), "_grad")) cancels = fabs(left) * (1 + fabs(right));
    assert_real(&out, place_of(&out.tensor, &out.tensor, i), want, cancels, rdna_zip_name(op));
  }
  assert_gaps_whole(&out);
  operand_free(&a);
  operand_free(&b);
  operand_free(&out);
}

static void zip_matches_double(void **state) {
  for (int t = 0; t < 4; t++) {
    for (int op = 0; op < RDNA_ZIP_COUNT; op++) {
      if (!(offered_zips[op] & OFFERED_R) || op == RDNA_ZIP_NEXTAFTER) continue;
      for (int n = 0; n < 6; n++) check_zip(real_types[t], (rdna_zip)op, n);
    }
  }
}

static void check_special_values(rdna_dtype dtype) {
  const double inf = (double)INFINITY;
  const double in[] = {0,           -0.0, 1,     -1,       0.5,        -0.5,           2,          -3,
                       3,           1e30, -1e30, 0x1p-140, -0x1p-149,  0x1.fffffep127, inf,        -inf,
                       (double)NAN, 7,    -7,    0x1p24,   0x1.8p1000, -0x1p-1074,     0x1.3p-1060};
  static const rdna_zip ops[] = {RDNA_ZIP_POW,       RDNA_ZIP_ATAN2,   RDNA_ZIP_FMOD,
                                 RDNA_ZIP_REMAINDER, RDNA_ZIP_MAXIMUM, RDNA_ZIP_MINIMUM};
  enum { N = sizeof in / sizeof *in };
  const int64_t column[] = {N, 1}, row[] = {N}, shape[] = {N, N};
  operand a = operand_make(dtype, 2, column, NULL, 0), b = operand_make(dtype, 1, row, NULL, 0);
  for (int i = 0; i < N; i++) any_set(&a, i, in[i]), any_set(&b, i, in[i]);
  operand_upload(&a);
  operand_upload(&b);
  for (int k = 0; k < 6; k++) {
    operand out = operand_make(dtype, 2, shape, NULL, 0);
    operand_upload(&out);
    assert_ok(rdna_op_zip(stream, ops[k], &a.tensor, &b.tensor, rdna_scalar_real(0), rdna_scalar_real(0), &out.tensor));
    operand_download(&out);
    for (int64_t i = 0; i < N * N; i++) {
      double want = zip_double(ops[k], real_get(&a, i / N), real_get(&b, i % N));
      assert_real(&out, i, want, 0, rdna_zip_name(ops[k]));
      if (ops[k] == RDNA_ZIP_ATAN2 && want == 0) assert_int_equal(!signbit(real_get(&out, i)), !signbit(want));
    }
    operand_free(&out);
  }
  operand_free(&a);
  operand_free(&b);
}

static void special_values_of_two_arguments(void **state) {
  check_special_values(RDNA_F32);
  check_special_values(RDNA_F64);
}

static int64_t power(int64_t a, int64_t b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  int64_t v = 1;
  for (int64_t i = 0; i < b % 64; i++) v = (int64_t)((uint64_t)v * (uint64_t)a);
  return v;
}

/* By halving and subtracting. */
static uint64_t binary_gcd(int64_t a, int64_t b) {
  uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
  int twos = 0;
  if (x == 0 || y == 0) return x | y;
  for (; ((x | y) & 1) == 0; twos++) x /= 2, y /= 2;
  while (x != y) {
    if (x % 2 == 0) {
      x /= 2;
    } else if (y % 2 == 0) {
      y /= 2;
    } else if (x > y) {
      x -= y;
    } else {
      y -= x;
    }
  }
  return x << twos;
}

static int64_t zip_integer(rdna_zip op, int64_t a, int64_t b, int64_t p) {
  __int128 wide_a = a, wide_b = b, wide_p = p;
  int64_t rest = b == 0 ? a : (int64_t)(wide_a % wide_b), quotient = b == 0 ? 0 : (int64_t)(wide_a / wide_b);
  bool lower = b != 0 && rest != 0 && (rest < 0) != (b < 0);
  switch (op) {
    case RDNA_ZIP_ADD:
      return (int64_t)(wide_a + wide_b);
    case RDNA_ZIP_SUB:
      return (int64_t)(wide_a - wide_b);
    case RDNA_ZIP_MUL:
      return (int64_t)((unsigned __int128)wide_a * (unsigned __int128)wide_b);
    case RDNA_ZIP_DIV:
      return quotient;
    case RDNA_ZIP_ADD_SCALED:
      return (int64_t)(wide_a + wide_p * wide_b);
    case RDNA_ZIP_MAXIMUM:
      return a > b ? a : b;
    case RDNA_ZIP_MINIMUM:
      return a < b ? a : b;
    case RDNA_ZIP_SQUARED_DIFF:
      return (int64_t)((unsigned __int128)(wide_a - wide_b) * (unsigned __int128)(wide_a - wide_b));
    case RDNA_ZIP_FLOOR_DIV:
      return quotient - lower;
    case RDNA_ZIP_FMOD:
      return rest;
    case RDNA_ZIP_REMAINDER:
      return lower ? rest + b : rest;
    case RDNA_ZIP_POW:
      return power(a, b);
    case RDNA_ZIP_BITWISE_AND:
      return a & b;
    case RDNA_ZIP_BITWISE_OR:
      return a | b;
    case RDNA_ZIP_BITWISE_XOR:
      return a ^ b;
    case RDNA_ZIP_SHIFT_LEFT:
      return b < 0 || b > 63 ? 0 : (int64_t)((unsigned __int128)wide_a << b);
    case RDNA_ZIP_SHIFT_RIGHT:
      return b < 0 || b > 63 ? (a < 0 ? -1 : 0) : (int64_t)(wide_a >> b);
    case RDNA_ZIP_GCD:
      return (int64_t)binary_gcd(a, b);
    case RDNA_ZIP_LCM:
      return a == 0 || b == 0
                 ? 0
                 : (int64_t)((a < 0 ? -wide_a : wide_a) * (b < 0 ? -wide_b : wide_b) / (__int128)binary_gcd(a, b));
    case RDNA_ZIP_HEAVISIDE:
      return a < 0 ? 0 : a > 0 ? 1 : b;
    default:
      fail_msg("%s has no definition for integers in this test", rdna_zip_name(op));
      return 0;
  }
}

static int64_t map_integer(rdna_map op, int64_t x) {
  switch (op) {
    case RDNA_MAP_ABS:
      return x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
    case RDNA_MAP_NEG:
      return (int64_t)(0 - (uint64_t)x);
    case RDNA_MAP_SIGN:
      return x > 0 ? 1 : x < 0 ? -1 : 0;
    case RDNA_MAP_SQUARE:
      return (int64_t)((uint64_t)x * (uint64_t)x);
    case RDNA_MAP_AFFINE:
      return (int64_t)((uint64_t)x * 3 + 5);
    case RDNA_MAP_CLAMP:
      return x < 3 ? 3 : x > 5 ? 5 : x;
    case RDNA_MAP_BITWISE_NOT:
      return ~x;
    case RDNA_MAP_RELU:
      return x < 0 ? 0 : x;
    default:
      fail_msg("%s has no definition for integers in this test", rdna_map_name(op));
      return 0;
  }
}

static void integer_fill(operand *o) {
  for (int64_t i = 0; i < operand_span(o); i++) {
    int64_t v = (int64_t)rdna__random_bits(&random_state) >> rdna__random_below(&random_state, 64);
    if (i % 2) v = rdna__random_range(&random_state, -4, 9);
    if (i % 97 == 5) v = INT64_MIN;
    v = wrapped(o->tensor.dtype, v);
    memcpy(o->host + (size_t)i * rdna_dtype_block_bytes(o->tensor.dtype), &v, rdna_dtype_block_bytes(o->tensor.dtype));
  }
  operand_upload(o);
}

static void check_integer(rdna_dtype dtype, int op, bool one) {
  int64_t shape[RDNA_MAX_RANK];
  int rank = random_shape(shape);
  operand a = strided_make(dtype, rank, shape, true), b = strided_make(dtype, rank, shape, true);
  operand out = strided_make(dtype, rank, shape, false);
  rdna_scalar p = rdna_scalar_integer(3), q = rdna_scalar_integer(5);
  integer_fill(&a);
  integer_fill(&b);
  operand_upload(&out);
  if (one) {
    assert_ok(rdna_op_map(stream, (rdna_map)op, &a.tensor, p, q, &out.tensor));
  } else {
    assert_ok(rdna_op_zip(stream, (rdna_zip)op, &a.tensor, &b.tensor, p, q, &out.tensor));
  }
  operand_download(&out);
  for (int64_t i = 0; i < rdna_tensor_count(&out.tensor); i++) {
    int64_t x = integer_get(&a, place_of(&a.tensor, &out.tensor, i));
    int64_t y = integer_get(&b, place_of(&b.tensor, &out.tensor, i));
    if (!one && op == RDNA_ZIP_POW && y > 63) continue; /* the test's own power is too slow then */
    int64_t want = wrapped(dtype, one ? map_integer((rdna_map)op, x) : zip_integer((rdna_zip)op, x, y, 3));
    if (one && op == RDNA_MAP_BITWISE_NOT && dtype == RDNA_BOOL) want = !x;
    int64_t got = integer_get(&out, place_of(&out.tensor, &out.tensor, i));
    if (got != want) {
      fail_msg("%s %s of %lld and %lld: got %lld want %lld",
               one ? rdna_map_name((rdna_map)op) : rdna_zip_name((rdna_zip)op), rdna_dtype_name(dtype), (long long)x,
               (long long)y, (long long)got, (long long)want);
    }
  }
  assert_gaps_whole(&out);
  operand_free(&a);
  operand_free(&b);
  operand_free(&out);
}

static void integers_match_their_definitions(void **state) {
  for (int t = 0; t < 6; t++) {
    for (int op = 0; op < RDNA_MAP_COUNT; op++) {
      for (int n = 0; n < 3 && offered_maps[op] & OFFERED_I; n++) check_integer(integer_types[t], op, true);
    }
    for (int op = 0; op < RDNA_ZIP_COUNT; op++) {
      for (int n = 0; n < 3 && offered_zips[op] & OFFERED_I; n++) check_integer(integer_types[t], op, false);
    }
  }
}

static double zip3_double(rdna_zip3 op, double a, double b, double c) {
  switch (op) {
    case RDNA_ZIP3_FMA:
      return a * b + c;
    case RDNA_ZIP3_ADDCMUL:
      return a + P * b * c;
    case RDNA_ZIP3_CLAMP:
      return fmin(fmax(a, b), c);
    case RDNA_ZIP3_ADDCDIV:
      return a + P * b / c;
    case RDNA_ZIP3_LERP:
      return a + c * (b - a);
    case RDNA_ZIP3_COUNT:
      break;
  }
  fail_msg("%s is no operation", rdna_zip3_name(op));
  return 0;
}

/* Of weight 1 it is b to the bit, however far a is, and infinite ends stay what they are. */
static void lerp_reaches_its_end(void **state) {
  const double ends[][4] = {/* a, b, weight, result */
                            {1e4, 1, 1, 1},
                            {-3e4, 0.125, 1, 0.125},
                            {1, 1e4, 0, 1},
                            {-INFINITY, 0, 0.75, -INFINITY},
                            {2, INFINITY, 0.25, INFINITY},
                            {8, 4, 0.5, 6},
                            {8, 4, -0.5, 10},
                            {8, 4, 2, 0},
                            {4, 8, -1, 0}};
  enum { COUNT = sizeof ends / sizeof ends[0] };
  for (int t = 0; t < 4; t++) {
    for (int i = 0; i < COUNT; i++) {
      const int64_t shape[] = {3};
      operand in[3], out[2];
      for (int k = 0; k < 3; k++) {
        in[k] = operand_make(real_types[t], 1, shape, NULL, 0);
        for (int64_t n = 0; n < 3; n++) any_set(&in[k], n, ends[i][k]);
        operand_upload(&in[k]);
      }
      for (int k = 0; k < 2; k++) {
        out[k] = operand_make(real_types[t], 1, shape, NULL, 0);
        operand_upload(&out[k]);
      }
      assert_ok(rdna_op_zip(stream, RDNA_ZIP_LERP, &in[0].tensor, &in[1].tensor, rdna_scalar_real(ends[i][2]),
                            rdna_scalar_real(0), &out[0].tensor));
      assert_ok(rdna_op_zip3(stream, RDNA_ZIP3_LERP, &in[0].tensor, &in[1].tensor, &in[2].tensor, rdna_scalar_real(0),
                             &out[1].tensor));
      for (int k = 0; k < 2; k++) {
        operand_download(&out[k]);
        for (int64_t n = 0; n < 3; n++) {
          if (real_get(&out[k], n) != ends[i][3])
            fail_msg("lerp(%g, %g, %g) is %.9g in %s", ends[i][0], ends[i][1], ends[i][2], real_get(&out[k], n),
                     rdna_dtype_name(real_types[t]));
        }
      }
      for (int k = 0; k < 3; k++) operand_free(&in[k]);
      for (int k = 0; k < 2; k++) operand_free(&out[k]);
    }
  }
}

static void zip3_matches_double(void **state) {
  for (int t = 0; t < 4; t++) {
    for (int k = 0; k < 4 * RDNA_ZIP3_COUNT; k++) {
      rdna_zip3 op = (rdna_zip3)(k / 4);
      int64_t shape[RDNA_MAX_RANK];
      int rank = random_shape(shape);
      operand in[3], out = strided_make(real_types[t], rank, shape, false);
      for (int j = 0; j < 3; j++) {
        in[j] = strided_make(real_types[t], rank, shape, k % 2);
        any_fill(&in[j], 2);
      }
      operand_upload(&out);
      assert_ok(
          rdna_op_zip3(stream, op, &in[0].tensor, &in[1].tensor, &in[2].tensor, rdna_scalar_real(P), &out.tensor));
      operand_download(&out);
      for (int64_t i = 0; i < rdna_tensor_count(&out.tensor); i++) {
        double v[3];
        for (int j = 0; j < 3; j++) v[j] = real_get(&in[j], place_of(&in[j].tensor, &out.tensor, i));
        double cancels = fabs(v[0]) + fabs(v[1] * v[2]) + (op == RDNA_ZIP3_ADDCDIV ? fabs(v[1] / v[2]) : 0);
        if (op == RDNA_ZIP3_LERP) cancels += fabs(v[0] * v[2]);
        if (op == RDNA_ZIP3_CLAMP) cancels = 0;
        assert_real(&out, place_of(&out.tensor, &out.tensor, i), zip3_double(op, v[0], v[1], v[2]), cancels,
                    rdna_zip3_name(op));
      }
      assert_gaps_whole(&out);
      for (int j = 0; j < 3; j++) operand_free(&in[j]);
      operand_free(&out);
    }
  }
}

static bool compare_double(rdna_compare op, double a, double b) {
  switch (op) {
    case RDNA_COMPARE_EQ:
      return a == b;
    case RDNA_COMPARE_NE:
      return !(a == b);
    case RDNA_COMPARE_LT:
      return a < b;
    case RDNA_COMPARE_LE:
      return a <= b;
    case RDNA_COMPARE_GT:
      return a > b;
    case RDNA_COMPARE_GE:
      return a >= b;
    case RDNA_COMPARE_LOGICAL_AND:
      return a != 0 && b != 0;
    case RDNA_COMPARE_LOGICAL_OR:
      return a != 0 || b != 0;
    case RDNA_COMPARE_LOGICAL_XOR:
      return (a != 0) ^ (b != 0);
    case RDNA_COMPARE_LOGICAL_NOT:
      return !(a != 0);
    case RDNA_COMPARE_ISNAN:
      return isnan(a);
    case RDNA_COMPARE_ISINF:
      return isinf(a);
    case RDNA_COMPARE_ISFINITE:
      return isfinite(a);
    case RDNA_COMPARE_COUNT:
      break;
  }
  fail_msg("%s is no question", rdna_compare_name(op));
  return false;
}

#define INPUTS(NAME, name, inputs, expression) inputs,
static const int compare_inputs[] = {RDNA_POINTWISE_COMPARES(INPUTS)};

static void check_compare(rdna_dtype dtype, rdna_compare op, int n) {
  int64_t shape[RDNA_MAX_RANK];
  int rank = random_shape(shape);
  operand a = strided_make(dtype, rank, shape, true), b = strided_make(dtype, rank, shape, n == 1);
  operand out = strided_make(RDNA_BOOL, rank, shape, false);
  operand *both[] = {&a, &b};
  for (int k = 0; k < 2; k++) {
    for (int64_t i = 0; i < operand_span(both[k]); i++) {
      any_set(both[k], i, (double)rdna__random_range(&random_state, 0, 2));
    }
    operand_upload(both[k]);
    if (dtype <= RDNA_F64) spice(both[k]);
  }
  operand_upload(&out);
  if (n == 2) {
    assert_ok(rdna_op_compare_scalar(stream, op, &a.tensor, rdna_scalar_integer(1), &out.tensor));
  } else {
    assert_ok(rdna_op_compare(stream, op, &a.tensor, compare_inputs[op] == 1 ? NULL : &b.tensor, &out.tensor));
  }
  operand_download(&out);
  for (int64_t i = 0; i < rdna_tensor_count(&out.tensor); i++) {
    double x = real_get(&a, place_of(&a.tensor, &out.tensor, i));
    double y = n == 2 ? 1 : real_get(&b, place_of(&b.tensor, &out.tensor, i));
    assert_int_equal(integer_get(&out, place_of(&out.tensor, &out.tensor, i)), compare_double(op, x, y));
  }
  assert_gaps_whole(&out);
  operand_free(&a);
  operand_free(&b);
  operand_free(&out);
}

static void comparisons_match_their_definitions(void **state) {
  for (int dtype = RDNA_F32; dtype <= RDNA_BOOL; dtype++) {
    for (int op = 0; op < RDNA_COMPARE_COUNT; op++) {
      for (int n = 0; n < 3; n++) check_compare((rdna_dtype)dtype, (rdna_compare)op, n);
    }
  }
}

static void where_chooses(void **state) {
  for (int dtype = RDNA_F32; dtype <= RDNA_BOOL; dtype++) {
    for (int n = 0; n < 6; n++) {
      int64_t shape[RDNA_MAX_RANK];
      int rank = random_shape(shape);
      operand condition = strided_make(RDNA_BOOL, rank, shape, n % 2),
              a = strided_make((rdna_dtype)dtype, rank, shape, n > 2);
      operand b = strided_make((rdna_dtype)dtype, rank, shape, n == 2),
              out = strided_make((rdna_dtype)dtype, rank, shape, false);
      any_fill(&condition, 1);
      any_fill(&a, 9);
      any_fill(&b, 9);
      operand_upload(&out);
      if (n < 5) assert_ok(rdna_op_where(stream, &condition.tensor, &a.tensor, &b.tensor, &out.tensor));
      if (n == 5) {
        assert_ok(rdna_op_masked_fill(stream, &condition.tensor, rdna_scalar_integer(1), &b.tensor, &out.tensor));
      }
      operand_download(&out);
      for (int64_t i = 0; i < rdna_tensor_count(&out.tensor); i++) {
        bool yes = integer_get(&condition, place_of(&condition.tensor, &out.tensor, i));
        double v = n == 5 ? 1 : real_get(&a, place_of(&a.tensor, &out.tensor, i));
        double want = yes ? v : real_get(&b, place_of(&b.tensor, &out.tensor, i));
        assert_true(real_get(&out, place_of(&out.tensor, &out.tensor, i)) == want);
      }
      assert_gaps_whole(&out);
      operand_free(&condition);
      operand_free(&a);
      operand_free(&b);
      operand_free(&out);
    }
  }
}

static void works_in_place_and_backwards(void **state) {
  const int64_t shape[] = {7, 33};
  operand x = operand_make(RDNA_F32, 2, shape, NULL, 0), y = operand_make(RDNA_F32, 2, shape, NULL, 0);
  any_fill(&x, 2);
  any_fill(&y, 2);
  double *want = malloc(7 * 33 * sizeof *want);
  for (int64_t i = 0; i < 7 * 33; i++) want[i] = operand_get(&x, 7 * 33 - 1 - i) * operand_get(&y, i);
  rdna_tensor flipped = x.tensor;
  flipped.data = (float *)x.tensor.data + 7 * 33 - 1;
  flipped.stride[0] = -33, flipped.stride[1] = -1;
  rdna_scalar none = rdna_scalar_integer(0);
  assert_ok(rdna_op_zip(stream, RDNA_ZIP_MUL, &flipped, &y.tensor, none, none, &y.tensor));
  operand_download(&y);
  for (int64_t i = 0; i < 7 * 33; i++) assert_real(&y, i, want[i], 0, "mul");
  free(want);
  operand_free(&x);
  operand_free(&y);
}

/* Quotients as large as the type's integers go, of integers, whose floor int64_t has. */
static void large_quotients_are_exact(void **state) {
  enum { N = 3000 };
  int64_t shape = N, want[N];
  for (int wide = 0; wide < 2; wide++) {
    int bits = wide ? 53 : 24;
    rdna_dtype dtype = wide ? RDNA_F64 : RDNA_F32;
    operand a = operand_make(dtype, 1, &shape, NULL, 0), b = operand_make(dtype, 1, &shape, NULL, 0);
    operand out = operand_make(dtype, 1, &shape, NULL, 0);
    for (int64_t i = 0; i < N; i++) {
      int shift = (int)rdna__random_below(&random_state, 8);
      int64_t x = ((int64_t)1 << (bits - 1)) + (int64_t)rdna__random_below(&random_state, (uint64_t)1 << (bits - 1));
      int64_t y = ((int64_t)1 << shift) + (int64_t)rdna__random_below(&random_state, (uint64_t)1 << shift);
      x = rdna__random_below(&random_state, 2) ? x << shift
                                               : -(x << shift); /* its quotient has |bits| bits or one less */
      want[i] = x / y - (x % y < 0);
      if (i % 3 == 0) want[i] = -x / y - (-x % y < 0), y = -y;
      operand_set(&a, i, (double)x);
      operand_set(&b, i, (double)y);
    }
    operand_upload(&a);
    operand_upload(&b);
    operand_upload(&out);
    rdna_scalar none = rdna_scalar_real(0);
    assert_ok(rdna_op_zip(stream, RDNA_ZIP_FLOOR_DIV, &a.tensor, &b.tensor, none, none, &out.tensor));
    operand_download(&out);
    for (int64_t i = 0; i < N; i++)
      if (operand_get(&out, i) != (double)want[i])
        fail_msg("%s: floor(%.0f / %.0f) is %.0f, not %lld", rdna_dtype_name(dtype), operand_get(&a, i),
                 operand_get(&b, i), operand_get(&out, i), (long long)want[i]);
    operand_free(&a);
    operand_free(&b);
    operand_free(&out);
  }
}

static void large_tensors_are_cut(void **state) {
  if (rdna_device_get_info(device)->emulated)
    skip_because(
        "the host cuts tensors of 2^27 values, and an emulated card would spend most of this suite's time on them");
  const int64_t count = (INT64_C(1) << 27) + 1001, shape[] = {count}, one[] = {1};
  operand x = operand_make(RDNA_U8, 1, one, NULL, 0), out = operand_make(RDNA_U8, 1, shape, NULL, 0);
  any_set(&x, 0, 7);
  operand_upload(&x);
  operand_upload(&out);
  assert_ok(rdna_op_zip_scalar(stream, RDNA_ZIP_ADD, &x.tensor, rdna_scalar_integer(4), false, rdna_scalar_integer(0),
                               rdna_scalar_integer(0), &out.tensor));
  operand_download(&out);
  for (int64_t i = 0; i < count; i++) {
    if (out.host[i] != 11) fail_msg("[%lld] is %d", (long long)i, out.host[i]);
  }
  operand_free(&x);
  operand_free(&out);
}

static void empty_tensors_are_no_work(void **state) {
  const int64_t shape[] = {3, 0}, one[] = {3, 1};
  rdna_tensor a = rdna_tensor_contiguous(NULL, RDNA_F32, 2, shape);
  rdna_tensor bits = rdna_tensor_contiguous(NULL, RDNA_BOOL, 2, shape);
  operand b = operand_make(RDNA_F32, 2, one, NULL, 0);
  rdna_scalar none = rdna_scalar_real(0);
  assert_ok(rdna_op_map(stream, RDNA_MAP_ABS, &a, none, none, &a));
  assert_ok(rdna_op_zip(stream, RDNA_ZIP_POW, &a, &b.tensor, none, none, &a));
  assert_ok(rdna_op_zip3(stream, RDNA_ZIP3_FMA, &a, &a, &b.tensor, none, &a));
  assert_ok(rdna_op_compare(stream, RDNA_COMPARE_EQ, &a, &b.tensor, &bits));
  assert_ok(rdna_op_where(stream, &bits, &a, &a, &a));
  operand_free(&b);
}

static void wrong_arguments_are_refused_and_write_nothing(void **state) {
  const rdna_status bad = RDNA_INVALID_ARGUMENT;
  const int64_t shape[] = {2, 3}, other[] = {3, 2};
  operand a = operand_make(RDNA_F32, 2, shape, NULL, 0), b = operand_make(RDNA_F32, 2, other, NULL, 0);
  operand i = operand_make(RDNA_I32, 2, shape, NULL, 0), d = operand_make(RDNA_F64, 2, shape, NULL, 0);
  operand out = operand_make(RDNA_F32, 2, shape, NULL, 0);
  rdna_scalar none = rdna_scalar_real(0);
  any_fill(&a, 1);
  operand_upload(&out);
  assert_refused(rdna_op_zip(stream, RDNA_ZIP_ADD, &a.tensor, &b.tensor, none, none, &out.tensor), bad,
                 "add: b is f32 (3, 2)", "out is f32 (2, 3)");
  assert_refused(rdna_op_zip(stream, RDNA_ZIP_POW, &a.tensor, &i.tensor, none, none, &out.tensor), bad, "b is i32",
                 "a is f32");
  assert_refused(rdna_op_map(stream, RDNA_MAP_ABS, &a.tensor, none, none, &i.tensor), bad, "out is i32", "x is f32");
  assert_refused(rdna_op_map(stream, RDNA_MAP_EXP, &i.tensor, none, none, &i.tensor), RDNA_UNSUPPORTED, "exp", "i32");
  assert_refused(rdna_op_map(stream, RDNA_MAP_BITWISE_NOT, &d.tensor, none, none, &d.tensor), RDNA_UNSUPPORTED,
                 "bitwise_not", "f64");
  assert_refused(rdna_op_map(stream, RDNA_MAP_SQRT, &i.tensor, none, none, &i.tensor), RDNA_UNSUPPORTED, "sqrt", "i32");
  assert_refused(rdna_op_zip(stream, RDNA_ZIP_BITWISE_OR, &a.tensor, &a.tensor, none, none, &out.tensor),
                 RDNA_UNSUPPORTED, "bitwise_or", "f32");
  assert_refused(rdna_op_map(stream, (rdna_map)-1, &a.tensor, none, none, &out.tensor), bad, "map", "-1");
  assert_refused(rdna_op_map(stream, RDNA_MAP_COUNT, &a.tensor, none, none, &out.tensor), bad, "map", "there are 0 to");
  assert_refused(rdna_op_zip(stream, RDNA_ZIP_COUNT, &a.tensor, &a.tensor, none, none, &out.tensor), bad, "zip",
                 "there are 0 to");
  assert_refused(rdna_op_zip3(stream, RDNA_ZIP3_COUNT, &a.tensor, &a.tensor, &a.tensor, none, &out.tensor), bad, "zip3",
                 "there are 0 to");
  assert_refused(rdna_op_compare_scalar(stream, RDNA_COMPARE_COUNT, &a.tensor, none, &out.tensor), bad,
                 "compare_scalar", "there are 0 to");
  assert_refused(rdna_op_compare(stream, RDNA_COMPARE_LT, &a.tensor, &a.tensor, &out.tensor), bad, "lt: out is f32",
                 "bool");
  assert_refused(rdna_op_compare(stream, RDNA_COMPARE_LT, &a.tensor, NULL, &out.tensor), bad, "lt: b", "NULL");
  assert_refused(rdna_op_where(stream, &a.tensor, &a.tensor, &a.tensor, &out.tensor), bad, "condition is f32", "bool");
  assert_refused(rdna_op_map(NULL, RDNA_MAP_ABS, &a.tensor, none, none, &out.tensor), bad, "abs", "stream");
  rdna_tensor t = out.tensor;
  t.stride[0] = 0;
  assert_refused(rdna_op_map(stream, RDNA_MAP_ABS, &a.tensor, none, none, &t), bad, "abs: out", "stride of 0");
  t = a.tensor;
  t.data = (float *)a.tensor.data + 1;
  assert_refused(rdna_op_map(stream, RDNA_MAP_ABS, &a.tensor, none, none, &t), bad, "abs: out", "overlap");
  operand_download(&out);
  for (int64_t k = 0; k < 6; k++) assert_true(operand_is_poison(&out, k));
  operand_free(&a);
  operand_free(&b);
  operand_free(&i);
  operand_free(&d);
  operand_free(&out);
}

static void where_chooses_eight_bit_floats(void **state) {
  static const int64_t three = 3;
  static const uint8_t yes[] = {1, 0, 1}, values[] = {0x38, 0x7f, 0x44}, want[] = {0x40, 0x7f, 0x40}; /* 2, NaN, 2 */
  operand condition = operand_make(RDNA_BOOL, 1, &three, NULL, 0), b = operand_make(RDNA_F8_E4M3FN, 1, &three, NULL, 0);
  operand out = operand_make(RDNA_F8_E4M3FN, 1, &three, NULL, 0),
          chosen = operand_make(b.tensor.dtype, 1, &three, NULL, 0);
  memcpy(condition.host, yes, sizeof yes);
  memcpy(b.host, values, sizeof values);
  operand_upload(&condition), operand_upload(&b), operand_upload(&out), operand_upload(&chosen);
  assert_ok(rdna_op_masked_fill(stream, &condition.tensor, rdna_scalar_real(2), &b.tensor, &out.tensor));
  assert_ok(rdna_op_where(stream, &condition.tensor, &b.tensor, &out.tensor, &chosen.tensor));
  operand_download(&out), operand_download(&chosen);
  assert_memory_equal(out.host, want, sizeof want);
  assert_memory_equal(chosen.host, values, sizeof values);
  operand_free(&condition), operand_free(&b), operand_free(&out), operand_free(&chosen);
}

/* Programs were compiled with these numbers, and rdna_fused_step has them as plain integers: an operation that is put
 * among the others, or taken away, gives those behind it another meaning. New ones are written at the end of their list
 * in rdna/op/pointwise.def, and may be added here when they are released. */
static const char *const released_maps =
    "abs neg sign square affine clamp bitwise_not ceil floor round trunc sqrt rsqrt reciprocal relu leaky_relu "
    "hardswish "
    "hardsigmoid exp exp2 expm1 log log2 log10 log1p sin cos tan tanh erf sigmoid silu gelu_tanh gelu_erf elu softplus "
    "mish pow ";
static const char *const released_zips =
    "add sub mul div add_scaled maximum minimum squared_diff floor_div fmod remainder pow bitwise_and bitwise_or "
    "bitwise_xor shift_left shift_right lerp relu_grad leaky_relu_grad clamp_grad hardswish_grad hardsigmoid_grad "
    "sigmoid_grad tanh_grad sqrt_grad rsqrt_grad reciprocal_grad atan2 silu_grad gelu_tanh_grad gelu_erf_grad elu_grad "
    "softplus_grad ";
static const char *const released_zip3s = "fma addcmul clamp addcdiv lerp ";
static const char *const released_compares =
    "eq ne lt le gt ge logical_and logical_or logical_xor logical_not isnan isinf isfinite ";

#define assert_numbers(kind, released)                                           \
  do {                                                                           \
    char text[1024] = "";                                                        \
    for (int op = 0; strcmp(rdna_##kind##_name((rdna_##kind)op), "?"); op++) {   \
      strncat(text, rdna_##kind##_name((rdna_##kind)op), 30), strcat(text, " "); \
    }                                                                            \
    text[strlen(released)] = 0;                                                  \
    assert_string_equal(text, released);                                         \
  } while (0)

static void numbers_stay(void **state) {
  assert_numbers(map, released_maps);
  assert_numbers(zip, released_zips);
  assert_numbers(zip3, released_zip3s);
  assert_numbers(compare, released_compares);
}

static void operations_have_names(void **state) {
  assert_string_equal(rdna_map_name(RDNA_MAP_POW), "pow");
  assert_string_equal(rdna_zip_name(RDNA_ZIP_SOFTPLUS_GRAD), "softplus_grad");
  assert_string_equal(rdna_zip3_name(RDNA_ZIP3_LERP), "lerp");
  assert_string_equal(rdna_compare_name(RDNA_COMPARE_ISFINITE), "isfinite");
  assert_string_equal(rdna_map_name(RDNA_MAP_COUNT), "?");
  assert_string_equal(rdna_zip_name((rdna_zip)-1), "?");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(map_matches_double),
      cmocka_unit_test(cubes_match_double),
      cmocka_unit_test(zip_matches_double),
      cmocka_unit_test(special_values_of_two_arguments),
      cmocka_unit_test(integers_match_their_definitions),
      cmocka_unit_test(zip3_matches_double),
      cmocka_unit_test(lerp_reaches_its_end),
      cmocka_unit_test(comparisons_match_their_definitions),
      cmocka_unit_test(where_chooses),
      cmocka_unit_test(where_chooses_eight_bit_floats),
      cmocka_unit_test(works_in_place_and_backwards),
      cmocka_unit_test(large_quotients_are_exact),
      cmocka_unit_test(large_tensors_are_cut),
      cmocka_unit_test(empty_tensors_are_no_work),
      cmocka_unit_test(wrong_arguments_are_refused_and_write_nothing),
      cmocka_unit_test(numbers_stay),
      cmocka_unit_test(operations_have_names),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
