#pragma once

#include <c10/core/StorageImpl.h>
#include <torch/version.h>

namespace rdna_torch {

void register_hooks();

// Gives |storage| room for |size| bytes and keeps what fits of its contents.
void resize_storage(c10::StorageImpl *storage, size_t size);

}  // namespace rdna_torch
