#include <stddef.h>
#include <string.h>

#include "math/common/case/values.h"
#include "math/gemm/gemm_case.h"
#include "math/gemm/gemv_split_kernels.h"

RDNA_CASE_MAKER(rdna__gemv_split_case) {
  static const struct {
    int n, k;
  } edges[] = {{5, 64}, {0, 8}, {7, 0}, {1, 1}, {8, 256}, {9, 255}, {4, 257}};
  rdna__product_case product = {.type_a = RDNA_F32,
                                .type_b = case_name_dtype(kernel->name),
                                .type_c = RDNA_F32,
                                .aligned = true,
                                .columns = 1,
                                .stepped = true};
  product.gated = n % 4 == 3;
  struct gemm_args args = {.batch = 1, .flags = GEMM_B_TRANSPOSED, .m = 1, .beta = (float)(n % 3 == 1)};
  bool edge = n < (int)(sizeof edges / sizeof edges[0]);
  args.n = edge ? edges[n].n : (int32_t)rdna__random_range(random, 1, 100);
  args.k = edge ? edges[n].k : (int32_t)rdna__random_range(random, 0, 5000);
  RDNA_TRY(rdna__product_case_make(&product, args, random, out_case));
  int32_t shares = 1 << rdna__random_below(random, 4);
  memcpy((char *)out_case->args + offsetof(struct gemv_split_args, shares), &shares, sizeof shares);
  int32_t rows = GEMV_SPLIT_GROUP_ROWS(shares);
  out_case->grid = (rdna_grid){(uint32_t)(((product.gated ? 2 * args.n : args.n) + rows - 1) / rows), 1, 1};
  return RDNA_OK;
}
