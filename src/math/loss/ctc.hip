/* Connectionist temporal classification: a group goes through the steps of a text, with a thread for each state.
 * Backwards it numbers states and steps from the last, and then does the same. Arithmetic takes little time; the chain
 * of steps does, each of which waits for a barrier and a load. The load is issued one step ahead. */
#include "kernel/arguments.h"
#include "kernel/prelude.h"
#include "math/loss/ctc_values.h"

/* |shared|: rows and classes are in group memory, else |rows| in global memory. */
template <bool backward, bool shared>
RDNA_DEVICE void walk(const ctc_args &a, const ctc_span &span, float *rows, int32_t *classes) {
  const int64_t text = group_id_x();
  const int32_t width = (int32_t)a.texts.width, steps = (int32_t)span.steps;
  const int32_t states = (int32_t)(2 * span.labels + 1), me = (int32_t)thread_id();
  const float none = -__builtin_inff();
  float *out = a.states + text * a.texts.steps * width;
  const float *alpha = a.alpha + text * a.texts.steps * width;
  float loss = backward ? (a.loss)[text] : 0;
  /* class of place r of the walk */
  auto class_at = [&](const ctc_texts &t, int32_t r) {
    return shared ? classes[r] : (int32_t)ctc_class_of(&t, &span, backward ? states - 1 - r : r);
  };
  auto value_at = [&](const ctc_texts &t, int64_t step, int32_t r) {
    int32_t label = class_at(t, r);
    return label < 0 ? __builtin_nanf("") : (t.x)[ctc_place(&t, step, text, label)];
  };
  if (shared) {
    for (int32_t r = me; r < states; r += CTC_THREADS) {
      classes[r] = (int32_t)ctc_class_of(&a.texts, &span, backward ? states - 1 - r : r);
    }
    group_barrier();
  }
  for (int32_t r = me; r < states && a.outside; r += CTC_THREADS) {
    if (class_at(a.texts, r) < 0) atomic_or_u32(a.outside, 1);
  }
  float ahead = me < states && steps > 0 ? value_at(a.texts, backward ? steps - 1 : 0, me) : 0;
  /* After the last step, what comes into a blank that nobody says is the whole. */
#pragma nounroll
  for (int32_t k = 0; k < steps + !backward; k++) {
    const ctc_texts &t = arguments_again(a).texts;
    const int32_t step = backward ? steps - 1 - k : k;
    float *row = rows + (k & 1) * width, *last = rows + (~k & 1) * width, value = ahead;
    if (me < states && k + 1 < steps) ahead = value_at(t, backward ? step - 1 : step + 1, me);
#pragma nounroll
    for (int32_t r = me; r < states; r += CTC_THREADS) {
      const int64_t at = (int64_t)step * width + (backward ? states - 1 - r : r);
      float before = r < 2 ? 0 : none;
      if (k > 0) {
        bool skips = r > 1 && r % 2 && class_at(t, r) != class_at(t, r - 2);
        before = ctc_join(last[r], r > 0 ? last[r - 1] : none, skips ? last[r - 2] : none);
      }
      if (k == steps) {
        if (r == states - 1) (a.loss)[text] = 0 - before;
        continue;
      }
      row[r] = before + (r == me ? value : value_at(t, step, r));
      out[at] = backward ? scalar_exp(alpha[at] + before + loss) : row[r];
    }
    if (shared) {
      group_barrier();
    } else {
      group_barrier_global();
    }
  }
  const ctc_args &late = arguments_again(a);
  const float rest = backward ? 0 : none;
#pragma nounroll
  for (int64_t i = me; i < late.texts.steps * width; i += CTC_THREADS) {
    if (i / width >= steps || i % width >= states) out[i] = rest;
  }
}

