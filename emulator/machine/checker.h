// The checker: what a launch does with registers, LDS and memory that a correct kernel does not. Private to
// emulator/machine; nothing here is called unless the dispatch asks for checks.
#ifndef EMULATOR_MACHINE_CHECKER_H
#define EMULATOR_MACHINE_CHECKER_H

#include "machine/access.h"

// Around each instruction. false: do not execute it.
bool emu__check_before(struct emu_wave *wave, const struct emu_step *step);
void emu__check_after(struct emu_wave *wave);
bool emu__check_indexed(struct emu_wave *wave, struct emu_step *step);  // before one that exists for once
void emu__check_barrier_arrival(struct emu_wave *wave, const struct emu_step *step);
void emu__check_signal(struct emu_wave *wave, const struct emu_step *step);  // a split barrier's two halves
void emu__check_await(struct emu_wave *wave, const struct emu_step *step);
void emu__check_barrier(struct emu_group *group);  // all have arrived
void emu__check_end(struct emu_wave *wave, const struct emu_step *step);

// A memory access, before it happens, and the registers that it fills, takes its data from, or (`compare`, `dst`) -1.
// false: it must not happen, the wave has trapped.
bool emu__check_load(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *places,
                     const struct emu_shape *shape, unsigned reg);
bool emu__check_store(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *places,
                      const struct emu_shape *shape, unsigned reg);
bool emu__check_atomic(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *places,
                       unsigned bytes, unsigned data, int compare, int dst);

// Elements with a format. The lanes that read what is not defined; a store of src[1]'s registers; what becomes of a
// lane's register when all bits but the `kept` ones are new, defined or (`lost`) not.
uint64_t emu__check_elements(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *places,
                             unsigned bytes);
void emu__check_put_elements(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *places,
                             unsigned bytes);
void emu__check_result(struct emu_wave *wave, unsigned reg, unsigned lane, bool lost, uint32_t kept);

uint64_t emu__check_start(void);            // the time at which a launch begins
void emu__check_stop(struct emu_run *run);  // when it has ended

// Which variables the addresses in registers are meant for, kept with the program.
struct emu_roots *emu__roots_create(const struct emu_variable *variables, unsigned count);
void emu__roots_release(struct emu_roots *roots);

// A group's shadows: made once, begun with each group, freed with it.
bool emu__check_group_create(struct emu_group *group);
void emu__check_group_begin(struct emu_group *group);
void emu__check_group_release(struct emu_group *group);

void emu__report_fill(const struct emu_wave *wave, const struct emu_step *step, enum emu_status status,
                      const char *kind, int lane, uint64_t address, const char *message, struct emu_report *report);

#endif
