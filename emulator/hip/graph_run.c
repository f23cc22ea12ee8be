// Executable graphs: a list of tasks in an order that keeps to what comes after what. What is done to the graph and its
// nodes afterwards does not change it.
#include <stdlib.h>

#include "hip/graph.h"

struct step {
  const struct emu_node *node;  // for who asks by it; it may be gone
  size_t index;                 // of the node in its graph
  size_t *after;                // by index
  size_t after_count;
  struct emu_task *task;
  struct emu_executable *child;  // of a node that is a graph
  bool disabled;
};

struct emu_executable {
  _Atomic int references;
  unsigned long long flags;
  struct step *steps;
  size_t count;
  struct emu_graph *objects;  // a graph without nodes, which has the graph's user objects
};

static void release_executable(void *context) {
  struct emu_executable *e = context;
  if (!e || --e->references > 0) return;
  for (size_t i = 0; i < e->count; i++) {
    emu_task_release(e->steps[i].task);
    release_executable(e->steps[i].child);
    free(e->steps[i].after);
  }
  if (e->objects) emu_graph_release(e->objects);
  free(e->steps);
  free(e);
}

static bool is_ready(const struct emu_node *node) {
  for (size_t i = 0; i < node->after_count; i++)
    if (!node->after[i]->placed) return false;
  return true;
}

static int build(struct emu_graph *graph, struct emu_executable **out, struct emu_node **error_node);

static int place(struct emu_executable *e, struct emu_node *node) {
  struct step *step = &e->steps[e->count++];
  *step = (struct step){.node = node, .index = emu_node_index(node), .task = node->task};
  emu_task_retain(node->task);
  step->after = calloc(node->after_count + 1, sizeof *step->after);
  if (!step->after) return HIP_OUT_OF_MEMORY;
  for (size_t i = 0; i < node->after_count; i++) step->after[step->after_count++] = emu_node_index(node->after[i]);
  return node->task->child ? build(node->task->child, &step->child, NULL) : HIP_SUCCESS;
}

// Nodes that depend on each other in a circle find no place.
static int place_all(struct emu_executable *e, struct emu_graph *graph) {
  for (size_t i = 0; i < graph->count; i++) graph->nodes[i]->placed = false;
  for (size_t before = SIZE_MAX; e->count != before;) {
    before = e->count;
    for (size_t i = 0; i < graph->count; i++) {
      struct emu_node *node = graph->nodes[i];
      if (node->placed || !is_ready(node)) continue;
      node->placed = true;
      int code = place(e, node);
      if (code != HIP_SUCCESS) return code;
    }
  }
  return e->count == graph->count ? HIP_SUCCESS : HIP_INVALID_VALUE;
}

static int build(struct emu_graph *graph, struct emu_executable **out, struct emu_node **error_node) {
  struct emu_executable *e = calloc(1, sizeof *e);
  if (!e) return HIP_OUT_OF_MEMORY;
  e->references = 1;
  e->steps = calloc(graph->count + 1, sizeof *e->steps);
  e->objects = emu_graph_make();
  int code = e->steps && e->objects && emu_user_objects_share(e->objects, graph) ? HIP_SUCCESS : HIP_OUT_OF_MEMORY;
  if (code == HIP_SUCCESS) code = place_all(e, graph);
  if (code == HIP_SUCCESS) {
    *out = e;
    return code;
  }
  if (code == HIP_INVALID_VALUE) {
    for (size_t i = 0; error_node && i < graph->count; i++)
      if (!graph->nodes[i]->placed) *error_node = graph->nodes[i];
    emu_say("a graph cannot be instantiated: nodes of it depend on each other in a circle");
  }
  release_executable(e);
  return code;
}

// hipGraphInstantiateFlags: memory of nodes is there for all launches, nothing has to be uploaded, and no node has a
// priority; a launch by a kernel is not there.
enum { AUTO_FREE = 1, UPLOAD = 2, BY_DEVICE = 4, NODE_PRIORITY = 8, ALL_FLAGS = 15 };

