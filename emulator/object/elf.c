// ELF code objects: segments, dynamic symbols, relocations, kernel descriptors.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "object/bytes.h"
#include "object/object.h"

enum {
  HEADER_BYTES = 64,
  PROGRAM_BYTES = 56,
  SECTION_BYTES = 64,
  SYMBOL_BYTES = 24,
  RELA_BYTES = 24,
  DESCRIPTOR_BYTES = 64,
  PT_LOAD = 1,
  SHT_RELA = 4,
  SHT_NOTE = 7,
  SHT_DYNSYM = 11,
  SHF_ALLOC = 2,
  STT_OBJECT = 1,
  STT_FUNC = 2,
  STT_AMDGPU_HSA_KERNEL = 10,
  NT_AMDGPU_METADATA = 32
};
// A GPU's code and constants; a corrupt header is not to take all memory.
static const uint64_t max_span = UINT64_C(2) << 30;

typedef struct section {
  uint32_t name, type, link;
  uint64_t flags, address, offset, bytes;
} section;

typedef struct reader {
  struct emu_object *object;
  const uint8_t *data;
  size_t size;
  uint64_t section_offset;
  unsigned section_count, names;  // names: index of the section with their names
  section symbols, strings;       // bytes 0: none
  struct emu_object_error *error;
} reader;

static enum emu_object_status corrupt(reader *r, const char *what) {
  return emu_object_fail(r->error, EMU_OBJECT_CORRUPT, "the code object's %s", what);
}

size_t emu_elf_extent(const uint8_t *data, size_t limit) {
  if (limit < HEADER_BYTES || memcmp(data, "\177ELF\2\1\1", 7) != 0) return 0;
  uint64_t programs = emu_read64(data + 32), sections = emu_read64(data + 40), extent = HEADER_BYTES;
  uint64_t program_count = emu_read16(data + 56), section_count = emu_read16(data + 60);
  if (program_count && (emu_read16(data + 54) != PROGRAM_BYTES || programs > max_span)) return 0;
  if (section_count && (emu_read16(data + 58) != SECTION_BYTES || sections > max_span)) return 0;
  if (program_count && programs + program_count * PROGRAM_BYTES > extent)
    extent = programs + program_count * PROGRAM_BYTES;
  if (section_count && sections + section_count * SECTION_BYTES > extent)
    extent = sections + section_count * SECTION_BYTES;
  if (extent > limit) return 0;
  for (uint64_t i = 0; i < program_count; i++) {
    const uint8_t *p = data + programs + i * PROGRAM_BYTES;
    uint64_t offset = emu_read64(p + 8), bytes = emu_read64(p + 32);
    if (!emu_within(offset, bytes, limit) || offset + bytes > max_span) return 0;
    if (offset + bytes > extent) extent = offset + bytes;
  }
  for (uint64_t i = 0; i < section_count; i++) {
    const uint8_t *p = data + sections + i * SECTION_BYTES;
    uint64_t offset = emu_read64(p + 24), bytes = emu_read64(p + 32);
    if (emu_read32(p + 4) == 8 || bytes == 0) continue;  // SHT_NOBITS
    if (!emu_within(offset, bytes, limit) || offset + bytes > max_span) return 0;
    if (offset + bytes > extent) extent = offset + bytes;
  }
  return extent;
}

static section read_section(const reader *r, unsigned index) {
  const uint8_t *p = r->data + r->section_offset + (uint64_t)index * SECTION_BYTES;
  section s = {emu_read32(p),      emu_read32(p + 4),  emu_read32(p + 40), emu_read64(p + 8),
               emu_read64(p + 16), emu_read64(p + 24), emu_read64(p + 32)};
  if (s.type == 8) s.bytes = 0;
  return s;
}

// The string at `offset` of the table, terminated inside of it, or NULL.
static const char *string_at(const reader *r, const section *table, uint64_t offset) {
  if (offset >= table->bytes) return NULL;
  const char *text = (const char *)r->data + table->offset + offset;
  return memchr(text, 0, table->bytes - offset) ? text : NULL;
}

