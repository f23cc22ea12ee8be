/* The tables of routes of all families, which are found in their sources, and the sets of words in their names. */
#include "kernel/host.h"
#include "math/common/plan/route.h"
#include "math/quant/quant_unpack.h"
#include "math/route_tables.h"

#define DECLARE(table) extern const rdna__route_table rdna__##table##_routes;
ROUTE_TABLES(DECLARE)
#define ADDRESS(table) &rdna__##table##_routes,
const rdna__route_table *const rdna__route_tables[] = {ROUTE_TABLES(ADDRESS)};
const int rdna__route_table_count = sizeof rdna__route_tables / sizeof *rdna__route_tables;

#define NEXT(name, NAME) "|" #name
#define DENSE_16 "f16_f16_f16|f16_f16_f32|bf16_bf16_bf16|bf16_bf16_f32"
#define FNUZ_PAIRS "f8_e4m3fnuz_f8_e4m3fnuz|f8_e4m3fnuz_f8_e5m2fnuz|f8_e5m2fnuz_f8_e4m3fnuz"
const rdna__word_set rdna__word_sets[] = {
    {"float", "f32|f16|bf16"},
    {"real", "f32|f16|bf16|f64"},
    {"norm", "f32|f16|f16_wf32|bf16|bf16_wf32"}, /* values; of f32 weights */
    {"bits", "8|16|32|64"},
    {"bytes", "8|16|32|64|128"},
    {"blocks", &(RDNA_QUANT_FORMATS(NEXT))[1]},
    {"dense", "f32_f32_f32|f32_f16_f32|f32_bf16_f32|" DENSE_16}, /* A, B, C of a product */
    {"dense16", DENSE_16},
    {"pair8", "f8_e4m3fn_f8_e4m3fn|f8_e4m3fn_f8_e5m2|f8_e5m2_f8_e4m3fn|" FNUZ_PAIRS}, /* A, B of a product */
};
const int rdna__word_set_count = sizeof rdna__word_sets / sizeof *rdna__word_sets;
