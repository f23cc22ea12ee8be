#include "model/llm/saved.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "model/llm/cache.h"
#include "rdna/memory.h"
#include "rdna/model.h"

enum { HEAD_WORDS = sizeof(rdna__llm_saved_head) / sizeof(int32_t), SAMPLE = 4096 };

/* ---- sums: they find damage and other models, and are no protection against malice ---- */

static uint64_t add_word(uint64_t sum, uint64_t word) {
  sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
  return sum ^ sum >> 29;
}

static uint64_t add_bytes(uint64_t sum, const void *bytes, size_t size) {
  const uint8_t *p = bytes;
  uint64_t word, last = 0;
  for (; size >= sizeof word; p += sizeof word, size -= sizeof word) {
    memcpy(&word, p, sizeof word);
    sum = add_word(sum, word);
  }
  if (size) memcpy(&last, p, size);
  return add_word(sum, last ^ (uint64_t)size << 56);
}

static uint64_t add_text(uint64_t sum, const char *text) { return add_bytes(sum, text, strlen(text)); }

static uint64_t add_key(uint64_t sum, const rdna_gguf *file, const rdna_gguf_key *key) {
  int64_t integer = 0;
  double real = 0;
  rdna_text text;
  sum = add_text(sum, key->name);
  if (key->type == RDNA_GGUF_TYPE_ARRAY) return add_word(sum, key->count);
  if (key->type == RDNA_GGUF_TYPE_TEXT)
    return rdna_gguf_get_text(file, key->name, &text) == RDNA_OK ? add_bytes(sum, text.data, text.size) : sum;
  if (rdna_gguf_get_i64(file, key->name, &integer) == RDNA_OK) return add_word(sum, (uint64_t)integer);
  if (rdna_gguf_get_f64(file, key->name, &real) == RDNA_OK) return add_bytes(sum, &real, sizeof real);
  return sum;
}

uint64_t rdna__llm_saved_model(const rdna_gguf *file) {
  uint64_t sum = 0;
  for (size_t i = 0; i < rdna_gguf_key_count(file); i++) {
    rdna_gguf_key key;
    if (rdna_gguf_key_at(file, i, &key) == RDNA_OK) sum = add_key(sum, file, &key);
  }
  for (size_t i = 0; i < rdna_gguf_tensor_count(file); i++) {
    rdna_gguf_tensor t;
    if (rdna_gguf_tensor_at(file, i, &t) != RDNA_OK) continue;
    size_t part = t.bytes < SAMPLE ? t.bytes : SAMPLE;
    sum = add_text(add_word(sum, t.ggml_type), t.name);
    sum = add_bytes(sum, t.shape, sizeof t.shape);
    if (part == 0) continue;
    sum = add_bytes(sum, t.data, part);
    sum = add_bytes(sum, (const char *)t.data + t.bytes - part, part);
  }
  return sum;
}

/* ---- a page's bytes, and those of a slot of states: of all layers, the host's first ---- */

/* Where they go to or come from on the host; neither: they are only counted. */
typedef struct host_side {
  char *to;
  const uint8_t *from;
  size_t bytes; /* so far */
} host_side;

static rdna_status move(const rdna_llm_cache *cache, void *device, size_t bytes, host_side *host) {
  rdna_stream *stream = cache->pass.stream;
  if (host->to) RDNA_TRY(rdna_copy_to_host(stream, host->to + host->bytes, device, bytes));
  if (host->from) RDNA_TRY(rdna_copy_to_device(stream, device, host->from + host->bytes, bytes));
  host->bytes += bytes;
  return RDNA_OK;
}

static rdna_status move_page(const rdna_llm_cache *cache, int32_t page, host_side *host) {
  const rdna__nn_pass *pass = &cache->pass;
  if (cache->below) RDNA_TRY(move_page(cache->below, page, host));
  for (int i = 0; i < cache->llm->decoder.cache_count; i++) {
    size_t bytes = rdna_dtype_bytes(pass->kv_dtype, pass->page_rows * cache->cache_values[i]);
    size_t at = (size_t)page * bytes;
    RDNA_TRY(move(cache, (char *)pass->k_cache + (size_t)i * pass->cache_layer_bytes + at, bytes, host));
    if (pass->v_layer_bytes)
      RDNA_TRY(move(cache, (char *)pass->v_cache + (size_t)i * pass->v_layer_bytes + at, bytes, host));
  }
  return RDNA_OK;
}

