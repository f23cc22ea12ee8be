// Device and pinned memory: librdna's allocator behind PyTorch's interfaces.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

#include "rdna/memory.h"

namespace rdna_torch {

c10::Allocator *device_allocator();
// Frees memory of a device that the caller does not know: asks each. False where none has memory that begins there.
bool free_anywhere(void *data);
// Memory that |data| points to is also used by |stream|.
void record_stream(const c10::DataPtr &data, c10::Stream stream);

c10::Allocator *pinned_allocator();
bool is_pinned(const void *data);
// Memory of the pinned allocator takes part in work queued on |stream| so far: it is not handed out again before.
void pinned_used(const void *data, rdna_stream *stream);
void pinned_empty_cache();
struct PinnedCounts {
  int64_t bytes, peak_bytes, blocks, peak_blocks;  // held from the driver
  int64_t active_bytes, active_blocks;             // of those, in tensors
};
PinnedCounts pinned_counts();
void pinned_reset_peaks();

}  // namespace rdna_torch
