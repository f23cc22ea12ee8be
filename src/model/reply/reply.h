/* A model's output in parts: what it thinks, what it says, and the tools that it calls, each as soon as it is certain.
 *
 *   <think>Two cities…</think>Let me look.<tool_call>{"name": "weather", "arguments": {"city": "Bern"}}</tool_call>
 *   '---- reasoning --'      '- content -'            '------------ a call ------------'
 *
 * What may become a tag is held back until it is one or is not. What looks like a call and cannot be read as one comes
 * back as content, with nothing lost. The text must have control tokens as they are written (rdna_detokenizer_create,
 * show_control): many forms are made of them. */
#ifndef RDNA_MODEL_REPLY_H
#define RDNA_MODEL_REPLY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "rdna/model.h"

/* How a family of models writes a call, by the chat templates that its makers publish. */
typedef enum rdna__reply_form {
  RDNA__REPLY_PLAIN,  /* no calls */
  RDNA__REPLY_HERMES, /* <tool_call>{"name": …, "arguments": {…}}</tool_call>: Hermes, Qwen 2.5 and 3, and others */
  RDNA__REPLY_XML,    /* <tool_call><function=NAME><parameter=KEY>value</parameter>…: Qwen3-Coder, Qwen 3.5 */
  RDNA__REPLY_LLAMA,  /* the reply is {"name": …, "parameters": {…}}, or <|python_tag|> and that: Llama 3.1 and later */
  RDNA__REPLY_MISTRAL,  /* [TOOL_CALLS][{"name": …, "arguments": {…}}] or [TOOL_CALLS]NAME[ARGS]{…} */
  RDNA__REPLY_HARMONY,  /* <|channel|>commentary to=functions.NAME <|message|>{…}<|call|>: gpt-oss */
  RDNA__REPLY_DEEPSEEK, /* <｜tool▁call▁begin｜>… in the forms of V3, R1 and V3.1 */
  RDNA__REPLY_GLM,      /* <tool_call>NAME<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>: GLM 4.5 and later */
  RDNA__REPLY_GRANITE,  /* <|tool_call|>[{"name": …, "arguments": {…}}]: Granite 3, Phi-4-mini between <|tool_call|>s */
  RDNA__REPLY_FORM_COUNT
} rdna__reply_form;

typedef struct rdna__reply_format {
  rdna__reply_form form;
  const char *think, *think_end; /* "<think>", "</think>"; NULL where the model has none */
  bool variant;      /* Mistral: NAME[ARGS]{…} and no list; DeepSeek: a call without a fence around its arguments */
  bool thinks_first; /* the prompt has opened the thinking already: rdna__reply_opened */
} rdna__reply_format;

/* By what stands in a chat template. */
rdna__reply_format rdna__reply_format_of(const char *chat_template, size_t size);
const char *rdna__reply_form_name(rdna__reply_form form);
/* Whether |prompt|, as rendered, ends inside an opened thinking. */
bool rdna__reply_opened(const rdna__reply_format *format, const char *prompt, size_t size);

typedef enum rdna__reply_kind {
  RDNA__REPLY_CONTENT,   /* text */
  RDNA__REPLY_REASONING, /* text */
  RDNA__REPLY_CALL       /* text: the arguments, a JSON object; name */
} rdna__reply_kind;

typedef struct rdna__reply_part {
  rdna__reply_kind kind;
  rdna_text text;
  rdna_text name; /* of a call's function */
} rdna__reply_part;

/* Use from one thread at a time. */
typedef struct rdna__reply rdna__reply;

/* |tools|, a JSON array as in an OpenAI request or nothing, says which arguments are texts where a form does not.
 * RDNA_INVALID_ARGUMENT: it is not JSON. */
rdna_status rdna__reply_create(const rdna__reply_format *format, const char *tools, size_t size,
                               rdna__reply **out_reply);
void rdna__reply_release(rdna__reply *reply); /* NULL is fine */
/* The next bytes of the output. |*out_parts| are what is certain now, in order, valid until the next call; parts of
 * the same kind, but calls, belong together. */
rdna_status rdna__reply_push(rdna__reply *reply, const char *text, size_t size, const rdna__reply_part **out_parts,
                             size_t *out_count);
/* The output has ended: what is still held back. */
rdna_status rdna__reply_finish(rdna__reply *reply, const rdna__reply_part **out_parts, size_t *out_count);

/* What a reply must be: calls of tools, a value of a schema, or either. */
typedef struct rdna__reply_rules {
  const char *tools; /* (tools_size) a JSON array as in an OpenAI request; NULL: no calls */
  size_t tools_size;
  bool parallel;      /* more calls than one */
  const char *schema; /* a JSON schema; NULL: nothing but calls */
  bool may_think;     /* before it, where the form has a channel for that (Harmony) */
} rdna__reply_rules;

/* The text of a grammar for such a reply, to be freed. Of control tokens in the form, |tokenizer| knows the numbers; it
 * may be NULL for tests, which then have them as text. RDNA_UNSUPPORTED: calls in a form without, or a schema that
 * cannot be enforced. */
rdna_status rdna__reply_grammar(const rdna__reply_format *format, const rdna_tokenizer *tokenizer,
                                const rdna__reply_rules *rules, char **out_text);
/* What calls begin with, in that grammar and nowhere else; NULL where the form has no such tag. */
const char *rdna__reply_call_tag(const rdna__reply_format *format);

#endif
