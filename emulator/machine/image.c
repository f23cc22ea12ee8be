// Images, and formatted access to buffers: descriptors, where lanes point, samples. Images lie in rows, have one level
// and one sample; an image that a descriptor says to lie otherwise, a cube among them, traps.
//
// Places between texels have eight bits, as the subTexelPrecisionBits of AMD's drivers and the guide to CUDA (section
// "Linear Filtering") say, and are rounded to the nearest, without a filter too: AMD's device library takes the floor
// before it asks for a texel, since the hardware would round up, and may then name a place a little below a texel's
// edge. Nobody has recorded more of it. Sums of weighted texels are rounded once.
#include <inttypes.h>
#include <math.h>

#include "machine/checker.h"
#include "machine/pixel.h"
#include "machine/valu.h"

enum { DIMENSIONS = 3, MOST_BYTES = 16, LANES = 64 };

struct image {
  uint64_t base, pitch, slice;  // bytes from row to row and from slice to slice
  int64_t size[DIMENSIONS];     // texels; 1 where there is no such dimension
  unsigned dimensions;          // that have coordinates of texels, before the layer's
  bool layered;
  struct emu_pixel pixel;
  uint8_t select[4];  // enum emu_select
};

static void refuse(struct emu_wave *w, const struct emu_step *step, const char *what) {
  emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0, "%s is not executed.", what);
}

// A field of a descriptor, by its place among the bits of all words.
static uint32_t bits_of(const uint32_t *words, struct emu_field f) {
  return emu__bits(words[f.low / 32], f.low % 32, f.bits);
}

static bool is_array(unsigned dim) { return dim == EMU_IMAGE_1D_ARRAY || dim == EMU_IMAGE_2D_ARRAY; }

// What the instruction says of the image must be what the descriptor says.
static bool fits(unsigned dim, unsigned type) {
  static const uint8_t types[] = {EMU_TYPE_1D,   EMU_TYPE_2D,       EMU_TYPE_3D,
                                  EMU_TYPE_CUBE, EMU_TYPE_1D_ARRAY, EMU_TYPE_2D_ARRAY};
  return types[dim] == type;
}

static bool read_image(struct emu_wave *w, const struct emu_step *step, struct image *out) {
  static const uint8_t dimensions[] = {1, 2, 3, 2, 1, 2};
  const struct emu_isa *target = w->group->run->target;
  const struct emu_image_descriptor *f = &target->image;
  const uint32_t *t = &w->s[step->inst->src[2].reg];
  unsigned dim = step->inst->image.dim, type = emu__bits(t[3], EMU_T3_TYPE), format = bits_of(t, f->format);
  *out = (struct image){.size = {1, 1, 1}, .dimensions = dimensions[dim], .layered = is_array(dim)};
  if (!fits(dim, type)) {
    emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0,
                   "The descriptor in s[%u:%u] is not that of such an image: its type is %u.", step->inst->src[2].reg,
                   step->inst->src[2].reg + 7, type);
    return false;
  }
  const char *other = dim == EMU_IMAGE_CUBE                  ? "A cube"
                      : emu__bits(t[3], EMU_T3_SWIZZLE_MODE) ? "An image whose texels do not lie in rows"
                      : bits_of(t, f->base_level) || bits_of(t, f->last_level) ? "An image of several levels"
                      : !emu_isa_pixel(target, format, &out->pixel)            ? "An image of this format"
                                                                               : NULL;
  if (other) {
    refuse(w, step, other);
    return false;
  }
  out->base = (t[0] | (uint64_t)emu__bits(t[1], EMU_T1_BASE_HIGH) << 32) << 8;
  out->size[0] = (bits_of(t, f->width_low) | (int64_t)bits_of(t, f->width_high) << f->width_low.bits) + 1;
  bool deep = dim == EMU_IMAGE_3D || out->layered;
  if (dim != EMU_IMAGE_1D && dim != EMU_IMAGE_1D_ARRAY) out->size[1] = (int64_t)bits_of(t, f->height) + 1;
  if (deep) out->size[2] = (int64_t)bits_of(t, f->depth) + 1;
  uint64_t bytes = emu__pixel_bytes(&out->pixel), row = (uint64_t)out->size[0] * bytes;
  out->pitch = (row + EMU_LINEAR_PITCH - 1) / EMU_LINEAR_PITCH * EMU_LINEAR_PITCH;
  if (!deep) out->pitch = ((uint64_t)bits_of(t, f->pitch) + 1) * bytes;
  out->slice = out->pitch * (uint64_t)out->size[1];
  if (deep) out->base += bits_of(t, f->base_array) * out->slice;
  for (unsigned c = 0; c < 4; c++) out->select[c] = (uint8_t)emu__bits(t[3], EMU_T3_SELECT(c));
  return true;
}

