#include "model/vision/prompt.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/status.h"
#include "model/vision/tower.h"

void rdna__shown_deinit(rdna__shown *s) {
  free(s->pixels);
  free(s->rows);
  *s = (rdna__shown){0};
}

int rdna__shown_tokens(const rdna__shown *s) { return s->picture.height * s->picture.width; }

rdna__shown *rdna__shown_at(rdna__shown *pictures, size_t count, size_t at) {
  for (size_t i = 0; i < count; i++)
    if (at >= pictures[i].at && at - pictures[i].at < (size_t)rdna__shown_tokens(&pictures[i])) return &pictures[i];
  return NULL;
}

size_t rdna__shown_until(const rdna__shown *pictures, size_t count, size_t at, size_t end) {
  for (size_t i = 0; i < count; i++) {
    size_t first = pictures[i].at, behind = first + (size_t)rdna__shown_tokens(&pictures[i]);
    if (first > at && first < end) end = first;
    if (behind > at && behind < end) end = behind;
  }
  return end;
}

rdna_status rdna__shown_see(rdna__shown *s, rdna_vision *vision) {
  if (s->rows) return RDNA_OK;
  const rdna_vision_info *info = rdna_vision_get_info(vision);
  size_t values = (size_t)rdna__shown_tokens(s) * (size_t)info->row * (1 + (size_t)info->deepstack);
  float *rows = malloc(values * sizeof *rows);
  if (!rows) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a picture's rows");
  rdna_status status = rdna__vision_run(vision, &s->picture, s->pixels, rows);
  if (status != RDNA_OK) {
    free(rows);
    return status;
  }
  s->picture.rows = s->rows = rows;
  return RDNA_OK;
}

const char *rdna__vision_mark(const rdna_vision *vision) { return vision->kind->mark; }

/* Token |i| of the picture, below 0. */
static int32_t token_of(const rdna__shown *s, int i) {
  return (int32_t)(XXH3_64bits_withSeed(s->sum, sizeof s->sum, (uint64_t)i) | UINT32_C(1) << 31);
}

static rdna_status add_picture(const rdna_vision *vision, rdna__shown *s, rdna_tokens *tokens) {
  RDNA_TRY(rdna_vision_measure(vision, s->height, s->width, &s->picture));
  s->at = tokens->count;
  for (int i = 0; i < rdna__shown_tokens(s); i++) RDNA_TRY(rdna_tokens_append(tokens, INT32_MIN));
  return RDNA_OK;
}

rdna_status rdna__shown_take(rdna__shown *s, const rdna_vision *vision, const uint8_t *pixels, int height, int width,
                             rdna_tokens *tokens) {
  uint8_t *fitting;
  int count = rdna__shown_tokens(s);
  if (height != s->height || width != s->width || s->pixels || s->at + (size_t)count > tokens->count)
    return rdna__fail(RDNA_INTERNAL, "a picture of %d x %d pixels for one of %d x %d", width, height, s->width,
                      s->height);
  RDNA_TRY(rdna__vision_fit(vision, &s->picture, pixels, height, width, &fitting, &s->height, &s->width));
  s->pixels = fitting;
  uint64_t sides = (uint64_t)s->height << 32 | (uint64_t)s->width;
  XXH128_hash_t sum = XXH3_128bits_withSeed(s->pixels, (size_t)s->height * (size_t)s->width * 3, sides);
  s->sum[0] = sum.low64, s->sum[1] = sum.high64;
  for (int i = 0; i < count; i++) tokens->ids[s->at + (size_t)i] = token_of(s, i);
  return RDNA_OK;
}

/* Adds the tokens of the three texts, which are one. */
static rdna_status add_text(const rdna_tokenizer *tokenizer, const char *before, const char *text, size_t size,
                            const char *after, unsigned flags, rdna_tokens *tokens) {
  size_t first = strlen(before), last = strlen(after);
  rdna_tokens some = {0};
  char *whole = malloc(first + size + last + 1);
  if (!whole) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a prompt");
  memcpy(whole, before, first);
  if (size) memcpy(whole + first, text, size);
  memcpy(whole + first + size, after, last);
  rdna_status status = rdna_tokenizer_encode(tokenizer, whole, first + size + last, flags, &some);
  free(whole);
  for (size_t i = 0; status == RDNA_OK && i < some.count; i++) status = rdna_tokens_append(tokens, some.ids[i]);
  rdna_tokens_deinit(&some);
  return status;
}

static size_t count_marks(const char *text, size_t size, const char *mark) {
  size_t count = 0, length = strlen(mark);
  for (const char *end = text + size; size >= length && (text = memmem(text, (size_t)(end - text), mark, length));
       text += length)
    count++;
  return count;
}

rdna_status rdna__vision_encode(const rdna_vision *v, const rdna_tokenizer *tokenizer, const char *text, size_t size,
                                unsigned flags, rdna__shown *pictures, size_t count, rdna_tokens *tokens) {
  const char *mark = v->kind->mark, *end = text + size, *before = "";
  size_t places = count_marks(text, size, mark);
  if (places != count)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "there are %zu pictures, and the text has %zu places for one (%s), of which the model's chat "
                      "template makes one for each, and nobody else may write one",
                      count, places, mark);
  const rdna_tokenizer_info *info = rdna_tokenizer_get_info(tokenizer);
  bool special = (flags & RDNA_ENCODE_ADD_SPECIAL) != 0; /* around the whole, not around each piece */
  flags &= ~(unsigned)RDNA_ENCODE_ADD_SPECIAL;
  if (special && info->add_bos) RDNA_TRY(rdna_tokens_append(tokens, info->bos));
  for (size_t i = 0; i < count; i++) {
    const char *at = memmem(text, (size_t)(end - text), mark, strlen(mark));
    RDNA_TRY(add_text(tokenizer, before, text, (size_t)(at - text), v->kind->before, flags, tokens));
    RDNA_TRY(add_picture(v, &pictures[i], tokens));
    before = v->kind->after;
    text = at + strlen(mark);
  }
  RDNA_TRY(add_text(tokenizer, before, text, (size_t)(end - text), "", flags, tokens));
  return special && info->add_eos ? rdna_tokens_append(tokens, info->eos) : RDNA_OK;
}
