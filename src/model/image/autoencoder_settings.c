/* What config.json says of an autoencoder. */
#include <stdio.h>
#include <string.h>

#include "model/image/autoencoder.h"

enum { MOST_CHANNELS = 1 << 13, MOST_LATENTS = 256, USUAL_LEVELS = 4 };

int rdna__autoencoder_latents(const rdna__autoencoder_settings *s) { return s->latent_channels * s->patch * s->patch; }

int rdna__autoencoder_factor(const rdna__autoencoder_settings *s) { return s->patch << (s->levels - 1); }

/* All of |name|'s list are |kind|. */
static rdna_status check_kinds(const json_t *json, const char *name, const char *kind, int levels) {
  const char *kinds[RDNA__AUTOENCODER_LEVELS];
  int count;
  RDNA_TRY(rdna__setting_texts(json, name, RDNA__AUTOENCODER_LEVELS, kinds, &count));
  for (int i = 0; i < count; i++)
    if (strcmp(kinds[i], kind) != 0)
      return rdna__fail(RDNA_UNSUPPORTED, "the setting '%s' has '%.80s'; '%s' is known", name, kinds[i], kind);
  if (count == levels) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "the setting '%s' has %d values, and 'block_out_channels' %d", name, count, levels);
}

static rdna_status read_levels(const json_t *json, rdna__autoencoder_settings *out) {
  RDNA_TRY(rdna__setting_wholes(json, "block_out_channels", 1, MOST_CHANNELS, RDNA__AUTOENCODER_LEVELS, out->channels,
                                &out->levels));
  RDNA_TRY(check_kinds(json, "down_block_types", "DownEncoderBlock2D", out->levels));
  RDNA_TRY(check_kinds(json, "up_block_types", "UpDecoderBlock2D", out->levels));
  RDNA_TRY(rdna__setting_whole(json, "layers_per_block", 1, 1, RDNA__AUTOENCODER_RESNETS - 1, &out->resnets));
  RDNA_TRY(rdna__setting_whole(json, "norm_num_groups", 32, 1, MOST_CHANNELS, &out->groups));
  for (int i = 0; i < out->levels; i++)
    if (out->channels[i] % out->groups != 0)
      return rdna__fail(RDNA_BAD_DATA, "the %d channels of level %d are no whole number of %d 'norm_num_groups'",
                        out->channels[i], i, out->groups);
  return RDNA_OK;
}

/* What the kinds of resnet blocks in groups have. */
static rdna_status read_groups(const json_t *json, int latent_channels, rdna__autoencoder_settings *out) {
  RDNA_TRY(rdna__setting_is(json, "act_fn", "silu"));
  RDNA_TRY(rdna__setting_whole(json, "in_channels", 3, 1, 64, &out->in_channels));
  RDNA_TRY(rdna__setting_whole(json, "out_channels", 3, 1, 64, &out->out_channels));
  RDNA_TRY(rdna__setting_whole(json, "latent_channels", latent_channels, 1, MOST_LATENTS, &out->latent_channels));
  RDNA_TRY(rdna__setting_flag(json, "use_quant_conv", true, &out->quant));
  RDNA_TRY(rdna__setting_flag(json, "use_post_quant_conv", true, &out->post_quant));
  RDNA_TRY(rdna__setting_flag(json, "mid_block_add_attention", true, &out->attention));
  RDNA_TRY(read_levels(json, out));
  out->first = out->channels[0];
  return RDNA_OK;
}

static rdna_status read_kl(const json_t *json, rdna__autoencoder_settings *out) {
  RDNA_TRY(rdna__setting_is_null(json, "latents_mean"));
  RDNA_TRY(rdna__setting_is_null(json, "latents_std"));
  RDNA_TRY(rdna__setting_flag(json, "force_upcast", false, &out->upcast));
  out->borrows = json_is_true(json_object_get(json, "_borrows")); /* which no folder says */
  RDNA_TRY(rdna__setting_number(json, "scaling_factor", 0.18215, 1e-6, 1e6, &out->scaling));
  RDNA_TRY(rdna__setting_number(json, "shift_factor", 0, -1e6, 1e6, &out->shift));
  RDNA_TRY(read_groups(json, 4, out));
  for (int i = 0; i < out->latent_channels; i++) {
    out->mean[i] = out->shift;
    out->deviation[i] = 1 / out->scaling;
  }
  return RDNA_OK;
}

