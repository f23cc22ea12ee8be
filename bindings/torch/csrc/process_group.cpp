// torch.distributed among rdna devices: a c10d backend over librdna's collective operations (rdna/comm.h), or, asked
// for by name, over another backend that works on copies in host memory.
//
// Work runs on a stream of the group's own, one for each device, so that it overlaps with computing: it waits for what
// the caller's stream holds, and wait() makes the stream that is current then wait for it.
#include "process_group.h"

#if RDNA_TORCH_DISTRIBUTED

#include <ATen/Functions.h>
#include <c10/core/StreamGuard.h>

#include <chrono>
#include <map>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

#include "device.h"
#include "memory.h"
#include "rdna/comm.h"
#include "tensor.h"

namespace rdna_torch {
namespace {

using Tensors = std::vector<at::Tensor>;
using Milliseconds = std::chrono::milliseconds;

struct Mail {
  at::Tensor tensor;
  int peer;
  bool send;
};

// What moves values. Tensors are dense and on one device, whose group's stream is current.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual void all_reduce(const at::Tensor &t, c10d::ReduceOp::RedOpType op) = 0;
  virtual void reduce(const at::Tensor &t, c10d::ReduceOp::RedOpType op, int root) = 0;
  virtual void reduce_scatter(const at::Tensor &in, const at::Tensor &out, c10d::ReduceOp::RedOpType op) = 0;
  virtual void broadcast(const at::Tensor &t, int root) = 0;
  virtual void all_gather(const at::Tensor &in, const at::Tensor &out) = 0;
  virtual void exchange(const std::vector<Mail> &mail) = 0;  // all under way at once
  virtual void check_work() {}
  virtual void abandon() {}
};

// ---- librdna's

rdna_comm_op op_of(c10d::ReduceOp::RedOpType op) {
  switch (op) {
    case c10d::ReduceOp::SUM:
      return RDNA_COMM_OP_SUM;
    case c10d::ReduceOp::PRODUCT:
      return RDNA_COMM_OP_PRODUCT;
    case c10d::ReduceOp::MAX:
      return RDNA_COMM_OP_MAX;
    case c10d::ReduceOp::MIN:
      return RDNA_COMM_OP_MIN;
    case c10d::ReduceOp::AVG:
      return RDNA_COMM_OP_MEAN;
    default:
      TORCH_CHECK_NOT_IMPLEMENTED(false, "groups of rdna reduce by SUM, AVG, PRODUCT, MIN or MAX alone");
  }
}

class Direct final : public Transport {
 public:
  Direct(rdna_device *device, c10d::Store &store, const std::string &key, int rank, int size) {
    rdna_comm_id id{};
    if (rank == 0) {
      check(rdna_comm_id_create(device, &id));
      store.set(key, std::vector<uint8_t>(id.bytes, id.bytes + sizeof id.bytes));
    } else {
      const std::vector<uint8_t> bytes = store.get(key);
      TORCH_CHECK(bytes.size() == sizeof id.bytes, "the id of a group of rdna has ", bytes.size(), " bytes, not ",
                  sizeof id.bytes);
      std::copy(bytes.begin(), bytes.end(), id.bytes);
    }
    check(rdna_comm_create(device, &id, rank, size, &comm_));
  }
  ~Direct() override { rdna_comm_release(comm_); }

