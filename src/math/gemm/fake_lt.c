/* A libcublasLt, or with FAKE_HIP a libhipblaslt, for tests. Declared here from the vendors' references, apart from the
 * table that calls it, so that a slip in one of the two shows. It has two algorithms for every product, but none where
 * k is 13, and wants a workspace for the first. */
#include <math.h>
#include <stdbool.h>

#ifndef FAKE_HIP
#define FAKE_CUDA
#endif
#include "math/vendor/fake_vendor.h"

#ifdef FAKE_HIP
#define NAME(name) hipblasLt##name
enum { OP_N = 111, OP_T = 112, COMPUTE_F32 = 2, COMPUTE_I32 = 9, ALGORITHM = 24 };
enum { LAYOUT_BATCH = 0, LAYOUT_STRIDE = 1 };
enum { TRANSA = 0, TRANSB = 1, EPILOGUE = 2, BIAS = 3, BIAS_TYPE = 4 };
enum { INVALID = 3, UNSUPPORTED = 7 };
#else
#define NAME(name) cublasLt##name
enum { OP_N = 0, OP_T = 1, COMPUTE_F32 = 68, COMPUTE_I32 = 72, ALGORITHM = 64 };
enum { LAYOUT_BATCH = 5, LAYOUT_STRIDE = 6 };
enum { TRANSA = 3, TRANSB = 4, EPILOGUE = 7, BIAS = 8, BIAS_TYPE = 26 };
enum { INVALID = 7, UNSUPPORTED = 15 };
#endif
enum { EP_DEFAULT = 1, EP_RELU = 2, EP_BIAS = 4, WORKSPACE = 4096, ALGORITHMS = 2 };

struct handle {
  char magic[8];
};
struct description {
  char magic[8];
  int compute, scale, a, b, bias_type;
  unsigned epilogue;
  const void *bias;
};
struct layout {
  char magic[8];
  enum fake_type type;
  uint64_t rows, columns;
  int64_t ld, stride;
  int batch;
};
struct preference {
  char magic[8];
  uint64_t workspace;
  uint32_t alignments[4];
  bool exact_parts; /* cuBLASLt: sums of parts are not joined in 16 bits */
};
struct result {
  unsigned char algorithm[ALGORITHM];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};
_Static_assert(sizeof(struct result) == ALGORITHM + 32, "the vendor's layout");

EXPORT fake_vendor_record fake_record;

static int known_type(int type, enum fake_type *out) {
  static const int numbers[] = {0, 2, 14, 3, 10};
  for (int i = 0; i < 5; i++)
    if (numbers[i] == type) return *out = (enum fake_type)i, 1;
  return 0;
}
#define IS(object, what) ((object) != NULL && memcmp((object)->magic, what, sizeof what) == 0)
static void *make(size_t size, const char *magic) {
  char *object = calloc(1, size);
  strcpy(object, magic);
  return object;
}

#ifdef FAKE_HIP
EXPORT int hipblasLtGetVersion(void *handle, int *version) {
  if (!IS((struct handle *)handle, "handle")) return REFUSE(INVALID, "a handle");
  *version = fake_record.version ? (int)fake_record.version : getenv("FAKE_LT_OLD") ? 600 : 1203;
  return 0;
}
#else
EXPORT size_t cublasLtGetVersion(void) { return fake_record.version ? fake_record.version : 130100; }
#endif

EXPORT int NAME(Create)(void **handle) {
  *handle = make(sizeof(struct handle), "handle");
  fake_record.handles++;
  return 0;
}
EXPORT int NAME(Destroy)(void *handle) {
  if (!IS((struct handle *)handle, "handle")) return REFUSE(INVALID, "a handle");
  free(handle);
  fake_record.handles--;
  return 0;
}

