/* Rotary embedding; see rope_kernels.h. A group computes the cosines and sines of its token once, into LDS, and uses
 * them for all of its heads. */
#include "kernel/prelude.h"
#include "kernel/scalar.h"
#include "math/common/device/values.h"
#include "math/rope/rope_kernels.h"

static constexpr uint32_t threads = 256;
static constexpr uint32_t table_pairs = 256; /* whose cosine and sine are in LDS at once: enough for an n_rot of 512 */

/* The heads of one token that a group has. */
struct heads {
  const char *x; /* the first of them */
  char *out;
  int64_t x_stride, out_stride; /* elements from head to head */
  uint32_t count;
  const float *weight; /* or NULL: values are taken as they are */
  const float *factor; /* of each head, in LDS: its values are multiplied by this and the weight */
};

/* Finds the factor of each head of |dim| values, 32 lanes a head. */
template <typename from>
RDNA_DEVICE void norm_heads(const heads &h, uint32_t dim, float epsilon, float *factor) {
  if (!h.weight) return;
  uint32_t lane = thread_id() % 32;
  for (uint32_t head = thread_id() / 32; head < h.count; head += threads / 32) {
    const char *x = h.x + (int64_t)head * h.x_stride * from::BYTES;
    float sum = 0;
#pragma unroll 4
    for (uint32_t i = lane; i < dim; i += 32) {
      float v = from::load(x, i);
      sum = fma_f32(v, v, sum);
    }
#pragma unroll
    for (uint32_t mask = 16; mask > 0; mask /= 2) sum += wave_shuffle_xor_f32(sum, mask);
    if (lane == 0) factor[head] = 1.0f / sqrt_f32(sum / (float)dim + epsilon);
  }
  group_barrier();
}

/* Multiplies |count| values of head |head| from value |i| on. */
template <int count>
RDNA_DEVICE void apply_norm(const heads &h, uint32_t head, uint32_t i, float *v) {
  if (!h.weight) return;
#pragma unroll
  for (int k = 0; k < count; k++) v[k] = v[k] * h.factor[head] * global(h.weight)[i + k];
}

/* Returns how many of |heads| belong to part |part| of |parts|, and the first of them. */
RDNA_DEVICE uint32_t part_size(uint32_t heads, uint32_t part, uint32_t parts, uint32_t *first) {
  uint32_t share = (heads + parts - 1) / parts;
  *first = min_u32(part * share, heads);
  return min_u32(share, heads - *first);
}

/* Loads and stores |count| values by 16-byte accesses, converted. */
template <typename type, int count>
RDNA_DEVICE void load_values(const void *p, float *v) {
#pragma unroll
  for (int k = 0; k < count; k += type::IN_16) type::load_16((const char *)p + k * type::BYTES, v + k);
}
template <typename type, int count>
RDNA_DEVICE void store_values(void *p, const float *v) {
#pragma unroll
  for (int k = 0; k < count; k += type::IN_16) type::store_16((char *)p + k * type::BYTES, v + k);
}

/* Rotates the pair (a, b); |angle| is (cosine, sine). */
RDNA_DEVICE void turn(float *a, float *b, float2 angle) {
  float x = *a, y = *b;
  *a = x * angle.x - y * angle.y;
  *b = x * angle.y + y * angle.x;
}

/* Rotates pairs i to i + 7 of the halves layout: x[i, i + 8) with x[half + i, half + i + 8). */
template <typename from, typename to>
RDNA_DEVICE void turn_halves_8(const heads &h, uint32_t head, const char *x, char *out, uint32_t i, uint32_t half,
                               const float2 *angles) {
  float a[8], b[8];
  load_values<from, 8>(x + i * from::BYTES, a);
  load_values<from, 8>(x + (half + i) * from::BYTES, b);
  apply_norm<8>(h, head, i, a);
  apply_norm<8>(h, head, half + i, b);
#pragma unroll
  for (int k = 0; k < 8; k++) turn(&a[k], &b[k], angles[k]);
  store_values<to, 8>(out + i * to::BYTES, a);
  store_values<to, 8>(out + (half + i) * to::BYTES, b);
}

/* Rotates pairs i to i + 3 of the interleaved layout: x[2 i, 2 i + 8). */
template <typename from, typename to>
RDNA_DEVICE void turn_interleaved_4(const heads &h, uint32_t head, const char *x, char *out, uint32_t i,
                                    const float2 *angles) {
  float v[8];
  load_values<from, 8>(x + 2 * i * from::BYTES, v);
  apply_norm<8>(h, head, 2 * i, v);
#pragma unroll
  for (int k = 0; k < 4; k++) turn(&v[2 * k], &v[2 * k + 1], angles[k]);
  store_values<to, 8>(out + 2 * i * to::BYTES, v);
}

