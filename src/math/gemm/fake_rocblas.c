/* A librocblas for tests, declared here from AMD's reference, apart from the table that calls it. */
#include "math/vendor/fake_vendor.h"

enum { INVALID_HANDLE = 1, NOT_IMPLEMENTED = 2, INVALID_POINTER = 3, INVALID_SIZE = 4, INVALID_VALUE = 11 };
enum { NONE = 111, TRANSPOSE = 112 };

typedef struct fake_handle {
  uint32_t magic;
  void *stream;
  int atomics;
} fake_handle;
enum { MAGIC = 0x0cb1a5 };

EXPORT fake_vendor_record fake_record;

EXPORT int rocblas_create_handle(fake_handle **out) {
  *out = calloc(1, sizeof **out);
  **out = (fake_handle){MAGIC, NULL, 1};
  fake_record.handles++;
  return 0;
}
EXPORT int rocblas_destroy_handle(fake_handle *handle) {
  if (!handle || handle->magic != MAGIC) return REFUSE(INVALID_HANDLE, "a handle");
  handle->magic = 0;
  free(handle);
  fake_record.handles--;
  return 0;
}
EXPORT int rocblas_set_stream(fake_handle *handle, void *stream) {
  if (!handle || handle->magic != MAGIC) return REFUSE(INVALID_HANDLE, "a handle");
  handle->stream = stream;
  return 0;
}
EXPORT int rocblas_set_atomics_mode(fake_handle *handle, int mode) {
  if (!handle || handle->magic != MAGIC) return REFUSE(INVALID_HANDLE, "a handle");
  handle->atomics = mode;
  return mode == 0 || mode == 1 ? 0 : REFUSE(INVALID_VALUE, "a mode");
}
EXPORT int rocblas_get_version_string(char *text, size_t size) {
  snprintf(text, size, "4.4.0.fake");
  return 0;
}

struct operand {
  enum fake_type type;
  int64_t ld, stride;
};
struct work {
  int a_op, b_op, batch;
  int64_t m, n, k;
  struct operand a, b, c, d;
  const void *a_data, *b_data, *c_data;
  void *d_data;
  double alpha, beta;
};

static int known_type(int type, enum fake_type *out) {
  static const int numbers[] = {151, 150, 168, 160, 162};
  for (int i = 0; i < 5; i++)
    if (numbers[i] == type) return *out = (enum fake_type)i, 1;
  return 0;
}

static void run(void *data) {
  struct work *w = data;
  for (int64_t at = 0; at < w->batch * w->m * w->n; at++) {
    int64_t i = at % w->m, j = at / w->m % w->n, batch = at / w->m / w->n;
    double sum = 0;
    for (int64_t q = 0; q < w->k; q++)
      sum += fake_get(w->a.type, w->a_data,
                      batch * w->a.stride + (w->a_op == TRANSPOSE ? q + i * w->a.ld : i + q * w->a.ld)) *
             fake_get(w->b.type, w->b_data,
                      batch * w->b.stride + (w->b_op == TRANSPOSE ? j + q * w->b.ld : q + j * w->b.ld));
    int64_t to = batch * w->d.stride + i + j * w->d.ld;
    double old = w->beta == 0 ? 0 : w->beta * fake_get(w->d.type, w->c_data, batch * w->c.stride + i + j * w->c.ld);
    fake_put(w->d.type, w->d_data, to, w->alpha * sum + old);
  }
  free(w);
}

EXPORT int rocblas_gemm_strided_batched_ex(fake_handle *handle, int a_op, int b_op, int32_t m, int32_t n, int32_t k,
                                           const void *alpha, const void *a, int a_type, int32_t lda, int64_t stride_a,
                                           const void *b, int b_type, int32_t ldb, int64_t stride_b, const void *beta,
                                           const void *c, int c_type, int32_t ldc, int64_t stride_c, void *d,
                                           int d_type, int32_t ldd, int64_t stride_d, int32_t batch, int compute,
                                           int algo, int32_t solution, uint32_t flags) {
  struct work w = {.a_op = a_op, .b_op = b_op, .batch = batch, .m = m, .n = n, .k = k};
  w.a = (struct operand){0, lda, stride_a}, w.b = (struct operand){0, ldb, stride_b};
  w.c = (struct operand){0, ldc, stride_c}, w.d = (struct operand){0, ldd, stride_d};
  w.a_data = a, w.b_data = b, w.c_data = c, w.d_data = d;
  if (!handle || handle->magic != MAGIC || !handle->stream) return REFUSE(INVALID_HANDLE, "a handle with a stream");
  if (handle->atomics != 0) return REFUSE(INVALID_VALUE, "no atomics");
  if ((a_op != NONE && a_op != TRANSPOSE) || (b_op != NONE && b_op != TRANSPOSE))
    return REFUSE(INVALID_VALUE, "operations");
  if (!alpha || !beta || !a || !b || !c || !d) return REFUSE(INVALID_POINTER, "pointers");
  if (c_type != d_type || ldc < m || (c == d && (ldc != ldd || stride_c != stride_d)))
    return REFUSE(INVALID_VALUE, "C like D");
  if (m < 1 || n < 1 || k < 1 || batch < 1 || lda < (a_op == NONE ? m : k) || ldb < (b_op == NONE ? k : n) || ldd < m)
    return REFUSE(INVALID_SIZE, "sizes and leading dimensions");
  if (!known_type(a_type, &w.a.type) || !known_type(b_type, &w.b.type) || !known_type(d_type, &w.d.type))
    return REFUSE(INVALID_VALUE, "types");
  int integers = w.a.type == FAKE_I8;
  if (w.a.type != w.b.type || compute != (integers ? 162 : 151) || integers != (w.d.type == FAKE_I32))
    return REFUSE(NOT_IMPLEMENTED, "types that belong together");
  if (algo != 0 || solution != 0 || flags != 0) return REFUSE(INVALID_VALUE, "the standard algorithm");
  w.alpha = integers ? *(const int32_t *)alpha : *(const float *)alpha;
  w.beta = integers ? *(const int32_t *)beta : *(const float *)beta;
  fake_record.runs++;
  return fake_queue(handle->stream, run, &w, sizeof w) == 0 ? 0 : REFUSE(INVALID_VALUE, "a stream");
}