API int hipGraphInstantiate(struct emu_executable **out, struct emu_graph *graph, struct emu_node **error_node,
                            char *log, size_t log_bytes) {
  return emu_done(out && graph ? build(graph, out, error_node) : HIP_INVALID_VALUE);
}
API int hipGraphInstantiateWithFlags(struct emu_executable **out, struct emu_graph *graph, unsigned long long flags) {
  if (!out || !graph || flags & ~(unsigned long long)ALL_FLAGS) return emu_done(HIP_INVALID_VALUE);
  if (flags & BY_DEVICE) return emu_done(HIP_NOT_SUPPORTED);
  int code = build(graph, out, NULL);
  if (code == HIP_SUCCESS) (*out)->flags = flags;
  return emu_done(code);
}
// hipGraphInstantiateParams
struct instantiation {
  struct emu_node *error_node;
  unsigned long long flags;
  int result;
  void *upload_stream;
};
API int hipGraphInstantiateWithParams(struct emu_executable **out, struct emu_graph *graph,
                                      struct instantiation *with) {
  enum { RESULT_ERROR = 1, RESULT_STRUCTURE = 2, RESULT_UNSUPPORTED = 3 };
  if (!out || !graph || !with || with->flags & ~(unsigned long long)ALL_FLAGS) return emu_done(HIP_INVALID_VALUE);
  int code = with->flags & BY_DEVICE ? HIP_NOT_SUPPORTED : build(graph, out, &with->error_node);
  with->result = code == HIP_SUCCESS         ? 0
                 : code == HIP_INVALID_VALUE ? RESULT_STRUCTURE
                 : code == HIP_NOT_SUPPORTED ? RESULT_UNSUPPORTED
                                             : RESULT_ERROR;
  if (code == HIP_SUCCESS) (*out)->flags = with->flags;
  return emu_done(code);
}
API int hipGraphExecGetFlags(const struct emu_executable *e, unsigned long long *out) {
  if (!e || !out) return emu_done(HIP_INVALID_VALUE);
  *out = e->flags;
  return emu_done(HIP_SUCCESS);
}
API int hipGraphExecDestroy(struct emu_executable *e) {
  if (!e) return emu_done(HIP_INVALID_VALUE);
  release_executable(e);
  return emu_done(HIP_SUCCESS);
}
API int hipGraphUpload(struct emu_executable *e, void *stream) {
  return emu_done(e && emu_stream_of(stream) ? HIP_SUCCESS : HIP_INVALID_VALUE);
}

// ---- launches

static int run_task(void *context) {
  const struct emu_task *task = context;
  return task->work.run ? task->work.run(task->work.context) : HIP_SUCCESS;
}
static void release_task(void *context) { emu_task_release(context); }

static int launch(const struct emu_executable *e, struct emu_stream *stream) {
  int code = HIP_SUCCESS;
  for (size_t i = 0; i < e->count && code == HIP_SUCCESS; i++) {
    const struct step *step = &e->steps[i];
    struct emu_task *task = step->task;
    if (step->disabled) continue;
    if (step->child) {
      code = launch(step->child, stream);
    } else if (task->work.node == EMU_NODE_RECORD) {
      code = emu_event_record(task->event, stream);
    } else if (task->work.node == EMU_NODE_WAIT) {
      code = emu_event_wait(task->event, stream);
    } else {
      emu_task_retain(task);
      struct emu_work work = {run_task, release_task, task, task->work.node};
      code = emu_stream_submit(stream, work, NULL, NULL);
    }
  }
  return code;
}

// A stream that is captured gets the tasks themselves, of which programs may ask what they are.
static int add_to_capture(const struct emu_executable *e, struct emu_stream *stream) {
  int code = HIP_SUCCESS;
  for (size_t i = 0; i < e->count && code == HIP_SUCCESS; i++) {
    const struct step *step = &e->steps[i];
    if (step->disabled) continue;
    if (step->child) {
      code = add_to_capture(step->child, stream);
    } else {
      emu_task_retain(step->task);
      code = emu_stream_capture_task(stream, step->task);
    }
  }
  return code;
}

API int hipGraphLaunch(struct emu_executable *e, void *handle) {
  struct emu_stream *stream = emu_stream_of(handle);
  if (!e || !stream) return emu_done(HIP_INVALID_VALUE);
  return emu_done(emu_stream_captures(stream) ? add_to_capture(e, stream) : launch(e, stream));
}

