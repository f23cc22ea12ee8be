/* Host twins of convolution: blocks are gathered as f32 and multiplied as those of a matrix product. */
#include "math/conv/conv_kernels.h"
#include "math/gemm/gemm_blocked.h"

enum { LOW_M = 144, HIGH_M = 288, EACH = 4 }; /* the most rows of a tile; high ones where threads have EACH or more */

typedef struct conv_job {
  const struct conv_args *args;
  rdna_dtype dtype;
  bool is_image;     /* rows are positions; else they are channels */
  int parts, part_k; /* of k */
  int64_t tiles_m, tiles_n;
  int tile_m, tile_n;
} conv_job;

/* Of what is summed over, values that lie side by side in the image: channels of one place of a window. */
typedef struct conv_run {
  int32_t first, count;
} conv_run;

typedef struct conv_blocks {
  gemm_blocks product;
  struct conv_place place[GEMM_BLOCK_K]; /* of what is summed over */
  int32_t other[GEMM_BLOCK_K];
  conv_run run[GEMM_BLOCK_K];
  int runs;
  bool dense; /* |other| counts on by one */
} conv_blocks;

static float conv_value(const conv_job *job, const char *image, struct conv_place place, struct conv_place k_place) {
  int32_t at = job->is_image ? conv_offset(job->args, place, k_place) : conv_offset(job->args, k_place, place);
  return at < 0 ? 0 : gemm_load(job->dtype, image, at);
}

/* What depends on neither rows nor columns. */
static void conv_prepare(const conv_job *job, int p, int count, conv_blocks *blocks) {
  const struct conv_args *a = job->args;
  for (int q = 0; q < count; q++) {
    blocks->place[q] = job->is_image ? conv_tap(a, p + q) : conv_position(a, p + q);
    blocks->other[q] = conv_digits_offset(job->is_image ? &a->tap : &a->position, p + q, a->other_k);
  }
  blocks->runs = 0, blocks->dense = true;
  for (int q = 0; q < count; q++) {
    const struct conv_place *now = &blocks->place[q], *last = &blocks->place[q > 0 ? q - 1 : 0];
    bool goes_on =
        q > 0 && now->offset == last->offset + 1 && now->z == last->z && now->y == last->y && now->x == last->x;
    if (q > 0 && blocks->other[q] != blocks->other[q - 1] + 1) blocks->dense = false;
    if (!goes_on) blocks->run[blocks->runs++] = (conv_run){q, 0};
    blocks->run[blocks->runs - 1].count++;
  }
}

/* A row of packed A at a position. */
static void conv_pack_position(const conv_job *job, const char *from, struct conv_place place,
                               const conv_blocks *blocks, float *to) {
  for (int r = 0; r < blocks->runs; r++) {
    conv_run run = blocks->run[r];
    int32_t at = conv_offset(job->args, place, blocks->place[run.first]);
    if (at < 0)
      memset(to + run.first, 0, (size_t)run.count * sizeof *to);
    else if (run.count < SIMD_WIDTH)
      for (int i = 0; i < run.count; i++) to[run.first + i] = gemm_load(job->dtype, from, at + i);
    else
      gemm_fetch(job->dtype, from, at, run.count, to + run.first);
  }
}

static void conv_pack_a(const conv_job *job, const char *from, int row, int rows, int count, conv_blocks *blocks) {
  for (int i = 0; i < rows; i++) {
    float *to = blocks->product.a[i];
    if (job->is_image) {
      conv_pack_position(job, from, conv_position(job->args, row + i), blocks, to);
    } else {
      int64_t at = (int64_t)(row + i) * job->args->other_row;
      for (int q = 0; q < count; q++) to[q] = gemm_load(job->dtype, from, at + blocks->other[q]);
    }
  }
  for (int i = rows; i % GEMM_MICRO_M != 0; i++) memset(blocks->product.a[i], 0, sizeof blocks->product.a[i]);
}

