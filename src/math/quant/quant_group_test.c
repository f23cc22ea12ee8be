#include "math/common/test/operand.h"
#include "math/quant/testing_blocks.h"
#include "rdna/op/quant.h"

typedef struct weights {
  bool is_u4;
  int64_t n, k, group;
  operand codes, scales, zeros, offsets;
  rdna_quant_groups tensors;
} weights;

/* Scales and offsets of |type|; |turned|: they lie in one another's columns, as torchao has them. */
static weights make_of(rdna_dtype numbers, bool with_offsets, bool turned, bool is_u4, bool with_zeros, int64_t n,
                       int64_t k, int64_t group) {
  weights w = {.is_u4 = is_u4, .n = n, .k = k, .group = group};
  rdna_dtype type = is_u4 ? RDNA_U8 : RDNA_I8;
  w.codes = operand_make(type, 2, (int64_t[]){n, is_u4 ? k / 2 : k}, NULL, 0);
  const int64_t *strides = turned ? (int64_t[]){2, 2 * n} : NULL;
  w.scales = operand_make(numbers, 2, (int64_t[]){n, k / group}, strides, 0);
  w.offsets = operand_make(numbers, 2, (int64_t[]){n, k / group}, strides, 0);
  w.zeros = operand_make(type, 2, (int64_t[]){n, k / group}, NULL, 0);
  for (size_t i = 0; i < w.codes.bytes; i++) w.codes.host[i] = (uint8_t)rdna__random_bits(&random_state);
  for (size_t i = 0; i < w.zeros.bytes; i++)
    w.zeros.host[i] = (uint8_t)(rdna__random_bits(&random_state) & (is_u4 ? 15 : 255));
  for (int64_t i = 0; i < operand_span(&w.scales); i++)
    operand_set(&w.scales, i, 0.01 * rdna__random_normal(&random_state));
  operand_upload(&w.codes);
  operand_upload(&w.scales);
  for (int64_t i = 0; i < operand_span(&w.offsets); i++)
    operand_set(&w.offsets, i, 0.1 * rdna__random_normal(&random_state));
  operand_upload(&w.zeros);
  operand_upload(&w.offsets);
  w.tensors = (rdna_quant_groups){RDNA_QUANT_GROUPS_INIT, &w.codes.tensor, &w.scales.tensor,
                                  with_zeros ? &w.zeros.tensor : NULL, with_offsets ? &w.offsets.tensor : NULL};
  return w;
}
static weights make(bool is_u4, bool with_zeros, int64_t n, int64_t k, int64_t group) {
  return make_of(RDNA_F16, false, false, is_u4, with_zeros, n, k, group);
}
/* The weights' tensors as the operators take them. */
static rdna_quant_groups groups_of(const weights *w) {
  return (rdna_quant_groups){RDNA_QUANT_GROUPS_INIT, &w->codes.tensor, &w->scales.tensor,
                             w->tensors.zeros ? &w->zeros.tensor : NULL,
                             w->tensors.offsets ? &w->offsets.tensor : NULL};
}
static void drop(weights *w) {
  operand_free(&w->codes);
  operand_free(&w->scales);
  operand_free(&w->zeros);
  operand_free(&w->offsets);
}

/* A weight by its definition. */
static double value_of(const weights *w, int64_t row, int64_t v) {
  int64_t group = row * (w->k / w->group) + v / w->group;
  const int64_t *stride = w->scales.tensor.stride;
  int64_t at = row * stride[0] + v / w->group * stride[1];
  double scale = operand_get(&w->scales, at), offset = w->tensors.offsets ? operand_get(&w->offsets, at) : 0;
  int code, zero = w->is_u4 ? 8 : 0;
  if (w->is_u4) {
    code = test_nibble(w->codes.host + row * w->k / 2 + v / 32 * 16, (int)(v % 32));
    if (w->tensors.zeros) zero = w->zeros.host[group];
  } else {
    code = (int8_t)w->codes.host[row * w->k + v];
    if (w->tensors.zeros) zero = (int8_t)w->zeros.host[group];
  }
  return scale * (code - zero) + offset;
}

