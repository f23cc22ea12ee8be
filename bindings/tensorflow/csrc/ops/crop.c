/* Boxes cut out of images and resized. A box is (y1, x1, y2, x2) in parts of the image, whose last row is 1; places of
 * the crop are computed in f32 and in TensorFlow's order, as what is beyond the image by a rounding is outside. */
#include "compose.h"
#include "ops.h"
#include "places.h"
#include "rdna/op/index.h"
#include "unsigned.h"

/* Of one direction, for each box and each place of the crop, (boxes, places): where it is in the image, between which
 * two, how near to the second, and whether it is in the image at all. */
struct line {
  rdna_tensor low, high, share, inside;
};

struct crop {
  int64_t images, height, width, channels, boxes, rows, columns;
  bool nearest;
  rdna_tensor box, image; /* (boxes, 4), (boxes) of i64 */
  struct line y, x;
};

static rdna_status find_line(call *c, const struct crop *k, int first, int64_t size, int64_t places, struct line *out) {
  rdna_tensor from = narrowed(&k->box, 1, first, 1), to = narrowed(&k->box, 1, first + 2, 1), number, step, at, below;
  int64_t shape[] = {k->boxes, places}, one[] = {k->boxes, 1};
  TRY(call_scratch(c, RDNA_F32, 2, shape, &at));
  TRY(call_scratch(c, RDNA_F32, 2, one, &step));
  if (places > 1) {
    TRY(call_scratch(c, RDNA_F32, 1, &places, &number));
    TRY(rdna_op_arange(c->stream, rdna_scalar_real(0), rdna_scalar_real(1), &number));
    TRY(zip(c, RDNA_ZIP_SUB, &to, &from, &step));
    TRY(zip_number(c, RDNA_ZIP_MUL, &step, (double)(size - 1), &step));
    TRY(zip_number(c, RDNA_ZIP_DIV, &step, (double)(places - 1), &step));
    TRY(zip(c, RDNA_ZIP_MUL, &number, &step, &at));
    TRY(zip_number(c, RDNA_ZIP_MUL, &from, (double)(size - 1), &step));
    TRY(zip(c, RDNA_ZIP_ADD, &step, &at, &at));
  } else { /* the middle */
    TRY(zip(c, RDNA_ZIP_ADD, &from, &to, &step));
    TRY(zip_number(c, RDNA_ZIP_MUL, &step, 0.5, &step));
    TRY(zip_number(c, RDNA_ZIP_MUL, &step, (double)(size - 1), &at));
  }
  rdna_tensor early, late;
  TRY(answers(c, RDNA_COMPARE_GE, &at, 0, &early));
  TRY(answers(c, RDNA_COMPARE_LE, &at, (double)(size - 1), &late));
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_LOGICAL_AND, &early, &late, &early));
  out->inside = early;
  TRY(like(c, &at, &below));
  if (k->nearest) { /* what is in the middle goes up */
    TRY(affine(c, &at, 1, 0.5, &below));
    TRY(map(c, RDNA_MAP_FLOOR, &below, &below));
    return as_type(c, &below, RDNA_I64, &out->low);
  }
  TRY(map(c, RDNA_MAP_FLOOR, &at, &below));
  TRY(as_type(c, &below, RDNA_I64, &out->low));
  TRY(like(c, &at, &out->share));
  TRY(zip(c, RDNA_ZIP_SUB, &at, &below, &out->share));
  TRY(map(c, RDNA_MAP_CEIL, &at, &below));
  return as_type(c, &below, RDNA_I64, &out->high);
}

static rdna_status check_finite(call *c, const rdna_tensor *x) {
  rdna_tensor finite, all;
  bool are = true;
  TRY(call_scratch(c, RDNA_BOOL, x->rank, x->shape, &finite));
  TRY(call_scratch(c, RDNA_BOOL, 0, NULL, &all));
  TRY(rdna_op_compare(c->stream, RDNA_COMPARE_ISFINITE, x, NULL, &finite));
  TRY(rdna_op_reduce(c->stream, RDNA_REDUCTION_ALL, &finite, 3, 0, &all));
  TRY(call_read(c, &all, &are));
  return are ? RDNA_OK : call_fail(c, RDNA_INVALID_ARGUMENT, "Boxes contains at least one element that is not finite");
}

