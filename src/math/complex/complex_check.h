/* For operators: complex tensors. */
#ifndef RDNA_MATH_COMPLEX_CHECK_H
#define RDNA_MATH_COMPLEX_CHECK_H

#include "math/common/plan/check.h"

/* Checks that the tensor is complex as rdna/op/complex.h says. */
rdna_status rdna__complex_check(const char *name, const char *argument, const rdna_tensor *t);
/* A checked |t| without the dimension of its pairs, its strides in pairs. */
rdna_tensor rdna__complex_values(const rdna_tensor *t);

#endif
