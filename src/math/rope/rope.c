#include "rdna/op/rope.h"

#include "base/options.h"
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/rope/rope_kernels.h"

enum { ROPE, WRITE };
static const rdna__route routes[] = {
    [ROPE] = {.name = "rope", .kernels = {"rope_{f32|f16}"}, .when = "rope"},
    [WRITE] = {.name = "write",
               .kernels = {"rope_kv_write_{float}"},
               .when = "the others: keys are turned on their way into a cache of this type"},
};
RDNA_FIXED_ROUTES(rdna__rope_routes, "rope, rope_kv_write, rope_qkv_write, rope_qkv_write_to", routes)

static rdna_status check_table(const char *op_name, const rdna_rope *rope, int64_t tokens, int64_t head_dim) {
  if ((unsigned)rope->layout >= RDNA_ROPE_LAYOUT_COUNT) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: the layout is number %d; there are 0 to %d", op_name,
                      (int)rope->layout, RDNA_ROPE_LAYOUT_COUNT - 1);
  }
  RDNA_TRY(rdna__check_tensor(op_name, "positions", rope->positions));
  RDNA_TRY(rdna__check_dtype(op_name, "positions", rope->positions, RDNA_I32));
  RDNA_TRY(rdna__check_rank(op_name, "positions", rope->positions, 1));
  RDNA_TRY(rdna__check_size(op_name, "positions", rope->positions, 0, tokens, "the number of tokens"));
  RDNA_TRY(rdna__check_contiguous(op_name, "positions", rope->positions));
  RDNA_TRY(rdna__check_tensor(op_name, "inv_freq", rope->inv_freq));
  RDNA_TRY(rdna__check_dtype(op_name, "inv_freq", rope->inv_freq, RDNA_F32));
  RDNA_TRY(rdna__check_rank(op_name, "inv_freq", rope->inv_freq, 1));
  RDNA_TRY(rdna__check_contiguous(op_name, "inv_freq", rope->inv_freq));
  if (rope->inv_freq->shape[0] > head_dim / 2) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%s: inv_freq has %lld frequencies; a head of %lld has room for %lld pairs", op_name,
                      (long long)rope->inv_freq->shape[0], (long long)head_dim, (long long)(head_dim / 2));
  }
  return RDNA_OK;
}

/* Checks a tensor (rows, heads, dim): each head contiguous, the values of a row countable in 32 bits. */
static rdna_status check_heads(const char *op_name, const char *argument, const rdna_tensor *tensor) {
  RDNA_TRY(rdna__check_tensor(op_name, argument, tensor));
  RDNA_TRY(rdna__check_rank(op_name, argument, tensor, 3));
  RDNA_TRY(rdna__check_dense_tail(op_name, argument, tensor, 1));
  int64_t per_row;
  if (__builtin_mul_overflow(tensor->shape[1], tensor->shape[2], &per_row) || per_row > INT32_MAX) {
    char text[RDNA__TENSOR_TEXT];
    return rdna__fail(RDNA_UNSUPPORTED, "%s: %s is %s; the heads of a token may have %d values", op_name, argument,
                      rdna__tensor_text(tensor, text), INT32_MAX);
  }
  return RDNA_OK;
}

/* Checks that the heads of a written tensor do not overlap: the smaller of the two strides is at least a head, the
 * larger one at least all that the smaller one spans. */
static rdna_status check_written_heads(const char *op_name, const char *argument, const rdna_tensor *t) {
  char text[RDNA__TENSOR_TEXT];
  int64_t size[2], stride[2];
  int dimensions = 0;
  for (int i = 0; i < 2; i++) {
    if (t->shape[i] == 1) continue;
    size[dimensions] = t->shape[i];
    stride[dimensions++] = t->stride[i] < 0 ? -t->stride[i] : t->stride[i];
  }
  int inner = dimensions == 2 && stride[0] < stride[1] ? 0 : dimensions - 1;
  int64_t span = t->shape[2];
  bool apart = rdna_tensor_count(t) == 0 || dimensions == 0 || stride[inner] >= span;
  if (apart && dimensions == 2) apart = stride[1 - inner] >= (size[inner] - 1) * stride[inner] + span;
  if (apart || rdna_tensor_count(t) == 0) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s with strides %lld and %lld; its heads would overlap", op_name,
                    argument, rdna__tensor_text(t, text), (long long)t->stride[0], (long long)t->stride[1]);
}

