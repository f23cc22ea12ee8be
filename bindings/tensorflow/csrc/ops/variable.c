/* Variables. TensorFlow's own functions for them are not in every wheel, and its CPU's kernels touch our memory without
 * waiting for our streams; so values are kept here, by the name in a variable's handle.
 *
 * A value is never changed while anybody else may see it: an update takes new memory unless the variable alone holds
 * the old, and a reader has the tensor itself. TensorFlow does not say when Python drops a variable: its handle is
 * kept, and when nobody else has it any more the value goes. Handles of variables with names of their own are not
 * counted: such a variable lives until it is destroyed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compose.h"
#include "ops.h"
#include "places.h"
#include "rdna/op/index.h"
#include "variable.h"
#include "wire.h"

struct variable {
  struct variable *next;
  char *key; /* device, container and name */
  size_t key_size;
  TF_Tensor *value, *handle; /* handle NULL: a variable with a name */
};

enum { BUCKETS = 4096 };
static struct variable *buckets[BUCKETS];
static pthread_mutex_t variables_lock = PTHREAD_MUTEX_INITIALIZER;
static long variable_count, sweep_at = 64;
static uint64_t bytes_held, bytes_fresh; /* by all values, and by those of variables made since the last sweep */

/* ---- handles ---- */

/* The fields 1 to 3 (device, container, name) of a handle in protobuf's wire format, one after another with a 0 behind
 * each into |key|, which has room for |size| bytes. Returns how many there are. |*anonymous|: TensorFlow made up the
 * name of a variable that belongs to its handles alone; it says so by the container, older releases by the name. */
static size_t read_handle(const unsigned char *at, size_t size, char *key, bool *anonymous) {
  const unsigned char *end = at + size;
  size_t used = 0;
  *anonymous = false;
  while (at < end) {
    uint64_t tag = wire_varint(&at, end);
    if ((tag & 7) == 0) {
      wire_varint(&at, end);
      continue;
    }
    if ((tag & 7) != 2) break;
    uint64_t length = wire_varint(&at, end);
    if (length > (uint64_t)(end - at)) break;
    if (tag >> 3 <= 3) {
      memcpy(key + used, at, length);
      key[used + length] = 0;
      if (tag >> 3 == 2) *anonymous |= strcmp(key + used, "Anonymous") == 0;
      if (tag >> 3 == 3) *anonymous |= strncmp(key + used, "_AnonymousVar", 13) == 0;
      used += length + 1;
    }
    at += length;
  }
  return used;
}

static uint64_t hash(const char *key, size_t size) { /* FNV-1a */
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < size; i++) h = (h ^ (unsigned char)key[i]) * 0x100000001b3u;
  return h;
}

static void let_go_of_value(struct variable *v) {
  if (!v->value) return;
  bytes_held -= tf.TensorByteSize(v->value);
  tf.DeleteTensor(v->value);
  v->value = NULL;
}

static void release(struct variable *v) {
  let_go_of_value(v);
  if (v->handle) tf.DeleteTensor(v->handle);
  free(v->key);
  free(v);
  variable_count--;
}

/* Lets go of variables that nobody can reach any more; from time to time, as it looks at all of them: when there are
 * twice as many, or when new ones hold as much as the others. */
static void sweep(void) {
  if (variable_count < sweep_at && bytes_fresh <= bytes_held / 2) return;
  for (int i = 0; i < BUCKETS; i++) {
    for (struct variable **at = &buckets[i]; *at;) {
      struct variable *v = *at;
      TF_Tensor *alone = v->handle ? tf.TensorMaybeMove(v->handle) : NULL;
      if (!alone) {
        at = &v->next;
        continue;
      }
      v->handle = alone;
      *at = v->next;
      release(v);
    }
  }
  sweep_at = variable_count * 2 < 64 ? 64 : variable_count * 2;
  bytes_fresh = 0;
}

