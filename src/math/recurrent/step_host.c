#include "math/recurrent/step_kernels.h"

#include <stdbool.h>

#include "math/recurrent/layer_host.h"

/* Blocks of 16 rows and units; a row's value k stands beside those of the other rows, so that a sum of 16 rows is one
 * vector. */
enum { ROWS = 16, UNITS = 16, PIECE = 256, MOST_COLUMNS = 4 * UNITS };

typedef struct step {
  const struct step_args *args;
  int kind;
  int64_t unit_blocks;
} step;

static int64_t blocks(int64_t count, int64_t of) { return (count + of - 1) / of; }

#define STEP(type)                                                                                                     \
  /* sum(column, row) = the sum over |depth| values, of rows at |from| and of columns that begin at |columns|. */      \
  static void product_##type(const void *const from[ROWS], const void *weight, const int64_t *columns, int64_t count,  \
                             int64_t depth, float sum[][ROWS]) {                                                       \
    float piece[PIECE][ROWS];                                                                                          \
    for (int64_t c = 0; c < count; c++)                                                                                \
      for (int64_t r = 0; r < ROWS; r++) sum[c][r] = 0;                                                                \
    for (int64_t first = 0; first < depth; first += PIECE) {                                                           \
      const int64_t values = depth - first < PIECE ? depth - first : PIECE;                                            \
      for (int64_t r = 0; r < ROWS; r++)                                                                               \
        for (int64_t k = 0; k < values; k++) piece[k][r] = from[r] ? LOAD_##type(from[r], first + k) : 0;              \
      for (int64_t c = 0; c < count; c++) {                                                                            \
        for (int64_t k = 0; k < values; k++) {                                                                         \
          const float w = LOAD_##type(weight, columns[c] + first + k);                                                 \
          for (int64_t r = 0; r < ROWS; r++) sum[c][r] += w * piece[k][r];                                             \
        }                                                                                                              \
      }                                                                                                                \
    }                                                                                                                  \
  }                                                                                                                    \
  static const void *row_##type(const void *p, int64_t row, int64_t width) {                                           \
    return (const char *)p + row * width * (int64_t)sizeof(STORED_##type);                                             \
  }                                                                                                                    \
  /* |y|: a row's sums of the states, |stride| from gate to gate. |before|: the token of the step before, or -1. */    \
  static void cell_##type(const struct layer_args *a, int kind, int64_t row, int64_t token, int64_t before,            \
                          int64_t unit, const float *y, int64_t stride) {                                              \
    const int64_t n = a->n, parts = parts_of[kind], at = token * n + unit, gate = token * parts * n + unit;            \
    const int64_t first = row * n + unit, later = before * n + unit;                                                   \
    float x[4];                                                                                                        \
    for (int64_t p = 0; p < parts; p++)                                                                                \
      x[p] = LOAD_##type(kind == RNN ? a->out : a->gates, gate + p * n) + (kind == GRU && p == 2 ? 0 : y[p * stride]); \
    if (kind == LSTM) {                                                                                                \
      const float was = before >= 0 ? LOAD_##type(a->cells, later) : LOAD_##type(a->c, first);                         \
      const float in = scalar_sigmoid(x[0]), forget = scalar_sigmoid(x[1]), fresh = scalar_tanh(x[2]);                 \
      const float open = scalar_sigmoid(x[3]), c = forget * was + in * fresh;                                          \
      STORE_##type(a->gates, gate, in);                                                                                \
      STORE_##type(a->gates, gate + n, forget);                                                                        \
      STORE_##type(a->gates, gate + 2 * n, fresh);                                                                     \
      STORE_##type(a->gates, gate + 3 * n, open);                                                                      \
      STORE_##type(a->cells, at, c);                                                                                   \
      STORE_##type(a->out, at, open *scalar_tanh(c));                                                                  \
    } else if (kind == GRU) {                                                                                          \
      const float h = before >= 0 ? LOAD_##type(a->out, later) : LOAD_##type(a->h, first);                             \
      float bias[3] = {0, 0, 0};                                                                                       \
      for (int64_t p = 0; a->bias && p < 3; p++) bias[p] = LOAD_##type(a->bias, p * n + unit);                         \
      const float reset = scalar_sigmoid(x[0] + bias[0]), update = scalar_sigmoid(x[1] + bias[1]);                     \
      const float inner = y[2 * stride] + bias[2], fresh = scalar_tanh(x[2] + reset * inner);                          \
      STORE_##type(a->gates, gate, reset);                                                                             \
      STORE_##type(a->gates, gate + n, update);                                                                        \
      STORE_##type(a->gates, gate + 2 * n, fresh);                                                                     \
      STORE_##type(a->inner, at, inner);                                                                               \
      STORE_##type(a->out, at, fresh + update * (h - fresh));                                                          \
    } else {                                                                                                           \
      STORE_##type(a->out, at, !a->relu ? scalar_tanh(x[0]) : x[0] <= 0 ? 0 : x[0]);                                   \
    }                                                                                                                  \
  }                                                                                                                    \
  static void blocks_##type(void *context, int64_t begin, int64_t end) {                                               \
    const step *s = context;                                                                                           \
    const struct layer_args *a = &s->args->layer;                                                                      \
    const int64_t n = a->n, parts = parts_of[s->kind], t = s->args->step, last = a->reverse ? t + 1 : t - 1;           \
    float sum[MOST_COLUMNS][ROWS];                                                                                     \
    for (int64_t i = begin; i < end; i++) {                                                                            \
      const int64_t row = i / s->unit_blocks * ROWS, unit = i % s->unit_blocks * UNITS;                                \
      const int64_t units = n - unit < UNITS ? n - unit : UNITS;                                                       \
      int64_t tokens[ROWS], befores[ROWS], columns[MOST_COLUMNS];                                                      \
      const void *from[ROWS];                                                                                          \
      for (int64_t r = 0; r < ROWS; r++) {                                                                             \
        tokens[r] = row + r < a->rows ? token_of(a, t, row + r) : -1, befores[r] = token_of(a, last, row + r);         \
        from[r] = befores[r] >= 0 ? row_##type(a->out, befores[r], n) : row_##type(a->h, row + r, n);                  \
        if (tokens[r] < 0) from[r] = NULL;                                                                             \
      }                                                                                                                \
      for (int64_t c = 0; c < parts * units; c++) columns[c] = (c / units * n + unit + c % units) * n;                 \
      product_##type(from, a->weight, columns, parts *units, n, sum);                                                  \
      for (int64_t u = 0; u < units; u++)                                                                              \
        for (int64_t r = 0; r < ROWS; r++)                                                                             \
          if (tokens[r] >= 0)                                                                                          \
            cell_##type(a, s->kind, row + r, tokens[r], befores[r], unit + u, &sum[u][r], units * ROWS);               \
    }                                                                                                                  \
  }                                                                                                                    \
  /* dh: of h, but for the layer's output. |before|: the token of the step before, or -1. */                           \
  static void cell_back_##type(const struct layer_args *a, int kind, int64_t row, int64_t token, int64_t before,       \
                               int64_t unit, float dh) {                                                               \
    const int64_t n = a->n, at = row * n + unit, to = token * n + unit, gate = token * parts_of[kind] * n + unit;      \
    const int64_t later = before * n + unit;                                                                           \
    const float dc = kind == LSTM && a->dc ? LOAD_##type(a->dc, at) : 0;                                               \
    if (token < 0) {                                                                                                   \
      STORE_##type(a->dfirst, at, dh);                                                                                 \
      if (kind == LSTM) STORE_##type(a->dfirst_c, at, dc);                                                             \
      return;                                                                                                          \
    }                                                                                                                  \
    const float d = dh + (a->dout ? LOAD_##type(a->dout, to) : 0);                                                     \
    float g[4] = {0};                                                                                                  \
    for (int64_t p = 0; kind != RNN && p < parts_of[kind]; p++) g[p] = LOAD_##type(a->gates, gate + p * n);            \
    if (kind == LSTM) {                                                                                                \
      const float c = before >= 0 ? LOAD_##type(a->cells, later) : LOAD_##type(a->c, at);                              \
      const float s = scalar_tanh(LOAD_##type(a->cells, to)), of_c = d * g[3] * (1 - s * s) + dc;                      \
      STORE_##type(a->dsums, gate, of_c *g[2] * g[0] * (1 - g[0]));                                                    \
      STORE_##type(a->dsums, gate + n, of_c * c * g[1] * (1 - g[1]));                                                  \
      STORE_##type(a->dsums, gate + 2 * n, of_c * g[0] * (1 - g[2] * g[2]));                                           \
      STORE_##type(a->dsums, gate + 3 * n, d * s * g[3] * (1 - g[3]));                                                 \
      STORE_##type(a->dfirst_c, at, of_c *g[1]);                                                                       \
    } else if (kind == GRU) {                                                                                          \
      const float h = before >= 0 ? LOAD_##type(a->out, later) : LOAD_##type(a->h, at);                                \
      const float of_fresh = d * (1 - g[1]) * (1 - g[2] * g[2]), of_update = d * (h - g[2]) * g[1] * (1 - g[1]);       \
      const float of_reset = of_fresh * LOAD_##type(a->inner, to) * g[0] * (1 - g[0]);                                 \
      STORE_##type(a->dsums, gate, of_reset);                                                                          \
      STORE_##type(a->dsums, gate + n, of_update);                                                                     \
      STORE_##type(a->dsums, gate + 2 * n, of_fresh);                                                                  \
      STORE_##type(a->dhidden, gate, of_reset);                                                                        \
      STORE_##type(a->dhidden, gate + n, of_update);                                                                   \
      STORE_##type(a->dhidden, gate + 2 * n, of_fresh * g[0]);                                                         \
      STORE_##type(a->dfirst, at, d *g[1]);                                                                            \
    } else {                                                                                                           \
      const float h = LOAD_##type(a->out, to);                                                                         \
      STORE_##type(a->dsums, gate, !a->relu ? d * (1 - h * h) : h <= 0 ? 0 : d);                                       \
    }                                                                                                                  \
  }                                                                                                                    \
  static void blocks_back_##type(void *context, int64_t begin, int64_t end) {                                          \
    const step *s = context;                                                                                           \
    const struct layer_args *a = &s->args->layer;                                                                      \
    const int64_t n = a->n, depth = parts_of[s->kind] * n, t = s->args->step, forward = a->reverse ? -1 : 1;           \
    float sum[MOST_COLUMNS][ROWS];                                                                                     \
    for (int64_t i = begin; i < end; i++) {                                                                            \
      const int64_t row = i / s->unit_blocks * ROWS, unit = i % s->unit_blocks * UNITS;                                \
      const int64_t units = n - unit < UNITS ? n - unit : UNITS, rows = a->rows - row < ROWS ? a->rows - row : ROWS;   \
      int64_t columns[MOST_COLUMNS];                                                                                   \
      const void *from[ROWS] = {NULL};                                                                                 \
      for (int64_t r = 0; r < rows; r++) {                                                                             \
        const int64_t after = token_of(a, t + forward, row + r);                                                       \
        if (after >= 0) from[r] = row_##type(s->kind == GRU ? a->dhidden : a->dsums, after, depth);                    \
      }                                                                                                                \
      for (int64_t u = 0; u < units; u++) columns[u] = (unit + u) * depth;                                             \
      product_##type(from, s->args->transposed, columns, units, depth, sum);                                           \
      for (int64_t u = 0; u < units; u++)                                                                              \
        for (int64_t r = 0; r < rows; r++) {                                                                           \
          const bool kept = (s->kind == GRU || !from[r]) && a->dh;                                                     \
          const float dh = sum[u][r] + (kept ? LOAD_##type(a->dh, (row + r) * n + unit + u) : 0);                      \
          cell_back_##type(a, s->kind, row + r, token_of(a, t, row + r), token_of(a, t - forward, row + r), unit + u,  \
                           dh);                                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
  }                                                                                                                    \
  KERNELS(lstm, LSTM, type) KERNELS(gru, GRU, type) KERNELS(rnn, RNN, type)
#define KERNELS(name, kind, type)                                                                    \
  void RDNA_HOST_KERNEL(name##_step_##type)(const void *args, rdna_grid grid) {                      \
    step s = {args, kind, blocks(((const struct step_args *)args)->layer.n, UNITS)};                 \
    rdna__parallel_for(blocks(s.args->layer.rows, ROWS) * s.unit_blocks, 1, blocks_##type, &s);      \
  }                                                                                                  \
  void RDNA_HOST_KERNEL(name##_step_backward_##type)(const void *args, rdna_grid grid) {             \
    step s = {args, kind, blocks(((const struct step_args *)args)->layer.n, UNITS)};                 \
    rdna__parallel_for(blocks(s.args->layer.rows, ROWS) * s.unit_blocks, 1, blocks_back_##type, &s); \
  }
typedef float STORED_f32;
typedef uint16_t STORED_f16, STORED_bf16;
STEP(f32)
STEP(f16)
STEP(bf16)
