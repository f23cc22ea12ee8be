/* From tensors to the arguments of the kernels. */
#include <string.h>

#include "math/conv/conv.h"

/* Sizes and strides with three spatial dimensions: those that a tensor lacks come first and are of size 1. */
typedef struct volume {
  int32_t size[5], stride[5]; /* first, second, z, y, x */
} volume;

static volume volume_of(const rdna_tensor *tensor, int dims) {
  volume v = {{1, 1, 1, 1, 1}, {0}};
  for (int d = 0; d < dims + 2; d++) {
    int to = d < 2 ? d : d + 3 - dims;
    v.size[to] = (int32_t)tensor->shape[d];
    v.stride[to] = tensor->shape[d] > 1 ? (int32_t)tensor->stride[d] : 0;
  }
  return v;
}

static void set_radix(struct conv_radix *radix, const int32_t size[4]) {
  for (int d = 0; d < 4; d++) {
    uint32_t of = size[d] > 0 ? (uint32_t)size[d] : 1, bits = 0; /* ceil(log2(of)) */
    while (bits < 31 && (UINT32_C(1) << bits) < of) bits++;
    radix->size[d] = of;
    radix->shift[d] = 31 + bits;
    radix->magic[d] = (uint32_t)(((UINT64_C(1) << (31 + bits)) + of - 1) / of);
  }
}

static int32_t product4(const int32_t size[4]) { return size[0] * size[1] * size[2] * size[3]; }

/* The digits of a tap in their order: the channel first or last. */
static void order_tap(uint32_t flags, int32_t channel, const int32_t window[3], int32_t out[4]) {
  bool first = flags & CONV_CHANNEL_FIRST;
  memcpy(out + (first ? 1 : 0), window, 3 * sizeof *window);
  out[first ? 0 : 3] = channel;
}

static void set_position(const volume *of, const int32_t stride[5], struct conv_radix *radix, int32_t out_stride[4]) {
  set_radix(radix, (int32_t[]){of->size[0], of->size[2], of->size[3], of->size[4]});
  memcpy(out_stride, (int32_t[]){stride[0], stride[2], stride[3], stride[4]}, 4 * sizeof *out_stride);
}

/* Whether number p lies at p * step. */
static bool is_even(const int32_t size[4], const int32_t stride[4], int32_t *out_step) {
  int64_t next = -1;
  for (int d = 3; d >= 0; d--) {
    if (size[d] == 1) continue;
    if (next < 0)
      *out_step = stride[d];
    else if (stride[d] != next)
      return false;
    next = (int64_t)stride[d] * size[d];
  }
  if (next < 0) *out_step = 0;
  return true;
}

static bool all_multiples(const int32_t *values, int count, int32_t of) {
  for (int i = 0; i < count; i++)
    if (values[i] % of != 0) return false;
  return true;
}

static uint32_t layout_flags(rdna__conv_mode mode, struct conv_args *a, int32_t channels, int32_t value_bytes,
                             const int32_t k_size[4]) {
  int32_t in_16 = 16 / value_bytes;
  uint32_t flags = 0;
  bool runs = !(a->flags & CONV_CHANNEL_FIRST) && channels % 8 == 0 && a->image_stride[4] == 1 &&
              all_multiples(a->image_stride, 4, in_16) && a->image_group % in_16 == 0;
  if (runs) flags |= CONV_IMAGE_RUNS;
  if (is_even(k_size, a->other_k, &a->other_step)) {
    flags |= CONV_OTHER_EVEN;
    if (a->other_step == 1 && a->other_row % in_16 == 0 && a->other_group % in_16 == 0) flags |= CONV_OTHER_RUNS;
  }
  int32_t other_rows = mode == RDNA__CONV_WEIGHT ? a->rows : a->columns;
  if (a->other_row == 1 && other_rows % 8 == 0 && all_multiples(a->other_k, 4, in_16) && a->other_group % in_16 == 0)
    flags |= CONV_OTHER_ROWS;
  if (mode != RDNA__CONV_WEIGHT && a->columns == 1 && a->groups % 8 == 0 && a->image_group == 1 && a->out_group == 1 &&
      all_multiples(a->image_stride, 4, in_16) && all_multiples(a->out_digits, 4, in_16))
    flags |= CONV_OCTETS;
  bool out_runs = all_multiples(a->out_digits, 3, in_16) && a->out_group % in_16 == 0;
  if (mode == RDNA__CONV_WEIGHT)
    out_runs = out_runs && !(a->flags & CONV_CHANNEL_FIRST) && channels % 8 == 0 && a->out_digits[3] == 1 &&
               a->out_channel % in_16 == 0;
  else
    out_runs = out_runs && a->out_channel == 1 && a->columns % 8 == 0 && a->out_digits[3] % in_16 == 0;
  return out_runs ? flags | CONV_OUT_RUNS : flags;
}

