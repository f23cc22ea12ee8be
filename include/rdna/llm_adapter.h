/* Low-rank adapters (LoRA; Hu et al., 2021) of a language model, which sequences choose:
 *
 *     y = x W^T + scale alpha / rank (x A^T) B^T          for each matrix W that the adapter has an A and a B for
 *
 * The model's weights stay as they are, also in blocks, and sequences with different adapters, or none, are read in one
 * step. */
#ifndef RDNA_LLM_ADAPTER_H
#define RDNA_LLM_ADAPTER_H

#include "rdna/llm_cache.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rdna_llm_adapter rdna_llm_adapter; /* read only once open */

enum { RDNA_LLM_MOST_ADAPTERS = 32 }; /* that the sequences of one cache ever have */

typedef struct rdna_llm_adapter_info {
  size_t size;         /* of the struct: RDNA_LLM_ADAPTER_INFO_INIT sets it */
  int matrices;        /* of the model that it changes */
  int rank;            /* the largest */
  uint64_t parameters; /* values in it */
  uint64_t bytes;      /* of device memory: all are f32 there */
} rdna_llm_adapter_info;
#define RDNA_LLM_ADAPTER_INFO_INIT .size = sizeof(rdna_llm_adapter_info)

/* Puts the adapter at |path| on |llm|'s device: a GGUF file as llama.cpp's converter writes them (general.type
 * "adapter", adapter.type "lora"), or a folder of PEFT's (adapter_config.json, adapter_model.safetensors). It keeps the
 * model alive. RDNA_NOT_FOUND. RDNA_BAD_DATA: it breaks the format, has values that are no numbers, or matrices of
 * other shapes than the model's. RDNA_UNSUPPORTED: an adapter for another architecture, one of another kind (DoRA, with
 * biases, of the embedding), or of a matrix that the model has not or that no adapter changes, experts' among them. */
RDNA_CHECKED rdna_status rdna_llm_adapter_open(rdna_llm *llm, const char *path, rdna_llm_adapter **out_adapter);
RDNA_API rdna_llm_adapter *rdna_llm_adapter_retain(rdna_llm_adapter *adapter);
RDNA_API void rdna_llm_adapter_release(rdna_llm_adapter *adapter); /* NULL is fine */
RDNA_CHECKED rdna_status rdna_llm_adapter_get_info(const rdna_llm_adapter *adapter, rdna_llm_adapter_info *out_info);

typedef struct rdna_llm_adapter_use {
  rdna_llm_adapter *adapter;
  float scale; /* 1: as it was trained */
} rdna_llm_adapter_use;

/* Lets |sequence|, which has no tokens, have these adapters and no others; forks have them too. The cache keeps them
 * alive. RDNA_INVALID_ARGUMENT: it has tokens, an adapter is another model's or is there twice, a scale that is no
 * finite number, more adapters than RDNA_LLM_MOST_ADAPTERS in all sequences of the cache so far. */
RDNA_CHECKED rdna_status rdna_llm_sequence_adapt(rdna_llm_sequence *sequence, const rdna_llm_adapter_use *uses,
                                                 int count);
/* The same of a session. */
RDNA_CHECKED rdna_status rdna_llm_session_adapt(rdna_llm_session *session, const rdna_llm_adapter_use *uses, int count);

#ifdef __cplusplus
}
#endif
#endif
