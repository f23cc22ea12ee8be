// torch.profiler: what librdna's profile saw becomes kernels, copies and fills of PyTorch's trace, each under the
// operator that queued it; and the older profiler, which times whole operators by events.
#include "profiler.h"

#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/stubs/base.h>

#include <cstdlib>

#include "device.h"
#include "rdna/profile.h"

#if RDNA_TORCH_KINETO
#include <libkineto.h>
#include <output_base.h>
#endif

namespace rdna_torch {
namespace {

// torch.autograd.profiler.profile(use_device="rdna")
struct Stubs final : torch::profiler::impl::ProfilerStubs {
  void record(c10::DeviceIndex *index, torch::profiler::impl::ProfilerVoidEventStub *event,
              int64_t *cpu_ns) const override {
    const c10::DeviceIndex here = current_device();
    if (index) *index = here;
    rdna_event *made = nullptr;
    check(rdna_event_create(device(here), true, &made));
    *event = std::shared_ptr<void>(made, [](void *e) { rdna_event_release(static_cast<rdna_event *>(e)); });
    if (cpu_ns) *cpu_ns = c10::getTime();
    check(rdna_event_record(made, raw_current_stream(here)));
  }
  // Microseconds.
  float elapsed(const torch::profiler::impl::ProfilerVoidEventStub *start,
                const torch::profiler::impl::ProfilerVoidEventStub *end) const override {
    auto of = [](const torch::profiler::impl::ProfilerVoidEventStub *e) { return static_cast<rdna_event *>(e->get()); };
    check(rdna_event_synchronize(of(start)));
    check(rdna_event_synchronize(of(end)));
    float ms = 0;
    check(rdna_event_elapsed(of(start), of(end), &ms));
    return ms * 1000;
  }
  // No tool of AMD's or NVIDIA's is told of ranges.
  void mark(const char *) const override {}
  void rangePush(const char *) const override {}
  void rangePop() const override {}
  bool enabled() const override { return device_count() > 0; }
  void onEachDevice(std::function<void(int)> f) const override {
    for (c10::DeviceIndex i = 0; i < device_count(); i++) {
      if (!device_is_open(i)) continue;
      CurrentDevice here(i);
      f(i);
    }
  }
  void synchronize() const override {
    for (c10::DeviceIndex i = 0; i < device_count(); i++)
      if (device_is_open(i)) rdna_torch::synchronize(i);
  }
};

#if RDNA_TORCH_KINETO

using libkineto::ActivityType;

const std::set<ActivityType> activities{ActivityType::CONCURRENT_KERNEL, ActivityType::GPU_MEMCPY,
                                        ActivityType::GPU_MEMSET};

ActivityType type_of(rdna_profile_kind kind) {
  switch (kind) {
    case RDNA_PROFILE_KIND_COPY_TO_DEVICE:
    case RDNA_PROFILE_KIND_COPY_TO_HOST:
    case RDNA_PROFILE_KIND_COPY_ON_DEVICE:
    case RDNA_PROFILE_KIND_COPY_PEER:
      return ActivityType::GPU_MEMCPY;
    case RDNA_PROFILE_KIND_FILL:
      return ActivityType::GPU_MEMSET;
    default:
      return ActivityType::CONCURRENT_KERNEL;
  }
}

thread_local std::vector<uint64_t> marks;  // the operators that the thread is in

class Session final : public libkineto::IActivityProfilerSession {
 public:
  ~Session() override {
    for (Seen &seen : seen_) {
      if (seen.on && rdna_profile_stop(device(seen.index), nullptr, nullptr) != RDNA_OK) TORCH_WARN(rdna_last_error());
      std::free(seen.records);
    }
  }

  void start() override {
    for (c10::DeviceIndex i = 0; i < device_count(); i++) {
      if (!device_is_open(i) && i != current_device()) continue;
      if (rdna_profile_start(device(i)) == RDNA_OK)
        seen_.push_back({i, c10::getTime(), true, nullptr, 0});
      else
        errors_.push_back(rdna_last_error());
    }
    status_ = libkineto::TraceStatus::RECORDING;
  }

