/* Transforms beside sums by the definition, in long double, as a plain sum in double is further off than they are. */
#include "rdna/op/fft.h"

#include "base/random.h"
#include "math/common/test/operand.h"

typedef enum kind { C2C, INVERSE, R2C, C2R } kind;

/* Tensors (a, n, b) with gaps, as strides say. */
typedef struct sides {
  kind kind;
  rdna_dtype dtype;
  int64_t a, n, b;
  double scale;
  operand x, out;
  bool in_place;
} sides;

static operand make(rdna_dtype dtype, int64_t a, int64_t n, int64_t b, bool complex, bool turned, int64_t gap) {
  int64_t pair = complex ? 2 : 1, shape[4] = {a, n, b, 2};
  int64_t inner = turned ? n : b, stride[4] = {(n * b + gap) * pair, (b + gap) * pair, pair, 1};
  if (turned) stride[0] = (inner + gap) * b * pair, stride[1] = pair, stride[2] = (inner + gap) * pair;
  if (!turned) stride[0] = (b + gap) * n * pair;
  return operand_make(dtype, complex ? 4 : 3, shape, stride, complex ? 2 : 1);
}
static int64_t at(const operand *o, int64_t i, int64_t k, int64_t j) {
  return i * o->tensor.stride[0] + k * o->tensor.stride[1] + j * o->tensor.stride[2];
}

static void prepare(sides *s, bool turned, int64_t gap) {
  int64_t half = s->n / 2 + 1;
  s->x = make(s->dtype, s->a, s->kind == C2R ? half : s->n, s->b, s->kind != R2C, turned, gap);
  operand_fill(&s->x, 1);
  s->out =
      make(s->dtype, s->a, s->kind == R2C ? half : s->n, s->b, s->kind != C2R, s->in_place ? turned : !turned, gap);
  operand_upload(&s->out);
}
/* The value that the definition has for index j: of a half, the conjugate of the other one. */
static void value_of(const sides *s, int64_t i, int64_t j, int64_t b, double out[2]) {
  bool mirrored = s->kind == C2R && 2 * j > s->n;
  int64_t p = at(&s->x, i, mirrored ? s->n - j : j, b);
  out[0] = operand_get(&s->x, p), out[1] = s->kind == R2C ? 0 : operand_get(&s->x, p + 1);
  if (mirrored) out[1] = -out[1];
  if (s->kind == C2R && (j == 0 || 2 * j == s->n)) out[1] = 0;
}

/* The error of a transform grows with the root of its steps; a chirp's values are multiplied three times more, and its
 * transforms are longer. Bounds are of the values' root mean square, with room for the largest of many. */
static void check_some(sides *s, int64_t checked, bool chirp) {
  long double *turns = malloc((size_t)s->n * 2 * sizeof *turns);
  double sign = s->kind == INVERSE || s->kind == C2R ? 1 : -1;
  assert_non_null(turns);
  for (int64_t k = 0; k < s->n; k++) {
    long double angle = 2 * 3.14159265358979323846264338327950288L * (long double)k / (long double)s->n;
    turns[2 * k] = cosl(angle), turns[2 * k + 1] = sign * sinl(angle);
  }
  double steps = log2((double)s->n) + 2, unit = s->dtype == RDNA_F64 ? 0x1p-53 : 0x1p-24;
  double bound = unit * steps * (chirp ? 8 : 3) * sqrt((double)s->n * 2) * fabs(s->scale) * 2;
  int64_t rows = s->out.tensor.shape[1];
  bool all = rows <= checked;
  for (int64_t i = 0; i < s->a; i++) {
    for (int64_t b = 0; b < s->b; b++) {
      for (int64_t c = 0; c < (all ? rows : checked); c++) {
        int64_t k = all ? c : c < 2 ? (rows - 1) * c : rdna__random_range(&random_state, 0, rows - 1);
        double v[2];
        long double re = 0, im = 0;
        for (int64_t j = 0; j < s->n; j++) {
          const long double *w = &turns[2 * (j * k % s->n)];
          value_of(s, i, j, b, v);
          re += v[0] * w[0] - v[1] * w[1], im += v[0] * w[1] + v[1] * w[0];
        }
        re *= s->scale, im *= s->scale;
        const operand *out = &s->out;
        int64_t p = at(out, i, k, b);
        double off =
            (double)fmaxl(fabsl(operand_get(out, p) - re), s->kind == C2R ? 0 : fabsl(operand_get(out, p + 1) - im));
        if (!(off <= bound)) {
          fail_msg("%s kind %d, %lld x %lld x %lld: (%lld, %lld, %lld) is off by %g, allowed %g",
                   rdna_dtype_name(s->dtype), s->kind, (long long)s->a, (long long)s->n, (long long)s->b, (long long)i,
                   (long long)k, (long long)b, off, bound);
        }
      }
    }
  }
  free(turns);
}

static rdna_status call(const sides *s, int dim) {
  const rdna_tensor *x = &s->x.tensor, *out = s->in_place ? x : &s->out.tensor;
  if (s->kind == R2C) return rdna_op_fft_r2c(stream, s->scale, x, dim, out);
  if (s->kind == C2R) return rdna_op_fft_c2r(stream, s->scale, x, dim, out);
  return rdna_op_fft_c2c(stream, s->kind == INVERSE, s->scale, x, dim, out);
}

