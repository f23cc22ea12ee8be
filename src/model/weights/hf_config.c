#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/weights/hf.h"

enum { LARGEST_COUNT = 1 << 28, MOST_LAYERS = 10000, MOST_EXPERTS = 65536 };

/* ---- reading JSON ---- */

rdna_status rdna__hf_number(const json_t *object, const char *name, double initial, double *out) {
  const json_t *value = json_object_get(object, name);
  *out = initial;
  if (!value || json_is_null(value)) return RDNA_OK;
  if (!json_is_number(value)) return rdna__fail(RDNA_BAD_DATA, "'%s' is no number", name);
  *out = json_number_value(value);
  return RDNA_OK;
}

rdna_status rdna__hf_count(const json_t *object, const char *name, int64_t initial, int64_t *out) {
  const json_t *value = json_object_get(object, name);
  *out = initial;
  if (!value || json_is_null(value)) return RDNA_OK;
  *out = json_is_integer(value) ? json_integer_value(value) : -1;
  if (*out < 0 || *out > LARGEST_COUNT)
    return rdna__fail(RDNA_BAD_DATA, "'%s' is no whole number from 0 to %d", name, LARGEST_COUNT);
  return RDNA_OK;
}

/* A count from 1. */
static rdna_status read_count(const json_t *object, const char *name, int64_t initial, int64_t *out) {
  RDNA_TRY(rdna__hf_count(object, name, initial, out));
  return *out > 0 ? RDNA_OK : rdna__fail(RDNA_BAD_DATA, "'%s' is missing, or 0", name);
}

const char *rdna__hf_text(const json_t *object, const char *name, const char *initial) {
  const char *text = json_string_value(json_object_get(object, name));
  return text ? text : initial;
}

/* Text |index| of a list; "" when it is none. */
static const char *text_at(const json_t *list, int64_t index) {
  const char *text = json_string_value(json_array_get(list, (size_t)index));
  return text ? text : "";
}

bool rdna__hf_is_set(const json_t *object, const char *name) {
  const json_t *value = json_object_get(object, name);
  return value && !json_is_null(value);
}

/* ---- what is checked ---- */

static rdna_status check_activation(const rdna__hf_config *c) {
  const char *found =
      rdna__hf_text(c->json, "hidden_activation", rdna__hf_text(c->json, "hidden_act", c->architecture->activation));
  if (strcmp(found, c->architecture->activation) == 0) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "its activation is '%.40s'; models of this architecture have %s", found,
                    c->architecture->activation);
}

static rdna_status check_quantization(const json_t *json) {
  const json_t *quantization = json_object_get(json, "quantization_config");
  const char *method = rdna__hf_text(quantization, "quant_method", "of an unnamed method");
  if (!json_is_object(quantization) || strcmp(method, "mxfp4") == 0) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "its weights are quantized (%.40s); take the folder with f16 or bf16 weights",
                    method);
}

/* Which layers see a window only must be as the architecture has it, as GGUF has no key for it. */
static rdna_status check_windows(const rdna__hf_config *c) {
  const rdna__hf_architecture *a = c->architecture;
  const json_t *types = json_object_get(c->json, "layer_types");
  int64_t window, period;
  RDNA_TRY(rdna__hf_count(c->json, "sliding_window", 0, &window));
  period = a->window_period;
  if (!json_is_string(json_object_get(c->json, "sliding_window_pattern"))) /* EXAONE's, which lists layers too */
    RDNA_TRY(rdna__hf_count(c->json, "sliding_window_pattern", a->window_period, &period));
  if (a->window_period && !a->window_list && period != a->window_period)
    return rdna__fail(RDNA_UNSUPPORTED, "every layer of %lld sees all; of this architecture every layer of %d does",
                      (long long)period, a->window_period);
  if (!a->window && json_is_true(json_object_get(c->json, "use_sliding_window")))
    return rdna__fail(RDNA_UNSUPPORTED, "'use_sliding_window' is set, which GGUF cannot say of this architecture");
  for (int64_t i = 0; json_is_array(types) && !a->window_list && !a->recurrent && i < c->layers; i++) {
    const char *type = json_string_value(json_array_get(types, (size_t)i));
    bool windowed = a->window && window && (a->window_period == 0 || (i + 1) % a->window_period != 0);
    if (!type || strcmp(type, windowed ? "sliding_attention" : "full_attention") != 0)
      return rdna__fail(RDNA_UNSUPPORTED, "layer %lld has attention of type '%.40s', where GGUF's %s has %s",
                        (long long)i, type ? type : "", a->gguf, windowed ? "sliding_attention" : "full_attention");
  }
  return RDNA_OK;
}

