#include "rdna/op/quant.h"

#include "math/common/test/operand.h"
#include "math/quant/quant_case.h"
#include "math/quant/testing_blocks.h"

/* A tensor of blocks on the device, with poison before and after it; |bytes| is the same memory as u8. */
typedef struct packed {
  rdna_tensor tensor;
  operand bytes;
} packed;

static packed packed_make(rdna_dtype format, int rank, const int64_t *shape) {
  packed p = {.tensor = rdna_tensor_contiguous(NULL, format, rank, shape)};
  int64_t bytes = (int64_t)rdna_dtype_bytes(format, rdna_tensor_count(&p.tensor));
  p.bytes = operand_make(RDNA_U8, 1, &bytes, NULL, 0);
  p.tensor.data = p.bytes.tensor.data;
  return p;
}

static void check_dequantize(rdna_dtype format, rdna_dtype dtype, int64_t rows, int64_t blocks) {
  int64_t shape[] = {rows, blocks * rdna_dtype_block_values(format)}, count = shape[0] * shape[1];
  packed p = packed_make(format, 2, shape);
  operand out = operand_make(dtype, 2, shape, NULL, 0);
  rdna__fill_blocks(&random_state, format, p.bytes.host, count);
  operand_upload(&p.bytes);
  operand_upload(&out);
  assert_ok(rdna_op_dequantize(stream, &p.tensor, &out.tensor));
  operand_download(&out);
  for (int64_t i = 0; i < count; i++) {
    double product, want = test_quant_value(format, p.bytes.host, i, &product);
    /* the product is rounded to f32, and what is left of it after the minimum once more */
    double error = 0x1p-24 * (product + fabs(want));
    assert_close(dtype, operand_get(&out, i), want, error, rdna_dtype_name(format), i);
  }
  operand_free(&p.bytes);
  operand_free(&out);
}

static void dequantizes(void **state) {
  for (int f = 0; f < TEST_FORMATS; f++) {
    for (int dtype = RDNA_F32; dtype <= RDNA_BF16; dtype++) {
      check_dequantize(test_formats[f], (rdna_dtype)dtype, 1, 1);
      check_dequantize(test_formats[f], (rdna_dtype)dtype, 3, 7);
      check_dequantize(test_formats[f], (rdna_dtype)dtype, 5, 133);
      check_dequantize(test_formats[f], (rdna_dtype)dtype, 0, 2);
    }
  }
}

/* The scale is max |x| / 127 in f16; every value then is the nearest multiple of the unrounded scale. */
static void quantizes(void **state) {
  enum { BLOCKS = 71 };
  int64_t count = BLOCKS * 32;
  operand x = operand_make(RDNA_F32, 1, &count, NULL, 0);
  packed p = packed_make(RDNA_Q8_0, 1, &count);
  operand_fill(&x, 1);
  for (int i = 0; i < 32; i++) {
    operand_set(&x, i, 0);
    operand_set(&x, 32 + i, i == 5 ? -127 : i - 15.5); /* ties, which go away from zero */
    operand_set(&x, 64 + i, operand_get(&x, 64 + i) * 1e-6);
  }
  operand_upload(&x);
  operand_upload(&p.bytes);
  assert_ok(rdna_op_quantize(stream, &x.tensor, &p.tensor));
  operand_download(&p.bytes);
  for (int64_t b = 0; b < BLOCKS; b++) {
    const uint8_t *block = p.bytes.host + b * 34;
    double largest = 0;
    for (int i = 0; i < 32; i++) largest = fmax(largest, fabs(operand_get(&x, b * 32 + i)));
    double d = test_half(block);
    assert_true(fabs(d - largest / 127) <= half_step(RDNA_F16, largest / 127) * (1 + 0x1p-12));
    for (int i = 0; i < 32; i++) {
      double exact = largest > 0 ? operand_get(&x, b * 32 + i) / (largest / 127) : 0;
      /* three f32 roundings of at most 127 */
      assert_true(fabs((int8_t)block[2 + i] - exact) <= 0.5 + 127 * 3 * 0x1p-24);
    }
  }
  const int8_t *ties = (const int8_t *)p.bytes.host + 34 + 2;
  for (int i = 0; i < 32; i++) assert_int_equal(ties[i], i == 5 ? -127 : i < 16 ? i - 16 : i - 15);
  operand_free(&x);
  operand_free(&p.bytes);
}

