// Memory: what was never written, which wave touched what, bounds and alignment of LDS.
#include "machine/checker_note.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

// ---- shadows of allocations

static uint64_t dword_count(const struct emu_shadow *s) {
  return s->bytes ? (s->base + s->bytes - 1) / 4 - s->base / 4 + 1 : 0;
}

struct emu_shadow *emu__shadow_create(uint64_t base, uint64_t bytes, bool written) {
  struct emu_shadow *s = calloc(1, sizeof(*s));
  if (!s) return NULL;
  s->base = base;
  s->bytes = bytes;
  if (!written) s->written = calloc(dword_count(s) + 1, 1);
  if (!written && !s->written) {
    free(s);
    return NULL;
  }
  return s;
}

bool emu__shadow_arm(struct emu_shadow *s) {
  if (s->writers) return true;
  uint64_t *records = calloc(dword_count(s) + 1, 16);
  if (!records) return false;
  s->readers = records + dword_count(s);
  __atomic_store_n(&s->writers, records, __ATOMIC_RELEASE);
  return true;
}

void emu__shadow_release(struct emu_shadow *s) {
  if (!s) return;
  free(s->writers);
  free(s->written);
  free(s);
}

void emu__shadow_written(struct emu_shadow *s, uint64_t address, uint64_t bytes) {
  if (!s->written || !bytes) return;
  uint64_t last = address + bytes - 1, from = address / 4 - s->base / 4, to = last / 4 - s->base / 4;
  unsigned head = 15u << (address % 4) & 15, tail = 15u >> (3 - last % 4);
  if (from == to) {
    s->written[from] |= (uint8_t)(head & tail);
    return;
  }
  s->written[from] |= (uint8_t)head;
  s->written[to] |= (uint8_t)tail;
  memset(s->written + from + 1, 15, to - from - 1);
}

// Undefined bits of `bytes` (at most 4) in memory without a shadow: those of kernel arguments that the caller left out.
static uint32_t missing_arguments(const struct emu_dispatch *d, uint64_t at, unsigned bytes) {
  uint32_t undefined = 0;
  for (unsigned i = 0; i < bytes; i++) {
    uint64_t byte = at + i - d->kernarg;
    if (byte >= d->kernarg_missing[0] && byte < d->kernarg_missing[1]) undefined |= 255u << (8 * i);
  }
  return undefined;
}

// The shadow of the allocation that holds the address. NULL: memory without one, such as a kernel's arguments and code.
// The last ones that a wave used are found without the table's lock.
static const struct emu_shadow *shadow_of(struct emu_wave *wave, uint64_t address) {
  struct emu_wave_check *c = wave->checker;
  const struct emu_dispatch *d = wave->group->run->dispatch;
  if (!d->memory || address - d->kernarg < d->kernarg_bytes) return NULL;
  uint64_t epoch = emu__memory_epoch(d->memory);
  if (c->regions_epoch != epoch) {
    memset(c->regions, 0, sizeof(c->regions));
    c->regions_epoch = epoch;
  }
  enum { REGIONS = sizeof(c->regions) / sizeof(c->regions[0]) };
  for (int i = 0; i < REGIONS; i++) {
    const struct emu_shadow *s = c->regions[i];
    if (!s || address - s->base >= s->bytes) continue;
    c->regions[i] = c->regions[0];
    c->regions[0] = s;
    return s;
  }
  const struct emu_shadow *s = emu__memory_shadow(d->memory, address);
  if (!s) return NULL;
  memmove(c->regions + 1, c->regions, sizeof(c->regions) - sizeof(c->regions[0]));
  c->regions[0] = s;
  return s;
}

uint64_t *emu__check_writer(struct emu_wave *wave, uint64_t address) {
  const struct emu_shadow *s = shadow_of(wave, address);
  return s ? &s->writers[address / 4 - s->base / 4] : NULL;
}

// ---- one dword of one lane

struct place {
  uint64_t at;
  unsigned bytes;  // 1 to 4, within a dword or across two
};

static uint32_t spread_bytes(unsigned missing) {
  return (missing & 1 ? 0xff : 0) | (missing & 2 ? 0xff00 : 0) | (missing & 4 ? 0xff0000 : 0) |
         (missing & 8 ? 0xff000000 : 0);
}

