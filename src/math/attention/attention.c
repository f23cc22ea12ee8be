#include "rdna/op/attention.h"

#include <string.h>

#include "base/options.h"
#include "device/traits.h"
#include "math/attention/attention_kernels.h"
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"

static const char *const NAME = "attention";

/* Up to this many tokens of a sequence, each reads the cache by itself; from there on they share tiles. */
enum { DECODE_QUERIES = 8 };
/* A split is worth its share of the combining when it has this many positions. */
enum { SPLIT_POSITIONS = 64, MOST_SPLITS = 256, GROUPS_PER_UNIT = 4 };

static int heads_per_block(int64_t heads_per_kv) { return heads_per_kv == 1 ? 1 : heads_per_kv <= 4 ? 4 : 8; }

struct problem {
  const rdna_attention *options;
  int64_t tokens, d, dv;
  bool latent; /* values lie in the keys, behind a few first numbers */
};

static bool is_decoding(const rdna__route *route, const void *problem) {
  const struct problem *p = problem;
  return p->options->max_queries <= DECODE_QUERIES && p->tokens <= RDNA__GRID_YZ_MAX;
}

static bool is_decoding_latent(const rdna__route *route, const void *problem) {
  const struct problem *p = problem;
  return p->latent && is_decoding(route, problem);
}
static bool is_decoding_wide(const rdna__route *route, const void *problem) {
  const struct problem *p = problem;
  return (p->d != p->dv || p->d > ATTENTION_MAX_D) && p->d <= ATTENTION_WIDE_DV && is_decoding(route, problem);
}
static bool is_decoding_narrow(const rdna__route *route, const void *problem) {
  const struct problem *p = problem;
  return p->d == p->dv && p->d <= ATTENTION_MAX_D && is_decoding(route, problem);
}

enum { DECODE, LATENT, WIDE, PREFILL };
static const rdna__route routes[] = {
    [DECODE] = {.name = "decode",
                .kernels = {"attention_decode_{f32|f16|bf16|q8_0}_{h1|h4|h8}", "attention_combine"},
                .when = "at most 8 queries of a sequence: heads that share keys together, the cache in splits",
                .applies = is_decoding_narrow,
                .measured_on = "H200"},
    [LATENT] = {.name = "latent",
                .kernels = {"attention_decode_{float}_latent", "attention_combine"},
                .when = "the same where values are the last of the keys' numbers: both are read at once",
                .applies = is_decoding_latent},
    [WIDE] = {.name = "wide",
              .kernels = {"attention_decode_{float}_wide", "attention_combine"},
              .when = "the same with heads above 256, or of other sizes in keys and values",
              .applies = is_decoding_wide},
    [PREFILL] = {.name = "prefill",
                 .kernels = {"attention_prefill_{f32|f16}_{d128|d256}"},
                 .when = "more queries: in tiles"},
};
RDNA_ROUTES(rdna__attention_routes, "attention, attention_paged", routes)

/* |latent|, see struct problem, is of the caches. */
static const rdna__route *route_of(const rdna_attention *options, const struct attention_args *args, bool latent) {
  struct problem problem = {options, args->tokens, args->d, args->dv, latent};
  return rdna__route_choose(&rdna__attention_routes, &problem);
}

/* Enough groups to fill the device, none with too little to do. Where it was measured, on an H200, a compute unit has
 * one group of 8 heads at a time, or two of fewer: more would wait for these. Elsewhere GROUPS_PER_UNIT is a guess. */
