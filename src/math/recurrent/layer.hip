/* All steps of a narrow recurrent layer in one launch, and their gradient; see layer_kernels.h. */
#include "math/recurrent/layer_kernels.h"

#include "kernel/arguments.h"
#include "kernel/prelude.h"
#include "math/recurrent/layer_step.h"

static constexpr uint32_t own = LAYER_UNITS / LAYER_SLICES; /* states of a thread */

/* Number |i| of the states of a slice. */
RDNA_DEVICE uint32_t state_of(uint32_t slice, uint32_t i) { return (i / 4 * LAYER_SLICES + slice) * 4 + i % 4; }

/* The sum of v over the slices of a unit; all of them get it. */
RDNA_DEVICE float slice_sum(float v) {
  v += wave_shuffle_xor_f32(v, 1);
  return v + wave_shuffle_xor_f32(v, 2);
}
RDNA_DEVICE float chosen(uint32_t i, float a, float b, float c, float d) {
  return i == 0 ? a : i == 1 ? b : i == 2 ? c : d;
}

template <typename type, cell kind>
RDNA_DEVICE void layer(const layer_args &args) {
  constexpr uint32_t parts = parts_of<kind>::count;
  RDNA_SHARED static float states[2][LAYER_UNITS] __attribute__((aligned(16)));
  const layer_args &a = args;
  const uint32_t n = a.n, unit = thread_id() / LAYER_SLICES, slice = thread_id() % LAYER_SLICES;
  const bool there = unit < n;
  float w[parts][own], bias = 0;
#pragma unroll
  for (uint32_t p = 0; p < parts; p++) {
#pragma unroll
    for (uint32_t i = 0; i < own; i++) {
      const uint32_t k = state_of(slice, i);
      w[p][i] = there && k < n ? type::load(a.weight, (uint64_t)(p * n + unit) * n + k) : 0.0f;
    }
  }
  if (kind == GRU && a.bias && there && slice < 3) bias = type::load(a.bias, slice * n + unit);
  const void *sums = kind == RNN ? a.out : a.gates;
  const bool summed = there && slice < parts; /* whether the thread has one of the sums */
  for (int32_t row = (int32_t)group_id_x(); row < a.rows; row += (int32_t)group_count_x()) {
    float h = there ? type::load(a.h, (uint64_t)row * n + unit) : 0.0f, c = 0, x = 0;
    if (kind == LSTM && there) c = type::load(a.c, (uint64_t)row * n + unit);
    if (slice == 0) states[0][unit] = h, states[1][unit] = 0;
    group_barrier();
    int32_t t = a.reverse ? a.steps - 1 : 0;
    const int32_t by = a.reverse ? -1 : 1;
    int32_t token = token_of(a, t, row);
    if (token >= 0 && summed) x = type::load(sums, ((uint64_t)token * parts + slice) * n + unit);
    for (uint32_t turn = 0; t >= 0 && t < args.steps; t += by) {
      const layer_args &a = arguments_again(args);
      const void *sums = kind == RNN ? a.out : a.gates;
      const int32_t next = token_of(a, t + by, row);
      float ahead = 0;
      if (next >= 0 && summed) ahead = type::load(sums, ((uint64_t)next * parts + slice) * n + unit);
      if (token >= 0) {
        float sum[parts];
#pragma unroll
        for (uint32_t p = 0; p < parts; p++) sum[p] = 0;
#pragma unroll
        for (uint32_t i = 0; i < own; i++) {
          const float from = states[turn][state_of(slice, i)];
#pragma unroll
          for (uint32_t p = 0; p < parts; p++) sum[p] = fused(w[p][i], from, sum[p]);
        }
        const uint64_t at = (uint64_t)token * n + unit, gate = ((uint64_t)token * parts + slice) * n + unit;
        if constexpr (kind == LSTM) {
#pragma unroll
          for (uint32_t p = 0; p < parts; p++) sum[p] = slice_sum(sum[p] + (slice == p ? x : 0.0f));
          const float in = logistic(sum[0]), forget = logistic(sum[1]), fresh = hyperbolic(sum[2]);
          const float open = logistic(sum[3]);
          c = forget * c + in * fresh;
          h = open * hyperbolic(c);
          c = type::rounded(c);
          if (there) {
            type::store(a.gates, gate, chosen(slice, in, forget, fresh, open));
            if (slice == 1) type::store(a.cells, at, c);
          }
        } else if constexpr (kind == GRU) {
#pragma unroll
          for (uint32_t p = 0; p < 2; p++) sum[p] = slice_sum(sum[p] + (slice == p ? x + bias : 0.0f));
          const float inner = slice_sum(sum[2] + (slice == 2 ? bias : 0.0f));
          const float fixed = slice_sum(slice == 2 ? x : 0.0f);
          const float reset = logistic(sum[0]), update = logistic(sum[1]), fresh = hyperbolic(fixed + reset * inner);
          h = fresh + update * (h - fresh);
          if (summed) type::store(a.gates, gate, chosen(slice, reset, update, fresh, fresh));
          if (there && slice == 3) type::store(a.inner, at, inner);
        } else {
          const float total = slice_sum(sum[0] + x);
          h = !a.relu ? hyperbolic(total) : total <= 0 ? 0.0f : total; /* a NaN stays one */
        }
        h = type::rounded(h);
        if (there && slice == 0) {
          type::store(a.out, at, h);
          states[1 - turn][unit] = h;
        }
        turn = 1 - turn;
        group_barrier();
      }
      token = next, x = ahead;
    }
    group_barrier(); /* what follows writes states that slower threads may still read */
  }
}

