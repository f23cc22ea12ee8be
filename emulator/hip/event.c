// Events: a place in a stream's queue, and when the queue passed it.
#include <stdlib.h>
#include <time.h>

#include "hip/graph.h"
#include "hip/ipc_event.h"

enum { EVENT_DISABLE_TIMING = 2, EVENT_INTERPROCESS = 4 };

struct emu_event {
  pthread_mutex_t lock;
  int references;
  unsigned flags;
  struct emu_stream *stream;  // of the last record; NULL before
  uint64_t number;
  uint64_t record, passed;  // number of the last record, and of the last one that its stream has reached
  double milliseconds;
  struct emu_capture_place *captured;  // of the last record, if its stream was captured
  struct emu_ipc_event *shared;        // of one that other processes have too: all of what is above but its flags
};

void emu_event_retain(struct emu_event *event) {
  pthread_mutex_lock(&event->lock);
  event->references++;
  pthread_mutex_unlock(&event->lock);
}

void emu_event_release(struct emu_event *event) {
  pthread_mutex_lock(&event->lock);
  bool last = --event->references == 0;
  pthread_mutex_unlock(&event->lock);
  if (!last) return;
  if (event->stream) emu_stream_release(event->stream);
  emu_capture_forget(event->captured);
  if (event->shared) emu_ipc_event_release(event->shared);
  pthread_mutex_destroy(&event->lock);
  free(event);
}

struct mark {
  struct emu_event *event;
  uint64_t record;
};

