/* One thread that writes the texts of all jobs, some tokens of each in every step of the model.
 *
 *     submitted  -> | queue | -> | writer 0: "…the king" | -> connections read what is there
 *                                | writer 1: a prompt, half read |
 *                                | writer 2: nobody's; what it has read may begin the next prompt |
 *
 * There are more writers than may write at a time: the others keep what they have read, until a text without a better
 * beginning needs a writer, or the cache needs their pages; then the one goes that has been idle for the longest.
 *
 * A step reads the last token of every text that is being written, then pictures, and of prompts as many more as fit in
 * it, in equal shares. What of these got no room comes first in the next step.
 *
 * Texts come to the writers in the order of their ranks: of the time when they were asked for, and PRIORITY_SECONDS
 * later or earlier for each step of their priority. So the urgent ones come first, and nobody waits for ever. */
#ifndef RDNA_SERVER_SCHEDULER_H
#define RDNA_SERVER_SCHEDULER_H

#include <pthread.h>

#include "rdna/llm_cache.h"
#include "server/job.h"

typedef struct scheduler scheduler;

typedef struct scheduler_options {
  int writers; /* texts that are written at a time */
  int kept;    /* texts whose caches are kept besides, for those that begin as they do; below 0: as many as writers */
  int context; /* the most tokens of one text with its prompt; 0: the model's own, at most 4,096 */
  int64_t positions;    /* that all texts together have room for; 0: the context for each writer */
  int batch;            /* the most tokens in a step */
  int lanes;            /* as in rdna_llm_cache_options */
  int checkpoints;      /* of a text, at least 3: see rdna_llm_sequence_checkpoint */
  int queue;            /* the most texts that wait */
  double queue_seconds; /* that a text waits before it is given up; 0: any time */
  rdna_dtype kv_dtype;
  bool exact;
} scheduler_options;

/* What it did so far. */
typedef struct scheduler_counts {
  uint64_t jobs, refused, cancelled, failed; /* refused: the queue was full */
  uint64_t expired;                          /* of those that failed: they waited for too long */
  uint64_t prompt_tokens, cached_tokens;     /* of prompts: all of them, and those that were not computed again */
  uint64_t processed_tokens;                 /* that steps read, of prompts and of texts */
  uint64_t written_tokens;
  uint64_t steps, preempted;
  bool lost;                  /* the device is gone: no step will be again */
  double step_seconds;        /* in the model */
  double other_seconds;       /* between steps, while there was work */
  uint64_t pictures;          /* that the tower saw: those that were read before are not seen again */
  double picture_seconds;     /* in the tower */
  double first_token_seconds; /* sum over jobs, from the asking to the first token */
  uint64_t first_tokens;      /* jobs in that sum */
  int waiting, running, idle; /* texts in the queue; writers with one and without */
  int64_t pages, free_pages;
} scheduler_counts;

/* |llm|, |vision|, which may be NULL, and |tokenizer| must outlive it, and so must |lock|, which several may share:
 * what jobs say is under it, and nobody holds it for long. */
rdna_status scheduler_create(rdna_llm *llm, rdna_vision *vision, const rdna_tokenizer *tokenizer,
                             const scheduler_options *options, pthread_mutex_t *lock, scheduler **out_scheduler);
/* Ends what is being written, as cancelled, and the thread; jobs are refused from now on. */
void scheduler_end(scheduler *s);
void scheduler_release(scheduler *s); /* after the end; NULL is fine */

/* What the texts of an earlier scheduler of this model have read, from the file that scheduler_save has written, so
 * that texts that begin as they do go on from there. Before the first job. RDNA_NOT_FOUND: there is no file. */
rdna_status scheduler_restore(scheduler *s, const char *path, uint64_t model, int *out_texts);
/* After the end. 0 texts: there is nothing to be saved, and the file is as it was. */
rdna_status scheduler_save(scheduler *s, const char *path, uint64_t model, int *out_texts);

int scheduler_context(const scheduler *s);

typedef enum submitted { SUBMITTED, SUBMIT_QUEUE_FULL, SUBMIT_STOPPING, SUBMIT_FAILED } submitted;
/* Takes a reference of its own to |j|, whose prompts have from 1 token to as many as the context has room for. Failed:
 * the thread's last sentence says why. */
submitted scheduler_submit(scheduler *s, job *j);
/* From now on jobs are refused. Returns when all are finished, or after |seconds|: then false. */
bool scheduler_drain(scheduler *s, double seconds);

/* Under the lock: nobody waits for the job any more. */
void scheduler_cancel(scheduler *s, job *j);
/* Gives the caller's reference back: under the lock, and without it. */
void scheduler_drop_job(scheduler *s, job *j);
void scheduler_release_job(scheduler *s, job *j);

/* Under the lock. */
scheduler_counts scheduler_get_counts(const scheduler *s);

#endif
