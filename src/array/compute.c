/* Value by value, and over dimensions. */
#include "array/array.h"

/* What an operation is offered for: the column |types| of rdna/op/pointwise.def. */
enum { R = 1, I = 2, RI = R | I };
#define TYPES(NAME, name, types, ...) types,
static const uint8_t map_types[] = {RDNA_POINTWISE_MAPS(TYPES, TYPES, , )};
static const uint8_t zip_types[] = {RDNA_POINTWISE_ZIPS(TYPES, TYPES, )};

/* |dtype|, or what stands for it where |types| has no integers. RDNA_UNSUPPORTED: floats where it has no floats. */
static rdna_status choose_type(const char *name, uint8_t types, rdna_dtype dtype, rdna_dtype *out) {
  *out = types & I ? dtype : rdna__array_float_for(dtype);
  if (types & R || !rdna__array_is_float(dtype)) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "%s of %s: it is for integers and bool", name, rdna_dtype_name(dtype));
}

rdna_status rdna__array_map_type(rdna_map op, rdna_dtype dtype, rdna_dtype *out) {
  return choose_type(rdna_map_name(op), map_types[op], dtype, out);
}

rdna_status rdna__array_zip_type(rdna_zip op, rdna_dtype dtype, rdna_dtype *out) {
  return choose_type(rdna_zip_name(op), op == RDNA_ZIP_DIV ? R : zip_types[op], dtype, out);
}

/* Arrays of one call in one type, and an array for the result. */
typedef struct call {
  rdna_array *inputs[3]; /* (count) references of its own */
  int count;
  rdna_array *out;
} call;

static rdna_status cast_inputs(call *c, rdna_array *const *arrays, int count, rdna_dtype dtype) {
  for (; c->count < count; c->count++) RDNA_TRY(rdna_array_cast(arrays[c->count], dtype, &c->inputs[c->count]));
  return RDNA_OK;
}

static rdna_status begin(call *c, const char *name, rdna_array *const *arrays, int count, rdna_dtype in,
                         rdna_dtype out) {
  rdna_tensor shape;
  RDNA_TRY(rdna__array_join_shapes(name, arrays, count, &shape));
  RDNA_TRY(cast_inputs(c, arrays, count, in));
  return rdna__array_make(arrays[0]->stream, out, shape.rank, shape.shape, &c->out);
}

/* Releases what the call holds; hands the result over where |status| is RDNA_OK. */
static rdna_status end(call *c, rdna_status status, rdna_array **out_array) {
  for (int i = 0; i < c->count; i++) rdna_array_release(c->inputs[i]);
  return rdna__array_finish(status, c->out, out_array);
}

rdna_status rdna_array_map(rdna_array *x, rdna_map op, rdna_scalar p, rdna_scalar q, rdna_array **out_array) {
  if ((unsigned)op >= RDNA_MAP_COUNT) return rdna__fail(RDNA_INVALID_ARGUMENT, "there is no map %d", (int)op);
  const char *name = rdna_map_name(op);
  RDNA_TRY(rdna__array_check(name, &x, 1, out_array));
  if (x->lazy) return x->lazy->functions->map(x, op, p, q, out_array);
  rdna_dtype dtype;
  RDNA_TRY(rdna__array_map_type(op, x->tensor.dtype, &dtype));
  call c = {.count = 0};
  rdna_status status = begin(&c, name, &x, 1, dtype, dtype);
  if (status == RDNA_OK) status = rdna_op_map(x->stream, op, &c.inputs[0]->tensor, p, q, &c.out->tensor);
  return end(&c, status, out_array);
}

rdna_status rdna_array_zip(rdna_array *a, rdna_array *b, rdna_zip op, rdna_scalar p, rdna_scalar q,
                           rdna_array **out_array) {
  if ((unsigned)op >= RDNA_ZIP_COUNT) return rdna__fail(RDNA_INVALID_ARGUMENT, "there is no zip %d", (int)op);
  const char *name = rdna_zip_name(op);
  rdna_array *arrays[] = {a, b};
  RDNA_TRY(rdna__array_check(name, arrays, 2, out_array));
  const rdna__recording *recording = rdna__array_recording(arrays, 2);
  if (recording) return recording->zip(a, b, op, p, q, out_array);
  rdna_dtype dtype = rdna_dtype_promote(a->tensor.dtype, b->tensor.dtype);
  RDNA_TRY(rdna__array_zip_type(op, dtype, &dtype));
  call c = {.count = 0};
  rdna_status status = begin(&c, name, arrays, 2, dtype, dtype);
  if (status == RDNA_OK)
    status = rdna_op_zip(a->stream, op, &c.inputs[0]->tensor, &c.inputs[1]->tensor, p, q, &c.out->tensor);
  return end(&c, status, out_array);
}