struct access {
  struct emu_wave *wave;
  const struct emu_step *step;
  enum emu_touch how;
  struct emu_racer racer;
  uint32_t value;  // that a store is about to write to the place
};

static struct access begin_access(struct emu_wave *wave, const struct emu_step *step, enum emu_touch how) {
  return (struct access){.wave = wave, .step = step, .how = how, .racer = emu__racer(wave)};
}

static inline bool in_lds(const struct emu_group *group, uint64_t at) {
  return at - (uint64_t)(uintptr_t)group->lds < group->lds_bytes;
}

// Past the caches of the compute unit: a load that may be atomic, and a store that is, where stores tell.
static bool goes_past(const struct emu_wave *wave, const struct emu_step *step) {
  const struct emu_inst *inst = step->inst;
  bool past = inst->glc || inst->scope >= EMU_SCOPE_SE || (inst->dlc && wave->group->run->target->dlc_is_scope);
  return inst->format != EMU_DS && past;
}

static void touch(const struct access *a, int lane, uint64_t *writer, uint64_t *reader, unsigned mask, unsigned same,
                  uint64_t address, bool shared) {
  struct emu_other other;
  if (!emu__race(&a->racer, writer, reader, mask, same, a->how, shared, &other)) return;
  bool writes = a->how >= EMU_TOUCH_WRITE;
  if (other.atomic) {
    if (shared) return;
    if (!writes) emu__model_suspect(a->wave, a->step, lane, address, &other);
    if (!writes || goes_past(a->wave, a->step) || !emu__model_is_blind(a->wave, address)) return;
  }
  // a flag is itself no more than told of by what has been read there
  if (other.lack != EMU_LACK_ALL && emu__model_is_flag(a->wave, address)) return;
  emu__check_say_race(a->wave, a->step, lane, address, writes, shared, &other);
}

// Which of the `bytes` at a place in LDS a store leaves as they are: bit 0 for the first one. What is not defined is
// never the same. Of global memory this cannot be said: other host threads write it meanwhile.
static unsigned kept_bytes(const struct access *a, uint64_t at, uint64_t offset, unsigned bytes, uint32_t undefined) {
  if (a->how != EMU_TOUCH_WRITE) return 0;
  uint32_t differs = 0, unknown = 0;
  memcpy(&differs, (const void *)(uintptr_t)at, bytes);
  memcpy(&unknown, a->wave->group->checker->lds + offset, bytes);
  differs = (differs ^ a->value) | unknown | undefined;
  unsigned kept = 0;
  for (unsigned i = 0; i < bytes; i++) kept |= (unsigned)!(differs >> 8 * i & 0xff) << i;
  return kept;
}

// Checks an access to `bytes` (at most 4) of LDS for races. Returns the place's undefined bits; a store replaces them
// by `bits`.
static uint32_t shared_dword(const struct access *a, int lane, uint64_t at, unsigned bytes, uint32_t bits) {
  struct emu_group_check *g = a->wave->group->checker;
  uint64_t offset = at - (uint64_t)(uintptr_t)a->wave->group->lds;
  unsigned kept = kept_bytes(a, at, offset, bytes, bits);
  for (uint64_t i = offset / 4; i <= (offset + bytes - 1) / 4; i++) {
    unsigned from = i == offset / 4 ? offset % 4 : 0,
             to = (unsigned)(offset + bytes - i * 4 < 4 ? offset + bytes - i * 4 : 4);
    unsigned mask = (15u << from) & (15u >> (4 - to));
    unsigned same = kept << (offset - i * 4 + 4) >> 4 & mask;
    touch(a, lane, &g->lds_writers[i], &g->lds_readers[i], mask, same, offset, true);
  }
  uint32_t old = 0;
  memcpy(&old, g->lds + offset, bytes);
  if (a->how >= EMU_TOUCH_WRITE) memcpy(g->lds + offset, &bits, bytes);
  return old;
}

