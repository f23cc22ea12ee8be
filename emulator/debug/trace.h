// Every instruction of one wave of each launch, with the registers that it reads and writes, into a file.
#ifndef EMULATOR_DEBUG_TRACE_H
#define EMULATOR_DEBUG_TRACE_H

#include "machine/observe.h"

struct emu_trace;
// By the path's end: .json is Chrome's trace format, which Perfetto shows, an instruction a microsecond; else text.
// "%p" in the path is the process's number; a file that is there is not overwritten.
// `wave`: "X,Y,Z:W", NULL the first. NULL: it cannot be, which was said.
struct emu_trace *emu_trace_create(const char *path, const char *wave, void (*say)(const char *format, ...));
// Completes the file, and says if there were launches and none had the wave.
void emu_trace_finish(struct emu_trace *trace, void (*say)(const char *format, ...));
void emu_trace_leave(struct emu_trace *trace);  // in a fork's child: nothing of it reaches the file

// What an observer is told, one at a time.
void emu_trace_launched(struct emu_trace *trace);
bool emu_trace_begun(struct emu_trace *trace, struct emu_wave *wave);  // whether this wave is traced
void emu_trace_ended(struct emu_trace *trace, const struct emu_wave *wave);
void emu_trace_before(struct emu_trace *trace, struct emu_wave *wave);
void emu_trace_after(struct emu_trace *trace, struct emu_wave *wave);

#endif
