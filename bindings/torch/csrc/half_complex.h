// Operators on complex numbers of two halves.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace rdna_torch {

// Runs |op| on the device in complex64, and what is f16 beside it in f32; results are rounded. False: there is no
// complex32 among the arguments; the stack is as it was.
bool by_wider_complex(const c10::OperatorHandle &op, torch::jit::Stack *stack);

}  // namespace rdna_torch
