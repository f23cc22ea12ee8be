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
  uint8_t *row; /* of four colours */
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

static const char exif_name[] = "Exif\0"; /* and the zero behind it */

/* The first segment with EXIF, without its name; |*out_size| 0: there is none. */
static const uint8_t *find_exif(const reading *r, size_t *out_size) {
  *out_size = 0;
  for (jpeg_saved_marker_ptr m = r->jpeg.marker_list; m; m = m->next) {
    if (m->marker != JPEG_APP0 + 1 || m->data_length <= sizeof exif_name) continue;
    if (memcmp(m->data, exif_name, sizeof exif_name) != 0) continue;
    *out_size = m->data_length - sizeof exif_name;
    return m->data + sizeof exif_name;
  }
  return NULL;
}

/* ---- the picture that is read ---- */

/* Its sizes as they are in the file. */
static void read_header(reading *r, rdna__picture *out) {
  struct jpeg_decompress_struct *j = &r->jpeg;
  jpeg_save_markers(j, JPEG_APP0 + 1, MOST_MARKER);
  jpeg_read_header(j, TRUE);
  if (j->image_width > RDNA__PICTURE_MOST_SIDE || j->image_height > RDNA__PICTURE_MOST_SIDE ||
      (uint64_t)j->image_width * j->image_height > RDNA__PICTURE_MOST_PIXELS)
    stop(r, RDNA_UNSUPPORTED, "it has too many pixels");
  out->width = (int)j->image_width, out->height = (int)j->image_height, out->channels = 3;
}

/* Of printers' four colours, which all programs write as what is left of white (Adobe's way), in Pillow's arithmetic.
 */
static void mix_colours(const uint8_t *from, int width, uint8_t *to) {
  for (int x = 0; x < width; x++, from += 4)
    for (int c = 0; c < 3; c++) {
      int product = (255 - from[c]) * from[3] + 128;
      *to++ = (uint8_t)(from[3] - (((product >> 8) + product) >> 8));
    }
}

