/* Device code: products of quantized weights with few rows of activations, as decoding a token needs: the weights are
 * read once, and their bytes are what the time goes to.
 *
 * A set of 32 lanes makes |rows| rows of B at once, with |columns| rows of A. A lane's step is a chunk of a row: 16
 * bytes of low bits, or 32, and what else their 32 or 64 values need, which fall into runs of 16 that share a scale.
 * What several chunks of a block need is loaded by the first of their lanes, and handed on, so that each byte is loaded
 * once. The next step's bytes are in flight while this one's are multiplied. A lies in LDS, a tile of k at a time, in
 * the order in which lanes take it: piece p of 4 values of every lane's chunk in one row, so that a load of 16 bytes by
 * 32 lanes meets no bank twice.
 *
 * For each value: the bytes of its block / values (0.33 to 1.06), 2 M FLOPs, and with M = 1 about 3.5 instructions:
 * one or two to make a float of a code, one to multiply, and a part of those that load and shift. Sums are in f32, of
 * (code - zero) * x over a run first, which the scale then multiplies. NVIDIA's GPUs, which have fewer instructions to
 * spend on a byte, take 2: with M = 1 each run of A becomes integers of 23 bits under one power of two, and their three
 * bytes meet the codes in exact dot products of bytes. That is A to within 2^-22 of the run's largest. For .hip files
 * only. */
#ifndef RDNA_MATH_QUANT_GEMV_H
#define RDNA_MATH_QUANT_GEMV_H

#include "math/quant/quant_blocks.h"
#include "math/quant/quant_kernels.h"

/* A code as a float, less the code of 0: NVIDIA puts its byte under the exponent of 2^23, and has no fast conversion;
 * AMD has one for unsigned bytes. */
template <typename weights>
RDNA_DEVICE float fast_code(uint32_t word, int i) {
#ifdef RDNA_NVIDIA
  float shifted = bits_as<float>(__nvvm_prmt(word, 0x4b000000, 0x7650u | (uint32_t)i));
  return shifted - (0x1p23f + (weights::is_signed ? 128.0f : (float)weights::zero));
#else
  return weights::is_signed ? signed_byte_of(word, i) : byte_of(word, i) - (float)weights::zero;
#endif
}
/* Codes as fast_code wants them. */
template <typename weights>
RDNA_DEVICE uint32_t fast_word(uint32_t codes) {
  uint32_t word = weights::look_up(codes);
#ifdef RDNA_NVIDIA
  if constexpr (weights::is_signed) word ^= 0x80808080u;
#endif
  return word;
}

/* A pointer that the compiler knows to be one to global memory, wherever it was kept. */
RDNA_DEVICE const char *in_global_memory(const char *p) {
  return (const char *)(const __attribute__((address_space(1))) char *)p;
}

/* Which values share bytes: |runs| runs of 16, |step| apart, |parts| times in |span| values. */
template <typename format>
struct gemv_chunk {
  static constexpr rdna_dtype F = format::dtype;
  static constexpr int span = quant_span(F), runs = span == 128 ? 4 : 2, values = runs * 16;
  static constexpr int parts = span / values, step = span / runs, lows = runs * quant_low_bits(F) / 8;

  /* Neighbouring lanes have the chunks of a block: the first of them has its head, the first two the high bits that
   * serve all; where each half of a block has scales of its own, lanes 0 and 2 have them. */
  static constexpr int in_block = format::block_values / values;
  static constexpr bool few_highs = quant_high_bits(F) == 1, of_halves = quant_has_halves(F);

  uint4 low[lows], high;
  uint32_t fifth_bits;
  quant_head head;

  RDNA_DEVICE int first_value(uint32_t chunk) { /* of its block */
    return (int)(chunk % in_block / parts * span + chunk % parts * 16);
  }
  RDNA_DEVICE gemv_chunk load(const char *row, uint32_t chunk) {
    gemv_chunk c;
    const char *block = in_global_memory(row) + (uint64_t)(chunk / in_block) * (uint32_t)format::block_bytes;
    int v = first_value(chunk);
    uint32_t mine = chunk % in_block;
#pragma unroll
    for (int i = 0; i < lows; ++i) c.low[i] = quad_at<format::alignment>(block + quant_low_at(F, v + i * step));
    if constexpr (quant_has_high(F)) {
      if (!few_highs || mine < 2) c.high = quad_at<format::alignment>(block + quant_high_at(F, v));
    }
    if constexpr (quant_has_fifth_bits(F)) c.fifth_bits = quant_load_32(F, block + quant_fifth_bits_at(F));
    if constexpr (quant_scales(F) == RDNA__SCALES_Q2_K) {
      if (mine == 0) c.head.w[0] = quant_head_of(F, block, v).w[0];
      if (mine % 2 == 0) c.head.w[1] = quant_head_of(F, block, v).w[1], c.head.w[2] = quant_head_of(F, block, v).w[2];
    } else {
      if (of_halves ? mine % 2 == 0 : mine == 0) c.head = quant_head_of(F, block, v);
    }
    return c;
  }
  /* Hands on what is shared, to lanes that have neighbouring chunks; all lanes of the wave take part. */
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
  /* After it what the runs differ in is known to the compiler. */
  RDNA_MEMBER void settle(int first) {
    head = quant_unfold(F, head, first);
    if constexpr (few_highs) high >>= quant_high_shift(F, first);
  }
  /* Word |word| of the codes of run |run|. */
  RDNA_MEMBER uint32_t codes(int run, int word) const {
    int v = run * step;
    uint32_t q = QUANT_LOW_CODES(F, low[run % lows][word], v, 0x01010101u);
    if constexpr (quant_has_high(F)) q |= QUANT_HIGH_CODES(F, high[word], v, 0x01010101u);
    if constexpr (quant_has_fifth_bits(F)) q |= quant_spread_bits(fifth_bits >> (run * 16 + word * 4));
    return q;
  }
};

