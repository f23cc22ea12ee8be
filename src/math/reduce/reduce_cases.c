#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/fill.h"
#include "math/reduce/reduce_dims_kernels.h"

static enum reduce_kind name_kind(const char *name) {
  static const char *const kinds[] = {"sum", "prod", "max", "var", "lse", "arg"};
  int kind = 0;
  while (!strstr(name, kinds[kind])) kind++;
  return (enum reduce_kind)kind;
}

static bool is_integer(rdna_dtype dtype) { return dtype == RDNA_I32 || dtype == RDNA_I64 || dtype == RDNA_U8; }

/* For some |n| nothing but the least or the greatest value that there is, for others many or a few that are none. */
static void fill(rdna__random *random, enum reduce_kind kind, rdna_dtype dtype, int n, void *x, int64_t count) {
  bool limits = n % 8 == 2 && (kind == REDUCE_MAX || kind == REDUCE_ARG), least = rdna__random_below(random, 2);
  for (int64_t i = 0; i < count; i++) {
    int64_t whole = rdna__random_range(random, dtype == RDNA_U8 ? 0 : -9, 9);
    if (limits && dtype == RDNA_I64) whole = least ? INT64_MIN : INT64_MAX;
    /* products of such stay in range and are exact; other values have few ties or many */
    double v = kind == REDUCE_PROD  ? (rdna__random_below(random, 16) ? 1.0 : -1.0)
               : kind == REDUCE_ARG ? (double)whole
                                    : 2 * rdna__random_normal(random) + 1;
    bool special = n % 4 == 3 && (kind == REDUCE_MAX || kind == REDUCE_ARG) &&
                   rdna__random_below(random, n % 8 == 3 ? 8 : 400) == 0;
    if (special) v = whole % 3 == 0 ? NAN : whole % 3 == 1 ? INFINITY : -INFINITY;
    if (limits) v = (double)(least ? -INFINITY : INFINITY);
    if (dtype == RDNA_F64) ((double *)x)[i] = v;
    if (dtype == RDNA_I32) ((int32_t *)x)[i] = (int32_t)whole;
    if (dtype == RDNA_I64) ((int64_t *)x)[i] = whole;
    if (dtype == RDNA_U8) ((uint8_t *)x)[i] = (uint8_t)whole;
    if (dtype == RDNA_F32 || dtype == RDNA_F16 || dtype == RDNA_BF16) case_set(dtype, x, i, (float)v);
  }
}

static int64_t up(int64_t n, int64_t by) { return (n + by - 1) / by * by; }

/* What the kernel's order of additions may lose: with values of mean 1 and deviation 2, sums grow like their number and
 * eight times its root, and a chain of them, which has at most all, errs like a random walk. */
static double tolerance(const struct reduce_dims_args *a, enum reduce_kind kind, rdna_dtype dtype) {
  double unit = dtype == RDNA_F64 ? 0x1p-53 : 0x1p-24, count = (double)a->count, root = sqrt(count);
  double total = count + 8 * root + 1;
  if (is_integer(dtype) || kind == REDUCE_PROD || kind == REDUCE_MAX || kind == REDUCE_ARG) return 0;
  if (kind == REDUCE_SUM) {
    double value = a->map == REDUCE_POWER ? 16 : a->map == REDUCE_SQUARE ? 5 : a->map == REDUCE_ABS ? 2 : 1;
    if (a->map == REDUCE_NONZERO) return 0;
    return (3 * root + 32) * unit * value * total * (a->end == REDUCE_SCALED ? fabs(a->parameter) : 1);
  }
  if (kind == REDUCE_LSE) return (3 * root + 96) * unit * (a->slices > 1 ? total : 1);
  return (3 * root + 32) * unit * (a->slices > 1 ? 4 * total : 8);
}

/* (outer, count, inner) with gaps, the middle reduced; or outer and inner reduced as well as kept, in four dimensions.
 */
