#include <string.h>

#include "model/image/flux.h"

enum { MOST_WIDTH = 1 << 15, MOST_BLOCKS = RDNA__FLUX_MOST_BLOCKS, MOST_EMBEDDED = 1 << 10, MOST_SETTINGS = 14 };

/* What is read below of each kind, and what diffusers writes beside it. */
static const struct kind {
  const char *name;
  int axes, published[RDNA__DIT_AXES]; /* of a head's values */
  const char *known[MOST_SETTINGS];
} kinds[] = {
    [RDNA__FLUX_1] = {"FluxTransformer2DModel",
                      3,
                      {16, 56, 56},
                      {"patch_size", "in_channels", "out_channels", "num_layers", "num_single_layers",
                       "attention_head_dim", "num_attention_heads", "joint_attention_dim", "pooled_projection_dim",
                       "guidance_embeds", "axes_dims_rope"}},
    [RDNA__FLUX_QWEN] = {"QwenImageTransformer2DModel",
                         3,
                         {16, 56, 56},
                         {"patch_size", "in_channels", "out_channels", "num_layers", "attention_head_dim",
                          "num_attention_heads", "joint_attention_dim", "guidance_embeds", "axes_dims_rope",
                          "zero_cond_t", "use_additional_t_cond", "use_layer3d_rope",
                          "pooled_projection_dim"}}, /* the last of published folders, which nobody reads */
    [RDNA__FLUX_2] = {"Flux2Transformer2DModel",
                      4,
                      {32, 32, 32, 32},
                      {"patch_size", "in_channels", "out_channels", "num_layers", "num_single_layers",
                       "attention_head_dim", "num_attention_heads", "joint_attention_dim", "timestep_guidance_channels",
                       "mlp_ratio", "axes_dims_rope", "rope_theta", "eps", "guidance_embeds"}},
    [RDNA__FLUX_SD3] = {"SD3Transformer2DModel",
                        0,
                        {0},
                        {"sample_size", "patch_size", "in_channels", "out_channels", "num_layers", "attention_head_dim",
                         "num_attention_heads", "joint_attention_dim", "caption_projection_dim",
                         "pooled_projection_dim", "pos_embed_max_size", "dual_attention_layers", "qk_norm"}}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static rdna_status find_kind(const json_t *json, rdna__flux_kind *out) {
  const char *name;
  RDNA_TRY(rdna__setting_text(json, "_class_name", kinds[RDNA__FLUX_1].name, &name));
  for (int i = 0; i < KINDS; i++) {
    *out = (rdna__flux_kind)i;
    if (strcmp(name, kinds[i].name) == 0) return RDNA_OK;
  }
  return rdna__fail(RDNA_UNSUPPORTED, "the setting '_class_name' is '%.80s'; %s, %s, %s and %s are known", name,
                    kinds[0].name, kinds[1].name, kinds[2].name, kinds[3].name);
}

static rdna_status check_names(json_t *json, const struct kind *kind) {
  const char *name;
  const json_t *value;
  json_object_foreach(json, name, value) {
    bool found = name[0] == '_' || json_is_null(value);
    for (int i = 0; i < MOST_SETTINGS && kind->known[i]; i++) found = found || strcmp(name, kind->known[i]) == 0;
    if (!found)
      return rdna__fail(RDNA_UNSUPPORTED, "the setting '%.80s' is not known, and might make it another network", name);
  }
  return RDNA_OK;
}

static rdna_status read_axes(const json_t *json, rdna__flux_settings *out) {
  const struct kind *kind = &kinds[out->kind];
  int count = kind->axes, sum = 0;
  const json_t *value = json_object_get(json, "axes_dims_rope");
  memcpy(out->axes, kind->published, sizeof kind->published);
  if (value && !json_is_null(value))
    RDNA_TRY(rdna__setting_wholes(json, "axes_dims_rope", 0, 512, RDNA__DIT_AXES, out->axes, &count));
  for (int i = 0; i < count; i++) sum += out->axes[i];
  for (int i = 0; i < count; i++)
    if (out->axes[i] % 2 != 0)
      return rdna__fail(RDNA_BAD_DATA, "the setting 'axes_dims_rope' has an odd number of values, %d", out->axes[i]);
  for (int i = count; i < RDNA__DIT_AXES; i++) out->axes[i] = 0;
  if (count == kind->axes && sum == out->head) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA,
                    "the setting 'axes_dims_rope' has %d axes of %d values together; %d of a head's %d "
                    "are asked for",
                    count, sum, kind->axes, out->head);
}

