/* Transformers that flow and T5 in files of their own, or behind a prefix in one for all: what tensors say of the
 * settings. */
#include <stdio.h>
#include <string.h>

#include "model/image/checkpoint.h"

enum { NAME_BYTES = 256, MOST_BLOCKS = 256, HEAD = 128, SD3_HEAD = 64, MOST_SIZE = 1 << 24 };

/* ---- asking a file ---- */

/* Size |dimension| of a tensor; 0: there is no such tensor, or no such dimension. */
static int size_of(const rdna__safetensors *s, const char *prefix, const char *name, int dimension) {
  char full[NAME_BYTES];
  if (snprintf(full, sizeof full, "%s%s", prefix, name) >= NAME_BYTES) return 0;
  const rdna__safetensor *t = rdna__safetensors_find(s, full);
  return t && dimension < t->rank && t->shape[dimension] <= MOST_SIZE ? (int)t->shape[dimension] : 0;
}

/* How many of the names that |form| makes of 0, 1, … there are. */
__attribute__((format(printf, 3, 0))) static int count_of(const rdna__safetensors *s, const char *prefix,
                                                          const char *form) {
  char name[NAME_BYTES];
  for (int count = 0;; count++) {
    snprintf(name, sizeof name, form, count);
    if (count == MOST_BLOCKS || !size_of(s, prefix, name, 0)) return count;
  }
}

static const char *const t5_prefixes[] = {"", "text_encoders.t5xxl.transformer.", "text_encoders.t5xxl."};
static const char t5_query[] = "encoder.block.0.layer.0.SelfAttention.q.weight",
                  gguf_query[] = "enc.blk.0.attn_q.weight";

/* The kind of T5 that a file has, and its names' prefix; CHECKPOINT_NONE: none. */
static rdna__checkpoint_kind t5_of(const rdna__safetensors *s, const char **out_prefix) {
  for (size_t i = 0; i < sizeof t5_prefixes / sizeof *t5_prefixes; i++) {
    *out_prefix = t5_prefixes[i];
    if (size_of(s, *out_prefix, t5_query, 0)) return CHECKPOINT_T5;
    if (size_of(s, *out_prefix, gguf_query, 0)) return CHECKPOINT_T5_GGUF;
  }
  return CHECKPOINT_NONE;
}

bool rdna__checkpoint_is_flow(const rdna__safetensors *s, const char *name) {
  const char *prefix;
  bool later = strcmp(name, "text_encoder_2") == 0 || strcmp(name, "text_encoder_3") == 0;
  return strcmp(name, "transformer") == 0 || (later && t5_of(s, &prefix));
}

/* What GGUF says that it is, where it says so, is one of two. */
static rdna_status check_architecture(const rdna__safetensors *s, const char *first, const char *second) {
  const rdna_gguf *file = rdna__safetensors_gguf(s);
  rdna_text text;
  if (!file || !rdna_gguf_find_key(file, "general.architecture", &(rdna_gguf_key){0})) return RDNA_OK;
  RDNA_TRY(rdna_gguf_get_text(file, "general.architecture", &text));
  const char *const known[] = {first, second};
  for (int i = 0; i < 2; i++)
    if (text.size == strlen(known[i]) && memcmp(text.data, known[i], text.size) == 0) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "its architecture is '%.*s', and '%s' is asked for",
                    (int)(text.size < 80 ? text.size : 80), text.data, first);
}

/* ---- the transformer ---- */

static rdna_status no_memory(void) { return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for settings"); }

/* Relatives of FLUX, whose tensors have the same names and some more. */
static rdna_status refuse_relatives(const rdna__safetensors *s, const char *prefix) {
  static const char *const relatives[][2] = {
      {"distilled_guidance_layer.in_proj.weight", "Chroma"},
      {"transformer_blocks.0.attn.to_q.weight", "a folder of diffusers, which --transformer need not name a file of"}};
  for (size_t i = 0; i < sizeof relatives / sizeof *relatives; i++) {
    char full[NAME_BYTES];
    snprintf(full, sizeof full, "%s%s", prefix, relatives[i][0]);
    if (rdna__safetensors_find(s, full))
      return rdna__fail(RDNA_UNSUPPORTED, "its tensor '%s' says that it is of %s", full, relatives[i][1]);
  }
  return RDNA_OK;
}

/* Of heads of another size than the published ones nobody knows how their values turn. */
static rdna_status check_head(int width, int head) {
  if (head == HEAD && width > 0 && width % HEAD == 0) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "its tokens have %d values in heads of %d; those of published models have %d",
                    width, head, HEAD);
}

