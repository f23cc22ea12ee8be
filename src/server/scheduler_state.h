/* What the scheduler's files share. */
#ifndef RDNA_SERVER_SCHEDULER_STATE_H
#define RDNA_SERVER_SCHEDULER_STATE_H

#include <pthread.h>

#include "rdna/llm_embed.h"
#include "server/scheduler.h"
#include "server/writing.h"

/* Before so many last tokens of a prompt a recurrent model's state is kept: what comes next in a conversation begins
 * like this prompt, but for how its end asks for an answer. */
enum { LAST_TOKENS = 32 };

/* A place for a text that is being written. */
typedef struct writer {
  rdna_llm_sequence *sequence;                           /* NULL: it has none */
  rdna_tokens held;                                      /* the tokens whose keys and values are in the sequence */
  rdna_llm_adapter_use adapters[RDNA_LLM_MOST_ADAPTERS]; /* (adapter_count) that it was read with */
  int adapter_count;
  size_t prompt;     /* how many of its text's tokens were the prompt */
  choice *choice;    /* NULL: it is idle, and what it holds may begin another text */
  uint64_t since;    /* larger: it began or ended later */
  int taken;         /* tokens of the choice that this step reads; 0: none */
  bool wants_logits; /* they are the last of its history */
  addition addition;
} writer;

/* Choices that wait, smaller ranks first. */
typedef struct choice_queue {
  choice *first, *last;
  int count;
} choice_queue;

/* What a step has room for first. Texts that are being written take a token each; pictures and prompts may take all
 * that there is, so that what got nothing in a step comes first in the next, or it might wait for ever. */
typedef enum step_order { WRITTEN_PICTURES_PROMPTS, PICTURES_WRITTEN_PROMPTS, WRITTEN_PROMPTS_PICTURES } step_order;

/* See masks.c. */
typedef struct masker {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool runs;
  bool wanted, leaving; /* under the lock: a step's masks are to be made, and are not yet; the thread is to end */
} masker;

struct scheduler {
  scheduler_options options;
  rdna_llm *llm;
  rdna_vision *vision;   /* NULL: no prompt shows pictures */
  rdna_llm_cache *cache; /* NULL: the model is an encoder, which writes nothing */
  const rdna_tokenizer *tokenizer;
  size_t vocabulary;
  int context;
  bool has_states; /* recurrent layers, whose sequences go back to checkpoints alone */
  size_t interval; /* of their checkpoints */

  /* The thread's own. */
  writer *writers; /* (writer_count), of which options.writers write at a time */
  int writer_count;
  rdna_llm_part *parts;
  writer **in_step; /* (part_count) whose parts they are */
  int part_count;
  step_order order; /* of the next step */
  uint64_t now;
  rdna_llm_embedder *embedder; /* NULL: nobody has asked for a vector yet */
  float *vectors;              /* of a pass of it, */
  int width;                   /* values of each */

  masker masker;
  pthread_t thread;
  pthread_mutex_t *lock;
  pthread_cond_t work, idle; /* something to do came; all is done */
  /* Under the lock. */
  choice_queue waiting;   /* to be written */
  choice_queue embedding; /* each for all texts of its job, which become vectors */
  int running;
  bool stopping, leaving; /* no more jobs; the thread is to end */
  scheduler_counts counts;
};

/* From writers.c. Gives |c| an idle writer, with as much of its beginning as any writer holds. False when it has to
 * wait: no writer is idle, another text of the same prompt is reading it, or the cache has no room beside those that
 * are being written. */
bool writers_admit(scheduler *s, choice *c);
/* Gives back the pages of an idle writer other than |kept|; false: none has any. */
bool writers_evict(scheduler *s, const writer *kept);
/* Forgets what a writer's sequence holds. */
void writer_empty(writer *w);

/* From scheduler.c, under the lock: the choice goes on no more, and its job may be gone
 * afterwards. */
void scheduler_finish(scheduler *s, choice *c, const char *reason);
/* Takes |*link|, behind |before|, out of its queue. */
void scheduler_take_out(choice_queue *q, choice **link, choice *before);

/* From masks.c. Between begin and end the step's choices belong to the thread of the masks. */
rdna_status masks_open(scheduler *s);
void masks_close(scheduler *s); /* also where opening failed */
void masks_begin(scheduler *s);
void masks_end(scheduler *s);

/* From embedding.c. An encoder's vectors are all that it gives, and it has its room from the start. */
rdna_status embedding_open(scheduler *s);
void embedding_close(scheduler *s);
/* Under the lock, which it gives back while the model computes: one pass of texts whose vectors are wanted. */
void embedding_pass(scheduler *s);

#endif
