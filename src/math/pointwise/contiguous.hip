/* Kernels for contiguous tensors. Memory bounds them, so what matters is 16 bytes a load and enough loads in flight. */
#include "kernel/prelude.h"
#include "kernel/scalar.h"
#include "math/common/device/fast.h"
#include "math/common/device/values.h"
#include "math/pointwise/contiguous_kernels.h"

static constexpr uint32_t threads = RDNA__CONTIGUOUS_THREADS;
static constexpr uint32_t vectors = RDNA__CONTIGUOUS_VECTORS;

template <typename type>
struct tile {
  static constexpr uint32_t values = RDNA__CONTIGUOUS_TILE_BYTES / type::BYTES;
  int64_t start;  /* the tile's first value */
  uint32_t count; /* its values: |values|, fewer in the last tile, 0 past it */
};

template <typename type>
RDNA_DEVICE tile<type> group_tile(int64_t count) {
  int64_t start = (int64_t)group_id_x() * tile<type>::values;
  int64_t left = count - start;
  return {start, left >= tile<type>::values ? tile<type>::values : left > 0 ? (uint32_t)left : 0};
}

/* The first value in the tile of this thread's vector |j|. */
template <typename type>
RDNA_DEVICE uint32_t vector_start(uint32_t j) {
  return (j * threads + thread_id()) * type::IN_16;
}

template <typename type>
RDNA_DEVICE const char *at(const void *p, int64_t i) {
  return (const char *)p + i * type::BYTES;
}

/* Stores f of each value. All loads of a thread are issued before the first of its stores, so that they are in flight
 * together. The last loop takes values one by one: those past the last whole vector, or all values where a pointer is
 * not a multiple of 16. */
template <typename type, typename function>
RDNA_DEVICE void map_unary(const void *x, void *out, int64_t count, function f) {
  tile<type> t = group_tile<type>(count);
  const char *from = at<type>(x, t.start);
  char *to = (char *)at<type>(out, t.start);
  uint32_t whole = all_16(address_of(x) | address_of(out)) ? t.count / type::IN_16 * type::IN_16 : 0;
  uint4 x_bits[vectors];
#pragma unroll
  for (uint32_t j = 0; j < vectors; j++) {
    if (vector_start<type>(j) < whole) x_bits[j] = load_as<uint4>(from + vector_start<type>(j) * type::BYTES);
  }
#pragma unroll
  for (uint32_t j = 0; j < vectors; j++) {
    if (vector_start<type>(j) < whole) {
      float v[type::IN_16];
      type::unpack(x_bits[j], v);
#pragma unroll
      for (int i = 0; i < type::IN_16; i++) v[i] = f(v[i]);
      type::store_16(to + vector_start<type>(j) * type::BYTES, v);
    }
  }
  for (uint32_t i = whole + thread_id(); i < t.count; i += threads) type::store(to, i, f(type::load(from, i)));
}

/* The same for two inputs. b_at(i): the index in b of the value that belongs to the tile's value i. |dense|: vectors of
 * a belong to vectors of b, without a wrap from the end of b to its beginning within one. */
template <typename type, typename function, typename index>
RDNA_DEVICE void map_binary(const void *a, const void *b, void *out, tile<type> t, bool dense, index b_at, function f) {
  const char *from = at<type>(a, t.start);
  char *to = (char *)at<type>(out, t.start);
  dense = dense && all_16(address_of(a) | address_of(b) | address_of(out));
  uint32_t whole = dense ? t.count / type::IN_16 * type::IN_16 : 0;
  uint4 a_bits[vectors], b_bits[vectors];
#pragma unroll
  for (uint32_t j = 0; j < vectors; j++) {
    uint32_t i = vector_start<type>(j);
    if (i < whole) {
      a_bits[j] = load_as<uint4>(from + i * type::BYTES);
      b_bits[j] = load_as<uint4>((const char *)b + b_at(i) * type::BYTES);
    }
  }
#pragma unroll
  for (uint32_t j = 0; j < vectors; j++) {
    if (vector_start<type>(j) < whole) {
      float v[type::IN_16], w[type::IN_16];
      type::unpack(a_bits[j], v);
      type::unpack(b_bits[j], w);
#pragma unroll
      for (int i = 0; i < type::IN_16; i++) v[i] = f(v[i], w[i]);
      type::store_16(to + vector_start<type>(j) * type::BYTES, v);
    }
  }
  for (uint32_t i = whole + thread_id(); i < t.count; i += threads) {
    type::store(to, i, f(type::load(from, i), type::load(b, b_at(i))));
  }
}