static uint32_t global_dword(const struct access *a, int lane, uint64_t at, unsigned bytes) {
  const struct emu_shadow *s = shadow_of(a->wave, at);
  if (!s) return missing_arguments(a->wave->group->run->dispatch, at, bytes);
  uint32_t old = 0;
  uint64_t first = s->base / 4;
  for (uint64_t d = at / 4; d <= (at + bytes - 1) / 4; d++) {
    unsigned from = d == at / 4 ? at % 4 : 0, to = (unsigned)(at + bytes - d * 4 < 4 ? at + bytes - d * 4 : 4);
    unsigned mask = (15u << from) & (15u >> (4 - to));
    touch(a, lane, &s->writers[d - first], &s->readers[d - first], mask, 0, at, false);
    if (!s->written) continue;
    uint8_t *state = &s->written[d - first];
    unsigned had = __atomic_load_n(state, __ATOMIC_RELAXED);
    if (had != 15) old |= (uint32_t)((uint64_t)spread_bytes(mask & ~had) << 8 * (d * 4 - at + 4) >> 32);
    if (a->how >= EMU_TOUCH_WRITE) emu__mark_written(state, mask);
  }
  return old;
}

static uint32_t scratch_dword(const struct access *a, uint64_t at, unsigned bytes, uint32_t bits) {
  const struct emu_wave *wave = a->wave;
  uint8_t *from = wave->checker->scratch + (at - (uint64_t)(uintptr_t)wave->scratch);
  uint32_t old = 0;
  memcpy(&old, from, bytes);
  if (a->how >= EMU_TOUCH_WRITE) memcpy(from, &bits, bytes);
  return old;
}

// ---- the lanes of an access that lie in one piece of memory, at once

// false: the lanes lie in several, or in memory without records, or apart from each other's dwords.
static bool find_piece(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *p, unsigned bytes,
                       struct emu_piece *out) {
  if (p->stride != 4 || step->inst->format == EMU_FLAT) return false;
  if (p->space == EMU_SPACE_SHARED) {
    struct emu_group_check *g = wave->group->checker;
    *out = (struct emu_piece){(uint64_t)(uintptr_t)wave->group->lds / 4, g->lds_writers, g->lds_readers, NULL, g->lds};
    return true;
  }
  if (p->space != EMU_SPACE_GLOBAL || !(p->mask & ~p->outside)) return false;
  const struct emu_shadow *s = shadow_of(wave, p->at[__builtin_ctzll(p->mask & ~p->outside)]);
  if (!s || s->bytes < bytes) return false;
  uint64_t on = p->mask & ~p->outside, beyond = 0;
  for (unsigned half = 0; half < wave->lanes; half += EMU_HALF) {
    uint32_t lanes = (uint32_t)(on >> half);
    EMU_EACH beyond |=
        -(uint64_t)(lanes >> l & 1) & -(uint64_t)(p->at[half + (unsigned)l] - s->base > s->bytes - bytes);
  }
  if (beyond) return false;
  *out = (struct emu_piece){s->base / 4, s->writers, s->readers, s->written, NULL};
  return true;
}

// What was read is defined.
static void clear_lanes(uint32_t *undefined, uint64_t lanes, const struct emu_shape *shape) {
  uint32_t kept = !shape->half ? 0 : shape->high ? 0xffff : 0xffff0000;
  for (; lanes; lanes &= lanes - 1) undefined[__builtin_ctzll(lanes)] &= kept;
}

// ---- instructions

// The bytes that lie outside of LDS. A report, and the access goes on without them.
static void check_shared(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *p,
                         unsigned bytes) {
  if (p->space != EMU_SPACE_SHARED) return;
  uint64_t base = (uint64_t)(uintptr_t)wave->group->lds, size = wave->group->lds_bytes, out = p->mask & p->outside;
  if (out) {
    int lane = __builtin_ctzll(out);
    uint64_t at = p->at[lane] - base;
    emu__check_report(wave, step, "out of bounds", lane, at,
                      "It accesses %u bytes at byte %" PRIu64 " of LDS, of which the work-group has %" PRIu64
                      ": %" PRIu64 " bytes past the end.",
                      bytes, at, size, at >= size ? at - size : at + bytes - size);
  }
}

