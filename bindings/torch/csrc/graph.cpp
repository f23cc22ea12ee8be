// torch.accelerator.Graph: work of the current stream that is recorded once and replayed. Newer than torch 2.9.
#include "graph.h"

#include <mutex>
#include <set>
#include <utility>

#include "device.h"

namespace rdna_torch {
namespace {
std::mutex mutex;
std::set<const rdna_stream *> recorded;
}  // namespace

bool is_capturing() {
  const c10::DeviceIndex index = current_device();
  if (!device_is_open(index)) return false;
  const rdna_stream *stream = raw_current_stream(index);
  std::lock_guard<std::mutex> lock(mutex);
  return recorded.count(stream) != 0;
}
}  // namespace rdna_torch

#if __has_include(<ATen/core/GraphImplInterface.h>)
#include <ATen/core/GraphImplInterface.h>

#include "rdna/stream.h"

namespace rdna_torch {
namespace {

class Graph final : public at::GraphImplInterface {
 public:
  explicit Graph(const at::GraphImplArgs &) {}  // a recording is ready to run as soon as it ends
  ~Graph() override {
    if (stream_ && end(nullptr) != RDNA_OK) TORCH_WARN(rdna_last_error());  // a recording that nobody ended
    rdna_graph_release(graph_);
  }

  // Memory that the recorded work frees stays with the graph: there are no pools to choose. Other threads may do as
  // they like meanwhile.
  void capture_begin(c10::MempoolId_t, at::GraphCaptureMode) override {
    TORCH_CHECK(!graph_, "this graph holds a recording; reset() it first");
    index_ = current_device();
    stream_ = raw_current_stream(index_);
    const rdna_status status = rdna_graph_begin(stream_);
    if (status != RDNA_OK) stream_ = nullptr;
    check(status);
    std::lock_guard<std::mutex> lock(mutex);
    recorded.insert(stream_);
  }
  void capture_end() override {
    TORCH_CHECK(stream_, "no recording was begun");
    check(end(&graph_));
  }
  void instantiate() override { TORCH_CHECK(graph_, "there is no recording to instantiate"); }
  void replay() override {
    TORCH_CHECK(graph_, "there is no recording to replay");
    check(rdna_graph_launch(graph_, raw_current_stream(index_)));
  }
  void reset() override {
    rdna_graph_release(graph_);
    graph_ = nullptr;
  }
  c10::MempoolId_t pool() const override { return {0, 0}; }
  void enable_debug_mode() override { TORCH_CHECK_NOT_IMPLEMENTED(false, "graphs of rdna have no debug mode"); }
  void debug_dump(const std::string &) override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "graphs of rdna cannot be written to a file");
  }

 private:
  rdna_status end(rdna_graph **out_graph) {
    rdna_stream *stream = std::exchange(stream_, nullptr);
    {
      std::lock_guard<std::mutex> lock(mutex);
      recorded.erase(stream);
    }
    return rdna_graph_end(stream, out_graph);
  }

  c10::DeviceIndex index_ = -1;
  rdna_stream *stream_ = nullptr;  // while it is recorded
  rdna_graph *graph_ = nullptr;
};

}  // namespace
}  // namespace rdna_torch

namespace at {
using RdnaGraph = rdna_torch::Graph;
REGISTER_GRAPH_IMPL(RDNA, RdnaGraph)  // the name that PyTorch has for the device type once it is renamed
}  // namespace at
#endif
