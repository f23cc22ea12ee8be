#include "isa/isa_samples.h"

#include <string.h>

#include "isa/isa_tables.h"

static uint32_t draw(uint64_t *state) {  // splitmix64
  uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return (uint32_t)(z >> 32);
}

static bool chance(uint64_t *state, unsigned one_in) { return draw(state) % one_in == 0; }

// The code of a source operand: mostly of a vector, scalar or constant, sometimes anything.
static unsigned draw_source(uint64_t *state, unsigned bits) {
  unsigned any = draw(state);
  unsigned code;
  switch (draw(state) % 10) {
    case 0:
      return any & ((1u << bits) - 1);
    case 1:
      code = 128 + any % 81;
      break;
    case 2:
      code = 240 + any % 9;
      break;
    case 3:
      code = 255;
      break;
    case 4:
      code = 2 * (any % 53);
      break;
    case 5:
      code = 4 * (any % 32);
      break;
    default:
      code = bits == 9 ? 256 + any % 256 : any % 106;
      break;
  }
  return code;
}

static uint32_t sparse(uint64_t *state) { return draw(state) & draw(state) & draw(state); }

static uint32_t put(uint32_t word, unsigned low, unsigned bits, uint32_t value) {
  uint32_t mask = (uint32_t)((UINT64_C(1) << bits) - 1) << low;
  return (word & ~mask) | (value << low & mask);
}

static void put_field(uint32_t w[SAMPLE_WORDS], struct emu_field field, uint32_t value) {
  w[field.low / 32] = put(w[field.low / 32], field.low % 32, field.bits, value);
}

// The word behind a DPP or SDWA instruction, by the marker in src0.
static uint32_t draw_lane_word(uint64_t *state, unsigned marker) {
  uint32_t w = draw(state);
  if (chance(state, 6)) return w;
  if (marker == 0xfa) {
    static const uint16_t controls[] = {0x00,  0x1b,  0xe4,  0x101, 0x111, 0x11f,
                                        0x12f, 0x140, 0x141, 0x150, 0x15f, 0x161};
    w = put(w, 8, 12, controls[draw(state) % (sizeof(controls) / sizeof(controls[0]))]);
    return put(w, 18, 6, sparse(state));
  }
  if (marker == 0xf9) {
    w = put(w, 8, 8, draw(state) % 7 | (draw(state) % 3) << 3);
    w = put(w, 16, 8, draw(state) % 7 | (sparse(state) & 0x38) | (draw(state) & 0x80));
    w = chance(state, 2) ? put(w, 24, 8, 0)
                         : put(w, 24, 8, draw(state) % 7 | (sparse(state) & 0x38) | (draw(state) & 0x80));
  }
  return w;
}

static void fill_vop(uint64_t *state, const struct emu_op_row *row, const struct emu_isa *target,
                     uint32_t w[SAMPLE_WORDS]) {
  static const uint16_t markers[2][3] = {{0xfa, 0xe9, 0xf9}, {0xfa, 0xe9, 0xea}};
  unsigned marker = chance(state, 4) ? markers[target->encoding->dpp_long][draw(state) % 3] : 0;
  w[0] = put(w[0], 0, 9, marker ? marker : draw_source(state, 9));
  if (row->type[0] == EMU_NONE) w[0] = put(w[0], 17, 8, 0);  // v_nop
  if (marker) w[1] = draw_lane_word(state, marker);
}

static void fill_vop3(uint64_t *state, const struct emu_op_row *row, const struct emu_isa *target,
                      uint32_t w[SAMPLE_WORDS]) {
  bool rough = chance(state, 8);
  if (row->type[0] == EMU_NONE && !rough) {  // v_nop
    w[0] = put(w[0], 0, 16, 0);
    w[1] = 0;
    return;
  }
  w[0] = put(w[0], 8, 8, row->flags & EMU_FLAG_SDST ? draw(state) & 0x7f : sparse(state));
  w[1] = put(w[1], 27, 5, chance(state, 2) ? 0 : sparse(state));
  for (unsigned i = 0; i < 3; i++) {
    bool used = row->type[i + 1] != EMU_NONE;
    w[1] = put(w[1], 9 * i, 9, used || rough ? draw_source(state, 9) : 0);
  }
  if (target->encoding->dpp_long && chance(state, 5)) {
    unsigned marker = draw(state) % 2 ? 0xfa : 0xe9;
    w[1] = put(w[1], 0, 9, marker);
    w[2] = draw_lane_word(state, marker);
    if (!rough) w[2] = put(w[2], 20, 4, 0);
  }
}

static bool samples_image(const struct emu_op_row *row) {
  return strstr(row->name, "SAMPLE") || strstr(row->name, "GATHER");
}

