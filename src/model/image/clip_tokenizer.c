/* vocab.json is an object of tokens and their ids, merges.txt a line for each merge behind one of its version. Instead
 * of both there may be tokenizer.json, which has them in its "model", and says besides how a text is cut. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "model/gguf/gguf.h"
#include "model/image/clip.h"

#define BEGIN "<|startoftext|>"
#define END "<|endoftext|>"

enum { PATH_BYTES = 4096 };

/* |flags| as jansson has them. */
static rdna_status load(rdna_text text, const char *name, size_t flags, json_t **out) {
  json_error_t error;
  json_t *json = json_loadb(text.size ? text.data : "", text.size, JSON_REJECT_DUPLICATES | flags, &error);
  if (json_is_object(json)) {
    *out = json;
    return RDNA_OK;
  }
  rdna_status status =
      rdna__fail(RDNA_BAD_DATA, "%s is no JSON object: %s", name, json ? "it holds another value" : error.text);
  json_decref(json);
  return status;
}

static rdna_status find(const json_t *vocab, const char *token, int32_t *out) {
  const json_t *id = json_object_get(vocab, token);
  if (!id) return rdna__fail(RDNA_BAD_DATA, "the vocabulary has no token '%.80s'", token);
  *out = (int32_t)json_integer_value(id);
  return RDNA_OK;
}

/* (count) by id. */
static rdna_status order(json_t *vocab, rdna_text *tokens) {
  const char *token;
  json_t *id;
  size_t size, count = json_object_size(vocab);
  json_object_keylen_foreach(vocab, token, size, id) {
    json_int_t i = json_is_integer(id) ? json_integer_value(id) : -1;
    if (i < 0 || (uint64_t)i >= count || tokens[i].data)
      return rdna__fail(RDNA_BAD_DATA, "the id of token '%.80s' of the vocabulary is none from 0 to %zu of its own",
                        token, count - 1);
    tokens[i] = (rdna_text){token, size};
  }
  return RDNA_OK;
}

static rdna_status put_tokens(rdna_gguf_writer *writer, json_t *vocab, const rdna__clip_tokenizer *ids) {
  size_t count = json_object_size(vocab);
  rdna_text *tokens = calloc(count, sizeof *tokens);
  int32_t *types = malloc(count * sizeof *types);
  rdna_status status = tokens && types ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a vocabulary");
  if (status == RDNA_OK) status = order(vocab, tokens);
  if (status == RDNA_OK) {
    for (size_t i = 0; i < count; i++) types[i] = RDNA_TOKEN_TYPE_NORMAL;
    types[ids->begin] = types[ids->end] = types[ids->pad] = RDNA_TOKEN_TYPE_CONTROL;
    status = rdna_gguf_writer_put_array(writer, "tokenizer.ggml.tokens", RDNA_GGUF_TYPE_TEXT, tokens, count);
  }
  if (status == RDNA_OK)
    status = rdna_gguf_writer_put_array(writer, "tokenizer.ggml.token_type", RDNA_GGUF_TYPE_I32, types, count);
  free(tokens);
  free(types);
  return status;
}

static rdna_status put_merges(rdna_gguf_writer *writer, rdna_text text) {
  static const char version[] = "#version";
  size_t lines = 1, count = 0;
  for (size_t i = 0; i < text.size; i++) lines += text.data[i] == '\n';
  rdna_text *merges = malloc(lines * sizeof *merges);
  if (!merges) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for merges");
  for (size_t i = 0, size; i < text.size; i += size + 1) {
    const char *end = memchr(text.data + i, '\n', text.size - i);
    size = end ? (size_t)(end - text.data) - i : text.size - i;
    bool told = size >= sizeof version - 1 && memcmp(text.data + i, version, sizeof version - 1) == 0;
    if (size > 0 && !told) merges[count++] = (rdna_text){text.data + i, size};
  }
  rdna_status status = rdna_gguf_writer_put_array(writer, "tokenizer.ggml.merges", RDNA_GGUF_TYPE_TEXT, merges, count);
  free(merges);
  return status;
}