static uint64_t texel_at(const struct image *im, const int64_t at[DIMENSIONS]) {
  return im->base + (uint64_t)at[2] * im->slice + (uint64_t)at[1] * im->pitch +
         (uint64_t)at[0] * emu__pixel_bytes(&im->pixel);
}

// ---- what the descriptor makes of an element's components

static const uint32_t one = 0x3f800000;

static uint32_t selected(const struct emu_pixel *pixel, unsigned select, const uint32_t components[4]) {
  if (select == EMU_SELECT_0) return 0;
  if (select == EMU_SELECT_1) return emu__pixel_is_integer(pixel) ? 1 : one;
  unsigned component = select - EMU_SELECT_X;
  return component < 4 && component < pixel->count ? components[component] : 0;
}

// The k-th result of a lane: a register, or with d16 half of one.
static void put_result(struct emu_wave *w, const struct emu_step *step, const struct emu_pixel *pixel, unsigned k,
                       unsigned lane, uint32_t value, bool lost) {
  bool half = step->inst->image.d16;
  unsigned reg = step->inst->dst.reg + (half ? k / 2 : k), shift = half && k % 2 ? 16 : 0;
  uint32_t *to = emu__vector(w, reg, lane);
  uint32_t kept = !half ? 0 : shift ? 0xffff : 0;
  if (half) value = emu__pixel_is_integer(pixel) ? value & 0xffff : emu__f32_to_f16(emu__f32(value));
  *to = (*to & kept) | value << shift;
  if (w->check) emu__check_result(w, reg, lane, lost, kept);
}

static void put_results(struct emu_wave *w, const struct emu_step *step, const struct image *im, unsigned lane,
                        const uint32_t components[4], bool lost) {
  unsigned k = 0;
  for (unsigned c = 0; c < 4; c++) {
    if (!(step->inst->image.dmask >> c & 1)) continue;
    put_result(w, step, &im->pixel, k++, lane, selected(&im->pixel, im->select[c], components), lost);
  }
}

// ---- coordinates

// Word or half number `i` of the coordinates.
static uint32_t coordinate(const struct emu_wave *w, const struct emu_image_access *im, unsigned i, unsigned lane) {
  uint32_t word = *emu__vector(w, im->reg[im->first + (im->a16 ? i / 2 : i)], lane);
  return !im->a16 ? word : i % 2 ? word >> 16 : word & 0xffff;
}

static double coordinate_float(const struct emu_wave *w, const struct emu_image_access *im, unsigned i, unsigned lane) {
  uint32_t bits = coordinate(w, im, i, lane);
  return im->a16 ? emu__f16_to_f32((uint16_t)bits) : emu__f32(bits);
}

// The places of all lanes, whose bytes are there; `write`: that may be written. false: the wave has trapped.
static bool begin_access(struct emu_wave *w, const struct emu_step *step, const struct image *im, struct emu_places *p,
                         bool write) {
  p->stride = 4;
  p->space = EMU_SPACE_GLOBAL;
  unsigned bytes = emu__pixel_bytes(&im->pixel);
  if (!emu__memory_check(w, step, p->at, p->mask & ~p->outside, bytes, write)) return false;
  emu__count_access(w, p, bytes, write);
  return true;
}

