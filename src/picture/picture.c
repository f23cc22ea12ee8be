#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "picture/png.h"

enum { MOST_FILE = 1 << 30 };

rdna_status rdna__picture_init(rdna__picture *out, int width, int height, int channels) {
  *out = (rdna__picture){0};
  bool fits = width >= 1 && height >= 1 && width <= RDNA__PICTURE_MOST_SIDE && height <= RDNA__PICTURE_MOST_SIDE &&
              (int64_t)width * height <= RDNA__PICTURE_MOST_PIXELS && (channels == 3 || channels == 4);
  if (!fits)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "a picture of %d x %d with %d channels; up to %d x %d and %d pixels with 3 or 4 can be had",
                      width, height, channels, RDNA__PICTURE_MOST_SIDE, RDNA__PICTURE_MOST_SIDE,
                      RDNA__PICTURE_MOST_PIXELS);
  out->pixels = malloc((size_t)width * (size_t)height * (size_t)channels);
  if (!out->pixels) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a picture of %d x %d", width, height);
  out->width = width, out->height = height, out->channels = channels;
  return RDNA_OK;
}

void rdna__picture_deinit(rdna__picture *p) {
  free(p->pixels);
  free(p->parameters);
  *p = (rdna__picture){0};
}

static uint8_t byte_of(float value) {
  float scaled = 127.5f * (value + 1);
  if (!(scaled > 0)) return 0;
  return scaled < 255 ? (uint8_t)rintf(scaled) : 255;
}

rdna_status rdna__picture_of_values(const float *values, int width, int height, rdna__picture *out) {
  RDNA_TRY(rdna__picture_init(out, width, height, 3));
  size_t count = (size_t)width * (size_t)height;
  for (size_t i = 0; i < count; i++)
    for (size_t c = 0; c < 3; c++) out->pixels[3 * i + c] = byte_of(values[c * count + i]);
  return RDNA_OK;
}

void rdna__picture_values(const rdna__picture *p, float *out_values) {
  size_t count = (size_t)p->width * (size_t)p->height, channels = (size_t)p->channels;
  for (size_t i = 0; i < count; i++)
    for (size_t c = 0; c < 3; c++) out_values[c * count + i] = (float)p->pixels[channels * i + c] / 127.5f - 1;
}

void rdna__picture_light(const rdna__picture *p, float *out_light) {
  size_t count = (size_t)p->width * (size_t)p->height, channels = (size_t)p->channels;
  for (size_t i = 0; i < count; i++) {
    const uint8_t *pixel = p->pixels + channels * i;
    out_light[i] = (float)((0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2]) / 255);
  }
}

static float clearness(const rdna__picture *p, size_t i) {
  return p->channels == 4 ? 1 - (float)p->pixels[4 * i + 3] / 255 : 0;
}

void rdna__picture_transparency(const rdna__picture *p, float *out_clear) {
  for (size_t i = 0; i < (size_t)p->width * (size_t)p->height; i++) out_clear[i] = clearness(p, i);
}

bool rdna__picture_is_transparent(const rdna__picture *p) {
  for (size_t i = 0; i < (size_t)p->width * (size_t)p->height; i++)
    if (clearness(p, i) >= 0.5f) return true;
  return false;
}

rdna_status rdna__picture_load_with(const char *path,
                                    rdna_status (*decode)(const void *bytes, size_t size, rdna__picture *out_picture),
                                    rdna__picture *out_picture) {
  rdna__file file = {0};
  *out_picture = (rdna__picture){0};
  RDNA_TRY(rdna__annotate(rdna__file_map(path, &file), "%s", path));
  rdna_status status = RDNA_OK;
  uint8_t *bytes = NULL;
  if (file.size > MOST_FILE)
    status = rdna__fail(RDNA_UNSUPPORTED, "it has %zu bytes; pictures of up to %d are read", file.size, MOST_FILE);
  else if (!(bytes = malloc(file.size ? file.size : 1)))
    status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a file of %zu bytes", file.size);
  if (status == RDNA_OK) status = rdna__file_read(file.data, file.size, bytes);
  if (status == RDNA_OK) status = decode(bytes, file.size, out_picture);
  free(bytes);
  rdna__file_unmap(&file);
  return rdna__annotate(status, "%s", path);
}
