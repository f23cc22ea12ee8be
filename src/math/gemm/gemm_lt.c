/* cuBLASLt and hipBLASLt, which have one interface under two names and two sets of numbers.
 *
 * A plan holds what a shape needs: descriptors, and the algorithm that the library's heuristic names for it. The first
 * call of a shape makes it, every later one looks it up under a hash: no allocation, no question to the library. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/strmap.h"
#include "device/driver.h"
#include "math/common/plan/scratch.h"
#include "math/gemm/gemm_vendor.h"

#define RDNA__SYMBOL(name, arguments) int(*name) arguments;
struct lt_table {
#include "math/gemm/gemm_lt_symbols.h"
  void *GetVersion; /* cuBLASLt's returns it, hipBLASLt's takes a handle and a place */
};
#undef RDNA__SYMBOL

static struct lt_table cublaslt, hipblaslt;

#define RDNA__SYMBOL(name, arguments) {"cublasLt" #name, offsetof(struct lt_table, name), true},
static const rdna__symbol cublaslt_symbols[] = {
#include "math/gemm/gemm_lt_symbols.h"
    {"cublasLtGetVersion", offsetof(struct lt_table, GetVersion), true}};
#undef RDNA__SYMBOL
#define RDNA__SYMBOL(name, arguments) {"hipblasLt" #name, offsetof(struct lt_table, name), true},
static const rdna__symbol hipblaslt_symbols[] = {
#include "math/gemm/gemm_lt_symbols.h"
    {"hipblasLtGetVersion", offsetof(struct lt_table, GetVersion), true}};
#undef RDNA__SYMBOL

/* Where the two differ. hipblasComputeType_t is hipblas-common.h's, hipBLASLt's since 0.7. */
typedef struct lt_numbers {
  int compute_f32, compute_i32, operation_n, operation_t;
  int layout_batch, layout_stride;
  int description_a, description_b, description_epilogue, description_bias;
  int description_bias_type; /* -1: D's, unasked */
  int preference_alignment;  /* of A, and of B, C, D after it; -1: there is none */
  int preference_reduction;  /* how parts of a sum may be joined; -1: there is none */
  size_t algorithm_bytes;
} lt_numbers;
static const lt_numbers cublaslt_numbers = {68, 72, 0, 1, 5, 6, 3, 4, 7, 8, -1, 5, 3, 64};
static const lt_numbers hipblaslt_numbers = {2, 9, 111, 112, 0, 1, 0, 1, 2, 3, 4, -1, -1, 24};

enum {
  PREFERENCE_WORKSPACE = 1,
  EPILOGUE_BIAS = 4,
  MAX_ALGORITHM = 64,
  /* after the algorithm: size_t workspace, int status, float waves, int reserved[4] */
  MAX_RESULT = MAX_ALGORITHM + 32,
  MAX_WAYS = 4,
  MAX_ALIGNMENT = 256
};
static const uint64_t max_workspace = (uint64_t)32 << 20;
/* Parts of a sum are joined in the type that it is computed in; the library would also join them in 16 bits. */
static const uint32_t reduction_in_compute_type = 2;

/* Looked up by its bytes; unused ones are zero. */
typedef struct plan_key {
  int64_t rows, columns, k, batch, lda, ldb, ldc, ldd, stride_a, stride_b, stride_c, stride_d;
  int32_t types[3], way;
  uint32_t alignments[4]; /* A, B, C, D: what the pointers are multiples of */
  uint16_t epilogue;
  uint8_t a_transposed, b_transposed;
} plan_key;

typedef struct plan {
  plan_key key;
  bool usable;
  int code; /* of the library, when not usable; 0: no algorithm */
  void *description, *a, *b, *c, *d;
  _Alignas(8) unsigned char algorithm[MAX_ALGORITHM];
  size_t workspace;
} plan;

typedef struct lt {
  const struct lt_table *f;
  const lt_numbers *n;
  void *handle;
  pthread_mutex_t lock; /* the plans, and the bias in a plan's description */
  rdna__strmap map;     /* from keys to numbers of plans */
  plan **plans;
} lt;

static void plan_release(const lt *t, plan *p) {
  if (p->description) t->f->MatmulDescDestroy(p->description);
  if (p->a) t->f->MatrixLayoutDestroy(p->a);
  if (p->b) t->f->MatrixLayoutDestroy(p->b);
  if (p->c) t->f->MatrixLayoutDestroy(p->c);
  if (p->d) t->f->MatrixLayoutDestroy(p->d);
  free(p);
}

