/* Sequences of a cache in a file, from which another cache of the same model goes on.
 *
 *     | header | words: for each text its head, tokens, pages, checkpoints | pages | states |
 *
 * Pages and states that several texts share are there once. Numbers are as the machine has them, which is little-endian
 * wherever this library runs. */
#ifndef RDNA_MODEL_LLM_SAVED_H
#define RDNA_MODEL_LLM_SAVED_H

#include "rdna/llm_cache.h"

/* A sequence with its tokens, of which the first |prompt| were not written by the model. */
typedef struct rdna__llm_saved_text {
  rdna_llm_sequence *sequence;
  int32_t *tokens; /* (the sequence's position) */
  int32_t prompt;
} rdna__llm_saved_text;

/* What a file and the cache that reads it must agree in. */
typedef struct rdna__llm_saved_kind {
  uint64_t model;   /* of which the keys and values are: see rdna__llm_saved_model */
  uint64_t setting; /* type of the cache, lanes, device, …: with others the bits would be others */
  uint64_t page_bytes, slot_bytes;
  uint32_t page_rows, vocabulary;
} rdna__llm_saved_kind;

typedef struct rdna__llm_saved_header {
  char magic[8];
  rdna__llm_saved_kind kind;
  uint32_t texts, words, pages, slots;
  uint64_t words_sum, data_sum;
} rdna__llm_saved_header;

/* A text in the words of a file. */
typedef struct rdna__llm_saved_head {
  int32_t position, prompt, pages, checkpoints;
  int32_t slot; /* of its states; -1: the model has none */
} rdna__llm_saved_head;

typedef struct rdna__llm_saved {
  rdna__llm_saved_header header;
  const int32_t *words;
  const uint8_t *data;
} rdna__llm_saved;

#define RDNA__LLM_SAVED_MAGIC "RDNAKV01"

/* A number for the model in |file|: of its keys, of its tensors' names and shapes, and of parts of their values. */
uint64_t rdna__llm_saved_model(const rdna_gguf *file);

/* Checks all of a file, whose bytes are aligned to 8 and stay. RDNA_BAD_DATA: it is cut, damaged, or none of ours.
 * RDNA_UNSUPPORTED: it is of another kind; the sentence says in what. */
rdna_status rdna__llm_saved_read(const void *bytes, size_t size, const rdna__llm_saved_kind *kind,
                                 rdna__llm_saved *out);

/* For tests: sets the sums of a whole file in memory, whose other numbers are set. */
void rdna__llm_saved_sign(rdna__llm_saved_header *file);

/* Writes |texts| beside |path|, and then puts the file in the place of what is there. A failure leaves that as it is.
 * Texts whose last step failed are left out. |model| is rdna__llm_saved_model's. */
rdna_status rdna__llm_save(rdna_llm_cache *cache, const rdna__llm_saved_text *texts, int count, uint64_t model,
                           const char *path);
/* Gives |cache| as many of the texts in |path| as it has room for, the first ones first, and at most |most|. The caller
 * releases the sequences and frees the tokens. After a failure there are none. RDNA_NOT_FOUND: there is no file. */
rdna_status rdna__llm_restore(rdna_llm_cache *cache, const char *path, uint64_t model, rdna__llm_saved_text *texts,
                              int most, int *out_count);

#endif
