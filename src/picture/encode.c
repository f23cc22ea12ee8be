#include "picture/encode.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "picture/exif.h"
#include "picture/jpeg.h"

enum { PATH_BYTES = 4096 };

rdna_status rdna__picture_kind_of(const char *path, rdna__picture_kind *out_kind) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
  bool jpeg = dot && (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0);
  *out_kind = jpeg ? RDNA__PICTURE_JPEG : RDNA__PICTURE_PNG;
  if (jpeg || !dot || dot == name || strcasecmp(dot, ".png") == 0) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "cannot write '%s': pictures are written as .png and .jpg, and it ends in %.20s",
                    path, dot);
}

rdna_status rdna__picture_encode(const rdna__picture *picture, rdna__picture_kind kind, int quality,
                                 uint8_t **out_bytes, size_t *out_size) {
  return kind == RDNA__PICTURE_JPEG ? rdna__jpeg_encode(picture, quality, out_bytes, out_size)
                                    : rdna__png_encode(picture, out_bytes, out_size);
}

rdna_status rdna__picture_check_parameters(rdna__picture_kind kind, const char *parameters) {
  RDNA_TRY(rdna__png_check_parameters(parameters));
  return kind == RDNA__PICTURE_JPEG && parameters ? rdna__exif_check_comment(parameters) : RDNA_OK;
}

/* ---- files ---- */

/* A file beside |path|, which will take its place. */
static rdna_status open_partial(const char *path, char partial[PATH_BYTES], FILE **out) {
  struct stat at;
  if (!*path) return rdna__fail(RDNA_INVALID_ARGUMENT, "its name is empty");
  if (stat(path, &at) == 0 && S_ISDIR(at.st_mode)) return rdna__fail(RDNA_IO_ERROR, "%s", strerror(EISDIR));
  if (snprintf(partial, PATH_BYTES, "%s.partial", path) >= PATH_BYTES)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the path is too long");
  *out = fopen(partial, "wb");
  return *out ? RDNA_OK : rdna__fail(RDNA_IO_ERROR, "%s", strerror(errno));
}

rdna_status rdna__picture_check_path(const char *path) {
  char partial[PATH_BYTES];
  FILE *file;
  rdna__picture_kind kind;
  RDNA_TRY(rdna__picture_kind_of(path, &kind));
  RDNA_TRY(rdna__annotate(open_partial(path, partial, &file), "cannot write '%s'", path));
  fclose(file);
  (void)remove(partial);
  return RDNA_OK;
}

static rdna_status write_file(const char *path, const uint8_t *bytes, size_t size) {
  char partial[PATH_BYTES];
  FILE *file;
  RDNA_TRY(open_partial(path, partial, &file));
  bool whole = fwrite(bytes, 1, size, file) == size;
  int problem = errno;
  if (fclose(file) != 0 && whole) whole = false, problem = errno;
  if (whole && rename(partial, path) == 0) return RDNA_OK;
  if (whole) problem = errno;
  (void)remove(partial);
  return rdna__fail(RDNA_IO_ERROR, "%s", strerror(problem));
}

rdna_status rdna__picture_save(const char *path, const rdna__picture *picture, int quality) {
  uint8_t *bytes;
  size_t size;
  rdna__picture_kind kind;
  RDNA_TRY(rdna__picture_kind_of(path, &kind));
  RDNA_TRY(rdna__picture_encode(picture, kind, quality, &bytes, &size));
  rdna_status status = write_file(path, bytes, size);
  free(bytes);
  return rdna__annotate(status, "cannot write %s", path);
}
