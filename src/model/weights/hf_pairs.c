/* vocab.json and merges.txt, the form that vocabularies of byte-level BPE had before tokenizer.json, as tokenizer.json
 * would have it. It does not say how a text is cut, so that only those tokenizers are read whose name tells. */
#include <stdlib.h>
#include <string.h>

#include "model/weights/hf.h"

/* Qwen 2's: transformers' Qwen2Tokenizer, after the normal form C. */
static const char qwen2_words[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"
    "\\s+(?!\\S)|\\s+";

/* A line "left right" each, the first perhaps a comment with a version. NULL: no memory, or bytes that are no UTF-8. */
static json_t *merges_of(rdna_text text) {
  json_t *list = json_array();
  for (size_t at = 0, line = 0; at < text.size; line++) {
    const char *begin = text.data + at, *end = memchr(begin, '\n', text.size - at);
    size_t size = end ? (size_t)(end - begin) : text.size - at;
    at += size + 1;
    if (size && begin[size - 1] == '\r') size--;
    if (size == 0 || (line == 0 && size >= 9 && memcmp(begin, "#version:", 9) == 0)) continue;
    if (json_array_append_new(list, json_stringn(begin, size)) != 0) {
      json_decref(list);
      return NULL;
    }
  }
  return list;
}

/* tokenizer_config.json's {"151643": {"content": …}, …} as tokenizer.json's list with "id". */
static json_t *added_of(json_t *decoder) {
  json_t *list = json_array(), *entry;
  const char *number;
  json_object_foreach(decoder, number, entry) {
    char *end;
    json_int_t id = strtoll(number, &end, 10);
    json_t *copy = json_copy(entry);
    if (!json_is_object(copy) || *end || end == number || json_object_set_new(copy, "id", json_integer(id)) != 0 ||
        json_array_append_new(list, copy) != 0) {
      json_decref(list);
      return NULL;
    }
  }
  return list;
}

rdna_status rdna__hf_pairs_read(const json_t *vocab, rdna_text merges, const json_t *config, json_t **out_tokenizer) {
  const char *name = json_string_value(json_object_get(config, "tokenizer_class"));
  json_t *decoder = json_object_get(config, "added_tokens_decoder");
  if (!name || (strcmp(name, "Qwen2Tokenizer") != 0 && strcmp(name, "Qwen2TokenizerFast") != 0))
    return rdna__fail(
        RDNA_UNSUPPORTED,
        "a vocabulary of vocab.json and merges.txt is read of tokenizers called Qwen2Tokenizer, not '%.60s'; "
        "transformers' AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER) writes tokenizer.json",
        name ? name : "");
  json_t *pairs = merges_of(merges), *added = added_of(decoder);
  if (!pairs || !added) {
    json_decref(pairs);
    json_decref(added);
    return rdna__fail(RDNA_BAD_DATA, "%s",
                      pairs ? "added_tokens_decoder is not tokens by number" : "merges.txt is not UTF-8");
  }
  bool space = json_is_true(json_object_get(config, "add_prefix_space"));
  *out_tokenizer = json_pack(
      "{s:o, s:{s:s}, s:{s:s, s:[{s:s, s:{s:s}, s:s, s:b}, {s:s, s:b, s:b}]}, s:{s:s, s:O, s:o}}", "added_tokens",
      added, "normalizer", "type", "NFC", "pre_tokenizer", "type", "Sequence", "pretokenizers", "type", "Split",
      "pattern", "Regex", qwen2_words, "behavior", "Isolated", "invert", false, "type", "ByteLevel", "add_prefix_space",
      space, "use_regex", false, "model", "type", "BPE", "vocab", vocab, "merges", pairs);
  return *out_tokenizer ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a tokenizer");
}
