// GLOBAL, SCRATCH, FLAT and MUBUF: one way to find the lanes' places for each, one set of operations on them.
#include <inttypes.h>

#include "machine/access.h"
#include "machine/checker_state.h"

uint32_t emu__special_value(const struct emu_wave *w, unsigned reg, unsigned dword) {
  switch (reg) {
    case EMU_SHARED_BASE:
      return dword ? EMU_SHARED_APERTURE : 0;
    case EMU_PRIVATE_BASE:
      return dword ? EMU_PRIVATE_APERTURE : 0;
    case EMU_SHARED_LIMIT:
      return dword ? EMU_SHARED_APERTURE : UINT32_MAX;
    case EMU_PRIVATE_LIMIT:
      return dword ? EMU_PRIVATE_APERTURE : UINT32_MAX;
    case EMU_VCCZ:
      return dword ? 0 : !(w->s[EMU_VCC_LO] | (w->lanes == 64 ? w->s[EMU_VCC_HI] : 0));
    case EMU_EXECZ:
      return dword ? 0 : !emu__wave_exec(w);
    case EMU_SCC:
      return dword ? 0 : w->scc;
    default:
      return 0;
  }
}

static void past_scratch(struct emu_wave *w, const struct emu_step *step, unsigned lane, uint64_t offset,
                         unsigned bytes) {
  emu__wave_trap(w, step, EMU_FAULT, "out of bounds", (int)lane, offset,
                 "It accesses %u bytes at %" PRIu64 " of its scratch, which has %" PRIu64 " bytes a lane.%s", bytes,
                 offset, w->scratch_bytes,
                 w->group->run->dispatch->dynamic_stack
                     ? " The kernel calls itself or through pointers, so that its stack is as large as "
                       "hipDeviceSetLimit(hipLimitStackSize, bytes) says."
                     : "");
}

// The host address of a lane's byte `offset` in scratch, whose dwords interleave the lanes (see wave.h). false: the
// access is past the end or crosses dwords, and the wave has trapped.
static bool scratch_place(struct emu_wave *w, const struct emu_step *step, unsigned lane, uint64_t offset,
                          unsigned bytes, uint64_t *at) {
  if (offset + bytes > w->scratch_bytes) {
    past_scratch(w, step, lane, offset, bytes);
    return false;
  }
  if (offset % 4 + (bytes < 4 ? bytes : 4) > 4) {
    emu__wave_trap(w, step, EMU_FAULT, "misaligned", (int)lane, offset,
                   "It accesses %u bytes at %" PRIu64 " of its scratch, across dwords.", bytes, offset);
    return false;
  }
  *at = (uint64_t)(uintptr_t)w->scratch + (offset / 4 * w->lanes + lane) * 4 + offset % 4;
  return true;
}

static bool owns_scratch(struct emu_wave *w, const struct emu_step *step) {
  uint64_t base = w->flat_scratch;
  if (w->group->run->target->scratch_in_sgprs)
    base = w->s[EMU_FLAT_SCRATCH_LO] | (uint64_t)w->s[EMU_FLAT_SCRATCH_LO + 1] << 32;
  if (base == (uint64_t)(uintptr_t)w->scratch) return true;
  emu__wave_trap(w, step, EMU_FAULT, "out of bounds", -1, base,
                 "FLAT_SCRATCH holds 0x%" PRIx64 ", which is not this wave's scratch.", base);
  return false;
}

static bool global_places(struct emu_wave *w, const struct emu_step *step, unsigned bytes, bool write,
                          struct emu_places *p) {
  const struct emu_inst *inst = step->inst;
  uint64_t base = (uint64_t)(int64_t)inst->imm;
  p->stride = 4;
  p->space = EMU_SPACE_GLOBAL;
  if (inst->src[2].kind) base += emu__scalar_read64(w, &inst->src[2]);
  if (!inst->src[0].kind) {  // …_ADDTID
    for (unsigned l = 0; l < w->lanes; l++) p->at[l] = base + 4 * l;
  } else {
    const uint32_t *low = emu__vector(w, inst->src[0].reg, 0);
    for (unsigned half = 0; half < w->lanes; half += EMU_HALF) {
      const uint32_t *a = low + half, *b = a + w->lanes;
      uint64_t *at = p->at + half;
      if (inst->src[0].dwords == 1) {
        EMU_EACH at[l] = base + a[l];
      } else {
        EMU_EACH at[l] = base + (a[l] | (uint64_t)b[l] << 32);
      }
    }
  }
  return emu__memory_check(w, step, p->at, p->mask, bytes, write);
}

