#include "rdna/op/random.h"

#include <math.h>

#include "kernel/host.h"
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/random/random_kernels.h"

enum { MOST_GROUPS = 1 << 14 };

enum { FILL, INTEGERS, DROPOUT, DROPOUT_BACKWARD };
static const rdna__route routes[] = {
    [FILL] = {.name = "fill", .kernels = {"random_fill"}, .when = "uniform and normal numbers, Bernoulli"},
    [INTEGERS] = {.name = "integers", .kernels = {"random_integers"}, .when = "integers"},
    [DROPOUT] = {.name = "dropout", .kernels = {"dropout_{float}"}, .when = "dropout"},
    [DROPOUT_BACKWARD] = {.name = "dropout backward", .kernels = {"dropout_backward_{float}"}, .when = "its gradient"},
};
RDNA_FIXED_ROUTES(rdna__random_routes, "random numbers, dropout", routes)

static rdna_grid grid_for(int64_t count, int64_t values_of_thread) {
  int64_t groups = (count + RANDOM_THREADS * values_of_thread - 1) / (RANDOM_THREADS * values_of_thread);
  return (rdna_grid){(uint32_t)(groups < MOST_GROUPS ? groups : MOST_GROUPS), 1, 1};
}

/* |v| rounded to |dtype|. */
static float rounded(rdna_dtype dtype, float v) {
  return dtype == RDNA_F16 ? f16_to_f32(f32_to_f16(v)) : dtype == RDNA_BF16 ? bf16_to_f32(f32_to_bf16(v)) : v;
}

/* The largest value of |dtype| below |v|, which is itself a value of |dtype|. */
static float before(rdna_dtype dtype, float v) {
  if (dtype == RDNA_F32) return nextafterf(v, -INFINITY);
  uint16_t bits = dtype == RDNA_F16 ? f32_to_f16(v) : f32_to_bf16(v);
  bits = v > 0 ? bits - 1 : v < 0 ? bits + 1 : 0x8001;
  return dtype == RDNA_F16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

static rdna_status fill(const char *op_name, rdna_stream *stream, const rdna_tensor *out,
                        struct random_fill_args args) {
  RDNA_TRY(rdna__check_float(op_name, "out", out));
  RDNA_TRY(rdna__check_contiguous(op_name, "out", out));
  if (args.kind == RANDOM_UNIFORM) {
    const float low = rounded(out->dtype, args.a), high = rounded(out->dtype, args.b);
    args.a = low, args.b = high - low;
    args.bound = low < high ? before(out->dtype, high) : high;
  }
  if (args.kind == RANDOM_EXPONENTIAL) args.bound = out->dtype == RDNA_F16 ? 0x1p-24f : 0x1p-126f;
  if (!isfinite(args.a) || !isfinite(args.b)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: parameters come to %g and %g in %s; they must be finite", op_name,
                      (double)args.a, (double)args.b, rdna_dtype_name(out->dtype));
  }
  args.out = out->data;
  args.count = rdna_tensor_count(out);
  args.dtype = (uint32_t)out->dtype;
  return rdna__launch_named(stream, routes[FILL].kernels[0], grid_for(args.count, 4), &args);
}

rdna_status rdna_op_random_uniform(rdna_stream *stream, uint64_t seed, uint64_t offset, float low, float high,
                                   const rdna_tensor *out) {
  if (!(low <= high)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "random_uniform: low is %g and high is %g; low must not be above",
                      (double)low, (double)high);
  }
  return fill("random_uniform", stream, out,
              (struct random_fill_args){.seed = seed, .offset = offset, .kind = RANDOM_UNIFORM, .a = low, .b = high});
}

rdna_status rdna_op_random_normal(rdna_stream *stream, uint64_t seed, uint64_t offset, float mean, float deviation,
                                  const rdna_tensor *out) {
  if (!(deviation >= 0)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "random_normal: deviation is %g; it must not be negative",
                      (double)deviation);
  }
  return fill(
      "random_normal", stream, out,
      (struct random_fill_args){.seed = seed, .offset = offset, .kind = RANDOM_NORMAL, .a = mean, .b = deviation});
}

static rdna_status check_probability(const char *op_name, float probability) {
  if (probability >= 0 && probability <= 1) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: probability is %g; it must be from 0 to 1", op_name,
                    (double)probability);
}

rdna_status rdna_op_random_bernoulli(rdna_stream *stream, uint64_t seed, uint64_t offset, float probability,
                                     const rdna_tensor *out) {
  RDNA_TRY(check_probability("random_bernoulli", probability));
  return fill("random_bernoulli", stream, out,
              (struct random_fill_args){.seed = seed, .offset = offset, .kind = RANDOM_BERNOULLI, .a = probability});
}

