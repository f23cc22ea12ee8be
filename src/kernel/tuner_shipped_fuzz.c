/* Whatever the bytes, lines are visited or a sentence says which one is wrong; what was read can be written. */
#include <stdint.h>
#include <stdlib.h>

#include "kernel/tuner_shipped.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_again(void *context, const rdna__tuner_row *row) {
  char line[1024];
  /* numbers may become longer */
  if (rdna__tuner_text_write(row, line) != RDNA_OK && row->gpu[0] == 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  rdna_status status = rdna__tuner_text_read((const char *)data, size, write_again, NULL);
  if (status != RDNA_OK && status != RDNA_BAD_DATA) abort();
  return 0;
}