static void fill_image(uint64_t *state, const struct emu_image_fields *f, uint32_t w[SAMPLE_WORDS]) {
  if (!chance(state, 8)) {
    put_field(w, f->r128, 0);
    put_field(w, f->tfe, 0);
    put_field(w, f->lwe, 0);
    put_field(w, f->dim, draw(state) % 6);
  }
  put_field(w, f->nsa, chance(state, 2) ? 0 : 1 + (sparse(state) & 3) % 3);
  if (chance(state, 4)) return;
  put_field(w, f->resource, draw(state) % 25 * 4 / f->resource_unit);
  put_field(w, f->sampler, draw(state) % 26 * 4 / f->resource_unit);
}

static void fill_memory(uint64_t *state, const struct emu_op_row *row, const struct emu_isa *target,
                        uint32_t w[SAMPLE_WORDS]) {
  const struct emu_encoding *e = target->encoding;
  unsigned none = e->m0_before_null ? 0x7d : 0x7c;
  switch (emu__op_code(target, (unsigned)(row - emu__op_rows))->format) {
    case EMU_DS:
      for (unsigned i = 0; i < 3; i++) {
        if (row->type[i + 1] == EMU_NONE) w[1] = put(w[1], 8 * i, 8, 0);
      }
      if (row->type[0] == EMU_NONE) w[1] = put(w[1], 24, 8, 0);
      if (e->ds.gds.low == 17) w[0] = put(w[0], 16, 1, chance(state, 8) ? draw(state) : 0);
      put_field(w, e->ds.gds, (row->flags & EMU_FLAG_GDS ? 1 : 0) | (chance(state, 8) ? draw(state) : 0));
      break;
    case EMU_FLAT:
    case EMU_GLOBAL:
    case EMU_SCRATCH:
      put_field(w, e->flat.saddr, chance(state, 2) ? none : draw(state) % 128);
      if (chance(state, 2))
        put_field(w, e->flat.saddr,
                  emu__op_code(target, (unsigned)(row - emu__op_rows))->format == EMU_FLAT ? e->flat.flat_none
                                                                                           : e->flat.none);
      break;
    case EMU_SMEM:
      w[1] = put(w[1], 25, 7, chance(state, 2) ? none : draw(state) % 128);
      w[1] = put(w[1], 21, 4, 0);
      w[0] = put(w[0], 6, 7, draw(state) % 27 * 4);
      if (chance(state, 2)) w[0] = put(w[0], 13, 5, 0);
      break;
    case EMU_MUBUF:
    case EMU_MTBUF:
      if (chance(state, 2)) put_field(w, e->buffer.resource, draw(state) % 26 * 4 / e->buffer.resource_unit);
      put_field(w, e->buffer.soffset, draw_source(state, 8));
      break;
    case EMU_MIMG:
      fill_image(state, &e->image[e->sampler_mark && samples_image(row)], w);
      break;
    default:
      break;
  }
}

static bool has_format(const struct emu_isa *target, enum emu_format format) {
  for (unsigned i = 0; i < 64; i++) {
    if (target->encoding->format[i] == format) return true;
  }
  return false;
}

// The upper bits that mark a 64-bit encoding: eight where it has one entry in the table of formats, else six.
static uint32_t mark(const struct emu_isa *target, enum emu_format format, uint32_t w) {
  unsigned first = 0, count = 0;
  for (unsigned i = 64; i-- > 0;) {
    if (target->encoding->format[i] == format) first = i, count++;
  }
  return count == 1 ? put(w, 24, 8, 0xc0 + first) : put(w, 26, 6, (0xc0 + first) >> 2);
}

