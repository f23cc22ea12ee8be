// What a wave knows of what others have done: vector clocks. Private to the files checker*.c.
//
// A clock has an entry for each wave of which something is known, by its number in a record (checker_race.h); number 0
// of a group stands for all its waves, which a barrier has brought together. An entry has three times, and accesses
// before one of them are
//
//     far     behind a release at agent scope
//     near    behind one at work-group scope, which serves the releasing wave's group alone
//     loose   before the access that told of them, whether or not it has released them: for what is said of a finding
//
// A clock that is shared never changes. NULL is the empty one.
#ifndef EMULATOR_MACHINE_CHECKER_CLOCK_H
#define EMULATOR_MACHINE_CHECKER_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct emu_clock_entry {
  uint32_t who;
  uint64_t far, near, loose;
};
struct emu_clock {
  uint32_t references, count;
  struct emu_clock_entry entry[];  // ascending
};

// More waves than this nobody keeps apart.
enum { EMU_CLOCK_MOST = 1 << 14 };

struct emu_clock *emu__clock_create(uint32_t count);  // entries not yet filled; NULL: no memory
struct emu_clock *emu__clock_keep(struct emu_clock *clock);
void emu__clock_drop(struct emu_clock *clock);
// NULL: nothing is known of it.
const struct emu_clock_entry *emu__clock_find(const struct emu_clock *clock, uint32_t who);
// What both know replaces *to; of `from` without its near times if `far_away`. false: no memory, or too many waves.
bool emu__clock_join(struct emu_clock **to, struct emu_clock *from, bool far_away);
// The same where nothing is changed.
bool emu__clock_has(const struct emu_clock *clock, const struct emu_clock *of, bool far_away);

#endif
