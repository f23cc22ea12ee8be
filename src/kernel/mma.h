/* Matrix units: C(16, 16) += A(16, MMA_K) B(MMA_K, 16) by a wave, one interface for all GPUs; by vector instructions
 * where there is no matrix unit. Every lane of the wave must take part.
 *
 * A and B are f16 or bf16. A lane loads them in chunks: 8 values along k, 16 bytes at once, of a row of A or a column
 * of B. Which lane loads which chunk of row (or column) r, and where value v of lane l's MMA_VALUES values of C lies:
 *
 *     target   MMA_K   k 0-7     8-15      16-23     24-31     C: row                   column
 *     NVIDIA   32      4 g       4 g + 1   4 g + 2   4 g + 3   l / 4 + 8 (v / 2 % 2)    8 (v / 4) + 2 (l % 4) + v % 2
 *     gfx11    16      r, r+16   r, r+16                       2 v + l / 16             l % 16
 *     gfx12    16      r         r + 16                        8 (l / 16) + v           l % 16
 *     MFMA     32      r         r + 16    r + 32    r + 48    4 (l / 16) + v           l % 16
 *
 * On NVIDIA g is r % 8, and chunk r / 8 of the lane. On gfx11 both halves of the wave hold all of A and B.
 *
 * An instruction may number k otherwise than this table: it takes the first half of each lane's chunks as its k, the
 * next instruction the other half. The sum is the same, as A and B are numbered alike, so no values move between lanes.
 *
 * Sources of the layouts: AMD's RDNA 3 and RDNA 4 ISA guides (WMMA), CDNA 2 and CDNA 3 ISA guides (MFMA), NVIDIA's PTX
 * ISA, "Matrix Fragments for mma.m16n8k16". Products are exact; how sums are rounded differs between GPUs, and
 * gfx908 and gfx90a take subnormal operands for zero. */
#ifndef RDNA_KERNEL_MMA_H
#define RDNA_KERNEL_MMA_H

#include "kernel/prelude.h"

#if defined(RDNA_NVIDIA)
/* Lane 4 g + t holds rows g and g + 8 (mma.m16n8k16). The first half of its chunks goes to one instruction, the other
 * half to the next, for each of two halves of 8 columns. */
#define MMA_K 32
#define MMA_CHUNKS_A 2
#define MMA_CHUNKS_B 2
RDNA_DEVICE uint32_t mma_a_row(uint32_t chunk) { return lane_id() / 4 + 8 * chunk; }
RDNA_DEVICE uint32_t mma_b_column(uint32_t chunk) { return lane_id() / 4 + 8 * chunk; }
RDNA_DEVICE uint32_t mma_k(uint32_t chunk) { return lane_id() % 4 * 8; }
RDNA_DEVICE uint32_t mma_row(uint32_t value) { return lane_id() / 4 + value / 2 % 2 * 8; }
RDNA_DEVICE uint32_t mma_column(uint32_t value) { return value / 4 * 8 + lane_id() % 4 * 2 + value % 2; }
#elif defined(__GFX11__)
/* Both halves of the wave hold the same operands. */
#define MMA_K 16
#define MMA_CHUNKS_A 2
#define MMA_CHUNKS_B 2
RDNA_DEVICE uint32_t mma_a_row(uint32_t chunk) { return lane_id() % 16; }
RDNA_DEVICE uint32_t mma_b_column(uint32_t chunk) { return lane_id() % 16; }
RDNA_DEVICE uint32_t mma_k(uint32_t chunk) { return chunk * 8; }
RDNA_DEVICE uint32_t mma_row(uint32_t value) { return value * 2 + lane_id() / 16; }
RDNA_DEVICE uint32_t mma_column(uint32_t value) { return lane_id() % 16; }
#elif defined(__GFX12__)
#define MMA_K 16
#define MMA_CHUNKS_A 1
#define MMA_CHUNKS_B 1
RDNA_DEVICE uint32_t mma_a_row(uint32_t chunk) { return lane_id() % 16; }
RDNA_DEVICE uint32_t mma_b_column(uint32_t chunk) { return lane_id() % 16; }
RDNA_DEVICE uint32_t mma_k(uint32_t chunk) { return lane_id() / 16 * 8; }
RDNA_DEVICE uint32_t mma_row(uint32_t value) { return lane_id() / 16 * 8 + value; }
RDNA_DEVICE uint32_t mma_column(uint32_t value) { return lane_id() % 16; }
#elif defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx942__)
/* Two instructions of 16 along k, or on gfx908 four of 8 for bf16. */
#define RDNA_MFMA_ 1
#define MMA_K 32
#define MMA_CHUNKS_A 1
#define MMA_CHUNKS_B 1
RDNA_DEVICE uint32_t mma_a_row(uint32_t chunk) { return lane_id() % 16; }
RDNA_DEVICE uint32_t mma_b_column(uint32_t chunk) { return lane_id() % 16; }
RDNA_DEVICE uint32_t mma_k(uint32_t chunk) { return lane_id() / 16 * 8; }
RDNA_DEVICE uint32_t mma_row(uint32_t value) { return lane_id() / 16 * 4 + value; }
RDNA_DEVICE uint32_t mma_column(uint32_t value) { return lane_id() % 16; }
#else
/* By dot products of pairs. Lanes form a grid of WAVE_SIZE / 8 rows by 8 columns, which is laid over the tile
 * repeatedly: a lane has every 8th column and every (WAVE_SIZE / 8)th row. In a wave of 32, C lies so (lane; for lane
 * 0 also which of its values):
 *
 *     column      0      1 ... 7    8      9 ... 15
 *     row 0       0 v0   1 ... 7    0 v1   1 ... 7
 *     row 1       8      9 ... 15   8      9 ... 15
 *     row 4       0 v2   1 ... 7    0 v3   1 ... 7
 */
