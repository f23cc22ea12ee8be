#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/attention/flash_backward_kernels.h"
#include "math/attention/flash_mask_kernels.h"
#include "math/attention/flash_wide_kernels.h"
#include "math/common/case/fill.h"

static bool is_wide(const rdna__kernel_info *kernel) { return strstr(kernel->name, "_wide") != NULL; }
static int32_t most_d(const rdna__kernel_info *kernel) {
  return is_wide(kernel) ? FLASH_WIDE_D : atoi(strrchr(kernel->name, '_') + 1);
}

/* Where (batch, heads, rows, d) lies: rows of all heads together, or heads apart, with some room. */
static int64_t lay_out(rdna__random *random, bool packed, int32_t batch, int32_t heads, int32_t rows, int32_t d,
                       int64_t unit, int64_t stride[3]) {
  int64_t room = unit * (int64_t)rdna__random_below(random, 3);
  bool heads_apart = rdna__random_below(random, 2);
  stride[1] = heads_apart ? d + room : heads * d + room;
  stride[2] = heads_apart ? rows * stride[1] : d;
  int64_t all = heads_apart ? heads * stride[2] : rows * stride[1];
  stride[0] = packed ? 0 : all;
  return packed ? all : batch * all;
}

static void make_args(rdna__random *random, int n, bool any, int32_t d, int64_t unit, struct flash_args *a) {
  a->batch = n == 0 ? 1 : (int32_t)rdna__random_range(random, 1, 2);
  a->kv_heads = n == 0 ? 1 : (int32_t)rdna__random_range(random, 1, 2);
  a->heads = a->kv_heads * (n == 0 ? 1 : (int32_t)rdna__random_range(random, 1, 3));
  a->sq = n == 0 ? 20 : n == 1 ? 0 : (int32_t)rdna__random_range(random, 1, n % 3 ? 150 : 40);
  a->sk = n == 0 ? 20 : n == 2 ? 0 : (int32_t)rdna__random_range(random, 1, n % 4 ? 100 : 200);
  int32_t least = d / 2 / (int32_t)unit, most = d / (int32_t)unit;
  a->d = n % 2 ? d : (int32_t)(unit * rdna__random_range(random, least > 1 ? least : 1, most));
  a->dv = n % 3 ? a->d : (int32_t)(unit * rdna__random_range(random, 1, most));
  a->left = rdna__random_below(random, 2) ? FLASH_UNLIMITED : (int32_t)rdna__random_below(random, 60);
  a->right = rdna__random_below(random, 2) ? FLASH_UNLIMITED : n % 2 ? 0 : (int32_t)rdna__random_below(random, 60);
  a->bottom_right = (uint32_t)rdna__random_below(random, 2);
  a->scale = (float)(1 / sqrt(a->d));
  if (!any) return;
  if (n % 4 == 1) a->scale = -a->scale;
  if (n % 3 == 0) a->softcap = 2.5f;
  if (n % 5 == 2) a->dropout = 0.25f;
  a->seed = rdna__random_bits(random);
  a->offset = rdna__random_below(random, 1000);
  a->mask_type = (uint32_t)(n % 4);
}

/* The case's number, or another that is not packed. */
static int unpacked(int n) { return n % 5 == 3 ? n + 1 : n; }

static bool is_masked(const rdna__kernel_info *kernel) { return strstr(kernel->name, "_masked_") != NULL; }

/* What the kernel takes in case |n|: of all options those that it knows. */
static void make_options(const rdna__kernel_info *kernel, rdna__random *random, int n, int64_t unit,
                         struct flash_args *a) {
  make_args(random, n, strstr(kernel->name, "_any_") != NULL, most_d(kernel), unit, a);
  if (a->dv > FLASH_WIDE_DV) a->dv = FLASH_WIDE_DV;
  if (!is_masked(kernel)) return;
  a->mask_type = (uint32_t)(n % 3 == 0 ? FLASH_MASK_SAME : n % 3 == 1 ? FLASH_MASK_F32 : FLASH_MASK_BOOL);
  if (n % 4 == 1) a->scale = -a->scale;
}

