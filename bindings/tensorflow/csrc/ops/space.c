/* Blocks of space as samples or channels and back, patches, and what turns round: views, copied. */
#include <string.h>

#include "compose.h"
#include "ops.h"
#include "places.h"
#include "rdna/op/index.h"

/* A view of contiguous |x| in |rank| dimensions, whose dimension i is dimension order[i] of |shape|. */
static rdna_tensor permuted(const rdna_tensor *x, int rank, const int64_t *shape, const int *order) {
  rdna_tensor plain = reshaped(x, rank, shape), view = plain;
  for (int i = 0; i < rank; i++) view.shape[i] = plain.shape[order[i]], view.stride[i] = plain.stride[order[i]];
  return view;
}

/* ---- (n, space…, rest…) with blocks of space among the samples ---- */

struct blocks {
  int dims;
  int64_t size[3], before[3], after[3];
};

/* Number 0: the attribute's size in two dimensions, padding input 1; 1: sizes input 1, padding input 2. */
static rdna_status read_blocks(call *c, const rdna_tensor *x, struct blocks *out) {
  int64_t values[16];
  int count = 2;
  if (c->number == 0) {
    out->size[0] = out->size[1] = c->attributes->block_size;
  } else {
    TRY(call_integers(c, 1, 8, values, &count));
    if (count > 3) return call_fail(c, RDNA_UNSUPPORTED, "blocks of %d dimensions; up to 3", count);
    memcpy(out->size, values, (size_t)count * sizeof *values);
  }
  out->dims = count;
  TRY(call_integers(c, c->number + 1, 16, values, &count));
  if (count != 2 * out->dims || x->rank < 1 + out->dims)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "%d blocked dimensions of a tensor of rank %d, %d paddings", out->dims,
                     x->rank, count);
  for (int i = 0; i < out->dims; i++) {
    out->before[i] = values[2 * i];
    out->after[i] = values[2 * i + 1];
    if (out->size[i] < 1 || out->before[i] < 0 || out->after[i] < 0)
      return call_fail(c, RDNA_INVALID_ARGUMENT, "block sizes must be at least 1, paddings and crops at least 0");
  }
  return RDNA_OK;
}

/* The product of the dimensions behind the blocked ones. */
static int64_t rest_of(const rdna_tensor *x, int dims) {
  int64_t rest = 1;
  for (int i = 1 + dims; i < x->rank; i++) rest *= x->shape[i];
  return rest;
}

/* |batch| (blocks…, n, space…, rest) seen as (n, space, block, …, rest) of the whole. */
static rdna_tensor as_space(const rdna_tensor *batch, const struct blocks *b, int64_t n, int64_t rest) {
  int64_t shape[RDNA_MAX_RANK];
  int order[RDNA_MAX_RANK], m = b->dims;
  for (int i = 0; i < m; i++) shape[i] = b->size[i], shape[m + 1 + i] = batch->shape[1 + i];
  shape[m] = n;
  shape[2 * m + 1] = rest;
  order[0] = m;
  for (int i = 0; i < m; i++) order[1 + 2 * i] = m + 1 + i, order[2 + 2 * i] = i;
  order[2 * m + 1] = 2 * m + 1;
  return permuted(batch, 2 * m + 2, shape, order);
}

