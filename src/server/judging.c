#include "server/judging.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static const rdna_text QUERY = {"{query}", 7}, DOCUMENT = {"{document}", 10};

/* Where |part| begins in |text|; NULL: nowhere. */
static const char *find(rdna_text text, rdna_text part) { return memmem(text.data, text.size, part.data, part.size); }

/* Moves |*begin| behind the last control token before |first|, and |*end| to the first one behind |last|. */
static rdna_status narrow(const rdna_tokenizer *tokenizer, const char *first, const char *last, const char **begin,
                          const char **end) {
  size_t count = rdna_tokenizer_get_info(tokenizer)->token_count;
  for (size_t id = 0; id < count; id++) {
    rdna_token_type type;
    rdna_text piece;
    RDNA_TRY(rdna_tokenizer_type(tokenizer, (int32_t)id, &type));
    RDNA_TRY(rdna_tokenizer_piece(tokenizer, (int32_t)id, &piece));
    if (type != RDNA_TOKEN_TYPE_CONTROL || piece.size == 0) continue;
    for (const char *at; (at = find((rdna_text){*begin, (size_t)(*end - *begin)}, piece)) != NULL;) {
      if (at + piece.size <= first) {
        *begin = at + piece.size;
      } else if (at >= last) {
        *end = at;
      } else {
        return rdna__fail(RDNA_BAD_DATA,
                          "control token '%.*s' stands between {query} and {document} of the template "
                          "'rerank'",
                          (int)piece.size, piece.data);
      }
    }
  }
  return RDNA_OK;
}

rdna_status judging_open(const rdna_gguf *file, const rdna_tokenizer *tokenizer, judging *out) {
  static const char name[] = "tokenizer.chat_template.rerank";
  rdna_text text;
  *out = (judging){0};
  if (!rdna_gguf_find_key(file, name, NULL)) return RDNA_OK;
  RDNA_TRY(rdna_gguf_get_text(file, name, &text));
  const char *query = find(text, QUERY), *document = find(text, DOCUMENT);
  if (!query || !document)
    return rdna__fail(RDNA_BAD_DATA, "the template 'rerank' has no place for the %s", query ? "document" : "query");
  const char *begin = text.data, *end = text.data + text.size;
  bool in_order = query < document;
  RDNA_TRY(narrow(tokenizer, in_order ? query : document, in_order ? document + DOCUMENT.size : query + QUERY.size,
                  &begin, &end));
  out->head = (rdna_text){text.data, (size_t)(begin - text.data)};
  out->middle = (rdna_text){begin, (size_t)(end - begin)};
  out->tail = (rdna_text){end, (size_t)(text.data + text.size - end)};
  return RDNA_OK;
}

static char *put(char *to, rdna_text text) {
  if (text.size) memcpy(to, text.data, text.size);
  return to + text.size;
}

/* The middle with its places filled: texts of clients are not looked through for further ones. Free with free(). */
static rdna_status fill(rdna_text middle, rdna_text query, rdna_text document, rdna_text *out) {
  char *text = malloc(middle.size + query.size + document.size + 1), *to = text;
  if (!text) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a pair of texts");
  const char *at_query = find(middle, QUERY), *at_document = find(middle, DOCUMENT);
  const char *from = middle.data, *end = middle.data + middle.size;
  for (int i = 0; i < 2; i++) {
    bool is_query = (at_query < at_document) == (i == 0);
    const char *place = is_query ? at_query : at_document;
    to = put(to, (rdna_text){from, (size_t)(place - from)});
    to = put(to, is_query ? query : document);
    from = place + (is_query ? QUERY.size : DOCUMENT.size);
  }
  to = put(to, (rdna_text){from, (size_t)(end - from)});
  *out = (rdna_text){text, (size_t)(to - text)};
  return RDNA_OK;
}

rdna_status judging_encode(const judging *j, const rdna_tokenizer *tokenizer, rdna_text query, rdna_text document,
                           rdna_tokens *tokens) {
  rdna_text middle = {0};
  RDNA_TRY(fill(j->middle, query, document, &middle));
  rdna_status status = rdna_tokenizer_encode(tokenizer, j->head.data, j->head.size, RDNA_ENCODE_PARSE_SPECIAL, tokens);
  if (status == RDNA_OK) status = rdna_tokenizer_encode(tokenizer, middle.data, middle.size, 0, tokens);
  if (status == RDNA_OK)
    status = rdna_tokenizer_encode(tokenizer, j->tail.data, j->tail.size, RDNA_ENCODE_PARSE_SPECIAL, tokens);
  free((char *)middle.data);
  return status;
}
