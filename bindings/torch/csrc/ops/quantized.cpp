// Products with weights of 8 and 4 bits, and what training for such weights does to values: round them to whole steps.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <limits>

#include "native.h"
#include "rdna/op/gemm.h"
#include "rdna/op/quant.h"

namespace rdna_torch {
namespace {

bool int_mm(Call &call) {  // self, mat2
  const at::Tensor a = call.tensor(0), b = call.tensor(1), given = call.output();
  TORCH_CHECK(a.dim() == 2 && b.dim() == 2, "_int_mm: expected two matrices, got ", a.dim(), "-D and ", b.dim(),
              "-D tensors");
  TORCH_CHECK(a.size(1) == b.size(0), "_int_mm: self.size(1) must match mat2.size(0), got ", a.size(1), " and ",
              b.size(0));
  TORCH_CHECK(a.scalar_type() == at::kChar && b.scalar_type() == at::kChar, "_int_mm: expected tensors of int8, got ",
              a.scalar_type(), " and ", b.scalar_type());
  TORCH_CHECK(!given.defined() || given.scalar_type() == at::kInt, "_int_mm: expected out of int32, got ",
              given.defined() ? given.scalar_type() : at::kInt);
  Output out(given, {a.size(0), b.size(1)}, at::kInt, a);
  if (out.get().numel() == 0) return call.give(out.finish());
  if (a.size(1) == 0) {
    out.get().zero_();
    return call.give(out.finish());
  }
  const rdna_tensor x = describe(a), y = describe(b), z = describe(out.get());
  check(rdna_op_gemm_i8(stream_of(a), nullptr, &x, nullptr, &y, nullptr, &z));
  return call.give(out.finish());
}

// a (m, k) times weights (n, k), transposed, in f32.
at::Tensor product(const at::Tensor &a, const at::Tensor &weights) {
  const at::Tensor left = a.contiguous(), right = weights.t(), out = make({a.size(0), weights.size(0)}, at::kFloat, a);
  if (out.numel() == 0) return out;
  const rdna_tensor x = describe(left), y = describe(right), z = describe(out);
  check(rdna_op_gemm(stream_of(a), 1, &x, &y, 0, nullptr, &z));
  return out;
}

bool int8_weights(Call &call) {  // self (m, k), mat2 (n, k) of int8, scales (n)
  const at::Tensor a = call.tensor(0), w = call.tensor(1), scales = call.tensor(2);
  TORCH_CHECK(a.dim() == 2 && w.dim() == 2 && a.size(1) == w.size(1),
              "_weight_int8pack_mm: expected self (m, k) and mat2 (n, k), got ", a.sizes(), " and ", w.sizes());
  TORCH_CHECK(is_float(a.scalar_type()) && w.scalar_type() == at::kChar,
              "_weight_int8pack_mm: expected self of float32, float16 or bfloat16 and mat2 of int8, got ",
              a.scalar_type(), " and ", w.scalar_type());
  TORCH_CHECK(scales.dim() == 1 && scales.size(0) == w.size(0) && scales.scalar_type() == a.scalar_type(),
              "_weight_int8pack_mm: expected ", w.size(0), " scales of ", a.scalar_type(), ", got ", scales.sizes(),
              " of ", scales.scalar_type());
  // each byte is exact in 16 bits
  return call.give(product(a, w.to(a.scalar_type())).mul_(scales).to(a.scalar_type()));
}

// The shape is that of the layout that CUDA's kernels read; inside it the codes lie as rdna_quant_groups has them. In
// |self| value 2i of a row is the upper half of byte i, 2i + 1 the lower.
bool pack_int4(Call &call) {  // self (n, k / 2) of uint8, innerKTiles
  const at::Tensor w = call.tensor(0);
  const int64_t tiles = call.integer(1), n = w.dim() == 2 ? w.size(0) : 0, k = w.dim() == 2 ? w.size(1) * 2 : 0;
  TORCH_CHECK(w.dim() == 2 && w.scalar_type() == at::kByte,
              "_convert_weight_to_int4pack: expected uint8 of (n, k / 2), got ", w.scalar_type(), " of ", w.sizes());
  TORCH_CHECK(tiles == 2 || tiles == 4 || tiles == 8, "_convert_weight_to_int4pack: innerKTiles is 2, 4 or 8, got ",
              tiles);
  TORCH_CHECK(n % 8 == 0 && k % (tiles * 16) == 0, "_convert_weight_to_int4pack: n is to be a multiple of 8 and k of ",
              tiles * 16, ", got ", n, " and ", k);
  const at::Tensor codes =
      at::stack({at::bitwise_right_shift(w, 4), at::bitwise_and(w, 15)}, -1).view({n, k / 32, 2, 16});
  const at::Tensor packed = at::bitwise_or(codes.select(2, 0), at::bitwise_left_shift(codes.select(2, 1), 4));
  return call.give(packed.contiguous().view({-1}).view(at::kInt).view({n / 8, k / (tiles * 16), 32, tiles / 2}));
}

bool int4_weights(Call &call) {  // self (m, k), mat2 as above, qGroupSize, qScaleAndZeros (k / group, n, 2)
  const at::Tensor a = call.tensor(0), packed = call.tensor(1), both = call.tensor(3);
  const int64_t group = call.integer(2);
  TORCH_CHECK(a.dim() == 2 && is_float(a.scalar_type()), "_weight_int4pack_mm: expected self (m, k) of floats, got ",
              a.scalar_type(), " of ", a.sizes());
  TORCH_CHECK(packed.dim() == 4 && packed.scalar_type() == at::kInt && packed.is_contiguous(),
              "_weight_int4pack_mm: mat2 is what _convert_weight_to_int4pack gives, got ", packed.scalar_type(), " of ",
              packed.sizes());
  const int64_t n = packed.size(0) * 8, k = packed.size(1) * packed.size(3) * 32;
  TORCH_CHECK(a.size(1) == k, "_weight_int4pack_mm: self has rows of ", a.size(1), " values, mat2 of ", k);
  TORCH_CHECK(group == 32 || group == 64 || group == 128 || group == 256,
              "_weight_int4pack_mm: qGroupSize is 32, 64, 128 or 256, got ", group);
  TORCH_CHECK(both.dim() == 3 && both.size(0) * group == k && both.size(1) == n && both.size(2) == 2 &&
                  both.scalar_type() == a.scalar_type(),
              "_weight_int4pack_mm: expected qScaleAndZeros (", k / group, ", ", n, ", 2) of ", a.scalar_type(),
              ", got ", both.sizes(), " of ", both.scalar_type());
  const at::Tensor left = a.to(at::kFloat).contiguous(), out = make({a.size(0), n}, at::kFloat, a);
  at::Tensor bytes = packed.view({n, k / 8}).view(at::kByte);
  if (reinterpret_cast<uintptr_t>(bytes.const_data_ptr()) % 16) bytes = bytes.clone();
  const rdna_tensor x = describe(left), codes = describe(bytes), scale = describe(both.select(2, 0).t()),
                    zero = describe(both.select(2, 1).t()), z = describe(out);
  // the code of 0 is 8, which librdna takes off as well
  const rdna_quant_groups weights = {RDNA_QUANT_GROUPS_INIT, .codes = &codes, .scales = &scale, .offsets = &zero};
  check(rdna_op_linear_quant_groups(stream_of(a), &x, &weights, nullptr, &z));
  return call.give(out.to(a.scalar_type()));
}

// Values on the steps of a scale, and which of them lay within it. |steps| is what the values are in steps, whole.
// NaN goes to the lower end, as on the CPU.
bool give_rounded(Call &call, const at::Tensor &x, const at::Tensor &steps, const at::Tensor &scale,
                  const at::Tensor &zero, int64_t least, int64_t most, const at::Tensor &enabled) {
  TORCH_CHECK(least <= most, "`quant_min` should be less than or equal to `quant_max`.");
  const double infinity = std::numeric_limits<double>::infinity();
  const at::Tensor whole = at::nan_to_num(steps, static_cast<double>(least - 1), infinity, -infinity);
  at::Tensor mask = at::logical_and(at::ge(whole, least), at::le(whole, most));
  at::Tensor value = at::clamp(whole, least, most).sub_(zero).mul_(scale).to(x.scalar_type());
  if (enabled.defined()) {
    const at::Tensor on = enabled.reshape({-1}).select(0, 0).ne(0);
    value = at::where(on, value, x);
    mask = at::logical_or(mask, at::logical_not(on));
  }
  return call.give({value, mask});
}

bool fake_quantize(Call &call) {  // self, scale, zero_point, quant_min, quant_max
  const at::Tensor x = call.tensor(0);
  if (!is_real(x.scalar_type())) return false;
  const int64_t zero_point = call.integer(2), least = call.integer(3), most = call.integer(4);
  TORCH_CHECK(zero_point >= least && zero_point <= most, "`zero_point` must be between `quant_min` and `quant_max`.");
  const at::TensorOptions like = x.options().dtype(wide(x).scalar_type());
  // of f32, as PyTorch's kernels take both
  const at::Tensor scale = at::full({}, static_cast<float>(call.real(1)), like), zero = at::full({}, zero_point, like);
  const at::Tensor steps = at::round(wide(x).mul(1.0f / static_cast<float>(call.real(1)))).add_(zero);
  return give_rounded(call, x, steps, scale, zero, least, most, {});
}

bool fake_quantize_by_tensors(Call &call) {  // self, scale, zero_point, fake_quant_enabled, quant_min, quant_max
  const at::Tensor x = call.tensor(0);
  if (!is_real(x.scalar_type())) return false;
  const at::Tensor scale = wide(call.tensor(1)).reshape({-1}).select(0, 0),
                   zero = wide(call.tensor(2)).reshape({-1}).select(0, 0);
  const at::Tensor steps = at::round(wide(x).mul(at::reciprocal(scale))).add_(zero);
  return give_rounded(call, x, steps, scale, zero, call.integer(4), call.integer(5), call.tensor(3));
}

bool fake_quantize_channels(Call &call) {  // self, scale, zero_point, axis, quant_min, quant_max
  const at::Tensor x = call.tensor(0), scales = call.tensor(1), zeros = call.tensor(2);
  if (!is_real(x.scalar_type())) return false;
  const int64_t axis = call.integer(3);
  TORCH_CHECK(scales.dim() == 1 && zeros.dim() == 1 && scales.numel() == zeros.numel(),
              "scale and zero-point need to be vectors of one size, got ", scales.sizes(), " and ", zeros.sizes());
  TORCH_CHECK(axis >= 0 && axis < x.dim(), "`axis` must be between 0 and number of dimensions of input, got ", axis);
  TORCH_CHECK(scales.numel() == x.size(axis),
              "dimensions of scale and zero-point are not consistent with input tensor");
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[static_cast<size_t>(axis)] = scales.numel();
  const at::Tensor scale = wide(scales).view(shape), zero = wide(zeros).view(shape), inverse = at::reciprocal(scale);
  // a zero point between whole steps is added before they are rounded
  const at::Tensor steps = at::isFloatingType(zeros.scalar_type()) ? at::round(wide(x).mul(inverse).add_(zero))
                                                                   : at::round(wide(x).mul(inverse)).add_(zero);
  return give_rounded(call, x, steps, scale, zero, call.integer(4), call.integer(5), {});
}

// Where scale and zero point are learned: |axis| -1, one for all values.
struct Learned {
  at::Tensor scale, zero, steps;  // of the values, in steps and whole
};
Learned learned(const at::Tensor &x, const at::Tensor &scales, const at::Tensor &zeros, int64_t axis, int64_t least,
                int64_t most) {
  TORCH_CHECK(axis < x.dim() && scales.numel() == (axis < 0 ? 1 : x.size(axis)) && zeros.numel() == scales.numel(),
              "scale and zero_point are to have a value for each of dimension ", axis, " of ", x.sizes(), ", got ",
              scales.sizes(), " and ", zeros.sizes());
  TORCH_CHECK(least <= 0 && most >= 0, "`quant_min` should be less than or equal to `quant_max`, and 0 between them.");
  std::vector<int64_t> shape(static_cast<size_t>(axis < 0 ? 0 : x.dim()), 1);
  if (axis >= 0) shape[static_cast<size_t>(axis)] = scales.numel();
  const at::Tensor scale = scales.reshape(shape), zero = at::clamp(at::round(zeros.reshape(shape)), least, most);
  return {scale, zero, at::round(x.mul(at::reciprocal(scale)).add_(zero))};
}
bool fake_quantize_learned(Call &call) {  // self, scale, zero_point, [axis], quant_min, quant_max, grad_factor
  const at::Tensor x = call.tensor(0);
  const size_t at = call.count() - 3;
  if (x.scalar_type() != at::kFloat || call.tensor(1).scalar_type() != at::kFloat) return false;
  const int64_t least = call.integer(at), most = call.integer(at + 1);
  const Learned l = learned(x, call.tensor(1), call.tensor(2), at == 3 ? -1 : call.integer(3), least, most);
  return call.give(at::clamp(l.steps, least, most).sub_(l.zero).mul_(l.scale));
}
// Esser et al., "Learned Step Size Quantization", 2019; Jain et al., "Trained Quantization Thresholds", 2019: within
// the steps a scale moves the result by what rounding did, outside by the end's distance from the zero point, which
// moves it there alone. grad, then as above.
bool fake_quantize_learned_backward(Call &call) {
  const at::Tensor grad = call.tensor(0), x = call.tensor(1), scales = call.tensor(2), zeros = call.tensor(3);
  const size_t at = call.count() - 3;
  if (x.scalar_type() != at::kFloat || scales.scalar_type() != at::kFloat || grad.scalar_type() != at::kFloat)
    return false;
  const int64_t least = call.integer(at), most = call.integer(at + 1), axis = at == 4 ? -1 : call.integer(4);
  const Learned l = learned(x, scales, zeros, axis, least, most);
  const at::Tensor ends = at::clamp(l.steps, least, most), from_zero = ends - l.zero;
  const at::Tensor within = at::logical_and(at::ge(l.steps, least), at::le(l.steps, most));
  const at::Tensor by_scale = at::where(within, from_zero - x / l.scale, from_zero) * grad;
  const at::Tensor by_zero = (grad * l.scale).neg_().masked_fill_(within, 0);
  std::vector<int64_t> others;
  for (int64_t d = 0; d < x.dim(); d++)
    if (d != axis) others.push_back(d);
  const double factor = call.real(at + 2);
  auto sum = [&](const at::Tensor &t, const at::Tensor &like) {
    return (others.empty() ? t : at::sum(t, others)).mul(factor).view(like.sizes());
  };
  return call.give(
      {at::where(within, grad, at::zeros({}, grad.options())), sum(by_scale, scales), sum(by_zero, zeros)});
}

const Single singles[] = {
    {"_int_mm", int_mm},
    {"_int_mm.out", int_mm},
    {"_weight_int8pack_mm", int8_weights},
    {"_convert_weight_to_int4pack", pack_int4},
    {"_weight_int4pack_mm", int4_weights},
    {"fake_quantize_per_tensor_affine_cachemask", fake_quantize},
    {"_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", fake_quantize_by_tensors},
    {"fake_quantize_per_channel_affine_cachemask", fake_quantize_channels},
    {"_fake_quantize_learnable_per_tensor_affine", fake_quantize_learned},
    {"_fake_quantize_learnable_per_channel_affine", fake_quantize_learned},
    {"_fake_quantize_learnable_per_tensor_affine_backward", fake_quantize_learned_backward},
    {"_fake_quantize_learnable_per_channel_affine_backward", fake_quantize_learned_backward},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
