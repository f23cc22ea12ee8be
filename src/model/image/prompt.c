#include "model/image/prompt.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/image/text_encoder.h"

enum { ENDS = 2, MOST_DEPTH = 1 << 12, BACK_TO_COMMA = 20 };

/* ---- brackets ---- */

typedef struct parsing {
  rdna__prompt *out;
  size_t capacity, at;                            /* of pieces; of |out->text| */
  size_t rounds[MOST_DEPTH], squares[MOST_DEPTH]; /* the pieces that brackets open before */
  size_t round_count, square_count;
} parsing;

static rdna_status add_piece(parsing *p, const char *text, size_t size, bool breaks) {
  rdna__prompt *o = p->out;
  if (o->count == p->capacity) {
    size_t capacity = p->capacity ? 2 * p->capacity : 16;
    rdna__prompt_piece *grown = realloc(o->pieces, capacity * sizeof *grown);
    if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a prompt");
    o->pieces = grown;
    p->capacity = capacity;
  }
  char *copy = o->text + p->at;
  memcpy(copy, text, size);
  p->at += size;
  o->pieces[o->count++] = (rdna__prompt_piece){copy, size, 1, breaks};
  return RDNA_OK;
}

static void weigh_from(parsing *p, size_t first, double weight) {
  for (size_t i = first; i < p->out->count; i++) p->out->pieces[i].weight *= weight;
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80);
}

/* The place of BREAK as a word of its own from |i| on; |size|: there is none. */
static size_t find_break(const char *text, size_t size, size_t i) {
  for (; i + 5 <= size; i++)
    if (memcmp(text + i, "BREAK", 5) == 0 && (i == 0 || !is_word(text[i - 1])) &&
        (i + 5 == size || !is_word(text[i + 5])))
      return i;
  return size;
}

/* Text without brackets, with what BREAKs are in it; spaces around those go. */
static rdna_status add_text(parsing *p, const char *text, size_t size) {
  for (size_t begin = 0;;) {
    size_t at = find_break(text, size, begin), end = at;
    while (at < size && end > begin && is_space(text[end - 1])) end--;
    RDNA_TRY(add_piece(p, text + begin, end - begin, false));
    if (at == size) return RDNA_OK;
    RDNA_TRY(add_piece(p, "", 0, true));
    begin = at + 5;
    while (begin < size && is_space(text[begin])) begin++;
  }
}

/* The length of ":1.3)", or 0, at |text|. */
static size_t read_weight(const char *text, size_t size, double *out) {
  char number[32];
  size_t i = 1, digits = 0;
  if (size < 3 || text[0] != ':') return 0;
  while (i < size && is_space(text[i])) i++;
  for (; i < size && digits < sizeof number - 1; i++) {
    bool sign = digits == 0 && (text[i] == '+' || text[i] == '-');
    if (!sign && text[i] != '.' && !(text[i] >= '0' && text[i] <= '9')) break;
    number[digits++] = text[i];
  }
  number[digits] = 0;
  char *end;
  *out = strtod(number, &end);
  if (digits == 0 || *end) return 0;
  while (i < size && is_space(text[i])) i++;
  return i < size && text[i] == ')' ? i + 1 : 0;
}

/* One bracket or escape, or text up to the next. */
static rdna_status parse_next(parsing *p, const char *text, size_t size, size_t *i) {
  const char *t = text + *i;
  size_t rest = size - *i, length = 1;
  double weight;
  size_t weighed = *t == ':' && p->round_count ? read_weight(t, rest, &weight) : 0;
  if (*t == '\\') {
    bool known = rest > 1 && strchr("()[]\\", t[1]) && t[1];
    RDNA_TRY(add_piece(p, t + known, 1, false)); /* one that escapes nothing is itself */
    length += known;
  } else if (*t == '(' && p->round_count < MOST_DEPTH) {
    p->rounds[p->round_count++] = p->out->count;
  } else if (*t == '[' && p->square_count < MOST_DEPTH) {
    p->squares[p->square_count++] = p->out->count;
  } else if (weighed) {
    weigh_from(p, p->rounds[--p->round_count], weight);
    length = weighed;
  } else if (*t == ')' && p->round_count) {
    weigh_from(p, p->rounds[--p->round_count], 1.1);
  } else if (*t == ']' && p->square_count) {
    weigh_from(p, p->squares[--p->square_count], 1 / 1.1);
  } else {
    while (length < rest && !strchr("\\()[]:", t[length])) length++;
    RDNA_TRY(add_text(p, t, length));
  }
  *i += length;
  return RDNA_OK;
}

