#include <string.h>

#include "model/image/flux.h"

enum { MOST_WIDTH = 1 << 15, MOST_BLOCKS = 256, FOUR = 4 };

/* What is read below, and what diffusers writes beside it. */
static const char *const known[] = {"patch_size",          "in_channels",         "out_channels",
                                    "num_layers",          "num_single_layers",   "attention_head_dim",
                                    "num_attention_heads", "joint_attention_dim", "pooled_projection_dim",
                                    "guidance_embeds",     "axes_dims_rope"};

static rdna_status read_axes(const json_t *json, rdna__flux_settings *out) {
  static const int published[RDNA__FLUX_AXES] = {16, 56, 56};
  int count = RDNA__FLUX_AXES, sum = 0;
  const json_t *value = json_object_get(json, "axes_dims_rope");
  memcpy(out->axes, published, sizeof published);
  if (value && !json_is_null(value))
    RDNA_TRY(rdna__setting_wholes(json, "axes_dims_rope", 0, 512, RDNA__FLUX_AXES, out->axes, &count));
  for (int i = 0; i < count; i++) sum += out->axes[i];
  for (int i = 0; i < count; i++)
    if (out->axes[i] % 2 != 0)
      return rdna__fail(RDNA_BAD_DATA, "the setting 'axes_dims_rope' has an odd number of values, %d", out->axes[i]);
  if (count == RDNA__FLUX_AXES && sum == out->head) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA,
                    "the setting 'axes_dims_rope' has %d axes of %d values together; 3 of a head's %d "
                    "are asked for",
                    count, sum, out->head);
}

rdna_status rdna__flux_settings_read(json_t *json, rdna__flux_settings *out) {
  int patch;
  *out = (rdna__flux_settings){0};
  RDNA_TRY(rdna__setting_is(json, "_class_name", "FluxTransformer2DModel"));
  RDNA_TRY(rdna__settings_are(json, known, sizeof known / sizeof *known));
  RDNA_TRY(rdna__setting_whole(json, "patch_size", 1, 1, 64, &patch));
  if (patch != 1) return rdna__fail(RDNA_UNSUPPORTED, "the setting 'patch_size' is %d, not 1, as is known", patch);
  RDNA_TRY(rdna__setting_whole(json, "in_channels", 64, 1, MOST_WIDTH, &out->in_channels));
  RDNA_TRY(rdna__setting_whole(json, "out_channels", out->in_channels, 1, MOST_WIDTH, &out->out_channels));
  RDNA_TRY(rdna__setting_whole(json, "num_layers", 19, 0, MOST_BLOCKS, &out->doubles));
  RDNA_TRY(rdna__setting_whole(json, "num_single_layers", 38, 0, MOST_BLOCKS, &out->singles));
  RDNA_TRY(rdna__setting_whole(json, "attention_head_dim", 128, 2, 512, &out->head));
  RDNA_TRY(rdna__setting_whole(json, "num_attention_heads", 24, 1, 1 << 10, &out->heads));
  RDNA_TRY(rdna__setting_whole(json, "joint_attention_dim", 4096, 1, MOST_WIDTH, &out->text_width));
  RDNA_TRY(rdna__setting_whole(json, "pooled_projection_dim", 768, 1, MOST_WIDTH, &out->pooled_width));
  RDNA_TRY(rdna__setting_flag(json, "guidance_embeds", false, &out->guided));
  RDNA_TRY(read_axes(json, out));
  out->width = out->heads * out->head;
  if (out->width > MOST_WIDTH)
    return rdna__fail(RDNA_BAD_DATA, "%d heads of %d values; up to %d values together are known", out->heads, out->head,
                      MOST_WIDTH);
  if (out->in_channels % FOUR == 0 && out->out_channels % FOUR == 0) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "tokens of %d values become %d; both are of four places, and so multiples of 4",
                    out->in_channels, out->out_channels);
}