static void put_prefix(const struct emu_op_code *row, const struct emu_isa *target, uint32_t w[SAMPLE_WORDS]) {
  const struct emu_encoding *e = target->encoding;
  unsigned code = row->code;
  switch (row->format) {
    case EMU_SOP1:
      w[0] = put(put(w[0], 23, 9, 0x17d), 8, 8, code);
      break;
    case EMU_SOP2:
      w[0] = put(put(w[0], 30, 2, 2), 23, 7, code);
      break;
    case EMU_SOPC:
      w[0] = put(put(w[0], 23, 9, 0x17e), 16, 7, code);
      break;
    case EMU_SOPK:
      w[0] = put(put(w[0], 28, 4, 0xb), 23, 5, code);
      break;
    case EMU_SOPP:
      w[0] = put(put(w[0], 23, 9, 0x17f), 16, 7, code);
      break;
    case EMU_VOP1:
      w[0] = put(put(w[0], 25, 7, 0x3f), 9, 8, code);
      break;
    case EMU_VOP2:
      w[0] = put(put(w[0], 31, 1, 0), 25, 6, code);
      break;
    case EMU_VOPC:
      w[0] = put(put(w[0], 25, 7, 0x3e), 17, 8, code);
      break;
    case EMU_VOP3:
      w[0] = put(mark(target, EMU_VOP3, w[0]), 16, 10, code);
      break;
    case EMU_VOP3P:
      if (e->vop3p_in_vop3) {
        w[0] = put(put(w[0], 23, 9, 0x1a7), 16, 7, code);
      } else {
        w[0] = put(mark(target, EMU_VOP3P, w[0]), 16, 8, code);
      }
      break;
    case EMU_DS:
      w[0] = mark(target, EMU_DS, w[0]);
      put_field(w, e->ds.op, code);
      break;
    case EMU_SMEM:
      w[0] = mark(target, EMU_SMEM, w[0]);
      put_field(w, e->smem.op, code);
      break;
    case EMU_FLAT:
    case EMU_SCRATCH:
    case EMU_GLOBAL:
      w[0] = put(mark(target, EMU_FLAT, w[0]), 25, 1, 0);
      put_field(w, e->flat.op, code);
      put_field(w, e->flat.segment, row->format == EMU_GLOBAL ? 2 : row->format == EMU_SCRATCH);
      break;
    case EMU_MUBUF:
      w[0] = mark(target, EMU_MUBUF, w[0]);
      put_field(w, e->buffer.op, code);
      break;
    case EMU_MTBUF:
      w[0] = mark(target, EMU_MTBUF, w[0]);
      put_field(w, e->buffer.typed_op, code);
      put_field(w, e->buffer.typed_op_high, code >> e->buffer.typed_op.bits);
      break;
    case EMU_MIMG: {
      bool apart = e->sampler_mark && samples_image(&emu__op_rows[row - e->codes]);
      w[0] = apart ? put(w[0], 26, 6, e->sampler_mark) : mark(target, EMU_MIMG, w[0]);
      put_field(w, e->image[apart].op, code);
      put_field(w, e->image[apart].op_high, code >> e->image[apart].op.bits);
      break;
    }
    default:
      w[0] = put(mark(target, EMU_LDSDIR, w[0]), 20, 4, code);
      break;
  }
}

static void sample_vopd(uint64_t *state, uint32_t w[SAMPLE_WORDS]) {
  w[0] = put(draw(state), 26, 6, 0x32);
  w[0] = put(w[0], 22, 4, draw(state) % 13);
  w[0] = put(w[0], 17, 5, chance(state, 4) ? 16 + draw(state) % 3 : draw(state) % 13);
  w[0] = put(w[0], 0, 9, draw_source(state, 9));
  w[1] = put(draw(state), 0, 9, draw_source(state, 9));
  if ((w[0] >> 22 & 15) == 8) w[0] = put(w[0], 9, 8, 0);  // a move has no second source
  if ((w[0] >> 17 & 31) == 8) w[1] = put(w[1], 9, 8, 0);
}

// Literals that equal an inline constant, or nearly.
static uint32_t draw_literal(uint64_t *state) {
  static const uint32_t values[] = {0,          1,          64,         65,         0xffffffff, 0xfffffff0,
                                    0xffffffef, 0x3f800000, 0xbf000000, 0x3e22f983, 0x3c00,     0x3118,
                                    0xffff,     0xfff0,     0x40000000, 0x3ff00000, 0x80000000, 0x7fffffff,
                                    0xc0800000, 0x3c003c00, 0x3f80,     0x3800};
  return chance(state, 3) ? values[draw(state) % (sizeof(values) / sizeof(values[0]))] : draw(state);
}

// A scale, and behind it most often the product that it is for.
static void draw_scales(const struct emu_isa *target, uint64_t *state, uint32_t w[SAMPLE_WORDS]) {
  w[0] = put(w[0], 0, 16, (draw(state) & 0x1800) | (chance(state, 4) ? sparse(state) : 0));
  if (chance(state, 2)) w[1] = put(w[1], 29, 3, 0);
  if (chance(state, 5)) return;
  unsigned op = chance(state, 2) ? EMU_V_MFMA_F32_16X16X128_F8F6F4 : EMU_V_MFMA_F32_32X32X64_F8F6F4;
  w[2] = put(put(draw(state), 23, 9, 0x1a7), 16, 7, emu__op_code(target, op)->code);
  w[2] = put(w[2], 11, 4, chance(state, 6) ? draw(state) : 1);
  w[3] = draw(state);
  for (unsigned i = 0; i < 3; i++) w[3] = put(w[3], 9 * i, 9, 256 + draw(state) % 256);
  if (chance(state, 3)) w[3] = put(w[3], 18, 9, draw_source(state, 9));
}

