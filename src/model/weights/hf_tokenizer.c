/* tokenizer.json (github.com/huggingface/tokenizers) and what lies beside it as GGUF's keys tokenizer.*. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/tokenizer/tokenizer.h"
#include "model/weights/hf.h"

enum { MAX_PATTERNS = 8 };

static const char space_mark[] = "\xe2\x96\x81"; /* U+2581, SentencePiece's space */

typedef struct making {
  const rdna__hf_tokenizer *from;
  rdna_gguf_writer *writer;
  rdna__hf_vocabulary vocabulary;
  char *pads;   /* the texts of tokens that nobody gave */
  char *joined; /* texts of merges that are given in two parts, and of tokens that are rewritten */
  size_t joined_size, joined_room;
  char *words; /* the texts of WordPiece's tokens */
  bool spm, unigram, space_prefix;
  char *charsmap; /* what the keys borrow of tokenizer.json's */
} making;

static rdna_text text_of(const json_t *value) {
  return (rdna_text){json_string_value(value), value ? json_string_length(value) : 0};
}

static bool is_text(const json_t *value, const char *text) {
  const char *found = json_string_value(value);
  return found && strcmp(found, text) == 0;
}

static const json_t *type_of(const json_t *object) { return json_object_get(object, "type"); }

/* ---- keys ---- */

static rdna_status put_text(rdna_gguf_writer *writer, const char *name, rdna_text text) {
  return rdna_gguf_writer_put(writer, name, RDNA_GGUF_TYPE_TEXT, &text);
}

static rdna_status put_string(rdna_gguf_writer *writer, const char *name, const char *text) {
  return put_text(writer, name, (rdna_text){text, strlen(text)});
}

static rdna_status put_id(rdna_gguf_writer *writer, const char *name, int64_t id) {
  return rdna_gguf_writer_put(writer, name, RDNA_GGUF_TYPE_U32, &(uint32_t){(uint32_t)id});
}

static rdna_status put_flag(rdna_gguf_writer *writer, const char *name, bool flag) {
  return rdna_gguf_writer_put(writer, name, RDNA_GGUF_TYPE_BOOL, &flag);
}

/* ---- the vocabulary ---- */

static rdna_status alloc_vocabulary(making *m) {
  rdna__hf_vocabulary *v = &m->vocabulary;
  v->count = m->from->vocabulary;
  v->tokens = calloc((size_t)v->count + 1, sizeof *v->tokens);
  v->scores = calloc((size_t)v->count + 1, sizeof *v->scores);
  v->types = calloc((size_t)v->count + 1, sizeof *v->types);
  if (v->tokens && v->scores && v->types) return RDNA_OK;
  return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %lld tokens", (long long)v->count);
}

static rdna_status set_token(rdna__hf_vocabulary *v, int64_t id, rdna_text text, int32_t type) {
  if (id < 0 || id >= v->count)
    return rdna__fail(RDNA_BAD_DATA, "token '%.40s' has id %lld, but the model has %lld tokens", text.data,
                      (long long)id, (long long)v->count);
  if (v->tokens[id].data)
    return rdna__fail(RDNA_BAD_DATA, "tokens '%.40s' and '%.40s' both have id %lld", v->tokens[id].data, text.data,
                      (long long)id);
  v->tokens[id] = text;
  v->types[id] = type;
  return RDNA_OK;
}

static bool is_byte_token(const char *text) {
  unsigned byte;
  int end = 0;
  return strlen(text) == 6 && sscanf(text, "<0x%2X>%n", &byte, &end) == 1 && end == 6;
}

static rdna_status read_vocab(making *m, const json_t *model) {
  json_t *vocab = json_object_get(model, "vocab");
  if (!json_is_object(vocab)) return rdna__fail(RDNA_BAD_DATA, "its model has no object 'vocab'");
  const json_t *unknown = json_object_get(model, "unk_token");
  const char *text;
  json_t *id;
  json_object_foreach(vocab, text, id) {
    int32_t type = RDNA_TOKEN_TYPE_NORMAL;
    if (m->spm && is_byte_token(text)) type = RDNA_TOKEN_TYPE_BYTE;
    if (m->spm && is_text(unknown, text)) type = RDNA_TOKEN_TYPE_UNKNOWN;
    if (!json_is_integer(id)) return rdna__fail(RDNA_BAD_DATA, "the id of token '%.40s' is no whole number", text);
    RDNA_TRY(set_token(&m->vocabulary, json_integer_value(id), (rdna_text){text, strlen(text)}, type));
  }
  return RDNA_OK;
}

