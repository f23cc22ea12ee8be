/* BERT's vocabularies (Devlin et al., 2018; Schuster and Nakajima, 2012): words are what stands between spaces, each
 * sign of punctuation and each Chinese character is one, and of a word the longest piece is taken that the vocabulary
 * has, again and again. Unless it has capitals, text loses them and its accents first.
 *
 *     "Élan vital!"  ->  elan | vital | !  ->  _elan  _vi tal  _!        _ is U+2581, where a word begins
 *
 * In Hugging Face's files it is the other pieces that have a mark, "##". */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/tokenizer/tokenizer.h"
#include "model/tokenizer/unicode_kinds.h"

enum { MOST_CHARACTERS = 100 /* of a word; a longer one is unknown */, MARK = 3 };

static const char mark[MARK] = "\xe2\x96\x81";

/* A text that grows. */
typedef struct buffer {
  char *data;
  size_t size, capacity;
} buffer;

static bool is_in(uint32_t code, const uint32_t *ranges, size_t count) {
  size_t low = 0, high = count / 2;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (code < ranges[2 * middle])
      high = middle;
    else if (code > ranges[2 * middle + 1])
      low = middle + 1;
    else
      return true;
  }
  return false;
}
#define IS_IN(code, table) is_in(code, table, sizeof(table) / sizeof *(table))

bool rdna__is_space(uint32_t code) {
  return code == ' ' || (code >= '\t' && code <= '\r') || code == 0x85 || code == 0xa0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f ||
         code == 0x3000;
}

/* Those that BERT's authors took for Chinese. */
static bool is_chinese(uint32_t code) {
  static const uint32_t ranges[] = {0x3400,  0x4dbf,  0x4e00,  0x9fff,  0xf900,  0xfaff,  0x20000, 0x2a6df,
                                    0x2a700, 0x2b73f, 0x2b740, 0x2b81f, 0x2b920, 0x2ceaf, 0x2f800, 0x2fa1f};
  return IS_IN(code, ranges);
}

uint32_t rdna__lower_case(uint32_t code) {
  size_t low = 0, high = sizeof unicode_lower_cases / (4 * sizeof(int32_t));
  while (low < high) {
    size_t middle = (low + high) / 2;
    const int32_t *row = unicode_lower_cases + 4 * middle;
    if ((int32_t)code < row[0])
      high = middle;
    else if ((int32_t)code > row[1])
      low = middle + 1;
    else
      return ((int32_t)code - row[0]) % row[2] ? code : (uint32_t)((int32_t)code + row[3]);
  }
  return code;
}

static rdna_status append(buffer *b, uint32_t code) {
  if (b->capacity - b->size < 4) {
    size_t capacity = b->capacity ? 2 * b->capacity : 256;
    char *grown = realloc(b->data, capacity);
    if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the words of a text");
    b->data = grown;
    b->capacity = capacity;
  }
  b->size += rdna__put_utf8(code, b->data + b->size);
  return RDNA_OK;
}

/* |text| with spaces for all white space and around Chinese characters, without what steers or is no character. */
static rdna_status clean(rdna_text text, buffer *out) {
  for (size_t i = 0, length; i < text.size; i += length) {
    uint32_t code = rdna__next_code(text.data + i, text.size - i, &length);
    if (code >= 0x110000 || IS_IN(code, unicode_dropped)) continue;
    bool chinese = is_chinese(code);
    if (chinese) RDNA_TRY(append(out, ' '));
    RDNA_TRY(append(out, rdna__is_space(code) ? ' ' : code));
    if (chinese) RDNA_TRY(append(out, ' '));
  }
  return RDNA_OK;
}

/* |text| in small letters without accents. */
static rdna_status fold(rdna_text text, buffer *out) {
  char *apart = NULL;
  size_t size = 0;
  RDNA_TRY(rdna__normal_form(text, false, &apart, &size));
  if (apart) text = (rdna_text){apart, size};
  rdna_status status = RDNA_OK;
  for (size_t i = 0, length; status == RDNA_OK && i < text.size; i += length) {
    uint32_t code = rdna__next_code(text.data + i, text.size - i, &length);
    if (!IS_IN(code, unicode_marks)) status = append(out, rdna__lower_case(code));
  }
  free(apart);
  return status;
}

