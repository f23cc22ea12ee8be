/* Moving values: runs along the fastest dimension. A transposition goes through square blocks that stay in the
 * first-level cache. */
#include "kernel/host.h"
#include "math/movement/movement_convert.h"
#include "math/movement/movement_kernels.h"

enum { GRAIN = 16384, BLOCK = 32 };

typedef struct bits128 {
  uint64_t word[2];
} bits128;

/* How many values from |begin| on lie in one row. */
static int64_t run_of(const struct strided_shape *shape, int64_t begin, int64_t end) {
  int64_t left = shape->size[0] - (uint32_t)begin % shape->size[0];
  return left < end - begin ? left : end - begin;
}

#define COPY(wide, bits)                                                            \
  static void copy_##wide##_piece(void *context, int64_t begin, int64_t end) {      \
    const struct move_args *a = context;                                            \
    int64_t to_step = a->operand[0].stride[0], from_step = a->operand[1].stride[0]; \
    for (int64_t n; begin < end; begin += n) {                                      \
      int64_t at[2];                                                                \
      n = run_of(&a->shape, begin, end);                                            \
      strided_offsets(&a->shape, a->operand, 2, (uint32_t)begin, at);               \
      bits *to = (bits *)a->operand[0].data + at[0];                                \
      const bits *from = (const bits *)a->operand[1].data + at[1];                  \
      if (to_step == 1 && from_step == 1) {                                         \
        __builtin_memcpy(to, from, (size_t)n * sizeof *to);                         \
      } else {                                                                      \
        for (int64_t i = 0; i < n; i++) to[i * to_step] = from[i * from_step];      \
      }                                                                             \
    }                                                                               \
  }                                                                                 \
  void RDNA_HOST_KERNEL(copy_strided_##wide)(const void *args, rdna_grid grid) {    \
    struct move_args a = *(const struct move_args *)args;                           \
    rdna__parallel_for(a.shape.count, GRAIN, copy_##wide##_piece, &a);              \
  }                                                                                 \
  static void set_##wide##_piece(void *context, int64_t begin, int64_t end) {       \
    const struct set_args *a = context;                                             \
    bits value;                                                                     \
    __builtin_memcpy(&value, a->value, sizeof value);                               \
    for (int64_t n; begin < end; begin += n) {                                      \
      int64_t at;                                                                   \
      n = run_of(&a->shape, begin, end);                                            \
      strided_offsets(&a->shape, a->operand, 1, (uint32_t)begin, &at);              \
      bits *to = (bits *)a->operand[0].data + at;                                   \
      for (int64_t i = 0; i < n; i++) to[i * a->operand[0].stride[0]] = value;      \
    }                                                                               \
  }                                                                                 \
  void RDNA_HOST_KERNEL(set_strided_##wide)(const void *args, rdna_grid grid) {     \
    struct set_args a = *(const struct set_args *)args;                             \
    rdna__parallel_for(a.shape.count, GRAIN, set_##wide##_piece, &a);               \
  }
COPY(8, uint8_t)
COPY(16, uint16_t)
COPY(32, uint32_t)
COPY(64, uint64_t)
COPY(128, bits128)

static void lines_piece(void *context, int64_t begin, int64_t end) {
  const struct lines_args *a = context;
  for (int64_t n; begin < end; begin += n) {
    int64_t at[2];
    n = run_of(&a->shape, begin, end);
    strided_offsets(&a->shape, a->operand, 2, (uint32_t)begin, at);
    char *to = (char *)a->operand[0].data + at[0];
    int64_t first = (uint32_t)begin % a->shape.size[0] * 16 - (int64_t)((uintptr_t)to % 16), last = first + 16 * n;
    if (first < 0) first = 0;
    if (last > a->bytes) last = a->bytes;
    if (first < last)
      __builtin_memcpy(to + first, (const char *)a->operand[1].data + at[1] + first, (size_t)(last - first));
  }
}
void RDNA_HOST_KERNEL(copy_lines)(const void *args, rdna_grid grid) {
  struct lines_args a = *(const struct lines_args *)args;
  rdna__parallel_for(a.shape.count, GRAIN / 16, lines_piece, &a);
}

static void convert_piece(void *context, int64_t begin, int64_t end) {
  const struct move_args *a = context;
  for (int64_t n; begin < end; begin += n) {
    int64_t at[2];
    n = run_of(&a->shape, begin, end);
    strided_offsets(&a->shape, a->operand, 2, (uint32_t)begin, at);
    for (int64_t i = 0; i < n; i++) {
      movement_convert(a->from, a->to, a->operand[1].data, at[1] + i * a->operand[1].stride[0], a->operand[0].data,
                       at[0] + i * a->operand[0].stride[0]);
    }
  }
}
void RDNA_HOST_KERNEL(convert_strided)(const void *args, rdna_grid grid) {
  struct move_args a = *(const struct move_args *)args;
  rdna__parallel_for(a.shape.count, GRAIN, convert_piece, &a);
}

static void arange_piece(void *context, int64_t begin, int64_t end) {
  const struct set_args *a = context;
  for (int64_t i = begin; i < end; i++) {
    int64_t at = i * a->operand[0].stride[0];
    if (!dtype_is_integer((rdna_dtype)a->dtype)) {
      movement_store_real(a->dtype, a->operand[0].data, at, __builtin_fma((double)i, a->step.real, a->start.real));
    } else {
      uint64_t v = (uint64_t)a->start.integer + (uint64_t)i * (uint64_t)a->step.integer;
      movement_store_integer(a->dtype, a->operand[0].data, at, (int64_t)v);
    }
  }
}
void RDNA_HOST_KERNEL(arange)(const void *args, rdna_grid grid) {
  struct set_args a = *(const struct set_args *)args;
  rdna__parallel_for(a.shape.count, GRAIN, arange_piece, &a);
}

#define PAD_AND_TRIANGLE(wide, bits)                                                                  \
  static void pad_##wide##_piece(void *context, int64_t begin, int64_t end) {                         \
    const struct pad_args *a = context;                                                               \
    for (int64_t i = begin; i < end; i++) {                                                           \
      uint32_t rest = (uint32_t)i;                                                                    \
      int64_t to = 0, from = 0;                                                                       \
      for (uint32_t d = 0; d < a->shape.rank; d++) movement_pad_step(a, d, &rest, &to, &from);        \
      ((bits *)a->operand[0].data)[to] =                                                              \
          from == INT64_MIN ? (bits)a->value : ((const bits *)a->operand[1].data)[from];              \
    }                                                                                                 \
  }                                                                                                   \
  void RDNA_HOST_KERNEL(pad_strided_##wide)(const void *args, rdna_grid grid) {                       \
    struct pad_args a = *(const struct pad_args *)args;                                               \
    rdna__parallel_for(a.shape.count, GRAIN, pad_##wide##_piece, &a);                                 \
  }                                                                                                   \
  static void triangle_##wide##_piece(void *context, int64_t begin, int64_t end) {                    \
    const struct triangle_args *a = context;                                                          \
    for (int64_t i = begin; i < end; i++) {                                                           \
      int64_t at[2], columns = a->shape.size[0], over = i % columns - i / columns % a->shape.size[1]; \
      strided_offsets(&a->shape, a->operand, 2, (uint32_t)i, at);                                     \
      bool kept = a->upper ? over >= a->diagonal : over <= a->diagonal;                               \
      ((bits *)a->operand[0].data)[at[0]] = kept ? ((const bits *)a->operand[1].data)[at[1]] : 0;     \
    }                                                                                                 \
  }                                                                                                   \
  void RDNA_HOST_KERNEL(triangle_strided_##wide)(const void *args, rdna_grid grid) {                  \
    struct triangle_args a = *(const struct triangle_args *)args;                                     \
    rdna__parallel_for(a.shape.count, GRAIN, triangle_##wide##_piece, &a);                            \
  }

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* One tile of the grid at a time. */
#define TRANSPOSE(wide, bits)                                                        \
  static void transpose_##wide##_piece(void *context, int64_t begin, int64_t end) {  \
    const struct transpose_args *a = context;                                        \
    int64_t tile_columns = RDNA__TRANSPOSE_BYTES / (int64_t)sizeof(bits);            \
    for (int64_t tile = begin; tile < end; tile++) {                                 \
      int64_t at[2], row0 = tile % a->shape.size[0] * RDNA__TRANSPOSE_ROWS;          \
      int64_t column0 = tile / a->shape.size[0] % a->shape.size[1] * tile_columns;   \
      int64_t rows = smaller(row0 + RDNA__TRANSPOSE_ROWS, a->rows);                  \
      int64_t columns = smaller(column0 + tile_columns, a->columns);                 \
      strided_offsets(&a->shape, a->operand, 2, (uint32_t)tile, at);                 \
      const bits *in = (const bits *)a->operand[1].data + at[1];                     \
      bits *out = (bits *)a->operand[0].data + at[0];                                \
      for (int64_t block = row0; block < rows; block += BLOCK) {                     \
        int64_t block_end = smaller(block + BLOCK, rows);                            \
        for (int64_t column = column0; column < columns; column++) {                 \
          for (int64_t row = block; row < block_end; row++) {                        \
            out[column * a->out_stride + row] = in[row * a->in_stride + column];     \
          }                                                                          \
        }                                                                            \
      }                                                                              \
    }                                                                                \
  }                                                                                  \
  void RDNA_HOST_KERNEL(transpose_##wide)(const void *args, rdna_grid grid) {        \
    struct transpose_args a = *(const struct transpose_args *)args;                  \
    rdna__parallel_for(a.shape.count, 2, transpose_##wide##_piece, &a);              \
  }                                                                                  \
  void RDNA_HOST_KERNEL(transpose_ragged_##wide)(const void *args, rdna_grid grid) { \
    RDNA_HOST_KERNEL(transpose_##wide)(args, grid);                                  \
  }
PAD_AND_TRIANGLE(8, uint8_t)
PAD_AND_TRIANGLE(16, uint16_t)
PAD_AND_TRIANGLE(32, uint32_t)
PAD_AND_TRIANGLE(64, uint64_t)
TRANSPOSE(8, uint8_t)
TRANSPOSE(16, uint16_t)
TRANSPOSE(32, uint32_t)
TRANSPOSE(64, uint64_t)