static void lt_close(void *handle) {
  lt *t = handle;
  for (size_t i = 0; i < t->map.count; i++) plan_release(t, t->plans[i]);
  rdna__strmap_deinit(&t->map);
  if (t->handle) t->f->Destroy(t->handle);
  pthread_mutex_destroy(&t->lock);
  free(t->plans);
  free(t);
}

static rdna_status lt_open(const struct lt_table *f, const lt_numbers *n, const char *name, void **out_handle) {
  lt *t = calloc(1, sizeof *t);
  if (!t) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %s", name);
  t->f = f, t->n = n;
  pthread_mutex_init(&t->lock, NULL);
  int code = f->Create(&t->handle);
  if (code != 0) {
    t->handle = NULL;
    lt_close(t);
    return rdna__fail(RDNA_UNAVAILABLE, "%sCreate failed on this device with status %d", name, code);
  }
  *out_handle = t;
  return RDNA_OK;
}

static rdna_status cublaslt_open(rdna_device *device, void **out_handle, char *version) {
  size_t number = ((size_t (*)(void))cublaslt.GetVersion)(); /* 120902; before 12, 11.x.y as 11xyy */
  if (number >= 100000)
    snprintf(version, 32, "%zu.%zu.%zu", number / 10000, number / 100 % 100, number % 100);
  else
    snprintf(version, 32, "%zu.%zu.%zu", number / 1000, number / 100 % 10, number % 100);
  return lt_open(&cublaslt, &cublaslt_numbers, "cublasLt", out_handle);
}

static rdna_status hipblaslt_open(rdna_device *device, void **out_handle, char *version) {
  RDNA_TRY(lt_open(&hipblaslt, &hipblaslt_numbers, "hipblasLt", out_handle));
  int number = 0; /* major * 100000 + minor * 100 + patch */
  int code = ((int (*)(void *, int *))hipblaslt.GetVersion)(((lt *)*out_handle)->handle, &number);
  snprintf(version, 32, "%d.%d.%d", number / 100000, number / 100 % 1000, number % 100);
  if (code == 0 && number >= 1000) return RDNA_OK;
  lt_close(*out_handle);
  *out_handle = NULL;
  return rdna__fail(RDNA_UNSUPPORTED, "hipBLASLt %s is older than 0.10 (ROCm 6.3), whose numbers we know", version);
}

const rdna__vendor_description rdna__cublaslt = {
    .name = "cublaslt",
    .driver = "cuda",
    .files = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"},
    .wheels = {"nvidia/cu13/lib", "nvidia/cublas/lib", "torch/lib"},
    .symbols = cublaslt_symbols,
    .symbol_count = sizeof cublaslt_symbols / sizeof *cublaslt_symbols,
    .table = &cublaslt,
    .open = cublaslt_open,
    .close = lt_close,
};
const rdna__vendor_description rdna__hipblaslt = {
    .name = "hipblaslt",
    .driver = "hip",
    .files = {"libhipblaslt.so.1", "libhipblaslt.so.0"},
    .wheels = {"_rocm_sdk_libraries*/lib", "torch/lib"},
    .kernels = "hipblaslt/library",
    .kernels_environment = "HIPBLASLT_TENSILE_LIBPATH",
    .symbols = hipblaslt_symbols,
    .symbol_count = sizeof hipblaslt_symbols / sizeof *hipblaslt_symbols,
    .table = &hipblaslt,
    .open = hipblaslt_open,
    .close = lt_close,
};

/* ---- plans ------------------------------------------------------------------------------------------------- */

static int lt_type(rdna_dtype type) {
  switch (type) { /* cudaDataType and hipDataType are one enumeration */
    case RDNA_F16:
      return 2;
    case RDNA_BF16:
      return 14;
    case RDNA_I8:
      return 3;
    case RDNA_I32:
      return 10;
    default:
      return 0; /* f32 */
  }
}

static uint32_t alignment(const void *data) {
  uintptr_t address = (uintptr_t)data | MAX_ALIGNMENT;
  return (uint32_t)(address & -address);
}

static plan_key key_of(const rdna__gemm_columns *c, const rdna__gemm_problem *problem, int way) {
  plan_key key;
  memset(&key, 0, sizeof key);
  key.rows = c->rows, key.columns = c->columns, key.k = c->k, key.batch = c->batch;
  key.lda = c->lda, key.ldb = c->ldb, key.ldc = c->ldc, key.ldd = c->ldd;
  key.stride_a = c->stride_a, key.stride_b = c->stride_b, key.stride_c = c->stride_c, key.stride_d = c->stride_d;
  key.types[0] = c->a_type, key.types[1] = c->b_type, key.types[2] = c->d_type;
  key.way = way;
  key.alignments[0] = alignment(c->a), key.alignments[1] = alignment(c->b);
  key.alignments[2] = alignment(c->c), key.alignments[3] = alignment(c->d);
  key.epilogue = problem->args.bias ? EPILOGUE_BIAS : 0;
  key.a_transposed = c->a_transposed, key.b_transposed = c->b_transposed;
  return key;
}

