/* One operation on each of many tensors; each_kernels.h has the layout. A thread loads all its values before it
 * computes or stores any, so that loads are in flight together. */
#include "kernel/arguments.h"
#include "kernel/prelude.h"
#include "math/common/device/values.h"
#include "math/pointwise/each_kernels.h"
#include "math/pointwise/pointwise_ops.h"

static constexpr uint32_t vectors = EACH_VECTORS;

/* The tensor of this work-group, and where the thread's values lie in it. */
struct each_place {
  uint32_t tensor, group, count;
};

template <typename type>
RDNA_DEVICE void each_load(const void *data, const each_place &p, float *v) {
  const bool whole = all_16(address_of(data));
#pragma unroll
  for (uint32_t j = 0; j < vectors; j++) {
    const uint32_t i = EACH_AT(p.group, thread_id(), j, type::IN_16);
    if (whole && i + type::IN_16 <= p.count) {
      type::load_16((const char *)data + (uint64_t)i * type::BYTES, v + j * type::IN_16);
    } else {
#pragma unroll
      for (uint32_t e = 0; e < type::IN_16; e++)
        if (i + e < p.count) v[j * type::IN_16 + e] = type::load(data, i + e);
    }
  }
}

template <typename type>
RDNA_DEVICE void each_store(void *data, const each_place &p, const float *v) {
  const bool whole = all_16(address_of(data));
#pragma unroll
  for (uint32_t j = 0; j < vectors; j++) {
    const uint32_t i = EACH_AT(p.group, thread_id(), j, type::IN_16);
    if (whole && i + type::IN_16 <= p.count) {
      type::store_16((char *)data + (uint64_t)i * type::BYTES, v + j * type::IN_16);
    } else {
#pragma unroll
      for (uint32_t e = 0; e < type::IN_16; e++)
        if (i + e < p.count) type::store(data, i + e, v[j * type::IN_16 + e]);
    }
  }
}

template <uint32_t values>
RDNA_DEVICE void each_fill(float value, float *v) {
#pragma unroll
  for (uint32_t i = 0; i < values; i++) v[i] = value;
}

/* Computes |op| for |inputs| inputs, whose values are v[0], v[1], v[2]; results replace v[0]. */
template <uint32_t inputs, uint32_t values>
RDNA_DEVICE void each_compute(const each_args &a, float v[][values]) {
  if constexpr (inputs == 1) pointwise_map_simple(a.op, v[0], values, a.p, a.q);
  if constexpr (inputs == 2) pointwise_zip_simple(a.op, v[0], v[1], values, a.p, a.q);
  if constexpr (inputs == 3) pointwise_zip3_simple(a.op, v[0], v[1], v[2], values, a.p);
}

template <typename type, uint32_t inputs>
RDNA_DEVICE void each_tile(const each_args &args) {
  constexpr uint32_t values = vectors * type::IN_16;
  const each_args &a = arguments_again(args); /* in memory, since what is read depends on the group */
  const uint32_t tensor = each_tensor(&a, group_id_x());
  const each_place p = {tensor, group_id_x() - a.group[tensor], a.count[tensor]};
  const void *const *at = a.pointer + p.tensor * (inputs + 1);
  float v[inputs][values] = {};
#pragma unroll
  for (uint32_t k = 0; k < inputs; k++) {
    if (a.constants >> (k + 1) & 1)
      each_fill<values>(a.constant, v[k]);
    else if (k == 1 && (a.ones >> p.tensor & 1))
      each_fill<values>(type::load(at[2], 0), v[k]);
    else
      each_load<type>(at[k + 1], p, v[k]);
  }
  each_compute<inputs, values>(a, v);
  each_store<type>((void *)at[0], p, v[0]);
}

#define EACH(kind, inputs, type) \
  RDNA_KERNEL(EACH_THREADS) kind##_each_##type(struct each_args a) { each_tile<type, inputs>(a); }
#define EACH_TYPES(kind, inputs) EACH(kind, inputs, f32) EACH(kind, inputs, f16) EACH(kind, inputs, bf16)
EACH_TYPES(map, 1)
EACH_TYPES(zip, 2)
EACH_TYPES(zip3, 3)
