// LDS: loads, stores, atomics, and the lane shuffles that go through it.
#include "machine/access.h"
#include "machine/checker_state.h"
#include "machine/valu.h"

// The lanes' bytes at `address + offset`, a sum of 32 bits: compilers write an array that is read backwards with
// negative addresses. A lane whose bytes run past the group's LDS reads zero and writes nothing.
static void places(struct emu_wave *w, const struct emu_step *step, uint32_t offset, unsigned bytes,
                   struct emu_places *p) {
  const struct emu_group *group = w->group;
  const uint32_t *from = emu__vector(w, step->inst->src[0].reg, 0);
  p->mask = emu__wave_exec(w);
  p->outside = 0;
  p->stride = 4;
  p->space = EMU_SPACE_SHARED;
  // the last place at which all the bytes are inside; where there is none, all lanes are outside
  bool none = group->lds_bytes < bytes;
  const __m256i last = _mm256_set1_epi32(none ? 0 : (int)(group->lds_bytes - bytes));
  const __m256i along = _mm256_set1_epi32((int)offset), base = _mm256_set1_epi64x((int64_t)(uintptr_t)group->lds);
  for (unsigned l = 0; l < w->lanes; l += 8) {
    __m256i a = _mm256_add_epi32(_mm256_loadu_si256((const __m256i *)(from + l)), along);
    __m256i inside = _mm256_cmpeq_epi32(_mm256_max_epu32(a, last), last);
    p->outside |= (uint64_t)(~_mm256_movemask_ps(_mm256_castsi256_ps(inside)) & 0xff) << l;
    __m256i low = _mm256_cvtepu32_epi64(_mm256_castsi256_si128(a));
    __m256i high = _mm256_cvtepu32_epi64(_mm256_extracti128_si256(a, 1));
    _mm256_storeu_si256((__m256i *)(p->at + l), _mm256_add_epi64(base, low));
    _mm256_storeu_si256((__m256i *)(p->at + l + 4), _mm256_add_epi64(base, high));
  }
  if (none) p->outside = w->lanes == 64 ? UINT64_MAX : UINT32_MAX;
}

// Counts bank conflicts. LDS has 32 banks; bank b holds the dwords whose number modulo 32 is b. 32 lanes take as many
// cycles as the busiest bank has different dwords to deliver.
static void count_conflicts(struct emu_wave *w, const struct emu_places *p, unsigned bytes) {
  struct emu_counters *c = w->counters;
  uint64_t mask = p->mask & ~p->outside;
  c->lds_bytes += (uint64_t)__builtin_popcountll(mask) * bytes;
  for (unsigned half = 0; half < w->lanes; half += 32) {
    for (unsigned k = 0; k < (bytes + 3) / 4; k++) {
      uint64_t seen[32][32];
      uint8_t used[32] = {0};
      unsigned worst = 1;
      for (unsigned l = half; l < half + 32; l++) {
        if (!(mask >> l & 1)) continue;
        uint64_t dword = p->at[l] / 4 + k;
        unsigned bank = dword & 31, i = 0;
        while (i < used[bank] && seen[bank][i] != dword) i++;
        if (i == used[bank]) seen[bank][used[bank]++] = dword;
        if (used[bank] > worst) worst = used[bank];
      }
      c->lds_conflict_cycles += worst - 1;
    }
  }
}

static inline void count(struct emu_wave *w, const struct emu_places *p, unsigned bytes) {
  if (w->counters) count_conflicts(w, p, bytes);
}

