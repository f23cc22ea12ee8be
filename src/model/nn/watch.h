/* Lets a caller see what each matrix of a model is multiplied by; `rdna imatrix` collects that. */
#ifndef RDNA_MODEL_NN_WATCH_H
#define RDNA_MODEL_NN_WATCH_H

#include "rdna/stream.h"
#include "rdna/tensor.h"

typedef struct rdna__nn_watch {
  /* Called before x (…, columns) of |stream| is multiplied by |weights| (rows, columns), or by the matrices of
   * |weights| (matrices, rows, columns) that |chosen| (tokens, used) says. What is queued on the stream makes x. */
  rdna_status (*see)(void *data, rdna_stream *stream, const rdna_tensor *weights, const rdna_tensor *x,
                     const rdna_tensor *chosen);
  void *data;
} rdna__nn_watch;

/* Of this thread; NULL: nobody looks. Steps that are replays of a graph are not seen. */
extern _Thread_local const rdna__nn_watch *rdna__nn_watcher;

static inline rdna_status rdna__nn_show(rdna_stream *stream, const rdna_tensor *weights, const rdna_tensor *x,
                                        const rdna_tensor *chosen) {
  const rdna__nn_watch *w = rdna__nn_watcher;
  return w ? w->see(w->data, stream, weights, x, chosen) : RDNA_OK;
}

#endif