static int32_t choose_splits(const rdna_device *device, const rdna_attention *options, int64_t tokens, int64_t heads,
                             int64_t kv_heads) {
  const struct problem problem = {.options = options, .tokens = tokens};
  if (!is_decoding(NULL, &problem) || tokens <= 0 || heads <= 0 || kv_heads <= 0) return 1;
  int64_t heads_per_kv = heads / kv_heads,
          blocks = kv_heads * rdna__divide_up(heads_per_kv, heads_per_block(heads_per_kv)) * tokens;
  int64_t length = options->window > 0 && options->window < options->max_length ? options->window : options->max_length;
  if (options->split > 0) {
    int64_t splits = rdna__divide_up(length, options->split);
    return splits < 1 ? 1 : splits > MOST_SPLITS ? MOST_SPLITS : (int32_t)splits;
  }
  const rdna_device_info *info = rdna_device_get_info(device);
  int64_t units = info->compute_units, at_once = heads_per_block(heads_per_kv) == 8 ? 1 : 2;
  int64_t wanted = rdna__device_traits_of(info)->is_measured ? units * at_once / blocks
                                                             : rdna__divide_up(units * GROUPS_PER_UNIT, blocks);
  int64_t useful = length / SPLIT_POSITIONS;
  int64_t splits = wanted < useful ? wanted : useful;
  return splits < 1 ? 1 : splits > MOST_SPLITS ? MOST_SPLITS : (int32_t)splits;
}

/* Sums first, then the pairs of maximum and sum; dv being a multiple of 4 keeps both aligned. */
static size_t workspace_bytes(int64_t rows, int32_t splits, int64_t dv) {
  return splits == 1 ? 0 : (size_t)(rows * splits * (dv + 2)) * sizeof(float);
}

size_t rdna_op_attention_workspace(const rdna_device *device, const rdna_attention *options, int64_t tokens,
                                   int64_t heads, int64_t kv_heads, int64_t dv) {
  rdna_attention known;
  if (RDNA__OPTIONS(NAME, "options", options, &known) != RDNA_OK) return 0; /* which the operator will say */
  return workspace_bytes(tokens * heads, choose_splits(device, &known, tokens, heads, kv_heads), dv);
}

/* (count, heads, d) whose last two dimensions are dense, with vector loads possible. */
static rdna_status check_vectors(const char *argument, const rdna_tensor *tensor, int64_t *out_stride) {
  RDNA_TRY(rdna__check_rank(NAME, argument, tensor, 3));
  RDNA_TRY(rdna__check_dense_tail(NAME, argument, tensor, 2));
  *out_stride = tensor->shape[0] > 1 ? tensor->stride[0] : tensor->shape[1] * tensor->shape[2];
  if (*out_stride % 4 != 0) {
    return rdna__fail(RDNA_UNSUPPORTED, "attention: %s has stride %lld in dimension 0; it must be a multiple of 4",
                      argument, (long long)*out_stride);
  }
  if ((uintptr_t)tensor->data % 16 != 0) {
    return rdna__fail(RDNA_UNSUPPORTED, "attention: %s is at %p; it must be aligned to 16 bytes", argument,
                      tensor->data);
  }
  return RDNA_OK;
}

static rdna_status check_per_token(const char *argument, const rdna_tensor *tensor, int64_t tokens) {
  RDNA_TRY(rdna__check_tensor(NAME, argument, tensor));
  RDNA_TRY(rdna__check_dtype(NAME, argument, tensor, RDNA_I32));
  RDNA_TRY(rdna__check_rank(NAME, argument, tensor, 1));
  RDNA_TRY(rdna__check_size(NAME, argument, tensor, 0, tokens, "one a token of q"));
  return rdna__check_contiguous(NAME, argument, tensor);
}

/* q8_0: whole blocks, in heads that the kernels of decoding narrow heads have. */
static rdna_status check_blocks(const char *argument, const rdna_tensor *cache, int64_t stride, int64_t d) {
  if (cache->dtype != RDNA_Q8_0) return rdna__check_float(NAME, argument, cache);
  if (cache->shape[2] % 32 == 0 && stride % 32 == 0 && cache->shape[2] == d && d <= ATTENTION_MAX_D) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED,
                    "attention: %s is q8_0, with heads of %lld values, those of q of %lld, and slots %lld apart; whole "
                    "blocks of 32 are offered, in keys and values of one size up to %d",
                    argument, (long long)cache->shape[2], (long long)d, (long long)stride, ATTENTION_MAX_D);
}

