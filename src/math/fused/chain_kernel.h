/* Device code: the end of the source of a chain that is compiled at run time, behind chain_begin.h and what it uses of
 * the library's headers. chain_source.c writes what is missing behind it: the chain's steps and its kernel.
 *
 * A thread takes CHAIN_VECTORS vectors of 16 bytes of the output, as far apart as its group is wide, so that each
 * access of a wave is to neighbouring bytes; all loads come before the first store, so that they are in flight
 * together. Bytes: each input and the output once; FLOPs: those of the steps. */

/* Every operation of chains as map_NAME(x, p, q) or zip_NAME(a, b, p, q). CHAIN_FAST: close or fast (fast.h). */
#define CHAIN_IF_NO(...)
#define CHAIN_IF_SLOW(...) __VA_ARGS__
#define CHAIN_IF_QUICK(...) __VA_ARGS__
#define CHAIN_IF_FAST(...) __VA_ARGS__
#define CHAIN_MAP(NAME, name, types, chain, integer, f32, ...) \
  CHAIN_IF_##chain(RDNA_DEVICE float map_##name(float x, float p, float q) { return f32; })
#define CHAIN_ZIP(NAME, name, types, chain, integer, f32, ...) \
  CHAIN_IF_##chain(RDNA_DEVICE float zip_##name(float a, float b, float p, float q) { return f32; })
#define CHAIN_MAPS(fast) RDNA_POINTWISE_MAPS(CHAIN_MAP, CHAIN_MAP, pw32, fast)
CHAIN_MAPS(CHAIN_FAST)
RDNA_POINTWISE_ZIPS(CHAIN_ZIP, CHAIN_ZIP, pw32)

RDNA_DEVICE uint32_t chain_quotient(const chain_divisor &d, uint32_t n) {
  return (uint32_t)(((uint64_t)d.magic * n) >> d.shift);
}
RDNA_DEVICE uint32_t chain_rest(const chain_divisor &d, uint32_t n) { return n - chain_quotient(d, n) * d.size; }

/* How an input lies beside the output, whose values are contiguous. at: where the value for value i is. IS_VECTOR: the
 * values for a vector of the output are a vector too; else they are one value. */
struct SAME { /* as the output */
  enum { IS_VECTOR = 1 };
  RDNA_DEVICE uint32_t at(const chain_input &, uint32_t i) { return i; }
};
struct ONE { /* a single value */
  enum { IS_VECTOR = 0 };
  RDNA_DEVICE uint32_t at(const chain_input &, uint32_t) { return 0; }
};
struct ROW { /* again and again */
  enum { IS_VECTOR = 1 };
  RDNA_DEVICE uint32_t at(const chain_input &in, uint32_t i) { return chain_rest(in.size, i); }
};
struct COLUMN { /* each value many times in turn */
  enum { IS_VECTOR = 0 };
  RDNA_DEVICE uint32_t at(const chain_input &in, uint32_t i) { return chain_quotient(in.inner, i); }
};
struct PLANE { /* both, as a channel of an image */
  enum { IS_VECTOR = 0 };
  RDNA_DEVICE uint32_t at(const chain_input &in, uint32_t i) {
    return chain_rest(in.size, chain_quotient(in.inner, i));
  }
};

/* The values of an input that belong to the vector of the output from value |i| on, as bits, since to convert them
 * would wait for the load; a single value is converted. */
template <typename type, typename kind>
RDNA_DEVICE uint4 chain_load(const chain_input &in, uint32_t i) {
  uint32_t at = kind::at(in, i);
  if constexpr (kind::IS_VECTOR) return load_as<uint4>((const char *)in.data + (uint64_t)at * type::BYTES);
  return uint4{bits_as<uint32_t>(type::load(in.data, at)), 0, 0, 0};
}
template <typename type, typename kind>
RDNA_DEVICE void chain_unpack(uint4 bits, float *v) {
  if constexpr (kind::IS_VECTOR) {
    type::unpack(bits, v);
  } else {
#pragma unroll
    for (int j = 0; j < type::IN_16; j++) v[j] = bits_as<float>((uint32_t)bits.x);
  }
}
