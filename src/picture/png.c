#include "picture/png.h"

#include <jansson.h>
#include <png.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "picture/exif.h"

enum { MOST_CHUNKS = 1000, SENTENCE = 200, LEVEL = 6 };

static const char text_name[] = "parameters";

/* What both ways have. libpng jumps to where |png| was set up when something fails, so that what changes lies here. */
typedef struct stream {
  png_structp png;
  png_infop info;
  const uint8_t *bytes; /* read: (size) */
  uint8_t *written;     /* (size), room for |capacity| */
  size_t size, at, capacity;
  png_bytep *rows;
  rdna_status status; /* of the failure */
  char sentence[SENTENCE];
} stream;

static void fail(png_structp png, png_const_charp message) {
  stream *s = png_get_error_ptr(png);
  snprintf(s->sentence, sizeof s->sentence, "%s", message);
  if (s->status == RDNA_OK) s->status = RDNA_BAD_DATA;
  png_longjmp(png, 1);
}

static void ignore(png_structp png, png_const_charp message) {}

static _Noreturn void stop(stream *s, rdna_status status, const char *message) {
  s->status = status;
  png_error(s->png, message);
}

static bool is_utf8(const char *text, size_t size) {
  json_t *value = json_stringn(text, size);
  json_decref(value);
  return value != NULL;
}

static void set_rows(stream *s, const rdna__picture *p) {
  s->rows = malloc((size_t)p->height * sizeof *s->rows);
  if (!s->rows) stop(s, RDNA_OUT_OF_MEMORY, "no host memory for a picture's rows");
  for (int y = 0; y < p->height; y++) s->rows[y] = p->pixels + (size_t)y * (size_t)p->width * (size_t)p->channels;
}

/* ---- reading ---- */

static void read_bytes(png_structp png, png_bytep to, png_size_t count) {
  stream *s = png_get_io_ptr(png);
  if (count > s->size - s->at) png_error(png, "the file breaks off");
  memcpy(to, s->bytes + s->at, count);
  s->at += count;
}

/* 8 bits a channel, of three channels or four. */
static int set_up_reading(stream *s) {
  png_byte type = png_get_color_type(s->png, s->info);
  bool opacity = (type & PNG_COLOR_MASK_ALPHA) != 0 || png_get_valid(s->png, s->info, PNG_INFO_tRNS) != 0;
  png_set_expand(s->png);
  png_set_scale_16(s->png);
  if (!(type & PNG_COLOR_MASK_COLOR)) png_set_gray_to_rgb(s->png);
  png_set_interlace_handling(s->png);
  png_read_update_info(s->png, s->info);
  return opacity ? 4 : 3;
}

static void keep_text(stream *s, rdna__picture *out) {
  png_textp texts;
  int count;
  png_get_text(s->png, s->info, &texts, &count);
  for (int i = 0; i < count && !out->parameters; i++) {
    bool wide = texts[i].compression >= PNG_ITXT_COMPRESSION_NONE;
    size_t size = wide ? texts[i].itxt_length : texts[i].text_length, at = 0;
    if (strcmp(texts[i].key, text_name) != 0 || size > RDNA__PICTURE_MOST_TEXT) continue;
    out->parameters = malloc(2 * size + 1);
    if (!out->parameters) stop(s, RDNA_OUT_OF_MEMORY, "no host memory for a picture's parameters");
    for (size_t j = 0; j < size; j++) { /* Latin-1 is Unicode's first characters */
      uint8_t c = (uint8_t)texts[i].text[j];
      if (!wide && c >= 0x80) out->parameters[at++] = (char)(0xc0 | c >> 6);
      out->parameters[at++] = (char)(!wide && c >= 0x80 ? 0x80 | (c & 0x3f) : c);
    }
    out->parameters[at] = 0;
    if (is_utf8(out->parameters, at)) continue;
    free(out->parameters);
    out->parameters = NULL;
  }
}

