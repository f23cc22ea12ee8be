// Recurrent networks over whole sequences, padded or packed: LSTM, with projections or without, GRU, and the plain ones
// of tanh and of the rectifier, as one node of autograd for each layer and direction.
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gru.h>
#include <ATen/ops/gru_native.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/rnn_relu.h>
#include <ATen/ops/rnn_relu_native.h>
#include <ATen/ops/rnn_tanh.h>
#include <ATen/ops/rnn_tanh_native.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "native.h"
#include "rdna/op/gemm.h"
#include "rdna/op/pointwise.h"
#include "rdna/op/recurrent.h"
#include "rows.h"

namespace rdna_torch {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

using Two = std::tuple<at::Tensor, at::Tensor>;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
// The networks as PyTorch declares them: input, states, weights, has_biases, layers, dropout, train, bidirectional,
// batch_first; packed, the sizes of batches come second, and there is no batch_first.
using OneState = Two(const at::Tensor &, const at::Tensor &, at::TensorList, bool, int64_t, double, bool, bool, bool);
using OneStatePacked = Two(const at::Tensor &, const at::Tensor &, const at::Tensor &, at::TensorList, bool, int64_t,
                           double, bool, bool);
using TwoStates = Three(const at::Tensor &, at::TensorList, at::TensorList, bool, int64_t, double, bool, bool, bool);
using TwoStatesPacked = Three(const at::Tensor &, const at::Tensor &, at::TensorList, at::TensorList, bool, int64_t,
                              double, bool, bool);

enum Kind : int64_t { kLstm, kGru, kTanh, kRelu };
int64_t parts_of(Kind kind) { return kind == kLstm ? 4 : kind == kGru ? 3 : 1; }
bool plain(Kind kind) { return kind == kTanh || kind == kRelu; }
rdna_activation activation_of(Kind kind) { return kind == kTanh ? RDNA_ACTIVATION_TANH : RDNA_ACTIVATION_RELU; }

// Which rows of (tokens, …) a step has. In a packed batch the longest sequences come first, so that those which go on
// are always the first rows of a step.
//
//     lengths 3 2 2    step 0 | a b c |   step 1 | a b c |   step 2 | a |     rows 3 3 1, tokens 7
class Steps {
 public:
  explicit Steps(std::vector<int64_t> rows) : rows_(std::move(rows)), begin_{0} {
    for (const int64_t r : rows_) begin_.push_back(begin_.back() + r);
  }
  int64_t count() const { return static_cast<int64_t>(rows_.size()); }
  int64_t tokens() const { return begin_.back(); }
  int64_t most() const { return rows_.front(); }
  bool packed() const { return rows_.back() != rows_.front(); }
  int64_t rows(int64_t t) const { return rows_[static_cast<size_t>(t)]; }
  int64_t begin(int64_t t) const { return begin_[static_cast<size_t>(t)]; }
  Rows of(const at::Tensor &t, int64_t step) const { return {t, begin(step), rows(step)}; }
  const std::vector<int64_t> &all() const { return rows_; }
  // Where each begins, and the last ends, on a device: copied there once.
  at::Tensor begins(at::Device device) const {
    if (!begins_.defined()) {
      const at::Tensor made = at::empty({count() + 1}, at::kInt);
      std::copy(begin_.begin(), begin_.end(), made.mutable_data_ptr<int32_t>());
      begins_ = made.to(device);
    }
    return begins_;
  }

 private:
  std::vector<int64_t> rows_, begin_;
  mutable at::Tensor begins_;
};

// The steps in the order of one direction.
struct Walk {
  const Steps &steps;
  bool reverse;

