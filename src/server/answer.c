/* What the interfaces' answers share. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/random.h>

#include "server/exchange.h"

const char *model_name(const exchange *x) { return x->adapter ? x->adapter->name : x->model->name; }

int64_t prompt_tokens(const job *j) {
  int64_t sum = 0;
  for (size_t i = 0; i < j->prompt_count; i++) sum += (int64_t)j->prompts[i].count;
  return sum;
}

/* Several texts of one prompt read it once: only the first one's count of cached tokens is added. */
int64_t cached_tokens(const job *j) {
  int64_t sum = 0;
  int each = j->embeds ? 1 : j->choice_count / (int)j->prompt_count;
  for (int i = 0; i < j->choice_count; i += each)
    sum += j->choices[i].cached_tokens > 0 ? j->choices[i].cached_tokens : 0;
  return sum;
}

int64_t written_tokens(const job *j) {
  int64_t sum = 0;
  for (int i = 0; i < j->choice_count; i++) sum += (int64_t)j->choices[i].token_count;
  return sum;
}

void append_line(bytes *out, json_t *json) {
  char *text = json ? json_dumps(json, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
  json_decref(json);
  if (!text) {
    out->failed = true;
    return;
  }
  bytes_append_text(out, text);
  bytes_append_text(out, "\n");
  free(text);
}

void append_event(bytes *out, const char *event, json_t *json) {
  if (event) {
    bytes_append_text(out, "event: ");
    bytes_append_text(out, event);
    bytes_append_text(out, "\n");
  }
  bytes_append_text(out, "data: ");
  append_line(out, json);
  bytes_append_text(out, "\n");
}

void make_id(char *id, size_t size, const char *prefix) {
  uint64_t random[2] = {0};
  if (getrandom(random, sizeof random, 0) < 0) random[0] = (uint64_t)(uintptr_t)id;
  snprintf(id, size, "%s%016llx%08llx", prefix, (unsigned long long)random[0],
           (unsigned long long)(random[1] & 0xffffffff));
}
