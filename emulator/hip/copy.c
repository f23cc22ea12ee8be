// Copies and fills. They run on the stream's thread; a call without "Async" waits for them. Host memory that HIP does
// not know ("pageable") is done with when the call returns, as HIP documents.
#include <stdlib.h>
#include <string.h>

#include "hip/array.h"

enum { HOST_TO_DEVICE = 1, DEVICE_TO_HOST = 2, DEVICE_TO_DEVICE = 3, KIND_DEFAULT = 4, STAGED_BYTES = 1 << 20 };

// A box of `slices` times `rows` rows of `width` bytes, in memory of any pitch:
//
//     dst | row 0: width | … | row 1: width | … |    … | row 0 of the next slice: width | …
//         |<--- dst_pitch --->|
//         |<------------------ dst_slice ------------->|
//
// A fill (`unit` not 0) repeats the low `unit` bytes of `pattern` in place of reading src.
struct transfer {
  uint8_t *dst;
  const uint8_t *src;
  size_t dst_pitch, src_pitch, width, rows;
  size_t slices, dst_slice, src_slice;  // bytes from slice to slice; 0 slices are one
  unsigned unit;
  uint32_t pattern;
  int kind;  // as the program told it
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
  for (size_t slice = 0; slice < t->slices; slice++)
    for (size_t row = 0; row < t->rows; row++) {
      uint8_t *dst = t->dst + slice * t->dst_slice + row * t->dst_pitch;
      if (t->unit) {
        fill(dst, t->width, t->unit, t->pattern);
      } else {
        memmove(dst, t->src + slice * t->src_slice + row * t->src_pitch, t->width);
      }
      emu_block_written(dst, t->width);
    }
  return HIP_SUCCESS;
}

// Bytes from the first byte of the box to behind its last one; SIZE_MAX: more than there can be.
static size_t span(const struct transfer *t, size_t pitch, size_t slice) {
  size_t rows, slices, all;
  if (__builtin_mul_overflow(t->rows - 1, pitch, &rows) || __builtin_mul_overflow(t->slices - 1, slice, &slices) ||
      __builtin_add_overflow(rows, slices, &all) || __builtin_add_overflow(all, t->width, &all) || all > SIZE_MAX / 4)
    return SIZE_MAX;
  return all;
}

static int check(const struct transfer *t, const char *what) {
  size_t dst = span(t, t->dst_pitch, t->dst_slice), src = span(t, t->src_pitch, t->src_slice);
  if (dst == SIZE_MAX || src == SIZE_MAX) return HIP_INVALID_VALUE;
  int code = emu_block_check(t->dst, dst, what);
  if (code == HIP_SUCCESS && t->unit == 0) code = emu_block_check(t->src, src, what);
  return code;
}

static int run_nothing(void *context) { return HIP_SUCCESS; }

// `stage`: the source is read now.
static int work_of(struct transfer *wanted, bool stage, const char *what, struct emu_work *out) {
  enum emu_node_kind node = wanted->unit ? EMU_NODE_FILL : EMU_NODE_COPY;
  *out = (struct emu_work){run_nothing, NULL, NULL, node};
  if (wanted->rows == 0 || wanted->width == 0) return HIP_SUCCESS;
  if (wanted->slices == 0) wanted->slices = 1;
  int code = check(wanted, what);
  if (code != HIP_SUCCESS) return code;
  size_t bytes = span(wanted, wanted->src_pitch, wanted->src_slice);
  struct transfer *t = malloc(sizeof *t + (stage ? bytes : 0));
  if (!t) return HIP_OUT_OF_MEMORY;
  *t = *wanted;
  if (stage) {
    memcpy(t->staged, t->src, bytes);
    t->src = t->staged;
  }
  *out = (struct emu_work){run, free, t, node};
  return HIP_SUCCESS;
}

static int submit(struct transfer *wanted, struct emu_stream *stream, bool wait, const char *what) {
  struct emu_work work;
  if (!stream) return HIP_INVALID_HANDLE;
  if (wanted->rows == 0 || wanted->width == 0) return HIP_SUCCESS;
  if (wanted->slices == 0) wanted->slices = 1;
  bool from_pageable = wanted->unit == 0 && emu_block_pageable(wanted->src);
  bool to_pageable = emu_block_pageable(wanted->dst);
  bool small = span(wanted, wanted->src_pitch, wanted->src_slice) <= STAGED_BYTES;
  bool stage = from_pageable && !to_pageable && !wait && small;
  int code = work_of(wanted, stage, what, &work);
  if (code == HIP_SUCCESS) code = emu_stream_submit(stream, work, NULL, NULL);
  if (code != HIP_SUCCESS || (!wait && emu_stream_captures(stream))) return code;
  return wait || to_pageable || (from_pageable && !stage) ? emu_stream_finish(stream) : HIP_SUCCESS;
}

