/* Connections, and how long each has been sending its request: who sends a byte now and then holds a place for ever
 * otherwise. */
#ifndef RDNA_SERVER_CLIENTS_H
#define RDNA_SERVER_CLIENTS_H

#include <microhttpd.h>

#include "server/server.h"

/* For the HTTP library: a connection came or went. |data| is the server. */
void client_notify(void *data, struct MHD_Connection *connection, void **socket_context,
                   enum MHD_ConnectionNotificationCode what);
/* The connection's request is here as a whole, */
void client_arrived(struct MHD_Connection *connection, server *s);
/* and answered: the next one may come. */
void client_answered(struct MHD_Connection *connection, server *s);
/* Under the lock: closes connections whose requests have been coming for too long, or can come no more. */
void clients_sweep(server *s, double now);

#endif
