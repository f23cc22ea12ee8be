/* moe_linear: products of rows with the weights of the experts that their tokens chose. */
#include "base/options.h"
#include "device/traits.h"
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/scratch.h"
#include "math/moe/moe_few_kernels.h"
#include "math/moe/moe_gated.h"
#include "math/quant/quant.h"
#include "rdna/op/moe.h"
#include "rdna/op/movement.h"

static const char NAME[] = "moe_linear";

/* From so many slots for each expert on, sorting them pays: a tile reads its expert's weights once for all its rows. A
 * guess, not measured. */
enum { SLOTS_FOR_TILES = 4 };
/* Up to so many slots for each expert, most of them in a tile of MOE_FEW_ROWS have the same. */
enum { SLOTS_FOR_FEW = 12 };

static bool is_aligned(const void *data, int64_t row_bytes) {
  return ((uintptr_t)data | (uint64_t)row_bytes) % 16 == 0;
}

/* A problem, from which its route is chosen. */
struct problem {
  const struct moe_product_args *args;
  rdna_dtype x, weights;
  bool divides_work; /* as the host does: its twins of some kernels are there to compare with */
};

static int64_t slots_of(const struct problem *p) { return (int64_t)p->args->tokens * p->args->top; }

/* Each weight is read once for an expert's slots, and unpacked in registers. */
static bool have_few_rows(const rdna__route *route, const void *which) {
  const struct problem *p = which;
  const struct gemm_args *product = &p->args->product;
  int64_t rows = p->args->x_of_slots ? slots_of(p) : p->args->tokens;
  return !p->divides_work && p->x == RDNA_F16 && rdna_dtype_block_values(p->weights) > 1 &&
         slots_of(p) <= SLOTS_FOR_FEW * (int64_t)p->args->experts && is_aligned(product->a, product->lda * 2) &&
         product->lda <= INT32_MAX / rows;
}
/* With more slots than experts some share one, whose weights a tile reads once for them. */
static bool fit_matrix_units(const rdna__route *route, const void *which) {
  const struct problem *p = which;
  bool blocks = rdna_dtype_block_values(p->weights) > 1;
  return p->x != RDNA_F32 && (p->x == p->weights || (p->x == RDNA_F16 && blocks)) && slots_of(p) > p->args->experts;
}
static bool are_few(const rdna__route *route, const void *which) {
  const struct problem *p = which;
  const struct gemm_args *product = &p->args->product;
  int64_t slots = slots_of(p);
  bool aligned = is_aligned(product->a, product->lda * 4);
  if (rdna_dtype_block_values(p->weights) == 1)
    aligned = aligned && is_aligned(product->b, product->ldb * (int64_t)rdna_dtype_block_bytes(p->weights));
  return aligned && slots <= SLOTS_FOR_TILES * (int64_t)p->args->experts && slots <= RDNA__GRID_YZ_MAX;
}

enum { FEW_ROWS, MATRIX, FEW, TILES };
static const rdna__route routes[] = {
    [FEW_ROWS] = {.name = "few rows on matrix units",
                  .kernels = {"moe_sort", "moe_few_{blocks}", "moe_sum_f32"},
                  .when = "a GPU, rows of f16 at multiples of 16 bytes, weights in blocks, at most 12 slots for each "
                          "expert: unpacked in registers",
                  .applies = have_few_rows},
    [MATRIX] = {.name = "matrix units",
                .kernels = {"moe_sort", "moe_mma_{f16|bf16}_{f16|bf16}", "moe_mma_f16_{blocks}", "moe_sum_f32"},
                .when = "x of 16 bits, weights of its type or with f16 blocks, more slots than experts",
                .applies = fit_matrix_units},
    [FEW] = {.name = "slots",
             .kernels = {"moe_gemv_{f32|f16|bf16}", "moe_gemv_{blocks}", "moe_sum_f32"},
             .when = "others, x of 16 bits copied to f32; at most 4 slots for each expert, aligned rows: each slot "
                     "reads its expert's weights",
             .applies = are_few},
    [TILES] = {.name = "tiles",
               .kernels = {"moe_sort", "moe_gemm_{f32|f16|bf16}", "moe_gemm_{blocks}", "moe_sum_f32"},
               .when = "more: slots of an expert share tiles of its weights"},
};
RDNA_ROUTES(rdna__moe_linear_routes, "moe_linear", routes)

