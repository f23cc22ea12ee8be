/* Weights of Qwen-Image's autoencoder, which is that of Wan's films. A single picture is the first of a film, before
 * which all is zeros: of what convolutions read of three pictures the last is left. What is between pictures
 * (time_conv) is not asked for. */
#include <stdio.h>

#include "model/image/autoencoder.h"

enum { NAME_BYTES = RDNA__COMPONENT_NAME };

static const double epsilon = 1e-24; /* theirs is for roots of sums that are 0 alone */

static rdna_status load_bias(rdna__component *c, const char *prefix, const char *name, int count, rdna_tensor *out) {
  char full[NAME_BYTES];
  const int64_t shape = count;
  snprintf(full, sizeof full, "%s.bias", name);
  return rdna__component_load(c, prefix, full, c->network->dtype, 1, &shape, out);
}

/* Of |size| places in all directions, of which there are zeros around the picture. */
static rdna_status load_conv(rdna__component *c, const char *prefix, const char *name, int in, int out, int size,
                             rdna__image_conv *to) {
  char full[NAME_BYTES];
  snprintf(full, sizeof full, "%s.weight", name);
  to->stride = 1;
  to->pad_before = to->pad_after = size / 2;
  RDNA_TRY(rdna__component_load_last_window(c, prefix, full, out, in, size, size, size, &to->weight));
  return load_bias(c, prefix, name, out, &to->bias);
}

/* |rank|: what the file has of it, one dimension of channels and others of 1. */
static rdna_status load_norm(rdna__component *c, const char *prefix, const char *name, int channels, int rank,
                             rdna__image_norm *out) {
  char full[NAME_BYTES];
  const int64_t shape[] = {channels, 1, 1, 1};
  snprintf(full, sizeof full, "%s.gamma", name);
  *out = (rdna__image_norm){.epsilon = epsilon};
  RDNA_TRY(rdna__component_load(c, prefix, full, RDNA_F32, rank, shape, &out->weight));
  out->weight.rank = 1;
  return RDNA_OK;
}

static rdna_status load_resnet(rdna__component *c, const char *prefix, int in, int out, rdna__image_resnet *r) {
  *r = (rdna__image_resnet){.divisor = 1};
  RDNA_TRY(load_norm(c, prefix, "norm1", in, 4, &r->norm1));
  RDNA_TRY(load_conv(c, prefix, "conv1", in, out, 3, &r->conv1));
  RDNA_TRY(load_norm(c, prefix, "norm2", out, 4, &r->norm2));
  RDNA_TRY(load_conv(c, prefix, "conv2", out, out, 3, &r->conv2));
  return in == out ? RDNA_OK : load_conv(c, prefix, "conv_shortcut", in, out, 1, &r->shortcut);
}

/* q, k and v are rows of one matrix. */
static rdna_status load_attention(rdna__component *c, const char *prefix, int channels, rdna__image_attention *a) {
  rdna__image_linear *const parts[] = {&a->q, &a->k, &a->v};
  rdna_tensor weight, bias;
  *a = (rdna__image_attention){.heads = 1};
  RDNA_TRY(load_norm(c, prefix, "norm", channels, 3, &a->norm));
  RDNA_TRY(rdna__component_load_matrix(c, prefix, "to_qkv.weight", 3 * channels, channels, &weight));
  RDNA_TRY(load_bias(c, prefix, "to_qkv", 3 * channels, &bias));
  for (int64_t i = 0; i < 3; i++) {
    *parts[i] = (rdna__image_linear){.weight = weight, .bias = bias};
    parts[i]->weight.shape[0] = parts[i]->bias.shape[0] = channels;
    parts[i]->weight.data = (char *)weight.data + rdna_dtype_bytes(weight.dtype, i * channels * weight.stride[0]);
    parts[i]->bias.data = (char *)bias.data + rdna_dtype_bytes(bias.dtype, i * channels);
  }
  return rdna__image_load_projection(c, prefix, "proj", channels, &a->out);
}

