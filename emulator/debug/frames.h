// Calls of a wave, and the functions in which it stands.
//
// Compilers leave no rules for unwinding (clang's .debug_frame for AMD GPUs has none), and a return address may stand
// in a lane of a vector register. So calls are noted as they happen, with the registers that the callee finds: callers'
// registers are exact, and a value at a function's entry is known.
#ifndef EMULATOR_DEBUG_FRAMES_H
#define EMULATOR_DEBUG_FRAMES_H

#include "machine/observe.h"
#include "object/location.h"

struct emu_calls;
// After an instruction at `before`, an address, of a wave that goes on elsewhere: notes a call or forgets one. *calls
// is NULL at first; what cannot be noted for want of memory is missing in frames.
void emu_calls_follow(struct emu_calls **calls, const struct emu_wave *wave, uint64_t before);
void emu_calls_release(struct emu_calls *calls);

enum { EMU_FRAMES_MOST = 128 };

struct emu_frame {
  uint64_t pc;                        // address of what it executes next
  uint64_t look;                      // and of what it stands in, as linked: behind a call the byte before
  const uint32_t *s, *v;              // its registers
  const uint32_t *entry_s, *entry_v;  // those at its function's call; NULL: not known
  uint32_t function, scope;           // its entry, or that of the inlined function; the innermost block's. Or NO_ENTRY
  uint32_t outermost;                 // the function's that all of its code is in
  uint32_t inlined;                   // of the inlined function that is called where it stands, or NO_ENTRY
};

// The program's entries, or NULL, and *linked as in emu_dispatch.
const struct emu_dwarf *emu_frames_names(const struct emu_wave_view *view, uint64_t *linked);
// Innermost first; at least one.
unsigned emu_frames(const struct emu_wave_view *view, const struct emu_calls *calls,
                    struct emu_frame out[EMU_FRAMES_MOST]);
// "file:line" where it stands. false: not known.
bool emu_frame_source(const struct emu_wave_view *view, const struct emu_frame *frame, char *text, size_t room);

#endif
