/* What a language model is made of, inside. The interface is rdna/llm.h. */
#ifndef RDNA_MODEL_LLM_H
#define RDNA_MODEL_LLM_H

#include <stdatomic.h>

#include "model/nn/nn.h"
#include "rdna/llm.h"
#include "rdna/memory.h"

/* What the file's keys say of all layers, before a layer says otherwise. */
typedef struct rdna__llm_config {
  int rotated;       /* values of a head that RoPE turns */
  int window;        /* how far back attention looks in layers that have a window; 0: all the way */
  int period;        /* of so many layers in a row all but the last have the window; 0: all have it */
  int32_t *windowed; /* (layers), or NULL: whether each has it, where the file says so one by one */
  double rope_base;
  double score_magnitude; /* of latent attention: YaRN's factor on queries and keys */
} rdna__llm_config;

enum { RDNA__LLM_ROTATIONS = 2 };

struct rdna_llm {
  atomic_int references;
  rdna_llm *below;   /* the first layers, which the host has, or NULL; the decoder here has the others */
  rdna_device *host; /* where experts on the host are computed, or NULL */
  rdna_llm_info info;
  rdna__llm_config config;
  rdna__weights weights;
  rdna__nn_rotation rotations[RDNA__LLM_ROTATIONS];
  rdna__nn_decoder decoder;
  rdna__nn_layer *layers; /* of the whole model, of which only the decoder's are filled */
};

/* rdna_llm_open_with, with |host| in the host's place. */
rdna_status rdna__llm_open_on(rdna_device *device, rdna_device *host, const rdna_gguf *file,
                              rdna_llm_open_options options, rdna_llm **out_llm);
/* Whether it has recurrent layers, on the host or the device. */
bool rdna__llm_has_states(const rdna_llm *llm);

#endif