template <typename type, cell kind>
RDNA_DEVICE void layer_backward(const layer_args &args) {
  constexpr uint32_t parts = parts_of<kind>::count;
  RDNA_SHARED static float sums[2][parts][LAYER_UNITS] __attribute__((aligned(16)));
  const layer_args &a = args;
  const uint32_t n = a.n, unit = thread_id() / LAYER_SLICES, slice = thread_id() % LAYER_SLICES;
  const bool there = unit < n, summed = there && slice < parts;
  float w[parts][own]; /* of the transposed weights */
#pragma unroll
  for (uint32_t p = 0; p < parts; p++) {
#pragma unroll
    for (uint32_t i = 0; i < own; i++) {
      const uint32_t k = state_of(slice, i);
      w[p][i] = there && k < n ? type::load(a.weight, (uint64_t)(p * n + k) * n + unit) : 0.0f;
    }
    if (slice == 0) sums[0][p][unit] = 0, sums[1][p][unit] = 0;
  }
  group_barrier();
  const int32_t by = a.reverse ? 1 : -1;
  uint32_t turn = 0;
  for (int32_t row = (int32_t)group_id_x(); row < a.rows; row += (int32_t)group_count_x()) {
    float dh = a.dh && there ? type::load(a.dh, (uint64_t)row * n + unit) : 0.0f, dc = 0;
    if (kind == LSTM && a.dc && there) dc = type::load(a.dc, (uint64_t)row * n + unit);
    int32_t t = a.reverse ? 0 : a.steps - 1;
    int32_t token = token_of(a, t, row), before = token_of(a, t + by, row);
    step_values now = load_step<type, kind>(a, token, before, row, unit);
    for (; t >= 0 && t < args.steps; t += by) {
      const layer_args &a = arguments_again(args);
      const int32_t further = token_of(a, t + 2 * by, row);
      const step_values ahead = load_step<type, kind>(a, before, further, row, unit);
      if (token >= 0) {
        const uint64_t gate = ((uint64_t)token * parts + slice) * n + unit;
        const float d = dh + now.dout;
        float mine, back, direct = 0; /* the thread's gradient of a sum, of its product with the state, of h itself */
        if constexpr (kind == LSTM) {
          const float in = now.gate[0], forget = now.gate[1], fresh = now.gate[2], open = now.gate[3];
          const float s = hyperbolic(now.after), of_c = d * open * (1 - s * s) + dc;
          mine = chosen(slice, of_c * fresh * in * (1 - in), of_c * now.before * forget * (1 - forget),
                        of_c * in * (1 - fresh * fresh), d * s * open * (1 - open));
          dc = of_c * forget;
          back = mine;
        } else if constexpr (kind == GRU) {
          const float reset = now.gate[0], update = now.gate[1], fresh = now.gate[2];
          const float of_fresh = d * (1 - update) * (1 - fresh * fresh);
          const float of_update = d * (now.before - fresh) * update * (1 - update);
          const float of_reset = of_fresh * now.after * reset * (1 - reset);
          mine = chosen(slice, of_reset, of_update, of_fresh, of_fresh);
          back = chosen(slice, of_reset, of_update, of_fresh * reset, of_fresh);
          direct = d * update;
        } else {
          mine = !a.relu ? d * (1 - now.after * now.after) : now.after <= 0 ? 0.0f : d;
          back = mine;
        }
        back = type::rounded(back);
        if (summed) {
          type::store(a.dsums, gate, mine);
          if (kind == GRU) type::store(a.dhidden, gate, back);
          sums[turn][slice][unit] = back;
        }
        group_barrier();
        float sum = 0;
#pragma unroll
        for (uint32_t i = 0; i < own; i++) {
#pragma unroll
          for (uint32_t p = 0; p < parts; p++) sum = fused(w[p][i], sums[turn][p][state_of(slice, i)], sum);
        }
        dh = slice_sum(sum) + direct;
        turn = 1 - turn;
      }
      token = before, before = further, now = ahead;
    }
    if (there && slice == 0) {
      type::store(a.dfirst, (uint64_t)row * n + unit, dh);
      if (kind == LSTM) type::store(a.dfirst_c, (uint64_t)row * n + unit, dc);
    }
  }
}

#define LAYER(type)                                                                                   \
  RDNA_KERNEL(256) lstm_layer_##type(struct layer_args a) { layer<type, LSTM>(a); }                   \
  RDNA_KERNEL(256) gru_layer_##type(struct layer_args a) { layer<type, GRU>(a); }                     \
  RDNA_KERNEL(256) rnn_layer_##type(struct layer_args a) { layer<type, RNN>(a); }                     \
  RDNA_KERNEL(256) lstm_layer_backward_##type(struct layer_args a) { layer_backward<type, LSTM>(a); } \
  RDNA_KERNEL(256) gru_layer_backward_##type(struct layer_args a) { layer_backward<type, GRU>(a); }   \
  RDNA_KERNEL(256) rnn_layer_backward_##type(struct layer_args a) { layer_backward<type, RNN>(a); }
LAYER(f32)
LAYER(f16)
LAYER(bf16)