static void read_components(const struct emu_pixel *pixel, uint64_t at, uint32_t components[4]) {
  uint8_t element[MOST_BYTES];
  memcpy(element, (const void *)(uintptr_t)at, emu__pixel_bytes(pixel));
  for (unsigned c = 0; c < pixel->count; c++) components[c] = emu__pixel_load(pixel, element, c);
}

// ---- loads and stores, by whole numbers. What lies outside reads as zeros and is not written.

static bool find_texels(struct emu_wave *w, const struct emu_step *step, const struct image *im, struct emu_places *p) {
  const struct emu_image_access *i = &step->inst->image;
  p->mask = emu__wave_exec(w);
  p->outside = 0;
  for (uint64_t rest = p->mask; rest; rest &= rest - 1) {
    unsigned l = (unsigned)__builtin_ctzll(rest), k = 0;
    int64_t at[DIMENSIONS] = {0};
    for (; k < im->dimensions; k++) at[k] = coordinate(w, i, k, l);
    if (im->layered) at[2] = coordinate(w, i, k, l);
    bool out = false;
    for (unsigned d = 0; d < DIMENSIONS; d++) out |= at[d] >= im->size[d];
    p->outside |= (uint64_t)out << l;
    p->at[l] = out ? 0 : texel_at(im, at);
  }
  return p->mask;
}

// Of a level beside the first there is nothing.
static bool has_level(struct emu_wave *w, const struct emu_step *step) {
  const struct emu_image_access *i = &step->inst->image;
  if (step->inst->op != EMU_IMAGE_LOAD_MIP && step->inst->op != EMU_IMAGE_STORE_MIP) return true;
  static const uint8_t before[] = {1, 2, 3, 3, 2, 3};  // coordinates, by the image
  for (uint64_t rest = emu__wave_exec(w); rest; rest &= rest - 1)
    if (coordinate(w, i, before[i->dim], (unsigned)__builtin_ctzll(rest))) {
      refuse(w, step, "A level beside the first");
      return false;
    }
  return true;
}

static void load(struct emu_wave *w, const struct emu_step *step) {
  struct image im;
  struct emu_places p;
  if (!read_image(w, step, &im) || !has_level(w, step) || !find_texels(w, step, &im, &p)) return;
  if (!begin_access(w, step, &im, &p, false)) return;
  uint64_t lost = w->check ? emu__check_elements(w, step, &p, emu__pixel_bytes(&im.pixel)) : 0;
  for (uint64_t rest = p.mask; rest; rest &= rest - 1) {
    unsigned l = (unsigned)__builtin_ctzll(rest);
    uint32_t components[4] = {0};
    if (!(p.outside >> l & 1)) read_components(&im.pixel, p.at[l], components);
    put_results(w, step, &im, l, components, lost >> l & 1);
  }
}

// The components of a store: those that dmask leaves out are zero.
static void given(const struct emu_wave *w, const struct emu_inst *inst, const struct emu_pixel *pixel, unsigned dmask,
                  bool half, unsigned lane, uint32_t components[4]) {
  unsigned k = 0;
  for (unsigned c = 0; c < 4; c++) {
    components[c] = 0;
    if (!(dmask >> c & 1)) continue;
    uint32_t word = *emu__vector(w, inst->src[1].reg + (half ? k / 2 : k), lane);
    uint16_t part = (uint16_t)(k % 2 ? word >> 16 : word);
    uint32_t whole = pixel->kind == EMU_PIXEL_UINT   ? part
                     : pixel->kind == EMU_PIXEL_SINT ? (uint32_t)(int32_t)(int16_t)part
                                                     : emu__bits32(emu__f16_to_f32(part));
    components[c] = half ? whole : word;
    k++;
  }
}

