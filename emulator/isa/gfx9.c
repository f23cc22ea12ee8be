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
static const struct emu_op_code codes_908[EMU_OP_COUNT] = {
#include "isa/codes_gfx9.def"
#include "isa/codes_gfx906.def"
#include "isa/codes_gfx908.def"
#include "isa/codes_gfx908_mfma.def"
#include "isa/codes_gfx9_gcn.def"
#include "isa/codes_gfx9_mad.def"
};
static const struct emu_op_code codes_90a[EMU_OP_COUNT] = {
#include "isa/codes_gfx9.def"
#include "isa/codes_gfx906.def"
#include "isa/codes_gfx908.def"
#include "isa/codes_gfx908_mfma.def"
#include "isa/codes_gfx90a.def"
#include "isa/codes_gfx90a_only.def"
#include "isa/codes_gfx9_mad.def"
};
static const struct emu_op_code codes_942[EMU_OP_COUNT] = {
#include "isa/codes_gfx9.def"
#include "isa/codes_gfx906.def"
#include "isa/codes_gfx908.def"
#include "isa/codes_gfx90a.def"
#include "isa/codes_gfx942.def"
#include "isa/codes_gfx942_only.def"
};
static const struct emu_op_code codes_950[EMU_OP_COUNT] = {
#include "isa/codes_gfx9.def"
#include "isa/codes_gfx906.def"
#include "isa/codes_gfx908.def"
#include "isa/codes_gfx90a.def"
#include "isa/codes_gfx942.def"
#include "isa/codes_gfx950.def"
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
static const uint16_t op_at_908[AT_END] = {
#include "isa/codes_gfx9.def"
#include "isa/codes_gfx906.def"
#include "isa/codes_gfx908.def"
#include "isa/codes_gfx908_mfma.def"
#include "isa/codes_gfx9_gcn.def"
#include "isa/codes_gfx9_mad.def"
};
static const uint16_t op_at_90a[AT_END] = {
#include "isa/codes_gfx9.def"
#include "isa/codes_gfx906.def"
#include "isa/codes_gfx908.def"
#include "isa/codes_gfx908_mfma.def"
#include "isa/codes_gfx90a.def"
#include "isa/codes_gfx90a_only.def"
#include "isa/codes_gfx9_mad.def"
};
static const uint16_t op_at_942[AT_END] = {
#include "isa/codes_gfx9.def"
#include "isa/codes_gfx906.def"
#include "isa/codes_gfx908.def"
#include "isa/codes_gfx90a.def"
#include "isa/codes_gfx942.def"
#include "isa/codes_gfx942_only.def"
};
static const uint16_t op_at_950[AT_END] = {
#include "isa/codes_gfx9.def"
#include "isa/codes_gfx906.def"
#include "isa/codes_gfx908.def"
#include "isa/codes_gfx90a.def"
#include "isa/codes_gfx942.def"
#include "isa/codes_gfx950.def"
};
#undef IS
#undef AS

#define HWREGS                                                                                                        \
  [1] = "MODE", [2] = "STATUS", [3] = "TRAPSTS", [4] = "HW_ID", [5] = "GPR_ALLOC", [6] = "LDS_ALLOC", [7] = "IB_STS", \
  [15] = "SH_MEM_BASES", [16] = "TBA_LO", [17] = "TBA_HI", [18] = "TMA_LO", [19] = "TMA_HI"
static const char *const hwregs[64] = {HWREGS};
static const char *const hwregs_942[64] = {HWREGS,
                                           [20] = "XCC_ID",
                                           [21] = "SQ_PERF_SNAPSHOT_DATA",
                                           [22] = "SQ_PERF_SNAPSHOT_DATA1",
                                           [23] = "SQ_PERF_SNAPSHOT_PC_LO",
                                           [24] = "SQ_PERF_SNAPSHOT_PC_HI"};

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
// ds_, flat_, buffer_: what the fields of the memory formats have besides.
#define ENCODING(hwregs_, ds_, flat_, buffer_)                                                                       \
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
  .ds = {.op = {17, 8}, .gds = {16, 1}, ds_},                                                                        \
  .flat = {.words = 2,                                                                                               \
           .none = 0x7f,                                                                                             \
           .op = {18, 7},                                                                                            \
           .segment = {14, 2},                                                                                       \
           .glc = {16, 1},                                                                                           \
           .slc = {17, 1},                                                                                           \
                                                                                                                     \
           .offset = {0, 13},                                                                                        \
           .vaddr = {32, 8},                                                                                         \
           .data = {40, 8},                                                                                          \
           .saddr = {48, 7},                                                                                         \
           .dst = {56, 8},                                                                                           \
           flat_},                                                                                                   \
  .buffer = {.words = 2,                                                                                             \
             .resource_unit = 4,                                                                                     \
                                                                                                                     \
             .op = {18, 7},                                                                                          \
             .typed_op = {15, 4},                                                                                    \
             .glc = {14, 1},                                                                                         \
             .slc = {17, 1},                                                                                         \
             .typed_slc = {54, 1},                                                                                   \
             .typed_dlc = {53, 1},                                                                                   \
             .lds = {16, 1},                                                                                         \
             .offen = {12, 1},                                                                                       \
             .idxen = {13, 1},                                                                                       \
             .offset = {0, 12},                                                                                      \
             .format = {19, 4},                                                                                      \
             .number_format = {23, 3},                                                                               \
             .vaddr = {32, 8},                                                                                       \
             .data = {40, 8},                                                                                        \
             .resource = {48, 5},                                                                                    \
             .soffset = {56, 8},                                                                                     \
             buffer_},                                                                                               \
  .vm = {0, 4}, .vm_high = {14, 2}, .exp = {4, 3}, .lgkm = {8, 4}, .messages = messages, .message_operations = true, \
  .number_formats = number_formats, .buffer_formats = data_formats, .hwregs = hwregs_

#define ALL(...) __VA_ARGS__
#define VEGA \
  ENCODING(hwregs, ALL(.spare = {25, 1}), ALL(.lds = {13, 1}, .nv = {55, 1}), ALL(.tfe = {55, 1}, .spare = {15, 1}))
static const struct emu_encoding encoding_900 = {.codes = codes_900, .op_at = op_at_900, VEGA};
static const struct emu_encoding encoding_906 = {.codes = codes_906, .op_at = op_at_906, VEGA};
static const struct emu_encoding encoding_908 = {
    .codes = codes_908, .op_at = op_at_908, .sums_long = true, .sums_accumulate = true, .silent_sums = true, VEGA};
static const struct emu_encoding encoding_90a = {
    .codes = codes_90a,
    .op_at = op_at_90a,
    .dpp_share = true,
    .sums_long = true,
    .gds_alone = true,
    .cache_names = {"glc", "slc", "scc"},
    ENCODING(hwregs, ALL(.accumulators = {25, 1}, .spare = {25, 1}),
             ALL(.lds = {13, 1}, .dlc = {25, 1}, .accumulators = {55, 1}),
             ALL(.dlc = {15, 1}, .accumulators = {55, 1}, .atomic_dlc = true))};
#define MI300                                                                                       \
  .dpp_share = true, .sums_long = true, .gds_alone = true, .neg_f64 = true, .byte_as_op_sel = true, \
  .cache_names = {"sc0", "nt", "sc1"},                                                              \
  ENCODING(hwregs_942, ALL(.accumulators = {25, 1}, .spare = {25, 1}),                              \
           ALL(.vector_is_set = true, .vector = {13, 1}, .dlc = {25, 1}, .accumulators = {55, 1}),  \
           ALL(.dlc = {15, 1}, .accumulators = {55, 1}, .atomic_dlc = true, .policy_alone = true))
static const struct emu_encoding encoding_942 = {.codes = codes_942, .op_at = op_at_942, MI300};
static const struct emu_encoding encoding_950 = {.codes = codes_950, .op_at = op_at_950, .wide_lds = true, MI300};

#define GFX9(name_, encoding_, ...)                                   \
  const struct emu_isa emu_isa_##name_ = {.name = #name_,             \
                                          .encoding = &(encoding_),   \
                                          .compare_both = true,       \
                                          .scratch_in_sgprs = true,   \
                                          .mode_in_descriptor = true, \
                                          .lanes = 64,                \
                                          .zeroes_high = true,        \
                                          .permutes_wave = true,      \
                                          .counts_stores = true,      \
                                          .loads_lds = true,          \
                                          .buffer_by_stride = true,   \
                                          .comparand_first = true,    \
                                          .grid_barrier_gws = true,   \
                                          .v1_swizzle = {31, 1},      \
                                          __VA_ARGS__}
