// GFX12 (RDNA 4). Source: AMD "RDNA4 Instruction Set Architecture", chapter "Microcode Formats".
#include "isa/isa_tables.h"

static const struct emu_op_code codes[EMU_OP_COUNT] = {
#define IS(op, format, code) EMU_CODE_ROW(op, format, code, NULL)
#define AS(op, format, code, alias) EMU_CODE_ROW(op, format, code, alias)
#include "isa/codes_gfx12.def"
#undef IS
#undef AS
};

static const uint16_t op_at[AT_END] = {
#define IS(op, format, code) EMU_INDEX_ROW(op, format, code)
#define AS(op, format, code, alias) EMU_INDEX_ROW(op, format, code)
#include "isa/codes_gfx12.def"
#undef IS
#undef AS
};

static const char *const hwregs[64] = {[1] = "MODE",
                                       [2] = "STATUS",
                                       [4] = "STATE_PRIV",
                                       [5] = "GPR_ALLOC",
                                       [6] = "LDS_ALLOC",
                                       [7] = "IB_STS",
                                       [10] = "PERF_SNAPSHOT_DATA",
                                       [11] = "PERF_SNAPSHOT_PC_LO",
                                       [12] = "PERF_SNAPSHOT_PC_HI",
                                       [15] = "PERF_SNAPSHOT_DATA1",
                                       [16] = "PERF_SNAPSHOT_DATA2",
                                       [17] = "EXCP_FLAG_PRIV",
                                       [18] = "EXCP_FLAG_USER",
                                       [19] = "TRAP_CTRL",
                                       [20] = "SCRATCH_BASE_LO",
                                       [21] = "SCRATCH_BASE_HI",
                                       [23] = "HW_ID1",
                                       [24] = "HW_ID2",
                                       [29] = "SHADER_CYCLES_LO",
                                       [30] = "SHADER_CYCLES_HI",
                                       [31] = "DVGPR_ALLOC_LO",
                                       [32] = "DVGPR_ALLOC_HI"};

static const char *const messages[16] = {
    [1] = "MSG_INTERRUPT", [2] = "MSG_HS_TESSFACTOR", [3] = "MSG_DEALLOC_VGPRS", [9] = "MSG_GS_ALLOC_REQ"};

#define FOUR(format) format, format, format, format
static const struct emu_encoding encoding = {
    .codes = codes,
    .op_at = op_at,
    .format = {FOUR(EMU_FORMAT_UNKNOWN), FOUR(EMU_MUBUF), FOUR(EMU_VOPD),                           // 0xc0 …
               EMU_VOP3P, EMU_FORMAT_GRAPHICS, EMU_LDSDIR, EMU_FORMAT_UNKNOWN,                      // 0xcc
               FOUR(EMU_MIMG), FOUR(EMU_VOP3), FOUR(EMU_DS), FOUR(EMU_FORMAT_UNKNOWN),              // 0xd0 …
               FOUR(EMU_FORMAT_UNKNOWN), FOUR(EMU_MIMG), FOUR(EMU_FORMAT_UNKNOWN), FOUR(EMU_FLAT),  // 0xe0 …
               FOUR(EMU_FORMAT_UNKNOWN), FOUR(EMU_SMEM), FOUR(EMU_FORMAT_GRAPHICS), FOUR(EMU_FORMAT_UNKNOWN)},  // 0xf0
    .depctr_holds = true,
    .ldsdir_vsrc = true,
    .dpp_compare = true,
    .dpp_long = true,
    .exponent_signs = true,
    .vop1_in_vop3 = 0x180,
    .literal_long = true,
    .dpp8 = true,
    .ds = {.op = {18, 8}, .gds = {17, 1}},
    .smem = {.offset_shown = true, .op = {13, 6}, .temporal = {23, 2}, .scope = {21, 2}, .offset = {32, 24}},
    .flat = {.words = 3,
             .none = 0x7c,
             .flat_none = 0x7c,
             .flat_signed = true,
             .vector_is_set = true,
             .op = {14, 8},
             .segment = {24, 2},
             .temporal = {52, 3},
             .scope = {50, 2},
             .offset = {72, 24},
             .vaddr = {64, 8},
             .data = {55, 8},
             .saddr = {0, 7},
             .vector = {49, 1},
             .dst = {32, 8}},
    .buffer = {.words = 3,
               .resource_unit = 1,
               .atomic_dlc = true,
               .offset_signed = true,
               .typed = {21, 1},
               .op = {14, 8},
               .typed_op = {14, 7},
               .temporal = {52, 3},
               .scope = {50, 2},
               .tfe = {22, 1},
               .offen = {62, 1},
               .idxen = {63, 1},
               .offset = {72, 24},
               .format = {55, 7},
               .vaddr = {64, 8},
               .data = {32, 8},
               .resource = {41, 9},
               .soffset = {0, 7}},
    .sampler_mark = 0x39,
    .image = {{.words = 3,
               .resource_unit = 1,
               .slots = 5,
               .dim = {0, 3},
               .r128 = {4, 1},
               .d16 = {5, 1},
               .a16 = {6, 1},
               .op = {14, 8},
               .dmask = {22, 4},
               .data = {32, 8},
               .resource = {41, 9},
               .scope = {50, 2},
               .temporal = {52, 3},
               .tfe = {55, 1},
               .address = {{64, 8}, {72, 8}, {80, 8}, {88, 8}, {56, 8}}},
              {.words = 3,
               .resource_unit = 1,
               .slots = 4,
               .dim = {0, 3},
               .tfe = {3, 1},
               .r128 = {4, 1},
               .d16 = {5, 1},
               .a16 = {6, 1},
               .unorm = {13, 1},
               .op = {14, 8},
               .dmask = {22, 4},
               .data = {32, 8},
               .lwe = {40, 1},
               .resource = {41, 9},
               .scope = {50, 2},
               .temporal = {52, 3},
               .sampler = {55, 9},
               .address = {{64, 8}, {72, 8}, {80, 8}, {88, 8}}}},
    .vm = {10, 6},
    .exp = {0, 3},
    .lgkm = {4, 6},
    .hwregs = hwregs,
    .messages = messages,
    .returning_messages = 8,
    .srgb_format = 64,
    .buffer_formats = emu__gfx11_buffer_formats,
};

const struct emu_isa emu_isa_gfx1201 = {
    .name = "gfx1201",
    .encoding = &encoding,
    .halves = true,
    .packed_ids = true,
    .split_counters = true,
    .groups_in_ttmp = true,
    .lanes = 32,
    .simd_waves = 16,
    .simd_lds = 131072,
    .group_lds = 65536,
    .count_granule = 4,
    .simd_registers = 1536,
    .simd_granule = 24,
    .message_dealloc = true,
    .dot_pairs = true,
    .v1_swizzle = {30, 2},
    .v3_format = {12, 6},
    .image = {.format = {49, 8},
              .base_level = {57, 5},
              .width_low = {62, 2},
              .width_high = {64, 14},
              .height = {78, 16},
              .last_level = {111, 5},
              .depth = {128, 14},
              .pitch = {128, 16},
              .base_array = {144, 13}},
};
