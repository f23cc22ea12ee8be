/* Device code: products of quantized weights with one row of activations on NVIDIA's GPUs of compute capability 9.0,
 * whose memory delivers about 20 bytes a clock to each multiprocessor.
 *
 * A work-group multiplies a set of 16 rows of B at a time, in slabs of 2048 values of k. Each of its 8 waves takes a
 * tile of a slab:
 *
 *                    |<-------------- slab 0: 2048 values of k -------------->| slab 1 ...
 *     16 rows of B   | tile of wave 0 | tile of wave 1 | ... | tile of wave 7 |
 *                       256 values
 *
 * Slabs go from global to shared memory by bulk copies, one for each row, up to 4 slabs (stages) ahead of the
 * arithmetic: the 2 work-groups of a multiprocessor have 75 to 150 KB in flight. Bulk copies want rows at multiples of
 * 16 bytes that end at a tile's end. Where they do not, each wave loads its tile just before it multiplies it
 * ("loose").
 *
 * A tile of A becomes signed integers X of 31 bits times one power of two, X = 2^24 b3 + 2^16 b2 + 2^8 b1 + b0 with
 * signed bytes b. The matrix unit's instruction m16n8k32 multiplies 16 rows of codes by 8 columns of such bytes, 32
 * values of k at once, exactly:
 *
 *     column                 0    1    2    3    4    5    6    7
 *     scales of 32 values    b3   b2   b1   b0   b3   b2   b1   b0    4 to 7 are not used
 *     scales of 16 values    b3   b2   b1   b0   b3   b2   b1   b0    0 to 3: zeros for values 16 to 31
 *                                                                     4 to 7: zeros for values 0 to 15
 *
 * A lane then holds two neighbouring columns for 2 rows: it joins them to one float and multiplies that by the scale.
 * This rounds A to within 2^-30 of the largest magnitude in its tile. Minimums are multiplied by sums of A, two lanes
 * to a row.
 *
 * For 512 values of B: 1 matrix instruction, and about 25 others of a wave. For .hip files only. */
#ifndef RDNA_MATH_QUANT_NVIDIA_QUANT_GEMV_MMA_H
#define RDNA_MATH_QUANT_NVIDIA_QUANT_GEMV_MMA_H

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#include "math/gemm/gemv_steps.h"
#include "math/quant/quant_blocks.h"
#include "math/quant/quant_kernels.h"

template <typename format>
struct tiled_plan {
  static constexpr rdna_dtype F = format::dtype;
  static constexpr int rows = 16, waves = QUANT_GEMV_THREADS / 32, tile_k = 256;
  static constexpr int tile_bytes = tile_k / format::block_values * format::block_bytes;
  static constexpr int slab_bytes = waves * tile_bytes;
  /* Bytes from row to row of a slab in shared memory: an odd number of units of 16 bytes, so that 8 rows have no bank
   * conflict. loose_pitch: the same for a tile alone, of loose_units units, as it may begin within a unit. */
  static constexpr int pitch = (slab_bytes / 16 | 1) * 16, stage_bytes = rows * pitch;
  static constexpr int loose_units = (tile_bytes + 15 + 16 - format::alignment) / 16,
                       loose_pitch = (loose_units | 1) * 16;
  /* Values that share a scale. */
  static constexpr int run = quant_run(F), runs = tile_k / run;
  static constexpr bool has_least = quant_has_least(F);
  /* Whether codes are centred: the code of 0 is half of all codes, and (code - zero) * 2^up fills a signed byte. */
  static constexpr bool is_centred = quant_zero(F) != 0;
  static constexpr int up = is_centred ? 8 - quant_bits(F) : 0;