// The first lane whose place in LDS is no multiple of `align`; -1: none.
static int misplaced_lane(const struct emu_wave *wave, const struct emu_step *step, const struct emu_places *p,
                          unsigned align, uint64_t *at) {
  if (p->space != EMU_SPACE_SHARED || step->inst->format != EMU_DS) return -1;
  for (uint64_t rest = p->mask & ~p->outside; rest; rest &= rest - 1) {
    int lane = __builtin_ctzll(rest);
    *at = p->at[lane] - (uint64_t)(uintptr_t)wave->group->lds;
    if (*at % align) return lane;
  }
  return -1;
}

// Loads and stores of LDS may be at any byte in the mode that ROCm sets (SH_MEM_CONFIG.ALIGNMENT_MODE is UNALIGNED),
// and compilers copy packed structs so. A wide pointer made of a narrow one by mistake looks the same.
static void check_wide(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *p, unsigned bytes) {
  enum { WIDE = 8 };
  uint64_t at;
  if (bytes < WIDE || !wave->group->run->dispatch->lint) return;
  int lane = misplaced_lane(wave, step, p, WIDE, &at);
  if (lane < 0) return;
  emu__check_lint(wave, step, "misaligned", lane, at,
                  "It accesses %u bytes at byte %" PRIu64
                  " of LDS, which is no multiple of %d. That is defined: copies of packed data are compiled to it. A "
                  "pointer that was cast to a wider type at a wrong place looks the same.",
                  bytes, at, WIDE);
}

// Loads and stores alone may be at any byte (LLVM's feature unaligned-ds-access); atomic operations must be aligned.
static void check_atomic_place(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *p,
                               unsigned bytes) {
  uint64_t at;
  int lane = misplaced_lane(wave, step, p, bytes, &at);
  if (lane < 0) return;
  emu__check_report(wave, step, "misaligned", lane, at,
                    "It does an atomic operation on %u bytes at byte %" PRIu64 " of LDS, which is no multiple of %u.",
                    bytes, at, bytes);
}

static enum emu_touch reading(const struct emu_wave *wave, const struct emu_step *step) {
  return goes_past(wave, step) ? EMU_TOUCH_READ_SYNC : EMU_TOUCH_READ;
}

static uint32_t read_place(struct access *a, const struct emu_places *p, unsigned l, uint64_t at, unsigned bytes,
                           uint32_t bits) {
  if (p->space == EMU_SPACE_SCRATCH) return scratch_dword(a, at, bytes, bits);
  if (p->space == EMU_SPACE_SHARED || (a->step->inst->format == EMU_FLAT && in_lds(a->wave->group, at))) {
    return shared_dword(a, (int)l, at, bytes, bits);
  }
  return global_dword(a, (int)l, at, bytes);
}

static void note_origin(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *p, uint64_t at) {
  struct emu_wave_check *c = wave->checker;
  if (p->space == EMU_SPACE_SCRATCH) return;
  c->has_origin = true;
  c->origin = in_lds(wave->group, at) ? at - (uint64_t)(uintptr_t)wave->group->lds : at;
  c->origin_pc = step->offset;
}

// A look at what another wave of the group changes by atomic operations: atomic loads of LDS are plain ones.
static void look_at_flag(struct emu_wave *wave, const struct emu_places *p) {
  uint64_t lanes = p->mask & ~p->outside;
  if (p->space != EMU_SPACE_SHARED || !lanes) return;
  uint64_t at = p->at[__builtin_ctzll(lanes)];
  if (p->at[63 - __builtin_clzll(lanes)] != at) return;
  uint64_t record = wave->group->checker->lds_writers[(at - (uint64_t)(uintptr_t)wave->group->lds) / 4];
  bool by_others = emu__record_who(record) != emu__record_who(emu__record_of(wave));
  if (record & EMU_RECORD_ATOMIC && by_others) emu__model_meet(wave);
}

