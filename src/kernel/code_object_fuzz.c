/* Describes any bytes as a code object or PTX, and any text as the symbol of a kernel with arguments of any size. */
#include <stdlib.h>
#include <string.h>

#include "kernel/code_object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void describe(const uint8_t *data, size_t size) {
  rdna__code_description d;
  if (rdna__code_describe(data, size, &d) != RDNA_OK) {
    if (d.kernels || d.texts || d.kernel_count) abort();
    return;
  }
  for (int k = 0; k < d.kernel_count; k++) {
    if (!d.kernels[k].symbol[0] || !d.kernels[k].name[0]) abort();
    for (int i = 0; i < d.kernels[k].argument_count; i++) {
      const rdna_code_argument *a = &d.kernels[k].arguments[i];
      if (a->is_pointer && a->size != sizeof(void *)) abort();
      if (!a->is_pointer && a->number_size && a->number_size != a->size) abort();
    }
  }
  rdna__code_description_free(&d);
}

/* The first bytes are how many arguments there are and what each is, the rest is the symbol. */
static void name(const uint8_t *data, size_t size) {
  rdna_code_argument arguments[8];
  int count = data[0] & 7;
  if (size <= (size_t)count + 1) return;
  for (int i = 0; i < count; i++) {
    bool is_pointer = data[1 + i] & 1;
    arguments[i] = (rdna_code_argument){
        .name = "", .type = "", .space = "", .size = is_pointer ? 8 : data[1 + i] >> 1, .is_pointer = is_pointer};
  }
  char *symbol = strndup((const char *)data + count + 1, size - (size_t)count - 1);
  if (!symbol) return;
  rdna__code_description d = {.target = "gfx1100"};
  rdna_code_kernel kernel = {.symbol = symbol, .argument_count = count, .arguments = arguments};
  if (rdna__code_name_kernel(&d, &kernel) != RDNA_OK || !kernel.name) abort();
  rdna__code_description_free(&d);
  free(symbol);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  describe(data, size);
  if (size > 1 && data[0] < 8) name(data, size);
  return 0;
}
