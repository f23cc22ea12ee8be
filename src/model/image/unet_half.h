/* The first half of a U-Net, the way down and the middle, which a ControlNet has a copy of. */
#ifndef RDNA_MODEL_IMAGE_UNET_HALF_H
#define RDNA_MODEL_IMAGE_UNET_HALF_H

#include "model/image/guidance.h"

typedef struct rdna__unet_stage {
  int layers;
  bool attends;
  rdna__image_resnet resnets[RDNA__UNET_LAYERS + 1];
  rdna__image_transformer transformers[RDNA__UNET_LAYERS + 1];
  rdna__image_conv resample; /* to half or twice the size; weight.data NULL: none */
} rdna__unet_stage;

typedef struct rdna__two_layers { /* second(silu(first(x))) */
  rdna__image_linear first, second;
} rdna__two_layers;

struct rdna_image_unet {
  rdna__network network;
  rdna__unet_settings set;
  rdna_image_unet_info info;
  rdna__two_layers time, added;
  rdna__image_linear guidance; /* added to what |time| reads; weight.data NULL: none */
  rdna__image_conv in, out;
  rdna__unet_stage down[RDNA__UNET_STAGES], middle, up[RDNA__UNET_STAGES]; /* the latter in their order */
  rdna__image_norm norm;
};

/* Gives the weights and the device back. */
void rdna__unet_deinit(rdna_image_unet *unet);
/* Of a U-Net that has its settings. */
rdna_status rdna__unet_load_half(rdna_image_unet *unet, rdna__component *component);

enum { RDNA__UNET_SKIPS = 1 + RDNA__UNET_STAGES * (RDNA__UNET_LAYERS + 1) };

typedef struct rdna__unet_pass {
  const rdna_image_unet *unet;
  rdna__image_pass pass;
  const rdna_image_unet_input *given;
  int channels;                           /* of the sample; the U-Net reads the first of them */
  rdna__unet_places perturbed;            /* where tokens of the last images see themselves alone */
  const rdna_image_adapter_use *adapters; /* (adapter_count), which a ControlNet does not read */
  size_t adapter_count;
  const rdna_tensor *seen; /* NULL, or an image (1, channels, height, width) that is added to what conv_in makes */
  rdna_tensor text;        /* (n, tokens, text_width) */
  rdna_tensor time;        /* (n, time_width): SiLU of the embedding */
  rdna_tensor x;
  rdna_tensor skips[RDNA__UNET_SKIPS]; /* (skip_count), the last of which is read first */
  int skip_count;
} rdna__unet_pass;

/* x and skips of what is given, which must be as rdna_image_unet_run asks for it. */
rdna_status rdna__unet_run_half(rdna__unet_pass *pass);
rdna_status rdna__unet_check(const rdna_image_unet *unet, const rdna_image_unet_input *given);

#endif