  int64_t at(int64_t i) const { return reverse ? steps.count() - 1 - i : i; }
  int64_t last() const { return at(steps.count() - 1); }
  // The state before step t: what the step before it left, and |first| of rows that begin here. |joined| holds both
  // where they had to be put together.
  Rows before(int64_t t, const at::Tensor &first, const at::Tensor &made, at::Tensor &joined) const {
    const int64_t from = reverse ? t + 1 : t - 1, rows = steps.rows(t);
    if (from < 0 || from == steps.count()) return {first, 0, rows};
    const int64_t there = steps.rows(from);
    if (there >= rows) return {made, steps.begin(from), rows};
    joined = at::cat({made.narrow(0, steps.begin(from), there), first.narrow(0, there, rows - there)});
    return {joined, 0, rows};
  }
  // The states before all tokens.
  at::Tensor befores(const at::Tensor &first, const at::Tensor &made) const {
    const int64_t rows = steps.most(), tokens = steps.tokens();
    if (!steps.packed())
      return reverse ? at::cat({made.narrow(0, rows, tokens - rows), first})
                     : at::cat({first, made.narrow(0, 0, tokens - rows)});
    const at::Tensor index = at::empty({tokens}, at::kLong);  // into first and made, one behind the other
    int64_t *to = index.mutable_data_ptr<int64_t>();
    for (int64_t t = 0; t < steps.count(); t++) {
      const int64_t from = reverse ? t + 1 : t - 1;
      const int64_t there = from < 0 || from == steps.count() ? 0 : steps.rows(from);
      for (int64_t row = 0; row < steps.rows(t); row++) *to++ = row < there ? rows + steps.begin(from) + row : row;
    }
    return at::index_select(at::cat({first, made}), 0, index.to(first.device()));
  }
  // The last state of each sequence.
  at::Tensor ends(const at::Tensor &made) const {
    if (reverse || !steps.packed()) return made.narrow(0, steps.begin(last()), steps.most()).clone();
    std::vector<at::Tensor> pieces;
    for (int64_t t = steps.count() - 1, rows = 0; t >= 0; rows = steps.rows(t--))
      if (steps.rows(t) > rows) pieces.push_back(made.narrow(0, steps.begin(t) + rows, steps.rows(t) - rows));
    return at::cat(pieces);
  }
};

// c = a b + beta c
void multiply(rdna_stream *stream, const rdna_tensor *a, const rdna_tensor &b, float beta, const rdna_tensor *c) {
  check(rdna_op_gemm(stream, 1, a, &b, beta, nullptr, c));
}

// h_out = activation(h w + h_out)
void plain_step(rdna_stream *stream, Kind kind, const rdna_tensor *h, const rdna_tensor &w, const rdna_tensor *h_out) {
  if (h_out->dtype == RDNA_F64) {  // products of f64 apply no functions
    multiply(stream, h, w, 1, h_out);
    check(rdna_op_map(stream, kind == kTanh ? RDNA_MAP_TANH : RDNA_MAP_RELU, h_out, rdna_scalar_real(0),
                      rdna_scalar_real(0), h_out));
    return;
  }
  rdna_gemm_epilogue epilogue{RDNA_GEMM_EPILOGUE_INIT};
  epilogue.alpha = epilogue.beta = 1;
  epilogue.activation = activation_of(kind);
  check(rdna_op_gemm_epilogue(stream, &epilogue, h, &w, h_out));
}

at::Tensor transposed(const at::Tensor &w) { return dense_rows(w).t(); }

at::Tensor contiguous(const at::Tensor &t) { return t.defined() ? t.contiguous() : t; }

// A layer whose steps are one call.
class Whole {
 public:
  Whole(Kind kind, const Walk &walk, const at::Tensor &w_hh, const at::Tensor &bias, const at::Tensor &h,
        const at::Tensor &c)
      : weight_(w_hh.contiguous()),
        bias_(contiguous(kind == kGru ? bias : at::Tensor())),
        h_(h.contiguous()),
        c_(contiguous(c)),
        begin_(walk.steps.packed() ? walk.steps.begins(h.device()) : at::Tensor()),
        reads_{Operand(weight_), Operand(bias_), Operand(h_), Operand(c_), Operand(begin_)} {
    options_.size = sizeof options_;
    options_.cell = cells[kind];
    options_.reverse = walk.reverse;
    options_.weight = reads_[0];
    options_.bias = reads_[1];
    options_.h = reads_[2];
    options_.c = reads_[3];
    options_.begin = reads_[4];
  }
  Whole(const Whole &) = delete;
  Whole &operator=(const Whole &) = delete;

  static bool fits(Kind kind, int64_t rows, int64_t n, const at::Tensor &x, const at::Tensor &w_hr) {
    return is_float(x.scalar_type()) && !w_hr.defined() &&
           rdna_recurrent_layer_pays(cells[kind], *dtype_of(x.scalar_type()), rows, n);
  }
  operator const rdna_recurrent_layer *() const { return &options_; }