#define RDNA_MMA_BY_LANES_ 1
#define MMA_K 8
#define MMA_CHUNKS_A (128 / WAVE_SIZE)
#define MMA_CHUNKS_B 2
RDNA_DEVICE uint32_t mma_a_row(uint32_t chunk) { return lane_id() / 8 + WAVE_SIZE / 8 * chunk; }
RDNA_DEVICE uint32_t mma_b_column(uint32_t chunk) { return lane_id() % 8 + 8 * chunk; }
RDNA_DEVICE uint32_t mma_k(uint32_t chunk) { return 0; }
RDNA_DEVICE uint32_t mma_row(uint32_t value) { return mma_a_row(value / 2); }
RDNA_DEVICE uint32_t mma_column(uint32_t value) { return mma_b_column(value % 2); }
#endif

#define MMA_M 16
#define MMA_N 16
/* How many of a lane's chunks are of one row (or column), and how many lanes share a row; lane number mma_part() of
 * them has the chunks from k = 8 * MMA_ROW_CHUNKS * mma_part() on. */
#ifdef __GFX11__
#define MMA_ROW_CHUNKS 2
#else
#define MMA_ROW_CHUNKS 1
#endif
#define MMA_PARTS (MMA_K / 8 / MMA_ROW_CHUNKS)
RDNA_DEVICE uint32_t mma_part(void) { return mma_k(0) / (8 * MMA_ROW_CHUNKS); }
#define MMA_VALUES (MMA_M * MMA_N / WAVE_SIZE)
/* Padding after each row of 32 values in LDS, in values: so that lanes that are served in one cycle access different
 * banks. */
#ifdef RDNA_NVIDIA
#define MMA_ROW_GAP 0
#else
#define MMA_ROW_GAP 8
#endif

struct mma_a {
  uint4 chunk[MMA_CHUNKS_A];
};
struct mma_b {
  uint4 chunk[MMA_CHUNKS_B];
};
typedef float mma_acc __attribute__((ext_vector_type(MMA_VALUES)));
/* mma_i8 takes the same chunks of 16 bytes as 16 signed bytes along k, for exact sums modulo 2^32. */
typedef int32_t mma_acc_i32 __attribute__((ext_vector_type(MMA_VALUES)));

/* Loads an operand: row r of A, or column r of B, begins |row_values| * r values past |tile|. |tile| and rows must be
 * multiples of 16 bytes. */
RDNA_DEVICE mma_a mma_load_a(const uint16_t *tile, uint32_t row_values) {
  mma_a a;
#pragma unroll
  for (uint32_t i = 0; i < MMA_CHUNKS_A; i++) a.chunk[i] = load_u32x4(tile + mma_a_row(i) * row_values + mma_k(i));
  return a;
}
RDNA_DEVICE mma_b mma_load_b(const uint16_t *tile, uint32_t row_values) {
  mma_b b;
#pragma unroll
  for (uint32_t i = 0; i < MMA_CHUNKS_B; i++) b.chunk[i] = load_u32x4(tile + mma_b_column(i) * row_values + mma_k(i));
  return b;
}