/* |size| bytes that live as long as |m|. */
static char *keep_bytes(making *m, size_t size) {
  if (size > m->joined_room - m->joined_size) return NULL;
  m->joined_size += size;
  return m->joined + m->joined_size - size;
}

/* SentencePiece's texts have marks for spaces, those of its tokens that are found whole have not. */
static rdna_status unmark(making *m, rdna_text *text) {
  char *out = keep_bytes(m, text->size + 1);
  if (!out) return rdna__fail(RDNA_INTERNAL, "too little memory was kept for tokens");
  size_t size = 0;
  for (size_t i = 0; i < text->size;) {
    bool mark = text->size - i >= 3 && memcmp(text->data + i, space_mark, 3) == 0;
    out[size++] = mark ? ' ' : text->data[i];
    i += mark ? 3 : 1;
  }
  out[size] = 0;
  *text = (rdna_text){out, size};
  return RDNA_OK;
}

static rdna_status add_token(making *m, int64_t id, const json_t *entry) {
  rdna__hf_vocabulary *v = &m->vocabulary;
  rdna_text text = text_of(json_object_get(entry, "content"));
  bool special = json_is_true(json_object_get(entry, "special"));
  if (json_is_true(json_object_get(entry, "single_word")))
    return rdna__fail(RDNA_UNSUPPORTED, "added token '%.40s' is found as a whole word alone, which GGUF cannot say",
                      text.data ? text.data : "");
  if (!text.data) return rdna__fail(RDNA_BAD_DATA, "an added token has no 'content'");
  if (id >= v->count) return RDNA_OK; /* some tokenizers know tokens that the model has no row for */
  if (id < 0) return rdna__fail(RDNA_BAD_DATA, "added token '%.40s' has no id", text.data);
  if (v->types[id] == RDNA_TOKEN_TYPE_BYTE || v->types[id] == RDNA_TOKEN_TYPE_UNKNOWN) return RDNA_OK;
  if (m->spm && !special) RDNA_TRY(unmark(m, &text));
  v->tokens[id] = text;
  v->types[id] = special ? RDNA_TOKEN_TYPE_CONTROL : RDNA_TOKEN_TYPE_USER_DEFINED;
  return RDNA_OK;
}

static size_t content_bytes(const json_t *entry) { return text_of(json_object_get(entry, "content")).size + 1; }

static rdna_status add_tokens(making *m) {
  json_t *list = json_object_get(m->from->tokenizer, "added_tokens");
  json_t *decoder = json_object_get(m->from->tokenizer_config, "added_tokens_decoder"), *entry;
  size_t index, room = 0;
  const char *number;
  json_array_foreach(list, index, entry) room += content_bytes(entry);
  json_object_foreach(decoder, number, entry) room += content_bytes(entry);
  free(m->joined);
  m->joined = malloc(room + 1);
  if (!m->joined) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for added tokens");
  m->joined_room = room;
  m->joined_size = 0;
  json_array_foreach(list, index, entry) {
    const json_t *id = json_object_get(entry, "id");
    RDNA_TRY(add_token(m, json_is_integer(id) ? json_integer_value(id) : -1, entry));
  }
  if (m->from->tokenizer) return RDNA_OK; /* which has them all */
  json_object_foreach(decoder, number, entry) {
    char *end;
    long id = strtol(number, &end, 10);
    RDNA_TRY(add_token(m, *number && *end == 0 ? id : -1, entry));
  }
  return RDNA_OK;
}

/* The model may have rows for tokens that there are not, so that its sizes are round. */
static rdna_status pad(making *m) {
  enum { PAD_BYTES = 24 };
  rdna__hf_vocabulary *v = &m->vocabulary;
  m->pads = malloc((size_t)v->count * PAD_BYTES + 1);
  if (!m->pads) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %lld tokens", (long long)v->count);
  for (int64_t i = 0; i < v->count; i++) {
    if (v->tokens[i].data) continue;
    char *text = m->pads + i * PAD_BYTES;
    int size = snprintf(text, PAD_BYTES, "[PAD%lld]", (long long)i);
    v->tokens[i] = (rdna_text){text, (size_t)size};
    v->types[i] = RDNA_TOKEN_TYPE_UNUSED;
    v->scores[i] = -10000;
  }
  return RDNA_OK;
}

