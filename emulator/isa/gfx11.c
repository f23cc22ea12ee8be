// GFX11 (RDNA 3 and 3.5). Source: AMD "RDNA3 Instruction Set Architecture", chapter "Microcode Formats"; sizes of the
// register files: LLVM's features of processors.
#include "isa/isa_tables.h"

#define IS(op, format, code) EMU_CODE_ROW(op, format, code, NULL)
#define AS(op, format, code, alias) EMU_CODE_ROW(op, format, code, alias)
static const struct emu_op_code codes[EMU_OP_COUNT] = {
#include "isa/codes_gfx11.def"
};
static const struct emu_op_code codes_115[EMU_OP_COUNT] = {
#include "isa/codes_gfx115.def"
};
#undef IS
#undef AS

#define IS(op, format, code) EMU_INDEX_ROW(op, format, code)
#define AS(op, format, code, alias) EMU_INDEX_ROW(op, format, code)
static const uint16_t op_at[AT_END] = {
#include "isa/codes_gfx11.def"
};
static const uint16_t op_at_115[AT_END] = {
#include "isa/codes_gfx115.def"
};
#undef IS
#undef AS

static const char *const hwregs[64] = {[1] = "MODE",
                                       [2] = "STATUS",
                                       [3] = "TRAPSTS",
                                       [5] = "GPR_ALLOC",
                                       [6] = "LDS_ALLOC",
                                       [7] = "IB_STS",
                                       [15] = "SH_MEM_BASES",
                                       [18] = "PERF_SNAPSHOT_PC_LO",
                                       [19] = "PERF_SNAPSHOT_PC_HI",
                                       [20] = "FLAT_SCR_LO",
                                       [21] = "FLAT_SCR_HI",
                                       [23] = "HW_ID1",
                                       [24] = "HW_ID2",
                                       [27] = "PERF_SNAPSHOT_DATA",
                                       [29] = "SHADER_CYCLES"};

static const char *const messages[16] = {NULL, "MSG_INTERRUPT",      "MSG_HS_TESSFACTOR", "MSG_DEALLOC_VGPRS",
                                         NULL, "MSG_STALL_WAVE_GEN", "MSG_HALT_WAVES",    NULL,
                                         NULL, "MSG_GS_ALLOC_REQ"};

