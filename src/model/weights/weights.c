/* Tensors of a model's file: found by name, their shapes checked, copied to the device or used where they are mapped.
 */
#include "model/weights/weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "kernel/dtype.h"
#include "model/weights/upload.h"
#include "rdna/memory.h"
#include "rdna/op/quant.h"
#include "rdna/stream.h"

void rdna__weights_free(rdna__weights *w) {
  rdna__uploader_release(w->uploader);
  for (int i = 0; i < w->allocation_count; i++) (void)!rdna_memory_free(w->device, w->allocations[i]);
  free(w->allocations);
  free(w->matrices);
}

rdna_status rdna__weights_name(rdna__weights *w, const char *name, const rdna_tensor *weight) {
  if (w->matrix_count == w->matrix_room) {
    int room = w->matrix_room ? 2 * w->matrix_room : 256;
    rdna__named_matrix *grown = realloc(w->matrices, (size_t)room * sizeof *grown);
    if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the list of matrices");
    w->matrices = grown;
    w->matrix_room = room;
  }
  rdna__named_matrix *m = &w->matrices[w->matrix_count];
  if (snprintf(m->name, sizeof m->name, "%s", name) >= (int)sizeof m->name) return RDNA_OK; /* no family has such */
  m->weight = *weight;
  w->matrix_count++;
  return RDNA_OK;
}

const rdna__named_matrix *rdna__weights_find(const rdna__weights *w, const char *name) {
  for (int i = 0; i < w->matrix_count; i++)
    if (strcmp(w->matrices[i].name, name) == 0) return &w->matrices[i];
  return NULL;
}

static rdna_status keep(rdna__weights *w, void *data) {
  if (w->allocation_count == w->allocation_room) {
    int room = w->allocation_room ? 2 * w->allocation_room : 256;
    void **grown = realloc(w->allocations, (size_t)room * sizeof *grown);
    if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the list of weights");
    w->allocations = grown;
    w->allocation_room = room;
  }
  w->allocations[w->allocation_count++] = data;
  return RDNA_OK;
}

/* Device memory that the model owns. */
static rdna_status allocate(rdna__weights *w, size_t size, void **out_data) {
  RDNA_TRY(rdna_memory_alloc_named(w->device, size, NULL, "weights", out_data));
  rdna_status status = keep(w, *out_data);
  if (status != RDNA_OK) (void)!rdna_memory_free(w->device, *out_data);
  return status;
}

/* Device memory for |size| bytes: at |*place|, which moves on, or of their own. */
static rdna_status find_place(rdna__weights *w, size_t size, char **place, void **out_data) {
  if (!place || !*place) return allocate(w, size, out_data);
  *out_data = *place;
  *place += size;
  return RDNA_OK;
}

/* Copies |bytes| of host memory to a place on the device. */
static rdna_status upload(rdna__weights *w, const void *bytes, size_t size, char **place, void **out_data) {
  RDNA_TRY(find_place(w, size, place, out_data));
  return rdna_copy_to_device(rdna_device_default_stream(w->device), *out_data, bytes, size);
}

static void show(const rdna__weights *w, uint64_t more) {
  if (w->progress && w->bytes_total) w->progress(w->progress_data, (double)(w->bytes + more) / (double)w->bytes_total);
}

/* The same with bytes of the file, which are on their way until rdna__weights_arrive. */
static rdna_status upload_tensor(rdna__weights *w, const rdna_gguf_tensor *tensor, void **out_data) {
  if (!w->uploader) return upload(w, tensor->data, tensor->bytes, &w->next_weight, out_data);
  RDNA_TRY(find_place(w, tensor->bytes, &w->next_weight, out_data));
  for (size_t done = 0, part; done < tensor->bytes; done += part) {
    part = tensor->bytes - done < RDNA__UPLOAD_PIECE ? tensor->bytes - done : RDNA__UPLOAD_PIECE;
    RDNA_TRY(rdna__uploader_copy(w->uploader, (char *)*out_data + done, (const char *)tensor->data + done, part));
    show(w, done);
  }
  return RDNA_OK;
}