static int make_layout(const lt *t, void **out_layout, rdna_dtype type, int64_t rows, int64_t columns, int64_t ld,
                       int64_t batch, int64_t stride) {
  int code = t->f->MatrixLayoutCreate(out_layout, lt_type(type), (uint64_t)rows, (uint64_t)columns, ld);
  int32_t count = (int32_t)batch;
  if (code == 0 && batch > 1)
    code = t->f->MatrixLayoutSetAttribute(*out_layout, t->n->layout_batch, &count, sizeof count);
  if (code == 0 && batch > 1)
    code = t->f->MatrixLayoutSetAttribute(*out_layout, t->n->layout_stride, &stride, sizeof stride);
  return code;
}

static int describe(const lt *t, plan *p, const rdna__gemm_columns *c, const void *bias) {
  const struct lt_table *f = t->f;
  const lt_numbers *n = t->n;
  bool integers = c->d_type == RDNA_I32;
  int code = f->MatmulDescCreate(&p->description, integers ? n->compute_i32 : n->compute_f32,
                                 lt_type(integers ? RDNA_I32 : RDNA_F32));
  int32_t a = c->a_transposed ? n->operation_t : n->operation_n, b = c->b_transposed ? n->operation_t : n->operation_n;
  if (code == 0) code = f->MatmulDescSetAttribute(p->description, n->description_a, &a, sizeof a);
  if (code == 0) code = f->MatmulDescSetAttribute(p->description, n->description_b, &b, sizeof b);
  uint32_t epilogue = p->key.epilogue;
  if (code == 0 && epilogue)
    code = f->MatmulDescSetAttribute(p->description, n->description_epilogue, &epilogue, sizeof epilogue);
  if (code == 0 && bias) {
    int32_t type = lt_type(c->d_type);
    code = f->MatmulDescSetAttribute(p->description, n->description_bias, &bias, sizeof bias);
    if (code == 0 && n->description_bias_type >= 0)
      code = f->MatmulDescSetAttribute(p->description, n->description_bias_type, &type, sizeof type);
  }
  if (code == 0) code = make_layout(t, &p->a, c->a_type, c->a_rows, c->a_columns, c->lda, c->batch, c->stride_a);
  if (code == 0) code = make_layout(t, &p->b, c->b_type, c->b_rows, c->b_columns, c->ldb, c->batch, c->stride_b);
  if (code == 0) code = make_layout(t, &p->c, c->d_type, c->rows, c->columns, c->ldc, c->batch, c->stride_c);
  if (code == 0) code = make_layout(t, &p->d, c->d_type, c->rows, c->columns, c->ldd, c->batch, c->stride_d);
  return code;
}

static int ask(const lt *t, plan *p) {
  const struct lt_table *f = t->f;
  void *preference = NULL;
  int code = f->MatmulPreferenceCreate(&preference);
  if (code != 0) return code;
  code = f->MatmulPreferenceSetAttribute(preference, PREFERENCE_WORKSPACE, &max_workspace, sizeof max_workspace);
  for (int i = 0; t->n->preference_alignment >= 0 && i < 4 && code == 0; i++) {
    const uint32_t *bytes = &p->key.alignments[i];
    code = f->MatmulPreferenceSetAttribute(preference, t->n->preference_alignment + i, bytes, sizeof *bytes);
  }
  if (t->n->preference_reduction >= 0 && code == 0) {
    code = f->MatmulPreferenceSetAttribute(preference, t->n->preference_reduction, &reduction_in_compute_type,
                                           sizeof reduction_in_compute_type);
  }
  _Alignas(16) unsigned char results[MAX_WAYS * MAX_RESULT] = {0};
  int count = 0;
  if (code == 0)
    code = f->MatmulAlgoGetHeuristic(t->handle, p->description, p->a, p->b, p->c, p->d, preference, p->key.way + 1,
                                     results, &count);
  f->MatmulPreferenceDestroy(preference);
  if (code != 0 || count <= p->key.way) return code;
  const unsigned char *result = results + (size_t)p->key.way * (t->n->algorithm_bytes + 32);
  memcpy(p->algorithm, result, t->n->algorithm_bytes);
  memcpy(&p->workspace, result + t->n->algorithm_bytes, sizeof p->workspace);
  memcpy(&code, result + t->n->algorithm_bytes + 8, sizeof code);
  p->usable = code == 0 && p->workspace <= max_workspace;
  return code;
}

