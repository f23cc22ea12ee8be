// Graphs: nodes with what they come after, questions about them, and clones.
#include "hip/graph.h"

#include <stdlib.h>
#include <string.h>

// ---- tasks

struct emu_task *emu_task_make(struct emu_work work) {
  struct emu_task *task = calloc(1, sizeof *task);
  if (!task) {
    if (work.release) work.release(work.context);
    return NULL;
  }
  task->references = 1;
  task->work = work;
  return task;
}

void emu_task_retain(struct emu_task *task) { task->references++; }

void emu_task_release(struct emu_task *task) {
  if (!task || --task->references > 0) return;
  if (task->work.release) task->work.release(task->work.context);
  if (task->child) emu_graph_release(task->child);
  if (task->event) emu_event_release(task->event);
  free(task);
}

// ---- graphs and nodes

struct emu_graph *emu_graph_make(void) {
  struct emu_graph *graph = calloc(1, sizeof *graph);
  if (graph) graph->references = 1;
  return graph;
}

void emu_graph_retain(struct emu_graph *graph) { graph->references++; }

static void free_node(struct emu_node *node) {
  emu_task_release(node->task);
  free(node->after);
  free(node);
}

void emu_graph_release(struct emu_graph *graph) {
  if (--graph->references > 0) return;
  for (size_t i = 0; i < graph->count; i++) free_node(graph->nodes[i]);
  emu_user_objects_release(graph);
  free(graph->nodes);
  free(graph);
}

static bool comes_after(const struct emu_node *node, const struct emu_node *other) {
  for (size_t i = 0; i < node->after_count; i++)
    if (node->after[i] == other) return true;
  return false;
}

bool emu_node_come_after(struct emu_node *node, struct emu_node *const *others, size_t count) {
  struct emu_node **grown = realloc(node->after, (node->after_count + count + 1) * sizeof *grown);
  if (!grown) return false;
  node->after = grown;
  for (size_t i = 0; i < count; i++)
    if (!comes_after(node, others[i])) grown[node->after_count++] = others[i];
  return true;
}

struct emu_node *emu_graph_add(struct emu_graph *graph, struct emu_task *task, struct emu_node *const *after,
                               size_t count) {
  struct emu_node *node = calloc(1, sizeof *node);
  bool good = node && emu_node_come_after(node, after, count);
  if (good && graph->count == graph->room) {
    size_t room = graph->room ? 2 * graph->room : 16;
    struct emu_node **grown = realloc(graph->nodes, room * sizeof(struct emu_node *));
    good = grown != NULL;
    if (grown) graph->nodes = grown;
    if (grown) graph->room = room;
  }
  if (!good) {
    emu_task_release(task);
    if (node) free(node->after);
    free(node);
    return NULL;
  }
  node->graph = graph;
  node->task = task;
  graph->nodes[graph->count++] = node;
  return node;
}

size_t emu_node_index(const struct emu_node *node) {
  size_t at = 0;
  while (node->graph->nodes[at] != node) at++;
  return at;
}

int emu_node_set(struct emu_node *node, struct emu_task *task) {
  if (node->task->work.node != task->work.node) {
    emu_task_release(task);
    return HIP_INVALID_VALUE;
  }
  emu_task_release(node->task);
  node->task = task;
  return HIP_SUCCESS;
}

int emu_graph_clone(const struct emu_graph *graph, struct emu_graph **out) {
  struct emu_graph *clone = emu_graph_make();
  bool good = clone && emu_user_objects_share(clone, graph);
  for (size_t i = 0; good && i < graph->count; i++) {
    emu_task_retain(graph->nodes[i]->task);
    struct emu_node *node = emu_graph_add(clone, graph->nodes[i]->task, NULL, 0);
    good = node != NULL;
    if (good) node->original = graph->nodes[i];
  }
  for (size_t i = 0; good && i < graph->count; i++)
    for (size_t k = 0; good && k < graph->nodes[i]->after_count; k++)
      good = emu_node_come_after(clone->nodes[i], &clone->nodes[emu_node_index(graph->nodes[i]->after[k])], 1);
  if (clone && !good) emu_graph_release(clone);
  *out = good ? clone : NULL;
  return good ? HIP_SUCCESS : HIP_OUT_OF_MEMORY;
}