static void dequantizes(void **state) {
  for (int kind = 0; kind < 16; kind++) {
    for (int dtype = RDNA_F32; dtype <= RDNA_BF16; dtype++) {
      for (int64_t group = 32; group <= 256; group *= 2) {
        rdna_dtype numbers = kind < 4 ? RDNA_F16 : (rdna_dtype)(RDNA_F32 + (dtype + kind) % 3);
        weights w = make_of(numbers, kind / 4 % 2, kind / 8, kind % 2, kind / 2 % 2, dtype == 0 && group == 64 ? 0 : 7,
                            3 * group, group);
        operand out = operand_make((rdna_dtype)dtype, 2, (int64_t[]){w.n, w.k}, NULL, 0);
        operand_upload(&out);
        rdna_quant_groups g = groups_of(&w);
        assert_ok(rdna_op_dequantize_groups(stream, &g, &out.tensor));
        operand_download(&out);
        for (int64_t i = 0; i < w.n * w.k; i++) {
          double want = value_of(&w, i / w.k, i % w.k);
          assert_close((rdna_dtype)dtype, operand_get(&out, i), want, 0x1p-24 * (fabs(want) + 1), "value", i);
        }
        operand_free(&out);
        drop(&w);
      }
    }
  }
}

static void products(void **state) {
  static const int64_t rows[] = {1, 3, 8, 20, 70, 0};
  for (int kind = 0; kind < 16; kind++) {
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
      int64_t m = rows[r], group = 32 << (r % 4), n = 37, k = group * (r == 0 ? 80 : 6);
      rdna_dtype numbers = kind < 4 ? RDNA_F16 : (rdna_dtype)(RDNA_F32 + (int)(r + (size_t)kind) % 3);
      weights w = make_of(numbers, kind / 4 % 2, kind / 8, kind % 2, kind / 2 % 2, n, k, group);
      int64_t x_stride[] = {k + (int64_t)r % 2, 1};
      operand x = operand_make(RDNA_F32, 2, (int64_t[]){m, k}, x_stride, 0),
              bias = operand_make(RDNA_F32, 1, &n, NULL, 0);
      operand out = operand_make(RDNA_F32, 2, (int64_t[]){m, n}, NULL, 0);
      operand_fill(&x, 1);
      operand_fill(&bias, 1);
      operand_upload(&out);
      rdna_quant_groups g = groups_of(&w);
      assert_ok(rdna_op_linear_quant_groups(stream, &x.tensor, &g, r % 2 ? &bias.tensor : NULL, &out.tensor));
      operand_download(&out);
      for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
          double sum = 0, magnitude = 0;
          for (int64_t p = 0; p < k; p++) {
            double v = operand_get(&x, i * x_stride[0] + p), product = v * value_of(&w, j, p);
            sum += product;
            magnitude += fabs(v) * 0.05 * 255; /* the code's and the zero point's parts, one by one, and the offset's */
          }
          if (r % 2) sum += operand_get(&bias, j);
          double error = 0x1p-24 * ((double)(k + 8) * magnitude / (w.is_u4 ? 8 : 1) + 4);
          assert_close(RDNA_F32, operand_get(&out, i * n + j), sum, error, "product", i * n + j);
        }
      }
      operand_free(&x);
      operand_free(&bias);
      operand_free(&out);
      drop(&w);
    }
  }
}

/* Each value comes back within half a scale; 4 bits without zero points lack a code at one end. */
static void quantizes(void **state) {
  for (int kind = 0; kind < 4; kind++) {
    for (int64_t group = 32; group <= 256; group *= 2) {
      weights w = make(kind % 2, kind / 2, 11, 2 * group, group);
      operand x = operand_make(RDNA_F32, 2, (int64_t[]){w.n, w.k}, NULL, 0);
      operand_fill(&x, 2);
      for (int64_t i = 0; i < group; i++) operand_set(&x, i, 0), operand_set(&x, group + i, 3 + 0.01 * (double)i);
      operand_upload(&x);
      rdna_quant_groups g = groups_of(&w);
      assert_ok(rdna_op_quantize_groups(stream, &x.tensor, &g));
      operand_download(&w.codes);
      operand_download(&w.scales);
      operand_download(&w.zeros);
      double squares = 0, steps = 0;
      for (int64_t first = 0; first < w.n * w.k; first += group) {
        double low = 0, high = 0, scale = fabs(operand_get(&w.scales, first / group));
        for (int64_t i = first; i < first + group; i++) {
          low = fmin(low, operand_get(&x, i));
          high = fmax(high, operand_get(&x, i));
        }
        double ideal = w.tensors.zeros ? (high - low) / (w.is_u4 ? 15 : 255) : fmax(high, -low) / (w.is_u4 ? 8 : 127);
        if (!(fabs(scale - ideal) <= ideal * 0x1p-11 + 0x1p-25)) fail_msg("a scale is %g, not %g", scale, ideal);
        for (int64_t i = first; i < first + group; i++) {
          double error = value_of(&w, i / w.k, i % w.k) - operand_get(&x, i);
          double most = scale * (w.is_u4 && !w.tensors.zeros ? 1 : w.tensors.zeros ? 1 : 0.5) + 255 * ideal * 0x1p-11;
          if (!(fabs(error) <= most))
            fail_msg("%g came back %g off, of a scale of %g", operand_get(&x, i), error, scale);
          squares += error * error;
          steps += scale * scale;
        }
      }
      if (!(squares < 1.4 * steps / 12 && squares > 0.5 * steps / 12))
        fail_msg("kind %d: mean squared error %g, of even steps %g", kind, squares, steps / 12);
      operand_free(&x);
      drop(&w);
    }
  }
}

