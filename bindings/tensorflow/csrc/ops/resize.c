/* Images (n, height, width, channels) of other sizes. Where a place lies is the operator's attributes' to say: with
 * align_corners at o (in - 1) / (out - 1), with half_pixel_centers at (o + 1/2) in / out - 1/2, else at o in / out,
 * which librdna's resampling has of the nearest value alone. Places are computed in f32, as TensorFlow does. */
#include <math.h>
#include <stdlib.h>

#include "compose.h"
#include "ops.h"
#include "rdna/op/index.h"
#include "rdna/op/upsample.h"

/* |x| as (n, channels, height, width). */
static rdna_tensor as_planes(const rdna_tensor *x) {
  rdna_tensor view = *x;
  int order[] = {0, 3, 1, 2};
  for (int i = 0; i < 4; i++) view.shape[i] = x->shape[order[i]], view.stride[i] = x->stride[order[i]];
  return view;
}

static rdna_status check_image(call *c, const rdna_tensor *x, int64_t height, int64_t width) {
  if (x->rank != 4) return call_fail(c, RDNA_INVALID_ARGUMENT, "images must be 4-dimensional, not of rank %d", x->rank);
  if (height < 1 || width < 1 || x->shape[1] < 1 || x->shape[2] < 1)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "output dimensions must be positive: %lld x %lld from %lld x %lld",
                     (long long)height, (long long)width, (long long)x->shape[1], (long long)x->shape[2]);
  if (c->attributes->align_corners && c->attributes->half_pixel_centers)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "If half_pixel_centers is True, align_corners must be False.");
  return RDNA_OK;
}

static float scale_of(const call *c, int64_t in, int64_t out) {
  return c->attributes->align_corners && out > 1 ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
}

/* For each place of the output, between which two of the input it lies, and how near to the second; |nearest|: the one
 * alone. On the device, |out| of each. */
struct places {
  rdna_tensor low, high, share;
};

static rdna_status find_places(call *c, bool nearest, int64_t in, int64_t out, struct places *p) {
  bool half = c->attributes->half_pixel_centers;
  float scale = scale_of(c, in, out);
  int64_t *list = malloc((size_t)out * (2 * sizeof *list + sizeof(float)));
  if (!list) return call_fail(c, RDNA_OUT_OF_MEMORY, "no memory for the places of an image");
  int64_t *high = list + out;
  float *share = (float *)(high + out);
  for (int64_t i = 0; i < out; i++) {
    float at = half ? ((float)i + 0.5f) * scale - (nearest ? 0 : 0.5f) : (float)i * scale;
    if (nearest) at = c->attributes->align_corners ? roundf(at) : floorf(at);
    float below = floorf(at);
    list[i] = below < 0 ? 0 : (int64_t)below > in - 1 ? in - 1 : (int64_t)below;
    high[i] = (int64_t)below + 1 < in - 1 ? (int64_t)below + 1 < 0 ? 0 : (int64_t)below + 1 : in - 1;
    share[i] = at - below;
  }
  rdna_status result = call_upload(c, RDNA_I64, out, list, &p->low);
  if (result == RDNA_OK && !nearest) result = call_upload(c, RDNA_I64, out, high, &p->high);
  if (result == RDNA_OK && !nearest) result = call_upload(c, RDNA_F32, out, share, &p->share);
  free(list);
  return result;
}

/* Along dimension |dim| of x, f32: from low to high by the share. */
static rdna_status between(call *c, const rdna_tensor *x, int dim, const struct places *p, const rdna_tensor *out) {
  rdna_tensor high;
  int64_t shape[] = {1, 1, 1, 1};
  shape[dim] = p->low.shape[0];
  rdna_tensor share = reshaped(&p->share, 4, shape);
  TRY(like(c, out, &high));
  TRY(rdna_op_index_select(c->stream, x, dim, &p->low, out, NULL));
  TRY(rdna_op_index_select(c->stream, x, dim, &p->high, &high, NULL));
  return rdna_op_zip3(c->stream, RDNA_ZIP3_LERP, out, &high, &share, zero, out);
}

static rdna_status spread(call *c, const rdna_tensor *dy, int dim, const struct places *p, const rdna_tensor *dx) {
  rdna_tensor high, low;
  int64_t shape[] = {1, 1, 1, 1};
  shape[dim] = p->low.shape[0];
  rdna_tensor share = reshaped(&p->share, 4, shape);
  TRY(like(c, dy, &high));
  TRY(like(c, dy, &low));
  TRY(zip(c, RDNA_ZIP_MUL, dy, &share, &high));
  TRY(zip(c, RDNA_ZIP_SUB, dy, &high, &low));
  TRY(fill(c, 0, dx));
  TRY(rdna_op_index_copy(c->stream, dx, dim, &p->low, &low, RDNA_SCATTER_ADD, true, NULL));
  return rdna_op_index_copy(c->stream, dx, dim, &p->high, &high, RDNA_SCATTER_ADD, true, NULL);
}

static rdna_upsample linear(const call *c) {
  return (rdna_upsample){RDNA_UPSAMPLE_INIT, .mode = RDNA_UPSAMPLE_MODE_LINEAR,
                         .align_corners = c->attributes->align_corners};
}

