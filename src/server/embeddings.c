/* Vectors of texts: OpenAI's /v1/embeddings, Ollama's /api/embed and its older /api/embeddings. */
#include "server/embeddings.h"

#include <stdlib.h>
#include <string.h>

#include "rdna/llm_embed.h"
#include "server/clock.h"
#include "server/ollama.h"
#include "server/openai.h"
#include "server/routes.h"

enum { MOST_TEXTS = 2048, MOST_DIMENSIONS = 1000000 };

/* ---- requests ---- */

bool read_embedding_form(const json_t *json, bool *out_base64, int64_t *out_dimensions, problem *p) {
  const char *format = "float";
  *out_dimensions = 0;
  if (!read_text(json, "encoding_format", &format, p) ||
      !read_integer(json, "dimensions", 1, MOST_DIMENSIONS, out_dimensions, p))
    return false;
  *out_base64 = strcmp(format, "base64") == 0;
  return *out_base64 || strcmp(format, "float") == 0 ||
         refuse(p, 400, NULL, "encoding_format", "'encoding_format' must be \"float\" or \"base64\"");
}

/* How the answer is to be is kept in the exchange: |x->block| is its dimensions and |x->state| whether it is base64. */
static bool read_form(exchange *x, const json_t *json, problem *p) {
  bool base64;
  int64_t dimensions, width = rdna_llm_get_info(x->model->llm)->width;
  if (!read_embedding_form(json, &base64, &dimensions, p)) return false;
  if (dimensions > width)
    return refuse(p, 400, NULL, "dimensions", "'dimensions' is %lld, and the model's vectors have %lld",
                  (long long)dimensions, (long long)width);
  x->state = base64;
  x->block = (int)(dimensions ? dimensions : width);
  return true;
}

/* Cuts what the context has no room for, but for the token that the model expects at the end. */
static void shorten(const exchange *x, rdna_tokens *tokens) {
  size_t context = (size_t)scheduler_context(x->scheduler);
  if (tokens->count <= context) return;
  if (rdna_tokenizer_get_info(x->model->tokenizer)->add_eos) tokens->ids[context - 1] = tokens->ids[tokens->count - 1];
  tokens->count = context;
}

/* The texts from |field|; a problem is in that field, whatever found it. */
static bool read_texts(exchange *x, request *r, const char *field, bool shortens, problem *p) {
  bool fine = openai_read_prompts(x, r, field, MOST_TEXTS, p);
  for (size_t i = 0; fine && shortens && i < r->prompt_count; i++) shorten(x, &r->prompts[i]);
  fine = fine && request_check_prompts(x, r, p);
  if (!fine) strncpy(p->field, field, sizeof p->field - 1);
  return fine;
}

/* ---- answers ---- */

void append_base64(bytes *out, const void *data, size_t size) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const unsigned char *p = data;
  for (size_t i = 0; i < size; i += 3) {
    size_t left = size - i;
    unsigned long bits = (unsigned long)p[i] << 16 | (left > 1 ? (unsigned long)p[i + 1] << 8 : 0) |
                         (left > 2 ? (unsigned long)p[i + 2] : 0);
    const char four[4] = {digits[bits >> 18], digits[bits >> 12 & 63], left > 1 ? digits[bits >> 6 & 63] : '=',
                          left > 2 ? digits[bits & 63] : '='};
    bytes_append(out, four, sizeof four);
  }
}

/* Text |index|'s vector as the answer has it, in its place among the job's; NULL without memory. */
static json_t *vector_of(const exchange *x, size_t index, bool normalize) {
  const job *j = x->job;
  float *vector = j->vectors + index * (size_t)j->width;
  json_t *values = NULL;
  if (rdna_llm_embedding_finish(vector, j->width, x->block, normalize, vector) != RDNA_OK) return NULL;
  if (x->state) {
    bytes text = {0};
    append_base64(&text, vector, (size_t)x->block * sizeof *vector);
    if (!text.failed) values = json_stringn(text.data, text.size);
    bytes_deinit(&text);
    return values;
  }
  values = json_array();
  for (int i = 0; values && i < x->block; i++) json_array_append_new(values, json_real((double)vector[i]));
  return values;
}

