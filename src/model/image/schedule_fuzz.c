/* Makes schedules of settings that are the input, and takes the first and the last of their steps. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rdna/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const samplers[] = {"ddim",  "ddpm",     "pndm",         "euler",        "euler_ancestral",
                                         "heun",  "dpmpp_2m", "dpmpp_2m_sde", "dpmpp_3m_sde", "dpmpp_sde",
                                         "unipc", "lcm"};
  static const char *const spacings[] = {"simple", "karras", "exponential", "beta", "ays", "ays_xl", "sgm_uniform"};
  if (size < 2) return 0;
  char *settings = malloc(size - 1);
  if (!settings) return 0;
  memcpy(settings, data + 2, size - 2);
  settings[size - 2] = 0;
  rdna_image_schedule *schedule = NULL;
  int steps = data[1] % 40;
  rdna_status status =
      rdna_image_schedule_create(settings, samplers[data[0] % 12], spacings[data[0] / 12 % 7], steps, &schedule);
  free(settings);
  if (status != RDNA_OK) {
    if (!*rdna_last_error()) abort();
    return 0;
  }
  int end = rdna_image_schedule_steps(schedule);
  if (end < steps || rdna_image_schedule_step_of(schedule, steps) != -1) abort();
  if (!isfinite(rdna_image_schedule_initial_scale(schedule))) abort();
  float sample[3] = {1, -2, 0.5f};
  const float output[3] = {0.5f, 1, -1}, noise[3] = {1, -1, 0.1f};
  int first = rdna_image_schedule_step_of(schedule, data[0] % steps); /* as a picture with noise */
  if (first && rdna_image_schedule_begin(schedule, first, output, noise, sample, 3) != RDNA_OK) abort();
  for (int i = first; i < end; i++) {
    if (!isfinite(rdna_image_schedule_timestep(schedule, i))) abort();
    if (!isfinite(rdna_image_schedule_input_scale(schedule, i))) abort();
    if (rdna_image_schedule_step(schedule, i, output, noise, sample, 3) != RDNA_OK) abort();
    for (int k = 0; k < 3; k++)
      if (isnan(sample[k])) abort();
  }
  rdna_image_schedule_release(schedule);
  return 0;
}
