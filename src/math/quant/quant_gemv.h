/* Device code: products of quantized weights with few rows of activations, as decoding a token needs. The weights are
 * read once, and reading them takes most of the time.
 *
 * A set of 32 lanes multiplies |rows| rows of B at once by |columns| rows of A. At each step a lane takes one chunk of
 * each row: 16 or 32 bytes of low bits, and the high bits and scales of their 32 or 64 values, which are runs of 16
 * with one scale each. What several chunks of a block share is loaded by the first of their lanes and shuffled to the
 * others, so that each byte is loaded once. The next step's bytes are in flight while this one's are multiplied.
 *
 *     row of B     | chunk 0 | chunk 1 | ... | chunk 31 | chunk 32 | ...
 *                  |          step 0                    | step 1             lane = chunk % lanes, which are 32,
 *                                                                            or 16 where a tile has 16 chunks
 *
 * A is in group memory (LDS), a tile of k at a time, in pieces of 4 values. Row p of the tile has piece p of each
 * lane's chunk, so that a load of 16 bytes by 32 lanes has no bank conflict:
 *
 *     piece                       lane 0      lane 1     ...   lane 31     padding
 *     step 0, run 0, word 0       4 values    4 values         4 values    4
 *     step 0, run 0, word 1       4 values    4 values         4 values    4
 *     ...                         (4 words a run, 2 or 4 runs a chunk)
 *
 * For each weight: 0.33 to 1.06 bytes (block bytes / block values), 2 M FLOPs, and with M = 1 about 3.5 instructions:
 * one or two to convert a code to float, one to multiply, and a share of those that load and shift. Sums are in f32;
 * with M = 1 (code - zero) * x is summed over a run first, and that sum multiplied by the scale. NVIDIA's GPUs have
 * fewer instructions to spend on a byte and take 2: with M = 1 the values of A in a run become integers of 23 bits
 * times one power of two, whose three bytes are multiplied by the codes in exact dot products of bytes. That rounds A
 * to within 2^-22 of the run's largest magnitude. For .hip files only. */
#ifndef RDNA_MATH_QUANT_GEMV_H
#define RDNA_MATH_QUANT_GEMV_H

#include "math/gemm/gemv_steps.h"
#include "math/quant/quant_blocks.h"
#include "math/quant/quant_kernels.h"

/* Converts byte |i| of a word from fast_word to float and subtracts the code of 0. AMD has a fast conversion of bytes.
 * NVIDIA has none: there the byte becomes the low bits of the float 2^23 + byte, from which 2^23 is subtracted. */
template <typename weights>
RDNA_DEVICE float fast_code(uint32_t word, int i) {
#ifdef RDNA_NVIDIA
  float shifted = bits_as<float>(__nvvm_prmt(word, 0x4b000000, 0x7650u | (uint32_t)i));
  return shifted - (0x1p23f + (weights::is_signed ? 128.0f : (float)weights::zero));
#else
  return weights::is_signed ? signed_byte_of(word, i) : byte_of(word, i) - (float)weights::zero;
#endif
}
/* Prepares four codes for fast_code: looks them up in a table; on NVIDIA adds 128 to signed ones. */
template <typename weights>
RDNA_DEVICE uint32_t fast_word(uint32_t codes) {
  uint32_t word = weights::look_up(codes);
#ifdef RDNA_NVIDIA
  if constexpr (weights::is_signed) word ^= 0x80808080u;
#endif
  return word;
}

/* Tells the compiler that |p| points to global memory, which it forgets where a struct holds the pointer. */
RDNA_DEVICE const char *in_global_memory(const char *p) {
  return (const char *)(const __attribute__((address_space(1))) char *)p;
}

/* The chunk of a lane: |runs| runs of 16 values that lie |step| values apart. A span (quant_unpack.h) has |parts|
 * chunks; the chunk of each 16 values in it:
 *
 *     span 128 (2 bits; q6_K)    0   1   0   1   0   1   0   1         4 runs, 32 apart
 *     span 64 (q4_K, q5_K)       0   1   0   1                         2 runs, 32 apart
 *     span 32                    0   0                                 2 runs, 16 apart */