static void make_shape(rdna__random *random, int n, int64_t width, struct reduce_dims_args *a) {
  static const int64_t edges[][3] = {{2, 5, 1},     {3, 0, 1},   {1, 1, 1},     {17, 64, 1}, {2, 3000, 1},
                                     {1, 20001, 1}, {2, 40, 33}, {1, 700, 264}, {3, 9, 64},  {0, 4, 5}};
  int64_t outer = rdna__random_range(random, 1, 9), count = rdna__random_range(random, 1, 3000);
  int64_t inner = rdna__random_below(random, 2) ? 1 : rdna__random_range(random, 1, 100);
  bool known = n < (int)(sizeof edges / sizeof *edges);
  if (known) outer = edges[n][0], count = edges[n][1], inner = edges[n][2];
  a->vector = width > 1 && rdna__random_below(random, 2);
  if (inner > 1 && a->vector) inner = (inner + width - 1) / width * width;
  if (inner == 1 && a->vector) count = (count + width - 1) / width * width;
  int64_t gap = known ? 0 : rdna__random_range(random, 0, 3) * (a->vector ? width : 1);
  a->kept_rank = 2, a->reduced_rank = 1;
  a->kept_size[0] = inner, a->kept_stride[0] = 1;
  a->reduced_size[0] = count, a->reduced_stride[0] = inner == 1 ? 1 : inner + gap;
  a->kept_size[1] = outer, a->kept_stride[1] = count * a->reduced_stride[0] + gap;
  a->outs = outer * inner, a->count = count;
  if (n % 3 == 2 && count > 1 && inner == 1) { /* a second reduced dimension outside of the outer one */
    a->reduced_rank = 2;
    a->reduced_size[1] = 3, a->reduced_stride[1] = outer * a->kept_stride[1];
    a->count *= 3;
  }
  a->layout = inner > 1 && rdna__random_below(random, 4) ? REDUCE_COLUMNS : (int32_t)rdna__random_below(random, 2);
  if (a->layout != REDUCE_COLUMNS && inner > 1) a->vector = 0;
}

/* Dense rows that begin anywhere, every other case of whole 16 bytes: of a group, or of lanes of a wave. */
static void make_lines(rdna__random *random, int n, int64_t width, bool of_wave, struct reduce_dims_args *a) {
  static const int64_t counts[] = {8, 1, 4096, 8192, 5128, 24576};
  if (n % 2 && n > 6) width = 1;
  int64_t count = n < 6    ? counts[n]
                  : n == 7 ? rdna__random_range(random, 1, 40)
                           : rdna__random_range(random, 1, 1000) * width + (width == 1 && n % 3 ? 5000 : 0);
  *a = (struct reduce_dims_args){.kept_rank = 2, .reduced_rank = 1, .layout = of_wave ? REDUCE_WAVE : REDUCE_GROUP};
  a->team = 1 << rdna__random_range(random, n == 8 ? 5 : 0, 5);
  a->kept_size[0] = rdna__random_range(random, 1, of_wave ? 40 : 5);
  a->kept_size[1] = rdna__random_range(random, 1, 3);
  if (of_wave && count > 1000) a->kept_size[0] = 3;
  a->kept_stride[0] = count + rdna__random_range(random, 0, 2) * width;
  a->kept_stride[1] = a->kept_size[0] * a->kept_stride[0];
  a->reduced_size[0] = count, a->reduced_stride[0] = 1;
  a->outs = a->kept_size[0] * a->kept_size[1], a->count = count;
}

/* Columns of plain sums: side by side at any alignment, or alone of whole vectors. */
static void make_sums(rdna__random *random, int n, int64_t width, bool alone, struct reduce_dims_args *a) {
  static const int64_t edges[][2] = {{16, 1}, {17, 2}, {257, 9}, {248, 8}, {1000, 300}, {31, 17}, {519, 0}};
  bool known = n < (int)(sizeof edges / sizeof *edges);
  int64_t inner = known ? edges[n][0] : rdna__random_range(random, 16, 700);
  int64_t count = known ? edges[n][1] : rdna__random_range(random, 1, 600);
  int64_t by = alone || n % 3 == 0 ? width : 1;
  if (alone) inner = up(inner, width) * (n == 8 ? 5 : 1), count = n % 2 ? count : count % 40;
  *a = (struct reduce_dims_args){.kept_rank = 2, .reduced_rank = 1, .vector = alone};
  a->layout = alone ? REDUCE_ALONE : REDUCE_COLUMNS;
  a->kept_size[0] = inner, a->kept_stride[0] = 1;
  a->kept_size[1] = rdna__random_range(random, 1, 3);
  a->reduced_size[0] = count, a->reduced_stride[0] = inner + rdna__random_range(random, 0, 3) * by;
  a->kept_stride[1] = a->reduced_stride[0] * (count > 0 ? count : 1);
  a->outs = inner * a->kept_size[1], a->count = count;
}