/* Text of a token in settings: a string, or an object that has it. */
static const char *token_of(const json_t *settings, const char *name, const char *initial) {
  const json_t *value = json_object_get(settings, name);
  const char *text = json_string_value(json_is_object(value) ? json_object_get(value, "content") : value);
  return text ? text : initial;
}

static rdna_status find_ends(const json_t *vocab, const json_t *settings, rdna__clip_tokenizer *out) {
  static const char *const fixed[][2] = {{"bos_token", BEGIN}, {"eos_token", END}, {"unk_token", END}};
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
    const char *text = token_of(settings, fixed[i][0], fixed[i][1]);
    if (strcmp(text, fixed[i][1]) != 0)
      return rdna__fail(RDNA_UNSUPPORTED, "tokenizer_config.json has '%.80s' as %s; only CLIP's %s is known", text,
                        fixed[i][0], fixed[i][1]);
  }
  RDNA_TRY(find(vocab, BEGIN, &out->begin));
  RDNA_TRY(find(vocab, END, &out->end));
  return find(vocab, token_of(settings, "pad_token", END), &out->pad);
}

/* ---- tokens that were added ---- */

/* As those of textual inversion are, which a vocabulary does not have; |text| may be NULL. */
static rdna_status check_known(const json_t *vocab, const char *file, const char *text, const json_t *id) {
  const json_t *known = text ? json_object_get(vocab, text) : NULL;
  if (known && json_is_integer(known) && json_is_number(id) &&
      (double)json_integer_value(known) == json_number_value(id))
    return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "%s adds the token '%.80s'; none but those of the vocabulary are known", file,
                    text ? text : "");
}

/* |settings|, of tokenizer_config.json, lists them by their ids, and |added_text|, of added_tokens.json, by their
 * texts; each may be missing. */
static rdna_status check_listed(const json_t *vocab, json_t *settings, rdna_text added_text) {
  const char *key;
  json_t *value, *added = NULL;
  rdna_status status = RDNA_OK;
  json_object_foreach(json_object_get(settings, "added_tokens_decoder"), key, value) {
    char *end;
    json_t *id = json_integer(strtoll(key, &end, 10));
    status = check_known(vocab, "tokenizer_config.json", json_string_value(json_object_get(value, "content")),
                         *key && !*end ? id : NULL);
    json_decref(id);
    if (status != RDNA_OK) return status;
  }
  if (added_text.size) RDNA_TRY(load(added_text, "added_tokens.json", 0, &added));
  json_object_foreach(added, key, value) {
    status = check_known(vocab, "added_tokens.json", key, value);
    if (status != RDNA_OK) break;
  }
  json_decref(added);
  return status;
}

static void release_writer(void *writer) { rdna_gguf_writer_release(writer); }

static rdna_status write(json_t *vocab, rdna_text merges, rdna__clip_tokenizer *t) {
  const rdna_text model = {"clip", 4};
  rdna_gguf_writer *writer = NULL;
  rdna_status status = rdna_gguf_writer_create(&writer);
  if (status == RDNA_OK) status = rdna_gguf_writer_put(writer, "tokenizer.ggml.model", RDNA_GGUF_TYPE_TEXT, &model);
  if (status == RDNA_OK) status = put_tokens(writer, vocab, t);
  if (status == RDNA_OK) status = put_merges(writer, merges);
  if (status == RDNA_OK) status = rdna__gguf_open_writer(writer, release_writer, writer, &t->file);
  if (status != RDNA_OK) rdna_gguf_writer_release(writer);
  return status;
}

/* Ids are used as indices from here on. */
static rdna_status check_ids(const json_t *vocab, const rdna__clip_tokenizer *t) {
  int64_t count = (int64_t)json_object_size(vocab);
  const int32_t ids[] = {t->begin, t->end, t->pad};
  for (int i = 0; i < 3; i++)
    if (ids[i] < 0 || ids[i] >= count)
      return rdna__fail(RDNA_BAD_DATA, "the vocabulary gives a token that texts are ended with id %d of %lld",
                        (int)ids[i], (long long)count);
  return RDNA_OK;
}

/* ---- tokenizer.json ---- */

