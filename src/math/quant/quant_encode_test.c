/* Blocks whose codes number entries of a grid: that they are the best for their scales by a search through all codes in
 * double, and how much of the values they lose. */
#include "math/common/test/operand.h"
#include "math/quant/testing_blocks.h"
#include "rdna/op/quant.h"

static const struct grid_format {
  rdna_dtype format;
  const uint16_t *grid;
  int entries, part; /* values that share a scale */
  bool even;         /* the last of 8 signs follows from the others */
  /* The most of normal values' squares that may be lost, where columns count alike and not. Not derived: what the
   * search reached, rounded up, so that a worse one is seen; tests/quantize_peer.py compares it with another's. */
  double even_error, error;
} formats[] = {{RDNA_IQ1_S, quant_grid_iq1, 2048, 32, false, 0.21, 0.16},
               {RDNA_IQ1_M, quant_grid_iq1, 2048, 16, false, 0.18, 0.115},
               {RDNA_IQ2_XXS, quant_grid_iq2_xxs, 256, 32, true, 0.115, 0.06},
               {RDNA_IQ2_XS, quant_grid_iq2_xs, 512, 16, true, 0.087, 0.042},
               {RDNA_IQ2_S, quant_grid_iq2_s, 1024, 16, false, 0.061, 0.038},
               {RDNA_IQ3_XXS, quant_grid_iq3_xxs, 256, 32, true, 0.034, 0.0135},
               {RDNA_IQ3_S, quant_grid_iq3_s, 512, 32, false, 0.0185, 0.0095}};
enum { FORMATS = sizeof formats / sizeof formats[0] };
#define GRID(X, name, NAME, ggml, values, bytes, quantize, ...) RDNA_BLOCK_GRID_IF_##quantize##_(+1)
_Static_assert(FORMATS == RDNA_BLOCK_FORMATS(GRID, ), "formats lacks one that is GRID in base/block_formats.h");

static bool is_iq1(rdna_dtype format) { return format == RDNA_IQ1_S || format == RDNA_IQ1_M; }
static bool is_iq3(rdna_dtype format) { return format == RDNA_IQ3_XXS || format == RDNA_IQ3_S; }

/* What a magnitude, or in IQ1 a number without its eighth, is multiplied by; of value |at| of block |b|. */
static double scale_of(rdna_dtype format, const uint8_t *b, int at) {
  uint8_t d[2];
  switch ((int)format) {
    case RDNA_IQ2_XXS:
      return test_half(b) * (0.5 + test_bits(b + 6 + at / 32 * 8, 28, 4)) / 4;
    case RDNA_IQ2_XS:
      return test_half(b) * (0.5 + test_bits(b + 66, at / 16 * 4, 4)) / 4;
    case RDNA_IQ2_S:
      return test_half(b) * (0.5 + test_bits(b + 74, at / 16 * 4, 4)) / 4;
    case RDNA_IQ3_XXS:
      return test_half(b) * (0.5 + test_bits(b + 66 + at / 32 * 4, 28, 4)) / 2;
    case RDNA_IQ3_S:
      return test_half(b) * (1 + 2 * test_bits(b + 106, at / 32 * 4, 4));
    case RDNA_IQ1_S:
      return test_half(b) * (1 + 2 * test_bits(b + 34 + at / 32 * 2, 12, 3));
    default:
      for (int k = 0; k < 2; k++) d[k] = (uint8_t)(b[49 + 4 * k] / 16 + b[51 + 4 * k] / 16 * 16);
      return test_half(d) * (1 + 2 * test_bits(b + 48 + at / 64 * 2, at % 64 / 16 * 3, 3));
  }
}

/* The byte of value |i| of an entry without its sign; of IQ1 with |eighth| added. */
static double level_of(rdna_dtype format, uint16_t entry, int i, double eighth) {
  static const int two[] = {8, 25, 43}, three[] = {4, 12, 20, 28, 36, 44, 52, 62};
  if (is_iq1(format)) return test_level(entry, i) - 1 + eighth;
  if (format == RDNA_IQ3_S) return 2 * test_level_of_four(entry, i) + 1;
  return format == RDNA_IQ3_XXS ? three[test_level_of_four(entry, i)] : two[test_level(entry, i)];
}

