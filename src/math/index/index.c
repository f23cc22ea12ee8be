#include "rdna/op/index.h"

#include "kernel/host.h"
#include "math/common/plan/check.h"
#include "math/index/index_kernels.h"
#include "math/quant/quant.h"
#include "math/quant/quant_unpack.h"

static const char *const NAME = "gather_rows";

static const char *kernel_for(rdna_dtype dtype) {
  switch (dtype) {
    case RDNA_F32:
      return "gather_rows_f32";
    case RDNA_F16:
      return "gather_rows_f16";
    case RDNA_BF16:
      return "gather_rows_bf16";
#define BLOCKS(name, NAME) \
  case RDNA_##NAME:        \
    return "gather_rows_" #name;
      RDNA_QUANT_FORMATS(BLOCKS)
#undef BLOCKS
    default:
      return NULL;
  }
}

static rdna_status check_table(const rdna_tensor *table, int64_t *out_stride) {
  int64_t block = rdna_dtype_block_values(table->dtype), rows, cols;
  RDNA_TRY(rdna__check_rank(NAME, "table", table, 2));
  RDNA_TRY(rdna__check_rows(NAME, "table", table, &rows, &cols, out_stride));
  if (cols % block != 0 || *out_stride % block != 0) {
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "gather_rows: table is %s with rows of %lld values, %lld apart; both must be multiples of %lld",
                      rdna_dtype_name(table->dtype), (long long)cols, (long long)*out_stride, (long long)block);
  }
  int alignment = block > 1 ? rdna__blocks_alignment(table->dtype) : (int)rdna_dtype_block_bytes(table->dtype);
  if ((uintptr_t)table->data % (uintptr_t)alignment != 0) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "gather_rows: table is %s at %p; it must be aligned to %d bytes",
                      rdna_dtype_name(table->dtype), table->data, alignment);
  }
  return RDNA_OK;
}

rdna_status rdna_op_gather_rows(rdna_stream *stream, const rdna_tensor *table, const rdna_tensor *ids,
                                const rdna_tensor *out) {
  struct gather_args args = {0};
  int64_t out_rows, out_cols, groups;
  RDNA_TRY(rdna__check_tensor(NAME, "table", table));
  const char *kernel = kernel_for(table->dtype);
  if (!kernel) {
    return rdna__fail(RDNA_UNSUPPORTED,
                      "gather_rows: table is %s; the types offered are f32, f16, bf16 and those of blocks",
                      rdna_dtype_name(table->dtype));
  }
  RDNA_TRY(check_table(table, &args.table_stride));
  RDNA_TRY(rdna__check_tensor(NAME, "ids", ids));
  RDNA_TRY(rdna__check_dtype(NAME, "ids", ids, RDNA_I32));
  RDNA_TRY(rdna__check_rank(NAME, "ids", ids, 1));
  RDNA_TRY(rdna__check_contiguous(NAME, "ids", ids));
  RDNA_TRY(rdna__check_tensor(NAME, "out", out));
  RDNA_TRY(rdna__check_dtype(NAME, "out", out, RDNA_F32));
  RDNA_TRY(rdna__check_rank(NAME, "out", out, 2));
  RDNA_TRY(rdna__check_size(NAME, "out", out, 0, ids->shape[0], "the number of ids"));
  RDNA_TRY(rdna__check_size(NAME, "out", out, 1, table->shape[1], "the columns of table"));
  RDNA_TRY(rdna__check_rows(NAME, "out", out, &out_rows, &out_cols, &args.out_stride));
  if (rdna_tensor_count(out) == 0) return RDNA_OK;
  RDNA_TRY(rdna__check_written_rows(NAME, "out", out, out_rows, out_cols, args.out_stride));
  RDNA_TRY(rdna__check_apart(NAME, "out", out, "table", table));
  RDNA_TRY(rdna__check_apart(NAME, "out", out, "ids", ids));
  args.table = table->data;
  args.ids = ids->data;
  args.out = out->data;
  args.rows = table->shape[0], args.cols = table->shape[1], args.tokens = ids->shape[0];
  groups = args.tokens * ((args.cols - 1) / GATHER_VALUES_PER_GROUP + 1);
  if (groups > RDNA__GRID_X_MAX) groups = RDNA__GRID_X_MAX; /* groups take turns */
  return rdna__launch_named(stream, kernel, (rdna_grid){(uint32_t)groups, 1, 1}, &args);
}
