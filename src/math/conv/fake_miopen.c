/* A libMIOpen for tests, declared here from AMD's reference, apart from the table that calls it. Each problem has two
 * solutions: the first wants more workspace than anyone gives. With 7 input channels there is none. */
#include "math/vendor/fake_vendor.h"

enum { BAD = 3, LARGE_ID = 77, GOOD_ID = 85, WORKSPACE = 1000 };
struct handle {
  uint32_t magic;
  void *stream;
};
struct tensor {
  uint32_t magic;
  int type, rank, size[5], stride[5];
};
struct convolution {
  uint32_t magic;
  int dims, padding[3], stride[3], dilation[3], groups;
  int compiled[3];
};
struct solution {
  float time;
  size_t workspace;
  uint64_t id;
  int algorithm;
};
enum { HANDLE = 0xa1, TENSOR = 0xa2, CONVOLUTION = 0xa3 };
EXPORT fake_vendor_record fake_record;

#define IS(object, what) ((object) != NULL && (object)->magic == (what))
static int release(void *object) {
  *(uint32_t *)object = 0;
  free(object);
  return 0;
}

EXPORT int miopenCreate(struct handle **out) {
  *out = calloc(1, sizeof **out);
  (*out)->magic = HANDLE;
  fake_record.handles++;
  return 0;
}
EXPORT int miopenDestroy(struct handle *h) {
  fake_record.handles--;
  return IS(h, HANDLE) ? release(h) : REFUSE(BAD, "a handle");
}
EXPORT int miopenSetStream(struct handle *h, void *stream) {
  if (!IS(h, HANDLE)) return REFUSE(BAD, "a handle");
  h->stream = stream;
  return 0;
}
EXPORT int miopenGetVersion(size_t *major, size_t *minor, size_t *patch) {
  *major = 3, *minor = 3, *patch = 1;
  return 0;
}
EXPORT int miopenCreateTensorDescriptor(struct tensor **out) {
  *out = calloc(1, sizeof **out);
  (*out)->magic = TENSOR;
  fake_record.objects++;
  return 0;
}
EXPORT int miopenSetTensorDescriptor(struct tensor *t, int type, int rank, const int *sizes, const int *strides) {
  if (!IS(t, TENSOR) || rank < 4 || rank > 5 || (type != 0 && type != 1 && type != 5) || !sizes || !strides)
    return REFUSE(BAD, "a tensor of rank 4 or 5 and a type");
  t->type = type, t->rank = rank;
  for (int i = 0; i < rank; i++) {
    if (sizes[i] < 1 || strides[i] < 1) return REFUSE(BAD, "sizes and strides");
    t->size[i] = sizes[i], t->stride[i] = strides[i];
  }
  return 0;
}
EXPORT int miopenDestroyTensorDescriptor(struct tensor *t) {
  fake_record.objects--;
  return IS(t, TENSOR) ? release(t) : REFUSE(BAD, "a tensor");
}
EXPORT int miopenCreateConvolutionDescriptor(struct convolution **out) {
  *out = calloc(1, sizeof **out);
  (*out)->magic = CONVOLUTION;
  fake_record.objects++;
  return 0;
}
EXPORT int miopenInitConvolutionNdDescriptor(struct convolution *c, int dims, const int *padding, const int *stride,
                                             const int *dilation, int mode) {
  if (!IS(c, CONVOLUTION) || dims < 2 || dims > 3 || mode != 0) return REFUSE(BAD, "a convolution");
  c->dims = dims, c->groups = 1;
  for (int d = 0; d < dims; d++) {
    if (padding[d] < 0 || stride[d] < 1 || dilation[d] < 1) return REFUSE(BAD, "padding, stride and dilation");
    c->padding[d] = padding[d], c->stride[d] = stride[d], c->dilation[d] = dilation[d];
  }
  return 0;
}
EXPORT int miopenSetConvolutionGroupCount(struct convolution *c, int groups) {
  if (!IS(c, CONVOLUTION) || groups < 1) return REFUSE(BAD, "groups");
  c->groups = groups;
  return 0;
}
EXPORT int miopenDestroyConvolutionDescriptor(struct convolution *c) {
  fake_record.objects--;
  return IS(c, CONVOLUTION) ? release(c) : REFUSE(BAD, "a convolution");
}

