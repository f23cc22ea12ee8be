#include "model/tokenizer/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/status.h"

enum { MOST_TEXT_BYTES = 512 << 20 };

int rdna__utf8_length(const char *text, size_t size) {
  if (size == 0) return 0;
  uint8_t lead = (uint8_t)text[0];
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  int length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  /* the second byte's range rules out overlong forms, surrogates and what lies behind U+10FFFF */
  uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  for (int i = 1; i < length; i++) {
    if ((size_t)i >= size) return -1;
    uint8_t byte = (uint8_t)text[i];
    if (byte < low || byte > high) return 0;
    low = 0x80;
    high = 0xbf;
  }
  return length;
}

/* ---- a list of ids ---- */

void rdna_tokens_deinit(rdna_tokens *tokens) {
  free(tokens->ids);
  *tokens = (rdna_tokens){0};
}

rdna_status rdna_tokens_append(rdna_tokens *tokens, int32_t id) {
  if (tokens->count == tokens->capacity) {
    size_t capacity = tokens->capacity ? tokens->capacity * 2 : 64;
    int32_t *grown = realloc(tokens->ids, capacity * sizeof *grown);
    if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %zu token ids", capacity);
    tokens->ids = grown;
    tokens->capacity = capacity;
  }
  tokens->ids[tokens->count++] = id;
  return RDNA_OK;
}

/* ---- opening ---- */

/* A text value as a C string of ours; |initial| when there is none. */
static rdna_status copy_text(const rdna_gguf *file, const char *key, const char *initial, char **out) {
  rdna_text text = {initial, strlen(initial)};
  if (rdna_gguf_find_key(file, key, NULL)) RDNA_TRY(rdna_gguf_get_text(file, key, &text));
  *out = strndup(text.data, text.size);
  return *out ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a name");
}

static rdna_status read_id(const rdna_gguf *file, const char *key, size_t count, int32_t *id) {
  if (!rdna_gguf_find_key(file, key, NULL)) return RDNA_OK;
  int64_t value = 0;
  RDNA_TRY(rdna_gguf_get_i64(file, key, &value));
  /* some writers put -1, as it is or as 32 bits, for none */
  if (value == -1 || value == UINT32_MAX) {
    *id = -1;
    return RDNA_OK;
  }
  if (value < 0 || (uint64_t)value >= count)
    return rdna__fail(RDNA_BAD_DATA, "%s is %lld, but the vocabulary has %zu tokens", key, (long long)value, count);
  *id = (int32_t)value;
  return RDNA_OK;
}

static rdna_status read_flag(const rdna_gguf *file, const char *key, bool *flag) {
  return rdna_gguf_find_key(file, key, NULL) ? rdna_gguf_get_bool(file, key, flag) : RDNA_OK;
}

static rdna_status read_types(const rdna_gguf *file, rdna_tokenizer *t) {
  size_t count = t->info.token_count;
  memset(t->types, RDNA_TOKEN_TYPE_NORMAL, count);
  if (!rdna_gguf_find_key(file, "tokenizer.ggml.token_type", NULL)) return RDNA_OK;
  enum { AT_ONCE = 256 };
  int32_t types[AT_ONCE];
  for (size_t i = 0; i < count; i += AT_ONCE) {
    size_t n = count - i < AT_ONCE ? count - i : AT_ONCE;
    RDNA_TRY(rdna_gguf_read_i32(file, "tokenizer.ggml.token_type", i, n, types));
    for (size_t j = 0; j < n; j++) {
      if (types[j] < 0 || types[j] >= RDNA_TOKEN_TYPE_COUNT)
        return rdna__fail(RDNA_BAD_DATA, "token %zu is of type %d, the format knows 0 to %d", i + j, (int)types[j],
                          RDNA_TOKEN_TYPE_COUNT - 1);
      t->types[i + j] = (uint8_t)(types[j] == RDNA_TOKEN_TYPE_UNDEFINED ? RDNA_TOKEN_TYPE_NORMAL : types[j]);
    }
  }
  return RDNA_OK;
}