static enum emu_object_status read_header(reader *r) {
  struct emu_object *object = r->object;
  if (emu_elf_extent(r->data, r->size) == 0) return corrupt(r, "headers reach beyond its end");
  if (emu_read16(r->data + 18) != 224) return corrupt(r, "machine is not AMDGPU");
  unsigned abi = r->data[8];
  if (r->data[7] != 64 || abi < 1 || abi > 4)
    return emu_object_fail(r->error, EMU_OBJECT_UNSUPPORTED,
                           "the code object has OS ABI %u, version %u; 64 (HSA) and 1 to 4 are known", r->data[7], abi);
  object->version = abi + 2;
  object->flags = emu_read32(r->data + 48);
  r->section_offset = emu_read64(r->data + 40);
  r->section_count = emu_read16(r->data + 60);
  r->names = emu_read16(r->data + 62);
  return EMU_OBJECT_OK;
}

static enum emu_object_status read_segments(reader *r) {
  struct emu_object *object = r->object;
  uint64_t offset = emu_read64(r->data + 32);
  unsigned count = emu_read16(r->data + 56);
  object->segments = calloc(count + 1, sizeof *object->segments);
  if (!object->segments) return emu_object_fail(r->error, EMU_OBJECT_NO_MEMORY, "no host memory for segments");
  object->low = UINT64_MAX;
  for (unsigned i = 0; i < count; i++) {
    const uint8_t *p = r->data + offset + (uint64_t)i * PROGRAM_BYTES;
    if (emu_read32(p) != PT_LOAD) continue;
    struct emu_segment s = {.address = emu_read64(p + 16),
                            .memory_bytes = emu_read64(p + 40),
                            .data = r->data + emu_read64(p + 8),
                            .file_bytes = emu_read64(p + 32),
                            .executable = emu_read32(p + 4) & 1,
                            .writable = emu_read32(p + 4) & 2};
    if (s.memory_bytes == 0) continue;
    if (s.file_bytes > s.memory_bytes || s.address > max_span || s.memory_bytes > max_span)
      return corrupt(r, "segments have sizes that cannot be");
    if (object->segment_count && s.address < object->high) return corrupt(r, "segments overlap or are out of order");
    if (s.address < object->low) object->low = s.address;
    object->high = s.address + s.memory_bytes;
    object->segments[object->segment_count++] = s;
  }
  if (object->segment_count == 0) return corrupt(r, "program headers load nothing");
  return EMU_OBJECT_OK;
}

static enum emu_object_status find_symbols(reader *r) {
  for (unsigned i = 0; i < r->section_count; i++) {
    section s = read_section(r, i);
    if (s.type != SHT_DYNSYM) continue;
    if (s.link >= r->section_count) return corrupt(r, "symbol table names no string table");
    r->symbols = s;
    r->strings = read_section(r, s.link);
    if (r->strings.type == 8) r->strings.bytes = 0;
    return EMU_OBJECT_OK;
  }
  return EMU_OBJECT_OK;
}

static enum emu_object_status read_symbols(reader *r) {
  struct emu_object *object = r->object;
  uint64_t count = r->symbols.bytes / SYMBOL_BYTES;
  object->symbols = calloc(count + 1, sizeof *object->symbols);
  if (!object->symbols) return emu_object_fail(r->error, EMU_OBJECT_NO_MEMORY, "no host memory for symbols");
  for (uint64_t i = 1; i < count; i++) {
    const uint8_t *p = r->data + r->symbols.offset + i * SYMBOL_BYTES;
    unsigned type = p[4] & 15;
    struct emu_symbol s = {.name = string_at(r, &r->strings, emu_read32(p)),
                           .address = emu_read64(p + 8),
                           .bytes = emu_read64(p + 16),
                           .function = type == STT_FUNC || type == STT_AMDGPU_HSA_KERNEL,
                           .object = type == STT_OBJECT};
    if (emu_read16(p + 6) == 0) continue;  // undefined
    if (!s.name) return corrupt(r, "symbol names reach beyond their table");
    if (emu_read16(p + 6) < 0xff00 && !emu_within(s.address, s.bytes, object->high))
      return corrupt(r, "symbols lie outside of its segments");
    object->symbols[object->symbol_count++] = s;
  }
  return EMU_OBJECT_OK;
}

