#include "server/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "server/http.h"
#include "server/pictures.h"

void chat_deinit(chat_request *c) {
  json_decref(c->messages);
  json_decref(c->variables);
  json_decref(c->tools);
  json_decref(c->schema);
  *c = (chat_request){0};
}

json_t *any_object(void) { return json_pack("{s:s, s:b}", "type", "object", "additionalProperties", 1); }

bool read_response_format(const json_t *format, json_t **out_schema, problem *p) {
  static const char field[] = "response_format";
  *out_schema = NULL;
  if (!format || json_is_null(format)) return true;
  const char *type = json_string_value(json_object_get(format, "type"));
  if (type && strcmp(type, "text") == 0) return true;
  if (type && strcmp(type, "json_object") == 0) {
    *out_schema = any_object();
    return *out_schema || refuse(p, 500, NULL, NULL, "no host memory for the request");
  }
  if (!type || strcmp(type, "json_schema") != 0)
    return refuse(p, 400, NULL, field,
                  "'response_format' must have the type text, json_object or json_schema, not '%.40s'",
                  type ? type : "?");
  json_t *schema = json_object_get(json_object_get(format, "json_schema"), "schema");
  if (!schema) return refuse(p, 400, NULL, field, "'response_format' has no 'json_schema' with a 'schema'");
  *out_schema = json_incref(schema);
  return true;
}

/* ---- tools ---- */

static const char *name_of(const json_t *tool) {
  return json_string_value(json_object_get(json_object_get(tool, "function"), "name"));
}

static bool check_tools(const json_t *tools, problem *p) {
  if (!json_is_array(tools)) return refuse(p, 400, NULL, "tools", "'tools' must be a list");
  for (size_t i = 0; i < json_array_size(tools); i++) {
    const json_t *tool = json_array_get(tools, i), *type = json_object_get(tool, "type");
    if (type && !(json_is_string(type) && strcmp(json_string_value(type), "function") == 0))
      return refuse(p, 400, "unsupported_parameter", "tools",
                    "tool %zu is of type '%.40s'; only functions are called here", i,
                    json_is_string(type) ? json_string_value(type) : "?");
    if (!name_of(tool)) return refuse(p, 400, NULL, "tools", "tool %zu has no 'function' with a 'name'", i);
  }
  return true;
}

/* The tools that the reply may call: all, or only the one that the request demands. */
static json_t *tools_to_call(const chat_request *c, problem *p) {
  if (!c->tool[0]) return json_incref(c->tools);
  for (size_t i = 0; i < json_array_size(c->tools); i++)
    if (strcmp(name_of(json_array_get(c->tools, i)), c->tool) == 0)
      return json_pack("[O]", json_array_get(c->tools, i));
  refuse(p, 400, NULL, "tool_choice", "'tool_choice' names '%.100s', which is not among the tools", c->tool);
  return NULL;
}

/* Checks what is asked of tools; afterwards |c| has the tools that may be called, or none. */
static bool settle_tools(const exchange *x, chat_request *c, problem *p) {
  if (c->tools && !json_is_null(c->tools) && !check_tools(c->tools, p)) return false;
  bool any = json_array_size(c->tools) > 0;
  if (!any && c->choice == TOOLS_REQUIRED)
    return refuse(p, 400, NULL, "tool_choice", "there are no tools to choose; give some in 'tools'");
  if (!any || c->choice == TOOLS_NONE) {
    json_decref(c->tools);
    c->tools = NULL;
    return true;
  }
  return x->model->format.form != RDNA__REPLY_PLAIN ||
         refuse(
             p, 400, "unsupported_parameter", "tools",
             "the chat template of the model '%s' has no form for calls of tools that is known here; leave 'tools' out",
             x->model->name);
}

/* ---- the form of the reply ---- */

/* The token whose text is exactly |text|; -1: none. */
static int32_t token_of(const exchange *x, const char *text) {
  int32_t id;
  return text && rdna_tokenizer_find(x->model->tokenizer, text, strlen(text), &id) == RDNA_OK ? id : -1;
}

static bool use_grammar(const exchange *x, settings *s, const char *text, const char *field, problem *p) {
  s->grammars = x->model->grammars;
  rdna_status status = grammars_get(s->grammars, text, &s->grammar);
  return status == RDNA_OK || refuse_by_status(p, status, field);
}

/* Binds the reply to a grammar from its first word behind the reasoning on. */
static bool begin_at_once(const exchange *x, settings *s, problem *p) {
  if (!s->thinks_first) return true;
  s->grammar_begin = s->think_end;
  return s->think_end >= 0 ||
         refuse(p, 400, NULL, NULL,
                "the model '%s' thinks first, and its vocabulary has no token for the end of that: no form of what "
                "follows can be kept to",
                x->model->name);
}

static char *text_of(const json_t *json) { return json ? json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY) : NULL; }

