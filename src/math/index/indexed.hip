/* Values at places that indices say: each value is read and written once, with its index of 4 or 8 bytes; neighbours
 * that share an index move as up to 16 bytes. */
#include "kernel/prelude.h"
#include "math/index/indexed_kernels.h"

static constexpr uint32_t each = INDEXED_TILE / INDEXED_THREADS;

RDNA_DEVICE uint32_t value_of(uint32_t j) { return group_id_x() * INDEXED_TILE + j * INDEXED_THREADS + thread_id(); }

RDNA_DEVICE void report(const index_rule &rule, bool outside) {
  if (outside && rule.outside) atomic_or_u32(rule.outside, 1);
}

/* Where the thread's values are, and whether their indices are inside. */
RDNA_DEVICE void places_of(const indexed_args &a, int64_t at[each][3], bool *inside) {
#pragma unroll
  for (uint32_t j = 0; j < each; j++) {
    inside[j] = false;
    if (value_of(j) < a.shape.count) strided_offsets(&a.shape, a.operand, 3, value_of(j), at[j]);
  }
#pragma unroll
  for (uint32_t j = 0; j < each; j++) {
    if (value_of(j) < a.shape.count) {
      int64_t index;
      inside[j] = index_read(&a.rule, a.operand[1].data, at[j][1], &index);
      if (inside[j]) at[j][2] += index * a.rule.stride;
      report(a.rule, !inside[j]);
    }
  }
}

template <typename bits>
RDNA_DEVICE void get(const indexed_args &a) {
  int64_t at[each][3];
  bool inside[each];
  bits v[each];
  places_of(a, at, inside);
#pragma unroll
  for (uint32_t j = 0; j < each; j++) {
    v[j] = 0;
    if (inside[j]) v[j] = ((const bits *)a.operand[2].data)[at[j][2]];
  }
#pragma unroll
  for (uint32_t j = 0; j < each; j++) {
    if (value_of(j) < a.shape.count) ((bits *)a.operand[0].data)[at[j][0]] = v[j];
  }
}

template <typename bits>
RDNA_DEVICE void put(const indexed_args &a) {
  int64_t at[each][3];
  bool inside[each];
  bits v[each];
  places_of(a, at, inside);
#pragma unroll
  for (uint32_t j = 0; j < each; j++) {
    __builtin_memcpy(&v[j], a.value, sizeof v[j]);
    if (inside[j] && !a.fill) v[j] = ((const bits *)a.operand[0].data)[at[j][0]];
  }
#pragma unroll
  for (uint32_t j = 0; j < each; j++) {
    if (inside[j]) ((bits *)a.operand[2].data)[at[j][2]] = v[j];
  }
}

RDNA_KERNEL(INDEXED_THREADS) index_offset(struct index_offset_args a) {
#pragma unroll
  for (uint32_t j = 0; j < each; j++) {
    if (value_of(j) < a.shape.count) {
      int64_t at[3], index;
      strided_offsets(&a.shape, a.operand, 3, value_of(j), at);
      bool inside = index_read(&a.rule, a.operand[1].data, at[1], &index);
      report(a.rule, !inside);
      int64_t before = 0, offset = at[2] + (inside ? index : 0) * a.rule.stride + a.bias;
      if (a.add && a.narrow) before = ((const uint32_t *)a.operand[0].data)[at[0]];
      if (a.add && !a.narrow) before = ((const int64_t *)a.operand[0].data)[at[0]];
      if (!inside || index == a.skipped || (a.add && before == a.absent)) {
        offset = a.absent;
      } else {
        offset += before;
      }
      if (a.narrow) {
        ((uint32_t *)a.operand[0].data)[at[0]] = (uint32_t)offset;
      } else {
        ((int64_t *)a.operand[0].data)[at[0]] = offset;
      }
    }
  }
}

