// Streams are queues, each with a thread of its own: work runs in order within one, and at any time after it was
// queued. The null stream and blocking streams wait for each other, as HIP's legacy default stream does.
//
// An error of queued work stays with its stream until a call that waits for the stream or asks after it takes it.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hip/hip.h"
#include "hip/layouts.h"

enum { STREAM_NON_BLOCKING = 1 };

typedef struct command {
  struct command *next;
  struct emu_work work;
  uint64_t number;
  unsigned dependency_count;
  struct emu_dependency dependencies[];
} command;

struct emu_stream {
  struct emu_device *device;
  struct emu_stream *next;      // of the device
  struct emu_capture *capture;  // or NULL
  unsigned flags;
  int priority, references, error;
  unsigned long long id;
  uint32_t *cu_mask;  // of hipExtStreamCreateWithCUMask, or NULL
  uint32_t cu_words;
  bool is_null, started, closing;
  pthread_t thread;
  pthread_cond_t wake;
  command *head, *tail;
  uint64_t submitted, completed;
};

// One lock for all queues, since they wait for each other.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER;
static unsigned long long ids;
static _Thread_local struct emu_stream *thread_stream[EMU_MAX_DEVICES];

static void unlocked_release(struct emu_stream *stream) {
  if (--stream->references > 0) return;
  pthread_cond_destroy(&stream->wake);
  free(stream->cu_mask);
  free(stream);
}

void emu_stream_retain(struct emu_stream *stream) {
  pthread_mutex_lock(&lock);
  stream->references++;
  pthread_mutex_unlock(&lock);
}

void emu_stream_release(struct emu_stream *stream) {
  pthread_mutex_lock(&lock);
  unlocked_release(stream);
  pthread_mutex_unlock(&lock);
}

// Returns the stream's first error since the last call of this, and clears it. The lock is held.
static int take(struct emu_stream *stream) {
  int error = stream->error;
  if (error != HIP_SUCCESS) emu_report_untold(-1);
  stream->error = HIP_SUCCESS;
  return error;
}

static void *serve(void *context) {
  struct emu_stream *stream = context;
  pthread_mutex_lock(&lock);
  for (;;) {
    while (!stream->head && !stream->closing) pthread_cond_wait(&stream->wake, &lock);
    command *c = stream->head;
    if (!c) break;
    for (unsigned i = 0; i < c->dependency_count; i++) {
      while (c->dependencies[i].stream->completed < c->dependencies[i].number) pthread_cond_wait(&progress, &lock);
      unlocked_release(c->dependencies[i].stream);
    }
    pthread_mutex_unlock(&lock);
    int error = c->work.run ? c->work.run(c->work.context) : HIP_SUCCESS;
    if (c->work.release) c->work.release(c->work.context);
    pthread_mutex_lock(&lock);
    if (error != HIP_SUCCESS && stream->error == HIP_SUCCESS) {
      stream->error = error;
      emu_report_untold(1);
    }
    stream->completed = c->number;
    stream->head = c->next;
    if (!stream->head) stream->tail = NULL;
    free(c);
    pthread_cond_broadcast(&progress);
  }
  unlocked_release(stream);
  pthread_mutex_unlock(&lock);
  return NULL;
}

static struct emu_stream *create(struct emu_device *device, unsigned flags, int priority, bool is_null) {
  struct emu_stream *stream = calloc(1, sizeof *stream);
  if (!stream) return NULL;
  *stream =
      (struct emu_stream){.device = device, .flags = flags, .priority = priority, .references = 1, .is_null = is_null};
  pthread_cond_init(&stream->wake, NULL);
  pthread_mutex_lock(&lock);
  stream->id = ++ids;
  if (is_null && device->null_stream) {  // another thread was first
    unlocked_release(stream);
    stream = device->null_stream;
  } else {
    if (is_null) device->null_stream = stream;
    stream->next = device->streams;
    device->streams = stream;
  }
  pthread_mutex_unlock(&lock);
  return stream;
}

struct emu_stream *emu_stream_of(void *handle) {
  struct emu_device *device = emu_current();
  if (!device) return NULL;
  if (handle == NULL || handle == (void *)1) {
    pthread_mutex_lock(&lock);
    struct emu_stream *stream = device->null_stream;
    pthread_mutex_unlock(&lock);
    return stream ? stream : create(device, 0, 0, true);
  }
  if (handle == (void *)2) {
    if (!thread_stream[device->index]) thread_stream[device->index] = create(device, 0, 0, false);
    return thread_stream[device->index];
  }
  struct emu_state *s = emu_state();
  struct emu_stream *found = NULL;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < s->device_count && !found; i++)
    for (struct emu_stream *t = s->devices[i].streams; t; t = t->next)
      if (t == handle && !t->closing) found = t;
  pthread_mutex_unlock(&lock);
  return found;
}

