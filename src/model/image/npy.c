#include "model/image/npy.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "kernel/host.h"

enum { START = 10, ALIGNMENT = 64, HEADER_MOST = 1 << 16 };
static const char magic[] = "\x93NUMPY";

/* ---- reading ---- */

/* What stands behind 'name': in |header|; NULL: nothing. */
static const char *value_of(const char *header, const char *name) {
  const char *at = strstr(header, name);
  if (!at) return NULL;
  at += strlen(name);
  at += strspn(at, "'\" ");
  if (*at != ':') return NULL;
  return at + 1 + strspn(at + 1, " ");
}

static rdna_status read_shape(const char *text, rdna__npy *out) {
  bool inside = text && *text == '(';
  out->rank = 0;
  out->count = 1;
  for (const char *at = inside ? text + 1 : ""; *at && *at != ')';) {
    char *end;
    errno = 0;
    long long size = strtoll(at, &end, 10);
    if (end == at || !isdigit((unsigned char)*at) || errno || size < 0 || size > INT32_MAX)
      return rdna__fail(RDNA_BAD_DATA, "its shape is no list of sizes");
    if (out->rank == RDNA_MAX_RANK)
      return rdna__fail(RDNA_UNSUPPORTED, "it has more than %d dimensions", RDNA_MAX_RANK);
    if (__builtin_mul_overflow(out->count, size, &out->count))
      return rdna__fail(RDNA_BAD_DATA, "its sizes are too large");
    out->shape[out->rank++] = size;
    at = end + strspn(end, ", ");
  }
  return inside && strchr(text, ')') ? RDNA_OK : rdna__fail(RDNA_BAD_DATA, "it does not say its shape");
}

static rdna_status read_header(const char *header, rdna__npy *out, rdna_dtype *out_dtype) {
  static const char *const names[] = {"'<f4'", "'<f2'", "'<f8'"};
  static const rdna_dtype types[] = {RDNA_F32, RDNA_F16, RDNA_F64};
  const char *type = value_of(header, "'descr'"), *order = value_of(header, "'fortran_order'");
  if (!type || !order) return rdna__fail(RDNA_BAD_DATA, "its header does not say type and order");
  *out_dtype = RDNA_DTYPE_COUNT;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strncmp(type, names[i], strlen(names[i])) == 0) *out_dtype = types[i];
  if (*out_dtype == RDNA_DTYPE_COUNT)
    return rdna__fail(RDNA_UNSUPPORTED, "its values are of type %.*s; '<f2', '<f4' and '<f8' are read",
                      (int)strcspn(type, ","), type);
  if (strncmp(order, "False", 5) != 0)
    return rdna__fail(RDNA_UNSUPPORTED, "its order is Fortran's; save numpy.ascontiguousarray of it");
  return read_shape(value_of(header, "'shape'"), out);
}

static rdna_status copy_values(const uint8_t *data, rdna_dtype dtype, rdna__npy *out) {
  if (out->count == 0) return RDNA_OK;
  out->values = malloc((size_t)out->count * sizeof *out->values);
  if (!out->values) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %lld values", (long long)out->count);
  for (int64_t i = 0; i < out->count; i++) {
    double wide;
    uint16_t half;
    if (dtype == RDNA_F32) {
      memcpy(&out->values[i], data + 4 * i, 4);
    } else if (dtype == RDNA_F64) {
      memcpy(&wide, data + 8 * i, 8);
      out->values[i] = (float)wide;
    } else {
      memcpy(&half, data + 2 * i, 2);
      out->values[i] = f16_to_f32(half);
    }
  }
  return RDNA_OK;
}

rdna_status rdna__npy_read(const void *from, size_t size, rdna__npy *out) {
  const uint8_t *data = from;
  size_t start = START, length = 0;
  *out = (rdna__npy){0};
  if (size < 12 || memcmp(data, magic, sizeof magic - 1) != 0)
    return rdna__fail(RDNA_BAD_DATA, "it is no array of NumPy");
  if (data[6] < 1 || data[6] > 3)
    return rdna__fail(RDNA_UNSUPPORTED, "it is of version %d of that format; 1 to 3 are known", data[6]);
  length = data[8] | (size_t)data[9] << 8;
  if (data[6] > 1) length |= (size_t)data[10] << 16 | (size_t)data[11] << 24, start = 12;
  if (length > HEADER_MOST || size - start < length) return rdna__fail(RDNA_BAD_DATA, "its header is cut off");
  char *header = calloc(1, length + 1);
  if (!header) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a header");
  memcpy(header, data + start, length);
  rdna_dtype dtype = RDNA_F32;
  rdna_status status = read_header(header, out, &dtype);
  free(header);
  if (status != RDNA_OK) return status;
  size_t there = (size - start - length) / rdna_dtype_block_bytes(dtype);
  if (there < (size_t)out->count)
    return rdna__fail(RDNA_BAD_DATA, "it ends after %zu of %lld values", there, (long long)out->count);
  return copy_values(data + start + length, dtype, out);
}

rdna_status rdna__npy_open(const char *path, rdna__npy *out) {
  rdna__file file = {0};
  uint8_t *copy = NULL;
  *out = (rdna__npy){0};
  rdna_status status = rdna__file_map(path, &file);
  if (status == RDNA_OK && !(copy = malloc(file.size + 1)))
    status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %zu bytes", file.size);
  if (status == RDNA_OK) status = rdna__file_read(file.data, file.size, copy); /* which may end meanwhile */
  if (status == RDNA_OK) status = rdna__npy_read(copy, file.size, out);
  free(copy);
  rdna__file_unmap(&file);
  return rdna__annotate(status, "%s", path);
}

/* ---- writing ---- */

static bool write_all(FILE *file, int rank, const int64_t *shape, const float *values) {
  char text[256];
  int64_t count = 1;
  int at = snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': (");
  for (int i = 0; i < rank; i++) {
    count *= shape[i];
    at += snprintf(text + at, sizeof text - (size_t)at, "%lld,%s", (long long)shape[i], i + 1 < rank ? " " : "");
  }
  at += snprintf(text + at, sizeof text - (size_t)at, "), }");
  while ((START + at + 1) % ALIGNMENT != 0) text[at++] = ' ';
  text[at++] = '\n';
  const uint8_t start[START] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)at, (uint8_t)(at >> 8)};
  return fwrite(start, 1, START, file) == START && fwrite(text, 1, (size_t)at, file) == (size_t)at &&
         fwrite(values, sizeof *values, (size_t)count, file) == (size_t)count;
}

rdna_status rdna__npy_save(const char *path, int rank, const int64_t *shape, const float *values) {
  FILE *file = fopen(path, "wb");
  bool written = file && write_all(file, rank, shape, values);
  if (file && fclose(file) != 0) written = false;
  return written ? RDNA_OK : rdna__fail(RDNA_IO_ERROR, "cannot write %s: %s", path, strerror(errno));
}
