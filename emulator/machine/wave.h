// A wave, and an instruction made ready for it: what the files of the executor share. Private to emulator/machine.
//
// Registers and scratch of a wave interleave its lanes, so that one register of all lanes is one row:
//
//              lane 0   lane 1   …   lane n - 1
//     v0     |  u32   |  u32   | … |            emu_wave.v: row r is register r
//     v1     |  u32   |  u32   | … |            emu_wave.scratch: row k is dword k of each lane's scratch, so that
//     …                                         byte b of lane l lies at (b / 4 * lanes + l) * 4 + b % 4
#ifndef EMULATOR_MACHINE_WAVE_H
#define EMULATOR_MACHINE_WAVE_H

#include <stdatomic.h>
#include <string.h>

#include "machine/abi.h"
#include "machine/machine.h"

// Vector instructions work on 32 lanes; a wave of 64 does each of its halves in turn, as the hardware does.
enum { EMU_HALF = 32 };

// The windows of a flat address: its high word. LDS and scratch appear there. Code finds them in source operands, or
// makes them of the 16 bits each in SH_MEM_BASES, which are the upper ones of the address (clang 15 does).
enum { EMU_SHARED_APERTURE = 1 << 16, EMU_PRIVATE_APERTURE = 2 << 16 };

struct emu_step;
struct emu_wave;
struct emu_group;

// One instruction on 32 lanes, as the functions that do arithmetic see it. Masks have bit l for lane l of the half. A
// value of several dwords is [dword][32].
struct emu_half_wave {
  uint32_t *d;           // out
  const uint32_t *s[4];  // in; lanes that are off hold whatever their registers hold
  uint32_t exec;
  uint32_t mask_in;   // src2 of carries and selects, VCC of V_DIV_FMAS
  uint32_t mask_out;  // carries and comparisons
  uint32_t mode;      // the MODE register
  unsigned half;      // 0, or 1 for lanes 32..63
  const struct emu_inst *inst;
};
typedef void emu_lanes_fn(struct emu_half_wave *x);
typedef void emu_step_fn(struct emu_wave *wave, const struct emu_step *step);

enum emu_float { EMU_FLOAT_NONE, EMU_FLOAT_32 = 1, EMU_FLOAT_64 = 2 };  // 64 stands for F16 too, as in MODE

// What an opcode does: `run` executes the whole instruction; where it is NULL, `lanes` does the arithmetic of 32 lanes
// and valu.c all around it.
struct emu_action {
  uint16_t op;
  uint8_t klass;   // enum emu_class
  uint8_t floats;  // which half of MODE governs it
  bool saturates;  // an integer operation that knows `clamp`
  bool straight;   // of those with `run`: as emu_step.straight
  uint8_t part;    // 16 or 8: so many bits of the destination are written, at op_sel's half or byte; 0: all
  emu_lanes_fn *lanes;
  emu_step_fn *run;
  // the same as `lanes` with all around it, made for this operation: where sources and result are of one dword and as
  // they are, and where they may be of two, or masks. NULL: the ways that all operations share
  emu_step_fn *plain, *whole;
};

enum { EMU_NEEDS_LOOK = UINT16_MAX };

struct emu_source {
  uint32_t value;  // number of the register; CONSTANT: its low dword
  uint8_t kind, dwords;
};

