#include "server/preset.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "rdna/llm_adapter.h"

void preset_name_after(preset *p, const char *path) {
  const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
  const char *dot = strrchr(base, '.');
  int size = dot && dot != base ? (int)(dot - base) : (int)strlen(base);
  snprintf(p->name, sizeof p->name, "%.*s", size, base);
}

/* The last part of |path|, without ".gguf". */
static void name_adapter(preset_adapter *a, const char *path) {
  size_t end = strlen(path);
  while (end > 0 && path[end - 1] == '/') end--;
  size_t start = end;
  while (start > 0 && path[start - 1] != '/') start--;
  if (end - start > 5 && strncmp(path + end - 5, ".gguf", 5) == 0) end -= 5;
  snprintf(a->name, sizeof a->name, "%.*s", (int)(end - start), path + start);
}

rdna_status preset_add_adapter(preset *p, const char *name, const char *path, double scale) {
  preset_adapter *grown = realloc(p->adapters, ((size_t)p->adapter_count + 1) * sizeof *grown);
  if (grown) p->adapters = grown;
  char *copy = grown ? strdup(path) : NULL;
  if (!copy) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the preset of a model");
  preset_adapter *a = &p->adapters[p->adapter_count++];
  *a = (preset_adapter){.path = copy, .scale = (float)scale};
  if (name)
    snprintf(a->name, sizeof a->name, "%s", name);
  else
    name_adapter(a, path);
  if (!a->name[0] || (name && strlen(name) >= sizeof a->name))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the name of adapter '%.200s' must have 1 to %zu bytes", path,
                      sizeof a->name - 1);
  if (!isfinite(a->scale)) return rdna__fail(RDNA_INVALID_ARGUMENT, "the scale of adapter '%s' is no number", a->name);
  if (p->adapter_count > RDNA_LLM_MOST_ADAPTERS)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a model has more than %d adapters", RDNA_LLM_MOST_ADAPTERS);
  return RDNA_OK;
}

rdna_status preset_copy(const preset *from, preset *out) {
  *out = *from;
  out->adapters = NULL;
  out->adapter_count = 0;
  out->path = strdup(from->path);
  out->template_path = from->template_path ? strdup(from->template_path) : NULL;
  out->vision_path = from->vision_path ? strdup(from->vision_path) : NULL;
  rdna_status status =
      out->path && (out->template_path || !from->template_path) && (out->vision_path || !from->vision_path)
          ? RDNA_OK
          : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the preset of a model");
  for (int i = 0; i < from->adapter_count && status == RDNA_OK; i++) {
    const preset_adapter *a = &from->adapters[i];
    status = preset_add_adapter(out, a->name, a->path, (double)a->scale);
  }
  if (status != RDNA_OK) preset_deinit(out);
  return status;
}

static bool same_adapters(const preset *a, const preset *b) {
  if (a->adapter_count != b->adapter_count) return false;
  for (int i = 0; i < a->adapter_count; i++) {
    const preset_adapter *x = &a->adapters[i], *y = &b->adapters[i];
    if (strcmp(x->name, y->name) != 0 || strcmp(x->path, y->path) != 0 || x->scale != y->scale) return false;
  }
  return true;
}

/* Either may be NULL. */
static bool same_path(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

bool preset_equal(const preset *a, const preset *b) {
  const scheduler_options *s = &a->scheduler, *t = &b->scheduler;
  return strcmp(a->name, b->name) == 0 && strcmp(a->path, b->path) == 0 &&
         same_path(a->template_path, b->template_path) && same_path(a->vision_path, b->vision_path) &&
         same_adapters(a, b) && a->gpu_layers == b->gpu_layers && a->idle_seconds == b->idle_seconds &&
         s->writers == t->writers && s->context == t->context && s->positions == t->positions && s->batch == t->batch &&
         s->queue == t->queue && s->kv_dtype == t->kv_dtype && s->exact == t->exact && s->lanes == t->lanes &&
         s->kept == t->kept && s->checkpoints == t->checkpoints;
}

void preset_deinit(preset *p) {
  free(p->path);
  free(p->template_path);
  free(p->vision_path);
  for (int i = 0; i < p->adapter_count; i++) free(p->adapters[i].path);
  free(p->adapters);
  *p = (preset){0};
}
