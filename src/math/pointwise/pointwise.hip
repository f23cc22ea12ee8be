/* Strided operations. A thread loads all its values before it computes or stores any, so that loads are in flight
 * together. */
#include "kernel/prelude.h"
#include "math/common/device/values.h"
#include "math/pointwise/pointwise_kernels.h"
#include "math/pointwise/pointwise_ops.h"

static constexpr uint32_t threads = RDNA__POINTWISE_THREADS;

/* A type in memory (|stored|) and the type that it is computed in (|value|). A thread has COUNT values; a vector is
 * COUNT neighbouring ones. The first parameter of load and store is an rdna_dtype, which integers alone need. */
template <typename stored>
struct floats {
  typedef float value;
  enum { COUNT = stored::IN_16 };
  RDNA_DEVICE value load(uint32_t, const void *p, int64_t i) { return stored::load(p, (uint64_t)i); }
  RDNA_DEVICE void store(uint32_t, void *p, int64_t i, value v) { stored::store(p, (uint64_t)i, v); }
  RDNA_DEVICE void load_vector(uint32_t, const void *p, int64_t i, value *v) {
    stored::load_16((const char *)p + i * stored::BYTES, v);
  }
  RDNA_DEVICE void store_vector(uint32_t, void *p, int64_t i, const value *v) {
    stored::store_16((char *)p + i * stored::BYTES, v);
  }
  RDNA_DEVICE value constant(const rdna_scalar &s) { return (float)s.real; }
  RDNA_DEVICE void map(uint32_t op, value *v, value p, value q) { pointwise_map_f32(op, v, COUNT, p, q); }
  RDNA_DEVICE void zip(uint32_t op, value *v, const value *w, value p, value q) {
    pointwise_zip_f32(op, v, w, COUNT, p, q);
  }
  RDNA_DEVICE void zip3(uint32_t op, value *v, const value *w, const value *u, value p) {
    pointwise_zip3_f32(op, v, w, u, COUNT, p);
  }
  RDNA_DEVICE void compare(uint32_t op, const value *v, const value *w, uint8_t *out) {
    pointwise_compare_f32(op, v, w, COUNT, out);
  }
};

struct doubles {
  typedef double value;
  enum { COUNT = 4 };
  RDNA_DEVICE value load(uint32_t, const void *p, int64_t i) { return ((const double *)p)[i]; }
  RDNA_DEVICE void store(uint32_t, void *p, int64_t i, value v) { ((double *)p)[i] = v; }
  RDNA_DEVICE void load_vector(uint32_t, const void *p, int64_t i, value *v) {
    const uint4 *from = (const uint4 *)((const double *)p + i);
    uint4 low = from[0], high = from[1];
    v[0] = bits_as<double>(uint2{low.x, low.y}), v[1] = bits_as<double>(uint2{low.z, low.w});
    v[2] = bits_as<double>(uint2{high.x, high.y}), v[3] = bits_as<double>(uint2{high.z, high.w});
  }
  RDNA_DEVICE void store_vector(uint32_t, void *p, int64_t i, const value *v) {
    uint4 *to = (uint4 *)((double *)p + i);
    uint2 a = bits_as<uint2>(v[0]), b = bits_as<uint2>(v[1]), c = bits_as<uint2>(v[2]), d = bits_as<uint2>(v[3]);
    to[0] = uint4{a.x, a.y, b.x, b.y}, to[1] = uint4{c.x, c.y, d.x, d.y};
  }
  RDNA_DEVICE value constant(const rdna_scalar &s) { return s.real; }
  RDNA_DEVICE void map(uint32_t op, value *v, value p, value q) { pointwise_map_f64(op, v, COUNT, p, q); }
  RDNA_DEVICE void zip(uint32_t op, value *v, const value *w, value p, value q) {
    pointwise_zip_f64(op, v, w, COUNT, p, q);
  }
  RDNA_DEVICE void zip3(uint32_t op, value *v, const value *w, const value *u, value p) {
    pointwise_zip3_f64(op, v, w, u, COUNT, p);
  }
  RDNA_DEVICE void compare(uint32_t op, const value *v, const value *w, uint8_t *out) {
    pointwise_compare_f64(op, v, w, COUNT, out);
  }
};

/* Of RDNA_U64 the first bit is turned over, so that signed values are in the order of the unsigned ones. What does not
 * go by their order takes them as RDNA_I64. */
