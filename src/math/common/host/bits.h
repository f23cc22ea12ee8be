/* For host twins that move or order values by their bits: load and store a value of 1, 2, 4 or 8 bytes. */
#ifndef RDNA_MATH_COMMON_HOST_BITS_H
#define RDNA_MATH_COMMON_HOST_BITS_H

#include "kernel/host.h"

RDNA_SCALAR uint64_t load_bits(const void *p, int bytes, int64_t i) {
  switch (bytes) {
    case 1:
      return ((const uint8_t *)p)[i];
    case 2:
      return ((const uint16_t *)p)[i];
    case 4:
      return ((const uint32_t *)p)[i];
    default:
      return ((const uint64_t *)p)[i];
  }
}
RDNA_SCALAR void store_bits(void *p, int bytes, int64_t i, uint64_t v) {
  if (bytes == 1) ((uint8_t *)p)[i] = (uint8_t)v;
  if (bytes == 2) ((uint16_t *)p)[i] = (uint16_t)v;
  if (bytes == 4) ((uint32_t *)p)[i] = (uint32_t)v;
  if (bytes == 8) ((uint64_t *)p)[i] = v;
}
/* Stores an index, as u32 where |narrow|, else as i64. */
RDNA_SCALAR void store_place(void *places, bool narrow, int64_t i, uint32_t place) {
  if (narrow) {
    ((uint32_t *)places)[i] = place;
  } else {
    ((int64_t *)places)[i] = place;
  }
}

#endif
