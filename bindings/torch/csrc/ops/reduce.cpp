// Sums, means, extremes and their kin over any dimensions.
#include <ATen/Functions.h>
#include <ATen/WrapDimUtils.h>

#include <cmath>
#include <numeric>

#include "complex.h"
#include "complex_functions.h"
#include "native.h"
#include "rdna/op/reduce.h"
#include "rdna/op/scan.h"

namespace rdna_torch {
namespace {

// The dimensions as bits; none named means all.
uint32_t dims_of(const std::vector<int64_t> &dims, int64_t rank, bool none_is_all = true) {
  if (dims.empty() && none_is_all) return rank ? (1u << rank) - 1 : 0;
  uint32_t bits = 0;
  for (int64_t d : dims) {
    const uint32_t bit = 1u << wrap(d, rank);
    TORCH_CHECK(!(bits & bit), "dim ", wrap(d, rank), " appears multiple times in the list of dims");
    bits |= bit;
  }
  return rank ? bits : 0;
}

std::vector<int64_t> reduced_shape(const at::Tensor &x, uint32_t dims, bool keep) {
  std::vector<int64_t> shape;
  for (int64_t d = 0; d < x.dim(); d++)
    if (!(dims >> d & 1))
      shape.push_back(x.size(d));
    else if (keep)
      shape.push_back(1);
  return shape;
}

// Types that rdna_op_reduce reads; the others of librdna are widened first.
at::Tensor readable(const at::Tensor &x) {
  const at::ScalarType t = x.scalar_type();
  return t == at::kChar || t == at::kShort ? converted(x, at::kInt) : x;
}

// out = reduction of x over |dims|, in |type|.
bool reduce(Call &call, rdna_reduction op, const at::Tensor &x, uint32_t dims, bool keep, at::ScalarType type,
            double parameter = 0) {
  if (!describable(x)) return false;
  const at::Tensor in = readable(x);
  at::ScalarType direct = type;  // what librdna writes
  const bool narrow = (op == RDNA_REDUCTION_MIN || op == RDNA_REDUCTION_MAX) && !in.is_same(x);
  if (narrow) direct = in.scalar_type();
  Output out(call.output(), reduced_shape(x, dims, keep), type, x);
  if (out.get().numel() == 0) return call.give(out.finish());
  const at::Tensor work = direct == type ? out.get() : make(out.get().sizes(), direct, x);
  const rdna_tensor from = describe(in), to = describe(work);
  check(rdna_op_reduce(stream_of(x), op, &from, dims, parameter, &to));
  if (!work.is_same(out.get())) copy_values(work, out.get());
  return call.give(out.finish());
}

struct Row {
  const char *name;
  rdna_reduction op;
};

bool give_complex(Call &call, const at::Tensor &value) {
  return give_or_write(call, call.output().defined() ? value : apart(value, call.tensor(0)));
}

// Those of complex numbers are those of their parts.
bool complex_sum(const Row &row, Call &call, at::ScalarType type) {
  const at::Tensor x = call.tensor(0);
  if (!is_complex(type) || x.dim() + 1 > RDNA_MAX_RANK) return false;
  std::vector<int64_t> dims;
  const uint32_t bits = dims_of(call.integers(1), x.dim());
  for (int64_t d = 0; d < x.dim(); d++)
    if (bits >> d & 1) dims.push_back(d);
  const at::Tensor parts = at::view_as_real(x.to(type).resolve_conj());
  if (dims.empty()) return give_complex(call, x.to(type));
  const at::Tensor value =
      row.op == RDNA_REDUCTION_MEAN ? at::mean(parts, dims, call.flag(2)) : at::sum(parts, dims, call.flag(2));
  return give_complex(call, at::view_as_complex(value.contiguous()));
}

// The type of a sum or product: what argument |asked| says, out= has, or holds sums of |x|.
at::ScalarType type_of_sum(const Call &call, size_t asked, const at::Tensor &x) {
  const at::Tensor given = call.output();
  return call.type(asked)                            ? *call.type(asked)
         : given.defined()                           ? given.scalar_type()
         : at::isIntegralType(x.scalar_type(), true) ? at::kLong
                                                     : x.scalar_type();
}

// |value|, of the widest integers, in a narrower type.
bool give_narrowed(Call &call, const at::Tensor &value, at::ScalarType type) {
  Output out(call.output(), value.sizes(), type, value, false);
  out.get().copy_(value);
  return call.give(out.finish());
}

// self, dim?, keepdim, dtype?
bool sum(const Row &row, Call &call) {
  at::Tensor x = call.tensor(0);
  const bool integral = at::isIntegralType(x.scalar_type(), true);
  const at::ScalarType type = type_of_sum(call, 3, x);
  if (is_complex(type)) return complex_sum(row, call, type);
  if (!has_dtype(type) || !describable(x)) return false;
  if (row.op == RDNA_REDUCTION_MEAN && !is_real(type)) return false;
  const uint32_t dims = dims_of(call.integers(1), x.dim());
  if (integral && is_integer(type)) {
    if (type != at::kLong) return give_narrowed(call, at::sum(x, call.integers(1), call.flag(2), at::kLong), type);
    return reduce(call, row.op, x, dims, call.flag(2), at::kLong);
  }
  if (!is_real(type)) return false;
  if (integral || type == at::kDouble || x.scalar_type() == at::kDouble ||
      (type != at::kFloat && type != x.scalar_type()))
    x = converted(x, type);
  return reduce(call, row.op, x, dims, call.flag(2), type);
}
const Row sums[] = {{"sum.IntList_out", RDNA_REDUCTION_SUM}, {"mean.out", RDNA_REDUCTION_MEAN}};

// By halves of the dimension.
at::Tensor complex_product(at::Tensor x, int64_t dim) {
  if (x.size(dim) == 0) {
    std::vector<int64_t> shape = x.sizes().vec();
    shape[static_cast<size_t>(dim)] = 1;
    return at::ones(shape, x.options());
  }
  while (x.size(dim) > 1) {
    const int64_t n = x.size(dim), half = n / 2;
    at::Tensor next = at::mul(x.narrow(dim, 0, half), x.narrow(dim, half, half));
    if (n % 2) next.narrow(dim, 0, 1).mul_(x.narrow(dim, n - 1, 1));
    x = next;
  }
  return x;
}

bool prod_dim(Call &call) {  // self, dim, keepdim, dtype?
  at::Tensor x = call.tensor(0);
  const at::ScalarType type = type_of_sum(call, 3, x);
  if (is_complex(type)) {
    const int64_t dim = wrap(call.integer(1), x.dim());
    const at::Tensor value = x.dim() ? complex_product(x.to(type), dim) : x.to(type);
    return give_complex(call, call.flag(2) || !x.dim() ? value : value.squeeze(dim));
  }
  if (!describable(x)) return false;
  const uint32_t dims = dims_of({call.integer(1)}, x.dim());
  if (at::isIntegralType(x.scalar_type(), true) && type == at::kLong)
    return reduce(call, RDNA_REDUCTION_PROD, x, dims, call.flag(2), type);
  if (at::isIntegralType(x.scalar_type(), true) && is_integer(type))
    return give_narrowed(call, at::prod(x, call.integer(1), call.flag(2), at::kLong), type);
  if (!is_real(type)) return false;
  return reduce(call, RDNA_REDUCTION_PROD, converted(x, type), dims, call.flag(2), type);
}
bool prod(Call &call) {  // self, dtype?
  at::Tensor x = call.tensor(0);
  const at::ScalarType type = type_of_sum(call, 1, x);
  if (is_complex(type)) return call.give(complex_product(x.to(type).reshape({-1}), 0).reshape({}).clone());
  if (!describable(x)) return false;
  const uint32_t dims = dims_of({}, x.dim());
  if (at::isIntegralType(x.scalar_type(), true) && type == at::kLong)
    return reduce(call, RDNA_REDUCTION_PROD, x, dims, false, type);
  if (at::isIntegralType(x.scalar_type(), true) && is_integer(type))
    return give_narrowed(call, at::prod(x, at::kLong), type);
  if (!is_real(type)) return false;
  return reduce(call, RDNA_REDUCTION_PROD, converted(x, type), dims, false, type);
}

// The values, without where they are. self, dim, keepdim
bool extreme(const Row &row, Call &call) {
  const at::Tensor x = call.tensor(0);
  const uint32_t dims = dims_of(call.integers(1), x.dim());
  if (x.numel() == 0) {  // PyTorch has the sentences for what has no extreme
    const std::vector<int64_t> shape = reduced_shape(x, dims, call.flag(2));
    const at::Tensor given = call.output();
    if (!describable(x) || c10::multiply_integers(shape) != 0 ||
        (given.defined() && given.scalar_type() != x.scalar_type()))
      return false;
    return call.give(Output(given, shape, x.scalar_type(), x, false).finish());
  }
  return reduce(call, row.op, x, dims, call.flag(2), x.scalar_type());
}
const Row extremes[] = {{"amin.out", RDNA_REDUCTION_MIN}, {"amax.out", RDNA_REDUCTION_MAX}};

bool extreme_of_all(const Row &row, Call &call) {  // self
  const at::Tensor x = call.tensor(0);
  if (x.numel() == 0) return false;
  return reduce(call, row.op, x, dims_of({}, x.dim()), false, x.scalar_type());
}
const Row whole_extremes[] = {{"max", RDNA_REDUCTION_MAX}, {"min", RDNA_REDUCTION_MIN}};

bool arg(const Row &row, Call &call) {  // self, dim?, keepdim
  const at::Tensor x = call.tensor(0);
  if (!describable(x) || x.scalar_type() == at::kBool) return false;
  const bool whole = call.none(1);
  if (x.numel() == 0 && (whole || x.size(wrap(call.integer(1), x.dim())) == 0)) return false;  // as for amax
  // over all dimensions the count goes through the tensor as it is shaped, and the result keeps no dimension
  const uint32_t dims = whole ? dims_of({}, x.dim()) : dims_of({call.integer(1)}, x.dim());
  return reduce(call, row.op, x, dims, call.flag(2), at::kLong);
}
const Row args[] = {{"argmin.out", RDNA_REDUCTION_ARGMIN}, {"argmax.out", RDNA_REDUCTION_ARGMAX}};

// The values and where they are. self, dim, keepdim, values!, indices!
bool extreme_with_index(const Row &row, Call &call) {
  const at::Tensor x = call.tensor(0), values = call.tensor(3), indices = call.tensor(4);
  if (!describable(x) || indices.scalar_type() != at::kLong) return false;
  if (x.numel() == 0) {  // PyTorch has the sentence for what has no extreme
    if (values.scalar_type() != x.scalar_type() || x.size(wrap(call.integer(1), x.dim())) == 0) return false;
    const std::vector<int64_t> shape = reduced_shape(x, dims_of({call.integer(1)}, x.dim()), call.flag(2));
    Output v(values, shape, x.scalar_type(), x, false), i(indices, shape, at::kLong, x, false);
    return call.give({v.finish(), i.finish()});
  }
  if (x.scalar_type() == at::kBool) {
    const at::Tensor whole = x.to(at::kByte);
    const int64_t dim = call.integer(1);
    const auto [v, i] =
        row.op == RDNA_REDUCTION_ARGMAX ? at::max(whole, dim, call.flag(2)) : at::min(whole, dim, call.flag(2));
    Output a(values, v.sizes(), at::kBool, x, false), b(indices, i.sizes(), at::kLong, x, false);
    a.get().copy_(v);
    b.get().copy_(i);
    return call.give({a.finish(), b.finish()});
  }
  const uint32_t dims = dims_of({call.integer(1)}, x.dim());
  const at::Tensor in = readable(x);
  const std::vector<int64_t> shape = reduced_shape(x, dims, call.flag(2));
  Output v(values, shape, x.scalar_type(), x), i(indices, shape, at::kLong, x);
  const at::Tensor work = in.is_same(x) ? v.get() : make(shape, in.scalar_type(), x);
  const rdna_tensor from = describe(in), to = describe(work), at = describe(i.get());
  check(rdna_op_reduce(stream_of(x), row.op == RDNA_REDUCTION_ARGMAX ? RDNA_REDUCTION_MAX : RDNA_REDUCTION_MIN, &from,
                       dims, 0, &to));
  check(rdna_op_reduce(stream_of(x), row.op, &from, dims, 0, &at));
  if (!work.is_same(v.get())) copy_values(work, v.get());
  v.finish();
  i.finish();
  return call.give({values, indices});
}
const Row indexed[] = {{"max.dim_max", RDNA_REDUCTION_ARGMAX}, {"min.dim_min", RDNA_REDUCTION_ARGMIN}};

struct TestRow {
  const char *name;
  rdna_reduction op;
  enum { kAll, kOne, kSome } dims;
};

// any and all: of everything; of one dimension (self, dim, keepdim); of some
bool test(const TestRow &row, Call &call) {
  at::Tensor x = call.tensor(0);
  if (is_complex(x.scalar_type())) x = at::ne(x, 0);
  if (!describable(x)) return false;
  const at::Tensor given = call.output();
  // of u8 the answer is u8
  const bool bytes = x.scalar_type() == at::kByte && (!given.defined() || given.scalar_type() == at::kByte);
  if (!bytes && given.defined() && given.scalar_type() != at::kBool) return false;
  if (bytes) {
    const bool any = row.op == RDNA_REDUCTION_ANY, keep = row.dims != TestRow::kAll && call.flag(2);
    std::vector<int64_t> dims;
    if (row.dims != TestRow::kAll && !call.none(1)) dims = call.integers(1);
    const bool none = row.dims == TestRow::kAll || call.none(1);
    const at::OptionalIntArrayRef some = none ? at::OptionalIntArrayRef() : at::OptionalIntArrayRef(dims);
    const at::Tensor b = at::ne(x, 0);
    return give_narrowed(call, any ? at::any(b, some, keep) : at::all(b, some, keep), at::kByte);
  }
  // a NaN is not zero, which librdna's own answer about floats does not say
  if (at::isFloatingType(x.scalar_type())) x = converted(x, at::kBool);
  const uint32_t dims = row.dims == TestRow::kAll ? dims_of({}, x.dim()) : dims_of(call.integers(1), x.dim());
  return reduce(call, row.op, x, dims, row.dims != TestRow::kAll && call.flag(2), at::kBool);
}
const TestRow tests[] = {
    {"any.all_out", RDNA_REDUCTION_ANY, TestRow::kAll},   {"all.all_out", RDNA_REDUCTION_ALL, TestRow::kAll},
    {"any.out", RDNA_REDUCTION_ANY, TestRow::kOne},       {"all.out", RDNA_REDUCTION_ALL, TestRow::kOne},
    {"any.dims_out", RDNA_REDUCTION_ANY, TestRow::kSome}, {"all.dims_out", RDNA_REDUCTION_ALL, TestRow::kSome},
};

bool norm(Call &call) {  // self, ord, dim?, keepdim, dtype?
  at::Tensor x = call.tensor(0);
  const at::Tensor given = call.output();
  const double p = call.scalar(1).isComplex() ? NAN : call.real(1);
  if (is_complex(x.scalar_type())) x = measured(RDNA_COMPLEX_ABS, x);
  const at::ScalarType type = at::toRealValueType(call.type(4) ? *call.type(4) : x.scalar_type());
  if (std::isnan(p) || !is_real(x.scalar_type()) || !is_real(type) ||
      (given.defined() && !is_real(given.scalar_type())))
    return false;
  if (x.numel() == 0) {
    if (!(p >= 0) || std::isinf(p)) return false;  // PyTorch has the sentences for what has no extreme
    Output out(given, reduced_shape(x, dims_of(call.integers(2), x.dim()), call.flag(3)), type, x, false);
    out.get().zero_();
    return call.give(out.finish());
  }
  const at::ScalarType computed = type == at::kDouble || x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  if (p < 0) {
    const at::Tensor a = at::abs(x.to(computed));
    const std::vector<int64_t> dims = call.integers(2);
    const at::Tensor n =
        std::isinf(p) ? at::amin(a, dims, call.flag(3)) : at::pow(at::sum(at::pow(a, p), dims, call.flag(3)), 1 / p);
    Output out(given, n.sizes(), type, x, false);
    out.get().copy_(n);
    return call.give(out.finish());
  }
  if (computed == at::kDouble || (type != at::kFloat && type != x.scalar_type())) x = converted(x, type);
  const uint32_t dims = dims_of(call.integers(2), x.dim());
  return reduce(call, RDNA_REDUCTION_NORM, x, dims, call.flag(3), type, p);
}

// self, dim?, correction?, keepdim
bool spread(Call &call, rdna_reduction op) {
  const at::Tensor x = call.tensor(0);
  if (is_complex(x.scalar_type()) && x.dim() < RDNA_MAX_RANK) {
    const at::Tensor parts = at::view_as_real(x.resolve_conj());
    std::vector<int64_t> dims = call.integers(1);
    if (dims.empty()) {
      dims.resize(static_cast<size_t>(x.dim()));
      std::iota(dims.begin(), dims.end(), 0);
    }
    auto of = [&](int64_t part) {
      return at::var(parts.select(-1, part), dims, call.none(2) ? at::Scalar(1) : call.scalar(2), call.flag(3));
    };
    for (int64_t &d : dims) d = wrap(d, x.dim());
    const at::Tensor value = at::add(of(0), of(1));
    return give_complex(call, op == RDNA_REDUCTION_STD ? at::sqrt(value) : value);
  }
  if (!is_real(x.scalar_type())) return false;
  const uint32_t dims = dims_of(call.integers(1), x.dim());
  if (x.numel() == 0) {  // of nothing: not a number
    Output out(call.output(), reduced_shape(x, dims, call.flag(3)), x.scalar_type(), x, false);
    out.get().fill_(NAN);
    return call.give(out.finish());
  }
  return reduce(call, op, x, dims, call.flag(3), x.scalar_type(), call.none(2) ? 1 : call.real(2));
}
bool var(Call &call) { return spread(call, RDNA_REDUCTION_VAR); }
bool std_(Call &call) { return spread(call, RDNA_REDUCTION_STD); }

bool spread_and_mean(Call &call, rdna_reduction op) {  // self, dim?, correction?, keepdim
  const at::Tensor x = call.tensor(0);
  if (is_complex(x.scalar_type())) {
    const std::vector<int64_t> some = call.integers(1);
    const at::OptionalIntArrayRef dims = call.none(1) ? at::OptionalIntArrayRef() : at::OptionalIntArrayRef(some);
    const auto correction = call.none(2) ? std::nullopt : std::make_optional(call.scalar(2));
    const at::Tensor v = op == RDNA_REDUCTION_VAR ? at::var(x, dims, correction, call.flag(3))
                                                  : at::std(x, dims, correction, call.flag(3));
    return call.give({v, at::mean(x, dims, call.flag(3))});
  }
  if (!is_real(x.scalar_type()) || !describable(x)) return false;
  const uint32_t dims = dims_of(call.integers(1), x.dim());
  const std::vector<int64_t> shape = reduced_shape(x, dims, call.flag(3));
  const at::Tensor v = make(shape, x.scalar_type(), x), m = make(shape, x.scalar_type(), x);
  if (x.numel() == 0) return call.give({v.fill_(NAN), m.fill_(NAN)});
  const rdna_tensor from = describe(x), a = describe(v), b = describe(m);
  check(rdna_op_reduce(stream_of(x), op, &from, dims, call.none(2) ? 1 : call.real(2), &a));
  check(rdna_op_reduce(stream_of(x), RDNA_REDUCTION_MEAN, &from, dims, 0, &b));
  return call.give({v, m});
}
bool var_mean(Call &call) { return spread_and_mean(call, RDNA_REDUCTION_VAR); }
bool std_mean(Call &call) { return spread_and_mean(call, RDNA_REDUCTION_STD); }

struct ScanRow {
  const char *name;
  rdna_status (*op)(rdna_stream *, const rdna_tensor *, int, const rdna_tensor *);
};

at::Tensor multiplied(const at::Tensor &a, const at::Tensor &b) { return at::mul(a, b); }

bool scan(const ScanRow &row, Call &call) {  // self, dim, dtype?
  const at::Tensor x = call.tensor(0);
  const at::ScalarType type = type_of_sum(call, 2, x);
  if (is_complex(type) && row.op == rdna_op_cumsum && x.dim() && x.dim() < RDNA_MAX_RANK) {
    const at::Tensor parts = at::view_as_real(x.to(type).resolve_conj());
    return give_complex(call, at::view_as_complex(at::cumsum(parts, wrap(call.integer(1), x.dim())).contiguous()));
  }
  if (is_complex(type) && (row.op == rdna_op_cumprod || x.dim() == 0))
    return give_or_write(call, scanned(x.to(type), wrap(call.integer(1), x.dim()), multiplied));
  if (type == at::kChar || type == at::kShort || type == at::kByte)
    return give_narrowed(call,
                         row.op == rdna_op_cumsum ? at::cumsum(x, call.integer(1), at::kLong)
                                                  : at::cumprod(x, call.integer(1), at::kLong),
                         type);
  if (!describable(x) || !(is_real(type) || type == at::kInt || type == at::kLong)) return false;
  const int64_t dim = wrap(call.integer(1), x.dim());
  Output out(call.output(), x.sizes(), type, x);
  if (x.numel() == 0) return call.give(out.finish());
  const at::Tensor in = converted(x, type).contiguous();
  if (x.dim() == 0) {
    out.get().copy_(in);
    return call.give(out.finish());
  }
  const rdna_tensor from = describe(in), to = describe(out.get());
  check(row.op(stream_of(x), &from, static_cast<int>(dim), &to));
  return call.give(out.finish());
}
const ScanRow scans[] = {{"cumsum.out", rdna_op_cumsum}, {"cumprod.out", rdna_op_cumprod}};

struct ExtremeScanRow {
  const char *name;
  rdna_status (*op)(rdna_stream *, const rdna_tensor *, int, const rdna_tensor *, const rdna_tensor *);
};

bool extreme_scan(const ExtremeScanRow &row, Call &call) {  // self, values!, indices!, dim
  const at::Tensor x = call.tensor(0), values = call.tensor(1), indices = call.tensor(2);
  if (!describable(x) || values.scalar_type() != x.scalar_type() || indices.scalar_type() != at::kLong) return false;
  const int64_t dim = wrap(call.integer(3), x.dim());
  Output v(values, x.sizes(), x.scalar_type(), x), i(indices, x.sizes(), at::kLong, x);
  if (x.dim() == 0) {
    v.get().copy_(x);
    i.get().zero_();
  } else if (x.numel()) {
    const at::Tensor in = x.contiguous();
    const rdna_tensor from = describe(in), to = describe(v.get()), at = describe(i.get());
    check(row.op(stream_of(x), &from, static_cast<int>(dim), &to, &at));
  }
  v.finish();
  i.finish();
  return call.give_nothing();
}
const ExtremeScanRow extreme_scans[] = {{"_cummax_helper", rdna_op_cummax_indices},
                                        {"_cummin_helper", rdna_op_cummin_indices}};

bool log_sum(Call &call) {  // self, dim, [out]
  const at::Tensor x = call.tensor(0);
  if (is_complex(x.scalar_type()))
    return give_or_write(call, scanned(x, wrap(call.integer(1), x.dim()), complex_logaddexp));
  if (x.scalar_type() == at::kDouble)
    return give_or_write(call, scanned(x, wrap(call.integer(1), x.dim()), at::logaddexp));
  if (!describable(x) || !is_float(x.scalar_type())) return false;
  const int64_t dim = wrap(call.integer(1), x.dim());
  Output out(call.output(), x.sizes(), x.scalar_type(), x);
  if (x.dim() == 0) {
    out.get().copy_(x);
  } else if (x.numel()) {
    const at::Tensor in = x.contiguous();
    const rdna_tensor from = describe(in), to = describe(out.get());
    check(rdna_op_logcumsumexp(stream_of(x), &from, static_cast<int>(dim), &to));
  }
  return call.give(out.finish());
}

const Single singles[] = {
    {"_logcumsumexp", log_sum},        {"_logcumsumexp.out", log_sum},
    {"prod.int_out", prod_dim},        {"prod", prod},
    {"linalg_vector_norm.out", norm},  {"var.correction", var},
    {"std.correction", std_},          {"var_mean.correction", var_mean},
    {"std_mean.correction", std_mean},
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  add_new_forms(m, sums, sum);
  add_new_forms(m, extremes, extreme);
  add_new_forms(m, whole_extremes, extreme_of_all);
  add_new_forms(m, args, arg);
  add_new_forms(m, indexed, extreme_with_index);
  add_new_forms(m, tests, test);
  add_new_forms(m, scans, scan);
  add_new_forms(m, extreme_scans, extreme_scan);
  add_new_forms(m, singles);
}

}  // namespace
}  // namespace rdna_torch
