#include "server/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

struct reader {
  rdna__reply *reply;
  int calls;
};

void readers_free(exchange *x) {
  for (int i = 0; x->readers && i < x->job->choice_count; i++) rdna__reply_release(x->readers[i].reply);
  free(x->readers);
  x->readers = NULL;
}

static struct reader *reader_of(exchange *x, int index) {
  if (!x->readers) x->readers = calloc((size_t)x->job->choice_count, sizeof *x->readers);
  if (!x->readers) return NULL;
  struct reader *r = &x->readers[index];
  if (r->reply) return r;
  char *tools = x->tools ? json_dumps(x->tools, JSON_COMPACT) : NULL;
  bool fine = (!x->tools || tools) &&
              rdna__reply_create(&x->format, tools ? tools : "", tools ? strlen(tools) : 0, &r->reply) == RDNA_OK;
  free(tools);
  return fine ? r : NULL;
}

int calls_of(const exchange *x, int index) { return x->readers ? x->readers[index].calls : 0; }

static void hand_over(exchange *x, const news *n, struct reader *r, const rdna__reply_part *parts, size_t count,
                      part_handler handle, void *data) {
  for (size_t i = 0; i < count; i++) {
    bool call = parts[i].kind == RDNA__REPLY_CALL;
    if (call && x->one_call && r->calls > 0) continue; /* one was asked for */
    handle(x, n, &parts[i], r->calls, data);
    r->calls += call;
  }
}

bool read_parts(exchange *x, const news *n, part_handler handle, void *data) {
  const rdna__reply_part *parts;
  size_t count;
  if (!x->takes_apart) {
    const rdna__reply_part all = {.kind = RDNA__REPLY_CONTENT, .text = {n->text.data, n->text.size}};
    if (n->text.size) handle(x, n, &all, 0, data);
    return true;
  }
  struct reader *r = reader_of(x, n->choice);
  if (!r) return false;
  if (n->text.size) {
    if (rdna__reply_push(r->reply, n->text.data, n->text.size, &parts, &count) != RDNA_OK) return false;
    hand_over(x, n, r, parts, count, handle, data);
  }
  if (!n->finish_reason) return true;
  if (rdna__reply_finish(r->reply, &parts, &count) != RDNA_OK) return false;
  hand_over(x, n, r, parts, count, handle, data);
  return true;
}

static void collect(exchange *x, const news *n, const rdna__reply_part *part, int call, void *data) {
  whole_reply *w = data;
  if (part->kind == RDNA__REPLY_CALL)
    json_array_append_new(
        w->calls, json_pack("{s:o, s:o}", "name", rdna__json_of_text(part->name.data, part->name.size), "arguments",
                            rdna__json_of_text(part->text.data, part->text.size)));
  else
    bytes_append(part->kind == RDNA__REPLY_REASONING ? &w->reasoning : &w->content, part->text.data, part->text.size);
}

bool read_reply(exchange *x, int index, whole_reply *out) {
  const choice *c = &x->job->choices[index];
  const news all = {.choice = index, .text = c->text, .finish_reason = c->finish_reason};
  *out = (whole_reply){.calls = json_array()};
  return out->calls && read_parts(x, &all, collect, out) && !out->content.failed && !out->reasoning.failed;
}

void whole_reply_deinit(whole_reply *w) {
  bytes_deinit(&w->content);
  bytes_deinit(&w->reasoning);
  json_decref(w->calls);
}
