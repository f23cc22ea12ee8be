/* Which way up a picture is, as EXIF 2.3 says over TIFF 6. */
#ifndef RDNA_PICTURE_EXIF_H
#define RDNA_PICTURE_EXIF_H

#include "picture/png.h"

enum { RDNA__EXIF_PLAIN = 1, RDNA__EXIF_MOST = 8 }; /* orientations */

/* The orientation, 1 to 8, that the TIFF file |bytes| says; 1, the plain one, where it says none. */
int rdna__exif_orientation(const uint8_t *bytes, size_t size);
/* Turns |picture| as it is to be seen, or its sides alone where it has no pixels. RDNA_OUT_OF_MEMORY: it is as it was.
 */
rdna_status rdna__exif_turn(int orientation, rdna__picture *picture);

#endif
