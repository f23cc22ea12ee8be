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

enum { RDNA__LLM_ROTATIONS = 2, RDNA__LLM_STATE_SLOTS = 4 };

struct rdna_llm {
  atomic_int references;
  rdna_llm_info info;
  rdna__llm_config config;
  rdna__weights weights;
  rdna__nn_rotation rotations[RDNA__LLM_ROTATIONS];
  rdna__nn_decoder decoder;
};

struct rdna_llm_session {
  rdna_llm *llm;
  int batch, position;
  void *memory;       /* one allocation that holds the pass's buffers, the caches and what is below */
  rdna__nn_pass pass; /* of up to |batch| tokens */
  void *logits;       /* (logit_rows, vocabulary) */
  int logit_rows;
  rdna_dtype half; /* what goes into the products of many tokens; RDNA_F32: nothing is rounded */
  void *ids; /* (4, batch): ids, positions, cache_base, all i32, and temperatures, f32; then the bounds and the slot of
                the one sequence, i32 */
  int32_t *staging;   /* the same, pinned */
  float *last_logits; /* pinned, (vocabulary): what a copy to memory that is not would wait for */
  /* The step of one token, recorded for positions below |recorded_length|, of which |run_length| has been run once. */
  rdna_graph *recorded;
  int recorded_length, run_length;
  /* Of models with recurrent layers, see checkpoints.c. */
  int32_t *history;                          /* (context): the tokens so far */
  int state_position;                        /* which the states stand for; -1: a pass failed, and nobody knows */
  bool read_last;                            /* the last call had several tokens */
  int checkpoints[RDNA__LLM_STATE_SLOTS];    /* the position of each slot; 0: it is empty */
  int checkpoint_age[RDNA__LLM_STATE_SLOTS]; /* larger: later */
  int checkpoint_count;
  int failed_recordings; /* what another thread does to the device can spoil one */
};

/* From checkpoints.c. Keeps the states of now, at s->position. */
rdna_status rdna__llm_checkpoint(rdna_llm_session *session);
/* Forgets checkpoints after |position|, and makes the states those of |*out_from|, the last one that is left, or 0. */
rdna_status rdna__llm_restore(rdna_llm_session *session, int position, int *out_from);

#endif
