/* Files of low-rank changes: opened, checked against what the model has, and asked whether all of them was used. */
#include "model/image/lora.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/image/lora_files.h"
#include "model/image/settings.h"

typedef rdna__lora_file file;

/* ---- whose tensors are ---- */

/* The part is one that the model has. */
static rdna_status check_owner(const rdna__lora_target *target, const char *name) {
  rdna__lora_part part = rdna__lora_owner(target, name);
  if (part == LORA_PARTS)
    return rdna__fail(RDNA_UNSUPPORTED, "tensor '%.120s' is called as no LoRA's of Stable Diffusion", name);
  if (part == LORA_ENCODER && target->encoders < 1)
    return rdna__fail(RDNA_BAD_DATA,
                      "tensor '%.120s' is for CLIP, which the model has not: the LoRA is for another model", name);
  if (part == LORA_ENCODER_2 && target->encoders < 2)
    return rdna__fail(RDNA_BAD_DATA,
                      "tensor '%.120s' is for a second text encoder, which the model has not: the LoRA is for another "
                      "version",
                      name);
  if (part == LORA_T5 && !target->has_t5)
    return rdna__fail(RDNA_BAD_DATA,
                      "tensor '%.120s' is for T5, which the model has not: the LoRA is for another model", name);
  return RDNA_OK;
}

static rdna_status check_owners(const file *f, const rdna__lora_target *target) {
  for (size_t i = 0; i < rdna__safetensors_count(f->tensors); i++) {
    const rdna__safetensor *t = rdna__safetensors_at(f->tensors, i);
    RDNA_TRY(check_owner(target, t->name));
    if (t->dtype != RDNA_F32 && t->dtype != RDNA_F16 && t->dtype != RDNA_BF16)
      return rdna__fail(RDNA_UNSUPPORTED, "tensor '%.120s' is of type %s; F32, F16 and BF16 are read", t->name,
                        t->type);
    for (int k = 0; k < t->rank; k++)
      if (t->shape[k] < 1) return rdna__fail(RDNA_BAD_DATA, "tensor '%.120s' has no values", t->name);
  }
  return RDNA_OK;
}

/* ---- what a file says of itself ---- */

static bool is_empty(const json_t *value) {
  return !value || json_is_null(value) || (json_is_object(value) && json_object_size(value) == 0);
}

/* diffusers has PEFT's settings of each part in "lora_adapter_metadata". */
static rdna_status read_ratios(const json_t *json, file *f) {
  static const struct {
    const char *name;
    rdna__lora_part part;
  } parts[] = {{"unet", LORA_NETWORK},
               {"transformer", LORA_NETWORK},
               {"text_encoder", LORA_ENCODER},
               {"text_encoder_2", LORA_ENCODER_2}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    char names[6][64];
    static const char *const forms[] = {"r", "lora_alpha", "use_rslora", "use_dora", "rank_pattern", "alpha_pattern"};
    for (int k = 0; k < 6; k++) snprintf(names[k], sizeof names[k], "%s.%s", parts[i].name, forms[k]);
    const json_t *rank = json_object_get(json, names[0]), *alpha = json_object_get(json, names[1]);
    if (!rank && !alpha) continue;
    double r = json_number_value(rank), a = json_number_value(alpha);
    if (!(r >= 1) || !json_is_number(alpha))
      return rdna__fail(RDNA_BAD_DATA, "its metadata says '%s' and '%s' as no numbers", names[0], names[1]);
    if (json_is_true(json_object_get(json, names[3])) || !is_empty(json_object_get(json, names[4])) ||
        !is_empty(json_object_get(json, names[5])))
      return rdna__fail(
          RDNA_UNSUPPORTED,
          "its metadata says '%s', '%s' or '%s'; one rank and alpha for a part are known, and no magnitudes", names[3],
          names[4], names[5]);
    f->said[parts[i].part].rank = r;
    f->said[parts[i].part].scale = a / (json_is_true(json_object_get(json, names[2])) ? sqrt(r) : r);
  }
  return RDNA_OK;
}

