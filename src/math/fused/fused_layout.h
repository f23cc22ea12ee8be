/* How units are assigned to threads (see fused_kernels.h); for the operator and for the makers of cases. */
#ifndef RDNA_MATH_FUSED_LAYOUT_H
#define RDNA_MATH_FUSED_LAYOUT_H

#include "math/fused/fused_kernels.h"
#include "math/fused/fused_ops.h"

/* For each operation, how chains have it: an enum fused_chain. */
#define FUSED_MAP_CHAIN_(NAME, name, types, chain, ...) [RDNA_MAP_##NAME] = FUSED_##chain,
#define FUSED_ZIP_CHAIN_(NAME, name, types, chain, ...) [RDNA_ZIP_##NAME] = FUSED_##chain,
static const uint8_t fused_map_chain[] = {RDNA_POINTWISE_MAPS(FUSED_MAP_CHAIN_, FUSED_MAP_CHAIN_, , )};
static const uint8_t fused_zip_chain[] = {RDNA_POINTWISE_ZIPS(FUSED_ZIP_CHAIN_, FUSED_ZIP_CHAIN_, )};

/* Whether all steps are quick, and need few slots, so that the kernels for few inputs can run them. */
static inline bool fused_is_quick(const struct fused_args *a) {
  for (uint32_t i = 0; i < a->steps; i++) {
    uint32_t op = a->step[i] & FUSED_OP_MASK;
    if (a->step[i] >> FUSED_INPUT_SHIFT >= FUSED_FEW) return false;
    if (a->step[i] & FUSED_IS_MOVE) continue;
    uint8_t chain = a->step[i] & FUSED_IS_ZIP ? fused_zip_chain[op] : fused_map_chain[op];
    if (a->step[i] & FUSED_INPUT_FIRST || (chain != FUSED_QUICK && chain != FUSED_FAST)) return false;
  }
  return true;
}

/* Sizes, and strides in values of each operand, fastest dimension first; operand 0 is the output. Rank is 1 to
 * FUSED_RANK, and no size is 0. Bit k of |aligned|: operand k's pointer is a multiple of 16 bytes. */
typedef struct fused_extent {
  uint32_t rank, aligned;
  int64_t size[FUSED_RANK], stride[FUSED_OPERANDS][FUSED_RANK];
} fused_extent;

/* Whether every operand can be read in vectors of |values| values, or is broadcast along the fastest dimension.
 * Bit k of |*out_vectors|: operand k is read in vectors. */
static inline bool fused_is_wide(const fused_extent *e, uint32_t inputs, int64_t values, uint32_t *out_vectors) {
  bool wide = e->rank == 1 || e->size[0] % values == 0; /* the only row may end with less than a vector */
  *out_vectors = 0;
  for (uint32_t k = 0; k <= inputs; k++) {
    bool vector = e->stride[k][0] == 1 && (e->aligned >> k & 1);
    for (uint32_t d = 1; d < e->rank; d++) vector = vector && e->stride[k][d] % values == 0;
    if (vector) *out_vectors |= 1u << k;
    wide = wide && (vector || (k > 0 && e->stride[k][0] == 0));
  }
  return wide;
}

/* Fills in |a|, whose operands' pointers, steps and inputs are set already; |values|: in 16 bytes. Returns whether the
 * kernel for few inputs is to run it. */
static inline bool fused_lay_out(struct fused_args *a, const fused_extent *e, int64_t values) {
  uint32_t vectors;
  bool wide = fused_is_wide(e, a->inputs, values, &vectors), few = wide && a->inputs <= FUSED_FEW && fused_is_quick(a);
  int64_t unit = wide ? values : 1, columns = (e->size[0] + unit - 1) / unit, rows = e->rank > 1 ? e->size[1] : 1;
  a->wide = wide;
  a->vectors = wide ? vectors : 0;
  a->rows = few ? FUSED_ROWS : wide ? 1 : (uint32_t)values;
  a->tail = (uint32_t)(e->size[0] % unit);
  a->units = (uint32_t)(columns * rows);
  bool cut = e->rank == 1 && columns > RDNA__FUSED_THREADS; /* one long row becomes rows of a work-group's width */
  if (cut) rows = (columns + RDNA__FUSED_THREADS - 1) / RDNA__FUSED_THREADS, columns = RDNA__FUSED_THREADS;
  struct strided_shape shape = {.rank = e->rank < 2 ? 2 : e->rank};
  strided_set_size(&shape, 0, (uint32_t)columns);
  strided_set_size(&shape, 1, (uint32_t)((rows + a->rows - 1) / a->rows));
  for (uint32_t d = 2; d < e->rank && d < FUSED_RANK; d++) strided_set_size(&shape, d, (uint32_t)e->size[d]);
  a->shape.rank = shape.rank;
  a->shape.count = 1;
  for (uint32_t d = 0; d < shape.rank; d++) {
    a->shape.size[d] = shape.size[d];
    a->shape.magic[d] = shape.magic[d];
    a->shape.shift[d] = shape.shift[d];
    a->shape.count *= shape.size[d];
  }
  for (uint32_t k = 0; k <= a->inputs; k++) {
    for (uint32_t d = 0; d < e->rank; d++) a->operand[k].stride[d] = (int32_t)e->stride[k][d];
    a->operand[k].stride[0] = (int32_t)(e->stride[k][0] * unit);
    if (cut) a->operand[k].stride[1] = (int32_t)(e->stride[k][0] * unit * RDNA__FUSED_THREADS);
  }
  return few;
}

#endif
