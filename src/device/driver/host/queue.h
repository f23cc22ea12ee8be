/* The host driver's streams: a queue with its own thread, and marks, which are points in a queue. */
#ifndef RDNA_DEVICE_DRIVER_HOST_QUEUE_H
#define RDNA_DEVICE_DRIVER_HOST_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "device/driver.h"

/* A point in a queue, which its thread reaches once. Counted: the event and every task that names it hold one. */
typedef struct rdna__host_mark rdna__host_mark;

rdna__host_mark *rdna__host_mark_retain(rdna__host_mark *mark);
void rdna__host_mark_release(rdna__host_mark *mark); /* NULL is fine */
void rdna__host_mark_wait(rdna__host_mark *mark);
/* When it was reached, in nanoseconds of CLOCK_MONOTONIC; 0 while it was not. */
int64_t rdna__host_mark_time(rdna__host_mark *mark);

typedef struct rdna__driver_stream rdna__host_queue;

rdna_status rdna__host_queue_create(rdna__host_queue **out_queue);
/* Runs what is left, then ends the thread. */
void rdna__host_queue_destroy(rdna__host_queue *queue);
void rdna__host_queue_wait(rdna__host_queue *queue); /* for all tasks put in before this call */
bool rdna__host_queue_idle(rdna__host_queue *queue);

/* Each puts one task in and returns; when the queue is full it first waits for room. */
void rdna__host_queue_copy(rdna__host_queue *queue, void *dst, const void *src, size_t size);
/* As above, at once where nothing is under way, else from a copy of |src| that the task owns. RDNA_OUT_OF_MEMORY. */
rdna_status rdna__host_queue_copy_now(rdna__host_queue *queue, void *dst, const void *src, size_t size);
void rdna__host_queue_fill(rdna__host_queue *queue, void *dst, uint8_t value, size_t size);
void rdna__host_queue_call(rdna__host_queue *queue, void (*callback)(void *), void *data);
rdna_status rdna__host_queue_launch(rdna__host_queue *queue, void (*function)(const void *args, rdna_grid grid),
                                    rdna_grid grid, const void *args, size_t args_size);
/* A new mark at the end of the queue, with one reference for the caller. */
rdna_status rdna__host_queue_mark(rdna__host_queue *queue, rdna__host_mark **out_mark);
/* Tasks put in from now on wait for |mark|. */
void rdna__host_queue_wait_mark(rdna__host_queue *queue, rdna__host_mark *mark);

#endif
