// segment_reduce: sums, means, products and extremes of runs of rows that lie one behind another.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "native.h"

namespace rdna_torch {
namespace {

// Rows of |data| (outer, rows, inner) and the segment of each: counted through all of |outer|, each of which has
// |segments| and one more for what is in none.
struct Segments {
  std::vector<int64_t> before;  // sizes in front of the axis
  int64_t outer, segments;
  at::Tensor rows;     // (outer * rows, inner)
  at::Tensor of_row;   // (outer * rows)
  at::Tensor lengths;  // (outer, segments)
};

// Nothing where PyTorch has a sentence for the lengths, or they lie elsewhere.
std::optional<Segments> segments_of(const at::Tensor &data, const at::Tensor &lengths, const at::Tensor &offsets,
                                    int64_t axis, bool checked) {
  const at::Tensor given = lengths.defined() ? lengths : offsets;
  if (!given.defined() || !is_real(data.scalar_type()) || !at::isIntegralType(given.scalar_type(), false)) return {};
  if (data.dim() == 0 || given.dim() == 0 || given.device() != data.device()) return {};
  axis = wrap(axis, data.dim());
  if (axis != given.dim() - 1 || given.sizes().slice(0, axis) != data.sizes().slice(0, axis)) return {};
  Segments s;
  s.before.assign(data.sizes().begin(), data.sizes().begin() + axis);
  s.outer = c10::multiply_integers(s.before);
  const int64_t n = data.size(axis), entries = given.size(-1);
  s.segments = lengths.defined() ? entries : entries - 1;
  if (s.outer == 0 || s.segments < 0) return {};
  const at::Tensor numbers = given.to(at::kLong).reshape({s.outer, entries});
  at::Tensor begins;
  if (lengths.defined()) {
    if (checked &&
        (entries == 0 ? n != 0
                      : at::logical_or(at::lt(numbers, 0).any(), at::ne(numbers.sum(1), n).any()).item().toBool()))
      return {};
    s.lengths = numbers;
    begins = at::zeros({s.outer, 1}, numbers.options());
    if (entries) begins = at::cat({begins, numbers.cumsum(1)}, 1);
  } else {
    begins = numbers;
    s.lengths = begins.narrow(1, 1, s.segments) - begins.narrow(1, 0, s.segments);
  }
  const at::Tensor places = at::arange(n, begins.options()).expand({s.outer, n}).contiguous();
  at::Tensor segment = at::searchsorted(begins.contiguous(), places, false, true) - 1;
  segment = at::where(at::lt(segment, 0), s.segments, segment);
  s.of_row = (segment + at::arange(s.outer, begins.options()).unsqueeze(1) * (s.segments + 1)).reshape({-1});
  s.rows = data.reshape({s.outer * n, -1});
  return s;
}

// (outer * (segments + 1), inner) without the last of each |outer|, in the shape of the result.
at::Tensor shaped(const Segments &s, const at::Tensor &sums, const at::Tensor &data) {
  std::vector<int64_t> shape = s.before;
  shape.push_back(s.segments);
  for (int64_t d = static_cast<int64_t>(s.before.size()) + 1; d < data.dim(); d++) shape.push_back(data.size(d));
  return sums.view({s.outer, s.segments + 1, -1}).narrow(1, 0, s.segments).reshape(shape);
}
// The other way: one more for what is in no segment, which is |rest|.
at::Tensor flat(const Segments &s, const at::Tensor &of_segments, double rest) {
  const at::Tensor t = of_segments.reshape({s.outer, s.segments, s.rows.size(1)});
  return at::cat({t, at::full({s.outer, 1, s.rows.size(1)}, rest, t.options())}, 1).flatten(0, 1);
}

double neutral(c10::string_view reduce) {
  return reduce == "max" ? -INFINITY : reduce == "min" ? INFINITY : reduce == "prod" ? 1 : 0;
}
const char *mode_of(c10::string_view reduce) {
  return reduce == "max" ? "amax" : reduce == "min" ? "amin" : reduce == "prod" ? "prod" : "sum";
}
bool is_known(c10::string_view r) { return r == "sum" || r == "mean" || r == "max" || r == "min" || r == "prod"; }

at::Tensor combined(const Segments &s, const at::Tensor &rows, c10::string_view reduce, double initial) {
  const at::Tensor out = at::full({s.outer * (s.segments + 1), rows.size(1)}, initial, rows.options());
  if (rows.numel() == 0) return out;
  if (reduce == "sum" || reduce == "mean") return out.index_add_(0, s.of_row, rows);
  return out.index_reduce_(0, s.of_row, rows, mode_of(reduce), /*include_self=*/true);
}

bool segment_reduce(Call &call) {  // data, reduce, lengths?, indices?, offsets?, axis, unsafe, initial?
  const at::Tensor data = call.tensor(0);
  const auto reduce = call[1].toStringView();
  if (!call.none(3) || !is_known(reduce)) return false;
  const auto s = segments_of(data, call.tensor(2), call.tensor(4), call.integer(5), !call.flag(6));
  if (!s) return false;
  const bool half = data.scalar_type() != at::kDouble;
  const double initial = call.none(7) ? neutral(reduce) : call.real(7);
  at::Tensor out = shaped(*s, combined(*s, half ? s->rows.to(at::kFloat) : s->rows, reduce, initial), data);
  if (reduce == "mean") {
    std::vector<int64_t> shape = s->before;
    shape.push_back(s->segments);
    shape.resize(static_cast<size_t>(data.dim()), 1);
    const at::Tensor count = s->lengths.reshape(shape).to(out.scalar_type());
    out = call.none(7) ? out / count : at::where(at::gt(count, 0), out / count, out);
  }
  return call.give(out.to(data.scalar_type()).contiguous());
}

// Of a product of which |x| is a factor: of the others. Zeros and NaN are counted, as they cannot be divided by.
at::Tensor product_of_others(const Segments &s, const at::Tensor &x, const at::Tensor &whole, double initial) {
  const at::Tensor zero = at::eq(x, 0), nan = at::isnan(x), special = at::logical_or(zero, nan);
  auto count = [&](const at::Tensor &t) {
    return combined(s, t.to(x.scalar_type()), "sum", 0).index_select(0, s.of_row);
  };
  const at::Tensor zeros = count(zero) - zero.to(x.scalar_type()), nans = count(nan) - nan.to(x.scalar_type());
  at::Tensor rest = combined(s, x.masked_fill(special, 1), "prod", initial).index_select(0, s.of_row);
  rest = rest.masked_fill(at::gt(zeros, 0), 0).masked_fill(at::gt(nans, 0), NAN);
  return at::where(special, rest, whole / x);
}

// grad, output, data, reduce, lengths?, offsets?, axis, initial?
bool backward(Call &call) {
  const at::Tensor data = call.tensor(2);
  const auto reduce = call[3].toStringView();
  if (!is_known(reduce)) return false;
  const auto s = segments_of(data, call.tensor(4), call.tensor(5), call.integer(6), false);
  if (!s) return false;
  if (data.numel() == 0) return call.give(at::zeros_like(data));
  const at::ScalarType computed = data.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  auto of_rows = [&](const at::Tensor &t) { return t.index_select(0, s->of_row); };
  const at::Tensor x = s->rows.to(computed), grad = of_rows(flat(*s, call.tensor(0).to(computed), 0));
  at::Tensor slope;
  if (reduce == "sum") {
    slope = grad;
  } else if (reduce == "mean") {
    const at::Tensor one = at::ones({s->outer, 1}, s->lengths.options());
    slope = grad / at::cat({s->lengths, one}, 1).reshape({-1, 1}).index_select(0, s->of_row).to(computed);
  } else {
    const at::Tensor whole = of_rows(flat(*s, call.tensor(1).to(computed), NAN));
    if (reduce == "prod") {
      slope = grad * product_of_others(*s, x, whole, call.none(7) ? 1 : call.real(7));
      slope = slope.masked_fill(at::eq(s->of_row.remainder(s->segments + 1), s->segments).unsqueeze(1), 0);
    } else {  // shared by those that are the extreme
      const at::Tensor is = at::logical_or(at::eq(x, whole), at::isnan(x));
      const at::Tensor as = is.to(computed), count = combined(*s, as, "sum", 0).index_select(0, s->of_row);
      slope = at::where(is, grad / count, at::zeros({}, grad.options()));
    }
  }
  return call.give(slope.to(data.scalar_type()).view(data.sizes()));
}

const Single singles[] = {{"segment_reduce", segment_reduce}, {"_segment_reduce_backward", backward}};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
