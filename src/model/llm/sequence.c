/* Sequences: which pages of a cache hold a row of tokens, and which slots the states of its recurrent layers.
 *
 * Pages and slots are counted: forks and checkpoints share them, and who writes to one that others have takes a copy
 * first. Of a sequence's pages that can only be the last, as tokens go to its end. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/llm/cache.h"

static bool has_states(const rdna_llm_cache *cache) { return rdna__llm_has_states(cache->llm); }

static void drop_page(rdna_llm_cache *cache, int32_t page) {
  if (--cache->page_users[page] == 0) cache->free_pages++;
}

int32_t rdna__llm_take_page(rdna_llm_cache *cache, int32_t last) {
  int32_t page = last + 1;
  if (page >= cache->pass.pages || cache->page_users[page] > 0)
    for (page = 0; cache->page_users[page] > 0;) page++;
  cache->page_users[page] = 1;
  cache->free_pages--;
  return page;
}

static void look_at_pages(rdna_llm_sequence *s) {
  s->in_row = true;
  for (int i = 1; i < s->page_count; i++) s->in_row &= s->pages[i] == s->pages[i - 1] + 1;
}

void rdna__llm_drop_slot(rdna_llm_cache *cache, int slot) {
  if (slot >= 0) cache->slot_users[slot]--;
}

static int use_slot(rdna_llm_cache *cache, int slot) {
  if (slot >= 0) cache->slot_users[slot]++;
  return slot;
}

static void forget_kept(rdna_llm_sequence *s, int index) {
  rdna__llm_drop_slot(s->cache, s->kept[index].slot);
  memmove(&s->kept[index], &s->kept[index + 1], (size_t)(--s->kept_count - index) * sizeof *s->kept);
}

rdna_status rdna_llm_sequence_create(rdna_llm_cache *cache, rdna_llm_sequence **out_sequence) {
  if (!cache || !out_sequence) return rdna__fail(RDNA_INVALID_ARGUMENT, "a sequence needs a cache and a place for it");
  rdna_llm_sequence *s = calloc(1, sizeof *s);
  if (s) s->pages = calloc((size_t)cache->table_stride, sizeof *s->pages);
  if (s) s->kept = calloc((size_t)cache->most_kept, sizeof *s->kept);
  if (!s || !s->pages || !s->kept) {
    if (s) free(s->pages), free(s->kept);
    free(s);
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a sequence");
  }
  s->cache = cache;
  s->slot = -1;
  s->in_row = true;
  cache->open++;
  s->next = cache->first;
  if (s->next) s->next->before = s;
  cache->first = s;
  *out_sequence = s;
  return RDNA_OK;
}

void rdna_llm_sequence_release(rdna_llm_sequence *s) {
  if (!s) return;
  rdna_llm_cache *cache = s->cache;
  for (int i = 0; i < s->page_count; i++) drop_page(cache, s->pages[i]);
  while (s->kept_count > 0) forget_kept(s, s->kept_count - 1);
  rdna__llm_drop_slot(cache, s->slot);
  *(s->before ? &s->before->next : &cache->first) = s->next;
  if (s->next) s->next->before = s->before;
  free(s->pages), free(s->kept), free(s->seen);
  free(s);
  if (--cache->open == 0 && cache->released) rdna_llm_cache_release(cache);
}

int rdna_llm_sequence_position(const rdna_llm_sequence *sequence) { return sequence->position; }

static rdna_status check_position(const rdna_llm_sequence *s, const char *what, int position) {
  if (position >= 0 && position <= s->position) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "%s a sequence of %d tokens at position %d", what, s->position, position);
}

void rdna__llm_shrink(rdna_llm_sequence *s) {
  int rows = (int)s->cache->pass.page_rows, pages = s->position / rows + (s->position % rows > 0);
  while (s->page_count > pages) drop_page(s->cache, s->pages[--s->page_count]);
  look_at_pages(s);
}

int rdna__llm_turned_less(const rdna_llm_sequence *s, int position) {
  int i = s->seen_count;
  while (i > 0 && s->seen[i - 1].end > position) i--;
  return i > 0 ? s->seen[i - 1].less : 0;
}

rdna_status rdna__llm_room_to_see(rdna_llm_sequence *s) {
  if (s->seen_count < s->seen_room) return RDNA_OK;
  int room = s->seen_room ? 2 * s->seen_room : 4;
  rdna__llm_seen *grown = realloc(s->seen, (size_t)room * sizeof *grown);
  if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the pictures of a sequence");
  s->seen = grown;
  s->seen_room = room;
  return RDNA_OK;
}

int rdna_llm_sequence_reach(const rdna_llm_sequence *s, int position) {
  if (!has_states(s->cache) || (position == s->position && s->slot >= 0)) return position;
  int i = s->kept_count;
  while (i > 0 && s->kept[i - 1].position > position) i--;
  return i > 0 ? s->kept[i - 1].position : 0;
}

rdna_status rdna_llm_sequence_truncate(rdna_llm_sequence *s, int position) {
  if (!s) return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_llm_sequence_truncate needs a sequence");
  RDNA_TRY(check_position(s, "truncating", position));
  if (has_states(s->cache) && (position < s->position || s->slot < 0)) {
    while (s->kept_count > 0 && s->kept[s->kept_count - 1].position > position) forget_kept(s, s->kept_count - 1);
    const rdna__llm_kept *last = s->kept_count ? &s->kept[s->kept_count - 1] : NULL;
    rdna__llm_drop_slot(s->cache, s->slot);
    s->slot = last ? use_slot(s->cache, last->slot) : -1;
    position = last ? last->position : 0;
  }
  s->position = position;
  while (s->seen_count > 0 && s->seen[s->seen_count - 1].end > position) s->seen_count--;
  rdna__llm_shrink(s);
  return RDNA_OK;
}

rdna_status rdna_llm_sequence_fork(const rdna_llm_sequence *sequence, int position, rdna_llm_sequence **out_fork) {
  rdna_llm_sequence *s;
  if (!sequence || !out_fork) return rdna__fail(RDNA_INVALID_ARGUMENT, "a fork needs a sequence and a place for it");
  RDNA_TRY(check_position(sequence, "forking", position));
  rdna_llm_cache *cache = sequence->cache;
  RDNA_TRY(rdna_llm_sequence_create(cache, &s));
  memcpy(s->adapter_scales, sequence->adapter_scales, sizeof s->adapter_scales);
  for (int i = 0; i < sequence->seen_count; i++) {
    rdna_status status = rdna__llm_room_to_see(s);
    if (status != RDNA_OK) rdna_llm_sequence_release(s);
    RDNA_TRY(status);
    s->seen[s->seen_count++] = sequence->seen[i];
  }
  s->position = sequence->position;
  s->page_count = sequence->page_count;
  s->slot = use_slot(cache, sequence->slot);
  s->kept_count = sequence->kept_count;
  for (int i = 0; i < s->page_count; i++) cache->page_users[s->pages[i] = sequence->pages[i]]++;
  for (int i = 0; i < s->kept_count; i++) use_slot(cache, (s->kept[i] = sequence->kept[i]).slot);
  rdna_status status = rdna_llm_sequence_truncate(s, position);
  if (status == RDNA_OK)
    *out_fork = s;
  else
    rdna_llm_sequence_release(s);
  return status;
}

/* Of all checkpoints but the last two that whose neighbours are nearest to each other. There is one checkpoint. */
static int least_needed(const rdna_llm_sequence *s) {
  int least = 0, distance = INT32_MAX;
  for (int i = 0; i < s->kept_count - 2; i++) {
    int between = s->kept[i + 1].position - (i > 0 ? s->kept[i - 1].position : 0);
    if (between < distance) least = i, distance = between;
  }
  return least;
}

