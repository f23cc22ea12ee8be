#include "kernel/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

struct rdna__pack {
  const uint8_t *data;
  size_t size;
  void *mapping; /* NULL when the caller owns the memory */
  char *path;
  rdna__pack *base; /* NULL: there is none */
  rdna__pack_header header;
  rdna__pack_entry *entries; /* a copy: the file may change under the mapping */
};

/* Files are named after families and targets. */
static bool is_name(const char *text, size_t size) { return memchr(text, 0, size) && !strchr(text, '/'); }

static rdna_status check_entry(const rdna__pack *pack, const rdna__pack_entry *entry, int index) {
  if (!is_name(entry->name, sizeof entry->name) || !entry->name[0])
    return rdna__fail(RDNA_BAD_DATA, "kernel pack %s: entry %d's name is empty, has no end, or has a '/'", pack->path,
                      index);
  if (entry->format != RDNA__PACK_HSACO && entry->format != RDNA__PACK_PTX)
    return rdna__fail(RDNA_BAD_DATA, "kernel pack %s: %s has the unknown format %u", pack->path, entry->name,
                      entry->format);
  if (entry->raw_size == 0 || entry->raw_size > RDNA__PACK_MAX_IMAGE)
    return rdna__fail(RDNA_BAD_DATA, "kernel pack %s: %s claims %llu bytes, allowed are 1 to %llu", pack->path,
                      entry->name, (unsigned long long)entry->raw_size, (unsigned long long)RDNA__PACK_MAX_IMAGE);
  if (entry->offset > pack->size || entry->compressed_size > pack->size - entry->offset)
    return rdna__fail(RDNA_BAD_DATA, "kernel pack %s: %s lies outside the file, which was cut short", pack->path,
                      entry->name);
  bool elsewhere = entry->base == RDNA__PACK_ELSEWHERE && pack->header.base[0];
  if (!elsewhere && (entry->base > pack->header.entry_count || (entry->base && pack->entries[entry->base - 1].base)))
    return rdna__fail(RDNA_BAD_DATA, "kernel pack %s: %s is based on entry %u, which cannot be a base", pack->path,
                      entry->name, entry->base);
  return RDNA_OK;
}

static rdna_status read_table(rdna__pack *pack) {
  if (pack->size < sizeof pack->header || memcmp(pack->data, RDNA__PACK_MAGIC, 8) != 0)
    return rdna__fail(RDNA_BAD_DATA, "%s is not a kernel pack", pack->path);
  memcpy(&pack->header, pack->data, sizeof pack->header);
  if (pack->header.version != RDNA__PACK_VERSION)
    return rdna__fail(RDNA_BAD_DATA,
                      "kernel pack %s has version %u, this library reads version %d: use packs of the "
                      "same build",
                      pack->path, pack->header.version, RDNA__PACK_VERSION);
  size_t count = pack->header.entry_count, bytes = count * sizeof *pack->entries;
  if (count > RDNA__PACK_MAX_ENTRIES || bytes > pack->size - sizeof pack->header)
    return rdna__fail(RDNA_BAD_DATA, "kernel pack %s: its table of %zu families is cut short", pack->path, count);
  if (!is_name(pack->header.target, sizeof pack->header.target) ||
      !is_name(pack->header.base, sizeof pack->header.base))
    return rdna__fail(RDNA_BAD_DATA, "kernel pack %s: its target, or that of its base, has no end, or a '/'",
                      pack->path);
  pack->entries = malloc(bytes ? bytes : 1);
  if (!pack->entries) return rdna__fail(RDNA_OUT_OF_MEMORY, "no memory for the table of kernel pack %s", pack->path);
  memcpy(pack->entries, pack->data + sizeof pack->header, bytes);
  if (XXH3_64bits(pack->entries, bytes) != pack->header.table_hash)
    return rdna__fail(RDNA_BAD_DATA, "kernel pack %s: its table is damaged", pack->path);
  for (size_t i = 0; i < count; i++) RDNA_TRY(check_entry(pack, &pack->entries[i], (int)i));
  return RDNA_OK;
}

