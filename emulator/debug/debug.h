// Debuggers and traces of the waves of a process: one for all its devices.
//
//   debug     chooses by what was asked for, and is the observer of every launch
//   session   where waves stop, and who goes on: breakpoints, steps, interrupts
//   inspect   registers, memory, code and source lines as text
//   packet    GDB's remote protocol: bytes to packets and back
//   remote    answers a GDB
//   prompt    answers a person at a terminal
//   trace     every instruction of one wave of each launch, into a file
#ifndef EMULATOR_DEBUG_DEBUG_H
#define EMULATOR_DEBUG_DEBUG_H

#include "machine/observe.h"

struct emu_debug_wishes {
  const char *gdb;     // a port of this machine's loopback; "0": any, which is said
  const char *breaks;  // KERNEL or KERNEL:LINE, several with commas; without gdb a prompt on standard input stops there
  const char *trace;   // a file: text, or Chrome's JSON if the name ends in .json
  const char *trace_wave;  // X,Y,Z:W: of which work-group and which of its waves; NULL: the first
  __attribute__((format(printf, 1, 2))) void (*say)(const char *format, ...);
};

// *out: the observer for the wishes, NULL if there are none. false: a wish cannot be had, which was said. Call it once.
bool emu_debug_start(const struct emu_debug_wishes *wishes, const struct emu_observer **out);
bool emu_debug_stops(void);         // whether waves may stop, so that a launch wants one host thread and no patience
void emu_debug_end(int exit_code);  // the process ends: files are completed, clients told

#endif
