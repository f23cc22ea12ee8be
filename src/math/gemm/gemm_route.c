/* The ways to multiply: which of our kernels apply to a product, what each of them costs, and how it is launched. */
#include <stdio.h>
#include <string.h>

#include "device/traits.h"
#include "kernel/manifest.h"
#include "math/common/plan/check.h"
#include "math/common/plan/scratch.h"
#include "math/gemm/gemm_product.h"
#include "math/gemm/gemv_split_kernels.h"

static const rdna__device_traits *traits_of(const rdna__gemm_problem *problem) {
  return rdna__device_traits_of(problem->device);
}

static bool is_16_byte_multiple(const void *data, int64_t ld, rdna_dtype type) {
  return ((uintptr_t)data | (uint64_t)ld * rdna_dtype_block_bytes(type)) % 16 == 0;
}

static const char *kernel_of(const rdna__gemm_route *route, const rdna__gemm_problem *problem) {
  return problem->product ? problem->product->kernels[route->variant] : NULL;
}

/* A matrix-vector kernel reads B once, but wants contiguous rows at multiples of 16 bytes. */
static bool vector_applies(const rdna__route *of, const void *which) {
  const rdna__gemm_route *route = (const rdna__gemm_route *)of;
  const rdna__gemm_problem *problem = which;
  const struct gemm_args *args = &problem->args;
  return kernel_of(route, problem) && args->m <= route->rows && args->batch == 1 &&
         (args->flags & (GEMM_A_TRANSPOSED | GEMM_B_TRANSPOSED)) == GEMM_B_TRANSPOSED &&
         is_16_byte_multiple(args->a, args->lda, problem->types[0]) &&
         (rdna_dtype_block_values(problem->types[1]) > 1 || is_16_byte_multiple(args->b, args->ldb, problem->types[1]));
}

static bool is_on_matrix_units(const rdna__gemm_problem *problem) { return rdna__gemm_is_half(problem->types[0]); }

static bool tile_applies(const rdna__route *of, const void *which) {
  const rdna__gemm_route *route = (const rdna__gemm_route *)of;
  const rdna__gemm_problem *problem = which;
  const struct gemm_args *args = &problem->args;
  if (!kernel_of(route, problem)) return false;
  if (!is_on_matrix_units(problem)) return true;
  if (traits_of(problem)->asynchronous_copies && route->group_bytes > problem->device->max_group_memory) return false;
  if (!route->aligned) return true;
  const void *a = args->a, *b = args->b;
  bool batch_aligned = args->batch == 1 || (args->stride_a % 8 == 0 && args->stride_b % 8 == 0);
  return batch_aligned && is_16_byte_multiple(a, args->lda, problem->types[0]) &&
         is_16_byte_multiple(b, args->ldb, problem->types[1]);
}

static int64_t tiles_of(const rdna__gemm_route *route, const struct gemm_args *args) {
  int64_t down = (args->m + route->rows - 1) / route->rows;
  return down * ((args->n + route->columns - 1) / route->columns);
}

/* With |k| values summed by a group. A broad tile begins and ends more slowly: it is the faster one from some k on
 * where that was measured, on an H200; elsewhere its share is just below the other's, and the tuner may find that it
 * is. */
static double share_of(const rdna__gemm_route *route, const rdna__gemm_problem *problem, int k) {
  enum { BROAD_LEAST_K = 1024 };
  static const double broad_before_that = 0.99;
  const rdna__device_traits *traits = traits_of(problem);
  if (route->variant == BROAD && (!traits->is_measured || k < BROAD_LEAST_K)) return broad_before_that;
  if (!is_on_matrix_units(problem)) return route->share;
  return traits->asynchronous_matrix_units ? route->wgmma_share : route->mma_share;
}

static int64_t units_of(const rdna__gemm_problem *problem) {
  return problem->device->compute_units > 0 ? problem->device->compute_units : 1;
}

/* How long a compute unit is busy, if a tile takes 1: with as many as the fullest of them has. Where it was measured,
 * on an H200, a unit has two tiles of f32 at a time, and one alone takes 1.4 times half as long as two. */
