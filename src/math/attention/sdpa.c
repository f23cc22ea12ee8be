/* Attention over whole sequences. */
#include <string.h>

#include "base/options.h"
#include "math/attention/flash_backward_kernels.h"
#include "math/attention/flash_mask_kernels.h"
#include "math/attention/flash_wide_kernels.h"
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/scratch.h"
#include "math/common/plan/strided.h"
#include "rdna/op/attention.h"
#include "rdna/op/movement.h"
#include "rdna/op/reduce.h"

/* Groups take keys in tiles and look a little past a sequence's end. */
enum { MOST_ROWS = INT32_MAX - 512, MOST_STRIDE = 1 << 24 /* values from row to row: a tile is within 2^31 bytes */ };

/* One call: its arguments, and what it had copied so that kernels can read it. */
struct call {
  const char *name;
  rdna_stream *stream;
  rdna_sdpa options;
  bool packed; /* sequences one after the other, rank 3 */
  struct flash_args args;
  rdna_dtype dtype;
  rdna__scratch scratch;
};

static int64_t in_16(rdna_dtype dtype) { return dtype == RDNA_F32 ? 4 : 8; }

static rdna_status check_options(struct call *call) {
  const rdna_sdpa *o = &call->options;
  RDNA_TRY(rdna__check_stream(call->name, call->stream));
  if (!(o->dropout >= 0 && o->dropout < 1) || !(o->softcap >= 0)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%s: dropout is %g and softcap %g; the first must be in [0, 1), the second at least 0",
                      call->name, (double)o->dropout, (double)o->softcap);
  }
  if (o->windowed && (o->left < 0 || o->right < 0)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%s: the window has %d keys to the left and %d to the right; at least 0 each", call->name,
                      o->left, o->right);
  }
  if ((unsigned)o->diagonal >= RDNA_DIAGONAL_COUNT) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: diagonal is %d; it is 0 or 1", call->name, (int)o->diagonal);
  }
  if (!o->q_starts != !o->k_starts) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is NULL and the other starts are not; pass both or neither",
                      call->name, o->q_starts ? "k_starts" : "q_starts");
  }
  call->packed = o->q_starts != NULL;
  if (call->packed &&
      (o->max_queries < 1 || o->max_keys < 1 || o->max_queries > MOST_ROWS || o->max_keys > MOST_ROWS)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: max_queries is %lld and max_keys %lld; both are from 1 to %d",
                      call->name, (long long)o->max_queries, (long long)o->max_keys, MOST_ROWS);
  }
  return RDNA_OK;
}

/* Sees (batch, heads, rows, d) or (rows, heads, d) alike, as strides of batch, row, head. */
static void strides_of(const struct call *call, const rdna_tensor *t, int64_t stride[3]) {
  stride[0] = call->packed ? 0 : t->stride[0];
  stride[1] = t->stride[call->packed ? 0 : 2];
  stride[2] = t->stride[1];
}

static rdna_status check_starts(struct call *call, const char *argument, const rdna_tensor *starts, int64_t count) {
  RDNA_TRY(rdna__check_tensor(call->name, argument, starts));
  RDNA_TRY(rdna__check_dtype(call->name, argument, starts, RDNA_I32));
  RDNA_TRY(rdna__check_rank(call->name, argument, starts, 1));
  if (count >= 0) RDNA_TRY(rdna__check_size(call->name, argument, starts, 0, count, "as many as q_starts"));
  if (starts->shape[0] < 1) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is empty; it has one more number than there are sequences",
                      call->name, argument);
  }
  return rdna__check_contiguous(call->name, argument, starts);
}

/* The type, the rank, and the sizes that must be those of q or k. */
static rdna_status check_operand(struct call *call, const char *argument, const rdna_tensor *t, const rdna_tensor *q) {
  RDNA_TRY(rdna__check_float(call->name, argument, t));
  RDNA_TRY(rdna__check_same_dtype(call->name, argument, t, "q", q));
  RDNA_TRY(rdna__check_rank(call->name, argument, t, call->packed ? 3 : 4));
  if (!call->packed) RDNA_TRY(rdna__check_size(call->name, argument, t, 0, q->shape[0], "the batch of q"));
  return RDNA_OK;
}