rdna_status rdna__weights_arrive(rdna__weights *w) {
  rdna_status status = w->uploader ? rdna__uploader_finish(w->uploader) : RDNA_OK;
  rdna__uploader_release(w->uploader);
  w->uploader = NULL;
  RDNA_TRY(status);
  return rdna_stream_synchronize(rdna_device_default_stream(w->device));
}

void rdna__weights_count(rdna__weights *w, uint64_t bytes, int64_t values) {
  w->bytes += bytes;
  w->parameters += (uint64_t)values;
  show(w, 0);
}

/* "3 x 4" */
static void shape_text(const int64_t *shape, int rank, char *text, size_t room) {
  *text = 0;
  for (int i = 0; i < rank; i++)
    snprintf(text + strlen(text), room - strlen(text), i ? " x %lld" : "%lld", (long long)shape[i]);
}

/* |shape| (rank) is what the model's keys ask for. */
static rdna_status find_tensor(const rdna__weights *w, const char *name, int rank, const int64_t *shape,
                               rdna_gguf_tensor *out_tensor) {
  if (!rdna_gguf_has_tensor(w->file, name)) return rdna__fail(RDNA_BAD_DATA, "the model file has no tensor '%s'", name);
  RDNA_TRY(rdna_gguf_get_tensor(w->file, name, out_tensor));
  if (out_tensor->rank == 1 && rank == 2 && shape[0] == 1) /* ggml's writers drop sizes of 1 at that end */
    out_tensor->rank = 2, out_tensor->shape[1] = out_tensor->shape[0], out_tensor->shape[0] = 1;
  if (out_tensor->rank == rank && memcmp(out_tensor->shape, shape, (size_t)rank * sizeof *shape) == 0)
    return rdna__mark_read(w, out_tensor->name);
  char wanted[96], found[112];
  shape_text(shape, rank, wanted, sizeof wanted);
  shape_text(out_tensor->shape, out_tensor->rank, found, sizeof found);
  return rdna__fail(RDNA_BAD_DATA, "tensor '%s' is %s; the model's keys ask for %s", name, found, wanted);
}

static rdna_status check_type(const char *name, const rdna_gguf_tensor *tensor) {
  if (dtype_is_float(tensor->dtype) || rdna_dtype_block_values(tensor->dtype) > 1) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED,
                    "tensor '%s' is of type %s, which has no kernels; f32, f16, bf16 and the types of blocks have",
                    name, rdna_gguf_tensor_type_name(tensor->ggml_type));
}

/* A tensor as it stands in the file, uploaded or used in place. */
static rdna_status load_as_it_is(rdna__weights *w, const char *name, int rank, const int64_t *shape, rdna_tensor *out) {
  rdna_gguf_tensor tensor;
  RDNA_TRY(find_tensor(w, name, rank, shape, &tensor));
  RDNA_TRY(check_type(name, &tensor));
  void *data = (void *)tensor.data;
  /* a folder's files align their tensors to less than kernels want, which then compute in another order */
  if (w->for_host || (w->in_place && (uintptr_t)data % 32 == 0))
    w->mapped += tensor.bytes;
  else
    RDNA_TRY(upload_tensor(w, &tensor, &data));
  *out = rdna_tensor_contiguous(data, tensor.dtype, rank, tensor.shape);
  rdna__weights_count(w, tensor.bytes, rdna_tensor_count(out));
  return RDNA_OK;
}

rdna_status rdna__load_table(rdna__weights *w, const char *name, int64_t rows, int64_t columns, rdna_tensor *out) {
  return load_as_it_is(w, name, 2, (int64_t[]){rows, columns}, out);
}

/* Value |i| of |data|. */
static float value_at(const void *data, rdna_dtype dtype, int64_t i) {
  if (dtype == RDNA_F32) return ((const float *)data)[i];
  uint16_t half = ((const uint16_t *)data)[i];
  if (dtype == RDNA_BF16) {
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
  }
  int exponent = half >> 10 & 31, fraction = half & 1023;
  float value = exponent == 31 ? (fraction ? NAN : INFINITY)
                               : ldexpf((float)(exponent ? fraction + 1024 : fraction), (exponent ? exponent : 1) - 25);
  return half & 0x8000 ? -value : value;
}

