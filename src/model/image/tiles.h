/* An image that is worked on tile by tile, so that what a network needs for it does not grow with its size. Tiles lap
 * over each other by a quarter, where the results go over from one into the other:
 *
 *     tile 0    |----------------|
 *     tile 1                |----------------|
 *     tile 2                            |----------------|
 *                            ^^^^        ^^^^                weights of the tile before fall from 1 to 0      */
#ifndef RDNA_MODEL_IMAGE_TILES_H
#define RDNA_MODEL_IMAGE_TILES_H

#include <stdint.h>

#include "base/status.h"

/* |out| (out_channels, …) of |in| (in_channels, height, width), both f32, contiguous in host memory. */
typedef rdna_status (*rdna__tile_work)(void *context, const float *in, int64_t height, int64_t width, float *out);

typedef struct rdna__tiling {
  int64_t in_channels, out_channels;
  int64_t height, width; /* of the image */
  int64_t tile;          /* height and width of a tile of the image: a multiple of 4 |down| */
  int64_t up, down;      /* the result's height and width are up / down times the image's; one of them is 1 */
  rdna__tile_work work;
  void *context;
} rdna__tiling;

/* |out| of the whole image. An image that is no larger than a tile is worked on at once. RDNA_OUT_OF_MEMORY, and what
 * the work returns. */
rdna_status rdna__tiles_run(const rdna__tiling *tiling, const float *in, float *out);

/* The same where what the work makes of a place depends on what is around it alone: tiles lie side by side, each is
 * worked on with |margin| more of the image, a multiple of |down|, on each side where there is some, and what is made
 * of that is thrown away. No value is another than without tiles if those within |margin| are all that it depends on.
 */
rdna_status rdna__tiles_run_apart(const rdna__tiling *tiling, int64_t margin, const float *in, float *out);

#endif
