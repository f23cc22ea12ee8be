// histogram and histogramdd: how many values, or what weights, lie in boxes with given edges or of equal widths.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "native.h"

namespace rdna_torch {
namespace {

bool has_edges(const at::Tensor &edges, const at::Tensor &x) {
  return edges.dim() == 1 && edges.numel() > 1 && edges.scalar_type() == x.scalar_type() &&
         edges.device() == x.device();
}
bool has_values(const at::Tensor &x, const at::Tensor &weight) {
  return (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble) && x.dim() > 0 &&
         (!weight.defined() || (weight.scalar_type() == x.scalar_type() && weight.device() == x.device() &&
                                weight.sizes() == x.sizes().slice(0, x.dim() - 1)));
}

// |x| is (…, dimensions), with one edge more than boxes in each.
at::Tensor count(const at::Tensor &x, at::TensorList edges, const at::Tensor &weight, bool density) {
  const int64_t dims = x.size(-1), points = c10::multiply_integers(x.sizes().slice(0, x.dim() - 1));
  std::vector<int64_t> shape;
  for (const at::Tensor &e : edges) shape.push_back(e.numel() - 1);
  const int64_t boxes = c10::multiply_integers(shape);
  const at::Tensor flat = x.reshape({points, dims});
  at::Tensor place = at::zeros({points}, x.options().dtype(at::kLong));
  at::Tensor outside = at::zeros({points}, x.options().dtype(at::kBool));
  for (int64_t d = 0; d < dims; d++) {
    const at::Tensor &e = edges[static_cast<size_t>(d)], v = flat.select(1, d).contiguous();
    const int64_t n = e.numel() - 1;
    const at::Tensor found = at::searchsorted(e.contiguous(), v, false, /*right=*/true) - 1;
    const at::Tensor within = at::logical_and(at::ge(v, e[0]), at::le(v, e[n]));  // the last box has its end
    outside = at::logical_or(outside, at::logical_not(within));
    place = place * n + at::clamp(found, 0, n - 1);
  }
  const at::Tensor each = weight.defined() ? weight.reshape({points}) : at::ones({points}, x.options());
  const at::Tensor to = place.masked_fill(outside, boxes);
  // counts in whole numbers, which floats would stop at
  at::Tensor sums = points == 0        ? at::zeros({boxes + 1}, x.options())
                    : weight.defined() ? at::zeros({boxes + 1}, x.options()).index_add_(0, to, each)
                                       : at::zeros({boxes + 1}, to.options())
                                             .index_add_(0, to, at::ones({points}, to.options()))
                                             .to(x.scalar_type());
  sums = sums.narrow(0, 0, boxes).reshape(shape);
  if (!density) return sums;
  sums = sums / sums.sum();
  for (int64_t d = 0; d < dims; d++) {
    const at::Tensor &e = edges[static_cast<size_t>(d)];
    std::vector<int64_t> along(static_cast<size_t>(dims), 1);
    along[static_cast<size_t>(d)] = e.numel() - 1;
    sums = sums / at::diff(e).view(along);
  }
  return sums;
}

// Edges of |bins| boxes of equal widths in each dimension, over |range| or the values; nothing where PyTorch has a
// sentence for them.
std::vector<at::Tensor> even_edges(const at::Tensor &x, at::IntArrayRef bins, const c10::IValue &range) {
  const int64_t dims = x.size(-1);
  if (static_cast<int64_t>(bins.size()) != dims || dims == 0) return {};
  std::vector<double> low(bins.size(), 0), high(bins.size(), 1);
  if (!range.isNone()) {
    const std::vector<double> given = range.toDoubleVector();
    if (given.size() != 2 * bins.size()) return {};
    for (size_t d = 0; d < bins.size(); d++) low[d] = given[2 * d], high[d] = given[2 * d + 1];
  } else if (x.numel()) {
    const at::Tensor flat = x.reshape({-1, dims}), ends = at::stack({at::amin(flat, 0), at::amax(flat, 0)});
    for (size_t d = 0; d < bins.size(); d++) {
      low[d] = ends[0][static_cast<int64_t>(d)].item().toDouble();
      high[d] = ends[1][static_cast<int64_t>(d)].item().toDouble();
    }
  }
  std::vector<at::Tensor> edges;
  for (size_t d = 0; d < bins.size(); d++) {
    if (bins[d] <= 0 || !std::isfinite(low[d]) || !std::isfinite(high[d]) || low[d] > high[d]) return {};
    if (low[d] == high[d]) low[d] -= 0.5, high[d] += 0.5;
    // from both ends, in the values' type, so that both are met
    const at::Tensor i = at::arange(bins[d] + 1, x.options().dtype(at::kLong));
    const at::Tensor first = at::full({}, low[d], x.options()), last = at::full({}, high[d], x.options());
    const at::Tensor step = (last - first) / bins[d];
    edges.push_back(at::where(at::lt(i, (bins[d] + 1) / 2), first + step * i, last - step * (bins[d] - i)));
  }
  return edges;
}

bool give_two(Call &call, const at::Tensor &hist, const at::Tensor &edges, size_t outs) {
  if (call.count() == outs) return call.give({hist, edges});
  Output a(call.tensor(outs), hist.sizes(), hist.scalar_type(), hist, false);
  Output b(call.tensor(outs + 1), edges.sizes(), edges.scalar_type(), hist, false);
  a.get().copy_(hist);
  b.get().copy_(edges);
  return call.give({a.finish(), b.finish()});
}

// A histogram is one of a single dimension, whatever the shape.
at::Tensor line(const at::Tensor &t) { return t.reshape({-1, 1}); }
at::Tensor weights_of(const at::Tensor &x, const at::Tensor &weight) {
  return weight.defined() && weight.sizes() == x.sizes() ? weight.reshape({-1}) : weight;
}

bool histogram_of_edges(Call &call) {  // self, bins, weight?, density, [hist!, bin_edges!]
  const at::Tensor x = line(call.tensor(0)), edges = call.tensor(1),
                   weight = weights_of(call.tensor(0), call.tensor(2));
  if (!has_values(x, weight) || !has_edges(edges, x)) return false;
  return give_two(call, count(x, edges, weight, call.flag(3)), edges.clone(), 4);
}
bool histogram_of_count(Call &call) {  // self, bins, range?, weight?, density, [hist!, bin_edges!]
  const at::Tensor x = line(call.tensor(0)), weight = weights_of(call.tensor(0), call.tensor(3));
  if (!has_values(x, weight)) return false;
  const std::vector<at::Tensor> edges = even_edges(x, call.integers(1), call[2]);
  if (edges.empty()) return false;
  return give_two(call, count(x, edges, weight, call.flag(4)), edges[0], 5);
}

bool dd_edges(Call &call) {  // self, bins, range?, weight?, density
  const at::Tensor x = call.tensor(0);
  if (!has_values(x, call.tensor(3)) || x.dim() < 2) return false;
  const std::vector<at::Tensor> edges = even_edges(x, call.integers(1), call[2]);
  return !edges.empty() && call.give_value(c10::List<at::Tensor>(edges));
}
bool dd_of_counts(Call &call) {  // self, bins, range?, weight?, density
  const at::Tensor x = call.tensor(0), weight = call.tensor(3);
  if (!has_values(x, weight) || x.dim() < 2) return false;
  const std::vector<at::Tensor> edges = even_edges(x, call.integers(1), call[2]);
  return !edges.empty() && call.give(count(x, edges, weight, call.flag(4)));
}
bool dd_of_edges(Call &call) {  // self, bins, weight?, density
  const at::Tensor x = call.tensor(0), weight = call.tensor(2);
  const std::vector<at::Tensor> edges = call.tensors(1);
  if (!has_values(x, weight) || x.dim() < 2 || static_cast<int64_t>(edges.size()) != x.size(-1)) return false;
  for (const at::Tensor &e : edges)
    if (!has_edges(e, x)) return false;
  return call.give(count(x, edges, weight, call.flag(3)));
}

const Single singles[] = {
    {"histogram.bins_tensor", histogram_of_edges},  {"histogram.bins_tensor_out", histogram_of_edges},
    {"histogram.bin_ct", histogram_of_count},       {"histogram.bin_ct_out", histogram_of_count},
    {"_histogramdd_bin_edges", dd_edges},           {"_histogramdd_from_bin_cts", dd_of_counts},
    {"_histogramdd_from_bin_tensors", dd_of_edges},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add(m, singles); }

}  // namespace
}  // namespace rdna_torch
