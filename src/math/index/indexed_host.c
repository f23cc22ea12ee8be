/* Host twins of indexed_kernels.h. */
#include "kernel/host.h"
#include "math/index/indexed_kernels.h"

enum { GRAIN = 8192 };

typedef struct bits128 {
  uint64_t word[2];
} bits128;

static void report(const struct index_rule *rule) {
  if (rule->outside) __atomic_fetch_or(rule->outside, 1, __ATOMIC_RELAXED);
}

#define MOVERS(size, bits)                                                      \
  static void get_##size##_piece(void *context, int64_t begin, int64_t end) {   \
    const struct indexed_args *a = context;                                     \
    for (int64_t i = begin; i < end; i++) {                                     \
      int64_t at[3], index;                                                     \
      strided_offsets(&a->shape, a->operand, 3, (uint32_t)i, at);               \
      bits v = {0};                                                             \
      if (index_read(&a->rule, a->operand[1].data, at[1], &index)) {            \
        v = ((const bits *)a->operand[2].data)[at[2] + index * a->rule.stride]; \
      } else {                                                                  \
        report(&a->rule);                                                       \
      }                                                                         \
      ((bits *)a->operand[0].data)[at[0]] = v;                                  \
    }                                                                           \
  }                                                                             \
  void RDNA_HOST_KERNEL(indexed_get_##size)(const void *args, rdna_grid grid) { \
    struct indexed_args a = *(const struct indexed_args *)args;                 \
    rdna__parallel_for(a.shape.count, GRAIN, get_##size##_piece, &a);           \
  }                                                                             \
  static void put_##size##_piece(void *context, int64_t begin, int64_t end) {   \
    const struct indexed_args *a = context;                                     \
    for (int64_t i = begin; i < end; i++) {                                     \
      int64_t at[3], index;                                                     \
      strided_offsets(&a->shape, a->operand, 3, (uint32_t)i, at);               \
      if (!index_read(&a->rule, a->operand[1].data, at[1], &index)) {           \
        report(&a->rule);                                                       \
        continue;                                                               \
      }                                                                         \
      bits v;                                                                   \
      __builtin_memcpy(&v, a->value, sizeof v);                                 \
      if (!a->fill) v = ((const bits *)a->operand[0].data)[at[0]];              \
      ((bits *)a->operand[2].data)[at[2] + index * a->rule.stride] = v;         \
    }                                                                           \
  }                                                                             \
  void RDNA_HOST_KERNEL(indexed_put_##size)(const void *args, rdna_grid grid) { \
    struct indexed_args a = *(const struct indexed_args *)args;                 \
    rdna__parallel_for(a.shape.count, GRAIN, put_##size##_piece, &a);           \
  }
MOVERS(8, uint8_t)
MOVERS(16, uint16_t)
MOVERS(32, uint32_t)
MOVERS(64, uint64_t)
MOVERS(128, bits128)

#define ROWS(size)                                                             \
  void RDNA_HOST_KERNEL(index_rows_##size)(const void *args, rdna_grid grid) { \
    RDNA_HOST_KERNEL(indexed_get_##size)(args, grid);                          \
  }
ROWS(16)
ROWS(32)
ROWS(64)
ROWS(128)

static void offset_piece(void *context, int64_t begin, int64_t end) {
  const struct index_offset_args *a = context;
  for (int64_t i = begin; i < end; i++) {
    int64_t at[3], index, before = 0, offset = a->absent;
    strided_offsets(&a->shape, a->operand, 3, (uint32_t)i, at);
    bool inside = index_read(&a->rule, a->operand[1].data, at[1], &index);
    if (!inside) report(&a->rule);
    if (a->add && a->narrow) before = ((const uint32_t *)a->operand[0].data)[at[0]];
    if (a->add && !a->narrow) before = ((const int64_t *)a->operand[0].data)[at[0]];
    if (inside && index != a->skipped && !(a->add && before == a->absent))
      offset = at[2] + index * a->rule.stride + a->bias + before;
    if (a->narrow) {
      ((uint32_t *)a->operand[0].data)[at[0]] = (uint32_t)offset;
    } else {
      ((int64_t *)a->operand[0].data)[at[0]] = offset;
    }
  }
}

void RDNA_HOST_KERNEL(index_offset)(const void *args, rdna_grid grid) {
  struct index_offset_args a = *(const struct index_offset_args *)args;
  rdna__parallel_for(a.shape.count, GRAIN, offset_piece, &a);
}
