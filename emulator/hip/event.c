// Events: a place in a stream's queue, and when the queue passed it.
#include <stdlib.h>
#include <time.h>

#include "hip/hip.h"

enum { EVENT_DISABLE_TIMING = 2 };

struct event {
  pthread_mutex_t lock;
  int references;
  unsigned flags;
  struct emu_stream *stream;  // of the last record; NULL before
  uint64_t number;
  uint64_t record, passed;  // number of the last record, and of the last one that its stream has reached
  double milliseconds;
};

static void release(struct event *event) {
  pthread_mutex_lock(&event->lock);
  bool last = --event->references == 0;
  pthread_mutex_unlock(&event->lock);
  if (!last) return;
  if (event->stream) emu_stream_release(event->stream);
  pthread_mutex_destroy(&event->lock);
  free(event);
}

struct mark {
  struct event *event;
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
  release(mark->event);
  free(mark);
}

API int hipEventCreateWithFlags(void **out, unsigned flags) {
  if (!out) return emu_done(HIP_INVALID_VALUE);
  if (!emu_current()) return emu_done(HIP_NO_DEVICE);
  struct event *event = calloc(1, sizeof *event);
  if (!event) return emu_done(HIP_OUT_OF_MEMORY);
  pthread_mutex_init(&event->lock, NULL);
  event->references = 1;
  event->flags = flags;
  *out = event;
  return emu_done(HIP_SUCCESS);
}
API int hipEventCreate(void **out) { return hipEventCreateWithFlags(out, 0); }

API int hipEventDestroy(struct event *event) {
  if (!event) return emu_done(HIP_INVALID_HANDLE);
  release(event);
  return emu_done(HIP_SUCCESS);
}

API int hipEventRecord(struct event *event, void *handle) {
  struct emu_stream *stream = emu_stream_of(handle);
  if (!event || !stream) return emu_done(HIP_INVALID_HANDLE);
  struct mark *mark = malloc(sizeof *mark);
  if (!mark) return emu_done(HIP_OUT_OF_MEMORY);
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
  }
  if (old) emu_stream_release(old);
  return emu_done(code);
}
API int hipEventRecordWithFlags(struct event *event, void *handle, unsigned flags) {
  return flags == 0 ? hipEventRecord(event, handle) : emu_done(HIP_INVALID_VALUE);
}

// The place of the last record in its stream, which is retained. A stream of NULL: never recorded.
static struct emu_dependency place(struct event *event) {
  pthread_mutex_lock(&event->lock);
  struct emu_dependency at = {event->stream, event->number};
  if (at.stream) emu_stream_retain(at.stream);
  pthread_mutex_unlock(&event->lock);
  return at;
}

API int hipEventSynchronize(struct event *event) {
  if (!event) return emu_done(HIP_INVALID_HANDLE);
  struct emu_dependency at = place(event);
  if (!at.stream) return emu_done(HIP_SUCCESS);
  emu_stream_wait(at.stream, at.number);
  int code = emu_stream_take_error(at.stream);
  emu_stream_release(at.stream);
  return emu_done(code);
}

API int hipEventQuery(struct event *event) {
  if (!event) return emu_done(HIP_INVALID_HANDLE);
  struct emu_dependency at = place(event);
  if (!at.stream) return emu_done(HIP_SUCCESS);
  int code = emu_stream_reached(at.stream, at.number) ? emu_stream_take_error(at.stream) : HIP_NOT_READY;
  emu_stream_release(at.stream);
  return emu_done(code);
}

API int hipStreamWaitEvent(void *handle, struct event *event, unsigned flags) {
  struct emu_stream *stream = emu_stream_of(handle);
  if (!stream || !event) return emu_done(HIP_INVALID_HANDLE);
  if (flags != 0) return emu_done(HIP_INVALID_VALUE);
  struct emu_dependency at = place(event);
  if (!at.stream) return emu_done(HIP_SUCCESS);
  int code = emu_stream_submit(stream, (struct emu_work){0}, &at, NULL);
  emu_stream_release(at.stream);
  return emu_done(code);
}

API int hipEventElapsedTime(float *milliseconds, struct event *start, struct event *end) {
  if (!milliseconds) return emu_done(HIP_INVALID_VALUE);
  if (!start || !end || (start->flags | end->flags) & EVENT_DISABLE_TIMING) return emu_done(HIP_INVALID_HANDLE);
  double times[2];
  struct event *events[2] = {start, end};
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