static bool scratch_places(struct emu_wave *w, const struct emu_step *step, unsigned bytes, struct emu_places *p) {
  const struct emu_inst *inst = step->inst;
  uint32_t base = (uint32_t)inst->imm;
  p->stride = 4 * w->lanes;
  p->space = EMU_SPACE_SCRATCH;
  if (!owns_scratch(w, step)) return false;
  if (inst->src[2].kind) base += emu__scalar_read(w, &inst->src[2]);
  for (uint64_t rest = p->mask; rest; rest &= rest - 1) {
    unsigned l = (unsigned)__builtin_ctzll(rest);
    uint32_t offset = base + (inst->src[0].kind ? *emu__vector(w, inst->src[0].reg, l) : 0);
    if (!scratch_place(w, step, l, offset, bytes, &p->at[l])) return false;
  }
  return true;
}

// A flat address lies in the window (aperture) of LDS, in that of scratch, or in global memory. Lanes in scratch go to
// p[1], all others to p[0].
static bool flat_places(struct emu_wave *w, const struct emu_step *step, unsigned bytes, bool write,
                        struct emu_places p[2]) {
  const struct emu_inst *inst = step->inst;
  uint64_t global = 0;
  p[1] = p[0];
  p[1].mask = 0;
  p[0].stride = 4;
  p[0].space = EMU_SPACE_GLOBAL;
  p[1].stride = 4 * w->lanes;
  p[1].space = EMU_SPACE_SCRATCH;
  for (uint64_t rest = p[0].mask; rest; rest &= rest - 1) {
    unsigned l = (unsigned)__builtin_ctzll(rest);
    uint64_t address = *emu__vector(w, inst->src[0].reg, l) | (uint64_t)*emu__vector(w, inst->src[0].reg + 1u, l) << 32,
             offset;
    address += (uint64_t)(int64_t)inst->imm;
    offset = address & UINT32_MAX;
    if (address >> 32 == EMU_SHARED_APERTURE) {
      if (offset + bytes > w->group->lds_bytes) {
        emu__wave_trap(w, step, EMU_FAULT, "out of bounds", (int)l, offset,
                       "It accesses %u bytes at %" PRIu64 " of LDS through a flat address; the group has %u.", bytes,
                       offset, w->group->lds_bytes);
        return false;
      }
      p[0].at[l] = (uint64_t)(uintptr_t)w->group->lds + offset;
    } else if (address >> 32 == EMU_PRIVATE_APERTURE) {
      if (!scratch_place(w, step, l, offset, bytes, &p[1].at[l])) return false;
      p[1].mask |= UINT64_C(1) << l;
    } else {
      p[0].at[l] = address;
      global |= UINT64_C(1) << l;
    }
  }
  p[0].mask &= ~p[1].mask;
  if (p[1].mask && !owns_scratch(w, step)) return false;
  if (!global && p[0].mask) p[0].space = EMU_SPACE_SHARED;
  return !global || emu__memory_check(w, step, p[0].at, global, bytes, write);
}