enum direction { FORWARD, DATA, WEIGHTS };

/* Do the tensors make a convolution? Their order is (x, w, y) here. */
static int check(struct handle *h, const struct convolution *c, const struct tensor *x, const struct tensor *w,
                 const struct tensor *y) {
  if (!IS(h, HANDLE) || !IS(c, CONVOLUTION) || !IS(x, TENSOR) || !IS(w, TENSOR) || !IS(y, TENSOR))
    return REFUSE(BAD, "descriptors");
  if (x->type != w->type || x->type != y->type || x->rank != c->dims + 2 || w->rank != x->rank || y->rank != x->rank)
    return REFUSE(BAD, "one type and rank");
  if (x->size[0] != y->size[0] || w->size[1] * c->groups != x->size[1] || w->size[0] != y->size[1] ||
      w->size[0] % c->groups)
    return REFUSE(BAD, "channels");
  for (int d = 0; d < c->dims; d++)
    if ((x->size[2 + d] + 2 * c->padding[d] - c->dilation[d] * (w->size[2 + d] - 1) - 1) / c->stride[d] + 1 !=
        y->size[2 + d])
      return REFUSE(BAD, "the result's size");
  return 0;
}

struct work {
  enum direction direction;
  struct convolution c;
  struct tensor x, w, y;
  void *x_data, *w_data, *y_data, *workspace;
};

static int64_t offset(const struct tensor *t, const int at[5]) {
  int64_t sum = 0;
  for (int d = 0; d < t->rank; d++) sum += (int64_t)at[d] * t->stride[d];
  return sum;
}
static int next(const struct tensor *t, int at[5]) {
  for (int d = t->rank - 1; d >= 0; d--) {
    if (++at[d] < t->size[d]) return 1;
    at[d] = 0;
  }
  return 0;
}

/* Every pair of a result and a tap, added in double to whichever of the three is asked for. */
static void run(void *data) {
  struct work *q = data;
  enum fake_type type = q->x.type == 0 ? FAKE_F16 : q->x.type == 5 ? FAKE_BF16 : FAKE_F32;
  const struct tensor *out = q->direction == FORWARD ? &q->y : q->direction == DATA ? &q->x : &q->w;
  void *out_data = q->direction == FORWARD ? q->y_data : q->direction == DATA ? q->x_data : q->w_data;
  int64_t span = 1;
  for (int d = 0; d < out->rank; d++) span += (int64_t)(out->size[d] - 1) * out->stride[d];
  double *sums = calloc((size_t)span, sizeof *sums);
  if (q->workspace) memset(q->workspace, 0xa5, WORKSPACE);
  int y[5] = {0};
  do {
    int w[5] = {y[1]};
    for (;;) {
      int x[5] = {y[0], y[1] / (q->w.size[0] / q->c.groups) * q->w.size[1] + w[1]}, inside = 1;
      for (int d = 0; d < q->c.dims; d++) {
        x[2 + d] = y[2 + d] * q->c.stride[d] - q->c.padding[d] + w[2 + d] * q->c.dilation[d];
        inside = inside && x[2 + d] >= 0 && x[2 + d] < q->x.size[2 + d];
      }
      if (inside) {
        int64_t xo = offset(&q->x, x), wo = offset(&q->w, w), yo = offset(&q->y, y);
        if (q->direction == FORWARD) sums[yo] += fake_get(type, q->x_data, xo) * fake_get(type, q->w_data, wo);
        if (q->direction == DATA) sums[xo] += fake_get(type, q->y_data, yo) * fake_get(type, q->w_data, wo);
        if (q->direction == WEIGHTS) sums[wo] += fake_get(type, q->x_data, xo) * fake_get(type, q->y_data, yo);
      }
      next(&q->w, w);
      if (w[0] != y[1]) break;
      if (q->w.size[0] == 1 && !w[1] && !w[2] && !w[3] && !w[4]) break;
    }
  } while (next(&q->y, y));
  int at[5] = {0};
  do fake_put(type, out_data, offset(out, at), sums[offset(out, at)]);
  while (next(out, at));
  free(sums);
  free(q);
}

