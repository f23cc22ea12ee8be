/* The walk of one thread over its chunk (segment_kernels.h): the same code on the device and on the host, for each
 * type. The includer defines RDNA_SCALAR functions LOAD(p, i) and STORE(p, i, v) before it invokes SEGMENT_WALK. */
#ifndef RDNA_MATH_SEGMENT_WALK_H
#define RDNA_MATH_SEGMENT_WALK_H

#include "kernel/scalar.h"
#include "math/index/segment_kernels.h"

#define SEGMENT_JOIN(kept, join)                       \
  RDNA_SCALAR kept join(uint32_t op, kept a, kept b) { \
    switch (op) {                                      \
      case SEGMENT_PROD:                               \
        return a * b;                                  \
      case SEGMENT_MIN:                                \
        return a < b || a != a ? a : b;                \
      case SEGMENT_MAX:                                \
        return a > b || a != a ? a : b;                \
      case SEGMENT_LAST:                               \
        return b;                                      \
      default:                                         \
        return a + b;                                  \
    }                                                  \
  }
SEGMENT_JOIN(float, segment_join_float)
SEGMENT_JOIN(double, segment_join_double)
SEGMENT_JOIN(uint64_t, segment_join_unsigned)
RDNA_SCALAR int64_t segment_join_int64_t(uint32_t op, int64_t a, int64_t b) {
  if (op == SEGMENT_MIN) return a < b ? a : b;
  if (op == SEGMENT_MAX) return a > b ? a : b;
  return (int64_t)segment_join_unsigned(op, (uint64_t)a, (uint64_t)b); /* wraps modulo 2^64 */
}
RDNA_SCALAR float segment_mean_float(float v, uint32_t count) { return v / (float)count; }
RDNA_SCALAR double segment_mean_double(double v, uint32_t count) { return v / (double)count; }
RDNA_SCALAR int64_t segment_mean_int64_t(int64_t v, uint32_t count) {
  int64_t n = count, quotient = v / n;
  return quotient - (v % n < 0);
}

/* name##_walk(a, unit): |unit| is chunk * columns + column. |kept| is the accumulator's type. SEGMENT_AHEAD rows are in
 * flight ahead of the one that is combined. from_before: the run at hand began before the chunk; goes_on: it continues
 * after it. */
enum { SEGMENT_AHEAD = 4 };
#ifdef __clang__
#define SEGMENT_UNROLL _Pragma("unroll")
#else
#define SEGMENT_UNROLL
#endif

#define SEGMENT_WALK(name, kept, LOAD, STORE)                                                                       \
  struct name##_row {                                                                                               \
    uint32_t key;                                                                                                   \
    uint32_t count;                                                                                                 \
    kept v;                                                                                                         \
  };                                                                                                                \
  RDNA_SCALAR struct name##_row name##_load(const struct segment_args *a, uint32_t i, uint32_t end, int64_t column, \
                                            int64_t columns, int64_t src_column) {                                  \
    struct name##_row row = {a->rows, 0, 0};                                                                        \
    if (i < end) row.key = a->keys[i];                                                                              \
    if (row.key >= a->rows) return row;                                                                             \
    if (a->places) {                                                                                                \
      row.count = 1;                                                                                                \
      row.v = LOAD(a->src, src_column + (int64_t)a->places[i] * a->inner);                                          \
    } else {                                                                                                        \
      row.count = a->counts[i];                                                                                     \
      row.v = ((const kept *)a->src)[(int64_t)i * columns + column];                                                \
    }                                                                                                               \
    return row;                                                                                                     \
  }                                                                                                                 \
  RDNA_SCALAR void name##_walk(const struct segment_args *a, int64_t unit) {                                        \
    int64_t columns = a->outer * a->inner, column = unit % columns;                                                 \
    uint32_t chunk = (uint32_t)(unit / columns);                                                                    \
    uint32_t begin = chunk * SEGMENT_CHUNK, end = begin + SEGMENT_CHUNK < a->n ? begin + SEGMENT_CHUNK : a->n;      \
    int64_t outer = column / a->inner, inner = column - outer * a->inner;                                           \
    int64_t src_column = outer * a->src_rows * a->inner + inner,                                                    \
            dst_column = outer * (int64_t)a->rows * a->inner + inner;                                               \
    struct name##_row next[SEGMENT_AHEAD];                                                                          \
    SEGMENT_UNROLL                                                                                                  \
    for (int j = 0; j < SEGMENT_AHEAD; j++) next[j] = name##_load(a, begin + j, end, column, columns, src_column);  \
    uint32_t key = next[0].key;                                                                                     \
    bool from_before = begin > 0 && key < a->rows && a->keys[begin - 1] == key, head = false, tail = false;         \
    bool ends_open = end < a->n;                                                                                    \
    uint32_t key_after = ends_open ? a->keys[end] : a->rows;                                                        \
    kept v = 0;                                                                                                     \
    uint32_t count = 0;                                                                                             \
    for (uint32_t i = begin; i <= end; i++) {                                                                       \
      struct name##_row row = next[0];                                                                              \
      SEGMENT_UNROLL                                                                                                \
      for (int j = 0; j + 1 < SEGMENT_AHEAD; j++) next[j] = next[j + 1];                                            \
      next[SEGMENT_AHEAD - 1] = name##_load(a, i + SEGMENT_AHEAD, end, column, columns, src_column);                \
      if (row.key != key) { /* the run is over; past the last row, row.key is a->rows */                            \
        bool goes_on = i == end && key_after == key;                                                                \
        if (key < a->rows && !from_before && !goes_on) {                                                            \
          int64_t at = dst_column + key * a->inner;                                                                 \
          if (a->include_self) v = segment_join_##kept(a->op, LOAD(a->dst, at), v);                                 \
          if (a->op == SEGMENT_MEAN) v = segment_mean_##kept(v, count + (a->include_self != 0));                    \
          STORE(a->dst, at, v);                                                                                     \
        } else if (key < a->rows) {                                                                                 \
          uint32_t part = 2 * chunk + !from_before;                                                                 \
          ((kept *)a->part_values)[(int64_t)part * columns + column] = v;                                           \
          if (column == 0) a->part_counts[part] = count, a->part_keys[part] = key;                                  \
          head = head || from_before, tail = goes_on;                                                               \
          if (from_before && goes_on) { /* one run fills the chunk: a link with no rows */                          \
            ((kept *)a->part_values)[(int64_t)(part + 1) * columns + column] = 0;                                   \
            if (column == 0) a->part_counts[part + 1] = 0, a->part_keys[part + 1] = key;                            \
          }                                                                                                         \
        }                                                                                                           \
        key = row.key, count = 0, from_before = false;                                                              \
      }                                                                                                             \
      if (row.count > 0) v = count > 0 ? segment_join_##kept(a->op, v, row.v) : row.v;                              \
      count += row.count;                                                                                           \
    }                                                                                                               \
    if (a->part_keys && column == 0) {                                                                              \
      if (!head) a->part_keys[2 * chunk] = a->rows;                                                                 \
      if (!tail) a->part_keys[2 * chunk + 1] = a->rows;                                                             \
    }                                                                                                               \
  }

#endif
