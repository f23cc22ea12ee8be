// Samples of gamma, Poisson, binomial and Dirichlet distributions, and how those of gamma and Dirichlet move with their
// parameters.
#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "generator.h"
#include "graph.h"
#include "native.h"
#include "rdna/op/random.h"

namespace rdna_torch {
namespace {

// The first |count| arguments, broadcast: contiguous, as rows of |width| values. Empty where they are not all of one
// floating type: the CPU then says what is wrong.
std::vector<at::Tensor> parameters(const Call &call, size_t count, int64_t width) {
  std::vector<at::Tensor> all;
  at::Device device = call.tensor(0).device();
  for (size_t i = 0; i < count; i++) {
    all.push_back(call.tensor(i));
    if (all[i].device().type() == kRdna) device = all[i].device();
    if (!is_real(all[i].scalar_type()) || all[i].scalar_type() != all[0].scalar_type()) return {};
  }
  if (count > 1) all = at::broadcast_tensors(all);
  for (at::Tensor &t : all) t = t.to(device).contiguous().view({-1, width});
  return all;
}

// |f|(out) fills rows like |rows|, which become a tensor of |shape|.
template <class F>
bool fill(Call &call, const at::Tensor &rows, at::IntArrayRef shape, F f) {
  const at::Tensor value = at::empty_like(rows);
  const rdna_tensor out = describe(value);
  check(f(stream_of(rows), &out));
  return call.give(value.view(shape));
}

std::vector<int64_t> shape_of(const Call &call, size_t count) {
  std::vector<int64_t> shape = call.tensor(0).sizes().vec();
  for (size_t i = 1; i < count; i++) shape = at::infer_size(shape, call.tensor(i).sizes());
  return shape;
}

bool gamma(Call &call) {  // self, generator
  const auto of = parameters(call, 1, 1);
  if (of.empty()) return false;
  const Draw d = draw(call.generator(1), of[0].get_device(), static_cast<uint64_t>(of[0].numel()));
  const rdna_tensor shape = describe(of[0]);
  return fill(call, of[0], shape_of(call, 1),
              [&](auto stream, auto out) { return rdna_op_random_gamma(stream, d.seed, d.offset, &shape, out); });
}

bool poisson(Call &call) {  // self, generator
  const auto of = parameters(call, 1, 1);
  if (of.empty()) return false;
  // not while a graph is recorded, which cannot wait for the answer: NaN then
  if (of[0].numel() && !is_capturing()) {
    TORCH_CHECK(at::ge(of[0], 0).all().item().toBool(), "invalid Poisson rate, expected rate to be non-negative");
  }
  const Draw d = draw(call.generator(1), of[0].get_device(), static_cast<uint64_t>(of[0].numel()));
  const rdna_tensor rate = describe(of[0]);
  return fill(call, of[0], shape_of(call, 1),
              [&](auto stream, auto out) { return rdna_op_random_poisson(stream, d.seed, d.offset, &rate, out); });
}

bool binomial(Call &call) {  // count, prob, generator
  const auto of = parameters(call, 2, 1);
  if (of.empty()) return false;
  const Draw d = draw(call.generator(2), of[0].get_device(), static_cast<uint64_t>(of[0].numel()));
  const rdna_tensor count = describe(of[0]), probability = describe(of[1]);
  return fill(call, of[0], shape_of(call, 2), [&](auto stream, auto out) {
    return rdna_op_random_binomial(stream, d.seed, d.offset, &count, &probability, out);
  });
}

bool dirichlet(Call &call) {  // self, generator
  const at::Tensor self = call.tensor(0);
  if (self.numel() == 0 && is_real(self.scalar_type())) return call.give(at::empty(self.sizes(), self.options()));
  const auto of = parameters(call, 1, self.dim() ? self.size(-1) : 1);
  if (of.empty()) return false;
  const Draw d = draw(call.generator(1), of[0].get_device(), static_cast<uint64_t>(of[0].numel()));
  const rdna_tensor concentration = describe(of[0]);
  return fill(call, of[0], shape_of(call, 1), [&](auto stream, auto out) {
    return rdna_op_random_dirichlet(stream, d.seed, d.offset, &concentration, out);
  });
}

bool gamma_gradient(Call &call) {  // self, output
  const auto of = parameters(call, 2, 1);
  if (of.empty()) return false;
  const rdna_tensor shape = describe(of[0]), sample = describe(of[1]);
  return fill(call, of[0], shape_of(call, 2),
              [&](auto stream, auto out) { return rdna_op_random_gamma_gradient(stream, &shape, &sample, out); });
}

bool dirichlet_gradient(Call &call) {  // x, alpha, total
  const auto of = parameters(call, 3, 1);
  if (of.empty()) return false;
  const rdna_tensor x = describe(of[0]), alpha = describe(of[1]), total = describe(of[2]);
  return fill(call, of[0], shape_of(call, 3), [&](auto stream, auto out) {
    return rdna_op_random_dirichlet_gradient(stream, &x, &alpha, &total, out);
  });
}

const Single singles[] = {
    {"_standard_gamma", gamma}, {"_standard_gamma_grad", gamma_gradient}, {"poisson", poisson},
    {"binomial", binomial},     {"_sample_dirichlet", dirichlet},         {"_dirichlet_grad", dirichlet_gradient},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
