/* Host twins of the block-quantized kernels. Weights are decoded to f32 in registers, a span at a time: values whose
 * codes share bytes, see quant_unpack.h. */
#include "math/quant/quant_kernels.h"

#include "math/gemm/gemm_blocked.h"
#include "math/quant/quant_coded.h"
#include "math/quant/quant_digits.h"
#include "math/quant/quant_pairs.h"
#include "math/quant/quant_planes.h"
#include "math/quant/quant_unpack.h"

enum { MOST_VECTORS = 128 / SIMD_WIDTH };

/* Scale and minimum of each sub-block of a block; see quant_unpack.h. */
typedef struct scales {
  float scale[16], least[16];
} scales;

/* Stores d times each of the 8 bytes. They stay in a register: loading single bytes of words that were just stored
 * would stall. */
SIMD_INLINE void scale_bytes(uint64_t bytes, float d, float *out) {
#if SIMD_WIDTH >= 8
  __m256i lanes = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)bytes));
  _mm256_storeu_ps(out, _mm256_mul_ps(_mm256_set1_ps(d), _mm256_cvtepi32_ps(lanes)));
#else
  for (int i = 0; i < 8; i++) out[i] = d * (float)(bytes >> (8 * i) & 255);
#endif
}

SIMD_INLINE void read_scales(rdna_dtype format, const char *block, scales *out) {
  if (quant_scales(format) == RDNA__SCALES_Q4_K) { /* eight at once */
    struct quant_head h = quant_head_of(format, block, 0), low = quant_unfold(format, h, 0);
    struct quant_head high = quant_unfold(format, h, 128);
    uint64_t s = (uint64_t)high.w[1] << 32 | low.w[1], m = (uint64_t)high.w[2] << 32 | low.w[2];
    scale_bytes(s & 0x3f3f3f3f3f3f3f3f, f16_to_f32((uint16_t)h.w[0]), out->scale);
    scale_bytes(m & 0x3f3f3f3f3f3f3f3f, f16_to_f32((uint16_t)(h.w[0] >> 16)), out->least);
    return;
  }
  if (quant_has_halves(format)) { /* sixteen at once: a byte for each, in order */
    struct quant_head h = quant_head_of(format, block, 0);
    float d = f16_to_f32((uint16_t)h.w[0]), dmin = f16_to_f32((uint16_t)(h.w[0] >> 16));
    for (int i = 0; i < 16; i++) {
      if (quant_scales(format) == RDNA__SCALES_Q6_K) {
        out->scale[i] = d * (float)((const int8_t *)block)[192 + i];
      } else {
        out->scale[i] = d * (float)(((const uint8_t *)block)[i] & 15);
        out->least[i] = dmin * (float)(((const uint8_t *)block)[i] >> 4);
      }
    }
    return;
  }
  if (quant_is_coded(format)) {
    struct quant_coded c;
    quant_coded_read_head(format, block, &c);
    for (int run = 0; run < 8; run++) {
      quant_coded_read_run(format, block, run, &c);
      for (int half = 0; half < 2; half++) out->scale[2 * run + half] = quant_coded_scale(format, &c, run, half);
    }
    return;
  }
#pragma GCC unroll 16
  for (int v = 0; v < quant_values(format); v += quant_run(format)) {
    struct quant_scale s = quant_scale_of(format, quant_unfold(format, quant_head_of(format, block, v), v), v % 128);
    out->scale[v / quant_run(format)] = s.scale;
    if (quant_has_least(format)) out->least[v / quant_run(format)] = s.least;
  }
}

SIMD_INLINE simd_float finish_codes(rdna_dtype format, simd_int codes, float scale, float least) {
  simd_float v = simd_set(scale) * simd_from_int(codes);
  return quant_has_least(format) ? v - simd_set(least) : v;
}

