/* What Ollama's interface has in several files. */
#ifndef RDNA_SERVER_OLLAMA_H
#define RDNA_SERVER_OLLAMA_H

#include "server/exchange.h"

/* What the request says of the model's time in memory holds until another one says something else. */
bool keep_model(exchange *x, const json_t *json, problem *p);

#endif