/* Of a window whose values lie side by side. */
static void conv_pack_dense_b(const conv_job *job, const char *from, int column, int columns, int count,
                              conv_blocks *blocks) {
  for (int first = 0; first < columns; first += SIMD_WIDTH) {
    float rows[SIMD_WIDTH][GEMM_PACKED_ROW];
    for (int s = 0; s < SIMD_WIDTH; s++) {
      int64_t at = (int64_t)(column + first + s) * job->args->other_row + blocks->other[0];
      if (first + s < columns)
        gemm_fetch(job->dtype, from, at, count, rows[s]);
      else
        memset(rows[s], 0, sizeof rows[s]);
    }
    gemm_turn_columns(rows, count, &blocks->product.b[first / GEMM_MICRO_N][0][first % GEMM_MICRO_N]);
  }
  gemm_clear_columns(columns, count, &blocks->product);
}

static void conv_pack_b(const conv_job *job, const char *from, int column, int columns, int count,
                        conv_blocks *blocks) {
  if (job->is_image && blocks->dense) {
    conv_pack_dense_b(job, from, column, columns, count, blocks);
    return;
  }
  for (int j = 0; j < columns || j % GEMM_MICRO_N != 0; j++) {
    float *to = &blocks->product.b[j / GEMM_MICRO_N][0][j % GEMM_MICRO_N];
    if (j >= columns) {
      for (int q = 0; q < count; q++) to[q * GEMM_MICRO_N] = 0;
    } else if (job->is_image) {
      int64_t at = (int64_t)(column + j) * job->args->other_row;
      for (int q = 0; q < count; q++) to[q * GEMM_MICRO_N] = gemm_load(job->dtype, from, at + blocks->other[q]);
    } else {
      struct conv_place place = conv_tap(job->args, column + j);
      for (int q = 0; q < count; q++) to[q * GEMM_MICRO_N] = conv_value(job, from, place, blocks->place[q]);
    }
  }
}

static void conv_store_part(const conv_job *job, int64_t part, int row, int rows, int column, int columns,
                            const conv_blocks *blocks) {
  const struct conv_args *a = job->args;
  float *out = a->sums + part * a->rows * a->columns;
  for (int i = 0; i < rows; i++)
    memcpy(out + (int64_t)(row + i) * a->columns + column, blocks->product.c[i], (size_t)columns * sizeof *out);
}

/* A tile of positions and channels. */
static void conv_store_image(const conv_job *job, int64_t group, int row, int rows, int column, int columns,
                             const conv_blocks *blocks) {
  const struct conv_args *a = job->args;
  char *out = (char *)a->out + group * a->out_group * gemm_value_size(job->dtype);
  float bias[GEMM_BLOCK_N] = {0}, values[GEMM_BLOCK_N];
  for (int j = 0; a->bias && j < columns; j++)
    bias[j] = gemm_load(job->dtype, a->bias, group * a->columns + column + j);
  for (int i = 0; i < rows; i++) {
    int64_t at = conv_digits_offset(&a->position, row + i, a->out_digits) + (int64_t)column * a->out_channel;
    for (int j = 0; j < columns; j++) values[j] = blocks->product.c[i][j] + bias[j];
    if (a->activation != RDNA_ACTIVATION_NONE)
      for (int j = 0; j < columns; j++) values[j] = gemm_activate(a->activation, values[j]);
    if (job->dtype == RDNA_F32 && a->out_channel == 1)
      memcpy((float *)(void *)out + at, values, (size_t)columns * sizeof *values);
    else
      for (int j = 0; j < columns; j++) gemm_store(job->dtype, out, at + (int64_t)j * a->out_channel, values[j]);
  }
}

/* A tile of channels and places of a window. */
static void conv_store_window(const conv_job *job, int64_t group, int row, int rows, int column, int columns,
                              const conv_blocks *blocks) {
  const struct conv_args *a = job->args;
  char *out = (char *)a->out + group * a->out_group * gemm_value_size(job->dtype);
  for (int j = 0; j < columns; j++) {
    int64_t at = conv_digits_offset(&a->tap, column + j, a->out_digits);
    for (int i = 0; i < rows; i++)
      gemm_store(job->dtype, out, at + (int64_t)(row + i) * a->out_channel, blocks->product.c[i][j]);
  }
}

