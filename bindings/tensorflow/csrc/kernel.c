#include "kernel.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/ops.h"
#include "profiler.h"
#include "rdna/memory.h"
#include "rdna/op.h"

/* ---- types ---- */

enum {
  F32 = 1 << 0,
  F16 = 1 << 1,
  BF16 = 1 << 2,
  F64 = 1 << 3,
  I8 = 1 << 4,
  U8 = 1 << 5,
  I16 = 1 << 6,
  I32 = 1 << 7,
  I64 = 1 << 8,
  BOOL = 1 << 9,
  U16 = 1 << 10,
  U32 = 1 << 11,
  U64 = 1 << 12,
  C64 = 1 << 13,
  C128 = 1 << 14,
  FLOATS = F32 | F16 | BF16,
  REALS = FLOATS | F64,
  INTEGERS = I8 | U8 | I16 | I64, /* i32 is in host memory nearly everywhere in TensorFlow */
  NUMBERS = REALS | INTEGERS,
  PLAIN = NUMBERS | BOOL,
  MOVED = PLAIN | U16 | U32 | U64 | C64, /* up to eight bytes */
  INDICES = I32 | I64,
  ANY = MOVED | I32 | C128
};
static const TF_DataType types[] = {TF_FLOAT,  TF_HALF,   TF_BFLOAT16, TF_DOUBLE,    TF_INT8,
                                    TF_UINT8,  TF_INT16,  TF_INT32,    TF_INT64,     TF_BOOL,
                                    TF_UINT16, TF_UINT32, TF_UINT64,   TF_COMPLEX64, TF_COMPLEX128};
enum { TYPES = sizeof types / sizeof *types };

const char *type_name(TF_DataType type) {
  static const char *const names[TYPES] = {"float",  "half",   "bfloat16", "double",    "int8",
                                           "uint8",  "int16",  "int32",    "int64",     "bool",
                                           "uint16", "uint32", "uint64",   "complex64", "complex128"};
  for (int i = 0; i < TYPES; i++)
    if (types[i] == type) return names[i];
  return "another type";
}

rdna_dtype dtype_of(TF_DataType type) {
  switch (type) {
    case TF_FLOAT:
      return RDNA_F32;
    case TF_HALF:
      return RDNA_F16;
    case TF_BFLOAT16:
      return RDNA_BF16;
    case TF_DOUBLE:
      return RDNA_F64;
    case TF_INT8:
      return RDNA_I8;
    case TF_UINT8:
      return RDNA_U8;
    case TF_INT16:
    case TF_UINT16:
      return RDNA_I16;
    case TF_INT32:
    case TF_UINT32:
      return RDNA_I32;
    case TF_INT64:
    case TF_UINT64:
    case TF_COMPLEX64:
      return RDNA_I64;
    case TF_BOOL:
      return RDNA_BOOL;
    default:
      return RDNA_DTYPE_COUNT;
  }
}

/* ---- rows ---- */

struct row {
  const char *op;
  rdna_status (*compute)(call *c);
  int number;
  const char *attribute, *attribute2; /* of types, or NULL */
  unsigned types, types2;
  const char *host; /* arguments in host memory, with spaces between; */
  bool on_host;     /* and they are all of them: the processor computes */
  atomic_long calls;
};

/* TensorFlow does not say whose kernel it wants made, so that each row has a function of its own. */
enum {
#define KERNEL(op, ...) ROW_##op,
#define PAIR(op, ...) ROW_##op,
#define ON_HOST(op, ...) ROW_HOST_##op,
#define COMPLEX(op, ...) ROW_COMPLEX_##op,
#include "kernels.def"
#undef KERNEL
#undef PAIR
#undef ON_HOST
#undef COMPLEX
  ROWS
};