/* The 32 bits from bit |by|, below 32, on of |low| and |high|. */
RDNA_DEVICE uint32_t funnel(uint32_t low, uint32_t high, uint32_t by) {
  return (uint32_t)(((uint64_t)high << 32 | low) >> by);
}

/* 16 bytes at any place that values of |unit| bytes have: those from |shift| on of the one or two aligned pieces that
 * they lie in. */
template <uint32_t unit>
struct unaligned_16 {
  uint4 low, high;
  /* Nothing of what lies outside of [begin, end) is read; whether nothing would be. */
  RDNA_DEVICE bool load(unaligned_16 &v, const char *p, const char *begin, const char *end) {
    uint32_t shift = (uint32_t)(uintptr_t)p & 15;
    const char *from = p - shift;
    v.low = v.high = uint4{0, 0, 0, 0};
    if (!p) return true;
    if (unit < 16 && (from < begin || from + (shift ? 32 : 16) > end)) return false;
    v.low = load_as<uint4>(from);
    if (unit < 16 && shift) v.high = load_as<uint4>(from + 16);
    return true;
  }
  RDNA_DEVICE uint4 value(const unaligned_16 &v, const char *p) {
    if constexpr (unit == 16) return v.low;
    const uint32_t shift = (uint32_t)(uintptr_t)p & 15;
    const bool by_8 = shift & 8, by_4 = shift & 4;
    /* by name: of an array, choices would become addresses of local memory */
    uint32_t a0 = by_8 ? v.low.z : v.low.x, a1 = by_8 ? v.low.w : v.low.y, a2 = by_8 ? v.high.x : v.low.z;
    uint32_t a3 = by_8 ? v.high.y : v.low.w, a4 = by_8 ? v.high.z : v.high.x, a5 = by_8 ? v.high.w : v.high.y;
    uint32_t b0 = by_4 ? a1 : a0, b1 = by_4 ? a2 : a1, b2 = by_4 ? a3 : a2, b3 = by_4 ? a4 : a3, b4 = by_4 ? a5 : a4;
    if constexpr (unit >= 4) return uint4{b0, b1, b2, b3};
    const uint32_t bits = shift * 8 & 31;
    return uint4{funnel(b0, b1, bits), funnel(b1, b2, bits), funnel(b2, b3, bits), funnel(b3, b4, bits)};
  }
};

/* The first |bytes| bytes of |a|, and the others of |b|. */
RDNA_DEVICE uint4 joined(uint4 a, uint4 b, int32_t bytes) {
  uint4 v;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    int32_t left = bytes - 4 * i;
    uint32_t mask = left >= 4 ? ~0u : left <= 0 ? 0 : (1u << (left * 8)) - 1;
    v[i] = (a[i] & mask) | (b[i] & ~mask);
  }
  return v;
}

/* Dense rows of values, which are written as they lie, 16 aligned bytes at a time, from rows at any alignment. Each 16
 * bytes are of one row or of two. */
