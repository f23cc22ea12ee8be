// Making tensors, looking at them in other ways, and their storages: what every device must have of its own.
#include <ATen/EmptyTensor.h>
#include <ATen/NativeFunctions.h>
#include <ATen/native/Resize.h>
#include <ATen/native/ResizeCommon.h>
#include <ATen/native/TensorFactories.h>
#include <torch/library.h>

#include "device.h"
#include "hooks.h"
#include "memory.h"

namespace rdna_torch {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

c10::DeviceIndex place(const std::optional<c10::Device> &d) {
  TORCH_CHECK(!d || d->type() == kRdna, "expected an rdna device, got ", *d);
  return d && d->has_index() ? d->index() : current_device();
}

void check_options(std::optional<c10::Layout> layout, std::optional<bool> pin_memory) {
  TORCH_CHECK(!layout || *layout == c10::kStrided, "tensors on rdna are strided; ", *layout, " is not offered");
  TORCH_CHECK(!pin_memory || !*pin_memory, "only tensors on the CPU can be pinned");
}

bool fills() {
  return at::globalContext().deterministicAlgorithms() && at::globalContext().deterministicFillUninitializedMemory();
}

// NaN, or the largest integer, where PyTorch is told to be deterministic in this too.
at::Tensor filled(at::Tensor t) { return fills() ? at::native::fill_empty_deterministic_(t) : t; }

at::Tensor empty(c10::IntArrayRef size, std::optional<at::ScalarType> type, std::optional<c10::Layout> layout,
                 std::optional<c10::Device> d, std::optional<bool> pin, std::optional<c10::MemoryFormat> format) {
  check_options(layout, pin);
  CurrentDevice here(place(d));
  return filled(at::detail::empty_generic(size, device_allocator(), kKeys, c10::dtype_or_default(type), format));
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<at::ScalarType> type,
                         std::optional<c10::Layout> layout, std::optional<c10::Device> d, std::optional<bool> pin) {
  check_options(layout, pin);
  CurrentDevice here(place(d));
  return filled(
      at::detail::empty_strided_generic(size, stride, device_allocator(), kKeys, c10::dtype_or_default(type)));
}

// Zeros without memory, as derivatives in forward mode have of what does not vary: PyTorch's ZeroTensor key answers for
// them, or makes them real before a kernel sees them. They cannot be written, so that nothing allocates a second time.
at::Tensor no_memory(c10::IntArrayRef size, std::optional<at::ScalarType> type, std::optional<c10::Layout> layout,
                     std::optional<c10::Device> d, std::optional<bool> pin) {
  check_options(layout, pin);
  at::native::ZeroTensorAllocator allocator(at::Device(kRdna, place(d)));
  return at::detail::empty_generic(size, &allocator, kKeys.add(c10::DispatchKey::ZeroTensor),
                                   c10::dtype_or_default(type), std::nullopt);
}

// Gives the storage room for what sizes, strides and offset of |t| reach.
void reach(at::TensorImpl *t) {
  if (t->numel() == 0) return;
  const size_t bytes =
      at::detail::computeStorageNbytes(t->sizes(), t->strides(), t->dtype().itemsize(), t->storage_offset());
  const c10::Storage &storage = t->unsafe_storage();
  if (storage.nbytes() < bytes) resize_storage(storage.unsafeGetStorageImpl(), bytes);
}

const at::Tensor &resize_(const at::Tensor &self, c10::IntArrayRef size, std::optional<c10::MemoryFormat> format) {
  at::TensorImpl *t = self.unsafeGetTensorImpl();
  const int64_t before = static_cast<int64_t>(t->unsafe_storage().nbytes());
  for (int64_t n : size) TORCH_CHECK(n >= 0, "a size cannot be negative: ", size);
  if (!self.sizes().equals(size)) {
    t->set_sizes_contiguous(size);
    reach(t);
  }
  if (format) {
    TORCH_CHECK(*format != c10::MemoryFormat::Preserve, "resize_ needs a memory format of its own, not 'preserve'");
    t->empty_tensor_restride(*format);
  }
  if (fills()) at::native::fill_resize_deterministic_(self, before);
  return self;
}

at::Tensor &set_storage(at::Tensor &self, at::Storage source, int64_t offset, c10::IntArrayRef size,
                        c10::IntArrayRef stride) {
  at::native::checkSetStorage(self, std::move(source), offset, size, stride);
  at::TensorImpl *t = self.unsafeGetTensorImpl();
  t->set_storage_offset(offset);
  if (stride.data())
    t->set_sizes_and_strides(size, stride);
  else
    t->set_sizes_contiguous(size);
  reach(t);
  return self;
}

at::Tensor &set_storage_whole(at::Tensor &self, at::Storage source) {
  const int64_t count = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  return set_storage(self, std::move(source), 0, {count}, {});
}

at::Tensor &set_tensor(at::Tensor &self, const at::Tensor &source) {
  return set_storage(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

at::Tensor &set_nothing(at::Tensor &self) {
  at::Tensor none = at::detail::empty_generic({0}, device_allocator(), kKeys, self.scalar_type(), std::nullopt);
  return set_tensor(self, none);
}

void record_stream_of(at::Tensor &self, c10::Stream stream) { record_stream(self.storage().data_ptr(), stream); }

bool is_pinned_tensor(const at::Tensor &self, std::optional<c10::Device>) {
  return false;  // memory of a GPU
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("_efficientzerotensor", TORCH_FN(no_memory));
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("unfold", TORCH_FN(at::native::unfold));
  m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  m.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  m.impl("resize_", TORCH_FN(resize_));
  m.impl("set_", TORCH_FN(set_nothing));
  m.impl("set_.source_Storage", TORCH_FN(set_storage_whole));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage));
  m.impl("set_.source_Tensor", TORCH_FN(set_tensor));
  m.impl("record_stream", TORCH_FN(record_stream_of));
  m.impl("is_pinned", TORCH_FN(is_pinned_tensor));
}

}  // namespace
}  // namespace rdna_torch