static void store_elements(struct emu_wave *w, const struct emu_step *step, const struct emu_pixel *pixel,
                           const struct emu_places *p, unsigned dmask, bool half) {
  unsigned bytes = emu__pixel_bytes(pixel);
  if (w->check) emu__check_put_elements(w, step, p, bytes);
  for (uint64_t rest = p->mask & ~p->outside; rest; rest &= rest - 1) {
    unsigned l = (unsigned)__builtin_ctzll(rest);
    uint32_t components[4];
    uint8_t element[MOST_BYTES];
    given(w, step->inst, pixel, dmask, half, l, components);
    for (unsigned c = 0; c < pixel->count; c++) emu__pixel_store(pixel, element, c, components[c]);
    memcpy((void *)(uintptr_t)p->at[l], element, bytes);
  }
}

static void store(struct emu_wave *w, const struct emu_step *step) {
  struct image im;
  struct emu_places p;
  if (!read_image(w, step, &im) || !has_level(w, step) || !find_texels(w, step, &im, &p)) return;
  if (im.pixel.kind == EMU_PIXEL_SRGB) {
    refuse(w, step, "A store to an image of sRGB");
    return;
  }
  if (!begin_access(w, step, &im, &p, true)) return;
  store_elements(w, step, &im.pixel, &p, step->inst->image.dmask, step->inst->image.d16);
}

// ---- samples

// The two texels of a lane along one dimension, and how much the second one weighs, of 256.
struct along {
  int64_t at[2];
  bool out[2];
  double weight;
};

struct sampler {
  bool normalized, linear[DIMENSIONS];
  uint8_t clamp[DIMENSIONS];
  uint32_t border[4];
};

static bool read_sampler(struct emu_wave *w, const struct emu_step *step, struct sampler *out) {
  const uint32_t *s = &w->s[step->inst->src[3].reg];
  unsigned mag = emu__bits(s[2], EMU_S2_MAG_FILTER), min = emu__bits(s[2], EMU_S2_MIN_FILTER),
           z = emu__bits(s[2], EMU_S2_Z_FILTER), border = emu__bits(s[3], EMU_S3_BORDER);
  bool clamps = true;
  for (unsigned d = 0; d < DIMENSIONS; d++) {
    out->clamp[d] = (uint8_t)emu__bits(s[0], EMU_S0_CLAMP(d));
    out->linear[d] = d < 2 || z == EMU_Z_AS_XY ? mag == EMU_FILTER_LINEAR : z == EMU_Z_LINEAR;
    clamps &= out->clamp[d] <= EMU_CLAMP_EDGE || out->clamp[d] == EMU_CLAMP_BORDER;
  }
  out->normalized = !emu__bits(s[0], EMU_S0_UNNORMALIZED) && !step->inst->image.unorm;
  // the same for magnification and minification, so that the level says nothing
  const char *other = mag > EMU_FILTER_LINEAR || min != mag ? "A filter by level or direction"
                      : !clamps                             ? "This way to clamp coordinates"
                      : emu__bits(s[0], EMU_S0_TRUNCATES)   ? "A filter of truncated coordinates"
                      : border > EMU_BORDER_WHITE           ? "A border of any color"
                                                            : NULL;
  for (unsigned c = 0; c < 4; c++)
    out->border[c] = border == EMU_BORDER_WHITE || (border == EMU_BORDER_BLACK && c == 3) ? one : 0;
  if (other) refuse(w, step, other);
  return !other;
}

static int64_t wrapped(int64_t i, int64_t n) { return (i % n + n) % n; }

static void place_texel(struct along *a, int k, int64_t i, int64_t n, unsigned clamp) {
  int64_t turned = wrapped(i, 2 * n);
  a->out[k] = clamp == EMU_CLAMP_BORDER && (i < 0 || i >= n);
  if (clamp == EMU_CLAMP_WRAP) i = wrapped(i, n);
  if (clamp == EMU_CLAMP_MIRROR) i = turned < n ? turned : 2 * n - 1 - turned;
  a->at[k] = i < 0 ? 0 : i >= n ? n - 1 : i;
}

