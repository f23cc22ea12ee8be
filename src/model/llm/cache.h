/* Caches and their sequences, inside. The interface is rdna/llm_cache.h. */
#ifndef RDNA_MODEL_LLM_CACHE_H
#define RDNA_MODEL_LLM_CACHE_H

#include "model/llm/llm.h"
#include "rdna/llm_cache.h"

enum {
  RDNA__LLM_ONE_PAGE = INT32_MAX,
  RDNA__LLM_CHECKPOINTS = 3, /* that a sequence keeps */
  RDNA__LLM_RECORDINGS = 8,
  RDNA__LLM_FEW = 8 /* tokens whose products stream the weights and need no matrix unit */
};

/* What decides which kernels a step is made of. Steps that agree in it replay one recording. */
typedef struct rdna__llm_shape {
  int64_t length, table_stride;
  int32_t tokens, paged;
} rdna__llm_shape;

/* A step of single tokens that was run, and from its second time on is recorded. */
typedef struct rdna__llm_recording {
  rdna__llm_shape shape;
  rdna_graph *graph; /* NULL: it was run once */
  int64_t used;      /* larger: later; 0: never */
} rdna__llm_recording;

struct rdna_llm_cache {
  rdna_llm *llm;
  /* Of a model that is split, the buffers and caches of the host's part. Pages and slots have the same numbers there,
   * and are counted here alone. */
  rdna_llm_cache *below;
  float *carried; /* what comes from there, pinned: x (batch, width) and injected (batch, layers injected) */
  /* Of experts on the host: what rdna__nn_pass says of |host|. */
  rdna__nn_pass host;
  void *host_memory;
  int batch, sequences;
  int lanes;    /* tokens of each pass over parts of few tokens, empty places among them; 0: as many as there are */
  void *memory; /* one allocation that holds the pass's buffers, the caches and what is below */
  size_t bytes; /* of it */
  rdna__nn_pass pass; /* of up to |batch| tokens */
  rdna_dtype half;    /* what goes into the products of many tokens; RDNA_F32: nothing is rounded */
  void *logits;       /* (logit_rows, vocabulary) */
  int logit_rows, pinned_rows;
  float *pinned;          /* (pinned_rows, vocabulary): what a copy to memory that is not would wait for */
  int32_t *words;         /* on the device: the numbers of a step, see step.c */
  int32_t *staging;       /* the same, pinned */
  int64_t table_stride;   /* pages of a whole context */
  rdna__nn_span *spans;   /* (sequences) */
  int *order;             /* (sequences): parts of a pass as they stand in it */
  rdna_llm_part *parts;   /* (sequences): of a pass */
  int *rows, *first_rows; /* (sequences): where logits of parts of a pass, and of a step, begin in those of the step */
  int32_t *page_users;    /* (pages): how many sequences have it; 0: it is free */
  int64_t free_pages;
  int32_t *slot_users;                                  /* (state_slots): how many sequences and checkpoints have it */
  int64_t *cache_values;                                /* (cache_count): values of a position in each layer's cache */
  int open;                                             /* sequences */
  rdna_llm_sequence *first;                             /* of them, a list */
  int64_t checkpoints;                                  /* that were ever made */
  bool released;                                        /* by its user; the last sequence takes it along */
  rdna__llm_recording recordings[RDNA__LLM_RECORDINGS]; /* sequences come and go: one for each of the last shapes */
  int64_t decoded;                                      /* steps of single tokens */
  int failed_recordings;                                /* what another thread does to the device can spoil one */
};

/* The states of recurrent layers at an earlier position of a sequence. */
typedef struct rdna__llm_kept {
  int position, slot;
  int64_t age; /* larger: later */
} rdna__llm_kept;

struct rdna_llm_sequence {
  rdna_llm_cache *cache;
  rdna_llm_sequence *next, *before; /* in the cache's list */
  int position;
  int page_count;
  bool in_row;    /* its pages follow one another */
  bool in_step;   /* it is in the step that is being prepared */
  int32_t *pages; /* (table_stride) */
  int slot;       /* of its states; -1: it has none, which at position 0 means zeros and elsewhere that a step failed */
  rdna__llm_kept kept[RDNA__LLM_CHECKPOINTS]; /* ascending */
  int kept_count;
};

/* From cache.c. |pinned_rows|: how many rows of logits are in pinned memory; 0 means all. With RDNA__LLM_ONE_PAGE the
 * whole context is one page. */
rdna_status rdna__llm_cache_create(rdna_llm *llm, const char *caller, rdna_llm_cache_options chosen, int pinned_rows,
                                   rdna_llm_cache **out_cache);
/* What of the cache's bytes is keys, values and states. */
size_t rdna__llm_cache_kept_bytes(const rdna_llm_cache *cache);
/* Values of a token that the host's part of the model gives to the device's. */
int64_t rdna__llm_carried_values(const rdna_llm_cache *cache);
/* The slot of a step's numbers: how many 32-bit words they are at most. */
size_t rdna__llm_step_words(const rdna_llm_cache *cache);

/* From sequence.c. Pages that the sequence would take for |count| more tokens; then that it takes them, which changes
 * nothing where it fails. */
int64_t rdna__llm_pages_wanted(const rdna_llm_sequence *sequence, int count);
rdna_status rdna__llm_grow(rdna_llm_sequence *sequence, int count);
/* Gives back pages behind the sequence's position, which a step that failed has left. */
void rdna__llm_shrink(rdna_llm_sequence *sequence);
/* Makes the sequence's states its own, in a slot that a step may write to. */
rdna_status rdna__llm_own_states(rdna_llm_sequence *sequence);
void rdna__llm_drop_slot(rdna_llm_cache *cache, int slot);

/* From step.c. Whether a step may have this part, whatever its room. */
rdna_status rdna__llm_check_part(const rdna_llm_cache *cache, const rdna_llm_part *part);
/* As rdna_llm_step; the logits go to |direct| when that is not NULL and they are more than fit in pinned
 * memory. */
rdna_status rdna__llm_step(rdna_llm_cache *cache, const rdna_llm_part *parts, int count, float *direct,
                           const float **out_logits);

/* From session.c, for plan.c: its cache; and as if |position| tokens had been read. */
rdna_llm_cache *rdna__llm_session_cache(const rdna_llm_session *session);
void rdna__llm_session_pretend(rdna_llm_session *session, int position);

#endif
