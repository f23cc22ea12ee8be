// Capture: what streams are told goes to a graph. A stream that waits for an event of one that is captured is captured
// with it, and must be waited for before the first one's capture ends:
//
//     origin   | begin | kernel a | record e |                   | wait for f | end
//     other                                  | wait e | kernel b | record f |
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "hip/graph.h"

// All streams that are captured into one graph.
struct session {
  int references;           // of captures and places
  struct emu_graph *graph;  // NULL once the capture has ended: places say then that it has
  bool own;                 // the graph was made for it, and goes to the program
  struct emu_stream *origin;
  unsigned long long id;
  bool spoilt, over;
};

struct emu_capture {
  struct session *session;
  struct emu_node **tails;  // what the stream's next node comes after
  size_t count;
  struct emu_capture *next;
  struct emu_stream *stream;
};

struct emu_capture_place {
  struct session *session;
  struct emu_node **nodes;
  size_t count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct emu_capture *all;
static unsigned long long ids;
static _Thread_local int thread_mode;  // hipStreamCaptureModeGlobal

// The lock is held. Returns a graph that is to be released without it, since tasks of the graph may have events, whose
// end forgets a place; or NULL.
static struct emu_graph *leave_session(struct session *session) {
  if (--session->references > 0) return NULL;
  struct emu_graph *graph = session->graph;
  free(session);
  return graph;
}

static void release_graph(struct emu_graph *graph) {
  if (graph) emu_graph_release(graph);
}

static bool set_tails(struct emu_capture *capture, struct emu_node *const *nodes, size_t count, bool more) {
  size_t kept = more ? capture->count : 0;
  struct emu_node **grown = malloc((kept + count + 1) * sizeof *grown);
  if (!grown) return false;
  for (size_t i = 0; i < kept; i++) grown[i] = capture->tails[i];
  for (size_t i = 0; i < count; i++) {
    bool there = false;
    for (size_t k = 0; k < kept; k++) there |= grown[k] == nodes[i];
    if (!there) grown[kept++] = nodes[i];
  }
  free(capture->tails);
  capture->tails = grown;
  capture->count = kept;
  return true;
}

// The lock is held.
static struct emu_capture *begin(struct session *session, struct emu_stream *stream, struct emu_node *const *nodes,
                                 size_t count) {
  struct emu_capture *capture = calloc(1, sizeof *capture);
  if (!capture) return NULL;
  *capture = (struct emu_capture){.session = session, .next = all, .stream = stream};
  if (!set_tails(capture, nodes, count, false)) {
    free(capture);
    return NULL;
  }
  session->references++;
  all = capture;
  return capture;
}

// The lock is held. Returns what leave_session does.
static struct emu_graph *end(struct emu_capture *capture) {
  for (struct emu_capture **c = &all; *c; c = &(*c)->next)
    if (*c == capture) {
      *c = capture->next;
      break;
    }
  struct emu_graph *graph = leave_session(capture->session);
  free(capture->tails);
  free(capture);
  return graph;
}

static bool add_task(struct emu_capture *capture, struct emu_task *task) {
  struct emu_node *node = task ? emu_graph_add(capture->session->graph, task, capture->tails, capture->count) : NULL;
  if (!node || !set_tails(capture, &node, 1, false)) capture->session->spoilt = true;
  return node != NULL;
}

bool emu_capture_add(struct emu_capture *capture, struct emu_work work) {
  pthread_mutex_lock(&lock);
  bool kept = add_task(capture, emu_task_make(work));
  pthread_mutex_unlock(&lock);
  return kept;
}

void emu_capture_spoil(struct emu_capture *capture) {
  pthread_mutex_lock(&lock);
  capture->session->spoilt = true;
  pthread_mutex_unlock(&lock);
}

void emu_capture_drop(struct emu_capture *capture) {
  pthread_mutex_lock(&lock);
  if (capture->stream == capture->session->origin) capture->session->over = true;
  capture->session->spoilt = true;
  struct emu_graph *graph = end(capture);
  pthread_mutex_unlock(&lock);
  release_graph(graph);
}

int emu_stream_capture_task(struct emu_stream *stream, struct emu_task *task) {
  struct emu_capture *capture = emu_stream_capture_of(stream);
  pthread_mutex_lock(&lock);
  bool kept = capture && add_task(capture, task);
  pthread_mutex_unlock(&lock);
  if (!capture) emu_task_release(task);
  return kept ? HIP_SUCCESS : HIP_OUT_OF_MEMORY;
}

// ---- events of captured streams

int emu_capture_record(struct emu_stream *stream, struct emu_capture_place **out) {
  struct emu_capture *capture = emu_stream_capture_of(stream);
  struct emu_capture_place *place = calloc(1, sizeof *place);
  if (!capture || !place) {
    free(place);
    return HIP_OUT_OF_MEMORY;
  }
  pthread_mutex_lock(&lock);
  place->nodes = malloc((capture->count + 1) * sizeof(struct emu_node *));
  if (place->nodes) {
    memcpy(place->nodes, capture->tails, capture->count * sizeof(struct emu_node *));
    place->count = capture->count;
    place->session = capture->session;
    place->session->references++;
  }
  pthread_mutex_unlock(&lock);
  if (!place->nodes) {
    free(place);
    return HIP_OUT_OF_MEMORY;
  }
  *out = place;
  return HIP_SUCCESS;
}

void emu_capture_forget(struct emu_capture_place *place) {
  if (!place) return;
  pthread_mutex_lock(&lock);
  struct emu_graph *graph = leave_session(place->session);
  pthread_mutex_unlock(&lock);
  release_graph(graph);
  free(place->nodes);
  free(place);
}

int emu_capture_wait(struct emu_stream *stream, const struct emu_capture_place *place) {
  struct emu_capture *capture = emu_stream_capture_of(stream), *begun = NULL;
  int code = HIP_SUCCESS;
  pthread_mutex_lock(&lock);
  if (place->session->over) {
    code = HIP_CAPTURED_EVENT;
  } else if (!capture) {
    begun = begin(place->session, stream, place->nodes, place->count);
    if (!begun) code = HIP_OUT_OF_MEMORY;
  } else if (capture->session != place->session) {
    capture->session->spoilt = place->session->spoilt = true;
    code = HIP_CAPTURE_MERGE;
  } else if (!set_tails(capture, place->nodes, place->count, true)) {
    code = HIP_OUT_OF_MEMORY;
  }
  pthread_mutex_unlock(&lock);
  if (begun) (void)emu_stream_capture(stream, begun);
  return code;
}

// ---- the calls

// |own|: the graph was made for the capture, whose it becomes; otherwise it is the program's and stays so.
static int begin_to(void *handle, struct emu_graph *graph, bool own, struct emu_node *const *after, size_t count) {
  struct emu_stream *stream = emu_stream_of(handle);
  struct session *session = calloc(1, sizeof *session);
  struct emu_capture *capture = NULL;
  struct emu_graph *unused = own ? graph : NULL;
  if (session) {
    if (!own) emu_graph_retain(graph);
    pthread_mutex_lock(&lock);
    *session = (struct session){.references = 1, .graph = graph, .own = own, .origin = stream, .id = ++ids};
    capture = begin(session, stream, after, count);
    unused = leave_session(session);
    pthread_mutex_unlock(&lock);
  }
  release_graph(unused);
  if (!capture) return HIP_OUT_OF_MEMORY;
  (void)emu_stream_capture(stream, capture);
  return HIP_SUCCESS;
}

static int may_begin(void *handle, int mode) {
  struct emu_stream *stream = emu_stream_of(handle);
  if (!stream || mode < 0 || mode > 2) return HIP_INVALID_VALUE;
  // the null stream cannot be captured, nor one that is captured already
  if (handle == NULL || handle == (void *)1 || emu_stream_captures(stream)) return HIP_CAPTURE_UNSUPPORTED;
  return HIP_SUCCESS;
}

API int hipStreamBeginCapture(void *handle, int mode) {
  int code = may_begin(handle, mode);
  if (code != HIP_SUCCESS) return emu_done(code);
  struct emu_graph *graph = emu_graph_make();
  if (!graph) return emu_done(HIP_OUT_OF_MEMORY);
  return emu_done(begin_to(handle, graph, true, NULL, 0));
}

// |edges| is for kinds of dependencies that kernels of other vendors have.
API int hipStreamBeginCaptureToGraph(void *handle, struct emu_graph *graph, struct emu_node *const *after,
                                     const void *edges, size_t count, int mode) {
  int code = may_begin(handle, mode);
  bool valid = graph && (after || !count);
  for (size_t i = 0; valid && i < count; i++) valid = after[i] && after[i]->graph == graph;
  if (code == HIP_SUCCESS && !valid) code = HIP_INVALID_VALUE;
  return emu_done(code == HIP_SUCCESS ? begin_to(handle, graph, false, after, count) : code);
}

// Whether the stream's last nodes are the origin's or come before them. Marks those that do.
static bool is_joined(const struct emu_capture *other, const struct emu_capture *origin) {
  const struct emu_graph *graph = origin->session->graph;
  for (size_t i = 0; i < graph->count; i++) graph->nodes[i]->placed = false;
  for (size_t i = 0; i < origin->count; i++) origin->tails[i]->placed = true;
  for (bool more = true; more;) {  // once, but in a graph whose first nodes were not captured
    more = false;
    for (size_t i = graph->count; i-- > 0;)
      for (size_t k = 0; graph->nodes[i]->placed && k < graph->nodes[i]->after_count; k++) {
        more |= !graph->nodes[i]->after[k]->placed;
        graph->nodes[i]->after[k]->placed = true;
      }
  }
  for (size_t i = 0; i < other->count; i++)
    if (!other->tails[i]->placed) return false;
  return true;
}

API int hipStreamEndCapture(void *handle, struct emu_graph **out) {
  struct emu_stream *stream = emu_stream_of(handle);
  if (!stream || !out) return emu_done(HIP_INVALID_VALUE);
  *out = NULL;
  struct emu_capture *capture = emu_stream_capture_of(stream);
  if (!capture) return emu_done(HIP_INVALID_VALUE);
  struct session *session = capture->session;
  if (session->origin != stream) return emu_done(HIP_CAPTURE_UNMATCHED);
  bool joined = true;
  struct emu_capture *others = NULL;
  pthread_mutex_lock(&lock);
  for (struct emu_capture **c = &all; *c;) {
    struct emu_capture *other = *c;
    if (other->session != session || other == capture) {
      c = &other->next;
      continue;
    }
    joined &= is_joined(other, capture);
    *c = other->next;
    other->next = others;
    others = other;
  }
  session->over = true;
  int code = session->spoilt ? HIP_CAPTURE_INVALIDATED : joined ? HIP_SUCCESS : HIP_CAPTURE_UNJOINED;
  struct emu_graph *graph = session->graph;
  bool own = session->own;
  pthread_mutex_unlock(&lock);
  (void)emu_stream_capture(stream, NULL);
  for (struct emu_capture *other = others; other; other = other->next) (void)emu_stream_capture(other->stream, NULL);
  pthread_mutex_lock(&lock);
  session->graph = NULL;
  while (others) {
    struct emu_capture *next = others->next;
    (void)end(others);
    others = next;
  }
  (void)end(capture);
  pthread_mutex_unlock(&lock);
  if (code == HIP_SUCCESS) *out = graph;
  if (code != HIP_SUCCESS || !own) emu_graph_release(graph);
  return emu_done(code);
}

enum { NOT_CAPTURED, ACTIVE, INVALIDATED };  // hipStreamCaptureStatus

static int status_of(const struct emu_capture *capture) {
  return !capture ? NOT_CAPTURED : capture->session->spoilt ? INVALIDATED : ACTIVE;
}

API int hipStreamIsCapturing(void *handle, int *status) {
  struct emu_stream *stream = emu_stream_of(handle);
  if (!stream || !status) return emu_done(HIP_INVALID_VALUE);
  *status = status_of(emu_stream_capture_of(stream));
  return emu_done(HIP_SUCCESS);
}

// The nodes are those that the stream's next one comes after; the list is there until then.
API int hipStreamGetCaptureInfo_v2(void *handle, int *status, unsigned long long *id, struct emu_graph **graph,
                                   struct emu_node *const **nodes, size_t *count) {
  struct emu_stream *stream = emu_stream_of(handle);
  if (!stream || !status) return emu_done(HIP_INVALID_VALUE);
  const struct emu_capture *capture = emu_stream_capture_of(stream);
  *status = status_of(capture);
  if (!capture) return emu_done(HIP_SUCCESS);
  if (id) *id = capture->session->id;
  if (graph) *graph = capture->session->graph;
  if (nodes) *nodes = capture->tails;
  if (count) *count = capture->count;
  return emu_done(HIP_SUCCESS);
}
API int hipStreamGetCaptureInfo(void *handle, int *status, unsigned long long *id) {
  return hipStreamGetCaptureInfo_v2(handle, status, id, NULL, NULL, NULL);
}

API int hipStreamUpdateCaptureDependencies(void *handle, struct emu_node *const *nodes, size_t count, unsigned flags) {
  enum { ADD, SET };
  struct emu_stream *stream = emu_stream_of(handle);
  struct emu_capture *capture = stream ? emu_stream_capture_of(stream) : NULL;
  bool valid = stream && (nodes || !count) && flags <= SET;
  for (size_t i = 0; valid && capture && i < count; i++) valid = nodes[i] && nodes[i]->graph == capture->session->graph;
  if (!valid) return emu_done(HIP_INVALID_VALUE);
  if (!capture) return emu_done(HIP_ILLEGAL_STATE);
  pthread_mutex_lock(&lock);
  bool good = set_tails(capture, nodes, count, flags == ADD);
  pthread_mutex_unlock(&lock);
  return emu_done(good ? HIP_SUCCESS : HIP_OUT_OF_MEMORY);
}

// The mode forbids calls that the emulator never refuses a thread.
API int hipThreadExchangeStreamCaptureMode(int *mode) {
  if (!mode || *mode < 0 || *mode > 2) return emu_done(HIP_INVALID_VALUE);
  int before = thread_mode;
  thread_mode = *mode;
  *mode = before;
  return emu_done(HIP_SUCCESS);
}
