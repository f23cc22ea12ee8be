/* What tokenizer.json does to a text before its Unigram model cuts it, as SentencePiece's settings. */
#include <stdlib.h>
#include <string.h>

#include "model/weights/hf.h"

typedef struct reading {
  rdna__hf_spm *out;
  char *charsmap;
  bool splits; /* at white space of any kind, which is dropped */
} reading;

static bool is_text(const json_t *value, const char *text) {
  const char *found = json_string_value(value);
  return found && strcmp(found, text) == 0;
}

static int digit_of(char c) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const char *at = c ? strchr(digits, c) : NULL;
  return at ? (int)(at - digits) : -1;
}

/* Base64, whose padding may be missing. */
static rdna_status decode(reading *r, const char *text, size_t size) {
  size_t count = 0;
  uint32_t bits = 0;
  free(r->charsmap);
  r->charsmap = malloc(size + 1);
  if (!r->charsmap) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a map of characters");
  while (size > 0 && text[size - 1] == '=') size--;
  for (size_t i = 0; i < size; i++) {
    int digit = digit_of(text[i]);
    if (digit < 0) return rdna__fail(RDNA_BAD_DATA, "its precompiled_charsmap is no base64");
    bits = bits << 6 | (uint32_t)digit;
    if (i % 4) r->charsmap[count++] = (char)(bits >> (6 - 2 * (i % 4)));
  }
  r->out->charsmap = (rdna_text){r->charsmap, count};
  return RDNA_OK;
}

static rdna_status strange(const json_t *step, const char *kind) {
  const char *type = json_string_value(json_object_get(step, "type"));
  return rdna__fail(RDNA_UNSUPPORTED, "its %s has a step '%.40s', which GGUF's tokenizer t5 has no key for", kind,
                    type ? type : "");
}

/* What becomes of spaces in a row: " {2,}" to one, by either mark. */
static bool is_trim(const json_t *step) {
  const json_t *pattern = json_object_get(step, "pattern");
  const char *to = json_string_value(json_object_get(step, "content"));
  return is_text(json_object_get(pattern, "Regex"), " {2,}") && to &&
         (strcmp(to, " ") == 0 || strcmp(to, "\xe2\x96\x81") == 0);
}

static rdna_status read_normalizer(reading *r, const json_t *step) {
  const json_t *type = json_object_get(step, "type");
  if (!step || json_is_null(step)) return RDNA_OK;
  if (is_text(type, "Sequence")) {
    const json_t *list = json_object_get(step, "normalizers");
    for (size_t i = 0; i < json_array_size(list); i++) RDNA_TRY(read_normalizer(r, json_array_get(list, i)));
    return RDNA_OK;
  }
  if (is_text(type, "Strip")) return RDNA_OK; /* the same as trimming does, where that follows */
  if (is_text(type, "Precompiled")) {
    const json_t *map = json_object_get(step, "precompiled_charsmap");
    if (json_is_string(map)) return decode(r, json_string_value(map), json_string_length(map));
    return json_is_null(map) ? RDNA_OK : rdna__fail(RDNA_BAD_DATA, "its precompiled_charsmap is no text");
  }
  if (!is_text(type, "Replace") || !is_trim(step)) return strange(step, "normalizer");
  r->out->trims = true;
  return RDNA_OK;
}

static rdna_status read_pre_tokenizer(reading *r, const json_t *step) {
  const json_t *type = json_object_get(step, "type"), *scheme = json_object_get(step, "prepend_scheme");
  if (!step || json_is_null(step)) return RDNA_OK;
  if (is_text(type, "Sequence")) {
    const json_t *list = json_object_get(step, "pretokenizers");
    for (size_t i = 0; i < json_array_size(list); i++) RDNA_TRY(read_pre_tokenizer(r, json_array_get(list, i)));
    return RDNA_OK;
  }
  if (is_text(type, "WhitespaceSplit")) {
    r->splits = r->out->trims = true;
    return RDNA_OK;
  }
  if (!is_text(type, "Metaspace") || !is_text(json_object_get(step, "replacement"), "\xe2\x96\x81"))
    return strange(step, "pre-tokenizer");
  r->out->space_prefix = scheme ? !is_text(scheme, "never") : !json_is_false(json_object_get(step, "add_prefix_space"));
  return RDNA_OK;
}

rdna_status rdna__hf_unigram_steps(const json_t *tokenizer, rdna__hf_spm *out, char **out_charsmap) {
  reading r = {.out = out};
  *out = (rdna__hf_spm){.unigram = true};
  rdna_status status = read_normalizer(&r, json_object_get(tokenizer, "normalizer"));
  if (status == RDNA_OK) status = read_pre_tokenizer(&r, json_object_get(tokenizer, "pre_tokenizer"));
  if (status == RDNA_OK && r.splits && !r.charsmap) /* which has made all kinds one */
    status = rdna__fail(RDNA_UNSUPPORTED, "its pre-tokenizer drops white space of all kinds, and GGUF's spaces alone");
  *out_charsmap = r.charsmap;
  return status;
}
