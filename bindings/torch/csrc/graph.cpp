// Work of the current stream that is recorded once and replayed: torch.rdna.Graph, and torch.accelerator.Graph where
// PyTorch has it (2.10 and later).
#include "graph.h"

#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "device.h"
#include "rdna/stream.h"

namespace rdna_torch {
namespace {
std::mutex mutex;
std::set<const rdna_stream *> recorded;

// Memory that the recorded work frees stays with the graph: there are no pools to choose. Other threads may do as they
// like meanwhile.
class Recording {
 public:
  Recording() = default;
  Recording(const Recording &) = delete;
  Recording &operator=(const Recording &) = delete;
  ~Recording() {
    if (stream_ && end(nullptr) != RDNA_OK) TORCH_WARN(rdna_last_error());  // a recording that nobody ended
    rdna_graph_release(graph_);
  }

  void capture_begin() {
    TORCH_CHECK(!graph_, "this graph holds a recording; reset() it first");
    index_ = current_device();
    stream_ = raw_current_stream(index_);
    const rdna_status status = rdna_graph_begin(stream_);
    if (status != RDNA_OK) stream_ = nullptr;
    check(status);
    std::lock_guard<std::mutex> lock(mutex);
    recorded.insert(stream_);
  }
  void capture_end() {
    TORCH_CHECK(stream_, "no recording was begun");
    check(end(&graph_));
  }
  void instantiate() { TORCH_CHECK(graph_, "there is no recording to instantiate"); }  // it is ready when it ends
  void replay() {
    TORCH_CHECK(graph_, "there is no recording to replay");
    check(rdna_graph_launch(graph_, raw_current_stream(index_)));
  }
  void reset() {
    rdna_graph_release(graph_);
    graph_ = nullptr;
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

bool is_capturing() {
  const c10::DeviceIndex index = current_device();
  if (!device_is_open(index)) return false;
  const rdna_stream *stream = raw_current_stream(index);
  std::lock_guard<std::mutex> lock(mutex);
  return recorded.count(stream) != 0;
}

void define_graph(pybind11::module_ &m) {
  m.def("is_capturing", &is_capturing);
  pybind11::class_<Recording>(m, "Graph")
      .def(pybind11::init<>())
      .def("capture_begin", &Recording::capture_begin)
      .def("capture_end", &Recording::capture_end, pybind11::call_guard<pybind11::gil_scoped_release>())
      .def("instantiate", &Recording::instantiate)
      .def("replay", &Recording::replay)
      .def("reset", &Recording::reset, pybind11::call_guard<pybind11::gil_scoped_release>());
}
}  // namespace rdna_torch

#if __has_include(<ATen/core/GraphImplInterface.h>)
#include <ATen/core/GraphImplInterface.h>

namespace rdna_torch {
namespace {

class Graph final : public at::GraphImplInterface {
 public:
  explicit Graph(const at::GraphImplArgs &) {}
  void capture_begin(c10::MempoolId_t, at::GraphCaptureMode) override { recording_.capture_begin(); }
  void capture_end() override { recording_.capture_end(); }
  void instantiate() override { recording_.instantiate(); }
  void replay() override { recording_.replay(); }
  void reset() override { recording_.reset(); }
  c10::MempoolId_t pool() const override { return {0, 0}; }
  void enable_debug_mode() override { TORCH_CHECK_NOT_IMPLEMENTED(false, "graphs of rdna have no debug mode"); }
  void debug_dump(const std::string &) override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "graphs of rdna cannot be written to a file");
  }

 private:
  Recording recording_;
};

}  // namespace
}  // namespace rdna_torch

namespace at {
using RdnaGraph = rdna_torch::Graph;
REGISTER_GRAPH_IMPL(RDNA, RdnaGraph)  // the name that PyTorch has for the device type once it is renamed
}  // namespace at
#endif
