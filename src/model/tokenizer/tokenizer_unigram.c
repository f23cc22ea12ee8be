/* SentencePiece's Unigram vocabularies (Kudo, 2018): of all ways to write a text as pieces that one is taken whose
 * scores, the logarithms of the pieces' probabilities, have the largest sum. Characters are rewritten first, spaces
 * become marks, and a character that is no piece becomes its bytes, or the unknown token.
 *
 *     _new_york     _new  _york          -7.1 - 9.3
 *                   _new_york            -11.2           this one */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/tokenizer/tokenizer.h"

enum { MARK = 3 };
static const char mark[MARK] = "\xe2\x96\x81";
static const char replacement_character[] = "\xef\xbf\xbd";

/* ---- opening ---- */

static rdna_status read_charsmap(const rdna_gguf *file, rdna_tokenizer *t) {
  static const char key[] = "tokenizer.ggml.precompiled_charsmap";
  enum { AT_ONCE = 256, MOST = 64 << 20 };
  rdna_gguf_key found;
  if (!rdna_gguf_find_key(file, key, &found) || found.count == 0) return RDNA_OK;
  if (found.type != RDNA_GGUF_TYPE_ARRAY || found.count > MOST ||
      (found.element_type != RDNA_GGUF_TYPE_U8 && found.element_type != RDNA_GGUF_TYPE_I8))
    return rdna__fail(RDNA_BAD_DATA, "%s is no array of bytes, %d at most", key, MOST);
  uint8_t *bytes = malloc(found.count);
  if (!bytes) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a map of characters");
  rdna_status status = RDNA_OK;
  for (uint64_t i = 0; i < found.count && status == RDNA_OK; i += AT_ONCE) {
    int32_t values[AT_ONCE];
    size_t n = found.count - i < AT_ONCE ? (size_t)(found.count - i) : AT_ONCE;
    status = rdna_gguf_read_i32(file, key, i, n, values);
    for (size_t k = 0; k < n && status == RDNA_OK; k++) bytes[i + k] = (uint8_t)values[k];
  }
  if (status == RDNA_OK) status = rdna__charsmap_create(bytes, (size_t)found.count, &t->charsmap);
  free(bytes);
  return rdna__annotate(status, "%s", key);
}

static bool is_piece(const rdna_tokenizer *t, size_t id) {
  return t->types[id] == RDNA_TOKEN_TYPE_NORMAL && t->texts[id].size > 0;
}

static rdna_status collect_pieces(rdna_tokenizer *t) {
  static const float PENALTY = 10; /* of what is unknown, below the worst piece */
  size_t bytes = 0;
  float worst = INFINITY;
  t->splits_at_space = true;
  for (size_t i = 0; i < t->info.token_count; i++) {
    if (!is_piece(t, i)) continue;
    if (!isfinite(t->scores[i])) return rdna__fail(RDNA_BAD_DATA, "the score of token %zu is no number", i);
    bytes += t->texts[i].size;
    if (t->scores[i] < worst) worst = t->scores[i];
    if (!rdna__spm_marks_lead(t->texts[i])) t->splits_at_space = false;
  }
  t->unknown_score = (isinf(worst) ? 0 : worst) - PENALTY;
  RDNA_TRY(rdna__token_tree_init(&t->tree, bytes));
  for (size_t i = 0; i < t->info.token_count; i++)
    if (is_piece(t, i)) rdna__token_tree_add(&t->tree, t->texts[i], (int32_t)i);
  return RDNA_OK;
}

rdna_status rdna__unigram_open(const rdna_gguf *file, rdna_tokenizer *t) {
  const struct {
    const char *key;
    bool *flag;
  } flags[] = {{"tokenizer.ggml.add_space_prefix", &t->add_space_prefix},
               {"tokenizer.ggml.remove_extra_whitespaces", &t->trims}};
  size_t count = t->info.token_count;
  t->scores = malloc(count * sizeof *t->scores);
  if (!t->scores) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %zu scores", count);
  RDNA_TRY(rdna_gguf_read_f32(file, "tokenizer.ggml.scores", 0, count, t->scores));
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    *flags[i].flag = true;
    if (rdna_gguf_find_key(file, flags[i].key, NULL)) RDNA_TRY(rdna_gguf_get_bool(file, flags[i].key, flags[i].flag));
  }
  RDNA_TRY(read_charsmap(file, t));
  RDNA_TRY(rdna__spm_make_pieces(t));
  return collect_pieces(t);
}

/* ---- what is written as pieces ---- */

typedef struct buffer {
  char *data;
  size_t size, capacity;
} buffer;

static rdna_status append(buffer *b, const char *data, size_t size) {
  if (b->capacity - b->size < size) {
    size_t capacity = 2 * (b->size + size) + 64;
    char *grown = realloc(b->data, capacity);
    if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a text of %zu bytes", capacity);
    b->data = grown;
    b->capacity = capacity;
  }
  if (size) memcpy(b->data + b->size, data, size);
  b->size += size;
  return RDNA_OK;
}

/* What the bytes at the start of |text| become, and how many they are. */
static size_t rewrite(const rdna_tokenizer *t, rdna_text text, rdna_text *out) {
  size_t size = t->charsmap ? rdna__charsmap_find(t->charsmap, text, out) : 0;
  if (size > 0) return size;
  int length = rdna__utf8_length(text.data, text.size);
  *out = length < 1 ? (rdna_text){replacement_character, MARK} : (rdna_text){text.data, (size_t)length};
  return length < 1 ? 1 : (size_t)length;
}

/* Text as it is to be cut: characters rewritten, marks for spaces, and where that is trimmed, one of those in a row and
 * none at the ends but the first. */
