#include <float.h>

#include "base/options.h"
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/strided.h"
#include "math/recurrent/check_sequences.h"
#include "math/recurrent/gated_delta_kernels.h"

static bool is_128(const rdna__route *route, const void *d_k) { return *(const int64_t *)d_k == 128; }

enum { D128, ANY };
static const rdna__route routes[] = {
    [D128] = {.name = "128", .kernels = {"gated_delta_d128"}, .when = "keys of 128 values", .applies = is_128},
    [ANY] = {.name = "any", .kernels = {"gated_delta_any"}, .when = "all others, of up to 256"},
};
RDNA_ROUTES(rdna__gated_delta_routes, "gated_delta", routes)

static const char op_name[] = "gated_delta";

struct operands {
  const rdna_gated_delta *options;
  const rdna_tensor *q, *k, *v, *a, *b, *state, *out;
};

static rdna_status check_f32(const char *argument, const rdna_tensor *tensor, int rank) {
  RDNA_TRY(rdna__check_tensor(op_name, argument, tensor));
  RDNA_TRY(rdna__check_dtype(op_name, argument, tensor, RDNA_F32));
  return rdna__check_rank(op_name, argument, tensor, rank);
}

/* Checks the first dimensions, (tokens, k_heads, repeats) or (k_heads, repeats), against those of v. */
static rdna_status check_heads(const char *argument, const rdna_tensor *tensor, const rdna_tensor *v, int first) {
  static const char *const meaning[] = {"the number of tokens", "the number of heads of q",
                                        "how many heads of v one of q serves"};
  for (int i = first; i < 3; i++) {
    RDNA_TRY(rdna__check_size(op_name, argument, tensor, i - first, v->shape[i], meaning[i]));
  }
  return RDNA_OK;
}

/* Checks q or k: vectors of four at multiples of 16 bytes. */
static rdna_status check_keys(const char *argument, const rdna_tensor *keys, const rdna_tensor *v, int64_t d_k) {
  char text[RDNA__TENSOR_TEXT];
  RDNA_TRY(check_f32(argument, keys, 3));
  RDNA_TRY(rdna__check_size(op_name, argument, keys, 0, v->shape[0], "the number of tokens"));
  RDNA_TRY(rdna__check_size(op_name, argument, keys, 1, v->shape[1], "the number of key heads that v has"));
  RDNA_TRY(rdna__check_size(op_name, argument, keys, 2, d_k, "d_k, the last size of state"));
  RDNA_TRY(rdna__check_dense_tail(op_name, argument, keys, 1));
  if (rdna_tensor_count(keys) == 0) return RDNA_OK;
  bool even = (uintptr_t)keys->data % 16 == 0;
  for (int i = 0; i < 2; i++) even = even && (keys->shape[i] == 1 || keys->stride[i] % 4 == 0);
  if (even) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED,
                    "%s: %s is %s at %p with strides %lld and %lld; its address must be a multiple of 16 bytes, its "
                    "strides of 4 values",
                    op_name, argument, rdna__tensor_text(keys, text), keys->data, (long long)keys->stride[0],
                    (long long)keys->stride[1]);
}

static rdna_status check_state(const rdna_tensor *state, const rdna_tensor *v) {
  char text[RDNA__TENSOR_TEXT];
  RDNA_TRY(check_f32("state", state, 5));
  RDNA_TRY(rdna__check_size(op_name, "state", state, 1, v->shape[1], "the number of key heads that v has"));
  RDNA_TRY(rdna__check_size(op_name, "state", state, 2, v->shape[2], "how many heads of v one of q serves"));
  RDNA_TRY(rdna__check_size(op_name, "state", state, 3, v->shape[3], "d_v, the last size of v"));
  RDNA_TRY(rdna__check_contiguous(op_name, "state", state));
  int64_t d_k = state->shape[4];
  if (d_k % 4 != 0 || d_k < 4 || d_k > GATED_DELTA_MOST_KEYS || (uintptr_t)state->data % 16 != 0) {
    return rdna__fail(RDNA_UNSUPPORTED,
                      "%s: state is %s at %p; offered are a d_k, its last size, of a multiple of 4 up to %d, at a "
                      "multiple of 16 bytes",
                      op_name, rdna__tensor_text(state, text), state->data, GATED_DELTA_MOST_KEYS);
  }
  int64_t heads;
  if (__builtin_mul_overflow(v->shape[1], v->shape[2], &heads) || heads > INT32_MAX || v->shape[3] > INT32_MAX) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: v is %s; up to %d heads, of up to %d values, are offered", op_name,
                      rdna__tensor_text(v, text), INT32_MAX, INT32_MAX);
  }
  return RDNA_OK;
}

static rdna_status check_options(const rdna_gated_delta *options, const rdna_tensor *v) {
  RDNA_TRY(check_f32("rate", options->rate, 2));
  RDNA_TRY(check_heads("rate", options->rate, v, 1));
  RDNA_TRY(check_f32("dt", options->dt, 2));
  RDNA_TRY(check_heads("dt", options->dt, v, 1));
  if (!(options->scale >= -FLT_MAX && options->scale <= FLT_MAX)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: scale is %g; it must be finite", op_name, (double)options->scale);
  }
  return rdna__check_epsilon(op_name, (double)options->epsilon);
}

