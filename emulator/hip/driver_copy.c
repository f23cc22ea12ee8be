// Copies as the driver-like interface tells them: what kind of memory each side is, and where the box begins in it.
#include "hip/array.h"

int hipMemcpy3D(const struct emu_copy_3d *c);
int hipMemcpy3DAsync(const struct emu_copy_3d *c, void *stream);

// hip_Memcpy2D
struct side_2d {
  size_t x, y;
  int kind;
  const void *host, *device;
  void *array;
  size_t pitch;
};
struct copy_2d {
  struct side_2d src, dst;
  size_t width, height;
};
// HIP_MEMCPY3D
struct side_3d {
  size_t x, y, z, level;
  int kind;
  const void *host, *device;
  void *array;
  size_t pitch, height;
};
struct copy_3d {
  struct side_3d src, dst;
  size_t width, height, depth;
};
// hipMemcpy3DPeerParms
struct peer_copy {
  struct emu_array *src_array;
  struct emu_position src_at;
  struct emu_pitched src;
  int src_device;
  struct emu_array *dst_array;
  struct emu_position dst_at;
  struct emu_pitched dst;
  int dst_device;
  struct emu_extent extent;
};

// hipMemoryType, which was renumbered in HIP 6. NULL: no such memory, or none that is told.
static const void *memory_of(int major, const struct side_3d *side, bool *array) {
  enum { HOST_5, DEVICE_5, ARRAY_5, UNIFIED_5, HOST = 1, DEVICE, MANAGED, ARRAY = 10, UNIFIED };
  *array = side->kind == (major < 6 ? ARRAY_5 : ARRAY);
  if (major < 6) return side->kind == HOST_5 ? side->host : *array ? NULL : side->device;
  if (side->kind == HOST) return side->host;
  return side->kind == DEVICE || side->kind == MANAGED || side->kind == UNIFIED ? side->device : NULL;
}

static int convert_side(int major, const struct side_3d *side, const struct copy_3d *c, struct emu_position *at,
                        struct emu_pitched *out) {
  bool array;
  const void *memory = memory_of(major, side, &array);
  *at = (struct emu_position){side->x, side->y, side->z};
  if (array) {
    const struct emu_array *known = emu_array_known(side->array);
    if (!known || side->level || !emu_array_has(known, at, &(struct emu_extent){c->width, c->height, c->depth}))
      return known ? HIP_INVALID_VALUE : HIP_INVALID_HANDLE;
    *out = emu_array_memory(known);
    return HIP_SUCCESS;
  }
  if (!memory || side->level) return HIP_INVALID_VALUE;
  size_t pitch = side->pitch, height = side->height;
  if ((pitch == 0 && __builtin_add_overflow(side->x, c->width, &pitch)) ||
      (height == 0 && __builtin_add_overflow(side->y, c->height, &height)))
    return HIP_INVALID_VALUE;
  *out = (struct emu_pitched){(void *)(uintptr_t)memory, pitch, pitch, height};
  return HIP_SUCCESS;
}

API int emu_driver_copy_convert(int major, const void *parameters, struct emu_copy_3d *out) {
  enum { KIND_DEFAULT = 4 };
  const struct copy_3d *c = parameters;
  if (!c) return emu_done(HIP_INVALID_VALUE);
  *out = (struct emu_copy_3d){.extent = {c->width, c->height, c->depth}, .kind = KIND_DEFAULT};
  int code = convert_side(major, &c->src, c, &out->src_at, &out->src);
  if (code == HIP_SUCCESS) code = convert_side(major, &c->dst, c, &out->dst_at, &out->dst);
  return emu_done(code);
}

static struct side_3d deepen(const struct side_2d *side) {
  return (struct side_3d){.x = side->x,
                          .y = side->y,
                          .kind = side->kind,
                          .host = side->host,
                          .device = side->device,
                          .array = side->array,
                          .pitch = side->pitch};
}

API int emu_driver_copy(int major, int dimensions, const void *parameters, void *stream, bool wait) {
  struct emu_copy_3d copy;
  struct copy_3d deep;
  if (!parameters) return emu_done(HIP_INVALID_VALUE);
  if (dimensions == 2) {
    const struct copy_2d *flat = parameters;
    deep = (struct copy_3d){deepen(&flat->src), deepen(&flat->dst), flat->width, flat->height, 1};
    parameters = &deep;
  }
  int code = emu_driver_copy_convert(major, parameters, &copy);
  if (code != HIP_SUCCESS) return code;
  return wait ? hipMemcpy3D(&copy) : hipMemcpy3DAsync(&copy, stream);
}

static int peer_copy(const struct peer_copy *c, void *stream, bool wait) {
  enum { DEVICE_TO_DEVICE = 3 };
  if (!c) return emu_done(HIP_INVALID_VALUE);
  if (!emu_device(c->src_device) || !emu_device(c->dst_device)) return emu_done(HIP_INVALID_DEVICE);
  struct emu_copy_3d copy = {c->src_array, c->src_at, c->src,    c->dst_array,
                             c->dst_at,    c->dst,    c->extent, DEVICE_TO_DEVICE};
  return wait ? hipMemcpy3D(&copy) : hipMemcpy3DAsync(&copy, stream);
}
API int hipMemcpy3DPeer(const struct peer_copy *c) { return peer_copy(c, NULL, true); }
API int hipMemcpy3DPeerAsync(const struct peer_copy *c, void *stream) { return peer_copy(c, stream, false); }
