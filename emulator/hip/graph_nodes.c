// What nodes of graphs do: made, asked and told anew, in a graph and in what was made of it.
#include <stdlib.h>
#include <string.h>

#include "hip/graph.h"

// ---- tasks

static int make(int code, const struct emu_work *work, struct emu_task **out) {
  if (code != HIP_SUCCESS) return code;
  *out = emu_task_make(*work);
  return *out ? HIP_SUCCESS : HIP_OUT_OF_MEMORY;
}

int emu_task_of_kernel(const struct emu_kernel_node *with, struct emu_task **out) {
  struct emu_work work;
  if (!with) return HIP_INVALID_VALUE;
  struct emu_launch launch = {.groups = {with->grid.x, with->grid.y, with->grid.z},
                              .threads = {with->block.x, with->block.y, with->block.z},
                              .lds = with->lds,
                              .parameters = with->parameters};
  int code = emu_registered_function(with->function, &launch.function);
  bool by_symbol = code == HIP_SUCCESS;
  if (!by_symbol) launch.function = emu_function_known(with->function);
  if (launch.function) code = HIP_SUCCESS;
  if (code == HIP_SUCCESS && with->extra) code = emu_launch_extra(with->extra, &launch.packed, &launch.packed_bytes);
  if (code == HIP_SUCCESS) code = emu_launch_work(&launch, emu_current(), &work);
  code = make(code, &work, out);
  if (code == HIP_SUCCESS && by_symbol) (*out)->symbol = with->function;
  return code;
}

int emu_task_of_copy(const struct emu_copy_3d *with, struct emu_task **out) {
  struct emu_work work;
  int code = make(emu_copy_3d_work(with, &work), &work, out);
  if (code == HIP_SUCCESS) (*out)->told = true;
  if (code == HIP_SUCCESS) (*out)->copy = *with;
  return code;
}

int emu_task_of_bytes(void *dst, const void *src, size_t bytes, int kind, struct emu_task **out) {
  struct emu_work work;
  return make(emu_copy_work(dst, src, bytes, kind, &work), &work, out);
}

int emu_task_of_fill(const struct emu_fill_node *with, struct emu_task **out) {
  struct emu_work work;
  if (!with || (with->element != 1 && with->element != 2 && with->element != 4) || with->width > SIZE_MAX / 8)
    return HIP_INVALID_VALUE;
  int code = emu_fill_work(with->dst, with->pitch, with->width * with->element, with->height, with->element,
                           with->value, &work);
  return make(code, &work, out);
}

int emu_task_of_host(const struct emu_host_node *with, struct emu_task **out) {
  struct emu_work work;
  if (!with || !with->function) return HIP_INVALID_VALUE;
  return make(emu_callback_work(with->function, with->data, &work), &work, out);
}

int emu_task_of_graph(struct emu_graph *graph, struct emu_task **out) {
  struct emu_graph *clone;
  if (!graph) return HIP_INVALID_VALUE;
  int code = emu_graph_clone(graph, &clone);
  if (code != HIP_SUCCESS) return code;
  *out = emu_task_make((struct emu_work){.node = EMU_NODE_GRAPH});
  if (*out) {
    (*out)->child = clone;
  } else {
    emu_graph_release(clone);
  }
  return *out ? HIP_SUCCESS : HIP_OUT_OF_MEMORY;
}

int emu_task_of_event(struct emu_event *event, enum emu_node_kind kind, struct emu_task **out) {
  if (!event) return HIP_INVALID_VALUE;
  *out = emu_task_make((struct emu_work){.node = kind});
  if (!*out) return HIP_OUT_OF_MEMORY;
  emu_event_retain(event);
  (*out)->event = event;
  return HIP_SUCCESS;
}

// ---- memory of graphs: there from the node's making on, and until nothing has the node any more or hipFree is called

