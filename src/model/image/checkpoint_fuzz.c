/* Looks at files of tensors that have no data: three bytes of the input choose a name that whole models have, a number
 * in it and two sizes. What is found out fits the places that it is put in, and is asked for by names that there may
 * be. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/image/adapter.h"
#include "model/image/autoencoder.h"
#include "model/image/checkpoint.h"
#include "model/image/flux.h"
#include "model/image/unet.h"
#include "model/image/zimage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const forms[] = {"model.diffusion_model.input_blocks.%d.0.weight",
                                    "model.diffusion_model.input_blocks.%d.0.out_layers.3.weight",
                                    "model.diffusion_model.input_blocks.%d.0.op.weight",
                                    "model.diffusion_model.input_blocks.%d.1.transformer_blocks.0.norm1.weight",
                                    "model.diffusion_model.input_blocks.%d.1.transformer_blocks.1.norm1.weight",
                                    "model.diffusion_model.input_blocks.%d.1.transformer_blocks.0.attn2.to_k.weight",
                                    "model.diffusion_model.output_blocks.%d.1.transformer_blocks.0.norm1.weight",
                                    "model.diffusion_model.middle_block.1.transformer_blocks.%d.norm1.weight",
                                    "model.diffusion_model.out.%d.weight",
                                    "model.diffusion_model.label_emb.0.%d.weight",
                                    "model.diffusion_model.double_blocks.%d.x",
                                    "first_stage_model.decoder.conv_in.weight",
                                    "first_stage_model.decoder.up.%d.block.0.conv2.weight",
                                    "first_stage_model.decoder.up.0.block.%d.conv1.weight",
                                    "cond_stage_model.transformer.text_model.embeddings.token_embedding.weight",
                                    "cond_stage_model.transformer.text_model.encoder.layers.%d.layer_norm1.weight",
                                    "cond_stage_model.model.token_embedding.weight",
                                    "cond_stage_model.model.transformer.resblocks.%d.ln_1.weight",
                                    "conditioner.embedders.0.transformer.text_model.embeddings.token_embedding.weight",
                                    "conditioner.embedders.1.model.token_embedding.weight",
                                    "conditioner.embedders.0.model.token_embedding.weight",
                                    "conditioner.embedders.1.model.transformer.resblocks.%d.attn.in_proj_weight",
                                    "input_blocks.%d.0.weight",
                                    "input_blocks.%d.0.out_layers.3.weight",
                                    "middle_block.%d.proj_in.weight",
                                    "img_in.weight",
                                    "model.diffusion_model.img_in.weight",
                                    "txt_in.weight",
                                    "double_blocks.%d.img_attn.qkv.weight",
                                    "double_blocks.%d.img_attn.norm.query_norm.scale",
                                    "single_blocks.%d.linear1.weight",
                                    "model.diffusion_model.double_blocks.%d.img_attn.qkv.bias",
                                    "double_stream_modulation_img.lin.weight",
                                    "double_blocks.%d.img_mlp.2.weight",
                                    "joint_blocks.%d.x_block.attn.qkv.weight",
                                    "joint_blocks.%d.x_block.attn.ln_q.weight",
                                    "joint_blocks.%d.x_block.attn2.qkv.weight",
                                    "x_embedder.proj.weight",
                                    "pos_embed",
                                    "layers.%d.attention.qkv.weight",
                                    "layers.%d.attention.q_norm.weight",
                                    "layers.%d.attention.to_q.weight",
                                    "layers.%d.ffn_norm1.weight",
                                    "cap_embedder.%d.weight",
                                    "transformer_blocks.%d.txt_mod.1.weight",
                                    "transformer_blocks.%d.attn.norm_q.weight",
                                    "encoder.block.%d.layer.0.SelfAttention.q.weight",
                                    "encoder.block.%d.layer.0.SelfAttention.relative_attention_bias.weight",
                                    "encoder.block.%d.layer.1.DenseReluDense.wi_0.weight",
                                    "encoder.embed_tokens.weight",
                                    "enc.blk.%d.attn_q.weight",
                                    "enc.blk.%d.attn_rel_b.weight",
                                    "enc.blk.%d.ffn_gate.weight",
                                    "text_encoders.t5xxl.transformer.encoder.block.%d.layer.0.SelfAttention.q.weight",
                                    "control_model.input_hint_block.%d.weight",
                                    "control_model.input_blocks.%d.0.out_layers.3.weight",
                                    "control_model.input_blocks.%d.0.op.weight",
                                    "control_model.input_blocks.%d.1.transformer_blocks.0.norm1.weight",
                                    "control_model.middle_block.%d.proj_in.weight",
                                    "lora_controlnet",
                                    "decoder.layers.%d.weight",
                                    "decoder.layers.%d.bias",
                                    "decoder.layers.%d.conv.0.weight",
                                    "encoder.layers.%d.weight",
                                    "encoder.layers.%d.bias",
                                    "encoder.layers.%d.conv.0.weight",
                                    "%d.weight",
                                    "%d.bias",
                                    "%d.conv.0.weight",
                                    "image_proj.proj.weight",
                                    "image_proj.norm.weight",
                                    "image_proj.latents",
                                    "image_proj.proj_in.weight",
                                    "image_proj.proj_out.weight",
                                    "image_proj.layers.%d.0.to_q.weight",
                                    "image_proj.layers.%d.1.1.weight",
                                    "ip_adapter.%d.to_k_ip.weight",
                                    "v_pred",
                                    "lora_unet_%d"};
enum { FORMS = sizeof forms / sizeof *forms };

/* |*out_size| bytes of such a file; free() them. */
static char *make_file(const uint8_t *data, size_t size, size_t *out_size) {
  char *text = NULL;
  FILE *to = open_memstream(&text, out_size);
  if (!to) return NULL;
  fwrite("\0\0\0\0\0\0\0\0{", 1, 9, to);
  for (size_t i = 0; i + 3 <= size; i += 3) {
    fprintf(to, "%s\"", i ? "," : "");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    fprintf(to, forms[data[i] % FORMS], data[i + 1] % 32);
#pragma GCC diagnostic pop
    fprintf(to, "\":{\"dtype\":\"?\",\"shape\":[%d,%d],\"data_offsets\":[0,0]}", 32 * (data[i + 1] / 32),
            16 * (data[i + 2] % 16));
  }
  fputc('}', to);
  fclose(to);
  uint64_t length = text ? *out_size - 8 : 0;
  if (text) memcpy(text, &length, 8);
  return text;
}

