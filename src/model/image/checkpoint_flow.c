/* FLUX's transformer and T5 in files of their own, or behind a prefix in one for all: names, and what tensors say of
 * the settings. Black Forest Labs' names are those of safetensors and of GGUF alike. */
#include <stdio.h>
#include <string.h>

#include "model/image/checkpoint.h"

enum { NAME_BYTES = 256, MOST_BLOCKS = 256, HEAD = 128, MOST_SIZE = 1 << 24 };

/* ---- names ---- */

/* A name of diffusers and the file's, of whose rows it is [first, end) of |parts| shares; parts 0: all. */
typedef struct pair {
  const char *diffusers, *file;
  int first, end, parts;
} pair;

static const pair flux_double[] = {{"norm1.linear", "img_mod.lin", 0, 0, 0},
                                   {"norm1_context.linear", "txt_mod.lin", 0, 0, 0},
                                   {"attn.to_q", "img_attn.qkv", 0, 1, 3},
                                   {"attn.to_k", "img_attn.qkv", 1, 2, 3},
                                   {"attn.to_v", "img_attn.qkv", 2, 3, 3},
                                   {"attn.add_q_proj", "txt_attn.qkv", 0, 1, 3},
                                   {"attn.add_k_proj", "txt_attn.qkv", 1, 2, 3},
                                   {"attn.add_v_proj", "txt_attn.qkv", 2, 3, 3},
                                   {"attn.to_out.0", "img_attn.proj", 0, 0, 0},
                                   {"attn.to_add_out", "txt_attn.proj", 0, 0, 0},
                                   {"attn.norm_q.weight", "img_attn.norm.query_norm.scale", 0, 0, 0},
                                   {"attn.norm_k.weight", "img_attn.norm.key_norm.scale", 0, 0, 0},
                                   {"attn.norm_added_q.weight", "txt_attn.norm.query_norm.scale", 0, 0, 0},
                                   {"attn.norm_added_k.weight", "txt_attn.norm.key_norm.scale", 0, 0, 0},
                                   {"ff.net.0.proj", "img_mlp.0", 0, 0, 0},
                                   {"ff.net.2", "img_mlp.2", 0, 0, 0},
                                   {"ff_context.net.0.proj", "txt_mlp.0", 0, 0, 0},
                                   {"ff_context.net.2", "txt_mlp.2", 0, 0, 0},
                                   {0}};
static const pair flux_single[] = {{"norm.linear", "modulation.lin", 0, 0, 0},
                                   {"attn.to_q", "linear1", 0, 1, 7},
                                   {"attn.to_k", "linear1", 1, 2, 7},
                                   {"attn.to_v", "linear1", 2, 3, 7},
                                   {"proj_mlp", "linear1", 3, 7, 7},
                                   {"proj_out", "linear2", 0, 0, 0},
                                   {"attn.norm_q.weight", "norm.query_norm.scale", 0, 0, 0},
                                   {"attn.norm_k.weight", "norm.key_norm.scale", 0, 0, 0},
                                   {0}};
static const pair flux_rest[] = {{"x_embedder", "img_in", 0, 0, 0},
                                 {"context_embedder", "txt_in", 0, 0, 0},
                                 {"time_text_embed.timestep_embedder.linear_1", "time_in.in_layer", 0, 0, 0},
                                 {"time_text_embed.timestep_embedder.linear_2", "time_in.out_layer", 0, 0, 0},
                                 {"time_text_embed.guidance_embedder.linear_1", "guidance_in.in_layer", 0, 0, 0},
                                 {"time_text_embed.guidance_embedder.linear_2", "guidance_in.out_layer", 0, 0, 0},
                                 {"time_text_embed.text_embedder.linear_1", "vector_in.in_layer", 0, 0, 0},
                                 {"time_text_embed.text_embedder.linear_2", "vector_in.out_layer", 0, 0, 0},
                                 {"norm_out.linear", "final_layer.adaLN_modulation.1", 0, 0, 0},
                                 {"proj_out", "final_layer.linear", 0, 0, 0},
                                 {0}};
static const pair t5_layer[] = {{"0.layer_norm", "attn_norm", 0, 0, 0},
                                {"0.SelfAttention.q", "attn_q", 0, 0, 0},
                                {"0.SelfAttention.k", "attn_k", 0, 0, 0},
                                {"0.SelfAttention.v", "attn_v", 0, 0, 0},
                                {"0.SelfAttention.o", "attn_o", 0, 0, 0},
                                {"0.SelfAttention.relative_attention_bias", "attn_rel_b", 0, 0, 0},
                                {"1.layer_norm", "ffn_norm", 0, 0, 0},
                                {"1.DenseReluDense.wi_0", "ffn_gate", 0, 0, 0},
                                {"1.DenseReluDense.wi_1", "ffn_up", 0, 0, 0},
                                {"1.DenseReluDense.wo", "ffn_down", 0, 0, 0},
                                {0}};
static const pair t5_rest[] = {
    {"shared", "token_embd", 0, 0, 0}, {"encoder.final_layer_norm", "enc.output_norm", 0, 0, 0}, {0}};

