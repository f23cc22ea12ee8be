/* A model that is served: its file, vocabulary, chat template and weights. */
#ifndef RDNA_SERVER_MODEL_H
#define RDNA_SERVER_MODEL_H

#include <jansson.h>
#include <sys/stat.h>

#include "model/reply/reply.h"
#include "rdna/llm_adapter.h"
#include "rdna/template.h"
#include "rdna/vision.h"
#include "server/fields.h"
#include "server/grammars.h"
#include "server/judging.h"
#include "server/preset.h"

typedef struct served_model {
  char name[128];
  int64_t opened; /* seconds since 1970 */
  int layers;
  uint64_t bytes;        /* of the file */
  struct stat as_opened; /* the file then */
  uint64_t sum;          /* of what is in it: see rdna__llm_saved_model */
  rdna_gguf *file;
  rdna_tokenizer *tokenizer;
  rdna_template *chat_template; /* NULL: the model has none */
  bool knows_developer;         /* the template has a role of that name */
  rdna__reply_format format;    /* of its replies, by the template */
  judging judging;              /* of a language model that judges texts */
  grammars *grammars;
  rdna_llm *llm;
  rdna_gguf *vision_file;
  rdna_vision *vision;                                /* its tower; NULL: it sees no pictures */
  rdna_llm_adapter *adapters[RDNA_LLM_MOST_ADAPTERS]; /* (adapter_count) in the preset's order */
  int adapter_count;
} served_model;

/* What a request wants of a model. */
typedef enum model_work { WORK_ANY, WORK_WRITES, WORK_EMBEDS, WORK_RANKS } model_work;

/* All zeros is one that close takes. */
rdna_status served_model_open(served_model *m, const preset *p, rdna_device *device,
                              void (*progress)(void *data, double share), void *progress_data);
void served_model_close(served_model *m); /* leaves an empty one */

/* Whether the file at |path|, from which it was opened, was since written to or cut short; not: whether another has its
 * name. */
bool served_model_changed(const served_model *m, const char *path);

/* Whether it can do that; false with a problem. */
bool served_model_can(const served_model *m, model_work work, problem *p);

/* The text of |messages| and of the beginning of an answer, as the model's template has it; free() releases it.
 * |extra|, an object or NULL, are more variables for the template. False with a problem. */
bool render_chat(const served_model *m, json_t *messages, const json_t *extra, char **out_text, size_t *out_size,
                 problem *p);
/* The tokens of what render_chat made. */
bool encode_chat(const served_model *m, const char *text, size_t size, rdna_tokens *tokens, problem *p);
/* The tokens of a text that the model is to continue. */
bool encode_text(const served_model *m, const char *text, size_t size, rdna_tokens *tokens, problem *p);

#endif
