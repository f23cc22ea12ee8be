/* Device code: the first of the largest values that a group's threads have, which becomes a pivot. */
#ifndef RDNA_MATH_LINALG_MAGNITUDE_H
#define RDNA_MATH_LINALG_MAGNITUDE_H

/* Magnitudes as integers of the same order, NaN above infinity. */
RDNA_DEVICE uint32_t magnitude(float v) { return v != v ? 0x7f800001u : bits_as<uint32_t>(v) & 0x7fffffffu; }
RDNA_DEVICE uint64_t magnitude(double v) {
  return v != v ? 0x7ff0000000000001u : bits_as<uint64_t>(v) & 0x7fffffffffffffffu;
}

template <int threads>
RDNA_DEVICE uint32_t first_of_largest(uint32_t key, uint32_t at, uint32_t *scratch) {
  uint32_t most = group_max_u32<threads>(key, scratch);
  return group_min_u32<threads>(key == most ? at : ~0u, scratch);
}
template <int threads>
RDNA_DEVICE uint32_t first_of_largest(uint64_t key, uint32_t at, uint32_t *scratch) {
  uint32_t high = (uint32_t)(key >> 32), most = group_max_u32<threads>(high, scratch);
  uint32_t low = high == most ? (uint32_t)key : 0, then = group_max_u32<threads>(low, scratch);
  return group_min_u32<threads>(high == most && low == then ? at : ~0u, scratch);
}

#endif