/* Its sizes as they are in the file. */
static void read_header(stream *s, rdna__picture *out) {
  png_set_read_fn(s->png, s, read_bytes);
  png_set_user_limits(s->png, RDNA__PICTURE_MOST_SIDE, RDNA__PICTURE_MOST_SIDE);
  png_set_chunk_cache_max(s->png, MOST_CHUNKS);
  png_set_chunk_malloc_max(s->png, 2 * RDNA__PICTURE_MOST_TEXT);
  png_read_info(s->png, s->info);
  png_uint_32 width = png_get_image_width(s->png, s->info), height = png_get_image_height(s->png, s->info);
  if ((uint64_t)width * height > RDNA__PICTURE_MOST_PIXELS) stop(s, RDNA_UNSUPPORTED, "it has too many pixels");
  out->width = (int)width, out->height = (int)height, out->channels = set_up_reading(s);
}

static void read_pixels(stream *s, rdna__picture *out) {
  if (rdna__picture_init(out, out->width, out->height, out->channels) != RDNA_OK)
    stop(s, RDNA_OUT_OF_MEMORY, "no host memory for its pixels");
  if (png_get_rowbytes(s->png, s->info) != (size_t)out->width * (size_t)out->channels)
    stop(s, RDNA_INTERNAL, "its rows are not as they were asked for");
  set_rows(s, out);
  png_read_image(s->png, s->rows);
  png_read_end(s->png, s->info);
  keep_text(s, out);
}

/* Where libpng jumps to. */
static void read_guarded(stream *s, bool pixels, rdna__picture *out) {
  if (setjmp(png_jmpbuf(s->png)) != 0) return;
  read_header(s, out);
  if (pixels) read_pixels(s, out);
}

/* Each chunk is inside the file: libpng takes memory for what a chunk says that it has before it reads it. The first
 * with EXIF, wherever it stands, says which way up the picture is. */
static rdna_status check_chunks(const uint8_t *bytes, size_t size, int *io_orientation) {
  enum { SIGNATURE = 8, AROUND = 12 }; /* a chunk's length, kind and checksum */
  if (size < SIGNATURE || png_sig_cmp(bytes, 0, SIGNATURE) != 0)
    return rdna__fail(RDNA_BAD_DATA, "this is no PNG: it does not begin as one");
  bool found = false;
  for (size_t at = SIGNATURE; size - at >= AROUND;) {
    size_t length = png_get_uint_32(bytes + at);
    if (memcmp(bytes + at + 4, "IEND", 4) == 0) return RDNA_OK;
    if (length > size - at - AROUND) break;
    bool is_exif = memcmp(bytes + at + 4, "eXIf", 4) == 0;
    if (is_exif && !found) *io_orientation = rdna__exif_orientation(bytes + at + 8, length);
    found |= is_exif;
    at += AROUND + length;
  }
  return rdna__fail(RDNA_BAD_DATA, "this PNG breaks off");
}

static rdna_status read_png(const void *bytes, size_t size, bool pixels, rdna__picture *out_picture) {
  stream s = {.bytes = bytes, .size = size};
  int orientation = RDNA__EXIF_PLAIN;
  *out_picture = (rdna__picture){0};
  RDNA_TRY(check_chunks(bytes, size, &orientation));
  s.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &s, fail, ignore);
  if (s.png) s.info = png_create_info_struct(s.png);
  if (!s.info) {
    s.status = RDNA_OUT_OF_MEMORY;
    snprintf(s.sentence, sizeof s.sentence, "no host memory to read it");
  } else {
    read_guarded(&s, pixels, out_picture);
  }
  png_destroy_read_struct(&s.png, &s.info, NULL);
  free(s.rows);
  rdna_status status = s.status;
  if (status != RDNA_OK) (void)!rdna__fail(status, "no picture can be read from this PNG: %s", s.sentence);
  if (status == RDNA_OK) status = rdna__exif_turn(orientation, out_picture);
  if (status != RDNA_OK) rdna__picture_deinit(out_picture);
  return status;
}