  /* A tile of A in shared memory has 8 blocks of 32 values, each 4 planes (b3 to b0) of 32 bytes and 16 bytes of
   * padding against bank conflicts. A wave converts |own| tiles. Shared memory, by byte offsets from its beginning:
   *
   *     0          units_at            sums_at     parts_at            barriers_at        squares_at   stages_at
   *     | A tiles  | 1 / f, by tile    | A's sums  | results, by wave  | full, then done  | by wave    | slabs of B */
  static constexpr int own = 3, a_tiles = own * waves, block_pitch = 144, a_bytes = 8 * block_pitch;
  static constexpr int sum_bytes = has_least ? runs * 4 : 0;
  static constexpr int units_at = a_tiles * a_bytes, sums_at = units_at + a_tiles * 16;
  static constexpr int parts_at = sums_at + a_tiles * sum_bytes, barriers_at = parts_at + 2 * waves * rows * 4;
  static constexpr int squares_at = barriers_at + 2 * 4 * 8;
  static constexpr int stages_at = (squares_at + waves * 4 + 127) / 128 * 128;
  static constexpr int most = (QUANT_GEMV_SHARED - stages_at) / stage_bytes, stages = most < 4 ? most : 4;
  static_assert(stages >= 2 && stages * stage_bytes >= waves * rows * loose_pitch, "room for what is under way");
};