static bool add_mask(rdna__random *random, rdna__kernel_case *out_case, rdna_dtype dtype, struct flash_args *a) {
  rdna_dtype type = a->mask_type == FLASH_MASK_BOOL ? RDNA_BOOL : a->mask_type == FLASH_MASK_F32 ? RDNA_F32 : dtype;
  /* rows of whole 16 bytes are read another way */
  int64_t row = rdna__random_below(random, 2) ? (a->sk + 15) / 16 * 16 : a->sk;
  int64_t sizes[4] = {a->batch, a->heads, a->sq, row}, count = 1;
  for (int i = 3; i >= 0; i--) {
    bool broadcast = i < 3 && rdna__random_below(random, 2);
    a->mask_stride[i] = broadcast ? 0 : count;
    if (!broadcast) count *= sizes[i];
  }
  void *mask = rdna__case_add(out_case, RDNA__IN, type, count, offsetof(struct flash_args, mask));
  if (!mask) return false;
  for (int64_t i = 0; i < count; i++) {
    bool hidden = rdna__random_below(random, 5) == 0;
    if (type == RDNA_BOOL)
      ((uint8_t *)mask)[i] = !hidden;
    else
      case_set(type, mask, i, hidden ? -INFINITY : (float)rdna__random_normal(random));
  }
  return true;
}

static bool add_sinks(rdna__random *random, rdna__kernel_case *out_case, int64_t heads) {
  float *sinks = rdna__case_add(out_case, RDNA__IN, RDNA_F32, heads, offsetof(struct flash_args, sinks));
  for (int64_t h = 0; sinks && h < heads; h++)
    sinks[h] = rdna__random_below(random, 8) ? 2 * (float)rdna__random_normal(random) : -INFINITY;
  return sinks != NULL;
}

static bool add_slopes(rdna__random *random, rdna__kernel_case *out_case, struct flash_args *a) {
  bool each = rdna__random_below(random, 2);
  a->slopes_stride = each ? a->heads : 0;
  int64_t count = each ? a->batch * a->heads : a->heads;
  float *slopes = rdna__case_add(out_case, RDNA__IN, RDNA_F32, count, offsetof(struct flash_args, slopes));
  for (int64_t i = 0; slopes && i < count; i++) slopes[i] = (float)rdna__random_unit(random) * 0.2f;
  return slopes != NULL;
}

/* Sequences of random lengths, some empty, some longer than sq says. Sets the rows there are. */
static bool add_starts(rdna__random *random, rdna__kernel_case *out_case, size_t offset, int32_t batch, int32_t longest,
                       int32_t *rows) {
  int32_t *starts = rdna__case_add(out_case, RDNA__IN, RDNA_I32, batch + 1, (uint32_t)offset);
  if (!starts) return false;
  for (int32_t b = 0; b < batch; b++) {
    int32_t length =
        rdna__random_below(random, 4) ? (int32_t)rdna__random_range(random, 1, longest + longest / 2 + 1) : 0;
    starts[b + 1] = starts[b] + length;
  }
  *rows = starts[batch];
  return true;
}

static bool add_values(rdna__random *random, rdna__kernel_case *out_case, rdna_dtype dtype, int64_t count,
                       size_t offset) {
  void *data = rdna__case_add(out_case, RDNA__IN, dtype, count, (uint32_t)offset);
  if (data) case_fill(random, dtype, data, count, 1);
  return data != NULL;
}

static bool mark_gaps(rdna__kernel_case *out_case, int64_t count, const int64_t stride[3], int32_t batch, int32_t rows,
                      int32_t heads, int32_t d) {
  uint8_t *untouched = malloc((size_t)count + 1);
  if (!untouched) return false;
  memset(untouched, 1, (size_t)count);
  for (int64_t b = 0; b < (stride[0] ? batch : 1); b++)
    for (int64_t r = 0; r < rows; r++)
      for (int64_t h = 0; h < heads; h++)
        memset(untouched + b * stride[0] + r * stride[1] + h * stride[2], 0, (size_t)d);
  out_case->buffers[out_case->buffer_count - 1].untouched = untouched;
  return true;
}

/* Inputs of any of the kernels, whose arguments begin with |a|. |q_rows| and |k_rows| of a batch, or of all when
 * packed. */
