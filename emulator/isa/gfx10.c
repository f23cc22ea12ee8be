// GFX10.3 (RDNA 2) and GFX10.1 (RDNA). Source: AMD "RDNA 2 Instruction Set Architecture", chapter "Microcode Formats".
#include "isa/isa_tables.h"

#define IS(op, format, code) EMU_CODE_ROW(op, format, code, NULL)
#define AS(op, format, code, alias) EMU_CODE_ROW(op, format, code, alias)
static const struct emu_op_code codes_1030[EMU_OP_COUNT] = {
#include "isa/codes_gfx10.def"
#include "isa/codes_gfx103.def"
#include "isa/codes_gfx10_dot.def"
};
static const struct emu_op_code codes_1010[EMU_OP_COUNT] = {
#include "isa/codes_gfx10.def"
#include "isa/codes_gfx101.def"
};
static const struct emu_op_code codes_1012[EMU_OP_COUNT] = {
#include "isa/codes_gfx10.def"
#include "isa/codes_gfx101.def"
#include "isa/codes_gfx10_dot.def"
};
#undef IS
#undef AS

#define IS(op, format, code) EMU_INDEX_ROW(op, format, code)
#define AS(op, format, code, alias) EMU_INDEX_ROW(op, format, code)
static const uint16_t op_at_1030[AT_END] = {
#include "isa/codes_gfx10.def"
#include "isa/codes_gfx103.def"
#include "isa/codes_gfx10_dot.def"
};
static const uint16_t op_at_1010[AT_END] = {
#include "isa/codes_gfx10.def"
#include "isa/codes_gfx101.def"
};
static const uint16_t op_at_1012[AT_END] = {
#include "isa/codes_gfx10.def"
#include "isa/codes_gfx101.def"
#include "isa/codes_gfx10_dot.def"
};
#undef IS
#undef AS

#define HWREGS                                                                                                     \
  [1] = "MODE", [2] = "STATUS", [3] = "TRAPSTS", [5] = "GPR_ALLOC", [6] = "LDS_ALLOC", [7] = "IB_STS",             \
  [15] = "SH_MEM_BASES", [16] = "TBA_LO", [17] = "TBA_HI", [18] = "TMA_LO", [19] = "TMA_HI", [20] = "FLAT_SCR_LO", \
  [21] = "FLAT_SCR_HI", [23] = "HW_ID1", [24] = "HW_ID2", [25] = "POPS_PACKER"
static const char *const hwregs_101[64] = {HWREGS, [22] = "XNACK_MASK"};
static const char *const hwregs_103[64] = {HWREGS, [29] = "SHADER_CYCLES"};

static const char *const messages[16] = {NULL,
                                         "MSG_INTERRUPT",
                                         "MSG_GS",
                                         "MSG_GS_DONE",
                                         "MSG_SAVEWAVE",
                                         "MSG_STALL_WAVE_GEN",
                                         "MSG_HALT_WAVES",
                                         "MSG_ORDERED_PS_DONE",
                                         "MSG_EARLY_PRIM_DEALLOC",
                                         "MSG_GS_ALLOC_REQ",
                                         "MSG_GET_DOORBELL",
                                         "MSG_GET_DDID",
                                         NULL,
                                         NULL,
                                         NULL,
                                         "MSG_SYSMSG"};

static const char *const buffer_formats[] = {
    "8 UNORM SNORM USCALED SSCALED UINT SINT",
    "16 UNORM SNORM USCALED SSCALED UINT SINT FLOAT",
    "8_8 UNORM SNORM USCALED SSCALED UINT SINT",
    "32 UINT SINT FLOAT",
    "16_16 UNORM SNORM USCALED SSCALED UINT SINT FLOAT",
    "10_11_11 UNORM SNORM USCALED SSCALED UINT SINT FLOAT",
    "11_11_10 UNORM SNORM USCALED SSCALED UINT SINT FLOAT",
    "10_10_10_2 UNORM SNORM USCALED SSCALED UINT SINT",
    "2_10_10_10 UNORM SNORM USCALED SSCALED UINT SINT",
    "8_8_8_8 UNORM SNORM USCALED SSCALED UINT SINT",
    "32_32 UINT SINT FLOAT",
    "16_16_16_16 UNORM SNORM USCALED SSCALED UINT SINT FLOAT",
    "32_32_32 UINT SINT FLOAT",
    "32_32_32_32 UINT SINT FLOAT",
    NULL,
};

