#include "model/image/tiles.h"

#include <stdlib.h>
#include <string.h>

/* What laps over is taken from memory of its own: the last rows of each tile of the row above, and the last columns of
 * the tile to the left, as they were made, of their full width; what is cut off there is blended once more. */
typedef struct state {
  const rdna__tiling *t;
  int64_t step, seam; /* from tile to tile, of the image; and what laps over, of the result */
  float *in, *out;    /* one tile */
  float *above;       /* (tiles of a row, channels, seam, width of a tile) */
  float *left;        /* (channels, height of a tile, seam) */
} state;

typedef struct place { /* of a tile */
  int64_t row, column; /* of the image */
  int64_t height, width;
  int64_t out_height, out_width;
} place;

static int64_t scaled(const rdna__tiling *t, int64_t size) { return size * t->up / t->down; }

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static void cut_out(const state *s, const place *p, const float *image) {
  const rdna__tiling *t = s->t;
  for (int64_t c = 0; c < t->in_channels; c++)
    for (int64_t y = 0; y < p->height; y++)
      memcpy(s->in + (c * p->height + y) * p->width, image + (c * t->height + p->row + y) * t->width + p->column,
             (size_t)p->width * sizeof(float));
}

static float between(float before, float after, int64_t i, int64_t count) {
  float share = (float)i / (float)count;
  return before * (1 - share) + after * share;
}

/* The tile's first rows with the last ones above. */
static void blend_rows(const state *s, const place *p, int64_t column) {
  int64_t wide = scaled(s->t, s->t->tile), count = smaller(p->out_height, s->seam);
  const float *above = s->above + column * s->t->out_channels * s->seam * wide;
  for (int64_t c = 0; c < s->t->out_channels; c++)
    for (int64_t y = 0; y < count; y++)
      for (int64_t x = 0; x < p->out_width; x++) {
        float *value = &s->out[(c * p->out_height + y) * p->out_width + x];
        *value = between(above[(c * s->seam + s->seam - count + y) * wide + x], *value, y, count);
      }
}

static void blend_columns(const state *s, const place *p) {
  int64_t high = scaled(s->t, s->t->tile), count = smaller(p->out_width, s->seam);
  for (int64_t c = 0; c < s->t->out_channels; c++)
    for (int64_t y = 0; y < p->out_height; y++)
      for (int64_t x = 0; x < count; x++) {
        float *value = &s->out[(c * p->out_height + y) * p->out_width + x];
        *value = between(s->left[(c * high + y) * s->seam + s->seam - count + x], *value, x, count);
      }
}

/* Of tiles that have another behind them, which are no narrower than what laps over. */
static void keep(const state *s, const place *p, int64_t column) {
  int64_t side = scaled(s->t, s->t->tile), seam = s->seam, channels = s->t->out_channels;
  float *above = s->above + column * channels * seam * side;
  for (int64_t c = 0; c < channels; c++) {
    const float *from = s->out + c * p->out_height * p->out_width;
    for (int64_t y = 0; y < seam && p->out_height >= seam; y++)
      memcpy(above + (c * seam + y) * side, from + (p->out_height - seam + y) * p->out_width,
             (size_t)p->out_width * sizeof(float));
    for (int64_t y = 0; y < p->out_height && p->out_width >= seam; y++)
      memcpy(s->left + (c * side + y) * seam, from + (y + 1) * p->out_width - seam, (size_t)seam * sizeof(float));
  }
}

/* All but what the next tiles lap over. */
static void put(const state *s, const place *p, float *image) {
  const rdna__tiling *t = s->t;
  int64_t step = scaled(t, s->step), high = scaled(t, t->height), wide = scaled(t, t->width);
  int64_t row = scaled(t, p->row), column = scaled(t, p->column), rows = smaller(p->out_height, step);
  for (int64_t c = 0; c < t->out_channels; c++)
    for (int64_t y = 0; y < rows; y++)
      memcpy(image + (c * high + row + y) * wide + column, s->out + (c * p->out_height + y) * p->out_width,
             (size_t)smaller(p->out_width, step) * sizeof(float));
}