static rdna_status move_slot(const rdna_llm_cache *cache, int slot, host_side *host) {
  const rdna__nn_pass *pass = &cache->pass;
  if (cache->below) RDNA_TRY(move_slot(cache->below, slot, host));
  for (int i = 0; i < cache->llm->decoder.state_count; i++) {
    size_t conv = pass->conv_layer_bytes / (size_t)pass->state_slots,
           state = pass->state_layer_bytes / (size_t)pass->state_slots;
    char *convs = (char *)pass->conv_states + (size_t)i * pass->conv_layer_bytes,
         *states = (char *)pass->states + (size_t)i * pass->state_layer_bytes;
    RDNA_TRY(move(cache, convs + (size_t)slot * conv, conv, host));
    RDNA_TRY(move(cache, states + (size_t)slot * state, state, host));
  }
  return RDNA_OK;
}

/* Both streams' copies are through. */
static rdna_status finish_moves(const rdna_llm_cache *cache) {
  if (cache->below) RDNA_TRY(finish_moves(cache->below));
  return rdna_stream_synchronize(cache->pass.stream);
}

static rdna_status kind_of(const rdna_llm_cache *cache, uint64_t model, rdna__llm_saved_kind *out) {
  host_side page = {0}, slot = {0};
  RDNA_TRY(move_page(cache, 0, &page));
  if (cache->pass.state_slots) RDNA_TRY(move_slot(cache, 0, &slot));
  uint64_t setting = add_word(0, (uint64_t)cache->pass.kv_dtype);
  setting = add_word(setting, (uint64_t)cache->lanes);
  for (const rdna_llm_cache *c = cache; c; c = c->below) {
    setting = add_word(setting, (uint64_t)c->half);
    setting = add_word(setting, c->pass.may_round || c->host.may_round);
    setting = add_word(setting, (uint64_t)c->llm->decoder.layer_count);
    setting = add_text(setting, rdna_device_get_info(c->llm->weights.device)->name);
  }
  *out = (rdna__llm_saved_kind){.model = model,
                                .setting = setting,
                                .page_bytes = page.bytes,
                                .slot_bytes = slot.bytes,
                                .page_rows = (uint32_t)cache->pass.page_rows,
                                .vocabulary = (uint32_t)cache->llm->info.vocabulary};
  return RDNA_OK;
}

/* ---- reading ---- */

static rdna_status check_kind(const rdna__llm_saved_kind *is, const rdna__llm_saved_kind *must) {
  if (is->model != must->model || is->vocabulary != must->vocabulary)
    return rdna__fail(RDNA_UNSUPPORTED, "it is of another model, or of this one before its file was replaced");
  if (is->setting != must->setting || is->page_rows != must->page_rows || is->page_bytes != must->page_bytes ||
      is->slot_bytes != must->slot_bytes)
    return rdna__fail(RDNA_UNSUPPORTED,
                      "it was saved on another device or with other options (--kv, --lanes, --exact, --gpu-layers)");
  return RDNA_OK;
}

static rdna_status broken(const char *what) { return rdna__fail(RDNA_BAD_DATA, "it is damaged: %s", what); }

static bool all_below(const int32_t *words, size_t count, uint32_t end) {
  for (size_t i = 0; i < count; i++)
    if (words[i] < 0 || (uint32_t)words[i] >= end) return false;
  return true;
}

/* Checks a text at |words|, of which there are |left|; |*out_used| are its own. */
static rdna_status check_text(const rdna__llm_saved_header *h, const int32_t *words, size_t left, size_t *out_used) {
  rdna__llm_saved_head t;
  if (left < HEAD_WORDS) return broken("a text ends early");
  memcpy(&t, words, sizeof t);
  if (t.position < 1 || t.prompt < 0 || t.prompt > t.position || t.pages < 1 || t.checkpoints < 0)
    return broken("the numbers of a text");
  size_t used = HEAD_WORDS + (size_t)t.position + (size_t)t.pages + 2 * (size_t)t.checkpoints;
  if (used > left) return broken("a text is longer than the file");
  if ((uint32_t)t.pages != ((uint32_t)t.position + h->kind.page_rows - 1) / h->kind.page_rows)
    return broken("a text has pages for another length");
  const int32_t *tokens = words + HEAD_WORDS, *pages = tokens + t.position, *kept = pages + t.pages;
  if (!all_below(tokens, (size_t)t.position, h->kind.vocabulary)) return broken("a token outside the vocabulary");
  if (!all_below(pages, (size_t)t.pages, h->pages)) return broken("a page that is not there");
  bool has_states = h->kind.slot_bytes > 0;
  if (has_states ? !all_below(&t.slot, 1, h->slots) : t.slot != -1 || t.checkpoints > 0)
    return broken("a state that is not there");
  for (int i = 0; i < t.checkpoints; i++) {
    int32_t before = i > 0 ? kept[2 * i - 2] : 0;
    if (kept[2 * i] <= before || kept[2 * i] > t.position || !all_below(&kept[2 * i + 1], 1, h->slots))
      return broken("a checkpoint that is not there");
  }
  *out_used = used;
  return RDNA_OK;
}

