/* Tensors of GGUF from those of safetensors. Most are the same bytes under another name; some have their rows in
 * another order, are every other row or column of a tensor, or several tensors one behind the other. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/host.h"
#include "model/weights/hf.h"
#include "model/weights/quantize.h"

enum {
  NAME_BYTES = 192,
  SLICE_BYTES = 16 << 20, /* of values that are gathered before they are converted */
  MXFP4_BYTES = 16,       /* of 32 codes, their scale aside */
};

/* What a tensor of GGUF, (parts, rows, columns), is made of. Value (p, r, c) of it is
 *
 *     part[p][first + row(r) * row_step + c * column_step]     where every part is a tensor of the file
 *     part[0][p * part_step + …]                               where they lie in one
 */
typedef struct plan {
  const struct rdna__hf_tensors *all;
  char name[NAME_BYTES];
  const rdna__safetensor *one;    /* part[0], where they lie in one */
  const rdna__safetensor **parts; /* (part_count) otherwise */
  const rdna__safetensor *scales; /* of MXFP4, whose codes are |one| */
  const float *values;            /* or these, and no tensor of the file */
  float *made;                    /* the same, to be freed */
  int64_t part_count, rows, columns, part_step, first, row_step, column_step;
  int64_t head_dim;    /* rows of a head: its halves are interleaved; 0: rows stay in their order */
  rdna__hf_kind order; /* of recurrent layers: rdna__hf_delta_row says where rows, or columns, are; else PLAIN */
  rdna_dtype from, to;
  double add;
} plan;

struct rdna__hf_tensors {
  const rdna__hf_config *config;
  const rdna__safetensors *weights;
  rdna__transcoder *transcoder;
  rdna_gguf_writer *writer;
  rdna_dtype type; /* RDNA_DTYPE_COUNT: as they are */
  const char *prefix;
  bool *used; /* of each tensor of the file */
  plan **plans;
  size_t count, capacity;
  rdna__hf_factors factors[RDNA__HF_MOST_FACTORS];
};

/* ---- finding ---- */

/* The tensor |name|, which now has its place; NULL when there is none. */
static const rdna__safetensor *take(rdna__hf_tensors *t, const char *name) {
  const rdna__safetensor *found = rdna__safetensors_find(t->weights, name);
  if (found) t->used[found - rdna__safetensors_at(t->weights, 0)] = true;
  return found;
}

static rdna_status need(rdna__hf_tensors *t, const char *name, int rank, const rdna__safetensor **out) {
  *out = take(t, name);
  if (!*out) return rdna__fail(RDNA_BAD_DATA, "there is no tensor '%s'", name);
  if ((*out)->rank != rank)
    return rdna__fail(RDNA_BAD_DATA, "tensor '%s' has %d dimensions, not %d", name, (*out)->rank, rank);
  return RDNA_OK;
}

/* ---- gathering ---- */

/* Where row |r| is in the file. Halves of a head that RoPE turns together become neighbours:
 *
 *     here    0 1 2 3 4 5 …         r of a head
 *     there   0 h 1 h+1 2 h+2 …     h = half its rows
 */
static int64_t source_row(const plan *p, int64_t r) {
  if (p->order != RDNA__HF_PLAIN && p->order != RDNA__HF_DELTA_OUT)
    return rdna__hf_delta_row(p->all->config, p->order, r);
  if (p->head_dim == 0) return r;
  int64_t in_head = r % p->head_dim;
  return r - in_head + in_head % 2 * (p->head_dim / 2) + in_head / 2;
}

/* |count| values of |size| bytes, |step| values apart. */
static void gather(char *to, const char *from, int64_t count, int64_t step, size_t size) {
  if (step == 1) {
    memcpy(to, from, (size_t)count * size);
  } else if (size == 2) { /* a constant size is what makes these quick */
    for (int64_t i = 0; i < count; i++) memcpy(to + 2 * i, from + 2 * i * step, 2);
  } else {
    for (int64_t i = 0; i < count; i++) memcpy(to + (size_t)i * size, from + (size_t)(i * step) * size, size);
  }
}

/* A row whose columns change places. */
static void gather_columns(const plan *p, char *to, const char *from, size_t size) {
  for (int64_t i = 0; i < p->columns; i++)
    memcpy(to + (size_t)i * size, from + (size_t)rdna__hf_delta_row(p->all->config, p->order, i) * size, size);
}

static rdna_status fill_part(const plan *p, int64_t part, char *buffer, rdna_gguf_writer *writer) {
  rdna__transcoder *transcoder = p->all->transcoder;
  size_t size = rdna_dtype_block_bytes(p->from);
  const char *start = (const char *)(p->parts ? p->parts[part]->data : p->one->data) +
                      (size_t)((p->parts ? 0 : part * p->part_step) + p->first) * size;
  if (!buffer) return rdna__transcode(transcoder, writer, start, p->from, p->to, p->rows * p->columns, p->add);
  int64_t most = SLICE_BYTES / (int64_t)((size_t)p->columns * size);
  if (most < 1) most = 1;
  for (int64_t r = 0, n; r < p->rows; r += n) {
    n = p->rows - r < most ? p->rows - r : most;
    for (int64_t i = 0; i < n; i++) {
      char *to = buffer + (size_t)(i * p->columns) * size;
      const char *from = start + (size_t)(source_row(p, r + i) * p->row_step) * size;
      if (p->order == RDNA__HF_DELTA_OUT)
        gather_columns(p, to, from, size);
      else
        gather(to, from, p->columns, p->column_step, size);
    }
    RDNA_TRY(rdna__transcode(transcoder, writer, buffer, p->from, p->to, n * p->columns, p->add));
  }
  return RDNA_OK;
}