/* A tensor of blocks as f32, by way of the device. |bytes|: its own. */
static rdna_status read_blocks(const rdna__weights *w, const rdna_gguf_tensor *tensor, const void *bytes,
                               float *values) {
  void *blocks, *wide = NULL;
  rdna_stream *stream = rdna_device_default_stream(w->device);
  rdna_tensor from = rdna_tensor_contiguous(NULL, tensor->dtype, tensor->rank, tensor->shape), to = from;
  size_t size = (size_t)rdna_tensor_count(&from) * sizeof *values;
  RDNA_TRY(rdna_memory_alloc(w->device, tensor->bytes, stream, &blocks));
  rdna_status status = rdna_memory_alloc(w->device, size, stream, &wide);
  from.data = blocks;
  to = rdna_tensor_contiguous(wide, RDNA_F32, tensor->rank, tensor->shape);
  if (status == RDNA_OK) status = rdna_copy_to_device(stream, blocks, bytes, tensor->bytes);
  if (status == RDNA_OK) status = rdna_op_dequantize(stream, &from, &to);
  if (status == RDNA_OK) status = rdna_copy_to_host(stream, values, wide, size);
  if (status == RDNA_OK) status = rdna_stream_synchronize(stream);
  if (wide) (void)!rdna_memory_free(w->device, wide);
  (void)!rdna_memory_free(w->device, blocks);
  return status;
}

rdna_status rdna__read_values(const rdna__weights *w, const char *name, int rank, const int64_t *shape,
                              float **out_values) {
  rdna_gguf_tensor tensor;
  RDNA_TRY(find_tensor(w, name, rank, shape, &tensor));
  bool blocks = rdna_dtype_block_values(tensor.dtype) > 1;
  if (tensor.dtype != RDNA_F32 && tensor.dtype != RDNA_F16 && tensor.dtype != RDNA_BF16 && !blocks)
    return rdna__fail(RDNA_UNSUPPORTED, "'%s' is of type %s; f32, f16, bf16 and blocks are read", name,
                      rdna_gguf_tensor_type_name(tensor.ggml_type));
  int64_t count = 1;
  for (int i = 0; i < rank; i++) count *= shape[i];
  float *values = malloc((size_t)count * sizeof *values);
  void *bytes = malloc(tensor.bytes);
  if (!values || !bytes) {
    free(values);
    free(bytes);
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for '%s'", name);
  }
  rdna_status status = rdna__file_read(tensor.data, tensor.bytes, bytes);
  if (status == RDNA_OK && blocks) status = read_blocks(w, &tensor, bytes, values);
  for (int64_t i = 0; status == RDNA_OK && !blocks && i < count; i++) values[i] = value_at(bytes, tensor.dtype, i);
  free(bytes);
  if (status == RDNA_OK)
    *out_values = values;
  else
    free(values);
  return status;
}

rdna_status rdna__read_vector(const rdna__weights *w, const char *name, int64_t count, float **out_values) {
  return rdna__read_values(w, name, 1, &count, out_values);
}

rdna_status rdna__read_matrix(const rdna__weights *w, const char *name, int64_t rows, int64_t columns,
                              float **out_values) {
  return rdna__read_values(w, name, 2, (int64_t[]){rows, columns}, out_values);
}

rdna_status rdna__put_vector(rdna__weights *w, const float *values, int64_t count, rdna_tensor *out) {
  void *data;
  RDNA_TRY(upload(w, values, (size_t)count * sizeof *values, NULL, &data));
  *out = rdna_tensor_contiguous(data, RDNA_F32, 1, &count);
  return RDNA_OK;
}