struct integers {
  typedef int64_t value;
  enum { COUNT = 4 };
  RDNA_DEVICE value load(uint32_t dtype, const void *p, int64_t i) {
    switch (dtype) {
      case RDNA_I8:
        return ((const int8_t *)p)[i];
      case RDNA_I16:
        return ((const int16_t *)p)[i];
      case RDNA_I32:
        return ((const int32_t *)p)[i];
      case RDNA_I64:
        return ((const int64_t *)p)[i];
      case RDNA_U16:
        return ((const uint16_t *)p)[i];
      case RDNA_U32:
        return ((const uint32_t *)p)[i];
      case RDNA_U64:
        return ((const int64_t *)p)[i] ^ INT64_MIN;
      case RDNA_BOOL:
        return ((const uint8_t *)p)[i] != 0;
      default:
        return ((const uint8_t *)p)[i];
    }
  }
  RDNA_DEVICE void store(uint32_t dtype, void *p, int64_t i, value v) {
    switch (dtype) {
      case RDNA_I16:
      case RDNA_U16:
        ((int16_t *)p)[i] = (int16_t)v;
        break;
      case RDNA_I32:
      case RDNA_U32:
        ((int32_t *)p)[i] = (int32_t)v;
        break;
      case RDNA_I64:
        ((int64_t *)p)[i] = v;
        break;
      case RDNA_U64:
        ((int64_t *)p)[i] = v ^ INT64_MIN;
        break;
      case RDNA_BOOL:
        ((uint8_t *)p)[i] = v != 0;
        break;
      default:
        ((uint8_t *)p)[i] = (uint8_t)v;
    }
  }
  RDNA_DEVICE void load_vector(uint32_t dtype, const void *p, int64_t i, value *v) {
    if (dtype == RDNA_I32 || dtype == RDNA_U32) {
      uint4 bits = load_as<uint4>((const int32_t *)p + i);
      for (int j = 0; j < 4; j++) v[j] = dtype == RDNA_I32 ? (int64_t)(int32_t)bits[j] : (int64_t)bits[j];
    } else if (dtype == RDNA_I64 || dtype == RDNA_U64) {
      int64_t turned = dtype == RDNA_U64 ? INT64_MIN : 0;
      uint4 low = load_as<uint4>((const int64_t *)p + i), high = load_as<uint4>((const int64_t *)p + i + 2);
      v[0] = (int64_t)((uint64_t)low.y << 32 | low.x), v[1] = (int64_t)((uint64_t)low.w << 32 | low.z);
      v[2] = (int64_t)((uint64_t)high.y << 32 | high.x), v[3] = (int64_t)((uint64_t)high.w << 32 | high.z);
      for (int j = 0; j < 4; j++) v[j] ^= turned;
    } else if (dtype == RDNA_I16 || dtype == RDNA_U16) {
      uint2 bits = load_as<uint2>((const int16_t *)p + i);
      for (int j = 0; j < 4; j++) {
        uint16_t half = (uint16_t)(bits[j / 2] >> (16 * (j % 2)));
        v[j] = dtype == RDNA_I16 ? (int64_t)(int16_t)half : half;
      }
    } else {
      uint32_t bits = load_as<uint32_t>((const uint8_t *)p + i);
      for (int j = 0; j < 4; j++) {
        uint8_t byte = (uint8_t)(bits >> (8 * j));
        v[j] = dtype == RDNA_I8 ? (int64_t)(int8_t)byte : dtype == RDNA_BOOL ? byte != 0 : byte;
      }
    }
  }
  RDNA_DEVICE void store_vector(uint32_t dtype, void *p, int64_t i, const value *v) {
    if (dtype == RDNA_I32 || dtype == RDNA_U32) {
      store_as<uint4>((int32_t *)p + i, uint4{(uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2], (uint32_t)v[3]});
    } else if (dtype == RDNA_I64 || dtype == RDNA_U64) {
      int64_t turned = dtype == RDNA_U64 ? INT64_MIN : 0;
      uint2 a = bits_as<uint2>(v[0] ^ turned), b = bits_as<uint2>(v[1] ^ turned);
      uint2 c = bits_as<uint2>(v[2] ^ turned), d = bits_as<uint2>(v[3] ^ turned);
      store_as<uint4>((int64_t *)p + i, uint4{a.x, a.y, b.x, b.y});
      store_as<uint4>((int64_t *)p + i + 2, uint4{c.x, c.y, d.x, d.y});
    } else if (dtype == RDNA_I16 || dtype == RDNA_U16) {
      uint2 bits = {(uint32_t)(uint16_t)v[0] | (uint32_t)v[1] << 16, (uint32_t)(uint16_t)v[2] | (uint32_t)v[3] << 16};
      store_as<uint2>((int16_t *)p + i, bits);
    } else {
      uint32_t bits = 0;
      for (int j = 0; j < 4; j++) {
        bits |= (dtype == RDNA_BOOL ? (uint32_t)(v[j] != 0) : (uint32_t)(uint8_t)v[j]) << (8 * j);
      }
      store_as<uint32_t>((uint8_t *)p + i, bits);
    }
  }
  RDNA_DEVICE value constant(const rdna_scalar &s) { return s.integer; }
  RDNA_DEVICE void map(uint32_t op, value *v, value p, value q) { pointwise_map_i64(op, v, COUNT, p, q); }
  RDNA_DEVICE void zip(uint32_t op, value *v, const value *w, value p, value q) {
    pointwise_zip_i64(op, v, w, COUNT, p, q);
  }
  RDNA_DEVICE void zip3(uint32_t op, value *v, const value *w, const value *u, value p) {
    pointwise_zip3_i64(op, v, w, u, COUNT, p);
  }
  RDNA_DEVICE void compare(uint32_t op, const value *v, const value *w, uint8_t *out) {
    pointwise_compare_i64(op, v, w, COUNT, out);
  }
};