static rdna_status read_flux2(const json_t *json, rdna__autoencoder_settings *out) {
  int patch[2] = {2, 2}, count = 2;
  const json_t *value = json_object_get(json, "patch_size");
  RDNA_TRY(rdna__setting_is_null(json, "decoder_block_out_channels"));
  RDNA_TRY(rdna__setting_number(json, "batch_norm_eps", 1e-4, 0, 1, &out->epsilon));
  if (value && !json_is_null(value)) RDNA_TRY(rdna__setting_wholes(json, "patch_size", 1, 64, 2, patch, &count));
  if (count != 2 || patch[0] != 2 || patch[1] != 2)
    return rdna__fail(RDNA_UNSUPPORTED, "the setting 'patch_size' is %d x %d; 2 x 2 is known", patch[0],
                      patch[count - 1]);
  out->patch = 2;
  return read_groups(json, 32, out);
}

/* A number for each of |count| channels. */
static rdna_status read_numbers(const json_t *json, const char *name, int count, double low, double *out) {
  const json_t *list = json_object_get(json, name);
  if (!json_is_array(list) || json_array_size(list) != (size_t)count)
    return rdna__fail(RDNA_BAD_DATA, "the setting '%s' is no list of %d numbers, as there are channels", name, count);
  for (int i = 0; i < count; i++) {
    const json_t *value = json_array_get(list, (size_t)i);
    out[i] = json_number_value(value);
    if (!json_is_number(value) || !(out[i] >= low && out[i] <= 1e6))
      return rdna__fail(RDNA_BAD_DATA, "the setting '%s' has a value that is no number from %g to 1000000", name, low);
  }
  return RDNA_OK;
}

static rdna_status read_qwen(const json_t *json, rdna__autoencoder_settings *out) {
  const json_t *scales = json_object_get(json, "attn_scales"), *times = json_object_get(json, "temperal_downsample");
  int base, factors[RDNA__AUTOENCODER_LEVELS] = {1, 2, 4, 4};
  out->levels = 4;
  RDNA_TRY(rdna__setting_whole(json, "base_dim", 96, 1, MOST_CHANNELS / 64, &base));
  RDNA_TRY(rdna__setting_whole(json, "z_dim", 16, 1, MOST_LATENTS, &out->latent_channels));
  RDNA_TRY(rdna__setting_whole(json, "input_channels", 3, 1, 64, &out->in_channels));
  RDNA_TRY(rdna__setting_whole(json, "num_res_blocks", 2, 1, RDNA__AUTOENCODER_RESNETS - 1, &out->resnets));
  if (json_object_get(json, "dim_mult"))
    RDNA_TRY(rdna__setting_wholes(json, "dim_mult", 1, 64, RDNA__AUTOENCODER_LEVELS, factors, &out->levels));
  if (scales && !json_is_null(scales) && !(json_is_array(scales) && json_array_size(scales) == 0))
    return rdna__fail(RDNA_UNSUPPORTED, "the setting 'attn_scales' is no empty list; attention in levels is not known");
  size_t smaller = times && !json_is_null(times) ? json_array_size(times) : 3;
  if (smaller + 1 != (size_t)out->levels)
    return rdna__fail(RDNA_BAD_DATA,
                      "the setting 'temperal_downsample' has %zu values, and 'dim_mult' %d, which is "
                      "one more at each place",
                      smaller, out->levels);
  for (int i = 0; i < out->levels; i++) {
    out->channels[i] = base * factors[i];
    if (i && out->channels[i] % 2 != 0)
      return rdna__fail(RDNA_BAD_DATA, "the %d channels of level %d are odd, and halved on the way to a picture",
                        out->channels[i], i);
  }
  out->first = base;
  out->out_channels = out->in_channels;
  out->quant = out->post_quant = out->attention = true;
  RDNA_TRY(read_numbers(json, "latents_mean", out->latent_channels, -1e6, out->mean));
  return read_numbers(json, "latents_std", out->latent_channels, 1e-6, out->deviation);
}

/* The list |name|, or |usual| where it is missing. */
static rdna_status read_list(const json_t *json, const char *name, const int usual[USUAL_LEVELS], int low, int high,
                             int out[RDNA__AUTOENCODER_LEVELS], int *out_count) {
  const json_t *value = json_object_get(json, name);
  memcpy(out, usual, USUAL_LEVELS * sizeof *out);
  *out_count = USUAL_LEVELS;
  if (!value || json_is_null(value)) return RDNA_OK;
  return rdna__setting_wholes(json, name, low, high, RDNA__AUTOENCODER_LEVELS, out, out_count);
}