/* Neighbours that weigh the same are one, so that a word is not cut in two. Their texts lie side by side. */
static void merge(rdna__prompt *o) {
  size_t count = 0;
  for (size_t i = 0; i < o->count; i++) {
    rdna__prompt_piece *last = count ? &o->pieces[count - 1] : NULL;
    if (last && !last->breaks && !o->pieces[i].breaks && last->weight == o->pieces[i].weight)
      last->size += o->pieces[i].size;
    else
      o->pieces[count++] = o->pieces[i];
  }
  o->count = count;
}

rdna_status rdna__prompt_parse(const char *text, size_t size, rdna__prompt *out) {
  *out = (rdna__prompt){.text = malloc(size + 1)};
  parsing *p = malloc(sizeof *p);
  rdna_status status =
      out->text && p ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a prompt of %zu bytes", size);
  if (p) {
    p->out = out;
    p->capacity = p->at = p->round_count = p->square_count = 0;
  }
  for (size_t i = 0; status == RDNA_OK && i < size;) status = parse_next(p, text, size, &i);
  if (status == RDNA_OK) {
    while (p->round_count) weigh_from(p, p->rounds[--p->round_count], 1.1);
    while (p->square_count) weigh_from(p, p->squares[--p->square_count], 1 / 1.1);
    merge(out);
  } else {
    rdna__prompt_deinit(out);
  }
  free(p);
  return status;
}

void rdna__prompt_deinit(rdna__prompt *p) {
  free(p->text);
  free(p->pieces);
  *p = (rdna__prompt){0};
}

/* ---- chunks ---- */

typedef struct filling {
  const rdna_image_text_encoder *encoder;
  rdna__prompt_chunks *out;
  int positions, capacity, used; /* tokens of the present chunk */
  int comma;                     /* tokens up to and with the present chunk's last comma; 0: there is none */
  bool breaks;                   /* the next token begins a chunk */
} filling;

static int32_t *present_ids(const filling *f) { return f->out->ids + (ptrdiff_t)(f->out->count - 1) * f->positions; }
static float *present_weights(const filling *f) {
  return f->out->weights + (ptrdiff_t)(f->out->count - 1) * f->positions;
}

/* A chunk of nothing, which becomes the present one. */
static rdna_status begin_chunk(filling *f) {
  rdna__prompt_chunks *o = f->out;
  size_t each = (size_t)f->positions;
  if (o->count == RDNA__PROMPT_MOST_CHUNKS)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "a text of more than %d times the %d tokens that an encoder reads at a time",
                      RDNA__PROMPT_MOST_CHUNKS, f->positions - ENDS);
  if (o->count == f->capacity) {
    f->capacity = f->capacity ? 2 * f->capacity : 2;
    int32_t *ids = realloc(o->ids, (size_t)f->capacity * each * sizeof *ids);
    if (ids) o->ids = ids;
    float *weights = realloc(o->weights, (size_t)f->capacity * each * sizeof *weights);
    if (weights) o->weights = weights;
    if (!ids || !weights) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a text's tokens");
  }
  o->count++;
  f->used = f->comma = 0;
  for (size_t k = 0; k < each; k++) present_weights(f)[k] = 1;
  return rdna_image_text_encoder_tokens(f->encoder, "", 0, present_ids(f), NULL);
}

/* The chunk's end moves on by what is put before it. */
static void put(filling *f, int32_t id, float weight) {
  int32_t *ids = present_ids(f) + f->used++;
  int32_t end = ids[1];
  ids[1] = id;
  ids[2] = end;
  present_weights(f)[f->used] = weight;
}