static struct {
  pthread_mutex_t lock;
  void **blocks;
  size_t count, room;
  uint64_t used[EMU_MAX_DEVICES], most[EMU_MAX_DEVICES];
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct allocation {
  void *pointer;
  size_t bytes;
  int device;
  struct emu_access access[];  // as the program told it
};

static void release_allocation(void *context) {
  struct allocation *a = context;
  pthread_mutex_lock(&memory.lock);
  memory.used[a->device] -= a->bytes;
  for (size_t i = 0; i < memory.count; i++)
    if (memory.blocks[i] == a->pointer) {
      memory.blocks[i] = memory.blocks[--memory.count];
      (void)emu_block_release(a->pointer);  // hipFree may have been called
      break;
    }
  pthread_mutex_unlock(&memory.lock);
  free(a);
}

static bool note(const struct allocation *a) {
  pthread_mutex_lock(&memory.lock);
  bool good = memory.count < memory.room;
  if (!good) {
    void **grown = realloc(memory.blocks, (2 * memory.room + 16) * sizeof *grown);
    good = grown != NULL;
    if (grown) memory.blocks = grown;
    if (grown) memory.room = 2 * memory.room + 16;
  }
  if (good) {
    memory.blocks[memory.count++] = a->pointer;
    memory.used[a->device] += a->bytes;
    if (memory.used[a->device] > memory.most[a->device]) memory.most[a->device] = memory.used[a->device];
  }
  pthread_mutex_unlock(&memory.lock);
  return good;
}

bool emu_graph_allocated(const void *pointer) {
  bool found = false;
  pthread_mutex_lock(&memory.lock);
  for (size_t i = 0; i < memory.count && !found; i++) found = memory.blocks[i] == pointer;
  pthread_mutex_unlock(&memory.lock);
  return found;
}

static int pass_on(void *context) { return HIP_SUCCESS; }

enum { ON_DEVICE = 1, ACCESS_NONE = 0, ACCESS_READ = 1, ACCESS_READ_WRITE = 3 };

// Whether all devices that the node names may be given what it says of them.
static int check_access(const struct emu_allocation_node *with, const struct emu_device *owner) {
  if (with->access_count && !with->access) return HIP_INVALID_VALUE;
  for (size_t i = 0; i < with->access_count; i++) {
    const struct emu_access *a = &with->access[i];
    const struct emu_device *device = a->location.type == ON_DEVICE ? emu_device(a->location.id) : NULL;
    if (!device || a->flags < ACCESS_NONE || a->flags > ACCESS_READ_WRITE) return HIP_INVALID_VALUE;
    if (a->flags == ACCESS_READ_WRITE) continue;
    if (device == owner || a->flags != ACCESS_NONE) {
      emu_say("memory of a graph that a device may only read, or its own device not at all, is not in the emulator");
      return HIP_NOT_SUPPORTED;
    }
  }
  return HIP_SUCCESS;
}

static int give_access(const struct allocation *a, size_t count) {
  int code = HIP_SUCCESS;
  for (size_t i = 0; code == HIP_SUCCESS && i < count; i++)
    if (a->access[i].flags == ACCESS_READ_WRITE)
      code = emu_block_lend(a->pointer, emu_device(a->access[i].location.id));
  return code;
}

static int allocate(const struct emu_allocation_node *with, struct emu_device *device, struct allocation **out) {
  size_t list = with->access_count * sizeof *with->access;
  struct allocation *a = malloc(sizeof *a + list);
  if (!a) return HIP_OUT_OF_MEMORY;
  *a = (struct allocation){.bytes = with->bytes, .device = device->index};
  if (list) memcpy(a->access, with->access, list);
  int code = emu_block_create(device, EMU_BLOCK_DEVICE, with->bytes, 0, NULL, &a->pointer);
  if (code == HIP_SUCCESS) code = give_access(a, with->access_count);
  if (code == HIP_SUCCESS) {
    *out = a;
    return code;
  }
  if (a->pointer) (void)emu_block_release(a->pointer);
  free(a);
  return code;
}

int emu_task_of_allocation(struct emu_allocation_node *with, struct emu_device *device, struct emu_task **out) {
  enum { MOST_ACCESS = 1 << 16 };
  struct allocation *a;
  if (!device || with->bytes == 0 || with->access_count > MOST_ACCESS) return HIP_INVALID_VALUE;
  int code = check_access(with, device);
  if (code == HIP_SUCCESS) code = allocate(with, device, &a);
  if (code != HIP_SUCCESS) return code;
  if (!note(a)) {
    (void)emu_block_release(a->pointer);
    free(a);
    return HIP_OUT_OF_MEMORY;
  }
  with->pointer = a->pointer;
  *out = emu_task_make((struct emu_work){pass_on, release_allocation, a, EMU_NODE_ALLOCATION});
  if (!*out) return HIP_OUT_OF_MEMORY;
  (*out)->allocation = *with;
  (*out)->allocation.access = with->access_count ? a->access : NULL;
  return HIP_SUCCESS;
}

int emu_task_of_free(void *pointer, struct emu_task **out) {
  if (!emu_graph_allocated(pointer)) return HIP_INVALID_VALUE;
  *out = emu_task_make((struct emu_work){pass_on, NULL, NULL, EMU_NODE_FREE});
  if (*out) (*out)->allocation.pointer = pointer;
  return *out ? HIP_SUCCESS : HIP_OUT_OF_MEMORY;
}

enum { USED_NOW, USED_MOST, RESERVED_NOW, RESERVED_MOST };  // hipGraphMemAttributeType

API int hipDeviceGetGraphMemAttribute(int device, int attribute, void *out) {
  if (!emu_device(device)) return emu_done(HIP_INVALID_DEVICE);
  if (!out || attribute < USED_NOW || attribute > RESERVED_MOST) return emu_done(HIP_INVALID_VALUE);
  pthread_mutex_lock(&memory.lock);
  *(uint64_t *)out = (attribute & 1 ? memory.most : memory.used)[device];
  pthread_mutex_unlock(&memory.lock);
  return emu_done(HIP_SUCCESS);
}
// The high marks alone can be set, and to 0 alone: they begin anew.
API int hipDeviceSetGraphMemAttribute(int device, int attribute, const void *value) {
  if (!emu_device(device)) return emu_done(HIP_INVALID_DEVICE);
  if (!value || (attribute != USED_MOST && attribute != RESERVED_MOST) || *(const uint64_t *)value)
    return emu_done(HIP_INVALID_VALUE);
  pthread_mutex_lock(&memory.lock);
  memory.most[device] = memory.used[device];
  pthread_mutex_unlock(&memory.lock);
  return emu_done(HIP_SUCCESS);
}
API int hipDeviceGraphMemTrim(int device) { return emu_done(emu_device(device) ? HIP_SUCCESS : HIP_INVALID_DEVICE); }

// ---- nodes are added

// |code| is what making the task gave.
static int add(struct emu_node **out, struct emu_graph *graph, struct emu_node *const *after, size_t count, int code,
               struct emu_task *task) {
  if (code != HIP_SUCCESS) return code;
  bool valid = out && graph && (after || !count);
  for (size_t i = 0; valid && i < count; i++) valid = after[i] && after[i]->graph == graph;
  if (!valid) {
    emu_task_release(task);
    return HIP_INVALID_VALUE;
  }
  *out = emu_graph_add(graph, task, after, count);
  return *out ? HIP_SUCCESS : HIP_OUT_OF_MEMORY;
}

#define PLACE struct emu_node **out, struct emu_graph *graph, struct emu_node *const *after, size_t count
#define ADD(making)             \
  struct emu_task *task = NULL; \
  int code = making;            \
  return emu_done(add(out, graph, after, count, code, task))

API int hipGraphAddKernelNode(PLACE, const struct emu_kernel_node *with) { ADD(emu_task_of_kernel(with, &task)); }
API int hipGraphAddMemcpyNode(PLACE, const struct emu_copy_3d *with) { ADD(emu_task_of_copy(with, &task)); }
API int hipGraphAddMemcpyNode1D(PLACE, void *dst, const void *src, size_t bytes, int kind) {
  ADD(emu_task_of_bytes(dst, src, bytes, kind, &task));
}
API int hipGraphAddMemsetNode(PLACE, const struct emu_fill_node *with) { ADD(emu_task_of_fill(with, &task)); }
API int hipGraphAddHostNode(PLACE, const struct emu_host_node *with) { ADD(emu_task_of_host(with, &task)); }
API int hipGraphAddChildGraphNode(PLACE, struct emu_graph *child) { ADD(emu_task_of_graph(child, &task)); }
API int hipGraphAddEventRecordNode(PLACE, struct emu_event *event) {
  ADD(emu_task_of_event(event, EMU_NODE_RECORD, &task));
}
API int hipGraphAddEventWaitNode(PLACE, struct emu_event *event) {
  ADD(emu_task_of_event(event, EMU_NODE_WAIT, &task));
}
API int hipGraphAddEmptyNode(PLACE) {
  ADD(make(HIP_SUCCESS, &(struct emu_work){pass_on, NULL, NULL, EMU_NODE_EMPTY}, &task));
}

static int allocation(struct emu_allocation_node *with, struct emu_task **out) {
  enum { PINNED = 1 };
  if (!with || with->pool.kind != PINNED || with->pool.location.type != ON_DEVICE) return HIP_INVALID_VALUE;
  return emu_task_of_allocation(with, emu_device(with->pool.location.id), out);
}
API int hipGraphAddMemAllocNode(PLACE, struct emu_allocation_node *with) { ADD(allocation(with, &task)); }
API int hipGraphAddMemFreeNode(PLACE, void *pointer) { ADD(emu_task_of_free(pointer, &task)); }
API int hipDrvGraphAddMemFreeNode(PLACE, void *pointer) { ADD(emu_task_of_free(pointer, &task)); }

static int bytes_of_symbol(const void *symbol, size_t offset, void *other, size_t bytes, int kind, bool to,
                           struct emu_task **out) {
  void *there;
  int code = emu_registered_range(symbol, bytes, offset, &there);
  if (code != HIP_SUCCESS) return code;
  return emu_task_of_bytes(to ? there : other, to ? other : there, bytes, kind, out);
}
API int hipGraphAddMemcpyNodeToSymbol(PLACE, const void *symbol, const void *src, size_t bytes, size_t offset,
                                      int kind) {
  ADD(bytes_of_symbol(symbol, offset, (void *)(uintptr_t)src, bytes, kind, true, &task));
}
API int hipGraphAddMemcpyNodeFromSymbol(PLACE, void *dst, const void *symbol, size_t bytes, size_t offset, int kind) {
  ADD(bytes_of_symbol(symbol, offset, dst, bytes, kind, false, &task));
}

// HIP_MEMSET_NODE_PARAMS
struct driver_fill {
  void *dst;
  size_t pitch;
  unsigned value, element;
  size_t width, height;
};
static int fill_of_driver(const struct driver_fill *with, struct emu_task **out) {
  if (!with) return HIP_INVALID_VALUE;
  return emu_task_of_fill(
      &(struct emu_fill_node){with->dst, with->element, with->height, with->pitch, with->value, with->width}, out);
}
API int hipDrvGraphAddMemsetNode(PLACE, const struct driver_fill *with, void *context) {
  ADD(fill_of_driver(with, &task));
}

// ---- and asked

#define NODE(node, wanted) ((node) && (node)->task->work.node == (wanted))

// The arguments' places are the node's own.
API int hipGraphKernelNodeGetParams(const struct emu_node *node, struct emu_kernel_node *out) {
  if (!NODE(node, EMU_NODE_KERNEL) || !out) return emu_done(HIP_INVALID_VALUE);
  int code = emu_launch_describe(node->task->work.context, out);
  if (code == HIP_SUCCESS && node->task->symbol) out->function = node->task->symbol;
  return emu_done(code);
}
API int hipGraphMemcpyNodeGetParams(const struct emu_node *node, struct emu_copy_3d *out) {
  if (!NODE(node, EMU_NODE_COPY) || !out) return emu_done(HIP_INVALID_VALUE);
  if (node->task->told) {
    *out = node->task->copy;
  } else {
    emu_copy_describe(node->task->work.context, out);
  }
  return emu_done(HIP_SUCCESS);
}
API int hipGraphMemsetNodeGetParams(const struct emu_node *node, struct emu_fill_node *out) {
  if (!NODE(node, EMU_NODE_FILL) || !out) return emu_done(HIP_INVALID_VALUE);
  emu_fill_describe(node->task->work.context, out);
  return emu_done(HIP_SUCCESS);
}
API int hipGraphHostNodeGetParams(const struct emu_node *node, struct emu_host_node *out) {
  if (!NODE(node, EMU_NODE_HOST) || !out) return emu_done(HIP_INVALID_VALUE);
  emu_callback_describe(node->task->work.context, out);
  return emu_done(HIP_SUCCESS);
}
// The graph is the node's own: what is added to it is what executables that are made later have.
API int hipGraphChildGraphNodeGetGraph(const struct emu_node *node, struct emu_graph **out) {
  if (!NODE(node, EMU_NODE_GRAPH) || !out) return emu_done(HIP_INVALID_VALUE);
  *out = node->task->child;
  return emu_done(HIP_SUCCESS);
}
static int event_of(const struct emu_node *node, enum emu_node_kind kind, struct emu_event **out) {
  if (!NODE(node, kind) || !out) return HIP_INVALID_VALUE;
  *out = node->task->event;
  return HIP_SUCCESS;
}
API int hipGraphEventRecordNodeGetEvent(const struct emu_node *node, struct emu_event **out) {
  return emu_done(event_of(node, EMU_NODE_RECORD, out));
}
API int hipGraphEventWaitNodeGetEvent(const struct emu_node *node, struct emu_event **out) {
  return emu_done(event_of(node, EMU_NODE_WAIT, out));
}
API int hipGraphMemAllocNodeGetParams(const struct emu_node *node, struct emu_allocation_node *out) {
  if (!NODE(node, EMU_NODE_ALLOCATION) || !out) return emu_done(HIP_INVALID_VALUE);
  *out = node->task->allocation;
  return emu_done(HIP_SUCCESS);
}
API int hipGraphMemFreeNodeGetParams(const struct emu_node *node, void *out) {
  if (!NODE(node, EMU_NODE_FREE) || !out) return emu_done(HIP_INVALID_VALUE);
  *(void **)out = node->task->allocation.pointer;
  return emu_done(HIP_SUCCESS);
}

// ---- and told anew, in the graph and in what was made of it

#define SET(making)                             \
  struct emu_task *task = NULL;                 \
  int code = node ? making : HIP_INVALID_VALUE; \
  return emu_done(code == HIP_SUCCESS ? emu_node_set(node, task) : code)
#define SET_IN(making)                               \
  struct emu_task *task = NULL;                      \
  int code = e && node ? making : HIP_INVALID_VALUE; \
  return emu_done(code == HIP_SUCCESS ? emu_executable_set(e, node, task) : code)
#define OF struct emu_node *node
#define IN struct emu_executable *e, struct emu_node *node

API int hipGraphKernelNodeSetParams(OF, const struct emu_kernel_node *with) { SET(emu_task_of_kernel(with, &task)); }
API int hipGraphExecKernelNodeSetParams(IN, const struct emu_kernel_node *with) {
  SET_IN(emu_task_of_kernel(with, &task));
}
API int hipGraphMemcpyNodeSetParams(OF, const struct emu_copy_3d *with) { SET(emu_task_of_copy(with, &task)); }
API int hipGraphExecMemcpyNodeSetParams(IN, const struct emu_copy_3d *with) { SET_IN(emu_task_of_copy(with, &task)); }
API int hipGraphMemcpyNodeSetParams1D(OF, void *dst, const void *src, size_t bytes, int kind) {
  SET(emu_task_of_bytes(dst, src, bytes, kind, &task));
}
API int hipGraphExecMemcpyNodeSetParams1D(IN, void *dst, const void *src, size_t bytes, int kind) {
  SET_IN(emu_task_of_bytes(dst, src, bytes, kind, &task));
}
API int hipGraphMemcpyNodeSetParamsToSymbol(OF, const void *symbol, const void *src, size_t bytes, size_t offset,
                                            int kind) {
  SET(bytes_of_symbol(symbol, offset, (void *)(uintptr_t)src, bytes, kind, true, &task));
}
API int hipGraphExecMemcpyNodeSetParamsToSymbol(IN, const void *symbol, const void *src, size_t bytes, size_t offset,
                                                int kind) {
  SET_IN(bytes_of_symbol(symbol, offset, (void *)(uintptr_t)src, bytes, kind, true, &task));
}
API int hipGraphMemcpyNodeSetParamsFromSymbol(OF, void *dst, const void *symbol, size_t bytes, size_t offset,
                                              int kind) {
  SET(bytes_of_symbol(symbol, offset, dst, bytes, kind, false, &task));
}
API int hipGraphExecMemcpyNodeSetParamsFromSymbol(IN, void *dst, const void *symbol, size_t bytes, size_t offset,
                                                  int kind) {
  SET_IN(bytes_of_symbol(symbol, offset, dst, bytes, kind, false, &task));
}
API int hipGraphMemsetNodeSetParams(OF, const struct emu_fill_node *with) { SET(emu_task_of_fill(with, &task)); }
API int hipGraphExecMemsetNodeSetParams(IN, const struct emu_fill_node *with) { SET_IN(emu_task_of_fill(with, &task)); }
API int hipDrvGraphExecMemsetNodeSetParams(IN, const struct driver_fill *with, void *context) {
  SET_IN(fill_of_driver(with, &task));
}
API int hipGraphHostNodeSetParams(OF, const struct emu_host_node *with) { SET(emu_task_of_host(with, &task)); }
API int hipGraphExecHostNodeSetParams(IN, const struct emu_host_node *with) { SET_IN(emu_task_of_host(with, &task)); }
API int hipGraphExecChildGraphNodeSetParams(IN, struct emu_graph *child) { SET_IN(emu_task_of_graph(child, &task)); }
API int hipGraphEventRecordNodeSetEvent(OF, struct emu_event *event) {
  SET(emu_task_of_event(event, EMU_NODE_RECORD, &task));
}
API int hipGraphExecEventRecordNodeSetEvent(IN, struct emu_event *event) {
  SET_IN(emu_task_of_event(event, EMU_NODE_RECORD, &task));
}
API int hipGraphEventWaitNodeSetEvent(OF, struct emu_event *event) {
  SET(emu_task_of_event(event, EMU_NODE_WAIT, &task));
}
API int hipGraphExecEventWaitNodeSetEvent(IN, struct emu_event *event) {
  SET_IN(emu_task_of_event(event, EMU_NODE_WAIT, &task));
}

// ---- one call for all kinds

// hipGraphNodeParams
struct node_parameters {
  int kind, reserved[3];
  union {
    long long room[29];
    struct emu_kernel_node kernel;
    struct {
      int flags, reserved[3];
      struct emu_copy_3d copy;
    } copy;
    struct emu_fill_node fill;
    struct emu_host_node host;
    struct emu_graph *graph;
    struct emu_event *event;
    struct emu_allocation_node allocation;
    void *freed;
  };
  long long reserved2;
};

static int task_of_any(struct node_parameters *with, struct emu_task **out) {
  if (!with) return HIP_INVALID_VALUE;
  switch ((enum emu_node_kind)with->kind) {
    case EMU_NODE_KERNEL:
      return emu_task_of_kernel(&with->kernel, out);
    case EMU_NODE_COPY:
      return with->copy.flags ? HIP_INVALID_VALUE : emu_task_of_copy(&with->copy.copy, out);
    case EMU_NODE_FILL:
      return emu_task_of_fill(&with->fill, out);
    case EMU_NODE_HOST:
      return emu_task_of_host(&with->host, out);
    case EMU_NODE_GRAPH:
      return emu_task_of_graph(with->graph, out);
    case EMU_NODE_EMPTY:
      return make(HIP_SUCCESS, &(struct emu_work){pass_on, NULL, NULL, EMU_NODE_EMPTY}, out);
    case EMU_NODE_WAIT:
    case EMU_NODE_RECORD:
      return emu_task_of_event(with->event, (enum emu_node_kind)with->kind, out);
    case EMU_NODE_ALLOCATION:
      return allocation(&with->allocation, out);
    case EMU_NODE_FREE:
      return emu_task_of_free(with->freed, out);
  }
  return HIP_INVALID_VALUE;
}
API int hipGraphAddNode(PLACE, struct node_parameters *with) { ADD(task_of_any(with, &task)); }
API int hipGraphNodeSetParams(OF, struct node_parameters *with) { SET(task_of_any(with, &task)); }
API int hipGraphExecNodeSetParams(IN, struct node_parameters *with) { SET_IN(task_of_any(with, &task)); }
