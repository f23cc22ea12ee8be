/* BPE of characters, as Gemma 4's: SentencePiece's marks for spaces and its tokens of bytes, but merges by their rank,
 * of the very pairs that are listed. Merging stays within a line; newlines in a row are one token where there is such.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/tokenizer/tokenizer.h"

rdna_status rdna__characters_open(const rdna_gguf *file, rdna_tokenizer *t) {
  RDNA_TRY(rdna__spm_make_pieces(t));
  return rdna__bpe_read_merges(file, t);
}

static int32_t token_of(const rdna_tokenizer *t, const char *text, size_t size) {
  uint32_t id;
  return rdna__strmap_find(&t->by_text, text, size, &id) ? (int32_t)id : -1;
}

/* The marked text from |start| to |end|, which is newlines or has none. */
static rdna_status encode_run(rdna__merger *m, size_t start, size_t end, rdna_tokens *tokens) {
  const rdna_tokenizer *t = m->tokenizer;
  int32_t whole = m->text[start] == '\n' ? token_of(t, m->text + start, end - start) : -1;
  if (whole >= 0) return rdna_tokens_append(tokens, whole);
  m->symbol_count = 0;
  for (size_t i = start; i < end;) {
    int length = rdna__utf8_length(m->text + i, end - i);
    if (length < 1) length = 1; /* not UTF-8: a byte of its own */
    int32_t id = token_of(t, m->text + i, (size_t)length);
    RDNA_TRY(rdna__merger_add_symbol(m, (uint32_t)i, (uint32_t)length, id));
    i += (size_t)length;
  }
  RDNA_TRY(rdna__merger_run(m, rdna__bpe_join));
  for (size_t i = 0; i < m->symbol_count; i++) {
    const rdna__symbol *s = &m->symbols[i];
    if (s->size == 0) continue;
    bool is_token = s->id >= 0 && (size_t)s->id < t->info.token_count;
    RDNA_TRY(is_token ? rdna_tokens_append(tokens, s->id)
                      : rdna__spm_append_bytes(t, m->text + s->start, s->size, tokens));
  }
  return RDNA_OK;
}

rdna_status rdna__characters_encode(const rdna_tokenizer *t, rdna_text text, rdna_tokens *tokens) {
  char *marked;
  size_t size;
  RDNA_TRY(rdna__spm_mark(text, false, &marked, &size));
  rdna__merger merger = {.tokenizer = t, .text = marked};
  rdna_status status = RDNA_OK;
  for (size_t start = 0, end; start < size && status == RDNA_OK; start = end) {
    for (end = start + 1; end < size && (marked[end] == '\n') == (marked[start] == '\n');) end++;
    status = encode_run(&merger, start, end, tokens);
  }
  rdna__merger_deinit(&merger);
  free(marked);
  return status;
}