static rdna_status read_flux(const rdna__safetensors *s, const char *prefix, json_t **out) {
  RDNA_TRY(refuse_relatives(s, prefix));
  int doubles = count_of(s, prefix, "double_blocks.%d.img_attn.qkv.weight");
  int singles = count_of(s, prefix, "single_blocks.%d.linear1.weight");
  int width = size_of(s, prefix, "img_in.weight", 0);
  int head = size_of(s, prefix, "single_blocks.0.norm.query_norm.scale", 0);
  if (!head) head = size_of(s, prefix, "double_blocks.0.img_attn.norm.query_norm.scale", 0);
  if (!width || doubles + singles == 0)
    return rdna__fail(RDNA_UNSUPPORTED,
                      "it has no tensors 'img_in.weight' and 'double_blocks.0.img_attn.qkv.weight', "
                      "so it is no transformer of FLUX.1");
  RDNA_TRY(check_head(width, head));
  *out = json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b}", "_class_name", "FluxTransformer2DModel",
                   "in_channels", size_of(s, prefix, "img_in.weight", 1), "out_channels",
                   size_of(s, prefix, "final_layer.linear.weight", 0), "num_layers", doubles, "num_single_layers",
                   singles, "attention_head_dim", head, "num_attention_heads", width / head, "joint_attention_dim",
                   size_of(s, prefix, "txt_in.weight", 1), "pooled_projection_dim",
                   size_of(s, prefix, "vector_in.in_layer.weight", 1), "guidance_embeds",
                   size_of(s, prefix, "guidance_in.in_layer.weight", 0) > 0);
  return *out ? RDNA_OK : no_memory();
}

static rdna_status read_flux2(const rdna__safetensors *s, const char *prefix, json_t **out) {
  int doubles = count_of(s, prefix, "double_blocks.%d.img_attn.qkv.weight");
  int singles = count_of(s, prefix, "single_blocks.%d.linear1.weight");
  int width = size_of(s, prefix, "img_in.weight", 0);
  int head = size_of(s, prefix, "double_blocks.0.img_attn.norm.query_norm.scale", 0);
  int hidden = size_of(s, prefix, "double_blocks.0.img_mlp.2.weight", 1);
  RDNA_TRY(check_head(width, head));
  *out = json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:b}", "_class_name", "Flux2Transformer2DModel",
                   "in_channels", size_of(s, prefix, "img_in.weight", 1), "out_channels",
                   size_of(s, prefix, "final_layer.linear.weight", 0), "num_layers", doubles, "num_single_layers",
                   singles, "attention_head_dim", head, "num_attention_heads", width / head, "joint_attention_dim",
                   size_of(s, prefix, "txt_in.weight", 1), "timestep_guidance_channels",
                   size_of(s, prefix, "time_in.in_layer.weight", 1), "mlp_ratio",
                   (hidden + 0.5) / width, /* of which the whole part is taken times the width */
                   "guidance_embeds", size_of(s, prefix, "guidance_in.in_layer.weight", 0) > 0);
  return *out ? RDNA_OK : no_memory();
}

/* Which blocks' pictures attend to themselves alone, too. */
static json_t *list_dual(const rdna__safetensors *s, const char *prefix, int blocks) {
  json_t *list = json_array();
  for (int i = 0; list && i < blocks; i++) {
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "joint_blocks.%d.x_block.attn2.qkv.weight", i);
    if (!size_of(s, prefix, name, 0) || json_array_append_new(list, json_integer(i)) == 0) continue;
    json_decref(list);
    return NULL;
  }
  return list;
}

/* GGUF leaves out that there is one table of positions. */
static rdna_status read_positions(const rdna__safetensors *s, const char *prefix, int *out) {
  bool whole = size_of(s, prefix, "pos_embed", 2) > 0;
  int places = size_of(s, prefix, "pos_embed", whole), side = 0;
  while (side * side < places && side < 1 << 12) side++;
  *out = side;
  if (places > 0 && side * side == places) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "its tensor 'pos_embed' has %d positions, which is no square", places);
}

