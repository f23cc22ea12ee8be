/* Makes tokenizers of vocabularies, merges and settings that are the input, between bytes of zero, and has them read
 * the rest. A vocabulary needs 512 tokens to be one, so those are put in front of what the input says of it. Where the
 * first byte has its second bit, all but the settings becomes a tokenizer.json; with its third, added_tokens.json comes
 * behind the settings. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/image/clip.h"
#include "model/tokenizer/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PREFIX_BYTES = 16384 };

/* The tokens of all bytes, and of a text's ends; |out| has room for them. */
static size_t put_bytes(char *out) {
  size_t at = (size_t)sprintf(out, "{\"<|startoftext|>\":0,\"<|endoftext|>\":1");
  unsigned next = 0x100;
  for (unsigned b = 0; b < 256; b++) {
    bool printable = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
    char text[5] = {0};
    text[rdna__put_utf8(printable ? b : next++, text)] = 0;
    const char *escape = b == '"' || b == '\\' ? "\\" : "";
    at += (size_t)sprintf(out + at, ",\"%s%s\":%u,\"%s%s</w>\":%u", escape, text, 2 + b, escape, text, 258 + b);
  }
  return at;
}

static rdna_text next_part(const uint8_t **data, size_t *size) {
  const uint8_t *end = *size ? memchr(*data, 0, *size) : NULL;
  size_t length = end ? (size_t)(end - *data) : *size;
  rdna_text part = {(const char *)*data, length};
  *data += length + (end != NULL);
  *size -= length + (end != NULL);
  return part;
}

static void read_text(const rdna__clip_tokenizer *t, rdna_text text) {
  rdna_tokens tokens = {0};
  size_t count = rdna_tokenizer_get_info(t->tokenizer)->token_count;
  if (rdna_tokenizer_encode(t->tokenizer, text.data, text.size, RDNA_ENCODE_PARSE_SPECIAL, &tokens) != RDNA_OK) abort();
  for (size_t i = 0; i < tokens.count; i++)
    if (tokens.ids[i] < 0 || (size_t)tokens.ids[i] >= count) abort();
  if ((size_t)t->begin >= count || (size_t)t->end >= count || (size_t)t->pad >= count) abort();
  rdna_tokens_deinit(&tokens);
}

static const char *const head =
    "{\"normalizer\":{\"normalizers\":[{\"type\":\"NFC\"},{\"type\":\"Replace\"},{\"type\":\"Lowercase\"}]},"
    "\"pre_tokenizer\":{\"pretokenizers\":[{\"pattern\":{\"Regex\":"
    "\"'s|'t|'re|'ve|'m|'ll|'d|[\\\\p{L}]+|[\\\\p{N}]|[^\\\\s\\\\p{L}\\\\p{N}]+\"}},{\"type\":\"ByteLevel\"}]},"
    "\"model\":{\"type\":\"BPE\",\"end_of_word_suffix\":\"</w>\",\"vocab\":";

/* |*out_size| characters of a tokenizer.json with that vocabulary and those merges; free() them. */
static char *put_whole(rdna_text vocab, rdna_text merges, size_t *out_size) {
  char *text = NULL;
  FILE *to = open_memstream(&text, out_size);
  if (!to) return NULL;
  fputs(head, to);
  fwrite(vocab.data, 1, vocab.size, to);
  fputs(",\"merges\":", to);
  fwrite(merges.data, 1, merges.size, to);
  fputs("}}", to);
  fclose(to);
  return text;
}

static rdna_status make_whole(rdna_text vocab, rdna_text merges, rdna_text settings, rdna_text added,
                              rdna__clip_tokenizer *out) {
  size_t size = 0;
  char *text = put_whole(vocab, merges, &size);
  rdna_status status = rdna__clip_tokenizer_make_whole((rdna_text){text, text ? size : 0}, settings, added, out);
  free(text);
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  rdna__clip_tokenizer tokenizer;
  if (size < 1) return 0;
  bool whole = data[0] & 1, one_file = data[0] & 2, adds = data[0] & 4;
  data++, size--;
  rdna_text vocab = next_part(&data, &size), merges = next_part(&data, &size), settings = next_part(&data, &size);
  rdna_text added = adds ? next_part(&data, &size) : (rdna_text){0};
  char *text = malloc(PREFIX_BYTES + vocab.size);
  if (!text) return 0;
  size_t prefix = whole ? 0 : put_bytes(text);
  if (vocab.size) memcpy(text + prefix, vocab.data, vocab.size);
  vocab = (rdna_text){text, prefix + vocab.size};
  rdna_status status = one_file ? make_whole(vocab, merges, settings, added, &tokenizer)
                                : rdna__clip_tokenizer_make(vocab, merges, settings, added, &tokenizer);
  free(text);
  if (status != RDNA_OK) {
    if (!*rdna_last_error()) abort();
    return 0;
  }
  read_text(&tokenizer, (rdna_text){(const char *)data, size});
  rdna__clip_tokenizer_close(&tokenizer);
  return 0;
}
