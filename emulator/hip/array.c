// Arrays are made, asked and copied.
#include "hip/array.h"

#include <stdlib.h>
#include <string.h>

int hipMemcpy3D(const struct emu_copy_3d *c);
int hipMemcpy3DAsync(const struct emu_copy_3d *c, void *stream);

enum { PITCH = 256, DEFAULT = 4 };
enum { U8 = 1, U16, U32, S8 = 8, S16, S32, HALF = 16, FLOAT = 32 };  // hipArray_Format
enum { WIDEST = 16384, DEEPEST = 8192 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct emu_array *all;

struct emu_array *emu_array_known(const void *pointer) {
  pthread_mutex_lock(&lock);
  struct emu_array *array = all;
  while (array && array != pointer) array = array->next;
  pthread_mutex_unlock(&lock);
  return array;
}

// ---- what elements are

static const struct {
  int format, bits, kind;
} formats[] = {{U8, 8, EMU_CHANNEL_UNSIGNED}, {U16, 16, EMU_CHANNEL_UNSIGNED}, {U32, 32, EMU_CHANNEL_UNSIGNED},
               {S8, 8, EMU_CHANNEL_SIGNED},   {S16, 16, EMU_CHANNEL_SIGNED},   {S32, 32, EMU_CHANNEL_SIGNED},
               {HALF, 16, EMU_CHANNEL_FLOAT}, {FLOAT, 32, EMU_CHANNEL_FLOAT}};

int emu_channels_of(int format, unsigned count, struct emu_channels *out) {
  *out = (struct emu_channels){0};
  if (count != 1 && count != 2 && count != 4) return HIP_INVALID_VALUE;
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    if (formats[i].format != format) continue;
    for (unsigned c = 0; c < count; c++) out->bits[c] = formats[i].bits;
    out->kind = formats[i].kind;
    return HIP_SUCCESS;
  }
  return HIP_INVALID_VALUE;
}

static int format_of(const struct emu_channels *channels) {
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (formats[i].bits == channels->bits[0] && formats[i].kind == channels->kind) return formats[i].format;
  return 0;
}

unsigned emu_channels_count(const struct emu_channels *channels) {
  unsigned count = 0;
  while (count < 4 && channels->bits[count]) count++;
  for (unsigned c = 0; c < 4; c++)
    if (channels->bits[c] != (c < count ? channels->bits[0] : 0)) return 0;
  return (count == 1 || count == 2 || count == 4) && format_of(channels) ? count : 0;
}

API struct emu_channels hipCreateChannelDesc(int x, int y, int z, int w, int kind) {
  return (struct emu_channels){{x, y, z, w}, kind};
}

// ---- made and asked

// Cubes and levels AMD's runtime refuses too.
static bool has_shape(const struct emu_array *a) {
  bool layered = a->flags & EMU_ARRAY_LAYERED, flat = a->height && !a->depth;
  if (a->flags & ~(unsigned)(EMU_ARRAY_LAYERED | EMU_ARRAY_SURFACE | EMU_ARRAY_GATHER)) return false;
  if (a->flags & EMU_ARRAY_GATHER && !flat) return false;
  if (!a->width || a->width > WIDEST || a->height > WIDEST || a->depth > DEEPEST) return false;
  return layered ? a->depth > 0 : !a->depth || a->height;
}

