/* For host twins: small products of matrices in f32, from memory of the twin's own. */
#ifndef RDNA_MATH_ATTENTION_MULTIPLY_H
#define RDNA_MATH_ATTENTION_MULTIPLY_H

#include "math/common/host/simd.h"

/* The sums over the lanes of each of SIMD_WIDTH vectors, in their order: the shuffles of simd_transpose, of which
 * each round needs half as many as the one before, as halves are added up. */
SIMD_INLINE simd_float simd_sum_each(const simd_float v[SIMD_WIDTH]) {
  simd_float part[SIMD_WIDTH];
#pragma GCC unroll 16
  for (int i = 0; i < SIMD_WIDTH; i++) part[i] = v[i];
#pragma GCC unroll 4
  for (int half = SIMD_WIDTH / 2; half > 0; half /= 2)
#pragma GCC unroll 8
    for (int i = 0; i < half; i++)
      part[i] = simd_zip_low(part[i], part[i + half]) + simd_zip_high(part[i], part[i + half]);
  return part[0];
}

/* out(i, j) = add + sum over e < inner of x(i, e) y(e, j) for i < rows <= 4 and j < 2 SIMD_WIDTH. x lies with any
 * strides, y and out with rows of contiguous j. */
SIMD_INLINE void multiply_rows(int rows, int inner, const float *x, int x_row, int x_inner, const float *y, int y_row,
                               float *out, int out_row, bool add) {
  simd_float sum[4][2];
  for (int i = 0; i < rows; i++) {
    for (int c = 0; c < 2; c++) sum[i][c] = add ? simd_load(out + i * out_row + c * SIMD_WIDTH) : simd_set(0);
  }
  for (int e = 0; e < inner; e++) {
    simd_float y0 = simd_load(y + (int64_t)e * y_row), y1 = simd_load(y + (int64_t)e * y_row + SIMD_WIDTH);
    for (int i = 0; i < rows; i++) {
      simd_float xs = simd_set(x[i * x_row + e * x_inner]);
      sum[i][0] = simd_fma(xs, y0, sum[i][0]);
      sum[i][1] = simd_fma(xs, y1, sum[i][1]);
    }
  }
  for (int i = 0; i < rows; i++) {
    for (int c = 0; c < 2; c++) simd_store(out + i * out_row + c * SIMD_WIDTH, sum[i][c]);
  }
}

/* The same for any rows and any multiple of 2 SIMD_WIDTH columns. */
SIMD_INLINE void multiply(int rows, int cols, int inner, const float *x, int x_row, int x_inner, const float *y,
                          int y_row, float *out, int out_row, bool add) {
  for (int j = 0; j < cols; j += 2 * SIMD_WIDTH) {
    int i = 0;
    for (; i + 4 <= rows; i += 4) {
      multiply_rows(4, inner, x + i * x_row, x_row, x_inner, y + j, y_row, out + i * out_row + j, out_row, add);
    }
    for (; i < rows; i++) {
      multiply_rows(1, inner, x + i * x_row, x_row, x_inner, y + j, y_row, out + i * out_row + j, out_row, add);
    }
  }
}

#endif
