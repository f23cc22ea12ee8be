// Recordings of streams.
#pragma once

namespace rdna_torch {

// Whether a graph records the current stream of the current device.
bool is_capturing();

}  // namespace rdna_torch