static rdna_status read_sd3(const rdna__safetensors *s, const char *prefix, json_t **out) {
  int blocks = count_of(s, prefix, "joint_blocks.%d.x_block.attn.qkv.weight"), positions;
  int width = size_of(s, prefix, "x_embedder.proj.weight", 0);
  int normed = size_of(s, prefix, "joint_blocks.0.x_block.attn.ln_q.weight", 0), head = normed ? normed : SD3_HEAD;
  if (width < head || width % head != 0)
    return rdna__fail(RDNA_BAD_DATA, "its tensor 'x_embedder.proj.weight' makes %d values of a token, of heads of %d",
                      width, head);
  RDNA_TRY(read_positions(s, prefix, &positions));
  json_t *dual = list_dual(s, prefix, blocks);
  if (!dual) return no_memory();
  *out = json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:s?}", "_class_name",
                   "SD3Transformer2DModel", "in_channels", size_of(s, prefix, "x_embedder.proj.weight", 1),
                   "out_channels", size_of(s, prefix, "final_layer.linear.weight", 0) / 4, "num_layers", blocks,
                   "attention_head_dim", head, "num_attention_heads", width / head, "joint_attention_dim",
                   size_of(s, prefix, "context_embedder.weight", 1), "caption_projection_dim", width,
                   "pooled_projection_dim", size_of(s, prefix, "y_embedder.mlp.0.weight", 1), "pos_embed_max_size",
                   positions, "dual_attention_layers", dual, "qk_norm", normed ? "rms_norm" : NULL);
  return *out ? RDNA_OK : no_memory();
}

/* By which ComfyUI's files of Qwen-Image-Edit-2511 say that pictures that are looked at stand still. */
#define STILLS "__index_timestep_zero__"

static rdna_status read_qwen(const rdna__safetensors *s, const char *prefix, json_t **out) {
  int blocks = count_of(s, prefix, "transformer_blocks.%d.attn.add_q_proj.weight");
  int width = size_of(s, prefix, "img_in.weight", 0);
  int head = size_of(s, prefix, "transformer_blocks.0.attn.norm_q.weight", 0);
  RDNA_TRY(check_head(width, head));
  bool stills = size_of(s, prefix, STILLS, 0) > 0;
  *out = json_pack("{s:s, s:b, s:i, s:i, s:i, s:i, s:i, s:i}", "_class_name", "QwenImageTransformer2DModel",
                   "zero_cond_t", stills, "in_channels", size_of(s, prefix, "img_in.weight", 1), "out_channels",
                   size_of(s, prefix, "proj_out.weight", 0) / 4, "num_layers", blocks, "attention_head_dim", head,
                   "num_attention_heads", width / head, "joint_attention_dim", size_of(s, prefix, "txt_in.weight", 1));
  return *out ? RDNA_OK : no_memory();
}

/* |names|: of the first layer's norm of queries, and of what reads a picture. */
static rdna_status read_zimage(const rdna__safetensors *s, const char *prefix, const char *const names[2],
                               json_t **out) {
  int width = size_of(s, prefix, "cap_embedder.1.weight", 0), head = size_of(s, prefix, names[0], 0);
  RDNA_TRY(check_head(width, head));
  *out = json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "_class_name", "ZImageTransformer2DModel", "in_channels",
                   size_of(s, prefix, names[1], 1) / 4, "dim", width, "n_layers",
                   count_of(s, prefix, "layers.%d.ffn_norm1.weight"), "n_refiner_layers",
                   count_of(s, prefix, "noise_refiner.%d.ffn_norm1.weight"), "n_heads", width / head, "n_kv_heads",
                   width / head, "cap_feat_dim", size_of(s, prefix, "cap_embedder.1.weight", 1));
  return *out ? RDNA_OK : no_memory();
}

static rdna_status read_joined_zimage(const rdna__safetensors *s, const char *prefix, json_t **out) {
  return read_zimage(s, prefix, (const char *const[]){"layers.0.attention.q_norm.weight", "x_embedder.weight"}, out);
}

static rdna_status read_plain_zimage(const rdna__safetensors *s, const char *prefix, json_t **out) {
  return read_zimage(s, prefix, (const char *const[]){"layers.0.attention.norm_q.weight", "all_x_embedder.2-1.weight"},
                     out);
}

