/* Byte-level BPE (Radford et al., 2019, "Language Models are Unsupervised Multitask Learners"): a word's bytes are
 * joined in the order of a learned list of merges. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/tokenizer/tokenizer.h"

/* Vocabularies write each byte as a printable character: itself where it is one in Latin-1, otherwise the next of
 * U+0100 on (GPT-2's encoder.py, bytes_to_unicode). */
typedef struct byte_alphabet {
  uint16_t code_of[256];
  int16_t byte_of[0x144]; /* -1: stands for none */
} byte_alphabet;

static byte_alphabet make_alphabet(void) {
  byte_alphabet a;
  memset(a.byte_of, -1, sizeof a.byte_of);
  uint16_t next = 0x100;
  for (int b = 0; b < 256; b++) {
    bool printable = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
    a.code_of[b] = printable ? (uint16_t)b : next++;
    a.byte_of[a.code_of[b]] = (int16_t)b;
  }
  return a;
}

/* The bytes that a normal token's text writes; characters outside the alphabet stand for themselves. */
static size_t to_bytes(const byte_alphabet *a, rdna_text text, char *out) {
  size_t size = 0;
  for (size_t i = 0; i < text.size;) {
    uint8_t lead = (uint8_t)text.data[i];
    unsigned code = lead;
    int length = rdna__utf8_length(text.data + i, text.size - i);
    if (length == 2) code = (lead & 0x1fu) << 6 | ((uint8_t)text.data[i + 1] & 0x3fu);
    if (length == 1 || length == 2) {
      if (code < 0x144 && a->byte_of[code] >= 0) {
        out[size++] = (char)a->byte_of[code];
        i += (size_t)length;
        continue;
      }
    }
    if (length < 1) length = 1;
    memcpy(out + size, text.data + i, (size_t)length);
    size += (size_t)length;
    i += (size_t)length;
  }
  return size;
}

static rdna_status make_pieces(rdna_tokenizer *t) {
  byte_alphabet alphabet = make_alphabet();
  size_t total = 1;
  for (size_t i = 0; i < t->info.token_count; i++) total += t->texts[i].size;
  t->piece_bytes = malloc(total);
  if (!t->piece_bytes) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %zu bytes of vocabulary", total);
  RDNA_TRY(rdna__strmap_init(&t->by_piece, t->info.token_count));
  char *at = t->piece_bytes;
  for (size_t i = 0; i < t->info.token_count; i++) {
    rdna_text text = t->texts[i];
    bool normal = t->types[i] == RDNA_TOKEN_TYPE_NORMAL || t->types[i] == RDNA_TOKEN_TYPE_UNUSED;
    size_t size = text.size;
    if (normal) {
      bool ends = t->marks_ends && text.size > 4 && memcmp(text.data + text.size - 4, "</w>", 4) == 0;
      if (ends) text.size -= 4;
      size = to_bytes(&alphabet, text, at);
      if (ends) at[size++] = ' ';
    } else if (size) {
      memcpy(at, text.data, size);
    }
    t->pieces[i] = (rdna_text){at, size};
    at += size;
    if (!normal || size == 0) continue;
    bool inserted;
    RDNA_TRY(rdna__strmap_insert(&t->by_piece, t->pieces[i].data, size, (uint32_t)i, &inserted));
  }
  for (int b = 0; b < 256; b++) {
    unsigned code = alphabet.code_of[b];
    char text[2] = {(char)(code < 0x80 ? code : 0xc0 | code >> 6), (char)(0x80 | (code & 0x3f))};
    uint32_t id;
    size_t size = code < 0x80 ? 1 : 2;
    if (rdna__strmap_find(&t->by_text, text, size, &id)) t->byte_ids[b] = (int32_t)id;
    char end[8];
    memcpy(end, text, size);
    memcpy(end + size, "</w>", 4);
    t->end_ids[b] = rdna__strmap_find(&t->by_text, end, size + 4, &id) ? (int32_t)id : -1;
    if (t->marks_ends && (t->byte_ids[b] < 0 || t->end_ids[b] < 0))
      return rdna__fail(RDNA_BAD_DATA, "the vocabulary has no token for byte 0x%02x within a word, or at its end", b);
  }
  return RDNA_OK;
}

static size_t merge_slot(const rdna_tokenizer *t, int32_t left, int32_t right) {
  uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
  key *= 0x9e3779b97f4a7c15u; /* Fibonacci hashing: the high bits are the mixed ones */
  size_t slot = (size_t)(key >> 32) & (t->merge_slots - 1);
  while (t->merges[slot].left >= 0 && (t->merges[slot].left != left || t->merges[slot].right != right))
    slot = (slot + 1) & (t->merge_slots - 1);
  return slot;
}

/* Names of the strings that merges speak of: tokens, and behind them what merges make on the way. */
typedef struct naming {
  const rdna_tokenizer *tokenizer;
  rdna__strmap extras;
  uint32_t next;
} naming;

static rdna_status name_of(naming *n, const char *text, size_t size, int32_t *out_id) {
  uint32_t id;
  if (rdna__strmap_find(&n->tokenizer->by_text, text, size, &id)) {
    *out_id = (int32_t)id;
    return RDNA_OK;
  }
  bool inserted;
  id = n->next;
  RDNA_TRY(rdna__strmap_insert(&n->extras, text, size, id, &inserted));
  if (inserted) {
    n->next++;
  } else {
    (void)rdna__strmap_find(&n->extras, text, size, &id);
  }
  *out_id = (int32_t)id;
  return RDNA_OK;
}