template <typename format, bool is_coded = quant_is_coded(format::dtype)>
struct gemv_chunk {
  static constexpr rdna_dtype F = format::dtype;
  static constexpr int span = quant_span(F), runs = span == 128 ? 4 : 2, values = runs * 16;
  static constexpr int parts = span / values, step = span / runs, lows = runs * quant_low_bits(F) / 8;

  /* Neighbouring lanes have the chunks of a block. The first of them loads its head, or where each half of a block has
   * its own words of scales, lanes 0 and 2 load those. Where the high bits are 32 bytes for the whole block
   * (few_highs), the first two lanes load them. share() copies all of it to the other lanes. */
  static constexpr int in_block = format::block_values / values;
  static constexpr bool few_highs = quant_high_bits(F) == 1, of_halves = quant_has_halves(F);

  uint4 low[lows], high;
  uint32_t fifth_bits;
  quant_head head;

  RDNA_DEVICE int first_value(uint32_t chunk) { /* counted within its block */
    return (int)(chunk % in_block / parts * span + chunk % parts * 16);
  }
  /* |whole|: this lane loads what chunks of a block share, too, and there is no share(). */
  template <bool whole = false>
  RDNA_DEVICE gemv_chunk load(const char *row, uint32_t chunk) {
    gemv_chunk c;
    const char *block = in_global_memory(row) + (uint64_t)(chunk / in_block) * (uint32_t)format::block_bytes;
    int v = first_value(chunk);
    uint32_t mine = chunk % in_block;
#pragma unroll
    for (int i = 0; i < lows; ++i) c.low[i] = quad_at<format::alignment>(block + quant_low_at(F, v + i * step));
    if constexpr (quant_has_high(F)) {
      if (whole || !few_highs || mine < 2) c.high = quad_at<format::alignment>(block + quant_high_at(F, v));
    }
    if constexpr (quant_has_fifth_bits(F)) c.fifth_bits = quant_load_32(F, block + quant_fifth_bits_at(F));
    if constexpr (whole) {
      c.head = quant_head_of(F, block, v);
    } else if constexpr (quant_scales(F) == RDNA__SCALES_Q2_K) {
      if (mine == 0) c.head.w[0] = quant_head_of(F, block, v).w[0];
      if (mine % 2 == 0) c.head.w[1] = quant_head_of(F, block, v).w[1], c.head.w[2] = quant_head_of(F, block, v).w[2];
    } else {
      if (of_halves ? mine % 2 == 0 : mine == 0) c.head = quant_head_of(F, block, v);
    }
    return c;
  }
  /* Copies what chunks of a block share from the lanes that loaded it; all lanes of the wave take part. */
  RDNA_MEMBER void share(uint32_t chunk) {
    if constexpr (in_block > 1) {
      uint32_t mine = chunk % in_block, first = lane_id() - mine, pair = lane_id() - mine % 2;
#pragma unroll
      for (int i = 0; i < quant_head_words(F); ++i)
        head.w[i] = wave_shuffle_u32(head.w[i], of_halves && i > 0 ? pair : first);
      if constexpr (few_highs) {
#pragma unroll
        for (int i = 0; i < 4; ++i) high[i] = wave_shuffle_u32(high[i], first + mine % 2);
      }
    }
  }
  /* Shifts head and high bits by what depends on the chunk's place, |first|; runs then differ by constants. */
  RDNA_MEMBER void settle(int first) {
    head = quant_unfold(F, head, first);
    if constexpr (few_highs) high >>= quant_high_shift(F, first);
  }
  /* Four codes, a byte each: word |word| of the 16 codes of run |run|. */
  RDNA_MEMBER uint32_t codes(int run, int word) const {
    int v = run * step;
    uint32_t q = QUANT_LOW_CODES(F, low[run % lows][word], v, 0x01010101u);
    if constexpr (quant_has_high(F)) q |= QUANT_HIGH_CODES(F, high[word], v, 0x01010101u);
    if constexpr (quant_has_fifth_bits(F)) q |= quant_spread_bits(fifth_bits >> (run * 16 + word * 4));
    return q;
  }
  /* Of the run that value |v| is in, counted from the beginning of the half that settle() was for. */
  RDNA_MEMBER quant_scale scale_of(int v) const { return quant_scale_of(F, head, v); }
};

/* The same of a format that quant_coded.h reads: a lane has a run of 32 values, whose codes settle() makes. Of tq1_0,
 * where five runs have their digits in the same 8 words, a lane loads words number |mine| of the 8 and of the 5 behind
 * them, and share() gathers those of its run. */
