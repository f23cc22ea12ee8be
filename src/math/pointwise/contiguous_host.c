#include "math/common/host/values.h"
#include "math/pointwise/contiguous_kernels.h"

enum { GRAIN = 16384 }; /* values that a thread takes at least */

/* An operation has one loop over floats. Each type wraps it in a function that converts from and to the type. */
#define UNARY_LOOP(NAME, name, expression)                                \
  SIMD_INLINE void name##_loop(const float *from, float *to, int64_t n) { \
    EACH_APART                                                            \
    for (int64_t i = 0; i < n; i++) {                                     \
      float x = from[i];                                                  \
      to[i] = expression;                                                 \
    }                                                                     \
  }
#define BINARY_LOOP(NAME, name, expression)                                                   \
  SIMD_INLINE void name##_loop(const float *left, const float *right, float *to, int64_t n) { \
    EACH_APART                                                                                \
    for (int64_t i = 0; i < n; i++) {                                                         \
      float a = left[i], b = right[i];                                                        \
      to[i] = expression;                                                                     \
    }                                                                                         \
  }
RDNA__CONTIGUOUS_MAPS(UNARY_LOOP, scalar, scalar)
RDNA__CONTIGUOUS_ZIPS(BINARY_LOOP)
BINARY_LOOP(SWIGLU, swiglu, scalar_silu(a) * b)
SIMD_INLINE void affine_loop(const float *from, float *to, int64_t n, float scale, float shift) {
  EACH_APART
  for (int64_t i = 0; i < n; i++) to[i] = fma_f32(from[i], scale, shift);
}

#define UNARY(name, type)                                                              \
  static void name##_##type##_piece(void *context, int64_t begin, int64_t end) {       \
    const struct unary_args *a = context;                                              \
    float buffer[RUN];                                                                 \
    for (int64_t n; begin < end; begin += n) {                                         \
      n = run_length(end - begin);                                                     \
      STORED_##type *out = (STORED_##type *)a->out + begin;                            \
      float *to = room_##type(buffer, out);                                            \
      name##_loop(read_##type(buffer, (const STORED_##type *)a->x + begin, n), to, n); \
      write_##type(out, to, n);                                                        \
    }                                                                                  \
  }                                                                                    \
  void RDNA_HOST_KERNEL(name##_##type)(const void *args, rdna_grid grid) {             \
    struct unary_args a = *(const struct unary_args *)args;                            \
    rdna__parallel_for(a.count, GRAIN, name##_##type##_piece, &a);                     \
  }

#define AFFINE(type)                                                                   \
  static void affine_##type##_piece(void *context, int64_t begin, int64_t end) {       \
    const struct affine_args *a = context;                                             \
    float buffer[RUN];                                                                 \
    for (int64_t n; begin < end; begin += n) {                                         \
      n = run_length(end - begin);                                                     \
      STORED_##type *out = (STORED_##type *)a->out + begin;                            \
      float *to = room_##type(buffer, out);                                            \
      const float *from = read_##type(buffer, (const STORED_##type *)a->x + begin, n); \
      affine_loop(from, to, n, a->scale, a->shift);                                    \
      write_##type(out, to, n);                                                        \
    }                                                                                  \
  }                                                                                    \
  void RDNA_HOST_KERNEL(affine_##type)(const void *args, rdna_grid grid) {             \
    struct affine_args a = *(const struct affine_args *)args;                          \
    rdna__parallel_for(a.count, GRAIN, affine_##type##_piece, &a);                     \
  }

#define BINARY(name, type)                                                            \
  static void name##_##type##_piece(void *context, int64_t begin, int64_t end) {      \
    const struct binary_args *a = context;                                            \
    float left[RUN], right[RUN];                                                      \
    for (int64_t n; begin < end; begin += n) {                                        \
      n = run_length(end - begin);                                                    \
      STORED_##type *out = (STORED_##type *)a->out + begin;                           \
      float *to = room_##type(left, out);                                             \
      name##_loop(read_##type(left, (const STORED_##type *)a->a + begin, n),          \
                  read_##type(right, (const STORED_##type *)a->b + begin, n), to, n); \
      write_##type(out, to, n);                                                       \
    }                                                                                 \
  }                                                                                   \
  void RDNA_HOST_KERNEL(name##_##type)(const void *args, rdna_grid grid) {            \
    struct binary_args a = *(const struct binary_args *)args;                         \
    rdna__parallel_for(a.count, GRAIN, name##_##type##_piece, &a);                    \
  }

/* A thread's piece may begin and end inside a row; a run is the part of it in one row. */
#define BINARY_ROW(name, type)                                                         \
  static void name##_row_##type##_piece(void *context, int64_t begin, int64_t end) {   \
    const struct binary_row_args *a = context;                                         \
    float left[RUN], right[RUN];                                                       \
    int64_t column = begin % a->cols;                                                  \
    for (int64_t n; begin < end; begin += n) {                                         \
      n = run_length(a->cols - column < end - begin ? a->cols - column : end - begin); \
      STORED_##type *out = (STORED_##type *)a->out + begin;                            \
      float *to = room_##type(left, out);                                              \
      name##_loop(read_##type(left, (const STORED_##type *)a->a + begin, n),           \
                  read_##type(right, (const STORED_##type *)a->b + column, n), to, n); \
      write_##type(out, to, n);                                                        \
      column = column + n == a->cols ? 0 : column + n;                                 \
    }                                                                                  \
  }                                                                                    \
  void RDNA_HOST_KERNEL(name##_row_##type)(const void *args, rdna_grid grid) {         \
    struct binary_row_args a = *(const struct binary_row_args *)args;                  \
    rdna__parallel_for(a.rows *a.cols, GRAIN, name##_row_##type##_piece, &a);          \
  }

#define UNARY_TYPES(NAME, name, expression) UNARY(name, f32) UNARY(name, f16) UNARY(name, bf16)
#define BINARY_TYPES(NAME, name, expression) BINARY(name, f32) BINARY(name, f16) BINARY(name, bf16)
#define BINARY_ROW_TYPES(NAME, name, expression) BINARY_ROW(name, f32) BINARY_ROW(name, f16) BINARY_ROW(name, bf16)
RDNA__CONTIGUOUS_MAPS(UNARY_TYPES, , )
RDNA__CONTIGUOUS_ZIPS(BINARY_TYPES)
RDNA__CONTIGUOUS_ZIPS(BINARY_ROW_TYPES)
BINARY_TYPES(SWIGLU, swiglu, )
AFFINE(f32)
AFFINE(f16)
AFFINE(bf16)
