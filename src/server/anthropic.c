/* Anthropic's interface: /v1/messages and /v1/messages/count_tokens. */
#include <limits.h>
#include <string.h>

#include "base/json.h"
#include "server/chat.h"
#include "server/http.h"
#include "server/parts.h"
#include "server/pictures.h"
#include "server/routes.h"

static const field_row fields[] = {
    {"model", FIELD_READ},
    {"messages", FIELD_READ},
    {"max_tokens", FIELD_READ},
    {"priority", FIELD_READ},
    {"timeout", FIELD_READ},
    {"system", FIELD_READ},
    {"temperature", FIELD_READ},
    {"top_p", FIELD_READ},
    {"top_k", FIELD_READ},
    {"stop_sequences", FIELD_READ},
    {"stream", FIELD_READ},
    {"thinking", FIELD_READ},
    {"tools", FIELD_READ},
    {"tool_choice", FIELD_READ},
    {"metadata", FIELD_IGNORED},
    {"service_tier", FIELD_IGNORED},
    {"context_management", FIELD_IGNORED},
    {"output_config", FIELD_READ},
    {"cache_control", FIELD_IGNORED},
    {"mcp_servers", FIELD_REFUSED},
    {"container", FIELD_REFUSED},
    {"inference_geo", FIELD_IGNORED},
    {"diagnostics", FIELD_IGNORED},
    {"speed", FIELD_IGNORED},
    {"user_profile_id", FIELD_IGNORED},
    {"workspace_id", FIELD_IGNORED},
    {"prefill", FIELD_REFUSED},
};

/* ---- requests ---- */

/* Claude Code begins its system text with a line "x-anthropic-billing-header: …; cch=HASH;", or has it in a block of
 * its own. The hash is another one in every request; it says nothing to a model, and with it no two prompts would begin
 * alike. */
static const char *without_attribution(const char *text) {
  static const char line[] = "x-anthropic-billing-header:";
  if (strncmp(text, line, sizeof line - 1) != 0) return text;
  const char *end = strchr(text, '\n');
  return end ? end + 1 : "";
}

/* {"source": {"type": "base64", "data": …}}, or "url" with a data: URL. */
static bool append_picture(said *c, const json_t *block, const char *where, problem *p) {
  const json_t *source = json_object_get(block, "source");
  const char *type = json_string_value(json_object_get(source, "type"));
  json_t *data = json_object_get(source, type && strcmp(type, "url") == 0 ? "url" : "data");
  if (!type || (strcmp(type, "base64") != 0 && strcmp(type, "url") != 0) || !json_is_string(data))
    return refuse(p, 400, NULL, "messages",
                  "%s: an image's 'source' is {\"type\": \"base64\", \"media_type\": …, \"data\": …}", where);
  return said_add_picture(c, data) || refuse(p, 500, NULL, NULL, "no host memory for the messages");
}

static bool append_block(said *c, const json_t *block, bool is_system, const char *where, problem *p) {
  const char *type = json_string_value(json_object_get(block, "type"));
  const json_t *words = json_object_get(block, "text");
  if (type && strcmp(type, "image") == 0 && !is_system) return append_picture(c, block, where, p);
  if (!type || strcmp(type, "text") != 0 || !json_is_string(words))
    return refuse(p, 400, NULL, "messages", "%s: blocks of type 'text'%s are read here, and this one is '%.40s'", where,
                  is_system ? "" : " and 'image'", type ? type : "?");
  bytes_append_text(&c->text, is_system ? without_attribution(json_string_value(words)) : json_string_value(words));
  return true;
}

/* A text, or the texts and pictures of a list of blocks. */
static json_t *read_content(const json_t *blocks, bool is_system, const char *where, problem *p) {
  const char *words = json_string_value(blocks);
  if (words) return json_string(is_system ? without_attribution(words) : words);
  if (!json_is_array(blocks)) {
    refuse(p, 400, NULL, "messages", "%s must be a text or a list of blocks", where);
    return NULL;
  }
  said joined = {0};
  bool fine = true;
  for (size_t i = 0; fine && i < json_array_size(blocks); i++)
    fine = append_block(&joined, json_array_get(blocks, i), is_system, where, p);
  json_t *made = said_finish(&joined);
  if (fine) return made;
  json_decref(made);
  return NULL;
}