template <typename format>
struct gemv_chunk<format, true> {
  static constexpr rdna_dtype F = format::dtype;
  static constexpr int span = 32, runs = 2, values = 32, parts = 1, step = 16, in_block = format::block_values / values;

  quant_coded words;
  uint32_t code[8];
  float scale[2];

  RDNA_DEVICE int first_value(uint32_t chunk) { return (int)(chunk % in_block * values); }
  template <bool whole = false>
  RDNA_DEVICE gemv_chunk load(const char *row, uint32_t chunk) {
    gemv_chunk c;
    const char *block = in_global_memory(row) + (uint64_t)(chunk / in_block) * (uint32_t)format::block_bytes;
    uint32_t mine = chunk % in_block;
    if constexpr (F == RDNA_TQ1_0 && whole) {
#pragma unroll
      for (uint32_t i = 0; i < 8; ++i) {
        uint32_t other = mine == 7 && i > 3 ? 4 : i % 4;
        c.words.w[1 + i] = quant_load_32(F, block + (mine < 5 ? 4 * i : 32 + 4 * other));
      }
    } else if constexpr (F == RDNA_TQ1_0) {
      c.words.w[1] = quant_load_32(F, block + 4 * mine);
      if (mine < 5) c.words.w[2] = quant_load_32(F, block + 32 + 4 * mine);
    } else {
      quant_coded_read_run(F, block, (int)mine, &c.words);
    }
    if (whole || mine == 0) quant_coded_read_head(F, block, &c.words);
    return c;
  }
  RDNA_MEMBER void share(uint32_t chunk) {
    uint32_t mine = chunk % in_block, first = lane_id() - mine;
#pragma unroll
    for (int i = 0; i < quant_coded_heads(F); ++i) words.w[i] = wave_shuffle_u32(words.w[i], first);
    if constexpr (F == RDNA_TQ1_0) {
      uint32_t low = words.w[1], high = words.w[2], last = wave_shuffle_u32(high, first + 4);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        uint32_t one = wave_shuffle_u32(low, first + i), other = wave_shuffle_u32(high, first + i % 4);
        words.w[1 + i] = mine < 5 ? one : mine == 7 && i > 3 ? last : other;
      }
    }
  }
  RDNA_MEMBER void settle(int first) {
    int run = first / values;
#pragma unroll
    for (int half = 0; half < 2; ++half) scale[half] = quant_coded_scale(F, &words, run, half);
#pragma unroll
    for (int l = 0; l < 4; ++l) {
      if constexpr (F == RDNA_TQ1_0) {
        code[2 * l] = quant_trits(words.w[1 + 2 * l], quant_trit_digit(run * 8 + 2 * l));
        code[2 * l + 1] = quant_trits(words.w[2 + 2 * l], quant_trit_digit(run * 8 + 2 * l + 1));
      } else {
        quant_eight e = quant_coded_eight(F, &words, l);
        code[2 * l] = e.w[0], code[2 * l + 1] = e.w[1];
      }
    }
  }
  RDNA_MEMBER uint32_t codes(int run, int word) const { return code[4 * run + word]; }
  RDNA_MEMBER quant_scale scale_of(int v) const { return {v / 16 % 2 ? scale[1] : scale[0], 0}; }
};

/* What quant_gemv needs to know of its weights, here rows of blocks. */
template <typename format>
struct block_weights {
  typedef gemv_chunk<format> chunk;
  typedef struct gemm_args args;
  typedef const char *row;
  static constexpr bool has_steps = false;  /* whether args has what stands around a product */
  static constexpr bool has_groups = false; /* whether args is a group_gemm_args */
  static constexpr bool can_gate = false;   /* whether rows may be a gate's and those that it multiplies; lane 0 then
                                               has the gate's sum and lane 1 the other, of which open_gate() makes one */
  static constexpr bool has_least = quant_has_least(format::dtype), is_signed = format::is_signed;
  static constexpr int zero = quant_zero(format::dtype), bits = is_signed ? 8 : quant_bits(format::dtype);
  RDNA_DEVICE const struct gemm_args &product(const args &a) { return a; }
  RDNA_DEVICE row row_of(const args &a, int j) {
    return (const char *)a.b + j * (a.ldb / format::block_values) * format::block_bytes;
  }
  RDNA_DEVICE void finish(const args &a, int i, int j, float sum) {
    float *out = (float *)a.c + i * a.ldc + j;
    *out = gemm_finish1<f32>(a, out, 0, i, j, sum);
  }
  RDNA_DEVICE chunk load(row from, uint32_t index) { return chunk::load(from, index); }
  RDNA_DEVICE void share(chunk &c, row from, uint32_t index) { c.share(index); }
  RDNA_DEVICE quant_scale scale_of(const chunk &c, int v) { return c.scale_of(v); }
  RDNA_DEVICE uint32_t look_up(uint32_t codes) { return format::look_up(codes); }
};

