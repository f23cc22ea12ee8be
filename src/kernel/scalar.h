/* Elementary functions in float that compile alike as device code and as plain C on the host, so that a kernel and
 * its host twin compute the same bits (both are built without contraction; fused operations are written out).
 *
 * Coefficients are our own: minimax fits by the Remez exchange in 50-digit arithmetic (Remez 1934), rounded to
 * float. Arguments are reduced as in Cody and Waite, "Software Manual for the Elementary Functions" (1980), and
 * large angles as in Payne and Hanek, "Radian reduction for trigonometric functions" (1983). scalar_test.c states
 * and checks the error of each over every float. */
#ifndef RDNA_KERNEL_SCALAR_H
#define RDNA_KERNEL_SCALAR_H

#include <stdint.h>

#if defined(__AMDGCN__) || defined(__NVPTX__)
#define RDNA_SCALAR static inline __attribute__((device, always_inline))
#else
#define RDNA_SCALAR __attribute__((always_inline, unused)) static inline
#endif

RDNA_SCALAR float scalar_from_bits(uint32_t bits) {
  float v;
  __builtin_memcpy(&v, &bits, sizeof v);
  return v;
}
RDNA_SCALAR uint32_t scalar_bits(float v) {
  uint32_t bits;
  __builtin_memcpy(&bits, &v, sizeof bits);
  return bits;
}
RDNA_SCALAR float scalar_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
RDNA_SCALAR float scalar_abs(float x) { return __builtin_fabsf(x); }
RDNA_SCALAR float scalar_sqrt(float x) { return __builtin_sqrtf(x); }
RDNA_SCALAR float scalar_copysign(float magnitude, float sign) { return __builtin_copysignf(magnitude, sign); }
/* A NaN in either operand gives NaN. */
RDNA_SCALAR float scalar_max(float a, float b) { return a > b || a != a ? a : b; }
RDNA_SCALAR float scalar_min(float a, float b) { return a < b || a != a ? a : b; }

/* y * 2^n for |y| in [1/2, 4) and n in [-252, 254]: in two steps, so that a subnormal result rounds once. */
RDNA_SCALAR float scalar_scale_(float y, int32_t n) {
  int32_t half = n >> 1;
  return y * scalar_from_bits((uint32_t)(half + 127) << 23) * scalar_from_bits((uint32_t)(n - half + 127) << 23);
}

/* exp(r) = 1 + r + r^2 P(r) for |r| <= ln 2 / 2. */
RDNA_SCALAR float scalar_exp_tail_(float r) {
  float p = 0x1.6a2350p-10f;
  p = scalar_fma(p, r, 0x1.123a6cp-7f);
  p = scalar_fma(p, r, 0x1.5558f4p-5f);
  p = scalar_fma(p, r, 0x1.555490p-3f);
  p = scalar_fma(p, r, 0x1.fffffcp-2f);
  return scalar_fma(p, r * r, r);
}

/* x = n ln 2 + r with x in [-104, 128]; adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits. */
RDNA_SCALAR int32_t scalar_exp_reduce_(float x, float *r) {
  float shifted = scalar_fma(x, 0x1.715476p+0f, 0x1.8p23f);
  float n = shifted - 0x1.8p23f;
  *r = scalar_fma(n, 0x1.05c610p-29f, scalar_fma(n, -0x1.62e430p-1f, x));
  return (int32_t)(scalar_bits(shifted) - 0x4b400000u);
}

RDNA_SCALAR float scalar_exp(float x) {
  float r, c = x > 90.0f ? 90.0f : x < -105.0f ? -105.0f : x;
  int32_t n = scalar_exp_reduce_(c, &r);
  float y = scalar_scale_(1.0f + scalar_exp_tail_(r), n);
  return x != x ? x : y;
}