/* Ids of the added tokens that have |flag| set, as |key|; GGUF has no key of its own for that. */
static rdna_status put_marked(making *m, const char *flag, const char *key) {
  json_t *list = json_object_get(m->from->tokenizer, "added_tokens"), *entry;
  int32_t *ids = malloc((json_array_size(list) + 1) * sizeof *ids);
  size_t index, count = 0;
  if (!ids) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for added tokens");
  json_array_foreach(list, index, entry) {
    int64_t id = json_integer_value(json_object_get(entry, "id"));
    if (json_is_true(json_object_get(entry, flag)) && id < m->vocabulary.count) ids[count++] = (int32_t)id;
  }
  rdna_status status = RDNA_OK;
  if (count) status = rdna_gguf_writer_put_array(m->writer, key, RDNA_GGUF_TYPE_I32, ids, count);
  free(ids);
  return status;
}

static int64_t find_token(const rdna__hf_vocabulary *v, rdna_text text) {
  for (int64_t i = 0; i < v->count; i++)
    if (v->tokens[i].size == text.size && memcmp(v->tokens[i].data, text.data, text.size) == 0) return i;
  return -1;
}

/* ---- merges ---- */

/* "a b", or ["a", "b"], as "a b" in |m->joined|, where a pair is joined. */
static rdna_status read_merge(making *m, const json_t *merge, rdna_text *out) {
  rdna_text left = text_of(json_array_get(merge, 0)), right = text_of(json_array_get(merge, 1));
  *out = text_of(merge);
  if (out->data) return RDNA_OK;
  char *text = left.data && right.data ? keep_bytes(m, left.size + right.size + 2) : NULL;
  if (!text) return rdna__fail(RDNA_BAD_DATA, "a merge is neither a text nor a pair of texts");
  int size = snprintf(text, left.size + right.size + 2, "%s %s", left.data, right.data);
  *out = (rdna_text){text, (size_t)size};
  return RDNA_OK;
}

/* All merges of |model|; free the result with free(). */
static rdna_status read_merges(making *m, const json_t *model, rdna_text **out_merges, size_t *out_count) {
  json_t *list = json_object_get(model, "merges"), *merge;
  size_t index, room = 0;
  if (!json_is_array(list)) return rdna__fail(RDNA_BAD_DATA, "its model has no array 'merges'");
  json_array_foreach(list, index, merge) if (json_is_array(merge)) room +=
      text_of(json_array_get(merge, 0)).size + text_of(json_array_get(merge, 1)).size + 2;
  rdna_text *merges = malloc((json_array_size(list) + 1) * sizeof *merges);
  m->joined = malloc(room + 1);
  m->joined_room = room;
  m->joined_size = 0;
  if (!merges || !m->joined) {
    free(merges);
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %zu merges", json_array_size(list));
  }
  rdna_status status = RDNA_OK;
  json_array_foreach(list, index, merge) {
    status = read_merge(m, merge, &merges[index]);
    if (status != RDNA_OK) break;
  }
  if (status == RDNA_OK) {
    *out_merges = merges;
    *out_count = json_array_size(list);
  } else {
    free(merges);
  }
  return status;
}

static rdna_status put_merges(making *m, const json_t *model) {
  rdna_text *merges;
  size_t count;
  RDNA_TRY(read_merges(m, model, &merges, &count));
  rdna_status status = RDNA_OK;
  for (size_t i = 0; i < count && status == RDNA_OK; i++) {
    const char *gap = strchr(merges[i].data, ' ');
    if (!gap || gap == merges[i].data || !gap[1] || strchr(gap + 1, ' '))
      status = rdna__fail(RDNA_BAD_DATA, "merge %zu, '%.40s', is not two texts without spaces", i, merges[i].data);
  }
  if (status == RDNA_OK)
    status = rdna_gguf_writer_put_array(m->writer, "tokenizer.ggml.merges", RDNA_GGUF_TYPE_TEXT, merges, count);
  free(merges);
  return status;
}

/* GGUF's tokenizer "llama" merges by the tokens' scores: each gets that of the first merge which makes it. */
static rdna_status score_merges(making *m, const json_t *model) {
  rdna__strmap made = {0};
  rdna_text *merges = NULL;
  size_t count = 0;
  rdna_status status = read_merges(m, model, &merges, &count);
  for (int64_t i = 0; i < m->vocabulary.count && status == RDNA_OK; i++) {
    bool inserted;
    rdna_text token = m->vocabulary.tokens[i];
    if (token.data) status = rdna__strmap_insert(&made, token.data, token.size, (uint32_t)i, &inserted);
    m->vocabulary.scores[i] = -(float)count - 1;
  }
  char text[512];
  for (size_t i = count; i-- > 0 && status == RDNA_OK;) { /* backwards: the first is the last to be set */
    const char *gap = memchr(merges[i].data, ' ', merges[i].size);
    uint32_t id;
    if (!gap || merges[i].size > sizeof text) {
      status = rdna__fail(RDNA_BAD_DATA, "merge %zu, '%.40s', is not two texts of at most %zu bytes", i, merges[i].data,
                          sizeof text);
      break;
    }
    size_t left = (size_t)(gap - merges[i].data), right = merges[i].size - left - 1;
    memcpy(text, merges[i].data, left);
    memcpy(text + left, gap + 1, right);
    if (rdna__strmap_find(&made, text, left + right, &id)) m->vocabulary.scores[id] = -(float)i;
  }
  rdna__strmap_deinit(&made);
  free(merges);
  return status;
}

