/* One step of a recurrent layer in one launch, and its gradient; see step_kernels.h. */
#include "math/recurrent/step_kernels.h"

#include "kernel/prelude.h"
#include "math/recurrent/layer_step.h"
#include "math/recurrent/step_product.h"

/* What a thread reads of memory before it knows the sums: those of the inputs, with a GRU's biases, of whose last, that
 * of the inner product, x[3] is the one; and c, or a GRU's h, before the step. */
struct reading {
  int32_t token; /* or -1 */
  float x[4], before;
};

template <typename type, cell kind>
RDNA_DEVICE reading read(const layer_args &a, int32_t step, uint32_t row, uint32_t unit) {
  constexpr uint32_t parts = parts_of<kind>::count;
  reading r = {-1, {0, 0, 0, 0}, 0};
  const uint64_t n = a.n;
  if (row >= (uint32_t)a.rows || unit >= n) return r;
  r.token = token_of(a, step, (int32_t)row);
  if (r.token < 0) return r;
  const int32_t last = token_of(a, a.reverse ? step + 1 : step - 1, (int32_t)row);
  if constexpr (kind == RNN) {
    r.x[0] = type::load(a.out, (uint64_t)r.token * n + unit);
  } else {
#pragma unroll
    for (uint32_t p = 0; p < parts; p++) r.x[p] = type::load(a.gates, ((uint64_t)r.token * parts + p) * n + unit);
    const void *first = kind == LSTM ? a.c : a.h, *later = kind == LSTM ? a.cells : a.out;
    r.before = last >= 0 ? type::load(later, (uint64_t)last * n + unit) : type::load(first, (uint64_t)row * n + unit);
    if (kind == GRU && a.bias) {
      r.x[0] += type::load(a.bias, unit);
      r.x[1] += type::load(a.bias, n + unit);
      r.x[3] = type::load(a.bias, 2 * n + unit);
    }
  }
  return r;
}

template <typename type, cell kind>
RDNA_DEVICE void finish(const layer_args &a, const reading &r, const float *sum, uint32_t unit) {
  constexpr uint32_t parts = parts_of<kind>::count;
  const uint64_t n = a.n, at = (uint64_t)r.token * n + unit, gate = (uint64_t)r.token * parts * n + unit;
  if constexpr (kind == LSTM) {
    const float in = logistic(r.x[0] + sum[0]), forget = logistic(r.x[1] + sum[1]), fresh = hyperbolic(r.x[2] + sum[2]);
    const float open = logistic(r.x[3] + sum[3]), c = forget * r.before + in * fresh;
    type::store(a.gates, gate, in);
    type::store(a.gates, gate + n, forget);
    type::store(a.gates, gate + 2 * n, fresh);
    type::store(a.gates, gate + 3 * n, open);
    type::store(a.cells, at, c);
    type::store(a.out, at, open * hyperbolic(c));
  } else if constexpr (kind == GRU) {
    const float inner = sum[2] + r.x[3];
    const float reset = logistic(r.x[0] + sum[0]), update = logistic(r.x[1] + sum[1]);
    const float fresh = hyperbolic(r.x[2] + reset * inner);
    type::store(a.gates, gate, reset);
    type::store(a.gates, gate + n, update);
    type::store(a.gates, gate + 2 * n, fresh);
    type::store(a.inner, at, inner);
    type::store(a.out, at, fresh + update * (r.before - fresh));
  } else {
    const float total = sum[0] + r.x[0];
    type::store(a.out, at, !a.relu ? hyperbolic(total) : total <= 0 ? 0.0f : total); /* a NaN stays one */
  }
}