/* DeepSeek's, where GGUF's reader has one way of several. */
static rdna_status check_latent(const rdna__hf_config *c) {
  int64_t groups, frequency;
  double scale, scale_all;
  const json_t *rope = rdna__hf_rope(c);
  RDNA_TRY(rdna__hf_count(c->json, "n_group", 1, &groups));
  RDNA_TRY(rdna__hf_count(c->json, "moe_layer_freq", 1, &frequency));
  RDNA_TRY(rdna__hf_number(rope, "mscale_all_dim", 0, &scale_all));
  RDNA_TRY(rdna__hf_number(rope, "mscale", scale_all, &scale));
  if (c->architecture->gating == 1 && groups > 1 &&
      strcmp(rdna__hf_text(c->json, "topk_method", "greedy"), "greedy") != 0)
    return rdna__fail(RDNA_UNSUPPORTED,
                      "it chooses groups of experts by their best one; this library has the sum of two");
  if (frequency != 1) return rdna__fail(RDNA_UNSUPPORTED, "not every layer behind the dense ones has experts");
  if (json_is_false(json_object_get(c->json, "rope_interleave")))
    return rdna__fail(RDNA_UNSUPPORTED,
                      "RoPE turns halves of its heads, where models of this architecture have neighbours");
  if (scale != scale_all)
    return rdna__fail(RDNA_UNSUPPORTED, "'mscale' and 'mscale_all_dim' of RoPE differ, %g and %g", scale, scale_all);
  return RDNA_OK;
}

/* Nomic's, whose published folders name what other models of its program are. */
static rdna_status check_rotary_encoder(const rdna__hf_config *c) {
  static const char *const others[] = {"prenorm",      "parallel_block", "rotary_emb_interleaved",
                                       "use_rms_norm", "causal",         "scale_attn_by_inverse_layer_idx"};
  const char *activation = rdna__hf_text(c->json, "activation_function", "swiglu");
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (json_is_true(json_object_get(c->json, others[i])))
      return rdna__fail(RDNA_UNSUPPORTED, "'%s' is set, which GGUF's %s has not", others[i], c->architecture->gguf);
  if (rdna__hf_is_set(c->json, "rotary_emb_scale_base"))
    return rdna__fail(RDNA_UNSUPPORTED, "'rotary_emb_scale_base' is set, which GGUF's %s has not",
                      c->architecture->gguf);
  if (strcmp(activation, "swiglu") != 0)
    return rdna__fail(RDNA_UNSUPPORTED, "its activation is '%.40s'; models of this architecture have swiglu",
                      activation);
  if (c->experts) return rdna__fail(RDNA_UNSUPPORTED, "it has experts, which GGUF's %s has not", c->architecture->gguf);
  if (!rdna__hf_is_set(c->json, "rope_theta") && !rdna__hf_is_set(rdna__hf_rope(c), "rope_theta"))
    return rdna__fail(RDNA_BAD_DATA, "it does not say the base of RoPE ('rope_theta')");
  return RDNA_OK;
}

/* BERT's, some of whose models see only what is before a token, or add positions to keys. */
static rdna_status check_encoder(const rdna__hf_config *c) {
  const char *positions = rdna__hf_text(c->json, "position_embedding_type", "absolute");
  if (strcmp(positions, "absolute") != 0)
    return rdna__fail(RDNA_UNSUPPORTED, "'position_embedding_type' is '%.40s', which GGUF's %s has not", positions,
                      c->architecture->gguf);
  if (json_is_true(json_object_get(c->json, "is_decoder")))
    return rdna__fail(RDNA_UNSUPPORTED, "'is_decoder' is set; GGUF's %s sees its whole text", c->architecture->gguf);
  return c->architecture->rotary ? check_rotary_encoder(c) : RDNA_OK;
}