template <typename type, typename function>
RDNA_DEVICE void map_same(const binary_args &a, function f) {
  tile<type> t = group_tile<type>(a.count);
  const char *b = at<type>(a.b, t.start);
  map_binary<type>(a.a, b, a.out, t, true, [](uint32_t i) { return (uint64_t)i; }, f);
}

template <typename type, typename function>
RDNA_DEVICE void map_row(const binary_row_args &a, function f) {
  tile<type> t = group_tile<type>(a.rows * a.cols);
  if (t.count == 0) return;
  uint64_t cols = (uint64_t)a.cols;
  bool dense = cols % type::IN_16 == 0;
  /* the tile's first column: one division for a work-group, of 32 bits where that suffices */
  uint64_t start = (uint64_t)t.start;
  uint64_t first = ((start | cols) >> 32) == 0 ? (uint32_t)start % (uint32_t)cols : start % cols;
  if (cols >= t.values) { /* a tile crosses at most one end of a row */
    map_binary<type>(
        a.a, a.b, a.out, t, dense,
        [=](uint32_t i) {
          uint64_t col = first + i;
          return col >= cols ? col - cols : col;
        },
        f);
  } else {
    map_binary<type>(
        a.a, a.b, a.out, t, dense, [=](uint32_t i) { return (uint64_t)(((uint32_t)first + i) % (uint32_t)cols); }, f);
  }
}

#define UNARY(name, expression, type)                                                           \
  RDNA_KERNEL(256) name##_##type(struct unary_args args) {                                      \
    map_unary<type>(args.x, args.out, args.count, [](float x) -> float { return expression; }); \
  }
#define BINARY(name, expression, type)                                          \
  RDNA_KERNEL(256) name##_##type(struct binary_args args) {                     \
    map_same<type>(args, [](float a, float b) -> float { return expression; }); \
  }                                                                             \
  RDNA_KERNEL(256) name##_row_##type(struct binary_row_args args) {             \
    map_row<type>(args, [](float a, float b) -> float { return expression; });  \
  }
#define UNARY_F32(NAME, name, expression) UNARY(name, expression, f32)
#define UNARY_16(NAME, name, expression) UNARY(name, expression, f16) UNARY(name, expression, bf16)
#define BINARY_TYPES(NAME, name, expression) \
  BINARY(name, expression, f32) BINARY(name, expression, f16) BINARY(name, expression, bf16)
RDNA__CONTIGUOUS_MAPS(UNARY_F32, scalar, close)
RDNA__CONTIGUOUS_MAPS(UNARY_16, fast, fast)
RDNA__CONTIGUOUS_ZIPS(BINARY_TYPES)

#define OTHERS(type, silu)                                                                                     \
  RDNA_KERNEL(256) swiglu_##type(struct binary_args args) {                                                    \
    map_same<type>(args, [](float gate, float up) -> float { return silu(gate) * up; });                       \
  }                                                                                                            \
  RDNA_KERNEL(256) affine_##type(struct affine_args args) {                                                    \
    float scale = args.scale, shift = args.shift;                                                              \
    map_unary<type>(args.x, args.out, args.count, [=](float x) -> float { return fma_f32(x, scale, shift); }); \
  }
OTHERS(f32, scalar_silu)
OTHERS(f16, fast_silu)
OTHERS(bf16, fast_silu)
