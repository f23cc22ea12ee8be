// Watchpoints: bytes of global memory, LDS or scratch whose changes, or reads, stop a wave behind its instruction.
//
// A change is seen by comparing the bytes before and behind each instruction of a watched process, whoever writes them;
// the lane is that of the access which reached them last.
#ifndef EMULATOR_DEBUG_WATCHPOINTS_H
#define EMULATOR_DEBUG_WATCHPOINTS_H

#include "debug/text.h"
#include "machine/observe.h"

enum { EMU_WATCHPOINTS_MOST = 16, EMU_WATCHED_BYTES_MOST = 16 };
enum emu_watch_kind { EMU_WATCH_WRITE, EMU_WATCH_READ, EMU_WATCH_ACCESS };

struct emu_watchpoint {
  enum emu_watch_kind kind;
  uint64_t address;  // flat: in the window of LDS that of every group, in that of scratch that of every lane
  unsigned bytes;
  uint32_t tag;     // of the wave that it is of alone; 0: of all
  int lane;         // the same of lanes; -1: of all
  char name[64];    // what was asked for; "" of a GDB's
  unsigned number;  // from 1
};

struct emu_watchpoints;
struct emu_watchpoints *emu_watchpoints_create(void);
void emu_watchpoints_release(struct emu_watchpoints *watchpoints);
unsigned emu_watchpoints_count(const struct emu_watchpoints *watchpoints);

// Returns its number; 0: there is no room, or it has no bytes or more than the most.
unsigned emu_watchpoints_add(struct emu_watchpoints *watchpoints, const struct emu_watchpoint *wanted);
bool emu_watchpoints_remove(struct emu_watchpoints *watchpoints, unsigned number);
unsigned emu_watchpoints_find(const struct emu_watchpoints *watchpoints, enum emu_watch_kind kind, uint64_t address,
                              unsigned bytes);  // a GDB's; 0: there is none
const struct emu_watchpoint *emu_watchpoints_at(const struct emu_watchpoints *watchpoints, unsigned index);

// Around each instruction, and of its accesses.
void emu_watchpoints_before(struct emu_watchpoints *watchpoints, const struct emu_wave *wave);
void emu_watchpoints_touched(struct emu_watchpoints *watchpoints, const struct emu_wave *wave,
                             const struct emu_touched *touch);
// The watchpoint that the instruction has met, with a sentence on lane and values; NULL: none.
const struct emu_watchpoint *emu_watchpoints_after(struct emu_watchpoints *watchpoints, const struct emu_wave *wave,
                                                   struct emu_text *text);

#endif