/* Barriers in shared memory: they complete when the expected bytes or the expected number of waves have arrived. */
RDNA_DEVICE void barrier_make(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
RDNA_DEVICE void barriers_made(void) { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
RDNA_DEVICE void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
RDNA_DEVICE void barrier_expect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
RDNA_DEVICE void barrier_wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n\t.reg .pred done;\n"
      "again:\n\tmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t@!done bra again;\n\t}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
/* Starts a copy of |bytes| from global to shared memory, whose arrival counts on |barrier|. |bytes| and both addresses
 * are multiples of 16. */
RDNA_DEVICE void copy_bulk(uint32_t to, const char *from, uint32_t bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}
/* Starts a copy of |bytes| of 16 to shared memory, with zeros for the rest. */
RDNA_DEVICE void copy_part_16(uint32_t to, uint64_t from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

/* Row |r| of a set of 16 rows of B, or past them the last. With a gate 8 are the gate's and 8 those that it multiplies.
 */
RDNA_DEVICE int tiled_row(const struct gemv_args &all, int set, int r) {
  int n = all.product.n, j = all.steps.gated ? set * 8 + r % 8 : set * 16 + r;
  j = j < n ? j : n - 1;
  return all.steps.gated && r >= 8 ? j + n : j;
}
/* How many values of C a set makes. */
RDNA_DEVICE int tiled_made(const struct gemv_args &all) { return all.steps.gated ? 8 : 16; }

/* This wave's tiles of A, tile |first| + wave and every eighth after it: loaded, then stored as planes of bytes. With a
 * norm A's squares are added to |square|. */
template <typename format>
struct tiled_a {
  typedef tiled_plan<format> plan;
  float4 q[plan::own][2];
  RDNA_MEMBER void load(const struct gemv_args &all, int first, float &square) {
    const struct gemm_args &args = all.product;
    const float *norm = all.steps.norm;
    int lane = (int)thread_id() % 32, wave = (int)thread_id() / 32, block = lane % 8, part = lane / 8;
#pragma unroll
    for (int i = 0; i < plan::own; ++i) {
      int v = (first + wave + i * plan::waves) * plan::tile_k + block * 32 + part * 8;
      const float *x = (const float *)args.a + v;
      q[i][0] = q[i][1] = float4{0, 0, 0, 0};
      if (v < args.k) q[i][0] = load_f32x4(x), q[i][1] = load_f32x4(x + 4);
      if (norm && v < args.k) {
        q[i][0] = gemv_weigh(q[i][0], norm + v, square);
        q[i][1] = gemv_weigh(q[i][1], norm + v + 4, square);
      }
    }
  }
  /* Stores tiles as planes of bytes, and for each 1 / f: x = X / f for a power of two f. 1 / f is NaN where one of the
   * values is NaN or infinite. */
  RDNA_MEMBER void store(int tiles, uint8_t *memory) const {
    int wave = (int)thread_id() / 32;
#pragma unroll
    for (int i = 0; i < plan::own; ++i)
      if (wave + i * plan::waves < tiles) store_tile(q[i], wave + i * plan::waves, memory);
  }
  RDNA_DEVICE void store_tile(const float4 (&q)[2], int i, uint8_t *memory) {
    int lane = (int)thread_id() % 32, block = lane % 8, part = lane / 8;
    uint32_t top = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) top = max_u32(top, bits_as<uint32_t>((float)q[j / 4][j % 4]) & 0x7fffffff);
    top = wave_max_u32(top);
    uint32_t exponent = max_u32(top >> 23, 30);
    float f = bits_as<float>((283 - exponent) << 23), unit = bits_as<float>((exponent - 29) << 23), sum = 0;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      uint32_t n[4], planes[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        int32_t whole;
        asm("cvt.rni.s32.f32 %0, %1;" : "=r"(whole) : "f"(q[h][j] * f));
        n[j] = ((uint32_t)whole + 0x808080u) ^ 0x808080u;
        sum += (float)whole;
      }
      uint32_t low01 = __nvvm_prmt(n[0], n[1], 0x5140), low23 = __nvvm_prmt(n[2], n[3], 0x5140);
      uint32_t high01 = __nvvm_prmt(n[0], n[1], 0x7362), high23 = __nvvm_prmt(n[2], n[3], 0x7362);
      planes[0] = __nvvm_prmt(high01, high23, 0x7632), planes[1] = __nvvm_prmt(high01, high23, 0x5410);
      planes[2] = __nvvm_prmt(low01, low23, 0x7632), planes[3] = __nvvm_prmt(low01, low23, 0x5410);
      /* a lane of the matrix unit takes words i and i + 4 of a plane: they are stored side by side */
      int word = part * 2 + h, at = word % 4 * 2 + word / 4;
#pragma unroll
      for (int p = 0; p < 4; ++p)
        *(uint32_t *)(memory + i * plan::a_bytes + block * plan::block_pitch + p * 32 + at * 4) = planes[p];
    }
    if (lane == 0) *(float *)(memory + plan::units_at + i * 16) = exponent < 255 ? unit : __builtin_nanf("");
    if constexpr (plan::has_least) {
      sum += wave_shuffle_xor_f32(sum, 8);
      if (plan::run == 32) sum += wave_shuffle_xor_f32(sum, 16);
      if (plan::run == 32 ? part == 0 : part % 2 == 0)
        *(float *)(memory + plan::sums_at + i * plan::sum_bytes + (block * 32 / plan::run + part / 2) * 4) = sum;
    }
  }
};

/* Loads bytes |at| to at + 3 from |p| in shared memory. |phase|: the address of |p| modulo 4, or -1: it may be any. */
template <int phase>
RDNA_DEVICE uint32_t shared_word(const uint8_t *p, int at) {
  if constexpr (phase >= 0) {
    int over = (at + phase) % 4;
    const uint32_t *word = (const uint32_t *)(p - phase + (at + phase - over));
    return over == 0 ? word[0] : funnel_shift(word[0], word[1], (uint32_t)over * 8);
  } else {
    uint32_t from = shared_address(p) + (uint32_t)at;
    typedef const __attribute__((address_space(3))) uint32_t *word;
    return funnel_shift(*(word)(uintptr_t)(from & ~3u), *(word)(uintptr_t)((from + 3) & ~3u), from % 4 * 8);
  }
}

/* The codes of four values of a tile's row, from value v + 4 |part| on. The row begins 4 |part| bytes before |row|. */
template <typename format, int phase>
RDNA_DEVICE uint32_t four_codes(const uint8_t *row, int v, int part) {
  typedef tiled_plan<format> plan;
  constexpr rdna_dtype F = format::dtype;
  int block = v / format::block_values * format::block_bytes, at = v % format::block_values;
  uint32_t q = QUANT_LOW_CODES(F, shared_word<phase>(row, block + quant_low_at(F, at)), at, 0x01010101u);
  if constexpr (quant_has_high(F))
    q |= QUANT_HIGH_CODES(F, shared_word<phase>(row, block + quant_high_at(F, at)), at, 0x01010101u);
  if constexpr (quant_has_fifth_bits(F))
    q |= quant_spread_bits(shared_word<phase>(row - part * 4, block + quant_fifth_bits_at(F)) >> (at + part * 4));
  return plan::is_centred ? q << plan::up ^ 0x80808080u : format::look_up(q);
}

/* c += codes of 16 rows (a) by 8 columns of bytes of A (b), 32 values of k. */
template <bool is_signed>
RDNA_DEVICE void multiply_32(int32_t (&c)[4], const uint32_t (&a)[4], uint2 b) {
  if constexpr (is_signed)
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"((uint32_t)b.x), "r"((uint32_t)b.y));
  else
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"((uint32_t)b.x), "r"((uint32_t)b.y));
}
/* This lane's sums over a tile, still without A's power of two. of: its two columns joined, for rows lane / 4 and
 * lane / 4 + 8. least: the minimums' part, over half of row lane / 2. */
struct tiled_sums {
  float of[2], least;
};

/* Multiplies a tile of 16 rows by a tile |a| of A. In shared memory |low| is row lane / 4, |high| row lane / 4 + 8, and
 * |mine| row lane / 2, whose scales this lane decodes. |sums|: sums of A over runs. */
template <typename format, int phase>
RDNA_DEVICE tiled_sums multiply_tile(const uint8_t *low, const uint8_t *high, const uint8_t *mine, const uint8_t *a,
                                     const uint8_t *sums) {
  typedef tiled_plan<format> plan;
  constexpr rdna_dtype F = format::dtype;
  constexpr bool is_signed = format::is_signed || plan::is_centred, halved = plan::run == 16;
  constexpr int own = plan::runs / 2;
  int lane = (int)thread_id() % 32, row = lane / 4, part = lane % 4, which = lane % 2;
  tiled_sums out = {{0, 0}, 0};
  /* Lanes 2 r and 2 r + 1 decode the scales of row r: the first of values 0 to 127 and the second of the others; with
   * runs of 16, of even and of odd runs. */
  float scale[own];
  const char *blocks = (const char *)mine;
  quant_head head[2] = {};
  if constexpr (format::block_values == 256) {
    head[0] = quant_head_of(F, blocks, halved ? 0 : which * 128);
    if constexpr (quant_scales(F) != RDNA__SCALES_IQ4_XS) head[0] = quant_unfold(F, head[0], halved ? 0 : which * 128);
    if constexpr (halved) head[1] = quant_unfold(F, quant_head_of(F, blocks, 128), 128);
  }
#pragma unroll
  for (int j = 0; j < own; ++j) {
    quant_scale s;
    if constexpr (format::block_values == 32)
      s = quant_scale_of(F, quant_head_of(F, blocks + (which * 4 + j) * format::block_bytes, 0), 0);
    else if constexpr (quant_scales(F) == RDNA__SCALES_IQ4_XS)
      s = quant_scale_of(F, quant_unfold(F, head[0], which * 128 + j * 32), 0);
    else if constexpr (halved)
      s = quant_scale_of(F, head[j / 4], j % 4 * 32 + which * 16);
    else
      s = quant_scale_of(F, head[0], j * 32);
    scale[j] = s.scale;
    if constexpr (plan::has_least)
      out.least = fma_f32(s.least, *(const float *)(sums + (halved ? j * 2 + which : which * own + j) * 4), out.least);
  }
  const uint8_t *low_part = low + part * 4, *high_part = high + part * 4, *b_part = a + row % 4 * 32 + part * 8;
#pragma unroll
  for (int block = 0; block < 8; ++block) {
    uint2 b = load_as<uint2>(b_part + block * plan::block_pitch);
    /* with runs of 16: even runs in columns 0 to 3, odd ones in columns 4 to 7 */
    if constexpr (halved) b = row < 4 ? uint2{b.x, 0} : uint2{0, b.y};
    int v = block * 32;
    uint32_t codes[4] = {four_codes<format, phase>(low_part, v, part), four_codes<format, phase>(high_part, v, part),
                         four_codes<format, phase>(low_part, v + 16, part),
                         four_codes<format, phase>(high_part, v + 16, part)};
    int32_t c[4] = {0, 0, 0, 0};
    multiply_32<is_signed>(c, codes, b);
    int from = row * 2 + (halved ? part / 2 : block / 4);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float s = wave_shuffle_f32(scale[block % own], (uint32_t)(from + r * 16));
      out.of[r] = fma_f32(s, (float)(c[r * 2] * 256 + c[r * 2 + 1]), out.of[r]);
    }
  }
  return out;
}