static bool lies_as_it_is(const plan *p) {
  bool in_order = p->head_dim == 0 && p->order == RDNA__HF_PLAIN;
  return in_order && p->column_step == 1 && p->row_step == p->columns;
}

static rdna_status fill_values(const plan *p, rdna_gguf_writer *writer) {
  size_t row = (size_t)p->columns * rdna_dtype_block_bytes(p->from);
  char *buffer = NULL;
  if (!lies_as_it_is(p) && !(buffer = malloc(row > SLICE_BYTES ? row : SLICE_BYTES)))
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory to gather weights");
  rdna_status status = RDNA_OK;
  for (int64_t i = 0; i < p->part_count && status == RDNA_OK; i++) status = fill_part(p, i, buffer, writer);
  free(buffer);
  return status;
}

/* A block of 32: its scale, and codes whose low nibbles are values 0 to 15; in the file neighbours share a byte. */
static void pack_mxfp4(uint8_t *to, uint8_t scale, const uint8_t *codes) {
  to[0] = scale;
  for (int i = 0; i < MXFP4_BYTES; i++) {
    unsigned low = codes[i / 2] >> 4 * (i % 2) & 15, high = codes[8 + i / 2] >> 4 * (i % 2) & 15;
    to[1 + i] = (uint8_t)(low | high << 4);
  }
}

/* |one| is (parts, rows of it, blocks, 16), |scales| (parts, rows of it, blocks). */
static rdna_status fill_mxfp4(const plan *p, rdna_gguf_writer *writer) {
  int64_t blocks = p->columns / 32, file_rows = p->one->shape[1];
  uint8_t *row = malloc((size_t)blocks * (1 + MXFP4_BYTES));
  if (!row) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a row of weights");
  rdna_status status = RDNA_OK;
  for (int64_t i = 0; i < p->part_count * p->rows && status == RDNA_OK; i++) {
    int64_t from = i / p->rows * file_rows + p->first + i % p->rows * p->row_step;
    for (int64_t b = 0; b < blocks; b++)
      pack_mxfp4(row + b * (1 + MXFP4_BYTES), p->scales->data[from * blocks + b],
                 p->one->data + (from * blocks + b) * MXFP4_BYTES);
    status = rdna_gguf_writer_append(writer, row, (size_t)blocks * (1 + MXFP4_BYTES));
  }
  free(row);
  return status;
}

static rdna_status fill(void *data, rdna_gguf_writer *writer) {
  const plan *p = data;
  if (p->values) return rdna_gguf_writer_append(writer, p->values, (size_t)p->columns * sizeof *p->values);
  rdna_status status = p->scales ? fill_mxfp4(p, writer) : fill_values(p, writer);
  return rdna__annotate(status, "tensor %s", p->name);
}

/* ---- planning ---- */

static rdna_status new_plan(rdna__hf_tensors *t, const char *name, plan **out) {
  if (t->count == t->capacity) {
    size_t capacity = t->capacity ? 2 * t->capacity : 256;
    plan **grown = realloc(t->plans, capacity * sizeof *grown);
    if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a list of tensors");
    t->plans = grown;
    t->capacity = capacity;
  }
  plan *p = calloc(1, sizeof *p);
  if (!p) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a list of tensors");
  t->plans[t->count++] = p;
  p->all = t;
  snprintf(p->name, sizeof p->name, "%s", name);
  *out = p;
  return RDNA_OK;
}

static rdna_status check_type(const plan *p) {
  if (p->values) return RDNA_OK;
  const rdna__safetensor *from = p->parts ? p->parts[0] : p->one;
  if (rdna__transcodes_from(p->from)) return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "tensor '%s' holds values of type %s; F32, F16 and BF16 can be converted",
                    from->name, from->type);
}