API int hipGraphCreate(struct emu_graph **out, unsigned flags) {
  if (!out || flags) return emu_done(HIP_INVALID_VALUE);
  *out = emu_graph_make();
  return emu_done(*out ? HIP_SUCCESS : HIP_OUT_OF_MEMORY);
}
API int hipGraphDestroy(struct emu_graph *graph) {
  if (!graph) return emu_done(HIP_INVALID_VALUE);
  emu_graph_release(graph);
  return emu_done(HIP_SUCCESS);
}
API int hipGraphClone(struct emu_graph **out, struct emu_graph *graph) {
  return emu_done(out && graph ? emu_graph_clone(graph, out) : HIP_INVALID_VALUE);
}
API int hipGraphNodeFindInClone(struct emu_node **out, const struct emu_node *original, struct emu_graph *clone) {
  if (!out || !original || !clone) return emu_done(HIP_INVALID_VALUE);
  for (size_t i = 0; i < clone->count; i++)
    if (clone->nodes[i]->original == original) {
      *out = clone->nodes[i];
      return emu_done(HIP_SUCCESS);
    }
  return emu_done(HIP_INVALID_VALUE);
}

static void come_no_more_after(struct emu_node *node, const struct emu_node *other) {
  size_t kept = 0;
  for (size_t i = 0; i < node->after_count; i++)
    if (node->after[i] != other) node->after[kept++] = node->after[i];
  node->after_count = kept;
}

API int hipGraphDestroyNode(struct emu_node *node) {
  if (!node) return emu_done(HIP_INVALID_VALUE);
  struct emu_graph *graph = node->graph;
  size_t at = emu_node_index(node);
  memmove(&graph->nodes[at], &graph->nodes[at + 1], (--graph->count - at) * sizeof *graph->nodes);
  for (size_t i = 0; i < graph->count; i++) come_no_more_after(graph->nodes[i], node);
  free_node(node);
  return emu_done(HIP_SUCCESS);
}

static bool are_pairs(const struct emu_graph *graph, struct emu_node *const *from, struct emu_node *const *to,
                      size_t count) {
  if (!graph || (count && (!from || !to))) return false;
  for (size_t i = 0; i < count; i++)
    if (!from[i] || !to[i] || from[i] == to[i] || from[i]->graph != graph || to[i]->graph != graph) return false;
  return true;
}
API int hipGraphAddDependencies(struct emu_graph *graph, struct emu_node *const *from, struct emu_node *const *to,
                                size_t count) {
  if (!are_pairs(graph, from, to, count)) return emu_done(HIP_INVALID_VALUE);
  for (size_t i = 0; i < count; i++)
    if (!emu_node_come_after(to[i], &from[i], 1)) return emu_done(HIP_OUT_OF_MEMORY);
  return emu_done(HIP_SUCCESS);
}
API int hipGraphRemoveDependencies(struct emu_graph *graph, struct emu_node *const *from, struct emu_node *const *to,
                                   size_t count) {
  bool valid = are_pairs(graph, from, to, count);
  for (size_t i = 0; valid && i < count; i++) valid = comes_after(to[i], from[i]);
  if (!valid) return emu_done(HIP_INVALID_VALUE);
  for (size_t i = 0; i < count; i++) come_no_more_after(to[i], from[i]);
  return emu_done(HIP_SUCCESS);
}

// ---- questions

