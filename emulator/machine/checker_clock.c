#include "machine/checker_clock.h"

#include <stdlib.h>
#include <string.h>

struct emu_clock *emu__clock_create(uint32_t count) {
  struct emu_clock *clock = malloc(sizeof(*clock) + count * sizeof(clock->entry[0]));
  if (!clock) return NULL;
  clock->references = 1;
  clock->count = count;
  return clock;
}

struct emu_clock *emu__clock_keep(struct emu_clock *clock) {
  if (clock) __atomic_fetch_add(&clock->references, 1, __ATOMIC_RELAXED);
  return clock;
}

void emu__clock_drop(struct emu_clock *clock) {
  if (clock && __atomic_fetch_sub(&clock->references, 1, __ATOMIC_ACQ_REL) == 1) free(clock);
}

const struct emu_clock_entry *emu__clock_find(const struct emu_clock *clock, uint32_t who) {
  if (!clock) return NULL;
  uint32_t low = 0, high = clock->count;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (clock->entry[middle].who < who) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < clock->count && clock->entry[low].who == who ? &clock->entry[low] : NULL;
}

static bool covers(const struct emu_clock_entry *a, const struct emu_clock_entry *b, bool far_away) {
  return a->far >= b->far && (far_away || a->near >= b->near) && a->loose >= b->loose;
}

bool emu__clock_has(const struct emu_clock *clock, const struct emu_clock *of, bool far_away) {
  if (!of || clock == of) return true;
  if (!clock) return false;
  uint32_t i = 0;
  for (uint32_t k = 0; k < of->count; k++) {
    while (i < clock->count && clock->entry[i].who < of->entry[k].who) i++;
    if (i == clock->count || clock->entry[i].who != of->entry[k].who) return false;
    if (!covers(&clock->entry[i], &of->entry[k], far_away)) return false;
  }
  return true;
}

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

bool emu__clock_join(struct emu_clock **to, struct emu_clock *from, bool far_away) {
  struct emu_clock *old = *to;
  if (emu__clock_has(old, from, far_away)) return true;
  if (!far_away && emu__clock_has(from, old, false)) {
    *to = emu__clock_keep(from);
    emu__clock_drop(old);
    return true;
  }
  uint32_t i = 0, k = 0, n = 0, count = old ? old->count : 0;
  struct emu_clock *sum = emu__clock_create(count + from->count);
  if (!sum) return false;
  while (i < count || k < from->count) {
    struct emu_clock_entry *e = &sum->entry[n++];
    bool ours = i < count && (k == from->count || old->entry[i].who <= from->entry[k].who);
    bool theirs = k < from->count && (i == count || from->entry[k].who <= old->entry[i].who);
    *e = (struct emu_clock_entry){.who = ours ? old->entry[i].who : from->entry[k].who};
    if (ours) *e = old->entry[i++];
    if (theirs) {
      const struct emu_clock_entry *b = &from->entry[k++];
      e->far = later(e->far, b->far);
      e->near = later(e->near, far_away ? 0 : b->near);
      e->loose = later(e->loose, b->loose);
    }
  }
  sum->count = n;
  *to = sum;
  emu__clock_drop(old);
  return n <= EMU_CLOCK_MOST;
}
