/* Qwen's towers: pictures keep their shape; heads turn by the patch's row and column; four patches become a token, by
 * two products with a GELU between. In Qwen2.5-VL's (Bai et al., 2025) patches see those of their window alone in most
 * layers. Qwen3-VL's (2025) has positions besides, those of a square stretched to the picture, and more rows of a
 * token, of layers in its middle, which the language model's first layers add (DeepStack, Meng et al., 2024). Qwen3.5's
 * (2026) is the same without these. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/vision/tower.h"
#include "rdna/op.h"

enum { SIDE = 2, NAME = 64 };
static const double BASE = 10000;

/* Half of a head's pairs turn by the row, half by the column. */
static rdna_status load_frequencies(rdna_vision *v) {
  int pairs = v->info.width / v->heads / 2, half = pairs / 2;
  float *values = calloc(2 * (size_t)pairs + 1, sizeof *values);
  if (!values) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for RoPE's frequencies");
  for (int i = 0; i < half; i++) values[i] = values[pairs + half + i] = (float)pow(BASE, -(double)i / half);
  rdna_status status = rdna__put_vector(&v->weights, values, pairs, &v->row_freq);
  if (status == RDNA_OK) status = rdna__put_vector(&v->weights, values + pairs, pairs, &v->column_freq);
  free(values);
  return status;
}

static rdna_status read_windows(rdna_vision *v) {
  int pixels;
  rdna_gguf_key found;
  if (!rdna_gguf_find_key(v->weights.file, "clip.vision.n_wa_pattern", &found))
    return rdna__fail(RDNA_BAD_DATA,
                      "the model file has no key 'clip.vision.n_wa_pattern', which says which layers have "
                      "windows; without any it would be another network");
  RDNA_TRY(rdna__key_count_or_none(&v->weights, "vision.n_wa_pattern", &v->period));
  RDNA_TRY(rdna__key_count(&v->weights, "vision.window_size", 112, &pixels));
  v->window = pixels / v->info.patch / v->side;
  if (v->period == 0 || v->window > 0) return RDNA_OK;
  return rdna__fail(RDNA_BAD_DATA, "windows of %d pixels are smaller than the %d of a token", pixels,
                    v->info.patch * v->side);
}

/* Where the file does not say how large pictures are, |fewest| to |tokens| tokens. */
static rdna_status read_pixels(rdna_vision *v, int fewest, int tokens) {
  const int of_token = v->side * v->side * v->info.patch * v->info.patch;
  int least, most;
  RDNA_TRY(rdna__key_count(&v->weights, "vision.image_min_pixels", fewest * of_token, &least));
  RDNA_TRY(rdna__key_count(&v->weights, "vision.image_max_pixels", tokens * of_token, &most));
  if (least > most || most < of_token)
    return rdna__fail(RDNA_BAD_DATA, "pictures of %d to %d pixels, and a token has %d", least, most, of_token);
  v->least_pixels = least, v->most_pixels = most;
  v->info.most_tokens = most / of_token;
  return RDNA_OK;
}

/* PREFIX|inner| and PREFIX|projection|. */
static rdna_status load_merger(rdna_vision *v, const char *prefix, const char *inner, const char *projection,
                               rdna__vision_merger *out) {
  int64_t merged = SIDE * SIDE * (int64_t)v->info.width;
  char full[NAME];
  snprintf(full, sizeof full, "%s%s", prefix, inner);
  RDNA_TRY(rdna__load_linear(&v->weights, full, merged, merged, &out->inner));
  snprintf(full, sizeof full, "%s%s", prefix, projection);
  return rdna__load_linear(&v->weights, full, v->info.row, merged, &out->projection);
}

