/* pack_builder OUT TARGET LEVEL [--base PACK] IMAGE…  writes the pack OUT; an image's family is its file's stem, its
 * format is told by its suffix (.hsaco or .ptx). An image of which a quarter occurs in another is compressed against
 * that one, or against the family's in PACK, which will lie beside OUT: for a pack x/gfx1100.rdnapack the image is
 * x/gfx1100/FILE. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

#include "kernel/pack.h"

enum { WINDOW = 16, ONE_IN = 32, COMMON = 4 };

typedef struct image {
  rdna__pack_entry entry;
  struct image *elsewhere; /* the base pack's of the same name, or NULL */
  const char *path;
  void *raw, *compressed;
  /* Hashes of the windows of the raw bytes, ascending, each once. One in ONE_IN is kept, chosen by the hash's value, so
   * that two images keep the same ones. */
  uint64_t *windows;
  size_t window_count;
} image;

static void die(const char *path, const char *what) {
  fprintf(stderr, "pack_builder: %s: %s\n", path, what);
  exit(1);
}

static void *read_file(const char *path, size_t *out_size) {
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END)) die(path, strerror(errno));
  long size = ftell(file);
  char *data =
      size < 0 ? NULL : calloc(1, (size_t)size + 2); /* 2 more: PTX gets a newline after its last line, and a NUL */
  if (!data) die(path, "cannot be held in memory");
  rewind(file);
  if (fread(data, 1, (size_t)size, file) != (size_t)size) die(path, "cannot be read to its end");
  fclose(file);
  *out_size = (size_t)size;
  return data;
}

/* Strips comments, indentation, repeated blanks and empty lines from PTX. Keeps lines with a string, and binary data:
 * the driver takes assembled code in place of PTX. Returns the new size. */
static size_t shorten_ptx(char *text, size_t size) {
  size_t kept = 0;
  if (memchr(text, 0, size)) return size;
  for (char *line = text, *end = text + size, *next; line < end; line = next) {
    next = memchr(line, '\n', (size_t)(end - line));
    next = next ? next + 1 : end;
    size_t length = (size_t)(next - line), start = kept;
    if (memchr(line, '"', length)) {
      memmove(text + kept, line, length);
      kept += length;
      continue;
    }
    char *remark = memmem(line, length, "//", 2), *stop = remark ? remark : next;
    for (char *c = line; c < stop; c++) {
      bool blank = *c == ' ' || *c == '\t' || *c == '\n';
      if (!blank)
        text[kept++] = *c;
      else if (kept > start && text[kept - 1] != ' ')
        text[kept++] = ' ';
    }
    if (kept > start && text[kept - 1] == ' ') kept--;
    if (kept > start) text[kept++] = '\n';
  }
  text[kept] = 0;
  return kept;
}

static void load_image(const char *path, image *out_image) {
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
  out_image->path = path;
  out_image->raw = read_file(path, &size);
  if (entry->format == RDNA__PACK_PTX) size = shorten_ptx(out_image->raw, size) + 1;
  if (size == 0 || size > RDNA__PACK_MAX_IMAGE) die(path, "is empty or too large for a pack");
  entry->raw_size = size;
  entry->raw_hash = XXH3_64bits(out_image->raw, size);
}

/* ---- which image is nearly another --------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void find_windows(image *of) {
  size_t size = (size_t)of->entry.raw_size, room = 0, count = 0;
  for (size_t at = 0; at + WINDOW <= size; at++) {
    uint64_t hash = XXH3_64bits((const char *)of->raw + at, WINDOW);
    if (hash % ONE_IN) continue;
    if (of->window_count == room) {
      room = room ? 2 * room : 1024;
      of->windows = realloc(of->windows, room * sizeof *of->windows);
      if (!of->windows) die(of->path, "cannot be held in memory");
    }
    of->windows[of->window_count++] = hash;
  }
  if (of->window_count) qsort(of->windows, of->window_count, sizeof *of->windows, by_value);
  for (size_t i = 0; i < of->window_count; i++)
    if (!count || of->windows[i] != of->windows[count - 1]) of->windows[count++] = of->windows[i];
  of->window_count = count;
}

static size_t common_windows(const image *a, const image *b) {
  size_t common = 0;
  for (size_t i = 0, j = 0; i < a->window_count && j < b->window_count;) {
    if (a->windows[i] == b->windows[j])
      common++, i++, j++;
    else if (a->windows[i] < b->windows[j])
      i++;
    else
      j++;
  }
  return common;
}

typedef struct likeness {
  size_t common;
  int image, base;
} likeness;

static int most_first(const void *a, const void *b) {
  const likeness *x = a, *y = b;
  if (x->common != y->common) return x->common < y->common ? 1 : -1;
  return x->image != y->image ? x->image - y->image : x->base - y->base;
}

/* Makes the base pack's image of the same family the base of each image that has enough in common with it. */
static void find_elsewhere(const char *pack, rdna__pack_header *header, image *images, int count) {
  const char *slash = strrchr(pack, '/');
  rdna__pack_header base = {.version = 0};
  size_t size;
  char *bytes = read_file(pack, &size);
  if (size >= sizeof base) memcpy(&base, bytes, sizeof base);
  if (memcmp(base.magic, RDNA__PACK_MAGIC, sizeof base.magic) || base.version != RDNA__PACK_VERSION || base.base[0] ||
      base.entry_count > (size - sizeof base) / sizeof(rdna__pack_entry))
    die(pack, "is no pack of this version without a base");
  const rdna__pack_entry *table = (const rdna__pack_entry *)(bytes + sizeof base), *end = table + base.entry_count;
  memcpy(header->base, base.target, sizeof header->base);
  header->base_hash = base.table_hash;
  for (int i = 0; i < count; i++) {
    const char *name = strrchr(images[i].path, '/');
    char path[4096], why[4096];
    const rdna__pack_entry *entry = table;
    while (entry < end && strncmp(entry->name, images[i].entry.name, sizeof entry->name)) entry++;
    if (entry == end) continue;
    int length = snprintf(path, sizeof path, "%.*s%s/%s", slash ? (int)(slash - pack) + 1 : 0, pack, base.target,
                          name ? name + 1 : images[i].path);
    if (length >= (int)sizeof path) die(pack, "its path is too long");
    image *other = calloc(1, sizeof *other);
    if (!other) die(path, "cannot be held in memory");
    load_image(path, other);
    snprintf(why, sizeof why, "is not the image that %s holds", pack);
    if (other->entry.raw_hash != entry->raw_hash) die(path, why);
    find_windows(other);
    images[i].elsewhere = other;
    size_t common = common_windows(&images[i], other);
    if (common && common >= images[i].window_count / COMMON) images[i].entry.base = RDNA__PACK_ELSEWHERE;
  }
  free(bytes);
}

