/* Pictures among the tokens of a prompt. */
#ifndef RDNA_MODEL_VISION_PROMPT_H
#define RDNA_MODEL_VISION_PROMPT_H

#include "rdna/model.h"
#include "rdna/vision.h"

/* A picture that a prompt shows. All zeros is an empty one. */
typedef struct rdna__shown {
  uint8_t *pixels; /* (height, width, 3), its own, of the size that the tower wants once a prompt shows it */
  int height, width;
  rdna_llm_picture picture; /* rows NULL until it was seen */
  float *rows;              /* the same, its own */
  size_t at;                /* where the first of its tokens stands in the prompt */
  uint64_t sum[2];          /* of its pixels */
} rdna__shown;
void rdna__shown_deinit(rdna__shown *shown);

/* Adds to |tokens| those of |text|, in which |count| pictures have places: where the model's chat template puts what
 * stands for one (rdna__vision_mark), or several in a row. A picture's tokens are negative numbers that follow from its
 * pixels, so that what has read one picture is known from what has read another. Sets |pictures|' places and sizes.
 * RDNA_INVALID_ARGUMENT: the text has not as many places as there are pictures, or one has no size that is seen. */
rdna_status rdna__vision_encode(const rdna_vision *vision, const rdna_tokenizer *tokenizer, const char *text,
                                size_t size, unsigned flags, rdna__shown *pictures, size_t count, rdna_tokens *tokens);
/* The text that stands for a picture. */
const char *rdna__vision_mark(const rdna_vision *vision);

/* The picture of |pictures| that token |at| of the prompt is of; NULL: it is text. */
rdna__shown *rdna__shown_at(rdna__shown *pictures, size_t count, size_t at);
/* Where the next text, or the next picture, begins behind token |at|: |end| at the latest. */
size_t rdna__shown_until(const rdna__shown *pictures, size_t count, size_t at, size_t end);
int rdna__shown_tokens(const rdna__shown *shown);
/* Makes its rows, if they are not there. */
rdna_status rdna__shown_see(rdna__shown *shown, rdna_vision *vision);

#endif
