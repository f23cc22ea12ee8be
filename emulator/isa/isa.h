// Instructions of AMD's RDNA GPUs: machine words in, one struct out, and back to text.
//
// The opcode is shared by all generations and named as on GFX11 (EMU_V_ADD_NC_U32, EMU_GLOBAL_LOAD_B32). What one calls
// it and how it encodes it stands in its codes_*.def, and whatever else sets it apart in its struct emu_isa.
//
// Sources: AMD "RDNA2" and "RDNA3 Instruction Set Architecture" reference guides; LLVM's assembler for the text.
// Pure functions of their arguments: safe from any thread, no allocation.
#ifndef EMULATOR_ISA_ISA_H
#define EMULATOR_ISA_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum emu_op {
  EMU_OP_NONE,
#define OP(name, ...) EMU_##name,
#include "isa/ops.def"
#undef OP
  EMU_OP_COUNT
};

// The base encoding of an instruction. A VOP1, VOP2 or VOPC opcode that is written in its 64-bit form has format
// EMU_VOP3; DPP and SDWA are recorded apart (emu_inst.lanes).
enum emu_format {
  EMU_SOP1,
  EMU_SOP2,
  EMU_SOPC,
  EMU_SOPK,
  EMU_SOPP,
  EMU_SMEM,
  EMU_VOP1,
  EMU_VOP2,
  EMU_VOPC,
  EMU_VOP3,  // also the form with a scalar destination ("VOP3SD")
  EMU_VOP3P,
  EMU_VOPD,
  EMU_DS,
  EMU_FLAT,
  EMU_GLOBAL,
  EMU_SCRATCH,
  EMU_MUBUF,
  EMU_MTBUF,
  EMU_LDSDIR,
  EMU_MIMG,  // on GFX12 VIMAGE and VSAMPLE
  EMU_FORMAT_COUNT,
  EMU_FORMAT_GRAPHICS = EMU_FORMAT_COUNT,  // known, not for compute
  EMU_FORMAT_UNKNOWN
};

enum emu_operand_kind {
  EMU_OPERAND_NONE,
  EMU_OPERAND_SCALAR,    // reg: a scalar register, numbered the same on every target, see EMU_VCC_LO …
  EMU_OPERAND_VECTOR,    // reg: 0..255; from EMU_ACCUMULATOR on accumulation registers
  EMU_OPERAND_CONSTANT,  // value: inline constant or literal, already widened to `type`
  EMU_OPERAND_SPECIAL,   // reg: enum emu_special
};

// Scalar registers: s0..s105, then these. GFX10 swaps M0 and NULL in its encoding; here they are always so.
// A 64-bit operand at VCC_LO is VCC, at EXEC_LO it is EXEC. NULL reads 0 and swallows writes.
// Where emu_isa.scratch_in_sgprs, the last of them are two pairs that have names.
enum {
  EMU_FLAT_SCRATCH_LO = 102,
  EMU_XNACK_MASK_LO = 104,
  EMU_VCC_LO = 106,
  EMU_VCC_HI = 107,
  EMU_TTMP0 = 108,
  EMU_NULL = 124,
  EMU_M0 = 125,
  EMU_EXEC_LO = 126,
  EMU_EXEC_HI = 127,
  EMU_SCALAR_COUNT = 128
};

enum { EMU_ACCUMULATOR = 256 };  // the number of a0 among vector registers

enum emu_special {
  EMU_SHARED_BASE = 235,
  EMU_SHARED_LIMIT = 236,
  EMU_PRIVATE_BASE = 237,
  EMU_PRIVATE_LIMIT = 238,
  EMU_POPS_EXITING_WAVE_ID = 239,
  EMU_VCCZ = 251,
  EMU_EXECZ = 252,
  EMU_SCC = 253,
  EMU_LDS_DIRECT = 254
};