 private:
  static constexpr rdna_cell cells[] = {RDNA_CELL_LSTM, RDNA_CELL_GRU, RDNA_CELL_TANH, RDNA_CELL_RELU};
  const at::Tensor weight_, bias_, h_, c_, begin_;
  const Operand reads_[5];
  rdna_recurrent_layer options_{};
};

// One layer in one direction, whose steps are one call where that pays. All steps' products with the inputs are
// one product before the first step, and the gradients of the weights one product each after the last: a step is the
// product with the state, and the cell.
//
//     x (tokens, inputs)  -- W_ih --> gates (tokens, parts n), which the steps turn into what they keep
//                                       + W_hh h  --> cell --> out[t], cells[t]
//                                                         with projections: raw[t] -- W_hr --> out[t]
class RecurrentLayer : public torch::autograd::Function<RecurrentLayer> {
  enum Saved { kX, kH, kWih, kWhh, kC, kBih, kBhh, kWhr, kInputs, kOut = kInputs, kCells, kGates, kInner, kRaw };

 public:
  // c of an LSTM alone, both biases or neither. Gives out, the last h, and an LSTM's last c.
  static variable_list forward(AutogradContext *ctx, int64_t of_kind, const at::Tensor &x, const at::Tensor &h,
                               const at::Tensor &w_ih, const at::Tensor &w_hh, const std::optional<at::Tensor> &c,
                               const std::optional<at::Tensor> &b_ih, const std::optional<at::Tensor> &b_hh,
                               const std::optional<at::Tensor> &w_hr, const Steps &steps, bool reverse) {
    at::AutoDispatchBelowADInplaceOrView below;
    const Kind kind = static_cast<Kind>(of_kind);
    const Walk walk{steps, reverse};
    const at::ScalarType type = x.scalar_type();
    const int64_t tokens = steps.tokens(), wide = w_hh.size(0), n = wide / parts_of(kind);
    const at::Tensor gates = !b_ih          ? at::mm(x, w_ih.t())
                             : kind == kGru ? at::addmm(*b_ih, x, w_ih.t())
                                            : at::addmm(*b_ih + *b_hh, x, w_ih.t());
    const at::Tensor out = plain(kind) ? gates : make({tokens, h.size(1)}, type, x);
    at::Tensor raw, cells, inner;
    if (w_hr) raw = make({tokens, n}, type, x);
    if (kind == kLstm) cells = make({tokens, n}, type, x);
    if (kind == kGru) inner = make({tokens, n}, type, x);
    const variable_list all = {x,
                               h,
                               w_ih,
                               w_hh,
                               c.value_or(at::Tensor()),
                               b_ih.value_or(at::Tensor()),
                               b_hh.value_or(at::Tensor()),
                               w_hr.value_or(at::Tensor()),
                               out,
                               cells,
                               plain(kind) ? at::Tensor() : gates,
                               inner,
                               raw};
    if (Whole::fits(kind, steps.most(), n, x, raw))
      check(rdna_op_recurrent_layer(stream_of(x), Whole(kind, walk, w_hh, all[kBhh], h, all[kC]), Operand(all[kGates]),
                                    Operand(out), Operand(cells), Operand(inner)));
    else
      steps_forward(kind, walk, all);
    ctx->save_for_backward(all);
    ctx->saved_data["kind"] = of_kind;
    ctx->saved_data["rows"] = steps.all();
    ctx->saved_data["reverse"] = reverse;
    variable_list results = {out, walk.ends(out)};
    if (kind == kLstm) results.push_back(walk.ends(cells));
    return results;
  }

  static variable_list backward(AutogradContext *ctx, const variable_list &grads) {
    const variable_list saved = ctx->get_saved_variables();
    const Kind kind = static_cast<Kind>(ctx->saved_data["kind"].toInt());
    const Steps steps(ctx->saved_data["rows"].toIntVector());
    const Walk walk{steps, ctx->saved_data["reverse"].toBool()};
    const variable_list found = at::GradMode::is_enabled() ? differentiable(kind, walk, saved, grads)
                                                           : gradients(ctx, kind, walk, saved, grads);
    variable_list result(kInputs + 3);  // of the kind, the steps and the direction: none
    std::copy(found.begin(), found.end(), result.begin() + 1);
    return result;
  }