// The usual load, where nobody counts, checks or looks: whole dwords of 32 lanes that are all on and inside. false:
// nothing was done.
static inline bool load_rows(struct emu_wave *w, const struct emu_step *step, uint32_t offset, unsigned bytes,
                             unsigned reg) {
  const struct emu_group *group = w->group;
  if (bytes < 4 || w->lanes != EMU_HALF || w->s[EMU_EXEC_LO] != UINT32_MAX || w->check || w->counters || w->tag)
    return false;
  if (group->lds_bytes < bytes) return false;
  const uint32_t *from = emu__vector(w, step->inst->src[0].reg, 0);
  uint32_t at[EMU_HALF] __attribute__((aligned(32)));
  const __m256i last = _mm256_set1_epi32((int)(group->lds_bytes - bytes)), along = _mm256_set1_epi32((int)offset);
  const __m256i first = _mm256_set1_epi32((int)(from[0] + offset));
  __m256i inside = _mm256_set1_epi32(-1), alike = inside;
  for (int l = 0; l < EMU_HALF; l += 8) {
    __m256i a = _mm256_add_epi32(_mm256_loadu_si256((const __m256i *)(from + l)), along);
    inside = _mm256_and_si256(inside, _mm256_cmpeq_epi32(_mm256_max_epu32(a, last), last));
    alike = _mm256_and_si256(alike, _mm256_cmpeq_epi32(a, first));
    _mm256_store_si256((__m256i *)(at + l), a);
  }
  if (_mm256_movemask_epi8(inside) != -1) return false;
  emu__rows_load(w, group->lds, at, _mm256_movemask_epi8(alike) == -1, bytes / 4, reg);
  return true;
}

#define LOAD(name, size, sign, is_half, is_high)                                          \
  static void name(struct emu_wave *w, const struct emu_step *step) {                     \
    static const struct emu_shape shape = {size, sign, is_half, is_high};                 \
    if (load_rows(w, step, (uint32_t)step->inst->imm, size, step->inst->dst.reg)) return; \
    struct emu_places p;                                                                  \
    places(w, step, (uint32_t)step->inst->imm, size, &p);                                 \
    count(w, &p, size);                                                                   \
    if (w->check && !emu__check_load(w, step, &p, &shape, step->inst->dst.reg)) return;   \
    emu__places_load(w, &p, &shape, step->inst->dst.reg);                                 \
  }
#define STORE(name, size, is_high)                                                          \
  static void name(struct emu_wave *w, const struct emu_step *step) {                       \
    static const struct emu_shape shape = {size, false, false, is_high};                    \
    struct emu_places p;                                                                    \
    places(w, step, (uint32_t)step->inst->imm, size, &p);                                   \
    count(w, &p, size);                                                                     \
    if (w->check && !emu__check_store(w, step, &p, &shape, step->inst->src[1].reg)) return; \
    emu__places_store(w, &p, &shape, step->inst->src[1].reg);                               \
  }
LOAD(load_i8, 1, true, false, false)
LOAD(load_u8, 1, false, false, false)
LOAD(load_i16, 2, true, false, false)
LOAD(load_u16, 2, false, false, false)
LOAD(load_b32, 4, false, false, false)
LOAD(load_b64, 8, false, false, false)
LOAD(load_b96, 12, false, false, false)
LOAD(load_b128, 16, false, false, false)
LOAD(load_u8_d16, 1, false, true, false)
LOAD(load_u8_d16_hi, 1, false, true, true)
LOAD(load_i8_d16, 1, true, true, false)
LOAD(load_i8_d16_hi, 1, true, true, true)
LOAD(load_u16_d16, 2, false, true, false)
LOAD(load_u16_d16_hi, 2, false, true, true)
STORE(store_b8, 1, false)
STORE(store_b16, 2, false)
STORE(store_b32, 4, false)
STORE(store_b64, 8, false)
STORE(store_b96, 12, false)
STORE(store_b128, 16, false)
STORE(store_b8_hi, 1, true)
STORE(store_b16_hi, 2, true)

