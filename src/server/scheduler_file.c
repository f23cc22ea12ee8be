/* What idle writers hold, in a file and back from it. */
#include <stdlib.h>

#include "base/status.h"
#include "model/llm/saved.h"
#include "server/scheduler_state.h"

static int compare_since(const void *a, const void *b) {
  uint64_t x = (*(writer *const *)a)->since, y = (*(writer *const *)b)->since;
  return (x < y) - (x > y);
}

/* Forgets what a writer holds from its first picture on. */
static void forget_pictures(writer *w) {
  size_t at = 0;
  while (at < w->held.count && w->held.ids[at] >= 0) at++;
  if (!w->sequence || at == w->held.count) return;
  if (rdna_llm_sequence_truncate(w->sequence, (int)at) != RDNA_OK)
    writer_empty(w);
  else
    w->held.count = (size_t)rdna_llm_sequence_position(w->sequence);
  if (w->prompt > w->held.count) w->prompt = w->held.count;
}

/* Those that hold something, the ones used last first. The file has no word for pictures and adapters: what was read
 * behind or with them is left out. */
static int list_writers(scheduler *s, writer **out) {
  int count = 0;
  for (int i = 0; i < s->writer_count; i++) forget_pictures(&s->writers[i]);
  for (int i = 0; i < s->writer_count; i++)
    if (s->writers[i].sequence && s->writers[i].held.count > 0 && s->writers[i].adapter_count == 0)
      out[count++] = &s->writers[i];
  qsort(out, (size_t)count, sizeof *out, compare_since);
  return count;
}

rdna_status scheduler_save(scheduler *s, const char *path, uint64_t model, int *out_texts) {
  *out_texts = 0;
  if (!s->cache) return RDNA_OK;
  writer **writers = calloc((size_t)s->writer_count, sizeof *writers);
  rdna__llm_saved_text *texts = calloc((size_t)s->writer_count, sizeof *texts);
  rdna_status status = RDNA_OK;
  if (writers && texts) {
    *out_texts = list_writers(s, writers);
    for (int i = 0; i < *out_texts; i++)
      texts[i] = (rdna__llm_saved_text){writers[i]->sequence, writers[i]->held.ids, (int32_t)writers[i]->prompt};
    if (*out_texts > 0) status = rdna__llm_save(s->cache, texts, *out_texts, model, path);
  } else {
    status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory to save texts");
  }
  free(writers);
  free(texts);
  return status;
}

/* False without memory. */
static bool give(writer *w, const rdna__llm_saved_text *text) {
  int count = rdna_llm_sequence_position(text->sequence);
  w->sequence = text->sequence;
  w->prompt = (size_t)text->prompt;
  for (int i = 0; i < count; i++)
    if (rdna_tokens_append(&w->held, text->tokens[i]) != RDNA_OK) return false;
  return true;
}

rdna_status scheduler_restore(scheduler *s, const char *path, uint64_t model, int *out_texts) {
  *out_texts = 0;
  if (!s->cache) return RDNA_OK;
  rdna__llm_saved_text *texts = calloc((size_t)s->writer_count, sizeof *texts);
  if (!texts) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory to restore texts");
  rdna_status status = rdna__llm_restore(s->cache, path, model, texts, s->writer_count, out_texts);
  for (int i = 0; i < *out_texts; i++) {
    writer *w = &s->writers[i];
    w->since = (uint64_t)(*out_texts - i);
    if (!give(w, &texts[i])) writer_empty(w);
    free(texts[i].tokens);
  }
  free(texts);
  rdna_llm_cache_info info = {RDNA_LLM_CACHE_INFO_INIT};
  if (rdna_llm_cache_get_info(s->cache, &info) == RDNA_OK) {
    pthread_mutex_lock(s->lock);
    s->now = (uint64_t)*out_texts;
    s->counts.free_pages = info.free_pages;
    pthread_mutex_unlock(s->lock);
  }
  return status;
}