static rdna_status check_limit(struct call *call, const char *what, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "%s: there are %lld %s; from %lld to %lld are offered", call->name,
                    (long long)value, what, (long long)least, (long long)most);
}

/* Heads have at most |most_d| values in a key, and |most_dv| in a value. */
static rdna_status check_operands(struct call *call, const rdna_tensor *q, const rdna_tensor *k, const rdna_tensor *v,
                                  int64_t most_d, int64_t most_dv) {
  struct flash_args *a = &call->args;
  int rows = call->packed ? 0 : 2, width = call->packed ? 2 : 3;
  RDNA_TRY(check_operand(call, "q", q, q));
  RDNA_TRY(check_operand(call, "k", k, q));
  RDNA_TRY(check_operand(call, "v", v, q));
  RDNA_TRY(rdna__check_size(call->name, "k", k, width, q->shape[width], "the head size of q"));
  RDNA_TRY(rdna__check_size(call->name, "v", v, rows, k->shape[rows], "the keys of k"));
  RDNA_TRY(rdna__check_size(call->name, "v", v, 1, k->shape[1], "the heads of k"));
  int64_t heads = q->shape[1], kv_heads = k->shape[1];
  if (kv_heads == 0 ? heads != 0 : heads % kv_heads != 0) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%s: q has %lld heads and k %lld; the first must be a multiple of the second", call->name,
                      (long long)heads, (long long)kv_heads);
  }
  int64_t batch = q->shape[0];
  if (call->packed) {
    RDNA_TRY(check_starts(call, "q_starts", call->options.q_starts, -1));
    RDNA_TRY(check_starts(call, "k_starts", call->options.k_starts, call->options.q_starts->shape[0]));
    batch = call->options.q_starts->shape[0] - 1;
  }
  RDNA_TRY(check_limit(call, "values in a head of q", q->shape[width], 1, most_d));
  RDNA_TRY(check_limit(call, "values in a head of v", v->shape[width], 1, most_dv));
  RDNA_TRY(check_limit(call, "heads", heads, 0, RDNA__GRID_YZ_MAX));
  RDNA_TRY(check_limit(call, "sequences", batch, 0, RDNA__GRID_YZ_MAX));
  RDNA_TRY(check_limit(call, "queries", q->shape[rows], 0, MOST_ROWS));
  RDNA_TRY(check_limit(call, "keys", k->shape[rows], 0, MOST_ROWS));
  call->dtype = q->dtype;
  a->batch = (int32_t)batch, a->heads = (int32_t)heads, a->kv_heads = (int32_t)kv_heads;
  a->d = (int32_t)q->shape[width], a->dv = (int32_t)v->shape[width];
  a->sq = (int32_t)(call->packed ? call->options.max_queries : q->shape[2]);
  a->sk = (int32_t)(call->packed ? call->options.max_keys : k->shape[2]);
  if (call->packed) a->q_starts = call->options.q_starts->data, a->k_starts = call->options.k_starts->data;
  return RDNA_OK;
}

static rdna_status check_mask(struct call *call) {
  const rdna_tensor *mask = call->options.mask;
  struct flash_args *a = &call->args;
  char text[RDNA__TENSOR_TEXT];
  if (!mask) return RDNA_OK;
  RDNA_TRY(rdna__check_tensor(call->name, "mask", mask));
  RDNA_TRY(rdna__check_rank(call->name, "mask", mask, 4));
  if (mask->dtype != RDNA_BOOL && mask->dtype != RDNA_F32 && mask->dtype != call->dtype) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: mask is %s and q %s; bool, f32 and the type of q are offered", call->name,
                      rdna_dtype_name(mask->dtype), rdna_dtype_name(call->dtype));
  }
  int64_t sizes[4] = {a->batch, a->heads, a->sq, a->sk};
  for (int i = 0; i < 4; i++) {
    if (mask->shape[i] != sizes[i] && (mask->shape[i] != 1 || i == 3)) {
      return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: mask is %s; size %d must be %lld%s", call->name,
                        rdna__tensor_text(mask, text), i, (long long)sizes[i], i < 3 ? " or 1" : "");
    }
    a->mask_stride[i] = mask->shape[i] == 1 ? 0 : mask->stride[i];
  }
  if (call->packed) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: a mask is not offered together with starts", call->name);
  }
  a->mask = mask->data;
  a->mask_type = mask->dtype == RDNA_BOOL  ? FLASH_MASK_BOOL
                 : mask->dtype == RDNA_F32 ? FLASH_MASK_F32
                                           : FLASH_MASK_SAME;
  return RDNA_OK;
}

