/* TensorFlow's C interface as far as this plugin uses it: the structs of PluggableDevice (StreamExecutor C API 0.0.1)
 * and of its profiler, and the types of its kernels. TensorFlow's own headers are not needed to build, so that one
 * plugin serves 2.16 to 2.21; tests/test_abi.py compares what is here with the headers of an installed wheel, field by
 * field.
 *
 * |struct_size| of a struct is where its last field ends, not its sizeof. */
#ifndef RDNA_TENSORFLOW_ABI_H
#define RDNA_TENSORFLOW_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef unsigned char TF_Bool;
typedef struct TSL_Status TF_Status;
typedef struct TF_Tensor TF_Tensor;
typedef struct TF_KernelBuilder TF_KernelBuilder;
typedef struct TF_OpKernelConstruction TF_OpKernelConstruction;
typedef struct TF_OpKernelContext TF_OpKernelContext;
typedef struct TF_OpDefinitionBuilder TF_OpDefinitionBuilder;
typedef struct TF_ShapeInferenceContext TF_ShapeInferenceContext;
typedef struct SP_Stream_st *SP_Stream;
typedef struct SP_Event_st *SP_Event;
typedef struct SP_Timer_st *SP_Timer;

typedef enum TF_Code {
  TF_OK = 0,
  TF_INVALID_ARGUMENT = 3,
  TF_NOT_FOUND = 5,
  TF_RESOURCE_EXHAUSTED = 8,
  TF_FAILED_PRECONDITION = 9,
  TF_UNIMPLEMENTED = 12,
  TF_INTERNAL = 13,
  TF_UNAVAILABLE = 14
} TF_Code;

typedef enum TF_DataType {
  TF_FLOAT = 1,
  TF_DOUBLE = 2,
  TF_INT32 = 3,
  TF_UINT8 = 4,
  TF_INT16 = 5,
  TF_INT8 = 6,
  TF_COMPLEX64 = 8,
  TF_INT64 = 9,
  TF_BOOL = 10,
  TF_BFLOAT16 = 14,
  TF_UINT16 = 17,
  TF_COMPLEX128 = 18,
  TF_HALF = 19,
  TF_UINT32 = 22,
  TF_UINT64 = 23
} TF_DataType;

typedef struct TF_StringView {
  const char *data;
  size_t len;
} TF_StringView;

typedef struct TF_Buffer {
  const void *data;
  size_t length;
  void (*data_deallocator)(void *data, size_t length);
} TF_Buffer;

typedef struct TF_AllocatorAttributes {
  size_t struct_size;
  TF_Bool on_host;
} TF_AllocatorAttributes;

#define TF_END_OF(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

typedef struct SP_AllocatorStats {
  size_t struct_size;
  int64_t num_allocs;
  int64_t bytes_in_use;
  int64_t peak_bytes_in_use;
  int64_t largest_alloc_size;
  int8_t has_bytes_limit;
  int64_t bytes_limit;
  int64_t bytes_reserved;
  int64_t peak_bytes_reserved;
  int8_t has_bytes_reservable_limit;
  int64_t bytes_reservable_limit;
  int64_t largest_free_block_bytes;
} SP_AllocatorStats;

typedef enum SE_EventStatus { SE_EVENT_UNKNOWN, SE_EVENT_ERROR, SE_EVENT_PENDING, SE_EVENT_COMPLETE } SE_EventStatus;

typedef struct SP_DeviceMemoryBase {
  size_t struct_size;
  void *ext;
  void *opaque;
  uint64_t size;
  uint64_t payload;
} SP_DeviceMemoryBase;

typedef struct SP_Device {
  size_t struct_size;
  void *ext;
  int32_t ordinal;
  void *device_handle;
  const char *hardware_name;
  const char *device_vendor;
  const char *pci_bus_id;
} SP_Device;

typedef struct SE_CreateDeviceParams {
  size_t struct_size;
  void *ext;
  int32_t ordinal;
  SP_Device *device;
} SE_CreateDeviceParams;

typedef struct SP_DeviceFns {
  size_t struct_size;
  void *ext;
  int32_t (*get_numa_node)(const SP_Device *device);
  int64_t (*get_memory_bandwidth)(const SP_Device *device);
  double (*get_gflops)(const SP_Device *device);
} SP_DeviceFns;

typedef struct SE_CreateDeviceFnsParams {
  size_t struct_size;
  void *ext;
  SP_DeviceFns *device_fns;
} SE_CreateDeviceFnsParams;

