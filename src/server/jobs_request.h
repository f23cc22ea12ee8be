/* What a job of the worker's interface asks: the body of POST /v1/jobs. */
#ifndef RDNA_SERVER_JOBS_REQUEST_H
#define RDNA_SERVER_JOBS_REQUEST_H

#include "server/request.h"

/* [{"field", "constraint", "message", "value"?}, …] of all that is wrong with |json|, a new list; NULL without memory.
 * |worker_id|: this worker's, or NULL. */
json_t *jobs_check(const json_t *json, const char *worker_id);
/* The settings of a body that jobs_check found nothing wrong with. */
bool jobs_settings(const json_t *json, settings *s, problem *p);

#endif