static void try(sides s, bool turned, int64_t gap, int64_t checked) {
  int64_t n = s.n;
  for (int64_t p = 2; p < 8; p++) {
    while (n % p == 0) n /= p;
  }
  prepare(&s, turned, gap);
  assert_ok(call(&s, turned ? 1 : -2));
  if (s.in_place) {
    operand result = s.x;
    operand_download(&s.out); /* still poison, which is replaced by what was given, as the reference reads s.x */
    memcpy(s.out.block, s.x.block, s.x.front + s.x.bytes + OPERAND_GUARD);
    operand_download(&result);
    operand before = s.out;
    s.x.host = before.host, s.out.host = result.host, s.out.tensor = result.tensor;
    check_some(&s, checked, n > 1);
    s.x.host = result.host, s.out.host = before.host;
  } else {
    operand_download(&s.out);
    check_some(&s, checked, n > 1);
  }
  operand_free(&s.x), operand_free(&s.out);
}

/* An emulated card sees each kind of length, not each length. */
static bool emulated(void) { return rdna_device_get_info(device)->emulated; }

static void every_length(void **state) {
  for (int64_t n = 1; n <= 300; n += emulated() ? 7 : 1) {
    sides s = {.kind = (kind)(n % 4), .dtype = n / 4 % 2 ? RDNA_F64 : RDNA_F32, .a = 2, .n = n, .b = 1 + n % 3};
    s.scale = n % 2 ? 1 : 1 / (double)n;
    try(s, n % 5 < 2, n % 3, n % 16 ? 8 : 400);
    s.kind = (kind)((n + 1 + n / 7 % 3) % 4), s.dtype = s.dtype == RDNA_F64 ? RDNA_F32 : RDNA_F64;
    try(s, n % 7 < 4, n % 2, n % 16 ? 8 : 400);
  }
}

static void long_ones(void **state) {
  static const int64_t sizes[] = {512,  1000, 2048, 2187, 2401, 3125,  4096, 4097,
                                  4099, 4116, 6561, 8191, 8192, 10007, 16384};
  for (int i = 0; i < 15; i++) {
    for (int k = emulated() ? i % 4 : 0; k < 4; k += emulated() ? 4 : 1) {
      sides s = {
          .kind = (kind)k, .dtype = (i + k) % 2 ? RDNA_F64 : RDNA_F32, .a = 1 + k % 2, .n = sizes[i], .b = 1 + i % 2};
      s.scale = 1 / sqrt((double)s.n);
      try(s, (i + k) % 3 == 0, k, 6);
    }
  }
  for (int k = 0; k < 4 && !emulated(); k++) {
    sides s = {.kind = (kind)k,
               .dtype = k % 2 ? RDNA_F64 : RDNA_F32,
               .a = 1,
               .n = k < 2 ? 1 << 17 : 100003,
               .b = 1,
               .scale = 1};
    try(s, false, 0, 4);
  }
}

static void many_and_in_place(void **state) {
  static const int64_t sizes[] = {1, 3, 16, 17, 64, 105, 1024, 5000, 4999};
  for (int i = 0; i < 9; i++) {
    sides s = {
        .kind = i % 2 ? INVERSE : C2C, .dtype = i % 3 ? RDNA_F32 : RDNA_F64, .a = 3, .n = sizes[i], .b = 5, .scale = 1};
    s.in_place = true;
    try(s, i % 2, 1, 3);
    s.in_place = false, s.a = i < 5 && !emulated() ? 700 : 2, s.b = i < 5 ? 3 : 9;
    try(s, i % 2 == 0, 1, 2);
  }
}

/* Dimensions that do not merge, and sizes that are 0. */
static void shapes(void **state) {
  int64_t shape[5] = {3, 2, 6, 4, 2}, stride[5] = {2, 400, 8, 80, 1}, none[3] = {4, 0, 2};
  operand x = operand_make(RDNA_F64, 5, shape, stride, 0), out = operand_make(RDNA_F64, 5, shape, NULL, 0);
  operand_fill(&x, 1), operand_upload(&out);
  assert_ok(rdna_op_fft_c2c(stream, false, 1, &x.tensor, 2, &out.tensor));
  operand_download(&out);
  for (int64_t i = 0; i < 3 * 2 * 6 * 4; i++) {
    int64_t a = i / 48, b = i / 24 % 2, k = i / 4 % 6, c = i % 4;
    double re = 0, im = 0;
    for (int64_t j = 0; j < 6; j++) {
      int64_t p = a * stride[0] + b * stride[1] + j * stride[2] + c * stride[3];
      double angle = -2 * M_PI * (double)(j * k) / 6, r = operand_get(&x, p), m = operand_get(&x, p + 1);
      re += r * cos(angle) - m * sin(angle), im += r * sin(angle) + m * cos(angle);
    }
    assert_close(RDNA_F64, operand_get(&out, 2 * i), re, 1e-14, "real", i);
    assert_close(RDNA_F64, operand_get(&out, 2 * i + 1), im, 1e-14, "imaginary", i);
  }
  operand_free(&x), operand_free(&out);
  x = operand_make(RDNA_F32, 3, none, NULL, 0);
  assert_ok(rdna_op_fft_c2c(stream, false, 1, &x.tensor, 0, &x.tensor));
  assert_refused(rdna_op_fft_c2c(stream, false, 1, &x.tensor, 1, &x.tensor), RDNA_INVALID_ARGUMENT, "has 0 values");
  operand_free(&x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_length), cmocka_unit_test(long_ones),
                                     cmocka_unit_test(many_and_in_place), cmocka_unit_test(shapes)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
