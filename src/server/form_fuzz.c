/* Forms: the first line is the request's Content-Type, the rest its body. */
#include <stdlib.h>
#include <string.h>

#include "server/form.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool fine, const problem *p) {
  if (!fine && !(p->status && *p->message)) abort(); /* who refuses says why */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const values[] = {"n", "seed", NULL};
  static form_data f; /* large */
  char type[256];
  problem p = {0};
  const uint8_t *line = memchr(data, '\n', size < sizeof type ? size : sizeof type - 1);
  size_t head = line ? (size_t)(line - data) : 0;
  memcpy(type, data, head);
  type[head] = 0;
  const char *body = (const char *)data + head, *end = (const char *)data + size;
  bool fine = form_parse(line ? type : "multipart/form-data; boundary=x", body, (size_t)(end - body), &f, &p);
  check(fine, &p);
  if (!fine) return 0;
  for (size_t i = 0; i < f.count; i++) {
    const form_part *part = &f.parts[i];
    if (!*part->name || part->data < body || part->data + part->size > end) abort();
    if (i > 0 && part->data < f.parts[i - 1].data + f.parts[i - 1].size) abort();
    const form_part *file = form_file(&f, part->name, &p);
    if (file != (part->is_file ? part : NULL)) abort();
  }
  json_t *object = form_object(&f, values, &p);
  check(object != NULL, &p);
  if (object && json_object_size(object) != f.count) abort();
  json_decref(object);
  return 0;
}