rdna_status rdna_llm_sequence_checkpoint(rdna_llm_sequence *s) {
  if (!s) return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_llm_sequence_checkpoint needs a sequence");
  if (!has_states(s->cache) || s->position == 0) return RDNA_OK; /* there a state is all zeros */
  if (s->slot < 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the sequence's last step failed; truncate it before a checkpoint");
  if (s->kept_count && s->kept[s->kept_count - 1].position == s->position) return RDNA_OK;
  if (s->kept_count == s->cache->most_kept) forget_kept(s, least_needed(s));
  s->kept[s->kept_count++] = (rdna__llm_kept){s->position, use_slot(s->cache, s->slot), ++s->cache->checkpoints};
  return RDNA_OK;
}

/* ---- for steps ---- */

static bool shares_last_page(const rdna_llm_sequence *s) {
  return s->position % s->cache->pass.page_rows > 0 && s->cache->page_users[s->pages[s->page_count - 1]] > 1;
}

int64_t rdna__llm_pages_wanted(const rdna_llm_sequence *s, int count) {
  int64_t rows = s->cache->pass.page_rows, all = (s->position + (int64_t)count + rows - 1) / rows;
  return all - s->page_count + shares_last_page(s);
}

/* The first |rows| positions of page |from|, of all layers, become those of page |to|. */
static rdna_status copy_page(const rdna_llm_cache *cache, int32_t from, int32_t to, int64_t rows) {
  const rdna__nn_pass *pass = &cache->pass;
  if (cache->below) RDNA_TRY(copy_page(cache->below, from, to, rows));
  for (int i = 0; i < cache->llm->decoder.cache_count; i++) {
    size_t page = rdna_dtype_bytes(pass->kv_dtype, pass->page_rows * cache->cache_values[i]);
    size_t bytes = rdna_dtype_bytes(pass->kv_dtype, rows * cache->cache_values[i]);
    char *k = (char *)pass->k_cache + (size_t)i * pass->cache_layer_bytes;
    char *v = (char *)pass->v_cache + (size_t)i * pass->v_layer_bytes;
    RDNA_TRY(rdna_copy_on_device(pass->stream, k + (size_t)to * page, k + (size_t)from * page, bytes));
    if (pass->v_layer_bytes)
      RDNA_TRY(rdna_copy_on_device(pass->stream, v + (size_t)to * page, v + (size_t)from * page, bytes));
  }
  return RDNA_OK;
}

rdna_status rdna__llm_grow(rdna_llm_sequence *s, int count) {
  rdna_llm_cache *cache = s->cache;
  int64_t wanted = rdna__llm_pages_wanted(s, count);
  if (shares_last_page(s)) {
    int32_t *last = &s->pages[s->page_count - 1], copy = rdna__llm_take_page(cache, s->page_count > 1 ? last[-1] : -1);
    rdna_status status = copy_page(cache, *last, copy, s->position % cache->pass.page_rows);
    drop_page(cache, status == RDNA_OK ? *last : copy);
    RDNA_TRY(status);
    *last = copy;
    wanted--;
  }
  for (; wanted > 0; wanted--) {
    s->pages[s->page_count] = rdna__llm_take_page(cache, s->page_count ? s->pages[s->page_count - 1] : -1);
    s->page_count++;
  }
  look_at_pages(s);
  return RDNA_OK;
}

int rdna__llm_free_slot(const rdna_llm_cache *cache) {
  for (int i = 0; i < cache->pass.state_slots; i++)
    if (cache->slot_users[i] == 0) return i;
  return -1;
}

static int64_t last_age(const rdna_llm_sequence *s) { return s->kept[s->kept_count - 1].age; }

/* A checkpoint goes of the sequence that has made none for the longest. False: there is none. */
static bool forget_one(rdna_llm_cache *cache) {
  rdna_llm_sequence *oldest = NULL;
  for (rdna_llm_sequence *s = cache->first; s; s = s->next)
    if (s->kept_count && (!oldest || last_age(s) < last_age(oldest))) oldest = s;
  if (oldest) forget_kept(oldest, least_needed(oldest));
  return oldest;
}

/* Copies slot |from| of all states to slot |to|, or fills it with zeros where |from| is -1. */
static rdna_status write_slot(const rdna_llm_cache *cache, int from, int to) {
  const rdna__nn_pass *pass = &cache->pass;
  if (cache->below) RDNA_TRY(write_slot(cache->below, from, to));
  if (cache->llm->decoder.state_count == 0) return RDNA_OK;
  size_t slots = (size_t)pass->state_slots, sizes[] = {pass->conv_layer_bytes / slots, pass->state_layer_bytes / slots};
  for (int layer = 0; layer < cache->llm->decoder.state_count; layer++) {
    char *of[] = {(char *)pass->conv_states + pass->conv_layer_bytes * (size_t)layer,
                  (char *)pass->states + pass->state_layer_bytes * (size_t)layer};
    for (int i = 0; i < 2; i++) {
      char *place = of[i] + sizes[i] * (size_t)to;
      if (from >= 0)
        RDNA_TRY(rdna_copy_on_device(pass->stream, place, of[i] + sizes[i] * (size_t)from, sizes[i]));
      else
        RDNA_TRY(rdna_fill_bytes(pass->stream, place, 0, sizes[i]));
    }
  }
  return RDNA_OK;
}

rdna_status rdna__llm_own_states(rdna_llm_sequence *s) {
  rdna_llm_cache *cache = s->cache;
  if (!has_states(cache)) return RDNA_OK;
  int slot = -1;
  while ((s->slot < 0 || cache->slot_users[s->slot] > 1) && (slot = rdna__llm_free_slot(cache)) < 0) {
    if (!forget_one(cache))
      return rdna__fail(RDNA_OUT_OF_MEMORY,
                        "the cache has room for %d states of recurrent layers, and other sequences have them all; "
                        "release some of them",
                        (int)cache->pass.state_slots);
  }
  if (slot < 0) return RDNA_OK; /* the one that it has is its own */
  RDNA_TRY(write_slot(cache, s->slot, slot));
  rdna__llm_drop_slot(cache, s->slot);
  s->slot = use_slot(cache, slot);
  return RDNA_OK;
}