/* Checks one of the norms, for heads of |dim| values of which there are |heads|. */
static rdna_status check_norm(const char *op_name, const char *argument, const rdna_tensor *norm, int64_t dim,
                              int64_t heads) {
  if (!norm) return RDNA_OK;
  RDNA_TRY(rdna__check_tensor(op_name, argument, norm));
  RDNA_TRY(rdna__check_dtype(op_name, argument, norm, RDNA_F32));
  RDNA_TRY(rdna__check_rank(op_name, argument, norm, 1));
  RDNA_TRY(rdna__check_size(op_name, argument, norm, 0, dim, "the length of a head"));
  RDNA_TRY(rdna__check_contiguous(op_name, argument, norm));
  if (dim <= ROPE_NORM_DIM && heads <= (int64_t)ROPE_NORM_HEADS * RDNA__GRID_YZ_MAX) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "%s: %s is for %lld heads of %lld values; %lld heads of %d are offered", op_name,
                    argument, (long long)heads, (long long)dim, (long long)ROPE_NORM_HEADS * RDNA__GRID_YZ_MAX,
                    ROPE_NORM_DIM);
}

static rdna_status refuse_norm(const char *op_name, const char *argument, const rdna_tensor *norm) {
  if (!norm) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is given; this operator has nothing that it would be applied to",
                    op_name, argument);
}

/* Makes the grid (tokens, parts). Few tokens are cut into parts of 4 heads (below 64 tokens) or 16 (below 512), so that
 * there are groups enough to fill a GPU; more into parts of 64 heads where |normed|. */
static rdna_status make_grid(const char *op_name, int64_t tokens, int64_t heads, bool normed, rdna_grid *out_grid) {
  int64_t each = tokens < 64 ? 4 : tokens < 512 ? 16 : normed ? ROPE_NORM_HEADS : heads;
  int64_t parts = each > 0 ? rdna__divide_up(heads, each) : 1;
  *out_grid = (rdna_grid){0, (uint32_t)(parts < RDNA__GRID_YZ_MAX ? parts : RDNA__GRID_YZ_MAX), 1};
  return rdna__check_groups(op_name, tokens, 1, &out_grid->x);
}

rdna_status rdna_op_rope(rdna_stream *stream, const rdna_rope *rope, const rdna_tensor *x, const rdna_tensor *out) {
  rdna_rope known;
  RDNA_TRY(RDNA__OPTIONS("rope", "rope", rope, &known));
  rope = &known;
  RDNA_TRY(refuse_norm("rope", "q_norm", rope->q_norm));
  RDNA_TRY(refuse_norm("rope", "k_norm", rope->k_norm));
  RDNA_TRY(refuse_norm("rope", "v_norm", rope->v_norm));
  RDNA_TRY(check_heads("rope", "x", x));
  RDNA_TRY(check_heads("rope", "out", out));
  if (x->dtype != RDNA_F32 && x->dtype != RDNA_F16) {
    return rdna__fail(RDNA_UNSUPPORTED, "rope: x is %s; the types offered are f32 and f16", rdna_dtype_name(x->dtype));
  }
  RDNA_TRY(rdna__check_same_dtype("rope", "out", out, "x", x));
  RDNA_TRY(rdna__check_same_shape("rope", "out", out, "x", x));
  RDNA_TRY(check_written_heads("rope", "out", out));
  RDNA_TRY(check_table("rope", rope, x->shape[0], x->shape[2]));
  RDNA_TRY(rdna__check_overlap("rope", "out", out, "x", x));
  RDNA_TRY(rdna__check_apart("rope", "out", out, "positions", rope->positions));
  RDNA_TRY(rdna__check_apart("rope", "out", out, "inv_freq", rope->inv_freq));
  struct rope_args args = {.x = x->data,
                           .out = out->data,
                           .positions = rope->positions->data,
                           .inv_freq = rope->inv_freq->data,
                           .x_token_stride = x->stride[0],
                           .x_head_stride = x->stride[1],
                           .out_token_stride = out->stride[0],
                           .out_head_stride = out->stride[1],
                           .tokens = (int32_t)x->shape[0],
                           .heads = (int32_t)x->shape[1],
                           .head_dim = (int32_t)x->shape[2],
                           .n_rot = (int32_t)rope->inv_freq->shape[0] * 2,
                           .interleaved = rope->layout == RDNA_ROPE_LAYOUT_INTERLEAVED,
                           .scale = rope->scale};
  rdna_grid grid;
  RDNA_TRY(make_grid("rope", x->shape[0], x->shape[1], false, &grid));
  return RDNA__ROUTE_LAUNCH(stream, &routes[ROPE], 0, grid, &args, rdna_dtype_name(x->dtype));
}

