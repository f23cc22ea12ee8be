/* Device code: pairs of 8-bit float types as types of the products. For .hip files only.
 *
 *     E4M3, E5M2 (OCP)     gfx12's units take them                elsewhere made wider, to f16, in which all are exact
 *     the FNUZ types       gfx942's units take them               the same
 *     two E4M3 on gfx942   as E4M3FNUZ, in which the same bits are half the value
 *
 * gfx908 and gfx90a take subnormals of f16 for zero, which the smallest E5M2 are: there a pair with one is made wider
 * to bf16, in which all are exact as well. Formats: kernel/float8.h. */
#ifndef RDNA_MATH_GEMM_F8_H
#define RDNA_MATH_GEMM_F8_H

#include "kernel/float8.h"
#include "math/gemm/gemm_scaled_tile.h"

template <rdna_dtype a, rdna_dtype b>
struct f8x2 {};

enum f8_way { F8_NATIVE, F8_AS_FNUZ, F8_TO_F16, F8_TO_BF16 };
constexpr f8_way f8_way_of(rdna_dtype a, rdna_dtype b) {
  [[maybe_unused]] bool is_fnuz = a == RDNA_F8_E4M3FNUZ || b == RDNA_F8_E4M3FNUZ;
#if defined(__GFX12__)
  return is_fnuz ? F8_TO_F16 : F8_NATIVE;
#elif defined(__gfx942__)
  return is_fnuz ? F8_NATIVE : a == b ? F8_AS_FNUZ : F8_TO_F16;
#elif defined(__gfx908__) || defined(__gfx90a__)
  return a == b ? F8_TO_F16 : F8_TO_BF16;
#else
  return F8_TO_F16;
#endif
}
template <rdna_dtype a, rdna_dtype b>
constexpr int mma_parts<f8x2<a, b>> = f8_way_of(a, b) >= F8_TO_F16 ? 2 : 1;

/* The odd bytes of a word as f16, part 0, or the even ones, part 1: the order of k is one's own as long as A and B have
 * the same. Moved to the fields of an f16, E4M3 is too small by the difference of the biases. */
template <rdna_dtype type>
RDNA_DEVICE uint32_t f8_widened(uint32_t word, int part) {
  word <<= 8 * part;
  uint32_t sign = word & 0x80008000u, magnitude = word & 0x7f007f00u;
  if constexpr (type == RDNA_F8_E5M2) return sign | magnitude;
  if constexpr (type == RDNA_F8_E4M3FN) {
    uint32_t nan = (magnitude + 0x01000100u) & 0x80008000u;
    return bits_as<uint32_t>(bits_as<half2>(sign | (magnitude | nan) >> 1) * half2{256, 256});
  }
  uint32_t nan = sign & ~(magnitude + 0x7f007f00u); /* -0 */
  uint32_t nan_bits = nan - (nan >> 6);
  if constexpr (type == RDNA_F8_E4M3FNUZ)
    return bits_as<uint32_t>(bits_as<half2>(sign | magnitude >> 1 | nan_bits) * half2{128, 128});
  /* half of the f16 with these bits, whose largest has no exponent: one less in the exponent, or of the smallest half
   * of the bits, whichever is more */
  typedef unsigned short ushort2 __attribute__((ext_vector_type(2)));
  ushort2 half_bits = bits_as<ushort2>(magnitude >> 1),
          less = __builtin_elementwise_sub_sat(bits_as<ushort2>(magnitude), ushort2{0x400, 0x400});
  return sign | bits_as<uint32_t>(__builtin_elementwise_max(half_bits, less)) | nan_bits;
}
/* Four E4M3 as E4M3FNUZ of half the value: -0 becomes 0, and NaN -0. */
RDNA_DEVICE uint32_t f8_as_fnuz(uint32_t word) {
  uint32_t magnitude = word & 0x7f7f7f7fu, nan = (magnitude + 0x01010101u) & 0x80808080u;
  uint32_t sign = word & (magnitude + 0x7f7f7f7fu) & 0x80808080u;
  return nan | sign | (magnitude & ~(nan - (nan >> 7)));
}
template <rdna_dtype type, f8_way way>
RDNA_DEVICE uint4 f8_part(uint4 v, int part) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    if constexpr (way == F8_AS_FNUZ) v[i] = f8_as_fnuz(v[i]);
    if constexpr (way >= F8_TO_F16) v[i] = f8_widened<type>(v[i], part);
    if constexpr (way == F8_TO_BF16) {
      float2 pair = f16x2_to_f32(v[i]); /* whose low bits are zero */
      v[i] = bits_as<uint32_t>(pair.x) >> 16 | bits_as<uint32_t>(pair.y);
    }
  }
#ifdef RDNA_AMD
  /* one after the other: all at once they would want more registers than there are beside the sums */
  if constexpr (way >= F8_TO_F16) asm volatile("" : "+v"(v));