static int create(struct emu_array wanted, struct emu_array **out) {
  struct emu_device *device = emu_current();
  if (!device) return HIP_NO_DEVICE;
  wanted.count = emu_channels_count(&wanted.channels);
  if (!out || !wanted.count || !has_shape(&wanted)) return HIP_INVALID_VALUE;
  if (!device->card->target->image.format.bits) {
    emu_say("%s has no images in the emulator: no arrays, textures and surfaces", device->card->arch);
    return HIP_NOT_SUPPORTED;
  }
  struct emu_array *a = malloc(sizeof *a);
  if (!a) return HIP_OUT_OF_MEMORY;
  *a = wanted;
  a->device = device;
  a->format = format_of(&a->channels);
  a->element = a->count * (unsigned)a->channels.bits[0] / 8;
  a->pitch = (a->width * a->element + PITCH - 1) / PITCH * PITCH;
  a->slice = a->pitch * (a->height ? a->height : 1);
  int code =
      emu_block_create(device, EMU_BLOCK_DEVICE, a->slice * (a->depth ? a->depth : 1), 0, "hipMallocArray", &a->data);
  if (code != HIP_SUCCESS) {
    free(a);
    return code;
  }
  pthread_mutex_lock(&lock);
  a->next = all;
  all = a;
  pthread_mutex_unlock(&lock);
  *out = a;
  return HIP_SUCCESS;
}

static bool small(size_t a, size_t b, size_t c) { return a <= WIDEST && b <= WIDEST && c <= DEEPEST; }

API int hipMalloc3DArray(struct emu_array **out, const struct emu_channels *channels, struct emu_extent e,
                         unsigned flags) {
  if (!channels || !small(e.width, e.height, e.depth)) return emu_done(HIP_INVALID_VALUE);
  return emu_done(create((struct emu_array){.channels = *channels,
                                            .width = (unsigned)e.width,
                                            .height = (unsigned)e.height,
                                            .depth = (unsigned)e.depth,
                                            .flags = flags},
                         out));
}
API int hipMallocArray(struct emu_array **out, const struct emu_channels *channels, size_t width, size_t height,
                       unsigned flags) {
  return hipMalloc3DArray(out, channels, (struct emu_extent){width, height, 0}, flags);
}

// HIP_ARRAY_DESCRIPTOR, HIP_ARRAY3D_DESCRIPTOR
struct descriptor {
  size_t width, height;
  int format;
  unsigned count;
};
struct descriptor_3d {
  size_t width, height, depth;
  int format;
  unsigned count, flags;
};
API int hipArray3DCreate(struct emu_array **out, const struct descriptor_3d *d) {
  struct emu_channels channels;
  if (!d || emu_channels_of(d->format, d->count, &channels) != HIP_SUCCESS) return emu_done(HIP_INVALID_VALUE);
  return hipMalloc3DArray(out, &channels, (struct emu_extent){d->width, d->height, d->depth}, d->flags);
}
API int hipArrayCreate(struct emu_array **out, const struct descriptor *d) {
  if (!d) return emu_done(HIP_INVALID_VALUE);
  return hipArray3DCreate(out, &(struct descriptor_3d){d->width, d->height, 0, d->format, d->count, 0});
}

// Waits for all work first: a kernel may still read it.
API int hipFreeArray(struct emu_array *array) {
  if (!array) return emu_done(HIP_INVALID_VALUE);
  if (!emu_array_known(array)) return emu_done(HIP_CONTEXT_IS_DESTROYED);
  int code = emu_device_finish(array->device);
  pthread_mutex_lock(&lock);
  for (struct emu_array **a = &all; *a; a = &(*a)->next)
    if (*a == array) {
      *a = array->next;
      break;
    }
  pthread_mutex_unlock(&lock);
  (void)emu_block_release(array->data);
  free(array);
  return emu_done(code);
}
API int hipArrayDestroy(struct emu_array *array) { return hipFreeArray(array); }

