/* DLPack's structs over arrays, and arrays over them. */
#include <stdlib.h>
#include <string.h>

#include "array/array.h"

/* dlpack.h of version 1.0, as far as it is met here. */
typedef struct dl_device {
  int32_t type, index;
} dl_device;
typedef struct dl_dtype {
  uint8_t code, bits;
  uint16_t lanes;
} dl_dtype;
typedef struct dl_tensor {
  void *data;
  dl_device device;
  int32_t rank;
  dl_dtype dtype;
  int64_t *shape;
  int64_t *strides; /* in values; NULL before 1.0: contiguous */
  uint64_t byte_offset;
} dl_tensor;
typedef struct dl_managed {
  dl_tensor tensor;
  void *context;
  void (*deleter)(struct dl_managed *self);
} dl_managed;
typedef struct dl_versioned {
  uint32_t major, minor;
  void *context;
  void (*deleter)(struct dl_versioned *self);
  uint64_t flags;
  dl_tensor tensor;
} dl_versioned;
enum { READ_ONLY = 1, IS_COPIED = 2, MAJOR = 1, MINOR = 0 };
enum { CPU = 1, CUDA = 2, ROCM = 10 };
enum { INT = 0, UINT = 1, FLOAT = 2, BFLOAT = 4, COMPLEX = 5, BOOL = 6 };

static const struct {
  uint8_t code, bits;
} codes[] = {[RDNA_F32] = {FLOAT, 32}, [RDNA_F16] = {FLOAT, 16}, [RDNA_BF16] = {BFLOAT, 16}, [RDNA_F64] = {FLOAT, 64},
             [RDNA_I8] = {INT, 8},     [RDNA_U8] = {UINT, 8},    [RDNA_I16] = {INT, 16},     [RDNA_I32] = {INT, 32},
             [RDNA_I64] = {INT, 64},   [RDNA_BOOL] = {BOOL, 8},  [RDNA_U16] = {UINT, 16},    [RDNA_U32] = {UINT, 32},
             [RDNA_U64] = {UINT, 64}};
enum { CODES = sizeof codes / sizeof *codes };

void rdna_dlpack_device(const rdna_stream *stream, int32_t *out_type, int32_t *out_index) {
  const rdna_device_info *info = rdna_device_get_info(rdna_stream_device((rdna_stream *)stream));
  bool hip = strcmp(info->driver, "hip") == 0, cuda = strcmp(info->driver, "cuda") == 0;
  *out_type = hip ? ROCM : cuda ? CUDA : CPU;
  *out_index = hip || cuda ? info->native_index : 0;
}

/* ---- out ---- */

/* What a struct that is handed out needs while it lives. */
typedef struct export {
  union {
    dl_managed managed;
    dl_versioned versioned;
  };
  rdna_array *array;
  int64_t shape[RDNA_MAX_RANK], strides[RDNA_MAX_RANK];
}
export;

static void delete_managed(dl_managed *self) {
  export *e = self->context;
  rdna_array_release(e->array);
  free(e);
}

static void delete_versioned(dl_versioned *self) {
  export *e = self->context;
  rdna_array_release(e->array);
  free(e);
}

static dl_tensor describe(export *e, bool pairs) {
  const rdna_tensor *t = &e->array->tensor;
  dl_tensor made = {.data = t->data, .rank = t->rank - pairs, .shape = e->shape, .strides = e->strides};
  made.dtype = (dl_dtype){codes[t->dtype].code, codes[t->dtype].bits, 1};
  if (pairs) made.dtype = (dl_dtype){COMPLEX, (uint8_t)(2 * made.dtype.bits), 1};
  for (int i = 0; i < made.rank; i++) {
    e->shape[i] = t->shape[i];
    e->strides[i] = t->stride[i] / (pairs ? 2 : 1);
  }
  rdna_dlpack_device(e->array->stream, &made.device.type, &made.device.index);
  return made;
}

/* Whether the last dimension is pairs that complex numbers are made of. */
static bool has_pairs(const rdna_tensor *t) {
  bool right = t->rank > 0 && t->shape[t->rank - 1] == 2 && t->stride[t->rank - 1] == 1;
  right &= t->dtype == RDNA_F32 || t->dtype == RDNA_F64;
  for (int i = 0; right && i < t->rank - 1; i++) right = t->stride[i] % 2 == 0 || t->shape[i] < 2;
  return right;
}

rdna_status rdna_array_to_dlpack(rdna_array *array, bool versioned, bool copied, bool pairs, void **out_managed) {
  rdna_array *own = NULL;
  RDNA_TRY(rdna__array_check("rdna_array_to_dlpack", &array, 1, out_managed ? &own : NULL));
  char text[RDNA__ARRAY_TEXT];
  if (array->lazy)
    return rdna__fail(RDNA_UNSUPPORTED, "rdna_array_to_dlpack: an array %s has no values yet",
                      rdna__array_text(&array->tensor, text));
  if (pairs && !has_pairs(&array->tensor))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_array_to_dlpack: an array %s has no pairs in its last dimension",
                      rdna__array_text(&array->tensor, text));
  if (copied)
    RDNA_TRY(rdna__array_copy(array, array->tensor.dtype, &own));
  else
    own = rdna_array_retain(array);
  export *e = calloc(1, sizeof *e);
  rdna_status status =
      e ? rdna_stream_synchronize(own->stream) : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a DLPack tensor");
  if (status != RDNA_OK) {
    rdna_array_release(own);
    free(e);
    return status;
  }
  e->array = own;
  dl_tensor tensor = describe(e, pairs);
  if (versioned)
    e->versioned = (dl_versioned){MAJOR, MINOR, e, delete_versioned, copied ? IS_COPIED : READ_ONLY, tensor};
  else
    e->managed = (dl_managed){tensor, e, delete_managed};
  *out_managed = e;
  return RDNA_OK;
}

