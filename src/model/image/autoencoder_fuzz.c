/* Reads settings of an autoencoder. What is taken fits the places that it is put in, and makes whole groups. */
#include <stdint.h>
#include <stdlib.h>

#include "model/image/autoencoder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool holds(const rdna__autoencoder_settings *s) {
  if (s->levels < 1 || s->levels > RDNA__AUTOENCODER_LEVELS) return false;
  if (s->resnets < 1 || s->resnets >= RDNA__AUTOENCODER_RESNETS) return false;
  bool grouped = s->kind != RDNA__AUTOENCODER_QWEN;
  for (int i = 0; i < s->levels; i++)
    if (s->channels[i] < 1 || (grouped && s->channels[i] % s->groups != 0)) return false;
  for (int i = 0; i < s->levels; i++)
    for (int half = 0; half < 2; half++)
      if (s->blocks[half][i] < 0 || s->blocks[half][i] > RDNA__AUTOENCODER_RESNETS) return false;
  int latents = rdna__autoencoder_latents(s);
  if (latents < 1 || latents > RDNA__AUTOENCODER_LATENTS) return false;
  for (int i = 0; i < latents && s->kind != RDNA__AUTOENCODER_FLUX2; i++) /* those are in tensors */
    if (!(s->deviation[i] > 0)) return false;
  return s->scaling > 0 && s->latent_channels > 0 && s->in_channels > 0 && s->out_channels > 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  json_t *json = NULL;
  rdna__autoencoder_settings settings;
  rdna_status status = rdna__settings_parse((const char *)data, size, &json);
  if (status == RDNA_OK) status = rdna__autoencoder_settings_read(json, &settings);
  if (status == RDNA_OK ? !holds(&settings) : !*rdna_last_error()) abort();
  json_decref(json);
  return 0;
}
