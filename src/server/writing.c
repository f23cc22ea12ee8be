#include "server/writing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static rdna_status add_biases(choice *c, size_t vocabulary) {
  const settings *s = &c->job->settings;
  if (s->bias_count == 0 && s->frequency_penalty == 0 && s->presence_penalty == 0 && !s->grammar) return RDNA_OK;
  c->offsets = calloc(2 * vocabulary, sizeof *c->offsets);
  if (!c->offsets) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for biases");
  for (size_t i = 0; i < s->bias_count; i++) c->offsets[s->bias_ids[i]] += s->biases[i];
  return RDNA_OK;
}

static rdna_status begin_grammar(choice *c) {
  const settings *s = &c->job->settings;
  c->thinks = s->thinks_first;
  if (!s->grammar) return RDNA_OK;
  c->allowed = malloc((grammars_tokens(s->grammars) / 64 + 1) * sizeof *c->allowed);
  if (!c->allowed) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a grammar");
  return s->grammar_begin < 0 ? rdna__matcher_create(s->grammar, &c->matcher) : RDNA_OK;
}

rdna_status writing_begin(choice *c, const rdna_tokenizer *tokenizer, size_t vocabulary) {
  rdna_sampling sampling = c->job->settings.sampling;
  sampling.seed = c->seed;
  RDNA_TRY(rdna_sampler_create(&sampling, &c->sampler));
  RDNA_TRY(rdna_detokenizer_create(tokenizer, c->job->settings.show_control, &c->detokenizer));
  RDNA_TRY(add_biases(c, vocabulary));
  RDNA_TRY(begin_grammar(c));
  /* the detokenizer must know what stands before: a leading space is the prompt's to drop, not ours */
  for (size_t i = 0; i < c->prompt->count; i++) {
    rdna_text ignored;
    RDNA_TRY(rdna_tokens_append(&c->history, c->prompt->ids[i]));
    if (c->prompt->ids[i] < 0) continue; /* of a picture */
    RDNA_TRY(rdna_sampler_accept(c->sampler, c->prompt->ids[i]));
    RDNA_TRY(rdna_detokenizer_push(c->detokenizer, c->prompt->ids[i], &ignored));
  }
  return RDNA_OK;
}

size_t find_stop(const char *text, size_t size, char *const *stops, size_t stop_count, const char **out_stop,
                 size_t *out_safe) {
  size_t first = size, safe = size;
  *out_stop = NULL;
  for (size_t i = 0; size > 0 && i < stop_count; i++) {
    size_t length = strlen(stops[i]);
    const char *at = memmem(text, size, stops[i], length);
    if (at && (size_t)(at - text) < first) {
      first = (size_t)(at - text);
      *out_stop = stops[i];
    }
    size_t part = length - 1 < size ? length - 1 : size; /* the longest beginning of a stop that the text ends with */
    while (part > 0 && memcmp(text + size - part, stops[i], part) != 0) part--;
    if (size - part < safe) safe = size - part;
  }
  *out_safe = *out_stop ? first : safe;
  return first;
}

/* The likeliest |count| of the logits, likeliest first; of equal ones the smaller id. */
static void find_top(const float *logits, size_t vocabulary, logprob *tops, int count) {
  int found = 0;
  for (size_t i = 0; i < vocabulary; i++) {
    if (found == count && !(logits[i] > tops[found - 1].value)) continue;
    int at = found < count ? found++ : count - 1;
    for (; at > 0 && logits[i] > tops[at - 1].value; at--) tops[at] = tops[at - 1];
    tops[at] = (logprob){(int32_t)i, logits[i]};
  }
}

static void find_logprobs(const float *logits, size_t vocabulary, int32_t id, int top_count, addition *out) {
  double top = -INFINITY, sum = 0;
  for (size_t i = 0; i < vocabulary; i++)
    if (logits[i] > top) top = logits[i];
  for (size_t i = 0; i < vocabulary; i++) sum += exp(logits[i] - top);
  double total = top + log(sum);
  out->value = (float)(logits[id] - total);
  if (top_count > 0) find_top(logits, vocabulary, out->tops, top_count);
  for (int i = 0; i < top_count; i++) out->tops[i].value = (float)(out->tops[i].value - total);
}

/* |logits| with what the request adds to them, and without what its grammar rules out. */
static rdna_status edit(choice *c, const float *logits, size_t vocabulary, const float **out) {
  *out = logits;
  if (!c->offsets) return RDNA_OK;
  float *sum = c->offsets + vocabulary;
  *out = sum;
  for (size_t i = 0; i < vocabulary; i++) sum[i] = logits[i] + c->offsets[i];
  if (!c->matcher) return RDNA_OK;
  size_t known = grammars_tokens(c->job->settings.grammars);
  if (!c->is_masked) RDNA_TRY(rdna__matcher_mask(c->matcher, c->allowed));
  c->is_masked = false;
  rdna__mask_apply(c->allowed, sum, known < vocabulary ? known : vocabulary);
  for (size_t i = known; i < vocabulary; i++) sum[i] = -INFINITY; /* padding, which no token is */
  return RDNA_OK;
}

