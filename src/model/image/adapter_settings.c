/* What an IP-Adapter's tensors say of it. */
#include <stdio.h>
#include <string.h>

#include "model/image/adapter.h"

enum { NAME_BYTES = 96, HEAD = 64, MOST_SIZE = 1 << 16, MOST_TOKENS = 1 << 10, MOST_DEPTH = 64 };

/* Size |dimension| of a tensor; 0: there is none. */
static int size_of(const rdna__safetensors *s, const char *name, int dimension) {
  const rdna__safetensor *t = rdna__safetensors_find(s, name);
  return t && dimension < t->rank && t->shape[dimension] <= MOST_SIZE ? (int)t->shape[dimension] : 0;
}

static rdna_status refuse(const rdna__safetensors *s) {
  static const char *const others[][2] = {
      {"image_proj.perceiver_resampler.proj_in.weight", "one for faces (FaceID Plus), which reads a network for them"},
      {"image_proj.proj.3.weight", "one of all patches without a resampler (full face)"},
      {"image_proj.norm.weight", "one for faces (FaceID), which reads a network for them"},
      {"ip_adapter_proj_model.proj.weight", "one of FLUX"}};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (rdna__safetensors_find(s, others[i][0]))
      return rdna__fail(RDNA_UNSUPPORTED, "it is an IP-Adapter of a kind that is not known: %s", others[i][1]);
  return rdna__fail(RDNA_UNSUPPORTED,
                    "it is no IP-Adapter: it has neither 'image_proj.proj.weight' nor 'image_proj.latents'");
}

/* Of states, by a resampler (Flamingo's, Alayrac et al., 2022). */
static rdna_status read_plus(const rdna__safetensors *s, rdna__adapter_settings *out) {
  char name[NAME_BYTES];
  out->plus = true;
  out->tokens = size_of(s, "image_proj.latents", 1);
  out->hidden = size_of(s, "image_proj.latents", 2);
  out->seen = size_of(s, "image_proj.proj_in.weight", 1);
  out->width = size_of(s, "image_proj.proj_out.weight", 0);
  out->inner = size_of(s, "image_proj.layers.0.0.to_q.weight", 0);
  out->feed = size_of(s, "image_proj.layers.0.1.1.weight", 0);
  for (;; out->depth++) {
    snprintf(name, sizeof name, "image_proj.layers.%d.0.to_q.weight", out->depth);
    if (out->depth == MOST_DEPTH || !size_of(s, name, 0)) break;
  }
  if (out->tokens > 0 && out->hidden > 0 && out->seen > 0 && out->width > 0 && out->feed > 0 && out->inner > 0 &&
      out->inner % HEAD == 0)
    return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA,
                    "its resampler makes %d tokens of %d values, of %d values of a state, by heads of %d together; "
                    "heads of %d are known",
                    out->tokens, out->width, out->seen, out->inner, HEAD);
}

static rdna_status read_base(const rdna__safetensors *s, rdna__adapter_settings *out) {
  int all = size_of(s, "image_proj.proj.weight", 0);
  out->seen = size_of(s, "image_proj.proj.weight", 1);
  out->width = size_of(s, "image_proj.norm.weight", 0);
  out->tokens = out->width ? all / out->width : 0;
  if (out->seen > 0 && out->tokens > 0 && out->tokens * out->width == all) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "its %d values of a picture are no whole tokens of %d", all, out->width);
}

rdna_status rdna__adapter_settings_read(const rdna__safetensors *s, rdna__adapter_settings *out) {
  char name[NAME_BYTES];
  *out = (rdna__adapter_settings){0};
  if (rdna__safetensors_find(s, "image_proj.proj.weight"))
    RDNA_TRY(read_base(s, out));
  else if (rdna__safetensors_find(s, "image_proj.latents"))
    RDNA_TRY(read_plus(s, out));
  else
    return refuse(s);
  for (; out->layers < RDNA__ADAPTER_LAYERS; out->layers++) {
    snprintf(name, sizeof name, "ip_adapter.%d.to_k_ip.weight", 2 * out->layers + 1);
    int channels = size_of(s, name, 0);
    if (!channels) break;
    out->channels[out->layers] = channels;
  }
  if (out->layers > 0 && out->tokens <= MOST_TOKENS) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "it makes %d tokens for %d places of attention", out->tokens, out->layers);
}

/* |out| becomes the channels of each place of attention over texts. */
static int places_of(const rdna__unet_settings *s, int out[RDNA__ADAPTER_LAYERS]) {
  int count = 0, last = s->stages - 1;
  for (int way = 0; way < 3; way++)
    for (int i = 0; i < (way == 2 ? 1 : s->stages); i++) {
      int of = way == 0 ? i : way == 1 ? last - i : last, layers = way == 2 ? 1 : s->layers[of] + way;
      if (way < 2 && !(way ? s->up_attends[of] : s->down_attends[of])) continue;
      for (int k = 0; k < layers * s->blocks[of] && count < RDNA__ADAPTER_LAYERS; k++) out[count++] = s->channels[of];
    }
  return count;
}

rdna_status rdna__adapter_fit(const rdna__adapter_settings *own, const rdna__unet_settings *unet) {
  int channels[RDNA__ADAPTER_LAYERS], count = places_of(unet, channels);
  bool same = own->width == unet->text_width && own->layers == count;
  for (int i = 0; same && i < count; i++) same = own->channels[i] == channels[i];
  if (same) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA,
                    "the IP-Adapter was made for another version of the model: it makes tokens of %d values for %d "
                    "places of attention, and the U-Net reads %d and has %d",
                    own->width, own->layers, unet->text_width, count);
}

rdna_status rdna__adapter_fits(const char *path, const rdna__unet_settings *unet, rdna__adapter_settings *out) {
  rdna__safetensors *file;
  RDNA_TRY(rdna__safetensors_open_either(path, &file));
  rdna_status status = rdna__adapter_settings_read(file, out);
  if (status == RDNA_OK) status = rdna__adapter_fit(out, unet);
  rdna__safetensors_close(file);
  return rdna__annotate(status, "%s", path);
}
