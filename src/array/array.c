/* Arrays and the memory under them. */
#include "array/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdna/memory.h"
#include "rdna/op/movement.h"

struct rdna__storage {
  int count; /* of references */
  rdna_device *device;
  void *data;
  void (*release)(void *owner); /* of memory that is somebody else's; NULL: it is the device's */
  void *owner;
};

static void release_storage(rdna__storage *storage) {
  if (!storage || __atomic_sub_fetch(&storage->count, 1, __ATOMIC_ACQ_REL) > 0) return;
  /* in the order of its stream: what was queued still finds it */
  if (storage->release)
    storage->release(storage->owner);
  else
    (void)!rdna_memory_free(storage->device, storage->data);
  rdna_device_release(storage->device);
  free(storage);
}

static rdna_status make_storage(rdna_stream *stream, size_t bytes, rdna__storage **out_storage) {
  rdna__storage *storage = calloc(1, sizeof *storage);
  if (!storage) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for an array");
  *storage = (rdna__storage){1, rdna_device_retain(rdna_stream_device(stream)), NULL, NULL, NULL};
  rdna_status status = rdna_memory_alloc_named(storage->device, bytes, stream, "array", &storage->data);
  if (status != RDNA_OK) {
    release_storage(storage);
    return status;
  }
  *out_storage = storage;
  return RDNA_OK;
}

rdna_array *rdna_array_retain(rdna_array *array) {
  if (array) __atomic_add_fetch(&array->count, 1, __ATOMIC_RELAXED);
  return array;
}

void rdna_array_release(rdna_array *array) {
  if (!array || __atomic_sub_fetch(&array->count, 1, __ATOMIC_ACQ_REL) > 0) return;
  if (array->lazy) array->lazy->functions->release(array->lazy);
  release_storage(array->storage);
  free(array);
}

const rdna_tensor *rdna_array_tensor(const rdna_array *array) { return array ? &array->tensor : NULL; }

rdna_stream *rdna_array_stream(const rdna_array *array) { return array ? array->stream : NULL; }

const char *rdna__array_text(const rdna_tensor *tensor, char text[RDNA__ARRAY_TEXT]) {
  int used = snprintf(text, RDNA__ARRAY_TEXT, "%s (", rdna_dtype_name(tensor->dtype));
  for (int i = 0; i < tensor->rank && used < RDNA__ARRAY_TEXT; i++)
    used +=
        snprintf(text + used, (size_t)(RDNA__ARRAY_TEXT - used), "%s%lld", i ? ", " : "", (long long)tensor->shape[i]);
  if (used < RDNA__ARRAY_TEXT) snprintf(text + used, (size_t)(RDNA__ARRAY_TEXT - used), ")");
  return text;
}

/* ---- making ---- */

rdna_status rdna__array_check_shape(rdna_dtype dtype, int rank, const int64_t *shape) {
  if (!rdna__array_is_plain(dtype))
    return rdna__fail(RDNA_UNSUPPORTED, "arrays hold no values of type %s", rdna_dtype_name(dtype));
  if (rank < 0 || rank > RDNA_MAX_RANK || (rank > 0 && !shape))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "an array has 0 to %d dimensions, not %d", RDNA_MAX_RANK, rank);
  int64_t most = INT64_MAX / 16; /* bytes of values of any type */
  bool empty = false;
  for (int i = 0; i < rank; i++) {
    if (shape[i] < 0)
      return rdna__fail(RDNA_INVALID_ARGUMENT, "size %lld of dimension %d is negative", (long long)shape[i], i);
    empty |= shape[i] == 0;
  }
  for (int i = 0; i < rank && !empty; i++) {
    if (shape[i] > most) return rdna__fail(RDNA_INVALID_ARGUMENT, "an array of such a shape would have 2^59 values");
    most /= shape[i];
  }
  return RDNA_OK;
}

rdna_status rdna__array_view(const rdna_array *array, const rdna_tensor *view, rdna_array **out_array) {
  char text[RDNA__ARRAY_TEXT];
  if (array->lazy)
    return rdna__fail(RDNA_UNSUPPORTED, "an array %s that has no values yet has no such view",
                      rdna__array_text(&array->tensor, text));
  rdna_array *made = calloc(1, sizeof *made);
  if (!made) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for an array");
  __atomic_add_fetch(&array->storage->count, 1, __ATOMIC_RELAXED);
  *made = (rdna_array){1, array->storage, array->stream, *view, NULL};
  *out_array = made;
  return RDNA_OK;
}

rdna_status rdna__array_make(rdna_stream *stream, rdna_dtype dtype, int rank, const int64_t *shape,
                             rdna_array **out_array) {
  if (!stream || !out_array) return rdna__fail(RDNA_INVALID_ARGUMENT, "an array needs a stream and a place");
  RDNA_TRY(rdna__array_check_shape(dtype, rank, shape));
  rdna_array *made = calloc(1, sizeof *made);
  if (!made) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for an array");
  *made = (rdna_array){1, NULL, stream, rdna_tensor_contiguous(NULL, dtype, rank, shape), NULL};
  rdna_status status = make_storage(stream, rdna_dtype_bytes(dtype, rdna_tensor_count(&made->tensor)), &made->storage);
  if (status != RDNA_OK) {
    free(made);
    return status;
  }
  made->tensor.data = made->storage->data;
  *out_array = made;
  return RDNA_OK;
}

