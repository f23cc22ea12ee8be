/* Running sums and their kin. Each value is read once and written once; long rows are cut into segments, which a pass
 * before reads once more to find what each comes to.
 *
 * Along rows a wave takes a run of values that lie together: several short rows, a row, or a segment of a long one;
 * where rows are many but not enough for that, the waves of a group share a row. A run is read as aligned vectors of 16
 * bytes, wherever rows begin in them. A lane scans the values of its vector, then the lanes' totals are scanned by the
 * wave, while the next SCAN_AHEAD vectors of the lane are in flight:
 *
 *     lane          0           1           2
 *     values    | a a a b | b b b b | b c c c |     b, c: heads, where rows begin
 *     in lane   | 1 2 3 1 | 1 2 3 4 | 1 1 2 3 |     sums of ones since the last head in the lane's vector
 *     carried                 +1        +5          onto what comes before a lane's first head: what its row has so far
 *
 * About 75 instructions a vector and lane for sums of bf16, 110 where
 * rows begin inside: an H200 has time for 220 while it copies one, so memory is the bound: 80 % of the copy rate for
 * large rows, half of it for few long ones, whose bytes are read twice. */
#include "kernel/arguments.h"
#include "kernel/scalar.h"
#include "math/common/device/partial.h"
#include "math/common/device/values.h"
#include "math/scan/scan_kernels.h"

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
  enum { CARRIES_AT_ONCE = 4 };
  RDNA_DEVICE acc none() { return 0; }
  RDNA_DEVICE acc join(acc a, acc b) { return a + b; }
};
template <typename acc>
struct prod_of {
  enum { CARRIES_AT_ONCE = 4 };
  RDNA_DEVICE acc none() { return 1; }
  RDNA_DEVICE acc join(acc a, acc b) { return a * b; }
};
template <typename acc>
struct max_of {
  enum { CARRIES_AT_ONCE = 4 };
  RDNA_DEVICE acc none() { return ends<acc>::lowest(); }
  RDNA_DEVICE acc join(acc a, acc b) { return a > b || a != a ? a : b; }
};
template <typename acc>
struct min_of {
  enum { CARRIES_AT_ONCE = 4 };
  RDNA_DEVICE acc none() { return ends<acc>::highest(); }
  RDNA_DEVICE acc join(acc a, acc b) { return a < b || a != a ? a : b; }
};