/* The same with a norm before and a gate behind. */
template <typename format>
struct stepped_weights : block_weights<format> {
  typedef struct gemv_args args;
  static constexpr bool has_steps = true, can_gate = true;
  RDNA_DEVICE bool gated(const args &a) { return a.steps.gated; }
  RDNA_DEVICE float open_gate(const args &a, int j, float sum) {
    return gemm_activate(a.product.activation, sum) * wave_shuffle_xor_f32(sum, 1);
  }
  RDNA_DEVICE const struct gemm_args &product(const args &a) { return a.product; }
  RDNA_DEVICE const char *row_of(const args &a, int j) { return block_weights<format>::row_of(a.product, j); }
  RDNA_DEVICE void finish(const args &a, int i, int j, float sum) {
    block_weights<format>::finish(a.product, i, j, sum);
  }
};
template <typename weights>
RDNA_DEVICE const float *norm_of(const typename weights::args &all) {
  if constexpr (weights::has_steps) return all.steps.norm;
  return nullptr;
}
template <typename weights>
RDNA_DEVICE bool is_gated(const typename weights::args &all) {
  if constexpr (weights::can_gate) return weights::gated(all);
  return false;
}
/* How many values of C a set of |rows| rows of B makes for each row of A. */
template <typename weights, int rows>
RDNA_DEVICE int gemv_made(const typename weights::args &all) {
  return is_gated<weights>(all) ? rows / 2 : rows;
}

template <typename weights, int columns>
struct gemv_plan {
  typedef typename weights::chunk chunk;
  /* values of each column in group memory, which together may take 48 KiB */
  static constexpr int tile_k = columns > 4 ? 1024 : columns > 1 ? 2048 : 4096;
  static constexpr int lanes = tile_k / chunk::values < 32 ? tile_k / chunk::values : 32; /* that have a chunk */
  static constexpr int steps = tile_k / chunk::values / lanes, pieces = steps * chunk::runs * 4;
  static constexpr int row = lanes + 1; /* float4 of a piece, and one of padding, which spreads stores over the banks */
  static constexpr int rows = QUANT_GEMV_ROWS;
  static constexpr int sets = QUANT_GEMV_THREADS / 32;
  static constexpr bool ahead = columns <= 4; /* the next step's chunks are in flight */

  /* The index in a tile, in float4, of the four values from value |v| on. */
  RDNA_DEVICE int slot(int v) {
    int in_span = v % chunk::span, run = in_span / chunk::step, part = in_span % chunk::step / 16;
    int at = v / chunk::span * chunk::parts + part;
    return ((at / lanes * chunk::runs + run) * 4 + v / 4 % 4) * row + at % lanes;
  }
};

/* |norm|: of the steps, or NULL; squares of A are added to |squares|. */
template <typename weights, int columns>
RDNA_DEVICE void fill_tile(
    const struct gemm_args &args, const float *norm, int k0,
    float4 (&tile)[columns][gemv_plan<weights, columns>::pieces * gemv_plan<weights, columns>::row], float &squares) {
  typedef gemv_plan<weights, columns> plan;
  constexpr int turns = plan::tile_k / 4 / QUANT_GEMV_THREADS;
#pragma unroll
  for (int c = 0; c < columns; ++c) {
    const float *x = (const float *)args.a + (c < args.m ? c : args.m - 1) * args.lda + k0;
    float4 quad[turns];
#pragma unroll
    for (int i = 0; i < turns; ++i) {
      int v = (i * QUANT_GEMV_THREADS + (int)thread_id()) * 4;
      quad[i] = v < args.k - k0 ? load_f32x4(x + v) : float4{0, 0, 0, 0};
    }
    if (weights::has_steps && norm) {
#pragma unroll
      for (int i = 0; i < turns; ++i) {
        int v = (i * QUANT_GEMV_THREADS + (int)thread_id()) * 4;
        if (v < args.k - k0) quad[i] = gemv_weigh(quad[i], norm + k0 + v, squares);
      }
    }
#pragma unroll
    for (int i = 0; i < turns; ++i) tile[c][plan::slot((i * QUANT_GEMV_THREADS + (int)thread_id()) * 4)] = quad[i];
  }
}