bool emu__check_load(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *p,
                     const struct emu_shape *shape, unsigned reg) {
  look_at_flag(wave, p);
  struct access a = begin_access(wave, step, reading(wave, step));
  emu__model_load(wave, step, p, shape->bytes, a.how == EMU_TOUCH_READ_SYNC);
  unsigned dwords = shape->bytes < 4 ? 1 : shape->bytes / 4u, bytes = shape->bytes < 4 ? shape->bytes : 4;
  if (wave->checker->pointed) emu__check_pointed(wave, step, p, shape->bytes, "reads");
  check_shared(wave, step, p, shape->bytes);
  check_wide(wave, step, p, shape->bytes);
  struct emu_piece piece;
  bool together = find_piece(wave, step, p, shape->bytes, &piece);
  uint64_t open = p->mask & ~p->outside;  // lanes of which not all was noted so far
  if (together && bytes == 4) open = emu__note_runs(&a.racer, a.how, &piece, p, open, dwords);
  for (unsigned k = 0; k < dwords; k++) {
    uint32_t *to = emu__undefined(wave, reg + k, 0);
    uint32_t any = 0;
    uint64_t left = p->mask;
    bool dirty = emu__set_has(&wave->checker->dirty, reg + k);
    if (together) left = emu__note_loads(&a.racer, a.how, &piece, p, open, k, bytes);
    if (together && dirty) clear_lanes(to, p->mask & ~left, shape);
    for (uint64_t rest = left; rest; rest &= rest - 1) {
      unsigned l = (unsigned)__builtin_ctzll(rest);
      uint64_t at = p->at[l] + (uint64_t)k * p->stride;
      uint32_t u = p->outside >> l & 1 ? 0 : read_place(&a, p, l, at, bytes, 0);
      if (u) note_origin(wave, step, p, at);
      if (shape->is_signed && u >> (8 * bytes - 1)) u |= UINT32_MAX << (8 * bytes - 1);
      if (shape->half) u = shape->high ? (to[l] & 0xffff) | u << 16 : (to[l] & 0xffff0000u) | (u & 0xffff);
      to[l] = u;
      any |= u;
    }
    if (any || dirty) emu__check_settle(wave, reg + k);
  }
  return true;
}

bool emu__check_store(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *p,
                      const struct emu_shape *shape, unsigned reg) {
  emu__model_store(wave, step, p, shape->bytes);
  struct access a = begin_access(wave, step, EMU_TOUCH_WRITE);
  unsigned dwords = shape->bytes < 4 ? 1 : shape->bytes / 4u, bytes = shape->bytes < 4 ? shape->bytes : 4;
  if (wave->checker->pointed) emu__check_pointed(wave, step, p, shape->bytes, "writes");
  check_shared(wave, step, p, shape->bytes);
  check_wide(wave, step, p, shape->bytes);
  struct emu_piece piece;
  bool together = find_piece(wave, step, p, shape->bytes, &piece), any_dirty = false;
  for (unsigned k = 0; k < dwords; k++) any_dirty = any_dirty || emu__set_has(&wave->checker->dirty, reg + k);
  uint64_t open = p->mask & ~p->outside;
  if (together && bytes == 4 && !any_dirty) open = emu__note_runs(&a.racer, a.how, &piece, p, open, dwords);
  for (unsigned k = 0; k < dwords && open; k++) {
    const uint32_t *from = emu__undefined(wave, reg + k, 0);
    uint64_t left = open;
    bool dirty = emu__set_has(&wave->checker->dirty, reg + k);
    if (together)
      left = emu__note_stores(&a.racer, &piece, p, left, k, bytes, dirty ? from : NULL, shape->high ? 16 : 0);
    for (uint64_t rest = left; rest; rest &= rest - 1) {
      unsigned l = (unsigned)__builtin_ctzll(rest);
      uint64_t at = p->at[l] + (uint64_t)k * p->stride;
      uint32_t u = shape->high ? from[l] >> 16 : from[l];
      if (bytes < 4) u &= (1u << (8 * bytes)) - 1;
      a.value = *emu__vector(wave, reg + k, l) >> (shape->high ? 16 : 0);
      (void)read_place(&a, p, l, at, bytes, u);
      if (!u || p->space != EMU_SPACE_GLOBAL || in_lds(wave->group, at)) continue;
      emu__check_undefined(wave, step, (int)l, at, "It stores a value that is not defined to global memory.");
    }
  }
  return true;
}

