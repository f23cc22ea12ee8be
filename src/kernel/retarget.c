/* An AMD code object names its target in two places: the low byte of the ELF header's flags, and a string in the
 * metadata note ("amdhsa.target", MessagePack). Both are checked and rewritten.
 * Layout: LLVM, "User Guide for AMDGPU Backend", code object V4. */
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "device/targets.h"
#include "kernel/loader.h"

enum { MACHINE_AMDGPU = 224, ABI_AMDGPU_HSA = 64, NOTE_AMDGPU_METADATA = 32, MACH_MASK = 0xff };

static uint32_t mach_of(const char *name) {
  const rdna__target *target = rdna__target_find(name);
  return target ? target->mach : 0;
}

/* The metadata's target string inside the description of one note, or NULL; |*out_size| is its length. */
static char *find_target_string(char *description, size_t size, size_t *out_size) {
  static const char key[] =
      "\xad"
      "amdhsa.target"; /* a MessagePack string of 13 bytes */
  char *at = memmem(description, size, key, sizeof key - 1);
  if (!at) return NULL;
  at += sizeof key - 1;
  size_t left = size - (size_t)(at - description);
  if (left >= 1 && ((uint8_t)at[0] & 0xe0) == 0xa0) {
    *out_size = (uint8_t)at[0] & 0x1f;
    at += 1, left -= 1;
  } else if (left >= 2 && (uint8_t)at[0] == 0xd9) {
    *out_size = (uint8_t)at[1];
    at += 2, left -= 2;
  } else {
    return NULL;
  }
  return *out_size <= left ? at : NULL;
}

/* Walks the notes of one segment; NULL when the metadata is not among them. */
static char *find_in_notes(char *notes, size_t size, size_t *out_size) {
  while (size >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr note;
    memcpy(&note, notes, sizeof note);
    uint64_t name_size = ((uint64_t)note.n_namesz + 3) & ~(uint64_t)3;
    uint64_t description_size = ((uint64_t)note.n_descsz + 3) & ~(uint64_t)3;
    uint64_t whole = sizeof note + name_size + description_size;
    if (whole > size) return NULL;
    char *name = notes + sizeof note;
    if (note.n_type == NOTE_AMDGPU_METADATA && note.n_namesz == 7 && !memcmp(name, "AMDGPU", 7))
      return find_target_string(name + name_size, note.n_descsz, out_size);
    notes += whole;
    size -= whole;
  }
  return NULL;
}

static char *find_metadata_target(char *image, size_t size, const Elf64_Ehdr *header, size_t *out_size) {
  if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phoff > size ||
      (uint64_t)header->e_phnum * sizeof(Elf64_Phdr) > size - header->e_phoff)
    return NULL;
  for (int i = 0; i < header->e_phnum; i++) {
    Elf64_Phdr segment;
    memcpy(&segment, image + header->e_phoff + (size_t)i * sizeof segment, sizeof segment);
    if (segment.p_type != PT_NOTE || segment.p_offset > size || segment.p_filesz > size - segment.p_offset) continue;
    char *target = find_in_notes(image + segment.p_offset, segment.p_filesz, out_size);
    if (target) return target;
  }
  return NULL;
}

rdna_status rdna__retarget(void *image, size_t size, const char *from, const char *to) {
  uint32_t from_mach = mach_of(from), to_mach = mach_of(to);
  if (!from_mach || !to_mach || !rdna__target_fitness(from, to))
    return rdna__fail(RDNA_UNSUPPORTED, "code for %s does not run on %s", from, to);
  Elf64_Ehdr header;
  if (size < sizeof header || memcmp(image, ELFMAG, SELFMAG) != 0)
    return rdna__fail(RDNA_BAD_DATA, "the code for %s is not an ELF file", from);
  memcpy(&header, image, sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_ident[EI_OSABI] != ABI_AMDGPU_HSA || header.e_machine != MACHINE_AMDGPU ||
      (header.e_flags & MACH_MASK) != from_mach)
    return rdna__fail(RDNA_BAD_DATA, "the code object is not one for %s: machine %u, flags 0x%x", from,
                      header.e_machine, header.e_flags);

  char wanted[64];
  int prefix = snprintf(wanted, sizeof wanted, "amdgcn-amd-amdhsa--");
  snprintf(wanted + prefix, sizeof wanted - (size_t)prefix, "%s", from);
  size_t length = 0;
  char *target = find_metadata_target(image, size, &header, &length);
  if (!target || length != strlen(wanted) || memcmp(target, wanted, length) != 0 || strlen(from) != strlen(to))
    return rdna__fail(RDNA_BAD_DATA,
                      "the metadata of the code object does not name %s, so it cannot be made to name "
                      "%s",
                      wanted, to);
  memcpy(target + prefix, to, strlen(to));
  header.e_flags = (header.e_flags & ~(uint32_t)MACH_MASK) | to_mach;
  memcpy(image, &header, sizeof header);
  return RDNA_OK;
}
