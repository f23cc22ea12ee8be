/* Reads settings of a U-Net that are the input, from its second byte on what published ones say where that is even. */
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  rdna__unet_settings settings;
  json_t *json, *more = NULL;
  if (size < 1) return 0;
  rdna_status status = rdna__settings_parse((const char *)data + 1, size - 1, &json);
  if (status == RDNA_OK) {
    if (data[0] % 2 == 0) more = json_loads(published, 0, NULL);
    if (more) json_object_update_missing(json, more);
    status = rdna__unet_settings_read(json, &settings);
    if (status == RDNA_OK) check(&settings);
    json_decref(more);
    json_decref(json);
  }
  if (status != RDNA_OK && !*rdna_last_error()) abort();
  return 0;
}
