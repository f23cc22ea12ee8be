#include <stdio.h>

#include "base/options.h"
#include "kernel/float8.h"
#include "math/common/plan/check.h"
#include "math/gemm/gemm_f8_kernels.h"
#include "math/gemm/gemm_scaled.h"

static const rdna__route routes[] = RDNA__SCALED_ROUTES("gemm_{pair8}_{float}");
RDNA_ROUTES(rdna__gemm_f8_routes, "gemm_f8", routes)

static rdna_status launch(rdna_stream *stream, const struct gemm_scaled_args *args, const rdna_dtype types[3]) {
  char pair[RDNA__ROUTE_NAME];
  snprintf(pair, sizeof pair, "%s_%s", rdna_dtype_name(types[0]), rdna_dtype_name(types[1]));
  return rdna__gemm_scaled_launch(stream, "gemm_f8", &rdna__gemm_f8_routes, args,
                                  (const char *const[]){pair, rdna_dtype_name(types[2])});
}

static rdna_status check_float8(const char *argument, const rdna_tensor *t) {
  char text[RDNA__TENSOR_TEXT];
  RDNA_TRY(rdna__check_tensor("gemm_f8", argument, t));
  if (float8_is(t->dtype)) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "gemm_f8: %s is %s; it must be an 8-bit float", argument,
                    rdna__tensor_text(t, text));
}

static bool is_e4m3(rdna_dtype type) { return float8_mantissa_bits_(type) == 3; }

static rdna_status check_types(const rdna_tensor *a, const rdna_tensor *b, const rdna_tensor *c) {
  RDNA_TRY(check_float8("a", a));
  RDNA_TRY(check_float8("b", b));
  RDNA_TRY(rdna__check_float("gemm_f8", "c", c));
  bool same = float8_is_unsigned_zero_(a->dtype) == float8_is_unsigned_zero_(b->dtype);
  if (same && (is_e4m3(a->dtype) || is_e4m3(b->dtype))) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "gemm_f8: there is no kernel for %s times %s; %s", rdna_dtype_name(a->dtype),
                    rdna_dtype_name(b->dtype), same ? "one of them must be E4M3" : "both or neither must be FNUZ");
}

rdna_status rdna_op_gemm_f8(rdna_stream *stream, const rdna_gemm_epilogue *epilogue, const rdna_tensor *a,
                            const rdna_tensor *scale_a, const rdna_tensor *b, const rdna_tensor *scale_b,
                            const rdna_tensor *c) {
  static const rdna__gemm_scaled how = {"gemm_f8", "gemm_f8: an operand", launch};
  rdna_gemm_epilogue known;
  if (epilogue) {
    RDNA_TRY(RDNA__OPTIONS("gemm_f8", "epilogue", epilogue, &known));
    epilogue = &known;
  }
  RDNA_TRY(check_types(a, b, c));
  return rdna__gemm_scaled_run(stream, &how, epilogue, a, scale_a, b, scale_b, c);
}
