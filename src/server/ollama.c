/* Ollama's interface: /api/chat, generate, tags, show, ps, version. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/json.h"
#include "server/catalog.h"
#include "server/chat.h"
#include "server/clock.h"
#include "server/http.h"
#include "server/keep_alive.h"
#include "server/ollama.h"
#include "server/parts.h"
#include "server/routes.h"

static const field_row chat_fields[] = {
    {"model", FIELD_READ},       {"messages", FIELD_READ},        {"stream", FIELD_READ},   {"options", FIELD_READ},
    {"think", FIELD_READ},       {"tools", FIELD_READ},           {"format", FIELD_READ},   {"keep_alive", FIELD_READ},
    {"logprobs", FIELD_REFUSED}, {"top_logprobs", FIELD_REFUSED}, {"priority", FIELD_READ}, {"timeout", FIELD_READ},
};
static const field_row generate_fields[] = {
    {"model", FIELD_READ},      {"prompt", FIELD_READ},      {"system", FIELD_READ},          {"stream", FIELD_READ},
    {"raw", FIELD_READ},        {"options", FIELD_READ},     {"think", FIELD_READ},           {"format", FIELD_READ},
    {"suffix", FIELD_READ},     {"template", FIELD_READ},    {"keep_alive", FIELD_READ},      {"images", FIELD_READ},
    {"context", FIELD_REFUSED}, {"logprobs", FIELD_REFUSED}, {"top_logprobs", FIELD_REFUSED}, {"priority", FIELD_READ},
    {"timeout", FIELD_READ},
};
static const field_row option_fields[] = {
    {"temperature", FIELD_READ},
    {"top_k", FIELD_READ},
    {"top_p", FIELD_READ},
    {"min_p", FIELD_READ},
    {"repeat_penalty", FIELD_READ},
    {"repeat_last_n", FIELD_READ},
    {"frequency_penalty", FIELD_READ},
    {"presence_penalty", FIELD_READ},
    {"seed", FIELD_READ},
    {"stop", FIELD_READ},
    {"num_predict", FIELD_READ},
    {"num_ctx", FIELD_IGNORED},
    {"num_keep", FIELD_IGNORED},
    {"num_batch", FIELD_IGNORED},
    {"num_gpu", FIELD_IGNORED},
    {"main_gpu", FIELD_IGNORED},
    {"num_thread", FIELD_IGNORED},
    {"use_mmap", FIELD_IGNORED},
    {"use_mlock", FIELD_IGNORED},
    {"numa", FIELD_IGNORED},
    {"low_vram", FIELD_IGNORED},
    {"typical_p", FIELD_READ},
    {"tfs_z", FIELD_READ},
    {"mirostat", FIELD_REFUSED},
    {"mirostat_eta", FIELD_IGNORED},
    {"mirostat_tau", FIELD_IGNORED},
    {"penalize_newline", FIELD_IGNORED},
    {"f16_kv", FIELD_IGNORED},
    {"num_gqa", FIELD_IGNORED},
    {"vocab_only", FIELD_REFUSED},
    {"logits_all", FIELD_REFUSED},
    {"embedding_only", FIELD_REFUSED},
};
/* Those of samplers that are not here, of which 1 changes nothing. Clients send all options that they know. */
static const field_values option_values[] = {{"typical_p", "[1]"}, {"tfs_z", "[1]"}};

/* ---- requests ---- */