/* Everything of one call. */
struct call {
  rdna_stream *stream;
  const rdna_moe_product *options;
  const rdna_tensor *x, *weights, *indices, *out;
  int64_t tokens, top, experts, n, k;
  struct moe_product_args args;
  const rdna__route *route;
};

static rdna_status check_per_slot(const char *argument, const rdna_tensor *tensor, rdna_dtype dtype) {
  RDNA_TRY(rdna__check_tensor(NAME, argument, tensor));
  RDNA_TRY(rdna__check_dtype(NAME, argument, tensor, dtype));
  RDNA_TRY(rdna__check_rank(NAME, argument, tensor, 2));
  return rdna__check_contiguous(NAME, argument, tensor);
}

static rdna_status check_weights(struct call *c) {
  const rdna_tensor *w = c->weights;
  RDNA_TRY(rdna__check_tensor(NAME, "weights", w));
  RDNA_TRY(rdna__check_rank(NAME, "weights", w, 3));
  c->experts = w->shape[0], c->n = w->shape[1], c->k = w->shape[2];
  if (rdna_dtype_block_values(w->dtype) > 1) {
    RDNA_TRY(rdna__check_blocks(NAME, "weights", w));
    rdna_tensor bytes = rdna__blocks_as_bytes(w);
    return rdna__check_apart(NAME, "out", c->out, "weights", &bytes);
  }
  RDNA_TRY(rdna__check_float(NAME, "weights", w));
  RDNA_TRY(rdna__check_contiguous(NAME, "weights", w));
  return rdna__check_apart(NAME, "out", c->out, "weights", w);
}

static rdna_status check_options(struct call *c) {
  const rdna_tensor *bias = c->options->bias, *shares = c->options->shares;
  if (c->options->add && !shares) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: add is set without shares; rows of slots are written, never added to",
                      NAME);
  }
  if (shares) {
    RDNA_TRY(check_per_slot("shares", shares, RDNA_F32));
    RDNA_TRY(rdna__check_same_shape(NAME, "shares", shares, "indices", c->indices));
    RDNA_TRY(rdna__check_apart(NAME, "out", c->out, "shares", shares));
  }
  if (!bias) return RDNA_OK;
  RDNA_TRY(check_per_slot("bias", bias, RDNA_F32));
  RDNA_TRY(rdna__check_size(NAME, "bias", bias, 0, c->experts, "the experts of weights"));
  RDNA_TRY(rdna__check_size(NAME, "bias", bias, 1, c->n, "n of weights"));
  c->args.product.bias = bias->data;
  return rdna__check_apart(NAME, "out", c->out, "bias", bias);
}

/* Checks x, with a row for each token or each slot, and out, with one for each slot or, with shares, each token. */
static rdna_status check_rows(struct call *c) {
  const rdna_tensor *x = c->x, *out = c->out;
  int64_t rows, size, out_rows;
  RDNA_TRY(rdna__check_float(NAME, "x", x));
  RDNA_TRY(rdna__check_tensor(NAME, "out", out));
  RDNA_TRY(rdna__check_dtype(NAME, "out", out, RDNA_F32));
  RDNA_TRY(check_per_slot("indices", c->indices, RDNA_I32));
  c->tokens = c->indices->shape[0], c->top = c->indices->shape[1];
  RDNA_TRY(check_weights(c));
  c->args.x_of_slots = x->rank == 3;
  RDNA_TRY(rdna__check_rank(NAME, "x", x, c->args.x_of_slots ? 3 : 2));
  if (out->rank != (c->options->shares ? 2 : 3)) {
    char text[RDNA__TENSOR_TEXT];
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: out is %s; with shares its rank must be 2, without 3", NAME,
                      rdna__tensor_text(out, text));
  }
  RDNA_TRY(rdna__check_size(NAME, "x", x, 0, c->tokens, "the tokens of indices"));
  RDNA_TRY(rdna__check_size(NAME, "out", out, 0, c->tokens, "the tokens of indices"));
  if (x->rank == 3) RDNA_TRY(rdna__check_size(NAME, "x", x, 1, c->top, "the slots of a token in indices"));
  if (out->rank == 3) RDNA_TRY(rdna__check_size(NAME, "out", out, 1, c->top, "the slots of a token in indices"));
  RDNA_TRY(rdna__check_size(NAME, "x", x, x->rank - 1, c->k, "k of weights"));
  RDNA_TRY(rdna__check_size(NAME, "out", out, out->rank - 1, c->n, "n of weights"));
  RDNA_TRY(rdna__check_rows(NAME, "x", x, &rows, &size, &c->args.product.lda));
  RDNA_TRY(rdna__check_rows(NAME, "out", out, &out_rows, &size, &c->args.product.ldc));
  RDNA_TRY(rdna__check_written_rows(NAME, "out", out, out_rows, c->n, c->args.product.ldc));
  RDNA_TRY(rdna__check_apart(NAME, "out", out, "x", x));
  return rdna__check_apart(NAME, "out", out, "indices", c->indices);
}