static rdna_status check_caches(const rdna_tensor *k_cache, const rdna_tensor *v_cache, const rdna_tensor *q,
                                struct attention_args *args) {
  RDNA_TRY(rdna__check_tensor(NAME, "k_cache", k_cache));
  RDNA_TRY(check_vectors("k_cache", k_cache, &args->k_stride));
  RDNA_TRY(rdna__check_size(NAME, "k_cache", k_cache, 2, q->shape[2], "the head size of q"));
  RDNA_TRY(check_blocks("k_cache", k_cache, args->k_stride, q->shape[2]));
  RDNA_TRY(rdna__check_tensor(NAME, "v_cache", v_cache));
  RDNA_TRY(rdna__check_same_dtype(NAME, "v_cache", v_cache, "k_cache", k_cache));
  RDNA_TRY(check_vectors("v_cache", v_cache, &args->v_stride));
  RDNA_TRY(check_blocks("v_cache", v_cache, args->v_stride, q->shape[2]));
  RDNA_TRY(rdna__check_size(NAME, "v_cache", v_cache, 0, k_cache->shape[0], "the rows of k_cache"));
  return rdna__check_size(NAME, "v_cache", v_cache, 1, k_cache->shape[1], "the heads of k_cache");
}

/* Whether the values of each row are the last of its one key's numbers. */
static bool is_latent(const rdna_tensor *k_cache, const struct attention_args *args) {
  int64_t first = args->d - args->dv;
  return args->kv_heads == 1 && args->k_stride == args->v_stride && args->dv <= ATTENTION_WIDE_DV && first >= 0 &&
         first <= ATTENTION_LATENT_FIRST &&
         (const char *)args->v == (const char *)args->k + rdna_dtype_bytes(k_cache->dtype, first);
}

static rdna_status check_sizes(const rdna_tensor *q, const rdna_tensor *k_cache, const rdna_tensor *v_cache) {
  int64_t tokens = q->shape[0], heads = q->shape[1], kv_heads = k_cache->shape[1], d = q->shape[2];
  int64_t dv = v_cache->shape[2];
  if (d % 4 != 0 || d > ATTENTION_WIDE_D || dv % 4 != 0 || dv > ATTENTION_WIDE_DV) {
    return rdna__fail(RDNA_UNSUPPORTED,
                      "attention: q has heads of %lld values and v_cache of %lld; multiples of 4 up to %d and %d are "
                      "offered",
                      (long long)d, (long long)dv, ATTENTION_WIDE_D, ATTENTION_WIDE_DV);
  }
  if (kv_heads == 0 || heads % kv_heads != 0) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "attention: q has %lld heads and k_cache %lld; the first must be a multiple of the second",
                      (long long)heads, (long long)kv_heads);
  }
  if (heads > RDNA__GRID_YZ_MAX / ATTENTION_PARTS(ATTENTION_WIDE_DV) || tokens > INT32_MAX / heads) {
    return rdna__fail(RDNA_UNSUPPORTED,
                      "attention: q has %lld tokens of %lld heads; up to %d heads, and 2147483647 of both together, "
                      "are offered",
                      (long long)tokens, (long long)heads, RDNA__GRID_YZ_MAX / ATTENTION_PARTS(ATTENTION_WIDE_DV));
  }
  return RDNA_OK;
}

static rdna_status check_options(const rdna_attention *options) {
  if (options->max_queries < 1 || options->max_length < 0 || options->window < 0 || options->split < 0) {
    return rdna__fail(
        RDNA_INVALID_ARGUMENT,
        "attention: options has max_queries %d, max_length %lld, window %d and split %d; the first must be at least "
        "1, the others at least 0",
        options->max_queries, (long long)options->max_length, options->window, options->split);
  }
  return RDNA_OK;
}

static rdna_status launch_prefill(rdna_stream *stream, rdna_dtype dtype, const struct attention_args *args) {
  int64_t rows = (int64_t)args->tokens * (args->heads / args->kv_heads);
  rdna_grid grid = {0, (uint32_t)(args->kv_heads * ATTENTION_PARTS(args->dv)), 1};
  RDNA_TRY(rdna__check_groups(NAME, rows, ATTENTION_TILE_ROWS, &grid.x));
  return RDNA__ROUTE_LAUNCH(stream, &routes[PREFILL], 0, grid, args, rdna_dtype_name(dtype),
                            args->dv > 128 ? "d256" : "d128");
}

