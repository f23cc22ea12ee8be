/* The replies of gpt-oss (github.com/openai/harmony, docs/format.md): messages with a header each.
 *
 *   <|channel|>analysis<|message|>I need the weather.<|end|>
 *   <|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{"city":"Bern"}<|call|>
 *   <|start|>assistant<|channel|>final<|message|>It rains.<|return|>
 *
 * The prompt ends with <|start|>assistant, so that the first header begins behind that. */
#include <string.h>

#include "model/reply/reply_parts.h"

static const char *const ends[] = {"<|end|>", "<|call|>", "<|return|>", "<|start|>", "<|channel|>"};
enum { ENDS = sizeof ends / sizeof *ends };

static bool has(rdna_text text, const char *word) { return memmem(text.data, text.size, word, strlen(word)); }

/* Whether |text| is a header's beginning, or may become one. */
static bool begins_header(rdna_text text) {
  static const char *const begins[] = {"<|channel|>", "<|start|>", "<|constrain|>", " to=", "to=", "<|message|>"};
  for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
    size_t size = strlen(begins[i]) < text.size ? strlen(begins[i]) : text.size;
    if (memcmp(text.data, begins[i], size) == 0) return true;
  }
  return false;
}

static void begin_message(rdna__reply *r, rdna_text header) {
  const char *to = memmem(header.data, header.size, "to=functions.", 13);
  r->in_message = true;
  r->calling = to != NULL;
  r->message_kind = has(header, "<|channel|>analysis") ? RDNA__REPLY_REASONING : RDNA__REPLY_CONTENT;
  r->header.size = 0;
  rdna__reply_append(r, &r->header, header.data, header.size);
  rdna__reply_append(r, &r->header, "<|message|>", 11);
  if (!to) return;
  r->name_at = (size_t)(to + 13 - header.data);
  r->name_size = 0;
  while (r->name_at + r->name_size < header.size && !strchr(" <\n", header.data[r->name_at + r->name_size]))
    r->name_size++;
}

/* A call's whole body. What is none comes back with its header. */
static void end_call(rdna__reply *r, size_t size) {
  rdna_text body = {r->waiting.data, size};
  if (r->name_size > 0 && rdna__reply_is_object(body)) {
    rdna__reply_call(r, (rdna_text){r->header.data + r->name_at, r->name_size}, body);
  } else {
    rdna__reply_say(r, RDNA__REPLY_CONTENT, r->header.data, r->header.size);
    rdna__reply_say(r, RDNA__REPLY_CONTENT, body.data, body.size);
  }
}

static bool step_message(rdna__reply *r) {
  int end;
  rdna_text text = {r->waiting.data, r->waiting.size};
  size_t at = rdna__reply_find(text, ends, ENDS, &end);
  if (end < 0 && r->final) at = text.size;
  if (r->calling) {
    if (end < 0 && !r->final) return false;
    end_call(r, at);
  } else {
    rdna__reply_say(r, r->message_kind, text.data, at);
  }
  rdna__reply_drop(r, at);
  if (end < 0) return false;
  r->in_message = false;
  if (end < 3) rdna__reply_drop(r, strlen(ends[end])); /* the others begin a header */
  return r->waiting.size > 0;
}

static bool step_header(rdna__reply *r) {
  static const char *const message[] = {"<|message|>"};
  rdna_text text = {r->waiting.data, r->waiting.size};
  if (text.size == 0) return false;
  int found;
  size_t at = rdna__reply_find(text, message, 1, &found);
  if (begins_header(text)) {
    if (found < 0 && !r->final) return false;
    if (found >= 0) {
      begin_message(r, (rdna_text){text.data, at});
      rdna__reply_drop(r, at + strlen(*message));
      return true;
    }
  }
  r->in_message = true; /* a text without a header */
  r->calling = false;
  r->message_kind = RDNA__REPLY_CONTENT;
  if (begins_header(text)) {
    rdna__reply_say(r, RDNA__REPLY_CONTENT, text.data, text.size);
    rdna__reply_drop(r, text.size);
  }
  return true;
}

void rdna__reply_step_harmony(rdna__reply *r) {
  while (r->status == RDNA_OK && (r->in_message ? step_message(r) : step_header(r))) continue;
}
