/* FLUX's transformer (diffusers' FluxTransformer2DModel): its settings. */
#ifndef RDNA_MODEL_IMAGE_FLUX_H
#define RDNA_MODEL_IMAGE_FLUX_H

#include "model/image/settings.h"

enum { RDNA__FLUX_AXES = 3 };

typedef struct rdna__flux_settings {
  int in_channels, out_channels; /* of a token, which has four places of a sample */
  int doubles, singles;          /* blocks with weights of their own for text and picture, and with common ones */
  int heads, head;               /* how many, and the values of one */
  int width;                     /* heads head */
  int text_width, pooled_width;
  int axes[RDNA__FLUX_AXES]; /* values of a head that turn with each coordinate of a token: of what, row, column */
  bool guided;
} rdna__flux_settings;

/* RDNA_UNSUPPORTED: a setting that is not known, or a value of one that would make it another network. RDNA_BAD_DATA:
 * values that make no sense. */
rdna_status rdna__flux_settings_read(json_t *json, rdna__flux_settings *out);

#endif
