/* Colors of images, whose last dimension is red, green and blue, or hue, saturation and value, from 0 to 1. */
#include "compose.h"
#include "ops.h"

struct color {
  rdna_tensor part[3];
};

/* The three parts of |x| as views. */
static struct color parts_of(const rdna_tensor *x) {
  struct color color;
  for (int i = 0; i < 3; i++) color.part[i] = narrowed(x, x->rank - 1, i, 1);
  return color;
}

static rdna_status begin(call *c, rdna_tensor *x, rdna_tensor *out, rdna_tensor *y) {
  TRY(call_wide_input(c, 0, x));
  if (x->rank < 1 || x->shape[x->rank - 1] != 3)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "the last dimension must be of size 3");
  return call_wide_output(c, 0, x->rank, x->shape, out, y);
}

/* value = the largest, saturation = (largest - least) / largest, hue by which is the largest. */
static rdna_status to_hsv(call *c, const rdna_tensor *x, const rdna_tensor *y) {
  struct color in = parts_of(x), hsv = parts_of(y);
  rdna_tensor most, range, part, hue, here, none;
  rdna_tensor *r = &in.part[0], *g = &in.part[1], *b = &in.part[2];
  TRY(like(c, r, &most));
  TRY(like(c, r, &range));
  TRY(like(c, r, &part));
  TRY(like(c, r, &hue));
  TRY(call_scratch(c, RDNA_BOOL, r->rank, r->shape, &here));
  TRY(zip(c, RDNA_ZIP_MAXIMUM, r, g, &most));
  TRY(zip(c, RDNA_ZIP_MAXIMUM, &most, b, &most));
  TRY(zip(c, RDNA_ZIP_MINIMUM, r, g, &range));
  TRY(zip(c, RDNA_ZIP_MINIMUM, &range, b, &range));
  TRY(zip(c, RDNA_ZIP_SUB, &most, &range, &range));
  TRY(answers(c, RDNA_COMPARE_LE, &range, 0, &none));
  /* from the last choice to the first: blue is the largest, green, red */
  rdna_tensor *first[] = {r, b, g}, *second[] = {g, r, b}, *largest[] = {b, g, r};
  for (int i = 0; i < 3; i++) {
    TRY(zip(c, RDNA_ZIP_SUB, first[i], second[i], &part));
    TRY(zip(c, RDNA_ZIP_DIV, &part, &range, &part));
    TRY(affine(c, &part, 1.0 / 6, (2 - i) * 2.0 / 6, &part));
    TRY(rdna_op_compare(c->stream, RDNA_COMPARE_EQ, largest[i], &most, &here));
    TRY(i ? rdna_op_where(c->stream, &here, &part, &hue, &hue) : rdna_op_copy(c->stream, &part, &hue));
  }
  TRY(rdna_op_masked_fill(c->stream, &none, zero, &hue, &hue));
  TRY(rdna_op_compare_scalar(c->stream, RDNA_COMPARE_LT, &hue, zero, &here));
  TRY(affine(c, &hue, 1, 1, &part));
  TRY(rdna_op_where(c->stream, &here, &part, &hue, &hsv.part[0]));
  TRY(zip(c, RDNA_ZIP_DIV, &range, &most, &part));
  TRY(rdna_op_compare_scalar(c->stream, RDNA_COMPARE_LE, &most, zero, &here));
  TRY(rdna_op_masked_fill(c->stream, &here, zero, &part, &hsv.part[1]));
  return rdna_op_copy(c->stream, &most, &hsv.part[2]);
}