/* |joined| has room for the merge's text and must outlive |n|. */
static rdna_status add_merge(rdna_tokenizer *t, naming *n, rdna_text merge, size_t rank, char *joined) {
  const char *gap = merge.size > 2 ? memchr(merge.data + 1, ' ', merge.size - 2) : NULL;
  if (!gap) return rdna__fail(RDNA_BAD_DATA, "merge %zu is not two texts with a space between them", rank);
  size_t left_size = (size_t)(gap - merge.data), right_size = merge.size - left_size - 1;
  memcpy(joined, merge.data, left_size);
  memcpy(joined + left_size, gap + 1, right_size);
  rdna__token_merge entry = {.rank = (uint32_t)rank};
  RDNA_TRY(name_of(n, merge.data, left_size, &entry.left));
  RDNA_TRY(name_of(n, gap + 1, right_size, &entry.right));
  RDNA_TRY(name_of(n, joined, left_size + right_size, &entry.id));
  rdna__token_merge *slot = &t->merges[merge_slot(t, entry.left, entry.right)];
  if (slot->left < 0) *slot = entry; /* of the same merge twice, the first counts */
  return RDNA_OK;
}

rdna_status rdna__bpe_read_merges(const rdna_gguf *file, rdna_tokenizer *t) {
  const rdna_text *merges;
  size_t count;
  RDNA_TRY(rdna_gguf_get_texts(file, "tokenizer.ggml.merges", &merges, &count));
  if (count > INT32_MAX / 4 || t->info.token_count > INT32_MAX / 4)
    return rdna__fail(RDNA_UNSUPPORTED, "a vocabulary of %zu tokens and %zu merges", t->info.token_count, count);
  t->merge_slots = 16;
  while (t->merge_slots / 2 < count) t->merge_slots *= 2;
  t->merges = malloc(t->merge_slots * sizeof *t->merges);
  size_t total = 1;
  for (size_t i = 0; i < count; i++) total += merges[i].size;
  char *joined = malloc(total), *at = joined;
  naming n = {.tokenizer = t, .next = (uint32_t)t->info.token_count};
  rdna_status status = RDNA_OK;
  if (!t->merges || !joined) status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %zu merges", count);
  for (size_t i = 0; i < t->merge_slots && t->merges; i++) t->merges[i].left = -1;
  for (size_t i = 0; i < count && status == RDNA_OK; i++) {
    status = add_merge(t, &n, merges[i], i, at);
    at += merges[i].size;
  }
  if (status == RDNA_OK && t->marks_ends && n.next > t->info.token_count)
    status = rdna__fail(RDNA_BAD_DATA, "a merge makes or joins what is no token");
  rdna__strmap_deinit(&n.extras);
  free(joined);
  return status;
}

rdna_status rdna__bpe_open(const rdna_gguf *file, rdna_tokenizer *t) {
  RDNA_TRY(make_pieces(t));
  return rdna__bpe_read_merges(file, t);
}

bool rdna__bpe_join(const rdna__merger *m, const rdna__symbol *left, const rdna__symbol *right, uint32_t *out_priority,
                    int32_t *out_id) {
  const rdna_tokenizer *t = m->tokenizer;
  if (left->id < 0 || right->id < 0) return false;
  const rdna__token_merge *merge = &t->merges[merge_slot(t, left->id, right->id)];
  if (merge->left < 0) return false;
  *out_priority = merge->rank;
  *out_id = merge->id;
  return true;
}

static rdna_status append_byte(const rdna_tokenizer *t, uint8_t byte, rdna_tokens *tokens) {
  int32_t id = t->byte_ids[byte] >= 0 ? t->byte_ids[byte] : t->info.unknown;
  if (id < 0)
    return rdna__fail(RDNA_UNSUPPORTED, "the vocabulary has no token for byte 0x%02x, nor one for the unknown", byte);
  return rdna_tokens_append(tokens, id);
}

typedef struct encoding {
  rdna__merger merger;
  rdna_tokens *tokens;
} encoding;

static rdna_status encode_word(void *context, rdna_text word) {
  encoding *e = context;
  const rdna_tokenizer *t = e->merger.tokenizer;
  uint32_t whole;
  if (t->marks_ends && word.data[0] == ' ') return RDNA_OK; /* what stands between CLIP's words */
  if (t->ignore_merges && rdna__strmap_find(&t->by_piece, word.data, word.size, &whole))
    return rdna_tokens_append(e->tokens, (int32_t)whole);
  e->merger.text = word.data;
  e->merger.symbol_count = 0;
  for (size_t i = 0; i < word.size; i++) {
    const int32_t *ids = t->marks_ends && i + 1 == word.size ? t->end_ids : t->byte_ids;
    RDNA_TRY(rdna__merger_add_symbol(&e->merger, (uint32_t)i, 1, ids[(uint8_t)word.data[i]]));
  }
  RDNA_TRY(rdna__merger_run(&e->merger, rdna__bpe_join));
  for (size_t i = 0; i < e->merger.symbol_count; i++) {
    const rdna__symbol *symbol = &e->merger.symbols[i];
    if (symbol->size == 0) continue;
    if (symbol->id >= 0 && (size_t)symbol->id < t->info.token_count) {
      RDNA_TRY(rdna_tokens_append(e->tokens, symbol->id));
    } else {
      for (uint32_t b = 0; b < symbol->size; b++)
        RDNA_TRY(append_byte(t, (uint8_t)word.data[symbol->start + b], e->tokens));
    }
  }
  return RDNA_OK;
}

rdna_status rdna__bpe_encode(const rdna_tokenizer *t, rdna_text text, rdna_tokens *tokens) {
  encoding e = {.merger.tokenizer = t, .tokens = tokens};
  rdna_status status = rdna__splitter_run(t->splitter, text, encode_word, &e);
  rdna__merger_deinit(&e.merger);
  return status;
}