// What an operand's bits mean. It decides how constants widen: an inline float takes the operand's own format
// (1.0 is 0x3c00 in 16 bits, 0x3f800000 for F32 and 32-bit integers, a double in 64 bits, the high half of a float for
// BF16). In PKF16 it fills the low half and the high half is zero, other packed types take it as 32 bits. v_fma_mix:
// F16 where op_sel_hi says so. A WMMA accumulator's constant is one element in the element's format. A literal is the
// high word of F64, sign-extended to I64, zero-extended to the other 64-bit types, cut to the low half of 16-bit ones.
enum emu_type {
// clang-format off
#define EMU_TYPES(X)                                                                                    \
  X(NONE, 0)                                                                                            \
  X(B16, 1) X(I16, 1) X(U16, 1) X(F16, 1) X(BF16, 1)                                                    \
  X(B32, 1) X(I32, 1) X(U32, 1) X(F32, 1)                                                               \
  X(PKB16, 1) X(PKI16, 1) X(PKU16, 1) X(PKF16, 1) X(PKBF16, 1) X(PKI8, 1) X(PKI4, 1)                    \
  X(B64, 2) X(I64, 2) X(U64, 2) X(F64, 2)                                                               \
  X(PKF32, 2) X(PKB32, 2)                                                                               \
  X(B96, 3) X(B128, 4) X(B192, 6) X(B256, 8) X(B512, 16) X(B1024, 32)                                              \
  X(MASK, 0) X(TILE2, 2) X(TILE4, 4) X(TILE8, 8) X(TILEC, 0)                                            \
  X(FRAG1, 1) X(FRAG2, 2) X(FRAG4, 4) X(FRAG8, 8)
// clang-format on
#define X(name, dwords) EMU_##name,
  EMU_TYPES(X)
#undef X
      EMU_TYPE_COUNT
};
// MASK: one bit a lane, 1 or 2 dwords by the wave's size. TILE: a WMMA fragment of which lanes hold copies; TILEC,
// the accumulator, has 8 dwords in a wave of 32 lanes and 4 in one of 64. FRAG: a part of a matrix that all lanes share
// out, as many dwords in a wave of 32 lanes, and half of them, but one at least, in one of 64.

struct emu_operand {
  uint8_t kind;    // enum emu_operand_kind
  uint8_t type;    // enum emu_type
  uint8_t dwords;  // registers that it spans; 0 when kind is NONE
  bool literal;    // CONSTANT: came from the literal word
  uint16_t reg;    // CONSTANT: its code, 128..248 inline and 255 literal
  bool neg : 1;    // negate after abs; VOP3P: of the low half (neg_lo)
  bool abs : 1;
  bool sext : 1;       // SDWA: sign-extend the selected part
  bool high : 1;       // 16-bit operand: the high half of the register (op_sel, GFX11 `.h`, fma_mix op_sel)
  bool neg_high : 1;   // VOP3P: negate the high half's operand
  bool high_high : 1;  // VOP3P: op_sel_hi; the high result takes the high half. fma_mix: the source is f16
  uint64_t value;
};

enum emu_lanes { EMU_LANES_PLAIN, EMU_LANES_DPP16, EMU_LANES_DPP8, EMU_LANES_SDWA };

// DPP16 controls, as encoded in 9 bits.
enum {
  EMU_DPP_QUAD_PERM = 0x000,  // ..0x0ff
  EMU_DPP_ROW_SHL = 0x100,    // +1..15
  EMU_DPP_ROW_SHR = 0x110,
  EMU_DPP_ROW_ROR = 0x120,
  EMU_DPP_WAVE_SHL = 0x130,  // the next four on GFX9 alone: by one lane, over all of the wave
  EMU_DPP_WAVE_ROL = 0x134,
  EMU_DPP_WAVE_SHR = 0x138,
  EMU_DPP_WAVE_ROR = 0x13c,
  EMU_DPP_ROW_MIRROR = 0x140,
  EMU_DPP_ROW_HALF_MIRROR = 0x141,
  EMU_DPP_ROW_BCAST15 = 0x142,  // GFX9 alone: a row's last lane to the next row, and
  EMU_DPP_ROW_BCAST31 = 0x143,  // that of the first half to the second half
  EMU_DPP_ROW_SHARE = 0x150,
  EMU_DPP_ROW_XMASK = 0x160
};

// Scopes of a cache policy: a compute unit, a shader engine, the device, the system.
enum emu_scope { EMU_SCOPE_CU, EMU_SCOPE_SE, EMU_SCOPE_DEVICE, EMU_SCOPE_SYSTEM };

enum emu_sdwa_select { EMU_BYTE_0, EMU_BYTE_1, EMU_BYTE_2, EMU_BYTE_3, EMU_WORD_0, EMU_WORD_1, EMU_DWORD };
enum emu_sdwa_unused { EMU_UNUSED_PAD, EMU_UNUSED_SEXT, EMU_UNUSED_PRESERVE };

