/* Messages, and the prompt that a model's chat template makes of them. */
#ifndef RDNA_MODEL_TEMPLATE_CONVERSATION_H
#define RDNA_MODEL_TEMPLATE_CONVERSATION_H

#include <jansson.h>

#include "rdna/model.h"
#include "rdna/template.h"

/* All zeros is one that close takes, too. */
typedef struct rdna__conversation {
  const rdna_tokenizer *tokenizer;
  rdna_template *compiled;
  json_t *variables; /* what the template is given */
  json_t *messages;  /* of the variables; borrowed */
} rdna__conversation;

/* The template that |file| has. RDNA_NOT_FOUND: none. */
rdna_status rdna__compile_model_template(const rdna_gguf *file, rdna_template **out_template);

/* The variables bos_token, eos_token and unk_token, as the vocabulary writes them, where |variables| lacks them. */
rdna_status rdna__set_special_tokens(json_t *variables, const rdna_tokenizer *tokenizer);

/* The text that |compiled| makes of |variables|; free() releases it. */
rdna_status rdna__render_messages(const rdna_template *compiled, const json_t *variables, char **out_text,
                                  size_t *out_size);
/* |tokenizer| must stay open. */
rdna_status rdna__conversation_open(rdna__conversation *c, const rdna_gguf *file, const rdna_tokenizer *tokenizer);
void rdna__conversation_close(rdna__conversation *c);
/* Adds a message; what of |text| is not UTF-8 is cut off. */
rdna_status rdna__conversation_add(rdna__conversation *c, const char *role, const char *text, size_t size);
/* The same with |pictures| before the text, as templates know them: {"type": "image"}. */
rdna_status rdna__conversation_show(rdna__conversation *c, const char *role, size_t pictures, const char *text,
                                    size_t size);
void rdna__conversation_remove_last(rdna__conversation *c);
/* The text of all messages and of the beginning of the model's answer; free() releases it. RDNA_INVALID_ARGUMENT: the
 * template refuses them. */
rdna_status rdna__conversation_render(const rdna__conversation *c, char **out_text, size_t *out_size);
/* Sets |tokens| to those of all messages and the beginning of the model's answer. RDNA_INVALID_ARGUMENT: the template
 * refuses them, or makes nothing of them. */
rdna_status rdna__conversation_encode(const rdna__conversation *c, rdna_tokens *tokens);

#endif
