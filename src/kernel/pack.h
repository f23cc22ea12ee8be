/* A kernel pack: one file that holds the code objects of all families for one GPU target, each compressed.
 *
 *     header   magic "RDNAPACK", version, entry count, target, XXH3 of the table, the base pack
 *     table    one rdna__pack_entry a family
 *     images   zstd frames
 *
 * Images that have much in common (the kernels of two types, an image and that for a later capability) are compressed
 * one against the other: a frame may have another entry's raw bytes, its base, as zstd prefix. The base may also be the
 * image of the same family for a related target, in the base pack, another file of the same folder.
 *
 * Little-endian. A reader trusts nothing: every offset and size is checked against the file before it is used. */
#ifndef RDNA_KERNEL_PACK_H
#define RDNA_KERNEL_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define RDNA__PACK_MAGIC "RDNAPACK"
#define RDNA__PACK_SUFFIX ".rdnapack"
enum { RDNA__PACK_VERSION = 3, RDNA__PACK_MAX_ENTRIES = 4096 };
/* Larger images are refused, so that a hostile pack cannot ask for all memory. */
#define RDNA__PACK_MAX_IMAGE ((uint64_t)256 << 20)

/* In rdna__pack_entry.base: the base is the entry of the same name in the base pack. */
#define RDNA__PACK_ELSEWHERE UINT32_MAX

typedef enum rdna__pack_format { RDNA__PACK_HSACO = 1, RDNA__PACK_PTX = 2 } rdna__pack_format;

typedef struct rdna__pack_header {
  char magic[8];
  uint32_t version;
  uint32_t entry_count;
  char target[32];     /* "gfx1100", "sm_80"; NUL-terminated, without a slash, as all names are */
  uint64_t table_hash; /* XXH3 of the entries */
  char base[32];       /* "", or the target of the pack in the same folder that is the base, and has none itself */
  uint64_t base_hash;  /* that one's |table_hash| */
} rdna__pack_header;

typedef struct rdna__pack_entry {
  char name[48];            /* family; NUL-terminated */
  uint32_t format;          /* rdna__pack_format */
  uint32_t base;            /* 1 + index of the entry whose raw bytes are the prefix, which has no base itself; or
                               RDNA__PACK_ELSEWHERE; or 0 */
  uint64_t offset;          /* of the zstd frame in the file */
  uint64_t compressed_size; /* bytes */
  uint64_t raw_size;        /* bytes; PTX counts its NUL */
  uint64_t raw_hash;        /* XXH3 of the raw bytes */
} rdna__pack_entry;

typedef struct rdna__pack rdna__pack;

/* Maps |path|, and the base pack. RDNA_NOT_FOUND: no such file. RDNA_BAD_DATA: not a pack, cut short, or the base is
 * not there or of another build. Entries can then be read from any thread. */
rdna_status rdna__pack_open(const char *path, rdna__pack **out_pack);
/* The same over memory that the caller keeps until close, and which has no base pack. |name| is for error sentences and
 * is copied. */
rdna_status rdna__pack_open_memory(const void *data, size_t size, const char *name, rdna__pack **out_pack);
void rdna__pack_close(rdna__pack *pack); /* NULL is fine */

const char *rdna__pack_path(const rdna__pack *pack);
const char *rdna__pack_target(const rdna__pack *pack);
uint64_t rdna__pack_size(const rdna__pack *pack); /* bytes of the file */
int rdna__pack_entry_count(const rdna__pack *pack);
/* Borrowed from the pack; NULL past the last. */
const rdna__pack_entry *rdna__pack_entry_at(const rdna__pack *pack, int index);
/* NULL when the pack has no such family. */
const rdna__pack_entry *rdna__pack_find(const rdna__pack *pack, const char *family);
/* Decompresses and checks an image. Free it with free(). */
rdna_status rdna__pack_extract(const rdna__pack *pack, const rdna__pack_entry *entry, void **out_image,
                               size_t *out_size);

#endif
