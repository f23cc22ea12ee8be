/* Tensors shared with other libraries without a copy, by DLPack's structs (github.com/dmlc/dlpack, 1.0). TensorFlow's
 * own functions refuse our devices; so there are two operators of ours, which tf_rdna calls: RdnaToDlpack gives the
 * address of a DLManagedTensor over a tensor's memory, RdnaFromDlpack a tensor over the memory of one. */
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include "ops/ops.h"
#include "rdna/array.h"
#include "rdna/op/movement.h"

struct dl_tensor {
  void *data;
  int32_t device_type, device_index;
  int32_t rank;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides; /* in values; strides may be NULL: contiguous */
  uint64_t byte_offset;
};

struct dl_managed {
  struct dl_tensor tensor;
  void *context;
  void (*deleter)(struct dl_managed *self);
};

struct dl_versioned {
  uint32_t major, minor;
  void *context;
  void (*deleter)(struct dl_versioned *self);
  uint64_t flags;
  struct dl_tensor tensor;
};

enum { INT = 0, UINT = 1, FLOAT = 2, BFLOAT = 4, COMPLEX = 5, BOOL = 6 };
static const struct {
  TF_DataType type;
  uint8_t code, bits;
} codes[] = {{TF_FLOAT, FLOAT, 32}, {TF_HALF, FLOAT, 16},       {TF_BFLOAT16, BFLOAT, 16}, {TF_DOUBLE, FLOAT, 64},
             {TF_INT8, INT, 8},     {TF_INT16, INT, 16},        {TF_INT32, INT, 32},       {TF_INT64, INT, 64},
             {TF_UINT8, UINT, 8},   {TF_UINT16, UINT, 16},      {TF_UINT32, UINT, 32},     {TF_UINT64, UINT, 64},
             {TF_BOOL, BOOL, 8},    {TF_COMPLEX64, COMPLEX, 64}};
enum { CODES = sizeof codes / sizeof *codes };

static const struct dl_tensor *tensor_of(const void *managed, bool versioned) {
  return versioned ? &((const struct dl_versioned *)managed)->tensor : &((const struct dl_managed *)managed)->tensor;
}

/* TensorFlow's number of the type of a struct's values; 0: one that it has not, or a struct of another major version.
 */
RDNA_API int rdna_tensorflow_dlpack_type(const void *managed, bool versioned) {
  const struct dl_tensor *t = tensor_of(managed, versioned);
  if (versioned && ((const struct dl_versioned *)managed)->major != 1) return 0;
  for (int i = 0; i < CODES; i++)
    if (codes[i].code == t->code && codes[i].bits == t->bits && t->lanes == 1) return (int)codes[i].type;
  return 0;
}

/* ---- out ---- */

struct export {
  struct dl_managed managed;
  TF_Tensor *tensor;
  int64_t shape[RDNA_MAX_RANK], strides[RDNA_MAX_RANK];
};

static void release_export(struct dl_managed *self) {
  struct export *e = self->context;
  tf.DeleteTensor(e->tensor);
  free(e);
}

/* (x) to the struct's address, in host memory. The host waits for the values. */
rdna_status compute_to_dlpack(call *c) {
  rdna_tensor x, out;
  TF_DataType type;
  TRY(call_input(c, 0, &x));
  TRY(call_type(c, 0, &type));
  TRY(call_output(c, 0, 0, NULL, &out));
  int at = 0;
  while (at < CODES && codes[at].type != type) at++;
  if (at == CODES) return call_fail(c, RDNA_UNSUPPORTED, "DLPack has no type %s", type_name(type));
  TRY(rdna_stream_synchronize(c->stream));
  struct export *e = calloc(1, sizeof *e);
  if (!e) return call_fail(c, RDNA_OUT_OF_MEMORY, "no memory for a DLPack tensor");
  struct dl_tensor *t = &e->managed.tensor;
  *t = (struct dl_tensor){.data = x.data,
                          .rank = x.rank,
                          .code = codes[at].code,
                          .bits = codes[at].bits,
                          .lanes = 1,
                          .shape = e->shape,
                          .strides = e->strides};
  memcpy(e->shape, x.shape, (size_t)x.rank * sizeof *x.shape);
  memcpy(e->strides, x.stride, (size_t)x.rank * sizeof *x.stride);
  rdna_dlpack_device(c->stream, &t->device_type, &t->device_index);
  e->managed.context = e;
  e->managed.deleter = release_export;
  tf.GetInput(c->ctx, 0, &e->tensor, c->status);
  *(int64_t *)out.data = (int64_t)(intptr_t)e;
  return call_status(c);
}

