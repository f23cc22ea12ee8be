/* Grammars under which a reply is calls of some tools, in the form that the model writes them, or a value. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/grammar/grammar.h"
#include "model/reply/reply_parts.h"

#define DEEPSEEK(words) "<\xef\xbd\x9ctool\xe2\x96\x81" words "\xef\xbd\x9c>"

typedef struct tool_grammar {
  rdna__reply reply; /* for its memory's failures */
  const rdna_tokenizer *tokenizer;
  rdna__reply_format format;
  reply_bytes out;
} tool_grammar;

static void put(tool_grammar *g, const char *text) { rdna__reply_append(&g->reply, &g->out, text, strlen(text)); }

static void put_literal(tool_grammar *g, const char *text) {
  put(g, "\"");
  for (; *text; text++) {
    char escaped[8] = {*text, 0};
    if (*text == '"' || *text == '\\') snprintf(escaped, sizeof escaped, "\\%c", *text);
    if ((unsigned char)*text < 32) snprintf(escaped, sizeof escaped, "\\x%02x", *text);
    put(g, escaped);
  }
  put(g, "\" ");
}

/* A tag of the form: the model's own control token where it has one, the text otherwise. */
static void put_tag(tool_grammar *g, const char *text) {
  int32_t id;
  rdna_token_type type;
  char number[32];
  if (g->tokenizer && rdna_tokenizer_find(g->tokenizer, text, strlen(text), &id) == RDNA_OK &&
      rdna_tokenizer_type(g->tokenizer, id, &type) == RDNA_OK && type == RDNA_TOKEN_TYPE_CONTROL) {
    snprintf(number, sizeof number, "<[%d]> ", (int)id);
    put(g, number);
  } else {
    put_literal(g, text);
  }
}

/* The rules of a schema's grammar, their names with |prefix| before them: root becomes t0-root. */
static rdna_status put_schema(tool_grammar *g, const json_t *schema, const char *prefix) {
  char *json = schema ? json_dumps(schema, JSON_ENCODE_ANY) : NULL, *text;
  if (schema && !json) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a tool's grammar");
  const char *none = "{\"type\": \"object\", \"properties\": {}}";
  rdna_status status = rdna__grammar_of_schema(json ? json : none, strlen(json ? json : none), &text);
  free(json);
  RDNA_TRY(status);
  bool quoted = false, in_class = false, in_name = false;
  for (const char *at = text; *at; at++) {
    bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z'), digit = *at >= '0' && *at <= '9';
    bool outside = !quoted && !in_class;
    if (outside && letter && !in_name) put(g, prefix);
    in_name = outside && (letter || (in_name && digit));
    if (*at == '\\' && !outside) {
      rdna__reply_append(&g->reply, &g->out, at++, 1);
    } else if (*at == '"' && !in_class) {
      quoted = !quoted;
    } else if (!quoted && (*at == '[' || *at == ']')) {
      in_class = *at == '[';
    }
    rdna__reply_append(&g->reply, &g->out, at, 1);
  }
  free(text);
  return RDNA_OK;
}

/* {"name": "f", "arguments": …}. */
static void put_object(tool_grammar *g, const char *name, const char *key, const char *arguments) {
  json_t *text = json_string(name);
  char *quoted = text ? json_dumps(text, JSON_ENCODE_ANY) : NULL;
  put_literal(g, "{\"name\": ");
  put_literal(g, quoted ? quoted : "");
  put_literal(g, ", \"");
  put_literal(g, key);
  put_literal(g, "\": ");
  put(g, arguments);
  put(g, "\"}\" ");
  free(quoted);
  json_decref(text);
}

/* A text without conditions, which stands in a tag as it is. */
static bool is_plain_text(const json_t *schema) {
  const char *type = json_string_value(json_object_get(schema, "type"));
  size_t known = 1 + (json_object_get(schema, "description") != NULL) + (json_object_get(schema, "title") != NULL);
  return type && strcmp(type, "string") == 0 && json_object_size(schema) == known;
}

static bool is_required(const json_t *required, const char *name) {
  for (size_t i = 0; i < json_array_size(required); i++) {
    const char *each = json_string_value(json_array_get(required, i));
    if (each && strcmp(each, name) == 0) return true;
  }
  return false;
}

/* Arguments as tags, in the order of the schema. */
static void put_tagged(tool_grammar *g, const json_t *parameters, size_t tool) {
  bool xml = g->format.form == RDNA__REPLY_XML;
  const char *name;
  json_t *value;
  size_t number = 0;
  json_object_foreach(json_object_get(parameters, "properties"), name, value) {
    bool optional = !is_required(json_object_get(parameters, "required"), name);
    char rule[64];
    snprintf(rule, sizeof rule, is_plain_text(value) ? "text " : "t%zu-p%zu-root ", tool, number);
    number++;
    put(g, optional ? "(" : "");
    put_literal(g, xml ? "<parameter=" : "<arg_key>");
    put_literal(g, name);
    put_literal(g, xml ? ">\n" : "</arg_key>\n<arg_value>");
    put(g, rule);
    put_literal(g, xml ? "\n</parameter>\n" : "</arg_value>\n");
    put(g, optional ? ")? " : "");
  }
}