static enum emu_object_status read_relocation(reader *r, const uint8_t *p, struct emu_relocation *out) {
  uint64_t info = emu_read64(p + 8);
  static const int8_t kinds[] = {[1] = EMU_ABS32_LO, [2] = EMU_ABS32_HI, [3] = EMU_ABS64,      [4] = EMU_REL32,
                                 [5] = EMU_REL64,    [6] = EMU_ABS32,    [13] = EMU_RELATIVE64};
  uint32_t type = (uint32_t)info, index = (uint32_t)(info >> 32);
  if (type == 0 || type == 7 || type == 8 || type == 9 || (type >= 10 && type != 13))
    return emu_object_fail(r->error, EMU_OBJECT_UNSUPPORTED, "the code object has a relocation of type %u", type);
  *out = (struct emu_relocation){emu_read64(p), (enum emu_relocation_kind)kinds[type], (int64_t)emu_read64(p + 16), 0};
  unsigned bytes = out->kind == EMU_ABS64 || out->kind == EMU_REL64 || out->kind == EMU_RELATIVE64 ? 8 : 4;
  bool inside = false;
  for (unsigned i = 0; i < r->object->segment_count; i++) {
    const struct emu_segment *s = &r->object->segments[i];
    inside |= out->address >= s->address && emu_within(out->address - s->address, bytes, s->memory_bytes);
  }
  if (!inside) return corrupt(r, "relocations lie outside of its segments");
  if (out->kind == EMU_RELATIVE64) return EMU_OBJECT_OK;
  if (index >= r->symbols.bytes / SYMBOL_BYTES) return corrupt(r, "relocations name symbols that are not there");
  const uint8_t *symbol = r->data + r->symbols.offset + (uint64_t)index * SYMBOL_BYTES;
  if (emu_read16(symbol + 6) == 0) {
    const char *name = string_at(r, &r->strings, emu_read32(symbol));
    return emu_object_fail(r->error, EMU_OBJECT_UNSUPPORTED, "the code object lacks the symbol '%.100s'",
                           name ? name : "");
  }
  out->symbol = emu_read64(symbol + 8);
  return EMU_OBJECT_OK;
}

static enum emu_object_status read_relocations(reader *r) {
  struct emu_object *object = r->object;
  uint64_t room = 0;
  for (unsigned i = 0; i < r->section_count; i++) {
    section s = read_section(r, i);
    if (s.type == SHT_RELA && (s.flags & SHF_ALLOC)) room += s.bytes / RELA_BYTES;
  }
  if (room == 0) return EMU_OBJECT_OK;
  object->relocations = calloc(room, sizeof *object->relocations);
  if (!object->relocations) return emu_object_fail(r->error, EMU_OBJECT_NO_MEMORY, "no host memory for relocations");
  for (unsigned i = 0; i < r->section_count; i++) {
    section s = read_section(r, i);
    if (s.type != SHT_RELA || !(s.flags & SHF_ALLOC)) continue;
    for (uint64_t k = 0; k < s.bytes / RELA_BYTES; k++) {
      enum emu_object_status status =
          read_relocation(r, r->data + s.offset + k * RELA_BYTES, &object->relocations[object->relocation_count]);
      if (status != EMU_OBJECT_OK) return status;
      object->relocation_count++;
    }
  }
  return EMU_OBJECT_OK;
}

static const uint8_t *bytes_at(const struct emu_object *object, uint64_t address, uint64_t bytes) {
  for (unsigned i = 0; i < object->segment_count; i++) {
    const struct emu_segment *s = &object->segments[i];
    if (address >= s->address && emu_within(address - s->address, bytes, s->file_bytes))
      return s->data + (address - s->address);
  }
  return NULL;
}

// Each symbol NAME.kd is a kernel.
static enum emu_object_status read_kernels(reader *r) {
  struct emu_object *object = r->object;
  object->kernels = calloc(object->symbol_count + 1, sizeof *object->kernels);
  if (!object->kernels) return emu_object_fail(r->error, EMU_OBJECT_NO_MEMORY, "no host memory for kernels");
  for (unsigned i = 0; i < object->symbol_count; i++) {
    const struct emu_symbol *symbol = &object->symbols[i];
    size_t length = strlen(symbol->name);
    if (length < 4 || strcmp(symbol->name + length - 3, ".kd") != 0) continue;
    struct emu_object_kernel *kernel = &object->kernels[object->kernel_count];
    kernel->descriptor = symbol->address;
    kernel->bytes = bytes_at(object, symbol->address, DESCRIPTOR_BYTES);
    if (!kernel->bytes || symbol->bytes != DESCRIPTOR_BYTES) return corrupt(r, "kernel descriptors are not all there");
    uint64_t entry = symbol->address + emu_read64(kernel->bytes + 16);
    bool found = false;
    for (unsigned k = 0; k < object->segment_count; k++) {
      const struct emu_segment *s = &object->segments[k];
      found |=
          s->executable && entry >= s->address && entry % 4 == 0 && emu_within(entry - s->address, 4, s->file_bytes);
    }
    if (!found) return corrupt(r, "kernel descriptors name no code");
    kernel->name = strndup(symbol->name, length - 3);
    if (!kernel->name) return emu_object_fail(r->error, EMU_OBJECT_NO_MEMORY, "no host memory for a kernel's name");
    object->kernel_count++;
    kernel->group_bytes = emu_read32(kernel->bytes);
    kernel->private_bytes = emu_read32(kernel->bytes + 4);
    kernel->kernarg_bytes = emu_read32(kernel->bytes + 8);
    kernel->max_threads = 1024;
  }
  return EMU_OBJECT_OK;
}

