// A stopped wave as text: what a person asks for at the prompt, or of GDB's `monitor`.
#ifndef EMULATOR_DEBUG_INSPECT_H
#define EMULATOR_DEBUG_INSPECT_H

#include "debug/session.h"
#include "debug/text.h"

// Answers a line such as "lanes v3"; "help" tells what there is. Bad ones are answered with a sentence.
void emu_inspect(struct emu_session *session, struct emu_wave *wave, const char *line, struct emu_text *out);
// Which wave it is and where: a line of text, ended.
void emu_inspect_where(const struct emu_session *session, const struct emu_wave *wave, struct emu_text *out);
// "kernel scale, work-group (0, 0, 0), wave 1", and if it waits, where.
void emu_inspect_name(const struct emu_session *session, const struct emu_wave *wave, struct emu_text *out);
const char *emu_stop_text(enum emu_stop_reason why);

#endif
