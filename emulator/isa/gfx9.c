// GFX9: Vega and the first Instinct cards. Source: AMD '"Vega" Instruction Set Architecture' and '"Vega" 7nm
// Instruction Set Architecture', chapter "Microcode Formats".
#include "isa/isa_tables.h"

#define IS(op, format, code) EMU_CODE_ROW(op, format, code, NULL)
#define AS(op, format, code, alias) EMU_CODE_ROW(op, format, code, alias)
static const struct emu_op_code codes_900[EMU_OP_COUNT] = {
#include "isa/codes_gfx9.def"
#include "isa/codes_gfx900.def"
#include "isa/codes_gfx9_gcn.def"
#include "isa/codes_gfx9_mad.def"
};
static const struct emu_op_code codes_906[EMU_OP_COUNT] = {
#include "isa/codes_gfx9.def"
#include "isa/codes_gfx906.def"
#include "isa/codes_gfx9_gcn.def"
#include "isa/codes_gfx9_mad.def"
};
#undef IS
#undef AS

#define IS(op, format, code) EMU_INDEX_ROW(op, format, code)
#define AS(op, format, code, alias) EMU_INDEX_ROW(op, format, code)
static const uint16_t op_at_900[AT_END] = {
#include "isa/codes_gfx9.def"
#include "isa/codes_gfx900.def"
#include "isa/codes_gfx9_gcn.def"
#include "isa/codes_gfx9_mad.def"
};
static const uint16_t op_at_906[AT_END] = {
#include "isa/codes_gfx9.def"
#include "isa/codes_gfx906.def"
#include "isa/codes_gfx9_gcn.def"
#include "isa/codes_gfx9_mad.def"
};
#undef IS
#undef AS

static const char *const hwregs[64] = {
    [1] = "MODE",   [2] = "STATUS",        [3] = "TRAPSTS", [4] = "HW_ID",   [5] = "GPR_ALLOC", [6] = "LDS_ALLOC",
    [7] = "IB_STS", [15] = "SH_MEM_BASES", [16] = "TBA_LO", [17] = "TBA_HI", [18] = "TMA_LO",   [19] = "TMA_HI"};

static const char *const messages[16] = {[1] = "MSG_INTERRUPT",       [2] = "MSG_GS",
                                         [3] = "MSG_GS_DONE",         [4] = "MSG_SAVEWAVE",
                                         [5] = "MSG_STALL_WAVE_GEN",  [6] = "MSG_HALT_WAVES",
                                         [7] = "MSG_ORDERED_PS_DONE", [8] = "MSG_EARLY_PRIM_DEALLOC",
                                         [9] = "MSG_GS_ALLOC_REQ",    [10] = "MSG_GET_DOORBELL",
                                         [15] = "MSG_SYSMSG"};

static const char *const data_formats[] = {"INVALID",     "8",        "16",          "8_8",        "32",      "16_16",
                                           "10_11_11",    "11_11_10", "10_10_10_2",  "2_10_10_10", "8_8_8_8", "32_32",
                                           "16_16_16_16", "32_32_32", "32_32_32_32", "RESERVED_15"};
static const char *const number_formats[] = {"UNORM", "SNORM", "USCALED",    "SSCALED",
                                             "UINT",  "SINT",  "RESERVED_6", "FLOAT"};

