/* Pictures as prompts: CLIP's encoder reads them, and IP-Adapters make tokens of that for the U-Net.
 *
 *     picture -- encoder -- vector, or states -- adapter -- keys and values of each block -- U-Net            */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/image/adapter.h"
#include "model/image/pipeline.h"

/* ---- opening ---- */

static rdna_status keep(const char *path, const char *kind, char **out) {
  if (!path) return rdna__fail(RDNA_INVALID_ARGUMENT, "%s has no path", kind);
  *out = strdup(path);
  return *out ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the name of %s", kind);
}

rdna_status rdna__pipeline_keep_adapters(rdna_image_model *m, const rdna_image_model_options *o) {
  rdna__adapter_settings set;
  if (!o->adapter_count && !o->image_encoder) return RDNA_OK;
  if (m->family)
    return rdna__fail(RDNA_UNSUPPORTED, "%s is %s, which has no IP-Adapter that is known", m->folder, m->info.family);
  if (o->adapter_count > RDNA__PIPELINE_ADAPTERS || !o->adapters || !o->adapter_count)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%zu IP-Adapters; an encoder of pictures is for 1 to %d of them",
                      o->adapter_count, RDNA__PIPELINE_ADAPTERS);
  if (!o->image_encoder)
    return rdna__fail(
        RDNA_INVALID_ARGUMENT,
        "IP-Adapters read pictures by an encoder, whose folder is missing (--ip-encoder): that which they "
        "were trained with, ViT-H or for XL's first ViT-bigG");
  RDNA_TRY(keep(o->image_encoder, "an encoder of pictures", &m->image_encoder_path));
  for (; m->adapter_count < (int)o->adapter_count; m->adapter_count++) {
    RDNA_TRY(keep(o->adapters[m->adapter_count], "an IP-Adapter", &m->adapter_paths[m->adapter_count]));
    RDNA_TRY(rdna__adapter_fits(o->adapters[m->adapter_count], &m->unet_settings, &set));
  }
  return RDNA_OK;
}

rdna_status rdna__pipeline_check_references(const rdna_image_model *m, const rdna_image_request *r) {
  bool used[RDNA__PIPELINE_ADAPTERS] = {false};
  if (r->reference_count && !r->references)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the pictures for IP-Adapters are missing");
  for (size_t i = 0; i < r->reference_count; i++) {
    const rdna_image_reference *one = &r->references[i];
    if (one->adapter >= (size_t)m->adapter_count || used[one->adapter])
      return rdna__fail(RDNA_INVALID_ARGUMENT, "IP-Adapter %zu is asked for%s, and there are %d, from 0", one->adapter,
                        one->adapter < (size_t)m->adapter_count ? " twice" : "", m->adapter_count);
    used[one->adapter] = true;
    if (!isfinite(one->scale) || fabs(one->scale) > 1000)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "an IP-Adapter is to count %g times; it is a number up to 1000",
                        one->scale);
    if (!one->pixels || one->width < 1 || one->height < 1)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "an IP-Adapter to be used has no picture");
  }
  return RDNA_OK;
}

/* ---- what pictures become ---- */

/* What an adapter reads of its picture: (count, rows, width). */
typedef struct sight {
  float *values;
  int rows, width;
} sight;

/* Of what is not to be seen a vector of zeros, or the states of a picture of zeros, as diffusers has it. */
static rdna_status look(rdna_image_vision_encoder *e, const rdna__adapter_settings *set,
                        const rdna_image_reference *one, bool guided, int count, sight *out) {
  const rdna_image_vision_encoder_info *info = rdna_image_vision_encoder_get_info(e);
  *out = (sight){.rows = set->plus ? info->tokens : 1, .width = set->plus ? info->width : info->projected};
  if (out->width != set->seen)
    return rdna__fail(RDNA_BAD_DATA,
                      "the IP-Adapter reads %d values of %s, and the encoder makes %d: it was trained with another one",
                      set->seen, set->plus ? "a state" : "a picture", out->width);
  size_t each = (size_t)out->rows * (size_t)out->width;
  out->values = calloc((size_t)count * each, sizeof *out->values);
  if (!out->values) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for what is seen of a picture");
  float *seen = out->values + (guided ? each : 0);
  RDNA_TRY(rdna_image_vision_encoder_encode(e, one->pixels, one->height, one->width, set->plus ? NULL : seen,
                                            set->plus ? seen : NULL));
  if (guided && set->plus) RDNA_TRY(rdna_image_vision_encoder_encode(e, NULL, 0, 0, NULL, out->values));
  for (int i = guided + 1; i < count; i++) memcpy(out->values + (size_t)i * each, seen, each * sizeof *seen);
  return RDNA_OK;
}