static rdna_status read_tokens(const rdna_gguf *file, rdna_tokenizer *t) {
  size_t count;
  RDNA_TRY(rdna_gguf_get_texts(file, "tokenizer.ggml.tokens", &t->texts, &count));
  if (count == 0 || count > INT32_MAX / 4) return rdna__fail(RDNA_BAD_DATA, "a vocabulary of %zu tokens", count);
  t->info.token_count = count;
  t->types = malloc(count);
  t->ends = calloc(count, sizeof *t->ends);
  t->strips_behind = calloc(count, sizeof *t->strips_behind);
  t->strips_before = calloc(count, sizeof *t->strips_before);
  t->pieces = calloc(count, sizeof *t->pieces);
  if (!t->types || !t->ends || !t->strips_behind || !t->strips_before || !t->pieces)
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %zu tokens", count);
  RDNA_TRY(read_types(file, t));
  RDNA_TRY(rdna__strmap_init(&t->by_text, count));
  for (size_t i = 0; i < count; i++) {
    bool inserted;
    if (t->texts[i].size)
      RDNA_TRY(rdna__strmap_insert(&t->by_text, t->texts[i].data, t->texts[i].size, (uint32_t)i, &inserted));
  }
  return RDNA_OK;
}

static bool is_special(const rdna_tokenizer *t, size_t id) {
  return t->types[id] == RDNA_TOKEN_TYPE_CONTROL || t->types[id] == RDNA_TOKEN_TYPE_UNKNOWN;
}

rdna_status rdna__token_tree_init(rdna__token_tree *tree, size_t bytes) {
  if (bytes >= UINT32_MAX) return rdna__fail(RDNA_UNSUPPORTED, "%zu bytes of tokens are too many", bytes);
  tree->nodes = malloc((bytes + 1) * sizeof *tree->nodes); /* never grows, so links into it stay good */
  if (!tree->nodes) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %zu bytes of tokens", bytes);
  tree->count = 1;
  return RDNA_OK;
}

void rdna__token_tree_add(rdna__token_tree *tree, rdna_text text, int32_t id) {
  if (text.size == 0) return;
  uint32_t *link = &tree->roots[(uint8_t)text.data[0]];
  for (size_t i = 0; i < text.size; i++) {
    uint8_t byte = (uint8_t)text.data[i];
    while (*link && tree->nodes[*link].byte != byte) link = &tree->nodes[*link].sibling;
    if (!*link) {
      *link = tree->count;
      tree->nodes[tree->count++] = (rdna__token_node){.byte = byte, .id = -1};
    }
    rdna__token_node *node = &tree->nodes[*link];
    if (i + 1 == text.size && node->id < 0) node->id = id;
    link = &node->child;
  }
}

static rdna_status make_tree(rdna_tokenizer *t) {
  size_t total = 0;
  for (size_t i = 0; i < t->info.token_count; i++)
    if (is_special(t, i) || t->types[i] == RDNA_TOKEN_TYPE_USER_DEFINED) total += t->texts[i].size;
  RDNA_TRY(rdna__token_tree_init(&t->whole, total));
  for (size_t i = 0; i < t->info.token_count; i++)
    if (is_special(t, i) || t->types[i] == RDNA_TOKEN_TYPE_USER_DEFINED)
      rdna__token_tree_add(&t->whole, t->texts[i], (int32_t)i);
  return RDNA_OK;
}

static int32_t control_token(const rdna_tokenizer *t, const char *text) {
  uint32_t id;
  if (!rdna__strmap_find(&t->by_text, text, strlen(text), &id)) return -1;
  return t->types[id] == RDNA_TOKEN_TYPE_CONTROL || t->types[id] == RDNA_TOKEN_TYPE_USER_DEFINED ? (int32_t)id : -1;
}

