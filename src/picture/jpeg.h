/* Pictures in JPEG files (ISO/IEC 10918-1), read and written over libjpeg. */
#ifndef RDNA_PICTURE_JPEG_H
#define RDNA_PICTURE_JPEG_H

#include "picture/png.h"

/* Any of 8 bits a colour, greys and printers' four too, turned as its EXIF orientation says; three channels, and as
 * parameters its user's comment. RDNA_BAD_DATA: it is none, or
 * breaks off. RDNA_UNSUPPORTED: it is larger than pictures may be, or of more scans than anybody
 * makes. RDNA_OUT_OF_MEMORY. */
rdna_status rdna__jpeg_decode(const void *bytes, size_t size, rdna__picture *out_picture);
/* The same without pixels, which are not read: sides as they will be. Nothing is to be given back. */
rdna_status rdna__jpeg_measure(const void *bytes, size_t size, rdna__picture *out_picture);

enum { RDNA__JPEG_QUALITY = 95, RDNA__JPEG_WHOLE_COLOURS = 90 };
/* With its parameters as EXIF's comment. |quality| 1 to 100, of which from RDNA__JPEG_WHOLE_COLOURS on each pixel has a
 * colour of its own. What is transparent lies on white. |out_bytes| is the caller's to free. RDNA_INVALID_ARGUMENT:
 * parameters that are no UTF-8, or longer than rdna__exif_of_comment takes. RDNA_OUT_OF_MEMORY. */
rdna_status rdna__jpeg_encode(const rdna__picture *picture, int quality, uint8_t **out_bytes, size_t *out_size);

#endif