/* ---- the pre-tokenizer ---- */

typedef struct patterns {
  rdna_text texts[MAX_PATTERNS];
  int count;
  bool byte_level;
} patterns;

static rdna_status strange(const json_t *step, const char *why) {
  const char *type = json_string_value(type_of(step));
  return rdna__fail(RDNA_UNSUPPORTED, "its pre-tokenizer has a step '%.40s'%s, which GGUF has no name for",
                    type ? type : "", why);
}

static rdna_status add_pattern(patterns *p, rdna_text text) {
  if (p->count == MAX_PATTERNS)
    return rdna__fail(RDNA_UNSUPPORTED, "its pre-tokenizer has more than %d patterns", MAX_PATTERNS);
  p->texts[p->count++] = text;
  return RDNA_OK;
}

static rdna_status read_step(const json_t *step, patterns *p) {
  const json_t *type = type_of(step);
  if (is_text(type, "Split")) {
    rdna_text regex = text_of(json_object_get(json_object_get(step, "pattern"), "Regex"));
    const json_t *behavior = json_object_get(step, "behavior");
    bool invert = json_is_true(json_object_get(step, "invert"));
    /* words are what the pattern matches, and what lies between; or, where all is matched, what does not match not */
    if (!regex.data || !(is_text(behavior, "Isolated") || (is_text(behavior, "Removed") && invert)))
      return strange(step, " by another than a regular expression, or that drops text");
    return add_pattern(p, regex);
  }
  if (is_text(type, "Digits")) {
    if (!json_is_true(json_object_get(step, "individual_digits"))) return strange(step, " of whole numbers");
    return add_pattern(p, (rdna_text){"\\p{N}", 5});
  }
  if (!is_text(type, "ByteLevel")) return strange(step, "");
  if (json_is_true(json_object_get(step, "add_prefix_space"))) return strange(step, " with a space before the text");
  p->byte_level = true;
  const json_t *use_regex = json_object_get(step, "use_regex");
  const char *pattern = rdna__splitter_gpt2_pattern();
  return json_is_false(use_regex) ? RDNA_OK : add_pattern(p, (rdna_text){pattern, strlen(pattern)});
}

static rdna_status put_pre(making *m, const json_t *model, bool nfc) {
  const json_t *pre = json_object_get(m->from->tokenizer, "pre_tokenizer");
  json_t *steps = json_object_get(pre, "pretokenizers"), *step;
  patterns p = {0};
  size_t index;
  if (is_text(type_of(pre), "Sequence")) {
    json_array_foreach(steps, index, step) RDNA_TRY(read_step(step, &p));
  } else {
    RDNA_TRY(read_step(pre, &p));
  }
  if (!p.byte_level) return rdna__fail(RDNA_UNSUPPORTED, "its tokens are not of bytes ('ByteLevel')");
  char name[64];
  bool ignore_merges = json_is_true(json_object_get(model, "ignore_merges"));
  if (!rdna__splitter_name(p.texts, p.count, ignore_merges, nfc, name))
    return rdna__fail(
        RDNA_UNSUPPORTED, "its pre-tokenizer's %d patterns%s%s are none that this library knows; the %s is '%.160s'",
        p.count, ignore_merges ? " together with 'ignore_merges'" : "", nfc ? " behind the normalizer NFC" : "",
        p.count > 1 ? "last" : "pattern", p.count ? p.texts[p.count - 1].data : "");
  return put_string(m->writer, "tokenizer.ggml.pre", name);
}

/* ---- special tokens ---- */

/* The id of config.json or generation_config.json: a number, or number |index| of a list. -1: none. */
static int64_t configured_id(const json_t *config, const char *name, size_t index, int64_t count) {
  const json_t *id = json_object_get(config, name);
  if (json_is_array(id))
    id = json_array_get(id, index);
  else if (index)
    return -1;
  int64_t value = json_is_integer(id) ? json_integer_value(id) : -1;
  return value < count ? value : -1;
}