static double rounds(const rdna__gemm_problem *problem, int64_t count) {
  int64_t most = (count + units_of(problem) - 1) / units_of(problem);
  static const double one_alone = 0.4; /* of a tile's time more */
  bool pairs = traits_of(problem)->is_measured && !is_on_matrix_units(problem);
  return (double)most + (pairs && most % 2 ? one_alone : 0);
}

/* Larger tiles are faster for their size since they read each operand less often. */
static double tile_cost(const rdna__route *of, const void *which) {
  const rdna__gemm_route *route = (const rdna__gemm_route *)of;
  const rdna__gemm_problem *problem = which;
  double count = rounds(problem, tiles_of(route, &problem->args) * problem->args.batch);
  return count * route->rows * route->columns / share_of(route, problem, problem->args.k);
}
static double vector_cost(const rdna__route *of, const void *which) {
  return ((const rdna__gemm_route *)of)->rows * 1e-3; /* the least that fits, before any tile */
}

static rdna_status run_tile(const rdna__gemm_route *route, rdna_stream *stream, const char *op_name,
                            const rdna__gemm_problem *problem) {
  rdna_grid grid = {0, 1, (uint32_t)problem->args.batch};
  RDNA_TRY(rdna__check_groups(op_name, tiles_of(route, &problem->args), 1, &grid.x));
  return rdna__launch_named(stream, kernel_of(route, problem), grid, &problem->args);
}

/* The tiles of that many parts of k, and what writing and reading sums and another launch cost: a unit does |rate|
 * products in the time that it takes for a byte of memory. */
static double cost_in_parts(const rdna__gemm_route *route, const rdna__gemm_problem *problem, int parts) {
  const struct gemm_args *args = &problem->args;
  enum { MATRIX_RATE = 64, RATE = 8 };    /* an H200's */
  static const double launch_bytes = 4e4; /* what a unit's share of its memory brings in 4 us */
  double rate = is_on_matrix_units(problem) ? MATRIX_RATE : RATE;
  double count = rounds(problem, tiles_of(route, args) * args->batch * parts);
  double multiply = count * route->rows * route->columns / share_of(route, problem, args->k / parts) / parts;
  double bytes = 8.0 * parts * args->batch * args->m * args->n / (double)units_of(problem) + launch_bytes;
  return multiply + bytes * rate / args->k;
}

/* As many parts of k as give every compute unit two tiles, or a few that fill the units better; none with fewer than 8
 * steps. 1: there is no such number. */
static int parts_for(const rdna__gemm_route *route, const rdna__gemm_problem *problem) {
  enum { FEW = 4 };
  int64_t count = tiles_of(route, &problem->args) * problem->args.batch;
  int64_t most = problem->args.k / (8 * GEMM_PART_STEP), two = 2 * units_of(problem) / count;
  if (most > RDNA__GRID_YZ_MAX / problem->args.batch) most = RDNA__GRID_YZ_MAX / problem->args.batch;
  if (most < 2) return 1;
  if (two >= 2) return (int)(two < most ? two : most);
  int best = 2;
  for (int parts = 3; parts <= FEW && parts <= most; parts++)
    if (cost_in_parts(route, problem, parts) < cost_in_parts(route, problem, best)) best = parts;
  return best;
}

/* Quantized operands have blocks that a part might not begin with; the host cuts its work itself, and gives the same
 * bits for any number of threads. */
static bool parts_apply(const rdna__route *of, const void *which) {
  const rdna__gemm_route *route = (const rdna__gemm_route *)of;
  const rdna__gemm_problem *problem = which;
  return !traits_of(problem)->divides_work && problem->types[0] != RDNA_F64 &&
         rdna_dtype_block_values(problem->types[1]) == 1 && tile_applies(of, which) && parts_for(route, problem) > 1;
}

static double parts_cost(const rdna__route *of, const void *which) {
  const rdna__gemm_route *route = (const rdna__gemm_route *)of;
  const rdna__gemm_problem *problem = which;
  return cost_in_parts(route, problem, parts_for(route, problem));
}

