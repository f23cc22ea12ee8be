// From fat binaries and bundles to one ELF.
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "object/bytes.h"
#include "object/object.h"

static const char bundle_magic[] = "__CLANG_OFFLOAD_BUNDLE__";
enum {
  MAGIC_BYTES = sizeof bundle_magic - 1,
  ENTRY_BYTES = 24,
  MAX_ENTRIES = 4096,
  ID_BYTES = 1024,
  WRAPPER_MAGIC = 0x48495046
};
// More than any library registers at once; a corrupt header is not to take all memory.
static const uint64_t max_unpacked = UINT64_C(4) << 30;

static bool starts(const uint8_t *data, size_t size, const char *magic, size_t bytes) {
  return size >= bytes && memcmp(data, magic, bytes) == 0;
}

// "hipv4-amdgcn-amd-amdhsa--gfx906:xnack-" names gfx906; empty when the entry is no AMD GPU's.
static void processor_of(const char *id, size_t length, char processor[32]) {
  size_t at = length;
  processor[0] = '\0';
  if (length < 4 || (strncmp(id, "hip", 3) != 0 && strncmp(id, "amdgcn", 6) != 0)) return;
  for (size_t i = 0; i + 3 <= length; i++)
    if (memcmp(id + i, "gfx", 3) == 0 && (i == 0 || id[i - 1] == '-')) at = i;
  size_t n = 0;
  while (at < length && id[at] != ':' && n + 1 < 32) processor[n++] = id[at++];
  processor[n] = '\0';
}

// How well an entry's code suits the card: 0 not at all, 1 as its family's generic target, 2 by name.
static int fitness(const char *processor, const char *arch) {
  if (processor[0] == '\0') return 0;
  if (!arch || strcmp(processor, arch) == 0) return 2;
  if (strcmp(processor, "gfx10-3-generic") == 0) return strncmp(arch, "gfx103", 6) == 0;
  if (strcmp(processor, "gfx11-generic") == 0) return strncmp(arch, "gfx11", 5) == 0;
  if (strcmp(processor, "gfx12-generic") == 0) return strncmp(arch, "gfx12", 5) == 0;
  return 0;
}

static enum emu_object_status find_in_bundle(const uint8_t *data, size_t size, const char *arch, struct emu_image *out,
                                             struct emu_object_error *error) {
  if (size < MAGIC_BYTES + 8)
    return emu_object_fail(error, EMU_OBJECT_CORRUPT, "the offload bundle ends in its header");
  uint64_t count = emu_read64(data + MAGIC_BYTES), at = MAGIC_BYTES + 8;
  if (count > MAX_ENTRIES)
    return emu_object_fail(error, EMU_OBJECT_CORRUPT, "the offload bundle claims %llu entries",
                           (unsigned long long)count);
  int best = 0;
  char others[128] = "";
  for (uint64_t i = 0; i < count; i++) {
    if (!emu_within(at, ENTRY_BYTES, size))
      return emu_object_fail(error, EMU_OBJECT_CORRUPT, "the offload bundle ends in entry %llu", (unsigned long long)i);
    uint64_t offset = emu_read64(data + at), bytes = emu_read64(data + at + 8), length = emu_read64(data + at + 16);
    if (length > ID_BYTES || !emu_within(at + ENTRY_BYTES, length, size) || !emu_within(offset, bytes, size))
      return emu_object_fail(error, EMU_OBJECT_CORRUPT, "entry %llu of the offload bundle lies outside of it",
                             (unsigned long long)i);
    char processor[32];
    processor_of((const char *)data + at + ENTRY_BYTES, length, processor);
    int fits = fitness(processor, arch);
    if (fits > best) {
      best = fits;
      *out = (struct emu_image){data + offset, bytes, NULL};
    }
    if (processor[0] && strlen(others) + strlen(processor) + 3 < sizeof others) {
      strcat(others, others[0] ? ", " : "");
      strcat(others, processor);
    }
    at += ENTRY_BYTES + length;
  }
  if (best > 0) return EMU_OBJECT_OK;
  return emu_object_fail(error, EMU_OBJECT_OTHER_TARGET, "the offload bundle holds code for %s and none for %s",
                         others[0] ? others : "no AMD GPU", arch ? arch : "any");
}

static enum emu_object_status unpack(const uint8_t *packed, size_t packed_bytes, unsigned method, uint8_t *to,
                                     uint64_t bytes, struct emu_object_error *error) {
  uint64_t got = 0;
  if (method == 1) {
    size_t n = ZSTD_decompress(to, bytes, packed, packed_bytes);
    if (ZSTD_isError(n))
      return emu_object_fail(error, EMU_OBJECT_CORRUPT, "the compressed bundle does not unpack: %s",
                             ZSTD_getErrorName(n));
    got = n;
  } else {
    uLongf n = bytes;
    if (uncompress(to, &n, packed, packed_bytes) != Z_OK)
      return emu_object_fail(error, EMU_OBJECT_CORRUPT, "the compressed bundle does not unpack (zlib)");
    got = n;
  }
  if (got != bytes) return emu_object_fail(error, EMU_OBJECT_CORRUPT, "the compressed bundle unpacks to another size");
  return EMU_OBJECT_OK;
}

