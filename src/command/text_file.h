/* Text that a subcommand reads. */
#ifndef RDNA_COMMAND_TEXT_FILE_H
#define RDNA_COMMAND_TEXT_FILE_H

#include <stddef.h>

#include "rdna/status.h"

/* All bytes of |path|, or of standard input when it is "-". The caller frees them. */
rdna_status read_text_file(const char *path, char **out_data, size_t *out_size);

#endif