static enum emu_object_status read_notes(reader *r) {
  for (unsigned i = 0; i < r->section_count; i++) {
    section s = read_section(r, i);
    if (s.type != SHT_NOTE) continue;
    for (uint64_t at = 0; emu_within(at, 12, s.bytes);) {
      const uint8_t *p = r->data + s.offset + at;
      uint64_t name = emu_read32(p), bytes = emu_read32(p + 4);
      uint64_t body = at + 12 + ((name + 3) & ~UINT64_C(3));
      if (!emu_within(body, bytes, s.bytes)) return corrupt(r, "notes reach beyond their section");
      if (name == 7 && memcmp(p + 12, "AMDGPU", 7) == 0 && emu_read32(p + 8) == NT_AMDGPU_METADATA)
        return emu_metadata_read(r->object, r->data + s.offset + body, bytes, r->error);
      at = body + ((bytes + 3) & ~UINT64_C(3));
    }
  }
  return EMU_OBJECT_OK;
}

enum emu_object_status emu_object_open(const struct emu_image *image, struct emu_object *out,
                                       struct emu_object_error *error) {
  *out = (struct emu_object){.image = image->data, .image_bytes = image->size};
  reader r = {.object = out, .data = image->data, .size = image->size, .error = error};
  enum emu_object_status status = read_header(&r);
  if (status == EMU_OBJECT_OK) status = read_segments(&r);
  if (status == EMU_OBJECT_OK) status = find_symbols(&r);
  if (status == EMU_OBJECT_OK) status = read_symbols(&r);
  if (status == EMU_OBJECT_OK) status = read_relocations(&r);
  if (status == EMU_OBJECT_OK) status = read_kernels(&r);
  if (status == EMU_OBJECT_OK) status = read_notes(&r);
  if (status != EMU_OBJECT_OK) emu_object_close(out);
  return status;
}

void emu_object_close(struct emu_object *object) {
  for (unsigned i = 0; i < object->kernel_count; i++) {
    free(object->kernels[i].name);
    free(object->kernels[i].args);
  }
  free(object->kernels);
  free(object->relocations);
  free(object->symbols);
  free(object->segments);
  *object = (struct emu_object){0};
}

const struct emu_object_kernel *emu_object_kernel(const struct emu_object *object, const char *name) {
  for (unsigned i = 0; i < object->kernel_count; i++)
    if (strcmp(object->kernels[i].name, name) == 0) return &object->kernels[i];
  return NULL;
}

const struct emu_symbol *emu_object_symbol(const struct emu_object *object, const char *name) {
  for (unsigned i = 0; i < object->symbol_count; i++)
    if (strcmp(object->symbols[i].name, name) == 0) return &object->symbols[i];
  return NULL;
}

const uint8_t *emu_object_section(const struct emu_object *object, const char *name, size_t *out_bytes) {
  reader r = {.data = object->image, .size = object->image_bytes};
  r.section_offset = emu_read64(r.data + 40);
  r.section_count = emu_read16(r.data + 60);
  r.names = emu_read16(r.data + 62);
  if (r.names >= r.section_count) return NULL;
  section names = read_section(&r, r.names);
  for (unsigned i = 0; i < r.section_count; i++) {
    section s = read_section(&r, i);
    const char *text = string_at(&r, &names, s.name);
    if (!text || strcmp(text, name) != 0 || s.bytes == 0) continue;
    *out_bytes = s.bytes;
    return r.data + s.offset;
  }
  return NULL;
}