// Answers a query for nodes: without a list it sets their number; otherwise it fills the list as far as there is room,
// then with NULLs, and sets how many were written.
static int list(struct emu_node *const *nodes, size_t count, bool (*wanted)(const struct emu_node *node),
                struct emu_node **out, size_t *room) {
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
static bool is_root(const struct emu_node *node) { return node->after_count == 0; }

API int hipGraphGetNodes(struct emu_graph *graph, struct emu_node **out, size_t *room) {
  return emu_done(graph && room ? list(graph->nodes, graph->count, NULL, out, room) : HIP_INVALID_VALUE);
}
API int hipGraphGetRootNodes(struct emu_graph *graph, struct emu_node **out, size_t *room) {
  return emu_done(graph && room ? list(graph->nodes, graph->count, is_root, out, room) : HIP_INVALID_VALUE);
}
API int hipGraphNodeGetDependencies(const struct emu_node *node, struct emu_node **out, size_t *room) {
  return emu_done(node && room ? list(node->after, node->after_count, NULL, out, room) : HIP_INVALID_VALUE);
}
API int hipGraphNodeGetDependentNodes(const struct emu_node *node, struct emu_node **out, size_t *room) {
  if (!node || !room) return emu_done(HIP_INVALID_VALUE);
  size_t found = 0;
  for (size_t i = 0; i < node->graph->count; i++) {
    struct emu_node *other = node->graph->nodes[i];
    if (!comes_after(other, node)) continue;
    if (out && found < *room) out[found] = other;
    found++;
  }
  for (size_t i = found; out && i < *room; i++) out[i] = NULL;
  if (!out || found < *room) *room = found;
  return emu_done(HIP_SUCCESS);
}
// The same of pairs: the second comes after the first.
API int hipGraphGetEdges(struct emu_graph *graph, struct emu_node **from, struct emu_node **to, size_t *room) {
  if (!graph || !room || !from != !to) return emu_done(HIP_INVALID_VALUE);
  size_t found = 0;
  for (size_t i = 0; i < graph->count; i++) {
    struct emu_node *node = graph->nodes[i];
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
  *out = (int)((const struct emu_node *)node)->task->work.node + (major == 5);
  return emu_done(HIP_SUCCESS);
}

// ---- what programs hang on graphs

struct emu_user_object {
  _Atomic unsigned references;
  void (*destroy)(void *data);
  void *data;
};

static void let_go(struct emu_user_object *object, unsigned count) {
  if ((object->references -= count) > 0) return;
  object->destroy(object->data);
  free(object);
}

void emu_user_objects_release(struct emu_graph *graph) {
  for (size_t i = 0; i < graph->object_count; i++) let_go(graph->objects[i], 1);
  free(graph->objects);
}

static bool keep(struct emu_graph *graph, struct emu_user_object *object, unsigned count) {
  struct emu_user_object **grown = realloc(graph->objects, (graph->object_count + count + 1) * sizeof *grown);
  if (!grown) return false;
  graph->objects = grown;
  for (unsigned i = 0; i < count; i++) grown[graph->object_count++] = object;
  return true;
}

bool emu_user_objects_share(struct emu_graph *with, const struct emu_graph *from) {
  for (size_t i = 0; i < from->object_count; i++) {
    if (!keep(with, from->objects[i], 1)) return false;
    from->objects[i]->references++;
  }
  return true;
}

API int hipUserObjectCreate(struct emu_user_object **out, void *data, void (*destroy)(void *), unsigned references,
                            unsigned flags) {
  enum { NO_WAIT = 1 };  // hipUserObjectNoDestructorSync, which has to be asked for
  if (!out || !destroy || references == 0 || references > INT32_MAX || flags != NO_WAIT)
    return emu_done(HIP_INVALID_VALUE);
  *out = calloc(1, sizeof **out);
  if (!*out) return emu_done(HIP_OUT_OF_MEMORY);
  **out = (struct emu_user_object){references, destroy, data};
  return emu_done(HIP_SUCCESS);
}
API int hipUserObjectRetain(struct emu_user_object *object, unsigned count) {
  if (!object || count == 0 || count > INT32_MAX) return emu_done(HIP_INVALID_VALUE);
  object->references += count;
  return emu_done(HIP_SUCCESS);
}
API int hipUserObjectRelease(struct emu_user_object *object, unsigned count) {
  if (!object || count == 0 || count > object->references) return emu_done(HIP_INVALID_VALUE);
  let_go(object, count);
  return emu_done(HIP_SUCCESS);
}
API int hipGraphRetainUserObject(struct emu_graph *graph, struct emu_user_object *object, unsigned count,
                                 unsigned flags) {
  enum { MOVE = 1 };
  if (!graph || !object || count == 0 || count > 1 << 20 || flags > MOVE) return emu_done(HIP_INVALID_VALUE);
  if (!keep(graph, object, count)) return emu_done(HIP_OUT_OF_MEMORY);
  if (flags != MOVE) object->references += count;
  return emu_done(HIP_SUCCESS);
}
API int hipGraphReleaseUserObject(struct emu_graph *graph, struct emu_user_object *object, unsigned count) {
  size_t held = 0, kept = 0;
  for (size_t i = 0; graph && i < graph->object_count; i++) held += graph->objects[i] == object;
  if (!object || count == 0 || count > held) return emu_done(HIP_INVALID_VALUE);
  for (size_t i = 0, gone = 0; i < graph->object_count; i++) {
    bool goes = graph->objects[i] == object && gone < count;
    gone += goes;
    if (!goes) graph->objects[kept++] = graph->objects[i];
  }
  graph->object_count = kept;
  let_go(object, count);
  return emu_done(HIP_SUCCESS);
}
