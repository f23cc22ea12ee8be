/* Attention over a KV cache, in one pass over the keys and values: each row of scores keeps its running maximum m, the
 * sum l of exp(s - m) and the sum o of exp(s - m) * v, and all three are scaled down when the maximum grows (Milakov
 * and Gimelshein 2018; Dao et al. 2022). attention_prefill.h has many tokens at once, attention_decode.h few. */
#include "math/attention/attention_decode.h"
#include "math/attention/attention_prefill.h"

#define PREFILL(name, type, max_d)                               \
  RDNA_KERNEL(ATTENTION_THREADS) name(struct attention_args a) { \
    RDNA_SHARED static float lds[P_VALUES + V_VALUES];           \
    prefill<type, max_d>(a, lds);                                \
  }
PREFILL(attention_prefill_f16_d128, half, 128)
PREFILL(attention_prefill_f16_d256, half, 256)
PREFILL(attention_prefill_f32_d128, float, 128)
PREFILL(attention_prefill_f32_d256, float, 256)

/* On NVIDIA fewer rows are in flight, so that two groups' registers fit in a multiprocessor. */
#ifdef RDNA_NVIDIA
#define DECODE_AT_ONCE(amd, nvidia) nvidia
#else
#define DECODE_AT_ONCE(amd, nvidia) amd
#endif
#define DECODE(name, type, heads, at_once, groups)                                         \
  RDNA_KERNEL_RESIDENT(ATTENTION_THREADS, groups) name(struct attention_args a) {          \
    RDNA_SHARED static __attribute__((aligned(16))) float lds[decode_room<heads>::floats]; \
    decode<type, decode_slice<type>, heads, at_once>(a, lds);                              \
  }
#define WIDE(name, type, latent, at_once)                                                                 \
  RDNA_KERNEL(ATTENTION_THREADS) name(struct attention_args a) {                                          \
    RDNA_SHARED static __attribute__((aligned(16))) float lds[decode_room<4, ATTENTION_WIDE_DV>::floats]; \
    decode<type, decode_wide_slice<type, latent>, 4, at_once>(a, lds);                                    \
  }
/* Which of the rows in flight are there takes masks, two scalar registers each where waves have 64 lanes. */
#define DECODE_H1 DECODE_AT_ONCE((WAVE_SIZE == 64 ? 3 : 4), 3)
DECODE(attention_decode_f16_h1, f16, 1, DECODE_H1, 2)
DECODE(attention_decode_f16_h4, f16, 4, DECODE_AT_ONCE(4, 2), 2)
DECODE(attention_decode_f16_h8, f16, 8, 2, 1)
DECODE(attention_decode_bf16_h1, bf16, 1, DECODE_H1, 2)
DECODE(attention_decode_bf16_h4, bf16, 4, DECODE_AT_ONCE(4, 2), 2)
DECODE(attention_decode_bf16_h8, bf16, 8, 2, 1)
DECODE(attention_decode_q8_0_h1, q8_0_cache, 1, DECODE_AT_ONCE(4, 3), 2)
DECODE(attention_decode_q8_0_h4, q8_0_cache, 4, DECODE_AT_ONCE(4, 2), 2)
DECODE(attention_decode_q8_0_h8, q8_0_cache, 8, 2, 1)
DECODE(attention_decode_f32_h1, f32, 1, DECODE_AT_ONCE(4, 2), 2)
DECODE(attention_decode_f32_h4, f32, 4, DECODE_AT_ONCE(2, 1), 2)
DECODE(attention_decode_f32_h8, f32, 8, 1, 1)
WIDE(attention_decode_f16_wide, f16, false, 1)
WIDE(attention_decode_bf16_wide, bf16, false, 1)
WIDE(attention_decode_f32_wide, f32, false, 1)
WIDE(attention_decode_f16_latent, f16, true, 1)
WIDE(attention_decode_bf16_latent, bf16, true, 1)
WIDE(attention_decode_f32_latent, f32, true, 1)

/* Joins the splits of one head of one token, a group's work. Each wave computes the share of every split, lane by lane,
 * then adds up every COMBINE_WAVES-th split's sums; the first of those are in flight meanwhile. */