/* The token that tokenizer_config.json calls |name|, a text or an object with one; otherwise what config.json says. */
static int64_t special_id(const making *m, const char *name) {
  char with_id[64];
  const json_t *token = json_object_get(m->from->tokenizer_config, name);
  rdna_text text = text_of(json_is_object(token) ? json_object_get(token, "content") : token);
  int64_t id = text.data ? find_token(&m->vocabulary, text) : -1;
  if (id >= 0) return id;
  snprintf(with_id, sizeof with_id, "%s_id", name);
  return configured_id(m->from->config, with_id, 0, m->vocabulary.count);
}

static rdna_status put_special_ids(making *m) {
  static const char *const names[][2] = {
      {"bos_token", "tokenizer.ggml.bos_token_id"},       {"eos_token", "tokenizer.ggml.eos_token_id"},
      {"unk_token", "tokenizer.ggml.unknown_token_id"},   {"cls_token", "tokenizer.ggml.cls_token_id"},
      {"sep_token", "tokenizer.ggml.seperator_token_id"}, /* GGUF's spelling */
      {"pad_token", "tokenizer.ggml.padding_token_id"}};
  static const char *const ends[] = {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};
  for (int64_t i = m->vocabulary.count; m->unigram && i-- > 0;)
    if (m->vocabulary.types[i] == RDNA_TOKEN_TYPE_UNKNOWN)
      RDNA_TRY(put_id(m->writer, "tokenizer.ggml.unknown_token_id", i));
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    int64_t id = special_id(m, names[i][0]);
    if (id >= 0) RDNA_TRY(put_id(m->writer, names[i][1], id));
  }
  /* others that end a reply */
  int64_t eos = special_id(m, "eos_token");
  for (size_t i = 0, found = 0; i < 8 && found < sizeof ends / sizeof *ends; i++) {
    int64_t id = configured_id(m->from->generation_config, "eos_token_id", i, m->vocabulary.count);
    if (id >= 0 && id != eos) RDNA_TRY(put_id(m->writer, ends[found++], id));
  }
  return RDNA_OK;
}

/* What is put around a text: "single" of the template, [special token…, text, special token…]. */
static rdna_status put_template(making *m, const json_t *processor, bool *out_bos, bool *out_eos) {
  json_t *list = json_object_get(processor, "single");
  const json_t *first = json_object_get(json_array_get(list, 0), "SpecialToken");
  const json_t *last = json_object_get(json_array_get(list, json_array_size(list) - 1), "SpecialToken");
  const char *name = json_string_value(json_object_get(first, "id"));
  const json_t *token = json_object_get(json_object_get(processor, "special_tokens"), name ? name : "");
  const json_t *id = json_array_get(json_object_get(token, "ids"), 0);
  *out_bos = first != NULL;
  *out_eos = last != NULL && json_array_size(list) > 1;
  if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= m->vocabulary.count)
    return RDNA_OK;
  return put_id(m->writer, "tokenizer.ggml.bos_token_id", json_integer_value(id));
}

/* The same by older names: {"type": "RobertaProcessing", "cls": ["<s>", 0], "sep": ["</s>", 2]}. */
static rdna_status put_ends(making *m, const json_t *processor) {
  static const char *const names[][2] = {{"cls", "tokenizer.ggml.bos_token_id"},
                                         {"sep", "tokenizer.ggml.eos_token_id"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const json_t *id = json_array_get(json_object_get(processor, names[i][0]), 1);
    if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) >= m->vocabulary.count)
      return rdna__fail(RDNA_BAD_DATA, "'%s' of its post-processor is no token with an id", names[i][0]);
    RDNA_TRY(put_id(m->writer, names[i][1], json_integer_value(id)));
  }
  return RDNA_OK;
}

static rdna_status put_flags(making *m) {
  const json_t *processor = json_object_get(m->from->tokenizer, "post_processor");
  json_t *list = json_object_get(processor, "processors"), *step;
  const json_t *add_bos = json_object_get(m->from->tokenizer_config, "add_bos_token");
  const json_t *add_eos = json_object_get(m->from->tokenizer_config, "add_eos_token");
  bool bos = false, eos = false, told = m->from->tokenizer != NULL;
  size_t index;
  if (is_text(type_of(processor), "TemplateProcessing")) RDNA_TRY(put_template(m, processor, &bos, &eos));
  if (is_text(type_of(processor), "BertProcessing") || is_text(type_of(processor), "RobertaProcessing")) {
    RDNA_TRY(put_ends(m, processor));
    bos = eos = true;
  }
  json_array_foreach(list, index, step) if (is_text(type_of(step), "TemplateProcessing"))
      RDNA_TRY(put_template(m, step, &bos, &eos));
  if (json_is_boolean(add_bos)) bos = json_is_true(add_bos);
  if (json_is_boolean(add_eos)) eos = json_is_true(add_eos);
  if (told || json_is_boolean(add_bos)) RDNA_TRY(put_flag(m->writer, "tokenizer.ggml.add_bos_token", bos));
  if (told || json_is_boolean(add_eos)) RDNA_TRY(put_flag(m->writer, "tokenizer.ggml.add_eos_token", eos));
  return m->spm ? put_flag(m->writer, "tokenizer.ggml.add_space_prefix", m->space_prefix) : RDNA_OK;
}

