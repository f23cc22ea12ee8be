// Connectionist temporal classification: nn.CTCLoss.
#include <ATen/Functions.h>

#include <algorithm>

#include "native.h"
#include "outside.h"
#include "rdna/memory.h"
#include "rdna/op/loss.h"

namespace rdna_torch {
namespace {

// A call's texts as librdna takes them: labels one behind another, and where each text's are.
struct Texts {
  at::Tensor x;  // (steps, batch, classes)
  at::Tensor targets, spans;
  int64_t longest;
};

std::vector<int64_t> lengths(const Call &call, size_t i) {
  if (!call[i].isTensor()) return call.integers(i);
  const at::Tensor t = call.tensor(i).to(at::kCPU, at::kLong).contiguous();
  return {t.data_ptr<int64_t>(), t.data_ptr<int64_t>() + t.numel()};
}

// Log probabilities, targets, input lengths and target lengths are arguments |first| and those behind it. Mistakes in
// PyTorch's words; nothing for what the CPU is to judge.
std::optional<Texts> texts_of(const Call &call, size_t first) {
  Texts t{call.tensor(first), call.tensor(first + 1), {}, 0};
  const at::ScalarType type = t.x.scalar_type(), label = t.targets.scalar_type();
  if (type != at::kFloat || (label != at::kLong && label != at::kInt)) return {};
  if (t.x.dim() != 3 || t.targets.dim() < 1 || t.targets.dim() > 2 || t.targets.device() != t.x.device()) return {};
  const std::vector<int64_t> steps = lengths(call, first + 2), labels = lengths(call, first + 3);
  const int64_t batch = t.x.size(1);
  TORCH_CHECK(static_cast<int64_t>(steps.size()) == batch, "input_lengths must be of size batch_size");
  TORCH_CHECK(static_cast<int64_t>(labels.size()) == batch, "target_lengths must be of size batch_size");
  const bool padded = t.targets.dim() == 2;
  std::vector<int64_t> spans;
  int64_t sum = 0;
  for (int64_t i = 0; i < batch; i++) {
    const int64_t l = labels[static_cast<size_t>(i)], n = steps[static_cast<size_t>(i)];
    TORCH_CHECK(l >= 0, "Expected target_lengths to have value at least 0, but got value ", l,
                " (while checking arguments for ctc_loss)");
    TORCH_CHECK(n >= 0, "Expected input_lengths to have value at least 0, but got value ", n,
                " (while checking arguments for ctc_loss)");
    TORCH_CHECK(n <= t.x.size(0), "Expected input_lengths to have value at most ", t.x.size(0), ", but got value ", n,
                " (while checking arguments for ctc_loss)");
    spans.insert(spans.end(), {padded ? i * t.targets.size(1) : sum, l, n});
    sum += l;
    t.longest = std::max(t.longest, l);
  }
  if (padded) {
    TORCH_CHECK(t.targets.size(0) == batch, "Expected tensor to have size ", batch, " at dimension 0, but got size ",
                t.targets.size(0), " for argument #2 'targets' (while checking arguments for ctc_loss)");
    TORCH_CHECK(t.targets.size(1) >= t.longest, "Expected tensor to have size at least ", t.longest,
                " at dimension 1, but got size ", t.targets.size(1),
                " for argument #2 'targets' (while checking arguments for ctc_loss)");
  } else {
    TORCH_CHECK(t.targets.size(0) == sum, "Expected tensor to have size ", sum, " at dimension 0, but got size ",
                t.targets.size(0), " for argument #2 'targets' (while checking arguments for ctc_loss)");
  }
  t.targets = t.targets.to(at::kLong).contiguous().view({-1});
  t.spans = make({batch, 3}, at::kLong, t.x);
  if (batch) check(rdna_copy_to_device(stream_of(t.x), t.spans.mutable_data_ptr(), spans.data(), t.spans.nbytes()));
  return t;
}

bool forward(Call &call) {  // log_probs, targets, input_lengths, target_lengths, blank, zero_infinity
  const auto t = texts_of(call, 0);
  if (!t) return false;
  const int64_t batch = t->x.size(1), blank = call.integer(4);
  TORCH_CHECK(blank >= 0 && blank < t->x.size(2), "blank must be in label range");
  const at::Tensor states = make({batch, t->x.size(0), 2 * t->longest + 1}, t->x.scalar_type(), t->x);
  const at::Tensor loss = make({batch}, t->x.scalar_type(), t->x);
  const rdna_tensor x = describe(t->x), targets = describe(t->targets), spans = describe(t->spans);
  const rdna_tensor to = describe(states), sum = describe(loss);
  check(rdna_op_ctc(stream_of(t->x), &x, &targets, &spans, blank, &to, &sum, outside(t->x, "ctc_loss")));
  return call.give({loss, states});
}

// grad, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood, log_alpha, blank, zero_infinity
bool backward(Call &call) {
  const auto t = texts_of(call, 1);
  if (!t) return false;
  const at::Tensor grad = call.tensor(0).contiguous(), loss = call.tensor(5).contiguous(), out = make_like(t->x);
  const at::Tensor states = call.tensor(6).contiguous();
  const rdna_tensor g = describe(grad), x = describe(t->x), targets = describe(t->targets), spans = describe(t->spans);
  const rdna_tensor from = describe(states), l = describe(loss), dx = describe(out);
  check(rdna_op_ctc_backward(stream_of(t->x), &g, &x, &targets, &spans, call.integer(7), call.flag(8), &from, &l, &dx));
  return call.give(out);
}

const Single singles[] = {
    {"_ctc_loss", forward},
    {"_ctc_loss.Tensor", forward},
    {"_ctc_loss_backward", backward},
    {"_ctc_loss_backward.Tensor", backward},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