/* What quant_gemv asks of weights; here, of rows of blocks. */
template <typename format>
struct block_weights {
  typedef gemv_chunk<format> chunk;
  typedef struct gemm_args args;
  typedef const char *row;
  static constexpr bool has_least = quant_has_least(format::dtype), is_signed = format::is_signed;
  static constexpr int zero = quant_zero(format::dtype), bits = is_signed ? 8 : quant_bits(format::dtype);
  RDNA_DEVICE const struct gemm_args &product(const args &a) { return a; }
  RDNA_DEVICE row row_of(const args &a, int j) {
    return (const char *)a.b + j * (a.ldb / format::block_values) * format::block_bytes;
  }
  RDNA_DEVICE chunk load(row from, uint32_t index) { return chunk::load(from, index); }
  RDNA_DEVICE void share(chunk &c, row from, uint32_t index) { c.share(index); }
  RDNA_DEVICE quant_scale scale_of(const chunk &c, int v) { return quant_scale_of(format::dtype, c.head, v); }
  RDNA_DEVICE uint32_t look_up(uint32_t codes) { return format::look_up(codes); }
};

template <typename weights, int columns>
struct gemv_plan {
  typedef typename weights::chunk chunk;
  /* what LDS holds of each column; more would be more than 48 KiB */
  static constexpr int tile_k = columns > 4 ? 1024 : columns > 1 ? 2048 : 4096;
  static constexpr int lanes = tile_k / chunk::values < 32 ? tile_k / chunk::values : 32; /* that have a chunk */
  static constexpr int steps = tile_k / chunk::values / lanes, pieces = steps * chunk::runs * 4;
  static constexpr int row = lanes + 1; /* quads of a piece, and one so that stores spread over the banks too */
  static constexpr int rows = QUANT_GEMV_ROWS;
  static constexpr int sets = QUANT_GEMV_THREADS / 32;
  static constexpr bool ahead = columns <= 4; /* the next step's chunks are in flight */

  /* Where the quad at value |v| of a tile lies. */
  RDNA_DEVICE int slot(int v) {
    int in_span = v % chunk::span, run = in_span / chunk::step, part = in_span % chunk::step / 16;
    int at = v / chunk::span * chunk::parts + part;
    return ((at / lanes * chunk::runs + run) * 4 + v / 4 % 4) * row + at % lanes;
  }
};

template <typename weights, int columns>
RDNA_DEVICE void fill_tile(
    const struct gemm_args &args, int k0,
    float4 (&tile)[columns][gemv_plan<weights, columns>::pieces * gemv_plan<weights, columns>::row]) {
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
#pragma unroll
    for (int i = 0; i < turns; ++i) tile[c][plan::slot((i * QUANT_GEMV_THREADS + (int)thread_id()) * 4)] = quad[i];
  }
}

