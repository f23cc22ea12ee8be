/* The HIP interface that we call: RDNA__REQUIRED or RDNA__OPTIONAL(return type, name, arguments). Included once for
 * the table of pointers and once for their names, so it has no include guard.
 * Source: AMD's HIP API reference and hip_runtime_api.h 5.2.3 (Debian libamdhip64-dev); every required name is in
 * libamdhip64.so.5 to .7. hipError_t and hipDevice_t are int, every handle is a pointer. Nothing that came after
 * HIP 5.2 is required: no memory pools (hipMallocAsync), no graphs. */
RDNA__REQUIRED(int, hipGetDeviceCount, (int *out_count))
RDNA__REQUIRED(int, hipGetDevice, (int *out_device))
RDNA__REQUIRED(int, hipSetDevice, (int device))
RDNA__REQUIRED(int, hipRuntimeGetVersion, (int *out_version))
RDNA__REQUIRED(const char *, hipGetErrorName, (int code))
RDNA__REQUIRED(const char *, hipGetErrorString, (int code))
RDNA__REQUIRED(int, hipGetLastError, (void))
RDNA__REQUIRED(int, hipPeekAtLastError, (void))
RDNA__OPTIONAL(int, hipGetDevicePropertiesR0600, (void *out_properties, int device))
RDNA__OPTIONAL(int, hipGetDevicePropertiesR0000, (void *out_properties, int device))
RDNA__OPTIONAL(int, hipGetDeviceProperties, (void *out_properties, int device))
RDNA__REQUIRED(int, hipDeviceSynchronize, (void))
RDNA__REQUIRED(int, hipDeviceCanAccessPeer, (int *out_can, int device, int peer))
RDNA__REQUIRED(int, hipDeviceGetStreamPriorityRange, (int *out_least, int *out_greatest))
RDNA__REQUIRED(int, hipMemGetInfo, (size_t *out_free, size_t *out_total))
RDNA__REQUIRED(int, hipMalloc, (void **out_pointer, size_t size))
RDNA__REQUIRED(int, hipFree, (void *pointer))
RDNA__REQUIRED(int, hipHostMalloc, (void **out_pointer, size_t size, unsigned flags))
RDNA__REQUIRED(int, hipHostFree, (void *pointer))
RDNA__REQUIRED(int, hipMemcpyAsync, (void *dst, const void *src, size_t size, int kind, void *stream))
RDNA__REQUIRED(int, hipMemcpyPeerAsync,
               (void *dst, int dst_device, const void *src, int src_device, size_t size, void *stream))
RDNA__REQUIRED(int, hipMemsetAsync, (void *dst, int value, size_t size, void *stream))
RDNA__REQUIRED(int, hipStreamCreateWithPriority, (void **out_stream, unsigned flags, int priority))
RDNA__REQUIRED(int, hipStreamDestroy, (void *stream))
RDNA__REQUIRED(int, hipStreamSynchronize, (void *stream))
RDNA__REQUIRED(int, hipStreamQuery, (void *stream))
RDNA__REQUIRED(int, hipStreamWaitEvent, (void *stream, void *event, unsigned flags))
RDNA__REQUIRED(int, hipStreamAddCallback,
               (void *stream, void (*callback)(void *stream, int status, void *data), void *data, unsigned flags))
RDNA__OPTIONAL(int, hipLaunchHostFunc, (void *stream, void (*function)(void *), void *data))
RDNA__REQUIRED(int, hipEventCreateWithFlags, (void **out_event, unsigned flags))
RDNA__REQUIRED(int, hipEventDestroy, (void *event))
RDNA__REQUIRED(int, hipEventRecord, (void *event, void *stream))
RDNA__REQUIRED(int, hipEventSynchronize, (void *event))
RDNA__REQUIRED(int, hipEventQuery, (void *event))
RDNA__REQUIRED(int, hipEventElapsedTime, (float *out_ms, void *start, void *end))
RDNA__REQUIRED(int, hipModuleLoadData, (void **out_module, const void *image))
RDNA__REQUIRED(int, hipModuleUnload, (void *module))
RDNA__REQUIRED(int, hipModuleGetFunction, (void **out_function, void *module, const char *name))
RDNA__REQUIRED(int, hipModuleLaunchKernel,
               (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                unsigned block_z, unsigned shared_bytes, void *stream, void **parameters, void **extra))
