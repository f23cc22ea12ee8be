/* config.json's settings as GGUF's keys. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/weights/hf.h"

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
  return rdna__hf_is_set(object, hf) ? put_number(p, gguf, value) : RDNA_OK;
}

/* The first of |row|'s names that config.json has; NULL when it has none. */
static const char *name_of(const json_t *json, const rdna__hf_key_name *row, char out[64]) {
  for (const char *at = row->hf; *at; at += *at == '|') {
    size_t length = strcspn(at, "|");
    snprintf(out, 64, "%.*s", (int)length, at);
    if (rdna__hf_is_set(json, out)) return out;
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
  const char *type = rdna__hf_rope_type(p->config);
  double scale, original, factor;
  /* of Phi-3 also where nothing is scaled */
  if (rdna__hf_is_set(p->config->json, "original_max_position_embeddings"))
    RDNA_TRY(put_original_context(p, &scale, &original));
  if (strcmp(type, "default") == 0) return RDNA_OK;
  if (strcmp(type, "llama3") == 0 || strcmp(type, "proportional") == 0) return RDNA_OK; /* they are in rope_freqs */
  if (rdna__hf_is_longrope(type)) {
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
  if (strncmp(p->config->architecture->gguf, "gemma", 5) == 0 && /* layers that see a window have another */
      p->config->architecture->window_period != 2) {
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

/* Sizes of Gemma 4's two kinds of layers. */
static rdna_status put_two_kinds(const putting *p) {
  const rdna__hf_config *c = p->config;
  int64_t head, hidden = 0, shared = 0, of_layer = 1;
  char full[128];
  bool differ = false;
  uint32_t *numbers = calloc((size_t)c->layers, sizeof *numbers);
  if (!numbers) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %lld layers", (long long)c->layers);
  for (int64_t i = 0; i < c->layers && of_layer > 0; i++) {
    of_layer = rdna__hf_of_layer(c, i, "num_key_value_heads", c->kv_heads);
    numbers[i] = (uint32_t)of_layer;
    differ |= of_layer != c->kv_heads;
  }
  rdna_status status = RDNA_OK;
  if (of_layer < 1) status = rdna__fail(RDNA_BAD_DATA, "'num_key_value_heads' of a layer makes no sense");
  if (status == RDNA_OK && differ)
    status = rdna_gguf_writer_put_array(p->writer, full_name(p, "attention.head_count_kv", full), RDNA_GGUF_TYPE_U32,
                                        numbers, (uint64_t)c->layers);
  if (status == RDNA_OK) status = rdna__hf_count(c->json, "num_kv_shared_layers", 0, &shared);
  if (status == RDNA_OK) status = rdna__hf_count(c->json, "intermediate_size", 0, &hidden);
  bool wider = json_is_true(json_object_get(c->json, "use_double_wide_mlp")); /* those that share a cache */
  for (int64_t i = 0; i < c->layers; i++) numbers[i] = (uint32_t)(hidden << (i >= c->layers - shared));
  if (status == RDNA_OK && wider)
    status = rdna_gguf_writer_put_array(p->writer, full_name(p, "feed_forward_length", full), RDNA_GGUF_TYPE_U32,
                                        numbers, (uint64_t)c->layers);
  free(numbers);
  RDNA_TRY(status);
  RDNA_TRY(rdna__hf_count(c->json, "head_dim", c->width / c->heads, &head));
  RDNA_TRY(put_count(p, "attention.key_length_swa", head));
  RDNA_TRY(put_count(p, "attention.value_length_swa", head));
  return put_count(p, "rope.dimension_count_swa", head);
}

/* Recurrent layers: their sizes, and which they are. */
static rdna_status put_recurrent(const putting *p) {
  const rdna__hf_config *c = p->config;
  enum { PERIOD = 4 };
  int64_t width;
  char full[128];
  RDNA_TRY(rdna__hf_count(c->json, "linear_conv_kernel_dim", 0, &width));
  RDNA_TRY(put_count(p, "ssm.conv_kernel", width));
  RDNA_TRY(put_count(p, "ssm.state_size", c->k_dim));
  RDNA_TRY(put_count(p, "ssm.group_count", c->k_heads));
  RDNA_TRY(put_count(p, "ssm.time_step_rank", c->v_heads));
  RDNA_TRY(put_count(p, "ssm.inner_size", c->v_heads * c->v_dim));
  bool *recurrent = calloc((size_t)c->layers, sizeof *recurrent), regular = true;
  if (!recurrent) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %lld layers", (long long)c->layers);
  for (int64_t i = 0; i < c->layers; i++) {
    recurrent[i] = rdna__hf_is_recurrent(c, i);
    regular &= recurrent[i] == ((i + 1) % PERIOD != 0);
  }
  rdna_status status = regular ? put_count(p, "full_attention_interval", PERIOD)
                               : rdna_gguf_writer_put_array(p->writer, full_name(p, "attention.recurrent_layers", full),
                                                            RDNA_GGUF_TYPE_BOOL, recurrent, (uint64_t)c->layers);
  free(recurrent);
  return status;
}

/* LFM2's layers without attention have no key heads, and the width of its feed-forward blocks may be computed. */
static rdna_status put_convolutions(const putting *p) {
  const rdna__hf_config *c = p->config;
  char full[128];
  int64_t hidden, multiple;
  double factor;
  uint32_t *heads = calloc((size_t)c->layers, sizeof *heads);
  if (!heads) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %lld layers", (long long)c->layers);
  for (int64_t i = 0; i < c->layers; i++) heads[i] = rdna__hf_is_recurrent(c, i) ? 0 : (uint32_t)c->kv_heads;
  rdna_status status = rdna_gguf_writer_put_array(p->writer, full_name(p, "attention.head_count_kv", full),
                                                  RDNA_GGUF_TYPE_U32, heads, (uint64_t)c->layers);
  free(heads);
  RDNA_TRY(status);
  const json_t *adjust = json_object_get(c->json, "block_auto_adjust_ff_dim");
  if (strcmp(c->architecture->gguf, "lfm2") != 0 || json_is_false(adjust)) return RDNA_OK;
  RDNA_TRY(rdna__hf_count(c->json, "block_ff_dim", 0, &hidden));
  RDNA_TRY(rdna__hf_count(c->json, "intermediate_size", hidden, &hidden));
  RDNA_TRY(rdna__hf_count(c->json, "block_multiple_of", 256, &multiple));
  RDNA_TRY(rdna__hf_number(c->json, "block_ffn_dim_multiplier", 1, &factor));
  if (multiple < 1 || !(factor > 0 && factor < 1000))
    return rdna__fail(RDNA_BAD_DATA, "'block_multiple_of' is %lld, 'block_ffn_dim_multiplier' %g", (long long)multiple,
                      factor);
  hidden = (int64_t)(factor * (double)(2 * hidden / 3));
  return put_count(p, "feed_forward_length", (hidden + multiple - 1) / multiple * multiple);
}

/* A cache of the latent vectors is all keys and values, as if of one head; sizes of heads have keys of their own. */
static rdna_status put_latent(const putting *p) {
  const rdna__hf_config *c = p->config;
  RDNA_TRY(put_count(p, "attention.head_count_kv", 1));
  RDNA_TRY(put_count(p, "attention.key_length", c->latent + c->rotated));
  RDNA_TRY(put_count(p, "attention.value_length", c->latent));
  RDNA_TRY(put_count(p, "attention.key_length_mla", c->unrotated + c->rotated));
  return put_count(p, "attention.value_length_mla", c->value_dim);
}

/* Dense layers before those with experts, and groups of those. */
static rdna_status put_leading_dense(const putting *p) {
  const rdna__hf_config *c = p->config;
  int64_t groups, used;
  RDNA_TRY(put_count(p, "leading_dense_block_count", c->dense_layers));
  RDNA_TRY(rdna__hf_count(c->json, "n_group", 1, &groups));
  RDNA_TRY(rdna__hf_count(c->json, "topk_group", 1, &used));
  if (groups < 2 || c->architecture->gating == 1) return RDNA_OK;
  RDNA_TRY(put_count(p, "expert_group_count", groups));
  return put_count(p, "expert_group_used_count", used);
}

/* How many pairs of a head turn by each of three positions, of those that see pictures. */
static rdna_status put_sections(const putting *p) {
  const json_t *list = json_object_get(rdna__hf_rope(p->config), "mrope_section");
  int32_t sections[4] = {0};
  char full[128];
  if (!json_is_array(list)) return RDNA_OK;
  for (size_t i = 0; i < 3; i++) sections[i] = (int32_t)json_integer_value(json_array_get(list, i));
  return rdna_gguf_writer_put_array(p->writer, full_name(p, "rope.dimension_sections", full), RDNA_GGUF_TYPE_I32,
                                    sections, 4);
}

/* The names of an encoder's labels, {"0": NAME, "1": NAME, …}. */
static rdna_status put_label_names(const putting *p, const json_t *names) {
  size_t count = json_object_size(names);
  rdna_text *labels = calloc(count + 1, sizeof *labels);
  char number[24], full[128];
  rdna_status status = labels ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %zu labels", count);
  for (size_t i = 0; i < count && status == RDNA_OK; i++) {
    snprintf(number, sizeof number, "%zu", i);
    const json_t *label = json_object_get(names, number);
    labels[i] = (rdna_text){json_string_value(label), json_string_length(label)};
    if (!json_is_string(label)) status = rdna__fail(RDNA_BAD_DATA, "'id2label' has no text for label %zu", i);
  }
  if (status == RDNA_OK && count)
    status = rdna_gguf_writer_put_array(p->writer, full_name(p, "classifier.output_labels", full), RDNA_GGUF_TYPE_TEXT,
                                        labels, count);
  free(labels);
  return status;
}

/* How far an encoder's tokens see, how many they are, and that it gives labels, if it does. */
static rdna_status put_encoder(const putting *p) {
  const rdna__hf_config *c = p->config;
  const char *model = json_string_value(json_array_get(json_object_get(c->json, "architectures"), 0));
  int64_t positions;
  char full[128];
  RDNA_TRY(rdna__hf_count(c->json, "max_position_embeddings", 0, &positions));
  if (positions <= c->first_position)
    return rdna__fail(RDNA_BAD_DATA, "'max_position_embeddings' is %lld, and the first token has position %lld",
                      (long long)positions, (long long)c->first_position);
  RDNA_TRY(put_count(p, "context_length", positions - c->first_position));
  RDNA_TRY(
      rdna_gguf_writer_put(p->writer, full_name(p, "attention.causal", full), RDNA_GGUF_TYPE_BOOL, &(bool){false}));
  if (!strstr(model, "ForSequenceClassification")) return RDNA_OK;
  RDNA_TRY(put_count(p, "pooling_type", 4)); /* GGUF's rank: labels of the first state */
  return put_label_names(p, json_object_get(c->json, "id2label"));
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
  if (c->architecture->leading_dense) RDNA_TRY(put_leading_dense(p));
  if (c->architecture->gating) RDNA_TRY(put_count(p, "expert_gating_func", c->architecture->gating));
  if (c->architecture->delta) RDNA_TRY(put_recurrent(p));
  if (c->architecture->recurrent && !c->architecture->delta) RDNA_TRY(put_convolutions(p));
  if (strcmp(c->architecture->gguf, "gemma4") == 0) RDNA_TRY(put_two_kinds(p));
  RDNA_TRY(put_sections(p));
  if (c->deepstack > 0) RDNA_TRY(put_count(p, "n_deepstack_layers", c->deepstack));
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
  double epsilon;
  const char *of_norms = config->architecture->epsilon ? config->architecture->epsilon : "rms_norm_eps";
  RDNA_TRY(rdna__hf_number(config->json, of_norms, 0, &epsilon));
  if (!(epsilon > 0)) return rdna__fail(RDNA_BAD_DATA, "'%s' is missing", of_norms);
  bool layer_norm = config->architecture->layer_norm;
  RDNA_TRY(put_number(&p, layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", epsilon));
  RDNA_TRY(put_count(&p, "attention.head_count_kv", config->kv_heads));
  RDNA_TRY(put_count(&p, "attention.key_length", config->head_dim));
  RDNA_TRY(put_count(&p, "attention.value_length", config->head_dim));
  RDNA_TRY(put_count(&p, "vocab_size", config->vocabulary));
  if (config->architecture->encoder) RDNA_TRY(put_encoder(&p));
  if (!config->architecture->encoder || config->architecture->rotary) RDNA_TRY(put_rope(&p));
  RDNA_TRY(put_special(&p));
  for (int i = 0; i < RDNA__HF_LISTS && config->architecture->keys[i]; i++)
    for (const rdna__hf_key_name *row = config->architecture->keys[i]; row->hf; row++) RDNA_TRY(put_row(&p, row));
  return RDNA_OK;
}
