#include "device/driver/host/queue.h"

#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A queue is a ring of QUEUE_TASKS tasks, whose submitter waits while it is full:
 *
 *     tasks   | done | done | runs | waits | waits | free | …
 *                             ^ completed            ^ submitted         both modulo QUEUE_TASKS
 *
 * A task holds up to INLINE_BYTES of its own, arguments of a launch or a small copy's source.
 *
 * Waking the thread takes longer than a little task does. So little tasks lie while the thread sleeps, until one is not
 * little, LITTLE_TASKS have come together, or somebody asks. Who waits runs them himself, in their order. */
enum { QUEUE_TASKS = 1024, INLINE_BYTES = 256, LITTLE_TASKS = 16, LITTLE_BYTES = 4096, LITTLE_GRID = 2 };

struct rdna__host_mark {
  atomic_int references;
  pthread_mutex_t lock;
  pthread_cond_t reached;
  int64_t time;
};

typedef enum task_kind { COPY, FILL, CALL, LAUNCH, REACH, WAIT } task_kind;

typedef struct task {
  task_kind kind;
  uint8_t value;   /* FILL */
  rdna_grid grid;  /* LAUNCH */
  void *dst;       /* COPY, FILL */
  const void *src; /* COPY */
  size_t size;
  void *owned;                  /* freed after the run: bytes too many for |bytes| */
  void (*callback)(void *data); /* CALL */
  void *data;
  void (*function)(const void *args, rdna_grid grid); /* LAUNCH */
  rdna__host_mark *mark;                              /* REACH, WAIT: one reference */
  _Alignas(16) uint8_t bytes[INLINE_BYTES];
} task;

struct rdna__driver_stream {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t work;     /* the thread sleeps here */
  pthread_cond_t progress; /* others wait here for |completed| */
  bool sleeping, stopping;
  bool running; /* the first task that is not completed, by whomever */
  int waiters;
  uint64_t submitted, completed; /* task n lies in tasks[n % QUEUE_TASKS] */
  task tasks[QUEUE_TASKS];
};

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

rdna__host_mark *rdna__host_mark_retain(rdna__host_mark *mark) {
  atomic_fetch_add(&mark->references, 1);
  return mark;
}

void rdna__host_mark_release(rdna__host_mark *mark) {
  if (!mark || atomic_fetch_sub(&mark->references, 1) != 1) return;
  pthread_cond_destroy(&mark->reached);
  pthread_mutex_destroy(&mark->lock);
  free(mark);
}

void rdna__host_mark_wait(rdna__host_mark *mark) {
  pthread_mutex_lock(&mark->lock);
  while (!mark->time) pthread_cond_wait(&mark->reached, &mark->lock);
  pthread_mutex_unlock(&mark->lock);
}

int64_t rdna__host_mark_time(rdna__host_mark *mark) {
  pthread_mutex_lock(&mark->lock);
  int64_t time = mark->time;
  pthread_mutex_unlock(&mark->lock);
  return time;
}

static void reach(rdna__host_mark *mark) {
  pthread_mutex_lock(&mark->lock);
  mark->time = now();
  pthread_cond_broadcast(&mark->reached);
  pthread_mutex_unlock(&mark->lock);
}

static void run(task *job) {
  switch (job->kind) {
    case COPY:
      memcpy(job->dst, job->src, job->size);
      break;
    case FILL:
      memset(job->dst, job->value, job->size);
      break;
    case CALL:
      job->callback(job->data);
      break;
    case LAUNCH:
      job->function(job->owned ? job->owned : job->bytes, job->grid);
      break;
    case REACH: /* done by serve */
      break;
    case WAIT:
      rdna__host_mark_wait(job->mark);
      break;
  }
  free(job->owned);
}

static task *next_of(rdna__host_queue *queue) { return &queue->tasks[queue->completed % QUEUE_TASKS]; }

