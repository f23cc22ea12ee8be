/* What the server tells of itself: a JSON object a line on stderr, if it is to tell. */
#ifndef RDNA_SERVER_LOG_H
#define RDNA_SERVER_LOG_H

#include <jansson.h>

/* Writes |line| with the time and the name of the event before it, in one call so that lines stay whole; takes it. Not
 * under a lock: whoever reads stderr may be slow. What cannot be written is lost. */
void log_event(const char *event, json_t *line);

#endif
