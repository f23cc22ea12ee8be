#include "kernel/host.h"
#include "math/complex/complex_math.h"

enum { GRAIN = 4096 }; /* values that a thread takes at least */

/* VALUE: statements for value |i| of |a|, whose operands' places are |at|. */
#define EACH(name, operands, ...)                                        \
  static void name##_piece(void *context, int64_t begin, int64_t end) {  \
    const struct complex_args *a = context;                              \
    for (int64_t i = begin; i < end; i++) {                              \
      int64_t at[3] = {0};                                               \
      strided_offsets(&a->shape, a->operand, operands, (uint32_t)i, at); \
      __VA_ARGS__                                                        \
    }                                                                    \
  }                                                                      \
  void RDNA_HOST_KERNEL(name)(const void *args, rdna_grid grid) {        \
    struct complex_args a = *(const struct complex_args *)args;          \
    rdna__parallel_for(a.shape.count, GRAIN, name##_piece, &a);          \
  }

#define KERNELS(suffix, T)                                                                           \
  typedef struct complex_pair_##suffix pair_##suffix;                                                \
  static pair_##suffix load_##suffix(const struct complex_args *a, int k, const int64_t *at) {       \
    pair_##suffix constant = {(T)a->constant[0], (T)a->constant[1]};                                 \
    return a->constants >> k & 1 ? constant : ((const pair_##suffix *)a->operand[k].data)[at[k]];    \
  }                                                                                                  \
  static complex_value value_##suffix(const struct complex_args *a, int k, const int64_t *at) {      \
    if (a->constants >> k & 1) return (complex_value){a->constant[0], a->constant[1]};               \
    pair_##suffix v = load_##suffix(a, k, at);                                                       \
    return (complex_value){(double)v.re, (double)v.im};                                              \
  }                                                                                                  \
  static double real_##suffix(const struct complex_args *a, int k, const int64_t *at) {              \
    return (double)((const T *)a->operand[k].data)[at[k]];                                           \
  }                                                                                                  \
  static void save_##suffix(const struct complex_args *a, const int64_t *at, complex_value v) {      \
    ((pair_##suffix *)a->operand[0].data)[at[0]] = (pair_##suffix){(T)v.re, (T)v.im};                \
  }                                                                                                  \
  EACH(complex_map_##suffix, 2, save_##suffix(a, at, complex_map(a->op, value_##suffix(a, 1, at)));) \
  EACH(complex_pow_##suffix, 3,                                                                      \
       save_##suffix(a, at, complex_pow(value_##suffix(a, 1, at), value_##suffix(a, 2, at)));)       \
  EACH(complex_measure_##suffix, 2,                                                                  \
       ((T *)a->operand[0].data)[at[0]] = (T)complex_measure(a->op, value_##suffix(a, 1, at));)      \
  EACH(complex_polar_##suffix, 3,                                                                    \
       save_##suffix(a, at, complex_polar(real_##suffix(a, 1, at), real_##suffix(a, 2, at)));)       \
  EACH(complex_zip_##suffix, 3, pair_##suffix p = {(T)a->p[0], (T)a->p[1]};                          \
       ((pair_##suffix *)a->operand[0].data)[at[0]] =                                                \
           complex_zip_##suffix(a->op, load_##suffix(a, 1, at), load_##suffix(a, 2, at), p);)        \
  static void blocks_##suffix(void *context, int64_t begin, int64_t end) {                           \
    const struct complex_blocks_args *a = context;                                                   \
    for (int64_t i = begin; i < end; i++) {                                                          \
      int64_t row = i / a->columns, column = i % a->columns, batch = row / a->rows;                  \
      pair_##suffix rows[2], *out = (pair_##suffix *)a->out + 2 * row * a->columns + column;         \
      int64_t at = batch * a->x_batch + row % a->rows * a->x_row + column * a->x_column;             \
      complex_block_##suffix(a, ((const pair_##suffix *)a->x)[at], rows);                            \
      out[0] = rows[0], out[a->columns] = rows[1];                                                   \
    }                                                                                                \
  }                                                                                                  \
  void RDNA_HOST_KERNEL(complex_blocks_##suffix)(const void *args, rdna_grid grid) {                 \
    struct complex_blocks_args a = *(const struct complex_blocks_args *)args;                        \
    rdna__parallel_for(a.count, GRAIN, blocks_##suffix, &a);                                         \
  }
KERNELS(f32, float)
KERNELS(f64, double)
