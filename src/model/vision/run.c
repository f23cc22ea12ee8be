/* A picture through a tower. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/vision/tower.h"
#include "rdna/op.h"

/* ---- patches ---- */

/* Where patch |i| stands, in patches. */
static void place_of(const rdna__vision_pass *p, int64_t i, int64_t *row, int64_t *column) {
  int64_t side = p->vision->side, of_token = side * side, line = p->picture.width * side;
  *row = i / line, *column = i % line;
  if (!p->order) return;
  int64_t token = p->order[i / of_token], inside = i % of_token;
  *row = token / p->picture.width * side + inside / side;
  *column = token % p->picture.width * side + inside % side;
}

/* |out| (patches, 3 patch patch): of each patch one colour after the other, as (value / 255 - mean) / deviation. */
static void cut_patches(const rdna__vision_pass *p, const uint8_t *pixels, float *out) {
  const rdna_vision *v = p->vision;
  int64_t patch = v->info.patch, line = p->picture.width * v->side * patch, row, column;
  float of_byte[3][256];
  for (int c = 0; c < 3; c++)
    for (int i = 0; i < 256; i++) of_byte[c][i] = (float)((i / 255.0 - v->mean[c]) / v->deviation[c]);
  for (int64_t i = 0; i < p->nn.count; i++) {
    place_of(p, i, &row, &column);
    for (int c = 0; c < 3; c++)
      for (int64_t y = 0; y < patch; y++) {
        const uint8_t *from = pixels + 3 * ((row * patch + y) * line + column * patch);
        for (int64_t x = 0; x < patch; x++) *out++ = of_byte[c][from[3 * x + c]];
      }
  }
}

/* Where place |i| of |count| lies among |grid| that have the same ends: behind |*first|, by so much of the way to the
 * next. */
static float between(int64_t i, int64_t count, int64_t grid, int64_t *first) {
  float at = (float)(i * (grid - 1)) / (float)(count > 1 ? count - 1 : 1), whole = floorf(at);
  *first = (int64_t)whole;
  return at - whole;
}

/* The numbers of the four positions around each patch, (4, patches), and their shares. */
static void find_around(const rdna__vision_pass *p, int32_t *numbers, float *shares) {
  const int64_t count = p->nn.count, grid = p->vision->grid, side = p->vision->side;
  for (int64_t i = 0; i < count; i++) {
    int64_t row, column, top, left;
    place_of(p, i, &row, &column);
    const float down = between(row, p->picture.height * side, grid, &top);
    const float right = between(column, p->picture.width * side, grid, &left);
    const int64_t below = top + (top + 1 < grid), beside = left + (left + 1 < grid);
    for (int k = 0; k < 4; k++) {
      numbers[k * count + i] = (int32_t)((k / 2 ? below : top) * grid + (k % 2 ? beside : left));
      shares[k * count + i] = (k / 2 ? down : 1 - down) * (k % 2 ? right : 1 - right);
    }
  }
}

/* x += positions, of which each patch has shares of the four around it */
static rdna_status add_between(rdna__vision_pass *p) {
  const rdna_scalar zero = rdna_scalar_real(0);
  const int64_t around[] = {4, p->nn.count};
  const size_t values = 4 * (size_t)p->nn.count;
  rdna_tensor numbers, shares;
  RDNA_TRY(rdna__scratch_tensor(&p->scratch, RDNA_I32, 2, around, &numbers));
  RDNA_TRY(rdna__scratch_tensor(&p->scratch, RDNA_F32, 2, around, &shares));
  int32_t *of_host = malloc(values * (sizeof *of_host + sizeof(float)));
  if (!of_host) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the positions of %d patches", p->nn.count);
  float *host_shares = (float *)(of_host + values);
  find_around(p, of_host, host_shares);
  rdna_status status = rdna_copy_to_device(p->nn.stream, numbers.data, of_host, values * sizeof *of_host);
  if (status == RDNA_OK)
    status = rdna_copy_to_device(p->nn.stream, shares.data, host_shares, values * sizeof *host_shares);
  free(of_host);
  RDNA_TRY(status);
  for (int k = 0; k < 4; k++) {
    rdna_tensor ids = rdna__nn_rows(&numbers, k, 1), share = rdna__nn_rows(&shares, k, 1);
    ids.rank = 1, ids.shape[0] = p->nn.count, ids.stride[0] = 1;
    share.shape[0] = p->nn.count, share.shape[1] = share.stride[0] = 1;
    RDNA_TRY(rdna_op_embedding(p->nn.stream, &p->vision->positions, &ids, &p->branch, NULL));
    RDNA_TRY(rdna_op_zip(p->nn.stream, RDNA_ZIP_MUL, &p->branch, &share, zero, zero, &p->branch));
    RDNA_TRY(rdna_op_zip(p->nn.stream, RDNA_ZIP_ADD, &p->x, &p->branch, zero, zero, &p->x));
  }
  return RDNA_OK;
}

