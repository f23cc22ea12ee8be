#include "rdna/tensor.h"

#include "base/block_formats.h"

#define BLOCKS(X, name, NAME, ggml, values, bytes, ...) , [RDNA_##NAME] = {#name, values, bytes}
static const struct {
  const char *name;
  int block_values;
  size_t block_bytes;
} types[RDNA_DTYPE_COUNT] = {
    [RDNA_F32] = {"f32", 1, 4},
    [RDNA_F16] = {"f16", 1, 2},
    [RDNA_BF16] = {"bf16", 1, 2},
    [RDNA_F64] = {"f64", 1, 8},
    [RDNA_I8] = {"i8", 1, 1},
    [RDNA_U8] = {"u8", 1, 1},
    [RDNA_I16] = {"i16", 1, 2},
    [RDNA_I32] = {"i32", 1, 4},
    [RDNA_I64] = {"i64", 1, 8},
    [RDNA_BOOL] = {"bool", 1, 1} RDNA_BLOCK_FORMATS(BLOCKS, ),
    [RDNA_F8_E4M3FN] = {"f8_e4m3fn", 1, 1},
    [RDNA_F8_E5M2] = {"f8_e5m2", 1, 1},
    [RDNA_F8_E4M3FNUZ] = {"f8_e4m3fnuz", 1, 1},
    [RDNA_F8_E5M2FNUZ] = {"f8_e5m2fnuz", 1, 1},
    [RDNA_U16] = {"u16", 1, 2},
    [RDNA_U32] = {"u32", 1, 4},
    [RDNA_U64] = {"u64", 1, 8},
};

static bool known(rdna_dtype dtype) { return (unsigned)dtype < RDNA_DTYPE_COUNT; }

const char *rdna_dtype_name(rdna_dtype dtype) { return known(dtype) ? types[dtype].name : "?"; }
int rdna_dtype_block_values(rdna_dtype dtype) { return known(dtype) ? types[dtype].block_values : 1; }
size_t rdna_dtype_block_bytes(rdna_dtype dtype) { return known(dtype) ? types[dtype].block_bytes : 0; }

size_t rdna_dtype_bytes(rdna_dtype dtype, int64_t count) {
  int64_t values = rdna_dtype_block_values(dtype);
  size_t bytes;
  if (count < 0 || count % values != 0) return 0;
  return __builtin_mul_overflow((size_t)(count / values), rdna_dtype_block_bytes(dtype), &bytes) ? 0 : bytes;
}

rdna_tensor rdna_tensor_contiguous(void *data, rdna_dtype dtype, int rank, const int64_t *shape) {
  rdna_tensor tensor = {.data = data, .dtype = dtype, .rank = rank};
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; i--) {
    tensor.shape[i] = shape[i];
    tensor.stride[i] = stride;
    /* a size that overflows is refused by the operators; here it must only not be undefined */
    if (__builtin_mul_overflow(stride, shape[i], &stride)) stride = INT64_MAX;
  }
  return tensor;
}

int64_t rdna_tensor_count(const rdna_tensor *tensor) {
  int64_t count = 1;
  for (int i = 0; i < tensor->rank; i++) {
    if (tensor->shape[i] == 0) return 0;
    if (__builtin_mul_overflow(count, tensor->shape[i], &count)) count = INT64_MAX;
  }
  return count;
}

/* The distances in bytes between a place of one tensor and a place of another are |base| + the sum of step * k over the
 * terms, with k from 0 to |most| each. */
typedef struct term {
  int64_t step, most;
} term;
typedef struct distances {
  int64_t base;
  int count;
  term terms[2 * RDNA_MAX_RANK + 1];
} distances;

static void add_term(distances *d, int64_t step, int64_t most) {
  if (step == 0 || most == 0) return;
  if (step < 0) d->base += step * most, step = -step;
  int at = d->count++;
  for (; at > 0 && d->terms[at - 1].step > step; at--) d->terms[at] = d->terms[at - 1];
  d->terms[at] = (term){step, most};
}

/* The places of |tensor|'s values, or blocks of values, times |sign|. */
static void add_places(distances *d, const rdna_tensor *tensor, int64_t sign) {
  int64_t values = rdna_dtype_block_values(tensor->dtype), bytes = (int64_t)rdna_dtype_block_bytes(tensor->dtype);
  for (int i = 0; i < tensor->rank; i++) {
    bool blocks = values > 1 && i == tensor->rank - 1;
    int64_t count = blocks ? tensor->shape[i] / values : tensor->shape[i];
    add_term(d, sign * (blocks ? bytes : tensor->stride[i] / values * bytes), count - 1);
  }
}

/* Neighbouring terms that reach every multiple of the smaller step become one. */
static void join_terms(distances *d) {
  int kept = 0;
  for (int i = 1; i < d->count; i++) {
    term *low = &d->terms[kept], next = d->terms[i];
    if (next.step % low->step == 0 && next.step / low->step <= low->most + 1) {
      low->most += next.step / low->step * next.most;
    } else {
      d->terms[++kept] = next;
    }
  }
  d->count = kept + 1;
}

/* Whether the first |count| terms can come to |sum|, of which |reach| is the most. */
static bool comes_to(const term *terms, int count, int64_t reach, int64_t sum, int *tries) {
  if (sum < 0 || sum > reach) return false;
  if (count == 0 || --*tries < 0) return true;
  const term last = terms[count - 1];
  if (count == 1) return sum % last.step == 0;
  int64_t rest = reach - last.step * last.most;
  int64_t most = sum / last.step < last.most ? sum / last.step : last.most;
  for (int64_t k = sum > rest ? (sum - rest + last.step - 1) / last.step : 0; k <= most; k++) {
    if (comes_to(terms, count - 1, rest, sum - last.step * k, tries)) return true;
  }
  return false;
}

bool rdna_tensor_overlap(const rdna_tensor *a, const rdna_tensor *b) {
  int64_t a_bytes = (int64_t)rdna_dtype_block_bytes(a->dtype), b_bytes = (int64_t)rdna_dtype_block_bytes(b->dtype);
  distances d = {.base = (int64_t)((uintptr_t)a->data - (uintptr_t)b->data)};
  if (rdna_tensor_count(a) == 0 || rdna_tensor_count(b) == 0) return false;
  add_places(&d, a, 1);
  add_places(&d, b, -1);
  int64_t reach = a_bytes + b_bytes - 2, sum = b_bytes - 1 - d.base;
  for (int i = 0; i < d.count; i++) reach += d.terms[i].step * d.terms[i].most;
  if (sum < 0 || sum > reach) return false;
  /* values share a byte when they are less than one's bytes apart: from b_bytes - 1 down to 1 - a_bytes */
  add_term(&d, 1, a_bytes + b_bytes - 2);
  enum { MOST_TRIES = 4096 };
  int left = MOST_TRIES;
  if (d.count > 0) join_terms(&d);
  return comes_to(d.terms, d.count, reach, sum, &left);
}