/* Channels and blocks of one half of a tiny one, whose levels all have as many channels. */
static rdna_status read_tiny_half(const json_t *json, const char *half, const int usual[USUAL_LEVELS],
                                  int channels[RDNA__AUTOENCODER_LEVELS], int blocks[RDNA__AUTOENCODER_LEVELS],
                                  int *out_levels) {
  static const int wide[USUAL_LEVELS] = {64, 64, 64, 64};
  char of_channels[64], of_blocks[64];
  int count;
  snprintf(of_channels, sizeof of_channels, "%s_block_out_channels", half);
  snprintf(of_blocks, sizeof of_blocks, "num_%s_blocks", half);
  RDNA_TRY(read_list(json, of_channels, wide, 1, MOST_CHANNELS, channels, out_levels));
  RDNA_TRY(read_list(json, of_blocks, usual, 0, RDNA__AUTOENCODER_RESNETS, blocks, &count));
  if (count != *out_levels)
    return rdna__fail(RDNA_BAD_DATA, "the setting '%s' has %d values, and '%s' %d", of_blocks, count, of_channels,
                      *out_levels);
  for (int i = 1; i < count; i++)
    if (channels[i] != channels[0])
      return rdna__fail(RDNA_BAD_DATA, "the setting '%s' has %d and %d; levels of a tiny autoencoder are equally wide",
                        of_channels, channels[0], channels[i]);
  return RDNA_OK;
}

static rdna_status read_tiny(const json_t *json, rdna__autoencoder_settings *out) {
  static const int down[USUAL_LEVELS] = {1, 3, 3, 3}, up[USUAL_LEVELS] = {3, 3, 3, 1};
  int channels[RDNA__AUTOENCODER_LEVELS], levels, factor;
  RDNA_TRY(rdna__setting_is(json, "act_fn", "relu"));
  RDNA_TRY(rdna__setting_is(json, "upsample_fn", "nearest"));
  RDNA_TRY(rdna__setting_whole(json, "upsampling_scaling_factor", 2, 1, 64, &factor));
  RDNA_TRY(rdna__setting_flag(json, "force_upcast", false, &out->upcast));
  RDNA_TRY(rdna__setting_number(json, "scaling_factor", 1, 1e-6, 1e6, &out->scaling));
  RDNA_TRY(rdna__setting_number(json, "shift_factor", 0, -1e6, 1e6, &out->shift));
  RDNA_TRY(rdna__setting_whole(json, "in_channels", 3, 1, 64, &out->in_channels));
  RDNA_TRY(rdna__setting_whole(json, "out_channels", 3, 1, 64, &out->out_channels));
  RDNA_TRY(rdna__setting_whole(json, "latent_channels", 4, 1, MOST_LATENTS, &out->latent_channels));
  RDNA_TRY(read_tiny_half(json, "encoder", down, channels, out->blocks[1], &levels));
  RDNA_TRY(read_tiny_half(json, "decoder", up, out->channels, out->blocks[0], &out->levels));
  if (factor != 2 || levels != out->levels)
    return rdna__fail(RDNA_UNSUPPORTED,
                      "pictures are halved %d times and made %d times as large %d times; halves and doubles of equal "
                      "number are known",
                      levels - 1, factor, out->levels - 1);
  out->first = channels[0];
  out->groups = out->resnets = 1;
  for (int i = 0; i < out->latent_channels; i++) {
    out->mean[i] = out->shift;
    out->deviation[i] = 1 / out->scaling;
  }
  return RDNA_OK;
}

rdna_status rdna__autoencoder_settings_read(const json_t *json, rdna__autoencoder_settings *out) {
  static const struct {
    const char *name;
    rdna_status (*read)(const json_t *json, rdna__autoencoder_settings *out);
  } kinds[] = {[RDNA__AUTOENCODER_KL] = {"AutoencoderKL", read_kl},
               [RDNA__AUTOENCODER_QWEN] = {"AutoencoderKLQwenImage", read_qwen},
               [RDNA__AUTOENCODER_FLUX2] = {"AutoencoderKLFlux2", read_flux2},
               [RDNA__AUTOENCODER_TINY] = {"AutoencoderTiny", read_tiny}};
  const char *name;
  RDNA_TRY(rdna__setting_text(json, "_class_name", kinds[0].name, &name));
  for (int i = 0; i < (int)(sizeof kinds / sizeof *kinds); i++) {
    if (strcmp(name, kinds[i].name) != 0) continue;
    *out = (rdna__autoencoder_settings){.kind = (rdna__autoencoder_kind)i, .patch = 1, .scaling = 1};
    return kinds[i].read(json, out);
  }
  return rdna__fail(RDNA_UNSUPPORTED, "the setting '_class_name' is '%.80s'; %s, %s, %s and %s are known", name,
                    kinds[0].name, kinds[1].name, kinds[2].name, kinds[3].name);
}