rdna_status rdna_array_zip_number(rdna_array *x, rdna_scalar number, bool number_first, rdna_zip op, rdna_scalar p,
                                  rdna_scalar q, rdna_array **out_array) {
  if ((unsigned)op >= RDNA_ZIP_COUNT) return rdna__fail(RDNA_INVALID_ARGUMENT, "there is no zip %d", (int)op);
  const char *name = rdna_zip_name(op);
  RDNA_TRY(rdna__array_check(name, &x, 1, out_array));
  if (x->lazy) return x->lazy->functions->zip_number(x, number, number_first, op, p, q, out_array);
  rdna_dtype dtype;
  RDNA_TRY(rdna__array_zip_type(op, x->tensor.dtype, &dtype));
  call c = {.count = 0};
  rdna_status status = begin(&c, name, &x, 1, dtype, dtype);
  if (status == RDNA_OK)
    status = rdna_op_zip_scalar(x->stream, op, &c.inputs[0]->tensor, number, number_first, p, q, &c.out->tensor);
  return end(&c, status, out_array);
}

rdna_status rdna_array_compare(rdna_array *a, rdna_array *b, rdna_compare op, rdna_array **out_array) {
  if ((unsigned)op >= RDNA_COMPARE_COUNT) return rdna__fail(RDNA_INVALID_ARGUMENT, "there is no question %d", (int)op);
  const char *name = rdna_compare_name(op);
  rdna_array *arrays[] = {a, b};
  int count = b ? 2 : 1;
  RDNA_TRY(rdna__array_check(name, arrays, count, out_array));
  const rdna__recording *recording = rdna__array_recording(arrays, count);
  if (recording) return recording->compare(a, b, op, out_array);
  rdna_dtype dtype = b ? rdna_dtype_promote(a->tensor.dtype, b->tensor.dtype) : a->tensor.dtype;
  call c = {.count = 0};
  rdna_status status = begin(&c, name, arrays, count, dtype, RDNA_BOOL);
  if (status == RDNA_OK)
    status = rdna_op_compare(a->stream, op, &c.inputs[0]->tensor, b ? &c.inputs[1]->tensor : NULL, &c.out->tensor);
  return end(&c, status, out_array);
}

rdna_status rdna_array_compare_number(rdna_array *a, rdna_scalar number, rdna_compare op, rdna_array **out_array) {
  if ((unsigned)op >= RDNA_COMPARE_COUNT) return rdna__fail(RDNA_INVALID_ARGUMENT, "there is no question %d", (int)op);
  const char *name = rdna_compare_name(op);
  RDNA_TRY(rdna__array_check(name, &a, 1, out_array));
  if (a->lazy) return a->lazy->functions->compare_number(a, number, op, out_array);
  call c = {.count = 0};
  rdna_status status = begin(&c, name, &a, 1, a->tensor.dtype, RDNA_BOOL);
  if (status == RDNA_OK) status = rdna_op_compare_scalar(a->stream, op, &c.inputs[0]->tensor, number, &c.out->tensor);
  return end(&c, status, out_array);
}

rdna_status rdna_array_where(rdna_array *condition, rdna_array *a, rdna_array *b, rdna_array **out_array) {
  rdna_array *arrays[] = {a, b, condition};
  RDNA_TRY(rdna__array_check("where", arrays, 3, out_array));
  const rdna__recording *recording = rdna__array_recording(arrays, 3);
  if (recording) return recording->where(condition, a, b, out_array);
  if (condition->tensor.dtype != RDNA_BOOL)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "where: the condition is %s, not bool; compare it with something",
                      rdna_dtype_name(condition->tensor.dtype));
  rdna_dtype dtype = rdna_dtype_promote(a->tensor.dtype, b->tensor.dtype);
  rdna_tensor shape;
  RDNA_TRY(rdna__array_join_shapes("where", arrays, 3, &shape));
  call c = {.count = 0};
  rdna_status status = cast_inputs(&c, arrays, 2, dtype);
  if (status == RDNA_OK) status = rdna__array_make(a->stream, dtype, shape.rank, shape.shape, &c.out);
  if (status == RDNA_OK)
    status = rdna_op_where(a->stream, &condition->tensor, &c.inputs[0]->tensor, &c.inputs[1]->tensor, &c.out->tensor);
  return end(&c, status, out_array);
}

/* ---- reductions ---- */

