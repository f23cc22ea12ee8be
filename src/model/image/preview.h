/* What latents show, before they are a picture: of each place a colour, by a line through what an autoencoder made of
 * others (least squares), so that no model needs numbers of its own. */
#ifndef RDNA_MODEL_IMAGE_PREVIEW_H
#define RDNA_MODEL_IMAGE_PREVIEW_H

#include <stdbool.h>

enum { RDNA__PREVIEW_MOST_CHANNELS = 128 };

typedef struct rdna__preview {
  int channels;                                      /* of latents; 0: nothing is known yet */
  double weight[3][RDNA__PREVIEW_MOST_CHANNELS + 1]; /* the last is added */
} rdna__preview;

/* |latents| (channels, height, width) became |picture| (3, factor height, factor width). False, and |p| stays as it
 * was: there are too many channels, or values that are not finite. */
bool rdna__preview_fit(rdna__preview *p, const float *latents, int channels, int height, int width,
                       const float *picture, int factor);
/* |out| (3, height, width) */
void rdna__preview_make(const rdna__preview *p, const float *latents, int height, int width, float *out);

#endif
