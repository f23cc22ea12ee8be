/* For operator tests: tensors (n, channels, spatial…), contiguous, channels-last or with gaps, addressed by their
 * coordinates. */
#ifndef RDNA_MATH_COMMON_TEST_VOLUME_H
#define RDNA_MATH_COMMON_TEST_VOLUME_H

#include "math/common/test/operand.h"

enum { CONTIGUOUS, CHANNELS_LAST, GAPS, LAYOUTS };

typedef struct grid {
  operand o;
  int64_t stride[5], size[5]; /* n, channel, z, y, x */
  double *values;             /* read before the operator ran; NULL if not kept */
} grid;

/* Makes a tensor of |dims| spatial dimensions of the sizes |size|, filled with poison. */
static inline grid grid_make(rdna_dtype dtype, int64_t n, int64_t channels, int dims, const int64_t *size, int layout) {
  grid g = {.size = {n, channels, 1, 1, 1}};
  int64_t shape[5] = {n, channels}, stride[5];
  for (int d = 0; d < dims; d++) shape[2 + d] = g.size[5 - dims + d] = size[d];
  int64_t step = layout == CHANNELS_LAST ? channels : 1;
  for (int d = dims + 1; d >= 2; d--) {
    if (layout == GAPS && d == dims + 1) step = 2;
    stride[d] = step, step *= shape[d];
    if (layout == GAPS) step++;
  }
  stride[1] = layout == CHANNELS_LAST ? 1 : step;
  stride[0] = layout == CHANNELS_LAST ? step : step * channels;
  for (int d = 0; d < dims + 2; d++) g.stride[d < 2 ? d : d + 3 - dims] = stride[d];
  g.o = operand_make(dtype, dims + 2, shape, stride, layout == GAPS);
  operand_upload(&g.o);
  return g;
}

static inline int64_t grid_at(const grid *g, int64_t n, int64_t c, int64_t z, int64_t y, int64_t x) {
  return n * g->stride[0] + c * g->stride[1] + z * g->stride[2] + y * g->stride[3] + x * g->stride[4];
}
static inline double grid_get(const grid *g, int64_t n, int64_t c, int64_t z, int64_t y, int64_t x) {
  int64_t i = grid_at(g, n, c, z, y, x);
  return g->values ? g->values[i] : operand_get(&g->o, i);
}

static inline void grid_keep(grid *g) {
  free(g->values);
  g->values = malloc((size_t)(operand_span(&g->o) + 1) * sizeof *g->values);
  assert_non_null(g->values);
  for (int64_t i = 0; i < operand_span(&g->o); i++) g->values[i] = operand_get(&g->o, i);
}
static inline void grid_fill(grid *g) {
  operand_fill(&g->o, 1);
  grid_keep(g);
}
static inline void grid_free(grid *g) {
  operand_free(&g->o);
  free(g->values);
}

/* Visits the coordinates of a grid in the order of its dimensions. */
#define GRID_EACH(g, n, c, z, y, x)                \
  for (int64_t n = 0; n < (g)->size[0]; n++)       \
    for (int64_t c = 0; c < (g)->size[1]; c++)     \
      for (int64_t z = 0; z < (g)->size[2]; z++)   \
        for (int64_t y = 0; y < (g)->size[3]; y++) \
          for (int64_t x = 0; x < (g)->size[4]; x++)

/* Fails if anything between the tensor's values was written. */
static inline void grid_check_gaps(const grid *g) {
  char *ours = calloc((size_t)operand_span(&g->o) + 1, 1);
  assert_non_null(ours);
  GRID_EACH(g, n, c, z, y, x) ours[grid_at(g, n, c, z, y, x)] = 1;
  for (int64_t i = 0; i < operand_span(&g->o); i++) assert_true(ours[i] || operand_is_poison(&g->o, i));
  free(ours);
}

#endif
