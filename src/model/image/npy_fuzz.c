/* Reads an array of NumPy that is the input; with an odd first byte it begins behind a magic number. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/image/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  rdna__npy array;
  if (size < 1) return 0;
  size_t start = data[0] % 2 ? 8 : 0;
  uint8_t *bytes = malloc(size + start);
  if (!bytes) return 0;
  if (start) memcpy(bytes, "\x93NUMPY\1", 8);
  memcpy(bytes + start, data + 1, size - 1);
  rdna_status status = rdna__npy_read(bytes, size - 1 + start, &array);
  free(bytes);
  if (status != RDNA_OK && !*rdna_last_error()) abort();
  if (status == RDNA_OK && array.count > 0 && !array.values) abort();
  float sum = 0;
  for (int64_t i = 0; status == RDNA_OK && i < array.count; i++) sum += array.values[i];
  volatile float kept = sum;
  (void)kept;
  free(array.values);
  return 0;
}