/* The offsets of a thread's values in each operand, in values. */
template <int operands, int values>
struct places {
  uint32_t valid; /* how many of the thread's values exist */
  int64_t at[operands][values];
};

template <int operands, int values>
RDNA_DEVICE places<operands, values> places_of(const pointwise_args &a) {
  places<operands, values> p;
  uint32_t start = group_id_x() * threads * values;
  p.valid = 0;
  if (a.together) {
    uint32_t i = start + thread_id() * values;
    if (i >= a.shape.count) return p;
    int64_t at[operands];
    strided_offsets(&a.shape, a.operand, operands, i, at);
    p.valid = values;
#pragma unroll
    for (int k = 0; k < operands; k++) {
#pragma unroll
      for (int j = 0; j < values; j++) p.at[k][j] = at[k] + j * a.operand[k].stride[0];
    }
    return p;
  }
#pragma unroll
  for (int j = 0; j < values; j++) {
    uint32_t i = start + (uint32_t)j * threads + thread_id();
    if (i >= a.shape.count) break;
    int64_t at[operands];
    strided_offsets(&a.shape, a.operand, operands, i, at);
    p.valid = (uint32_t)j + 1;
#pragma unroll
    for (int k = 0; k < operands; k++) p.at[k][j] = at[k];
  }
  return p;
}

template <typename type, int k, int operands, int values>
RDNA_DEVICE void load_operand(const pointwise_args &a, const places<operands, values> &p, typename type::value *v) {
  const void *data = a.operand[k].data;
  if (a.constants >> k & 1) {
#pragma unroll
    for (int j = 0; j < values; j++) v[j] = type::constant(a.constant);
  } else if (a.vectors >> k & 1) {
    if (p.valid) type::load_vector(a.dtype, data, p.at[k][0], v);
  } else {
#pragma unroll
    for (int j = 0; j < values; j++) {
      if ((uint32_t)j < p.valid) v[j] = type::load(a.dtype, data, p.at[k][j]);
    }
  }
}

template <typename type, int operands, int values>
RDNA_DEVICE void store_result(const pointwise_args &a, const places<operands, values> &p,
                              const typename type::value *v) {
  void *data = a.operand[0].data;
  if (a.vectors & 1) {
    if (p.valid) type::store_vector(a.dtype, data, p.at[0][0], v);
    return;
  }
#pragma unroll
  for (int j = 0; j < values; j++) {
    if ((uint32_t)j < p.valid) type::store(a.dtype, data, p.at[0][j], v[j]);
  }
}

template <typename type>
RDNA_DEVICE void map_strided(const pointwise_args &a) {
  typename type::value v[type::COUNT] = {};
  auto p = places_of<2, type::COUNT>(a);
  load_operand<type, 1>(a, p, v);
  type::map(a.op, v, type::constant(a.p), type::constant(a.q));
  store_result<type>(a, p, v);
}

template <typename type>
RDNA_DEVICE void zip_strided(const pointwise_args &a) {
  typename type::value v[type::COUNT] = {}, w[type::COUNT] = {};
  auto p = places_of<3, type::COUNT>(a);
  load_operand<type, 1>(a, p, v);
  load_operand<type, 2>(a, p, w);
  type::zip(a.op, v, w, type::constant(a.p), type::constant(a.q));
  store_result<type>(a, p, v);
}

