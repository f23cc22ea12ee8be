// What the checker knows of a launch under way. Private to the files checker*.c, except for the shadows, which
// memory.c keeps beside its allocations.
//
// A shadow has a bit for each bit of a register, of LDS or of scratch, set where that bit has no defined value:
//
//     v5         | 0x00001234 |       as loaded by a 16-bit load into a register that nobody wrote
//     shadow     | 0xffff0000 |       the upper half is undefined
//
// Shadows follow the values through moves, arithmetic, LDS and scratch. A finding is made only where an undefined bit
// would matter: in an address, a branch, EXEC, or a store to global memory. Of global memory the shadow keeps one bit
// for each byte.
#ifndef EMULATOR_MACHINE_CHECKER_STATE_H
#define EMULATOR_MACHINE_CHECKER_STATE_H

#include "machine/checker.h"
#include "machine/checker_model.h"

// ---- sets of registers: vectors, then scalars, then SCC

enum { EMU_SET_SCALAR = 512, EMU_SET_SCC = EMU_SET_SCALAR + EMU_SCALAR_COUNT + 16, EMU_SET_SIZE = 768 };
struct emu_set {
  uint64_t word[EMU_SET_SIZE / 64];
};
static inline bool emu__set_has(const struct emu_set *set, unsigned i) { return set->word[i / 64] >> (i % 64) & 1; }
static inline void emu__set_put(struct emu_set *set, unsigned i, bool on) {
  uint64_t bit = UINT64_C(1) << (i % 64);
  set->word[i / 64] = on ? set->word[i / 64] | bit : set->word[i / 64] & ~bit;
}
static inline bool emu__sets_meet(const struct emu_set *a, const struct emu_set *b) {
  uint64_t any = 0;
  for (int i = 0; i < EMU_SET_SIZE / 64; i++) any |= a->word[i] & b->word[i];
  return any;
}

// ---- plans: what an instruction means to the checker, made at its first execution and kept with the program

// How undefined bits go from sources to destination.
enum emu_rule {
  EMU_RULE_ANY,  // one undefined bit that is read makes the whole result undefined
  EMU_RULE_MOVE,
  EMU_RULE_AND,
  EMU_RULE_OR,
  EMU_RULE_XOR,
  EMU_RULE_AND_NOT1,
  EMU_RULE_OR_NOT1,
  EMU_RULE_AND_NOT0,
  EMU_RULE_OR_NOT0,
  EMU_RULE_LEFT,     // sums: an undefined bit spoils itself and those above it
  EMU_RULE_LEFT_24,  // of products whose factors are the low 24 bits
  EMU_RULE_SHIFT,    // bits move by a defined distance: the operation itself, done on the shadow, says where to
  EMU_RULE_SELECT,
  EMU_RULE_BFI,
  EMU_RULE_PERM,
  EMU_RULE_AND_OR,
  EMU_RULE_OR3,
  EMU_RULE_SHIFT_OR,
  EMU_RULE_SHIFT_LEFT,  // shift, then sum
  EMU_RULE_MAD64,
  EMU_RULE_PACK,
  EMU_RULE_HALVES,  // each half of the result depends on one half of each source
  EMU_RULE_PAIR,    // one dword of each source
  EMU_RULE_WORDS,   // each dword of the result depends on one dword of each source
  EMU_RULE_BYTE,    // one byte of the source
  EMU_RULE_COMPARE,
  // scalar
  EMU_RULE_PLACED,  // each bit of the result is one bit of a source, as the instruction and defined distances say
  EMU_RULE_CMOVE,
  EMU_RULE_BITSET,
  EMU_RULE_BITCMP,
  EMU_RULE_DEFINED,
  EMU_RULE_RELATIVE_FROM,
  EMU_RULE_RELATIVE_TO,
};
enum emu_scc { EMU_SCC_KEPT, EMU_SCC_NONZERO, EMU_SCC_ANY };

