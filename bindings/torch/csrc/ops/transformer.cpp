// What torch.nn's MultiheadAttention and TransformerEncoderLayer call in inference: one operator for the whole layer,
// composed here of products, attention and norms, so that nothing leaves the device.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "native.h"

namespace rdna_torch {
namespace {

// What must not be looked at, to broadcast over (batch, heads, rows, keys). PyTorch's layers give masks of numbers too,
// 0 and -inf. |kind| says what two dimensions are: 0 rows and keys, 1 batch and keys.
at::Tensor hidden(const at::Tensor &mask, std::optional<int64_t> kind) {
  const at::Tensor given = mask.to(at::kBool);
  if (given.dim() == 2) return kind == 1 ? given.unsqueeze(1).unsqueeze(1) : given.unsqueeze(0).unsqueeze(0);
  TORCH_CHECK(given.dim() == 4, "attention of a whole layer: a mask has 2 or 4 dimensions, got ", given.sizes());
  return given;
}

struct Attention {
  int64_t heads;
  at::Tensor weight, bias;  // of query, key and value, one below the other
  at::Tensor out_weight, out_bias;
};

struct Attended {
  at::Tensor out, weights;
};

// (batch, rows, width) of all three; the weights, of each head or their mean, only where |weights|.
Attended attend(const Attention &of, const at::Tensor &query, const at::Tensor &key, const at::Tensor &value,
                const at::Tensor &mask, std::optional<int64_t> mask_kind, bool weights, bool mean) {
  const int64_t width = query.size(2);
  TORCH_CHECK(width % of.heads == 0, "the width ", width, " is not a multiple of the ", of.heads, " heads");
  at::Tensor parts[3];
  if (query.is_same(key) && key.is_same(value)) {
    const auto all = at::linear(query, of.weight, of.bias).chunk(3, 2);
    for (size_t i = 0; i < 3; i++) parts[i] = all[i];
  } else {
    const at::Tensor *from[3] = {&query, &key, &value};
    const auto w = of.weight.chunk(3), b = of.bias.chunk(3);
    for (size_t i = 0; i < 3; i++) parts[i] = at::linear(*from[i], w[i], b[i]);
  }
  for (at::Tensor &part : parts)
    part = part.view({part.size(0), part.size(1), of.heads, width / of.heads}).transpose(1, 2);
  const auto &[q, k, v] = parts;
  const at::Tensor hide = mask.defined() ? hidden(mask, mask_kind) : mask;
  Attended found;
  if (weights) {
    at::Tensor scores = at::matmul(q / std::sqrt(static_cast<double>(q.size(3))), k.transpose(2, 3));
    if (hide.defined()) scores = scores.masked_fill(hide, -INFINITY);
    const at::Tensor shares = at::softmax(scores, -1);
    found.out = at::matmul(shares.to(v.scalar_type()), v);
    found.weights = mean ? shares.mean(1) : shares;
  } else {
    const auto seen = hide.defined() ? std::optional<at::Tensor>(at::logical_not(hide)) : std::nullopt;
    found.out = at::scaled_dot_product_attention(q, k, v, seen);
  }
  found.out = at::linear(found.out.transpose(1, 2).reshape(query.sizes()), of.out_weight, of.out_bias);
  return found;
}

bool fits(const at::Tensor &t) { return t.dim() == 3 && is_real(t.scalar_type()) && t.numel() > 0; }

// query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias, mask?, need_weights,
// average_attn_weights, mask_type?
bool multi_head_attention(Call &call) {
  const at::Tensor query = call.tensor(0), key = call.tensor(1), value = call.tensor(2);
  if (!fits(query) || !fits(key) || !fits(value)) return false;
  const Attention of{call.integer(4), call.tensor(5), call.tensor(6), call.tensor(7), call.tensor(8)};
  const auto kind = call.none(12) ? std::nullopt : std::make_optional(call.integer(12));
  const Attended found = attend(of, query, key, value, call.tensor(9), kind, call.flag(10), call.flag(11));
  return call.give({found.out, found.weights});
}

// src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first, eps, norm_weight_1,
// norm_bias_1, norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2, mask?, mask_type?
bool encoder_layer(Call &call) {
  const at::Tensor x = call.tensor(0);
  if (!fits(x)) return false;
  const Attention of{call.integer(2), call.tensor(3), call.tensor(4), call.tensor(5), call.tensor(6)};
  const auto kind = call.none(19) ? std::nullopt : std::make_optional(call.integer(19));
  const bool gelu = call.flag(7), norm_first = call.flag(8);
  auto norm = [&](const at::Tensor &t, size_t weight) {
    return at::layer_norm(t, {t.size(2)}, call.tensor(weight), call.tensor(weight + 1), call[9].toDouble());
  };
  auto attention = [&](const at::Tensor &t) {
    return attend(of, t, t, t, call.tensor(18), kind, /*weights=*/false, /*mean=*/false).out;
  };
  auto feed_forward = [&](const at::Tensor &t) {
    const at::Tensor inner = at::linear(t, call.tensor(14), call.tensor(15));
    return at::linear(gelu ? at::gelu(inner) : at::relu(inner), call.tensor(16), call.tensor(17));
  };
  if (norm_first) {
    const at::Tensor y = x + attention(norm(x, 10));
    return call.give(y + feed_forward(norm(y, 12)));
  }
  const at::Tensor y = norm(x + attention(x), 10);
  return call.give(norm(y + feed_forward(y), 12));
}

const Single singles[] = {
    {"_native_multi_head_attention", multi_head_attention},
    {"_transformer_encoder_layer_fwd", encoder_layer},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
