/* Workers sleep in a futex and wake for jobs. A job lies on its caller's stack, in a list that workers look
 * through under one mutex; pieces are handed out by an atomic counter. Both sides spin for some microseconds
 * before they sleep, since the loops of a token's kernels follow each other closely; the spin is short and
 * bounded, because on a busy machine whoever we wait for may be waiting for this very processor. */
#include "base/threads.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/config.h"

enum { SPINS = 4000, PIECES_PER_THREAD = 4, MAX_THREADS = 1024 };

typedef struct job {
  void (*body)(void *context, int64_t begin, int64_t end);
  void *context;
  int64_t count, piece_size, pieces;
  _Atomic int64_t next;     /* the next piece that nobody took */
  _Atomic uint32_t helpers; /* workers inside the job; also the futex its caller sleeps on */
  struct job *after;
} job;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* the job list, and starting the pool */
static job *jobs;
static _Atomic uint32_t generation; /* counts new jobs; the futex that workers sleep on */
static _Atomic uint32_t sleepers;
static _Atomic int thread_count; /* 0 until first asked */
static bool started;
static _Thread_local bool inside_body;

static void futex_wait(_Atomic uint32_t *word, uint32_t expected) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static inline void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static void run_pieces(job *work) {
  inside_body = true;
  for (;;) {
    int64_t piece = atomic_fetch_add_explicit(&work->next, 1, memory_order_relaxed);
    if (piece >= work->pieces) break;
    int64_t begin = piece * work->piece_size;
    int64_t end = begin + work->piece_size < work->count ? begin + work->piece_size : work->count;
    work->body(work->context, begin, end);
  }
  inside_body = false;
}

/* Joins a job that has pieces left, or returns NULL. */
static job *join_job(void) {
  pthread_mutex_lock(&mutex);
  job *work = jobs;
  while (work && atomic_load_explicit(&work->next, memory_order_relaxed) >= work->pieces) work = work->after;
  if (work) atomic_fetch_add_explicit(&work->helpers, 1, memory_order_relaxed);
  pthread_mutex_unlock(&mutex);
  return work;
}

static void *worker_main(void *unused) {
  for (;;) {
    uint32_t seen = atomic_load(&generation);
    job *work = join_job();
    if (work) {
      run_pieces(work);
      /* after the subtraction the caller may be gone and its stack reused: the wake then finds nobody, or
       * wakes somebody who looks again */
      if (atomic_fetch_sub(&work->helpers, 1) == 1) futex_wake(&work->helpers, 1);
      continue;
    }
    for (int i = 0; i < SPINS && atomic_load_explicit(&generation, memory_order_relaxed) == seen; i++) relax();
    if (atomic_load(&generation) != seen) continue;
    atomic_fetch_add(&sleepers, 1);
    futex_wait(&generation, seen);
    atomic_fetch_sub(&sleepers, 1);
  }
  return NULL;
}

/* The child of a fork has none of the workers: its first loop starts new ones. */
static void forget_workers(void) {
  pthread_mutex_init(&mutex, NULL);
  jobs = NULL;
  atomic_store(&sleepers, 0);
  started = false;
}

/* Called with the mutex held. A thread that cannot be started leaves the pool smaller, not wrong. */
static void start_workers(void) {
  static bool watches_forks;
  if (!watches_forks) {
    pthread_atfork(NULL, NULL, forget_workers);
    watches_forks = true;
  }
  started = true;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  for (int i = 1; i < rdna__thread_count(); i++) {
    pthread_t thread;
    if (pthread_create(&thread, &attributes, worker_main, NULL) != 0) break;
  }
  pthread_attr_destroy(&attributes);
}

int rdna__thread_count(void) {
  int count = atomic_load_explicit(&thread_count, memory_order_relaxed);
  if (count > 0) return count;
  count = (int)rdna__config_integer(RDNA__CONFIG_THREADS);
  if (count == 0) {
    cpu_set_t processors;
    count = sched_getaffinity(0, sizeof processors, &processors) == 0 ? CPU_COUNT(&processors) : 1;
  }
  if (count > MAX_THREADS) count = MAX_THREADS;
  if (count < 1) count = 1;
  atomic_store(&thread_count, count);
  return count;
}

void rdna__parallel_for(int64_t count, int64_t grain, void (*body)(void *context, int64_t begin, int64_t end),
                        void *context) {
  if (count <= 0) return;
  if (grain < 1) grain = 1;
  int threads = rdna__thread_count();
  int64_t wanted = (int64_t)threads * PIECES_PER_THREAD;
  int64_t piece_size = count / wanted + (count % wanted != 0);
  if (piece_size < grain) piece_size = grain;
  int64_t pieces = count / piece_size + (count % piece_size != 0);
  if (pieces == 1 || threads == 1 || inside_body) {
    /* the same cut as with helpers, so that sums taken piece by piece do not depend on who is about */
    for (int64_t begin = 0; begin < count; begin += piece_size)
      body(context, begin, begin + piece_size < count ? begin + piece_size : count);
    return;
  }

  job work = {.body = body, .context = context, .count = count, .piece_size = piece_size, .pieces = pieces};
  pthread_mutex_lock(&mutex);
  if (!started) start_workers();
  work.after = jobs;
  jobs = &work;
  pthread_mutex_unlock(&mutex);
  atomic_fetch_add(&generation, 1);
  if (atomic_load(&sleepers) > 0) futex_wake(&generation, pieces - 1 < threads - 1 ? (int)pieces - 1 : threads - 1);

  run_pieces(&work);

  pthread_mutex_lock(&mutex); /* from here on nobody joins */
  job **link = &jobs;
  while (*link != &work) link = &(*link)->after;
  *link = work.after;
  pthread_mutex_unlock(&mutex);
  for (int i = 0;; i++) {
    uint32_t helpers = atomic_load(&work.helpers);
    if (helpers == 0) break;
    if (i < SPINS)
      relax();
    else
      futex_wait(&work.helpers, helpers);
  }
}