/* An f32 of |rank|. */
static rdna_status check_f32(const struct call *call, const char *argument, const rdna_tensor *tensor, int rank) {
  RDNA_TRY(rdna__check_tensor(call->name, argument, tensor));
  RDNA_TRY(rdna__check_dtype(call->name, argument, tensor, RDNA_F32));
  return rdna__check_rank(call->name, argument, tensor, rank);
}

static rdna_status check_slopes(struct call *call) {
  const rdna_tensor *slopes = call->options.slopes;
  if (!slopes) return RDNA_OK;
  RDNA_TRY(check_f32(call, "slopes", slopes, slopes->rank == 2 ? 2 : 1));
  RDNA_TRY(rdna__check_size(call->name, "slopes", slopes, slopes->rank - 1, call->args.heads, "the heads of q"));
  if (slopes->rank == 2) RDNA_TRY(rdna__check_size(call->name, "slopes", slopes, 0, call->args.batch, "the batch"));
  RDNA_TRY(rdna__check_contiguous(call->name, "slopes", slopes));
  call->args.slopes = slopes->data;
  call->args.slopes_stride = slopes->rank == 2 ? call->args.heads : 0;
  return RDNA_OK;
}

static rdna_status check_sinks(struct call *call) {
  const rdna_tensor *sinks = call->options.sinks;
  if (!sinks) return RDNA_OK;
  RDNA_TRY(check_f32(call, "sinks", sinks, 1));
  RDNA_TRY(rdna__check_size(call->name, "sinks", sinks, 0, call->args.heads, "the heads of q"));
  RDNA_TRY(rdna__check_contiguous(call->name, "sinks", sinks));
  call->args.sinks = sinks->data;
  return RDNA_OK;
}

static rdna_status check_lse(struct call *call, const rdna_tensor *lse, const rdna_tensor *q) {
  struct flash_args *a = &call->args;
  RDNA_TRY(check_f32(call, "lse", lse, call->packed ? 2 : 3));
  if (!call->packed) RDNA_TRY(rdna__check_size(call->name, "lse", lse, 0, a->batch, "the batch of q"));
  RDNA_TRY(rdna__check_size(call->name, "lse", lse, call->packed ? 0 : 1, a->heads, "the heads of q"));
  int64_t rows = q->shape[call->packed ? 0 : 2];
  RDNA_TRY(rdna__check_size(call->name, "lse", lse, call->packed ? 1 : 2, rows, "the queries of q"));
  RDNA_TRY(rdna__check_contiguous(call->name, "lse", lse));
  a->lse = lse->data;
  a->lse_stride[0] = call->packed ? 0 : a->heads * rows;
  a->lse_stride[1] = rows;
  return RDNA_OK;
}

/* out, or its gradient. */
static rdna_status check_out(struct call *call, const char *argument, const rdna_tensor *out, const rdna_tensor *q,
                             const rdna_tensor *v) {
  int rows = call->packed ? 0 : 2, width = call->packed ? 2 : 3;
  RDNA_TRY(check_operand(call, argument, out, q));
  RDNA_TRY(rdna__check_size(call->name, argument, out, 1, q->shape[1], "the heads of q"));
  RDNA_TRY(rdna__check_size(call->name, argument, out, rows, q->shape[rows], "the queries of q"));
  return rdna__check_size(call->name, argument, out, width, v->shape[width], "the head size of v");
}

