/* One step of a recurrent layer in one launch; see step_kernels.h. */
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
  constexpr uint32_t parts = parts_of<kind>::count, units = kind == RNN ? STEP_UNITS_PLAIN : STEP_UNITS;
  typedef step_product<type, parts * units> product;
  typedef typename type::stored stored;
  RDNA_SHARED static float sums[product::SUMS];
  const layer_args &a = args.layer;
  const uint32_t n = a.n, rows = (uint32_t)product::BAND << args.bands_log;
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
        return (const stored *)a.weight + (part < parts && unit < n ? (part * n + unit) * n : 0);
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

#define STEP(type)                                                               \
  RDNA_KERNEL(256) lstm_step_##type(struct step_args a) { step<type, LSTM>(a); } \
  RDNA_KERNEL(256) gru_step_##type(struct step_args a) { step<type, GRU>(a); }   \
  RDNA_KERNEL(256) rnn_step_##type(struct step_args a) { step<type, RNN>(a); }
STEP(f32)
STEP(f16)
STEP(bf16)