/* The least error that |count| values of one entry can have. |minus|: which signs; only their parity where |odd| is not
 * NULL, which then gets the least with the other parity than the values'. */
static double least_error(const struct grid_format *f, const double *x, const double *w, int count, double scale,
                          double eighth, double *odd) {
  double least = INFINITY;
  if (odd) *odd = INFINITY;
  for (int n = 0; n < f->entries; n++) {
    double sum = 0, turn = INFINITY;
    for (int i = 0; i < count; i++) {
      double v = scale * level_of(f->format, f->grid[n], i, eighth), sign = is_iq1(f->format) || x[i] >= 0 ? 1 : -1;
      sum += w[i] * (x[i] - sign * v) * (x[i] - sign * v);
      turn = fmin(turn, w[i] * (x[i] + sign * v) * (x[i] + sign * v) - w[i] * (x[i] - sign * v) * (x[i] - sign * v));
    }
    least = fmin(least, sum);
    if (odd) *odd = fmin(*odd, sum + turn);
  }
  return least;
}

/* The least error of the 8 values from |x| on. */
static double least_of_eight(const struct grid_format *f, const double *x, const double *w, double scale,
                             double eighth) {
  double first, second, first_odd, second_odd;
  int minus = 0;
  for (int i = 0; i < 8; i++) minus += x[i] < 0;
  bool odd = f->even && minus % 2;
  if (!is_iq3(f->format)) {
    first = least_error(f, x, w, 8, scale, eighth, odd ? &first_odd : NULL);
    return odd ? first_odd : first;
  }
  first = least_error(f, x, w, 4, scale, 0, odd ? &first_odd : NULL);
  second = least_error(f, x + 4, w + 4, 4, scale, 0, odd ? &second_odd : NULL);
  return odd ? fmin(first_odd + second, first + second_odd) : first + second;
}
static double least_of_part(const struct grid_format *f, const double *x, const double *w, double scale) {
  double least = INFINITY;
  if (f->format == RDNA_IQ1_M) {
    least = 0;
    for (int i = 0; i < f->part; i += 8)
      least += fmin(least_of_eight(f, x + i, w + i, scale, 0.125), least_of_eight(f, x + i, w + i, scale, -0.125));
    return least;
  }
  for (int sign = 1; sign >= (f->format == RDNA_IQ1_S ? -1 : 1); sign -= 2) {
    double sum = 0;
    for (int i = 0; i < f->part; i += 8) sum += least_of_eight(f, x + i, w + i, scale, 0.125 * sign);
    least = fmin(least, sum);
  }
  return least;
}

typedef struct quantized {
  operand x, w, bytes;
} quantized;

/* Quantizes normal values (rows, 512), times |factor|; |weights|: columns count differently, some for nothing. */
static quantized quantize(rdna_dtype format, int64_t rows, bool weights, double factor) {
  int64_t shape[] = {rows, 512}, bytes = (int64_t)rdna_dtype_bytes(format, rows * 512);
  quantized q = {operand_make(RDNA_F32, 2, shape, NULL, 0), operand_make(RDNA_F32, 1, &shape[1], NULL, 0),
                 operand_make(RDNA_U8, 1, &bytes, NULL, 0)};
  rdna_tensor blocks = rdna_tensor_contiguous(q.bytes.tensor.data, format, 2, shape);
  for (int64_t i = 0; i < rows * 512; i++) operand_set(&q.x, i, factor * rdna__random_normal(&random_state));
  for (int64_t i = 0; i < 512; i++)
    operand_set(&q.w, i, weights ? i % 7 ? pow(rdna__random_unit(&random_state), 4) : 0 : 1);
  operand_upload(&q.x);
  operand_upload(&q.w);
  operand_upload(&q.bytes);
  assert_ok(weights ? rdna_op_quantize_weighted(stream, &q.x.tensor, &q.w.tensor, &blocks)
                    : rdna_op_quantize(stream, &q.x.tensor, &blocks));
  operand_download(&q.bytes);
  return q;
}
static void release(quantized *q) {
  operand_free(&q->x);
  operand_free(&q->w);
  operand_free(&q->bytes);
}

