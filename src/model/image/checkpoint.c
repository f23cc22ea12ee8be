#include "model/image/checkpoint.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 256, MOST_STAGES = 8, MOST_LAYERS = 16, MOST_BLOCKS = 256, EACH_HEAD = 64, NUMBER_WIDTH = 256 };

#define UNET "model.diffusion_model."
#define CONTROL "control_model."
#define AUTOENCODER "first_stage_model."
static const char *const families[] = {"Stable Diffusion 1", "Stable Diffusion 2", "Stable Diffusion XL",
                                       "Stable Diffusion XL's refiner"};

/* Encoders of the families. Early files have the first without "text_model". Files of stable-diffusion.cpp may have all
 * as transformers does, under names that do not say which family it is. */
#define RENAMED "cond_stage_model.transformer.text_model."
#define RENAMED_SECOND "cond_stage_model.1.transformer.text_model."
static const struct {
  rdna__checkpoint_family family;
  rdna__checkpoint_kind kind;
  bool second;
  const char *prefix;
} encoders[] = {
    {CHECKPOINT_SD1, CHECKPOINT_CLIP, false, RENAMED},
    {CHECKPOINT_SD2, CHECKPOINT_CLIP, false, RENAMED},
    {CHECKPOINT_XL, CHECKPOINT_CLIP, false, RENAMED},
    {CHECKPOINT_XL, CHECKPOINT_CLIP, true, RENAMED_SECOND},
    {CHECKPOINT_SD1, CHECKPOINT_CLIP, false, "cond_stage_model.transformer."},
    {CHECKPOINT_SD2, CHECKPOINT_OPEN_CLIP, false, "cond_stage_model.model."},
    {CHECKPOINT_XL, CHECKPOINT_CLIP, false, "conditioner.embedders.0.transformer.text_model."},
    {CHECKPOINT_XL, CHECKPOINT_OPEN_CLIP, true, "conditioner.embedders.1.model."},
    {CHECKPOINT_REFINER, CHECKPOINT_OPEN_CLIP, true, "conditioner.embedders.0.model."},
};
enum { ENCODERS = sizeof encoders / sizeof *encoders };

/* ---- asking a file ---- */

static const rdna__safetensor *tensor(const rdna__safetensors *s, const char *prefix, const char *name) {
  char full[NAME_BYTES];
  return snprintf(full, sizeof full, "%s%s", prefix, name) < NAME_BYTES ? rdna__safetensors_find(s, full) : NULL;
}

/* Size |dimension| of a tensor, up to a million; 0: there is no such tensor or dimension. */
static int size_of(const rdna__safetensors *s, const char *prefix, const char *name, int dimension) {
  const rdna__safetensor *t = tensor(s, prefix, name);
  return t && dimension < t->rank && t->shape[dimension] <= 1000000 ? (int)t->shape[dimension] : 0;
}

/* The same of a name with a number in it, which |form| says. */
__attribute__((format(printf, 3, 0))) static int size_at(const rdna__safetensors *s, const char *prefix,
                                                         const char *form, int i, int dimension) {
  char name[NAME_BYTES];
  snprintf(name, sizeof name, form, i);
  return size_of(s, prefix, name, dimension);
}

/* How many of the names that |form| makes of 0, 1, … there are. */
__attribute__((format(printf, 3, 0))) static int count_of(const rdna__safetensors *s, const char *prefix,
                                                          const char *form) {
  int count = 0;
  while (count < MOST_BLOCKS && size_at(s, prefix, form, count, 0) > 0) count++;
  return count;
}

static bool has_prefix(const rdna__safetensors *s, const char *prefix) {
  for (size_t i = 0; i < rdna__safetensors_count(s); i++)
    if (strncmp(rdna__safetensors_at(s, i)->name, prefix, strlen(prefix)) == 0) return true;
  return false;
}