// Finds the lanes' places in the buffer that a V# describes (abi.h). A swizzled buffer interleaves the dwords of
// `together` records, so that lanes with neighbouring indices read neighbouring dwords:
//
//     plain       | record 0: dwords 0, 1, … | record 1: dwords 0, 1, … | …
//     swizzled    | dword 0 of records 0 … together - 1 | dword 1 of records 0 … together - 1 | … | the next records
bool emu__buffer_places(struct emu_wave *w, const struct emu_step *step, unsigned bytes, bool write,
                        struct emu_places *p) {
  const struct emu_inst *inst = step->inst;
  if ((inst->lds && !w->group->run->target->loads_lds) || inst->tfe) {
    emu__wave_trap(w, step, EMU_TRAP, "trap", -1, 0, "Buffer access with lds or tfe is not executed.");
    return false;
  }
  const uint32_t *v = &w->s[inst->src[2].reg];
  uint64_t base = v[0] | (uint64_t)emu__bits(v[1], EMU_V1_BASE_HIGH) << 32, records = v[2];
  uint32_t stride = emu__bits(v[1], EMU_V1_STRIDE), soffset = emu__scalar_read(w, &inst->src[3]);
  bool swizzled = emu__field(v[1], w->group->run->target->v1_swizzle);
  bool adds_lane = emu__bits(v[3], EMU_V3_ADD_TID_ENABLE);
  uint32_t together = 8u << emu__bits(v[3], EMU_V3_INDEX_STRIDE), check = emu__bits(v[3], EMU_V3_OOB_SELECT);
  if (w->group->run->target->buffer_by_stride) check = swizzled ? EMU_OOB_INDEX : EMU_OOB_RAW;
  unsigned first = inst->src[0].reg;
  p->stride = swizzled ? 4 * together : 4;
  p->space = EMU_SPACE_GLOBAL;
  for (uint64_t rest = p->mask; rest; rest &= rest - 1) {
    unsigned l = (unsigned)__builtin_ctzll(rest);
    uint64_t index = (inst->idxen ? *emu__vector(w, first, l) : 0) + (adds_lane ? l : 0);
    uint64_t offset = (uint32_t)inst->imm + (uint64_t)(inst->offen ? *emu__vector(w, first + inst->idxen, l) : 0);
    uint64_t at = soffset + index * stride + offset;
    bool out = false;
    if (check == EMU_OOB_STRUCTURED) out = index >= records || offset + bytes > stride;
    if (check == EMU_OOB_INDEX) out = index >= records;
    if (check == EMU_OOB_NO_RECORDS) out = !records;
    if (check == EMU_OOB_RAW) out = at + bytes > records;
    if (swizzled) {
      at = soffset + (index / together * stride + offset / 4 * 4) * together + index % together * 4 + offset % 4;
    }
    p->at[l] = base + at;
    p->outside |= (uint64_t)out << l;
  }
  // the private segment may be a buffer: its memory is the wave's, in no table
  uint64_t scratch = (uint64_t)(uintptr_t)w->scratch, size = w->scratch_bytes * w->lanes;
  bool own = size && (p->mask & ~p->outside);
  bool private = swizzled && adds_lane && base == (uint64_t)(uintptr_t)w->group->scratch;
  for (uint64_t rest = p->mask & ~p->outside; rest && own; rest &= rest - 1) {
    unsigned l = (unsigned)__builtin_ctzll(rest);
    uint64_t at = p->at[l], span = bytes < 4 ? bytes : (uint64_t)(bytes / 4 - 1) * p->stride + 4;
    own = at >= scratch && at + span <= scratch + size;
    if (own || !private) continue;
    past_scratch(w, step, l, (at - scratch) / (4 * w->lanes) * 4 + at % 4, bytes);
    return false;
  }
  if (own) {
    p->space = EMU_SPACE_SCRATCH;
    return true;
  }
  unsigned span = bytes < 4 ? bytes : (bytes / 4 - 1) * p->stride + 4;  // dwords of a swizzled buffer lie apart
  return emu__memory_check(w, step, p->at, p->mask & ~p->outside, span, write);
}

// The places of every active lane, as one or two groups; 0: the wave has trapped, or no lane is active.
static int find_places(struct emu_wave *w, const struct emu_step *step, unsigned bytes, bool write,
                       struct emu_places p[2]) {
  p[0].mask = emu__wave_exec(w);
  p[0].outside = 0;
  if (!p[0].mask) return 0;
  switch (step->inst->format) {
    case EMU_GLOBAL:
      return global_places(w, step, bytes, write, p);
    case EMU_SCRATCH:
      return scratch_places(w, step, bytes, p);
    case EMU_FLAT:
      return flat_places(w, step, bytes, write, p) ? 1 + (p[1].mask != 0) : 0;
    case EMU_MUBUF:
      return emu__buffer_places(w, step, bytes, write, p);
    default:
      return 0;
  }
}

