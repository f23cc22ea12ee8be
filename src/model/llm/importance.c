#include "model/llm/importance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/nn/watch.h"

/* Sums of squares of what a tensor was multiplied by. */
typedef struct seen {
  rdna_gguf_tensor tensor;
  int64_t matrices, columns;
  float *squares;  /* (matrices, columns): sums, for the file */
  double *precise; /* the same while they grow; NULL until it is seen */
  float *counts;   /* (matrices) */
} seen;

typedef struct collector {
  seen *tensors; /* (count), by address */
  size_t count;
  size_t found;
} collector;

static int by_address(const void *a, const void *b) {
  uintptr_t x = (uintptr_t)((const seen *)a)->tensor.data, y = (uintptr_t)((const seen *)b)->tensor.data;
  return x < y ? -1 : x > y;
}

/* All matrices of the file. */
static rdna_status list_tensors(const rdna_gguf *file, collector *c) {
  c->tensors = calloc(rdna_gguf_tensor_count(file) + 1, sizeof *c->tensors);
  if (!c->tensors) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a list of tensors");
  for (size_t i = 0; i < rdna_gguf_tensor_count(file); i++) {
    seen *s = &c->tensors[c->count];
    RDNA_TRY(rdna_gguf_tensor_at(file, i, &s->tensor));
    if (s->tensor.rank < 2 || s->tensor.rank > 3) continue;
    s->matrices = s->tensor.rank == 3 ? s->tensor.shape[0] : 1;
    s->columns = s->tensor.shape[s->tensor.rank - 1];
    c->count++;
  }
  qsort(c->tensors, c->count, sizeof *c->tensors, by_address);
  return RDNA_OK;
}

static rdna_status add_row(seen *s, int64_t matrix, const float *x) {
  if (matrix < 0 || matrix >= s->matrices) return RDNA_OK; /* an expert that is none */
  double *sums = s->precise + matrix * s->columns;
  for (int64_t i = 0; i < s->columns; i++) sums[i] += (double)x[i] * (double)x[i];
  s->counts[matrix]++;
  return RDNA_OK;
}

/* A matrix that is a slice of the file's is not looked for: what the first slice reads the others read too. */
static rdna_status see(void *data, rdna_stream *stream, const rdna_tensor *weights, const rdna_tensor *x,
                       const rdna_tensor *chosen) {
  collector *c = data;
  const seen key = {.tensor.data = weights->data};
  seen *s = bsearch(&key, c->tensors, c->count, sizeof *c->tensors, by_address);
  int64_t columns = x->shape[x->rank - 1], rows = columns > 0 ? rdna_tensor_count(x) / columns : 0;
  if (!s || s->columns != columns) return RDNA_OK;
  if (x->dtype != RDNA_F32) return rdna__fail(RDNA_UNSUPPORTED, "activations are %s", rdna_dtype_name(x->dtype));
  if (!s->precise) {
    s->precise = calloc((size_t)(s->matrices * columns), sizeof *s->precise);
    s->squares = calloc((size_t)(s->matrices * columns), sizeof *s->squares);
    s->counts = calloc((size_t)s->matrices, sizeof *s->counts);
    if (!s->precise || !s->squares || !s->counts)
      return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for sums of squares");
    c->found++;
  }
  RDNA_TRY(rdna_stream_synchronize(stream));
  const float *values = x->data;
  int64_t stride = x->rank > 1 ? x->stride[x->rank - 2] : columns;
  int64_t slots = chosen ? rdna_tensor_count(chosen) : rows, shared = rows > 0 ? slots / rows : 1;
  for (int64_t slot = 0; slot < slots; slot++) {
    int64_t matrix = chosen ? ((const int32_t *)chosen->data)[slot] : 0;
    RDNA_TRY(add_row(s, matrix, values + slot / shared * stride));
  }
  return RDNA_OK;
}

