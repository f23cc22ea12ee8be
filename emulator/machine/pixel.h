// Elements of formatted buffers and of images. Private to emulator/machine.
#ifndef EMULATOR_MACHINE_PIXEL_H
#define EMULATOR_MACHINE_PIXEL_H

#include "isa/isa.h"

// A component as it stands in a register: a float, or an integer of 32 bits.
static inline bool emu__pixel_is_integer(const struct emu_pixel *p) {
  return p->kind == EMU_PIXEL_UINT || p->kind == EMU_PIXEL_SINT;
}
static inline unsigned emu__pixel_bytes(const struct emu_pixel *p) { return p->count * p->bits / 8u; }

uint32_t emu__pixel_load(const struct emu_pixel *p, const uint8_t *element, unsigned component);
void emu__pixel_store(const struct emu_pixel *p, uint8_t *element, unsigned component, uint32_t value);

#endif
