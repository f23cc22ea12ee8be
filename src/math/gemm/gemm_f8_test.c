/* Products of 8-bit floats against sums in double of what their codes stand for. */
#include "base/testing.h"

#include <stdlib.h>

#include "math/common/test/float8.h"
#include "math/common/test/operand.h"
#include "rdna/op/gemm.h"

static bool is_fnuz(rdna_dtype type) { return type == RDNA_F8_E4M3FNUZ || type == RDNA_F8_E5M2FNUZ; }

/* Random codes, of which those that are no finite number become |instead|. */
static void fill_codes(operand *o, int instead) {
  for (size_t i = 0; i < o->bytes; i++) {
    int code = (int)(rdna__random_bits(&random_state) % 256);
    o->host[i] = (uint8_t)(isfinite(float8_value(o->tensor.dtype, code)) ? code : instead);
  }
}

typedef struct shape {
  int64_t m, n, k;
  int batch;
  bool b_turned, each;
} shape;

/* Each pair of codes is met: a special code in row 0 of A is to reach that row of C and no other. */
static void check(rdna_dtype type_a, rdna_dtype type_b, rdna_dtype type, shape s, int special) {
  operand a = operand_make(type_a, 3, (int64_t[]){s.batch, s.m, s.k}, NULL, 0);
  int64_t b_stride[3] = {0, s.b_turned ? 1 : s.n, s.b_turned ? s.k : 1}; /* one B for the batch */
  operand b = operand_make(type_b, 3, (int64_t[]){s.batch, s.k, s.n}, b_stride, 0);
  operand c = operand_make(type, 3, (int64_t[]){s.batch, s.m, s.n}, NULL, 0);
  int64_t scales_a = s.each ? s.m : 1, scales_b = s.each ? s.n : 1;
  operand scale_a = operand_make(RDNA_F32, 1, &scales_a, NULL, 0), bias = operand_make(type, 1, &s.n, NULL, 0),
          scale_b = operand_make(RDNA_F32, 1, &scales_b, NULL, 0);
  operand_fill(&scale_a, 0x1p-6);
  operand_fill(&scale_b, 0x1p-6);
  operand_fill(&bias, 1);
  operand_upload(&c);
  fill_codes(&a, 1);
  fill_codes(&b, is_fnuz(type_b) ? 0 : 128);
  if (s.k > 0) a.host[s.k - 1] = (uint8_t)special;
  operand_upload(&a);
  operand_upload(&b);
  rdna_gemm_epilogue e = {RDNA_GEMM_EPILOGUE_INIT, .alpha = 0.5f, .bias = &bias.tensor};
  assert_ok(rdna_op_gemm_f8(stream, &e, &a.tensor, &scale_a.tensor, &b.tensor, &scale_b.tensor, &c.tensor));
  operand_download(&c);
  double of_a[256], of_b[256];
  for (int code = 0; code < 256; code++)
    of_a[code] = float8_value(type_a, code), of_b[code] = float8_value(type_b, code);
  for (int64_t at = 0; at < s.batch * s.m * s.n; at++) {
    int64_t z = at / (s.m * s.n), i = at / s.n % s.m, j = at % s.n;
    double sum = 0, magnitude = 0;
    for (int64_t p = 0; p < s.k; p++) {
      double v = of_a[a.host[(z * s.m + i) * s.k + p]] * of_b[b.host[p * b_stride[1] + j * b_stride[2]]];
      sum += v, magnitude += fabs(v);
    }
    double scale = 0.5 * operand_get(&scale_a, s.each ? i : 0) * operand_get(&scale_b, s.each ? j : 0);
    double added = operand_get(&bias, j), want = scale * sum + added;
    double error = 0x1p-24 * ((double)(s.k + 8) * fabs(scale) * magnitude + 2 * fabs(added));
    assert_close(type, operand_get(&c, at), want, isfinite(want) ? error : 0, "gemm_f8", at);
  }
  operand *all[] = {&a, &b, &c, &scale_a, &scale_b, &bias};
  for (int i = 0; i < 6; i++) operand_free(all[i]);
}

static const rdna_dtype pairs[][2] = {{RDNA_F8_E4M3FN, RDNA_F8_E4M3FN},     {RDNA_F8_E4M3FN, RDNA_F8_E5M2},
                                      {RDNA_F8_E5M2, RDNA_F8_E4M3FN},       {RDNA_F8_E4M3FNUZ, RDNA_F8_E4M3FNUZ},
                                      {RDNA_F8_E4M3FNUZ, RDNA_F8_E5M2FNUZ}, {RDNA_F8_E5M2FNUZ, RDNA_F8_E4M3FNUZ}};

