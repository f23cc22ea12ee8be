/* Keys and tensors that most architectures have. */
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "model/llm/arch/arch.h"

enum { LARGEST_LAYERS = 4096 };

rdna_status rdna__arch_hidden(const rdna__weights *w, int layer, int *out) {
  int experts, of_experts = 0;
  RDNA_TRY(rdna__key_count_or_none(w, "expert_count", &experts));
  if (experts > 0) RDNA_TRY(rdna__key_count_or_none(w, "expert_feed_forward_length", &of_experts));
  return rdna__key_count_of_layer(w, "feed_forward_length", layer, of_experts, out);
}

rdna_status rdna__arch_keys(rdna_llm *llm) {
  rdna_llm_info *info = &llm->info;
  const rdna__weights *w = &llm->weights;
  int foretelling; /* layers at the end that foretell tokens further ahead, which are left out */
  RDNA_TRY(rdna__key_count(w, "block_count", 0, &info->layers));
  RDNA_TRY(rdna__key_count_or_none(w, "nextn_predict_layers", &foretelling));
  info->layers -= foretelling;
  if (info->layers < 1)
    return rdna__fail(RDNA_BAD_DATA, "%s has no layers but %d that foretell tokens further ahead", w->architecture,
                      foretelling);
  if (info->layers > LARGEST_LAYERS)
    return rdna__fail(RDNA_BAD_DATA, "%s.block_count is %d; at most %d makes sense", w->architecture, info->layers,
                      LARGEST_LAYERS);
  RDNA_TRY(rdna__key_count(w, "embedding_length", 0, &info->width));
  RDNA_TRY(rdna__arch_hidden(w, 0, &info->hidden));
  RDNA_TRY(rdna__key_count(w, "context_length", 0, &info->context));
  RDNA_TRY(rdna__key_count(w, "attention.head_count", 0, &info->heads));
  RDNA_TRY(rdna__key_count_of_layer(w, "attention.head_count_kv", 0, info->heads, &info->kv_heads));
  RDNA_TRY(rdna__key_count(w, "attention.key_length", info->width / info->heads, &info->head_dim));
  RDNA_TRY(rdna__table_rows(w, "token_embd.weight", &info->vocabulary));
  rdna__nn_decoder *decoder = &llm->decoder;
  RDNA_TRY(rdna__key_number(w, "attention.layer_norm_rms_epsilon", 1e-5, &decoder->norm_epsilon));
  RDNA_TRY(rdna__key_number(w, "rope.freq_base", 10000.0, &llm->config.rope_base));
  RDNA_TRY(rdna__key_count(w, "rope.dimension_count", info->head_dim, &llm->config.rotated));
  if (llm->config.rotated > info->head_dim || llm->config.rotated % 2 != 0)
    return rdna__fail(RDNA_BAD_DATA, "%s.rope.dimension_count is %d; it must be even and at most the head's %d",
                      w->architecture, llm->config.rotated, info->head_dim);
  decoder->embedding_scale = decoder->residual_scale = decoder->logit_scale = 1;
  return RDNA_OK;
}

rdna_status rdna__arch_layer_norm_keys(rdna_llm *llm) {
  RDNA_TRY(rdna__arch_keys(llm));
  llm->decoder.layer_norm = true;
  return rdna__key_number(&llm->weights, "attention.layer_norm_epsilon", 1e-5, &llm->decoder.norm_epsilon);
}

rdna_status rdna__arch_window(rdna_llm *llm) {
  double window; /* some files have the largest number there is for none */
  RDNA_TRY(rdna__key_number(&llm->weights, "attention.sliding_window", 2.0 * RDNA__LARGEST_COUNT, &window));
  llm->config.window = window > RDNA__LARGEST_COUNT ? 0 : (int)window;
  return RDNA_OK;
}

rdna_status rdna__arch_period(rdna_llm *llm, int period) {
  const char key[] = "attention.sliding_window_pattern";
  if (!rdna__key_is_array(&llm->weights, key)) return rdna__key_count(&llm->weights, key, period, &llm->config.period);
  llm->config.windowed = calloc((size_t)llm->info.layers, sizeof *llm->config.windowed);
  if (!llm->config.windowed) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the pattern of windows");
  return rdna__key_array(&llm->weights, key, llm->info.layers, llm->config.windowed);
}