static const struct packing {
  rdna_dtype format;
  int part, top, zero;  /* values of a sub-block, the largest code or entry, the code of 0 */
  double scale_rounded; /* how far a sub-block's scale may be off, in proportion to the block's largest */
  double gap;           /* half the largest gap between entries, or 0: they are even */
} packings[] = {{RDNA_Q4_0, 32, 15, 8, 0x1p-11, 0},
                {RDNA_Q4_1, 32, 15, 0, 0x1p-11, 0},
                {RDNA_Q5_0, 32, 31, 16, 0x1p-11, 0},
                {RDNA_Q5_1, 32, 31, 0, 0x1p-11, 0},
                {RDNA_Q2_K, 16, 3, 0, 0.5 / 15 + 1e-3, 0},
                {RDNA_Q3_K, 16, 7, 4, 0.5 / 32 + 1e-3, 0},
                {RDNA_Q4_K, 32, 15, 0, 0.5 / 63 + 1e-3, 0},
                {RDNA_Q5_K, 32, 31, 0, 0.5 / 63 + 1e-3, 0},
                {RDNA_Q6_K, 16, 63, 32, 0.5 / 128 + 1e-3, 0},
                {RDNA_IQ4_NL, 32, 127, 127, 0x1p-11, 14},
                {RDNA_IQ4_XS, 32, 127, 127, 0.5 / 32 + 1e-3, 14},
                {RDNA_MXFP4, 32, 12, 12, 0, 3.01}, /* of 16 the largest code is 12: 4 off, with a scale of 12 / 16 */
                {RDNA_TQ1_0, 256, 1, 1, 0x1p-11, 0.5},
                {RDNA_TQ2_0, 256, 1, 1, 0x1p-11, 0.5}};
#define PACKED(X, name, NAME, ggml, values, bytes, quantize, ...) RDNA_BLOCK_IF_##quantize##_(+1)
_Static_assert(sizeof packings / sizeof packings[0] == RDNA_BLOCK_FORMATS(PACKED, ),
               "packings lacks a format that is PACKED in base/block_formats.h");

/* The scale that a sub-block should have, by the definition in rdna/op/quant.h; the size of its minimum raises
 * |*out_least|. */
static double wanted_scale(const struct packing *p, const operand *x, int64_t first, double *out_least) {
  double low = rdna_dtype_block_values(p->format) == 256 ? 0 : INFINITY, high = -INFINITY, far = 0;
  for (int i = 0; i < p->part; i++) {
    double v = operand_get(x, first + i);
    low = fmin(low, v);
    high = fmax(high, v);
    if (fabs(v) > fabs(far)) far = v;
  }
  *out_least = fmax(*out_least, fabs(low));
  return p->zero ? fabs(far) / p->zero : (high - low) / p->top;
}

/* Each value comes back within half its sub-block's scale, plus what the rounding of scales and minimums adds: a code's
 * number times the scale's error. A signed format also lacks the highest code of its range. */