static rdna_status load(rdna_vision *v, int fewest, int tokens) {
  rdna__weights *w = &v->weights;
  int64_t width = v->info.width;
  RDNA_TRY(rdna__key_count(w, "vision.spatial_merge_size", SIDE, &v->side));
  if (v->side != SIDE || width / v->heads % 4 != 0)
    return rdna__fail(RDNA_UNSUPPORTED,
                      "tokens of %d x %d patches and heads of %d values; 2 x 2 and multiples of 4 are run", v->side,
                      v->side, v->info.width / v->heads);
  RDNA_TRY(read_pixels(v, fewest, tokens));
  RDNA_TRY(load_frequencies(v));
  RDNA_TRY(rdna__load_vector(w, "v.post_ln.weight", width, &v->last_norm.weight));
  return load_merger(v, "mm.", "0", "2", &v->merger);
}

static rdna_status load_qwen25(rdna_vision *v) {
  RDNA_TRY(load(v, 4, 1280));
  return read_windows(v);
}

/* Of a square, whose sides are not the pictures'. */
static rdna_status load_positions(rdna_vision *v) {
  static const char name[] = "v.position_embd.weight";
  const int64_t width = v->info.width;
  int count;
  float *values;
  RDNA_TRY(rdna__table_rows(&v->weights, name, &count));
  while ((int64_t)v->grid * v->grid < count) v->grid++;
  if ((int64_t)v->grid * v->grid != count)
    return rdna__fail(RDNA_BAD_DATA, "'%s' has %d rows, which are no square", name, count);
  RDNA_TRY(rdna__read_matrix(&v->weights, name, count, width, &values));
  rdna_status status = rdna__put_vector(&v->weights, values, count * width, &v->positions);
  free(values);
  RDNA_TRY(status);
  v->positions = rdna__nn_matrix(v->positions.data, count, width);
  rdna__weights_count(&v->weights, (uint64_t)(count * width) * sizeof(float), count * width);
  return RDNA_OK;
}

/* The mergers of layers that the file marks. */
static rdna_status load_deep(rdna_vision *v) {
  rdna__weights *w = &v->weights;
  const int64_t merged = SIDE * SIDE * (int64_t)v->info.width;
  char name[NAME];
  if (!rdna__key_is_array(w, "vision.is_deepstack_layers")) return RDNA_OK;
  int32_t *marks = malloc((size_t)v->info.layers * sizeof *marks);
  if (!marks) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the kinds of layers");
  rdna_status status = rdna__key_array(w, "vision.is_deepstack_layers", v->info.layers, marks);
  for (int i = 0; status == RDNA_OK && i < v->info.layers; i++) {
    rdna__vision_merger *deep = &v->layers[i].deep;
    if (!marks[i]) continue;
    v->info.deepstack++;
    snprintf(name, sizeof name, "v.deepstack.%d.norm.weight", i);
    status = rdna__load_vector(w, name, merged, &deep->norm.weight);
    snprintf(name, sizeof name, "v.deepstack.%d.norm.bias", i);
    if (status == RDNA_OK) status = rdna__load_vector(w, name, merged, &deep->norm.bias);
    snprintf(name, sizeof name, "v.deepstack.%d.", i);
    if (status == RDNA_OK) status = load_merger(v, name, "fc1", "fc2", deep);
  }
  free(marks);
  return status;
}

static rdna_status load_qwen3(rdna_vision *v) {
  v->norms.layer_norm = true;
  RDNA_TRY(load(v, 64, 4096));
  RDNA_TRY(rdna__load_vector(&v->weights, "v.post_ln.bias", v->info.width, &v->last_norm.bias));
  RDNA_TRY(load_positions(v));
  return load_deep(v);
}

/* To the nearest, ties to even, as Python does it. */
static int64_t nearest(int side, int factor) { return (int64_t)rint((double)side / factor); }