template <typename type, cell kind>
RDNA_DEVICE void step(const step_args &args) {
  constexpr uint32_t parts = parts_of<kind>::count;
  typedef step_product<type, kind == RNN ? STEP_UNITS_PLAIN : parts * STEP_UNITS> product;
  typedef typename type::stored stored;
  RDNA_SHARED static float sums[product::SUMS];
  const layer_args &a = args.layer;
  const uint32_t n = a.n, rows = (uint32_t)product::BAND << args.bands_log;
  const uint32_t units = kind == RNN ? args.units : STEP_UNITS;
  const uint32_t row0 = group_id_x() * rows, unit0 = group_id_y() * units;
  if (token_of(a, args.step, (int32_t)row0) < 0) return; /* later sequences have none either */
  const int32_t last = a.reverse ? args.step + 1 : args.step - 1;
  uint32_t item = thread_id();
  reading now = {-1, {0, 0, 0, 0}, 0};
  if (item < rows * units) now = read<type, kind>(a, args.step, row0 + item / units, unit0 + item % units);
  product::run(
      sums, n, args.bands_log, args.vectors,
      [&](uint32_t r) {
        const int32_t row = (int32_t)(row0 + r < (uint32_t)a.rows ? row0 + r : row0), token = token_of(a, last, row);
        return token >= 0 ? (const stored *)a.out + (uint64_t)token * n : (const stored *)a.h + (uint64_t)row * n;
      },
      [&](uint32_t c) {
        const uint32_t part = c / units, unit = unit0 + c % units;
        return (const stored *)a.weight + (part < parts && unit < n ? part * n + unit : unit0) * n;
      });
  group_barrier();
  const uint32_t shares = (uint32_t)product::SHARES >> args.bands_log;
  while (item < rows * units) {
    const uint32_t row = item / units, unit = item % units;
    item += STEP_THREADS;
    reading next = {-1, {0, 0, 0, 0}, 0};
    if (item < rows * units) next = read<type, kind>(a, args.step, row0 + item / units, unit0 + item % units);
    if (now.token >= 0) {
      float sum[parts];
#pragma unroll
      for (uint32_t p = 0; p < parts; p++) sum[p] = sums[row * product::PITCH + p * units + unit];
      for (uint32_t s = 1; s < shares; s++) {
#pragma unroll
        for (uint32_t p = 0; p < parts; p++) sum[p] += sums[(s * rows + row) * product::PITCH + p * units + unit];
      }
      finish<type, kind>(a, now, sum, unit0 + unit);
    }
    now = next;
  }
}

/* What a thread reads before it knows the gradient of h. |next|: the token of the step after, or -1. */
struct reading_back {
  step_values values;
  int32_t token, next;
  float dh, dc; /* of a GRU, or where no step comes after; of an LSTM */
};

template <typename type, cell kind>
RDNA_DEVICE reading_back read_back(const step_args &args, uint32_t row, uint32_t unit) {
  const layer_args &a = args.layer;
  reading_back r = {{{0, 0, 0, 0}, 0, 0, 0}, -1, -1, 0, 0};
  if (row >= (uint32_t)a.rows || unit >= a.n) return r;
  const int32_t forward = a.reverse ? -1 : 1;
  r.token = token_of(a, args.step, (int32_t)row), r.next = token_of(a, args.step + forward, (int32_t)row);
  r.values = load_step<type, kind>(a, r.token, token_of(a, args.step - forward, (int32_t)row), (int32_t)row, unit);
  const uint64_t at = (uint64_t)row * a.n + unit;
  if ((kind == GRU || r.next < 0) && a.dh) r.dh = type::load(a.dh, at);
  if (kind == LSTM && a.dc) r.dc = type::load(a.dc, at);
  return r;
}

/* |dh|: of h, but for the layer's output. */
template <typename type, cell kind>
RDNA_DEVICE void finish_back(const layer_args &a, const reading_back &r, float dh, uint32_t row, uint32_t unit) {
  const uint64_t n = a.n, at = (uint64_t)row * n + unit;
  const uint64_t gate = (uint64_t)r.token * parts_of<kind>::count * n + unit;
  const step_values &v = r.values;
  if (r.token < 0) {
    type::store(a.dfirst, at, dh);
    if (kind == LSTM) type::store(a.dfirst_c, at, r.dc);
    return;
  }
  const float d = dh + v.dout;
  if constexpr (kind == LSTM) {
    const float in = v.gate[0], forget = v.gate[1], fresh = v.gate[2], open = v.gate[3];
    const float s = hyperbolic(v.after), of_c = d * open * (1 - s * s) + r.dc;
    type::store(a.dsums, gate, of_c * fresh * in * (1 - in));
    type::store(a.dsums, gate + n, of_c * v.before * forget * (1 - forget));
    type::store(a.dsums, gate + 2 * n, of_c * in * (1 - fresh * fresh));
    type::store(a.dsums, gate + 3 * n, d * s * open * (1 - open));
    type::store(a.dfirst_c, at, of_c * forget);
  } else if constexpr (kind == GRU) {
    const float reset = v.gate[0], update = v.gate[1], fresh = v.gate[2];
    const float of_fresh = d * (1 - update) * (1 - fresh * fresh);
    const float of_update = d * (v.before - fresh) * update * (1 - update);
    const float of_reset = of_fresh * v.after * reset * (1 - reset);
    type::store(a.dsums, gate, of_reset);
    type::store(a.dsums, gate + n, of_update);
    type::store(a.dsums, gate + 2 * n, of_fresh);
    type::store(a.dhidden, gate, of_reset);
    type::store(a.dhidden, gate + n, of_update);
    type::store(a.dhidden, gate + 2 * n, of_fresh * reset);
    type::store(a.dfirst, at, d * update);
  } else {
    type::store(a.dsums, gate, !a.relu ? d * (1 - v.after * v.after) : v.after <= 0 ? 0.0f : d);
  }
}

