/* Measurements as text: those that we ship (tuned.csv, built in), and what `rdna tune --export` writes.
 *
 *     gpu,arch,driver,pack,operator,shape,libraries,implementation,ms,next,next_ms
 *
 * is the first line; a line a measurement follows, without quotes. Empty lines and those that start with # are left
 * out. Shipped results are used for any version of the driver, if the code and the libraries that were compared are the
 * same. */
#ifndef RDNA_KERNEL_TUNER_SHIPPED_H
#define RDNA_KERNEL_TUNER_SHIPPED_H

#include <stddef.h>

#include "kernel/tuner_store.h"

/* Visits every line. RDNA_BAD_DATA names the line that breaks the format; those before it were visited. */
rdna_status rdna__tuner_text_read(const char *text, size_t size,
                                  void (*visit)(void *context, const rdna__tuner_row *row), void *context);
#define RDNA__TUNER_TEXT_HEADER "gpu,arch,driver,pack,operator,shape,libraries,implementation,ms,next,next_ms"
/* The line for |row| without its end. RDNA_INVALID_ARGUMENT: a text that the format cannot hold. */
rdna_status rdna__tuner_text_write(const rdna__tuner_row *row, char line[1024]);

/* tuned.csv */
extern const char rdna__tuner_shipped[];
extern const size_t rdna__tuner_shipped_size;

#endif
