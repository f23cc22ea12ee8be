#include <limits.h>
#include <string.h>

#include "base/status.h"
#include "server/chat.h"
#include "server/http.h"
#include "server/openai.h"

#define FIELDS_OF_BOTH                                                                                           \
  {"model", FIELD_READ}, {"stream", FIELD_READ}, {"stream_options", FIELD_READ}, {"n", FIELD_READ},              \
      {"max_tokens", FIELD_READ}, {"temperature", FIELD_READ}, {"top_p", FIELD_READ}, {"top_k", FIELD_READ},     \
      {"min_p", FIELD_READ}, {"repetition_penalty", FIELD_READ}, {"frequency_penalty", FIELD_READ},              \
      {"presence_penalty", FIELD_READ}, {"seed", FIELD_READ}, {"stop", FIELD_READ}, {"logit_bias", FIELD_READ},  \
      {"logprobs", FIELD_READ}, {"ignore_eos", FIELD_READ}, {"priority", FIELD_READ}, {"timeout", FIELD_READ},   \
      {"response_format", FIELD_READ}, {"grammar", FIELD_READ}, {"lora", FIELD_READ}, {"user", FIELD_IGNORED}, { \
    "cache_prompt", FIELD_IGNORED                                                                                \
  }

static const field_row chat_fields[] = {
    FIELDS_OF_BOTH,
    {"messages", FIELD_READ},
    {"max_completion_tokens", FIELD_READ},
    {"top_logprobs", FIELD_READ},
    {"chat_template_kwargs", FIELD_READ},
    {"modalities", FIELD_READ},
    {"tool_choice", FIELD_READ},
    {"tools", FIELD_READ},
    {"parallel_tool_calls", FIELD_READ},
    {"metadata", FIELD_IGNORED},
    {"store", FIELD_IGNORED},
    {"service_tier", FIELD_IGNORED},
    {"prompt_cache_key", FIELD_IGNORED},
    {"prompt_cache_retention", FIELD_IGNORED},
    {"prompt_cache_options", FIELD_IGNORED},
    {"moderation", FIELD_IGNORED},
    {"safety_identifier", FIELD_IGNORED},
    {"prediction", FIELD_IGNORED},
    {"reasoning_effort", FIELD_READ},
    {"verbosity", FIELD_IGNORED},
    {"functions", FIELD_REFUSED},
    {"function_call", FIELD_REFUSED},
    {"audio", FIELD_REFUSED},
    {"web_search_options", FIELD_REFUSED},
};

static const field_row completion_fields[] = {
    FIELDS_OF_BOTH, {"prompt", FIELD_READ}, {"best_of", FIELD_READ}, {"echo", FIELD_REFUSED}, {"suffix", FIELD_REFUSED},
};

/* What both have but for the prompt and the log probabilities. */
static bool read_common(exchange *x, request *r, problem *p) {
  const json_t *json = r->json, *stream_options = json_object_get(json, "stream_options");
  settings *s = &r->settings;
  if (stream_options && !json_is_null(stream_options)) {
    static const field_row fields[] = {{"include_usage", FIELD_READ}, {"include_obfuscation", FIELD_IGNORED}};
    if (!json_is_object(stream_options)) return refuse(p, 400, NULL, "stream_options", "'stream_options' is no object");
    if (!check_fields(stream_options, fields, 2, p) ||
        !read_bool(stream_options, "include_usage", &x->include_usage, p))
      return false;
  }
  return read_model(x, json, p) && read_sampling(json, "repetition_penalty", s, p) &&
         read_bool(json, "stream", &x->stream, p) && read_integer(json, "n", 1, MOST_CHOICES, &r->n, p) &&
         read_integer(json, "max_tokens", 1, INT32_MAX, &s->most_tokens, p) && read_stops(json, "stop", s, p) &&
         read_bool(json, "ignore_eos", &s->ignore_end, p) && read_urgency(json, s, p) &&
         read_logit_bias(json, (size_t)rdna_llm_get_info(x->model->llm)->vocabulary, s, p);
}

static bool read_top(const json_t *json, const char *field, settings *s, problem *p) {
  int64_t top = 0;
  if (!read_integer(json, field, 0, MOST_TOP_LOGPROBS, &top, p)) return false;
  s->top_logprobs = (int)top;
  return true;
}

static bool read_chat_logprobs(const json_t *json, settings *s, problem *p) {
  bool wanted = false;
  const json_t *top = json_object_get(json, "top_logprobs");
  if (!read_bool(json, "logprobs", &wanted, p)) return false;
  if (wanted) return read_top(json, "top_logprobs", s, p);
  return !top || json_is_null(top) || (json_is_integer(top) && json_integer_value(top) == 0) ||
         refuse(p, 400, NULL, "top_logprobs", "'top_logprobs' goes with 'logprobs': true");
}

/* "auto", "none", "required", or {"type": "function", "function": {"name": …}}. */
static bool read_tool_choice(const json_t *chosen, chat_request *c, problem *p) {
  if (!chosen || json_is_null(chosen)) return true;
  const char *word = json_string_value(chosen),
             *name = json_string_value(json_object_get(json_object_get(chosen, "function"), "name"));
  if (name && strlen(name) < sizeof c->tool)
    memcpy(c->tool, name, strlen(name) + 1);
  else if (!word || (strcmp(word, "auto") != 0 && strcmp(word, "none") != 0 && strcmp(word, "required") != 0))
    return refuse(p, 400, NULL, "tool_choice",
                  "'tool_choice' must be none, auto, required, or name one of the tools as {\"type\": \"function\", "
                  "\"function\": {\"name\": …}}");
  if (name || strcmp(word, "required") == 0) c->choice = TOOLS_REQUIRED;
  if (word && strcmp(word, "none") == 0) c->choice = TOOLS_NONE;
  return true;
}