// Where operands stand, by format (a field that the instruction lacks has kind NONE):
//   SOP*    dst = sdst, src = ssrc0, ssrc1. SOPK, SOPP: imm is simm16, sign-extended even for s_cmpk_*_u32, which
//           wants it zero-extended. s_setreg_imm32: src[0] literal.
//           SOPK that reads its destination (s_addk, s_cmpk): the register is src[0], and dst where it is written.
//           S_SET_GPR_IDX_ON: imm says which operands are indexed.
//   VOP*    dst = vdst (or the scalar of v_readlane), sdst = carry or compare mask out (VCC, EXEC when implied),
//           src in the order of the mnemonic's operands; implied VCC in src[2], of V_DIV_FMAS* in src[3]. V_CMP*: only
//           sdst. V_FMAC*, V_PK_FMAC, V_DOT2ACC, V_DOT4C: the accumulator is dst and is not repeated in src. V_SWAP*:
//           dst and src[0] are both written.
//           V_MFMA*, V_SMFMAC*: imm is cbsz | abid << 3 | blgp << 7; V_SMFMAC*: dst is the accumulator, src[2] the
//           index. V_MFMA*F8F6F4 with scales: y.op is V_MFMA_LD_SCALE_B32, y.src those of A and B, and imm has the
//           numbers of their bytes from bit 10 and 12 on. V_BITOP3*: imm is the table. V_CVT_SCALEF32*: imm is op_sel.
//           V_SWMMAC*: dst is the accumulator too, imm the index key. V_CVT_*FP8, *BF8: imm is the byte's
//           number.
//   VOPD    as VOP for the first half; the second in y. Read all sources of both before writing either.
//   SMEM    dst = sdata, src[0] = sbase, or NONE where the PC is the base, src[1] = soffset or NONE, imm = offset in
//           bytes.
//   DS      dst, src[0] = addr, src[1] = data0, src[2] = data1, imm = 16-bit offset, or offset0 | offset1 << 8 in
//           elements for the 2ADDR forms (emu_isa_is_pair).
//   FLAT…   dst, src[0] = vaddr or NONE, src[1] = data, src[2] = saddr or NONE, imm = signed offset in bytes.
//   M*BUF   dst, src[0] = vaddr or NONE, src[1] = data, src[2] = srsrc, src[3] = soffset, imm = offset in bytes.
//           dst and src[1] are the same register for atomics that return; dst is NONE for those that do not.
//   MIMG    dst, or data in src[1], src[2] = the image's descriptor, src[3] = the sampler's or NONE; the address stands
//           in `image`.
//   LDSDIR  dst (lds_direct_load: the address comes from M0).
struct emu_half {
  uint16_t op;
  struct emu_operand dst, src[3];
};

enum emu_image_dim { EMU_IMAGE_1D, EMU_IMAGE_2D, EMU_IMAGE_3D, EMU_IMAGE_CUBE, EMU_IMAGE_1D_ARRAY, EMU_IMAGE_2D_ARRAY };
// What an access to an image has beside its operands: components, and the registers that hold the words of its address.
struct emu_image_access {
  uint8_t dim, dmask;  // enum emu_image_dim; bit i: component i
  bool unorm, a16, d16;
  uint8_t words;  // of the address
  uint8_t first;  // the word at which the coordinates begin
  uint8_t named;  // registers that the encoding names, the last of which may begin more; 0: the first alone
  uint8_t reg[16];
};

struct emu_inst {
  uint16_t op;     // enum emu_op; EMU_OP_NONE: nothing decoded
  uint8_t format;  // enum emu_format
  uint8_t lanes;   // enum emu_lanes
  uint8_t size;    // bytes: 4, 8, 12, 16 or 20
  uint8_t wave;    // lanes in the wave that it was decoded for: 32 or 64

  // A scalar pair or tuple started at a register that it cannot start at. The operand has been rounded down, as LLVM
  // does; what a GPU would do is not documented, so nobody should execute this.
  bool misaligned : 1;
  bool clamp : 1;
  uint8_t omod : 2;  // 0 none, 1 *2, 2 *4, 3 /2
  // memory
  bool glc : 1, slc : 1, dlc : 1;  // glc on an atomic: return the old value
  uint8_t temporal, scope;         // where these are the cache policy, glc is set for atomics that return
  bool no_offset : 1;              // SMEM: the register alone is the offset
  uint8_t prefetch;                // SMEM: of how many units of 128 bytes, less one
  bool gds : 1, offen : 1, idxen : 1, tfe : 1, lds : 1;
  uint8_t buffer_format;  // MTBUF: the 7-bit unified format
  // DPP
  bool fetch_inactive : 1, bound_ctrl : 1;
  uint8_t row_mask : 4, bank_mask : 4;
  uint16_t dpp_ctrl;  // DPP16, see EMU_DPP_*
  uint32_t dpp8;      // 8 selectors of 3 bits, lane 0 lowest
  // SDWA
  uint8_t dst_sel, dst_unused, src_sel[2];  // enum emu_sdwa_select, emu_sdwa_unused

