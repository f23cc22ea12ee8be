#include "math/common/plan/check.h"

#include <float.h>
#include <stdio.h>

const char *rdna__tensor_text(const rdna_tensor *tensor, char text[RDNA__TENSOR_TEXT]) {
  int used = snprintf(text, RDNA__TENSOR_TEXT, "%s (", rdna_dtype_name(tensor->dtype));
  for (int i = 0; i < tensor->rank && i < RDNA_MAX_RANK; i++) {
    used +=
        snprintf(text + used, (size_t)(RDNA__TENSOR_TEXT - used), i ? ", %lld" : "%lld", (long long)tensor->shape[i]);
  }
  snprintf(text + used, (size_t)(RDNA__TENSOR_TEXT - used), ")");
  return text;
}

rdna_status rdna__check_stream(const char *op_name, const rdna_stream *stream) {
  if (!stream) return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: the stream is NULL; pass a stream", op_name);
  return RDNA_OK;
}

rdna_status rdna__check_tensor(const char *op_name, const char *argument, const rdna_tensor *tensor) {
  char text[RDNA__TENSOR_TEXT];
  if (!tensor) return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is NULL; pass a tensor", op_name, argument);
  if ((unsigned)tensor->dtype >= RDNA_DTYPE_COUNT) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s has type number %d; types are 0 to %d", op_name, argument,
                      (int)tensor->dtype, RDNA_DTYPE_COUNT - 1);
  }
  if (tensor->rank < 0 || tensor->rank > RDNA_MAX_RANK) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s has rank %d; ranks are 0 to %d", op_name, argument, tensor->rank,
                      RDNA_MAX_RANK);
  }
  int64_t bytes = 8; /* an upper bound of the bytes of one value, also of one in a block */
  bool empty = false, too_large = false;
  for (int i = 0; i < tensor->rank; i++) {
    int64_t size = tensor->shape[i];
    if (size < 0) {
      return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s; size %d is %lld, and sizes are not negative", op_name,
                        argument, rdna__tensor_text(tensor, text), i, (long long)size);
    }
    empty = empty || size == 0;
    too_large = too_large || __builtin_mul_overflow(bytes, size, &bytes);
  }
  if (empty) return RDNA_OK;
  if (too_large) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s; that is more than 63 bits of bytes", op_name, argument,
                      rdna__tensor_text(tensor, text));
  }
  if (!tensor->data) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s with data NULL; only an empty tensor has no data", op_name,
                      argument, rdna__tensor_text(tensor, text));
  }
  if (rdna_dtype_block_values(tensor->dtype) == 1 && (uintptr_t)tensor->data % rdna_dtype_block_bytes(tensor->dtype)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s at %p; the address must be a multiple of %zu", op_name,
                      argument, rdna__tensor_text(tensor, text), tensor->data, rdna_dtype_block_bytes(tensor->dtype));
  }
  return RDNA_OK;
}

rdna_status rdna__check_float(const char *op_name, const char *argument, const rdna_tensor *tensor) {
  RDNA_TRY(rdna__check_tensor(op_name, argument, tensor));
  if (tensor->dtype != RDNA_F32 && tensor->dtype != RDNA_F16 && tensor->dtype != RDNA_BF16) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: %s is %s; the types offered are f32, f16 and bf16", op_name, argument,
                      rdna_dtype_name(tensor->dtype));
  }
  return RDNA_OK;
}

rdna_status rdna__check_real(const char *op_name, const char *argument, const rdna_tensor *tensor) {
  RDNA_TRY(rdna__check_tensor(op_name, argument, tensor));
  return tensor->dtype == RDNA_F64 ? RDNA_OK : rdna__check_float(op_name, argument, tensor);
}

rdna_status rdna__check_unquantized(const char *op_name, const char *argument, const rdna_tensor *tensor) {
  RDNA_TRY(rdna__check_tensor(op_name, argument, tensor));
  if (rdna_dtype_block_values(tensor->dtype) == 1) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "%s: %s is %s; the types offered are all but the quantized ones", op_name,
                    argument, rdna_dtype_name(tensor->dtype));
}

rdna_status rdna__check_dtype(const char *op_name, const char *argument, const rdna_tensor *tensor, rdna_dtype dtype) {
  if (tensor->dtype != dtype) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s; it must be %s", op_name, argument,
                      rdna_dtype_name(tensor->dtype), rdna_dtype_name(dtype));
  }
  return RDNA_OK;
}

