/* Pictures of any kind that is read. */
#ifndef RDNA_PICTURE_DECODE_H
#define RDNA_PICTURE_DECODE_H

#include "picture/png.h"

/* A PNG or a JPEG, whichever it is, of three channels: opacity is left out, as PIL's convert("RGB") does.
 * RDNA_BAD_DATA, RDNA_UNSUPPORTED: as above; or it is something else, which the sentence names if it is known.
 * RDNA_OUT_OF_MEMORY. */
rdna_status rdna__picture_decode(const void *bytes, size_t size, rdna__picture *out_picture);
/* The same with its opacity, where it has some: three or four channels. */
rdna_status rdna__picture_decode_opacity(const void *bytes, size_t size, rdna__picture *out_picture);
/* The same without pixels, of the file's head alone: sides as they will be, turned and all. Nothing is to be given
 * back, and what is behind the head may still be broken. */
rdna_status rdna__picture_measure(const void *bytes, size_t size, rdna__picture *out_picture);
/* Of the file at |path|. */
rdna_status rdna__picture_load(const char *path, rdna__picture *out_picture);

#endif
