/* Gemma 4 (Gemma Team, 2026): two kinds of layers, with a window and without, which differ in the size of heads, in how
 * many key heads there are and in rotary positions; the last layers read the caches of earlier ones; small models have
 * a vector for each token and layer, larger ones experts beside the feed-forward block. */
#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "model/llm/arch/arch.h"

static rdna_status keys(rdna_llm *llm) {
  const rdna__weights *w = &llm->weights;
  double of_windows;
  int rotated = 0, whole;
  RDNA_TRY(rdna__arch_keys(llm));
  llm->decoder.embedding_scale = (float)sqrt(llm->info.width);
  RDNA_TRY(rdna__key_number_or_none(w, "final_logit_softcapping", &llm->decoder.logit_softcap));
  RDNA_TRY(rdna__arch_window(llm));
  RDNA_TRY(rdna__arch_period(llm, 6));
  RDNA_TRY(rdna__key_count_or_none(w, "embedding_length_per_layer_input", &llm->decoder.injected));
  RDNA_TRY(rdna__arch_rope(llm, RDNA_ROPE_LAYOUT_HALVES));
  RDNA_TRY(rdna__key_number(w, "rope.freq_base_swa", 10000, &of_windows));
  RDNA_TRY(rdna__key_count(w, "attention.key_length_swa", llm->info.head_dim, &whole));
  RDNA_TRY(rdna__key_count(w, "rope.dimension_count_swa", whole, &rotated));
  if (rotated > whole || rotated % 2 != 0)
    return rdna__fail(RDNA_BAD_DATA, "%s.rope.dimension_count_swa is %d; it must be even and at most the head's %d",
                      w->architecture, rotated, whole);
  return rdna__arch_rope_of_windows(llm, of_windows, rotated);
}

/* The vectors of all layers, loaded with the first. */
static rdna_status load_injected(rdna_llm *llm) {
  rdna__weights *w = &llm->weights;
  rdna__nn_decoder *d = &llm->decoder;
  int64_t columns = (int64_t)llm->info.layers * d->injected;
  RDNA_TRY(rdna__load_table(w, "per_layer_token_embd.weight", llm->info.vocabulary, columns, &d->injected_embedding));
  RDNA_TRY(rdna__load_linear(w, "per_layer_model_proj", columns, llm->info.width, &d->injected_projection));
  return rdna__load_vector(w, "per_layer_proj_norm.weight", d->injected, &d->injected_norm);
}

static rdna_status load_injection(rdna_llm *llm, int index, rdna__nn_injection *injection) {
  int64_t width = llm->info.width, size = llm->decoder.injected;
  const rdna__part parts[] = {{"inp_gate", &injection->gate, size, width, true},
                              {"proj", &injection->out, width, size, true}};
  if (index == 0) RDNA_TRY(load_injected(llm));
  RDNA_TRY(rdna__load_parts(&llm->weights, index, parts, 1, NULL, NULL));
  RDNA_TRY(rdna__load_parts(&llm->weights, index, parts + 1, 1, NULL, NULL));
  return rdna__load_layer_vector(&llm->weights, index, "post_norm.weight", width, &injection->norm);
}

/* The last layer before those that share whose window is as this one's. */
static int source_of(const rdna_llm *llm, int index, int first_shared) {
  int source = first_shared - 1;
  while (source > 0 && rdna__arch_is_windowed(llm, source) != rdna__arch_is_windowed(llm, index)) source--;
  return source;
}

/* Files may have what makes keys and values of layers that read those of others. */
static rdna_status leave_keys(const rdna__weights *w, int index) {
  static const char *const names[] = {"attn_k.weight", "attn_v.weight", "attn_k_norm.weight"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) RDNA_TRY(rdna__leave_unread(w, index, names[i]));
  return RDNA_OK;
}