static bool is_plain(const call *c) { return c->attributes->align_corners || c->attributes->half_pixel_centers; }

/* What each resizing begins with: the images, the size that is asked for, and the result. */
static rdna_status begin_resize(call *c, rdna_tensor *x, int64_t size[2], rdna_tensor *out) {
  int count;
  TRY(call_input(c, 0, x));
  TRY(call_integers(c, 1, 2, size, &count));
  TRY(check_image(c, x, size[0], count == 2 ? size[1] : 0));
  return call_output(c, 0, 4, (int64_t[]){x->shape[0], size[0], size[1], x->shape[3]}, out);
}

/* (images, (height, width)), always to f32 */
rdna_status compute_resize_bilinear(call *c) {
  rdna_tensor x, from, out, rows;
  int64_t size[2];
  TRY(begin_resize(c, &x, size, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  TRY(as_type(c, &x, RDNA_F32, &from));
  if (is_plain(c)) {
    rdna_upsample options = linear(c);
    rdna_tensor planes = as_planes(&from), to = as_planes(&out);
    return rdna_op_upsample(c->stream, &options, &planes, &to);
  }
  struct places p;
  TRY(find_places(c, false, x.shape[1], size[0], &p));
  TRY(call_scratch(c, RDNA_F32, 4, (int64_t[]){x.shape[0], size[0], x.shape[2], x.shape[3]}, &rows));
  TRY(between(c, &from, 1, &p, &rows));
  TRY(find_places(c, false, x.shape[2], size[1], &p));
  return between(c, &rows, 2, &p, &out);
}

/* (gradient in f32, images) */
rdna_status compute_resize_bilinear_gradient(call *c) {
  rdna_tensor dy, x, out, wide, rows;
  TRY(call_input(c, 0, &dy));
  TRY(call_input(c, 1, &x));
  if (dy.rank != 4) return call_fail(c, RDNA_INVALID_ARGUMENT, "gradients must be 4-dimensional");
  TRY(check_image(c, &x, dy.shape[1], dy.shape[2]));
  TRY(call_output(c, 0, 4, x.shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  wide = out;
  if (out.dtype != RDNA_F32) TRY(call_scratch(c, RDNA_F32, 4, x.shape, &wide));
  if (is_plain(c)) {
    rdna_upsample options = linear(c);
    rdna_tensor planes = as_planes(&dy), to = as_planes(&wide);
    TRY(rdna_op_upsample_backward(c->stream, &options, &planes, &to));
  } else {
    struct places p;
    TRY(find_places(c, false, x.shape[2], dy.shape[2], &p));
    TRY(call_scratch(c, RDNA_F32, 4, (int64_t[]){x.shape[0], dy.shape[1], x.shape[2], x.shape[3]}, &rows));
    TRY(spread(c, &dy, 2, &p, &rows));
    TRY(find_places(c, false, x.shape[1], dy.shape[1], &p));
    TRY(spread(c, &rows, 1, &p, &wide));
  }
  return wide.data == out.data ? RDNA_OK : rdna_op_copy(c->stream, &wide, &out);
}

/* (images, (height, width)) */
rdna_status compute_resize_nearest(call *c) {
  rdna_tensor x, out, rows;
  struct places p;
  int64_t size[2];
  TRY(begin_resize(c, &x, size, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  TRY(find_places(c, true, x.shape[1], size[0], &p));
  TRY(call_scratch(c, x.dtype, 4, (int64_t[]){x.shape[0], size[0], x.shape[2], x.shape[3]}, &rows));
  TRY(rdna_op_index_select(c->stream, &x, 1, &p.low, &rows, NULL));
  TRY(find_places(c, true, x.shape[2], size[1], &p));
  return rdna_op_index_select(c->stream, &rows, 2, &p.low, &out, NULL);
}

/* (gradient, (height, width) of the images) */
rdna_status compute_resize_nearest_gradient(call *c) {
  rdna_tensor dy, out, wide, rows;
  struct places p;
  int64_t size[2];
  int count;
  TRY(call_wide_input(c, 0, &dy));
  TRY(call_integers(c, 1, 2, size, &count));
  TRY(check_image(c, &dy, size[0], count == 2 ? size[1] : 0));
  TRY(call_wide_output(c, 0, 4, (int64_t[]){dy.shape[0], size[0], size[1], dy.shape[3]}, &out, &wide));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  TRY(find_places(c, true, size[1], dy.shape[2], &p));
  TRY(call_scratch(c, dy.dtype, 4, (int64_t[]){dy.shape[0], dy.shape[1], size[1], dy.shape[3]}, &rows));
  TRY(fill(c, 0, &rows));
  TRY(rdna_op_index_copy(c->stream, &rows, 2, &p.low, &dy, RDNA_SCATTER_ADD, true, NULL));
  TRY(find_places(c, true, size[0], dy.shape[1], &p));
  TRY(fill(c, 0, &wide));
  TRY(rdna_op_index_copy(c->stream, &wide, 1, &p.low, &rows, RDNA_SCATTER_ADD, true, NULL));
  return call_round(c, &wide, &out);
}