static void quantizes_to_the_nearest_code(void **state) {
  for (size_t f = 0; f < sizeof packings / sizeof packings[0]; f++) {
    const struct packing *p = &packings[f];
    int block = rdna_dtype_block_values(p->format);
    int64_t count = 67 * block;
    operand x = operand_make(RDNA_F32, 1, &count, NULL, 0);
    packed q = packed_make(p->format, 1, &count);
    operand_fill(&x, 3);
    for (int i = 0; i < block; i++) operand_set(&x, i, 0), operand_set(&x, block + i, -5 - 0.01 * i);
    operand_upload(&x);
    operand_upload(&q.bytes);
    assert_ok(rdna_op_quantize(stream, &x.tensor, &q.tensor));
    operand_download(&q.bytes);
    double squares = 0, steps = 0;
    for (int64_t b = 0; b < count; b += block) {
      double largest = 0, least = 0;
      for (int64_t at = b; at < b + block; at += p->part) largest = fmax(largest, wanted_scale(p, &x, at, &least));
      for (int64_t i = b; i < b + block; i++) {
        double scale = wanted_scale(p, &x, i / p->part * p->part, &least), rounding = largest * p->scale_rounded;
        double got = test_quant_value(p->format, q.bytes.host, i, NULL), error = got - operand_get(&x, i);
        double bound = (scale + rounding) * (p->zero ? 1 : 0.5) + rounding * (p->top + p->top) + 1e-6;
        if (p->gap) bound = scale * p->gap + rounding * p->top + 1e-6;
        if (!p->zero) bound += least * p->scale_rounded;
        if (!(fabs(error) <= bound))
          fail_msg("%s [%lld]: %g came back as %g, more than %g off", rdna_dtype_name(p->format), (long long)i,
                   operand_get(&x, i), got, bound);
        squares += error * error;
        steps += scale * scale;
      }
    }
    operand_free(&q.bytes);
    operand_free(&x);
    if (p->gap) continue;
    /* errors are uniform over a step, so their mean square is step^2 / 12, but for ends and rounded scales */
    if (!(squares < 1.5 * steps / 12))
      fail_msg("%s: mean squared error %g, of even steps %g", rdna_dtype_name(p->format), squares, steps / 12);
    if (!(squares > 0.5 * steps / 12)) fail_msg("%s: it cannot be that near", rdna_dtype_name(p->format));
  }
}

static double weighted_error(rdna_dtype format, const packed *q, const operand *x, const operand *w, int64_t count) {
  double sum = 0;
  int64_t columns = w->tensor.shape[0];
  for (int64_t i = 0; i < count; i++) {
    double error = test_quant_value(format, q->bytes.host, i, NULL) - operand_get(x, i);
    sum += operand_get(w, i % columns) * error * error;
  }
  return sum;
}

/* The search leaves less weighted error than the plain rounding, with weights that differ and with equal ones; where it
 * lost columns or rows it would leave more. */
static void searches_for_less_error(void **state) {
  for (size_t f = 0; f < sizeof packings / sizeof packings[0]; f++) {
    rdna_dtype format = packings[f].format;
    int64_t shape[] = {61, 512}, count = shape[0] * shape[1];
    for (int even = 0; even < 2; even++) {
      operand x = operand_make(RDNA_F32, 2, shape, NULL, 0), w = operand_make(RDNA_F32, 1, &shape[1], NULL, 0);
      packed plain = packed_make(format, 2, shape), searched = packed_make(format, 2, shape);
      operand_fill(&x, 3);
      for (int64_t i = 0; i < shape[1]; i++) {
        double unit = rdna__random_unit(&random_state);
        operand_set(&w, i, even ? 1 : i % 7 ? unit * unit * unit * unit : 0);
      }
      operand_upload(&x);
      operand_upload(&w);
      operand_upload(&plain.bytes);
      operand_upload(&searched.bytes);
      assert_ok(rdna_op_quantize(stream, &x.tensor, &plain.tensor));
      assert_ok(rdna_op_quantize_weighted(stream, &x.tensor, &w.tensor, &searched.tensor));
      operand_download(&plain.bytes);
      operand_download(&searched.bytes);
      double before = weighted_error(format, &plain, &x, &w, count);
      double after = weighted_error(format, &searched, &x, &w, count);
      bool ternary = format == RDNA_TQ1_0 || format == RDNA_TQ2_0;
      if (!(after <= (ternary ? 1 : even ? 0.98 : 0.9) * before))
        fail_msg("%s: weighted error %g, %g without a search", rdna_dtype_name(format), after, before);
      operand_free(&x);
      operand_free(&w);
      operand_free(&plain.bytes);
      operand_free(&searched.bytes);
    }
  }
}

