/* Checks of weights of integers in quantization groups, which the operators on them share. */
#ifndef RDNA_MATH_QUANT_GROUP_WEIGHTS_H
#define RDNA_MATH_QUANT_GROUP_WEIGHTS_H

#include "base/status.h"
#include "math/quant/group_kernels.h"
#include "rdna/op/quant.h"

/* A call on such weights: the caller fills in op_name, rdna__check_group_weights the rest. */
typedef struct rdna__group_request {
  const char *op_name;
  struct group_weights_args args;
  bool is_u4;
} rdna__group_request;

/* What kernels' names call the type of the codes. */
static inline const char *rdna__group_codes(const rdna__group_request *r) { return r->is_u4 ? "u4" : "i8"; }

/* Checks |w| as weights with rows of |k| values and fills in |r|. |meaning|: whose size |k| is, for messages. */
rdna_status rdna__check_group_weights(rdna__group_request *r, const rdna_quant_groups *w, int64_t k,
                                      const char *meaning);

/* Fails if |dense|, called |name|, shares memory with any part of |w|. */
rdna_status rdna__check_group_apart(const char *op_name, const char *name, const rdna_tensor *dense,
                                    const rdna_quant_groups *w);

#endif
