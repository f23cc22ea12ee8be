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
const rdna__word_set rdna__word_sets[] = {
    {"float", "f32|f16|bf16"}, {"real", "f32|f16|bf16|f64"}, {"norm", "f32|f16|f16_wf32|bf16|bf16_wf32"},
    {"bits", "8|16|32|64"},    {"bytes", "8|16|32|64|128"},  {"blocks", &(RDNA_QUANT_FORMATS(NEXT))[1]},
};
const int rdna__word_set_count = sizeof rdna__word_sets / sizeof *rdna__word_sets;
