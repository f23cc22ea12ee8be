/* Convolutions by our kernels, with tensors in the layout that those read fastest: channels last, 16 bytes of them at
 * multiples of 16 bytes. A copy reads and writes a tensor once; without it every value is fetched alone, once for each
 * tap and tile.
 *
 * An image of few channels, a picture, is laid out so that a row of the window is one run of channels: its values are
 * C', a power of two, channels apart and the window's row is padded to kx' places, so that the image has C' kx'
 * channels at every position, those of neighbours overlapping, and its window is one place wide. */
#include "device/traits.h"
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/scratch.h"
#include "math/conv/conv.h"
#include "math/conv/depthwise.h"
#include "rdna/op/movement.h"

enum {
  LEAST_PRODUCTS = 1 << 20, /* below, copies take longer than they save */
  FEW_CHANNELS = 4,
  SPREAD_PIECE = 1 << 24 /* values: about what a second-level cache holds */
};

/* The least channels for which Winograd's way saves more in products than it costs in bytes: measured on an H200, which
 * has 16 operations in the time of a byte; guessed for AMD's cards, which have about four times as many. Of the
 * weight's gradient it is by count: 40 operations less for 144 bytes of each of in and out channels, and 164 bytes for
 * each pair of them, so that the tiles are to be as many too. */
static int64_t winograd_channels(const rdna__device_traits *traits, bool of_weight) {
  enum { H200 = 16, FEW = 64, MANY = 128, WEIGHT_FEW = 128, WEIGHT_MANY = 512 };
  bool few = traits->f32_operations_for_byte <= H200;
  return of_weight ? (few ? WEIGHT_FEW : WEIGHT_MANY) : (few ? FEW : MANY);
}

/* Tensors of a call in other layouts. */
typedef struct copies {
  rdna__scratch scratch;
  rdna__conv_call call;
  rdna_convolution conv;
  rdna_tensor x, weight, y;
} copies;

static int64_t in_16_bytes(rdna_dtype dtype) { return 16 / (int64_t)rdna_dtype_block_bytes(dtype); }

/* Channels side by side, and all else at multiples of 16 bytes. */
static bool is_channels_last(const rdna_tensor *t) {
  if ((uintptr_t)t->data % 16 != 0 || (t->shape[1] > 1 && t->stride[1] != 1)) return false;
  for (int d = 0; d < t->rank; d++)
    if (d != 1 && t->shape[d] > 1 && t->stride[d] % in_16_bytes(t->dtype) != 0) return false;
  return true;
}

/* A weight that moreover has no gaps, so that all taps of a channel are one run. */
static bool is_dense_weight(const rdna_tensor *t) {
  int64_t next = t->shape[1];
  if (!is_channels_last(t)) return false;
  for (int d = t->rank - 1; d > 1; next *= t->shape[d--])
    if (t->shape[d] > 1 && t->stride[d] != next) return false;
  return true;
}

static void set_channels_last(rdna_tensor *t) {
  int64_t next = t->shape[1];
  t->stride[1] = 1;
  for (int d = t->rank - 1; d > 1; next *= t->shape[d--]) t->stride[d] = next;
  t->stride[0] = next;
}

/* All of the values of an image's channel side by side, and channels and images after each other. */
static bool is_channels_first(const rdna_tensor *t) {
  int64_t next = 1;
  for (int d = t->rank - 1; d >= 0; next *= t->shape[d--])
    if (t->shape[d] > 1 && t->stride[d] != next) return false;
  return (uintptr_t)t->data % 16 == 0;
}

static const rdna__route turn_route[] = {{.name = "turn",
                                          .kernels = {"conv_to_{first|last}_{16|32}"},
                                          .when = "lines that are not whole 16 bytes; others by copy"}};
RDNA_FIXED_ROUTES(rdna__conv_turn_routes, "copies of conv between channels first and channels last", turn_route)

/* Between channels first and dense channels last, the layout of which |to_last| says that it is |out|'s. Lines of whole
 * 16 bytes are left to the general copy. */
