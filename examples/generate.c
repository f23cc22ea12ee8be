/* A language model from C, greedily: generate MODEL.gguf PROMPT TOKENS
 *
 *     cc generate.c $(pkg-config --cflags --libs rdna) -o generate */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdna/llm.h"

static int failed(void) {
  fprintf(stderr, "%s\n", rdna_last_error());
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: generate MODEL.gguf PROMPT TOKENS\n");
    return 2;
  }
  rdna_gguf *file;
  rdna_tokenizer *tokenizer;
  rdna_device *device;
  rdna_llm *llm;
  rdna_llm_session *session;
  rdna_sampler *sampler;
  rdna_detokenizer *detokenizer;
  rdna_tokens prompt = {0};
  rdna_sampling greedy = {RDNA_SAMPLING_INIT};
  greedy.temperature = 0;

  if (rdna_gguf_open(argv[1], &file) != RDNA_OK) return failed();
  if (rdna_tokenizer_open(file, &tokenizer) != RDNA_OK) return failed();
  if (rdna_device_open("auto", &device) != RDNA_OK) return failed();
  if (rdna_llm_open(device, file, NULL, NULL, &llm) != RDNA_OK) return failed();
  if (rdna_llm_session_create(llm, NULL, &session) != RDNA_OK) return failed();
  if (rdna_sampler_create(&greedy, &sampler) != RDNA_OK) return failed();
  if (rdna_detokenizer_create(tokenizer, false, &detokenizer) != RDNA_OK) return failed();
  if (rdna_tokenizer_encode(tokenizer, argv[2], strlen(argv[2]), RDNA_ENCODE_ADD_SPECIAL, &prompt) != RDNA_OK)
    return failed();

  size_t vocabulary = (size_t)rdna_llm_get_info(llm)->vocabulary;
  float *logits = malloc(vocabulary * sizeof *logits);
  if (!logits) return 1;
  if (rdna_llm_session_eval(session, prompt.ids, (int)prompt.count, logits) != RDNA_OK) return failed();
  printf("%s", argv[2]);
  for (int left = atoi(argv[3]); left > 0; left--) {
    int32_t id;
    rdna_text text;
    if (rdna_sampler_sample(sampler, logits, vocabulary, &id) != RDNA_OK) return failed();
    if (rdna_tokenizer_is_end(tokenizer, id)) break;
    if (rdna_detokenizer_push(detokenizer, id, &text) != RDNA_OK) return failed();
    fwrite(text.data, 1, text.size, stdout);
    if (rdna_llm_session_eval(session, &id, 1, logits) != RDNA_OK) return failed();
  }
  printf("\n");

  free(logits);
  rdna_tokens_deinit(&prompt);
  rdna_detokenizer_release(detokenizer);
  rdna_sampler_release(sampler);
  rdna_llm_session_release(session);
  rdna_llm_release(llm);
  rdna_device_release(device);
  rdna_tokenizer_close(tokenizer);
  rdna_gguf_close(file);
  return 0;
}