#ifdef RDNA_NVIDIA
/* Loads 32 rows by 8 columns from shared memory, transposed (ldmatrix .trans). Lane l passes the address of row l, 8
 * values. Lane 4 g + t gets of column g the rows 2 t and 2 t + 1 in .x, and those 8, 16 and 24 below in .y, .z, .w. In
 * this order of k two tiles of C, packed to 16 bits, are an operand A. */
RDNA_DEVICE uint4 mma_load_turned(uint32_t address) {
  uint32_t x, y, z, w;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
               : "r"(address)
               : "memory");
  return uint4{x, y, z, w};
}
#endif

#if defined(RDNA_NVIDIA)
#define RDNA_MMA_SYNC_(type, c0, c1, c2, c3, a0, a1, a2, a3, b0, b1) \
  asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type         \
      ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "          \
      "{%0, %1, %2, %3};"                                            \
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)                       \
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))
#define RDNA_MMA_DEFINE_(name, type)                                                            \
  RDNA_DEVICE void name(mma_acc &c, const mma_a &a, const mma_b &b) {                           \
    _Pragma("unroll") for (int half = 0; half < 2; half++) {                                    \
      float c0 = c[4 * half], c1 = c[4 * half + 1], c2 = c[4 * half + 2], c3 = c[4 * half + 3]; \
      const uint4 &low = a.chunk[0], &high = a.chunk[1], &column = b.chunk[half];               \
      RDNA_MMA_SYNC_(type, c0, c1, c2, c3, low.x, high.x, low.y, high.y, column.x, column.y);   \
      RDNA_MMA_SYNC_(type, c0, c1, c2, c3, low.z, high.z, low.w, high.w, column.z, column.w);   \
      c[4 * half] = c0, c[4 * half + 1] = c1, c[4 * half + 2] = c2, c[4 * half + 3] = c3;       \
    }                                                                                           \
  }
RDNA_MMA_DEFINE_(mma_f16, "f16")
RDNA_MMA_DEFINE_(mma_bf16, "bf16")
#define RDNA_MMA_SYNC_I8_(c0, c1, c2, c3, a0, a1, a2, a3, b0, b1)       \
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "                \
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
      : "+r"(c0), "+r"(c1), "+r"(c2), "+r"(c3)                          \
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))
RDNA_DEVICE void mma_i8(mma_acc_i32 &c, const mma_a &a, const mma_b &b) {
#pragma unroll
  for (int half = 0; half < 2; half++) {
    int c0 = c[4 * half], c1 = c[4 * half + 1], c2 = c[4 * half + 2], c3 = c[4 * half + 3];
    const uint4 &low = a.chunk[0], &high = a.chunk[1], &column = b.chunk[half];
    RDNA_MMA_SYNC_I8_(c0, c1, c2, c3, low.x, high.x, low.y, high.y, column.x, column.y);
    RDNA_MMA_SYNC_I8_(c0, c1, c2, c3, low.z, high.z, low.w, high.w, column.z, column.w);
    c[4 * half] = c0, c[4 * half + 1] = c1, c[4 * half + 2] = c2, c[4 * half + 3] = c3;
  }
}

/* Asynchronous copies from global to shared memory. group_address: converts a pointer to shared memory to the address
 * that the copies and loads below take. */
