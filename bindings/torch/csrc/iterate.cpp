#include "iterate.h"

#include <ATen/Dispatch.h>
#include <ATen/ScalarOps.h>

#include "rdna/op/movement.h"

namespace rdna_torch {
namespace {

bool offered(at::ScalarType type) { return has_dtype(type) || is_complex(type); }

// A tensor over |data| that has no dimensions yet but, of a complex |type|, that of its pairs, which is the last one.
rdna_tensor begin(const at::TensorIteratorBase &iter, void *data, at::ScalarType type) {
  rdna_tensor t{};
  t.data = data;
  t.dtype = *dtype_of(at::toRealValueType(type));
  t.rank = iter.ndim();
  if (!is_complex(type)) return t;
  t.shape[t.rank] = 2;
  t.stride[t.rank++] = 1;
  return t;
}

// Operand |i| of the iterator over |data|, whose values are of |type|. Shapes and strides of the iterator begin with
// the fastest dimension, and its strides are in bytes.
rdna_tensor operand(const at::TensorIteratorBase &iter, int i, void *data, at::ScalarType type) {
  rdna_tensor t = begin(iter, data, type);
  const int64_t size = static_cast<int64_t>(c10::elementSize(at::toRealValueType(type)));
  for (int d = 0; d < iter.ndim(); d++) {
    t.shape[d] = iter.shape()[static_cast<size_t>(iter.ndim() - 1 - d)];
    t.stride[d] = iter.strides(i)[static_cast<size_t>(iter.ndim() - 1 - d)] / size;
  }
  return t;
}

// A contiguous tensor with the iterator's shape.
rdna_tensor contiguous(const at::TensorIteratorBase &iter, void *data, at::ScalarType type) {
  rdna_tensor t = begin(iter, data, type);
  int64_t stride = is_complex(type) ? 2 : 1;
  for (int d = iter.ndim() - 1; d >= 0; d--) {
    t.shape[d] = iter.shape()[static_cast<size_t>(iter.ndim() - 1 - d)];
    t.stride[d] = stride;
    stride *= t.shape[d];
  }
  return t;
}

// What is left of |s| in |type|: -1 is 255 in u8.
rdna_scalar whole_of(const at::Scalar &s, at::ScalarType type) {
  const int64_t given = s.isFloatingPoint() ? static_cast<int64_t>(s.toDouble()) : s.toLong();
  int64_t whole = 0;
  AT_DISPATCH_INTEGRAL_TYPES_AND(at::kBool, type, "rdna", [&] { whole = static_cast<scalar_t>(given); });
  return rdna_scalar_integer(whole);
}

// item() would go through the dispatcher twice: most numbers are Python's, which are of two types.
at::Scalar number_of(const at::Tensor &t) {
  if (t.is_neg()) return t.item();
  if (t.scalar_type() == at::kDouble) return *t.const_data_ptr<double>();
  if (t.scalar_type() == at::kLong) return *t.const_data_ptr<int64_t>();
  return t.item();
}

void set_number(const at::Tensor &t, at::ScalarType type, Input *input) {
  const at::Scalar s = number_of(t);
  input->number = rdna_scalar{};
  if (is_complex(type))
    input->complex = complex_of(s);
  else if (at::isFloatingType(type))
    input->number = rdna_scalar_real(s.toDouble());
  else
    input->number = whole_of(s, type);
}

// |to| = |from|, of another type; the imaginary part of real values is 0.
void convert(rdna_stream *stream, const rdna_tensor &from, at::ScalarType from_type, rdna_tensor to,
             at::ScalarType to_type) {
  if (is_complex(to_type) && !is_complex(from_type)) {
    to.rank--;
    rdna_tensor imaginary = to;
    imaginary.data = static_cast<char *>(to.data) + rdna_dtype_block_bytes(to.dtype);
    check(rdna_op_fill(stream, rdna_scalar_real(0), &imaginary));
  }
  check(rdna_op_copy(stream, &from, &to));
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
  // Types that librdna has not follow rules of their own: the CPU knows them.
  if (given.defined() && !offered(given.scalar_type())) return {};
  for (const at::Tensor &t : inputs)
    if (!offered(t.scalar_type())) return {};
  at::TensorIteratorConfig config;
  // A 0-dimensional CPU tensor is a number wherever there is a tensor on the device.
  config.set_check_mem_overlap(true).allow_cpu_scalars(true);
  config.promote_inputs_to_common_dtype(true);
  if (promote == Promote::kCompare && !given.defined()) config.declare_static_dtype(at::kBool);
  if (promote == Promote::kSame || promote == Promote::kFloat)
    config.cast_common_dtype_to_outputs(true).enforce_safe_casting_to_output(true);
  if (promote == Promote::kFloat) config.promote_integer_inputs_to_float(true);
  config.add_owned_output(given);
  for (const at::Tensor &t : inputs) config.add_owned_const_input(t);
  at::TensorIterator iter = config.build();

  const at::ScalarType type = iter.common_dtype();
  const at::Tensor &out = iter.output();
  const at::ScalarType result = promote == Promote::kCompare   ? at::kBool
                                : promote == Promote::kMeasure ? at::toRealValueType(type)
                                                               : type;
  if (!offered(type) || !offered(out.scalar_type()) || iter.ndim() + is_complex(type) > RDNA_MAX_RANK) return {};
  if (is_complex(result) != is_complex(out.scalar_type()) || !supported(type)) return {};
  for (int i = 1; i < iter.ntensors(); i++)
    if (!offered(iter.dtype(i)) || (is_complex(iter.dtype(i)) && !is_complex(type))) return {};
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
      set_number(t, type, &input);
    } else {
      input.tensor = operand(iter, i, iter.data_ptr(i), iter.dtype(i));
      // PyTorch lets pass what it cannot tell from slices that interleave: there the inputs are read before the output
      // is written, as if each were another tensor. One value is broadcast after its conversion.
      if (iter.dtype(i) != type || (direct && spoils(home, input.tensor))) {
        rdna_tensor as = temporary(type);
        convert(call.stream, input.tensor, iter.dtype(i), as, type);
        input.tensor = as;
      }
    }
    call.inputs.push_back(input);
  }
  call.out = direct ? home : temporary(result);
  launch(call);
  if (!direct) convert(call.stream, call.out, result, home, out.scalar_type());
  return out;
}

}  // namespace rdna_torch