const char *const emu__gfx11_buffer_formats[] = {
    "8 UNORM SNORM USCALED SSCALED UINT SINT",
    "16 UNORM SNORM USCALED SSCALED UINT SINT FLOAT",
    "8_8 UNORM SNORM USCALED SSCALED UINT SINT",
    "32 UINT SINT FLOAT",
    "16_16 UNORM SNORM USCALED SSCALED UINT SINT FLOAT",
    "10_11_11 FLOAT",
    "11_11_10 FLOAT",
    "10_10_10_2 UNORM SNORM UINT SINT",
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
#define ENCODING                                                                                                 \
  .format = {FOUR(EMU_FORMAT_UNKNOWN), FOUR(EMU_FORMAT_UNKNOWN),                                                 \
             FOUR(EMU_VOPD),           EMU_VOP3P,                                                                \
             EMU_FORMAT_GRAPHICS,      EMU_LDSDIR,                                                               \
             EMU_FORMAT_UNKNOWN,       FOUR(EMU_FORMAT_UNKNOWN),                                                 \
             FOUR(EMU_VOP3),           FOUR(EMU_DS),                                                             \
             FOUR(EMU_FLAT),           FOUR(EMU_MUBUF),                                                          \
             FOUR(EMU_FORMAT_UNKNOWN), FOUR(EMU_MTBUF),                                                          \
             FOUR(EMU_FORMAT_UNKNOWN), FOUR(EMU_MIMG),                                                           \
             FOUR(EMU_SMEM),           FOUR(EMU_FORMAT_GRAPHICS),                                                \
             FOUR(EMU_FORMAT_UNKNOWN)},                                                                          \
  .depctr_holds = true, .gds = true, .dpp_compare = true, .dpp_long = true, .exponent_signs = true,              \
  .vop1_in_vop3 = 0x180, .literal_long = true, .dpp8 = true, .ds = {.op = {18, 8}, .gds = {17, 1}},              \
  .smem = {.policy_is_read = true, .op = {18, 8}, .glc = {14, 1}, .dlc = {13, 1}, .offset = {32, 21}},           \
  .flat = {.words = 2,                                                                                           \
           .none = 0x7c,                                                                                         \
           .flat_none = 0x7c,                                                                                    \
           .vector_is_set = true,                                                                                \
           .op = {18, 7},                                                                                        \
           .segment = {16, 2},                                                                                   \
           .glc = {14, 1},                                                                                       \
           .slc = {15, 1},                                                                                       \
           .dlc = {13, 1},                                                                                       \
           .offset = {0, 13},                                                                                    \
           .vaddr = {32, 8},                                                                                     \
           .data = {40, 8},                                                                                      \
           .saddr = {48, 7},                                                                                     \
           .vector = {55, 1},                                                                                    \
           .dst = {56, 8}},                                                                                      \
  .buffer = {.words = 2,                                                                                         \
             .resource_unit = 4,                                                                                 \
             .atomic_dlc = true,                                                                                 \
             .op = {18, 8},                                                                                      \
             .typed_op = {15, 4},                                                                                \
             .glc = {14, 1},                                                                                     \
             .slc = {12, 1},                                                                                     \
             .dlc = {13, 1},                                                                                     \
             .tfe = {53, 1},                                                                                     \
             .offen = {54, 1},                                                                                   \
             .idxen = {55, 1},                                                                                   \
             .offset = {0, 12},                                                                                  \
             .format = {19, 7},                                                                                  \
             .vaddr = {32, 8},                                                                                   \
             .data = {40, 8},                                                                                    \
             .resource = {48, 5},                                                                                \
             .soffset = {56, 8}},                                                                                \
  .image = {{.words = 2,                                                                                         \
             .resource_unit = 4,                                                                                 \
             .slots = 1,                                                                                         \
             .nsa_goes_on = true,                                                                                \
             .nsa = {0, 1},                                                                                      \
             .dim = {2, 3},                                                                                      \
             .unorm = {7, 1},                                                                                    \
             .dmask = {8, 4},                                                                                    \
             .slc = {12, 1},                                                                                     \
             .dlc = {13, 1},                                                                                     \
             .glc = {14, 1},                                                                                     \
             .r128 = {15, 1},                                                                                    \
             .a16 = {16, 1},                                                                                     \
             .d16 = {17, 1},                                                                                     \
             .op = {18, 8},                                                                                      \
             .address = {{32, 8}},                                                                               \
             .data = {40, 8},                                                                                    \
             .resource = {48, 5},                                                                                \
             .tfe = {53, 1},                                                                                     \
             .lwe = {54, 1},                                                                                     \
             .sampler = {58, 5}}},                                                                               \
  .vm = {10, 6}, .exp = {0, 3}, .lgkm = {4, 6}, .hwregs = hwregs, .messages = messages, .returning_messages = 7, \
  .srgb_format = 64, .buffer_formats = emu__gfx11_buffer_formats

static const struct emu_encoding encoding = {.codes = codes, .op_at = op_at, ENCODING};
static const struct emu_encoding encoding_115 = {.codes = codes_115, .op_at = op_at_115, ENCODING};

// Of the smaller ones a SIMD has fewer registers.
#define GFX11(name_, encoding_, registers, granule)                          \
  const struct emu_isa emu_isa_##name_ = {.name = #name_,                    \
                                          .encoding = &(encoding_),          \
                                          .halves = true,                    \
                                          .packed_ids = true,                \
                                          .mode_in_descriptor = true,        \
                                          .lanes = 32,                       \
                                          .simd_waves = 16,                  \
                                          .simd_lds = 131072,                \
                                          .group_lds = 65536,                \
                                          .count_granule = 4,                \
                                          .simd_registers = registers,       \
                                          .simd_granule = granule,           \
                                          .message_dealloc = true,           \
                                          .v1_swizzle = {30, 2},             \
                                          .v3_format = {12, 6},              \
                                          .image = {.width_low = {62, 2},    \
                                                    .width_high = {64, 12},  \
                                                    .height = {78, 14},      \
                                                    .base_level = {108, 4},  \
                                                    .last_level = {112, 4},  \
                                                    .depth = {128, 13},      \
                                                    .pitch = {128, 14},      \
                                                    .base_array = {144, 13}, \
                                                    .format = {52, 8}}}
GFX11(gfx1100, encoding, 1536, 24);
GFX11(gfx1103, encoding, 1024, 16);
GFX11(gfx1150, encoding_115, 1024, 16);
GFX11(gfx1151, encoding_115, 1536, 24);