static void every_pair(void **state) {
  static const rdna_dtype types[] = {RDNA_F32, RDNA_F16, RDNA_BF16};
  for (int p = 0; p < 6; p++)
    for (int t = 0; t < 3; t++) {
      check(pairs[p][0], pairs[p][1], types[t], (shape){65, 70, 64, 1, true, true}, 1);
      check(pairs[p][0], pairs[p][1], types[t], (shape){3, 5, 7, 2, false, false}, 0x80);
      check(pairs[p][0], pairs[p][1], types[t], (shape){130, 20, 33, 2, true, false}, 0x7f);
      check(pairs[p][0], pairs[p][1], types[t], (shape){1, 1, 1, 1, false, true}, 0xfc);
      check(pairs[p][0], pairs[p][1], types[t], (shape){4, 9, 0, 1, false, true}, 0);
    }
  check(pairs[0][0], pairs[0][1], RDNA_F32, (shape){140, 150, 1000, 1, true, true}, 0xff);
}

/* Each code of each type, times one. Units may round their sums of zeros and one product, gfx11's do. */
static void every_code(void **state) {
  for (int p = 0; p < 6; p++)
    for (int side = 0; side < 2; side++) {
      rdna_dtype type = pairs[p][side];
      operand codes = operand_make(type, 2, (int64_t[]){256, 1}, NULL, 0);
      operand one = operand_make(pairs[p][!side], 2, (int64_t[]){1, 1}, NULL, 0);
      operand scale = operand_make(RDNA_F32, 1, (int64_t[]){1}, NULL, 0);
      operand c = operand_make(RDNA_F32, 2, (int64_t[]){256, 1}, NULL, 0);
      for (int code = 0; code < 256; code++) codes.host[code] = (uint8_t)code;
      for (int code = 0; code < 128; code++)
        if (float8_value(one.tensor.dtype, code) == 1) one.host[0] = (uint8_t)code;
      ((float *)(void *)scale.host)[0] = 1;
      operand *all[] = {&codes, &one, &scale, &c};
      for (int i = 0; i < 4; i++) operand_upload(all[i]);
      rdna_tensor turned = codes.tensor, row = c.tensor;
      turned.shape[0] = row.shape[0] = 1, turned.shape[1] = row.shape[1] = 256;
      turned.stride[0] = row.stride[0] = 256, turned.stride[1] = row.stride[1] = 1;
      if (side == 0)
        assert_ok(rdna_op_gemm_f8(stream, NULL, &codes.tensor, &scale.tensor, &one.tensor, &scale.tensor, &c.tensor));
      else
        assert_ok(rdna_op_gemm_f8(stream, NULL, &one.tensor, &scale.tensor, &turned, &scale.tensor, &row));
      operand_download(&c);
      for (int code = 0; code < 256; code++) {
        double want = float8_value(type, code), got = operand_get(&c, code);
        bool is_near = isfinite(want) ? fabs(got - want) <= 0x1p-18 * fabs(want) : got == want;
        if (isnan(want) ? !isnan(got) : !is_near)
          fail_msg("%s 0x%02x is %a, not %a", rdna_dtype_name(type), (unsigned)code, got, want);
      }
      for (int i = 0; i < 4; i++) operand_free(all[i]);
    }
}

static void refuses(void **state) {
  uint8_t memory[128];
  int64_t two_three[] = {2, 3}, three_four[] = {3, 4}, two_four[] = {2, 4}, one = 1;
  rdna_tensor a = rdna_tensor_contiguous(memory, RDNA_F8_E5M2, 2, two_three);
  rdna_tensor b = rdna_tensor_contiguous(memory + 8, RDNA_F8_E5M2, 2, three_four);
  rdna_tensor c = rdna_tensor_contiguous(memory + 32, RDNA_F32, 2, two_four);
  rdna_tensor scale = rdna_tensor_contiguous(memory + 96, RDNA_F32, 1, &one);
#define CALL rdna_op_gemm_f8(stream, NULL, &a, &scale, &b, &scale, &c)
  assert_refused(CALL, RDNA_UNSUPPORTED, "f8_e5m2 times f8_e5m2", "must be E4M3");
  b.dtype = RDNA_F8_E4M3FNUZ;
  assert_refused(CALL, RDNA_UNSUPPORTED, "f8_e5m2 times f8_e4m3fnuz", "FNUZ");
  b.dtype = RDNA_I8;
  assert_refused(CALL, RDNA_UNSUPPORTED, "b is i8 (3, 4)", "8-bit float");
  b.dtype = RDNA_F8_E4M3FN, c.dtype = RDNA_I32;
  assert_refused(CALL, RDNA_UNSUPPORTED, "gemm_f8: c is i32", "f16");
  c.dtype = RDNA_F32, scale.dtype = RDNA_I32;
  assert_refused(CALL, RDNA_INVALID_ARGUMENT, "scale_a", "f32");
#undef CALL
  assert_refused(rdna_op_gemm_f8(stream, NULL, &a, NULL, &b, NULL, &c), RDNA_INVALID_ARGUMENT, "scale_a is NULL",
                 "c is f32 (2, 4)");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_pair),
      cmocka_unit_test(every_code),
      cmocka_unit_test(refuses),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