/* The end of the pattern that CLIP's words are found by; before it may stand the tokens of a text's ends. */
static const char *const words = "'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+";

static bool is_text(const json_t *object, const char *name, const char *text) {
  const char *found = json_string_value(json_object_get(object, name));
  return found && strcmp(found, text) == 0;
}

/* Text is normalized and cut as CLIP has it. */
static rdna_status check_steps(const json_t *whole) {
  static const char *const steps[] = {"NFC", "Replace", "Lowercase"};
  const json_t *normalizers = json_object_get(json_object_get(whole, "normalizer"), "normalizers");
  const json_t *cutters = json_object_get(json_object_get(whole, "pre_tokenizer"), "pretokenizers");
  const json_t *cutter = json_array_get(cutters, 0);
  const char *pattern = json_string_value(json_object_get(json_object_get(cutter, "pattern"), "Regex"));
  size_t size = pattern ? strlen(pattern) : 0;
  bool same = json_array_size(normalizers) == 3 && json_array_size(cutters) == 2 && size >= strlen(words) &&
              strcmp(pattern + size - strlen(words), words) == 0 &&
              is_text(json_array_get(cutters, 1), "type", "ByteLevel");
  for (size_t i = 0; i < 3; i++) same = same && is_text(json_array_get(normalizers, i), "type", steps[i]);
  return same ? RDNA_OK : rdna__fail(RDNA_UNSUPPORTED, "tokenizer.json changes or cuts text in another way than CLIP");
}

static rdna_status check_added(const json_t *whole, const json_t *vocab) {
  size_t i;
  json_t *added;
  json_array_foreach(json_object_get(whole, "added_tokens"), i, added) RDNA_TRY(check_known(
      vocab, "tokenizer.json", json_string_value(json_object_get(added, "content")), json_object_get(added, "id")));
  return RDNA_OK;
}

/* |merges|, a list of "a b" or ["a", "b"], as merges.txt has them. */
static rdna_status write_merges(const json_t *merges, char **out, size_t *out_size) {
  FILE *to = open_memstream(out, out_size);
  if (!to) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for merges");
  size_t i;
  json_t *merge;
  bool right = json_is_array(merges);
  json_array_foreach(merges, i, merge) {
    const char *both = json_string_value(merge), *a = json_string_value(json_array_get(merge, 0));
    const char *b = json_string_value(json_array_get(merge, 1));
    if (both)
      fprintf(to, "%s\n", both);
    else if (a && b)
      fprintf(to, "%s %s\n", a, b);
    else
      right = false;
  }
  if (fclose(to) != 0) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for merges");
  return right ? RDNA_OK : rdna__fail(RDNA_BAD_DATA, "the merges of tokenizer.json are no list of pairs");
}

/* What the model in |whole| says, which lives no longer than that; free |*out_merges|. */
static rdna_status take_apart(const json_t *whole, json_t **out_vocab, char **out_merges, size_t *out_size) {
  const json_t *model = json_object_get(whole, "model"), *prefix = json_object_get(model, "continuing_subword_prefix");
  json_t *vocab = json_object_get(model, "vocab");
  bool known = is_text(model, "type", "BPE") && is_text(model, "end_of_word_suffix", "</w>") &&
               (!prefix || json_is_null(prefix) || is_text(model, "continuing_subword_prefix", ""));
  if (!known) return rdna__fail(RDNA_UNSUPPORTED, "the model of tokenizer.json is not CLIP's");
  if (!json_is_object(vocab)) return rdna__fail(RDNA_BAD_DATA, "the vocabulary of tokenizer.json is no JSON object");
  RDNA_TRY(check_steps(whole));
  RDNA_TRY(check_added(whole, vocab));
  *out_vocab = vocab;
  return write_merges(json_object_get(model, "merges"), out_merges, out_size);
}

/* ---- all of it ---- */

