/* Weights in groups of integers, as the operators on them check them. */
#ifndef RDNA_MATH_QUANT_GROUP_WEIGHTS_H
#define RDNA_MATH_QUANT_GROUP_WEIGHTS_H

#include "base/status.h"
#include "math/quant/group_kernels.h"
#include "rdna/op/quant.h"

typedef struct rdna__group_request {
  const char *op_name;
  struct group_weights_args args;
  bool is_u4;
} rdna__group_request;

/* What kernels call the codes. */
static inline const char *rdna__group_codes(const rdna__group_request *r) { return r->is_u4 ? "u4" : "i8"; }

/* |w| as weights of rows of |k| values, whose tensor is called |meaning|. */
rdna_status rdna__check_group_weights(rdna__group_request *r, const rdna_quant_groups *w, int64_t k,
                                      const char *meaning);

/* |dense|, called |name|, shares no memory with any part of |w|. */
rdna_status rdna__check_group_apart(const char *op_name, const char *name, const rdna_tensor *dense,
                                    const rdna_quant_groups *w);

#endif
