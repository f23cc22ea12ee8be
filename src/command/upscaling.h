/* What rdna upscale, rdna image and rdna serve share about files of upscalers. */
#ifndef RDNA_COMMAND_UPSCALING_H
#define RDNA_COMMAND_UPSCALING_H

#include "command/image_model.h"
#include "rdna/image_upscaler.h"

enum { UPSCALER_NAME_BYTES = FILE_NAME_BYTES };

/* Opens [NAME=]FILE, a name of which has no slash, to compute in |type| as --type says it. |name| becomes what
 * parameters and requests call it: that, or the file's without its ending. */
rdna_status open_upscaler(rdna_device *device, const char *file, const char *type, rdna_image_upscaler **out_upscaler,
                          char name[UPSCALER_NAME_BYTES]);

/* Progress of rdna_image_upscaler_input, on stderr. */
bool show_tiles(void *data, int done, int tiles);

#endif
