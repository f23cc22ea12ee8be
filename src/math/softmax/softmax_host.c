/* Softmax of rows on the host: a chunk at a time, with the running maximum of the device's long rows; a row of one
 * chunk is read once. */
#include "kernel/host.h"
#include "math/common/edges.h"
#include "math/common/host/floats.h"
#include "math/softmax/softmax_kernels.h"

enum { CHUNK = 4096, WAYS = 16 };

struct work {
  struct softmax_args a;
  rdna_dtype dtype;
};

/* WAYS partial results each, so that the additions and comparisons run in vectors. */
static float run_max(const float *v, int64_t count, float start) {
  float part[WAYS];
  int64_t i = 0;
  for (int j = 0; j < WAYS; j++) part[j] = start;
  for (; i + WAYS <= count; i += WAYS) {
    for (int j = 0; j < WAYS; j++) part[j] = max_f32(part[j], v[i + j]);
  }
  for (; i < count; i++) part[0] = max_f32(part[0], v[i]);
  for (int j = 1; j < WAYS; j++) part[0] = max_f32(part[0], part[j]);
  return part[0];
}

static float run_sum(const float *v, int64_t count) {
  float part[WAYS] = {0};
  int64_t i = 0;
  for (; i + WAYS <= count; i += WAYS) {
    for (int j = 0; j < WAYS; j++) part[j] += v[i + j];
  }
  for (; i < count; i++) part[0] += v[i];
  for (int half = WAYS / 2; half > 0; half /= 2) {
    for (int j = 0; j < half; j++) part[j] += part[j + half];
  }
  return part[0];
}

static void load_scaled(const struct work *work, const char *row, int64_t col, int64_t count, float *v) {
  floats_load(work->dtype, row + col * floats_bytes(work->dtype), count, v);
  for (int64_t i = 0; i < count; i++) v[i] *= work->a.scale;
}

/* The maximum of values seen, and the sum of what they are as exponentials beside it. */
struct running {
  float top, sum;
};
static void add_run(const struct work *work, const char *row, int64_t begin, int64_t end, float *v, struct running *r) {
  float e[CHUNK];
  for (int64_t col = begin; col < end; col += CHUNK) {
    int64_t count = end - col < CHUNK ? end - col : CHUNK;
    load_scaled(work, row, col, count, v);
    float grown = run_max(v, count, r->top);
    if (grown == -__builtin_inff()) continue;
    if (r->sum != 0) r->sum *= scalar_exp(r->top - grown);
    for (int64_t i = 0; i < count; i++) e[i] = scalar_exp(v[i] - grown);
    r->sum += run_sum(e, count);
    r->top = grown;
  }
}

/* |v| has the values already where they fit. */
static void write_run(const struct work *work, const char *x, char *out, int64_t begin, int64_t end, float *v,
                      bool fits, float top, float last) {
  for (int64_t col = begin; col < end; col += CHUNK) {
    int64_t count = end - col < CHUNK ? end - col : CHUNK;
    if (!fits) load_scaled(work, x, col, count, v);
    if (work->a.log) {
      for (int64_t i = 0; i < count; i++) v[i] = v[i] - top - last;
    } else {
      for (int64_t i = 0; i < count; i++) v[i] = scalar_exp(v[i] - top) * last;
    }
    floats_store(work->dtype, out + col * floats_bytes(work->dtype), count, v);
  }
}

static void softmax_row(const struct work *work, const char *x, char *out) {
  const struct softmax_args *a = &work->a;
  struct running r = {-__builtin_inff(), 0};
  float v[CHUNK];
  add_run(work, x, 0, a->cols, v, &r);
  write_run(work, x, out, 0, a->cols, v, a->cols <= CHUNK, r.top, a->log ? scalar_log(r.sum) : 1 / r.sum);
}

static void softmax_rows(void *context, int64_t begin, int64_t end) {
  const struct work *work = context;
  int64_t bytes = floats_bytes(work->dtype);
  for (int64_t row = begin; row < end; row++) {
    softmax_row(work, (const char *)work->a.x + row * work->a.x_stride * bytes,
                (char *)work->a.out + row * work->a.out_stride * bytes);
  }
}

static void softmax(const void *args, rdna_dtype dtype) {
  struct work work = {*(const struct softmax_args *)args, dtype};
  int64_t grain = work.a.cols > 0 ? 1 + (1 << 14) / work.a.cols : work.a.rows;
  rdna__parallel_for(work.a.rows, grain, softmax_rows, &work);
}

