#include "server/preset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

void preset_name_after(preset *p, const char *path) {
  const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
  const char *dot = strrchr(base, '.');
  int size = dot && dot != base ? (int)(dot - base) : (int)strlen(base);
  snprintf(p->name, sizeof p->name, "%.*s", size, base);
}

rdna_status preset_copy(const preset *from, preset *out) {
  *out = *from;
  out->path = strdup(from->path);
  out->template_path = from->template_path ? strdup(from->template_path) : NULL;
  if (out->path && (out->template_path || !from->template_path)) return RDNA_OK;
  preset_deinit(out);
  return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the preset of a model");
}

bool preset_equal(const preset *a, const preset *b) {
  const scheduler_options *s = &a->scheduler, *t = &b->scheduler;
  bool same_template = a->template_path && b->template_path ? strcmp(a->template_path, b->template_path) == 0
                                                            : a->template_path == b->template_path;
  return strcmp(a->name, b->name) == 0 && strcmp(a->path, b->path) == 0 && same_template &&
         a->gpu_layers == b->gpu_layers && a->idle_seconds == b->idle_seconds && s->writers == t->writers &&
         s->context == t->context && s->positions == t->positions && s->batch == t->batch && s->queue == t->queue &&
         s->kv_dtype == t->kv_dtype && s->exact == t->exact && s->lanes == t->lanes && s->kept == t->kept &&
         s->checkpoints == t->checkpoints;
}

void preset_deinit(preset *p) {
  free(p->path);
  free(p->template_path);
  *p = (preset){0};
}
