/* The networks; what is around them is in autoencoder_run.c. */
#include "model/image/autoencoder.h"

#include <stdio.h>
#include <string.h>

#include "rdna/memory.h"

enum { NAME_BYTES = RDNA__COMPONENT_NAME, MOST_CHANNELS = 1 << 13 };

static const double epsilon = 1e-6; /* of all norms */

/* ---- settings ---- */

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

rdna_status rdna__autoencoder_settings_read(const json_t *json, rdna__autoencoder_settings *out) {
  *out = (rdna__autoencoder_settings){0};
  RDNA_TRY(rdna__setting_is(json, "_class_name", "AutoencoderKL"));
  RDNA_TRY(rdna__setting_is(json, "act_fn", "silu"));
  RDNA_TRY(rdna__setting_is_null(json, "latents_mean"));
  RDNA_TRY(rdna__setting_is_null(json, "latents_std"));
  RDNA_TRY(rdna__setting_whole(json, "in_channels", 3, 1, 64, &out->in_channels));
  RDNA_TRY(rdna__setting_whole(json, "out_channels", 3, 1, 64, &out->out_channels));
  RDNA_TRY(rdna__setting_whole(json, "latent_channels", 4, 1, 256, &out->latent_channels));
  RDNA_TRY(rdna__setting_flag(json, "use_quant_conv", true, &out->quant));
  RDNA_TRY(rdna__setting_flag(json, "use_post_quant_conv", true, &out->post_quant));
  RDNA_TRY(rdna__setting_flag(json, "mid_block_add_attention", true, &out->attention));
  RDNA_TRY(rdna__setting_flag(json, "force_upcast", false, &out->upcast));
  RDNA_TRY(rdna__setting_number(json, "scaling_factor", 0.18215, 1e-6, 1e6, &out->scaling));
  RDNA_TRY(rdna__setting_number(json, "shift_factor", 0, -1e6, 1e6, &out->shift));
  return read_levels(json, out);
}

/* ---- weights ---- */

static rdna_status load_resnet(rdna__component *c, const rdna__autoencoder_settings *set, const char *prefix, int i,
                               int in, int out, rdna__image_resnet *to) {
  char name[NAME_BYTES];
  snprintf(name, sizeof name, "%s.resnets.%d", prefix, i);
  return rdna__image_load_resnet(c, name, in, out, 0, set->groups, epsilon, to);
}

static rdna_status load_mid(rdna__component *c, const rdna__autoencoder_settings *set, const char *of,
                            rdna__autoencoder_half *to) {
  int channels = set->channels[set->levels - 1];
  char name[NAME_BYTES];
  snprintf(name, sizeof name, "%s.mid_block", of);
  for (int i = 0; i < 2; i++) RDNA_TRY(load_resnet(c, set, name, i, channels, channels, &to->mid[i]));
  if (!set->attention) return RDNA_OK;
  snprintf(name, sizeof name, "%s.mid_block.attentions.0", of);
  return rdna__image_load_attention(c, name, channels, 1, set->groups, epsilon, &to->attention);
}

/* |i| counts as the half does: of the decoder 0 has the most channels. */
static rdna_status load_level(rdna__component *c, const rdna__autoencoder_settings *set, bool encodes, int i, int in,
                              int out, rdna__autoencoder_half *to) {
  static const char *const names[2][2] = {{"decoder.up_blocks", "upsamplers"}, {"encoder.down_blocks", "downsamplers"}};
  rdna__autoencoder_level *level = &to->levels[i];
  char name[NAME_BYTES];
  snprintf(name, sizeof name, "%s.%d", names[encodes][0], i);
  for (int r = 0; r < to->resnets; r++) RDNA_TRY(load_resnet(c, set, name, r, r ? out : in, out, &level->resnets[r]));
  if (i == to->level_count - 1) return RDNA_OK;
  snprintf(name, sizeof name, "%s.%d.%s.0", names[encodes][0], i, names[encodes][1]);
  if (!encodes) return rdna__image_load_doubling(c, name, "conv", out, &level->larger);
  const rdna__image_window window = {out, out, 3, 2, 0, 1}; /* zeros behind the image alone */
  return rdna__image_load_conv(c, name, "conv", &window, &level->smaller);
}