API int hipArray3DGetDescriptor(struct descriptor_3d *out, struct emu_array *array) {
  const struct emu_array *a = emu_array_known(array);
  if (!a || !out) return emu_done(a ? HIP_INVALID_VALUE : HIP_INVALID_HANDLE);
  *out = (struct descriptor_3d){a->width, a->height, a->depth, a->format, a->count, a->flags};
  return emu_done(HIP_SUCCESS);
}
API int hipArrayGetDescriptor(struct descriptor *out, struct emu_array *array) {
  const struct emu_array *a = emu_array_known(array);
  if (!a || !out) return emu_done(a ? HIP_INVALID_VALUE : HIP_INVALID_HANDLE);
  *out = (struct descriptor){a->width, a->height, a->format, a->count};
  return emu_done(HIP_SUCCESS);
}
API int hipArrayGetInfo(struct emu_channels *channels, struct emu_extent *extent, unsigned *flags,
                        struct emu_array *array) {
  const struct emu_array *a = emu_array_known(array);
  if (!a) return emu_done(HIP_INVALID_HANDLE);
  if (channels) *channels = a->channels;
  if (extent) *extent = (struct emu_extent){a->width, a->height, a->depth};
  if (flags) *flags = a->flags;
  return emu_done(HIP_SUCCESS);
}
API int hipGetChannelDesc(struct emu_channels *out, struct emu_array *array) {
  const struct emu_array *a = emu_array_known(array);
  if (!a || !out) return emu_done(HIP_INVALID_VALUE);
  *out = a->channels;
  return emu_done(HIP_SUCCESS);
}

// ---- copied

struct emu_pitched emu_array_memory(const struct emu_array *a) {
  return (struct emu_pitched){a->data, a->pitch, a->width * a->element, a->height ? a->height : 1};
}

bool emu_array_has(const struct emu_array *a, const struct emu_position *at, const struct emu_extent *box) {
  const size_t size[3] = {a->width * a->element, a->height ? a->height : 1, a->depth ? a->depth : 1};
  const size_t from[3] = {at->x, at->y, at->z}, count[3] = {box->width, box->height, box->depth};
  for (int d = 0; d < 3; d++)
    if (from[d] > size[d] || count[d] > size[d] - from[d]) return false;
  return true;
}

// Along rows a copy with an array counts its elements, but for where it begins in other memory.
int emu_array_flatten(const struct emu_copy_3d *c, struct emu_copy_3d *out) {
  const struct emu_array *src = c->src_array ? emu_array_known(c->src_array) : NULL,
                         *dst = c->dst_array ? emu_array_known(c->dst_array) : NULL;
  if ((c->src_array && !src) || (c->dst_array && !dst)) return HIP_INVALID_HANDLE;
  if ((src && c->src.at) || (dst && c->dst.at)) return HIP_INVALID_VALUE;
  *out = *c;
  out->src_array = out->dst_array = NULL;
  if (!src && !dst) return HIP_SUCCESS;
  size_t element = src ? src->element : dst->element;
  if (src && dst && src->element != dst->element) return HIP_INVALID_VALUE;
  if (c->extent.width > WIDEST || c->src_at.x > SIZE_MAX / 32 || c->dst_at.x > SIZE_MAX / 32) return HIP_INVALID_VALUE;
  out->extent.width *= element;
  if (src) out->src = emu_array_memory(src), out->src_at.x *= element;
  if (dst) out->dst = emu_array_memory(dst), out->dst_at.x *= element;
  bool within = (!src || emu_array_has(src, &out->src_at, &out->extent)) &&
                (!dst || emu_array_has(dst, &out->dst_at, &out->extent));
  return within ? HIP_SUCCESS : HIP_INVALID_VALUE;
}

int emu_array_copy(const struct emu_copy_3d *c, void *stream, bool wait) {
  return wait ? hipMemcpy3D(c) : hipMemcpy3DAsync(c, stream);
}

// One side of a copy of rows, in bytes: an array, or memory.
struct side {
  const struct emu_array *array;
  void *at;
  size_t pitch;
  struct emu_position from;
};

