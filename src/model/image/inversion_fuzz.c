/* Reads files of words' vectors, whose header is the input up to a byte of zero, and looks for their words in the rest;
 * a byte in front says for how many text encoders. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/image/inversion.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { DATA_BYTES = 4096, MOST_HEADER = 1 << 16 };

/* A file of that header and so many bytes of values, the caller's to free. */
static char *make_file(const uint8_t *header, size_t size, size_t *out_size) {
  uint64_t length = size;
  *out_size = 8 + size + DATA_BYTES;
  char *file = calloc(1, *out_size);
  if (!file) return NULL;
  memcpy(file, &length, 8);
  memcpy(file + 8, header, size);
  return file;
}

static void check_tensors(const rdna__inversion *one, int encoders) {
  if (one->count < 1) abort();
  for (int i = 0; i < encoders; i++) {
    const rdna__safetensor *t = one->of[i].tensor;
    if (!t || one->of[i].width < 1) abort();
    int64_t values = (int64_t)one->count * one->of[i].width;
    if ((uint64_t)values * rdna_dtype_bytes(t->dtype, 1) > t->bytes) abort();
    (void)rdna__safetensor_value(t, values - 1); /* the last one that is read */
  }
}

/* Words stand where they are found, and behind each the search goes on. */
static void look(char *name, const char *text, size_t size) {
  char other[] = "<cat-toy>";
  rdna__inversion items[] = {{.name = name, .count = 1}, {.name = other, .count = 2}};
  const rdna__inversions words = {items, 2};
  for (size_t at = 0; at < size;) {
    int which = -1;
    size_t found = rdna__inversions_find(&words, text + at, size - at, &which);
    if (found > size - at) abort();
    if (found == size - at) return;
    if (which < 0 || which > 1 || strlen(items[which].name) > size - at - found) abort();
    at += found + strlen(items[which].name);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2 || size > MOST_HEADER) return 0;
  int encoders = 1 + data[0] % 2;
  const uint8_t *end = memchr(data + 1, 0, size - 1);
  size_t length = end ? (size_t)(end - data - 1) : size - 1, file_size;
  char *file = make_file(data + 1, length, &file_size), copy[64] = "cat";
  rdna__safetensors *tensors = NULL;
  rdna__inversion one = {0};
  const char *name = NULL;
  if (file && rdna__safetensors_open_memory(file, file_size, &tensors) == RDNA_OK) {
    if (rdna__inversion_read(tensors, encoders, &one, &name) == RDNA_OK)
      check_tensors(&one, encoders);
    else if (!*rdna_last_error())
      abort();
    if (name && *name && strlen(name) < sizeof copy) strcpy(copy, name);
  }
  if (end) look(copy, (const char *)end + 1, size - length - 2);
  rdna__safetensors_close(tensors);
  free(file);
  return 0;
}
