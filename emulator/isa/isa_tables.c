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
  LDS = EMU_FLAG_LDS
};

#define IS(format, code) {EMU_##format, true, code, NULL}
#define AS(format, code, alias) {EMU_##format, true, code, alias}
#define NO {0, false, 0, NULL}
#define T(dst, src0, src1, src2) {TYPE_##dst, TYPE_##src0, TYPE_##src1, TYPE_##src2}

const struct emu_op_row emu__op_rows[EMU_OP_COUNT] = {
#define OP(name, types, flags, gfx1030, gfx1100) [EMU_##name] = {#name, types, flags, {gfx1030, gfx1100}},
#include "isa/ops.def"
#undef OP
};

#undef IS
#undef AS
#undef NO

// The index from an encoding to its opcode: for each target one array, in which each format has a span as long as its
// opcode field has values. Entry AT_<format> + code is the opcode:
//
//     | SOP1: 256 | SOP2: 128 | SOPC: 128 | SOPK: 32 | …
enum {
  AT_SOP1 = 0,
  AT_SOP2 = AT_SOP1 + 256,
  AT_SOPC = AT_SOP2 + 128,
  AT_SOPK = AT_SOPC + 128,
  AT_SOPP = AT_SOPK + 32,
  AT_SMEM = AT_SOPP + 128,
  AT_VOP1 = AT_SMEM + 256,
  AT_VOP2 = AT_VOP1 + 256,
  AT_VOPC = AT_VOP2 + 64,
  AT_VOP3 = AT_VOPC + 256,
  AT_VOP3P = AT_VOP3 + 1024,
  AT_DS = AT_VOP3P + 128,
  AT_FLAT = AT_DS + 256,
  AT_GLOBAL = AT_FLAT + 128,
  AT_SCRATCH = AT_GLOBAL + 128,
  AT_MUBUF = AT_SCRATCH + 128,
  AT_MTBUF = AT_MUBUF + 256,
  AT_LDSDIR = AT_MTBUF + 16,
  AT_END = AT_LDSDIR + 4
};

#define KEEP(op) op,
#define DROP(op)
#define PUT_IS(format, code) [AT_##format + (code)] = KEEP
#define PUT_AS(format, code, alias) PUT_IS(format, code)
#define PUT_NO DROP

static const uint16_t op_at[EMU_TARGET_COUNT][AT_END] = {
#define OP(name, types, flags, gfx1030, gfx1100) PUT_##gfx1030(EMU_##name)
    [EMU_GFX1030] =
        {
#include "isa/ops.def"
        },
#undef OP
#define OP(name, types, flags, gfx1030, gfx1100) PUT_##gfx1100(EMU_##name)
    [EMU_GFX1100] =
        {
#include "isa/ops.def"
        },
#undef OP
};

static const struct {
  uint16_t at, count;
} span[EMU_FORMAT_COUNT] = {
    [EMU_SOP1] = {AT_SOP1, 256},   [EMU_SOP2] = {AT_SOP2, 128},     [EMU_SOPC] = {AT_SOPC, 128},
    [EMU_SOPK] = {AT_SOPK, 32},    [EMU_SOPP] = {AT_SOPP, 128},     [EMU_SMEM] = {AT_SMEM, 256},
    [EMU_VOP1] = {AT_VOP1, 256},   [EMU_VOP2] = {AT_VOP2, 64},      [EMU_VOPC] = {AT_VOPC, 256},
    [EMU_VOP3] = {AT_VOP3, 1024},  [EMU_VOP3P] = {AT_VOP3P, 128},   [EMU_DS] = {AT_DS, 256},
    [EMU_FLAT] = {AT_FLAT, 128},   [EMU_GLOBAL] = {AT_GLOBAL, 128}, [EMU_SCRATCH] = {AT_SCRATCH, 128},
    [EMU_MUBUF] = {AT_MUBUF, 256}, [EMU_MTBUF] = {AT_MTBUF, 16},    [EMU_LDSDIR] = {AT_LDSDIR, 4},
};

static enum emu_op find(enum emu_target target, enum emu_format format, unsigned code) {
  return code < span[format].count ? op_at[target][span[format].at + code] : EMU_OP_NONE;
}

enum emu_op emu__op_find(enum emu_target target, enum emu_format format, unsigned code, enum emu_format *base) {
  *base = format;
  enum emu_op op = find(target, format, code);
  if (op || format != EMU_VOP3) return op;
  unsigned at;
  if (code < 0x100) {
    *base = EMU_VOPC, at = code;
  } else if (code < 0x140) {
    *base = EMU_VOP2, at = code - 0x100;
  } else if (code >= 0x180 && code < 0x200) {
    *base = EMU_VOP1, at = code - 0x180;
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
  return dwords[type];
}

static const char *const target_names[EMU_TARGET_COUNT] = {[EMU_GFX1030] = "gfx1030", [EMU_GFX1100] = "gfx1100"};

const char *emu_target_name(enum emu_target target) { return target_names[target]; }

bool emu_target_from_name(const char *name, enum emu_target *target) {
  for (int i = 0; i < EMU_TARGET_COUNT; i++) {
    if (strcmp(name, target_names[i]) == 0) return *target = (enum emu_target)i, true;
  }
  return false;
}

const char *emu_isa_name(enum emu_op op, char name[64]) {
  const char *from = op > EMU_OP_NONE && op < EMU_OP_COUNT ? emu__op_rows[op].name : "";
  size_t i = 0;
  for (; from[i] && i < 63; i++) name[i] = (char)tolower((unsigned char)from[i]);
  name[i] = 0;
  return name;
}

const char *emu_isa_mnemonic(enum emu_target target, enum emu_op op, char name[64]) {
  if (op <= EMU_OP_NONE || op >= EMU_OP_COUNT || !emu__op_rows[op].on[target].present) return NULL;
  const char *alias = emu__op_rows[op].on[target].alias;
  if (!alias) return emu_isa_name(op, name);
  strncpy(name, alias, 63);
  name[63] = 0;
  return name;
}

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
      return "a graphics instruction (image, export, interpolation); only compute is emulated";
  }
  return "no such status";
}

struct emu_waitcnt emu_isa_waitcnt(enum emu_target target, int32_t imm) {
  unsigned bits = (unsigned)imm;
  if (target == EMU_GFX1100) {
    return (struct emu_waitcnt){.vm = bits >> 10 & 63, .exp = bits & 7, .lgkm = bits >> 4 & 63};
  }
  return (struct emu_waitcnt){.vm = (bits & 15) | (bits >> 14 & 3) << 4, .exp = bits >> 4 & 7, .lgkm = bits >> 8 & 63};
}

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
      return true;
    default:
      return false;
  }
}
