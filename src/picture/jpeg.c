#include "picture/jpeg.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h> /* before jpeglib.h, which wants its FILE */
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "picture/exif.h"

enum { MOST_SCANS = 100, MOST_MARKER = 65533 };

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

static int orientation_of(const reading *r) {
  static const char name[] = "Exif\0";
  for (jpeg_saved_marker_ptr m = r->jpeg.marker_list; m; m = m->next)
    if (m->marker == JPEG_APP0 + 1 && m->data_length > sizeof name && memcmp(m->data, name, sizeof name) == 0)
      return rdna__exif_orientation(m->data + sizeof name, m->data_length - sizeof name);
  return RDNA__EXIF_PLAIN;
}

/* ---- the picture ---- */

/* Its sizes as they are in the file. */
static void read_header(reading *r, rdna__picture *out) {
  struct jpeg_decompress_struct *j = &r->jpeg;
  jpeg_save_markers(j, JPEG_APP0 + 1, MOST_MARKER);
  jpeg_read_header(j, TRUE);
  if (j->image_width > RDNA__PICTURE_MOST_SIDE || j->image_height > RDNA__PICTURE_MOST_SIDE ||
      (uint64_t)j->image_width * j->image_height > RDNA__PICTURE_MOST_PIXELS)
    stop(r, RDNA_UNSUPPORTED, "it has too many pixels");
  if (j->jpeg_color_space == JCS_CMYK || j->jpeg_color_space == JCS_YCCK)
    stop(r, RDNA_UNSUPPORTED, "it has the four colours of printers (CMYK)");
  out->width = (int)j->image_width, out->height = (int)j->image_height, out->channels = 3;
}

static void read_pixels(reading *r, rdna__picture *out) {
  struct jpeg_decompress_struct *j = &r->jpeg;
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
static void read_guarded(reading *r, bool pixels, rdna__picture *out) {
  if (setjmp(r->back) != 0) return;
  jpeg_create_decompress(&r->jpeg);
  r->jpeg.src = &r->source;
  r->jpeg.progress = &r->progress;
  read_header(r, out);
  if (pixels) read_pixels(r, out);
}

static rdna_status read_jpeg(const void *bytes, size_t size, bool pixels, rdna__picture *out_picture) {
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
  read_guarded(&r, pixels, out_picture);
  int orientation = r.status == RDNA_OK ? orientation_of(&r) : RDNA__EXIF_PLAIN;
  jpeg_destroy_decompress(&r.jpeg);
  rdna_status status = r.status;
  if (status != RDNA_OK) (void)!rdna__fail(status, "this JPEG cannot be read: %s", r.sentence);
  if (status == RDNA_OK) status = rdna__exif_turn(orientation, out_picture);
  if (status != RDNA_OK) rdna__picture_deinit(out_picture);
  return status;
}

rdna_status rdna__jpeg_decode(const void *bytes, size_t size, rdna__picture *out_picture) {
  return read_jpeg(bytes, size, true, out_picture);
}

rdna_status rdna__jpeg_measure(const void *bytes, size_t size, rdna__picture *out_picture) {
  return read_jpeg(bytes, size, false, out_picture);
}
