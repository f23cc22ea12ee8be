/* The same on the host, in the same order. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernel/host.h"
#include "math/linalg/jacobi_kernels.h"

enum { PAIR = 2 * JACOBI_BLOCK };

static int64_t column_of(uint32_t first, uint32_t second, int64_t c) {
  return c < JACOBI_BLOCK ? (int64_t)first * JACOBI_BLOCK + c : ((int64_t)second - 1) * JACOBI_BLOCK + c;
}

typedef struct matrix {
  char *data;
  int64_t row, column, rows, columns;
} matrix;

#define TWINS(suffix, T, root, fused, STEEP)                                                                           \
  typedef struct pair_##suffix {                                                                                       \
    T products[PAIR][PAIR], turn[PAIR][PAIR], tile[PAIR][PAIR], length[PAIR];                                          \
    T turned[PAIR][PAIR]; /* the transpose of turn, so that a rotation finds its columns side by side */               \
  } pair_##suffix;                                                                                                     \
  static void load_##suffix(const matrix *a, uint32_t first, uint32_t second, int64_t base, T tile[PAIR][PAIR]) {      \
    const T *x = (const T *)(const void *)a->data;                                                                     \
    for (int64_t c = 0; c < PAIR; c++) {                                                                               \
      int64_t k = column_of(first, second, c);                                                                         \
      for (int64_t r = 0; r < PAIR; r++)                                                                               \
        tile[r][c] = base + r < a->rows && k < a->columns ? x[(base + r) * a->row + k * a->column] : 0;                \
    }                                                                                                                  \
  }                                                                                                                    \
  static void multiply_##suffix(const matrix *a, uint32_t first, uint32_t second, pair_##suffix *s) {                  \
    for (int64_t i = 0; i < PAIR; i++) {                                                                               \
      for (int64_t j = 0; j < PAIR; j++) s->products[i][j] = 0, s->turned[i][j] = i == j;                              \
    }                                                                                                                  \
    for (int64_t base = 0; base < a->rows; base += PAIR) {                                                             \
      T part[PAIR][PAIR] = {{0}};                                                                                      \
      load_##suffix(a, first, second, base, s->tile);                                                                  \
      for (int64_t r = 0; r < PAIR; r++) {                                                                             \
        for (int64_t i = 0; i < PAIR; i++) {                                                                           \
          for (int64_t j = 0; j < PAIR; j++) part[i][j] = fused(s->tile[r][i], s->tile[r][j], part[i][j]);             \
        }                                                                                                              \
      }                                                                                                                \
      for (int64_t i = 0; i < PAIR; i++) {                                                                             \
        for (int64_t j = 0; j < PAIR; j++) s->products[i][j] += part[i][j];                                            \
      }                                                                                                                \
    }                                                                                                                  \
  }                                                                                                                    \
  static T size_##suffix(T v) { return v < 0 ? -v : v; }                                                               \
  static bool beyond_##suffix(const struct jacobi_args *a, bool both, T product, T limit, T left, T right) {           \
    bool counts =                                                                                                      \
        both ? size_##suffix(product) > (T)a->negligible : left > (T)a->negligible && right > (T)a->negligible;        \
    return counts && size_##suffix(product) > limit * left * right;                                                    \
  }                                                                                                                    \
  static int angles_##suffix(const struct jacobi_args *a, bool both, pair_##suffix *s) {                               \
    int found = 0;                                                                                                     \
    for (int64_t i = 0; i < PAIR; i++) s->length[i] = root(size_##suffix(s->products[i][i]));                          \
    for (int64_t i = 0; i < PAIR; i++) {                                                                               \
      for (int64_t j = i + 1; j < PAIR; j++) {                                                                         \
        T p = s->products[i][j], left = s->length[i], right = s->length[j];                                            \
        if (found < 1 && beyond_##suffix(a, both, p, (T)a->smallest, left, right)) found = 1;                          \
        if (beyond_##suffix(a, both, p, (T)a->small, left, right)) found = 2;                                          \
      }                                                                                                                \
    }                                                                                                                  \
    return found;                                                                                                      \
  }                                                                                                                    \
  static void rotate_##suffix(T half, T sine, T *x, T *y) {                                                            \
    T left = *x, right = *y;                                                                                           \
    *x = fused(-sine, fused(half, left, right), left), *y = fused(sine, fused(-half, right, left), right);             \
  }                                                                                                                    \
  static void find_##suffix(const struct jacobi_args *a, bool both, uint32_t p, uint32_t q, const pair_##suffix *s,    \
                            T *half, T *sine) {                                                                        \
    T product = s->products[p][q], left = s->products[p][p], right = s->products[q][q];                                \
    *half = 0, *sine = 0;                                                                                              \
    if (!beyond_##suffix(a, both, product, (T)a->smallest, root(size_##suffix(left)), root(size_##suffix(right))))     \
      return;                                                                                                          \
    T cotangent = (right - left) / (2 * product), size = size_##suffix(cotangent);                                     \
    T t = size > (T)STEEP ? 1 / (2 * size) : 1 / (size + root(fused(size, size, (T)1)));                               \
    if (cotangent < 0) t = -t;                                                                                         \
    T c = 1 / root(fused(t, t, (T)1));                                                                                 \
    *sine = c * t, *half = *sine / (1 + c);                                                                            \
  }                                                                                                                    \
  static void round_##suffix(const struct jacobi_args *a, bool both, uint32_t width, uint32_t round,                   \
                             pair_##suffix *s) {                                                                       \
    T c[JACOBI_BLOCK], n[JACOBI_BLOCK];                                                                                \
    uint32_t p[JACOBI_BLOCK], q[JACOBI_BLOCK];                                                                         \
    for (uint32_t i = 0; i < width / 2; i++) {                                                                         \
      jacobi_pair(width, round, i, &p[i], &q[i]);                                                                      \
      find_##suffix(a, both, p[i], q[i], s, &c[i], &n[i]);                                                             \
    }                                                                                                                  \
    for (uint32_t i = 0; i < width / 2; i++) {                                                                         \
      for (uint32_t k = 0; k < width; k++) rotate_##suffix(c[i], n[i], &s->products[p[i]][k], &s->products[q[i]][k]);  \
    }                                                                                                                  \
    for (uint32_t i = 0; i < width / 2; i++) {                                                                         \
      for (uint32_t k = 0; k < width; k++) rotate_##suffix(c[i], n[i], &s->products[k][p[i]], &s->products[k][q[i]]);  \
      for (uint32_t k = 0; k < PAIR; k++) rotate_##suffix(c[i], n[i], &s->turned[p[i]][k], &s->turned[q[i]][k]);       \
      if (n[i] != 0) s->products[p[i]][q[i]] = s->products[q[i]][p[i]] = 0;                                            \
    }                                                                                                                  \
    for (uint32_t i = 0; i < width / 2; i++) {                                                                         \
      for (uint32_t j = i + 1; j < width / 2; j++) {                                                                   \
        s->products[p[j]][p[i]] = s->products[p[i]][p[j]], s->products[q[j]][p[i]] = s->products[p[i]][q[j]];          \
        s->products[p[j]][q[i]] = s->products[q[i]][p[j]], s->products[q[j]][q[i]] = s->products[q[i]][q[j]];          \
      }                                                                                                                \
    }                                                                                                                  \
  }                                                                                                                    \
  static void finish_##suffix(pair_##suffix *s) {                                                                      \
    for (int64_t e = 0; e < PAIR * PAIR; e++) s->turn[e / PAIR][e % PAIR] = s->turned[e % PAIR][e / PAIR];             \
  }                                                                                                                    \
  static void times_##suffix(T tile[PAIR][PAIR], T turn[PAIR][PAIR], T out[PAIR][PAIR]) {                              \
    for (int64_t row = 0; row < PAIR; row++) {                                                                         \
      T sum[PAIR] = {0};                                                                                               \
      for (int64_t r = 0; r < PAIR; r++) {                                                                             \
        for (int64_t c = 0; c < PAIR; c++) sum[c] = fused(tile[row][r], turn[r][c], sum[c]);                           \
      }                                                                                                                \
      memcpy(out[row], sum, sizeof sum);                                                                               \
    }                                                                                                                  \
  }                                                                                                                    \
  static void turn_##suffix(const matrix *a, uint32_t first, uint32_t second, int64_t base, T tile[PAIR][PAIR],        \
                            T turn[PAIR][PAIR]) {                                                                      \
    T *x = (T *)(void *)a->data;                                                                                       \
    load_##suffix(a, first, second, base, tile);                                                                       \
    times_##suffix(tile, turn, tile);                                                                                  \
    for (int64_t row = 0; row < PAIR && base + row < a->rows; row++) {                                                 \
      for (int64_t c = 0; c < PAIR; c++) {                                                                             \
        int64_t k = column_of(first, second, c);                                                                       \
        if (k < a->columns) x[(base + row) * a->row + k * a->column] = tile[row][c];                                   \
      }                                                                                                                \
    }                                                                                                                  \
  }                                                                                                                    \
  static void units_##suffix(void *context, int64_t begin, int64_t end) {                                              \
    const struct jacobi_args *a = context;                                                                             \
    uint32_t pairs = a->blocks / 2, width = pairs > 1 ? (uint32_t)PAIR : a->n + a->n % 2;                              \
    pair_##suffix s;                                                                                                   \
    for (int64_t unit = begin; unit < end; unit++) {                                                                   \
      uint32_t first, second;                                                                                          \
      int64_t b = unit / pairs;                                                                                        \
      jacobi_pair(a->blocks, a->round, (uint32_t)(unit % pairs), &first, &second);                                     \
      if (pairs > 1 && second * JACOBI_BLOCK >= a->n) continue;                                                        \
      matrix x = {(char *)((T *)a->a + b * a->stride), a->row, a->column, a->m, a->n};                                 \
      int32_t *turned = a->turned + b * a->total + a->sweep;                                                           \
      if (a->sweep && !turned[-1]) continue;                                                                           \
      for (uint32_t sweep = 0; sweep < a->sweeps; sweep++) {                                                           \
        multiply_##suffix(&x, first, second, &s);                                                                      \
        int found = angles_##suffix(a, false, &s);                                                                     \
        if (!found) break;                                                                                             \
        if (found > 1) __atomic_store_n(&turned[sweep], 1, __ATOMIC_RELAXED);                                          \
        for (uint32_t round = 0; round + 1 < width; round++) round_##suffix(a, false, width, round, &s);               \
        finish_##suffix(&s);                                                                                           \
        for (int64_t base = 0; base < a->m; base += PAIR) turn_##suffix(&x, first, second, base, s.tile, s.turn);      \
        if (found == 1) break;                                                                                         \
      }                                                                                                                \
    }                                                                                                                  \
  }                                                                                                                    \
  static T *cross_##suffix(const matrix *a, uint32_t f, uint32_t s, int64_t r, uint32_t first, uint32_t second,        \
                           int64_t c) {                                                                                \
    int64_t i = column_of(f, s, r), j = column_of(first, second, c);                                                   \
    return i < a->columns && j < a->columns ? (T *)(void *)a->data + i * a->row + j : NULL;                            \
  }                                                                                                                    \
  static int sweeps_##suffix(const struct jacobi_args *a, uint32_t width, int32_t *turned, pair_##suffix *s) {         \
    int moved = 0;                                                                                                     \
    for (uint32_t sweep = 0; sweep < a->sweeps; sweep++) {                                                             \
      int found = angles_##suffix(a, true, s);                                                                         \
      if (!found) break;                                                                                               \
      moved = 1;                                                                                                       \
      if (found > 1) __atomic_store_n(&turned[sweep], 1, __ATOMIC_RELAXED);                                            \
      for (uint32_t round = 0; round + 1 < width; round++) round_##suffix(a, true, width, round, s);                   \
      if (found == 1) break;                                                                                           \
    }                                                                                                                  \
    return moved;                                                                                                      \
  }                                                                                                                    \
  static void both_##suffix(void *context, int64_t begin, int64_t end) {                                               \
    const struct jacobi_both_args *all = context;                                                                      \
    const struct jacobi_args *a = &all->of;                                                                            \
    uint32_t pairs = a->blocks / 2, width = pairs > 1 ? (uint32_t)PAIR : a->n + a->n % 2;                              \
    pair_##suffix s;                                                                                                   \
    for (int64_t unit = begin; unit < end; unit++) {                                                                   \
      uint32_t first, second;                                                                                          \
      int64_t b = unit / pairs;                                                                                        \
      jacobi_pair(a->blocks, a->round, (uint32_t)(unit % pairs), &first, &second);                                     \
      matrix x = {(char *)((T *)a->a + b * a->stride), a->row, 1, a->n, a->n};                                         \
      int32_t *turned = a->turned + b * a->total + a->sweep;                                                           \
      if (a->sweep && !turned[-1]) continue;                                                                           \
      for (int64_t r = 0; r < PAIR; r++) {                                                                             \
        for (int64_t c = 0; c < PAIR; c++) {                                                                           \
          const T *from = cross_##suffix(&x, first, second, r, first, second, c);                                      \
          s.products[r][c] = from ? *from : 0, s.turned[r][c] = r == c;                                                \
        }                                                                                                              \
      }                                                                                                                \
      int moved = pairs > 1 && second * JACOBI_BLOCK >= a->n ? 0 : sweeps_##suffix(a, width, turned, &s);              \
      if (moved) finish_##suffix(&s);                                                                                  \
      for (int64_t e = 0; e < PAIR * PAIR && moved; e++) {                                                             \
        T *to = cross_##suffix(&x, first, second, e / PAIR, first, second, e % PAIR);                                  \
        if (to) *to = s.products[e / PAIR][e % PAIR];                                                                  \
      }                                                                                                                \
      if (pairs > 1) {                                                                                                 \
        all->moved[unit] = moved;                                                                                      \
        if (moved) memcpy((T *)all->turns + unit * PAIR * PAIR, s.turn, sizeof s.turn);                                \
      } else if (moved && all->v) {                                                                                    \
        matrix v = {(char *)((T *)all->v + b * all->v_stride), all->v_row, all->v_column, a->m, a->n};                 \
        for (int64_t base = 0; base < a->m; base += PAIR) turn_##suffix(&v, first, second, base, s.tile, s.turn);      \
      }                                                                                                                \
    }                                                                                                                  \
  }                                                                                                                    \
  static void turn_of_##suffix(const struct jacobi_both_args *all, int64_t pair, T turn[PAIR][PAIR]) {                 \
    if (all->moved[pair]) {                                                                                            \
      memcpy(turn, (T *)all->turns + pair * PAIR * PAIR, sizeof(T[PAIR][PAIR]));                                       \
    } else {                                                                                                           \
      for (int64_t e = 0; e < PAIR * PAIR; e++) turn[e / PAIR][e % PAIR] = e / PAIR == e % PAIR;                       \
    }                                                                                                                  \
  }                                                                                                                    \
  static void places_##suffix(const struct jacobi_args *a, uint32_t pair, int64_t place[PAIR]) {                       \
    uint32_t first, second;                                                                                            \
    jacobi_pair(a->blocks, a->round, pair, &first, &second);                                                           \
    for (int64_t c = 0; c < PAIR; c++) place[c] = column_of(first, second, c);                                         \
  }                                                                                                                    \
  static void tile_##suffix(const struct jacobi_both_args *all, int64_t b, uint32_t i, uint32_t j, pair_##suffix *s) { \
    const struct jacobi_args *a = &all->of;                                                                            \
    T *x = (T *)a->a + b * a->stride;                                                                                  \
    int64_t row[PAIR], column[PAIR], pairs = a->blocks / 2;                                                            \
    places_##suffix(a, i, row), places_##suffix(a, j, column);                                                         \
    for (int64_t r = 0; r < PAIR; r++) {                                                                               \
      for (int64_t c = 0; c < PAIR; c++)                                                                               \
        s->tile[r][c] = row[r] < a->n && column[c] < a->n ? x[row[r] * a->row + column[c]] : 0;                        \
    }                                                                                                                  \
    turn_of_##suffix(all, b *pairs + i, s->turn);                                                                      \
    for (int64_t k = 0; k < PAIR; k++) {                                                                               \
      T sum[PAIR] = {0};                                                                                               \
      for (int64_t r = 0; r < PAIR; r++) {                                                                             \
        for (int64_t c = 0; c < PAIR; c++) sum[c] = fused(s->tile[r][c], s->turn[r][k], sum[c]);                       \
      }                                                                                                                \
      memcpy(s->products[k], sum, sizeof sum);                                                                         \
    }                                                                                                                  \
    turn_of_##suffix(all, b *pairs + j, s->turn);                                                                      \
    times_##suffix(s->products, s->turn, s->tile);                                                                     \
    for (int64_t r = 0; r < PAIR && row[r] < a->n; r++) {                                                              \
      for (int64_t c = 0; c < PAIR && column[c] < a->n; c++)                                                           \
        x[row[r] * a->row + column[c]] = x[column[c] * a->row + row[r]] = s->tile[r][c];                               \
    }                                                                                                                  \
  }                                                                                                                    \
  static void across_##suffix(void *context, int64_t begin, int64_t end) {                                             \
    const struct jacobi_both_args *all = context;                                                                      \
    const struct jacobi_args *a = &all->of;                                                                            \
    uint32_t pairs = a->blocks / 2, each = jacobi_tiles(pairs, a->m);                                                  \
    pair_##suffix s;                                                                                                   \
    for (int64_t unit = begin; unit < end; unit++) {                                                                   \
      int64_t b = unit / each;                                                                                         \
      uint32_t i = (uint32_t)(unit % each) / pairs, j = (uint32_t)(unit % each) % pairs, first, second;                \
      const int32_t *moved = all->moved + b * pairs;                                                                   \
      if (a->sweep && !a->turned[b * a->total + a->sweep - 1]) continue;                                               \
      if (i < pairs) {                                                                                                 \
        if (i < j && (moved[i] || moved[j])) tile_##suffix(all, b, i, j, &s);                                          \
      } else if (moved[j]) {                                                                                           \
        matrix v = {(char *)((T *)all->v + b * all->v_stride), all->v_row, all->v_column, a->m, a->n};                 \
        jacobi_pair(a->blocks, a->round, j, &first, &second);                                                          \
        turn_of_##suffix(all, b *pairs + j, s.turn);                                                                   \
        turn_##suffix(&v, first, second, (int64_t)(i - pairs) * PAIR, s.tile, s.turn);                                 \
      }                                                                                                                \
    }                                                                                                                  \
  }                                                                                                                    \
  void RDNA_HOST_KERNEL(jacobi_##suffix)(const void *args, rdna_grid grid) {                                           \
    struct jacobi_args a = *(const struct jacobi_args *)args;                                                          \
    rdna__parallel_for(a.units, 1, units_##suffix, &a);                                                                \
  }                                                                                                                    \
  void RDNA_HOST_KERNEL(jacobi_both_##suffix)(const void *args, rdna_grid grid) {                                      \
    struct jacobi_both_args a = *(const struct jacobi_both_args *)args;                                                \
    rdna__parallel_for(a.of.units, 1, both_##suffix, &a);                                                              \
  }                                                                                                                    \
  void RDNA_HOST_KERNEL(jacobi_across_##suffix)(const void *args, rdna_grid grid) {                                    \
    struct jacobi_both_args a = *(const struct jacobi_both_args *)args;                                                \
    rdna__parallel_for(a.of.units, 1, across_##suffix, &a);                                                            \
  }
TWINS(f32, float, sqrtf, __builtin_fmaf, 0x1p13f)
TWINS(f64, double, sqrt, __builtin_fma, 0x1p28)
