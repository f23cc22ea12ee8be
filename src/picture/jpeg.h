/* Pictures in JPEG files (ISO/IEC 10918-1), read over libjpeg. */
#ifndef RDNA_PICTURE_JPEG_H
#define RDNA_PICTURE_JPEG_H

#include "picture/png.h"

/* Any of 8 bits a colour, greys too, turned as its EXIF orientation says; three channels. RDNA_BAD_DATA: it is none, or
 * breaks off. RDNA_UNSUPPORTED: it is larger than pictures may be, of printers' colours, or of more scans than anybody
 * makes. RDNA_OUT_OF_MEMORY. */
rdna_status rdna__jpeg_decode(const void *bytes, size_t size, rdna__picture *out_picture);
/* The same without pixels, which are not read: sides as they will be. Nothing is to be given back. */
rdna_status rdna__jpeg_measure(const void *bytes, size_t size, rdna__picture *out_picture);

#endif