RDNA_SCALAR float scalar_expm1(float x) {
  float r, c = x > 90.0f ? 90.0f : x < -20.0f ? -20.0f : x;
  int32_t n = scalar_exp_reduce_(c, &r);
  float tail = scalar_exp_tail_(r);
  float power = scalar_from_bits((uint32_t)((n > 120 ? 120 : n) + 127) << 23);
  float y = n > 30 ? scalar_scale_(1.0f + tail, n) : scalar_fma(power, tail, power - 1.0f);
  return x != x || x == 0.0f ? x : y;
}

/* 2^r = 1 + r P(r) for |r| <= 1/2. */
RDNA_SCALAR float scalar_exp2(float x) {
  float c = x > 130.0f ? 130.0f : x < -151.0f ? -151.0f : x;
  float shifted = c + 0x1.8p23f;
  float r = c - (shifted - 0x1.8p23f);
  float p = 0x1.fde50ap-17f;
  p = scalar_fma(p, r, 0x1.445d32p-13f);
  p = scalar_fma(p, r, 0x1.5d8a88p-10f);
  p = scalar_fma(p, r, 0x1.3b29f2p-7f);
  p = scalar_fma(p, r, 0x1.c6b08ap-5f);
  p = scalar_fma(p, r, 0x1.ebfbe0p-3f);
  p = scalar_fma(p, r, 0x1.62e430p-1f);
  float y = scalar_scale_(scalar_fma(p, r, 1.0f), (int32_t)(scalar_bits(shifted) - 0x4b400000u));
  return x != x ? x : y;
}

/* x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), for a positive finite x; gives log(1 + f). */
RDNA_SCALAR float scalar_log_reduce_(float x, float *e) {
  float subnormal = x < 0x1p-126f ? 23.0f : 0.0f;
  uint32_t bits = scalar_bits(x < 0x1p-126f ? x * 0x1p23f : x);
  int32_t exponent = (int32_t)(bits - 0x3f3504f3u) >> 23;
  *e = (float)exponent - subnormal;
  float f = scalar_from_bits(bits - ((uint32_t)exponent << 23)) - 1.0f;
  float p = 0x1.1bb2d4p-4f;
  p = scalar_fma(p, f, -0x1.e36ba0p-4f);
  p = scalar_fma(p, f, 0x1.e66444p-4f);
  p = scalar_fma(p, f, -0x1.fb2fd2p-4f);
  p = scalar_fma(p, f, 0x1.233058p-3f);
  p = scalar_fma(p, f, -0x1.556354p-3f);
  p = scalar_fma(p, f, 0x1.99a564p-3f);
  p = scalar_fma(p, f, -0x1.ffffecp-3f);
  p = scalar_fma(p, f, 0x1.555546p-2f);
  return scalar_fma(scalar_fma(p, f, -0.5f), f * f, f);
}

/* Returns what every logarithm gives for x outside (0, inf), and |y| for x inside. */
RDNA_SCALAR float scalar_log_edges_(float x, float y) {
  y = x == __builtin_inff() ? x : y;
  y = x == 0.0f ? -__builtin_inff() : y;
  return x >= 0.0f ? y : __builtin_nanf("");
}

RDNA_SCALAR float scalar_log(float x) {
  float e, l = scalar_log_reduce_(x, &e);
  return scalar_log_edges_(x, scalar_fma(e, 0x1.62e430p-1f, scalar_fma(e, -0x1.05c610p-29f, l)));
}

RDNA_SCALAR float scalar_log2(float x) {
  float e, l = scalar_log_reduce_(x, &e);
  return scalar_log_edges_(x, scalar_fma(l, 0x1.715476p+0f, scalar_fma(l, 0x1.4ae0c0p-26f, e)));
}

RDNA_SCALAR float scalar_log1p(float x) {
  float u = 1.0f + x;
  float lost = u - 1.0f == x ? 0.0f : (x - (u - 1.0f)) / u;
  return x == 0.0f || x == __builtin_inff() ? x : scalar_log(u) + (u == 0.0f ? 0.0f : lost);
}

