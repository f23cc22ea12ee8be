#include "kernel/host.h"
#include "math/loss/ctc_values.h"

static void link_labels(const struct ctc_args *a, const struct ctc_span *span, int64_t text) {
  const int64_t *labels = a->texts.targets + span->begin;
  int32_t *chain = a->chain + text * (a->texts.width / 2);
  for (int64_t i = 0; i < a->texts.width / 2; i++) {
    int64_t next = i + 1;
    bool first = true;
    for (int64_t j = 0; j < i && i < span->labels; j++) first = first && labels[j] != labels[i];
    while (next < span->labels && labels[next] != labels[i]) next++;
    chain[i] = (int32_t)(first ? next : ~next);
  }
}

/* As ctc.hip has it: place r of the walk is state r or, backwards, the one as far from the last. */
static void walk(const struct ctc_args *a, int64_t text, bool backward) {
  float own[2 * CTC_SHARED];
  const float none = -__builtin_inff(), *x = a->texts.x;
  struct ctc_span span = ctc_span_of(&a->texts, text);
  int64_t width = a->texts.width, states = 2 * span.labels + 1;
  float *rows = a->rows ? a->rows + text * 2 * width : own;
  float *out = a->states + text * a->texts.steps * width, *loss = a->loss + text;
  const float *alpha = a->alpha + text * a->texts.steps * width;
  if (backward) link_labels(a, &span, text);
  for (int64_t k = 0; k < span.steps; k++) {
    int64_t step = backward ? span.steps - 1 - k : k;
    float *row = rows + (k & 1) * width, *last = rows + (~k & 1) * width;
    for (int64_t r = 0; r < states; r++) {
      int64_t state = backward ? states - 1 - r : r, label = ctc_class_of(&a->texts, &span, state);
      int64_t two = backward ? state + 2 : state - 2, at = step * width + state;
      float before = r < 2 ? 0 : none;
      if (k > 0) {
        bool skips = r > 1 && r % 2 && label != ctc_class_of(&a->texts, &span, two);
        before = ctc_join(last[r], r > 0 ? last[r - 1] : none, skips ? last[r - 2] : none);
      }
      if (label < 0 && a->outside) __atomic_fetch_or(a->outside, 1, __ATOMIC_RELAXED);
      row[r] = before + (label < 0 ? __builtin_nanf("") : x[ctc_place(&a->texts, step, text, label)]);
      out[at] = backward ? scalar_exp(alpha[at] + before + *loss) : row[r];
    }
  }
  if (!backward) {
    const float *row = rows + (~span.steps & 1) * width;
    float end = span.steps == 0 ? (span.labels ? none : 0)
                                : ctc_join(row[states - 1], states > 1 ? row[states - 2] : none, none);
    *loss = 0 - end;
  }
  for (int64_t i = 0; i < a->texts.steps * width; i++) {
    if (i / width >= span.steps || i % width >= states) out[i] = backward ? 0 : none;
  }
}
static void alpha(void *context, int64_t begin, int64_t end) {
  for (int64_t text = begin; text < end; text++) walk(context, text, false);
}
static void posterior(void *context, int64_t begin, int64_t end) {
  for (int64_t text = begin; text < end; text++) walk(context, text, true);
}
static void slope(const struct ctc_gradient_args *a, int64_t i) {
  const int64_t text = i % a->texts.batch, step = i / a->texts.batch, classes = a->texts.classes;
  const float loss = (a->loss)[text], slope = (a->dloss)[text], *x = a->texts.x;
  struct ctc_span span = ctc_span_of(&a->texts, text);
  bool lost = loss == __builtin_inff(), past = step >= span.steps || (lost && a->zero_infinity);
  float *dx = a->dx + i * classes, sums[CTC_SUMS];
  for (int64_t c = 0; c < classes; c++) {
    float v = past ? 0 : scalar_exp(x[ctc_place(&a->texts, step, text, c)]) * slope;
    dx[c] = lost && !past ? __builtin_nanf("") : v;
  }
  if (past || lost) return;
  const float *states = a->states + (text * a->texts.steps + step) * a->texts.width;
  const int32_t *chain = a->chain + text * (a->texts.width / 2);
  for (int64_t s = 0; s < span.labels; s++) {
    int64_t label = ctc_class_of(&a->texts, &span, 2 * s + 1);
    if (chain[s] < 0 || label < 0) continue;
    float sum = states[2 * s + 1];
    for (int64_t next = chain[s]; next < span.labels;) {
      sum += states[2 * next + 1];
      next = chain[next] < 0 ? ~chain[next] : chain[next];
    }
    dx[label] -= slope * sum;
  }
  for (int64_t lane = 0; lane < CTC_SUMS; lane++) {
    sums[lane] = 0;
    for (int64_t s = lane; s <= span.labels; s += CTC_SUMS) sums[lane] += states[2 * s];
  }
  for (int half = CTC_SUMS / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; lane++) sums[lane] += sums[lane + half];
  }
  dx[a->texts.blank] -= slope * sums[0];
}
static void gradient(void *context, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) slope(context, i);
}
void RDNA_HOST_KERNEL(ctc_alpha)(const void *args, rdna_grid grid) {
  struct ctc_args a = *(const struct ctc_args *)args;
  rdna__parallel_for(a.texts.batch, 1, alpha, &a);
}
void RDNA_HOST_KERNEL(ctc_posterior)(const void *args, rdna_grid grid) {
  struct ctc_args a = *(const struct ctc_args *)args;
  rdna__parallel_for(a.texts.batch, 1, posterior, &a);
}
void RDNA_HOST_KERNEL(ctc_gradient)(const void *args, rdna_grid grid) {
  struct ctc_gradient_args a = *(const struct ctc_gradient_args *)args;
  rdna__parallel_for(a.texts.steps * a.texts.batch, 1 + 4096 / (a.texts.classes + 1), gradient, &a);
}