static const char *embedding_of(rdna__checkpoint_kind kind) {
  return kind == CHECKPOINT_CLIP ? "embeddings.token_embedding.weight" : "token_embedding.weight";
}

/* Values of a text's token that the U-Net reads; 0: it attends nowhere. */
static int text_width_of(const rdna__safetensors *s, const char *prefix) {
  for (int i = 1; i < MOST_BLOCKS; i++) {
    int width = size_at(s, prefix, "input_blocks.%d.1.transformer_blocks.0.attn2.to_k.weight", i, 1);
    if (width) return width;
  }
  return 0;
}

/* Stable Diffusion 1's transformers alone have windows of 1 x 1 where later ones have matrices. */
static bool has_windows(const rdna__safetensors *s, const char *prefix) {
  const rdna__safetensor *window = tensor(s, prefix, "middle_block.1.proj_in.weight");
  return window && window->rank == 4;
}

static bool has_encoder(const rdna__safetensors *s, int i) {
  if (!size_of(s, encoders[i].prefix, embedding_of(encoders[i].kind), 0)) return false;
  if (strcmp(encoders[i].prefix, RENAMED) != 0) return true;
  bool xl = size_of(s, RENAMED_SECOND, embedding_of(CHECKPOINT_CLIP), 0) > 0;
  return encoders[i].family == (xl                                                ? CHECKPOINT_XL
                                : has_windows(s, UNET) || !text_width_of(s, UNET) ? CHECKPOINT_SD1
                                                                                  : CHECKPOINT_SD2);
}

/* ---- what it is ---- */

/* Files that people take for such a model: a transformer that flows, of each of which the names begin otherwise. */
static rdna_status refuse_transformer(const rdna__safetensors *s) {
  static const char *const firsts[][2] = {{"double_blocks.", "FLUX"},
                                          {"joint_blocks.", "Stable Diffusion 3"},
                                          {"cap_embedder.", "Z-Image"},
                                          {"transformer_blocks.", "Qwen-Image or its like"}};
  for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
    char behind[64];
    snprintf(behind, sizeof behind, UNET "%s", firsts[i][0]);
    if (has_prefix(s, firsts[i][0]) || has_prefix(s, behind))
      return rdna__fail(RDNA_UNSUPPORTED,
                        "it is a transformer of %s; --transformer gives it to a folder with the model's other parts",
                        firsts[i][1]);
  }
  return RDNA_OK;
}

/* … and all others. */
static rdna_status refuse_others(const rdna__safetensors *s) {
  static const char *const others[][2] = {
      {"enc.blk.", "T5; --t5 gives it to a folder with the other parts of FLUX or Stable Diffusion 3"},
      {"encoder.block.", "T5; --t5 gives it to a folder with the other parts of FLUX or Stable Diffusion 3"},
      {"lora_", "a LoRA, which is given to a model by --lora"},
      {"input_blocks.", "a U-Net; --transformer gives it to a model with the other parts"},
      {"down_blocks.", "one part of a folder of diffusers; the folder is what is asked for"},
      {CONTROL, "a ControlNet, which is given to a model by --control"},
      {"decoder.", "an autoencoder without the rest of a model"}};
  RDNA_TRY(refuse_transformer(s));
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (has_prefix(s, others[i][0])) return rdna__fail(RDNA_UNSUPPORTED, "it is %s", others[i][1]);
  return rdna__fail(RDNA_UNSUPPORTED, "none of its tensors is called '" UNET
                                      "input_blocks.0.0.weight', so it is no "
                                      "whole Stable Diffusion 1, 2 or XL");
}

