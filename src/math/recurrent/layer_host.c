#include "math/recurrent/layer_host.h"

typedef struct layer {
  const struct layer_args *a;
  int kind;
} layer;

/* Sums of a step go with |h|, the state before it; what it leaves there is what it stores. */
#define LAYER(type, acc, logistic, hyperbolic)                                                                        \
  static void step_##type(const struct layer_args *a, int kind, int64_t token, acc *h, acc *c) {                      \
    const int64_t n = a->n, parts = parts_of[kind];                                                                   \
    const void *sums = kind == RNN ? a->out : a->gates;                                                               \
    acc next[LAYER_UNITS];                                                                                            \
    for (int64_t j = 0; j < n; j++) {                                                                                 \
      acc x[4], y[4];                                                                                                 \
      for (int64_t p = 0; p < parts; p++) {                                                                           \
        y[p] = kind == GRU && a->bias ? LOAD_##type(a->bias, p * n + j) : 0;                                          \
        for (int64_t k = 0; k < n; k++) y[p] += LOAD_##type(a->weight, (p * n + j) * n + k) * h[k];                   \
        x[p] = LOAD_##type(sums, (token * parts + p) * n + j);                                                        \
      }                                                                                                               \
      const int64_t at = token * n + j, gate = token * parts * n + j;                                                 \
      if (kind == LSTM) {                                                                                             \
        const acc in = logistic(x[0] + y[0]), forget = logistic(x[1] + y[1]), fresh = hyperbolic(x[2] + y[2]);        \
        const acc open = logistic(x[3] + y[3]), cell = forget * c[j] + in * fresh;                                    \
        STORE_##type(a->gates, gate, in);                                                                             \
        STORE_##type(a->gates, gate + n, forget);                                                                     \
        STORE_##type(a->gates, gate + 2 * n, fresh);                                                                  \
        STORE_##type(a->gates, gate + 3 * n, open);                                                                   \
        STORE_##type(a->cells, at, cell);                                                                             \
        STORE_##type(a->out, at, open *hyperbolic(cell));                                                             \
        c[j] = LOAD_##type(a->cells, at);                                                                             \
      } else if (kind == GRU) {                                                                                       \
        const acc reset = logistic(x[0] + y[0]), update = logistic(x[1] + y[1]);                                      \
        const acc fresh = hyperbolic(x[2] + reset * y[2]);                                                            \
        STORE_##type(a->gates, gate, reset);                                                                          \
        STORE_##type(a->gates, gate + n, update);                                                                     \
        STORE_##type(a->gates, gate + 2 * n, fresh);                                                                  \
        STORE_##type(a->inner, at, y[2]);                                                                             \
        STORE_##type(a->out, at, fresh + update * (h[j] - fresh));                                                    \
      } else {                                                                                                        \
        const acc sum = x[0] + y[0];                                                                                  \
        STORE_##type(a->out, at, !a->relu ? hyperbolic(sum) : sum <= 0 ? 0 : sum);                                    \
      }                                                                                                               \
      next[j] = LOAD_##type(a->out, at);                                                                              \
    }                                                                                                                 \
    for (int64_t j = 0; j < n; j++) h[j] = next[j];                                                                   \
  }                                                                                                                   \
  static void rows_##type(void *context, int64_t begin, int64_t end) {                                                \
    const layer *l = context;                                                                                         \
    const struct layer_args *a = l->a;                                                                                \
    for (int64_t row = begin; row < end; row++) {                                                                     \
      acc h[LAYER_UNITS], c[LAYER_UNITS];                                                                             \
      for (int64_t j = 0; j < a->n; j++) {                                                                            \
        h[j] = LOAD_##type(a->h, row * a->n + j);                                                                     \
        c[j] = l->kind == LSTM ? LOAD_##type(a->c, row * a->n + j) : 0;                                               \
      }                                                                                                               \
      for (int64_t i = 0; i < a->steps; i++) {                                                                        \
        const int64_t t = a->reverse ? a->steps - 1 - i : i;                                                          \
        const int64_t token = token_of(a, t, row);                                                                    \
        if (token >= 0) step_##type(a, l->kind, token, h, c);                                                         \
      }                                                                                                               \
    }                                                                                                                 \
  }                                                                                                                   \
  /* |before|: the token of the step before, -1 for the first state's. dh and dc become those of the states there. */ \
  static void back_##type(const struct layer_args *a, int kind, int64_t row, int64_t token, int64_t before, acc *dh,  \
                          acc *dc) {                                                                                  \
    const int64_t n = a->n, parts = parts_of[kind];                                                                   \
    acc direct[LAYER_UNITS], back[4 * LAYER_UNITS];                                                                   \
    for (int64_t j = 0; j < n; j++) {                                                                                 \
      const int64_t at = token * n + j, gate = token * parts * n + j, first = row * n + j, from = before * n + j;     \
      const acc d = dh[j] + (a->dout ? LOAD_##type(a->dout, at) : 0);                                                 \
      acc g[4] = {0}, of[4] = {0};                                                                                    \
      for (int64_t p = 0; kind != RNN && p < parts; p++) g[p] = LOAD_##type(a->gates, gate + p * n);                  \
      direct[j] = 0;                                                                                                  \
      acc reset = 1;                                                                                                  \
      if (kind == LSTM) {                                                                                             \
        const acc c = before >= 0 ? LOAD_##type(a->cells, from) : LOAD_##type(a->c, first);                           \
        const acc s = hyperbolic(LOAD_##type(a->cells, at)), of_c = d * g[3] * (1 - s * s) + dc[j];                   \
        of[0] = of_c * g[2] * g[0] * (1 - g[0]);                                                                      \
        of[1] = of_c * c * g[1] * (1 - g[1]);                                                                         \
        of[2] = of_c * g[0] * (1 - g[2] * g[2]);                                                                      \
        of[3] = d * s * g[3] * (1 - g[3]);                                                                            \
        dc[j] = of_c * g[1];                                                                                          \
      } else if (kind == GRU) {                                                                                       \
        const acc h = before >= 0 ? LOAD_##type(a->out, from) : LOAD_##type(a->h, first);                             \
        of[2] = d * (1 - g[1]) * (1 - g[2] * g[2]);                                                                   \
        of[1] = d * (h - g[2]) * g[1] * (1 - g[1]);                                                                   \
        of[0] = of[2] * LOAD_##type(a->inner, at) * g[0] * (1 - g[0]);                                                \
        reset = g[0];                                                                                                 \
        direct[j] = d * g[1];                                                                                         \
      } else {                                                                                                        \
        const acc h = LOAD_##type(a->out, at);                                                                        \
        of[0] = !a->relu ? d * (1 - h * h) : h <= 0 ? 0 : d;                                                          \
      }                                                                                                               \
      for (int64_t p = 0; p < parts; p++) {                                                                           \
        const int64_t to = gate + p * n;                                                                              \
        STORE_##type(a->dsums, to, of[p]);                                                                            \
        if (kind == GRU) STORE_##type(a->dhidden, to, p == 2 ? of[p] * reset : of[p]);                                \
        back[p * n + j] = LOAD_##type(kind == GRU ? a->dhidden : a->dsums, to);                                       \
      }                                                                                                               \
    }                                                                                                                 \
    for (int64_t k = 0; k < n; k++) {                                                                                 \
      acc sum = 0;                                                                                                    \
      for (int64_t i = 0; i < parts * n; i++) sum += LOAD_##type(a->weight, i * n + k) * back[i];                     \
      dh[k] = sum + direct[k];                                                                                        \
    }                                                                                                                 \
  }                                                                                                                   \
  static void rows_back_##type(void *context, int64_t begin, int64_t end) {                                           \
    const layer *l = context;                                                                                         \
    const struct layer_args *a = l->a;                                                                                \
    for (int64_t row = begin; row < end; row++) {                                                                     \
      acc dh[LAYER_UNITS], dc[LAYER_UNITS];                                                                           \
      for (int64_t j = 0; j < a->n; j++) {                                                                            \
        dh[j] = a->dh ? LOAD_##type(a->dh, row * a->n + j) : 0;                                                       \
        dc[j] = a->dc ? LOAD_##type(a->dc, row * a->n + j) : 0;                                                       \
      }                                                                                                               \
      for (int64_t i = 0; i < a->steps; i++) {                                                                        \
        const int64_t t = a->reverse ? i : a->steps - 1 - i, last = a->reverse ? t + 1 : t - 1;                       \
        const int64_t token = token_of(a, t, row);                                                                    \
        const int64_t before = token_of(a, last, row);                                                                \
        if (token >= 0) back_##type(a, l->kind, row, token, before, dh, dc);                                          \
      }                                                                                                               \
      for (int64_t j = 0; j < a->n; j++) {                                                                            \
        STORE_##type(a->dfirst, row * a->n + j, dh[j]);                                                               \
        if (l->kind == LSTM) STORE_##type(a->dfirst_c, row * a->n + j, dc[j]);                                        \
      }                                                                                                               \
    }                                                                                                                 \
  }                                                                                                                   \
  KERNELS(lstm, LSTM, type) KERNELS(gru, GRU, type) KERNELS(rnn, RNN, type)
#define KERNELS(name, kind, type)                                                         \
  void RDNA_HOST_KERNEL(name##_layer_##type)(const void *args, rdna_grid grid) {          \
    layer l = {args, kind};                                                               \
    rdna__parallel_for(l.a->rows, 1, rows_##type, &l);                                    \
  }                                                                                       \
  void RDNA_HOST_KERNEL(name##_layer_backward_##type)(const void *args, rdna_grid grid) { \
    layer l = {args, kind};                                                               \
    rdna__parallel_for(l.a->rows, 1, rows_back_##type, &l);                               \
  }
LAYER(f32, float, scalar_sigmoid, scalar_tanh)
LAYER(f16, float, scalar_sigmoid, scalar_tanh)
LAYER(bf16, float, scalar_sigmoid, scalar_tanh)