// A decoded instruction, in the array of the program's steps at the index of its first word (program.c): the next
// instruction is this step's address plus `words`. What most instructions need stands in the first 64 bytes, a line of
// the host's cache.
struct emu_step {
  emu_step_fn *run;  // atomic: emu__step_decode until the first execution, which decodes
  struct emu_source src[3];
  uint16_t dst;    // vector destination
  uint16_t vgprs;  // vector registers that the kernel must have for it: the highest that it names, plus 1
  uint8_t words;
  uint8_t klass : 6;
  bool to_exec : 1;  // V_CMPX*, where it writes its mask to scalar registers as well
  bool zeroes : 1;   // a 16-bit result that makes the other half of its register zero
  uint8_t floats : 2, nsrc : 2;
  // it goes on behind itself: looks neither at `next` nor at `budget` of the wave, and does not trap
  bool straight : 1;
  // in waves of 32: plain operands, all of them vectors; a VOPD's second half does not read what its first one writes
  bool vectors : 1;
  bool rows : 1;   // in waves of 32: sources of one or two dwords, vectors, scalars or constants, and no mask to EXEC
  uint16_t needs;  // atomic, published last: `vgprs` if it is straight; EMU_NEEDS_LOOK: the wave has to be looked at
  emu_lanes_fn *lanes;
  const struct emu_inst *inst;
  struct emu_plan *plan;  // atomic: the checker's, NULL until it first looks
  const struct emu_action *action;
  const struct emu_step *pair;  // VOPD: the second half; its operands stand here too
  uint32_t offset;              // in the program
  struct emu_source also_src[3];
  uint16_t also_dst;
} __attribute__((aligned(64)));

struct emu_span {
  uint64_t base, end;
};

enum emu_wave_state { EMU_WAVE_READY, EMU_WAVE_BARRIER, EMU_WAVE_ENDED };

struct emu_wave {
  uint32_t s[EMU_SCALAR_COUNT + 16];  // numbered as in isa.h; s[EMU_NULL] stays 0
  bool scc;
  uint8_t state;
  uint8_t unusual;  // enum emu_float bits: MODE differs from round-to-nearest with denormals and infinite overflow
  unsigned lanes;   // 32 or 64
  uint32_t vgprs;   // allocated
  uint32_t *v;      // [vgprs][lanes]
  const struct emu_step *next;
  int64_t budget;     // instructions left in this slice, the wave's turn
  int64_t unused;     // instructions left when a slice was stopped early
  uint64_t executed;  // instructions of all slices before the current one
  uint32_t mode;
  uint32_t mxcsr[2];       // MODE as the host's MXCSR: for F32, and for F64 and F16
  uint64_t flat_scratch;   // what the register holds
  uint8_t *scratch;        // [dword][lanes], dwords
  uint64_t scratch_bytes;  // of one lane
  unsigned index;          // in the group
  uint32_t sleeping;
  // of a split barrier: whether it has signaled and not waited since; whether the barrier has opened since it last
  // waited (the wait takes that back); the group's epoch at which its signal is no longer counted
  bool signaled, opened;
  uint32_t barrier_at;
  uint64_t waits_for;  // gws.c: goes on when the barrier of the grid has opened this often; 0: waits at none
  struct emu_group *group;
  struct emu_counters *counters;  // NULL: only `instructions` below is kept
  uint64_t instructions[EMU_CLASS_COUNT + 1];
  bool check;
  uint32_t tag;               // observe.h: what an observer calls it; 0: its instructions are not observed
  struct emu_span recent[4];  // the allocations of the last accesses, the newest first
  uint64_t recent_epoch;      // emu__memory_epoch when they were noted
  struct emu_wave_check *checker;
};

struct emu_group {
  struct emu_run *run;
  uint32_t id[3];
  uint64_t linear;
  uint8_t *lds;
  uint32_t lds_bytes;
  unsigned waves, ended, waiting;
  bool failed;
  uint32_t epoch;         // barriers that it has passed
  struct emu_wave *wave;  // [waves]
  uint32_t *registers;    // [wave][vgprs][lanes]
  uint8_t *scratch;       // of all waves
  struct emu_group_check *checker;
};