/* Adds the products of one run: each weight is decoded to float once and multiplied by all columns. */
template <typename weights, int columns>
RDNA_DEVICE void multiply_values(const typename weights::chunk (&now)[gemv_plan<weights, columns>::rows], int run,
                                 const quant_scale (&scale)[gemv_plan<weights, columns>::rows], const float4 *x,
                                 float (&sum)[gemv_plan<weights, columns>::rows][columns]) {
  typedef gemv_plan<weights, columns> plan;
  constexpr int rows = plan::rows, column = plan::pieces * plan::row;
#pragma unroll
  for (int word = 0; word < 4; ++word) {
    /* else the compiler loads all of A that a step needs at once, and spills */
    __asm__ volatile("" ::: "memory");
    float w[rows][4];
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      uint32_t q = fast_word<weights>(now[r].codes(run, word));
#pragma unroll
      for (int i = 0; i < 4; ++i) w[r][i] = fma_f32(scale[r].scale, fast_code<weights>(q, i), -scale[r].least);
    }
#pragma unroll
    for (int c = 0; c < columns; ++c) {
      float4 v = x[c * column + word * plan::row];
#pragma unroll
      for (int r = 0; r < rows; ++r)
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[r][c] = fma_f32(w[r][i], v[i], sum[r][c]);
    }
  }
}

/* The same for one column, with fewer operations: sums (code - zero) * x, multiplies it by the scale once, and
 * subtracts the minimum times the sum of x. An infinite x and a code of 0 would make NaN of that where minimum * x is
 * infinite, so runs with such an x go through multiply_values. */
template <typename weights>
RDNA_DEVICE void multiply_codes(const typename weights::chunk (&now)[gemv_plan<weights, 1>::rows], int run,
                                const quant_scale (&scale)[gemv_plan<weights, 1>::rows], const float4 *x,
                                float (&sum)[gemv_plan<weights, 1>::rows][1]) {
  typedef gemv_plan<weights, 1> plan;
  constexpr bool has_least = weights::has_least;
  float part[plan::rows] = {}, x_sum = 0;
#pragma unroll
  for (int word = 0; word < 4; ++word) {
    float4 v = x[word * plan::row];
    if constexpr (has_least) x_sum += (v.x + v.y) + (v.z + v.w);
#pragma unroll
    for (int r = 0; r < plan::rows; ++r) {
      uint32_t q = fast_word<weights>(now[r].codes(run, word));
#pragma unroll
      for (int i = 0; i < 4; ++i) part[r] = fma_f32(fast_code<weights>(q, i), v[i], part[r]);
    }
  }
  if constexpr (has_least) {
    if (!(abs_f32(x_sum) < infinity_f32())) return multiply_values<weights, 1>(now, run, scale, x, sum);
  }
#pragma unroll
  for (int r = 0; r < plan::rows; ++r) {
    sum[r][0] = fma_f32(scale[r].scale, part[r], sum[r][0]);
    if constexpr (has_least) sum[r][0] = fma_f32(-scale[r].least, x_sum, sum[r][0]);
  }
}

#ifdef RDNA_NVIDIA
/* Fills the tile with one row of A, whose runs of 16 become signed integers X of 23 bits: x = X / f for a power of two
 * f of the run. Each four values take 16 bytes as before, here three planes of bytes and a word:
 *
 *     word 0 of a run    top bytes of X0..X3    middle bytes    low bytes    1 / f (a float)
 *     word 1             the same of X4..X7                                  the sum of the run's 16 X
 *     words 2, 3         the same of X8..X11, X12..X15                       unused
 *
 * 1 / f is NaN where one of the run's values is NaN or infinite. Top bytes are signed, the others unsigned. */
