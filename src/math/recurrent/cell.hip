/* One step of an LSTM or GRU, and its gradient; see cell_kernels.h. */
#include "math/recurrent/cell_kernels.h"

#include "kernel/arguments.h"
#include "kernel/prelude.h"
#include "math/recurrent/cell_functions.h"

template <typename type>
RDNA_DEVICE void lstm_cell(const lstm_cell_args &args) {
  typedef typename computed<type>::in acc;
  const uint64_t n = (uint64_t)args.n, count = (uint64_t)args.rows * n;
  for (uint64_t i = (uint64_t)group_id_x() * CELL_THREADS + thread_id(); i < count;
       i += (uint64_t)group_count_x() * CELL_THREADS) {
    const lstm_cell_args &a = arguments_again_wide(args);
    const uint64_t row = i / n, j = i - row * n;
    acc sum[4];
#pragma unroll
    for (uint64_t k = 0; k < 4; k++) {
      const uint64_t at = k * n + j;
      sum[k] =
          type::load(a.input, row * (uint64_t)a.input_at + at) + type::load(a.hidden, row * (uint64_t)a.hidden_at + at);
      if (a.input_bias) sum[k] += type::load(a.input_bias, at);
      if (a.hidden_bias) sum[k] += type::load(a.hidden_bias, at);
    }
    const acc in = logistic(sum[0]), forget = logistic(sum[1]), cell = hyperbolic(sum[2]), out = logistic(sum[3]);
    const acc next = forget * type::load(a.c, row * (uint64_t)a.c_at + j) + in * cell;
    const uint64_t to = row * (uint64_t)a.gates_at + j;
    type::store(a.gates, to, in);
    type::store(a.gates, to + n, forget);
    type::store(a.gates, to + 2 * n, cell);
    type::store(a.gates, to + 3 * n, out);
    type::store(a.c_out, row * (uint64_t)a.c_out_at + j, next);
    type::store(a.h_out, row * (uint64_t)a.h_out_at + j, out * hyperbolic(next));
  }
}

template <typename type>
RDNA_DEVICE void lstm_cell_backward(const lstm_cell_backward_args &a) {
  typedef typename computed<type>::in acc;
  const uint64_t n = (uint64_t)a.n, count = (uint64_t)a.rows * n;
  for (uint64_t i = (uint64_t)group_id_x() * CELL_THREADS + thread_id(); i < count;
       i += (uint64_t)group_count_x() * CELL_THREADS) {
    const uint64_t row = i / n, j = i - row * n, at = row * (uint64_t)a.gates_at + j;
    const acc in = type::load(a.gates, at), forget = type::load(a.gates, at + n);
    const acc cell = type::load(a.gates, at + 2 * n), out = type::load(a.gates, at + 3 * n);
    const acc c = type::load(a.c, row * (uint64_t)a.c_at + j);
    const acc t = hyperbolic((acc)type::load(a.c_next, row * (uint64_t)a.c_next_at + j));
    acc dh = a.dh ? type::load(a.dh, row * (uint64_t)a.dh_at + j) : (acc)0;
    if (a.dout) dh += type::load(a.dout, row * (uint64_t)a.dout_at + j);
    const acc dc = a.dc ? type::load(a.dc, row * (uint64_t)a.dc_at + j) : (acc)0;
    const acc d = dh * out * (1 - t * t) + dc;
    const uint64_t to = row * (uint64_t)a.dgates_at + j;
    type::store(a.dgates, to, d * cell * in * (1 - in));
    type::store(a.dgates, to + n, d * c * forget * (1 - forget));
    type::store(a.dgates, to + 2 * n, d * in * (1 - cell * cell));
    type::store(a.dgates, to + 3 * n, dh * t * out * (1 - out));
    type::store(a.dc_out, row * (uint64_t)a.dc_out_at + j, d * forget);
  }
}

