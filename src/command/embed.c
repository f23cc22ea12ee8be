/* rdna embed: vectors of texts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/status.h"
#include "command/command.h"
#include "rdna/llm_embed.h"

enum { AT_ONCE = 256 }; /* texts, whose vectors are written before the next are read */

typedef struct embed_options {
  device_choice device;
  const char *pooling, *normalize, *kv;
  int64_t dimensions, context, batch;
  bool ids, exact;
} embed_options;

/* What vectors are made with. */
typedef struct embedding {
  const embed_options *options;
  const rdna_tokenizer *tokenizer; /* NULL: texts are ids */
  rdna_llm_embedder *embedder;
  rdna_llm_embedder_info info;
} embedding;

static rdna_llm_pooling pooling_of(const char *name) {
  static const char *const names[] = {"file", "none", "mean", "cls", "last", "rank"};
  int i = 0;
  while (strcmp(name, names[i]) != 0) i++;
  return (rdna_llm_pooling)i;
}

static rdna_status read_tokens(const embedding *e, const char *text, rdna_tokens *tokens) {
  if (!e->tokenizer) return parse_numbers("--ids", text, tokens);
  return rdna_tokenizer_encode(e->tokenizer, text, strlen(text), RDNA_ENCODE_ADD_SPECIAL, tokens);
}

/* A line of JSON for |text|, whose |rows| vectors are |values|. */
static rdna_status write_line(const embedding *e, const char *text, int tokens, float *values, int rows) {
  bool normalize = strcmp(e->options->normalize, "yes") == 0 && e->info.pooling != RDNA_LLM_POOLING_RANK;
  int dimensions = e->options->dimensions ? (int)e->options->dimensions : e->info.values;
  json_t *vectors = json_array();
  for (int i = 0; i < rows; i++) {
    float *v = values + (size_t)i * (size_t)e->info.values;
    json_t *vector = json_array();
    rdna_status status = rdna_llm_embedding_finish(v, e->info.values, dimensions, normalize, v);
    for (int k = 0; status == RDNA_OK && k < dimensions; k++) json_array_append_new(vector, json_real((double)v[k]));
    json_array_append_new(vectors, vector);
    if (status == RDNA_OK) continue;
    json_decref(vectors);
    return status;
  }
  bool each = e->info.pooling == RDNA_LLM_POOLING_NONE, labels = e->info.pooling == RDNA_LLM_POOLING_RANK;
  json_t *line = json_pack("{s:o, s:i, s:O}", "text", rdna__json_of_text(text, strlen(text)), "tokens", tokens,
                           each     ? "embeddings"
                           : labels ? "labels"
                                    : "embedding",
                           each ? vectors : json_array_get(vectors, 0));
  json_decref(vectors);
  int failed = !line || json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9)) != 0 || putchar('\n') == EOF;
  json_decref(line);
  return failed ? rdna__fail(RDNA_IO_ERROR, "cannot write the vectors") : RDNA_OK;
}

/* Of up to AT_ONCE texts. */
static rdna_status embed_some(const embedding *e, const char *const *texts, int count) {
  rdna_tokens tokens[AT_ONCE] = {{0}};
  rdna_llm_text read[AT_ONCE] = {{0}};
  size_t rows = 0;
  rdna_status status = RDNA_OK;
  for (int i = 0; status == RDNA_OK && i < count; i++) {
    status = read_tokens(e, texts[i], &tokens[i]);
    read[i] = (rdna_llm_text){.tokens = tokens[i].ids, .count = (int32_t)tokens[i].count};
    rows += e->info.pooling == RDNA_LLM_POOLING_NONE ? tokens[i].count : 1;
  }
  float *values = malloc(rows * (size_t)e->info.values * sizeof *values + 1), *at = values;
  if (!values) status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %zu vectors", rows);
  if (status == RDNA_OK) status = rdna_llm_embed(e->embedder, read, count, values);
  for (int i = 0; status == RDNA_OK && i < count; i++) {
    int of_text = e->info.pooling == RDNA_LLM_POOLING_NONE ? read[i].count : 1;
    status = write_line(e, texts[i], read[i].count, at, of_text);
    at += (size_t)of_text * (size_t)e->info.values;
  }
  free(values);
  for (int i = 0; i < count; i++) rdna_tokens_deinit(&tokens[i]);
  return status;
}

