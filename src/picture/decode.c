#include "picture/decode.h"

#include <stdbool.h>
#include <string.h>

#include "picture/jpeg.h"

static void leave_opacity_out(rdna__picture *p) {
  size_t count = (size_t)p->width * (size_t)p->height;
  for (size_t i = 0; p->pixels && p->channels == 4 && i < count; i++) memmove(p->pixels + 3 * i, p->pixels + 4 * i, 3);
  p->channels = 3;
}

static const char *name_of(const uint8_t *bytes, size_t size) {
  static const struct {
    size_t at;
    const char *sign, *name;
  } others[] = {{0, "GIF8", "a GIF"}, {8, "WEBP", "a WebP"}, {0, "BM", "a bitmap"},
                {0, "II*", "a TIFF"}, {0, "MM", "a TIFF"},   {4, "ftyp", "an AVIF or HEIC"},
                {0, "%PDF", "a PDF"}, {0, "<svg", "an SVG"}, {0, "<?xml", "an SVG"}};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    size_t length = strlen(others[i].sign), at = others[i].at;
    if (size >= at + length && memcmp(bytes + at, others[i].sign, length) == 0) return others[i].name;
  }
  return "something else";
}

typedef enum wanted { HEAD, COLOURS, OPACITY } wanted;

static rdna_status read_any(const void *bytes, size_t size, wanted what, rdna__picture *out_picture) {
  *out_picture = (rdna__picture){0};
  if (size >= 2 && memcmp(bytes, "\xff\xd8", 2) == 0)
    return (what == HEAD ? rdna__jpeg_measure : rdna__jpeg_decode)(bytes, size, out_picture);
  if (size < 4 || memcmp(bytes, "\x89PNG", 4) != 0)
    return rdna__fail(RDNA_UNSUPPORTED, "pictures are read as PNG and JPEG, and this is %s", name_of(bytes, size));
  RDNA_TRY((what == HEAD ? rdna__png_measure : rdna__png_decode)(bytes, size, out_picture));
  if (what != OPACITY) leave_opacity_out(out_picture);
  return RDNA_OK;
}

rdna_status rdna__picture_decode(const void *bytes, size_t size, rdna__picture *out_picture) {
  return read_any(bytes, size, COLOURS, out_picture);
}

rdna_status rdna__picture_decode_opacity(const void *bytes, size_t size, rdna__picture *out_picture) {
  return read_any(bytes, size, OPACITY, out_picture);
}

rdna_status rdna__picture_measure(const void *bytes, size_t size, rdna__picture *out_picture) {
  return read_any(bytes, size, HEAD, out_picture);
}

rdna_status rdna__picture_load(const char *path, rdna__picture *out_picture) {
  return rdna__picture_load_with(path, rdna__picture_decode, out_picture);
}