static rdna_status look_at_all(rdna_image_model *m, const rdna_image_request *r, bool guided, int count,
                               sight sights[RDNA__PIPELINE_ADAPTERS]) {
  rdna__adapter_settings set;
  if (!m->image_encoder)
    RDNA_TRY(rdna_image_vision_encoder_create(m->device, m->image_encoder_path, &m->image_encoder));
  for (size_t i = 0; i < r->reference_count; i++) {
    const char *path = m->adapter_paths[r->references[i].adapter];
    RDNA_TRY(rdna__adapter_fits(path, &m->unet_settings, &set));
    RDNA_TRY(rdna__annotate(look(m->image_encoder, &set, &r->references[i], guided, count, &sights[i]), "%s", path));
  }
  if (r->frugal) rdna__pipeline_drop_image_encoder(m);
  return RDNA_OK;
}

static rdna_status make_tokens(rdna_image_model *m, const rdna_image_request *r, int which, const sight *s, int count) {
  size_t adapter = r->references[which].adapter;
  if (!m->adapters[adapter])
    RDNA_TRY(rdna_image_adapter_create(m->device, m->adapter_paths[adapter], m->dtype, &m->adapters[adapter]));
  const rdna_image_adapter_info *info = rdna_image_adapter_get_info(m->adapters[adapter]);
  const int64_t shape[] = {count, info->tokens, info->width};
  float *tokens = r->values ? malloc((size_t)(shape[0] * shape[1] * shape[2]) * sizeof *tokens) : NULL;
  if (r->values && !tokens) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a picture's tokens");
  rdna_status status = rdna_image_adapter_see(m->adapters[adapter], s->values, count, s->rows, tokens);
  if (status == RDNA_OK && r->values) status = r->values(r->data, "adapter_tokens", -1, which, 3, shape, tokens);
  free(tokens);
  return status;
}

rdna_status rdna__pipeline_see_references(rdna_image_model *m, const rdna_image_request *r, bool guided, int count) {
  sight sights[RDNA__PIPELINE_ADAPTERS] = {{0}};
  if (!r->reference_count) return RDNA_OK;
  rdna_status status = look_at_all(m, r, guided, count, sights);
  for (int i = 0; i < (int)r->reference_count && status == RDNA_OK; i++)
    status = make_tokens(m, r, i, &sights[i], count);
  for (int i = 0; i < RDNA__PIPELINE_ADAPTERS; i++) free(sights[i].values);
  return status;
}

size_t rdna__pipeline_adapters(const rdna_image_model *m, const rdna_image_request *r, rdna_image_adapter_use *uses) {
  for (size_t i = 0; i < r->reference_count; i++)
    uses[i] = (rdna_image_adapter_use){m->adapters[r->references[i].adapter], r->references[i].scale};
  return r->reference_count;
}

/* ---- on the device ---- */

void rdna__pipeline_drop_image_encoder(rdna_image_model *m) {
  if (!m->image_encoder) return;
  rdna__pipeline_note(m, "image encoder", rdna_image_vision_encoder_get_info(m->image_encoder)->weights_bytes);
  rdna_image_vision_encoder_release(m->image_encoder);
  m->image_encoder = NULL;
  rdna__pipeline_left(m);
}

void rdna__pipeline_drop_adapters(rdna_image_model *m) {
  for (int i = 0; i < RDNA__PIPELINE_ADAPTERS; i++) {
    rdna_image_adapter_release(m->adapters[i]);
    m->adapters[i] = NULL;
  }
}