static void check_part(const rdna__safetensors *file, rdna__checkpoint_family family, const char *name) {
  json_t *json = NULL;
  rdna__checkpoint_part part;
  rdna__unet_settings settings;
  rdna__safetensor view;
  bool transposed;
  char there[64];
  if (rdna__checkpoint_read(file, family, name, &json, &part) != RDNA_OK) {
    if (!*rdna_last_error()) abort();
    return;
  }
  if (part.stages < 0 || part.stages > 8) abort();
  if (part.kind == CHECKPOINT_UNET) (void)!rdna__unet_settings_read(json, &settings);
  static const char *const asked[] = {"up_blocks.0.upsamplers.0.conv.weight",
                                      "encoder.layers.0.self_attn.q_proj.weight",
                                      "decoder.up_blocks.1.resnets.0.conv_shortcut.bias", "text_projection.weight"};
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
    if (rdna__checkpoint_name(&part, asked[i], there, sizeof there) && strlen(there) >= sizeof there) abort();
    (void)rdna__checkpoint_find(file, &part, asked[i], &view, &transposed);
  }
  for (size_t i = 0; i < rdna__safetensors_count(file); i++)
    (void)rdna__checkpoint_leaves(&part, rdna__safetensors_at(file, i)->name);
  json_decref(json);
}

