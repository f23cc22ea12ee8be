/* Reads settings of a U-Net, and as those of a ControlNet: published ones, of which the input changes some. A byte
 * chooses which, and the JSON behind it up to a byte of zero is what it says. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/image/unet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const published =
    "{\"block_out_channels\":[320,640],\"down_block_types\":[\"CrossAttnDownBlock2D\",\"DownBlock2D\"],"
    "\"up_block_types\":[\"UpBlock2D\",\"CrossAttnUpBlock2D\"],\"attention_head_dim\":[5,10]}";

static void check(const rdna__unet_settings *s) {
  if (s->stages < 1 || s->stages > RDNA__UNET_STAGES) abort();
  for (int i = 0; i < s->stages; i++) {
    if (s->layers[i] < 1 || s->layers[i] > RDNA__UNET_LAYERS || s->blocks[i] < 1 || s->heads[i] < 1) abort();
    if (s->channels[i] < 1 || s->channels[i] % s->heads[i] != 0) abort();
  }
  float values[64];
  rdna__image_embed_number(s, 999, 64, values);
  for (int i = 0; i < 64; i++)
    if (!(values[i] >= -1 && values[i] <= 1)) abort();
}

static const char *const names[] = {"block_out_channels",
                                    "layers_per_block",
                                    "down_block_types",
                                    "up_block_types",
                                    "attention_head_dim",
                                    "transformer_layers_per_block",
                                    "cross_attention_dim",
                                    "sample_size",
                                    "in_channels",
                                    "out_channels",
                                    "norm_eps",
                                    "norm_num_groups",
                                    "mid_block_scale_factor",
                                    "flip_sin_to_cos",
                                    "freq_shift",
                                    "time_embedding_dim",
                                    "addition_embed_type",
                                    "addition_time_embed_dim",
                                    "projection_class_embeddings_input_dim",
                                    "mid_block_type",
                                    "only_cross_attention",
                                    "encoder_hid_dim",
                                    "conv_in_kernel",
                                    "act_fn",
                                    "_class_name",
                                    "conditioning_embedding_out_channels",
                                    "conditioning_channels",
                                    "controlnet_conditioning_channel_order",
                                    "strange"};
enum { NAMES = sizeof names / sizeof *names };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  rdna__unet_settings settings;
  json_t *json = json_loads(published, 0, NULL);
  while (json && size > 1) {
    const uint8_t *end = memchr(data + 1, 0, size - 1);
    size_t length = end ? (size_t)(end - data) : size;
    json_t *value = json_loadb((const char *)data + 1, length - 1, JSON_DECODE_ANY, NULL);
    if (value) json_object_set_new(json, names[data[0] % NAMES], value);
    data += length + (end != NULL);
    size -= length + (end != NULL);
  }
  rdna_status status = json ? rdna__unet_settings_read(json, &settings) : RDNA_OK;
  if (json && status == RDNA_OK) check(&settings);
  if (status != RDNA_OK && !*rdna_last_error()) abort();
  rdna__control_settings control;
  status = json ? rdna__control_settings_read(json, &settings, &control) : RDNA_OK;
  if (json && status == RDNA_OK) {
    check(&settings);
    if (control.levels < 1 || control.levels > RDNA__CONTROL_LEVELS) abort();
  }
  if (status != RDNA_OK && !*rdna_last_error()) abort();
  json_decref(json);
  return 0;
}
