/* Names of tensors: diffusers' and those of a whole file. A U-Net's blocks are counted through there:
 *
 *     input_blocks.0    conv_in
 *     input_blocks.n    .0 a resnet block, .1 its transformer; or .0 the convolution that halves, behind a stage's
 * blocks middle_block      .0 resnet block, .1 transformer, .2 resnet block output_blocks.n   .0 a resnet block, .1 its
 * transformer, and behind them in a stage's last one what doubles    */
#include <stdio.h>
#include <string.h>

#include "model/image/checkpoint.h"

enum { NAME_BYTES = 256 };

typedef struct names {
  const char *diffusers, *file;
} names;

/* |to| of the pair that |name| begins with, and what is behind it. */
static bool replace(const names *pairs, size_t count, const char *before, const char *name, char *out, size_t size) {
  for (size_t i = 0; i < count; i++) {
    size_t length = strlen(pairs[i].diffusers);
    if (strncmp(name, pairs[i].diffusers, length) != 0 || (name[length] != '.' && name[length] != 0)) continue;
    return snprintf(out, size, "%s%s%s", before, pairs[i].file, name + length) < (int)size;
  }
  return false;
}

/* ---- U-Nets ---- */

static const names unet_resnet[] = {{"norm1", "in_layers.0"},          {"conv1", "in_layers.2"},
                                    {"time_emb_proj", "emb_layers.1"}, {"norm2", "out_layers.0"},
                                    {"conv2", "out_layers.3"},         {"conv_shortcut", "skip_connection"}};
static const names unet_rest[] = {{"conv_in", "input_blocks.0.0"},
                                  {"time_embedding.linear_1", "time_embed.0"},
                                  {"time_embedding.linear_2", "time_embed.2"},
                                  {"time_embedding.cond_proj", "time_embed.cond_proj"},
                                  {"add_embedding.linear_1", "label_emb.0.0"},
                                  {"add_embedding.linear_2", "label_emb.0.2"},
                                  {"conv_norm_out", "out.0"},
                                  {"conv_out", "out.2"}};

static bool unet_block(const char *before, const char *rest, bool resnet, char *out, size_t size) {
  if (resnet) return replace(unet_resnet, sizeof unet_resnet / sizeof *unet_resnet, before, rest, out, size);
  return snprintf(out, size, "%s%s", before, rest) < (int)size;
}

static bool unet_name(const rdna__checkpoint_part *p, const char *name, char *out, size_t size) {
  char before[64];
  int i = 0, j = 0, end = 0, each = p->layers + 1;
  if (sscanf(name, "down_blocks.%4d.resnets.%4d.%n", &i, &j, &end) == 2 && end) {
    snprintf(before, sizeof before, "input_blocks.%d.0.", 1 + i * each + j);
    return unet_block(before, name + end, true, out, size);
  }
  if (sscanf(name, "down_blocks.%4d.attentions.%4d.%n", &i, &j, &end) == 2 && end) {
    snprintf(before, sizeof before, "input_blocks.%d.1.", 1 + i * each + j);
    return unet_block(before, name + end, false, out, size);
  }
  if (sscanf(name, "down_blocks.%4d.downsamplers.0.conv%n", &i, &end) == 1 && end) {
    snprintf(before, sizeof before, "input_blocks.%d.0.op", (i + 1) * each);
    return unet_block(before, name + end, false, out, size);
  }
  if (sscanf(name, "mid_block.resnets.%4d.%n", &j, &end) == 1 && end) {
    snprintf(before, sizeof before, "middle_block.%d.", 2 * j);
    return unet_block(before, name + end, true, out, size);
  }
  if (sscanf(name, "mid_block.attentions.0.%n", &end) == 0 && end)
    return unet_block("middle_block.1.", name + end, false, out, size);
  if (sscanf(name, "up_blocks.%4d.resnets.%4d.%n", &i, &j, &end) == 2 && end) {
    snprintf(before, sizeof before, "output_blocks.%d.0.", i * each + j);
    return unet_block(before, name + end, true, out, size);
  }
  if (sscanf(name, "up_blocks.%4d.attentions.%4d.%n", &i, &j, &end) == 2 && end) {
    snprintf(before, sizeof before, "output_blocks.%d.1.", i * each + j);
    return unet_block(before, name + end, false, out, size);
  }
  if (sscanf(name, "up_blocks.%4d.upsamplers.0.conv%n", &i, &end) == 1 && end) {
    bool attends = i >= 0 && i < 32 && (p->up_attends >> i & 1);
    snprintf(before, sizeof before, "output_blocks.%d.%d.conv", i * each + p->layers, attends ? 2 : 1);
    return unet_block(before, name + end, false, out, size);
  }
  return replace(unet_rest, sizeof unet_rest / sizeof *unet_rest, "", name, out, size);
}