enum emu_plan_kind {
  EMU_PLAN_NOTHING,
  EMU_PLAN_VECTOR,
  EMU_PLAN_CROSS,
  EMU_PLAN_WMMA,
  EMU_PLAN_SCALAR,
  EMU_PLAN_SAVEEXEC,
  EMU_PLAN_SMEM,
  EMU_PLAN_MEMORY,
  EMU_PLAN_SHUFFLE,
  EMU_PLAN_BRANCH,
  EMU_PLAN_JUMP,
};

// Which counter an instruction raises, and waits retire.
enum {
  EMU_WAIT_VM = 1,
  EMU_WAIT_LDS = 2,
  EMU_WAIT_LOOSE = 4,
  EMU_WAIT_SAMPLE = 8
};  // LOOSE: out of order, lgkmcnt(0) alone retires it

// What is looked at for each instruction stands in the first 64 bytes, a line of the host's cache.
enum { EMU_PLAN_WORDS = 4 };
struct emu_plan {
  // the words of `touch` that are not empty: their values and their numbers; 0 behind the last. Where there are more,
  // `many`, and the whole set is looked at
  uint64_t touched[EMU_PLAN_WORDS];
  uint8_t touched_at[EMU_PLAN_WORDS];
  bool many;
  uint8_t kind, rule, pair_rule, scc;
  uint8_t raises;  // counters
  uint8_t half;    // of the registers that a load fills, as pending_half
  bool always;     // look at it even when no register of interest is named
  bool waits, acquires, lints;
  uint8_t cache;                        // what a cache instruction does, enum emu_invalidated and EMU_WRITES_BACK
  bool roots;                           // it makes an address, or writes registers that it does not name
  uint16_t root;                        // atomic: number of the address that it makes; 0: not yet
  struct emu_set reads, writes, touch;  // registers; touch: the union of both
};

// Whether the instruction names a register of the set.
static inline bool emu__plan_meets(const struct emu_plan *plan, const struct emu_set *set) {
  if (__builtin_expect(plan->many, 0)) return emu__sets_meet(&plan->touch, set);
  uint64_t any = 0;
  for (int i = 0; i < EMU_PLAN_WORDS; i++) any |= plan->touched[i] & set->word[plan->touched_at[i]];
  return any;
}

// ---- state of a wave

// checker_states.c: the vector instructions that a wave has issued last, and how many wait states ago.
enum emu_issue_kind {
  EMU_ISSUE_OTHER,  // none of these
  EMU_ISSUE_MEMORY,
  EMU_ISSUE_VECTOR,
  EMU_ISSUE_DOT,
  EMU_ISSUE_ACC_READ,
  EMU_ISSUE_ACC_WRITE,
  EMU_ISSUE_MATRIX,
};
struct emu_registers {
  uint16_t first, count;  // in the wave's file
};
struct emu_issue {
  uint32_t at, pc;  // at: the wave's wait states behind it
  uint16_t op;
  struct emu_registers result, addend;  // addend: of products of matrices
  uint8_t kind, passes;                 // enum emu_issue_kind; passes of the matrix unit
  bool exec, doubles, xdl, sparse;      // it writes EXEC; of products of matrices
};
struct emu_states {
  bool counts;          // they are looked at
  uint32_t now, count;  // wait states, instructions in `recent`, since the wave began
  struct emu_issue recent[32];
};

