/* Running sums and their kin: each thread scans its neighbours, waves scan their threads' totals, and the group carries
 * on from tile to tile. */
#include "kernel/prelude.h"
#include "kernel/scalar.h"
#include "math/scan/scan_kernels.h"
#include "math/values.h"

template <typename number>
struct plain { /* values that are kept as they are, or wider */
  typedef number stored;
  enum { BYTES = sizeof(number), IN_16 = 16 / sizeof(number) };
  template <typename acc>
  RDNA_DEVICE void load_16(const void *p, acc *v) {
    number one[IN_16];
    uint4 bits = load_as<uint4>(p);
    __builtin_memcpy(one, &bits, 16);
#pragma unroll
    for (int i = 0; i < IN_16; i++) v[i] = one[i];
  }
  template <typename acc>
  RDNA_DEVICE void store_16(void *p, const acc *v) {
    number one[IN_16];
#pragma unroll
    for (int i = 0; i < IN_16; i++) one[i] = (number)v[i];
    uint4 bits;
    __builtin_memcpy(&bits, one, 16);
    store_as<uint4>(p, bits);
  }
  RDNA_DEVICE number load(const void *p, uint64_t i) { return ((const number *)p)[i]; }
  RDNA_DEVICE void store(void *p, uint64_t i, number v) { ((number *)p)[i] = v; }
};
typedef plain<double> f64;
typedef plain<int32_t> i32;
typedef plain<int64_t> i64;

template <typename acc>
struct ends {
  RDNA_DEVICE acc lowest() { return -__builtin_inff(); }
  RDNA_DEVICE acc highest() { return __builtin_inff(); }
};
template <>
struct ends<int64_t> {
  RDNA_DEVICE int64_t lowest() { return INT64_MIN; }
  RDNA_DEVICE int64_t highest() { return INT64_MAX; }
};

template <typename acc>
struct sum_of {
  RDNA_DEVICE acc none() { return 0; }
  RDNA_DEVICE acc join(acc a, acc b) { return a + b; }
};
template <typename acc>
struct prod_of {
  RDNA_DEVICE acc none() { return 1; }
  RDNA_DEVICE acc join(acc a, acc b) { return a * b; }
};
template <typename acc>
struct max_of {
  RDNA_DEVICE acc none() { return ends<acc>::lowest(); }
  RDNA_DEVICE acc join(acc a, acc b) { return a > b || a != a ? a : b; }
};
template <typename acc>
struct min_of {
  RDNA_DEVICE acc none() { return ends<acc>::highest(); }
  RDNA_DEVICE acc join(acc a, acc b) { return a < b || a != a ? a : b; }
};

template <typename acc>
struct logsumexp_of { /* the larger, and what the smaller adds to it */
  RDNA_DEVICE acc none() { return -infinity_f32(); }
  RDNA_DEVICE acc join(acc a, acc b) {
    float high = max_f32(a, b), low = min_f32(a, b);
    return low == high && abs_f32(high) == infinity_f32() ? high : high + scalar_log1p(scalar_exp(low - high));
  }
};

template <typename acc>
RDNA_DEVICE acc shuffle(acc v, uint32_t lane) {
  uint32_t bits[sizeof(acc) / 4];
  __builtin_memcpy(bits, &v, sizeof v);
#pragma unroll
  for (uint32_t i = 0; i < sizeof(acc) / 4; i++) bits[i] = wave_shuffle_u32(bits[i], lane);
  __builtin_memcpy(&v, bits, sizeof v);
  return v;
}

/* A tile of the row from |at| on, of which |left| values are there. */
template <typename type, typename op, typename acc>
RDNA_DEVICE void load_tile(const char *row, int64_t at, int64_t end, bool wide, acc *v) {
  constexpr int width = type::IN_16;
  if (wide && at + width <= end) {
    type::load_16(row + at * type::BYTES, v);
  } else {
#pragma unroll
    for (int j = 0; j < width; j++) v[j] = at + j < end ? (acc)type::load(row, (uint64_t)(at + j)) : op::none();
  }
}

