/* Reads settings of FLUX's transformer, or of a schedule of straight lines whose levels are looked at: published ones,
 * of which the input changes some. The first byte chooses which of the two; then a byte says which setting, and the
 * JSON behind it up to a byte of zero is what it says. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/image/flux.h"
#include "rdna/image_flow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const published[] = {
    "{\"_class_name\":\"FluxTransformer2DModel\",\"axes_dims_rope\":[16,56,56],\"guidance_embeds\":true}",
    "{\"_class_name\":\"FlowMatchEulerDiscreteScheduler\",\"use_dynamic_shifting\":true,\"shift\":3.0}"};
static const char *const names[2][13] = {
    {"_class_name", "patch_size", "in_channels", "out_channels", "num_layers", "num_single_layers",
     "attention_head_dim", "num_attention_heads", "joint_attention_dim", "pooled_projection_dim", "guidance_embeds",
     "axes_dims_rope", "strange"},
    {"_class_name", "shift", "use_dynamic_shifting", "base_shift", "max_shift", "base_image_seq_len",
     "max_image_seq_len", "time_shift_type", "shift_terminal", "use_karras_sigmas", "use_exponential_sigmas",
     "num_train_timesteps", "invert_sigmas"}};

static void check_transformer(const rdna__flux_settings *s) {
  int sum = 0;
  for (int i = 0; i < RDNA__FLUX_AXES; i++) sum += s->axes[i];
  if (sum != s->head || s->width != s->heads * s->head || s->in_channels % 4 || s->out_channels % 4) abort();
}

static void check_levels(const rdna_image_flow *f) {
  int steps = rdna_image_flow_steps(f);
  for (int i = 0; i <= steps; i++) {
    double sigma = rdna_image_flow_sigma(f, i);
    if (!(sigma >= -1e-9 && sigma <= 1 + 1e-9)) abort();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int which = size ? data[0] % 2 : 0, steps = size > 1 ? data[1] : 0;
  json_t *json = json_loads(published[which], 0, NULL);
  size_t skipped = size < 2 ? size : 2;
  data += skipped;
  size -= skipped;
  while (json && size > 1) {
    const uint8_t *end = memchr(data + 1, 0, size - 1);
    size_t length = end ? (size_t)(end - data) : size;
    json_t *value = json_loadb((const char *)data + 1, length - 1, JSON_DECODE_ANY, NULL);
    if (value) json_object_set_new(json, names[which][data[0] % 13], value);
    data += length + (end != NULL);
    size -= length + (end != NULL);
  }
  rdna__flux_settings settings;
  rdna_image_flow *flow = NULL;
  char *text = json ? json_dumps(json, 0) : NULL;
  rdna_status status = RDNA_OK;
  if (text && which == 0) {
    status = rdna__flux_settings_read(json, &settings);
    if (status == RDNA_OK) check_transformer(&settings);
  } else if (text) {
    status = rdna_image_flow_create(text, steps, 1 + steps * 40, &flow);
    if (status == RDNA_OK) check_levels(flow);
  }
  if (status != RDNA_OK && !*rdna_last_error()) abort();
  rdna_image_flow_release(flow);
  free(text);
  json_decref(json);
  return 0;
}