struct emu_device *emu_stream_device(const struct emu_stream *stream) { return stream->device; }

static void depend(command *c, struct emu_stream *stream, uint64_t number) {
  if (stream->completed >= number) return;
  stream->references++;
  c->dependencies[c->dependency_count++] = (struct emu_dependency){stream, number};
}

static bool blocks(const struct emu_stream *stream) {
  return !(stream->flags & STREAM_NON_BLOCKING) && !stream->is_null;
}

static bool start(struct emu_stream *stream) {
  if (stream->started) return true;
  stream->references++;  // the thread's
  if (pthread_create(&stream->thread, NULL, serve, stream) != 0) {
    stream->references--;
    return false;
  }
  pthread_detach(stream->thread);
  stream->started = true;
  return true;
}

int emu_stream_submit(struct emu_stream *stream, struct emu_work work, const struct emu_dependency *after,
                      uint64_t *out_number) {
  unsigned room = 2;
  pthread_mutex_lock(&lock);
  if (stream->capture) {
    bool plain = work.run && !after && !out_number;
    if (!plain) emu_capture_spoil(stream->capture);
    bool kept = plain && emu_capture_add(stream->capture, work);
    pthread_mutex_unlock(&lock);
    if (!plain && work.release) work.release(work.context);
    return kept ? HIP_SUCCESS : plain ? HIP_OUT_OF_MEMORY : HIP_CAPTURE_UNSUPPORTED;
  }
  for (struct emu_stream *t = stream->device->streams; t; t = t->next) room++;
  command *c = calloc(1, sizeof *c + room * sizeof *c->dependencies);
  if (!c || !start(stream)) {
    pthread_mutex_unlock(&lock);
    free(c);
    if (work.release) work.release(work.context);
    return HIP_OUT_OF_MEMORY;
  }
  c->work = work;
  c->number = ++stream->submitted;
  if (out_number) *out_number = c->number;
  if (after && after->stream) depend(c, after->stream, after->number);
  if (stream->is_null) {
    for (struct emu_stream *t = stream->device->streams; t; t = t->next)
      if (blocks(t)) depend(c, t, t->submitted);
  } else if (blocks(stream) && stream->device->null_stream) {
    depend(c, stream->device->null_stream, stream->device->null_stream->submitted);
  }
  if (stream->tail) {
    stream->tail->next = c;
  } else {
    stream->head = c;
  }
  stream->tail = c;
  pthread_cond_signal(&stream->wake);
  pthread_mutex_unlock(&lock);
  return HIP_SUCCESS;
}

void emu_stream_wait(struct emu_stream *stream, uint64_t number) {
  pthread_mutex_lock(&lock);
  while (stream->completed < number) pthread_cond_wait(&progress, &lock);
  pthread_mutex_unlock(&lock);
}

bool emu_stream_reached(struct emu_stream *stream, uint64_t number) {
  pthread_mutex_lock(&lock);
  bool reached = stream->completed >= number;
  pthread_mutex_unlock(&lock);
  return reached;
}

int emu_stream_take_error(struct emu_stream *stream) {
  pthread_mutex_lock(&lock);
  int error = take(stream);
  pthread_mutex_unlock(&lock);
  return error;
}

struct emu_capture *emu_stream_capture(struct emu_stream *stream, struct emu_capture *capture) {
  pthread_mutex_lock(&lock);
  struct emu_capture *before = stream->capture;
  stream->capture = capture;
  pthread_mutex_unlock(&lock);
  return before;
}

struct emu_capture *emu_stream_capture_of(struct emu_stream *stream) {
  pthread_mutex_lock(&lock);
  struct emu_capture *capture = stream->capture;
  pthread_mutex_unlock(&lock);
  return capture;
}

bool emu_stream_captures(struct emu_stream *stream) { return emu_stream_capture_of(stream) != NULL; }