/* The longest piece that |word| begins with, and its size; -1: there is none. */
static int32_t longest_piece(const rdna_tokenizer *t, rdna_text word, bool first, buffer *key, size_t *out_size) {
  size_t before = first ? MARK : 0, most = word.size < t->longest ? word.size : t->longest;
  uint32_t id;
  if (!first && word.size >= MARK && memcmp(word.data, mark, MARK) == 0) return -1; /* no piece has the mark itself */
  if (first) memcpy(key->data, mark, MARK);
  memcpy(key->data + before, word.data, most);
  for (; most > 0; most--) {
    if (most < word.size && (word.data[most] & 0xc0) == 0x80) continue; /* within a character */
    if (!rdna__strmap_find(&t->by_text, key->data, before + most, &id)) continue;
    *out_size = most;
    return (int32_t)id;
  }
  return -1;
}

/* The pieces of a word, or the token for what is unknown. */
static rdna_status encode_word(const rdna_tokenizer *t, rdna_text word, buffer *key, rdna_tokens *tokens) {
  size_t before = tokens->count, characters = 0, size = 0;
  for (size_t i = 0; i < word.size; i++) characters += (word.data[i] & 0xc0) != 0x80;
  for (size_t i = 0; i < word.size && characters <= MOST_CHARACTERS; i += size) {
    int32_t id = longest_piece(t, (rdna_text){word.data + i, word.size - i}, i == 0, key, &size);
    if (id < 0) {
      characters = MOST_CHARACTERS + 1;
      break;
    }
    RDNA_TRY(rdna_tokens_append(tokens, id));
  }
  if (characters <= MOST_CHARACTERS) return RDNA_OK;
  tokens->count = before;
  if (t->info.unknown >= 0) return rdna_tokens_append(tokens, t->info.unknown);
  return rdna__fail(RDNA_UNSUPPORTED, "the vocabulary has no pieces for '%.*s', and no token for what is unknown",
                    word.size > 64 ? 64 : (int)word.size, word.data);
}

static rdna_status encode_words(const rdna_tokenizer *t, rdna_text text, buffer *key, rdna_tokens *tokens) {
  size_t start = 0;
  for (size_t i = 0, length; i < text.size; i += length) {
    uint32_t code = rdna__next_code(text.data + i, text.size - i, &length);
    bool alone = IS_IN(code, unicode_punctuation);
    if (code != ' ' && !alone) continue;
    if (i > start) RDNA_TRY(encode_word(t, (rdna_text){text.data + start, i - start}, key, tokens));
    if (alone) RDNA_TRY(encode_word(t, (rdna_text){text.data + i, length}, key, tokens));
    start = i + length;
  }
  if (text.size == start) return RDNA_OK;
  return encode_word(t, (rdna_text){text.data + start, text.size - start}, key, tokens);
}

rdna_status rdna__wordpiece_encode(const rdna_tokenizer *t, rdna_text text, rdna_tokens *tokens) {
  buffer cleaned = {0}, folded = {0}, key = {.data = malloc(t->longest + MARK)};
  rdna_status status = key.data ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a piece of a word");
  if (status == RDNA_OK) status = clean(text, &cleaned);
  const buffer *words = t->cased ? &cleaned : &folded;
  if (status == RDNA_OK && !t->cased) status = fold((rdna_text){cleaned.data, cleaned.size}, &folded);
  if (status == RDNA_OK) status = encode_words(t, (rdna_text){words->data, words->size}, &key, tokens);
  free(cleaned.data);
  free(folded.data);
  free(key.data);
  return status;
}

/* A vocabulary with capitals is for texts that have them. */
rdna_status rdna__wordpiece_open(const rdna_gguf *file, rdna_tokenizer *t) {
  (void)file;
  t->add_space_prefix = true;
  for (size_t i = 0; i < t->info.token_count; i++) {
    rdna_text text = t->texts[i];
    if (text.size > t->longest) t->longest = text.size;
    if (t->types[i] != RDNA_TOKEN_TYPE_NORMAL || memchr(text.data, '[', text.size)) continue; /* [unused0] */
    for (size_t k = 0; k < text.size; k++) t->cased |= text.data[k] >= 'A' && text.data[k] <= 'Z';
  }
  return rdna__spm_make_pieces(t);
}
