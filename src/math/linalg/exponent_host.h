/* Exponents of floats as bits, with their bias, and powers of two by them. */
#ifndef RDNA_MATH_LINALG_EXPONENT_HOST_H
#define RDNA_MATH_LINALG_EXPONENT_HOST_H

#include <stdint.h>
#include <string.h>

static inline uint32_t exponent_f32(float v) {
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  return bits >> 23 & 255;
}
static inline uint32_t exponent_f64(double v) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  return (uint32_t)(bits >> 52) & 2047;
}
static inline float power_f32(uint32_t exponent) {
  uint32_t bits = exponent << 23;
  float v;
  memcpy(&v, &bits, sizeof v);
  return v;
}
static inline double power_f64(uint32_t exponent) {
  uint64_t bits = (uint64_t)exponent << 52;
  double v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

#endif