int emu_stream_finish(struct emu_stream *stream) {
  pthread_mutex_lock(&lock);
  if (stream->capture) {
    emu_capture_spoil(stream->capture);
    pthread_mutex_unlock(&lock);
    return HIP_CAPTURE_UNSUPPORTED;
  }
  uint64_t number = stream->submitted;
  int error = HIP_SUCCESS;
  if (stream->is_null) {
    for (struct emu_stream *t = stream->device->streams; t;) {
      if (t->completed < t->submitted && blocks(t)) {
        pthread_cond_wait(&progress, &lock);
        t = stream->device->streams;  // the list may have changed
      } else {
        t = t->next;
      }
    }
    for (struct emu_stream *t = stream->device->streams; t; t = t->next)
      if (blocks(t) && error == HIP_SUCCESS) error = take(t);
  }
  while (stream->completed < number) pthread_cond_wait(&progress, &lock);
  if (error == HIP_SUCCESS) error = take(stream);
  pthread_mutex_unlock(&lock);
  return error;
}

int emu_device_finish(struct emu_device *device) {
  int error = HIP_SUCCESS;
  pthread_mutex_lock(&lock);
  for (struct emu_stream *t = device->streams; t; t = t->next)
    if (t->capture) {  // which is not spoilt by that
      pthread_mutex_unlock(&lock);
      return HIP_CAPTURE_UNSUPPORTED;
    }
  for (struct emu_stream *t = device->streams; t;) {
    if (t->completed < t->submitted) {
      pthread_cond_wait(&progress, &lock);
      t = device->streams;
    } else {
      t = t->next;
    }
  }
  for (struct emu_stream *t = device->streams; t; t = t->next) {
    int own = take(t);
    if (error == HIP_SUCCESS) error = own;
  }
  pthread_mutex_unlock(&lock);
  return error;
}

API int hipStreamCreateWithPriority(void **out, unsigned flags, int priority) {
  struct emu_device *device = emu_current();
  if (!out || flags > STREAM_NON_BLOCKING) return emu_done(HIP_INVALID_VALUE);
  if (!device) return emu_done(HIP_NO_DEVICE);
  *out = create(device, flags, priority < -1 ? -1 : priority > 1 ? 1 : priority, false);
  return emu_done(*out ? HIP_SUCCESS : HIP_OUT_OF_MEMORY);
}
API int hipStreamCreateWithFlags(void **out, unsigned flags) { return hipStreamCreateWithPriority(out, flags, 0); }
API int hipStreamCreate(void **out) { return hipStreamCreateWithPriority(out, 0, 0); }

API int hipStreamDestroy(void *handle) {
  if (handle == NULL || handle == (void *)1 || handle == (void *)2) return emu_done(HIP_INVALID_HANDLE);
  struct emu_stream *stream = emu_stream_of(handle);
  if (!stream) return emu_done(HIP_INVALID_HANDLE);
  struct emu_capture *unfinished = emu_stream_capture(stream, NULL);
  if (unfinished) emu_capture_drop(unfinished);
  if (emu_stream_finish(stream) != HIP_SUCCESS) emu_report_untold(1);
  pthread_mutex_lock(&lock);
  stream->closing = true;
  for (struct emu_stream **t = &stream->device->streams; *t; t = &(*t)->next)
    if (*t == stream) {
      *t = stream->next;
      break;
    }
  pthread_cond_signal(&stream->wake);
  unlocked_release(stream);
  pthread_mutex_unlock(&lock);
  return emu_done(HIP_SUCCESS);
}

API int hipStreamSynchronize(void *handle) {
  struct emu_stream *stream = emu_stream_of(handle);
  return emu_done(stream ? emu_stream_finish(stream) : HIP_INVALID_HANDLE);
}

API int hipStreamQuery(void *handle) {
  struct emu_stream *stream = emu_stream_of(handle);
  if (!stream) return emu_done(HIP_INVALID_HANDLE);
  if (emu_stream_captures(stream)) return emu_done(emu_stream_finish(stream));
  pthread_mutex_lock(&lock);
  bool idle = stream->completed >= stream->submitted;
  pthread_mutex_unlock(&lock);
  return emu_done(idle ? emu_stream_take_error(stream) : HIP_NOT_READY);
}

API int hipStreamGetFlags(void *handle, unsigned *flags) {
  struct emu_stream *stream = emu_stream_of(handle);
  if (!stream || !flags) return emu_done(stream ? HIP_INVALID_VALUE : HIP_INVALID_HANDLE);
  *flags = stream->flags;
  return emu_done(HIP_SUCCESS);
}

API int hipStreamGetPriority(void *handle, int *priority) {
  struct emu_stream *stream = emu_stream_of(handle);
  if (!stream || !priority) return emu_done(stream ? HIP_INVALID_VALUE : HIP_INVALID_HANDLE);
  *priority = stream->priority;
  return emu_done(HIP_SUCCESS);
}