/* Limits and numbers of the options. */
static void take_options(struct call *call) {
  const rdna_sdpa *o = &call->options;
  struct flash_args *a = &call->args;
  a->left = a->right = FLASH_UNLIMITED;
  if (o->windowed) a->left = o->left, a->right = o->right;
  if (o->causal) a->right = 0;
  a->bottom_right = o->diagonal == RDNA_DIAGONAL_BOTTOM_RIGHT;
  a->scale = o->scale, a->softcap = o->softcap, a->dropout = o->dropout;
  a->seed = o->seed, a->offset = o->offset;
}

/* Whether kernels can read or write |t| where it is. */
static bool fits(const rdna_tensor *t, int row_dimension) {
  int64_t unit = in_16(t->dtype);
  int last = t->rank - 1;
  if (t->stride[last] != 1 && t->shape[last] != 1) return false;
  if ((uintptr_t)t->data % 16 != 0 || t->shape[last] % unit != 0) return false;
  for (int i = 0; i < last; i++)
    if (t->shape[i] > 1 && t->stride[i] % unit != 0) return false;
  int64_t row = t->stride[row_dimension];
  return t->shape[row_dimension] <= 1 || (row >= 0 && row < MOST_STRIDE);
}

/* A dense tensor like |t| in scratch, its rows zero-padded to 16 bytes; |inside| is the part of it that is t's. */
static rdna_status allocate_like(struct call *call, const rdna_tensor *t, rdna_tensor *out, rdna_tensor *inside) {
  int64_t shape[RDNA_MAX_RANK], unit = in_16(t->dtype);
  int last = t->rank - 1;
  memcpy(shape, t->shape, sizeof shape);
  shape[last] = rdna__divide_up(shape[last], unit) * unit;
  RDNA_TRY(rdna__scratch_tensor(&call->scratch, t->dtype, t->rank, shape, out));
  *inside = *out;
  inside->shape[last] = t->shape[last];
  return RDNA_OK;
}

/* |t| itself, or a copy that kernels can read. */
static rdna_status readable(struct call *call, const rdna_tensor *t, rdna_tensor *out) {
  rdna_tensor inside;
  *out = *t;
  if (fits(t, call->packed ? 0 : 2)) return RDNA_OK;
  RDNA_TRY(allocate_like(call, t, out, &inside));
  if (inside.shape[t->rank - 1] != out->shape[t->rank - 1])
    RDNA_TRY(rdna_fill_bytes(call->stream, out->data, 0, rdna_dtype_bytes(t->dtype, rdna_tensor_count(out))));
  return rdna_op_copy(call->stream, t, &inside);
}

/* Whether kernels take the options that know limits and a mask, no more. */
static bool is_masked(const struct call *call) {
  const struct flash_args *a = &call->args;
  return a->mask_type != FLASH_NO_MASK && a->softcap == 0 && a->dropout == 0 && !a->slopes && call->dtype != RDNA_F32 &&
         a->d <= 128 && a->dv <= 128;
}

/* Only limits, and nothing that turns the order of scores. */
static bool is_plain(const struct flash_args *a) {
  return a->scale > 0 && a->softcap == 0 && a->dropout == 0 && !a->slopes && a->mask_type == FLASH_NO_MASK;
}

static bool has_only_limits(const rdna__route *route, const void *call) {
  return is_plain(&((const struct call *)call)->args);
}
static bool has_only_a_mask(const rdna__route *route, const void *call) { return is_masked(call); }

