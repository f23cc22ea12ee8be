// Textures and surfaces: objects in device memory, which kernels find by their address. As AMD's HIP has them:
//
//     | descriptor of the image: 8 words | channel type, channel order, width, 0 | of the sampler: 4 words | …
//
// The words behind the image's are those of ROCr, by which device code finds what a coordinate counts; the numbers of
// types and orders are HSA's. Source: texture_types.h of HIP, hsa_ext_image.h, image_manager_nv.cpp and its relatives
// for GFX11 and GFX12 in ROCr. One way to clamp serves all dimensions there, borders are zero, and cubes, levels,
// anisotropy and a bias of levels are refused.
#include <stdlib.h>
#include <string.h>

#include "hip/array.h"
#include "isa/isa.h"
#include "machine/abi.h"

enum { ARRAY, LEVELS, LINEAR, PITCH_2D };  // hipResourceType
enum { WRAP, CLAMP, MIRROR, BORDER };      // hipTextureAddressMode
enum { ALIGNMENT = 256, WIDEST = 16384, MAX_LOD = 4095, OBJECT_WORDS = 20, SAMPLER_AT = 12 };

struct resource {
  int type;
  union {
    struct emu_array *array;
    struct {
      void *at;
      struct emu_channels channels;
      size_t bytes;
    } linear;
    struct {
      void *at;
      struct emu_channels channels;
      size_t width, height, pitch;
    } rows;
  };
};
struct texture_settings {
  int address[3], filter, normalized_values, srgb;
  float border[4];
  int normalized_coordinates;
  unsigned anisotropy;
  int level_filter;
  float bias, level_min, level_max;
};
struct view {
  int format;
  size_t width, height, depth;
  unsigned first_level, last_level, first_layer, last_layer;
};

