/* Device code that the kernels of channel_norm share: where vectors begin, and what a spread stands for. */
#ifndef RDNA_MATH_NORM_CHANNEL_NORM_VALUES_H
#define RDNA_MATH_NORM_CHANNEL_NORM_VALUES_H

#include "kernel/arguments.h"
#include "math/common/device/doubles.h"
#include "math/norm/channel_norm_kernels.h"

static constexpr uint32_t threads = CHANNEL_THREADS;
static constexpr uint32_t ahead = CHANNEL_AHEAD;

/* How many values come before the first multiple of 16 bytes, at most |count|. */
template <typename type>
RDNA_DEVICE uint32_t values_to_16(uint64_t address, uint64_t count) {
  uint32_t head = (uint32_t)(-address & 15) / type::BYTES;
  return head < count ? head : (uint32_t)count;
}

template <typename type>
RDNA_DEVICE uint4 vector_at(const void *p, uint64_t i) {
  return load_as<uint4>((const char *)p + i * type::BYTES);
}

/* 1 / deviation: |spread| is that, or a variance. */
template <typename acc>
RDNA_DEVICE acc inverse_of(uint32_t variance, acc spread, double epsilon) {
  return variance ? 1 / root(spread + (acc)epsilon) : spread;
}

#endif