/* By the options; the head sizes are those that a group's registers and tiles are made for. */
enum { FORWARD, DELTA, QUERIES, KEYS, MASK, ANY_MASK }; /* kernels of a row */
#define ALL_SIZES "_{float}_{64|128|256}"
#define FORWARD_SIZES "_{float}_{64|128|256|wide}"
#define HALVES "_{f16|bf16}_{64|128}"
static const rdna__route routes[] = {
    {.name = "plain",
     .kernels = {"flash_forward" FORWARD_SIZES, "flash_delta_{float}", "flash_backward_queries" ALL_SIZES,
                 "flash_backward_keys" ALL_SIZES},
     .when = "no options but limits: causal, windows, packed sequences; a positive scale",
     .applies = has_only_limits},
    {.name = "masked",
     .kernels = {"flash_forward_masked" HALVES, "flash_delta_{float}", "flash_backward_queries_masked" HALVES,
                 "flash_backward_keys_masked" HALVES, "flash_mask_masked" HALVES, "flash_mask_{float}"},
     .when = "a mask and limits, 16-bit types, heads of at most 128 values",
     .applies = has_only_a_mask},
    {.name = "any",
     .kernels = {"flash_forward_any" FORWARD_SIZES, "flash_delta_{float}", "flash_backward_queries_any" ALL_SIZES,
                 "flash_backward_keys_any" ALL_SIZES, "flash_mask_{float}", "flash_mask_{float}"},
     .when = "all others: softcap, dropout, slopes, masks of f32"},
};
#undef ALL_SIZES
#undef FORWARD_SIZES
#undef HALVES
RDNA_ROUTES(rdna__sdpa_routes, "sdpa, sdpa_backward", routes)

static bool is_wide(const struct flash_args *a) { return a->d > FLASH_MAX_D || a->dv > FLASH_MAX_D; }

static rdna_status launch(const struct call *call, int step, rdna_grid grid, const void *args) {
  const struct flash_args *a = &call->args;
  int32_t d = a->d > a->dv ? a->d : a->dv;
  return RDNA__ROUTE_LAUNCH(call->stream, rdna__route_choose(&rdna__sdpa_routes, call), step, grid, args,
                            rdna_dtype_name(call->dtype),
                            d <= 64    ? "64"
                            : d <= 128 ? "128"
                            : d <= 256 ? "256"
                                       : "wide");
}

static rdna_status run_forward(struct call *call, const rdna_tensor *q, const rdna_tensor *k, const rdna_tensor *v,
                               const rdna_tensor *out) {
  struct flash_args *a = &call->args;
  rdna_tensor from_q, from_k, from_v, to = *out, inside;
  RDNA_TRY(readable(call, q, &from_q));
  RDNA_TRY(readable(call, k, &from_k));
  RDNA_TRY(readable(call, v, &from_v));
  bool direct = fits(out, call->packed ? 0 : 2);
  if (!direct) RDNA_TRY(allocate_like(call, out, &to, &inside));
  a->q = from_q.data, a->k = from_k.data, a->v = from_v.data, a->out = to.data;
  a->d = (int32_t)from_q.shape[from_q.rank - 1], a->dv = (int32_t)from_v.shape[from_v.rank - 1];
  strides_of(call, &from_q, a->q_stride);
  strides_of(call, &from_k, a->k_stride);
  strides_of(call, &from_v, a->v_stride);
  strides_of(call, &to, a->out_stride);
  rdna_grid grid = {0, (uint32_t)a->heads, (uint32_t)a->batch};
  RDNA_TRY(rdna__check_groups(call->name, a->sq, FLASH_ROWS, &grid.x));
  if (is_wide(a)) grid.x *= (uint32_t)flash_wide_parts(a); /* of 2^31 rows these are few */
  RDNA_TRY(launch(call, FORWARD, grid, a));
  return direct ? RDNA_OK : rdna_op_copy(call->stream, &inside, out);
}