struct object {
  struct object *next;
  uint32_t *words;  // in device memory
  bool surface;
  struct resource resource;
  struct texture_settings settings;
  struct view view;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *all;

static const struct object *object_of(const void *words, bool surface) {
  pthread_mutex_lock(&lock);
  const struct object *o = all;
  while (o && (o->words != words || o->surface != surface)) o = o->next;
  pthread_mutex_unlock(&lock);
  return o;
}

// ---- descriptors

static void put(uint32_t *words, unsigned low, unsigned bits, uint64_t value) {
  words[low / 32] |= (uint32_t)(value & ((UINT64_C(1) << bits) - 1)) << low % 32;
}
static void put_field(uint32_t *words, struct emu_field f, uint64_t value) { put(words, f.low, f.bits, value); }
#define PUT(word, field, value) put((word), field, (value))

struct shape {
  const void *at;
  size_t width, height, depth, pitch;  // pitch in elements
  unsigned type;                       // enum emu_image_type
};

static void select_components(uint32_t *word, unsigned count) {
  for (unsigned c = 0; c < 4; c++)
    PUT(word, EMU_T3_SELECT(c), c < count ? EMU_SELECT_X + c : c == 3 ? EMU_SELECT_1 : EMU_SELECT_0);
}

static bool describe(const struct emu_isa *target, const struct shape *s, const struct emu_pixel *pixel,
                     uint32_t *words) {
  const struct emu_image_descriptor *f = &target->image;
  unsigned format = emu_isa_pixel_number(target, pixel);
  uint64_t base = (uint64_t)(uintptr_t)s->at >> 8;
  if (!format) return false;
  bool deep = s->type == EMU_TYPE_3D || s->type == EMU_TYPE_1D_ARRAY || s->type == EMU_TYPE_2D_ARRAY;
  words[0] = (uint32_t)base;
  PUT(&words[1], EMU_T1_BASE_HIGH, base >> 32);
  put_field(words, f->format, format);
  put_field(words, f->width_low, s->width - 1);
  put_field(words, f->width_high, (s->width - 1) >> f->width_low.bits);
  put_field(words, f->height, s->height ? s->height - 1 : 0);
  if (deep) put_field(words, f->depth, s->depth - 1);
  if (!deep) put_field(words, f->pitch, s->pitch - 1);
  select_components(&words[3], pixel->count);
  PUT(&words[3], EMU_T3_TYPE, s->type);
  return true;
}

// A buffer of elements, for textures of linear memory.
static bool describe_buffer(const struct emu_isa *target, const void *at, size_t count, const struct emu_pixel *pixel,
                            uint32_t *words) {
  unsigned format = emu_isa_pixel_number(target, pixel), bytes = pixel->count * pixel->bits / 8u;
  if (!format || pixel->kind == EMU_PIXEL_SRGB) return false;
  words[0] = (uint32_t)(uintptr_t)at;
  PUT(&words[1], EMU_V1_BASE_HIGH, (uint64_t)(uintptr_t)at >> 32);
  PUT(&words[1], EMU_V1_STRIDE, bytes);
  words[2] = (uint32_t)(count * bytes);  // more than there are: what reads past the end is not stopped
  select_components(&words[3], pixel->count);
  put_field(&words[3], target->v3_format, format);
  PUT(&words[3], EMU_V3_OOB_SELECT, EMU_OOB_STRUCTURED);
  return true;
}

static void describe_sampler(const struct texture_settings *t, bool linear_memory, uint32_t *words) {
  static const uint8_t clamps[] = {EMU_CLAMP_WRAP, EMU_CLAMP_EDGE, EMU_CLAMP_MIRROR, EMU_CLAMP_BORDER};
  int address = t->address[0];
  if (!t->normalized_coordinates && (address == WRAP || address == MIRROR)) address = CLAMP;
  for (unsigned d = 0; d < 3; d++) PUT(&words[0], EMU_S0_CLAMP(d), clamps[address]);
  PUT(&words[0], EMU_S0_UNNORMALIZED, !t->normalized_coordinates);
  PUT(&words[1], EMU_S1_MAX_LOD, MAX_LOD);
  unsigned filter = t->filter && !linear_memory ? EMU_FILTER_LINEAR : EMU_FILTER_POINT;
  PUT(&words[2], EMU_S2_MAG_FILTER, filter);
  PUT(&words[2], EMU_S2_MIN_FILTER, filter);
}

static struct emu_pixel pixel_of(const struct emu_channels *channels, bool normalized, bool srgb) {
  struct emu_pixel pixel = {.count = (uint8_t)emu_channels_count(channels), .bits = (uint8_t)channels->bits[0]};
  bool is_signed = channels->kind == EMU_CHANNEL_SIGNED;
  normalized = normalized && channels->bits[0] < 32;
  pixel.kind = channels->kind == EMU_CHANNEL_FLOAT ? EMU_PIXEL_FLOAT
               : normalized                        ? (is_signed ? EMU_PIXEL_SNORM : EMU_PIXEL_UNORM)
                                                   : (is_signed ? EMU_PIXEL_SINT : EMU_PIXEL_UINT);
  if (srgb && pixel.kind == EMU_PIXEL_UNORM && pixel.bits == 8 && pixel.count == 4) pixel.kind = EMU_PIXEL_SRGB;
  return pixel;
}

// hsa_ext_image_channel_type_t and _order_t
static void describe_format(const struct emu_pixel *pixel, size_t width, uint32_t *words) {
  enum { SNORM8, SNORM16, UNORM8, UNORM16, SINT8 = 8, UINT8 = 11, HALF_FLOAT = 14, SINGLE };
  enum { R = 1, RG = 3, RGBA = 8, SRGBA = 14 };
  unsigned size = pixel->bits == 8 ? 0 : pixel->bits == 16 ? 1 : 2;
  words[0] = pixel->kind == EMU_PIXEL_FLOAT   ? (size == 1 ? HALF_FLOAT : SINGLE)
             : pixel->kind == EMU_PIXEL_SINT  ? SINT8 + size
             : pixel->kind == EMU_PIXEL_UINT  ? UINT8 + size
             : pixel->kind == EMU_PIXEL_SNORM ? SNORM8 + size
                                              : UNORM8 + size;
  words[1] = pixel->kind == EMU_PIXEL_SRGB ? SRGBA : pixel->count == 1 ? R : pixel->count == 2 ? RG : RGBA;
  words[2] = (uint32_t)width;
}

// ---- what a resource is

static struct shape shape_of_array(const struct emu_array *a) {
  bool layered = a->flags & EMU_ARRAY_LAYERED;
  struct shape s = {a->data, a->width, a->height, a->depth, a->pitch / a->element, EMU_TYPE_1D};
  if (layered) {
    s.type = a->height ? EMU_TYPE_2D_ARRAY : EMU_TYPE_1D_ARRAY;
  } else if (a->height) {
    s.type = a->depth ? EMU_TYPE_3D : EMU_TYPE_2D;
  }
  return s;
}

// hipResourceViewFormat: of eight kinds of components in turn one, two and four.
static bool channels_of_view(int format, struct emu_channels *out) {
  static const uint8_t formats[] = {1, 8, 2, 9, 3, 10, 16, 32}, counts[] = {1, 2, 4};
  if (format < 1 || format > 24) return false;
  return emu_channels_of(formats[(format - 1) / 3], counts[(format - 1) % 3], out) == HIP_SUCCESS;
}

static int fill(const struct object *o, const struct emu_isa *target, uint32_t *words) {
  const struct resource *r = &o->resource;
  bool normalized = o->settings.normalized_values, srgb = o->settings.srgb, known = false;
  struct emu_pixel pixel;
  size_t width = 0;
  if (r->type == ARRAY) {
    struct emu_channels channels = r->array->channels;
    if (o->view.format && !channels_of_view(o->view.format, &channels)) return HIP_INVALID_VALUE;
    pixel = pixel_of(&channels, normalized, srgb);
    if ((size_t)pixel.count * pixel.bits / 8 != r->array->element) return HIP_INVALID_VALUE;
    struct shape shape = shape_of_array(r->array);
    width = shape.width;
    known = describe(target, &shape, &pixel, words);
  } else if (r->type == LINEAR) {
    pixel = pixel_of(&r->linear.channels, normalized, srgb);
    if (!pixel.count || (uintptr_t)r->linear.at % ALIGNMENT || !r->linear.at) return HIP_INVALID_VALUE;
    width = r->linear.bytes / (pixel.count * pixel.bits / 8u);
    if (!width || r->linear.bytes > UINT32_MAX) return HIP_INVALID_VALUE;
    int code = emu_block_check(r->linear.at, r->linear.bytes, "a texture");
    if (code != HIP_SUCCESS) return code;
    known = describe_buffer(target, r->linear.at, width, &pixel, words);
  } else if (r->type == PITCH_2D) {
    pixel = pixel_of(&r->rows.channels, normalized, srgb);
    size_t element = pixel.count * pixel.bits / 8u;
    width = r->rows.width;
    bool valid = pixel.count && r->rows.at && (uintptr_t)r->rows.at % ALIGNMENT == 0 && width && width <= WIDEST &&
                 r->rows.height && r->rows.height <= WIDEST && r->rows.pitch % ALIGNMENT == 0 &&
                 r->rows.pitch >= width * element && r->rows.pitch / element <= WIDEST;
    if (!valid) return HIP_INVALID_VALUE;
    int code = emu_block_check(r->rows.at, (r->rows.height - 1) * r->rows.pitch + width * element, "a texture");
    if (code != HIP_SUCCESS) return code;
    struct shape shape = {r->rows.at, width, r->rows.height, 0, r->rows.pitch / element, EMU_TYPE_2D};
    known = describe(target, &shape, &pixel, words);
  }
  if (!known) return HIP_INVALID_VALUE;
  describe_format(&pixel, width, words + 8);
  if (!o->surface) describe_sampler(&o->settings, r->type == LINEAR, words + SAMPLER_AT);
  return HIP_SUCCESS;
}

static int create(const struct object *wanted, void **out) {
  struct emu_device *device = emu_current();
  uint32_t words[OBJECT_WORDS] = {0};
  void *place;
  if (!device) return HIP_NO_DEVICE;
  if (!device->card->target->image.format.bits) {
    emu_say("%s has no images in the emulator: no arrays, textures and surfaces", device->card->arch);
    return HIP_NOT_SUPPORTED;
  }
  if (wanted->resource.type == LEVELS) {
    emu_say("arrays of several levels are not in the emulator, nor in AMD's HIP on Linux");
    return HIP_NOT_SUPPORTED;
  }
  if (wanted->resource.type == ARRAY && !emu_array_known(wanted->resource.array)) return HIP_INVALID_VALUE;
  int code = fill(wanted, device->card->target, words);
  struct object *o = code == HIP_SUCCESS ? malloc(sizeof *o) : NULL;
  if (code == HIP_SUCCESS && !o) code = HIP_OUT_OF_MEMORY;
  if (code == HIP_SUCCESS)
    code = emu_block_create(device, EMU_BLOCK_DEVICE, sizeof words, 0, wanted->surface ? "surface" : "texture", &place);
  if (code != HIP_SUCCESS) {
    free(o);
    return code;
  }
  memcpy(place, words, sizeof words);
  emu_block_written(place, sizeof words);
  *o = *wanted;
  o->words = *out = place;
  pthread_mutex_lock(&lock);
  o->next = all;
  all = o;
  pthread_mutex_unlock(&lock);
  return HIP_SUCCESS;
}

static int destroy(void *words, bool surface) {
  struct object *found = NULL;
  struct emu_block block;
  if (!words) return HIP_SUCCESS;
  pthread_mutex_lock(&lock);
  for (struct object **o = &all; *o && !found; o = &(*o)->next) {
    if ((*o)->words != words || (*o)->surface != surface) continue;
    found = *o;
    *o = found->next;
    break;
  }
  pthread_mutex_unlock(&lock);
  if (!found) return HIP_INVALID_VALUE;
  int code = HIP_SUCCESS;
  if (emu_block_find(words, &block) == EMU_PLACE_BLOCK) code = emu_device_finish(block.device);
  (void)emu_block_release(words);
  free(found);
  return code;
}

// ---- the calls

API int hipCreateTextureObject(void **out, const struct resource *resource, const struct texture_settings *settings,
                               const struct view *view) {
  if (!out || !resource || !settings || settings->address[0] < WRAP || settings->address[0] > BORDER)
    return emu_done(HIP_INVALID_VALUE);
  if (view && resource->type != ARRAY && resource->type != LEVELS) return emu_done(HIP_INVALID_VALUE);
  if (settings->anisotropy || settings->bias != 0) {
    emu_say("textures with anisotropy or a bias of levels are not in the emulator, nor in AMD's HIP");
    return emu_done(HIP_NOT_SUPPORTED);
  }
  struct object o = {.resource = *resource, .settings = *settings};
  if (view) o.view = *view;
  return emu_done(create(&o, out));
}
API int hipDestroyTextureObject(void *texture) { return emu_done(destroy(texture, false)); }

API int hipGetTextureObjectResourceDesc(struct resource *out, const void *texture) {
  const struct object *o = object_of(texture, false);
  if (!out || !o) return emu_done(HIP_INVALID_VALUE);
  *out = o->resource;
  return emu_done(HIP_SUCCESS);
}
API int hipGetTextureObjectTextureDesc(struct texture_settings *out, const void *texture) {
  const struct object *o = object_of(texture, false);
  if (!out || !o) return emu_done(HIP_INVALID_VALUE);
  *out = o->settings;
  return emu_done(HIP_SUCCESS);
}
API int hipGetTextureObjectResourceViewDesc(struct view *out, const void *texture) {
  const struct object *o = object_of(texture, false);
  if (!out || !o) return emu_done(HIP_INVALID_VALUE);
  *out = o->view;
  return emu_done(HIP_SUCCESS);
}

// Both have names of C++.
int emu_create_surface(void **out, const struct resource *resource) __asm__(
    "_Z22hipCreateSurfaceObjectPP13__hip_surfacePK15hipResourceDesc");
int emu_destroy_surface(void *surface) __asm__("_Z23hipDestroySurfaceObjectP13__hip_surface");

API int emu_create_surface(void **out, const struct resource *resource) {
  if (!out || !resource || resource->type != ARRAY) return emu_done(HIP_INVALID_VALUE);
  const struct emu_array *a = emu_array_known(resource->array);
  if (!a || (a->flags && !(a->flags & EMU_ARRAY_SURFACE))) return emu_done(HIP_INVALID_VALUE);
  return emu_done(create(&(struct object){.surface = true, .resource = *resource}, out));
}
API int emu_destroy_surface(void *surface) { return emu_done(destroy(surface, true)); }
