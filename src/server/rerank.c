/* Texts by what they have to do with a query: /v1/rerank, in the form that Jina, Cohere, vLLM and llama.cpp share. An
 * encoder reads the query and one text as a pair, and its only label is the score:
 *
 *     BERT's vocabularies:       [CLS] query [SEP] document [SEP]
 *     those of RoBERTa's kind:   <s> query </s></s> document </s>
 *
 * A language model is asked whether the text answers the query, as judging.h has it, and labels its last token with
 * yes and no: the score is their difference, so that its sigmoid is the probability of yes among the two. */
#include "server/rerank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/openai.h"
#include "server/request.h"
#include "server/routes.h"

enum { MOST_DOCUMENTS = 2048 };

/* ---- requests ---- */

const json_t *rerank_document(const json_t *document) {
  const json_t *text = json_is_object(document) ? json_object_get(document, "text") : document;
  return json_is_string(text) ? text : NULL;
}

bool read_rerank_form(const json_t *json, rerank_form *out, problem *p) {
  const json_t *documents = json_object_get(json, "documents");
  size_t count = json_array_size(documents);
  *out = (rerank_form){.query = json_object_get(json, "query"), .documents = documents, .top = (int64_t)count};
  if (!json_is_string(out->query)) return refuse(p, 400, NULL, "query", "'query' must be a text");
  if (count == 0) return refuse(p, 400, NULL, "documents", "'documents' must be a list of texts, and not empty");
  if (count > MOST_DOCUMENTS)
    return refuse(p, 400, NULL, "documents", "%zu documents are more than the %d of one request", count,
                  MOST_DOCUMENTS);
  for (size_t i = 0; i < count; i++)
    if (!rerank_document(json_array_get(documents, i)))
      return refuse(p, 400, NULL, "documents", "element %zu of 'documents' is neither a text nor an object with 'text'",
                    i);
  if (!read_integer(json, "top_n", 1, INT32_MAX, &out->top, p) ||
      !read_bool(json, "return_documents", &out->returns_documents, p))
    return false;
  if (out->top > (int64_t)count) out->top = (int64_t)count;
  return true;
}

static bool encode(const served_model *m, const json_t *text, const char *field, rdna_tokens *tokens, problem *p) {
  return rdna_tokenizer_encode(m->tokenizer, json_string_value(text), json_string_length(text), 0, tokens) == RDNA_OK ||
         refuse_with_status(p, field);
}

/* A piece of a pair, of which |ids| may be many. */
static bool append(rdna_tokens *to, const int32_t *ids, size_t count, problem *p) {
  for (size_t i = 0; i < count; i++)
    if (rdna_tokens_append(to, ids[i]) != RDNA_OK) return refuse_with_status(p, NULL);
  return true;
}

static rdna_text text_of(const json_t *json) { return (rdna_text){json_string_value(json), json_string_length(json)}; }

/* |query| is |form|'s, as tokens. */
static bool make_pair(const served_model *m, const rdna_tokens *query, const rerank_form *form, const json_t *document,
                      rdna_tokens *pair, int32_t *out_second, problem *p) {
  const rdna_tokenizer_info *info = rdna_tokenizer_get_info(m->tokenizer);
  if (m->judging.middle.data)
    return judging_encode(&m->judging, m->tokenizer, text_of(form->query), text_of(document), pair) == RDNA_OK ||
           refuse_with_status(p, "documents");
  bool words = strcmp(info->model, "bert") == 0;
  if (!append(pair, &info->bos, 1, p) || !append(pair, query->ids, query->count, p) || !append(pair, &info->eos, 1, p))
    return false;
  if (!words && !append(pair, &info->eos, 1, p)) return false;
  *out_second = words ? (int32_t)pair->count : 0; /* the others tell pairs apart by the ends alone */
  return encode(m, document, "documents", pair, p) && append(pair, &info->eos, 1, p);
}