static rdna_status check_sizes(const struct call *c) {
  if (c->top == 0 || c->experts == 0) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%s: indices has %lld slots for each token, and weights %lld experts; there must be one at least",
                      NAME, (long long)c->top, (long long)c->experts);
  }
  if (c->experts <= MOE_EXPERTS && c->n <= RDNA__GEMM_SIZE_MAX && c->k <= RDNA__GEMM_SIZE_MAX &&
      c->tokens <= INT32_MAX / (c->top > 0 ? c->top : 1) - MOE_EXPERTS)
    return RDNA_OK;
  char text[RDNA__TENSOR_TEXT], other[RDNA__TENSOR_TEXT];
  return rdna__fail(RDNA_UNSUPPORTED,
                    "%s: weights is %s and indices %s; up to %d experts, and sizes of 31 bits, are "
                    "offered",
                    NAME, rdna__tensor_text(c->weights, text), rdna__tensor_text(c->indices, other), MOE_EXPERTS);
}

static rdna_status launch_few(const struct call *c) {
  bool plain = rdna_dtype_block_values(c->weights->dtype) == 1;
  rdna_grid grid = {0, (uint32_t)(c->tokens * c->top), 1};
  int64_t rows = c->args.up ? 2 * c->n : c->n;
  RDNA_TRY(rdna__check_groups(NAME, rows, plain ? GEMV_ROWS_PER_GROUP(1) : QUANT_GEMV_GROUP_ROWS, &grid.x));
  /* work-groups over n take turns where those of all slots would be more than run at once */
  const rdna_device_info *device = rdna_device_get_info(rdna_stream_device(c->stream));
  uint32_t together = MOE_GEMV_RESIDENT(c->weights->dtype) * (uint32_t)device->compute_units / grid.y;
  if (grid.x > together && !plain) grid.x = together > 0 ? together : 1;
  return RDNA__ROUTE_LAUNCH(c->stream, &routes[FEW], plain ? 0 : 1, grid, &c->args, rdna_dtype_name(c->weights->dtype));
}

/* Adds up the rows |y| (tokens, top, n) of slots by their shares, into the call's out. */
static rdna_status add_up(const struct call *c, const float *y, int kernel) {
  const struct moe_sum_args sum = {.y = y,
                                   .shares = c->options->shares->data,
                                   .chosen = c->args.chosen,
                                   .out = c->out->data,
                                   .out_stride = c->out->stride[0],
                                   .tokens = c->tokens,
                                   .n = c->n,
                                   .top = (int32_t)c->top,
                                   .experts = (int32_t)c->experts,
                                   .add = c->options->add};
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups(NAME, c->tokens * c->n, 256, &grid.x));
  return RDNA__ROUTE_LAUNCH(c->stream, c->route, kernel, grid, &sum, NULL);
}

/* With shares the products of slots go to scratch memory, from where they are added up for each token. */
static rdna_status take_slots(struct call *c, rdna__scratch *scratch) {
  c->args.product.ldc = c->n;
  return rdna__scratch_take(scratch, (size_t)(c->tokens * c->top * c->n) * sizeof(float), &c->args.product.c);
}

/* Slots are multiplied at once and added up in a second launch, as lanes that take a token's in turn wait for memory at
 * each: on an H200 Qwen3-30B-A3B's shape decodes 297 tokens a second so, and 259 otherwise. */
static rdna_status run_few(struct call *c, rdna__scratch *scratch) {
  if (!c->options->shares) return launch_few(c);
  RDNA_TRY(take_slots(c, scratch));
  RDNA_TRY(launch_few(c));
  return add_up(c, c->args.product.c, 2);
}

/* Of the tiles of a call's route. */
static int32_t tile_rows(const struct call *c) { return c->route == &routes[FEW_ROWS] ? MOE_FEW_ROWS : MOE_TILE; }