template <typename type>
RDNA_DEVICE void gru_cell(const gru_cell_args &args) {
  typedef typename computed<type>::in acc;
  const uint64_t n = (uint64_t)args.n, count = (uint64_t)args.rows * n;
  for (uint64_t i = (uint64_t)group_id_x() * CELL_THREADS + thread_id(); i < count;
       i += (uint64_t)group_count_x() * CELL_THREADS) {
    const gru_cell_args &a = arguments_again_wide(args);
    const uint64_t row = i / n, j = i - row * n;
    acc x[3], y[3];
#pragma unroll
    for (uint64_t k = 0; k < 3; k++) {
      const uint64_t at = k * n + j;
      x[k] = type::load(a.input, row * (uint64_t)a.input_at + at);
      y[k] = type::load(a.hidden, row * (uint64_t)a.hidden_at + at);
      if (a.input_bias) x[k] += type::load(a.input_bias, at);
      if (a.hidden_bias) y[k] += type::load(a.hidden_bias, at);
    }
    const acc h = type::load(a.h, row * (uint64_t)a.h_at + j);
    const acc reset = logistic(x[0] + y[0]), update = logistic(x[1] + y[1]), fresh = hyperbolic(x[2] + reset * y[2]);
    const uint64_t to = row * (uint64_t)a.gates_at + j;
    type::store(a.gates, to, reset);
    type::store(a.gates, to + n, update);
    type::store(a.gates, to + 2 * n, fresh);
    type::store(a.inner, row * (uint64_t)a.inner_at + j, y[2]);
    type::store(a.h_out, row * (uint64_t)a.h_out_at + j, fresh + update * (h - fresh));
  }
}

template <typename type>
RDNA_DEVICE void gru_cell_backward(const gru_cell_backward_args &a) {
  typedef typename computed<type>::in acc;
  const uint64_t n = (uint64_t)a.n, count = (uint64_t)a.rows * n;
  for (uint64_t i = (uint64_t)group_id_x() * CELL_THREADS + thread_id(); i < count;
       i += (uint64_t)group_count_x() * CELL_THREADS) {
    const uint64_t row = i / n, j = i - row * n, at = row * (uint64_t)a.gates_at + j;
    const acc reset = type::load(a.gates, at), update = type::load(a.gates, at + n);
    const acc fresh = type::load(a.gates, at + 2 * n), inner = type::load(a.inner, row * (uint64_t)a.inner_at + j);
    const acc h = type::load(a.h, row * (uint64_t)a.h_at + j);
    acc d = a.dh ? type::load(a.dh, row * (uint64_t)a.dh_at + j) : (acc)0;
    if (a.dout) d += type::load(a.dout, row * (uint64_t)a.dout_at + j);
    const acc d_fresh = d * (1 - update) * (1 - fresh * fresh), d_update = d * (h - fresh) * update * (1 - update);
    const acc d_reset = d_fresh * inner * reset * (1 - reset);
    const uint64_t in = row * (uint64_t)a.dinput_at + j, hidden = row * (uint64_t)a.dhidden_at + j;
    type::store(a.dinput, in, d_reset);
    type::store(a.dinput, in + n, d_update);
    type::store(a.dinput, in + 2 * n, d_fresh);
    type::store(a.dhidden, hidden, d_reset);
    type::store(a.dhidden, hidden + n, d_update);
    type::store(a.dhidden, hidden + 2 * n, d_fresh * reset);
    type::store(a.dh_out, row * (uint64_t)a.dh_out_at + j, d * update);
  }
}

template <typename type>
RDNA_DEVICE void rnn_cell_backward(const rnn_cell_backward_args &a) {
  typedef typename computed<type>::in acc;
  const uint64_t n = (uint64_t)a.n, count = (uint64_t)a.rows * n;
  for (uint64_t i = (uint64_t)group_id_x() * CELL_THREADS + thread_id(); i < count;
       i += (uint64_t)group_count_x() * CELL_THREADS) {
    const uint64_t row = i / n, j = i - row * n;
    acc d = a.dh ? type::load(a.dh, row * (uint64_t)a.dh_at + j) : (acc)0;
    if (a.dout) d += type::load(a.dout, row * (uint64_t)a.dout_at + j);
    const acc h = type::load(a.h_out, row * (uint64_t)a.h_out_at + j);
    const acc slope = !a.relu ? 1 - h * h : h <= 0 ? (acc)0 : (acc)1; /* of a NaN: 1 */
    type::store(a.dsum, row * (uint64_t)a.dsum_at + j, a.relu && !slope ? (acc)0 : d * slope);
  }
}

#define CELL(type)                                                                                              \
  RDNA_KERNEL(256) lstm_cell_##type(struct lstm_cell_args a) { lstm_cell<type>(a); }                            \
  RDNA_KERNEL(256) lstm_cell_backward_##type(struct lstm_cell_backward_args a) { lstm_cell_backward<type>(a); } \
  RDNA_KERNEL(256) gru_cell_##type(struct gru_cell_args a) { gru_cell<type>(a); }                               \
  RDNA_KERNEL(256) gru_cell_backward_##type(struct gru_cell_backward_args a) { gru_cell_backward<type>(a); }    \
  RDNA_KERNEL(256) rnn_cell_backward_##type(struct rnn_cell_backward_args a) { rnn_cell_backward<type>(a); }
CELL(f32)
CELL(f16)
CELL(bf16)
CELL(f64)
