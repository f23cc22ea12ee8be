/* One value from any type to any other, the same on the host and on the GPU. Needs f16_to_f32 and its kin, from
 * kernel/prelude.h or kernel/host.h. */
#ifndef RDNA_MATH_MOVEMENT_CONVERT_H
#define RDNA_MATH_MOVEMENT_CONVERT_H

#include "kernel/dtype.h"
#include "kernel/float8.h"
#include "math/movement/movement_kernels.h"

/* Towards zero, within the type; a NaN gives 0. Both bounds are exact in f64. */
RDNA_SCALAR int64_t movement_limited_(double v, double low, double above) {
  if (v != v) return 0;
  if (v <= low) return (int64_t)low;
  if (v >= above) return above >= 0x1p63 ? INT64_MAX : (int64_t)above - 1;
  return (int64_t)v;
}
RDNA_SCALAR int64_t movement_real_to_integer(uint32_t to, double v) {
  switch (to) {
    case RDNA_I8:
      return movement_limited_(v, -0x1p7, 0x1p7);
    case RDNA_U8:
      return movement_limited_(v, 0, 0x1p8);
    case RDNA_I16:
      return movement_limited_(v, -0x1p15, 0x1p15);
    case RDNA_I32:
      return movement_limited_(v, -0x1p31, 0x1p31);
    case RDNA_U16:
      return movement_limited_(v, 0, 0x1p16);
    case RDNA_U32:
      return movement_limited_(v, 0, 0x1p32);
    case RDNA_U64: /* as bits */
      if (!(v >= 0x1p63)) return movement_limited_(v, 0, 0x1p63);
      return v >= 0x1p64 ? -1 : (int64_t)(v - 0x1p63) ^ INT64_MIN;
    case RDNA_BOOL:
      return v != 0;
    default:
      return movement_limited_(v, -0x1p63, 0x1p63);
  }
}
RDNA_SCALAR void movement_store_integer(uint32_t to, void *out, int64_t at, int64_t v) {
  if (to == RDNA_BOOL) {
    ((uint8_t *)out)[at] = v != 0;
  } else if (to == RDNA_I8 || to == RDNA_U8) {
    ((uint8_t *)out)[at] = (uint8_t)v;
  } else if (to == RDNA_I16 || to == RDNA_U16) {
    ((uint16_t *)out)[at] = (uint16_t)v;
  } else if (to == RDNA_I32 || to == RDNA_U32) {
    ((uint32_t *)out)[at] = (uint32_t)v;
  } else {
    ((int64_t *)out)[at] = v;
  }
}
RDNA_SCALAR void movement_store_f32(uint32_t to, void *out, int64_t at, float v) {
  if (to == RDNA_F32) ((float *)out)[at] = v;
  if (to == RDNA_F16) ((uint16_t *)out)[at] = f32_to_f16(v);
  if (to == RDNA_BF16) ((uint16_t *)out)[at] = f32_to_bf16(v);
  if (to == RDNA_F8_E4M3FN) ((uint8_t *)out)[at] = float8_from_f32(RDNA_F8_E4M3FN, v);
  if (to == RDNA_F8_E5M2) ((uint8_t *)out)[at] = float8_from_f32(RDNA_F8_E5M2, v);
  if (to == RDNA_F8_E4M3FNUZ) ((uint8_t *)out)[at] = float8_from_f32(RDNA_F8_E4M3FNUZ, v);
  if (to == RDNA_F8_E5M2FNUZ) ((uint8_t *)out)[at] = float8_from_f32(RDNA_F8_E5M2FNUZ, v);
}
RDNA_SCALAR bool movement_is_narrow_(uint32_t type) {
  return dtype_is_float((rdna_dtype)type) || float8_is((rdna_dtype)type);
}
RDNA_SCALAR float movement_load_f32_(uint32_t from, const void *in, int64_t i) {
  switch (from) {
    case RDNA_F32:
      return ((const float *)in)[i];
    case RDNA_F16:
      return f16_to_f32(((const uint16_t *)in)[i]);
    case RDNA_BF16:
      return bf16_to_f32(((const uint16_t *)in)[i]);
    case RDNA_F8_E4M3FN:
      return float8_to_f32(RDNA_F8_E4M3FN, ((const uint8_t *)in)[i]);
    case RDNA_F8_E5M2:
      return float8_to_f32(RDNA_F8_E5M2, ((const uint8_t *)in)[i]);
    case RDNA_F8_E4M3FNUZ:
      return float8_to_f32(RDNA_F8_E4M3FNUZ, ((const uint8_t *)in)[i]);
    default:
      return float8_to_f32(RDNA_F8_E5M2FNUZ, ((const uint8_t *)in)[i]);
  }
}
RDNA_SCALAR void movement_store_real(uint32_t to, void *out, int64_t at, double v) {
  if (to == RDNA_F64) {
    ((double *)out)[at] = v;
  } else if (movement_is_narrow_(to)) {
    movement_store_f32(to, out, at, (float)v);
  } else {
    movement_store_integer(to, out, at, movement_real_to_integer(to, v));
  }
}
RDNA_SCALAR void movement_convert(uint32_t from, uint32_t to, const void *in, int64_t i, void *out, int64_t at) {
  if (movement_is_narrow_(from)) {
    float v = movement_load_f32_(from, in, i);
    if (movement_is_narrow_(to)) return movement_store_f32(to, out, at, v);
    return movement_store_real(to, out, at, (double)v);
  }
  if (from == RDNA_F64) return movement_store_real(to, out, at, ((const double *)in)[i]);
  int64_t v = from == RDNA_I8     ? ((const int8_t *)in)[i]
              : from == RDNA_I16  ? ((const int16_t *)in)[i]
              : from == RDNA_I32  ? ((const int32_t *)in)[i]
              : from == RDNA_I64  ? ((const int64_t *)in)[i]
              : from == RDNA_U16  ? ((const uint16_t *)in)[i]
              : from == RDNA_U32  ? ((const uint32_t *)in)[i]
              : from == RDNA_U64  ? ((const int64_t *)in)[i]
              : from == RDNA_BOOL ? ((const uint8_t *)in)[i] != 0
                                  : ((const uint8_t *)in)[i];
  if (!movement_is_narrow_(to) && to != RDNA_F64) return movement_store_integer(to, out, at, v);
  /* A u64 of 64 bits is halved; the bit that it loses stays where it decides how the rest is rounded. */
  bool large = from == RDNA_U64 && v < 0;
  int64_t whole = large ? (int64_t)((uint64_t)v >> 1 | ((uint64_t)v & 1)) : v;
  if (to == RDNA_F64) return movement_store_real(to, out, at, (double)whole * (large ? 2 : 1));
  movement_store_f32(to, out, at, (float)whole * (large ? 2 : 1));
}

