/* What files of their own call the tensors of transformers that flow and of T5. Black Forest Labs' names are those of
 * safetensors and of GGUF alike, and so are Stability AI's and ComfyUI's. */
#include <stdio.h>
#include <string.h>

#include "model/image/checkpoint.h"

/* A name of diffusers and the file's, of whose rows it is [first, end) of |parts| shares; parts 0: all. */
typedef struct pair {
  const char *diffusers, *file;
  int first, end, parts;
} pair;

/* FLUX.1 and FLUX.2, which call each only some of these so. */
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
                                   {"ff.linear_in", "img_mlp.0", 0, 0, 0},
                                   {"ff.linear_out", "img_mlp.2", 0, 0, 0},
                                   {"ff_context.linear_in", "txt_mlp.0", 0, 0, 0},
                                   {"ff_context.linear_out", "txt_mlp.2", 0, 0, 0},
                                   {0}};
static const pair flux_single[] = {{"norm.linear", "modulation.lin", 0, 0, 0},
                                   {"attn.to_q", "linear1", 0, 1, 7},
                                   {"attn.to_k", "linear1", 1, 2, 7},
                                   {"attn.to_v", "linear1", 2, 3, 7},
                                   {"proj_mlp", "linear1", 3, 7, 7},
                                   {"proj_out", "linear2", 0, 0, 0},
                                   {"attn.norm_q.weight", "norm.query_norm.scale", 0, 0, 0},
                                   {"attn.norm_k.weight", "norm.key_norm.scale", 0, 0, 0},
                                   {"attn.to_qkv_mlp_proj", "linear1", 0, 0, 0},
                                   {"attn.to_out", "linear2", 0, 0, 0},
                                   {0}};
static const pair flux_rest[] = {{"x_embedder", "img_in", 0, 0, 0},
                                 {"context_embedder", "txt_in", 0, 0, 0},
                                 {"time_text_embed.timestep_embedder.linear_1", "time_in.in_layer", 0, 0, 0},
                                 {"time_text_embed.timestep_embedder.linear_2", "time_in.out_layer", 0, 0, 0},
                                 {"time_text_embed.guidance_embedder.linear_1", "guidance_in.in_layer", 0, 0, 0},
                                 {"time_text_embed.guidance_embedder.linear_2", "guidance_in.out_layer", 0, 0, 0},
                                 {"time_text_embed.text_embedder.linear_1", "vector_in.in_layer", 0, 0, 0},
                                 {"time_text_embed.text_embedder.linear_2", "vector_in.out_layer", 0, 0, 0},
                                 {"time_guidance_embed.timestep_embedder.linear_1", "time_in.in_layer", 0, 0, 0},
                                 {"time_guidance_embed.timestep_embedder.linear_2", "time_in.out_layer", 0, 0, 0},
                                 {"time_guidance_embed.guidance_embedder.linear_1", "guidance_in.in_layer", 0, 0, 0},
                                 {"time_guidance_embed.guidance_embedder.linear_2", "guidance_in.out_layer", 0, 0, 0},
                                 {"double_stream_modulation_img.linear", "double_stream_modulation_img.lin", 0, 0, 0},
                                 {"double_stream_modulation_txt.linear", "double_stream_modulation_txt.lin", 0, 0, 0},
                                 {"single_stream_modulation.linear", "single_stream_modulation.lin", 0, 0, 0},
                                 {"norm_out.linear", "final_layer.adaLN_modulation.1", 0, 0, 0},
                                 {"proj_out", "final_layer.linear", 0, 0, 0},
                                 {0}};
static const pair sd3_block[] = {{"norm1.linear", "x_block.adaLN_modulation.1", 0, 0, 0},
                                 {"norm1_context.linear", "context_block.adaLN_modulation.1", 0, 0, 0},
                                 {"attn.to_q", "x_block.attn.qkv", 0, 1, 3},
                                 {"attn.to_k", "x_block.attn.qkv", 1, 2, 3},
                                 {"attn.to_v", "x_block.attn.qkv", 2, 3, 3},
                                 {"attn.add_q_proj", "context_block.attn.qkv", 0, 1, 3},
                                 {"attn.add_k_proj", "context_block.attn.qkv", 1, 2, 3},
                                 {"attn.add_v_proj", "context_block.attn.qkv", 2, 3, 3},
                                 {"attn2.to_q", "x_block.attn2.qkv", 0, 1, 3},
                                 {"attn2.to_k", "x_block.attn2.qkv", 1, 2, 3},
                                 {"attn2.to_v", "x_block.attn2.qkv", 2, 3, 3},
                                 {"attn.to_out.0", "x_block.attn.proj", 0, 0, 0},
                                 {"attn.to_add_out", "context_block.attn.proj", 0, 0, 0},
                                 {"attn2.to_out.0", "x_block.attn2.proj", 0, 0, 0},
                                 {"attn.norm_q", "x_block.attn.ln_q", 0, 0, 0},
                                 {"attn.norm_k", "x_block.attn.ln_k", 0, 0, 0},
                                 {"attn.norm_added_q", "context_block.attn.ln_q", 0, 0, 0},
                                 {"attn.norm_added_k", "context_block.attn.ln_k", 0, 0, 0},
                                 {"attn2.norm_q", "x_block.attn2.ln_q", 0, 0, 0},
                                 {"attn2.norm_k", "x_block.attn2.ln_k", 0, 0, 0},
                                 {"ff.net.0.proj", "x_block.mlp.fc1", 0, 0, 0},
                                 {"ff.net.2", "x_block.mlp.fc2", 0, 0, 0},
                                 {"ff_context.net.0.proj", "context_block.mlp.fc1", 0, 0, 0},
                                 {"ff_context.net.2", "context_block.mlp.fc2", 0, 0, 0},
                                 {0}};