static void conv_one_tile(const conv_job *job, int64_t tile, conv_blocks *blocks) {
  const struct conv_args *args = job->args;
  int64_t part = tile / (job->tiles_m * job->tiles_n), in_group = tile % (job->tiles_m * job->tiles_n);
  int64_t group = part / job->parts;
  int row = (int)(in_group % job->tiles_m) * job->tile_m, column = (int)(in_group / job->tiles_m) * job->tile_n;
  int rows = args->rows - row < job->tile_m ? args->rows - row : job->tile_m;
  int columns = args->columns - column < job->tile_n ? args->columns - column : job->tile_n;
  int64_t bytes = gemm_value_size(job->dtype);
  const char *image = (const char *)args->image + group * args->image_group * bytes;
  const char *other = (const char *)args->other + group * args->other_group * bytes;
  memset(blocks->product.c, 0, sizeof blocks->product.c[0] * (size_t)job->tile_m);
  int64_t first = part % job->parts * job->part_k, end = first + job->part_k < args->k ? first + job->part_k : args->k;
  for (int64_t p = first; p < end; p += GEMM_BLOCK_K) {
    int count = (int)(end - p < GEMM_BLOCK_K ? end - p : GEMM_BLOCK_K);
    conv_prepare(job, (int)p, count, blocks);
    conv_pack_a(job, job->is_image ? image : other, row, rows, count, blocks);
    conv_pack_b(job, job->is_image ? other : image, column, columns, count, blocks);
    for (int j = 0; j < columns; j += GEMM_MICRO_N)
      for (int i = 0; i < rows; i += GEMM_MICRO_M)
        gemm_micro(count, blocks->product.a[i], blocks->product.b[j / GEMM_MICRO_N][0], &blocks->product.c[i][j]);
  }
  if (job->parts > 1)
    conv_store_part(job, part, row, rows, column, columns, blocks);
  else if (job->is_image)
    conv_store_image(job, group, row, rows, column, columns, blocks);
  else
    conv_store_window(job, group, row, rows, column, columns, blocks);
}

static void conv_tiles(void *context, int64_t begin, int64_t end) {
  conv_blocks blocks __attribute__((aligned(64)));
  for (int64_t tile = begin; tile < end; tile++) conv_one_tile(context, tile, &blocks);
}

static void run(const void *args, rdna_dtype dtype, bool is_image) {
  const struct conv_args *a = args;
  if (a->rows <= 0 || a->columns <= 0 || a->groups <= 0) return;
  conv_job job = {.args = a, .dtype = dtype, .is_image = is_image, .parts = 1, .part_k = a->k};
  if (a->parts > 1) job.parts = a->parts, job.part_k = a->part_k;
  job.tile_n = (int)gemm_even_tile(a->columns, GEMM_BLOCK_N, GEMM_MICRO_N);
  job.tiles_n = (a->columns + job.tile_n - 1) / job.tile_n;
  int64_t products = (int64_t)a->groups * job.parts * job.tiles_n, high = (a->rows + HIGH_M - 1) / HIGH_M;
  int64_t most = products * high >= (int64_t)EACH * rdna__thread_count() ? HIGH_M : LOW_M;
  job.tile_m = (int)gemm_even_tile(a->rows, most, GEMM_MICRO_M);
  job.tiles_m = (a->rows + job.tile_m - 1) / job.tile_m;
  rdna__parallel_for(products * job.tiles_m, 1, conv_tiles, &job);
}

typedef struct sum_job {
  const struct conv_args *args;
  rdna_dtype dtype;
  bool is_image;
} sum_job;