/* ---- in ---- */

struct import {
  rdna_device *device;
  void *managed;
  bool versioned;
};

static void release_import(void *data, size_t size, void *argument) {
  struct import *i = argument;
  (void)data, (void)size;
  (void)!rdna_device_synchronize(i->device); /* what still reads it; its error is kept for whoever asks */
  rdna_dlpack_release(i->managed, i->versioned);
  free(i);
}

/* What the struct describes, as librdna has it. */
static rdna_status describe(call *c, const void *managed, bool versioned, rdna_tensor *out) {
  const struct dl_tensor *t = tensor_of(managed, versioned);
  TF_DataType type = tf.ExpectedOutputDataType(c->ctx, 0);
  int32_t device, index;
  rdna_dlpack_device(c->stream, &device, &index);
  if (t->device_type != device || t->device_index != index)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "a DLPack tensor of device %d:%d; this one is %d:%d", t->device_type,
                     t->device_index, device, index);
  if (rdna_tensorflow_dlpack_type(managed, versioned) != (int)type)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "a DLPack tensor of another type than %s", type_name(type));
  if (t->rank < 0 || t->rank > RDNA_MAX_RANK || (t->rank && !t->shape))
    return call_fail(c, RDNA_UNSUPPORTED, "a DLPack tensor of %d dimensions; RDNA has up to %d", t->rank,
                     RDNA_MAX_RANK);
  int64_t bytes = (int64_t)rdna_dtype_bytes(dtype_of(type), 1);
  for (int i = 0; i < t->rank; i++)
    if (t->shape[i] < 0 || __builtin_mul_overflow(bytes, t->shape[i], &bytes))
      return call_fail(c, RDNA_INVALID_ARGUMENT, "a DLPack tensor with a size of %lld", (long long)t->shape[i]);
  *out = rdna_tensor_contiguous((char *)t->data + t->byte_offset, dtype_of(type), t->rank, t->shape);
  if (t->strides) memcpy(out->stride, t->strides, (size_t)t->rank * sizeof *t->strides);
  return RDNA_OK;
}

static bool has_gaps(const rdna_tensor *x) {
  int64_t next = 1;
  for (int i = x->rank - 1; i >= 0; next *= x->shape[i], i--)
    if (x->shape[i] != 1 && x->stride[i] != next) return true;
  return false;
}

/* Where TensorFlow's tensors begin. 2.16 does not say it; 64 is the most that it asks for anywhere. */
static size_t tensor_alignment(void) { return tf.TensorDefaultAlignment ? tf.TensorDefaultAlignment() : 64; }

/* (address of the struct), whose attribute says whether it is a versioned one; taken where that succeeds. Where values
 * are not in their order, or not where TensorFlow wants them to begin, they are copied. */
rdna_status compute_from_dlpack(call *c) {
  int64_t address;
  rdna_tensor x, out;
  bool versioned = c->attributes->versioned;
  TRY(call_integer(c, 0, &address));
  void *managed = (void *)(intptr_t)address;
  TRY(describe(c, managed, versioned, &x));
  size_t bytes = rdna_dtype_bytes(x.dtype, rdna_tensor_count(&x));
  if (bytes == 0 || has_gaps(&x) || (uintptr_t)x.data % tensor_alignment() != 0) {
    TRY(call_output(c, 0, x.rank, x.shape, &out));
    if (bytes) TRY(rdna_op_copy(c->stream, &x, &out));
    TRY(rdna_stream_synchronize(c->stream));
    rdna_dlpack_release(managed, versioned);
    return RDNA_OK;
  }
  struct import *i = malloc(sizeof *i);
  if (!i) return call_fail(c, RDNA_OUT_OF_MEMORY, "no memory for a DLPack tensor");
  *i = (struct import){c->device, managed, versioned};
  TF_DataType type = tf.ExpectedOutputDataType(c->ctx, 0);
  TF_Tensor *tensor = tf.NewTensor(type, x.shape, x.rank, x.data, bytes, release_import, i);
  tf.SetOutput(c->ctx, 0, tensor, c->status);
  tf.DeleteTensor(tensor);
  return call_status(c);
}
