#include <stdio.h>
#include <string.h>

#include "model/image/unet.h"

enum { MOST_CHANNELS = 1 << 14, MOST_BLOCKS = 32 };

/* What is not offered must be off, missing, or as everybody has it. */
static const char *const off[] = {"center_input_sample",  "only_cross_attention",    "dual_cross_attention",
                                  "resnet_skip_time_act", "class_embeddings_concat", "mid_block_only_cross_attention"};
static const char *const absent[] = {
    "encoder_hid_dim",   "encoder_hid_dim_type", "num_attention_heads",
    "class_embed_type",  "num_class_embeds",     "time_embedding_act_fn",
    "timestep_post_act", "cross_attention_norm", "reverse_transformer_layers_per_block"};
static const struct {
  const char *name, *value;
} texts[] = {{"act_fn", "silu"},
             {"resnet_time_scale_shift", "default"},
             {"time_embedding_type", "positional"},
             {"mid_block_type", "UNetMidBlock2DCrossAttn"},
             {"attention_type", "default"}};
static const struct {
  const char *name;
  int value;
} numbers[] = {
    {"downsample_padding", 1}, {"conv_in_kernel", 3}, {"conv_out_kernel", 3}, {"resnet_out_scale_factor", 1}};
static const char *const needed[] = {"mid_block_type", "norm_num_groups"}; /* null says that there is none */

/* What else is read, or says nothing that would change a result: scores are f32 whether they are upcast or not, and
 * tensors say whether projections are matrices. */
static const char read[] =
    "|sample_size|in_channels|out_channels|flip_sin_to_cos|freq_shift|down_block_types|up_block_types|"
    "block_out_channels|layers_per_block|mid_block_scale_factor|norm_num_groups|norm_eps|cross_attention_dim|"
    "transformer_layers_per_block|attention_head_dim|time_embedding_dim|addition_embed_type|addition_time_embed_dim|"
    "projection_class_embeddings_input_dim|upcast_attention|use_linear_projection|dropout|"
    "addition_embed_type_num_heads|time_cond_proj_dim|";
static const char read_of_control[] =
    "|conditioning_channels|conditioning_embedding_out_channels|controlnet_conditioning_channel_order|"
    "global_pool_conditions|";

static bool is_known(const char *name, bool control) {
  char between[64];
  bool found = name[0] == '_'; /* who wrote it, and by what */
  if (snprintf(between, sizeof between, "|%s|", name) >= (int)sizeof between) return found;
  found = found || (!strchr(name, '|') && (strstr(read, between) || (control && strstr(read_of_control, between))));
  for (size_t i = 0; i < sizeof off / sizeof *off; i++) found = found || strcmp(name, off[i]) == 0;
  for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) found = found || strcmp(name, absent[i]) == 0;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) found = found || strcmp(name, texts[i].name) == 0;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) found = found || strcmp(name, numbers[i].name) == 0;
  return found;
}

static rdna_status check_names(json_t *json, bool control) {
  const char *name;
  const json_t *value;
  json_object_foreach(json, name, value) {
    if (!json_is_null(value) && !is_known(name, control))
      return rdna__fail(RDNA_UNSUPPORTED, "the setting '%.80s' is not known, and might make it another network", name);
  }
  return RDNA_OK;
}

static rdna_status check_values(const json_t *json) {
  for (size_t i = 0; i < sizeof off / sizeof *off; i++) RDNA_TRY(rdna__setting_is_flag(json, off[i], false));
  for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) RDNA_TRY(rdna__setting_is_null(json, absent[i]));
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    RDNA_TRY(rdna__setting_is(json, texts[i].name, texts[i].value));
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    const json_t *value = json_object_get(json, numbers[i].name);
    if (value && !json_is_null(value) && !(json_is_number(value) && json_number_value(value) == numbers[i].value))
      return rdna__fail(RDNA_UNSUPPORTED, "the setting '%s' is not %d, as is known", numbers[i].name, numbers[i].value);
  }
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
    if (json_is_null(json_object_get(json, needed[i])))
      return rdna__fail(RDNA_UNSUPPORTED, "the setting '%s' is null; networks without are not known", needed[i]);
  return RDNA_OK;
}

