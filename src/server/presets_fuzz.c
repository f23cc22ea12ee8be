/* Files of presets: what is read keeps to its ranges. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rdna/status.h"
#include "server/presets_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static preset presets[MOST_PRESETS];
  const preset defaults = {.gpu_layers = -1, .idle_seconds = 300, .scheduler = {.writers = 8, .batch = 512}};
  size_t count = 0;
  rdna_status status = presets_parse((const char *)data, size, "/models", &defaults, presets, &count);
  for (size_t i = 0; i < count; i++) {
    const preset *p = &presets[i];
    bool whole = p->path && p->path[0] == '/' && memchr(p->name, 0, sizeof p->name) && p->scheduler.writers >= 1 &&
                 p->scheduler.writers <= 1024 && p->scheduler.batch >= p->scheduler.writers;
    if (!whole && status == RDNA_OK) abort();
  }
  if (status == RDNA_OK && count == 0) abort();
  if (status != RDNA_OK && !*rdna_last_error()) abort(); /* who refuses says why */
  if (status == RDNA_OK) status = presets_check(presets, count);
  while (count > 0) preset_deinit(&presets[--count]);
  return 0;
}
