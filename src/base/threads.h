/* A thread pool that shares loops among the process's processors without spinning on a busy machine. */
#ifndef RDNA_BASE_THREADS_H
#define RDNA_BASE_THREADS_H

#include <stdint.h>

/* Runs body(context, begin, end) over disjoint pieces that cover [0, count), each at least |grain| long but for
 * the last, on this thread and idle pool threads; returns when all is done. Safe to call from several threads
 * at once and from inside a body (which then runs alone). The cut into pieces depends on |count|, |grain| and
 * the number of threads, never on timing; which thread runs a piece does. */
void rdna__parallel_for(int64_t count, int64_t grain, void (*body)(void *context, int64_t begin, int64_t end),
                        void *context);

/* Threads that share work, this one included: RDNA_THREADS, or the processors this process may run on. */
int rdna__thread_count(void);

#endif
