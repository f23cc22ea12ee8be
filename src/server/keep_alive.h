/* How long a model stays in memory after a request, as Ollama's clients say it. */
#ifndef RDNA_SERVER_KEEP_ALIVE_H
#define RDNA_SERVER_KEEP_ALIVE_H

#include "server/fields.h"

/* Reads the field 'keep_alive': a number of seconds, or a text such as "5m", "1h30m", "500ms" or "300". Below 0 is for
 * ever, and so is then |*out|; it stays as it is where the field is missing. False with a problem. */
bool read_keep_alive(const json_t *json, double *out, problem *p);

#endif
