/* What `rdna kernels` knows of kernels' sources. */
#ifndef RDNA_COMMAND_WHERE_H
#define RDNA_COMMAND_WHERE_H

#include <stdbool.h>

#include "command/places.h"
#include "math/common/plan/route.h"

/* Prints the places and routes of the kernel called |name|, of all with |name| in theirs, or of "all". Returns the
 * process's exit status. */
int show_where(const char *name, bool json);

/* Prints docs/kernels.md. */
int show_markdown(void);

bool is_chosen_by(const kernel_place *place, const rdna__route *route);
/* The file that holds |table|, from src/ on. */
const char *route_source(const rdna__route_table *table);

#endif