 private:
  // The steps: |all| are the inputs, and what is made.
  static void steps_forward(Kind kind, const Walk &walk, const variable_list &all) {
    const Steps &steps = walk.steps;
    const at::Tensor &x = all[kX], &out = all[kOut], &gates = all[kGates], &cells = all[kCells], &raw = all[kRaw];
    const at::Tensor by = transposed(all[kWhh]), down = raw.defined() ? transposed(all[kWhr]) : by;
    const at::Tensor first = dense_rows(all[kH]), first_c = dense_rows(all[kC]), bias = contiguous(all[kBhh]);
    const at::Tensor hidden = plain(kind) ? at::Tensor() : make({steps.most(), by.size(1)}, x.scalar_type(), x);
    const rdna_tensor w = describe(by), w_down = describe(down);
    rdna_stream *stream = stream_of(x);
    for (int64_t i = 0; i < steps.count(); i++) {
      const int64_t t = walk.at(i);
      at::Tensor joined, joined_c;
      const Rows from = walk.before(t, first, out, joined), g = steps.of(gates, t), to = steps.of(out, t);
      const Rows sums(hidden, 0, steps.rows(t)), cell_to = steps.of(raw.defined() ? raw : out, t);
      if (plain(kind)) {
        plain_step(stream, kind, from, w, to);
        continue;
      }
      multiply(stream, from, w, 0, sums);
      if (kind == kGru) {
        check(rdna_op_gru_cell(stream, g, sums, nullptr, Operand(bias), from, to, g, steps.of(all[kInner], t)));
      } else {
        const Rows from_c = walk.before(t, first_c, cells, joined_c);
        check(rdna_op_lstm_cell(stream, g, sums, nullptr, nullptr, from_c, cell_to, steps.of(cells, t), g));
        if (raw.defined()) multiply(stream, cell_to, w_down, 0, to);
      }
    }
  }

  // What the steps back make of the gradients of all results.
  struct Back {
    at::Tensor sums, hidden;  // of the rows that the gates are made of, as inputs and as states made them
    at::Tensor h, c;          // of the first state
    at::Tensor projected;     // of the output, with what later steps hand back
  };

  static Back steps_back(Kind kind, const Walk &walk, const variable_list &saved, const variable_list &grads,
                         bool of_first) {
    const Steps &steps = walk.steps;
    const at::Tensor &x = saved[kX], &out = saved[kOut], &cells = saved[kCells], &gates = saved[kGates];
    const at::ScalarType type = x.scalar_type();
    const int64_t tokens = steps.tokens(), rows = steps.most(), wide = saved[kWhh].size(0), n = wide / parts_of(kind);
    // Rows that begin with a later step have no gradient before it but their last state's.
    auto start = [&](const at::Tensor &given, int64_t width) {
      return given.defined()  ? given.clone(at::MemoryFormat::Contiguous)
             : steps.packed() ? at::zeros({rows, width}, x.options())
                              : make({rows, width}, type, x);
    };
    Back back;
    back.sums = make({tokens, wide}, type, x);
    back.hidden = kind == kGru ? make_like(back.sums) : back.sums;
    back.h = start(grads[1], out.size(1));
    if (kind == kLstm) back.c = start(grads[2], n);
    bool there = grads[1].defined() || steps.packed(),
         there_c = kind == kLstm && (grads[2].defined() || steps.packed());
    at::Tensor of_raw;
    if (saved[kWhr].defined()) back.projected = make_like(out), of_raw = make({rows, n}, type, x);
    const at::Tensor of_out = dense_rows(grads[0]), first = dense_rows(saved[kH]), first_c = dense_rows(saved[kC]);
    const at::Tensor by = dense_rows(saved[kWhh]), up = saved[kWhr].defined() ? dense_rows(saved[kWhr]) : by;
    const rdna_tensor w = describe(by), w_up = describe(up);
    rdna_stream *stream = stream_of(x);
    for (int64_t i = steps.count() - 1; i >= 0; i--) {
      const int64_t t = walk.at(i), r = steps.rows(t);
      at::Tensor joined;
      const Rows h(back.h, 0, r), c(back.c, 0, r), d_out = steps.of(of_out, t), sums = steps.of(back.sums, t);
      const rdna_tensor *dh = there ? static_cast<const rdna_tensor *>(h) : nullptr, *dout = d_out;
      const Rows of_cell(of_raw, 0, r);
      if (back.projected.defined()) {
        const at::Tensor d = back.projected.narrow(0, steps.begin(t), r);
        const at::Tensor later = there ? back.h.narrow(0, 0, r) : at::Tensor();
        const at::Tensor own = of_out.defined() ? of_out.narrow(0, steps.begin(t), r) : at::Tensor();
        if (later.defined() && own.defined())
          at::add_out(const_cast<at::Tensor &>(d), later, own);
        else if (later.defined() || own.defined())
          d.copy_(later.defined() ? later : own);
        else
          d.zero_();
        multiply(stream, steps.of(back.projected, t), w_up, 0, of_cell);
        dh = of_cell, dout = nullptr;
      }
      if (kind == kLstm) {
        check(rdna_op_lstm_cell_backward(stream, dh, dout, there_c ? static_cast<const rdna_tensor *>(c) : nullptr,
                                         steps.of(gates, t), walk.before(t, first_c, cells, joined), steps.of(cells, t),
                                         sums, c));
      } else if (kind == kGru) {
        check(rdna_op_gru_cell_backward(stream, dh, dout, steps.of(gates, t), steps.of(saved[kInner], t),
                                        walk.before(t, first, out, joined), sums, steps.of(back.hidden, t), h));
      } else {
        check(rdna_op_rnn_cell_backward(stream, activation_of(kind), dh, dout, steps.of(out, t), sums));
      }
      there = true, there_c = kind == kLstm;
      if (i > 0 || of_first) multiply(stream, steps.of(back.hidden, t), w, kind == kGru, h);
    }
    return back;
  }