RDNA_DEVICE uint32_t group_address(const void *p) {
  return (uint32_t)(uintptr_t)(const __attribute__((address_space(3))) char *)p;
}
template <typename value>
RDNA_DEVICE value load_group(uint32_t address) {
  return *(const __attribute__((address_space(3))) value *)(uintptr_t)address;
}
/* Starts a copy of |bytes|, 0 to 16, and writes zeros for the rest of 16. Both addresses are multiples of 16 bytes. */
RDNA_DEVICE void async_copy16(uint32_t to, const void *from, uint32_t bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
/* async_commit ends a batch of copies. async_wait waits until at most |pending| batches of this thread are in flight.
 */
RDNA_DEVICE void async_commit(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int pending>
RDNA_DEVICE void async_wait(void) {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

/* Load 16 x 16 values of 16 bits by ldmatrix, as four quarters of 8 x 8, which become .x to .w. Lane 8 i + r passes the
 * address of row r, 8 values, of quarter i. A lane gets of each quarter values 2 (lane % 4) and the next of row lane /
 * 4; _turned, transposed: rows 2 (lane % 4) and the next of column lane / 4. */
RDNA_DEVICE uint4 mma_load_quarters(uint32_t address) {
  uint4 v;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}
RDNA_DEVICE uint4 mma_load_quarters_turned(uint32_t address) {
  uint4 v;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}
/* c(16, 16) += a(16, 16) b(16, 16), with operands as quarters:
 *
 *     a            k 0-7   8-15        b         columns 0-7   8-15
 *     rows 0-7     .x      .z          k 0-7     .x            .z
 *     rows 8-15    .y      .w          k 8-15    .y            .w
 */
#define RDNA_MMA_QUARTERS_DEFINE_(name, type)                           \
  RDNA_DEVICE void name(mma_acc &c, const uint4 &a, const uint4 &b) {   \
    float c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3];                   \
    float c4 = c[4], c5 = c[5], c6 = c[6], c7 = c[7];                   \
    RDNA_MMA_SYNC_(type, c0, c1, c2, c3, a.x, a.y, a.z, a.w, b.x, b.y); \
    RDNA_MMA_SYNC_(type, c4, c5, c6, c7, a.x, a.y, a.z, a.w, b.z, b.w); \
    c = mma_acc{c0, c1, c2, c3, c4, c5, c6, c7};                        \
  }
RDNA_MMA_QUARTERS_DEFINE_(mma_quarters_f16, "f16")
RDNA_MMA_QUARTERS_DEFINE_(mma_quarters_bf16, "bf16")
/* c(16, 16) += a(16, 32) b(32, 16) of signed bytes: the same quarters, whose rows of 16 bytes are 16 values of k. */
RDNA_DEVICE void mma_quarters_i8(mma_acc_i32 &c, const uint4 &a, const uint4 &b) {
  int c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3], c4 = c[4], c5 = c[5], c6 = c[6], c7 = c[7];
  RDNA_MMA_SYNC_I8_(c0, c1, c2, c3, a.x, a.y, a.z, a.w, b.x, b.y);
  RDNA_MMA_SYNC_I8_(c4, c5, c6, c7, a.x, a.y, a.z, a.w, b.z, b.w);
  c = mma_acc_i32{c0, c1, c2, c3, c4, c5, c6, c7};
}
#elif defined(__GFX11__)
typedef short rdna_short16_ __attribute__((ext_vector_type(16)));
RDNA_DEVICE void mma_f16(mma_acc &c, const mma_a &a, const mma_b &b) {
  c = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(bits_as<half16>(a), bits_as<half16>(b), c);
}
RDNA_DEVICE void mma_bf16(mma_acc &c, const mma_a &a, const mma_b &b) {
  c = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(bits_as<rdna_short16_>(a), bits_as<rdna_short16_>(b), c);
}
RDNA_DEVICE void mma_i8(mma_acc_i32 &c, const mma_a &a, const mma_b &b) {
#pragma unroll
  for (int i = 0; i < 2; i++)
    c = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, bits_as<int4>(a.chunk[i]), true, bits_as<int4>(b.chunk[i]), c,
                                                   false);
}
#elif defined(__GFX12__)
RDNA_DEVICE void mma_i8(mma_acc_i32 &c, const mma_a &a, const mma_b &b) {
  int4 va = bits_as<int4>(a), vb = bits_as<int4>(b);
  c = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(true, va.lo, true, vb.lo, c, false);
  c = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(true, va.hi, true, vb.hi, c, false);
}
typedef short rdna_short8_ __attribute__((ext_vector_type(8)));
RDNA_DEVICE void mma_f16(mma_acc &c, const mma_a &a, const mma_b &b) {
  c = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(bits_as<half8>(a), bits_as<half8>(b), c);
}
RDNA_DEVICE void mma_bf16(mma_acc &c, const mma_a &a, const mma_b &b) {
  c = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(bits_as<rdna_short8_>(a), bits_as<rdna_short8_>(b), c);
}
#elif defined(RDNA_MFMA_)
RDNA_DEVICE void mma_i8(mma_acc_i32 &c, const mma_a &a, const mma_b &b) {
#ifdef __gfx942__
  typedef int64_t long2 __attribute__((ext_vector_type(2)));
  long2 va = bits_as<long2>(a), vb = bits_as<long2>(b);
  c = __builtin_amdgcn_mfma_i32_16x16x32_i8(va.x, vb.x, c, 0, 0, 0);
  c = __builtin_amdgcn_mfma_i32_16x16x32_i8(va.y, vb.y, c, 0, 0, 0);
#else
#pragma unroll
  for (int i = 0; i < 4; i++)
    c = __builtin_amdgcn_mfma_i32_16x16x16i8((int)a.chunk[0][i], (int)b.chunk[0][i], c, 0, 0, 0);
#endif
}
RDNA_DEVICE void mma_f16(mma_acc &c, const mma_a &a, const mma_b &b) {
  half8 va = bits_as<half8>(a), vb = bits_as<half8>(b);
  c = __builtin_amdgcn_mfma_f32_16x16x16f16(va.lo, vb.lo, c, 0, 0, 0);
  c = __builtin_amdgcn_mfma_f32_16x16x16f16(va.hi, vb.hi, c, 0, 0, 0);
}
typedef short rdna_short8_ __attribute__((ext_vector_type(8)));
RDNA_DEVICE void mma_bf16(mma_acc &c, const mma_a &a, const mma_b &b) {
  rdna_short8_ va = bits_as<rdna_short8_>(a), vb = bits_as<rdna_short8_>(b);
#ifdef __gfx908__
  c = __builtin_amdgcn_mfma_f32_16x16x8bf16(va.lo.lo, vb.lo.lo, c, 0, 0, 0);
  c = __builtin_amdgcn_mfma_f32_16x16x8bf16(va.lo.hi, vb.lo.hi, c, 0, 0, 0);
  c = __builtin_amdgcn_mfma_f32_16x16x8bf16(va.hi.lo, vb.hi.lo, c, 0, 0, 0);
  c = __builtin_amdgcn_mfma_f32_16x16x8bf16(va.hi.hi, vb.hi.hi, c, 0, 0, 0);
#else
  c = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(va.lo, vb.lo, c, 0, 0, 0);
  c = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(va.hi, vb.hi, c, 0, 0, 0);
#endif
}
#else
RDNA_DEVICE void mma_i8(mma_acc_i32 &c, const mma_a &a, const mma_b &b) {
#pragma unroll
  for (int word = 0; word < 4; word++)
#pragma unroll
    for (int i = 0; i < MMA_VALUES; i++) c[i] = dot4_i8((int)a.chunk[i / 2][word], (int)b.chunk[i % 2][word], c[i]);
}
#ifndef __gfx900__
/* All but gfx900 have dot products, or mixed multiply-adds whose operands may be the half of a register. */
RDNA_DEVICE void mma_f16(mma_acc &c, const mma_a &a, const mma_b &b) {
#pragma unroll
  for (int word = 0; word < 4; word++)
#pragma unroll
    for (int i = 0; i < MMA_VALUES; i++)
      c[i] = dot2_f16(bits_as<half2>(a.chunk[i / 2][word]), bits_as<half2>(b.chunk[i % 2][word]), c[i]);
}
#endif
/* Unpacks one word of each chunk at a time, which an empty asm hides from the compiler: it would unpack whole operands
 * once for many tiles, in twice their registers. */