/* x = patches W^T + bias + positions */
static rdna_status embed(rdna__vision_pass *p, const uint8_t *pixels) {
  const rdna_vision *v = p->vision;
  const rdna_scalar zero = rdna_scalar_real(0);
  int64_t shape[] = {p->nn.count, v->patches.shape[1]};
  size_t bytes = (size_t)(shape[0] * shape[1]) * sizeof(float);
  rdna_tensor patches;
  float *cut = malloc(bytes);
  if (!cut) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %lld patches", (long long)shape[0]);
  cut_patches(p, pixels, cut);
  rdna_status status = rdna__scratch_tensor(&p->scratch, RDNA_F32, 2, shape, &patches);
  if (status == RDNA_OK) status = rdna_copy_to_device(p->nn.stream, patches.data, cut, bytes);
  free(cut);
  RDNA_TRY(status);
  RDNA_TRY(rdna_op_linear(p->nn.stream, &patches, &v->patches, v->patch_bias.data ? &v->patch_bias : NULL, &p->x));
  if (!v->positions.data) return RDNA_OK;
  if (v->grid) return add_between(p);
  return rdna_op_zip(p->nn.stream, RDNA_ZIP_ADD, &p->x, &v->positions, zero, zero, &p->x);
}

/* ---- layers ---- */

static rdna_tensor by_head(const rdna__vision_pass *p, const rdna_tensor *t) {
  int64_t heads = p->vision->heads;
  return rdna__nn_heads(t->data, p->nn.count, heads, p->vision->info.width / heads);
}

/* Turns each head by the patch's row and by its column, other pairs of it by each. */
static rdna_status turn(const rdna__vision_pass *p, const rdna_tensor *heads) {
  const rdna_vision *v = p->vision;
  if (!v->row_freq.data) return RDNA_OK;
  rdna_rope by_row = {RDNA_ROPE_INIT, RDNA_ROPE_LAYOUT_HALVES, &p->rows, &v->row_freq, 1}, by_column = by_row;
  by_column.positions = &p->columns, by_column.inv_freq = &v->column_freq;
  RDNA_TRY(rdna_op_rope(p->nn.stream, &by_row, heads, heads));
  return rdna_op_rope(p->nn.stream, &by_column, heads, heads);
}

static rdna_status add(const rdna__vision_pass *p) {
  const rdna_scalar zero = rdna_scalar_real(0);
  return rdna_op_zip(p->nn.stream, RDNA_ZIP_ADD, &p->x, &p->branch, zero, zero, &p->x);
}

static rdna_status attend(const rdna__vision_pass *p, const rdna__vision_layer *layer) {
  const rdna_vision *v = p->vision;
  const rdna_tensor *starts = layer->windowed ? &p->starts : &p->all;
  RDNA_TRY(rdna__nn_normalize(&p->nn, &v->norms, &p->x, &layer->attention_norm, &p->branch, &p->h));
  RDNA_TRY(rdna__nn_linear(&p->nn, &layer->q, &p->h, &p->q));
  RDNA_TRY(rdna__nn_linear(&p->nn, &layer->k, &p->h, &p->k));
  RDNA_TRY(rdna__nn_linear(&p->nn, &layer->v, &p->h, &p->v));
  rdna_tensor q = by_head(p, &p->q), k = by_head(p, &p->k), values = by_head(p, &p->v), out = by_head(p, &p->h);
  RDNA_TRY(turn(p, &q));
  RDNA_TRY(turn(p, &k));
  rdna_sdpa options = {RDNA_SDPA_INIT,
                       .scale = (float)(1 / sqrt((double)v->info.width / v->heads)),
                       .q_starts = starts,
                       .k_starts = starts,
                       .max_queries = layer->windowed ? p->most : p->nn.count,
                       .max_keys = layer->windowed ? p->most : p->nn.count};
  RDNA_TRY(rdna_op_sdpa(p->nn.stream, &options, &q, &k, &values, &out, NULL));
  RDNA_TRY(rdna__nn_linear(&p->nn, &layer->out, &p->h, &p->branch));
  return add(p);
}

static rdna_status feed(const rdna__vision_pass *p, const rdna__vision_layer *layer) {
  RDNA_TRY(rdna__nn_normalize(&p->nn, &p->vision->norms, &p->x, &layer->ffn_norm, &p->branch, &p->h));
  RDNA_TRY(rdna__nn_feed_forward(&p->nn, &layer->ffn, &p->h, &p->branch));
  return add(p);
}

/* ---- a pass ---- */

static rdna_status put(rdna__vision_pass *p, const int32_t *values, int64_t count, rdna_tensor *out) {
  RDNA_TRY(rdna__scratch_tensor(&p->scratch, RDNA_I32, 1, &count, out));
  return rdna_copy_to_device(p->nn.stream, out->data, values, (size_t)count * sizeof *values);
}

/* Rows and columns of the patches. |numbers| has room for one of each patch. */
static rdna_status put_places(rdna__vision_pass *p, int32_t *numbers) {
  int64_t row, column;
  if (!p->vision->row_freq.data) return RDNA_OK;
  for (int64_t i = 0; i < p->nn.count; i++) {
    place_of(p, i, &row, &column);
    numbers[i] = (int32_t)row;
  }
  RDNA_TRY(put(p, numbers, p->nn.count, &p->rows));
  for (int64_t i = 0; i < p->nn.count; i++) {
    place_of(p, i, &row, &column);
    numbers[i] = (int32_t)column;
  }
  return put(p, numbers, p->nn.count, &p->columns);
}