static rdna_status put_chat_template(const making *m) {
  const json_t *found = json_object_get(m->from->tokenizer_config, "chat_template");
  rdna_text text = m->from->chat_template.data ? m->from->chat_template : text_of(found);
  if (text.data) return put_text(m->writer, "tokenizer.chat_template", text);
  for (size_t i = 0; i < json_array_size(found); i++) { /* several, by name */
    const json_t *entry = json_array_get(found, i);
    const char *name = json_string_value(json_object_get(entry, "name"));
    text = text_of(json_object_get(entry, "template"));
    if (!name || !*name || !text.data || strlen(name) > 64) continue;
    char key[128] = "tokenizer.chat_template";
    if (strcmp(name, "default") != 0) snprintf(key, sizeof key, "tokenizer.chat_template.%s", name);
    RDNA_TRY(put_text(m->writer, key, text));
  }
  return RDNA_OK;
}

/* ---- the whole ---- */

/* Whether a text gets a space in front, by the steps before merging. */
static bool prepends_space(const json_t *tokenizer) {
  const json_t *normalizer = json_object_get(tokenizer, "normalizer"),
               *pre = json_object_get(tokenizer, "pre_tokenizer");
  json_t *steps = json_object_get(normalizer, "normalizers"), *step;
  const json_t *scheme = json_object_get(pre, "prepend_scheme");
  size_t index;
  if (is_text(type_of(normalizer), "Prepend")) return true;
  json_array_foreach(steps, index, step) if (is_text(type_of(step), "Prepend")) return true;
  if (!is_text(type_of(pre), "Metaspace")) return false;
  return scheme ? !is_text(scheme, "never") : json_is_true(json_object_get(pre, "add_prefix_space"));
}

/* Gemma 4's, whose merges GGUF keeps. */
static rdna_status read_characters(making *m, const json_t *model) {
  m->spm = true;
  RDNA_TRY(put_string(m->writer, "tokenizer.ggml.model", "gemma4"));
  m->space_prefix = prepends_space(m->from->tokenizer);
  if (m->space_prefix)
    return rdna__fail(RDNA_UNSUPPORTED, "it puts a space before the text, which GGUF's tokenizer gemma4 does not");
  RDNA_TRY(read_vocab(m, model));
  return put_merges(m, model);
}

/* The keys of a Unigram vocabulary beside its tokens. */
static rdna_status put_unigram(making *m, const rdna__hf_spm *steps) {
  m->space_prefix = steps->space_prefix;
  m->unigram = steps->unigram;
  RDNA_TRY(put_string(m->writer, "tokenizer.ggml.model", steps->unigram ? "t5" : "llama"));
  RDNA_TRY(put_string(m->writer, "tokenizer.ggml.pre", "default"));
  if (!steps->unigram) return RDNA_OK;
  RDNA_TRY(put_flag(m->writer, "tokenizer.ggml.remove_extra_whitespaces", steps->trims));
  if (steps->charsmap.size == 0) return RDNA_OK;
  return rdna_gguf_writer_put_array(m->writer, "tokenizer.ggml.precompiled_charsmap", RDNA_GGUF_TYPE_U8,
                                    steps->charsmap.data, steps->charsmap.size);
}

/* The vocabulary of tokenizer.json's Unigram: [[text, score], …]. */
static rdna_status read_pieces(making *m, const json_t *model) {
  const json_t *list = json_object_get(model, "vocab"), *unknown = json_object_get(model, "unk_id");
  bool fallback = json_is_true(json_object_get(model, "byte_fallback"));
  if (!json_is_array(list)) return rdna__fail(RDNA_BAD_DATA, "its model has no array 'vocab'");
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *entry = json_array_get(list, i), *score = json_array_get(entry, 1);
    rdna_text text = text_of(json_array_get(entry, 0));
    int32_t type = RDNA_TOKEN_TYPE_NORMAL;
    if (!text.data || !json_is_number(score))
      return rdna__fail(RDNA_BAD_DATA, "piece %zu is not a text and a score", i);
    if (fallback && is_byte_token(text.data)) type = RDNA_TOKEN_TYPE_BYTE;
    if (json_is_integer(unknown) && (size_t)json_integer_value(unknown) == i) type = RDNA_TOKEN_TYPE_UNKNOWN;
    RDNA_TRY(set_token(&m->vocabulary, (int64_t)i, text, type));
    m->vocabulary.scores[i] = (float)json_number_value(score);
  }
  return RDNA_OK;
}