  uint8_t wait_vdst, wait_vsrc;   // LDSDIR
  struct emu_image_access image;  // MIMG
  int32_t imm;
  uint32_t literal;  // the literal word as it stands; operands hold it widened
  struct emu_operand dst, sdst, src[4];
  struct emu_half y;  // VOPD
};

enum emu_decode_status {
  EMU_DECODE_OK,
  EMU_DECODE_TRUNCATED,  // fewer words than the encoding needs
  EMU_DECODE_OPCODE,     // no instruction of this target
  EMU_DECODE_OPERAND,    // a register or constant that the instruction cannot take there
  EMU_DECODE_RESERVED,   // a field that must be zero, or a modifier that the instruction does not have
  EMU_DECODE_GRAPHICS,   // known, not for compute: export, interpolation, images but for those of HIP
};

// A field of an encoding: its lowest bit, counted through all of the encoding's words, and how many bits it has; 0: the
// generation lacks it, and it reads as 0.
struct emu_field {
  uint8_t low, bits;
};

// Whose rules say how many instructions must lie between a product of matrices and what touches its registers.
enum emu_matrix_waits { EMU_MATRIX_WAITS_NONE, EMU_MATRIX_WAITS_908, EMU_MATRIX_WAITS_90A, EMU_MATRIX_WAITS_942 };

// A generation of the instruction set, by its properties: whoever must know asks for one of them, never for the name.
// One file each defines them (gfx10.c, …). What is private to the decoder and the printer stands behind `encoding`.
struct emu_isa {
  const char *name;  // LLVM's, of the processor that stands for it: "gfx1100"
  const struct emu_encoding *encoding;

  // 16-bit operands name halves of registers, and compilers wait for halves
  bool halves;

  uint8_t matrix_waits;     // enum emu_matrix_waits: which products of matrices leave to the compiler
  bool accumulators;        // there are accumulation registers, in the wave's file of vector registers,
  bool accumulators_apart;  // or in one of their own, as large
  bool scratch_given;       // FLAT_SCRATCH points at the wave's scratch when it begins

  // V_CMPX* writes its mask to VCC or to scalar registers as well as to EXEC
  bool compare_both;

  // each counter has an S_WAIT_* of its own; else S_WAITCNT has a field for each
  bool split_counters;

  // ---- how a wave begins
  bool packed_ids;          // the numbers of a work-item share v0; else each has a register
  bool groups_in_ttmp;      // the numbers of a group and of a wave in it stand in TTMP7 to TTMP9; else in SGPRs
  bool mode_in_descriptor;  // it has DX10_CLAMP and IEEE; else clamps make NaN zero, and there are no IEEE rules
  bool scratch_in_sgprs;    // FLAT_SCRATCH is a pair of scalar registers; else a hardware register
  bool xcc_id;              // a hardware register says on which of a card's accelerators a wave runs
  bool scratch_offset;      // an SGPR says where the wave's scratch lies in its group's; else the hardware knows

  // ---- the machine
  uint8_t lanes;                // in a wave, as the driver tells programs; kernels of GFX10 and later may choose
  uint8_t simd_waves;           // that a SIMD holds at most
  uint32_t simd_lds;            // bytes of LDS that four SIMDs share
  uint32_t group_lds;           // … and that a group may have
  uint8_t count_granule;        // vector registers that a descriptor's count counts in waves of 64; twice them in 32
  bool zeroes_high;             // 16-bit results make the other half of their register zero; see valu.c
  bool permutes_wave;           // DS_PERMUTE_B32 and DS_BPERMUTE_B32 reach all 64 lanes; else 32
  bool loads_lds;               // loads may go to LDS, at the byte that M0 has
  bool dlc_is_scope;            // dlc is sc1, which takes an access past the caches of the compute unit
  bool counts_stores;           // VMCNT counts stores as well as loads
  bool float8_fnuz;             // 8-bit floats are FNUZ; else those of OFP8
  bool matrices_flush;          // products of matrices of halves and BF16 have no denormals, whatever MODE says
  bool buffer_by_stride;        // a buffer's bounds follow from its stride; else its descriptor chooses
  uint16_t simd_registers;      // vector registers of 32 lanes that a SIMD has
  uint8_t simd_granule;         // how many of them a wave takes at a time
  bool dot_pairs;               // sums of products are those of dot_pairs.c; else those of dot.c
  bool comparand_first;         // DS_CMPSTORE*: data0 is what is compared, data1 what is stored
  bool grid_barrier_gws;        // groups of a cooperative grid meet in the global wave sync, not in memory
  bool message_dealloc;         // S_SENDMSG 3 gives the vector registers back
  struct emu_field v1_swizzle;  // in word 1 of a buffer's descriptor: lanes interleave
  struct emu_field v3_format;   // in word 3: the format; no bits: formatted access is not executed