/* ---- ControlNets ---- */

static bool control_name(const rdna__checkpoint_part *p, const char *name, char *out, size_t size) {
  int i = 0, end = 0;
  if (sscanf(name, "controlnet_cond_embedding.conv_in%n", &end) == 0 && end)
    return snprintf(out, size, "input_hint_block.0%s", name + end) < (int)size;
  if (sscanf(name, "controlnet_cond_embedding.blocks.%4d%n", &i, &end) == 1 && end)
    return snprintf(out, size, "input_hint_block.%d%s", 2 * (i + 1), name + end) < (int)size;
  if (sscanf(name, "controlnet_cond_embedding.conv_out%n", &end) == 0 && end)
    return snprintf(out, size, "input_hint_block.14%s", name + end) < (int)size;
  if (sscanf(name, "controlnet_down_blocks.%4d%n", &i, &end) == 1 && end)
    return snprintf(out, size, "zero_convs.%d.0%s", i, name + end) < (int)size;
  if (sscanf(name, "controlnet_mid_block%n", &end) == 0 && end)
    return snprintf(out, size, "middle_block_out.0%s", name + end) < (int)size;
  return unet_name(p, name, out, size);
}

/* ---- autoencoders ---- */

/* Of the decoder alone. */
static bool tiny_name(const char *name, char *out, size_t size) {
  int i = 0, end = 0;
  if (sscanf(name, "decoder.layers.%4d%n", &i, &end) != 1 || !end) return false;
  return snprintf(out, size, "%d%s", i + 1, name + end) < (int)size;
}

static const names autoencoder_attention[] = {
    {"group_norm", "norm"}, {"to_q", "q"}, {"to_k", "k"}, {"to_v", "v"}, {"to_out.0", "proj_out"}};
static const names autoencoder_resnet[] = {
    {"norm1", "norm1"}, {"conv1", "conv1"}, {"norm2", "norm2"}, {"conv2", "conv2"}, {"conv_shortcut", "nin_shortcut"}};
static const names autoencoder_rest[] = {{"encoder.conv_in", "encoder.conv_in"},
                                         {"encoder.conv_norm_out", "encoder.norm_out"},
                                         {"encoder.conv_out", "encoder.conv_out"},
                                         {"decoder.conv_in", "decoder.conv_in"},
                                         {"decoder.conv_norm_out", "decoder.norm_out"},
                                         {"decoder.conv_out", "decoder.conv_out"},
                                         {"quant_conv", "quant_conv"},
                                         {"post_quant_conv", "post_quant_conv"}};

static bool autoencoder_block(const char *before, const char *rest, char *out, size_t size) {
  return replace(autoencoder_resnet, sizeof autoencoder_resnet / sizeof *autoencoder_resnet, before, rest, out, size);
}

