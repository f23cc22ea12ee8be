/* Z-Image's transformer (diffusers' ZImageTransformer2DModel). */
#ifndef RDNA_MODEL_IMAGE_ZIMAGE_H
#define RDNA_MODEL_IMAGE_ZIMAGE_H

#include "model/image/dit.h"

enum { RDNA__ZIMAGE_AXES = 3 };

typedef struct rdna__zimage_settings {
  int channels;         /* of a sample; a token has four places of it */
  int width, heads;     /* a head has width / heads values */
  int hidden;           /* of a block's feed-forward layer */
  int layers, refiners; /* blocks over text and picture, and before them over each alone */
  int text_width;
  double epsilon, theta, timestep_scale;
  int axes[RDNA__ZIMAGE_AXES];    /* values of a head that turn with each coordinate: of what, row, column */
  int lengths[RDNA__ZIMAGE_AXES]; /* coordinates that there are */
} rdna__zimage_settings;

/* RDNA_UNSUPPORTED: a setting that is not known, or a value of one that would make it another network. RDNA_BAD_DATA:
 * values that make no sense. */
rdna_status rdna__zimage_settings_read(json_t *json, rdna__zimage_settings *out);

typedef struct rdna__zimage rdna__zimage;

/* Of the folder |name| in |folder|; matrices are rounded to |weights|, blocks, as they are loaded; of another type: as
 * they are; and with |loras|' changes, or NULL. */
rdna_status rdna__zimage_create(rdna_device *device, const char *folder, const char *name, rdna_dtype dtype,
                                rdna_dtype weights, rdna__loras *loras, rdna__zimage **out);
void rdna__zimage_release(rdna__zimage *network); /* NULL is fine */
const rdna__zimage_settings *rdna__zimage_get_settings(const rdna__zimage *network);
size_t rdna__zimage_bytes(const rdna__zimage *network); /* of weights on the device */

typedef struct rdna__zimage_input {
  int height, width, tokens; /* of the sample, both even, and of the text */
  const float *sample;       /* (channels, height, width) */
  const float *states;       /* (tokens, text_width) */
  double level;              /* the share of noise */
} rdna__zimage_input;

/* |out| (channels, height, width): picture less noise. Host memory, f32. RDNA_INVALID_ARGUMENT: more tokens or places
 * than it has coordinates. */
rdna_status rdna__zimage_run(rdna__zimage *network, const rdna__zimage_input *input, float *out);

#endif