bool emu__check_atomic(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *p, unsigned bytes,
                       unsigned data, int compare, int dst) {
  struct emu_wave_check *c = wave->checker;
  emu__model_atomic(wave, step, p, bytes, dst >= 0, compare >= 0);
  struct access a = begin_access(wave, step, dst >= 0 ? EMU_TOUCH_ATOMIC_RETURNS : EMU_TOUCH_ATOMIC);
  if (c->pointed) emu__check_pointed(wave, step, p, bytes, "accesses");
  check_shared(wave, step, p, bytes);
  check_atomic_place(wave, step, p, bytes);
  for (unsigned k = 0; k < bytes / 4; k++) {
    for (uint64_t rest = p->mask & ~p->outside; rest; rest &= rest - 1) {
      unsigned l = (unsigned)__builtin_ctzll(rest);
      uint64_t at = p->at[l] + 4 * k;
      uint32_t given = *emu__undefined(wave, data + k, l);
      if (compare >= 0) given |= *emu__undefined(wave, (unsigned)compare + k, l);
      uint32_t old = read_place(&a, p, l, at, 4, 0);
      if (old) note_origin(wave, step, p, at);
      if (given || old) {
        emu__check_undefined(wave, step, (int)l, at,
                             given ? "It does an atomic operation with a value that is not defined."
                                   : "It does an atomic operation on memory that nobody wrote.");
      }
    }
    if (dst < 0) continue;
    uint32_t *to = emu__undefined(wave, (unsigned)dst + k, 0);
    for (unsigned l = 0; l < wave->lanes; l++) to[l] = p->mask >> l & 1 ? 0 : to[l];
    emu__check_settle(wave, (unsigned)dst + k);
  }
  return true;
}

// ---- elements with a format: what is not defined of one makes all of the result so

uint64_t emu__check_elements(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *p,
                             unsigned bytes) {
  struct access a = begin_access(wave, step, reading(wave, step));
  emu__model_load(wave, step, p, bytes, a.how == EMU_TOUCH_READ_SYNC);
  uint64_t lost = 0;
  for (uint64_t rest = p->mask & ~p->outside; rest; rest &= rest - 1) {
    unsigned l = (unsigned)__builtin_ctzll(rest);
    for (unsigned from = 0; from < bytes; from += 4) {
      uint64_t at = p->at[l] + from;
      if (!read_place(&a, p, l, at, bytes < 4 ? bytes : 4, 0)) continue;
      note_origin(wave, step, p, at);
      lost |= UINT64_C(1) << l;
    }
  }
  return lost;
}

void emu__check_put_elements(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *p,
                             unsigned bytes) {
  emu__model_store(wave, step, p, bytes);
  struct access a = begin_access(wave, step, EMU_TOUCH_WRITE);
  const struct emu_operand *data = &step->inst->src[1];
  for (uint64_t rest = p->mask & ~p->outside; rest; rest &= rest - 1) {
    unsigned l = (unsigned)__builtin_ctzll(rest);
    for (unsigned from = 0; from < bytes; from += 4)
      (void)read_place(&a, p, l, p->at[l] + from, bytes < 4 ? bytes : 4, 0);
    uint32_t u = 0;
    for (unsigned k = 0; k < data->dwords; k++) u |= *emu__undefined(wave, data->reg + k, l);
    if (u)
      emu__check_undefined(wave, step, (int)l, p->at[l], "It stores a value that is not defined to global memory.");
  }
}

void emu__check_result(struct emu_wave *wave, unsigned reg, unsigned lane, bool lost, uint32_t kept) {
  uint32_t *u = emu__undefined(wave, reg, lane);
  if (!lost && !*u) return;
  *u = (*u & kept) | (lost ? ~kept : 0);
  emu__check_settle(wave, reg);
}

// ---- addresses, and scalar loads

