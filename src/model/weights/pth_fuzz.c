/* Reads files of torch.save: the input, or, where its first byte is odd, a whole zip whose pickle it is, with two
 * storages. What is found lies inside the file. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/weights/pth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(FILE *to, uint32_t number, int bytes) {
  for (int i = 0; i < bytes; i++) fputc((int)(number >> (8 * i) & 255), to);
}

/* The parts of an entry that its head and its place in the directory have alike. */
static void put_sizes(FILE *to, const char *name, size_t size) {
  put(to, 0, 4); /* packed by nothing, */
  put(to, 0, 4); /* at no time, */
  put(to, 0, 4); /* with no sum */
  put(to, (uint32_t)size, 4);
  put(to, (uint32_t)size, 4);
  put(to, (uint32_t)strlen(name), 2);
  put(to, 0, 2);
}

static char *make_zip(const uint8_t *data, size_t size, size_t *out_size) {
  static const uint8_t storage[64];
  const struct {
    const char *name;
    const uint8_t *data;
    size_t size;
  } all[] = {{"x/data.pkl", data, size}, {"x/data/0", storage, 64}, {"x/data/1", storage, 16}};
  char *text = NULL;
  long places[3], directory, end;
  FILE *to = open_memstream(&text, out_size);
  if (!to) return NULL;
  for (int i = 0; i < 3; i++) {
    places[i] = ftell(to);
    fwrite("PK\3\4\0\0", 1, 6, to);
    put_sizes(to, all[i].name, all[i].size);
    fputs(all[i].name, to);
    fwrite(all[i].data, 1, all[i].size, to);
  }
  directory = ftell(to);
  for (int i = 0; i < 3; i++) {
    fwrite("PK\1\2\0\0\0\0", 1, 8, to);
    put_sizes(to, all[i].name, all[i].size);
    put(to, 0, 4), put(to, 0, 4), put(to, 0, 2);
    put(to, (uint32_t)places[i], 4);
    fputs(all[i].name, to);
  }
  end = ftell(to);
  fwrite("PK\5\6\0\0\0\0", 1, 8, to);
  put(to, 3, 2), put(to, 3, 2);
  put(to, (uint32_t)(end - directory), 4);
  put(to, (uint32_t)directory, 4);
  put(to, 0, 2);
  fclose(to);
  return text;
}

static void check(const json_t *header, size_t size) {
  const char *name;
  const json_t *entry;
  json_object_foreach((json_t *)header, name, entry) {
    const json_t *offsets = json_object_get(entry, "data_offsets");
    json_int_t from = json_integer_value(json_array_get(offsets, 0)),
               to = json_integer_value(json_array_get(offsets, 1));
    if (from < 0 || to < from || (size_t)to > size) abort();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *zip = NULL;
  json_t *header = NULL;
  if (size == 0) return 0;
  if (data[0] & 1) {
    zip = make_zip(data + 1, size - 1, &size);
    if (!zip) return 0;
  } else {
    data++, size--;
  }
  rdna_status status = rdna__pth_header(zip ? (const uint8_t *)zip : data, size, &header);
  if (status != RDNA_OK && !*rdna_last_error()) abort();
  if (status == RDNA_OK) check(header, size);
  json_decref(header);
  free(zip);
  return 0;
}
