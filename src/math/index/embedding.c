/* Embedding lookup and its gradient. */
#include "rdna/op/index.h"

#include "math/common/plan/route.h"
#include "math/index/index_kernels.h"
#include "math/index/indexed_plan.h"
#include "math/quant/quant.h"

static const char *const NAME = "embedding";

static const rdna__route convert_route[] = {{.name = "converted",
                                             .kernels = {"gather_rows_{f16|bf16}", "gather_rows_{blocks}"},
                                             .when = "rows of 16-bit or quantized types become f32"}};
RDNA_FIXED_ROUTES(rdna__embedding_routes, "embedding, a table of another type", convert_route)

/* Returns whether gather_rows_* looks up rows of |dtype|, converted to f32. */
static bool can_convert(rdna_dtype dtype) {
  return dtype == RDNA_F16 || dtype == RDNA_BF16 || rdna_dtype_block_values(dtype) > 1;
}

static rdna_status check_table(const rdna_tensor *table, int64_t *out_stride) {
  int64_t block = rdna_dtype_block_values(table->dtype), rows, cols;
  RDNA_TRY(rdna__check_rows(NAME, "table", table, &rows, &cols, out_stride));
  if (cols % block != 0 || *out_stride % block != 0) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "embedding: table is %s with rows of %lld values, %lld apart; both must be multiples of %lld",
                      rdna_dtype_name(table->dtype), (long long)cols, (long long)*out_stride, (long long)block);
  }
  int alignment = block > 1 ? rdna__blocks_alignment(table->dtype) : (int)rdna_dtype_block_bytes(table->dtype);
  if ((uintptr_t)table->data % (uintptr_t)alignment != 0) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "embedding: table is %s at %p; it must be aligned to %d bytes",
                      rdna_dtype_name(table->dtype), table->data, alignment);
  }
  return RDNA_OK;
}

static rdna_status look_up_converted(rdna_stream *stream, const rdna_tensor *table, int64_t table_stride,
                                     const rdna_tensor *ids, const rdna_tensor *out) {
  struct gather_args args = {.table = table->data,
                             .ids = ids->data,
                             .out = out->data,
                             .rows = table->shape[0],
                             .cols = table->shape[1],
                             .tokens = rdna_tensor_count(ids),
                             .table_stride = table_stride};
  int64_t out_rows, out_cols;
  if (ids->dtype != RDNA_I32) {
    return rdna__fail(RDNA_UNSUPPORTED, "embedding: ids is %s; where table is %s and out is f32 it must be i32",
                      rdna_dtype_name(ids->dtype), rdna_dtype_name(table->dtype));
  }
  RDNA_TRY(rdna__check_contiguous(NAME, "ids", ids));
  RDNA_TRY(rdna__check_rows(NAME, "out", out, &out_rows, &out_cols, &args.out_stride));
  if (rdna_tensor_count(out) == 0) return RDNA_OK;
  RDNA_TRY(rdna__check_written_rows(NAME, "out", out, out_rows, out_cols, args.out_stride));
  int64_t groups = args.tokens * ((args.cols - 1) / GATHER_VALUES_PER_GROUP + 1);
  rdna_grid grid = {rdna__groups_in_turn(groups), 1, 1};
  return RDNA__ROUTE_LAUNCH(stream, convert_route, 0, grid, &args, rdna_dtype_name(table->dtype));
}

rdna_status rdna_op_embedding(rdna_stream *stream, const rdna_tensor *table, const rdna_tensor *ids,
                              const rdna_tensor *out, uint32_t *outside) {
  RDNA_TRY(rdna__check_stream(NAME, stream));
  RDNA_TRY(rdna__check_tensor(NAME, "table", table));
  RDNA_TRY(rdna__check_rank(NAME, "table", table, 2));
  RDNA_TRY(rdna__check_indices(NAME, "ids", ids));
  RDNA_TRY(rdna__check_tensor(NAME, "out", out));
  bool converts = out->dtype == RDNA_F32 && can_convert(table->dtype);
  int64_t table_stride = 0;
  if (!converts) {
    RDNA_TRY(rdna__check_indexed(NAME, stream, "table", table));
    RDNA_TRY(rdna__check_same_dtype(NAME, "out", out, "table", table));
    RDNA_TRY(rdna__check_distinct(NAME, out));
  } else if (outside) {
    return rdna__fail(
        RDNA_UNSUPPORTED,
        "embedding: table is %s, out is f32 and outside is given; pass NULL, as rows of ids outside become "
        "NaN there",
        rdna_dtype_name(table->dtype));
  } else {
    RDNA_TRY(check_table(table, &table_stride));
  }
  RDNA_TRY(rdna__check_apart(NAME, "out", out, "table", table));
  RDNA_TRY(rdna__check_rank(NAME, "out", out, ids->rank + 1));
  RDNA_TRY(rdna__check_size(NAME, "out", out, ids->rank, table->shape[1], "the columns of table"));
  for (int d = 0; d < ids->rank; d++) RDNA_TRY(rdna__check_size(NAME, "out", out, d, ids->shape[d], "as that of ids"));
  RDNA_TRY(rdna__check_apart(NAME, "out", out, "ids", ids));
  if (converts) return look_up_converted(stream, table, table_stride, ids, out);
  rdna__indexed indexed = {NAME, stream, *ids, *out, rdna__index_rule(table, 0, ids->dtype, false, outside)};
  indexed.indices.rank = out->rank;
  indexed.indices.shape[ids->rank] = out->shape[ids->rank], indexed.indices.stride[ids->rank] = 0;
  indexed.base.data = table->data;
  for (int d = 0; d < ids->rank; d++) indexed.base.stride[d] = 0;
  indexed.base.stride[ids->rank] = table->stride[1];
  return rdna__index_move(&indexed, false, out, (rdna_scalar){0});
}