template <typename from, typename to>
RDNA_DEVICE void turn_one(const heads &h, uint32_t head, const char *x, char *out, uint32_t first, uint32_t second,
                          float2 angle) {
  float a = from::load(x, first), b = from::load(x, second);
  apply_norm<1>(h, head, first, &a);
  apply_norm<1>(h, head, second, &b);
  turn(&a, &b, angle);
  to::store(out, first, a);
  to::store(out, second, b);
}

/* Rotates pairs [begin, begin + count) of every head by |angles|, which holds those pairs' alone. |wide|: 8 values at
 * once, for which all addresses and strides are aligned. */
template <typename from, typename to>
RDNA_DEVICE void turn_pairs(const heads &h, uint32_t begin, uint32_t count, uint32_t half, bool interleaved, bool wide,
                            const float2 *angles) {
  uint32_t each = !wide ? 1 : interleaved ? 4 : 8;
  uint32_t in_head = count / each;
  for (uint32_t item = thread_id(); item < h.count * in_head; item += threads) {
    uint32_t head = item / in_head, i = (item - head * in_head) * each;
    const char *x = h.x + (int64_t)head * h.x_stride * from::BYTES;
    char *out = h.out + (int64_t)head * h.out_stride * to::BYTES;
    uint32_t pair = begin + i;
    if (!wide) {
      turn_one<from, to>(h, head, x, out, interleaved ? 2 * pair : pair, interleaved ? 2 * pair + 1 : half + pair,
                         angles[i]);
    } else if (interleaved) {
      turn_interleaved_4<from, to>(h, head, x, out, pair, angles + i);
    } else {
      turn_halves_8<from, to>(h, head, x, out, pair, half, angles + i);
    }
  }
}

template <typename from, typename to>
RDNA_DEVICE void turn_heads(const heads &h, const float *inv_freq, uint32_t n_rot, bool interleaved, int32_t position,
                            float scale, float2 *angles) {
  uint32_t half = n_rot / 2;
  uint64_t bits =
      address_of(h.x) | address_of(h.out) | (uint64_t)(h.x_stride * from::BYTES) | (uint64_t)(h.out_stride * to::BYTES);
  bool wide = all_16(bits) && half % 8 == 0;
  for (uint32_t begin = 0; begin < half; begin += table_pairs) {
    uint32_t count = min_u32(table_pairs, half - begin);
    if (begin > 0) group_barrier();
    if (thread_id() < count) {
      float sine, cosine;
      scalar_sincos((float)position * inv_freq[begin + thread_id()], &sine, &cosine);
      angles[thread_id()] = float2{cosine * scale, sine * scale};
    }
    group_barrier();
    turn_pairs<from, to>(h, begin, count, half, interleaved, wide, angles);
  }
}

/* Copies values [begin, end) of every head, converted. */
template <typename from, typename to>
RDNA_DEVICE void copy_heads(const heads &h, uint32_t begin, uint32_t end) {
  uint32_t size = end - begin;
  uint64_t bits =
      address_of(h.x) | address_of(h.out) | (uint64_t)(h.x_stride * from::BYTES) | (uint64_t)(h.out_stride * to::BYTES);
  uint32_t each = all_16(bits) && begin % 8 == 0 && size % 8 == 0 ? 8 : 1;
  uint32_t in_head = size / each;
  for (uint32_t item = thread_id(); item < h.count * in_head; item += threads) {
    uint32_t head = item / in_head, i = begin + (item - head * in_head) * each;
    const char *x = h.x + (int64_t)head * h.x_stride * from::BYTES;
    char *out = h.out + (int64_t)head * h.out_stride * to::BYTES;
    if (each == 8) {
      float v[8];
      load_values<from, 8>(x + i * from::BYTES, v);
      apply_norm<8>(h, head, i, v);
      store_values<to, 8>(out + i * to::BYTES, v);
    } else {
      float v = from::load(x, i);
      apply_norm<1>(h, head, i, &v);
      to::store(out, i, v);
    }
  }
}

template <typename from, typename to>
RDNA_DEVICE heads part_of(const void *x, int64_t x_row, int64_t x_stride, const void *out, int64_t out_row,
                          int64_t out_stride, uint32_t first, uint32_t count, const float *weight = nullptr,
                          const float *factor = nullptr) {
  return {(const char *)x + (x_row + first * x_stride) * from::BYTES,
          (char *)out + (out_row + first * out_stride) * to::BYTES,
          x_stride,
          out_stride,
          count,
          weight,
          factor};
}

