// torch.rdna.memory._record_memory_history: allocations and frees with the Python stacks that asked for them.
#pragma once

#include <pybind11/pybind11.h>

#include "device.h"

namespace rdna_torch {

// Of the allocator: cheap while nothing is recorded.
void note_allocation(c10::DeviceIndex index, const void *data, size_t size);
// Before the memory is freed: afterwards another thread may have it already.
void note_free(const void *data);

void define_history(pybind11::module_ &m);

}  // namespace rdna_torch
