/* MIOpen's convolutions in immediate mode: RDNA__SYMBOL(result, name, arguments), and RDNA__DIRECTION(name) for the
 * five calls that each direction has, whose tensors are (weight, x, y) forward, (y, weight, x) for data and (y, x,
 * weight) for weights. Included once for the table of pointers and once for the names, so it has no include guard.
 * Statuses and types are int, handles and descriptors are pointers. Source: AMD's MIOpen reference and miopen.h 3.3
 * (libMIOpen.so.1). */
RDNA__SYMBOL(int, miopenCreate, (void **out_handle))
RDNA__SYMBOL(int, miopenDestroy, (void *handle))
RDNA__SYMBOL(int, miopenSetStream, (void *handle, void *stream))
RDNA__SYMBOL(int, miopenGetVersion, (size_t *out_major, size_t *out_minor, size_t *out_patch))
RDNA__SYMBOL(int, miopenCreateTensorDescriptor, (void **out_tensor))
RDNA__SYMBOL(int, miopenSetTensorDescriptor, (void *tensor, int type, int rank, const int *sizes, const int *strides))
RDNA__SYMBOL(int, miopenDestroyTensorDescriptor, (void *tensor))
RDNA__SYMBOL(int, miopenCreateConvolutionDescriptor, (void **out_convolution))
RDNA__SYMBOL(int, miopenInitConvolutionNdDescriptor,
             (void *convolution, int dims, const int *padding, const int *stride, const int *dilation, int mode))
RDNA__SYMBOL(int, miopenSetConvolutionGroupCount, (void *convolution, int groups))
RDNA__SYMBOL(int, miopenDestroyConvolutionDescriptor, (void *convolution))
RDNA__DIRECTION(Forward)
RDNA__DIRECTION(BackwardData)
RDNA__DIRECTION(BackwardWeights)
