#include "math/gemm/gemm_i8_kernels.h"

#include "base/options.h"
#include "math/common/plan/check.h"
#include "math/gemm/gemm_scaled.h"

static rdna_status check_types(const rdna_gemm_epilogue *e, const rdna_tensor *scale_a, const rdna_tensor *scale_b,
                               const rdna_tensor *c) {
  char text[RDNA__TENSOR_TEXT];
  RDNA_TRY(rdna__check_tensor("gemm_i8", "c", c));
  if (c->dtype != RDNA_I32) return rdna__check_float("gemm_i8", "c", c);
  if (!scale_a && !scale_b && (!e || (e->alpha == 1 && e->beta == 0 && !e->bias && !e->activation && !e->residual)))
    return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT,
                    "gemm_i8: c is %s with scales or an epilogue; into i32 there is nothing but the sum",
                    rdna__tensor_text(c, text));
}

static const rdna__route routes[] = RDNA__SCALED_ROUTES("gemm_i8_{i32|f32|f16|bf16}");
RDNA_ROUTES(rdna__gemm_i8_routes, "gemm_i8", routes)

static rdna_status launch_own(rdna_stream *stream, const struct gemm_scaled_args *args, rdna_dtype type) {
  return rdna__gemm_scaled_launch(stream, "gemm_i8", &rdna__gemm_i8_routes, args,
                                  (const char *const[]){rdna_dtype_name(type)});
}

static rdna_status launch_i32(rdna_stream *stream, const struct gemm_args *of) {
  return launch_own(stream, &(struct gemm_scaled_args){.of = *of}, RDNA_I32);
}

static rdna_status launch(rdna_stream *stream, const struct gemm_scaled_args *args, const rdna_dtype types[3]) {
  if (types[2] != RDNA_I32) return launch_own(stream, args, types[2]);
  /* plain sums are what vendors' libraries have as well */
  rdna__gemm_problem problem = {.types = {RDNA_I8, RDNA_I8, RDNA_I32},
                                .args = args->of,
                                .device = rdna_device_get_info(rdna_stream_device(stream)),
                                .own = launch_i32,
                                .own_families = "gemm_i8"};
  return rdna__gemm_run(stream, "gemm_i8", &problem);
}

rdna_status rdna_op_gemm_i8(rdna_stream *stream, const rdna_gemm_epilogue *epilogue, const rdna_tensor *a,
                            const rdna_tensor *scale_a, const rdna_tensor *b, const rdna_tensor *scale_b,
                            const rdna_tensor *c) {
  static const rdna__gemm_scaled how = {"gemm_i8", "gemm_i8: an operand", launch};
  rdna_gemm_epilogue known;
  if (epilogue) {
    RDNA_TRY(RDNA__OPTIONS("gemm_i8", "epilogue", epilogue, &known));
    epilogue = &known;
  }
  RDNA_TRY(rdna__check_tensor("gemm_i8", "a", a));
  RDNA_TRY(rdna__check_dtype("gemm_i8", "a", a, RDNA_I8));
  RDNA_TRY(rdna__check_tensor("gemm_i8", "b", b));
  RDNA_TRY(rdna__check_dtype("gemm_i8", "b", b, RDNA_I8));
  RDNA_TRY(check_types(epilogue, scale_a, scale_b, c));
  return rdna__gemm_scaled_run(stream, &how, epilogue, a, scale_a, b, scale_b, c);
}