API int hipStreamGetDevice(void *handle, int *device) {
  struct emu_stream *stream = emu_stream_of(handle);
  if (!stream || !device) return emu_done(stream ? HIP_INVALID_VALUE : HIP_INVALID_HANDLE);
  *device = stream->device->index;
  return emu_done(HIP_SUCCESS);
}
API int hipGetStreamDeviceId(void *handle) {
  struct emu_stream *stream = emu_stream_of(handle);
  return stream ? stream->device->index : -1;
}

API int hipStreamGetId(void *handle, unsigned long long *id) {
  struct emu_stream *stream = emu_stream_of(handle);
  if (!stream || !id) return emu_done(stream ? HIP_INVALID_VALUE : HIP_INVALID_HANDLE);
  *id = stream->id;
  return emu_done(HIP_SUCCESS);
}

// A bit for each compute unit on which work of the stream may run: no result depends on it.
API int hipExtStreamCreateWithCUMask(void **out, uint32_t words, const uint32_t *mask) {
  if (!out || words == 0 || words > 1024 || !mask) return emu_done(HIP_INVALID_VALUE);
  uint32_t *copy = malloc(words * sizeof *copy);
  if (!copy) return emu_done(HIP_OUT_OF_MEMORY);
  memcpy(copy, mask, words * sizeof *copy);
  int code = hipStreamCreateWithFlags(out, 0);
  if (code != HIP_SUCCESS) {
    free(copy);
    return code;
  }
  struct emu_stream *stream = *out;
  stream->cu_mask = copy;
  stream->cu_words = words;
  return emu_done(HIP_SUCCESS);
}
// Words beyond the mask are 0; a stream without one runs on all units.
API int hipExtStreamGetCUMask(void *handle, uint32_t words, uint32_t *out) {
  struct emu_stream *stream = emu_stream_of(handle);
  if (!stream) return emu_done(HIP_INVALID_HANDLE);
  const struct emu_card *card = stream->device->card;
  uint32_t units = (uint32_t)card->wgps * (card->target->lanes == 32 ? 2 : 1);
  if (!out || words < (units + 31) / 32) return emu_done(HIP_INVALID_VALUE);
  for (uint32_t i = 0; i < words; i++) {
    uint32_t left = units > 32 * i ? units - 32 * i : 0, every = left >= 32 ? UINT32_MAX : (1u << left) - 1;
    out[i] = stream->cu_mask ? (i < stream->cu_words ? stream->cu_mask[i] : 0) : every;
  }
  return emu_done(HIP_SUCCESS);
}

// ---- callbacks

struct callback {
  void *handle, *data;
  void (*with_status)(void *stream, int status, void *data);
  void (*plain)(void *data);
};

static int run_callback(void *context) {
  struct callback *c = context;
  if (c->with_status) c->with_status(c->handle, HIP_SUCCESS, c->data);
  if (c->plain) c->plain(c->data);
  return HIP_SUCCESS;
}

static int callback_work(struct callback callback, struct emu_work *out) {
  struct callback *c = malloc(sizeof *c);
  if (!c) return HIP_OUT_OF_MEMORY;
  *c = callback;
  *out = (struct emu_work){run_callback, free, c, EMU_NODE_HOST};
  return HIP_SUCCESS;
}

int emu_callback_work(void (*function)(void *data), void *data, struct emu_work *out) {
  return callback_work((struct callback){.data = data, .plain = function}, out);
}

void emu_callback_describe(const void *context, struct emu_host_node *out) {
  const struct callback *c = context;
  *out = (struct emu_host_node){c->plain, c->data};
}

static int queue_callback(struct callback callback) {
  struct emu_stream *stream = emu_stream_of(callback.handle);
  struct emu_work work;
  if (!stream) return HIP_INVALID_HANDLE;
  int code = callback_work(callback, &work);
  return code == HIP_SUCCESS ? emu_stream_submit(stream, work, NULL, NULL) : code;
}

API int hipStreamAddCallback(void *handle, void (*callback)(void *, int, void *), void *data, unsigned flags) {
  if (!callback || flags != 0) return emu_done(HIP_INVALID_VALUE);
  return emu_done(queue_callback((struct callback){handle, data, callback, NULL}));
}

API int hipLaunchHostFunc(void *handle, void (*function)(void *), void *data) {
  if (!function) return emu_done(HIP_INVALID_VALUE);
  return emu_done(queue_callback((struct callback){handle, data, NULL, function}));
}