static bool add_inputs(rdna__random *random, rdna__kernel_case *out_case, rdna_dtype dtype, int n, bool any,
                       struct flash_args *a, int32_t *q_rows, int32_t *k_rows) {
  int64_t unit = dtype == RDNA_F32 ? 4 : 8;
  bool packed = n % 5 == 3;
  *q_rows = a->sq, *k_rows = a->sk;
  if (packed) {
    a->mask_type = FLASH_NO_MASK;
    a->batch += 2;
    if (a->sq == 0) a->sq = 1;
    if (a->sk == 0) a->sk = 1;
    if (!add_starts(random, out_case, offsetof(struct flash_args, q_starts), a->batch, a->sq, q_rows) ||
        !add_starts(random, out_case, offsetof(struct flash_args, k_starts), a->batch, a->sk, k_rows))
      return false;
  }
  int64_t q = lay_out(random, packed, a->batch, a->heads, *q_rows, a->d, unit, a->q_stride);
  int64_t k = lay_out(random, packed, a->batch, a->kv_heads, *k_rows, a->d, unit, a->k_stride);
  int64_t v = lay_out(random, packed, a->batch, a->kv_heads, *k_rows, a->dv, unit, a->v_stride);
  a->lse_stride[0] = packed ? 0 : (int64_t)a->heads * *q_rows;
  a->lse_stride[1] = *q_rows;
  if (!add_values(random, out_case, dtype, q, offsetof(struct flash_args, q)) ||
      !add_values(random, out_case, dtype, k, offsetof(struct flash_args, k)) ||
      !add_values(random, out_case, dtype, v, offsetof(struct flash_args, v)))
    return false;
  if (a->mask_type != FLASH_NO_MASK && !add_mask(random, out_case, dtype, a)) return false;
  return !any || n % 3 == 1 || add_slopes(random, out_case, a);
}

/* A probability of unit-size scores is off by what attention_cases.c derives, and by half a unit in its last place when
 * it is rounded to 16 bits, which only the device does; values and the errors' mean are below 6. */
static double output_error(rdna_dtype dtype, const struct flash_args *a, double keys) {
  double probability = 2 * (4 * sqrt(a->d) + 18) * 0x1p-24;
  double rounded = dtype == RDNA_F32 ? 0 : case_spacing(dtype) / 2;
  return 6 * (2 * probability + 2 * 2 * sqrt(keys) * 0x1p-24 + rounded) / (1 - (double)a->dropout);
}

RDNA_CASE_MAKER(rdna__flash_forward_case) {
  rdna_dtype dtype = case_name_float(kernel->name);
  int64_t unit = dtype == RDNA_F32 ? 4 : 8;
  bool any = strstr(kernel->name, "_any_") != NULL;
  struct flash_args a = {0};
  int32_t q_rows, k_rows;
  if (is_masked(kernel)) n = unpacked(n);
  make_options(kernel, random, n, unit, &a);
  bool made = add_inputs(random, out_case, dtype, n, any, &a, &q_rows, &k_rows);
  int64_t out = lay_out(random, a.lse_stride[0] == 0, a.batch, a.heads, q_rows, a.dv, unit, a.out_stride);
  snprintf(out_case->label, sizeof out_case->label,
           "%s%d heads %d/%d %dx%d d %d/%d left %d right %d %s cap %g drop %g mask %u",
           a.lse_stride[0] == 0 ? "packed " : "", a.batch, a.heads, a.kv_heads, a.sq, a.sk, a.d, a.dv, a.left, a.right,
           a.bottom_right ? "br" : "tl", (double)a.softcap, (double)a.dropout, a.mask_type);
  memcpy(out_case->args, &a, sizeof a);
  uint32_t blocks = (uint32_t)((a.sq + FLASH_ROWS - 1) / FLASH_ROWS);
  uint32_t parts = is_wide(kernel) ? (uint32_t)flash_wide_parts(&a) : 1;
  out_case->grid = (rdna_grid){(blocks > 0 ? blocks : 1) * parts, (uint32_t)a.heads, (uint32_t)a.batch};
  made = made && rdna__case_add(out_case, RDNA__OUT, dtype, out, offsetof(struct flash_args, out));
  if (made) {
    rdna__case_tolerance(out_case, output_error(dtype, &a, k_rows), case_spacing(dtype));
    made = mark_gaps(out_case, out, a.out_stride, a.batch, q_rows, a.heads, a.dv);
  }
  made = made && (n % 2 == 0 || add_sinks(random, out_case, a.heads));
  int64_t lse = (a.lse_stride[0] ? (int64_t)a.batch : 1) * a.heads * q_rows;
  if (made && n % 3 != 2) {
    made = rdna__case_add(out_case, RDNA__OUT, RDNA_F32, lse, offsetof(struct flash_args, lse)) != NULL;
    if (made) rdna__case_tolerance(out_case, 2 * (4 * sqrt(a.d) + 18 + sqrt(k_rows)) * 0x1p-23, 0x1p-22);
  }
  return made ? RDNA_OK : rdna__case_no_memory(out_case);
}

