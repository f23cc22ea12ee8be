#include "isa/isa_tables.h"

#include <ctype.h>
#include <string.h>

enum {
#define X(name, dwords) TYPE_##name = EMU_##name,
  EMU_TYPES(X)
#undef X
      TYPE__ = EMU_NONE
};

enum {
  MODS1 = EMU_FLAG_MODS1,
  MODS2 = EMU_FLAG_MODS2,
  MODS3 = EMU_FLAG_MODS3,
  CLAMP = EMU_FLAG_CLAMP,
  OMOD = EMU_FLAG_OMOD,
  OPSEL = EMU_FLAG_OPSEL,
  DPP = EMU_FLAG_DPP,
  DPP64 = EMU_FLAG_DPP64,
  SDWA = EMU_FLAG_SDWA,
  NO64 = EMU_FLAG_NO64,
  SDST = EMU_FLAG_SDST,
  ATOMIC = EMU_FLAG_ATOMIC,
  PAIR = EMU_FLAG_PAIR,
  GDS = EMU_FLAG_GDS,
  NOGDS = EMU_FLAG_NOGDS,
  LDS = EMU_FLAG_LDS,
  PREFETCH = EMU_FLAG_PREFETCH,
  SCALAR = EMU_FLAG_SCALAR,
  NOSEL = EMU_FLAG_NOSEL,
  BYTE = EMU_FLAG_BYTE,
  BITOP = EMU_FLAG_BITOP,
  SCALE = EMU_FLAG_SCALE,
  MAI = EMU_FLAG_MAI
};

#define T(dst, src0, src1, src2) {TYPE_##dst, TYPE_##src0, TYPE_##src1, TYPE_##src2}

const struct emu_op_row emu__op_rows[EMU_OP_COUNT] = {
#define OP(name, types, flags) [EMU_##name] = {#name, types, flags},
#include "isa/ops.def"
#undef OP
};

static const struct {
  uint16_t at, count;
} span[EMU_FORMAT_COUNT] = {
    [EMU_SOP1] = {AT_SOP1, 256},   [EMU_SOP2] = {AT_SOP2, 128},     [EMU_SOPC] = {AT_SOPC, 128},
    [EMU_SOPK] = {AT_SOPK, 32},    [EMU_SOPP] = {AT_SOPP, 128},     [EMU_SMEM] = {AT_SMEM, 256},
    [EMU_VOP1] = {AT_VOP1, 256},   [EMU_VOP2] = {AT_VOP2, 64},      [EMU_VOPC] = {AT_VOPC, 256},
    [EMU_VOP3] = {AT_VOP3, 1024},  [EMU_VOP3P] = {AT_VOP3P, 128},   [EMU_DS] = {AT_DS, 256},
    [EMU_FLAT] = {AT_FLAT, 256},   [EMU_GLOBAL] = {AT_GLOBAL, 256}, [EMU_SCRATCH] = {AT_SCRATCH, 256},
    [EMU_MUBUF] = {AT_MUBUF, 256}, [EMU_MTBUF] = {AT_MTBUF, 16},    [EMU_LDSDIR] = {AT_LDSDIR, 4},
    [EMU_MIMG] = {AT_MIMG, 256},
};

static enum emu_op find(const struct emu_isa *target, enum emu_format format, unsigned code) {
  return code < span[format].count ? target->encoding->op_at[span[format].at + code] : EMU_OP_NONE;
}

enum emu_op emu__op_find(const struct emu_isa *target, enum emu_format format, unsigned code, enum emu_format *base) {
  *base = format;
  enum emu_op op = find(target, format, code);
  if (op || format != EMU_VOP3) return op;
  unsigned at;
  if (code < 0x100) {
    *base = EMU_VOPC, at = code;
  } else if (code < 0x140) {
    *base = EMU_VOP2, at = code - 0x100;
  } else if (code >= target->encoding->vop1_in_vop3 && code < target->encoding->vop1_in_vop3 + 0x80u) {
    *base = EMU_VOP1, at = code - target->encoding->vop1_in_vop3;
  } else {
    return EMU_OP_NONE;
  }
  op = find(target, *base, at);
  return emu__op_rows[op].flags & EMU_FLAG_NO64 ? EMU_OP_NONE : op;
}