/* The next slab of this work-group to copy, in the order of use; one wave starts the copies. */
template <typename format>
struct slab_cursor {
  typedef tiled_plan<format> plan;
  int set, slab;
  RDNA_MEMBER void fetch(const struct gemv_args &all, int64_t row_bytes, uint32_t to, uint32_t full) {
    const struct gemm_args &args = all.product;
    if (set * tiled_made(all) >= args.n) return;
    int lane = (int)thread_id() % 32;
    int64_t begin = (int64_t)slab * plan::slab_bytes;
    int64_t left = args.k / format::block_values * format::block_bytes - begin;
    uint32_t bytes = left < plan::slab_bytes ? (uint32_t)left : (uint32_t)plan::slab_bytes;
    if (lane == 0) barrier_expect(full, bytes * plan::rows);
    wave_barrier();
    if (lane < plan::rows)
      copy_bulk(to + (uint32_t)(lane * plan::pitch),
                (const char *)args.b + tiled_row(all, set, lane) * row_bytes + begin, bytes, full);
    slab++;
    if (left <= plan::slab_bytes) slab = 0, set += (int)group_count_x();
  }
};

/* Copies a tile of 16 rows at any alignment to shared memory, by aligned units of 16 bytes: a row there begins as far
 * within its first unit as in global memory. Rows past n repeat the last, and zeros follow a row's end. */