static rdna_status read_metadata(file *f) {
  const char *text = rdna__safetensors_metadata(f->tensors, "lora_adapter_metadata");
  json_t *json = NULL;
  if (!text) return RDNA_OK;
  RDNA_TRY(rdna__annotate(rdna__settings_parse(text, strlen(text), &json), "its lora_adapter_metadata"));
  rdna_status status = read_ratios(json, f);
  json_decref(json);
  return status;
}

/* ---- opening ---- */

static rdna_status open_one(const rdna_image_lora *given, const rdna__lora_target *target, file *f) {
  f->opened = f->scale = given->scale;
  f->path = strdup(given->path);
  if (!f->path) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a path");
  RDNA_TRY(rdna__safetensors_open_file(given->path, &f->tensors));
  size_t count = rdna__safetensors_count(f->tensors);
  f->used = calloc(count + 1, sizeof *f->used);
  if (!f->used) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a LoRA");
  rdna_status status = count ? check_owners(f, target) : rdna__fail(RDNA_BAD_DATA, "it has no tensors");
  if (status == RDNA_OK) status = read_metadata(f);
  return rdna__annotate(status, "%s", given->path);
}

rdna_status rdna__loras_open(const rdna_image_lora *given, int count, const rdna__lora_target *target,
                             rdna__loras **out) {
  *out = NULL;
  if (count == 0) return RDNA_OK;
  if (count < 0 || count > RDNA__IMAGE_LORAS)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%d LoRAs; up to %d may be", count, RDNA__IMAGE_LORAS);
  rdna__loras *l = calloc(1, sizeof *l);
  if (!l) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for LoRAs");
  l->target = *target;
  rdna_status status = RDNA_OK;
  for (int i = 0; i < count && status == RDNA_OK; i++) {
    if (!given[i].path || !isfinite(given[i].scale))
      status = rdna__fail(RDNA_INVALID_ARGUMENT, "LoRA %d has no path, or a scale that is no number", i);
    else
      status = open_one(&given[i], target, &l->files[l->count++]);
  }
  if (status == RDNA_OK)
    *out = l;
  else
    rdna__loras_close(l);
  return status;
}

void rdna__loras_close(rdna__loras *l) {
  if (!l) return;
  for (int i = 0; i < l->count; i++) {
    rdna__safetensors_close(l->files[i].tensors);
    free(l->files[i].path);
    free(l->files[i].used);
  }
  free(l);
}

int rdna__loras_count(const rdna__loras *l) { return l ? l->count : 0; }
const char *rdna__loras_path(const rdna__loras *l, int i) { return l->files[i].path; }
double rdna__loras_opened_scale(const rdna__loras *l, int i) { return l->files[i].opened; }

bool rdna__loras_use(rdna__loras *l, const double *scales, double used[RDNA__IMAGE_LORAS]) {
  bool other = false;
  for (int i = 0; l && i < l->count; i++) {
    double scale = scales ? scales[i] : l->files[i].opened;
    other |= used[i] != scale;
    used[i] = l->files[i].scale = scale;
  }
  return other;
}

/* ---- what was asked for ---- */

const rdna__safetensor *rdna__lora_ask(const file *f, const char *base, const char *kind, bool use) {
  char name[RDNA__LORA_NAME + 64];
  snprintf(name, sizeof name, "%s.%s", base, kind);
  const rdna__safetensor *t = rdna__safetensors_find(f->tensors, name);
  if (t && use) f->used[t - rdna__safetensors_at(f->tensors, 0)] = true;
  return t;
}

rdna_status rdna__loras_check_used(const rdna__loras *l, rdna__lora_part part) {
  for (int i = 0; l && i < l->count; i++) {
    const file *f = &l->files[i];
    const char *first = NULL;
    size_t unused = 0;
    if (f->scale == 0) continue;
    for (size_t k = rdna__safetensors_count(f->tensors); k-- > 0;) {
      const char *name = rdna__safetensors_at(f->tensors, k)->name;
      if (f->used[k] || rdna__lora_owner(&l->target, name) != part) continue;
      unused++;
      first = name;
    }
    if (unused)
      return rdna__fail(
          RDNA_BAD_DATA,
          "%s: %zu tensors, '%.120s' for one, fit nothing in the model: the LoRA is for another version of "
          "it, or of a kind that is not known",
          f->path, unused, first);
  }
  return RDNA_OK;
}
