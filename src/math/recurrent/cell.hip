/* One step of an LSTM and its gradient; see cell_kernels.h. */
#include "math/recurrent/cell_kernels.h"

#include "kernel/arguments.h"
#include "kernel/prelude.h"
#include "kernel/scalar64.h"
#include "math/common/device/doubles.h"

RDNA_DEVICE float logistic(float x) { return scalar_sigmoid(x); }
RDNA_DEVICE double logistic(double x) { return scalar64_sigmoid(x); }
RDNA_DEVICE float hyperbolic(float x) { return scalar_tanh(x); }
RDNA_DEVICE double hyperbolic(double x) { return scalar64_tanh(x); }

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
    const acc dh = a.dh ? type::load(a.dh, row * (uint64_t)a.dh_at + j) : (acc)0;
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

#define CELL(type)                                                                   \
  RDNA_KERNEL(256) lstm_cell_##type(struct lstm_cell_args a) { lstm_cell<type>(a); } \
  RDNA_KERNEL(256) lstm_cell_backward_##type(struct lstm_cell_backward_args a) { lstm_cell_backward<type>(a); }
CELL(f32)
CELL(f16)
CELL(bf16)
CELL(f64)