  // The descriptor of an image, by the bits of its eight words. No bits of a format: images are not executed.
  struct emu_image_descriptor {
    struct emu_field format, width_low, width_high, height, depth, pitch, base_array, base_level, last_level;
  } image;
};

// What an element of a formatted buffer or an image is: components of as many bits each.
enum emu_pixel_kind {
  EMU_PIXEL_UNORM,
  EMU_PIXEL_SNORM,
  EMU_PIXEL_USCALED,
  EMU_PIXEL_SSCALED,
  EMU_PIXEL_UINT,
  EMU_PIXEL_SINT,
  EMU_PIXEL_FLOAT,
  EMU_PIXEL_SRGB
};
struct emu_pixel {
  uint8_t count, bits, kind;  // enum emu_pixel_kind
};
// The format behind its number in a descriptor. false: there is none, or its components differ in size.
bool emu_isa_pixel(const struct emu_isa *target, unsigned number, struct emu_pixel *out);
// The number of a format; 0: the target has none.
unsigned emu_isa_pixel_number(const struct emu_isa *target, const struct emu_pixel *pixel);

enum { EMU_ISA_COUNT = 14 };
extern const struct emu_isa emu_isa_gfx1030, emu_isa_gfx1100, emu_isa_gfx1201, emu_isa_gfx1103, emu_isa_gfx1150,
    emu_isa_gfx1151, emu_isa_gfx1010, emu_isa_gfx1012, emu_isa_gfx906, emu_isa_gfx900, emu_isa_gfx90a, emu_isa_gfx942,
    emu_isa_gfx908, emu_isa_gfx950;
const struct emu_isa *emu_isa_at(unsigned index);      // all of them, in that order
const struct emu_isa *emu_isa_find(const char *name);  // NULL: not one of ours

// Decodes the instruction at words[0]; reads at most n words. `wave` is 32 or 64. On failure *out has op NONE, and
// size is the encoding's length where it is known (else 4), so that a listing can go on.
enum emu_decode_status emu_isa_decode(const struct emu_isa *target, unsigned wave, const uint32_t *words, size_t n,
                                      struct emu_inst *out);
const char *emu_isa_reason(enum emu_decode_status status);  // a sentence

// Writes LLVM 19's text for the instruction (no leading tab) and returns its length, as snprintf does.
enum { EMU_ISA_TEXT = 256 };  // room for any instruction
size_t emu_isa_print(const struct emu_inst *inst, const struct emu_isa *target, char *text, size_t size);

// Names. emu_isa_name is the canonical one in lower case; emu_isa_mnemonic the target's, without _e32 and the like
// (NULL where the target lacks the opcode). The buffer is 64 bytes of the caller's.
const char *emu_isa_name(enum emu_op op, char name[64]);
const char *emu_isa_mnemonic(const struct emu_isa *target, enum emu_op op, char name[64]);

// Multiplies and adds floats and halves, as op_sel_hi says of each source; the second: to the high half.
static inline bool emu__is_mix_high(unsigned op) { return op == EMU_V_FMA_MIXHI_F16 || op == EMU_V_MAD_MIXHI_F16; }
static inline bool emu__is_mix(unsigned op) {
  return op == EMU_V_FMA_MIX_F32 || op == EMU_V_FMA_MIXLO_F16 || op == EMU_V_MAD_MIX_F32 || op == EMU_V_MAD_MIXLO_F16 ||
         emu__is_mix_high(op);
}

// Whether a DS instruction has two offsets, in elements, in place of one in bytes.
bool emu_isa_is_pair(enum emu_op op);
bool emu_isa_multiplies_doubles(enum emu_op op);  // V_MFMA_F64*
bool emu_isa_compares_exec(enum emu_op op);       // V_CMPX*
bool emu_isa_gathers(unsigned op);                // IMAGE_GATHER4*

// The counters that s_waitcnt's imm asks for, all ones where it does not wait.
struct emu_waitcnt {
  uint8_t vm, exp, lgkm;
};
struct emu_waitcnt emu_isa_waitcnt(const struct emu_isa *target, int32_t imm);

// Returns the `count` bits of the word from bit `low` on.
static inline uint32_t emu__bits(uint32_t word, unsigned low, unsigned count) {
  return word >> low & (uint32_t)((UINT64_C(1) << count) - 1);
}

// The same for a field of one word.
static inline uint32_t emu__field(uint32_t word, struct emu_field field) {
  return emu__bits(word, field.low, field.bits);
}

#endif
