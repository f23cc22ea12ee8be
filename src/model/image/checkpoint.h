/* A whole model in one file, as Stability AI's programs save it and most sites offer it: U-Net, autoencoder and text
 * encoders under names of their own, without settings and without a vocabulary. What it is, its tensors' names and
 * shapes say. */
#ifndef RDNA_MODEL_IMAGE_CHECKPOINT_H
#define RDNA_MODEL_IMAGE_CHECKPOINT_H

#include <jansson.h>

#include "model/weights/safetensors.h"

typedef enum rdna__checkpoint_family {
  CHECKPOINT_SD1,
  CHECKPOINT_SD2,
  CHECKPOINT_XL,
  CHECKPOINT_REFINER /* of XL */
} rdna__checkpoint_family;

typedef enum rdna__checkpoint_kind {
  CHECKPOINT_NONE, /* of a folder, whose names are diffusers' */
  CHECKPOINT_UNET,
  CHECKPOINT_CONTROLNET, /* the first half of a U-Net and what is its own */
  CHECKPOINT_AUTOENCODER,
  CHECKPOINT_CLIP,      /* as transformers has it */
  CHECKPOINT_OPEN_CLIP, /* as OpenCLIP has it */
  CHECKPOINT_TINY,      /* the decoder of a tiny autoencoder, whose first layer is what limits latents */
  CHECKPOINT_FLUX,      /* the transformers of FLUX.1 and FLUX.2, as Black Forest Labs saved them, */
  CHECKPOINT_SD3,       /* of Stable Diffusion 3, as Stability AI did, */
  CHECKPOINT_ZIMAGE,    /* of Z-Image, as ComfyUI has it, */
  CHECKPOINT_DIFFUSERS, /* and of models in files with diffusers' names */
  CHECKPOINT_T5,        /* as transformers has it */
  CHECKPOINT_T5_GGUF    /* as GGUF has it */
} rdna__checkpoint_kind;

/* What names of a part of a file depend on. */
typedef struct rdna__checkpoint_part {
  rdna__checkpoint_kind kind;
  const char *prefix;  /* of all names in the file */
  int stages, layers;  /* of U-Net and autoencoder: their stages, and resnet blocks of one on the way down */
  unsigned up_attends; /* of a U-Net: bit i, whether stage i on the way up does */
} rdna__checkpoint_part;

/* RDNA_UNSUPPORTED: tensors of another kind of model. RDNA_BAD_DATA: some parts are missing, or are of several versions
 * of the model. */
rdna_status rdna__checkpoint_detect(const rdna__safetensors *tensors, rdna__checkpoint_family *out_family);
/* What diffusers' folder would say of the part |name| ("unet", "vae", "text_encoder", "text_encoder_2"), to be given
 * back by json_decref, and how its tensors are called. RDNA_BAD_DATA: its tensors are none of such a part.
 * RDNA_NOT_FOUND: the family has no such part. */
rdna_status rdna__checkpoint_read(const rdna__safetensors *tensors, rdna__checkpoint_family family, const char *name,
                                  json_t **out_settings, rdna__checkpoint_part *out_part);
/* The same of a file that has a U-Net, under the names of whole models or those without "model.diffusion_model.".
 * RDNA_UNSUPPORTED: it is something else. */
rdna_status rdna__checkpoint_read_unet(const rdna__safetensors *tensors, json_t **out_settings,
                                       rdna__checkpoint_part *out_part);
/* The same of a file that has a ControlNet, which as a part is called so. RDNA_UNSUPPORTED: it is something else. */
#define RDNA__CHECKPOINT_CONTROL "controlnet"
rdna_status rdna__checkpoint_read_control(const rdna__safetensors *tensors, json_t **out_settings,
                                          rdna__checkpoint_part *out_part);
/* The same of a file that has a tiny autoencoder or its decoder, under diffusers' names or its maker's.
 * RDNA_UNSUPPORTED: it is something else. */
#define RDNA__CHECKPOINT_TINY "taesd"
rdna_status rdna__checkpoint_read_tiny(const rdna__safetensors *tensors, json_t **out_settings,
                                       rdna__checkpoint_part *out_part);
/* The same of a file that has an autoencoder alone, under the names of whole models with or without their prefix. It
 * does not say by how much latents are scaled, and its settings that they are borrowed ("_borrows"). */
bool rdna__checkpoint_is_vae(const rdna__safetensors *tensors);
rdna_status rdna__checkpoint_read_vae(const rdna__safetensors *tensors, json_t **out_settings,
                                      rdna__checkpoint_part *out_part);
/* An IP-Adapter's file, as a part, which has no settings: see adapter.h. */
#define RDNA__CHECKPOINT_ADAPTER "ip_adapter"
/* The same of "scheduler". |prediction|: "epsilon", "v_prediction", or NULL for what is usual. */
rdna_status rdna__checkpoint_schedule(const rdna__safetensors *tensors, rdna__checkpoint_family family,
                                      const char *prediction, json_t **out_settings);

/* Whether the part |name| of a file is one of FLUX: "transformer", or T5 as "text_encoder_2" or "text_encoder_3" of
 * Stable Diffusion 3. Such files have that part alone, or it stands beside others behind a prefix. */
bool rdna__checkpoint_is_flow(const rdna__safetensors *tensors, const char *name);
/* Of such a part the same as rdna__checkpoint_read. RDNA_UNSUPPORTED, besides: a file of GGUF that says that it is
 * another model. */
rdna_status rdna__checkpoint_read_flow(const rdna__safetensors *tensors, const char *name, json_t **out_settings,
                                       rdna__checkpoint_part *out_part);

/* |out| (size), the file's name of what diffusers calls |name|, without the prefix; false where there is no such name,
 * or no room for it. */
bool rdna__checkpoint_name(const rdna__checkpoint_part *part, const char *name, char *out, size_t size);
/* The tensor that diffusers calls |name|, or NULL: one of the file's, or |view|, which becomes a part of one.
 * |out_transposed|: its rows are the file's columns. */
const rdna__safetensor *rdna__checkpoint_find(const rdna__safetensors *tensors, const rdna__checkpoint_part *part,
                                              const char *name, rdna__safetensor *view, bool *out_transposed);
/* Of the kinds of FLUX: the file's name of what diffusers calls |name|, and of which rows there it is: [*out_first,
 * *out_end) of |*out_parts| equal shares. */
bool rdna__checkpoint_flow_name(rdna__checkpoint_kind kind, const char *name, char *out, size_t size, int *out_first,
                                int *out_end, int *out_parts);
/* Whether the part has nothing to say of a tensor with the file's |name|: it is of another part, or of training. */
bool rdna__checkpoint_leaves(const rdna__checkpoint_part *part, const char *name);

#endif
