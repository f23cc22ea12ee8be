// Watchpoints: bytes whose changes, or reads, stop a wave behind its instruction.
#include "debug/watchpoints.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LANES_MOST = 64 };

struct watched {
  struct emu_watchpoint point;
  bool there[LANES_MOST];  // whether the bytes could be read before the instruction; one alone where lanes share them
  uint8_t before[LANES_MOST][EMU_WATCHED_BYTES_MOST];
  int reached;  // the lane of the instruction's last access that counts, -1: none, -2: the wave's own
};

struct emu_watchpoints {
  struct watched all[EMU_WATCHPOINTS_MOST];
  unsigned count, numbers;
};

struct emu_watchpoints *emu_watchpoints_create(void) { return calloc(1, sizeof(struct emu_watchpoints)); }
void emu_watchpoints_release(struct emu_watchpoints *w) { free(w); }
unsigned emu_watchpoints_count(const struct emu_watchpoints *w) { return w->count; }
const struct emu_watchpoint *emu_watchpoints_at(const struct emu_watchpoints *w, unsigned index) {
  return &w->all[index].point;
}

unsigned emu_watchpoints_add(struct emu_watchpoints *w, const struct emu_watchpoint *wanted) {
  if (w->count == EMU_WATCHPOINTS_MOST || !wanted->bytes || wanted->bytes > EMU_WATCHED_BYTES_MOST) return 0;
  struct watched *new = &w->all[w->count++];
  *new = (struct watched){.point = *wanted, .reached = -1};
  new->point.number = ++w->numbers;
  return new->point.number;
}

bool emu_watchpoints_remove(struct emu_watchpoints *w, unsigned number) {
  for (unsigned i = 0; i < w->count; i++) {
    if (w->all[i].point.number != number) continue;
    w->all[i] = w->all[--w->count];
    return true;
  }
  return false;
}

unsigned emu_watchpoints_find(const struct emu_watchpoints *w, enum emu_watch_kind kind, uint64_t address,
                              unsigned bytes) {
  for (unsigned i = 0; i < w->count; i++) {
    const struct emu_watchpoint *p = &w->all[i].point;
    if (p->kind == kind && p->address == address && p->bytes == bytes && !p->name[0]) return p->number;
  }
  return 0;
}

// ---- around an instruction

static bool in_scratch(uint64_t address) { return address >> 32 == emu_scratch_window() >> 32; }

static bool concerns(const struct emu_watchpoint *p, const struct emu_wave_view *view) {
  return !p->tag || p->tag == view->tag;
}

// Each lane has bytes of its own in scratch; elsewhere one look is enough.
static unsigned lanes_of(const struct emu_watchpoint *p, const struct emu_wave_view *view, unsigned *first) {
  bool own = in_scratch(p->address);
  *first = own && p->lane >= 0 ? (unsigned)p->lane : 0;
  return own && p->lane < 0 ? view->lanes : *first + 1;
}

void emu_watchpoints_before(struct emu_watchpoints *w, const struct emu_wave *wave) {
  struct emu_wave_view view;
  emu_wave_look(wave, &view);
  for (unsigned i = 0; i < w->count; i++) {
    struct watched *x = &w->all[i];
    unsigned first, end = lanes_of(&x->point, &view, &first);
    x->reached = -1;
    for (unsigned l = first; l < end && concerns(&x->point, &view); l++)
      x->there[l] = emu_wave_read(wave, l, x->point.address, x->before[l], x->point.bytes) == x->point.bytes;
  }
}

// The flat address of a host's address of an access.
static uint64_t flat(const struct emu_wave_view *view, const struct emu_touched *t, uint64_t at) {
  if (t->space == EMU_TOUCHED_LDS) return emu_lds_window() + (at - (uint64_t)(uintptr_t)view->lds);
  if (t->space == EMU_TOUCHED_GLOBAL) return at;
  uint64_t offset = at - (uint64_t)(uintptr_t)view->scratch;
  return emu_scratch_window() + offset / (4 * view->lanes) * 4 + offset % 4;
}