/* The grammar goes on behind |id|, or begins there; |*out_whole| when nothing may follow. */
static rdna_status follow_grammar(choice *c, int32_t id, bool *out_whole) {
  const settings *s = &c->job->settings;
  *out_whole = false;
  if (id == s->think) c->thinks = true;
  if (id == s->think_end) c->thinks = false;
  if (!s->grammar) return RDNA_OK;
  bool began = c->matcher != NULL;
  if (!began && (id != s->grammar_begin || c->thinks)) return RDNA_OK;
  if (!began) RDNA_TRY(rdna__matcher_create(s->grammar, &c->matcher));
  if (began || s->begin_is_part) RDNA_TRY(rdna__matcher_accept(c->matcher, id));
  *out_whole = rdna__matcher_must_end(c->matcher);
  return RDNA_OK;
}

static void count_penalties(choice *c, int32_t id) {
  const settings *s = &c->job->settings;
  if (!c->offsets || (s->frequency_penalty == 0 && s->presence_penalty == 0)) return;
  c->offsets[id] -= (float)s->frequency_penalty;
  for (size_t i = c->prompt->count; i < c->history.count; i++)
    if (c->history.ids[i] == id) return;
  c->offsets[id] -= (float)s->presence_penalty;
}

/* Moves what can be shown of the held text to |out|, all of it when the text ends. */
static void release_text(choice *c, addition *out) {
  const settings *s = &c->job->settings;
  const char *stop;
  size_t safe, size = c->held.size;
  find_stop(c->held.data, size, s->stops, s->stop_count, &stop, &safe);
  if (stop) {
    out->finish_reason = "stop";
    out->stop = stop;
  }
  size_t shown = stop || !out->finish_reason ? safe : size;
  bytes_append(&out->text, c->held.data, shown);
  bytes_drop(&c->held, stop ? size : shown);
}

static rdna_status next(choice *c, const rdna_tokenizer *tokenizer, const float *logits, size_t vocabulary, int context,
                        addition *out) {
  const settings *s = &c->job->settings;
  const float *edited;
  rdna_text text;
  int32_t id;
  bool whole;
  RDNA_TRY(edit(c, logits, vocabulary, &edited));
  RDNA_TRY(rdna_sampler_sample(c->sampler, edited, vocabulary, &id));
  if ((!s->ignore_end || c->matcher) && rdna_tokenizer_is_end(tokenizer, id)) {
    out->finish_reason = "stop";
  } else {
    out->id = id;
    if (s->top_logprobs >= 0) find_logprobs(logits, vocabulary, id, s->top_logprobs, out);
    count_penalties(c, id);
    RDNA_TRY(rdna_tokens_append(&c->history, id));
    RDNA_TRY(rdna_detokenizer_push(c->detokenizer, id, &text));
    bytes_append(&c->held, text.data, text.size);
    size_t written = c->history.count - c->prompt->count;
    if ((s->most_tokens >= 0 && written >= (size_t)s->most_tokens) || c->history.count > (size_t)context)
      out->finish_reason = "length";
    out->thought = c->thinks;
    RDNA_TRY(follow_grammar(c, id, &whole));
    if (whole) out->finish_reason = "stop";
  }
  if (out->finish_reason) {
    rdna_detokenizer_finish(c->detokenizer, &text);
    bytes_append(&c->held, text.data, text.size);
  }
  release_text(c, out);
  if (c->held.failed || out->text.failed) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the text");
  return RDNA_OK;
}

void writing_next(choice *c, const rdna_tokenizer *tokenizer, const float *logits, size_t vocabulary, int context,
                  addition *out) {
  *out = (addition){.id = -1, .text = {out->text.data, 0, out->text.room, false}};
  out->status = next(c, tokenizer, logits, vocabulary, context, out);
  if (out->status != RDNA_OK) snprintf(out->error, sizeof out->error, "%s", rdna_last_error());
}

static bool make_room(choice *c, size_t tops) {
  if (c->token_count < c->token_room) return true;
  size_t room = 2 * c->token_room + 64;
  int32_t *ids = realloc(c->ids, room * sizeof *ids);
  if (ids) c->ids = ids;
  float *values = realloc(c->values, room * sizeof *values);
  if (values) c->values = values;
  logprob *top = tops ? realloc(c->tops, room * tops * sizeof *top) : c->tops;
  if (top) c->tops = top;
  size_t *ends = realloc(c->ends, room * sizeof *ends);
  if (ends) c->ends = ends;
  if (!ids || !values || !ends || (tops && !top)) return false;
  c->token_room = room;
  return true;
}

bool writing_show(choice *c, const addition *a) {
  size_t tops = c->job->settings.top_logprobs > 0 ? (size_t)c->job->settings.top_logprobs : 0;
  bytes_append(&c->text, a->text.data, a->text.size);
  if (a->id >= 0) {
    if (!make_room(c, tops)) return false;
    c->ids[c->token_count] = a->id;
    c->values[c->token_count] = a->value;
    c->ends[c->token_count] = c->text.size;
    if (tops) memcpy(c->tops + c->token_count * tops, a->tops, tops * sizeof *a->tops);
    c->token_count++;
    c->thought_tokens += a->thought;
  }
  c->stop = a->stop;
  return !c->text.failed;
}