rdna_status rdna__check_rank(const char *op_name, const char *argument, const rdna_tensor *tensor, int rank) {
  char text[RDNA__TENSOR_TEXT];
  if (tensor->rank != rank) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s, of rank %d; its rank must be %d", op_name, argument,
                      rdna__tensor_text(tensor, text), tensor->rank, rank);
  }
  return RDNA_OK;
}

rdna_status rdna__check_one_value(const char *op_name, const char *argument, const rdna_tensor *tensor) {
  char text[RDNA__TENSOR_TEXT];
  if (rdna_tensor_count(tensor) == 1) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s; it must be one value", op_name, argument,
                    rdna__tensor_text(tensor, text));
}

rdna_status rdna__check_size(const char *op_name, const char *argument, const rdna_tensor *tensor, int dim,
                             int64_t size, const char *meaning) {
  char text[RDNA__TENSOR_TEXT];
  if (tensor->shape[dim] != size) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s; size %d must be %lld, %s", op_name, argument,
                      rdna__tensor_text(tensor, text), dim, (long long)size, meaning);
  }
  return RDNA_OK;
}

rdna_status rdna__check_same_dtype(const char *op_name, const char *argument, const rdna_tensor *tensor,
                                   const char *other_argument, const rdna_tensor *other) {
  if (tensor->dtype != other->dtype) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s and %s is %s; cast one so that they agree", op_name,
                      argument, rdna_dtype_name(tensor->dtype), other_argument, rdna_dtype_name(other->dtype));
  }
  return RDNA_OK;
}

rdna_status rdna__check_same_shape(const char *op_name, const char *argument, const rdna_tensor *tensor,
                                   const char *other_argument, const rdna_tensor *other) {
  bool same = tensor->rank == other->rank;
  for (int i = 0; same && i < tensor->rank; i++) same = tensor->shape[i] == other->shape[i];
  if (!same) {
    char text[RDNA__TENSOR_TEXT], other_text[RDNA__TENSOR_TEXT];
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s and %s is %s; their shapes must be equal", op_name, argument,
                      rdna__tensor_text(tensor, text), other_argument, rdna__tensor_text(other, other_text));
  }
  return RDNA_OK;
}

rdna_status rdna__check_dense_tail(const char *op_name, const char *argument, const rdna_tensor *tensor, int dense) {
  char text[RDNA__TENSOR_TEXT];
  int64_t want = 1;
  if (rdna_tensor_count(tensor) == 0) return RDNA_OK;
  for (int i = tensor->rank - 1; i >= 0 && i >= tensor->rank - dense; i--) {
    if (tensor->shape[i] != 1 && tensor->stride[i] != want) {
      return rdna__fail(
          RDNA_UNSUPPORTED, "%s: %s is %s with stride %lld in dimension %d; it must be %lld: make it contiguous first",
          op_name, argument, rdna__tensor_text(tensor, text), (long long)tensor->stride[i], i, (long long)want);
    }
    want *= tensor->shape[i];
  }
  return RDNA_OK;
}

rdna_status rdna__check_contiguous(const char *op_name, const char *argument, const rdna_tensor *tensor) {
  return rdna__check_dense_tail(op_name, argument, tensor, tensor->rank);
}

rdna_status rdna__check_apart(const char *op_name, const char *out_argument, const rdna_tensor *out,
                              const char *argument, const rdna_tensor *in) {
  if (rdna_tensor_overlap(out, in)) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s at %p and %s at %p overlap; they must be apart", op_name,
                      out_argument, out->data, argument, in->data);
  }
  return RDNA_OK;
}

rdna_status rdna__check_overlap(const char *op_name, const char *out_argument, const rdna_tensor *out,
                                const char *argument, const rdna_tensor *in) {
  bool same = out->data == in->data && out->rank == in->rank &&
              rdna_dtype_block_bytes(out->dtype) == rdna_dtype_block_bytes(in->dtype);
  for (int i = 0; same && i < out->rank; i++) {
    same = out->shape[i] == in->shape[i] && (out->shape[i] == 1 || out->stride[i] == in->stride[i]);
  }
  return same ? RDNA_OK : rdna__check_apart(op_name, out_argument, out, argument, in);
}

rdna_status rdna__check_written_apart(const char *op_name, const rdna__named *written, int writes,
                                      const rdna__named *read, int reads, int shared) {
  for (int i = 0; i < writes; i++) {
    const rdna__named *w = &written[i];
    for (int j = 0; w->tensor && j < reads; j++) {
      if (!read[j].tensor) continue;
      RDNA_TRY((i == 0 && j < shared ? rdna__check_overlap : rdna__check_apart)(op_name, w->name, w->tensor,
                                                                                read[j].name, read[j].tensor));
    }
    for (int j = 0; w->tensor && j < i; j++) {
      if (!written[j].tensor) continue;
      RDNA_TRY(rdna__check_apart(op_name, w->name, w->tensor, written[j].name, written[j].tensor));
    }
  }
  return RDNA_OK;
}

