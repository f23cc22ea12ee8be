#include "model/weights/transcode.h"

#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "rdna/memory.h"
#include "rdna/op/cast.h"
#include "rdna/op/pointwise.h"
#include "rdna/op/quant.h"
#include "rdna/op/reduce.h"

enum { SLICE = 1 << 22 }; /* values: 16 MiB of f32; a whole number of every type's blocks */

struct rdna__transcoder {
  rdna_device *device;
  rdna_stream *stream;
  void *in, *wide, *out;  /* device memory for a slice of any type */
  float *norm;            /* device memory for one */
  rdna_tensor importance; /* of columns; data NULL: there is none */
  void *host;             /* what comes back */
};

rdna_status rdna__transcoder_create(rdna_device *device, rdna__transcoder **out_transcoder) {
  enum { BYTES = SLICE * sizeof(float) }; /* f32 has the largest values */
  rdna__transcoder *t = calloc(1, sizeof *t);
  if (!t) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory to convert weights");
  t->device = rdna_device_retain(device);
  t->stream = rdna_device_default_stream(device);
  rdna_status status = rdna_memory_alloc(device, BYTES, NULL, &t->in);
  if (status == RDNA_OK) status = rdna_memory_alloc(device, BYTES, NULL, &t->wide);
  if (status == RDNA_OK) status = rdna_memory_alloc(device, BYTES, NULL, &t->out);
  if (status == RDNA_OK) status = rdna_memory_alloc(device, sizeof *t->norm, NULL, (void **)&t->norm);
  if (status == RDNA_OK && !(t->host = malloc(BYTES)))
    status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory to convert weights");
  if (status == RDNA_OK) {
    *out_transcoder = t;
  } else {
    rdna__transcoder_release(t);
  }
  return status;
}

void rdna__transcoder_release(rdna__transcoder *t) {
  if (!t) return;
  void *const data[] = {t->in, t->wide, t->out, t->norm};
  for (int i = 0; i < 4; i++)
    if (data[i]) (void)!rdna_memory_free(t->device, data[i]);
  rdna_device_release(t->device);
  free(t->host);
  free(t);
}

static bool is_block(rdna_dtype dtype) { return rdna_dtype_block_values(dtype) > 1; }

bool rdna__transcodes_from(rdna_dtype dtype) {
  return dtype == RDNA_F32 || dtype == RDNA_F16 || dtype == RDNA_BF16 || is_block(dtype);
}

/* What f16, or scales in f16, are too small for becomes infinite, or a block that is no numbers: it is refused. Both
 * show in the 2-norm; what these types hold is far below the root of f32's largest value. */
static rdna_status check_range(rdna__transcoder *t, const rdna_tensor *values) {
  if (values->dtype != RDNA_F16 && !is_block(values->dtype)) return RDNA_OK;
  rdna_tensor plain = *values, norm = rdna_tensor_contiguous(t->norm, RDNA_F32, 0, NULL);
  float got = 0;
  if (is_block(values->dtype)) {
    plain = rdna_tensor_contiguous(t->wide, RDNA_F32, 1, values->shape);
    RDNA_TRY(rdna_op_dequantize(t->stream, values, &plain));
  }
  RDNA_TRY(rdna_op_reduce(t->stream, RDNA_REDUCTION_NORM, &plain, 1, 2, &norm));
  RDNA_TRY(rdna_copy_to_host(t->stream, &got, t->norm, sizeof got));
  RDNA_TRY(rdna_stream_synchronize(t->stream));
  if (isfinite(got)) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "it holds values that are too large for %s, or none; bf16 has the range of f32",
                    rdna_dtype_name(values->dtype));
}

