/* Reads a PNG, and what was read is written and read again, the same. Inputs get the checksums of their chunks after
 * they were changed, or little behind the first of these would be reached. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "picture/png.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

enum { SIGNATURE = 8, LENGTH = 4, KIND = 4, CHECKSUM = 4 };

/* CRC-32 as the standard has it. */
static uint32_t checksum(const uint8_t *data, size_t size) {
  uint32_t sum = UINT32_MAX;
  for (size_t i = 0; i < size; i++) {
    sum ^= data[i];
    for (int bit = 0; bit < 8; bit++) sum = sum >> 1 ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum;
}

static uint32_t get(const uint8_t *at) {
  return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, most);
  for (size_t at = SIGNATURE; at + LENGTH + KIND + CHECKSUM <= size;) {
    size_t length = get(data + at);
    if (length > size - at - LENGTH - KIND - CHECKSUM) break;
    uint32_t sum = checksum(data + at + LENGTH, KIND + length);
    at += LENGTH + KIND + length;
    for (int i = 0; i < CHECKSUM; i++) data[at++] = (uint8_t)(sum >> (24 - 8 * i));
  }
  return size;
}

static void read_again(const rdna__picture *p) {
  uint8_t *bytes;
  size_t size, count = (size_t)p->width * (size_t)p->height * (size_t)p->channels;
  rdna__picture again;
  if (rdna__png_encode(p, &bytes, &size) != RDNA_OK || rdna__png_decode(bytes, size, &again) != RDNA_OK) abort();
  bool same = p->width == again.width && p->height == again.height && p->channels == again.channels;
  if (!same || memcmp(p->pixels, again.pixels, count) != 0) abort();
  if (!p->parameters != !again.parameters || (p->parameters && strcmp(p->parameters, again.parameters) != 0)) abort();
  rdna__picture_deinit(&again);
  free(bytes);
}

/* Its memory would take the time of thousands of others. */
static bool says_large(const uint8_t *data, size_t size) {
  enum { WIDTH = 16, HEIGHT = 20, END = 24 };
  return size >= END && (uint64_t)get(data + WIDTH) * get(data + HEIGHT) > 1 << 16;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  rdna__picture picture, head;
  if (says_large(data, size)) return 0;
  rdna_status measured = rdna__png_measure(data, size, &head);
  rdna_status status = rdna__png_decode(data, size, &picture);
  if (status == RDNA_OK && (measured != RDNA_OK || head.width != picture.width || head.height != picture.height ||
                            head.channels != picture.channels))
    abort();
  if (status != RDNA_OK && !*rdna_last_error()) abort();
  if (status == RDNA_OK) read_again(&picture);
  rdna__picture_deinit(&picture);
  return 0;
}