/* What all kinds have, by other numbers where nobody says them. */
static rdna_status read_sizes(const json_t *json, const rdna__flux_settings *initial, rdna__flux_settings *out) {
  int patch;
  RDNA_TRY(rdna__setting_whole(json, "in_channels", initial->in_channels, 1, MOST_WIDTH, &out->in_channels));
  RDNA_TRY(rdna__setting_whole(json, "num_layers", initial->doubles, 0, MOST_BLOCKS, &out->doubles));
  RDNA_TRY(rdna__setting_whole(json, "attention_head_dim", initial->head, 2, 512, &out->head));
  RDNA_TRY(rdna__setting_whole(json, "num_attention_heads", initial->heads, 1, 1 << 10, &out->heads));
  RDNA_TRY(rdna__setting_whole(json, "joint_attention_dim", initial->text_width, 1, MOST_WIDTH, &out->text_width));
  RDNA_TRY(rdna__setting_whole(json, "patch_size", initial->patch, 1, 64, &patch));
  if (patch != initial->patch)
    return rdna__fail(RDNA_UNSUPPORTED, "the setting 'patch_size' is %d, not %d, as is known", patch, initial->patch);
  return RDNA_OK;
}

static rdna_status read_flux(const json_t *json, rdna__flux_settings *out) {
  const rdna__flux_settings initial = {.in_channels = 64,
                                       .doubles = 19,
                                       .heads = 24,
                                       .head = 128,
                                       .text_width = 4096,
                                       .patch = 1}; /* its tokens are made before */
  RDNA_TRY(read_sizes(json, &initial, out));
  RDNA_TRY(rdna__setting_whole(json, "out_channels", out->in_channels, 1, MOST_WIDTH, &out->out_channels));
  RDNA_TRY(rdna__setting_whole(json, "num_single_layers", 38, 0, MOST_BLOCKS, &out->singles));
  RDNA_TRY(rdna__setting_whole(json, "pooled_projection_dim", 768, 1, MOST_WIDTH, &out->pooled_width));
  RDNA_TRY(rdna__setting_flag(json, "guidance_embeds", false, &out->guided));
  out->patch = 2;
  out->biased = true;
  out->hidden = 4 * out->heads * out->head;
  return RDNA_OK;
}

static rdna_status read_qwen(const json_t *json, rdna__flux_settings *out) {
  static const char *const off[] = {"guidance_embeds", "use_additional_t_cond", "use_layer3d_rope"};
  const rdna__flux_settings initial = {
      .in_channels = 64, .doubles = 60, .heads = 24, .head = 128, .text_width = 3584, .patch = 2};
  int made; /* of a place */
  RDNA_TRY(read_sizes(json, &initial, out));
  for (size_t i = 0; i < sizeof off / sizeof *off; i++) RDNA_TRY(rdna__setting_is_flag(json, off[i], false));
  RDNA_TRY(rdna__setting_whole(json, "out_channels", 16, 1, MOST_WIDTH / 4, &made));
  out->patch = 2;
  out->out_channels = 4 * made;
  out->biased = true;
  out->hidden = 4 * out->heads * out->head;
  return rdna__setting_flag(json, "zero_cond_t", false, &out->stills);
}

static rdna_status read_flux2(const json_t *json, rdna__flux_settings *out) {
  const rdna__flux_settings initial = {
      .in_channels = 128, .doubles = 8, .heads = 48, .head = 128, .text_width = 15360, .patch = 1};
  double ratio;
  RDNA_TRY(read_sizes(json, &initial, out));
  RDNA_TRY(rdna__setting_whole(json, "out_channels", out->in_channels, 1, MOST_WIDTH, &out->out_channels));
  RDNA_TRY(rdna__setting_whole(json, "num_single_layers", 48, 0, MOST_BLOCKS, &out->singles));
  RDNA_TRY(rdna__setting_whole(json, "timestep_guidance_channels", 256, 2, MOST_EMBEDDED, &out->embedded));
  RDNA_TRY(rdna__setting_number(json, "mlp_ratio", 3, 1e-3, 64, &ratio));
  RDNA_TRY(rdna__setting_number(json, "rope_theta", 2000, 1, 1e12, &out->theta));
  RDNA_TRY(rdna__setting_number(json, "eps", 1e-6, 1e-12, 1, &out->epsilon));
  RDNA_TRY(rdna__setting_flag(json, "guidance_embeds", true, &out->guided));
  out->patch = 1;
  out->gates = out->shares = true;
  out->hidden = (int)(out->heads * out->head * ratio);
  if (out->hidden < 1 || out->embedded % 2 != 0)
    return rdna__fail(RDNA_BAD_DATA,
                      "%d values of 'timestep_guidance_channels', and %d by 'mlp_ratio'; the first is "
                      "even, and the other at least 1",
                      out->embedded, out->hidden);
  return RDNA_OK;
}