/* The forward pass's inputs as a gradient reads them: lse such that the probabilities of a query add up to about 1. */
static bool add_backward_inputs(rdna__random *random, rdna__kernel_case *out_case, rdna_dtype dtype,
                                struct flash_backward_args *args, bool packed, int32_t q_rows) {
  struct flash_args *a = &args->of;
  int64_t rows = (packed ? 1 : (int64_t)a->batch) * a->heads * q_rows;
  int64_t dout =
      lay_out(random, packed, a->batch, a->heads, q_rows, a->dv, dtype == RDNA_F32 ? 4 : 8, args->dout_stride);
  if (!add_values(random, out_case, dtype, dout, offsetof(struct flash_backward_args, dout))) return false;
  float *lse = rdna__case_add(out_case, RDNA__IN, RDNA_F32, rows, offsetof(struct flash_backward_args, of.lse));
  float *delta = rdna__case_add(out_case, RDNA__IN, RDNA_F32, rows, offsetof(struct flash_backward_args, delta));
  for (int64_t i = 0; lse && delta && i < rows; i++) {
    lse[i] =
        rdna__random_below(random, 20) ? logf((float)a->sk + 1) + 0.5f + (float)rdna__random_unit(random) : -INFINITY;
    delta[i] = (float)rdna__random_normal(random);
  }
  return lse && delta;
}

static bool add_gradient(rdna__random *random, rdna__kernel_case *out_case, rdna_dtype dtype, bool packed,
                         int32_t batch, int32_t heads, int32_t rows, int32_t d, int64_t stride[3], size_t offset,
                         double error) {
  int64_t count = lay_out(random, packed, batch, heads, rows, d, dtype == RDNA_F32 ? 4 : 8, stride);
  if (!rdna__case_add(out_case, RDNA__OUT, dtype, count, (uint32_t)offset)) return false;
  rdna__case_tolerance(out_case, error, case_spacing(dtype));
  return mark_gaps(out_case, count, stride, batch, rows, heads, d);
}

/* A value for each query and key, rows of whole 16 bytes or not. */
static bool add_dmask(rdna__random *random, rdna__kernel_case *out_case, rdna_dtype dtype,
                      struct flash_backward_args *args, double error) {
  const struct flash_args *a = &args->of;
  int64_t row = rdna__random_below(random, 2) ? (a->sk + 7) / 8 * 8 : a->sk;
  int64_t rows = (int64_t)a->batch * a->heads * a->sq;
  args->dmask_stride[3] = 1, args->dmask_stride[2] = row;
  args->dmask_stride[1] = a->sq * row, args->dmask_stride[0] = a->heads * a->sq * row;
  if (!rdna__case_add(out_case, RDNA__OUT, dtype, rows * row, offsetof(struct flash_backward_args, dmask)))
    return false;
  rdna__case_tolerance(out_case, error, case_spacing(dtype));
  return rdna__case_guard_rows(out_case, rows, a->sk, row) == RDNA_OK;
}

