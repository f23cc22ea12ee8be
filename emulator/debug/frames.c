// Calls of a wave, and the functions in which it stands.
#include "debug/frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS_MOST = 64 };

struct call {
  uint64_t back;  // where the callee returns to
  uint32_t *s, *v;
};

struct emu_calls {
  struct call calls[CALLS_MOST];
  unsigned count, beyond;  // calls that found no room
};

static void drop(struct emu_calls *c, unsigned count) {
  while (c->count > count) free(c->calls[--c->count].s);
}

void emu_calls_release(struct emu_calls *c) {
  if (!c) return;
  drop(c, 0);
  free(c);
}

static void enter(struct emu_calls *c, const struct emu_wave_view *view, uint64_t back) {
  size_t vectors = (size_t)view->vgprs * view->lanes;
  uint32_t *room = c->count < CALLS_MOST && !c->beyond ? malloc((EMU_SCALAR_COUNT + vectors) * sizeof(uint32_t)) : NULL;
  if (!room) {
    c->beyond++;
    return;
  }
  memcpy(room, view->s, EMU_SCALAR_COUNT * sizeof *room);
  memcpy(room + EMU_SCALAR_COUNT, view->v, vectors * sizeof *room);
  c->calls[c->count++] = (struct call){back, room, room + EMU_SCALAR_COUNT};
}

static void leave(struct emu_calls *c, uint64_t to) {
  if (c->beyond) {
    c->beyond--;
    return;
  }
  for (unsigned i = c->count; i-- > 0;) {
    if (c->calls[i].back != to) continue;
    drop(c, i);
    return;
  }
}

void emu_calls_follow(struct emu_calls **calls, const struct emu_wave *wave, uint64_t before) {
  struct emu_wave_view view;
  struct emu_inst inst;
  size_t bytes = emu_wave_instruction(wave, before, &inst, NULL);
  bool calls_one = bytes && (inst.op == EMU_S_SWAPPC_B64 || inst.op == EMU_S_CALL_B64);
  bool returns = bytes && inst.op == EMU_S_SETPC_B64 && *calls;
  if (!calls_one && !returns) return;
  emu_wave_look(wave, &view);
  if (!*calls) *calls = calloc(1, sizeof **calls);
  if (!*calls) return;
  if (calls_one) {
    enter(*calls, &view, before + bytes);
  } else {
    leave(*calls, view.pc);
  }
}

const struct emu_dwarf *emu_frames_names(const struct emu_wave_view *view, uint64_t *linked) {
  const struct emu_dispatch *d = view->dispatch;
  *linked = 0;
  return d->names ? d->names(d->source_context, linked) : NULL;
}

// ---- functions that contain an address

static uint32_t function_at(const struct emu_dwarf *dwarf, uint64_t address) {
  for (uint32_t i = 0; i < emu_dwarf_count(dwarf); i++) {
    const struct emu_entry *e = emu_dwarf_entry(dwarf, i);
    if (e->tag == EMU_TAG_FUNCTION && emu_dwarf_covers(dwarf, i, address)) return i;
  }
  return EMU_NO_ENTRY;
}

// The block or inlined function directly in `scope` that covers the address.
static uint32_t inner_at(const struct emu_dwarf *dwarf, uint32_t scope, uint64_t address) {
  const struct emu_entry *e = emu_dwarf_entry(dwarf, scope);
  for (uint32_t i = scope + 1; i < e->end;) {
    const struct emu_entry *child = emu_dwarf_entry(dwarf, i);
    if ((child->tag == EMU_TAG_BLOCK || child->tag == EMU_TAG_INLINED) && emu_dwarf_covers(dwarf, i, address)) return i;
    i = child->end;
  }
  return EMU_NO_ENTRY;
}

// Adds the frames of one function with those inlined into it, innermost first.
static unsigned add_function(const struct emu_dwarf *dwarf, const struct emu_frame *plain, struct emu_frame *out,
                             unsigned room) {
  struct emu_frame found[EMU_FRAMES_MOST];
  unsigned count = 0;
  uint32_t scope = dwarf ? function_at(dwarf, plain->look) : EMU_NO_ENTRY, outermost = scope;
  out[0] = *plain;
  if (scope == EMU_NO_ENTRY) return 1;
  found[count] = *plain;
  found[count].function = found[count].scope = found[count].outermost = scope;
  count++;
  while ((scope = inner_at(dwarf, scope, plain->look)) != EMU_NO_ENTRY) {
    if (emu_dwarf_entry(dwarf, scope)->tag == EMU_TAG_INLINED) {
      if (count == EMU_FRAMES_MOST) break;
      found[count - 1].inlined = scope;
      found[count] = *plain;
      found[count].function = scope;
      found[count].outermost = outermost;
      count++;
    }
    found[count - 1].scope = scope;
  }
  unsigned some = count < room ? count : room;
  for (unsigned i = 0; i < some; i++) out[i] = found[count - 1 - i];
  return some;
}

unsigned emu_frames(const struct emu_wave_view *view, const struct emu_calls *calls,
                    struct emu_frame out[EMU_FRAMES_MOST]) {
  uint64_t linked;
  const struct emu_dwarf *dwarf = emu_frames_names(view, &linked);
  unsigned count = 0, depth = calls ? calls->count : 0;
  for (unsigned i = depth + 1; i-- > 0 && count < EMU_FRAMES_MOST;) {
    // i counts the calls that are open in this one
    const struct call *in = i < depth ? &calls->calls[i] : NULL, *by = i ? &calls->calls[i - 1] : NULL;
    struct emu_frame plain = {.pc = in ? in->back : view->pc,
                              .s = in ? in->s : view->s,
                              .v = in ? in->v : view->v,
                              .entry_s = by ? by->s : NULL,
                              .entry_v = by ? by->v : NULL,
                              .function = EMU_NO_ENTRY,
                              .scope = EMU_NO_ENTRY,
                              .outermost = EMU_NO_ENTRY,
                              .inlined = EMU_NO_ENTRY};
    plain.look = plain.pc - (in != NULL) - view->base + linked;
    count += add_function(dwarf, &plain, out + count, EMU_FRAMES_MOST - count);
  }
  return count;
}

bool emu_frame_source(const struct emu_wave_view *view, const struct emu_frame *frame, char *text, size_t room) {
  const struct emu_dispatch *d = view->dispatch;
  uint64_t linked;
  const struct emu_dwarf *dwarf = emu_frames_names(view, &linked);
  if (frame->inlined == EMU_NO_ENTRY)
    return d->source_line && d->source_line(d->source_context, frame->look - linked, text, room);
  const struct emu_entry *call = emu_dwarf_entry(dwarf, frame->inlined);
  const char *file = emu_dwarf_file(dwarf, frame->inlined, call->call_file);
  if (!file || !call->call_line) return false;
  snprintf(text, room, "%s:%u", file, call->call_line);
  return true;
}
