// Graphs, as capturing a stream makes them: a list of work in the order in which it was submitted. Nodes cannot be
// added, changed or looked at.
#include <pthread.h>
#include <stdlib.h>

#include "hip/hip.h"

// hipGraph_t and hipGraphExec_t both: an executable one is another reference. What it holds is never changed after
// the capture.
struct emu_graph {
  int references;
  bool spoilt;
  struct emu_work *works;
  size_t count, room;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void emu_graph_release(struct emu_graph *graph) {
  pthread_mutex_lock(&lock);
  bool last = --graph->references == 0;
  pthread_mutex_unlock(&lock);
  if (!last) return;
  for (size_t i = 0; i < graph->count; i++)
    if (graph->works[i].release) graph->works[i].release(graph->works[i].context);
  free(graph->works);
  free(graph);
}

static void retain(struct emu_graph *graph) {
  pthread_mutex_lock(&lock);
  graph->references++;
  pthread_mutex_unlock(&lock);
}

bool emu_graph_add(struct emu_graph *graph, struct emu_work work) {
  if (graph->count == graph->room) {
    size_t room = graph->room ? 2 * graph->room : 16;
    struct emu_work *grown = realloc(graph->works, room * sizeof *grown);
    if (!grown) {
      graph->spoilt = true;
      if (work.release) work.release(work.context);
      return false;
    }
    graph->works = grown;
    graph->room = room;
  }
  graph->works[graph->count++] = work;
  return true;
}

void emu_graph_spoil(struct emu_graph *graph) { graph->spoilt = true; }

API int hipStreamBeginCapture(void *handle, int mode) {
  struct emu_stream *stream = emu_stream_of(handle);
  if (!stream || mode < 0 || mode > 2) return emu_done(HIP_INVALID_VALUE);
  // the null stream cannot be captured, nor one that is captured already
  if (handle == NULL || handle == (void *)1 || emu_stream_captures(stream)) return emu_done(HIP_CAPTURE_UNSUPPORTED);
  struct emu_graph *graph = calloc(1, sizeof *graph);
  if (!graph) return emu_done(HIP_OUT_OF_MEMORY);
  graph->references = 1;
  emu_stream_capture(stream, graph);
  return emu_done(HIP_SUCCESS);
}

API int hipStreamEndCapture(void *handle, struct emu_graph **out) {
  struct emu_stream *stream = emu_stream_of(handle);
  if (!stream || !out) return emu_done(HIP_INVALID_VALUE);
  struct emu_graph *graph = emu_stream_capture(stream, NULL);
  *out = NULL;
  if (!graph) return emu_done(HIP_INVALID_VALUE);
  if (graph->spoilt) {
    emu_graph_release(graph);
    return emu_done(HIP_CAPTURE_INVALIDATED);
  }
  *out = graph;
  return emu_done(HIP_SUCCESS);
}

API int hipGraphInstantiate(struct emu_graph **out, struct emu_graph *graph, void **error_node, char *log,
                            size_t log_bytes) {
  if (!out || !graph) return emu_done(HIP_INVALID_VALUE);
  retain(graph);
  *out = graph;
  return emu_done(HIP_SUCCESS);
}
API int hipGraphInstantiateWithFlags(struct emu_graph **out, struct emu_graph *graph, unsigned long long flags) {
  return flags ? emu_done(HIP_INVALID_VALUE) : hipGraphInstantiate(out, graph, NULL, NULL, 0);
}

static int pass_on(void *context) { return HIP_SUCCESS; }
static void forget(void *context) { emu_graph_release(context); }

API int hipGraphLaunch(struct emu_graph *graph, void *handle) {
  struct emu_stream *stream = emu_stream_of(handle);
  if (!graph || !stream) return emu_done(HIP_INVALID_VALUE);
  int code = HIP_SUCCESS;
  for (size_t i = 0; i < graph->count && code == HIP_SUCCESS; i++)
    code = emu_stream_submit(stream, (struct emu_work){graph->works[i].run, NULL, graph->works[i].context}, NULL, NULL);
  if (code != HIP_SUCCESS) return emu_done(code);
  // the graph may be destroyed before it has run
  retain(graph);
  return emu_done(emu_stream_submit(stream, (struct emu_work){pass_on, forget, graph}, NULL, NULL));
}

static int destroy(struct emu_graph *graph) {
  if (!graph) return HIP_INVALID_VALUE;
  emu_graph_release(graph);
  return HIP_SUCCESS;
}
API int hipGraphExecDestroy(struct emu_graph *graph) { return emu_done(destroy(graph)); }
API int hipGraphDestroy(struct emu_graph *graph) { return emu_done(destroy(graph)); }