/* The rules of the arguments that are no plain text. */
static rdna_status put_tagged_schemas(tool_grammar *g, const json_t *parameters, size_t tool) {
  const char *name;
  json_t *value;
  size_t number = 0;
  json_object_foreach(json_object_get(parameters, "properties"), name, value) {
    const char *type = json_string_value(json_object_get(value, "type"));
    char prefix[64];
    snprintf(prefix, sizeof prefix, "t%zu-p%zu-", tool, number++);
    if (is_plain_text(value)) continue;
    if (!type || strcmp(type, "string") == 0)
      return rdna__fail(RDNA_UNSUPPORTED,
                        "the argument %.100s: what may be a text can be enforced in this model's tags only "
                        "without conditions",
                        name);
    RDNA_TRY(rdna__annotate(put_schema(g, value, prefix), "the argument %.100s", name));
  }
  return RDNA_OK;
}

/* What stands before a call and behind it, around the name and the arguments. */
static void put_call(tool_grammar *g, const char *name, const json_t *parameters, size_t tool) {
  char arguments[32];
  snprintf(arguments, sizeof arguments, "t%zu-root ", tool);
  switch (g->format.form) {
    case RDNA__REPLY_HERMES:
      put_tag(g, "<tool_call>");
      put(g, "\"\\n\" ");
      put_object(g, name, "arguments", arguments);
      put(g, "\"\\n\" ");
      put_tag(g, "</tool_call>");
      break;
    case RDNA__REPLY_XML:
    case RDNA__REPLY_GLM:
      put_tag(g, "<tool_call>");
      put_literal(g, g->format.form == RDNA__REPLY_XML ? "\n<function=" : "");
      put_literal(g, name);
      put_literal(g, g->format.form == RDNA__REPLY_XML ? ">\n" : "\n");
      put_tagged(g, parameters, tool);
      put_literal(g, g->format.form == RDNA__REPLY_XML ? "</function>\n" : "");
      put_tag(g, "</tool_call>");
      break;
    case RDNA__REPLY_LLAMA:
      put_object(g, name, "parameters", arguments);
      break;
    case RDNA__REPLY_MISTRAL:
      if (g->format.variant) {
        put_tag(g, "[TOOL_CALLS]");
        put_literal(g, name);
        put_tag(g, "[ARGS]");
        put(g, arguments);
        break;
      } /* fall through */
    case RDNA__REPLY_GRANITE:
      put_object(g, name, "arguments", arguments);
      break;
    case RDNA__REPLY_HARMONY:
      put_tag(g, "<|channel|>");
      put_literal(g, "commentary to=functions.");
      put_literal(g, name);
      put(g, "\" \" ");
      put_tag(g, "<|constrain|>");
      put_literal(g, "json");
      put_tag(g, "<|message|>");
      put(g, arguments);
      break;
    default: /* DeepSeek */
      put_tag(g, DEEPSEEK("call\xe2\x96\x81"
                          "begin"));
      if (!g->format.variant) put_literal(g, "function");
      if (g->format.variant) put_literal(g, name);
      put_tag(g, DEEPSEEK("sep"));
      if (!g->format.variant) put_literal(g, name);
      if (!g->format.variant) put_literal(g, "\n```json\n");
      put(g, arguments);
      if (!g->format.variant) put_literal(g, "\n```");
      put_tag(g, DEEPSEEK("call\xe2\x96\x81"
                          "end"));
      break;
  }
}

const char *rdna__reply_call_tag(const rdna__reply_format *format) {
  switch (format->form) {
    case RDNA__REPLY_HERMES:
    case RDNA__REPLY_XML:
    case RDNA__REPLY_GLM:
      return "<tool_call>";
    case RDNA__REPLY_MISTRAL:
      return "[TOOL_CALLS]";
    case RDNA__REPLY_GRANITE:
      return "<|tool_call|>";
    case RDNA__REPLY_DEEPSEEK:
      return DEEPSEEK(
          "calls\xe2\x96\x81"
          "begin");
    default:
      return NULL;
  }
}

/* One call or more, with what a list of them has around it. */
static void put_calls(tool_grammar *g, bool parallel) {
  const char *begin = "", *end = "", *between = "\n";
  bool list = g->format.form == RDNA__REPLY_GRANITE || (g->format.form == RDNA__REPLY_MISTRAL && !g->format.variant);
  if (list || g->format.form == RDNA__REPLY_DEEPSEEK) begin = rdna__reply_call_tag(&g->format);
  if (g->format.form == RDNA__REPLY_DEEPSEEK)
    end = DEEPSEEK(
        "calls\xe2\x96\x81"
        "end");
  if (g->format.form == RDNA__REPLY_LLAMA) between = "; ";
  if (g->format.form == RDNA__REPLY_MISTRAL) between = "";
  if (list) between = ", ";
  put(g, "calls ::= ");
  if (*begin) put_tag(g, begin);
  put(g, list ? "\"[\" call " : "call ");
  if (parallel && g->format.form != RDNA__REPLY_HARMONY) { /* there a call ends the reply */
    put(g, "(");
    put_literal(g, between);
    put(g, "call){0,31} ");
  }
  put(g, list ? "\"]\" " : "");
  if (*end) put_tag(g, end);
  put(g, "\n");
}

