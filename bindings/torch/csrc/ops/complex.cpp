// Complex numbers by their parts, and their functions.
#include "complex.h"

#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>

#include "native.h"

namespace rdna_torch {

at::Tensor mapped(rdna_complex_map op, const at::Tensor &given) {
  const at::Tensor x = given.resolve_conj().resolve_neg(), out = at::empty_like(x);
  const rdna_tensor from = describe_pairs(x), to = describe_pairs(out);
  check(rdna_op_complex_map(stream_of(x), op, &from, &to));
  return out;
}
at::Tensor measured(rdna_complex_measure op, const at::Tensor &given) {
  const at::Tensor x = given.resolve_conj().resolve_neg();
  const at::Tensor out = at::empty_like(x, x.options().dtype(at::toRealValueType(x.scalar_type())));
  const rdna_tensor from = describe_pairs(x), to = describe(out);
  check(rdna_op_complex_measure(stream_of(x), op, &from, &to));
  return out;
}

namespace {

bool parts_fit(Call &call) {
  const at::ScalarType type = call.tensor(0).scalar_type();
  return is_real(type) && call.tensor(1).scalar_type() == type &&
         call.tensor(2).scalar_type() == c10::toComplexType(type) && call.tensor(0).device() == call.tensor(1).device();
}
bool give_value(Call &call, const at::Tensor &value) {
  Output target(call.tensor(2), value.sizes(), value.scalar_type(), value, false);
  target.get().copy_(value);
  return call.give(target.finish());
}

bool complex(Call &call) {  // real, imag, out
  if (!parts_fit(call)) return false;
  const at::Tensor real = call.tensor(0), imaginary = call.tensor(1);
  const at::Tensor value = at::empty(at::infer_size(real.sizes(), imaginary.sizes()), call.tensor(2).options());
  const at::Tensor parts = at::view_as_real(value);
  parts.select(-1, 0).copy_(real);
  parts.select(-1, 1).copy_(imaginary);
  return give_value(call, value);
}

bool polar(Call &call) {  // abs, angle, out
  if (!parts_fit(call) || call.tensor(0).scalar_type() == at::kHalf) return false;
  const at::Tensor abs = call.tensor(0), angle = call.tensor(1);
  const at::Tensor value = at::empty(at::infer_size(abs.sizes(), angle.sizes()), call.tensor(2).options());
  const rdna_tensor r = describe(abs), a = describe(angle), out = describe_pairs(value);
  check(rdna_op_complex_polar(stream_of(value), &r, &a, &out));
  return give_value(call, value);
}

const Single singles[] = {{"complex.out", complex}, {"polar.out", polar}};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
