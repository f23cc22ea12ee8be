// Operators that the device does not have run on the CPU, on copies, and are counted.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <map>
#include <string>

namespace rdna_torch {

// Runs |op| on the CPU. Raises for operators that return views (a copy would lose what is written to it) and where
// RDNA_FALLBACK=error forbids falling back.
void fall_back(const c10::OperatorHandle &op, torch::jit::Stack *stack);
// The same with the schema's name, for kernels with C++ arguments.
void count_fallback(const std::string &name);

std::map<std::string, int64_t> fallback_counts();  // "aten::fmod.Tensor_out" to how often
void reset_fallback_counts();
// "allow" (default), "warn" (once for each operator), "error"; from RDNA_FALLBACK at first.
void set_fallback_mode(const std::string &mode);
std::string fallback_mode();

}  // namespace rdna_torch