// To LDS: at M0 and the offset that the address has too, a lane behind the other, each with whole dwords. Source: AMD
// "CDNA3 Instruction Set Architecture", section "Memory Buffer Load to LDS". No race is looked for in what is
// written so, and no missing wait.
static void load_to_lds(struct emu_wave *w, const struct emu_step *step, const struct emu_shape *shape) {
  const struct emu_inst *inst = step->inst;
  struct emu_group *group = w->group;
  struct emu_places p[2];
  unsigned bytes = shape->bytes < 4 ? 4 : shape->bytes;
  uint32_t base = group->run->target->group_lds > 65536 ? w->s[EMU_M0] : w->s[EMU_M0] & 0xffff;
  int n = find_places(w, step, shape->bytes, false, p);
  for (int i = 0; i < n; i++) {
    emu__count_access(w, &p[i], shape->bytes, false);
    uint64_t lost = w->check ? emu__check_elements(w, step, &p[i], shape->bytes) : 0;
    struct emu_places into = {.mask = p[i].mask, .stride = 4, .space = EMU_SPACE_SHARED};
    if (w->tag) emu__tell_places(w, &p[i], shape->bytes, true, false);
    for (uint64_t rest = p[i].mask; rest; rest &= rest - 1) {
      unsigned l = (unsigned)__builtin_ctzll(rest);
      uint64_t at = (uint64_t)base + (uint32_t)inst->imm + (uint64_t)l * bytes;
      uint32_t data[4] = {0};
      if (at + bytes > group->lds_bytes) {
        emu__wave_trap(w, step, EMU_FAULT, "out of bounds", (int)l, at,
                       "It loads %u bytes to %" PRIu64 " of LDS; the group has %u.", bytes, at, group->lds_bytes);
        return;
      }
      if (!(p[i].outside >> l & 1)) memcpy(data, (const void *)(uintptr_t)p[i].at[l], shape->bytes);
      if (shape->is_signed) data[0] = shape->bytes == 1 ? (uint32_t)(int8_t)data[0] : (uint32_t)(int16_t)data[0];
      into.at[l] = (uint64_t)(uintptr_t)group->lds + at;
      memcpy(group->lds + at, data, bytes);
      if (w->check) memset(group->checker->lds + at, lost >> l & 1 ? 0xff : 0, bytes);
    }
    if (w->tag) emu__tell_places(w, &into, bytes, false, true);
  }
}

static void load(struct emu_wave *w, const struct emu_step *step, const struct emu_shape *shape) {
  struct emu_places p[2];
  if (step->inst->lds) {
    load_to_lds(w, step, shape);
    return;
  }
  int n = find_places(w, step, shape->bytes, false, p);
  for (int i = 0; i < n; i++) {
    emu__count_access(w, &p[i], shape->bytes, false);
    if (w->check && !emu__check_load(w, step, &p[i], shape, step->inst->dst.reg)) return;
    emu__places_load(w, &p[i], shape, step->inst->dst.reg);
  }
}

static void store(struct emu_wave *w, const struct emu_step *step, const struct emu_shape *shape) {
  struct emu_places p[2];
  int n = find_places(w, step, shape->bytes, true, p);
  for (int i = 0; i < n; i++) {
    emu__count_access(w, &p[i], shape->bytes, true);
    if (w->check && !emu__check_store(w, step, &p[i], shape, step->inst->src[1].reg)) return;
    emu__places_store(w, &p[i], shape, step->inst->src[1].reg);
  }
}

static void atomic(struct emu_wave *w, const struct emu_step *step, enum emu_atomic kind, unsigned bytes) {
  const struct emu_inst *inst = step->inst;
  struct emu_places p[2];
  int n = find_places(w, step, bytes, true, p);
  unsigned data = inst->src[1].reg;
  int compare = kind == EMU_ATOMIC_CMPSWAP || kind == EMU_ATOMIC_CMPSWAP_F ? (int)(data + bytes / 4) : -1;
  int dst = inst->dst.kind ? inst->dst.reg : -1;
  for (int i = 0; i < n; i++) {
    for (uint64_t rest = p[i].mask & ~p[i].outside; rest; rest &= rest - 1) {
      int l = __builtin_ctzll(rest);
      if (!(p[i].at[l] % bytes)) continue;
      emu__wave_trap(w, step, EMU_FAULT, "misaligned", l, p[i].at[l],
                     "An atomic operation on %u bytes at 0x%" PRIx64 ".", bytes, p[i].at[l]);
      return;
    }
    emu__count_access(w, &p[i], bytes, true);
    if (w->check && !emu__check_atomic(w, step, &p[i], bytes, data, compare, dst)) return;
    emu__places_atomic(w, &p[i], kind, bytes, data, compare, dst);
  }
}

