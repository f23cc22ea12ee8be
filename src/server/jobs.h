/* Jobs of the worker's interface: asked with one request, and read with another. */
#ifndef RDNA_SERVER_JOBS_H
#define RDNA_SERVER_JOBS_H

#include "server/exchange.h"

typedef struct kept_job kept_job;

/* Under the lock: */
/* |x| reads its job no more; what is read, whole or in part, is forgotten. */
void jobs_leave(exchange *x);
/* Forgets what nobody came to read. */
void jobs_sweep(server *s, double now);
/* Forgets all. */
void jobs_end(server *s);

#endif