template <typename acc>
struct logsumexp_of {           /* the larger, and what the smaller adds to it */
  enum { CARRIES_AT_ONCE = 1 }; /* more take more scalar registers than gfx900 has */
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

/* A run: |count| values that lie together, the first, number 0, at |x|. */
template <typename type>
struct run {
  const char *x;
  char *out;
  int32_t count, low, high; /* vectors of which all values are from |low| to |high| may be read whole */
  uint32_t rows_of;         /* values of a row, when it has several; the first begins at value 0 */
  bool wide;                /* whole vectors may be written whole */
};

/* Returns which values of the vector that begins at value |at| are the run's, as bits. */
template <typename type>
RDNA_DEVICE uint32_t inside(const run<type> &r, int32_t at) {
  constexpr int32_t width = type::IN_16;
  uint32_t low = at < 0 ? 0xffffffffu << -at : 0xffffffffu, left = (uint32_t)(r.count - at);
  return at < r.count ? low & (left < width ? (1u << left) - 1 : (1u << width) - 1) : 0;
}

template <typename type>
RDNA_DEVICE uint4 load_vector(const run<type> &r, int32_t at) {
  constexpr int width = type::IN_16;
  if (at >= r.low && at + width <= r.high) return load_as<uint4>(r.x + (int64_t)at * type::BYTES);
  if (at >= r.count) return uint4{0, 0, 0, 0};
  return load_partial((const typename type::stored *)r.x + at, -at, r.count - at);
}

/* Unpacks a vector; values that are not the run's become op's identity, which changes no result. */
template <typename type, typename op, typename acc>
RDNA_DEVICE void values_of(uint4 bits, uint32_t there, acc *v) {
  constexpr int width = type::IN_16;
  type::unpack(again(bits), v); /* anew each time: kept, they would take twice the registers of 16-bit values */
  if (there == (1u << width) - 1) return;
#pragma unroll
  for (int j = 0; j < width; j++) v[j] = there >> j & 1 ? v[j] : op::none();
}

template <typename type, typename acc>
RDNA_DEVICE void store_vector(const run<type> &r, int32_t at, uint32_t there, const acc *v) {
  constexpr int width = type::IN_16;
  char *out = r.out + (int64_t)at * type::BYTES;
  if (r.wide && there == (1u << width) - 1) {
    type::store_16(out, v);
    return;
  }
#pragma unroll
  for (int j = 0; j < width; j++) {
    if (there >> j & 1) type::store(out, (uint64_t)j, v[j]);
  }
}

/* Returns which of a vector's values are heads, where rows of |n| values begin, as bits; its first value is number
 * |column| of its row. */
template <int width>
RDNA_DEVICE uint32_t heads_of(uint32_t column, uint32_t n) {
  if (n >= width) {
    uint32_t first = column ? n - column : 0;
    return first < width ? 1u << first : 0;
  }
  uint32_t heads = 0;
#pragma unroll
  for (int j = 0; j < width; j++) {
    heads |= column == 0 ? 1u << j : 0;
    column = column + 1 == n ? 0 : column + 1;
  }
  return heads;
}

/* Who has a run: a wave alone, which may have several rows, or a group, whose waves take blocks in turn. */
enum team { SEVERAL_ROWS, ONE_ROW, GROUPS_ROW };

/* Scans a run. A lane's total of what follows the last head in its vector joins the totals of the lanes below it, as
 * far |back| as its row reaches; |last| is the number in its row of the vector's last value. |scratch| is for
 * GROUPS_ROW. */
template <typename type, typename op, typename acc, team whose>
RDNA_DEVICE void scan_run(const run<type> &r, int32_t shift, acc carry, acc *scratch) {
  constexpr bool several = whose == SEVERAL_ROWS, shared = whose == GROUPS_ROW;
  constexpr int32_t width = type::IN_16, ahead = SCAN_AHEAD, waves = shared ? SCAN_THREADS / WAVE_SIZE : 1;
  constexpr int32_t block = waves * WAVE_SIZE * width;
  const uint32_t n = r.rows_of, step_columns = several ? block % n : 0;
  int32_t at = (int32_t)(shared ? thread_id() : lane_id()) * width - shift;
  uint32_t column = 0;
  if (several) column = at < 0 ? (n - (uint32_t)-at % n) % n : (uint32_t)at % n;
  uint4 bits[ahead];
#pragma unroll
  for (int u = 0; u < ahead; u++) bits[u] = load_vector<type>(r, at + u * block);
  int32_t flip = waves; /* a tile's totals lie beside the last one's, which others may still read */
#pragma nounroll
  for (int32_t base = -shift; base < r.count; base += block, at += block, scratch += shared ? flip : 0, flip = -flip) {
    uint32_t lane = lane_id();
#ifdef RDNA_AMD /* comparisons are made again each time, rather than kept as masks in scalar registers */
    lane = bits_as<uint32_t>(again(bits_as<float>(lane)));
#endif
    uint4 now = bits[0];
#pragma unroll
    for (int u = 1; u < ahead; u++) bits[u - 1] = bits[u];
    bits[ahead - 1] = load_vector<type>(r, at + ahead * block);
    const uint32_t there = inside(r, at), heads = several ? heads_of<width>(column, n) : 0;
    const uint32_t last = heads ? width - 32 + (uint32_t)__builtin_clz(heads) : column + width - 1;
    const uint32_t back = several ? last / width : WAVE_SIZE, reach = min_u32(lane, back); /* lanes */
    acc v[width];
    values_of<type, op>(now, there, v);
    acc mine = v[0];
#pragma unroll
    for (int j = 1; j < width; j++) {
      acc joined = op::join(mine, v[j]);
      mine = heads >> j & 1 ? v[j] : joined;
    }
#pragma unroll
    for (uint32_t step = 1; step < WAVE_SIZE; step *= 2) {
      acc below = shuffle(mine, (lane - step) & (WAVE_SIZE - 1));
      if (reach >= step) mine = op::join(below, mine);
    }
    acc kept;
    if (shared) {
      acc below = shuffle(mine, (lane - 1) & (WAVE_SIZE - 1));
      if (lane == WAVE_SIZE - 1) scratch[wave_id()] = mine;
      group_barrier();
      kept = carry;
#pragma unroll
      for (uint32_t w = 0; w < waves; w++) {
        if (w == wave_id()) kept = carry;
        carry = op::join(carry, scratch[w]);
      }
      if (lane > 0) kept = op::join(kept, below);
    } else {
      if (back > lane) mine = op::join(carry, mine);
      kept = shuffle(mine, (lane - 1) & (WAVE_SIZE - 1));
      if (lane == 0) kept = carry;
      carry = shuffle(mine, WAVE_SIZE - 1);
    }
    values_of<type, op>(now, there, v);
#pragma unroll
    for (int j = 0; j < width; j++) {
      if (several && (j == 0 ? column == 0 : heads >> j & 1)) kept = op::none();
      v[j] = kept = op::join(kept, v[j]);
    }
    store_vector<type>(r, at, there, v);
    if (several) {
      column += step_columns;
      if (column >= n) column -= n;
    }
  }
}

template <typename op, typename acc>
RDNA_DEVICE acc wave_total(acc v) {
#pragma unroll
  for (uint32_t step = 1; step < WAVE_SIZE; step *= 2) v = op::join(v, shuffle(v, lane_id() ^ step));
  return v;
}

template <typename type, typename op, typename acc>
RDNA_DEVICE acc total_of_run(const run<type> &r, int32_t shift) {
  constexpr int32_t width = type::IN_16, block = WAVE_SIZE * width, ahead = SCAN_AHEAD;
  acc total = op::none();
#pragma nounroll
  for (int32_t at = (int32_t)lane_id() * width - shift; at < r.count; at += ahead * block) {
    uint4 bits[ahead];
#pragma unroll
    for (int u = 0; u < ahead; u++) bits[u] = load_vector<type>(r, at + u * block);
#pragma unroll
    for (int u = 0; u < ahead; u++) {
      acc v[width];
      values_of<type, op>(bits[u], inside(r, at + u * block), v);
#pragma unroll
      for (int j = 1; j < width; j++) v[0] = op::join(v[0], v[j]);
      total = op::join(total, v[0]);
    }
  }
  return wave_total<op>(total);
}

template <typename type, typename op, typename acc>
RDNA_DEVICE void scan_unit(const scan_args &args, uint32_t unit, acc *scratch) {
  const scan_args &a = arguments_again_wide(args);
  int64_t row = (int64_t)(unit / a.segments) * a.rows, segment = unit % a.segments,
          first = row * a.n + segment * a.segment;
  int64_t rows = a.outer - row < a.rows ? a.outer - row : a.rows, all = a.outer * a.n;
  int64_t left = a.n - segment * a.segment, count = a.rows > 1 ? rows * a.n : left < a.segment ? left : a.segment;
  run<type> r;
  r.x = (const char *)a.x + first * type::BYTES, r.out = (char *)a.out + first * type::BYTES;
  r.count = (int32_t)count;
  r.wide = a.totals || all_16(address_of(r.x) ^ address_of(r.out));
  r.rows_of = (uint32_t)a.n;
  int32_t shift = r.wide ? (int32_t)(address_of(r.x) & 15) / (int32_t)type::BYTES : 0;
  /* A vector that is the run's in part is read whole, where the tensor has it and nobody writes it. */
  bool apart = r.wide && (a.totals || a.x != a.out);
  r.low = !apart ? 0 : first < shift ? -(int32_t)first : -shift;
  r.high = !apart                              ? (int32_t)count
           : all - first - count < type::IN_16 ? (int32_t)(all - first)
                                               : (int32_t)count + type::IN_16;
  if (!r.wide) r.high = INT32_MIN;
  if (a.totals) {
    acc total = total_of_run<type, op, acc>(r, shift);
    if (lane_id() == 0) ((acc *)a.totals)[unit] = total;
    return;
  }
  if (a.rows > 1) {
    scan_run<type, op, acc, SEVERAL_ROWS>(r, shift, op::none(), scratch);
    return;
  }
  if (a.groups) {
    scan_run<type, op, acc, GROUPS_ROW>(r, shift, op::none(), scratch);
    return;
  }
  acc carry = op::none();
  if (a.carry && segment > 0) {
    const acc *before = (const acc *)a.carry + unit - segment;
#pragma unroll(op::CARRIES_AT_ONCE)
    for (int64_t i = lane_id(); i < segment; i += WAVE_SIZE) carry = op::join(carry, before[i]);
    carry = wave_total<op>(carry);
  }
  scan_run<type, op, acc, ONE_ROW>(r, shift, carry, scratch);
}

template <typename type, typename op, typename acc>
RDNA_DEVICE void scan_any(const scan_args &a, acc *scratch) {
  if (a.inner == 1) {
    const uint32_t teams = a.groups ? 1 : SCAN_THREADS / WAVE_SIZE, team = a.groups ? 0 : wave_id();
    for (uint32_t unit = group_id_x() * teams + team; unit < a.units; unit += group_count_x() * teams) {
      /* from carries on the last ones first, since those were read last and may still be in the cache */
      scan_unit<type, op, acc>(a, a.carry ? a.units - 1 - unit : unit, scratch);
      if (a.groups) group_barrier();
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

/* |groups| at once on a multiprocessor of NVIDIA's */
#define SCAN(op, type, acc, groups)                                                   \
  RDNA_KERNEL_RESIDENT(SCAN_THREADS, groups) scan_##op##_##type(struct scan_args a) { \
    RDNA_SHARED static acc scratch[2 * GROUP_SCRATCH(SCAN_THREADS)];                  \
    scan_any<type, op##_of<acc>, acc>(a, scratch);                                    \
  }
#define SCAN_TYPES(op)      \
  SCAN(op, f32, float, 4)   \
  SCAN(op, f16, float, 4)   \
  SCAN(op, bf16, float, 4)  \
  SCAN(op, f64, double, 4)  \
  SCAN(op, i32, int64_t, 4) \
  SCAN(op, i64, int64_t, 4)
SCAN_TYPES(sum)
SCAN_TYPES(prod)
SCAN_TYPES(max)
SCAN_TYPES(min)
SCAN(logsumexp, f32, float, 3)
SCAN(logsumexp, f16, float, 3)
SCAN(logsumexp, bf16, float, 3)