struct emu_wave_check {
  // registers with undefined bits; that a load in flight fills; that hold addresses of variables; the union of all
  struct emu_set dirty, pending, rooted, watch;
  uint32_t *undefined;                     // shadow of the vector registers, laid out as emu_wave.v
  uint8_t *scratch;                        // shadow of the wave's scratch, laid out as that
  uint32_t scalar[EMU_SCALAR_COUNT + 16];  // shadow of the scalar registers
  bool scc;                                // SCC is undefined
  uint8_t pending_on[EMU_SET_SIZE];        // counters that the load in flight raised, EMU_WAIT_ bits
  uint8_t pending_half[EMU_SET_SCALAR];    // what the newest load fills: 1 the low half, 2 the high half, 3 all
  // how many loads of each counter were issued so far, and how many when the one into this register was
  uint32_t vm_at[EMU_SET_SCALAR], lds_at[EMU_SET_SCALAR], sample_at[EMU_SET_SCALAR];
  uint32_t vm_issued, lds_issued, sample_issued;
  // times: of the group's last barrier, and that before which all of the launch is ordered, where more is not known
  uint64_t barrier, sync;
  uint64_t started;  // lanes that were on when the wave began
  bool acquires;     // the instruction that is under way: of all that has been
  const struct emu_step *at_barrier;
  uint64_t opened, opened_sync;  // a split barrier that has opened and for which it has not waited yet: the times
  // where undefined memory was last read, for reports
  bool has_origin;
  uint64_t origin;
  uint32_t origin_pc;
  // checker_provenance.c: of the registers in `rooted`, laid out as emu_wave.v and .s, and of the instruction's
  // addresses
  uint16_t *root, scalar_root[EMU_SCALAR_COUNT + 16], pointed_by[64];
  bool pointed;
  const struct emu_shadow *regions[4];  // of the last accesses, the newest first
  uint64_t regions_epoch;               // emu__memory_epoch when they were noted
  struct emu_states states;
  struct emu_wave_model model;
};

struct emu_group_check {
  struct emu_wave_check *wave, begun;  // begun: as each wave is at first
  uint32_t *undefined;
  uint16_t *root;
  uint8_t *scratch, *lds;
  uint64_t *lds_writers, *lds_readers;  // by dword
  uint64_t said[64];                    // findings already reported by this group
};

// ---- memory

// Of one allocation, by dword. `written` has a bit for each byte, NULL: all are.
struct emu_shadow {
  uint64_t base, bytes;
  uint8_t *written;
  uint64_t *writers, *readers;
};
struct emu_shadow *emu__shadow_create(uint64_t base, uint64_t bytes, bool written);
bool emu__shadow_arm(struct emu_shadow *shadow);  // makes room for the records of accesses
void emu__shadow_release(struct emu_shadow *shadow);
void emu__shadow_written(struct emu_shadow *shadow, uint64_t address, uint64_t bytes);

// ---- between the files

void emu__check_report(struct emu_wave *wave, const struct emu_step *step, const char *kind, int lane, uint64_t address,
                       const char *format, ...) __attribute__((format(printf, 6, 7)));
// The same of what is defined and hardly meant, where the dispatch asks for that.
void emu__check_lint(struct emu_wave *wave, const struct emu_step *step, const char *kind, int lane, uint64_t address,
                     const char *format, ...) __attribute__((format(printf, 6, 7)));
// "uninitialized", with where the undefined bits may have come from.
void emu__check_undefined(struct emu_wave *wave, const struct emu_step *step, int lane, uint64_t address,
                          const char *what);

// Whether the checker has anything to do before an instruction: most name no register of interest.
static inline bool emu__check_concerns(const struct emu_wave *wave, const struct emu_step *step) {
  const struct emu_wave_check *c = wave->checker;
  if (!c) return false;
  if (c->states.counts) return true;
  const struct emu_plan *plan = __atomic_load_n(&step->plan, __ATOMIC_ACQUIRE);
  return !plan || plan->always || plan->lints || emu__plan_meets(plan, &c->watch);
}

// Makes it.
void emu__check_fill_plan(struct emu_plan *plan, const struct emu_step *step, const struct emu_isa *target);
const struct emu_plan *emu__check_plan(const struct emu_wave *wave, const struct emu_step *step);