static rdna_status launch_decode(rdna_stream *stream, const rdna__route *route, rdna_dtype dtype,
                                 const struct attention_args *args) {
  int64_t heads_per_kv = args->heads / args->kv_heads;
  int64_t in_block = route == &routes[DECODE] ? heads_per_block(heads_per_kv) : 4;
  int64_t blocks = rdna__divide_up(heads_per_kv, in_block) * args->kv_heads;
  rdna_grid grid = {(uint32_t)args->splits, (uint32_t)blocks, (uint32_t)args->tokens};
  const char *heads = heads_per_kv == 1 ? "h1" : heads_per_kv <= 4 ? "h4" : "h8";
  RDNA_TRY(RDNA__ROUTE_LAUNCH(stream, route, 0, grid, args, rdna_dtype_name(dtype), heads));
  if (args->splits == 1) return RDNA_OK;
  struct attention_combine_args combine = {.partial = args->partial,
                                           .stats = args->stats,
                                           .out = args->out,
                                           .out_stride = args->out_stride,
                                           .tokens = args->tokens,
                                           .heads = args->heads,
                                           .splits = args->splits,
                                           .d = args->dv};
  grid = (rdna_grid){(uint32_t)args->heads, (uint32_t)args->tokens, 1};
  return RDNA__ROUTE_LAUNCH(stream, route, 1, grid, &combine, NULL);
}

static rdna_status check_sinks(const rdna_tensor *sinks, const rdna_tensor *q, const rdna_tensor *out,
                               struct attention_args *args) {
  if (!sinks) return RDNA_OK;
  RDNA_TRY(rdna__check_tensor(NAME, "sinks", sinks));
  RDNA_TRY(rdna__check_dtype(NAME, "sinks", sinks, RDNA_F32));
  RDNA_TRY(rdna__check_rank(NAME, "sinks", sinks, 1));
  RDNA_TRY(rdna__check_size(NAME, "sinks", sinks, 0, q->shape[1], "one a head of q"));
  RDNA_TRY(rdna__check_contiguous(NAME, "sinks", sinks));
  args->sinks = sinks->data;
  return rdna__check_apart(NAME, "out", out, "sinks", sinks);
}

/* What rows and blocks have in common: everything but where positions are. */
static rdna_status check_tokens(rdna_stream *stream, const rdna_attention *options, const rdna_tensor *q,
                                const char *base_argument, const rdna_tensor *base, const rdna_tensor *position,
                                const rdna_tensor *out, struct attention_args *args) {
  RDNA_TRY(rdna__check_stream("attention", stream));
  RDNA_TRY(check_options(options));
  RDNA_TRY(rdna__check_tensor(NAME, "q", q));
  RDNA_TRY(rdna__check_dtype(NAME, "q", q, RDNA_F32));
  RDNA_TRY(check_vectors("q", q, &args->q_stride));
  RDNA_TRY(check_per_token(base_argument, base, q->shape[0]));
  RDNA_TRY(check_per_token("position", position, q->shape[0]));
  RDNA_TRY(rdna__check_tensor(NAME, "out", out));
  RDNA_TRY(rdna__check_dtype(NAME, "out", out, RDNA_F32));
  RDNA_TRY(check_vectors("out", out, &args->out_stride));
  RDNA_TRY(rdna__check_size(NAME, "out", out, 0, q->shape[0], "the tokens of q"));
  RDNA_TRY(rdna__check_size(NAME, "out", out, 1, q->shape[1], "the heads of q"));
  RDNA_TRY(check_sinks(options->sinks, q, out, args));
  return rdna__check_written_rows(NAME, "out", out, out->shape[0], out->shape[1] * out->shape[2], args->out_stride);
}