typedef struct SP_TimerFns {
  size_t struct_size;
  void *ext;
  uint64_t (*nanoseconds)(SP_Timer timer);
} SP_TimerFns;

typedef void (*SE_StatusCallbackFn)(void *const, TF_Status *const);

typedef struct SP_StreamExecutor {
  size_t struct_size;
  void *ext;
  void (*allocate)(const SP_Device *device, uint64_t size, int64_t memory_space, SP_DeviceMemoryBase *memory);
  void (*deallocate)(const SP_Device *device, SP_DeviceMemoryBase *memory);
  void *(*host_memory_allocate)(const SP_Device *device, uint64_t size);
  void (*host_memory_deallocate)(const SP_Device *device, void *memory);
  void *(*unified_memory_allocate)(const SP_Device *device, uint64_t size);
  void (*unified_memory_deallocate)(const SP_Device *device, void *memory);
  TF_Bool (*get_allocator_stats)(const SP_Device *device, SP_AllocatorStats *stats);
  TF_Bool (*device_memory_usage)(const SP_Device *device, int64_t *free, int64_t *total);
  void (*create_stream)(const SP_Device *device, SP_Stream *stream, TF_Status *status);
  void (*destroy_stream)(const SP_Device *device, SP_Stream stream);
  void (*create_stream_dependency)(const SP_Device *device, SP_Stream dependent, SP_Stream other, TF_Status *status);
  void (*get_stream_status)(const SP_Device *device, SP_Stream stream, TF_Status *status);
  void (*create_event)(const SP_Device *device, SP_Event *event, TF_Status *status);
  void (*destroy_event)(const SP_Device *device, SP_Event event);
  SE_EventStatus (*get_event_status)(const SP_Device *device, SP_Event event);
  void (*record_event)(const SP_Device *device, SP_Stream stream, SP_Event event, TF_Status *status);
  void (*wait_for_event)(const SP_Device *device, SP_Stream stream, SP_Event event, TF_Status *status);
  void (*create_timer)(const SP_Device *device, SP_Timer *timer, TF_Status *status);
  void (*destroy_timer)(const SP_Device *device, SP_Timer timer);
  void (*start_timer)(const SP_Device *device, SP_Stream stream, SP_Timer timer, TF_Status *status);
  void (*stop_timer)(const SP_Device *device, SP_Stream stream, SP_Timer timer, TF_Status *status);
  void (*memcpy_dtoh)(const SP_Device *device, SP_Stream stream, void *host, const SP_DeviceMemoryBase *memory,
                      uint64_t size, TF_Status *status);
  void (*memcpy_htod)(const SP_Device *device, SP_Stream stream, SP_DeviceMemoryBase *memory, const void *host,
                      uint64_t size, TF_Status *status);
  void (*memcpy_dtod)(const SP_Device *device, SP_Stream stream, SP_DeviceMemoryBase *to,
                      const SP_DeviceMemoryBase *from, uint64_t size, TF_Status *status);
  void (*sync_memcpy_dtoh)(const SP_Device *device, void *host, const SP_DeviceMemoryBase *memory, uint64_t size,
                           TF_Status *status);
  void (*sync_memcpy_htod)(const SP_Device *device, SP_DeviceMemoryBase *memory, const void *host, uint64_t size,
                           TF_Status *status);
  void (*sync_memcpy_dtod)(const SP_Device *device, SP_DeviceMemoryBase *to, const SP_DeviceMemoryBase *from,
                           uint64_t size, TF_Status *status);
  void (*block_host_for_event)(const SP_Device *device, SP_Event event, TF_Status *status);
  void (*block_host_until_done)(const SP_Device *device, SP_Stream stream, TF_Status *status);
  void (*synchronize_all_activity)(const SP_Device *device, TF_Status *status);
  void (*mem_zero)(const SP_Device *device, SP_Stream stream, SP_DeviceMemoryBase *memory, uint64_t size,
                   TF_Status *status);
  void (*memset)(const SP_Device *device, SP_Stream stream, SP_DeviceMemoryBase *memory, uint8_t value, uint64_t size,
                 TF_Status *status);
  void (*memset32)(const SP_Device *device, SP_Stream stream, SP_DeviceMemoryBase *memory, uint32_t value,
                   uint64_t size, TF_Status *status);
  TF_Bool (*host_callback)(const SP_Device *device, SP_Stream stream, SE_StatusCallbackFn callback, void *argument);
} SP_StreamExecutor;

typedef struct SE_CreateStreamExecutorParams {
  size_t struct_size;
  void *ext;
  SP_StreamExecutor *stream_executor;
} SE_CreateStreamExecutorParams;

