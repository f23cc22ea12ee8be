/* Random numbers from Philox4x32-10. */
#include "kernel/prelude.h"
#include "math/random/random_kernels.h"
#include "math/random/random_math.h"
#include "math/values.h"

static constexpr int64_t threads = RANDOM_THREADS;
static constexpr uint32_t dtype_f32 = 0, dtype_f16 = 1; /* as rdna_dtype has them */

/* Four values from |i|, a multiple of four, or what there are of them. */
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
template <typename type>
RDNA_DEVICE void load_four(const void *p, int64_t i, int64_t count, float *v) {
  if (i + 4 <= count && (address_of(p) & (4 * type::BYTES - 1)) == 0) {
    if constexpr (type::BYTES == 4) {
      type::load_16((const char *)p + i * 4, v);
    } else {
      uint2 bits = load_as<uint2>((const char *)p + i * 2);
#pragma unroll
      for (int k = 0; k < 4; k++) {
        uint16_t one = (uint16_t)(bits[k / 2] >> (k % 2 * 16));
        v[k] = type::load(&one, 0);
      }
    }
  } else {
#pragma unroll
    for (int k = 0; k < 4; k++) v[k] = i + k < count ? type::load(p, (uint64_t)(i + k)) : 0;
  }
}

RDNA_KERNEL(RANDOM_THREADS) random_fill(struct random_fill_args a) {
  int64_t step = (int64_t)group_count_x() * threads * 4;
  for (int64_t i = ((int64_t)group_id_x() * threads + thread_id()) * 4; i < a.count; i += step) {
    float v[4] = {0, 0, 0, 0};
    random_values(&a, (uint64_t)i / 4, v);
    if (a.dtype == dtype_f32) {
      store_four<f32>(a.out, i, a.count, v);
    } else if (a.dtype == dtype_f16) {
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

template <typename type>
RDNA_DEVICE void dropout(const dropout_args &a) {
  int64_t step = (int64_t)group_count_x() * threads * 4;
  for (int64_t i = ((int64_t)group_id_x() * threads + thread_id()) * 4; i < a.count; i += step) {
    float v[4];
    uint32_t mask = 0;
    load_four<type>(a.x, i, a.count, v);
    random_words w = random_block(a.seed, a.offset, (uint64_t)i / 4);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      bool kept = random_unit(w.word[k]) >= a.probability;
      v[k] = kept ? a.scale * v[k] : 0;
      mask |= (uint32_t)kept << (8 * k);
    }
    store_four<type>(a.out, i, a.count, v);
    if (i + 4 <= a.count && (address_of(a.mask) & 3) == 0) {
      store_as<uint32_t>(a.mask + i, mask);
    } else {
#pragma unroll
      for (int k = 0; k < 4; k++)
        if (i + k < a.count) a.mask[i + k] = (uint8_t)(mask >> (8 * k));
    }
  }
}

template <typename type>
RDNA_DEVICE void dropout_backward(const dropout_backward_args &a) {
  int64_t step = (int64_t)group_count_x() * threads * 4;
  for (int64_t i = ((int64_t)group_id_x() * threads + thread_id()) * 4; i < a.count; i += step) {
    float v[4];
    load_four<type>(a.dout, i, a.count, v);
    uint32_t mask = 0;
    if (i + 4 <= a.count && (address_of(a.mask) & 3) == 0) {
      mask = load_as<uint32_t>(a.mask + i);
    } else {
#pragma unroll
      for (int k = 0; k < 4; k++)
        if (i + k < a.count) mask |= (uint32_t)a.mask[i + k] << (8 * k);
    }
#pragma unroll
    for (int k = 0; k < 4; k++) v[k] = mask >> (8 * k) & 0xff ? a.scale * v[k] : 0;
    store_four<type>(a.dx, i, a.count, v);
  }
}

#define DROPOUT(type)                                                                     \
  RDNA_KERNEL(RANDOM_THREADS) dropout_##type(struct dropout_args a) { dropout<type>(a); } \
  RDNA_KERNEL(RANDOM_THREADS) dropout_backward_##type(struct dropout_backward_args a) { dropout_backward<type>(a); }
DROPOUT(f32)
DROPOUT(f16)
DROPOUT(bf16)