rdna_status rdna__autoencoder_load(rdna__component *c, const rdna__autoencoder_settings *set, bool encodes,
                                   rdna__autoencoder_half *to) {
  const char *of = encodes ? "encoder" : "decoder";
  int last = set->levels - 1, latents = set->latent_channels * (encodes ? 2 : 1);
  int first = encodes ? set->channels[0] : set->channels[last], end = encodes ? set->channels[last] : set->channels[0];
  int in = encodes ? set->in_channels : set->latent_channels, out = encodes ? latents : set->out_channels;
  *to = (rdna__autoencoder_half){.level_count = set->levels, .resnets = set->resnets + (encodes ? 0 : 1)};
  RDNA_TRY(rdna__image_load_conv(c, of, "conv_in", &(rdna__image_window){in, first, 3, 1, 1, 1}, &to->in));
  for (int i = 0, before = first; i <= last; i++) {
    int channels = set->channels[encodes ? i : last - i];
    RDNA_TRY(load_level(c, set, encodes, i, before, channels, to));
    before = channels;
  }
  RDNA_TRY(load_mid(c, set, of, to));
  RDNA_TRY(rdna__image_load_norm(c, of, "conv_norm_out", end, set->groups, epsilon, &to->norm));
  RDNA_TRY(rdna__image_load_conv(c, of, "conv_out", &(rdna__image_window){end, out, 3, 1, 1, 1}, &to->out));
  if (!(encodes ? set->quant : set->post_quant)) return RDNA_OK;
  const rdna__image_window one = {latents, latents, 1, 1, 0, 0};
  return rdna__image_load_conv(c, "", encodes ? "quant_conv" : "post_quant_conv", &one, &to->quant);
}

/* ---- a pass ---- */

/* x becomes |next|. */
static rdna_status go_on(rdna__image_pass *pass, rdna_tensor *x, const rdna_tensor *next) {
  RDNA_TRY(rdna__pass_drop(pass, x));
  *x = *next;
  return RDNA_OK;
}

static rdna_status convolve(rdna__image_pass *pass, const rdna__image_conv *conv, rdna_tensor *x) {
  rdna_tensor next;
  if (!conv->weight.data) return RDNA_OK;
  RDNA_TRY(rdna__image_conv_run(pass, conv, x, &next));
  return go_on(pass, x, &next);
}

static rdna_status middle(rdna__image_pass *pass, const rdna__autoencoder_half *half, rdna_tensor *x) {
  rdna_tensor next;
  RDNA_TRY(rdna__image_resnet_on(pass, &half->mid[0], x, NULL));
  if (half->attention.q.weight.data) {
    RDNA_TRY(rdna__image_attention_run(pass, &half->attention, x, &next));
    RDNA_TRY(go_on(pass, x, &next));
  }
  return rdna__image_resnet_on(pass, &half->mid[1], x, NULL);
}

static rdna_status end(rdna__image_pass *pass, const rdna__autoencoder_half *half, rdna_tensor *x) {
  RDNA_TRY(rdna__image_norm_into(pass, &half->norm, x, true, x));
  return convolve(pass, &half->out, x);
}

rdna_status rdna__autoencoder_encode(rdna__image_pass *pass, const rdna__autoencoder_half *half, rdna_tensor *x) {
  RDNA_TRY(convolve(pass, &half->in, x));
  for (int i = 0; i < half->level_count; i++) {
    for (int r = 0; r < half->resnets; r++) RDNA_TRY(rdna__image_resnet_on(pass, &half->levels[i].resnets[r], x, NULL));
    RDNA_TRY(convolve(pass, &half->levels[i].smaller, x));
  }
  RDNA_TRY(middle(pass, half, x));
  RDNA_TRY(end(pass, half, x));
  return convolve(pass, &half->quant, x);
}

rdna_status rdna__autoencoder_decode(rdna__image_pass *pass, const rdna__autoencoder_half *half, rdna_tensor *x) {
  rdna_tensor next;
  RDNA_TRY(convolve(pass, &half->quant, x));
  RDNA_TRY(convolve(pass, &half->in, x));
  RDNA_TRY(middle(pass, half, x));
  for (int i = 0; i < half->level_count; i++) {
    const rdna__autoencoder_level *level = &half->levels[i];
    for (int r = 0; r < half->resnets; r++) RDNA_TRY(rdna__image_resnet_on(pass, &level->resnets[r], x, NULL));
    if (!level->larger.bias.data) continue;
    RDNA_TRY(rdna__image_doubling_run(pass, &level->larger, x, &next));
    RDNA_TRY(go_on(pass, x, &next));
  }
  return end(pass, half, x);
}