static bool make_pairs(exchange *x, request *r, const rerank_form *form, int32_t *seconds, problem *p) {
  const rdna_tokenizer_info *info = rdna_tokenizer_get_info(x->model->tokenizer);
  size_t context = (size_t)scheduler_context(x->scheduler);
  rdna_tokens query = {0};
  bool fine = true, asked = x->model->judging.middle.data != NULL;
  if (!asked && (info->bos < 0 || info->eos < 0))
    return refuse(p, 400, NULL, "model", "the model '%s' has no tokens that begin and end the texts of a pair",
                  x->model->name);
  /* it is copied for each document */
  if (encode(x->model, form->query, "query", &query, p) && query.count >= context)
    refuse(p, 400, "context_length_exceeded", "query", "the query has %zu tokens, and the context room for %zu",
           query.count, context);
  fine = !p->status && request_add_prompts(r, json_array_size(form->documents), p);
  for (size_t i = 0; fine && i < r->prompt_count; i++) {
    fine = make_pair(x->model, &query, form, rerank_document(json_array_get(form->documents, i)), &r->prompts[i],
                     &seconds[i], p);
    if (fine && r->prompts[i].count > context)
      fine = refuse(p, 400, "context_length_exceeded", "documents",
                    "document %zu and the query have %zu tokens, and the context room for %zu; shorten them", i,
                    r->prompts[i].count, context);
  }
  rdna_tokens_deinit(&query);
  return fine;
}

/* ---- answers ---- */

typedef struct place {
  double score;
  size_t index;
} place;

static int compare(const void *a, const void *b) {
  const place *one = a, *other = b;
  if (one->score != other->score) return one->score > other->score ? -1 : 1;
  return one->index < other->index ? -1 : one->index > other->index;
}

/* |x->block| is how many are told, |x->echo| the documents if they are to be told too. */
static json_t *whole(exchange *x) {
  const job *j = x->job;
  place *places = calloc(j->prompt_count, sizeof *places);
  json_t *results = places ? json_array() : NULL;
  for (size_t i = 0; places && i < j->prompt_count; i++) {
    const float *labels = j->vectors + i * (size_t)j->width;
    places[i] = (place){(double)labels[0] - (j->width == 2 ? (double)labels[1] : 0), i};
  }
  if (places) qsort(places, j->prompt_count, sizeof *places, compare);
  for (int i = 0; results && i < x->block; i++) {
    json_t *result = json_pack("{s:I, s:f}", "index", (json_int_t)places[i].index, "relevance_score",
                               1 / (1 + exp(-places[i].score)));
    const json_t *text = rerank_document(json_array_get(x->echo, places[i].index));
    if (text) json_object_set_new(result, "document", json_pack("{s:O}", "text", text));
    json_array_append_new(results, result);
  }
  free(places);
  json_int_t tokens = prompt_tokens(j);
  make_id(x->id, sizeof x->id, "rerank-");
  return json_pack("{s:s, s:s, s:s, s:o, s:{s:I, s:I}}", "id", x->id, "object", "list", "model", x->model->name,
                   "results", results, "usage", "prompt_tokens", tokens, "total_tokens", tokens);
}

const dialect rerank = {.refuse = openai_refuse, .whole = whole};

enum MHD_Result handle_rerank(exchange *x) {
  static const field_row fields[] = {{"model", FIELD_READ},     {"query", FIELD_READ},
                                     {"documents", FIELD_READ}, {"top_n", FIELD_READ},
                                     {"user", FIELD_IGNORED},   {"return_documents", FIELD_READ},
                                     {"priority", FIELD_READ},  {"timeout", FIELD_READ}};
  request r = REQUEST_DEFAULT;
  problem *p = &x->problem;
  rerank_form form;
  int32_t *seconds = NULL;
  r.json = parse_object(x->body.data, x->body.size, p);
  bool fine = r.json && check_fields(r.json, fields, sizeof fields / sizeof *fields, p) && read_model(x, r.json, p) &&
              read_rerank_form(r.json, &form, p) && read_urgency(r.json, &r.settings, p);
  if (fine) {
    seconds = calloc(json_array_size(form.documents), sizeof *seconds);
    fine =
        seconds ? make_pairs(x, &r, &form, seconds, p) : refuse(p, 500, NULL, NULL, "no host memory for the request");
  }
  if (fine) {
    x->block = (int)form.top;
    if (form.returns_documents) x->echo = json_incref((json_t *)form.documents);
    return request_embed(x, &r, seconds);
  }
  free(seconds);
  request_deinit(&r);
  return respond_problem(x);
}
