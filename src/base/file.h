/* Whole files in memory. */
#ifndef RDNA_BASE_FILE_H
#define RDNA_BASE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct rdna__file {
  const uint8_t *data; /* read only; pages are read when they are touched. NULL when the file is empty */
  size_t size;
} rdna__file;

/* Maps the regular file at |path|; the sentence of a failure does not name it. RDNA_NOT_FOUND, RDNA_IO_ERROR. */
rdna_status rdna__file_map(const char *path, rdna__file *out_file);
/* For programs that outlive files that others cut short: from now on a page that a mapped file has no more is read as
 * zeros, where the system would end the process (SIGBUS), and counted. */
rdna_status rdna__file_guard(void);
uint64_t rdna__file_lost_pages(void);
void rdna__file_unmap(rdna__file *file); /* leaves an empty one; all zeros is fine */

/* Copies the bytes at |from| to |to|. Where they are those of a mapped file they are read from it, which does not touch
 * the map: a file that ends before them, that was written to since it was mapped, or that cannot be read is
 * RDNA_IO_ERROR with its path, where touching would end the process. Any thread may, as long as the file is mapped. */
rdna_status rdna__file_read(const void *from, size_t size, void *to);

#endif