rdna_status rdna__array_borrow(rdna_stream *stream, const rdna_tensor *tensor, void (*release)(void *owner),
                               void *owner, rdna_array **out_array) {
  rdna_array *made = calloc(1, sizeof *made);
  rdna__storage *storage = calloc(1, sizeof *storage);
  if (!made || !storage) {
    free(made);
    free(storage);
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for an array");
  }
  *storage = (rdna__storage){1, rdna_device_retain(rdna_stream_device(stream)), tensor->data, release, owner};
  *made = (rdna_array){1, storage, stream, *tensor, NULL};
  *out_array = made;
  return RDNA_OK;
}

rdna_status rdna__array_finish(rdna_status status, rdna_array *made, rdna_array **out_array) {
  if (status == RDNA_OK)
    *out_array = made;
  else
    rdna_array_release(made);
  return status;
}

rdna_status rdna_array_empty(rdna_stream *stream, rdna_dtype dtype, int rank, const int64_t *shape,
                             rdna_array **out_array) {
  return rdna__array_make(stream, dtype, rank, shape, out_array);
}

int rdna__array_holders(const rdna_array *array) { return __atomic_load_n(&array->storage->count, __ATOMIC_ACQUIRE); }

rdna_status rdna_array_own(rdna_array *array, rdna_array **out_array) {
  RDNA_TRY(rdna__array_check("rdna_array_own", &array, 1, out_array));
  char text[RDNA__ARRAY_TEXT];
  if (array->lazy)
    return rdna__fail(RDNA_UNSUPPORTED, "an array %s that has no values yet has no memory to write to",
                      rdna__array_text(&array->tensor, text));
  bool alone = !array->storage->release && __atomic_load_n(&array->count, __ATOMIC_ACQUIRE) == 1 &&
               __atomic_load_n(&array->storage->count, __ATOMIC_ACQUIRE) == 1;
  /* of one value that repeats, places would be written several times */
  for (int i = 0; i < array->tensor.rank; i++) alone &= array->tensor.stride[i] != 0 || array->tensor.shape[i] < 2;
  if (!alone) return rdna__array_copy(array, array->tensor.dtype, out_array);
  *out_array = rdna_array_retain(array);
  return RDNA_OK;
}

rdna_status rdna_array_full(rdna_stream *stream, rdna_dtype dtype, int rank, const int64_t *shape, rdna_scalar value,
                            rdna_array **out_array) {
  rdna_array *made;
  RDNA_TRY(rdna__array_make(stream, dtype, rank, shape, &made));
  return rdna__array_finish(rdna_op_fill(stream, value, &made->tensor), made, out_array);
}

rdna_status rdna_array_arange(rdna_stream *stream, rdna_dtype dtype, int64_t count, rdna_scalar start, rdna_scalar step,
                              rdna_array **out_array) {
  rdna_array *made;
  RDNA_TRY(rdna__array_make(stream, dtype, 1, &count, &made));
  return rdna__array_finish(rdna_op_arange(stream, start, step, &made->tensor), made, out_array);
}

rdna_status rdna_array_from_host(rdna_stream *stream, rdna_dtype dtype, int rank, const int64_t *shape,
                                 const void *data, rdna_array **out_array) {
  rdna_array *made;
  RDNA_TRY(rdna__array_make(stream, dtype, rank, shape, &made));
  size_t bytes = rdna_dtype_bytes(dtype, rdna_tensor_count(&made->tensor));
  rdna_status status = RDNA_OK;
  if (bytes > 0 && !data)
    status = rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_array_from_host needs the values");
  else if (bytes > 0)
    status = rdna_copy_to_device(stream, made->tensor.data, data, bytes);
  if (status == RDNA_OK) status = rdna_stream_synchronize(stream); /* |data| may be pinned, and go */
  return rdna__array_finish(status, made, out_array);
}

rdna_status rdna_array_to_host(const rdna_array *array, void *data, size_t bytes) {
  if (!array) return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_array_to_host needs an array");
  size_t have = rdna_dtype_bytes(array->tensor.dtype, rdna_tensor_count(&array->tensor));
  char text[RDNA__ARRAY_TEXT];
  if (bytes != have || (have > 0 && !data))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the values of an array %s take %zu bytes, and there is a place for %zu",
                      rdna__array_text(&array->tensor, text), have, data ? bytes : 0);
  rdna_array *computed = NULL, *whole;
  if (array->lazy) RDNA_TRY(array->lazy->functions->compute(array, &computed));
  rdna_status status = rdna_array_contiguous(computed ? computed : (rdna_array *)array, &whole);
  rdna_array_release(computed);
  if (status != RDNA_OK) return status;
  status = have > 0 ? rdna_copy_to_host(array->stream, data, whole->tensor.data, have) : RDNA_OK;
  if (status == RDNA_OK) status = rdna_stream_synchronize(array->stream);
  rdna_array_release(whole);
  return status;
}
