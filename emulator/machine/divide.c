// The three instructions around a division, as hardware_division.h has them.
#include "machine/hardware_division.h"
#include "machine/valu.h"

static unsigned single_mode(const struct emu_half_wave *x) { return (x->mode & 3) | (x->mode >> 2 & 12); }
static unsigned wide_mode(const struct emu_half_wave *x) { return (x->mode >> 2 & 3) | (x->mode >> 4 & 12); }

static void scale32(struct emu_half_wave *x) {
  uint32_t mask = 0;
  EMU_EACH {
    bool after;
    uint64_t r = emu__hw_div_scale(&emu__hw_single_format, x->s[0][l], x->s[1][l], x->s[2][l], single_mode(x), &after);
    mask |= (uint32_t)after << l;
    x->d[l] = (uint32_t)r;
  }
  x->mask_out = mask;
}
static void scale64(struct emu_half_wave *x) {
  uint32_t mask = 0;
  EMU_EACH {
    bool after;
    uint64_t v = emu__pair(x->s[0], l), d = emu__pair(x->s[1], l), n = emu__pair(x->s[2], l);
    emu__set_pair(x->d, l, emu__hw_div_scale(&emu__hw_double_format, v, d, n, wide_mode(x), &after));
    mask |= (uint32_t)after << l;
  }
  x->mask_out = mask;
}

static void fmas32(struct emu_half_wave *x) {
  EMU_EACH {
    x->d[l] = (uint32_t)emu__hw_div_fmas(&emu__hw_single_format, x->s[0][l], x->s[1][l], x->s[2][l],
                                         x->mask_in >> l & 1, single_mode(x));
  }
}
static void fmas64(struct emu_half_wave *x) {
  EMU_EACH {
    uint64_t a = emu__pair(x->s[0], l), b = emu__pair(x->s[1], l), c = emu__pair(x->s[2], l);
    emu__set_pair(x->d, l, emu__hw_div_fmas(&emu__hw_double_format, a, b, c, x->mask_in >> l & 1, wide_mode(x)));
  }
}

static void fixup16(struct emu_half_wave *x) {
  EMU_EACH {
    x->d[l] = (uint32_t)emu__hw_div_fixup(&emu__hw_half_format, x->s[0][l] & 0xffff, x->s[1][l] & 0xffff,
                                          x->s[2][l] & 0xffff, wide_mode(x));
  }
}
static void fixup32(struct emu_half_wave *x) {
  EMU_EACH {
    x->d[l] = (uint32_t)emu__hw_div_fixup(&emu__hw_single_format, x->s[0][l], x->s[1][l], x->s[2][l], single_mode(x));
  }
}
static void fixup64(struct emu_half_wave *x) {
  EMU_EACH {
    uint64_t q = emu__pair(x->s[0], l), d = emu__pair(x->s[1], l), n = emu__pair(x->s[2], l);
    emu__set_pair(x->d, l, emu__hw_div_fixup(&emu__hw_double_format, q, d, n, wide_mode(x)));
  }
}

const struct emu_action emu__divide_actions[] = {EMU_ALU_F(V_DIV_SCALE_F32, scale32, 32),
                                                 EMU_ALU_C(V_DIV_SCALE_F64, scale64, 64, VALU_64),
                                                 EMU_ALU_F(V_DIV_FMAS_F32, fmas32, 32),
                                                 EMU_ALU_C(V_DIV_FMAS_F64, fmas64, 64, VALU_64),
                                                 EMU_ALU_F(V_DIV_FIXUP_F32, fixup32, 32),
                                                 EMU_ALU_C(V_DIV_FIXUP_F64, fixup64, 64, VALU_64),
                                                 EMU_ALU_F(V_DIV_FIXUP_F16, fixup16, 64),
                                                 EMU_ALU_F(V_DIV_FIXUP_LEGACY_F16, fixup16, 64),
                                                 {0}};