RDNA_CASE_MAKER(rdna__flash_backward_case) {
  rdna_dtype dtype = case_name_float(kernel->name);
  bool any = strstr(kernel->name, "_any_") != NULL, of_keys = strstr(kernel->name, "_keys_") != NULL;
  struct flash_backward_args args = {0};
  struct flash_args *a = &args.of;
  int32_t q_rows, k_rows;
  if (is_masked(kernel)) n = unpacked(n);
  make_options(kernel, random, n, dtype == RDNA_F32 ? 4 : 8, a);
  bool made = add_inputs(random, out_case, dtype, n, any, a, &q_rows, &k_rows);
  bool packed = a->lse_stride[0] == 0 && n % 5 == 3;
  made = made && add_backward_inputs(random, out_case, dtype, &args, packed, q_rows);
  snprintf(out_case->label, sizeof out_case->label,
           "%s%d heads %d/%d %dx%d d %d/%d left %d right %d %s cap %g drop %g mask %u", packed ? "packed " : "",
           a->batch, a->heads, a->kv_heads, a->sq, a->sk, a->d, a->dv, a->left, a->right, a->bottom_right ? "br" : "tl",
           (double)a->softcap, (double)a->dropout, a->mask_type);
  /* Probabilities err as in the forward pass. Those of one query, and with |of_keys| of one key over all its queries,
   * add up to |weights|; a single one may be e^4 times its mean. dp is a sum of dv products of unit size, seldom above
   * 5 deviations. */
  double sum = of_keys ? (double)a->heads / a->kv_heads * q_rows : k_rows, keys = k_rows + 1;
  double weights = (3 * sum + 60) / keys / (1 - (double)a->dropout);
  double rounded = dtype == RDNA_F32 ? 0 : case_spacing(dtype) / 2;
  double relative = 2 * (2 * (4 * sqrt(a->d) + 18) * 0x1p-24 + 2 * sqrt(sum + 1) * 0x1p-24) + rounded;
  double dp = (5 * sqrt(a->dv) + 5) * (any ? 1.5 : 1), scale = fabs((double)a->scale);
  if (made && of_keys) {
    made = add_gradient(random, out_case, dtype, packed, a->batch, a->kv_heads, k_rows, a->d, args.dk_stride,
                        offsetof(struct flash_backward_args, dk), 3 * scale * dp * weights * relative) &&
           add_gradient(random, out_case, dtype, packed, a->batch, a->kv_heads, k_rows, a->dv, args.dv_stride,
                        offsetof(struct flash_backward_args, dv), 3 * weights * relative);
  } else if (made) {
    made = add_gradient(random, out_case, dtype, packed, a->batch, a->heads, q_rows, a->d, args.dq_stride,
                        offsetof(struct flash_backward_args, dq), 3 * scale * dp * weights * relative);
    if (made && is_masked(kernel) && n % 2 == 0) {
      relative -= rounded; /* the product's */
      made = add_dmask(random, out_case, a->mask_type == FLASH_MASK_F32 ? RDNA_F32 : dtype, &args,
                       3 * dp * 63 / keys * relative);
    }
  }
  memcpy(out_case->args, &args, sizeof args);
  uint32_t blocks = (uint32_t)(((of_keys ? a->sk : a->sq) + FLASH_ROWS - 1) / FLASH_ROWS);
  out_case->grid =
      (rdna_grid){blocks > 0 ? blocks : 1, (uint32_t)(of_keys ? a->kv_heads : a->heads), (uint32_t)a->batch};
  return made ? RDNA_OK : rdna__case_no_memory(out_case);
}

RDNA_CASE_MAKER(rdna__flash_delta_case) {
  rdna_dtype dtype = case_name_float(kernel->name);
  int64_t unit = dtype == RDNA_F32 ? 4 : 8;
  struct flash_delta_args args = {0};
  struct flash_args *a = &args.of;
  make_args(random, n, false, n % 2 ? 256 : 64, unit, a);
  int64_t rows = (int64_t)a->batch * a->heads * a->sq;
  int64_t out = lay_out(random, false, a->batch, a->heads, a->sq, a->dv, unit, a->out_stride);
  int64_t dout = lay_out(random, false, a->batch, a->heads, a->sq, a->dv, unit, args.dout_stride);
  a->lse_stride[0] = (int64_t)a->heads * a->sq, a->lse_stride[1] = a->sq;
  snprintf(out_case->label, sizeof out_case->label, "%d heads %d rows %d dv %d", a->batch, a->heads, a->sq, a->dv);
  memcpy(out_case->args, &args, sizeof args);
  out_case->grid = (rdna_grid){(uint32_t)(n % 3 + 1), (uint32_t)a->heads, (uint32_t)a->batch};
  bool made = add_values(random, out_case, dtype, out, offsetof(struct flash_delta_args, of.out)) &&
              add_values(random, out_case, dtype, dout, offsetof(struct flash_delta_args, dout)) &&
              rdna__case_add(out_case, RDNA__OUT, RDNA_F32, rows, offsetof(struct flash_delta_args, delta));
  if (made) rdna__case_tolerance(out_case, 5 * sqrt(a->dv) * sqrt(a->dv) * 0x1p-24, 0x1p-22);
  return made ? RDNA_OK : rdna__case_no_memory(out_case);
}