static void sum_rows(void *context, int64_t begin, int64_t end) {
  const sum_job *job = context;
  const struct conv_args *a = job->args;
  int64_t values = (int64_t)a->rows * a->columns;
  for (int64_t r = begin; r < end; r++) {
    int64_t group = r / a->rows, row = r % a->rows;
    const float *part = a->sums + group * a->parts * values + row * a->columns;
    int64_t at_row =
        job->is_image ? conv_digits_offset(&a->position, (int32_t)row, a->out_digits) : row * a->out_channel;
    char *out = (char *)a->out + (group * a->out_group + at_row) * gemm_value_size(job->dtype);
    for (int column = 0; column < a->columns; column++) {
      float sum = 0;
      for (int i = 0; i < a->parts; i++) sum += part[i * values + column];
      if (job->is_image) {
        float bias = a->bias ? gemm_load(job->dtype, a->bias, group * a->columns + column) : 0;
        gemm_store(job->dtype, out, column * a->out_channel, gemm_activate(a->activation, sum + bias));
      } else {
        gemm_store(job->dtype, out, conv_digits_offset(&a->tap, column, a->out_digits), sum);
      }
    }
  }
}

static void run_sum(const void *args, rdna_dtype dtype, bool is_image) {
  sum_job job = {args, dtype, is_image};
  rdna__parallel_for((int64_t)job.args->groups * job.args->rows, 1, sum_rows, &job);
}

typedef struct turn_job {
  const struct conv_turn_args *args;
  size_t bytes; /* of a value: 2 or 4 */
  bool to_last;
} turn_job;

static void turn_images(void *context, int64_t begin, int64_t end) {
  const turn_job *job = context;
  const struct conv_turn_args *a = job->args;
  int64_t values = (int64_t)a->channels * a->plane, rows = job->to_last ? a->channels : a->plane;
  int64_t columns = job->to_last ? a->plane : a->channels;
  for (int64_t image = begin; image < end; image++) {
    const char *in = (const char *)a->in + image * values * (int64_t)job->bytes;
    char *out = (char *)a->out + image * values * (int64_t)job->bytes;
    for (int64_t r = 0; r < rows; r++)
      for (int64_t c = 0; c < columns; c++)
        memcpy(out + (c * rows + r) * (int64_t)job->bytes, in + (r * columns + c) * (int64_t)job->bytes, job->bytes);
  }
}

static void run_turn(const void *args, size_t bytes, bool to_last) {
  turn_job job = {args, bytes, to_last};
  rdna__parallel_for(job.args->images, 1, turn_images, &job);
}
void RDNA_HOST_KERNEL(conv_to_last_16)(const void *args, rdna_grid grid) { run_turn(args, 2, true); }
void RDNA_HOST_KERNEL(conv_to_last_32)(const void *args, rdna_grid grid) { run_turn(args, 4, true); }
void RDNA_HOST_KERNEL(conv_to_first_16)(const void *args, rdna_grid grid) { run_turn(args, 2, false); }
void RDNA_HOST_KERNEL(conv_to_first_32)(const void *args, rdna_grid grid) { run_turn(args, 4, false); }

/* The grid says how a device cuts the work; here the arguments alone do. */
#define TWIN(name, T, is_image) \
  void RDNA_HOST_KERNEL(name)(const void *args, rdna_grid grid) { run(args, RDNA_##T, is_image); }
#define TWINS(t, T)                                                                                              \
  TWIN(conv_image_small_##t, T, true)                                                                            \
  TWIN(conv_image_large_##t, T, true)                                                                            \
  TWIN(conv_weight_small_##t, T, false)                                                                          \
  TWIN(conv_depthwise_##t, T, true)                                                                              \
  TWIN(conv_weight_large_##t, T, false)                                                                          \
  void RDNA_HOST_KERNEL(conv_image_sum_##t)(const void *args, rdna_grid grid) { run_sum(args, RDNA_##T, true); } \
  void RDNA_HOST_KERNEL(conv_weight_sum_##t)(const void *args, rdna_grid grid) { run_sum(args, RDNA_##T, false); }
#define MMA_TWINS(t, T)                \
  TWINS(t, T)                          \
  TWIN(conv_image_narrow_##t, T, true) \
  TWIN(conv_weight_narrow_##t, T, false)
TWINS(f32, F32)
MMA_TWINS(f16, F16)
MMA_TWINS(bf16, BF16)
