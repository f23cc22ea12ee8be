/* The user's database of measurements: SQLite, shared by concurrent processes. If it cannot be used, the log says so
 * once, and everything works without it. */
#ifndef RDNA_KERNEL_TUNER_STORE_H
#define RDNA_KERNEL_TUNER_STORE_H

#include "base/status.h"

typedef struct rdna__tuner_store rdna__tuner_store;

/* One measurement. Strings are borrowed during the call that gives them. */
typedef struct rdna__tuner_row {
  const char *gpu, *arch, *driver; /* on which it was measured */
  const char *pack;                /* hash of those code objects in the pack whose kernels were compared */
  const char *operator_name, *shape, *libraries;
  const char *implementation, *next;
  double ms, next_ms;
} rdna__tuner_row;

/* RDNA_TUNE_FILE, or rdna/tune.sqlite in $XDG_CACHE_HOME or ~/.cache; "" when there is no such place. */
void rdna__tuner_store_path(char path[4096]);
/* Opens or makes the database. RDNA_IO_ERROR, RDNA_BAD_DATA: it cannot be opened, or is none of ours. */
rdna_status rdna__tuner_store_open(const char *path, rdna__tuner_store **out_store);
void rdna__tuner_store_close(rdna__tuner_store *store); /* NULL is fine */
/* Visits every measurement, or those of one device when |gpu| is not NULL. */
rdna_status rdna__tuner_store_read(rdna__tuner_store *store, const char *gpu, const char *arch,
                                   void (*visit)(void *context, const rdna__tuner_row *row), void *context);
/* Inserts a measurement, or replaces the one of the same key. */
rdna_status rdna__tuner_store_write(rdna__tuner_store *store, const rdna__tuner_row *row);

#endif
