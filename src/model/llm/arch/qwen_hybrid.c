/* Qwen3-Next and Qwen3.5 (Qwen team, 2025, 2026), dense and with experts: three layers of four are Gated DeltaNet, the
 * fourth is attention with a gate on what it has seen, and rotary positions in a part of each head. */
#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "model/llm/arch/arch.h"

static rdna_status keys(rdna_llm *llm) {
  RDNA_TRY(rdna__arch_keys(llm));
  return rdna__arch_rope(llm, RDNA_ROPE_LAYOUT_HALVES);
}

/* Those that see pictures have three positions a token, which are one and the same for text. */
static rdna_status seeing_keys(rdna_llm *llm) {
  RDNA_TRY(keys(llm));
  return rdna__arch_rope_in_pictures(llm, true);
}

/* The file says of each layer whether it is recurrent, or of which interval the last is not. */
static rdna_status is_recurrent(const rdna_llm *llm, int index, bool *out) {
  const rdna__weights *w = &llm->weights;
  int interval;
  if (rdna__key_is_array(w, "attention.recurrent_layers")) {
    int32_t *layers = malloc((size_t)(index + 1) * sizeof *layers);
    if (!layers) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the kinds of layers");
    rdna_status status = rdna__key_array(w, "attention.recurrent_layers", index + 1, layers);
    *out = status == RDNA_OK && layers[index];
    free(layers);
    return status;
  }
  RDNA_TRY(rdna__key_count(w, "full_attention_interval", 4, &interval));
  *out = (index + 1) % interval != 0;
  return RDNA_OK;
}

static rdna_status read_sizes(const rdna_llm *llm, rdna__nn_recurrent *r) {
  const rdna__weights *w = &llm->weights;
  int inner;
  RDNA_TRY(rdna__key_count(w, "ssm.conv_kernel", 0, &r->width));
  RDNA_TRY(rdna__key_count(w, "ssm.state_size", 0, &r->k_dim));
  RDNA_TRY(rdna__key_count(w, "ssm.group_count", 0, &r->k_heads));
  RDNA_TRY(rdna__key_count(w, "ssm.time_step_rank", 0, &r->v_heads));
  RDNA_TRY(rdna__key_count(w, "ssm.inner_size", 0, &inner));
  if (r->v_heads % r->k_heads != 0 || inner % r->v_heads != 0)
    return rdna__fail(RDNA_BAD_DATA,
                      "%s has %d value heads for %d key heads, and %d values in them; each must divide "
                      "the next",
                      w->architecture, r->v_heads, r->k_heads, inner);
  r->v_dim = inner / r->v_heads;
  r->scale = (float)(1 / sqrt(r->k_dim));
  return RDNA_OK;
}

static rdna_status load_matrix(rdna_llm *llm, int index, const char *name, rdna__matrix_weights *matrix, int64_t rows,
                               int64_t columns) {
  const rdna__part part = {name, matrix, rows, columns, true};
  return rdna__load_parts(&llm->weights, index, &part, 1, NULL, NULL);
}

static rdna_status load_recurrent(rdna_llm *llm, int index, bool tiled, rdna__nn_recurrent *r) {
  rdna__weights *w = &llm->weights;
  int64_t width = llm->info.width, heads;
  r->tiled = tiled;
  RDNA_TRY(read_sizes(llm, r));
  heads = r->v_heads;
  int64_t values = heads * r->v_dim, channels = rdna__nn_recurrent_channels(r);
  if (rdna__has_in_layer(w, index, "ssm_in.weight")) {
    RDNA_TRY(load_matrix(llm, index, "ssm_in", &r->together, channels + values, width));
  } else {
    RDNA_TRY(load_matrix(llm, index, "attn_qkv", &r->qkv, channels, width));
    RDNA_TRY(load_matrix(llm, index, "attn_gate", &r->z, values, width));
  }
  if (rdna__has_in_layer(w, index, "ssm_ba.weight")) {
    RDNA_TRY(load_matrix(llm, index, "ssm_ba", &r->ba, 2 * heads, width));
  } else {
    RDNA_TRY(load_matrix(llm, index, "ssm_beta", &r->b, heads, width));
    RDNA_TRY(load_matrix(llm, index, "ssm_alpha", &r->a, heads, width));
  }
  RDNA_TRY(load_matrix(llm, index, "ssm_out", &r->output, width, values));
  RDNA_TRY(rdna__load_layer_values(w, index, "ssm_conv1d.weight", channels, r->width, &r->convolution));
  RDNA_TRY(rdna__load_layer_vector(w, index, "ssm_a", heads, &r->rate));
  const char *dt = rdna__has_in_layer(w, index, "ssm_dt") ? "ssm_dt" : "ssm_dt.bias";
  RDNA_TRY(rdna__load_layer_vector(w, index, dt, heads, &r->dt));
  return rdna__load_layer_vector(w, index, "ssm_norm.weight", r->v_dim, &r->norm);
}

static rdna_status layer(rdna_llm *llm, int index, rdna__nn_layer *l, bool tiled) {
  int experts;
  bool recurrent = false;
  RDNA_TRY(is_recurrent(llm, index, &recurrent));
  if (recurrent) {
    RDNA_TRY(load_recurrent(llm, index, tiled, &l->recurrent));
  } else {
    l->attention.gated = true;
    RDNA_TRY(rdna__arch_scale(llm, &l->attention));
    RDNA_TRY(rdna__arch_attention(llm, index, &l->attention));
    RDNA_TRY(rdna__arch_has_head_norms(llm, index, &l->attention));
  }
  RDNA_TRY(rdna__arch_norms_by_other_names(llm, index, l));
  RDNA_TRY(rdna__key_count_or_none(&llm->weights, "expert_count", &experts));
  if (experts == 0) return rdna__arch_ffn(llm, index, &l->ffn, NULL);
  return rdna__arch_softmax_experts(llm, index, &l->moe);
}

static rdna_status grouped(rdna_llm *llm, int index, rdna__nn_layer *l) { return layer(llm, index, l, false); }
static rdna_status tiled(rdna_llm *llm, int index, rdna__nn_layer *l) { return layer(llm, index, l, true); }

const rdna__llm_arch rdna__arch_qwen3next = {"qwen3next", keys, grouped};
const rdna__llm_arch rdna__arch_qwen35 = {"qwen35", seeing_keys, tiled};
const rdna__llm_arch rdna__arch_qwen35moe = {"qwen35moe", seeing_keys, tiled};