  void all_reduce(const at::Tensor &t, c10d::ReduceOp::RedOpType op) override {
    const Values v(t);
    check(rdna_comm_all_reduce(comm_, stream_of(t), v.data, v.data, v.count, v.type, op_of(op)));
  }
  void reduce(const at::Tensor &t, c10d::ReduceOp::RedOpType op, int root) override {
    const Values v(t);
    check(rdna_comm_reduce(comm_, stream_of(t), v.data, v.data, v.count, v.type, op_of(op), root));
  }
  void reduce_scatter(const at::Tensor &in, const at::Tensor &out, c10d::ReduceOp::RedOpType op) override {
    const Values from(in), to(out);
    check(rdna_comm_reduce_scatter(comm_, stream_of(in), from.data, to.data, to.count, to.type, op_of(op)));
  }
  void broadcast(const at::Tensor &t, int root) override {
    check(rdna_comm_broadcast(comm_, stream_of(t), t.data_ptr(), t.mutable_data_ptr(), t.nbytes(), root));
  }
  void all_gather(const at::Tensor &in, const at::Tensor &out) override {
    check(rdna_comm_all_gather(comm_, stream_of(in), in.data_ptr(), out.mutable_data_ptr(), in.nbytes()));
  }
  void exchange(const std::vector<Mail> &mail) override {
    check(rdna_comm_begin(comm_));
    rdna_status status = RDNA_OK;
    for (const Mail &m : mail) {
      rdna_stream *stream = stream_of(m.tensor);
      status = m.send ? rdna_comm_send(comm_, stream, m.tensor.data_ptr(), m.tensor.nbytes(), m.peer)
                      : rdna_comm_receive(comm_, stream, m.tensor.mutable_data_ptr(), m.tensor.nbytes(), m.peer);
      if (status != RDNA_OK) break;
    }
    const std::string sentence = status == RDNA_OK ? "" : rdna_last_error();
    const rdna_status ended = rdna_comm_end(comm_);
    TORCH_CHECK(status == RDNA_OK, sentence);
    check(ended);
  }
  void check_work() override {
    if (comm_) check(rdna_comm_check(comm_));
  }
  void abandon() override {
    rdna_comm_abort(comm_);
    comm_ = nullptr;
  }

 private:
  // Complex numbers are two real ones.
  struct Values {
    void *data;
    size_t count;
    rdna_dtype type;
    explicit Values(const at::Tensor &t)
        : data(t.mutable_data_ptr()), count(static_cast<size_t>(t.numel()) * (t.is_complex() ? 2 : 1)) {
      const auto found = dtype_of(c10::toRealValueType(t.scalar_type()));
      TORCH_CHECK_NOT_IMPLEMENTED(found, "groups of rdna do not reduce values of type ", t.scalar_type());
      type = *found;
    }
  };
  rdna_comm *comm_ = nullptr;
};

// ---- through host memory

class Staged final : public Transport {
 public:
  explicit Staged(c10::intrusive_ptr<c10d::Backend> host) : host_(std::move(host)) {}

  void all_reduce(const at::Tensor &t, c10d::ReduceOp::RedOpType op) override { t.copy_(reduced(t, op)); }
  void reduce(const at::Tensor &t, c10d::ReduceOp::RedOpType op, int root) override {
    const at::Tensor all = reduced(t, op);
    if (host_->getRank() == root) t.copy_(all);
  }
  void reduce_scatter(const at::Tensor &in, const at::Tensor &out, c10d::ReduceOp::RedOpType op) override {
    out.copy_(reduced(in, op).reshape({host_->getSize(), -1})[host_->getRank()].reshape(out.sizes()));
  }
  void broadcast(const at::Tensor &t, int root) override {
    Tensors cpu{dense(t)};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    finish(host_->broadcast(cpu, options));
    t.copy_(cpu[0]);
  }
  void all_gather(const at::Tensor &in, const at::Tensor &out) override {
    Tensors cpu{dense(in).reshape(-1)};
    std::vector<Tensors> all(1);
    for (int r = 0; r < host_->getSize(); r++) all[0].push_back(at::empty_like(cpu[0]));
    finish(host_->allgather(all, cpu));
    out.copy_(at::cat(all[0]).reshape(out.sizes()));
  }
  void exchange(const std::vector<Mail> &mail) override {
    std::vector<Tensors> cpu;
    std::vector<c10::intrusive_ptr<c10d::Work>> under_way;
    for (const Mail &m : mail) {
      cpu.push_back({dense(m.tensor)});
      under_way.push_back(m.send ? host_->send(cpu.back(), m.peer, 0) : host_->recv(cpu.back(), m.peer, 0));
    }
    for (const auto &work : under_way) finish(work);
    for (size_t i = 0; i < mail.size(); i++)
      if (!mail[i].send) mail[i].tensor.copy_(cpu[i][0]);
  }

