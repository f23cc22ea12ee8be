/* Prompts as AUTOMATIC1111's page has taught people to write them: brackets that weigh words, and any length. */
#ifndef RDNA_MODEL_IMAGE_PROMPT_H
#define RDNA_MODEL_IMAGE_PROMPT_H

#include "rdna/image.h"
#include "rdna/model.h"

/* ---- Brackets ---- */

/* A piece of text and how much its words weigh. */
typedef struct rdna__prompt_piece {
  const char *text; /* in the parsed prompt's own copy, with no more escapes */
  size_t size;
  double weight;
  bool breaks; /* no text: what follows begins a chunk of its own */
} rdna__prompt_piece;

typedef struct rdna__prompt {
  char *text;
  rdna__prompt_piece *pieces; /* (count) */
  size_t count;
} rdna__prompt;

/* (word) weighs 1.1 times as much, [word] 1 / 1.1 times, (word:1.3) 1.3 times, one in another their product; \( and the
 * like are the characters; what is not closed reaches to the end; BREAK is none of the text. RDNA_OUT_OF_MEMORY. */
rdna_status rdna__prompt_parse(const char *text, size_t size, rdna__prompt *out_prompt);
void rdna__prompt_deinit(rdna__prompt *prompt); /* of zeros is fine */

/* ---- Chunks ---- */

/* A text's tokens, in chunks of as many as an encoder reads at a time. */
typedef struct rdna__prompt_chunks {
  int count;      /* 1 or more */
  int32_t *ids;   /* (count, positions) */
  float *weights; /* (count, positions) */
  size_t tokens;  /* of the text */
} rdna__prompt_chunks;

enum { RDNA__PROMPT_MOST_CHUNKS = 64 };

/* |plain|: brackets are text, and what is longer than one chunk is cut. Else a chunk that is full ends behind its last
 * comma, if that is among its last twenty tokens, and the rest begins the next. RDNA_INVALID_ARGUMENT: more chunks than
 * the limit. RDNA_OUT_OF_MEMORY. */
rdna_status rdna__prompt_read(const rdna_image_text_encoder *encoder, const char *text, bool plain,
                              rdna__prompt_chunks *out_chunks);
/* Chunks of nothing behind what there is. */
rdna_status rdna__prompt_extend(const rdna_image_text_encoder *encoder, rdna__prompt_chunks *chunks, int count);
void rdna__prompt_chunks_deinit(rdna__prompt_chunks *chunks); /* of zeros is fine */

#endif