/* Under the lock, with the device current. */
static rdna_status plan_get(lt *t, const rdna__gemm_columns *c, const rdna__gemm_problem *problem, int way,
                            plan **out_plan) {
  plan_key key = key_of(c, problem, way);
  uint32_t at;
  if (rdna__strmap_find(&t->map, (const char *)&key, sizeof key, &at)) {
    *out_plan = t->plans[at];
    return RDNA_OK;
  }
  size_t count = t->map.count;
  plan **plans = realloc(t->plans, (count + 1) * sizeof *plans);
  if (plans) t->plans = plans;
  plan *p = plans ? calloc(1, sizeof *p) : NULL;
  if (!p) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a plan of a matrix product");
  p->key = key;
  rdna_status status = rdna__strmap_insert(&t->map, (const char *)&p->key, sizeof key, (uint32_t)count, &(bool){false});
  if (status != RDNA_OK) {
    free(p);
    return status;
  }
  p->code = describe(t, p, c, problem->args.bias);
  if (p->code == 0) p->code = ask(t, p);
  t->plans[count] = *out_plan = p;
  return RDNA_OK;
}

/* ---- calls ------------------------------------------------------------------------------------------------- */

typedef struct run {
  lt *t;
  rdna_stream *stream; /* NULL: only find out whether it applies */
  const char *name;
  const rdna__gemm_columns *columns;
  const rdna__gemm_problem *problem;
  int way;
} run;

static rdna_status run_locked(const run *r, void *native_stream) {
  lt *t = r->t;
  plan *p = NULL;
  RDNA_TRY(plan_get(t, r->columns, r->problem, r->way, &p));
  const rdna__gemm_columns *c = r->columns;
  if (!p->usable)
    return rdna__fail(RDNA_UNSUPPORTED, "%s has no algorithm for this product of %lld x %lld x %lld (status %d)",
                      r->name, (long long)c->columns, (long long)c->rows, (long long)c->k, p->code);
  if (!r->stream) return RDNA_OK;
  const struct gemm_args *args = &r->problem->args;
  union {
    float f;
    int32_t i;
  } alpha = {.f = args->alpha}, beta = {.f = c->beta};
  if (c->d_type == RDNA_I32) alpha.i = (int32_t)args->alpha, beta.i = (int32_t)c->beta;
  int code = 0;
  rdna__scratch scratch = {.stream = r->stream, .holder = "matrix product's workspace"};
  void *workspace = NULL;
  if (args->bias)
    code = t->f->MatmulDescSetAttribute(p->description, t->n->description_bias, &args->bias, sizeof args->bias);
  /* from the pool: a later call on this stream may have the same block, no other stream's can */
  if (p->workspace) RDNA_TRY(rdna__scratch_take(&scratch, p->workspace, &workspace));
  if (code == 0)
    code = t->f->Matmul(t->handle, p->description, &alpha, c->a, p->a, c->b, p->b, &beta, c->c, p->c, c->d, p->d,
                        p->algorithm, workspace, p->workspace, native_stream);
  RDNA_TRY(rdna__scratch_release(&scratch, RDNA_OK));
  if (code == 0) return RDNA_OK;
  return rdna__fail(RDNA_DEVICE_ERROR, "%s failed with status %d in a product of %lld x %lld x %lld", r->name, code,
                    (long long)c->columns, (long long)c->rows, (long long)c->k);
}

static rdna_status run_call(void *native_stream, void *data) {
  const run *r = data;
  pthread_mutex_lock(&r->t->lock);
  rdna_status status = run_locked(r, native_stream);
  pthread_mutex_unlock(&r->t->lock);
  return status;
}

bool rdna__gemm_lt_applies(void *handle, rdna_device *device, int way, const rdna__gemm_problem *problem) {
  rdna__gemm_columns columns;
  if (way >= MAX_WAYS || !rdna__gemm_columns_make(problem, &columns)) return false;
  run r = {handle, NULL, "", &columns, problem, way};
  const rdna__driver *driver = rdna__device_driver(device);
  return driver->native_call(rdna__device_handle(device), NULL, NULL, run_call, &r) == RDNA_OK;
}

rdna_status rdna__gemm_lt_run(void *handle, rdna_stream *stream, const char *name, int way,
                              const rdna__gemm_problem *problem) {
  rdna__gemm_columns columns;
  if (!rdna__gemm_columns_make(problem, &columns))
    return rdna__fail(RDNA_UNSUPPORTED, "%s does not take this layout", name);
  run r = {handle, stream, name, &columns, problem, way};
  return rdna__stream_native_call(stream, name, run_call, &r);
}
