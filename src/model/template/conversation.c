#include "model/template/conversation.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static const char TEMPLATE_KEY[] = "tokenizer.chat_template";

rdna_status rdna__compile_model_template(const rdna_gguf *file, rdna_template **out_template) {
  rdna_gguf_key key;
  rdna_text text;
  if (!rdna_gguf_find_key(file, TEMPLATE_KEY, &key))
    return rdna__fail(RDNA_NOT_FOUND, "this model has no chat template (its file lacks %s)", TEMPLATE_KEY);
  RDNA_TRY(rdna_gguf_get_text(file, TEMPLATE_KEY, &text));
  return rdna_template_compile(text.data, text.size, out_template);
}

/* The variable |name| is how token |id| is written. */
static rdna_status set_token(json_t *variables, const rdna_tokenizer *tokenizer, const char *name, int32_t id) {
  rdna_text piece;
  if (id < 0 || json_object_get(variables, name)) return RDNA_OK;
  RDNA_TRY(rdna_tokenizer_piece(tokenizer, id, &piece));
  json_object_set_new(variables, name, json_stringn(piece.data, piece.size));
  return RDNA_OK;
}

rdna_status rdna__set_special_tokens(json_t *variables, const rdna_tokenizer *tokenizer) {
  const rdna_tokenizer_info *info = rdna_tokenizer_get_info(tokenizer);
  RDNA_TRY(set_token(variables, tokenizer, "bos_token", info->bos));
  RDNA_TRY(set_token(variables, tokenizer, "eos_token", info->eos));
  return set_token(variables, tokenizer, "unk_token", info->unknown);
}

rdna_status rdna__conversation_open(rdna__conversation *c, const rdna_gguf *file, const rdna_tokenizer *tokenizer) {
  RDNA_TRY(rdna__compile_model_template(file, &c->compiled));
  c->tokenizer = tokenizer;
  c->variables = json_pack("{s:[], s:b}", "messages", "add_generation_prompt", 1);
  if (!c->variables) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the messages");
  c->messages = json_object_get(c->variables, "messages");
  return rdna__set_special_tokens(c->variables, tokenizer);
}

void rdna__conversation_close(rdna__conversation *c) {
  rdna_template_release(c->compiled);
  json_decref(c->variables);
  *c = (rdna__conversation){0};
}

/* A reply may stop inside a character. */
static json_t *json_of(const char *text, size_t size) {
  json_t *content = NULL;
  for (size_t kept = size; !content; kept--) {
    content = json_stringn(text, kept);
    if (kept == 0) break;
  }
  return content;
}

static rdna_status add_message(rdna__conversation *c, const char *role, json_t *content) {
  json_t *message = json_pack("{s:s, s:o}", "role", role, "content", content);
  if (!message || json_array_append_new(c->messages, message) != 0)
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the messages");
  return RDNA_OK;
}

rdna_status rdna__conversation_add(rdna__conversation *c, const char *role, const char *text, size_t size) {
  return add_message(c, role, json_of(text, size));
}

rdna_status rdna__conversation_show(rdna__conversation *c, const char *role, size_t pictures, const char *text,
                                    size_t size) {
  json_t *content = json_array();
  for (size_t i = 0; i < pictures; i++) json_array_append_new(content, json_pack("{s:s}", "type", "image"));
  json_array_append_new(content, json_pack("{s:s, s:o}", "type", "text", "text", json_of(text, size)));
  return add_message(c, role, content);
}

void rdna__conversation_remove_last(rdna__conversation *c) {
  json_array_remove(c->messages, json_array_size(c->messages) - 1);
}

rdna_status rdna__render_messages(const rdna_template *compiled, const json_t *variables, char **out_text,
                                  size_t *out_size) {
  char *json = json_dumps(variables, JSON_COMPACT);
  if (!json) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the messages");
  rdna_status status = rdna_template_render(compiled, json, strlen(json), out_text, out_size);
  free(json);
  return status;
}

rdna_status rdna__conversation_render(const rdna__conversation *c, char **out_text, size_t *out_size) {
  return rdna__render_messages(c->compiled, c->variables, out_text, out_size);
}

rdna_status rdna__conversation_encode(const rdna__conversation *c, rdna_tokens *tokens) {
  char *prompt;
  size_t size;
  RDNA_TRY(rdna__conversation_render(c, &prompt, &size));
  tokens->count = 0;
  rdna_status status = rdna_tokenizer_encode(c->tokenizer, prompt, size, RDNA_ENCODE_PARSE_SPECIAL, tokens);
  free(prompt);
  if (status == RDNA_OK && tokens->count == 0)
    status = rdna__fail(RDNA_INVALID_ARGUMENT, "the model's chat template makes nothing of these messages");
  return status;
}
