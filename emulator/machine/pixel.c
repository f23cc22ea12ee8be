// Numbers in elements of formatted buffers and images. Source: "RDNA 2" and "RDNA3 Instruction Set Architecture",
// tables of data formats; the curve of sRGB is IEC 61966-2-1's. What integers that do not fit become in a store is not
// said there: the nearest that there is, as OpenCL asks of write_imagei.
#include "machine/pixel.h"

#include <math.h>

#include "machine/valu.h"

static double curve(double x) { return x <= 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4); }
static double curve_back(double x) { return x <= 0.0031308 ? 12.92 * x : 1.055 * pow(x, 1 / 2.4) - 0.055; }

uint32_t emu__pixel_load(const struct emu_pixel *p, const uint8_t *element, unsigned component) {
  uint32_t raw = 0, most = UINT32_MAX >> (32 - p->bits);
  memcpy(&raw, element + component * p->bits / 8, p->bits / 8);
  int32_t number = (int32_t)(raw << (32 - p->bits)) >> (32 - p->bits);
  switch ((enum emu_pixel_kind)p->kind) {
    case EMU_PIXEL_UINT:
      return raw;
    case EMU_PIXEL_SINT:
      return (uint32_t)number;
    case EMU_PIXEL_FLOAT:
      return p->bits == 16 ? emu__bits32(emu__f16_to_f32((uint16_t)raw)) : raw;
    case EMU_PIXEL_UNORM:
      return emu__bits32((float)raw / (float)most);
    case EMU_PIXEL_SNORM:
      return emu__bits32(fmaxf((float)number / (float)(most >> 1), -1));
    case EMU_PIXEL_USCALED:
      return emu__bits32((float)raw);
    case EMU_PIXEL_SSCALED:
      return emu__bits32((float)number);
    case EMU_PIXEL_SRGB:  // alpha is linear
      return emu__bits32((float)(component == 3 ? raw / 255.0 : curve(raw / 255.0)));
  }
  return 0;
}

// The nearest whole number between the limits; NaN is zero.
static int64_t whole(double value, double low, double high) {
  if (!(value == value)) return 0;
  return (int64_t)rint(value < low ? low : value > high ? high : value);
}

void emu__pixel_store(const struct emu_pixel *p, uint8_t *element, unsigned component, uint32_t value) {
  uint32_t most = UINT32_MAX >> (32 - p->bits), half = most >> 1, raw = value;
  double number = emu__f32(value), low = -(double)half - 1;
  switch ((enum emu_pixel_kind)p->kind) {
    case EMU_PIXEL_UINT:
      raw = value < most ? value : most;
      break;
    case EMU_PIXEL_SINT:
      raw = (uint32_t)whole((int32_t)value, low, half);
      break;
    case EMU_PIXEL_FLOAT:
      if (p->bits == 16) raw = emu__f32_to_f16(emu__f32(value));
      break;
    case EMU_PIXEL_UNORM:
      raw = (uint32_t)whole(number * most, 0, most);
      break;
    case EMU_PIXEL_SNORM:
      raw = (uint32_t)whole(number * half, -(double)half, half);
      break;
    case EMU_PIXEL_USCALED:
      raw = (uint32_t)whole(number, 0, most);
      break;
    case EMU_PIXEL_SSCALED:
      raw = (uint32_t)whole(number, low, half);
      break;
    case EMU_PIXEL_SRGB:
      number = number > 0 ? fmin(number, 1) : 0;
      raw = (uint32_t)whole((component == 3 ? number : curve_back(number)) * 255, 0, 255);
      break;
  }
  memcpy(element + component * p->bits / 8, &raw, p->bits / 8);
}