// A dispatch under way.
struct emu_run {
  struct emu_dispatch *dispatch;
  struct emu_program *program;
  const struct emu_isa *target;
  unsigned lanes, waves_per_group;
  unsigned step_set;      // of the program's steps
  unsigned accumulators;  // the number of the first accumulation register in the wave's file
  uint64_t group_count;
  uint64_t shuffle;  // seed of the order of groups and waves; 0: ascending
  uint64_t packet;
  uint8_t packet_bytes[64];
  atomic_uint_fast64_t gws[64];  // barriers of the grid
  uint32_t lds_bytes, scratch_bytes;
  atomic_uint_fast64_t next_group;
  atomic_uint_fast32_t resident, waiting;  // groups begun and not ended; threads that have nothing but waits to do
  // watch.c: how often, and when last, a thread began or ceased to have nothing but waits
  atomic_uint_fast32_t turns;
  atomic_uint_fast64_t turned_at;
  unsigned threads;
  atomic_bool stop;
  atomic_uint_fast32_t report_count, lint_count;
  uint64_t check_start;     // the checker's time at which the launch began
  struct emu_model *model;  // atomic: checker_model.c, from the first atomic operation on
  struct emu_report failure;
  atomic_bool failed;
};

// ---- program.c
// Steps stand in sets: of waves of 32 lanes, of 64, and where there are accumulation registers one for each place in
// the wave's file at which they begin, since kernels differ in it and share functions.
static inline unsigned emu__program_set(unsigned lanes, unsigned accumulators) {
  return accumulators ? 1 + accumulators / 4 : lanes == 64;
}
const struct emu_step *emu__program_step(struct emu_program *program, unsigned set, uint64_t offset);
uint64_t emu__step_offset(const struct emu_wave *wave, const struct emu_step *step);
void emu__step_decode(struct emu_wave *wave, const struct emu_step *at);  // the `run` of a step not yet decoded
const struct emu_isa *emu__program_target(const struct emu_program *program);
uint64_t emu__program_address(const struct emu_program *program);
size_t emu__program_bytes(const struct emu_program *program);
const void *emu__program_code(const struct emu_program *program);
struct emu_roots *emu__program_roots(const struct emu_program *program);  // NULL: nothing is known of variables
void *emu__program_keep(struct emu_program *program, size_t bytes);       // zeros, freed with it; NULL: no memory
void emu__step_text(const struct emu_wave *wave, const struct emu_step *step, char text[EMU_ISA_TEXT]);

// ---- actions, one table a file, ended by op 0
extern const struct emu_action emu__salu_actions[], emu__smem_actions[], emu__control_actions[], emu__int_actions[],
    emu__int16_actions[], emu__float_actions[], emu__half_actions[], emu__double_actions[], emu__convert_actions[],
    emu__divide_actions[], emu__transcendental_actions[], emu__compare_actions[], emu__cross_actions[],
    emu__dot_actions[], emu__pairs_actions[], emu__float8_actions[], emu__fnuz_actions[], emu__wmma_actions[],
    emu__matrix_actions[], emu__scale_actions[], emu__fragment_actions[], emu__scalar_float_actions[],
    emu__lds_actions[], emu__gws_actions[], emu__global_actions[], emu__buffer_actions[], emu__image_actions[];
bool emu__is_scalar_float(unsigned op);  // of salu_float.c
bool emu__scalar_float_compares(unsigned op);
const struct emu_action *emu__action_of(const struct emu_isa *target, enum emu_op op);  // NULL: not executed
void emu__valu_run(struct emu_wave *wave, const struct emu_step *step);

// ---- wave.c
void emu__wave_trap(struct emu_wave *wave, const struct emu_step *step, enum emu_status status, const char *kind,
                    int lane, uint64_t address, const char *format, ...) __attribute__((format(printf, 7, 8)));
void emu__wave_set_mode(struct emu_wave *wave, uint32_t mode);
uint32_t emu__wave_mode(const struct emu_wave *wave);
void emu__wave_slice(struct emu_wave *wave, int64_t budget);
static inline void emu__wave_stop(struct emu_wave *wave) {
  wave->unused = wave->budget;
  wave->budget = 0;
}
static inline uint64_t emu__wave_exec(const struct emu_wave *wave) {
  uint64_t low = wave->s[EMU_EXEC_LO];
  return wave->lanes == 32 ? low : low | (uint64_t)wave->s[EMU_EXEC_HI] << 32;
}

