#include "iterate.h"

#include <ATen/Dispatch.h>
#include <ATen/ScalarOps.h>

#include "rdna/op/movement.h"

namespace rdna_torch {
namespace {

// Operand |i| of the iterator over |data|, whose values are of |type|. Shapes and strides of the iterator begin with
// the fastest dimension, and its strides are in bytes.
rdna_tensor operand(const at::TensorIteratorBase &iter, int i, void *data, at::ScalarType type) {
  rdna_tensor t{};
  t.data = data;
  t.dtype = *dtype_of(type);
  t.rank = iter.ndim();
  const int64_t size = static_cast<int64_t>(c10::elementSize(iter.dtype(i)));
  for (int d = 0; d < t.rank; d++) {
    t.shape[d] = iter.shape()[static_cast<size_t>(t.rank - 1 - d)];
    t.stride[d] = iter.strides(i)[static_cast<size_t>(t.rank - 1 - d)] / size;
  }
  return t;
}

// A contiguous tensor with the iterator's shape.
rdna_tensor contiguous(const at::TensorIteratorBase &iter, void *data, at::ScalarType type) {
  rdna_tensor t{};
  t.data = data;
  t.dtype = *dtype_of(type);
  t.rank = iter.ndim();
  int64_t stride = 1;
  for (int d = t.rank - 1; d >= 0; d--) {
    t.shape[d] = iter.shape()[static_cast<size_t>(t.rank - 1 - d)];
    t.stride[d] = stride;
    stride *= t.shape[d];
  }
  return t;
}

rdna_scalar number_of(const at::Tensor &t, at::ScalarType type) {
  const at::Scalar s = t.item();
  if (at::isFloatingType(type)) return rdna_scalar_real(s.toDouble());
  const int64_t given = s.isFloatingPoint() ? static_cast<int64_t>(s.toDouble()) : s.toLong();
  int64_t whole = 0;  // what is left of it in the type: -1 is 255 in u8
  AT_DISPATCH_INTEGRAL_TYPES_AND(at::kBool, type, "rdna", [&] { whole = static_cast<scalar_t>(given); });
  return rdna_scalar_integer(whole);
}

}  // namespace

at::Tensor number_tensor(const at::Scalar &s) {
  at::Tensor t = c10::scalar_to_tensor(s);
  t.unsafeGetTensorImpl()->set_wrapped_number(true);
  return t;
}

std::optional<at::Tensor> iterate(const at::Tensor &given, std::initializer_list<at::Tensor> inputs, Promote promote,
                                  const std::function<bool(at::ScalarType)> &supported,
                                  const std::function<void(const Iteration &)> &launch) {
  // Complex and other types that librdna has not follow rules of their own: the CPU knows them.
  if (given.defined() && !has_dtype(given.scalar_type())) return {};
  for (const at::Tensor &t : inputs)
    if (!has_dtype(t.scalar_type())) return {};
  at::TensorIteratorConfig config;
  // A 0-dimensional CPU tensor is a number wherever there is a tensor on the device.
  config.set_check_mem_overlap(true).allow_cpu_scalars(true);
  config.promote_inputs_to_common_dtype(true);
  if (promote == Promote::kCompare && !given.defined()) config.declare_static_dtype(at::kBool);
  if (promote != Promote::kCompare) config.cast_common_dtype_to_outputs(true).enforce_safe_casting_to_output(true);
  if (promote == Promote::kFloat) config.promote_integer_inputs_to_float(true);
  config.add_owned_output(given);
  for (const at::Tensor &t : inputs) config.add_owned_const_input(t);
  at::TensorIterator iter = config.build();

  const at::ScalarType type = iter.common_dtype();
  const at::Tensor &out = iter.output();
  const at::ScalarType result = promote == Promote::kCompare ? at::kBool : type;
  if (!has_dtype(type) || !has_dtype(out.scalar_type()) || iter.ndim() > RDNA_MAX_RANK || !supported(type)) return {};
  for (int i = 1; i < iter.ntensors(); i++)
    if (!has_dtype(iter.dtype(i))) return {};
  if (iter.numel() == 0) return out;

  Iteration call;
  call.type = type;
  call.stream = stream_of(out);
  const rdna_tensor home = operand(iter, 0, iter.data_ptr(0), out.scalar_type());
  const bool direct = out.scalar_type() == result;
  std::vector<at::Tensor> alive;
  auto temporary = [&](at::ScalarType of) {
    alive.push_back(make({iter.numel()}, of, out));
    return contiguous(iter, alive.back().mutable_data_ptr(), of);
  };
  for (int i = 1; i < iter.ntensors(); i++) {
    Input input;
    const at::Tensor &t = iter.tensor(i);
    if (t.device().is_cpu()) {
      input.number = number_of(t, type);
    } else {
      input.tensor = operand(iter, i, iter.data_ptr(i), iter.dtype(i));
      // PyTorch lets pass what it cannot tell from slices that interleave: there the inputs are read before the output
      // is written, as if each were another tensor. One value is broadcast after its conversion.
      if (iter.dtype(i) != type || (direct && spoils(home, input.tensor))) {
        rdna_tensor as = temporary(type);
        check(rdna_op_copy(call.stream, &input.tensor, &as));
        input.tensor = as;
      }
    }
    call.inputs.push_back(input);
  }
  call.out = direct ? home : temporary(result);
  launch(call);
  if (!direct) check(rdna_op_copy(call.stream, &call.out, &home));
  return out;
}

}  // namespace rdna_torch
