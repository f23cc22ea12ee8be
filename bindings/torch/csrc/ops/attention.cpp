// Scaled dot-product attention: which calls go to librdna's kernel, and that kernel.
#include <ATen/Context.h>
#include <ATen/ExpandUtils.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/core/SymInt.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "generator.h"
#include "native.h"
#include "rdna/op/attention.h"

namespace rdna_torch {
namespace {

constexpr int64_t kMostWidth = 256;  // of rdna_op_sdpa

// (batch, heads, rows, width) on rdna in a type of the kernel. Sizes may be symbols: compiled graphs ask too.
bool fits(const at::Tensor &t, const at::Tensor &q) {
  return t.device() == q.device() && t.device().type() == kRdna && is_float(t.scalar_type()) &&
         t.scalar_type() == q.scalar_type() && t.dim() == 4 && t.sym_size(0) == q.sym_size(0) && t.sym_size(3) >= 1 &&
         t.sym_size(3) <= kMostWidth && t.sym_numel() > 0;
}

// What torch.nn.attention.sdpa_kernel says of a kernel like ours.
bool fused_allowed() {
  const at::Context &context = at::globalContext();
#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 7
  // That of torch 2.6 does not know ours: it is meant where all fused ones are.
  if (!context.userEnabledFlashSDP() && !context.userEnabledMemEfficientSDP()) return false;
#endif
  return context.userEnabledOverrideableSDP();
}

// Under torch.func's vmap, grad, jvp or hessian. The fused operator has no rule for batches, nor a second derivative;
// the operators that the formula is made of have both.
bool transformed(const at::Tensor &t) {
  return t.key_set().has(c10::DispatchKey::FuncTorchBatched) || t.key_set().has(c10::DispatchKey::FuncTorchGradWrapper);
}

int64_t choose(const at::Tensor &q, const at::Tensor &k, const at::Tensor &v, const std::optional<at::Tensor> &mask,
               double, bool, std::optional<double>, bool grouped) {
  constexpr int64_t kMath = static_cast<int64_t>(at::SDPBackend::math);
  if (!fused_allowed() || !fits(q, q) || !fits(k, q) || !fits(v, q)) return kMath;
  if (transformed(q) || transformed(k) || transformed(v) || (mask && transformed(*mask))) return kMath;
  if (k.sym_size(1) != v.sym_size(1) || k.sym_size(2) != v.sym_size(2) || k.sym_size(3) != q.sym_size(3)) return kMath;
  if (grouped ? q.sym_size(1) % k.sym_size(1) != 0 : q.sym_size(1) != k.sym_size(1)) return kMath;
  if (mask && mask->defined() && (mask->dim() > 4 || mask->dim() < 1)) return kMath;
  return static_cast<int64_t>(at::SDPBackend::overrideable);
}

// The options that forward and backward share. The tensors that they point to live as long as this.
struct Options {
  rdna_sdpa of{RDNA_SDPA_INIT};
  at::Tensor mask;
  rdna_tensor described{};