static rdna_status load_mid(rdna__component *c, const char *of, int channels, rdna__autoencoder_half *to) {
  char name[NAME_BYTES];
  for (int i = 0; i < 2; i++) {
    snprintf(name, sizeof name, "%s.mid_block.resnets.%d", of, i);
    RDNA_TRY(load_resnet(c, name, channels, channels, &to->mid[i]));
  }
  snprintf(name, sizeof name, "%s.mid_block.attentions.0", of);
  return load_attention(c, name, channels, &to->attention);
}

/* Of the encoder: its blocks have one number after another, |*at| that of the next. */
static rdna_status load_down(rdna__component *c, int in, int out, bool last, int resnets, int *at,
                             rdna__autoencoder_level *level) {
  char name[NAME_BYTES], time[NAME_BYTES];
  for (int r = 0; r < resnets; r++) {
    snprintf(name, sizeof name, "encoder.down_blocks.%d", (*at)++);
    RDNA_TRY(load_resnet(c, name, r ? out : in, out, &level->resnets[r]));
  }
  if (last) return RDNA_OK;
  snprintf(name, sizeof name, "encoder.down_blocks.%d", *at);
  snprintf(time, sizeof time, "encoder.down_blocks.%d.time_conv.", (*at)++);
  RDNA_TRY(rdna__component_leave(c, time));
  const rdna__image_window window = {out, out, 3, 2, 0, 1}; /* zeros behind the image alone */
  return rdna__image_load_conv(c, name, "resample.1", &window, &level->smaller);
}

/* Of the decoder: what is enlarged has half as many channels then. */
static rdna_status load_up(rdna__component *c, int in, int out, bool last, int resnets, int i,
                           rdna__autoencoder_level *level) {
  char name[NAME_BYTES], time[NAME_BYTES];
  for (int r = 0; r < resnets; r++) {
    snprintf(name, sizeof name, "decoder.up_blocks.%d.resnets.%d", i, r);
    RDNA_TRY(load_resnet(c, name, r ? out : in, out, &level->resnets[r]));
  }
  if (last) return RDNA_OK;
  snprintf(name, sizeof name, "decoder.up_blocks.%d.upsamplers.0", i);
  snprintf(time, sizeof time, "decoder.up_blocks.%d.upsamplers.0.time_conv.", i);
  RDNA_TRY(rdna__component_leave(c, time));
  return rdna__image_load_doubling(c, name, "resample.1", out, out / 2, true, &level->larger);
}

rdna_status rdna__autoencoder_load_qwen(rdna__component *c, const rdna__autoencoder_settings *set, bool encodes,
                                        rdna__autoencoder_half *to) {
  const char *of = encodes ? "encoder" : "decoder";
  int last = set->levels - 1, latents = set->latent_channels * (encodes ? 2 : 1), at = 0;
  int before = encodes ? set->first : set->channels[last];
  *to = (rdna__autoencoder_half){.level_count = set->levels, .resnets = set->resnets + (encodes ? 0 : 1)};
  RDNA_TRY(load_conv(c, of, "conv_in", encodes ? set->in_channels : latents, before, 3, &to->in));
  RDNA_TRY(load_mid(c, of, set->channels[last], to));
  for (int i = 0; i <= last; i++) {
    int channels = set->channels[encodes ? i : last - i];
    RDNA_TRY(encodes ? load_down(c, before, channels, i == last, to->resnets, &at, &to->levels[i])
                     : load_up(c, before, channels, i == last, to->resnets, i, &to->levels[i]));
    before = encodes ? channels : channels / 2;
  }
  int end = encodes ? set->channels[last] : set->channels[0];
  RDNA_TRY(load_norm(c, of, "norm_out", end, 4, &to->norm));
  RDNA_TRY(load_conv(c, of, "conv_out", end, encodes ? latents : set->out_channels, 3, &to->out));
  return load_conv(c, "", encodes ? "quant_conv" : "post_quant_conv", latents, latents, 1, &to->quant);
}