static rdna_status run_all(const state *s, const float *in, float *out) {
  const rdna__tiling *t = s->t;
  for (int64_t row = 0; row < t->height; row += s->step)
    for (int64_t column = 0, j = 0; column < t->width; column += s->step, j++) {
      place p = {row, column, smaller(t->tile, t->height - row), smaller(t->tile, t->width - column), 0, 0};
      p.out_height = scaled(t, p.height), p.out_width = scaled(t, p.width);
      cut_out(s, &p, in);
      RDNA_TRY(t->work(t->context, s->in, p.height, p.width, s->out));
      if (row) blend_rows(s, &p, j);
      if (column) blend_columns(s, &p);
      keep(s, &p, j);
      put(s, &p, out);
    }
  return RDNA_OK;
}

rdna_status rdna__tiles_run(const rdna__tiling *t, const float *in, float *out) {
  if (t->height <= t->tile && t->width <= t->tile) return t->work(t->context, in, t->height, t->width, out);
  state s = {.t = t, .step = t->tile / 4 * 3, .seam = scaled(t, t->tile / 4)};
  int64_t side = scaled(t, t->tile), columns = (t->width + s.step - 1) / s.step;
  int64_t counts[] = {t->in_channels * t->tile * t->tile, t->out_channels * side * side,
                      columns * t->out_channels * s.seam * side, t->out_channels * side * s.seam};
  float **const buffers[] = {&s.in, &s.out, &s.above, &s.left};
  rdna_status status = RDNA_OK;
  for (int i = 0; i < 4; i++) {
    *buffers[i] = malloc((size_t)counts[i] * sizeof(float));
    if (!*buffers[i]) status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a tile of an image");
  }
  if (status == RDNA_OK) status = run_all(&s, in, out);
  for (int i = 0; i < 4; i++) free(*buffers[i]);
  return status;
}

/* ---- tiles that see more than they make ---- */

/* One direction of a tile: where it is of the image, and where what is worked on. */
typedef struct reach {
  int64_t begin, end, from, to;
} reach;

static reach reach_of(int64_t begin, int64_t tile, int64_t margin, int64_t size) {
  reach r = {begin, smaller(begin + tile, size), begin - margin, smaller(begin + tile + margin, size)};
  if (r.from < 0) r.from = 0;
  return r;
}

static rdna_status run_apart(const state *s, int64_t margin, const float *in, float *out) {
  const rdna__tiling *t = s->t;
  int64_t high = scaled(t, t->height), wide = scaled(t, t->width);
  for (int64_t row = 0; row < t->height; row += t->tile)
    for (int64_t column = 0; column < t->width; column += t->tile) {
      reach y = reach_of(row, t->tile, margin, t->height), x = reach_of(column, t->tile, margin, t->width);
      place p = {y.from, x.from, y.to - y.from, x.to - x.from, 0, 0};
      p.out_height = scaled(t, p.height), p.out_width = scaled(t, p.width);
      cut_out(s, &p, in);
      RDNA_TRY(t->work(t->context, s->in, p.height, p.width, s->out));
      const float *inner = s->out + scaled(t, y.begin - y.from) * p.out_width + scaled(t, x.begin - x.from);
      float *to = out + scaled(t, y.begin) * wide + scaled(t, x.begin);
      for (int64_t c = 0; c < t->out_channels; c++)
        for (int64_t i = 0; i < scaled(t, y.end) - scaled(t, y.begin); i++)
          memcpy(to + (c * high + i) * wide, inner + (c * p.out_height + i) * p.out_width,
                 (size_t)(scaled(t, x.end) - scaled(t, x.begin)) * sizeof(float));
    }
  return RDNA_OK;
}

rdna_status rdna__tiles_run_apart(const rdna__tiling *t, int64_t margin, const float *in, float *out) {
  if (t->height <= t->tile && t->width <= t->tile) return t->work(t->context, in, t->height, t->width, out);
  int64_t height = smaller(t->tile + 2 * margin, t->height), width = smaller(t->tile + 2 * margin, t->width);
  state s = {.t = t,
             .in = malloc((size_t)(t->in_channels * height * width) * sizeof(float)),
             .out = malloc((size_t)(t->out_channels * scaled(t, height) * scaled(t, width)) * sizeof(float))};
  rdna_status status = s.in && s.out ? run_apart(&s, margin, in, out)
                                     : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a tile of an image");
  free(s.in);
  free(s.out);
  return status;
}
