#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernel/manifest.h"
#include "math/common/case/doubles.h"
#include "math/vision/nms_kernels.h"

static void *add(rdna__kernel_case *c, rdna__buffer_role role, rdna_dtype dtype, int64_t count, size_t offset) {
  return rdna__case_add(c, role, dtype, count, (uint32_t)offset);
}

/* Boxes of which many overlap, of few different corners, so that ties with the threshold are met; one may have a NaN.
 */
static void fill_boxes(rdna__random *random, rdna_dtype dtype, void *boxes, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    for (int d = 0; d < 2; d++) {
      double low = (double)rdna__random_range(random, 0, 12), size = (double)rdna__random_range(random, 0, 8);
      store_double(dtype, boxes, 4 * i + d, low);
      store_double(dtype, boxes, 4 * i + d + 2, low + size + (i % 3 ? 0 : 0.37));
    }
  }
  if (n > 5) store_double(dtype, boxes, 4 * 5 + 1, NAN);
}

static void fill_order(rdna__random *random, int64_t *order, int64_t n) {
  for (int64_t i = 0; i < n; i++) order[i] = i;
  for (int64_t i = n - 1; i > 0; i--) {
    int64_t j = rdna__random_range(random, 0, i), v = order[i];
    order[i] = order[j], order[j] = v;
  }
}

RDNA_CASE_MAKER(rdna__nms_boxes_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name), wide = dtype == RDNA_F64 ? RDNA_F64 : RDNA_F32;
  struct nms_boxes_args a = {.n = n == 0 ? 1 : (uint32_t)rdna__random_range(random, 1, 600)};
  a.stride[0] = n % 2 ? 1 : 4 + n % 3, a.stride[1] = n % 2 ? a.n : 1;
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(a.n + NMS_THREADS - 1) / NMS_THREADS, 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%u boxes, strides %lld, %lld", a.n, (long long)a.stride[0],
           (long long)a.stride[1]);
  int64_t span = (a.n - 1) * a.stride[0] + 3 * a.stride[1] + 1;
  void *boxes = add(out_case, RDNA__IN, dtype, span, offsetof(struct nms_boxes_args, boxes));
  int64_t *order = add(out_case, RDNA__IN, RDNA_I64, a.n, offsetof(struct nms_boxes_args, order));
  void *sorted = add(out_case, RDNA__OUT, wide, 4 * (int64_t)a.n, offsetof(struct nms_boxes_args, sorted));
  if (!boxes || !order || !sorted) return rdna__case_no_memory(out_case);
  case_fill_doubles(random, dtype, boxes, span, 0);
  fill_order(random, order, a.n);
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__nms_pairs_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  static const double thresholds[] = {0.5, 0, 0.25, 1, -1};
  struct nms_pairs_args a = {.first = (uint32_t)n % 4 * 3, .threshold_f64 = thresholds[n % 5]};
  a.count = n == 0 ? 1 : n == 1 ? 64 : (uint32_t)rdna__random_range(random, 1, 300);
  a.threshold = (float)a.threshold_f64;
  uint32_t words = (a.count + NMS_TILE - 1) / NMS_TILE;
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(a.count + NMS_THREADS - 1) / NMS_THREADS, words, 1};
  snprintf(out_case->label, sizeof out_case->label, "%u boxes behind %u, threshold %g", a.count, a.first,
           a.threshold_f64);
  int64_t boxes = a.first + a.count;
  void *sorted = add(out_case, RDNA__IN, dtype, 4 * boxes, offsetof(struct nms_pairs_args, sorted));
  void *pairs = add(out_case, RDNA__OUT, RDNA_I32, (int64_t)words * NMS_CHUNK, offsetof(struct nms_pairs_args, pairs));
  if (!sorted || !pairs) return rdna__case_no_memory(out_case);
  fill_boxes(random, dtype, sorted, boxes);
  return rdna__case_guard_rows(out_case, words, words * NMS_TILE, NMS_CHUNK);
}

