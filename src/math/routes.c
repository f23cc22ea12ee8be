/* The tables of routes of all families. */
#include "kernel/host.h"
#include "math/common/plan/route.h"
#include "math/quant/quant_unpack.h"

#define TABLES(TABLE)           \
  TABLE(attention)              \
  TABLE(cast)                   \
  TABLE(channel_norm)           \
  TABLE(compact)                \
  TABLE(contiguous)             \
  TABLE(conv)                   \
  TABLE(conv_direct)            \
  TABLE(conv_product)           \
  TABLE(conv_turn)              \
  TABLE(copy)                   \
  TABLE(cross_entropy)          \
  TABLE(cross_entropy_backward) \
  TABLE(embedding)              \
  TABLE(fused)                  \
  TABLE(gemm)                   \
  TABLE(gemm_i8)                \
  TABLE(index_offset)           \
  TABLE(indexed)                \
  TABLE(linear_quant_groups)    \
  TABLE(loss)                   \
  TABLE(movement)               \
  TABLE(norm)                   \
  TABLE(norm_backward)          \
  TABLE(optim)                  \
  TABLE(pad)                    \
  TABLE(pointwise)              \
  TABLE(pool)                   \
  TABLE(quant)                  \
  TABLE(quant_group)            \
  TABLE(random)                 \
  TABLE(reduce)                 \
  TABLE(rope)                   \
  TABLE(scan)                   \
  TABLE(scan_index)             \
  TABLE(sdpa)                   \
  TABLE(search)                 \
  TABLE(segment)                \
  TABLE(softmax)                \
  TABLE(softmax_backward)       \
  TABLE(softmax_dim)            \
  TABLE(sort)                   \
  TABLE(topk)                   \
  TABLE(upsample)

#define DECLARE(table) extern const rdna__route_table rdna__##table##_routes;
TABLES(DECLARE)
#define ADDRESS(table) &rdna__##table##_routes,
const rdna__route_table *const rdna__route_tables[] = {TABLES(ADDRESS)};
const int rdna__route_table_count = sizeof rdna__route_tables / sizeof *rdna__route_tables;

#define NEXT(name, NAME) "|" #name
const rdna__word_set rdna__word_sets[] = {
    {"float", "f32|f16|bf16"}, {"real", "f32|f16|bf16|f64"}, {"norm", "f32|f16|f16_wf32|bf16|bf16_wf32"},
    {"bits", "8|16|32|64"},    {"bytes", "8|16|32|64|128"},  {"blocks", &(RDNA_QUANT_FORMATS(NEXT))[1]},
};
const int rdna__word_set_count = sizeof rdna__word_sets / sizeof *rdna__word_sets;