/* After the checks of the caches, which are (slots, kv_heads, d). */
static rdna_status take_tokens(rdna_stream *stream, const rdna_attention *options, const rdna_tensor *q,
                               const rdna_tensor *k_cache, const rdna_tensor *v_cache, const char *base_argument,
                               const rdna_tensor *base, const rdna_tensor *position, const rdna_tensor *out,
                               struct attention_args *args) {
  RDNA_TRY(rdna__check_size(NAME, "out", out, 2, v_cache->shape[2], "the head size of v_cache"));
  RDNA_TRY(check_sizes(q, k_cache, v_cache));
  if (q->shape[2] == out->shape[2])
    RDNA_TRY(rdna__check_overlap(NAME, "out", out, "q", q));
  else
    RDNA_TRY(rdna__check_apart(NAME, "out", out, "q", q));
  RDNA_TRY(rdna__check_apart(NAME, "out", out, "k_cache", k_cache));
  RDNA_TRY(rdna__check_apart(NAME, "out", out, "v_cache", v_cache));
  RDNA_TRY(rdna__check_apart(NAME, "out", out, base_argument, base));
  RDNA_TRY(rdna__check_apart(NAME, "out", out, "position", position));
  args->q = q->data, args->k = k_cache->data, args->v = v_cache->data, args->out = out->data;
  args->cache_base = base->data, args->position = position->data;
  args->slots = k_cache->shape[0];
  args->tokens = (int32_t)q->shape[0], args->heads = (int32_t)q->shape[1], args->d = (int32_t)q->shape[2];
  args->kv_heads = (int32_t)k_cache->shape[1], args->dv = (int32_t)v_cache->shape[2];
  args->window = options->window, args->scale = options->scale, args->softcap = options->softcap;
  args->split_positions = options->split;
  args->splits = choose_splits(rdna_stream_device(stream), options, args->tokens, args->heads, args->kv_heads);
  return RDNA_OK;
}

static rdna_status decode(rdna_stream *stream, const rdna__route *route, rdna_dtype dtype, void *workspace,
                          size_t workspace_size, struct attention_args *args) {
  size_t needed = workspace_bytes((int64_t)args->tokens * args->heads, args->splits, args->dv);
  if (needed > workspace_size || (needed > 0 && (!workspace || (uintptr_t)workspace % 16 != 0))) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "attention: workspace is %zu bytes at %p; %zu bytes aligned to 16 are needed, as "
                      "rdna_op_attention_workspace says",
                      workspace_size, workspace, needed);
  }
  args->partial = workspace;
  args->stats = args->partial ? args->partial + (int64_t)args->tokens * args->heads * args->splits * args->dv : NULL;
  return launch_decode(stream, route, dtype, args);
}

rdna_status rdna_op_attention(rdna_stream *stream, const rdna_attention *options, const rdna_tensor *q,
                              const rdna_tensor *k_cache, const rdna_tensor *v_cache, const rdna_tensor *cache_base,
                              const rdna_tensor *position, void *workspace, size_t workspace_size,
                              const rdna_tensor *out) {
  struct attention_args args = {0};
  rdna_attention known;
  RDNA_TRY(RDNA__OPTIONS(NAME, "options", options, &known));
  options = &known;
  RDNA_TRY(check_tokens(stream, options, q, "cache_base", cache_base, position, out, &args));
  RDNA_TRY(check_caches(k_cache, v_cache, q, &args));
  if (rdna_tensor_count(q) == 0) return RDNA_OK;
  RDNA_TRY(take_tokens(stream, options, q, k_cache, v_cache, "cache_base", cache_base, position, out, &args));
  const rdna__route *route = route_of(options, &args, is_latent(k_cache, &args));
  if (route != &routes[PREFILL]) return decode(stream, route, k_cache->dtype, workspace, workspace_size, &args);
  if (k_cache->dtype == RDNA_BF16 || k_cache->dtype == RDNA_Q8_0) {
    const char *name = rdna_dtype_name(k_cache->dtype);
    return rdna__fail(RDNA_UNSUPPORTED, "attention: the caches are %s and max_queries %d; %s is offered up to %d", name,
                      options->max_queries, name, DECODE_QUERIES);
  }
  return launch_prefill(stream, k_cache->dtype, &args);
}

