// What the files of graphs share.
//
//   task        what a node does; never changed, so that graphs, their clones and executables share it
//   node        a task, and what it comes after
//   capture     of a stream: the graph that what it is told goes to, and the nodes that the next one comes after
//   executable  tasks in an order, with the nodes that they are of; its launch puts them into a stream
#ifndef EMULATOR_HIP_GRAPH_H
#define EMULATOR_HIP_GRAPH_H

#include "hip/hip.h"
#include "hip/layouts.h"

struct emu_task {
  _Atomic int references;
  struct emu_work work;
  struct emu_graph *child;  // of a node that is a graph
  struct emu_event *event;  // of a node that records one or waits for it
  const void *symbol;       // of a kernel that was named by the host's symbol
  bool told;                // |copy| is how the program told a copy
  struct emu_copy_3d copy;
  struct emu_allocation_node allocation;  // of a node that allocates; its pointer also of one that frees
};

// A task of the work, which is its own from then on. NULL: no memory; the work was released.
struct emu_task *emu_task_make(struct emu_work work);
void emu_task_retain(struct emu_task *task);
void emu_task_release(struct emu_task *task);

struct emu_node {
  struct emu_graph *graph;
  struct emu_task *task;
  struct emu_node **after;
  size_t after_count;
  const struct emu_node *original;  // of a clone's
  bool placed;                      // an order that is being made has it
};

struct emu_user_object;
struct emu_graph {
  _Atomic int references;
  struct emu_node **nodes;
  size_t count, room;
  struct emu_user_object **objects;  // an entry for each reference
  size_t object_count;
};

struct emu_graph *emu_graph_make(void);
// Adds a node; the task is the node's, or released. NULL: no memory.
struct emu_node *emu_graph_add(struct emu_graph *graph, struct emu_task *task, struct emu_node *const *after,
                               size_t count);
int emu_graph_clone(const struct emu_graph *graph, struct emu_graph **out);
bool emu_node_come_after(struct emu_node *node, struct emu_node *const *others, size_t count);
size_t emu_node_index(const struct emu_node *node);
void emu_user_objects_release(struct emu_graph *graph);
bool emu_user_objects_share(struct emu_graph *with, const struct emu_graph *from);

// Tasks as programs tell them.
int emu_task_of_kernel(const struct emu_kernel_node *with, struct emu_task **out);
int emu_task_of_copy(const struct emu_copy_3d *with, struct emu_task **out);
int emu_task_of_bytes(void *dst, const void *src, size_t bytes, int kind, struct emu_task **out);
int emu_task_of_fill(const struct emu_fill_node *with, struct emu_task **out);
int emu_task_of_host(const struct emu_host_node *with, struct emu_task **out);
int emu_task_of_graph(struct emu_graph *graph, struct emu_task **out);
int emu_task_of_event(struct emu_event *event, enum emu_node_kind kind, struct emu_task **out);
// |device|'s, or of the one that the properties name, where |with| is given.
int emu_task_of_allocation(struct emu_allocation_node *with, struct emu_device *device, struct emu_task **out);
int emu_task_of_free(void *pointer, struct emu_task **out);
bool emu_graph_allocated(const void *pointer);  // by a node

// The task of a node of a graph, or of what an executable has of it, becomes |task|, whose reference it takes. What was
// made of the node before keeps what it had. HIP_INVALID_VALUE: of another kind, or not there.
struct emu_executable;
int emu_node_set(struct emu_node *node, struct emu_task *task);
int emu_executable_set(struct emu_executable *e, const struct emu_node *node, struct emu_task *task);

#endif