/* The variable whose handle is input |i|; with |create| a new one where there is none, else NULL. The lock is held. */
static rdna_status find(call *c, int i, bool create, struct variable **out) {
  TF_Buffer *buffer = tf.NewBuffer();
  tf.GetSerializedResourceHandleProto(c->ctx, i, buffer, c->status);
  rdna_status result = call_status(c);
  char *key = result == RDNA_OK ? malloc(buffer->length + 8) : NULL;
  bool anonymous = false;
  size_t size = key ? read_handle(buffer->data, buffer->length, key, &anonymous) : 0;
  tf.DeleteBuffer(buffer);
  TRY(result);
  if (!key) return call_fail(c, RDNA_OUT_OF_MEMORY, "no memory for a variable's name");
  struct variable **bucket = &buckets[hash(key, size) % BUCKETS], *v = *bucket;
  while (v && (v->key_size != size || memcmp(v->key, key, size) != 0)) v = v->next;
  *out = v;
  if (v || !create) {
    free(key);
    return RDNA_OK;
  }
  sweep();
  v = calloc(1, sizeof *v);
  if (!v) {
    free(key);
    return call_fail(c, RDNA_OUT_OF_MEMORY, "no memory for a variable");
  }
  v->key = key;
  v->key_size = size;
  if (anonymous) tf.GetInput(c->ctx, i, &v->handle, c->status);
  v->next = *bucket;
  *bucket = v;
  variable_count++;
  *out = v;
  return call_status(c);
}

static rdna_status find_value(call *c, int i, struct variable **out) {
  TRY(find(c, i, false, out));
  if (*out && (*out)->value) return RDNA_OK;
  tf.SetStatus(
      c->status, TF_FAILED_PRECONDITION,
      "Could not find variable. This could mean that the variable has been deleted, or was never initialized.");
  return RDNA_INTERNAL;
}

/* ---- for optimizers and the like ---- */

void lock_variables(void) { pthread_mutex_lock(&variables_lock); }

void unlock_variables(void) { pthread_mutex_unlock(&variables_lock); }

rdna_status with_variables(call *c, rdna_status (*function)(call *)) {
  lock_variables();
  rdna_status result = function(c);
  unlock_variables();
  return result;
}

static rdna_tensor described(const TF_Tensor *value) {
  int64_t shape[RDNA_MAX_RANK];
  int rank = tf.NumDims(value);
  for (int i = 0; i < rank && i < RDNA_MAX_RANK; i++) shape[i] = tf.Dim(value, i);
  return rdna_tensor_contiguous(tf.TensorData(value), dtype_of(tf.TensorType(value)), rank, shape);
}

rdna_status variable_value(call *c, int i, rdna_tensor *out) {
  struct variable *v;
  TRY(find_value(c, i, &v));
  *out = described(v->value);
  return RDNA_OK;
}

/* Memory of its own for the variable's value; |keep|: with the old values in it. */
rdna_status variable_to_write(call *c, int i, bool keep, rdna_tensor *out) {
  struct variable *v;
  TRY(find_value(c, i, &v));
  TF_Tensor *alone = tf.TensorMaybeMove(v->value);
  if (alone) {
    v->value = alone;
    *out = described(alone);
    return RDNA_OK;
  }
  rdna_tensor old = described(v->value);
  TF_AllocatorAttributes where = {.struct_size = TF_END_OF(TF_AllocatorAttributes, on_host)};
  TF_Tensor *fresh = tf.AllocateTemp(c->ctx, tf.TensorType(v->value), old.shape, old.rank, &where, c->status);
  TRY(call_memory_status(c, (int64_t)tf.TensorByteSize(v->value)));
  *out = described(fresh);
  rdna_status result = keep ? rdna_op_copy(c->stream, &old, out) : RDNA_OK;
  tf.DeleteTensor(v->value); /* whose memory is not given away before what was queued has read it */
  v->value = fresh;
  return result;
}

/* ---- operators ---- */

