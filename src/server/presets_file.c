#include "server/presets_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/status.h"
#include "server/fields.h"

static const field_row file_fields[] = {{"models", FIELD_READ}};
static const field_row fields[] = {
    {"path", FIELD_READ},        {"name", FIELD_READ},       {"template", FIELD_READ}, {"context", FIELD_READ},
    {"slots", FIELD_READ},       {"cache", FIELD_READ},      {"batch", FIELD_READ},    {"kv", FIELD_READ},
    {"exact", FIELD_READ},       {"gpu-layers", FIELD_READ}, {"queue", FIELD_READ},    {"queue-seconds", FIELD_READ},
    {"idle", FIELD_READ},        {"preload", FIELD_READ},    {"keep", FIELD_READ},     {"lanes", FIELD_READ},
    {"checkpoints", FIELD_READ}, {"lora", FIELD_READ},       {"mmproj", FIELD_READ},
};

static bool read_kv_type(const char *name, rdna_dtype *out) {
  static const struct {
    const char *name;
    rdna_dtype type;
  } types[] = {{"f16", RDNA_F16}, {"bf16", RDNA_BF16}, {"f32", RDNA_F32}, {"q8_0", RDNA_Q8_0}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    if (strcmp(types[i].name, name) != 0) continue;
    *out = types[i].type;
    return true;
  }
  return false;
}

/* |path|, or |folder|/|path|; NULL without memory. */
static char *join(const char *folder, const char *path) {
  char *joined;
  if (path[0] == '/') return strdup(path);
  return asprintf(&joined, "%s/%s", folder, path) < 0 ? NULL : joined;
}

static bool read_scheduler(const json_t *json, scheduler_options *s, problem *p) {
  int64_t slots = s->writers, context = s->context, batch = s->batch, queue = s->queue, keep = s->kept,
          lanes = s->lanes, checkpoints = s->checkpoints;
  const char *kv = NULL;
  if (!read_integer(json, "slots", 1, 1024, &slots, p) || !read_integer(json, "context", 1, 100000000, &context, p) ||
      !read_integer(json, "cache", 1, 10000000000, &s->positions, p) ||
      !read_integer(json, "batch", 1, 65536, &batch, p) || !read_integer(json, "queue", 0, 1000000, &queue, p) ||
      !read_number(json, "queue-seconds", 0, 1e9, &s->queue_seconds, p) || !read_text(json, "kv", &kv, p) ||
      !read_integer(json, "keep", 0, 1024, &keep, p) || !read_integer(json, "lanes", 0, 256, &lanes, p) ||
      !read_integer(json, "checkpoints", 3, 1024, &checkpoints, p) || !read_bool(json, "exact", &s->exact, p))
    return false;
  s->writers = (int)slots;
  s->context = (int)context;
  s->batch = (int)(batch < slots ? slots : batch);
  s->queue = (int)queue;
  s->kept = (int)keep;
  s->lanes = (int)lanes;
  s->checkpoints = (int)checkpoints;
  return !kv || read_kv_type(kv, &s->kv_dtype) ||
         refuse(p, 400, NULL, "kv", "'kv' is '%.40s', and must be f16, bf16, f32 or q8_0", kv);
}

/* "FILE", or {"path", "name", "scale"}. */
static bool read_adapter(const json_t *json, const char *folder, preset *out, problem *p) {
  static const field_row rows[] = {{"path", FIELD_READ}, {"name", FIELD_READ}, {"scale", FIELD_READ}};
  const char *path = json_string_value(json), *name = NULL;
  double scale = 1;
  if (!path && !json_is_object(json))
    return refuse(p, 400, NULL, "lora", "'lora' must be a list of paths, or of objects with a path");
  if (!path && (!check_fields(json, rows, 3, p) || !read_text(json, "path", &path, p) ||
                !read_text(json, "name", &name, p) || !read_number(json, "scale", -1e6, 1e6, &scale, p)))
    return false;
  if (!path || !*path) return refuse(p, 400, NULL, "lora", "an adapter of 'lora' has no path");
  char *joined = join(folder, path);
  rdna_status status = joined ? preset_add_adapter(out, name, joined, scale)
                              : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the presets");
  free(joined);
  return status == RDNA_OK || refuse_with_status(p, "lora");
}

static bool read_adapters(const json_t *list, const char *folder, preset *out, problem *p) {
  if (!list || json_is_null(list)) return true;
  if (!json_is_array(list)) return refuse(p, 400, NULL, "lora", "'lora' must be a list of adapters");
  for (size_t i = 0; i < json_array_size(list); i++)
    if (!read_adapter(json_array_get(list, i), folder, out, p)) return false;
  return true;
}

