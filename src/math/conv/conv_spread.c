/* The gradient of an image of few channels, or a transposed convolution that makes one: a product and the sums of
 * spread_kernels.h, in pieces of images. */
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/scratch.h"
#include "math/conv/conv.h"
#include "math/conv/spread_kernels.h"
#include "rdna/op/gemm.h"
#include "rdna/op/movement.h"

enum {
  LEAST_PLANE = 128, /* positions of an image of y, below which its product would leave tiles empty */
  TILE = 64
};

static const rdna__route route[] = {{.name = "spread",
                                     .kernels = {"conv_spread_{float}"},
                                     .when = "what each value of an image adds up of a product, by the table of gemm"}};
RDNA_FIXED_ROUTES(rdna__conv_spread_routes, "conv, the gradient of an image of few channels", route)

typedef struct sizes {
  int64_t n, in, out, plane, places, window; /* plane: positions of an image of y; places: of x */
  double taps;                               /* of a phase of the window, at most */
} sizes;

static sizes sizes_of(const rdna__conv_call *call) {
  sizes s = {call->x->shape[0], call->x->shape[1], call->y->shape[1], 1, 1, 1, 1};
  for (int d = 0; d < call->conv->spatial_dims; d++) {
    s.plane *= call->y->shape[2 + d], s.places *= call->x->shape[2 + d], s.window *= call->weight->shape[2 + d];
    s.taps *= (double)rdna__divide_up(call->weight->shape[2 + d], call->conv->stride[d]);
  }
  return s;
}

/* How long an H200 takes by compute unit, in cycles, without launches: products a cycle of the tiles that take tensors
 * as they lie and of gemm's, and bytes. */
bool rdna__conv_spread_applies(const rdna__conv_call *call) {
  bool is_float = call->x->dtype == RDNA_F32;
  double direct_rate = is_float ? 71 : 330, product_rate = is_float ? 92 : 500, bytes_a_cycle = 16;
  if (call->mode != RDNA__CONV_DATA || call->conv->groups != 1 || call->activation != RDNA_ACTIVATION_NONE)
    return false;
  sizes s = sizes_of(call);
  if (s.plane * s.window * s.in > INT32_MAX || s.in > RDNA__GRID_YZ_MAX) return false;
  double out = (double)s.out, columns = (double)(s.in * s.window), plane = (double)s.plane;
  double direct = (double)(s.places * rdna__divide_up(s.in, TILE) * TILE) * s.taps * out / direct_rate;
  double product = plane * (double)(rdna__divide_up(s.in * s.window, TILE) * TILE) * out / product_rate;
  return product + plane * columns * 2 * sizeof(float) / bytes_a_cycle < direct;
}

void rdna__conv_spread_strides(struct conv_args *args, int64_t plane, int64_t columns, bool positions_first) {
  int32_t *stride = args->image_stride, step = positions_first ? (int32_t)columns : 1;
  stride[0] = (int32_t)(plane * columns), stride[3] = step, stride[4] = positions_first ? 1 : (int32_t)plane;
  stride[2] = stride[3] * args->image_size[2], stride[1] = stride[2] * args->image_size[1];
}

/* Dense, with channels last or first. */
static void set_dense(rdna_tensor *t, bool channels_last) {
  rdna_tensor dense = rdna_tensor_contiguous(t->data, t->dtype, t->rank, t->shape);
  if (channels_last) {
    int64_t next = t->shape[1];
    dense.stride[1] = 1;
    for (int d = t->rank - 1; d > 1; next *= t->shape[d--]) dense.stride[d] = next;
    dense.stride[0] = next;
  }
  *t = dense;
}
static bool is_dense(const rdna_tensor *t, bool channels_last) {
  rdna_tensor dense = *t;
  set_dense(&dense, channels_last);
  for (int d = 0; d < t->rank; d++)
    if (t->shape[d] > 1 && t->stride[d] != dense.stride[d]) return false;
  return true;
}
static rdna_status make_dense(rdna__scratch *scratch, rdna_tensor *t, bool channels_last) {
  rdna_tensor old = *t;
  set_dense(t, channels_last);
  if (is_dense(&old, channels_last)) return RDNA_OK;
  RDNA_TRY(rdna__scratch_take(scratch, rdna_dtype_bytes(t->dtype, rdna_tensor_count(t)), &t->data));
  return rdna_op_copy(scratch->stream, &old, t);
}