/* Quantizing and dequantizing gives values within half a scale; quantizing those again gives the same bytes. */
static void goes_there_and_back(void **state) {
  int64_t count = 32 * 50;
  operand x = operand_make(RDNA_F32, 1, &count, NULL, 0), back = operand_make(RDNA_F32, 1, &count, NULL, 0);
  packed p = packed_make(RDNA_Q8_0, 1, &count);
  operand_fill(&x, 3);
  operand_upload(&p.bytes);
  operand_upload(&back);
  assert_ok(rdna_op_quantize(stream, &x.tensor, &p.tensor));
  assert_ok(rdna_op_dequantize(stream, &p.tensor, &back.tensor));
  operand_download(&p.bytes);
  operand_download(&back);
  for (int64_t i = 0; i < count; i++) {
    double d = test_half(p.bytes.host + i / 32 * 34);
    /* half a step, and the rounding of the scale to 11 bits times 127 */
    assert_true(fabs(operand_get(&x, i) - operand_get(&back, i)) <= d * (0.5 + 127 * 0x1p-11));
  }
  operand_free(&x);
  operand_free(&back);
  operand_free(&p.bytes);
}

static void refuses(void **state) {
  _Alignas(64) uint8_t memory[4096];
  float *values = (float *)(void *)(memory + 2048);
  int64_t count = 256, odd = 100, other = 512;
  rdna_tensor blocks = rdna_tensor_contiguous(memory, RDNA_Q4_K, 1, &count);
  rdna_tensor out = rdna_tensor_contiguous(values, RDNA_F32, 1, &count);
  rdna_tensor t = rdna_tensor_contiguous(memory, RDNA_Q8_0, 1, &odd);
  assert_refused(rdna_op_dequantize(stream, &t, &out), RDNA_INVALID_ARGUMENT, "q8_0 (100)", "32");
  t = rdna_tensor_contiguous(values, RDNA_F32, 1, &other);
  assert_refused(rdna_op_dequantize(stream, &blocks, &t), RDNA_INVALID_ARGUMENT, "q4_K (256)", "f32 (512)");
  t = rdna_tensor_contiguous(values, RDNA_I32, 1, &count);
  assert_refused(rdna_op_dequantize(stream, &blocks, &t), RDNA_UNSUPPORTED, "out is i32", "bf16");
  t = blocks;
  t.data = memory + 8;
  assert_refused(rdna_op_dequantize(stream, &t, &out), RDNA_UNSUPPORTED, "blocks is q4_K", "multiple of 16");
  t = out;
  t.data = memory + 64;
  assert_refused(rdna_op_dequantize(stream, &blocks, &t), RDNA_INVALID_ARGUMENT, "blocks at", "overlap");
  t = blocks;
  t.data = NULL;
  assert_refused(rdna_op_dequantize(stream, &t, &out), RDNA_INVALID_ARGUMENT, "blocks is q4_K", "NULL");
  assert_refused(rdna_op_dequantize(stream, &out, &out), RDNA_UNSUPPORTED, "blocks is f32", "q4_K");
  t = out;
  t.dtype = RDNA_I32;
  assert_refused(rdna_op_quantize(stream, &t, &blocks), RDNA_UNSUPPORTED, "x is i32", "iq3_s");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dequantizes),
      cmocka_unit_test(quantizes),
      cmocka_unit_test(quantizes_to_the_nearest_code),
      cmocka_unit_test(searches_for_less_error),
      cmocka_unit_test(goes_there_and_back),
      cmocka_unit_test(refuses),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