/* Chat models end a turn with a token of its own; files do not always say which. */
static rdna_status find_ends(const rdna_gguf *file, rdna_tokenizer *t) {
  static const char *const keys[] = {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};
  static const char *const names[] = {"<|eot_id|>",      "<|eom_id|>",    "<|im_end|>", "<|end|>",
                                      "<end_of_turn>",   "<|endoftext|>", "<|return|>", "<|call|>",
                                      "<|end_of_text|>", "<EOT>",         "<turn|>"};
  if (t->info.eos >= 0) t->ends[t->info.eos] = true;
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    int32_t id = -1;
    RDNA_TRY(read_id(file, keys[i], t->info.token_count, &id));
    if (id >= 0) t->ends[id] = true;
  }
  /* where messages end in <|end|> and replies in <|return|>, <|end|> does not end the reply (OpenAI's harmony) */
  bool harmony = control_token(t, "<|return|>") >= 0 && control_token(t, "<|call|>") >= 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    int32_t id = control_token(t, names[i]);
    if (id >= 0 && !(harmony && strcmp(names[i], "<|end|>") == 0)) t->ends[id] = true;
  }
  return RDNA_OK;
}

/* Ids of the array |key|, which GGUF does not know and rdna convert writes. */
static rdna_status read_marked(const rdna_gguf *file, const char *key, size_t count, bool *marked, bool *out_there) {
  rdna_gguf_key found;
  *out_there = rdna_gguf_find_key(file, key, &found);
  for (uint64_t i = 0; *out_there && i < found.count; i++) {
    int32_t id;
    RDNA_TRY(rdna_gguf_read_i32(file, key, i, 1, &id));
    if (id < 0 || (size_t)id >= count)
      return rdna__fail(RDNA_BAD_DATA, "%s has id %d, but the vocabulary has %zu tokens", key, (int)id, count);
    marked[id] = true;
  }
  return RDNA_OK;
}

/* Beside which tokens white space is dropped. GGUF has no key for that: where ours is missing, Phi-3's name must do,
 * whose tokenizer.json gives its control tokens "rstrip". */
static rdna_status find_strips(const rdna_gguf *file, rdna_tokenizer *t) {
  char *architecture;
  bool told;
  size_t count = t->info.token_count;
  RDNA_TRY(read_marked(file, "tokenizer.rdna.strips_before", count, t->strips_before, &told));
  RDNA_TRY(read_marked(file, "tokenizer.rdna.strips_behind", count, t->strips_behind, &told));
  if (told) return RDNA_OK;
  RDNA_TRY(copy_text(file, "general.architecture", "", &architecture));
  bool phi3 = strcmp(architecture, "phi3") == 0;
  free(architecture);
  static const char *const kept[] = {"<unk>", "<s>", "<|endoftext|>"};
  for (size_t i = 0; phi3 && i < t->info.token_count; i++) t->strips_behind[i] = is_special(t, i);
  for (size_t i = 0; phi3 && i < sizeof kept / sizeof *kept; i++) {
    uint32_t id;
    if (rdna__strmap_find(&t->by_text, kept[i], strlen(kept[i]), &id)) t->strips_behind[id] = false;
  }
  uint32_t end;
  if (phi3 && rdna__strmap_find(&t->by_text, "</s>", 4, &end)) t->strips_behind[end] = true;
  return RDNA_OK;
}

/* BERT's texts begin and end with tokens that have keys of their own, one of them misspelled, and names that stay. */
static rdna_status find_words_ends(const rdna_gguf *file, rdna_tokenizer *t) {
  const struct {
    const char *name, *key;
    int32_t *id;
  } ends[] = {{"[CLS]", "tokenizer.ggml.cls_token_id", &t->info.bos},
              {"[SEP]", "tokenizer.ggml.seperator_token_id", &t->info.eos},
              {"[UNK]", "tokenizer.ggml.unknown_token_id", &t->info.unknown}};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    uint32_t id;
    bool named = rdna__strmap_find(&t->by_text, ends[i].name, strlen(ends[i].name), &id);
    if (*ends[i].id < 0 && named) *ends[i].id = (int32_t)id;
    RDNA_TRY(read_id(file, ends[i].key, t->info.token_count, ends[i].id));
  }
  return RDNA_OK;
}

