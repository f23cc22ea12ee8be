#include "model/weights/imatrix.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/strmap.h"

enum { MOST_NAME = 1024 };

typedef struct entry {
  char *name;
  float *means; /* (count) */
  int64_t count;
} entry;

struct rdna__imatrix {
  entry *entries;
  size_t count, capacity;
  rdna__strmap by_name;
};

/* An entry |name| with room for |count| means. */
static rdna_status add(rdna__imatrix *m, const char *name, size_t name_bytes, int64_t count, entry **out) {
  if (m->count == m->capacity) {
    size_t capacity = m->capacity ? 2 * m->capacity : 64;
    entry *grown = realloc(m->entries, capacity * sizeof *grown);
    if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for an importance matrix");
    m->entries = grown;
    m->capacity = capacity;
  }
  entry *e = &m->entries[m->count];
  *e = (entry){.name = strndup(name, name_bytes), .means = malloc((size_t)count * sizeof(float)), .count = count};
  m->count++; /* what it has is freed with the others */
  if (!e->name || !e->means) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for an importance matrix");
  bool inserted;
  RDNA_TRY(rdna__strmap_insert(&m->by_name, e->name, strlen(e->name), (uint32_t)(m->count - 1), &inserted));
  if (!inserted) return rdna__fail(RDNA_BAD_DATA, "tensor %s is there twice", e->name);
  *out = e;
  return RDNA_OK;
}

/* |means| = |sums| over |divisor|, which is 1 where nothing was counted. |sums| may be of any alignment. */
static rdna_status fill(const char *name, const void *sums, int64_t count, double divisor, float *means) {
  for (int64_t i = 0; i < count; i++) {
    float sum;
    memcpy(&sum, (const char *)sums + (size_t)i * sizeof sum, sizeof sum);
    means[i] = (float)((double)sum / divisor);
    if (!(sum >= 0) || !isfinite(means[i]))
      return rdna__fail(RDNA_BAD_DATA, "value %lld of tensor %s is %g, and should be a sum of squares", (long long)i,
                        name, (double)sum);
  }
  return RDNA_OK;
}

/* ---- the older form ---- */

typedef struct reader {
  const uint8_t *at, *end;
} reader;

static rdna_status take(reader *r, size_t bytes, const void **out) {
  if ((size_t)(r->end - r->at) < bytes)
    return rdna__fail(RDNA_BAD_DATA, "it is no importance matrix, or cut short: %zu bytes are missing at the end",
                      bytes - (size_t)(r->end - r->at));
  *out = r->at;
  r->at += bytes;
  return RDNA_OK;
}

static rdna_status take_count(reader *r, const char *what, int64_t least, int64_t most, int64_t *out) {
  const void *bytes = NULL;
  int32_t value;
  RDNA_TRY(take(r, sizeof value, &bytes));
  memcpy(&value, bytes, sizeof value);
  if (value < least || value > most)
    return rdna__fail(RDNA_BAD_DATA, "it is no importance matrix, or broken: %s is %d", what, (int)value);
  *out = value;
  return RDNA_OK;
}

static rdna_status read_entry(reader *r, rdna__imatrix *m) {
  int64_t name_bytes = 0, calls = 0, count = 0;
  const void *name = NULL, *sums = NULL;
  entry *e;
  RDNA_TRY(take_count(r, "the length of a name", 1, MOST_NAME, &name_bytes));
  RDNA_TRY(take(r, (size_t)name_bytes, &name));
  RDNA_TRY(take_count(r, "the number of calls", 0, INT32_MAX, &calls));
  RDNA_TRY(take_count(r, "the number of values", 1, INT32_MAX, &count));
  RDNA_TRY(take(r, (size_t)count * sizeof(float), &sums));
  RDNA_TRY(add(m, name, (size_t)name_bytes, count, &e));
  return fill(e->name, sums, count, calls > 0 ? (double)calls : 1, e->means);
}

static rdna_status read_older(const void *data, size_t size, rdna__imatrix *m) {
  reader r = {data, (const uint8_t *)data + size};
  int64_t entries = 0;
  RDNA_TRY(take_count(&r, "the number of entries", 1, 1 << 20, &entries));
  for (int64_t i = 0; i < entries; i++) RDNA_TRY(read_entry(&r, m));
  return RDNA_OK; /* what follows says of what text it was made */
}

/* ---- GGUF ---- */

