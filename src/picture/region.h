/* Parts of pictures: cut out, brought to other sides, and under masks of a byte a pixel filled, blurred and put back,
 * as AUTOMATIC1111's page does all that. */
#ifndef RDNA_PICTURE_REGION_H
#define RDNA_PICTURE_REGION_H

#include "picture/png.h"

typedef struct rdna__region {
  int left, top, width, height;
} rdna__region;

/* How a picture of other proportions comes to sides: stretched; as the largest part in its middle; or whole, with its
 * outermost pixels repeated beside it. */
typedef enum rdna__fit { RDNA__FIT_STRETCH, RDNA__FIT_CROP, RDNA__FIT_FILL } rdna__fit;

/* |picture|, of three channels, by Lanczos' filter in other sides, in its place. RDNA_INVALID_ARGUMENT: sides outside
 * of the limits of pictures. RDNA_OUT_OF_MEMORY. */
rdna_status rdna__picture_fit(rdna__picture *picture, rdna__fit fit, int width, int height);
/* A copy of |region|, which lies in |picture|. RDNA_OUT_OF_MEMORY. */
rdna_status rdna__picture_crop(const rdna__picture *picture, rdna__region region, rdna__picture *out_picture);

/* |mask| (height, width) blurred by Gaussians, up to 2.5 of their deviations away, rows by |across| first and then
 * columns by |down|, each rounded to bytes; behind its edges it is mirrored. 0: as it is. RDNA_OUT_OF_MEMORY. */
rdna_status rdna__mask_blur(uint8_t *mask, int width, int height, double across, double down);
/* What is not 0 in |mask|, with |padding| pixels around, made longer on one side to the proportions of |wide| and
 * |high|, and moved inside. False: all of it is 0. */
bool rdna__mask_region(const uint8_t *mask, int width, int height, int padding, int wide, int high,
                       rdna__region *out_region);
/* Colours of |picture|, of three channels, where |mask| (height, width) is not 0, become those around, blurred the more
 * the farther away they are. RDNA_OUT_OF_MEMORY. */
rdna_status rdna__mask_fill(const uint8_t *mask, rdna__picture *picture);
/* Into |whole| at |region| comes |part|, brought to its sides, by the share |mask| of |whole|, of 255; both have three
 * channels. RDNA_OUT_OF_MEMORY; then |whole| is as it was. */
rdna_status rdna__mask_paste(const rdna__picture *part, const uint8_t *mask, rdna__region region, rdna__picture *whole);

#endif