static rdna_status read_unigram(making *m, const json_t *model) {
  rdna__hf_spm steps;
  m->spm = true;
  RDNA_TRY(rdna__hf_unigram_steps(m->from->tokenizer, &steps, &m->charsmap));
  RDNA_TRY(put_unigram(m, &steps));
  return read_pieces(m, model);
}

static rdna_status read_spm(making *m, const json_t *model) {
  m->spm = true;
  if (m->from->spm.data) {
    rdna__hf_spm steps;
    RDNA_TRY(rdna__annotate(rdna__spm_read(m->from->spm, &m->vocabulary, &steps), "tokenizer.model"));
    return put_unigram(m, &steps);
  }
  RDNA_TRY(put_string(m->writer, "tokenizer.ggml.model", "llama"));
  RDNA_TRY(put_string(m->writer, "tokenizer.ggml.pre", "default"));
  m->space_prefix = prepends_space(m->from->tokenizer);
  RDNA_TRY(read_vocab(m, model));
  return score_merges(m, model);
}

static rdna_status read_bpe(making *m, const json_t *model) {
  const json_t *normalizer = json_object_get(m->from->tokenizer, "normalizer");
  const json_t *steps = json_object_get(normalizer, "normalizers");
  if (is_text(type_of(normalizer), "Sequence") && json_array_size(steps) < 2) normalizer = json_array_get(steps, 0);
  bool nfc = is_text(type_of(normalizer), "NFC");
  if (json_is_object(normalizer) && !nfc)
    return rdna__fail(RDNA_UNSUPPORTED, "its normalizer '%.40s' has no name in GGUF",
                      text_of(type_of(normalizer)).data ? text_of(type_of(normalizer)).data : "");
  RDNA_TRY(put_string(m->writer, "tokenizer.ggml.model", "gpt2"));
  RDNA_TRY(put_pre(m, model, nfc));
  RDNA_TRY(read_vocab(m, model));
  return put_merges(m, model);
}

/* The steps before words are cut must be those that GGUF's tokenizer bert has. |*out_lower|: capitals become small
 * letters, and accents go. */
static rdna_status check_bert_normalizer(const json_t *normalizer, bool *out_lower) {
  const json_t *accents = json_object_get(normalizer, "strip_accents");
  if (!is_text(type_of(normalizer), "BertNormalizer"))
    return rdna__fail(RDNA_UNSUPPORTED, "its normalizer is not BERT's, which GGUF's tokenizer bert has");
  *out_lower = json_is_true(json_object_get(normalizer, "lowercase"));
  if (json_is_false(json_object_get(normalizer, "clean_text")) ||
      json_is_false(json_object_get(normalizer, "handle_chinese_chars")) ||
      (json_is_boolean(accents) && json_is_true(accents) != *out_lower))
    return rdna__fail(
        RDNA_UNSUPPORTED,
        "its normalizer leaves out a step of BERT's (clean_text, handle_chinese_chars, or accents that go "
        "with capitals), which GGUF cannot say");
  return RDNA_OK;
}

/* GGUF marks the pieces that begin a word, tokenizer.json with "##" the others.
 *
 *     tokenizer.json    [CLS]  the   ##se
 *     GGUF              [CLS]  _the  se       _ is U+2581
 */
static rdna_status mark_words(making *m) {
  rdna__hf_vocabulary *v = &m->vocabulary;
  size_t room = 0;
  for (int64_t i = 0; i < v->count; i++) room += v->tokens[i].size + sizeof space_mark;
  free(m->words);
  m->words = malloc(room + 1);
  if (!m->words) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the pieces of words");
  char *out = m->words;
  for (int64_t i = 0; i < v->count; i++) {
    rdna_text *text = &v->tokens[i];
    if (!text->data || v->types[i] != RDNA_TOKEN_TYPE_NORMAL) continue;
    bool within = text->size > 2 && memcmp(text->data, "##", 2) == 0;
    size_t size = (size_t)snprintf(out, text->size + sizeof space_mark, "%s%.*s", within ? "" : space_mark,
                                   (int)(text->size - (within ? 2 : 0)), text->data + (within ? 2 : 0));
    *text = (rdna_text){out, size};
    out += size + 1;
  }
  return RDNA_OK;
}