/* Settings that some models of an architecture have and that would make others of them. */
static rdna_status check_others(const rdna__hf_config *c) {
  int64_t step;
  if (c->architecture->encoder) RDNA_TRY(check_encoder(c));
  RDNA_TRY(rdna__hf_count(c->json, "decoder_sparse_step", 1, &step));
  if (c->experts && (step != 1 || json_array_size(json_object_get(c->json, "mlp_only_layers"))))
    return rdna__fail(RDNA_UNSUPPORTED, "some of its layers have no experts; GGUF has them in all layers or in none");
  if (c->architecture->latent) RDNA_TRY(check_latent(c));
  if (json_is_true(json_object_get(c->json, "use_bidirectional_attention")))
    return rdna__fail(RDNA_UNSUPPORTED, "its tokens see those behind them; it writes no text");
  if (strcmp(c->architecture->gguf, "smollm3") != 0) return RDNA_OK;
  const json_t *rotated = json_object_get(c->json, "no_rope_layers"); /* 1: has RoPE */
  for (int64_t i = 0; json_is_array(rotated) && i < c->layers; i++)
    if (json_integer_value(json_array_get(rotated, (size_t)i)) != ((i + 1) % 4 != 0))
      return rdna__fail(RDNA_UNSUPPORTED, "layer %lld is no exception of RoPE, or is one; in GGUF every fourth is",
                        (long long)i);
  return RDNA_OK;
}

/* ---- reading ---- */

/* Sizes of latent attention. */
static rdna_status read_latent(rdna__hf_config *c) {
  RDNA_TRY(read_count(c->json, "kv_lora_rank", 0, &c->latent));
  RDNA_TRY(read_count(c->json, "qk_nope_head_dim", 0, &c->unrotated));
  RDNA_TRY(read_count(c->json, "qk_rope_head_dim", 0, &c->rotated));
  RDNA_TRY(read_count(c->json, "v_head_dim", 0, &c->value_dim));
  c->head_dim = c->unrotated + c->rotated;
  return RDNA_OK;
}

/* The number of dense layers before those with experts: said, or from a list of all. */
static rdna_status read_dense(rdna__hf_config *c) {
  const json_t *kinds = json_object_get(c->json, "mlp_layer_types");
  RDNA_TRY(read_count(c->json, "n_routed_experts", c->experts, &c->experts));
  RDNA_TRY(rdna__hf_count(c->json, "num_dense_layers", 0, &c->dense_layers)); /* LFM2's name */
  RDNA_TRY(rdna__hf_count(c->json, "first_k_dense_replace", c->dense_layers, &c->dense_layers));
  for (int64_t i = 0; json_is_array(kinds) && i < c->layers; i++) {
    const char *kind = json_string_value(json_array_get(kinds, (size_t)i));
    bool dense = kind && strcmp(kind, "dense") == 0;
    if (dense && c->dense_layers != i)
      return rdna__fail(RDNA_UNSUPPORTED, "layer %lld has no experts, but one before it has", (long long)i);
    c->dense_layers += dense;
  }
  return RDNA_OK;
}

/* Sizes of recurrent layers. */
static rdna_status read_recurrent(rdna__hf_config *c) {
  RDNA_TRY(read_count(c->json, "linear_num_key_heads", 0, &c->k_heads));
  RDNA_TRY(read_count(c->json, "linear_num_value_heads", 0, &c->v_heads));
  RDNA_TRY(read_count(c->json, "linear_key_head_dim", 0, &c->k_dim));
  RDNA_TRY(read_count(c->json, "linear_value_head_dim", 0, &c->v_dim));
  if (c->v_heads % c->k_heads == 0) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "%lld value heads cannot share %lld key heads evenly", (long long)c->v_heads,
                    (long long)c->k_heads);
}