/* A part of FLUX, asked for by each of diffusers' names. */
static void check_flow(const rdna__safetensors *file, const char *name) {
  static const char *const asked[] = {"transformer_blocks.0.attn.to_q.weight",
                                      "transformer_blocks.3.attn.add_v_proj.bias",
                                      "transformer_blocks.1.attn.norm_q.weight",
                                      "transformer_blocks.",
                                      "shared.weight",
                                      "single_transformer_blocks.0.proj_mlp.weight",
                                      "layers.0.attention.to_k.weight",
                                      "noise_refiner.1.attention.x",
                                      "pos_embed.pos_embed",
                                      "x_embedder.weight",
                                      "encoder.block.0.layer.0.SelfAttention.q.weight",
                                      "encoder.block.1.layer.x",
                                      ""};
  json_t *json = NULL;
  rdna__checkpoint_part part;
  rdna__safetensor view;
  rdna__flux_settings settings;
  rdna__zimage_settings zimage;
  bool transposed;
  char there[64];
  if (!rdna__checkpoint_is_flow(file, name)) return;
  if (rdna__checkpoint_read_flow(file, name, &json, &part) != RDNA_OK) {
    if (!*rdna_last_error()) abort();
    return;
  }
  if (strcmp(name, "transformer") == 0) {
    (void)!rdna__flux_settings_read(json, &settings);
    (void)!rdna__zimage_settings_read(json, &zimage);
  }
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
    if (rdna__checkpoint_name(&part, asked[i], there, sizeof there) && strlen(there) >= sizeof there) abort();
    const rdna__safetensor *found = rdna__checkpoint_find(file, &part, asked[i], &view, &transposed);
    if (found == &view && view.rank > 0 && view.shape[0] < 0) abort();
  }
  for (size_t i = 0; i < rdna__safetensors_count(file); i++)
    (void)rdna__checkpoint_leaves(&part, rdna__safetensors_at(file, i)->name);
  json_decref(json);
}

/* One that may be all that the file has. */
static void check_unet(const rdna__safetensors *file) {
  json_t *json = NULL;
  rdna__checkpoint_part part;
  rdna__unet_settings settings;
  if (rdna__checkpoint_read_unet(file, &json, &part) != RDNA_OK) {
    if (!*rdna_last_error()) abort();
    return;
  }
  if (part.kind != CHECKPOINT_UNET || part.stages < 1 || part.stages > 8) abort();
  (void)!rdna__unet_settings_read(json, &settings);
  json_decref(json);
}

static void check_control(const rdna__safetensors *file) {
  json_t *json = NULL;
  rdna__checkpoint_part part;
  rdna__unet_settings half;
  rdna__control_settings own;
  char there[64];
  if (rdna__checkpoint_read_control(file, &json, &part) != RDNA_OK) {
    if (!*rdna_last_error()) abort();
    return;
  }
  (void)!rdna__control_settings_read(json, &half, &own);
  if (rdna__checkpoint_name(&part, "controlnet_cond_embedding.blocks.3.weight", there, sizeof there) &&
      strlen(there) >= sizeof there)
    abort();
  json_decref(json);
}

static void check_tiny(const rdna__safetensors *file) {
  json_t *json = NULL;
  rdna__checkpoint_part part;
  rdna__autoencoder_settings settings;
  char there[64];
  if (rdna__checkpoint_read_tiny(file, &json, &part) != RDNA_OK) {
    if (!*rdna_last_error()) abort();
    return;
  }
  (void)!rdna__autoencoder_settings_read(json, &settings);
  if (rdna__checkpoint_name(&part, "decoder.layers.3.conv.2.weight", there, sizeof there) &&
      strlen(there) >= sizeof there)
    abort();
  json_decref(json);
}

static void check_adapter(const rdna__safetensors *file) {
  rdna__adapter_settings set;
  if (rdna__adapter_settings_read(file, &set) != RDNA_OK) {
    if (!*rdna_last_error()) abort();
    return;
  }
  if (set.layers < 1 || set.layers > RDNA__ADAPTER_LAYERS || set.tokens < 1 || set.width < 1 || set.seen < 1) abort();
  for (int i = 0; i < set.layers; i++)
    if (set.channels[i] < 1) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const parts[] = {"unet", "vae", "text_encoder", "text_encoder_2", "x"};
  size_t length = 0;
  rdna__safetensors *file = NULL;
  rdna__checkpoint_family family;
  json_t *json = NULL;
  char *text = make_file(data, size, &length);
  if (!text) return 0;
  if (rdna__safetensors_open_memory(text, length, &file) == RDNA_OK) {
    check_flow(file, "transformer");
    check_flow(file, "text_encoder_2");
    check_control(file);
    check_unet(file);
    check_tiny(file);
    check_adapter(file);
    if (rdna__checkpoint_detect(file, &family) == RDNA_OK) {
      for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) check_part(file, family, parts[i]);
      if (rdna__checkpoint_schedule(file, family, "v_prediction", &json) != RDNA_OK) abort();
      json_decref(json);
    } else if (!*rdna_last_error()) {
      abort();
    }
  }
  rdna__safetensors_close(file);
  free(text);
  return 0;
}
