/* Architectures: how each family of models calls its keys and tensors, and what its layers are.
 *
 * An architecture is one file of this folder, with one struct of hooks, and a row in archs.c; its name stands nowhere
 * else. It fills the structs of model/nn/nn.h; what most families share is in common.c and rotation.c. */
#ifndef RDNA_MODEL_ARCH_H
#define RDNA_MODEL_ARCH_H

#include "model/llm/llm.h"

typedef struct rdna__llm_arch {
  const char *name; /* general.architecture in files */
  /* Reads keys: fills llm->info, config and rotations, and llm->decoder but for its layers. */
  rdna_status (*keys)(rdna_llm *llm);
  /* Fills layer |index|, whose sizes and rotation are set as all layers have them, and loads its tensors. */
  rdna_status (*layer)(rdna_llm *llm, int index, rdna__nn_layer *layer);
} rdna__llm_arch;

/* The architecture of that name. RDNA_UNSUPPORTED: none, with the names of those that are there. */
rdna_status rdna__llm_arch_find(rdna_text name, const rdna__llm_arch **out_arch);

/* ---- common.c ---- */

/* The keys that most architectures have, and the table of the embedding's size. */
rdna_status rdna__arch_keys(rdna_llm *llm);
/* The same where norms are LayerNorm. */
rdna_status rdna__arch_layer_norm_keys(rdna_llm *llm);
/* The width of a layer's feed-forward block; that of an expert where the file has no other. */
rdna_status rdna__arch_hidden(const rdna__weights *w, int layer, int *out);
/* The window of some layers into config.window; 0 where the file has none. */
rdna_status rdna__arch_window(rdna_llm *llm);
/* Which layers have it, into config: as "sliding_window_pattern" of the file says, or all of |period| but the last. */
rdna_status rdna__arch_period(rdna_llm *llm, int period);
bool rdna__arch_is_windowed(const rdna_llm *llm, int index);
/* attn_q, attn_k, attn_v (or attn_qkv) and attn_output, and q's and k's norms where the file has them. */
rdna_status rdna__arch_attention(rdna_llm *llm, int index, rdna__nn_attention *attention);
/* That those norms were there. */
rdna_status rdna__arch_has_head_norms(const rdna_llm *llm, int index, const rdna__nn_attention *attention);
/* The factor of scores, where the file has one. */
rdna_status rdna__arch_scale(const rdna_llm *llm, rdna__nn_attention *attention);
/* ffn_gate, ffn_up and ffn_down; gate and up as one where the file has a matrix |joined|, unless that is NULL. */
rdna_status rdna__arch_ffn(rdna_llm *llm, int index, rdna__nn_ffn *ffn, const char *joined);
/* ffn_up and ffn_down alone. */
rdna_status rdna__arch_plain_ffn(rdna_llm *llm, int index, rdna__nn_ffn *ffn);
/* The mixture of experts of layer |index|, by the keys expert_*: |moe| holds the score, whether weights are normalised,
 * the activation, and a scale of 1 or another. */
rdna_status rdna__arch_experts(rdna_llm *llm, int index, rdna__nn_moe *moe);
/* A vector of |count| times |value|. */
rdna_status rdna__arch_constant(rdna_llm *llm, float value, int64_t count, rdna_tensor *out);
/* The experts of layer |index| as the files of many families have them: softmax, weights that are normalised. */
rdna_status rdna__arch_softmax_experts(rdna_llm *llm, int index, rdna__nn_moe *moe);
/* Experts as DeepSeek has them, with another feed-forward block in the first layers: |gating| is GGUF's
 * expert_gating_func where the file has none, 1 softmax or 2 sigmoid. */
enum { RDNA__ARCH_SOFTMAX = 1, RDNA__ARCH_SIGMOID = 2 };
rdna_status rdna__arch_dense_or_experts(rdna_llm *llm, int index, rdna__nn_layer *layer, int gating);
/* blk.|index|.|name| as a norm of what goes into a block, and the norm behind the last layer. */
rdna_status rdna__arch_norm(rdna_llm *llm, int index, const char *name, rdna__nn_norm *norm);
rdna_status rdna__arch_output_norm(rdna_llm *llm);
/* |name| as a norm that is no layer's. */
rdna_status rdna__arch_global_norm(rdna_llm *llm, const char *name, rdna__nn_norm *norm);
/* attn_norm and ffn_norm. */
rdna_status rdna__arch_norms(rdna_llm *llm, int index, rdna__nn_layer *layer);
/* attn_norm, and the norm before the feed-forward block, which some files call post_attention_norm. */
rdna_status rdna__arch_norms_by_other_names(rdna_llm *llm, int index, rdna__nn_layer *layer);
/* post_attention_norm and post_ffw_norm. */
rdna_status rdna__arch_post_norms(rdna_llm *llm, int index, rdna__nn_layer *layer);
/* attn_norm, ffn_norm, rdna__arch_attention and rdna__arch_ffn: a layer of Llama. */
rdna_status rdna__arch_layer(rdna_llm *llm, int index, rdna__nn_layer *layer);
/* The same with rdna__arch_softmax_experts in place of rdna__arch_ffn. */
rdna_status rdna__arch_expert_layer(rdna_llm *llm, int index, rdna__nn_layer *layer);

/* ---- rotation.c ---- */

/* What the file says of how frequencies are stretched for texts longer than those of the training. */
typedef struct rdna__rope_scaling {
  enum { RDNA__ROPE_PLAIN, RDNA__ROPE_LINEAR, RDNA__ROPE_YARN } kind;
  double factor;
  double original; /* tokens that it was trained for before, of YaRN */
  double ext_factor, attention_factor, beta_fast, beta_slow;
  float log_multiplier;
  bool unrounded; /* the ends of YaRN's ramp are not rounded to whole pairs */
} rdna__rope_scaling;
rdna_status rdna__arch_scaling(const rdna_llm *llm, rdna__rope_scaling *out_scaling);
/* Frequencies of config.rotated values a head, by the file's own factor for each pair too ("rope_freqs.weight", Llama
 * 3's scaling). */
rdna_status rdna__arch_rotation(rdna_llm *llm, double base, rdna_rope_layout layout, const rdna__rope_scaling *scaling,
                                rdna__nn_rotation *out_rotation);
/* The same plain, divided by |factors| (rotated / 2); NULL: by nothing. */
rdna_status rdna__arch_rotation_by(rdna_llm *llm, double base, const float *factors, rdna_tensor *out_inv_freq);
/* Rotation number 1, over halves, plain, of |rotated| values a head: that of layers with a window. */
rdna_status rdna__arch_rope_of_windows(rdna_llm *llm, double base, int rotated);
/* How rotation number 0 turns tokens of pictures, where the file says it ("rope.dimension_sections", M-RoPE): the first
 * pairs by the picture's position, the next by the row and the last by the column; or |in_turn|, pair by pair. */
rdna_status rdna__arch_rope_in_pictures(rdna_llm *llm, bool in_turn);
/* Positions that turn nothing. */
rdna__nn_rotation rdna__arch_no_rotation(void);
/* Rotation number 0, which all layers have, as the file's keys say. */
rdna_status rdna__arch_rope(rdna_llm *llm, rdna_rope_layout layout);

#endif