static rdna_status check_operands(const struct operands *of) {
  const rdna_tensor *v = of->v;
  RDNA_TRY(check_f32("v", v, 4));
  RDNA_TRY(rdna__check_dense_tail(op_name, "v", v, 1));
  RDNA_TRY(check_state(of->state, v));
  RDNA_TRY(check_keys("q", of->q, v, of->state->shape[4]));
  RDNA_TRY(check_keys("k", of->k, v, of->state->shape[4]));
  RDNA_TRY(check_f32("a", of->a, 3));
  RDNA_TRY(check_heads("a", of->a, v, 0));
  RDNA_TRY(check_f32("b", of->b, 3));
  RDNA_TRY(check_heads("b", of->b, v, 0));
  RDNA_TRY(check_f32("out", of->out, 4));
  RDNA_TRY(rdna__check_same_shape(op_name, "out", of->out, "v", v));
  RDNA_TRY(rdna__check_dense_tail(op_name, "out", of->out, 1));
  RDNA_TRY(rdna__check_distinct(op_name, of->out));
  return check_options(of->options, v);
}

/* Strides of a tensor whose first dimensions are |first|, 0 for tokens, 1 for key heads, and those after it. */
static struct gated_delta_strides strides_of(const rdna_tensor *tensor, int first, bool repeats) {
  const int64_t *stride = tensor->stride;
  return (struct gated_delta_strides){first ? 0 : stride[0], stride[1 - first], repeats ? stride[2 - first] : 0};
}

static void fill_args(const struct operands *of, struct gated_delta_args *args) {
  const rdna_gated_delta *options = of->options;
  args->q = of->q->data, args->q_at = strides_of(of->q, 0, false);
  args->k = of->k->data, args->k_at = strides_of(of->k, 0, false);
  args->v = of->v->data, args->v_at = strides_of(of->v, 0, true);
  args->a = of->a->data, args->a_at = strides_of(of->a, 0, true);
  args->b = of->b->data, args->b_at = strides_of(of->b, 0, true);
  args->out = of->out->data, args->out_at = strides_of(of->out, 0, true);
  args->rate = options->rate->data, args->rate_at = strides_of(options->rate, 1, true);
  args->dt = options->dt->data, args->dt_at = strides_of(options->dt, 1, true);
  args->state = of->state->data;
  args->k_heads = (int32_t)of->v->shape[1], args->repeats = (int32_t)of->v->shape[2];
  args->d_v = (int32_t)of->v->shape[3], args->d_k = (int32_t)of->state->shape[4];
  args->scale = options->scale, args->epsilon = options->epsilon;
}

rdna_status rdna_op_gated_delta(rdna_stream *stream, const rdna_gated_delta *options, const rdna_sequences *sequences,
                                const rdna_tensor *q, const rdna_tensor *k, const rdna_tensor *v, const rdna_tensor *a,
                                const rdna_tensor *b, const rdna_tensor *state, const rdna_tensor *out) {
  rdna_gated_delta known;
  rdna_sequences order;
  struct gated_delta_args args = {0};
  RDNA_TRY(RDNA__OPTIONS(op_name, "options", options, &known));
  const struct operands of = {&known, q, k, v, a, b, state, out};
  RDNA_TRY(check_operands(&of));
  RDNA_TRY(rdna__check_sequences(op_name, sequences, v->shape[0], state, &order, &args.sequences));
  const rdna__named written[] = {{"out", out}, {"state", state}};
  const rdna__named read[] = {{"q", q},
                              {"k", k},
                              {"v", v},
                              {"a", a},
                              {"b", b},
                              {"rate", known.rate},
                              {"dt", known.dt},
                              {"starts", order.starts},
                              {"slots", order.slots}};
  RDNA_TRY(rdna__check_written_apart(op_name, written, 2, read, 9, 0));
  RDNA_TRY(rdna__check_stream(op_name, stream));
  if (rdna_tensor_count(out) == 0) return RDNA_OK;
  fill_args(&of, &args);
  const int64_t d_k = args.d_k;
  const rdna__route *route = rdna__route_choose(&rdna__gated_delta_routes, &d_k);
  const int rows = route == &routes[D128] ? GATED_DELTA_ROWS_128 : GATED_DELTA_ROWS_ANY;
  int64_t slices = rdna__divide_up(args.d_v, GATED_DELTA_SLICE(rows)), groups;
  if (__builtin_mul_overflow((int64_t)args.k_heads * args.repeats, slices, &groups)) groups = INT64_MAX;
  rdna_grid grid = {0, (uint32_t)args.sequences.count, 1};
  RDNA_TRY(rdna__check_groups(op_name, groups, 1, &grid.x));
  return RDNA__ROUTE_LAUNCH(stream, route, 0, grid, &args, NULL);
}