static rdna_status copy_turned(rdna_stream *stream, const char *op_name, const rdna_tensor *in, const rdna_tensor *out,
                               bool to_last) {
  int64_t plane = 1, run = in_16_bytes(in->dtype), channels = in->shape[1];
  for (int d = 2; d < in->rank; d++) plane *= in->shape[d];
  int64_t runs = CONV_TURN_BYTES / 16 / (plane | 1);
  if (plane % run == 0 || channels % run != 0 || runs == 0 || in->shape[0] > RDNA__GRID_YZ_MAX ||
      !is_channels_first(to_last ? in : out) || (uintptr_t)(to_last ? out : in)->data % 16 != 0)
    return rdna_op_copy(stream, in, out);
  struct conv_turn_args args = {.in = in->data, .out = out->data, .images = (int32_t)in->shape[0]};
  args.channels = (int32_t)channels, args.plane = (int32_t)plane, args.block = (int32_t)(runs * run);
  rdna_grid grid = {0, (uint32_t)in->shape[0], 1};
  RDNA_TRY(rdna__check_groups(op_name, channels, args.block, &grid.x));
  return RDNA__ROUTE_LAUNCH(stream, turn_route, 0, grid, &args, to_last ? "last" : "first", run == 4 ? "32" : "16");
}

/* |t| becomes one of the same shape with channels last in scratch memory, a copy if |filled|. */
static rdna_status turn(copies *c, const char *op_name, rdna_tensor *t, bool filled) {
  rdna_tensor old = *t;
  set_channels_last(t);
  RDNA_TRY(rdna__scratch_take(&c->scratch, (size_t)rdna_tensor_count(t) * rdna_dtype_block_bytes(t->dtype), &t->data));
  return filled ? copy_turned(c->scratch.stream, op_name, &old, t, true) : RDNA_OK;
}

static int64_t products(const rdna__conv_call *call) {
  int64_t values = rdna_tensor_count(call->y);
  return values ? values * (rdna_tensor_count(call->weight) / call->weight->shape[0]) : 0;
}

/* Whether all that the kernels ask for can be had by copies: whole runs of 8 channels. */
static bool can_turn(const rdna__conv_call *call) {
  bool in = call->weight->shape[1] % 8 == 0, out = call->weight->shape[0] / call->conv->groups % 8 == 0;
  return in && (out || call->mode == RDNA__CONV_FORWARD);
}

static rdna_status run_turned(copies *c, const char *op_name) {
  rdna__conv_call *call = &c->call;
  bool of_weight = call->mode == RDNA__CONV_WEIGHT, forward = call->mode == RDNA__CONV_FORWARD;
  const rdna_tensor *out = rdna__conv_out(call);
  call->x = &c->x, call->weight = &c->weight, call->y = &c->y, call->conv = &c->conv;
  if (!is_channels_last(&c->x)) RDNA_TRY(turn(c, op_name, &c->x, call->mode != RDNA__CONV_DATA));
  if (!is_channels_last(&c->y)) RDNA_TRY(turn(c, op_name, &c->y, !forward));
  /* A gradient of the weight is small and may be written in any layout, unless a product is to write it. */
  if (!of_weight && !(forward ? is_dense_weight(&c->weight) : is_channels_last(&c->weight)))
    RDNA_TRY(turn(c, op_name, &c->weight, true));
  RDNA_TRY(rdna__conv_is_product(call) ? rdna__conv_product(c->scratch.stream, op_name, call)
                                       : rdna__conv_direct(c->scratch.stream, op_name, call));
  const rdna_tensor *made = rdna__conv_out(call);
  return made->data == out->data ? RDNA_OK : copy_turned(c->scratch.stream, op_name, made, out, false);
}

/* ---- few channels -------------------------------------------------------------------------------------------- */

/* Channels of a value and places of the window's row, when it is laid out as one run. */
typedef struct folding {
  int64_t channels, window, row; /* values of a row of the image */
} folding;

