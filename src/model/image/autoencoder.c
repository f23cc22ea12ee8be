/* The networks; what is around them is in autoencoder_run.c. */
#include "model/image/autoencoder.h"

#include <stdio.h>

enum { NAME_BYTES = RDNA__COMPONENT_NAME };

static const double epsilon = 1e-6; /* of all norms */

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
  if (!encodes) return rdna__image_load_doubling(c, name, "conv", out, out, true, &level->larger);
  const rdna__image_window window = {out, out, 3, 2, 0, 1}; /* zeros behind the image alone */
  return rdna__image_load_conv(c, name, "conv", &window, &level->smaller);
}

rdna_status rdna__autoencoder_load(rdna__component *c, const rdna__autoencoder_settings *set, bool encodes,
                                   rdna__autoencoder_half *to) {
  if (set->kind == RDNA__AUTOENCODER_QWEN) return rdna__autoencoder_load_qwen(c, set, encodes, to);
  if (set->kind == RDNA__AUTOENCODER_TINY) return rdna__autoencoder_load_tiny(c, set, encodes, to);
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
  if (half->tiny) return rdna__autoencoder_encode_tiny(pass, half, x);
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
  if (half->tiny) return rdna__autoencoder_decode_tiny(pass, half, x);
  RDNA_TRY(convolve(pass, &half->quant, x));
  RDNA_TRY(convolve(pass, &half->in, x));
  RDNA_TRY(middle(pass, half, x));
  for (int i = 0; i < half->level_count; i++) {
    const rdna__autoencoder_level *level = &half->levels[i];
    for (int r = 0; r < half->resnets; r++) RDNA_TRY(rdna__image_resnet_on(pass, &level->resnets[r], x, NULL));
    if (!level->larger.weight[0][0].data) continue;
    RDNA_TRY(rdna__image_doubling_run(pass, &level->larger, x, &next));
    RDNA_TRY(go_on(pass, x, &next));
  }
  return end(pass, half, x);
}