  Options(const at::Tensor &q, const at::Tensor &k, const at::Tensor &bias, double dropout, bool causal,
          const c10::IValue &scale) {
    of.scale = static_cast<float>(scale.isNone() ? 1 / std::sqrt(static_cast<double>(q.size(3))) : scale.toDouble());
    of.dropout = static_cast<float>(dropout);
    of.causal = causal;
    of.diagonal = RDNA_DIAGONAL_TOP_LEFT;
    if (!bias.defined()) return;
    mask = bias;
    while (mask.dim() < 4) mask = mask.unsqueeze(0);
    mask = mask.expand({mask.size(0), mask.size(1), mask.size(2), k.size(2)});
    described = describe(mask);
    of.mask = &described;
  }
};

// The blocks of random numbers that a call draws, as librdna counts them.
uint64_t blocks_of(const at::Tensor &q, const at::Tensor &k) {
  return static_cast<uint64_t>(q.size(0) * q.size(1) * q.size(2)) * static_cast<uint64_t>((k.size(2) + 3) / 4);
}

// (batch, heads, rows, |width|) whose dimensions lie in memory in the order of those of |like|: what compiled graphs
// expect, and what the layers around attention want, which see heads through a transposition.
at::Tensor make_heads(const at::Tensor &like, int64_t width) {
  std::array<int64_t, 4> order{0, 1, 2, 3}, shape{like.size(0), like.size(1), like.size(2), width}, stride{};
  std::stable_sort(order.begin(), order.begin() + 3,
                   [&](int64_t a, int64_t b) { return like.stride(a) > like.stride(b); });
  int64_t next = 1;
  for (size_t i = 4; i-- > 0;) {
    stride[static_cast<size_t>(order[i])] = next;
    next *= shape[static_cast<size_t>(order[i])];
  }
  return at::empty_strided(shape, stride, like.options());
}

void check_attention(const at::Tensor &q, const at::Tensor &k, const at::Tensor &v) {
  TORCH_CHECK(
      fits(q, q) && fits(k, q) && fits(v, q),
      "attention on rdna: query, key and value must be (batch, heads, rows, width) of one floating type, width 1 "
      "to ",
      kMostWidth, "; got ", q.sizes(), ", ", k.sizes(), " and ", v.sizes());
}

// query, key, value, attn_bias?, dropout_p, is_causal, return_debug_mask, scale?
bool forward(Call &call) {
  const at::Tensor q = call.tensor(0), k = call.tensor(1), v = call.tensor(2);
  check_attention(q, k, v);
  const double dropout = call[4].toDouble();
  Options options(q, k, call.tensor(3), dropout, call.flag(5), call[7]);
  Draw d{0, 0};
  if (dropout > 0) d = draw(std::nullopt, q.device().index(), blocks_of(q, k));
  options.of.seed = d.seed;
  options.of.offset = d.offset;
  const at::Tensor out = make_heads(q, v.size(3));
  const at::Tensor lse = make({q.size(0), q.size(1), q.size(2)}, at::kFloat, q);
  const rdna_tensor tq = describe(q), tk = describe(k), tv = describe(v), to = describe(out), tl = describe(lse);
  check(rdna_op_sdpa(stream_of(q), &options.of, &tq, &tk, &tv, &to, &tl));
  const int64_t queries = q.size(2), keys = k.size(2);
  auto word = [](uint64_t n) {
    return at::scalar_tensor(static_cast<int64_t>(n), at::TensorOptions().dtype(at::kLong));
  };
  return call.give_values({out, lse, at::Tensor(), at::Tensor(), c10::SymInt(queries), c10::SymInt(keys), word(d.seed),
                           word(d.offset), at::Tensor()});
}

// grad_out, query, key, value, attn_bias, grad_input_mask, out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k,
// dropout_p, is_causal, philox_seed, philox_offset, scale?
bool backward(Call &call) {
  const at::Tensor dout = call.tensor(0), q = call.tensor(1), k = call.tensor(2), v = call.tensor(3);
  const at::Tensor out = call.tensor(6), lse = call.tensor(7);
  const c10::List<bool> wanted = call[5].toBoolList();
  check_attention(q, k, v);
  Options options(q, k, call.tensor(4), call[12].toDouble(), call.flag(13), call[16]);
  if (options.of.dropout > 0) {
    options.of.seed = static_cast<uint64_t>(call.tensor(14).item().toLong());
    options.of.offset = static_cast<uint64_t>(call.tensor(15).item().toLong());
  }
  at::Tensor grads[3], of_mask;
  const at::Tensor *inputs[3] = {&q, &k, &v};
  for (size_t i = 0; i < 3; i++)
    if (wanted[i]) grads[i] = make_heads(*inputs[i], inputs[i]->size(3));
  if (wanted[3] && options.mask.defined()) of_mask = make(options.mask.sizes(), options.mask.scalar_type(), q);
  const rdna_tensor tq = describe(q), tk = describe(k), tv = describe(v), to = describe(out), tl = describe(lse),
                    td = describe(dout);
  check(rdna_op_sdpa_backward(stream_of(q), &options.of, &tq, &tk, &tv, &to, &tl, &td, Operand(grads[0]),
                              Operand(grads[1]), Operand(grads[2]), Operand(of_mask)));
  // as it was given: with fewer dimensions, or one value for all keys
  if (of_mask.defined()) of_mask = at::sum_to(of_mask, call.tensor(4).sizes());
  return call.give({grads[0], grads[1], grads[2], of_mask});
}

const Single singles[] = {
    {"_scaled_dot_product_fused_attention_overrideable", forward},
    {"_scaled_dot_product_fused_attention_overrideable_backward", backward},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &rdna_torch::choose)
}
