/* Inside of caches, in whose pages sequences keep keys and values. The interface is rdna/llm_cache.h. */
#ifndef RDNA_MODEL_LLM_CACHE_H
#define RDNA_MODEL_LLM_CACHE_H

#include "model/llm/adapter.h"
#include "rdna/llm_cache.h"

enum {
  RDNA__LLM_ONE_PAGE = INT32_MAX,
  RDNA__LLM_CHECKPOINTS = 3, /* states that a sequence keeps to be rewound to, unless more are asked for */
  RDNA__LLM_RECORDINGS = 8,
  RDNA__LLM_FEW = 8 /* tokens: up to so many, products are bound by reading weights, and need no matrix units */
};

/* What decides which kernels a step is made of. Steps that agree in it replay one recording. */
typedef struct rdna__llm_shape {
  int64_t length, table_stride;
  int32_t tokens, paged;
  uint32_t adapters; /* a bit for each of the cache's that the step has */
} rdna__llm_shape;

/* A step of single tokens: run as it is the first time, recorded as a graph the second, replayed from then on. */
typedef struct rdna__llm_recording {
  rdna__llm_shape shape;
  rdna_graph *graph; /* NULL: it was run once */
  int64_t used;      /* larger: later; 0: never */
} rdna__llm_recording;

struct rdna_llm_cache {
  rdna_llm *llm;
  /* Of a model that is split, buffers and caches of its layers on the host. They have the same pages and slots, which
   * are counted here alone. */
  rdna_llm_cache *below;
  float *carried; /* pinned, to the device's layers: x (batch, width) and injected (batch, layers injected) */
  /* For experts on the host: see rdna__nn_pass's |host|. */
  rdna__nn_pass host;
  void *host_memory;
  int batch, sequences;
  int lanes;    /* places for tokens in every pass over parts with few, some of them empty; 0: as many as tokens */
  void *memory; /* one allocation that holds the pass's buffers, the caches and what is below */
  size_t bytes; /* of it */
  rdna__nn_pass pass; /* of up to |batch| tokens */
  rdna_dtype half;    /* type of activations in the products of many tokens; RDNA_F32: nothing is rounded */
  int64_t given;      /* values that a step gives of a token: see rdna_llm_gives */
  void *logits;       /* (logit_rows, given) */
  int logit_rows, pinned_rows;
  float *pinned;          /* (pinned_rows, given): copies of logits to other memory would have to wait */
  int32_t *words;         /* on the device: the numbers of a step, see step.c */
  int32_t *staging;       /* the same, pinned */
  int64_t table_stride;   /* pages of a whole context */
  rdna__nn_span *spans;   /* (sequences) */
  int *order;             /* (sequences): the numbers of a pass's parts, those with few tokens first */
  rdna_llm_part *parts;   /* (sequences): of a pass */
  int *rows, *first_rows; /* (sequences): the first row of each part of a pass, and of the step, in the step's logits */
  int32_t *page_users;    /* (pages): how many sequences have it; 0: it is free */
  int64_t free_pages;
  int32_t *slot_users;                                /* (state_slots): how many sequences and checkpoints have it */
  int64_t *cache_values;                              /* (cache_count): values of a position in each layer's cache */
  rdna_llm_adapter *adapters[RDNA_LLM_MOST_ADAPTERS]; /* (adapter_count) that sequences have or had */
  int adapter_count;
  int open;                                             /* sequences */
  rdna_llm_sequence *first;                             /* of them, a list */
  int64_t checkpoints;                                  /* that were ever made */
  int most_kept;                                        /* of them by one sequence */
  bool released;                                        /* by its user; the last sequence takes it along */
  rdna__llm_recording recordings[RDNA__LLM_RECORDINGS]; /* of the shapes used last */
  int64_t decoded;                                      /* steps of single tokens */
  int failed_recordings;                                /* in a row; another thread's use of the device can spoil one */
};