static int copy_rows(struct side dst, struct side src, size_t width, size_t height, int kind, void *stream, bool wait) {
  struct side *sides[2] = {&src, &dst};
  struct emu_copy_3d c = {.src_at = src.from, .dst_at = dst.from, .extent = {width, height, 1}, .kind = kind};
  struct emu_pitched *to[2] = {&c.src, &c.dst};
  for (int i = 0; i < 2; i++) {
    const struct side *s = sides[i];
    if (!s->array && !s->at) return emu_done(HIP_INVALID_VALUE);
    if (!s->array && s->pitch < width) return emu_done(HIP_INVALID_PITCH);
    if (s->array && !emu_array_has(s->array, &s->from, &c.extent)) return emu_done(HIP_INVALID_VALUE);
    *to[i] = s->array ? emu_array_memory(s->array) : (struct emu_pitched){s->at, s->pitch, s->pitch, height};
  }
  return emu_array_copy(&c, stream, wait);
}

static int into(struct emu_array *dst, size_t x, size_t y, const void *src, size_t pitch, size_t width, size_t height,
                int kind, void *stream, bool wait) {
  const struct emu_array *a = emu_array_known(dst);
  if (!a) return emu_done(HIP_INVALID_HANDLE);
  return copy_rows((struct side){.array = a, .from = {x, y, 0}},
                   (struct side){.at = (void *)(uintptr_t)src, .pitch = pitch}, width, height, kind, stream, wait);
}
static int out_of(void *dst, size_t pitch, const struct emu_array *src, size_t x, size_t y, size_t width, size_t height,
                  int kind, void *stream, bool wait) {
  const struct emu_array *a = emu_array_known(src);
  if (!a) return emu_done(HIP_INVALID_HANDLE);
  return copy_rows((struct side){.at = dst, .pitch = pitch}, (struct side){.array = a, .from = {x, y, 0}}, width,
                   height, kind, stream, wait);
}

#define PER_THREAD ((void *)2)  // hipStreamPerThread
static void *own(void *stream) { return stream ? stream : PER_THREAD; }
int hipStreamSynchronize(void *stream);
static int finished(int code) { return code == HIP_SUCCESS ? hipStreamSynchronize(PER_THREAD) : code; }

#define INTO struct emu_array *dst, size_t x, size_t y, const void *src, size_t pitch, size_t width, size_t height
#define FROM void *dst, size_t pitch, const struct emu_array *src, size_t x, size_t y, size_t width, size_t height
API int hipMemcpy2DToArray(INTO, int kind) { return into(dst, x, y, src, pitch, width, height, kind, NULL, true); }
API int hipMemcpy2DToArrayAsync(INTO, int kind, void *stream) {
  return into(dst, x, y, src, pitch, width, height, kind, stream, false);
}
API int hipMemcpy2DToArray_spt(INTO, int kind) {
  return finished(into(dst, x, y, src, pitch, width, height, kind, PER_THREAD, false));
}
API int hipMemcpy2DToArrayAsync_spt(INTO, int kind, void *stream) {
  return into(dst, x, y, src, pitch, width, height, kind, own(stream), false);
}
API int hipMemcpy2DFromArray(FROM, int kind) { return out_of(dst, pitch, src, x, y, width, height, kind, NULL, true); }
API int hipMemcpy2DFromArrayAsync(FROM, int kind, void *stream) {
  return out_of(dst, pitch, src, x, y, width, height, kind, stream, false);
}
API int hipMemcpy2DFromArray_spt(FROM, int kind) {
  return finished(out_of(dst, pitch, src, x, y, width, height, kind, PER_THREAD, false));
}
API int hipMemcpy2DFromArrayAsync_spt(FROM, int kind, void *stream) {
  return out_of(dst, pitch, src, x, y, width, height, kind, own(stream), false);
}

API int hipMemcpy2DArrayToArray(struct emu_array *dst, size_t dst_x, size_t dst_y, const struct emu_array *src,
                                size_t src_x, size_t src_y, size_t width, size_t height, int kind) {
  const struct emu_array *to = emu_array_known(dst), *from = emu_array_known(src);
  if (!to || !from) return emu_done(HIP_INVALID_HANDLE);
  return copy_rows((struct side){.array = to, .from = {dst_x, dst_y, 0}},
                   (struct side){.array = from, .from = {src_x, src_y, 0}}, width, height, kind, NULL, true);
}