/* Angle: x = quadrant * pi/2 + r with |r| <= pi/4 (1 + 2^-20). */
RDNA_SCALAR float scalar_reduce_large_angle_(float x, uint32_t *quadrant) {
  /* 2/pi in binary. Used are the bits from |start| on: those before give multiples of 4 quadrants, those after the
   * words that are read less than 2^-70. */
  const uint32_t two_over_pi[8] = {0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                   0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};
  uint32_t bits = scalar_bits(x) & 0x7fffffffu;
  uint64_t mantissa = (bits & 0x7fffffu) | 0x800000u;
  uint32_t start = (bits >> 23) - 120u, word = start >> 5, shift = start & 31;
  uint64_t w0 = two_over_pi[word], w1 = two_over_pi[word + 1], w2 = two_over_pi[word + 2], w3 = two_over_pi[word + 3];
  uint64_t t0 = ((w0 << 32 | w1) << shift) >> 32;
  uint64_t t1 = ((w1 << 32 | w2) << shift) >> 32;
  uint64_t t2 = ((w2 << 32 | w3) << shift) >> 32;
  uint64_t below = mantissa * t1 + ((mantissa * t2) >> 32);
  uint64_t turn = ((mantissa * t0) << 32) + below; /* 2 bits of quadrant, 62 of fraction */
  *quadrant = (uint32_t)((turn + 0x2000000000000000u) >> 62);
  int64_t part = (int64_t)(turn << 2) >> 1; /* of a quarter turn, in units of 2^-63 */
  float high = (float)part, low = (float)(part - (int64_t)high);
  float product = high * 0x1.921fb6p-63f;
  float lost = scalar_fma(high, 0x1.921fb6p-63f, -product) + scalar_fma(high, -0x1.777a5cp-88f, low * 0x1.921fb6p-63f);
  float r = product + lost;
  if (x < 0.0f) {
    *quadrant = 0u - *quadrant;
    r = -r;
  }
  return r;
}

RDNA_SCALAR float scalar_reduce_angle_(float x, uint32_t *quadrant) {
  if (scalar_abs(x) < 0x1p20f) {
    float shifted = scalar_fma(x, 0x1.45f306p-1f, 0x1.8p23f);
    float n = shifted - 0x1.8p23f;
    *quadrant = scalar_bits(shifted);
    return scalar_fma(n, 0x1.ee59dap-50f, scalar_fma(n, 0x1.777a5cp-25f, scalar_fma(n, -0x1.921fb6p+0f, x)));
  }
  *quadrant = 0;
  return scalar_abs(x) < __builtin_inff() ? scalar_reduce_large_angle_(x, quadrant) : x - x;
}

RDNA_SCALAR float scalar_sin_quarter_(float r) {
  float z = r * r, p = 0x1.6cd5ecp-19f;
  p = scalar_fma(p, z, -0x1.a00f94p-13f);
  p = scalar_fma(p, z, 0x1.111108p-7f);
  p = scalar_fma(p, z, -0x1.555556p-3f);
  return scalar_fma(p, z * r, r);
}

RDNA_SCALAR float scalar_cos_quarter_(float r) {
  float z = r * r, p = -0x1.24290ap-22f;
  p = scalar_fma(p, z, 0x1.a01118p-16f);
  p = scalar_fma(p, z, -0x1.6c16b8p-10f);
  p = scalar_fma(p, z, 0x1.555556p-5f);
  return scalar_fma(scalar_fma(p, z, -0.5f), z, 1.0f);
}

RDNA_SCALAR void scalar_sincos(float x, float *out_sin, float *out_cos) {
  uint32_t quadrant;
  float r = scalar_reduce_angle_(x, &quadrant);
  float s = scalar_sin_quarter_(r), c = scalar_cos_quarter_(r);
  float sine = quadrant & 1 ? c : s, cosine = quadrant & 1 ? s : c;
  *out_sin = quadrant & 2 ? -sine : sine;
  *out_cos = (quadrant + 1) & 2 ? -cosine : cosine;
}
RDNA_SCALAR float scalar_sin(float x) {
  float s, c;
  scalar_sincos(x, &s, &c);
  return x == 0.0f ? x : s;
}
RDNA_SCALAR float scalar_cos(float x) {
  float s, c;
  scalar_sincos(x, &s, &c);
  return c;
}

