#include "rdna/op/movement.h"

#include "kernel/dtype.h"
#include "math/common/plan/route.h"
#include "math/common/plan/strided.h"
#include "math/movement/movement_kernels.h"
#include "rdna/op/cast.h"

typedef struct request {
  const char *name;
  rdna_stream *stream;
  rdna_dtype from, to;
  rdna_scalar start, step;
  uint64_t bits;
} request;

static rdna_status check_out(const char *name, rdna_stream *stream, const rdna_tensor *out) {
  RDNA_TRY(rdna__check_unquantized(name, "out", out));
  RDNA_TRY(rdna__check_distinct(name, out));
  return rdna__check_stream(name, stream);
}

/* A part of a copy; |dim| is the dimension along which its input is dense, 0 when there is none worth a transposition.
 */
struct copy_problem {
  int dim;
  bool aligned; /* all lines of both begin at multiples of 16 bytes */
  bool lines;   /* dense along the same dimension, which is long, and neighbours are no larger value in both */
};

static bool is_transpose(const rdna__route *route, const void *problem) {
  const struct copy_problem *p = problem;
  return p->dim && p->aligned;
}
static bool is_ragged(const rdna__route *route, const void *problem) {
  return ((const struct copy_problem *)problem)->dim != 0;
}

static bool is_lines(const rdna__route *route, const void *problem) {
  return ((const struct copy_problem *)problem)->lines;
}

enum { TRANSPOSE, RAGGED, LINES, STRIDED };
static const rdna__route copy_routes[] = {
    [TRANSPOSE] = {.name = "transpose",
                   .kernels = {"transpose_{bits}"},
                   .when = "dense along different dimensions of at least 8, lines aligned to 16 bytes: by tiles",
                   .applies = is_transpose},
    [RAGGED] = {.name = "ragged", .kernels = {"transpose_ragged_{bits}"}, .when = "other lines", .applies = is_ragged},
    [LINES] = {.name = "lines",
               .kernels = {"copy_lines"},
               .when =
                   "dense along one dimension, lines of 256 bytes or more that do not begin together at multiples of 8",
               .applies = is_lines},
    [STRIDED] = {.name = "strided",
                 .kernels = {"copy_strided_{bytes}"},
                 .when = "all others; neighbours that lie together in both as one value of up to 16 bytes"},
};
RDNA_ROUTES(rdna__copy_routes, "copy, cat, flip", copy_routes)

enum { CONVERT, SET, ARANGE };
static const rdna__route other_routes[] = {
    [CONVERT] = {.name = "convert", .kernels = {"convert_strided"}, .when = "a copy into another type"},
    [SET] = {.name = "set", .kernels = {"set_strided_{bytes}"}, .when = "fill"},
    [ARANGE] = {.name = "arange", .kernels = {"arange"}, .when = "arange"},
};
RDNA_FIXED_ROUTES(rdna__movement_routes, "copy into another type, fill, arange", other_routes)

static rdna_status launch(const request *r, const rdna__route *route, int bytes, int64_t count, const void *args) {
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups(r->name, count, RDNA__MOVEMENT_TILE, &grid.x));
  return RDNA__ROUTE_LAUNCH(r->stream, route, 0, grid, args, rdna__route_bits((size_t)bytes));
}

static void copy_operand(const strided_plan *plan, int k, struct strided_operand *out) {
  out->data = plan->operand[k].data;
  for (int d = 0; d < plan->rank; d++) out->stride[d] = plan->operand[k].stride[d];
}

/* Sees neighbours that all operands hold together, aligned, as one larger value, of 16 bytes at most. */
static void widen(strided_plan *plan) {
  while (plan->operand[0].bytes < 16) {
    for (int k = 0; k < plan->operands; k++) {
      if (!rdna__plan_vector(plan, k, 2)) return;
    }
    plan->size[0] /= 2;
    for (int k = 0; k < plan->operands; k++) {
      plan->operand[k].bytes *= 2;
      for (int d = 1; d < plan->rank; d++) plan->operand[k].stride[d] /= 2;
    }
  }
}

static rdna_status launch_convert(const strided_plan *part, void *context) {
  request *r = context;
  struct move_args args = {.from = (uint32_t)r->from, .to = (uint32_t)r->to};
  rdna__plan_shape(part, &args.shape);
  for (int k = 0; k < 2; k++) copy_operand(part, k, &args.operand[k]);
  return launch(r, &other_routes[CONVERT], 0, args.shape.count, &args);
}

/* The dimension along which the input is dense while the output's is another; 0 when there is none worth a
 * transposition. */
static int transposed_dimension(const strided_plan *part) {
  if (part->operand[0].bytes > 8 || part->operand[0].stride[0] != 1 || part->operand[1].stride[0] < 2) return 0;
  for (int d = 1; d < part->rank; d++) {
    if (part->operand[1].stride[d] == 1 && part->size[d] >= 8 && part->size[0] >= 8) return d;
  }
  return 0;
}

