/* Low-rank adapters on a command line: [NAME=]FILE[:SCALE]. */
#ifndef RDNA_COMMAND_ADAPTERS_H
#define RDNA_COMMAND_ADAPTERS_H

#include "command/options.h"
#include "rdna/llm_adapter.h"

typedef struct adapter_option {
  char name[128]; /* "": none is given */
  char path[4096];
  double scale; /* 1 where none is given */
} adapter_option;

/* A name has no slash, and a scale is a number behind the last colon. */
rdna_status read_adapter(const char *text, adapter_option *out);

/* Opens the adapters |texts|, whose names are not looked at, for a session without tokens. */
rdna_status adapt_session(rdna_llm *llm, rdna_llm_session *session, const option_texts *texts);

#endif