/* Its own defaults, as its documentation of a model file's parameters has them. */
static bool read_options(request *r, problem *p) {
  const json_t *options = json_object_get(r->json, "options");
  settings *s = &r->settings;
  int64_t last = 64;
  s->sampling.temperature = 0.8F;
  s->sampling.top_k = 40;
  s->sampling.top_p = 0.9F;
  if (options && !json_is_null(options)) {
    if (!json_is_object(options)) return refuse(p, 400, NULL, "options", "'options' must be an object");
    if (!check_fields(options, option_fields, sizeof option_fields / sizeof *option_fields, p) ||
        !check_values(options, option_values, sizeof option_values / sizeof *option_values, p) ||
        !read_sampling(options, "repeat_penalty", s, p) || !read_stops(options, "stop", s, p) ||
        !read_integer(options, "repeat_last_n", -1, 1 << 24, &last, p) ||
        !read_integer(options, "num_predict", -2, INT32_MAX, &s->most_tokens, p))
      return false;
    if (json_is_integer(json_object_get(options, "seed")))
      json_object_set(r->json, "seed", json_object_get(options, "seed"));
  }
  s->sampling.repeat_last_n = last < 0 ? 1 << 24 : (int32_t)last; /* -1: all of them */
  if (s->most_tokens < 0) s->most_tokens = -1;
  return true;
}

/* "json", or a schema. */
static bool read_form(const json_t *json, json_t **out_schema, problem *p) {
  json_t *format = json_object_get(json, "format");
  const char *text = json_string_value(format);
  *out_schema = NULL;
  if (!format || json_is_null(format) || (text && *text == 0)) return true;
  if (json_is_object(format)) {
    *out_schema = json_incref(format);
    return true;
  }
  if (!text || strcmp(text, "json") != 0)
    return refuse(p, 400, NULL, "format", "'format' must be \"json\" or a JSON schema");
  *out_schema = any_object();
  return true;
}

bool keep_model(exchange *x, const json_t *json, problem *p) {
  double seconds = x->hosted->preset.idle_seconds;
  if (!read_keep_alive(json, &seconds, p)) return false;
  server_lock(x->server);
  x->hosted->idle = seconds;
  server_unlock(x->server);
  return true;
}

static bool read_both(exchange *x, request *r, const field_row *rows, size_t count, problem *p) {
  x->stream = true;
  r->json = parse_object(x->body.data, x->body.size, p);
  return r->json && check_fields(r->json, rows, count, p) && read_model(x, r->json, p) && keep_model(x, r->json, p) &&
         read_bool(r->json, "stream", &x->stream, p) && read_urgency(r->json, &r->settings, p) && read_options(r, p);
}

/* |list| is a chat's messages. */
static bool prepare(exchange *x, request *r, const json_t *list, problem *p) {
  const json_t *think = json_object_get(r->json, "think");
  json_t *tools = json_object_get(r->json, "tools");
  chat_request c = {.tools = tools && !json_is_null(tools) ? json_deep_copy(tools) : NULL};
  if (think && !json_is_null(think)) c.variables = json_pack("{s:b}", "enable_thinking", !json_is_false(think));
  bool fine =
      read_form(r->json, &c.schema, p) && (c.messages = read_messages(x->model, list, p)) && chat_prepare(x, r, &c, p);
  chat_deinit(&c);
  return fine && request_check(x, r, p);
}

static bool prepare_text(exchange *x, request *r, const char *prompt, problem *p) {
  json_t *schema = NULL;
  bool fine = read_form(r->json, &schema, p) && use_form(x, r, schema, NULL, p) && request_add_prompts(r, 1, p) &&
              encode_text(x->model, prompt, strlen(prompt), &r->prompts[0], p);
  json_decref(schema);
  return fine && request_check(x, r, p);
}

