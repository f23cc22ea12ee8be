/* Pictures in memory and in PNG files (ISO/IEC 15948), over libpng. */
#ifndef RDNA_PICTURE_PNG_H
#define RDNA_PICTURE_PNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { RDNA__PICTURE_MOST_SIDE = 1 << 14, RDNA__PICTURE_MOST_PIXELS = 1 << 26, RDNA__PICTURE_MOST_TEXT = 4 << 20 };

typedef struct rdna__picture {
  int width, height, channels; /* 3: red, green, blue; 4: and opacity */
  uint8_t *pixels;             /* (height, width, channels) */
  char *parameters;            /* how it was made: UTF-8, the file's text of that name; NULL: there is none */
} rdna__picture;

/* A picture with pixels that are not set. RDNA_INVALID_ARGUMENT: sizes outside the limits above. RDNA_OUT_OF_MEMORY. */
rdna_status rdna__picture_init(rdna__picture *out_picture, int width, int height, int channels);
void rdna__picture_deinit(rdna__picture *picture); /* leaves an empty one; all zeros is fine */

/* |values| (3, height, width), from -1 to 1, as bytes: 127.5 (value + 1), limited, to the nearest, a NaN as 0. The
 * picture is made. */
rdna_status rdna__picture_of_values(const float *values, int width, int height, rdna__picture *out_picture);
/* |out_values| (3, height, width), from -1 to 1, without opacity. */
void rdna__picture_values(const rdna__picture *picture, float *out_values);
/* |out_light| (height, width): how bright each pixel is (ITU-R BT.601), from 0 to 1, without opacity. */
void rdna__picture_light(const rdna__picture *picture, float *out_light);
/* |out_clear| (height, width): how transparent each pixel is, from 0 to 1. */
void rdna__picture_transparency(const rdna__picture *picture, float *out_clear);
/* Whether any pixel is, from 1/2 on. */
bool rdna__picture_is_transparent(const rdna__picture *picture);

/* What |decode| makes of the file at |path|, with which the sentence begins. RDNA_NOT_FOUND, RDNA_IO_ERROR too. */
rdna_status rdna__picture_load_with(const char *path,
                                    rdna_status (*decode)(const void *bytes, size_t size, rdna__picture *out_picture),
                                    rdna__picture *out_picture);

/* Any PNG, of whose text that which is called "parameters" is kept. 16 bits become 8, palettes and greys colours; four
 * channels where it has opacity; turned as its chunk eXIf says. RDNA_BAD_DATA: it is none, or breaks off.
 * RDNA_UNSUPPORTED: it is larger than the limits above. RDNA_OUT_OF_MEMORY. */
rdna_status rdna__png_decode(const void *bytes, size_t size, rdna__picture *out_picture);
/* The same without pixels and text, which are not read: sides as they will be. Nothing is to be given back. */
rdna_status rdna__png_measure(const void *bytes, size_t size, rdna__picture *out_picture);
/* Of the file at |path|. */
rdna_status rdna__png_load(const char *path, rdna__picture *out_picture);

/* |out_bytes| is the caller's to free. The same picture gives the same bytes. RDNA_INVALID_ARGUMENT: parameters that
 * are no UTF-8, or longer than the limit. RDNA_OUT_OF_MEMORY. */
rdna_status rdna__png_encode(const rdna__picture *picture, uint8_t **out_bytes, size_t *out_size);
/* Whether those can be a picture's. */
rdna_status rdna__png_check_parameters(const char *parameters);

#endif
