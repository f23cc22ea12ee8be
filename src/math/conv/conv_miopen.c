#include "math/conv/conv_miopen.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/strmap.h"
#include "device/driver.h"
#include "math/common/plan/scratch.h"

/* miopenConvSolution_t */
typedef struct solution {
  float time; /* as MIOpen guesses, ms; they come sorted by it */
  size_t workspace;
  uint64_t id;
  int algorithm;
} solution;

typedef int solution_count_function(void *handle, void *first, void *second, void *convolution, void *out,
                                    size_t *out_count);
typedef int solution_function(void *handle, void *first, void *second, void *convolution, void *out, size_t wanted,
                              size_t *out_count, solution *out_solutions);
typedef int compile_function(void *handle, void *first, void *second, void *convolution, void *out, uint64_t id);
typedef int immediate_function(void *handle, void *first, const void *first_data, void *second, const void *second_data,
                               void *convolution, void *out, void *out_data, void *workspace, size_t workspace_size,
                               uint64_t id);
typedef struct direction {
  solution_count_function *count;
  solution_function *get;
  compile_function *compile;
  immediate_function *run;
} direction;

#define RDNA__SYMBOL(result, name, arguments) result(*name) arguments;
#define RDNA__DIRECTION(name) direction name;
static struct miopen_table {
#include "math/conv/conv_miopen_symbols.h"
} miopen;
#undef RDNA__SYMBOL
#undef RDNA__DIRECTION
#define RDNA__SYMBOL(result, name, arguments) {#name, offsetof(struct miopen_table, name), true},
#define RDNA__DIRECTION(name)                                                                           \
  {"miopenConvolution" #name "GetSolutionCount", offsetof(struct miopen_table, name.count), true},      \
      {"miopenConvolution" #name "GetSolution", offsetof(struct miopen_table, name.get), true},         \
      {"miopenConvolution" #name "CompileSolution", offsetof(struct miopen_table, name.compile), true}, \
      {"miopenConvolution" #name "Immediate", offsetof(struct miopen_table, name.run), true},
static const rdna__symbol symbols[] = {
#include "math/conv/conv_miopen_symbols.h"
};
#undef RDNA__SYMBOL
#undef RDNA__DIRECTION

enum { MAX_DIMS = 5, MAX_SOLUTIONS = 16, MODE_CONVOLUTION = 0 };
static const size_t max_workspace = (size_t)512 << 20;

/* Looked up by its bytes; unused ones are zero. */
typedef struct plan_key {
  int32_t mode, type, rank, groups, channels_last;
  int32_t x[MAX_DIMS], weight[MAX_DIMS], y[MAX_DIMS];
  int32_t padding[3], stride[3], dilation[3];
} plan_key;

typedef struct plan {
  plan_key key;
  int code;
  bool usable;
  void *x, *weight, *y, *convolution;
  size_t workspace;
  uint64_t id;
} plan;

typedef struct miopen_device {
  pthread_mutex_t lock;
  void *handle;
  rdna__strmap map; /* from keys to numbers of plans */
  plan **plans;
} miopen_device;

static void plan_release(plan *p) {
  void *tensors[] = {p->x, p->weight, p->y};
  for (int i = 0; i < 3; i++)
    if (tensors[i]) miopen.miopenDestroyTensorDescriptor(tensors[i]);
  if (p->convolution) miopen.miopenDestroyConvolutionDescriptor(p->convolution);
  free(p);
}

static void miopen_close(void *data) {
  miopen_device *m = data;
  for (size_t i = 0; i < m->map.count; i++) plan_release(m->plans[i]);
  rdna__strmap_deinit(&m->map);
  if (m->handle) miopen.miopenDestroy(m->handle);
  pthread_mutex_destroy(&m->lock);
  free(m->plans);
  free(m);
}

static rdna_status miopen_open(rdna_device *device, void **out_handle, char *version) {
  size_t major = 0, minor = 0, patch = 0;
  miopen_device *m = calloc(1, sizeof *m);
  if (!m) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for MIOpen");
  pthread_mutex_init(&m->lock, NULL);
  int code = miopen.miopenGetVersion(&major, &minor, &patch);
  snprintf(version, 32, "%zu.%zu.%zu", major, minor, patch);
  if (code == 0) code = miopen.miopenCreate(&m->handle);
  if (code != 0) {
    miopen_close(m);
    return rdna__fail(RDNA_UNAVAILABLE, "miopenCreate failed on this device with status %d", code);
  }
  *out_handle = m;
  return RDNA_OK;
}

const rdna__vendor_description rdna__miopen = {
    .name = "miopen",
    .driver = "hip",
    .files = {"libMIOpen.so.1"},
    .wheels = {"_rocm_sdk_libraries*/lib", "torch/lib"},
    .symbols = symbols,
    .symbol_count = sizeof symbols / sizeof *symbols,
    .table = &miopen,
    .open = miopen_open,
    .close = miopen_close,
};

/* ---- plans ------------------------------------------------------------------------------------------------- */

/* Sizes with a height of 1 before a single dimension, which MIOpen does not have. False for another layout than
 * channels first (0) or last (1) without gaps; sizes of 1 fit either. */
static bool read_tensor(const rdna_tensor *tensor, int32_t sizes[MAX_DIMS], int *out_rank, bool layouts[2]) {
  int gap = tensor->rank == 3 ? 1 : 0;
  *out_rank = tensor->rank + gap;
  for (int d = 0; d < tensor->rank; d++) {
    if (tensor->shape[d] < 1 || tensor->shape[d] > INT32_MAX) return false;
    sizes[d < 2 ? d : d + gap] = (int32_t)tensor->shape[d];
  }
  if (gap) sizes[2] = 1;
  int64_t first = 1, last = tensor->shape[1];
  for (int d = tensor->rank - 1; d >= 0; d--) {
    if (tensor->shape[d] > 1) {
      if (tensor->stride[d] != first) layouts[0] = false;
      if (tensor->stride[d] != (d == 1 ? 1 : last)) layouts[1] = false;
    }
    first *= tensor->shape[d];
    if (d > 1) last *= tensor->shape[d];
  }
  return layouts[0] || layouts[1];
}

static int miopen_type(rdna_dtype type) { return type == RDNA_F16 ? 0 : type == RDNA_BF16 ? 5 : 1; }

static bool key_make(const rdna__conv_call *call, plan_key *out_key) {
  memset(out_key, 0, sizeof *out_key);
  plan_key *k = out_key;
  const rdna_convolution *conv = call->conv;
  bool layouts[2] = {true, true};
  if (call->bias || !read_tensor(call->x, k->x, &k->rank, layouts) ||
      !read_tensor(call->weight, k->weight, &k->rank, layouts) || !read_tensor(call->y, k->y, &k->rank, layouts))
    return false;
  k->mode = call->mode, k->type = miopen_type(call->x->dtype), k->groups = (int32_t)conv->groups;
  k->channels_last = !layouts[0];
  int dims = k->rank - 2;
  for (int d = 0; d < dims; d++) {
    int from = d - (dims - conv->spatial_dims);
    k->padding[d] = from < 0 ? 0 : (int32_t)conv->pad_before[from];
    k->stride[d] = from < 0 ? 1 : (int32_t)conv->stride[from];
    k->dilation[d] = from < 0 ? 1 : (int32_t)conv->dilation[from];
    /* MIOpen pads both sides alike; ours may differ where that changes nothing */
    int64_t room = k->x[2 + d] + 2 * (int64_t)k->padding[d] - (int64_t)k->dilation[d] * (k->weight[2 + d] - 1) - 1;
    if (room < 0 || room / k->stride[d] + 1 != k->y[2 + d]) return false;
  }
  return true;
}

static int describe_tensor(const plan_key *k, void **out_tensor, const int32_t sizes[MAX_DIMS]) {
  int strides[MAX_DIMS], step = k->channels_last ? sizes[1] : 1;
  for (int d = k->rank - 1; d >= 2; d--) strides[d] = step, step *= sizes[d];
  strides[1] = k->channels_last ? 1 : step;
  strides[0] = k->channels_last ? step : step * sizes[1];
  int code = miopen.miopenCreateTensorDescriptor(out_tensor);
  return code ? code : miopen.miopenSetTensorDescriptor(*out_tensor, k->type, k->rank, sizes, strides);
}

/* The descriptors in the order in which the direction's calls take them. */
typedef struct ordered {
  const direction *direction;
  void *first, *second, *out;
} ordered;

static ordered order(const plan *p) {
  switch ((rdna__conv_mode)p->key.mode) {
    case RDNA__CONV_FORWARD:
      return (ordered){&miopen.Forward, p->weight, p->x, p->y};
    case RDNA__CONV_DATA:
      return (ordered){&miopen.BackwardData, p->y, p->weight, p->x};
    default:
      return (ordered){&miopen.BackwardWeights, p->y, p->x, p->weight};
  }
}

static int plan_fill(miopen_device *m, plan *p) {
  const plan_key *k = &p->key;
  int code = describe_tensor(k, &p->x, k->x);
  if (code == 0) code = describe_tensor(k, &p->weight, k->weight);
  if (code == 0) code = describe_tensor(k, &p->y, k->y);
  if (code == 0) code = miopen.miopenCreateConvolutionDescriptor(&p->convolution);
  if (code == 0)
    code = miopen.miopenInitConvolutionNdDescriptor(p->convolution, k->rank - 2, k->padding, k->stride, k->dilation,
                                                    MODE_CONVOLUTION);
  if (code == 0) code = miopen.miopenSetConvolutionGroupCount(p->convolution, k->groups);
  if (code != 0) return code;
  ordered o = order(p);
  size_t count = 0;
  solution solutions[MAX_SOLUTIONS];
  code = o.direction->count(m->handle, o.first, o.second, p->convolution, o.out, &count);
  if (code != 0 || count == 0) return code;
  code = o.direction->get(m->handle, o.first, o.second, p->convolution, o.out,
                          count < MAX_SOLUTIONS ? count : MAX_SOLUTIONS, &count, solutions);
  for (size_t i = 0; code == 0 && i < count && i < MAX_SOLUTIONS && !p->usable; i++) {
    if (solutions[i].workspace > max_workspace) continue;
    code = o.direction->compile(m->handle, o.first, o.second, p->convolution, o.out, solutions[i].id);
    p->usable = code == 0;
    p->workspace = solutions[i].workspace;
    p->id = solutions[i].id;
  }
  return code;
}

/* Under the lock, with the device current. */
static rdna_status plan_get(miopen_device *m, const plan_key *key, plan **out_plan) {
  uint32_t at;
  if (rdna__strmap_find(&m->map, (const char *)key, sizeof *key, &at)) {
    *out_plan = m->plans[at];
    return RDNA_OK;
  }
  size_t count = m->map.count;
  plan **plans = realloc(m->plans, (count + 1) * sizeof *plans);
  if (plans) m->plans = plans;
  plan *p = plans ? calloc(1, sizeof *p) : NULL;
  if (!p) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a plan of a convolution");
  p->key = *key;
  rdna_status status =
      rdna__strmap_insert(&m->map, (const char *)&p->key, sizeof *key, (uint32_t)count, &(bool){false});
  if (status != RDNA_OK) {
    free(p);
    return status;
  }
  m->plans[count] = *out_plan = p;
  p->code = plan_fill(m, p);
  return RDNA_OK;
}

/* ---- calls ------------------------------------------------------------------------------------------------- */

typedef struct run {
  miopen_device *m;
  rdna_stream *stream; /* NULL: only find out whether it applies */
  const rdna__conv_call *call;
  plan_key key;
} run;

static rdna_status run_locked(const run *r, void *native_stream) {
  miopen_device *m = r->m;
  plan *p = NULL;
  RDNA_TRY(plan_get(m, &r->key, &p));
  if (!p->usable)
    return rdna__fail(RDNA_UNSUPPORTED, "miopen has no solution for this convolution (status %d)", p->code);
  if (!r->stream) return RDNA_OK;
  int code = miopen.miopenSetStream(m->handle, native_stream);
  rdna__scratch scratch = {.stream = r->stream, .holder = "convolution's workspace"};
  void *workspace = NULL;
  if (code == 0 && p->workspace) RDNA_TRY(rdna__scratch_take(&scratch, p->workspace, &workspace));
  const rdna_tensor *x = r->call->x, *weight = r->call->weight, *y = r->call->y;
  bool forward = r->call->mode == RDNA__CONV_FORWARD, data = r->call->mode == RDNA__CONV_DATA;
  const void *first = forward ? weight->data : y->data, *second = data ? weight->data : x->data;
  void *out = forward ? y->data : data ? x->data : weight->data;
  ordered o = order(p);
  if (code == 0)
    code = o.direction->run(m->handle, o.first, first, o.second, second, p->convolution, o.out, out, workspace,
                            p->workspace, p->id);
  RDNA_TRY(rdna__scratch_release(&scratch, RDNA_OK));
  if (code == 0) return RDNA_OK;
  return rdna__fail(RDNA_DEVICE_ERROR, "miopen failed with status %d in a convolution", code);
}

static rdna_status run_call(void *native_stream, void *data) {
  const run *r = data;
  pthread_mutex_lock(&r->m->lock);
  rdna_status status = run_locked(r, native_stream);
  pthread_mutex_unlock(&r->m->lock);
  return status;
}

bool rdna__conv_miopen_applies(rdna_device *device, const rdna__conv_call *call) {
  run r = {rdna__vendor_handle(device, RDNA__MIOPEN), NULL, call, {0}};
  return r.m && key_make(call, &r.key) &&
         rdna__device_driver(device)->native_call(rdna__device_handle(device), NULL, NULL, run_call, &r) == RDNA_OK;
}

rdna_status rdna__conv_miopen_run(rdna_stream *stream, const rdna__conv_call *call) {
  rdna_device *device = rdna_stream_device(stream);
  run r = {rdna__vendor_handle(device, RDNA__MIOPEN), stream, call, {0}};
  if (!r.m || !key_make(call, &r.key)) return rdna__fail(RDNA_UNSUPPORTED, "miopen does not take this convolution");
  return rdna__stream_native_call(stream, "miopen", run_call, &r);
}