#define LOAD(name, ...)                                               \
  static void name(struct emu_wave *w, const struct emu_step *step) { \
    static const struct emu_shape shape = {__VA_ARGS__};              \
    load(w, step, &shape);                                            \
  }
#define STORE(name, ...)                                              \
  static void name(struct emu_wave *w, const struct emu_step *step) { \
    static const struct emu_shape shape = {__VA_ARGS__};              \
    store(w, step, &shape);                                           \
  }
#define LOAD_LDS(name, ...)                                           \
  static void name(struct emu_wave *w, const struct emu_step *step) { \
    static const struct emu_shape shape = {__VA_ARGS__};              \
    load_to_lds(w, step, &shape);                                     \
  }
LOAD_LDS(lds_u8, 1, false, false, false)
LOAD_LDS(lds_i8, 1, true, false, false)
LOAD_LDS(lds_u16, 2, false, false, false)
LOAD_LDS(lds_i16, 2, true, false, false)
LOAD_LDS(lds_b32, 4, false, false, false)
LOAD_LDS(lds_b96, 12, false, false, false)
LOAD_LDS(lds_b128, 16, false, false, false)
LOAD(load_u8, 1, false, false, false)
LOAD(load_i8, 1, true, false, false)
LOAD(load_u16, 2, false, false, false)
LOAD(load_i16, 2, true, false, false)
LOAD(load_b32, 4, false, false, false)
LOAD(load_b64, 8, false, false, false)
LOAD(load_b96, 12, false, false, false)
LOAD(load_b128, 16, false, false, false)
LOAD(load_d16_u8, 1, false, true, false)
LOAD(load_d16_i8, 1, true, true, false)
LOAD(load_d16_b16, 2, false, true, false)
LOAD(load_d16_hi_u8, 1, false, true, true)
LOAD(load_d16_hi_i8, 1, true, true, true)
LOAD(load_d16_hi_b16, 2, false, true, true)
STORE(store_b8, 1, false, false, false)
STORE(store_b16, 2, false, false, false)
STORE(store_b32, 4, false, false, false)
STORE(store_b64, 8, false, false, false)
STORE(store_b96, 12, false, false, false)
STORE(store_b128, 16, false, false, false)
STORE(store_d16_hi_b8, 1, false, false, true)
STORE(store_d16_hi_b16, 2, false, false, true)

