#include "server/openai.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "server/catalog.h"
#include "server/http.h"
#include "server/images.h"
#include "server/parts.h"
#include "server/routes.h"

void openai_refuse(const problem *p, bytes *out) {
  const char *type = p->status == 401   ? "authentication_error"
                     : p->status == 429 ? "rate_limit_error"
                     : p->status >= 500 ? "server_error"
                                        : "invalid_request_error";
  append_line(out, json_pack("{s:{s:s, s:s, s:s?, s:s?}}", "error", "message", p->message, "type", type, "param",
                             p->field[0] ? p->field : NULL, "code", p->code));
}

static json_t *usage(const exchange *x) {
  const job *j = x->job;
  json_int_t prompt = prompt_tokens(j), written = written_tokens(j);
  return json_pack("{s:I, s:I, s:I, s:{s:I}}", "prompt_tokens", prompt, "completion_tokens", written, "total_tokens",
                   prompt + written, "prompt_tokens_details", "cached_tokens", (json_int_t)cached_tokens(j));
}

/* ---- log probabilities ---- */

static json_t *text_of(const exchange *x, int32_t id) {
  rdna_text piece;
  if (rdna_tokenizer_piece(x->model->tokenizer, id, &piece) != RDNA_OK) return json_string("");
  return rdna__json_of_text(piece.data, piece.size);
}

static json_t *bytes_of(const exchange *x, int32_t id) {
  rdna_text piece;
  json_t *list = json_array();
  if (rdna_tokenizer_piece(x->model->tokenizer, id, &piece) != RDNA_OK) return list;
  for (size_t i = 0; i < piece.size; i++) json_array_append_new(list, json_integer((unsigned char)piece.data[i]));
  return list;
}

/* JSON has no infinity: a token that cannot be gets what OpenAI gives such. */
static double finite_of(float value) { return value > -9999 ? value : -9999; }

static json_t *token_of_chat(const exchange *x, int32_t id, float value) {
  return json_pack("{s:o, s:f, s:o}", "token", text_of(x, id), "logprob", finite_of(value), "bytes", bytes_of(x, id));
}

static json_t *chat_logprobs(const exchange *x, const news *n) {
  int tops = x->job->settings.top_logprobs;
  if (tops < 0) return json_null();
  json_t *content = json_array();
  for (size_t i = 0; i < n->token_count; i++) {
    json_t *token = token_of_chat(x, n->ids[i], n->values[i]), *list = json_array();
    for (int k = 0; k < tops; k++) {
      const logprob *top = &n->tops[i * (size_t)tops + (size_t)k];
      json_array_append_new(list, token_of_chat(x, top->id, top->value));
    }
    json_object_set_new(token, "top_logprobs", list);
    json_array_append_new(content, token);
  }
  return json_pack("{s:o, s:n}", "content", content, "refusal");
}

/* How many bytes of the choice's text come before its |first| token. */
static size_t offset_of(const exchange *x, const news *n, size_t first) {
  const choice *c = &x->job->choices[n->choice];
  size_t offset = 0;
  rdna_text piece;
  for (size_t i = 0; i < first; i++)
    if (rdna_tokenizer_piece(x->model->tokenizer, c->ids[i], &piece) == RDNA_OK) offset += piece.size;
  return offset;
}

static json_t *completion_logprobs(const exchange *x, const news *n) {
  int tops = x->job->settings.top_logprobs;
  if (tops < 0) return json_null();
  json_t *tokens = json_array(), *values = json_array(), *likeliest = json_array(), *offsets = json_array();
  server_lock(x->server); /* the ids may move */
  size_t offset = offset_of(x, n, n->first_token);
  server_unlock(x->server);
  for (size_t i = 0; i < n->token_count; i++) {
    rdna_text piece;
    json_t *list = json_object();
    for (int k = 0; k < tops; k++) {
      const logprob *top = &n->tops[i * (size_t)tops + (size_t)k];
      json_t *text = text_of(x, top->id);
      json_object_set_new(list, json_string_value(text), json_real(finite_of(top->value)));
      json_decref(text);
    }
    json_array_append_new(likeliest, list);
    json_array_append_new(tokens, text_of(x, n->ids[i]));
    json_array_append_new(values, json_real(finite_of(n->values[i])));
    json_array_append_new(offsets, json_integer((json_int_t)offset));
    if (rdna_tokenizer_piece(x->model->tokenizer, n->ids[i], &piece) == RDNA_OK) offset += piece.size;
  }
  return json_pack("{s:o, s:o, s:o, s:o}", "tokens", tokens, "token_logprobs", values, "top_logprobs", likeliest,
                   "text_offset", offsets);
}

