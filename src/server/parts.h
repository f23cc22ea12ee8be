/* A text taken apart for the interfaces: what the model thinks, what it says, and the tools that it calls. */
#ifndef RDNA_SERVER_PARTS_H
#define RDNA_SERVER_PARTS_H

#include "server/exchange.h"

/* |call|: which of the choice's calls it is. */
typedef void (*part_handler)(exchange *x, const news *n, const rdna__reply_part *part, int call, void *data);
/* Hands over each part that the news make certain; with the last news, whatever is left. False without memory. */
bool read_parts(exchange *x, const news *n, part_handler handle, void *data);
/* How many calls a choice had so far. */
int calls_of(const exchange *x, int index);

/* A finished choice. */
typedef struct whole_reply {
  bytes content, reasoning;
  json_t *calls; /* [{"name": "…", "arguments": "{…}"}] */
} whole_reply;
bool read_reply(exchange *x, int index, whole_reply *out);
void whole_reply_deinit(whole_reply *w);

void readers_free(exchange *x);

#endif