/* Adds |p| to the file, as a tensor of |rank| dimensions: the last of parts, rows and columns. */
static rdna_status add(rdna__hf_tensors *t, plan *p, int rank) {
  const int64_t shape[3] = {p->part_count, p->rows, p->columns};
  rdna_gguf_tensor tensor = {.name = p->name, .dtype = p->from, .rank = rank};
  for (int i = 0; i < rank; i++) tensor.shape[i] = shape[3 - rank + i];
  if (p->part_count * p->rows * p->columns == 0) return rdna__fail(RDNA_BAD_DATA, "tensor '%s' is empty", p->name);
  RDNA_TRY(check_type(p));
  bool stays = p->scales || t->type == RDNA_DTYPE_COUNT;
  p->to = rdna__weight_type_for(&tensor, stays ? p->from : t->type, t->config->tied);
  if (p->scales) p->to = p->from;
  tensor.dtype = p->to;
  bool as_it_is = lies_as_it_is(p) && p->one && p->part_count == 1 && p->from == p->to && p->add == 0;
  const uint8_t *data = as_it_is ? p->one->data + (size_t)p->first * rdna_dtype_block_bytes(p->from) : NULL;
  if (!data || (uintptr_t)data % 8 != 0) return rdna_gguf_writer_add_tensor(t->writer, &tensor, fill, p);
  tensor.data = data;
  return rdna_gguf_writer_add_tensor(t->writer, &tensor, NULL, NULL);
}

/* Adds |p|, whose rows are of one value, as a vector. */
static rdna_status add_rows_as_vector(rdna__hf_tensors *t, plan *p) {
  rdna_gguf_tensor tensor = {.name = p->name, .dtype = RDNA_F32, .rank = 1, .shape = {p->rows}};
  RDNA_TRY(check_type(p));
  p->to = RDNA_F32;
  return rdna_gguf_writer_add_tensor(t->writer, &tensor, fill, p);
}

/* A tensor of up to three dimensions as it lies. */
static rdna_status plan_plain(rdna__hf_tensors *t, const rdna__safetensor *from, const char *gguf, plan **out) {
  if (from->rank < 1 || from->rank > 2)
    return rdna__fail(RDNA_UNSUPPORTED, "tensor '%s' has %d dimensions; it should be a vector or a matrix", from->name,
                      from->rank);
  RDNA_TRY(new_plan(t, gguf, out));
  plan *p = *out;
  p->one = from;
  p->from = from->dtype;
  p->part_count = 1;
  p->rows = from->rank == 2 ? from->shape[0] : 1;
  p->columns = from->shape[from->rank - 1];
  p->row_step = p->columns;
  p->column_step = 1;
  return RDNA_OK;
}

/* Queries and keys, weights or biases, of an architecture whose RoPE turns neighbours. */
static rdna_status permute(const rdna__hf_tensors *t, plan *p, rdna__hf_kind kind) {
  const rdna__hf_config *c = t->config;
  if (!c->architecture->neighbours || (kind != RDNA__HF_QUERY && kind != RDNA__HF_KEY)) return RDNA_OK;
  if (p->one->rank == 1) { /* its values are the rows */
    p->rows = p->columns;
    p->columns = p->row_step = 1;
  }
  int64_t heads = kind == RDNA__HF_QUERY ? c->heads : c->kv_heads;
  if (p->rows != heads * c->head_dim)
    return rdna__fail(RDNA_BAD_DATA, "tensor '%s' has %lld rows, where config.json speaks of %lld heads of %lld",
                      p->one->name, (long long)p->rows, (long long)heads, (long long)c->head_dim);
  p->head_dim = c->head_dim;
  return RDNA_OK;
}

/* NAME.weight and NAME.bias. */
static rdna_status add_linear(rdna__hf_tensors *t, const char *hf, const char *gguf, rdna__hf_kind kind) {
  static const char *const suffixes[] = {".weight", ".bias"};
  for (int i = 0; i < 2; i++) {
    char from_name[NAME_BYTES + 8], to_name[NAME_BYTES];
    snprintf(from_name, sizeof from_name, "%s%s", hf, kind == RDNA__HF_BARE ? "" : suffixes[i]);
    snprintf(to_name, sizeof to_name, "%s%s", gguf, suffixes[i]);
    const rdna__safetensor *from = take(t, from_name);
    if (!from && i == 0 && kind != RDNA__HF_OPTIONAL)
      return rdna__fail(RDNA_BAD_DATA, "there is no tensor '%s'", from_name);
    if (!from) continue;
    plan *p;
    RDNA_TRY(plan_plain(t, from, to_name, &p));
    RDNA_TRY(permute(t, p, kind));
    int rank = from->rank;
    if (kind == RDNA__HF_ROW && p->rows == 1) rank = 1;
    if (kind == RDNA__HF_NORM && i == 0 && t->config->architecture->norms_from_1) p->add = 1;
    RDNA_TRY(p->head_dim && from->rank == 1 ? add_rows_as_vector(t, p) : add(t, p, rank));
    if (kind == RDNA__HF_BARE) break;
  }
  return RDNA_OK;
}

/* One tensor of all experts, (experts, rows, columns), or one half of each one's rows. Some folders have it turned,
 * (experts, columns, rows), which shows where the model's width is. */