bool rdna__arch_is_windowed(const rdna_llm *llm, int index) {
  int period = llm->config.period;
  if (llm->config.windowed && !llm->config.windowed[index]) return false;
  return llm->config.window > 0 && (period == 0 || index % period < period - 1);
}

/* q's or k's norm, of each head or of all |heads| as one row. */
static rdna_status head_norm(rdna_llm *llm, int index, const char *name, int heads, rdna_tensor *out) {
  rdna__weights *w = &llm->weights;
  if (!rdna__has_in_layer(w, index, name)) return RDNA_OK;
  int64_t one = llm->info.head_dim, all = heads * one;
  bool of_all = rdna__is_vector_in_layer(w, index, name, all);
  return rdna__load_layer_vector(w, index, name, of_all ? all : one, out);
}

rdna_status rdna__arch_attention(rdna_llm *llm, int index, rdna__nn_attention *a) {
  int64_t queries = (int64_t)a->heads * a->head_dim, keys = (int64_t)a->kv_heads * a->head_dim;
  int64_t width = llm->info.width;
  int value_dim;
  RDNA_TRY(rdna__key_count(&llm->weights, "attention.value_length", a->head_dim, &value_dim));
  if (value_dim != a->head_dim)
    return rdna__fail(RDNA_UNSUPPORTED, "keys have %d values a head and values %d; this library needs them equal",
                      a->head_dim, value_dim);
  if (a->head_dim % 4 != 0)
    return rdna__fail(RDNA_UNSUPPORTED, "heads have %d values; this library needs a multiple of 4", a->head_dim);
  const rdna__part parts[] = {{"attn_q", &a->q, (a->gated ? 2 : 1) * queries, width, false},
                              {"attn_k", &a->k, keys, width, false},
                              {"attn_v", &a->v, keys, width, false}};
  const rdna__part output = {"attn_output", &a->output, width, queries, true};
  bool whole; /* else v may be of another type than the others, as in mixtures of types */
  RDNA_TRY(rdna__parts_join(&llm->weights, index, parts, 3, "attn_qkv", &whole));
  RDNA_TRY(rdna__load_parts(&llm->weights, index, parts, whole ? 3 : 2, whole ? "attn_qkv" : NULL,
                            whole ? &a->qkv : &a->qk));
  if (!whole) RDNA_TRY(rdna__load_parts(&llm->weights, index, &parts[2], 1, NULL, NULL));
  RDNA_TRY(rdna__load_parts(&llm->weights, index, &output, 1, NULL, NULL));
  RDNA_TRY(head_norm(llm, index, "attn_q_norm.weight", a->heads, &a->q_norm));
  return head_norm(llm, index, "attn_k_norm.weight", a->kv_heads, &a->k_norm);
}

rdna_status rdna__arch_has_head_norms(const rdna_llm *llm, int index, const rdna__nn_attention *a) {
  if (a->q_norm.data && a->k_norm.data) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "the model file has no tensor 'blk.%d.attn_%s_norm.weight'", index,
                    a->q_norm.data ? "k" : "q");
}

rdna_status rdna__arch_scale(const rdna_llm *llm, rdna__nn_attention *a) {
  double scale;
  RDNA_TRY(rdna__key_number(&llm->weights, "attention.scale", (double)a->scale, &scale));
  a->scale = (float)scale;
  return RDNA_OK;
}

rdna_status rdna__arch_ffn(rdna_llm *llm, int index, rdna__nn_ffn *ffn, const char *joined) {
  int64_t width = llm->info.width, hidden = ffn->hidden;
  const rdna__part parts[] = {{"ffn_gate", &ffn->gate, hidden, width, true}, {"ffn_up", &ffn->up, hidden, width, true}};
  const rdna__part down = {"ffn_down", &ffn->down, width, hidden, true};
  RDNA_TRY(rdna__load_parts(&llm->weights, index, parts, 2, joined, &ffn->gate_up));
  return rdna__load_parts(&llm->weights, index, &down, 1, NULL, NULL);
}

