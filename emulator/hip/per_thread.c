// What programs call that were compiled with -fgpu-default-stream=per-thread: the same functions, with the thread's own
// stream in place of the null stream.
#include <stdio.h>

#include "hip/hip.h"
#include "hip/layouts.h"

struct dim3 {
  unsigned x, y, z;
};
struct emu_event;
struct emu_executable;
struct emu_node;
struct emu_copy_3d;

int hipEventRecord(struct emu_event *event, void *stream);
int hipGraphLaunch(struct emu_executable *graph, void *stream);
int hipGetProcAddress(const char *name, void **out, int version, uint64_t flags, int *status);
int hipMemcpy3DAsync(const struct emu_copy_3d *c, void *stream);
int hipMemset3DAsync(struct emu_pitched to, int value, struct emu_extent extent, void *stream);
int hipMemcpyToSymbolAsync(const void *symbol, const void *src, size_t bytes, size_t offset, int kind, void *stream);
int hipMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t bytes, size_t offset, int kind, void *stream);
int hipStreamGetCaptureInfo(void *stream, int *status, unsigned long long *id);
int hipStreamGetCaptureInfo_v2(void *stream, int *status, unsigned long long *id, struct emu_graph **graph,
                               struct emu_node *const **nodes, size_t *count);
int hipLaunchKernel(const void *symbol, struct dim3 grid, struct dim3 block, void **parameters, size_t lds,
                    void *stream);
int hipLaunchCooperativeKernel(const void *symbol, struct dim3 grid, struct dim3 block, void **parameters, unsigned lds,
                               void *stream);
int hipLaunchHostFunc(void *stream, void (*function)(void *), void *data);
int hipMemcpyAsync(void *dst, const void *src, size_t bytes, int kind, void *stream);
int hipMemcpyWithStream(void *dst, const void *src, size_t bytes, int kind, void *stream);
int hipMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
                     int kind, void *stream);
int hipMemsetAsync(void *dst, int value, size_t bytes, void *stream);
int hipMemset2DAsync(void *dst, size_t pitch, int value, size_t width, size_t height, void *stream);
int hipStreamAddCallback(void *stream, void (*callback)(void *, int, void *), void *data, unsigned flags);
int hipStreamBeginCapture(void *stream, int mode);
int hipStreamEndCapture(void *stream, struct emu_graph **out);
int hipStreamGetFlags(void *stream, unsigned *flags);
int hipStreamGetPriority(void *stream, int *priority);
int hipStreamIsCapturing(void *stream, int *status);
int hipStreamQuery(void *stream);
int hipStreamSynchronize(void *stream);
int hipStreamWaitEvent(void *stream, struct emu_event *event, unsigned flags);

#define PER_THREAD ((void *)2)  // hipStreamPerThread
static void *own(void *stream) { return stream ? stream : PER_THREAD; }
static int finished(int code) { return code == HIP_SUCCESS ? hipStreamSynchronize(PER_THREAD) : code; }

API int hipEventRecord_spt(struct emu_event *event, void *stream) { return hipEventRecord(event, own(stream)); }
API int hipGraphLaunch_spt(struct emu_executable *graph, void *stream) { return hipGraphLaunch(graph, own(stream)); }
API int hipLaunchKernel_spt(const void *symbol, struct dim3 grid, struct dim3 block, void **parameters, size_t lds,
                            void *stream) {
  return hipLaunchKernel(symbol, grid, block, parameters, lds, own(stream));
}
API int hipLaunchCooperativeKernel_spt(const void *symbol, struct dim3 grid, struct dim3 block, void **parameters,
                                       unsigned lds, void *stream) {
  return hipLaunchCooperativeKernel(symbol, grid, block, parameters, lds, own(stream));
}
API int hipLaunchHostFunc_spt(void *stream, void (*function)(void *), void *data) {
  return hipLaunchHostFunc(own(stream), function, data);
}

API int hipMemcpy_spt(void *dst, const void *src, size_t bytes, int kind) {
  return hipMemcpyWithStream(dst, src, bytes, kind, PER_THREAD);
}
API int hipMemcpyAsync_spt(void *dst, const void *src, size_t bytes, int kind, void *stream) {
  return hipMemcpyAsync(dst, src, bytes, kind, own(stream));
}
API int hipMemcpy2D_spt(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
                        int kind) {
  return finished(hipMemcpy2DAsync(dst, dst_pitch, src, src_pitch, width, height, kind, PER_THREAD));
}
API int hipMemcpy2DAsync_spt(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                             size_t height, int kind, void *stream) {
  return hipMemcpy2DAsync(dst, dst_pitch, src, src_pitch, width, height, kind, own(stream));
}
API int hipMemset_spt(void *dst, int value, size_t bytes) {
  return finished(hipMemsetAsync(dst, value, bytes, PER_THREAD));
}
API int hipMemsetAsync_spt(void *dst, int value, size_t bytes, void *stream) {
  return hipMemsetAsync(dst, value, bytes, own(stream));
}
API int hipMemset2D_spt(void *dst, size_t pitch, int value, size_t width, size_t height) {
  return finished(hipMemset2DAsync(dst, pitch, value, width, height, PER_THREAD));
}
API int hipMemset2DAsync_spt(void *dst, size_t pitch, int value, size_t width, size_t height, void *stream) {
  return hipMemset2DAsync(dst, pitch, value, width, height, own(stream));
}