static json_t *call_of(const json_t *block) {
  return json_pack("{s:s*, s:s, s:{s:s*, s:O*}}", "id", json_string_value(json_object_get(block, "id")), "type",
                   "function", "function", "name", json_string_value(json_object_get(block, "name")), "arguments",
                   json_object_get(block, "input"));
}

/* Adds one of their messages as one or more of ours: each tool's result becomes a message of its own. */
static bool read_blocks(json_t *out, const char *role, const json_t *blocks, problem *p) {
  said all = {0};
  json_t *calls = json_array();
  bool fine = true;
  for (size_t i = 0; fine && i < json_array_size(blocks); i++) {
    const json_t *block = json_array_get(blocks, i);
    const char *type = json_string_value(json_object_get(block, "type"));
    if (type && (strcmp(type, "thinking") == 0 || strcmp(type, "redacted_thinking") == 0)) continue;
    if (type && strcmp(type, "tool_use") == 0) {
      fine = json_array_append_new(calls, call_of(block)) == 0;
    } else if (type && strcmp(type, "tool_result") == 0) {
      const json_t *result = json_object_get(block, "content");
      json_t *answer = result ? read_content(result, false, "what a tool answered", p) : json_string("");
      fine = answer && json_array_append_new(out, json_pack("{s:s, s:s*, s:o}", "role", "tool", "tool_call_id",
                                                            json_string_value(json_object_get(block, "tool_use_id")),
                                                            "content", answer)) == 0;
    } else {
      fine = append_block(&all, block, false, "a message", p);
    }
  }
  size_t count = json_array_size(calls);
  bool says = all.text.size > 0 || all.parts || count || json_array_size(blocks) == 0;
  json_t *made = said_finish(&all);
  if (fine && says)
    fine = json_array_append_new(out, json_pack("{s:s, s:O, s:O*}", "role", role, "content", made, "tool_calls",
                                                count ? calls : NULL)) == 0;
  json_decref(calls);
  json_decref(made);
  return fine || p->status || refuse(p, 400, NULL, "messages", "a block of a message is not as it should be");
}

/* Returns the messages in the form that chat templates read; NULL with a problem. */
static json_t *read_all(const json_t *json, problem *p) {
  const json_t *system = json_object_get(json, "system"), *messages = json_object_get(json, "messages");
  json_t *out = json_array();
  bool fine = true;
  if (!json_is_array(messages) || json_array_size(messages) == 0)
    fine = refuse(p, 400, NULL, "messages", "'messages' must be a list of at least one message");
  if (fine && system && !json_is_null(system)) {
    json_t *text = read_content(system, true, "'system'", p);
    fine = text && json_array_append_new(out, json_pack("{s:s, s:o}", "role", "system", "content", text)) == 0;
  }
  for (size_t i = 0; fine && i < json_array_size(messages); i++) {
    const json_t *message = json_array_get(messages, i), *content = json_object_get(message, "content");
    const char *role = json_string_value(json_object_get(message, "role"));
    if (!role || (strcmp(role, "user") != 0 && strcmp(role, "assistant") != 0 && strcmp(role, "system") != 0))
      fine = refuse(p, 400, NULL, "messages", "message %zu: its role must be user or assistant, and is '%.40s'", i,
                    role ? role : "missing");
    else if (json_is_string(content))
      fine = json_array_append_new(out, json_pack("{s:s, s:O}", "role", role, "content", content)) == 0;
    else if (json_is_array(content))
      fine = read_blocks(out, role, content, p);
    else
      fine = refuse(p, 400, NULL, "messages", "message %zu: its content must be a text or a list of blocks", i);
  }
  if (fine) return out;
  json_decref(out);
  if (!p->status) refuse(p, 400, NULL, "messages", "the messages are not as they should be");
  return NULL;
}