static struct row rows[] = {
#define KERNEL(op, compute, number, attribute, types, host) \
  {#op, compute, number, attribute, NULL, types, 0, host, false, 0},
#define PAIR(op, compute, number, attribute, types, attribute2, types2, host) \
  {#op, compute, number, attribute, attribute2, types, types2, host, false, 0},
#define ON_HOST(op, compute, number, attribute, types, host) \
  {#op, compute, number, attribute, NULL, types, 0, host, true, 0},
#define COMPLEX(op, compute, number, attribute, host) \
  {#op, compute, number, attribute, NULL, C64 | C128, 0, host, false, 0},
#include "kernels.def"
#undef KERNEL
#undef PAIR
#undef ON_HOST
#undef COMPLEX
};

/* ---- one place where a kernel is used ---- */

struct kernel {
  struct row *row;
  struct attributes attributes;
  _Atomic uint64_t drawn, mark; /* |mark| is the profiler's */
};

static bool has(TF_OpKernelConstruction *ctx, const char *name, TF_Status *status) {
  return tf.GetCode(status) == TF_OK && tf.OpKernelConstruction_HasAttr(ctx, name, status) &&
         tf.GetCode(status) == TF_OK;
}

static void read_flag(TF_OpKernelConstruction *ctx, const char *name, bool *value, TF_Status *status) {
  TF_Bool flag = 0;
  if (has(ctx, name, status)) tf.OpKernelConstruction_GetAttrBool(ctx, name, &flag, status);
  *value = flag != 0;
}

static void read_number(TF_OpKernelConstruction *ctx, const char *name, int64_t *value, TF_Status *status) {
  if (has(ctx, name, status)) tf.OpKernelConstruction_GetAttrInt64(ctx, name, value, status);
}

static void read_real(TF_OpKernelConstruction *ctx, const char *name, float *value, TF_Status *status) {
  if (has(ctx, name, status)) tf.OpKernelConstruction_GetAttrFloat(ctx, name, value, status);
}

static void read_list(TF_OpKernelConstruction *ctx, const char *name, struct list *list, TF_Status *status) {
  int32_t count = 0, bytes = 0;
  if (!has(ctx, name, status)) return;
  tf.OpKernelConstruction_GetAttrSize(ctx, name, &count, &bytes, status);
  if (tf.GetCode(status) != TF_OK) return;
  if (count > LIST_SIZE) {
    tf.SetStatus(status, TF_UNIMPLEMENTED, "an attribute's list is longer than any operator's");
    return;
  }
  list->count = count;
  tf.OpKernelConstruction_GetAttrInt64List(ctx, name, list->values, count, status);
}

static void read_reals(TF_OpKernelConstruction *ctx, const char *name, struct reals *list, TF_Status *status) {
  int32_t count = 0, bytes = 0;
  if (!has(ctx, name, status)) return;
  tf.OpKernelConstruction_GetAttrSize(ctx, name, &count, &bytes, status);
  if (tf.GetCode(status) != TF_OK || count <= 0) return;
  list->values = malloc((size_t)count * sizeof *list->values);
  if (!list->values) {
    tf.SetStatus(status, TF_RESOURCE_EXHAUSTED, "no memory for an attribute");
    return;
  }
  list->count = count;
  tf.OpKernelConstruction_GetAttrFloatList(ctx, name, list->values, count, status);
}

static void read_text(TF_OpKernelConstruction *ctx, const char *name, char *text, TF_Status *status) {
  int32_t count = 0, bytes = 0;
  if (!has(ctx, name, status)) return;
  tf.OpKernelConstruction_GetAttrSize(ctx, name, &count, &bytes, status);
  if (tf.GetCode(status) != TF_OK) return;
  if (bytes >= TEXT_SIZE && strcmp(name, "message") != 0) { /* of which the beginning is enough */
    tf.SetStatus(status, TF_UNIMPLEMENTED, "an attribute's text is longer than the kernel reads");
    return;
  }
  tf.OpKernelConstruction_GetAttrString(ctx, name, text, TEXT_SIZE - 1, status);
}

static void destroy(void *data) {
  struct kernel *kernel = data;
  if (!kernel) return;
  struct attributes *a = &kernel->attributes;
#define FLAG(name)
#define NUMBER(name)
#define REAL(name)
#define LIST(name)
#define REAL_LIST(name) free(a->name.values);
#define TEXT(name)
#include "attributes.def"
#undef FLAG
#undef NUMBER
#undef REAL
#undef LIST
#undef REAL_LIST
#undef TEXT
  free(kernel);
}

static void *create(TF_OpKernelConstruction *ctx, struct row *row) {
  struct kernel *kernel = calloc(1, sizeof *kernel);
  TF_Status *status = tf.NewStatus();
  if (kernel) {
    struct attributes *a = &kernel->attributes;
    kernel->row = row;
#define FLAG(name) read_flag(ctx, #name, &a->name, status);
#define NUMBER(name) read_number(ctx, #name, &a->name, status);
#define REAL(name) read_real(ctx, #name, &a->name, status);
#define LIST(name) read_list(ctx, #name, &a->name, status);
#define REAL_LIST(name) read_reals(ctx, #name, &a->name, status);
#define TEXT(name) read_text(ctx, #name, a->name, status);
#include "attributes.def"
#undef FLAG
#undef NUMBER
#undef REAL
#undef LIST
#undef REAL_LIST
#undef TEXT
  } else {
    tf.SetStatus(status, TF_RESOURCE_EXHAUSTED, "no memory for a kernel");
  }
  if (tf.GetCode(status) != TF_OK) {
    tf.OpKernelConstruction_Failure(ctx, status);
    destroy(kernel);
    kernel = NULL;
  }
  tf.DeleteStatus(status);
  return kernel;
}

#define CREATE(name) \
  static void *create_##name(TF_OpKernelConstruction *ctx) { return create(ctx, &rows[ROW_##name]); }
#define KERNEL(op, ...) CREATE(op)
#define PAIR(op, ...) CREATE(op)
#define ON_HOST(op, ...) CREATE(HOST_##op)
#define COMPLEX(op, ...) CREATE(COMPLEX_##op)
#include "kernels.def"
#undef KERNEL
#undef PAIR
#undef ON_HOST
#undef COMPLEX

/* ---- a call ---- */

static void finish(call *c, rdna_status result) {
  rdna_status freed = call_release(c, 0);
  if (result == RDNA_OK) result = freed;
  if (result == RDNA_OK) return;
  if (tf.GetCode(c->status) == TF_OK)
    tf.SetStatus(c->status, status_code(result), c->message[0] ? c->message : rdna_last_error());
  tf.OpKernelContext_Failure(c->ctx, c->status);
}

static void compute_on_host(struct row *row, call *c) {
  c->stream = NULL;
  pthread_mutex_lock(&host_lock);
  c->stream = host_stream();
  rdna_status result = RDNA_UNAVAILABLE;
  if (c->stream) {
    c->device = rdna_stream_device(c->stream);
    result = row->compute(c);
    if (result == RDNA_OK) result = rdna_stream_synchronize(c->stream);
  }
  finish(c, result);
  pthread_mutex_unlock(&host_lock);
}

static void compute(void *data, TF_OpKernelContext *ctx) {
  struct kernel *kernel = data;
  call c = {.attributes = &kernel->attributes,
            .number = kernel->row->number,
            .drawn = &kernel->drawn,
            .ctx = ctx,
            .status = tf.NewStatus()};
  atomic_fetch_add_explicit(&kernel->row->calls, 1, memory_order_relaxed);
  if (kernel->row->on_host) {
    compute_on_host(kernel->row, &c);
  } else {
    SP_Stream stream = tf.GetStream(ctx, c.status);
    if (tf.GetCode(c.status) != TF_OK || !stream) {
      finish(&c, RDNA_INTERNAL);
    } else {
      atomic_store_explicit(&stream->computes, true, memory_order_release);
      c.stream = stream->stream;
      c.device = rdna_stream_device(c.stream);
      pthread_mutex_lock(&stream->lock);
      bool profiled = atomic_load_explicit(&profiler_on, memory_order_relaxed);
      if (profiled) profiler_enter(&kernel->mark, kernel->row->op, ctx);
      finish(&c, kernel->row->compute(&c));
      if (profiled) profiler_leave();
      pthread_mutex_unlock(&stream->lock);
    }
  }
  tf.DeleteStatus(c.status);
}

rdna_status call_fail(call *c, rdna_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(c->message, sizeof c->message, format, arguments);
  va_end(arguments);
  return status;
}

rdna_status call_status(call *c) {
  switch (tf.GetCode(c->status)) {
    case TF_OK:
      return RDNA_OK;
    case TF_RESOURCE_EXHAUSTED:
      return RDNA_OUT_OF_MEMORY;
    default:
      return RDNA_INTERNAL;
  }
}

rdna_status call_memory_status(call *c, int64_t bytes) {
  if (tf.GetCode(c->status) != TF_RESOURCE_EXHAUSTED) return call_status(c);
  char said[1024];
  void *data = NULL;
  /* TensorFlow may have refused by its own limit, and not have asked us */
  bool ours = rdna_memory_alloc_named(c->device, (size_t)bytes, c->stream, "tensorflow", &data) != RDNA_OK;
  (void)!rdna_memory_free(c->device, data);
  snprintf(said, sizeof said, "%s; %s", tf.Message(c->status),
           ours ? rdna_last_error() : "the device has that much: it is the limit of TensorFlow's own allocator");
  tf.SetStatus(c->status, TF_RESOURCE_EXHAUSTED, said);
  return RDNA_OUT_OF_MEMORY;
}

int call_inputs(const call *c) { return tf.NumInputs(c->ctx); }

static rdna_status describe(call *c, TF_Tensor *tensor, rdna_tensor *out) {
  int rank = tf.NumDims(tensor);
  int64_t shape[RDNA_MAX_RANK];
  if (rank > RDNA_MAX_RANK)
    return call_fail(c, RDNA_UNSUPPORTED, "a tensor of %d dimensions; RDNA has up to %d", rank, RDNA_MAX_RANK);
  for (int i = 0; i < rank; i++) shape[i] = tf.Dim(tensor, i);
  *out = rdna_tensor_contiguous(tf.TensorData(tensor), dtype_of(tf.TensorType(tensor)), rank, shape);
  return RDNA_OK;
}

rdna_status call_input(call *c, int i, rdna_tensor *out) {
  TF_Tensor *tensor = NULL;
  tf.GetInput(c->ctx, i, &tensor, c->status);
  TRY(call_status(c));
  rdna_status result = describe(c, tensor, out);
  tf.DeleteTensor(tensor); /* the context keeps it */
  return result;
}

rdna_status call_input_of_any_rank(call *c, int i, int size, rdna_tensor *out, int *out_rank, int64_t *out_shape) {
  TF_Tensor *tensor = NULL;
  tf.GetInput(c->ctx, i, &tensor, c->status);
  TRY(call_status(c));
  int64_t count = 1;
  *out_rank = tf.NumDims(tensor);
  for (int k = 0; k < *out_rank && k < size; k++) count *= out_shape[k] = tf.Dim(tensor, k);
  *out = rdna_tensor_contiguous(tf.TensorData(tensor), dtype_of(tf.TensorType(tensor)), 1, &count);
  tf.DeleteTensor(tensor); /* the context keeps it */
  return *out_rank <= size ? RDNA_OK
                           : call_fail(c, RDNA_UNSUPPORTED, "a tensor of %d dimensions; up to %d", *out_rank, size);
}

rdna_status call_type(call *c, int i, TF_DataType *out) {
  TF_Tensor *tensor = NULL;
  tf.GetInput(c->ctx, i, &tensor, c->status);
  TRY(call_status(c));
  *out = tf.TensorType(tensor);
  tf.DeleteTensor(tensor); /* the context keeps it */
  return RDNA_OK;
}

rdna_status call_integers(call *c, int i, int size, int64_t *values, int *count) {
  rdna_tensor x;
  TRY(call_input(c, i, &x));
  int64_t n = rdna_tensor_count(&x);
  if (n > size)
    return call_fail(c, RDNA_UNSUPPORTED, "input %d has %lld numbers; there may be %d", i, (long long)n, size);
  if (x.dtype != RDNA_I32 && x.dtype != RDNA_I64)
    return call_fail(c, RDNA_UNSUPPORTED, "input %d is %s; it is read as i32 or i64", i, rdna_dtype_name(x.dtype));
  for (int64_t k = 0; k < n; k++)
    values[k] = x.dtype == RDNA_I32 ? ((const int32_t *)x.data)[k] : ((const int64_t *)x.data)[k];
  *count = (int)n;
  return RDNA_OK;
}

rdna_status call_integer(call *c, int i, int64_t *value) {
  int count = 0;
  TRY(call_integers(c, i, 1, value, &count));
  return count == 1 ? RDNA_OK : call_fail(c, RDNA_INVALID_ARGUMENT, "input %d is not one number", i);
}

rdna_status call_dim(call *c, int i, int rank, int *dim) {
  int64_t value = 0;
  TRY(call_integer(c, i, &value));
  if (value < -rank || value >= rank)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "dimension %lld of a tensor of rank %d", (long long)value, rank);
  *dim = (int)(value < 0 ? value + rank : value);
  return RDNA_OK;
}

static rdna_status take_output(call *c, TF_Tensor *tensor, int64_t bytes, rdna_tensor *out) {
  rdna_status result = call_memory_status(c, bytes);
  if (result == RDNA_OK) result = describe(c, tensor, out);
  if (tensor) tf.DeleteTensor(tensor);
  return result;
}

/* Refuses a shape that no tensor can have, which TensorFlow and what is computed of sizes end the process at. */
static rdna_status check_shape(call *c, int64_t bytes, int rank, const int64_t *shape) {
  for (int k = 0; k < rank; k++) {
    if (shape[k] < 0) return call_fail(c, RDNA_INVALID_ARGUMENT, "a negative size, %lld", (long long)shape[k]);
    if (__builtin_mul_overflow(bytes, shape[k], &bytes))
      return call_fail(c, RDNA_INVALID_ARGUMENT, "a tensor of 2**63 bytes or more");
  }
  return RDNA_OK;
}

rdna_status call_output(call *c, int i, int rank, const int64_t *shape, rdna_tensor *out) {
  TF_DataType type = tf.ExpectedOutputDataType(c->ctx, i);
  int64_t bytes = type == TF_COMPLEX128 ? 16 : (int64_t)rdna_dtype_bytes(dtype_of(type), 1);
  TRY(check_shape(c, bytes, rank, shape));
  for (int k = 0; k < rank; k++) bytes *= shape[k];
  return take_output(c, tf.AllocateOutput(c->ctx, i, type, shape, rank, (size_t)bytes, c->status), bytes, out);
}

rdna_status call_output_over(call *c, int inputs, int i, int rank, const int64_t *shape, rdna_tensor *out) {
  TF_DataType type = tf.ExpectedOutputDataType(c->ctx, i);
  int64_t bytes = (int64_t)rdna_dtype_bytes(dtype_of(type), 1);
  int candidates[4], count = 0, forwarded = -1;
  for (int k = 0; k < inputs && k < 4; k++) {
    rdna_tensor x;
    TRY(call_input(c, k, &x));
    if (same_shape(&x, rank, shape) && x.dtype == dtype_of(type)) candidates[count++] = k;
  }
  if (!count) return call_output(c, i, rank, shape, out);
  for (int k = 0; k < rank; k++) bytes *= shape[k]; /* which is an input's size */
  return take_output(
      c, tf.ForwardInputOrAllocateOutput(c->ctx, candidates, count, i, shape, rank, &forwarded, c->status), bytes, out);
}

rdna_status call_scratch(call *c, rdna_dtype dtype, int rank, const int64_t *shape, rdna_tensor *out) {
  void *data = NULL;
  TRY(check_shape(c, (int64_t)rdna_dtype_bytes(dtype, 1), rank, shape));
  *out = rdna_tensor_contiguous(NULL, dtype, rank, shape);
  if (c->scratch_count == SCRATCH_SIZE) return call_fail(c, RDNA_INTERNAL, "a kernel takes too many pieces of memory");
  TRY(rdna_memory_alloc_named(c->device, rdna_dtype_bytes(dtype, rdna_tensor_count(out)), c->stream,
                              "tensorflow kernel", &data));
  out->data = data;
  c->scratch[c->scratch_count++] = data;
  return RDNA_OK;
}

rdna_status call_release(call *c, int count) {
  rdna_status result = RDNA_OK;
  while (c->scratch_count > count) {
    rdna_status freed = rdna_memory_free(c->device, c->scratch[--c->scratch_count]);
    if (result == RDNA_OK) result = freed;
  }
  return result;
}

static bool is_narrow(rdna_dtype dtype) { return dtype == RDNA_F16 || dtype == RDNA_BF16; }

rdna_status call_wide_input(call *c, int i, rdna_tensor *out) {
  rdna_tensor x;
  TRY(call_input(c, i, &x));
  *out = x;
  if (!is_narrow(x.dtype)) return RDNA_OK;
  TRY(call_scratch(c, RDNA_F32, x.rank, x.shape, out));
  return rdna_op_copy(c->stream, &x, out);
}

rdna_status call_wide_output(call *c, int i, int rank, const int64_t *shape, rdna_tensor *out, rdna_tensor *wide) {
  TRY(call_output(c, i, rank, shape, out));
  *wide = *out;
  return is_narrow(out->dtype) ? call_scratch(c, RDNA_F32, rank, shape, wide) : RDNA_OK;
}

rdna_status call_round(call *c, const rdna_tensor *wide, const rdna_tensor *out) {
  return wide->data == out->data ? RDNA_OK : rdna_op_copy(c->stream, wide, out);
}

static rdna_status as_pairs(call *c, TF_DataType type, const rdna_tensor *x, rdna_tensor *out) {
  int64_t shape[RDNA_MAX_RANK];
  if (x->rank + 1 > RDNA_MAX_RANK)
    return call_fail(c, RDNA_UNSUPPORTED, "complex numbers of %d dimensions; up to %d", x->rank, RDNA_MAX_RANK - 1);
  memcpy(shape, x->shape, (size_t)x->rank * sizeof *shape);
  shape[x->rank] = 2;
  *out = rdna_tensor_contiguous(x->data, type == TF_COMPLEX128 ? RDNA_F64 : RDNA_F32, x->rank + 1, shape);
  return RDNA_OK;
}

rdna_status call_pairs(call *c, int i, rdna_tensor *out) {
  TF_Tensor *tensor = NULL;
  rdna_tensor x;
  tf.GetInput(c->ctx, i, &tensor, c->status);
  TRY(call_status(c));
  TF_DataType type = tf.TensorType(tensor);
  rdna_status result = describe(c, tensor, &x);
  tf.DeleteTensor(tensor); /* the context keeps it */
  return result == RDNA_OK ? as_pairs(c, type, &x, out) : result;
}

rdna_status call_output_pairs(call *c, int i, int rank, const int64_t *shape, rdna_tensor *out) {
  rdna_tensor x;
  TRY(call_output(c, i, rank, shape, &x));
  return as_pairs(c, tf.ExpectedOutputDataType(c->ctx, i), &x, out);
}

static double half(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double value = exponent == 31  ? (fraction ? NAN : INFINITY)
                 : exponent == 0 ? ldexp(fraction, -24)
                                 : ldexp(fraction + 1024, exponent - 25);
  return bits >> 15 ? -value : value;
}

static double brain(uint16_t bits) {
  uint32_t word = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &word, sizeof value);
  return (double)value;
}

rdna_status call_scalar(call *c, int i, rdna_scalar *out) {
  rdna_tensor x;
  TRY(call_input(c, i, &x));
  if (rdna_tensor_count(&x) != 1) return call_fail(c, RDNA_INVALID_ARGUMENT, "input %d is not one value", i);
  const void *at = x.data;
  switch (x.dtype) {
    case RDNA_F32:
      *out = rdna_scalar_real((double)*(const float *)at);
      break;
    case RDNA_F64:
      *out = rdna_scalar_real(*(const double *)at);
      break;
    case RDNA_F16:
      *out = rdna_scalar_real(half(*(const uint16_t *)at));
      break;
    case RDNA_BF16:
      *out = rdna_scalar_real(brain(*(const uint16_t *)at));
      break;
    case RDNA_I8:
      *out = rdna_scalar_integer(*(const int8_t *)at);
      break;
    case RDNA_BOOL:
    case RDNA_U8:
      *out = rdna_scalar_integer(*(const uint8_t *)at);
      break;
    case RDNA_I16:
      *out = rdna_scalar_integer(*(const int16_t *)at);
      break;
    case RDNA_I32:
      *out = rdna_scalar_integer(*(const int32_t *)at);
      break;
    case RDNA_I64:
      *out = rdna_scalar_integer(*(const int64_t *)at);
      break;
    default:
      return call_fail(c, RDNA_UNSUPPORTED, "input %d is %s", i, rdna_dtype_name(x.dtype));
  }
  return RDNA_OK;
}

rdna_status call_read(call *c, const rdna_tensor *x, void *values) {
  size_t bytes = rdna_dtype_bytes(x->dtype, rdna_tensor_count(x));
  if (bytes == 0) return RDNA_OK;
  TRY(rdna_copy_to_host(c->stream, values, x->data, bytes));
  return rdna_stream_synchronize(c->stream);
}

rdna_status call_upload(call *c, rdna_dtype dtype, int64_t count, const void *values, rdna_tensor *out) {
  TRY(call_scratch(c, dtype, 1, &count, out));
  return count ? rdna_copy_to_device(c->stream, out->data, values, rdna_dtype_bytes(dtype, count)) : RDNA_OK;
}

bool same_shape(const rdna_tensor *x, int rank, const int64_t *shape) {
  bool same = x->rank == rank;
  for (int i = 0; same && i < rank; i++) same = x->shape[i] == shape[i];
  return same;
}

rdna_tensor reshaped(const rdna_tensor *x, int rank, const int64_t *shape) {
  return rdna_tensor_contiguous(x->data, x->dtype, rank, shape);
}

rdna_tensor transposed(rdna_tensor x) {
  int64_t size = x.shape[x.rank - 1], stride = x.stride[x.rank - 1];
  x.shape[x.rank - 1] = x.shape[x.rank - 2];
  x.stride[x.rank - 1] = x.stride[x.rank - 2];
  x.shape[x.rank - 2] = size;
  x.stride[x.rank - 2] = stride;
  return x;
}

rdna_tensor channels_second(const call *c, rdna_tensor x) {
  if (c->attributes->data_format[1] == 'C' || x.rank < 3) return x;
  int64_t size = x.shape[x.rank - 1], stride = x.stride[x.rank - 1];
  for (int i = x.rank - 1; i > 1; i--) x.shape[i] = x.shape[i - 1], x.stride[i] = x.stride[i - 1];
  x.shape[1] = size;
  x.stride[1] = stride;
  return x;
}

rdna_status call_broadcast(call *c, const rdna_tensor *a, const rdna_tensor *b, int *rank, int64_t *shape) {
  int most = a->rank > b->rank ? a->rank : b->rank;
  for (int i = 0; i < most; i++) {
    int in_a = i - (most - a->rank), in_b = i - (most - b->rank);
    int64_t size_a = in_a < 0 ? 1 : a->shape[in_a], size_b = in_b < 0 ? 1 : b->shape[in_b];
    if (size_a != size_b && size_a != 1 && size_b != 1)
      return call_fail(c, RDNA_INVALID_ARGUMENT, "Incompatible shapes: sizes %lld and %lld of dimension %d",
                       (long long)size_a, (long long)size_b, i - most);
    shape[i] = size_a == 1 ? size_b : size_a;
  }
  *rank = most;
  return RDNA_OK;
}

/* ---- registration ---- */

static void register_one(const struct row *row, void *(*make)(TF_OpKernelConstruction *), TF_DataType type,
                         TF_DataType type2, TF_Status *status) {
  TF_KernelBuilder *builder = tf.NewKernelBuilder(row->op, "RDNA", make, compute, destroy);
  if (row->attribute) tf.KernelBuilder_TypeConstraint(builder, row->attribute, type, status);
  if (row->attribute2) tf.KernelBuilder_TypeConstraint(builder, row->attribute2, type2, status);
  for (const char *at = row->host; at && *at;) {
    size_t length = strcspn(at, " ");
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)length, at);
    tf.KernelBuilder_HostMemory(builder, name);
    at += length + (at[length] == ' ');
  }
  tf.RegisterKernelBuilder(row->op, builder, status);
}

