/* Arrays in files as NumPy writes them (numpy.lib.format):
 *
 *     "\x93NUMPY" | 1 0 | u16 length | {'descr': '<f4', 'fortran_order': False, 'shape': (4, 64, 64), } | values */
#ifndef RDNA_MODEL_IMAGE_NPY_H
#define RDNA_MODEL_IMAGE_NPY_H

#include "base/status.h"
#include "rdna/tensor.h"

typedef struct rdna__npy {
  int rank;
  int64_t shape[RDNA_MAX_RANK];
  int64_t count;
  float *values; /* (count), free with free(); NULL where there are none */
} rdna__npy;

/* Of |size| bytes at |data|: f16, f32 or f64, the slowest dimension first. RDNA_BAD_DATA: no such array, or one that
 * ends too early. RDNA_UNSUPPORTED: other types, orders and ranks. RDNA_OUT_OF_MEMORY. */
rdna_status rdna__npy_read(const void *data, size_t size, rdna__npy *out);
/* The same of a file, whose path begins the sentence. RDNA_NOT_FOUND, RDNA_IO_ERROR. */
rdna_status rdna__npy_open(const char *path, rdna__npy *out);
/* f32. RDNA_IO_ERROR. */
rdna_status rdna__npy_save(const char *path, int rank, const int64_t *shape, const float *values);

#endif