static rdna_status add_fused(rdna__hf_tensors *t, const char *hf, const char *gguf, rdna__hf_kind kind) {
  char name[NAME_BYTES + 8];
  plan *p;
  snprintf(name, sizeof name, "%s.weight", gguf);
  RDNA_TRY(new_plan(t, name, &p));
  snprintf(name, sizeof name, "%s.weight", hf);
  if (!rdna__safetensors_find(t->weights, name)) snprintf(name, sizeof name, "%s", hf);
  RDNA_TRY(need(t, name, 3, &p->one));
  const int64_t *shape = p->one->shape, width = t->config->width;
  bool down = strstr(gguf, "down") != NULL, turned = shape[1] != shape[2] && shape[down ? 2 : 1] == width;
  int64_t rows = shape[turned ? 2 : 1], parts = kind == RDNA__HF_FUSED ? 1 : 2;
  if (rows % parts) return rdna__fail(RDNA_BAD_DATA, "tensor '%s' has no even number of rows", name);
  p->from = p->one->dtype;
  p->part_count = shape[0];
  p->rows = rows / parts;
  p->columns = shape[turned ? 1 : 2];
  p->row_step = turned ? 1 : p->columns;
  p->column_step = turned ? rows : 1;
  p->part_step = shape[1] * shape[2];
  p->first = kind == RDNA__HF_FUSED_UP ? p->rows * p->row_step : 0;
  return add(t, p, 3);
}

/* One tensor of each expert, |hf| with its number, as one. Newer folders have one of all experts, gate above up. */
static rdna_status add_experts(rdna__hf_tensors *t, const char *layer, const char *hf, const char *gguf) {
  const char *number = strstr(hf, "%d");
  char name[2 * NAME_BYTES], to_name[NAME_BYTES];
  plan *p;
  bool gate = strcmp(number, "%d.gate_proj") == 0, up = strcmp(number, "%d.up_proj") == 0;
  snprintf(name, sizeof name, "%s%.*s%s", layer, (int)(number - hf), hf, gate || up ? "gate_up_proj" : "down_proj");
  if (rdna__safetensors_find(t->weights, name))
    return add_fused(t, name, gguf, gate ? RDNA__HF_FUSED_GATE : up ? RDNA__HF_FUSED_UP : RDNA__HF_FUSED);
  snprintf(to_name, sizeof to_name, "%s.weight", gguf);
  RDNA_TRY(new_plan(t, to_name, &p));
  p->part_count = t->config->experts;
  p->parts = calloc((size_t)p->part_count + 1, sizeof *p->parts);
  if (!p->parts) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a list of experts");
  for (int64_t e = 0; e < p->part_count; e++) {
    snprintf(name, sizeof name, "%s%.*s%lld%s.weight", layer, (int)(number - hf), hf, (long long)e, number + 2);
    RDNA_TRY(need(t, name, 2, &p->parts[e]));
    const rdna__safetensor *first = p->parts[0], *here = p->parts[e];
    if (here->shape[0] != first->shape[0] || here->shape[1] != first->shape[1] || here->dtype != first->dtype)
      return rdna__fail(RDNA_BAD_DATA, "tensors '%s' and '%s' differ in shape or type", first->name, here->name);
  }
  if (p->part_count == 0) return rdna__fail(RDNA_BAD_DATA, "config.json speaks of no experts");
  p->from = p->parts[0]->dtype;
  p->rows = p->parts[0]->shape[0];
  p->columns = p->row_step = p->parts[0]->shape[1];
  p->column_step = 1;
  return add(t, p, 3);
}

/* A convolution of each channel by itself, (channels, 1, width). */
static rdna_status add_convolution(rdna__hf_tensors *t, const char *hf, const char *gguf) {
  char name[NAME_BYTES + 8], to_name[NAME_BYTES + 8];
  plan *p;
  snprintf(name, sizeof name, "%s.weight", hf);
  snprintf(to_name, sizeof to_name, "%s.weight", gguf);
  RDNA_TRY(new_plan(t, to_name, &p));
  RDNA_TRY(need(t, name, 3, &p->one));
  if (p->one->shape[1] != 1) return rdna__fail(RDNA_BAD_DATA, "tensor '%s' mixes channels", name);
  p->from = p->one->dtype;
  p->part_count = 1;
  p->rows = p->one->shape[0];
  p->columns = p->row_step = p->one->shape[2];
  p->column_step = 1;
  return add(t, p, 2);
}

/* The whole of a matrix, of which the caller then takes a part. */
static rdna_status plan_matrix(rdna__hf_tensors *t, const char *hf, const char *gguf, plan **out) {
  char name[NAME_BYTES + 8], to_name[NAME_BYTES + 8];
  const rdna__safetensor *from;
  snprintf(name, sizeof name, "%s.weight", hf);
  snprintf(to_name, sizeof to_name, "%s.weight", gguf);
  RDNA_TRY(need(t, name, 2, &from));
  return plan_plain(t, from, to_name, out);
}

/* Half of a matrix's rows. */
static rdna_status add_half(rdna__hf_tensors *t, const char *hf, const char *gguf, rdna__hf_kind kind) {
  plan *p;
  RDNA_TRY(plan_matrix(t, hf, gguf, &p));
  if (p->rows % 2) return rdna__fail(RDNA_BAD_DATA, "tensor '%s' has no even number of rows", p->one->name);
  p->rows /= 2;
  p->first = kind == RDNA__HF_HALF_UP ? p->rows * p->columns : 0;
  return add(t, p, 2);
}