// ---- operands
uint32_t emu__special_value(const struct emu_wave *wave, unsigned reg, unsigned dword);

static inline uint32_t emu__scalar_read(const struct emu_wave *wave, const struct emu_operand *operand) {
  if (operand->kind == EMU_OPERAND_SCALAR) return wave->s[operand->reg];
  if (operand->kind == EMU_OPERAND_CONSTANT) return (uint32_t)operand->value;
  return emu__special_value(wave, operand->reg, 0);
}

static inline uint64_t emu__scalar_read64(const struct emu_wave *wave, const struct emu_operand *operand) {
  if (operand->kind == EMU_OPERAND_SCALAR) {
    if (operand->reg == EMU_NULL) return 0;
    return wave->s[operand->reg] | (uint64_t)wave->s[operand->reg + 1] << 32;
  }
  if (operand->kind == EMU_OPERAND_CONSTANT) return operand->value;
  return emu__special_value(wave, operand->reg, 0) | (uint64_t)emu__special_value(wave, operand->reg, 1) << 32;
}

static inline void emu__scalar_write(struct emu_wave *wave, unsigned reg, uint32_t value) {
  if (reg != EMU_NULL) wave->s[reg] = value;
}

static inline void emu__scalar_write64(struct emu_wave *wave, unsigned reg, uint64_t value) {
  if (reg == EMU_NULL) return;
  wave->s[reg] = (uint32_t)value;
  wave->s[reg + 1] = (uint32_t)(value >> 32);
}

static inline uint32_t *emu__vector(const struct emu_wave *wave, unsigned reg, unsigned lane) {
  return wave->v + (size_t)reg * wave->lanes + lane;
}

// The lane that DS_PERMUTE_B32 and DS_BPERMUTE_B32 mean by an address, of those that `lane` reaches.
unsigned emu__permuted_lane(const struct emu_wave *wave, unsigned lane, uint32_t address);

// ---- values
static inline float emu__f32(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}
static inline uint32_t emu__bits32(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}
static inline double emu__f64(uint64_t bits) {
  double value;
  memcpy(&value, &bits, 8);
  return value;
}
static inline uint64_t emu__bits64(double value) {
  uint64_t bits;
  memcpy(&bits, &value, 8);
  return bits;
}
static inline bool emu__is_nan32(uint32_t bits) { return (bits & 0x7fffffff) > 0x7f800000; }
static inline bool emu__is_nan16(uint32_t bits) { return (bits & 0x7fff) > 0x7c00; }
static inline bool emu__is_nan64(uint64_t bits) { return (bits & INT64_MAX) > 0x7ff0000000000000; }

// The MODE register. Source: "RDNA 2" and "RDNA3 Instruction Set Architecture", section on the mode register.
//
//     bit   23               9      8            7 … 6               5 … 4           3 … 2            1 … 0
//          | FP16_OVFL | … | IEEE | DX10_CLAMP | denormals F64, F16 | denormals F32 | round F64, F16 | round F32 |
//
// Rounding: 0 to nearest even, 1 up, 2 down, 3 to zero. Denormals: bit 0 keeps those of sources, bit 1 of results.
// A generation without DX10_CLAMP and IEEE (emu_isa.mode_in_descriptor) has always the first, and in place of the
// second EMU_MODE_2019, the rules of IEEE 754-2019, where a NaN comes out quiet. emu__wave_mode gives what its code
// reads.
enum { EMU_MODE_DX10_CLAMP = 1 << 8, EMU_MODE_IEEE = 1 << 9, EMU_MODE_FP16_OVFL = 1 << 23 };
#define EMU_MODE_2019 (UINT32_C(1) << 31)
#define EMU_MODE_QUIETS (EMU_MODE_IEEE | EMU_MODE_2019)

// How arithmetic is written: EMU_EACH is a loop over the lanes that gcc vectorizes, because `r` is local.
#define EMU_EACH for (int l = 0; l < EMU_HALF; l++)

#endif