void rdna_dlpack_release(void *managed, bool versioned) {
  dl_managed *old = managed;
  dl_versioned *tensor = managed;
  if (managed && versioned && tensor->deleter) tensor->deleter(tensor);
  if (managed && !versioned && old->deleter) old->deleter(old);
}

/* ---- in ---- */

/* What the array over a struct of others keeps. */
typedef struct import {
  void *managed;
  bool versioned;
  rdna_stream *stream;
} import;

static void release_import(void *owner) {
  import *i = owner;
  (void)!rdna_stream_synchronize(i->stream); /* what still reads it; its error is kept for whoever asks */
  rdna_dlpack_release(i->managed, i->versioned);
  free(i);
}

static rdna_status find_dtype(dl_dtype dtype, rdna_dtype *out, bool *out_pairs) {
  bool pairs = dtype.code == COMPLEX;
  uint8_t code = pairs ? FLOAT : dtype.code, bits = pairs ? dtype.bits / 2 : dtype.bits;
  for (int i = 0; i < CODES; i++) {
    if (!codes[i].bits || codes[i].code != code || codes[i].bits != bits || dtype.lanes != 1 || (pairs && bits < 32))
      continue;
    *out = (rdna_dtype)i;
    *out_pairs = pairs;
    return RDNA_OK;
  }
  return rdna__fail(RDNA_UNSUPPORTED, "DLPack's type of code %d, %d bits and %d lanes is none of arrays'", dtype.code,
                    dtype.bits, dtype.lanes);
}

static rdna_status find_tensor(const dl_tensor *given, rdna_stream *stream, rdna_tensor *out, bool *out_pairs) {
  int32_t type, index;
  rdna_dlpack_device(stream, &type, &index);
  if (given->device.type != type || given->device.index != index)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the values are on DLPack's device (%d, %d), the stream is of (%d, %d)",
                      given->device.type, given->device.index, type, index);
  RDNA_TRY(find_dtype(given->dtype, &out->dtype, out_pairs));
  int pairs = *out_pairs;
  if (given->rank < 0 || given->rank > RDNA_MAX_RANK - pairs || (given->rank > 0 && !given->shape))
    return rdna__fail(RDNA_UNSUPPORTED, "a DLPack tensor of %d dimensions; an array has %d at most", given->rank,
                      RDNA_MAX_RANK - pairs);
  *out = (rdna_tensor){.dtype = out->dtype, .rank = given->rank + pairs};
  int64_t step = 1;
  for (int i = given->rank - 1; i >= 0; i--) {
    out->shape[i] = given->shape[i];
    out->stride[i] = (given->strides ? given->strides[i] : step) * (pairs + 1);
    if (!given->strides && given->shape[i] > 0) step *= given->shape[i];
    if (i == given->rank - 1) RDNA_TRY(rdna__array_check_shape(out->dtype, given->rank, given->shape));
  }
  if (pairs) out->shape[given->rank] = 2, out->stride[given->rank] = 1;
  bool some = rdna_tensor_count(out) > 0;
  if (some && !given->data) return rdna__fail(RDNA_INVALID_ARGUMENT, "a DLPack tensor without data");
  out->data = some ? (char *)given->data + given->byte_offset : NULL;
  if ((uintptr_t)out->data % (rdna_dtype_block_bytes(out->dtype) * (size_t)(pairs + 1)))
    return rdna__fail(RDNA_UNSUPPORTED, "a DLPack tensor whose values do not begin at a multiple of their size");
  return RDNA_OK;
}

rdna_status rdna_array_from_dlpack(rdna_stream *stream, void *managed, bool versioned, bool *out_pairs,
                                   rdna_array **out_array) {
  if (!stream || !managed || !out_pairs || !out_array)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_array_from_dlpack needs a stream, a struct and places for results");
  const dl_versioned *v = managed;
  if (versioned && v->major != MAJOR)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "a DLPack tensor of version %u.%u; %d is understood", v->major, v->minor,
                      MAJOR);
  rdna_tensor tensor;
  RDNA_TRY(find_tensor(versioned ? &v->tensor : &((dl_managed *)managed)->tensor, stream, &tensor, out_pairs));
  import *owner = calloc(1, sizeof *owner);
  if (!owner) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for an array");
  *owner = (import){managed, versioned, stream};
  rdna_status status = rdna__array_borrow(stream, &tensor, release_import, owner, out_array);
  if (status != RDNA_OK) free(owner);
  return status;
}