static uint64_t sum_data(const rdna__llm_saved_header *h, const uint8_t *data) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < h->pages; i++, data += h->kind.page_bytes) sum = add_bytes(sum, data, h->kind.page_bytes);
  for (uint32_t i = 0; i < h->slots; i++, data += h->kind.slot_bytes) sum = add_bytes(sum, data, h->kind.slot_bytes);
  return sum;
}

void rdna__llm_saved_sign(rdna__llm_saved_header *h) {
  size_t words = h->words * sizeof(int32_t);
  h->words_sum = add_bytes(0, h + 1, words);
  h->data_sum = sum_data(h, (const uint8_t *)(h + 1) + words);
}

rdna_status rdna__llm_saved_read(const void *bytes, size_t size, const rdna__llm_saved_kind *kind,
                                 rdna__llm_saved *out) {
  rdna__llm_saved_header *h = &out->header;
  size_t words;
  if (size < sizeof *h || memcmp(bytes, RDNA__LLM_SAVED_MAGIC, sizeof h->magic) != 0)
    return rdna__fail(RDNA_BAD_DATA, "it is no cache that this version of rdna serve has saved");
  memcpy(h, bytes, sizeof *h);
  RDNA_TRY(check_kind(&h->kind, kind));
  size_t rest = size - sizeof *h;
  /* none of these overflows: counts have 32 bits, and a page is something that the cache has in memory */
  if ((words = (size_t)h->words * sizeof(int32_t)) > rest || h->words % 2 != 0) return broken("it is cut");
  rest -= words;
  if (h->pages > h->words || h->slots > h->words) return broken("more pages than its texts can have");
  if (h->kind.page_bytes && h->pages > rest / h->kind.page_bytes) return broken("it is cut");
  rest -= h->pages * h->kind.page_bytes;
  if (h->kind.slot_bytes ? h->slots > rest / h->kind.slot_bytes : h->slots > 0) return broken("it is cut");
  if (rest != h->slots * h->kind.slot_bytes) return broken("it is longer than what it has");
  out->words = (const int32_t *)((const char *)bytes + sizeof *h);
  out->data = (const uint8_t *)bytes + sizeof *h + words;
  if (add_bytes(0, out->words, words) != h->words_sum || sum_data(h, out->data) != h->data_sum)
    return broken("its sum is not that of its bytes");
  size_t at = 0, used = 0;
  for (uint32_t i = 0; i < h->texts; i++, at += used) RDNA_TRY(check_text(h, out->words + at, h->words - at, &used));
  return h->words - at < 2 ? RDNA_OK : broken("there is something behind its texts");
}

/* ---- saving ---- */

/* Pages or slots of a cache and their numbers in the file. */
typedef struct numbers {
  int32_t *in_file; /* (those of the cache) -1: it is not there */
  int32_t *of_cache;
  int32_t count;
} numbers;

static bool numbers_init(numbers *n, int64_t count) {
  size_t size = (size_t)count + 1;
  n->count = 0;
  n->in_file = malloc(size * sizeof *n->in_file);
  n->of_cache = malloc(size * sizeof *n->of_cache);
  if (n->in_file) memset(n->in_file, -1, size * sizeof *n->in_file);
  return n->in_file && n->of_cache;
}

static void numbers_deinit(numbers *n) {
  free(n->in_file);
  free(n->of_cache);
}

static int32_t number_of(numbers *n, int32_t place) {
  if (place < 0) return -1;
  if (n->in_file[place] < 0) {
    n->of_cache[n->count] = place;
    n->in_file[place] = n->count++;
  }
  return n->in_file[place];
}