template <typename format>
RDNA_DEVICE void fetch_loose(const struct gemv_args &all, int64_t row_bytes, int set, int tile, uint32_t to) {
  typedef tiled_plan<format> plan;
  const struct gemm_args &args = all.product;
  int lane = (int)thread_id() % 32, values = args.k - tile * plan::tile_k;
  int bytes = values < plan::tile_k ? values / format::block_values * format::block_bytes : plan::tile_bytes;
  wave_barrier();
#pragma unroll 1
  for (int index = lane; index < plan::rows * plan::loose_units; index += 32) {
    int row = index / plan::loose_units, unit = index % plan::loose_units;
    uint64_t start =
        (uint64_t)args.b + (uint64_t)(tiled_row(all, set, row) * row_bytes) + (uint64_t)tile * plan::tile_bytes;
    uint64_t from = (start & ~15ull) + (uint64_t)unit * 16;
    int left = (int)(start - from) + bytes;
    copy_part_16(to + (uint32_t)(row * plan::loose_pitch + unit * 16), from, left < 0 ? 0 : left < 16 ? left : 16);
  }
  copy_to_shared_wait();
  wave_barrier();
}
template <typename format>
RDNA_DEVICE tiled_sums multiply_loose(const struct gemv_args &all, int64_t row_bytes, int set, int tile,
                                      const uint8_t *from, const uint8_t *a, const uint8_t *sums) {
  typedef tiled_plan<format> plan;
  int lane = (int)thread_id() % 32, places[3] = {lane / 4, lane / 4 + 8, lane / 2};
  const uint8_t *rows[3];
#pragma unroll
  for (int r = 0; r < 3; ++r) {
    uint32_t begins = (uint32_t)(uintptr_t)all.product.b + (uint32_t)tile * plan::tile_bytes +
                      (uint32_t)tiled_row(all, set, places[r]) * (uint32_t)row_bytes;
    rows[r] = from + places[r] * plan::loose_pitch + begins % 16;
  }
  return multiply_tile<format, -1>(rows[0], rows[1], rows[2], a, sums);
}

