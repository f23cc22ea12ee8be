/* A JSON schema: where it is taken, its grammar must be one, or be refused for what only the grammar shows, and a walk
 * along the mask must never be refused. */
#include <stdlib.h>
#include <string.h>

#include "model/grammar/grammar.h"

enum { TOKENS = 257, STEPS = 60 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static rdna__vocabulary *open_vocabulary(void) {
  static char bytes[256];
  rdna__vocabulary_token tokens[TOKENS];
  memset(tokens, 0, sizeof tokens);
  for (int i = 0; i < 256; i++) {
    bytes[i] = (char)i;
    tokens[i].piece = (rdna_text){&bytes[i], 1};
  }
  tokens[256].end = true;
  rdna__vocabulary *vocabulary;
  if (rdna__vocabulary_create(tokens, TOKENS, &vocabulary) != RDNA_OK) abort();
  return vocabulary;
}

static void walk(rdna__matcher *m, unsigned choice) {
  for (int step = 0; step < STEPS && !rdna__matcher_must_end(m); step++) {
    uint64_t bits[(TOKENS + 63) / 64];
    int32_t allowed[TOKENS];
    unsigned count = 0;
    if (rdna__matcher_mask(m, bits) != RDNA_OK) return;
    for (int32_t id = 0; id < 256; id++)
      if (bits[id / 64] >> (id % 64) & 1) allowed[count++] = id;
    if (count == 0) abort(); /* a state from which no text goes on */
    choice = choice * 1103515245 + 12345;
    rdna_status status = rdna__matcher_accept(m, allowed[(choice >> 16) % count]);
    if (status == RDNA_UNSUPPORTED) return;
    if (status != RDNA_OK) abort();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static rdna__vocabulary *vocabulary;
  if (!vocabulary) vocabulary = open_vocabulary();
  char *text;
  if (rdna__grammar_of_schema((const char *)data, size, &text) != RDNA_OK) return 0;
  rdna__grammar *grammar;
  rdna__matcher *matcher;
  rdna_status status = rdna__grammar_compile(vocabulary, text, strlen(text), &grammar);
  if (status == RDNA_OK && rdna__matcher_create(grammar, &matcher) == RDNA_OK) {
    walk(matcher, (unsigned)size);
    rdna__matcher_release(matcher);
  }
  if (status == RDNA_OK) {
    rdna__grammar_release(grammar);
  } else {
    /* what is not about the schema's own meaning is a mistake in the text that was made of it */
    static const char *const fine[] = {"never ends", "begins with itself", "more than", "may be empty", "above",
                                       "at least"};
    bool known = false;
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) known |= strstr(rdna_last_error(), fine[i]) != NULL;
    if (!known) abort();
  }
  free(text);
  return 0;
}