static rdna_status sort_slots(struct call *c, rdna__scratch *scratch) {
  int64_t slots = c->tokens * c->top, partly = slots < c->experts + 1 ? slots : c->experts + 1;
  struct moe_sort_args args = {.chosen = c->args.chosen,
                               .slots = (int32_t)slots,
                               .experts = (int32_t)c->experts,
                               .tile_rows = tile_rows(c),
                               .most_tiles = (int32_t)(slots / tile_rows(c) + partly)};
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)slots * sizeof(int32_t), (void **)&args.order));
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)args.most_tiles * 3 * sizeof(int32_t), (void **)&args.tiles));
  c->args.order = args.order, c->args.tiles = args.tiles, c->args.most_tiles = args.most_tiles;
  rdna_grid grid = {(uint32_t)c->experts + 1, 1, 1};
  return RDNA__ROUTE_LAUNCH(c->stream, c->route, 0, grid, &args, NULL);
}

static rdna_status multiply_few_rows(const struct call *c) {
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups(NAME, c->args.most_tiles * rdna__divide_up(c->n, MOE_FEW_COLUMNS), 1, &grid.x));
  return RDNA__ROUTE_LAUNCH(c->stream, c->route, 1, grid, &c->args, rdna_dtype_name(c->weights->dtype));
}

static rdna_status multiply_tiles(const struct call *c) {
  if (c->route == &routes[FEW_ROWS]) return multiply_few_rows(c);
  bool plain = rdna_dtype_block_values(c->weights->dtype) == 1, both = plain && c->route == &routes[MATRIX];
  const char *weights = rdna_dtype_name(c->weights->dtype);
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups(NAME, c->args.most_tiles * rdna__divide_up(c->n, MOE_TILE), 1, &grid.x));
  return RDNA__ROUTE_LAUNCH(c->stream, c->route, plain ? 1 : 2, grid, &c->args,
                            both ? rdna_dtype_name(c->x->dtype) : weights, weights);
}

static rdna_status run_tiles(struct call *c, rdna__scratch *scratch) {
  RDNA_TRY(sort_slots(c, scratch));
  if (!c->options->shares) return multiply_tiles(c);
  RDNA_TRY(take_slots(c, scratch));
  RDNA_TRY(multiply_tiles(c));
  return add_up(c, c->args.product.c, c->route == &routes[FEW_ROWS] ? 2 : 3);
}

/* x as f32, beside each other. */
static rdna_status widen(struct call *c, rdna__scratch *scratch) {
  rdna_tensor x;
  RDNA_TRY(rdna__scratch_tensor(scratch, RDNA_F32, c->x->rank, c->x->shape, &x));
  c->args.product.a = x.data, c->args.product.lda = c->k;
  return rdna_op_copy(c->stream, c->x, &x);
}

static rdna_status run(struct call *c, rdna__scratch *scratch) {
  const rdna_device_info *device = rdna_device_get_info(rdna_stream_device(c->stream));
  struct problem problem = {&c->args, c->x->dtype, c->weights->dtype, rdna__device_traits_of(device)->divides_work};
  c->route = rdna__route_choose(&rdna__moe_linear_routes, &problem);
  if (c->route != &routes[FEW_ROWS] && c->route != &routes[MATRIX] && c->x->dtype != RDNA_F32) {
    RDNA_TRY(widen(c, scratch));
    problem.x = RDNA_F32;
    c->route = rdna__route_choose(&rdna__moe_linear_routes, &problem);
  }
  return c->route == &routes[FEW] ? run_few(c, scratch) : run_tiles(c, scratch);
}

rdna_status rdna_op_moe_linear(rdna_stream *stream, const rdna_moe_product *options, const rdna_tensor *x,
                               const rdna_tensor *weights, const rdna_tensor *indices, const rdna_tensor *out) {
  rdna_moe_product known;
  RDNA_TRY(RDNA__OPTIONS(NAME, "options", options, &known));
  struct call c = {.stream = stream, .options = &known, .x = x, .weights = weights, .indices = indices, .out = out};
  RDNA_TRY(rdna__check_stream(NAME, stream));
  RDNA_TRY(check_rows(&c));
  RDNA_TRY(check_options(&c));
  if (rdna_tensor_count(out) == 0) return RDNA_OK;
  RDNA_TRY(check_sizes(&c));
  c.args.product.a = x->data, c.args.product.b = weights->data, c.args.product.c = out->data;
  c.args.product.m = 1, c.args.product.n = (int32_t)c.n, c.args.product.k = (int32_t)c.k;
  c.args.product.ldb = c.k, c.args.product.stride_b = c.n * c.k;
  c.args.product.batch = 1, c.args.product.alpha = 1, c.args.product.flags = GEMM_B_TRANSPOSED;
  if (known.may_round) c.args.product.flags |= GEMM_MAY_ROUND;
  c.args.chosen = indices->data;
  c.args.tokens = (int32_t)c.tokens, c.args.top = (int32_t)c.top, c.args.experts = (int32_t)c.experts;
  rdna__scratch scratch = {.stream = stream, .holder = NAME};
  return rdna__scratch_release(&scratch, run(&c, &scratch));
}