/* Parts of rows: their vectors, and of part 0 the single values at both ends. */
struct part_work {
  struct work of;
  int64_t parts, part_vectors;
  float *states;       /* written, or */
  const float *joined; /* read */
};
struct part {
  const char *x;
  char *out;
  int64_t row, head, begin, end, tail; /* values 0 to head, begin to end, and the last |tail| of the row */
};

static struct part part_at(const struct part_work *w, int64_t item) {
  const struct softmax_args *a = &w->of.a;
  int64_t bytes = floats_bytes(w->of.dtype), in_16 = 16 / bytes, number = item % w->parts;
  struct part p = {.row = item / w->parts};
  p.x = (const char *)a->x + p.row * a->x_stride * bytes;
  p.out = (char *)a->out + p.row * a->out_stride * bytes;
  struct row_edges e = row_edges_of((uint64_t)(uintptr_t)p.x, (uint64_t)a->cols, (uint32_t)in_16);
  int64_t first = number * w->part_vectors, last = first + w->part_vectors, vectors = (int64_t)e.vectors;
  p.begin = (int64_t)e.head + (first < vectors ? first : vectors) * in_16;
  p.end = (int64_t)e.head + (last < vectors ? last : vectors) * in_16;
  if (number == 0) p.head = (int64_t)e.head, p.tail = (int64_t)e.tail;
  return p;
}

static void part_states(void *context, int64_t begin, int64_t end) {
  const struct part_work *w = context;
  float v[CHUNK];
  for (int64_t item = begin; item < end; item++) {
    struct part p = part_at(w, item);
    struct running r = {-__builtin_inff(), 0};
    add_run(&w->of, p.x, 0, p.head, v, &r);
    add_run(&w->of, p.x, p.begin, p.end, v, &r);
    add_run(&w->of, p.x, w->of.a.cols - p.tail, w->of.a.cols, v, &r);
    w->states[2 * item] = r.top, w->states[2 * item + 1] = r.sum;
  }
}

static void finish_parts(void *context, int64_t begin, int64_t end) {
  const struct part_work *w = context;
  float v[CHUNK];
  for (int64_t item = begin; item < end; item++) {
    struct part p = part_at(w, item);
    const float *states = w->joined + 2 * p.row * w->parts;
    float top = -__builtin_inff(), sum = 0;
    for (int64_t i = 0; i < w->parts; i++) top = max_f32(top, states[2 * i]);
    for (int64_t i = 0; i < w->parts; i++) {
      if (states[2 * i + 1] != 0) sum += states[2 * i + 1] * scalar_exp(states[2 * i] - top);
    }
    float last = w->of.a.log ? scalar_log(sum) : 1 / sum;
    write_run(&w->of, p.x, p.out, 0, p.head, v, false, top, last);
    write_run(&w->of, p.x, p.out, p.begin, p.end, v, false, top, last);
    write_run(&w->of, p.x, p.out, w->of.a.cols - p.tail, w->of.a.cols, v, false, top, last);
  }
}

static void softmax_part(const void *args, rdna_dtype dtype) {
  const struct softmax_part_args *a = args;
  struct softmax_args rows = {.x = a->x, .rows = a->rows, .cols = a->cols, .x_stride = a->x_stride, .scale = a->scale};
  struct part_work work = {{rows, dtype}, a->parts, a->part_vectors, a->states, NULL};
  rdna__parallel_for(a->rows * a->parts, 1, part_states, &work);
}

static void softmax_finish(const void *args, rdna_dtype dtype) {
  const struct softmax_finish_args *a = args;
  struct softmax_args rows = {.x = a->x,
                              .out = a->out,
                              .rows = a->rows,
                              .cols = a->cols,
                              .x_stride = a->x_stride,
                              .out_stride = a->out_stride,
                              .scale = a->scale,
                              .log = a->log};
  struct part_work work = {{rows, dtype}, a->parts, a->part_vectors, NULL, a->states};
  rdna__parallel_for(a->rows * a->parts, 1, finish_parts, &work);
}

#define TWINS(suffix, dtype)                                                                                    \
  void RDNA_HOST_KERNEL(softmax_##suffix)(const void *args, rdna_grid grid) { softmax(args, dtype); }           \
  void RDNA_HOST_KERNEL(softmax_held_##suffix)(const void *args, rdna_grid grid) { softmax(args, dtype); }      \
  void RDNA_HOST_KERNEL(softmax_part_##suffix)(const void *args, rdna_grid grid) { softmax_part(args, dtype); } \
  void RDNA_HOST_KERNEL(softmax_finish_##suffix)(const void *args, rdna_grid grid) { softmax_finish(args, dtype); }
TWINS(f32, RDNA_F32)
TWINS(f16, RDNA_F16)
TWINS(bf16, RDNA_BF16)
