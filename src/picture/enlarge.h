/* Pictures made larger by a network, with their opacity and what they say of themselves. */
#ifndef RDNA_PICTURE_ENLARGE_H
#define RDNA_PICTURE_ENLARGE_H

#include "picture/png.h"
#include "rdna/image_upscaler.h"

typedef struct rdna__enlargement {
  rdna_image_upscaler *upscaler;
  const char *name;  /* of the upscaler, as |parameters| say it */
  int width, height; /* of what is made; 0: the upscaler's scale times the picture's */
  int tile;          /* this and the rest: see rdna_image_upscaler_input */
  bool (*progress)(void *data, int done, int tiles);
  void *data;
} rdna__enlargement;

/* Sets |how|'s sides to |scale| times |picture|'s, or where |scale| is 0 to those that are usual.
 * RDNA_INVALID_ARGUMENT: what the network makes, or what is made of that, is larger than pictures may be. */
rdna_status rdna__enlargement_size(rdna__enlargement *how, const rdna__picture *picture, double scale);
/* What the network makes of |picture|, whose sides rdna__enlargement_size has taken; resized by bicubic interpolation
 * where it is to have other sides, as its opacity is, which networks do not see. Where |picture| has parameters the
 * result has them with "Postprocess upscale by" and "Postprocess upscaler" behind, as AUTOMATIC1111's page writes them.
 * RDNA_OUT_OF_MEMORY, and what rdna_image_upscaler_run says. */
rdna_status rdna__picture_enlarge(const rdna__enlargement *how, const rdna__picture *picture,
                                  rdna__picture *out_picture);

#endif