#endif
  return v;
}

#ifdef RDNA_NVIDIA
template <rdna_dtype a, rdna_dtype b>
RDNA_DEVICE uint4 pipe_part_of_a(f8x2<a, b>, const uint4 &v, int part) {
  return f8_part<a, f8_way_of(a, b)>(v, part);
}
template <rdna_dtype a, rdna_dtype b>
RDNA_DEVICE uint4 pipe_part_of_b(f8x2<a, b>, const uint4 &v, int part) {
  return f8_part<b, f8_way_of(a, b)>(v, part);
}
template <rdna_dtype a, rdna_dtype b>
RDNA_DEVICE void mma_quarters_of(f8x2<a, b>, mma_acc &c, const uint4 &va, const uint4 &vb) {
  mma_quarters_f16(c, va, vb);
}
#else
template <rdna_dtype a, rdna_dtype b>
RDNA_DEVICE mma_a mma_part_of_a(f8x2<a, b>, mma_a v, int part) {
#pragma unroll
  for (int i = 0; i < MMA_CHUNKS_A; i++) v.chunk[i] = f8_part<a, f8_way_of(a, b)>(v.chunk[i], part);
  return v;
}
template <rdna_dtype a, rdna_dtype b>
RDNA_DEVICE mma_b mma_part_of_b(f8x2<a, b>, mma_b v, int part) {
#pragma unroll
  for (int i = 0; i < MMA_CHUNKS_B; i++) v.chunk[i] = f8_part<b, f8_way_of(a, b)>(v.chunk[i], part);
  return v;
}

/* 16 bytes of each operand. */
#if defined(__GFX12__)
template <rdna_dtype a, rdna_dtype b>
RDNA_DEVICE void f8_native(mma_acc &c, const uint4 &va, const uint4 &vb) {
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    int2 x = {(int)va[i], (int)va[i + 1]}, y = {(int)vb[i], (int)vb[i + 1]};
    if constexpr (a == RDNA_F8_E5M2)
      c = __builtin_amdgcn_wmma_f32_16x16x16_bf8_fp8_w32_gfx12(x, y, c);
    else if constexpr (b == RDNA_F8_E5M2)
      c = __builtin_amdgcn_wmma_f32_16x16x16_fp8_bf8_w32_gfx12(x, y, c);
    else
      c = __builtin_amdgcn_wmma_f32_16x16x16_fp8_fp8_w32_gfx12(x, y, c);
  }
}
#elif defined(__gfx942__)
template <rdna_dtype a, rdna_dtype b>
RDNA_DEVICE void f8_native(mma_acc &c, const uint4 &va, const uint4 &vb) {
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    int64_t x = (int64_t)((uint64_t)va[i + 1] << 32 | va[i]), y = (int64_t)((uint64_t)vb[i + 1] << 32 | vb[i]);
    if constexpr (a == RDNA_F8_E5M2FNUZ)
      c = __builtin_amdgcn_mfma_f32_16x16x32_bf8_fp8(x, y, c, 0, 0, 0);
    else if constexpr (b == RDNA_F8_E5M2FNUZ)
      c = __builtin_amdgcn_mfma_f32_16x16x32_fp8_bf8(x, y, c, 0, 0, 0);
    else
      c = __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(x, y, c, 0, 0, 0);
  }
}
#endif
template <rdna_dtype a, rdna_dtype b>
RDNA_DEVICE void mma_of(f8x2<a, b>, mma_acc &c, const mma_a &va, const mma_b &vb) {
  constexpr f8_way way = f8_way_of(a, b);
  if constexpr (way == F8_TO_F16)
    mma_f16(c, va, vb);
  else if constexpr (way == F8_TO_BF16)
    mma_bf16(c, va, vb);
#if defined(__GFX12__) || defined(__gfx942__)
  else
    f8_native<a, b>(c, va.chunk[0], vb.chunk[0]);
#endif
}
#endif

template <rdna_dtype a, rdna_dtype b>
RDNA_DEVICE float mma_sum_of(f8x2<a, b>, float staged) {
  return f8_way_of(a, b) == F8_AS_FNUZ ? 4 * staged : staged;
}

#define GEMM_F8_DEFINE(a, A, b, B)                                       \
  typedef f8x2<RDNA_F8_##A, RDNA_F8_##B> pair_##a##_##b;                 \
  GEMM_SCALED_DEFINE(gemm_f8_##a##_f8_##b, pair_##a##_##b, mma_acc, f32) \
  GEMM_SCALED_DEFINE(gemm_f8_##a##_f8_##b, pair_##a##_##b, mma_acc, f16) \
  GEMM_SCALED_DEFINE(gemm_f8_##a##_f8_##b, pair_##a##_##b, mma_acc, bf16)

#endif