/* Decodes codes that are a nibble and nothing else: bits 0 to 3 of each lane of |raw|, whose other bits are ignored. */
SIMD_INLINE simd_float decode_nibbles(rdna_dtype format, simd_int raw, float scale, float least) {
#if SIMD_WIDTH == 16
  /* compute all 16 possible results in one register, then pick one for each lane */
  simd_int code = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  if (quant_has_table(format)) {
    for (int i = 0; i < 16; i++) code[i] = (int8_t)(quant_table_word(format, i / 4) >> (i % 4 * 8));
  }
  simd_float results = finish_codes(format, code - quant_zero(format), scale, least);
  return (simd_float)_mm512_permutexvar_ps((__m512i)raw, (__m512)results);
#else
  simd_int code = (raw & 15) - quant_zero(format);
  if (quant_has_table(format)) {
#if SIMD_WIDTH == 8
    const int low = (int)quant_table_word(format, 0), middle = (int)quant_table_word(format, 1),
              high = (int)quant_table_word(format, 2), top = (int)quant_table_word(format, 3);
    __m128i table = _mm_setr_epi32(low, middle, high, top);
    __m256i picked = _mm256_shuffle_epi8(_mm256_set_m128i(table, table), (__m256i)code);
    code = (simd_int)_mm256_srai_epi32(_mm256_slli_epi32(picked, 24), 24);
#else
    for (int i = 0; i < SIMD_WIDTH; i++) code[i] = (int8_t)(quant_table_word(format, code[i] / 4) >> (code[i] % 4 * 8));
#endif
  }
  return finish_codes(format, code, scale, least);
#endif
}

/* Decodes SIMD_WIDTH values of a block from value |v| on. */
SIMD_INLINE simd_float decode_vector(rdna_dtype format, const char *block, const scales *s, int v) {
  float scale = s->scale[v / quant_run(format)];
  float least = quant_has_least(format) ? s->least[v / quant_run(format)] : 0;
  if (quant_low_mask(format) == 255)
    return simd_set(scale) * simd_from_int(simd_load_i8((const int8_t *)block + quant_low_at(format, v)));
  simd_int low = simd_load_u8((const uint8_t *)block + quant_low_at(format, v));
  if (quant_low_mask(format) == 15 && !quant_has_high(format) && !quant_has_fifth_bits(format))
    return decode_nibbles(format, low >> quant_low_shift(format, v), scale, least);
  simd_int codes = QUANT_LOW_CODES(format, low, v, 1);
  if (quant_has_high(format)) {
    simd_int high = simd_load_u8((const uint8_t *)block + quant_high_at(format, v));
    codes |= QUANT_HIGH_CODES(format, high, v, 1);
  }
  if (quant_has_fifth_bits(format)) {
    simd_int bits = (simd_int){0} + (int)(quant_load_32(format, block + quant_fifth_bits_at(format)) >> v), bit;
    for (int i = 0; i < SIMD_WIDTH; i++) bit[i] = 1 << i;
    codes |= ((bits & bit) != 0) & 16;
  }
  return finish_codes(format, codes - quant_zero(format), scale, least);
}

/* The same of a run of 32 values of a format that quant_coded.h reads. */
SIMD_INLINE void decode_coded(rdna_dtype format, const char *block, const scales *s, int run, simd_float *out) {
  _Alignas(32) int8_t bytes[32];
  struct quant_coded c;
  if (format != RDNA_TQ1_0) quant_coded_read_run(format, block, run, &c);
#pragma GCC unroll 4
  for (int l = 0; l < 4; l++) {
    struct quant_eight e =
        format == RDNA_TQ1_0 ? quant_trit_eight(block, run * 32 + l * 8) : quant_coded_eight(format, &c, l);
    memcpy(bytes + 8 * l, &e, sizeof e);
  }
#pragma GCC unroll 32
  for (int i = 0; i < 32 / SIMD_WIDTH; i++)
    out[i] = simd_set(s->scale[run * 2 + i * SIMD_WIDTH / 16]) * simd_from_int(simd_load_i8(bytes + i * SIMD_WIDTH));
}

SIMD_INLINE void decode_group(rdna_dtype format, const char *block, const scales *s, int group, simd_float *out) {
  if (quant_is_coded(format)) {
    decode_coded(format, block, s, group, out);
    return;
  }
#pragma GCC unroll 32
  for (int i = 0; i < quant_span(format) / SIMD_WIDTH; i++)
    out[i] = decode_vector(format, block, s, group * quant_span(format) + i * SIMD_WIDTH);
}

