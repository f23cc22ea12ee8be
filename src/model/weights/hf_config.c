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

static const char *text_of(const json_t *object, const char *name, const char *initial) {
  const char *text = json_string_value(json_object_get(object, name));
  return text ? text : initial;
}

static bool is_set(const json_t *object, const char *name) {
  const json_t *value = json_object_get(object, name);
  return value && !json_is_null(value);
}

/* ---- what is checked ---- */

static rdna_status check_activation(const rdna__hf_config *c) {
  const char *found =
      text_of(c->json, "hidden_activation", text_of(c->json, "hidden_act", c->architecture->activation));
  if (strcmp(found, c->architecture->activation) == 0) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "its activation is '%.40s'; models of this architecture have %s", found,
                    c->architecture->activation);
}

static rdna_status check_quantization(const json_t *json) {
  const json_t *quantization = json_object_get(json, "quantization_config");
  const char *method = text_of(quantization, "quant_method", "of an unnamed method");
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
  RDNA_TRY(rdna__hf_count(c->json, "sliding_window_pattern", a->window_period, &period));
  if (a->window_period && period != a->window_period)
    return rdna__fail(RDNA_UNSUPPORTED, "every layer of %lld sees all; of this architecture every layer of %d does",
                      (long long)period, a->window_period);
  if (!a->window && json_is_true(json_object_get(c->json, "use_sliding_window")))
    return rdna__fail(RDNA_UNSUPPORTED, "'use_sliding_window' is set, which GGUF cannot say of this architecture");
  for (int64_t i = 0; json_is_array(types) && !a->window_list && i < c->layers; i++) {
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
  if (c->architecture->gating == 1 && groups > 1 && strcmp(text_of(c->json, "topk_method", "greedy"), "greedy") != 0)
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

/* Settings that some models of an architecture have and that would make others of them. */
static rdna_status check_others(const rdna__hf_config *c) {
  int64_t step;
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

/* Sizes of latent attention, and the number of dense layers: said, or from a list of all. */
static rdna_status read_latent(rdna__hf_config *c) {
  const json_t *kinds = json_object_get(c->json, "mlp_layer_types");
  RDNA_TRY(read_count(c->json, "kv_lora_rank", 0, &c->latent));
  RDNA_TRY(read_count(c->json, "qk_nope_head_dim", 0, &c->unrotated));
  RDNA_TRY(read_count(c->json, "qk_rope_head_dim", 0, &c->rotated));
  RDNA_TRY(read_count(c->json, "v_head_dim", 0, &c->value_dim));
  RDNA_TRY(read_count(c->json, "n_routed_experts", 0, &c->experts));
  RDNA_TRY(rdna__hf_count(c->json, "first_k_dense_replace", 0, &c->dense_layers));
  RDNA_TRY(rdna__hf_count(c->json, "num_nextn_predict_layers", 0, &c->extra_layers));
  for (int64_t i = 0; json_is_array(kinds) && i < c->layers; i++) {
    const char *kind = json_string_value(json_array_get(kinds, (size_t)i));
    bool dense = kind && strcmp(kind, "dense") == 0;
    if (dense && c->dense_layers != i)
      return rdna__fail(RDNA_UNSUPPORTED, "layer %lld has no experts, but one before it has", (long long)i);
    c->dense_layers += dense;
  }
  c->head_dim = c->unrotated + c->rotated;
  return RDNA_OK;
}

static rdna_status read_sizes(rdna__hf_config *c) {
  RDNA_TRY(read_count(c->json, "num_hidden_layers", 0, &c->layers));
  RDNA_TRY(read_count(c->json, "hidden_size", 0, &c->width));
  RDNA_TRY(read_count(c->json, "num_attention_heads", 0, &c->heads));
  RDNA_TRY(read_count(c->json, "num_key_value_heads", c->heads, &c->kv_heads));
  RDNA_TRY(read_count(c->json, "head_dim", c->width / c->heads, &c->head_dim));
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
  if (c->architecture->latent) RDNA_TRY(read_latent(c));
  if (c->rotated == 0) return rdna__fail(RDNA_BAD_DATA, "no value of a head is rotated");
  if (c->head_dim % 2 || c->rotated % 2)
    return rdna__fail(RDNA_BAD_DATA, "an odd number of values in a head cannot be rotated in pairs");
  if (c->architecture->neighbours && c->rotated != c->head_dim)
    return rdna__fail(RDNA_UNSUPPORTED, "only a part of its heads is rotated, which no model of this architecture has");
  return RDNA_OK;
}

rdna_status rdna__hf_config_read(const json_t *json, rdna__hf_config *out_config) {
  rdna__hf_config c = {0};
  const char *name = json_string_value(json_array_get(json_object_get(json, "architectures"), 0));
  if (!name) return rdna__fail(RDNA_BAD_DATA, "it does not name its architecture ('architectures')");
  RDNA_TRY(rdna__hf_architecture_find(name, &c.architecture));
  RDNA_TRY(check_quantization(json));
  const json_t *text = json_object_get(json, "text_config");
  c.json = json_is_object(text) ? text : json;
  RDNA_TRY(read_sizes(&c));
  const json_t *tied = json_object_get(c.json, "tie_word_embeddings");
  c.tied = tied ? json_is_true(tied) : json_is_true(json_object_get(json, "tie_word_embeddings"));
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

static const char *rope_type(const rdna__hf_config *config) {
  const json_t *rope = rdna__hf_rope(config);
  return text_of(rope, "rope_type", text_of(rope, "type", "default"));
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

static bool is_longrope(const char *type) { return strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0; }

rdna_status rdna__hf_rope_factors(const rdna__hf_config *config, rdna__hf_factors out_factors[RDNA__HF_MOST_FACTORS]) {
  const char *type = rope_type(config);
  memset(out_factors, 0, RDNA__HF_MOST_FACTORS * sizeof *out_factors);
  if (strcmp(type, "llama3") == 0) return llama3_factors(config, &out_factors[0]);
  if (!is_longrope(type)) return RDNA_OK;
  RDNA_TRY(read_factors(config, "long_factor", "rope_factors_long.weight", &out_factors[0]));
  return read_factors(config, "short_factor", "rope_factors_short.weight", &out_factors[1]);
}

/* ---- keys ---- */

typedef struct putting {
  const rdna__hf_config *config;
  rdna_gguf_writer *writer;
} putting;

static const char *full_name(const putting *p, const char *name, char out[128]) {
  snprintf(out, 128, "%s.%s", p->config->architecture->gguf, name);
  return out;
}

static rdna_status put_count(const putting *p, const char *name, int64_t value) {
  char full[128];
  return rdna_gguf_writer_put(p->writer, full_name(p, name, full), RDNA_GGUF_TYPE_U32, &(uint32_t){(uint32_t)value});
}

static rdna_status put_number(const putting *p, const char *name, double value) {
  char full[128];
  return rdna_gguf_writer_put(p->writer, full_name(p, name, full), RDNA_GGUF_TYPE_F32, &(float){(float)value});
}

static rdna_status put_text(const putting *p, const char *name, const char *value) {
  char full[128];
  const rdna_text text = {value, strlen(value)};
  return rdna_gguf_writer_put(p->writer, full_name(p, name, full), RDNA_GGUF_TYPE_TEXT, &text);
}

/* |object|'s number |hf| as |gguf|, if it is there. */
static rdna_status put_if_set(const putting *p, const json_t *object, const char *hf, const char *gguf) {
  double value;
  RDNA_TRY(rdna__hf_number(object, hf, 0, &value));
  return is_set(object, hf) ? put_number(p, gguf, value) : RDNA_OK;
}

/* The first of |row|'s names that config.json has; NULL when it has none. */
static const char *name_of(const json_t *json, const rdna__hf_key_name *row, char out[64]) {
  for (const char *at = row->hf; *at; at += *at == '|') {
    size_t length = strcspn(at, "|");
    snprintf(out, 64, "%.*s", (int)length, at);
    if (is_set(json, out)) return out;
    at += length;
  }
  return NULL;
}

static rdna_status put_row(const putting *p, const rdna__hf_key_name *row) {
  const json_t *json = p->config->json;
  char full[128], buffer[64];
  const char *name = name_of(json, row, buffer);
  if (!name) return row->required ? rdna__fail(RDNA_BAD_DATA, "'%s' is missing", row->hf) : RDNA_OK;
  if (row->value == RDNA__HF_F32) return put_if_set(p, json, name, row->gguf);
  if (row->value == RDNA__HF_BOOL) {
    bool value = json_is_true(json_object_get(json, name));
    return rdna_gguf_writer_put(p->writer, full_name(p, row->gguf, full), RDNA_GGUF_TYPE_BOOL, &value);
  }
  int64_t count;
  RDNA_TRY(rdna__hf_count(json, name, 0, &count));
  return put_count(p, row->gguf, count);
}

/* Context lengths of the training and after it, for the scalings that need both. */
static rdna_status put_original_context(const putting *p, double *out_scale, double *out_original) {
  const rdna__hf_config *c = p->config;
  int64_t context, original;
  RDNA_TRY(rdna__hf_count(c->json, "max_position_embeddings", 0, &context));
  RDNA_TRY(rdna__hf_count(c->json, "original_max_position_embeddings", context, &original));
  RDNA_TRY(rdna__hf_count(rdna__hf_rope(c), "original_max_position_embeddings", original, &original));
  if (original < 2) return rdna__fail(RDNA_BAD_DATA, "'original_max_position_embeddings' is %lld", (long long)original);
  *out_scale = (double)context / (double)original;
  *out_original = (double)original;
  return put_count(p, "rope.scaling.original_context_length", original);
}

/* YaRN's factor on sine and cosine. What a reader of GGUF makes of its keys is attn_factor (1 + 0.1 ln factor) / (1 +
 * 0.1 log_multiplier ln factor); what transformers takes is 'attention_factor', or of mscale and mscale_all_dim the
 * quotient (1 + 0.1 mscale ln factor) / (1 + 0.1 mscale_all_dim ln factor), or 1 + 0.1 ln factor. */
static rdna_status put_yarn_magnitude(const putting *p, const json_t *rope, double factor) {
  const rdna__hf_architecture *a = p->config->architecture;
  double whole, mscale, all_dim, ln = factor > 1 ? log(factor) : 0;
  RDNA_TRY(rdna__hf_number(rope, "attention_factor", 0, &whole));
  RDNA_TRY(rdna__hf_number(rope, "mscale", 0, &mscale));
  RDNA_TRY(rdna__hf_number(rope, "mscale_all_dim", 0, &all_dim));
  const json_t *truncate = json_object_get(rope, "truncate");
  if (json_is_false(truncate) != (strcmp(a->gguf, "gpt-oss") == 0))
    return rdna__fail(RDNA_UNSUPPORTED, "'truncate' of RoPE is %s, which GGUF cannot say of this architecture",
                      json_is_false(truncate) ? "false" : "true");
  if (a->latent) {
    if (whole > 0)
      return rdna__fail(RDNA_UNSUPPORTED,
                        "'attention_factor' of RoPE is set, which GGUF cannot say of this "
                        "architecture");
    /* files of DeepSeek's architecture have a tenth of it */
    return all_dim > 0 ? put_number(p, "rope.scaling.yarn_log_multiplier", 0.1 * all_dim) : RDNA_OK;
  }
  if (whole == 0 && mscale > 0 && all_dim > 0) {
    if (mscale == 1) return put_number(p, "rope.scaling.yarn_log_multiplier", all_dim);
    whole = (1 + 0.1 * mscale * ln) / (1 + 0.1 * all_dim * ln);
  }
  return whole > 0 ? put_number(p, "rope.scaling.yarn_attn_factor", whole / (1 + 0.1 * ln)) : RDNA_OK;
}

static rdna_status put_rope_scaling(const putting *p) {
  static const char *const yarn[][2] = {{"beta_fast", "rope.scaling.yarn_beta_fast"},
                                        {"beta_slow", "rope.scaling.yarn_beta_slow"},
                                        {"extrapolation_factor", "rope.scaling.yarn_ext_factor"},
                                        {"mscale_all_dim", "rope.scaling.yarn_log_multiplier"},
                                        {"llama_4_scaling_beta", "attention.temperature_scale"}};
  const json_t *rope = rdna__hf_rope(p->config);
  const char *type = rope_type(p->config);
  double scale, original, factor;
  /* of Phi-3 also where nothing is scaled */
  if (is_set(p->config->json, "original_max_position_embeddings")) RDNA_TRY(put_original_context(p, &scale, &original));
  if (strcmp(type, "default") == 0 || strcmp(type, "llama3") == 0) return RDNA_OK; /* that is in rope_freqs */
  if (is_longrope(type)) {
    if (strcmp(p->config->architecture->gguf, "phi3") != 0)
      return rdna__fail(RDNA_UNSUPPORTED, "RoPE is scaled by '%.40s', which GGUF's %s has not", type,
                        p->config->architecture->gguf);
    RDNA_TRY(put_text(p, "rope.scaling.type", "longrope"));
    RDNA_TRY(put_original_context(p, &scale, &original));
    factor = scale > 1 ? sqrt(1 + log(scale) / log(original)) : 1;
    RDNA_TRY(rdna__hf_number(rope, "attention_factor", factor, &factor));
    return put_number(p, "rope.scaling.attn_factor", factor);
  }
  if (strcmp(type, "linear") != 0 && strcmp(type, "yarn") != 0)
    return rdna__fail(RDNA_UNSUPPORTED, "RoPE is scaled by '%.40s'; linear, llama3, yarn and longrope are known", type);
  RDNA_TRY(rdna__hf_number(rope, "factor", 0, &factor));
  if (!(factor > 0)) return rdna__fail(RDNA_BAD_DATA, "the scaling of RoPE has no factor");
  RDNA_TRY(put_text(p, "rope.scaling.type", type));
  RDNA_TRY(put_number(p, "rope.scaling.factor", factor));
  if (strcmp(type, "linear") == 0) return RDNA_OK;
  RDNA_TRY(put_original_context(p, &scale, &original));
  for (size_t i = 0; i < sizeof yarn / sizeof *yarn; i++) RDNA_TRY(put_if_set(p, rope, yarn[i][0], yarn[i][1]));
  return put_yarn_magnitude(p, rope, factor);
}

static rdna_status put_rope(const putting *p) {
  const json_t *json = p->config->json;
  double base, local;
  RDNA_TRY(rdna__hf_number(json, "rope_theta", 10000, &base));
  RDNA_TRY(rdna__hf_number(rdna__hf_rope(p->config), "rope_theta", base, &base));
  RDNA_TRY(put_count(p, "rope.dimension_count", p->config->rotated));
  RDNA_TRY(put_number(p, "rope.freq_base", base));
  if (strcmp(p->config->architecture->gguf, "gemma3") == 0) { /* layers that see a window have another */
    const json_t *windowed = json_object_get(json_object_get(json, "rope_parameters"), "sliding_attention");
    RDNA_TRY(rdna__hf_number(json, "rope_local_base_freq", 10000, &local));
    RDNA_TRY(rdna__hf_number(windowed, "rope_theta", local, &local));
    RDNA_TRY(put_number(p, "rope.freq_base_swa", local));
  }
  return put_rope_scaling(p);
}

/* Which layers see a window only, where GGUF has a list of them. */
static rdna_status put_window_list(const putting *p) {
  const rdna__hf_config *c = p->config;
  const json_t *types = json_object_get(c->json, "layer_types");
  char full[128];
  bool *list = calloc((size_t)c->layers, sizeof *list);
  if (!list) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %lld layers", (long long)c->layers);
  rdna_status status = RDNA_OK;
  for (int64_t i = 0; i < c->layers && status == RDNA_OK; i++) {
    const char *type = json_string_value(json_array_get(types, (size_t)i));
    list[i] = type ? strcmp(type, "sliding_attention") == 0 : (i + 1) % c->architecture->window_period != 0;
    if (types && (!type || (!list[i] && strcmp(type, "full_attention") != 0)))
      status = rdna__fail(RDNA_UNSUPPORTED, "layer %lld has attention of type '%.40s'", (long long)i, type ? type : "");
  }
  if (status == RDNA_OK)
    status = rdna_gguf_writer_put_array(p->writer, full_name(p, "attention.sliding_window_pattern", full),
                                        RDNA_GGUF_TYPE_BOOL, list, (uint64_t)c->layers);
  free(list);
  return status;
}

/* A cache of the latent vectors is all keys and values, as if of one head; sizes of heads have keys of their own. */
static rdna_status put_latent(const putting *p) {
  const rdna__hf_config *c = p->config;
  int64_t groups, used;
  RDNA_TRY(put_count(p, "attention.head_count_kv", 1));
  RDNA_TRY(put_count(p, "attention.key_length", c->latent + c->rotated));
  RDNA_TRY(put_count(p, "attention.value_length", c->latent));
  RDNA_TRY(put_count(p, "attention.key_length_mla", c->unrotated + c->rotated));
  RDNA_TRY(put_count(p, "attention.value_length_mla", c->value_dim));
  RDNA_TRY(put_count(p, "leading_dense_block_count", c->dense_layers));
  RDNA_TRY(put_count(p, "expert_gating_func", c->architecture->gating));
  RDNA_TRY(rdna__hf_count(c->json, "n_group", 1, &groups));
  RDNA_TRY(rdna__hf_count(c->json, "topk_group", 1, &used));
  if (groups < 2 || c->architecture->gating == 1) return RDNA_OK;
  RDNA_TRY(put_count(p, "expert_group_count", groups));
  return put_count(p, "expert_group_used_count", used);
}

/* What only some architectures have and what is no plain copy. */
static rdna_status put_special(const putting *p) {
  const rdna__hf_config *c = p->config;
  double scalar;
  int64_t window;
  if (c->architecture->window) {
    RDNA_TRY(rdna__hf_count(c->json, "sliding_window", 0, &window));
    RDNA_TRY(put_count(p, "attention.sliding_window", window));
    if (c->architecture->window_list) RDNA_TRY(put_window_list(p));
  }
  if (c->architecture->latent) RDNA_TRY(put_latent(p));
  for (int i = 0; i < 2 && strcmp(c->architecture->gguf, "gemma2") == 0; i++) {
    const char *caps[] = {"attn_logit_softcapping", "final_logit_softcapping"};
    if (json_is_null(json_object_get(c->json, caps[i]))) /* a key that is missing means the usual cap */
      return rdna__fail(RDNA_UNSUPPORTED, "'%s' is null, which GGUF cannot say of this architecture", caps[i]);
  }
  RDNA_TRY(rdna__hf_number(c->json, "query_pre_attn_scalar", 0, &scalar)); /* Gemma's */
  return scalar > 0 ? put_number(p, "attention.scale", 1 / sqrt(scalar)) : RDNA_OK;
}

rdna_status rdna__hf_config_put(const rdna__hf_config *config, rdna_gguf_writer *writer) {
  const putting p = {config, writer};
  const char *name = config->architecture->gguf;
  const rdna_text text = {name, strlen(name)};
  RDNA_TRY(rdna_gguf_writer_put(writer, "general.architecture", RDNA_GGUF_TYPE_TEXT, &text));
  for (const rdna__hf_key_name *row = rdna__hf_common_keys; row->hf; row++) RDNA_TRY(put_row(&p, row));
  RDNA_TRY(put_count(&p, "attention.head_count_kv", config->kv_heads));
  RDNA_TRY(put_count(&p, "attention.key_length", config->head_dim));
  RDNA_TRY(put_count(&p, "attention.value_length", config->head_dim));
  RDNA_TRY(put_count(&p, "vocab_size", config->vocabulary));
  RDNA_TRY(put_rope(&p));
  RDNA_TRY(put_special(&p));
  for (int i = 0; i < RDNA__HF_LISTS && config->architecture->keys[i]; i++)
    for (const rdna__hf_key_name *row = config->architecture->keys[i]; row->hf; row++) RDNA_TRY(put_row(&p, row));
  return RDNA_OK;
}
