// Calls that stand for several others, and newer forms of old ones.
#include "hip/hip.h"
#include "hip/layouts.h"

int hipMemcpyAsync(void *dst, const void *src, size_t bytes, int kind, void *stream);
int hipMemPrefetchAsync(const void *pointer, size_t bytes, int device, void *stream);
int hipMemAdvise(const void *pointer, size_t bytes, int advice, int device);
int hipMallocPitch(void **out, size_t *pitch, size_t width, size_t height);
int hipModuleLoadData(struct emu_module **out, const void *image);
int hipModuleOccupancyMaxPotentialBlockSize(int *grid, int *block, struct emu_function *f, size_t lds, int limit);
int hipStreamWaitValue32(void *stream, void *at, uint32_t value, unsigned flags, uint32_t mask);
int hipStreamWaitValue64(void *stream, void *at, uint64_t value, unsigned flags, uint64_t mask);
int hipStreamWriteValue32(void *stream, void *at, uint32_t value, unsigned flags);
int hipStreamWriteValue64(void *stream, void *at, uint64_t value, unsigned flags);

enum { KIND_DEFAULT = 4 };

// Attributes tell in what order sources may be read; here all are read in order. |failed| is the number of the copy
// that could not be queued; those before it are.
API int hipMemcpyBatchAsync(void **dst, void **src, size_t *bytes, size_t count, const void *attributes,
                            const size_t *indices, size_t attribute_count, size_t *failed, void *stream) {
  bool valid = dst && src && bytes && count && attributes && indices && attribute_count && attribute_count <= count;
  if (!valid || !emu_stream_of(stream)) return emu_done(valid ? HIP_INVALID_HANDLE : HIP_INVALID_VALUE);
  for (size_t i = 0; i < count; i++) {
    int code = bytes[i] ? hipMemcpyAsync(dst[i], src[i], bytes[i], KIND_DEFAULT, stream) : HIP_INVALID_VALUE;
    if (code == HIP_SUCCESS) continue;
    if (failed) *failed = i;
    return emu_done(code);
  }
  return emu_done(HIP_SUCCESS);
}

enum { IN_HOST_MEMORY = -1, ON_DEVICE = 1, ON_NUMA_NODE = 4 };  // hipMemLocationType; a NUMA node of the host's

static int device_of(struct emu_location location) { return location.type == ON_DEVICE ? location.id : IN_HOST_MEMORY; }
static bool is_place(struct emu_location location) {
  return location.type == ON_DEVICE ? emu_device(location.id) != NULL
                                    : location.type > ON_DEVICE && location.type <= ON_NUMA_NODE;
}
API int hipMemPrefetchAsync_v2(const void *pointer, size_t bytes, struct emu_location location, unsigned flags,
                               void *stream) {
  if (flags || !is_place(location)) return emu_done(HIP_INVALID_VALUE);
  return hipMemPrefetchAsync(pointer, bytes, device_of(location), stream);
}
API int hipMemAdvise_v2(const void *pointer, size_t bytes, int advice, struct emu_location location) {
  if (!is_place(location)) return emu_done(HIP_INVALID_VALUE);
  return hipMemAdvise(pointer, bytes, advice, device_of(location));
}

API int hipMemAllocPitch(void **out, size_t *pitch, size_t width, size_t height, unsigned element) {
  if (element != 4 && element != 8 && element != 16) return emu_done(HIP_INVALID_VALUE);
  return hipMallocPitch(out, pitch, width, height);
}

API int hipModuleLoadFatBinary(struct emu_module **out, const void *image) { return hipModuleLoadData(out, image); }
API int hipModuleOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, struct emu_function *f, size_t lds,
                                                         int limit, unsigned flags) {
  return hipModuleOccupancyMaxPotentialBlockSize(grid, block, f, lds, limit);
}

// hipStreamBatchMemOpParams
union operation {
  int kind;
  struct {
    int kind;
    void *at;
    uint64_t value;
    unsigned flags;
    void *unused;
  } value;
  uint64_t room[6];
};

static int one(void *stream, const union operation *o) {
  enum { WAIT_32 = 1, WRITE_32 = 2, WAIT_64 = 4, WRITE_64 = 5 };
  switch (o->kind) {
    case WAIT_32:
      return hipStreamWaitValue32(stream, o->value.at, (uint32_t)o->value.value, o->value.flags, UINT32_MAX);
    case WRITE_32:
      return hipStreamWriteValue32(stream, o->value.at, (uint32_t)o->value.value, o->value.flags);
    case WAIT_64:
      return hipStreamWaitValue64(stream, o->value.at, o->value.value, o->value.flags, UINT64_MAX);
    case WRITE_64:
      return hipStreamWriteValue64(stream, o->value.at, o->value.value, o->value.flags);
    default:
      return HIP_NOT_SUPPORTED;  // barriers and flushes: AMD's has none either
  }
}
API int hipStreamBatchMemOp(void *stream, unsigned count, const union operation *operations, unsigned flags) {
  enum { MOST = 256 };
  if (!operations || count == 0 || count > MOST || flags) return emu_done(HIP_INVALID_VALUE);
  int code = HIP_SUCCESS;
  for (unsigned i = 0; i < count && code == HIP_SUCCESS; i++) code = one(stream, &operations[i]);
  return emu_done(code);
}
