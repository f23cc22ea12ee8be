#include "picture/jpeg.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h> /* before jpeglib.h, which wants its FILE */
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

enum { MOST_SCANS = 100, MOST_MARKER = 65533, PLAIN = 1, MOST_ORIENTATION = 8 };

/* libjpeg jumps to |back| when something fails, so that what changes lies here. */
typedef struct reading {
  struct jpeg_decompress_struct jpeg;
  struct jpeg_error_mgr errors;
  struct jpeg_progress_mgr progress;
  struct jpeg_source_mgr source;
  jmp_buf back;
  rdna_status status;
  char sentence[JMSG_LENGTH_MAX];
} reading;

static _Noreturn void stop(reading *r, rdna_status status, const char *message) {
  r->status = status;
  snprintf(r->sentence, sizeof r->sentence, "%s", message);
  longjmp(r->back, 1);
}

static _Noreturn void fail(j_common_ptr jpeg) {
  reading *r = jpeg->client_data;
  char message[JMSG_LENGTH_MAX];
  jpeg->err->format_message(jpeg, message);
  stop(r, RDNA_BAD_DATA, message);
}

static void ignore(j_common_ptr jpeg, int level) {}

/* A file of a few kilobytes may have thousands of scans over many pixels. */
static void count_scans(j_common_ptr jpeg) {
  reading *r = jpeg->client_data;
  if (r->jpeg.input_scan_number > MOST_SCANS) stop(r, RDNA_UNSUPPORTED, "it has more scans than are read");
}

/* ---- the bytes, all of which are there from the start ---- */

static void begin(j_decompress_ptr jpeg) {}

static boolean ask_for_more(j_decompress_ptr jpeg) { stop(jpeg->client_data, RDNA_BAD_DATA, "the file breaks off"); }

static void skip(j_decompress_ptr jpeg, long count) {
  struct jpeg_source_mgr *s = jpeg->src;
  if (count <= 0) return;
  if ((size_t)count > s->bytes_in_buffer) stop(jpeg->client_data, RDNA_BAD_DATA, "the file breaks off");
  s->next_input_byte += count;
  s->bytes_in_buffer -= (size_t)count;
}

/* ---- which way up it is: EXIF 2.3, over TIFF 6 ---- */

static uint32_t number(const uint8_t *at, int bytes, bool little) {
  uint32_t value = 0;
  for (int i = 0; i < bytes; i++) value = value << 8 | at[little ? bytes - 1 - i : i];
  return value;
}

/* Of the TIFF file |at|; PLAIN where it does not say. */
static int orientation_in(const uint8_t *at, size_t size) {
  enum { HEADER = 8, ENTRY = 12, ORIENTATION = 0x0112, SHORT = 3 };
  if (size < HEADER || (memcmp(at, "II*\0", 4) != 0 && memcmp(at, "MM\0*", 4) != 0)) return PLAIN;
  bool little = at[0] == 'I';
  size_t table = number(at + 4, 4, little);
  if (table > size || size - table < 2) return PLAIN;
  size_t count = number(at + table, 2, little), first = table + 2;
  for (size_t i = 0; i < count && size - first >= (i + 1) * ENTRY; i++) {
    const uint8_t *entry = at + first + i * ENTRY;
    if (number(entry, 2, little) != ORIENTATION || number(entry + 2, 2, little) != SHORT) continue;
    uint32_t value = number(entry + 8, 2, little);
    return value >= PLAIN && value <= MOST_ORIENTATION ? (int)value : PLAIN;
  }
  return PLAIN;
}

static int orientation_of(const reading *r) {
  static const char name[] = "Exif\0";
  for (jpeg_saved_marker_ptr m = r->jpeg.marker_list; m; m = m->next)
    if (m->marker == JPEG_APP0 + 1 && m->data_length > sizeof name && memcmp(m->data, name, sizeof name) == 0)
      return orientation_in(m->data + sizeof name, m->data_length - sizeof name);
  return PLAIN;
}

