// Where the waves of a process stop, and who goes on. All stop together: whoever reports a stop holds the lock that
// every observed wave takes for each instruction.
#ifndef EMULATOR_DEBUG_SESSION_H
#define EMULATOR_DEBUG_SESSION_H

#include "debug/frames.h"
#include "debug/watchpoints.h"
#include "machine/observe.h"

enum emu_stop_reason {
  EMU_STOP_ENTRY,  // the first instruction of the process
  EMU_STOP_STEP,
  EMU_STOP_BREAK,
  EMU_STOP_WATCH,  // the instruction was executed
  EMU_STOP_INTERRUPT,
  EMU_STOP_FINDING,  // the checker has one more; the instruction was executed
  EMU_STOP_TRAP,     // the wave has failed, and its launch with it
  EMU_STOP_FAULT,
};

struct emu_session;

// Who is told. `stopped` returns when the session has been resumed.
struct emu_front {
  void *context;
  bool at_entry;  // whether the first wave of all stops before its first instruction
  void (*stopped)(void *context, struct emu_session *session, struct emu_wave *wave, enum emu_stop_reason why,
                  const char *text);
  bool (*interrupted)(void *context);  // asked every few hundred instructions; NULL: never
};

struct emu_seen {
  struct emu_wave *wave;
  uint32_t tag;
  unsigned launch;  // number of the launch, from 1
  bool told;        // it has stopped where it is
  struct emu_calls *calls;
};

// What questions about variables are of, until the next stop: a frame and a lane of the wave with the tag.
struct emu_focus {
  uint32_t tag;  // 0: nothing was chosen
  unsigned frame, lane;
};

struct emu_session *emu_session_create(const struct emu_front *front);
void emu_session_release(struct emu_session *session);

// Whether waves may stop, now or later.
bool emu_session_watches(const struct emu_session *session);

// ---- what an observer is told; the caller holds the lock

void emu_session_launched(struct emu_session *session, const struct emu_dispatch *dispatch);
void emu_session_finished(struct emu_session *session, const struct emu_dispatch *dispatch);
void emu_session_begun(struct emu_session *session, struct emu_wave *wave, uint32_t tag);
void emu_session_ended(struct emu_session *session, const struct emu_wave *wave);
enum emu_turn emu_session_before(struct emu_session *session, struct emu_wave *wave);
void emu_session_after(struct emu_session *session, struct emu_wave *wave);
void emu_session_touched(struct emu_session *session, struct emu_wave *wave, const struct emu_touched *touch);

// ---- while it is stopped

unsigned emu_session_waves(const struct emu_session *session, const struct emu_seen **out);
const struct emu_seen *emu_session_find(const struct emu_session *session, uint32_t tag);  // NULL: it has ended
struct emu_watchpoints *emu_session_watchpoints(struct emu_session *session);
const struct emu_watchpoint *emu_session_met(const struct emu_session *session);  // at which it stopped; NULL: at none
struct emu_focus *emu_session_focus(struct emu_session *session);

void emu_session_continue(struct emu_session *session);
// The wave alone executes an instruction, and more while it stays in low … high - 1. At a barrier all go on until it
// does.
void emu_session_step(struct emu_session *session, uint32_t tag, uint64_t low, uint64_t high);
void emu_session_detach(struct emu_session *session);  // nothing stops any more
void emu_session_kill(struct emu_session *session);    // every launch under way ends with an error, and later ones too

// Breakpoints by address. false: there is no room.
bool emu_session_break_at(struct emu_session *session, uint64_t address);
bool emu_session_unbreak_at(struct emu_session *session, uint64_t address);
bool emu_session_has_break_at(const struct emu_session *session, uint64_t address);
// By name: "KERNEL" stops before its first instruction, "KERNEL:LINE" where code of the line begins, or of the first
// line behind it that has any, in the file of the kernel's first instruction; "FUNCTION" stops where one begins that
// debug information knows, whoever calls it. It holds for launches under way and later ones. false: there is no room,
// or a name is missing.
bool emu_session_break(struct emu_session *session, const char *where);
void emu_session_forget_breaks(struct emu_session *session);  // those by name
// Says which places by name no wave has come to, unless somebody has ended the session before.
void emu_session_say_unmet(const struct emu_session *session, void (*say)(const char *format, ...));

#endif