// tex(x) = (1 - a) T[i] + a T[i + 1], with i = floor(x - 1/2) and a = x - 1/2 - i; without a filter T[floor(x)].
// Places count parts of a texel, of 256.
static struct along find_along(double x, int64_t n, bool normalized, bool linear, unsigned clamp) {
  enum { WEIGHTS = 256 };
  struct along a = {.weight = 0};
  double period = clamp == EMU_CLAMP_WRAP ? 1 : clamp == EMU_CLAMP_MIRROR ? 2 : 0, far = 1 << 30;
  if (!(x == x)) x = 0;
  if (normalized) x *= (double)n;  // exact: a float has 24 bits, a size 16
  period *= (double)n;
  if (period != 0 && fabs(x) > period) x = isinf(x) ? 0 : x - period * floor(x / period);
  x = x < -far ? -far : x > far ? far : x;
  int64_t fixed = (int64_t)floor((x - (linear ? 0.5 : 0)) * WEIGHTS + 0.5), i = fixed >> 8;
  if (linear) a.weight = (double)(fixed & (WEIGHTS - 1)) / WEIGHTS;
  place_texel(&a, 0, i, n, clamp);
  place_texel(&a, 1, i + 1, n, clamp);
  return a;
}

// What a lane's coordinates come to.
struct footprint {
  struct along along[DIMENSIONS];
};

static void find_footprints(struct emu_wave *w, const struct emu_step *step, const struct image *im,
                            const struct sampler *s, struct footprint *out) {
  const struct emu_image_access *i = &step->inst->image;
  for (uint64_t rest = emu__wave_exec(w); rest; rest &= rest - 1) {
    unsigned l = (unsigned)__builtin_ctzll(rest), k = 0;
    out[l] = (struct footprint){0};
    for (; k < im->dimensions; k++)
      out[l].along[k] = find_along(coordinate_float(w, i, k, l), im->size[k], s->normalized, s->linear[k], s->clamp[k]);
    if (!im->layered) continue;
    double layer = rint(coordinate_float(w, i, k, l)), last = (double)(im->size[2] - 1);
    layer = layer > 0 ? layer : 0;
    out[l].along[2].at[0] = (int64_t)(layer < last ? layer : last);
  }
}

// The texels that stand in `corner`'s bits at the second place along a dimension, of all lanes.
static void find_corner(const struct emu_wave *w, const struct image *im, const struct footprint *f, unsigned corner,
                        struct emu_places *p) {
  p->mask = emu__wave_exec(w);
  p->outside = 0;
  for (uint64_t rest = p->mask; rest; rest &= rest - 1) {
    unsigned l = (unsigned)__builtin_ctzll(rest);
    int64_t at[DIMENSIONS];
    bool out = false;
    for (unsigned d = 0; d < DIMENSIONS; d++) {
      at[d] = f[l].along[d].at[corner >> d & 1];
      out |= f[l].along[d].out[corner >> d & 1];
    }
    p->outside |= (uint64_t)out << l;
    p->at[l] = out ? 0 : texel_at(im, at);
  }
}

static bool begin_sample(struct emu_wave *w, const struct emu_step *step, struct image *im, struct sampler *s) {
  if (!emu__wave_exec(w) || !read_image(w, step, im) || !read_sampler(w, step, s)) return false;
  bool linear = false;
  for (unsigned d = 0; d < im->dimensions; d++) linear |= s->linear[d];
  if (!linear || !emu__pixel_is_integer(&im->pixel) || emu_isa_gathers(step->inst->op)) return true;
  refuse(w, step, "A linear filter over integers");
  return false;
}

static double weight_of(const struct footprint *f, unsigned corner, unsigned dimensions) {
  double weight = 1;
  for (unsigned d = 0; d < dimensions; d++) weight *= corner >> d & 1 ? f->along[d].weight : 1 - f->along[d].weight;
  return weight;
}