rdna_status rdna_op_sdpa(rdna_stream *stream, const rdna_sdpa *options, const rdna_tensor *q, const rdna_tensor *k,
                         const rdna_tensor *v, const rdna_tensor *out, const rdna_tensor *lse) {
  struct call call = {.name = "sdpa", .stream = stream, .scratch = {.stream = stream, .holder = "sdpa"}};
  RDNA_TRY(RDNA__OPTIONS(call.name, "options", options, &call.options));
  options = &call.options;
  RDNA_TRY(check_options(&call));
  RDNA_TRY(check_operands(&call, q, k, v, FLASH_WIDE_D, FLASH_WIDE_DV));
  RDNA_TRY(check_mask(&call));
  RDNA_TRY(check_slopes(&call));
  RDNA_TRY(check_sinks(&call));
  RDNA_TRY(check_out(&call, "out", out, q, v));
  RDNA_TRY(rdna__check_distinct(call.name, out));
  if (lse) RDNA_TRY(check_lse(&call, lse, q));
  const rdna__named written[] = {{"out", out}, {"lse", lse}};
  const rdna__named read[] = {{"q", q},
                              {"k", k},
                              {"v", v},
                              {"mask", options->mask},
                              {"slopes", options->slopes},
                              {"sinks", options->sinks},
                              {"q_starts", options->q_starts},
                              {"k_starts", options->k_starts}};
  RDNA_TRY(rdna__check_written_apart(call.name, written, 2, read, 8, 0));
  take_options(&call);
  if (call.args.batch == 0 || rdna_tensor_count(out) == 0) return RDNA_OK;
  return rdna__scratch_release(&call.scratch, run_forward(&call, q, k, v, out));
}

/* A gradient that a kernel can write: |t| itself, or scratch like it, |inside| of which is copied to it later. NULL is
 * scratch that nobody reads. */
struct gradient {
  const rdna_tensor *wanted;
  rdna_tensor to, inside;
  bool direct;
};

static rdna_status writable(struct call *call, const rdna_tensor *wanted, const rdna_tensor *like,
                            struct gradient *out) {
  *out = (struct gradient){.wanted = wanted};
  out->direct = wanted && fits(wanted, call->packed ? 0 : 2);
  if (!out->direct) return allocate_like(call, wanted ? wanted : like, &out->to, &out->inside);
  out->to = *wanted;
  return RDNA_OK;
}
static rdna_status deliver(const struct call *call, const struct gradient *g) {
  return !g->wanted || g->direct ? RDNA_OK : rdna_op_copy(call->stream, &g->inside, g->wanted);
}

static rdna_status launch_backward(struct call *call, int step, int64_t rows, int64_t heads,
                                   const struct flash_backward_args *args) {
  rdna_grid grid = {0, (uint32_t)heads, (uint32_t)args->of.batch};
  RDNA_TRY(rdna__check_groups(call->name, rows, FLASH_ROWS, &grid.x));
  if (grid.x == 0) return RDNA_OK;
  return launch(call, step, grid, args);
}

struct backward_tensors {
  const rdna_tensor *q, *k, *v, *out, *lse, *dout, *dq, *dk, *dv, *dmask;
};

/* Parts into which the sum of one value is cut, so that a GPU has enough to do: from the shape alone, as bits follow.
 */
static uint32_t mask_parts(int64_t groups, int64_t terms) {
  enum { ENOUGH = 256, MOST = 64 };
  int64_t parts = rdna__divide_up(ENOUGH, groups);
  if (parts > terms) parts = terms;
  return parts < 1 ? 1 : parts > MOST ? MOST : (uint32_t)parts;
}