unsigned emu__type_dwords(enum emu_type type, unsigned wave) {
  static const uint8_t dwords[EMU_TYPE_COUNT] = {
#define X(name, count) [EMU_##name] = count,
      EMU_TYPES(X)
#undef X
  };
  if (type == EMU_MASK) return wave / 32;
  if (type == EMU_TILEC) return wave == 32 ? 8 : 4;
  if (type > EMU_FRAG1 && type <= EMU_FRAG8) return dwords[type] * 32 / wave;
  return dwords[type];
}

const struct emu_isa *emu_isa_at(unsigned index) {
  static const struct emu_isa *const all[EMU_ISA_COUNT] = {
      &emu_isa_gfx1030, &emu_isa_gfx1100, &emu_isa_gfx1201, &emu_isa_gfx1103, &emu_isa_gfx1150,
      &emu_isa_gfx1151, &emu_isa_gfx1010, &emu_isa_gfx1012, &emu_isa_gfx906,  &emu_isa_gfx900,
      &emu_isa_gfx90a,  &emu_isa_gfx942,  &emu_isa_gfx908,  &emu_isa_gfx950};
  return all[index];
}

const struct emu_isa *emu_isa_find(const char *name) {
  for (unsigned i = 0; i < EMU_ISA_COUNT; i++) {
    if (strcmp(name, emu_isa_at(i)->name) == 0) return emu_isa_at(i);
  }
  return NULL;
}

const char *emu_isa_name(enum emu_op op, char name[64]) {
  const char *from = op > EMU_OP_NONE && op < EMU_OP_COUNT ? emu__op_rows[op].name : "";
  size_t i = 0;
  for (; from[i] && i < 63; i++) name[i] = (char)tolower((unsigned char)from[i]);
  name[i] = 0;
  return name;
}

const char *emu_isa_mnemonic(const struct emu_isa *target, enum emu_op op, char name[64]) {
  if (op <= EMU_OP_NONE || op >= EMU_OP_COUNT || !emu__op_code(target, op)->present) return NULL;
  const char *alias = emu__op_code(target, op)->alias;
  if (!alias) return emu_isa_name(op, name);
  strncpy(name, alias, 63);
  name[63] = 0;
  return name;
}

// ---- formats

