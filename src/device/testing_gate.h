/* For tests: a callback, wait_at, that holds its stream until the test opens the gate. */
#ifndef RDNA_DEVICE_TESTING_GATE_H
#define RDNA_DEVICE_TESTING_GATE_H

#include <pthread.h>
#include <stdbool.h>

typedef struct gate {
  pthread_mutex_t lock;
  pthread_cond_t opened;
  bool open;
} gate;

#define GATE {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false}

static inline void wait_at(void *data) {
  gate *g = data;
  pthread_mutex_lock(&g->lock);
  while (!g->open) pthread_cond_wait(&g->opened, &g->lock);
  pthread_mutex_unlock(&g->lock);
}

static inline void open_gate(gate *g) {
  pthread_mutex_lock(&g->lock);
  g->open = true;
  pthread_cond_broadcast(&g->opened);
  pthread_mutex_unlock(&g->lock);
}

#endif