  static Back whole_back(Kind kind, const Walk &walk, const variable_list &saved, const variable_list &grads) {
    Back back;
    const at::Tensor &x = saved[kX];
    back.sums = make({x.size(0), saved[kWhh].size(0)}, x.scalar_type(), x);
    back.hidden = kind == kGru ? make_like(back.sums) : back.sums;
    back.h = make(saved[kH].sizes(), x.scalar_type(), x);
    if (kind == kLstm) back.c = make_like(back.h);
    const at::Tensor dout = contiguous(grads[0]), dh = contiguous(grads[1]);
    const at::Tensor dc = kind == kLstm ? contiguous(grads[2]) : at::Tensor();
    const Whole layer(kind, walk, saved[kWhh], {}, saved[kH], saved[kC]);
    check(rdna_op_recurrent_layer_backward(
        stream_of(x), layer, Operand(dout), Operand(dh), Operand(dc), Operand(saved[kGates]), Operand(saved[kOut]),
        Operand(saved[kCells]), Operand(saved[kInner]), Operand(back.sums),
        Operand(kind == kGru ? back.hidden : at::Tensor()), Operand(back.h), Operand(back.c)));
    return back;
  }

  static variable_list gradients(AutogradContext *ctx, Kind kind, const Walk &walk, const variable_list &saved,
                                 const variable_list &grads) {
    at::AutoDispatchBelowADInplaceOrView below;
    CurrentDevice here(saved[kX].device().index());
    follow_deterministic();
    bool wanted[kInputs];
    size_t edge = 0;  // those of optional inputs that are not there are left out
    for (size_t i = 0; i < kInputs; i++) wanted[i] = saved[i].defined() && ctx->needs_input_grad(edge++);
    const int64_t n = saved[kWhh].size(0) / parts_of(kind);
    const bool whole = Whole::fits(kind, walk.steps.most(), n, saved[kX], saved[kWhr]);
    const Back back = whole ? whole_back(kind, walk, saved, grads) : steps_back(kind, walk, saved, grads, wanted[kH]);
    variable_list result(kInputs);
    if (wanted[kX]) result[kX] = at::mm(back.sums, saved[kWih]);
    if (wanted[kH]) result[kH] = back.h;
    if (wanted[kC]) result[kC] = back.c;
    if (wanted[kWih]) result[kWih] = at::mm(back.sums.t(), saved[kX]);
    if (wanted[kWhh]) result[kWhh] = at::mm(back.hidden.t(), walk.befores(saved[kH], saved[kOut]));
    if (wanted[kWhr]) result[kWhr] = at::mm(back.projected.t(), saved[kRaw]);
    if (wanted[kBih]) result[kBih] = at::sum(back.sums, {0});
    if (wanted[kBhh]) result[kBhh] = wanted[kBih] && kind != kGru ? result[kBih].clone() : at::sum(back.hidden, {0});
    return result;
  }