static bool autoencoder_name(const rdna__checkpoint_part *p, const char *name, char *out, size_t size) {
  char before[64], half[8];
  int i = 0, j = 0, end = 0;
  if (sscanf(name, "encoder.down_blocks.%4d.resnets.%4d.%n", &i, &j, &end) == 2 && end) {
    snprintf(before, sizeof before, "encoder.down.%d.block.%d.", i, j);
    return autoencoder_block(before, name + end, out, size);
  }
  if (sscanf(name, "decoder.up_blocks.%4d.resnets.%4d.%n", &i, &j, &end) == 2 && end) {
    snprintf(before, sizeof before, "decoder.up.%d.block.%d.", p->stages - 1 - i, j);
    return autoencoder_block(before, name + end, out, size);
  }
  if (sscanf(name, "encoder.down_blocks.%4d.downsamplers.0.conv%n", &i, &end) == 1 && end)
    return snprintf(out, size, "encoder.down.%d.downsample.conv%s", i, name + end) < (int)size;
  if (sscanf(name, "decoder.up_blocks.%4d.upsamplers.0.conv%n", &i, &end) == 1 && end)
    return snprintf(out, size, "decoder.up.%d.upsample.conv%s", p->stages - 1 - i, name + end) < (int)size;
  if (sscanf(name, "%7[a-z].mid_block.resnets.%4d.%n", half, &j, &end) == 2 && end) {
    snprintf(before, sizeof before, "%s.mid.block_%d.", half, j + 1);
    return autoencoder_block(before, name + end, out, size);
  }
  if (sscanf(name, "%7[a-z].mid_block.attentions.0.%n", half, &end) == 1 && end) {
    snprintf(before, sizeof before, "%s.mid.attn_1.", half);
    return replace(autoencoder_attention, sizeof autoencoder_attention / sizeof *autoencoder_attention, before,
                   name + end, out, size);
  }
  return replace(autoencoder_rest, sizeof autoencoder_rest / sizeof *autoencoder_rest, "", name, out, size);
}

/* ---- OpenCLIP's text encoders ---- */

/* Queries, keys and values are one tensor there. */
static const names open_clip_layer[] = {{"layer_norm1", "ln_1"},
                                        {"layer_norm2", "ln_2"},
                                        {"self_attn.out_proj", "attn.out_proj"},
                                        {"self_attn.q_proj.weight", "attn.in_proj_weight"},
                                        {"self_attn.k_proj.weight", "attn.in_proj_weight"},
                                        {"self_attn.v_proj.weight", "attn.in_proj_weight"},
                                        {"self_attn.q_proj.bias", "attn.in_proj_bias"},
                                        {"self_attn.k_proj.bias", "attn.in_proj_bias"},
                                        {"self_attn.v_proj.bias", "attn.in_proj_bias"},
                                        {"mlp.fc1", "mlp.c_fc"},
                                        {"mlp.fc2", "mlp.c_proj"}};
static const names open_clip_rest[] = {{"embeddings.token_embedding", "token_embedding"},
                                       {"embeddings.position_embedding.weight", "positional_embedding"},
                                       {"final_layer_norm", "ln_final"},
                                       {"text_projection.weight", "text_projection"}};

static bool open_clip_name(const char *name, char *out, size_t size) {
  char before[64];
  int i = 0, end = 0;
  if (sscanf(name, "encoder.layers.%4d.%n", &i, &end) == 1 && end) {
    snprintf(before, sizeof before, "transformer.resblocks.%d.", i);
    return replace(open_clip_layer, sizeof open_clip_layer / sizeof *open_clip_layer, before, name + end, out, size);
  }
  return replace(open_clip_rest, sizeof open_clip_rest / sizeof *open_clip_rest, "", name, out, size);
}

/* Which third of queries, keys and values |name| is; -1: none. */
static int third_of(const char *name) {
  static const char *const kinds[] = {".q_proj.", ".k_proj.", ".v_proj."};
  for (int i = 0; i < 3; i++)
    if (strstr(name, kinds[i])) return i;
  return -1;
}

/* ---- all ---- */

bool rdna__checkpoint_name(const rdna__checkpoint_part *part, const char *name, char *out, size_t size) {
  int first, end, parts;
  switch (part->kind) {
    case CHECKPOINT_UNET:
      return unet_name(part, name, out, size);
    case CHECKPOINT_CONTROLNET:
      return control_name(part, name, out, size);
    case CHECKPOINT_AUTOENCODER:
      return autoencoder_name(part, name, out, size);
    case CHECKPOINT_OPEN_CLIP:
      return open_clip_name(name, out, size);
    case CHECKPOINT_TINY:
      return tiny_name(name, out, size);
    case CHECKPOINT_FLUX:
    case CHECKPOINT_SD3:
    case CHECKPOINT_ZIMAGE:
    case CHECKPOINT_DIFFUSERS:
    case CHECKPOINT_T5:
    case CHECKPOINT_T5_GGUF:
      return rdna__checkpoint_flow_name(part->kind, name, out, size, &first, &end, &parts);
    default:
      return snprintf(out, size, "%s", name) < (int)size;
  }
}

/* Rows [first, end) of |parts| equal shares of |found|; of one that is no such number |found|, whose shape is refused
 * then. */
