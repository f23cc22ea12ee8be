/* Matrix products by vendors' libraries, behind the same arguments as our kernels. Where they take it, a residual
 * without an activation is their C. Activations are ours: of their ReLU nobody says what becomes of a NaN, which stays
 * one in ours, and cuBLASLt's GELU by tanh is off by up to 5e-6, more than f32 rounds. */
#ifndef RDNA_MATH_GEMM_VENDOR_H
#define RDNA_MATH_GEMM_VENDOR_H

#include "math/gemm/gemm.h"
#include "math/vendor/vendor.h"
#include "rdna/tensor.h"

/* How many ways |vendor| offers on |device|: 0 when it is not used there. Way 0 is what it holds for the best. */
int rdna__gemm_vendor_ways(rdna_device *device, rdna__vendor vendor);
/* "cublaslt", "cublaslt_1": for the tuner and for who asks what ran. Static. */
const char *rdna__gemm_vendor_name(rdna__vendor vendor, int way);
/* Whether this call has that way. Decides from the call alone and what the library answers; the answer is kept. */
bool rdna__gemm_vendor_applies(rdna_device *device, rdna__vendor vendor, int way, const rdna__gemm_problem *problem);
/* RDNA_UNSUPPORTED, with nothing queued, where it does not apply. */
rdna_status rdna__gemm_vendor_run(rdna_stream *stream, rdna__vendor vendor, int way, const rdna__gemm_problem *problem);

/* What each library does for the above. |handle| is rdna__vendor_handle's. */
bool rdna__gemm_lt_applies(void *handle, rdna_device *device, int way, const rdna__gemm_problem *problem);
rdna_status rdna__gemm_lt_run(void *handle, rdna_stream *stream, const char *name, int way,
                              const rdna__gemm_problem *problem);
bool rdna__gemm_rocblas_applies(const rdna__gemm_problem *problem);
rdna_status rdna__gemm_rocblas_run(void *handle, rdna_stream *stream, const char *name,
                                   const rdna__gemm_problem *problem);

/* The call as these libraries see it, column by column: D (rows, columns) = alpha op(A) op(B) + beta C with their A our
 * B and their B our A. Leading dimensions are as they want them: at least the rows that are stored. */
typedef struct rdna__gemm_columns {
  int64_t rows, columns, k, batch;
  const void *a, *b, *c; /* c is d, or a residual */
  void *d;
  int64_t lda, ldb, ldc, ldd, stride_a, stride_b, stride_c, stride_d;
  float beta;
  bool a_transposed, b_transposed;
  int64_t a_rows, a_columns, b_rows, b_columns; /* as stored */
  rdna_dtype a_type, b_type, d_type;
} rdna__gemm_columns;
/* False: a layout that only our kernels know, such as rows that overlap, or nothing to sum. */
bool rdna__gemm_columns_make(const rdna__gemm_problem *problem, rdna__gemm_columns *out_columns);
/* Both 16-bit operands of one type or f32 throughout, with sums in f32; or int8 into i32. */
bool rdna__gemm_types_known(const rdna_dtype types[3]);

#endif