static void sample(struct emu_wave *w, const struct emu_step *step) {
  struct image im;
  struct sampler s;
  struct footprint f[LANES];
  double sums[LANES][4] = {{0}};
  uint32_t whole[LANES][4] = {{0}};
  uint64_t lost = 0;
  if (!begin_sample(w, step, &im, &s)) return;
  find_footprints(w, step, &im, &s, f);
  bool integer = emu__pixel_is_integer(&im.pixel);
  for (unsigned corner = 0; corner < 1u << im.dimensions; corner++) {
    struct emu_places p;
    find_corner(w, &im, f, corner, &p);
    for (uint64_t rest = p.mask; rest; rest &= rest - 1) {  // what weighs nothing is not read
      unsigned l = (unsigned)__builtin_ctzll(rest);
      if (weight_of(&f[l], corner, im.dimensions) == 0) p.mask &= ~(UINT64_C(1) << l);
    }
    if (!p.mask) continue;
    if (!begin_access(w, step, &im, &p, false)) return;
    if (w->check) lost |= emu__check_elements(w, step, &p, emu__pixel_bytes(&im.pixel));
    for (uint64_t rest = p.mask; rest; rest &= rest - 1) {
      unsigned l = (unsigned)__builtin_ctzll(rest);
      bool out = p.outside >> l & 1;
      uint32_t texel[4];
      memcpy(texel, s.border, sizeof texel);
      if (out && integer)
        for (unsigned c = 0; c < 4; c++) texel[c] = texel[c] == one;
      if (!out) read_components(&im.pixel, p.at[l], texel);
      for (unsigned c = 0; c < 4; c++) {
        whole[l][c] = texel[c];
        if (!integer) sums[l][c] += weight_of(&f[l], corner, im.dimensions) * (double)emu__f32(texel[c]);
      }
    }
  }
  for (uint64_t rest = emu__wave_exec(w); rest; rest &= rest - 1) {
    unsigned l = (unsigned)__builtin_ctzll(rest);
    for (unsigned c = 0; c < 4 && !integer; c++) whole[l][c] = emu__bits32((float)sums[l][c]);
    put_results(w, step, &im, l, whole[l], lost >> l & 1);
  }
}

// One component of the four texels that a linear filter would take, from the lower left one on against the clock.
static void gather(struct emu_wave *w, const struct emu_step *step) {
  static const uint8_t corners[4] = {2, 3, 1, 0};
  struct image im;
  struct sampler s;
  struct footprint f[LANES];
  unsigned dmask = step->inst->image.dmask;
  if (!begin_sample(w, step, &im, &s)) return;
  if (dmask & (dmask - 1) || im.dimensions != 2) {
    refuse(w, step, "A gather of several components, or of an image that is not flat,");
    return;
  }
  for (unsigned d = 0; d < DIMENSIONS; d++) s.linear[d] = true;
  find_footprints(w, step, &im, &s, f);
  for (unsigned k = 0; k < 4; k++) {
    struct emu_places p;
    find_corner(w, &im, f, corners[k], &p);
    if (!begin_access(w, step, &im, &p, false)) return;
    uint64_t lost = w->check ? emu__check_elements(w, step, &p, emu__pixel_bytes(&im.pixel)) : 0;
    for (uint64_t rest = p.mask; rest; rest &= rest - 1) {
      unsigned l = (unsigned)__builtin_ctzll(rest);
      uint32_t texel[4];
      memcpy(texel, s.border, sizeof texel);
      if (!(p.outside >> l & 1)) read_components(&im.pixel, p.at[l], texel);
      unsigned select = im.select[__builtin_ctz(dmask)];
      put_result(w, step, &im.pixel, k, l, selected(&im.pixel, select, texel), lost >> l & 1);
    }
  }
}

// ---- buffers with a format

// The element of each lane; outside of the buffer it is zeros.
static bool find_elements(struct emu_wave *w, const struct emu_step *step, bool write, struct emu_pixel *pixel,
                          struct emu_places *p) {
  const struct emu_isa *target = w->group->run->target;
  if (!target->v3_format.bits) {
    emu__wave_trap(
        w, step, EMU_TRAP, "trap", -1, 0,
        "The emulator decodes this instruction but does not execute it: it has no formats of GFX9's buffers.");
    return false;
  }
  if (!emu_isa_pixel(target, emu__field(w->s[step->inst->src[2].reg + 3], target->v3_format), pixel)) {
    refuse(w, step, "A buffer of this format");
    return false;
  }
  p->mask = emu__wave_exec(w);
  p->outside = 0;
  return p->mask && emu__buffer_places(w, step, emu__pixel_bytes(pixel), write, p);
}