template <typename weights>
RDNA_DEVICE void fill_planes(const struct gemm_args &args, const float *norm, int k0,
                             float4 (&tile)[gemv_plan<weights, 1>::pieces * gemv_plan<weights, 1>::row],
                             float &squares) {
  typedef gemv_plan<weights, 1> plan;
  constexpr int turns = plan::tile_k / 4 / QUANT_GEMV_THREADS;
  const float *x = (const float *)args.a + k0;
  float4 quad[turns];
#pragma unroll
  for (int i = 0; i < turns; ++i) {
    int v = (i * QUANT_GEMV_THREADS + (int)thread_id()) * 4;
    quad[i] = v < args.k - k0 ? load_f32x4(x + v) : float4{0, 0, 0, 0};
    if (weights::has_steps && norm && v < args.k - k0) quad[i] = gemv_weigh(quad[i], norm + k0 + v, squares);
  }
#pragma unroll
  for (int i = 0; i < turns; ++i) {
    if (i * QUANT_GEMV_THREADS * 4 >= args.k - k0) break;
    float4 q = quad[i];
    float top = max_f32(max_f32(abs_f32(q.x), abs_f32(q.y)), max_f32(abs_f32(q.z), abs_f32(q.w)));
    top = max_f32(top, wave_shuffle_xor_f32(top, 1));
    top = max_f32(top, wave_shuffle_xor_f32(top, 2));
    uint32_t exponent = max_u32(bits_as<uint32_t>(top) >> 23, 22);
    float f = bits_as<float>((275 - exponent) << 23);
    uint32_t n[4], all = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      asm("cvt.rni.s32.f32 %0, %1;" : "=r"(n[j]) : "f"(q[j] * f));
      all += n[j];
    }
    all += wave_shuffle_xor_u32(all, 1);
    all += wave_shuffle_xor_u32(all, 2);
    uint32_t low01 = __nvvm_prmt(n[0], n[1], 0x5140), low23 = __nvvm_prmt(n[2], n[3], 0x5140);
    uint32_t high01 = __nvvm_prmt(n[0], n[1], 0x0062), high23 = __nvvm_prmt(n[2], n[3], 0x0062);
    uint4 planes = {__nvvm_prmt(high01, high23, 0x5410), __nvvm_prmt(low01, low23, 0x7632),
                    __nvvm_prmt(low01, low23, 0x5410), 0};
    uint32_t number = thread_id() % 4;
    if (number == 0) planes.w = exponent < 255 ? (exponent - 21) << 23 : 0x7fc00000;
    if (number == 1) planes.w = all;
    tile[plan::slot((i * QUANT_GEMV_THREADS + (int)thread_id()) * 4)] = bits_as<float4>(planes);
  }
}

/* c + the sum of products of the unsigned bytes of |a| and the signed bytes of |b|. */
RDNA_DEVICE int32_t dot4_u8_i8(uint32_t a, uint32_t b, int32_t c) {
  int32_t d;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

/* As multiply_codes, with A as fill_planes stores it. |from|: the run's values of A in global memory, which are used
 * where one is NaN or infinite; |norm|: those of the norm, or NULL. */
template <typename weights>
RDNA_DEVICE void multiply_planes(const typename weights::chunk (&now)[gemv_plan<weights, 1>::rows], int run,
                                 const quant_scale (&scale)[gemv_plan<weights, 1>::rows], const float4 *x,
                                 const float *from, const float *norm, float (&sum)[gemv_plan<weights, 1>::rows][1]) {
  typedef gemv_plan<weights, 1> plan;
  int32_t high[plan::rows] = {}, middle[plan::rows] = {}, low[plan::rows] = {}, all = 0;
  float unit = 0;
#pragma unroll
  for (int word = 0; word < 4; ++word) {
    uint4 v = load_shared_16(shared_address(x + word * plan::row));
    if (word == 0) unit = bits_as<float>(v.w);
    if (word == 1) all = (int32_t)v.w;
#pragma unroll
    for (int r = 0; r < plan::rows; ++r) {
      uint32_t q = weights::look_up(now[r].codes(run, word));
      high[r] = dot4_i8((int32_t)v.x, (int32_t)q, high[r]);
      middle[r] = dot4_u8_i8(v.y, q, middle[r]);
      low[r] = dot4_u8_i8(v.z, q, low[r]);
    }
  }
  if (unit != unit) {
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      float4 v = load_f32x4(from + word * 4);
      if (weights::has_steps && norm) v *= load_f32x4(norm + word * 4);
#pragma unroll
      for (int r = 0; r < plan::rows; ++r) {
        uint32_t q = fast_word<weights>(now[r].codes(run, word));
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float w = fma_f32(scale[r].scale, fast_code<weights>(q, i), -scale[r].least);
          sum[r][0] = fma_f32(w, v[i], sum[r][0]);
        }
      }
    }
    return;
  }