// What 16 lanes read is a matrix, which is given out transposed: lane i gets element i of each row. A row of 16
// elements is what one lane reads, or two or four beside each other. Source: programs for gfx950, such as ROCm's
// FlyDSL, describe it so for 16 bits; for fewer it is the same by the widths in LLVM's and AMD's names.
static void transpose(uint32_t *rows[3], unsigned bits) {
  unsigned dwords = bits == 6 ? 3 : 2, elements = bits == 6 ? 16 : 64 / bits, lanes = 16 / elements;
  uint32_t out[3][64] = {{0}};
  for (unsigned l = 0; l < 64; l++) {
    for (unsigned e = 0; e < elements; e++) {
      unsigned from = (l & ~15u) + e * lanes + l % 16 / elements, low = l % elements * bits, to = e * bits;
      uint64_t pair = rows[low / 32][from];
      if (low / 32 + 1 < dwords) pair |= (uint64_t)rows[low / 32 + 1][from] << 32;
      uint64_t value = (pair >> low % 32 & ((1u << bits) - 1)) << to % 32;
      out[to / 32][l] |= (uint32_t)value;
      if (value >> 32) out[to / 32 + 1][l] |= (uint32_t)(value >> 32);
    }
  }
  for (unsigned k = 0; k < dwords; k++) memcpy(rows[k], out[k], sizeof(out[k]));
}
static void load_transposed(struct emu_wave *w, const struct emu_step *step, unsigned bits) {
  const struct emu_inst *inst = step->inst;
  const struct emu_shape shape = {.bytes = bits == 6 ? 12 : 8};
  struct emu_places p;
  uint32_t *rows[3], *undefined[3];
  if (emu__wave_exec(w) != UINT64_MAX) {
    emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0, "It needs all lanes on.");
    return;
  }
  places(w, step, (uint32_t)inst->imm, shape.bytes, &p);
  count(w, &p, shape.bytes);
  if (w->check && !emu__check_load(w, step, &p, &shape, inst->dst.reg)) return;
  emu__places_load(w, &p, &shape, inst->dst.reg);
  for (unsigned k = 0; k < inst->dst.dwords; k++) rows[k] = emu__vector(w, inst->dst.reg + k, 0);
  transpose(rows, bits);
  if (!w->check) return;
  for (unsigned k = 0; k < inst->dst.dwords; k++) undefined[k] = emu__undefined(w, inst->dst.reg + k, 0);
  transpose(undefined, bits);
  for (unsigned k = 0; k < inst->dst.dwords; k++) emu__check_settle(w, inst->dst.reg + k);
}
static void load_tr4(struct emu_wave *w, const struct emu_step *step) { load_transposed(w, step, 4); }
static void load_tr6(struct emu_wave *w, const struct emu_step *step) { load_transposed(w, step, 6); }
static void load_tr8(struct emu_wave *w, const struct emu_step *step) { load_transposed(w, step, 8); }
static void load_tr16(struct emu_wave *w, const struct emu_step *step) { load_transposed(w, step, 16); }