typedef struct SP_Platform {
  size_t struct_size;
  void *ext;
  const char *name;
  const char *type;
  TF_Bool supports_unified_memory;
  TF_Bool use_bfc_allocator;
  TF_Bool force_memory_growth;
} SP_Platform;

typedef struct SP_PlatformFns {
  size_t struct_size;
  void *ext;
  void (*get_device_count)(const SP_Platform *platform, int *count, TF_Status *status);
  void (*create_device)(const SP_Platform *platform, SE_CreateDeviceParams *params, TF_Status *status);
  void (*destroy_device)(const SP_Platform *platform, SP_Device *device);
  void (*create_device_fns)(const SP_Platform *platform, SE_CreateDeviceFnsParams *params, TF_Status *status);
  void (*destroy_device_fns)(const SP_Platform *platform, SP_DeviceFns *functions);
  void (*create_stream_executor)(const SP_Platform *platform, SE_CreateStreamExecutorParams *params, TF_Status *status);
  void (*destroy_stream_executor)(const SP_Platform *platform, SP_StreamExecutor *executor);
  void (*create_timer_fns)(const SP_Platform *platform, SP_TimerFns *timer, TF_Status *status);
  void (*destroy_timer_fns)(const SP_Platform *platform, SP_TimerFns *timer);
} SP_PlatformFns;

typedef struct SE_PlatformRegistrationParams {
  size_t struct_size;
  void *ext;
  int32_t major_version;
  int32_t minor_version;
  int32_t patch_version;
  SP_Platform *platform;
  SP_PlatformFns *platform_fns;
  void (*destroy_platform)(SP_Platform *platform);
  void (*destroy_platform_fns)(SP_PlatformFns *functions);
} SE_PlatformRegistrationParams;

typedef struct TP_Profiler {
  size_t struct_size;
  void *ext;
  const char *device_type;
} TP_Profiler;

typedef struct TP_ProfilerFns {
  size_t struct_size;
  void *ext;
  void (*start)(const TP_Profiler *profiler, TF_Status *status);
  void (*stop)(const TP_Profiler *profiler, TF_Status *status);
  void (*collect_data_xspace)(const TP_Profiler *profiler, uint8_t *buffer, size_t *size, TF_Status *status);
} TP_ProfilerFns;

typedef struct TF_ProfilerRegistrationParams {
  size_t struct_size;
  void *ext;
  int32_t major_version;
  int32_t minor_version;
  int32_t patch_version;
  TP_Profiler *profiler;
  TP_ProfilerFns *profiler_fns;
  void (*destroy_profiler)(TP_Profiler *profiler);
  void (*destroy_profiler_fns)(TP_ProfilerFns *functions);
} TF_ProfilerRegistrationParams;

typedef struct TF_GrapplerItem TF_GrapplerItem;
typedef enum TF_TriState { TF_TriState_Default = 0, TF_TriState_Off, TF_TriState_On } TF_TriState;

typedef struct TP_OptimizerConfigs {
  size_t struct_size;
  void *ext;
  TF_TriState disable_model_pruning;
  TF_TriState implementation_selector;
  TF_TriState function_optimization;
  TF_TriState common_subgraph_elimination;
  TF_TriState arithmetic_optimization;
  TF_TriState debug_stripper;
  TF_TriState constant_folding;
  TF_TriState shape_optimization;
  TF_TriState auto_mixed_precision;
  TF_TriState auto_mixed_precision_onednn_bfloat16;
  TF_TriState auto_mixed_precision_mkl;
  TF_TriState pin_to_host_optimization;
  TF_TriState layout_optimizer;
  TF_TriState remapping;
  TF_TriState loop_optimization;
  TF_TriState dependency_optimization;
  TF_TriState auto_parallel;
  TF_TriState memory_optimization;
  TF_TriState scoped_allocator_optimization;
} TP_OptimizerConfigs;

typedef struct TP_Optimizer {
  size_t struct_size;
  void *ext;
  void *(*create_func)(void);
  void (*optimize_func)(void *optimizer, const TF_Buffer *graph, const TF_GrapplerItem *item, TF_Buffer *out,
                        TF_Status *status);
  void (*destroy_func)(void *optimizer);
} TP_Optimizer;

typedef struct TP_OptimizerRegistrationParams {
  size_t struct_size;
  void *ext;
  int32_t major_version;
  int32_t minor_version;
  int32_t patch_version;
  const char *device_type;
  TP_OptimizerConfigs *optimizer_configs;
  TP_Optimizer *optimizer;
} TP_OptimizerRegistrationParams;

#endif
