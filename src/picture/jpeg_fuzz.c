/* Reads what may be a JPEG, or any picture: what is read has three channels and the size that it says, and that its
 * head alone says. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "picture/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Its memory would take the time of thousands of others: a frame's height and width stand behind a marker of 0xc0 to
 * 0xcf, its length and 8 bits. */
static bool says_large(const uint8_t *data, size_t size) {
  for (size_t i = 0; i + 9 <= size; i++) {
    bool is_frame = data[i] == 0xff && data[i + 1] >= 0xc0 && data[i + 1] <= 0xcf;
    uint32_t height = (uint32_t)data[i + 5] << 8 | data[i + 6], width = (uint32_t)data[i + 7] << 8 | data[i + 8];
    if (is_frame && height * width > 1 << 16) return true;
  }
  return size >= 4 && memcmp(data, "\x89PNG", 4) == 0; /* which png_fuzz.c reads */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  rdna__picture picture, head;
  if (says_large(data, size)) return 0;
  rdna_status measured = rdna__picture_measure(data, size, &head);
  rdna_status status = rdna__picture_decode(data, size, &picture);
  if (status == RDNA_OK && (measured != RDNA_OK || head.width != picture.width || head.height != picture.height))
    abort();
  if (status != RDNA_OK && (!*rdna_last_error() || picture.pixels)) abort();
  if (status == RDNA_OK && picture.channels != 3) abort();
  uint8_t sum = 0;
  for (size_t i = 0; status == RDNA_OK && i < (size_t)picture.width * (size_t)picture.height * 3; i++)
    sum ^= picture.pixels[i];
  volatile uint8_t seen = sum; /* each was set */
  (void)seen;
  rdna__picture_deinit(&picture);
  return 0;
}
