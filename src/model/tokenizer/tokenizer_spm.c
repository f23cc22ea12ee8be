/* The BPE model of SentencePiece (Kudo and Richardson, 2018) as Llama, Mistral, Gemma and Phi-3 use it: characters are
 * joined to the neighbour with which they make the token of the highest score; what is no token becomes bytes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/tokenizer/tokenizer.h"

static const char space_mark[3] = "\xe2\x96\x81"; /* U+2581, which stands for a space inside a vocabulary */

static bool is_mark(const char *at, size_t left) { return left >= 3 && memcmp(at, space_mark, 3) == 0; }

/* What a normal token stands for: its text with spaces for the marks. Returns the size written to |out|. */
static size_t unmark(rdna_text text, char *out) {
  size_t size = 0;
  for (size_t i = 0; i < text.size;) {
    if (is_mark(text.data + i, text.size - i)) {
      out[size++] = ' ';
      i += 3;
    } else {
      out[size++] = text.data[i++];
    }
  }
  return size;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

/* The byte that "<0xE2>" names, or -1. */
static int named_byte(rdna_text text) {
  if (text.size != 6 || memcmp(text.data, "<0x", 3) != 0 || text.data[5] != '>') return -1;
  int high = hex_digit(text.data[3]), low = hex_digit(text.data[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

rdna_status rdna__spm_make_pieces(rdna_tokenizer *t) {
  size_t total = 1;
  for (size_t i = 0; i < t->info.token_count; i++) total += t->texts[i].size;
  t->piece_bytes = malloc(total);
  if (!t->piece_bytes) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %zu bytes of vocabulary", total);
  char *at = t->piece_bytes;
  for (size_t i = 0; i < t->info.token_count; i++) {
    rdna_text text = t->texts[i];
    int byte = t->types[i] == RDNA_TOKEN_TYPE_BYTE ? named_byte(text) : -1;
    size_t size;
    if (t->types[i] == RDNA_TOKEN_TYPE_BYTE && byte < 0)
      return rdna__fail(RDNA_BAD_DATA, "token %zu is of type byte, but its text is not like <0x0A>", i);
    if (byte >= 0) {
      *at = (char)byte;
      size = 1;
      if (t->byte_ids[byte] < 0) t->byte_ids[byte] = (int32_t)i;
    } else if (t->types[i] == RDNA_TOKEN_TYPE_NORMAL || t->types[i] == RDNA_TOKEN_TYPE_UNUSED) {
      size = unmark(text, at);
    } else {
      if (text.size) memcpy(at, text.data, text.size);
      size = text.size;
    }
    t->pieces[i] = (rdna_text){at, size};
    at += size;
  }
  return RDNA_OK;
}

bool rdna__spm_marks_lead(rdna_text text) {
  bool others = false;
  for (size_t i = 0; i < text.size;) {
    if (is_mark(text.data + i, text.size - i)) {
      if (others) return false;
      i += 3;
    } else {
      others = true;
      i++;
    }
  }
  return true;
}

static rdna_status collect_mergeable(rdna_tokenizer *t) {
  t->splits_at_space = true;
  RDNA_TRY(rdna__strmap_init(&t->mergeable, t->info.token_count));
  for (size_t i = 0; i < t->info.token_count; i++) {
    rdna_text text = t->texts[i];
    if (isnan(t->scores[i])) return rdna__fail(RDNA_BAD_DATA, "the score of token %zu is not a number", i);
    if (t->types[i] == RDNA_TOKEN_TYPE_CONTROL || t->types[i] == RDNA_TOKEN_TYPE_UNKNOWN ||
        t->types[i] == RDNA_TOKEN_TYPE_BYTE || text.size == 0)
      continue;
    bool inserted;
    RDNA_TRY(rdna__strmap_insert(&t->mergeable, text.data, text.size, (uint32_t)i, &inserted));
    if (!inserted) continue;
    if (text.size > t->longest) t->longest = text.size;
    if (t->types[i] == RDNA_TOKEN_TYPE_UNUSED) t->has_unused = true;
    if (!rdna__spm_marks_lead(text)) t->splits_at_space = false;
  }
  return RDNA_OK;
}

rdna_status rdna__spm_open(const rdna_gguf *file, rdna_tokenizer *t) {
  size_t count = t->info.token_count;
  t->scores = malloc(count * sizeof *t->scores);
  if (!t->scores) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %zu scores", count);
  RDNA_TRY(rdna_gguf_read_f32(file, "tokenizer.ggml.scores", 0, count, t->scores));
  t->add_space_prefix = true;
  if (rdna_gguf_find_key(file, "tokenizer.ggml.add_space_prefix", NULL))
    RDNA_TRY(rdna_gguf_get_bool(file, "tokenizer.ggml.add_space_prefix", &t->add_space_prefix));
  RDNA_TRY(rdna__spm_make_pieces(t));
  return collect_mergeable(t);
}

/* Scores in descending order become numbers in ascending order. */
static uint32_t priority_of(float score) {
  uint32_t bits;
  score += 0.0f; /* both zeros are one */
  memcpy(&bits, &score, sizeof bits);
  bits = bits & 0x80000000 ? ~bits : bits | 0x80000000; /* ascending with the score */
  return ~bits;
}

static bool join(const rdna__merger *m, const rdna__symbol *left, const rdna__symbol *right, uint32_t *out_priority,
                 int32_t *out_id) {
  const rdna_tokenizer *t = m->tokenizer;
  size_t size = (size_t)left->size + right->size;
  uint32_t id;
  if (size > t->longest || !rdna__strmap_find(&t->mergeable, m->text + left->start, size, &id)) return false;
  *out_priority = priority_of(t->scores[id]);
  *out_id = (int32_t)id;
  return true;
}

/* One character that is no token. */
rdna_status rdna__spm_append_bytes(const rdna_tokenizer *t, const char *bytes, size_t size, rdna_tokens *tokens) {
  for (size_t i = 0; i < size; i++)
    if (t->byte_ids[(uint8_t)bytes[i]] < 0) {
      if (t->info.unknown >= 0) return rdna_tokens_append(tokens, t->info.unknown);
      return rdna__fail(RDNA_UNSUPPORTED, "the vocabulary has no token for byte 0x%02x, nor one for the unknown",
                        (uint8_t)bytes[i]);
    }
  for (size_t i = 0; i < size; i++) RDNA_TRY(rdna_tokens_append(tokens, t->byte_ids[(uint8_t)bytes[i]]));
  return RDNA_OK;
}

/* An unused token stands for the two parts that it was made of, and they for theirs. */
static rdna_status append_symbol(const rdna__merger *m, uint32_t start, uint32_t size, rdna_tokens *tokens) {
  const rdna_tokenizer *t = m->tokenizer;
  for (;;) {
    uint32_t id;
    if (!rdna__strmap_find(&t->mergeable, m->text + start, size, &id))
      return rdna__spm_append_bytes(t, m->text + start, size, tokens);
    uint32_t left = t->types[id] == RDNA_TOKEN_TYPE_UNUSED && m->unused_split ? m->unused_split[id] : 0;
    if (left == 0) return rdna_tokens_append(tokens, (int32_t)id);
    RDNA_TRY(append_symbol(m, start, left, tokens)); /* each call is for a shorter text, at most |longest| deep */
    start += left;
    size -= left;
  }
}

static rdna_status encode_word(rdna__merger *m, size_t start, size_t end, rdna_tokens *tokens) {
  m->symbol_count = 0;
  for (size_t i = start; i < end;) {
    int length = rdna__utf8_length(m->text + i, end - i);
    if (length < 1) length = 1; /* not UTF-8: a byte of its own */
    RDNA_TRY(rdna__merger_add_symbol(m, (uint32_t)i, (uint32_t)length, -1));
    i += (size_t)length;
  }
  RDNA_TRY(rdna__merger_run(m, join));
  for (size_t i = 0; i < m->symbol_count; i++)
    if (m->symbols[i].size) RDNA_TRY(append_symbol(m, m->symbols[i].start, m->symbols[i].size, tokens));
  return RDNA_OK;
}

/* Before the first mark behind something else. */
size_t rdna__spm_word_end(const rdna_tokenizer *t, const char *text, size_t start, size_t size) {
  if (!t->splits_at_space) return size;
  size_t i = start;
  while (is_mark(text + i, size - i)) i += 3;
  while (i < size && !is_mark(text + i, size - i)) i++;
  return i;
}

rdna_status rdna__spm_mark(rdna_text text, bool prefix, char **out_text, size_t *out_size) {
  size_t spaces = 1, size = 0;
  for (size_t i = 0; i < text.size; i++) spaces += text.data[i] == ' ';
  char *marked = malloc(text.size + spaces * 3);
  if (!marked) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a text of %zu bytes", text.size);
  if (prefix) {
    memcpy(marked, space_mark, 3);
    size = 3;
  }
  for (size_t i = 0; i < text.size; i++) {
    if (text.data[i] == ' ') {
      memcpy(marked + size, space_mark, 3);
      size += 3;
    } else {
      marked[size++] = text.data[i];
    }
  }
  *out_text = marked;
  *out_size = size;
  return RDNA_OK;
}

rdna_status rdna__spm_encode(const rdna_tokenizer *t, rdna_text text, bool prefix, rdna_tokens *tokens) {
  char *marked;
  size_t size;
  RDNA_TRY(rdna__spm_mark(text, prefix && t->add_space_prefix, &marked, &size));
  rdna__merger merger = {.tokenizer = t, .text = marked};
  rdna_status status = RDNA_OK;
  if (t->has_unused) {
    merger.unused_split = calloc(t->info.token_count, sizeof *merger.unused_split);
    if (!merger.unused_split) status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a text");
  }
  for (size_t start = 0; start < size && status == RDNA_OK;) {
    size_t end = rdna__spm_word_end(t, marked, start, size);
    status = encode_word(&merger, start, end, tokens);
    start = end;
  }
  rdna__merger_deinit(&merger);
  free(marked);
  return status;
}