static int plain_copy(void *dst, const void *src, size_t bytes, int kind, struct transfer *out) {
  if (bytes && (!dst || !src)) return HIP_INVALID_VALUE;
  if (kind < 0 || kind > KIND_DEFAULT) return HIP_INVALID_DIRECTION;
  *out = (struct transfer){.dst = dst, .src = src, .width = bytes, .rows = 1, .kind = kind};
  return HIP_SUCCESS;
}

int emu_copy_work(void *dst, const void *src, size_t bytes, int kind, struct emu_work *out) {
  struct transfer t;
  int code = plain_copy(dst, src, bytes, kind, &t);
  return code == HIP_SUCCESS ? work_of(&t, false, "a graph's copy", out) : code;
}

static int copy(void *dst, const void *src, size_t bytes, int kind, void *handle, bool wait, const char *what) {
  struct transfer t;
  int code = plain_copy(dst, src, bytes, kind, &t);
  return code == HIP_SUCCESS ? submit(&t, emu_stream_of(handle), wait, what) : code;
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
  struct transfer t = {.dst = dst,
                       .src = src,
                       .dst_pitch = dst_pitch,
                       .src_pitch = src_pitch,
                       .width = width,
                       .rows = height,
                       .kind = kind};
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

static int plain_fill(void *dst, size_t pitch, size_t width, size_t height, unsigned unit, uint32_t pattern,
                      struct transfer *out) {
  if (width && height && !dst) return HIP_INVALID_VALUE;
  if (height > 1 && width > pitch) return HIP_INVALID_PITCH;
  *out = (struct transfer){
      .dst = dst, .dst_pitch = pitch, .width = width, .rows = height, .unit = unit, .pattern = pattern};
  return HIP_SUCCESS;
}

int emu_fill_work(void *dst, size_t pitch, size_t width, size_t height, unsigned unit, uint32_t pattern,
                  struct emu_work *out) {
  struct transfer t;
  int code = plain_fill(dst, pitch, width, height, unit, pattern, &t);
  return code == HIP_SUCCESS ? work_of(&t, false, "a graph's fill", out) : code;
}

static int set(void *dst, size_t pitch, size_t width, size_t height, unsigned unit, uint32_t pattern, void *handle,
               bool wait, const char *what) {
  struct transfer t;
  int code = plain_fill(dst, pitch, width, height, unit, pattern, &t);
  return code == HIP_SUCCESS ? submit(&t, emu_stream_of(handle), wait, what) : code;
}
// As in HIP, a fill of device memory does not hold up the host; one of host memory does.
API int hipMemset(void *dst, int value, size_t bytes) {
  struct emu_block block;
  bool wait = emu_block_find(dst, &block) != EMU_PLACE_BLOCK || !emu_block_is_device(&block) || block.waits;
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

// ---- three dimensions

int hipMallocPitch(void **out, size_t *pitch, size_t width, size_t height);

API int hipMalloc3D(struct emu_pitched *out, struct emu_extent extent) {
  size_t rows;
  if (!out || __builtin_mul_overflow(extent.height, extent.depth, &rows)) return emu_done(HIP_INVALID_VALUE);
  out->width = extent.width;
  out->height = extent.height;
  return hipMallocPitch(&out->at, &out->pitch, extent.width, rows);
}

// The first byte of the part, and the distance of its slices; false: the part is not in it.
static bool part_of(const struct emu_pitched *whole, const struct emu_position *at, const struct emu_extent *part,
                    uint8_t **first, size_t *slice) {
  size_t along, down, deep, end;
  if (__builtin_add_overflow(at->x, part->width, &end) || end > whole->pitch ||
      __builtin_add_overflow(at->y, part->height, &end) || (part->depth > 1 && end > whole->height) ||
      __builtin_mul_overflow(whole->pitch, whole->height, slice) || __builtin_mul_overflow(*slice, at->z, &deep) ||
      __builtin_mul_overflow(whole->pitch, at->y, &down) || __builtin_add_overflow(deep, down, &along) ||
      __builtin_add_overflow(along, at->x, &along))
    return false;
  *first = (uint8_t *)whole->at + along;
  return true;
}

static int describe_3d(const struct emu_copy_3d *c, struct transfer *out) {
  struct emu_copy_3d flat;
  if (!c) return HIP_INVALID_VALUE;
  int code = emu_array_flatten(c, &flat);
  if (code != HIP_SUCCESS) return code;
  c = &flat;
  if (c->kind < 0 || c->kind > KIND_DEFAULT) return HIP_INVALID_DIRECTION;
  const struct emu_extent *e = &c->extent;
  *out = (struct transfer){.dst_pitch = c->dst.pitch, .src_pitch = c->src.pitch, .kind = c->kind};
  if (e->width == 0 || e->height == 0 || e->depth == 0) return HIP_SUCCESS;
  uint8_t *src;
  if (!c->src.at || !c->dst.at || !part_of(&c->src, &c->src_at, e, &src, &out->src_slice) ||
      !part_of(&c->dst, &c->dst_at, e, &out->dst, &out->dst_slice))
    return HIP_INVALID_VALUE;
  out->src = src;
  out->width = e->width;
  out->rows = e->height;
  out->slices = e->depth;
  return HIP_SUCCESS;
}

int emu_copy_3d_work(const struct emu_copy_3d *parameters, struct emu_work *out) {
  struct transfer t;
  int code = describe_3d(parameters, &t);
  return code == HIP_SUCCESS ? work_of(&t, false, "a graph's copy", out) : code;
}

// Rows and slices as they lie in memory, from their first byte on.
static struct emu_pitched pitched(const void *at, size_t pitch, size_t slice, const struct transfer *t) {
  size_t rows = pitch && slice ? slice / pitch : t->rows;
  return (struct emu_pitched){(void *)(uintptr_t)at, pitch ? pitch : t->width, t->width, rows};
}

void emu_copy_describe(const void *context, struct emu_copy_3d *out) {
  const struct transfer *t = context;
  *out = (struct emu_copy_3d){0};
  if (!t) return;
  out->src = pitched(t->src, t->src_pitch, t->src_slice, t);
  out->dst = pitched(t->dst, t->dst_pitch, t->dst_slice, t);
  out->extent = (struct emu_extent){t->width, t->rows, t->slices};
  out->kind = t->kind;
}

void emu_fill_describe(const void *context, struct emu_fill_node *out) {
  const struct transfer *t = context;
  *out = (struct emu_fill_node){0};
  if (t) *out = (struct emu_fill_node){t->dst, t->unit, t->rows, t->dst_pitch, t->pattern, t->width / t->unit};
}

static int copy_3d(const struct emu_copy_3d *c, void *handle, bool wait) {
  struct transfer t;
  int code = describe_3d(c, &t);
  return code == HIP_SUCCESS ? submit(&t, emu_stream_of(handle), wait, "hipMemcpy3D") : code;
}
API int hipMemcpy3D(const struct emu_copy_3d *c) { return emu_done(copy_3d(c, NULL, true)); }
API int hipMemcpy3DAsync(const struct emu_copy_3d *c, void *stream) { return emu_done(copy_3d(c, stream, false)); }

static int set_3d(struct emu_pitched to, int value, struct emu_extent extent, void *handle, bool wait) {
  struct transfer t = {.dst_pitch = to.pitch,
                       .width = extent.width,
                       .rows = extent.height,
                       .slices = extent.depth,
                       .unit = 1,
                       .pattern = (uint32_t)value};
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return HIP_SUCCESS;
  if (!to.at || !part_of(&to, &(struct emu_position){0}, &extent, &t.dst, &t.dst_slice)) return HIP_INVALID_VALUE;
  return submit(&t, emu_stream_of(handle), wait, "hipMemset3D");
}
API int hipMemset3D(struct emu_pitched to, int value, struct emu_extent extent) {
  return emu_done(set_3d(to, value, extent, NULL, true));
}
API int hipMemset3DAsync(struct emu_pitched to, int value, struct emu_extent extent, void *stream) {
  return emu_done(set_3d(to, value, extent, stream, false));
}

// The driver-like fills count elements.
static int set_elements(void *dst, uint32_t value, size_t count, unsigned unit, void *stream, bool wait) {
  if (count > SIZE_MAX / 8 || (uintptr_t)dst % unit != 0) return HIP_INVALID_VALUE;
  return set(dst, 0, count * unit, 1, unit, value, stream, wait, "hipMemsetD8, D16 or D32");
}
static int set_rows(void *dst, size_t pitch, uint32_t value, size_t width, size_t height, unsigned unit, void *stream,
                    bool wait) {
  if (width > SIZE_MAX / 8 || (uintptr_t)dst % unit != 0 || (height > 1 && pitch % unit != 0)) return HIP_INVALID_VALUE;
  return set(dst, pitch, width * unit, height, unit, value, stream, wait, "hipMemsetD2D8, D2D16 or D2D32");
}
API int hipMemsetD2D8(void *dst, size_t pitch, unsigned char value, size_t width, size_t height) {
  return emu_done(set_rows(dst, pitch, value, width, height, 1, NULL, true));
}
API int hipMemsetD2D8Async(void *dst, size_t pitch, unsigned char value, size_t width, size_t height, void *stream) {
  return emu_done(set_rows(dst, pitch, value, width, height, 1, stream, false));
}
API int hipMemsetD2D16(void *dst, size_t pitch, unsigned short value, size_t width, size_t height) {
  return emu_done(set_rows(dst, pitch, value, width, height, 2, NULL, true));
}
API int hipMemsetD2D16Async(void *dst, size_t pitch, unsigned short value, size_t width, size_t height, void *stream) {
  return emu_done(set_rows(dst, pitch, value, width, height, 2, stream, false));
}
API int hipMemsetD2D32(void *dst, size_t pitch, unsigned value, size_t width, size_t height) {
  return emu_done(set_rows(dst, pitch, value, width, height, 4, NULL, true));
}
API int hipMemsetD2D32Async(void *dst, size_t pitch, unsigned value, size_t width, size_t height, void *stream) {
  return emu_done(set_rows(dst, pitch, value, width, height, 4, stream, false));
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