template <typename bits>
RDNA_DEVICE void get_rows(const indexed_args &a) {
  constexpr uint32_t unit = sizeof(bits), per = 16 / unit, tile = INDEX_ROWS_EACH * INDEXED_THREADS;
  const uint32_t size = a.shape.size[0], count = a.shape.count;
  const uint64_t row_bytes = (uint64_t)a.rule.stride * unit;
  char *const out = (char *)a.operand[0].data;
  const char *const table = (const char *)a.operand[2].data;
  const char *const end = table + (uint64_t)(a.rule.size - 1) * row_bytes + (uint64_t)size * unit;
  const int32_t skew = unit < 16 ? (int32_t)(((uint32_t)(uintptr_t)out & 15) / unit) : 0;
  const int32_t start = (int32_t)((group_id_x() * tile + thread_id()) * per) - skew;
  auto row_of = [&]
      __attribute__((device)) (uint32_t i) { return (uint32_t)(((uint64_t)a.shape.magic[0] * i) >> a.shape.shift[0]); };
  auto find = [&] __attribute__((device)) (uint32_t row) {
    int64_t index;
    bool inside = index_read(&a.rule, a.operand[1].data, row * a.operand[1].stride[1], &index);
    report(a.rule, !inside);
    return inside ? table + (uint64_t)index * row_bytes : nullptr;
  };
  const char *first[INDEX_ROWS_EACH], *second[INDEX_ROWS_EACH]; /* where the values would begin in each of the rows */
  int32_t own[INDEX_ROWS_EACH];                                 /* values of the first row */
  uint32_t whole = 0;                                           /* bit j: both rows can be read so */
#pragma unroll
  for (uint32_t j = 0; j < INDEX_ROWS_EACH; j++) {
    int32_t i = start + (int32_t)(j * INDEXED_THREADS * per);
    first[j] = second[j] = nullptr, own[j] = per;
    if (i < 0 || (uint32_t)i + per > count) continue;
    whole |= 1u << j;
    uint32_t row = row_of((uint32_t)i), col = (uint32_t)i - row * size;
    if (size - col < per) own[j] = (int32_t)(size - col);
    first[j] = find(row);
    if (first[j]) first[j] += (uint64_t)col * unit;
    if (unit < 16 && own[j] < (int32_t)per) {
      second[j] = find(row + 1);
      if (second[j]) second[j] -= own[j] * (int32_t)unit;
    }
  }
  unaligned_16<unit> a_bits[INDEX_ROWS_EACH], b_bits[INDEX_ROWS_EACH];
#pragma unroll
  for (uint32_t j = 0; j < INDEX_ROWS_EACH; j++) {
    bool can = unaligned_16<unit>::load(a_bits[j], first[j], table, end);
    if (unit < 16) can = unaligned_16<unit>::load(b_bits[j], second[j], table, end) && can;
    if (!can) whole &= ~(1u << j);
  }
#pragma unroll
  for (uint32_t j = 0; j < INDEX_ROWS_EACH; j++) {
    int64_t i = start + (int32_t)(j * INDEXED_THREADS * per);
    if (!(whole >> j & 1)) continue;
    uint4 v = unaligned_16<unit>::value(a_bits[j], first[j]);
    if (unit < 16 && own[j] < (int32_t)per) {
      v = joined(v, unaligned_16<unit>::value(b_bits[j], second[j]), own[j] * (int32_t)unit);
    }
    store_as<uint4>(out + i * unit, v);
  }
  if constexpr (unit < 16) { /* at the ends of values, and of the table */
#pragma nounroll
    for (uint32_t j = 0; j < INDEX_ROWS_EACH; j++) {
      if (whole >> j & 1) continue;
      int32_t i = start + (int32_t)(j * INDEXED_THREADS * per);
#pragma nounroll
      for (int32_t k = i < 0 ? 0 : i; k < i + (int32_t)per && (uint32_t)k < count; k++) {
        uint32_t row = row_of((uint32_t)k);
        const char *p = find(row);
        ((bits *)out)[k] = p ? ((const bits *)p)[(uint32_t)k - row * size] : (bits)0;
      }
    }
  }
}

#define MOVERS(size, bits)                                                                 \
  RDNA_KERNEL(INDEXED_THREADS) indexed_get_##size(struct indexed_args a) { get<bits>(a); } \
  RDNA_KERNEL(INDEXED_THREADS) indexed_put_##size(struct indexed_args a) { put<bits>(a); }
MOVERS(8, uint8_t)
MOVERS(16, uint16_t)
MOVERS(32, uint32_t)
MOVERS(64, uint64_t)
MOVERS(128, uint4)

#define ROWS(size, bits) \
  RDNA_KERNEL(INDEXED_THREADS) index_rows_##size(struct indexed_args a) { get_rows<bits>(a); }
ROWS(16, uint16_t)
ROWS(32, uint32_t)
ROWS(64, uint64_t)
ROWS(128, uint4)