/* {"type": "enabled" | "adaptive" | "disabled"} */
static json_t *read_thinking(const json_t *json) {
  const char *type = json_string_value(json_object_get(json_object_get(json, "thinking"), "type"));
  return type ? json_pack("{s:b}", "enable_thinking", strcmp(type, "disabled") != 0) : json_object();
}

/* Theirs are {"name", "description", "input_schema"}. */
static bool read_tools(const json_t *list, chat_request *c, problem *p) {
  if (!list || json_is_null(list)) return true;
  if (!json_is_array(list)) return refuse(p, 400, NULL, "tools", "'tools' must be a list");
  c->tools = json_array();
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *tool = json_array_get(list, i);
    const char *type = json_string_value(json_object_get(tool, "type"));
    if (type && strcmp(type, "custom") != 0)
      return refuse(p, 400, NULL, "tools", "tool %zu is of type '%.40s', which this server does not run for itself", i,
                    type);
    if (!json_is_string(json_object_get(tool, "name")) || !json_is_object(json_object_get(tool, "input_schema")))
      return refuse(p, 400, NULL, "tools", "tool %zu must have a 'name' and an 'input_schema'", i);
    json_array_append_new(c->tools,
                          json_pack("{s:s, s:{s:O, s:O*, s:O}}", "type", "function", "function", "name",
                                    json_object_get(tool, "name"), "description", json_object_get(tool, "description"),
                                    "parameters", json_object_get(tool, "input_schema")));
  }
  return true;
}

/* {"type": "auto" | "any" | "tool" | "none", "name", "disable_parallel_tool_use"} */
static bool read_tool_choice(const json_t *json, chat_request *c, problem *p) {
  const json_t *chosen = json_object_get(json, "tool_choice");
  if (!chosen || json_is_null(chosen)) return true;
  const char *type = json_string_value(json_object_get(chosen, "type")),
             *name = json_string_value(json_object_get(chosen, "name"));
  bool named = type && name && strcmp(type, "tool") == 0 && strlen(name) < sizeof c->tool;
  if (named)
    memcpy(c->tool, name, strlen(name) + 1);
  else if (!type || (strcmp(type, "auto") != 0 && strcmp(type, "any") != 0 && strcmp(type, "none") != 0))
    return refuse(p, 400, NULL, "tool_choice",
                  "'tool_choice' must have the type auto, any, none, or tool with a 'name'");
  if (named || strcmp(type, "any") == 0) c->choice = TOOLS_REQUIRED;
  if (strcmp(type, "none") == 0) c->choice = TOOLS_NONE;
  return read_bool(chosen, "disable_parallel_tool_use", &c->one_call, p);
}

/* {"format": {"type": "json_schema", "schema": …}} */
static bool read_output(const json_t *json, chat_request *c, problem *p) {
  const json_t *format = json_object_get(json_object_get(json, "output_config"), "format");
  if (!format || json_is_null(format)) return true;
  const char *type = json_string_value(json_object_get(format, "type"));
  c->schema = json_incref(json_object_get(format, "schema"));
  return (c->schema && type && strcmp(type, "json_schema") == 0) ||
         refuse(p, 400, NULL, "output_config", "'output_config.format' must have the type json_schema and a 'schema'");
}

static bool read_prompt(exchange *x, request *r, problem *p) {
  r->json = parse_object(x->body.data, x->body.size, p);
  if (!r->json || !check_fields(r->json, fields, sizeof fields / sizeof *fields, p) || !read_model(x, r->json, p))
    return false;
  chat_request c = {.variables = read_thinking(r->json)};
  bool fine = (c.messages = read_all(r->json, p)) && read_tools(json_object_get(r->json, "tools"), &c, p) &&
              read_tool_choice(r->json, &c, p) && read_output(r->json, &c, p) && chat_prepare(x, r, &c, p);
  chat_deinit(&c);
  return fine;
}