static rdna_status load_vector_at(rdna__weights *w, const char *name, int64_t count, char **place, rdna_tensor *out) {
  float *values;
  void *data;
  RDNA_TRY(rdna__read_vector(w, name, count, &values));
  rdna_status status = upload(w, values, (size_t)count * sizeof *values, place, &data);
  free(values);
  RDNA_TRY(status);
  *out = rdna_tensor_contiguous(data, RDNA_F32, 1, &count);
  rdna__weights_count(w, (uint64_t)count * sizeof(float), count);
  return RDNA_OK;
}

rdna_status rdna__load_vector(rdna__weights *w, const char *name, int64_t count, rdna_tensor *out) {
  return load_vector_at(w, name, count, NULL, out);
}

rdna_status rdna__load_linear(rdna__weights *w, const char *prefix, int64_t rows, int64_t columns,
                              rdna__matrix_weights *out) {
  char name[96];
  snprintf(name, sizeof name, "%s.weight", prefix);
  RDNA_TRY(rdna__load_table(w, name, rows, columns, &out->weight));
  RDNA_TRY(rdna__weights_name(w, prefix, &out->weight));
  snprintf(name, sizeof name, "%s.bias", prefix);
  if (rdna_gguf_has_tensor(w->file, name)) RDNA_TRY(load_vector_at(w, name, rows, &w->next_bias, &out->bias));
  out->scale = 1;
  snprintf(name, sizeof name, "%s.scale", prefix);
  if (rdna_gguf_has_tensor(w->file, name)) {
    float *scale;
    RDNA_TRY(rdna__read_vector(w, name, 1, &scale));
    out->scale = *scale;
    free(scale);
  }
  return RDNA_OK;
}

rdna_status rdna__table_rows(const rdna__weights *w, const char *name, int *out_rows) {
  rdna_gguf_tensor table;
  RDNA_TRY(rdna_gguf_get_tensor(w->file, name, &table));
  int64_t rows = table.rank == 1 ? 1 : table.shape[0]; /* see find_tensor */
  if (table.rank > 2 || rows < 1 || rows > RDNA__LARGEST_COUNT)
    return rdna__fail(RDNA_BAD_DATA, "tensor '%s' is no table of one row a token", name);
  *out_rows = (int)rows;
  return RDNA_OK;
}

/* ---- of layers ---- */

enum { TENSOR_NAME = 96 };

static void layer_name(int layer, const char *name, const char *end, char out[TENSOR_NAME]) {
  snprintf(out, TENSOR_NAME, "blk.%d.%s%s", layer, name, end);
}

bool rdna__has_in_layer(const rdna__weights *w, int layer, const char *name) {
  char full[TENSOR_NAME];
  layer_name(layer, name, "", full);
  return rdna_gguf_has_tensor(w->file, full);
}

bool rdna__is_vector_in_layer(const rdna__weights *w, int layer, const char *name, int64_t count) {
  char full[TENSOR_NAME];
  rdna_gguf_tensor tensor;
  layer_name(layer, name, "", full);
  return rdna_gguf_has_tensor(w->file, full) && rdna_gguf_get_tensor(w->file, full, &tensor) == RDNA_OK &&
         tensor.rank == 1 && tensor.shape[0] == count;
}

int64_t rdna__rows_in_layer(const rdna__weights *w, int layer, const char *name) {
  char full[TENSOR_NAME];
  rdna_gguf_tensor tensor;
  layer_name(layer, name, "", full);
  if (!rdna_gguf_has_tensor(w->file, full) || rdna_gguf_get_tensor(w->file, full, &tensor) != RDNA_OK) return 0;
  return tensor.rank > 1 ? tensor.shape[tensor.rank - 2] : 1;
}

rdna_status rdna__load_layer_vector(rdna__weights *w, int layer, const char *name, int64_t count, rdna_tensor *out) {
  char full[TENSOR_NAME];
  layer_name(layer, name, "", full);
  return rdna__load_vector(w, full, count, out);
}