static const rdna__safetensor *share_of(const rdna__safetensor *found, int first, int end, int parts,
                                        rdna__safetensor *view) {
  if (found->rank < 1 || found->shape[0] % parts != 0) return found;
  *view = *found;
  view->shape[0] = found->shape[0] / parts * (end - first);
  view->bytes = found->bytes / (size_t)parts * (size_t)(end - first);
  view->data = found->data ? found->data + found->bytes / (size_t)parts * (size_t)first : NULL;
  return view;
}

static const rdna__safetensor *find_flow(const rdna__safetensors *tensors, const rdna__checkpoint_part *part,
                                         const char *name, rdna__safetensor *view) {
  char there[NAME_BYTES], full[2 * NAME_BYTES];
  int first, end, parts;
  if (!rdna__checkpoint_flow_name(part->kind, name, there, sizeof there, &first, &end, &parts)) return NULL;
  snprintf(full, sizeof full, "%s%s", part->prefix, there);
  const rdna__safetensor *found = rdna__safetensors_find(tensors, full);
  if (!found && part->kind == CHECKPOINT_T5 && strcmp(name, "shared.weight") == 0) { /* the same table */
    snprintf(full, sizeof full, "%sencoder.embed_tokens.weight", part->prefix);
    found = rdna__safetensors_find(tensors, full);
  }
  return found && parts > 1 ? share_of(found, first, end, parts, view) : found;
}

const rdna__safetensor *rdna__checkpoint_find(const rdna__safetensors *tensors, const rdna__checkpoint_part *part,
                                              const char *name, rdna__safetensor *view, bool *out_transposed) {
  char there[NAME_BYTES], full[2 * NAME_BYTES];
  *out_transposed = false;
  if (part->kind >= CHECKPOINT_FLUX) return find_flow(tensors, part, name, view);
  if (!rdna__checkpoint_name(part, name, there, sizeof there)) return NULL;
  snprintf(full, sizeof full, "%s%s", part->prefix, there);
  bool open = part->kind == CHECKPOINT_OPEN_CLIP, projects = strcmp(name, "text_projection.weight") == 0;
  if (part->kind == CHECKPOINT_CLIP && projects) /* which stable-diffusion.cpp has as OpenCLIP does */
    snprintf(full, sizeof full, "%stext_projection", part->prefix);
  const rdna__safetensor *found = rdna__safetensors_find(tensors, full);
  if (!found || (!open && !projects)) return found;
  *view = *found;
  int third = open ? third_of(name) : -1;
  if (third >= 0) return share_of(found, third, third + 1, 3, view);
  if (projects && found->rank == 2) {
    view->shape[0] = found->shape[1];
    view->shape[1] = found->shape[0];
    *out_transposed = true;
  }
  return view;
}

bool rdna__checkpoint_leaves(const rdna__checkpoint_part *part, const char *name) {
  size_t length = strlen(part->prefix);
  if (strncmp(name, part->prefix, length) != 0) return true;
  const char *rest = name + length;
  if (part->kind >= CHECKPOINT_FLUX) /* what says that there are 8-bit floats with scales, and T5's vocabulary */
    return strcmp(rest, "scaled_fp8") == 0 || strcmp(rest, "__index_timestep_zero__") == 0 ||
           strcmp(rest, "spiece_model") == 0 ||
           (part->kind == CHECKPOINT_ZIMAGE && strcmp(rest, "norm_final.weight") == 0); /* which nobody reads */
  if (part->kind == CHECKPOINT_AUTOENCODER) return strncmp(rest, "loss.", 5) == 0;
  if (part->kind != CHECKPOINT_OPEN_CLIP && part->kind != CHECKPOINT_CLIP) return false;
  int layer = -1, end = 0;
  const char *form = part->kind == CHECKPOINT_CLIP ? "encoder.layers.%4d.%n" : "transformer.resblocks.%4d.%n";
  bool beyond = sscanf(rest, form, &layer, &end) == 1 && end && layer >= part->layers;
  return beyond || strncmp(rest, "embeddings.position_ids", 23) == 0 || strcmp(rest, "logit_scale") == 0 ||
         strcmp(rest, "attn_mask") == 0 ||
         strcmp(rest, "text_projection") == 0; /* which is read where there is a use for it */
}