static enum emu_object_status find_in_compressed(const uint8_t *data, size_t size, const char *arch,
                                                 struct emu_image *out, struct emu_object_error *error) {
  if (size < 8) return emu_object_fail(error, EMU_OBJECT_CORRUPT, "the compressed bundle ends in its header");
  unsigned version = emu_read16(data + 4), method = emu_read16(data + 6);
  // version 1: u32 unpacked, u64 hash. 2: u32 total, u32 unpacked, u64 hash. 3: u64 total, u64 unpacked, u64 hash
  size_t header = version == 1 ? 20 : version == 2 ? 24 : 32;
  if (version < 1 || version > 3 || method > 1)
    return emu_object_fail(error, EMU_OBJECT_UNSUPPORTED,
                           "the compressed bundle has version %u and method %u; 1 to 3, and 0 or 1 are known", version,
                           method);
  if (size < header) return emu_object_fail(error, EMU_OBJECT_CORRUPT, "the compressed bundle ends in its header");
  if (version == 1 && size == SIZE_MAX)
    return emu_object_fail(error, EMU_OBJECT_UNSUPPORTED,
                           "a compressed bundle of version 1 does not say where it ends");
  uint64_t total = version == 1 ? size : version == 2 ? emu_read32(data + 8) : emu_read64(data + 8);
  uint64_t bytes = version == 1 ? emu_read32(data + 8) : version == 2 ? emu_read32(data + 12) : emu_read64(data + 16);
  if (total < header || total > size)
    return emu_object_fail(error, EMU_OBJECT_CORRUPT, "the compressed bundle claims %llu bytes",
                           (unsigned long long)total);
  // zlib compresses to a thousandth at best, zstd further only where long runs repeat, as in no code object: a claim
  // far beyond that is a corrupt header
  if (bytes < MAGIC_BYTES || bytes > max_unpacked || bytes / 16384 > total)
    return emu_object_fail(error, EMU_OBJECT_CORRUPT, "the compressed bundle claims to unpack to %llu bytes",
                           (unsigned long long)bytes);
  uint8_t *unpacked = malloc(bytes);
  if (!unpacked)
    return emu_object_fail(error, EMU_OBJECT_NO_MEMORY, "no host memory to unpack %llu bytes",
                           (unsigned long long)bytes);
  enum emu_object_status status = unpack(data + header, total - header, method, unpacked, bytes, error);
  if (status == EMU_OBJECT_OK && !starts(unpacked, bytes, bundle_magic, MAGIC_BYTES))
    status = emu_object_fail(error, EMU_OBJECT_CORRUPT, "the compressed bundle does not unpack to a bundle");
  if (status == EMU_OBJECT_OK) status = find_in_bundle(unpacked, bytes, arch, out, error);
  if (status != EMU_OBJECT_OK) {
    free(unpacked);
    return status;
  }
  out->owned = unpacked;
  return EMU_OBJECT_OK;
}

static enum emu_object_status check_elf(struct emu_image *image, const char *arch, struct emu_object_error *error) {
  size_t extent = emu_elf_extent(image->data, image->size);
  if (extent == 0)
    return emu_object_fail(error, EMU_OBJECT_CORRUPT, "the image is no ELF of 64 bits that is all there");
  if (image->size == SIZE_MAX) image->size = extent;
  uint32_t flags = emu_read32(image->data + 48);
  if (emu_read16(image->data + 18) != 224)
    return emu_object_fail(error, EMU_OBJECT_OTHER_TARGET, "the ELF is for machine %u, not for an AMD GPU (224)",
                           emu_read16(image->data + 18));
  if (arch && !emu_mach_runs_on(flags, arch)) {
    const char *name = emu_mach_name(flags);
    return emu_object_fail(error, EMU_OBJECT_OTHER_TARGET, "the code object is for %s, the device is %s",
                           name ? name : "an unknown processor", arch);
  }
  return EMU_OBJECT_OK;
}

enum emu_object_status emu_image_find(const void *pointer, size_t size, const char *arch, struct emu_image *out,
                                      struct emu_object_error *error) {
  const uint8_t *data = pointer;
  *out = (struct emu_image){0};
  if (size >= 24 && emu_read32(data) == WRAPPER_MAGIC) {
    // the wrapper lives in the program that registers it, so its pointer is one of this process
    if (size != SIZE_MAX)
      return emu_object_fail(error, EMU_OBJECT_UNSUPPORTED, "a fat-binary wrapper in a file points nowhere");
    memcpy(&data, data + 8, sizeof data);
    if (!data) return emu_object_fail(error, EMU_OBJECT_CORRUPT, "the fat-binary wrapper is empty");
  }
  enum emu_object_status status;
  if (starts(data, size, "\177ELF", 4)) {
    *out = (struct emu_image){data, size, NULL};
    status = EMU_OBJECT_OK;
  } else if (starts(data, size, "CCOB", 4)) {
    status = find_in_compressed(data, size, arch, out, error);
  } else if (starts(data, size, bundle_magic, MAGIC_BYTES)) {
    status = find_in_bundle(data, size, arch, out, error);
  } else {
    return emu_object_fail(error, EMU_OBJECT_NOT_ONE, "the data is neither an ELF code object nor an offload bundle");
  }
  if (status == EMU_OBJECT_OK) status = check_elf(out, arch, error);
  if (status != EMU_OBJECT_OK) emu_image_release(out);
  return status;
}

void emu_image_release(struct emu_image *image) {
  free(image->owned);
  *image = (struct emu_image){0};
}
