/* Device code: the functions of a cell's gates, for every type that gates are computed in. */
#ifndef RDNA_MATH_RECURRENT_CELL_FUNCTIONS_H
#define RDNA_MATH_RECURRENT_CELL_FUNCTIONS_H

#include "kernel/prelude.h"
#include "kernel/scalar64.h"
#include "math/common/device/doubles.h"

RDNA_DEVICE float logistic(float x) { return scalar_sigmoid(x); }
RDNA_DEVICE double logistic(double x) { return scalar64_sigmoid(x); }
RDNA_DEVICE float hyperbolic(float x) { return scalar_tanh(x); }
RDNA_DEVICE double hyperbolic(double x) { return scalar64_tanh(x); }

#endif