/* Chooses bases, the pairs with most in common first. An image that has a base is not a base itself, so that reading
 * one needs at most one other. */
static void choose_bases(image *images, int count) {
  likeness *pairs = malloc(((size_t)count * (size_t)count + 1) * sizeof *pairs);
  bool *is_base = calloc((size_t)count + 1, sizeof *is_base);
  if (!pairs || !is_base) die("choosing bases", "out of memory");
  size_t pair_count = 0;
  for (int i = 0; i < count; i++) {
    for (int j = 0; j < i; j++) {
      size_t common = common_windows(&images[i], &images[j]);
      if (common && common >= images[i].window_count / COMMON) pairs[pair_count++] = (likeness){common, i, j};
      if (common && common >= images[j].window_count / COMMON) pairs[pair_count++] = (likeness){common, j, i};
    }
  }
  qsort(pairs, pair_count, sizeof *pairs, most_first);
  for (size_t p = 0; p < pair_count; p++) {
    image *of = &images[pairs[p].image], *base = &images[pairs[p].base];
    if (of->entry.base || is_base[pairs[p].image] || base->entry.base) continue;
    of->entry.base = (uint32_t)pairs[p].base + 1;
    is_base[pairs[p].base] = true;
  }
  free(pairs);
  free(is_base);
}

static void compress_image(image *of, const image *base, int level) {
  size_t size = (size_t)of->entry.raw_size, bound = ZSTD_compressBound(size);
  ZSTD_CCtx *context = ZSTD_createCCtx();
  of->compressed = malloc(bound);
  if (!context || !of->compressed) die(of->path, "cannot be held in memory");
  size_t result = ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
  if (base) {
    size_t both = size + (size_t)base->entry.raw_size;
    int window = 10; /* the smallest there is; 27 the largest that every reader takes */
    while (window < 27 && (size_t)1 << window < both) window++;
    if (!ZSTD_isError(result)) result = ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window);
    if (!ZSTD_isError(result)) result = ZSTD_CCtx_refPrefix(context, base->raw, (size_t)base->entry.raw_size);
  }
  if (!ZSTD_isError(result)) result = ZSTD_compress2(context, of->compressed, bound, of->raw, size);
  if (ZSTD_isError(result)) die(of->path, ZSTD_getErrorName(result));
  of->entry.compressed_size = result;
  ZSTD_freeCCtx(context);
}

static void write_pack(const char *path, rdna__pack_header header, const image *images, int count) {
  rdna__pack_entry *table = calloc((size_t)count + 1, sizeof *table);
  if (!table) die(path, "out of memory");
  uint64_t offset = sizeof(rdna__pack_header) + (uint64_t)count * sizeof *table;
  for (int i = 0; i < count; i++) {
    table[i] = images[i].entry;
    table[i].offset = offset;
    offset += table[i].compressed_size;
  }
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

static void free_image(image *of) {
  free(of->raw);
  free(of->windows);
  free(of->compressed);
}

int main(int argc, char **argv) {
  int first = argc > 5 && !strcmp(argv[4], "--base") ? 6 : 4;
  if (argc < 4 || argc - first > RDNA__PACK_MAX_ENTRIES) {
    fprintf(stderr, "usage: pack_builder OUT TARGET LEVEL [--base PACK] IMAGE...\n");
    return 2;
  }
  int count = argc - first, level = atoi(argv[3]);
  rdna__pack_header header = {.version = RDNA__PACK_VERSION, .entry_count = (uint32_t)count};
  memcpy(header.magic, RDNA__PACK_MAGIC, sizeof header.magic);
  if (strlen(argv[2]) >= sizeof header.target) die(argv[2], "target name is too long");
  strcpy(header.target, argv[2]);
  image *images = calloc((size_t)count + 1, sizeof *images);
  if (!images) die(argv[1], "out of memory");
  for (int i = 0; i < count; i++) {
    load_image(argv[first + i], &images[i]);
    find_windows(&images[i]);
  }
  if (first == 6) find_elsewhere(argv[5], &header, images, count);
  choose_bases(images, count);
  for (int i = 0; i < count; i++) {
    uint32_t base = images[i].entry.base;
    const image *of = base == RDNA__PACK_ELSEWHERE ? images[i].elsewhere : base ? &images[base - 1] : NULL;
    compress_image(&images[i], of, level);
  }
  write_pack(argv[1], header, images, count);
  for (int i = 0; i < count; i++) {
    if (images[i].elsewhere) free_image(images[i].elsewhere);
    free(images[i].elsewhere);
    free_image(&images[i]);
  }
  free(images);
  return 0;
}
