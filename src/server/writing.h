/* From a step's logits to the next token of a text, and what can be shown of it. */
#ifndef RDNA_SERVER_WRITING_H
#define RDNA_SERVER_WRITING_H

#include "rdna/status.h"
#include "server/job.h"

/* What one step adds to a choice. */
typedef struct addition {
  rdna_status status;
  char error[512]; /* where it failed */
  bytes text;      /* that can be shown; the buffer is used again */
  bool thought;    /* the token belongs to what the model thinks */
  int32_t id;      /* -1: no token was added, as the model ended the text */
  float value;
  logprob tops[MOST_TOP_LOGPROBS];
  const char *finish_reason, *stop; /* as in choice */
} addition;

/* Makes |c| ready to be written; its history becomes the prompt. */
rdna_status writing_begin(choice *c, const rdna_tokenizer *tokenizer, size_t vocabulary);
/* |context|: the most tokens of a history that goes on. */
void writing_next(choice *c, const rdna_tokenizer *tokenizer, const float *logits, size_t vocabulary, int context,
                  addition *out);
/* Under the lock: shows it. False without memory. */
bool writing_show(choice *c, const addition *a);

/* Where the first of |stops| begins in |text|; |*out_stop| is that one. Otherwise |size|, and |*out_safe| is how much
 * of the text cannot become the beginning of a stop, whatever follows. */
size_t find_stop(const char *text, size_t size, char *const *stops, size_t stop_count, const char **out_stop,
                 size_t *out_safe);

#endif
