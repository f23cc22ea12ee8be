/* What the kernels of connectionist temporal classification and their twins compute alike. */
#ifndef RDNA_MATH_LOSS_CTC_VALUES_H
#define RDNA_MATH_LOSS_CTC_VALUES_H

#include "kernel/scalar.h"
#include "math/loss/ctc_kernels.h"

#ifdef RDNA_KERNEL_PRELUDE_H
#define CTC_GLOBAL(p) global(p)
#else
#define CTC_GLOBAL(p) (p)
#endif

struct ctc_span {
  int64_t begin, labels, steps;
};
RDNA_SCALAR int64_t ctc_within_(int64_t v, int64_t most) { return v < 0 ? 0 : v > most ? most : v; }
RDNA_SCALAR struct ctc_span ctc_span_of(const struct ctc_texts *a, int64_t text) {
  const int64_t *p = a->spans + text * CTC_SPAN;
  struct ctc_span s = {ctc_within_(p[CTC_BEGIN], a->target_count), ctc_within_(p[CTC_LABELS], a->width / 2),
                       ctc_within_(p[CTC_STEPS], a->steps)};
  s.labels = ctc_within_(s.labels, a->target_count - s.begin);
  return s;
}
/* The class of a state, or -1 of a label that is none. */
RDNA_SCALAR int64_t ctc_class_of(const struct ctc_texts *a, const struct ctc_span *s, int64_t state) {
  int64_t label = state % 2 ? CTC_GLOBAL(a->targets)[s->begin + state / 2] : a->blank;
  return label >= 0 && label < a->classes ? label : -1;
}
RDNA_SCALAR int64_t ctc_place(const struct ctc_texts *a, int64_t step, int64_t text, int64_t label) {
  return step * a->x_stride[0] + text * a->x_stride[1] + label * a->x_stride[2];
}

/* log(exp(a) + exp(b) + exp(c)); -infinity adds nothing, a NaN stays one. */
RDNA_SCALAR float ctc_join(float a, float b, float c) {
  float top = scalar_max(scalar_max(a, b), c);
  if (top == -__builtin_inff()) return top;
  return top + scalar_log(scalar_exp(a - top) + scalar_exp(b - top) + scalar_exp(c - top));
}

#endif
