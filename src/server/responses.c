/* OpenAI's /v1/responses, which Codex and the agents' libraries speak: items go in, items come out. Nothing is kept
 * here between requests, so that each brings its whole conversation. */
#include <limits.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "server/chat.h"
#include "server/http.h"
#include "server/openai.h"
#include "server/parts.h"
#include "server/routes.h"

static const field_row fields[] = {
    {"model", FIELD_READ},
    {"input", FIELD_READ},
    {"instructions", FIELD_READ},
    {"priority", FIELD_READ},
    {"timeout", FIELD_READ},
    {"max_output_tokens", FIELD_READ},
    {"temperature", FIELD_READ},
    {"top_p", FIELD_READ},
    {"top_k", FIELD_READ},
    {"min_p", FIELD_READ},
    {"repetition_penalty", FIELD_READ},
    {"frequency_penalty", FIELD_READ},
    {"presence_penalty", FIELD_READ},
    {"seed", FIELD_READ},
    {"stream", FIELD_READ},
    {"tools", FIELD_READ},
    {"tool_choice", FIELD_READ},
    {"parallel_tool_calls", FIELD_READ},
    {"text", FIELD_READ},
    {"reasoning", FIELD_READ},
    {"grammar", FIELD_READ},
    {"lora", FIELD_READ},
    {"chat_template_kwargs", FIELD_READ},
    {"store", FIELD_IGNORED}, /* nothing is kept, and the response says so */
    {"include", FIELD_IGNORED},
    {"metadata", FIELD_IGNORED},
    {"client_metadata", FIELD_IGNORED},
    {"user", FIELD_IGNORED},
    {"safety_identifier", FIELD_IGNORED},
    {"prompt_cache_key", FIELD_IGNORED},
    {"prompt_cache_retention", FIELD_IGNORED},
    {"service_tier", FIELD_IGNORED},
    {"stream_options", FIELD_IGNORED},
    {"truncation", FIELD_READ},
    {"max_tool_calls", FIELD_IGNORED}, /* of tools that a server runs */
    {"previous_response_id", FIELD_READ},
    {"background", FIELD_REFUSED},
    {"conversation", FIELD_REFUSED},
    {"prompt", FIELD_REFUSED},
    {"top_logprobs", FIELD_REFUSED},
};

/* ---- requests ---- */

/* The last message, if it is the assistant's: what it says and calls belongs together. */
static json_t *last_of_assistant(json_t *messages) {
  size_t count = json_array_size(messages);
  json_t *last = count ? json_array_get(messages, count - 1) : NULL;
  const char *role = json_string_value(json_object_get(last, "role"));
  return role && strcmp(role, "assistant") == 0 ? last : NULL;
}

static bool add_call(json_t *messages, const json_t *item, size_t index, problem *p) {
  json_t *name = json_object_get(item, "name"), *arguments = json_object_get(item, "arguments");
  if (!json_is_string(name) || !json_is_string(arguments))
    return refuse(p, 400, NULL, "input", "item %zu, a function_call, must have a 'name' and 'arguments'", index);
  json_t *call = json_pack("{s:O*, s:s, s:{s:O, s:O}}", "id", json_object_get(item, "call_id"), "type", "function",
                           "function", "name", name, "arguments", arguments);
  json_t *message = last_of_assistant(messages);
  if (!message) {
    message = json_pack("{s:s, s:s}", "role", "assistant", "content", "");
    json_array_append_new(messages, message);
  }
  if (!json_object_get(message, "tool_calls")) json_object_set_new(message, "tool_calls", json_array());
  return json_array_append_new(json_object_get(message, "tool_calls"), call) == 0;
}

