// Graphs: nodes of work with what they come after, from capturing a stream or added one by one. An executable graph is
// a list of the work in an order that keeps to that; its launch puts the list into a stream. Nodes are never changed.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "hip/hip.h"

struct node {
  struct emu_graph *graph;
  struct emu_work work;
  struct node **after;
  size_t after_count;
  bool placed;  // put_in_order has put it into the list
};

struct emu_graph {
  int references;
  bool spoilt;
  struct node **nodes;
  size_t count, room;
};

struct executable {
  int references;
  struct emu_graph *graph;  // whose nodes the work belongs to
  struct emu_work *works;
  size_t count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void change(int *references, int by, bool *last) {
  pthread_mutex_lock(&lock);
  *references += by;
  if (last) *last = *references == 0;
  pthread_mutex_unlock(&lock);
}

static void release_work(const struct emu_work *work) {
  if (work->release) work->release(work->context);
}

void emu_graph_release(struct emu_graph *graph) {
  bool last;
  change(&graph->references, -1, &last);
  if (!last) return;
  for (size_t i = 0; i < graph->count; i++) {
    release_work(&graph->nodes[i]->work);
    free(graph->nodes[i]->after);
    free(graph->nodes[i]);
  }
  free(graph->nodes);
  free(graph);
}

static struct emu_graph *make(void) {
  struct emu_graph *graph = calloc(1, sizeof *graph);
  if (graph) graph->references = 1;
  return graph;
}

static bool come_after(struct node *node, struct node *const *others, size_t count) {
  struct node **grown = realloc(node->after, (node->after_count + count + 1) * sizeof *grown);
  if (!grown) return false;
  node->after = grown;
  for (size_t i = 0; i < count; i++) grown[node->after_count++] = others[i];
  return true;
}

// The work is the node's, or released.
static struct node *add(struct emu_graph *graph, struct emu_work work, struct node *const *after, size_t count) {
  struct node *node = calloc(1, sizeof *node);
  bool good = node && come_after(node, after, count);
  if (good && graph->count == graph->room) {
    size_t room = graph->room ? 2 * graph->room : 16;
    struct node **grown = realloc(graph->nodes, room * sizeof(struct node *));
    good = grown != NULL;
    if (grown) graph->nodes = grown;
    if (grown) graph->room = room;
  }
  if (!good) {
    release_work(&work);
    if (node) free(node->after);
    free(node);
    return NULL;
  }
  node->graph = graph;
  node->work = work;
  graph->nodes[graph->count++] = node;
  return node;
}

// ---- capture

bool emu_graph_add(struct emu_graph *graph, struct emu_work work) {
  bool first = graph->count == 0;
  bool kept = add(graph, work, first ? NULL : &graph->nodes[graph->count - 1], !first) != NULL;
  if (!kept) graph->spoilt = true;
  return kept;
}

void emu_graph_spoil(struct emu_graph *graph) { graph->spoilt = true; }

API int hipStreamBeginCapture(void *handle, int mode) {
  struct emu_stream *stream = emu_stream_of(handle);
  if (!stream || mode < 0 || mode > 2) return emu_done(HIP_INVALID_VALUE);
  // the null stream cannot be captured, nor one that is captured already
  if (handle == NULL || handle == (void *)1 || emu_stream_captures(stream)) return emu_done(HIP_CAPTURE_UNSUPPORTED);
  struct emu_graph *graph = make();
  if (!graph) return emu_done(HIP_OUT_OF_MEMORY);
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

// ---- nodes

API int hipGraphCreate(struct emu_graph **out, unsigned flags) {
  if (!out || flags) return emu_done(HIP_INVALID_VALUE);
  *out = make();
  return emu_done(*out ? HIP_SUCCESS : HIP_OUT_OF_MEMORY);
}
API int hipGraphDestroy(struct emu_graph *graph) {
  if (!graph) return emu_done(HIP_INVALID_VALUE);
  emu_graph_release(graph);
  return emu_done(HIP_SUCCESS);
}

static int add_node(struct node **out, struct emu_graph *graph, struct node *const *after, size_t count,
                    struct emu_work work) {
  bool valid = out && graph && (after || !count);
  for (size_t i = 0; valid && i < count; i++) valid = after[i] && after[i]->graph == graph;
  if (!valid) {
    release_work(&work);
    return HIP_INVALID_VALUE;
  }
  *out = add(graph, work, after, count);
  return *out ? HIP_SUCCESS : HIP_OUT_OF_MEMORY;
}

struct dim3 {
  unsigned x, y, z;
};
// hipKernelNodeParams
struct kernel_node {
  struct dim3 block;
  void **extra;
  const void *symbol;
  struct dim3 grid;
  void **parameters;
  unsigned lds;
};
API int hipGraphAddKernelNode(struct node **out, struct emu_graph *graph, struct node *const *after, size_t count,
                              const struct kernel_node *with) {
  struct emu_work work;
  if (!with) return emu_done(HIP_INVALID_VALUE);
  struct emu_launch launch = {.groups = {with->grid.x, with->grid.y, with->grid.z},
                              .threads = {with->block.x, with->block.y, with->block.z},
                              .lds = with->lds,
                              .parameters = with->parameters};
  int code = emu_registered_function(with->symbol, &launch.function);
  if (code == HIP_SUCCESS && with->extra) code = emu_launch_extra(with->extra, &launch.packed, &launch.packed_bytes);
  if (code == HIP_SUCCESS) code = emu_launch_work(&launch, emu_current(), &work);
  return emu_done(code == HIP_SUCCESS ? add_node(out, graph, after, count, work) : code);
}

API int hipGraphAddMemcpyNode(struct node **out, struct emu_graph *graph, struct node *const *after, size_t count,
                              const void *parameters) {
  struct emu_work work;
  int code = emu_copy_3d_work(parameters, &work);
  return emu_done(code == HIP_SUCCESS ? add_node(out, graph, after, count, work) : code);
}
API int hipGraphAddMemcpyNode1D(struct node **out, struct emu_graph *graph, struct node *const *after, size_t count,
                                void *dst, const void *src, size_t bytes, int kind) {
  struct emu_work work;
  int code = emu_copy_work(dst, src, bytes, kind, &work);
  return emu_done(code == HIP_SUCCESS ? add_node(out, graph, after, count, work) : code);
}

// hipMemsetParams: width in elements
struct fill_node {
  void *dst;
  unsigned element;
  size_t height, pitch;
  unsigned value;
  size_t width;
};
API int hipGraphAddMemsetNode(struct node **out, struct emu_graph *graph, struct node *const *after, size_t count,
                              const struct fill_node *with) {
  struct emu_work work;
  if (!with || (with->element != 1 && with->element != 2 && with->element != 4) || with->width > SIZE_MAX / 8)
    return emu_done(HIP_INVALID_VALUE);
  int code = emu_fill_work(with->dst, with->pitch, with->width * with->element, with->height, with->element,
                           with->value, &work);
  return emu_done(code == HIP_SUCCESS ? add_node(out, graph, after, count, work) : code);
}

// hipHostNodeParams
struct host_node {
  void (*function)(void *data);
  void *data;
};
API int hipGraphAddHostNode(struct node **out, struct emu_graph *graph, struct node *const *after, size_t count,
                            const struct host_node *with) {
  struct emu_work work;
  if (!with || !with->function) return emu_done(HIP_INVALID_VALUE);
  int code = emu_callback_work(with->function, with->data, &work);
  return emu_done(code == HIP_SUCCESS ? add_node(out, graph, after, count, work) : code);
}

static int pass_on(void *context) { return HIP_SUCCESS; }

API int hipGraphAddEmptyNode(struct node **out, struct emu_graph *graph, struct node *const *after, size_t count) {
  return emu_done(add_node(out, graph, after, count, (struct emu_work){pass_on, NULL, NULL, EMU_NODE_EMPTY}));
}

API int hipGraphAddDependencies(struct emu_graph *graph, struct node *const *from, struct node *const *to,
                                size_t count) {
  if (!graph || (count && (!from || !to))) return emu_done(HIP_INVALID_VALUE);
  for (size_t i = 0; i < count; i++)
    if (!from[i] || !to[i] || from[i] == to[i] || from[i]->graph != graph || to[i]->graph != graph)
      return emu_done(HIP_INVALID_VALUE);
  for (size_t i = 0; i < count; i++)
    if (!come_after(to[i], &from[i], 1)) return emu_done(HIP_OUT_OF_MEMORY);
  return emu_done(HIP_SUCCESS);
}

// ---- questions

// Answers a query for nodes: without a list it sets their number; otherwise it fills the list as far as there is room,
// then with NULLs, and sets how many were written.
static int list(struct node *const *nodes, size_t count, bool (*wanted)(const struct node *node), struct node **out,
                size_t *room) {
  size_t found = 0;
  for (size_t i = 0; i < count; i++) {
    if (wanted && !wanted(nodes[i])) continue;
    if (out && found < *room) out[found] = nodes[i];
    found++;
  }
  for (size_t i = found; out && i < *room; i++) out[i] = NULL;
  if (!out || found < *room) *room = found;
  return HIP_SUCCESS;
}
static bool is_root(const struct node *node) { return node->after_count == 0; }

API int hipGraphGetNodes(struct emu_graph *graph, struct node **out, size_t *room) {
  return emu_done(graph && room ? list(graph->nodes, graph->count, NULL, out, room) : HIP_INVALID_VALUE);
}
API int hipGraphGetRootNodes(struct emu_graph *graph, struct node **out, size_t *room) {
  return emu_done(graph && room ? list(graph->nodes, graph->count, is_root, out, room) : HIP_INVALID_VALUE);
}
API int hipGraphNodeGetDependencies(const struct node *node, struct node **out, size_t *room) {
  return emu_done(node && room ? list(node->after, node->after_count, NULL, out, room) : HIP_INVALID_VALUE);
}
static bool comes_after(const struct node *node, const struct node *other) {
  for (size_t i = 0; i < node->after_count; i++)
    if (node->after[i] == other) return true;
  return false;
}
API int hipGraphNodeGetDependentNodes(const struct node *node, struct node **out, size_t *room) {
  if (!node || !room) return emu_done(HIP_INVALID_VALUE);
  size_t found = 0;
  for (size_t i = 0; i < node->graph->count; i++) {
    struct node *other = node->graph->nodes[i];
    if (!comes_after(other, node)) continue;
    if (out && found < *room) out[found] = other;
    found++;
  }
  for (size_t i = found; out && i < *room; i++) out[i] = NULL;
  if (!out || found < *room) *room = found;
  return emu_done(HIP_SUCCESS);
}
// The same of pairs: the second comes after the first.
API int hipGraphGetEdges(struct emu_graph *graph, struct node **from, struct node **to, size_t *room) {
  if (!graph || !room || !from != !to) return emu_done(HIP_INVALID_VALUE);
  size_t found = 0;
  for (size_t i = 0; i < graph->count; i++) {
    struct node *node = graph->nodes[i];
    for (size_t k = 0; k < node->after_count; k++, found++) {
      if (!from || found >= *room) continue;
      from[found] = node->after[k];
      to[found] = node;
    }
  }
  for (size_t i = found; from && i < *room; i++) from[i] = to[i] = NULL;
  if (!from || found < *room) *room = found;
  return emu_done(HIP_SUCCESS);
}
API int emu_graph_node_type(int major, const void *node, int *out) {
  if (!node || !out) return emu_done(HIP_INVALID_VALUE);
  *out = (int)((const struct node *)node)->work.node + (major == 5);
  return emu_done(HIP_SUCCESS);
}

// ---- execution

static bool is_ready(const struct node *node) {
  for (size_t i = 0; i < node->after_count; i++)
    if (!node->after[i]->placed) return false;
  return true;
}

// Lists the work so that each node comes after those that it depends on. Returns how many nodes could be listed: fewer
// than all when some depend on each other in a circle.
static size_t put_in_order(struct emu_graph *graph, struct emu_work *works) {
  size_t placed = 0;
  for (size_t i = 0; i < graph->count; i++) graph->nodes[i]->placed = false;
  for (size_t before = SIZE_MAX; placed != before;) {
    before = placed;
    for (size_t i = 0; i < graph->count; i++) {
      struct node *node = graph->nodes[i];
      if (node->placed || !is_ready(node)) continue;
      node->placed = true;
      works[placed++] = node->work;
    }
  }
  return placed;
}

API int hipGraphInstantiate(struct executable **out, struct emu_graph *graph, struct node **error_node, char *log,
                            size_t log_bytes) {
  if (!out || !graph) return emu_done(HIP_INVALID_VALUE);
  struct executable *e = calloc(1, sizeof *e);
  struct emu_work *works = calloc(graph->count + 1, sizeof *works);
  if (!e || !works) {
    free(e);
    free(works);
    return emu_done(HIP_OUT_OF_MEMORY);
  }
  *e = (struct executable){1, graph, works, put_in_order(graph, works)};
  if (e->count < graph->count) {
    for (size_t i = 0; error_node && i < graph->count; i++)
      if (!graph->nodes[i]->placed) *error_node = graph->nodes[i];
    emu_say("a graph cannot be instantiated: nodes of it depend on each other in a circle");
    free(works);
    free(e);
    return emu_done(HIP_INVALID_VALUE);
  }
  change(&graph->references, 1, NULL);
  *out = e;
  return emu_done(HIP_SUCCESS);
}
API int hipGraphInstantiateWithFlags(struct executable **out, struct emu_graph *graph, unsigned long long flags) {
  return flags ? emu_done(HIP_INVALID_VALUE) : hipGraphInstantiate(out, graph, NULL, NULL, 0);
}

static void release_executable(void *context) {
  struct executable *e = context;
  bool last;
  change(&e->references, -1, &last);
  if (!last) return;
  emu_graph_release(e->graph);
  free(e->works);
  free(e);
}

API int hipGraphLaunch(struct executable *e, void *handle) {
  struct emu_stream *stream = emu_stream_of(handle);
  if (!e || !stream) return emu_done(HIP_INVALID_VALUE);
  int code = HIP_SUCCESS;
  for (size_t i = 0; i < e->count && code == HIP_SUCCESS; i++)
    code = emu_stream_submit(stream, (struct emu_work){e->works[i].run, NULL, e->works[i].context, e->works[i].node},
                             NULL, NULL);
  if (code != HIP_SUCCESS) return emu_done(code);
  // the graph may be destroyed before it has run
  change(&e->references, 1, NULL);
  struct emu_work last = {pass_on, release_executable, e, EMU_NODE_EMPTY};
  return emu_done(emu_stream_submit(stream, last, NULL, NULL));
}

API int hipGraphExecDestroy(struct executable *e) {
  if (!e) return emu_done(HIP_INVALID_VALUE);
  release_executable(e);
  return emu_done(HIP_SUCCESS);
}