static rdna_status run_mask(struct call *call, const struct flash_backward_args *of, const rdna_tensor *dmask) {
  struct flash_mask_args args = {.of = of->of,
                                 .dout = of->dout,
                                 .delta = of->delta,
                                 .dmask = dmask->data,
                                 .mask_batch = (int32_t)dmask->shape[0],
                                 .mask_heads = (int32_t)dmask->shape[1],
                                 .mask_queries = (int32_t)dmask->shape[2],
                                 .parts = 1,
                                 .is_f32 = dmask->dtype == RDNA_F32};
  rdna_grid grid = {0, 1, 1};
  memcpy(args.dout_stride, of->dout_stride, sizeof args.dout_stride);
  for (int i = 0; i < 4; i++) args.dmask_stride[i + 1] = dmask->stride[i];
  if (rdna_tensor_count(dmask) == 0) return RDNA_OK;
  int64_t tiles = rdna__divide_up(dmask->shape[3], FLASH_MASK_TILE) *
                  rdna__divide_up(dmask->shape[2], FLASH_MASK_TILE) * dmask->shape[1] * dmask->shape[0];
  args.parts = mask_parts(tiles, flash_mask_terms(&args));
  RDNA_TRY(rdna__check_groups(call->name, tiles * args.parts, 1, &grid.x));
  int step = args.mask_queries > 1 || args.of.sq == 1 ? MASK : ANY_MASK;
  if (args.parts == 1) return launch(call, step, grid, &args);

  const int64_t shape[5] = {args.parts, dmask->shape[0], dmask->shape[1], dmask->shape[2], dmask->shape[3]};
  rdna_tensor parts, sum;
  RDNA_TRY(rdna__scratch_tensor(&call->scratch, RDNA_F32, 5, shape, &parts));
  RDNA_TRY(rdna__scratch_tensor(&call->scratch, RDNA_F32, 4, shape + 1, &sum));
  args.dmask = parts.data;
  args.is_f32 = true;
  memcpy(args.dmask_stride, parts.stride, sizeof args.dmask_stride);
  RDNA_TRY(launch(call, step, grid, &args));
  RDNA_TRY(rdna_op_reduce(call->stream, RDNA_REDUCTION_SUM, &parts, 1, 0, &sum));
  return rdna_op_copy(call->stream, &sum, dmask);
}

static rdna_status run_backward(struct call *call, const struct backward_tensors *t) {
  struct flash_backward_args args = {0};
  struct flash_args *a = &call->args;
  rdna_tensor q, k, v, out, dout;
  struct gradient dq, dk, dv;
  RDNA_TRY(readable(call, t->q, &q));
  RDNA_TRY(readable(call, t->k, &k));
  RDNA_TRY(readable(call, t->v, &v));
  RDNA_TRY(readable(call, t->out, &out));
  RDNA_TRY(readable(call, t->dout, &dout));
  void *delta;
  RDNA_TRY(rdna__scratch_take(&call->scratch, rdna_dtype_bytes(RDNA_F32, rdna_tensor_count(t->lse)), &delta));
  a->q = q.data, a->k = k.data, a->v = v.data, a->out = out.data;
  a->d = (int32_t)q.shape[q.rank - 1], a->dv = (int32_t)v.shape[v.rank - 1];
  strides_of(call, &q, a->q_stride);
  strides_of(call, &k, a->k_stride);
  strides_of(call, &v, a->v_stride);
  strides_of(call, &out, a->out_stride);
  strides_of(call, &dout, args.dout_stride);
  struct flash_delta_args rows = {.of = *a, .dout = dout.data, .delta = delta};
  memcpy(rows.dout_stride, args.dout_stride, sizeof rows.dout_stride);
  rdna_grid grid = {0, (uint32_t)a->heads, (uint32_t)a->batch};
  RDNA_TRY(rdna__check_groups(call->name, a->sq, FLASH_ROWS, &grid.x));
  if (grid.x > 0) RDNA_TRY(launch(call, DELTA, grid, &rows));

  a->out = NULL;
  args.of = *a, args.dout = dout.data, args.delta = delta;
  /* with one score to each of its values the kernel of queries has it at hand */
  bool scores_alone = t->dmask && is_masked(call) && t->dmask->shape[0] == a->batch && t->dmask->shape[1] == a->heads &&
                      t->dmask->shape[2] == a->sq;
  if (t->dq || scores_alone) {
    if (scores_alone) {
      args.dmask = t->dmask->data;
      memcpy(args.dmask_stride, t->dmask->stride, sizeof args.dmask_stride);
    }
    RDNA_TRY(writable(call, t->dq, t->q, &dq));
    args.dq = dq.to.data;
    strides_of(call, &dq.to, args.dq_stride);
    RDNA_TRY(launch_backward(call, QUERIES, a->sq, a->heads, &args));
    RDNA_TRY(deliver(call, &dq));
  }
  if (t->dk || t->dv) {
    RDNA_TRY(writable(call, t->dk, t->k, &dk));
    RDNA_TRY(writable(call, t->dv, t->v, &dv));
    args.dk = dk.to.data, args.dv = dv.to.data;
    strides_of(call, &dk.to, args.dk_stride);
    strides_of(call, &dv.to, args.dv_stride);
    RDNA_TRY(launch_backward(call, KEYS, a->sk, a->kv_heads, &args));
    RDNA_TRY(deliver(call, &dk));
    RDNA_TRY(deliver(call, &dv));
  }
  return t->dmask && !scores_alone ? run_mask(call, &args, t->dmask) : RDNA_OK;
}