bool rdna__hf_is_recurrent(const rdna__hf_config *c, int64_t layer) {
  const json_t *types = json_object_get(c->json, "layer_types");
  int64_t interval;
  if (!c->architecture->recurrent) return false;
  if (json_is_array(types))
    return strcmp(text_at(types, layer), c->architecture->delta ? "linear_attention" : "conv") == 0;
  if (rdna__hf_count(c->json, "full_attention_interval", 4, &interval) != RDNA_OK || interval < 1) interval = 4;
  return (layer + 1) % interval != 0;
}

/* Gemma 4's layers that see all may have heads of another size and number: said once for them, or of each layer. */
int64_t rdna__hf_of_layer(const rdna__hf_config *c, int64_t layer, const char *name, int64_t of_all) {
  char number[24], of_full[64];
  int64_t value = of_all;
  const json_t *types = json_object_get(c->json, "layer_types");
  snprintf(number, sizeof number, "%lld", (long long)layer);
  const json_t *own = json_object_get(json_object_get(c->json, "per_layer_config"), number);
  if (strcmp(text_at(types, layer), "full_attention") == 0) {
    bool heads = strcmp(name, "num_key_value_heads") == 0;
    snprintf(of_full, sizeof of_full, "%s", heads ? "num_global_key_value_heads" : "global_head_dim");
    if (rdna__hf_count(c->json, of_full, of_all, &value) != RDNA_OK) return -1;
  }
  return rdna__hf_count(own, name, value, &value) == RDNA_OK ? value : -1;
}

/* Head sizes of the layers that see all, which GGUF's keys without an end mean. */
static rdna_status read_global_head(rdna__hf_config *c) {
  const json_t *types = json_object_get(c->json, "layer_types");
  for (int64_t i = 0; i < c->layers; i++) {
    if (strcmp(text_at(types, i), "full_attention") != 0) continue;
    c->head_dim = rdna__hf_of_layer(c, i, "head_dim", c->head_dim);
    break;
  }
  if (c->head_dim < 1) return rdna__fail(RDNA_BAD_DATA, "'head_dim' of a layer that sees all makes no sense");
  c->rotated = c->head_dim;
  if (!json_is_true(json_object_get(c->json, "enable_moe_block"))) c->experts = 0;
  if (!c->experts) c->dense_layers = c->layers; /* their experts stand beside what all layers have */
  return RDNA_OK;
}

static rdna_status read_sizes(rdna__hf_config *c) {
  RDNA_TRY(read_count(c->json, "num_hidden_layers", 0, &c->layers));
  RDNA_TRY(read_count(c->json, "hidden_size", 0, &c->width));
  RDNA_TRY(read_count(c->json, "num_attention_heads", 0, &c->heads));
  RDNA_TRY(read_count(c->json, "num_key_value_heads", c->heads, &c->kv_heads));
  RDNA_TRY(read_count(c->json, "head_dim", c->width / c->heads, &c->head_dim));
  if (c->architecture->encoder) c->kv_heads = c->heads; /* BERT's read no such setting */
  RDNA_TRY(read_count(c->json, "vocab_size", 0, &c->vocabulary));
  RDNA_TRY(rdna__hf_count(c->json, "num_experts", 0, &c->experts));
  if (c->experts == 0) RDNA_TRY(rdna__hf_count(c->json, "num_local_experts", 0, &c->experts));
  if (c->experts > MOST_EXPERTS || c->layers > MOST_LAYERS)
    return rdna__fail(RDNA_BAD_DATA, "%lld layers and %lld experts; at most %d and %d make sense", (long long)c->layers,
                      (long long)c->experts, MOST_LAYERS, MOST_EXPERTS);
  double part;
  RDNA_TRY(rdna__hf_number(c->json, "partial_rotary_factor", 1, &part));
  RDNA_TRY(rdna__hf_number(rdna__hf_rope(c), "partial_rotary_factor", part, &part));
  if (!(part > 0 && part <= 1)) return rdna__fail(RDNA_BAD_DATA, "'partial_rotary_factor' is %g", part);
  c->rotated = (int64_t)(part * (double)c->head_dim);
  RDNA_TRY(rdna__hf_count(c->json, "rotary_dim", c->rotated, &c->rotated));
  RDNA_TRY(rdna__hf_count(c->json, "num_nextn_predict_layers", 0, &c->extra_layers));
  if (c->architecture->offset_positions) {
    RDNA_TRY(rdna__hf_count(c->json, "pad_token_id", 1, &c->first_position));
    c->first_position++;
  }
  if (c->architecture->latent) RDNA_TRY(read_latent(c));
  if (c->architecture->leading_dense) RDNA_TRY(read_dense(c));
  if (c->architecture->delta) RDNA_TRY(read_recurrent(c));
  if (strcmp(c->architecture->gguf, "gemma4") == 0) RDNA_TRY(read_global_head(c));
  if (c->rotated > c->head_dim)
    return rdna__fail(RDNA_BAD_DATA, "%lld values of a head are rotated, of %lld", (long long)c->rotated,
                      (long long)c->head_dim);
  if (c->rotated == 0) return rdna__fail(RDNA_BAD_DATA, "no value of a head is rotated");
  if (c->head_dim % 2 || c->rotated % 2)
    return rdna__fail(RDNA_BAD_DATA, "an odd number of values in a head cannot be rotated in pairs");
  if (c->architecture->neighbours && c->rotated != c->head_dim)
    return rdna__fail(RDNA_UNSUPPORTED, "only a part of its heads is rotated, which no model of this architecture has");
  return RDNA_OK;
}

