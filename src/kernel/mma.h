/* Matrix units: one interface for all GPUs, and the same arithmetic by vector instructions where there is none.
 *
 * A tile of C is 16 x 16 floats over the lanes of a wave, MMA_VALUES in each. An operand tile is 16 rows (of A) or
 * columns (of B) by MMA_K values of f16 or bf16, in chunks of 8 neighbours along k: each lane loads whole chunks, 16
 * bytes at once. Which k a chunk stands for is free as long as A and B agree, and they do, so that no hardware needs
 * the halves of a chunk shuffled. Every lane of the wave must take part.
 *
 * Sources of the layouts: AMD's RDNA 3 and RDNA 4 ISA guides (WMMA), CDNA 2 and CDNA 3 ISA guides (MFMA), NVIDIA's PTX
 * ISA, "Matrix Fragments for mma.m16n8k16". Products are exact; how sums are rounded differs between GPUs, and
 * gfx908 and gfx90a take subnormal operands for zero. */
#ifndef RDNA_KERNEL_MMA_H
#define RDNA_KERNEL_MMA_H

#include "kernel/prelude.h"

#if defined(RDNA_NVIDIA)
/* Lane 4g + t holds rows g and g + 8; of a chunk at k = 8t the first half goes to one instruction, the other half to
 * the next. Two instructions of 8 columns each make a tile. */
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
/* By dot products of pairs: lanes stand 8 abreast, and each has every 8th column and every (WAVE_SIZE / 8)th row. */
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
#define MMA_VALUES (MMA_M * MMA_N / WAVE_SIZE)
/* Values between the ends of rows in LDS, for rows of 32 values: with it the lanes that are served together meet
 * different banks. */
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

/* Row r of the tile begins |row_values| * r values past |tile|, which is a multiple of 16 bytes as are the rows. */
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
/* 8 columns of an operand that lies with its rows along the columns of memory: lane l passes the shared address of 8
 * neighbours in row l of 32 rows. Element pairs (2 t, 2 t + 1), 8 further, 16 and 24 of column g go to lane 4 g + t:
 * the order of k in which two tiles of C, packed, are an operand A. */
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

/* Copies from global to shared memory that run by themselves. group_address: a pointer to shared memory as the copies
 * and the loads below take it. */
RDNA_DEVICE uint32_t group_address(const void *p) {
  return (uint32_t)(uintptr_t)(const __attribute__((address_space(3))) char *)p;
}
template <typename value>
RDNA_DEVICE value load_group(uint32_t address) {
  return *(const __attribute__((address_space(3))) value *)(uintptr_t)address;
}
/* The first |bytes| of 16, 0 to 16, and zeros for the rest; both places are multiples of 16 bytes. */
RDNA_DEVICE void async_copy16(uint32_t to, const void *from, uint32_t bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
/* Ends a batch of copies; waiting is for all batches of this thread but the |pending| last. */
RDNA_DEVICE void async_commit(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int pending>
RDNA_DEVICE void async_wait(void) {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

/* 16 x 16 values by ldmatrix: lane 8i + r gives the address of row r, 8 neighbours, of quarter i. A lane gets of
 * every quarter two neighbours of row lane / 4, or turned, of column lane / 4. */
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
/* c(16, 16) += a(16, 16) b(16, 16) of quarters. Of a: rows 0 to 7 and 8 to 15 for k 0 to 7, the same for k 8 to 15. Of
 * b: k 0 to 7 and 8 to 15 for columns 0 to 7, the same for columns 8 to 15. */
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
/* c(16, 16) += a(16, 32) b(32, 16), with 16 bytes in a row of a quarter. */
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
/* The others have dot products, or mixed multiply-adds that read halves where they lie. */
RDNA_DEVICE void mma_f16(mma_acc &c, const mma_a &a, const mma_b &b) {
#pragma unroll
  for (int word = 0; word < 4; word++)
#pragma unroll
    for (int i = 0; i < MMA_VALUES; i++)
      c[i] = dot2_f16(bits_as<half2>(a.chunk[i / 2][word]), bits_as<half2>(b.chunk[i % 2][word]), c[i]);
}
#endif
/* Unpacks one word of each chunk at a time. What the words hold is hidden from the compiler, or it would unpack whole
 * operands once for many tiles and want twice their registers. */
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
