#include "picture/exif.h"

#include <stdbool.h>
#include <string.h>

static uint32_t number(const uint8_t *at, int bytes, bool little) {
  uint32_t value = 0;
  for (int i = 0; i < bytes; i++) value = value << 8 | at[little ? bytes - 1 - i : i];
  return value;
}

int rdna__exif_orientation(const uint8_t *at, size_t size) {
  enum { HEADER = 8, ENTRY = 12, ORIENTATION = 0x0112, SHORT = 3, LONG = 4 };
  if (size < HEADER || (memcmp(at, "II*\0", 4) != 0 && memcmp(at, "MM\0*", 4) != 0)) return RDNA__EXIF_PLAIN;
  bool little = at[0] == 'I';
  size_t table = number(at + 4, 4, little);
  if (table > size || size - table < 2) return RDNA__EXIF_PLAIN;
  size_t count = number(at + table, 2, little), first = table + 2;
  for (size_t i = 0; i < count && size - first >= (i + 1) * ENTRY; i++) {
    const uint8_t *entry = at + first + i * ENTRY;
    uint32_t kind = number(entry + 2, 2, little);
    if (number(entry, 2, little) != ORIENTATION || (kind != SHORT && kind != LONG)) continue; /* some write it long */
    uint32_t value = number(entry + 8, kind == SHORT ? 2 : 4, little);
    return value >= RDNA__EXIF_PLAIN && value <= RDNA__EXIF_MOST ? (int)value : RDNA__EXIF_PLAIN;
  }
  return RDNA__EXIF_PLAIN;
}

/* Each of the two sides of what is in the file may be read backwards. */
rdna_status rdna__exif_turn(int orientation, rdna__picture *picture) {
  if (orientation == RDNA__EXIF_PLAIN) return RDNA_OK;
  bool swaps = orientation > 4;
  bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  bool from_below = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  size_t width = (size_t)picture->width, channels = (size_t)picture->channels;
  rdna__picture out = *picture;
  if (swaps) out.width = picture->height, out.height = picture->width;
  if (!picture->pixels) {
    *picture = out;
    return RDNA_OK;
  }
  RDNA_TRY(rdna__picture_init(&out, out.width, out.height, picture->channels));
  uint8_t *to = out.pixels;
  for (int y = 0; y < out.height; y++)
    for (int x = 0; x < out.width; x++, to += channels) {
      int column = swaps ? y : x, row = swaps ? x : y;
      if (from_right) column = picture->width - 1 - column;
      if (from_below) row = picture->height - 1 - row;
      memcpy(to, picture->pixels + channels * ((size_t)row * width + (size_t)column), channels);
    }
  out.parameters = picture->parameters;
  picture->parameters = NULL;
  rdna__picture_deinit(picture);
  *picture = out;
  return RDNA_OK;
}
