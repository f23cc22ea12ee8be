/* The metadata of an AMD code object: MessagePack in an ELF note, read in place. */
#include "kernel/code_object.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "device/targets.h"

enum { MACHINE_AMDGPU = 224, NOTE_METADATA = 32, MACH_MASK = 0xff, MOST_DEPTH = 16, MOST_ARGUMENTS = 1024 };

struct rdna__code_text {
  rdna__code_text *next;
  char bytes[];
};

const char *rdna__code_text_add(rdna__code_description *description, const char *text, size_t length) {
  rdna__code_text *made = malloc(sizeof *made + length + 1);
  if (!made) return NULL;
  memcpy(made->bytes, text, length);
  made->bytes[length] = 0;
  made->next = description->texts;
  description->texts = made;
  return made->bytes;
}

void rdna__code_description_free(rdna__code_description *description) {
  for (int i = 0; i < description->kernel_count; i++) free((void *)(uintptr_t)description->kernels[i].arguments);
  free(description->kernels);
  for (rdna__code_text *text = description->texts, *next; text; text = next) {
    next = text->next;
    free(text);
  }
  *description = (rdna__code_description){0};
}

/* ---- MessagePack: msgpack.org, "MessagePack specification" -------------------------------------------------- */

typedef struct reader {
  const uint8_t *at, *end;
  bool broken; /* sticky: after it every item is NOTHING */
  rdna__code_description *description;
  bool no_memory;
} reader;

typedef enum item_kind { NOTHING, NUMBER, TEXT, LIST, MAP, OTHER } item_kind;

typedef struct item {
  item_kind kind;
  uint64_t number;  /* of NUMBER; items of LIST, pairs of MAP */
  const char *text; /* of TEXT */
  size_t length;
} item;

static item broken(reader *r) {
  r->broken = true;
  return (item){.kind = NOTHING};
}

static uint64_t take(reader *r, unsigned bytes) {
  uint64_t number = 0;
  if (r->broken || (size_t)(r->end - r->at) < bytes) {
    r->broken = true;
    return 0;
  }
  for (; bytes; bytes--) number = number << 8 | *r->at++;
  return number;
}

static item take_bytes(reader *r, item_kind kind, uint64_t length) {
  if (r->broken || (uint64_t)(r->end - r->at) < length) return broken(r);
  item got = {kind, 0, (const char *)r->at, length};
  r->at += length;
  return got;
}

/* The head of an item; what a list or a map holds follows. */
static item next(reader *r) {
  unsigned tag = (unsigned)take(r, 1), size;
  if (r->broken) return (item){.kind = NOTHING};
  if (tag < 0x80) return (item){NUMBER, tag, NULL, 0};
  if (tag < 0x90) return (item){MAP, tag & 15, NULL, 0};
  if (tag < 0xa0) return (item){LIST, tag & 15, NULL, 0};
  if (tag < 0xc0) return take_bytes(r, TEXT, tag & 31);
  if (tag >= 0xe0) return (item){.kind = OTHER}; /* negative: none of what is read here can be */
  switch (tag) {
    case 0xc0: /* nil */
      return (item){.kind = OTHER};
    case 0xc2: /* false, true */
    case 0xc3:
      return (item){NUMBER, tag & 1, NULL, 0};
    case 0xc4: /* bytes */
    case 0xc5:
    case 0xc6:
      return take_bytes(r, OTHER, take(r, 1u << (tag - 0xc4)));
    case 0xca: /* floats, signed integers */
    case 0xcb:
      take(r, tag == 0xca ? 4 : 8);
      return (item){.kind = OTHER};
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
      return (item){NUMBER, take(r, 1u << (tag - 0xcc)), NULL, 0};
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
      take(r, 1u << (tag - 0xd0));
      return (item){.kind = OTHER};
    case 0xd9:
    case 0xda:
    case 0xdb:
      return take_bytes(r, TEXT, take(r, 1u << (tag - 0xd9)));
    case 0xdc:
    case 0xdd:
    case 0xde:
    case 0xdf:
      size = tag & 1 ? 4 : 2;
      return (item){tag < 0xde ? LIST : MAP, take(r, size), NULL, 0};
    default: /* extensions: metadata has none */
      return broken(r);
  }
}

/* Passes over what follows the head of |i|. */
static void pass(reader *r, item i, int depth) {
  if (i.kind != LIST && i.kind != MAP) return;
  if (depth == MOST_DEPTH) r->broken = true;
  for (uint64_t n = i.kind == MAP ? 2 * i.number : i.number; n && !r->broken; n--) pass(r, next(r), depth + 1);
}

