/* How a model is to be served: its name, its file, and its scheduler's options. */
#ifndef RDNA_SERVER_PRESET_H
#define RDNA_SERVER_PRESET_H

#include <stdbool.h>

#include "server/scheduler.h"

/* A low-rank adapter that requests may choose: see rdna/llm_adapter.h. */
typedef struct preset_adapter {
  char name[128];
  char *path;
  float scale;
} preset_adapter;

typedef struct preset {
  char name[128];
  char *path;               /* of the GGUF file */
  char *template_path;      /* of a chat template; NULL: the model's own */
  char *vision_path;        /* of the GGUF file of a tower that sees pictures; NULL: none */
  preset_adapter *adapters; /* (adapter_count) */
  int adapter_count;
  scheduler_options scheduler;
  int gpu_layers;      /* on the device; below 0: all of them */
  double idle_seconds; /* after which a model that nobody uses is taken out of memory; below 0: never */
  bool preload;        /* at the start, not when a request names it */
} preset;

/* NAME of FOLDER/NAME.gguf. */
void preset_name_after(preset *p, const char *path);
/* |name| NULL: that of FOLDER/NAME or FOLDER/NAME.gguf. RDNA_INVALID_ARGUMENT: there are as many as a model may have,
 * or the name or the scale is none. */
rdna_status preset_add_adapter(preset *p, const char *name, const char *path, double scale);
rdna_status preset_copy(const preset *from, preset *out);
bool preset_equal(const preset *a, const preset *b);
void preset_deinit(preset *p);

#endif