#define RDNA_MMA_UNPACKED_DEFINE_(name, unpack)                                                      \
  RDNA_DEVICE void name(mma_acc &c, const mma_a &a, const mma_b &b) {                                \
    _Pragma("unroll") for (int word = 0; word < 4; word++) {                                         \
      float2 row[MMA_CHUNKS_A], column[MMA_CHUNKS_B];                                                \
      _Pragma("unroll") for (int i = 0; i < MMA_CHUNKS_A; i++) {                                     \
        uint32_t pair = a.chunk[i][word];                                                            \
        asm volatile("" : "+v"(pair));                                                               \
        row[i] = unpack(pair);                                                                       \
      }                                                                                              \
      _Pragma("unroll") for (int i = 0; i < MMA_CHUNKS_B; i++) {                                     \
        uint32_t pair = b.chunk[i][word];                                                            \
        asm volatile("" : "+v"(pair));                                                               \
        column[i] = unpack(pair);                                                                    \
      }                                                                                              \
      _Pragma("unroll") for (int i = 0; i < MMA_VALUES; i++) {                                       \
        c[i] = fma_f32(row[i / 2].y, column[i % 2].y, fma_f32(row[i / 2].x, column[i % 2].x, c[i])); \
      }                                                                                              \
    }                                                                                                \
  }
#ifdef __gfx900__
RDNA_MMA_UNPACKED_DEFINE_(mma_f16, f16x2_to_f32)
#endif
RDNA_MMA_UNPACKED_DEFINE_(mma_bf16, bf16x2_to_f32)
#endif

#endif