/* A cache of blocks (blocks, block_rows, kv_heads, d), whose rows lie one after the other, as (slots, kv_heads, d). */
static rdna_status blocks_as_rows(const char *argument, const rdna_tensor *cache, rdna_tensor *out) {
  RDNA_TRY(rdna__check_tensor(NAME, argument, cache));
  RDNA_TRY(rdna__check_rank(NAME, argument, cache, 4));
  int64_t rows = cache->shape[1];
  if (cache->shape[0] > 1 && rows > 1 && cache->stride[0] != rows * cache->stride[1]) {
    return rdna__fail(RDNA_UNSUPPORTED,
                      "attention: %s has stride %lld in dimension 0 and %lld in dimension 1; rows of %lld to a block "
                      "must be evenly apart",
                      argument, (long long)cache->stride[0], (long long)cache->stride[1], (long long)rows);
  }
  if (cache->shape[0] > INT32_MAX || rows > INT32_MAX || rows < 1) {
    return rdna__fail(RDNA_UNSUPPORTED,
                      "attention: %s has %lld blocks of %lld rows; up to %d blocks of 1 to %d are offered", argument,
                      (long long)cache->shape[0], (long long)rows, INT32_MAX, INT32_MAX);
  }
  int64_t row = rows > 1 ? cache->stride[1] : cache->stride[0];
  *out = (rdna_tensor){cache->data,
                       cache->dtype,
                       3,
                       {cache->shape[0] * rows, cache->shape[2], cache->shape[3]},
                       {row, cache->stride[2], cache->stride[3]}};
  return RDNA_OK;
}

rdna_status rdna_op_attention_paged(rdna_stream *stream, const rdna_attention *options, const rdna_tensor *q,
                                    const rdna_tensor *k_cache, const rdna_tensor *v_cache,
                                    const rdna_tensor *block_table, const rdna_tensor *sequence,
                                    const rdna_tensor *position, void *workspace, size_t workspace_size,
                                    const rdna_tensor *out) {
  struct attention_args args = {0};
  rdna_attention known;
  rdna_tensor k, v;
  RDNA_TRY(RDNA__OPTIONS(NAME, "options", options, &known));
  options = &known;
  RDNA_TRY(check_tokens(stream, options, q, "sequence", sequence, position, out, &args));
  RDNA_TRY(blocks_as_rows("k_cache", k_cache, &k));
  RDNA_TRY(blocks_as_rows("v_cache", v_cache, &v));
  RDNA_TRY(rdna__check_size(NAME, "v_cache", v_cache, 1, k_cache->shape[1], "the rows to a block of k_cache"));
  RDNA_TRY(check_caches(&k, &v, q, &args));
  RDNA_TRY(rdna__check_tensor(NAME, "block_table", block_table));
  RDNA_TRY(rdna__check_dtype(NAME, "block_table", block_table, RDNA_I32));
  RDNA_TRY(rdna__check_rank(NAME, "block_table", block_table, 2));
  RDNA_TRY(rdna__check_contiguous(NAME, "block_table", block_table));
  RDNA_TRY(rdna__check_apart(NAME, "out", out, "block_table", block_table));
  if (rdna_tensor_count(q) == 0) return RDNA_OK;
  RDNA_TRY(take_tokens(stream, options, q, &k, &v, "sequence", sequence, position, out, &args));
  const rdna__route *route = route_of(options, &args, is_latent(&k, &args));
  if (route == &routes[PREFILL] || block_table->shape[0] > INT32_MAX) {
    return rdna__fail(
        RDNA_UNSUPPORTED,
        "attention: max_queries is %d, with %d tokens and %lld sequences; blocks are offered for at most %d "
        "queries of a sequence, and %d tokens",
        options->max_queries, args.tokens, (long long)block_table->shape[0], DECODE_QUERIES, RDNA__GRID_YZ_MAX);
  }
  args.block_table = block_table->data ? block_table->data : sequence->data; /* an empty one is never read */
  args.table_stride = block_table->shape[1];
  args.sequences = (int32_t)block_table->shape[0];
  args.block_rows = (int32_t)k_cache->shape[1];
  return decode(stream, route, k.dtype, workspace, workspace_size, &args);
}
