/* IP-Adapters (Ye et al., 2023): of what CLIP's encoder makes of a picture they make tokens beside those of a text,
 * which each block of a U-Net reads by keys and values of its own. These are the same in all steps, and are computed
 * once. */
#ifndef RDNA_MODEL_IMAGE_ADAPTER_H
#define RDNA_MODEL_IMAGE_ADAPTER_H

#include "model/image/unet.h"

enum { RDNA__ADAPTER_LAYERS = 512 };

typedef struct rdna__adapter_settings {
  bool plus;                                  /* it reads states of all patches, else the picture's vector */
  int seen;                                   /* values of a state or of the vector */
  int tokens, width;                          /* that it makes of a picture */
  int layers, channels[RDNA__ADAPTER_LAYERS]; /* of attention over texts, in the order of diffusers' attn_processors */
  int hidden, inner, feed, depth;             /* of what makes tokens of states: their width, all heads', … , blocks */
} rdna__adapter_settings;

/* RDNA_UNSUPPORTED: the file is no such adapter, or one of another kind. RDNA_BAD_DATA. */
rdna_status rdna__adapter_settings_read(const rdna__safetensors *tensors, rdna__adapter_settings *out);
/* Whether one of those settings is for the U-Net. */
rdna_status rdna__adapter_fit(const rdna__adapter_settings *own, const rdna__unet_settings *unet);
/* Whether the file |path| is an adapter for the U-Net, from its tensors' shapes alone. */
rdna_status rdna__adapter_fits(const char *path, const rdna__unet_settings *unet, rdna__adapter_settings *out);

/* Keys and values of the block that is number |layer|, (count, tokens, channels) of the U-Net's type. */
const rdna_tensor *rdna__adapter_keys(const rdna_image_adapter *adapter, int layer);
const rdna_tensor *rdna__adapter_values(const rdna_image_adapter *adapter, int layer);
/* Whether |use| can be used with the U-Net's |given|. */
rdna_status rdna__adapter_check(const rdna_image_adapter_use *use, const rdna__network *unet,
                                const rdna__unet_settings *set, const rdna_image_unet_input *given);

#endif
