/* Which form a model's replies have, by marks in its chat template. The templates are those that the makers publish
 * beside their weights; what each mark means is said in reply.h. */
#include <string.h>

#include "model/reply/reply.h"

static const struct {
  const char *mark;
  rdna__reply_form form;
} marks[] = {
    {"<|channel|>", RDNA__REPLY_HARMONY},
    {"<\xef\xbd\x9ctool\xe2\x96\x81"
     "call",
     RDNA__REPLY_DEEPSEEK},
    {"<function=", RDNA__REPLY_XML},
    {"<arg_key>", RDNA__REPLY_GLM},
    {"<|tool_call|>", RDNA__REPLY_GRANITE},
    {"[TOOL_CALLS]", RDNA__REPLY_MISTRAL},
    {"<tool_call>", RDNA__REPLY_HERMES},
    {"<|python_tag|>", RDNA__REPLY_LLAMA},
    {"\"parameters\": dict", RDNA__REPLY_LLAMA},
    {"\"parameters\": dictionary", RDNA__REPLY_LLAMA},
};

static bool has(const char *text, size_t size, const char *word) { return memmem(text, size, word, strlen(word)); }

rdna__reply_format rdna__reply_format_of(const char *chat_template, size_t size) {
  rdna__reply_format format = {.form = RDNA__REPLY_PLAIN};
  for (size_t i = 0; i < sizeof marks / sizeof *marks && format.form == RDNA__REPLY_PLAIN; i++)
    if (has(chat_template, size, marks[i].mark)) format.form = marks[i].form;
  format.variant = format.form == RDNA__REPLY_MISTRAL
                       ? has(chat_template, size, "[ARGS]")
                       : format.form == RDNA__REPLY_DEEPSEEK && !has(chat_template, size, "```json");
  if (format.form == RDNA__REPLY_HARMONY) return format; /* a channel of its own */
  if (has(chat_template, size, "</think>")) {
    format.think = "<think>";
    format.think_end = "</think>";
  } else if (has(chat_template, size, "[THINK]")) {
    format.think = "[THINK]";
    format.think_end = "[/THINK]";
  }
  return format;
}

const char *rdna__reply_form_name(rdna__reply_form form) {
  static const char *const names[RDNA__REPLY_FORM_COUNT] = {"plain",   "hermes",   "xml", "llama",  "mistral",
                                                            "harmony", "deepseek", "glm", "granite"};
  return (unsigned)form < RDNA__REPLY_FORM_COUNT ? names[form] : "?";
}

bool rdna__reply_opened(const rdna__reply_format *format, const char *prompt, size_t size) {
  if (!format->think) return false;
  while (size > 0 && strchr(" \n\r\t", prompt[size - 1]) && prompt[size - 1]) size--;
  size_t word = strlen(format->think);
  return size >= word && memcmp(prompt + size - word, format->think, word) == 0;
}