// ---- changes

static struct step *step_of(const struct emu_executable *e, const struct emu_node *node) {
  for (size_t i = 0; e && node && i < e->count; i++)
    if (e->steps[i].node == node) return &e->steps[i];
  return NULL;
}

int emu_executable_set(struct emu_executable *e, const struct emu_node *node, struct emu_task *task) {
  struct step *step = step_of(e, node);
  struct emu_executable *child = NULL;
  int code = step && step->task->work.node == task->work.node ? HIP_SUCCESS : HIP_INVALID_VALUE;
  if (code == HIP_SUCCESS && task->child) code = build(task->child, &child, NULL);
  if (code != HIP_SUCCESS) {
    emu_task_release(task);
    return code;
  }
  emu_task_release(step->task);
  release_executable(step->child);
  step->task = task;
  step->child = child;
  return HIP_SUCCESS;
}

static bool can_be_disabled(const struct step *step) {
  return step && (step->task->work.node == EMU_NODE_KERNEL || step->task->work.node == EMU_NODE_COPY ||
                  step->task->work.node == EMU_NODE_FILL);
}
API int hipGraphNodeSetEnabled(struct emu_executable *e, const struct emu_node *node, unsigned enabled) {
  struct step *step = step_of(e, node);
  if (!can_be_disabled(step)) return emu_done(HIP_INVALID_VALUE);
  step->disabled = !enabled;
  return emu_done(HIP_SUCCESS);
}
API int hipGraphNodeGetEnabled(struct emu_executable *e, const struct emu_node *node, unsigned *out) {
  const struct step *step = step_of(e, node);
  if (!can_be_disabled(step) || !out) return emu_done(HIP_INVALID_VALUE);
  *out = !step->disabled;
  return emu_done(HIP_SUCCESS);
}

enum update { UPDATED, UPDATE_ERROR, UPDATE_TOPOLOGY, UPDATE_TYPE };  // hipGraphExecUpdateResult

static const struct step *step_at(const struct emu_executable *e, size_t index) {
  for (size_t i = 0; i < e->count; i++)
    if (e->steps[i].index == index) return &e->steps[i];
  return NULL;
}

static bool comes_after_same(const struct step *step, const struct emu_node *node) {
  size_t same = 0;
  for (size_t i = 0; i < node->after_count; i++)
    for (size_t k = 0; k < step->after_count; k++) same += step->after[k] == emu_node_index(node->after[i]);
  return same == node->after_count && same == step->after_count;
}

// Whether the graph is the one that the executable was made of, but for what its nodes do.
static enum update compare(const struct emu_executable *e, const struct emu_graph *graph,
                           struct emu_node **error_node) {
  if (e->count != graph->count) return UPDATE_TOPOLOGY;
  for (size_t i = 0; i < graph->count; i++) {
    const struct step *step = step_at(e, i);
    *error_node = graph->nodes[i];
    if (!step || !comes_after_same(step, graph->nodes[i])) return UPDATE_TOPOLOGY;
    if (step->task->work.node != graph->nodes[i]->task->work.node) return UPDATE_TYPE;
    enum update child = step->child ? compare(step->child, graph->nodes[i]->task->child, error_node) : UPDATED;
    if (child != UPDATED) return child;
  }
  *error_node = NULL;
  return UPDATED;
}

API int hipGraphExecUpdate(struct emu_executable *e, struct emu_graph *graph, struct emu_node **error_node,
                           int *result) {
  struct emu_node *wrong = NULL;
  if (!e || !graph) return emu_done(HIP_INVALID_VALUE);
  enum update update = compare(e, graph, &wrong);
  if (error_node) *error_node = wrong;
  if (result) *result = (int)update;
  if (update != UPDATED) return emu_done(HIP_GRAPH_EXEC_UPDATE_FAILURE);
  for (size_t i = 0; i < graph->count; i++) {
    const struct step *step = step_at(e, i);
    emu_task_retain(graph->nodes[i]->task);
    int code = emu_executable_set(e, step->node, graph->nodes[i]->task);
    if (code != HIP_SUCCESS) return emu_done(code);
  }
  return emu_done(HIP_SUCCESS);
}
