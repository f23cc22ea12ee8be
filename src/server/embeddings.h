/* What requests for vectors of texts say beside the texts. */
#ifndef RDNA_SERVER_EMBEDDINGS_H
#define RDNA_SERVER_EMBEDDINGS_H

#include "server/bytes.h"
#include "server/fields.h"

/* encoding_format and dimensions, which is 0 where it is missing. */
bool read_embedding_form(const json_t *json, bool *out_base64, int64_t *out_dimensions, problem *p);
/* Appends |size| bytes as RFC 4648's base64. */
void append_base64(bytes *out, const void *data, size_t size);

#endif