template <typename type>
RDNA_DEVICE void zip3_strided(const pointwise_args &a) {
  typename type::value v[type::COUNT] = {}, w[type::COUNT] = {}, u[type::COUNT] = {};
  auto p = places_of<4, type::COUNT>(a);
  load_operand<type, 1>(a, p, v);
  load_operand<type, 2>(a, p, w);
  load_operand<type, 3>(a, p, u);
  type::zip3(a.op, v, w, u, type::constant(a.p));
  store_result<type>(a, p, v);
}

template <typename type>
RDNA_DEVICE void compare_strided(const pointwise_args &a) {
  typename type::value v[type::COUNT] = {}, w[type::COUNT] = {};
  uint8_t answer[type::COUNT] = {};
  auto p = places_of<3, type::COUNT>(a);
  load_operand<type, 1>(a, p, v);
  load_operand<type, 2>(a, p, w);
  type::compare(a.op, v, w, answer);
  uint8_t *data = (uint8_t *)a.operand[0].data;
  if (a.vectors & 1) {
#pragma unroll
    for (int j = 0; j < type::COUNT; j += 4) {
      uint32_t bits = 0;
#pragma unroll
      for (int b = 0; b < 4; b++) bits |= (uint32_t)answer[j + b] << (8 * b);
      if (p.valid) store_as<uint32_t>(data + p.at[0][0] + j, bits);
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < type::COUNT; j++) {
    if ((uint32_t)j < p.valid) data[p.at[0][j]] = answer[j];
  }
}

/* Values as bits, of any type: they are copied, never computed with. */
template <typename bits_type, int values>
struct raw {
  typedef bits_type value;
  enum { COUNT = values };
  RDNA_DEVICE value load(uint32_t, const void *p, int64_t i) { return ((const value *)p)[i]; }
  RDNA_DEVICE void store(uint32_t, void *p, int64_t i, value v) { ((value *)p)[i] = v; }
  RDNA_DEVICE value constant(const rdna_scalar &s) { return (value)s.integer; }
  struct alignas(sizeof(value) * values < 16 ? sizeof(value) * values : 16) vector {
    value v[values];
  };
  RDNA_DEVICE void load_vector(uint32_t, const void *p, int64_t i, value *v) {
    vector whole = *(const vector *)((const value *)p + i);
#pragma unroll
    for (int j = 0; j < values; j++) v[j] = whole.v[j];
  }
  RDNA_DEVICE void store_vector(uint32_t, void *p, int64_t i, const value *v) {
    vector whole;
#pragma unroll
    for (int j = 0; j < values; j++) whole.v[j] = v[j];
    *(vector *)((value *)p + i) = whole;
  }
};

template <typename type>
RDNA_DEVICE void where_strided(const pointwise_args &a) {
  typename type::value v[type::COUNT] = {}, w[type::COUNT] = {};
  uint8_t condition[type::COUNT] = {};
  auto p = places_of<4, type::COUNT>(a);
  load_operand<raw<uint8_t, type::COUNT>, 1>(a, p, condition);
  load_operand<type, 2>(a, p, v);
  load_operand<type, 3>(a, p, w);
#pragma unroll
  for (int j = 0; j < type::COUNT; j++) v[j] = condition[j] ? v[j] : w[j];
  store_result<type>(a, p, v);
}

#define KIND(kind)                                                                                   \
  RDNA_KERNEL(256) kind##_strided_f32(struct pointwise_args a) { kind##_strided<floats<f32>>(a); }   \
  RDNA_KERNEL(256) kind##_strided_f16(struct pointwise_args a) { kind##_strided<floats<f16>>(a); }   \
  RDNA_KERNEL(256) kind##_strided_bf16(struct pointwise_args a) { kind##_strided<floats<bf16>>(a); } \
  RDNA_KERNEL(256) kind##_strided_f64(struct pointwise_args a) { kind##_strided<doubles>(a); }       \
  RDNA_KERNEL(256) kind##_strided_int(struct pointwise_args a) { kind##_strided<integers>(a); }
KIND(map)
KIND(zip)
KIND(zip3)
KIND(compare)

RDNA_KERNEL(256) where_strided_8(struct pointwise_args a) { where_strided<raw<uint8_t, 8>>(a); }
RDNA_KERNEL(256) where_strided_16(struct pointwise_args a) { where_strided<raw<uint16_t, 8>>(a); }
RDNA_KERNEL(256) where_strided_32(struct pointwise_args a) { where_strided<raw<uint32_t, 4>>(a); }
RDNA_KERNEL(256) where_strided_64(struct pointwise_args a) { where_strided<raw<uint64_t, 4>>(a); }
