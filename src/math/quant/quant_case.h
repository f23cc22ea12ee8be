/* Random blocks. */
#ifndef RDNA_MATH_QUANT_CASE_H
#define RDNA_MATH_QUANT_CASE_H

#include "base/random.h"
#include "rdna/tensor.h"

/* Fills |count| values of a quantized buffer; returns a bound of their magnitude, about 4. */
double rdna__fill_blocks(rdna__random *random, rdna_dtype format, void *blocks, int64_t count);

#endif