/* ((1 - s) + s d) v, where d is |6 h - 3| - 1 for red, 2 - |6 h - 2| for green, 2 - |6 h - 4| for blue, from 0 to 1 */
static rdna_status to_rgb(call *c, const rdna_tensor *x, const rdna_tensor *y) {
  struct color hsv = parts_of(x), out = parts_of(y);
  static const double from[] = {3, 2, 4}, sign[] = {1, -1, -1}, more[] = {-1, 2, 2};
  rdna_tensor d;
  TRY(like(c, &hsv.part[0], &d));
  for (int i = 0; i < 3; i++) {
    TRY(affine(c, &hsv.part[0], 6, -from[i], &d));
    TRY(map(c, RDNA_MAP_ABS, &d, &d));
    TRY(affine(c, &d, sign[i], more[i], &d));
    TRY(rdna_op_map(c->stream, RDNA_MAP_CLAMP, &d, zero, rdna_scalar_real(1), &d));
    TRY(affine(c, &d, 1, -1, &d)); /* 1 - s + s d = 1 + s (d - 1) */
    TRY(zip(c, RDNA_ZIP_MUL, &d, &hsv.part[1], &d));
    TRY(affine(c, &d, 1, 1, &d));
    TRY(zip(c, RDNA_ZIP_MUL, &d, &hsv.part[2], &out.part[i]));
  }
  return RDNA_OK;
}

/* Number 0: RGBToHSV; 1: HSVToRGB. */
rdna_status compute_color(call *c) {
  rdna_tensor x, out, y;
  TRY(begin(c, &x, &out, &y));
  if (rdna_tensor_count(&x) == 0) return RDNA_OK;
  TRY(c->number ? to_rgb(c, &x, &y) : to_hsv(c, &x, &y));
  return call_round(c, &y, &out);
}

/* (images, number in f32): 0: it is added to the hue, which goes round; 1: it multiplies the saturation. */
rdna_status compute_adjust_color(call *c) {
  rdna_tensor x, by, own, out, y, hsv, floor;
  TRY(begin(c, &x, &out, &y));
  TRY(call_input(c, 1, &by));
  if (rdna_tensor_count(&by) != 1) return call_fail(c, RDNA_INVALID_ARGUMENT, "input 1 must be a scalar");
  if (rdna_tensor_count(&x) == 0) return RDNA_OK;
  by = reshaped(&by, 0, NULL);
  TRY(as_type(c, &by, x.dtype, &own));
  TRY(like(c, &x, &hsv));
  TRY(to_hsv(c, &x, &hsv));
  struct color parts = parts_of(&hsv);
  if (c->number == 0) {
    TRY(call_scratch(c, x.dtype, x.rank, parts.part[0].shape, &floor));
    TRY(zip(c, RDNA_ZIP_ADD, &parts.part[0], &own, &parts.part[0]));
    TRY(map(c, RDNA_MAP_FLOOR, &parts.part[0], &floor));
    TRY(zip(c, RDNA_ZIP_SUB, &parts.part[0], &floor, &parts.part[0]));
  } else {
    TRY(zip(c, RDNA_ZIP_MUL, &parts.part[1], &own, &parts.part[1]));
    TRY(rdna_op_map(c->stream, RDNA_MAP_CLAMP, &parts.part[1], zero, rdna_scalar_real(1), &parts.part[1]));
  }
  TRY(to_rgb(c, &hsv, &y));
  return call_round(c, &y, &out);
}

/* (images, factor): (x - mean) factor + mean, with the mean of each channel of each image. */
rdna_status compute_adjust_contrast(call *c) {
  rdna_tensor x, by, own, out, y, mean;
  int64_t shape[RDNA_MAX_RANK];
  TRY(call_wide_input(c, 0, &x));
  TRY(call_input(c, 1, &by));
  if (x.rank < 3 || rdna_tensor_count(&by) != 1)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "images must be at least 3-D, contrast_factor a scalar");
  TRY(call_wide_output(c, 0, x.rank, x.shape, &out, &y));
  if (rdna_tensor_count(&x) == 0) return RDNA_OK;
  for (int i = 0; i < x.rank; i++) shape[i] = i == x.rank - 2 || i == x.rank - 3 ? 1 : x.shape[i];
  by = reshaped(&by, 0, NULL);
  TRY(as_type(c, &by, x.dtype, &own));
  TRY(call_scratch(c, x.dtype, x.rank, shape, &mean));
  TRY(rdna_op_reduce(c->stream, RDNA_REDUCTION_MEAN, &x, 3u << (x.rank - 3), 0, &mean));
  TRY(zip(c, RDNA_ZIP_SUB, &x, &mean, &y));
  TRY(zip(c, RDNA_ZIP_MUL, &y, &own, &y));
  TRY(zip(c, RDNA_ZIP_ADD, &y, &mean, &y));
  return call_round(c, &y, &out);
}
