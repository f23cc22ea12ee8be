/* The thread that tells a hive that its worker lives: POST /v1/heartbeat. */
#ifndef RDNA_SERVER_HEARTBEAT_H
#define RDNA_SERVER_HEARTBEAT_H

#include <stdbool.h>

#include "rdna/status.h"

typedef struct heartbeat heartbeat;

/* Sends one at once, and then every |seconds|; |is_healthy| is asked each time, on the thread of its own. |url| is
 * http://HOST[:PORT][/PATH], |token| goes along as 'Authorization: Bearer', NULL for none; both are copied. |log|: a
 * line of JSON on stderr for each that the hive did not take. RDNA_INVALID_ARGUMENT: the URL is no such. */
rdna_status heartbeat_start(const char *url, const char *worker_id, const char *token, double seconds, bool log,
                            bool (*is_healthy)(void *data), void *data, heartbeat **out);
void heartbeat_stop(heartbeat *h); /* NULL is fine */

typedef struct url_parts {
  char host[256], port[8], path[512]; /* the path without a slash at its end */
} url_parts;
rdna_status url_parse(const char *url, url_parts *out);

#endif