static const char write_name[] = "rope_kv_write";

/* Checks |in|, (tokens, heads, dim) of f32, and its |cache|, (slots, heads, dim). */
static rdna_status check_cached(const char *argument, const rdna_tensor *in, const char *cache_argument,
                                const rdna_tensor *cache) {
  RDNA_TRY(check_heads(write_name, argument, in));
  RDNA_TRY(check_heads(write_name, cache_argument, cache));
  RDNA_TRY(rdna__check_dtype(write_name, argument, in, RDNA_F32));
  RDNA_TRY(rdna__check_float(write_name, cache_argument, cache));
  RDNA_TRY(rdna__check_size(write_name, cache_argument, cache, 1, in->shape[1], "the number of heads"));
  RDNA_TRY(rdna__check_size(write_name, cache_argument, cache, 2, in->shape[2], "the length of a head"));
  return check_written_heads(write_name, cache_argument, cache);
}

/* Checks that the caches do not overlap. With gaps their rows may alternate in one buffer, where byte ranges always
 * overlap and prove nothing: those are let through. */
static rdna_status check_caches_apart(const rdna_tensor *k_cache, const rdna_tensor *v_cache) {
  bool dense = true;
  const rdna_tensor *caches[] = {k_cache, v_cache};
  for (int i = 0; i < 2; i++) {
    const rdna_tensor *c = caches[i];
    dense = dense && c->stride[1] == c->shape[2] && c->stride[0] == c->shape[1] * c->shape[2];
  }
  if (!dense && k_cache->data != v_cache->data) return RDNA_OK;
  return rdna__check_apart(write_name, "v_cache", v_cache, "k_cache", k_cache);
}

/* Checks all arguments but q, and fills in those of the kernel. */
static rdna_status check_write(const rdna_rope *rope, const rdna_tensor *k, const rdna_tensor *v,
                               const rdna_tensor *cache_row, const rdna_tensor *k_cache, const rdna_tensor *v_cache,
                               struct rope_kv_write_args *out_args) {
  RDNA_TRY(check_cached("k", k, "k_cache", k_cache));
  RDNA_TRY(check_cached("v", v, "v_cache", v_cache));
  RDNA_TRY(rdna__check_size(write_name, "v", v, 0, k->shape[0], "the number of tokens"));
  RDNA_TRY(rdna__check_size(write_name, "v", v, 1, k->shape[1], "the number of heads"));
  RDNA_TRY(rdna__check_size(write_name, "v_cache", v_cache, 0, k_cache->shape[0], "the number of slots"));
  RDNA_TRY(rdna__check_same_dtype(write_name, "v_cache", v_cache, "k_cache", k_cache));
  RDNA_TRY(check_table(write_name, rope, k->shape[0], k->shape[2]));
  RDNA_TRY(check_norm(write_name, "k_norm", rope->k_norm, k->shape[2], k->shape[1]));
  RDNA_TRY(check_norm(write_name, "v_norm", rope->v_norm, v->shape[2], v->shape[1]));
  RDNA_TRY(rdna__check_epsilon(write_name, rope->epsilon));
  RDNA_TRY(rdna__check_tensor(write_name, "cache_row", cache_row));
  RDNA_TRY(rdna__check_dtype(write_name, "cache_row", cache_row, RDNA_I32));
  RDNA_TRY(rdna__check_rank(write_name, "cache_row", cache_row, 1));
  RDNA_TRY(rdna__check_size(write_name, "cache_row", cache_row, 0, k->shape[0], "the number of tokens"));
  RDNA_TRY(rdna__check_contiguous(write_name, "cache_row", cache_row));
  const rdna__named read[] = {{"k", k},
                              {"v", v},
                              {"cache_row", cache_row},
                              {"positions", rope->positions},
                              {"inv_freq", rope->inv_freq},
                              {"k_norm", rope->k_norm},
                              {"v_norm", rope->v_norm}};
  RDNA_TRY(rdna__check_written_apart(write_name, &(rdna__named){"k_cache", k_cache}, 1, read, 7, 0));
  RDNA_TRY(rdna__check_written_apart(write_name, &(rdna__named){"v_cache", v_cache}, 1, read, 7, 0));
  RDNA_TRY(check_caches_apart(k_cache, v_cache));
  *out_args = (struct rope_kv_write_args){.k = k->data,
                                          .v = v->data,
                                          .k_cache = k_cache->data,
                                          .v_cache = v_cache->data,
                                          .positions = rope->positions->data,
                                          .cache_row = cache_row->data,
                                          .inv_freq = rope->inv_freq->data,
                                          .k_token_stride = k->stride[0],
                                          .k_head_stride = k->stride[1],
                                          .v_token_stride = v->stride[0],
                                          .v_head_stride = v->stride[1],
                                          .k_slot_stride = k_cache->stride[0],
                                          .k_cache_head_stride = k_cache->stride[1],
                                          .v_slot_stride = v_cache->stride[0],
                                          .v_cache_head_stride = v_cache->stride[1],
                                          .slots = k_cache->shape[0],
                                          .tokens = (int32_t)k->shape[0],
                                          .heads = (int32_t)k->shape[1],
                                          .k_dim = (int32_t)k->shape[2],
                                          .v_dim = (int32_t)v->shape[2],
                                          .n_rot = (int32_t)rope->inv_freq->shape[0] * 2,
                                          .interleaved = rope->layout == RDNA_ROPE_LAYOUT_INTERLEAVED,
                                          .scale = rope->scale,
                                          .k_norm = rope->k_norm ? rope->k_norm->data : NULL,
                                          .v_norm = rope->v_norm ? rope->v_norm->data : NULL,
                                          .epsilon = (float)rope->epsilon};
  return RDNA_OK;
}

