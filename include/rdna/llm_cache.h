/* Many sequences of a language model at a time: a cache of keys, values and states that they share, and steps that
 * read tokens of any number of them, prompts and single tokens together. What serves many users is built of these; for
 * one sequence a session (rdna/llm.h) is simpler.
 *
 *     cache      | page 0 | page 1 | page 2 | page 3 | page 4 | …        |page| positions each, of all layers
 *     sequence a   page 0, page 2, page 3
 *     sequence b   page 0, page 2, page 4        a fork of a: what both have read lies there once
 *
 * A cache and its sequences are used by one thread at a time. */
#ifndef RDNA_LLM_CACHE_H
#define RDNA_LLM_CACHE_H

#include "rdna/llm.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rdna_llm_cache rdna_llm_cache;
typedef struct rdna_llm_sequence rdna_llm_sequence; /* tokens in a row, whose keys and values are in a cache */

/* What steps give of a token. */
typedef enum rdna_llm_gives {
  RDNA_LLM_GIVES_LOGITS = 0, /* (vocabulary) */
  RDNA_LLM_GIVES_STATES,     /* (width): what the last norm makes of it, from which embeddings are made; or |layers| */
  RDNA_LLM_GIVES_LABELS,     /* (labels): what a model says of it that judges texts */
  RDNA_LLM_GIVES_COUNT
} rdna_llm_gives;

typedef struct rdna_llm_cache_options {
  size_t size;       /* of the struct: RDNA_LLM_CACHE_OPTIONS_INIT sets it */
  int64_t positions; /* that all sequences together have room for, rounded up to pages; 0 means |context| */
  int context;       /* the most positions of one sequence; 0 means the model's own, at most 4,096 */
  int sequences;     /* the most in one step; there may be any number. 0 means 16 */
  int batch;         /* the most tokens in one step; 0 means 512 */
  int logits;        /* the most tokens of a step whose logits are asked for; 0 means |sequences| */
  int page;          /* positions in a page; 0 means 32 */
  int states; /* of models with recurrent layers: states that there is room for; 0 means 4 more than |sequences| */
  rdna_dtype kv_dtype; /* as in rdna_llm_session_options */
  int exact;           /* as in rdna_llm_session_options */
  /* 0, or 8 or more: the logits of a sequence have the same bits whatever else is in its steps. Parts of up to 8 tokens
   * are read in passes of so many tokens, with others or with nothing in the rest of the places, and larger parts each
   * in a pass of its own. All tokens of a pass cost about as much as one where memory is the limit. */
  int lanes;
  int gives;       /* rdna_llm_gives: what stands in place of logits wherever this header says so */
  int checkpoints; /* the most of one sequence, see rdna_llm_sequence_checkpoint; 0 means 3 */
  int layer_count; /* of |layers|, up to 8; 0: none */
  /* With RDNA_LLM_GIVES_STATES: states before these layers side by side, (layer_count * width), in place of the last
   * norm's; layer 0 reads the embeddings, and the number of all layers stands for the last norm. Layers that no given
   * state depends on are not run. What other models read of a language model are such states. */
  const int *layers;
} rdna_llm_cache_options;
#define RDNA_LLM_CACHE_OPTIONS_INIT .size = sizeof(rdna_llm_cache_options)

typedef struct rdna_llm_cache_info {
  size_t size;                  /* of the struct: RDNA_LLM_CACHE_INFO_INIT sets it */
  uint64_t bytes;               /* of device memory, with what a step needs */
  int64_t pages, free_pages;    /* a page that several sequences share counts once */
  int page, context, sequences; /* as chosen */
  int batch, logits;            /* as chosen */
  int states, free_states;      /* 0 where the model has no recurrent layers */
  int open;                     /* sequences that there are */
} rdna_llm_cache_info;
#define RDNA_LLM_CACHE_INFO_INIT .size = sizeof(rdna_llm_cache_info)

/* Models whose tokens see those behind them, encoders, have nothing to keep: a step must read a whole text of theirs in
 * one part, they give no logits, and no sequence goes on. RDNA_UNSUPPORTED: what the model does not give.
 *
 * Allocates everything that steps need, but for what operators take from the device's pool for the time of a call, and
 * what prompts of sequences whose pages do not follow one another take there: one layer's keys and values of that
 * sequence. RDNA_OUT_OF_MEMORY says what does not fit. */
RDNA_CHECKED rdna_status rdna_llm_cache_create(rdna_llm *llm, const rdna_llm_cache_options *options,
                                               rdna_llm_cache **out_cache);
