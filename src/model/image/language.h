/* A language model whose states are what a network of pictures reads of a text: Qwen3, Qwen2.5-VL and their like, by
 * model/llm. */
#ifndef RDNA_MODEL_IMAGE_LANGUAGE_H
#define RDNA_MODEL_IMAGE_LANGUAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rdna/device.h"
#include "rdna/llm.h"
#include "rdna/tensor.h"

enum { RDNA__LANGUAGE_LAYERS = 8 };

/* How models of a family read a text. */
typedef struct rdna__language_reading {
  const char *before, *after; /* what stands around it: a chat with its marks */
  int most;                   /* tokens with those around it; what is behind is cut */
  const char *filler;         /* a token by which texts are filled up to |most|, and which is masked; NULL: none */
  int dropped;                /* the first so many tokens' states are left out */
  int layer_count;            /* states stand side by side that are read by these layers: 0 is the first; from behind */
  int layers[RDNA__LANGUAGE_LAYERS]; /* -1 stands for the last norm, and -2 for the last layer */
  bool sees; /* |before| has the place of one picture, which the model's tower sees; its tokens count beside |most| */
  const char *next; /* the place of another, for its number from 2 on; NULL: there is one alone */
} rdna__language_reading;

/* That a text is read with. */
typedef struct rdna__language_picture {
  uint8_t *pixels; /* (height, width, 3) */
  int height, width;
} rdna__language_picture;

typedef struct rdna__language rdna__language;

/* Of |folder|, as transformers saves a language model, whose tokenizer's files are in |tokenizer|, and of one that sees
 * its processor's in |processor|; or of a file of GGUF with its own. It computes in f32 where |dtype| is that, else as
 * language models do. |reading| is borrowed. RDNA_NOT_FOUND, RDNA_BAD_DATA, RDNA_UNSUPPORTED: as rdna_model_open and
 * rdna_llm_open have it; there is no tokenizer. RDNA_OUT_OF_MEMORY. */
rdna_status rdna__language_create(rdna_device *device, const char *folder, const char *tokenizer, const char *processor,
                                  const rdna__language_reading *reading, rdna_dtype dtype,
                                  rdna__language **out_language);
void rdna__language_release(rdna__language *language); /* NULL is fine */

typedef struct rdna__language_info {
  int width;              /* of a token: the layers' together */
  uint64_t weights_bytes; /* on the device; on the host they are read where their file is mapped */
} rdna__language_info;
const rdna__language_info *rdna__language_get_info(const rdna__language *language);

enum { RDNA__LANGUAGE_PICTURES = 4 };

/* The most tokens of which there are states of a text, and of |pictures| (count), up to RDNA__LANGUAGE_PICTURES, where
 * the reading has places for them. RDNA_INVALID_ARGUMENT: a picture of such sides is not seen. */
rdna_status rdna__language_room(const rdna__language *language, const rdna__language_picture *pictures, int count,
                                int *out_tokens);
/* |out_states| (*out_tokens, width) has room for those. |count| 0: the reading has no place for a picture. */
rdna_status rdna__language_encode(rdna__language *language, const char *text, const rdna__language_picture *pictures,
                                  int count, float *out_states, int *out_tokens);

/* Without weights on a device: how many tokens |text| has, and how many of them are read. */
rdna_status rdna__language_tokens(const char *folder, const char *tokenizer, const rdna__language_reading *reading,
                                  const char *text, size_t *out_count, size_t *out_read);

#endif