static int pass(void *context) {
  struct mark *mark = context;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  pthread_mutex_lock(&mark->event->lock);
  mark->event->milliseconds = (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
  mark->event->passed = mark->record;
  pthread_mutex_unlock(&mark->event->lock);
  return HIP_SUCCESS;
}

static void release_mark(void *context) {
  struct mark *mark = context;
  emu_event_release(mark->event);
  free(mark);
}

struct emu_ipc_event *emu_event_ipc(const struct emu_event *event) { return event->shared; }

int emu_event_create(unsigned flags, struct emu_ipc_event *shared, struct emu_event **out) {
  struct emu_event *event = calloc(1, sizeof *event);
  if (!event) {
    if (shared) emu_ipc_event_release(shared);
    return HIP_OUT_OF_MEMORY;
  }
  pthread_mutex_init(&event->lock, NULL);
  event->references = 1;
  event->flags = flags;
  event->shared = shared;
  *out = event;
  return HIP_SUCCESS;
}

API int hipEventCreateWithFlags(struct emu_event **out, unsigned flags) {
  bool ipc = flags & EVENT_INTERPROCESS;
  if (!out || (ipc && !(flags & EVENT_DISABLE_TIMING))) return emu_done(HIP_INVALID_VALUE);
  if (!emu_current()) return emu_done(HIP_NO_DEVICE);
  struct emu_ipc_event *shared = ipc ? emu_ipc_event_create() : NULL;
  if (ipc && !shared) return emu_done(HIP_OUT_OF_MEMORY);
  return emu_done(emu_event_create(flags, shared, out));
}
API int hipEventCreate(struct emu_event **out) { return hipEventCreateWithFlags(out, 0); }

API int hipEventDestroy(struct emu_event *event) {
  if (!event) return emu_done(HIP_INVALID_HANDLE);
  emu_event_release(event);
  return emu_done(HIP_SUCCESS);
}

// The event is where the captured stream is, or nowhere in a capture any more.
static void put_captured(struct emu_event *event, struct emu_capture_place *place) {
  pthread_mutex_lock(&event->lock);
  struct emu_capture_place *old = event->captured;
  event->captured = place;
  pthread_mutex_unlock(&event->lock);
  emu_capture_forget(old);
}

// What a graph would do in other processes nobody says.
static int refuse_capture(struct emu_stream *stream) {
  emu_say("an event of other processes in a stream that is captured is not in the emulator");
  emu_capture_spoil(emu_stream_capture_of(stream));
  return HIP_NOT_SUPPORTED;
}

int emu_event_record(struct emu_event *event, struct emu_stream *stream) {
  if (event->shared)
    return emu_stream_captures(stream) ? refuse_capture(stream) : emu_ipc_event_record(event->shared, stream);
  if (emu_stream_captures(stream)) {
    struct emu_capture_place *place;
    int code = emu_capture_record(stream, &place);
    if (code == HIP_SUCCESS) put_captured(event, place);
    return code;
  }
  struct mark *mark = malloc(sizeof *mark);
  if (!mark) return HIP_OUT_OF_MEMORY;
  emu_stream_retain(stream);
  pthread_mutex_lock(&event->lock);
  *mark = (struct mark){event, event->record + 1};
  event->references++;
  uint64_t number;
  pthread_mutex_unlock(&event->lock);
  int code = emu_stream_submit(stream, (struct emu_work){pass, release_mark, mark, EMU_NODE_EMPTY}, NULL, &number);
  struct emu_stream *old = stream;
  if (code == HIP_SUCCESS) {
    pthread_mutex_lock(&event->lock);
    old = event->stream;
    event->stream = stream;
    event->number = number;
    event->record++;
    pthread_mutex_unlock(&event->lock);
    put_captured(event, NULL);
  }
  if (old) emu_stream_release(old);
  return code;
}

enum { EXTERNAL = 1 };  // hipEventRecordExternal, hipEventWaitExternal: a node of its own in a captured stream's graph

static int with_flags(struct emu_event *event, void *handle, unsigned flags, enum emu_node_kind kind) {
  struct emu_stream *stream = emu_stream_of(handle);
  struct emu_task *task;
  if (!event || !stream) return HIP_INVALID_HANDLE;
  if (flags > EXTERNAL) return HIP_INVALID_VALUE;
  if (flags != EXTERNAL || !emu_stream_captures(stream))
    return kind == EMU_NODE_RECORD ? emu_event_record(event, stream) : emu_event_wait(event, stream);
  int code = emu_task_of_event(event, kind, &task);
  return code == HIP_SUCCESS ? emu_stream_capture_task(stream, task) : code;
}

API int hipEventRecord(struct emu_event *event, void *handle) {
  return emu_done(with_flags(event, handle, 0, EMU_NODE_RECORD));
}
API int hipEventRecordWithFlags(struct emu_event *event, void *handle, unsigned flags) {
  return emu_done(with_flags(event, handle, flags, EMU_NODE_RECORD));
}

// The place of the last record in its stream, which is retained. A stream of NULL: never recorded.
static struct emu_dependency place(struct emu_event *event) {
  pthread_mutex_lock(&event->lock);
  struct emu_dependency at = {event->stream, event->number};
  if (at.stream) emu_stream_retain(at.stream);
  pthread_mutex_unlock(&event->lock);
  return at;
}

static bool is_captured(struct emu_event *event) {
  pthread_mutex_lock(&event->lock);
  bool captured = event->captured != NULL;
  pthread_mutex_unlock(&event->lock);
  return captured;
}

API int hipEventSynchronize(struct emu_event *event) {
  if (!event) return emu_done(HIP_INVALID_HANDLE);
  if (event->shared) return emu_done(emu_ipc_event_synchronize(event->shared));
  if (is_captured(event)) return emu_done(HIP_CAPTURED_EVENT);
  struct emu_dependency at = place(event);
  if (!at.stream) return emu_done(HIP_SUCCESS);
  emu_stream_wait(at.stream, at.number);
  int code = emu_stream_take_error(at.stream);
  emu_stream_release(at.stream);
  return emu_done(code);
}

API int hipEventQuery(struct emu_event *event) {
  if (!event) return emu_done(HIP_INVALID_HANDLE);
  if (event->shared) return emu_done(emu_ipc_event_reached(event->shared) ? HIP_SUCCESS : HIP_NOT_READY);
  if (is_captured(event)) return emu_done(HIP_CAPTURED_EVENT);
  struct emu_dependency at = place(event);
  if (!at.stream) return emu_done(HIP_SUCCESS);
  int code = emu_stream_reached(at.stream, at.number) ? emu_stream_take_error(at.stream) : HIP_NOT_READY;
  emu_stream_release(at.stream);
  return emu_done(code);
}

int emu_event_wait(struct emu_event *event, struct emu_stream *stream) {
  if (event->shared)
    return emu_stream_captures(stream) ? refuse_capture(stream) : emu_ipc_event_wait(event->shared, stream);
  pthread_mutex_lock(&event->lock);
  bool captured = event->captured != NULL;
  int joined = captured ? emu_capture_wait(stream, event->captured) : HIP_SUCCESS;
  pthread_mutex_unlock(&event->lock);
  if (captured) return joined;
  struct emu_dependency at = place(event);
  if (!at.stream) return HIP_SUCCESS;
  bool outside = emu_stream_captures(stream);
  int code = emu_stream_submit(stream, (struct emu_work){0}, &at, NULL);  // spoils a capture
  emu_stream_release(at.stream);
  return outside ? HIP_CAPTURE_ISOLATION : code;
}

API int hipStreamWaitEvent(void *handle, struct emu_event *event, unsigned flags) {
  return emu_done(with_flags(event, handle, flags, EMU_NODE_WAIT));
}

API int hipEventElapsedTime(float *milliseconds, struct emu_event *start, struct emu_event *end) {
  if (!milliseconds) return emu_done(HIP_INVALID_VALUE);
  if (!start || !end || (start->flags | end->flags) & EVENT_DISABLE_TIMING) return emu_done(HIP_INVALID_HANDLE);
  double times[2];
  struct emu_event *events[2] = {start, end};
  for (int i = 0; i < 2; i++) {
    pthread_mutex_lock(&events[i]->lock);
    times[i] = events[i]->milliseconds;
    bool recorded = events[i]->record > 0, passed = events[i]->passed == events[i]->record;
    pthread_mutex_unlock(&events[i]->lock);
    if (!recorded) return emu_done(HIP_INVALID_HANDLE);
    if (!passed) return emu_done(HIP_NOT_READY);
  }
  *milliseconds = (float)(times[1] - times[0]);
  return emu_done(HIP_SUCCESS);
}