/* It has the mask's sizes and a type that a mask may have. */
static rdna_status check_dmask(struct call *call, const rdna_tensor *dmask) {
  const rdna_tensor *mask = call->options.mask;
  if (!mask || mask->dtype == RDNA_BOOL) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: dmask is there and mask is %s; a mask that is added has a gradient",
                      call->name, mask ? "bool" : "NULL");
  }
  RDNA_TRY(rdna__check_tensor(call->name, "dmask", dmask));
  RDNA_TRY(rdna__check_same_dtype(call->name, "dmask", dmask, "mask", mask));
  RDNA_TRY(rdna__check_same_shape(call->name, "dmask", dmask, "mask", mask));
  return rdna__check_distinct(call->name, dmask);
}

rdna_status rdna_op_sdpa_backward(rdna_stream *stream, const rdna_sdpa *options, const rdna_tensor *q,
                                  const rdna_tensor *k, const rdna_tensor *v, const rdna_tensor *out,
                                  const rdna_tensor *lse, const rdna_tensor *dout, const rdna_tensor *dq,
                                  const rdna_tensor *dk, const rdna_tensor *dv, const rdna_tensor *dmask) {
  struct call call = {
      .name = "sdpa_backward", .stream = stream, .scratch = {.stream = stream, .holder = "sdpa_backward"}};
  struct backward_tensors tensors = {q, k, v, out, lse, dout, dq, dk, dv, dmask};
  RDNA_TRY(RDNA__OPTIONS(call.name, "options", options, &call.options));
  options = &call.options;
  RDNA_TRY(check_options(&call));
  RDNA_TRY(check_operands(&call, q, k, v, FLASH_MAX_D, FLASH_MAX_D));
  RDNA_TRY(check_mask(&call));
  RDNA_TRY(check_slopes(&call));
  RDNA_TRY(check_sinks(&call));
  RDNA_TRY(check_out(&call, "out", out, q, v));
  RDNA_TRY(check_out(&call, "dout", dout, q, v));
  RDNA_TRY(check_lse(&call, lse, q));
  const rdna__named written[] = {{"dq", dq}, {"dk", dk}, {"dv", dv}, {"dmask", dmask}};
  const rdna__named read[] = {{"q", q},
                              {"k", k},
                              {"v", v},
                              {"mask", options->mask},
                              {"slopes", options->slopes},
                              {"sinks", options->sinks},
                              {"q_starts", options->q_starts},
                              {"k_starts", options->k_starts},
                              {"out", out},
                              {"lse", lse},
                              {"dout", dout}};
  for (int i = 0; i < 3; i++) {
    if (!written[i].tensor) continue;
    RDNA_TRY(check_operand(&call, written[i].name, written[i].tensor, q));
    RDNA_TRY(rdna__check_same_shape(call.name, written[i].name, written[i].tensor, read[i].name, read[i].tensor));
    RDNA_TRY(rdna__check_distinct(call.name, written[i].tensor));
  }
  if (dmask) RDNA_TRY(check_dmask(&call, dmask));
  RDNA_TRY(rdna__check_written_apart(call.name, written, 4, read, 11, 0));
  take_options(&call);
  if (call.args.batch == 0 || call.args.heads == 0)
    return dmask ? rdna_op_fill(stream, (rdna_scalar){0}, dmask) : RDNA_OK; /* the sum of nothing */
  return rdna__scratch_release(&call.scratch, run_backward(&call, &tensors));
}
