// The rows of ops_*.def and codes_*.def as C data, and what sets the generations' encodings and text apart. Private to
// the decoder and the printer.
#ifndef EMULATOR_ISA_ISA_TABLES_H
#define EMULATOR_ISA_ISA_TABLES_H

#include "isa/isa.h"

enum emu_op_flag {
  EMU_FLAG_MODS1 = 1 << 0,      // neg and abs on src0
  EMU_FLAG_MODS2 = 1 << 1,      // … on src0 and src1
  EMU_FLAG_MODS3 = 1 << 2,      // … on all three
  EMU_FLAG_CLAMP = 1 << 3,      // VOP3: clamp
  EMU_FLAG_OMOD = 1 << 4,       // VOP3: output multiplier
  EMU_FLAG_OPSEL = 1 << 5,      // VOP3: op_sel chooses halves
  EMU_FLAG_DPP = 1 << 6,        // has a DPP form where the generation has it
  EMU_FLAG_DPP64 = 1 << 7,      // has a 64-bit DPP form where the generation has it
  EMU_FLAG_SDWA = 1 << 8,       // has an SDWA form where the generation has it
  EMU_FLAG_NO64 = 1 << 9,       // VOP1, VOP2: no 64-bit form, so the mnemonic has no _e32 either
  EMU_FLAG_SDST = 1 << 10,      // writes a carry or scale mask beside the vector
  EMU_FLAG_ATOMIC = 1 << 11,    // dst is written only with glc
  EMU_FLAG_PAIR = 1 << 12,      // DS: two 8-bit offsets in place of one of 16
  EMU_FLAG_GDS = 1 << 13,       // DS: gds must be set
  EMU_FLAG_NOGDS = 1 << 14,     // DS: gds must not be set
  EMU_FLAG_LDS = 1 << 15,       // the load may go to LDS instead of registers, where the encoding has the bit
  EMU_FLAG_PREFETCH = 1 << 16,  // SMEM: the place of the destination is a length
  EMU_FLAG_SCALAR = 1 << 17,    // VOP3: one source and the result are scalar registers
  EMU_FLAG_NOSEL = 1 << 18,     // VOP3P: op_sel has one value; signs: of both factors with MODS2, neg_lo with CLAMP
  EMU_FLAG_MAI = 1 << 20,       // VOP3P: products of matrices and moves of accumulation registers
  EMU_FLAG_BYTE = 1 << 19,      // VOP3: op_sel chooses a byte
  EMU_FLAG_BITOP = 1 << 21,     // VOP3: the bits of signs and of the output multiplier are a table
  EMU_FLAG_SCALE = 1 << 22,     // VOP3: the last source is a scale, with signs; op_sel chooses parts of the others
};

// How a generation encodes an opcode: a row of its codes_*.def.
struct emu_op_code {
  uint8_t format;
  bool present;
  uint16_t code;
  const char *alias;  // NULL: the canonical name in lower case
};

// The index from an encoding to its opcode: an array for each generation, in which each format has a span as long as
// its opcode field has values. Entry AT_<format> + code is the opcode:
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
  AT_GLOBAL = AT_FLAT + 256,
  AT_SCRATCH = AT_GLOBAL + 256,
  AT_MUBUF = AT_SCRATCH + 256,
  AT_MTBUF = AT_MUBUF + 256,
  AT_LDSDIR = AT_MTBUF + 16,
  AT_MIMG = AT_LDSDIR + 4,
  AT_END = AT_MIMG + 256
};

// A generation's file includes its codes twice, once for each of the two tables:
//
//     #define IS(op, format, code) EMU_CODE_ROW(op, format, code, NULL)
//     #define IS(op, format, code) EMU_INDEX_ROW(op, format, code)
#define EMU_CODE_ROW(op, format, code, alias) [EMU_##op] = {EMU_##format, true, code, alias},
#define EMU_INDEX_ROW(op, format, code) [AT_##format + (code)] = EMU_##op,

struct emu_encoding {
  const struct emu_op_code *codes;  // by enum emu_op
  const uint16_t *op_at;            // see AT_END
  uint8_t format[64];               // of words from 0xc0000000 on: enum emu_format by bits 24 to 29