/* Where place |i| of the padded extent comes from in |size| values; -1: nowhere. */
RDNA_SCALAR int64_t movement_pad_source(uint32_t mode, int64_t i, int64_t size) {
  if (i >= 0 && i < size) return i;
  switch (mode) {
    case RDNA_PAD_MODE_REFLECT:
      return i < 0 ? -i : 2 * (size - 1) - i;
    case RDNA_PAD_MODE_REPLICATE:
      return i < 0 ? 0 : size - 1;
    case RDNA_PAD_MODE_CIRCULAR:
      return i < 0 ? i + size : i - size;
    default:
      return -1;
  }
}

/* Takes dimension |d| of the output's value |*rest|: its part of where the value goes and where it comes from, which
 * becomes INT64_MIN, the constant. */
RDNA_SCALAR void movement_pad_step(const struct pad_args *a, uint32_t d, uint32_t *rest, int64_t *to, int64_t *from) {
  uint32_t quotient = (uint32_t)(((uint64_t)a->shape.magic[d] * *rest) >> a->shape.shift[d]);
  int64_t coordinate = (int64_t)(*rest - quotient * a->shape.size[d]);
  int64_t source = movement_pad_source(a->mode, coordinate - a->before[d], a->size[d]);
  *to += coordinate * a->operand[0].stride[d];
  *from = source < 0 || *from == INT64_MIN ? INT64_MIN : *from + source * a->operand[1].stride[d];
  *rest = quotient;
}

#endif