// Two places, at offsets in elements (or in 64 of them).
static void pair_places(struct emu_wave *w, const struct emu_step *step, unsigned size, unsigned unit,
                        struct emu_places p[2]) {
  uint32_t imm = (uint32_t)step->inst->imm;
  places(w, step, (imm & 255) * size * unit, size, &p[0]);
  places(w, step, (imm >> 8 & 255) * size * unit, size, &p[1]);
  count(w, &p[0], size);
  count(w, &p[1], size);
}
static void load_pair(struct emu_wave *w, const struct emu_step *step, unsigned size, unsigned unit) {
  const struct emu_shape shape = {(uint8_t)size, false, false, false};
  struct emu_places p[2];
  uint32_t imm = (uint32_t)step->inst->imm;
  const struct emu_operand *address = &step->inst->src[0];
  unsigned reg = step->inst->dst.reg;
  // the second one's addresses must not be the first one's result
  bool apart = address->reg < reg || address->reg >= reg + size / 4;
  if (apart && load_rows(w, step, (imm & 255) * size * unit, size, reg) &&
      load_rows(w, step, (imm >> 8 & 255) * size * unit, size, reg + size / 4))
    return;
  pair_places(w, step, size, unit, p);
  for (unsigned i = 0; i < 2; i++) {
    if (w->check && !emu__check_load(w, step, &p[i], &shape, step->inst->dst.reg + i * size / 4)) return;
    emu__places_load(w, &p[i], &shape, step->inst->dst.reg + i * size / 4);
  }
}
static void store_pair(struct emu_wave *w, const struct emu_step *step, unsigned size, unsigned unit) {
  const struct emu_shape shape = {(uint8_t)size, false, false, false};
  struct emu_places p[2];
  pair_places(w, step, size, unit, p);
  for (unsigned i = 0; i < 2; i++) {
    if (w->check && !emu__check_store(w, step, &p[i], &shape, step->inst->src[1 + i].reg)) return;
    emu__places_store(w, &p[i], &shape, step->inst->src[1 + i].reg);
  }
}
static void exchange_pair(struct emu_wave *w, const struct emu_step *step, unsigned size, unsigned unit) {
  struct emu_places p[2];
  pair_places(w, step, size, unit, p);
  // data may lie in the destination's registers: both exchanges read theirs first
  uint32_t data[2][2][64];
  for (unsigned i = 0; i < 2; i++) {
    for (unsigned k = 0; k < size / 4; k++) {
      memcpy(data[i][k], emu__vector(w, step->inst->src[1 + i].reg + k, 0), w->lanes * 4);
    }
  }
  for (unsigned i = 0; i < 2; i++) {
    int dst = step->inst->dst.reg + (int)(i * size / 4);
    if (w->check && !emu__check_atomic(w, step, &p[i], size, step->inst->src[1 + i].reg, -1, dst)) return;
    for (unsigned l = 0; l < w->lanes; l++) {
      if (!(p[i].mask >> l & 1)) continue;
      uint64_t value = data[i][0][l] | (size == 8 ? (uint64_t)data[i][1][l] << 32 : 0), old = 0;
      if (!(p[i].outside >> l & 1)) old = emu__atomic(EMU_ATOMIC_SWAP, size, p[i].at[l], value, 0);
      *emu__vector(w, step->inst->dst.reg + i * size / 4, l) = (uint32_t)old;
      if (size == 8) *emu__vector(w, step->inst->dst.reg + i * 2 + 1, l) = (uint32_t)(old >> 32);
    }
  }
}
#define PAIRS(kind)                                                                               \
  static void kind##_b32(struct emu_wave *w, const struct emu_step *s) { kind(w, s, 4, 1); }      \
  static void kind##_b64(struct emu_wave *w, const struct emu_step *s) { kind(w, s, 8, 1); }      \
  static void kind##_far_b32(struct emu_wave *w, const struct emu_step *s) { kind(w, s, 4, 64); } \
  static void kind##_far_b64(struct emu_wave *w, const struct emu_step *s) { kind(w, s, 8, 64); }
PAIRS(load_pair)
PAIRS(store_pair)
PAIRS(exchange_pair)

// M0 plus the lane's own dword.
static void addtid_places(struct emu_wave *w, const struct emu_step *step, struct emu_places *p) {
  *p = (struct emu_places){.mask = emu__wave_exec(w), .stride = 4, .space = EMU_SPACE_SHARED};
  for (unsigned l = 0; l < w->lanes; l++) {
    uint64_t address = (uint64_t)(w->s[EMU_M0] & 0xffff) + (uint32_t)step->inst->imm + 4 * l;
    p->at[l] = (uint64_t)(uintptr_t)w->group->lds + address;
    p->outside |= (uint64_t)(address + 4 > w->group->lds_bytes) << l;
  }
  count(w, p, 4);
}
static const struct emu_shape dword_shape = {4, false, false, false};
static void load_addtid(struct emu_wave *w, const struct emu_step *step) {
  struct emu_places p;
  addtid_places(w, step, &p);
  if (w->check && !emu__check_load(w, step, &p, &dword_shape, step->inst->dst.reg)) return;
  emu__places_load(w, &p, &dword_shape, step->inst->dst.reg);
}
static void store_addtid(struct emu_wave *w, const struct emu_step *step) {
  struct emu_places p;
  addtid_places(w, step, &p);
  if (w->check && !emu__check_store(w, step, &p, &dword_shape, step->inst->src[1].reg)) return;
  emu__places_store(w, &p, &dword_shape, step->inst->src[1].reg);
}

