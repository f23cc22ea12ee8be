/* The first byte chooses: a synthetic vocabulary and the rest as text, or the rest as the file of a vocabulary. Texts
 * are encoded with every set of flags; byte-level ids must decode to the text again. */
#include <stdlib.h>
#include <string.h>

#include "model/gguf/testing_gguf.h"
#include "model/tokenizer/tokenizer.h"
#include "rdna/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decode(const rdna_tokenizer *tokenizer, const rdna_tokens *tokens, const char *text, size_t size) {
  rdna_detokenizer *d = NULL;
  if (rdna_detokenizer_create(tokenizer, true, &d) != RDNA_OK) abort();
  size_t at = 0;
  for (size_t i = 0; i <= tokens->count; i++) {
    rdna_text part;
    if (i == tokens->count) {
      rdna_detokenizer_finish(d, &part);
    } else if (rdna_detokenizer_push(d, tokens->ids[i], &part) != RDNA_OK) {
      abort();
    }
    if (text && (part.size > size - at || memcmp(text + at, part.data, part.size) != 0)) abort();
    at += part.size;
  }
  if (text && at != size) abort();
  rdna_detokenizer_release(d);
}

static void use(const rdna_tokenizer *tokenizer, const char *text, size_t size, bool lossless) {
  size_t count = rdna_tokenizer_get_info(tokenizer)->token_count;
  for (unsigned flags = 0; flags < 4; flags++) {
    rdna_tokens tokens = {0};
    rdna_status status = rdna_tokenizer_encode(tokenizer, text, size, flags, &tokens);
    if (status != RDNA_OK && tokens.count) abort();
    for (size_t i = 0; i < tokens.count; i++)
      if (tokens.ids[i] < 0 || (size_t)tokens.ids[i] >= count) abort();
    if (status == RDNA_OK) {
      bool whole = lossless && !(flags & RDNA_ENCODE_ADD_SPECIAL);
      decode(tokenizer, &tokens, whole ? text : NULL, size);
    } else if (lossless) {
      abort();
    }
    rdna_tokens_deinit(&tokens);
  }
}

enum { KINDS = 12, CHARACTERS = 8 /* and behind it one that normalizes */, WORDS = 10, PIECES = 11 };

static rdna_tokenizer *synthetic[KINDS];
static rdna_gguf *synthetic_files[KINDS]; /* so that leak checkers see who holds them */

static void add(testing_token *tokens, size_t *count, const char *text, size_t size, int32_t type) {
  char *copy = malloc(size + 1);
  if (!copy) abort();
  memcpy(copy, text, size);
  tokens[*count] = (testing_token){copy, size, type, -(float)(*count % 37)};
  ++*count;
}

/* All bytes, some words, a token of each special kind; merges that make the words. Lives as long as the process. */
static rdna_tokenizer *make(int kind) {
  static const char *const pres[KINDS] = {NULL,          NULL,      "gpt-2", "llama-bpe", "gpt-4o", "deepseek-llm",
                                          "deepseek-v3", "default", NULL,    "qwen2",     NULL,     NULL};
  static const rdna_text merges[] = {
      {"a b", 3}, {"ab ab", 5}, {"b a", 3}, {"a a", 3}, {"aa aa", 5}, {"\xc4\xa0 a", 4}, {"\xc4\xa0 \xc4\xa0", 5},
      {"1 2", 3}};
  static testing_token tokens[320];
  size_t count = 0;
  bool bpe = pres[kind] != NULL;
  for (int b = 0; b < 256; b++) {
    char text[8] = {'<', '0', 'x', "0123456789ABCDEF"[b >> 4], "0123456789ABCDEF"[b & 15], '>'};
    if (!bpe) {
      add(tokens, &count, text, 6, RDNA_TOKEN_TYPE_BYTE);
      continue;
    }
    static int skipped;
    if (b == 0) skipped = 0;
    bool printable = (b > 0x20 && b < 0x7f) || (b > 0xa0 && b != 0xad);
    int code = printable ? b : 0x100 + skipped++;
    char wide[2] = {(char)(0xc0 | code >> 6), (char)(0x80 | (code & 0x3f))};
    if (code < 0x80) wide[0] = (char)code;
    add(tokens, &count, wide, code < 0x80 ? 1 : 2, RDNA_TOKEN_TYPE_NORMAL);
  }
  static const char *const bpe_words[] = {"ab", "abab", "ba", "aa", "\xc4\xa0\x61", "\xc4\xa0\xc4\xa0", "12"};
  static const char *const spm_words[] = {
      "a",  "b",        "ab", "aba", "\xe2\x96\x81", "\xe2\x96\x81\x61", "\xe2\x96\x81\xe2\x96\x81",
      "bb", "\xc3\xa9", "aa", "aaaa"};
  for (size_t i = 0; bpe && i < 7; i++) add(tokens, &count, bpe_words[i], strlen(bpe_words[i]), RDNA_TOKEN_TYPE_NORMAL);
  for (size_t i = 0; !bpe && i < 11; i++)
    add(tokens, &count, spm_words[i], strlen(spm_words[i]), i == 7 ? RDNA_TOKEN_TYPE_UNUSED : RDNA_TOKEN_TYPE_NORMAL);
  if (kind == 1)
    add(tokens, &count,
        "a\xe2\x96\x81"
        "b",
        5, RDNA_TOKEN_TYPE_NORMAL);
  add(tokens, &count, "<s>", 3, RDNA_TOKEN_TYPE_CONTROL);
  add(tokens, &count, "<u>", 3, RDNA_TOKEN_TYPE_USER_DEFINED);
  add(tokens, &count, "<u><", 4, RDNA_TOKEN_TYPE_USER_DEFINED);
  add(tokens, &count, "<?>", 3, RDNA_TOKEN_TYPE_UNKNOWN);
  testing_vocabulary v = {.model = bpe                  ? "gpt2"
                                   : kind == CHARACTERS ? "gemma4"
                                   : kind == WORDS      ? "bert"
                                   : kind == PIECES     ? "t5"
                                                        : "llama",
                          .pre = pres[kind],
                          .tokens = tokens,
                          .token_count = count,
                          .merges = merges,
                          .merge_count = sizeof merges / sizeof *merges,
                          .bos = (int32_t)count - 4,
                          .eos = (int32_t)count - 4,
                          .unknown = -2,
                          .add_bos = 1,
                          .add_eos = 1,
                          .add_space_prefix = -1};
  testing_gguf g = testing_write_vocabulary(&v);
  rdna_tokenizer *tokenizer = NULL;
  for (size_t i = 0; i < count; i++) free((char *)tokens[i].text);
  if (rdna_gguf_open_memory(g.data, g.size, &synthetic_files[kind]) != RDNA_OK) abort();
  if (rdna_tokenizer_open(synthetic_files[kind], &tokenizer) != RDNA_OK) abort();
  return tokenizer;
}

