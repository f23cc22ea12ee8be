/* What the device and the host compute alike for one expert of one token. */
#ifndef RDNA_MATH_MOE_MATH_H
#define RDNA_MATH_MOE_MATH_H

#include "kernel/scalar.h"
#include "math/moe/moe_kernels.h"
#include "rdna/op/moe.h"

/* The score of a logit, from the row's largest logit and the sum of exp(logit - largest). */
RDNA_SCALAR float moe_score(uint32_t score, float logit, float largest, float sum) {
  return score == RDNA_MOE_SCORE_SOFTMAX   ? scalar_exp(logit - largest) / sum
         : score == RDNA_MOE_SCORE_SIGMOID ? scalar_sigmoid(logit)
                                           : logit;
}

/* A number that is the larger the earlier an expert with |value| ranks: never 0. */
RDNA_SCALAR uint32_t moe_rank(float value) {
  uint32_t bits = scalar_bits(value + 0.0f); /* -0 is 0 */
  return value != value ? 0xffffffffu : bits >> 31 ? ~bits : bits | 0x80000000u;
}
/* The same with its number: of equal ones the lower number ranks first. */
RDNA_SCALAR uint64_t moe_key(float value, int32_t number) {
  return (uint64_t)moe_rank(value) << 32 | (0xffffffffu - (uint32_t)number);
}
RDNA_SCALAR int32_t moe_number(uint64_t key) { return (int32_t)(0xffffffffu - (uint32_t)key); }

#endif