// ---- atomics

static void atomic(struct emu_wave *w, const struct emu_step *step, enum emu_atomic kind, unsigned bytes) {
  const struct emu_inst *inst = step->inst;
  struct emu_places p;
  places(w, step, (uint32_t)inst->imm, bytes, &p);
  count(w, &p, bytes);
  unsigned data = inst->src[1].reg;
  int compare = inst->src[2].kind ? inst->src[2].reg : -1;
  bool swaps = kind == EMU_ATOMIC_CMPSWAP || kind == EMU_ATOMIC_CMPSWAP_F;
  if (swaps && w->group->run->target->comparand_first) {
    data = inst->src[2].reg;
    compare = inst->src[1].reg;
  }
  int dst = inst->dst.kind ? inst->dst.reg : -1;
  if (w->check && !emu__check_atomic(w, step, &p, bytes, data, compare, dst)) return;
  emu__places_atomic(w, &p, kind, bytes, data, compare, dst);
}
#define ATOMIC(name, kind)                                                                                   \
  static void name##_4(struct emu_wave *w, const struct emu_step *s) { atomic(w, s, EMU_ATOMIC_##kind, 4); } \
  __attribute__((unused)) static void name##_8(struct emu_wave *w, const struct emu_step *s) {               \
    atomic(w, s, EMU_ATOMIC_##kind, 8);                                                                      \
  }
ATOMIC(a_add, ADD)
ATOMIC(a_sub, SUB)
ATOMIC(a_rsub, RSUB)
ATOMIC(a_inc, INC)
ATOMIC(a_dec, DEC)
ATOMIC(a_min_i, MIN_I)
ATOMIC(a_max_i, MAX_I)
ATOMIC(a_min_u, MIN_U)
ATOMIC(a_max_u, MAX_U)
ATOMIC(a_and, AND)
ATOMIC(a_or, OR)
ATOMIC(a_xor, XOR)
ATOMIC(a_mskor, MSKOR)
ATOMIC(a_swap, SWAP)
ATOMIC(a_cmpswap, CMPSWAP)
ATOMIC(a_cmpswap_f, CMPSWAP_F)
ATOMIC(a_min_f, MIN_F)
ATOMIC(a_max_f, MAX_F)
ATOMIC(a_add_f, ADD_F)
ATOMIC(a_wrap, WRAP)
ATOMIC(a_sub_clamp, CSUB)
ATOMIC(a_cond_sub, COND_SUB)
ATOMIC(a_pk_f16, PK_ADD_F16)
ATOMIC(a_pk_bf16, PK_ADD_BF16)

// ---- shuffles: the source is read whole before the destination is written

unsigned emu__permuted_lane(const struct emu_wave *w, unsigned lane, uint32_t address) {
  if (w->group->run->target->permutes_wave) return address / 4 % w->lanes;
  return (lane & 32) | (address / 4 & 31);
}

static void bpermute(struct emu_wave *w, const struct emu_step *step) {
  const struct emu_inst *inst = step->inst;
  uint32_t data[64];
  const uint32_t *address = emu__vector(w, inst->src[0].reg, 0);
  uint64_t exec = emu__wave_exec(w);
  memcpy(data, emu__vector(w, inst->src[1].reg, 0), w->lanes * 4);
  uint32_t result[64];
  for (unsigned l = 0; l < w->lanes; l++) {
    unsigned from = emu__permuted_lane(w, l, address[l] + (uint32_t)inst->imm);
    result[l] = exec >> from & 1 ? data[from] : 0;
  }
  uint32_t *to = emu__vector(w, inst->dst.reg, 0);
  for (unsigned l = 0; l < w->lanes; l++) to[l] = exec >> l & 1 ? result[l] : to[l];
}

