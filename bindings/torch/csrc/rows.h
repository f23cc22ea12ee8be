// Rows of a matrix, as the steps of recurrent layers read and write them.
#pragma once

#include "tensor.h"

namespace rdna_torch {

// As librdna takes matrices: rows of any distance, each dense.
inline at::Tensor dense_rows(const at::Tensor &t) {
  return !t.defined() || (t.stride(1) == 1 && t.stride(0) >= t.size(1)) ? t : t.contiguous();
}

// |count| rows from |begin| on of a matrix that lives on; NULL of an undefined one.
class Rows {
 public:
  Rows(const at::Tensor &t, int64_t begin, int64_t count) : there_(t.defined()) {
    if (!there_) return;
    tensor_ = describe(t);
    tensor_.data = static_cast<char *>(tensor_.data) + begin * t.stride(0) * static_cast<int64_t>(t.element_size());
    tensor_.shape[0] = count;
  }
  operator const rdna_tensor *() const { return there_ ? &tensor_ : nullptr; }

 private:
  bool there_;
  rdna_tensor tensor_{};
};

}  // namespace rdna_torch