#define ROPE(type)                                                                                                     \
  RDNA_KERNEL(256) rope_##type(struct rope_args a) {                                                                   \
    RDNA_SHARED float2 angles[table_pairs];                                                                            \
    int64_t token = group_id_x();                                                                                      \
    uint32_t first, count = part_size((uint32_t)a.heads, group_id_y(), group_count_y(), &first);                       \
    heads h = part_of<type, type>(a.x, token * a.x_token_stride, a.x_head_stride, a.out, token * a.out_token_stride,   \
                                  a.out_head_stride, first, count);                                                    \
    turn_heads<type, type>(h, a.inv_freq, (uint32_t)a.n_rot, a.interleaved != 0, a.positions[token], a.scale, angles); \
    if (h.x != h.out) copy_heads<type, type>(h, (uint32_t)a.n_rot, (uint32_t)a.head_dim);                              \
  }
ROPE(f32)
ROPE(f16)

/* Norms, rotates, and copies what is not rotated: all of heads that change their place or are normed. */
template <typename from, typename to>
RDNA_DEVICE void write_turned(const rope_kv_write_args &a, const heads &h, float *factor, float2 *angles) {
  norm_heads<from>(h, (uint32_t)a.k_dim, a.epsilon, factor);
  turn_heads<from, to>(h, a.inv_freq, (uint32_t)a.n_rot, a.interleaved != 0, a.positions[group_id_x()], a.scale,
                       angles);
  if (h.x != h.out || h.weight) copy_heads<from, to>(h, (uint32_t)a.n_rot, (uint32_t)a.k_dim);
}

/* Rotates the heads of q that part |part| has: in place, or into q_out, whose type |to| is. */
template <typename to>
RDNA_DEVICE void turn_queries(const rope_kv_write_args &a, int64_t token, uint32_t part, float *factor,
                              float2 *angles) {
  uint32_t first, count = part_size((uint32_t)a.q_heads, part, (uint32_t)a.q_parts, &first);
  const int64_t row = token * a.q_token_stride;
  if (a.q_out) {
    heads q = part_of<f32, to>(a.q, row, a.q_head_stride, a.q_out, token * a.q_out_token_stride, a.q_out_head_stride,
                               first, count, a.q_norm, factor);
    write_turned<f32, to>(a, q, factor, angles);
  } else {
    heads q = part_of<f32, f32>(a.q, row, a.q_head_stride, a.q, row, a.q_head_stride, first, count, a.q_norm, factor);
    write_turned<f32, f32>(a, q, factor, angles);
  }
}

template <typename type>
RDNA_DEVICE void kv_write(const rope_kv_write_args &a, float2 *angles, float (&factor)[2][ROPE_NORM_HEADS]) {
  int64_t token = group_id_x(), row = a.cache_row[token];
  uint32_t of_q = (uint32_t)a.q_parts, part = group_id_y(), first;
  if (part < of_q) return turn_queries<type>(a, token, part, factor[0], angles);
  if (row < 0 || row >= a.slots) return;
  uint32_t count = part_size((uint32_t)a.heads, part - of_q, group_count_y() - of_q, &first);
  heads k = part_of<f32, type>(a.k, token * a.k_token_stride, a.k_head_stride, a.k_cache, row * a.k_slot_stride,
                               a.k_cache_head_stride, first, count, a.k_norm, factor[0]);
  heads v = part_of<f32, type>(a.v, token * a.v_token_stride, a.v_head_stride, a.v_cache, row * a.v_slot_stride,
                               a.v_cache_head_stride, first, count, a.v_norm, factor[1]);
  write_turned<f32, type>(a, k, factor[0], angles);
  norm_heads<f32>(v, (uint32_t)a.v_dim, a.epsilon, factor[1]);
  copy_heads<f32, type>(v, 0, (uint32_t)a.v_dim);
}

#define ROPE_KV_WRITE(type)                                            \
  RDNA_KERNEL(256) rope_kv_write_##type(struct rope_kv_write_args a) { \
    RDNA_SHARED float2 angles[table_pairs];                            \
    RDNA_SHARED float factor[2][ROPE_NORM_HEADS];                      \
    kv_write<type>(a, angles, factor);                                 \
  }
ROPE_KV_WRITE(f32)
ROPE_KV_WRITE(f16)
ROPE_KV_WRITE(bf16)