static bool lines_are_aligned(const strided_plan *part, int k, int skip, int64_t line_stride) {
  int64_t bytes = part->operand[k].bytes, all = line_stride * bytes | (int64_t)(uintptr_t)part->operand[k].data;
  for (int d = 1; d < part->rank; d++) {
    if (d != skip) all |= part->operand[k].stride[d] * bytes;
  }
  return all % 16 == 0;
}

static rdna_status launch_transpose(const strided_plan *part, int dim, const request *r) {
  struct transpose_args args = {.rows = (uint32_t)part->size[0], .columns = (uint32_t)part->size[dim]};
  uint32_t tile_columns = RDNA__TRANSPOSE_BYTES / (uint32_t)part->operand[0].bytes, rank = 2;
  args.in_stride = part->operand[1].stride[0];
  args.out_stride = part->operand[0].stride[dim];
  bool out_aligned = lines_are_aligned(part, 0, dim, args.out_stride);
  struct copy_problem problem = {.dim = dim, .aligned = out_aligned && lines_are_aligned(part, 1, dim, args.in_stride)};
  const rdna__route *route = rdna__route_choose(&rdna__copy_routes, &problem);
  uint32_t tile_rows = args.rows + (out_aligned ? 0 : 16 / (uint32_t)part->operand[0].bytes - 1);
  strided_set_size(&args.shape, 0, (tile_rows + RDNA__TRANSPOSE_ROWS - 1) / RDNA__TRANSPOSE_ROWS);
  strided_set_size(&args.shape, 1, (args.columns + tile_columns - 1) / tile_columns);
  args.shape.count = args.shape.size[0] * args.shape.size[1];
  for (int d = 1; d < part->rank; d++) {
    if (d == dim) continue;
    for (int k = 0; k < 2; k++) args.operand[k].stride[rank] = part->operand[k].stride[d];
    strided_set_size(&args.shape, rank++, (uint32_t)part->size[d]);
    args.shape.count *= (uint32_t)part->size[d];
  }
  args.shape.rank = rank;
  for (int k = 0; k < 2; k++) args.operand[k].data = part->operand[k].data;
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups(r->name, args.shape.count, 1, &grid.x));
  return RDNA__ROUTE_LAUNCH(r->stream, route, 0, grid, &args, rdna__route_bits((size_t)part->operand[0].bytes));
}

static bool is_of_lines(const strided_plan *part) {
  int64_t bytes = part->operand[0].bytes;
  return bytes < 8 && part->operand[0].stride[0] == 1 && part->operand[1].stride[0] == 1 &&
         part->size[0] * bytes >= RDNA__LINES_LEAST;
}

static rdna_status launch_lines(const strided_plan *part, const rdna__route *route, const request *r) {
  enum { CHUNK = 16 };
  int64_t bytes = part->operand[0].bytes, line = part->size[0] * bytes;
  struct lines_args args = {.bytes = (uint32_t)line};
  rdna__plan_shape(part, &args.shape);
  args.shape.count /= args.shape.size[0];
  strided_set_size(&args.shape, 0, (uint32_t)((line + 2 * CHUNK - 2) / CHUNK));
  args.shape.count *= args.shape.size[0];
  for (int k = 0; k < 2; k++) {
    args.operand[k].data = part->operand[k].data;
    for (int d = 1; d < part->rank; d++) args.operand[k].stride[d] = part->operand[k].stride[d] * bytes;
  }
  return launch(r, route, 0, args.shape.count, &args);
}

static rdna_status launch_copy(const strided_plan *part, void *context) {
  request *r = context;
  int dim = transposed_dimension(part);
  if (dim) return launch_transpose(part, dim, r);
  struct copy_problem problem = {.lines = is_of_lines(part)};
  const rdna__route *route = rdna__route_choose(&rdna__copy_routes, &problem);
  if (problem.lines) return launch_lines(part, route, r);
  struct move_args args = {.from = (uint32_t)r->from, .to = (uint32_t)r->to};
  rdna__plan_shape(part, &args.shape);
  for (int k = 0; k < 2; k++) copy_operand(part, k, &args.operand[k]);
  return launch(r, route, (int)part->operand[0].bytes, args.shape.count, &args);
}

