/* The tuner: finds which of several implementations of an operator is fastest for a class of shapes on this device.
 *
 * What it knows comes from, in this order: this process's measurements, the user's database (tuner_store.h), and the
 * results that we ship (tuner_shipped.h). What is missing it measures on the caller's own data, for at most a second in
 * a process unless RDNA_TUNE=full; RDNA_TUNE=cached measures nothing and off asks nobody. An emulated device is never
 * measured. Where nothing is known the rule holds: the caller's first candidate. */
#ifndef RDNA_KERNEL_TUNER_H
#define RDNA_KERNEL_TUNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "rdna/stream.h"

enum { RDNA__TUNER_CANDIDATES = 32, RDNA__TUNER_SHAPE = 192, RDNA__TUNER_TEXT = 192, RDNA__TUNER_CODE = 24 };

typedef struct rdna__tuner_candidate {
  int id;           /* the caller's; what a decision is */
  const char *name; /* static, without commas; what the database calls it */
  bool slow_start;  /* its first run may take seconds: measured only with RDNA_TUNE=full */
} rdna__tuner_candidate;

typedef struct rdna__tuner_question {
  const char *operator_name; /* static */
  const void *shape;         /* the class of shapes, compared by its bytes */
  size_t shape_size;
  const char *shape_text; /* the same for people and the database: unique within the operator, without commas */
  const char *families;   /* of code objects, with spaces between, whose kernels the caller's own candidates run */
  const char *libraries;  /* vendors' libraries among the candidates with their versions, or "" */
  int count;
  rdna__tuner_candidate candidates[RDNA__TUNER_CANDIDATES]; /* the first is the rule's */
  double seconds; /* a bound of one run's time, so that measuring is not begun where a second is too short */
  /* Queues candidate |id| with its results in scratch memory: no trial may be seen. RDNA_UNSUPPORTED drops it. */
  rdna_status (*trial)(void *context, int id);
  void *context;
} rdna__tuner_question;

/* What is known of a class of shapes. */
typedef struct rdna__tuner_result {
  int id;
  const char *implementation;
  const char *why;  /* as in rdna_choice */
  double ms;        /* of one run; 0 when it was not measured */
  const char *next; /* the second best, or "" */
  double next_ms;
} rdna__tuner_result;

/* Looks up what is known already, without a lock; returns whether there is any. */
bool rdna__tuner_find(rdna_device *device, const char *operator_name, const void *shape, size_t shape_size,
                      rdna__tuner_result *out_result);

/* Decides by what is stored or by measuring, and remembers. A measurement waits for |stream|. Never fails: where a
 * trial fails, the rule holds. */
void rdna__tuner_decide(rdna_stream *stream, const rdna__tuner_question *question, rdna__tuner_result *out_result);

/* Visits what this process knows of the device, in no order. */
void rdna__tuner_visit(rdna_device *device,
                       void (*visit)(void *context, const char *operator_name, const char *shape_text,
                                     const rdna__tuner_result *result),
                       void *context);

/* For rdna_choice_last. Both strings and |operator_name| are static. */
void rdna__choice_note(const char *operator_name, const char *implementation, const char *why);

/* Seconds that this process spent on measurements that nobody asked for. */
double rdna__tuner_spent(void);

/* "NVIDIA H200,sm_90,cuda 13.0": GPU, target, driver's version; whatever one of them changes is measured anew. */
void rdna__tuner_device_text(rdna_device *device, char text[RDNA__TUNER_TEXT]);
/* Writes the hash of the code of |families|, 16 hexadecimal digits: results of other code are measured anew. "none"
 * without a pack. */
void rdna__tuner_code_text(rdna_device *device, const char *families, char text[RDNA__TUNER_CODE]);

#endif