 private:
  static at::Tensor dense(const at::Tensor &t) { return t.to(at::kCPU).contiguous(); }
  static void finish(const c10::intrusive_ptr<c10d::Work> &work) { work->wait(); }
  at::Tensor reduced(const at::Tensor &t, c10d::ReduceOp::RedOpType op) {
    Tensors cpu{dense(t)};
    if (cpu[0].scalar_type() == at::kBool) cpu[0] = cpu[0].to(at::kByte);  // Gloo has no bool
    c10d::AllreduceOptions options;
    const bool any = t.scalar_type() == at::kBool && op == c10d::ReduceOp::SUM;
    options.reduceOp = any ? c10d::ReduceOp::MAX : op == c10d::ReduceOp::AVG ? c10d::ReduceOp::SUM : op;
    finish(host_->allreduce(cpu, options));
    return op == c10d::ReduceOp::AVG ? cpu[0] / host_->getSize() : cpu[0];
  }
  c10::intrusive_ptr<c10d::Backend> host_;
};

// ---- work

class Event {
 public:
  explicit Event(c10::DeviceIndex index) { check(rdna_event_create(device(index), false, &event_)); }
  ~Event() { rdna_event_release(event_); }
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;
  void record(c10::Stream stream) { check(rdna_event_record(event_, raw_stream(stream))); }
  void block(c10::Stream stream) { check(rdna_stream_wait(raw_stream(stream), event_)); }
  bool done() {
    const rdna_status status = rdna_event_query(event_);
    if (status != RDNA_NOT_READY) check(status);
    return status == RDNA_OK;
  }
  void synchronize() { check(rdna_event_synchronize(event_)); }

 private:
  rdna_event *event_ = nullptr;
};

class RdnaWork final : public c10d::Work {
 public:
  RdnaWork(int rank, c10d::OpType type, std::shared_ptr<Transport> transport, c10::DeviceIndex index, Tensors outputs,
           bool host_waits)
      : c10d::Work(rank, type),
        transport_(std::move(transport)),
        index_(index),
        end_(std::make_shared<Event>(index)),
        outputs_(std::move(outputs)),
        host_waits_(host_waits) {}

  // With the group's stream current.
  void mark() {
    end_->record(current_stream(index_));
    future_ = c10::make_intrusive<at::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                      std::vector<c10::Device>{c10::Device(kRdna, index_)});
    future_->markCompleted(at::IValue(outputs_));
  }

  bool isCompleted() override { return end_->done(); }
  bool isSuccess() const override {
    try {
      transport_->check_work();
    } catch (...) {
      return false;
    }
    return end_->done();
  }
  std::vector<at::Tensor> result() override { return outputs_; }
  void synchronize() override {
    CurrentDevice here(index_);
    end_->block(current_stream(index_));
  }
  bool wait(Milliseconds timeout) override {
    if (timeout != kNoTimeout) {
      const auto until = std::chrono::steady_clock::now() + timeout;
      while (!end_->done()) {
        if (std::chrono::steady_clock::now() > until) {
          transport_->abandon();
          TORCH_CHECK(false, "a collective operation among rdna devices took longer than ", timeout.count(),
                      " ms; the group was given up");
        }
        std::this_thread::yield();
      }
    }
    synchronize();
    if (host_waits_) end_->synchronize();
    transport_->check_work();
    return true;
  }
  void abort() override { transport_->abandon(); }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  std::shared_ptr<Transport> transport_;
  c10::DeviceIndex index_;
  std::shared_ptr<Event> end_;
  Tensors outputs_;
  bool host_waits_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

// ---- the group

bool is_dense(const at::Tensor &t) { return t.is_non_overlapping_and_dense(); }

class ProcessGroup final : public c10d::Backend {
 public:
  ProcessGroup(c10::intrusive_ptr<c10d::Store> store, int rank, int size, Milliseconds timeout,
               c10::intrusive_ptr<c10d::Backend> host)
      : c10d::Backend(rank, size), store_(std::move(store)), timeout_(timeout), host_(std::move(host)) {
    store_->setTimeout(timeout_);
  }

  // Work that is still under way, on a group that nobody shut down, has peers that may be gone.
  ~ProcessGroup() override {
    for (auto &[index, place] : places_) {
      const rdna_status status = rdna_stream_query(raw_stream(place.stream));
      if (status == RDNA_NOT_READY) place.transport->abandon();
    }
  }