/* ---- answers ---- */

static const char *object_name(const exchange *x) {
  if (!x->chat) return "text_completion";
  return x->stream ? "chat.completion.chunk" : "chat.completion";
}

/* An answer around |choices|. */
static json_t *envelope(const exchange *x, json_t *choices) {
  return json_pack("{s:s, s:s, s:I, s:s, s:o}", "id", x->id, "object", object_name(x), "created",
                   (json_int_t)x->created, "model", model_name(x), "choices", choices);
}

static json_t *choice_of(const exchange *x, const news *n, const char *part, json_t *content) {
  json_t *logprobs = x->chat ? chat_logprobs(x, n) : completion_logprobs(x, n);
  return json_pack("{s:i, s:o, s:o, s:s?}", "index", n->choice, part, content, "logprobs", logprobs, "finish_reason",
                   n->finish_reason);
}

static void append_choice(exchange *x, json_t *one, bytes *out) {
  json_t *event = envelope(x, json_pack("[o]", one));
  if (x->include_usage) json_object_set_new(event, "usage", json_null());
  append_event(out, NULL, event);
}

static void begin(exchange *x, bytes *out) {
  for (int i = 0; x->chat && i < x->job->choice_count; i++)
    append_choice(x,
                  json_pack("{s:i, s:{s:s, s:s}, s:n, s:n}", "index", i, "delta", "role", "assistant", "content", "",
                            "logprobs", "finish_reason"),
                  out);
}

/* Calls end a text where the client must act on them. */
static const char *why(const exchange *x, int index, const char *reason) {
  return calls_of(x, index) > 0 && reason && strcmp(reason, "stop") == 0 ? "tool_calls" : reason;
}

static json_t *call_of(json_t *name, json_t *arguments) {
  char id[48];
  make_id(id, sizeof id, "call_");
  return json_pack("{s:s, s:s, s:{s:o, s:o}}", "id", id, "type", "function", "function", "name", name, "arguments",
                   arguments);
}

typedef struct telling {
  bytes *out;
  bool told; /* an event went out, and the tokens' log probabilities with it */
} telling;

static void tell_part(exchange *x, const news *n, const rdna__reply_part *part, int call, void *data) {
  telling *t = data;
  news one = *n;
  one.finish_reason = NULL;
  if (t->told) one.token_count = 0;
  json_t *text = rdna__json_of_text(part->text.data, part->text.size), *delta;
  if (part->kind == RDNA__REPLY_CALL) {
    json_t *it = call_of(rdna__json_of_text(part->name.data, part->name.size), text);
    json_object_set_new(it, "index", json_integer(call));
    delta = json_pack("{s:[o]}", "tool_calls", it);
  } else {
    delta = json_pack("{s:o}", part->kind == RDNA__REPLY_REASONING ? "reasoning_content" : "content", text);
  }
  append_choice(x, choice_of(x, &one, "delta", delta), t->out);
  t->told = true;
}

