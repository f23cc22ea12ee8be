/* Activations of 16 bits times weights of another type, for which there is no kernel that reads both. Weights in blocks
 * are unpacked to the activations' type, some rows at a time, and multiplied on matrix units:
 *
 *     weight (n, k) in blocks        memory of a slice              out (m, n)
 *     +----------------+             +----------------+             +-----+-----+--
 *     | slice 0        | dequantize  | (rows, k)      |  x times    |     |     |
 *     +----------------+ ----------> | of 16 bits     | ----------> |  0  |  1  | ...
 *     | slice 1        |             +----------------+             |     |     |
 *     +----------------+              again for each                +-----+-----+--
 *
 * For few rows of x that would write and read the weights for too little work: then blocks are unpacked in the
 * registers of the product, or where x or the device do not allow it x becomes f32, and the kernels that stream blocks
 * from memory once multiply it. */
#include "device/traits.h"
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/scratch.h"
#include "math/gemm/gemm.h"
#include "math/linear/linear.h"
#include "math/quant/quant.h"
#include "math/quant/quant_mma_kernels.h"
#include "rdna/op/movement.h"
#include "rdna/op/quant.h"

/* What is unpacked at a time: small enough to stay in a card's last cache, large enough for products that fill it. With
 * k 4096 and 512 rows of x, a unit's bytes are two tiles of 128 x 128. Other sizes were not tried. */
enum {
  UNIT_BYTES = 512 << 10,
  LEAST_BYTES = 8 << 20,
  MOST_BYTES = 64 << 20,
  SLICE_STEP = 256 /* rows of a slice are a multiple of the widest tile's */
};

static bool has_blocks_for_many(const rdna__route *route, const void *problem) {
  const rdna__linear *of = problem;
  return of->m > GEMV_MAX_M && of->k > 0 && rdna_dtype_block_values(of->weight->dtype) > 1;
}

/* The host's twins of these kernels are there to compare with; slices are faster on it. */
static bool has_blocks_for_few(const rdna__route *route, const void *problem) {
  const rdna__linear *of = problem;
  rdna_device *device = rdna_stream_device(of->stream);
  const struct gemm_args *args = &of->args;
  return of->x->dtype == RDNA_F16 && rdna_dtype_block_values(of->weight->dtype) > 1 && of->k > 0 &&
         of->m <= QUANT_MMA_MOST_ROWS && !rdna__device_traits_of(rdna_device_get_info(device))->divides_work &&
         args->lda < 1 << 23 && ((uintptr_t)args->a | (uint64_t)args->lda * 2) % 16 == 0;
}

enum { FEW, SLICES, AS_F32 };
static const rdna__route routes[] = {
    [FEW] = {.name = "few rows on matrix units",
             .kernels = {"gemm_f16_{blocks}_{f32|f16}_{rows16|rows32|rows64}"},
             .when = "a GPU, up to 64 rows of f16 at multiples of 16 bytes, weights in blocks: unpacked in registers",
             .applies = has_blocks_for_few},
    [SLICES] = {.name = "slices",
                .kernels = {"dequantize_{blocks}_{f16|bf16}", "gemm_{dense16}_{wide|large|narrow|small}"},
                .when = "more than 8 rows of 16 bits, weights in blocks: unpacked in slices",
                .applies = has_blocks_for_many},
    [AS_F32] = {.name = "as f32",
                .kernels = {"gemv_f32_{blocks}_f32_{m1|m4|m8}", "gemv_f32_{f32|bf16|f16}_f32_{m1|m4|m8}",
                            "gemm_f32_{f32|bf16|f16}_f32_{large|small}"},
                .when = "up to 8 rows of 16 bits, weights in blocks; x of 16 bits, weights of another dense type"},
};
RDNA_ROUTES(rdna__linear_halves_routes, "linear of f16 or bf16 and weights of another type", routes)

/* Slices are of the same size, but for the last. */
static int64_t rows_of_slice(const rdna__linear *of) {
  int64_t units = rdna_device_get_info(rdna_stream_device(of->stream))->compute_units, bytes = units * UNIT_BYTES;
  if (bytes < LEAST_BYTES) bytes = LEAST_BYTES;
  if (bytes > MOST_BYTES) bytes = MOST_BYTES;
  int64_t most = bytes / (2 * of->k);
  if (most < 1) most = 1;
  int64_t rows = rdna__divide_up(of->n, rdna__divide_up(of->n, most));
  int64_t whole = rdna__divide_up(rows, SLICE_STEP) * SLICE_STEP;
  rows = whole <= most ? whole : rows;
  return rows < of->n ? rows : of->n;
}

static void *advance(const void *data, rdna_dtype type, int64_t values) {
  return data ? (char *)data + rdna_dtype_bytes(type, values) : NULL;
}

