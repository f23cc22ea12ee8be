// Kernels that never end: a limit of instructions, and waits that nothing can end. Private to emulator/machine.
#ifndef EMULATOR_MACHINE_WATCH_H
#define EMULATOR_MACHINE_WATCH_H

#include "machine/wave.h"

// What one thread of a launch knows. All zero at first.
struct emu_watch {
  unsigned quiet, look;  // rounds since a group began or ended, and how many pass before it looks for waits
  bool waits;            // all its waves do nothing but wait
  uint32_t *registers;   // a copy of a wave's vector registers, to see whether they changed
  size_t room;           // bytes of it
};

void emu__watch_moved(struct emu_watch *watch);  // a group began or ended
// A slice of a wave, within the dispatch's limit.
void emu__watch_slice(struct emu_wave *wave, int64_t budget);
// After each round over the thread's groups.
void emu__watch_round(struct emu_watch *watch, struct emu_run *run, struct emu_group *const *groups, unsigned count);
void emu__watch_end(struct emu_watch *watch, struct emu_run *run);  // the thread has no more to do
void emu__watch_dispatch(int change);                               // how many launches run in this process

#endif