static void register_row(struct row *row, void *(*make)(TF_OpKernelConstruction *), TF_Status *status) {
  if (!row->attribute) {
    register_one(row, make, TF_FLOAT, TF_FLOAT, status);
    return;
  }
  for (int i = 0; i < TYPES; i++) {
    if (!(row->types >> i & 1)) continue;
    if (!row->attribute2) register_one(row, make, types[i], TF_FLOAT, status);
    for (int k = 0; row->attribute2 && k < TYPES; k++)
      if (row->types2 >> k & 1) register_one(row, make, types[i], types[k], status);
  }
}

/* TensorFlow calls it when it has loaded the plugin. An operator that this release does not have is left out. */
RDNA_API void TF_InitKernel(void) {
  if (!have_tensorflow()) return;
  TF_Status *status = tf.NewStatus();
  register_operators(status);
#define KERNEL(op, ...) register_row(&rows[ROW_##op], create_##op, status);
#define PAIR(op, ...) register_row(&rows[ROW_##op], create_##op, status);
#define ON_HOST(op, ...) register_row(&rows[ROW_HOST_##op], create_HOST_##op, status);
#define COMPLEX(op, ...) register_row(&rows[ROW_COMPLEX_##op], create_COMPLEX_##op, status);
#include "kernels.def"
#undef KERNEL
#undef PAIR
#undef ON_HOST
#undef COMPLEX
  tf.DeleteStatus(status);
}

/* ---- the ledger, for tf_rdna ---- */

/* Row |i|: its operator, whether the processor computes it, and how often it was called; NULL behind the last. */
RDNA_API const char *rdna_tensorflow_ledger(int i, bool *out_on_host, long *out_calls) {
  if (i < 0 || i >= ROWS) return NULL;
  *out_on_host = rows[i].on_host;
  *out_calls = atomic_load_explicit(&rows[i].calls, memory_order_relaxed);
  return rows[i].op;
}

RDNA_API void rdna_tensorflow_ledger_reset(void) {
  for (int i = 0; i < ROWS; i++) atomic_store_explicit(&rows[i].calls, 0, memory_order_relaxed);
}