static rdna_status open_file(const char *path, bool is_base, rdna__pack **out_pack);

static rdna_status open_base(rdna__pack *pack, bool is_base) {
  const char *target = pack->header.base, *slash = strrchr(pack->path, '/');
  char path[4096];
  if (!target[0]) return RDNA_OK;
  if (is_base || !pack->mapping)
    return rdna__fail(RDNA_BAD_DATA, "kernel pack %s is based on that for '%s', which it cannot be", pack->path,
                      target);
  int folder = slash ? (int)(slash - pack->path) + 1 : 0;
  if (snprintf(path, sizeof path, "%.*s%s" RDNA__PACK_SUFFIX, folder, pack->path, target) >= (int)sizeof path)
    return rdna__fail(RDNA_BAD_DATA, "the path of kernel pack %s is too long", pack->path);
  rdna_status status = open_file(path, true, &pack->base);
  if (status == RDNA_NOT_FOUND)
    return rdna__fail(RDNA_BAD_DATA, "kernel pack %s needs %s" RDNA__PACK_SUFFIX " of the same build beside it",
                      pack->path, target);
  if (status != RDNA_OK) return status;
  if (pack->base->header.table_hash != pack->header.base_hash || strcmp(pack->base->header.target, target) != 0)
    return rdna__fail(RDNA_BAD_DATA, "kernel packs %s and %s are of different builds: use packs of the same build",
                      pack->path, path);
  return RDNA_OK;
}

static rdna_status open_bytes(const void *data, size_t size, void *mapping, const char *path, bool is_base,
                              rdna__pack **out_pack) {
  rdna__pack *pack = calloc(1, sizeof *pack);
  char *path_copy = strdup(path);
  if (!pack || !path_copy) {
    free(pack);
    free(path_copy);
    if (mapping) munmap(mapping, size);
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no memory to open kernel pack %s", path);
  }
  *pack = (rdna__pack){.data = data, .size = size, .mapping = mapping, .path = path_copy};
  rdna_status status = read_table(pack);
  if (status == RDNA_OK) status = open_base(pack, is_base);
  if (status != RDNA_OK) {
    rdna__pack_close(pack);
    return status;
  }
  *out_pack = pack;
  return RDNA_OK;
}

rdna_status rdna__pack_open_memory(const void *data, size_t size, const char *name, rdna__pack **out_pack) {
  *out_pack = NULL;
  return open_bytes(data, size, NULL, name, false, out_pack);
}

rdna_status rdna__pack_open(const char *path, rdna__pack **out_pack) { return open_file(path, false, out_pack); }

static rdna_status open_file(const char *path, bool is_base, rdna__pack **out_pack) {
  *out_pack = NULL;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return rdna__fail(errno == ENOENT || errno == ENOTDIR ? RDNA_NOT_FOUND : RDNA_IO_ERROR, "kernel pack %s: %s", path,
                      strerror(errno));
  struct stat info;
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) {
    close(file);
    return rdna__fail(RDNA_BAD_DATA, "%s is not a kernel pack: it is empty or no regular file", path);
  }
  void *mapping = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  int error = errno;
  close(file);
  if (mapping == MAP_FAILED) return rdna__fail(RDNA_IO_ERROR, "kernel pack %s: %s", path, strerror(error));
  return open_bytes(mapping, (size_t)info.st_size, mapping, path, is_base, out_pack);
}

void rdna__pack_close(rdna__pack *pack) {
  if (!pack) return;
  rdna__pack_close(pack->base);
  if (pack->mapping) munmap(pack->mapping, pack->size);
  free(pack->entries);
  free(pack->path);
  free(pack);
}

const char *rdna__pack_path(const rdna__pack *pack) { return pack->path; }
const char *rdna__pack_target(const rdna__pack *pack) { return pack->header.target; }
uint64_t rdna__pack_size(const rdna__pack *pack) { return pack->size; }
int rdna__pack_entry_count(const rdna__pack *pack) { return (int)pack->header.entry_count; }