/* root ::= thinking? (calls | said) */
static void put_root(tool_grammar *g, const rdna__reply_rules *rules) {
  bool harmony = g->format.form == RDNA__REPLY_HARMONY, thinking = harmony && rules->may_think;
  put(g, thinking ? "root ::= thinking? (" : "root ::= (");
  put(g, !rules->schema ? "calls)\n" : rules->tools ? "calls | said)\n" : "said)\n");
  if (thinking) {
    put(g, "thinking ::= ");
    put_tag(g, "<|channel|>");
    put_literal(g, "analysis");
    put_tag(g, "<|message|>");
    put(g, ".* ");
    put_tag(g, "<|end|>");
    put_tag(g, "<|start|>");
    put(g, "\"assistant\"\n");
  }
  if (!rules->schema) return;
  put(g, "said ::= ");
  if (harmony) {
    put_tag(g, "<|channel|>");
    put(g, "\"final\" (\" \" ");
    put_tag(g, "<|constrain|>");
    put(g, "\"json\")? ");
    put_tag(g, "<|message|>");
  }
  put(g, "said-root\n");
}

static bool is_fit(const char *name) {
  size_t size = name ? strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") : 0;
  return size > 0 && !name[size];
}

static rdna_status put_tools(tool_grammar *g, const json_t *tools, bool parallel) {
  bool tagged = g->format.form == RDNA__REPLY_XML || g->format.form == RDNA__REPLY_GLM;
  put_calls(g, parallel);
  put(g, "text ::= ([^<] | \"<\"+ [^</])*\n");
  put(g, "call ::= ");
  for (size_t i = 0; i < json_array_size(tools); i++) {
    char name[32];
    snprintf(name, sizeof name, i ? "| call%zu " : "call%zu ", i);
    put(g, name);
  }
  put(g, "\n");
  for (size_t i = 0; i < json_array_size(tools); i++) {
    const json_t *tool = json_array_get(tools, i), *inner = json_object_get(tool, "function");
    if (inner) tool = inner;
    const char *name = json_string_value(json_object_get(tool, "name"));
    const json_t *parameters = json_object_get(tool, "parameters");
    if (!is_fit(name))
      return rdna__fail(RDNA_INVALID_ARGUMENT, "tool %zu has no name of letters, digits, _, . and -", i);
    char text[32];
    snprintf(text, sizeof text, "call%zu ::= ", i);
    put(g, text);
    put_call(g, name, parameters, i);
    put(g, "\n");
    snprintf(text, sizeof text, "t%zu-", i);
    RDNA_TRY(rdna__annotate(tagged ? put_tagged_schemas(g, parameters, i) : put_schema(g, parameters, text),
                            "the tool %.100s", name));
  }
  return RDNA_OK;
}

static rdna_status put_rules(tool_grammar *g, const rdna__reply_rules *rules, const json_t *tools) {
  put_root(g, rules);
  if (tools) RDNA_TRY(put_tools(g, tools, rules->parallel));
  json_t *schema = rules->schema ? json_loads(rules->schema, JSON_DECODE_ANY, NULL) : NULL;
  rdna_status status = RDNA_OK;
  if (rules->schema)
    status = schema ? put_schema(g, schema, "said-") : rdna__fail(RDNA_INVALID_ARGUMENT, "the schema is no JSON");
  json_decref(schema);
  RDNA_TRY(status);
  rdna__reply_append(&g->reply, &g->out, "", 1);
  return g->reply.status;
}

rdna_status rdna__reply_grammar(const rdna__reply_format *format, const rdna_tokenizer *tokenizer,
                                const rdna__reply_rules *rules, char **out_text) {
  if (rules->tools && format->form == RDNA__REPLY_PLAIN)
    return rdna__fail(RDNA_UNSUPPORTED, "the model's chat template has no form for calls of tools");
  json_t *list = rules->tools ? json_loadb(rules->tools, rules->tools_size, JSON_REJECT_DUPLICATES, NULL) : NULL;
  if (rules->tools ? json_array_size(list) == 0 : !rules->schema) {
    json_decref(list);
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the tools are no JSON array with at least one");
  }
  tool_grammar g = {.tokenizer = tokenizer, .format = *format};
  rdna_status status = put_rules(&g, rules, list);
  json_decref(list);
  if (status == RDNA_OK) {
    *out_text = g.out.data;
  } else {
    free(g.out.data);
  }
  return status;
}