static rdna_status make(json_t *vocab, rdna_text merges, rdna_text settings_text, rdna_text added,
                        rdna__clip_tokenizer *out) {
  json_t *settings = NULL;
  rdna_status status = RDNA_OK;
  if (settings_text.size) /* whose model_max_length may be 1e30, in digits */
    status = load(settings_text, "tokenizer_config.json", JSON_DECODE_INT_AS_REAL, &settings);
  if (status == RDNA_OK) status = check_listed(vocab, settings, added);
  if (status == RDNA_OK) status = find_ends(vocab, settings, out);
  if (status == RDNA_OK) status = check_ids(vocab, out);
  if (status == RDNA_OK) status = write(vocab, merges, out);
  if (status == RDNA_OK) status = rdna_tokenizer_open(out->file, &out->tokenizer);
  json_decref(settings);
  if (status != RDNA_OK) rdna__clip_tokenizer_close(out);
  return status;
}

rdna_status rdna__clip_tokenizer_make_whole(rdna_text text, rdna_text settings, rdna_text added,
                                            rdna__clip_tokenizer *out) {
  json_t *whole = NULL, *vocab = NULL;
  char *merges = NULL;
  size_t size = 0;
  *out = (rdna__clip_tokenizer){0};
  rdna_status status = load(text, "tokenizer.json", 0, &whole);
  if (status == RDNA_OK) status = take_apart(whole, &vocab, &merges, &size);
  if (status == RDNA_OK) status = make(vocab, (rdna_text){merges, size}, settings, added, out);
  free(merges);
  json_decref(whole);
  return status;
}

rdna_status rdna__clip_tokenizer_make(rdna_text vocab_text, rdna_text merges, rdna_text settings, rdna_text added,
                                      rdna__clip_tokenizer *out) {
  json_t *vocab = NULL;
  *out = (rdna__clip_tokenizer){0};
  rdna_status status = load(vocab_text, "vocab.json", 0, &vocab);
  if (status == RDNA_OK) status = make(vocab, merges, settings, added, out);
  json_decref(vocab);
  return status;
}

static rdna_status map(const char *folder, const char *name, bool needed, rdna__file *out) {
  char path[PATH_BYTES];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of %s is too long", name);
  rdna_status status = rdna__file_map(path, out);
  if (status == RDNA_NOT_FOUND && !needed) return RDNA_OK;
  return rdna__annotate(status, "%s", path);
}

static rdna_text text_of(const rdna__file *file) { return (rdna_text){(const char *)file->data, file->size}; }

/* |files|: tokenizer_config.json, and vocab.json and merges.txt, or tokenizer.json where the first is missing, and
 * added_tokens.json. */
static rdna_status open_files(const char *folder, rdna__file files[4], rdna__clip_tokenizer *out) {
  bool whole = false;
  RDNA_TRY(map(folder, "tokenizer_config.json", false, &files[0]));
  rdna_status status = map(folder, "vocab.json", true, &files[1]);
  if (status == RDNA_NOT_FOUND) {
    RDNA_TRY(map(folder, "tokenizer.json", false, &files[2]));
    whole = files[2].data != NULL;
    status = whole ? RDNA_OK : map(folder, "vocab.json", true, &files[1]); /* for its sentence */
  }
  if (status == RDNA_OK && !whole) status = map(folder, "merges.txt", true, &files[2]);
  if (status == RDNA_OK) status = map(folder, "added_tokens.json", false, &files[3]);
  if (status != RDNA_OK) return status;
  rdna_text last = text_of(&files[2]), settings = text_of(&files[0]), added = text_of(&files[3]);
  return rdna__annotate(whole ? rdna__clip_tokenizer_make_whole(last, settings, added, out)
                              : rdna__clip_tokenizer_make(text_of(&files[1]), last, settings, added, out),
                        "%s", folder);
}

rdna_status rdna__clip_tokenizer_open(const char *folder, rdna__clip_tokenizer *out) {
  rdna__file files[4] = {{0}};
  *out = (rdna__clip_tokenizer){0};
  rdna_status status = open_files(folder, files, out);
  for (int i = 0; i < 4; i++) rdna__file_unmap(&files[i]);
  return status;
}

void rdna__clip_tokenizer_close(rdna__clip_tokenizer *t) {
  rdna_tokenizer_close(t->tokenizer);
  rdna_gguf_close(t->file);
  *t = (rdna__clip_tokenizer){0};
}
