/* How a model is to be served: its name, its file, and its scheduler's options. */
#ifndef RDNA_SERVER_PRESET_H
#define RDNA_SERVER_PRESET_H

#include <stdbool.h>

#include "server/scheduler.h"

typedef struct preset {
  char name[128];
  char *path;          /* of the GGUF file */
  char *template_path; /* of a chat template; NULL: the model's own */
  scheduler_options scheduler;
  int gpu_layers;      /* on the device; below 0: all of them */
  double idle_seconds; /* after which a model that nobody uses is taken out of memory; below 0: never */
  bool preload;        /* at the start, not when a request names it */
} preset;

/* NAME of FOLDER/NAME.gguf. */
void preset_name_after(preset *p, const char *path);
rdna_status preset_copy(const preset *from, preset *out);
bool preset_equal(const preset *a, const preset *b);
void preset_deinit(preset *p);

#endif