template <typename type, cell kind>
RDNA_DEVICE void step_backward(const step_args &args) {
  constexpr uint32_t parts = parts_of<kind>::count;
  typedef step_product<type, STEP_UNITS_PLAIN> product;
  typedef typename type::stored stored;
  RDNA_SHARED static float sums[product::SUMS];
  const layer_args &a = args.layer;
  const uint32_t rows = (uint32_t)product::BAND << args.bands_log, depth = parts * a.n, units = args.units;
  const uint32_t row0 = group_id_x() * rows, unit0 = group_id_y() * units;
  const int32_t after = a.reverse ? args.step - 1 : args.step + 1, first = token_of(a, after, (int32_t)row0);
  uint32_t item = thread_id();
  reading_back now = {{{0, 0, 0, 0}, 0, 0, 0}, -1, -1, 0, 0};
  if (item < rows * units) now = read_back<type, kind>(args, row0 + item / units, unit0 + item % units);
  if (first >= 0) { /* else no later sequence has a step after either */
    product::run(
        sums, depth, args.bands_log, args.vectors,
        [&](uint32_t r) {
          const int32_t row = (int32_t)(row0 + r < (uint32_t)a.rows ? row0 + r : row0), token = token_of(a, after, row);
          const void *back = kind == GRU ? a.dhidden : a.dsums;
          return (const stored *)back + (uint64_t)(token >= 0 ? token : first) * depth;
        },
        [&](uint32_t c) {
          return (const stored *)args.transposed + (c < units && unit0 + c < a.n ? unit0 + c : unit0) * depth;
        });
  }
  group_barrier();
  const uint32_t shares = (uint32_t)product::SHARES >> args.bands_log;
  while (item < rows * units) {
    const uint32_t row = item / units, unit = item % units;
    item += STEP_THREADS;
    reading_back next = {{{0, 0, 0, 0}, 0, 0, 0}, -1, -1, 0, 0};
    if (item < rows * units) next = read_back<type, kind>(args, row0 + item / units, unit0 + item % units);
    if (row0 + row < (uint32_t)a.rows && unit0 + unit < a.n) {
      float dh = now.dh;
      if (now.next >= 0) {
        float sum = sums[row * product::PITCH + unit];
        for (uint32_t s = 1; s < shares; s++) sum += sums[(s * rows + row) * product::PITCH + unit];
        dh += sum;
      }
      finish_back<type, kind>(a, now, dh, row0 + row, unit0 + unit);
    }
    now = next;
  }
}

#define STEP(type)                                                                                 \
  RDNA_KERNEL(256) lstm_step_##type(struct step_args a) { step<type, LSTM>(a); }                   \
  RDNA_KERNEL(256) gru_step_##type(struct step_args a) { step<type, GRU>(a); }                     \
  RDNA_KERNEL(256) rnn_step_##type(struct step_args a) { step<type, RNN>(a); }                     \
  RDNA_KERNEL(256) lstm_step_backward_##type(struct step_args a) { step_backward<type, LSTM>(a); } \
  RDNA_KERNEL(256) gru_step_backward_##type(struct step_args a) { step_backward<type, GRU>(a); }   \
  RDNA_KERNEL(256) rnn_step_backward_##type(struct step_args a) { step_backward<type, RNN>(a); }
STEP(f32)
STEP(f16)
STEP(bf16)