static rdna_status open_kind(const rdna_gguf *file, rdna_tokenizer *t) {
  bool spm = strcmp(t->model_name, "llama") == 0, bpe = strcmp(t->model_name, "gpt2") == 0;
  t->of_characters = strcmp(t->model_name, "gemma4") == 0;
  t->of_words = strcmp(t->model_name, "bert") == 0;
  t->of_pieces = strcmp(t->model_name, "t5") == 0;
  t->marks_ends = strcmp(t->model_name, "clip") == 0;
  bpe |= t->marks_ends;
  if (!spm && !bpe && !t->of_characters && !t->of_words && !t->of_pieces)
    return rdna__fail(RDNA_UNSUPPORTED,
                      "this build does not know the tokenizer \"%s\" (tokenizer.ggml.model), only llama, gpt2, gemma4, "
                      "bert, t5 and clip; the model can be used with token ids only",
                      t->model_name);
  if (bpe) {
    free(t->pre_name);
    t->pre_name = NULL;
    RDNA_TRY(copy_text(file, "tokenizer.ggml.pre", t->marks_ends ? "clip" : "default", &t->pre_name));
    rdna__splitter_traits traits;
    RDNA_TRY(rdna__splitter_create(t->pre_name, &t->splitter, &traits));
    t->ignore_merges = traits.ignore_merges;
    t->nfc = traits.nfc;
    t->info.add_bos = traits.add_bos;
    t->info.add_eos = t->marks_ends;
  } else {
    t->info.add_bos = !t->of_pieces;
    t->info.add_eos = t->of_words || t->of_pieces;
  }
  t->info.pre = t->pre_name;
  RDNA_TRY(read_tokens(file, t));
  size_t count = t->info.token_count;
  if (spm && count > 2) { /* SentencePiece's own order, for files that do not say */
    t->info.unknown = 0;
    t->info.bos = 1;
    t->info.eos = 2;
  }
  if (t->of_pieces && count > 2) { /* T5's own order */
    t->info.eos = 1;
    t->info.unknown = 2;
  }
  for (size_t i = count; t->of_pieces && i-- > 0;)
    if (t->types[i] == RDNA_TOKEN_TYPE_UNKNOWN) t->info.unknown = (int32_t)i;
  RDNA_TRY(read_id(file, "tokenizer.ggml.bos_token_id", count, &t->info.bos));
  RDNA_TRY(read_id(file, "tokenizer.ggml.eos_token_id", count, &t->info.eos));
  RDNA_TRY(read_id(file, "tokenizer.ggml.unknown_token_id", count, &t->info.unknown));
  if (t->of_words) RDNA_TRY(find_words_ends(file, t));
  RDNA_TRY(read_flag(file, "tokenizer.ggml.add_bos_token", &t->info.add_bos));
  RDNA_TRY(read_flag(file, "tokenizer.ggml.add_eos_token", &t->info.add_eos));
  RDNA_TRY(make_tree(t));
  RDNA_TRY(find_ends(file, t));
  RDNA_TRY(find_strips(file, t));
  if (t->of_characters) return rdna__characters_open(file, t);
  if (t->of_words) return rdna__wordpiece_open(file, t);
  if (t->of_pieces) return rdna__unigram_open(file, t);
  return spm ? rdna__spm_open(file, t) : rdna__bpe_open(file, t);
}

