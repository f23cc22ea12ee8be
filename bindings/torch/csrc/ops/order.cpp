// What sorted values tell: medians, different values, membership, counts.
#include <ATen/Dispatch.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "native.h"
#include "rdna/op/index.h"
#include "rdna/op/movement.h"
#include "rdna/op/pointwise.h"
#include "rdna/op/reduce.h"
#include "rdna/op/sort.h"
#include "read.h"

namespace rdna_torch {
namespace {

at::Tensor lined(const at::Tensor &t) { return t.dim() ? t : t.unsqueeze(0); }

// |dim| of a shape becomes 1, or goes.
std::vector<int64_t> without(const at::Tensor &x, int64_t dim, bool keep) {
  std::vector<int64_t> shape = x.sizes().vec();
  if (shape.empty()) return shape;
  if (keep)
    shape[static_cast<size_t>(dim)] = 1;
  else
    shape.erase(shape.begin() + dim);
  return shape;
}

bool give_two(Call &call, const at::Tensor &values, const at::Tensor &indices, const at::Tensor &v,
              const at::Tensor &i) {
  Output a(values, v.sizes(), v.scalar_type(), v, false), b(indices, i.sizes(), at::kLong, v, false);
  a.get().copy_(v);
  b.get().copy_(i);
  a.finish();
  b.finish();
  return call.give({values, indices});
}

// The lower median of each row along |dim|, and where it is, with size 1 there; no place where |places| is false. A NaN
// is the median of a row that has one, unless they are left out.
std::pair<at::Tensor, at::Tensor> medians(const at::Tensor &x, int64_t dim, bool without_nan, bool places = true) {
  const auto [values, indices] = at::sort(x, /*stable=*/true, dim, /*descending=*/false);
  const int64_t n = x.size(dim), middle = (n - 1) / 2;
  const bool floats = at::isFloatingType(x.scalar_type());
  if (floats && without_nan) {
    const at::Tensor nan = at::isnan(x).sum(at::IntArrayRef{dim}, true);
    const at::Tensor place = at::clamp_min(n - 1 - nan, 0).div(2, "trunc");
    return {values.gather(dim, place), places ? indices.gather(dim, place) : at::Tensor()};
  }
  const at::Tensor v = values.narrow(dim, middle, 1), i = indices.narrow(dim, middle, 1);
  if (!floats) return {v.clone(), places ? i.clone() : at::Tensor()};
  // NaNs are sorted last, and the lesser of a number and a NaN is that; the first of them is the largest to argmax
  const at::Tensor value = at::minimum(v, values.narrow(dim, n - 1, 1));
  return {value, places ? at::where(at::isnan(value), at::argmax(x, dim, true), i) : at::Tensor()};
}

struct MedianRow {
  const char *name;
  bool without_nan;
};

bool median_of_all(const MedianRow &row, Call &call) {  // self
  const at::Tensor x = call.tensor(0);
  if (!describable(x) || x.scalar_type() == at::kBool || x.numel() == 0) return false;
  return call.give(medians(x.reshape({-1}), 0, row.without_nan, false).first.reshape({}));
}
const MedianRow medians_of_all[] = {{"median", false}, {"nanmedian", true}};

bool median(const MedianRow &row, Call &call) {  // self, dim, keepdim, values!, indices!
  const at::Tensor x = call.tensor(0);
  if (!describable(x) || x.scalar_type() == at::kBool || x.numel() == 0) return false;
  const int64_t dim = wrap(call.integer(1), x.dim());
  const auto [v, i] = medians(lined(x), dim, row.without_nan);
  const std::vector<int64_t> shape = without(x, dim, call.flag(2));
  return give_two(call, call.tensor(3), call.tensor(4), v.reshape(shape), i.reshape(shape));
}
const MedianRow medians_along[] = {{"median.dim_values", false}, {"nanmedian.dim_values", true}};

// How long runs are that begin there.
at::Tensor counts_of(const at::Tensor &begins, int64_t n) {
  const at::Tensor ends = at::full({1}, n, begins.options());
  return at::cat({begins, ends}).narrow(0, 1, begins.size(0)) - begins;
}

// The first of each run of equal neighbours in |row|, of rank 1, and what unique() says of it. Undefined where not
// asked.
struct Runs {
  at::Tensor values, places, counts;
};
Runs runs_of(const at::Tensor &row, bool places, bool counts) {
  const int64_t n = row.size(0);
  const at::Tensor first = at::ones({n}, row.options().dtype(at::kBool));
  if (n > 1) first.narrow(0, 1, n - 1).copy_(at::ne(row.narrow(0, 1, n - 1), row.narrow(0, 0, n - 1)));
  const at::Tensor begins = at::nonzero(first).select(1, 0);
  Runs r;
  r.values = row.index_select(0, begins);
  if (places) r.places = first.cumsum(0, at::kLong) - 1;
  if (counts) r.counts = counts_of(begins, n);
  return r;
}

bool different(Call &call, bool inverse, bool counts, bool three) {
  const at::Tensor x = call.tensor(0), none = at::empty({0}, x.options().dtype(at::kLong));
  if (!describable(x)) return false;
  if (x.numel() == 0) {
    const at::Tensor values = at::empty({0}, x.options()),
                     places = at::empty(inverse ? x.sizes() : none.sizes(), none.options());
    if (!three) return call.give({values, places});
    return call.give({values, places, none.clone()});
  }
  const auto [sorted, order] = at::sort(x.reshape({-1}), /*stable=*/true, 0, /*descending=*/false);
  const Runs r = runs_of(sorted, inverse, counts);
  const at::Tensor back = inverse ? at::empty_like(order).scatter_(0, order, r.places).view(x.sizes()) : none;
  if (!three) return call.give({r.values, back});
  return call.give({r.values, back, counts ? r.counts : none});
}
bool unique(Call &call) { return different(call, call.flag(2), false, false); }         // self, sorted, inverse
bool unique2(Call &call) { return different(call, call.flag(2), call.flag(3), true); }  // …, counts

// Slices of |x|, one behind another in memory, as the CPU's result has them.
at::Tensor chosen(const at::Tensor &x, int64_t dim, const at::Tensor &places) {
  return x.movedim(dim, 0).contiguous().index_select(0, places).movedim(0, dim);
}

// Of each column, the number of different values below each value: integers in the order of the values.
at::Tensor ranks(const at::Tensor &columns) {
  const auto [sorted, order] = at::sort(columns, /*stable=*/true, 0, /*descending=*/false);
  const int64_t n = columns.size(0);
  const at::Tensor changes = at::zeros(columns.sizes(), order.options());
  changes.narrow(0, 1, n - 1).copy_(at::ne(sorted.narrow(0, 1, n - 1), sorted.narrow(0, 0, n - 1)));
  return at::empty_like(order).scatter_(0, order, changes.cumsum(0));
}

// Slices are compared value by value. Ranks of two columns together are one number, so that half of the columns are
// left after each step.
bool unique_dim(Call &call) {  // self, dim, sorted, return_inverse, return_counts
  const at::Tensor x = call.tensor(0), none = at::empty({0}, x.options().dtype(at::kLong));
  if (!describable(x) || x.dim() == 0) return false;
  const int64_t dim = wrap(call.integer(1), x.dim()), n = x.size(dim);
  if (x.numel() == 0) {
    if (n != 0 || std::count(x.sizes().begin(), x.sizes().end(), 0) != 1) return false;  // PyTorch has the words
    return call.give({x.clone(), none, none});
  }
  at::Tensor codes = x.movedim(dim, 0).reshape({n, -1});
  if (codes.scalar_type() == at::kBool) codes = codes.to(at::kByte);
  codes = ranks(codes);
  while (codes.size(1) > 1) {
    const int64_t pairs = codes.size(1) / 2;
    const at::Tensor two = codes.narrow(1, 0, 2 * pairs).view({n, pairs, 2});
    const at::Tensor joined = ranks(two.select(2, 0) * n + two.select(2, 1));
    codes = codes.size(1) % 2 ? at::cat({joined, codes.narrow(1, 2 * pairs, 1)}, 1) : joined;
  }
  const at::Tensor rank = codes.select(1, 0).contiguous();
  const auto [sorted, order] = at::sort(rank, /*stable=*/true, 0, /*descending=*/false);
  const Runs r = runs_of(sorted, false, false);
  const at::Tensor begins = at::searchsorted(sorted, r.values);
  return call.give({chosen(x, dim, order.index_select(0, begins)), rank, counts_of(begins, n)});
}

bool consecutive_slices(Call &call, int64_t dim) {
  const at::Tensor x = call.tensor(0), none = at::empty({0}, x.options().dtype(at::kLong));
  dim = wrap(dim, x.dim());
  const int64_t n = x.dim() ? x.size(dim) : 1;
  if (x.dim() && n == 0 && std::count(x.sizes().begin(), x.sizes().end(), 0) == 1)
    return call.give({x.clone(), none, none});
  if (x.numel() == 0 || x.dim() == 0) return false;  // PyTorch has the words
  const at::Tensor rows = x.movedim(dim, 0).reshape({n, -1});
  const at::Tensor first = at::ones({n}, x.options().dtype(at::kBool));
  if (n > 1) first.narrow(0, 1, n - 1).copy_(at::ne(rows.narrow(0, 1, n - 1), rows.narrow(0, 0, n - 1)).any(1));
  const at::Tensor begins = at::nonzero(first).select(1, 0);
  return call.give({chosen(x, dim, begins), first.cumsum(0, at::kLong) - 1, counts_of(begins, n)});
}
bool unique_dim_consecutive(Call &call) {  // self, dim, return_inverse, return_counts
  return describable(call.tensor(0)) && consecutive_slices(call, call.integer(1));
}

bool unique_consecutive(Call &call) {  // self, return_inverse, return_counts, dim?
  const at::Tensor x = call.tensor(0), none = at::empty({0}, x.options().dtype(at::kLong));
  if (!describable(x) || (x.numel() == 0 && !call.none(3) && x.dim() < 2)) return false;
  if (!call.none(3) && x.dim() > 1) return consecutive_slices(call, call.integer(3));
  if (x.numel() == 0)
    return call.give(
        {at::empty({0}, x.options()), at::empty(call.flag(1) ? x.sizes() : none.sizes(), none.options()), none});
  if (!call.none(3)) wrap(call.integer(3), x.dim());
  const Runs r = runs_of(x.reshape({-1}), call.flag(1), call.flag(2));
  return call.give({r.values, call.flag(1) ? r.places.view(x.sizes()) : none, call.flag(2) ? r.counts : none});
}

// The most frequent value of each row along |dim|, the smallest of those, and its last place.
bool mode(Call &call) {  // self, dim, keepdim
  const at::Tensor given = call.tensor(0);
  if (!describable(given)) return false;
  const int64_t dim = wrap(call.integer(1), given.dim());
  if (given.dim() && given.size(dim) == 0) return false;  // PyTorch has the words
  const at::Tensor x = lined(given);
  const std::vector<int64_t> shape = without(given, dim, call.flag(2));
  if (x.numel() == 0) return call.give({at::empty(shape, x.options()), at::empty(shape, x.options().dtype(at::kLong))});
  // of each value how many equal ones are before it in its sorted row; the most are before the last of the longest run
  const at::Tensor rows = x.transpose(dim, -1).contiguous();
  const int64_t n = rows.size(-1);
  const int last = static_cast<int>(x.dim()) - 1;
  std::vector<int64_t> one = rows.sizes().vec();
  one.back() = 1;
  const at::Tensor sorted = make_like(rows), order = make(rows.sizes(), at::kLong, x),
                   run = make(rows.sizes(), at::kLong, x), places = make({n}, at::kLong, x),
                   best = make(one, at::kLong, x), v = make(one, x.scalar_type(), x), i = make(one, at::kLong, x);
  const rdna_tensor from = describe(rows), s = describe(sorted), o = describe(order), r = describe(run),
                    p = describe(places), all = describe(places.expand(rows.sizes())), b = describe(best),
                    to_v = describe(v), to_i = describe(i);
  rdna_stream *stream = stream_of(x);
  check(rdna_op_sort(stream, &from, last, false, &s, &o));
  check(rdna_op_search_sorted(stream, &s, &s, false, &r));
  check(rdna_op_arange(stream, rdna_scalar_integer(0), rdna_scalar_integer(1), &p));
  check(rdna_op_zip(stream, RDNA_ZIP_SUB, &all, &r, {}, {}, &r));
  if (at::isFloatingType(x.scalar_type())) run.masked_fill_(at::isnan(sorted), 0);  // none equals another
  check(rdna_op_reduce(stream, RDNA_REDUCTION_ARGMAX, &r, 1u << last, 0, &b));
  check(rdna_op_gather(stream, &s, last, &b, &to_v, nullptr));
  check(rdna_op_gather(stream, &o, last, &b, &to_i, nullptr));
  return call.give({v.transpose(dim, -1).reshape(shape), i.transpose(dim, -1).reshape(shape)});
}

bool is_in(Call &call) {  // elements, test_elements, assume_unique, invert, out
  at::Tensor x = call.tensor(0), among = call.tensor(1);
  const at::ScalarType type = at::result_type(x, among);
  if (!has_dtype(type) || !describable(x) || !describable(among) || x.device() != among.device()) return false;
  Output out(call.output(), x.sizes(), at::kBool, x, false);
  if (x.numel() == 0) return call.give(out.finish());
  if (among.numel() == 0) {
    out.get().fill_(call.flag(3));
    return call.give(out.finish());
  }
  x = converted(x, type).contiguous();
  among = std::get<0>(at::sort(converted(among, type).reshape({-1})));
  const at::Tensor place = at::clamp_max(at::searchsorted(among, x), among.size(0) - 1);
  const at::Tensor found = at::eq(at::take(among, place), x);
  out.get().copy_(call.flag(3) ? at::logical_not(found) : found);
  return call.give(out.finish());
}

// The least and the largest value, with one wait.
std::pair<at::Scalar, at::Scalar> extremes(const at::Tensor &given) {
  const at::ScalarType type = given.scalar_type();
  const at::Tensor x = type == at::kChar || type == at::kShort ? converted(given, at::kInt) : given;
  const at::Tensor ends = make({2}, x.scalar_type(), x);
  const rdna_tensor from = describe(x), low = describe(ends.select(0, 0)), high = describe(ends.select(0, 1));
  const uint32_t all = (1u << from.rank) - 1;
  check(rdna_op_reduce(stream_of(x), RDNA_REDUCTION_MIN, &from, all, 0, &low));
  check(rdna_op_reduce(stream_of(x), RDNA_REDUCTION_MAX, &from, all, 0, &high));
  return AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "rdna", [&] {
    scalar_t here[2];
    read(ends, here);
    return std::pair<at::Scalar, at::Scalar>(here[0], here[1]);
  });
}

// How often each of |bins| numbers is among |places|, or the sums of what |each| has there: of rank 1, broadcast.
at::Tensor counts_at(const at::Tensor &places, const at::Tensor &each, int64_t bins) {
  const at::Tensor out = make({bins}, each.scalar_type(), places);
  const rdna_tensor to = describe(out), at = describe(places), values = describe(each.expand(places.sizes()));
  check(rdna_op_fill(stream_of(out), rdna_scalar_integer(0), &to));
  if (places.numel()) check(rdna_op_index_copy(stream_of(out), &to, 0, &at, &values, RDNA_SCATTER_ADD, true, nullptr));
  return out;
}
at::Tensor number_on(const at::Tensor &like, at::ScalarType type) {
  const at::Tensor one = make({}, type, like);
  const rdna_tensor to = describe(one);
  check(rdna_op_fill(stream_of(one), rdna_scalar_real(1), &to));
  return one;
}

bool bincount(Call &call) {  // self, weights?, minlength
  const at::Tensor x = call.tensor(0), weights = call.tensor(1);
  const int64_t least = call.integer(2);
  if (!is_integer(x.scalar_type()) || x.scalar_type() == at::kBool || x.dim() != 1 || x.numel() == 0) return false;
  if (weights.defined() && (weights.sizes() != x.sizes() || !has_dtype(weights.scalar_type()))) return false;
  TORCH_CHECK(least >= 0, "minlength should be >= 0");
  const auto [lowest, highest] = extremes(x);
  TORCH_CHECK(lowest.toLong() >= 0, "bincount only supports 1-d non-negative integral inputs.");
  const int64_t size = std::max(least, highest.toLong() + 1);
  const at::ScalarType type = !weights.defined()                    ? at::kLong
                              : weights.scalar_type() == at::kFloat ? at::kFloat
                                                                    : at::kDouble;
  const at::Tensor each = weights.defined() ? converted(weights, type) : number_on(x, type);
  return call.give(counts_at(x.scalar_type() == at::kInt ? x : converted(x, at::kLong), each, size));
}

// Bins of equal width, the last with its end. Of whole numbers in whole numbers, so that no edge is missed by rounding.
bool histc(Call &call) {  // self, bins, min, max, [out!]
  const at::Tensor x = call.tensor(0);
  const int64_t bins = call.integer(1);
  const at::ScalarType type = x.scalar_type();
  const bool real = type == at::kFloat || type == at::kDouble;
  if (!real && (!is_integer(type) || type == at::kBool)) return false;
  TORCH_CHECK(bins > 0, "torch.histc: bins must be > 0, but got ", bins);
  const at::Tensor flat = real ? x.reshape({-1}) : x.reshape({-1}).to(at::kLong);
  at::Scalar low = call.scalar(2), high = call.scalar(3);
  if (!real) low = low.to<int64_t>(), high = high.to<int64_t>();
  const bool all = low.toDouble() == high.toDouble() && x.numel();  // none is outside
  if (all) std::tie(low, high) = extremes(flat);
  const double first = low.toDouble(), last = high.toDouble();
  TORCH_CHECK(std::isfinite(first) && std::isfinite(last), "torch.histc: range of [", first, ", ", last,
              "] is not finite");
  TORCH_CHECK(first <= last, "torch.histc: max must be larger than min");
  if (!real &&
      (std::abs(first) > 0x1p62 || std::abs(last) > 0x1p62 || (last - first) * static_cast<double>(bins) > 0x1p62))
    return false;  // places would not fit 64 bits
  if (first == last && real) low = first - 1, high = last + 1;
  if (first == last && !real) low = low.toLong() - 1, high = high.toLong() + 1;
  const at::Scalar width =
      real ? at::Scalar(high.toDouble() - low.toDouble()) : at::Scalar(high.toLong() - low.toLong());
  const at::Tensor inside =
      all ? number_on(x, at::kLong) : at::logical_and(at::ge(flat, low), at::le(flat, high)).to(at::kLong);
  const at::Tensor widths = make(flat.sizes(), flat.scalar_type(), x),
                   place = real ? make(flat.sizes(), at::kLong, x) : widths;
  const rdna_tensor from = describe(flat), w = describe(widths), p = describe(place);
  rdna_stream *stream = stream_of(x);
  check(rdna_op_zip_scalar(stream, RDNA_ZIP_SUB, &from, scalar_of(low), false, {}, {}, &w));
  check(rdna_op_zip_scalar(stream, RDNA_ZIP_MUL, &w, rdna_scalar_integer(bins), false, {}, {}, &w));
  check(rdna_op_zip_scalar(stream, real ? RDNA_ZIP_DIV : RDNA_ZIP_FLOOR_DIV, &w, scalar_of(width), false, {}, {}, &w));
  if (real) check(rdna_op_copy(stream, &w, &p));
  check(rdna_op_map(stream, RDNA_MAP_CLAMP, &p, rdna_scalar_integer(0), rdna_scalar_integer(bins - 1), &p));
  const at::Tensor counts = counts_at(place, inside, bins);
  TORCH_CHECK(!call.output().defined() || call.output().scalar_type() == type, "torch.histc: out has type ",
              call.output().defined() ? call.output().scalar_type() : type, " and the input ", type);
  Output out(call.output(), {bins}, type, x, false);
  out.get().copy_(counts);
  return call.give(out.finish());
}

bool repeat_interleave(Call &call) {  // repeats, output_size?
  const at::Tensor repeats = call.tensor(0);
  if (repeats.dim() != 1 || (repeats.scalar_type() != at::kLong && repeats.scalar_type() != at::kInt)) return false;
  if (repeats.numel() == 0) return call.give(at::empty_like(repeats));
  TORCH_CHECK(repeats.min().item().toLong() >= 0, "repeats can not be negative");
  const at::Tensor ends = repeats.cumsum(0, at::kLong);
  const int64_t size = call.none(1) ? ends.select(0, -1).item().toLong() : call.integer(1);
  const at::Tensor places = at::arange(size, ends.options());
  return call.give(at::searchsorted(ends, places, false, true).to(repeats.scalar_type()));
}

const Single singles[] = {
    {"_unique", unique},
    {"_unique2", unique2},
    {"unique_consecutive", unique_consecutive},
    {"unique_dim", unique_dim},
    {"unique_dim_consecutive", unique_dim_consecutive},
    {"mode", mode},
    {"isin.Tensor_Tensor_out", is_in},
    {"bincount", bincount},
    {"histc", histc},
    {"histc.out", histc},
    {"repeat_interleave.Tensor", repeat_interleave},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add(m, medians_of_all, median_of_all);
  add(m, medians_along, median);
  add(m, singles);
}

}  // namespace
}  // namespace rdna_torch
