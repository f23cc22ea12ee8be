/* Random numbers from Philox4x32-10. */
#include "kernel/prelude.h"
#include "math/common/device/values.h"
#include "math/random/random_kernels.h"
#include "math/random/random_math.h"

static constexpr int64_t threads = RANDOM_THREADS;

/* Stores four values from |i| on, a multiple of four, or those of them that are before |count|. */
template <typename type>
RDNA_DEVICE void store_four(void *p, int64_t i, int64_t count, const float *v) {
  if (i + 4 <= count && (address_of(p) & (4 * type::BYTES - 1)) == 0) {
    if constexpr (type::BYTES == 4) {
      type::store_16((char *)p + i * 4, v);
    } else {
      uint32_t bits[4];
#pragma unroll
      for (int k = 0; k < 4; k++) {
        uint16_t one;
        type::store(&one, 0, v[k]);
        bits[k] = one;
      }
      store_as<uint2>((char *)p + i * 2, uint2{bits[0] | bits[1] << 16, bits[2] | bits[3] << 16});
    }
  } else {
#pragma unroll
    for (int k = 0; k < 4; k++)
      if (i + k < count) type::store(p, (uint64_t)(i + k), v[k]);
  }
}
RDNA_KERNEL(RANDOM_THREADS) random_fill(struct random_fill_args a) {
  int64_t step = (int64_t)group_count_x() * threads * 4;
  for (int64_t i = ((int64_t)group_id_x() * threads + thread_id()) * 4; i < a.count; i += step) {
    float v[4] = {0, 0, 0, 0};
    random_values(&a, (uint64_t)i / 4, v);
    if (a.dtype == RDNA_F32) {
      store_four<f32>(a.out, i, a.count, v);
    } else if (a.dtype == RDNA_F16) {
      store_four<f16>(a.out, i, a.count, v);
    } else {
      store_four<bf16>(a.out, i, a.count, v);
    }
  }
}

RDNA_KERNEL(RANDOM_THREADS) random_integers(struct random_integers_args a) {
  int64_t step = (int64_t)group_count_x() * threads * 2;
  for (int64_t i = ((int64_t)group_id_x() * threads + thread_id()) * 2; i < a.count; i += step) {
    random_words w = random_block(a.seed, a.offset, (uint64_t)i / 2);
#pragma unroll
    for (int k = 0; k < 2; k++) {
      if (i + k >= a.count) continue;
      int64_t v = random_integer(a.low, a.range, w.word[2 * k], w.word[2 * k + 1]);
      if (a.is_i64) {
        ((int64_t *)a.out)[i + k] = v;
      } else {
        ((int32_t *)a.out)[i + k] = (int32_t)v;
      }
    }
  }
}

/* Store or load the mask bytes of a vector of 16 bytes, 4 or 8 of them, in one access. */
template <int count>
RDNA_DEVICE void store_mask(uint8_t *p, const uint32_t *mask) {
  if constexpr (count == 8) {
    store_as<uint2>(p, uint2{mask[0], mask[1]});
  } else {
    store_as<uint32_t>(p, mask[0]);
  }
}
template <int count>
RDNA_DEVICE void load_mask(const uint8_t *p, uint32_t *mask) {
  if constexpr (count == 8) {
    uint2 pair = load_as<uint2>(p);
    mask[0] = pair.x, mask[1] = pair.y;
  } else {
    mask[0] = load_as<uint32_t>(p);
  }
}
RDNA_DEVICE uint32_t byte_of(const uint32_t *mask, int k) { return mask[k / 4] >> (8 * (k % 4)) & 0xff; }

/* A thread takes a vector of 16 bytes. A value of 16 bits costs 5 bytes of memory traffic and about 20 instructions, 15
 * of them for the random number. */
template <typename type>
RDNA_DEVICE void dropout(const dropout_args &a) {
  constexpr int count = type::IN_16;
  const int64_t step = (int64_t)group_count_x() * threads * count;
  const bool wide = all_16(address_of(a.x) | address_of(a.out)) && (address_of(a.mask) & (count - 1)) == 0;
  /* the uniform number n / 2^24 is at least the probability when the integer n is at least this */
  const uint32_t least = (uint32_t)__builtin_ceilf(a.probability * 0x1p24f);
  for (int64_t i = ((int64_t)group_id_x() * threads + thread_id()) * count; i < a.count; i += step) {
    bool whole = wide && i + count <= a.count;
    float v[count];
    if (whole) {
      type::load_16((const char *)a.x + i * type::BYTES, v);
    } else {
#pragma unroll
      for (int k = 0; k < count; k++) v[k] = i + k < a.count ? type::load(a.x, (uint64_t)(i + k)) : 0;
    }
    uint32_t mask[count / 4] = {};
#pragma unroll
    for (int block = 0; block < count / 4; block++) {
      random_words w = random_block(a.seed, a.offset, (uint64_t)i / 4 + (uint32_t)block);
#pragma unroll
      for (int k = 0; k < 4; k++) {
        bool kept = w.word[k] >> 8 >= least;
        v[block * 4 + k] = kept ? a.scale * v[block * 4 + k] : 0;
        mask[block] |= (uint32_t)kept << (8 * k);
      }
    }
    if (whole) {
      type::store_16((char *)a.out + i * type::BYTES, v);
      store_mask<count>(a.mask + i, mask);
    } else {
#pragma unroll
      for (int k = 0; k < count; k++) {
        if (i + k >= a.count) continue;
        type::store(a.out, (uint64_t)(i + k), v[k]);
        a.mask[i + k] = (uint8_t)byte_of(mask, k);
      }
    }
  }
}

template <typename type>
RDNA_DEVICE void dropout_backward(const dropout_backward_args &a) {
  constexpr int count = type::IN_16;
  const int64_t step = (int64_t)group_count_x() * threads * count;
  const bool wide = all_16(address_of(a.dout) | address_of(a.dx)) && (address_of(a.mask) & (count - 1)) == 0;
  for (int64_t i = ((int64_t)group_id_x() * threads + thread_id()) * count; i < a.count; i += step) {
    if (wide && i + count <= a.count) {
      uint32_t mask[count / 4];
      float v[count];
      load_mask<count>(a.mask + i, mask);
      type::load_16((const char *)a.dout + i * type::BYTES, v);
#pragma unroll
      for (int k = 0; k < count; k++) v[k] = byte_of(mask, k) ? a.scale * v[k] : 0;
      type::store_16((char *)a.dx + i * type::BYTES, v);
      continue;
    }
    for (int64_t k = i; k < i + count && k < a.count; k++) {
      type::store(a.dx, (uint64_t)k, a.mask[k] ? a.scale * type::load(a.dout, (uint64_t)k) : 0);
    }
  }
}

#define DROPOUT(type)                                                                     \
  RDNA_KERNEL(RANDOM_THREADS) dropout_##type(struct dropout_args a) { dropout<type>(a); } \
  RDNA_KERNEL(RANDOM_THREADS) dropout_backward_##type(struct dropout_backward_args a) { dropout_backward<type>(a); }
DROPOUT(f32)
DROPOUT(f16)
DROPOUT(bf16)
