#include <string.h>

#include "model/image/zimage.h"

enum { MOST_WIDTH = 1 << 15, MOST_BLOCKS = 256, MOST_LENGTH = 1 << 16 };

/* What is read below, and what diffusers writes beside it. */
static const char *const known[] = {"all_patch_size",   "all_f_patch_size", "in_channels", "dim",       "n_layers",
                                    "n_refiner_layers", "n_heads",          "n_kv_heads",  "norm_eps",  "qk_norm",
                                    "cap_feat_dim",     "rope_theta",       "t_scale",     "axes_dims", "axes_lens"};

/* One size of patches, |size|, or nothing. */
static rdna_status check_patch(const json_t *json, const char *name, int size) {
  int value = size, count = 1;
  const json_t *list = json_object_get(json, name);
  if (list && !json_is_null(list)) RDNA_TRY(rdna__setting_wholes(json, name, 1, 64, 1, &value, &count));
  if (value == size) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "the setting '%s' is %d, not %d, as is known", name, value, size);
}

static rdna_status read_three(const json_t *json, const char *name, const int initial[RDNA__ZIMAGE_AXES], int high,
                              int out[RDNA__ZIMAGE_AXES]) {
  int count = RDNA__ZIMAGE_AXES;
  const json_t *list = json_object_get(json, name);
  memcpy(out, initial, RDNA__ZIMAGE_AXES * sizeof *out);
  if (list && !json_is_null(list)) RDNA_TRY(rdna__setting_wholes(json, name, 0, high, RDNA__ZIMAGE_AXES, out, &count));
  if (count == RDNA__ZIMAGE_AXES) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "the setting '%s' has %d values, not 3", name, count);
}

static rdna_status check_heads(const rdna__zimage_settings *s, int key_heads) {
  int sum = 0;
  if (s->width % s->heads != 0 || s->width / s->heads > 512)
    return rdna__fail(RDNA_BAD_DATA, "a 'dim' of %d is no whole number of %d 'n_heads' of up to 512 values", s->width,
                      s->heads);
  if (key_heads != s->heads)
    return rdna__fail(RDNA_UNSUPPORTED, "the setting 'n_kv_heads' is %d, not the %d 'n_heads', as is known", key_heads,
                      s->heads);
  for (int i = 0; i < RDNA__ZIMAGE_AXES; i++) {
    sum += s->axes[i];
    if (s->axes[i] % 2 != 0)
      return rdna__fail(RDNA_BAD_DATA, "the setting 'axes_dims' has an odd number of values, %d", s->axes[i]);
  }
  if (sum == s->width / s->heads) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "the setting 'axes_dims' has axes of %d values together; a head has %d", sum,
                    s->width / s->heads);
}

rdna_status rdna__zimage_settings_read(json_t *json, rdna__zimage_settings *out) {
  static const int axes[] = {32, 48, 48}, lengths[] = {1024, 512, 512};
  int key_heads;
  bool normed;
  *out = (rdna__zimage_settings){0};
  RDNA_TRY(rdna__setting_is(json, "_class_name", "ZImageTransformer2DModel"));
  RDNA_TRY(rdna__settings_are(json, known, sizeof known / sizeof *known));
  RDNA_TRY(check_patch(json, "all_patch_size", 2));
  RDNA_TRY(check_patch(json, "all_f_patch_size", 1));
  RDNA_TRY(rdna__setting_flag(json, "qk_norm", true, &normed));
  if (!normed) return rdna__fail(RDNA_UNSUPPORTED, "the setting 'qk_norm' is false; true is known");
  RDNA_TRY(rdna__setting_whole(json, "in_channels", 16, 1, 1 << 12, &out->channels));
  RDNA_TRY(rdna__setting_whole(json, "dim", 3840, 1, MOST_WIDTH, &out->width));
  RDNA_TRY(rdna__setting_whole(json, "n_layers", 30, 1, MOST_BLOCKS, &out->layers));
  RDNA_TRY(rdna__setting_whole(json, "n_refiner_layers", 2, 0, MOST_BLOCKS, &out->refiners));
  RDNA_TRY(rdna__setting_whole(json, "n_heads", 30, 1, 1 << 10, &out->heads));
  RDNA_TRY(rdna__setting_whole(json, "n_kv_heads", 30, 1, 1 << 10, &key_heads));
  RDNA_TRY(rdna__setting_whole(json, "cap_feat_dim", 2560, 1, MOST_WIDTH, &out->text_width));
  RDNA_TRY(rdna__setting_number(json, "norm_eps", 1e-5, 0, 1, &out->epsilon));
  RDNA_TRY(rdna__setting_number(json, "rope_theta", 256, 1, 1e9, &out->theta));
  RDNA_TRY(rdna__setting_number(json, "t_scale", 1000, 1e-3, 1e6, &out->timestep_scale));
  RDNA_TRY(read_three(json, "axes_dims", axes, 512, out->axes));
  RDNA_TRY(read_three(json, "axes_lens", lengths, MOST_LENGTH, out->lengths));
  out->hidden = (int)((double)out->width / 3 * 8);
  return check_heads(out, key_heads);
}