void rdna__conv_args_make(rdna__conv_mode mode, const rdna_convolution *conv, const rdna_tensor *x,
                          const rdna_tensor *weight, const rdna_tensor *y, struct conv_args *out_args) {
  struct conv_args a = {.groups = (int32_t)conv->groups};
  volume vx = volume_of(x, conv->spatial_dims), vw = volume_of(weight, conv->spatial_dims),
         vy = volume_of(y, conv->spatial_dims);
  int32_t in_channels = vw.size[1], out_channels = vw.size[0] / a.groups;
  const volume *image = mode == RDNA__CONV_DATA ? &vy : &vx;
  a.image = mode == RDNA__CONV_DATA ? y->data : x->data;
  a.other = mode == RDNA__CONV_WEIGHT ? y->data : weight->data;
  a.out = mode == RDNA__CONV_FORWARD ? y->data : mode == RDNA__CONV_DATA ? x->data : weight->data;
  memcpy(a.image_stride,
         (int32_t[]){image->stride[0], image->stride[2], image->stride[3], image->stride[4], image->stride[1]},
         sizeof a.image_stride);
  memcpy(a.image_size, image->size + 2, sizeof a.image_size);
  for (int d = 0; d < 3; d++) {
    int from = d - (3 - conv->spatial_dims);
    int32_t stride = from < 0 ? 1 : (int32_t)conv->stride[from],
            before = from < 0 ? 0 : (int32_t)conv->pad_before[from];
    int32_t dilation = from < 0 ? 1 : (int32_t)conv->dilation[from];
    bool data = mode == RDNA__CONV_DATA;
    a.step[d] = stride, a.begin[d] = data ? -before : before, a.dilation[d] = data ? -dilation : dilation;
  }

  int32_t channels = mode == RDNA__CONV_DATA ? out_channels : in_channels, tap_size[4], tap_stride[4];
  a.flags = channels > 1 && a.image_stride[4] != 1 ? CONV_CHANNEL_FIRST : 0;
  order_tap(a.flags, channels, vw.size + 2, tap_size);
  order_tap(a.flags, mode == RDNA__CONV_DATA ? vw.stride[0] : vw.stride[1], vw.stride + 2, tap_stride);
  set_radix(&a.tap, tap_size);
  const volume *places = mode == RDNA__CONV_DATA ? &vx : &vy;
  int32_t place_size[4] = {places->size[0], places->size[2], places->size[3], places->size[4]}, place_stride[4];
  set_position(places, places->stride, &a.position, place_stride);

  int32_t group_x = in_channels * vx.stride[1], group_y = out_channels * vy.stride[1];
  int32_t group_w = out_channels * vw.stride[0];
  bool weight_mode = mode == RDNA__CONV_WEIGHT;
  a.rows = weight_mode ? out_channels : product4(place_size);
  a.columns = weight_mode ? product4(tap_size) : mode == RDNA__CONV_DATA ? in_channels : out_channels;
  a.k = weight_mode ? product4(place_size) : product4(tap_size);
  memcpy(a.other_k, weight_mode ? place_stride : tap_stride, sizeof a.other_k);
  memcpy(a.out_digits, weight_mode ? tap_stride : place_stride, sizeof a.out_digits);
  a.other_row = weight_mode ? vy.stride[1] : mode == RDNA__CONV_DATA ? vw.stride[1] : vw.stride[0];
  a.out_channel = weight_mode ? vw.stride[0] : mode == RDNA__CONV_DATA ? vx.stride[1] : vy.stride[1];
  a.image_group = mode == RDNA__CONV_DATA ? group_y : group_x;
  a.other_group = weight_mode ? group_y : group_w;
  a.out_group = weight_mode ? group_w : mode == RDNA__CONV_DATA ? group_x : group_y;
  a.flags |=
      layout_flags(mode, &a, channels, (int32_t)rdna_dtype_block_bytes(x->dtype), weight_mode ? place_size : tap_size);
  if (!weight_mode && is_even(place_size, place_stride, &a.out_step)) a.flags |= CONV_OUT_EVEN;
  a.parts = 1;
  *out_args = a;
}