RDNA_CASE_MAKER(rdna__nms_choose_case) {
  struct nms_choose_args a = {.first = (uint32_t)n % 3 * 5};
  a.count = n == 0 ? 1 : n == 1 ? 96 : (uint32_t)rdna__random_range(random, 1, n % 5 == 4 ? NMS_CHUNK : 400);
  uint32_t words = (a.count + NMS_TILE - 1) / NMS_TILE, begin = a.first ? (uint32_t)rdna__random_below(random, 4) : 0;
  int64_t all = a.first + a.count;
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){1, 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%u boxes behind %u", a.count, a.first);
  int32_t *pairs =
      add(out_case, RDNA__IN, RDNA_I32, (int64_t)words * NMS_CHUNK, offsetof(struct nms_choose_args, pairs));
  uint8_t *covered = add(out_case, RDNA__IN, RDNA_U8, all, offsetof(struct nms_choose_args, covered));
  int64_t *order = add(out_case, RDNA__IN, RDNA_I64, all, offsetof(struct nms_choose_args, order));
  int64_t *kept = add(out_case, RDNA__INOUT, RDNA_I64, all, offsetof(struct nms_choose_args, kept));
  int32_t *places = add(out_case, RDNA__INOUT, RDNA_I32, all, offsetof(struct nms_choose_args, places));
  int32_t *range = add(out_case, RDNA__INOUT, RDNA_I32, 2, offsetof(struct nms_choose_args, range));
  int64_t *total = add(out_case, RDNA__OUT, RDNA_I64, 1, offsetof(struct nms_choose_args, total));
  if (!pairs || !covered || !order || !kept || !places || !range || !total) return rdna__case_no_memory(out_case);
  fill_order(random, order, all);
  range[1] = (int32_t)begin;
  for (int64_t i = 0; i < all; i++) kept[i] = -1, places[i] = -1, covered[i] = rdna__random_below(random, 8) == 0;
  for (uint32_t w = 0; w < words; w++) {
    for (uint32_t i = 0; i < words * NMS_TILE; i++) {
      uint32_t bits = 0;
      for (int k = 0; k < 2 && i < a.count; k++) bits |= UINT32_C(1) << rdna__random_below(random, 32);
      if (i / NMS_TILE > w || n % 4 == 3) bits = 0;
      if (i / NMS_TILE == w) bits &= i % NMS_TILE == 31 ? 0 : ~UINT32_C(0) << (i % NMS_TILE + 1);
      pairs[(int64_t)w * NMS_CHUNK + i] = (int32_t)bits;
    }
  }
  return RDNA_OK;
}

RDNA_CASE_MAKER(rdna__nms_later_case) {
  rdna_dtype dtype = case_name_dtype(kernel->name);
  struct nms_later_args a = {.threshold = 0.25f, .threshold_f64 = 0.25};
  a.first = n == 0 ? 1 : (uint32_t)rdna__random_range(random, 1, 200);
  a.n = a.first + (n == 0 ? 1 : (uint32_t)rdna__random_range(random, 1, 600));
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(a.n - a.first + NMS_THREADS - 1) / NMS_THREADS, 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "boxes %u to %u", a.first, a.n);
  void *sorted = add(out_case, RDNA__IN, dtype, 4 * (int64_t)a.n, offsetof(struct nms_later_args, sorted));
  int32_t *places = add(out_case, RDNA__IN, RDNA_I32, a.first, offsetof(struct nms_later_args, places));
  int32_t *range = add(out_case, RDNA__IN, RDNA_I32, 2, offsetof(struct nms_later_args, range));
  uint8_t *covered = add(out_case, RDNA__INOUT, RDNA_U8, a.n, offsetof(struct nms_later_args, covered));
  if (!sorted || !places || !range || !covered) return rdna__case_no_memory(out_case);
  fill_boxes(random, dtype, sorted, a.n);
  int32_t kept = 0;
  for (uint32_t i = 0; i < a.first; i++) {
    if (rdna__random_below(random, 8) == 0) places[kept++] = (int32_t)i;
  }
  range[0] = kept / 3, range[1] = n % 5 == 3 ? range[0] : kept;
  for (uint32_t i = 0; i < a.n; i++) covered[i] = rdna__random_below(random, 8) == 0;
  return RDNA_OK;
}