rdna_status rdna_tokenizer_open(const rdna_gguf *file, rdna_tokenizer **out_tokenizer) {
  if (!file || !out_tokenizer) return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_tokenizer_open needs a file and a place");
  rdna_text model;
  RDNA_TRY(rdna_gguf_get_text(file, "tokenizer.ggml.model", &model));
  rdna_tokenizer *t = calloc(1, sizeof *t);
  if (!t) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a tokenizer");
  for (int i = 0; i < 256; i++) t->byte_ids[i] = -1;
  t->info = (rdna_tokenizer_info){.bos = -1, .eos = -1, .unknown = -1};
  rdna_status status = copy_text(file, "tokenizer.ggml.model", "", &t->model_name);
  if (status == RDNA_OK) status = copy_text(file, "tokenizer.ggml.none", "", &t->pre_name);
  t->info.model = t->model_name;
  t->info.pre = t->pre_name;
  if (status == RDNA_OK && strcmp(t->model_name, "no_vocab") != 0) status = open_kind(file, t);
  if (status == RDNA_OK) {
    *out_tokenizer = t;
  } else {
    rdna_tokenizer_close(t);
  }
  return status;
}

void rdna_tokenizer_close(rdna_tokenizer *t) {
  if (!t) return;
  free(t->model_name);
  free(t->pre_name);
  free(t->types);
  free(t->ends);
  free(t->strips_behind);
  free(t->strips_before);
  free(t->pieces);
  free(t->piece_bytes);
  free(t->whole.nodes);
  free(t->tree.nodes);
  rdna__charsmap_release(t->charsmap);
  free(t->scores);
  free(t->merges);
  rdna__strmap_deinit(&t->by_text);
  rdna__strmap_deinit(&t->mergeable);
  rdna__strmap_deinit(&t->by_piece);
  rdna__splitter_release(t->splitter);
  free(t);
}

/* ---- encoding ---- */

/* The longest token that stands whole at the start of |text|; -1 when there is none. */
static int32_t token_at(const rdna_tokenizer *t, rdna_text text, bool parse_special) {
  int32_t best = -1;
  const rdna__token_node *nodes = t->whole.nodes;
  uint32_t node = t->whole.roots[(uint8_t)text.data[0]];
  for (size_t i = 0; i < text.size && node; i++) {
    while (node && nodes[node].byte != (uint8_t)text.data[i]) node = nodes[node].sibling;
    if (!node) break;
    int32_t id = nodes[node].id;
    if (id >= 0 && (parse_special || t->types[id] == RDNA_TOKEN_TYPE_USER_DEFINED)) best = id;
    node = nodes[node].child;
  }
  return best;
}

static rdna_status encode_raw(const rdna_tokenizer *t, rdna_text text, bool prefix, rdna_tokens *tokens) {
  if (text.size == 0) return RDNA_OK;
  if (t->of_characters) return rdna__characters_encode(t, text, tokens);
  if (t->of_words) return rdna__wordpiece_encode(t, text, tokens);
  if (t->of_pieces) return rdna__unigram_encode(t, text, tokens);
  if (!t->splitter) return rdna__spm_encode(t, text, prefix, tokens);
  if (t->marks_ends) return rdna__clip_encode(t, text, tokens);
  char *normal = NULL;
  size_t size = 0;
  if (t->nfc) RDNA_TRY(rdna__normal_form(text, true, &normal, &size));
  rdna_status status = rdna__bpe_encode(t, normal ? (rdna_text){normal, size} : text, tokens);
  free(normal);
  return status;
}

/* Bytes of the white space that |text| begins with: 0 to 3. */
static size_t space_at(const char *text, size_t size) {
  const uint8_t *b = (const uint8_t *)text;
  if (size == 0) return 0;
  if (b[0] < 0x80) return b[0] == ' ' || (b[0] >= '\t' && b[0] <= '\r');
  if (size >= 2 && b[0] == 0xc2) return b[1] == 0x85 || b[1] == 0xa0 ? 2 : 0;
  if (size < 3 || b[0] < 0xe1 || b[0] > 0xe3) return 0;
  unsigned code = (b[0] & 15u) << 12 | (b[1] & 63u) << 6 | (b[2] & 63u);
  bool is = code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 ||
            code == 0x202f || code == 0x205f || code == 0x3000;
  return is && b[1] >= 0x80 && b[2] >= 0x80 ? 3 : 0;
}