/* Decodes blocks [begin, end) to f32. */
SIMD_INLINE void decode_blocks(rdna_dtype format, const char *blocks, int64_t begin, int64_t end, float *out) {
  for (int64_t b = begin; b < end; b++) {
    const char *block = blocks + b * quant_bytes(format);
    scales s;
    read_scales(format, block, &s);
    for (int g = 0; g < quant_values(format) / quant_span(format); g++) {
      simd_float v[MOST_VECTORS];
      decode_group(format, block, &s, g, v);
      for (int i = 0; i < quant_span(format) / SIMD_WIDTH; i++, out += SIMD_WIDTH) simd_store(out, v[i]);
    }
  }
}
static void decode_any(rdna_dtype format, const char *blocks, int64_t begin, int64_t end, float *out) {
  switch (format) {
#define DECODE(name, NAME)                               \
  case RDNA_##NAME:                                      \
    decode_blocks(RDNA_##NAME, blocks, begin, end, out); \
    break;
    RDNA_QUANT_FORMATS(DECODE)
#undef DECODE
    default:
      break;
  }
}

typedef struct dequantize_job {
  const struct dequantize_args *args;
  rdna_dtype format, type;
} dequantize_job;

static void dequantize_some(void *context, int64_t begin, int64_t end) {
  const dequantize_job *job = context;
  int values = quant_values(job->format);
  if (job->type == RDNA_F32) {
    decode_any(job->format, job->args->blocks, begin, end, (float *)job->args->out + begin * values);
    return;
  }
  for (int64_t b = begin; b < end; b++) {
    float v[256];
    decode_any(job->format, job->args->blocks, b, b + 1, v);
    uint16_t *out = (uint16_t *)job->args->out + b * values;
    for (int i = 0; i < values; i += SIMD_WIDTH) {
      if (job->type == RDNA_F16) {
        simd_store_f16(out + i, simd_load(v + i));
      } else {
        for (int j = 0; j < SIMD_WIDTH; j++) out[i + j] = f32_to_bf16(v[i + j]);
      }
    }
  }
}

static void dequantize(const void *args, rdna_dtype format, rdna_dtype type) {
  dequantize_job job = {args, format, type};
  rdna__parallel_for(job.args->count / quant_values(format), 64, dequantize_some, &job);
}

#include "math/quant/quant_rounded.h" /* it reads scales as above */

SIMD_INLINE const char *row_of(const gemm_job *job, rdna_dtype format, const char *b, int64_t row) {
  return b + row * (job->args->ldb / quant_values(format)) * quant_bytes(format);
}

static void fetch_quant_b(const gemm_job *job, const char *b, int64_t row, int64_t p, int count, float *out) {
  int values = quant_values(job->type_b);
  decode_any(job->type_b, row_of(job, job->type_b, b, row), p / values, (p + count) / values, out);
}

/* Multiplies |rows| rows of B by |columns| rows of A, as dot_block in gemm_host.c does, a block of weights at a time.
 * The processor's own prefetching does not keep up with one row of B, so cache lines are prefetched AHEAD bytes, about
 * a microsecond, early. */
SIMD_INLINE void dot_block(const gemm_job *job, rdna_dtype format, int columns, int rows, const char *a, const char *b,
                           char *c, int64_t first, int64_t last) {
  enum { AHEAD = 2048, CHAINS = 4 };
  const struct gemm_args *args = job->args;
  const int chains = columns == 1 ? CHAINS : 1; /* independent sums, since an addition waits for the one before it */
  const int vectors = quant_span(format) / SIMD_WIDTH;
  const char *w[2];
  const float *x[GEMV_MAX_M];
  simd_float sum[2][GEMV_MAX_M][CHAINS];
#pragma GCC unroll 2
  for (int r = 0; r < rows; r++) {
    w[r] = row_of(job, format, b, gemm_clamp(first + r, last));
#pragma GCC unroll 8
    for (int j = 0; j < columns; j++)
#pragma GCC unroll 4
      for (int n = 0; n < chains; n++) sum[r][j][n] = simd_set(0);
  }
#pragma GCC unroll 8
  for (int j = 0; j < columns; j++) x[j] = (const float *)(const void *)a + gemm_clamp(j, args->m) * args->lda;

  int64_t at = 0;
  for (int64_t left = args->k / quant_values(format); left > 0; left--) {
    scales s[2];
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++) {
      for (int i = 0; i < quant_bytes(format); i += 64) __builtin_prefetch(w[r] + AHEAD + i);
      read_scales(format, w[r], &s[r]);
    }
/* unrolled, so that byte offsets and shifts are constants */
#pragma GCC unroll 4
    for (int g = 0; g < quant_values(format) / quant_span(format); g++) {
      simd_float v[2][MOST_VECTORS];
#pragma GCC unroll 2
      for (int r = 0; r < rows; r++) decode_group(format, w[r], &s[r], g, v[r]);
#pragma GCC unroll 32
      for (int i = 0; i < vectors; i++, at += SIMD_WIDTH) {
#pragma GCC unroll 8
        for (int j = 0; j < columns; j++) {
          simd_float u = simd_load(x[j] + at);
#pragma GCC unroll 2
          for (int r = 0; r < rows; r++) sum[r][j][i % chains] = simd_fma(v[r][i], u, sum[r][j][i % chains]);
        }
      }
    }
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++) w[r] += quant_bytes(format);
  }
  for (int r = 0; r < rows && first + r < last; r++) {
    for (int j = 0; j < columns && j < args->m; j++) {
      simd_float total = sum[r][j][0];
      for (int n = 1; n < chains; n++) total += sum[r][j][n];
      gemm_finish_dot(job, c, j, first + r, simd_sum(total));
    }
  }
}