/* Runs the next task. The lock is held, but while it runs. */
static void run_next(rdna__host_queue *queue) {
  task *job = next_of(queue);
  queue->running = true;
  pthread_mutex_unlock(&queue->lock);
  run(job);
  pthread_mutex_lock(&queue->lock);
  queue->running = false;
  /* reached and counted in one step, or a waiter for one would find the other still missing */
  if (job->kind == REACH) reach(job->mark);
  rdna__host_mark_release(job->mark);
  queue->completed++;
  if (queue->waiters) pthread_cond_broadcast(&queue->progress);
}

static void *serve(void *argument) {
  rdna__host_queue *queue = argument;
  pthread_mutex_lock(&queue->lock);
  for (;;) {
    while (queue->running || (queue->submitted == queue->completed && !queue->stopping)) {
      queue->sleeping = true;
      pthread_cond_wait(&queue->work, &queue->lock);
      queue->sleeping = false;
    }
    if (queue->submitted == queue->completed) break;
    run_next(queue);
  }
  pthread_mutex_unlock(&queue->lock);
  return NULL;
}

/* Lets the thread run what lies; the lock is held. */
static void wake(rdna__host_queue *queue) {
  if (queue->sleeping && !queue->running && (queue->submitted != queue->completed || queue->stopping))
    pthread_cond_signal(&queue->work);
}

rdna_status rdna__host_queue_create(rdna__host_queue **out_queue) {
  rdna__host_queue *queue = calloc(1, sizeof *queue);
  if (!queue) return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for a stream ran out");
  pthread_mutex_init(&queue->lock, NULL);
  pthread_cond_init(&queue->work, NULL);
  pthread_cond_init(&queue->progress, NULL);
  /* the program's signals are for the program's own threads */
  sigset_t all, old;
  sigfillset(&all);
  sigdelset(&all, SIGBUS); /* of a file that became shorter, which a program may handle where it happens */
  pthread_sigmask(SIG_SETMASK, &all, &old);
  int error = pthread_create(&queue->thread, NULL, serve, queue);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  if (error) {
    pthread_cond_destroy(&queue->progress);
    pthread_cond_destroy(&queue->work);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
    return rdna__fail(RDNA_OUT_OF_MEMORY, "a host stream could not start its thread: %s", strerror(error));
  }
  pthread_setname_np(queue->thread, "rdna-stream");
  *out_queue = queue;
  return RDNA_OK;
}

void rdna__host_queue_destroy(rdna__host_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  queue->stopping = true;
  pthread_cond_signal(&queue->work);
  pthread_mutex_unlock(&queue->lock);
  pthread_join(queue->thread, NULL);
  pthread_cond_destroy(&queue->progress);
  pthread_cond_destroy(&queue->work);
  pthread_mutex_destroy(&queue->lock);
  free(queue);
}

static bool is_little(const task *job) {
  if (job->kind == LAUNCH) return (uint64_t)job->grid.x * job->grid.y * job->grid.z <= LITTLE_GRID;
  return (job->kind == COPY || job->kind == FILL) && job->size <= LITTLE_BYTES;
}

/* Whether a task before |count| lies while the thread sleeps; callbacks are the thread's. */
static bool can_help(rdna__host_queue *queue, uint64_t count, bool only_little) {
  return queue->completed < count && queue->sleeping && !queue->running && next_of(queue)->kind != CALL &&
         (!only_little || is_little(next_of(queue)));
}

/* Runs such tasks; the lock is held. */
static void help(rdna__host_queue *queue, uint64_t count, bool only_little) {
  if (!can_help(queue, count, only_little)) return;
  fenv_t own; /* rounding and subnormals are as on the thread */
  fegetenv(&own);
  fesetenv(FE_DFL_ENV);
  while (can_help(queue, count, only_little)) run_next(queue);
  fesetenv(&own);
}

/* Waits until |count| tasks are done; the lock is held. */
static void wait_for(rdna__host_queue *queue, uint64_t count) {
  queue->waiters++;
  while (queue->completed < count) {
    help(queue, count, false);
    wake(queue);
    if (queue->completed < count) pthread_cond_wait(&queue->progress, &queue->lock);
  }
  queue->waiters--;
}

void rdna__host_queue_wait(rdna__host_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  wait_for(queue, queue->submitted);
  pthread_mutex_unlock(&queue->lock);
}

