/* Pictures at another size, to the bit as Pillow 12 makes them, with which towers were trained. Later ones may take
 * columns first where that is less work, and round otherwise. */
#ifndef RDNA_MODEL_VISION_RESIZE_H
#define RDNA_MODEL_VISION_RESIZE_H

#include <stdint.h>

#include "rdna/status.h"

typedef enum rdna__filter { RDNA__FILTER_BILINEAR, RDNA__FILTER_BICUBIC, RDNA__FILTER_LANCZOS } rdna__filter;

/* |out| (out_height, out_width, 3) of |pixels| (height, width, 3). A filter that shrinks is as much wider
 * ("antialias"). Rows are made first, then columns, and both are rounded to bytes. RDNA_OUT_OF_MEMORY. */
rdna_status rdna__resize(rdna__filter filter, const uint8_t *pixels, int height, int width, int out_height,
                         int out_width, uint8_t *out);

#endif