/* Boxes and images from inputs |first| on, for images of (images, height, width, channels) and crops of |rows| x
 * |columns|. */
static rdna_status begin(call *c, int first, struct crop *k) {
  rdna_tensor numbers;
  k->nearest = c->attributes->method[0] == 'n';
  TRY(call_input(c, first, &k->box));
  TRY(call_input(c, first + 1, &numbers));
  if (k->box.rank != 2 || k->box.shape[1] != 4 || numbers.rank != 1 || numbers.shape[0] != k->box.shape[0])
    return call_fail(c, RDNA_INVALID_ARGUMENT, "boxes must be (count, 4), and box_index have one for each");
  if (k->rows < 1 || k->columns < 1)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "crop dimensions must be positive: %lld x %lld", (long long)k->rows,
                     (long long)k->columns);
  if (k->images < 0 || k->height < 1 || k->width < 1 || k->channels < 0)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "image dimensions must be positive: %lld x %lld", (long long)k->height,
                     (long long)k->width);
  k->boxes = k->box.shape[0];
  TRY(check_indices(c, &numbers, k->images));
  if (k->boxes == 0) return RDNA_OK;
  TRY(check_finite(c, &k->box));
  TRY(as_type(c, &numbers, RDNA_I64, &k->image));
  TRY(find_line(c, k, 0, k->height, k->rows, &k->y));
  return find_line(c, k, 1, k->width, k->columns, &k->x);
}

/* |out| (boxes, rows, columns): rows of the images as (images height width, channels), of two of the lists; -1 for what
 * is outside. */
static rdna_status rows_of(call *c, const struct crop *k, const rdna_tensor *y, const rdna_tensor *x,
                           const rdna_tensor *inside, rdna_tensor *out) {
  int64_t all[] = {k->boxes, k->rows, k->columns};
  rdna_tensor line, image = reshaped(&k->image, 2, (int64_t[]){k->boxes, 1}), none;
  TRY(call_scratch(c, RDNA_I64, 2, all, &line));
  TRY(call_scratch(c, RDNA_I64, 3, all, out));
  TRY(call_scratch(c, RDNA_I64, 0, NULL, &none));
  TRY(fill(c, -1, &none));
  TRY(rdna_op_zip(c->stream, RDNA_ZIP_ADD_SCALED, y, &image, rdna_scalar_integer(k->height), zero, &line));
  TRY(rdna_op_map(c->stream, RDNA_MAP_AFFINE, &line, rdna_scalar_integer(k->width), zero, &line));
  rdna_tensor down = reshaped(&line, 3, (int64_t[]){k->boxes, k->rows, 1}),
              across = reshaped(x, 3, (int64_t[]){k->boxes, 1, k->columns});
  TRY(zip(c, RDNA_ZIP_ADD, &down, &across, out));
  rdna_tensor nowhere = repeated(&none, 3, all);
  return rdna_op_where(c->stream, inside, out, &nowhere, out);
}

/* (boxes, rows, columns): what is in the image in both directions */
static rdna_status inside_of(call *c, const struct crop *k, rdna_tensor *out) {
  rdna_tensor down = reshaped(&k->y.inside, 3, (int64_t[]){k->boxes, k->rows, 1}),
              across = reshaped(&k->x.inside, 3, (int64_t[]){k->boxes, 1, k->columns});
  TRY(call_scratch(c, RDNA_BOOL, 3, (int64_t[]){k->boxes, k->rows, k->columns}, out));
  return rdna_op_compare(c->stream, RDNA_COMPARE_LOGICAL_AND, &down, &across, out);
}