static rdna_status check_type(call *c, const struct variable *v, TF_DataType type, bool assigned) {
  TF_DataType own = tf.TensorType(v->value);
  if (own == type) return RDNA_OK;
  return assigned
             ? call_fail(c, RDNA_INVALID_ARGUMENT, "Trying to assign variable with wrong dtype. Expected %s got %s",
                         type_name(own), type_name(type))
             : call_fail(c, RDNA_INVALID_ARGUMENT, "Trying to read variable with wrong dtype. Expected %s got %s",
                         type_name(type), type_name(own));
}

static void write_shape(const TF_Tensor *value, char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size, "[");
  for (int i = 0; i < tf.NumDims(value) && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, i ? ",%lld" : "%lld", (long long)tf.Dim(value, i));
  if (used < size) snprintf(text + used, size - used, "]");
}

/* Whether a variable that has a value may have |value| in its place. */
static rdna_status check_value(call *c, const struct variable *v, const TF_Tensor *value) {
  if (!v->value) return RDNA_OK;
  TRY(check_type(c, v, tf.TensorType(value), true));
  if (!c->attributes->validate_shape) return RDNA_OK;
  bool same = tf.NumDims(value) == tf.NumDims(v->value);
  for (int i = 0; same && i < tf.NumDims(value); i++) same = tf.Dim(value, i) == tf.Dim(v->value, i);
  if (same) return RDNA_OK;
  char old[96], fresh[96];
  write_shape(v->value, old, sizeof old);
  write_shape(value, fresh, sizeof fresh);
  return call_fail(c, RDNA_INVALID_ARGUMENT,
                   "Trying to assign to variable with tensor with wrong shape. Expected %s got %s", old, fresh);
}

static rdna_status assign(call *c) {
  struct variable *v;
  TF_Tensor *value = NULL;
  tf.GetInput(c->ctx, 1, &value, c->status);
  TRY(call_status(c));
  rdna_status result = find(c, 0, true, &v);
  if (result == RDNA_OK) result = check_value(c, v, value);
  if (result != RDNA_OK) {
    tf.DeleteTensor(value);
    return result;
  }
  uint64_t bytes = tf.TensorByteSize(value);
  if (!v->value) bytes_fresh += bytes;
  let_go_of_value(v);
  v->value = value;
  bytes_held += bytes;
  return RDNA_OK;
}

static rdna_status read(call *c) {
  struct variable *v;
  TRY(find_value(c, 0, &v));
  TRY(check_type(c, v, tf.ExpectedOutputDataType(c->ctx, 0), false));
  tf.SetOutput(c->ctx, 0, v->value, c->status);
  return call_status(c);
}

static rdna_status read_all(call *c) {
  for (int i = 0; i < call_inputs(c); i++) {
    struct variable *v;
    TRY(find_value(c, i, &v));
    tf.SetOutput(c->ctx, i, v->value, c->status);
    TRY(call_status(c));
  }
  return RDNA_OK;
}

/* add, sub */
static rdna_status update(call *c) {
  rdna_tensor old, value, fresh;
  TRY(variable_value(c, 0, &old));
  TRY(call_input(c, 1, &value));
  if (!same_shape(&old, value.rank, value.shape) || old.dtype != value.dtype)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "Cannot update variable with a value of another shape or type");
  TRY(variable_to_write(c, 0, false, &fresh));
  return rdna_op_zip(c->stream, (rdna_zip)c->number, &old, &value, rdna_scalar_real(0), rdna_scalar_real(0), &fresh);
}