#define ATOMIC(name, kind, bytes) \
  static void name(struct emu_wave *w, const struct emu_step *s) { atomic(w, s, EMU_ATOMIC_##kind, bytes); }
#define ATOMICS(name, kind) ATOMIC(name##_32, kind, 4) ATOMIC(name##_64, kind, 8)
ATOMICS(a_swap, SWAP)
ATOMICS(a_cmpswap, CMPSWAP)
ATOMICS(a_add, ADD)
ATOMICS(a_sub, SUB)
ATOMICS(a_min_i, MIN_I)
ATOMICS(a_min_u, MIN_U)
ATOMICS(a_max_i, MAX_I)
ATOMICS(a_max_u, MAX_U)
ATOMICS(a_and, AND)
ATOMICS(a_or, OR)
ATOMICS(a_xor, XOR)
ATOMICS(a_inc, INC)
ATOMICS(a_dec, DEC)
ATOMICS(a_cmpswap_f, CMPSWAP_F)
ATOMICS(a_min_f, MIN_F)
ATOMICS(a_max_f, MAX_F)
ATOMIC(a_csub, CSUB, 4)
ATOMIC(a_cond_sub, COND_SUB, 4)
ATOMIC(a_pk_f16, PK_ADD_F16, 4)
ATOMIC(a_pk_bf16, PK_ADD_BF16, 4)
ATOMICS(a_add_f, ADD_F)

#define ROW(P, name, what, function) {.op = EMU_##P##_##name, .klass = EMU_CLASS_##what, .run = function}
#define LOADS(P, what)                                                                                              \
  ROW(P, LOAD_U8, what, load_u8), ROW(P, LOAD_I8, what, load_i8), ROW(P, LOAD_U16, what, load_u16),                 \
      ROW(P, LOAD_I16, what, load_i16), ROW(P, LOAD_B32, what, load_b32), ROW(P, LOAD_B64, what, load_b64),         \
      ROW(P, LOAD_B96, what, load_b96), ROW(P, LOAD_B128, what, load_b128), ROW(P, LOAD_D16_U8, what, load_d16_u8), \
      ROW(P, LOAD_D16_I8, what, load_d16_i8), ROW(P, LOAD_D16_B16, what, load_d16_b16),                             \
      ROW(P, LOAD_D16_HI_U8, what, load_d16_hi_u8), ROW(P, LOAD_D16_HI_I8, what, load_d16_hi_i8),                   \
      ROW(P, LOAD_D16_HI_B16, what, load_d16_hi_b16)
#define STORES(P, what)                                                                                             \
  ROW(P, STORE_B8, what, store_b8), ROW(P, STORE_B16, what, store_b16), ROW(P, STORE_B32, what, store_b32),         \
      ROW(P, STORE_B64, what, store_b64), ROW(P, STORE_B96, what, store_b96), ROW(P, STORE_B128, what, store_b128), \
      ROW(P, STORE_D16_HI_B8, what, store_d16_hi_b8), ROW(P, STORE_D16_HI_B16, what, store_d16_hi_b16)
#define TWO(P, name, type, f) \
  ROW(P, ATOMIC_##name##_##type##32, ATOMIC, f##_32), ROW(P, ATOMIC_##name##_##type##64, ATOMIC, f##_64)
#define ATOMIC_ROWS(P)                                                                                                 \
  TWO(P, SWAP, B, a_swap), TWO(P, CMPSWAP, B, a_cmpswap), TWO(P, ADD, U, a_add), TWO(P, SUB, U, a_sub),                \
      TWO(P, MIN, I, a_min_i), TWO(P, MIN, U, a_min_u), TWO(P, MAX, I, a_max_i), TWO(P, MAX, U, a_max_u),              \
      TWO(P, AND, B, a_and), TWO(P, OR, B, a_or), TWO(P, XOR, B, a_xor), TWO(P, INC, U, a_inc), TWO(P, DEC, U, a_dec), \
      TWO(P, CMPSWAP, F, a_cmpswap_f), TWO(P, MIN, F, a_min_f), TWO(P, MAX, F, a_max_f),                               \
      ROW(P, ATOMIC_ADD_F32, ATOMIC, a_add_f_32), ROW(P, ATOMIC_ADD_F64, ATOMIC, a_add_f_64),                          \
      ROW(P, ATOMIC_CSUB_U32, ATOMIC, a_csub), ROW(P, ATOMIC_COND_SUB_U32, ATOMIC, a_cond_sub),                        \
      ROW(P, ATOMIC_PK_ADD_F16, ATOMIC, a_pk_f16), ROW(P, ATOMIC_PK_ADD_BF16, ATOMIC, a_pk_bf16)

const struct emu_action emu__global_actions[] = {LOADS(GLOBAL, LOAD),
                                                 STORES(GLOBAL, STORE),
                                                 ATOMIC_ROWS(GLOBAL),
                                                 ROW(GLOBAL, LOAD_ADDTID_B32, LOAD, load_b32),
                                                 ROW(GLOBAL, STORE_ADDTID_B32, STORE, store_b32),
                                                 ROW(GLOBAL, LOAD_LDS_U8, LOAD, lds_u8),
                                                 ROW(GLOBAL, LOAD_LDS_I8, LOAD, lds_i8),
                                                 ROW(GLOBAL, LOAD_LDS_U16, LOAD, lds_u16),
                                                 ROW(GLOBAL, LOAD_LDS_I16, LOAD, lds_i16),
                                                 ROW(GLOBAL, LOAD_LDS_B32, LOAD, lds_b32),
                                                 ROW(GLOBAL, LOAD_LDS_B96, LOAD, lds_b96),
                                                 ROW(GLOBAL, LOAD_LDS_B128, LOAD, lds_b128),
                                                 LOADS(FLAT, LOAD),
                                                 STORES(FLAT, STORE),
                                                 ATOMIC_ROWS(FLAT),
                                                 LOADS(SCRATCH, SCRATCH),
                                                 STORES(SCRATCH, SCRATCH),
                                                 {0}};
const struct emu_action emu__buffer_actions[] = {LOADS(BUFFER, LOAD), STORES(BUFFER, STORE), ATOMIC_ROWS(BUFFER), {0}};