static rdna_status normalize(const rdna_tokenizer *t, rdna_text text, buffer *out) {
  rdna_text part;
  size_t at = 0;
  bool after_space = t->trims;
  while (t->trims && at < text.size) {
    size_t size = rewrite(t, (rdna_text){text.data + at, text.size - at}, &part);
    if (part.size != 1 || part.data[0] != ' ') break;
    at += size;
  }
  if (at == text.size) return RDNA_OK;
  if (t->add_space_prefix) RDNA_TRY(append(out, mark, MARK));
  while (at < text.size) {
    at += rewrite(t, (rdna_text){text.data + at, text.size - at}, &part);
    for (; after_space && part.size && part.data[0] == ' '; part.data++) part.size--;
    for (size_t i = 0; i < part.size; i++)
      RDNA_TRY(part.data[i] == ' ' ? append(out, mark, MARK) : append(out, part.data + i, 1));
    if (part.size) after_space = t->trims && part.data[part.size - 1] == ' ';
  }
  while (t->trims && out->size >= MARK && memcmp(out->data + out->size - MARK, mark, MARK) == 0) out->size -= MARK;
  return RDNA_OK;
}

/* ---- the best way ---- */

/* How a text is written best up to here. */
typedef struct step {
  float score;
  uint32_t start; /* of the last piece; UINT32_MAX: nothing ends here */
  int32_t id;     /* -1: a character that is no piece */
} step;

typedef struct cutter {
  const rdna_tokenizer *tokenizer;
  step *steps; /* (capacity) */
  size_t capacity;
  float score;        /* of all that is cut; its last bits decide between equal ways, as they do in SentencePiece */
  bool after_unknown; /* the last token is the unknown one, which the next unknown characters join */
} cutter;

static rdna_status make_room(cutter *c, size_t count) {
  if (count <= c->capacity) return RDNA_OK;
  step *grown = realloc(c->steps, 2 * count * sizeof *grown);
  if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a word of %zu bytes", count);
  c->steps = grown;
  c->capacity = 2 * count;
  return RDNA_OK;
}

static void offer(step *to, float score, size_t start, int32_t id) {
  if (to->start != UINT32_MAX && score <= to->score) return;
  *to = (step){score, (uint32_t)start, id};
}

/* All pieces that begin at |at|; the character there, of |length| bytes, may also be unknown if it is none itself. */
static void offer_pieces(const cutter *c, rdna_text word, size_t at, size_t length) {
  const rdna_tokenizer *t = c->tokenizer;
  const rdna__token_node *nodes = t->tree.nodes;
  bool is_known = false;
  uint32_t node = t->tree.roots[(uint8_t)word.data[at]];
  for (size_t i = at; i < word.size && node; i++) {
    while (node && nodes[node].byte != (uint8_t)word.data[i]) node = nodes[node].sibling;
    if (!node) break;
    int32_t id = nodes[node].id;
    if (id >= 0) offer(&c->steps[i + 1], c->steps[at].score + t->scores[id], at, id);
    is_known |= id >= 0 && i + 1 == at + length;
    node = nodes[node].child;
  }
  if (!is_known) offer(&c->steps[at + length], c->steps[at].score + t->unknown_score, at, -1);
}

static rdna_status append_unknown(cutter *c, const char *bytes, size_t size, rdna_tokens *tokens) {
  const rdna_tokenizer *t = c->tokenizer;
  bool as_bytes = true;
  for (size_t i = 0; i < size; i++) as_bytes &= t->byte_ids[(uint8_t)bytes[i]] >= 0;
  if (!as_bytes && c->after_unknown) return RDNA_OK;
  c->after_unknown = !as_bytes;
  return rdna__spm_append_bytes(t, bytes, size, tokens);
}

static rdna_status encode_word(cutter *c, rdna_text word, rdna_tokens *tokens) {
  RDNA_TRY(make_room(c, word.size + 1));
  for (size_t i = 0; i <= word.size; i++) c->steps[i].start = UINT32_MAX;
  c->steps[0].score = c->score;
  for (size_t i = 0; i < word.size;) {
    int length = rdna__utf8_length(word.data + i, word.size - i);
    if (length < 1) length = 1;
    offer_pieces(c, word, i, (size_t)length);
    i += (size_t)length;
  }
  c->score = c->steps[word.size].score;
  size_t end = word.size, next = word.size + 1; /* the way is reversed: each step says where its piece ends */
  while (end > 0) {
    size_t start = c->steps[end].start;
    c->steps[end].start = (uint32_t)next;
    next = end;
    end = start;
  }
  for (size_t start = 0; start < word.size; next = c->steps[start].start) {
    int32_t id = c->steps[next].id;
    if (id < 0)
      RDNA_TRY(append_unknown(c, word.data + start, next - start, tokens));
    else
      RDNA_TRY(rdna_tokens_append(tokens, id));
    if (id >= 0) c->after_unknown = false;
    start = next;
  }
  return RDNA_OK;
}

rdna_status rdna__unigram_encode(const rdna_tokenizer *t, rdna_text text, rdna_tokens *tokens) {
  buffer normal = {0};
  cutter c = {.tokenizer = t};
  rdna_status status = normalize(t, text, &normal);
  if (normal.size >= UINT32_MAX) status = rdna__fail(RDNA_UNSUPPORTED, "a text of %zu bytes", normal.size);
  for (size_t start = 0; start < normal.size && status == RDNA_OK;) {
    size_t end = rdna__spm_word_end(t, normal.data, start, normal.size);
    status = encode_word(&c, (rdna_text){normal.data + start, end - start}, tokens);
    start = end;
  }
  free(c.steps);
  free(normal.data);
  return status;
}