/* The same part by part: what the variable holds is a row of reals here. */
static rdna_status update_complex(call *c) {
  struct variable *v;
  rdna_tensor old, value, fresh;
  TRY(find_value(c, 0, &v));
  TRY(call_pairs(c, 1, &value));
  TRY(check_type(c, v, value.dtype == RDNA_F64 ? TF_COMPLEX128 : TF_COMPLEX64, true));
  old = described(v->value);
  if (!same_shape(&old, value.rank - 1, value.shape))
    return call_fail(c, RDNA_INVALID_ARGUMENT, "Cannot update variable with a value of another shape");
  TRY(variable_to_write(c, 0, false, &fresh));
  int64_t reals = rdna_tensor_count(&value);
  old = rdna_tensor_contiguous(old.data, value.dtype, 1, &reals);
  fresh = rdna_tensor_contiguous(fresh.data, value.dtype, 1, &reals);
  value = rdna_tensor_contiguous(value.data, value.dtype, 1, &reals);
  return rdna_op_zip(c->stream, (rdna_zip)c->number, &old, &value, rdna_scalar_real(0), rdna_scalar_real(0), &fresh);
}

static rdna_status is_initialized(call *c) {
  struct variable *v;
  rdna_tensor out;
  TRY(find(c, 0, false, &v));
  TRY(call_output(c, 0, 0, NULL, &out));
  *(unsigned char *)out.data = v && v->value; /* in host memory */
  return RDNA_OK;
}

static rdna_status shape_of(call *c) {
  rdna_tensor value, out;
  TRY(variable_value(c, 0, &value));
  TRY(call_output(c, 0, 1, (int64_t[]){value.rank}, &out));
  for (int i = 0; i < value.rank; i++) {
    if (out.dtype == RDNA_I32)
      ((int32_t *)out.data)[i] = (int32_t)value.shape[i];
    else
      ((int64_t *)out.data)[i] = value.shape[i];
  }
  return RDNA_OK;
}

static rdna_status forget(call *c) {
  struct variable *v;
  TRY(find(c, 0, false, &v));
  if (!v) return RDNA_OK;
  struct variable **at = &buckets[hash(v->key, v->key_size) % BUCKETS];
  while (*at != v) at = &(*at)->next;
  *at = v->next;
  release(v);
  return RDNA_OK;
}

/* A variable's rows, without a copy of the whole: tf.gather(variable, …). */
static rdna_status gather_rows(call *c) {
  rdna_tensor table, ids, out;
  int64_t shape[RDNA_MAX_RANK];
  TRY(variable_value(c, 0, &table));
  TRY(call_input(c, 1, &ids));
  if (table.rank < 1 || ids.rank + table.rank - 1 > RDNA_MAX_RANK || c->attributes->batch_dims)
    return call_fail(c, RDNA_UNSUPPORTED, "ResourceGather of a tensor of rank %d with batch_dims %lld", table.rank,
                     (long long)c->attributes->batch_dims);
  memcpy(shape, ids.shape, (size_t)ids.rank * sizeof *shape);
  memcpy(shape + ids.rank, table.shape + 1, (size_t)(table.rank - 1) * sizeof *shape);
  TRY(call_output(c, 0, ids.rank + table.rank - 1, shape, &out));
  int64_t rows = rdna_tensor_count(&ids), row = 1;
  for (int i = 1; i < table.rank; i++) row *= table.shape[i];
  rdna_tensor from = reshaped(&table, 2, (int64_t[]){table.shape[0], row}), list = reshaped(&ids, 1, &rows),
              to = reshaped(&out, 2, (int64_t[]){rows, row});
  return rdna_op_index_select(c->stream, &from, 0, &list, &to, NULL);
}

