/* One thread that writes the texts of all jobs, some tokens of each in every step of the model.
 *
 *     submitted  -> | queue | -> | writer 0: "…the king" | -> connections read what is there
 *                                | writer 1: a prompt, half read |
 *                                | writer 2: nobody's; what it has read may begin the next prompt |
 *
 * A step reads the last token of every text that is being written, and of prompts as many more as fit in it, in equal
 * shares. */
#ifndef RDNA_SERVER_SCHEDULER_H
#define RDNA_SERVER_SCHEDULER_H

#include "rdna/llm_cache.h"
#include "server/job.h"

typedef struct scheduler scheduler;

typedef struct scheduler_options {
  int writers;       /* texts that are written at a time */
  int context;       /* the most tokens of one text with its prompt; 0: the model's own, at most 4,096 */
  int64_t positions; /* that all texts together have room for; 0: the context for each writer */
  int batch;         /* the most tokens in a step */
  int queue;         /* the most texts that wait */
  rdna_dtype kv_dtype;
  bool exact;
} scheduler_options;

/* What it did so far. */
typedef struct scheduler_counts {
  uint64_t jobs, refused, cancelled, failed; /* refused: the queue was full */
  uint64_t prompt_tokens, cached_tokens;     /* of prompts: all of them, and those that were not computed again */
  uint64_t processed_tokens;                 /* that steps read, of prompts and of texts */
  uint64_t written_tokens;
  uint64_t steps, preempted;
  double step_seconds;        /* in the model */
  double other_seconds;       /* between steps, while there was work */
  double first_token_seconds; /* sum over jobs, from the asking to the first token */
  uint64_t first_tokens;      /* jobs in that sum */
  int waiting, running, idle; /* texts in the queue; writers with one and without */
  int64_t pages, free_pages;
} scheduler_counts;

/* |llm| and |tokenizer| must outlive it. */
rdna_status scheduler_create(rdna_llm *llm, const rdna_tokenizer *tokenizer, const scheduler_options *options,
                             scheduler **out_scheduler);
/* Ends what is being written, as cancelled, and the thread; jobs are refused from now on. */
void scheduler_end(scheduler *s);
void scheduler_release(scheduler *s); /* after the end; NULL is fine */

int scheduler_context(const scheduler *s);

typedef enum submitted { SUBMITTED, SUBMIT_QUEUE_FULL, SUBMIT_STOPPING, SUBMIT_FAILED } submitted;
/* Takes a reference of its own to |j|, whose prompts have from 1 token to as many as the context has room for. Failed:
 * the thread's last sentence says why. */
submitted scheduler_submit(scheduler *s, job *j);
/* From now on jobs are refused. Returns when all are finished, or after |seconds|: then false. */
bool scheduler_drain(scheduler *s, double seconds);

/* The lock of what jobs say is under it. Never held for long. */
void scheduler_lock(scheduler *s);
void scheduler_unlock(scheduler *s);
/* Under the lock: nobody waits for the job any more. */
void scheduler_cancel(scheduler *s, job *j);
/* Gives the caller's reference back. */
void scheduler_release_job(scheduler *s, job *j);

scheduler_counts scheduler_get_counts(scheduler *s);

#endif