static rdna_tensor matrix(const rdna_tensor *of, int64_t batch, int64_t rows, int64_t columns, bool transposed) {
  rdna_tensor t = rdna_tensor_contiguous(of->data, of->dtype, 3, (int64_t[]){batch, rows, columns});
  if (transposed) t.stride[1] = 1, t.stride[2] = rows;
  return t;
}

/* Images |begin| to |begin| + |count|. */
static rdna_status run_piece(rdna__scratch *scratch, const char *op_name, const rdna__conv_call *call, const sizes *s,
                             int64_t begin, int64_t count, rdna_tensor *product, bool last) {
  rdna_tensor x = *call->x, y = *call->y, w = *call->weight;
  int64_t bytes = (int64_t)rdna_dtype_block_bytes(x.dtype), columns = s->in * s->window;
  x.shape[0] = y.shape[0] = count;
  x.data = (char *)x.data + begin * x.stride[0] * bytes, y.data = (char *)y.data + begin * y.stride[0] * bytes;
  if (last) { /* product (positions, columns) */
    rdna_tensor a = matrix(&y, 1, count * s->plane, s->out, false), b = matrix(&w, 1, s->out, columns, false);
    rdna_tensor c = matrix(product, 1, count * s->plane, columns, false);
    RDNA_TRY(rdna_op_gemm(scratch->stream, 1, &a, &b, 0, NULL, &c));
  } else { /* of each image (columns, positions) */
    rdna_tensor a = matrix(&w, count, columns, s->out, true), b = matrix(&y, count, s->out, s->plane, false);
    rdna_tensor c = matrix(product, count, columns, s->plane, false);
    a.stride[0] = 0;
    RDNA_TRY(rdna_op_gemm(scratch->stream, 1, &a, &b, 0, NULL, &c));
  }
  struct conv_args args;
  rdna__conv_args_make(RDNA__CONV_DATA, call->conv, &x, &w, &y, &args);
  rdna__conv_spread_strides(&args, s->plane, columns, last);
  args.image = product->data, args.bias = call->bias ? call->bias->data : NULL;
  rdna_grid grid = {0, (uint32_t)s->in, 1};
  RDNA_TRY(rdna__check_groups(op_name, args.rows, SPREAD_THREADS, &grid.x));
  return RDNA__ROUTE_LAUNCH(scratch->stream, route, 0, grid, &args, rdna_dtype_name(x.dtype));
}

static rdna_status run(rdna__scratch *scratch, const char *op_name, const rdna__conv_call *call, int64_t piece) {
  sizes s = sizes_of(call);
  rdna_tensor y = *call->y, w = *call->weight, product;
  bool last = s.plane < LEAST_PLANE || is_dense(&y, true);
  RDNA_TRY(make_dense(scratch, &y, last));
  RDNA_TRY(make_dense(scratch, &w, false));
  rdna__conv_call dense = *call;
  dense.y = &y, dense.weight = &w;
  int64_t values = s.plane * s.in * s.window, most = piece / values;
  if (most < 1) most = 1;
  if (most > s.n) most = s.n;
  int64_t shape[] = {most * values};
  RDNA_TRY(rdna__scratch_tensor(scratch, RDNA_F32, 1, shape, &product));
  for (int64_t begin = 0; begin < s.n; begin += most) {
    int64_t count = most < s.n - begin ? most : s.n - begin;
    RDNA_TRY(run_piece(scratch, op_name, &dense, &s, begin, count, &product, last));
  }
  return RDNA_OK;
}

rdna_status rdna__conv_spread(rdna_stream *stream, const char *op_name, const rdna__conv_call *call, int64_t piece) {
  rdna__scratch scratch = {.stream = stream, .holder = op_name};
  return rdna__scratch_release(&scratch, run(&scratch, op_name, call, piece));
}
