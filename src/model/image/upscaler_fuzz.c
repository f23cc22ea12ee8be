/* Looks at files of tensors that have no data: four bytes of the input choose a name that upscalers have, a number in
 * it, and two sizes. What is found out fits the places that it is put in. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/image/upscaler.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const forms[] = {"conv_first.weight",
                                    "body.%d.rdb1.conv1.weight",
                                    "conv_up%d.weight",
                                    "RRDB_trunk.%d.RDB1.conv1.weight",
                                    "upconv%d.weight",
                                    "model.%d.weight",
                                    "model.1.sub.%d.RDB1.conv1.0.weight",
                                    "body.%d.weight"};
enum { FORMS = sizeof forms / sizeof *forms };

/* |*out_size| bytes of such a file; free() them. */
static char *make_file(const uint8_t *data, size_t size, size_t *out_size) {
  char *text = NULL;
  FILE *to = open_memstream(&text, out_size);
  if (!to) return NULL;
  fwrite("\0\0\0\0\0\0\0\0{", 1, 9, to);
  for (size_t i = 0; i + 4 <= size; i += 4) {
    fprintf(to, "%s\"", i ? "," : "");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    fprintf(to, forms[data[i] % FORMS], data[i + 1]);
#pragma GCC diagnostic pop
    fprintf(to, "\":{\"dtype\":\"?\",\"shape\":[%d%s,%d,3,%d],\"data_offsets\":[0,0]}", data[i + 2],
            data[i] & 128 ? "000" : "", data[i + 3] % 64, data[i + 3] < 192 ? 3 : 1);
  }
  fputc('}', to);
  fclose(to);
  uint64_t length = text ? *out_size - 8 : 0;
  if (text) memcpy(text, &length, 8);
  return text;
}

static bool is_within(int value, int low, int high) { return value >= low && value <= high; }

static bool holds(const rdna__upscaler_settings *s) {
  if (!is_within(s->scale, 1, RDNA__UPSCALER_SCALE) || !is_within(s->features, 1, RDNA__UPSCALER_CHANNELS))
    return false;
  if (s->kind == RDNA__UPSCALER_COMPACT) return is_within(s->blocks, 0, RDNA__UPSCALER_BLOCKS);
  return is_within(s->blocks, 1, RDNA__UPSCALER_BLOCKS) && is_within(s->growth, 1, RDNA__UPSCALER_CHANNELS) &&
         is_within(s->doublings, 0, RDNA__UPSCALER_DOUBLINGS) && s->scale * s->gathered == 1 << s->doublings;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  size_t length = 0;
  rdna__safetensors *file = NULL;
  rdna__upscaler_settings settings;
  char *text = make_file(data, size, &length);
  if (!text) return 0;
  rdna_status status = rdna__safetensors_open_memory(text, length, &file);
  if (status == RDNA_OK) status = rdna__upscaler_settings_read(file, &settings);
  if (status == RDNA_OK ? !holds(&settings) : !*rdna_last_error()) abort();
  rdna__safetensors_close(file);
  free(text);
  return 0;
}