typedef struct saver {
  rdna_llm_cache *cache;
  rdna__llm_saved_header header;
  numbers pages, slots;
  int32_t *words;
  char *buffer; /* of a page or a slot */
  int fd;
} saver;

static bool can_be_saved(const rdna_llm_cache *cache, const rdna_llm_sequence *s) {
  return s && s->position > 0 && (s->slot >= 0 || !cache->pass.state_slots);
}

static void put_text(saver *v, const rdna__llm_saved_text *text) {
  const rdna_llm_sequence *s = text->sequence;
  const rdna__llm_saved_head head = {.position = s->position,
                                     .prompt = text->prompt < s->position ? text->prompt : s->position,
                                     .pages = s->page_count,
                                     .checkpoints = s->kept_count,
                                     .slot = number_of(&v->slots, s->slot)};
  int32_t *to = v->words + v->header.words;
  memcpy(to, &head, sizeof head);
  to += HEAD_WORDS;
  memcpy(to, text->tokens, (size_t)s->position * sizeof *to);
  to += s->position;
  for (int i = 0; i < s->page_count; i++) *to++ = number_of(&v->pages, s->pages[i]);
  for (int i = 0; i < s->kept_count; i++) {
    *to++ = s->kept[i].position;
    *to++ = number_of(&v->slots, s->kept[i].slot);
  }
  v->header.words = (uint32_t)(to - v->words);
  v->header.texts++;
}

static rdna_status put_texts(saver *v, const rdna__llm_saved_text *texts, int count) {
  size_t words = 2;
  for (int i = 0; i < count; i++) {
    const rdna_llm_sequence *s = texts[i].sequence;
    if (can_be_saved(v->cache, s))
      words += HEAD_WORDS + (size_t)s->position + (size_t)s->page_count + 2 * (size_t)s->kept_count;
  }
  const rdna__llm_saved_kind *kind = &v->header.kind;
  v->words = calloc(words, sizeof *v->words);
  v->buffer = malloc(1 + (kind->page_bytes > kind->slot_bytes ? kind->page_bytes : kind->slot_bytes));
  if (!v->words || !v->buffer || !numbers_init(&v->pages, v->cache->pass.pages) ||
      !numbers_init(&v->slots, v->cache->pass.state_slots) || words > UINT32_MAX)
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory to save %d texts", count);
  for (int i = 0; i < count; i++)
    if (can_be_saved(v->cache, texts[i].sequence)) put_text(v, &texts[i]);
  v->header.words += v->header.words % 2; /* what follows stays aligned */
  v->header.pages = (uint32_t)v->pages.count;
  v->header.slots = (uint32_t)v->slots.count;
  v->header.words_sum = add_bytes(0, v->words, v->header.words * sizeof *v->words);
  return RDNA_OK;
}

static rdna_status put_bytes(const saver *v, const void *bytes, size_t size) {
  for (const char *p = bytes; size > 0;) {
    ssize_t written = write(v->fd, p, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return rdna__fail(RDNA_IO_ERROR, "it cannot be written: %s", strerror(errno));
    p += written;
    size -= (size_t)written;
  }
  return RDNA_OK;
}

static rdna_status put_data(saver *v) {
  const rdna__llm_saved_kind *kind = &v->header.kind;
  for (int32_t i = 0; i < v->pages.count + v->slots.count; i++) {
    bool is_page = i < v->pages.count;
    size_t bytes = is_page ? kind->page_bytes : kind->slot_bytes;
    host_side host = {.to = v->buffer};
    if (is_page)
      RDNA_TRY(move_page(v->cache, v->pages.of_cache[i], &host));
    else
      RDNA_TRY(move_slot(v->cache, v->slots.of_cache[i - v->pages.count], &host));
    RDNA_TRY(finish_moves(v->cache));
    v->header.data_sum = add_bytes(v->header.data_sum, v->buffer, bytes);
    RDNA_TRY(put_bytes(v, v->buffer, bytes));
  }
  return RDNA_OK;
}

/* The header comes last: what was broken off is no file of ours. */
static rdna_status put_all(saver *v, const rdna__llm_saved_text *texts, int count) {
  RDNA_TRY(put_texts(v, texts, count));
  const rdna__llm_saved_header none = {.texts = 0};
  RDNA_TRY(put_bytes(v, &none, sizeof none));
  RDNA_TRY(put_bytes(v, v->words, v->header.words * sizeof *v->words));
  RDNA_TRY(put_data(v));
  memcpy(v->header.magic, RDNA__LLM_SAVED_MAGIC, sizeof v->header.magic);
  if (lseek(v->fd, 0, SEEK_SET) < 0) return rdna__fail(RDNA_IO_ERROR, "it cannot be written: %s", strerror(errno));
  RDNA_TRY(put_bytes(v, &v->header, sizeof v->header));
  return fsync(v->fd) == 0 ? RDNA_OK : rdna__fail(RDNA_IO_ERROR, "it cannot be written: %s", strerror(errno));
}

rdna_status rdna__llm_save(rdna_llm_cache *cache, const rdna__llm_saved_text *texts, int count, uint64_t model,
                           const char *path) {
  saver v = {.cache = cache};
  char *beside;
  RDNA_TRY(kind_of(cache, model, &v.header.kind));
  if (asprintf(&beside, "%s.new", path) < 0) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a name");
  v.fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600); /* what is in it was said in private */
  rdna_status status =
      v.fd < 0 ? rdna__fail(RDNA_IO_ERROR, "it cannot be made: %s", strerror(errno)) : put_all(&v, texts, count);
  if (v.fd >= 0 && close(v.fd) != 0 && status == RDNA_OK)
    status = rdna__fail(RDNA_IO_ERROR, "it cannot be written: %s", strerror(errno));
  if (status == RDNA_OK && rename(beside, path) != 0)
    status = rdna__fail(RDNA_IO_ERROR, "it cannot be put in its place: %s", strerror(errno));
  if (status != RDNA_OK) unlink(beside);
  free(beside);
  numbers_deinit(&v.pages);
  numbers_deinit(&v.slots);
  free(v.words);
  free(v.buffer);
  return status;
}