/* The one that |name| is, or begins with before a point. */
static const pair *find(const pair *pairs, const char *name) {
  for (; pairs->diffusers; pairs++) {
    size_t length = strlen(pairs->diffusers);
    if (strncmp(name, pairs->diffusers, length) == 0 && (name[length] == '.' || name[length] == 0)) return pairs;
  }
  return NULL;
}

bool rdna__checkpoint_flow_name(rdna__checkpoint_kind kind, const char *name, char *out, size_t size, int *out_first,
                                int *out_end, int *out_parts) {
  static const struct {
    rdna__checkpoint_kind kind;
    const char *form, *before; /* of a block's names: of diffusers, and of the file */
    const pair *pairs, *rest;
  } kinds[] = {{CHECKPOINT_FLUX, "transformer_blocks.", "double_blocks", flux_double, flux_rest},
               {CHECKPOINT_FLUX, "single_transformer_blocks.", "single_blocks", flux_single, flux_rest},
               {CHECKPOINT_T5_GGUF, "encoder.block.", "enc.blk", t5_layer, t5_rest}};
  const pair *found = NULL, all = {"", "", 0, 1, 1};
  char before[64] = "";
  if (kind == CHECKPOINT_T5) found = &all;
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds && !found; k++) {
    size_t length = strlen(kinds[k].form);
    int i = 0, end = 0;
    if (kinds[k].kind != kind) continue;
    found = find(kinds[k].rest, name);
    if (found || strncmp(name, kinds[k].form, length) != 0) continue;
    if (sscanf(name + length, kind == CHECKPOINT_FLUX ? "%4d.%n" : "%4d.layer.%n", &i, &end) != 1 || !end) continue;
    snprintf(before, sizeof before, "%s.%d.", kinds[k].before, i);
    name += length + (size_t)end;
    found = find(kinds[k].pairs, name);
    break;
  }
  if (!found) return false;
  *out_first = found->parts ? found->first : 0;
  *out_end = found->parts ? found->end : 1;
  *out_parts = found->parts ? found->parts : 1;
  return snprintf(out, size, "%s%s%s", before, found->file, name + strlen(found->diffusers)) < (int)size;
}

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

static const char *const flux_prefixes[] = {"", "model.diffusion_model."};
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

/* Relatives, whose tensors have the same names and some more. */
static rdna_status refuse_relatives(const rdna__safetensors *s, const char *prefix) {
  static const char *const relatives[][2] = {
      {"distilled_guidance_layer.in_proj.weight", "Chroma"},
      {"double_stream_modulation_img.lin.weight", "FLUX.2"},
      {"joint_blocks.0.x_block.attn.qkv.weight", "Stable Diffusion 3"},
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
static rdna_status read_flux(const rdna__safetensors *s, const char *prefix, json_t **out) {
  int doubles = count_of(s, prefix, "double_blocks.%d.img_attn.qkv.weight");
  int singles = count_of(s, prefix, "single_blocks.%d.linear1.weight");
  int width = size_of(s, prefix, "img_in.weight", 0);
  int head = size_of(s, prefix, "single_blocks.0.norm.query_norm.scale", 0);
  if (!head) head = size_of(s, prefix, "double_blocks.0.img_attn.norm.query_norm.scale", 0);
  if (!width || doubles + singles == 0)
    return rdna__fail(RDNA_UNSUPPORTED,
                      "it has no tensors 'img_in.weight' and 'double_blocks.0.img_attn.qkv.weight', "
                      "so it is no transformer of FLUX.1");
  if (head != HEAD || width % HEAD != 0)
    return rdna__fail(RDNA_UNSUPPORTED, "its tokens have %d values in heads of %d; those of FLUX.1 have %d", width,
                      head, HEAD);
  *out = json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b}", "_class_name", "FluxTransformer2DModel",
                   "in_channels", size_of(s, prefix, "img_in.weight", 1), "out_channels",
                   size_of(s, prefix, "final_layer.linear.weight", 0), "num_layers", doubles, "num_single_layers",
                   singles, "attention_head_dim", head, "num_attention_heads", width / head, "joint_attention_dim",
                   size_of(s, prefix, "txt_in.weight", 1), "pooled_projection_dim",
                   size_of(s, prefix, "vector_in.in_layer.weight", 1), "guidance_embeds",
                   size_of(s, prefix, "guidance_in.in_layer.weight", 0) > 0);
  return *out ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for settings");
}

static rdna_status find_flux(const rdna__safetensors *s, json_t **out, rdna__checkpoint_part *part) {
  const char *prefix = flux_prefixes[size_of(s, flux_prefixes[1], "img_in.weight", 0) > 0];
  RDNA_TRY(check_architecture(s, "flux", "flux"));
  RDNA_TRY(refuse_relatives(s, prefix));
  *part = (rdna__checkpoint_part){.kind = CHECKPOINT_FLUX, .prefix = prefix};
  return read_flux(s, prefix, out);
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
  return *out ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for settings");
}

rdna_status rdna__checkpoint_read_flow(const rdna__safetensors *s, const char *name, json_t **out,
                                       rdna__checkpoint_part *part) {
  if (strcmp(name, "transformer") == 0) return find_flux(s, out, part);
  *part = (rdna__checkpoint_part){0};
  part->kind = t5_of(s, &part->prefix);
  RDNA_TRY(check_architecture(s, "t5encoder", "t5"));
  return read_t5(s, part, out);
}
