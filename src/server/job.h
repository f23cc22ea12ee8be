/* A request's work: the texts that are to be written, and what is written of them so far. The thread of the scheduler
 * writes, those of the connections read; the scheduler's lock stands between them. */
#ifndef RDNA_SERVER_JOB_H
#define RDNA_SERVER_JOB_H

#include "model/vision/prompt.h"
#include "rdna/llm_adapter.h"
#include "rdna/model.h"
#include "server/bytes.h"
#include "server/grammars.h"

enum { MOST_CHOICES = 128, MOST_STOPS = 16, MOST_TOP_LOGPROBS = 20 };

/* How to write. */
typedef struct settings {
  rdna_sampling sampling;
  double frequency_penalty, presence_penalty; /* off the logits of what was written, for each time and for once */
  int64_t most_tokens;                        /* of each text; -1: as many as fit */
  char *stops[MOST_STOPS];                    /* a text ends before the first of these */
  size_t stop_count;
  int32_t *bias_ids;
  float *biases; /* (bias_count) added to the logits of |bias_ids| */
  size_t bias_count;
  int top_logprobs;    /* -1: no log probabilities; otherwise of so many of the likeliest tokens besides */
  bool ignore_end;     /* write on after the model's token for the end */
  int priority;        /* lower ones come first; see scheduler.h */
  double most_seconds; /* from the asking to the end; 0: any time */

  rdna_llm_adapter_use adapters[RDNA_LLM_MOST_ADAPTERS]; /* (adapter_count) of the model's, in their order */
  int adapter_count;

  bool show_control;        /* write control tokens as they are: the text is to be taken apart */
  grammars *grammars;       /* where |grammar| is from */
  rdna__grammar *grammar;   /* that the text keeps to, the settings' to put back; NULL: none */
  int32_t grammar_begin;    /* behind this token, or with it; -1: from the beginning */
  bool begin_is_part;       /* the token is the grammar's first */
  int32_t think, think_end; /* tokens between which a grammar that begins with a token does not; -1: there are none */
  bool thinks_first;        /* the prompt has opened the thinking */
} settings;
#define SETTINGS_DEFAULT             \
  {.sampling = {RDNA_SAMPLING_INIT}, \
   .most_tokens = -1,                \
   .top_logprobs = -1,               \
   .grammar_begin = -1,              \
   .think = -1,                      \
   .think_end = -1}

typedef struct logprob {
  int32_t id;
  float value;
} logprob;

typedef struct job job;

/* One text. */
typedef struct choice {
  job *job;
  int index;
  uint64_t seed;
  const rdna_tokens *prompt; /* the job's */

  /* The scheduler's own. */
  struct choice *next;   /* in the queue */
  double rank;           /* its place there: smaller ones come first */
  struct writer *writer; /* while it is being written */
  rdna_tokens history;   /* the prompt and what was written behind it */
  rdna_sampler *sampler;
  rdna_detokenizer *detokenizer;
  float *offsets; /* (2, vocabulary) bias and penalties, and room for their sum with logits; NULL: there are none */
  bytes held;     /* the end of the text, which may become a stop */
  rdna__matcher *matcher; /* NULL: no grammar has begun */
  uint64_t *allowed;      /* tokens, a bit for each; NULL: there is no grammar */
  bool is_masked;         /* they are those of the next token */
  bool thinks;            /* the text is between the settings' tokens for that */

  /* Under the scheduler's lock. */
  bytes text;
  int32_t *ids;  /* (token_count) of the text and of what is held back */
  float *values; /* (token_count) their log probabilities */
  logprob *tops; /* (token_count, top_logprobs) of the likeliest in their place */
  size_t *ends;  /* (token_count) how long the text was with each of them */
  size_t token_count, token_room;
  int cached_tokens;         /* of the prompt, that were not computed again; -1: it waits */
  size_t thought_tokens;     /* of the tokens, those between the settings' tokens for thinking */
  const char *finish_reason; /* NULL: it goes on. "stop", "length", "cancelled", "failed" */
  const char *stop;          /* the text that it stopped before, if it did; the settings' */
} choice;

struct job {
  settings settings;
  rdna_tokens *prompts; /* (prompt_count) */
  size_t prompt_count;
  rdna__shown *pictures; /* (picture_count) of the only prompt; their rows are the scheduler's to make */
  size_t picture_count;
  bool embeds;      /* the prompts become vectors, and the only choice stands for all of them */
  int32_t *seconds; /* (prompt_count) where the second text of a pair begins; NULL: there are no pairs */
  choice *choices;  /* (choice_count) the first ones for the first prompt, and so on */
  int choice_count;

  /* Under the scheduler's lock. */
  int references; /* whoever asked, and the scheduler */
  int unfinished; /* choices */
  float *vectors; /* (prompt_count, width) as the model gives them */
  int width;
  size_t taken, embedded;   /* prompts that a pass has taken, and that have their vectors */
  bool cancelled;           /* nobody waits for it any more */
  char error[512];          /* why a choice failed, */
  int error_status;         /* of HTTP */
  void (*wake)(void *data); /* something new is there; called under the lock. NULL: nobody wants to know */
  void *wake_data;
  double asked, first, finished; /* seconds: when it came, when its first token did, when its last did; 0: not yet */
};

/* |*settings| is the job's from here on, and so are |prompts| and their ids; each prompt is written |n| times. */
job *job_create(settings *settings, rdna_tokens *prompts, size_t prompt_count, int n);
/* A job whose prompts become vectors. |seconds| is its own from here on, or NULL. */
job *job_create_embedding(settings *settings, rdna_tokens *prompts, size_t prompt_count, int32_t *seconds);
/* Without locks: for a job that nobody else has. */
void job_free(job *j);
void settings_deinit(settings *s);

#endif
