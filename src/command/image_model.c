#include "command/image_model.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/weights/quantize.h"

rdna_dtype read_image_type(const char *name) {
  static const struct {
    const char *name;
    rdna_dtype dtype;
  } types[] = {{"f32", RDNA_F32}, {"f16", RDNA_F16}, {"bf16", RDNA_BF16}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(name, types[i].name) == 0) return types[i].dtype;
  return RDNA_DTYPE_COUNT; /* as is best */
}

/* FILE[:WORD]; a word has no slash. */
static rdna_status read_embedding(const char *text, rdna_image_embedding *out, char path[4096]) {
  const char *colon = strrchr(text, ':');
  if (colon && (strchr(colon, '/') || !colon[1] || colon == text)) colon = NULL;
  int length = colon ? (int)(colon - text) : (int)strlen(text);
  if (snprintf(path, 4096, "%.*s", length, text) >= 4096)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of --embedding is too long");
  *out = (rdna_image_embedding){path, colon ? colon + 1 : NULL};
  return RDNA_OK;
}

/* The last part of |path|, without what is behind its last point where |ending|. */
static rdna_status name_after(const char *option, const char *path, bool ending, char name[FILE_NAME_BYTES]) {
  const char *end = path + strlen(path);
  while (end > path && end[-1] == '/') end--;
  const char *begin = end;
  while (begin > path && begin[-1] != '/') begin--;
  for (const char *at = end; ending && at > begin + 1; at--)
    if (at[-1] == '.') {
      end = at - 1;
      break;
    }
  int length = (int)(end - begin);
  if (length > 0 && length < FILE_NAME_BYTES) {
    snprintf(name, FILE_NAME_BYTES, "%.*s", length, begin);
    return RDNA_OK;
  }
  return rdna__fail(RDNA_INVALID_ARGUMENT, "%s %.200s: its name has not 1 to %d bytes; give it one: NAME=%.200s",
                    option, path, FILE_NAME_BYTES - 1, path);
}

/* Names are said in parameters and as JSON. */
static rdna_status check_name(const char *option, const char *name) {
  json_t *said = json_string(name);
  json_decref(said);
  if (said) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: the name '%s' is no UTF-8; give it another one: NAME=FILE", option,
                    name);
}

rdna_status read_named_file(const char *option, const char *text, const char **out_path, char name[FILE_NAME_BYTES]) {
  const char *equals = strchr(text, '='), *slash = strchr(text, '/');
  size_t length = equals && (!slash || equals < slash) ? (size_t)(equals - text) : 0;
  *out_path = length ? equals + 1 : text;
  size_t size = strlen(*out_path);
  if (length >= FILE_NAME_BYTES)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s %.200s: a name has 1 to %d bytes", option, text, FILE_NAME_BYTES - 1);
  if (length)
    snprintf(name, FILE_NAME_BYTES, "%.*s", (int)length, text);
  else
    RDNA_TRY(name_after(option, text,
                        (size > 12 && strcmp(text + size - 12, ".safetensors") == 0) ||
                            (size > 4 && strcmp(text + size - 4, ".pth") == 0),
                        name));
  return check_name(option, name);
}

static rdna_status read_files(const image_model_choice *c, const option_texts *loras, image_model_files *f) {
  for (int i = 0; i < c->embeddings.count; i++)
    RDNA_TRY(read_embedding(c->embeddings.values[i], &f->embeddings[i], f->embedding_paths[i]));
  for (int i = 0; i < loras->count; i++) {
    adapter_option *a = &f->adapters[i];
    RDNA_TRY(read_adapter(loras->values[i], a));
    f->loras[i] = (rdna_image_lora){a->path, a->scale};
    if (a->name[0])
      snprintf(f->lora_names[i], FILE_NAME_BYTES, "%s", a->name);
    else
      RDNA_TRY(name_after("--lora", a->path, true, f->lora_names[i]));
  }
  for (int i = 0; i < c->controls.count; i++)
    RDNA_TRY(read_named_file("--control", c->controls.values[i], &f->controls[i], f->control_names[i]));
  return RDNA_OK;
}

rdna_status read_image_model(const image_model_choice *c, const option_texts *loras, image_model_files **out) {
  image_model_files *f = *out = calloc(1, sizeof *f);
  if (!f) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the names of files");
  RDNA_TRY(read_files(c, loras, f));
  f->options = (rdna_image_model_options){RDNA_IMAGE_MODEL_OPTIONS_INIT,
                                          .dtype = read_image_type(c->type),
                                          .tokenizer = c->tokenizer,
                                          .prediction = c->prediction,
                                          .loras = f->loras,
                                          .lora_count = loras->count,
                                          .transformer = c->transformer,
                                          .t5 = c->t5,
                                          .refiner = c->refiner,
                                          .vae = c->vae,
                                          .preview = c->preview,
                                          .control_count = (size_t)c->controls.count,
                                          .controls = f->controls,
                                          .embeddings = f->embeddings,
                                          .embedding_count = (size_t)c->embeddings.count};
  return c->weights ? rdna__annotate(rdna__block_type_parse(c->weights, &f->options.weights), "--weights") : RDNA_OK;
}