/* The order of the patches, and what depends on it. |numbers| has room for one of each patch and one more. */
static rdna_status arrange(rdna__vision_pass *p, int32_t *numbers) {
  const int32_t all[] = {0, (int32_t)p->nn.count};
  int windows = 0;
  RDNA_TRY(put(p, all, 2, &p->all));
  if (!p->vision->kind->arrange) return RDNA_OK;
  p->order = malloc((size_t)p->picture.height * (size_t)p->picture.width * sizeof *p->order);
  if (!p->order) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a picture's order");
  RDNA_TRY(p->vision->kind->arrange(p, numbers, &windows));
  for (int i = 0; i < windows; i++)
    if (numbers[i + 1] - numbers[i] > p->most) p->most = numbers[i + 1] - numbers[i];
  if (windows > 0) RDNA_TRY(put(p, numbers, windows + 1, &p->starts));
  return put_places(p, numbers);
}

static rdna_status prepare(rdna__vision_pass *p) {
  const rdna_vision *v = p->vision;
  const int64_t wide[] = {p->nn.count, v->info.width}, hidden = (int64_t)p->nn.count * v->hidden * 2 + 8;
  rdna_tensor *const of_width[] = {&p->x, &p->h, &p->q, &p->k, &p->v, &p->branch};
  for (size_t i = 0; i < sizeof of_width / sizeof *of_width; i++)
    RDNA_TRY(rdna__scratch_tensor(&p->scratch, RDNA_F32, 2, wide, of_width[i]));
  RDNA_TRY(rdna__scratch_take(&p->scratch, (size_t)hidden * sizeof(float), &p->nn.gate_up));
  int32_t *numbers = malloc(((size_t)p->nn.count + 1) * sizeof *numbers);
  if (!numbers) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %d patches", p->nn.count);
  rdna_status status = arrange(p, numbers);
  free(numbers);
  return status;
}

/* The tokens' |rows|, in the picture's order. */
static rdna_status take_rows(const rdna__vision_pass *p, const rdna_tensor *rows, float *out) {
  size_t row = (size_t)rows->shape[1], bytes = (size_t)rows->shape[0] * row * sizeof *out;
  if (!p->order) return rdna_copy_to_host(p->nn.stream, out, rows->data, bytes);
  float *in_order = malloc(bytes);
  if (!in_order) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a picture's rows");
  rdna_status status = rdna_copy_to_host(p->nn.stream, in_order, rows->data, bytes);
  if (status == RDNA_OK) status = rdna_stream_synchronize(p->nn.stream);
  for (int64_t i = 0; status == RDNA_OK && i < rows->shape[0]; i++)
    memcpy(out + (size_t)p->order[i] * row, in_order + (size_t)i * row, row * sizeof *out);
  free(in_order);
  return status;
}

static rdna_status run(rdna__vision_pass *p, const uint8_t *pixels, float *out) {
  const rdna_vision *v = p->vision;
  int64_t tokens = (int64_t)p->picture.height * p->picture.width, row = v->info.row;
  rdna_tensor rows;
  float *deep = out;
  RDNA_TRY(prepare(p));
  RDNA_TRY(rdna__scratch_tensor(&p->scratch, RDNA_F32, 2, (int64_t[]){tokens, row}, &rows));
  RDNA_TRY(embed(p, pixels));
  for (int i = 0; i < v->info.layers; i++) {
    const rdna__vision_layer *layer = &v->layers[i];
    RDNA_TRY(attend(p, layer));
    RDNA_TRY(feed(p, layer));
    if (!layer->deep.projection.weight.data) continue;
    RDNA_TRY(v->kind->deepen(p, &layer->deep, &rows));
    RDNA_TRY(take_rows(p, &rows, deep += tokens * row));
  }
  RDNA_TRY(rdna__nn_normalize(&p->nn, &v->norms, &p->x, &v->last_norm, &p->branch, &p->x));
  RDNA_TRY(v->kind->project(p, &rows));
  return take_rows(p, &rows, out);
}

rdna_status rdna__vision_run(rdna_vision *v, const rdna_llm_picture *picture, const uint8_t *pixels, float *out_rows) {
  rdna__vision_pass p = {.vision = v, .picture = *picture};
  p.nn = (rdna__nn_pass){.stream = rdna_device_default_stream(v->weights.device),
                         .count = picture->height * picture->width * v->side * v->side,
                         .type = RDNA_F32};
  p.scratch = (rdna__scratch){.stream = p.nn.stream, .holder = "a picture"};
  rdna_status status = run(&p, pixels, out_rows);
  rdna_status waited = rdna_stream_synchronize(p.nn.stream);
  free(p.order);
  status = rdna__scratch_release(&p.scratch, status);
  return status == RDNA_OK ? waited : status;
}