  // ---- operands
  uint16_t vop1_in_vop3;  // the code of the first VOP1 among those of VOP3
  bool vop3p_in_vop3;     // VOP3P has the mark of VOP3, and its codes are the last 128 there
  bool wide_lds;          // loads to LDS may have three and four dwords
  bool literal_long;      // encodings of 64 bits may have literals
  bool no_null;           // there is no register NULL
  bool m0_before_null;    // M0 has the number 124 and NULL 125; else the other way round
  bool lds_direct;        // a vector source may be the dword of LDS at which M0 points
  bool gds_alone;         // … which then has instructions of its own
  bool gds;               // DS may name the global data share
  bool dpp_wave;          // DPP moves between rows, but has neither shares nor fi
  bool dpp_share;         // … but for shares, which it calls new broadcasts
  bool dpp8;              // DPP of eight selectors
  bool sdwa;              // short encodings may be followed by SDWA
  bool dpp_compare;       // DPP for VOPC and V_PK_FMAC_F16
  bool dpp_long;          // DPP for VOP3 and VOP3P
  bool exponent_signs;    // the exponent of V_LDEXP_F16 has neg and abs, like a float

  bool scratch_alone;  // EXEC_HI in place of scratch's scalar address says that there is no address but the offset

  bool ldsdir_vsrc;  // LDSDIR waits for sources of vector memory, too

  // ---- memory. A cache policy is glc, slc and dlc, or a temporal hint and a scope.
  struct emu_smem_fields {
    bool offset_shown;    // the text has the offset even if it is 0
    bool policy_is_read;  // invalidations have no cache policy; else the bits are ignored there
    struct emu_field op, glc, dlc, temporal, scope, offset;
    struct emu_field register_too, immediate;  // GFX9: a register in the upper place; the offset is no register
  } smem;
  struct emu_ds_fields {
    struct emu_field op, gds, accumulators;
    struct emu_field spare;  // 0 where there are no operands
  } ds;
  struct emu_flat_fields {
    uint8_t words;
    uint8_t none, flat_none;  // that there is no scalar address: the code of saddr, and the same in FLAT
    bool flat_signed;         // the offset of FLAT, not only of its segments, has a sign
    bool
        vector_is_set;  // `vector` says whether scratch has an address in a VGPR; else it has if it has none in an SGPR
    struct emu_field op, segment, glc, slc, dlc, temporal, scope, lds, offset, vaddr, data, saddr, vector, dst;
    struct emu_field accumulators;  // data are in accumulation registers
    struct emu_field nv;            // GFX9: its memory is not shared; not for loads to LDS
  } flat;
  struct emu_buffer_fields {
    uint8_t words;
    uint8_t resource_unit;  // registers that `resource` counts
    bool atomic_dlc;        // atomics may have dlc
    bool offset_signed;
    struct emu_field typed;  // set: MTBUF, where it shares its mark with MUBUF
    struct emu_field op, typed_op, typed_op_high, glc, slc, dlc, temporal, scope, lds, tfe, offen, idxen, offset,
        typed_slc, typed_dlc, format, number_format;
    struct emu_field accumulators;
    bool policy_alone;       // cache operations have a policy
    struct emu_field spare;  // 0 where there are no operands
    struct emu_field vaddr, data, resource, soffset;
  } buffer;

  // Images without and with a sampler, which differ where `sampler_mark`, the six upper bits of those with one, is set.
  uint8_t sampler_mark;
  struct emu_image_fields {
    uint8_t words, resource_unit;
    uint8_t slots;  // registers of an address that are named; 1: the first, or by the words behind it that nsa counts
    bool nsa_goes_on;  // … of which the last begins what there is more
    struct emu_field op, op_high, dim, dmask, nsa, unorm, glc, slc, dlc, temporal, scope, r128, a16, d16, tfe, lwe;
    struct emu_field data, resource, sampler, address[5];
  } image[2];

  bool depctr_holds;  // S_WAITCNT_DEPCTR has hold_cnt

  // ---- S_WAITCNT
  struct emu_field vm, vm_high, exp, lgkm;