EXPORT int NAME(MatmulDescCreate)(struct description **out, int compute, int scale) {
  if (!(compute == COMPUTE_F32 && scale == 0) && !(compute == COMPUTE_I32 && scale == 10))
    return REFUSE(INVALID, "compute and scale types that belong together");
  *out = make(sizeof **out, "descr");
  (*out)->compute = compute, (*out)->scale = scale, (*out)->a = (*out)->b = OP_N, (*out)->epilogue = EP_DEFAULT;
  (*out)->bias_type = -1;
  fake_record.objects++;
  return 0;
}
EXPORT int NAME(MatmulDescDestroy)(struct description *d) {
  if (!IS(d, "descr")) return REFUSE(INVALID, "a description");
  free(d);
  fake_record.objects--;
  return 0;
}
EXPORT int NAME(MatmulDescSetAttribute)(struct description *d, int attribute, const void *value, size_t size) {
  if (!IS(d, "descr") || !value) return REFUSE(INVALID, "a description and a value");
  size_t want = attribute == BIAS ? sizeof(void *) : 4;
  if (size != want) return REFUSE(INVALID, "the attribute's size");
  switch (attribute) {
    case TRANSA:
    case TRANSB: {
      int op = *(const int *)value;
      if (op != OP_N && op != OP_T) return REFUSE(INVALID, "an operation");
      *(attribute == TRANSA ? &d->a : &d->b) = op;
      return 0;
    }
    case EPILOGUE:
      d->epilogue = *(const unsigned *)value;
      if (d->epilogue != EP_RELU && d->epilogue != EP_BIAS && d->epilogue != (EP_RELU | EP_BIAS))
        return REFUSE(INVALID, "an epilogue");
      return 0;
    case BIAS:
      d->bias = *(const void *const *)value;
      return 0;
    case BIAS_TYPE:
      d->bias_type = *(const int *)value;
      return 0;
    default:
      return REFUSE(INVALID, "a known attribute");
  }
}

EXPORT int NAME(MatrixLayoutCreate)(struct layout **out, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  enum fake_type known;
  if (!known_type(type, &known)) return REFUSE(INVALID, "a type");
  if (rows < 1 || columns < 1 || ld < (int64_t)rows) return REFUSE(INVALID, "a leading dimension of at least the rows");
  *out = make(sizeof **out, "layout");
  (*out)->type = known, (*out)->rows = rows, (*out)->columns = columns, (*out)->ld = ld, (*out)->batch = 1;
  fake_record.objects++;
  return 0;
}
EXPORT int NAME(MatrixLayoutDestroy)(struct layout *l) {
  if (!IS(l, "layout")) return REFUSE(INVALID, "a layout");
  free(l);
  fake_record.objects--;
  return 0;
}
EXPORT int NAME(MatrixLayoutSetAttribute)(struct layout *l, int attribute, const void *value, size_t size) {
  if (!IS(l, "layout")) return REFUSE(INVALID, "a layout");
  if (attribute == LAYOUT_BATCH && size == 4)
    l->batch = *(const int *)value;
  else if (attribute == LAYOUT_STRIDE && size == 8)
    l->stride = *(const int64_t *)value;
  else
    return REFUSE(INVALID, "a known attribute of its size");
  return l->batch < 1 || l->stride < 0 ? REFUSE(INVALID, "a batch") : 0;
}

EXPORT int NAME(MatmulPreferenceCreate)(struct preference **out) {
  *out = make(sizeof **out, "prefer");
  for (int i = 0; i < 4; i++) (*out)->alignments[i] = 256;
  fake_record.objects++;
  return 0;
}
EXPORT int NAME(MatmulPreferenceDestroy)(struct preference *p) {
  if (!IS(p, "prefer")) return REFUSE(INVALID, "a preference");
  free(p);
  fake_record.objects--;
  return 0;
}
EXPORT int NAME(MatmulPreferenceSetAttribute)(struct preference *p, int attribute, const void *value, size_t size) {
  if (!IS(p, "prefer")) return REFUSE(INVALID, "a preference");
  if (attribute == 1 && size == 8) {
    p->workspace = *(const uint64_t *)value;
    return 0;
  }
#ifndef FAKE_HIP
  if (attribute == 3 && size == 4 && *(const uint32_t *)value == 2) { /* sums of parts in the type of computation */
    p->exact_parts = true;
    return 0;
  }
  uint32_t bytes = size == 4 ? *(const uint32_t *)value : 0;
  if (attribute >= 5 && attribute <= 8 && bytes && (bytes & (bytes - 1)) == 0) {
    p->alignments[attribute - 5] = bytes;
    return 0;
  }
#endif
  return REFUSE(INVALID, "a known attribute of its size");
}