static rdna_status name_settings(json_t *json, const rdna__hf_setting_name *row) {
  for (; row && row->published; row++) {
    json_t *value = json_object_get(json, row->published);
    if (!value || json_is_null(value) || json_object_get(json, row->name)) continue;
    if (json_object_set(json, row->name, value) != 0)
      return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for '%s'", row->name);
  }
  return RDNA_OK;
}

rdna_status rdna__hf_config_read(json_t *json, rdna__hf_config *out_config) {
  rdna__hf_config c = {0};
  const char *name = json_string_value(json_array_get(json_object_get(json, "architectures"), 0));
  if (!name) return rdna__fail(RDNA_BAD_DATA, "it does not name its architecture ('architectures')");
  RDNA_TRY(rdna__hf_architecture_find(name, &c.architecture));
  RDNA_TRY(name_settings(json, c.architecture->settings));
  RDNA_TRY(check_quantization(json));
  const json_t *text = json_object_get(json, "text_config");
  c.json = json_is_object(text) ? text : json;
  RDNA_TRY(read_sizes(&c));
  const json_t *tied = json_object_get(c.json, "tie_word_embeddings");
  c.tied = tied ? json_is_true(tied) : json_is_true(json_object_get(json, "tie_word_embeddings"));
  const json_t *vision = json_object_get(json, "vision_config");
  c.deepstack = (int64_t)json_array_size(json_object_get(vision, "deepstack_visual_indexes"));
  if (c.deepstack > c.layers)
    return rdna__fail(RDNA_BAD_DATA, "'deepstack_visual_indexes' are %lld, of a model of %lld layers",
                      (long long)c.deepstack, (long long)c.layers);
  RDNA_TRY(check_activation(&c));
  RDNA_TRY(check_windows(&c));
  RDNA_TRY(check_others(&c));
  *out_config = c;
  return RDNA_OK;
}

/* ---- RoPE ---- */

const json_t *rdna__hf_rope(const rdna__hf_config *config) {
  const json_t *rope = json_object_get(config->json, "rope_parameters"); /* transformers 5; before it rope_scaling */
  if (!json_is_object(rope)) rope = json_object_get(config->json, "rope_scaling");
  const json_t *full = json_object_get(rope, "full_attention");
  return json_is_object(full) ? full : json_is_object(rope) ? rope : NULL;
}

const char *rdna__hf_rope_type(const rdna__hf_config *config) {
  const json_t *rope = rdna__hf_rope(config);
  const char *type = rdna__hf_text(rope, "rope_type", rdna__hf_text(rope, "type", "default"));
  return strcmp(type, "mrope") == 0 ? "default" : type; /* three positions a token, the same for text */
}

/* Llama 3.1's factors: 1 for waves that are short against the context of its training, |factor| for long ones, and
 * between them from one to the other (transformers, modeling_rope_utils.py). */