static bool add_item(json_t *messages, const json_t *item, size_t index, problem *p) {
  const char *type = json_string_value(json_object_get(item, "type"));
  json_t *role = json_object_get(item, "role"), *content = json_object_get(item, "content");
  if (type ? strcmp(type, "message") == 0 : json_is_string(role))
    return json_array_append_new(messages, json_pack("{s:O*, s:O*}", "role", role, "content", content)) == 0;
  if (type && strcmp(type, "reasoning") == 0) return true; /* templates leave out what was thought before */
  if (type && strcmp(type, "function_call") == 0) return add_call(messages, item, index, p);
  if (type && strcmp(type, "function_call_output") == 0)
    return json_array_append_new(
               messages, json_pack("{s:s, s:O*, s:O*}", "role", "tool", "tool_call_id",
                                   json_object_get(item, "call_id"), "content", json_object_get(item, "output"))) == 0;
  return refuse(p, 400, "unsupported_parameter", "input",
                "item %zu is of type '%.40s'; read here are message, reasoning, function_call and function_call_output",
                index, type ? type : "?");
}

/* In the form of a chat's messages; NULL with a problem. */
static json_t *read_input(const exchange *x, const json_t *json, problem *p) {
  json_t *input = json_object_get(json, "input"), *messages = json_array(), *read = NULL;
  const char *instructions = NULL;
  bool fine = read_text(json, "instructions", &instructions, p);
  if (fine && instructions)
    json_array_append_new(messages, json_pack("{s:s, s:s}", "role", "system", "content", instructions));
  if (fine && json_is_string(input))
    json_array_append_new(messages, json_pack("{s:s, s:O}", "role", "user", "content", input));
  else if (fine && !json_is_array(input))
    fine = refuse(p, 400, NULL, "input", "'input' must be a text or a list of items");
  for (size_t i = 0; fine && i < json_array_size(input); i++) fine = add_item(messages, json_array_get(input, i), i, p);
  if (fine) read = read_messages(x->model, messages, p);
  json_decref(messages);
  if (!read && !p->status) refuse(p, 400, NULL, "input", "an item of 'input' is not as it should be");
  return read;
}

/* Tools that a server would run for the model, and Codex's groups of tools of others (MCP), which are called in a form
 * of their own: the model is not told of them. */
static bool is_left_out(const char *type) {
  static const char *const types[] = {"image_generation", "tool_search", "namespace"};
  if (strncmp(type, "web_search", 10) == 0) return true; /* some have a date behind it */
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(type, types[i]) == 0) return true;
  return false;
}

/* Theirs have a function's fields beside its type. */
static bool read_tools(const json_t *list, chat_request *c, problem *p) {
  if (!list || json_is_null(list)) return true;
  if (!json_is_array(list)) return refuse(p, 400, NULL, "tools", "'tools' must be a list");
  c->tools = json_array();
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *tool = json_array_get(list, i);
    const char *type = json_string_value(json_object_get(tool, "type"));
    if (type && is_left_out(type)) continue;
    json_t *function = json_object();
    static const char *const parts[] = {"name", "description", "parameters", "strict"};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
      if (json_object_get(tool, parts[k])) json_object_set(function, parts[k], json_object_get(tool, parts[k]));
    json_array_append_new(c->tools, json_pack("{s:s, s:o}", "type", type ? type : "?", "function", function));
  }
  return true;
}

/* "auto", "none", "required", or {"type": "function", "name": …}. */
static bool read_tool_choice(const json_t *chosen, chat_request *c, problem *p) {
  if (!chosen || json_is_null(chosen)) return true;
  const char *word = json_string_value(chosen), *name = json_string_value(json_object_get(chosen, "name"));
  if (name && strlen(name) < sizeof c->tool)
    memcpy(c->tool, name, strlen(name) + 1);
  else if (!word || (strcmp(word, "auto") != 0 && strcmp(word, "none") != 0 && strcmp(word, "required") != 0))
    return refuse(p, 400, NULL, "tool_choice",
                  "'tool_choice' must be none, auto, required, or {\"type\": \"function\", \"name\": …}");
  if (name || strcmp(word, "required") == 0) c->choice = TOOLS_REQUIRED;
  if (word && strcmp(word, "none") == 0) c->choice = TOOLS_NONE;
  return true;
}