static bool is(item i, const char *text) {
  return i.kind == TEXT && i.length == strlen(text) && !memcmp(i.text, text, i.length);
}

static const char *keep(reader *r, item i) {
  const char *text = rdna__code_text_add(r->description, i.text, i.length);
  if (!text) r->no_memory = r->broken = true;
  return text ? text : "";
}

static uint32_t number_of(reader *r, item i) {
  if (i.kind != NUMBER || i.number > UINT32_MAX) r->broken = true;
  return (uint32_t)i.number;
}

/* ---- kernels ------------------------------------------------------------------------------------------------ */

/* Reads one argument; false for what the runtime fills in. */
static bool read_argument(reader *r, rdna_code_argument *out) {
  *out = (rdna_code_argument){.name = "", .type = "", .space = ""};
  bool hidden = false;
  item map = next(r);
  if (map.kind != MAP) r->broken = true;
  for (uint64_t n = map.number; n && !r->broken; n--) {
    item key = next(r), value = next(r);
    if (is(key, ".name") && value.kind == TEXT) out->name = keep(r, value);
    if (is(key, ".type_name") && value.kind == TEXT) out->type = keep(r, value);
    if (is(key, ".address_space") && value.kind == TEXT) out->space = keep(r, value);
    if (is(key, ".offset")) out->offset = number_of(r, value);
    if (is(key, ".size")) out->size = number_of(r, value);
    if (is(key, ".value_kind")) {
      out->is_pointer = is(value, "global_buffer");
      hidden = value.kind == TEXT && value.length > 7 && !memcmp(value.text, "hidden_", 7);
    }
    pass(r, value, 0);
  }
  if (out->is_pointer && out->size != sizeof(void *)) r->broken = true;
  return !hidden;
}

static void read_arguments(reader *r, item list, rdna_code_kernel *kernel) {
  if (list.kind != LIST || list.number > MOST_ARGUMENTS || kernel->arguments) {
    r->broken = true;
    return;
  }
  rdna_code_argument *arguments = calloc(list.number + 1, sizeof *arguments);
  kernel->arguments = arguments;
  if (!arguments) r->no_memory = r->broken = true;
  for (uint64_t n = list.number; n && !r->broken; n--)
    if (read_argument(r, &arguments[kernel->argument_count])) kernel->argument_count++;
}

static void read_kernel(reader *r, rdna_code_kernel *kernel) {
  const struct {
    const char *key;
    uint32_t *value;
  } numbers[] = {{".group_segment_fixed_size", &kernel->group_memory},
                 {".private_segment_fixed_size", &kernel->private_memory},
                 {".max_flat_workgroup_size", &kernel->max_group_threads},
                 {".vgpr_count", &kernel->vector_registers},
                 {".sgpr_count", &kernel->scalar_registers},
                 {".vgpr_spill_count", &kernel->vector_spills},
                 {".sgpr_spill_count", &kernel->scalar_spills},
                 {".wavefront_size", &kernel->wave_size}};
  *kernel = (rdna_code_kernel){.name = "", .symbol = "", .max_group_threads = 1024};
  uint64_t block = 0;
  item map = next(r);
  if (map.kind != MAP) r->broken = true;
  for (uint64_t n = map.number; n && !r->broken; n--) {
    item key = next(r), value = next(r);
    if (is(key, ".args")) {
      read_arguments(r, value, kernel);
      continue;
    }
    if (is(key, ".name") && value.kind == TEXT) kernel->symbol = keep(r, value);
    if (is(key, ".kernarg_segment_size")) block = number_of(r, value);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
      if (is(key, numbers[i].key)) *numbers[i].value = number_of(r, value);
    pass(r, value, 0);
  }
  for (int i = 0; i < kernel->argument_count; i++)
    if (kernel->arguments[i].offset > block || kernel->arguments[i].size > block - kernel->arguments[i].offset)
      r->broken = true;
  if (!kernel->symbol[0]) r->broken = true;
}

static void read_kernels(reader *r, item list) {
  rdna__code_description *d = r->description;
  /* a kernel is no fewer bytes than one */
  if (list.kind != LIST || d->kernels || list.number > (uint64_t)(r->end - r->at)) {
    r->broken = true;
    return;
  }
  d->kernels = calloc(list.number + 1, sizeof *d->kernels);
  if (!d->kernels) r->no_memory = r->broken = true;
  for (uint64_t n = list.number; n && !r->broken; n--) read_kernel(r, &d->kernels[d->kernel_count++]);
}

