/* FLUX's transformer (diffusers' FluxTransformer2DModel): its settings. */
#ifndef RDNA_MODEL_IMAGE_FLUX_H
#define RDNA_MODEL_IMAGE_FLUX_H

#include "model/image/dit.h"
#include "model/image/settings.h"
#include "rdna/image_flow.h"

enum { RDNA__FLUX_AXES = RDNA__DIT_AXES };

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

/* rdna_image_flux_create with matrices rounded to |weights|, blocks, as they are loaded; of another type: as they are.
 */
rdna_status rdna__flux_create(rdna_device *device, const char *folder, const char *name, rdna_dtype dtype,
                              rdna_dtype weights, rdna_image_flux **out_flux);
/* rdna_image_t5_create, the same. */
rdna_status rdna__t5_create(rdna_device *device, const char *folder, const char *encoder, const char *tokenizer,
                            rdna_dtype dtype, rdna_dtype weights, rdna_image_t5 **out_encoder);

#endif