/* -exp(value) of each head. */
static rdna_status plan_rates(rdna__hf_tensors *t, plan *p) {
  p->made = malloc((size_t)p->rows * sizeof *p->made);
  if (!p->made) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the rates of heads");
  RDNA_TRY(check_type(p));
  for (int64_t i = 0; i < p->rows; i++)
    p->made[i] = (float)-exp((double)rdna__safetensor_value(p->one, rdna__hf_delta_row(t->config, p->order, i)));
  p->values = p->made;
  p->columns = p->rows;
  p->rows = 1;
  p->from = RDNA_F32;
  return RDNA_OK;
}

/* A tensor of a recurrent layer, whose rows, or columns, go by heads. */
static rdna_status add_delta(rdna__hf_tensors *t, const char *hf, const char *gguf, rdna__hf_kind kind) {
  char name[NAME_BYTES + 8], to_name[NAME_BYTES + 8];
  bool whole = kind == RDNA__HF_DELTA_HEADS || kind == RDNA__HF_DELTA_RATE;
  const rdna__safetensor *from;
  plan *p;
  snprintf(name, sizeof name, "%s%s", hf, whole ? "" : ".weight");
  snprintf(to_name, sizeof to_name, "%s%s", gguf, whole ? "" : ".weight");
  from = take(t, name);
  if (!from) return rdna__fail(RDNA_BAD_DATA, "there is no tensor '%s'", name);
  RDNA_TRY(new_plan(t, to_name, &p));
  int64_t values = 1, asked = rdna__hf_delta_rows(t->config, kind);
  for (int i = 0; i < from->rank; i++) values *= from->shape[i]; /* a convolution's has a dimension of 1 */
  bool of_columns = kind == RDNA__HF_DELTA_OUT;
  int64_t z = kind == RDNA__HF_DELTA_PARTS || kind == RDNA__HF_DELTA_APART ? t->config->v_heads * t->config->v_dim : 0;
  int64_t rows = kind == RDNA__HF_DELTA_PARTS   ? asked + z
                 : kind == RDNA__HF_DELTA_APART ? rdna__hf_delta_rows(t->config, RDNA__HF_DELTA_PARTS) + z
                                                : asked; /* of the file's tensor */
  int64_t found = from->rank > 0 ? from->shape[of_columns ? from->rank - 1 : 0] : 0;
  if (found != rows)
    return rdna__fail(RDNA_BAD_DATA, "tensor '%s' has %lld %s, where config.json speaks of %lld", name,
                      (long long)found, of_columns ? "columns" : "rows", (long long)rows);
  p->one = from;
  p->order = kind;
  p->from = from->dtype;
  p->part_count = 1;
  p->rows = of_columns ? values / asked : asked;
  p->columns = p->row_step = of_columns ? asked : values / rows;
  p->column_step = 1;
  if (kind == RDNA__HF_DELTA_RATE) RDNA_TRY(plan_rates(t, p));
  if (from->rank > 1) return add(t, p, 2);
  if (kind == RDNA__HF_DELTA_RATE) return add(t, p, 1);
  return add_rows_as_vector(t, p);
}

/* A tensor without .weight or .bias in its name, if it is there. */
static rdna_status add_as_is(rdna__hf_tensors *t, const char *hf, const char *gguf) {
  const rdna__safetensor *from = take(t, hf);
  plan *p;
  if (!from) return RDNA_OK;
  RDNA_TRY(plan_plain(t, from, gguf, &p));
  return add(t, p, from->rank);
}

/* Half of a matrix (heads of |unrotated| keys and |value_dim| values, latent): the keys, turned to (heads, latent,
 * unrotated) so that they multiply queries, or the values, (heads, value_dim, latent). */
static rdna_status add_latent(rdna__hf_tensors *t, const char *hf, const char *gguf, rdna__hf_kind kind) {
  const rdna__hf_config *c = t->config;
  char name[NAME_BYTES + 8];
  plan *p;
  snprintf(name, sizeof name, "%s.weight", gguf);
  RDNA_TRY(new_plan(t, name, &p));
  snprintf(name, sizeof name, "%s.weight", hf);
  RDNA_TRY(need(t, name, 2, &p->one));
  int64_t head = c->unrotated + c->value_dim;
  if (p->one->shape[0] != c->heads * head || p->one->shape[1] != c->latent)
    return rdna__fail(RDNA_BAD_DATA, "tensor '%s' is %lld x %lld; config.json speaks of %lld x %lld", name,
                      (long long)p->one->shape[0], (long long)p->one->shape[1], (long long)(c->heads * head),
                      (long long)c->latent);
  bool keys = kind == RDNA__HF_LATENT_KEY;
  p->from = p->one->dtype;
  p->part_count = c->heads;
  p->part_step = head * c->latent;
  p->first = keys ? 0 : c->unrotated * c->latent;
  p->rows = keys ? c->latent : c->value_dim;
  p->columns = keys ? c->unrotated : c->latent;
  p->row_step = keys ? 1 : c->latent;
  p->column_step = keys ? c->latent : 1;
  return add(t, p, 3);
}

