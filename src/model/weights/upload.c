#include "model/weights/upload.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/threads.h"
#include "rdna/memory.h"
#include "rdna/stream.h"

enum { MOST_THREADS = 4, BUFFERS = 2, WAITING = 2 * MOST_THREADS };

typedef struct piece {
  void *to;
  const void *from;
  size_t size;
} piece;

typedef struct worker {
  rdna__uploader *uploader;
  pthread_t thread;
  bool runs;
  rdna_stream *stream;
  rdna_event *left[BUFFERS]; /* the buffer's bytes have left it */
  char *buffers;
} worker;

struct rdna__uploader {
  rdna_device *device;
  size_t buffer_bytes;
  worker workers[MOST_THREADS];
  int worker_count;
  pthread_mutex_t lock; /* of what follows */
  pthread_cond_t has_work, has_room;
  piece waiting[WAITING]; /* a ring */
  int first, count;
  int busy; /* workers that have a piece */
  bool ends;
  rdna_status status; /* of the first piece that failed */
  char sentence[1024];
};

static int threads_for(uint64_t bytes) {
  int most = rdna__thread_count() < MOST_THREADS ? rdna__thread_count() : MOST_THREADS;
  uint64_t pieces = bytes / RDNA__UPLOAD_PIECE + 1;
  return pieces < (uint64_t)most ? (int)pieces : most;
}

/* Whole pages. */
static size_t buffer_for(uint64_t bytes) {
  return bytes < RDNA__UPLOAD_PIECE ? ((size_t)bytes + 4095) / 4096 * 4096 : RDNA__UPLOAD_PIECE;
}

size_t rdna__uploader_staging(uint64_t bytes) { return (size_t)threads_for(bytes) * BUFFERS * buffer_for(bytes); }

static rdna_status move(worker *w, const piece *p, int which) {
  char *buffer = w->buffers + (size_t)which * w->uploader->buffer_bytes;
  RDNA_TRY(rdna_event_synchronize(w->left[which]));
  RDNA_TRY(rdna__file_read(p->from, p->size, buffer));
  RDNA_TRY(rdna_copy_to_device(w->stream, p->to, buffer, p->size));
  return rdna_event_record(w->left[which], w->stream);
}

static void *work(void *data) {
  worker *w = data;
  rdna__uploader *u = w->uploader;
  pthread_mutex_lock(&u->lock);
  for (int which = 0;; which = (which + 1) % BUFFERS) {
    while (!u->ends && u->count == 0) pthread_cond_wait(&u->has_work, &u->lock);
    if (u->ends) break;
    piece p = u->waiting[u->first];
    bool failed = u->status != RDNA_OK;
    u->first = (u->first + 1) % WAITING;
    u->count--;
    u->busy++;
    pthread_mutex_unlock(&u->lock);
    rdna_status status = failed ? RDNA_OK : move(w, &p, which);
    pthread_mutex_lock(&u->lock);
    u->busy--;
    if (status != RDNA_OK && u->status == RDNA_OK) {
      u->status = status;
      snprintf(u->sentence, sizeof u->sentence, "%s", rdna_last_error());
    }
    pthread_cond_signal(&u->has_room);
  }
  pthread_mutex_unlock(&u->lock);
  return NULL;
}

static rdna_status start(rdna__uploader *u, worker *w) {
  w->uploader = u;
  RDNA_TRY(rdna_stream_create(u->device, 0, &w->stream));
  for (int i = 0; i < BUFFERS; i++) RDNA_TRY(rdna_event_create(u->device, false, &w->left[i]));
  RDNA_TRY(rdna_host_alloc(u->device, BUFFERS * u->buffer_bytes, (void **)&w->buffers));
  if (pthread_create(&w->thread, NULL, work, w) != 0)
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no thread to read the model's file with");
  w->runs = true;
  return RDNA_OK;
}

rdna_status rdna__uploader_create(rdna_device *device, uint64_t bytes, rdna__uploader **out_uploader) {
  RDNA_TRY(rdna_stream_synchronize(rdna_device_default_stream(device)));
  rdna__uploader *u = calloc(1, sizeof *u);
  if (!u) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory to copy weights");
  u->device = rdna_device_retain(device);
  u->buffer_bytes = buffer_for(bytes);
  pthread_mutex_init(&u->lock, NULL);
  pthread_cond_init(&u->has_work, NULL);
  pthread_cond_init(&u->has_room, NULL);
  rdna_status status = RDNA_OK;
  for (int count = threads_for(bytes); u->worker_count < count && status == RDNA_OK;)
    status = start(u, &u->workers[u->worker_count++]);
  if (status == RDNA_OK)
    *out_uploader = u;
  else
    rdna__uploader_release(u);
  return status;
}

/* Called with the lock. */
static rdna_status outcome(const rdna__uploader *u) {
  if (u->status != RDNA_OK) rdna__set_last_error(u->sentence);
  return u->status;
}

rdna_status rdna__uploader_copy(rdna__uploader *u, void *to, const void *from, size_t size) {
  if (size > u->buffer_bytes)
    return rdna__fail(RDNA_INTERNAL, "%zu bytes of weights at once, to buffers of %zu", size, u->buffer_bytes);
  pthread_mutex_lock(&u->lock);
  while (u->count == WAITING) pthread_cond_wait(&u->has_room, &u->lock);
  rdna_status status = outcome(u);
  if (status == RDNA_OK) {
    u->waiting[(u->first + u->count++) % WAITING] = (piece){to, from, size};
    pthread_cond_signal(&u->has_work);
  }
  pthread_mutex_unlock(&u->lock);
  return status;
}

rdna_status rdna__uploader_finish(rdna__uploader *u) {
  pthread_mutex_lock(&u->lock);
  while (u->count > 0 || u->busy > 0) pthread_cond_wait(&u->has_room, &u->lock);
  rdna_status status = outcome(u);
  pthread_mutex_unlock(&u->lock);
  for (int i = 0; i < u->worker_count && status == RDNA_OK; i++) status = rdna_stream_synchronize(u->workers[i].stream);
  return status;
}

void rdna__uploader_release(rdna__uploader *u) {
  if (!u) return;
  pthread_mutex_lock(&u->lock);
  u->ends = true;
  pthread_cond_broadcast(&u->has_work);
  pthread_mutex_unlock(&u->lock);
  for (int i = 0; i < u->worker_count; i++) {
    worker *w = &u->workers[i];
    if (w->runs) pthread_join(w->thread, NULL);
    rdna_stream_release(w->stream); /* waits for its copies, before their buffers go */
    for (int k = 0; k < BUFFERS; k++) rdna_event_release(w->left[k]);
    rdna_host_free(u->device, w->buffers);
  }
  pthread_cond_destroy(&u->has_room);
  pthread_cond_destroy(&u->has_work);
  pthread_mutex_destroy(&u->lock);
  rdna_device_release(u->device);
  free(u);
}