/* The four neighbours of each place: top left, top right, bottom left, bottom right. */
static rdna_status neighbours(call *c, const struct crop *k, const rdna_tensor *inside, rdna_tensor *rows) {
  for (int i = 0; i < 4; i++)
    TRY(rows_of(c, k, i < 2 ? &k->y.low : &k->y.high, i % 2 ? &k->x.high : &k->x.low, inside, &rows[i]));
  return RDNA_OK;
}

/* A share for each place, next to values (boxes, rows, columns, channels). */
static rdna_tensor share_down(const struct crop *k) {
  return reshaped(&k->y.share, 4, (int64_t[]){k->boxes, k->rows, 1, 1});
}
static rdna_tensor share_across(const struct crop *k) {
  return reshaped(&k->x.share, 4, (int64_t[]){k->boxes, 1, k->columns, 1});
}

/* a + share (b - a) into |a| */
static rdna_status mix(call *c, const rdna_tensor *a, const rdna_tensor *b, const rdna_tensor *share) {
  TRY(zip(c, RDNA_ZIP_SUB, b, a, b));
  TRY(zip(c, RDNA_ZIP_MUL, b, share, b));
  return zip(c, RDNA_ZIP_ADD, a, b, a);
}

static rdna_status take(call *c, const struct crop *k, const rdna_tensor *image, const rdna_tensor *rows,
                        const rdna_tensor *out) {
  int64_t count = rdna_tensor_count(rows);
  rdna_tensor from = reshaped(image, 2, (int64_t[]){k->images * k->height * k->width, k->channels}),
              list = reshaped(rows, 1, &count), to = reshaped(out, 2, (int64_t[]){count, k->channels});
  return rdna_op_index_select(c->stream, &from, 0, &list, &to, NULL);
}

/* Images of input |i|, in f32. */
static rdna_status read_images(call *c, int i, rdna_tensor *image, struct crop *k) {
  rdna_tensor x;
  TF_DataType type;
  TRY(call_input(c, i, &x));
  TRY(call_type(c, i, &type));
  if (x.rank != 4) return call_fail(c, RDNA_INVALID_ARGUMENT, "input image must be 4-D");
  k->images = x.shape[0], k->height = x.shape[1], k->width = x.shape[2], k->channels = x.shape[3];
  TRY(from_unsigned(c, type, true, &x));
  return as_type(c, &x, RDNA_F32, image);
}