/* gpt-oss, whose file has the experts of a layer in one tensor. Gates and ups take turns, |step| 2 and |first| 0 or 1.
 */
static rdna_status plan_mxfp4(rdna__hf_tensors *t, const char *hf, plan *p, int64_t step) {
  char name[NAME_BYTES + 16];
  snprintf(name, sizeof name, "%s_blocks", hf);
  RDNA_TRY(need(t, name, 4, &p->one));
  snprintf(name, sizeof name, "%s_scales", hf);
  RDNA_TRY(need(t, name, 3, &p->scales));
  const int64_t *codes = p->one->shape, *scales = p->scales->shape;
  if (p->one->dtype != RDNA_U8 || p->scales->dtype != RDNA_U8 || codes[3] != MXFP4_BYTES || codes[1] % step ||
      memcmp(codes, scales, 3 * sizeof *codes) != 0)
    return rdna__fail(RDNA_BAD_DATA, "tensors '%s' and '%s' are no blocks of MXFP4 with their scales", p->one->name,
                      p->scales->name);
  p->from = RDNA_MXFP4;
  p->part_count = codes[0];
  p->rows = codes[1] / step;
  p->columns = codes[2] * 32;
  p->row_step = step; /* in rows here */
  return RDNA_OK;
}

/* The same not quantized: (experts, columns, rows). */
static rdna_status plan_transposed(rdna__hf_tensors *t, const char *hf, plan *p, int64_t step) {
  RDNA_TRY(need(t, hf, 3, &p->one));
  const int64_t *shape = p->one->shape;
  if (shape[2] % step) return rdna__fail(RDNA_BAD_DATA, "tensor '%s' has no even number of columns", hf);
  p->from = p->one->dtype;
  p->part_count = shape[0];
  p->part_step = shape[1] * shape[2];
  p->rows = shape[2] / step;
  p->columns = shape[1];
  p->row_step = step;
  p->column_step = shape[2];
  return RDNA_OK;
}

static rdna_status add_fused_experts(rdna__hf_tensors *t, const char *hf, const char *gguf, rdna__hf_kind kind) {
  int64_t step = kind == RDNA__HF_EXPERT_DOWN ? 1 : 2, first = kind == RDNA__HF_EXPERT_UP ? 1 : 0;
  char name[NAME_BYTES + 16];
  plan *p;
  snprintf(name, sizeof name, "%s.weight", gguf);
  RDNA_TRY(new_plan(t, name, &p));
  p->first = first;
  snprintf(name, sizeof name, "%s_blocks", hf);
  bool quantized = rdna__safetensors_find(t->weights, name) != NULL;
  RDNA_TRY(quantized ? plan_mxfp4(t, hf, p, step) : plan_transposed(t, hf, p, step));
  RDNA_TRY(add(t, p, 3));
  snprintf(name, sizeof name, "%s_bias", hf);
  const rdna__safetensor *bias;
  RDNA_TRY(need(t, name, 2, &bias));
  snprintf(name, sizeof name, "%s.bias", gguf);
  RDNA_TRY(plan_plain(t, bias, name, &p));
  if (p->columns % step) return rdna__fail(RDNA_BAD_DATA, "tensor '%s' has no even number of columns", bias->name);
  p->columns /= step;
  p->column_step = step;
  p->first = first;
  return add(t, p, 2);
}

/* A table of positions, without the rows that no token has. */
static rdna_status add_positions(rdna__hf_tensors *t, const char *hf, const char *gguf) {
  int64_t first = t->config->first_position;
  plan *p;
  RDNA_TRY(plan_matrix(t, hf, gguf, &p));
  if (p->rows <= first)
    return rdna__fail(RDNA_BAD_DATA, "tensor '%s' has %lld rows, and the first token's is row %lld", p->one->name,
                      (long long)p->rows, (long long)first);
  p->rows -= first;
  p->first = first * p->columns;
  return add(t, p, 2);
}

/* ---- the whole ---- */

static const char *layers_of(const rdna__hf_tensors *t) {
  const char *name = t->config->architecture->layer_prefix;
  return name ? name : "layers";
}

static const char *embedding_of(const rdna__hf_tensors *t) {
  const char *name = t->config->architecture->embedding;
  return name ? name : "embed_tokens";
}

