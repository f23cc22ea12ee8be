/* Pictures as files of any kind that is written. */
#ifndef RDNA_PICTURE_ENCODE_H
#define RDNA_PICTURE_ENCODE_H

#include "picture/png.h"

typedef enum rdna__picture_kind { RDNA__PICTURE_PNG, RDNA__PICTURE_JPEG } rdna__picture_kind;

/* What |path|'s ending says: .png, or none, .jpg or .jpeg. RDNA_UNSUPPORTED: another one. */
rdna_status rdna__picture_kind_of(const char *path, rdna__picture_kind *out_kind);
/* |quality| 1 to 100 is of a JPEG. See rdna__png_encode and rdna__jpeg_encode. */
rdna_status rdna__picture_encode(const rdna__picture *picture, rdna__picture_kind kind, int quality,
                                 uint8_t **out_bytes, size_t *out_size);
/* Whether a picture that says |parameters| can be of |kind|. */
rdna_status rdna__picture_check_parameters(rdna__picture_kind kind, const char *parameters);
/* Whether a file can be written to |path|, by making what rdna__picture_save makes beside it, and taking it away; and
 * whether its ending is known. */
rdna_status rdna__picture_check_path(const char *path);
/* Of the kind that |path| says, into a new file that takes the place of one there when it is whole. RDNA_IO_ERROR. */
rdna_status rdna__picture_save(const char *path, const rdna__picture *picture, int quality);

#endif