// Bytes of consecutive rows: whole ones where there is more than one.
static bool whole_rows(const struct emu_array *a, size_t x, size_t bytes, size_t *width, size_t *height) {
  size_t row = a->width * a->element;
  *width = bytes < row ? bytes : row;
  *height = row ? (bytes + row - 1) / row : 0;
  return bytes <= row - (x < row ? x : row) || (x == 0 && bytes % row == 0);
}
static int bytes_into(struct emu_array *dst, size_t x, size_t y, const void *src, size_t bytes, int kind, void *stream,
                      bool wait) {
  const struct emu_array *a = emu_array_known(dst);
  size_t width, height;
  if (!a) return emu_done(HIP_INVALID_HANDLE);
  if (!whole_rows(a, x, bytes, &width, &height)) return emu_done(HIP_INVALID_VALUE);
  return into(dst, x, y, src, width, width, height, kind, stream, wait);
}
static int bytes_out_of(void *dst, const struct emu_array *src, size_t x, size_t y, size_t bytes, int kind,
                        void *stream, bool wait) {
  const struct emu_array *a = emu_array_known(src);
  size_t width, height;
  if (!a) return emu_done(HIP_INVALID_HANDLE);
  if (!whole_rows(a, x, bytes, &width, &height)) return emu_done(HIP_INVALID_VALUE);
  return out_of(dst, width, src, x, y, width, height, kind, stream, wait);
}
API int hipMemcpyToArray(struct emu_array *dst, size_t x, size_t y, const void *src, size_t bytes, int kind) {
  return bytes_into(dst, x, y, src, bytes, kind, NULL, true);
}
API int hipMemcpyFromArray(void *dst, const struct emu_array *src, size_t x, size_t y, size_t bytes, int kind) {
  return bytes_out_of(dst, src, x, y, bytes, kind, NULL, true);
}
API int hipMemcpyFromArray_spt(void *dst, const struct emu_array *src, size_t x, size_t y, size_t bytes, int kind) {
  return finished(bytes_out_of(dst, src, x, y, bytes, kind, PER_THREAD, false));
}
API int hipMemcpyHtoA(struct emu_array *dst, size_t x, const void *src, size_t bytes) {
  return bytes_into(dst, x, 0, src, bytes, DEFAULT, NULL, true);
}
API int hipMemcpyHtoAAsync(struct emu_array *dst, size_t x, const void *src, size_t bytes, void *stream) {
  return bytes_into(dst, x, 0, src, bytes, DEFAULT, stream, false);
}
API int hipMemcpyDtoA(struct emu_array *dst, size_t x, void *src, size_t bytes) {
  return bytes_into(dst, x, 0, src, bytes, DEFAULT, NULL, true);
}
API int hipMemcpyAtoH(void *dst, const struct emu_array *src, size_t x, size_t bytes) {
  return bytes_out_of(dst, src, x, 0, bytes, DEFAULT, NULL, true);
}
API int hipMemcpyAtoHAsync(void *dst, const struct emu_array *src, size_t x, size_t bytes, void *stream) {
  return bytes_out_of(dst, src, x, 0, bytes, DEFAULT, stream, false);
}
API int hipMemcpyAtoD(void *dst, const struct emu_array *src, size_t x, size_t bytes) {
  return bytes_out_of(dst, src, x, 0, bytes, DEFAULT, NULL, true);
}
API int hipMemcpyAtoA(struct emu_array *dst, size_t dst_x, const struct emu_array *src, size_t src_x, size_t bytes) {
  return hipMemcpy2DArrayToArray(dst, dst_x, 0, src, src_x, 0, bytes, 1, DEFAULT);
}