static bool read_request(exchange *x, request *r, problem *p) {
  settings *s = &r->settings;
  if (!read_prompt(x, r, p) || !read_sampling(r->json, "repetition_penalty", s, p) ||
      !read_bool(r->json, "stream", &x->stream, p) || !read_urgency(r->json, s, p) ||
      !read_stops(r->json, "stop_sequences", s, p) ||
      !read_integer(r->json, "max_tokens", 1, INT32_MAX, &s->most_tokens, p))
    return false;
  if (s->most_tokens < 0) return refuse(p, 400, NULL, "max_tokens", "'max_tokens' is missing");
  return request_check(x, r, p);
}

/* ---- answers ---- */

static void refuse_anthropic(const problem *p, bytes *out) {
  const char *type = p->status == 401   ? "authentication_error"
                     : p->status == 404 ? "not_found_error"
                     : p->status == 413 ? "request_too_large"
                     : p->status == 429 ? "rate_limit_error"
                     : p->status == 503 ? "overloaded_error"
                     : p->status >= 500 ? "api_error"
                                        : "invalid_request_error";
  append_line(out, json_pack("{s:s, s:{s:s, s:s}}", "type", "error", "error", "type", type, "message", p->message));
}

/* Their usage counts tokens of the prompt that came from the cache and those computed now apart. */
static json_t *usage(const job *j) {
  json_int_t cached = cached_tokens(j);
  return json_pack("{s:I, s:I, s:I, s:I}", "input_tokens", (json_int_t)prompt_tokens(j) - cached,
                   "cache_creation_input_tokens", (json_int_t)0, "cache_read_input_tokens", cached, "output_tokens",
                   (json_int_t)written_tokens(j));
}

static json_t *message(const exchange *x, json_t *content, const char *stop_reason, const char *stop) {
  return json_pack("{s:s, s:s, s:s, s:s, s:o, s:s?, s:s?, s:o}", "id", x->id, "type", "message", "role", "assistant",
                   "model", model_name(x), "content", content, "stop_reason", stop_reason, "stop_sequence", stop,
                   "usage", usage(x->job));
}

static const char *reason_of(const exchange *x) {
  const choice *c = &x->job->choices[0];
  if (c->stop) return "stop_sequence";
  if (strcmp(c->finish_reason, "stop") != 0) return "max_tokens";
  return calls_of(x, 0) > 0 ? "tool_use" : "end_turn";
}

static void begin(exchange *x, bytes *out) {
  server_lock(x->server);
  json_t *empty = message(x, json_array(), NULL, NULL);
  server_unlock(x->server);
  append_event(out, "message_start", json_pack("{s:s, s:o}", "type", "message_start", "message", empty));
}

/* The blocks of a stream come one behind the other; x->state says which is open, x->block how many there were. */
enum { NO_BLOCK, TEXT_BLOCK, THINKING_BLOCK };

static void close_block(exchange *x, bytes *out) {
  if (x->state != NO_BLOCK)
    append_event(out, "content_block_stop", json_pack("{s:s, s:i}", "type", "content_block_stop", "index", x->block++));
  x->state = NO_BLOCK;
}

static void open_block(exchange *x, json_t *block, bytes *out) {
  append_event(out, "content_block_start",
               json_pack("{s:s, s:i, s:o}", "type", "content_block_start", "index", x->block, "content_block", block));
}

static void open_text(exchange *x, int kind, bytes *out) {
  if (x->state == kind) return;
  close_block(x, out);
  x->state = kind;
  open_block(x,
             kind == TEXT_BLOCK ? json_pack("{s:s, s:s}", "type", "text", "text", "")
                                : json_pack("{s:s, s:s, s:s}", "type", "thinking", "thinking", "", "signature", ""),
             out);
}

static json_t *call_block(json_t *name, json_t *input) {
  char id[48];
  make_id(id, sizeof id, "toolu_");
  return json_pack("{s:s, s:s, s:o, s:o}", "type", "tool_use", "id", id, "name", name, "input", input);
}

