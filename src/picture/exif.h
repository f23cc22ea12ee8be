/* Which way up a picture is and what it says of itself, by EXIF 2.3 over TIFF 6. */
#ifndef RDNA_PICTURE_EXIF_H
#define RDNA_PICTURE_EXIF_H

#include "picture/png.h"

enum { RDNA__EXIF_PLAIN = 1, RDNA__EXIF_MOST = 8 }; /* orientations */

/* The orientation, 1 to 8, that the TIFF file |bytes| says; 1, the plain one, where it says none. */
int rdna__exif_orientation(const uint8_t *bytes, size_t size);
/* The comment of its user in the TIFF file |bytes|, of UTF-16 or ASCII, as UTF-8: the caller's to free. NULL: there is
 * none, or no memory. It is where AUTOMATIC1111's page keeps what a JPEG was made with. */
char *rdna__exif_comment(const uint8_t *bytes, size_t size);
/* A TIFF file with |text|, of UTF-8, as that comment; |*out_bytes| is the caller's to free. RDNA_INVALID_ARGUMENT: it
 * is longer than a segment of a JPEG has room for, which is all that the other one looks for. RDNA_OUT_OF_MEMORY. */
enum { RDNA__EXIF_MOST_TEXT = 65480 }; /* bytes of UTF-16 */
rdna_status rdna__exif_of_comment(const char *text, uint8_t **out_bytes, size_t *out_size);
rdna_status rdna__exif_check_comment(const char *text);
/* Turns |picture| as it is to be seen, or its sides alone where it has no pixels. RDNA_OUT_OF_MEMORY: it is as it was.
 */
rdna_status rdna__exif_turn(int orientation, rdna__picture *picture);

#endif