/* Values that the gradient has are sums over what the mask has size 1 for. */
RDNA_CASE_MAKER(rdna__flash_mask_case) {
  rdna_dtype dtype = case_name_float(kernel->name);
  struct flash_backward_args inputs = {0};
  struct flash_args *a = &inputs.of;
  int32_t q_rows, k_rows, numbered = unpacked(n);
  if (is_masked(kernel))
    make_options(kernel, random, numbered, 8, a);
  else
    make_args(random, numbered, true, n % 2 ? 64 : 128, dtype == RDNA_F32 ? 4 : 8, a);
  a->mask_type = n % 3 == 0 ? FLASH_MASK_BOOL : n % 3 == 1 ? FLASH_MASK_F32 : FLASH_MASK_SAME;
  bool made = add_inputs(random, out_case, dtype, numbered, !is_masked(kernel), a, &q_rows, &k_rows) &&
              add_backward_inputs(random, out_case, dtype, &inputs, false, q_rows);
  struct flash_mask_args args = {.of = *a, .parts = 1, .is_f32 = (uint32_t)(n % 2)};
  memcpy(args.dout_stride, inputs.dout_stride, sizeof args.dout_stride);
  args.mask_batch = rdna__random_below(random, 2) ? 1 : a->batch;
  args.mask_heads = rdna__random_below(random, 2) ? 1 : a->heads;
  args.mask_queries = !is_masked(kernel) && rdna__random_below(random, 2) ? 1 : a->sq;
  if (is_masked(kernel)) { /* it has one value for all of a sum's terms */
    if (args.mask_batch == 1) a->mask_stride[0] = 0;
    if (args.mask_heads == 1) a->mask_stride[1] = 0;
    args.of = *a;
  }
  uint32_t terms = flash_mask_terms(&args);
  if (terms > 1) args.parts = (uint32_t)rdna__random_range(random, 1, terms);
  args.dmask_stride[4] = 1 + (int64_t)rdna__random_below(random, 2);
  args.dmask_stride[3] = args.dmask_stride[4] * a->sk;
  args.dmask_stride[2] = args.dmask_stride[3] * args.mask_queries;
  args.dmask_stride[1] = args.dmask_stride[2] * args.mask_heads;
  args.dmask_stride[0] = args.dmask_stride[1] * args.mask_batch;
  int64_t count = args.dmask_stride[0] * args.parts;
  rdna_dtype out = args.is_f32 ? RDNA_F32 : dtype;
  snprintf(out_case->label, sizeof out_case->label, "%d heads %d/%d %dx%d d %d/%d cap %g drop %g of %dx%dx%d in %u",
           a->batch, a->heads, a->kv_heads, a->sq, a->sk, a->d, a->dv, (double)a->softcap, (double)a->dropout,
           args.mask_batch, args.mask_heads, args.mask_queries, args.parts);
  memcpy(out_case->args, &args, sizeof args);
  uint32_t key_tiles = (uint32_t)((a->sk + FLASH_MASK_TILE - 1) / FLASH_MASK_TILE);
  uint32_t query_tiles = args.mask_queries == 1 ? 1 : (uint32_t)((a->sq + FLASH_MASK_TILE - 1) / FLASH_MASK_TILE);
  uint32_t groups = key_tiles * query_tiles * (uint32_t)(args.mask_heads * args.mask_batch) * args.parts;
  out_case->grid = (rdna_grid){groups, 1, 1};
  made = made && rdna__case_add(out_case, RDNA__OUT, out, count, offsetof(struct flash_mask_args, dmask));
  if (!made) return rdna__case_no_memory(out_case);
  /* As for the other gradients, of |sum| terms at most. */
  double sum = (double)terms * (args.mask_queries == 1 ? FLASH_MASK_TILE : 1), keys = k_rows + 1;
  double relative = 2 * (2 * (4 * sqrt(a->d) + 18) * 0x1p-24 + 2 * sqrt(sum + 1) * 0x1p-24);
  double dp = (5 * sqrt(a->dv) + 5) * 1.5, weights = (3 * sum + 60) / keys / (1 - (double)a->dropout);
  rdna__case_tolerance(out_case, 3 * dp * weights * relative, case_spacing(out));
  if (args.dmask_stride[4] == 1) return RDNA_OK;
  uint8_t *untouched = malloc((size_t)count + 1);
  if (!untouched) return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < count; i++) untouched[i] = i % 2 != 0;
  out_case->buffers[out_case->buffer_count - 1].untouched = untouched;
  return RDNA_OK;
}
