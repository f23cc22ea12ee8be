/* Jobs of the worker's interface that draw: asked with one request, and read with another. */
#ifndef RDNA_SERVER_IMAGES_JOBS_H
#define RDNA_SERVER_IMAGES_JOBS_H

#include "server/images.h"

/* POST /v1/jobs and GET /v1/jobs/ID/stream of a server that draws. */
enum MHD_Result handle_image_jobs(exchange *x);
enum MHD_Result handle_image_job_stream(exchange *x, const char *id);

/* Under the lock: */
/* Forgets what nobody came to read. */
void image_jobs_sweep(server *s, double now);
/* Forgets all. */
void image_jobs_end(server *s);

#endif
