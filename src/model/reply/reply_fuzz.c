/* The first byte is a form, the second says how the rest, a reply, is cut. The parts must be those of the reply as one
 * piece; the bytes of a grammar of tools are tried too. */
#include <stdlib.h>
#include <string.h>

#include "model/reply/reply.h"

enum { MOST = 1 << 14 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct said {
  char *text; /* parts with their kinds before them; of the same kind in a row only one */
  size_t size;
  int last;
} said;

static void add(said *s, const rdna__reply_part *parts, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const rdna__reply_part *p = &parts[i];
    s->text = realloc(s->text, s->size + p->text.size + p->name.size + 2);
    if ((int)p->kind != s->last || p->kind == RDNA__REPLY_CALL) s->text[s->size++] = (char)('0' + p->kind);
    memcpy(s->text + s->size, p->name.data, p->name.size);
    s->size += p->name.size;
    if (p->text.size) memcpy(s->text + s->size, p->text.data, p->text.size);
    s->size += p->text.size;
    s->last = (int)p->kind;
  }
}

static said read_reply(const rdna__reply_format *format, const char *text, size_t size, size_t step) {
  static const char tools[] = "[{\"name\": \"f\", \"parameters\": {\"properties\": {\"a\": {\"type\": \"string\"}}}}]";
  rdna__reply *reply;
  const rdna__reply_part *parts;
  size_t count;
  said s = {NULL, 0, -1};
  if (rdna__reply_create(format, tools, sizeof tools - 1, &reply) != RDNA_OK) abort();
  for (size_t at = 0; at < size; at += step) {
    size_t piece = size - at < step ? size - at : step;
    if (rdna__reply_push(reply, text + at, piece, &parts, &count) != RDNA_OK) abort();
    add(&s, parts, count);
  }
  if (rdna__reply_finish(reply, &parts, &count) != RDNA_OK) abort();
  add(&s, parts, count);
  rdna__reply_release(reply);
  return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2 || size > MOST) return 0;
  rdna__reply_format format = {.form = data[0] % RDNA__REPLY_FORM_COUNT, .variant = data[0] & 64};
  if (data[0] & 128) {
    format.think = "<think>";
    format.think_end = "</think>";
    format.thinks_first = data[1] & 128;
  }
  const char *text = (const char *)data + 2;
  said whole = read_reply(&format, text, size - 2, size), cut = read_reply(&format, text, size - 2, 1 + data[1] % 8);
  if (whole.size != cut.size || (whole.size && memcmp(whole.text, cut.text, whole.size) != 0)) abort();
  free(whole.text);
  free(cut.text);
  char *grammar;
  const rdna__reply_rules rules = {
      .tools = text, .tools_size = size - 2, .parallel = data[1] & 1, .schema = data[1] & 2 ? "{}" : NULL};
  if (rdna__reply_grammar(&format, NULL, &rules, &grammar) == RDNA_OK) free(grammar);
  return 0;
}