/* NULL is fine. Its memory goes when its last sequence has been released too. */
RDNA_API void rdna_llm_cache_release(rdna_llm_cache *cache);
RDNA_CHECKED rdna_status rdna_llm_cache_get_info(const rdna_llm_cache *cache, rdna_llm_cache_info *out_info);

/* A sequence without tokens. It takes room in the cache as it grows. */
RDNA_CHECKED rdna_status rdna_llm_sequence_create(rdna_llm_cache *cache, rdna_llm_sequence **out_sequence);
RDNA_API void rdna_llm_sequence_release(rdna_llm_sequence *sequence);       /* NULL is fine */
RDNA_API int rdna_llm_sequence_position(const rdna_llm_sequence *sequence); /* tokens that it has */
/* Another sequence with the first |position| tokens of this one, which shares their pages; the one that both write to
 * is copied when the first of them does. With recurrent layers it may have fewer: see rdna_llm_sequence_truncate. */
RDNA_CHECKED rdna_status rdna_llm_sequence_fork(const rdna_llm_sequence *sequence, int position,
                                                rdna_llm_sequence **out_fork);
/* Forgets the tokens from |position| on, and gives back pages that nobody needs. A state of recurrent layers cannot
 * be taken back: a sequence that has one goes to the last checkpoint that is not behind |position|, or to its
 * beginning, and rdna_llm_sequence_position says where the caller has to go on reading.
 * RDNA_INVALID_ARGUMENT: |position| is past the end or negative. */
RDNA_CHECKED rdna_status rdna_llm_sequence_truncate(rdna_llm_sequence *sequence, int position);
/* How many tokens the sequence would have after being truncated at |position|, which is from 0 to its own. */
RDNA_API int rdna_llm_sequence_reach(const rdna_llm_sequence *sequence, int position);
/* Makes the end of the sequence a place that it can be truncated to and forked at. Does nothing where the model has no
 * recurrent layers: all places are such then. Where a sequence has as many as the options say, the last two stay, and
 * of the others goes the one whose neighbours are nearest to each other: never are two further apart than twice the
 * sequence's length over the options' number less 2, if no step was longer. Where a step finds no state left, those of
 * the sequence whose last checkpoint is the oldest go first. */
RDNA_CHECKED rdna_status rdna_llm_sequence_checkpoint(rdna_llm_sequence *sequence);

/* Tokens that a step appends to a sequence. */
typedef struct rdna_llm_part {
  rdna_llm_sequence *sequence;     /* each at most once in a step */
  const int32_t *tokens;           /* not looked at where there is a picture */
  int32_t count;                   /* at least 1 */
  int32_t logits;                  /* after how many of the last of these tokens logits are wanted: 0 to count */
  const rdna_llm_picture *picture; /* these tokens are its; NULL: they are text */
  int32_t first;                   /* which of its tokens the first one is */
  /* So many of the last of these tokens, not all, fill a text up: each sees what stands before the first of them, and
   * nobody sees it, as where padding is masked. Nothing may be appended then */
  int32_t filling;
} rdna_llm_part;

/* Appends the tokens of all parts. |*out_logits| is pinned host memory of the cache's, (rows, vocabulary), the rows of
 * the first part's tokens first; it stays until the next step, and is NULL when no logits were wanted.
 * RDNA_INVALID_ARGUMENT: a token outside the vocabulary, a sequence of another cache or one that is there twice, more
 * tokens, sequences or logits than the options say, a sequence that would outgrow the context, or one with recurrent
 * layers whose last step failed. RDNA_OUT_OF_MEMORY: no free pages or states; release or truncate sequences.
 * Nothing was appended then. After any other failure the sequences of the step must be truncated or released; their
 * positions are those of before.
 *
 * Of a picture the parts are read in order, the first with its token 0. Where a model lets tokens of a picture see each
 * other both ways (rdna_llm_info's whole_pictures), a part has all from its |first| on to the picture's end.
 * RDNA_UNSUPPORTED: an encoder, or a model that has vectors of its own for tokens in each layer, is given a picture; an
 * encoder, or a model with recurrent layers, windows or vectors of its own for positions, is given tokens that fill. */
RDNA_CHECKED rdna_status rdna_llm_step(rdna_llm_cache *cache, const rdna_llm_part *parts, int count,
                                       const float **out_logits);

#ifdef __cplusplus
}
#endif
#endif