/* ---- restoring ---- */

typedef struct restorer {
  rdna_llm_cache *cache;
  const rdna__llm_saved *saved;
  int32_t *pages, *slots; /* of the file, those of the cache; -1: it has none yet */
} restorer;

static int64_t count_missing(const restorer *r, const int32_t *pages, int count) {
  int64_t missing = 0;
  for (int i = 0; i < count; i++) missing += r->pages[pages[i]] < 0; /* no text has a page twice */
  return missing;
}

static rdna_status use_page(restorer *r, rdna_llm_sequence *s, int32_t number) {
  rdna_llm_cache *cache = r->cache;
  if (r->pages[number] >= 0) {
    cache->page_users[s->pages[s->page_count++] = r->pages[number]]++;
    return RDNA_OK;
  }
  int32_t page = rdna__llm_take_page(cache, s->page_count ? s->pages[s->page_count - 1] : -1);
  host_side host = {.from = r->saved->data + (size_t)number * r->saved->header.kind.page_bytes};
  s->pages[s->page_count++] = r->pages[number] = page;
  return move_page(cache, page, &host);
}

/* -1: the cache has no slot left. */
static rdna_status use_slot(restorer *r, int32_t number, int *out_slot) {
  const rdna__llm_saved_header *h = &r->saved->header;
  int slot = r->slots[number];
  bool is_new = slot < 0;
  if (is_new) slot = rdna__llm_free_slot(r->cache);
  *out_slot = slot;
  if (slot < 0) return RDNA_OK;
  r->cache->slot_users[slot]++;
  r->slots[number] = slot;
  host_side host = {.from = r->saved->data + h->pages * h->kind.page_bytes + (size_t)number * h->kind.slot_bytes};
  return is_new ? move_slot(r->cache, slot, &host) : RDNA_OK;
}

/* States for |s|: those of its end, and of the checkpoints as many of the last ones as there are slots for. Without the
 * first it goes back to its last checkpoint. */
static rdna_status use_states(restorer *r, rdna_llm_sequence *s, const rdna__llm_saved_head *t, const int32_t *kept) {
  if (t->slot < 0) return RDNA_OK;
  RDNA_TRY(use_slot(r, t->slot, &s->slot));
  int first = t->checkpoints > r->cache->most_kept ? t->checkpoints - r->cache->most_kept : 0;
  for (int i = first; i < t->checkpoints; i++) {
    int slot;
    RDNA_TRY(use_slot(r, kept[2 * i + 1], &slot));
    if (slot < 0) break;
    s->kept[s->kept_count++] = (rdna__llm_kept){kept[2 * i], slot, ++r->cache->checkpoints};
  }
  return RDNA_OK;
}