/* Reads NAME.in_sum2 with its NAME.counts. */
static rdna_status read_tensor(const rdna_gguf *file, const rdna_gguf_tensor *sums, size_t name_bytes,
                               rdna__imatrix *m) {
  char name[MOST_NAME + sizeof ".counts"];
  rdna_gguf_tensor counts;
  snprintf(name, sizeof name, "%.*s.counts", (int)name_bytes, sums->name);
  if (!rdna_gguf_has_tensor(file, name)) return rdna__fail(RDNA_BAD_DATA, "there is no tensor %s", name);
  RDNA_TRY(rdna_gguf_get_tensor(file, name, &counts));
  int64_t count = (int64_t)(sums->bytes / sizeof(float)), matrices = (int64_t)(counts.bytes / sizeof(float));
  if (sums->dtype != RDNA_F32 || counts.dtype != RDNA_F32 || matrices < 1 || count < 1 || count % matrices != 0)
    return rdna__fail(RDNA_BAD_DATA, "tensor %s and its counts do not fit, or are not f32", sums->name);
  entry *e;
  RDNA_TRY(add(m, sums->name, name_bytes, count, &e));
  int64_t columns = count / matrices;
  for (int64_t i = 0; i < matrices; i++) {
    float calls = ((const float *)counts.data)[i];
    const float *from = (const float *)sums->data + i * columns;
    RDNA_TRY(fill(e->name, from, columns, calls > 0 && isfinite(calls) ? (double)calls : 1, e->means + i * columns));
  }
  return RDNA_OK;
}

static rdna_status read_gguf(const void *data, size_t size, rdna__imatrix *m) {
  static const char suffix[] = ".in_sum2";
  rdna_gguf *file;
  RDNA_TRY(rdna_gguf_open_memory(data, size, &file));
  rdna_status status = RDNA_OK;
  for (size_t i = 0; i < rdna_gguf_tensor_count(file) && status == RDNA_OK; i++) {
    rdna_gguf_tensor tensor;
    status = rdna_gguf_tensor_at(file, i, &tensor);
    size_t length = status == RDNA_OK ? strlen(tensor.name) : 0, end = sizeof suffix - 1;
    if (length <= end || length - end > MOST_NAME || strcmp(tensor.name + length - end, suffix) != 0) continue;
    status = read_tensor(file, &tensor, length - end, m);
  }
  if (status == RDNA_OK && m->count == 0)
    status = rdna__fail(RDNA_BAD_DATA, "it is a GGUF file without a tensor NAME.in_sum2, so no importance matrix");
  rdna_gguf_close(file);
  return status;
}

/* ---- both ---- */

rdna_status rdna__imatrix_open_memory(const void *data, size_t size, rdna__imatrix **out_imatrix) {
  rdna__imatrix *m = calloc(1, sizeof *m);
  if (!m) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for an importance matrix");
  bool is_gguf = size >= 4 && memcmp(data, "GGUF", 4) == 0;
  rdna_status status = is_gguf ? read_gguf(data, size, m) : read_older(data, size, m);
  if (status == RDNA_OK) {
    *out_imatrix = m;
  } else {
    rdna__imatrix_close(m);
  }
  return status;
}

rdna_status rdna__imatrix_open(const char *path, rdna__imatrix **out_imatrix) {
  rdna__file file;
  rdna_status status = rdna__file_map(path, &file);
  if (status == RDNA_OK) status = rdna__imatrix_open_memory(file.data, file.size, out_imatrix);
  rdna__file_unmap(&file);
  return rdna__annotate(status, "%s", path);
}

void rdna__imatrix_close(rdna__imatrix *m) {
  if (!m) return;
  for (size_t i = 0; i < m->count; i++) {
    free(m->entries[i].name);
    free(m->entries[i].means);
  }
  free(m->entries);
  rdna__strmap_deinit(&m->by_name);
  free(m);
}

size_t rdna__imatrix_count(const rdna__imatrix *m) { return m->count; }

rdna_status rdna__imatrix_find(const rdna__imatrix *m, const rdna_gguf_tensor *tensor, const float **out_means,
                               int64_t *out_matrices) {
  uint32_t index;
  *out_means = NULL;
  if (tensor->rank < 2 || !rdna__strmap_find(&m->by_name, tensor->name, strlen(tensor->name), &index)) return RDNA_OK;
  const entry *e = &m->entries[index];
  int64_t columns = tensor->shape[tensor->rank - 1], matrices = 1;
  for (int i = 0; i < tensor->rank - 2; i++) matrices *= tensor->shape[i];
  if (e->count != columns && e->count != matrices * columns)
    return rdna__fail(RDNA_BAD_DATA,
                      "the importance matrix has %lld numbers for tensor %s, which has %lld matrices of %lld columns",
                      (long long)e->count, tensor->name, (long long)matrices, (long long)columns);
  *out_means = e->means;
  *out_matrices = e->count / columns;
  return RDNA_OK;
}