static rdna_status read_wordpiece(making *m, const json_t *model) {
  const json_t *prefix = json_object_get(model, "continuing_subword_prefix");
  bool lower = false, capitals = false;
  if (!is_text(prefix, "##"))
    return rdna__fail(RDNA_UNSUPPORTED, "pieces within words do not begin with '##', as BERT's do");
  if (!is_text(type_of(json_object_get(m->from->tokenizer, "pre_tokenizer")), "BertPreTokenizer"))
    return rdna__fail(RDNA_UNSUPPORTED, "its pre-tokenizer is not BERT's, which GGUF's tokenizer bert has");
  RDNA_TRY(check_bert_normalizer(json_object_get(m->from->tokenizer, "normalizer"), &lower));
  RDNA_TRY(put_string(m->writer, "tokenizer.ggml.model", "bert"));
  RDNA_TRY(read_vocab(m, model));
  for (int64_t i = 0; i < m->vocabulary.count; i++) {
    const rdna_text text = m->vocabulary.tokens[i];
    if (!text.data || memchr(text.data, '[', text.size)) continue;
    for (size_t k = 0; k < text.size; k++) capitals |= text.data[k] >= 'A' && text.data[k] <= 'Z';
  }
  if (capitals == lower) /* GGUF has no key for it: a vocabulary with capitals is for texts that have them */
    return rdna__fail(RDNA_UNSUPPORTED, "its normalizer %s capitals, but its vocabulary has %s, which GGUF cannot say",
                      lower ? "folds" : "keeps", lower ? "some" : "none");
  return RDNA_OK;
}

static rdna_status put_all(making *m) {
  const json_t *model = json_object_get(m->from->tokenizer, "model");
  rdna__hf_vocabulary *v = &m->vocabulary;
  bool bpe = is_text(type_of(model), "BPE"), fallback = json_is_true(json_object_get(model, "byte_fallback"));
  RDNA_TRY(alloc_vocabulary(m));
  bool unigram = is_text(type_of(model), "Unigram") && !m->from->spm.data;
  bool words = is_text(type_of(model), "WordPiece");
  if (model && !bpe && !unigram && !words && !m->from->spm.data)
    return rdna__fail(RDNA_UNSUPPORTED, "its model is '%.40s', neither BPE, Unigram nor WordPiece",
                      text_of(type_of(model)).data ? text_of(type_of(model)).data : "of no type");
  const char *kind = json_string_value(json_object_get(m->from->config, "model_type"));
  bool of_characters = bpe && fallback && kind && strncmp(kind, "gemma4", 6) == 0;
  if (of_characters)
    RDNA_TRY(read_characters(m, model));
  else if (unigram)
    RDNA_TRY(read_unigram(m, model));
  else if (words)
    RDNA_TRY(read_wordpiece(m, model));
  else
    RDNA_TRY(bpe && !fallback ? read_bpe(m, model) : read_spm(m, model));
  RDNA_TRY(add_tokens(m));
  if (words) RDNA_TRY(mark_words(m));
  RDNA_TRY(pad(m));
  RDNA_TRY(rdna_gguf_writer_put_array(m->writer, "tokenizer.ggml.tokens", RDNA_GGUF_TYPE_TEXT, v->tokens,
                                      (uint64_t)v->count));
  if (m->spm)
    RDNA_TRY(rdna_gguf_writer_put_array(m->writer, "tokenizer.ggml.scores", RDNA_GGUF_TYPE_F32, v->scores,
                                        (uint64_t)v->count));
  RDNA_TRY(rdna_gguf_writer_put_array(m->writer, "tokenizer.ggml.token_type", RDNA_GGUF_TYPE_I32, v->types,
                                      (uint64_t)v->count));
  RDNA_TRY(put_marked(m, "lstrip", "tokenizer.rdna.strips_before"));
  RDNA_TRY(put_marked(m, "rstrip", "tokenizer.rdna.strips_behind"));
  RDNA_TRY(put_special_ids(m));
  RDNA_TRY(put_flags(m));
  return put_chat_template(m);
}

rdna_status rdna__hf_tokenizer_put(const rdna__hf_tokenizer *tokenizer, rdna_gguf_writer *writer) {
  if (!tokenizer->tokenizer && !tokenizer->spm.data) return put_string(writer, "tokenizer.ggml.model", "no_vocab");
  making m = {.from = tokenizer, .writer = writer};
  rdna_status status = put_all(&m);
  free(m.vocabulary.tokens);
  free(m.vocabulary.scores);
  free(m.vocabulary.types);
  free(m.pads);
  free(m.charsmap);
  free(m.words);
  free(m.joined);
  return status;
}
