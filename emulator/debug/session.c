// Where waves stop, and who goes on.
#include "debug/session.h"

#include <stdlib.h>
#include <string.h>

enum { WANTED_MAX = 32, ADDRESSES_MAX = 256, POLL_EVERY = 256, TEXT_MAX = 1000 };

struct wanted {
  char kernel[256];
  unsigned line;  // 0: its first instruction
  bool met;
};

struct under_way {
  struct under_way *next;
  const struct emu_dispatch *dispatch;
  unsigned number;
  bool resolved;
  uint64_t at[ADDRESSES_MAX];  // where its breakpoints by name are, as offsets in the program
  unsigned of[ADDRESSES_MAX];  // whose they are, of those wanted
  unsigned count;
};

enum going { GO_FREE, GO_STEP, GO_DETACHED, GO_KILLED };

struct emu_session {
  struct emu_front front;
  struct emu_seen *waves;
  unsigned wave_count, wave_room, launch_count;
  struct under_way *launches;
  struct wanted wanted[WANTED_MAX];
  unsigned wanted_count;
  uint64_t addresses[ADDRESSES_MAX];
  unsigned address_count;
  enum going going;
  bool begun;  // a wave has stopped, or need not
  uint32_t step_tag;
  uint64_t step_low, step_high;
  bool step_free;  // its first instruction may go, wherever it is
  unsigned told;   // how many waves have stopped where they are, so that a breakpoint there is no news
  unsigned until_poll;
  uint32_t findings;  // before the instruction
  uint64_t before;    // its address
  struct emu_focus focus;
  struct emu_watchpoints *watchpoints;
  const struct emu_watchpoint *met;
};

struct emu_session *emu_session_create(const struct emu_front *front) {
  struct emu_session *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->front = *front;
  s->watchpoints = emu_watchpoints_create();
  if (s->watchpoints) return s;
  free(s);
  return NULL;
}

void emu_session_release(struct emu_session *s) {
  if (!s) return;
  while (s->launches) emu_session_finished(s, s->launches->dispatch);
  for (unsigned i = 0; i < s->wave_count; i++) emu_calls_release(s->waves[i].calls);
  emu_watchpoints_release(s->watchpoints);
  free(s->waves);
  free(s);
}

bool emu_session_watches(const struct emu_session *s) { return s->going != GO_DETACHED; }

// ---- launches and waves

void emu_session_launched(struct emu_session *s, const struct emu_dispatch *dispatch) {
  s->launch_count++;
  struct under_way *launch = calloc(1, sizeof *launch);
  if (!launch) return;  // without it no breakpoint by name is met
  *launch = (struct under_way){.next = s->launches, .dispatch = dispatch, .number = s->launch_count};
  s->launches = launch;
}

void emu_session_finished(struct emu_session *s, const struct emu_dispatch *dispatch) {
  for (struct under_way **at = &s->launches; *at; at = &(*at)->next) {
    if ((*at)->dispatch != dispatch) continue;
    struct under_way *gone = *at;
    *at = gone->next;
    free(gone);
    return;
  }
}

static struct under_way *launch_of(const struct emu_session *s, const struct emu_dispatch *dispatch) {
  struct under_way *launch = s->launches;
  while (launch && launch->dispatch != dispatch) launch = launch->next;
  return launch;
}

void emu_session_begun(struct emu_session *s, struct emu_wave *wave, uint32_t tag) {
  if (s->wave_count == s->wave_room) {
    unsigned room = s->wave_room * 2 + 64;
    struct emu_seen *grown = realloc(s->waves, room * sizeof *grown);
    if (!grown) return;  // it runs, and is not shown
    s->waves = grown;
    s->wave_room = room;
  }
  struct emu_wave_view view;
  emu_wave_look(wave, &view);
  const struct under_way *launch = launch_of(s, view.dispatch);
  s->waves[s->wave_count++] = (struct emu_seen){wave, tag, launch ? launch->number : 0, false, NULL};
}

void emu_session_ended(struct emu_session *s, const struct emu_wave *wave) {
  for (unsigned i = 0; i < s->wave_count; i++) {
    if (s->waves[i].wave != wave) continue;
    s->told -= s->waves[i].told;
    emu_calls_release(s->waves[i].calls);
    memmove(&s->waves[i], &s->waves[i + 1], (s->wave_count - i - 1) * sizeof *s->waves);
    s->wave_count--;
    return;
  }
}