void rdna__array_reduce_types(rdna_reduction reduction, rdna_dtype dtype, rdna_dtype *in, rdna_dtype *sum,
                              rdna_dtype *out) {
  bool narrow = dtype == RDNA_I8 || dtype == RDNA_I16 || dtype == RDNA_U16; /* of which there are no kernels */
  *in = narrow ? RDNA_I32 : dtype == RDNA_U32 || dtype == RDNA_U64 ? RDNA_I64 : dtype;
  switch (reduction) {
    case RDNA_REDUCTION_SUM:
    case RDNA_REDUCTION_PROD:
      *sum = rdna__array_is_float(dtype) ? dtype : RDNA_I64;
      *out = rdna__array_is_unsigned(dtype) ? RDNA_U64 : *sum; /* the same bits */
      break;
    case RDNA_REDUCTION_MIN:
    case RDNA_REDUCTION_MAX:
      *sum = *in;
      *out = dtype;
      break;
    case RDNA_REDUCTION_ARGMIN:
    case RDNA_REDUCTION_ARGMAX:
      *sum = *out = RDNA_I64;
      break;
    case RDNA_REDUCTION_ANY:
    case RDNA_REDUCTION_ALL:
      *sum = *out = RDNA_BOOL;
      break;
    default:
      *in = *sum = *out = rdna__array_float_for(dtype);
  }
}

/* Turns the first bits of |x|, 64 bits each, over: what is in the order of i64 comes into that of u64, and back. */
static rdna_status turn(rdna_stream *stream, const rdna_tensor *x, const rdna_tensor *out) {
  return rdna_op_zip_scalar(stream, RDNA_ZIP_BITWISE_XOR, x, rdna_scalar_integer(INT64_MIN), false,
                            rdna_scalar_integer(0), rdna_scalar_integer(0), out);
}

/* |x|'s bits as i64, of which there are kernels; in their order where it is asked about that. */
static rdna_status take_u64(call *c, rdna_array *x, bool ordered) {
  rdna_array *bits, *made;
  RDNA_TRY(rdna_array_bits(x, RDNA_I64, &bits));
  if (!ordered) {
    c->inputs[c->count++] = bits;
    return RDNA_OK;
  }
  rdna_status status = rdna__array_make(x->stream, RDNA_I64, x->tensor.rank, x->tensor.shape, &made);
  if (status == RDNA_OK) {
    c->inputs[c->count++] = made;
    status = turn(x->stream, &bits->tensor, &made->tensor);
  }
  rdna_array_release(bits);
  return status;
}

rdna_status rdna_array_reduce(rdna_array *x, rdna_reduction reduction, uint32_t dims, bool keep_dims, double parameter,
                              rdna_array **out_array) {
  RDNA_TRY(rdna__array_check("rdna_array_reduce", &x, 1, out_array));
  if (x->lazy) return x->lazy->functions->reduce(x, reduction, dims, keep_dims, parameter, out_array);
  const rdna_tensor *tensor = &x->tensor;
  if ((unsigned)reduction >= RDNA_REDUCTION_COUNT)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "there is no reduction %d", (int)reduction);
  if (dims >> tensor->rank)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_array_reduce: dims 0x%x has dimensions that an array of %d has not",
                      dims, tensor->rank);
  rdna_dtype in, sum, out;
  rdna__array_reduce_types(reduction, tensor->dtype, &in, &sum, &out);
  int64_t shape[RDNA_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < tensor->rank; i++)
    if (!(dims >> i & 1) || keep_dims) shape[rank++] = dims >> i & 1 ? 1 : tensor->shape[i];
  call c = {.count = 0};
  bool of_u64 = tensor->dtype == RDNA_U64 && in == RDNA_I64;
  bool extreme = reduction == RDNA_REDUCTION_MIN || reduction == RDNA_REDUCTION_MAX ||
                 reduction == RDNA_REDUCTION_ARGMIN || reduction == RDNA_REDUCTION_ARGMAX;
  rdna_status status = of_u64 ? take_u64(&c, x, extreme) : cast_inputs(&c, &x, 1, in);
  if (status == RDNA_OK) status = rdna__array_make(x->stream, sum, rank, shape, &c.out);
  if (status == RDNA_OK)
    status = rdna_op_reduce(x->stream, reduction, &c.inputs[0]->tensor, dims, parameter, &c.out->tensor);
  if (status == RDNA_OK && of_u64 && out == RDNA_U64 && extreme)
    status = turn(x->stream, &c.out->tensor, &c.out->tensor);
  if (status == RDNA_OK && out == RDNA_U64 && sum == RDNA_I64) c.out->tensor.dtype = sum = RDNA_U64;
  if (status != RDNA_OK || sum == out) return end(&c, status, out_array);
  rdna_array *made;
  RDNA_TRY(end(&c, status, &made));
  status = rdna_array_cast(made, out, out_array);
  rdna_array_release(made);
  return status;
}