static rdna_status launch_write(rdna_stream *stream, rdna_dtype dtype, rdna_grid grid,
                                const struct rope_kv_write_args *args) {
  return RDNA__ROUTE_LAUNCH(stream, &routes[WRITE], 0, grid, args, rdna_dtype_name(dtype));
}

rdna_status rdna_op_rope_kv_write(rdna_stream *stream, const rdna_rope *rope, const rdna_tensor *k,
                                  const rdna_tensor *v, const rdna_tensor *cache_row, const rdna_tensor *k_cache,
                                  const rdna_tensor *v_cache) {
  struct rope_kv_write_args args;
  rdna_grid grid;
  rdna_rope known;
  RDNA_TRY(RDNA__OPTIONS(write_name, "rope", rope, &known));
  rope = &known;
  RDNA_TRY(refuse_norm(write_name, "q_norm", rope->q_norm));
  RDNA_TRY(check_write(rope, k, v, cache_row, k_cache, v_cache, &args));
  RDNA_TRY(make_grid(write_name, k->shape[0], k->shape[1], rope->k_norm || rope->v_norm, &grid));
  return launch_write(stream, k_cache->dtype, grid, &args);
}

/* Checks q, which is written unless |q_out| is not NULL, and that what is written is apart from all else. */
static rdna_status check_queries(const char *op_name, const rdna_rope *rope, const rdna_tensor *q,
                                 const rdna_tensor *q_out, const rdna_tensor *k, const rdna_tensor *v,
                                 const rdna_tensor *cache_row, const rdna_tensor *k_cache, const rdna_tensor *v_cache) {
  const rdna_tensor *written = q_out ? q_out : q;
  const char *written_name = q_out ? "q_out" : "q";
  RDNA_TRY(check_heads(op_name, "q", q));
  RDNA_TRY(rdna__check_dtype(op_name, "q", q, RDNA_F32));
  RDNA_TRY(rdna__check_size(op_name, "q", q, 0, k->shape[0], "the number of tokens"));
  RDNA_TRY(rdna__check_size(op_name, "q", q, 2, k->shape[2], "the length of a head of k"));
  if (q_out) {
    RDNA_TRY(check_heads(op_name, "q_out", q_out));
    RDNA_TRY(rdna__check_same_dtype(op_name, "q_out", q_out, "k_cache", k_cache));
    RDNA_TRY(rdna__check_same_shape(op_name, "q_out", q_out, "q", q));
    RDNA_TRY(rdna__check_apart(op_name, "q_out", q_out, "q", q));
    RDNA_TRY(rdna__check_apart(op_name, "k_cache", k_cache, "q", q));
    RDNA_TRY(rdna__check_apart(op_name, "v_cache", v_cache, "q", q));
  }
  RDNA_TRY(check_written_heads(op_name, written_name, written));
  const rdna__named others[] = {{"k", k},
                                {"v", v},
                                {"cache_row", cache_row},
                                {"positions", rope->positions},
                                {"inv_freq", rope->inv_freq},
                                {"k_cache", k_cache},
                                {"v_cache", v_cache},
                                {"q_norm", rope->q_norm},
                                {"k_norm", rope->k_norm},
                                {"v_norm", rope->v_norm}};
  RDNA_TRY(check_norm(op_name, "q_norm", rope->q_norm, q->shape[2], q->shape[1]));
  if (rope->q_norm) {
    RDNA_TRY(rdna__check_apart(op_name, "k_cache", k_cache, "q_norm", rope->q_norm));
    RDNA_TRY(rdna__check_apart(op_name, "v_cache", v_cache, "q_norm", rope->q_norm));
  }
  return rdna__check_written_apart(op_name, &(rdna__named){written_name, written}, 1, others, 10, 0);
}

