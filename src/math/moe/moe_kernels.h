/* Routing tokens to experts: argument structs and the list of kernels; rdna/op/moe.h says what is computed. */
#ifndef RDNA_MATH_MOE_KERNELS_H
#define RDNA_MATH_MOE_KERNELS_H

#include <stdint.h>

#define MOE_EXPERTS 1024 /* at most, of a token */
#define MOE_CHOSEN 32    /* at most: one a lane */
#define MOE_GROUPS 32    /* at most */

/* 32 lanes have a token; lane i has experts i, i + 32, …. Sums go by lane, then in halves: 16 lanes with the other 16,
 * and so on. Grid x: ceil(tokens / MOE_ROUTE_TOKENS). */
#define MOE_ROUTE_THREADS 128
#define MOE_ROUTE_TOKENS (MOE_ROUTE_THREADS / 32)
struct moe_route_args {
  const float *logits; /* (tokens, experts) */
  const float *bias;   /* (experts) or NULL */
  int32_t *indices;    /* (tokens, chosen) */
  float *weights;      /* (tokens, chosen) */
  int64_t stride;      /* values from one row of logits to the next */
  int32_t tokens, experts, chosen;
  uint32_t score, normalised; /* an rdna_moe_score; 0 or 1 */
  int32_t groups, groups_kept, group_best;
  float scale;
  int32_t reserved;
};

#define RDNA_MOE_KERNELS(X) X(moe_route_f32, struct moe_route_args, MOE_ROUTE_THREADS, rdna__moe_route_case)

#endif
