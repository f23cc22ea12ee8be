/* Pictures among the tokens of a prompt. */
#ifndef RDNA_MODEL_VISION_PROMPT_H
#define RDNA_MODEL_VISION_PROMPT_H

#include "rdna/model.h"
#include "rdna/vision.h"

/* A picture that a prompt shows. Its own are |height| and |width| alone, until it has a place in a prompt, and then its
 * pixels, which may be a hundredth of the picture's. All zeros is an empty one. */
typedef struct rdna__shown {
  int height, width;        /* of the picture; once it has pixels, of these */
  uint8_t *pixels;          /* (height, width, 3), its own, as the tower wants them; NULL: rdna__shown_take was not */
  rdna_llm_picture picture; /* rows NULL until it was seen */
  float *rows;              /* the same, its own */
  size_t at;                /* where the first of its tokens stands in the prompt */
  uint64_t sum[2];          /* of its pixels */
} rdna__shown;
void rdna__shown_deinit(rdna__shown *shown);

/* Adds to |tokens| those of |text|, in which |count| pictures have places: where the model's chat template puts what
 * stands for one (rdna__vision_mark), or several in a row. Pictures' height and width are given, and their places set;
 * their tokens are all one negative number until rdna__shown_take. RDNA_INVALID_ARGUMENT: the text has not as many
 * places as there are pictures, or one has no size that is seen. */
rdna_status rdna__vision_encode(const rdna_vision *vision, const rdna_tokenizer *tokenizer, const char *text,
                                size_t size, unsigned flags, rdna__shown *pictures, size_t count, rdna_tokens *tokens);
/* Gives the picture of that size, which has its place among |tokens|, its |pixels| (height, width, 3): they are resized
 * into its own. Its tokens become negative numbers that follow from these, so that what has read one picture is known
 * from what has read another. RDNA_OUT_OF_MEMORY. RDNA_INTERNAL: it was given before, or another size. */
rdna_status rdna__shown_take(rdna__shown *shown, const rdna_vision *vision, const uint8_t *pixels, int height,
                             int width, rdna_tokens *tokens);
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