rdna_status compute_space_to_batch(call *c) {
  rdna_tensor x, out, whole;
  struct blocks b;
  int64_t shape[RDNA_MAX_RANK], padded[RDNA_MAX_RANK], before[RDNA_MAX_RANK] = {0};
  TRY(call_input(c, 0, &x));
  TRY(read_blocks(c, &x, &b));
  memcpy(padded, x.shape, sizeof padded);
  for (int i = 0; i < b.dims; i++) {
    TRY(size_plus(c, &padded[1 + i], b.before[i]));
    TRY(size_plus(c, &padded[1 + i], b.after[i]));
    before[1 + i] = b.before[i];
    if (padded[1 + i] % b.size[i])
      return call_fail(c, RDNA_INVALID_ARGUMENT, "padded_shape[%d]=%lld is not divisible by block_shape[%d]=%lld", i,
                       (long long)padded[1 + i], i, (long long)b.size[i]);
  }
  memcpy(shape, padded, sizeof shape);
  for (int i = 0; i < b.dims; i++) {
    TRY(size_times(c, &shape[0], b.size[i]));
    shape[1 + i] /= b.size[i];
  }
  TRY(call_output(c, 0, x.rank, shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  TRY(call_scratch(c, x.dtype, x.rank, padded, &whole));
  TRY(rdna_tensor_count(&x) ? rdna_op_pad(c->stream, RDNA_PAD_MODE_CONSTANT, &x, before, zero, &whole)
                            : fill(c, 0, &whole));
  rdna_tensor to = as_space(&out, &b, x.shape[0], rest_of(&x, b.dims)), from = reshaped(&whole, to.rank, to.shape);
  return rdna_op_copy(c->stream, &from, &to);
}

rdna_status compute_batch_to_space(call *c) {
  rdna_tensor x, out, whole;
  struct blocks b;
  int64_t shape[RDNA_MAX_RANK], total = 1;
  TRY(call_input(c, 0, &x));
  TRY(read_blocks(c, &x, &b));
  for (int i = 0; i < b.dims; i++) TRY(size_times(c, &total, b.size[i]));
  if (x.shape[0] % total)
    return call_fail(c, RDNA_INVALID_ARGUMENT,
                     "Input batch dimension (%lld) is not divisible by product of block sizes", (long long)x.shape[0]);
  memcpy(shape, x.shape, sizeof shape);
  shape[0] /= total;
  for (int i = 0; i < b.dims; i++) TRY(size_times(c, &shape[1 + i], b.size[i]));
  TRY(call_scratch(c, x.dtype, x.rank, shape, &whole));
  rdna_tensor view = whole;
  for (int i = 0; i < b.dims; i++) {
    if (b.before[i] > shape[1 + i] || b.after[i] > shape[1 + i] - b.before[i])
      return call_fail(c, RDNA_INVALID_ARGUMENT, "more is cropped than there is");
    shape[1 + i] -= b.before[i] + b.after[i];
    view = narrowed(&view, 1 + i, b.before[i], shape[1 + i]);
  }
  TRY(call_output(c, 0, x.rank, shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  rdna_tensor from = as_space(&x, &b, shape[0], rest_of(&x, b.dims)), to = reshaped(&whole, from.rank, from.shape);
  TRY(rdna_op_copy(c->stream, &from, &to));
  return rdna_op_copy(c->stream, &view, &out);
}

/* ---- blocks of space among the channels ---- */

/* Images of either layout as (n, height, block, width, block, channels): of |wide| the larger images, of |deep| those
 * with more channels, which are counted (block, block, channels). */
static rdna_status move_blocks(call *c, const rdna_tensor *wide, const rdna_tensor *deep, bool into_deep) {
  bool first = c->attributes->data_format[1] == 'C';
  int64_t b = c->attributes->block_size, n = wide->shape[0], h = deep->shape[first ? 2 : 1],
          w = deep->shape[first ? 3 : 2], channels = wide->shape[first ? 1 : 3];
  rdna_tensor large, small;
  if (first) {
    large = permuted(wide, 6, (int64_t[]){n, channels, h, b, w, b}, (int[]){0, 2, 3, 4, 5, 1});
    small = permuted(deep, 6, (int64_t[]){n, b, b, channels, h, w}, (int[]){0, 4, 1, 5, 2, 3});
  } else {
    large = reshaped(wide, 6, (int64_t[]){n, h, b, w, b, channels});
    small = permuted(deep, 6, (int64_t[]){n, h, w, b, b, channels}, (int[]){0, 1, 3, 2, 4, 5});
  }
  return into_deep ? rdna_op_copy(c->stream, &large, &small) : rdna_op_copy(c->stream, &small, &large);
}

/* Number 0: SpaceToDepth; 1: DepthToSpace. */
rdna_status compute_depth(call *c) {
  bool first = c->attributes->data_format[1] == 'C', out_of_depth = c->number == 1;
  int64_t b = c->attributes->block_size, square = b, shape[4];
  rdna_tensor x, out;
  TRY(call_input(c, 0, &x));
  if (x.rank != 4 || strlen(c->attributes->data_format) != 4)
    return call_fail(c, RDNA_UNSUPPORTED, "images are NHWC or NCHW; this tensor has rank %d", x.rank);
  int h = first ? 2 : 1, w = h + 1, channels = first ? 1 : 3;
  memcpy(shape, x.shape, sizeof shape);
  if (b < 1) return call_fail(c, RDNA_INVALID_ARGUMENT, "a block size of %lld", (long long)b);
  TRY(size_times(c, &square, b));
  if (out_of_depth ? x.shape[channels] % square != 0 : x.shape[h] % b != 0 || x.shape[w] % b != 0)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "sizes must be divisible by the block size %lld", (long long)b);
  if (out_of_depth) {
    TRY(size_times(c, &shape[h], b));
    TRY(size_times(c, &shape[w], b));
    shape[channels] /= square;
  } else {
    shape[h] /= b;
    shape[w] /= b;
    TRY(size_times(c, &shape[channels], square));
  }
  TRY(call_output(c, 0, 4, shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  return out_of_depth ? move_blocks(c, &out, &x, false) : move_blocks(c, &x, &out, true);
}

/* ---- patches: what a window holds at each of its places, (n, places…, window…, channels) ---- */

/* A window, its steps or its rates: numbers from 1, 1 of samples and channels. */
static rdna_status check_steps(call *c, const char *name, const struct list *list, int dims) {
  bool fits = list->count == dims + 2 && list->values[0] == 1 && list->values[dims + 1] == 1;
  for (int i = 1; fits && i <= dims; i++) fits = list->values[i] >= 1 && list->values[i] <= INT32_MAX;
  return fits ? RDNA_OK
              : call_fail(c, RDNA_INVALID_ARGUMENT, "%s must have %d numbers from 1 to 2**31 - 1, the first and last 1",
                          name, dims + 2);
}

/* Number 2 or 3: how many spatial dimensions. */
rdna_status compute_patches(call *c) {
  const struct attributes *a = c->attributes;
  rdna_tensor x, out, whole;
  int dims = c->number;
  int64_t shape[RDNA_MAX_RANK], padded[RDNA_MAX_RANK], before[RDNA_MAX_RANK] = {0};
  TRY(call_input(c, 0, &x));
  if (x.rank != dims + 2) return call_fail(c, RDNA_INVALID_ARGUMENT, "input must be of rank %d", dims + 2);
  TRY(check_steps(c, "ksizes", &a->ksizes, dims));
  TRY(check_steps(c, "strides", &a->strides, dims));
  if (a->rates.count) TRY(check_steps(c, "rates", &a->rates, dims));
  memcpy(padded, x.shape, sizeof padded);
  shape[0] = x.shape[0];
  shape[dims + 1] = x.shape[dims + 1];
  for (int i = 1; i <= dims; i++) {
    int64_t rate = a->rates.count ? a->rates.values[i] : 1, reach = (a->ksizes.values[i] - 1) * rate + 1,
            stride = a->strides.values[i];
    if (a->padding[0] == 'S') {
      shape[i] = x.shape[i] / stride + (x.shape[i] % stride != 0);
      int64_t missing = (shape[i] - 1) * stride - x.shape[i] + reach;
      if (missing > 0) {
        TRY(size_plus(c, &padded[i], missing));
        before[i] = missing / 2;
      }
    } else {
      shape[i] = x.shape[i] < reach ? 0 : (x.shape[i] - reach) / stride + 1;
    }
    TRY(size_times(c, &shape[dims + 1], a->ksizes.values[i]));
  }
  TRY(call_output(c, 0, dims + 2, shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  TRY(call_scratch(c, x.dtype, x.rank, padded, &whole));
  TRY(rdna_op_pad(c->stream, RDNA_PAD_MODE_CONSTANT, &x, before, zero, &whole));
  rdna_tensor view = whole;
  view.rank = 2 * dims + 2;
  for (int i = 1; i <= dims; i++) {
    view.shape[i] = shape[i];
    view.stride[i] = whole.stride[i] * a->strides.values[i];
    view.shape[dims + i] = a->ksizes.values[i];
    view.stride[dims + i] = whole.stride[i] * (a->rates.count ? a->rates.values[i] : 1);
  }
  view.shape[2 * dims + 1] = x.shape[dims + 1];
  view.stride[2 * dims + 1] = 1;
  rdna_tensor to = reshaped(&out, view.rank, view.shape);
  return rdna_op_copy(c->stream, &view, &to);
}

/* ---- turning round ---- */

rdna_status compute_reverse_flags(call *c) { /* (x, a flag for each dimension, in host memory) */
  rdna_tensor x, flags, out;
  uint32_t dims = 0;
  TRY(call_input(c, 0, &x));
  TRY(call_input(c, 1, &flags));
  if (flags.rank != 1 || flags.shape[0] != x.rank)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "'dims' must have a value for each of %d dimensions", x.rank);
  for (int i = 0; i < x.rank; i++) dims |= (uint32_t)(((const unsigned char *)flags.data)[i] != 0) << i;
  TRY(call_output(c, 0, x.rank, x.shape, &out));
  return rdna_op_flip(c->stream, &x, dims, &out);
}

/* (x, lengths): along |seq_dim| the first values turn round, as many as the length for their place in |batch_dim|. */
rdna_status compute_reverse_sequence(call *c) {
  int along = (int)c->attributes->seq_dim, of = (int)c->attributes->batch_dim;
  rdna_tensor x, lengths, out, list, place, mirrored, inside;
  TRY(call_input(c, 0, &x));
  TRY(call_input(c, 1, &lengths));
  if (along < 0 || of < 0 || along >= x.rank || of >= x.rank || along == of || lengths.rank != 1 ||
      lengths.shape[0] != x.shape[of])
    return call_fail(c, RDNA_INVALID_ARGUMENT, "seq_dim %d and batch_dim %d of a tensor of rank %d, %lld lengths",
                     along, of, x.rank, (long long)lengths.shape[0]);
  TRY(call_output(c, 0, x.rank, x.shape, &out));
  if (rdna_tensor_count(&x) == 0) return RDNA_OK;
  TRY(check_indices(c, &lengths, x.shape[along] + 1));
  int64_t n = x.shape[of], steps = x.shape[along], both[] = {n, steps};
  TRY(as_type(c, &lengths, RDNA_I64, &list));
  TRY(call_scratch(c, RDNA_I64, 1, &steps, &place));
  TRY(call_scratch(c, RDNA_I64, 2, both, &mirrored));
  TRY(call_scratch(c, RDNA_BOOL, 2, both, &inside));
  TRY(rdna_op_arange(c->stream, zero, rdna_scalar_integer(1), &place));
  rdna_tensor column = reshaped(&list, 2, (int64_t[]){n, 1});
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_LT, &place, &column, &inside));
  TRY(zip(c, RDNA_ZIP_SUB, &column, &place, &mirrored));
  TRY(zip_number(c, RDNA_ZIP_SUB, &mirrored, 1, &mirrored));
  TRY(rdna_op_where(c->stream, &inside, &mirrored, &place, &mirrored));
  rdna_tensor indices = x; /* the same for all other dimensions */
  indices.data = mirrored.data;
  indices.dtype = RDNA_I64;
  for (int i = 0; i < x.rank; i++) indices.stride[i] = i == of ? steps : i == along ? 1 : 0;
  return rdna_op_gather(c->stream, &x, along, &indices, &out, NULL);
}

/* x + what lies |count| long at |from| of |edge|, turned round, onto |to|, along |dim|. */
static rdna_status fold(call *c, const rdna_tensor *edge, int dim, int64_t from, int64_t to, int64_t count,
                        const rdna_tensor *x) {
  rdna_tensor part = narrowed(edge, dim, from, count), into = narrowed(x, dim, to, count), turned;
  if (rdna_tensor_count(&part) == 0) return RDNA_OK;
  TRY(like(c, &part, &turned));
  TRY(rdna_op_flip(c->stream, &part, 1u << dim, &turned));
  return zip(c, RDNA_ZIP_ADD, &into, &turned, &into);
}

/* The gradient of MirrorPad: mirrored values are added to those that they are of, dimension by dimension. */
rdna_status compute_mirror_pad_gradient(call *c) {
  rdna_tensor x, out, next;
  int64_t pads[2 * RDNA_MAX_RANK];
  int count, skip = c->attributes->mode[0] == 'R' ? 1 : 0; /* REFLECT leaves out the edge itself */
  TRY(call_wide_input(c, 0, &x));
  TRY(call_integers(c, 1, 2 * RDNA_MAX_RANK, pads, &count));
  if (count != 2 * x.rank) return call_fail(c, RDNA_INVALID_ARGUMENT, "paddings must be two for each dimension");
  rdna_tensor at = x;
  for (int i = 0; i < x.rank; i++) {
    int64_t whole = at.shape[i], before = pads[2 * i], after = pads[2 * i + 1];
    bool fits = before >= 0 && after >= 0 && before <= whole && after <= whole - before;
    int64_t size = fits ? whole - before - after : 0;
    if (!fits || before > size - skip || after > size - skip)
      return call_fail(c, RDNA_INVALID_ARGUMENT, "paddings must be non-negative and no greater than the dimension");
    if (before == 0 && after == 0) continue;
    rdna_tensor middle = narrowed(&at, i, before, size);
    TRY(like(c, &middle, &next));
    TRY(rdna_op_copy(c->stream, &middle, &next));
    TRY(fold(c, &at, i, 0, skip, before, &next));
    TRY(fold(c, &at, i, before + size, size - skip - after, after, &next));
    at = next;
  }
  TRY(call_output(c, 0, at.rank, at.shape, &out));
  return rdna_op_copy(c->stream, &at, &out);
}

/* ---- copies ---- */

rdna_status compute_copy(call *c) {
  rdna_tensor x, out;
  TRY(call_input(c, 0, &x));
  TRY(call_output_over(c, 1, 0, x.rank, x.shape, &out));
  return x.data == out.data ? RDNA_OK : rdna_op_copy(c->stream, &x, &out);
}

/* In memory of its own, which may be written. */
rdna_status compute_deep_copy(call *c) {
  rdna_tensor x, out;
  TRY(call_input(c, 0, &x));
  TRY(call_output(c, 0, x.rank, x.shape, &out));
  return rdna_op_copy(c->stream, &x, &out);
}

/* Of the shape that input 0 says: zeros, whether they are asked for or any value would do. */
rdna_status compute_empty(call *c) {
  rdna_tensor out;
  int64_t shape[RDNA_MAX_RANK];
  int rank;
  TRY(call_integers(c, 0, RDNA_MAX_RANK, shape, &rank));
  TRY(call_output(c, 0, rank, shape, &out));
  return fill(c, 0, &out);
}

/* (indices…, data…), the indices in host memory: rows of each data go to their indices, later ones over earlier. */
rdna_status compute_stitch(call *c) {
  int parts = call_inputs(c) / 2, rank = 0;
  int64_t size = 0, row = 1, shape[RDNA_MAX_RANK] = {0};
  rdna_tensor indices, x, out, list;
  for (int i = 0; i < parts; i++) {
    TRY(call_input(c, i, &indices));
    TRY(call_input(c, parts + i, &x));
    bool fits = indices.dtype == RDNA_I32 && indices.rank <= x.rank && (i == 0 || rank == x.rank - indices.rank + 1);
    rank = x.rank - indices.rank + 1;
    for (int k = 1; fits && k < rank; k++) {
      fits = i == 0 || shape[k] == x.shape[indices.rank + k - 1];
      shape[k] = x.shape[indices.rank + k - 1];
    }
    if (!fits) return call_fail(c, RDNA_INVALID_ARGUMENT, "data[%d].shape does not fit to indices and to data[0]", i);
    for (int64_t k = 0; k < rdna_tensor_count(&indices); k++) {
      int32_t at = ((const int32_t *)indices.data)[k];
      if (at < 0) return call_fail(c, RDNA_INVALID_ARGUMENT, "indices[%d] has %d, which is out of range", i, at);
      if (at >= size) size = (int64_t)at + 1;
    }
  }
  shape[0] = size;
  TRY(call_output(c, 0, rank, shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  TRY(fill(c, 0, &out));
  for (int k = 1; k < rank; k++) row *= shape[k];
  rdna_tensor to = reshaped(&out, 2, (int64_t[]){size, row});
  for (int i = 0; i < parts; i++) {
    TRY(call_input(c, i, &indices));
    TRY(call_input(c, parts + i, &x));
    int64_t count = rdna_tensor_count(&indices);
    if (count == 0) continue;
    if (c->scratch_count == SCRATCH_SIZE)
      return call_fail(c, RDNA_UNSUPPORTED, "%d parts; up to %d", parts, SCRATCH_SIZE);
    TRY(call_upload(c, RDNA_I32, count, indices.data, &list));
    rdna_tensor from = reshaped(&x, 2, (int64_t[]){count, row});
    TRY(rdna_op_index_copy(c->stream, &to, 0, &list, &from, RDNA_SCATTER_LAST, false, NULL));
  }
  return RDNA_OK;
}

/* The cross product of vectors of three, in the last dimension: a (y, z, x) times b (z, x, y), less the other way. */
rdna_status compute_cross(call *c) {
  rdna_tensor a, b, out, part;
  TRY(call_input(c, 0, &a));
  TRY(call_input(c, 1, &b));
  if (a.rank < 1 || !same_shape(&a, b.rank, b.shape) || a.shape[a.rank - 1] != 3)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "Both inputs must be of same shape, of vectors of 3");
  TRY(call_output(c, 0, a.rank, a.shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  int last = a.rank - 1;
  rdna_tensor place = narrowed(&a, last, 0, 1);
  TRY(call_scratch(c, a.dtype, a.rank, place.shape, &part));
  for (int i = 0; i < 3; i++) {
    rdna_tensor a1 = narrowed(&a, last, (i + 1) % 3, 1), a2 = narrowed(&a, last, (i + 2) % 3, 1),
                b1 = narrowed(&b, last, (i + 1) % 3, 1), b2 = narrowed(&b, last, (i + 2) % 3, 1),
                to = narrowed(&out, last, i, 1);
    TRY(zip(c, RDNA_ZIP_MUL, &a1, &b2, &to));
    TRY(zip(c, RDNA_ZIP_MUL, &a2, &b1, &part));
    TRY(zip(c, RDNA_ZIP_SUB, &to, &part, &to));
  }
  return RDNA_OK;
}