static rdna_status read_metadata(rdna__code_description *description, const uint8_t *data, size_t size) {
  reader r = {.at = data, .end = data + size, .description = description};
  item map = next(&r);
  if (map.kind != MAP) r.broken = true;
  for (uint64_t n = map.number; n && !r.broken; n--) {
    item key = next(&r), value = next(&r);
    is(key, "amdhsa.kernels") ? read_kernels(&r, value) : pass(&r, value, 0);
  }
  if (r.no_memory) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the kernels of a code object");
  if (r.broken) return rdna__fail(RDNA_BAD_DATA, "the metadata of the code object is broken at byte %td", r.at - data);
  return RDNA_OK;
}

/* ---- the file ----------------------------------------------------------------------------------------------- */

/* The description of the metadata's note among those of a segment; NULL when it is not there. */
static const uint8_t *find_note(const uint8_t *at, size_t size, size_t *out_size) {
  Elf64_Nhdr note;
  while (size >= sizeof note) {
    memcpy(&note, at, sizeof note);
    uint64_t name = ((uint64_t)note.n_namesz + 3) & ~UINT64_C(3), data = ((uint64_t)note.n_descsz + 3) & ~UINT64_C(3);
    if (name > size - sizeof note || note.n_descsz > size - sizeof note - name) return NULL;
    *out_size = note.n_descsz;
    if (note.n_type == NOTE_METADATA && note.n_namesz == 7 && !memcmp(at + sizeof note, "AMDGPU", 7))
      return at + sizeof note + name;
    if (data > size - sizeof note - name) return NULL;
    at += sizeof note + name + data;
    size -= sizeof note + name + data;
  }
  return NULL;
}

static const uint8_t *find_metadata(const uint8_t *data, size_t size, const Elf64_Ehdr *header, size_t *out_size) {
  Elf64_Phdr segment;
  if (header->e_phentsize != sizeof segment || header->e_phoff > size ||
      (size - header->e_phoff) / sizeof segment < header->e_phnum)
    return NULL;
  for (int i = 0; i < header->e_phnum; i++) {
    memcpy(&segment, data + header->e_phoff + (size_t)i * sizeof segment, sizeof segment);
    if (segment.p_type != PT_NOTE || segment.p_offset > size || segment.p_filesz > size - segment.p_offset) continue;
    const uint8_t *found = find_note(data + segment.p_offset, segment.p_filesz, out_size);
    if (found) return found;
  }
  return NULL;
}

static rdna_status describe_elf(const uint8_t *data, size_t size, rdna__code_description *d) {
  Elf64_Ehdr header;
  memcpy(&header, data, sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_machine != MACHINE_AMDGPU)
    return rdna__fail(RDNA_BAD_DATA, "the code is an ELF file for machine %u, not an AMD GPU's code object",
                      header.e_machine);
  for (int i = 0; i < rdna__target_count; i++)
    if (rdna__targets[i].mach && rdna__targets[i].mach == (header.e_flags & MACH_MASK))
      strcpy(d->target, rdna__targets[i].name);
  if (!d->target[0])
    return rdna__fail(RDNA_BAD_DATA, "the code object is for a GPU that this library does not know: flags 0x%x",
                      header.e_flags);
  size_t length = 0;
  const uint8_t *metadata = find_metadata(data, size, &header, &length);
  if (!metadata) return rdna__fail(RDNA_BAD_DATA, "the code object has no metadata, which names its kernels");
  return read_metadata(d, metadata, length);
}

rdna_status rdna__code_describe(const void *data, size_t size, rdna__code_description *out_description) {
  const char *text = data;
  rdna_status status;
  *out_description = (rdna__code_description){0};
  if (size >= sizeof(Elf64_Ehdr) && !memcmp(data, ELFMAG, SELFMAG))
    status = describe_elf(data, size, out_description);
  else if (size && !text[size - 1] && strlen(text) == size - 1)
    status = rdna__code_describe_ptx(text, size, out_description);
  else
    status = rdna__fail(RDNA_BAD_DATA, "the code is neither an ELF file nor PTX");
  for (int i = 0; i < out_description->kernel_count && status == RDNA_OK; i++)
    status = rdna__code_name_kernel(out_description, &out_description->kernels[i]);
  if (status != RDNA_OK) rdna__code_description_free(out_description);
  return status;
}
