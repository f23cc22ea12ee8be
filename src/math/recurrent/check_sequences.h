/* Checks of what operators over sequences with a state are given. */
#ifndef RDNA_MATH_RECURRENT_CHECK_SEQUENCES_H
#define RDNA_MATH_RECURRENT_CHECK_SEQUENCES_H

#include "base/status.h"
#include "math/recurrent/sequences.h"
#include "rdna/op/recurrent.h"

/* Checks |given| for a batch of |tokens| and for |state|, whose first dimension is slots, and fills in both results. */
rdna_status rdna__check_sequences(const char *op_name, const rdna_sequences *given, int64_t tokens,
                                  const rdna_tensor *state, rdna_sequences *out_known, struct sequences *out_sequences);

#endif