rdna_status rdna__load_router(rdna__weights *w, int layer, int experts, int64_t columns, rdna__matrix_weights *out) {
  char full[TENSOR_NAME];
  layer_name(layer, "ffn_gate_inp", ".weight", full);
  RDNA_TRY(rdna__load_table(w, full, experts, columns, &out->weight));
  out->scale = 1;
  layer_name(layer, "ffn_gate_inp", "", full);
  RDNA_TRY(rdna__weights_name(w, full, &out->weight));
  layer_name(layer, "ffn_gate_inp", ".bias", full);
  return rdna_gguf_has_tensor(w->file, full) ? rdna__load_vector(w, full, experts, &out->bias) : RDNA_OK;
}

static rdna_status load_experts(rdna__weights *w, int layer, const char *name, int experts, int64_t rows,
                                int64_t columns, rdna_tensor *out, rdna_tensor *bias) {
  char full[TENSOR_NAME];
  layer_name(layer, name, ".weight", full);
  RDNA_TRY(load_as_it_is(w, full, 3, (int64_t[]){experts, rows, columns}, out));
  layer_name(layer, name, ".bias", full);
  if (!rdna_gguf_has_tensor(w->file, full)) return RDNA_OK;
  if (!bias) return rdna__fail(RDNA_UNSUPPORTED, "the model has '%s'; experts there have no biases here", full);
  rdna_gguf_tensor tensor;
  RDNA_TRY(find_tensor(w, full, 2, (int64_t[]){experts, rows}, &tensor));
  if (tensor.dtype != RDNA_F32)
    return rdna__fail(RDNA_UNSUPPORTED, "'%s' is of type %s; biases of experts are read as f32", full,
                      rdna_gguf_tensor_type_name(tensor.ggml_type));
  return load_as_it_is(w, full, 2, (int64_t[]){experts, rows}, bias);
}

rdna_status rdna__load_experts(rdna__weights *w, int layer, const char *name, int experts, int64_t rows,
                               int64_t columns, rdna_tensor *out, rdna_tensor *bias) {
  w->for_host = w->experts_for_host && !w->in_place;
  rdna_status status = load_experts(w, layer, name, experts, rows, columns, out, bias);
  w->for_host = false;
  return status;
}

rdna_status rdna__load_layer_matrices(rdna__weights *w, int layer, const char *name, int64_t count, int64_t rows,
                                      int64_t columns, rdna_tensor *out) {
  char full[TENSOR_NAME];
  layer_name(layer, name, "", full);
  return load_as_it_is(w, full, 3, (int64_t[]){count, rows, columns}, out);
}

rdna_status rdna__read_layer_values(const rdna__weights *w, int layer, const char *name, int rank, const int64_t *shape,
                                    float **out_values) {
  char full[TENSOR_NAME];
  layer_name(layer, name, "", full);
  return rdna__read_values(w, full, rank, shape, out_values);
}

rdna_status rdna__load_layer_values(rdna__weights *w, int layer, const char *name, int64_t rows, int64_t columns,
                                    rdna_tensor *out) {
  float *values;
  RDNA_TRY(rdna__read_layer_values(w, layer, name, 2, (int64_t[]){rows, columns}, &values));
  rdna_status status = rdna__put_vector(w, values, rows * columns, out);
  free(values);
  if (status == RDNA_OK) *out = rdna_tensor_contiguous(out->data, RDNA_F32, 2, (int64_t[]){rows, columns});
  rdna__weights_count(w, (uint64_t)(rows * columns) * sizeof(float), rows * columns);
  return status;
}

/* The file has |parts| as the one matrix |name|: each is a slice of its rows. */
static rdna_status load_as_one(rdna__weights *w, int layer, const rdna__part *parts, int count, const char *name,
                               rdna__matrix_weights *joined) {
  char full[TENSOR_NAME];
  int64_t rows = 0;
  for (int i = 0; i < count; i++) rows += parts[i].rows;
  layer_name(layer, name, "", full);
  RDNA_TRY(rdna__load_linear(w, full, rows, parts[0].columns, joined));
  joined->scale_after_bias = parts[0].scale_after_bias;
  rdna_dtype dtype = joined->weight.dtype;
  int64_t row = 0;
  for (int i = 0; i < count; i++) {
    *parts[i].matrix = *joined;
    parts[i].matrix->weight.data = (char *)joined->weight.data + rdna_dtype_bytes(dtype, row * parts[0].columns);
    parts[i].matrix->weight.shape[0] = parts[i].rows;
    if (joined->bias.data) {
      parts[i].matrix->bias.data = (float *)joined->bias.data + row;
      parts[i].matrix->bias.shape[0] = parts[i].rows;
    }
    row += parts[i].rows;
  }
  return RDNA_OK;
}