  // For a second derivative: the layer again by PyTorch's own operators, which have all derivatives.
  static variable_list differentiable(Kind kind, const Walk &walk, const variable_list &saved,
                                      const variable_list &grads) {
    const bool biased = saved[kBih].defined();
    std::vector<at::Tensor> weights;
    for (const size_t i : {kWih, kWhh, kBih, kBhh, kWhr})
      if (saved[i].defined()) weights.push_back(saved[i]);
    const variable_list made = again(kind, walk, saved, weights, biased);
    variable_list from, to, given;
    std::vector<size_t> places;
    for (size_t i = 0; i < made.size(); i++)
      if (grads[i].defined()) from.push_back(made[i]), given.push_back(grads[i]);
    for (size_t i = 0; i < kInputs; i++)
      if (saved[i].defined() && saved[i].requires_grad()) to.push_back(saved[i]), places.push_back(i);
    const variable_list found = torch::autograd::grad(from, to, given, true, true, true);
    variable_list result(kInputs);
    for (size_t i = 0; i < found.size(); i++) result[places[i]] = found[i];
    return result;
  }

  // out, h and c of the other direction are found in a network of two of which the forward one gets no gradient.
  static variable_list again(Kind kind, const Walk &walk, const variable_list &saved,
                             const std::vector<at::Tensor> &weights, bool biased) {
    const Steps &steps = walk.steps;
    const at::Tensor sizes = at::empty({steps.count()}, at::kLong);
    std::copy(steps.all().begin(), steps.all().end(), sizes.mutable_data_ptr<int64_t>());
    std::vector<at::Tensor> all;
    if (walk.reverse)
      for (const at::Tensor &w : weights) all.push_back(w.detach());
    all.insert(all.end(), weights.begin(), weights.end());
    auto states = [&](const at::Tensor &t) { return walk.reverse ? at::stack({t.detach(), t}) : t.unsqueeze(0); };
    at::Tensor out, h, c;
    const at::Tensor &x = saved[kX];
    if (kind == kLstm) {
      const at::Tensor first[] = {states(saved[kH]), states(saved[kC])};
      std::tie(out, h, c) = at::native::lstm(x, sizes, first, all, biased, 1, 0, false, walk.reverse);
    } else {
      OneStatePacked *layer = &at::native::gru;
      if (kind == kTanh) layer = &at::native::rnn_tanh;
      if (kind == kRelu) layer = &at::native::rnn_relu;
      std::tie(out, h) = layer(x, sizes, states(saved[kH]), all, biased, 1, 0, false, walk.reverse);
    }
    variable_list made = {walk.reverse ? out.narrow(1, h.size(2), h.size(2)) : out, h.select(0, walk.reverse)};
    if (kind == kLstm) made.push_back(c.select(0, walk.reverse));
    return made;
  }
};

// ---- networks ----

struct Network {
  Kind kind;
  at::TensorList params;
  bool biased;
  int64_t layers;
  double dropout;
  bool train, both;