static const pair sd3_rest[] = {{"pos_embed.proj", "x_embedder.proj", 0, 0, 0},
                                {"pos_embed.pos_embed", "pos_embed", 0, 0, 0},
                                {"context_embedder", "context_embedder", 0, 0, 0},
                                {"time_text_embed.timestep_embedder.linear_1", "t_embedder.mlp.0", 0, 0, 0},
                                {"time_text_embed.timestep_embedder.linear_2", "t_embedder.mlp.2", 0, 0, 0},
                                {"time_text_embed.text_embedder.linear_1", "y_embedder.mlp.0", 0, 0, 0},
                                {"time_text_embed.text_embedder.linear_2", "y_embedder.mlp.2", 0, 0, 0},
                                {"norm_out.linear", "final_layer.adaLN_modulation.1", 0, 0, 0},
                                {"proj_out", "final_layer.linear", 0, 0, 0},
                                {0}};
/* Z-Image, which calls all else as diffusers does. */
static const pair zimage_block[] = {{"attention.to_q", "attention.qkv", 0, 1, 3},
                                    {"attention.to_k", "attention.qkv", 1, 2, 3},
                                    {"attention.to_v", "attention.qkv", 2, 3, 3},
                                    {"attention.to_out.0", "attention.out", 0, 0, 0},
                                    {"attention.norm_q", "attention.q_norm", 0, 0, 0},
                                    {"attention.norm_k", "attention.k_norm", 0, 0, 0},
                                    {0}};
static const pair zimage_rest[] = {
    {"all_x_embedder.2-1", "x_embedder", 0, 0, 0}, {"all_final_layer.2-1", "final_layer", 0, 0, 0}, {0}};
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

/* A block's names: |form|, its number and |after| of diffusers, and |before|, the number and a point of the file. */
typedef struct block_form {
  rdna__checkpoint_kind kind;
  const char *form, *after, *before;
  const pair *pairs;
} block_form;

static const block_form forms[] = {{CHECKPOINT_FLUX, "transformer_blocks.", ".", "double_blocks.", flux_double},
                                   {CHECKPOINT_FLUX, "single_transformer_blocks.", ".", "single_blocks.", flux_single},
                                   {CHECKPOINT_SD3, "transformer_blocks.", ".", "joint_blocks.", sd3_block},
                                   {CHECKPOINT_ZIMAGE, "layers.", ".", "layers.", zimage_block},
                                   {CHECKPOINT_ZIMAGE, "noise_refiner.", ".", "noise_refiner.", zimage_block},
                                   {CHECKPOINT_ZIMAGE, "context_refiner.", ".", "context_refiner.", zimage_block},
                                   {CHECKPOINT_T5_GGUF, "encoder.block.", ".layer.", "enc.blk.", t5_layer}};
static const pair *const rests[] = {[CHECKPOINT_FLUX] = flux_rest,
                                    [CHECKPOINT_SD3] = sd3_rest,
                                    [CHECKPOINT_ZIMAGE] = zimage_rest,
                                    [CHECKPOINT_T5_GGUF] = t5_rest};

/* Of a block: |before| (size) becomes the file's beginning, and |*name| what is behind diffusers'. */
static const pair *find_in_block(rdna__checkpoint_kind kind, const char **name, char *before, size_t size) {
  for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
    const block_form *f = &forms[k];
    size_t length = strlen(f->form), after = strlen(f->after);
    int i = 0, end = 0;
    if (f->kind != kind || strncmp(*name, f->form, length) != 0) continue;
    const char *number = *name + length;
    if (sscanf(number, "%4d%n", &i, &end) != 1 || strncmp(number + end, f->after, after) != 0) continue;
    const pair *found = find(f->pairs, number + (size_t)end + after);
    if (!found) return NULL;
    snprintf(before, size, "%s%d.", f->before, i);
    *name = number + (size_t)end + after;
    return found;
  }
  return NULL;
}

bool rdna__checkpoint_flow_name(rdna__checkpoint_kind kind, const char *name, char *out, size_t size, int *out_first,
                                int *out_end, int *out_parts) {
  static const pair same = {"", "", 0, 1, 1};
  bool all = kind == CHECKPOINT_T5 || kind == CHECKPOINT_DIFFUSERS;
  char before[64] = "";
  const pair *found = all ? &same : find(rests[kind], name);
  if (!found) found = find_in_block(kind, &name, before, sizeof before);
  if (!found && kind == CHECKPOINT_ZIMAGE) found = &same;
  if (!found) return false;
  *out_first = found->parts ? found->first : 0;
  *out_end = found->parts ? found->end : 1;
  *out_parts = found->parts ? found->parts : 1;
  return snprintf(out, size, "%s%s%s", before, found->file, name + strlen(found->diffusers)) < (int)size;
}