/* By the type of C. */
static const char *const sums[RDNA_DTYPE_COUNT] = {
    [RDNA_F32] = "gemm_sum_f32", [RDNA_F16] = "gemm_sum_f16", [RDNA_BF16] = "gemm_sum_bf16"};

static rdna_status run_parts(const rdna__gemm_route *route, rdna_stream *stream, const char *op_name,
                             const rdna__gemm_problem *problem) {
  rdna__scratch scratch = {.stream = stream, .holder = op_name};
  rdna__gemm_problem p = *problem;
  struct gemm_args *args = &p.args;
  args->parts = parts_for(route, problem);
  int64_t steps = rdna__divide_up(args->k, GEMM_PART_STEP);
  args->part_k = (int32_t)(rdna__divide_up(steps, args->parts) * GEMM_PART_STEP);
  int64_t values = (int64_t)args->m * args->n;
  rdna_grid grid = {0, 1, (uint32_t)args->batch * (uint32_t)args->parts}, sum_grid = {0, 1, (uint32_t)args->batch};
  RDNA_TRY(rdna__check_groups(op_name, tiles_of(route, args), 1, &grid.x));
  RDNA_TRY(rdna__check_groups(op_name, values, GEMM_SUM_VALUES(args->parts), &sum_grid.x));
  void *memory;
  RDNA_TRY(rdna__scratch_take(&scratch, (size_t)(values * args->batch * args->parts) * sizeof(float), &memory));
  args->sums = memory;
  rdna_status status = rdna__launch_named(stream, kernel_of(route, &p), grid, args);
  if (status == RDNA_OK) status = rdna__launch_named(stream, sums[p.types[2]], sum_grid, args);
  return rdna__scratch_release(&scratch, status);
}

static int64_t rows_of_b(const rdna__gemm_problem *problem) {
  return problem->steps.gated ? 2 * (int64_t)problem->args.n : problem->args.n;
}

/* How many sets of 32 lanes share a row of dense weights, for a vector in f32: enough to fill the device. FULL sets a
 * compute unit have enough bytes in flight to keep its memory busy. */
static int shares_of(const rdna__gemm_problem *problem) {
  enum { FULL = 16, MOST = GEMV_SPLIT_THREADS / 32 };
  int64_t rows = rdna__divide_up(rows_of_b(problem), GEMV_SPLIT_ROWS);
  int shares = 1;
  while (shares < MOST && rows * shares < FULL * units_of(problem)) shares *= 2;
  return shares;
}
static rdna_status run_split(rdna_stream *stream, const char *op_name, const rdna__gemm_problem *problem) {
  static const char *const kernels[] = {"gemv_split_f32", "gemv_split_f16", "gemv_split_bf16"};
  struct gemv_split_args args = {{problem->args, problem->steps}, shares_of(problem)};
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups(op_name, rows_of_b(problem), GEMV_SPLIT_GROUP_ROWS(args.shares), &grid.x));
  return rdna__launch_named(stream, kernels[problem->types[1]], grid, &args);
}
static rdna_status run_vector(const rdna__gemm_route *route, rdna_stream *stream, const char *op_name,
                              const rdna__gemm_problem *problem) {
  rdna_grid grid = {0, 1, 1};
  const rdna__gemm_product *p = problem->product;
  bool is_f32 = problem->types[0] == RDNA_F32, divides = traits_of(problem)->divides_work;
  bool is_plain = !problem->steps.norm && !problem->steps.gated;
  if (route->variant == M1 && is_f32 && !p->vector_rows && !(divides && is_plain))
    return run_split(stream, op_name, problem);
  int64_t rows = p->vector_rows ? p->vector_rows : GEMV_ROWS_PER_GROUP(route->rows);
  RDNA_TRY(rdna__check_groups(op_name, rows_of_b(problem), rows, &grid.x));
  if (p->vector_groups) grid.x = p->vector_groups(stream, grid.x);
  struct gemv_args args = {problem->args, problem->steps}; /* begins with what the others take */
  return rdna__launch_named(stream, kernel_of(route, problem), grid, &args);
}