static rdna_status add_row(rdna__hf_tensors *t, int64_t layer, const rdna__hf_tensor_name *row) {
  char prefix[NAME_BYTES / 2], hf[NAME_BYTES], gguf[NAME_BYTES];
  snprintf(prefix, sizeof prefix, "%s%s.%lld.", t->prefix, layers_of(t), (long long)layer);
  snprintf(hf, sizeof hf, "%s%s", prefix, row->hf);
  snprintf(gguf, sizeof gguf, "blk.%lld.%s", (long long)layer, row->gguf);
  switch (row->kind) {
    case RDNA__HF_PLAIN:
    case RDNA__HF_OPTIONAL:
    case RDNA__HF_QUERY:
    case RDNA__HF_KEY:
    case RDNA__HF_NORM:
    case RDNA__HF_BARE:
    case RDNA__HF_ROW:
      return add_linear(t, hf, gguf, row->kind);
    case RDNA__HF_EXPERTS:
      return add_experts(t, prefix, row->hf, gguf);
    case RDNA__HF_AS_IS:
      return add_as_is(t, hf, gguf);
    case RDNA__HF_LATENT_KEY:
    case RDNA__HF_LATENT_VALUE:
      return add_latent(t, hf, gguf, row->kind);
    case RDNA__HF_FUSED:
    case RDNA__HF_FUSED_GATE:
    case RDNA__HF_FUSED_UP:
      return add_fused(t, hf, gguf, row->kind);
    case RDNA__HF_CONVOLUTION:
      return add_convolution(t, hf, gguf);
    case RDNA__HF_HALF_GATE:
    case RDNA__HF_HALF_UP:
      return add_half(t, hf, gguf, row->kind);
    case RDNA__HF_DELTA_QKV:
    case RDNA__HF_DELTA_PARTS:
    case RDNA__HF_DELTA_Z:
    case RDNA__HF_DELTA_APART:
    case RDNA__HF_DELTA_HEADS:
    case RDNA__HF_DELTA_OUT:
    case RDNA__HF_DELTA_RATE:
      return add_delta(t, hf, gguf, row->kind);
    case RDNA__HF_EXPERT_GATE:
    case RDNA__HF_EXPERT_UP:
    case RDNA__HF_EXPERT_DOWN:
      return add_fused_experts(t, hf, gguf, row->kind);
    case RDNA__HF_POSITIONS:
      return add_positions(t, hf, gguf);
  }
  return rdna__fail(RDNA_INTERNAL, "tensor %s is of no kind", hf);
}

static rdna_status add_rows(rdna__hf_tensors *t, int64_t layer, const rdna__hf_tensor_name *rows) {
  for (; rows && rows->hf; rows++) RDNA_TRY(add_row(t, layer, rows));
  return RDNA_OK;
}

static rdna_status add_layer(rdna__hf_tensors *t, int64_t layer) {
  const rdna__hf_architecture *a = t->config->architecture;
  for (int i = 0; i < RDNA__HF_LISTS; i++) RDNA_TRY(add_rows(t, layer, a->tensors[i]));
  RDNA_TRY(add_rows(t, layer, rdna__hf_is_recurrent(t->config, layer) ? a->recurrent : a->full));
  return add_rows(t, layer, layer < t->config->dense_layers ? a->dense : a->sparse);
}

static rdna_status add_embedding(rdna__hf_tensors *t) {
  char name[NAME_BYTES];
  const rdna__safetensor *embedding;
  snprintf(name, sizeof name, "%s%s.weight", t->prefix, embedding_of(t));
  RDNA_TRY(need(t, name, 2, &embedding));
  if (embedding->shape[0] != t->config->vocabulary)
    return rdna__fail(RDNA_BAD_DATA, "tensor '%s' has %lld rows, where config.json speaks of %lld tokens", name,
                      (long long)embedding->shape[0], (long long)t->config->vocabulary);
  snprintf(name, sizeof name, "%s%s", t->prefix, embedding_of(t));
  return add_linear(t, name, "token_embd", RDNA__HF_PLAIN);
}

/* What makes labels of an encoder's first state, of one that judges texts. */
static rdna_status add_labels(rdna__hf_tensors *t) {
  char name[NAME_BYTES];
  const rdna__hf_tensor_name *rows = t->config->architecture->labels;
  if (!rows) return RDNA_OK;
  snprintf(name, sizeof name, "%s.weight", rows->hf);
  if (!rdna__safetensors_find(t->weights, name)) return RDNA_OK;
  for (; rows->hf; rows++) RDNA_TRY(add_linear(t, rows->hf, rows->gguf, rows->kind));
  return RDNA_OK;
}

/* What stands around the layers of an encoder. */
static rdna_status add_encoder_ends(rdna__hf_tensors *t) {
  char name[NAME_BYTES];
  RDNA_TRY(add_embedding(t));
  for (const rdna__hf_tensor_name *row = t->config->architecture->ends; row->hf; row++) {
    snprintf(name, sizeof name, "%s%s", t->prefix, row->hf);
    RDNA_TRY(row->kind == RDNA__HF_POSITIONS ? add_positions(t, name, row->gguf)
                                             : add_linear(t, name, row->gguf, row->kind));
  }
  return add_labels(t);
}