#ifdef QUANT_PAIRS
/* One row of B against |columns| rows of A from row |first| on, each summed in the same order however many there are.
 */
SIMD_INLINE void dot_pairs(const pair_job *job, rdna_dtype format, int columns, int first, const char *b, char *c,
                           int64_t index) {
  enum { AHEAD = 2048 };
  const struct gemm_args *args = job->product.args;
  const int runs = quant_values(format) / PAIR_VALUES, parts = pair_has_halves(format) ? 2 : 1;
  const char *w = row_of(&job->product, format, b, index);
  const pair_run *x[4];
  __m256 sum[4][2];
  float taken[4]; /* what zeros and minimums take from the sums */
#pragma GCC unroll 4
  for (int j = 0; j < columns; j++) {
    x[j] = job->pairs + gemm_clamp(first + j, args->m) * job->row;
    sum[j][0] = sum[j][1] = _mm256_setzero_ps();
    taken[j] = 0;
  }
  for (int64_t at = 0; at < job->row; at += runs, w += quant_bytes(format)) {
    scales s;
    for (int i = 0; i < quant_bytes(format); i += 64) __builtin_prefetch(w + AHEAD + i);
    read_scales(format, w, &s);
#pragma GCC unroll 8
    for (int r = 0; r < runs; r++) {
      const __m256i codes = pair_codes(format, w, r * PAIR_VALUES);
      const __m256i sizes = pair_is_signed(format) ? _mm256_abs_epi8(codes) : codes;
      __m256 scale = _mm256_set1_ps(s.scale[parts * r]);
      if (parts == 2) scale = _mm256_insertf128_ps(scale, _mm_set1_ps(s.scale[2 * r + 1]), 1);
#pragma GCC unroll 4
      for (int j = 0; j < columns; j++) {
        const pair_run *of = x[j] + at + r;
        __m256 of_unit = _mm256_mul_ps(scale, _mm256_set1_ps(of->unit));
        sum[j][r % 2] = _mm256_fmadd_ps(pair_products(format, codes, sizes, of), of_unit, sum[j][r % 2]);
        for (int h = 0; h < parts && pair_has_sums(format); h++) {
          float least = quant_has_least(format) ? s.least[parts * r + h] : 0;
          least = __builtin_fmaf(s.scale[parts * r + h], (float)quant_zero(format), least);
          taken[j] = __builtin_fmaf(least, parts == 2 ? of->sum[h] : of->all, taken[j]);
        }
      }
    }
  }
  for (int j = 0; j < columns && first + j < args->m; j++)
    gemm_finish_dot(&job->product, c, first + j, index,
                    simd_sum((simd_float)_mm256_add_ps(sum[j][0], sum[j][1])) - taken[j]);
}