unsigned emu_session_waves(const struct emu_session *s, const struct emu_seen **out) {
  *out = s->waves;
  return s->wave_count;
}

const struct emu_seen *emu_session_find(const struct emu_session *s, uint32_t tag) {
  for (unsigned i = 0; i < s->wave_count; i++)
    if (s->waves[i].tag == tag) return &s->waves[i];
  return NULL;
}

struct emu_watchpoints *emu_session_watchpoints(struct emu_session *s) { return s->watchpoints; }
const struct emu_watchpoint *emu_session_met(const struct emu_session *s) { return s->met; }
struct emu_focus *emu_session_focus(struct emu_session *s) { return &s->focus; }

// ---- breakpoints

bool emu_session_break_at(struct emu_session *s, uint64_t address) {
  if (emu_session_has_break_at(s, address)) return true;
  if (s->address_count == ADDRESSES_MAX) return false;
  s->addresses[s->address_count++] = address;
  return true;
}

bool emu_session_unbreak_at(struct emu_session *s, uint64_t address) {
  for (unsigned i = 0; i < s->address_count; i++) {
    if (s->addresses[i] != address) continue;
    s->addresses[i] = s->addresses[--s->address_count];
    return true;
  }
  return false;
}

bool emu_session_has_break_at(const struct emu_session *s, uint64_t address) {
  for (unsigned i = 0; i < s->address_count; i++)
    if (s->addresses[i] == address) return true;
  return false;
}

static void resolve_later(struct emu_session *s) {
  for (struct under_way *l = s->launches; l; l = l->next) l->resolved = false;
}

bool emu_session_break(struct emu_session *s, const char *where) {
  const char *colon = strrchr(where, ':');
  char *end = NULL;
  unsigned long line = colon && colon[1] >= '0' && colon[1] <= '9' ? strtoul(colon + 1, &end, 10) : 0;
  if (end && *end) return false;
  size_t length = end ? (size_t)(colon - where) : strlen(where);
  if (!length || length >= sizeof s->wanted[0].kernel || s->wanted_count == WANTED_MAX || line > UINT32_MAX)
    return false;
  struct wanted *wanted = &s->wanted[s->wanted_count++];
  *wanted = (struct wanted){.line = (unsigned)line};
  memcpy(wanted->kernel, where, length);
  resolve_later(s);
  return true;
}

void emu_session_forget_breaks(struct emu_session *s) {
  s->wanted_count = 0;
  resolve_later(s);
}

// The line of "file:line", and how long the file's name is; 0: the offset has none.
static unsigned line_at(const struct emu_dispatch *d, uint64_t offset, char text[TEXT_MAX], size_t *file) {
  if (!d->source_line || !d->source_line(d->source_context, offset, text, TEXT_MAX)) return 0;
  const char *colon = strrchr(text, ':');
  *file = colon ? (size_t)(colon - text) : 0;
  return colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;
}

static void add_offset(struct under_way *launch, uint64_t offset, unsigned wanted) {
  if (launch->count == ADDRESSES_MAX) return;
  launch->of[launch->count] = wanted;
  launch->at[launch->count++] = offset;
}

// Where code of the line begins; returns the least line behind it that has code, UINT_MAX: none.
static unsigned find_line(struct under_way *launch, unsigned line, unsigned wanted) {
  const struct emu_dispatch *d = launch->dispatch;
  char first[TEXT_MAX], text[TEXT_MAX];
  size_t first_length, length;
  unsigned before = 0, behind = UINT32_MAX;
  if (!line_at(d, d->entry, first, &first_length)) return behind;
  for (uint64_t at = d->entry; at < d->entry + d->code_bytes; at += 4) {
    unsigned here = line_at(d, at, text, &length);
    if (length != first_length || memcmp(text, first, length) != 0) here = 0;
    if (here == line && here != before) add_offset(launch, at, wanted);
    if (here > line && here < behind) behind = here;
    before = here;
  }
  return behind;
}

