/* Device code: elementary functions by the hardware's own exponential and reciprocal, whose last bits differ from GPU
 * to GPU.
 *
 *     function                     for         error
 *     close_sigmoid, close_silu    f32         2^-21 of the result
 *     other close_*                f32         2^-20 of the result; the two gelu below -2: 2^-24
 *     fast_*                       f16, bf16   about 2^-14 of the result; an exponential below 2^-126 becomes 0
 */
#ifndef RDNA_MATH_COMMON_DEVICE_FAST_H
#define RDNA_MATH_COMMON_DEVICE_FAST_H

#include "kernel/prelude.h"
#include "kernel/scalar.h"

/* Computes e^-|x| = 2^n 2^f with |f| <= 1/2, where the hardware's exponential is most exact, and multiplies by 2^n in
 * two steps, so that small results become subnormal rather than 0. A third of the instructions of scalar_sigmoid.
 * 0x1.715476p+0 is log2(e), 0x1.4ae0c0p-26 what it lacks; adding 0x1.8p23 rounds to an integer in the low bits;
 * 0x4b400000 are the bits of 0x1.8p23. */
RDNA_DEVICE float close_sigmoid(float x) {
  float c = min_f32(abs_f32(x), 110.0f);
  float shifted = fma_f32(c, -0x1.715476p+0f, 0x1.8p23f), n = shifted - 0x1.8p23f;
  float f = fma_f32(c, -0x1.4ae0c0p-26f, fma_f32(c, -0x1.715476p+0f, -n));
  int32_t whole = (int32_t)(bits_as<uint32_t>(shifted) - 0x4b400000u), half = whole >> 1;
  float e = fast_exp2(f) * bits_as<float>((uint32_t)(half + 127) << 23);
  float rest = bits_as<float>((uint32_t)(whole - half + 127) << 23);
  float r = fast_rcp(fma_f32(e, rest, 1.0f));
  return x < 0 ? r * e * rest : r;
}
RDNA_DEVICE float close_silu(float x) { return x * close_sigmoid(x); }
RDNA_DEVICE float close_exp(float x) { return scalar_exp(x); }
/* scalar_tanh with the hardware's functions. */
RDNA_DEVICE float close_tanh(float x) {
  float z = x * x, p = 0x1.246e0ep-9f, a = abs_f32(x);
  p = fma_f32(p, z, -0x1.0ee560p-7f);
  p = fma_f32(p, z, 0x1.6418d8p-6f);
  p = fma_f32(p, z, -0x1.b9fa8ap-5f);
  p = fma_f32(p, z, 0x1.11109ep-3f);
  p = fma_f32(p, z, -0x1.555554p-2f);
  float large = fma_f32(-2.0f, fast_rcp(fast_exp2(a * 0x1.715476p+1f) + 1), 1.0f);
  return a < 0.6f ? fma_f32(p, z * x, x) : __builtin_copysignf(large, x);
}
/* 0.5 + 0.5 tanh(u) is the sigmoid of 2 u. */
RDNA_DEVICE float close_gelu_tanh(float x) {
  return x * close_sigmoid(0x1.988454p+0f * fma_f32(0x1.6e4e26p-5f * x * x, x, x));
}
/* scalar_gelu with the hardware's exponential. */
RDNA_DEVICE float close_gelu(float x) {
  float a = x * 0x1.6a09e6p-1f, size = abs_f32(a), p = -0x1.630962p-16f;
  p = fma_f32(p, size, 0x1.c85bf8p-12f);
  p = fma_f32(p, size, -0x1.1196d4p-8f);
  p = fma_f32(p, size, 0x1.9bb50ep-6f);
  p = fma_f32(p, size, -0x1.bb926cp-4f);
  p = fma_f32(p, size, -0x1.444470p-1f);
  p = fma_f32(p, size, -0x1.212846p+0f);
  p = fma_f32(p, size, 0x1.70d566p-13f);
  float far = size > 3.95f ? 0.0f : fast_exp(p), twice = x < 0 ? far : 2 - far;
  return 0.5f * x * (size < 0.925f ? 1 + scalar_erf_small_(a) : x != x ? x : twice);
}
/* Squares e^(-|x|/2), so that nothing overflows and small results become subnormal rather than 0. 0.7213475204 is
 * log2(e) / 2. */
RDNA_DEVICE float fast_sigmoid(float x) {
  float root = fast_exp2(abs_f32(x) * -0.7213475204f), r = fast_rcp(fma_f32(root, root, 1.0f));
  return x < 0 ? r * root * root : r;
}
RDNA_DEVICE float fast_silu(float x) { return x * fast_sigmoid(x); }
/* Below 0.6 an odd polynomial; above it 1 - 2 / (e^(2 |x|) + 1), which would cancel below. 2.885390082 is 2 log2(e). */
RDNA_DEVICE float fast_tanh(float x) {
  float z = x * x, p = 0x1.6418d8p-6f;
  p = fma_f32(p, z, -0x1.b9fa8ap-5f);
  p = fma_f32(p, z, 0x1.11109ep-3f);
  p = fma_f32(p, z, -0x1.555554p-2f);
  float small = fma_f32(p, z * x, x), a = abs_f32(x);
  float large = fma_f32(-2.0f, fast_rcp(fast_exp2(a * 2.885390082f) + 1), 1.0f);
  return a < 0.6f ? small : __builtin_copysignf(large, x);
}
/* x Phi(x) = max(x, 0) - |x| Phi(-|x|), with Phi(-a) = t P(t) e^(-a^2/2), t = 1 / (1 + 0.37 a): our own fit of P, of
 * relative error 2^-14.5 for a in [0, 14], the form being that of Hastings, "Approximations for Digital Computers",
 * 1955. */
RDNA_DEVICE float fast_gelu(float x) {
  float a = abs_f32(x), t = fast_rcp(fma_f32(0.37f, a, 1.0f));
  float p = -0.08963352766891916f;
  p = fma_f32(p, t, 0.2082672367198548f);
  p = fma_f32(p, t, 0.07748132339249898f);
  p = fma_f32(p, t, 0.15693658145020795f);
  p = fma_f32(p, t, 0.14696841572416672f);
  float tail = fast_exp2(x * x * -0.7213475204f) * (p * t);
  float y = fma_f32(-a, tail, x > 0 || x != x ? x : 0.0f);
  return x > 14.0f ? x : y;
}
/* The tanh form, as x sigmoid(2 u). */
RDNA_DEVICE float fast_gelu_tanh(float x) {
  return x * fast_sigmoid(0x1.988454p+0f * fma_f32(0x1.6e4e26p-5f * x * x, x, x));
}

#endif