/* The family of its encoders, which are all of one. */
static rdna_status detect_encoders(const rdna__safetensors *s, rdna__checkpoint_family *out, int *out_width) {
  int found = -1;
  *out_width = 0;
  for (int i = 0; i < ENCODERS; i++) {
    if (!has_encoder(s, i)) continue;
    if (found >= 0 && encoders[i].family != encoders[found].family)
      return rdna__fail(RDNA_BAD_DATA, "it has the text encoders of %s and of %s", families[encoders[found].family],
                        families[encoders[i].family]);
    found = i;
    *out_width += size_of(s, encoders[i].prefix, embedding_of(encoders[i].kind), 1);
  }
  if (found < 0)
    return rdna__fail(RDNA_BAD_DATA,
                      "it has a U-Net and no text encoder that is known; a whole model has all in one file");
  *out = encoders[found].family;
  for (int second = 0; second < 2 && *out == CHECKPOINT_XL; second++) {
    const char *missing = NULL;
    bool there = false;
    for (int i = 0; i < ENCODERS; i++) {
      if (encoders[i].family != *out || encoders[i].second != (second > 0)) continue;
      there = there || has_encoder(s, i);
      missing = encoders[i].prefix;
    }
    if (!there)
      return rdna__fail(RDNA_BAD_DATA, "it has one text encoder of %s, and '%s' of the other is missing",
                        families[*out], missing);
  }
  return RDNA_OK;
}

/* Models that a U-Net's tensors look like, and that other tensors tell apart. */
static rdna_status refuse_relatives(const rdna__safetensors *s) {
  static const char *const relatives[][2] = {{"edm_vpred.", "of EDM's noise levels with v, as CosXL has them"},
                                             {"edm_mean", "of EDM's noise levels, as Playground has them"},
                                             {"edm_std", "of EDM's noise levels, as Playground has them"},
                                             {"control_model.", "with a ControlNet in it"}};
  for (size_t i = 0; i < sizeof relatives / sizeof *relatives; i++)
    if (has_prefix(s, relatives[i][0]))
      return rdna__fail(RDNA_UNSUPPORTED, "its tensor '%s' says that it is a model %s, which is not known",
                        relatives[i][0], relatives[i][1]);
  return RDNA_OK;
}

rdna_status rdna__checkpoint_detect(const rdna__safetensors *s, rdna__checkpoint_family *out) {
  int width, reads = text_width_of(s, UNET);
  if (!tensor(s, UNET, "input_blocks.0.0.weight")) return refuse_others(s);
  RDNA_TRY(refuse_relatives(s));
  RDNA_TRY(detect_encoders(s, out, &width));
  if (!tensor(s, AUTOENCODER, "decoder.conv_in.weight"))
    return rdna__fail(RDNA_BAD_DATA, "it has no autoencoder: '" AUTOENCODER "decoder.conv_in.weight' is missing");
  if (reads != width)
    return rdna__fail(RDNA_BAD_DATA, "its U-Net reads %d values of a token, and its text encoders, of %s, make %d",
                      reads, families[*out], width);
  bool numbers = tensor(s, UNET, "label_emb.0.0.weight") != NULL,
       late = *out == CHECKPOINT_XL || *out == CHECKPOINT_REFINER;
  if (numbers == late) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "its text encoders are of %s, and its U-Net is of another version", families[*out]);
}

/* ---- U-Nets ---- */

typedef struct unet {
  int channels[MOST_STAGES], depths[MOST_STAGES]; /* the latter: blocks of a transformer; 0: it does not attend */
  int stages, layers, middle;                     /* blocks of the transformer in the middle */
  bool up_attends[MOST_STAGES];                   /* in their order */
} unet;

static int depth_at(const rdna__safetensors *s, const char *prefix, const char *form, int i) {
  char block[NAME_BYTES], all[2 * NAME_BYTES];
  snprintf(block, sizeof block, form, i);
  snprintf(all, sizeof all, "%s%s.1.transformer_blocks.", prefix, block);
  return count_of(s, all, "%d.norm1.weight");
}

