// The memory model: who has told whom of what, by atomic operations and by loads and stores past the caches.
//
// A wave's accesses carry the time of its last release, acquire or barrier (its epoch). It has released those before
// the current epoch once nothing of it is under way, and where the generation asks for it, caches are written back.
// What a wave reads from another past the caches, or by an atomic operation, tells it of what that one has released
// before, and of what that one knew itself; it may read those bytes once it has invalidated its caches behind it.
// Barriers tell all waves of a group what one of them knows.
//
// Whether a store is atomic, its instruction does not say on most generations: each store may pass something on, and so
// leaves a note of what its wave has released (once an epoch). An atomic operation passes on what is there as well:
// what it tells stands with the place.
//
// Source of what each generation needs: LLVM's "User Guide for AMDGPU Backend", the tables of the section "Memory
// Model". Scopes beyond the agent's are taken for the agent's: what the host does meanwhile is not seen here.
#ifndef EMULATOR_MACHINE_CHECKER_MODEL_H
#define EMULATOR_MACHINE_CHECKER_MODEL_H

#include "machine/access.h"
#include "machine/checker_clock.h"

enum emu_level { EMU_LEVEL_GROUP, EMU_LEVEL_AGENT, EMU_LEVELS };

// When a wave had nothing under way: what it had done and knew then.
struct emu_released {
  uint64_t epoch, barrier;
  struct emu_clock *known;
};
// A place that was read past the caches, or by an atomic operation.
struct emu_heard {
  uint64_t address, record;
  uint32_t pc;
};

struct emu_suspect {
  const struct emu_step *step;
  uint64_t address, record;
  int lane;
  uint8_t lack;
};

struct emu_wave_model {
  uint64_t epoch, barrier;  // barrier: time of the last one
  uint64_t noted;           // the epoch of the last note
  uint64_t heard_at;        // when it last learned anything
  bool moved;               // it has accessed memory, or learned, since the epoch began
  bool written_back;        // nor has it stored since it wrote caches back, for all of the agent
  uint8_t invalidated;      // enum emu_invalidated, behind what it has learned last
  bool met;                 // a barrier has come since then
  // vector loads that have come; stores where they have a counter of their own
  uint32_t loads_done, stores_issued, stores_done;
  // what it knows; what a read under way will tell, at which counts; what its reads see, at both levels
  struct emu_clock *known, *coming, *fresh[EMU_LEVELS];
  uint32_t coming_loads, coming_stores;
  struct emu_released released[EMU_LEVELS];
  struct emu_clock *tells;  // made of the above when it is needed
  // the access under way, whose places are looked at behind it
  unsigned asked;
  uint32_t asks_pc;
  uint64_t asks[64];
  struct emu_heard heard[4];  // the newest first
  unsigned suspects;
  struct emu_suspect suspect[4];
};

// What is missing between two accesses.
enum emu_lack { EMU_LACK_ALL, EMU_LACK_RELEASE, EMU_LACK_ACQUIRE, EMU_LACK_SCOPE };

// What a cache instruction does.
enum emu_invalidated { EMU_INVALIDATES_NEAR = 1, EMU_INVALIDATES_FAR = 2 };
enum { EMU_WRITES_BACK = 4 };
uint8_t emu__model_cache_of(const struct emu_inst *inst, const struct emu_isa *target);

void emu__model_begin(struct emu_wave *wave, uint64_t now);
void emu__model_turn(struct emu_wave *wave, uint64_t now);  // a new epoch
void emu__model_end(struct emu_wave_model *model);          // what it holds
void emu__model_release_run(struct emu_run *run);
void emu__model_barrier(struct emu_group *group, uint64_t now);

// Hooks, before the records of the access change; `past`: the load goes past the caches.
void emu__model_load(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *places,
                     unsigned bytes, bool past);
void emu__model_store(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *places,
                      unsigned bytes);
void emu__model_atomic(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *places,
                       unsigned bytes, bool returns, bool compares);
void emu__model_ask(struct emu_wave *wave);  // behind a load or an atomic operation
void emu__model_waited(struct emu_wave *wave);
void emu__model_cache(struct emu_wave *wave, uint8_t does);

// Whether the access of a record is ordered before what the wave does now. false: *lack says what that lacks.
bool emu__model_orders(const struct emu_wave *wave, uint64_t record, bool reads, bool shared, enum emu_lack *lack);
// Whether atomic operations and loads past the caches have met at the place.
bool emu__model_is_flag(const struct emu_wave *wave, uint64_t address);
// Whether others change the place by atomic operations of which the wave does none.
bool emu__model_is_blind(const struct emu_wave *wave, uint64_t address);
// A plain load of what others change by atomic operations. It is said when the wave ends, if no atomic operation of its
// own has followed at the place: what begins with such a look is right, whatever it has seen.
struct emu_other;
void emu__model_suspect(struct emu_wave *wave, const struct emu_step *step, int lane, uint64_t address,
                        const struct emu_other *other);
void emu__model_ended(struct emu_wave *wave);
// An atomic operation on LDS, or a look at one, orders all that the group has done, whatever it is for: LDS has no
// cache before it and answers in order.
void emu__model_meet(struct emu_wave *wave);

// Where the access of a record was made (checker_trail.c). false: it is forgotten.
void emu__trail_note(const struct emu_wave *wave, const struct emu_step *step, const struct emu_places *places,
                     unsigned bytes, bool wrote);
bool emu__trail_find(uint64_t record, uint64_t address, bool wrote, uint32_t *pc);

#endif