#define FOUR(format) format, format, format, format
// 0xc0 …: words by their upper bits, four places a line, as emu_encoding has them.
#define ENCODING                                                                                                      \
  .format = {FOUR(EMU_FORMAT_UNKNOWN),                                                                                \
             FOUR(EMU_FORMAT_UNKNOWN),                                                                                \
             FOUR(EMU_FORMAT_GRAPHICS),                                                                               \
             EMU_VOP3P,                                                                                               \
             EMU_FORMAT_UNKNOWN,                                                                                      \
             EMU_FORMAT_UNKNOWN,                                                                                      \
             EMU_FORMAT_UNKNOWN,                                                                                      \
             FOUR(EMU_FORMAT_UNKNOWN),                                                                                \
             FOUR(EMU_VOP3),                                                                                          \
             FOUR(EMU_DS),                                                                                            \
             FOUR(EMU_FLAT),                                                                                          \
             FOUR(EMU_MUBUF),                                                                                         \
             FOUR(EMU_FORMAT_UNKNOWN),                                                                                \
             FOUR(EMU_MTBUF),                                                                                         \
             FOUR(EMU_FORMAT_UNKNOWN),                                                                                \
             FOUR(EMU_MIMG),                                                                                          \
             FOUR(EMU_SMEM),                                                                                          \
             FOUR(EMU_FORMAT_GRAPHICS),                                                                               \
             FOUR(EMU_FORMAT_UNKNOWN)},                                                                               \
  .m0_before_null = true, .lds_direct = true, .gds = true, .sdwa = true, .vop1_in_vop3 = 0x180, .literal_long = true, \
  .dpp8 = true, .ds = {.op = {18, 8}, .gds = {17, 1}},                                                                \
  .smem = {.op = {18, 8}, .glc = {16, 1}, .dlc = {14, 1}, .offset = {32, 21}},                                        \
  .flat = {.words = 2,                                                                                                \
                                                                                                                      \
           .none = 0x7d,                                                                                              \
           .flat_none = 0x7d,                                                                                         \
           .op = {18, 7},                                                                                             \
           .segment = {14, 2},                                                                                        \
           .glc = {16, 1},                                                                                            \
           .slc = {17, 1},                                                                                            \
           .dlc = {12, 1},                                                                                            \
           .lds = {13, 1},                                                                                            \
           .offset = {0, 12},                                                                                         \
           .vaddr = {32, 8},                                                                                          \
           .data = {40, 8},                                                                                           \
           .saddr = {48, 7},                                                                                          \
           .vector = {55, 1},                                                                                         \
           .dst = {56, 8}},                                                                                           \
  .buffer = {.words = 2,                                                                                              \
             .resource_unit = 4,                                                                                      \
             .op = {18, 8},                                                                                           \
             .typed_op = {16, 3},                                                                                     \
             .typed_op_high = {53, 1},                                                                                \
             .glc = {14, 1},                                                                                          \
             .slc = {54, 1},                                                                                          \
             .dlc = {15, 1},                                                                                          \
             .lds = {16, 1},                                                                                          \
             .tfe = {55, 1},                                                                                          \
             .offen = {12, 1},                                                                                        \
             .idxen = {13, 1},                                                                                        \
             .offset = {0, 12},                                                                                       \
             .format = {19, 7},                                                                                       \
             .vaddr = {32, 8},                                                                                        \
             .data = {40, 8},                                                                                         \
             .resource = {48, 5},                                                                                     \
             .soffset = {56, 8}},                                                                                     \
  .image = {{.words = 2,                                                                                              \
             .resource_unit = 4,                                                                                      \
             .slots = 1,                                                                                              \
             .op = {18, 7},                                                                                           \
             .op_high = {0, 1},                                                                                       \
             .nsa = {1, 2},                                                                                           \
             .dim = {3, 3},                                                                                           \
             .dlc = {7, 1},                                                                                           \
             .dmask = {8, 4},                                                                                         \
             .unorm = {12, 1},                                                                                        \
             .glc = {13, 1},                                                                                          \
             .r128 = {15, 1},                                                                                         \
             .tfe = {16, 1},                                                                                          \
             .lwe = {17, 1},                                                                                          \
             .slc = {25, 1},                                                                                          \
             .address = {{32, 8}},                                                                                    \
             .data = {40, 8},                                                                                         \
             .resource = {48, 5},                                                                                     \
             .sampler = {53, 5},                                                                                      \
             .a16 = {62, 1},                                                                                          \
             .d16 = {63, 1}}},                                                                                        \
  .vm = {0, 4}, .vm_high = {14, 2}, .exp = {4, 3}, .lgkm = {8, 6}, .messages = messages, .message_operations = true,  \
  .srgb_format = 128, .buffer_formats = buffer_formats

static const struct emu_encoding encoding_1030 = {.codes = codes_1030,
                                                  .op_at = op_at_1030,
                                                  .hwregs = hwregs_103,
                                                  .scratch_alone = true,
                                                  .depctr_holds = true,
                                                  ENCODING};
static const struct emu_encoding encoding_1010 = {
    .codes = codes_1010, .op_at = op_at_1010, .hwregs = hwregs_101, ENCODING};
static const struct emu_encoding encoding_1012 = {
    .codes = codes_1012, .op_at = op_at_1012, .hwregs = hwregs_101, ENCODING};

// Source of the register files' sizes: LLVM's features of processors.
#define GFX10(name_, encoding_, granule)                                     \
  const struct emu_isa emu_isa_##name_ = {.name = #name_,                    \
                                          .encoding = &(encoding_),          \
                                          .scratch_offset = true,            \
                                          .mode_in_descriptor = true,        \
                                          .lanes = 32,                       \
                                          .simd_waves = 16,                  \
                                          .simd_lds = 131072,                \
                                          .group_lds = 65536,                \
                                          .count_granule = 4,                \
                                          .simd_registers = 1024,            \
                                          .simd_granule = granule,           \
                                          .comparand_first = true,           \
                                          .grid_barrier_gws = true,          \
                                          .v1_swizzle = {31, 1},             \
                                          .v3_format = {12, 7},              \
                                          .image = {.width_low = {62, 2},    \
                                                    .width_high = {64, 12},  \
                                                    .height = {78, 14},      \
                                                    .base_level = {108, 4},  \
                                                    .last_level = {112, 4},  \
                                                    .depth = {128, 13},      \
                                                    .pitch = {128, 14},      \
                                                    .base_array = {144, 13}, \
                                                    .format = {52, 9}}}
GFX10(gfx1030, encoding_1030, 16);
GFX10(gfx1010, encoding_1010, 8);
GFX10(gfx1012, encoding_1012, 8);