// Where a function of that name begins, which the kernel may call.
static void find_function(struct under_way *launch, const char *name, unsigned wanted) {
  const struct emu_dispatch *d = launch->dispatch;
  uint64_t linked;
  const struct emu_dwarf *dwarf = d->names ? d->names(d->source_context, &linked) : NULL;
  for (uint32_t i = 0; dwarf && i < emu_dwarf_count(dwarf); i++) {
    const struct emu_entry *e = emu_dwarf_entry(dwarf, i);
    const char *its = e->tag == EMU_TAG_FUNCTION && e->has_low && e->high > e->low ? emu_dwarf_name(dwarf, i) : NULL;
    if (its && strcmp(its, name) == 0) add_offset(launch, e->low - linked, wanted);
  }
}

static void resolve(struct emu_session *s, struct under_way *launch) {
  launch->count = 0;
  launch->resolved = true;
  for (unsigned i = 0; i < s->wanted_count; i++) {
    const struct wanted *wanted = &s->wanted[i];
    if (!launch->dispatch->name || strcmp(wanted->kernel, launch->dispatch->name) != 0) {
      if (!wanted->line) find_function(launch, wanted->kernel, i);
      continue;
    }
    if (!wanted->line) {
      add_offset(launch, launch->dispatch->entry, i);
      continue;
    }
    unsigned had = launch->count, behind = find_line(launch, wanted->line, i);
    if (launch->count == had && behind != UINT32_MAX) (void)find_line(launch, behind, i);
  }
}

static bool has_break(struct emu_session *s, const struct emu_wave_view *view) {
  if (emu_session_has_break_at(s, view->pc)) return true;
  struct under_way *launch = s->wanted_count ? launch_of(s, view->dispatch) : NULL;
  if (!launch) return false;
  if (!launch->resolved) resolve(s, launch);
  bool found = false;
  for (unsigned i = 0; i < launch->count; i++) {
    if (view->base + launch->at[i] != view->pc) continue;
    s->wanted[launch->of[i]].met = true;
    found = true;
  }
  return found;
}

void emu_session_say_unmet(const struct emu_session *s, void (*say)(const char *format, ...)) {
  if (s->going == GO_DETACHED || s->going == GO_KILLED) return;
  for (unsigned i = 0; i < s->wanted_count; i++) {
    const struct wanted *w = &s->wanted[i];
    if (w->met) continue;
    if (w->line)
      say("no wave came to the breakpoint %s:%u", w->kernel, w->line);
    else
      say("no wave came to the breakpoint %s", w->kernel);
  }
}

// ---- going on

void emu_session_continue(struct emu_session *s) { s->going = GO_FREE; }
void emu_session_detach(struct emu_session *s) { s->going = GO_DETACHED; }
void emu_session_kill(struct emu_session *s) { s->going = GO_KILLED; }
void emu_session_step(struct emu_session *s, uint32_t tag, uint64_t low, uint64_t high) {
  s->going = GO_STEP;
  s->step_tag = tag;
  s->step_low = low;
  s->step_high = high;
  s->step_free = true;
}

static struct emu_seen *seen_of(const struct emu_session *s, const struct emu_wave *wave) {
  for (unsigned i = 0; i < s->wave_count; i++)
    if (s->waves[i].wave == wave) return &s->waves[i];
  return NULL;
}

static void stop(struct emu_session *s, struct emu_wave *wave, enum emu_stop_reason why, const char *text) {
  s->begun = true;
  s->focus = (struct emu_focus){0};
  s->front.stopped(s->front.context, s, wave, why, text);
  struct emu_seen *seen = seen_of(s, wave);
  if (!seen || seen->told) return;
  seen->told = true;
  s->told++;
}

// The wave executes the instruction at which it has stopped.
static void moves_on(struct emu_session *s, const struct emu_wave *wave) {
  struct emu_seen *seen = s->told ? seen_of(s, wave) : NULL;
  if (!seen || !seen->told) return;
  seen->told = false;
  s->told--;
}

static bool is_polled(struct emu_session *s) {
  if (!s->front.interrupted || s->until_poll--) return false;
  s->until_poll = POLL_EVERY;
  return s->front.interrupted(s->front.context);
}