static rdna_status read_dual(const json_t *json, rdna__flux_settings *out) {
  int layers[MOST_BLOCKS], count = 0;
  const json_t *list = json_object_get(json, "dual_attention_layers");
  if (!list || json_is_null(list) || (json_is_array(list) && json_array_size(list) == 0)) return RDNA_OK;
  RDNA_TRY(rdna__setting_wholes(json, "dual_attention_layers", 0, out->doubles - 1, out->doubles, layers, &count));
  for (int i = 0; i < count; i++) out->dual[layers[i]] = true;
  return RDNA_OK;
}

static rdna_status read_sd3(const json_t *json, rdna__flux_settings *out) {
  const rdna__flux_settings initial = {
      .in_channels = 16, .doubles = 18, .heads = 18, .head = 64, .text_width = 4096, .patch = 2};
  int made, caption; /* channels of a place; values of a text's token */
  const json_t *norm = json_object_get(json, "qk_norm");
  RDNA_TRY(rdna__setting_is(json, "qk_norm", "rms_norm"));
  RDNA_TRY(read_sizes(json, &initial, out));
  RDNA_TRY(rdna__setting_whole(json, "num_layers", 18, 1, MOST_BLOCKS, &out->doubles));
  RDNA_TRY(rdna__setting_whole(json, "out_channels", 16, 1, MOST_WIDTH / 4, &made));
  RDNA_TRY(rdna__setting_whole(json, "caption_projection_dim", 1152, 1, MOST_WIDTH, &caption));
  RDNA_TRY(rdna__setting_whole(json, "pooled_projection_dim", 2048, 1, MOST_WIDTH, &out->pooled_width));
  RDNA_TRY(rdna__setting_whole(json, "pos_embed_max_size", 96, 1, 1 << 12, &out->positions));
  RDNA_TRY(rdna__setting_whole(json, "sample_size", 128, 2, 1 << 13, &out->sample));
  out->patch = 2;
  out->in_channels *= 4;
  out->out_channels = 4 * made;
  out->biased = true;
  out->normed = norm && !json_is_null(norm);
  out->hidden = 4 * out->heads * out->head;
  if (caption != out->heads * out->head)
    return rdna__fail(RDNA_BAD_DATA, "the setting 'caption_projection_dim' is %d, and a token has %d values", caption,
                      out->heads * out->head);
  return read_dual(json, out);
}

rdna_status rdna__flux_settings_read(json_t *json, rdna__flux_settings *out) {
  static rdna_status (*const readers[])(const json_t *, rdna__flux_settings *) = {[RDNA__FLUX_1] = read_flux,
                                                                                  [RDNA__FLUX_QWEN] = read_qwen,
                                                                                  [RDNA__FLUX_2] = read_flux2,
                                                                                  [RDNA__FLUX_SD3] = read_sd3};
  *out = (rdna__flux_settings){.embedded = 256, .theta = 10000, .epsilon = 1e-6, .normed = true};
  RDNA_TRY(find_kind(json, &out->kind));
  RDNA_TRY(check_names(json, &kinds[out->kind]));
  RDNA_TRY(readers[out->kind](json, out));
  if (!out->positions) RDNA_TRY(read_axes(json, out));
  out->width = out->heads * out->head;
  if (out->width > MOST_WIDTH)
    return rdna__fail(RDNA_BAD_DATA, "%d heads of %d values; up to %d values together are known", out->heads, out->head,
                      MOST_WIDTH);
  int places = out->patch * out->patch;
  if (out->in_channels % places == 0 && out->out_channels % places == 0) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "tokens of %d values become %d; both are of %d places, and so multiples of %d",
                    out->in_channels, out->out_channels, places, places);
}