/* Columns of no weight count a millionth (2^-20) of the block's most. */
static void codes_are_the_best_for_their_scales(void **state) {
  for (int n = 0; n < FORMATS; n++) {
    const struct grid_format *f = &formats[n];
    for (int weights = 0; weights < 2; weights++) {
      quantized q = quantize(f->format, 1, weights, 3);
      for (int64_t at = 0; at < 512; at += f->part) {
        const uint8_t *block = q.bytes.host + at / 256 * (int64_t)rdna_dtype_block_bytes(f->format);
        double x[32], w[32], error = 0, most = 0;
        for (int64_t i = at % 512 / 256 * 256, k = 0; k < 256; k++) most = fmax(most, operand_get(&q.w, i + k));
        for (int i = 0; i < f->part; i++) {
          x[i] = operand_get(&q.x, at + i);
          w[i] = fmax(operand_get(&q.w, (at + i) % 512), most * 0x1p-20);
          double off = test_quant_value(f->format, q.bytes.host, at + i, NULL) - x[i];
          error += w[i] * off * off;
        }
        double least = least_of_part(f, x, w, scale_of(f->format, block, (int)(at % 256)));
        /* errors of about 1 are summed in f32 */
        if (!(error <= least * (1 + 1e-5) + 1e-9))
          fail_msg("%s [%lld]: error %g, %g with the best code", rdna_dtype_name(f->format), (long long)at, error,
                   least);
      }
      release(&q);
    }
  }
}

static void little_is_lost(void **state) {
  for (int n = 0; n < FORMATS; n++) {
    const struct grid_format *f = &formats[n];
    for (int weights = 0; weights < 2; weights++) {
      quantized q = quantize(f->format, 6, weights, weights ? 100 : 0.01);
      double error = 0, all = 0;
      for (int64_t i = 0; i < 6 * 512; i++) {
        double v = operand_get(&q.x, i), w = operand_get(&q.w, i % 512);
        double off = test_quant_value(f->format, q.bytes.host, i, NULL) - v;
        error += w * off * off, all += w * v * v;
      }
      if (!(error < all * (weights ? f->error : f->even_error)))
        fail_msg("%s: %g of the squares are lost", rdna_dtype_name(f->format), error / all);
      release(&q);
    }
  }
}

/* Zeros, what is too large for a scale in f16, and what is no number; see rdna/op/quant.h. */
static void special_values(void **state) {
  for (int n = 0; n < FORMATS; n++) {
    rdna_dtype format = formats[n].format;
    int64_t count = 5 * 256, bytes = (int64_t)rdna_dtype_bytes(format, count);
    operand x = operand_make(RDNA_F32, 1, &count, NULL, 0), out = operand_make(RDNA_U8, 1, &bytes, NULL, 0);
    rdna_tensor blocks = rdna_tensor_contiguous(out.tensor.data, format, 1, &count);
    operand_fill(&x, 1);
    for (int i = 0; i < 256; i++) operand_set(&x, i, i % 2 ? 0.0 : -0.0);
    operand_set(&x, 256 + 77, INFINITY);
    operand_set(&x, 512 + 200, -3e38);
    operand_set(&x, 768 + 100, NAN);
    for (int i = 0; i < 256; i++) operand_set(&x, 1024 + i, 1e-30);
    operand_upload(&x);
    operand_upload(&out);
    assert_ok(rdna_op_quantize(stream, &x.tensor, &blocks));
    operand_download(&out);
    for (int64_t i = 0; i < count; i++) {
      double v = test_quant_value(format, out.host, i, NULL);
      if (i < 256 || i >= 1024) assert_true(v == 0);
      if (i >= 256 && i < 768) assert_false(isfinite(v));
      if (i >= 768 && i < 1024) assert_true(fabs(v) < 10);
    }
    operand_free(&x);
    operand_free(&out);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(codes_are_the_best_for_their_scales),
      cmocka_unit_test(little_is_lost),
      cmocka_unit_test(special_values),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
