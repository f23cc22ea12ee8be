// The machine that executes kernels of an RDNA GPU: what a launch needs in, memory changed and counters out.
//
//   program   a code segment; its instructions are decoded at their first execution and kept
//   memory    the table of live allocations. Device addresses are host addresses; every access outside of the table
//             is a fault, as it would be on the card
//   dispatch  one launch: emu_dispatch_run spreads its work-groups over threads and returns when all have ended
//
// It executes in order: it counts and it checks, it says nothing of time. x86-64 with AVX2, FMA and F16C only.
#ifndef EMULATOR_MACHINE_MACHINE_H
#define EMULATOR_MACHINE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "isa/isa.h"

enum emu_status {
  EMU_OK,
  EMU_TRAP,     // an instruction that is unknown, that traps, or that names a register which the kernel lacks
  EMU_FAULT,    // an address outside of every allocation, or misaligned
  EMU_CHECK,    // the checker has reports; the kernel ran to its end
  EMU_INVALID,  // the dispatch itself cannot be
  EMU_NO_MEMORY,
};

// ---- memory

// Safe from any thread.
struct emu_memory;
struct emu_memory *emu_memory_create(void);
void emu_memory_release(struct emu_memory *memory);
// From now on keeps which bytes of added allocations were ever written, for launches with checks. Call it before the
// first is added; launches without checks leave no trace there.
void emu_memory_watch(struct emu_memory *memory);

// Registers `bytes` at `base`, named for reports (copied; NULL is allowed). `initialized` says whether it counts as
// written. false: no memory, or it overlaps a live allocation.
bool emu_memory_add(struct emu_memory *memory, uint64_t base, uint64_t bytes, const char *name, bool initialized);
// The allocation that starts there may be read alone. false: none does.
bool emu_memory_protect(struct emu_memory *memory, uint64_t base);
bool emu_memory_remove(struct emu_memory *memory, uint64_t base);  // false: no allocation starts there
// The same, and an access to it is reported as one to memory that was freed. The last thousand are kept.
bool emu_memory_free(struct emu_memory *memory, uint64_t base);
// The host wrote these bytes (copies, memset): they count as initialized.
void emu_memory_written(struct emu_memory *memory, uint64_t address, uint64_t bytes);

struct emu_allocation {
  uint64_t base, bytes;
  char name[48];
  bool read_only;
};
// The allocation that holds the address, or the nearest one below it with `out` filled and false returned; bytes is 0
// when there is none at all.
bool emu_memory_find(struct emu_memory *memory, uint64_t address, struct emu_allocation *out);
// Each of them in ascending order, until `visit` returns false.
void emu_memory_each(struct emu_memory *memory, bool (*visit)(void *context, const struct emu_allocation *allocation),
                     void *context);

// ---- programs

// Keeps `code` without copying: it must stay, unchanged, until the program is released. `address` is where
// the kernel believes the first byte to lie (PC-relative constants are read there); usually (uint64_t)code.
struct emu_program;
struct emu_program *emu_program_create(const struct emu_isa *target, const void *code, size_t bytes, uint64_t address);
void emu_program_release(struct emu_program *program);
// For the checker, which tells them apart. Ascending, and none shares a byte with another; kept, not copied. false: no
// memory.
struct emu_variable {
  uint64_t address, bytes;
  const char *name;
};
bool emu_program_variables(struct emu_program *program, const struct emu_variable *variables, unsigned count);

// ---- kernels

// The 64-byte descriptor of the AMDGPU ABI, unpacked.
struct emu_kernel {
  int64_t entry;  // from the descriptor's own address to the first instruction
  uint32_t lds_bytes, scratch_bytes, kernarg_bytes;
  uint32_t rsrc1, rsrc2, rsrc3;
  uint16_t properties, preload;
};
void emu_kernel_parse(const void *descriptor, struct emu_kernel *out);
unsigned emu_kernel_wave(const struct emu_kernel *kernel);  // 32 or 64
// Where accumulation registers begin among them; 0: the target has none.
unsigned emu_kernel_accumulators(const struct emu_isa *target, const struct emu_kernel *kernel);
unsigned emu_kernel_counted_vgprs(const struct emu_isa *target, const struct emu_kernel *kernel);  // as compilers say
unsigned emu_kernel_vgprs(const struct emu_isa *target, const struct emu_kernel *kernel);  // registers that a lane has
unsigned emu_kernel_occupancy(const struct emu_isa *target, const struct emu_kernel *kernel, unsigned threads,
                              unsigned lds_bytes);  // waves on a SIMD, as registers and LDS allow

// ---- counters

