// Arrays: memory that textures and surfaces are made of. Theirs lie in rows, as the descriptors of linear images say.
#ifndef EMULATOR_HIP_ARRAY_H
#define EMULATOR_HIP_ARRAY_H

#include "hip/hip.h"
#include "hip/layouts.h"

enum { EMU_ARRAY_LAYERED = 1, EMU_ARRAY_SURFACE = 2, EMU_ARRAY_GATHER = 8 };

// hipChannelFormatDesc: bits of each component; kinds signed, unsigned and float.
enum { EMU_CHANNEL_SIGNED, EMU_CHANNEL_UNSIGNED, EMU_CHANNEL_FLOAT };
struct emu_channels {
  int bits[4], kind;
};

// Begins as hipArray of HIP 5.2, which programs may read.
struct emu_array {
  void *data;
  struct emu_channels channels;
  unsigned type, width, height, depth;  // 0: there is no such dimension
  int format;                           // hipArray_Format
  unsigned count;                       // of components
  bool is_driver;
  unsigned texture_type, flags;
  size_t element, pitch, slice;  // bytes of an element, from row to row, from slice to slice
  struct emu_device *device;
  struct emu_array *next;
};

struct emu_array *emu_array_known(const void *pointer);  // NULL: no array
// The components of hipArray_Format and how many. HIP_INVALID_VALUE: there is no such.
int emu_channels_of(int format, unsigned count, struct emu_channels *out);
// How many components of one size there are; 0: none that an array can have.
unsigned emu_channels_count(const struct emu_channels *channels);
// The array as memory of rows and slices.
struct emu_pitched emu_array_memory(const struct emu_array *array);
// Whether the box, in bytes along rows, lies in the array.
bool emu_array_has(const struct emu_array *array, const struct emu_position *at, const struct emu_extent *box);
// The same copy between pitched memory, in bytes. HIP_INVALID_VALUE: it leaves an array, or sides do not fit.
int emu_array_flatten(const struct emu_copy_3d *c, struct emu_copy_3d *out);
int emu_array_copy(const struct emu_copy_3d *c, void *stream, bool wait);  // by hipMemcpy3D

#endif