SIMD_INLINE void dot_rows_prepared(const void *prepared, rdna_dtype format, const char *b, char *c, int64_t first,
                                   int64_t last) {
  const pair_job *job = prepared;
  const int m = job->product.args->m;
  for (int64_t j = first; j < last; j++) {
    if (m == 1) {
      dot_pairs(job, format, 1, 0, b, c, j);
    } else {
      for (int i = 0; i < m; i += 4) dot_pairs(job, format, 4, i, b, c, j);
    }
  }
}

/* False where rows of A must not be rounded, are too many for it, or there is no memory for them. */
static __attribute__((noinline)) bool run_prepared(const gemm_job *product) {
  pair_run room[MOST_PAIRS];
  const struct gemm_args *args = product->args;
  const uint32_t asked = GEMM_MAY_ROUND | GEMM_A_TRANSPOSED | GEMM_B_TRANSPOSED;
  pair_job job = {.product = *product, .pairs = room, .row = args->k / PAIR_VALUES};
  if ((args->flags & asked) != (GEMM_MAY_ROUND | GEMM_B_TRANSPOSED) || args->batch != 1 || args->parts > 1 ||
      args->m > GEMV_MAX_M)
    return false;
  if (args->m * job.row > MOST_PAIRS) job.pairs = malloc((size_t)(args->m * job.row) * sizeof *job.pairs);
  if (!job.pairs) return false;
  rdna__parallel_for(args->m * job.row, 512, make_some_pairs, &job);
  job.product.prepared = &job;
  gemm_run(&job.product);
  if (job.pairs != room) free(job.pairs);
  return true;
}
#elif defined(QUANT_PLANES)
/* Two blocks of 32 values of a row of B, or one if no more are |left|, times |columns| rows of A. */
SIMD_INLINE void add_pair(rdna_dtype format, int columns, const char *w, int64_t left, const planes **x, __m512 *sum,
                          __m512 *least_sum) {
  const char *second = left > 32 ? w + quant_bytes(format) : w; /* its x has no digits */
  __m512 least, scale = plane_scale_of_pair(format, w, second, &least);
  __m512i codes = plane_codes(format, w, second, 0);
#pragma GCC unroll 8
  for (int j = 0; j < columns; j++, x++) {
    sum[j] = add_planes(format, sum[j], codes, *x, scale);
    if (quant_has_least(format)) least_sum[j] = _mm512_fmadd_ps(least, _mm512_load_ps((*x)->sum), least_sum[j]);
    ++*x;
  }
}

/* The same of a block of 256 values. */
SIMD_INLINE void add_block(rdna_dtype format, int columns, const char *w, const planes **x, __m512 *sum,
                           __m512 *least_sum) {
  __m512 least, scale = plane_scales_of_block(format, w, &least);
#pragma GCC unroll 4
  for (int v = 0; v < 256; v += PLANE_VALUES) {
    __m512i codes = plane_codes(format, w, w, v);
    __m512 of_lanes = plane_scale_of_runs(format, scale, v), least_of_lanes = plane_scale_of_runs(format, least, v);
#pragma GCC unroll 8
    for (int j = 0; j < columns; j++) {
      sum[j] = add_planes(format, sum[j], codes, x[j], of_lanes);
      if (quant_has_least(format))
        least_sum[j] = _mm512_fmadd_ps(least_of_lanes, _mm512_load_ps(x[j]->sum), least_sum[j]);
      x[j]++;
    }
  }
}