/* Models by a tensor that no other has, the last one where there is none; and what ComfyUI-GGUF calls them. */
static const struct transformer {
  const char *tensor, *architecture;
  rdna__checkpoint_kind kind;
  rdna_status (*read)(const rdna__safetensors *, const char *, json_t **);
} transformers[] = {{"double_stream_modulation_img.lin.weight", "flux", CHECKPOINT_FLUX, read_flux2},
                    {"joint_blocks.0.x_block.attn.qkv.weight", "sd3", CHECKPOINT_SD3, read_sd3},
                    {"layers.0.attention.qkv.weight", "lumina2", CHECKPOINT_ZIMAGE, read_joined_zimage},
                    {"layers.0.attention.to_q.weight", "lumina2", CHECKPOINT_DIFFUSERS, read_plain_zimage},
                    {"transformer_blocks.0.txt_mod.1.weight", "qwen_image", CHECKPOINT_DIFFUSERS, read_qwen},
                    {"img_in.weight", "flux", CHECKPOINT_FLUX, read_flux}};
enum { TRANSFORMERS = sizeof transformers / sizeof *transformers };

static rdna_status find_transformer(const rdna__safetensors *s, json_t **out, rdna__checkpoint_part *part) {
  static const char *const prefixes[] = {"", "model.diffusion_model."};
  const struct transformer *found = &transformers[TRANSFORMERS - 1];
  const char *prefix = "";
  for (int i = 2 * TRANSFORMERS - 1; i >= 0; i--)
    if (size_of(s, prefixes[i % 2], transformers[i / 2].tensor, 0)) {
      found = &transformers[i / 2];
      prefix = prefixes[i % 2];
    }
  RDNA_TRY(check_architecture(s, found->architecture, found->architecture));
  *part = (rdna__checkpoint_part){.kind = found->kind, .prefix = prefix};
  return found->read(s, prefix, out);
}

/* ---- T5 ---- */

static rdna_status read_t5(const rdna__safetensors *s, const rdna__checkpoint_part *part, json_t **out) {
  bool gguf = part->kind == CHECKPOINT_T5_GGUF;
  const char *prefix = part->prefix, *query = gguf ? gguf_query : t5_query;
  const char *bias =
      gguf ? "enc.blk.0.attn_rel_b.weight" : "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight";
  const char *gate = gguf ? "enc.blk.0.ffn_gate.weight" : "encoder.block.0.layer.1.DenseReluDense.wi_0.weight";
  const char *table = gguf                                         ? "token_embd.weight"
                      : size_of(s, prefix, "shared.weight", 0) > 0 ? "shared.weight"
                                                                   : "encoder.embed_tokens.weight";
  int heads = size_of(s, prefix, bias, 1);
  if (!heads || !size_of(s, prefix, gate, 0))
    return rdna__fail(RDNA_BAD_DATA, "it has no tensor of distances or of gates in its first layer, as T5 1.1 has");
  int layers = gguf ? count_of(s, prefix, "enc.blk.%d.attn_q.weight")
                    : count_of(s, prefix, "encoder.block.%d.layer.0.SelfAttention.q.weight");
  double epsilon = 1e-6;
  static const char key[] = "t5encoder.attention.layer_norm_epsilon";
  const rdna_gguf *file = rdna__safetensors_gguf(s);
  if (file && rdna_gguf_find_key(file, key, &(rdna_gguf_key){0})) RDNA_TRY(rdna_gguf_get_f64(file, key, &epsilon));
  *out = json_pack("{s:[s], s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f}", "architectures", "T5EncoderModel",
                   "feed_forward_proj", "gated-gelu", "vocab_size", size_of(s, prefix, table, 0), "d_model",
                   size_of(s, prefix, query, 1), "d_kv", size_of(s, prefix, query, 0) / heads, "d_ff",
                   size_of(s, prefix, gate, 0), "num_layers", layers, "num_heads", heads,
                   "relative_attention_num_buckets", size_of(s, prefix, bias, 0), "layer_norm_epsilon", epsilon);
  return *out ? RDNA_OK : no_memory();
}

rdna_status rdna__checkpoint_read_flow(const rdna__safetensors *s, const char *name, json_t **out,
                                       rdna__checkpoint_part *part) {
  if (strcmp(name, "transformer") == 0) return find_transformer(s, out, part);
  *part = (rdna__checkpoint_part){0};
  part->kind = t5_of(s, &part->prefix);
  RDNA_TRY(check_architecture(s, "t5encoder", "t5"));
  return read_t5(s, part, out);
}