API int hipStreamAddCallback_spt(void *stream, void (*callback)(void *, int, void *), void *data, unsigned flags) {
  return hipStreamAddCallback(own(stream), callback, data, flags);
}
API int hipStreamBeginCapture_spt(void *stream, int mode) { return hipStreamBeginCapture(own(stream), mode); }
API int hipStreamEndCapture_spt(void *stream, struct emu_graph **out) { return hipStreamEndCapture(own(stream), out); }
API int hipStreamGetFlags_spt(void *stream, unsigned *flags) { return hipStreamGetFlags(own(stream), flags); }
API int hipStreamGetPriority_spt(void *stream, int *priority) { return hipStreamGetPriority(own(stream), priority); }
API int hipStreamIsCapturing_spt(void *stream, int *status) { return hipStreamIsCapturing(own(stream), status); }
API int hipStreamQuery_spt(void *stream) { return hipStreamQuery(own(stream)); }
API int hipStreamSynchronize_spt(void *stream) { return hipStreamSynchronize(own(stream)); }
API int hipStreamWaitEvent_spt(void *stream, struct emu_event *event, unsigned flags) {
  return hipStreamWaitEvent(own(stream), event, flags);
}

API int hipMemcpy3D_spt(const struct emu_copy_3d *c) { return finished(hipMemcpy3DAsync(c, PER_THREAD)); }
API int hipMemcpy3DAsync_spt(const struct emu_copy_3d *c, void *stream) { return hipMemcpy3DAsync(c, own(stream)); }
API int hipMemset3D_spt(struct emu_pitched to, int value, struct emu_extent extent) {
  return finished(hipMemset3DAsync(to, value, extent, PER_THREAD));
}
API int hipMemset3DAsync_spt(struct emu_pitched to, int value, struct emu_extent extent, void *stream) {
  return hipMemset3DAsync(to, value, extent, own(stream));
}
API int hipMemcpyToSymbol_spt(const void *symbol, const void *src, size_t bytes, size_t offset, int kind) {
  return finished(hipMemcpyToSymbolAsync(symbol, src, bytes, offset, kind, PER_THREAD));
}
API int hipMemcpyToSymbolAsync_spt(const void *symbol, const void *src, size_t bytes, size_t offset, int kind,
                                   void *stream) {
  return hipMemcpyToSymbolAsync(symbol, src, bytes, offset, kind, own(stream));
}
API int hipMemcpyFromSymbol_spt(void *dst, const void *symbol, size_t bytes, size_t offset, int kind) {
  return finished(hipMemcpyFromSymbolAsync(dst, symbol, bytes, offset, kind, PER_THREAD));
}
API int hipMemcpyFromSymbolAsync_spt(void *dst, const void *symbol, size_t bytes, size_t offset, int kind,
                                     void *stream) {
  return hipMemcpyFromSymbolAsync(dst, symbol, bytes, offset, kind, own(stream));
}
API int hipStreamGetCaptureInfo_spt(void *stream, int *status, unsigned long long *id) {
  return hipStreamGetCaptureInfo(own(stream), status, id);
}
API int hipStreamGetCaptureInfo_v2_spt(void *stream, int *status, unsigned long long *id, struct emu_graph **graph,
                                       struct emu_node *const **nodes, size_t *count) {
  return hipStreamGetCaptureInfo_v2(own(stream), status, id, graph, nodes, count);
}

// The forms for the thread's own stream, of calls that have one.
static int own_form(const char *name, void **out, int version, uint64_t flags, int *status) {
  char own_name[128];
  if (!name || snprintf(own_name, sizeof own_name, "%s_spt", name) >= (int)sizeof own_name)
    return emu_done(HIP_INVALID_VALUE);
  int code = hipGetProcAddress(own_name, out, version, flags, status);
  return code == HIP_NOT_FOUND ? hipGetProcAddress(name, out, version, flags, status) : code;
}
API int hipGetProcAddress_spt(const char *name, void **out, int version, uint64_t flags, int *status) {
  return own_form(name, out, version, flags, status);
}
API int hipGetDriverEntryPoint_spt(const char *name, void **out, uint64_t flags, int *status) {
  return own_form(name, out, 700, flags, status);
}