/* One row of B against |columns| rows of A, each summed in the same order however many there are. */
SIMD_INLINE void dot_planes(const plane_job *job, rdna_dtype format, int columns, const char *b, char *c,
                            int64_t index) {
  enum { AHEAD = 2048 };
  const struct gemm_args *args = job->product.args;
  const int64_t step = quant_values(format) == 32 ? 64 : 256, bytes = step / quant_values(format) * quant_bytes(format);
  const char *w = row_of(&job->product, format, b, index);
  const planes *x[GEMV_MAX_M];
  __m512 sum[GEMV_MAX_M], least_sum[GEMV_MAX_M];
#pragma GCC unroll 8
  for (int j = 0; j < columns; j++) {
    x[j] = job->planes + gemm_clamp(j, args->m) * job->row;
    sum[j] = least_sum[j] = _mm512_setzero_ps();
  }
  for (int64_t left = args->k; left > 0; left -= step, w += bytes) {
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(w + AHEAD + i);
    if (step == 64)
      add_pair(format, columns, w, left, x, sum, least_sum);
    else
      add_block(format, columns, w, x, sum, least_sum);
  }
  for (int j = 0; j < columns && j < args->m; j++) {
    __m512 total = quant_has_least(format) ? _mm512_sub_ps(sum[j], least_sum[j]) : sum[j];
    gemm_finish_dot(&job->product, c, j, index, _mm512_reduce_add_ps(total));
  }
}

SIMD_INLINE void dot_rows_prepared(const void *prepared, rdna_dtype format, const char *b, char *c, int64_t first,
                                   int64_t last) {
  if (((const gemm_job *)prepared)->args->flags & GEMM_MAY_ROUND) {
    dot_rows_of_digits(prepared, format, b, c, first, last);
    return;
  }
  const plane_job *job = prepared;
  const int m = job->product.args->m;
  for (int64_t j = first; j < last; j++) {
    if (m == 1)
      dot_planes(job, format, 1, b, c, j);
    else if (m == 2)
      dot_planes(job, format, 2, b, c, j);
    else if (m <= 4)
      dot_planes(job, format, 4, b, c, j);
    else
      dot_planes(job, format, 8, b, c, j);
  }
}

/* False where rows of A are too many for it, some value has no digits, or there is no memory for them. */
static __attribute__((noinline)) bool run_prepared(const gemm_job *product) {
  planes room[MOST_PLANES];
  const struct gemm_args *args = product->args;
  plane_job job = {.product = *product, .format = product->type_b, .planes = room};
  job.row = (args->k + PLANE_VALUES - 1) / PLANE_VALUES;
  bool rows_of_b = (args->flags & (GEMM_A_TRANSPOSED | GEMM_B_TRANSPOSED)) == GEMM_B_TRANSPOSED;
  if (!has_planes(job.format) || !rows_of_b || args->batch != 1 || args->parts > 1 || args->m > GEMV_MAX_M)
    return false;
  if (args->flags & GEMM_MAY_ROUND) return run_digits(product);
  if (args->m * job.row > MOST_PLANES) job.planes = aligned_alloc(64, (size_t)(args->m * job.row) * sizeof *job.planes);
  if (!job.planes) return false;
  rdna__parallel_for(args->m * job.row, 256, make_some_planes, &job);
  job.product.prepared = &job;
  if (!job.odd) gemm_run(&job.product);
  if (job.planes != room) free(job.planes);
  return !job.odd;
}
#else
static bool run_prepared(const gemm_job *product) { return false; }
#define dot_rows_prepared(...)
#endif

