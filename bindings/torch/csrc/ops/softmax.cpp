// Softmax and its logarithm.
#include "rdna/op/softmax.h"
#include "native.h"

namespace rdna_torch {
namespace {

struct Row {
  const char *name;
  bool log;
};

bool forward(const Row &row, Call &call) {  // self, dim, half_to_float, out
  at::Tensor x = call.tensor(0);
  const at::ScalarType type = call.flag(2) ? at::kFloat : x.scalar_type();
  if (!describable(x) || !is_real(x.scalar_type())) return false;
  const int64_t dim = wrap(call.integer(1), x.dim());
  Output out(call.output(), x.sizes(), type, x);
  if (x.numel() == 0) return call.give(out.finish());
  x = converted(x, type).contiguous();
  rdna_tensor from = describe(x), to = describe(out.get());
  if (x.dim() == 0) from.rank = to.rank = 1, from.shape[0] = to.shape[0] = from.stride[0] = to.stride[0] = 1;
  check((row.log ? rdna_op_log_softmax : rdna_op_softmax)(stream_of(x), &from, static_cast<int>(dim), 1, &to));
  return call.give(out.finish());
}
const Row forwards[] = {{"_softmax.out", false}, {"_log_softmax.out", true}};

bool backward(const Row &row, Call &call) {  // grad_output, output, dim, input_dtype, grad_input
  const at::Tensor grad = call.tensor(0), y = call.tensor(1);
  if (!describable(y) || !is_real(y.scalar_type()) || grad.scalar_type() != y.scalar_type()) return false;
  const at::ScalarType wanted = (*call.type(3));
  const int64_t dim = wrap(call.integer(2), y.dim());
  const at::Tensor given = call.output();
  if (given.defined() && given.scalar_type() != wanted) return false;
  Output out(given, y.sizes(), wanted, y);
  if (y.numel() == 0) return call.give(out.finish());
  const at::Tensor work = wanted == y.scalar_type() ? out.get() : make_like(y);
  const at::Tensor g = grad.contiguous(), o = y.contiguous();
  rdna_tensor dy = describe(g), result = describe(o), dx = describe(work);
  if (y.dim() == 0)
    for (rdna_tensor *t : {&dy, &result, &dx}) t->rank = 1, t->shape[0] = t->stride[0] = 1;
  check((row.log ? rdna_op_log_softmax_backward : rdna_op_softmax_backward)(stream_of(y), &dy, &result,
                                                                            static_cast<int>(dim), 1, &dx));
  if (!work.is_same(out.get())) copy_values(work, out.get());
  return call.give(out.finish());
}
const Row backwards[] = {{"_softmax_backward_data.out", false}, {"_log_softmax_backward_data.out", true}};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add_new_forms(m, forwards, forward);
  add_new_forms(m, backwards, backward);
}

}  // namespace
}  // namespace rdna_torch