  int64_t directions() const { return both ? 2 : 1; }
};
struct Results {
  at::Tensor out, h, c;
};

// Tensors that only PyTorch's own operators know: of torch.func's transforms and subclasses, and with forward
// derivatives.
bool ordinary(const at::Tensor &t) {
  return !t.key_set().has(c10::DispatchKey::FuncTorchBatched) &&
         !t.key_set().has(c10::DispatchKey::FuncTorchGradWrapper) && !t.key_set().has(c10::DispatchKey::Python) &&
         !t._fw_grad(0).defined();
}

// Whether these are the arguments of a network that has something to do: x of (…, inputs), |rows| in the first step.
// What is wrong with others PyTorch says itself.
bool fits(const Network &net, const at::Tensor &x, int64_t rows, const at::Tensor &h, const at::Tensor &c) {
  if (x.numel() == 0 || !is_real(x.scalar_type()) || !ordinary(x) || net.layers < 1) return false;
  auto like = [&](const at::Tensor &t, at::IntArrayRef shape) {
    return t.defined() && t.device() == x.device() && t.scalar_type() == x.scalar_type() && t.sizes() == shape &&
           ordinary(t);
  };
  const int64_t all = net.layers * net.directions();
  if (h.dim() != 3 || h.numel() == 0 || (net.kind == kLstm && (c.dim() != 3 || c.numel() == 0))) return false;
  const int64_t p = h.size(2), n = net.kind == kLstm ? c.size(2) : p, wide = parts_of(net.kind) * n;
  if (!like(h, {all, rows, p}) || (net.kind == kLstm && !like(c, {all, rows, n}))) return false;
  const size_t each = (net.biased ? 4 : 2) + (p != n);
  if (net.params.size() != static_cast<size_t>(all) * each) return false;
  for (size_t i = 0; i < net.params.size(); i++) {
    const int64_t inputs = i / each < static_cast<size_t>(net.directions()) ? x.size(-1) : net.directions() * p;
    const size_t which = i % each;
    const bool last = p != n && which == each - 1;
    if (last         ? !like(net.params[i], {p, n})
        : which == 0 ? !like(net.params[i], {wide, inputs})
        : which == 1 ? !like(net.params[i], {wide, p})
                     : !like(net.params[i], {wide}))
      return false;
  }
  return true;
}

// x is (tokens, inputs).
Results run(const Network &net, at::Tensor x, const Steps &steps, const at::Tensor &h, const at::Tensor &c) {
  CurrentDevice here(x.device().index());
  follow_deterministic();
  const bool projected = net.kind == kLstm && h.size(2) != c.size(2);
  const size_t each = (net.biased ? 4 : 2) + projected;
  std::vector<at::Tensor> last, last_c;
  for (int64_t layer = 0; layer < net.layers; layer++) {
    std::vector<at::Tensor> out;
    for (int64_t d = 0; d < net.directions(); d++) {
      const int64_t i = layer * net.directions() + d;
      const at::Tensor *w = &net.params[static_cast<size_t>(i) * each];
      auto given = [&](bool there, size_t k) { return there ? std::make_optional(w[k]) : std::nullopt; };
      const variable_list made =
          RecurrentLayer::apply(static_cast<int64_t>(net.kind), x, h.select(0, i), w[0], w[1],
                                net.kind == kLstm ? std::make_optional(c.select(0, i)) : std::nullopt,
                                given(net.biased, 2), given(net.biased, 3), given(projected, each - 1), steps, d == 1);
      out.push_back(made[0]), last.push_back(made[1]);
      if (net.kind == kLstm) last_c.push_back(made[2]);
    }
    x = net.both ? at::cat(out, 1) : out[0];
    if (net.dropout != 0 && net.train && layer < net.layers - 1) x = at::dropout(x, net.dropout, true);
  }
  return {x, at::stack(last), net.kind == kLstm ? at::stack(last_c) : at::Tensor()};
}

std::optional<Results> padded(const Network &net, const at::Tensor &input, const at::Tensor &h, const at::Tensor &c,
                              bool batch_first) {
  if (input.dim() != 3 || !fits(net, input, input.size(batch_first ? 0 : 1), h, c)) return {};
  const at::Tensor x = batch_first ? input.transpose(0, 1) : input;
  const int64_t count = x.size(0), rows = x.size(1);
  const std::vector<int64_t> all(static_cast<size_t>(count), rows);
  Results made = run(net, x.reshape({count * rows, x.size(2)}), Steps(all), h, c);
  made.out = made.out.view({count, rows, made.out.size(1)});
  if (batch_first) made.out = made.out.transpose(0, 1);
  return made;
}

std::optional<Results> packed(const Network &net, const at::Tensor &data, const at::Tensor &batch_sizes,
                              const at::Tensor &h, const at::Tensor &c) {
  if (data.dim() != 2 || batch_sizes.dim() != 1 || batch_sizes.numel() == 0 || !batch_sizes.is_cpu() ||
      batch_sizes.scalar_type() != at::kLong)
    return {};
  const at::Tensor dense = batch_sizes.contiguous();
  const int64_t *sizes = dense.const_data_ptr<int64_t>();
  const std::vector<int64_t> rows(sizes, sizes + dense.numel());
  for (size_t i = 0; i < rows.size(); i++)
    if (rows[i] < 1 || (i && rows[i] > rows[i - 1])) return {};
  const Steps steps(rows);
  if (steps.tokens() != data.size(0) || !fits(net, data, steps.most(), h, c)) return {};
  return run(net, data, steps, h, c);
}

// ---- as PyTorch calls them ----

Three lstm(const at::Tensor &input, at::TensorList hx, at::TensorList params, bool biased, int64_t layers,
           double dropout, bool train, bool both, bool batch_first) {
  if (hx.size() == 2)
    if (const auto made =
            padded({kLstm, params, biased, layers, dropout, train, both}, input, hx[0], hx[1], batch_first))
      return {made->out, made->h, made->c};
  return at::native::lstm(input, hx, params, biased, layers, dropout, train, both, batch_first);
}

Three lstm_packed(const at::Tensor &data, const at::Tensor &batch_sizes, at::TensorList hx, at::TensorList params,
                  bool biased, int64_t layers, double dropout, bool train, bool both) {
  if (hx.size() == 2)
    if (const auto made =
            packed({kLstm, params, biased, layers, dropout, train, both}, data, batch_sizes, hx[0], hx[1]))
      return {made->out, made->h, made->c};
  return at::native::lstm(data, batch_sizes, hx, params, biased, layers, dropout, train, both);
}

// Networks of one state; |native| is PyTorch's own way.
template <Kind kind, OneState *native>
Two one_state(const at::Tensor &input, const at::Tensor &hx, at::TensorList params, bool biased, int64_t layers,
              double dropout, bool train, bool both, bool batch_first) {
  if (const auto made = padded({kind, params, biased, layers, dropout, train, both}, input, hx, {}, batch_first))
    return {made->out, made->h};
  return native(input, hx, params, biased, layers, dropout, train, both, batch_first);
}
template <Kind kind, OneStatePacked *native>
Two one_state_packed(const at::Tensor &data, const at::Tensor &sizes, const at::Tensor &hx, at::TensorList params,
                     bool biased, int64_t layers, double dropout, bool train, bool both) {
  if (const auto made = packed({kind, params, biased, layers, dropout, train, both}, data, sizes, hx, {}))
    return {made->out, made->h};
  return native(data, sizes, hx, params, biased, layers, dropout, train, both);
}

// As torch.autocast runs recurrent layers on its other devices: whole, in the lower precision. Sizes, being on the CPU,
// stay what they are.
template <class Function, Function *again>
struct Autocast;
template <class Result, class... Arguments, Result (*again)(Arguments...)>
struct Autocast<Result(Arguments...), again> {
  static Result call(Arguments... arguments) {
    c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastPrivateUse1);
    return again(converted(arguments)...);
  }