static void permute(struct emu_wave *w, const struct emu_step *step) {
  const struct emu_inst *inst = step->inst;
  uint32_t result[64] = {0};
  uint64_t exec = emu__wave_exec(w);
  for (unsigned l = 0; l < w->lanes; l++) {
    if (!(exec >> l & 1)) continue;
    unsigned to = emu__permuted_lane(w, l, *emu__vector(w, inst->src[0].reg, l) + (uint32_t)inst->imm);
    result[to] = *emu__vector(w, inst->src[1].reg, l);
  }
  uint32_t *to = emu__vector(w, inst->dst.reg, 0);
  for (unsigned l = 0; l < w->lanes; l++) to[l] = exec >> l & 1 ? result[l] : to[l];
}

static void swizzle(struct emu_wave *w, const struct emu_step *step) {
  const struct emu_inst *inst = step->inst;
  uint32_t data[64], imm = (uint32_t)inst->imm;
  uint64_t exec = emu__wave_exec(w);
  if (imm >= 0xe000) {
    emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0, "The FFT mode of ds_swizzle is not executed.");
    return;
  }
  memcpy(data, emu__vector(w, inst->src[0].reg, 0), w->lanes * 4);
  uint32_t *to = emu__vector(w, inst->dst.reg, 0);
  for (unsigned l = 0; l < w->lanes; l++) {
    unsigned lane = l & 31, from;
    if (imm >= 0xc000) {  // rotate: direction, distance, and the bits of the lane that stay
      unsigned distance = imm >> 5 & 31, keep = imm & 31;
      unsigned turned = imm & 0x400 ? lane - distance : lane + distance;
      from = (lane & keep) | (turned & ~keep & 31);
    } else if (imm & 0x8000) {
      from = (lane & 28) | (imm >> (2 * (lane & 3)) & 3);
    } else {
      from = ((lane & imm & 31) | (imm >> 5 & 31)) ^ (imm >> 10 & 31);
    }
    from |= l & 32;
    if (exec >> l & 1) to[l] = exec >> from & 1 ? data[from] : 0;
  }
}

static void nothing(struct emu_wave *w, const struct emu_step *step) { (void)w, (void)step; }