#pragma unroll
  for (int r = 0; r < plan::rows; ++r) {
    float part;
    if constexpr (weights::bits < 6) { /* the sum fits 31 bits */
      part = (float)(high[r] * 65536 + middle[r] * 256 + low[r] - weights::zero * all);
    } else {
      part = fma_f32((float)(high[r] * 256 + middle[r]), 256, (float)low[r]);
      if constexpr (weights::zero != 0) part = fma_f32(-(float)weights::zero, (float)all, part);
    }
    sum[r][0] = fma_f32(scale[r].scale * unit, part, sum[r][0]);
    if constexpr (weights::has_least) sum[r][0] = fma_f32(-scale[r].least * unit, (float)all, sum[r][0]);
  }
}
#endif

/* This lane's chunks in the order in which it takes them: those of |rows| rows, then those of the rows of the
 * work-group's next turn. With a gate a set of rows is one of the gate's and the one that it multiplies. */
template <typename weights, int columns>
struct gemv_cursor {
  typedef gemv_plan<weights, columns> plan;
  typename weights::row row[plan::rows];
  int set, at, chunks;

  RDNA_MEMBER void move_to(const typename weights::args &all, int to) {
    int n = weights::product(all).n;
    set = to;
    at = (int)thread_id() % 32;
#pragma unroll
    for (int r = 0; r < plan::rows; ++r) {
      int j = is_gated<weights>(all) ? set : set * plan::rows + r;
      j = j < n ? j : n - 1;
      row[r] = weights::row_of(all, is_gated<weights>(all) ? j + r * n : j);
    }
  }
  RDNA_MEMBER void fetch(const typename weights::args &all, typename weights::chunk (&to)[plan::rows]) {
    if (set * gemv_made<weights, plan::rows>(all) >= weights::product(all).n || at >= chunks) return;
#pragma unroll
    for (int r = 0; r < plan::rows; ++r) to[r] = weights::load(row[r], (uint32_t)at);
    at += plan::lanes;
    if (at < chunks) return;
    move_to(all, set + (int)group_count_x() * plan::sets);
  }
};

/* The norm's root, of a wave's sums over |k|. |squares|: a sum of each wave. */
RDNA_DEVICE float gemv_finish_norm(const struct gemv_steps &steps, int k, const float *squares, float sum) {
  if (!steps.norm) return sum;
  float all = 0;
#pragma unroll
  for (int w = 0; w < QUANT_GEMV_THREADS / (int)WAVE_SIZE; ++w) all += squares[w];
  return sum * gemv_norm_scale(steps, k, all);
}
/* Integers in groups have arguments enough for scalar registers to be too few with 8 columns in waves of 32 lanes too.
 */
template <typename weights, int columns>
RDNA_DEVICE const typename weights::args &gemv_arguments_again(const typename weights::args &every) {
  if constexpr (weights::has_groups && columns == 8) return arguments_again(every);
  return arguments_again_wide(every);
}