static json_t *whole(exchange *x) {
  json_t *list = json_array();
  for (size_t i = 0; i < x->job->prompt_count; i++)
    json_array_append_new(list, json_pack("{s:s, s:I, s:o}", "object", "embedding", "index", (json_int_t)i, "embedding",
                                          vector_of(x, i, true)));
  json_int_t tokens = prompt_tokens(x->job);
  return json_pack("{s:s, s:o, s:s, s:{s:I, s:I}}", "object", "list", "data", list, "model", x->model->name, "usage",
                   "prompt_tokens", tokens, "total_tokens", tokens);
}

static json_t *whole_ollama(exchange *x) {
  json_t *list = json_array();
  for (size_t i = 0; x->job && i < x->job->prompt_count; i++) json_array_append_new(list, vector_of(x, i, true));
  return json_pack("{s:s, s:o, s:I, s:i, s:I}", "model", x->model->name, "embeddings", list, "total_duration",
                   (json_int_t)(1e9 * (clock_seconds() - x->begun)), "load_duration", 0, "prompt_eval_count",
                   x->job ? (json_int_t)prompt_tokens(x->job) : 0);
}

/* The older form gives vectors as long as they are. */
static json_t *whole_ollama_old(exchange *x) {
  return json_pack("{s:o}", "embedding", x->job ? vector_of(x, 0, false) : json_array());
}

static void refuse_as_ollama(const problem *p, bytes *out) { ollama.refuse(p, out); }

const dialect embeddings = {.refuse = openai_refuse, .whole = whole};
const dialect ollama_embed = {.refuse = refuse_as_ollama, .whole = whole_ollama};
const dialect ollama_embeddings = {.refuse = refuse_as_ollama, .whole = whole_ollama_old};

enum MHD_Result handle_embeddings(exchange *x) {
  static const field_row fields[] = {
      {"model", FIELD_READ},   {"input", FIELD_READ},    {"encoding_format", FIELD_READ}, {"dimensions", FIELD_READ},
      {"user", FIELD_IGNORED}, {"priority", FIELD_READ}, {"timeout", FIELD_READ}};
  request r = REQUEST_DEFAULT;
  problem *p = &x->problem;
  r.json = parse_object(x->body.data, x->body.size, p);
  bool fine = r.json && check_fields(r.json, fields, sizeof fields / sizeof *fields, p) && read_model(x, r.json, p) &&
              read_form(x, r.json, p) && read_urgency(r.json, &r.settings, p) && read_texts(x, &r, "input", false, p);
  if (fine) return request_embed(x, &r, NULL);
  request_deinit(&r);
  return respond_problem(x);
}

static bool is_empty(const json_t *input) {
  return !input || json_is_null(input) || (json_is_string(input) && json_string_length(input) == 0) ||
         (json_is_array(input) && json_array_size(input) == 0);
}

/* A request without texts only loads the model. */
static enum MHD_Result handle_ollama(exchange *x, const field_row *rows, size_t count, const char *field) {
  request r = REQUEST_DEFAULT;
  problem *p = &x->problem;
  bool shortens = true;
  r.json = parse_object(x->body.data, x->body.size, p);
  bool fine = r.json && check_fields(r.json, rows, count, p) && read_model(x, r.json, p) && keep_model(x, r.json, p) &&
              read_form(x, r.json, p) && read_bool(r.json, "truncate", &shortens, p) &&
              read_urgency(r.json, &r.settings, p);
  bool empty = fine && is_empty(json_object_get(r.json, field));
  if (fine && !empty && read_texts(x, &r, field, shortens, p)) return request_embed(x, &r, NULL);
  request_deinit(&r);
  return empty ? respond_json(x, 200, x->dialect->whole(x)) : respond_problem(x);
}

enum MHD_Result handle_ollama_embed(exchange *x) {
  static const field_row fields[] = {{"model", FIELD_READ},      {"input", FIELD_READ},      {"truncate", FIELD_READ},
                                     {"dimensions", FIELD_READ}, {"keep_alive", FIELD_READ}, {"options", FIELD_IGNORED},
                                     {"priority", FIELD_READ},   {"timeout", FIELD_READ}};
  return handle_ollama(x, fields, sizeof fields / sizeof *fields, "input");
}

enum MHD_Result handle_ollama_embeddings(exchange *x) {
  static const field_row fields[] = {{"model", FIELD_READ},      {"prompt", FIELD_READ},   {"keep_alive", FIELD_READ},
                                     {"options", FIELD_IGNORED}, {"priority", FIELD_READ}, {"timeout", FIELD_READ}};
  return handle_ollama(x, fields, sizeof fields / sizeof *fields, "prompt");
}