/* (images, boxes, image of each box, (rows, columns)) */
rdna_status compute_crop(call *c) {
  struct crop k = {0};
  rdna_tensor image, out, inside, rows[4], part[4];
  int64_t size[2];
  int count;
  TRY(read_images(c, 0, &image, &k));
  TRY(call_integers(c, 3, 2, size, &count));
  k.rows = size[0], k.columns = count == 2 ? size[1] : 0;
  TRY(begin(c, 1, &k));
  TRY(call_output(c, 0, 4, (int64_t[]){k.boxes, k.rows, k.columns, k.channels}, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  TRY(inside_of(c, &k, &inside));
  if (k.nearest) {
    TRY(rows_of(c, &k, &k.y.low, &k.x.low, &inside, &rows[0]));
    TRY(take(c, &k, &image, &rows[0], &out));
  } else {
    rdna_tensor across = share_across(&k), down = share_down(&k);
    TRY(neighbours(c, &k, &inside, rows));
    for (int i = 0; i < 4; i++) {
      part[i] = out;
      if (i) TRY(like(c, &out, &part[i]));
      TRY(take(c, &k, &image, &rows[i], &part[i]));
    }
    TRY(mix(c, &part[0], &part[1], &across));
    TRY(mix(c, &part[2], &part[3], &across));
    TRY(mix(c, &part[0], &part[2], &down));
  }
  rdna_tensor otherwise, here = reshaped(&inside, 4, (int64_t[]){k.boxes, k.rows, k.columns, 1});
  TRY(call_scratch(c, RDNA_F32, 0, NULL, &otherwise));
  TRY(fill(c, (double)c->attributes->extrapolation_value, &otherwise));
  rdna_tensor beyond = repeated(&otherwise, 4, out.shape), mask = repeated(&here, 4, out.shape);
  return rdna_op_where(c->stream, &mask, &out, &beyond, &out);
}

static rdna_status read_gradient(call *c, rdna_tensor *dy, struct crop *k) {
  TRY(call_input(c, 0, dy));
  if (dy->rank != 4) return call_fail(c, RDNA_INVALID_ARGUMENT, "grads image must be 4-D");
  k->rows = dy->shape[1], k->columns = dy->shape[2];
  return RDNA_OK;
}

static rdna_status check_gradient(call *c, const rdna_tensor *dy, const struct crop *k) {
  return dy->shape[0] == k->boxes && dy->shape[3] == k->channels
             ? RDNA_OK
             : call_fail(c, RDNA_INVALID_ARGUMENT, "grads must have a crop for each box and the image's channels");
}

/* |given|, f32, is added to |rows| of |image| in its own type. */
static rdna_status spread(call *c, const struct crop *k, const rdna_tensor *given, const rdna_tensor *rows,
                          const rdna_tensor *image) {
  int64_t count = rdna_tensor_count(rows);
  rdna_tensor values;
  TRY(as_type(c, given, image->dtype, &values));
  rdna_tensor to = reshaped(image, 2, (int64_t[]){k->images * k->height * k->width, k->channels}),
              list = reshaped(rows, 1, &count), from = reshaped(&values, 2, (int64_t[]){count, k->channels});
  return rdna_op_index_copy(c->stream, &to, 0, &list, &from, RDNA_SCATTER_ADD, true, NULL);
}

/* (gradient, boxes, image of each box, images' shape) */
rdna_status compute_crop_gradient_of_image(call *c) {
  struct crop k = {0};
  rdna_tensor dy, out, wide, inside, rows[4], half, part;
  int64_t shape[4];
  int count;
  TRY(read_gradient(c, &dy, &k));
  TRY(call_integers(c, 3, 4, shape, &count));
  if (count != 4) return call_fail(c, RDNA_INVALID_ARGUMENT, "image_size must have 4 elements");
  k.images = shape[0], k.height = shape[1], k.width = shape[2], k.channels = shape[3];
  TRY(begin(c, 1, &k));
  TRY(check_gradient(c, &dy, &k));
  TRY(call_wide_output(c, 0, 4, shape, &out, &wide));
  TRY(fill(c, 0, &wide));
  if (rdna_tensor_count(&dy) == 0 || rdna_tensor_count(&out) == 0) return call_round(c, &wide, &out);
  TRY(inside_of(c, &k, &inside));
  if (k.nearest) {
    TRY(rows_of(c, &k, &k.y.low, &k.x.low, &inside, &rows[0]));
    TRY(spread(c, &k, &dy, &rows[0], &wide));
    return call_round(c, &wide, &out);
  }
  rdna_tensor down[2] = {[1] = share_down(&k)}, across[2] = {[1] = share_across(&k)};
  TRY(like(c, &down[1], &down[0]));
  TRY(like(c, &across[1], &across[0]));
  TRY(affine(c, &down[1], -1, 1, &down[0]));
  TRY(affine(c, &across[1], -1, 1, &across[0]));
  TRY(neighbours(c, &k, &inside, rows));
  TRY(like(c, &dy, &half));
  TRY(like(c, &dy, &part));
  for (int i = 0; i < 4; i++) {
    if (i % 2 == 0) TRY(zip(c, RDNA_ZIP_MUL, &dy, &down[i / 2], &half));
    TRY(zip(c, RDNA_ZIP_MUL, &half, &across[i % 2], &part));
    TRY(spread(c, &k, &part, &rows[i], &wide));
  }
  return call_round(c, &wide, &out);
}

/* Columns |first| and |first| + 2 of |out|: the sums over places of |slope| (boxes, rows, columns), which is the
 * gradient of a place in the image, times how it moves with the box's two ends. |dim| is the places' direction. */
static rdna_status ends_of(call *c, const struct crop *k, const rdna_tensor *slope, int dim, int64_t size,
                           int64_t places, int first, const rdna_tensor *out) {
  rdna_tensor share, product, sums[2];
  for (int i = 0; i < 2; i++) {
    rdna_tensor to = narrowed(out, 1, first + 2 * i, 1);
    TRY(call_scratch(c, RDNA_F32, 1, &k->boxes, &sums[i]));
    TRY(like(c, slope, &product));
    if (places > 1) {
      TRY(call_scratch(c, RDNA_F32, 1, &places, &share));
      double step = (double)(size - 1) / (double)(places - 1);
      TRY(rdna_op_arange(c->stream, rdna_scalar_real(i ? 0 : (double)(size - 1)), rdna_scalar_real(i ? step : -step),
                         &share));
      rdna_tensor along = reshaped(&share, 3, (int64_t[]){1, dim == 1 ? places : 1, dim == 2 ? places : 1});
      TRY(zip(c, RDNA_ZIP_MUL, slope, &along, &product));
    } else {
      TRY(zip_number(c, RDNA_ZIP_MUL, slope, 0.5 * (double)(size - 1), &product));
    }
    TRY(rdna_op_reduce(c->stream, RDNA_REDUCTION_SUM, &product, 6, 0, &sums[i]));
    to.rank = 1;
    TRY(rdna_op_copy(c->stream, &sums[i], &to));
  }
  return RDNA_OK;
}

/* (gradient, images, boxes, image of each box) */
rdna_status compute_crop_gradient_of_boxes(call *c) {
  struct crop k = {0};
  rdna_tensor dy, image, out, inside, rows[4], part[4], turn, mask, none, slope;
  TRY(read_gradient(c, &dy, &k));
  TRY(read_images(c, 1, &image, &k));
  TRY(begin(c, 2, &k));
  TRY(check_gradient(c, &dy, &k));
  TRY(call_output(c, 0, 2, k.box.shape, &out));
  TRY(fill(c, 0, &out));
  if (rdna_tensor_count(&dy) == 0 || rdna_tensor_count(&image) == 0) return RDNA_OK;
  TRY(inside_of(c, &k, &inside));
  TRY(neighbours(c, &k, &inside, rows));
  TRY(like(c, &dy, &turn));
  TRY(call_scratch(c, RDNA_F32, 0, NULL, &none));
  TRY(fill(c, 0, &none));
  rdna_tensor shares[2] = {share_across(&k), share_down(&k)};
  for (int way = 0; way < 2; way++) { /* down, then across: what is mixed in the other direction, and the difference */
    for (int i = 0; i < 4; i++) {
      if (way == 0) TRY(like(c, &dy, &part[i]));
      TRY(take(c, &k, &image, &rows[i], &part[i]));
    }
    rdna_tensor *begins = &part[way ? 2 : 1], *ends = &part[way ? 1 : 2]; /* neighbours in the other direction */
    TRY(mix(c, &part[0], begins, &shares[way]));
    TRY(mix(c, ends, &part[3], &shares[way]));
    TRY(zip(c, RDNA_ZIP_SUB, ends, &part[0], &turn));
    TRY(zip(c, RDNA_ZIP_MUL, &turn, &dy, &turn));
    TRY(call_scratch(c, RDNA_F32, 3, dy.shape, &slope));
    TRY(rdna_op_reduce(c->stream, RDNA_REDUCTION_SUM, &turn, 8, 0, &slope));
    mask = repeated(&none, 3, slope.shape);
    TRY(rdna_op_where(c->stream, &inside, &slope, &mask, &slope));
    TRY(ends_of(c, &k, &slope, way ? 2 : 1, way ? k.width : k.height, way ? k.columns : k.rows, way, &out));
  }
  return RDNA_OK;
}
