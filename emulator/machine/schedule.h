// Waves beginning, waiting and ending. Private to emulator/machine.
#ifndef EMULATOR_MACHINE_SCHEDULE_H
#define EMULATOR_MACHINE_SCHEDULE_H

#include "machine/wave.h"

// The registers as a wave of this dispatch begins with, by the target's ABI.
void emu__wave_begin(struct emu_wave *wave, struct emu_group *group, unsigned index);
void emu__wave_end(struct emu_wave *wave, const struct emu_step *step);
void emu__wave_barrier(struct emu_wave *wave, const struct emu_step *step);
void emu__wave_signal(struct emu_wave *wave, const struct emu_step *step);  // a split barrier's two halves
void emu__wave_await(struct emu_wave *wave, const struct emu_step *step);

uint64_t emu__clock(void);  // ticks of 10 ns, as the card's constant clock

void emu__counters_add(struct emu_counters *to, const struct emu_counters *from);

#endif