template <typename type, typename op, typename acc>
RDNA_DEVICE void scan_segment(const scan_args &a, int64_t row, int64_t segment, acc *scratch) {
  constexpr int width = type::IN_16, waves = SCAN_THREADS / WAVE_SIZE, tile = SCAN_THREADS * width;
  const char *x = (const char *)a.x + row * a.n * type::BYTES;
  char *out = (char *)a.out + row * a.n * type::BYTES;
  int64_t begin = segment * a.segment, end = begin + a.segment < a.n ? begin + a.segment : a.n;
  bool wide = all_16(address_of(x) | address_of(out));
  acc carry = op::none(), v[width], next[width];
  if (a.carry && segment > 0) carry = ((const acc *)a.carry)[row * a.segments + segment - 1];
  load_tile<type, op>(x, begin + thread_id() * width, end, wide, next);
  for (int64_t first = begin; first < end; first += tile) {
    int64_t at = first + thread_id() * width;
#pragma unroll
    for (int j = 0; j < width; j++) v[j] = next[j];
    if (first + tile < end) load_tile<type, op>(x, at + tile, end, wide, next);
#pragma unroll
    for (int j = 1; j < width; j++) v[j] = op::join(v[j - 1], v[j]);
    acc mine = v[width - 1];
#pragma unroll
    for (uint32_t step = 1; step < WAVE_SIZE; step *= 2) {
      acc below = shuffle(mine, (lane_id() - step) & (WAVE_SIZE - 1));
      if (lane_id() >= step) mine = op::join(below, mine);
    }
    group_barrier(); /* the last tile's totals have been read */
    if (lane_id() == WAVE_SIZE - 1) scratch[wave_id()] = mine;
    group_barrier();
    acc before = carry, all = carry, below = shuffle(mine, (lane_id() - 1) & (WAVE_SIZE - 1));
#pragma unroll
    for (int w = 0; w < waves; w++) {
      if ((uint32_t)w == wave_id()) before = all;
      all = op::join(all, scratch[w]);
    }
    if (lane_id() > 0) before = op::join(before, below);
    carry = all;
    if (a.totals) continue;
#pragma unroll
    for (int j = 0; j < width; j++) v[j] = op::join(before, v[j]);
    if (wide && at + width <= end) {
      type::store_16(out + at * type::BYTES, v);
    } else {
#pragma unroll
      for (int j = 0; j < width; j++) {
        if (at + j < end) type::store(out, (uint64_t)(at + j), v[j]);
      }
    }
  }
  if (a.totals && thread_id() == 0) ((acc *)a.totals)[row * a.segments + segment] = carry;
}

template <typename type, typename op, typename acc>
RDNA_DEVICE void scan_any(const scan_args &a, acc *scratch) {
  if (a.inner == 1) {
    for (int64_t unit = group_id_x(); unit < a.outer * a.segments; unit += group_count_x()) {
      scan_segment<type, op, acc>(a, unit / a.segments, unit % a.segments, scratch);
      group_barrier();
    }
    return;
  }
  int64_t columns = a.outer * a.inner;
  for (int64_t column = (int64_t)group_id_x() * SCAN_THREADS + thread_id(); column < columns;
       column += (int64_t)group_count_x() * SCAN_THREADS) {
    int64_t at = column / a.inner * a.n * a.inner + column % a.inner;
    acc kept = op::none();
#pragma unroll 4
    for (int64_t i = 0; i < a.n; i++, at += a.inner) {
      kept = op::join(kept, (acc)type::load(a.x, (uint64_t)at));
      type::store(a.out, (uint64_t)at, kept);
    }
  }
}

#define SCAN(op, type, acc)                                          \
  RDNA_KERNEL(SCAN_THREADS) scan_##op##_##type(struct scan_args a) { \
    RDNA_SHARED static acc scratch[GROUP_SCRATCH(SCAN_THREADS)];     \
    scan_any<type, op##_of<acc>, acc>(a, scratch);                   \
  }
#define SCAN_TYPES(op)   \
  SCAN(op, f32, float)   \
  SCAN(op, f16, float)   \
  SCAN(op, bf16, float)  \
  SCAN(op, f64, double)  \
  SCAN(op, i32, int64_t) \
  SCAN(op, i64, int64_t)
SCAN_TYPES(sum)
SCAN_TYPES(prod)
SCAN_TYPES(max)
SCAN_TYPES(min)
SCAN(logsumexp, f32, float)
SCAN(logsumexp, f16, float)
SCAN(logsumexp, bf16, float)