/* Embedding, last norm, and the matrix of logits where it is not the embedding. */
static rdna_status add_ends(rdna__hf_tensors *t) {
  static const char *const heads[] = {"lm_head", "language_model.lm_head"};
  char name[NAME_BYTES];
  RDNA_TRY(add_embedding(t));
  snprintf(name, sizeof name, "%sembedding_norm.weight", t->prefix); /* LFM2's name, in GGUF as well */
  bool other = rdna__safetensors_find(t->weights, name) != NULL;
  snprintf(name, sizeof name, "%s%s", t->prefix, other ? "embedding_norm" : "norm");
  RDNA_TRY(add_linear(t, name, other ? "token_embd_norm" : "output_norm", RDNA__HF_NORM));
  for (const rdna__hf_tensor_name *row = t->config->architecture->ends; row && row->hf; row++) {
    snprintf(name, sizeof name, "%s%s", t->prefix, row->hf);
    RDNA_TRY(add_linear(t, name, row->gguf, RDNA__HF_OPTIONAL));
  }
  snprintf(name, sizeof name, "%s.weight", heads[1]);
  const char *head = rdna__safetensors_find(t->weights, name) ? heads[1] : heads[0];
  snprintf(name, sizeof name, "%s.weight", head);
  if (!t->config->tied) return add_linear(t, head, "output", RDNA__HF_PLAIN);
  (void)take(t, name); /* files may hold it twice */
  return RDNA_OK;
}

static rdna_status add_factors(rdna__hf_tensors *t) {
  RDNA_TRY(rdna__hf_rope_factors(t->config, t->factors));
  for (int i = 0; i < RDNA__HF_MOST_FACTORS && t->factors[i].values; i++) {
    plan *p;
    RDNA_TRY(new_plan(t, t->factors[i].name, &p));
    p->values = t->factors[i].values;
    p->from = RDNA_F32;
    p->part_count = p->rows = 1;
    p->columns = t->factors[i].count;
    RDNA_TRY(add(t, p, 1));
  }
  return RDNA_OK;
}

/* What text needs no part of, or what is computed again. */
static bool is_needless(const rdna__hf_tensors *t, const char *name) {
  static const char *const parts[] = {"rotary_emb.inv_freq", "vision_tower.", "multi_modal_projector.",
                                      "vision_model.",       "visual.",       "mtp.",
                                      "audio_tower.",        "embed_vision.", "embed_audio."};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (strstr(name, parts[i])) return true;
  /* BERT's folders hold numbers of positions, and a layer for its training that a vector of a text does without */
  bool encoder = t->config->architecture->encoder;
  if (encoder && (strstr(name, "embeddings.position_ids") || strstr(name, "pooler.dense."))) return true;
  /* layers that foretell further tokens stand behind the last */
  size_t length = strlen(t->prefix);
  long long layer;
  if (strncmp(name, t->prefix, length) != 0 || sscanf(name + length, "layers.%lld.", &layer) != 1) return false;
  return layer >= t->config->layers && layer < t->config->layers + t->config->extra_layers;
}

static rdna_status find_prefix(rdna__hf_tensors *t) {
  static const char *const prefixes[] = {"model.",  "language_model.model.", "model.language_model.", "", "bert.",
                                         "roberta."};
  for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%s%s.weight", prefixes[i], embedding_of(t));
    t->prefix = prefixes[i];
    if (rdna__safetensors_find(t->weights, name)) return RDNA_OK;
  }
  return rdna__fail(RDNA_BAD_DATA, "there is no tensor 'model.%s.weight'", embedding_of(t));
}

static rdna_status add_all(rdna__hf_tensors *t) {
  RDNA_TRY(find_prefix(t));
  RDNA_TRY(t->config->architecture->encoder ? add_encoder_ends(t) : add_ends(t));
  for (int64_t i = 0; i < t->config->layers; i++) RDNA_TRY(add_layer(t, i));
  RDNA_TRY(add_factors(t));
  for (size_t i = 0; i < rdna__safetensors_count(t->weights); i++) {
    const char *name = rdna__safetensors_at(t->weights, i)->name;
    if (!t->used[i] && !is_needless(t, name))
      return rdna__fail(RDNA_UNSUPPORTED, "tensor '%.160s' has no place in GGUF's %s of %lld layers", name,
                        t->config->architecture->gguf, (long long)t->config->layers);
  }
  return RDNA_OK;
}

rdna_status rdna__hf_tensors_add(const rdna__hf_config *config, const rdna__safetensors *weights, rdna_dtype type,
                                 rdna__transcoder *transcoder, rdna_gguf_writer *writer,
                                 rdna__hf_tensors **out_tensors) {
  rdna__hf_tensors *t = calloc(1, sizeof *t);
  if (t) t->used = calloc(rdna__safetensors_count(weights) + 1, sizeof *t->used);
  if (!t || !t->used) {
    free(t);
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a list of tensors");
  }
  t->config = config;
  t->weights = weights;
  t->transcoder = transcoder;
  t->writer = writer;
  t->type = type;
  rdna_status status = add_all(t);
  if (status == RDNA_OK) {
    *out_tensors = t;
  } else {
    rdna__hf_tensors_release(t);
  }
  return status;
}

void rdna__hf_tensors_release(rdna__hf_tensors *t) {
  if (!t) return;
  for (size_t i = 0; i < t->count; i++) {
    free(t->plans[i]->parts);
    free(t->plans[i]->made);
    free(t->plans[i]);
  }
  for (int i = 0; i < RDNA__HF_MOST_FACTORS; i++) free(t->factors[i].values);
  free(t->plans);
  free(t->used);
  free(t);
}
