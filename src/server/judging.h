/* How a language model that judges texts is asked, as Qwen3-Reranker is: by the file's template "rerank", the key
 * tokenizer.chat_template.rerank of llama.cpp's converter, with {query} and {document} in it. It has three parts:
 *
 *     <|im_start|>system … <|im_start|>   user … <Query>: {query}\n<Document>: {document}   <|im_end|>\n …
 *     head                                middle                                            tail
 *
 * The texts of clients stand in the middle, which has no control tokens, so that no text becomes one. */
#ifndef RDNA_SERVER_JUDGING_H
#define RDNA_SERVER_JUDGING_H

#include "rdna/model.h"

typedef struct judging {
  rdna_text head, middle, tail; /* borrowed from the file; middle.data NULL: it has no such template */
} judging;

/* RDNA_BAD_DATA: the template lacks a place, or has control tokens between them. */
rdna_status judging_open(const rdna_gguf *file, const rdna_tokenizer *tokenizer, judging *out);

/* Appends the ids of a pair. */
rdna_status judging_encode(const judging *j, const rdna_tokenizer *tokenizer, rdna_text query, rdna_text document,
                           rdna_tokens *tokens);

#endif
