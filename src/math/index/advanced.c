/* Advanced indexing as in NumPy: broadcasts the indices together and makes one index of them. */
#include <stdlib.h>

#include "math/index/indexed_plan.h"

/* Broadcasts one more index into the common shape, |reversed|: its last dimension first. */
static rdna_status broadcast_shape(const char *name, const rdna_tensor *index, int dim, int *rank, int64_t *reversed) {
  char text[RDNA__TENSOR_TEXT];
  for (int d = 0; d < index->rank; d++) {
    int64_t size = index->shape[index->rank - 1 - d];
    if (d >= *rank) reversed[(*rank)++] = 1;
    if (size == reversed[d] || size == 1) continue;
    if (reversed[d] != 1) {
      return rdna__fail(RDNA_INVALID_ARGUMENT,
                        "%s: the indices of dimension %d are %s and those before have %lld where they have %lld; sizes "
                        "must be equal or 1",
                        name, dim, rdna__tensor_text(index, text), (long long)reversed[d], (long long)size);
    }
    reversed[d] = size;
  }
  return RDNA_OK;
}

rdna_status rdna__advanced_plan(const char *name, const rdna_tensor *x, const rdna_tensor *const *indices,
                                rdna__advanced *out_plan) {
  rdna__advanced *p = out_plan;
  int64_t reversed[RDNA_MAX_RANK];
  *p = (rdna__advanced){0};
  for (int d = 0; d < x->rank && indices; d++) {
    if (!indices[d]) continue;
    RDNA_TRY(rdna__check_indices(name, "indices", indices[d]));
    RDNA_TRY(broadcast_shape(name, indices[d], d, &p->broadcast_rank, reversed));
    p->indexed_dim[p->indexed_count++] = d;
  }
  if (p->indexed_count == 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: no dimension has indices; pass a tensor for one", name);
  int last = p->indexed_dim[p->indexed_count - 1];
  bool neighbours = last - p->indexed_dim[0] + 1 == p->indexed_count;
  p->first = neighbours ? p->indexed_dim[0] : 0;
  p->rank = p->broadcast_rank + x->rank - p->indexed_count;
  if (p->rank > RDNA_MAX_RANK) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: the result would have rank %d; at most %d is offered", name, p->rank,
                      RDNA_MAX_RANK);
  }
  int at = 0;
  for (int d = 0; d <= x->rank; d++) {
    if (at == p->first) {
      for (int b = 0; b < p->broadcast_rank; b++, at++)
        p->shape[at] = reversed[p->broadcast_rank - 1 - b], p->from[at] = -1;
    }
    if (d < x->rank && !indices[d]) p->shape[at] = x->shape[d], p->from[at++] = d;
  }
  for (int k = 0; k < p->indexed_count; k++) {
    const rdna_tensor *index = indices[p->indexed_dim[k]];
    rdna_tensor *view = &p->indices[k];
    *view = (rdna_tensor){.data = index->data, .dtype = index->dtype, .rank = p->broadcast_rank};
    for (int b = 0; b < p->broadcast_rank; b++) {
      int from = b - (p->broadcast_rank - index->rank);
      view->shape[b] = reversed[p->broadcast_rank - 1 - b];
      view->stride[b] = from < 0 || index->shape[from] == 1 ? 0 : index->stride[from];
    }
  }
  return RDNA_OK;
}

static int64_t common_divisor(int64_t a, int64_t b) {
  a = llabs(a), b = llabs(b);
  while (b != 0) {
    int64_t rest = a % b;
    a = b, b = rest;
  }
  return a;
}

rdna_status rdna__advanced_combine(rdna__scratch *scratch, const rdna__advanced *p, const rdna_tensor *x,
                                   uint32_t *outside, rdna__indexed *out) {
  *out = (rdna__indexed){scratch->holder, scratch->stream, p->indices[0], *x, {0}};
  out->rule = rdna__index_rule(x, p->indexed_dim[0], p->indices[0].dtype, true, outside);
  if (p->indexed_count > 1) {
    void *memory;
    int64_t unit = 0, count = rdna_tensor_count(&p->indices[0]);
    for (int k = 0; k < p->indexed_count; k++) unit = common_divisor(unit, x->stride[p->indexed_dim[k]]);
    if (unit == 0) unit = 1;
    RDNA_TRY(rdna__scratch_take(scratch, (size_t)count * sizeof(int64_t), &memory));
    for (int k = 0; k < p->indexed_count; k++) {
      int dim = p->indexed_dim[k];
      rdna__indexed one = {scratch->holder, scratch->stream, p->indices[k], p->indices[k],
                           rdna__index_rule(x, dim, p->indices[k].dtype, true, outside)};
      struct index_offset_args args = {.absent = -1, .skipped = -1, .add = k > 0};
      for (int b = 0; b < p->broadcast_rank; b++) one.base.stride[b] = 0;
      one.rule.stride /= unit;
      if (one.rule.stride < 0) {
        args.bias = -(x->shape[dim] - 1) * one.rule.stride;
        out->base.data = (char *)out->base.data - args.bias * unit * (int64_t)rdna_dtype_block_bytes(x->dtype);
      }
      RDNA_TRY(rdna__index_offsets(&one, args, memory));
    }
    out->indices = rdna_tensor_contiguous(memory, RDNA_I64, p->broadcast_rank, p->indices[0].shape);
    out->rule = (struct index_rule){.size = INT64_MAX, .stride = unit, .wide = 1};
  }
  rdna_tensor index = out->indices;
  out->indices.rank = out->base.rank = p->rank;
  for (int d = 0, b = 0; d < p->rank; d++) {
    bool indexed = p->from[d] < 0;
    out->indices.shape[d] = out->base.shape[d] = p->shape[d];
    out->indices.stride[d] = indexed ? index.stride[b++] : 0;
    out->base.stride[d] = indexed ? 0 : x->stride[p->from[d]];
  }
  return RDNA_OK;
}
