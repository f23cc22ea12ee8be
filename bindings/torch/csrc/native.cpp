#include "native.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>

#include "one_device.h"

namespace rdna_torch {

c10::DeviceIndex Call::device() const { return one_device(op_, *stack_); }

Output::Output(const at::Tensor &given, at::IntArrayRef shape, at::ScalarType type, const at::Tensor &like,
               bool contiguous)
    : given_(given) {
  if (given_.defined()) {
    TORCH_CHECK(given_.device() == like.device(), "Expected all tensors to be on the same device, but found ",
                given_.device(), " and ", like.device());
    TORCH_CHECK(c10::canCast(type, given_.scalar_type()), "result type ", type,
                " can't be cast to the desired output type ", given_.scalar_type());
    at::native::resize_output(given_, shape);
    at::assert_no_internal_overlap(given_);
    at::assert_no_partial_overlap(given_, like);
    const bool lazy = given_.is_conj() || given_.is_neg();
    if (given_.scalar_type() == type && !lazy && (!contiguous || given_.is_contiguous())) {
      work_ = given_;
      return;
    }
  }
  work_ = make(shape, type, like);
}

const at::Tensor &Output::finish() {
  if (!given_.defined()) return work_;
  if (!given_.is_same(work_)) given_.copy_(work_);
  return given_;
}

}  // namespace rdna_torch