  const std::string getBackendName() const override { return host_ ? "rdna_gloo" : "rdna"; }
  void setTimeout(Milliseconds timeout) {
    timeout_ = timeout;
    store_->setTimeout(timeout);
  }
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return sequence_; }
  bool supportsCoalescing() const { return true; }
  void abort() {
    for (auto &[index, place] : places_) place.transport->abandon();
  }
  void shutdown() {
    for (auto &[index, place] : places_) check(rdna_stream_synchronize(raw_stream(place.stream)));
    places_.clear();
  }

  c10::intrusive_ptr<c10d::Work> allreduce(Tensors &tensors, const c10d::AllreduceOptions &o) override {
    return each(c10d::OpType::ALLREDUCE, tensors,
                [&](Transport &t, const at::Tensor &x) { t.all_reduce(x, o.reduceOp); });
  }
  c10::intrusive_ptr<c10d::Work> allreduce_coalesced(Tensors &tensors,
                                                     const c10d::AllreduceCoalescedOptions &o) override {
    return each(c10d::OpType::ALLREDUCE_COALESCED, tensors,
                [&](Transport &t, const at::Tensor &x) { t.all_reduce(x, o.reduceOp); });
  }
  c10::intrusive_ptr<c10d::Work> broadcast(Tensors &tensors, const c10d::BroadcastOptions &o) override {
    const int root = root_of(o.rootRank);
    return each(c10d::OpType::BROADCAST, tensors, [&](Transport &t, const at::Tensor &x) { t.broadcast(x, root); });
  }
  c10::intrusive_ptr<c10d::Work> reduce(Tensors &tensors, const c10d::ReduceOptions &o) override {
    const int root = root_of(o.rootRank);
    return each(c10d::OpType::REDUCE, tensors,
                [&](Transport &t, const at::Tensor &x) { t.reduce(x, o.reduceOp, root); });
  }