/* Adds the products of a run of weights' values, once made for all columns. */
template <typename weights, int columns>
RDNA_DEVICE void multiply_values(const typename weights::chunk (&now)[gemv_plan<weights, columns>::rows], int run,
                                 const quant_scale (&scale)[gemv_plan<weights, columns>::rows], const float4 *x,
                                 float (&sum)[gemv_plan<weights, columns>::rows][columns]) {
  typedef gemv_plan<weights, columns> plan;
  constexpr int rows = plan::rows, column = plan::pieces * plan::row;
#pragma unroll
  for (int word = 0; word < 4; ++word) {
    /* or the compiler would load all of A that a step needs at once, and spill */
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

/* The same for one column: the codes' products first, then once the scale, and the minimum times the sum of A. That
 * would make NaN of an infinite A and a code of 0, which stands for the minimum. */
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
/* Runs of one row of A as integers X of 23 bits, x = X / f for a power of two f: quad i of a run has the three bytes of
 * its four X in x, y, z, the highest first; w of quad 0 is 1 / f, of quad 1 the sum of the run's X. 1 / f is NaN where
 * a value is none or infinite. */
template <typename weights>
RDNA_DEVICE void fill_planes(const struct gemm_args &args, int k0,
                             float4 (&tile)[gemv_plan<weights, 1>::pieces * gemv_plan<weights, 1>::row]) {
  typedef gemv_plan<weights, 1> plan;
  constexpr int turns = plan::tile_k / 4 / QUANT_GEMV_THREADS;
  const float *x = (const float *)args.a + k0;
  float4 quad[turns];
#pragma unroll
  for (int i = 0; i < turns; ++i) {
    int v = (i * QUANT_GEMV_THREADS + (int)thread_id()) * 4;
    quad[i] = v < args.k - k0 ? load_f32x4(x + v) : float4{0, 0, 0, 0};
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

/* c + the products of unsigned bytes with signed ones. */
RDNA_DEVICE int32_t dot4_u8_i8(uint32_t a, uint32_t b, int32_t c) {
  int32_t d;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

/* As multiply_codes, of planes; |from| is where the run's values of A are in memory. */
template <typename weights>
RDNA_DEVICE void multiply_planes(const typename weights::chunk (&now)[gemv_plan<weights, 1>::rows], int run,
                                 const quant_scale (&scale)[gemv_plan<weights, 1>::rows], const float4 *x,
                                 const float *from, float (&sum)[gemv_plan<weights, 1>::rows][1]) {
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

/* The chunks that this lane's set of lanes takes, in order: of |rows| rows, then of those of the group's next turn. */
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
      int j = set * plan::rows + r;
      row[r] = weights::row_of(all, j < n ? j : n - 1);
    }
  }
  RDNA_MEMBER void fetch(const typename weights::args &all, typename weights::chunk (&to)[plan::rows]) {
    if (set * plan::rows >= weights::product(all).n || at >= chunks) return;
#pragma unroll
    for (int r = 0; r < plan::rows; ++r) to[r] = weights::load(row[r], (uint32_t)at);
    at += plan::lanes;
    if (at >= chunks) move_to(all, set + (int)group_count_x() * plan::sets);
  }
};

template <typename weights, int columns>
RDNA_DEVICE void quant_gemv(const typename weights::args &every) {
  typedef gemv_plan<weights, columns> plan;
  typedef typename weights::chunk chunk;
  constexpr int rows = plan::rows;
  RDNA_SHARED __attribute__((aligned(16))) float4 tile[columns][plan::pieces * plan::row];
  int lane = (int)thread_id() % 32, set_in_group = (int)(thread_id() / 32);
  int chunks = weights::product(every).k / chunk::values;
  int groups = (weights::product(every).n + plan::sets * rows - 1) / (plan::sets * rows);
  gemv_cursor<weights, columns> cursor;
  cursor.chunks = lane < plan::lanes ? chunks : 0;
  cursor.move_to(every, (int)group_id_x() * plan::sets + set_in_group);
  chunk next[rows];
  if constexpr (plan::ahead) cursor.fetch(every, next);

#pragma unroll 1
  for (int group = (int)group_id_x(); group < groups; group += (int)group_count_x()) {
    const typename weights::args &all = arguments_again_wide(every);
    const struct gemm_args &args = weights::product(all);
    float sum[rows][columns] = {};
    for (int k0 = 0; k0 < args.k; k0 += plan::tile_k) {
      /* an A that fits is there for good */
      if (args.k > plan::tile_k || group == (int)group_id_x()) {
        group_barrier();
#ifdef RDNA_NVIDIA
        if constexpr (columns == 1) {
          fill_planes<weights>(args, k0, tile[0]);
        } else {
          fill_tile<weights, columns>(args, k0, tile);
        }
#else
        fill_tile<weights, columns>(args, k0, tile);
#endif
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
            multiply_planes<weights>(now, run, scale, x, from + first + run * chunk::step, sum);
#else
            multiply_codes<weights>(now, run, scale, x, sum);
#endif
          } else {
            multiply_values<weights, columns>(now, run, scale, x, sum);
          }
        }
      }
    }

    const struct gemm_args &now = weights::product(arguments_again_wide(every));
    /* a lane for each result */
    float mine = 0;
#pragma unroll
    for (int i = 0; i < rows * columns; ++i) {
      float v = sum[i / columns][i % columns];
#pragma unroll
      for (uint32_t mask = 1; mask < 32; mask *= 2) v += wave_shuffle_xor_f32(v, mask);
      mine = lane == i ? v : mine;
    }
    int c = lane % columns, j = (group * plan::sets + set_in_group) * rows + lane / columns;
    if (lane >= rows * columns || c >= now.m || j >= now.n) continue;
    float *out = (float *)now.c + c * now.ldc + j;
    *out = gemm_finish1<f32>(now, out, 0, c, j, mine);
  }
}

#endif