/* A prompt is a message, if the model knows such and the request does not want it as it stands. */
static bool read_generate(exchange *x, request *r, problem *p) {
  const char *prompt = "", *system = NULL, *other = NULL;
  bool raw = false;
  if (!read_text(r->json, "prompt", &prompt, p) || !read_text(r->json, "system", &system, p) ||
      !read_bool(r->json, "raw", &raw, p) || !read_text(r->json, "suffix", &other, p))
    return false;
  if (other && *other) return refuse(p, 400, NULL, "suffix", "'suffix' is not offered by this server; leave it out");
  if (!read_text(r->json, "template", &other, p)) return false;
  if (other && *other)
    return refuse(p, 400, NULL, "template", "'template' is not offered by this server; leave it out");
  json_t *images = json_object_get(r->json, "images");
  if (json_array_size(images) > 0 && (raw || !x->model->chat_template))
    return refuse(p, 400, NULL, "images",
                  "'images' go with a prompt that is a message: not with 'raw', and not with a "
                  "model that has no chat template");
  if (raw || !x->model->chat_template) return prepare_text(x, r, prompt, p);
  json_t *messages = json_array();
  if (system && *system) json_array_append_new(messages, json_pack("{s:s, s:s}", "role", "system", "content", system));
  json_array_append_new(messages, json_pack("{s:s, s:s, s:O*}", "role", "user", "content", prompt, "images", images));
  bool fine = prepare(x, r, messages, p);
  json_decref(messages);
  return fine;
}

/* ---- answers ---- */

static void refuse_ollama(const problem *p, bytes *out) { append_line(out, json_pack("{s:s}", "error", p->message)); }

static json_t *date_text(int64_t seconds, long nanoseconds) {
  time_t when = (time_t)seconds;
  struct tm parts;
  char text[64], date[32];
  gmtime_r(&when, &parts);
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
  snprintf(text, sizeof text, "%s.%06ldZ", date, nanoseconds / 1000);
  return json_string(text);
}

static json_t *now_text(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return date_text(now.tv_sec, now.tv_nsec);
}

/* |message|: {"content": …} and what else there is of "thinking" and "tool_calls". */
static json_t *part_of(const exchange *x, json_t *message, bool done) {
  json_t *part = json_pack("{s:s, s:o}", "model", model_name(x), "created_at", now_text());
  if (x->chat) {
    json_object_set_new(message, "role", json_string("assistant"));
    json_object_set_new(part, "message", message);
  } else {
    json_object_set(part, "response", json_object_get(message, "content"));
    if (json_object_get(message, "thinking")) json_object_set(part, "thinking", json_object_get(message, "thinking"));
    json_decref(message);
  }
  json_object_set_new(part, "done", json_boolean(done));
  return part;
}

static json_t *text_of(const char *text, size_t size) { return rdna__json_of_text(text ? text : "", size); }

static json_int_t nanoseconds(double seconds) { return (json_int_t)(1e9 * seconds); }

static json_t *last_part(const exchange *x, json_t *message) {
  const job *j = x->job;
  json_t *part = part_of(x, message, true);
  json_object_set_new(part, "done_reason", json_string(j->choices[0].finish_reason));
  json_object_set_new(part, "total_duration", json_integer(nanoseconds(clock_seconds() - x->begun)));
  json_object_set_new(part, "load_duration", json_integer(0));
  json_object_set_new(part, "prompt_eval_count", json_integer(prompt_tokens(j)));
  json_object_set_new(part, "prompt_eval_duration", json_integer(nanoseconds(j->first - j->asked)));
  json_object_set_new(part, "eval_count", json_integer(written_tokens(j)));
  json_object_set_new(part, "eval_duration", json_integer(nanoseconds(j->finished - j->first)));
  return part;
}

static json_t *call_of(json_t *name, const char *arguments, size_t size) {
  return json_pack("{s:{s:o, s:o}}", "function", "name", name, "arguments", json_loadb(arguments, size, 0, NULL));
}

static void tell_part(exchange *x, const news *n, const rdna__reply_part *part, int call, void *data) {
  json_t *message;
  if (part->kind == RDNA__REPLY_CALL)
    message = json_pack("{s:s, s:[o]}", "content", "", "tool_calls",
                        call_of(text_of(part->name.data, part->name.size), part->text.data, part->text.size));
  else if (part->kind == RDNA__REPLY_REASONING)
    message = json_pack("{s:s, s:o}", "content", "", "thinking", text_of(part->text.data, part->text.size));
  else
    message = json_pack("{s:o}", "content", text_of(part->text.data, part->text.size));
  append_line(data, part_of(x, message, false));
}