/* Whether |parts| may lie in one piece, of how many |*bytes| with how many |*rows|, and whether they have biases. */
static rdna_status may_join(const rdna__weights *w, int layer, const rdna__part *parts, int count, bool *out_joins,
                            rdna_dtype *dtype, size_t *bytes, int64_t *rows, bool *biases) {
  char name[TENSOR_NAME];
  bool same = true;
  int with_bias = 0;
  for (int i = 0; i < count; i++) {
    rdna_gguf_tensor tensor;
    layer_name(layer, parts[i].name, ".weight", name);
    RDNA_TRY(find_tensor(w, name, 2, (int64_t[]){parts[i].rows, parts[i].columns}, &tensor));
    same = same && (i == 0 || tensor.dtype == *dtype);
    *dtype = tensor.dtype;
    *bytes += tensor.bytes;
    *rows += parts[i].rows;
    layer_name(layer, parts[i].name, ".bias", name);
    with_bias += rdna_gguf_has_tensor(w->file, name);
    layer_name(layer, parts[i].name, ".scale", name);
    same = same && !rdna_gguf_has_tensor(w->file, name);
  }
  *biases = with_bias > 0;
  *out_joins = same && (with_bias == 0 || with_bias == count);
  return RDNA_OK;
}

rdna_status rdna__parts_join(const rdna__weights *w, int layer, const rdna__part *parts, int count,
                             const char *joined_name, bool *out_join) {
  char name[TENSOR_NAME];
  rdna_dtype dtype = RDNA_F32;
  size_t bytes = 0;
  int64_t rows = 0;
  bool biases;
  layer_name(layer, joined_name, ".weight", name);
  *out_join = rdna_gguf_has_tensor(w->file, name);
  if (*out_join || w->in_place) return RDNA_OK;
  return may_join(w, layer, parts, count, out_join, &dtype, &bytes, &rows, &biases);
}

rdna_status rdna__load_parts(rdna__weights *w, int layer, const rdna__part *parts, int count, const char *joined_name,
                             rdna__matrix_weights *joined) {
  char name[TENSOR_NAME];
  if (joined_name) {
    layer_name(layer, joined_name, ".weight", name);
    if (rdna_gguf_has_tensor(w->file, name)) return load_as_one(w, layer, parts, count, joined_name, joined);
  }
  rdna_dtype dtype = RDNA_F32;
  size_t bytes = 0;
  int64_t rows = 0;
  bool together = false, biases = false;
  void *weights = NULL, *bias = NULL;
  if (joined && !w->in_place) RDNA_TRY(may_join(w, layer, parts, count, &together, &dtype, &bytes, &rows, &biases));
  if (together) RDNA_TRY(allocate(w, bytes, &weights));
  if (together && biases) RDNA_TRY(allocate(w, (size_t)rows * sizeof(float), &bias));
  w->next_weight = weights;
  w->next_bias = bias;
  for (int i = 0; i < count; i++) {
    layer_name(layer, parts[i].name, "", name);
    parts[i].matrix->scale_after_bias = parts[i].scale_after_bias;
    RDNA_TRY(rdna__load_linear(w, name, parts[i].rows, parts[i].columns, parts[i].matrix));
  }
  w->next_weight = w->next_bias = NULL;
  if (!together) return RDNA_OK;
  joined->weight = rdna_tensor_contiguous(weights, dtype, 2, (int64_t[]){rows, parts[0].columns});
  if (bias) joined->bias = rdna_tensor_contiguous(bias, RDNA_F32, 1, &rows);
  joined->scale = 1;
  return RDNA_OK;
}