/* Turns |picture| as it is to be seen: orientations from 5 on have columns as rows, and each of the two sides of what
 * is in the file may be read backwards. */
static rdna_status turn(int orientation, rdna__picture *picture) {
  if (orientation == PLAIN) return RDNA_OK;
  bool swaps = orientation > 4;
  bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  bool from_below = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  rdna__picture out;
  RDNA_TRY(
      rdna__picture_init(&out, swaps ? picture->height : picture->width, swaps ? picture->width : picture->height, 3));
  uint8_t *to = out.pixels;
  for (int y = 0; y < out.height; y++)
    for (int x = 0; x < out.width; x++, to += 3) {
      int column = swaps ? y : x, row = swaps ? x : y;
      if (from_right) column = picture->width - 1 - column;
      if (from_below) row = picture->height - 1 - row;
      memcpy(to, picture->pixels + 3 * ((size_t)row * (size_t)picture->width + (size_t)column), 3);
    }
  rdna__picture_deinit(picture);
  *picture = out;
  return RDNA_OK;
}

/* ---- the picture ---- */

static void read_picture(reading *r, rdna__picture *out) {
  struct jpeg_decompress_struct *j = &r->jpeg;
  jpeg_save_markers(j, JPEG_APP0 + 1, MOST_MARKER);
  jpeg_read_header(j, TRUE);
  if (j->image_width > RDNA__PICTURE_MOST_SIDE || j->image_height > RDNA__PICTURE_MOST_SIDE ||
      (uint64_t)j->image_width * j->image_height > RDNA__PICTURE_MOST_PIXELS)
    stop(r, RDNA_UNSUPPORTED, "it has too many pixels");
  if (j->jpeg_color_space == JCS_CMYK || j->jpeg_color_space == JCS_YCCK)
    stop(r, RDNA_UNSUPPORTED, "it has the four colours of printers");
  j->out_color_space = JCS_RGB;
  jpeg_start_decompress(j);
  if (rdna__picture_init(out, (int)j->output_width, (int)j->output_height, 3) != RDNA_OK)
    stop(r, RDNA_OUT_OF_MEMORY, "no host memory for its pixels");
  while (j->output_scanline < j->output_height) {
    JSAMPROW row = out->pixels + (size_t)j->output_scanline * (size_t)out->width * 3;
    jpeg_read_scanlines(j, &row, 1);
  }
}

/* Where libjpeg jumps to. */
static void read_guarded(reading *r, rdna__picture *out) {
  if (setjmp(r->back) != 0) return;
  jpeg_create_decompress(&r->jpeg);
  r->jpeg.src = &r->source;
  r->jpeg.progress = &r->progress;
  read_picture(r, out);
}

rdna_status rdna__jpeg_decode(const void *bytes, size_t size, rdna__picture *out_picture) {
  reading r = {.progress.progress_monitor = count_scans,
               .source = {.next_input_byte = bytes,
                          .bytes_in_buffer = size,
                          .init_source = begin,
                          .fill_input_buffer = ask_for_more,
                          .skip_input_data = skip,
                          .resync_to_restart = jpeg_resync_to_restart,
                          .term_source = begin}};
  *out_picture = (rdna__picture){0};
  if (size < 2 || memcmp(bytes, "\xff\xd8", 2) != 0)
    return rdna__fail(RDNA_BAD_DATA, "this is no JPEG: it does not begin as one");
  r.jpeg.err = jpeg_std_error(&r.errors);
  r.errors.error_exit = fail;
  r.errors.emit_message = ignore;
  r.jpeg.client_data = &r;
  read_guarded(&r, out_picture);
  int orientation = r.status == RDNA_OK ? orientation_of(&r) : PLAIN;
  jpeg_destroy_decompress(&r.jpeg);
  rdna_status status = r.status;
  if (status != RDNA_OK) (void)!rdna__fail(status, "this JPEG cannot be read: %s", r.sentence);
  if (status == RDNA_OK) status = turn(orientation, out_picture);
  if (status != RDNA_OK) rdna__picture_deinit(out_picture);
  return status;
}
