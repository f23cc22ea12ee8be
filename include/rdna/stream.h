/* Streams are queues of work on a device, in order within one and unordered between two; events order and
 * time them. Streams and events may be used from any thread, one thread at a time each. */
#ifndef RDNA_STREAM_H
#define RDNA_STREAM_H

#include "rdna/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rdna_stream rdna_stream;
typedef struct rdna_event rdna_event;

/* |priority| 0 is normal, negative is more urgent; clamped to what the device has. The stream keeps its
 * device alive. */
RDNA_CHECKED rdna_status rdna_stream_create(rdna_device *device, int priority, rdna_stream **out_stream);
RDNA_API void rdna_stream_release(rdna_stream *stream); /* waits for its work; NULL is fine */
/* The stream that calls without one of their own use. Borrowed from the device. */
RDNA_API rdna_stream *rdna_device_default_stream(rdna_device *device);
RDNA_API rdna_device *rdna_stream_device(rdna_stream *stream); /* borrowed */

/* Waits for all work in the stream. Errors of that work surface here, once, and name the kernel. */
RDNA_CHECKED rdna_status rdna_stream_synchronize(rdna_stream *stream);
/* Name of the last kernel that was queued, or of the vendor's library that queued it ("cublaslt"); "" before the
 * first. Static. Ask after an operator's call, from the thread that made it. */
RDNA_API const char *rdna_stream_last_kernel(rdna_stream *stream);
/* RDNA_OK when idle, RDNA_NOT_READY while work is under way. */
RDNA_CHECKED rdna_status rdna_stream_query(rdna_stream *stream);
/* Work put into |stream| from now on waits for the last record of |event|, also when it is recorded again or
 * released meanwhile. The event may belong to another device; when that is another driver's, the calling thread
 * waits. */
RDNA_CHECKED rdna_status rdna_stream_wait(rdna_stream *stream, rdna_event *event);
/* Runs |callback| on a thread of the driver once all earlier work is done. It must not call this library. */
RDNA_CHECKED rdna_status rdna_stream_call(rdna_stream *stream, void (*callback)(void *), void *data);

/* |out_native|: the vendor's own stream (hipStream_t, CUstream; NULL may be one), for kernels that another library
 * queues, in order with ours. Borrowed. The device becomes the one that the vendor's library takes for the calling
 * thread's current one, as kernels are loaded there. Errors of such work surface as those of ours do, but name no
 * kernel of theirs. RDNA_UNSUPPORTED on drivers without a vendor's library: host, null. */
RDNA_CHECKED rdna_status rdna_stream_native(rdna_stream *stream, void **out_native);

/* Work that was recorded once and is queued again with one call, which costs the host a fraction of its launches.
 *
 * Between begin and end, work that is put into |stream| is recorded instead of run: kernels, copies and fills with the
 * pointers and sizes of that moment, so what they read and write must be there, and what changes from replay to replay
 * must lie in device memory. Nothing may wait for the stream or for an event meanwhile, and everything that the work
 * needs should have run once before, since kernels are loaded and choices are made at first use. Memory that is freed
 * to |stream|'s pool meanwhile is the graph's until it is released.
 *
 * RDNA_UNSUPPORTED: the driver cannot record (the host, an old HIP or CUDA); nothing was begun. */
typedef struct rdna_graph rdna_graph;
RDNA_CHECKED rdna_status rdna_graph_begin(rdna_stream *stream);
/* Ends the recording, whatever it returns. |out_graph| may be NULL to throw it away. RDNA_DEVICE_ERROR: something was
 * queued that cannot be recorded; run the work without a graph. */
RDNA_CHECKED rdna_status rdna_graph_end(rdna_stream *stream, rdna_graph **out_graph);
/* Queues all of it on a stream of the same device; one replay of a graph at a time. */
RDNA_CHECKED rdna_status rdna_graph_launch(rdna_graph *graph, rdna_stream *stream);
RDNA_API void rdna_graph_release(rdna_graph *graph); /* waits for the device; NULL is fine */

/* A mark that rdna_event_record puts into a stream: others can wait for it, and with |timing| two of them tell how long
 * the work between took. It keeps its device alive. */
RDNA_CHECKED rdna_status rdna_event_create(rdna_device *device, bool timing, rdna_event **out_event);
RDNA_API void rdna_event_release(rdna_event *event); /* NULL is fine */
RDNA_CHECKED rdna_status rdna_event_record(rdna_event *event, rdna_stream *stream);
RDNA_CHECKED rdna_status rdna_event_synchronize(rdna_event *event);
RDNA_CHECKED rdna_status rdna_event_query(rdna_event *event); /* an event never recorded is ready */
/* Milliseconds between two recorded, finished events with timing. On an emulated device the time is the
 * host's and says nothing about a card. */
RDNA_CHECKED rdna_status rdna_event_elapsed(rdna_event *start, rdna_event *end, float *out_ms);

#ifdef __cplusplus
}
#endif
#endif