/* Multiplies a tile where A has NaN or infinite values, which integers cannot hold: value by value, in f32. */
template <typename format>
RDNA_DEVICE void multiply_values_of(const struct gemv_args &all, int64_t row_bytes, int set, int tile,
                                    float (&sum)[2]) {
  typedef tiled_plan<format> plan;
  const struct gemm_args &args = all.product;
  int lane = (int)thread_id() % 32, v = tile * plan::tile_k + lane * 8;
#pragma unroll 1
  for (int r = 0; r < plan::rows; ++r) {
    const char *row = (const char *)args.b + tiled_row(all, set, r) * row_bytes;
    float products = 0;
    if (v < args.k) {
      float w[8];
      format::decode8(format::load8(row + (int64_t)tile * plan::tile_bytes, lane), w);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        float x = ((const float *)args.a)[v + e];
        products = fma_f32(w[e], all.steps.norm ? x * all.steps.norm[v + e] : x, products);
      }
    }
    products = wave_sum_f32(products);
    bool mine = lane == r % 8 * 4;
    sum[0] += mine && r < 8 ? products : 0;
    sum[1] += mine && r >= 8 ? products : 0;
  }
}

template <typename format>
RDNA_DEVICE void quant_gemv_tiled(const struct gemv_args &all) {
  typedef tiled_plan<format> plan;
  const struct gemm_args &args = all.product;
  GROUP_MEMORY(memory, QUANT_GEMV_SHARED);
  int lane = (int)thread_id() % 32, wave = (int)thread_id() / 32, part = lane % 4;
  int made = tiled_made(all), sets = (args.n + made - 1) / made, tiles = (args.k + plan::tile_k - 1) / plan::tile_k;
  int64_t row_bytes = args.ldb / format::block_values * format::block_bytes;
  int slabs = (tiles + plan::waves - 1) / plan::waves;
  bool bulk = args.k % plan::tile_k == 0 && tiles > 0 &&
              (((uint64_t)args.b | (uint64_t)row_bytes | (uint64_t)tiles * plan::tile_bytes) & 15) == 0;
  uint8_t *stages = memory + plan::stages_at, *loose = stages + wave * plan::rows * plan::loose_pitch;
  uint32_t stages_address = shared_address(stages), full = shared_address(memory + plan::barriers_at), done = full + 32;
  tiled_a<format> a_tiles;
  float square = 0;
  a_tiles.load(all, 0, square);
  slab_cursor<format> cursor = {(int)group_id_x(), 0};
  if (bulk && wave == 0) {
    if (lane == 0) {
#pragma unroll
      for (int s = 0; s < plan::stages; ++s) barrier_make(full + s * 8, 1), barrier_make(done + s * 8, plan::waves);
      barriers_made();
    }
    wave_barrier();
#pragma unroll 1
    for (int s = 0; s < plan::stages; ++s)
      cursor.fetch(all, row_bytes, stages_address + (uint32_t)(s * plan::stage_bytes), full + (uint32_t)s * 8);
  }
  a_tiles.store(tiles, memory);
  group_barrier();

  int turn = 0;
  uint32_t at = 0, parity = 0, before = plan::stages - 1,
           before_parity = 1; /* the stage in use, and the one before it */
  bool any = false;           /* whether there was one before it */
#pragma unroll 1
  for (int set = (int)group_id_x(); set < sets; set += (int)group_count_x(), turn ^= 1) {
    float sum[2] = {0, 0}, least = 0;
#pragma unroll 1
    for (int slab = 0; slab < slabs; ++slab) {
      int tile = slab * plan::waves + wave, i = tile % plan::a_tiles;
      /* an A that fits is stored once, before this loop */
      if (tiles > plan::a_tiles && slab % plan::own == 0 && (slab > 0 || set != (int)group_id_x())) {
        a_tiles.load(all, slab * plan::waves, square);
        group_barrier();
        a_tiles.store(tiles - slab * plan::waves, memory);
        group_barrier();
      }
      if (bulk) barrier_wait(full + at * 8, parity);
      if (tile < tiles) {
        const uint8_t *a = memory + i * plan::a_bytes, *sums = memory + plan::sums_at + i * plan::sum_bytes;
        float unit = *(const float *)(memory + plan::units_at + i * 16);
        if (unit != unit) {
          multiply_values_of<format>(all, row_bytes, set, tile, sum);
        } else {
          tiled_sums of_tile;
          const uint8_t *now = stages + at * plan::stage_bytes + wave * plan::tile_bytes;
          const uint8_t *low = now + lane / 4 * plan::pitch, *high = low + 8 * plan::pitch;
          const uint8_t *mine = now + lane / 2 * plan::pitch;
          if (!bulk) {
            fetch_loose<format>(all, row_bytes, set, tile, shared_address(loose));
            of_tile = multiply_loose<format>(all, row_bytes, set, tile, loose, a, sums);
          } else if (plan::tile_bytes % 4 == 0 || wave % 2 == 0) {
            of_tile = multiply_tile<format, 0>(low, high, mine, a, sums);
          } else {
            of_tile = multiply_tile<format, plan::tile_bytes % 4>(low, high, mine, a, sums);
          }
          least = fma_f32(unit, of_tile.least, least);
          unit *= (part % 2 == 0 ? 65536.0f : 1.0f) / (float)(1 << plan::up);
          sum[0] = fma_f32(unit, of_tile.of[0], sum[0]);
          sum[1] = fma_f32(unit, of_tile.of[1], sum[1]);
        }
      }
      if (!bulk) continue;
      wave_barrier();
      if (lane == 0) barrier_arrive(done + at * 8);
      if (wave == 0 && any) {
        barrier_wait(done + before * 8, before_parity);
        cursor.fetch(all, row_bytes, stages_address + before * plan::stage_bytes, full + before * 8);
      }
      any = true, before = at, before_parity = parity;
      if (++at == plan::stages) at = 0, parity ^= 1;
    }

    /* sum over the waves, a thread for each row */
    float *parts = (float *)(memory + plan::parts_at) + turn * plan::waves * plan::rows;
    if constexpr (plan::has_least) least += wave_shuffle_xor_f32(least, 1);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float all = sum[r] + wave_shuffle_xor_f32(sum[r], 1);
      if constexpr (plan::run == 16) all += wave_shuffle_xor_f32(all, 2);
      if constexpr (plan::has_least) all -= wave_shuffle_f32(least, (uint32_t)(lane / 4 * 2 + r * 16));
      if (part == 0) parts[wave * plan::rows + lane / 4 + r * 8] = all;
    }
    float *squares = (float *)(memory + plan::squares_at);
    if (all.steps.norm && set == (int)group_id_x()) { /* all of A was loaded */
      square = wave_sum_f32(square);
      if (lane == 0) squares[wave] = square;
    }
    group_barrier();
    int j = set * made + (int)thread_id();
    if ((int)thread_id() >= made || j >= args.n) continue;
    float v = 0, up = 0;
#pragma unroll
    for (int w = 0; w < plan::waves; ++w) {
      v += parts[w * plan::rows + (int)thread_id()];
      if (all.steps.gated) up += parts[w * plan::rows + (int)thread_id() + 8];
    }
    if (all.steps.norm) {
      float total = 0;
#pragma unroll
      for (int w = 0; w < plan::waves; ++w) total += squares[w];
      float scale = gemv_norm_scale(all.steps, args.k, total);
      v *= scale, up *= scale;
    }
    if (all.steps.gated) v = gemm_activate(args.activation, v) * up;
    float *out = (float *)args.c + j;
    *out = gemm_finish1<f32>(args, out, 0, 0, j, v);
  }
}

#endif
#endif