 private:
  static at::ScalarType type() { return at::autocast::get_lower_precision_fp_from_device_type(kRdna); }
  static at::Tensor converted(const at::Tensor &t) { return at::autocast::cached_cast(type(), t, kRdna); }
  static std::vector<at::Tensor> converted(at::TensorList list) {
    return at::autocast::cached_cast(type(), list, kRdna);
  }
  static bool converted(bool value) { return value; }
  static int64_t converted(int64_t value) { return value; }
  static double converted(double value) { return value; }
};

void add_networks(torch::Library &m) {
  m.impl("lstm.input", &lstm);
  m.impl("lstm.data", &lstm_packed);
  m.impl("gru.input", &one_state<kGru, &at::native::gru>);
  m.impl("gru.data", &one_state_packed<kGru, &at::native::gru>);
  m.impl("rnn_tanh.input", &one_state<kTanh, &at::native::rnn_tanh>);
  m.impl("rnn_tanh.data", &one_state_packed<kTanh, &at::native::rnn_tanh>);
  m.impl("rnn_relu.input", &one_state<kRelu, &at::native::rnn_relu>);
  m.impl("rnn_relu.data", &one_state_packed<kRelu, &at::native::rnn_relu>);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add_networks(m); }  // of tensors made in inference mode
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) { add_networks(m); }
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  m.impl("lstm.input", &Autocast<TwoStates, &at::lstm>::call);
  m.impl("lstm.data", &Autocast<TwoStatesPacked, &at::lstm>::call);
  m.impl("gru.input", &Autocast<OneState, &at::gru>::call);
  m.impl("gru.data", &Autocast<OneStatePacked, &at::gru>::call);
  m.impl("rnn_tanh.input", &Autocast<OneState, &at::rnn_tanh>::call);
  m.impl("rnn_tanh.data", &Autocast<OneStatePacked, &at::rnn_tanh>::call);
  m.impl("rnn_relu.input", &Autocast<OneState, &at::rnn_relu>::call);
  m.impl("rnn_relu.data", &Autocast<OneStatePacked, &at::rnn_relu>::call);
}

}  // namespace
}  // namespace rdna_torch
