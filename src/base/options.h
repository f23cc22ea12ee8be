/* Reading structs of options from callers that were compiled against an older or a newer header. Such a struct begins
 * with size_t size, and grows at its end alone. */
#ifndef RDNA_BASE_OPTIONS_H
#define RDNA_BASE_OPTIONS_H

#include <stddef.h>

#include "base/status.h"

/* |*known|, as this library knows the struct, becomes what the caller's |given| says; fields that an older header lacks
 * become zero. RDNA_INVALID_ARGUMENT: |given| is NULL or its size was not set. RDNA_UNSUPPORTED: a field that only a
 * newer header has is not zero. */
#define RDNA__OPTIONS(op_name, argument, given, known) \
  ((void)sizeof((given) == (known)), rdna__options_read(op_name, argument, given, known, sizeof *(known)))
rdna_status rdna__options_read(const char *op_name, const char *argument, const void *given, void *known,
                               size_t known_size);

#endif