static void use_hostile(const uint8_t *data, size_t size) {
  uint8_t *copy = malloc(size ? size : 1);
  if (!copy) return;
  if (size) memcpy(copy, data, size);
  rdna_gguf *file = NULL;
  rdna_tokenizer *tokenizer = NULL;
  if (rdna_gguf_open_memory(copy, size, &file) == RDNA_OK) {
    if (rdna_tokenizer_open(file, &tokenizer) == RDNA_OK) {
      static const char text[] = "ab aab <s> \xc3\xa9\xff 12  x\n\n<|end|>";
      use(tokenizer, text, sizeof text, false);
      use(tokenizer, (const char *)copy, size < 256 ? size : 256, false);
      const rdna_tokenizer_info *info = rdna_tokenizer_get_info(tokenizer);
      for (size_t i = 0; i < info->token_count; i++) {
        rdna_text piece;
        rdna_token_type type;
        if (rdna_tokenizer_piece(tokenizer, (int32_t)i, &piece) != RDNA_OK) abort();
        if (rdna_tokenizer_type(tokenizer, (int32_t)i, &type) != RDNA_OK) abort();
        (void)rdna_tokenizer_is_end(tokenizer, (int32_t)i);
        use(tokenizer, piece.data, piece.size < 64 ? piece.size : 64, false);
      }
    } else if (!*rdna_last_error()) {
      abort();
    }
  }
  rdna_tokenizer_close(tokenizer);
  rdna_gguf_close(file);
  free(copy);
}

/* A map of characters, over its own bytes. */
static void use_charsmap(const uint8_t *data, size_t size) {
  rdna__charsmap *map = NULL;
  if (rdna__charsmap_create(data, size, &map) != RDNA_OK) return;
  for (size_t i = 0; i < size && i < 256; i++) {
    rdna_text text = {(const char *)data + i, size - i}, to = {0};
    size_t found = rdna__charsmap_find(map, text, &to);
    if (found > text.size || (found && (!to.data || strlen(to.data) != to.size))) abort();
  }
  rdna__charsmap_release(map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  unsigned kind = data[0] % (KINDS + 5u); /* a third of the time goes to hostile files */
  if (kind == KINDS + 4u) {
    use_charsmap(data + 1, size - 1);
    return 0;
  }
  if (kind >= KINDS) {
    use_hostile(data + 1, size - 1);
    return 0;
  }
  if (!synthetic[kind]) synthetic[kind] = make((int)kind);
  /* SentencePiece's kind takes a space at the start of a part for its own, and with characters its mark is one; the
   * last kind normalizes: these are not always lossless */
  use(synthetic[kind], (const char *)data + 1, size - 1, kind >= 2 && kind < CHARACTERS);
  return 0;
}
