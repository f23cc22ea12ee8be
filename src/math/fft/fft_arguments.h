/* Rows of the operators of fft.h for arguments_test.c. */
#ifndef RDNA_MATH_FFT_FFT_ARGUMENTS_H
#define RDNA_MATH_FFT_FFT_ARGUMENTS_H

#include "math/common/test/arguments.h"

/* The length is M, which is odd: one value more would have another half. */
OPERATOR(fft_c2c, plain, .types = F32 | F64, .empty = "NB", .never_empty = "M", .same = "out=x") {
  return rdna_op_fft_c2c(stream, false, 1, in("x", MAIN, 0, SHAPE(N, M, B, 2)), (int)number("dim", 1, "-2", "3 -4"),
                         out("out", MAIN, 0, SHAPE(N, M, B, 2)));
}
OPERATOR(fft_r2c, plain, .types = F32 | F64, .empty = "NB", .never_empty = "M") {
  return rdna_op_fft_r2c(stream, 1, in("x", MAIN, STRIDED, SHAPE(N, M, B)), (int)number("dim", 1, "-2", "3 -4"),
                         out("out", MAIN, 0, SHAPE(N, M / 2 + 1, B, 2)));
}
OPERATOR(fft_c2r, plain, .types = F32 | F64, .empty = "NB", .never_empty = "M") {
  return rdna_op_fft_c2r(stream, 1, in("x", MAIN, 0, SHAPE(N, M / 2 + 1, B, 2)), (int)number("dim", 1, "-2", "3 -4"),
                         out("out", MAIN, STRIDED, SHAPE(N, M, B)));
}

#endif