/* {"format": {"type": …, "schema": …}}: as in a chat, but for a level. */
static bool read_format(const json_t *text, chat_request *c, problem *p) {
  json_t *format = json_object_get(text, "format");
  if (!format || json_is_null(format)) return true;
  json_t *same = json_pack("{s:O*, s:O}", "type", json_object_get(format, "type"), "json_schema", format);
  bool fine = read_response_format(same, &c->schema, p);
  json_decref(same);
  return fine;
}

static bool read_chat(exchange *x, const json_t *json, chat_request *c, problem *p) {
  const char *effort = NULL, *before = NULL;
  bool several = true;
  if (!read_text(json, "previous_response_id", &before, p)) return false;
  if (before)
    return refuse(p, 400, "unsupported_parameter", "previous_response_id",
                  "this server keeps no responses; send the items of the conversation in 'input'");
  if (!read_text(json_object_get(json, "reasoning"), "effort", &effort, p) ||
      !read_bool(json, "parallel_tool_calls", &several, p) || !read_text(json, "grammar", &c->grammar, p))
    return false;
  const json_t *given = json_object_get(json, "chat_template_kwargs");
  c->variables = json_is_object(given) ? json_copy((json_t *)given) : json_object();
  if (effort) json_object_set_new(c->variables, "reasoning_effort", json_string(effort));
  c->one_call = !several;
  return (c->messages = read_input(x, json, p)) && read_tools(json_object_get(json, "tools"), c, p) &&
         read_tool_choice(json_object_get(json, "tool_choice"), c, p) &&
         read_format(json_object_get(json, "text"), c, p);
}

/* What a response repeats of its request. */
static json_t *make_echo(const json_t *json, const settings *s) {
  json_t *echo = json_pack("{s:O?, s:O?, s:O?, s:f, s:f}", "instructions", json_object_get(json, "instructions"),
                           "max_output_tokens", json_object_get(json, "max_output_tokens"), "reasoning",
                           json_object_get(json, "reasoning"), "temperature", (double)s->sampling.temperature, "top_p",
                           (double)s->sampling.top_p);
  json_t *tools = json_object_get(json, "tools"), *chosen = json_object_get(json, "tool_choice"),
         *text = json_object_get(json, "text"), *several = json_object_get(json, "parallel_tool_calls");
  json_object_set_new(echo, "tools", json_is_array(tools) ? json_incref(tools) : json_array());
  json_object_set_new(echo, "tool_choice", chosen ? json_incref(chosen) : json_string("auto"));
  json_object_set_new(echo, "text",
                      json_is_object(text) ? json_incref(text) : json_pack("{s:{s:s}}", "format", "type", "text"));
  json_object_set_new(echo, "parallel_tool_calls", json_boolean(!several || !json_is_false(several)));
  return echo;
}

static bool read_request(exchange *x, request *r, problem *p) {
  settings *s = &r->settings;
  chat_request c = {0};
  const json_t *json = r->json = parse_object(x->body.data, x->body.size, p);
  bool fine = json && check_fields(json, fields, sizeof fields / sizeof *fields, p) && read_model(x, json, p) &&
              read_sampling(json, "repetition_penalty", s, p) && read_bool(json, "stream", &x->stream, p) &&
              read_urgency(json, s, p) && read_integer(json, "max_output_tokens", 1, INT32_MAX, &s->most_tokens, p) &&
              read_chat(x, json, &c, p) && chat_prepare(x, r, &c, p);
  chat_deinit(&c);
  if (!fine || !request_check(x, r, p)) return false;
  x->echo = make_echo(json, s);
  x->output = json_array();
  return (x->echo && x->output) || refuse(p, 500, NULL, NULL, "no host memory for the request");
}

/* ---- answers ---- */

static json_t *usage(const exchange *x) {
  const job *j = x->job;
  json_int_t prompt = prompt_tokens(j), written = written_tokens(j);
  return json_pack("{s:I, s:{s:I}, s:I, s:{s:I}, s:I}", "input_tokens", prompt, "input_tokens_details", "cached_tokens",
                   (json_int_t)cached_tokens(j), "output_tokens", written, "output_tokens_details", "reasoning_tokens",
                   (json_int_t)j->choices[0].thought_tokens, "total_tokens", prompt + written);
}

