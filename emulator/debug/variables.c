// Answers about variables and calls of a stopped wave.
#include <inttypes.h>
#include <string.h>

#include "debug/inspect.h"
#include "debug/value.h"

enum { CELL = 24, COLUMNS_MOST = 12 };

// The chosen lane and frame with all frames; false: nothing is known of variables, which was said.
struct look {
  struct emu_frame frames[EMU_FRAMES_MOST];
  unsigned count;
  struct emu_looker looker;
  struct emu_focus *focus;
};

static unsigned first_lane(const struct emu_wave_view *view) {
  uint64_t exec = view->s[EMU_EXEC_LO] | (view->lanes == 64 ? (uint64_t)view->s[EMU_EXEC_HI] << 32 : 0);
  return exec ? (unsigned)__builtin_ctzll(exec) : 0;
}

static void look(const struct emu_question *q, struct look *l) {
  const struct emu_seen *seen = emu_session_find(q->session, q->view.tag);
  l->focus = emu_session_focus(q->session);
  if (l->focus->tag != q->view.tag) *l->focus = (struct emu_focus){q->view.tag, 0, first_lane(&q->view)};
  l->count = emu_frames(&q->view, seen ? seen->calls : NULL, l->frames);
  if (l->focus->frame >= l->count) l->focus->frame = 0;
  l->looker = (struct emu_looker){
      .wave = q->wave, .view = q->view, .lane = l->focus->lane, .frame = &l->frames[l->focus->frame]};
  l->looker.dwarf = emu_frames_names(&q->view, &l->looker.linked);
}

static bool look_at_variables(const struct emu_question *q, struct look *l) {
  look(q, l);
  if (l->looker.frame->function != EMU_NO_ENTRY) return true;
  emu_text_add(q->out, "%s\n",
               l->looker.dwarf ? "No function that the debug information knows is here."
                               : "The code object says nothing of variables: compile it with -g.");
  return false;
}

// The next variable or argument of the frame, from its innermost block outwards. *scope and *at begin as the frame's
// scope and 0.
static uint32_t next(const struct look *l, unsigned tag, uint32_t *scope, uint32_t *at) {
  const struct emu_dwarf *dwarf = l->looker.dwarf;
  while (*scope != EMU_NO_ENTRY) {
    const struct emu_entry *e = emu_dwarf_entry(dwarf, *scope);
    if (!*at) *at = *scope + 1;
    while (*at < e->end) {
      uint32_t here = *at;
      *at = emu_dwarf_entry(dwarf, here)->end;
      if (emu_dwarf_entry(dwarf, here)->tag == tag && emu_dwarf_name(dwarf, here)) return here;
    }
    *scope = *scope == l->looker.frame->function ? EMU_NO_ENTRY : e->parent;
    *at = 0;
  }
  return EMU_NO_ENTRY;
}

static void list(const struct emu_question *q, unsigned tag, const char *none) {
  struct look l;
  struct emu_value value;
  if (!look_at_variables(q, &l)) return;
  uint32_t scope = l.looker.frame->scope, at = 0, found;
  bool any = false;
  while ((found = next(&l, tag, &scope, &at)) != EMU_NO_ENTRY) {
    emu_text_add(q->out, "%s = ", emu_dwarf_name(l.looker.dwarf, found));
    emu_value_of(&l.looker, found, &value);
    emu_value_print(&l.looker, &value, false, q->out);
    emu_text_add(q->out, "\n");
    any = true;
  }
  if (!any) emu_text_add(q->out, "%s\n", none);
}

void emu_ask_locals(const struct emu_question *q) { list(q, EMU_TAG_VARIABLE, "No locals."); }
void emu_ask_args(const struct emu_question *q) { list(q, EMU_TAG_PARAMETER, "No arguments."); }

void emu_ask_info(const struct emu_question *q) {
  if (strcmp(q->words[0], "locals") == 0) {
    emu_ask_locals(q);
  } else if (strcmp(q->words[0], "args") == 0) {
    emu_ask_args(q);
  } else {
    emu_text_add(q->out, "info locals or info args\n");
  }
}

void emu_ask_print(const struct emu_question *q) {
  struct look l;
  struct emu_value value;
  if (!look_at_variables(q, &l)) return;
  const char *why = q->rest[0] ? emu_value_parse(&l.looker, q->rest, &value) : "print EXPRESSION";
  if (why) {
    emu_text_add(q->out, "%.*s: %s.\n", (int)strcspn(q->rest, "\r\n"), q->rest, why);
    return;
  }
  emu_text_add(q->out, "%.*s = ", (int)strcspn(q->rest, "\r\n"), q->rest);
  emu_value_print(&l.looker, &value, true, q->out);
  emu_text_add(q->out, "\n");
}

// ---- lane by lane

