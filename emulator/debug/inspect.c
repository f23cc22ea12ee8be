// A stopped wave as text.
#include "debug/inspect.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DUMP_MOST = 1024, CODE_MOST = 64 };

const char *emu_stop_text(enum emu_stop_reason why) {
  switch (why) {
    case EMU_STOP_ENTRY:
      return "the first instruction";
    case EMU_STOP_STEP:
      return "stepped";
    case EMU_STOP_BREAK:
      return "breakpoint";
    case EMU_STOP_WATCH:
      return "watchpoint";
    case EMU_STOP_INTERRUPT:
      return "interrupted";
    case EMU_STOP_FINDING:
      return "a finding of the checker";
    case EMU_STOP_TRAP:
      return "the kernel failed";
    case EMU_STOP_FAULT:
      return "wild access";
  }
  return "";
}

static uint64_t exec_of(const struct emu_wave_view *view) {
  return view->s[EMU_EXEC_LO] | (view->lanes == 64 ? (uint64_t)view->s[EMU_EXEC_HI] << 32 : 0);
}

static bool source_at(const struct emu_wave_view *view, uint64_t address, char *text, size_t room) {
  const struct emu_dispatch *d = view->dispatch;
  return d->source_line && d->source_line(d->source_context, address - view->base, text, room);
}

void emu_inspect_name(const struct emu_session *session, const struct emu_wave *wave, struct emu_text *out) {
  struct emu_wave_view view;
  emu_wave_look(wave, &view);
  const struct emu_seen *seen = emu_session_find(session, view.tag);
  emu_text_add(out, "kernel %s, launch %u, work-group (%u, %u, %u), wave %u%s",
               view.dispatch->name ? view.dispatch->name : "?", seen ? seen->launch : 0, view.group[0], view.group[1],
               view.group[2], view.index,
               view.doing == EMU_WAVE_AT_BARRIER ? ", at a barrier"
               : view.doing == EMU_WAVE_IS_OVER  ? ", ended"
                                                 : "");
}

// One line: address, offset, instruction, source line.
static void add_code(const struct emu_question *q, uint64_t address, size_t *bytes) {
  struct emu_inst inst;
  char text[EMU_ISA_TEXT] = "", source[500];
  *bytes = emu_wave_instruction(q->wave, address, &inst, text);
  if (!*bytes) return;
  emu_text_add(q->out, "%s 0x%" PRIx64 " <+0x%" PRIx64 ">  %s", address == q->view.pc ? "=>" : "  ", address,
               address - q->view.base, text);
  if (source_at(&q->view, address, source, sizeof source)) emu_text_add(q->out, "  (%s)", source);
  emu_text_add(q->out, "\n");
}

static void where(const struct emu_question *q) {
  size_t bytes;
  emu_inspect_name(q->session, q->wave, q->out);
  uint64_t exec = exec_of(&q->view);
  emu_text_add(q->out, ", %d of %u lanes on\n", __builtin_popcountll(exec), q->view.lanes);
  add_code(q, q->view.pc, &bytes);
}

void emu_inspect_where(const struct emu_session *session, const struct emu_wave *wave, struct emu_text *out) {
  struct emu_question q = {.session = (struct emu_session *)session, .wave = (struct emu_wave *)wave, .out = out};
  emu_wave_look(wave, &q.view);
  where(&q);
}

static void waves(const struct emu_question *q) {
  const struct emu_seen *seen;
  unsigned count = emu_session_waves(q->session, &seen);
  for (unsigned i = 0; i < count; i++) {
    emu_text_add(q->out, "%s %" PRIu32 "  ", seen[i].wave == q->wave ? "*" : " ", seen[i].tag);
    emu_inspect_name(q->session, seen[i].wave, q->out);
    emu_text_add(q->out, "\n");
  }
}

bool emu_ask_number(const char *text, uint64_t otherwise, uint64_t *out) {
  char *end;
  *out = text[0] ? strtoull(text, &end, 0) : otherwise;
  return !text[0] || (end != text && !*end && text[0] != '-');
}