#define VEGA_FILE                                                                                      \
  .simd_lds = 65536, .group_lds = 65536, .scratch_offset = true, .simd_waves = 10, .count_granule = 4, \
  .simd_registers = 512, .simd_granule = 8
#define CDNA_FILE                                                                                        \
  .accumulators = true, .packed_ids = true, .simd_waves = 8, .count_granule = 8, .simd_registers = 1024, \
  .simd_granule = 16
GFX9(gfx906, encoding_906, VEGA_FILE);
GFX9(gfx900, encoding_900, VEGA_FILE);
GFX9(gfx908, encoding_908, VEGA_FILE, .accumulators = true, .accumulators_apart = true,
     .matrix_waits = EMU_MATRIX_WAITS_908);
GFX9(gfx90a, encoding_90a, CDNA_FILE, .simd_lds = 65536, .group_lds = 65536, .scratch_offset = true,
     .matrices_flush = true, .matrix_waits = EMU_MATRIX_WAITS_90A);
GFX9(gfx942, encoding_942, CDNA_FILE, .simd_lds = 65536, .group_lds = 65536, .matrix_waits = EMU_MATRIX_WAITS_942,
     .scratch_given = true, .float8_fnuz = true, .xcc_id = true, .dlc_is_scope = true);
GFX9(gfx950, encoding_950, CDNA_FILE, .simd_lds = 163840, .group_lds = 163840, .matrix_waits = EMU_MATRIX_WAITS_942,
     .scratch_given = true, .xcc_id = true, .dlc_is_scope = true);
