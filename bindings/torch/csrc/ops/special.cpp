// Special functions of one tensor: lgamma and its derivatives, the error function's complement and inverses, modified
// Bessel functions. Integers become floats; f16 and bf16 are computed in f64, by f32, and rounded once more.
#include "rdna/op/special.h"

#include <ATen/Functions.h>
#include <ATen/MemoryOverlap.h>

#include "native.h"

namespace rdna_torch {
namespace {

struct Row {
  const char *name;
  rdna_special function;
};

bool map(Call &call, const at::Tensor &x, rdna_special function, int64_t order) {
  const at::ScalarType type = x.scalar_type();
  if (!has_dtype(type) || order > 100) return false;
  const at::ScalarType result = is_real(type) ? type : c10::typeMetaToScalarType(c10::get_default_dtype());
  const at::Tensor given = call.output();
  if (!is_real(result) || (given.defined() && !is_real(given.scalar_type()))) return false;
  const at::ScalarType computed = result == at::kDouble ? at::kDouble : at::kFloat;
  if (given.defined() && !given.is_same(x)) at::assert_no_partial_overlap(given, x);
  const at::Tensor from = x.to(computed).contiguous();
  const at::Tensor value = at::empty(x.sizes(), from.options());
  if (value.numel()) {
    const rdna_tensor in = describe(from), out = describe(value);
    check(rdna_op_special(stream_of(x), function, static_cast<int>(order), &in, &out));
  }
  Output out(given, x.sizes(), result, x, false);
  out.get().copy_(value);
  return call.give(out.finish());
}

bool run(const Row &row, Call &call) { return map(call, call.tensor(0), row.function, 0); }

bool polygamma(Call &call) {  // n, self, out
  TORCH_CHECK(call.integer(0) >= 0, "polygamma(n, x) does not support negative n.");
  return map(call, call.tensor(1), RDNA_SPECIAL_POLYGAMMA, call.integer(0));
}

const Row rows[] = {
    {"erfc.out", RDNA_SPECIAL_ERFC},
    {"erfinv.out", RDNA_SPECIAL_ERFINV},
    {"special_ndtri.out", RDNA_SPECIAL_NDTRI},
    {"lgamma.out", RDNA_SPECIAL_LGAMMA},
    {"digamma.out", RDNA_SPECIAL_DIGAMMA},
    {"i0.out", RDNA_SPECIAL_I0},
    {"special_i0e.out", RDNA_SPECIAL_I0E},
    {"special_i1.out", RDNA_SPECIAL_I1},
    {"special_i1e.out", RDNA_SPECIAL_I1E},
    {"special_modified_bessel_i0.out", RDNA_SPECIAL_I0},
    {"special_modified_bessel_i1.out", RDNA_SPECIAL_I1},
};
const Single singles[] = {{"polygamma.out", polygamma}};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add(m, rows, run);
  add(m, singles);
}

}  // namespace
}  // namespace rdna_torch