bool rdna__host_queue_idle(rdna__host_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  bool idle = queue->completed == queue->submitted;
  wake(queue); /* who asks again and again comes to an end */
  pthread_mutex_unlock(&queue->lock);
  return idle;
}

/* Puts |job| in, with |size| bytes at |inlined| that travel with it. */
static void submit(rdna__host_queue *queue, const task *job, const void *inlined, size_t size) {
  pthread_mutex_lock(&queue->lock);
  while (queue->submitted - queue->completed >= QUEUE_TASKS) wait_for(queue, queue->submitted - QUEUE_TASKS / 2);
  task *slot = &queue->tasks[queue->submitted % QUEUE_TASKS];
  memcpy(slot, job, offsetof(task, bytes));
  if (size) memcpy(slot->bytes, inlined, size);
  if (job->kind == COPY && !job->src) slot->src = slot->owned ? slot->owned : slot->bytes;
  queue->submitted++;
  if (!is_little(job) || queue->submitted - queue->completed >= LITTLE_TASKS) wake(queue);
  pthread_mutex_unlock(&queue->lock);
}

/* Puts |job| in with its own copy of |size| bytes at |data|. */
static rdna_status submit_with(rdna__host_queue *queue, task *job, const void *data, size_t size) {
  if (size <= INLINE_BYTES) {
    submit(queue, job, data, size);
    return RDNA_OK;
  }
  job->owned = malloc(size);
  if (!job->owned) return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for a stream's task ran out");
  memcpy(job->owned, data, size);
  submit(queue, job, NULL, 0);
  return RDNA_OK;
}

void rdna__host_queue_copy(rdna__host_queue *queue, void *dst, const void *src, size_t size) {
  submit(queue, &(task){.kind = COPY, .dst = dst, .src = src, .size = size}, NULL, 0);
}

rdna_status rdna__host_queue_copy_now(rdna__host_queue *queue, void *dst, const void *src, size_t size) {
  pthread_mutex_lock(&queue->lock);
  help(queue, queue->submitted, true);
  wake(queue); /* of what came in meanwhile */
  bool idle = queue->completed == queue->submitted;
  if (idle) memcpy(dst, src, size); /* in its place in the order, since nothing comes in meanwhile */
  pthread_mutex_unlock(&queue->lock);
  if (idle) return RDNA_OK;
  return submit_with(queue, &(task){.kind = COPY, .dst = dst, .size = size}, src, size);
}

void rdna__host_queue_fill(rdna__host_queue *queue, void *dst, uint8_t value, size_t size) {
  submit(queue, &(task){.kind = FILL, .dst = dst, .value = value, .size = size}, NULL, 0);
}

void rdna__host_queue_call(rdna__host_queue *queue, void (*callback)(void *), void *data) {
  submit(queue, &(task){.kind = CALL, .callback = callback, .data = data}, NULL, 0);
}

rdna_status rdna__host_queue_launch(rdna__host_queue *queue, void (*function)(const void *args, rdna_grid grid),
                                    rdna_grid grid, const void *args, size_t args_size) {
  return submit_with(queue, &(task){.kind = LAUNCH, .function = function, .grid = grid}, args, args_size);
}

rdna_status rdna__host_queue_mark(rdna__host_queue *queue, rdna__host_mark **out_mark) {
  rdna__host_mark *mark = calloc(1, sizeof *mark);
  if (!mark) return rdna__fail(RDNA_OUT_OF_MEMORY, "host memory for an event ran out");
  atomic_init(&mark->references, 2);
  pthread_mutex_init(&mark->lock, NULL);
  pthread_cond_init(&mark->reached, NULL);
  submit(queue, &(task){.kind = REACH, .mark = mark}, NULL, 0);
  *out_mark = mark;
  return RDNA_OK;
}

void rdna__host_queue_wait_mark(rdna__host_queue *queue, rdna__host_mark *mark) {
  submit(queue, &(task){.kind = WAIT, .mark = rdna__host_mark_retain(mark)}, NULL, 0);
}
