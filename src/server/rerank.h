/* What requests for an order of texts say. */
#ifndef RDNA_SERVER_RERANK_H
#define RDNA_SERVER_RERANK_H

#include "server/fields.h"

/* All but the numbers are borrowed from the request. */
typedef struct rerank_form {
  const json_t *query;     /* a text */
  const json_t *documents; /* each a text, or an object with one: see rerank_document */
  int64_t top;             /* so many of the best are told */
  bool returns_documents;
} rerank_form;

bool read_rerank_form(const json_t *json, rerank_form *out, problem *p);
/* The text of a document; NULL: it has none. */
const json_t *rerank_document(const json_t *document);

#endif