static rdna_status embed_backward(rdna__scratch *scratch, const rdna_tensor *dout, const rdna_tensor *ids,
                                  int64_t padding, bool by_frequency, const rdna_tensor *dtable, uint32_t *outside) {
  rdna_tensor src, dst;
  void *memory;
  rdna__indexed keys = {scratch->holder, scratch->stream, *ids, *ids,
                        rdna__index_rule(dtable, 0, ids->dtype, false, outside)};
  rdna__segments segments = {.name = scratch->holder,
                             .dtype = dtable->dtype,
                             .mode = by_frequency ? RDNA_SCATTER_MEAN : RDNA_SCATTER_ADD,
                             .outer = 1,
                             .n = rdna_tensor_count(ids),
                             .rows = dtable->shape[0],
                             .inner = dtable->shape[1]};
  keys.rule.stride = 1;
  for (int d = 0; d < ids->rank; d++) keys.base.stride[d] = 0;
  RDNA_TRY(rdna__dense_place(scratch, dtable, &dst));
  RDNA_TRY(rdna_op_fill(scratch->stream, rdna_scalar_integer(0), &dst));
  if (segments.n > 0) {
    RDNA_TRY(rdna__scratch_take(scratch, (size_t)segments.n * sizeof(uint32_t), &memory));
    RDNA_TRY(rdna__index_keys(&keys, false, segments.rows, padding, memory));
    RDNA_TRY(rdna__dense_in(scratch, dout, &src));
    segments.keys = memory, segments.src = src.data, segments.dst = dst.data;
    RDNA_TRY(rdna__segments_queue(scratch, &segments));
  }
  return rdna__dense_out(scratch, &dst, dtable);
}

rdna_status rdna_op_embedding_backward(rdna_stream *stream, const rdna_tensor *dout, const rdna_tensor *ids,
                                       int64_t padding, bool by_frequency, const rdna_tensor *dtable,
                                       uint32_t *outside) {
  static const char *const name = "embedding_backward";
  RDNA_TRY(rdna__check_stream(name, stream));
  RDNA_TRY(rdna__check_real(name, "dout", dout));
  RDNA_TRY(rdna__check_indices(name, "ids", ids));
  RDNA_TRY(rdna__check_tensor(name, "dtable", dtable));
  RDNA_TRY(rdna__check_same_dtype(name, "dtable", dtable, "dout", dout));
  RDNA_TRY(rdna__check_rank(name, "dtable", dtable, 2));
  RDNA_TRY(rdna__check_rank(name, "dout", dout, ids->rank + 1));
  RDNA_TRY(rdna__check_size(name, "dout", dout, ids->rank, dtable->shape[1], "the columns of dtable"));
  for (int d = 0; d < ids->rank; d++)
    RDNA_TRY(rdna__check_size(name, "dout", dout, d, ids->shape[d], "as that of ids"));
  if (padding < -1 || padding >= dtable->shape[0]) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "%s: padding is %lld and dtable has %lld rows; it must be one of them or -1", name,
                      (long long)padding, (long long)dtable->shape[0]);
  }
  RDNA_TRY(rdna__check_distinct(name, dtable));
  RDNA_TRY(rdna__check_apart(name, "dtable", dtable, "dout", dout));
  RDNA_TRY(rdna__check_apart(name, "dtable", dtable, "ids", ids));
  RDNA_TRY(rdna__check_segments(name, dout->dtype, RDNA_SCATTER_ADD, rdna_tensor_count(ids), dtable->shape[0]));
  if (rdna_tensor_count(dtable) == 0) return RDNA_OK;
  rdna__scratch scratch = {.stream = stream, .holder = name};
  return rdna__scratch_release(&scratch, embed_backward(&scratch, dout, ids, padding, by_frequency, dtable, outside));
}
