// A stopped wave as text: what a person asks for at the prompt, or of GDB's `monitor`.
#ifndef EMULATOR_DEBUG_INSPECT_H
#define EMULATOR_DEBUG_INSPECT_H

#include "debug/session.h"
#include "debug/text.h"

enum { EMU_WORDS_MOST = 4 };
struct emu_question {
  struct emu_session *session;
  struct emu_wave *wave;
  struct emu_wave_view view;
  const char *rest;                   // what stands behind the command
  const char *words[EMU_WORDS_MOST];  // the same, word by word; "" where there is none
  struct emu_text *out;
};
// A number, or `otherwise` where the text is empty. false: it is none.
bool emu_ask_number(const char *text, uint64_t otherwise, uint64_t *out);

// ---- variables.c

void emu_ask_locals(const struct emu_question *question);
void emu_ask_args(const struct emu_question *question);
void emu_ask_info(const struct emu_question *question);
void emu_ask_print(const struct emu_question *question);
void emu_ask_table(const struct emu_question *question);
void emu_ask_backtrace(const struct emu_question *question);
void emu_ask_frame(const struct emu_question *question);
void emu_ask_up(const struct emu_question *question);
void emu_ask_down(const struct emu_question *question);
void emu_ask_lane(const struct emu_question *question);
void emu_ask_watch(const struct emu_question *question);
void emu_ask_rwatch(const struct emu_question *question);
void emu_ask_awatch(const struct emu_question *question);
void emu_ask_unwatch(const struct emu_question *question);

// ---- all

// Answers a line such as "lanes v3"; "help" tells what there is. Bad ones are answered with a sentence.
void emu_inspect(struct emu_session *session, struct emu_wave *wave, const char *line, struct emu_text *out);
// Which wave it is and where: a line of text, ended.
void emu_inspect_where(const struct emu_session *session, const struct emu_wave *wave, struct emu_text *out);
// "kernel scale, work-group (0, 0, 0), wave 1", and if it waits, where.
void emu_inspect_name(const struct emu_session *session, const struct emu_wave *wave, struct emu_text *out);
const char *emu_stop_text(enum emu_stop_reason why);

#endif