const rdna__pack_entry *rdna__pack_entry_at(const rdna__pack *pack, int index) {
  return index >= 0 && index < rdna__pack_entry_count(pack) ? &pack->entries[index] : NULL;
}

const rdna__pack_entry *rdna__pack_find(const rdna__pack *pack, const char *family) {
  for (int i = 0; i < rdna__pack_entry_count(pack); i++)
    if (!strcmp(pack->entries[i].name, family)) return &pack->entries[i];
  return NULL;
}

/* Decompresses the frame to |size| bytes, with |base| as its prefix. Returns false and, in |out_why|, the end of a
 * sentence that says why. */
static bool decompress(void *image, size_t size, const uint8_t *frame, size_t frame_size, const void *base,
                       size_t base_size, const char **out_why) {
  ZSTD_DCtx *context = ZSTD_createDCtx();
  size_t got = context ? ZSTD_DCtx_refPrefix(context, base, base_size) : 0;
  if (context && !ZSTD_isError(got)) got = ZSTD_decompressDCtx(context, image, size, frame, frame_size);
  ZSTD_freeDCtx(context);
  *out_why = !context ? "no memory" : ZSTD_isError(got) ? ZSTD_getErrorName(got) : "its size differs";
  return context && got == size;
}

static rdna_status extract(const rdna__pack *pack, const rdna__pack_entry *entry, const void *base, size_t base_size,
                           void **out_image) {
  *out_image = NULL;
  size_t size = (size_t)entry->raw_size;
  const uint8_t *frame = pack->data + entry->offset;
  /* The frame's own size is compared first, so that a lie in the table does not cost the allocation. */
  if (ZSTD_getFrameContentSize(frame, (size_t)entry->compressed_size) != entry->raw_size)
    return rdna__fail(RDNA_BAD_DATA, "kernel pack %s: %s is damaged: its frame does not hold %zu bytes", pack->path,
                      entry->name, size);
  void *image = malloc(size);
  if (!image) return rdna__fail(RDNA_OUT_OF_MEMORY, "no memory for %zu bytes of kernels %s", size, entry->name);
  const char *why;
  bool good = decompress(image, size, frame, (size_t)entry->compressed_size, base, base_size, &why);
  if (good && XXH3_64bits(image, size) != entry->raw_hash) good = false, why = "its hash differs";
  if (good && entry->format == RDNA__PACK_PTX && ((const char *)image)[size - 1] != 0)
    good = false, why = "the PTX has no end";
  if (!good) {
    free(image);
    return rdna__fail(RDNA_BAD_DATA, "kernel pack %s: %s is damaged: %s", pack->path, entry->name, why);
  }
  *out_image = image;
  return RDNA_OK;
}

rdna_status rdna__pack_extract(const rdna__pack *pack, const rdna__pack_entry *entry, void **out_image,
                               size_t *out_size) {
  void *base = NULL;
  size_t base_size = 0;
  *out_image = NULL;
  *out_size = 0;
  if (entry->base == RDNA__PACK_ELSEWHERE) {
    const rdna__pack_entry *other = rdna__pack_find(pack->base, entry->name);
    if (!other)
      return rdna__fail(RDNA_BAD_DATA, "kernel pack %s: %s has no base in %s", pack->path, entry->name,
                        pack->base->path);
    RDNA_TRY(rdna__pack_extract(pack->base, other, &base, &base_size));
  } else if (entry->base) {
    const rdna__pack_entry *other = &pack->entries[entry->base - 1];
    RDNA_TRY(extract(pack, other, NULL, 0, &base));
    base_size = (size_t)other->raw_size;
  }
  rdna_status status = extract(pack, entry, base, base_size, out_image);
  free(base);
  if (status == RDNA_OK) *out_size = (size_t)entry->raw_size;
  return status;
}