rdna_status rdna__png_decode(const void *bytes, size_t size, rdna__picture *out_picture) {
  return read_png(bytes, size, true, out_picture);
}

rdna_status rdna__png_measure(const void *bytes, size_t size, rdna__picture *out_picture) {
  return read_png(bytes, size, false, out_picture);
}

rdna_status rdna__png_load(const char *path, rdna__picture *out_picture) {
  return rdna__picture_load_with(path, rdna__png_decode, out_picture);
}

/* ---- writing ---- */

static void write_bytes(png_structp png, png_bytep from, png_size_t count) {
  stream *s = png_get_io_ptr(png);
  if (count > s->capacity - s->size) {
    size_t capacity = 2 * (s->capacity + count);
    uint8_t *grown = realloc(s->written, capacity);
    if (!grown) stop(s, RDNA_OUT_OF_MEMORY, "no host memory for a PNG file");
    s->written = grown;
    s->capacity = capacity;
  }
  memcpy(s->written + s->size, from, count);
  s->size += count;
}

static void flush(png_structp png) {}

static bool is_ascii(const char *text) {
  for (; *text; text++)
    if ((uint8_t)*text >= 0x80) return false;
  return true;
}

/* As tEXt where each reader knows the characters, else as iTXt. */
static void write_text(stream *s, const rdna__picture *p) {
  if (!p->parameters) return;
  png_text text = {.compression = is_ascii(p->parameters) ? PNG_TEXT_COMPRESSION_NONE : PNG_ITXT_COMPRESSION_NONE,
                   .key = (png_charp)text_name,
                   .text = p->parameters,
                   .text_length = strlen(p->parameters)};
  png_set_text(s->png, s->info, &text, 1);
}

static void write_picture(stream *s, const rdna__picture *p) {
  int type = p->channels == 4 ? PNG_COLOR_TYPE_RGB_ALPHA : PNG_COLOR_TYPE_RGB;
  png_set_write_fn(s->png, s, write_bytes, flush);
  png_set_user_limits(s->png, RDNA__PICTURE_MOST_SIDE, RDNA__PICTURE_MOST_SIDE);
  png_set_compression_level(s->png, LEVEL);
  png_set_IHDR(s->png, s->info, (png_uint_32)p->width, (png_uint_32)p->height, 8, type, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  write_text(s, p);
  set_rows(s, p);
  png_write_info(s->png, s->info);
  png_write_image(s->png, s->rows);
  png_write_end(s->png, NULL);
}

static void write_guarded(stream *s, const rdna__picture *p) {
  if (setjmp(png_jmpbuf(s->png)) == 0) write_picture(s, p);
}

rdna_status rdna__png_check_parameters(const char *text) {
  size_t size = text ? strlen(text) : 0;
  if (size > RDNA__PICTURE_MOST_TEXT)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a picture's parameters have %zu bytes; up to %d can be kept", size,
                      RDNA__PICTURE_MOST_TEXT);
  if (!text || is_utf8(text, size)) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "a picture's parameters are no UTF-8");
}

rdna_status rdna__png_encode(const rdna__picture *picture, uint8_t **out_bytes, size_t *out_size) {
  stream s = {0};
  RDNA_TRY(rdna__png_check_parameters(picture->parameters));
  s.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &s, fail, ignore);
  if (s.png) s.info = png_create_info_struct(s.png);
  if (!s.info) {
    s.status = RDNA_OUT_OF_MEMORY;
    snprintf(s.sentence, sizeof s.sentence, "no host memory to write it");
  } else {
    write_guarded(&s, picture);
  }
  png_destroy_write_struct(&s.png, &s.info);
  free(s.rows);
  if (s.status == RDNA_OK) {
    *out_bytes = s.written;
    *out_size = s.size;
    return RDNA_OK;
  }
  free(s.written);
  return rdna__fail(s.status, "no PNG can be made of a picture of %d x %d: %s", picture->width, picture->height,
                    s.sentence);
}
