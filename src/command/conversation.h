/* Messages, and the prompt that a model's chat template makes of them. */
#ifndef RDNA_COMMAND_CONVERSATION_H
#define RDNA_COMMAND_CONVERSATION_H

#include <jansson.h>

#include "rdna/model.h"
#include "rdna/template.h"

/* All zeros is one that close takes, too. */
typedef struct conversation {
  const rdna_tokenizer *tokenizer;
  rdna_template *compiled;
  json_t *variables; /* what the template is given */
  json_t *messages;  /* of the variables; borrowed */
} conversation;

/* The template that |file| has. RDNA_NOT_FOUND: none. */
rdna_status compile_model_template(const rdna_gguf *file, rdna_template **out_template);

/* The variables bos_token, eos_token and unk_token, as the vocabulary writes them, where |variables| lacks them. */
rdna_status set_special_tokens(json_t *variables, const rdna_tokenizer *tokenizer);

/* |tokenizer| must stay open. */
rdna_status conversation_open(conversation *c, const rdna_gguf *file, const rdna_tokenizer *tokenizer);
void conversation_close(conversation *c);
/* Adds a message; what of |text| is not UTF-8 is cut off. */
rdna_status conversation_add(conversation *c, const char *role, const char *text, size_t size);
void conversation_remove_last(conversation *c);
/* Sets |tokens| to those of all messages and the beginning of the model's answer. */
rdna_status conversation_encode(const conversation *c, rdna_tokens *tokens);

#endif