enum emu_class {
  EMU_CLASS_SALU,
  EMU_CLASS_SMEM,
  EMU_CLASS_BRANCH,
  EMU_CLASS_WAIT,     // waits, hints, no-ops
  EMU_CLASS_VALU,     // one issue cycle in a wave of 32 lanes
  EMU_CLASS_VALU_64,  // double precision and 64-bit products
  EMU_CLASS_TRANSCENDENTAL,
  EMU_CLASS_VOPD,
  EMU_CLASS_DOT,
  EMU_CLASS_WMMA,
  EMU_CLASS_LDS,
  EMU_CLASS_LOAD,
  EMU_CLASS_STORE,
  EMU_CLASS_ATOMIC,
  EMU_CLASS_SCRATCH,
  EMU_CLASS_BARRIER,
  EMU_CLASS_COUNT
};
const char *emu_class_name(enum emu_class klass);

// Counts, never times. Sums over all waves: the same for any number of threads, unless the kernel spins.
struct emu_counters {
  uint64_t waves, groups;
  uint64_t instructions[EMU_CLASS_COUNT];
  uint64_t issue_cycles[EMU_CLASS_COUNT];
  uint64_t lanes_active, lanes_possible;   // over vector instructions
  uint64_t load_bytes, store_bytes;        // global memory, by active lanes
  uint64_t load_lines_64, load_lines_128;  // distinct lines, summed over instructions
  uint64_t store_lines_64, store_lines_128;
  uint64_t lds_bytes, lds_conflict_cycles;  // cycles beyond the first that bank conflicts cost
};

// ---- dispatch

// A finding of the checker, or why a launch failed. `text` is whole sentences.
struct emu_report {
  enum emu_status status;
  uint64_t pc;       // offset in the program
  uint64_t address;  // of the access, or 0
  uint32_t group[3], wave;
  int32_t lane;  // -1: the whole wave
  bool lint;     // defined and hardly meant: no error
  // "out of bounds", "race", "missing release", "missing acquire", "narrow scope", "uninitialized", "missing wait",
  // "divergent barrier", "split barrier", "inactive lane", "misaligned", "trap", "no progress"
  char kind[24];
  char text[1000];
};

struct emu_dwarf;
struct emu_dispatch {
  struct emu_program *program;
  uint64_t entry;       // offset of the first instruction in the program
  uint64_t code_bytes;  // of the kernel's own code from there on, for observers; 0: not known
  struct emu_kernel kernel;
  const char *name;

  uint32_t groups[3];   // the grid, in work-groups
  uint32_t threads[3];  // the block, in work-items
  uint32_t dynamic_lds_bytes;
  uint32_t scratch_bytes;  // a lane; 0: as the descriptor says
  bool dynamic_stack;      // the compiler could not know how much it needs
  uint64_t kernarg;        // readable for kernarg_bytes without being in the table
  uint32_t kernarg_bytes;
  uint32_t kernarg_missing[2];  // from the first of its bytes to behind the last one that the caller did not pass
  uint64_t packet;              // an AQL dispatch packet; 0: one is made
  bool together;                // all groups are begun at once, since they wait for each other
  uint32_t host_threads;        // 0: RDNA_EMULATE_THREADS, else the processors
  uint64_t shuffle;             // seed of the order of groups and waves; 0: RDNA_EMULATE_SHUFFLE, else ascending
  uint32_t resident_groups;     // that the card holds at once: no more are begun and not ended; 0: any number
  uint64_t instruction_limit;   // of a wave, which fails beyond it; 0: none
  uint32_t patience_ms;         // for how long all waves may do nothing but wait before one fails; 0: for ever

  // What kernel and host share while it runs, besides the table: readable, writable, and not looked at by the checker.
  uint64_t shared, shared_bytes;
  // The host's turn at S_SENDMSG of an interrupt, on the wave's thread; may be NULL.
  void (*interrupt)(void *context);
  void *interrupt_context;

  struct emu_memory *memory;  // NULL: no access is checked, and a wild one ends the process
  bool check;
  bool lint;                      // with check: report also what is defined and hardly meant
  struct emu_counters *counters;  // NULL: not counted. Added to, not cleared.
  // Room for findings, filled from the first; more findings than room are counted only.
  struct emu_report *reports;
  uint32_t report_room;
  bool (*is_suppressed)(const char *kernel, const char *kind);  // such findings are none; may be NULL

  // Where an instruction comes from, if known ("file.hip:12"); may be NULL. Returns false where it is not.
  bool (*source_line)(void *context, uint64_t pc, char *text, size_t size);
  // The program's names, types and scopes; may be NULL, and returns NULL where they are not known. *linked: the address
  // of the program's first byte when it was linked.
  const struct emu_dwarf *(*names)(void *context, uint64_t *linked);
  void *source_context;

  const struct emu_observer *observer;  // observe.h; NULL: nobody looks

  uint32_t report_count;  // out: findings, some perhaps beyond the room
  uint32_t lint_count;    // out: how many of them are lints; these alone leave the status EMU_OK
};

// Executes the grid. Anything but EMU_OK and EMU_CHECK: *failure says what happened first, and memory may be half
// written. Several dispatches may run at once, with the same program and memory.
enum emu_status emu_dispatch_run(struct emu_dispatch *dispatch, struct emu_report *failure);

#endif