/* What an algorithm was chosen for; it runs nothing else. */
struct problem {
  int compute, a, b, types[3], batch;
  unsigned epilogue;
  uint64_t m, n, k;
};

static int read_problem(const struct description *d, const struct layout *a, const struct layout *b,
                        const struct layout *c, const struct layout *out, struct problem *p) {
  memset(p, 0, sizeof *p);
  if (!IS(d, "descr") || !IS(a, "layout") || !IS(b, "layout") || !IS(c, "layout") || !IS(out, "layout"))
    return REFUSE(INVALID, "descriptors");
  if (c->type != out->type || c->rows != out->rows || c->columns != out->columns || c->batch != out->batch)
    return REFUSE(INVALID, "C like D");
  int at = d->a == OP_T, bt = d->b == OP_T;
  p->m = at ? a->columns : a->rows, p->k = at ? a->rows : a->columns, p->n = bt ? b->rows : b->columns;
  if ((bt ? b->columns : b->rows) != p->k || c->rows != p->m || c->columns != p->n)
    return REFUSE(INVALID, "matrices that fit each other");
  if (a->batch != b->batch || a->batch != c->batch) return REFUSE(INVALID, "one batch count");
  if (out->batch > 1 && out->stride < out->ld * (int64_t)(out->columns - 1) + (int64_t)out->rows)
    return REFUSE(INVALID, "results apart");
  int integers = a->type == FAKE_I8;
  if (a->type != b->type || integers != (c->type == FAKE_I32) || integers != (d->compute == COMPUTE_I32) ||
      (a->type == FAKE_F32 && c->type != FAKE_F32) ||
      ((a->type == FAKE_F16 || a->type == FAKE_BF16) && c->type != a->type && c->type != FAKE_F32))
    return UNSUPPORTED;
  if (d->epilogue & EP_BIAS && !d->bias) return REFUSE(INVALID, "a bias");
#ifdef FAKE_HIP
  static const int numbers[] = {0, 2, 14, 3, 10};
  if (d->epilogue & EP_BIAS && d->bias_type != numbers[c->type]) return REFUSE(INVALID, "the bias's type");
#endif
  p->compute = d->compute, p->a = d->a, p->b = d->b, p->batch = a->batch, p->epilogue = d->epilogue;
  p->types[0] = (int)a->type, p->types[1] = (int)b->type, p->types[2] = (int)c->type;
  return 0;
}

static uint32_t signature(const struct problem *p) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < sizeof *p; i++) hash = (hash ^ ((const unsigned char *)p)[i]) * 16777619u;
  return hash;
}

EXPORT int NAME(MatmulAlgoGetHeuristic)(struct handle *handle, struct description *d, struct layout *a,
                                        struct layout *b, struct layout *c, struct layout *out, struct preference *p,
                                        int wanted, struct result *results, int *count) {
  struct problem problem;
  fake_record.questions++;
  *count = 0;
  if (!IS(handle, "handle") || !IS(p, "prefer") || wanted < 1) return REFUSE(INVALID, "a question");
#ifndef FAKE_HIP
  if (!p->exact_parts) return REFUSE(INVALID, "a preference for sums in the type of computation");
#endif
  int code = read_problem(d, a, b, c, out, &problem);
  if (code != 0) return code;
  if (problem.k == 13) return UNSUPPORTED;
  for (int i = 0; i < ALGORITHMS && i < wanted; i++) {
    struct result *r = &results[(*count)++];
    memset(r, 0, sizeof *r);
    uint32_t name[6] = {signature(&problem), (uint32_t)i};
    for (int j = 0; j < 4; j++) name[2] |= (p->alignments[j] / 2 & 0xff) << 8 * j;
    memcpy(r->algorithm, name, sizeof name);
    r->workspace = i == 0 && p->workspace >= WORKSPACE ? WORKSPACE : 0;
  }
  return 0;
}