/* The states of recurrent layers at an earlier position of a sequence. */
typedef struct rdna__llm_kept {
  int position, slot;
  int64_t age; /* larger: later */
} rdna__llm_kept;

/* A picture of a sequence, in a model in which it counts for less than its tokens: behind |end| RoPE turns by |less|
 * than the position, which is of all pictures to this one. */
typedef struct rdna__llm_seen {
  int end, less;
} rdna__llm_seen;

struct rdna_llm_sequence {
  rdna_llm_cache *cache;
  rdna_llm_sequence *next, *before; /* in the cache's list */
  int position;
  int page_count;
  bool in_row;    /* its pages follow one another */
  bool in_step;   /* it is in the step that is being prepared */
  int32_t *pages; /* (table_stride) */
  int second;     /* of an encoder: tokens from this one on are of the second type; 0: none are */
  int slot;       /* of its states; -1: none, which are zeros at position 0, and elsewhere lost in a failed step */
  rdna__llm_kept *kept; /* (the cache's most_kept), ascending */
  int kept_count;
  rdna__llm_seen *seen; /* (seen_count), ascending; NULL: none was, in any such model */
  int seen_count, seen_room;
  float adapter_scales[RDNA_LLM_MOST_ADAPTERS]; /* of the cache's adapters; 0: it has not that one */
};

/* From cache.c. |pinned_rows|: how many rows of logits are in pinned memory; 0 means all. With RDNA__LLM_ONE_PAGE the
 * whole context is one page. */
rdna_status rdna__llm_cache_create(rdna_llm *llm, const char *caller, rdna_llm_cache_options chosen, int pinned_rows,
                                   rdna_llm_cache **out_cache);
/* How many of the cache's bytes hold keys, values and states. */
size_t rdna__llm_cache_kept_bytes(const rdna_llm_cache *cache);
/* How many values of a token a split model's layers on the host hand to the device's. */
int64_t rdna__llm_carried_values(const rdna_llm_cache *cache);
/* How many 32-bit words the numbers of a step are at most; see step.c. */
size_t rdna__llm_step_words(const rdna_llm_cache *cache);

/* From sequence.c. Counts the pages that |count| more tokens need; takes them, or on failure none. */
int64_t rdna__llm_pages_wanted(const rdna_llm_sequence *sequence, int count);
rdna_status rdna__llm_grow(rdna_llm_sequence *sequence, int count);
/* Gives back pages behind the sequence's position, which it took for a step that failed. */
void rdna__llm_shrink(rdna_llm_sequence *sequence);
/* Moves the sequence's states to a slot that nobody shares, so that a step may write to it. */
rdna_status rdna__llm_own_states(rdna_llm_sequence *sequence);
void rdna__llm_drop_slot(rdna_llm_cache *cache, int slot);
/* How much less than |position| RoPE turns there, by the pictures that end before it or at it; and room to note another
 * one. */
int rdna__llm_turned_less(const rdna_llm_sequence *sequence, int position);
rdna_status rdna__llm_room_to_see(rdna_llm_sequence *sequence);
/* The page behind |last|, so that rows follow one another, or else the first that is free. There is one. */
int32_t rdna__llm_take_page(rdna_llm_cache *cache, int32_t last);
int rdna__llm_free_slot(const rdna_llm_cache *cache); /* -1: there is none */

/* From step.c. Checks a step's part, but for whether the cache has room. */
rdna_status rdna__llm_check_part(const rdna_llm_cache *cache, const rdna_llm_part *part);
/* As rdna_llm_step; the logits go to |direct| when that is not NULL and they are more than fit in pinned
 * memory. */
rdna_status rdna__llm_step(rdna_llm_cache *cache, const rdna_llm_part *parts, int count, float *direct,
                           const float **out_logits);

/* From session.c, for plan.c: the session's cache; sets its position as if |position| tokens had been read. */
rdna_llm_cache *rdna__llm_session_cache(const rdna_llm_session *session);
void rdna__llm_session_pretend(rdna_llm_session *session, int position);

#endif