/* What a tile is, whole or in parts of k. */
#define LARGE_TILE                                                                                                   \
  .variant = LARGE, .rows = 128, .columns = 128, .aligned = true, .share = 1, .mma_share = 0.9, .wgmma_share = 0.95, \
  .group_bytes = GEMM_PIPE_BYTES(128, 128, 3)
#define BROAD_TILE .variant = BROAD, .rows = 128, .columns = 128, .share = 1.06
#define NARROW_TILE                                                                                      \
  .variant = NARROW, .rows = 128, .columns = 64, .aligned = true, .mma_share = 0.7, .wgmma_share = 0.65, \
  .group_bytes = GEMM_PIPE_BYTES(128, 64, 4)
#define SMALL_TILE                                                                                 \
  .variant = SMALL, .rows = 64, .columns = 64, .share = 0.6, .mma_share = 0.5, .wgmma_share = 0.5, \
  .group_bytes = GEMM_PIPE_BYTES(64, 64, 4)

/* By the rows of a tile, or the most rows of A; the shares are those of the rate that a device reaches on a large
 * product, against a tile of 128 x 128 in f32 and otherwise the best one. */
#define BLOCKS "f32_{blocks}_f32"
#define SUM "gemm_sum_{float}"
const rdna__gemm_route rdna__gemm_rows[] = {
    {.route =
         {.name = "rows 1",
          .kernels = {"gemv_{dense}_m1", "gemv_" BLOCKS "_m1", "gemv_split_{float}"},
          .when = "a vector, with B transposed and aligned; of f32 and dense weights by several sets of lanes to a row",
          .applies = vector_applies,
          .cost = vector_cost},
     .run = run_vector,
     .variant = M1,
     .rows = 1},
    {.route = {.name = "rows 4",
               .kernels = {"gemv_{dense}_m4", "gemv_" BLOCKS "_m4"},
               .when = "up to 4 rows of A, with B transposed and aligned",
               .applies = vector_applies,
               .cost = vector_cost},
     .run = run_vector,
     .variant = M4,
     .rows = 4},
    {.route = {.name = "rows 8",
               .kernels = {"gemv_{dense}_m8", "gemv_" BLOCKS "_m8"},
               .when = "up to 8 rows of A, with B transposed and aligned",
               .applies = vector_applies,
               .cost = vector_cost},
     .run = run_vector,
     .variant = M8,
     .rows = 8},
    {.route = {.name = "tile 128 x 256",
               .kernels = {"gemm_{dense16}_wide"},
               .when = "16-bit types with aligned rows, by matrix units",
               .applies = tile_applies,
               .cost = tile_cost,
               .measured_on = "H200"},
     .run = run_tile,
     .variant = WIDE,
     .rows = 128,
     .columns = 256,
     .aligned = true,
     .mma_share = 1,
     .wgmma_share = 1,
     .group_bytes = GEMM_PIPE_BYTES(128, 256, GEMM_WIDE_STAGES)},
    {.route = {.name = "tile 128 x 128",
               .kernels = {"gemm_{dense}_large", "gemm_" BLOCKS "_large"},
               .when = "any types; of 16 bits with aligned rows",
               .applies = tile_applies,
               .cost = tile_cost,
               .measured_on = "H200"},
     .run = run_tile,
     LARGE_TILE},
    {.route = {.name = "tile 128 x 128 broad",
               .kernels = {"gemm_f32_f32_f32_broad"},
               .when = "f32, each lane with more of the tile: for a long k",
               .applies = tile_applies,
               .cost = tile_cost,
               .measured_on = "H200"},
     .run = run_tile,
     BROAD_TILE},
    {.route = {.name = "tile 128 x 64",
               .kernels = {"gemm_{dense16}_narrow"},
               .when = "16-bit types with aligned rows, by matrix units",
               .applies = tile_applies,
               .cost = tile_cost,
               .measured_on = "H200"},
     .run = run_tile,
     NARROW_TILE},
    {.route = {.name = "tile 64 x 64",
               .kernels = {"gemm_{dense}_small", "gemm_" BLOCKS "_small", "gemm_f64"},
               .when = "any types, sizes and alignments",
               .applies = tile_applies,
               .cost = tile_cost,
               .measured_on = "H200"},
     .run = run_tile,
     SMALL_TILE},
    {.route = {.name = "tile 128 x 128 in parts",
               .kernels = {"gemm_{dense}_large", SUM},
               .when = "dense types, of 16 bits with aligned rows, in parts of k that fill the device",
               .applies = parts_apply,
               .cost = parts_cost,
               .measured_on = "H200"},
     .run = run_parts,
     LARGE_TILE},
    {.route = {.name = "tile 128 x 128 broad in parts",
               .kernels = {"gemm_f32_f32_f32_broad", SUM},
               .when = "f32, the same for a long k",
               .applies = parts_apply,
               .cost = parts_cost,
               .measured_on = "H200"},
     .run = run_parts,
     BROAD_TILE},
    {.route = {.name = "tile 128 x 64 in parts",
               .kernels = {"gemm_{dense16}_narrow", SUM},
               .when = "16-bit types with aligned rows, in parts of k",
               .applies = parts_apply,
               .cost = parts_cost,
               .measured_on = "H200"},
     .run = run_parts,
     NARROW_TILE},
    {.route = {.name = "tile 64 x 64 in parts",
               .kernels = {"gemm_{dense}_small", SUM},
               .when = "dense types, in parts of k",
               .applies = parts_apply,
               .cost = parts_cost,
               .measured_on = "H200"},
     .run = run_parts,
     SMALL_TILE},
};
#undef BLOCKS
#undef SUM
const int rdna__gemm_row_count = sizeof rdna__gemm_rows / sizeof rdna__gemm_rows[0];
RDNA_ROUTES(rdna__gemm_routes, "gemm, linear", rdna__gemm_rows)

