/* Text that a subcommand reads. */
#include "command/text_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

rdna_status read_text_file(const char *path, char **out_data, size_t *out_size) {
  FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
  if (!file) return rdna__fail(RDNA_IO_ERROR, "cannot open %s: %s", path, strerror(errno));
  char *data = NULL;
  size_t size = 0, room = 0;
  rdna_status status = RDNA_OK;
  for (;;) {
    if (room - size < 4096) {
      room = room ? 2 * room : 65536;
      char *grown = realloc(data, room);
      if (!grown) {
        status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the text of %s", path);
        break;
      }
      data = grown;
    }
    size_t got = fread(data + size, 1, room - size, file);
    size += got;
    if (got == 0) break;
  }
  if (status == RDNA_OK && ferror(file))
    status = rdna__fail(RDNA_IO_ERROR, "cannot read %s: %s", path, strerror(errno));
  if (file != stdin) fclose(file);
  if (status != RDNA_OK) {
    free(data);
    return status;
  }
  *out_data = data;
  *out_size = size;
  return RDNA_OK;
}