  void stop() override {
    for (Seen &seen : seen_) {
      if (!seen.on) continue;
      seen.on = false;
      if (rdna_profile_stop(device(seen.index), &seen.records, &seen.count) != RDNA_OK)
        errors_.push_back(rdna_last_error());
    }
    status_ = libkineto::TraceStatus::PROCESSING;
  }

  std::vector<std::string> errors() override { return errors_; }

  void processTrace(libkineto::ActivityLogger &logger) override {
    processTrace(logger, [](int32_t) { return nullptr; }, 0, 0);
  }
  void processTrace(libkineto::ActivityLogger &logger, libkineto::getLinkedActivityCallback linked, int64_t,
                    int64_t) override {
    buffer_ = std::make_unique<libkineto::CpuTraceBuffer>();
    buffer_->span = libkineto::TraceSpan(0, 0, "rdna");
    buffer_->gpuOpCount = 0;
    for (const Seen &seen : seen_) {
      for (size_t i = 0; i < seen.count; i++) {
        const rdna_profile_record &r = seen.records[i];
        buffer_->emplace_activity(buffer_->span, type_of(r.kind), r.name);
        libkineto::GenericTraceActivity &a = *buffer_->activities.back();
        a.startTime = seen.base + static_cast<int64_t>(r.start * 1e6);
        a.endTime = a.startTime + static_cast<int64_t>(r.length * 1e6);
        a.id = static_cast<int32_t>(r.mark);
        a.device = seen.index;
        a.resource = r.stream;
        a.threadId = r.stream;
        a.flow.id = static_cast<uint32_t>(r.mark);
        a.flow.type = libkineto::kLinkAsyncCpuGpu;
        a.flow.start = false;
        a.linked = linked(a.id);
        a.addMetadata("device", static_cast<int>(seen.index));
        a.addMetadata("stream", r.stream);
        a.addMetadata("correlation", r.mark);
        if (r.bytes) a.addMetadata("bytes", r.bytes);
        buffer_->gpuOpCount++;
        a.log(logger);
      }
    }
  }

  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override { return nullptr; }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override {
    std::vector<libkineto::ResourceInfo> streams;
    for (const Seen &seen : seen_) {
      std::set<int> numbers;
      for (size_t i = 0; i < seen.count; i++) numbers.insert(seen.records[i].stream);
      for (int n : numbers) streams.push_back({n, n, seen.index, "stream " + std::to_string(n)});
    }
    return streams;
  }
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override { return std::move(buffer_); }

  void pushCorrelationId(uint64_t id) override {
    marks.push_back(id);
    rdna_profile_mark(id);
  }
  void popCorrelationId() override {
    if (!marks.empty()) marks.pop_back();
    rdna_profile_mark(marks.empty() ? 0 : marks.back());
  }

 private:
  struct Seen {
    c10::DeviceIndex index;
    int64_t base;  // nanoseconds since the epoch at its profile's beginning
    bool on;
    rdna_profile_record *records;
    size_t count;
  };
  std::vector<Seen> seen_;
  std::vector<std::string> errors_;
  std::unique_ptr<libkineto::CpuTraceBuffer> buffer_;
};

class Profiler final : public libkineto::IActivityProfiler {
 public:
  const std::string &name() const override { return name_; }
  const std::set<ActivityType> &availableActivities() const override { return activities; }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(const std::set<ActivityType> &types,
                                                                 const libkineto::Config &) override {
    if (!types.count(ActivityType::CONCURRENT_KERNEL) || device_count() == 0) return nullptr;
    return std::make_unique<Session>();
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(int64_t, int64_t, const std::set<ActivityType> &types,
                                                                 const libkineto::Config &config) override {
    return configure(types, config);
  }

 private:
  std::string name_ = "rdna";
};

#endif

}  // namespace

void register_profiler() {
  static Stubs stubs;
  torch::profiler::impl::registerPrivateUse1Methods(&stubs);
#if RDNA_TORCH_KINETO
  libkineto::api().registerProfilerFactory([] { return std::make_unique<Profiler>(); });
#endif
}

}  // namespace rdna_torch
