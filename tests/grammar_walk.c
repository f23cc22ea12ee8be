/* For grammar_test.py: grammar_walk MODEL.gguf, or grammar_walk made with a vocabulary of 150,000 tokens. Each line of
 * the input is a JSON object with a "schema" or a "grammar", and the answer a line that says
 *
 *   error   the sentence, where it is refused
 *   walks   "walks" texts of random tokens that the masks allowed, null for one that did not end
 *   taken   of each of "texts", cut into random tokens, how many bytes were taken, and whether it might end there
 *   masks, seconds, slowest   how many masks there were, and the time of the processor that they took
 *   compiled                  and that of the grammar */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "model/grammar/grammar_net.h"

enum { MADE_TOKENS = 150000, LONG_WALK = 80, LONGEST_WALK = 600 };

typedef struct walker {
  rdna__vocabulary *vocabulary;
  rdna__grammar *grammar;
  rdna__random random;
  uint64_t *bits;
  int32_t *allowed;
  json_int_t masks;
  double seconds, slowest;
} walker;

static void must(rdna_status status) {
  if (status == RDNA_OK) return;
  fprintf(stderr, "grammar_walk: %s\n", rdna_last_error());
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* All bytes, then words, numbers and pieces of JSON as vocabularies of that size have them. */
static rdna__vocabulary *make_vocabulary(void) {
  static const char *const pieces[] = {"\"", "\",", "\": ", "\":",  "{\"",  "\"}",      "},",   "}]",
                                       "[",  "]",   "\n  ", "    ", ", ",   "null",     "true", "false",
                                       "\\", "\\u", "\\n",  "\xc3", "\xa9", "\xe6\xbc", "\xa2"};
  enum { PIECES = sizeof pieces / sizeof *pieces, ROOM = 64 };
  rdna__vocabulary_token *tokens = calloc(MADE_TOKENS, sizeof *tokens);
  char *text = malloc((size_t)MADE_TOKENS * ROOM);
  rdna__random random;
  rdna__random_seed(&random, 1);
  for (int i = 0; i < MADE_TOKENS; i++) {
    char *at = text + (size_t)i * ROOM;
    size_t size = 0;
    if (i < 256) {
      at[size++] = (char)i;
    } else if (i == 256) {
      tokens[i].end = true;
    } else if (i < 300) {
      size = (size_t)snprintf(at, ROOM, "%s", pieces[i % PIECES]);
    } else {
      uint64_t kind = rdna__random_below(&random, 20);
      if (kind < 8) at[size++] = ' ';
      size_t letters = kind == 0 && rdna__random_below(&random, 16) == 0 ? 20 + rdna__random_below(&random, 24)
                                                                         : 1 + rdna__random_below(&random, 9);
      for (size_t n = 0; n < letters; n++) {
        uint64_t letter = rdna__random_below(&random, 26);
        at[size++] = kind == 1 ? (char)('0' + letter % 10) : kind == 2 ? (char)('A' + letter) : (char)('a' + letter);
      }
      if (kind > 16)
        size += (size_t)snprintf(at + size, ROOM - size, "%s", pieces[rdna__random_below(&random, PIECES)]);
    }
    tokens[i].piece = (rdna_text){at, size};
  }
  rdna__vocabulary *vocabulary;
  must(rdna__vocabulary_create(tokens, MADE_TOKENS, &vocabulary));
  free(tokens);
  free(text);
  return vocabulary;
}

static rdna__vocabulary *open_vocabulary(const char *path) {
  if (strcmp(path, "made") == 0) return make_vocabulary();
  rdna_gguf *file;
  rdna_tokenizer *tokenizer;
  rdna__vocabulary *vocabulary;
  must(rdna_gguf_open(path, &file));
  must(rdna_tokenizer_open(file, &tokenizer));
  must(rdna__vocabulary_of_tokenizer(tokenizer, &vocabulary));
  rdna_tokenizer_close(tokenizer);
  rdna_gguf_close(file);
  return vocabulary;
}

static bool bit(const uint64_t *bits, int32_t id) { return bits[id / 64] >> (id % 64) & 1; }

/* False where the grammar is too ambiguous. */
static bool mask(walker *w, rdna__matcher *m) {
  double start = now();
  rdna_status status = rdna__matcher_mask(m, w->bits);
  if (status == RDNA_UNSUPPORTED) return false;
  must(status);
  double took = now() - start;
  w->masks++;
  w->seconds += took;
  if (took > w->slowest) w->slowest = took;
  return true;
}

/* One of those that the mask has. A long text is brought to an end. */
static int32_t draw(walker *w, size_t step) {
  static const char closers[] = "\"}],:";
  const rdna__vocabulary *v = w->vocabulary;
  size_t count = 0, closing = 0;
  bool close = step > LONG_WALK || rdna__random_below(&w->random, 3) == 0;
  for (size_t i = 0; i < (v->count + 63) / 64; i++)
    for (uint64_t rest = w->bits[i]; rest; rest &= rest - 1) {
      int32_t id = (int32_t)(i * 64) + __builtin_ctzll(rest);
      rdna_text piece = v->pieces[id];
      if (close && piece.size == 1 && strchr(closers, *piece.data) && *piece.data) {
        w->allowed[count++] = w->allowed[closing];
        w->allowed[closing++] = id;
      } else {
        w->allowed[count++] = id;
      }
    }
  if (count == 0) return -1;
  if (step > LONG_WALK && closing) /* a quote first, as all can follow it */
    for (size_t c = 0; closers[c]; c++)
      for (size_t i = 0; i < closing; i++)
        if (*v->pieces[w->allowed[i]].data == closers[c]) return w->allowed[i];
  return w->allowed[rdna__random_below(&w->random, closing ? closing : count)];
}

static json_t *walk(walker *w) {
  rdna__matcher *m;
  must(rdna__matcher_create(w->grammar, &m));
  char *text = NULL;
  size_t size = 0;
  json_t *out = NULL;
  for (size_t step = 0; step < LONGEST_WALK && !out; step++) {
    bool may_end = rdna__matcher_may_end(m);
    if (may_end && (rdna__matcher_must_end(m) || step > LONG_WALK || rdna__random_below(&w->random, 4) == 0)) {
      out = json_stringn(text ? text : "", size);
      if (!out) out = json_string("this is not UTF-8");
      break;
    }
    if (!mask(w, m)) break;
    int32_t id = draw(w, step);
    if (id < 0) {
      out = json_string("no token is allowed");
      break;
    }
    if (rdna__matcher_accept(m, id) == RDNA_UNSUPPORTED) break;
    rdna_text piece = w->vocabulary->pieces[id];
    bool end = w->vocabulary->control[id];
    text = realloc(text, size + piece.size + 1);
    if (!end) memcpy(text + size, piece.data, piece.size);
    if (!end) size += piece.size;
  }
  rdna__matcher_release(m);
  free(text);
  return out ? out : json_null();
}

/* The tokens that |text| begins with, one of them. */
static int32_t draw_token_of(walker *w, const char *text, size_t size) {
  const rdna__vocabulary *v = w->vocabulary;
  int32_t found = -1;
  size_t node = 0, end = v->node_count, depth = 0, count = 0;
  while (node < end && depth < size) {
    if (v->bytes[node] != (uint8_t)text[depth]) {
      node = v->skips[node];
      continue;
    }
    for (uint32_t t = v->firsts[node]; t < v->firsts[node + 1]; t++)
      if (rdna__random_below(&w->random, ++count) == 0) found = v->order[t];
    end = v->skips[node++];
    depth++;
  }
  return found;
}

/* How much of a text is taken; a token that is refused by its mask or by accepting it ends it, and both must agree. */
static json_t *take(walker *w, const char *text, size_t size) {
  rdna__matcher *m;
  must(rdna__matcher_create(w->grammar, &m));
  size_t at = 0;
  while (at < size) {
    int32_t id = draw_token_of(w, text + at, size - at);
    if (id < 0) break;
    if (!mask(w, m)) {
      rdna__matcher_release(m);
      return json_null();
    }
    rdna_status status = rdna__matcher_accept(m, id);
    if (status == RDNA_UNSUPPORTED) {
      rdna__matcher_release(m);
      return json_null();
    }
    bool taken = status == RDNA_OK;
    if (taken != bit(w->bits, id)) {
      at = SIZE_MAX;
      break;
    }
    if (!taken) break;
    at += w->vocabulary->pieces[id].size;
  }
  json_t *out = json_pack("[I,b]", (json_int_t)at, (int)rdna__matcher_may_end(m));
  rdna__matcher_release(m);
  return out;
}

static json_t *answer(walker *w, const json_t *question) {
  const json_t *schema = json_object_get(question, "schema"), *texts = json_object_get(question, "texts");
  const char *grammar = json_string_value(json_object_get(question, "grammar"));
  char *made = NULL;
  rdna_status status = RDNA_OK;
  if (schema) {
    char *text = json_dumps(schema, JSON_ENCODE_ANY);
    status = rdna__grammar_of_schema(text, strlen(text), &made);
    free(text);
    grammar = made;
  }
  double start = now();
  if (!grammar) grammar = rdna__grammar_any_object();
  if (status == RDNA_OK) status = rdna__grammar_compile(w->vocabulary, grammar, strlen(grammar), &w->grammar);
  if (status != RDNA_OK) {
    free(made);
    return json_pack("{s:s, s:s}", "error", rdna_last_error(), "status", rdna_status_name(status));
  }
  double compiled = now() - start;
  w->masks = 0;
  w->seconds = w->slowest = 0;
  rdna__random_seed(&w->random, (uint64_t)json_integer_value(json_object_get(question, "seed")));
  json_t *walks = json_array(), *taken = json_array();
  for (json_int_t i = json_integer_value(json_object_get(question, "walks")); i > 0; i--)
    json_array_append_new(walks, walk(w));
  for (size_t i = 0; i < json_array_size(texts); i++) {
    const json_t *text = json_array_get(texts, i);
    json_array_append_new(taken, take(w, json_string_value(text), json_string_length(text)));
  }
  rdna__grammar_release(w->grammar);
  free(made);
  return json_pack("{s:o, s:o, s:I, s:f, s:f, s:f}", "walks", walks, "taken", taken, "masks", w->masks, "seconds",
                   w->seconds, "slowest", w->slowest, "compiled", compiled);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  walker w = {.vocabulary = open_vocabulary(argv[1])};
  w.bits = malloc((w.vocabulary->count / 64 + 1) * sizeof *w.bits);
  w.allowed = malloc(w.vocabulary->count * sizeof *w.allowed);
  char *line = NULL;
  size_t room = 0;
  while (getline(&line, &room, stdin) > 0) {
    json_t *question = json_loads(line, 0, NULL), *said = question ? answer(&w, question) : json_string("no JSON");
    json_dumpf(said, stdout, JSON_COMPACT | JSON_ENCODE_ANY);
    putchar('\n');
    fflush(stdout);
    json_decref(said);
    json_decref(question);
  }
  free(line);
  free(w.bits);
  free(w.allowed);
  rdna__vocabulary_release(w.vocabulary);
  return 0;
}
