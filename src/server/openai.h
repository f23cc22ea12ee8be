/* OpenAI's interface: what its requests ask, and how it writes answers. */
#ifndef RDNA_SERVER_OPENAI_H
#define RDNA_SERVER_OPENAI_H

#include "server/request.h"

/* Fills |r| and the exchange from the body; false with a problem. */
bool openai_read_chat(exchange *x, request *r, problem *p);
bool openai_read_completion(exchange *x, request *r, problem *p);

/* {"error": {…}} */
void openai_refuse(const problem *p, bytes *out);

#endif