static rdna_status read_windows(rdna_llm *llm, const int32_t *tokens, size_t windows, int window, int32_t bos,
                                void (*progress)(void *data, double share), void *progress_data) {
  rdna_llm_session_options options = {RDNA_LLM_SESSION_OPTIONS_INIT, .context = window, .exact = true};
  rdna_llm_session *session;
  RDNA_TRY(rdna_llm_session_create(llm, &options, &session));
  size_t logit_bytes = (size_t)rdna_llm_get_info(llm)->vocabulary * sizeof(float);
  float *logits = malloc(logit_bytes);
  int32_t *part = malloc((size_t)window * sizeof *part);
  rdna_status status = logits && part ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a window");
  for (size_t i = 0; i < windows && status == RDNA_OK; i++) {
    memcpy(part, tokens + i * (size_t)window, (size_t)window * sizeof *part);
    if (bos >= 0) *part = bos;
    status = rdna_llm_session_rewind(session, 0);
    if (status == RDNA_OK) status = rdna_llm_session_eval(session, part, window, logits);
    if (progress) progress(progress_data, (double)(i + 1) / (double)windows);
  }
  free(part);
  free(logits);
  rdna_llm_session_release(session);
  return status;
}

/* ---- the file ---- */

static rdna_status add_tensor(rdna_gguf_writer *writer, const seen *s, const char *suffix, const float *data,
                              int64_t columns) {
  char name[512];
  if (snprintf(name, sizeof name, "%s%s", s->tensor.name, suffix) >= (int)sizeof name)
    return rdna__fail(RDNA_UNSUPPORTED, "the name of tensor %s is too long", s->tensor.name);
  const rdna_gguf_tensor tensor = {
      .name = name, .dtype = RDNA_F32, .rank = 2, .shape = {s->matrices, columns}, .data = data};
  return rdna_gguf_writer_add_tensor(writer, &tensor, NULL, NULL);
}

static rdna_status fill_writer(rdna_gguf_writer *writer, collector *c, uint32_t windows, uint32_t window,
                               const char *text) {
  const rdna_text type = {"imatrix", strlen("imatrix")}, source = {text, strlen(text)};
  RDNA_TRY(rdna_gguf_writer_put(writer, "general.type", RDNA_GGUF_TYPE_TEXT, &type));
  RDNA_TRY(rdna_gguf_writer_put_array(writer, "imatrix.datasets", RDNA_GGUF_TYPE_TEXT, &source, 1));
  RDNA_TRY(rdna_gguf_writer_put(writer, "imatrix.chunk_count", RDNA_GGUF_TYPE_U32, &windows));
  RDNA_TRY(rdna_gguf_writer_put(writer, "imatrix.chunk_size", RDNA_GGUF_TYPE_U32, &window));
  for (size_t i = 0; i < c->count; i++) {
    seen *s = &c->tensors[i];
    if (!s->precise) continue;
    for (int64_t v = 0; v < s->matrices * s->columns; v++) s->squares[v] = (float)s->precise[v];
    RDNA_TRY(add_tensor(writer, s, ".in_sum2", s->squares, s->columns));
    RDNA_TRY(add_tensor(writer, s, ".counts", s->counts, 1));
  }
  return RDNA_OK;
}

static rdna_status write(collector *c, size_t windows, int window, const char *text, const char *path) {
  rdna_gguf_writer *writer;
  RDNA_TRY(rdna_gguf_writer_create(&writer));
  rdna_status status = fill_writer(writer, c, (uint32_t)windows, (uint32_t)window, text);
  if (status == RDNA_OK) status = rdna_gguf_writer_write(writer, path, NULL, NULL);
  rdna_gguf_writer_release(writer);
  return status;
}

rdna_status rdna__importance_make(rdna_llm *llm, const rdna_gguf *file, const int32_t *tokens, size_t count, int window,
                                  int32_t bos, const char *text, const char *path,
                                  void (*progress)(void *data, double share), void *progress_data) {
  size_t windows = count / (size_t)window;
  if (windows == 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the text has %zu tokens, which is less than a window of %d; --window N",
                      count, window);
  collector c = {0};
  const rdna__nn_watch watch = {see, &c};
  rdna_status status = list_tensors(file, &c);
  rdna__nn_watcher = &watch;
  if (status == RDNA_OK) status = read_windows(llm, tokens, windows, window, bos, progress, progress_data);
  rdna__nn_watcher = NULL;
  if (status == RDNA_OK && c.found == 0)
    status = rdna__fail(RDNA_UNSUPPORTED,
                        "the weights do not lie in the file's map; an importance matrix is made of a "
                        "GGUF file, on the host");
  if (status == RDNA_OK) status = write(&c, windows, window, text, path);
  for (size_t i = 0; i < c.count; i++) {
    free(c.tensors[i].squares);
    free(c.tensors[i].precise);
    free(c.tensors[i].counts);
  }
  free(c.tensors);
  return status;
}
