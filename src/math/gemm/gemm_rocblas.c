/* rocBLAS, for products without a bias. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "device/driver.h"
#include "math/gemm/gemm_vendor.h"

#define RDNA__SYMBOL(result, name, arguments) result(*name) arguments;
static struct rocblas_table {
#include "math/gemm/gemm_rocblas_symbols.h"
} rocblas;
#undef RDNA__SYMBOL
#define RDNA__SYMBOL(result, name, arguments) {#name, offsetof(struct rocblas_table, name), true},
static const rdna__symbol symbols[] = {
#include "math/gemm/gemm_rocblas_symbols.h"
};
#undef RDNA__SYMBOL

enum { OPERATION_NONE = 111, OPERATION_TRANSPOSE = 112, ATOMICS_NOT_ALLOWED = 0, GEMM_ALGO_STANDARD = 0 };

/* A handle keeps a workspace, so that each stream needs one of its own. */
enum { MAX_STREAMS = 32 };
typedef struct rocblas_device {
  pthread_mutex_t lock;
  struct {
    void *native_stream, *handle;
  } streams[MAX_STREAMS];
  int count, next; /* when all are in use, the next one makes room */
} rocblas_device;

static int create(void **out_handle, void *native_stream) {
  int code = rocblas.rocblas_create_handle(out_handle);
  if (code != 0) return code;
  code = rocblas.rocblas_set_stream(*out_handle, native_stream);
  /* sums by atomics would differ from run to run */
  if (code == 0) code = rocblas.rocblas_set_atomics_mode(*out_handle, ATOMICS_NOT_ALLOWED);
  if (code != 0) rocblas.rocblas_destroy_handle(*out_handle);
  return code;
}

static int handle_for(rocblas_device *r, void *native_stream, void **out_handle) {
  for (int i = 0; i < r->count; i++) {
    if (r->streams[i].native_stream != native_stream) continue;
    *out_handle = r->streams[i].handle;
    return 0;
  }
  int code = create(out_handle, native_stream);
  if (code != 0) return code;
  int at = r->count < MAX_STREAMS ? r->count++ : r->next++ % MAX_STREAMS;
  if (r->streams[at].handle) rocblas.rocblas_destroy_handle(r->streams[at].handle);
  r->streams[at].native_stream = native_stream;
  r->streams[at].handle = *out_handle;
  return 0;
}

static rdna_status rocblas_open(rdna_device *device, void **out_handle, char *version) {
  rocblas_device *r = calloc(1, sizeof *r);
  if (!r) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for rocBLAS");
  if (rocblas.rocblas_get_version_string(version, 32) != 0) snprintf(version, 32, "unknown");
  pthread_mutex_init(&r->lock, NULL);
  *out_handle = r;
  return RDNA_OK;
}

static void rocblas_close(void *handle) {
  rocblas_device *r = handle;
  for (int i = 0; i < r->count; i++) rocblas.rocblas_destroy_handle(r->streams[i].handle);
  pthread_mutex_destroy(&r->lock);
  free(r);
}

const rdna__vendor_description rdna__rocblas = {
    .name = "rocblas",
    .driver = "hip",
    .files = {"librocblas.so.5", "librocblas.so.4", "librocblas.so.3"},
    .wheels = {"_rocm_sdk_libraries*/lib", "torch/lib"},
    .kernels = "rocblas/library",
    .kernels_environment = "ROCBLAS_TENSILE_LIBPATH",
    .symbols = symbols,
    .symbol_count = sizeof symbols / sizeof *symbols,
    .table = &rocblas,
    .open = rocblas_open,
    .close = rocblas_close,
};

static int rocblas_type(rdna_dtype type) {
  switch (type) {
    case RDNA_F16:
      return 150;
    case RDNA_BF16:
      return 168;
    case RDNA_I8:
      return 160;
    case RDNA_I32:
      return 162;
    default:
      return 151; /* f32 */
  }
}

bool rdna__gemm_rocblas_applies(const rdna__gemm_problem *problem) {
  rdna__gemm_columns c;
  return !problem->args.bias && problem->args.activation == RDNA_ACTIVATION_NONE &&
         rdna__gemm_columns_make(problem, &c);
}

typedef struct run {
  rocblas_device *r;
  const char *name;
  const rdna__gemm_columns *c;
  float alpha;
} run;

static rdna_status run_call(void *native_stream, void *data) {
  const run *r = data;
  const rdna__gemm_columns *c = r->c;
  union {
    float f;
    int32_t i;
  } alpha = {.f = r->alpha}, beta = {.f = c->beta};
  bool integers = c->d_type == RDNA_I32;
  if (integers) alpha.i = (int32_t)r->alpha, beta.i = (int32_t)c->beta;
  int d_type = rocblas_type(c->d_type);
  void *handle = NULL;
  pthread_mutex_lock(&r->r->lock);
  int code = handle_for(r->r, native_stream, &handle);
  if (code == 0)
    code = rocblas.rocblas_gemm_strided_batched_ex(
        handle, c->a_transposed ? OPERATION_TRANSPOSE : OPERATION_NONE,
        c->b_transposed ? OPERATION_TRANSPOSE : OPERATION_NONE, (int32_t)c->rows, (int32_t)c->columns, (int32_t)c->k,
        &alpha, c->a, rocblas_type(c->a_type), (int32_t)c->lda, c->stride_a, c->b, rocblas_type(c->b_type),
        (int32_t)c->ldb, c->stride_b, &beta, c->c, d_type, (int32_t)c->ldc, c->stride_c, c->d, d_type, (int32_t)c->ldd,
        c->stride_d, (int32_t)c->batch, rocblas_type(integers ? RDNA_I32 : RDNA_F32), GEMM_ALGO_STANDARD, 0, 0);
  pthread_mutex_unlock(&r->r->lock);
  if (code == 0) return RDNA_OK;
  enum { NOT_IMPLEMENTED = 2 };
  return rdna__fail(code == NOT_IMPLEMENTED ? RDNA_UNSUPPORTED : RDNA_DEVICE_ERROR,
                    "%s failed with status %d in a product of %lld x %lld x %lld", r->name, code, (long long)c->columns,
                    (long long)c->rows, (long long)c->k);
}

rdna_status rdna__gemm_rocblas_run(void *handle, rdna_stream *stream, const char *name,
                                   const rdna__gemm_problem *problem) {
  rdna__gemm_columns columns;
  if (!rdna__gemm_rocblas_applies(problem) || !rdna__gemm_columns_make(problem, &columns))
    return rdna__fail(RDNA_UNSUPPORTED, "%s does not take this layout, or a bias", name);
  run r = {handle, name, &columns, problem->args.alpha};
  return rdna__stream_native_call(stream, name, run_call, &r);
}
