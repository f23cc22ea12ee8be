#include "command/upscaling.h"

#include "base/status.h"
#include "command/command.h"

rdna_status open_upscaler(rdna_device *device, const char *file, const char *type, rdna_image_upscaler **out_upscaler,
                          char name[UPSCALER_NAME_BYTES]) {
  const char *path;
  RDNA_TRY(read_named_file("the upscaler", file, &path, name));
  return rdna_image_upscaler_create(device, path, read_image_type(type), out_upscaler);
}

bool show_tiles(void *data, int done, int tiles) {
  show_progress("larger", (double)done / tiles);
  return true;
}
