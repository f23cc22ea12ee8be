/* rewrite_graph of a GraphDef that is given, and of COUNT of it with some bytes changed or cut off, which must end
 * well: rewrite_fuzz FILE COUNT SEED. Prints how many fusions the whole one had, and writes it to FILE.out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rewrite.h"

static uint64_t state;

static uint64_t draw(uint64_t below) { /* xorshift64* */
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545f4914f6cdd1du % below;
}

int main(int argc, char **argv) {
  FILE *file = argc == 4 ? fopen(argv[1], "rb") : NULL;
  if (!file) return 2;
  unsigned char *whole = malloc(1 << 24);
  size_t size = fread(whole, 1, 1 << 24, file);
  fclose(file);
  struct wire out;
  printf("%d\n", rewrite_graph(whole, size, &(struct kept){0}, &out));
  char name[512];
  snprintf(name, sizeof name, "%s.out", argv[1]);
  file = fopen(name, "wb");
  if (!file || fwrite(out.data, 1, out.size, file) != out.size || fclose(file) != 0) return 2;
  free(out.data);
  state = strtoull(argv[3], NULL, 10) * 2 + 1;
  for (long i = 0; i < atol(argv[2]); i++) {
    size_t length = draw(4) ? size : draw(size + 1);
    unsigned char *bytes = malloc(length ? length : 1); /* of exactly this size to the sanitizer */
    memcpy(bytes, whole, length);
    for (uint64_t k = draw(12); k > 0 && length; k--) bytes[draw(length)] = (unsigned char)draw(256);
    rewrite_graph(bytes, length, &(struct kept){0}, &out);
    free(out.data);
    free(bytes);
  }
  free(whole);
  return 0;
}
