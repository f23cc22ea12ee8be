/* Reads settings of a transformer, or of a schedule of straight lines whose levels are looked at: published ones, of
 * which the input changes some. The first byte chooses which of them; then a byte says which setting, and the
 * JSON behind it up to a byte of zero is what it says. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/image/flow.h"
#include "model/image/flux.h"
#include "model/image/zimage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FLUX, SCHEDULE, ZIMAGE, QWEN, FLUX_2, SD3, KINDS, MOST_NAMES = 16 };

static const char *const published[KINDS] = {
    "{\"_class_name\":\"FluxTransformer2DModel\",\"axes_dims_rope\":[16,56,56],\"guidance_embeds\":true}",
    "{\"_class_name\":\"FlowMatchEulerDiscreteScheduler\",\"use_dynamic_shifting\":true,\"shift\":3.0}",
    "{\"_class_name\":\"ZImageTransformer2DModel\",\"all_patch_size\":[2],\"axes_dims\":[32,48,48]}",
    "{\"_class_name\":\"QwenImageTransformer2DModel\",\"guidance_embeds\":false}",
    "{\"_class_name\":\"Flux2Transformer2DModel\",\"guidance_embeds\":false,\"mlp_ratio\":3.0}",
    "{\"_class_name\":\"SD3Transformer2DModel\",\"num_layers\":24,\"qk_norm\":\"rms_norm\",\"dual_attention_layers\":["
    "0,3],"
    "\"num_attention_heads\":24,\"caption_projection_dim\":1536,\"pos_embed_max_size\":384}"};
/* At the end of a row nothing is changed. */
static const char *const names[KINDS][MOST_NAMES] = {
    {"_class_name", "patch_size", "in_channels", "out_channels", "num_layers", "num_single_layers",
     "attention_head_dim", "num_attention_heads", "joint_attention_dim", "pooled_projection_dim", "guidance_embeds",
     "axes_dims_rope", "strange"},
    {"_class_name", "shift", "use_dynamic_shifting", "base_shift", "max_shift", "base_image_seq_len",
     "max_image_seq_len", "time_shift_type", "shift_terminal", "use_karras_sigmas", "use_exponential_sigmas",
     "num_train_timesteps", "invert_sigmas"},
    {"_class_name", "all_patch_size", "all_f_patch_size", "in_channels", "dim", "n_layers", "n_refiner_layers",
     "n_heads", "n_kv_heads", "norm_eps", "qk_norm", "cap_feat_dim", "rope_theta", "axes_dims", "axes_lens", "strange"},
    {"_class_name", "patch_size", "in_channels", "out_channels", "num_layers", "attention_head_dim",
     "num_attention_heads", "joint_attention_dim", "guidance_embeds", "axes_dims_rope", "zero_cond_t",
     "use_additional_t_cond", "use_layer3d_rope", "strange"},
    {"_class_name", "patch_size", "in_channels", "out_channels", "num_layers", "num_single_layers",
     "attention_head_dim", "num_attention_heads", "joint_attention_dim", "timestep_guidance_channels", "mlp_ratio",
     "axes_dims_rope", "rope_theta", "eps"},
    {"_class_name", "sample_size", "patch_size", "in_channels", "out_channels", "num_layers", "attention_head_dim",
     "num_attention_heads", "joint_attention_dim", "caption_projection_dim", "pooled_projection_dim",
     "pos_embed_max_size", "dual_attention_layers", "qk_norm", "strange"}};

static void check_transformer(const rdna__flux_settings *s) {
  int sum = 0, places = s->patch * s->patch;
  for (int i = 0; i < RDNA__DIT_AXES; i++) sum += s->axes[i];
  for (int i = s->doubles; i < RDNA__FLUX_MOST_BLOCKS; i++)
    if (s->dual[i]) abort();
  if (sum != (s->positions ? 0 : s->head) || s->width != s->heads * s->head) abort();
  if (places < 1 || s->in_channels % places || s->out_channels % places) abort();
  if (s->hidden < 1 || s->embedded < 2 || !(s->theta >= 1) || !(s->epsilon > 0)) abort();
}

static void check_zimage(const rdna__zimage_settings *s) {
  int sum = 0;
  for (int i = 0; i < RDNA__ZIMAGE_AXES; i++) sum += s->axes[i];
  if (sum * s->heads != s->width || s->layers < 1 || s->hidden < 1) abort();
}

static rdna_status read_transformer(int which, json_t *json) {
  rdna__flux_settings flux;
  rdna__zimage_settings zimage;
  if (which == ZIMAGE) {
    RDNA_TRY(rdna__zimage_settings_read(json, &zimage));
    check_zimage(&zimage);
    return RDNA_OK;
  }
  RDNA_TRY(rdna__flux_settings_read(json, &flux));
  check_transformer(&flux);
  return RDNA_OK;
}

static void check_levels(const rdna_image_flow *f) {
  int steps = rdna_image_flow_steps(f);
  for (int i = 0; i <= steps; i++) {
    double sigma = rdna_image_flow_sigma(f, i);
    if (!(sigma >= -1e-9 && sigma <= 1 + 1e-9)) abort();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int which = size ? data[0] % KINDS : 0, steps = size > 1 ? data[1] : 0;
  json_t *json = json_loads(published[which], 0, NULL);
  size_t skipped = size < 2 ? size : 2;
  data += skipped;
  size -= skipped;
  while (json && size > 1) {
    const uint8_t *end = memchr(data + 1, 0, size - 1);
    size_t length = end ? (size_t)(end - data) : size;
    json_t *value = json_loadb((const char *)data + 1, length - 1, JSON_DECODE_ANY, NULL);
    const char *name = names[which][data[0] % MOST_NAMES];
    if (name && value) json_object_set(json, name, value);
    if (value) json_decref(value);
    data += length + (end != NULL);
    size -= length + (end != NULL);
  }
  rdna_image_flow *flow = NULL;
  char *text = json ? json_dumps(json, 0) : NULL;
  rdna_status status = RDNA_OK;
  if (text && which != SCHEDULE) {
    status = read_transformer(which, json);
  } else if (text) {
    status = rdna__flow_create(text, steps, 1 + steps * 40, steps % 2 ? FLOW_LEVELS_TRAINED : FLOW_LEVELS_EVEN, &flow);
    if (status == RDNA_OK) check_levels(flow);
  }
  if (status != RDNA_OK && !*rdna_last_error()) abort();
  rdna_image_flow_release(flow);
  free(text);
  json_decref(json);
  return 0;
}