#define DOT_DEFINE(name, F)                                                                                      \
  static void dot_##F(const gemm_job *job, const char *a, const char *b, char *c, int64_t first, int64_t last) { \
    int m = job->args->m;                                                                                        \
    if (job->prepared) {                                                                                         \
      dot_rows_prepared(job->prepared, RDNA_##F, b, c, first, last);                                             \
    } else if (m == 1) {                                                                                         \
      for (int64_t j = first; j < last; j++) dot_block(job, RDNA_##F, 1, 1, a, b, c, j, last);                   \
    } else if (m <= 4) {                                                                                         \
      for (int64_t j = first; j < last; j += 2) dot_block(job, RDNA_##F, 4, 2, a, b, c, j, last);                \
    } else {                                                                                                     \
      for (int64_t j = first; j < last; j += 2) dot_block(job, RDNA_##F, 8, 2, a, b, c, j, last);                \
    }                                                                                                            \
  }
RDNA_QUANT_FORMATS(DOT_DEFINE)

static void run_job(gemm_job *job) {
  if (!run_rounded(job) && !run_prepared(job)) gemm_run(job);
}
static gemm_job job_of(const struct gemm_args *args, rdna_dtype format,
                       void (*dot_rows)(const gemm_job *, const char *, const char *, char *, int64_t, int64_t)) {
  gemm_job job = {.args = args, .type_a = RDNA_F32, .type_b = format, .type_c = RDNA_F32};
  job.fetch_b = fetch_quant_b;
  job.dot_rows = dot_rows;
  job.batch_bytes_b = args->stride_b / quant_values(format) * quant_bytes(format);
  return job;
}

#define TWIN(name, F)                                             \
  void RDNA_HOST_KERNEL(name)(const void *args, rdna_grid grid) { \
    gemm_job job = job_of(args, RDNA_##F, dot_##F);               \
    run_job(&job);                                                \
  }
#define STEPPED_TWIN(name, F)                                                                    \
  void RDNA_HOST_KERNEL(name)(const void *args, rdna_grid grid) {                                \
    const struct gemv_args *a = args;                                                            \
    gemm_job job = job_of(&a->product, RDNA_##F, dot_##F);                                       \
    gemv_run(&job, a, a->product.ldb / quant_values(RDNA_##F) * quant_bytes(RDNA_##F), run_job); \
  }
#define TWINS(f, F)                                                                \
  void RDNA_HOST_KERNEL(dequantize_##f##_f32)(const void *args, rdna_grid grid) {  \
    dequantize(args, RDNA_##F, RDNA_F32);                                          \
  }                                                                                \
  void RDNA_HOST_KERNEL(dequantize_##f##_f16)(const void *args, rdna_grid grid) {  \
    dequantize(args, RDNA_##F, RDNA_F16);                                          \
  }                                                                                \
  void RDNA_HOST_KERNEL(dequantize_##f##_bf16)(const void *args, rdna_grid grid) { \
    dequantize(args, RDNA_##F, RDNA_BF16);                                         \
  }                                                                                \
  TWIN(gemm_f32_##f##_f32_large, F)                                                \
  TWIN(gemm_f32_##f##_f32_small, F)                                                \
  STEPPED_TWIN(gemv_f32_##f##_f32_m1, F)                                           \
  TWIN(gemv_f32_##f##_f32_m4, F)                                                   \
  TWIN(gemv_f32_##f##_f32_m8, F)
RDNA_QUANT_FORMATS(TWINS)

/* Rounds to nearest, halves away from zero; a NaN becomes 0. */
SIMD_INLINE int8_t round_away(float v) {
  float whole = __builtin_truncf(v);
  if (scalar_abs(v - whole) >= 0.5f) whole += v < 0 ? -1.0f : 1.0f;
  return v == v ? (int8_t)whole : 0;
}

static void quantize_blocks(void *context, int64_t begin, int64_t end) {
  const struct quantize_args *args = context;
  for (int64_t block = begin; block < end; block++) {
    const float *x = args->x + block * 32;
    char *out = (char *)args->blocks + block * 34;
    float largest = 0;
    for (int i = 0; i < 32; i++) largest = max_f32(largest, scalar_abs(x[i]));
    float d = largest / 127.0f, inverse = d != 0 ? 1.0f / d : 0.0f;
    uint16_t stored = f32_to_f16(d);
    memcpy(out, &stored, sizeof stored);
    for (int i = 0; i < 32; i++) out[2 + i] = round_away(x[i] * inverse);
  }
}

void RDNA_HOST_KERNEL(quantize_f32_q8_0)(const void *args, rdna_grid grid) {
  struct quantize_args a = *(const struct quantize_args *)args;
  rdna__parallel_for(a.count / 32, 512, quantize_blocks, &a);
}