/* Lines of standard input. */
static rdna_status embed_lines(const embedding *e) {
  char *lines[AT_ONCE] = {0};
  int count = 0;
  rdna_status status = RDNA_OK;
  for (bool more = true; more && status == RDNA_OK;) {
    size_t room = 0;
    ssize_t size = getline(&lines[count], &room, stdin);
    more = size >= 0;
    if (more && size > 0 && lines[count][size - 1] == '\n') lines[count][size - 1] = 0;
    count += more;
    if (count < AT_ONCE && (more || count == 0)) continue;
    status = embed_some(e, (const char *const *)lines, count);
    for (int i = 0; i < count; i++) free(lines[i]), lines[i] = NULL;
    count = 0;
  }
  for (int i = 0; i < AT_ONCE; i++) free(lines[i]);
  return status;
}

static rdna_status embed(const embed_options *o, const rdna_gguf *file, const char *const *texts, int count) {
  rdna_device *device = NULL;
  rdna_llm *llm = NULL;
  rdna_tokenizer *tokenizer = NULL;
  embedding e = {.options = o, .info = {RDNA_LLM_EMBEDDER_INFO_INIT}};
  rdna_llm_embedder_options options = {RDNA_LLM_EMBEDDER_OPTIONS_INIT, .pooling = pooling_of(o->pooling),
                                       .context = (int)o->context,     .batch = (int)o->batch,
                                       .kv_dtype = kv_type(o->kv),     .exact = o->exact};
  rdna_status status = o->ids ? RDNA_OK : rdna_tokenizer_open(file, &tokenizer);
  if (status == RDNA_OK) status = open_chosen_device(&o->device, &device);
  if (status == RDNA_OK) status = rdna_llm_open(device, file, show_loading, NULL, &llm);
  end_progress();
  if (status == RDNA_OK) status = rdna_llm_embedder_create(llm, &options, &e.embedder);
  if (status == RDNA_OK) status = rdna_llm_embedder_get_info(e.embedder, &e.info);
  e.tokenizer = tokenizer;
  if (status == RDNA_OK) status = count > 0 ? embed_some(&e, texts, count) : embed_lines(&e);
  rdna_llm_embedder_release(e.embedder);
  rdna_llm_release(llm);
  rdna_device_release(device);
  rdna_tokenizer_close(tokenizer);
  return status;
}

int command_embed(int argc, char **argv) {
  embed_options o = {.device = DEVICE_CHOICE_DEFAULT, .pooling = "file", .normalize = "yes", .kv = "f16"};
  const option_row options[] = {
      {"--pooling", OPTION_CHOICE, &o.pooling, "file|none|mean|cls|last|rank",
       "how tokens become one vector (file: as the model's says)", 0, 0},
      {"--normalize", OPTION_CHOICE, &o.normalize, "yes|no", "vectors of length 1 (yes)", 0, 0},
      {"--dimensions", OPTION_INTEGER, &o.dimensions, "N", "the first so many, of models that are trained for it", 1,
       1e6},
      {"--ids", OPTION_FLAG, &o.ids, NULL, "texts are token ids, 1,2,3", 0, 0},
      {"--context", OPTION_INTEGER, &o.context, "N", "most tokens of a text (the model's, at most 4096)", 1, 1e8},
      {"--batch", OPTION_INTEGER, &o.batch, "N", "most tokens in one pass (512)", 1, 65536},
      {"--kv", OPTION_CHOICE, &o.kv, KV_CHOICES, "type of the cache (f16)", 0, 0},
      {"--exact", OPTION_FLAG, &o.exact, NULL, "round nothing in products", 0, 0},
      DEVICE_OPTIONS(o.device),
  };
  const command_line line = {"rdna embed",
                             "Writes a vector for each text, or for each line of standard input, as a line of JSON.",
                             "MODEL.gguf|FOLDER [TEXT…]",
                             1,
                             POSITIONAL_MAX,
                             options,
                             sizeof options / sizeof *options};
  const char *positionals[POSITIONAL_MAX];
  int count, exit_status;
  if (!parse_command_line(&line, argc, argv, positionals, &count, &exit_status)) return exit_status;
  rdna_gguf *file = NULL;
  rdna_status status = rdna_model_open(positionals[0], &file);
  if (status == RDNA_OK) status = embed(&o, file, positionals + 1, count - 1);
  rdna_gguf_close(file);
  return status == RDNA_OK ? EXIT_OK : fail_with_status();
}