static bool is_on(const struct look *l, unsigned lane) {
  const uint32_t *s = l->looker.frame->s;
  return s[lane < 32 ? EMU_EXEC_LO : EMU_EXEC_HI] >> lane % 32 & 1;
}

static void table_of_one(const struct emu_question *q, struct look *l) {
  for (unsigned lane = 0; lane < q->view.lanes; lane++) {
    struct emu_value value;
    l->looker.lane = lane;
    const char *why = emu_value_parse(&l->looker, q->rest, &value);
    emu_text_add(q->out, "%2u %s ", lane, is_on(l, lane) ? "on " : "off");
    if (why) {
      emu_text_add(q->out, "<%s>", why);
    } else {
      emu_value_print(&l->looker, &value, false, q->out);
    }
    emu_text_add(q->out, "\n");
  }
}

static void table_of_all(const struct emu_question *q, struct look *l) {
  static const unsigned tags[] = {EMU_TAG_PARAMETER, EMU_TAG_VARIABLE};
  uint32_t columns[COLUMNS_MOST];
  char cells[64][CELL];
  unsigned count = 0, left_out = 0;
  for (int i = 0; i < 2; i++) {
    uint32_t scope = l->looker.frame->scope, at = 0, found;
    while ((found = next(l, tags[i], &scope, &at)) != EMU_NO_ENTRY) {
      if (count < COLUMNS_MOST) {
        columns[count++] = found;
      } else {
        left_out++;
      }
    }
  }
  char rows[64][(CELL + 2) * COLUMNS_MOST + 1], head[(CELL + 2) * COLUMNS_MOST + 1] = "";
  for (unsigned lane = 0; lane < q->view.lanes; lane++) rows[lane][0] = '\0';
  for (unsigned c = 0; c < count; c++) {
    const char *name = emu_dwarf_name(l->looker.dwarf, columns[c]);
    int width = (int)strnlen(name, CELL - 1);
    for (unsigned lane = 0; lane < q->view.lanes; lane++) {
      struct emu_text text = {cells[lane], 0, CELL};
      struct emu_value value;
      cells[lane][0] = '\0';
      l->looker.lane = lane;
      emu_value_of(&l->looker, columns[c], &value);
      emu_value_print(&l->looker, &value, false, &text);
      if ((int)text.used > width) width = (int)text.used;
    }
    struct emu_text line = {head, strlen(head), sizeof head};
    emu_text_add(&line, "  %*.*s", width, CELL - 1, name);
    for (unsigned lane = 0; lane < q->view.lanes; lane++) {
      struct emu_text row = {rows[lane], strlen(rows[lane]), sizeof rows[lane]};
      emu_text_add(&row, "  %*s", width, cells[lane]);
    }
  }
  emu_text_add(q->out, "lane  %s\n", head);
  for (unsigned lane = 0; lane < q->view.lanes; lane++)
    emu_text_add(q->out, "%2u %s%s\n", lane, is_on(l, lane) ? "on " : "off", rows[lane]);
  if (left_out) emu_text_add(q->out, "%u more variables have no room in the table; table NAME shows one.\n", left_out);
}

void emu_ask_table(const struct emu_question *q) {
  struct look l;
  if (!look_at_variables(q, &l)) return;
  if (q->rest[0]) {
    table_of_one(q, &l);
  } else {
    table_of_all(q, &l);
  }
}

// ---- frames

static void add_frame(const struct emu_question *q, struct look *l, unsigned number) {
  const struct emu_frame *f = &l->frames[number];
  const char *name = f->function != EMU_NO_ENTRY ? emu_dwarf_name(l->looker.dwarf, f->function) : NULL;
  char source[500];
  bool called = number && f->inlined == EMU_NO_ENTRY;
  emu_text_add(q->out, "#%-2u ", number);
  if (called || !name) emu_text_add(q->out, "0x%" PRIx64 " in ", f->pc);
  emu_text_add(q->out, "%s (", name ? name : number + 1 == l->count ? q->view.dispatch->name : "??");
  struct look at = *l;
  at.looker.frame = f;
  uint32_t scope = f->function, from = 0, found;
  for (bool first = true; name && (found = next(&at, EMU_TAG_PARAMETER, &scope, &from)) != EMU_NO_ENTRY;
       first = false) {
    struct emu_value value;
    emu_text_add(q->out, "%s%s=", first ? "" : ", ", emu_dwarf_name(l->looker.dwarf, found));
    emu_value_of(&at.looker, found, &value);
    const struct emu_entry *type = emu_dwarf_entry(l->looker.dwarf, emu_type_plain(l->looker.dwarf, value.type));
    bool wide = type && (type->tag == EMU_TAG_STRUCTURE || type->tag == EMU_TAG_CLASS || type->tag == EMU_TAG_UNION);
    if (wide && !value.why) {
      emu_text_add(q->out, "...");
    } else {
      emu_value_print(&at.looker, &value, false, q->out);
    }
  }
  emu_text_add(q->out, ")");
  if (emu_frame_source(&q->view, f, source, sizeof source)) emu_text_add(q->out, " at %s", source);
  emu_text_add(q->out, "\n");
}