static int64_t extent(const struct reduce_dims_args *a) {
  int64_t last = 0;
  if (a->outs == 0 || a->count == 0) return 0;
  for (int d = 0; d < a->kept_rank; d++) last += (a->kept_size[d] - 1) * a->kept_stride[d];
  for (int d = 0; d < a->reduced_rank; d++) last += (a->reduced_size[d] - 1) * a->reduced_stride[d];
  return last + 1;
}

static void choose_arithmetic(rdna__random *random, enum reduce_kind kind, rdna_dtype dtype,
                              struct reduce_dims_args *a) {
  static const int32_t sums[][2] = {{REDUCE_PLAIN, REDUCE_SCALED},
                                    {REDUCE_SQUARE, REDUCE_AS_IS},
                                    {REDUCE_ABS, REDUCE_AS_IS},
                                    {REDUCE_NONZERO, REDUCE_AS_IS},
                                    {REDUCE_POWER, REDUCE_AS_IS}};
  static const int32_t tops[][2] = {{REDUCE_REVERSE, REDUCE_REVERSED},
                                    {REDUCE_NONZERO, REDUCE_IF},
                                    {REDUCE_ZERO, REDUCE_UNLESS},
                                    {REDUCE_ABS, REDUCE_AS_IS}};
  a->parameter = 0.75;
  if (is_integer(dtype) && kind == REDUCE_MAX) {
    uint64_t pick = rdna__random_below(random, 4);
    if (pick < 3) a->map = tops[pick][0], a->end = tops[pick][1];
  } else if (kind == REDUCE_SUM && !is_integer(dtype) && rdna__random_below(random, 2)) {
    uint64_t pick = rdna__random_below(random, dtype == RDNA_F64 || a->vector ? 4 : 5);
    a->map = sums[pick][0], a->end = sums[pick][1];
  } else if (kind == REDUCE_MAX && rdna__random_below(random, 2)) {
    uint64_t pick = rdna__random_below(random, 4);
    a->map = tops[pick][0], a->end = tops[pick][1];
  } else if (kind == REDUCE_ARG && rdna__random_below(random, 2)) {
    a->map = REDUCE_REVERSE;
  } else if (kind == REDUCE_VAR) {
    a->end = rdna__random_below(random, 2) ? REDUCE_DEVIATION : REDUCE_VARIANCE;
  }
}

RDNA_CASE_MAKER(rdna__reduce_dims_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  enum reduce_kind kind = name_kind(kernel->name);
  rdna_dtype keeper = dtype == RDNA_F64 ? RDNA_F64 : is_integer(dtype) ? RDNA_I64 : RDNA_F32;
  int64_t parts = kind == REDUCE_VAR ? 3 : kind == REDUCE_LSE ? 2 : 1;
  struct reduce_dims_args a = {0};
  make_shape(random, n, dtype == RDNA_F32 ? 4 : dtype == RDNA_F16 || dtype == RDNA_BF16 ? 8 : 1, &a);
  if (kind == REDUCE_ARG && a.layout == REDUCE_COLUMNS) a.vector = 0;
  bool line = strstr(kernel->name, "_line_"), alone = strstr(kernel->name, "_alone_");
  bool plain = alone || strstr(kernel->name, "_wave_") || strstr(kernel->name, "_long_");
  bool of_wave = strstr(kernel->name, "_wave_") || (line && n % 3 == 1), columns = strstr(kernel->name, "_columns_");
  int64_t width = dtype == RDNA_F32 ? 4 : 8;
  if (alone || columns) {
    make_sums(random, n, width, alone, &a);
  } else if (plain || line) {
    make_lines(random, n, width, of_wave, &a);
  }
  if (plain || columns) {
    if (n % 2) a.end = REDUCE_SCALED, a.parameter = 0.75;
  } else {
    do choose_arithmetic(random, kind, dtype, &a);
    while (line && (a.map == REDUCE_POWER || a.map == REDUCE_NONZERO || a.map == REDUCE_ZERO));
  }
  a.slice = !of_wave && !alone && a.count > 128 && n % 2 ? (a.count / 3 + 63) / 64 * 64 : a.count;
  a.slices = a.slice == a.count ? 1 : (a.count + a.slice - 1) / a.slice;
  if (a.slices > 1 && n % 4 == 1) { /* several pieces a slice, or none */
    a.slice = 64 * rdna__random_range(random, 1, 3);
    a.slices = rdna__random_range(random, 2, 5);
  }
  a.out_dtype = (int32_t)(kind == REDUCE_ARG                             ? RDNA_I64
                          : a.end == REDUCE_IF || a.end == REDUCE_UNLESS ? RDNA_U8
                                                                         : keeper);
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 6), 1, 1};
  snprintf(out_case->label, sizeof out_case->label,
           "%lld of %lld (%d+%d) layout %d vector %d slices %lld map %d end %d", (long long)a.outs, (long long)a.count,
           a.kept_rank, a.reduced_rank, a.layout, a.vector, (long long)a.slices, a.map, a.end);
  int64_t count = extent(&a), partial = a.slices > 1 ? a.slices * a.outs : 0;
  void *x = rdna__case_add(out_case, RDNA__IN, dtype, count, offsetof(struct reduce_dims_args, x));
  if (!x) return rdna__case_no_memory(out_case);
  fill(random, kind, dtype, n, x, count);
  rdna_dtype out_dtype = (rdna_dtype)a.out_dtype;
  if (!rdna__case_add(out_case, RDNA__OUT, out_dtype, partial ? 0 : a.outs, offsetof(struct reduce_dims_args, out)))
    return rdna__case_no_memory(out_case);
  if (kind != REDUCE_ARG && out_dtype == keeper) {
    rdna__case_tolerance(out_case, tolerance(&a, kind, dtype), a.map == REDUCE_POWER ? 0x1p-16 : 0);
  }
  if (!rdna__case_add(out_case, RDNA__OUT, keeper, partial * parts, offsetof(struct reduce_dims_args, partial)))
    return rdna__case_no_memory(out_case);
  rdna__case_tolerance(out_case, tolerance(&a, kind, dtype), a.map == REDUCE_POWER ? 0x1p-16 : 0);
  if (kind == REDUCE_ARG) {
    if (!rdna__case_add(out_case, RDNA__OUT, RDNA_I64, partial, offsetof(struct reduce_dims_args, partial_index)))
      return rdna__case_no_memory(out_case);
  }
  return RDNA_OK;
}