  c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor &out, at::Tensor &in,
                                                 const c10d::AllgatherOptions &) override {
    check_sizes(in.numel() * getSize(), out.numel(), "all_gather", in, out);
    return run(c10d::OpType::_ALLGATHER_BASE, {in}, {out}, [&](Transport &t) { gather_into(t, in, out); });
  }
  c10::intrusive_ptr<c10d::Work> allgather_into_tensor_coalesced(Tensors &outs, Tensors &ins,
                                                                 const c10d::AllgatherOptions &) override {
    return run(c10d::OpType::COALESCED, ins, outs, [&](Transport &t) {
      for (size_t i = 0; i < ins.size(); i++) {
        check_sizes(ins[i].numel() * getSize(), outs[i].numel(), "all_gather", ins[i], outs[i]);
        gather_into(t, ins[i], outs[i]);
      }
    });
  }
  c10::intrusive_ptr<c10d::Work> allgather(std::vector<Tensors> &outs, Tensors &ins,
                                           const c10d::AllgatherOptions &) override {
    check_lists(outs.size(), ins.size(), "all_gather");
    return run(c10d::OpType::ALLGATHER, ins, outs[0], [&](Transport &t) {
      const at::Tensor all = parts(outs[0], ins[0], "all_gather");
      t.all_gather(ins[0].contiguous(), all);
      for (size_t r = 0; r < outs[0].size(); r++) outs[0][r].copy_(all[static_cast<int64_t>(r)]);
    });
  }
  c10::intrusive_ptr<c10d::Work> allgather_coalesced(std::vector<Tensors> &outs, Tensors &ins,
                                                     const c10d::AllgatherOptions &) override {
    Tensors flat;
    for (const Tensors &of_rank : outs) flat.insert(flat.end(), of_rank.begin(), of_rank.end());
    return run(c10d::OpType::ALLGATHER_COALESCED, ins, flat, [&](Transport &t) {
      for (size_t i = 0; i < ins.size(); i++) {
        const at::Tensor all = make_parts(ins[i]);
        t.all_gather(ins[i].contiguous(), all);
        for (size_t r = 0; r < outs.size(); r++) outs[r].at(i).copy_(all[static_cast<int64_t>(r)]);
      }
    });
  }

  c10::intrusive_ptr<c10d::Work> _reduce_scatter_base(at::Tensor &out, at::Tensor &in,
                                                      const c10d::ReduceScatterOptions &o) override {
    check_sizes(out.numel() * getSize(), in.numel(), "reduce_scatter", in, out);
    return run(c10d::OpType::_REDUCE_SCATTER_BASE, {in}, {out},
               [&](Transport &t) { scatter_into(t, in, out, o.reduceOp); });
  }
  c10::intrusive_ptr<c10d::Work> reduce_scatter_tensor_coalesced(Tensors &outs, Tensors &ins,
                                                                 const c10d::ReduceScatterOptions &o) override {
    return run(c10d::OpType::COALESCED, ins, outs, [&](Transport &t) {
      for (size_t i = 0; i < ins.size(); i++) {
        check_sizes(outs[i].numel() * getSize(), ins[i].numel(), "reduce_scatter", ins[i], outs[i]);
        scatter_into(t, ins[i], outs[i], o.reduceOp);
      }
    });
  }
  c10::intrusive_ptr<c10d::Work> reduce_scatter(Tensors &outs, std::vector<Tensors> &ins,
                                                const c10d::ReduceScatterOptions &o) override {
    check_lists(outs.size(), ins.size(), "reduce_scatter");
    return run(c10d::OpType::REDUCE_SCATTER, ins[0], outs, [&](Transport &t) {
      const at::Tensor all = parts(ins[0], outs[0], "reduce_scatter");
      for (size_t r = 0; r < ins[0].size(); r++) all[static_cast<int64_t>(r)].copy_(ins[0][r]);
      scatter_into(t, all, outs[0], o.reduceOp);
    });
  }

  c10::intrusive_ptr<c10d::Work> gather(std::vector<Tensors> &outs, Tensors &ins,
                                        const c10d::GatherOptions &o) override {
    const int root = root_of(o.rootRank);
    const bool here = getRank() == root;
    check_lists(here ? outs.size() : 1, ins.size(), "gather");
    TORCH_CHECK(!here || outs[0].size() == static_cast<size_t>(getSize()), "gather needs a tensor for each rank");
    return run(c10d::OpType::GATHER, ins, here ? outs[0] : Tensors{}, [&](Transport &t) {
      std::vector<Mail> mail;
      Tensors landed;
      for (int r = 0; here && r < getSize(); r++) {
        landed.push_back(at::empty(outs[0][static_cast<size_t>(r)].sizes(), ins[0].options()));
        if (r == root)
          outs[0][static_cast<size_t>(r)].copy_(ins[0]);
        else
          mail.push_back({landed.back(), r, false});
      }
      if (!here) mail.push_back({ins[0].contiguous(), root, true});
      t.exchange(mail);
      for (int r = 0; here && r < getSize(); r++)
        if (r != root) outs[0][static_cast<size_t>(r)].copy_(landed[static_cast<size_t>(r)]);
    });
  }
  c10::intrusive_ptr<c10d::Work> scatter(Tensors &outs, std::vector<Tensors> &ins,
                                         const c10d::ScatterOptions &o) override {
    const int root = root_of(o.rootRank);
    const bool here = getRank() == root;
    check_lists(outs.size(), here ? ins.size() : 1, "scatter");
    TORCH_CHECK(!here || ins[0].size() == static_cast<size_t>(getSize()), "scatter needs a tensor for each rank");
    return run(c10d::OpType::SCATTER, here ? ins[0] : Tensors{}, outs, [&](Transport &t) {
      std::vector<Mail> mail;
      const at::Tensor landed = is_dense(outs[0]) ? outs[0] : at::empty(outs[0].sizes(), outs[0].options());
      for (int r = 0; here && r < getSize(); r++)
        if (r == root)
          outs[0].copy_(ins[0][static_cast<size_t>(r)]);
        else
          mail.push_back({ins[0][static_cast<size_t>(r)].contiguous(), r, true});
      if (!here) mail.push_back({landed, root, false});
      t.exchange(mail);
      if (!here && !landed.is_same(outs[0])) outs[0].copy_(landed);
    });
  }

  c10::intrusive_ptr<c10d::Work> alltoall_base(at::Tensor &out, at::Tensor &in, std::vector<int64_t> &out_sizes,
                                               std::vector<int64_t> &in_sizes, const c10d::AllToAllOptions &) override {
    const auto out_rows = rows(out, out_sizes), in_rows = rows(in, in_sizes);
    return run(c10d::OpType::ALLTOALL_BASE, {in}, {out}, [&](Transport &t) {
      const at::Tensor from = in.contiguous();
      const at::Tensor to = out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
      Tensors outs, ins;
      int64_t at_in = 0, at_out = 0;
      for (size_t r = 0; r < in_rows.size(); r++) {
        ins.push_back(from.narrow(0, at_in, in_rows[r]));
        outs.push_back(to.narrow(0, at_out, out_rows[r]));
        at_in += in_rows[r];
        at_out += out_rows[r];
      }
      swap(t, outs, ins);
      if (!to.is_same(out)) out.copy_(to);
    });
  }
  c10::intrusive_ptr<c10d::Work> alltoall(Tensors &outs, Tensors &ins, const c10d::AllToAllOptions &) override {
    TORCH_CHECK(outs.size() == static_cast<size_t>(getSize()) && ins.size() == outs.size(),
                "all_to_all needs a tensor for each rank");
    return run(c10d::OpType::ALLTOALL, ins, outs, [&](Transport &t) {
      Tensors landed;
      for (const at::Tensor &x : outs) landed.push_back(x.is_contiguous() ? x : at::empty(x.sizes(), x.options()));
      swap(t, landed, ins);
      for (size_t r = 0; r < outs.size(); r++)
        if (!landed[r].is_same(outs[r])) outs[r].copy_(landed[r]);
    });
  }

  c10::intrusive_ptr<c10d::Work> send(Tensors &tensors, int peer, int) override {
    return post(c10d::OpType::SEND, tensors, peer, true);
  }
  c10::intrusive_ptr<c10d::Work> recv(Tensors &tensors, int peer, int) override {
    return post(c10d::OpType::RECV, tensors, peer, false);
  }
  // Sends and receives between the two are under way at once.
  void startCoalescing() { gathering_ = true; }
  c10::intrusive_ptr<c10d::Work> endCoalescing() {
    gathering_ = false;
    std::vector<Mail> mail;
    mail.swap(gathered_);
    if (mail.empty()) return last_;  // collective operations alone: each was queued, in order
    Tensors all;
    for (const Mail &m : mail) all.push_back(m.tensor);
    return run(c10d::OpType::COALESCED, all, all, [&](Transport &t) { deliver(t, mail); });
  }

  c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions &o) override {
    const c10::DeviceIndex index =
        o.device_ids.empty() ? current_device() : static_cast<c10::DeviceIndex>(o.device_ids[0]);
    const at::Tensor one = at::zeros({1}, at::TensorOptions().dtype(at::kFloat).device(c10::Device(kRdna, index)));
    return run(
        c10d::OpType::BARRIER, {one}, {one}, [&](Transport &t) { t.all_reduce(one, c10d::ReduceOp::SUM); }, true);
  }

 private:
  struct Place {
    std::shared_ptr<Transport> transport;
    c10::Stream stream;
  };

  Place &place(c10::DeviceIndex index) {
    const auto found = places_.find(index);
    if (found != places_.end()) return found->second;
    std::shared_ptr<Transport> transport;
    if (host_)
      transport = std::make_shared<Staged>(host_);
    else
      transport = std::make_shared<Direct>(device(index), *store_, "rdna_comm_" + std::to_string(places_.size()),
                                           getRank(), getSize());
    return places_.emplace(index, Place{transport, pool_stream(index, true)}).first->second;
  }

  template <class F>
  c10::intrusive_ptr<c10d::Work> run(c10d::OpType type, const Tensors &ins, const Tensors &outs, const F &f,
                                     bool host_waits = false) {
    const at::Tensor &first = ins.empty() ? outs.at(0) : ins[0];
    for (const Tensors *list : {&ins, &outs})
      for (const at::Tensor &t : *list) {
        TORCH_CHECK(t.device().type() == kRdna && t.device() == first.device(),
                    "a group of rdna takes tensors of one rdna device, got ", t.device());
        TORCH_CHECK(t.layout() == at::kStrided, "a group of rdna takes dense tensors, got ", t.layout());
      }
    const c10::DeviceIndex index = first.device().index();
    CurrentDevice here(index);
    Place &p = place(index);
    Event before(index);
    before.record(current_stream(index));
    before.block(p.stream);
    sequence_++;
    auto work = c10::make_intrusive<RdnaWork>(getRank(), type, p.transport, index, outs, host_waits);
    c10::StreamGuard guard(p.stream);
    f(*p.transport);
    work->mark();
    for (const Tensors *list : {&ins, &outs})
      for (const at::Tensor &t : *list) record_stream(t.storage().data_ptr(), p.stream);
    last_ = work;
    return work;
  }

  // In place on each tensor.
  template <class F>
  c10::intrusive_ptr<c10d::Work> each(c10d::OpType type, Tensors &tensors, const F &f) {
    TORCH_CHECK(!tensors.empty(), "a collective operation needs a tensor");
    return run(type, tensors, tensors, [&](Transport &t) {
      for (const at::Tensor &x : tensors) {
        if (is_dense(x)) {
          f(t, x);
        } else {
          const at::Tensor copy = x.contiguous();
          f(t, copy);
          x.copy_(copy);
        }
      }
    });
  }

  c10::intrusive_ptr<c10d::Work> post(c10d::OpType type, Tensors &tensors, int peer, bool send) {
    TORCH_CHECK(tensors.size() == 1, "send and recv take one tensor");
    TORCH_CHECK(peer != getRank(), "rank ", peer, " cannot send to itself");
    if (gathering_) {
      gathered_.push_back({tensors[0], peer, send});
      return nullptr;
    }
    return run(type, tensors, tensors, [&](Transport &t) { deliver(t, {{tensors[0], peer, send}}); });
  }

  static void deliver(Transport &t, const std::vector<Mail> &mail) {
    std::vector<Mail> ready;
    for (const Mail &m : mail)
      ready.push_back({m.tensor.is_contiguous() ? m.tensor
                       : m.send                 ? m.tensor.contiguous()
                                                : at::empty(m.tensor.sizes(), m.tensor.options()),
                       m.peer, m.send});
    t.exchange(ready);
    for (size_t i = 0; i < mail.size(); i++)
      if (!mail[i].send && !ready[i].tensor.is_same(mail[i].tensor)) mail[i].tensor.copy_(ready[i].tensor);
  }

  // Part r of |ins| to rank r.
  void swap(Transport &t, const Tensors &outs, const Tensors &ins) {
    std::vector<Mail> mail;
    for (int r = 0; r < getSize(); r++) {
      const auto i = static_cast<size_t>(r);
      if (r == getRank()) {
        outs[i].copy_(ins[i]);
        continue;
      }
      if (ins[i].numel()) mail.push_back({ins[i].contiguous(), r, true});
      if (outs[i].numel()) mail.push_back({outs[i], r, false});
    }
    t.exchange(mail);
  }

  static void gather_into(Transport &t, const at::Tensor &in, const at::Tensor &out) {
    const at::Tensor to = out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
    t.all_gather(in.contiguous(), to);
    if (!to.is_same(out)) out.copy_(to);
  }
  static void scatter_into(Transport &t, const at::Tensor &in, const at::Tensor &out, c10d::ReduceOp::RedOpType op) {
    const at::Tensor to = out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
    t.reduce_scatter(in.contiguous(), to, op);
    if (!to.is_same(out)) out.copy_(to);
  }

  at::Tensor make_parts(const at::Tensor &like) {
    std::vector<int64_t> shape{getSize()};
    shape.insert(shape.end(), like.sizes().begin(), like.sizes().end());
    return at::empty(shape, like.options());
  }
  at::Tensor parts(const Tensors &list, const at::Tensor &like, const char *name) {
    TORCH_CHECK(list.size() == static_cast<size_t>(getSize()), name, " needs a tensor for each of ", getSize(),
                " ranks, got ", list.size());
    for (const at::Tensor &t : list)
      TORCH_CHECK(t.sizes().equals(like.sizes()) && t.scalar_type() == like.scalar_type(), name,
                  " needs tensors of one shape and type, got ", t.sizes(), " and ", like.sizes());
    return make_parts(like);
  }
  std::vector<int64_t> rows(const at::Tensor &t, const std::vector<int64_t> &sizes) const {
    if (sizes.empty()) {
      TORCH_CHECK(t.size(0) % getSize() == 0, "all_to_all: ", t.size(0), " rows are not for ", getSize(),
                  " ranks alike");
      return std::vector<int64_t>(static_cast<size_t>(getSize()), t.size(0) / getSize());
    }
    int64_t sum = 0;
    for (int64_t n : sizes) sum += n;
    TORCH_CHECK(sizes.size() == static_cast<size_t>(getSize()) && sum == t.size(0), "all_to_all: sizes ", sizes,
                " for ", t.size(0), " rows and ", getSize(), " ranks");
    return sizes;
  }
  static void check_lists(size_t a, size_t b, const char *name) {
    TORCH_CHECK(a == 1 && b == 1, name, " takes the tensors of one device");
  }
  static void check_sizes(int64_t want, int64_t got, const char *name, const at::Tensor &in, const at::Tensor &out) {
    TORCH_CHECK(want == got && in.scalar_type() == out.scalar_type(), name, ": an input of ", in.sizes(), " ",
                in.scalar_type(), " and an output of ", out.sizes(), " ", out.scalar_type(), " do not fit together");
  }
  int root_of(int64_t root) const {
    TORCH_CHECK(root >= 0 && root < getSize(), "rank ", root, " of ", getSize());
    return static_cast<int>(root);
  }

  c10::intrusive_ptr<c10d::Store> store_;
  Milliseconds timeout_;
  c10::intrusive_ptr<c10d::Backend> host_;
  std::map<c10::DeviceIndex, Place> places_;
  uint64_t sequence_ = 0;
  bool gathering_ = false;
  std::vector<Mail> gathered_;
  c10::intrusive_ptr<c10d::Work> last_;
};