rdna_status rdna_op_random_exponential(rdna_stream *stream, uint64_t seed, uint64_t offset, float rate,
                                       const rdna_tensor *out) {
  if (!(rate > 0)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "random_exponential: rate is %g; it must be above 0", (double)rate);
  }
  return fill("random_exponential", stream, out,
              (struct random_fill_args){.seed = seed, .offset = offset, .kind = RANDOM_EXPONENTIAL, .a = 1 / rate});
}

rdna_status rdna_op_random_integers(rdna_stream *stream, uint64_t seed, uint64_t offset, int64_t low, int64_t high,
                                    const rdna_tensor *out) {
  RDNA_TRY(rdna__check_tensor("random_integers", "out", out));
  if (out->dtype != RDNA_I64) RDNA_TRY(rdna__check_dtype("random_integers", "out", out, RDNA_I32));
  RDNA_TRY(rdna__check_contiguous("random_integers", "out", out));
  bool narrow = out->dtype == RDNA_I32;
  if (low >= high || (narrow && (low < INT32_MIN || high > (int64_t)INT32_MAX + 1))) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "random_integers: low is %lld and high is %lld; low must be below high, and both fit %s",
                      (long long)low, (long long)high, rdna_dtype_name(out->dtype));
  }
  struct random_integers_args args = {.out = out->data,
                                      .count = rdna_tensor_count(out),
                                      .seed = seed,
                                      .offset = offset,
                                      .low = low,
                                      .range = (uint64_t)high - (uint64_t)low,
                                      .is_i64 = !narrow};
  return rdna__launch_named(stream, routes[INTEGERS].kernels[0], grid_for(args.count, 2), &args);
}

/* Checks in, out and mask: contiguous, of one shape, the mask in bytes and overlapping neither. */
static rdna_status check_dropout(const char *op_name, float probability, const char *in_name, const rdna_tensor *in,
                                 const char *out_name, const rdna_tensor *out, const rdna_tensor *mask) {
  RDNA_TRY(check_probability(op_name, probability));
  RDNA_TRY(rdna__check_float(op_name, in_name, in));
  RDNA_TRY(rdna__check_contiguous(op_name, in_name, in));
  RDNA_TRY(rdna__check_float(op_name, out_name, out));
  RDNA_TRY(rdna__check_same_dtype(op_name, out_name, out, in_name, in));
  RDNA_TRY(rdna__check_same_shape(op_name, out_name, out, in_name, in));
  RDNA_TRY(rdna__check_contiguous(op_name, out_name, out));
  RDNA_TRY(rdna__check_tensor(op_name, "mask", mask));
  if (mask->dtype != RDNA_BOOL) RDNA_TRY(rdna__check_dtype(op_name, "mask", mask, RDNA_U8));
  RDNA_TRY(rdna__check_same_shape(op_name, "mask", mask, in_name, in));
  RDNA_TRY(rdna__check_contiguous(op_name, "mask", mask));
  RDNA_TRY(rdna__check_overlap(op_name, out_name, out, in_name, in));
  RDNA_TRY(rdna__check_apart(op_name, "mask", mask, in_name, in));
  return rdna__check_apart(op_name, "mask", mask, out_name, out);
}

/* Nothing is kept at a probability of 1, so nothing is scaled. */
static float dropout_scale(float probability) { return probability < 1 ? 1 / (1 - probability) : 0; }

rdna_status rdna_op_dropout(rdna_stream *stream, uint64_t seed, uint64_t offset, float probability,
                            const rdna_tensor *x, const rdna_tensor *out, const rdna_tensor *mask) {
  RDNA_TRY(check_dropout("dropout", probability, "x", x, "out", out, mask));
  struct dropout_args args = {.x = x->data,
                              .out = out->data,
                              .mask = mask->data,
                              .count = rdna_tensor_count(x),
                              .seed = seed,
                              .offset = offset,
                              .probability = probability,
                              .scale = dropout_scale(probability)};
  rdna_grid grid = grid_for(args.count, x->dtype == RDNA_F32 ? 4 : 8);
  return RDNA__ROUTE_LAUNCH(stream, &routes[DROPOUT], 0, grid, &args, rdna_dtype_name(x->dtype));
}

rdna_status rdna_op_dropout_backward(rdna_stream *stream, float probability, const rdna_tensor *dout,
                                     const rdna_tensor *mask, const rdna_tensor *dx) {
  RDNA_TRY(check_dropout("dropout_backward", probability, "dout", dout, "dx", dx, mask));
  struct dropout_backward_args args = {.dout = dout->data,
                                       .mask = mask->data,
                                       .dx = dx->data,
                                       .count = rdna_tensor_count(dout),
                                       .scale = dropout_scale(probability)};
  rdna_grid grid = grid_for(args.count, dx->dtype == RDNA_F32 ? 4 : 8);
  return RDNA__ROUTE_LAUNCH(stream, &routes[DROPOUT_BACKWARD], 0, grid, &args, rdna_dtype_name(dx->dtype));
}