/* Every kind and keeper in turn, of whole numbers, whose sums are exact. */
RDNA_CASE_MAKER(rdna__reduce_join_case) {
  static const rdna_dtype keepers[] = {RDNA_F32, RDNA_F64, RDNA_I64};
  struct reduce_join_args a = {.kind = n % 6, .parameter = 1};
  rdna_dtype keeper = keepers[n / 6 % 3];
  if (a.kind == REDUCE_LSE || (a.kind == REDUCE_VAR && keeper == RDNA_I64)) keeper = RDNA_F32;
  a.keeper = (int32_t)keeper;
  a.outs = rdna__random_range(random, n == 0 ? 1 : 0, 40), a.slices = rdna__random_range(random, 1, 200);
  a.out_dtype = (int32_t)(a.kind == REDUCE_ARG ? RDNA_I32 : keeper);
  a.end = a.kind == REDUCE_VAR ? REDUCE_VARIANCE : REDUCE_AS_IS;
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, 4), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld of %lld slices kind %d keeper %s", (long long)a.outs,
           (long long)a.slices, a.kind, rdna_dtype_name(keeper));
  int64_t values = a.outs * a.slices, parts = a.kind == REDUCE_VAR ? 3 : a.kind == REDUCE_LSE ? 2 : 1;
  void *partial =
      rdna__case_add(out_case, RDNA__IN, keeper, values * parts, offsetof(struct reduce_join_args, partial));
  int64_t *index =
      rdna__case_add(out_case, RDNA__IN, RDNA_I64, values, offsetof(struct reduce_join_args, partial_index));
  if (!partial || !index) return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < values; i++) index[i] = rdna__random_range(random, 0, 1 << 20);
  for (int64_t i = 0; i < values * parts; i++) {
    int64_t v = rdna__random_range(random, i < values ? -4 : 1, 4);
    if (a.kind == REDUCE_PROD) v = v < 0 ? -1 : 1;
    if (keeper == RDNA_F32) ((float *)partial)[i] = (float)v;
    if (keeper == RDNA_F64) ((double *)partial)[i] = (double)v;
    if (keeper == RDNA_I64) ((int64_t *)partial)[i] = v;
  }
  if (!rdna__case_add(out_case, RDNA__OUT, (rdna_dtype)a.out_dtype, a.outs, offsetof(struct reduce_join_args, out)))
    return rdna__case_no_memory(out_case);
  /* at most 200 joins in a chain, of values of at most 4 times 200 */
  if (a.kind == REDUCE_LSE || a.kind == REDUCE_VAR) rdna__case_tolerance(out_case, 0, 256 * 0x1p-24);
  return RDNA_OK;
}
