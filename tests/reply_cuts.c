/* For reply_test.py: each line of the input is a JSON object with the "text" of a reply, a chat "template", the "tools"
 * and whether it "thinks_first"; the answer says its "form" and its "parts". The text is pushed whole, cut in two at
 * every byte, byte by byte and cut at random: "differs" is a way of cutting whose parts are others. A "grammar" is that
 * of the tools, or its "error". */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "model/reply/reply.h"

static const char *const kinds[] = {"content", "reasoning", "call"};

static void must(rdna_status status) {
  if (status == RDNA_OK) return;
  fprintf(stderr, "reply_cuts: %s\n", rdna_last_error());
  exit(1);
}

/* Adds parts to a list; texts of the same kind in a row become one. */
static void add(json_t *list, const rdna__reply_part *parts, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const rdna__reply_part *p = &parts[i];
    json_t *last = json_array_get(list, json_array_size(list) - 1);
    bool joins = last && p->kind != RDNA__REPLY_CALL &&
                 strcmp(json_string_value(json_object_get(last, "kind")), kinds[p->kind]) == 0;
    json_t *before = joins ? json_object_get(last, "text") : NULL;
    size_t had = json_string_length(before);
    char *text = malloc(had + p->text.size + 1);
    if (had) memcpy(text, json_string_value(before), had);
    memcpy(text + had, p->text.data, p->text.size);
    json_t *joined = json_stringn_nocheck(text, had + p->text.size);
    free(text);
    if (joins) {
      json_object_set_new(last, "text", joined);
    } else {
      json_array_append_new(list, json_pack("{s:s, s:o, s:o}", "kind", kinds[p->kind], "text", joined, "name",
                                            json_stringn_nocheck(p->name.data ? p->name.data : "", p->name.size)));
    }
  }
}

/* The parts of a text that is cut at the bytes where |cut| says so. */
static json_t *parts_of(const rdna__reply_format *format, const char *tools, rdna_text text,
                        bool (*cut)(void *data, size_t at), void *data) {
  rdna__reply *reply;
  const rdna__reply_part *parts;
  size_t count, from = 0;
  json_t *list = json_array();
  must(rdna__reply_create(format, tools, tools ? strlen(tools) : 0, &reply));
  for (size_t at = 1; at <= text.size; at++) {
    if (at < text.size && !cut(data, at)) continue;
    char *piece = malloc(at - from); /* of its own size, so that a read beyond it is seen */
    memcpy(piece, text.data + from, at - from);
    must(rdna__reply_push(reply, piece, at - from, &parts, &count));
    free(piece);
    add(list, parts, count);
    from = at;
  }
  must(rdna__reply_finish(reply, &parts, &count));
  add(list, parts, count);
  rdna__reply_release(reply);
  return list;
}

static bool never(void *data, size_t at) { return false; }
static bool always(void *data, size_t at) { return true; }
static bool once(void *data, size_t at) { return at == *(size_t *)data; }
static bool randomly(void *data, size_t at) { return rdna__random_below(data, 5) == 0; }

static json_t *answer(const json_t *question) {
  const char *chat_template = json_string_value(json_object_get(question, "template"));
  rdna__reply_format format = rdna__reply_format_of(chat_template, strlen(chat_template));
  format.thinks_first = json_is_true(json_object_get(question, "thinks_first"));
  char *tools = json_dumps(json_object_get(question, "tools"), 0), *grammar = NULL;
  const json_t *value = json_object_get(question, "text");
  rdna_text text = {json_string_value(value), json_string_length(value)};
  json_t *whole = parts_of(&format, tools, text, never, NULL), *differs = NULL;
  rdna__random random;
  rdna__random_seed(&random, 3);
  for (size_t i = 0; i < text.size + 20 && !differs; i++) {
    json_t *other = i == 0          ? parts_of(&format, tools, text, always, NULL)
                    : i < text.size ? parts_of(&format, tools, text, once, &i)
                                    : parts_of(&format, tools, text, randomly, &random);
    if (json_equal(whole, other)) {
      json_decref(other);
    } else {
      differs = json_pack("{s:I, s:o}", "cut", (json_int_t)i, "parts", other);
    }
  }
  json_t *out = json_pack("{s:s, s:o, s:o}", "form", rdna__reply_form_name(format.form), "parts", whole, "differs",
                          differs ? differs : json_null());
  if (tools) {
    bool parallel = json_is_true(json_object_get(question, "parallel"));
    const rdna__reply_rules rules = {.tools = tools,
                                     .tools_size = strlen(tools),
                                     .parallel = parallel,
                                     .schema = json_string_value(json_object_get(question, "schema"))};
    rdna_status status = rdna__reply_grammar(&format, NULL, &rules, &grammar);
    json_object_set_new(out, status == RDNA_OK ? "grammar" : "error",
                        json_string(status == RDNA_OK ? grammar : rdna_last_error()));
  }
  free(grammar);
  free(tools);
  return out;
}

int main(void) {
  char *line = NULL;
  size_t room = 0;
  while (getline(&line, &room, stdin) > 0) {
    json_t *question = json_loads(line, 0, NULL), *said = question ? answer(question) : json_string("no JSON");
    json_dumpf(said, stdout, JSON_COMPACT | JSON_ENCODE_ANY);
    putchar('\n');
    json_decref(said);
    json_decref(question);
  }
  free(line);
  return 0;
}