/* (variable, ids, rows): rows of a variable are replaced or joined with what comes. */
static rdna_status scatter_rows(call *c) {
  rdna_tensor table, ids, values, turned;
  TRY(variable_to_write(c, 0, true, &table));
  TRY(call_input(c, 1, &ids));
  TRY(call_input(c, 2, &values));
  int64_t rows = rdna_tensor_count(&ids), row = 1;
  for (int i = 1; i < table.rank; i++) row *= table.shape[i];
  if (rows == 0 || row == 0) return RDNA_OK;
  rdna_tensor to = reshaped(&table, 2, (int64_t[]){table.rank ? table.shape[0] : 1, row}),
              list = reshaped(&ids, 1, &rows);
  if (rdna_tensor_count(&values) == 1) { /* one value for all */
    values = reshaped(&values, 2, (int64_t[]){1, 1});
    values.shape[0] = rows;
    values.shape[1] = row;
    values.stride[0] = values.stride[1] = 0;
  } else if (rdna_tensor_count(&values) == rows * row) {
    values = reshaped(&values, 2, (int64_t[]){rows, row});
  } else {
    return call_fail(c, RDNA_INVALID_ARGUMENT, "updates do not have a row for each index");
  }
  int mode = c->number;
  if (mode == SCATTER_SUB) {
    TRY(call_scratch(c, values.dtype, 2, values.shape, &turned));
    TRY(rdna_op_map(c->stream, RDNA_MAP_NEG, &values, rdna_scalar_real(0), rdna_scalar_real(0), &turned));
    values = turned;
    mode = RDNA_SCATTER_ADD;
  }
  return rdna_op_index_copy(c->stream, &to, 0, &list, &values, (rdna_scatter)mode, true, NULL);
}

/* (variable, indices): values at places. */
static rdna_status gather_places_of(call *c) {
  rdna_tensor value, indices;
  TRY(variable_value(c, 0, &value));
  TRY(call_input(c, 1, &indices));
  return gather_places(c, &value, &indices);
}

/* (variable, indices, updates) */
static rdna_status scatter_places(call *c) {
  rdna_tensor value, indices, updates;
  TRY(call_input(c, 1, &indices));
  TRY(call_input(c, 2, &updates));
  TRY(variable_to_write(c, 0, true, &value));
  return put_places(c, &value, &indices, &updates);
}

/* (variable, rows, divisors): by the product of all that go to a row */
static rdna_status divide_rows(call *c) {
  rdna_tensor old, table, ids, values, product;
  TRY(variable_value(c, 0, &old));
  TRY(call_input(c, 1, &ids));
  TRY(call_input(c, 2, &values));
  int64_t rows = rdna_tensor_count(&ids), row = 1;
  for (int i = 1; i < old.rank; i++) row *= old.shape[i];
  if (old.rank < 1 || (rdna_tensor_count(&values) != rows * row && rdna_tensor_count(&values) != 1))
    return call_fail(c, RDNA_INVALID_ARGUMENT, "updates do not have a row for each index");
  TRY(variable_to_write(c, 0, true, &table));
  if (rows == 0 || row == 0) return RDNA_OK;
  int64_t all[] = {rows, row}, whole[] = {table.shape[0], row};
  if (rdna_tensor_count(&values) == 1) {
    values = reshaped(&values, 0, NULL);
    values = repeated(&values, 2, all);
  } else {
    values = reshaped(&values, 2, all);
  }
  rdna_tensor list = reshaped(&ids, 1, &rows), to = reshaped(&table, 2, whole);
  TRY(call_scratch(c, table.dtype, 2, whole, &product));
  TRY(fill(c, 1, &product));
  TRY(rdna_op_index_copy(c->stream, &product, 0, &list, &values, RDNA_SCATTER_PROD, true, NULL));
  return zip(c, RDNA_ZIP_DIV, &to, &product, &to);
}

/* (variable, begin, end, strides, value) */
static rdna_status assign_slice(call *c) {
  rdna_tensor table;
  TRY(variable_to_write(c, 0, true, &table));
  return write_slice(c, &table);
}

LOCKED(compute_gather_places, gather_places_of)
LOCKED(compute_scatter_places, scatter_places)
LOCKED(compute_divide_rows, divide_rows)
LOCKED(compute_assign_slice, assign_slice)
LOCKED(compute_assign, assign)
LOCKED(compute_read, read)
LOCKED(compute_read_all, read_all)
LOCKED(compute_update, update)
LOCKED(compute_update_complex, update_complex)
LOCKED(compute_is_initialized, is_initialized)
LOCKED(compute_variable_shape, shape_of)
LOCKED(compute_forget, forget)
LOCKED(compute_gather_rows, gather_rows)
LOCKED(compute_scatter_rows, scatter_rows)