enum { COMBINE_SPLITS = 256, COMBINE_WAVES = ATTENTION_THREADS / WAVE_SIZE, COMBINE_AT_ONCE = 4 };
enum { COMBINE_COLUMNS = ATTENTION_WIDE_DV / (4 * WAVE_SIZE), COMBINE_OWN = COMBINE_SPLITS / WAVE_SIZE };
struct combine_batch {
  float4 v[COMBINE_AT_ONCE][COMBINE_COLUMNS];
};
/* Loads the sums of splits |first| + j * COMBINE_WAVES, four values a lane. */
RDNA_DEVICE combine_batch combine_fetch(const float *partial, int32_t first, int32_t splits, int32_t d) {
  combine_batch batch;
#pragma unroll
  for (int j = 0; j < COMBINE_AT_ONCE; j++)
#pragma unroll
    for (int c = 0; c < COMBINE_COLUMNS; c++) {
      int32_t split = first + j * COMBINE_WAVES, value = (c * WAVE_SIZE + (int32_t)lane_id()) * 4;
      batch.v[j][c] = float4{0, 0, 0, 0};
      if (split < splits && value < d) batch.v[j][c] = load_f32x4(partial + (int64_t)split * d + value);
    }
  return batch;
}
RDNA_KERNEL(ATTENTION_THREADS) attention_combine(struct attention_combine_args a) {
  RDNA_SHARED static __attribute__((aligned(16))) float sums[COMBINE_WAVES][ATTENTION_WIDE_DV];
  int32_t head = (int32_t)group_id_x(), token = (int32_t)group_id_y(), lane = (int32_t)lane_id();
  int32_t wave = (int32_t)wave_id();
  if (head >= a.heads || token >= a.tokens) return;
  int64_t row = (int64_t)token * a.heads + head;
  const float *stats = a.stats + row * a.splits * 2, *partial = a.partial + row * a.splits * a.d;
  combine_batch batch = combine_fetch(partial, wave, a.splits, a.d);
  float2 mine[COMBINE_OWN];
  float top = ATTENTION_LOWEST, sum = 0;
#pragma unroll
  for (int k = 0; k < COMBINE_OWN; k++) {
    int32_t split = k * WAVE_SIZE + lane;
    mine[k] = split < a.splits ? load_as<float2>(stats + 2 * split) : float2{ATTENTION_LOWEST, 0};
    top = max_f32(top, mine[k].x);
  }
  top = wave_max_f32(top);
#pragma unroll
  for (int k = 0; k < COMBINE_OWN; k++) {
    mine[k].x = fast_exp(mine[k].x - top);
    sum = fma_f32(mine[k].y, mine[k].x, sum);
  }
  sum = wave_sum_f32(sum);
  float4 total[COMBINE_COLUMNS] = {};
#pragma unroll
  for (int k = 0; k < COMBINE_OWN; k++) {
#pragma unroll 1
    for (int lanes = 0; lanes < WAVE_SIZE && k * WAVE_SIZE + lanes < a.splits;
         lanes += COMBINE_WAVES * COMBINE_AT_ONCE) {
      int first = k * WAVE_SIZE + lanes;
      if (first > 0) batch = combine_fetch(partial, first + wave, a.splits, a.d);
#pragma unroll
      for (int j = 0; j < COMBINE_AT_ONCE; j++) {
        float share = wave_shuffle_f32(mine[k].x, (uint32_t)(lanes + j * COMBINE_WAVES + wave));
#pragma unroll
        for (int c = 0; c < COMBINE_COLUMNS; c++) total[c] += batch.v[j][c] * share;
      }
    }
  }
#pragma unroll
  for (int c = 0; c < COMBINE_COLUMNS; c++) store_f32x4(&sums[wave][(c * WAVE_SIZE + lane) * 4], total[c]);
  group_barrier();
#pragma unroll 1
  for (int32_t i = (int32_t)thread_id(); i < a.d; i += ATTENTION_THREADS) {
    float result = 0;
#pragma unroll
    for (int w = 0; w < COMBINE_WAVES; w++) result += sums[w][i];
    a.out[token * a.out_stride + (int64_t)head * a.d + i] = sum != 0 ? result / sum : 0;
  }
}