static bool address_undefined(struct emu_wave *wave, const struct emu_step *step, const struct emu_operand *o) {
  if (o->kind == EMU_OPERAND_SCALAR && emu__scalar_undefined(wave, o)) {
    emu__check_undefined(wave, step, -1, 0, "Its address is not defined.");
    emu__scalar_set_undefined(wave, step, o->reg, o->dwords, 0);
    return true;
  }
  if (o->kind != EMU_OPERAND_VECTOR) return false;
  uint64_t exec = emu__wave_exec(wave);
  for (unsigned k = 0; k < o->dwords; k++) {
    uint32_t *u = emu__undefined(wave, o->reg + k, 0);
    for (uint64_t rest = exec; rest; rest &= rest - 1) {
      unsigned l = (unsigned)__builtin_ctzll(rest);
      if (!u[l]) continue;
      emu__check_undefined(wave, step, (int)l, 0, "Its address is not defined.");
      memset(u, 0, wave->lanes * 4);
      emu__check_settle(wave, o->reg + k);
      return true;
    }
  }
  return false;
}

static void check_image_address(struct emu_wave *wave, const struct emu_step *step) {
  const struct emu_inst *inst = step->inst;
  for (unsigned k = 0; k < inst->image.words; k++)
    (void)address_undefined(wave, step,
                            &(struct emu_operand){.kind = EMU_OPERAND_VECTOR, .reg = inst->image.reg[k], .dwords = 1});
  uint32_t u = 0;
  for (int i = 2; i < 4; i++)
    for (unsigned k = 0; k < inst->src[i].dwords; k++) u |= wave->checker->scalar[inst->src[i].reg + k];
  if (u) emu__check_undefined(wave, step, -1, 0, "Its descriptor of an image or a sampler is not defined.");
}

void emu__check_addresses(struct emu_wave *wave, const struct emu_step *step) {
  const struct emu_inst *inst = step->inst;
  if (!emu__wave_exec(wave)) return;
  (void)address_undefined(wave, step, &inst->src[0]);
  // data stands in src[1], and in src[2] of LDS instructions
  if (inst->format != EMU_DS && inst->src[2].dwords <= 2) (void)address_undefined(wave, step, &inst->src[2]);
  if (inst->format == EMU_MIMG) check_image_address(wave, step);
  if (inst->format == EMU_MUBUF) {
    const struct emu_wave_check *c = wave->checker;
    uint32_t u = 0;
    for (unsigned k = 0; k < 4; k++) u |= c->scalar[inst->src[2].reg + k];
    if (u) emu__check_undefined(wave, step, -1, 0, "Its buffer descriptor is not defined.");
    (void)address_undefined(wave, step, &inst->src[3]);
  }
}

// What a load has read past the end of its allocation nobody wrote.
static uint32_t scalar_dword(const struct access *a, uint64_t at, int there) {
  if (there >= 4) return global_dword(a, -1, at, 4);
  if (there <= 0) return UINT32_MAX;
  return global_dword(a, -1, at, (unsigned)there) | UINT32_MAX << (8 * there);
}

void emu__check_smem(struct emu_wave *wave, const struct emu_step *step) {
  const struct emu_inst *inst = step->inst;
  bool buffer = inst->op >= EMU_S_BUFFER_LOAD_B32 && inst->op <= EMU_S_BUFFER_LOAD_B512;
  if (inst->dst.kind != EMU_OPERAND_SCALAR) return;
  bool lost = address_undefined(
      wave, step, &(struct emu_operand){.kind = EMU_OPERAND_SCALAR, .reg = inst->src[0].reg, .dwords = 2});
  lost = address_undefined(wave, step, &inst->src[1]) || lost;
  struct access a = begin_access(wave, step, EMU_TOUCH_READ);
  uint64_t address = emu__scalar_read64(wave, &inst->src[0]) + (uint64_t)(int64_t)inst->imm;
  if (inst->src[1].kind) address += emu__scalar_read(wave, &inst->src[1]);
  address &= ~UINT64_C(3);
  bool known = !lost && !buffer && inst->op >= EMU_S_LOAD_B32 && inst->op <= EMU_S_LOAD_B512;
  unsigned there = known ? emu__memory_scalar(wave, address, inst->dst.dwords * 4u) : 0;
  for (unsigned k = 0; k < inst->dst.dwords; k++) {
    uint32_t u = there ? scalar_dword(&a, address + 4 * k, (int)there - (int)(4 * k)) : 0;
    if (u)
      wave->checker->has_origin = true, wave->checker->origin = address + 4 * k,
      wave->checker->origin_pc = step->offset;
    emu__scalar_set_undefined(wave, step, inst->dst.reg + k, 1, u);
  }
}