/* Forms that a reply must have. */
static bool read_form(const json_t *json, chat_request *c, problem *p) {
  const json_t *kinds = json_object_get(json, "modalities"), *tools = json_object_get(json, "tools");
  for (size_t i = 0; i < json_array_size(kinds); i++) {
    const char *kind = json_string_value(json_array_get(kinds, i));
    if (!kind || strcmp(kind, "text") != 0)
      return refuse(p, 400, "unsupported_parameter", "modalities", "this server writes text alone");
  }
  bool several = true;
  if (tools && !json_is_null(tools)) c->tools = json_deep_copy(tools);
  bool fine = read_bool(json, "parallel_tool_calls", &several, p) && read_text(json, "grammar", &c->grammar, p) &&
              read_tool_choice(json_object_get(json, "tool_choice"), c, p) &&
              read_response_format(json_object_get(json, "response_format"), &c->schema, p);
  c->one_call = !several;
  return fine;
}

/* Variables for the template: those that the request gives, and how much to think. */
static json_t *read_variables(const json_t *json, problem *p) {
  const json_t *given = json_object_get(json, "chat_template_kwargs");
  const char *effort = NULL;
  if (given && !json_is_null(given) && !json_is_object(given)) {
    refuse(p, 400, NULL, "chat_template_kwargs", "'chat_template_kwargs' must be an object");
    return NULL;
  }
  if (!read_text(json, "reasoning_effort", &effort, p)) return NULL;
  json_t *variables = json_is_object(given) ? json_copy((json_t *)given) : json_object();
  if (variables && effort) json_object_set_new(variables, "reasoning_effort", json_string(effort));
  if (!variables) refuse(p, 500, NULL, NULL, "no host memory for the request");
  return variables;
}

bool openai_read_chat(exchange *x, request *r, problem *p) {
  const json_t *json = r->json = parse_object(x->body.data, x->body.size, p);
  if (!json || !check_fields(json, chat_fields, sizeof chat_fields / sizeof *chat_fields, p)) return false;
  chat_request c = {0};
  bool fine = read_common(x, r, p) && read_chat_logprobs(json, &r->settings, p) && read_form(json, &c, p) &&
              read_integer(json, "max_completion_tokens", 1, INT32_MAX, &r->settings.most_tokens, p) &&
              (c.messages = read_messages(x->model, json_object_get(json, "messages"), p)) &&
              (c.variables = read_variables(json, p)) && chat_prepare(x, r, &c, p);
  chat_deinit(&c);
  return fine && request_check(x, r, p);
}

/* ---- completions ---- */

static bool read_ids(const exchange *x, const json_t *ids, const char *field, rdna_tokens *tokens, problem *p) {
  int vocabulary = rdna_llm_get_info(x->model->llm)->vocabulary;
  for (size_t i = 0; i < json_array_size(ids); i++) {
    const json_t *id = json_array_get(ids, i);
    if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= vocabulary)
      return refuse(p, 400, NULL, field, "element %zu of '%s' is no token id; there are 0 to %d", i, field,
                    vocabulary - 1);
    rdna_status status = rdna_tokens_append(tokens, (int32_t)json_integer_value(id));
    if (status != RDNA_OK) return refuse_by_status(p, status, field);
  }
  return true;
}

static bool read_prompt(const exchange *x, const json_t *prompt, const char *field, rdna_tokens *tokens, problem *p) {
  if (json_is_string(prompt))
    return encode_text(x->model, json_string_value(prompt), json_string_length(prompt), tokens, p);
  if (json_is_array(prompt)) return read_ids(x, prompt, field, tokens, p);
  return refuse(p, 400, NULL, field, "'%s' must be a text, a list of token ids, or a list of such", field);
}

bool openai_read_prompts(const exchange *x, request *r, const char *field, size_t most, problem *p) {
  const json_t *prompt = json_object_get(r->json, field), *first = json_array_get(prompt, 0);
  bool several = json_is_string(first) || json_is_array(first);
  size_t count = several ? json_array_size(prompt) : 1;
  if (count > most)
    return refuse(p, 400, NULL, field, "%zu %ss are more than the %zu of one request", count, field, most);
  if (!request_add_prompts(r, count, p)) return false;
  for (size_t i = 0; i < count; i++)
    if (!read_prompt(x, several ? json_array_get(prompt, i) : prompt, field, &r->prompts[i], p)) return false;
  return true;
}

bool openai_read_completion(exchange *x, request *r, problem *p) {
  const json_t *json = r->json = parse_object(x->body.data, x->body.size, p);
  if (!json || !check_fields(json, completion_fields, sizeof completion_fields / sizeof *completion_fields, p))
    return false;
  r->settings.most_tokens = 16; /* as OpenAI has it */
  if (!read_common(x, r, p)) return false;
  const json_t *logprobs = json_object_get(json, "logprobs");
  if (logprobs && !json_is_null(logprobs) && !read_top(json, "logprobs", &r->settings, p)) return false;
  int64_t best_of = r->n;
  if (!read_integer(json, "best_of", 1, MOST_CHOICES, &best_of, p)) return false;
  if (best_of != r->n)
    return refuse(p, 400, "unsupported_parameter", "best_of", "'best_of' other than 'n' is not offered by this server");
  json_t *schema = NULL;
  const char *grammar = NULL;
  bool fine = read_text(json, "grammar", &grammar, p) &&
              read_response_format(json_object_get(json, "response_format"), &schema, p) &&
              use_form(x, r, schema, grammar, p);
  json_decref(schema);
  return fine && openai_read_prompts(x, r, "prompt", MOST_CHOICES, p) && request_check(x, r, p);
}