static rdna_status turn_and_write(rdna_stream *stream, const char *op_name, const rdna_rope *rope, const rdna_tensor *q,
                                  const rdna_tensor *q_out, const rdna_tensor *k, const rdna_tensor *v,
                                  const rdna_tensor *cache_row, const rdna_tensor *k_cache,
                                  const rdna_tensor *v_cache) {
  struct rope_kv_write_args args;
  rdna_grid grid, of_q;
  rdna_rope known;
  RDNA_TRY(RDNA__OPTIONS(op_name, "rope", rope, &known));
  rope = &known;
  RDNA_TRY(check_write(rope, k, v, cache_row, k_cache, v_cache, &args));
  RDNA_TRY(check_queries(op_name, rope, q, q_out, k, v, cache_row, k_cache, v_cache));
  RDNA_TRY(make_grid(op_name, k->shape[0], k->shape[1], rope->k_norm || rope->v_norm, &grid));
  RDNA_TRY(make_grid(op_name, q->shape[0], q->shape[1], rope->q_norm, &of_q));
  args.q_norm = rope->q_norm ? rope->q_norm->data : NULL;
  args.q = q->data;
  args.q_heads = (int32_t)q->shape[1];
  args.q_token_stride = q->stride[0], args.q_head_stride = q->stride[1];
  args.q_parts = q->data ? (int32_t)of_q.y : 0;
  if (q_out) {
    args.q_out = q_out->data;
    args.q_out_token_stride = q_out->stride[0], args.q_out_head_stride = q_out->stride[1];
  }
  if (grid.y + of_q.y > RDNA__GRID_YZ_MAX) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: q has %lld heads and k %lld; fewer are offered", op_name,
                      (long long)q->shape[1], (long long)k->shape[1]);
  }
  grid.y += (uint32_t)args.q_parts;
  return launch_write(stream, k_cache->dtype, grid, &args);
}

rdna_status rdna_op_rope_qkv_write(rdna_stream *stream, const rdna_rope *rope, const rdna_tensor *q,
                                   const rdna_tensor *k, const rdna_tensor *v, const rdna_tensor *cache_row,
                                   const rdna_tensor *k_cache, const rdna_tensor *v_cache) {
  return turn_and_write(stream, "rope_qkv_write", rope, q, NULL, k, v, cache_row, k_cache, v_cache);
}

rdna_status rdna_op_rope_qkv_write_to(rdna_stream *stream, const rdna_rope *rope, const rdna_tensor *q,
                                      const rdna_tensor *k, const rdna_tensor *v, const rdna_tensor *cache_row,
                                      const rdna_tensor *q_out, const rdna_tensor *k_cache,
                                      const rdna_tensor *v_cache) {
  RDNA_TRY(rdna__check_tensor("rope_qkv_write_to", "q_out", q_out));
  return turn_and_write(stream, "rope_qkv_write_to", rope, q, q_out, k, v, cache_row, k_cache, v_cache);
}