static void begin(exchange *x, bytes *out) {}
static void piece(exchange *x, const news *n, bytes *out) {
  if (!read_parts(x, n, tell_part, out)) out->failed = true;
}
static void end(exchange *x, bytes *out) { append_line(out, last_part(x, json_pack("{s:s}", "content", ""))); }
static void fail(exchange *x, const problem *p, bytes *out) { refuse_ollama(p, out); }

static json_t *whole(exchange *x) {
  whole_reply w;
  json_t *calls = json_array();
  bool fine = read_reply(x, 0, &w);
  json_t *message = json_pack("{s:o}", "content", text_of(w.content.data, w.content.size));
  if (w.reasoning.size) json_object_set_new(message, "thinking", text_of(w.reasoning.data, w.reasoning.size));
  for (size_t i = 0; i < json_array_size(w.calls); i++) {
    const json_t *call = json_array_get(w.calls, i), *arguments = json_object_get(call, "arguments");
    json_array_append_new(calls, call_of(json_incref(json_object_get(call, "name")), json_string_value(arguments),
                                         json_string_length(arguments)));
  }
  if (json_array_size(calls)) json_object_set(message, "tool_calls", calls);
  json_decref(calls);
  whole_reply_deinit(&w);
  if (fine) return last_part(x, message);
  json_decref(message);
  return NULL;
}

const dialect ollama = {"application/x-ndjson", "", refuse_ollama, begin, piece, end, fail, whole};

/* A request without messages or a prompt only loads the model, or lets it go. */
static bool asks_nothing(const request *r, bool chat) {
  const json_t *text = json_object_get(r->json, chat ? "messages" : "prompt");
  if (!text || json_is_null(text)) return true;
  return chat ? json_is_array(text) && json_array_size(text) == 0 : json_is_string(text) && !json_string_length(text);
}

static enum MHD_Result respond_loaded(exchange *x) {
  json_t *answer = part_of(x, json_pack("{s:s}", "content", ""), true);
  server_lock(x->server);
  bool goes = x->hosted->idle == 0;
  server_unlock(x->server);
  json_object_set_new(answer, "done_reason", json_string(goes ? "unload" : "load"));
  return respond_json(x, 200, answer);
}

static enum MHD_Result handle(exchange *x, bool chat) {
  request r = REQUEST_DEFAULT;
  problem *p = &x->problem;
  x->chat = chat;
  bool fine = chat ? read_both(x, &r, chat_fields, sizeof chat_fields / sizeof *chat_fields, p)
                   : read_both(x, &r, generate_fields, sizeof generate_fields / sizeof *generate_fields, p);
  bool nothing = fine && asks_nothing(&r, chat);
  if (fine && !nothing) fine = chat ? prepare(x, &r, json_object_get(r.json, "messages"), p) : read_generate(x, &r, p);
  if (fine && !nothing) return request_run(x, &r);
  request_deinit(&r);
  return fine ? respond_loaded(x) : respond_problem(x);
}

enum MHD_Result handle_ollama_chat(exchange *x) { return handle(x, true); }
enum MHD_Result handle_ollama_generate(exchange *x) { return handle(x, false); }

/* ---- the models ---- */

/* Under the lock, or of a model that is held; what only a model in memory tells is empty in the others. */
static json_t *details_of(const served_model *m) {
  static const rdna_llm_info unknown = {0};
  const rdna_llm_info *info = m ? rdna_llm_get_info(m->llm) : &unknown;
  char size[32] = "";
  if (m && info->parameters < 1000000000)
    snprintf(size, sizeof size, "%.1fM", (double)info->parameters / 1e6);
  else if (m)
    snprintf(size, sizeof size, "%.1fB", (double)info->parameters / 1e9);
  return json_pack("{s:s, s:s, s:s, s:[s], s:s, s:s}", "parent_model", "", "format", "gguf", "family",
                   info->architecture, "families", info->architecture, "parameter_size", size, "quantization_level",
                   "");
}