void emu__check_vector(struct emu_wave *wave, const struct emu_step *step, const struct emu_plan *plan);
void emu__check_lanes(struct emu_wave *wave, const struct emu_step *step);
void emu__check_cross(struct emu_wave *wave, const struct emu_step *step);
void emu__check_shuffle(struct emu_wave *wave, const struct emu_step *step);
bool emu__check_matrix(struct emu_wave *wave, const struct emu_step *step);  // false: it is none of mfma.c
// Passes through the matrix unit, 0: it is none of mfma.c; whether it is one for integers and small floats; adds to D.
unsigned emu__matrix_passes(const struct emu_isa *target, unsigned op);
bool emu__matrix_is_xdl(const struct emu_isa *target, unsigned op);
bool emu__matrix_is_sparse(unsigned op);
void emu__check_wmma(struct emu_wave *wave, const struct emu_step *step);
void emu__check_scalar(struct emu_wave *wave, const struct emu_step *step, const struct emu_plan *plan);
void emu__check_saveexec(struct emu_wave *wave, const struct emu_step *step, const struct emu_plan *plan);
void emu__check_branch(struct emu_wave *wave, const struct emu_step *step);
void emu__check_smem(struct emu_wave *wave, const struct emu_step *step);
void emu__check_addresses(struct emu_wave *wave, const struct emu_step *step);

void emu__check_hazards(struct emu_wave *wave, const struct emu_step *step, const struct emu_plan *plan);
void emu__check_states(struct emu_wave *wave, const struct emu_step *step);
void emu__check_wait(struct emu_wave *wave, const struct emu_step *step);
void emu__check_issue(struct emu_wave *wave, const struct emu_step *step, const struct emu_plan *plan);

// Numbers of addresses, 0: none. PC: of the code itself, to which a constant is going to be added.
enum { EMU_ROOT_PC = 0xfffe, EMU_ROOT_LOST = 0xffff };
void emu__check_provenance(struct emu_wave *wave, const struct emu_step *step, struct emu_plan *plan);
void emu__check_pointed(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *places,
                        unsigned bytes, const char *verb);
// Reports what was found earlier, and filled then.
void emu__check_report_later(struct emu_wave *wave, const struct emu_report *report);

static inline void emu__check_watch(struct emu_wave_check *c, unsigned i) {
  emu__set_put(&c->watch, i, emu__set_has(&c->dirty, i) || emu__set_has(&c->pending, i) || emu__set_has(&c->rooted, i));
}
static inline uint32_t *emu__undefined(const struct emu_wave *wave, unsigned reg, unsigned lane) {
  return wave->checker->undefined + (size_t)reg * wave->lanes + lane;
}
// After writes to the shadow of a vector register.
void emu__check_settle(struct emu_wave *wave, unsigned reg);
uint64_t emu__scalar_undefined(const struct emu_wave *wave, const struct emu_operand *operand);
// EXEC must be defined: undefined bits there are a finding.
void emu__scalar_set_undefined(struct emu_wave *wave, const struct emu_step *step, unsigned reg, unsigned dwords,
                               uint64_t bits);

// Times, see checker_race.h. An access of the bytes in `mask` of one dword.
enum emu_touch { EMU_TOUCH_READ, EMU_TOUCH_READ_SYNC, EMU_TOUCH_WRITE, EMU_TOUCH_ATOMIC, EMU_TOUCH_ATOMIC_RETURNS };
uint64_t emu__time_now(void);
uint64_t emu__time_next(void);
struct emu_other {
  uint32_t group, wave;
  bool known, same_group, wrote;  // not known: one of several, which of them is not recorded
  bool atomic;                    // an atomic operation, that a plain access has met
  uint64_t record;
  enum emu_lack lack;
};
// With what `me` has met in a record; what is missing is not filled.
struct emu_other emu__race_with(uint64_t me, uint64_t record, bool wrote);
struct emu_racer;
bool emu__run_is_alone(const struct emu_run *run);  // no other launch has been under way meanwhile
// The record of the last write of the dword in an allocation; NULL: there is none.
uint64_t *emu__check_writer(struct emu_wave *wave, uint64_t address);
void emu__check_say_race(struct emu_wave *wave, const struct emu_step *step, int lane, uint64_t address, bool write,
                         bool shared, const struct emu_other *other);
// true: it races with `other`. `same`: those of the bytes that are stored and hold the stored value already.
bool emu__race(const struct emu_racer *racer, uint64_t *writer, uint64_t *reader, unsigned mask, unsigned same,
               enum emu_touch how, bool shared, struct emu_other *other);

#endif