/* Text first, and why it ended in an event of its own, as the clients expect it. */
static void chat_piece(exchange *x, const news *n, bytes *out) {
  telling t = {.out = out};
  news tokens = *n;
  tokens.finish_reason = NULL;
  if (!read_parts(x, n, tell_part, &t)) out->failed = true;
  if (!t.told && n->token_count && x->job->settings.top_logprobs >= 0)
    append_choice(x, choice_of(x, &tokens, "delta", json_pack("{s:s}", "content", "")), out);
  if (n->finish_reason)
    append_choice(x,
                  json_pack("{s:i, s:{}, s:n, s:s}", "index", n->choice, "delta", "logprobs", "finish_reason",
                            why(x, n->choice, n->finish_reason)),
                  out);
}

static void piece(exchange *x, const news *n, bytes *out) {
  if (x->chat)
    chat_piece(x, n, out);
  else
    append_choice(x, choice_of(x, n, "text", rdna__json_of_text(n->text.data ? n->text.data : "", n->text.size)), out);
}

static void end(exchange *x, bytes *out) {
  if (x->include_usage) {
    json_t *last = envelope(x, json_array());
    json_object_set_new(last, "usage", usage(x));
    append_event(out, NULL, last);
  }
  bytes_append_text(out, "data: [DONE]\n\n");
}

static void fail(exchange *x, const problem *p, bytes *out) {
  bytes_append_text(out, "data: ");
  openai_refuse(p, out);
  bytes_append_text(out, "\n");
}

static json_t *text_of_bytes(const bytes *b) { return rdna__json_of_text(b->data ? b->data : "", b->size); }

/* NULL without memory. */
static json_t *whole_message(exchange *x, int index) {
  whole_reply w;
  json_t *message = NULL, *calls = json_array();
  if (read_reply(x, index, &w)) {
    for (size_t i = 0; i < json_array_size(w.calls); i++) {
      const json_t *call = json_array_get(w.calls, i);
      json_array_append_new(
          calls, call_of(json_incref(json_object_get(call, "name")), json_incref(json_object_get(call, "arguments"))));
    }
    bool only_calls = w.content.size == 0 && json_array_size(calls) > 0;
    message = json_pack("{s:s, s:o, s:n}", "role", "assistant", "content",
                        only_calls ? json_null() : text_of_bytes(&w.content), "refusal");
    if (w.reasoning.size) json_object_set_new(message, "reasoning_content", text_of_bytes(&w.reasoning));
    if (json_array_size(calls)) json_object_set(message, "tool_calls", calls);
  }
  json_decref(calls);
  whole_reply_deinit(&w);
  return message;
}

static json_t *whole(exchange *x) {
  json_t *choices = json_array();
  for (int i = 0; i < x->job->choice_count; i++) {
    const choice *c = &x->job->choices[i];
    json_t *content = x->chat ? whole_message(x, i) : text_of_bytes(&c->text);
    const news all = {.choice = i,
                      .ids = c->ids,
                      .values = c->values,
                      .tops = c->tops,
                      .token_count = c->token_count,
                      .finish_reason = why(x, i, c->finish_reason)};
    json_array_append_new(choices, choice_of(x, &all, x->chat ? "message" : "text", content));
  }
  json_t *answer = envelope(x, choices);
  json_object_set_new(answer, "usage", usage(x));
  return answer;
}

const dialect openai = {"text/event-stream", ": ping\n\n", openai_refuse, begin, piece, end, fail, whole};

static enum MHD_Result handle(exchange *x, bool chat) {
  request r = REQUEST_DEFAULT;
  x->chat = chat;
  x->created = (int64_t)time(NULL);
  make_id(x->id, sizeof x->id, chat ? "chatcmpl-" : "cmpl-");
  bool fine = chat ? openai_read_chat(x, &r, &x->problem) : openai_read_completion(x, &r, &x->problem);
  if (fine) return request_run(x, &r);
  request_deinit(&r);
  return respond_problem(x);
}

enum MHD_Result handle_chat_completions(exchange *x) { return handle(x, true); }
enum MHD_Result handle_completions(exchange *x) { return handle(x, false); }

