#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "kernel/manifest.h"
#include "math/common/case/doubles.h"
#include "math/loss/ctc_kernels.h"

/* Fills what all kernels are given. |at| is where the texts are in the struct. */
static bool add_texts(rdna__kernel_case *c, rdna__random *random, rdna_dtype dtype, struct ctc_texts *t, uint32_t at,
                      int n) {
  t->steps = rdna__random_range(random, n == 1 ? 0 : 1, 12), t->batch = rdna__random_range(random, 1, 4);
  t->classes = rdna__random_range(random, 2, 9), t->blank = (int64_t)rdna__random_below(random, (uint64_t)t->classes);
  t->width = 2 * rdna__random_range(random, 0, n == 3 ? 700 : 7) + 1;
  if (n == 4) t->width = CTC_SHARED + 1, t->batch = 1, t->steps = 3;
  t->target_count = t->batch * (t->width / 2);
  t->x_stride[0] = t->batch * t->classes, t->x_stride[1] = t->classes, t->x_stride[2] = 1;
  if (n % 2) t->x_stride[0] = t->classes, t->x_stride[1] = t->classes * t->steps;
  int64_t count = t->steps * t->batch * t->classes;
  void *x = rdna__case_add(c, RDNA__IN, dtype, count, at + (uint32_t)offsetof(struct ctc_texts, x));
  int64_t *targets =
      rdna__case_add(c, RDNA__IN, RDNA_I64, t->target_count, at + (uint32_t)offsetof(struct ctc_texts, targets));
  int64_t *spans =
      rdna__case_add(c, RDNA__IN, RDNA_I64, t->batch * CTC_SPAN, at + (uint32_t)offsetof(struct ctc_texts, spans));
  if (!x || !targets || !spans) return false;
  for (int64_t i = 0; i < count; i++) {
    double v = -4 * rdna__random_unit(random);
    store_double(dtype, x, i, n % 5 == 2 && i % 11 == 3 ? -INFINITY : n % 7 == 6 && i == count / 2 ? NAN : v);
  }
  for (int64_t i = 0; i < t->target_count; i++) {
    targets[i] = rdna__random_range(random, n % 6 == 5 && i % 4 == 1 ? -1 : 0, t->classes - (n % 6 == 5 ? 0 : 1));
  }
  for (int64_t i = 0; i < t->batch; i++) {
    spans[i * CTC_SPAN + CTC_BEGIN] = i * (t->width / 2);
    spans[i * CTC_SPAN + CTC_LABELS] = n == 3 || n == 4 ? t->width / 2 : rdna__random_range(random, 0, t->width / 2);
    spans[i * CTC_SPAN + CTC_STEPS] = rdna__random_range(random, n % 3 ? 0 : t->steps, t->steps);
    if (n % 8 == 7) spans[i * CTC_SPAN + CTC_LABELS] = t->width, spans[i * CTC_SPAN + CTC_STEPS] = t->steps + 1;
  }
  return true;
}