static bool read_preset(const json_t *json, const char *folder, preset *out, problem *p) {
  const char *path = NULL, *name = NULL, *chat_template = NULL, *vision = NULL;
  int64_t layers = out->gpu_layers;
  if (!json_is_object(json)) return refuse(p, 400, NULL, NULL, "it is no object");
  if (!check_fields(json, fields, sizeof fields / sizeof *fields, p) || !read_text(json, "path", &path, p) ||
      !read_text(json, "name", &name, p) || !read_text(json, "template", &chat_template, p) ||
      !read_text(json, "mmproj", &vision, p) || !read_integer(json, "gpu-layers", -1, 100000, &layers, p) ||
      !read_number(json, "idle", -1, 1e9, &out->idle_seconds, p) || !read_bool(json, "preload", &out->preload, p) ||
      !read_scheduler(json, &out->scheduler, p))
    return false;
  if (!path || !*path) return refuse(p, 400, NULL, "path", "'path', its GGUF file, is missing");
  if (name && (!*name || strlen(name) >= sizeof out->name))
    return refuse(p, 400, NULL, "name", "'name' must have 1 to %zu bytes", sizeof out->name - 1);
  out->gpu_layers = (int)layers;
  preset_name_after(out, path);
  if (name) snprintf(out->name, sizeof out->name, "%s", name);
  if (!out->name[0]) return refuse(p, 400, NULL, "path", "'path' is '%.100s', which names no file", path);
  out->path = join(folder, path);
  out->template_path = chat_template ? join(folder, chat_template) : NULL;
  out->vision_path = vision ? join(folder, vision) : NULL;
  if (!out->path || (chat_template && !out->template_path) || (vision && !out->vision_path))
    return refuse(p, 500, NULL, NULL, "no host memory for the presets");
  return read_adapters(json_object_get(json, "lora"), folder, out, p);
}

static rdna_status append_all(const json_t *list, const char *folder, const preset *defaults, preset *presets,
                              size_t *count) {
  problem p = {0};
  for (size_t i = 0; i < json_array_size(list); i++) {
    if (*count == MOST_PRESETS) return rdna__fail(RDNA_BAD_DATA, "more than %d models", MOST_PRESETS);
    preset *next = &presets[*count];
    *next = *defaults;
    next->path = next->template_path = next->vision_path = NULL;
    next->adapters = NULL;
    next->adapter_count = 0;
    bool fine = read_preset(json_array_get(list, i), folder, next, &p);
    (*count)++;
    if (!fine) return rdna__fail(RDNA_BAD_DATA, "model %zu: %s", i, p.message);
  }
  return RDNA_OK;
}

rdna_status presets_parse(const char *text, size_t size, const char *folder, const preset *defaults, preset *presets,
                          size_t *count) {
  problem p = {0};
  json_t *json = parse_object(text, size, &p);
  const json_t *list = json_object_get(json, "models");
  rdna_status status;
  if (!json || !check_fields(json, file_fields, 1, &p))
    status = rdna__fail(RDNA_BAD_DATA, "%s", p.message);
  else if (!json_is_array(list) || json_array_size(list) == 0)
    status = rdna__fail(RDNA_BAD_DATA, "'models' must be a list of at least one model");
  else
    status = append_all(list, folder, defaults, presets, count);
  json_decref(json);
  return status;
}

/* How many of the preset's names |name| is. */
static int count_names(const preset *p, const char *name) {
  int count = strcasecmp(p->name, name) == 0;
  for (int i = 0; i < p->adapter_count; i++) count += strcasecmp(p->adapters[i].name, name) == 0;
  return count;
}

static rdna_status check_name(const preset *presets, size_t count, const char *name) {
  int found = 0;
  for (size_t i = 0; i < count; i++) found += count_names(&presets[i], name);
  return found == 1
             ? RDNA_OK
             : rdna__fail(RDNA_BAD_DATA, "two models or adapters have the name '%s'; give one of them another", name);
}

rdna_status presets_check(const preset *presets, size_t count) {
  for (size_t i = 0; i < count; i++) {
    RDNA_TRY(check_name(presets, count, presets[i].name));
    for (int k = 0; k < presets[i].adapter_count; k++)
      RDNA_TRY(check_name(presets, count, presets[i].adapters[k].name));
  }
  return RDNA_OK;
}