static void read_pixels(reading *r, rdna__picture *out) {
  struct jpeg_decompress_struct *j = &r->jpeg;
  bool printed = j->jpeg_color_space == JCS_CMYK || j->jpeg_color_space == JCS_YCCK;
  j->out_color_space = printed ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(j);
  if (printed && !(r->row = malloc(4 * (size_t)j->output_width)))
    stop(r, RDNA_OUT_OF_MEMORY, "no host memory for its pixels");
  if (rdna__picture_init(out, (int)j->output_width, (int)j->output_height, 3) != RDNA_OK)
    stop(r, RDNA_OUT_OF_MEMORY, "no host memory for its pixels");
  while (j->output_scanline < j->output_height) {
    uint8_t *to = out->pixels + (size_t)j->output_scanline * (size_t)out->width * 3;
    JSAMPROW row = printed ? r->row : to;
    jpeg_read_scanlines(j, &row, 1);
    if (printed) mix_colours(row, out->width, to);
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
  int orientation = RDNA__EXIF_PLAIN;
  size_t exif_size = 0;
  const uint8_t *exif = r.status == RDNA_OK ? find_exif(&r, &exif_size) : NULL;
  if (exif) orientation = rdna__exif_orientation(exif, exif_size);
  if (exif && pixels) out_picture->parameters = rdna__exif_comment(exif, exif_size);
  jpeg_destroy_decompress(&r.jpeg);
  free(r.row);
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

/* ---- writing ---- */

/* The same for libjpeg's other way; the bytes are taken from it as they are made. */
typedef struct writing {
  struct jpeg_compress_struct jpeg;
  struct jpeg_error_mgr errors;
  struct jpeg_destination_mgr sink;
  jmp_buf back;
  uint8_t *bytes, *exif, *row;
  size_t size; /* that there is room for */
  rdna_status status;
  char sentence[JMSG_LENGTH_MAX];
} writing;

static _Noreturn void stop_writing(writing *w, rdna_status status, const char *message) {
  w->status = status;
  snprintf(w->sentence, sizeof w->sentence, "%s", message);
  longjmp(w->back, 1);
}

static _Noreturn void fail_writing(j_common_ptr jpeg) {
  char message[JMSG_LENGTH_MAX];
  jpeg->err->format_message(jpeg, message);
  stop_writing(jpeg->client_data, RDNA_INTERNAL, message);
}

/* More room, as all that there was is full. */
static boolean grow(j_compress_ptr jpeg) {
  enum { LEAST = 1 << 16 };
  writing *w = jpeg->client_data;
  size_t had = w->size, size = had ? 2 * had : LEAST;
  uint8_t *grown = realloc(w->bytes, size);
  if (!grown) stop_writing(w, RDNA_OUT_OF_MEMORY, "no host memory for its file");
  w->bytes = grown;
  w->size = size;
  w->sink.next_output_byte = grown + had;
  w->sink.free_in_buffer = size - had;
  return TRUE;
}

static void begin_writing(j_compress_ptr jpeg) { grow(jpeg); }
static void end_writing(j_compress_ptr jpeg) {}

/* EXIF is to be the first segment: there is none of JFIF. */
static void write_comment(writing *w, const char *text) {
  uint8_t *tiff;
  size_t size;
  if (rdna__exif_of_comment(text, &tiff, &size) != RDNA_OK)
    stop_writing(w, RDNA_INVALID_ARGUMENT, "its parameters are too long");
  w->exif = malloc(sizeof exif_name + size);
  if (w->exif) {
    memcpy(w->exif, exif_name, sizeof exif_name);
    memcpy(w->exif + sizeof exif_name, tiff, size);
  }
  free(tiff);
  if (!w->exif) stop_writing(w, RDNA_OUT_OF_MEMORY, "no host memory for its text");
  jpeg_write_marker(&w->jpeg, JPEG_APP0 + 1, w->exif, (unsigned)(sizeof exif_name + size));
}

/* A row without opacity: what is transparent lies on white. */
static void lay_on_white(const uint8_t *from, int width, uint8_t *to) {
  for (int x = 0; x < width; x++, from += 4)
    for (int c = 0; c < 3; c++) *to++ = (uint8_t)((from[c] * from[3] + 255 * (255 - from[3]) + 127) / 255);
}

static void write_jpeg(writing *w, const rdna__picture *p, int quality) {
  struct jpeg_compress_struct *j = &w->jpeg;
  jpeg_create_compress(j);
  j->dest = &w->sink;
  j->image_width = (JDIMENSION)p->width;
  j->image_height = (JDIMENSION)p->height;
  j->input_components = 3;
  j->in_color_space = JCS_RGB;
  jpeg_set_defaults(j);
  jpeg_set_quality(j, quality, TRUE);
  if (quality >= RDNA__JPEG_WHOLE_COLOURS) /* of each pixel, else of four together */
    for (int c = 0; c < 3; c++) j->comp_info[c].h_samp_factor = j->comp_info[c].v_samp_factor = 1;
  j->optimize_coding = TRUE;
  j->write_JFIF_header = !p->parameters;
  if (p->channels == 4 && !(w->row = malloc(3 * (size_t)p->width)))
    stop_writing(w, RDNA_OUT_OF_MEMORY, "no host memory for its file");
  jpeg_start_compress(j, TRUE);
  if (p->parameters) write_comment(w, p->parameters);
  while (j->next_scanline < j->image_height) {
    uint8_t *row = p->pixels + (size_t)j->next_scanline * (size_t)p->width * (size_t)p->channels;
    if (w->row) lay_on_white(row, p->width, w->row);
    JSAMPROW rows[1] = {w->row ? w->row : row};
    jpeg_write_scanlines(j, rows, 1);
  }
  jpeg_finish_compress(j);
}

static void write_jpeg_guarded(writing *w, const rdna__picture *p, int quality) {
  if (setjmp(w->back) == 0) write_jpeg(w, p, quality);
}

rdna_status rdna__jpeg_encode(const rdna__picture *picture, int quality, uint8_t **out_bytes, size_t *out_size) {
  writing w = {
      .sink = {.init_destination = begin_writing, .empty_output_buffer = grow, .term_destination = end_writing}};
  if (picture->parameters) {
    RDNA_TRY(rdna__png_check_parameters(picture->parameters));
    RDNA_TRY(rdna__exif_check_comment(picture->parameters));
  }
  w.jpeg.err = jpeg_std_error(&w.errors);
  w.errors.error_exit = fail_writing;
  w.errors.emit_message = ignore;
  w.jpeg.client_data = &w;
  write_jpeg_guarded(&w, picture, quality);
  *out_size = w.size - w.sink.free_in_buffer;
  jpeg_destroy_compress(&w.jpeg);
  free(w.exif);
  free(w.row);
  *out_bytes = w.bytes;
  if (w.status == RDNA_OK) return RDNA_OK;
  free(w.bytes);
  *out_bytes = NULL;
  return rdna__fail(w.status, "no JPEG can be made of a picture of %d x %d: %s", picture->width, picture->height,
                    w.sentence);
}