rdna_status rdna__check_rows(const char *op_name, const char *argument, const rdna_tensor *tensor, int64_t *out_rows,
                             int64_t *out_cols, int64_t *out_stride) {
  char text[RDNA__TENSOR_TEXT];
  int64_t cols = tensor->rank > 0 ? tensor->shape[tensor->rank - 1] : 1;
  int64_t rows = 1, stride = cols;
  *out_rows = cols > 0 ? rdna_tensor_count(tensor) / cols : 0;
  *out_cols = cols;
  *out_stride = stride;
  if (*out_rows == 0) return RDNA_OK;
  RDNA_TRY(rdna__check_dense_tail(op_name, argument, tensor, 1));
  for (int i = tensor->rank - 2; i >= 0; i--) {
    if (tensor->shape[i] == 1) continue;
    if (rows == 1) {
      stride = tensor->stride[i];
    } else if (tensor->stride[i] != rows * stride) {
      return rdna__fail(RDNA_UNSUPPORTED,
                        "%s: %s is %s with stride %lld in dimension %d; its rows must lie evenly, %lld here: make it "
                        "contiguous first",
                        op_name, argument, rdna__tensor_text(tensor, text), (long long)tensor->stride[i], i,
                        (long long)(rows * stride));
    }
    rows *= tensor->shape[i];
  }
  *out_stride = stride;
  return RDNA_OK;
}

rdna_status rdna__check_written_rows(const char *op_name, const char *argument, const rdna_tensor *tensor, int64_t rows,
                                     int64_t cols, int64_t stride) {
  char text[RDNA__TENSOR_TEXT];
  if (rows > 1 && stride > -cols && stride < cols) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s with rows %lld apart; rows of %lld would overlap", op_name,
                      argument, rdna__tensor_text(tensor, text), (long long)stride, (long long)cols);
  }
  return RDNA_OK;
}

rdna_status rdna__check_dim(const char *op_name, const char *argument, const rdna_tensor *tensor, int *dim) {
  char text[RDNA__TENSOR_TEXT];
  int count = tensor->rank > 0 ? tensor->rank : 1;
  if (*dim < -count || *dim >= count) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: dim is %d and %s is %s; dim must be from %d to %d", op_name, *dim,
                      argument, rdna__tensor_text(tensor, text), -count, count - 1);
  }
  if (*dim < 0) *dim += count;
  return RDNA_OK;
}

rdna_status rdna__check_epsilon(const char *op_name, double epsilon) {
  if (epsilon >= 0 && epsilon <= (double)FLT_MAX) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: epsilon is %g; it must be finite and not negative", op_name, epsilon);
}

uint32_t rdna__groups_in_turn(int64_t groups) {
  return (uint32_t)(groups < RDNA__GRID_X_MAX ? groups : RDNA__GRID_X_MAX);
}

uint32_t rdna__groups_of_waves(rdna_stream *stream, int64_t rows, int64_t row_bytes, int threads) {
  enum { SHORT_BYTES = 1024, GROUPS_OF_A_UNIT = 16 };
  const rdna_device_info *info = rdna_device_get_info(rdna_stream_device(stream));
  int64_t waves = threads / (info->wave_size == 32 ? 32 : 64), groups = rdna__divide_up(rows, waves);
  int64_t most = row_bytes <= SHORT_BYTES ? GROUPS_OF_A_UNIT * (int64_t)info->compute_units : groups;
  if (most < GROUPS_OF_A_UNIT) most = GROUPS_OF_A_UNIT;
  return rdna__groups_in_turn(groups < most ? groups : most);
}

rdna_status rdna__check_groups(const char *op_name, int64_t count, int64_t per_group, uint32_t *out_groups) {
  int64_t groups = rdna__divide_up(count, per_group);
  if (groups > RDNA__GRID_X_MAX) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: %lld work-groups are more than the %d of one launch; split the tensor",
                      op_name, (long long)groups, RDNA__GRID_X_MAX);
  }
  *out_groups = (uint32_t)groups;
  return RDNA_OK;
}

rdna_status rdna__launch_named(rdna_stream *stream, const char *kernel_name, rdna_grid grid, const void *args) {
  const rdna_kernel *kernel;
  RDNA_TRY(rdna__check_stream(kernel_name, stream));
  RDNA_TRY(rdna_kernel_get(rdna_stream_device(stream), kernel_name, &kernel));
  return rdna_launch(stream, kernel, grid, args);
}
