// place, and go on with gfx1030, counters, speed and semantics tests.
#include "machine/checker.h"

bool emu__check_before(struct emu_wave *wave, const struct emu_step *step) {
  (void)wave, (void)step;
  return true;
}
void emu__check_after(struct emu_wave *wave, const struct emu_step *step) { (void)wave, (void)step; }
void emu__check_barrier_arrival(struct emu_wave *wave, const struct emu_step *step) { (void)wave, (void)step; }
void emu__check_barrier(struct emu_group *group) { (void)group; }
void emu__check_end(struct emu_wave *wave, const struct emu_step *step) { (void)wave, (void)step; }
bool emu__check_group_create(struct emu_group *group) {
  (void)group;
  return true;
}
void emu__check_group_begin(struct emu_group *group) { (void)group; }
void emu__check_group_release(struct emu_group *group) { (void)group; }
bool emu__check_load(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *places,
                     const struct emu_shape *shape, unsigned reg) {
  (void)wave, (void)step, (void)places, (void)shape, (void)reg;
  return true;
}
bool emu__check_store(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *places,
                      const struct emu_shape *shape, unsigned reg) {
  (void)wave, (void)step, (void)places, (void)shape, (void)reg;
  return true;
}
bool emu__check_atomic(struct emu_wave *wave, const struct emu_step *step, const struct emu_places *places,
                       unsigned bytes, unsigned data, int compare, int dst) {
  (void)wave, (void)step, (void)places, (void)bytes, (void)data, (void)compare, (void)dst;
  return true;
}