// Whether the wave stops here, and why.
static bool stops(struct emu_session *s, const struct emu_wave *wave, const struct emu_wave_view *view,
                  enum emu_stop_reason *why) {
  const struct emu_seen *seen = s->told ? seen_of(s, wave) : NULL;
  *why = EMU_STOP_ENTRY;
  if (!s->begun && s->front.at_entry) return true;
  s->begun = true;
  *why = EMU_STOP_INTERRUPT;
  if (is_polled(s)) return true;
  *why = EMU_STOP_BREAK;
  if (!(seen && seen->told) && has_break(s, view)) return true;
  *why = EMU_STOP_STEP;
  if (s->going != GO_STEP) return false;
  if (!emu_session_find(s, s->step_tag)) return true;  // it has ended: where the next one is
  if (s->step_tag != view->tag) return false;
  bool inside = view->pc >= s->step_low && view->pc < s->step_high;
  if (!s->step_free && !inside) return true;
  s->step_free = false;
  return false;
}

// Whether another wave is stepped and can go.
static bool is_passed(const struct emu_session *s, const struct emu_wave_view *view) {
  if (s->going != GO_STEP || s->step_tag == view->tag) return false;
  const struct emu_seen *stepped = emu_session_find(s, s->step_tag);
  struct emu_wave_view other;
  if (!stepped) return false;
  emu_wave_look(stepped->wave, &other);
  return other.doing == EMU_WAVE_RUNS;
}

enum emu_turn emu_session_before(struct emu_session *s, struct emu_wave *wave) {
  struct emu_wave_view view;
  enum emu_stop_reason why;
  for (;;) {
    if (s->going == GO_DETACHED) return EMU_TURN_GO;
    if (s->going == GO_KILLED) return EMU_TURN_KILL;
    emu_wave_look(wave, &view);
    if (is_passed(s, &view)) return EMU_TURN_PASS;
    if (!stops(s, wave, &view, &why)) break;
    stop(s, wave, why, "");
  }
  moves_on(s, wave);
  s->before = view.pc;
  if (emu_watchpoints_count(s->watchpoints)) emu_watchpoints_before(s->watchpoints, wave);
  s->findings = emu_wave_findings(wave);
  return EMU_TURN_GO;
}

// Calls and returns go further than an instruction is long.
static void follow(struct emu_session *s, const struct emu_wave *wave) {
  enum { INSTRUCTION_BYTES_MOST = 20 };
  struct emu_wave_view view;
  emu_wave_look(wave, &view);
  if (view.pc - s->before <= INSTRUCTION_BYTES_MOST) return;
  struct emu_seen *seen = seen_of(s, wave);
  if (seen) emu_calls_follow(&seen->calls, wave, s->before);
}

void emu_session_touched(struct emu_session *s, struct emu_wave *wave, const struct emu_touched *touch) {
  if (emu_watchpoints_count(s->watchpoints)) emu_watchpoints_touched(s->watchpoints, wave, touch);
}

static void stop_if_watched(struct emu_session *s, struct emu_wave *wave) {
  char room[400] = "";
  struct emu_text text = {room, 0, sizeof room};
  if (!emu_watchpoints_count(s->watchpoints)) return;
  s->met = emu_watchpoints_after(s->watchpoints, wave, &text);
  if (s->met) stop(s, wave, EMU_STOP_WATCH, room);
  s->met = NULL;
}

void emu_session_after(struct emu_session *s, struct emu_wave *wave) {
  if (s->going == GO_DETACHED || s->going == GO_KILLED) return;
  follow(s, wave);
  const struct emu_report *failure = emu_wave_failure(wave);
  if (failure) {
    stop(s, wave, failure->status == EMU_FAULT ? EMU_STOP_FAULT : EMU_STOP_TRAP, failure->text);
    return;
  }
  stop_if_watched(s, wave);
  uint32_t findings = emu_wave_findings(wave);
  if (findings == s->findings || s->going == GO_DETACHED || s->going == GO_KILLED) return;
  struct emu_wave_view view;
  emu_wave_look(wave, &view);
  bool kept = findings <= view.dispatch->report_room;
  stop(s, wave, EMU_STOP_FINDING, kept ? view.dispatch->reports[findings - 1].text : "The checker has a finding.");
}
