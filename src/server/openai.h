/* OpenAI's interface: what its requests ask, and how it writes answers. */
#ifndef RDNA_SERVER_OPENAI_H
#define RDNA_SERVER_OPENAI_H

#include "server/request.h"

/* Fills |r| and the exchange from the body; false with a problem. */
bool openai_read_chat(exchange *x, request *r, problem *p);
bool openai_read_completion(exchange *x, request *r, problem *p);

/* The request's prompts from |field|: a text, ids, or a list of at most |most| texts and lists of ids. */
bool openai_read_prompts(const exchange *x, request *r, const char *field, size_t most, problem *p);

/* {"error": {…}} */
void openai_refuse(const problem *p, bytes *out);

#endif
