// The barrier among the groups of a grid, by global wave sync: cooperative launches on RDNA 2 and before use it.
#include "machine/schedule.h"

// A barrier's 64-bit word: | how often it has opened, 32 bits | waves that have arrived since, 32 bits |
static const uint64_t opened = UINT64_C(1) << 32;

// The data register holds how many others come. A wave that has to wait executes the instruction again in its next
// slice, until the barrier has opened.
static void barrier(struct emu_wave *w, const struct emu_step *step) {
  uint64_t exec = emu__wave_exec(w);
  if (!exec) return;
  unsigned id = ((w->s[EMU_M0] >> 16 & 63) + (unsigned)step->inst->imm) & 63;
  atomic_uint_fast64_t *word = &w->group->run->gws[id];
  uint32_t all = *emu__vector(w, step->inst->src[0].reg, (unsigned)__builtin_ctzll(exec)) + 1;
  if (!w->waits_for) {
    uint64_t before = atomic_fetch_add(word, 1);
    if ((uint32_t)before + 1 == all) {
      atomic_fetch_add(word, opened - all);
      return;
    }
    w->waits_for = before / opened + 1;
  } else if (atomic_load(word) / opened >= w->waits_for) {
    w->waits_for = 0;
    return;
  }
  w->next = step;
  w->sleeping = 1;
  emu__wave_stop(w);
}

const struct emu_action emu__gws_actions[] = {{.op = EMU_DS_GWS_BARRIER, .klass = EMU_CLASS_BARRIER, .run = barrier},
                                              {0}};