static void load_format(struct emu_wave *w, const struct emu_step *step) {
  struct emu_pixel pixel;
  struct emu_places p;
  if (!find_elements(w, step, false, &pixel, &p)) return;
  unsigned bytes = emu__pixel_bytes(&pixel);
  emu__count_access(w, &p, bytes, false);
  uint64_t lost = w->check ? emu__check_elements(w, step, &p, bytes) : 0;
  uint32_t word = w->s[step->inst->src[2].reg + 3];
  for (uint64_t rest = p.mask; rest; rest &= rest - 1) {
    unsigned l = (unsigned)__builtin_ctzll(rest);
    uint32_t components[4] = {0};
    if (!(p.outside >> l & 1)) read_components(&pixel, p.at[l], components);
    for (unsigned c = 0; c < step->inst->dst.dwords; c++)
      put_result(w, step, &pixel, c, l, selected(&pixel, emu__bits(word, EMU_T3_SELECT(c)), components), lost >> l & 1);
  }
}

static void store_format(struct emu_wave *w, const struct emu_step *step) {
  struct emu_pixel pixel;
  struct emu_places p;
  if (!find_elements(w, step, true, &pixel, &p)) return;
  emu__count_access(w, &p, emu__pixel_bytes(&pixel), true);
  store_elements(w, step, &pixel, &p, (1u << step->inst->src[1].dwords) - 1, false);
}

#define LOADS(name, function) {.op = EMU_##name, .klass = EMU_CLASS_LOAD, .run = function}
#define STORES(name, function) {.op = EMU_##name, .klass = EMU_CLASS_STORE, .run = function}
const struct emu_action emu__image_actions[] = {LOADS(IMAGE_LOAD, load),
                                                LOADS(IMAGE_LOAD_MIP, load),
                                                STORES(IMAGE_STORE, store),
                                                STORES(IMAGE_STORE_MIP, store),
                                                LOADS(IMAGE_SAMPLE, sample),
                                                LOADS(IMAGE_SAMPLE_CL, sample),
                                                LOADS(IMAGE_SAMPLE_D, sample),
                                                LOADS(IMAGE_SAMPLE_D_CL, sample),
                                                LOADS(IMAGE_SAMPLE_D_G16, sample),
                                                LOADS(IMAGE_SAMPLE_D_CL_G16, sample),
                                                LOADS(IMAGE_SAMPLE_L, sample),
                                                LOADS(IMAGE_SAMPLE_B, sample),
                                                LOADS(IMAGE_SAMPLE_B_CL, sample),
                                                LOADS(IMAGE_SAMPLE_LZ, sample),
                                                LOADS(IMAGE_GATHER4, gather),
                                                LOADS(IMAGE_GATHER4_CL, gather),
                                                LOADS(IMAGE_GATHER4_L, gather),
                                                LOADS(IMAGE_GATHER4_B, gather),
                                                LOADS(IMAGE_GATHER4_B_CL, gather),
                                                LOADS(IMAGE_GATHER4_LZ, gather),
                                                LOADS(BUFFER_LOAD_FORMAT_X, load_format),
                                                LOADS(BUFFER_LOAD_FORMAT_XY, load_format),
                                                LOADS(BUFFER_LOAD_FORMAT_XYZ, load_format),
                                                LOADS(BUFFER_LOAD_FORMAT_XYZW, load_format),
                                                STORES(BUFFER_STORE_FORMAT_X, store_format),
                                                STORES(BUFFER_STORE_FORMAT_XY, store_format),
                                                STORES(BUFFER_STORE_FORMAT_XYZ, store_format),
                                                STORES(BUFFER_STORE_FORMAT_XYZW, store_format),
                                                {0}};