/* |end| less the white space before it, but not below |start|. */
static size_t before_space(const char *text, size_t start, size_t end) {
  for (size_t size = 1; size <= 3 && size <= end - start;) {
    bool is = space_at(text + end - size, size) == size;
    end -= is ? size : 0;
    size = is ? 1 : size + 1;
  }
  return end;
}

static rdna_status encode_text(const rdna_tokenizer *t, rdna_text text, bool parse_special, rdna_tokens *tokens) {
  size_t start = 0; /* of the text since the last whole token */
  bool prefix = true;
  for (size_t i = 0; i < text.size;) {
    int32_t id = -1;
    if (t->whole.roots[(uint8_t)text.data[i]])
      id = token_at(t, (rdna_text){text.data + i, text.size - i}, parse_special);
    if (id < 0) {
      i++;
      continue;
    }
    size_t end = t->strips_before[id] ? before_space(text.data, start, i) : i;
    RDNA_TRY(encode_raw(t, (rdna_text){text.data + start, end - start}, prefix, tokens));
    RDNA_TRY(rdna_tokens_append(tokens, id));
    prefix = true;
    i += t->texts[id].size;
    for (size_t n = 1; t->strips_behind[id] && n > 0; i += n) n = space_at(text.data + i, text.size - i);
    start = i;
  }
  return encode_raw(t, (rdna_text){text.data + start, text.size - start}, prefix, tokens);
}

rdna_status rdna_tokenizer_encode(const rdna_tokenizer *t, const char *text, size_t size, unsigned flags,
                                  rdna_tokens *tokens) {
  if (!t || (!text && size) || !tokens || (flags & ~(RDNA_ENCODE_ADD_SPECIAL | RDNA_ENCODE_PARSE_SPECIAL)))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_tokenizer_encode needs a tokenizer, a text, known flags and a list");
  if (t->info.token_count == 0)
    return rdna__fail(RDNA_UNSUPPORTED, "the model file has no vocabulary, so text cannot become token ids");
  if (size > MOST_TEXT_BYTES)
    return rdna__fail(RDNA_UNSUPPORTED, "a text of %zu bytes; at most %d at once", size, MOST_TEXT_BYTES);
  size_t before = tokens->count;
  bool special = flags & RDNA_ENCODE_ADD_SPECIAL;
  rdna_status status = RDNA_OK;
  if (special && t->info.add_bos && t->info.bos >= 0) status = rdna_tokens_append(tokens, t->info.bos);
  if (status == RDNA_OK) status = encode_text(t, (rdna_text){text, size}, flags & RDNA_ENCODE_PARSE_SPECIAL, tokens);
  if (status == RDNA_OK && special && t->info.add_eos && t->info.eos >= 0)
    status = rdna_tokens_append(tokens, t->info.eos);
  if (status != RDNA_OK) tokens->count = before;
  return status;
}

/* ---- looking up ---- */

const rdna_tokenizer_info *rdna_tokenizer_get_info(const rdna_tokenizer *t) { return &t->info; }

rdna_status rdna_tokenizer_find(const rdna_tokenizer *t, const char *text, size_t size, int32_t *out_id) {
  uint32_t id;
  if (!rdna__strmap_find(&t->by_text, text, size, &id))
    return rdna__fail(RDNA_NOT_FOUND, "the vocabulary has no token \"%.*s\"", size > 100 ? 100 : (int)size, text);
  *out_id = (int32_t)id;
  return RDNA_OK;
}

static rdna_status check_id(const rdna_tokenizer *t, int32_t id) {
  if (id >= 0 && (size_t)id < t->info.token_count) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "token id %d, but the vocabulary has %zu tokens", (int)id,
                    t->info.token_count);
}