/* As many tokens as the picture has whole ones, or so many fewer or more that its pixels stay within the limits. */
static rdna_status measure(const rdna_vision *v, int height, int width, rdna_llm_picture *out) {
  const int factor = v->side * v->info.patch;
  const double pixels = (double)height * width;
  int64_t rows = nearest(height, factor), columns = nearest(width, factor), all = rows * columns * factor * factor;
  if (all > v->most_pixels) {
    double by = sqrt(pixels / (double)v->most_pixels);
    rows = (int64_t)floor(height / by / factor), columns = (int64_t)floor(width / by / factor);
  } else if (all < v->least_pixels) {
    double by = sqrt((double)v->least_pixels / pixels);
    rows = (int64_t)ceil(height * by / factor), columns = (int64_t)ceil(width * by / factor);
  }
  if (rows < 1) rows = 1;
  if (columns < 1) columns = 1;
  /* where limits are so narrow that a side had to be a token long */
  int64_t *longer = rows < columns ? &columns : &rows, shorter = rows < columns ? rows : columns;
  if (rows * columns > v->info.most_tokens) *longer = v->info.most_tokens / shorter;
  if (*longer < 1) rows = columns = 1;
  out->height = (int32_t)rows, out->width = (int32_t)columns;
  return RDNA_OK;
}

/* Window by window, row by row in each; those at the right and below may be smaller. */
static rdna_status arrange(rdna__vision_pass *p, int32_t *starts, int *out_count) {
  const int window = p->vision->period ? p->vision->window : p->picture.height + p->picture.width; /* or one for all */
  int32_t next = 0, of_token = SIDE * SIDE;
  starts[0] = 0;
  for (int y = 0; y < p->picture.height; y += window)
    for (int x = 0; x < p->picture.width; x += window) {
      for (int row = y; row < y + window && row < p->picture.height; row++)
        for (int column = x; column < x + window && column < p->picture.width; column++)
          p->order[next++] = row * p->picture.width + column;
      starts[++*out_count] = next * of_token;
    }
  return RDNA_OK;
}

static rdna_tensor merged(const rdna_tensor *patches) {
  return rdna__nn_matrix(patches->data, patches->shape[0] / (SIDE * SIDE), SIDE * SIDE * patches->shape[1]);
}

static rdna_status merge(rdna__vision_pass *p, const rdna__vision_merger *merger, const rdna_tensor *x,
                         const rdna_tensor *rows) {
  const rdna_scalar zero = rdna_scalar_real(0);
  rdna_tensor h = merged(&p->h);
  RDNA_TRY(rdna__nn_linear(&p->nn, &merger->inner, x, &h));
  RDNA_TRY(rdna_op_map(p->nn.stream, RDNA_MAP_GELU_ERF, &h, zero, zero, &h));
  return rdna__nn_linear(&p->nn, &merger->projection, &h, rows);
}

static rdna_status project(rdna__vision_pass *p, const rdna_tensor *rows) {
  rdna_tensor x = merged(&p->x);
  return merge(p, &p->vision->merger, &x, rows);
}

static rdna_status deepen(rdna__vision_pass *p, const rdna__vision_merger *merger, const rdna_tensor *rows) {
  rdna_tensor x = merged(&p->x), h = merged(&p->h), normed = merged(&p->branch);
  RDNA_TRY(rdna__nn_normalize(&p->nn, &p->vision->norms, &x, &merger->norm, &h, &normed));
  return merge(p, merger, &normed, rows);
}

const rdna__vision_kind rdna__vision_qwen25 = {.projector = "qwen2.5vl_merger",
                                               .architectures = {"qwen2vl"},
                                               .mark = "<|image_pad|>",
                                               .before = "",
                                               .after = "",
                                               .filter = RDNA__FILTER_BICUBIC,
                                               .gated = true,
                                               .activation = RDNA__NN_GATE_SILU,
                                               .load = load_qwen25,
                                               .measure = measure,
                                               .arrange = arrange,
                                               .project = project};

const rdna__vision_kind rdna__vision_qwen3 = {.projector = "qwen3vl_merger",
                                              .architectures = {"qwen3vl", "qwen3vlmoe", "qwen35", "qwen35moe"},
                                              .mark = "<|image_pad|>",
                                              .before = "",
                                              .after = "",
                                              .filter = RDNA__FILTER_BICUBIC,
                                              .activation = RDNA__NN_GATE_GELU_TANH,
                                              .load = load_qwen3,
                                              .measure = measure,
                                              .arrange = arrange,
                                              .project = project,
                                              .deepen = deepen};