struct work {
  struct problem p;
  struct layout a, b, c, d;
  const void *a_data, *b_data, *c_data, *bias;
  void *d_data, *workspace;
  double alpha, beta;
};

static void run(void *data) {
  struct work *w = data;
  const struct problem *p = &w->p;
  if (w->workspace) memset(w->workspace, 0xa5, WORKSPACE);
  for (int batch = 0; batch < p->batch; batch++) {
    for (uint64_t j = 0; j < p->n; j++) {
      for (uint64_t i = 0; i < p->m; i++) {
        double sum = 0;
        for (uint64_t q = 0; q < p->k; q++) {
          int64_t at = p->a == OP_T ? (int64_t)q + (int64_t)i * w->a.ld : (int64_t)i + (int64_t)q * w->a.ld;
          int64_t bt = p->b == OP_T ? (int64_t)j + (int64_t)q * w->b.ld : (int64_t)q + (int64_t)j * w->b.ld;
          sum += fake_get(w->a.type, w->a_data, batch * w->a.stride + at) *
                 fake_get(w->b.type, w->b_data, batch * w->b.stride + bt);
        }
        int64_t at = batch * w->d.stride + (int64_t)i + (int64_t)j * w->d.ld;
        double value = w->alpha * sum;
        if (w->beta != 0)
          value += w->beta * fake_get(w->c.type, w->c_data, batch * w->c.stride + (int64_t)i + (int64_t)j * w->c.ld);
        if (p->epilogue & EP_BIAS) value += fake_get(w->c.type, w->bias, (int64_t)i);
        if (p->epilogue & EP_RELU && value < 0) value = 0;
        fake_put(w->d.type, w->d_data, at, value);
      }
    }
  }
  free(w);
}

EXPORT int NAME(Matmul)(struct handle *handle, struct description *d, const void *alpha, const void *a,
                        struct layout *a_layout, const void *b, struct layout *b_layout, const void *beta,
                        const void *c, struct layout *c_layout, void *out, struct layout *out_layout,
                        const void *algorithm, void *workspace, size_t workspace_size, void *stream) {
  struct work w = {.bias = NULL};
  if (!IS(handle, "handle") || !alpha || !beta || !a || !b || !out || !algorithm || !stream)
    return REFUSE(INVALID, "pointers, an algorithm and a stream");
  if (!c || !IS(c_layout, "layout") || !IS(out_layout, "layout") ||
      (c == out && (c_layout->ld != out_layout->ld || c_layout->stride != out_layout->stride)))
    return REFUSE(INVALID, "C, as D is where it is D");
  int code = read_problem(d, a_layout, b_layout, c_layout, out_layout, &w.p);
  if (code != 0) return code;
  uint32_t name[3];
  memcpy(name, algorithm, sizeof name);
  if (name[0] != signature(&w.p) || name[1] >= ALGORITHMS)
    return REFUSE(INVALID, "an algorithm that was named for this product");
#ifndef FAKE_HIP
  const void *pointers[] = {a, b, c, out};
  for (int i = 0; i < 4; i++) {
    uint32_t half = name[2] >> 8 * i & 0xff; /* of the alignment */
    if (half > 0 && (uintptr_t)pointers[i] % (2 * half)) return REFUSE(INVALID, "pointers as aligned as was said");
  }
#endif
  if (name[1] == 0 && (workspace_size < WORKSPACE || !workspace || (uintptr_t)workspace % 16))
    return REFUSE(INVALID, "a workspace");
  w.a = *a_layout, w.b = *b_layout, w.c = *c_layout, w.d = *out_layout;
  w.a_data = a, w.b_data = b, w.c_data = c, w.d_data = out, w.bias = d->bias;
  w.workspace = name[1] == 0 ? workspace : NULL;
  int integers = d->compute == COMPUTE_I32;
  w.alpha = integers ? *(const int32_t *)alpha : *(const float *)alpha;
  w.beta = integers ? *(const int32_t *)beta : *(const float *)beta;
  fake_record.runs++;
  return fake_queue(stream, run, &w, sizeof w) == 0 ? 0 : REFUSE(INVALID, "a stream");
}
