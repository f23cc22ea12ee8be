#include "kernel/host.h"
#include "kernel/scalar64.h"
#include "math/recurrent/cell_kernels.h"

/* Rows that a thread takes at least, so that a piece is worth its start. */
static int64_t row_grain(int64_t n) { return 2048 / (n + 1) + 1; }

#define LOAD_f32(p, i) (((const float *)(p))[i])
#define LOAD_f16(p, i) f16_to_f32(((const uint16_t *)(p))[i])
#define LOAD_bf16(p, i) bf16_to_f32(((const uint16_t *)(p))[i])
#define LOAD_f64(p, i) (((const double *)(p))[i])
#define STORE_f32(p, i, v) (((float *)(p))[i] = (v))
#define STORE_f16(p, i, v) (((uint16_t *)(p))[i] = f32_to_f16(v))
#define STORE_bf16(p, i, v) (((uint16_t *)(p))[i] = f32_to_bf16(v))
#define STORE_f64(p, i, v) (((double *)(p))[i] = (v))

#define LSTM(type, acc, logistic, hyperbolic)                                                                        \
  static void lstm_rows_##type(void *context, int64_t begin, int64_t end) {                                          \
    const struct lstm_cell_args *a = context;                                                                        \
    const int64_t n = a->n;                                                                                          \
    for (int64_t i = begin * n; i < end * n; i++) {                                                                  \
      const int64_t row = i / n, j = i - row * n;                                                                    \
      acc sum[4];                                                                                                    \
      for (int64_t k = 0; k < 4; k++) {                                                                              \
        const int64_t at = k * n + j;                                                                                \
        sum[k] = LOAD_##type(a->input, row * a->input_at + at) + LOAD_##type(a->hidden, row * a->hidden_at + at);    \
        if (a->input_bias) sum[k] += LOAD_##type(a->input_bias, at);                                                 \
        if (a->hidden_bias) sum[k] += LOAD_##type(a->hidden_bias, at);                                               \
      }                                                                                                              \
      const acc in = logistic(sum[0]), forget = logistic(sum[1]), cell = hyperbolic(sum[2]), out = logistic(sum[3]); \
      const acc next = forget * LOAD_##type(a->c, row * a->c_at + j) + in * cell;                                    \
      const int64_t to = row * a->gates_at + j;                                                                      \
      STORE_##type(a->gates, to, in);                                                                                \
      STORE_##type(a->gates, to + n, forget);                                                                        \
      STORE_##type(a->gates, to + 2 * n, cell);                                                                      \
      STORE_##type(a->gates, to + 3 * n, out);                                                                       \
      STORE_##type(a->c_out, row * a->c_out_at + j, next);                                                           \
      STORE_##type(a->h_out, row * a->h_out_at + j, out * hyperbolic(next));                                         \
    }                                                                                                                \
  }                                                                                                                  \
  static void lstm_backward_rows_##type(void *context, int64_t begin, int64_t end) {                                 \
    const struct lstm_cell_backward_args *a = context;                                                               \
    const int64_t n = a->n;                                                                                          \
    for (int64_t i = begin * n; i < end * n; i++) {                                                                  \
      const int64_t row = i / n, j = i - row * n, at = row * a->gates_at + j;                                        \
      const acc in = LOAD_##type(a->gates, at), forget = LOAD_##type(a->gates, at + n);                              \
      const acc cell = LOAD_##type(a->gates, at + 2 * n), out = LOAD_##type(a->gates, at + 3 * n);                   \
      const acc c = LOAD_##type(a->c, row * a->c_at + j);                                                            \
      const acc t = hyperbolic(LOAD_##type(a->c_next, row * a->c_next_at + j));                                      \
      acc dh = a->dh ? LOAD_##type(a->dh, row * a->dh_at + j) : 0;                                                   \
      if (a->dout) dh += LOAD_##type(a->dout, row * a->dout_at + j);                                                 \
      const acc dc = a->dc ? LOAD_##type(a->dc, row * a->dc_at + j) : 0;                                             \
      const acc d = dh * out * (1 - t * t) + dc;                                                                     \
      const int64_t to = row * a->dgates_at + j;                                                                     \
      STORE_##type(a->dgates, to, d *cell *in * (1 - in));                                                           \
      STORE_##type(a->dgates, to + n, d * c * forget * (1 - forget));                                                \
      STORE_##type(a->dgates, to + 2 * n, d * in * (1 - cell * cell));                                               \
      STORE_##type(a->dgates, to + 3 * n, dh * t * out * (1 - out));                                                 \
      STORE_##type(a->dc_out, row * a->dc_out_at + j, d * forget);                                                   \
    }                                                                                                                \
  }                                                                                                                  \
  void RDNA_HOST_KERNEL(lstm_cell_##type)(const void *args, rdna_grid grid) {                                        \
    struct lstm_cell_args a = *(const struct lstm_cell_args *)args;                                                  \
    rdna__parallel_for(a.rows, row_grain(a.n), lstm_rows_##type, &a);                                                \
  }                                                                                                                  \
  void RDNA_HOST_KERNEL(lstm_cell_backward_##type)(const void *args, rdna_grid grid) {                               \
    struct lstm_cell_backward_args a = *(const struct lstm_cell_backward_args *)args;                                \
    rdna__parallel_for(a.rows, row_grain(a.n), lstm_backward_rows_##type, &a);                                       \
  }
LSTM(f32, float, scalar_sigmoid, scalar_tanh)
LSTM(f16, float, scalar_sigmoid, scalar_tanh)
LSTM(bf16, float, scalar_sigmoid, scalar_tanh)
LSTM(f64, double, scalar64_sigmoid, scalar64_tanh)

#define GRU(type, acc, logistic, hyperbolic)                                                                          \
  static void gru_rows_##type(void *context, int64_t begin, int64_t end) {                                            \
    const struct gru_cell_args *a = context;                                                                          \
    const int64_t n = a->n;                                                                                           \
    for (int64_t i = begin * n; i < end * n; i++) {                                                                   \
      const int64_t row = i / n, j = i - row * n;                                                                     \
      acc x[3], y[3];                                                                                                 \
      for (int64_t k = 0; k < 3; k++) {                                                                               \
        const int64_t at = k * n + j;                                                                                 \
        x[k] = LOAD_##type(a->input, row * a->input_at + at), y[k] = LOAD_##type(a->hidden, row * a->hidden_at + at); \
        if (a->input_bias) x[k] += LOAD_##type(a->input_bias, at);                                                    \
        if (a->hidden_bias) y[k] += LOAD_##type(a->hidden_bias, at);                                                  \
      }                                                                                                               \
      const acc h = LOAD_##type(a->h, row * a->h_at + j), reset = logistic(x[0] + y[0]);                              \
      const acc update = logistic(x[1] + y[1]), fresh = hyperbolic(x[2] + reset * y[2]);                              \
      const int64_t to = row * a->gates_at + j;                                                                       \
      STORE_##type(a->gates, to, reset);                                                                              \
      STORE_##type(a->gates, to + n, update);                                                                         \
      STORE_##type(a->gates, to + 2 * n, fresh);                                                                      \
      STORE_##type(a->inner, row * a->inner_at + j, y[2]);                                                            \
      STORE_##type(a->h_out, row * a->h_out_at + j, fresh + update * (h - fresh));                                    \
    }                                                                                                                 \
  }                                                                                                                   \
  static void gru_backward_rows_##type(void *context, int64_t begin, int64_t end) {                                   \
    const struct gru_cell_backward_args *a = context;                                                                 \
    const int64_t n = a->n;                                                                                           \
    for (int64_t i = begin * n; i < end * n; i++) {                                                                   \
      const int64_t row = i / n, j = i - row * n, at = row * a->gates_at + j;                                         \
      const acc reset = LOAD_##type(a->gates, at), update = LOAD_##type(a->gates, at + n);                            \
      const acc fresh = LOAD_##type(a->gates, at + 2 * n), inner = LOAD_##type(a->inner, row * a->inner_at + j);      \
      const acc h = LOAD_##type(a->h, row * a->h_at + j);                                                             \
      acc d = a->dh ? LOAD_##type(a->dh, row * a->dh_at + j) : 0;                                                     \
      if (a->dout) d += LOAD_##type(a->dout, row * a->dout_at + j);                                                   \
      const acc d_fresh = d * (1 - update) * (1 - fresh * fresh);                                                     \
      const acc d_update = d * (h - fresh) * update * (1 - update), d_reset = d_fresh * inner * reset * (1 - reset);  \
      const int64_t in = row * a->dinput_at + j, hidden = row * a->dhidden_at + j;                                    \
      STORE_##type(a->dinput, in, d_reset);                                                                           \
      STORE_##type(a->dinput, in + n, d_update);                                                                      \
      STORE_##type(a->dinput, in + 2 * n, d_fresh);                                                                   \
      STORE_##type(a->dhidden, hidden, d_reset);                                                                      \
      STORE_##type(a->dhidden, hidden + n, d_update);                                                                 \
      STORE_##type(a->dhidden, hidden + 2 * n, d_fresh * reset);                                                      \
      STORE_##type(a->dh_out, row * a->dh_out_at + j, d * update);                                                    \
    }                                                                                                                 \
  }                                                                                                                   \
  void RDNA_HOST_KERNEL(gru_cell_##type)(const void *args, rdna_grid grid) {                                          \
    struct gru_cell_args a = *(const struct gru_cell_args *)args;                                                     \
    rdna__parallel_for(a.rows, row_grain(a.n), gru_rows_##type, &a);                                                  \
  }                                                                                                                   \
  void RDNA_HOST_KERNEL(gru_cell_backward_##type)(const void *args, rdna_grid grid) {                                 \
    struct gru_cell_backward_args a = *(const struct gru_cell_backward_args *)args;                                   \
    rdna__parallel_for(a.rows, row_grain(a.n), gru_backward_rows_##type, &a);                                         \
  }
GRU(f32, float, scalar_sigmoid, scalar_tanh)
GRU(f16, float, scalar_sigmoid, scalar_tanh)
GRU(bf16, float, scalar_sigmoid, scalar_tanh)
GRU(f64, double, scalar64_sigmoid, scalar64_tanh)

#define RNN(type, acc)                                                                    \
  static void rnn_backward_rows_##type(void *context, int64_t begin, int64_t end) {       \
    const struct rnn_cell_backward_args *a = context;                                     \
    const int64_t n = a->n;                                                               \
    for (int64_t i = begin * n; i < end * n; i++) {                                       \
      const int64_t row = i / n, j = i - row * n;                                         \
      acc d = a->dh ? LOAD_##type(a->dh, row * a->dh_at + j) : 0;                         \
      if (a->dout) d += LOAD_##type(a->dout, row * a->dout_at + j);                       \
      const acc h = LOAD_##type(a->h_out, row * a->h_out_at + j);                         \
      const acc slope = !a->relu ? 1 - h * h : !(h <= 0);                                 \
      STORE_##type(a->dsum, row * a->dsum_at + j, a->relu && slope == 0 ? 0 : d * slope); \
    }                                                                                     \
  }                                                                                       \
  void RDNA_HOST_KERNEL(rnn_cell_backward_##type)(const void *args, rdna_grid grid) {     \
    struct rnn_cell_backward_args a = *(const struct rnn_cell_backward_args *)args;       \
    rdna__parallel_for(a.rows, row_grain(a.n), rnn_backward_rows_##type, &a);             \
  }
RNN(f32, float)
RNN(f16, float)
RNN(bf16, float)
RNN(f64, double)
