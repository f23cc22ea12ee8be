/* Files of presets: what is read keeps to its ranges. */
#include <stdlib.h>

#include "rdna/status.h"
#include "server/json_of_bytes.h"
#include "server/presets_file.h"

static const char *const names[] = {"models",        "path",  "name",       "template", "context",    "slots",
                                    "cache",         "batch", "kv",         "exact",    "gpu-layers", "queue",
                                    "queue-seconds", "idle",  "preload",    "f16",      "q8_0",       "other",
                                    "keep",          "lanes", "checkpoints"};

static void read_file(const char *text, size_t size) {
  static preset presets[MOST_PRESETS];
  const preset defaults = {
      .gpu_layers = -1, .idle_seconds = 300, .scheduler = {.writers = 8, .batch = 512, .kept = -1, .checkpoints = 8}};
  size_t count = 0;
  rdna_status status = presets_parse(text, size, "/models", &defaults, presets, &count);
  for (size_t i = 0; i < count; i++) {
    const preset *p = &presets[i];
    const scheduler_options *s = &p->scheduler;
    bool whole = p->path && p->path[0] == '/' && p->name[0] && memchr(p->name, 0, sizeof p->name) && s->writers >= 1 &&
                 s->writers <= 1024 && s->batch >= s->writers && s->context >= 0 && s->queue >= 0 &&
                 s->queue_seconds >= 0 && s->kept >= -1 && s->kept <= 1024 && s->lanes >= 0 && s->lanes <= 256 &&
                 s->checkpoints >= 3 && s->checkpoints <= 1024 && p->gpu_layers >= -1 && p->idle_seconds >= -1;
    if (!whole && status == RDNA_OK) abort();
  }
  if (status == RDNA_OK && count == 0) abort();
  if (status != RDNA_OK && !*rdna_last_error()) abort(); /* who refuses says why */
  if (status == RDNA_OK && presets_check(presets, count) != RDNA_OK && count < 2) abort();
  while (count > 0) preset_deinit(&presets[--count]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  byte_reader reader = {data, size};
  json_t *list = json_array(), *file = json_pack("{s:o}", "models", list);
  read_file((const char *)data, size);
  while (reader.size > 0) json_array_append_new(list, object_of_bytes(&reader, names, sizeof names / sizeof *names, 1));
  char *text = json_dumps(file, 0);
  if (text) read_file(text, strlen(text));
  free(text);
  json_decref(file);
  return 0;
}