static bool can_fold(const rdna__conv_call *call, folding *out) {
  const rdna_convolution *conv = call->conv;
  int last = conv->spatial_dims - 1;
  const rdna_tensor *w = call->weight, *x = call->x, *y = call->y;
  int64_t run = in_16_bytes(x->dtype), stride = conv->stride[last], channels = 1;
  if (call->mode == RDNA__CONV_DATA || conv->groups != 1 || w->shape[1] > FEW_CHANNELS || conv->dilation[last] != 1 ||
      (call->mode == RDNA__CONV_WEIGHT && w->shape[0] % 8 != 0))
    return false;
  while (channels < w->shape[1] || channels * stride % run != 0) channels *= 2;
  int64_t places = channels < 8 ? 8 / channels : 1, window = (w->shape[2 + last] + places - 1) / places * places;
  int64_t reach = (y->shape[2 + last] - 1) * stride + window, width = conv->pad_before[last] + x->shape[2 + last];
  if (width < reach) width = reach;
  width = rdna__divide_up(width, places) * places;
  *out = (folding){channels, window, width * channels};
  int64_t lines = x->shape[0] * out->row;
  for (int d = 0; d < last; d++) lines *= x->shape[2 + d];
  return lines <= INT32_MAX && channels <= 8;
}

static rdna_status fold_image(copies *c, const folding *f) {
  rdna_stream *stream = c->scratch.stream;
  rdna_tensor to = c->x;
  int last = c->conv.spatial_dims - 1, rank = to.rank;
  int64_t count = f->row * to.shape[0], next = f->row, bytes = (int64_t)rdna_dtype_block_bytes(to.dtype);
  for (int d = 0; d < last; d++) count *= to.shape[2 + d];
  rdna_tensor all;
  RDNA_TRY(rdna__scratch_tensor(&c->scratch, to.dtype, 1, &count, &all));
  RDNA_TRY(rdna_op_fill(stream, (rdna_scalar){0, 0}, &all));
  to.stride[1] = 1, to.stride[rank - 1] = f->channels;
  for (int d = rank - 2; d > 1; next *= to.shape[d--]) to.stride[d] = next;
  to.stride[0] = next;
  to.data = (char *)all.data + c->conv.pad_before[last] * f->channels * bytes;
  RDNA_TRY(rdna_op_copy(stream, &c->x, &to));
  to.data = all.data;
  to.shape[1] = f->channels * f->window, to.shape[rank - 1] = c->y.shape[rank - 1];
  to.stride[rank - 1] = f->channels * c->conv.stride[last];
  c->x = to;
  return RDNA_OK;
}

/* The weight that goes with it; |out_part| is where its values are. */
static rdna_status fold_weight(copies *c, const folding *f, rdna_tensor *out_part) {
  rdna_tensor to = c->weight;
  int rank = to.rank;
  to.shape[1] = f->channels * f->window, to.shape[rank - 1] = 1;
  set_channels_last(&to);
  RDNA_TRY(
      rdna__scratch_take(&c->scratch, (size_t)rdna_tensor_count(&to) * rdna_dtype_block_bytes(to.dtype), &to.data));
  *out_part = to;
  out_part->shape[1] = c->weight.shape[1], out_part->shape[rank - 1] = c->weight.shape[rank - 1];
  out_part->stride[rank - 1] = f->channels;
  c->weight = to;
  return RDNA_OK;
}

static rdna_status run_folded(copies *c, const char *op_name, const folding *f) {
  rdna_stream *stream = c->scratch.stream;
  int last = c->conv.spatial_dims - 1;
  bool forward = c->call.mode == RDNA__CONV_FORWARD;
  rdna_tensor weight = c->weight, part;
  RDNA_TRY(fold_image(c, f));
  RDNA_TRY(fold_weight(c, f, &part));
  if (forward) RDNA_TRY(rdna_op_fill(stream, (rdna_scalar){0, 0}, &c->weight));
  if (forward) RDNA_TRY(rdna_op_copy(stream, &weight, &part));
  c->conv.stride[last] = 1, c->conv.pad_before[last] = 0, c->conv.pad_after[last] = 0;
  c->call.x = &c->x, c->call.weight = &c->weight, c->call.conv = &c->conv;
  copies inner = *c; /* y's layout is left to it */
  inner.scratch.count = 0;
  rdna_status status = rdna__scratch_release(&inner.scratch, run_turned(&inner, op_name));
  if (status != RDNA_OK || forward) return status;
  return rdna_op_copy(stream, &part, &weight);
}