static int count(struct handle *h, struct convolution *c, struct tensor *x, struct tensor *w, struct tensor *y,
                 size_t *out) {
  int code = check(h, c, x, w, y);
  fake_record.questions++;
  if (code == 0) *out = x->size[1] == 7 ? 0 : 2;
  return code;
}
static int get(struct handle *h, struct convolution *c, struct tensor *x, struct tensor *w, struct tensor *y,
               size_t max, size_t *out, struct solution *solutions) {
  int code = check(h, c, x, w, y);
  if (code != 0 || max < 1 || x->size[1] == 7) return code ? code : REFUSE(BAD, "room for a solution");
  *out = max < 2 ? max : 2;
  for (size_t i = 0; i < *out; i++)
    solutions[i] = (struct solution){(float)i + 1, i ? WORKSPACE : (size_t)1 << 40, i ? GOOD_ID : LARGE_ID, 1};
  return 0;
}
static int compile(struct handle *h, struct convolution *c, struct tensor *x, struct tensor *w, struct tensor *y,
                   uint64_t id, enum direction direction) {
  int code = check(h, c, x, w, y);
  if (code == 0 && id != GOOD_ID && id != LARGE_ID) return REFUSE(BAD, "a solution");
  if (code == 0) c->compiled[direction] = (int)id;
  return code;
}
static int immediate(struct handle *h, struct convolution *c, struct tensor *x, const void *x_data, struct tensor *w,
                     const void *w_data, struct tensor *y, const void *y_data, void *workspace, size_t size,
                     uint64_t id, enum direction direction) {
  int code = check(h, c, x, w, y);
  if (code != 0) return code;
  if (!x_data || !w_data || !y_data || !h->stream) return REFUSE(BAD, "data and a stream");
  if (c->compiled[direction] != (int)id) return REFUSE(BAD, "a solution that was compiled");
  if (size < WORKSPACE || !workspace) return REFUSE(BAD, "a workspace");
  struct work q = {
      direction, *c, *x, *w, *y, (void *)(uintptr_t)x_data, (void *)(uintptr_t)w_data, (void *)(uintptr_t)y_data,
      workspace};
  fake_record.runs++;
  return fake_queue(h->stream, run, &q, sizeof q) == 0 ? 0 : REFUSE(BAD, "a stream");
}

/* The three directions, with their tensors in the order that each takes. */
#define DIRECTION(name, which, A, B, O)                                                                             \
  EXPORT int miopenConvolution##name##GetSolutionCount(struct handle *h, struct tensor *A, struct tensor *B,        \
                                                       struct convolution *c, struct tensor *O, size_t *out) {      \
    return count(h, c, x, w, y, out);                                                                               \
  }                                                                                                                 \
  EXPORT int miopenConvolution##name##GetSolution(struct handle *h, struct tensor *A, struct tensor *B,             \
                                                  struct convolution *c, struct tensor *O, size_t max, size_t *out, \
                                                  struct solution *solutions) {                                     \
    return get(h, c, x, w, y, max, out, solutions);                                                                 \
  }                                                                                                                 \
  EXPORT int miopenConvolution##name##CompileSolution(struct handle *h, struct tensor *A, struct tensor *B,         \
                                                      struct convolution *c, struct tensor *O, uint64_t id) {       \
    return compile(h, c, x, w, y, id, which);                                                                       \
  }                                                                                                                 \
  EXPORT int miopenConvolution##name##Immediate(                                                                    \
      struct handle *h, struct tensor *A, const void *A##_data, struct tensor *B, const void *B##_data,             \
      struct convolution *c, struct tensor *O, void *O##_data, void *workspace, size_t size, uint64_t id) {         \
    return immediate(h, c, x, x_data, w, w_data, y, y_data, workspace, size, id, which);                            \
  }
DIRECTION(Forward, FORWARD, w, x, y)
DIRECTION(BackwardData, DATA, y, w, x)
DIRECTION(BackwardWeights, WEIGHTS, y, x, w)
