/* Bytes of a model's file on their way to a device: threads read them into pinned memory, each into one of its two
 * buffers while what is in the other is copied.
 *
 *     thread 0   read 0 | read 2 | read 4 | …         pieces in the order of the file's tensors
 *       copies          | copy 0 | copy 2 | …
 *     thread 1   read 1 | read 3 | …
 *       copies          | copy 1 | …                                                                            */
#ifndef RDNA_MODEL_UPLOAD_H
#define RDNA_MODEL_UPLOAD_H

#include <stddef.h>
#include <stdint.h>

#include "rdna/device.h"

enum { RDNA__UPLOAD_PIECE = 4 << 20 };

typedef struct rdna__uploader rdna__uploader; /* of one thread at a time */

/* How much pinned memory there is for |bytes| in all. */
size_t rdna__uploader_staging(uint64_t bytes);

/* Waits for the device's default stream: nothing that was queued there still uses memory that is written now. */
rdna_status rdna__uploader_create(rdna_device *device, uint64_t bytes, rdna__uploader **out_uploader);
/* Copies at most RDNA__UPLOAD_PIECE bytes at |from|, in a mapped file or in memory that stays as it is, to device
 * memory. Returns when a thread will soon take them; an error of an earlier piece may be returned now. */
rdna_status rdna__uploader_copy(rdna__uploader *uploader, void *to, const void *from, size_t size);
/* Waits until all has arrived. The first error of any piece. */
rdna_status rdna__uploader_finish(rdna__uploader *uploader);
/* What is not read yet stays so; what is on its way is waited for. NULL is fine. */
void rdna__uploader_release(rdna__uploader *uploader);

#endif
