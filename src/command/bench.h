/* The two halves of rdna bench. */
#ifndef RDNA_COMMAND_BENCH_H
#define RDNA_COMMAND_BENCH_H

#include <jansson.h>

#include "rdna/device.h"

/* Times operators whose name has |filter| in it ("" is all) and prints a table, or appends to |json| when it is not
 * NULL. */
rdna_status bench_operators(rdna_device *device, const char *filter, json_t *json);

/* Times a model's prompt of |prompt| tokens and then |decode| single tokens. */
rdna_status bench_model(rdna_device *device, const char *path, int prompt, int decode, json_t *json);

#endif
