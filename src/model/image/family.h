/* Families of models that flow: transformers in place of Stable Diffusion's U-Net, and straight lines in place of its
 * schedule. Each is a row of a table: which pipelines of diffusers it is, and what it does of its own. */
#ifndef RDNA_MODEL_IMAGE_FAMILY_H
#define RDNA_MODEL_IMAGE_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rdna/image_model.h"

/* What the encoders make of the texts of a request: the negative one, where there is guidance, and the prompt. */
typedef struct rdna__image_texts {
  int count, tokens, width, pooled_width; /* the last 0: there are no vectors */
  int lengths[2]; /* (count): tokens of each, of a family whose texts need not be of one length; behind them are zeros
                   */
  float *states;  /* (count, tokens, width) */
  float *pooled;  /* (count, pooled_width) */
} rdna__image_texts;

/* What the network is asked: of one picture and one text. */
typedef struct rdna__image_asking {
  const rdna__image_texts *texts;
  int which; /* of the texts */
  const rdna_image_request *request;
  double level;                     /* the share of noise, 1 to 0 */
  const float *sample;              /* (channels that it reads, height, width) of latents */
  const rdna_image_picture *looked; /* (looked_count) latents of pictures that are looked at */
  int looked_count;
  const bool *skipped; /* blocks of the transformer that are left out; NULL: none */
} rdna__image_asking;

/* Where the levels before they are shifted end, of n steps. */
typedef enum rdna__flow_levels {
  FLOW_LEVELS_EVEN,     /* at 1 / n */
  FLOW_LEVELS_MEASURED, /* the same, and dynamic shifts are FLUX.2's, by tokens and steps, whatever the settings say */
  FLOW_LEVELS_TRAINED   /* at the least that the network was trained with, which is shifted itself */
} rdna__flow_levels;

typedef struct rdna__image_family {
  const char *const *pipelines; /* diffusers' names of it, and NULL behind them; the first is said to users */
  bool has_t5;                  /* which may be a file of its own, as the transformer of all families may */
  int clips;                    /* text encoders of CLIP's kind */
  bool skips;                   /* it may be guided by left out blocks */
  bool keeps_norm;              /* what guidance makes of a token is as long as the answer to the prompt */
  rdna__flow_levels levels;
  /* What the folder's parts are together: fills the model's info, and what else is the family's. */
  rdna_status (*fit)(rdna_image_model *model, const char *pipeline);
  /* |guided|: of two texts. To be given back by rdna__image_texts_deinit whatever is returned. */
  rdna_status (*encode)(rdna_image_model *model, const rdna_image_request *request, bool guided,
                        rdna__image_texts *out_texts);
  rdna_status (*count_tokens)(rdna_image_model *model, const char *text, size_t *out_count, size_t *out_read);
  /* Brings the network to the device, unless it is there, which must read what |texts| are. */
  rdna_status (*need)(rdna_image_model *model, const rdna__image_texts *texts);
  uint64_t (*weights_of)(const void *network); /* bytes on the device */
  void (*release)(void *network);              /* NULL is fine */
  /* |out| (channels, height, width): the way from noise to picture, as a step of rdna_image_flow is given it. */
  rdna_status (*ask)(rdna_image_model *model, const rdna__image_asking *asking, float *out);
} rdna__image_family;

extern const rdna__image_family rdna__flux_family, rdna__zimage_family, rdna__qwen_family, rdna__flux2_family,
    rdna__sd3_family;

/* NULL: the pipeline is of none. */
const rdna__image_family *rdna__image_family_find(const char *pipeline);
/* The first pipeline of each, for people: |out| (size). */
void rdna__image_family_names(char *out, size_t size);

#endif