// ---- registers

static void scalars(const struct emu_question *q) {
  const uint32_t *s = q->view.s;
  for (unsigned i = 0; i < EMU_VCC_LO; i++)
    emu_text_add(q->out, "%ss%u 0x%08" PRIx32, i % 8 ? " " : i ? "\n" : "", i, s[i]);
  for (unsigned i = 0; i < 16 && q->view.target->groups_in_ttmp; i++)
    emu_text_add(q->out, "%sttmp%u 0x%08" PRIx32, i % 8 ? " " : "\n", i, s[EMU_TTMP0 + i]);
  emu_text_add(q->out, "\nvcc 0x%" PRIx64 " exec 0x%" PRIx64 " m0 0x%" PRIx32 " scc %d mode 0x%" PRIx32 "\n",
               s[EMU_VCC_LO] | (uint64_t)s[EMU_VCC_HI] << 32, exec_of(&q->view), s[EMU_M0], q->view.scc, q->view.mode);
}

// The row of v3 or a3; -1: there is none.
static int row_of(const struct emu_wave_view *view, const char *name) {
  uint64_t n;
  bool accumulator = name[0] == 'a';
  if ((name[0] != 'v' && !accumulator) || !name[1] || !emu_ask_number(name + 1, 0, &n) || n > 511) return -1;
  if (accumulator && !view->accumulators) return -1;
  uint64_t row = n + (accumulator ? view->accumulators : 0);
  uint64_t end = !accumulator && view->accumulators ? view->accumulators : view->vgprs;
  return row < end ? (int)row : -1;
}

static void lanes(const struct emu_question *q) {
  int row = row_of(&q->view, q->words[0]);
  if (row < 0) {
    emu_text_add(q->out, "'%s' is no vector register of this wave: v0 to v%u%s\n", q->words[0],
                 (q->view.accumulators ? q->view.accumulators : q->view.vgprs) - 1,
                 q->view.accumulators ? ", and a0 …" : "");
    return;
  }
  uint64_t exec = exec_of(&q->view);
  for (unsigned l = 0; l < q->view.lanes; l++) {
    uint32_t bits = q->view.v[(unsigned)row * q->view.lanes + l];
    float value;
    memcpy(&value, &bits, sizeof value);
    emu_text_add(q->out, "%2u %s 0x%08" PRIx32 " %11" PRId32 " %.9g\n", l, exec >> l & 1 ? "on " : "off", bits,
                 (int32_t)bits, (double)value);
  }
}

// ---- memory

static void dump(const struct emu_question *q, unsigned lane, uint64_t from, uint64_t bytes, uint64_t shown) {
  uint8_t data[DUMP_MOST];
  size_t got = emu_wave_read(q->wave, lane, from, data, bytes < DUMP_MOST ? bytes : DUMP_MOST);
  for (size_t i = 0; i < got; i += 16) {
    emu_text_add(q->out, "0x%" PRIx64 ":", shown + i);
    for (size_t k = i; k < i + 16 && k < got; k += 4) {
      uint32_t word = 0;
      memcpy(&word, data + k, got - k < 4 ? got - k : 4);
      emu_text_add(q->out, " %08" PRIx32, word);
    }
    emu_text_add(q->out, "\n");
  }
  if (got < bytes && got < DUMP_MOST)
    emu_text_add(q->out, "There are no bytes at 0x%" PRIx64 " that this wave could read.\n", shown + got);
}

static void lds(const struct emu_question *q) {
  uint64_t from, bytes;
  if (!emu_ask_number(q->words[0], 0, &from) || !emu_ask_number(q->words[1], 256, &bytes) || from > UINT32_MAX) {
    emu_text_add(q->out, "lds [OFFSET [BYTES]]\n");
    return;
  }
  emu_text_add(q->out, "LDS of the group has %" PRIu32 " bytes; its window begins at 0x%" PRIx64 "\n",
               q->view.lds_bytes, emu_lds_window());
  uint64_t left = from < q->view.lds_bytes ? q->view.lds_bytes - from : 0;
  if (left) dump(q, 0, emu_lds_window() + from, bytes < left ? bytes : left, from);
}

