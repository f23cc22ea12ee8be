/* For png_test.py and jpeg_test.py, which write requests and read answers, numbers being u32 and texts and bytes behind
 * their length. A picture is written as it is answered.
 *
 *     d bytes                 decode a PNG              status, then width height channels, whether there are
 *     l path                  load a PNG                    parameters and these, pixels; or a sentence
 *     a bytes                 decode any, as RGB        the same
 *     e picture               encode                    status, then bytes; or a sentence
 *     s path picture          save                      status, then no bytes; or a sentence
 *     v width height values   of values                 0, then pixels, and the values that these are */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "picture/decode.h"
#include "picture/encode.h"
#include "picture/jpeg.h"

static void get(void *to, size_t size) {
  if (fread(to, 1, size, stdin) != size) exit(1);
}

static uint32_t number(void) {
  uint32_t value;
  get(&value, sizeof value);
  return value;
}

/* With a zero behind it. */
static char *get_bytes(size_t *out_size) {
  *out_size = number();
  char *bytes = malloc(*out_size + 1);
  if (!bytes) exit(1);
  get(bytes, *out_size);
  bytes[*out_size] = 0;
  return bytes;
}

static void put(const void *bytes, size_t size) {
  if (size && fwrite(bytes, 1, size, stdout) != size) exit(1);
}

static void put_number(size_t value) { put(&(uint32_t){(uint32_t)value}, sizeof(uint32_t)); }

static void put_bytes(const void *bytes, size_t size) {
  put_number(size);
  put(bytes, size);
}

static void answer(rdna_status status) {
  put_number((size_t)status);
  if (status != RDNA_OK) put_bytes(rdna_last_error(), strlen(rdna_last_error()));
}

static size_t pixels_of(const rdna__picture *p) { return (size_t)p->width * (size_t)p->height * (size_t)p->channels; }

static void read_one(int kind) {
  size_t size;
  char *given = get_bytes(&size);
  rdna__picture p;
  rdna_status status = kind == 'l'   ? rdna__png_load(given, &p)
                       : kind == 'd' ? rdna__png_decode(given, size, &p)
                                     : rdna__picture_decode(given, size, &p);
  answer(status);
  if (status == RDNA_OK) {
    put_number((size_t)p.width), put_number((size_t)p.height), put_number((size_t)p.channels);
    put_number(p.parameters != NULL);
    put_bytes(p.parameters, p.parameters ? strlen(p.parameters) : 0);
    put_bytes(p.pixels, pixels_of(&p));
  } else if (p.pixels || p.parameters) {
    exit(1);
  }
  rdna__picture_deinit(&p);
  free(given);
}

static void write_one(bool to_file) {
  size_t size = 0;
  char *path = to_file ? get_bytes(&size) : NULL;
  uint32_t width = number(), height = number(), channels = number(), has = number();
  rdna__picture p = {(int)width, (int)height, (int)channels, NULL, get_bytes(&size)};
  if (!has) free(p.parameters), p.parameters = NULL;
  p.pixels = (uint8_t *)get_bytes(&size);
  uint8_t *bytes = NULL;
  size_t written = 0;
  rdna_status status =
      to_file ? rdna__picture_save(path, &p, RDNA__JPEG_QUALITY) : rdna__png_encode(&p, &bytes, &written);
  answer(status);
  if (status == RDNA_OK) put_bytes(bytes, written);
  rdna__picture_deinit(&p);
  free(bytes);
  free(path);
}

static void convert_one(void) {
  uint32_t width = number(), height = number();
  size_t size;
  float *values = (float *)get_bytes(&size);
  rdna__picture p;
  rdna_status status = rdna__picture_of_values(values, (int)width, (int)height, &p);
  answer(status);
  if (status == RDNA_OK) {
    put_bytes(p.pixels, pixels_of(&p));
    rdna__picture_values(&p, values);
    put_bytes(values, size);
  }
  rdna__picture_deinit(&p);
  free(values);
}

int main(void) {
  for (int kind; (kind = getchar()) != EOF; fflush(stdout)) {
    if (kind == 'd' || kind == 'l' || kind == 'a')
      read_one(kind);
    else if (kind == 'e' || kind == 's')
      write_one(kind == 's');
    else if (kind == 'v')
      convert_one();
    else
      return 1;
  }
  return 0;
}