// DistributedDataParallel's times of a step, on the device.
class StepTimer final : public c10d::Timer {
 public:
  explicit StepTimer(c10::Device device) : index_(device.index()) {}
  ~StepTimer() override {
    for (auto &[which, event] : events_) rdna_event_release(event);
  }
  void record(Event which) override {
    Timer::record(which);
    CurrentDevice here(index_);
    rdna_event *&event = events_[which];
    if (!event) check(rdna_event_create(device(index_), true, &event));
    check(rdna_event_record(event, raw_current_stream(index_)));
  }
  std::optional<int64_t> measureDifference(Event start, Event end) override {
    const auto a = events_.find(start), b = events_.find(end);
    if (a == events_.end() || b == events_.end()) return std::nullopt;
    check(rdna_event_synchronize(a->second));
    check(rdna_event_synchronize(b->second));
    float ms = 0;
    check(rdna_event_elapsed(a->second, b->second, &ms));
    return ms < 0 ? std::nullopt : std::optional<int64_t>(static_cast<int64_t>(ms * 1e6f));
  }

 private:
  c10::DeviceIndex index_;
  std::map<Event, rdna_event *> events_;
};

}  // namespace
}  // namespace rdna_torch

namespace c10d {
C10_REGISTER_TYPED_CLASS(TimerRegistry, c10::kPrivateUse1, rdna_torch::StepTimer)
}

namespace rdna_torch {

void define_process_group(pybind11::module &m) {
  m.def("make_process_group",
        [](const c10::intrusive_ptr<c10d::Store> &store, int rank, int size, double seconds,
           const c10::intrusive_ptr<c10d::Backend> &host) -> c10::intrusive_ptr<c10d::Backend> {
          return c10::make_intrusive<ProcessGroup>(store, rank, size, Milliseconds(static_cast<int64_t>(seconds * 1e3)),
                                                   host);
        });
}

}  // namespace rdna_torch

#else

namespace rdna_torch {
void define_process_group(pybind11::module &) {}
}  // namespace rdna_torch

#endif