rdna_status rdna__arch_plain_ffn(rdna_llm *llm, int index, rdna__nn_ffn *ffn) {
  const rdna__part up = {"ffn_up", &ffn->up, ffn->hidden, llm->info.width, true};
  const rdna__part down = {"ffn_down", &ffn->down, llm->info.width, ffn->hidden, true};
  RDNA_TRY(rdna__load_parts(&llm->weights, index, &up, 1, NULL, NULL));
  return rdna__load_parts(&llm->weights, index, &down, 1, NULL, NULL);
}

rdna_status rdna__arch_constant(rdna_llm *llm, float value, int64_t count, rdna_tensor *out) {
  float *values = malloc((size_t)count * sizeof *values);
  if (!values) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %lld values", (long long)count);
  for (int64_t i = 0; i < count; i++) values[i] = value;
  rdna_status status = rdna__put_vector(&llm->weights, values, count, out);
  free(values);
  return status;
}

/* NAME.weight, and of LayerNorm NAME.bias where the file has it. */
rdna_status rdna__arch_global_norm(rdna_llm *llm, const char *name, rdna__nn_norm *norm) {
  char full[96];
  snprintf(full, sizeof full, "%s.weight", name);
  RDNA_TRY(rdna__load_vector(&llm->weights, full, llm->info.width, &norm->weight));
  snprintf(full, sizeof full, "%s.bias", name);
  if (!llm->decoder.layer_norm || !rdna_gguf_has_tensor(llm->weights.file, full)) return RDNA_OK;
  return rdna__load_vector(&llm->weights, full, llm->info.width, &norm->bias);
}

rdna_status rdna__arch_norm(rdna_llm *llm, int index, const char *name, rdna__nn_norm *norm) {
  char full[96];
  snprintf(full, sizeof full, "blk.%d.%s", index, name);
  return rdna__arch_global_norm(llm, full, norm);
}

rdna_status rdna__arch_output_norm(rdna_llm *llm) {
  const rdna_gguf *file = llm->weights.file;
  if (llm->decoder.post_norm)
    return rdna__arch_norm(llm, llm->info.layers - 1, "layer_output_norm", &llm->decoder.output_norm);
  bool other =
      !rdna_gguf_has_tensor(file, "output_norm.weight") && rdna_gguf_has_tensor(file, "token_embd_norm.weight");
  return rdna__arch_global_norm(llm, other ? "token_embd_norm" : "output_norm",
                                &llm->decoder.output_norm); /* LFM2 calls it so */
}

rdna_status rdna__arch_norms(rdna_llm *llm, int index, rdna__nn_layer *layer) {
  RDNA_TRY(rdna__arch_norm(llm, index, "attn_norm", &layer->attention_norm));
  return rdna__arch_norm(llm, index, "ffn_norm", &layer->ffn_norm);
}

rdna_status rdna__arch_norms_by_other_names(rdna_llm *llm, int index, rdna__nn_layer *layer) {
  RDNA_TRY(rdna__arch_norm(llm, index, "attn_norm", &layer->attention_norm));
  return rdna__arch_norm(llm, index, "post_attention_norm", &layer->ffn_norm);
}

rdna_status rdna__arch_post_norms(rdna_llm *llm, int index, rdna__nn_layer *layer) {
  rdna__weights *w = &llm->weights;
  int width = llm->info.width;
  RDNA_TRY(rdna__load_layer_vector(w, index, "post_attention_norm.weight", width, &layer->attention_post_norm));
  return rdna__load_layer_vector(w, index, "post_ffw_norm.weight", width, &layer->ffn_post_norm);
}

rdna_status rdna__arch_layer(rdna_llm *llm, int index, rdna__nn_layer *layer) {
  RDNA_TRY(rdna__arch_attention(llm, index, &layer->attention));
  RDNA_TRY(rdna__arch_ffn(llm, index, &layer->ffn, NULL));
  return rdna__arch_norms(llm, index, layer);
}

rdna_status rdna__arch_expert_layer(rdna_llm *llm, int index, rdna__nn_layer *layer) {
  RDNA_TRY(rdna__arch_attention(llm, index, &layer->attention));
  RDNA_TRY(rdna__arch_softmax_experts(llm, index, &layer->moe));
  return rdna__arch_norms(llm, index, layer);
}