/* A full chunk gives what is behind its last comma to the next, if that is little. */
static rdna_status go_on(filling *f) {
  int32_t ids[BACK_TO_COMMA];
  float weights[BACK_TO_COMMA];
  int kept = f->comma && f->used - f->comma < BACK_TO_COMMA ? f->comma : f->used, moved = f->used - kept;
  for (int k = 0; k < moved; k++) {
    ids[k] = present_ids(f)[1 + kept + k];
    weights[k] = present_weights(f)[1 + kept + k];
  }
  RDNA_TRY(begin_chunk(f));
  const int32_t *empty = present_ids(f); /* what begins, ends and fills a text of nothing */
  for (int k = 1 + kept; moved && k < f->positions; k++) {
    present_ids(f)[k - f->positions] = empty[k == 1 + kept ? 1 : 2];
    present_weights(f)[k - f->positions] = 1;
  }
  for (int k = 0; k < moved; k++) put(f, ids[k], weights[k]);
  return RDNA_OK;
}

static rdna_status add_tokens(filling *f, const rdna_tokens *tokens, float weight, int32_t comma) {
  for (size_t i = 0; i < tokens->count; i++) {
    int whole = rdna__text_encoder_word(f->encoder, tokens->ids[i]); /* a word of a file is not cut in two */
    if (f->breaks || (whole > 1 && f->used + whole > f->positions - ENDS))
      RDNA_TRY(begin_chunk(f));
    else if (f->used == f->positions - ENDS)
      RDNA_TRY(tokens->ids[i] == comma ? begin_chunk(f) : go_on(f));
    f->breaks = false;
    put(f, tokens->ids[i], weight);
    if (tokens->ids[i] == comma) f->comma = f->used;
  }
  f->out->tokens += tokens->count;
  return RDNA_OK;
}

static rdna_status fill(filling *f, const rdna__prompt *prompt) {
  const rdna_tokenizer *tokenizer = rdna__text_encoder_tokenizer(f->encoder);
  int32_t comma = -1;
  if (rdna_tokenizer_find(tokenizer, ",</w>", 5, &comma) != RDNA_OK) comma = -1;
  RDNA_TRY(begin_chunk(f));
  for (size_t i = 0; i < prompt->count; i++) {
    const rdna__prompt_piece *piece = &prompt->pieces[i];
    rdna_tokens tokens = {0};
    if (piece->breaks) {
      if (f->breaks) RDNA_TRY(begin_chunk(f)); /* of nothing, between two */
      f->breaks = true;
      continue;
    }
    rdna_status status = rdna__text_encoder_read(f->encoder, piece->text, piece->size, &tokens);
    if (status == RDNA_OK) status = add_tokens(f, &tokens, (float)piece->weight, comma);
    rdna_tokens_deinit(&tokens);
    if (status != RDNA_OK) return status;
  }
  return RDNA_OK;
}

/* One chunk, and what is beyond it cut. */
static rdna_status read_plain(filling *f, const char *text) {
  RDNA_TRY(begin_chunk(f));
  return rdna_image_text_encoder_tokens(f->encoder, text, strlen(text), f->out->ids, &f->out->tokens);
}

rdna_status rdna__prompt_read(const rdna_image_text_encoder *encoder, const char *text, bool plain,
                              rdna__prompt_chunks *out) {
  rdna__prompt prompt = {0};
  *out = (rdna__prompt_chunks){0};
  filling f = {encoder, out, rdna_image_text_encoder_get_info(encoder)->positions, 0, 0, 0, false};
  rdna_status status = plain ? read_plain(&f, text) : rdna__prompt_parse(text, strlen(text), &prompt);
  if (status == RDNA_OK && !plain) status = fill(&f, &prompt);
  rdna__prompt_deinit(&prompt);
  if (status != RDNA_OK) rdna__prompt_chunks_deinit(out);
  return status;
}

rdna_status rdna__prompt_extend(const rdna_image_text_encoder *encoder, rdna__prompt_chunks *chunks, int count) {
  filling f = {encoder, chunks, rdna_image_text_encoder_get_info(encoder)->positions, chunks->count, 0, 0, false};
  while (chunks->count < count) RDNA_TRY(begin_chunk(&f));
  return RDNA_OK;
}

void rdna__prompt_chunks_deinit(rdna__prompt_chunks *c) {
  free(c->ids);
  free(c->weights);
  *c = (rdna__prompt_chunks){0};
}