typedef struct problem {
  const rdna__conv_call *call;
  const rdna__device_traits *traits;
  folding fold;
  bool turns, folds;
} problem;

static bool is_direct(const rdna__route *route, const void *which) {
  const problem *p = which;
  return p->traits->divides_work || products(p->call) < LEAST_PRODUCTS || (!p->turns && !p->folds);
}
static bool is_winograd(const rdna__route *route, const void *which) {
  const problem *p = which;
  return rdna__conv_winograd_applies(p->call, winograd_channels(p->traits, p->call->mode == RDNA__CONV_WEIGHT));
}
static bool is_folded(const rdna__route *route, const void *which) { return ((const problem *)which)->folds; }

static bool is_depthwise(const rdna__route *of, const void *which) {
  return rdna__conv_depthwise_applies(((const problem *)which)->call);
}

/* Where nothing can be turned. */
static bool is_spread(const rdna__route *of, const void *which) {
  const problem *p = which;
  return !p->traits->divides_work && !p->turns && products(p->call) >= LEAST_PRODUCTS &&
         rdna__conv_spread_applies(p->call);
}

enum { DEPTHWISE, SPREAD, DIRECT, WINOGRAD, FOLDED, TURNED };
static const rdna__route routes[] = {
    [DEPTHWISE] = {.name = "depthwise",
                   .when = "one channel a group, by the table of depthwise.c",
                   .applies = is_depthwise},
    [SPREAD] = {.name = "spread",
                .when =
                    "the gradient of an image whose channels are not in eights, or from such channels, if a product "
                    "of the whole window takes less; by the table of conv_spread.c",
                .applies = is_spread,
                .measured_on = "guessed"},
    [DIRECT] = {.name = "direct",
                .when = "as the tensors lie, by the table of conv_direct.c: few products, or channels not in eights",
                .applies = is_direct,
                .measured_on = "H200"},
    [WINOGRAD] = {.name = "winograd",
                  .kernels = {"winograd_weight", "winograd_image", "winograd_result", "winograd_gradient",
                              "winograd_window"},
                  .when = "f32, windows of 3 x 3 without stride, many channels; products by gemm",
                  .applies = is_winograd,
                  .measured_on = "H200; guessed for AMD"},
    [FOLDED] = {.name = "folded",
                .kernels = {"conv_to_{first|last}_{16|32}"},
                .when = "an image of at most 4 channels, copied so that a row of the window is one run; then direct",
                .applies = is_folded},
    [TURNED] = {.name = "turned",
                .kernels = {"conv_to_{first|last}_{16|32}"},
                .when = "all others: with copies that have channels last, then a product of matrices or direct"},
};
RDNA_ROUTES(rdna__conv_routes, "conv", routes)

rdna_status rdna__conv_own(rdna_stream *stream, const char *op_name, const rdna__conv_call *call) {
  const rdna_device_info *info = rdna_device_get_info(rdna_stream_device(stream));
  problem p = {.call = call, .traits = rdna__device_traits_of(info), .turns = can_turn(call)};
  p.folds = !p.turns && can_fold(call, &p.fold);
  const rdna__route *route = rdna__route_choose(&rdna__conv_routes, &p);
  if (route == &routes[DEPTHWISE]) return rdna__conv_depthwise(stream, op_name, call);
  if (route == &routes[SPREAD]) return rdna__conv_spread(stream, op_name, call, SPREAD_PIECE);
  if (route == &routes[DIRECT]) return rdna__conv_direct(stream, op_name, call);
  if (route == &routes[WINOGRAD]) return rdna__conv_winograd(stream, op_name, call);
  copies c = {.scratch = {.stream = stream, .holder = op_name}, .call = *call, .conv = *call->conv};
  c.x = *call->x, c.weight = *call->weight, c.y = *call->y;
  bool folds = route == &routes[FOLDED];
  return rdna__scratch_release(&c.scratch, folds ? run_folded(&c, op_name, &p.fold) : run_turned(&c, op_name));
}
