// Recordings of streams.
#pragma once

#include <pybind11/pybind11.h>

namespace rdna_torch {

// Whether a graph records the current stream of the current device.
bool is_capturing();

void define_graph(pybind11::module_ &m);

}  // namespace rdna_torch