static bool reaches(const struct emu_watchpoint *p, const struct emu_wave_view *view, const struct emu_touched *t,
                    unsigned lane) {
  unsigned step = t->bytes < 4 || t->stride == 4 ? t->bytes : 4;
  for (unsigned done = 0; done < t->bytes; done += step) {
    uint64_t at = flat(view, t, t->at[lane] + (uint64_t)(done / 4) * t->stride);
    if (at < p->address + p->bytes && p->address < at + step) return true;
  }
  return false;
}

void emu_watchpoints_touched(struct emu_watchpoints *w, const struct emu_wave *wave, const struct emu_touched *t) {
  struct emu_wave_view view;
  emu_wave_look(wave, &view);
  for (unsigned i = 0; i < w->count; i++) {
    struct watched *x = &w->all[i];
    bool counts = (t->reads && x->point.kind != EMU_WATCH_WRITE) || (t->writes && x->point.kind != EMU_WATCH_READ);
    if (!counts || !concerns(&x->point, &view)) continue;
    for (uint64_t rest = t->mask & ~t->outside; rest; rest &= rest - 1) {
      unsigned lane = (unsigned)__builtin_ctzll(rest);
      if (x->point.lane >= 0 && (unsigned)x->point.lane != lane && in_scratch(x->point.address)) continue;
      if (reaches(&x->point, &view, t, lane)) x->reached = t->scalar ? -2 : (int)lane;
    }
  }
}

static void add_bytes(const uint8_t *bytes, unsigned count, struct emu_text *out) {
  if (count <= 8) {
    uint64_t value = 0;
    memcpy(&value, bytes, count);
    emu_text_add(out, "0x%" PRIx64, value);
    if (count == 4) emu_text_add(out, " (%" PRId32 ")", (int32_t)value);
    return;
  }
  for (unsigned i = 0; i < count; i++) emu_text_add(out, "%s%02x", i ? " " : "", bytes[i]);
}

// The lane whose bytes have changed, with what is there now; -1: none.
static int changed_lane(struct watched *x, const struct emu_wave *wave, const struct emu_wave_view *view,
                        uint8_t now[EMU_WATCHED_BYTES_MOST]) {
  unsigned first, end = lanes_of(&x->point, view, &first);
  for (unsigned l = first; l < end; l++) {
    if (!x->there[l] || emu_wave_read(wave, l, x->point.address, now, x->point.bytes) != x->point.bytes) continue;
    if (memcmp(now, x->before[l], x->point.bytes) != 0) return (int)l;
  }
  return -1;
}

static void tell(const struct watched *x, int changed, const uint8_t *now, struct emu_text *text) {
  const struct emu_watchpoint *p = &x->point;
  emu_text_add(text, "watchpoint %u on ", p->number);
  if (p->name[0]) {
    emu_text_add(text, "%s", p->name);
  } else {
    emu_text_add(text, "0x%" PRIx64, p->address);
  }
  int lane = changed >= 0 && in_scratch(p->address) ? changed : x->reached;
  if (lane >= 0) emu_text_add(text, ", lane %d", lane);
  if (lane == -2) emu_text_add(text, ", the scalar unit");
  if (changed >= 0) {
    emu_text_add(text, ", old value ");
    add_bytes(x->before[changed], p->bytes, text);
    emu_text_add(text, ", new value ");
    add_bytes(now, p->bytes, text);
  } else {
    unsigned l = lane >= 0 && in_scratch(p->address) ? (unsigned)lane : 0;
    emu_text_add(text, p->kind == EMU_WATCH_READ ? ", read: " : ", read or written anew: ");
    add_bytes(x->before[l], p->bytes, text);
  }
}

const struct emu_watchpoint *emu_watchpoints_after(struct emu_watchpoints *w, const struct emu_wave *wave,
                                                   struct emu_text *text) {
  struct emu_wave_view view;
  emu_wave_look(wave, &view);
  for (unsigned i = 0; i < w->count; i++) {
    struct watched *x = &w->all[i];
    uint8_t now[EMU_WATCHED_BYTES_MOST];
    if (!concerns(&x->point, &view)) continue;
    int changed = x->point.kind == EMU_WATCH_READ ? -1 : changed_lane(x, wave, &view, now);
    bool met = changed >= 0 || (x->point.kind != EMU_WATCH_WRITE && x->reached != -1);
    if (!met) continue;
    tell(x, changed, now, text);
    return &x->point;
  }
  return NULL;
}
