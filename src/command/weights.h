/* What rdna convert and rdna quantize share. */
#ifndef RDNA_COMMAND_WEIGHTS_H
#define RDNA_COMMAND_WEIGHTS_H

#include "model/weights/quantize.h"

/* Prints the tensors and bytes of each type; returns the exit status. |before|: also those of the file that was read.
 */
int print_weight_counts(const rdna__weight_counts *counts, bool before, bool json);

#endif