/* Stages end where an image is halved. */
static rdna_status read_stages(const rdna__safetensors *s, const char *prefix, unet *out) {
  int layers = 0;
  *out = (unet){0};
  for (int i = 1; i < MOST_BLOCKS && out->stages < MOST_STAGES; i++) {
    int channels = size_at(s, prefix, "input_blocks.%d.0.out_layers.3.weight", i, 0);
    if (channels) {
      out->channels[out->stages] = channels;
      out->depths[out->stages] = depth_at(s, prefix, "input_blocks.%d", i);
      layers++;
    }
    bool halves = size_at(s, prefix, "input_blocks.%d.0.op.weight", i, 0) > 0;
    if (channels && !halves) continue;
    if (layers < 1 || (out->stages > 0 && layers != out->layers)) break;
    out->layers = layers;
    out->stages++;
    layers = 0;
    if (!halves) break;
  }
  if (out->stages < 1 || out->stages >= MOST_STAGES || layers > 0 || out->layers > MOST_LAYERS)
    return rdna__fail(RDNA_BAD_DATA, "the blocks of its U-Net are no stages of as many blocks each");
  out->middle = depth_at(s, prefix, "middle_block", 0);
  for (int i = 0; i < out->stages; i++)
    out->up_attends[i] = depth_at(s, prefix, "output_blocks.%d", i * (out->layers + 1)) > 0;
  return RDNA_OK;
}

static json_t *list(const int *values, int count) {
  json_t *array = json_array();
  for (int i = 0; i < count; i++) json_array_append_new(array, json_integer(values[i]));
  return array;
}

static json_t *kinds(const unet *u, bool up) {
  json_t *array = json_array();
  for (int i = 0; i < u->stages; i++)
    json_array_append_new(array, json_string(up             ? u->up_attends[i] ? "CrossAttnUpBlock2D" : "UpBlock2D"
                                             : u->depths[i] ? "CrossAttnDownBlock2D"
                                                            : "DownBlock2D"));
  return array;
}

