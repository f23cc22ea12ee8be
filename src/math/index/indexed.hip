/* See indexed_kernels.h. Memory traffic: each value is read once and written once, and each index of 4 or 8 bytes is
 * read. Neighbours that share an index move together, up to 16 bytes at once. */
#include "kernel/prelude.h"
#include "math/index/indexed_kernels.h"

static constexpr uint32_t each = INDEXED_TILE / INDEXED_THREADS;

RDNA_DEVICE uint32_t value_of(uint32_t j) { return group_id_x() * INDEXED_TILE + j * INDEXED_THREADS + thread_id(); }

RDNA_DEVICE void report(const index_rule &rule, bool outside) {
  if (outside && rule.outside) atomic_or_u32(rule.outside, 1);
}

/* Finds where the thread's values are, at[][0], their indices, at[][1], and their places in the indexed tensor,
 * at[][2]; |inside|: the index lies in its dimension. All offsets first, then all indices: their loads are in flight
 * together. */
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

/* index_rows: contiguous rows need one division for a place rather than one for each dimension, and indexed_get is
 * bound by such instructions. Neighbouring lanes read neighbouring values, so that rows may begin at any alignment. */
template <typename bits>
RDNA_DEVICE void get_rows(const indexed_args &a) {
  constexpr uint32_t of_thread = sizeof(bits) == 16 ? INDEX_ROWS_WIDE : INDEX_ROWS_NARROW;
  const uint32_t size = a.shape.size[0], count = a.shape.count;
  const uint32_t start = group_id_x() * (of_thread * INDEXED_THREADS) + thread_id();
  const bits *from[of_thread];
#pragma unroll
  for (uint32_t j = 0; j < of_thread; j++) {
    const uint32_t i = start + j * INDEXED_THREADS;
    from[j] = nullptr;
    if (i < count) {
      const uint32_t row = (uint32_t)(((uint64_t)a.shape.magic[0] * i) >> a.shape.shift[0]);
      int64_t index;
      bool inside = index_read(&a.rule, a.operand[1].data, row * a.operand[1].stride[1], &index);
      report(a.rule, !inside);
      if (inside) from[j] = (const bits *)a.operand[2].data + index * a.rule.stride + (i - row * size);
    }
  }
  bits v[of_thread];
#pragma unroll
  for (uint32_t j = 0; j < of_thread; j++) v[j] = from[j] ? load_global<bits>(from[j]) : bits{};
#pragma unroll
  for (uint32_t j = 0; j < of_thread; j++) {
    const uint32_t i = start + j * INDEXED_THREADS;
    if (i < count) ((bits *)a.operand[0].data)[i] = v[j];
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
