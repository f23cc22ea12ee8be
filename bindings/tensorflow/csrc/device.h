/* The platform RDNA: its devices, streams and events as TensorFlow's executor sees them. */
#ifndef RDNA_TENSORFLOW_DEVICE_H
#define RDNA_TENSORFLOW_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "functions.h"
#include "rdna/device.h"
#include "rdna/stream.h"

/* TensorFlow queues work from several threads at once, of which librdna's streams take one at a time. */
struct SP_Stream_st {
  rdna_stream *stream;
  pthread_mutex_t lock;
  atomic_bool computes;      /* kernels are queued on it */
  struct SP_Stream_st *next; /* of all */
};

/* Says in |status| what librdna's last failing call on this thread said. RDNA_OK leaves it as it is. */
void report_status(rdna_status result, TF_Status *status);
TF_Code status_code(rdna_status result);

enum { MAX_DEVICES = 16 };

/* RDNA:|ordinal|; NULL before TensorFlow has made it, or where there is none. */
rdna_device *device_of_ordinal(int ordinal);

/* Whether all of functions.def was found; there are neither devices nor kernels otherwise. */
bool have_tensorflow(void);

/* The processor as a device, for values that TensorFlow keeps in the host's memory; NULL where it could not be had.
 * Its stream is used by one thread at a time, with |host_lock| held. */
rdna_stream *host_stream(void);
extern pthread_mutex_t host_lock;

#endif