/* What nobody has any more is not there for the next text. */
static void forget_free(restorer *r) {
  const rdna__llm_saved_header *h = &r->saved->header;
  for (uint32_t i = 0; i < h->pages; i++)
    if (r->pages[i] >= 0 && r->cache->page_users[r->pages[i]] == 0) r->pages[i] = -1;
  for (uint32_t i = 0; i < h->slots; i++)
    if (r->slots[i] >= 0 && r->cache->slot_users[r->slots[i]] == 0) r->slots[i] = -1;
}

/* |out->sequence| stays NULL where the cache has no room for it. */
static rdna_status restore_text(restorer *r, const int32_t *words, size_t *out_used, rdna__llm_saved_text *out) {
  rdna_llm_cache *cache = r->cache;
  rdna__llm_saved_head t;
  memcpy(&t, words, sizeof t);
  const int32_t *tokens = words + HEAD_WORDS, *pages = tokens + t.position, *kept = pages + t.pages;
  *out_used = HEAD_WORDS + (size_t)t.position + (size_t)t.pages + 2 * (size_t)t.checkpoints;
  *out = (rdna__llm_saved_text){.prompt = t.prompt};
  if (t.position > cache->pass.context || t.pages > cache->table_stride ||
      count_missing(r, pages, t.pages) > cache->free_pages)
    return RDNA_OK;
  rdna_llm_sequence *s;
  RDNA_TRY(rdna_llm_sequence_create(cache, &s));
  rdna_status status = RDNA_OK;
  for (int i = 0; i < t.pages && status == RDNA_OK; i++) status = use_page(r, s, pages[i]);
  s->position = status == RDNA_OK ? t.position : 0;
  rdna__llm_shrink(s);
  if (status == RDNA_OK) status = use_states(r, s, &t, kept);
  if (status == RDNA_OK && t.slot >= 0 && s->slot < 0) status = rdna_llm_sequence_truncate(s, t.position);
  if (status == RDNA_OK && s->position > 0) {
    out->tokens = malloc((size_t)s->position * sizeof *out->tokens);
    if (!out->tokens) status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for its texts");
  }
  if (status != RDNA_OK || s->position == 0) {
    rdna_llm_sequence_release(s);
    forget_free(r);
    return status;
  }
  forget_free(r);
  memcpy(out->tokens, tokens, (size_t)s->position * sizeof *tokens);
  if (out->prompt > s->position) out->prompt = s->position;
  out->sequence = s;
  return RDNA_OK;
}

static rdna_status restore_all(restorer *r, rdna__llm_saved_text *texts, int most, int *out_count) {
  const rdna__llm_saved_header *h = &r->saved->header;
  size_t at = 0, used = 0;
  r->pages = malloc((h->pages + (size_t)1) * sizeof *r->pages);
  r->slots = malloc((h->slots + (size_t)1) * sizeof *r->slots);
  if (!r->pages || !r->slots) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for its pages");
  memset(r->pages, -1, h->pages * sizeof *r->pages);
  memset(r->slots, -1, h->slots * sizeof *r->slots);
  for (uint32_t i = 0; i < h->texts && *out_count < most; i++, at += used) {
    RDNA_TRY(restore_text(r, r->saved->words + at, &used, &texts[*out_count]));
    *out_count += texts[*out_count].sequence != NULL;
  }
  return RDNA_OK;
}

rdna_status rdna__llm_restore(rdna_llm_cache *cache, const char *path, uint64_t model, rdna__llm_saved_text *texts,
                              int most, int *out_count) {
  rdna__file file = {0};
  rdna__llm_saved_kind kind;
  rdna__llm_saved saved;
  restorer r = {.cache = cache, .saved = &saved};
  *out_count = 0;
  RDNA_TRY(kind_of(cache, model, &kind));
  RDNA_TRY(rdna__file_map(path, &file));
  rdna_status status = rdna__llm_saved_read(file.data, file.size, &kind, &saved);
  if (status == RDNA_OK) {
    status = restore_all(&r, texts, most, out_count);
    rdna_status moved = finish_moves(cache); /* whatever failed: copies read the file */
    if (status == RDNA_OK) status = moved;
  }
  while (status != RDNA_OK && *out_count > 0) {
    rdna__llm_saved_text *text = &texts[--*out_count];
    rdna_llm_sequence_release(text->sequence);
    free(text->tokens);
  }
  free(r.pages);
  free(r.slots);
  rdna__file_unmap(&file);
  return status;
}
