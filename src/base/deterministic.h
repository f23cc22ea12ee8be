/* Whether operators must give the same bits from run to run; see rdna/tune.h. */
#ifndef RDNA_BASE_DETERMINISTIC_H
#define RDNA_BASE_DETERMINISTIC_H

#include <stdbool.h>

/* For an operator with a fast path whose bits vary: it is taken only while this is false. */
bool rdna__deterministic(void);

#endif