/* Which tools and which schema the reply keeps to. Calls that the model is free to make keep to their tools from their
 * first token on, where the form has one for that and the tools can be enforced; the others come as they are. */
static bool use_rules(exchange *x, settings *s, const chat_request *c, problem *p) {
  bool required = c->choice == TOOLS_REQUIRED;
  int32_t tag = token_of(x, rdna__reply_call_tag(&x->format));
  if (!required && !c->schema && !(c->tools && tag >= 0)) return true;
  json_t *callable = c->tools ? tools_to_call(c, p) : NULL;
  if (c->tools && !callable) return false;
  char *tools = text_of(callable), *schema = required ? NULL : text_of(c->schema), *grammar = NULL;
  json_decref(callable);
  const rdna__reply_rules rules = {.tools = tools,
                                   .tools_size = tools ? strlen(tools) : 0,
                                   .parallel = !c->one_call,
                                   .schema = schema,
                                   .may_think = true};
  rdna_status status = rdna__reply_grammar(&x->format, x->model->tokenizer, &rules, &grammar);
  free(tools);
  free(schema);
  bool fine = true;
  if (required || c->schema) {
    const char *field = required ? "tools" : "response_format";
    fine = (status == RDNA_OK || refuse_by_status(p, status, field)) && use_grammar(x, s, grammar, field, p) &&
           begin_at_once(x, s, p);
  } else if (status == RDNA_OK) {
    problem ignored;
    s->grammar_begin = tag;
    s->begin_is_part = true;
    use_grammar(x, s, grammar, "tools", &ignored);
  }
  free(grammar);
  return fine;
}

static bool use_text(const exchange *x, settings *s, const chat_request *c, problem *p) {
  if (c->schema || c->choice == TOOLS_REQUIRED)
    return refuse(p, 400, NULL, "grammar", "'grammar' excludes a schema of the reply and tools that must be called");
  return use_grammar(x, s, c->grammar, "grammar", p) && begin_at_once(x, s, p);
}

bool use_form(exchange *x, request *r, const json_t *schema, const char *grammar, problem *p) {
  if (!schema && !grammar) return true;
  if (schema && grammar) return refuse(p, 400, NULL, "grammar", "'grammar' excludes 'response_format'");
  if (grammar) return use_grammar(x, &r->settings, grammar, "grammar", p);
  char *text = text_of(schema), *made = NULL;
  bool fine = text && rdna__grammar_of_schema(text, strlen(text), &made) == RDNA_OK;
  free(text);
  fine = fine ? use_grammar(x, &r->settings, made, "response_format", p) : refuse_with_status(p, "response_format");
  free(made);
  return fine;
}

/* How the reply will be taken apart. */
static void set_format(exchange *x, settings *s, const chat_request *c, const char *prompt, size_t size) {
  x->format = x->model->format;
  x->one_call = c->one_call;
  if (!c->tools && x->format.form != RDNA__REPLY_HARMONY) x->format.form = RDNA__REPLY_PLAIN; /* no calls */
  if (c->tools) x->tools = json_incref(c->tools);
  x->takes_apart = x->format.form != RDNA__REPLY_PLAIN || x->format.think;
  x->format.thinks_first = s->thinks_first = x->takes_apart && rdna__reply_opened(&x->format, prompt, size);
  s->show_control = x->takes_apart;
  s->think = token_of(x, x->format.think);
  s->think_end = token_of(x, x->format.think_end);
}

static bool encode_pictures(const served_model *m, const char *prompt, size_t size, request *r, problem *p) {
  rdna_status status = rdna__vision_encode(m->vision, m->tokenizer, prompt, size, RDNA_ENCODE_PARSE_SPECIAL,
                                           r->pictures, r->picture_count, &r->prompts[0]);
  return status == RDNA_OK || refuse_by_status(p, status, "messages");
}

bool chat_prepare(exchange *x, request *r, chat_request *c, problem *p) {
  const served_model *m = x->model;
  char *prompt = NULL;
  size_t size = 0;
  if (!settle_tools(x, c, p)) return false;
  if (!c->variables) c->variables = json_object();
  if (c->tools && json_object_set(c->variables, "tools", c->tools) != 0)
    return refuse(p, 500, NULL, NULL, "no host memory for the request");
  bool fine =
      take_pictures(m, c->messages, r, p) && request_add_prompts(r, 1, p) &&
      render_chat(m, c->messages, c->variables, &prompt, &size, p) &&
      (r->picture_count > 0 ? encode_pictures(m, prompt, size, r, p) : encode_chat(m, prompt, size, &r->prompts[0], p));
  if (fine) set_format(x, &r->settings, c, prompt, size);
  free(prompt);
  if (!fine) return false;
  return c->grammar ? use_text(x, &r->settings, c, p) : use_rules(x, &r->settings, c, p);
}