static void scratch(const struct emu_question *q) {
  uint64_t lane, from, bytes;
  bool good = emu_ask_number(q->words[0], 0, &lane) && emu_ask_number(q->words[1], 0, &from) &&
              emu_ask_number(q->words[2], 64, &bytes);
  if (!good || lane >= q->view.lanes || from > UINT32_MAX) {
    emu_text_add(q->out, "scratch [LANE [OFFSET [BYTES]]]\n");
    return;
  }
  emu_text_add(q->out, "scratch of a lane has %" PRIu64 " bytes; its window begins at 0x%" PRIx64 "\n",
               q->view.scratch_bytes, emu_scratch_window());
  uint64_t left = from < q->view.scratch_bytes ? q->view.scratch_bytes - from : 0;
  if (left) dump(q, (unsigned)lane, emu_scratch_window() + from, bytes < left ? bytes : left, from);
}

static void memory(const struct emu_question *q) {
  uint64_t from, bytes;
  if (!q->words[0][0] || !emu_ask_number(q->words[0], 0, &from) || !emu_ask_number(q->words[1], 64, &bytes)) {
    emu_text_add(q->out, "memory ADDRESS [BYTES]\n");
    return;
  }
  dump(q, 0, from, bytes, from);
}

static bool add_allocation(void *context, const struct emu_allocation *allocation) {
  const struct emu_question *q = context;
  emu_text_add(q->out, "0x%" PRIx64 " %12" PRIu64 " bytes  %s\n", allocation->base, allocation->bytes,
               allocation->name);
  return true;
}

static void allocations(const struct emu_question *q) {
  if (q->view.dispatch->memory) emu_memory_each(q->view.dispatch->memory, add_allocation, (void *)q);
}

// ---- code

static void code(const struct emu_question *q) {
  uint64_t count, address;
  if (!emu_ask_number(q->words[0], 8, &count) || !emu_ask_number(q->words[1], q->view.pc, &address)) {
    emu_text_add(q->out, "code [COUNT [ADDRESS]]\n");
    return;
  }
  size_t bytes = 1;
  for (uint64_t i = 0; i < count && i < CODE_MOST && bytes; i++, address += bytes) add_code(q, address, &bytes);
}

// The lines around the one that the wave is at.
static void source(const struct emu_question *q) {
  enum { AROUND = 4 };
  char text[1000], line[1000];
  char *colon = source_at(&q->view, q->view.pc, text, sizeof text) ? strrchr(text, ':') : NULL;
  if (!colon) {
    emu_text_add(q->out, "The code object has no line here; compile with -gline-tables-only or -g.\n");
    return;
  }
  unsigned long here = strtoul(colon + 1, NULL, 10), at = 0;
  emu_text_add(q->out, "%s\n", text);
  *colon = '\0';
  FILE *file = fopen(text, "r");
  if (!file) return;
  while (fgets(line, sizeof line, file) && ++at <= here + AROUND) {
    line[strcspn(line, "\r\n")] = '\0';
    if (at + AROUND >= here) emu_text_add(q->out, "%s%5lu  %s\n", at == here ? "=>" : "  ", at, line);
  }
  fclose(file);
}

// ---- breakpoints by name

static void add_break(const struct emu_question *q) {
  if (!q->words[0][0] || !emu_session_break(q->session, q->words[0])) {
    emu_text_add(q->out, "break KERNEL, KERNEL:LINE or FUNCTION, at most 32 of them\n");
    return;
  }
  emu_text_add(q->out, "Waves stop at %s.\n", q->words[0]);
}

