// Tensors of one operator are on one device.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace rdna_torch {

// The device of the rdna tensors among the last arguments on |stack|, -1 where there is none (or that of a device
// argument). Raises, in PyTorch's words, where a tensor with dimensions is on another device: otherwise its memory
// would be taken for the device's, or the work would move to the CPU without a word. Some operators take indices or
// lengths on the CPU, and those over lists work tensor by tensor.
c10::DeviceIndex one_device(const c10::OperatorHandle &op, const torch::jit::Stack &stack);

}  // namespace rdna_torch