  // ---- text: the names at their numbers, NULL where there is none
  const char *const *hwregs;          // [64]
  const char *const *messages;        // [16]
  bool message_operations;            // messages have an operation and a stream
  uint8_t returning_messages;         // how many there are of those that return a value, from 128 on
  const char *cache_names[3];         // set: of what stands at the places of glc, slc and dlc in vector accesses
  bool sums_long;                     // sums over their own register have a 64-bit form, which is not decoded here
  bool sums_accumulate;               // products of matrices have their sums in accumulation registers alone
  bool silent_sums;                   // atomic sums of floats return nothing
  bool neg_f64;                       // products of doubles have signs in place of blgp
  bool byte_as_op_sel;                // what chooses a byte is shown as op_sel
  const char *const *number_formats;  // set: buffers have a data format, named below, and one of these
  uint16_t srgb_format;               // the number of images' 8_SRGB, before that of two and of four components
  const char *const *buffer_formats;  // "layout kinds" in the order of their numbers from 1 on; ends with NULL
};

// A row of ops_*.def: the opcode, as all generations have it.
struct emu_op_row {
  const char *name;  // upper case
  uint8_t type[4];   // enum emu_type of dst, src0, src1, src2
  uint32_t flags;
};

extern const struct emu_op_row emu__op_rows[EMU_OP_COUNT];
// What buffers hold, by the number of their format, of GFX11 and GFX12.
extern const char *const emu__gfx11_buffer_formats[];

bool emu__is_permlane(enum emu_op op);   // op_sel holds what DPP calls fi and bound_ctrl
bool emu__is_lane_swap(enum emu_op op);  // … and the text has these names

// A SOPP instruction without an operand: its immediate is 0 and is not printed.
bool emu__sopp_is_bare(unsigned op);

// The opcode behind a code of the format's own field; EMU_OP_NONE if the target has none. VOP3: the full 10 bits,
// with *base set to the VOPC, VOP1 or VOP2 that this is the 64-bit form of, else to EMU_VOP3.
enum emu_op emu__op_find(const struct emu_isa *target, enum emu_format format, unsigned code, enum emu_format *base);

unsigned emu__type_dwords(enum emu_type type, unsigned wave);

// The value of the inline constants 240..248 in an operand of the type.
uint64_t emu__inline_float(unsigned code, enum emu_type type);

// A type whose values are single 16-bit numbers: operands that may name half registers.
static inline bool emu__type_is_half(enum emu_type type) {
  return type == EMU_B16 || type == EMU_I16 || type == EMU_U16 || type == EMU_F16 || type == EMU_BF16;
}

// How the generation encodes the opcode.
static inline const struct emu_op_code *emu__op_code(const struct emu_isa *target, unsigned op) {
  return &target->encoding->codes[op];
}

// Whether it has no 64-bit form. Sums over their own register have one from gfx908 on.
bool emu__is_short_only(const struct emu_isa *target, unsigned op);

// Whether op_sel chooses halves of the instruction's operands: what has a short form too names halves there, or none.
static inline bool emu__has_op_sel(const struct emu_isa *target, unsigned op) {
  if (!(emu__op_rows[op].flags & EMU_FLAG_OPSEL)) return false;
  bool by_sdwa = op == EMU_V_CVT_PK_F32_FP8 || op == EMU_V_CVT_PK_F32_BF8;
  if (by_sdwa && target->encoding->byte_as_op_sel) return false;
  return target->halves || emu__op_code(target, op)->format != EMU_VOP2;
}

// Conversions from 8-bit floats: with SDWA they write whole registers and have no field that says so.
static inline bool emu__opens_float8(enum emu_op op) {
  return op == EMU_V_CVT_F32_FP8 || op == EMU_V_CVT_F32_BF8 || op == EMU_V_CVT_PK_F32_FP8 || op == EMU_V_CVT_PK_F32_BF8;
}

// Conversions of two halves to 4-bit floats, whose op_sel has four bits though they have two sources.
static inline bool emu__packs_halves_by_byte(unsigned op) {
  return op == EMU_V_CVT_SCALEF32_PK_FP4_F16 || op == EMU_V_CVT_SCALEF32_PK_FP4_BF16;
}

#endif