/* f32 to blocks. */
static rdna_status quantize(rdna__transcoder *t, const rdna_tensor *in, const rdna_tensor *out) {
  if (!t->importance.data) return rdna_op_quantize(t->stream, in, out);
  int64_t columns = t->importance.shape[0], shape[2] = {in->shape[0] / columns, columns};
  rdna_tensor rows = rdna_tensor_contiguous(in->data, in->dtype, 2, shape);
  rdna_tensor blocks = rdna_tensor_contiguous(out->data, out->dtype, 2, shape);
  return rdna_op_quantize_weighted(t->stream, &rows, &t->importance, &blocks);
}

/* |in| as |out|, both in device memory. */
static rdna_status convert(rdna__transcoder *t, const rdna_tensor *in, const rdna_tensor *out) {
  rdna_tensor wide = rdna_tensor_contiguous(t->wide, RDNA_F32, 1, in->shape);
  if (!is_block(out->dtype)) {
    RDNA_TRY(is_block(in->dtype) ? rdna_op_dequantize(t->stream, in, out) : rdna_op_cast(t->stream, in, out));
  } else if (in->dtype == RDNA_F32) {
    RDNA_TRY(quantize(t, in, out));
  } else {
    RDNA_TRY(is_block(in->dtype) ? rdna_op_dequantize(t->stream, in, &wide) : rdna_op_cast(t->stream, in, &wide));
    RDNA_TRY(quantize(t, &wide, out));
  }
  return check_range(t, out);
}

rdna_status rdna__transcode(rdna__transcoder *t, rdna_gguf_writer *writer, const void *values, rdna_dtype from,
                            rdna_dtype to, int64_t count, double add) {
  if (from == to && add == 0) return rdna_gguf_writer_append(writer, values, rdna_dtype_bytes(from, count));
  if (!rdna__transcodes_from(from))
    return rdna__fail(RDNA_UNSUPPORTED, "values of type %s cannot be converted; f32, f16, bf16 and blocks can",
                      rdna_dtype_name(from));
  const char *at = values;
  int64_t columns = t->importance.data ? t->importance.shape[0] : 1, most = SLICE / columns * columns;
  for (int64_t done = 0, n; done < count; done += n) {
    n = count - done < most ? count - done : most;
    size_t in_bytes = rdna_dtype_bytes(from, n), out_bytes = rdna_dtype_bytes(to, n);
    rdna_tensor in = rdna_tensor_contiguous(t->in, from, 1, &n), out = rdna_tensor_contiguous(t->out, to, 1, &n);
    RDNA_TRY(rdna_copy_to_device(t->stream, t->in, at, in_bytes));
    RDNA_TRY(convert(t, &in, &out));
    if (add != 0)
      RDNA_TRY(rdna_op_map(t->stream, RDNA_MAP_AFFINE, &out, rdna_scalar_real(1), rdna_scalar_real(add), &out));
    RDNA_TRY(rdna_copy_to_host(t->stream, t->host, t->out, out_bytes));
    RDNA_TRY(rdna_stream_synchronize(t->stream));
    RDNA_TRY(rdna_gguf_writer_append(writer, t->host, out_bytes));
    at += in_bytes;
  }
  return RDNA_OK;
}

rdna_status rdna__transcode_weighted(rdna__transcoder *t, rdna_gguf_writer *writer, const void *values, rdna_dtype from,
                                     rdna_dtype to, int64_t count, const float *importance, int64_t columns) {
  if (columns > SLICE)
    return rdna__fail(RDNA_UNSUPPORTED, "rows of %lld values; importance is for rows of at most %d", (long long)columns,
                      (int)SLICE);
  void *data;
  size_t bytes = (size_t)columns * sizeof *importance;
  RDNA_TRY(rdna_memory_alloc(t->device, bytes, NULL, &data));
  rdna_status status = rdna_copy_to_device(t->stream, data, importance, bytes);
  t->importance = rdna_tensor_contiguous(data, RDNA_F32, 1, &columns);
  if (status == RDNA_OK) status = rdna__transcode(t, writer, values, from, to, count, 0);
  t->importance.data = NULL;
  rdna_status freed = rdna_memory_free(t->device, data);
  return status == RDNA_OK ? freed : status;
}