/* ---- a gate and what it multiplies ---- */

static bool are_blocks_of_experts(const rdna_tensor *t) {
  return t->rank == 3 && rdna_dtype_block_values(t->dtype) > 1 && t->stride[2] == 1 && t->stride[1] == t->shape[2] &&
         t->stride[0] % t->shape[2] == 0 && (uintptr_t)t->data % (uintptr_t)rdna__blocks_alignment(t->dtype) == 0;
}

static bool describe_gated(const rdna_tensor *x, const rdna_tensor *gate, const rdna_tensor *up,
                           const rdna_tensor *indices, struct call *c) {
  if (x->dtype != RDNA_F32 || x->rank != 2 || x->stride[1] != 1 || indices->rank != 2) return false;
  if (rdna_tensor_count(x) == 0 || rdna_tensor_count(gate) == 0 || rdna_tensor_count(indices) == 0) return false;
  if (gate->dtype != up->dtype || !are_blocks_of_experts(gate) || !are_blocks_of_experts(up)) return false;
  for (int i = 0; i < 3; i++)
    if (gate->shape[i] != up->shape[i]) return false;
  if (gate->stride[0] != up->stride[0] || gate->shape[2] != x->shape[1]) return false;
  c->tokens = indices->shape[0], c->top = indices->shape[1];
  c->experts = gate->shape[0], c->n = gate->shape[1], c->k = gate->shape[2];
  if (c->experts > MOE_EXPERTS || 2 * c->n > RDNA__GEMM_SIZE_MAX || c->k > RDNA__GEMM_SIZE_MAX) return false;
  if (x->shape[0] != c->tokens || c->tokens > RDNA__GRID_YZ_MAX) return false;
  c->args.product = (struct gemm_args){.a = x->data,
                                       .b = gate->data,
                                       .lda = x->stride[0],
                                       .ldb = c->k,
                                       .ldc = c->n,
                                       .stride_b = gate->stride[0],
                                       .m = 1,
                                       .n = (int32_t)c->n,
                                       .k = (int32_t)c->k,
                                       .batch = 1,
                                       .flags = GEMM_B_TRANSPOSED,
                                       .alpha = 1};
  c->args.up = up->data, c->args.chosen = indices->data;
  c->args.tokens = (int32_t)c->tokens, c->args.top = (int32_t)c->top, c->args.experts = (int32_t)c->experts;
  const struct problem problem = {&c->args, RDNA_F32, gate->dtype, false};
  return are_few(NULL, &problem);
}

bool rdna__moe_is_gated(const rdna_tensor *x, const rdna_tensor *gate, const rdna_tensor *up,
                        const rdna_tensor *indices) {
  struct call c = {0};
  return describe_gated(x, gate, up, indices, &c);
}

rdna_status rdna__moe_gated(rdna_stream *stream, const rdna__moe_gate *options, const rdna_tensor *x,
                            const rdna_tensor *gate, const rdna_tensor *up, const rdna_tensor *indices,
                            const rdna_tensor *out) {
  struct call c = {.stream = stream, .weights = gate, .x = x, .indices = indices, .out = out};
  if (!describe_gated(x, gate, up, indices, &c))
    return rdna__fail(RDNA_UNSUPPORTED, "%s: no one launch has this gate and what it multiplies", NAME);
  c.args.product.activation = (uint32_t)options->activation;
  c.args.limit = options->limit, c.args.slope = options->slope;
  if (options->gate_bias) c.args.product.bias = options->gate_bias->data, c.args.up_bias = options->up_bias->data;
  if (options->norm)
    c.args.steps = (struct gemv_steps){.norm = options->norm->data, .epsilon = (float)options->epsilon};
  if (options->may_round) c.args.product.flags |= GEMM_MAY_ROUND;
  c.args.product.c = out->data;
  c.route = &routes[FEW];
  return launch_few(&c);
}
