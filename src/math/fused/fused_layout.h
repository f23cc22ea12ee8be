/* For the operator and for the makers of cases: how the values are cut among threads. */
#ifndef RDNA_MATH_FUSED_LAYOUT_H
#define RDNA_MATH_FUSED_LAYOUT_H

#include "math/fused/fused_kernels.h"
#include "math/fused/fused_ops.h"

/* In which way chains have an operation. */
#define FUSED_MAP_CHAIN_(NAME, name, types, chain, ...) [RDNA_MAP_##NAME] = FUSED_##chain,
#define FUSED_ZIP_CHAIN_(NAME, name, types, chain, ...) [RDNA_ZIP_##NAME] = FUSED_##chain,
static const uint8_t fused_map_chain[] = {RDNA_POINTWISE_MAPS(FUSED_MAP_CHAIN_, FUSED_MAP_CHAIN_, , )};
static const uint8_t fused_zip_chain[] = {RDNA_POINTWISE_ZIPS(FUSED_ZIP_CHAIN_, FUSED_ZIP_CHAIN_, )};

/* Whether the kernels for few inputs have all steps. */
static inline bool fused_is_quick(const struct fused_args *a) {
  for (uint32_t i = 0; i < a->steps; i++) {
    uint32_t op = a->step[i] & FUSED_OP_MASK;
    uint8_t chain = a->step[i] & FUSED_IS_ZIP ? fused_zip_chain[op] : fused_map_chain[op];
    if (a->step[i] & FUSED_INPUT_FIRST || (chain != FUSED_QUICK && chain != FUSED_FAST)) return false;
  }
  return true;
}

/* What there is, fastest dimension first: rank 1 to FUSED_RANK, nothing empty; operand 0 is the output. |aligned|: bit
 * k says that operand k's pointer is a multiple of 16 bytes. */
typedef struct fused_extent {
  uint32_t rank, aligned;
  int64_t size[FUSED_RANK], stride[FUSED_OPERANDS][FUSED_RANK];
} fused_extent;

/* Whether every operand is read in vectors of |values|, or is the same along the fastest dimension. */
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

/* Fills in all but the operands' pointers and the steps and inputs, which are set; |values| are in 16 bytes. Returns
 * whether the kernel for few inputs takes it. */
static inline bool fused_lay_out(struct fused_args *a, const fused_extent *e, int64_t values) {
  uint32_t vectors;
  bool wide = fused_is_wide(e, a->inputs, values, &vectors), few = wide && a->inputs <= FUSED_FEW && fused_is_quick(a);
  int64_t unit = wide ? values : 1, columns = (e->size[0] + unit - 1) / unit, rows = e->rank > 1 ? e->size[1] : 1;
  a->wide = wide;
  a->vectors = wide ? vectors : 0;
  a->rows = few ? FUSED_ROWS : wide ? 1 : (uint32_t)values;
  a->tail = (uint32_t)(e->size[0] % unit);
  a->units = (uint32_t)(columns * rows);
  bool cut = e->rank == 1 && columns > RDNA__FUSED_THREADS; /* into rows of a group's width */
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
