/* Inside of adapters. The interface is rdna/llm_adapter.h. */
#ifndef RDNA_MODEL_LLM_ADAPTER_H
#define RDNA_MODEL_LLM_ADAPTER_H

#include <stdatomic.h>

#include "model/llm/llm.h"
#include "rdna/llm_adapter.h"

struct rdna_llm_adapter {
  atomic_int references;
  rdna_llm *llm;
  rdna_llm_adapter *below; /* for the layers that the host has, of a model that is split */
  rdna__weights weights;
  rdna__nn_adapter matrices;
  int rank;
};

/* The same from an open file, under llama.cpp's names. */
rdna_status rdna__llm_adapter_read(rdna_llm *llm, const rdna_gguf *file, rdna_llm_adapter **out_adapter);

#endif
