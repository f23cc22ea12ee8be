// Copies and fills. They run on the stream's thread; a call without "Async" waits for them. Host memory that HIP does
// not know ("pageable") is done with when the call returns, as HIP documents.
#include <stdlib.h>
#include <string.h>

#include "hip/hip.h"

enum { HOST_TO_DEVICE = 1, DEVICE_TO_HOST = 2, DEVICE_TO_DEVICE = 3, KIND_DEFAULT = 4, STAGED_BYTES = 1 << 20 };

// `rows` rows of `width` bytes. A fill repeats `pattern`, `unit` bytes of it, in place of reading src.
struct transfer {
  uint8_t *dst;
  const uint8_t *src;
  size_t dst_pitch, src_pitch, width, rows;
  unsigned unit;
  uint32_t pattern;
  uint8_t staged[];
};

static void fill(uint8_t *dst, size_t bytes, unsigned unit, uint32_t pattern) {
  if (unit == 1) {
    memset(dst, (int)(pattern & 0xff), bytes);
    return;
  }
  for (size_t at = 0; at < bytes; at += unit) memcpy(dst + at, &pattern, unit);
}

static int run(void *context) {
  struct transfer *t = context;
  for (size_t row = 0; row < t->rows; row++) {
    uint8_t *dst = t->dst + row * t->dst_pitch;
    if (t->unit) {
      fill(dst, t->width, t->unit, t->pattern);
    } else {
      memmove(dst, t->src + row * t->src_pitch, t->width);
    }
    emu_block_written(dst, t->width);
  }
  return HIP_SUCCESS;
}

static size_t span(size_t pitch, size_t width, size_t rows) { return rows == 0 ? 0 : (rows - 1) * pitch + width; }

static int check(const struct transfer *t, const char *what) {
  int code = HIP_SUCCESS;
  if (t->rows && (t->dst_pitch > SIZE_MAX / 4 / t->rows || t->src_pitch > SIZE_MAX / 4 / t->rows))
    return HIP_INVALID_VALUE;
  code = emu_block_check(t->dst, span(t->dst_pitch, t->width, t->rows), what);
  if (code == HIP_SUCCESS && t->unit == 0) code = emu_block_check(t->src, span(t->src_pitch, t->width, t->rows), what);
  return code;
}

static int submit(const struct transfer *wanted, struct emu_stream *stream, bool wait, const char *what) {
  if (!stream) return HIP_INVALID_HANDLE;
  if (wanted->rows == 0 || wanted->width == 0) return HIP_SUCCESS;
  int code = check(wanted, what);
  if (code != HIP_SUCCESS) return code;
  bool from_pageable = wanted->unit == 0 && emu_block_pageable(wanted->src);
  bool to_pageable = emu_block_pageable(wanted->dst);
  size_t bytes = span(wanted->src_pitch, wanted->width, wanted->rows);
  bool stage = from_pageable && !to_pageable && !wait && bytes <= STAGED_BYTES;
  struct transfer *t = malloc(sizeof *t + (stage ? bytes : 0));
  if (!t) return HIP_OUT_OF_MEMORY;
  *t = *wanted;
  if (stage) {
    memcpy(t->staged, t->src, bytes);
    t->src = t->staged;
  }
  code = emu_stream_submit(stream, (struct emu_work){run, free, t}, NULL, NULL);
  if (code != HIP_SUCCESS || (!wait && emu_stream_captures(stream))) return code;
  return wait || to_pageable || (from_pageable && !stage) ? emu_stream_finish(stream) : HIP_SUCCESS;
}

static int copy(void *dst, const void *src, size_t bytes, int kind, void *handle, bool wait, const char *what) {
  if (bytes && (!dst || !src)) return HIP_INVALID_VALUE;
  if (kind < 0 || kind > KIND_DEFAULT) return HIP_INVALID_DIRECTION;
  struct transfer t = {.dst = dst, .src = src, .width = bytes, .rows = 1};
  return submit(&t, emu_stream_of(handle), wait, what);
}

API int hipMemcpy(void *dst, const void *src, size_t bytes, int kind) {
  return emu_done(copy(dst, src, bytes, kind, NULL, true, "hipMemcpy"));
}
API int hipMemcpyAsync(void *dst, const void *src, size_t bytes, int kind, void *stream) {
  return emu_done(copy(dst, src, bytes, kind, stream, false, "hipMemcpyAsync"));
}
API int hipMemcpyWithStream(void *dst, const void *src, size_t bytes, int kind, void *stream) {
  return emu_done(copy(dst, src, bytes, kind, stream, true, "hipMemcpyWithStream"));
}
API int hipMemcpyHtoD(void *dst, void *src, size_t bytes) {
  return emu_done(copy(dst, src, bytes, HOST_TO_DEVICE, NULL, true, "hipMemcpyHtoD"));
}
API int hipMemcpyDtoH(void *dst, void *src, size_t bytes) {
  return emu_done(copy(dst, src, bytes, DEVICE_TO_HOST, NULL, true, "hipMemcpyDtoH"));
}
API int hipMemcpyDtoD(void *dst, void *src, size_t bytes) {
  return emu_done(copy(dst, src, bytes, DEVICE_TO_DEVICE, NULL, true, "hipMemcpyDtoD"));
}
API int hipMemcpyHtoDAsync(void *dst, void *src, size_t bytes, void *stream) {
  return emu_done(copy(dst, src, bytes, HOST_TO_DEVICE, stream, false, "hipMemcpyHtoDAsync"));
}
API int hipMemcpyDtoHAsync(void *dst, void *src, size_t bytes, void *stream) {
  return emu_done(copy(dst, src, bytes, DEVICE_TO_HOST, stream, false, "hipMemcpyDtoHAsync"));
}
API int hipMemcpyDtoDAsync(void *dst, void *src, size_t bytes, void *stream) {
  return emu_done(copy(dst, src, bytes, DEVICE_TO_DEVICE, stream, false, "hipMemcpyDtoDAsync"));
}