rdna_status rdna_tokenizer_piece(const rdna_tokenizer *t, int32_t id, rdna_text *out_piece) {
  RDNA_TRY(check_id(t, id));
  *out_piece = t->pieces[id];
  return RDNA_OK;
}

rdna_status rdna_tokenizer_type(const rdna_tokenizer *t, int32_t id, rdna_token_type *out_type) {
  RDNA_TRY(check_id(t, id));
  *out_type = (rdna_token_type)t->types[id];
  return RDNA_OK;
}

bool rdna_tokenizer_is_end(const rdna_tokenizer *t, int32_t id) {
  return id >= 0 && (size_t)id < t->info.token_count && t->ends[id];
}

/* ---- decoding ---- */

struct rdna_detokenizer {
  const rdna_tokenizer *tokenizer;
  bool show_control;
  bool strips_space; /* the next piece starts a text, whose first space is the tokenizer's own */
  char *text;        /* (capacity) what the last push returned, and behind it what is held back */
  size_t capacity, returned, held;
};

rdna_status rdna_detokenizer_create(const rdna_tokenizer *t, bool show_control, rdna_detokenizer **out_detokenizer) {
  if (!t || !out_detokenizer)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_detokenizer_create needs a tokenizer and a place");
  rdna_detokenizer *d = calloc(1, sizeof *d);
  if (!d) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a detokenizer");
  d->tokenizer = t;
  d->show_control = show_control;
  d->strips_space = !t->splitter && t->add_space_prefix;
  *out_detokenizer = d;
  return RDNA_OK;
}

void rdna_detokenizer_release(rdna_detokenizer *d) {
  if (!d) return;
  free(d->text);
  free(d);
}

/* What encoding puts in front of text, decoding takes away: one space at the start and behind each whole token. */
static rdna_text visible_piece(rdna_detokenizer *d, int32_t id) {
  const rdna_tokenizer *t = d->tokenizer;
  rdna_text piece = t->pieces[id];
  if (is_special(t, (size_t)id) || t->types[id] == RDNA_TOKEN_TYPE_USER_DEFINED) {
    d->strips_space = !t->splitter && t->add_space_prefix;
    if (is_special(t, (size_t)id) && !d->show_control) piece.size = 0;
    return piece;
  }
  if (d->strips_space && piece.size && piece.data[0] == ' ') {
    piece.data++;
    piece.size--;
  }
  d->strips_space = false;
  return piece;
}

/* Bytes at the end of |text| that could become a character with more bytes. */
static size_t incomplete_tail(const char *text, size_t size) {
  for (size_t back = 1; back <= 3 && back <= size; back++) {
    uint8_t byte = (uint8_t)text[size - back];
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) return rdna__utf8_length(text + size - back, back) < 0 ? back : 0;
  }
  return 0;
}

rdna_status rdna_detokenizer_push(rdna_detokenizer *d, int32_t id, rdna_text *out_text) {
  RDNA_TRY(check_id(d->tokenizer, id));
  rdna_text piece = visible_piece(d, id);
  size_t size = d->held + piece.size;
  if (d->held) memmove(d->text, d->text + d->returned, d->held);
  d->returned = 0;
  if (size > d->capacity) {
    char *grown = realloc(d->text, size * 2);
    if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a text of %zu bytes", size);
    d->text = grown;
    d->capacity = size * 2;
  }
  if (piece.size) memcpy(d->text + d->held, piece.data, piece.size);
  d->held = size ? incomplete_tail(d->text, size) : 0;
  d->returned = size - d->held;
  *out_text = (rdna_text){d->returned ? d->text : "", d->returned};
  return RDNA_OK;
}

void rdna_detokenizer_finish(rdna_detokenizer *d, rdna_text *out_text) {
  *out_text = d->held ? (rdna_text){d->text + d->returned, d->held} : (rdna_text){"", 0};
  d->held = 0;
  d->strips_space = !d->tokenizer->splitter && d->tokenizer->add_space_prefix;
}
