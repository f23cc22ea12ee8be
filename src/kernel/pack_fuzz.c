/* Packs of any bytes and packs that are whole but for a few: open, find, extract. A pack of any bytes has the hash of
 * its table and its bases mended, or nothing would get past them. The other kind is made of what the input says: each
 * image compressed alone, against another, or against the base pack's; bytes of the frames and tables are then replaced
 * before the hashes that guard them are made, so that what follows the hash is seen too. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include "kernel/pack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(rdna__pack *pack) {
  rdna__pack_find(pack, "fill");
  for (int i = 0; i < rdna__pack_entry_count(pack); i++) {
    void *image;
    size_t image_size;
    rdna_status status = rdna__pack_extract(pack, rdna__pack_entry_at(pack, i), &image, &image_size);
    if ((status == RDNA_OK) != (image != NULL)) abort();
    free(image);
  }
  rdna__pack_close(pack);
}

static void any_bytes(const uint8_t *data, size_t size) {
  uint8_t *copy = malloc(size ? size : 1);
  if (!copy) return;
  memcpy(copy, data, size);
  rdna__pack_header header;
  if (size >= sizeof header) {
    memcpy(&header, copy, sizeof header);
    memcpy(header.magic, RDNA__PACK_MAGIC, 8);
    header.version = RDNA__PACK_VERSION;
    header.entry_count %= 8;
    header.base[0] &= 1; /* mostly none, which memory cannot have */
    size_t table = header.entry_count * sizeof(rdna__pack_entry);
    if (table <= size - sizeof header) {
      for (uint32_t i = 0; i < header.entry_count; i++) {
        rdna__pack_entry *entry = (rdna__pack_entry *)(copy + sizeof header) + i;
        entry->base %= header.entry_count + 1;
      }
      header.table_hash = XXH3_64bits(copy + sizeof header, table);
    }
    memcpy(copy, &header, sizeof header);
  }
  rdna__pack *pack;
  if (rdna__pack_open_memory(copy, size, "fuzz", &pack) == RDNA_OK) read_all(pack);
  free(copy);
}

/* What is left of the input; zeros after its end. */
typedef struct input {
  const uint8_t *at, *end;
} input;

static uint8_t next(input *in) { return in->at < in->end ? *in->at++ : 0; }

enum { IMAGES = 3, IMAGE_SIZE = 600, FRAME_SIZE = 1024 };
typedef struct whole {
  rdna__pack_header header;
  rdna__pack_entry entries[IMAGES];
  uint8_t frames[IMAGES][FRAME_SIZE];
} whole;
/* The images as a reader will see them: the related pack's, and the base pack's. */
enum { RELATED, BASE };
static uint8_t images[2][IMAGES][IMAGE_SIZE];
static size_t sizes[2][IMAGES];

/* Replaces some bytes of |bytes|; mostly none. */
static void damage(input *in, void *bytes, size_t size) {
  for (int count = next(in) % 4; count > 0 && size > 0; count--) {
    size_t place = (size_t)next(in) << 8;
    place |= next(in);
    ((uint8_t *)bytes)[place % size] ^= next(in);
  }
}

static void make_image(input *in, whole *w, int pack, int i, ZSTD_CCtx *writer, ZSTD_DCtx *reader) {
  rdna__pack_entry *entry = &w->entries[i];
  uint8_t *image = images[pack][i], kind = next(in);
  size_t size = 1 + (size_t)next(in) * 2, base_size = 0;
  const uint8_t *base = NULL;
  for (size_t at = 0; at < size; at++) image[at] = next(in);
  image[size - 1] = 0; /* the end of PTX */
  *entry = (rdna__pack_entry){.format = 1 + kind % 2, .offset = offsetof(whole, frames[i])};
  snprintf(entry->name, sizeof entry->name, "fill%d", kind & 2 ? 0 : i);
  if (pack == RELATED && kind & 4)
    entry->base = RDNA__PACK_ELSEWHERE, base = images[BASE][i], base_size = sizes[BASE][i];
  else if (i > 0 && kind & 8)
    entry->base = kind & 16 ? 2 : 1, base = images[pack][entry->base - 1], base_size = sizes[pack][entry->base - 1];
  ZSTD_CCtx_reset(writer, ZSTD_reset_session_and_parameters);
  ZSTD_DCtx_reset(reader, ZSTD_reset_session_and_parameters);
  ZSTD_CCtx_setParameter(writer, ZSTD_c_windowLog, 12); /* small tables: the others take most of the time */
  if (ZSTD_isError(ZSTD_CCtx_refPrefix(writer, base, base_size))) abort();
  entry->compressed_size = ZSTD_compress2(writer, w->frames[i], FRAME_SIZE, image, size);
  if (ZSTD_isError(entry->compressed_size)) abort();
  damage(in, w->frames[i], (size_t)entry->compressed_size);
  if (ZSTD_isError(ZSTD_DCtx_refPrefix(reader, base, base_size))) abort();
  size_t got = ZSTD_decompressDCtx(reader, image, IMAGE_SIZE, w->frames[i], (size_t)entry->compressed_size);
  sizes[pack][i] = entry->raw_size = ZSTD_isError(got) ? size : got;
  entry->raw_hash = XXH3_64bits(image, sizes[pack][i]);
}

static void make_pack(input *in, whole *w, int pack, const whole *base) {
  static ZSTD_CCtx *writer;
  static ZSTD_DCtx *reader;
  if (!writer) writer = ZSTD_createCCtx(), reader = ZSTD_createDCtx();
  if (!writer || !reader) abort();
  memset(w, 0, sizeof *w);
  for (int i = 0; i < IMAGES; i++) make_image(in, w, pack, i, writer, reader);
  damage(in, w->entries, sizeof w->entries);
  w->header = (rdna__pack_header){.version = RDNA__PACK_VERSION, .entry_count = IMAGES};
  memcpy(w->header.magic, RDNA__PACK_MAGIC, sizeof w->header.magic);
  strcpy(w->header.target, base ? "related" : "base");
  if (base) {
    strcpy(w->header.base, "base");
    w->header.base_hash = base->header.table_hash;
  }
  w->header.table_hash = XXH3_64bits(w->entries, sizeof w->entries);
  damage(in, &w->header, sizeof w->header);
}

static char folder[64];
static void remove_folder(void) {
  char path[96];
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/%s" RDNA__PACK_SUFFIX, folder, i ? "base" : "related");
    unlink(path);
  }
  rmdir(folder);
}

static void write_whole(const char *name, const whole *w, char path[96]) {
  snprintf(path, 96, "%s/%s" RDNA__PACK_SUFFIX, folder, name);
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(w, sizeof *w, 1, file) != 1 || fclose(file)) abort();
}

static void whole_packs(input in) {
  static whole base, related;
  char path[96];
  rdna__pack *pack;
  if (!folder[0]) {
    strcpy(folder, "/dev/shm/rdna-pack-fuzz-XXXXXX"); /* in memory: on a disk it takes thirty times as long */
    if (!mkdtemp(folder)) abort();
    atexit(remove_folder);
  }
  make_pack(&in, &base, BASE, NULL);
  make_pack(&in, &related, RELATED, &base);
  write_whole("base", &base, path);
  write_whole("related", &related, path);
  if (rdna__pack_open(path, &pack) == RDNA_OK) read_all(pack);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > 0 && data[0] == 'w')
    whole_packs((input){data + 1, data + size});
  else
    any_bytes(data, size);
  return 0;
}