static int copy_peer(void *dst, int dst_device, const void *src, int src_device, size_t bytes, void *stream,
                     bool wait) {
  if (!emu_device(dst_device) || !emu_device(src_device)) return HIP_INVALID_DEVICE;
  return copy(dst, src, bytes, DEVICE_TO_DEVICE, stream, wait, "hipMemcpyPeer");
}
API int hipMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t bytes) {
  return emu_done(copy_peer(dst, dst_device, src, src_device, bytes, NULL, true));
}
API int hipMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device, size_t bytes, void *stream) {
  return emu_done(copy_peer(dst, dst_device, src, src_device, bytes, stream, false));
}

static int copy_2d(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
                   int kind, void *handle, bool wait) {
  if (width && height && (!dst || !src)) return HIP_INVALID_VALUE;
  if (width > dst_pitch || width > src_pitch) return HIP_INVALID_PITCH;
  if (kind < 0 || kind > KIND_DEFAULT) return HIP_INVALID_DIRECTION;
  struct transfer t = {
      .dst = dst, .src = src, .dst_pitch = dst_pitch, .src_pitch = src_pitch, .width = width, .rows = height};
  return submit(&t, emu_stream_of(handle), wait, "hipMemcpy2D");
}
API int hipMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
                    int kind) {
  return emu_done(copy_2d(dst, dst_pitch, src, src_pitch, width, height, kind, NULL, true));
}
API int hipMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
                         int kind, void *stream) {
  return emu_done(copy_2d(dst, dst_pitch, src, src_pitch, width, height, kind, stream, false));
}

static int set(void *dst, size_t pitch, size_t width, size_t height, unsigned unit, uint32_t pattern, void *handle,
               bool wait, const char *what) {
  if (width && height && !dst) return HIP_INVALID_VALUE;
  if (height > 1 && width > pitch) return HIP_INVALID_PITCH;
  struct transfer t = {
      .dst = dst, .dst_pitch = pitch, .width = width, .rows = height, .unit = unit, .pattern = pattern};
  return submit(&t, emu_stream_of(handle), wait, what);
}
// As in HIP, a fill of device memory does not hold up the host; one of host memory does.
API int hipMemset(void *dst, int value, size_t bytes) {
  struct emu_block block;
  bool wait = emu_block_find(dst, &block) != EMU_PLACE_BLOCK || block.kind != EMU_BLOCK_DEVICE;
  return emu_done(set(dst, 0, bytes, 1, 1, (uint32_t)value, NULL, wait, "hipMemset"));
}
API int hipMemsetAsync(void *dst, int value, size_t bytes, void *stream) {
  return emu_done(set(dst, 0, bytes, 1, 1, (uint32_t)value, stream, false, "hipMemsetAsync"));
}
API int hipMemset2D(void *dst, size_t pitch, int value, size_t width, size_t height) {
  return emu_done(set(dst, pitch, width, height, 1, (uint32_t)value, NULL, true, "hipMemset2D"));
}
API int hipMemset2DAsync(void *dst, size_t pitch, int value, size_t width, size_t height, void *stream) {
  return emu_done(set(dst, pitch, width, height, 1, (uint32_t)value, stream, false, "hipMemset2DAsync"));
}

// The driver-like fills count elements.
static int set_elements(void *dst, uint32_t value, size_t count, unsigned unit, void *stream, bool wait) {
  if (count > SIZE_MAX / 8 || (uintptr_t)dst % unit != 0) return HIP_INVALID_VALUE;
  return set(dst, 0, count * unit, 1, unit, value, stream, wait, "hipMemsetD8, D16 or D32");
}
API int hipMemsetD8(void *dst, unsigned char value, size_t count) {
  return emu_done(set_elements(dst, value, count, 1, NULL, true));
}
API int hipMemsetD8Async(void *dst, unsigned char value, size_t count, void *stream) {
  return emu_done(set_elements(dst, value, count, 1, stream, false));
}
API int hipMemsetD16(void *dst, unsigned short value, size_t count) {
  return emu_done(set_elements(dst, value, count, 2, NULL, true));
}
API int hipMemsetD16Async(void *dst, unsigned short value, size_t count, void *stream) {
  return emu_done(set_elements(dst, value, count, 2, stream, false));
}
API int hipMemsetD32(void *dst, int value, size_t count) {
  return emu_done(set_elements(dst, (uint32_t)value, count, 4, NULL, true));
}
API int hipMemsetD32Async(void *dst, int value, size_t count, void *stream) {
  return emu_done(set_elements(dst, (uint32_t)value, count, 4, stream, false));
}