/* One value for each stage, from a list of them or one for all; |initial| where it is missing. */
static rdna_status of_stages(const json_t *json, const char *name, int initial, int high, int stages,
                             int out[RDNA__UNET_STAGES]) {
  const json_t *value = json_object_get(json, name);
  int count = 1;
  out[0] = initial;
  if (value && !json_is_null(value))
    RDNA_TRY(rdna__setting_wholes(json, name, 1, high, RDNA__UNET_STAGES, out, &count));
  if (count != stages && json_is_array(value))
    return rdna__fail(RDNA_BAD_DATA, "the setting '%s' has %d values for %d stages", name, count, stages);
  for (int i = count; i < stages; i++) out[i] = out[0];
  return RDNA_OK;
}

/* Which stages attend, from the names of their kinds. */
static rdna_status read_kinds(const json_t *json, const char *name, const char *plain, const char *attends, int stages,
                              bool out[RDNA__UNET_STAGES]) {
  const char *kinds[RDNA__UNET_STAGES];
  int count;
  RDNA_TRY(rdna__setting_texts(json, name, RDNA__UNET_STAGES, kinds, &count));
  if (count != stages)
    return rdna__fail(RDNA_BAD_DATA, "the setting '%s' has %d values for %d stages", name, count, stages);
  for (int i = 0; i < count; i++) {
    out[i] = strcmp(kinds[i], attends) == 0;
    if (!out[i] && strcmp(kinds[i], plain) != 0)
      return rdna__fail(RDNA_UNSUPPORTED, "value %d of the setting '%s' is '%.80s'; %s and %s are known", i, name,
                        kinds[i], plain, attends);
  }
  return RDNA_OK;
}

static rdna_status read_stages(const json_t *json, bool control, rdna__unet_settings *out) {
  int widths[RDNA__UNET_STAGES];
  bool up[RDNA__UNET_STAGES] = {false};
  RDNA_TRY(rdna__setting_wholes(json, "block_out_channels", 1, MOST_CHANNELS, RDNA__UNET_STAGES, out->channels,
                                &out->stages));
  RDNA_TRY(of_stages(json, "layers_per_block", 2, RDNA__UNET_LAYERS, out->stages, out->layers));
  RDNA_TRY(of_stages(json, "transformer_layers_per_block", 1, MOST_BLOCKS, out->stages, out->blocks));
  RDNA_TRY(of_stages(json, "attention_head_dim", 8, MOST_CHANNELS, out->stages, out->heads));
  RDNA_TRY(of_stages(json, "cross_attention_dim", 1280, MOST_CHANNELS, out->stages, widths));
  RDNA_TRY(read_kinds(json, "down_block_types", "DownBlock2D", "CrossAttnDownBlock2D", out->stages, out->down_attends));
  if (!control) RDNA_TRY(read_kinds(json, "up_block_types", "UpBlock2D", "CrossAttnUpBlock2D", out->stages, up));
  out->text_width = widths[0];
  for (int i = 0; i < out->stages; i++) {
    out->up_attends[i] = up[out->stages - 1 - i];
    if (widths[i] != out->text_width)
      return rdna__fail(RDNA_UNSUPPORTED, "the setting 'cross_attention_dim' has several values; one for all is known");
    /* its name notwithstanding, it counts heads */
    if (out->channels[i] % out->heads[i] != 0)
      return rdna__fail(RDNA_BAD_DATA, "the %d channels of stage %d are no whole number of %d heads", out->channels[i],
                        i, out->heads[i]);
  }
  return RDNA_OK;
}

/* What is embedded beside the timestep. */
static rdna_status read_added(const json_t *json, rdna__unet_settings *out) {
  const char *kind;
  RDNA_TRY(rdna__setting_text(json, "addition_embed_type", "", &kind));
  if (strcmp(kind, "text_time") == 0) {
    RDNA_TRY(rdna__setting_whole(json, "addition_time_embed_dim", 0, 1, MOST_CHANNELS, &out->number_width));
    return rdna__setting_whole(json, "projection_class_embeddings_input_dim", 0, 1, 1 << 16, &out->added_width);
  }
  RDNA_TRY(rdna__setting_is_null(json, "addition_embed_type"));
  RDNA_TRY(rdna__setting_is_null(json, "addition_time_embed_dim"));
  return rdna__setting_is_null(json, "projection_class_embeddings_input_dim");
}