static rdna_status llama3_factors(const rdna__hf_config *c, rdna__hf_factors *out) {
  const json_t *rope = rdna__hf_rope(c);
  double base, factor, low, high, original;
  RDNA_TRY(rdna__hf_number(c->json, "rope_theta", 10000, &base));
  RDNA_TRY(rdna__hf_number(rope, "rope_theta", base, &base));
  RDNA_TRY(rdna__hf_number(rope, "factor", 0, &factor));
  RDNA_TRY(rdna__hf_number(rope, "low_freq_factor", 0, &low));
  RDNA_TRY(rdna__hf_number(rope, "high_freq_factor", 0, &high));
  RDNA_TRY(rdna__hf_number(rope, "original_max_position_embeddings", 0, &original));
  if (!(factor > 0 && low > 0 && high > low && original > 0 && base > 0))
    return rdna__fail(RDNA_BAD_DATA, "the scaling of RoPE lacks a number, or one makes no sense");
  *out = (rdna__hf_factors){"rope_freqs.weight", c->rotated / 2, malloc((size_t)c->rotated / 2 * sizeof *out->values)};
  if (!out->values) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for RoPE's factors");
  for (int64_t i = 0; i < out->count; i++) {
    double wave = 2 * M_PI * pow(base, 2.0 * (double)i / (double)c->rotated);
    double smooth = (original / wave - low) / (high - low);
    double scale = smooth <= 0 ? 1 / factor : smooth >= 1 ? 1 : (1 - smooth) / factor + smooth;
    out->values[i] = (float)(1 / scale);
  }
  return RDNA_OK;
}

static rdna_status read_factors(const rdna__hf_config *c, const char *hf, const char *gguf, rdna__hf_factors *out) {
  const json_t *list = json_object_get(rdna__hf_rope(c), hf);
  int64_t count = c->rotated / 2;
  if ((int64_t)json_array_size(list) != count)
    return rdna__fail(RDNA_BAD_DATA, "'%s' of RoPE has %zu numbers, not %lld", hf, json_array_size(list),
                      (long long)count);
  *out = (rdna__hf_factors){gguf, count, malloc((size_t)count * sizeof *out->values)};
  if (!out->values) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for RoPE's factors");
  for (int64_t i = 0; i < count; i++) {
    const json_t *value = json_array_get(list, (size_t)i);
    out->values[i] = (float)json_number_value(value);
    if (!(out->values[i] > 0)) return rdna__fail(RDNA_BAD_DATA, "'%s' of RoPE holds what is no factor", hf);
  }
  return RDNA_OK;
}

/* Gemma 4 turns the first pairs of a head alone, by the frequencies that all of them would have: the others' are
 * divided by so much that they stand still. */
static rdna_status proportional_factors(const rdna__hf_config *c, rdna__hf_factors *out) {
  double part;
  RDNA_TRY(rdna__hf_number(rdna__hf_rope(c), "partial_rotary_factor", 1, &part));
  *out = (rdna__hf_factors){"rope_freqs.weight", c->rotated / 2, malloc((size_t)c->rotated / 2 * sizeof *out->values)};
  if (!out->values) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for RoPE's factors");
  int64_t turned = (int64_t)(part * (double)c->rotated / 2);
  for (int64_t i = 0; i < out->count; i++) out->values[i] = i < turned ? 1 : 1e30f;
  return RDNA_OK;
}

bool rdna__hf_is_longrope(const char *type) { return strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0; }

rdna_status rdna__hf_rope_factors(const rdna__hf_config *config, rdna__hf_factors out_factors[RDNA__HF_MOST_FACTORS]) {
  const char *type = rdna__hf_rope_type(config);
  memset(out_factors, 0, RDNA__HF_MOST_FACTORS * sizeof *out_factors);
  if (strcmp(type, "llama3") == 0) return llama3_factors(config, &out_factors[0]);
  if (strcmp(type, "proportional") == 0) return proportional_factors(config, &out_factors[0]);
  if (!rdna__hf_is_longrope(type)) return RDNA_OK;
  RDNA_TRY(read_factors(config, "long_factor", "rope_factors_long.weight", &out_factors[0]));
  return read_factors(config, "short_factor", "rope_factors_short.weight", &out_factors[1]);
}
