/* The bytes up to the first 0xff are a grammar, the rest a text that is given to it byte by byte. Where a byte is
 * taken, the mask must have it, and the other way. */
#include <stdlib.h>
#include <string.h>

#include "model/grammar/grammar.h"

enum { WORDS = 4, TOKENS = 257 + WORDS, MOST_STEPS = 40 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static rdna__vocabulary *open_vocabulary(void) {
  static const char *const words[WORDS] = {"\",\"", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "\"}]", "<x>"};
  static char bytes[256];
  rdna__vocabulary_token tokens[TOKENS] = {0};
  for (int i = 0; i < 256; i++) {
    bytes[i] = (char)i;
    tokens[i].piece = (rdna_text){&bytes[i], 1};
  }
  tokens[256].end = true;
  for (int i = 0; i < WORDS; i++) tokens[257 + i].piece = (rdna_text){words[i], strlen(words[i])};
  rdna__vocabulary *vocabulary;
  if (rdna__vocabulary_create(tokens, TOKENS, &vocabulary) != RDNA_OK) abort();
  return vocabulary;
}

static void walk(rdna__matcher *m, const uint8_t *text, size_t size) {
  for (size_t at = 0; at < size && at < MOST_STEPS; at++) {
    uint64_t bits[(TOKENS + 63) / 64];
    if (rdna__matcher_mask(m, bits) != RDNA_OK) return;
    if ((bits[256 / 64] & 1) != rdna__matcher_may_end(m)) abort();
    for (int32_t id = 0; id < TOKENS; id += id < 256 ? 17 : 1) {
      rdna_status status = rdna__matcher_accept(m, id);
      if (status == RDNA_UNSUPPORTED) return;
      if ((status == RDNA_OK) != (bits[id / 64] >> (id % 64) & 1)) abort();
      if (status == RDNA_OK && rdna__matcher_rollback(m, 1) != RDNA_OK) abort();
    }
    if (rdna__matcher_accept(m, text[at]) != RDNA_OK) return;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static rdna__vocabulary *vocabulary;
  if (!vocabulary) vocabulary = open_vocabulary();
  const uint8_t *split = memchr(data, 0xff, size);
  size_t grammar_size = split ? (size_t)(split - data) : size;
  rdna__grammar *grammar;
  rdna__matcher *matcher;
  if (rdna__grammar_compile(vocabulary, (const char *)data, grammar_size, &grammar) != RDNA_OK) return 0;
  if (rdna__matcher_create(grammar, &matcher) == RDNA_OK) {
    walk(matcher, split ? split + 1 : data, split ? size - grammar_size - 1 : size);
    rdna__matcher_release(matcher);
  }
  rdna__grammar_release(grammar);
  return 0;
}
