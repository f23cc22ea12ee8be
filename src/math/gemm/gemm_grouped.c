#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/gemm/gemm.h"
#include "math/gemm/gemm_grouped_kernels.h"
#include "rdna/op/gemm.h"

static const rdna__route routes[] = {
    {.name = "grouped",
     .kernels = {"gemm_grouped_{float}"},
     .when = "all; a tile of 64 x 64 finds its group by counting, 16-bit types on matrix units"}};
RDNA_FIXED_ROUTES(rdna__gemm_grouped_routes, "gemm_grouped", routes)

static const char name[] = "gemm_grouped";

static rdna_status refuse(const rdna_tensor *a, const rdna_tensor *b, const rdna_tensor *ends, const rdna_tensor *c,
                          const char *what) {
  char text[4][RDNA__TENSOR_TEXT];
  return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: a is %s, b is %s, ends is %s and c is %s; %s", name,
                    rdna__tensor_text(a, text[0]), rdna__tensor_text(b, text[1]), rdna__tensor_text(ends, text[2]),
                    rdna__tensor_text(c, text[3]), what);
}

rdna_status rdna_op_gemm_grouped(rdna_stream *stream, const rdna_tensor *a, const rdna_tensor *b,
                                 const rdna_tensor *ends, const rdna_tensor *c) {
  const rdna_tensor *const operands[] = {a, b, c};
  static const char *const names[] = {"a", "b", "c"};
  rdna__matrix of[3];
  RDNA_TRY(rdna__check_stream(name, stream));
  RDNA_TRY(rdna__check_tensor(name, "ends", ends));
  RDNA_TRY(rdna__check_dtype(name, "ends", ends, RDNA_I32));
  RDNA_TRY(rdna__check_rank(name, "ends", ends, 1));
  RDNA_TRY(rdna__check_contiguous(name, "ends", ends));
  for (int i = 0; i < 3; i++) {
    RDNA_TRY(rdna__check_float(name, names[i], operands[i]));
    RDNA_TRY(rdna__check_same_dtype(name, names[i], operands[i], "a", a));
    RDNA_TRY(rdna__matrix_view(name, names[i], operands[i], &of[i]));
  }
  RDNA_TRY(rdna__check_apart(name, "c", c, "a", a));
  RDNA_TRY(rdna__check_apart(name, "c", c, "b", b));
  RDNA_TRY(rdna__check_apart(name, "c", c, "ends", ends));
  int cut = a->rank == 2 && b->rank == 3 && c->rank == 2   ? GEMM_GROUPED_ROWS
            : a->rank == 3 && b->rank == 2 && c->rank == 2 ? GEMM_GROUPED_COLUMNS
            : a->rank == 2 && b->rank == 2 && c->rank == 3 ? GEMM_GROUPED_SUMS
                                                           : -1;
  if (cut < 0) return refuse(a, b, ends, c, "one of a, b and c must be of rank 3, and the others of rank 2");
  int64_t m = of[2].rows, n = of[2].columns, k = of[0].columns, groups = ends->shape[0];
  if (of[0].rows != m || of[1].columns != n || of[1].rows != k)
    return refuse(a, b, ends, c, "they must be (m, k), (k, n) and (m, n)");
  const rdna_tensor *many = cut == GEMM_GROUPED_ROWS ? b : cut == GEMM_GROUPED_COLUMNS ? a : c;
  if (many->shape[0] != groups) return refuse(a, b, ends, c, "there must be a matrix for each of ends");
  if (rdna_tensor_count(c) == 0) return RDNA_OK;
  RDNA_TRY(rdna__matrix_check_written(name, "c", c, &of[2]));
  if (m > RDNA__GEMM_SIZE_MAX || n > RDNA__GEMM_SIZE_MAX || k > RDNA__GEMM_SIZE_MAX || groups > RDNA__GRID_YZ_MAX) {
    return rdna__fail(RDNA_UNSUPPORTED, "%s: m %lld, n %lld, k %lld, %lld groups; sizes may be at most %d, groups %d",
                      name, (long long)m, (long long)n, (long long)k, (long long)groups, RDNA__GEMM_SIZE_MAX,
                      RDNA__GRID_YZ_MAX);
  }
  struct gemm_grouped_args args = {
      .product = {.a = a->data,
                  .b = b->data,
                  .c = c->data,
                  .lda = of[0].ld,
                  .ldb = of[1].ld,
                  .ldc = of[2].ld,
                  .stride_a = of[0].stride,
                  .stride_b = of[1].stride,
                  .stride_c = of[2].stride,
                  .m = (int32_t)m,
                  .n = (int32_t)n,
                  .k = (int32_t)k,
                  .batch = 1,
                  .flags = (of[0].transposed ? GEMM_A_TRANSPOSED : 0) | (of[1].transposed ? GEMM_B_TRANSPOSED : 0),
                  .alpha = 1},
      .ends = ends->data,
      .groups = (int32_t)groups,
      .cut = (uint32_t)cut};
  int64_t down = (m + GEMM_SMALL_TILE - 1) / GEMM_SMALL_TILE, across = (n + GEMM_SMALL_TILE - 1) / GEMM_SMALL_TILE;
  int64_t tiles = cut == GEMM_GROUPED_ROWS      ? (m / GEMM_SMALL_TILE + groups + 1) * across
                  : cut == GEMM_GROUPED_COLUMNS ? (n / GEMM_SMALL_TILE + groups + 1) * down
                                                : down * across;
  rdna_grid grid = {0, 1, cut == GEMM_GROUPED_SUMS ? (uint32_t)groups : 1};
  if (grid.z == 0) return RDNA_OK;
  RDNA_TRY(rdna__check_groups(name, tiles, 1, &grid.x));
  return RDNA__ROUTE_LAUNCH(stream, &routes[0], 0, grid, &args, rdna_dtype_name(a->dtype));
}
