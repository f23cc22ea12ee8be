/* Settings and tokenizers: the input is {"config": …, "tokenizer": …, "tokenizer_config": …, "generation_config": …};
 * or, where it does not begin so, a tokenizer.model. What becomes keys is read back by nobody here: the writer's own
 * target is gguf_fuzz. */
#include <stdlib.h>
#include <string.h>

#include "model/weights/hf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(rdna_status status) {
  if (status != RDNA_OK && !*rdna_last_error()) abort();
}

static rdna_gguf_writer *new_writer(void) {
  rdna_gguf_writer *writer = NULL;
  if (rdna_gguf_writer_create(&writer) != RDNA_OK) abort();
  return writer;
}

static void read_config(json_t *json) {
  rdna__hf_config config;
  rdna_status status = rdna__hf_config_read(json, &config);
  check(status);
  if (status != RDNA_OK || config.head_dim > 4096) return; /* memory for that is the weights' to refuse */
  rdna_gguf_writer *writer = new_writer();
  check(rdna__hf_config_put(&config, writer));
  rdna__hf_factors factors[RDNA__HF_MOST_FACTORS];
  check(rdna__hf_rope_factors(&config, factors));
  for (int i = 0; i < RDNA__HF_MOST_FACTORS; i++) free(factors[i].values);
  rdna_gguf_writer_release(writer);
}

static void read_tokenizer(const json_t *json, rdna_text spm) {
  const rdna__hf_tokenizer tokenizer = {.tokenizer = json_object_get(json, "tokenizer"),
                                        .tokenizer_config = json_object_get(json, "tokenizer_config"),
                                        .generation_config = json_object_get(json, "generation_config"),
                                        .config = json_object_get(json, "config"),
                                        .spm = spm,
                                        .vocabulary = 300};
  rdna_gguf_writer *writer = new_writer();
  check(rdna__hf_tokenizer_put(&tokenizer, writer));
  rdna_gguf_writer_release(writer);
}

static void read_pairs(json_t *json) {
  const json_t *merges = json_object_get(json, "merges"), *vocab = json_object_get(json, "vocab");
  const rdna_text text = {json_string_value(merges), json_string_length(merges)};
  json_t *tokenizer = NULL;
  if (!json_is_object(vocab) || !text.data) return;
  rdna_status status = rdna__hf_pairs_read(vocab, text, json_object_get(json, "tokenizer_config"), &tokenizer);
  check(status);
  if (status != RDNA_OK) return;
  json_object_set_new(json, "tokenizer", tokenizer);
  read_tokenizer(json, (rdna_text){0});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *copy = malloc(size ? size : 1);
  if (!copy) return 0;
  if (size) memcpy(copy, data, size);
  json_error_t error;
  json_t *json = json_loadb(copy, size, 0, &error);
  if (json) {
    read_config(json_object_get(json, "config"));
    read_tokenizer(json, (rdna_text){0});
    read_pairs(json);
  } else {
    read_tokenizer(NULL, (rdna_text){copy, size});
  }
  json_decref(json);
  free(copy);
  return 0;
}