void emu_ask_backtrace(const struct emu_question *q) {
  struct look l;
  look(q, &l);
  for (unsigned i = 0; i < l.count; i++) add_frame(q, &l, i);
}

static void choose_frame(const struct emu_question *q, struct look *l, uint64_t number, const char *otherwise) {
  if (number >= l->count) {
    emu_text_add(q->out, "%s\n", otherwise);
    return;
  }
  l->focus->frame = (unsigned)number;
  add_frame(q, l, l->focus->frame);
}

void emu_ask_frame(const struct emu_question *q) {
  struct look l;
  uint64_t number;
  look(q, &l);
  if (!emu_ask_number(q->words[0], l.focus->frame, &number)) number = UINT64_MAX;
  choose_frame(q, &l, number, "There is no such frame; backtrace shows which there are.");
}

void emu_ask_up(const struct emu_question *q) {
  struct look l;
  look(q, &l);
  choose_frame(q, &l, (uint64_t)l.focus->frame + 1, "This is the kernel: nothing of the program has called it.");
}

void emu_ask_down(const struct emu_question *q) {
  struct look l;
  look(q, &l);
  choose_frame(q, &l, (uint64_t)l.focus->frame - 1, "This is where the wave stands: it has called nothing.");
}

void emu_ask_lane(const struct emu_question *q) {
  struct look l;
  uint64_t lane;
  look(q, &l);
  if (!emu_ask_number(q->words[0], l.focus->lane, &lane) || lane >= q->view.lanes) {
    emu_text_add(q->out, "lane 0 to lane %u\n", q->view.lanes - 1);
    return;
  }
  l.focus->lane = (unsigned)lane;
  emu_text_add(q->out, "Lane %u, which is %s.\n", l.focus->lane, is_on(&l, l.focus->lane) ? "on" : "off");
}

// ---- watchpoints

static void watch(const struct emu_question *q, enum emu_watch_kind kind) {
  struct look l;
  struct emu_value value;
  uint64_t address, bytes;
  if (!look_at_variables(q, &l)) return;
  const char *why = q->rest[0] ? emu_value_parse(&l.looker, q->rest, &value) : "what to watch is missing";
  if (!why && !emu_value_address(&l.looker, &value, &address)) why = "it does not lie in memory";
  if (why) {
    emu_text_add(q->out, "%.*s: %s.\n", (int)strcspn(q->rest, "\r\n"), q->rest, why);
    return;
  }
  bytes = emu_value_bytes(&l.looker, &value);
  struct emu_watchpoint wanted = {.kind = kind, .address = address, .lane = -1};
  wanted.bytes = bytes <= EMU_WATCHED_BYTES_MOST ? (unsigned)bytes : 0;
  // scratch is the lane's own, and others will have it for other things
  if (address >> 32 == emu_scratch_window() >> 32) {
    wanted.tag = q->view.tag;
    wanted.lane = (int)l.looker.lane;
  }
  snprintf(wanted.name, sizeof wanted.name, "%.*s", (int)strcspn(q->rest, "\r\n"), q->rest);
  unsigned number = emu_watchpoints_add(emu_session_watchpoints(q->session), &wanted);
  if (number) {
    emu_text_add(q->out, "Watchpoint %u: %s, %u bytes at 0x%" PRIx64 "\n", number, wanted.name, wanted.bytes, address);
  } else {
    emu_text_add(q->out, "%d watchpoints of up to %d bytes are the most; %s has %" PRIu64 ".\n", EMU_WATCHPOINTS_MOST,
                 EMU_WATCHED_BYTES_MOST, wanted.name, bytes);
  }
}

void emu_ask_watch(const struct emu_question *q) { watch(q, EMU_WATCH_WRITE); }
void emu_ask_rwatch(const struct emu_question *q) { watch(q, EMU_WATCH_READ); }
void emu_ask_awatch(const struct emu_question *q) { watch(q, EMU_WATCH_ACCESS); }

void emu_ask_unwatch(const struct emu_question *q) {
  struct emu_watchpoints *w = emu_session_watchpoints(q->session);
  uint64_t number;
  bool all = !q->words[0][0];
  while (all && emu_watchpoints_count(w)) (void)emu_watchpoints_remove(w, emu_watchpoints_at(w, 0)->number);
  if (!all &&
      (!emu_ask_number(q->words[0], 0, &number) || number > UINT32_MAX || !emu_watchpoints_remove(w, (unsigned)number)))
    emu_text_add(q->out, "There is no watchpoint %s.\n", q->words[0]);
}