/* |out| and |x| were checked. */
static rdna_status copy(request *r, const rdna_tensor *x, const rdna_tensor *out) {
  strided_plan plan;
  if (rdna_tensor_count(out) == 0) return RDNA_OK;
  rdna__plan_begin(&plan, out);
  rdna__plan_add(&plan, x);
  rdna__plan_merge(&plan);
  r->from = x->dtype;
  r->to = out->dtype;
  if (x->dtype != out->dtype) {
    bool dense = plan.rank == 1 && plan.operand[0].stride[0] == 1 && plan.operand[1].stride[0] == 1;
    if (!dense || !dtype_is_float(x->dtype) || !dtype_is_float(out->dtype))
      return rdna__plan_each(&plan, launch_convert, r);
    rdna_tensor flat_x = rdna_tensor_contiguous(plan.operand[1].data, x->dtype, 1, plan.size);
    rdna_tensor flat_out = rdna_tensor_contiguous(plan.operand[0].data, out->dtype, 1, plan.size);
    return rdna_op_cast(r->stream, &flat_x, &flat_out);
  }
  widen(&plan);
  return rdna__plan_each(&plan, launch_copy, r);
}

rdna_status rdna_op_copy(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out) {
  request r = {.name = "copy", .stream = stream};
  RDNA_TRY(rdna__check_unquantized("copy", "x", x));
  RDNA_TRY(check_out("copy", stream, out));
  RDNA_TRY(rdna__check_broadcast("copy", "x", x, out));
  RDNA_TRY(rdna__check_apart("copy", "out", out, "x", x));
  return copy(&r, x, out);
}

static rdna_status launch_set(const strided_plan *part, void *context) {
  request *r = context;
  struct set_args args = {.value = {r->bits, r->bits}};
  rdna__plan_shape(part, &args.shape);
  copy_operand(part, 0, &args.operand[0]);
  return launch(r, &other_routes[SET], (int)part->operand[0].bytes, args.shape.count, &args);
}

rdna_status rdna_op_fill(rdna_stream *stream, rdna_scalar value, const rdna_tensor *out) {
  request r = {.name = "fill", .stream = stream};
  strided_plan plan;
  RDNA_TRY(check_out("fill", stream, out));
  if (rdna_tensor_count(out) == 0) return RDNA_OK;
  size_t bytes = rdna_dtype_block_bytes(out->dtype);
  uint64_t one = rdna__scalar_bits(out->dtype, value);
  for (size_t i = 0; i < 8; i += bytes) {
    uint64_t part = bytes == 8 ? one : one & ((UINT64_C(1) << (8 * bytes)) - 1);
    r.bits |= part << (8 * i);
  }
  rdna__plan_begin(&plan, out);
  rdna__plan_merge(&plan);
  widen(&plan);
  return rdna__plan_each(&plan, launch_set, &r);
}

rdna_status rdna_op_arange(rdna_stream *stream, rdna_scalar start, rdna_scalar step, const rdna_tensor *out) {
  request r = {.name = "arange", .stream = stream};
  RDNA_TRY(check_out("arange", stream, out));
  RDNA_TRY(rdna__check_rank("arange", "out", out, 1));
  size_t bytes = rdna_dtype_block_bytes(out->dtype);
  for (int64_t done = 0; done < out->shape[0]; done += STRIDED_MAX_COUNT) {
    struct set_args args = {.start = start, .step = step, .dtype = (uint32_t)out->dtype};
    int64_t left = out->shape[0] - done;
    args.shape.rank = 1;
    args.shape.count = (uint32_t)(left < STRIDED_MAX_COUNT ? left : STRIDED_MAX_COUNT);
    strided_set_size(&args.shape, 0, args.shape.count);
    args.operand[0].stride[0] = out->stride[0];
    args.operand[0].data = (char *)out->data + done * out->stride[0] * (int64_t)bytes;
    args.start.real += (double)done * step.real;
    args.start.integer = (int64_t)((uint64_t)start.integer + (uint64_t)done * (uint64_t)step.integer);
    RDNA_TRY(launch(&r, &other_routes[ARANGE], 0, args.shape.count, &args));
  }
  return RDNA_OK;
}

rdna_status rdna_op_flip(rdna_stream *stream, const rdna_tensor *x, uint32_t dims, const rdna_tensor *out) {
  request r = {.name = "flip", .stream = stream};
  RDNA_TRY(rdna__check_unquantized("flip", "x", x));
  RDNA_TRY(check_out("flip", stream, out));
  RDNA_TRY(rdna__check_same_dtype("flip", "out", out, "x", x));
  RDNA_TRY(rdna__check_same_shape("flip", "out", out, "x", x));
  RDNA_TRY(rdna__check_apart("flip", "out", out, "x", x));
  if (dims >> x->rank) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "flip: dims 0x%x of a tensor of rank %d; the bits are 0 to %d", dims,
                      x->rank, x->rank - 1);
  }
  if (rdna_tensor_count(x) == 0) return RDNA_OK;
  rdna_tensor from = *x;
  for (int d = 0; d < x->rank; d++) {
    if (!(dims >> d & 1)) continue;
    int64_t last = (x->shape[d] - 1) * x->stride[d] * (int64_t)rdna_dtype_block_bytes(x->dtype);
    from.data = (char *)from.data + last;
    from.stride[d] = -x->stride[d];
  }
  return copy(&r, &from, out);
}