const rdna__gemm_route *rdna__gemm_choose(const rdna__gemm_problem *problem) {
  return (const rdna__gemm_route *)rdna__route_choose(&rdna__gemm_routes, problem);
}

/* The first route is that of one row. */
bool rdna__gemm_is_stepped(const rdna__gemm_problem *problem) {
  const rdna__gemm_route *one = &rdna__gemm_rows[0];
  const struct gemv_steps *steps = &problem->steps;
  return problem->types[0] == RDNA_F32 && problem->types[2] == RDNA_F32 && problem->args.k > 0 &&
         one->route.applies(&one->route, problem) &&
         (!steps->norm || ((uintptr_t)steps->norm % 16 == 0 && problem->args.k <= GEMV_NORM_MOST_K)) &&
         rows_of_b(problem) <= RDNA__GEMM_SIZE_MAX;
}
rdna_status rdna__gemm_run_stepped(rdna_stream *stream, const char *op_name, const rdna__gemm_problem *problem) {
  rdna__choice_note(op_name, rdna__gemm_rows[0].route.name, "rule");
  return rdna__gemm_rows[0].run(&rdna__gemm_rows[0], stream, op_name, problem);
}

static void add_family(const char *kernel, char text[RDNA__TUNER_TEXT]) {
  int index = kernel ? rdna__manifest_find(kernel) : -1;
  if (index < 0) return;
  const char *family = rdna__manifest[index].family;
  size_t length = strlen(family), used = strlen(text);
  for (const char *at = strstr(text, family); at; at = strstr(at + 1, family))
    if ((at == text || at[-1] == ' ') && (at[length] == ' ' || !at[length])) return;
  snprintf(text + used, RDNA__TUNER_TEXT - used, "%s%s", used ? " " : "", family);
}

void rdna__gemm_families(const rdna__gemm_problem *problem, char text[RDNA__TUNER_TEXT]) {
  const rdna__gemm_product *p = problem->own ? NULL : problem->product;
  snprintf(text, RDNA__TUNER_TEXT, "%s", problem->own ? problem->own_families : "");
  for (int variant = 0; p && variant < VARIANTS; variant++) add_family(p->kernels[variant], text);
  if (p) add_family(sums[problem->types[2]], text);
}
