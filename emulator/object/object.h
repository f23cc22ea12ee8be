// What compilers leave for an AMD GPU, read without trust: offload bundles, ELF code objects, their metadata.
//
//   emu_image_find    from whatever a program hands to the runtime to the ELF for one GPU
//   emu_object_open   from that ELF to segments, symbols, relocations and kernels
//
// Every length and offset is checked against the bytes that are there. The input is never written.
//
// Sources: ELF-64 gABI; LLVM "User Guide for AMDGPU Backend" (ELF header, notes, relocations, metadata V3 to V5,
// descriptors); Clang "Offload Bundler" (plain and compressed bundles); MessagePack specification.
#ifndef EMULATOR_OBJECT_OBJECT_H
#define EMULATOR_OBJECT_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum emu_object_status {
  EMU_OBJECT_OK,
  EMU_OBJECT_NOT_ONE,       // neither ELF nor bundle
  EMU_OBJECT_CORRUPT,       // it is one, but a length, an offset or a value cannot be
  EMU_OBJECT_OTHER_TARGET,  // well-formed, and for other GPUs
  EMU_OBJECT_UNSUPPORTED,   // a feature of the format that is not done here
  EMU_OBJECT_NO_MEMORY,
};

// Why, in one sentence without a trailing period; the callers own it.
struct emu_object_error {
  char text[240];
};

// ---- targets

// The processor in e_flags, and which of them a card of `arch` ("gfx1100") runs: itself and its family's generic one.
const char *emu_mach_name(uint32_t e_flags);  // "gfx1100", "gfx11-generic"; NULL: unknown
bool emu_mach_runs_on(uint32_t e_flags, const char *arch);

// ---- images

// The ELF in memory. `owned` is set when it had to be decompressed.
struct emu_image {
  const uint8_t *data;
  size_t size;
  void *owned;
};

// Looks through `data`: an ELF, a bundle "__CLANG_OFFLOAD_BUNDLE__", a compressed bundle "CCOB", or a fat-binary
// wrapper "HIPF" around one of these. With arch NULL the first AMD GPU's image is taken. `size` is SIZE_MAX where the
// caller was given a bare pointer; then the headers alone say how much there is.
enum emu_object_status emu_image_find(const void *data, size_t size, const char *arch, struct emu_image *out,
                                      struct emu_object_error *error);
void emu_image_release(struct emu_image *image);

// ---- code objects

struct emu_segment {
  uint64_t address, memory_bytes;
  const uint8_t *data;
  uint64_t file_bytes;
  bool executable, writable;
};

struct emu_symbol {
  const char *name;  // inside the image, terminated
  uint64_t address, bytes;
  bool function, object;
};

enum emu_relocation_kind { EMU_ABS32_LO, EMU_ABS32_HI, EMU_ABS64, EMU_REL32, EMU_REL64, EMU_ABS32, EMU_RELATIVE64 };
struct emu_relocation {
  uint64_t address;  // where, as linked
  enum emu_relocation_kind kind;
  int64_t addend;
  uint64_t symbol;  // its address as linked; unused by RELATIVE64
};

enum emu_arg_kind {
  EMU_ARG_BY_VALUE,
  EMU_ARG_POINTER,  // global_buffer, dynamic_shared_pointer, …: eight bytes of the caller's
  EMU_ARG_BLOCK_COUNT_X,
  EMU_ARG_BLOCK_COUNT_Y,
  EMU_ARG_BLOCK_COUNT_Z,
  EMU_ARG_GROUP_SIZE_X,
  EMU_ARG_GROUP_SIZE_Y,
  EMU_ARG_GROUP_SIZE_Z,
  EMU_ARG_REMAINDER_X,
  EMU_ARG_REMAINDER_Y,
  EMU_ARG_REMAINDER_Z,
  EMU_ARG_GRID_DIMS,
  EMU_ARG_DYNAMIC_LDS_SIZE,
  EMU_ARG_HOSTCALL_BUFFER,
  EMU_ARG_HEAP,
  EMU_ARG_GRID_SYNC,
  EMU_ARG_HIDDEN_ZERO,  // hidden, and zero on a device without queues of its own
};

struct emu_arg {
  uint32_t offset, size;
  enum emu_arg_kind kind;
};

struct emu_object_kernel {
  char *name;            // as it is looked up; owned by the object
  uint64_t descriptor;   // address of the 64 bytes, as linked
  const uint8_t *bytes;  // those bytes in the image
  struct emu_arg *args;  // hidden ones too
  unsigned arg_count;
  bool has_args;  // false: no metadata, arguments can only be passed packed
  uint32_t kernarg_bytes, group_bytes, private_bytes, max_threads;
  bool dynamic_stack;
};

struct emu_object {
  uint32_t flags;      // e_flags
  unsigned version;    // 3 to 6
  uint64_t low, high;  // addresses of all segments
  struct emu_segment *segments;
  unsigned segment_count;
  struct emu_symbol *symbols;  // of the dynamic table, defined ones
  unsigned symbol_count;
  struct emu_relocation *relocations;
  unsigned relocation_count;
  struct emu_object_kernel *kernels;
  unsigned kernel_count;
  const uint8_t *image;
  size_t image_bytes;
};

// Keeps pointers into `image`, which must stay until the object is closed.
enum emu_object_status emu_object_open(const struct emu_image *image, struct emu_object *out,
                                       struct emu_object_error *error);
void emu_object_close(struct emu_object *object);

const struct emu_object_kernel *emu_object_kernel(const struct emu_object *object, const char *name);
const struct emu_symbol *emu_object_symbol(const struct emu_object *object, const char *name);
// The variables that have a name, static ones too unless the object is stripped: ascending, and none shares a byte
// with another. The caller frees them; the names stay in the image. NULL: there are none, or there is no memory.
struct emu_symbol *emu_object_variables(const struct emu_object *object, unsigned *out_count);
// The section's bytes, or NULL.
const uint8_t *emu_object_section(const struct emu_object *object, const char *name, size_t *out_bytes);

// ---- between the files of this folder

enum emu_object_status emu_object_fail(struct emu_object_error *error, enum emu_object_status status,
                                       const char *format, ...) __attribute__((format(printf, 3, 4)));
enum emu_object_status emu_metadata_read(struct emu_object *object, const uint8_t *data, size_t size,
                                         struct emu_object_error *error);
// Bytes that an ELF's own headers claim, at most `limit`; 0: not an ELF of 64 bits.
size_t emu_elf_extent(const uint8_t *data, size_t limit);

#endif
