/* For host twins: F_host*.c is compiled once for each instruction set (RDNA_ISA is baseline, avx2 or avx512), and
 * RDNA_HOST_KERNEL gives each copy its name:
 *
 *     void RDNA_HOST_KERNEL(fill_u32)(const void *args, rdna_grid grid) { const struct fill_args *a = args; ... }
 *
 * A twin does the whole grid, sharing the work with rdna__parallel_for. Everything else in the file is static.
 * 16-bit floats convert as on the GPU: to nearest even, overflow to infinity, a NaN stays one. */
#ifndef RDNA_KERNEL_HOST_H
#define RDNA_KERNEL_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/threads.h"
#include "kernel/scalar.h"
#include "rdna/kernel.h"

#define RDNA_HOST_PASTE3_(a, b, c) a##b##_##c
#define RDNA_HOST_PASTE2_(a, b, c) RDNA_HOST_PASTE3_(a, b, c)
#define RDNA_HOST_KERNEL(name) RDNA_HOST_PASTE2_(rdna__host_, RDNA_ISA, name)

RDNA_SCALAR float f16_to_f32(uint16_t v) {
#if defined(__FLT16_MAX__) && defined(__F16C__)
  _Float16 h;
  __builtin_memcpy(&h, &v, sizeof h);
#if !defined(__clang__) && defined(__has_builtin) && __has_builtin(__builtin_assoc_barrier)
  /* gcc 12 would merge this with a following conversion to double, and call a library function for both. */
  return __builtin_assoc_barrier((float)h);
#else
  return (float)h;
#endif
#else
  uint32_t magnitude = v & 0x7fffu, sign = (uint32_t)(v & 0x8000u) << 16;
  /* Moved to a float's fields, the exponent is 127 - 15 = 112 too small; the product corrects that, and normalises
   * subnormals. */
  float f = scalar_from_bits(magnitude << 13) * 0x1p112f;
  uint32_t bits = magnitude >= 0x7c00u ? 0x7f800000u | magnitude << 13 : scalar_bits(f);
  return scalar_from_bits(bits | sign);
#endif
}

RDNA_SCALAR uint16_t f32_to_f16(float v) {
#if defined(__FLT16_MAX__) && defined(__F16C__)
  _Float16 h = (_Float16)v;
  uint16_t bits;
  __builtin_memcpy(&bits, &h, sizeof bits);
  return bits;
#else
  uint32_t u = scalar_bits(v), sign = u >> 16 & 0x8000u, magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
  if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* 65520 and above round to infinity */
  if (magnitude < 0x38800000u)                                     /* subnormal: adding 0.5 rounds to units of 2^-24 */
    return (uint16_t)(sign | (scalar_bits(scalar_from_bits(magnitude) + 0.5f) - 0x3f000000u));
  return (uint16_t)(sign | (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1)) >> 13);
#endif
}

RDNA_SCALAR float bf16_to_f32(uint16_t v) { return scalar_from_bits((uint32_t)v << 16); }
RDNA_SCALAR uint16_t f32_to_bf16(float v) {
  uint32_t u = scalar_bits(v), rounded = (u + 0x7fffu + (u >> 16 & 1)) >> 16;
  return (uint16_t)(v != v ? u >> 16 | 0x40u : rounded);
}

RDNA_SCALAR float fma_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
RDNA_SCALAR float max_f32(float a, float b) { return scalar_max(a, b); }
RDNA_SCALAR float min_f32(float a, float b) { return scalar_min(a, b); }

/* c + sum of the four signed byte products. */
RDNA_SCALAR int32_t dot4_i8(int32_t a, int32_t b, int32_t c) {
  for (int i = 0; i < 32; i += 8) c += (int32_t)(int8_t)(a >> i) * (int32_t)(int8_t)(b >> i);
  return c;
}

#endif
