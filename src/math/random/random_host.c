/* Random numbers from Philox4x32-10 on the host. */
#include "kernel/host.h"
#include "math/common/host/floats.h"
#include "math/random/random_kernels.h"
#include "math/random/random_math.h"

enum { CHUNK = 1024 };

struct work {
  const void *args;
  rdna_dtype dtype;
};

static int64_t chunk_length(int64_t count, int64_t at) { return count - at < CHUNK ? count - at : CHUNK; }
static int64_t chunks_of(int64_t count) { return (count + CHUNK - 1) / CHUNK; }

static void fill_chunks(void *context, int64_t begin, int64_t end) {
  const struct random_fill_args *a = context;
  rdna_dtype dtype = (rdna_dtype)a->dtype;
  float v[CHUNK];
  for (int64_t at = begin * CHUNK; at < end * CHUNK && at < a->count; at += CHUNK) {
    int64_t n = chunk_length(a->count, at);
    for (int64_t i = 0; i < n; i += 4) random_values(a, (uint64_t)(at + i) / 4, v + i);
    floats_store(dtype, (char *)a->out + at * floats_bytes(dtype), n, v);
  }
}

void RDNA_HOST_KERNEL(random_fill)(const void *args, rdna_grid grid) {
  struct random_fill_args a = *(const struct random_fill_args *)args;
  rdna__parallel_for(chunks_of(a.count), 4, fill_chunks, &a);
}

static void integer_chunks(void *context, int64_t begin, int64_t end) {
  const struct random_integers_args *a = context;
  for (int64_t i = begin * CHUNK; i < end * CHUNK && i < a->count; i++) {
    struct random_words w = random_block(a->seed, a->offset, (uint64_t)i / 2);
    int64_t v = random_integer(a->low, a->range, w.word[i % 2 * 2], w.word[i % 2 * 2 + 1]);
    if (a->is_i64) {
      ((int64_t *)a->out)[i] = v;
    } else {
      ((int32_t *)a->out)[i] = (int32_t)v;
    }
  }
}

void RDNA_HOST_KERNEL(random_integers)(const void *args, rdna_grid grid) {
  struct random_integers_args a = *(const struct random_integers_args *)args;
  rdna__parallel_for(chunks_of(a.count), 4, integer_chunks, &a);
}

static void dropout_chunks(void *context, int64_t begin, int64_t end) {
  const struct work *w = context;
  const struct dropout_args *a = w->args;
  int64_t bytes = floats_bytes(w->dtype);
  float v[CHUNK];
  for (int64_t at = begin * CHUNK; at < end * CHUNK && at < a->count; at += CHUNK) {
    int64_t n = chunk_length(a->count, at);
    floats_load(w->dtype, (const char *)a->x + at * bytes, n, v);
    for (int64_t i = 0; i < n; i += 4) {
      struct random_words words = random_block(a->seed, a->offset, (uint64_t)(at + i) / 4);
      for (int64_t k = 0; k < 4 && i + k < n; k++) {
        bool kept = random_unit(words.word[k]) >= a->probability;
        a->mask[at + i + k] = kept;
        v[i + k] = kept ? a->scale * v[i + k] : 0;
      }
    }
    floats_store(w->dtype, (char *)a->out + at * bytes, n, v);
  }
}

static void dropout(const void *args, rdna_dtype dtype) {
  struct work work = {args, dtype};
  rdna__parallel_for(chunks_of(((const struct dropout_args *)args)->count), 4, dropout_chunks, &work);
}

static void dropout_backward_chunks(void *context, int64_t begin, int64_t end) {
  const struct work *w = context;
  const struct dropout_backward_args *a = w->args;
  int64_t bytes = floats_bytes(w->dtype);
  float v[CHUNK];
  for (int64_t at = begin * CHUNK; at < end * CHUNK && at < a->count; at += CHUNK) {
    int64_t n = chunk_length(a->count, at);
    floats_load(w->dtype, (const char *)a->dout + at * bytes, n, v);
    for (int64_t i = 0; i < n; i++) v[i] = a->mask[at + i] ? a->scale * v[i] : 0;
    floats_store(w->dtype, (char *)a->dx + at * bytes, n, v);
  }
}

static void dropout_backward(const void *args, rdna_dtype dtype) {
  struct work work = {args, dtype};
  rdna__parallel_for(chunks_of(((const struct dropout_backward_args *)args)->count), 4, dropout_backward_chunks, &work);
}

#define TWINS(suffix, dtype)                                                                          \
  void RDNA_HOST_KERNEL(dropout_##suffix)(const void *args, rdna_grid grid) { dropout(args, dtype); } \
  void RDNA_HOST_KERNEL(dropout_backward_##suffix)(const void *args, rdna_grid grid) { dropout_backward(args, dtype); }
TWINS(f32, RDNA_F32)
TWINS(f16, RDNA_F16)
TWINS(bf16, RDNA_BF16)