/* Under the lock. */
static json_t *model_of(const catalog_model *m) {
  char name[160];
  struct stat file = {0};
  if (stat(m->preset.path, &file) != 0) file.st_size = 0;
  snprintf(name, sizeof name, "%s:latest", m->preset.name);
  return json_pack("{s:s, s:s, s:o, s:I, s:s, s:o}", "name", name, "model", name, "modified_at",
                   date_text(file.st_mtim.tv_sec, file.st_mtim.tv_nsec), "size", (json_int_t)file.st_size, "digest", "",
                   "details", details_of(m->state == MODEL_IN ? &m->served : NULL));
}

enum MHD_Result handle_ollama_tags(exchange *x) {
  json_t *list = json_array();
  server_lock(x->server);
  for (const catalog_model *m = x->server->models; m; m = m->next)
    if (!m->retired) json_array_append_new(list, model_of(m));
  server_unlock(x->server);
  return respond_json(x, 200, json_pack("{s:o}", "models", list));
}

/* When nobody uses |m| from now on. */
static json_t *expires_at(const catalog_model *m) {
  static const double for_ever = 100 * 365 * 86400.0;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  double begun = m->holders > 0 ? clock_seconds() : m->used;
  double left = m->idle < 0 ? for_ever : begun + m->idle - clock_seconds();
  return date_text(now.tv_sec + (int64_t)left, 0);
}

enum MHD_Result handle_ollama_ps(exchange *x) {
  json_t *list = json_array();
  server_lock(x->server);
  for (const catalog_model *m = x->server->models; m; m = m->next) {
    if (m->state != MODEL_IN) continue;
    json_t *model = model_of(m);
    json_object_set_new(model, "context_length", json_integer(scheduler_context(m->scheduler)));
    json_object_set_new(model, "size_vram", json_integer(0));
    json_object_set_new(model, "expires_at", expires_at(m));
    json_array_append_new(list, model);
  }
  server_unlock(x->server);
  return respond_json(x, 200, json_pack("{s:o}", "models", list));
}

enum MHD_Result handle_ollama_show(exchange *x) {
  char key[64];
  rdna_text jinja = {"", 0};
  json_t *json = parse_object(x->body.data, x->body.size, &x->problem);
  bool fine = json && read_model(x, json, &x->problem);
  json_decref(json);
  if (!fine) return respond_problem(x);
  const served_model *m = x->model;
  const rdna_llm_info *info = rdna_llm_get_info(m->llm);
  if (m->chat_template && rdna_gguf_get_text(m->file, "tokenizer.chat_template", &jinja) != RDNA_OK)
    jinja = (rdna_text){"", 0};
  snprintf(key, sizeof key, "%s.context_length", info->architecture);
  json_t *capabilities = json_array();
  problem none;
  if (served_model_can(m, WORK_WRITES, &none)) json_array_append_new(capabilities, json_string("completion"));
  if (served_model_can(m, WORK_EMBEDS, &none)) json_array_append_new(capabilities, json_string("embedding"));
  if (m->vision) json_array_append_new(capabilities, json_string("vision"));
  if (m->format.form != RDNA__REPLY_PLAIN) json_array_append_new(capabilities, json_string("tools"));
  if (m->format.think || m->format.form == RDNA__REPLY_HARMONY)
    json_array_append_new(capabilities, json_string("thinking"));
  return respond_json(x, 200,
                      json_pack("{s:s, s:s, s:o, s:o, s:{s:s, s:I, s:i}, s:o}", "modelfile", "", "parameters", "",
                                "template", rdna__json_of_text(jinja.data, jinja.size), "details", details_of(m),
                                "model_info", "general.architecture", info->architecture, "general.parameter_count",
                                (json_int_t)info->parameters, key, info->context, "capabilities", capabilities));
}

enum MHD_Result handle_ollama_version(exchange *x) {
  return respond_json(x, 200, json_pack("{s:s}", "version", "0.12.0"));
}
