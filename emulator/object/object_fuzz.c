// libFuzzer: any bytes as an image; what opens is looked through as a module would.
#include <stdlib.h>

#include "object/object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct emu_image image;
  struct emu_object object;
  struct emu_object_error error;
  if (emu_image_find(data, size, NULL, &image, &error) != EMU_OBJECT_OK) return 0;
  if (emu_object_open(&image, &object, &error) == EMU_OBJECT_OK) {
    volatile uint8_t sum = 0;
    for (unsigned i = 0; i < object.segment_count; i++)
      for (uint64_t k = 0; k < object.segments[i].file_bytes; k += 64) sum ^= object.segments[i].data[k];
    for (unsigned i = 0; i < object.kernel_count; i++) {
      for (unsigned k = 0; k < 64; k++) sum ^= object.kernels[i].bytes[k];
      (void)emu_object_kernel(&object, object.kernels[i].name);
    }
    for (unsigned i = 0; i < object.symbol_count; i++) (void)emu_object_symbol(&object, object.symbols[i].name);
    size_t bytes;
    (void)emu_object_section(&object, ".debug_line", &bytes);
    unsigned count;
    struct emu_symbol *variables = emu_object_variables(&object, &count);
    for (unsigned i = 0; i < (variables ? count : 0); i++) sum ^= (uint8_t)variables[i].name[0];
    free(variables);
    emu_object_close(&object);
  }
  emu_image_release(&image);
  return 0;
}