static rdna_status run_slices(const rdna__linear *of) {
  const rdna_dtype type = of->x->dtype, types[3] = {type, type, of->out->dtype};
  const rdna_tensor *weight = of->weight;
  rdna__scratch scratch = {.stream = of->stream, .holder = of->op_name};
  rdna_tensor dense, blocks = *weight;
  struct gemm_args args = of->args;
  const int64_t rows = rows_of_slice(of);
  rdna_status status = rdna__scratch_tensor(&scratch, type, 2, (int64_t[]){rows, of->k}, &dense);
  args.b = dense.data;
  args.ldb = of->k;
  for (int64_t first = 0; first < of->n && status == RDNA_OK; first += rows) {
    blocks.shape[0] = dense.shape[0] = of->n - first < rows ? of->n - first : rows;
    blocks.data = advance(weight->data, weight->dtype, first * of->k);
    args.bias = advance(of->args.bias, types[2], first);
    args.c = advance(of->args.c, types[2], first);
    status = rdna_op_dequantize(of->stream, &blocks, &dense);
    if (status == RDNA_OK)
      status = rdna__gemm_launch(of->stream, of->op_name, types, args, of->m, blocks.shape[0], of->k, 1);
  }
  return rdna__scratch_release(&scratch, status);
}

static rdna_status run_few(const rdna__linear *of) {
  struct gemm_args args = of->args;
  const int rows = of->m <= 16 ? 16 : of->m <= 32 ? 32 : QUANT_MMA_MOST_ROWS;
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups(of->op_name, of->n, QUANT_MMA_COLUMNS(rows), &grid.x));
  args.m = (int32_t)of->m, args.n = (int32_t)of->n, args.k = (int32_t)of->k, args.batch = 1;
  return RDNA__ROUTE_LAUNCH(of->stream, &routes[FEW], 0, grid, &args, rdna_dtype_name(of->weight->dtype),
                            rdna_dtype_name(of->out->dtype),
                            rows == 16   ? "rows16"
                            : rows == 32 ? "rows32"
                                         : "rows64");
}

/* A contiguous (rows, columns) or (columns) of f32 with the values of |t|. */
static rdna_status widen(rdna__scratch *scratch, const rdna_tensor *t, rdna_tensor *out) {
  RDNA_TRY(rdna__scratch_tensor(scratch, RDNA_F32, t->rank, t->shape, out));
  return rdna_op_copy(scratch->stream, t, out);
}

static rdna_status multiply_f32(const rdna__linear *of, rdna__scratch *scratch) {
  const rdna_dtype types[3] = {RDNA_F32, of->weight->dtype, RDNA_F32};
  const bool narrow = of->out->dtype != RDNA_F32;
  rdna_tensor x, bias, out;
  struct gemm_args args = of->args;
  RDNA_TRY(widen(scratch, of->x, &x));
  args.a = x.data;
  args.lda = of->k;
  if (narrow) {
    if (of->bias) {
      RDNA_TRY(widen(scratch, of->bias, &bias));
      args.bias = bias.data;
    }
    RDNA_TRY(rdna__scratch_tensor(scratch, RDNA_F32, of->out->rank, of->out->shape, &out));
    if (args.beta != 0) RDNA_TRY(rdna_op_copy(of->stream, of->out, &out));
    args.c = out.data;
    args.ldc = of->n;
  }
  if (rdna_dtype_block_values(types[1]) > 1) {
    RDNA_TRY(rdna__gemm_launch_product(of->stream, of->op_name, rdna__quant_product(types), types, args, of->m, of->n,
                                       of->k, 1));
  } else {
    RDNA_TRY(rdna__gemm_launch(of->stream, of->op_name, types, args, of->m, of->n, of->k, 1));
  }
  return narrow ? rdna_op_copy(of->stream, &out, of->out) : RDNA_OK;
}

rdna_status rdna__linear_halves(const rdna__linear *of) {
  if (of->out->dtype != of->x->dtype && of->out->dtype != RDNA_F32) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: there is no kernel for %s times %s into %s; out may be %s or f32",
                      of->op_name, rdna_dtype_name(of->x->dtype), rdna_dtype_name(of->weight->dtype),
                      rdna_dtype_name(of->out->dtype), rdna_dtype_name(of->x->dtype));
  }
  RDNA_TRY(rdna__check_stream(of->op_name, of->stream));
  if (of->m > RDNA__GEMM_SIZE_MAX || of->k > RDNA__GEMM_SIZE_MAX) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: m %lld, k %lld; each may be at most %d: split it", of->op_name,
                      (long long)of->m, (long long)of->k, RDNA__GEMM_SIZE_MAX);
  }
  if (of->m == 0) return RDNA_OK;
  const rdna__route *route = rdna__route_choose(&rdna__linear_halves_routes, of);
  if (route == &routes[FEW]) return run_few(of);
  if (route == &routes[SLICES]) return run_slices(of);
  rdna__scratch scratch = {.stream = of->stream, .holder = of->op_name};
  return rdna__scratch_release(&scratch, multiply_f32(of, &scratch));
}
