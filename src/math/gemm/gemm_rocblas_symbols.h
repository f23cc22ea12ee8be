/* rocBLAS as we call it: RDNA__SYMBOL(result, name, arguments). Included once for the table of pointers and once for
 * the names, so it has no include guard. Statuses, operations and types are int, handles are pointers.
 * Source: AMD's rocBLAS reference and rocblas-functions.h 4.4 (librocblas.so.4); unchanged in .3 and .5. */
RDNA__SYMBOL(int, rocblas_create_handle, (void **out_handle))
RDNA__SYMBOL(int, rocblas_destroy_handle, (void *handle))
RDNA__SYMBOL(int, rocblas_set_stream, (void *handle, void *stream))
RDNA__SYMBOL(int, rocblas_set_atomics_mode, (void *handle, int mode))
RDNA__SYMBOL(int, rocblas_get_version_string, (char *out_text, size_t size))
RDNA__SYMBOL(int, rocblas_gemm_strided_batched_ex,
             (void *handle, int operation_a, int operation_b, int32_t m, int32_t n, int32_t k, const void *alpha,
              const void *a, int a_type, int32_t lda, int64_t stride_a, const void *b, int b_type, int32_t ldb,
              int64_t stride_b, const void *beta, const void *c, int c_type, int32_t ldc, int64_t stride_c, void *d,
              int d_type, int32_t ldd, int64_t stride_d, int32_t batch_count, int compute_type, int algorithm,
              int32_t solution_index, uint32_t flags))