#define ROW(name, function) {.op = EMU_##name, .klass = EMU_CLASS_LDS, .run = function, .straight = true}
#define TRANSPOSED(name, function) {.op = EMU_##name, .klass = EMU_CLASS_LDS, .run = function}  // may trap
#define A32(name, type, f) ROW(DS_##name##_##type##32, f##_4), ROW(DS_##name##_RTN_##type##32, f##_4)
#define A64(name, type, f) ROW(DS_##name##_##type##64, f##_8), ROW(DS_##name##_RTN_##type##64, f##_8)
#define A(name, type, f) A32(name, type, f), A64(name, type, f)
const struct emu_action emu__lds_actions[] = {ROW(DS_LOAD_I8, load_i8),
                                              ROW(DS_LOAD_U8, load_u8),
                                              ROW(DS_LOAD_I16, load_i16),
                                              ROW(DS_LOAD_U16, load_u16),
                                              ROW(DS_LOAD_B32, load_b32),
                                              ROW(DS_LOAD_B64, load_b64),
                                              ROW(DS_LOAD_B96, load_b96),
                                              ROW(DS_LOAD_B128, load_b128),
                                              TRANSPOSED(DS_LOAD_B64_TR_B4, load_tr4),
                                              TRANSPOSED(DS_LOAD_B96_TR_B6, load_tr6),
                                              TRANSPOSED(DS_LOAD_B64_TR_B8, load_tr8),
                                              TRANSPOSED(DS_LOAD_B64_TR_B16, load_tr16),
                                              ROW(DS_LOAD_U8_D16, load_u8_d16),
                                              ROW(DS_LOAD_U8_D16_HI, load_u8_d16_hi),
                                              ROW(DS_LOAD_I8_D16, load_i8_d16),
                                              ROW(DS_LOAD_I8_D16_HI, load_i8_d16_hi),
                                              ROW(DS_LOAD_U16_D16, load_u16_d16),
                                              ROW(DS_LOAD_U16_D16_HI, load_u16_d16_hi),
                                              ROW(DS_STORE_B8, store_b8),
                                              ROW(DS_STORE_B16, store_b16),
                                              ROW(DS_STORE_B32, store_b32),
                                              ROW(DS_STORE_B64, store_b64),
                                              ROW(DS_STORE_B96, store_b96),
                                              ROW(DS_STORE_B128, store_b128),
                                              ROW(DS_STORE_B8_D16_HI, store_b8_hi),
                                              ROW(DS_STORE_B16_D16_HI, store_b16_hi),
                                              ROW(DS_LOAD_2ADDR_B32, load_pair_b32),
                                              ROW(DS_LOAD_2ADDR_B64, load_pair_b64),
                                              ROW(DS_LOAD_2ADDR_STRIDE64_B32, load_pair_far_b32),
                                              ROW(DS_LOAD_2ADDR_STRIDE64_B64, load_pair_far_b64),
                                              ROW(DS_STORE_2ADDR_B32, store_pair_b32),
                                              ROW(DS_STORE_2ADDR_B64, store_pair_b64),
                                              ROW(DS_STORE_2ADDR_STRIDE64_B32, store_pair_far_b32),
                                              ROW(DS_STORE_2ADDR_STRIDE64_B64, store_pair_far_b64),
                                              ROW(DS_STOREXCHG_2ADDR_RTN_B32, exchange_pair_b32),
                                              ROW(DS_STOREXCHG_2ADDR_RTN_B64, exchange_pair_b64),
                                              ROW(DS_STOREXCHG_2ADDR_STRIDE64_RTN_B32, exchange_pair_far_b32),
                                              ROW(DS_STOREXCHG_2ADDR_STRIDE64_RTN_B64, exchange_pair_far_b64),
                                              ROW(DS_LOAD_ADDTID_B32, load_addtid),
                                              ROW(DS_STORE_ADDTID_B32, store_addtid),
                                              ROW(DS_PERMUTE_B32, permute),
                                              ROW(DS_BPERMUTE_B32, bpermute),
                                              {.op = EMU_DS_SWIZZLE_B32, .klass = EMU_CLASS_LDS, .run = swizzle},
                                              ROW(DS_NOP, nothing),
                                              A(ADD, U, a_add),
                                              A(SUB, U, a_sub),
                                              A(RSUB, U, a_rsub),
                                              A(INC, U, a_inc),
                                              A(DEC, U, a_dec),
                                              A(MIN, I, a_min_i),
                                              A(MAX, I, a_max_i),
                                              A(MIN, U, a_min_u),
                                              A(MAX, U, a_max_u),
                                              A(AND, B, a_and),
                                              A(OR, B, a_or),
                                              A(XOR, B, a_xor),
                                              A(MSKOR, B, a_mskor),
                                              A(CMPSTORE, B, a_cmpswap),
                                              A(CMPSTORE, F, a_cmpswap_f),
                                              A(MIN, F, a_min_f),
                                              A(MAX, F, a_max_f),
                                              A(ADD, F, a_add_f),
                                              ROW(DS_STOREXCHG_RTN_B32, a_swap_4),
                                              ROW(DS_STOREXCHG_RTN_B64, a_swap_8),
                                              ROW(DS_WRAP_RTN_B32, a_wrap_4),
                                              A32(SUB_CLAMP, U, a_sub_clamp),
                                              A32(COND_SUB, U, a_cond_sub),
                                              ROW(DS_PK_ADD_F16, a_pk_f16_4),
                                              ROW(DS_PK_ADD_RTN_F16, a_pk_f16_4),
                                              ROW(DS_PK_ADD_BF16, a_pk_bf16_4),
                                              ROW(DS_PK_ADD_RTN_BF16, a_pk_bf16_4),
                                              {0}};
