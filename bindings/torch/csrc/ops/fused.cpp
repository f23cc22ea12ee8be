// Operators that PyTorch has no name for: several of its own in one pass over memory. torch.compile(backend="rdna")
// puts them in the place of what they fuse; torch_rdna/_compile.py says which, and gives them shapes.
#include "rdna/op/fused.h"

#include <ATen/ExpandUtils.h>
#include <ATen/ops/empty_strided.h>

#include "native.h"
#include "rdna/op/gemm.h"
#include "rdna/op/norm.h"

namespace rdna_torch {
namespace {

// A chain as the schema has it: for each step the operation, whether it is a zip, its input and whether that comes
// first; and for each step p and q.
std::vector<rdna_fused_step> steps_of(const std::vector<int64_t> &words, const std::vector<double> &numbers) {
  TORCH_CHECK(words.size() % 4 == 0 && numbers.size() == words.size() / 2,
              "rdna::fused takes 4 integers and 2 numbers ", "for each step, got ", words.size(), " and ",
              numbers.size());
  std::vector<rdna_fused_step> steps(words.size() / 4);
  for (size_t i = 0; i < steps.size(); i++)
    steps[i] = {.op = static_cast<int>(words[4 * i]),
                .is_zip = words[4 * i + 1] != 0,
                .input_first = words[4 * i + 3] != 0,
                .input = static_cast<int>(words[4 * i + 2]),
                .p = static_cast<float>(numbers[2 * i]),
                .q = static_cast<float>(numbers[2 * i + 1])};
  return steps;
}

// A dense tensor of |shape| whose dimensions lie in memory in |order|, the slowest first; none is the usual order.
at::Tensor dense(at::IntArrayRef shape, const std::vector<int64_t> &order, const at::Tensor &like) {
  if (order.empty()) return make(shape, like.scalar_type(), like);
  TORCH_CHECK(order.size() == shape.size(), "an order of ", order.size(), " dimensions for a tensor of ", shape.size());
  std::vector<int64_t> stride(shape.size(), 0);
  int64_t next = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const int64_t d = wrap(order[i], static_cast<int64_t>(shape.size()));
    TORCH_CHECK(stride[static_cast<size_t>(d)] == 0, "dimension ", d, " is in the order twice");
    stride[static_cast<size_t>(d)] = next;
    next *= std::max<int64_t>(shape[static_cast<size_t>(d)], 1);
  }
  return at::empty_strided(shape, stride, like.options());
}

// The chain's steps as operators of their own, for tensors whose dimensions a chain cannot count.
rdna_status one_by_one(rdna_stream *stream, const std::vector<rdna_fused_step> &steps,
                       const std::vector<const rdna_tensor *> &inputs, const rdna_tensor &out) {
  const rdna_tensor *value = inputs[0];
  for (const rdna_fused_step &s : steps) {
    const rdna_scalar p = rdna_scalar_real(s.p), q = rdna_scalar_real(s.q);
    rdna_status status;
    if (s.is_zip) {
      const rdna_tensor *other = inputs[static_cast<size_t>(s.input)];
      status = rdna_op_zip(stream, static_cast<rdna_zip>(s.op), s.input_first ? other : value,
                           s.input_first ? value : other, p, q, &out);
    } else {
      status = rdna_op_map(stream, static_cast<rdna_map>(s.op), value, p, q, &out);
    }
    if (status != RDNA_OK) return status;
    value = &out;
  }
  return RDNA_OK;
}

bool fused(Call &call) {  // inputs, steps, numbers, order
  const std::vector<at::Tensor> inputs = call.tensors(0);
  const std::vector<rdna_fused_step> steps = steps_of(call[1].toIntVector(), call[2].toDoubleVector());
  TORCH_CHECK(!inputs.empty(), "rdna::fused takes at least one tensor");
  std::vector<int64_t> shape;
  std::vector<rdna_tensor> described;
  for (const at::Tensor &t : inputs) {
    shape = at::infer_size(shape, t.sizes());
    described.push_back(describe(t));
  }
  const at::Tensor out = dense(shape, call[3].toIntVector(), inputs[0]);
  const rdna_tensor to = describe(out);
  std::vector<const rdna_tensor *> from;
  for (const rdna_tensor &t : described) from.push_back(&t);
  rdna_stream *stream = stream_of(out);
  rdna_status status = rdna_op_fused(stream, steps.data(), static_cast<int>(steps.size()), from.data(),
                                     static_cast<int>(from.size()), &to);
  for (const rdna_fused_step &s : steps)
    if (status == RDNA_UNSUPPORTED && s.is_zip)
      TORCH_CHECK(s.input >= 0 && static_cast<size_t>(s.input) < from.size(), "a step of rdna::fused takes input ",
                  s.input, " of ", from.size());
  if (status == RDNA_UNSUPPORTED && !steps.empty()) status = one_by_one(stream, steps, from, to);
  check(status);
  return call.give(out);
}

// One of the last two strides is 1, as products read matrices where they lie.
at::Tensor readable(const at::Tensor &t) {
  return (t.stride(1) == 1 && t.stride(0) >= t.size(1)) || (t.stride(0) == 1 && t.stride(1) >= t.size(0))
             ? t
             : t.contiguous();
}

// activation(a b + bias) + residual, of matrices.
at::Tensor product(const at::Tensor &bias, const at::Tensor &a, const at::Tensor &b, int64_t activation,
                   at::Tensor residual) {
  const at::Tensor out = make({a.size(0), b.size(1)}, a.scalar_type(), a);
  if (residual.defined()) residual = residual.reshape(out.sizes()).contiguous();
  const at::Tensor left = readable(a), right = readable(b), added = bias.defined() ? bias.contiguous() : bias;
  const rdna_tensor x = describe(left), y = describe(right), to = describe(out);
  const Operand line(added), rest(residual);
  rdna_gemm_epilogue epilogue{RDNA_GEMM_EPILOGUE_INIT};
  epilogue.alpha = 1;
  epilogue.bias = line;
  epilogue.activation = static_cast<rdna_activation>(activation);
  epilogue.residual = rest;
  check(rdna_op_gemm_epilogue(stream_of(out), &epilogue, &x, &y, &to));
  return out;
}

bool addmm(Call &call) {  // bias?, a, b, activation, residual?
  const at::Tensor a = call.tensor(1), b = call.tensor(2);
  TORCH_CHECK(a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0), "mat1 and mat2 shapes cannot be multiplied (",
              a.sizes(), " and ", b.sizes(), ")");
  return call.give(product(call.tensor(0), a, b, call.integer(3), call.tensor(4)));
}

