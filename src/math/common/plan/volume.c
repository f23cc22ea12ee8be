#include "math/common/plan/volume.h"

enum { THREADS = 256, NUMBERS_ENOUGH = 1 << 17 /* work items; fewer channels an item where there would be less */ };

rdna_status rdna__check_volume(const char *op_name, const char *argument, const rdna_tensor *tensor, int dims) {
  char text[RDNA__TENSOR_TEXT];
  RDNA_TRY(rdna__check_real(op_name, argument, tensor));
  if (dims) RDNA_TRY(rdna__check_rank(op_name, argument, tensor, dims + 2));
  if (tensor->rank < 3 || tensor->rank > 5) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s, of rank %d; it must be (n, channels, 1 to 3 more)", op_name,
                      argument, rdna__tensor_text(tensor, text), tensor->rank);
  }
  int64_t plane = 1;
  for (int i = 0; i < tensor->rank; i++) {
    if (i >= 2 && tensor->shape[i] > 0 && tensor->shape[i] <= INT32_MAX) plane *= tensor->shape[i];
    if (tensor->shape[i] > INT32_MAX || plane > INT32_MAX) {
      return rdna__fail(RDNA_UNSUPPORTED, "%s: %s is %s; sizes, and the product of what is spatial, must be below 2^31",
                        op_name, argument, rdna__tensor_text(tensor, text));
    }
  }
  return RDNA_OK;
}

rdna_status rdna__check_same_planes(const char *op_name, const char *argument, const rdna_tensor *tensor,
                                    const char *other_argument, const rdna_tensor *other) {
  char text[RDNA__TENSOR_TEXT], other_text[RDNA__TENSOR_TEXT];
  if (tensor->rank != other->rank || tensor->shape[0] != other->shape[0] || tensor->shape[1] != other->shape[1]) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: %s is %s and %s is %s; rank, samples and channels must be equal",
                      op_name, argument, rdna__tensor_text(tensor, text), other_argument,
                      rdna__tensor_text(other, other_text));
  }
  return RDNA_OK;
}

struct volume rdna__volume_of(const rdna_tensor *tensor) {
  struct volume v = {.data = tensor->data};
  for (int d = 0; d < tensor->rank; d++) {
    v.stride[d < 2 ? d : d + 5 - tensor->rank] = tensor->shape[d] > 1 ? tensor->stride[d] : 0;
  }
  return v;
}

void rdna__volume_sizes(const rdna_tensor *tensor, int32_t out_sizes[3]) {
  for (int d = 0; d < 3; d++) {
    int from = d + tensor->rank - 3;
    out_sizes[d] = from < 2 ? 1 : (int32_t)tensor->shape[from];
  }
}

/* Returns whether channels of |tensor| may be read |values| at a time, by aligned accesses of at most 16 bytes. */
static bool allows_vectors(const rdna_tensor *tensor, int64_t values) {
  int64_t bytes = (int64_t)rdna_dtype_block_bytes(tensor->dtype), aligned = values * bytes < 16 ? values * bytes : 16;
  if (tensor->shape[1] % values != 0 || tensor->stride[1] != 1 || (uintptr_t)tensor->data % (uintptr_t)aligned != 0)
    return false;
  for (int d = 0; d < tensor->rank; d++)
    if (d != 1 && tensor->shape[d] > 1 && tensor->stride[d] * bytes % aligned != 0) return false;
  return true;
}

rdna_status rdna__volume_order(const char *op_name, const rdna_tensor *const *tensors, int count, uint32_t block,
                               struct volume_order *out_order) {
  char text[RDNA__TENSOR_TEXT];
  const rdna_tensor *first = tensors[0];
  struct volume_order o = {.channels = 1, .channels_last = first->shape[1] > 1 && first->stride[1] == 1};
  int64_t values = 16 / (int64_t)rdna_dtype_block_bytes(first->dtype), total = rdna_tensor_count(first);
  o.vector = o.channels_last;
  for (int i = 0; i < count && o.vector; i++) o.vector = allows_vectors(tensors[i], values);
  if (o.vector) o.channels = (uint32_t)values;
  if (!o.channels_last) {
    o.channels = block;
    while (o.channels > 1 && (total / o.channels < NUMBERS_ENOUGH || first->shape[1] < o.channels)) o.channels /= 2;
  }
  int64_t channels = rdna__divide_up(first->shape[1], o.channels), size[3];
  int32_t sizes[3];
  rdna__volume_sizes(first, sizes);
  for (int d = 0; d < 3; d++) size[d] = sizes[d];
  if (total > 0) total = total / first->shape[1] * channels;
  if (total > INT32_MAX) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: %s has 2^31 pieces of work or more; split the tensor", op_name,
                      rdna__tensor_text(first, text));
  }
  const int64_t across[] = {size[2], size[1], size[0], channels, first->shape[0]};
  const int64_t last[] = {channels, size[2], size[1], size[0], first->shape[0]};
  o.shape.rank = 5, o.shape.count = (uint32_t)total;
  for (uint32_t d = 0; d < 5; d++) {
    int64_t of = (o.channels_last ? last : across)[d];
    strided_set_size(&o.shape, d, of > 0 ? (uint32_t)of : 1);
  }
  *out_order = o;
  return RDNA_OK;
}

rdna_status rdna__volume_launch(rdna_stream *stream, const char *kernel, const struct volume_order *order,
                                const void *args) {
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups(kernel, order->shape.count, THREADS, &grid.x));
  return rdna__launch_named(stream, kernel, grid, args);
}