RDNA_CASE_MAKER(rdna__ctc_case) {
  bool backward = strstr(kernel->name, "posterior") != NULL;
  const rdna_dtype dtype = RDNA_F32;
  struct ctc_args a = {.rows = NULL};
  if (!add_texts(out_case, random, dtype, &a.texts, offsetof(struct ctc_args, texts), n))
    return rdna__case_no_memory(out_case);
  const struct ctc_texts *t = &a.texts;
  int64_t count = t->batch * t->steps * t->width;
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)t->batch, 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld steps of %lld, %lld classes, %lld states",
           (long long)t->steps, (long long)t->batch, (long long)t->classes, (long long)t->width);
  char *alpha = NULL, *rows = out_case->label;
  void *states = rdna__case_add(out_case, RDNA__OUT, dtype, count, offsetof(struct ctc_args, states));
  void *loss =
      rdna__case_add(out_case, backward ? RDNA__IN : RDNA__OUT, dtype, t->batch, offsetof(struct ctc_args, loss));
  uint32_t *outside = rdna__case_add(out_case, RDNA__INOUT, RDNA_I32, 1, offsetof(struct ctc_args, outside));
  if (backward) {
    alpha = rdna__case_add(out_case, RDNA__IN, dtype, count, offsetof(struct ctc_args, alpha));
    void *chain =
        rdna__case_add(out_case, RDNA__OUT, RDNA_I32, t->batch * (t->width / 2), offsetof(struct ctc_args, chain));
    if (!alpha || !chain) return rdna__case_no_memory(out_case);
    for (int64_t i = 0; i < count; i++) store_double(dtype, alpha, i, -6 * rdna__random_unit(random));
    for (int64_t i = 0; loss && i < t->batch; i++) store_double(dtype, loss, i, 3);
  }
  if (t->width > CTC_SHARED) { /* its last two rows are what stays there */
    rows = rdna__case_add(out_case, RDNA__INOUT, dtype, t->batch * 2 * t->width, offsetof(struct ctc_args, rows));
  }
  return states && loss && outside && rows ? RDNA_OK : rdna__case_no_memory(out_case);
}

RDNA_CASE_MAKER(rdna__ctc_gradient_case) {
  const rdna_dtype dtype = RDNA_F32;
  struct ctc_gradient_args a = {.zero_infinity = n % 2};
  if (!add_texts(out_case, random, dtype, &a.texts, offsetof(struct ctc_gradient_args, texts), n == 1 ? 9 : n))
    return rdna__case_no_memory(out_case);
  const struct ctc_texts *t = &a.texts;
  int64_t count = t->batch * t->steps * t->width, labels = t->width / 2;
  memcpy(out_case->args, &a, sizeof a);
  out_case->grid = (rdna_grid){(uint32_t)rdna__random_range(random, 1, t->steps * t->batch), 1, 1};
  snprintf(out_case->label, sizeof out_case->label, "%lld steps of %lld, %lld classes, %lld states",
           (long long)t->steps, (long long)t->batch, (long long)t->classes, (long long)t->width);
  const int64_t *targets = out_case->buffers[1].data, *spans = out_case->buffers[2].data;
  void *states = rdna__case_add(out_case, RDNA__IN, dtype, count, offsetof(struct ctc_gradient_args, states));
  void *loss = rdna__case_add(out_case, RDNA__IN, dtype, t->batch, offsetof(struct ctc_gradient_args, loss));
  void *dloss = rdna__case_add(out_case, RDNA__IN, dtype, t->batch, offsetof(struct ctc_gradient_args, dloss));
  int32_t *chain =
      rdna__case_add(out_case, RDNA__IN, RDNA_I32, t->batch * labels, offsetof(struct ctc_gradient_args, chain));
  void *dx = rdna__case_add(out_case, RDNA__OUT, dtype, t->steps * t->batch * t->classes,
                            offsetof(struct ctc_gradient_args, dx));
  if (!states || !loss || !dloss || !chain || !dx) return rdna__case_no_memory(out_case);
  for (int64_t i = 0; i < count; i++) store_double(dtype, states, i, rdna__random_unit(random));
  for (int64_t i = 0; i < t->batch; i++) {
    store_double(dtype, loss, i, (i + n) % 4 == 2 ? INFINITY : 3);
    store_double(dtype, dloss, i, rdna__random_normal(random));
    int64_t own = spans[i * CTC_SPAN + CTC_LABELS] < labels ? spans[i * CTC_SPAN + CTC_LABELS] : labels;
    for (int64_t j = 0; j < labels; j++) {
      int64_t next = j + 1;
      bool first = true;
      for (int64_t k = 0; k < j; k++) first = first && targets[i * labels + k] != targets[i * labels + j];
      while (next < own && targets[i * labels + next] != targets[i * labels + j]) next++;
      chain[i * labels + j] = (int32_t)(first ? next : ~next);
    }
  }
  return RDNA_OK; /* the same operations in the same order: the same bits */
}