#define FOUR(format) format, format, format, format
// 0xc0 …: words by their upper bits, four places a line, as emu_encoding has them.
#define ENCODING                                                                                                     \
  .format = {FOUR(EMU_SMEM),                                                                                         \
             FOUR(EMU_FORMAT_GRAPHICS),                                                                              \
             FOUR(EMU_FORMAT_UNKNOWN),                                                                               \
             FOUR(EMU_FORMAT_UNKNOWN),                                                                               \
             FOUR(EMU_VOP3),                                                                                         \
             FOUR(EMU_FORMAT_GRAPHICS),                                                                              \
             FOUR(EMU_DS),                                                                                           \
             FOUR(EMU_FLAT),                                                                                         \
             FOUR(EMU_MUBUF),                                                                                        \
             FOUR(EMU_FORMAT_UNKNOWN),                                                                               \
             FOUR(EMU_MTBUF),                                                                                        \
             FOUR(EMU_FORMAT_UNKNOWN),                                                                               \
             FOUR(EMU_FORMAT_GRAPHICS),                                                                              \
             FOUR(EMU_FORMAT_UNKNOWN),                                                                               \
             FOUR(EMU_FORMAT_UNKNOWN),                                                                               \
             FOUR(EMU_FORMAT_UNKNOWN)},                                                                              \
  .vop1_in_vop3 = 0x140, .vop3p_in_vop3 = true, .no_null = true, .m0_before_null = true, .lds_direct = true,         \
  .gds = true, .dpp_wave = true, .sdwa = true,                                                                       \
  .smem = {.op = {18, 8}, .glc = {16, 1}, .offset = {32, 21}, .register_too = {14, 1}, .immediate = {17, 1}},        \
  .ds = {.op = {17, 8}, .gds = {16, 1}, .spare = {25, 1}},                                                           \
  .flat = {.words = 2,                                                                                               \
           .none = 0x7f,                                                                                             \
           .op = {18, 7},                                                                                            \
           .segment = {14, 2},                                                                                       \
           .glc = {16, 1},                                                                                           \
           .slc = {17, 1},                                                                                           \
           .lds = {13, 1},                                                                                           \
           .offset = {0, 13},                                                                                        \
           .vaddr = {32, 8},                                                                                         \
           .data = {40, 8},                                                                                          \
           .saddr = {48, 7},                                                                                         \
           .dst = {56, 8},                                                                                           \
           .nv = {55, 1}},                                                                                           \
  .buffer = {.words = 2,                                                                                             \
             .resource_unit = 4,                                                                                     \
             .spare = {15, 1},                                                                                       \
             .op = {18, 7},                                                                                          \
             .typed_op = {15, 4},                                                                                    \
             .glc = {14, 1},                                                                                         \
             .slc = {17, 1},                                                                                         \
             .typed_slc = {54, 1},                                                                                   \
             .lds = {16, 1},                                                                                         \
             .tfe = {55, 1},                                                                                         \
             .offen = {12, 1},                                                                                       \
             .idxen = {13, 1},                                                                                       \
             .offset = {0, 12},                                                                                      \
             .format = {19, 4},                                                                                      \
             .number_format = {23, 3},                                                                               \
             .vaddr = {32, 8},                                                                                       \
             .data = {40, 8},                                                                                        \
             .resource = {48, 5},                                                                                    \
             .soffset = {56, 8}},                                                                                    \
  .vm = {0, 4}, .vm_high = {14, 2}, .exp = {4, 3}, .lgkm = {8, 4}, .messages = messages, .message_operations = true, \
  .number_formats = number_formats, .buffer_formats = data_formats, .hwregs = hwregs

static const struct emu_encoding encoding_900 = {.codes = codes_900, .op_at = op_at_900, ENCODING};
static const struct emu_encoding encoding_906 = {.codes = codes_906, .op_at = op_at_906, ENCODING};

#define GFX9(name_, encoding_)                                        \
  const struct emu_isa emu_isa_##name_ = {.name = #name_,             \
                                          .encoding = &(encoding_),   \
                                          .compare_both = true,       \
                                          .scratch_in_sgprs = true,   \
                                          .scratch_offset = true,     \
                                          .mode_in_descriptor = true, \
                                          .lanes = 64,                \
                                          .simd_waves = 10,           \
                                          .simd_lds = 65536,          \
                                          .count_granule = 4,         \
                                          .zeroes_high = true,        \
                                          .permutes_wave = true,      \
                                          .counts_stores = true,      \
                                          .buffer_by_stride = true,   \
                                          .simd_registers = 512,      \
                                          .simd_granule = 8,          \
                                          .comparand_first = true,    \
                                          .grid_barrier_gws = true,   \
                                          .v1_swizzle = {31, 1}}
GFX9(gfx906, encoding_906);
GFX9(gfx900, encoding_900);