static void forget(const struct emu_question *q) {
  emu_session_forget_breaks(q->session);
  emu_text_add(q->out, "There are no breakpoints by name any more.\n");
}

static void help(const struct emu_question *q);

static const struct {
  const char *name, *arguments, *help;
  void (*answer)(const struct emu_question *q);
} commands[] = {
    {"where", "", "the wave, its instruction and source line", where},
    {"waves", "", "those that have begun and not ended", waves},
    {"scalars", "", "scalar registers, exec, vcc, m0, scc, mode", scalars},
    {"lanes", "v3", "a vector register, lane by lane, as bits, integer and float; a3 for accumulation registers",
     lanes},
    {"backtrace", "", "the functions that it is in, with their arguments of the lane", emu_ask_backtrace},
    {"bt", "", NULL, emu_ask_backtrace},
    {"frame", "[N]", "chooses one of them", emu_ask_frame},
    {"up", "", "the caller's", emu_ask_up},
    {"down", "", "and back", emu_ask_down},
    {"lane", "[N]", "chooses a lane, at first the first that is on", emu_ask_lane},
    {"locals", "", "variables of the function in that lane", emu_ask_locals},
    {"args", "", "its arguments", emu_ask_args},
    {"info", "locals, args", NULL, emu_ask_info},
    {"print", "EXPRESSION", "a variable of that lane: names, numbers, * & . -> [ ]", emu_ask_print},
    {"p", "EXPRESSION", NULL, emu_ask_print},
    {"table", "[EXPRESSION]", "one, or all of the function, lane by lane", emu_ask_table},
    {"lds", "[OFFSET [BYTES]]", "memory of the work-group", lds},
    {"scratch", "[LANE [OFFSET [BYTES]]]", "memory of a lane", scratch},
    {"memory", "ADDRESS [BYTES]", "memory of the device", memory},
    {"allocations", "", "what memory there is", allocations},
    {"code", "[COUNT [ADDRESS]]", "instructions from here on", code},
    {"source", "", "the source around the line", source},
    {"break", "KERNEL[:LINE] or FUNCTION", "stop there, in launches to come too", add_break},
    {"forget", "", "forget the breakpoints by name", forget},
    {"watch", "EXPRESSION", "stop behind what changes a variable that lies in memory", emu_ask_watch},
    {"rwatch", "EXPRESSION", "behind what reads it", emu_ask_rwatch},
    {"awatch", "EXPRESSION", "behind both", emu_ask_awatch},
    {"unwatch", "[N]", "forget one of them, or all", emu_ask_unwatch},
    {"help", "", "this", help},
};

static void help(const struct emu_question *q) {
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    char call[64];
    if (!commands[i].help) continue;  // another word for one that has it
    snprintf(call, sizeof call, "%s %s", commands[i].name, commands[i].arguments);
    emu_text_add(q->out, "%-34s %s\n", call, commands[i].help);
  }
}

void emu_inspect(struct emu_session *session, struct emu_wave *wave, const char *line, struct emu_text *out) {
  char copy[512];
  struct emu_question q = {.session = session, .wave = wave, .words = {"", "", "", ""}, .out = out};
  emu_wave_look(wave, &q.view);
  snprintf(copy, sizeof copy, "%s", line);
  q.rest = line + strspn(line, " \t\r\n");
  q.rest += strcspn(q.rest, " \t\r\n");
  q.rest += strspn(q.rest, " \t\r\n");
  char *rest = NULL, *name = strtok_r(copy, " \t\r\n", &rest);
  for (int i = 0; i < EMU_WORDS_MOST; i++) {
    const char *word = strtok_r(NULL, " \t\r\n", &rest);
    if (!word) break;
    q.words[i] = word;
  }
  for (size_t i = 0; name && i < sizeof commands / sizeof *commands; i++) {
    if (strcmp(commands[i].name, name) != 0) continue;
    commands[i].answer(&q);
    return;
  }
  emu_text_add(out, "'%s' is no command; help tells what there is\n", name ? name : "");
}
