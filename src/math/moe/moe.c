/* moe_route: which experts a token takes. */
#include "rdna/op/moe.h"

#include "base/options.h"
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/moe/moe_kernels.h"

static const char NAME[] = "moe_route";

static const rdna__route routes[] = {{.name = "route", .kernels = {"moe_route_f32"}, .when = "all"}};
RDNA_FIXED_ROUTES(rdna__moe_route_routes, "moe_route", routes)

static rdna_status check_groups(const rdna_moe_routing *options, int64_t experts) {
  if ((unsigned)options->score >= RDNA_MOE_SCORE_COUNT) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: the score is number %d; there are 0 to %d", NAME, (int)options->score,
                      RDNA_MOE_SCORE_COUNT - 1);
  }
  if (options->groups < 0 || (options->groups > 1 && experts % options->groups != 0)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%s: groups is %d, and logits has %lld experts, which must be a multiple of it", NAME,
                      options->groups, (long long)experts);
  }
  if (options->groups <= 1) return RDNA_OK;
  if (options->groups > MOE_GROUPS) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: groups is %d; up to %d are offered", NAME, options->groups, MOE_GROUPS);
  }
  if (options->groups_kept < 1 || options->groups_kept > options->groups) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: groups_kept is %d; it must be 1 to groups, %d", NAME,
                      options->groups_kept, options->groups);
  }
  if (options->group_best < 1 || options->group_best > 2) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: group_best is %d; it must be 1 or 2", NAME, options->group_best);
  }
  return RDNA_OK;
}

/* One result of each token: (tokens, k), contiguous. */
static rdna_status check_result(const char *argument, const rdna_tensor *tensor, rdna_dtype dtype, int64_t tokens,
                                const rdna_tensor *logits) {
  RDNA_TRY(rdna__check_tensor(NAME, argument, tensor));
  RDNA_TRY(rdna__check_dtype(NAME, argument, tensor, dtype));
  RDNA_TRY(rdna__check_rank(NAME, argument, tensor, 2));
  RDNA_TRY(rdna__check_size(NAME, argument, tensor, 0, tokens, "the tokens of logits"));
  RDNA_TRY(rdna__check_contiguous(NAME, argument, tensor));
  return rdna__check_apart(NAME, argument, tensor, "logits", logits);
}

static rdna_status check_bias(const rdna_tensor *bias, const rdna_tensor *indices, const rdna_tensor *weights,
                              int64_t experts) {
  if (!bias) return RDNA_OK;
  RDNA_TRY(rdna__check_tensor(NAME, "bias", bias));
  RDNA_TRY(rdna__check_dtype(NAME, "bias", bias, RDNA_F32));
  RDNA_TRY(rdna__check_rank(NAME, "bias", bias, 1));
  RDNA_TRY(rdna__check_size(NAME, "bias", bias, 0, experts, "the experts of logits"));
  RDNA_TRY(rdna__check_contiguous(NAME, "bias", bias));
  RDNA_TRY(rdna__check_apart(NAME, "indices", indices, "bias", bias));
  return rdna__check_apart(NAME, "weights", weights, "bias", bias);
}

/* Sizes that the kernel can count, and a k for which there are experts enough. */
static rdna_status check_sizes(const rdna_moe_routing *options, int64_t tokens, int64_t experts, int64_t k) {
  if (experts > MOE_EXPERTS || k > MOE_CHOSEN || tokens > INT32_MAX) {
    return rdna__fail(
        RDNA_UNSUPPORTED,
        "%s: logits has %lld tokens and %lld experts, of which indices takes %lld; up to %d, %d and %d are "
        "offered",
        NAME, (long long)tokens, (long long)experts, (long long)k, INT32_MAX, MOE_EXPERTS, MOE_CHOSEN);
  }
  int64_t open = options->groups > 1 ? experts / options->groups * options->groups_kept : experts;
  if (k <= open || tokens == 0) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: indices takes %lld experts of each token; it may choose from %lld",
                    NAME, (long long)k, (long long)open);
}

rdna_status rdna_op_moe_route(rdna_stream *stream, const rdna_moe_routing *options, const rdna_tensor *logits,
                              const rdna_tensor *indices, const rdna_tensor *weights) {
  rdna_moe_routing known;
  int64_t tokens, experts, stride;
  RDNA_TRY(RDNA__OPTIONS(NAME, "options", options, &known));
  RDNA_TRY(rdna__check_stream(NAME, stream));
  RDNA_TRY(rdna__check_tensor(NAME, "logits", logits));
  RDNA_TRY(rdna__check_dtype(NAME, "logits", logits, RDNA_F32));
  RDNA_TRY(rdna__check_rank(NAME, "logits", logits, 2));
  RDNA_TRY(rdna__check_rows(NAME, "logits", logits, &tokens, &experts, &stride));
  tokens = logits->shape[0], experts = logits->shape[1];
  RDNA_TRY(check_groups(&known, experts));
  RDNA_TRY(check_result("indices", indices, RDNA_I32, tokens, logits));
  RDNA_TRY(check_result("weights", weights, RDNA_F32, tokens, logits));
  RDNA_TRY(rdna__check_same_shape(NAME, "weights", weights, "indices", indices));
  RDNA_TRY(rdna__check_apart(NAME, "weights", weights, "indices", indices));
  RDNA_TRY(check_bias(known.bias, indices, weights, experts));
  RDNA_TRY(check_sizes(&known, tokens, experts, indices->shape[1]));
  if (rdna_tensor_count(indices) == 0) return RDNA_OK;
  struct moe_route_args args = {.logits = logits->data,
                                .bias = known.bias ? known.bias->data : NULL,
                                .indices = indices->data,
                                .weights = weights->data,
                                .stride = stride,
                                .tokens = (int32_t)tokens,
                                .experts = (int32_t)experts,
                                .chosen = (int32_t)indices->shape[1],
                                .score = known.score,
                                .normalised = known.normalised,
                                .groups = known.groups,
                                .groups_kept = known.groups_kept,
                                .group_best = known.group_best,
                                .scale = known.scale};
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups(NAME, tokens, MOE_ROUTE_TOKENS, &grid.x));
  return RDNA__ROUTE_LAUNCH(stream, &routes[0], 0, grid, &args, NULL);
}