RDNA_SCALAR float scalar_tanh(float x) {
  float z = x * x, p = 0x1.246e0ep-9f;
  p = scalar_fma(p, z, -0x1.0ee560p-7f);
  p = scalar_fma(p, z, 0x1.6418d8p-6f);
  p = scalar_fma(p, z, -0x1.b9fa8ap-5f);
  p = scalar_fma(p, z, 0x1.11109ep-3f);
  p = scalar_fma(p, z, -0x1.555554p-2f);
  float small = scalar_fma(p, z * x, x);
  float large = 1.0f - 2.0f / (scalar_exp(2.0f * scalar_abs(x)) + 1.0f);
  return scalar_copysign(scalar_abs(x) < 0.6f ? small : large, x);
}

/* erf(x) = x + x P(x^2) below 0.93; 1 - exp(Q(x)) above, Q being log(erfc(x)). */
RDNA_SCALAR float scalar_erf_small_(float x) {
  float z = x * x, p = 0x1.5cfd8ap-14f;
  p = scalar_fma(p, z, -0x1.aa4da4p-11f);
  p = scalar_fma(p, z, 0x1.54c9eep-8f);
  p = scalar_fma(p, z, -0x1.b80ed4p-6f);
  p = scalar_fma(p, z, 0x1.ce2e0ep-4f);
  p = scalar_fma(p, z, -0x1.812742p-2f);
  p = scalar_fma(p, z, 0x1.06eba8p-3f);
  return scalar_fma(p, x, x);
}
RDNA_SCALAR float scalar_erfc_large_(float x) { /* x >= 0.92; 0 from 3.95 */
  float p = -0x1.630962p-16f;
  p = scalar_fma(p, x, 0x1.c85bf8p-12f);
  p = scalar_fma(p, x, -0x1.1196d4p-8f);
  p = scalar_fma(p, x, 0x1.9bb50ep-6f);
  p = scalar_fma(p, x, -0x1.bb926cp-4f);
  p = scalar_fma(p, x, -0x1.444470p-1f);
  p = scalar_fma(p, x, -0x1.212846p+0f);
  p = scalar_fma(p, x, 0x1.70d566p-13f);
  float y = scalar_exp(p);
  return x > 3.95f ? 0.0f : y;
}
RDNA_SCALAR float scalar_erf(float x) {
  float a = scalar_abs(x);
  float small = scalar_erf_small_(x), large = scalar_copysign(1.0f - scalar_erfc_large_(a), x);
  return a < 0.925f ? small : x != x ? x : large;
}

RDNA_SCALAR float scalar_sigmoid(float x) {
  float e = scalar_exp(-scalar_abs(x));
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}
RDNA_SCALAR float scalar_silu(float x) { return x * scalar_sigmoid(x); }
/* log(1 + exp(x)) */
RDNA_SCALAR float scalar_softplus(float x) {
  return (x > 0.0f ? x : x == x ? 0.0f : x) + scalar_log1p(scalar_exp(-scalar_abs(x)));
}
/* x Phi(x), Phi the normal distribution (Hendrycks and Gimpel, 2016). */
RDNA_SCALAR float scalar_gelu(float x) {
  float a = x * 0x1.6a09e6p-1f;
  float twice_phi = a < -0.925f ? scalar_erfc_large_(-a) : 1.0f + scalar_erf(a);
  return 0.5f * x * twice_phi;
}
/* The same paper's approximation by tanh. */
RDNA_SCALAR float scalar_gelu_tanh(float x) {
  float inner = 0x1.988454p-1f * scalar_fma(0x1.6e4e26p-5f * x * x, x, x);
  return 0.5f * x * (1.0f + scalar_tanh(inner));
}

#endif