/* |status|: "in_progress", "completed", "incomplete" or "failed". */
static json_t *response(const exchange *x, const char *status) {
  bool incomplete = strcmp(status, "incomplete") == 0, over = strcmp(status, "in_progress") != 0;
  json_t *it =
      json_pack("{s:s, s:s, s:I, s:s, s:n, s:o, s:s, s:O, s:n, s:b, s:s, s:{}, s:n}", "id", x->id, "object", "response",
                "created_at", (json_int_t)x->created, "status", status, "error", "incomplete_details",
                incomplete ? json_pack("{s:s}", "reason", "max_output_tokens") : json_null(), "model", model_name(x),
                "output", x->output, "previous_response_id", "store", 0, "truncation", "disabled", "metadata", "user");
  json_object_update_missing(it, x->echo);
  json_object_set_new(it, "usage", over ? usage(x) : json_null());
  return it;
}

/* Sends |event|, which is released, with its type and number. */
static void tell(exchange *x, const char *type, json_t *event, bytes *out) {
  json_object_set_new(event, "type", json_string(type));
  json_object_set_new(event, "sequence_number", json_integer(x->block++));
  append_event(out, type, event);
}

/* An event of the item that is being written. */
static json_t *of_item(const exchange *x) {
  return json_pack("{s:s, s:I}", "item_id", x->item_id, "output_index", (json_int_t)json_array_size(x->output));
}

static void tell_item(exchange *x, const char *type, json_t *item, bytes *out) {
  tell(x, type, json_pack("{s:I, s:o}", "output_index", (json_int_t)json_array_size(x->output), "item", item), out);
}

enum { NO_ITEM, MESSAGE, REASONING };

static json_t *text_item(const exchange *x, const char *status, json_t *content) {
  if (x->state == MESSAGE)
    return json_pack("{s:s, s:s, s:s, s:s, s:o}", "id", x->item_id, "type", "message", "status", status, "role",
                     "assistant", "content", content);
  return json_pack("{s:s, s:s, s:[], s:o}", "id", x->item_id, "type", "reasoning", "summary", "content", content);
}

static json_t *text_part(const exchange *x, json_t *text) {
  if (x->state == MESSAGE)
    return json_pack("{s:s, s:o, s:[], s:[]}", "type", "output_text", "text", text, "annotations", "logprobs");
  return json_pack("{s:s, s:o}", "type", "reasoning_text", "text", text);
}

/* Events of a text: its name by the kind of its item, and the field that holds it. */
static void tell_text(exchange *x, const char *message_event, const char *reasoning_event, const char *field,
                      json_t *value, bytes *out) {
  json_t *event = of_item(x);
  bool message = x->state == MESSAGE;
  json_object_set_new(event, "content_index", json_integer(0));
  json_object_set_new(event, field, value);
  if (message && strcmp(field, "part") != 0) json_object_set_new(event, "logprobs", json_array());
  tell(x, message ? message_event : reasoning_event, event, out);
}

static void close_item(exchange *x, const char *status, bytes *out) {
  if (x->state == NO_ITEM) return;
  json_t *text = rdna__json_of_text(x->item_text.data ? x->item_text.data : "", x->item_text.size);
  json_t *part = text_part(x, text);
  tell_text(x, "response.output_text.done", "response.reasoning_text.done", "text", json_incref(text), out);
  tell_text(x, "response.content_part.done", "response.content_part.done", "part", json_incref(part), out);
  json_t *item = text_item(x, status, json_pack("[o]", part));
  tell_item(x, "response.output_item.done", json_incref(item), out);
  json_array_append_new(x->output, item);
  x->state = NO_ITEM;
  x->item_text.size = 0;
}

static void open_item(exchange *x, int kind, bytes *out) {
  if (x->state == kind) return;
  close_item(x, "completed", out);
  x->state = kind;
  make_id(x->item_id, sizeof x->item_id, kind == MESSAGE ? "msg_" : "rs_");
  tell_item(x, "response.output_item.added", text_item(x, "in_progress", json_array()), out);
  tell_text(x, "response.content_part.added", "response.content_part.added", "part", text_part(x, json_string("")),
            out);
}

