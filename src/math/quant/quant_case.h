/* For cases and tests: random blocks of every format. */
#ifndef RDNA_MATH_QUANT_CASE_H
#define RDNA_MATH_QUANT_CASE_H

#include "base/random.h"
#include "rdna/tensor.h"

/* Fills |blocks| with the random blocks of |count| values; returns an upper bound of the values' magnitude, about 4. */
double rdna__fill_blocks(rdna__random *random, rdna_dtype format, void *blocks, int64_t count);

#endif
