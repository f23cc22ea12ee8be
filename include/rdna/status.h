/* The result of every call that can fail, and the sentence that goes with it. */
#ifndef RDNA_STATUS_H
#define RDNA_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#define RDNA_API __attribute__((visibility("default")))
/* A status must be looked at: a GPU error that is dropped surfaces three calls later. */
#define RDNA_CHECKED RDNA_API __attribute__((warn_unused_result))

typedef enum rdna_status {
  RDNA_OK = 0,
  RDNA_INVALID_ARGUMENT, /* the caller asked for something that has no meaning */
  RDNA_OUT_OF_MEMORY,    /* of the host or of a device; the sentence says which */
  RDNA_NOT_FOUND,        /* no such device, kernel, file, tensor */
  RDNA_UNSUPPORTED,      /* meaningful, but not offered by this device or build */
  RDNA_UNAVAILABLE,      /* a driver or library that is not there, or does not answer */
  RDNA_IO_ERROR,         /* the operating system refused a read or a write */
  RDNA_BAD_DATA,         /* a file or message breaks its format */
  RDNA_DEVICE_ERROR,     /* the device reported an error; the sentence names the kernel when known */
  RDNA_DEVICE_LOST,      /* the device is gone; nothing on it can be used again */
  RDNA_NOT_READY,        /* a query found work still under way; not an error */
  RDNA_CANCELLED,        /* the caller's own callback asked to stop */
  RDNA_INTERNAL          /* a broken invariant of this library */
} rdna_status;

/* "OK", "INVALID_ARGUMENT", … ; "UNKNOWN" for a value outside the enumeration. Static. */
RDNA_API const char *rdna_status_name(rdna_status status);

/* The calling thread's sentence about its last failed call: what was asked, what was found, what to do.
 * "" if none failed. Valid until the next failing call on this thread. */
RDNA_API const char *rdna_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