static rdna_status out_of_memory(void) { return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for settings"); }

/* What the halves of all say, of |u|, which has been read. |headed|: heads are counted as by Stable Diffusion 1. NULL:
 * there is no memory. */
static json_t *pack_half(const rdna__safetensors *s, const char *prefix, const unet *u, bool headed) {
  int heads[MOST_STAGES], depths[MOST_STAGES];
  for (int i = 0; i < u->stages; i++) {
    heads[i] = headed ? 8 : u->channels[i] / EACH_HEAD;
    depths[i] = u->depths[i] ? u->depths[i] : i + 1 < u->stages ? 1 : u->middle; /* the last one is the middle's, too */
  }
  json_t *json =
      json_pack("{s:i, s:i, s:i, s:o, s:o, s:o, s:o}", "in_channels", size_of(s, prefix, "input_blocks.0.0.weight", 1),
                "layers_per_block", u->layers, "cross_attention_dim", text_width_of(s, prefix), "block_out_channels",
                list(u->channels, u->stages), "attention_head_dim", list(heads, u->stages),
                "transformer_layers_per_block", list(depths, u->stages), "down_block_types", kinds(u, false));
  int added = size_of(s, prefix, "label_emb.0.0.weight", 1);
  if (json && added) {
    json_object_set_new(json, "addition_embed_type", json_string("text_time"));
    json_object_set_new(json, "addition_time_embed_dim", json_integer(NUMBER_WIDTH));
    json_object_set_new(json, "projection_class_embeddings_input_dim", json_integer(added));
  }
  return json;
}

static rdna_status read_unet(const rdna__safetensors *s, const char *prefix, rdna__checkpoint_family family,
                             json_t **out, rdna__checkpoint_part *part) {
  static const int samples[] = {64, 96, 128, 128};
  unet u;
  RDNA_TRY(read_stages(s, prefix, &u));
  *part = (rdna__checkpoint_part){CHECKPOINT_UNET, prefix, u.stages, u.layers, 0};
  for (int i = 0; i < u.stages; i++) part->up_attends |= (unsigned)u.up_attends[i] << i;
  json_t *json = pack_half(s, prefix, &u, family == CHECKPOINT_SD1);
  if (!json) return out_of_memory();
  int guided = size_of(s, prefix, "time_embed.cond_proj.weight", 1);
  json_object_set_new(json, "_class_name", json_string("UNet2DConditionModel"));
  json_object_set_new(json, "out_channels", json_integer(size_of(s, prefix, "out.2.weight", 0)));
  json_object_set_new(json, "sample_size", json_integer(samples[family]));
  json_object_set_new(json, "up_block_types", kinds(&u, true));
  if (guided) json_object_set_new(json, "time_cond_proj_dim", json_integer(guided));
  *out = json;
  return RDNA_OK;
}

rdna_status rdna__checkpoint_read_unet(const rdna__safetensors *s, json_t **out, rdna__checkpoint_part *part) {
  const char *prefix = tensor(s, UNET, "input_blocks.0.0.weight") ? UNET : "";
  if (!tensor(s, prefix, "input_blocks.0.0.weight")) return refuse_others(s);
  RDNA_TRY(refuse_relatives(s));
  bool numbers = tensor(s, prefix, "label_emb.0.0.weight") != NULL;
  return read_unet(s, prefix,
                   numbers                  ? CHECKPOINT_XL
                   : has_windows(s, prefix) ? CHECKPOINT_SD1
                                            : CHECKPOINT_SD2,
                   out, part);
}

/* ---- ControlNets ---- */

/* What else is offered for their purpose. */
static rdna_status refuse_other_controls(const rdna__safetensors *s) {
  static const char *const others[][2] = {
      {"controlnet_cond_embedding.",
       "a ControlNet's weights without their settings; the folder that diffusers saved is "
       "what is asked for"},
      {"lora_controlnet", "a Control-LoRA, which is not known"},
      {"lllite_", "a ControlNet-LLLite, which is not known"},
      {"task_embedding", "a ControlNet of many tasks (ControlNet++), which is not known"},
      {"adapter.", "a T2I-Adapter, which is not known"},
      {"body.", "a T2I-Adapter, which is not known"},
      {"controlnet_blocks.", "a ControlNet of FLUX or Stable Diffusion 3, which is not known"},
      {"image_proj", "an IP-Adapter, which is given to a model by --ip-adapter"},
      {"lora_", "a LoRA, which is given to a model by --lora"},
      {UNET, "a whole model, and no ControlNet"}};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (has_prefix(s, others[i][0])) return rdna__fail(RDNA_UNSUPPORTED, "it is %s", others[i][1]);
  return rdna__fail(RDNA_UNSUPPORTED,
                    "none of its tensors is called '" CONTROL "input_hint_block.0.weight', so it is no ControlNet");
}

rdna_status rdna__checkpoint_read_control(const rdna__safetensors *s, json_t **out, rdna__checkpoint_part *part) {
  unet u;
  const char *prefix = tensor(s, CONTROL, "input_hint_block.0.weight") ? CONTROL : "";
  if (!tensor(s, prefix, "input_hint_block.0.weight") || has_prefix(s, "lora_controlnet"))
    return refuse_other_controls(s);
  if (tensor(s, "", "difference"))
    return rdna__fail(RDNA_UNSUPPORTED, "it is the difference of a ControlNet to a model, which is not known");
  RDNA_TRY(read_stages(s, prefix, &u));
  *part = (rdna__checkpoint_part){CHECKPOINT_CONTROLNET, prefix, u.stages, u.layers, 0};
  json_t *json = pack_half(s, prefix, &u, has_windows(s, prefix)), *sights = json_array();
  for (int i = 0; i < 4; i++) {
    int channels = size_at(s, prefix, "input_hint_block.%d.weight", i < 3 ? 4 * i : 14, i < 3 ? 0 : 1);
    json_array_append_new(sights, json_integer(channels));
  }
  if (!json || !sights) {
    json_decref(json);
    json_decref(sights);
    return out_of_memory();
  }
  json_object_set_new(json, "_class_name", json_string("ControlNetModel"));
  json_object_set_new(json, "conditioning_embedding_out_channels", sights);
  *out = json;
  return RDNA_OK;
}

/* ---- autoencoders ---- */

/* With the scale |scaling|, or 0: it is another's. */
static rdna_status read_autoencoder(const rdna__safetensors *s, const char *prefix, double scaling, bool upcast,
                                    json_t **out, rdna__checkpoint_part *part) {
  int channels[MOST_STAGES], stages = 0;
  char blocks[NAME_BYTES];
  while (stages < MOST_STAGES &&
         (channels[stages] = size_at(s, prefix, "decoder.up.%d.block.0.conv2.weight", stages, 0)) > 0)
    stages++;
  snprintf(blocks, sizeof blocks, "%sdecoder.up.0.block.", prefix);
  int layers = count_of(s, blocks, "%d.conv1.weight") - 1;
  if (stages < 1 || stages >= MOST_STAGES || layers < 1 || layers > MOST_LAYERS)
    return rdna__fail(RDNA_BAD_DATA, "the blocks of its autoencoder are no levels of as many blocks each");
  *part = (rdna__checkpoint_part){CHECKPOINT_AUTOENCODER, prefix, stages, layers, 0};
  json_t *down = json_array(), *up = json_array();
  for (int i = 0; i < stages; i++) {
    json_array_append_new(down, json_string("DownEncoderBlock2D"));
    json_array_append_new(up, json_string("UpDecoderBlock2D"));
  }
  *out = json_pack("{s:s, s:i, s:i, s:i, s:i, s:f, s:b, s:b, s:b, s:b, s:o, s:o, s:o}", "_class_name", "AutoencoderKL",
                   "in_channels", size_of(s, prefix, "encoder.conv_in.weight", 1), "out_channels",
                   size_of(s, prefix, "decoder.conv_out.weight", 0), "latent_channels",
                   size_of(s, prefix, "decoder.conv_in.weight", 1), "layers_per_block", layers, "scaling_factor",
                   scaling > 0 ? scaling : 1, "_borrows", scaling == 0, "force_upcast", (int)upcast, "use_quant_conv",
                   size_of(s, prefix, "quant_conv.weight", 0) > 0, "use_post_quant_conv",
                   size_of(s, prefix, "post_quant_conv.weight", 0) > 0, "block_out_channels", list(channels, stages),
                   "down_block_types", down, "up_block_types", up);
  return *out ? RDNA_OK : out_of_memory();
}

static const char *vae_prefix(const rdna__safetensors *s) {
  return tensor(s, AUTOENCODER, "decoder.conv_in.weight") ? AUTOENCODER : "";
}

bool rdna__checkpoint_is_vae(const rdna__safetensors *s) {
  const char *prefix = vae_prefix(s);
  return size_of(s, prefix, "decoder.conv_in.weight", 0) > 0 &&
         !size_of(s, prefix, "decoder.up_blocks.0.resnets.0.conv1.weight", 0);
}

rdna_status rdna__checkpoint_read_vae(const rdna__safetensors *s, json_t **out, rdna__checkpoint_part *part) {
  return read_autoencoder(s, vae_prefix(s), 0, false, out, part);
}

/* ---- text encoders ---- */

static rdna_status read_encoder(const rdna__safetensors *s, rdna__checkpoint_family family, bool second, json_t **out,
                                rdna__checkpoint_part *part) {
  int i = 0;
  while (i < ENCODERS && (encoders[i].family != family || encoders[i].second != second || !has_encoder(s, i))) i++;
  if (i == ENCODERS) return rdna__fail(RDNA_NOT_FOUND, "%s has no such text encoder", families[family]);
  const char *prefix = encoders[i].prefix;
  bool open = encoders[i].kind == CHECKPOINT_OPEN_CLIP, later = open || second || family == CHECKPOINT_SD2;
  int vocabulary = size_of(s, prefix, embedding_of(encoders[i].kind), 0);
  int width = size_of(s, prefix, embedding_of(encoders[i].kind), 1);
  int layers =
      count_of(s, prefix, open ? "transformer.resblocks.%d.ln_1.weight" : "encoder.layers.%d.layer_norm1.weight");
  /* Stable Diffusion 2 reads what is behind the last layer but one, and diffusers leaves the last one out */
  if (family == CHECKPOINT_SD2) layers--;
  *part = (rdna__checkpoint_part){encoders[i].kind, prefix, 0, layers, 0};
  *out = json_pack(
      "{s:[s], s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "architectures",
      second ? "CLIPTextModelWithProjection" : "CLIPTextModel", "hidden_act", later ? "gelu" : "quick_gelu",
      "vocab_size", vocabulary, "hidden_size", width, "intermediate_size",
      size_of(s, prefix, open ? "transformer.resblocks.0.mlp.c_fc.weight" : "encoder.layers.0.mlp.fc1.weight", 0),
      "num_hidden_layers", layers, "num_attention_heads", width / EACH_HEAD, "max_position_embeddings",
      size_of(s, prefix, open ? "positional_embedding" : "embeddings.position_embedding.weight", 0), "projection_dim",
      second ? size_of(s, prefix, "text_projection", 1) : width, "eos_token_id", vocabulary - 1);
  return *out ? RDNA_OK : out_of_memory();
}

/* ---- all ---- */

rdna_status rdna__checkpoint_read(const rdna__safetensors *s, rdna__checkpoint_family family, const char *name,
                                  json_t **out, rdna__checkpoint_part *part) {
  if (strcmp(name, "unet") == 0) return read_unet(s, UNET, family, out, part);
  bool xl = family == CHECKPOINT_XL || family == CHECKPOINT_REFINER;
  if (strcmp(name, "vae") == 0) return read_autoencoder(s, AUTOENCODER, xl ? 0.13025 : 0.18215, xl, out, part);
  if (strcmp(name, "text_encoder") == 0) return read_encoder(s, family, false, out, part);
  if (strcmp(name, "text_encoder_2") == 0) return read_encoder(s, family, true, out, part);
  return rdna__fail(RDNA_NOT_FOUND, "one file for all has no '%.80s'", name);
}

rdna_status rdna__checkpoint_schedule(const rdna__safetensors *s, rdna__checkpoint_family family,
                                      const char *prediction, json_t **out) {
  static const char *const kinds_of[] = {"PNDMScheduler", "DDIMScheduler", "EulerDiscreteScheduler",
                                         "EulerDiscreteScheduler"};
  bool v = family == CHECKPOINT_SD2 || tensor(s, "", "v_pred"), zero = tensor(s, "", "ztsnr") != NULL;
  if (!prediction) prediction = v ? "v_prediction" : "epsilon";
  if (zero && strcmp(prediction, "epsilon") == 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "its first noise level is nothing but noise ('ztsnr'), of which epsilon says "
                      "nothing; ask for v_prediction");
  *out = json_pack("{s:s, s:s, s:f, s:f, s:s, s:b, s:b, s:b, s:i, s:s, s:b}", "_class_name", kinds_of[family],
                   "beta_schedule", "scaled_linear", "beta_start", 0.00085, "beta_end", 0.012, "prediction_type",
                   prediction, "clip_sample", 0, "set_alpha_to_one", 0, "skip_prk_steps", 1, "steps_offset", 1,
                   "timestep_spacing", zero ? "trailing" : "leading", "rescale_betas_zero_snr", (int)zero);
  return *out ? RDNA_OK : out_of_memory();
}