static void draw_words(const struct emu_isa *target, uint64_t *state, uint32_t w[SAMPLE_WORDS]) {
  w[0] = draw(state);
  w[1] = draw_literal(state);
  w[2] = draw_literal(state);
  for (int i = 3; i < SAMPLE_WORDS; i++) w[i] = draw(state);
  if (chance(state, 8)) return;
  if (has_format(target, EMU_VOPD) && chance(state, 12)) {
    sample_vopd(state, w);
    return;
  }
  const struct emu_op_row *row;
  do {
    row = &emu__op_rows[1 + draw(state) % (EMU_OP_COUNT - 1)];
  } while (!emu__op_code(target, (unsigned)(row - emu__op_rows))->present);
  const struct emu_op_code *code = emu__op_code(target, (unsigned)(row - emu__op_rows));
  unsigned format = code->format;
  put_prefix(code, target, w);
  bool vop = format == EMU_VOP1 || format == EMU_VOP2 || format == EMU_VOPC;
  if (vop && chance(state, 2)) {  // the same opcode in its 64-bit form
    unsigned base = format == EMU_VOPC ? 0 : format == EMU_VOP2 ? 0x100 : target->encoding->vop1_in_vop3;
    w[0] = put(mark(target, EMU_VOP3, w[0]), 16, 10, base + code->code);
    fill_vop3(state, row, target, w);
  } else if (vop) {
    fill_vop(state, row, target, w);
  } else if (format == EMU_VOP3) {
    fill_vop3(state, row, target, w);
  } else if (format == EMU_VOP3P) {
    for (unsigned i = 0; i < 3; i++) w[1] = put(w[1], 9 * i, 9, row->type[i + 1] ? draw_source(state, 9) : 0);
    if (chance(state, 2)) w[1] = put(put(w[1], 29, 3, 0), 27, 2, 3), w[0] = put(w[0], 8, 8, 0x40);
    if (!row->type[3]) w[1] = put(w[1], 31, 1, 0), w[0] = put(put(w[0], 10, 1, 0), 13, 1, 0);
    if (row->flags & EMU_FLAG_DPP64 && target->encoding->dpp_long && chance(state, 3)) {
      unsigned marker = chance(state, 2) ? 0xfa : 0xe9;
      w[1] = put(w[1], 0, 9, marker);
      w[2] = draw_lane_word(state, marker);
    }
    if (row->flags & EMU_FLAG_NOSEL && !chance(state, 4)) {
      w[0] = put(put(w[0], 8, 3, sparse(state)), 11, 5, 8 | (chance(state, 4) ? draw(state) & 1 : 0));
      w[1] = put(w[1], 27, 5, 3 | sparse(state) << 2);
      for (unsigned i = 0; i < 3; i++) w[1] = put(w[1], 9 * i, 9, 256 + draw(state) % 256);
      if (chance(state, 3)) w[1] = put(w[1], 18, 9, draw_source(state, 9));
    }
    if (code == emu__op_code(target, EMU_V_MFMA_LD_SCALE_B32)) draw_scales(target, state, w);
    if (row->type[0] == EMU_TILEC && chance(state, 2)) w[0] = put(put(w[0], 11, 3, 0), 15, 1, 0);
  } else {
    if (format == EMU_SOP2 || format == EMU_SOPC) w[0] = put(w[0], 8, 8, draw_source(state, 8));
    if (format <= EMU_SOPC) w[0] = put(w[0], 0, 8, draw_source(state, 8));
    if (format == EMU_SOP1 || format == EMU_SOP2) w[0] = put(w[0], 16, 7, draw(state) % 64 * 2);
    if (format == EMU_SOPP && chance(state, 3)) w[0] = put(w[0], 0, 16, 0);
    if (format == EMU_DS && row->type[0] == EMU_NONE && row->type[1] == EMU_NONE) w[0] = put(w[0], 0, 18, 0);
    fill_memory(state, row, target, w);
  }
}

// LLVM 19 crashes on SDWA selectors that do not exist (7, and 3 for the unused part), which the decoder refuses.
static void avoid_crash(uint32_t w[SAMPLE_WORDS]) {
  for (int i = 0; i < SAMPLE_WORDS; i++) {
    if (w[i] >> 31 || (w[i] & 0x1ff) != 0xf9) continue;
    if (i == SAMPLE_WORDS - 1) {
      w[i] ^= 1;
      continue;
    }
    for (unsigned low = 8; low <= 24; low += 8) {
      if ((w[i + 1] >> low & 7) == 7) w[i + 1] ^= 1u << low;
    }
    if ((w[i + 1] >> 11 & 3) == 3) w[i + 1] ^= 1u << 11;
  }
}

void isa_sample(const struct emu_isa *target, uint64_t *state, uint32_t w[SAMPLE_WORDS]) {
  draw_words(target, state, w);
  if (target->encoding->sdwa) avoid_crash(w);
}
