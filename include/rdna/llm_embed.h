/* Vectors of texts: what a language model or an encoder makes of a text, for search and for comparing texts; and of
 * models that judge texts, their labels. */
#ifndef RDNA_LLM_EMBED_H
#define RDNA_LLM_EMBED_H

#include <stdbool.h>

#include "rdna/llm.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rdna_llm_embedder rdna_llm_embedder; /* used by one thread at a time */

typedef struct rdna_llm_embedder_options {
  size_t size;              /* of the struct: RDNA_LLM_EMBEDDER_OPTIONS_INIT sets it */
  rdna_llm_pooling pooling; /* RDNA_LLM_POOLING_UNSAID: as the file says */
  int context;              /* the most tokens of a text; 0 means the model's own, at most 4,096 */
  int batch;                /* the most tokens in one pass; 0 means 512; an encoder's has room for a whole text */
  int sequences;            /* the most texts in one pass; 0 means 64 */
  rdna_dtype kv_dtype;      /* of the cache, which encoders have not: as in rdna_llm_session_options */
  int exact;                /* as in rdna_llm_session_options */
  const int *layers;        /* as in rdna_llm_cache_options: states that vectors are made of. NULL: the last norm's */
  int layer_count;
  int reserved; /* 0; here so that the struct has no padding, see rdna/op.h */
} rdna_llm_embedder_options;
#define RDNA_LLM_EMBEDDER_OPTIONS_INIT .size = sizeof(rdna_llm_embedder_options)

typedef struct rdna_llm_embedder_info {
  size_t size; /* of the struct: RDNA_LLM_EMBEDDER_INFO_INIT sets it */
  rdna_llm_pooling pooling;
  int context, batch; /* as chosen */
  int values;         /* of a vector: the model's width, or that of each of |layers|, or how many labels it has */
} rdna_llm_embedder_info;
#define RDNA_LLM_EMBEDDER_INFO_INIT .size = sizeof(rdna_llm_embedder_info)

/* |options| NULL means all zeros, with an f16 cache. RDNA_INVALID_ARGUMENT: the file does not say how vectors are
 * pooled, and the options neither; a pooling that is none. RDNA_UNSUPPORTED: RDNA_LLM_POOLING_RANK of a model without
 * labels. */
RDNA_CHECKED rdna_status rdna_llm_embedder_create(rdna_llm *llm, const rdna_llm_embedder_options *options,
                                                  rdna_llm_embedder **out_embedder);
RDNA_API void rdna_llm_embedder_release(rdna_llm_embedder *embedder); /* NULL is fine */
RDNA_CHECKED rdna_status rdna_llm_embedder_get_info(const rdna_llm_embedder *embedder,
                                                    rdna_llm_embedder_info *out_info);

typedef struct rdna_llm_text {
  const int32_t *tokens; /* with those for beginning and end, as the model was trained */
  int32_t count;         /* from 1 to the context */
  int32_t second;   /* of a pair of texts: where the second begins, for encoders that tell them apart; 0: it is one text
                     */
  int32_t filling;  /* as in rdna_llm_part, of a text that fits in a pass */
  int32_t reserved; /* 0; here so that the struct has no padding, see rdna/op.h */
} rdna_llm_text;

/* One vector for each text, (count, values), as the model gives it: not normalized. With RDNA_LLM_POOLING_NONE one for
 * each token, (all tokens, values). Texts share passes; a text longer than a pass, which no encoder has, is read piece
 * by piece. RDNA_INVALID_ARGUMENT: a text without tokens, with more than the context, with one outside the
 * vocabulary. */
RDNA_CHECKED rdna_status rdna_llm_embed(rdna_llm_embedder *embedder, const rdna_llm_text *texts, int count, float *out);

/* The first |dimensions| of |vector| (values), of models that are trained so that these are an embedding too
 * (Matryoshka: Kusupati et al., 2022), divided by their length if |normalize|; zeros stay zeros. |out| may be |vector|.
 * RDNA_INVALID_ARGUMENT: |dimensions| is not from 1 to |values|. */
RDNA_CHECKED rdna_status rdna_llm_embedding_finish(const float *vector, int values, int dimensions, bool normalize,
                                                   float *out);

#ifdef __cplusplus
}
#endif
#endif
