// Operators that only move values, or sum them, on complex tensors.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace rdna_torch {

// Runs |op| on the pairs of its complex tensors, which are reals in one more dimension, or once on their real and once
// on their imaginary parts. False: not for these arguments; the stack is as it was and nothing was written.
bool by_parts(const c10::OperatorHandle &op, torch::jit::Stack *stack);

}  // namespace rdna_torch
