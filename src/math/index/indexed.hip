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

/* 16 bytes from |p| on, out of the one or two aligned pieces that they lie in; |bits| are whole. */
template <typename bits>
RDNA_DEVICE uint4 shifted(uint4 low, uint4 high, uint32_t shift) {
  uint32_t w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
  for (int i = 0; i < 6; i++) w[i] = shift & 8 ? w[i + 2] : w[i];
#pragma unroll
  for (int i = 0; i < 5; i++) w[i] = shift & 4 ? w[i + 1] : w[i];
  if constexpr (sizeof(bits) < 4) {
#pragma unroll
    for (int i = 0; i < 4; i++) w[i] = (uint32_t)(((uint64_t)w[i + 1] << 32 | w[i]) >> (shift * 8 & 31));
  }
  return uint4{w[0], w[1], w[2], w[3]};
}

/* Dense rows of values, which are written as they lie, 16 aligned bytes at a time, from rows at any alignment. */
template <typename bits>
RDNA_DEVICE void get_rows(const indexed_args &a) {
  constexpr uint32_t unit = sizeof(bits), per = 16 / unit, tile = INDEX_ROWS_EACH * INDEXED_THREADS;
  const uint32_t size = a.shape.size[0], count = a.shape.count;
  const uint64_t row_bytes = (uint64_t)a.rule.stride * unit;
  char *const out = (char *)a.operand[0].data;
  const char *const table = (const char *)a.operand[2].data;
  const char *const end = table + (uint64_t)(a.rule.size - 1) * row_bytes + (uint64_t)size * unit;
  const int32_t skew = unit < 16 ? (int32_t)(((uint64_t)(uintptr_t)out & 15) / unit) : 0;
  const int32_t start = (int32_t)((group_id_x() * tile + thread_id()) * per) - skew;
  const char *from[INDEX_ROWS_EACH];
  bool whole[INDEX_ROWS_EACH];
  uint4 low[INDEX_ROWS_EACH], high[INDEX_ROWS_EACH];
  auto row_of = [&]
      __attribute__((device)) (uint32_t i) { return (uint32_t)(((uint64_t)a.shape.magic[0] * i) >> a.shape.shift[0]); };
  auto find = [&] __attribute__((device)) (uint32_t row, const char **out_from) {
    int64_t index;
    bool inside = index_read(&a.rule, a.operand[1].data, row * a.operand[1].stride[1], &index);
    report(a.rule, !inside);
    *out_from = inside ? table + (uint64_t)index * row_bytes : nullptr;
  };
#pragma unroll
  for (uint32_t j = 0; j < INDEX_ROWS_EACH; j++) {
    int32_t i = start + (int32_t)(j * INDEXED_THREADS * per);
    uint32_t row = row_of(i < 0 ? 0 : (uint32_t)i), col = (uint32_t)i - row * size;
    whole[j] = i >= 0 && (uint32_t)i + per <= count && col + per <= size;
    from[j] = nullptr;
    if (whole[j]) find(row, &from[j]);
    if (from[j]) from[j] += (uint64_t)col * unit;
  }
#pragma unroll
  for (uint32_t j = 0; j < INDEX_ROWS_EACH; j++) {
    uint32_t shift = unit < 16 ? (uint32_t)(uintptr_t)from[j] & 15 : 0;
    const char *p = from[j] - shift;
    low[j] = high[j] = uint4{0, 0, 0, 0};
    if (from[j] && unit < 16 && (p < table || p + (shift ? 32 : 16) > end)) whole[j] = false;
    if (from[j] && whole[j]) {
      low[j] = load_as<uint4>(p);
      if (shift) high[j] = load_as<uint4>(p + 16);
    }
  }
#pragma unroll
  for (uint32_t j = 0; j < INDEX_ROWS_EACH; j++) {
    int64_t i = start + (int32_t)(j * INDEXED_THREADS * per);
    uint32_t shift = unit < 16 ? (uint32_t)(uintptr_t)from[j] & 15 : 0;
    if (whole[j]) store_as<uint4>(out + i * unit, unit < 16 ? shifted<bits>(low[j], high[j], shift) : low[j]);
  }
  if constexpr (unit < 16) { /* at the ends, and where two rows meet */
#pragma nounroll
    for (uint32_t j = 0; j < INDEX_ROWS_EACH; j++) {
      int32_t i = start + (int32_t)(j * INDEXED_THREADS * per);
      bits v[per];
      bool done = whole[0];
#pragma unroll
      for (uint32_t k = 1; k < INDEX_ROWS_EACH; k++) done = j == k ? whole[k] : done;
      if (done) continue;
#pragma unroll
      for (int32_t k = 0; k < (int32_t)per; k++) {
        if (i + k < 0 || (uint32_t)(i + k) >= count) continue;
        uint32_t row = row_of((uint32_t)(i + k));
        const char *p;
        find(row, &p);
        v[k] = p ? ((const bits *)p)[(uint32_t)(i + k) - row * size] : (bits)0;
      }
#pragma unroll
      for (int32_t k = 0; k < (int32_t)per; k++) {
        if (i + k >= 0 && (uint32_t)(i + k) < count) ((bits *)out)[i + k] = v[k];
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