static void delta(exchange *x, const char *type, const char *field, json_t *text, bytes *out) {
  append_event(out, "content_block_delta",
               json_pack("{s:s, s:i, s:{s:s, s:o}}", "type", "content_block_delta", "index", x->block, "delta", "type",
                         type, field, text));
}

static void tell_part(exchange *x, const news *n, const rdna__reply_part *part, int call, void *data) {
  bytes *out = data;
  json_t *text = rdna__json_of_text(part->text.data, part->text.size);
  if (part->kind == RDNA__REPLY_CALL) {
    close_block(x, out);
    open_block(x, call_block(rdna__json_of_text(part->name.data, part->name.size), json_object()), out);
    delta(x, "input_json_delta", "partial_json", text, out);
    x->state = TEXT_BLOCK; /* any but none: it is open */
    close_block(x, out);
  } else if (part->kind == RDNA__REPLY_REASONING) {
    open_text(x, THINKING_BLOCK, out);
    delta(x, "thinking_delta", "thinking", text, out);
  } else {
    open_text(x, TEXT_BLOCK, out);
    delta(x, "text_delta", "text", text, out);
  }
}

static void piece(exchange *x, const news *n, bytes *out) {
  if (!read_parts(x, n, tell_part, out)) out->failed = true;
}

static void end(exchange *x, bytes *out) {
  const choice *c = &x->job->choices[0];
  if (x->block == 0 && x->state == NO_BLOCK) open_text(x, TEXT_BLOCK, out); /* a message has a block */
  close_block(x, out);
  append_event(out, "message_delta",
               json_pack("{s:s, s:{s:s, s:s?}, s:o}", "type", "message_delta", "delta", "stop_reason", reason_of(x),
                         "stop_sequence", c->stop, "usage", usage(x->job)));
  append_event(out, "message_stop", json_pack("{s:s}", "type", "message_stop"));
}

static void fail(exchange *x, const problem *p, bytes *out) {
  bytes_append_text(out, "event: error\ndata: ");
  refuse_anthropic(p, out);
  bytes_append_text(out, "\n");
}

static json_t *whole(exchange *x) {
  whole_reply w;
  json_t *content = json_array();
  bool fine = read_reply(x, 0, &w);
  if (w.reasoning.size)
    json_array_append_new(content, json_pack("{s:s, s:o, s:s}", "type", "thinking", "thinking",
                                             rdna__json_of_text(w.reasoning.data, w.reasoning.size), "signature", ""));
  if (w.content.size || (!w.reasoning.size && json_array_size(w.calls) == 0))
    json_array_append_new(content, json_pack("{s:s, s:o}", "type", "text", "text",
                                             rdna__json_of_text(w.content.data ? w.content.data : "", w.content.size)));
  for (size_t i = 0; i < json_array_size(w.calls); i++) {
    const json_t *call = json_array_get(w.calls, i);
    json_t *input = json_loads(json_string_value(json_object_get(call, "arguments")), 0, NULL);
    json_array_append_new(content, call_block(json_incref(json_object_get(call, "name")), input));
  }
  whole_reply_deinit(&w);
  if (fine) return message(x, content, reason_of(x), x->job->choices[0].stop);
  json_decref(content);
  return NULL;
}

const dialect anthropic = {"text/event-stream",
                           "event: ping\ndata: {\"type\": \"ping\"}\n\n",
                           refuse_anthropic,
                           begin,
                           piece,
                           end,
                           fail,
                           whole};

enum MHD_Result handle_messages(exchange *x) {
  request r = REQUEST_DEFAULT;
  make_id(x->id, sizeof x->id, "msg_");
  if (read_request(x, &r, &x->problem)) return request_run(x, &r);
  request_deinit(&r);
  return respond_problem(x);
}

enum MHD_Result handle_count_tokens(exchange *x) {
  request r = REQUEST_DEFAULT;
  bool fine = read_prompt(x, &r, &x->problem);
  json_int_t count = fine ? (json_int_t)r.prompts[0].count : 0;
  request_deinit(&r);
  return fine ? respond_json(x, 200, json_pack("{s:I}", "input_tokens", count)) : respond_problem(x);
}