static rdna_status load_attention(rdna_llm *llm, int index, rdna__nn_layer *l) {
  rdna__weights *w = &llm->weights;
  rdna__nn_attention *a = &l->attention;
  bool windowed = rdna__arch_is_windowed(llm, index);
  int shared, layers = llm->info.layers;
  RDNA_TRY(rdna__key_count_or_none(w, "attention.shared_kv_layers", &shared));
  a->scale = 1;
  a->rotation = &llm->rotations[windowed];
  if (windowed) RDNA_TRY(rdna__key_count(w, "attention.key_length_swa", a->head_dim, &a->head_dim));
  a->shares_cache = shared > 0 && shared < layers && index >= layers - shared;
  int64_t queries = (int64_t)a->heads * a->head_dim, key_rows = (int64_t)a->kv_heads * a->head_dim;
  int64_t width = llm->info.width;
  const rdna__part parts[] = {{"attn_q", &a->q, queries, width, false},
                              {"attn_k", &a->k, key_rows, width, false},
                              {"attn_v", &a->v, key_rows, width, false}};
  const rdna__part output = {"attn_output", &a->output, width, queries, true};
  bool has_values = rdna__has_in_layer(w, index, "attn_v.weight");
  int count = a->shares_cache ? 1 : has_values ? 3 : 2;
  RDNA_TRY(rdna__load_parts(w, index, parts, count, NULL, count == 3 ? &a->qkv : NULL));
  RDNA_TRY(rdna__load_parts(w, index, &output, 1, NULL, NULL));
  RDNA_TRY(rdna__load_layer_vector(w, index, "attn_q_norm.weight", a->head_dim, &a->q_norm));
  if (a->shares_cache) {
    int owner = source_of(llm, index, layers - shared);
    if (owner < llm->decoder.first)
      return rdna__fail(RDNA_UNSUPPORTED,
                        "layer %d reads the cache of layer %d, so that either both are the host's or none: leave it at "
                        "most %d layers, or all %d",
                        index, owner, owner, layers);
    const rdna__nn_layer *source = &llm->decoder.layers[owner];
    const rdna__nn_attention *of = &source->attention;
    if (of->window != a->window || of->kv_heads != a->kv_heads || of->head_dim != a->head_dim)
      return rdna__fail(RDNA_BAD_DATA,
                        "layer %d shares the cache of an earlier one, but none has %d key heads of %d "
                        "values and a window of %d",
                        index, a->kv_heads, a->head_dim, a->window);
    l->cache = source->cache;
    return leave_keys(w, index);
  }
  RDNA_TRY(rdna__load_layer_vector(w, index, "attn_k_norm.weight", a->head_dim, &a->k_norm));
  return rdna__arch_constant(llm, 1, a->head_dim, &a->v_norm); /* values are normed without a weight */
}

static rdna_status load_experts(rdna_llm *llm, int index, rdna__nn_moe *moe) {
  rdna__weights *w = &llm->weights;
  int64_t width = llm->info.width;
  float *scales;
  *moe = (rdna__nn_moe){.score = RDNA_MOE_SCORE_SOFTMAX,
                        .normalised = true,
                        .scale = 1,
                        .activation = RDNA__NN_GATE_GELU_TANH,
                        .wide = true};
  RDNA_TRY(rdna__arch_experts(llm, index, moe));
  RDNA_TRY(rdna__load_layer_vector(w, index, "post_ffw_norm_1.weight", width, &moe->ffn_post_norm));
  RDNA_TRY(rdna__load_layer_vector(w, index, "post_ffw_norm_2.weight", width, &moe->post_norm));
  RDNA_TRY(rdna__load_layer_vector(w, index, "pre_ffw_norm_2.weight", width, &moe->norm));
  /* the router reads a norm without a weight, divided by the root of the width, times this */
  RDNA_TRY(rdna__read_layer_values(w, index, "ffn_gate_inp.scale", 1, &width, &scales));
  for (int64_t i = 0; i < width; i++) scales[i] /= (float)sqrt((double)width);
  rdna_status status = rdna__put_vector(w, scales, width, &moe->router_norm);
  free(scales);
  return status;
}

static rdna_status layer(rdna_llm *llm, int index, rdna__nn_layer *l) {
  rdna__weights *w = &llm->weights;
  int experts;
  float *scale;
  RDNA_TRY(load_attention(llm, index, l));
  RDNA_TRY(rdna__arch_ffn(llm, index, &l->ffn, NULL));
  l->ffn.activation = RDNA__NN_GATE_GELU_TANH;
  l->ffn.wide = true;
  RDNA_TRY(rdna__arch_norms(llm, index, l));
  RDNA_TRY(rdna__arch_post_norms(llm, index, l));
  RDNA_TRY(rdna__key_count_or_none(w, "expert_count", &experts));
  if (experts > 0) RDNA_TRY(load_experts(llm, index, &l->moe));
  if (llm->decoder.injected) RDNA_TRY(load_injection(llm, index, &l->injection));
  if (!rdna__has_in_layer(w, index, "layer_output_scale.weight")) return RDNA_OK;
  RDNA_TRY(rdna__read_layer_values(w, index, "layer_output_scale.weight", 1, (int64_t[]){1}, &scale));
  l->output_scale = *scale;
  free(scale);
  return RDNA_OK;
}

const rdna__llm_arch rdna__arch_gemma4 = {"gemma4", keys, layer};
