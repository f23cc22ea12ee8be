/* pack_builder OUT TARGET LEVEL IMAGE…  writes the pack OUT; an image's family is its file's stem, its format is told
 * by its suffix (.hsaco or .ptx). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

#include "kernel/pack.h"

typedef struct image {
  rdna__pack_entry entry;
  void *compressed;
} image;

static void die(const char *path, const char *what) {
  fprintf(stderr, "pack_builder: %s: %s\n", path, what);
  exit(1);
}

static void *read_file(const char *path, size_t *out_size) {
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END)) die(path, strerror(errno));
  long size = ftell(file);
  char *data = size < 0 ? NULL : calloc(1, (size_t)size + 1); /* one NUL more, for PTX */
  if (!data) die(path, "cannot be held in memory");
  rewind(file);
  if (fread(data, 1, (size_t)size, file) != (size_t)size) die(path, "cannot be read to its end");
  fclose(file);
  *out_size = (size_t)size;
  return data;
}

static void load_image(const char *path, int level, image *out_image) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
  rdna__pack_entry *entry = &out_image->entry;
  if (!dot || (size_t)(dot - name) >= sizeof entry->name) die(path, "family names are 1 to 47 characters and a suffix");
  memcpy(entry->name, name, (size_t)(dot - name));
  if (!strcmp(dot, ".hsaco"))
    entry->format = RDNA__PACK_HSACO;
  else if (!strcmp(dot, ".ptx"))
    entry->format = RDNA__PACK_PTX;
  else
    die(path, "is neither .hsaco nor .ptx");

  size_t size;
  void *raw = read_file(path, &size);
  if (entry->format == RDNA__PACK_PTX) size++;
  if (size == 0 || size > RDNA__PACK_MAX_IMAGE) die(path, "is empty or too large for a pack");
  size_t bound = ZSTD_compressBound(size);
  out_image->compressed = malloc(bound);
  if (!out_image->compressed) die(path, "cannot be held in memory");
  size_t compressed = ZSTD_compress(out_image->compressed, bound, raw, size, level);
  if (ZSTD_isError(compressed)) die(path, ZSTD_getErrorName(compressed));
  entry->raw_size = size;
  entry->raw_hash = XXH3_64bits(raw, size);
  entry->compressed_size = compressed;
  free(raw);
}

static void write_pack(const char *path, const char *target, const image *images, int count) {
  rdna__pack_entry *table = calloc((size_t)count + 1, sizeof *table);
  if (!table) die(path, "out of memory");
  uint64_t offset = sizeof(rdna__pack_header) + (uint64_t)count * sizeof *table;
  for (int i = 0; i < count; i++) {
    table[i] = images[i].entry;
    table[i].offset = offset;
    offset += table[i].compressed_size;
  }
  rdna__pack_header header = {.version = RDNA__PACK_VERSION, .entry_count = (uint32_t)count};
  memcpy(header.magic, RDNA__PACK_MAGIC, sizeof header.magic);
  strcpy(header.target, target);
  header.table_hash = XXH3_64bits(table, (size_t)count * sizeof *table);

  char temporary[4096];
  if (snprintf(temporary, sizeof temporary, "%s.new", path) >= (int)sizeof temporary) die(path, "path is too long");
  FILE *file = fopen(temporary, "wb");
  if (!file) die(temporary, strerror(errno));
  fwrite(&header, sizeof header, 1, file);
  fwrite(table, sizeof *table, (size_t)count, file);
  for (int i = 0; i < count; i++) fwrite(images[i].compressed, 1, (size_t)table[i].compressed_size, file);
  if (ferror(file) || fclose(file)) die(temporary, "cannot be written");
  if (rename(temporary, path)) die(path, strerror(errno));
  free(table);
}

int main(int argc, char **argv) {
  if (argc < 4 || argc - 4 > RDNA__PACK_MAX_ENTRIES) {
    fprintf(stderr, "usage: pack_builder OUT TARGET LEVEL IMAGE...\n");
    return 2;
  }
  if (strlen(argv[2]) >= sizeof((rdna__pack_header *)0)->target) die(argv[2], "target name is too long");
  int count = argc - 4, level = atoi(argv[3]);
  image *images = calloc((size_t)count + 1, sizeof *images);
  if (!images) die(argv[1], "out of memory");
  for (int i = 0; i < count; i++) load_image(argv[4 + i], level, &images[i]);
  write_pack(argv[1], argv[2], images, count);
  for (int i = 0; i < count; i++) free(images[i].compressed);
  free(images);
  return 0;
}
