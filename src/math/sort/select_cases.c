#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/sort/select_kernels.h"
#include "math/sort/sort_cases.h"

/* What is taken lies in any order, so that cases take at most one value; nothing is copied. The digits so far are those
 * of a value of each row. */
RDNA_CASE_MAKER(rdna__select_case) {
  struct select_args a = {.order = {0}};
  rdna_dtype dtype = sort_case_dtype(kernel->name, n, &a.order);
  a.rows = rdna__random_range(random, 1, 3);
  a.n = (uint32_t)rdna__random_range(random, 1, 3 * SELECT_TILE);
  if (n == 0) a.n = 7;
  a.k = (uint32_t)rdna__random_range(random, 1, a.n);
  a.key_digits = (uint32_t)rdna_dtype_block_bytes(dtype), a.digits = a.key_digits + 2, a.only_kth = 1;
  a.digit = strstr(kernel->name, "begin") ? 0 : 1 + (uint32_t)n % a.digits;
  a.parts = (uint32_t)rdna__random_range(random, 1, 4);
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 6), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld x %u, %u of them, digit %u of %u, %s", (long long)a.rows, a.n,
           a.k, a.digit, a.digits, rdna_dtype_name(dtype));
  bool last = a.digit == a.digits;
  void *x = rdna__case_add(out_case, RDNA__IN, dtype, a.rows * a.n, offsetof(struct select_args, x));
  uint32_t *counts = rdna__case_add(out_case, RDNA__INOUT, RDNA_I32, a.digits * a.rows * SELECT_DIGITS,
                                    offsetof(struct select_args, counts));
  struct select_state *states =
      rdna__case_add(out_case, RDNA__INOUT, RDNA_U8, (int64_t)sizeof(struct select_state) * a.digits * a.rows,
                     offsetof(struct select_args, states));
  bool there =
      x && counts && states &&
      rdna__case_add(out_case, RDNA__INOUT, RDNA_I32, 2 * a.rows, offsetof(struct select_args, taken)) &&
      (!last || (rdna__case_add(out_case, RDNA__INOUT, dtype, a.rows, offsetof(struct select_args, values)) &&
                 rdna__case_add(out_case, RDNA__INOUT, RDNA_I32, a.rows, offsetof(struct select_args, places))));
  if (!there) return rdna__case_no_memory(out_case);
  sort_case_fill(random, dtype, x, a.rows * a.n);
  for (int64_t row = 0; row < a.rows && a.digit > 0; row++) {
    uint32_t place = (uint32_t)rdna__random_below(random, a.n), prior = a.digit - 1;
    uint64_t key = sort_key_64(&a.order, sort_case_bits(dtype, x, row * a.n + place));
    struct select_state s = {.need = a.k};
    if (prior > 0) s.key = prior < a.key_digits ? key >> 8 * (a.key_digits - prior) : key, s.need = 1 + prior % 3;
    if (prior > a.key_digits) s.place = place >> 8 * (a.digits - prior);
    states[prior * a.rows + row] = s;
    struct select_args before = a;
    before.digit = prior;
    uint32_t digit = select_digit(&before, key, place), *of_row = counts + (prior * a.rows + row) * SELECT_DIGITS;
    of_row[digit] = s.need;
  }
  return RDNA_OK;
}
