/* What a model makes of texts before it reads them: /tokenize, /detokenize, /apply-template. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/http.h"
#include "server/pictures.h"
#include "server/request.h"
#include "server/routes.h"

static json_t *list_tokens(const served_model *m, const rdna_tokens *tokens, bool with_pieces) {
  json_t *list = json_array();
  for (size_t i = 0; i < tokens->count; i++) {
    rdna_text piece = {"", 0};
    json_t *id = json_integer(tokens->ids[i]);
    if (with_pieces && rdna_tokenizer_piece(m->tokenizer, tokens->ids[i], &piece) == RDNA_OK)
      id = json_pack("{s:o, s:o}", "id", id, "piece", rdna__json_of_text(piece.data, piece.size));
    json_array_append_new(list, id);
  }
  return list;
}

enum MHD_Result handle_tokenize(exchange *x) {
  static const field_row fields[] = {{"model", FIELD_READ},         {"content", FIELD_READ},
                                     {"prompt", FIELD_READ},        {"add_special", FIELD_READ},
                                     {"parse_special", FIELD_READ}, {"with_pieces", FIELD_READ}};
  problem *p = &x->problem;
  bool add = false, parse = false, pieces = false;
  const char *text = NULL;
  rdna_tokens tokens = {0};
  json_t *json = parse_object(x->body.data, x->body.size, p), *answer = NULL;
  bool fine = json && check_fields(json, fields, sizeof fields / sizeof *fields, p) && read_model(x, json, p) &&
              read_text(json, "prompt", &text, p) && read_text(json, "content", &text, p) &&
              read_bool(json, "add_special", &add, p) && read_bool(json, "parse_special", &parse, p) &&
              read_bool(json, "with_pieces", &pieces, p);
  if (fine && !text) fine = refuse(p, 400, NULL, "content", "'content', the text, is missing");
  unsigned flags = (add ? RDNA_ENCODE_ADD_SPECIAL : 0U) | (parse ? RDNA_ENCODE_PARSE_SPECIAL : 0U);
  if (fine && rdna_tokenizer_encode(x->model->tokenizer, text, strlen(text), flags, &tokens) != RDNA_OK)
    fine = refuse_with_status(p, "content");
  if (fine)
    answer = json_pack("{s:o, s:I, s:i}", "tokens", list_tokens(x->model, &tokens, pieces), "count",
                       (json_int_t)tokens.count, "max_model_len", scheduler_context(x->scheduler));
  rdna_tokens_deinit(&tokens);
  json_decref(json);
  return fine ? respond_json(x, 200, answer) : respond_problem(x);
}

static bool detokenize(const served_model *m, const json_t *ids, bytes *text, problem *p) {
  rdna_detokenizer *detokenizer;
  rdna_text part;
  if (!json_is_array(ids)) return refuse(p, 400, NULL, "tokens", "'tokens' must be a list of token ids");
  if (rdna_detokenizer_create(m->tokenizer, true, &detokenizer) != RDNA_OK) return refuse_with_status(p, "tokens");
  bool fine = true;
  for (size_t i = 0; fine && i < json_array_size(ids); i++) {
    const json_t *id = json_array_get(ids, i);
    json_int_t value = json_is_integer(id) ? json_integer_value(id) : -1;
    if (value < 0 || value > INT32_MAX)
      fine = refuse(p, 400, NULL, "tokens", "element %zu is no token id", i);
    else if (rdna_detokenizer_push(detokenizer, (int32_t)value, &part) != RDNA_OK)
      fine = refuse_with_status(p, "tokens");
    else
      bytes_append(text, part.data, part.size);
  }
  rdna_detokenizer_finish(detokenizer, &part);
  bytes_append(text, part.data, part.size);
  rdna_detokenizer_release(detokenizer);
  return fine;
}

enum MHD_Result handle_detokenize(exchange *x) {
  static const field_row fields[] = {{"model", FIELD_READ}, {"tokens", FIELD_READ}};
  problem *p = &x->problem;
  bytes text = {0};
  json_t *json = parse_object(x->body.data, x->body.size, p);
  bool fine = json && check_fields(json, fields, sizeof fields / sizeof *fields, p) && read_model(x, json, p) &&
              detokenize(x->model, json_object_get(json, "tokens"), &text, p);
  json_decref(json);
  json_t *content = fine ? rdna__json_of_text(text.data ? text.data : "", text.size) : NULL;
  bytes_deinit(&text);
  return fine ? respond_json(x, 200, json_pack("{s:o}", "content", content)) : respond_problem(x);
}

enum MHD_Result handle_apply_template(exchange *x) {
  static const field_row fields[] = {
      {"model", FIELD_READ}, {"messages", FIELD_READ}, {"chat_template_kwargs", FIELD_READ}, {"tools", FIELD_READ}};
  problem *p = &x->problem;
  char *text = NULL;
  size_t size = 0;
  json_t *json = parse_object(x->body.data, x->body.size, p), *messages = NULL;
  bool fine = json && check_fields(json, fields, sizeof fields / sizeof *fields, p) && read_model(x, json, p);
  if (fine) messages = read_messages(x->model, json_object_get(json, "messages"), p);
  const json_t *given = json_object_get(json, "chat_template_kwargs");
  json_t *extra = json_is_object(given) ? json_copy((json_t *)given) : json_object();
  if (json_is_array(json_object_get(json, "tools"))) json_object_set(extra, "tools", json_object_get(json, "tools"));
  fine =
      messages && take_pictures(x->model, messages, NULL, p) && render_chat(x->model, messages, extra, &text, &size, p);
  json_decref(extra);
  json_decref(json);
  json_decref(messages);
  json_t *prompt = fine ? rdna__json_of_text(text, size) : NULL;
  free(text);
  return fine ? respond_json(x, 200, json_pack("{s:o}", "prompt", prompt)) : respond_problem(x);
}