template <typename weights, int columns>
RDNA_DEVICE void quant_gemv(const typename weights::args &every) {
  typedef gemv_plan<weights, columns> plan;
  typedef typename weights::chunk chunk;
  constexpr int rows = plan::rows;
  RDNA_SHARED __attribute__((aligned(16))) float4 tile[columns][plan::pieces * plan::row];
  int lane = (int)thread_id() % 32, set_in_group = (int)(thread_id() / 32);
  int chunks = weights::product(every).k / chunk::values;
  int of_group = plan::sets * gemv_made<weights, rows>(every);
  int groups = (weights::product(every).n + of_group - 1) / of_group;
  RDNA_SHARED float squares[weights::has_steps ? QUANT_GEMV_THREADS / WAVE_SIZE : 1];
  float square = 0;
  gemv_cursor<weights, columns> cursor;
  cursor.chunks = lane < plan::lanes ? chunks : 0;
  cursor.move_to(every, (int)group_id_x() * plan::sets + set_in_group);
  chunk next[rows] = {}; /* sets without a row compute with it, for nothing, and find addresses in it */
  if constexpr (plan::ahead) cursor.fetch(every, next);

#pragma unroll 1
  for (int group = (int)group_id_x(); group < groups; group += (int)group_count_x()) {
    const typename weights::args &all = gemv_arguments_again<weights, columns>(every);
    const struct gemm_args &args = weights::product(all);
    float sum[rows][columns] = {};
    for (int k0 = 0; k0 < args.k; k0 += plan::tile_k) {
      /* an A that fits the tile is loaded on the first turn only */
      if (args.k > plan::tile_k || group == (int)group_id_x()) {
        const float *norm = norm_of<weights>(all);
        group_barrier();
#ifdef RDNA_NVIDIA
        if constexpr (columns == 1) {
          fill_planes<weights>(args, norm, k0, tile[0], square);
        } else {
          fill_tile<weights, columns>(args, norm, k0, tile, square);
        }
#else
        fill_tile<weights, columns>(args, norm, k0, tile, square);
#endif
        if (weights::has_steps && norm && group == (int)group_id_x()) { /* of all of A after the last tile */
          float all_lanes = wave_sum_f32(square);
          if (lane_id() == 0) squares[wave_id()] = all_lanes;
        }
        group_barrier();
      }
#pragma unroll 1
      for (int s = 0; s < plan::steps && k0 / chunk::values + s * plan::lanes < chunks; ++s) {
        int at = k0 / chunk::values + s * plan::lanes + lane;
        bool there = at < chunks && lane < plan::lanes;
        chunk now[rows];
        if (there) {
          if constexpr (!plan::ahead) cursor.fetch(all, next);
#pragma unroll
          for (int r = 0; r < rows; ++r) now[r] = next[r];
          if constexpr (plan::ahead) cursor.fetch(all, next);
        }
#pragma unroll
        for (int r = 0; r < rows; ++r) weights::share(now[r], cursor.row[r], (uint32_t)at);
        if (!there) continue;
        int first = chunk::first_value((uint32_t)at), part_at = chunk::span == 128 ? first % 32 : first % 128;
#pragma unroll
        for (int r = 0; r < rows; ++r) now[r].settle(first);
#pragma unroll
        for (int run = 0; run < chunk::runs; ++run) {
          quant_scale scale[rows];
#pragma unroll
          for (int r = 0; r < rows; ++r) scale[r] = weights::scale_of(now[r], part_at + run * chunk::step);
          const float4 *x = &tile[0][(s * chunk::runs + run) * 4 * plan::row + lane];
          if constexpr (columns == 1) {
#ifdef RDNA_NVIDIA
            const float *from = (const float *)args.a + at / chunk::in_block * (chunk::in_block * chunk::values);
            const float *norm = norm_of<weights>(all);
            if (norm) norm += from - (const float *)args.a + first + run * chunk::step;
            multiply_planes<weights>(now, run, scale, x, from + first + run * chunk::step, norm, sum);
#else
            multiply_codes<weights>(now, run, scale, x, sum);
#endif
          } else {
            multiply_values<weights, columns>(now, run, scale, x, sum);
          }
        }
      }
    }

    const typename weights::args &now = gemv_arguments_again<weights, columns>(every);
    /* a lane for each result */
    float mine = 0;
#pragma unroll
    for (int i = 0; i < rows * columns; ++i) {
      float v = sum[i / columns][i % columns];
#pragma unroll
      for (uint32_t mask = 1; mask < 32; mask *= 2) v += wave_shuffle_xor_f32(v, mask);
      mine = lane == i ? v : mine;
    }
    int made = gemv_made<weights, rows>(now);
    if constexpr (weights::has_steps) mine = gemv_finish_norm(now.steps, weights::product(now).k, squares, mine);
    int first = (group * plan::sets + set_in_group) * made, c = lane % columns, j = first + lane / columns;
    if constexpr (weights::can_gate) {
      if (is_gated<weights>(now)) mine = weights::open_gate(now, first, mine);
    }
    if (lane < made * columns && c < weights::product(now).m && j < weights::product(now).n)
      weights::finish(now, c, j, mine);
  }
}

#endif