static rdna_status read_sample(const json_t *json, rdna__unet_settings *out) {
  int sides[2] = {0}, count = 1;
  const json_t *value = json_object_get(json, "sample_size");
  if (value && !json_is_null(value))
    RDNA_TRY(rdna__setting_wholes(json, "sample_size", 1, MOST_CHANNELS, 2, sides, &count));
  out->sample = count == 1 || sides[0] == sides[1] ? sides[0] : 0;
  return RDNA_OK;
}

static rdna_status read_half(json_t *json, bool control, rdna__unet_settings *out) {
  *out = (rdna__unet_settings){0};
  RDNA_TRY(rdna__setting_is(json, "_class_name", control ? "ControlNetModel" : "UNet2DConditionModel"));
  RDNA_TRY(check_names(json, control));
  RDNA_TRY(check_values(json));
  RDNA_TRY(read_stages(json, control, out));
  RDNA_TRY(read_sample(json, out));
  RDNA_TRY(rdna__setting_whole(json, "in_channels", 4, 1, MOST_CHANNELS, &out->in_channels));
  RDNA_TRY(rdna__setting_whole(json, "out_channels", 4, 1, MOST_CHANNELS, &out->out_channels));
  RDNA_TRY(rdna__setting_whole(json, "norm_num_groups", 32, 1, MOST_CHANNELS, &out->groups));
  RDNA_TRY(rdna__setting_number(json, "norm_eps", 1e-5, 0, 1, &out->epsilon));
  RDNA_TRY(rdna__setting_number(json, "mid_block_scale_factor", 1, 1e-3, 1e3, &out->middle_divisor));
  RDNA_TRY(rdna__setting_flag(json, "flip_sin_to_cos", true, &out->cosines_first));
  RDNA_TRY(rdna__setting_number(json, "freq_shift", 0, 0, 1, &out->shift));
  RDNA_TRY(
      rdna__setting_whole(json, "time_embedding_dim", 4 * out->channels[0], 1, 4 * MOST_CHANNELS, &out->time_width));
  RDNA_TRY(read_added(json, out));
  const json_t *guidance = json_object_get(json, "time_cond_proj_dim");
  if (guidance && !json_is_null(guidance))
    RDNA_TRY(rdna__setting_whole(json, "time_cond_proj_dim", 0, 4, MOST_CHANNELS, &out->guidance_width));
  int least = out->added_width && out->number_width < out->channels[0] ? out->number_width : out->channels[0];
  if (least / 2 > out->shift) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "numbers are embedded in %d values, which are too few", least);
}

rdna_status rdna__unet_settings_read(json_t *json, rdna__unet_settings *out) { return read_half(json, false, out); }

rdna_status rdna__control_settings_read(json_t *json, rdna__unet_settings *out_half, rdna__control_settings *out) {
  static const int usual[] = {16, 32, 96, 256};
  const json_t *channels = json_object_get(json, "conditioning_embedding_out_channels");
  const char *order;
  int reads;
  *out = (rdna__control_settings){.levels = sizeof usual / sizeof *usual};
  RDNA_TRY(read_half(json, true, out_half));
  RDNA_TRY(rdna__setting_is_flag(json, "global_pool_conditions", false));
  RDNA_TRY(rdna__setting_whole(json, "conditioning_channels", 3, 1, MOST_CHANNELS, &reads));
  RDNA_TRY(rdna__setting_text(json, "controlnet_conditioning_channel_order", "rgb", &order));
  out->reversed = strcmp(order, "bgr") == 0;
  if (reads != 3 || (!out->reversed && strcmp(order, "rgb") != 0))
    return rdna__fail(RDNA_UNSUPPORTED, "it reads pictures of %d channels as '%.40s'; 3 as rgb or bgr are known", reads,
                      order);
  memcpy(out->channels, usual, sizeof usual);
  if (!channels || json_is_null(channels)) return RDNA_OK;
  return rdna__setting_wholes(json, "conditioning_embedding_out_channels", 1, MOST_CHANNELS, RDNA__CONTROL_LEVELS,
                              out->channels, &out->levels);
}
