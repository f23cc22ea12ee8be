/* The different values of a vector. */
#ifndef RDNA_TENSORFLOW_DISTINCT_H
#define RDNA_TENSORFLOW_DISTINCT_H

#include "kernel.h"

struct distinct {
  rdna_tensor sorted, order; /* the values in rising order, and where each was */
  rdna_tensor first;         /* of each in that order whether it is the first of its value */
  rdna_tensor number;        /* and the number of its value among the different ones */
  int64_t count;             /* how many different values there are, for which the host waits */
};

/* Of |x|, of rank 1, in scratch memory. Each NaN is another value. */
rdna_status find_distinct(call *c, const rdna_tensor *x, struct distinct *out);
/* |out| (x's size): the number of each of x's values, in x's order, where |number| is in the sorted one. */
rdna_status back_in_order(call *c, const struct distinct *d, const rdna_tensor *number, rdna_tensor *out);

#endif