/* Under the lock; what only a model in memory tells is left out of the others. */
static json_t *model_of(const catalog_model *m) {
  json_t *model = json_pack("{s:s, s:s, s:I, s:s}", "id", m->preset.name, "object", "model", "created",
                            (json_int_t)m->served.opened, "owned_by", "rdna");
  if (m->preset.vision_path) json_object_set_new(model, "input_modalities", json_pack("[s, s]", "text", "image"));
  if (m->state != MODEL_IN) return model;
  const rdna_llm_info *info = rdna_llm_get_info(m->served.llm);
  json_object_set_new(model, "meta",
                      json_pack("{s:s, s:i, s:i, s:i, s:I}", "architecture", info->architecture, "context",
                                scheduler_context(m->scheduler), "trained_context", info->context, "vocabulary",
                                info->vocabulary, "parameters", (json_int_t)info->parameters));
  return model;
}

/* An adapter, as vLLM lists them, with what requests call it in "lora". */
static json_t *adapter_of(const catalog_model *m, const preset_adapter *a) {
  return json_pack("{s:s, s:s, s:I, s:s, s:s, s:s, s:{s:I, s:f}}", "id", a->name, "object", "model", "created",
                   (json_int_t)m->served.opened, "owned_by", "rdna", "root", a->path, "parent", m->preset.name, "lora",
                   "id", (json_int_t)(a - m->preset.adapters), "scale", (double)a->scale);
}

static json_t *names_of(const char *const *names, size_t count) {
  json_t *list = json_array();
  for (size_t i = 0; i < count; i++) json_array_append_new(list, json_string(names[i]));
  return list;
}

/* The model that draws, in place of those that write. */
static json_t *painter_of(const server *s) {
  const rdna_image_model_info *info = images_info(s);
  const images_options *o = s->options->images;
  return json_pack("{s:s, s:s, s:i, s:s, s:{s:s, s:i, s:i, s:i, s:i, s:f, s:s, s:o, s:o, s:o, s:o}}", "id",
                   images_name(s), "object", "model", "created", 0, "owned_by", "rdna", "meta", "family", info->family,
                   "width", info->width, "height", info->height, "multiple", info->multiple, "steps", info->steps,
                   "guidance", info->guidance, "sampler", info->sampler, "loras",
                   names_of(o->lora_names, (size_t)o->model->lora_count), "controls",
                   names_of(o->control_names, o->model->control_count), "ip_adapters",
                   names_of(o->adapter_names, o->model->adapter_count), "upscalers",
                   names_of(o->upscaler_names, (size_t)o->upscaler_count));
}

static enum MHD_Result list_models(exchange *x) {
  json_t *list = json_array();
  if (x->server->images) json_array_append_new(list, painter_of(x->server));
  server_lock(x->server);
  for (const catalog_model *m = x->server->models; m; m = m->next) {
    if (m->retired) continue;
    json_array_append_new(list, model_of(m));
    for (int i = 0; i < m->preset.adapter_count; i++)
      json_array_append_new(list, adapter_of(m, &m->preset.adapters[i]));
  }
  server_unlock(x->server);
  /* Codex wants a list of its own kind besides; of models that are not there it takes its defaults */
  return respond_json(x, 200, json_pack("{s:s, s:o, s:[]}", "object", "list", "data", list, "models"));
}

enum MHD_Result handle_models(exchange *x) {
  size_t prefix = strlen("/v1/models/");
  if (strncmp(x->path, "/v1/models/", prefix) != 0) return list_models(x);
  if (x->server->images && strcmp(x->path + prefix, images_name(x->server)) == 0)
    return respond_json(x, 200, painter_of(x->server));
  server_lock(x->server);
  const catalog_model *m = catalog_find(x->server, x->path + prefix);
  const preset_adapter *adapter = m ? catalog_adapter(m, x->path + prefix) : NULL;
  json_t *model = adapter ? adapter_of(m, adapter) : m ? model_of(m) : NULL;
  if (!m) catalog_refuse(x->server, x->path + prefix, &x->problem);
  server_unlock(x->server);
  return m ? respond_json(x, 200, model) : respond_problem(x);
}