/* The next label of the same class. */
RDNA_DEVICE void link(const ctc_args &a, const ctc_span &span) {
  const int64_t *labels = a.texts.targets + span.begin;
  int32_t *chain = a.chain + group_id_x() * (a.texts.width / 2), count = (int32_t)span.labels;
  for (int32_t i = (int32_t)thread_id(); i < a.texts.width / 2; i += CTC_THREADS) {
    int32_t next = i + 1;
    bool first = true;
    if (i < count) {
#pragma nounroll
      for (int32_t j = 0; j < i; j++) first = first && labels[j] != labels[i];
#pragma nounroll
      while (next < count && labels[next] != labels[i]) next++;
    }
    chain[i] = first ? next : ~next;
  }
}

template <bool backward>
RDNA_DEVICE void ctc_text(const ctc_args &a, float *rows, int32_t *classes) {
  ctc_span span = ctc_span_of(&a.texts, group_id_x());
  if (backward) link(a, span);
  if (a.rows) {
    walk<backward, false>(a, span, a.rows + (int64_t)group_id_x() * 2 * a.texts.width, classes);
  } else {
    walk<backward, true>(a, span, rows, classes);
  }
}

/* The probabilities of the blanks are added by CTC_SUMS threads, then in pairs: the same sum on every GPU. */
RDNA_DEVICE void gradient(const ctc_gradient_args &a, float *sums) {
  const int32_t me = (int32_t)thread_id();
  const int64_t classes = a.texts.classes;
#pragma nounroll
  for (int64_t i = group_id_x(); i < a.texts.steps * a.texts.batch; i += group_count_x()) {
    const int64_t text = i % a.texts.batch, step = i / a.texts.batch;
    const ctc_span span = ctc_span_of(&a.texts, text);
    const float *x = a.texts.x, loss = (a.loss)[text];
    float slope = (a.dloss)[text], *dx = a.dx + i * classes;
    const bool lost = loss == __builtin_inff(), past = step >= span.steps || (lost && a.zero_infinity);
    for (int64_t c = me; c < classes; c += CTC_THREADS) {
      float v = past ? 0 : scalar_exp(x[ctc_place(&a.texts, step, text, c)]) * slope;
      dx[c] = lost && !past ? __builtin_nanf("") : v;
    }
    if (past || lost) continue;
    const float *states = a.states + (text * a.texts.steps + step) * a.texts.width;
    const int32_t *chain = a.chain + text * (a.texts.width / 2);
    float sum = 0;
    for (int64_t s = me; s <= span.labels && me < CTC_SUMS; s += CTC_SUMS) sum += states[2 * s];
    if (me < CTC_SUMS) sums[me] = sum;
    group_barrier_global();
    for (int64_t s = me; s < span.labels; s += CTC_THREADS) {
      int32_t next = chain[s];
      int64_t label = ctc_class_of(&a.texts, &span, 2 * s + 1);
      if (next < 0 || label < 0) continue;
      sum = states[2 * s + 1];
#pragma nounroll
      while (next < span.labels) {
        sum += states[2 * next + 1];
        next = chain[next];
        next = next < 0 ? ~next : next;
      }
      dx[label] -= slope * sum;
    }
#pragma nounroll
    for (int half = CTC_SUMS / 2; half > 0; half /= 2) {
      if (me < half) sums[me] += sums[me + half];
      group_barrier_global();
    }
    if (me == 0) dx[a.texts.blank] -= slope * sums[0]; /* after the labels, as one may be the blank */
    group_barrier();
  }
}

RDNA_KERNEL(CTC_THREADS) ctc_alpha(struct ctc_args a) {
  RDNA_SHARED static float rows[2 * CTC_SHARED];
  RDNA_SHARED static int32_t classes[CTC_SHARED];
  ctc_text<false>(a, rows, classes);
}
RDNA_KERNEL(CTC_THREADS) ctc_posterior(struct ctc_args a) {
  RDNA_SHARED static float rows[2 * CTC_SHARED];
  RDNA_SHARED static int32_t classes[CTC_SHARED];
  ctc_text<true>(a, rows, classes);
}
RDNA_KERNEL(CTC_THREADS) ctc_gradient(struct ctc_gradient_args a) {
  RDNA_SHARED static float sums[CTC_SUMS];
  gradient(a, sums);
}