static void tell_call(exchange *x, const rdna__reply_part *part, bytes *out) {
  char call_id[48];
  close_item(x, "completed", out);
  make_id(x->item_id, sizeof x->item_id, "fc_");
  make_id(call_id, sizeof call_id, "call_");
  json_t *arguments = rdna__json_of_text(part->text.data, part->text.size);
  json_t *item =
      json_pack("{s:s, s:s, s:s, s:s, s:o, s:s}", "id", x->item_id, "type", "function_call", "status", "in_progress",
                "call_id", call_id, "name", rdna__json_of_text(part->name.data, part->name.size), "arguments", "");
  tell_item(x, "response.output_item.added", json_deep_copy(item), out);
  json_t *delta = of_item(x), *done = of_item(x);
  json_object_set(delta, "delta", arguments);
  tell(x, "response.function_call_arguments.delta", delta, out);
  json_object_set(done, "arguments", arguments);
  json_object_set(done, "name", json_object_get(item, "name"));
  tell(x, "response.function_call_arguments.done", done, out);
  json_object_set_new(item, "arguments", arguments);
  json_object_set_new(item, "status", json_string("completed"));
  tell_item(x, "response.output_item.done", json_incref(item), out);
  json_array_append_new(x->output, item);
}

static void tell_part(exchange *x, const news *n, const rdna__reply_part *part, int call, void *data) {
  bytes *out = data;
  if (part->kind == RDNA__REPLY_CALL) {
    tell_call(x, part, out);
    return;
  }
  open_item(x, part->kind == RDNA__REPLY_REASONING ? REASONING : MESSAGE, out);
  tell_text(x, "response.output_text.delta", "response.reasoning_text.delta", "delta",
            rdna__json_of_text(part->text.data, part->text.size), out);
  bytes_append(&x->item_text, part->text.data, part->text.size);
}

static void begin(exchange *x, bytes *out) {
  tell(x, "response.created", json_pack("{s:o}", "response", response(x, "in_progress")), out);
  tell(x, "response.in_progress", json_pack("{s:o}", "response", response(x, "in_progress")), out);
}

static void piece(exchange *x, const news *n, bytes *out) {
  if (!read_parts(x, n, tell_part, out) || x->item_text.failed) out->failed = true;
}

static const char *status_of(const exchange *x) {
  return strcmp(x->job->choices[0].finish_reason, "stop") == 0 ? "completed" : "incomplete";
}

static void end(exchange *x, bytes *out) {
  const char *status = status_of(x);
  close_item(x, status, out);
  tell(x, strcmp(status, "completed") == 0 ? "response.completed" : "response.incomplete",
       json_pack("{s:o}", "response", response(x, status)), out);
}

static void fail(exchange *x, const problem *p, bytes *out) {
  json_t *failed = response(x, "failed");
  json_object_set_new(failed, "error", json_pack("{s:s, s:s}", "code", "server_error", "message", p->message));
  tell(x, "response.failed", json_pack("{s:o}", "response", failed), out);
}

/* The items are those that a stream would tell. */
static json_t *whole(exchange *x) {
  const choice *c = &x->job->choices[0];
  const news all = {.text = c->text, .finish_reason = c->finish_reason};
  bytes unsent = {0};
  piece(x, &all, &unsent);
  close_item(x, status_of(x), &unsent);
  bool fine = !unsent.failed;
  bytes_deinit(&unsent);
  return fine ? response(x, status_of(x)) : NULL;
}

const dialect responses = {"text/event-stream", ": ping\n\n", openai_refuse, begin, piece, end, fail, whole};

enum MHD_Result handle_responses(exchange *x) {
  request r = REQUEST_DEFAULT;
  x->created = (int64_t)time(NULL);
  make_id(x->id, sizeof x->id, "resp_");
  if (read_request(x, &r, &x->problem)) return request_run(x, &r);
  request_deinit(&r);
  return respond_problem(x);
}