enum { SRGB_FORMATS = 3 };
static const char *const kinds[] = {"UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "FLOAT"};

// "16_16": two of 16 bits.
static bool read_layout(const char *layout, size_t length, struct emu_pixel *out) {
  unsigned bits = 0;
  *out = (struct emu_pixel){0};
  for (size_t i = 0; i <= length; i++) {
    if (i < length && layout[i] != '_') {
      bits = 10 * bits + (unsigned)(layout[i] - '0');
      continue;
    }
    if (out->count && bits != out->bits) return false;
    out->bits = (uint8_t)bits;
    out->count++;
    bits = 0;
  }
  return true;
}

// Calls `found` with each format and its number until it says true.
static bool for_formats(const struct emu_isa *target, bool (*found)(const struct emu_pixel *, unsigned, void *),
                        void *context) {
  unsigned number = 1;
  for (const char *const *row = target->encoding->buffer_formats; *row; row++) {
    size_t length = strcspn(*row, " ");
    struct emu_pixel pixel;
    bool even = read_layout(*row, length, &pixel);
    for (const char *at = *row + length; *at; number++) {
      size_t kind = strcspn(++at, " ");
      for (unsigned k = 0; even && k < sizeof(kinds) / sizeof(*kinds); k++) {
        if (strlen(kinds[k]) != kind || strncmp(at, kinds[k], kind)) continue;
        pixel.kind = (uint8_t)k;
        if (found(&pixel, number, context)) return true;
      }
      at += kind;
    }
  }
  static const uint8_t counts[SRGB_FORMATS] = {1, 2, 4};  // of images alone
  for (unsigned i = 0; i < SRGB_FORMATS; i++) {
    struct emu_pixel pixel = {counts[i], 8, EMU_PIXEL_SRGB};
    if (found(&pixel, target->encoding->srgb_format + i, context)) return true;
  }
  return false;
}

struct search {
  struct emu_pixel pixel;
  unsigned number;
};
static bool has_number(const struct emu_pixel *pixel, unsigned number, void *context) {
  struct search *s = context;
  if (number == s->number) s->pixel = *pixel;
  return number == s->number;
}
static bool is_pixel(const struct emu_pixel *pixel, unsigned number, void *context) {
  struct search *s = context;
  bool same = pixel->count == s->pixel.count && pixel->bits == s->pixel.bits && pixel->kind == s->pixel.kind;
  if (same) s->number = number;
  return same;
}

bool emu_isa_pixel(const struct emu_isa *target, unsigned number, struct emu_pixel *out) {
  struct search s = {.number = number};
  if (!target->v3_format.bits || !for_formats(target, has_number, &s)) return false;
  *out = s.pixel;
  return true;
}

unsigned emu_isa_pixel_number(const struct emu_isa *target, const struct emu_pixel *pixel) {
  struct search s = {.pixel = *pixel};
  return target->v3_format.bits && for_formats(target, is_pixel, &s) ? s.number : 0;
}

bool emu_isa_multiplies_doubles(enum emu_op op) {
  return op == EMU_V_MFMA_F64_16X16X4_F64 || op == EMU_V_MFMA_F64_4X4X4_4B_F64;
}

bool emu_isa_compares_exec(enum emu_op op) { return strncmp(emu__op_rows[op].name, "V_CMPX_", 7) == 0; }

bool emu_isa_is_pair(enum emu_op op) {
  return op > EMU_OP_NONE && op < EMU_OP_COUNT && emu__op_rows[op].flags & EMU_FLAG_PAIR;
}

const char *emu_isa_reason(enum emu_decode_status status) {
  switch (status) {
    case EMU_DECODE_OK:
      return "an instruction";
    case EMU_DECODE_TRUNCATED:
      return "the code ends inside the instruction";
    case EMU_DECODE_OPCODE:
      return "the target has no instruction with this opcode";
    case EMU_DECODE_OPERAND:
      return "the instruction cannot take this register or constant as an operand";
    case EMU_DECODE_RESERVED:
      return "a reserved field, or a modifier that the instruction does not have, is set";
    case EMU_DECODE_GRAPHICS:
      return "a graphics instruction (export, interpolation, images but for those of one sample that HIP loads, stores "
             "and samples); only compute is emulated";
  }
  return "no such status";
}

struct emu_waitcnt emu_isa_waitcnt(const struct emu_isa *target, int32_t imm) {
  const struct emu_encoding *e = target->encoding;
  uint32_t bits = (uint32_t)imm;
  return (struct emu_waitcnt){.vm = (uint8_t)(emu__field(bits, e->vm) | emu__field(bits, e->vm_high) << e->vm.bits),
                              .exp = (uint8_t)emu__field(bits, e->exp),
                              .lgkm = (uint8_t)emu__field(bits, e->lgkm)};
}

bool emu__is_short_only(const struct emu_isa *target, unsigned op) {
  bool sums = op == EMU_V_DOT2ACC_F32_F16 || op == EMU_V_DOT2C_F32_BF16 || op == EMU_V_DOT2C_I32_I16 ||
              op == EMU_V_DOT4C_I32_I8 || op == EMU_V_DOT8C_I32_I4 || op == EMU_V_PK_FMAC_F16;
  return emu__op_rows[op].flags & EMU_FLAG_NO64 && !(sums && target->encoding->sums_long);
}

bool emu__is_permlane(enum emu_op op) {
  return op == EMU_V_PERMLANE16_B32 || op == EMU_V_PERMLANEX16_B32 || op == EMU_V_PERMLANE16_VAR_B32 ||
         op == EMU_V_PERMLANEX16_VAR_B32 || emu__is_lane_swap(op);
}

bool emu__is_lane_swap(enum emu_op op) { return op == EMU_V_PERMLANE16_SWAP_B32 || op == EMU_V_PERMLANE32_SWAP_B32; }

bool emu__sopp_is_bare(unsigned op) {
  switch (op) {
    case EMU_S_WAIT_IDLE:
    case EMU_S_CODE_END:
    case EMU_S_ENDPGM_SAVED:
    case EMU_S_ENDPGM_ORDERED_PS_DONE:
    case EMU_S_WAKEUP:
    case EMU_S_TTRACEDATA:
    case EMU_S_ICACHE_INV:
    case EMU_S_BARRIER:
    case EMU_S_BARRIER_LEAVE:
    case EMU_S_SET_GPR_IDX_OFF:
      return true;
    default:
      return false;
  }
}
