/* What cuBLASLt and hipBLASLt have in common, with the same arguments: RDNA__SYMBOL(name, arguments), whose full name
 * starts with cublasLt or hipblasLt. Included once for the table of pointers and once for each library's names, so it
 * has no include guard. All return a status, 0 for success. Statuses, types and attributes are int, handles and
 * descriptors are pointers.
 * Source: NVIDIA's cuBLAS reference and cublasLt.h 11 to 12.6; AMD's hipBLASLt reference and hipblaslt.h 0.10. */
RDNA__SYMBOL(Create, (void **out_handle))
RDNA__SYMBOL(Destroy, (void *handle))
RDNA__SYMBOL(MatmulDescCreate, (void **out_description, int compute_type, int scale_type))
RDNA__SYMBOL(MatmulDescDestroy, (void *description))
RDNA__SYMBOL(MatmulDescSetAttribute, (void *description, int attribute, const void *value, size_t size))
RDNA__SYMBOL(MatrixLayoutCreate, (void **out_layout, int type, uint64_t rows, uint64_t columns, int64_t ld))
RDNA__SYMBOL(MatrixLayoutDestroy, (void *layout))
RDNA__SYMBOL(MatrixLayoutSetAttribute, (void *layout, int attribute, const void *value, size_t size))
RDNA__SYMBOL(MatmulPreferenceCreate, (void **out_preference))
RDNA__SYMBOL(MatmulPreferenceDestroy, (void *preference))
RDNA__SYMBOL(MatmulPreferenceSetAttribute, (void *preference, int attribute, const void *value, size_t size))
RDNA__SYMBOL(MatmulAlgoGetHeuristic, (void *handle, void *description, void *a_layout, void *b_layout, void *c_layout,
                                      void *d_layout, void *preference, int wanted, void *out_results, int *out_count))
RDNA__SYMBOL(Matmul, (void *handle, void *description, const void *alpha, const void *a, void *a_layout, const void *b,
                      void *b_layout, const void *beta, const void *c, void *c_layout, void *d, void *d_layout,
                      const void *algorithm, void *workspace, size_t workspace_size, void *stream))