bool linear(Call &call) {  // x, weight, bias?, activation, residual?
  const at::Tensor x = call.tensor(0), weight = call.tensor(1);
  TORCH_CHECK(x.dim() >= 1 && weight.dim() == 2 && x.size(-1) == weight.size(1), "linear: a tensor of ", x.sizes(),
              " and a weight of ", weight.sizes(), " cannot be multiplied");
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = weight.size(0);
  const at::Tensor rows =
      x.dim() == 2 ? x : x.reshape({c10::multiply_integers(shape.begin(), shape.end() - 1), x.size(-1)});
  const at::Tensor out = product(call.tensor(2), rows, weight.t(), call.integer(3), call.tensor(4));
  return call.give(x.dim() == 2 ? out : out.view(shape));
}

bool rms_norm(Call &call) {  // x, weight?, epsilon
  const at::Tensor x = call.tensor(0).contiguous(), weight = call.tensor(1), out = make_like(x);
  const at::Tensor line = weight.defined() ? weight.contiguous() : weight;
  const rdna_tensor from = describe(x), to = describe(out);
  check(rdna_op_rms_norm(stream_of(x), &from, Operand(line), call.real(2), &to));
  return call.give(out);
}

const Single singles[] = {{"fused", fused}, {"addmm", addmm}, {"linear", linear}, {"rms_norm", rms_norm}};

// convolution is conv.cpp's, batch_norm norm.cpp's, max_pool pool.cpp's.
TORCH_LIBRARY(rdna, m) {
  m.def("fused(Tensor[] inputs, int[] steps, float[] numbers, int[] order) -> Tensor");
  m.def("addmm(Tensor? bias, Tensor a, Tensor b, int activation, Tensor? residual) -> Tensor");
  m.def("linear(Tensor x, Tensor weight, Tensor? bias, int activation, Tensor? residual) -> Tensor");
  m.def(
      "convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
      "bool transposed, SymInt[] output_padding, SymInt groups, int activation) -> Tensor");
  m.def(
      "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor mean, Tensor variance, float epsilon, "
      "Tensor? residual, bool relu) -> Tensor");
  m.def("rms_norm(Tensor x, Tensor? weight, float epsilon) -> Tensor");
  m.def(
      "max_pool(Tensor self, int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode) -> "
      "Tensor");
}
TORCH_LIBRARY_IMPL(rdna, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
