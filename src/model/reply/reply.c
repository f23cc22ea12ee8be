#include "model/reply/reply.h"

#include <stdlib.h>
#include <string.h>

#include "model/reply/reply_parts.h"

static void out_of_memory(rdna__reply *r) { r->status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a reply"); }

bool rdna__reply_append(rdna__reply *r, reply_bytes *bytes, const char *data, size_t size) {
  if (bytes->room - bytes->size < size + 1) {
    size_t room = 2 * (bytes->room + size + 64);
    char *grown = realloc(bytes->data, room);
    if (!grown) {
      out_of_memory(r);
      return false;
    }
    bytes->data = grown;
    bytes->room = room;
  }
  if (size) memcpy(bytes->data + bytes->size, data, size);
  bytes->size += size;
  return true;
}

static void add_place(rdna__reply *r, reply_place place) {
  if (r->place_count == r->place_room) {
    size_t room = 2 * r->place_room + 8;
    reply_place *places = realloc(r->places, room * sizeof *places);
    if (places) r->places = places;
    rdna__reply_part *parts = realloc(r->parts, room * sizeof *parts);
    if (parts) r->parts = parts;
    if (!places || !parts) {
      out_of_memory(r);
      return;
    }
    r->place_room = room;
  }
  r->places[r->place_count++] = place;
}

void rdna__reply_say(rdna__reply *r, rdna__reply_kind kind, const char *text, size_t size) {
  if (size == 0 || r->status != RDNA_OK) return;
  size_t at = r->text.size;
  if (kind == RDNA__REPLY_CONTENT) r->started = true;
  if (rdna__reply_append(r, &r->text, text, size)) add_place(r, (reply_place){kind, at, size, 0, 0});
}

void rdna__reply_call(rdna__reply *r, rdna_text name, rdna_text arguments) {
  size_t at = r->text.size;
  r->started = true;
  if (rdna__reply_append(r, &r->text, name.data, name.size) &&
      rdna__reply_append(r, &r->text, arguments.data, arguments.size))
    add_place(r, (reply_place){RDNA__REPLY_CALL, at + name.size, arguments.size, at, name.size});
}

void rdna__reply_drop(rdna__reply *r, size_t size) {
  r->waiting.size -= size;
  if (r->waiting.size) memmove(r->waiting.data, r->waiting.data + size, r->waiting.size);
}

static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

size_t rdna__reply_find(rdna_text text, const char *const *tags, int count, int *out_tag) {
  *out_tag = -1;
  size_t begun = text.size;
  for (size_t at = 0; at < text.size; at++)
    for (int i = 0; i < count; i++) {
      size_t size = strlen(tags[i]), rest = text.size - at;
      if (text.data[at] != *tags[i] || memcmp(text.data + at, tags[i], size < rest ? size : rest) != 0) continue;
      if (size <= rest) {
        *out_tag = i;
        return begun < at ? begun : at;
      }
      if (at < begun) begun = at;
    }
  return begun;
}

/* The tags that mean something here; at most 4. */
static int list_tags(const rdna__reply *r, const char *tags[]) {
  static const char *const openers[RDNA__REPLY_FORM_COUNT][2] = {
      [RDNA__REPLY_HERMES] = {"<tool_call>"},
      [RDNA__REPLY_XML] = {"<tool_call>", "<function="},
      [RDNA__REPLY_LLAMA] = {"<|python_tag|>"},
      [RDNA__REPLY_MISTRAL] = {"[TOOL_CALLS]"},
      [RDNA__REPLY_DEEPSEEK] = {"<\xef\xbd\x9ctool\xe2\x96\x81"
                                "calls\xe2\x96\x81"
                                "begin\xef\xbd\x9c>",
                                "<\xef\xbd\x9ctool\xe2\x96\x81"
                                "call\xe2\x96\x81"
                                "begin\xef\xbd\x9c>"},
      [RDNA__REPLY_GLM] = {"<tool_call>"},
      [RDNA__REPLY_GRANITE] = {"<|tool_call|>", "<tool_call>"},
  };
  int count = 0;
  if (r->thinking) {
    tags[count++] = r->format.think_end;
    return count;
  }
  if (r->format.think && !r->started) tags[count++] = r->format.think;
  for (int i = 0; i < 2 && openers[r->format.form][i]; i++) tags[count++] = openers[r->format.form][i];
  if (r->format.form == RDNA__REPLY_LLAMA && !r->started) tags[count++] = "{";
  return count;
}

/* Behind the tag at |at|, before which white space from |from| on belongs to it. False when more must come first. */
static bool take_tag(rdna__reply *r, const char *tag, size_t from, size_t at) {
  size_t behind = at + strlen(tag);
  if (tag == r->format.think || tag == r->format.think_end) {
    r->thinking = tag == r->format.think;
    r->skips_space = true;
    rdna__reply_drop(r, behind);
    return true;
  }
  reply_cursor c = {r->waiting.data, strcmp(tag, "{") == 0 || strcmp(tag, "<function=") == 0 ? at : behind,
                    r->waiting.size};
  size_t places = r->place_count, text = r->text.size;
  bool started = r->started;
  reply_found found = rdna__reply_read_calls(r, tag, &c);
  if (found == REPLY_READ) {
    r->skips_space = true;
    rdna__reply_drop(r, c.at);
    return true;
  }
  r->place_count = places; /* of several calls some may have been read */
  r->text.size = text;
  r->started = started;
  if (found == REPLY_MORE && !r->final) {
    rdna__reply_drop(r, from);
    return false;
  }
  rdna__reply_say(r, RDNA__REPLY_CONTENT, r->waiting.data + from, behind - from);
  rdna__reply_drop(r, behind);
  return true;
}

/* Says what is certain of what waits; false when it waits for more. */
static bool step(rdna__reply *r) {
  reply_bytes *w = &r->waiting;
  size_t space = 0;
  while (r->skips_space && space < w->size && is_space(w->data[space])) space++;
  rdna__reply_drop(r, space);
  if (w->size == 0) return false;
  r->skips_space = false;
  const char *tags[4];
  int count = list_tags(r, tags), tag;
  size_t at = rdna__reply_find((rdna_text){w->data, w->size}, tags, count, &tag), end = at;
  bool first = tag >= 0 && (tags[tag] == r->format.think || strcmp(tags[tag], "{") == 0), late = false;
  for (size_t i = 0; first && i < at; i++) late = late || !is_space(w->data[i]);
  if (late) { /* these mean something as the first thing that is said */
    rdna__reply_say(r, RDNA__REPLY_CONTENT, w->data, at + 1);
    rdna__reply_drop(r, at + 1);
    return true;
  }
  if (r->final && tag < 0) end = at = w->size;
  while (end > 0 && is_space(w->data[end - 1]) && !(r->final && tag < 0)) end--;
  rdna__reply_say(r, r->thinking ? RDNA__REPLY_REASONING : RDNA__REPLY_CONTENT, w->data, end);
  if (tag >= 0) return take_tag(r, tags[tag], end, at) && r->status == RDNA_OK;
  rdna__reply_drop(r, end);
  return false;
}

static rdna_status run(rdna__reply *r, const rdna__reply_part **out_parts, size_t *out_count) {
  r->place_count = r->text.size = 0;
  if (r->format.form == RDNA__REPLY_HARMONY) {
    rdna__reply_step_harmony(r);
  } else {
    while (r->status == RDNA_OK && step(r)) continue;
  }
  for (size_t i = 0; i < r->place_count; i++) {
    reply_place p = r->places[i];
    r->parts[i] =
        (rdna__reply_part){p.kind, {r->text.data + p.text, p.text_size}, {r->text.data + p.name, p.name_size}};
  }
  *out_parts = r->parts;
  *out_count = r->place_count;
  return r->status;
}

rdna_status rdna__reply_push(rdna__reply *r, const char *text, size_t size, const rdna__reply_part **out_parts,
                             size_t *out_count) {
  if (!rdna__reply_append(r, &r->waiting, text, size)) return r->status;
  return run(r, out_parts, out_count);
}

rdna_status rdna__reply_finish(rdna__reply *r, const rdna__reply_part **out_parts, size_t *out_count) {
  r->final = true;
  return run(r, out_parts, out_count);
}

rdna_status rdna__reply_create(const rdna__reply_format *format, const char *tools, size_t size,
                               rdna__reply **out_reply) {
  rdna__reply *r = calloc(1, sizeof *r);
  if (!r) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a reply");
  r->format = *format;
  r->thinking = r->skips_space = format->think && format->thinks_first;
  if (size) r->tools = json_loadb(tools, size, 0, NULL);
  if (size && !json_is_array(r->tools)) {
    rdna__reply_release(r);
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the tools are no JSON array");
  }
  *out_reply = r;
  return RDNA_OK;
}

void rdna__reply_release(rdna__reply *r) {
  if (!r) return;
  json_decref(r->tools);
  free(r->waiting.data);
  free(r->header.data);
  free(r->text.data);
  free(r->places);
  free(r->parts);
  free(r);
}