static void refuses(void **state) {
  weights w = make(true, true, 4, 128, 32);
  operand out = operand_make(RDNA_F32, 2, (int64_t[]){4, 128}, NULL, 0),
          odd = operand_make(RDNA_F32, 2, (int64_t[]){4, 96}, NULL, 0);
  operand x = operand_make(RDNA_F32, 2, (int64_t[]){2, 128}, NULL, 0),
          y = operand_make(RDNA_F32, 2, (int64_t[]){2, 4}, NULL, 0);
  operand_upload(&out);
  operand_upload(&y);
  rdna_quant_groups g = groups_of(&w), changed = g;
  rdna_tensor t = w.scales.tensor;
  assert_refused(rdna_op_dequantize_groups(stream, &g, &odd.tensor), RDNA_INVALID_ARGUMENT, "codes is u8 (4, 64)",
                 "96");
  assert_refused(rdna_op_dequantize_groups(stream, NULL, &out.tensor), RDNA_INVALID_ARGUMENT, "weights is NULL",
                 "pass");
  assert_refused(rdna_op_dequantize_groups(NULL, &g, &out.tensor), RDNA_INVALID_ARGUMENT, "stream", "NULL");
  changed.scales = &t;
  t.dtype = RDNA_I32;
  assert_refused(rdna_op_dequantize_groups(stream, &changed, &out.tensor), RDNA_UNSUPPORTED, "scales is i32", "bf16");
  t.dtype = RDNA_BF16;
  assert_refused(rdna_op_quantize_groups(stream, &out.tensor, &changed), RDNA_INVALID_ARGUMENT, "scales", "f16");
  changed.offsets = &w.offsets.tensor;
  assert_refused(rdna_op_dequantize_groups(stream, &changed, &out.tensor), RDNA_INVALID_ARGUMENT, "offsets is f16",
                 "bf16");
  changed = g;
  changed.offsets = &w.offsets.tensor;
  assert_refused(rdna_op_quantize_groups(stream, &out.tensor, &changed), RDNA_UNSUPPORTED, "offsets", "NULL");
  changed.scales = &t;
  t = w.scales.tensor;
  t = rdna_tensor_contiguous(w.scales.tensor.data, RDNA_F16, 2, (int64_t[]){4, 3});
  changed.zeros = NULL;
  assert_refused(rdna_op_dequantize_groups(stream, &changed, &out.tensor), RDNA_UNSUPPORTED, "scales is f16 (4, 3)",
                 "256");
  changed = g;
  t = w.codes.tensor;
  t.dtype = RDNA_I32;
  changed.codes = &t;
  assert_refused(rdna_op_dequantize_groups(stream, &changed, &out.tensor), RDNA_UNSUPPORTED, "codes is i32", "i8");
  changed = g;
  t = w.zeros.tensor;
  t.dtype = RDNA_I8;
  changed.zeros = &t;
  assert_refused(rdna_op_dequantize_groups(stream, &changed, &out.tensor), RDNA_INVALID_ARGUMENT, "zeros", "u8");
  assert_refused(rdna_op_linear_quant_groups(stream, &x.tensor, &g, NULL, &out.tensor), RDNA_INVALID_ARGUMENT,
                 "codes is u8", "128");
  rdna_tensor half = x.tensor;
  half.dtype = RDNA_F16;
  assert_refused(rdna_op_linear_quant_groups(stream, &half, &g, NULL, &y.tensor), RDNA_INVALID_ARGUMENT, "x is f16",
                 "f32");
  assert_refused(rdna_op_quantize_groups(stream, &odd.tensor, &g), RDNA_INVALID_ARGUMENT, "codes", "96");
  operand_download(&y);
  for (int64_t i = 0; i < 8; i++) assert_true(operand_is_poison(&y, i));
  operand_free(&out);
  operand_free(&odd);
  operand_free(&x);
  operand_free(&y);
  drop(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dequantizes),
      cmocka_unit_test(products),
      cmocka_unit_test(quantizes),
      cmocka_unit_test(refuses),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
