#include <stddef.h>
#include <stdio.h>

#include "kernel/float8.h"
#include "kernel/manifest.h"
#include "math/cast/cast_kernels.h"
#include "math/common/case/values.h"

/* Returns an f32 that is hard to round to the narrower type |to|: halfway between two of its values, or one f32 step to
 * either side of that. So there are ties to even, roundings up and down, to infinity and to subnormals. */
static float near_middle(rdna__random *random, rdna_dtype to) {
  /* half a step of |to|, as a bit of an f32's mantissa; for 8-bit types one of 2^20, 2^19, 2^18 */
  uint32_t low = to == RDNA_F16 ? 0x1000 : to == RDNA_BF16 ? 0x8000 : 0x100000 >> rdna__random_below(random, 3);
  uint32_t bits = (uint32_t)rdna__random_bits(random) & ~(2 * low - 1);
  float v = scalar_from_bits(bits + low + (uint32_t)rdna__random_below(random, 3) - 1);
  if (to != RDNA_BF16) { /* about the exponents that |to| has, subnormals included */
    bits = scalar_bits(v) & 0x807fffffu;
    v = scalar_from_bits(bits | (uint32_t)rdna__random_range(random, 100, 144) << 23);
  }
  return isnan(v) ? NAN : v;
}

/* Finds both types in a name such as "cast_f32_f8_e5m2". */
static void name_dtypes(const char *name, rdna_dtype *out_from, rdna_dtype *out_to) {
  for (int from = 0; from < RDNA_DTYPE_COUNT; from++) {
    for (int to = 0; to < RDNA_DTYPE_COUNT; to++) {
      char text[64];
      snprintf(text, sizeof text, "cast_%s_%s", rdna_dtype_name((rdna_dtype)from), rdna_dtype_name((rdna_dtype)to));
      if (!strcmp(text, name)) *out_from = (rdna_dtype)from, *out_to = (rdna_dtype)to;
    }
  }
}

RDNA_CASE_MAKER(rdna__cast_case) {
  static const int64_t edges[] = {5, 0, 1, 8, 4095, 4096, 4097, 4104};
  rdna_dtype from = RDNA_DTYPE_COUNT, to = RDNA_DTYPE_COUNT;
  name_dtypes(kernel->name, &from, &to);
  int64_t count = n < 8 ? edges[n] : rdna__random_range(random, 1, 12000);
  struct cast_args args = {.count = count, .largest = INFINITY};
  if (float8_is(to) && rdna__random_below(random, 2)) args.largest = float8_largest(to);
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)((count + RDNA__CAST_TILE - 1) / RDNA__CAST_TILE), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "(%lld) largest %g", (long long)count, (double)args.largest);
  void *x = rdna__case_add(out_case, RDNA__IN, from, count, offsetof(struct cast_args, x));
  void *out = rdna__case_add(out_case, RDNA__OUT, to, count, offsetof(struct cast_args, out));
  if (!x || !out) return rdna__case_no_memory(out_case);
  if (from == RDNA_I32) {
    for (int64_t i = 0; i < count; i++) {
      ((int32_t *)x)[i] = (int32_t)rdna__random_bits(random) >> rdna__random_below(random, 32);
    }
    return RDNA_OK;
  }
  if (float8_is(from)) {
    for (int64_t i = 0; i < count; i++)
      ((uint8_t *)x)[i] = (uint8_t)(i < 256 ? i : (int64_t)rdna__random_below(random, 256));
    return RDNA_OK;
  }
  case_fill_hard(random, from, x, count);
  for (int64_t i = 0; from == RDNA_F32 && i < count; i += 2) case_set(from, x, i, near_middle(random, to));
  return RDNA_OK;
}
