/* For the test of arguments: a row for each operator, and how its arguments are spoilt one at a time.
 *
 * A row is a small valid call. It makes its arguments by helpers that note them by name: in, out, number, given. The
 * call is then repeated with one of them spoilt at a time, and must fail each time with a sentence that names the
 * argument, before anything is written. What a row says of its arguments is what the public header says. */
#ifndef RDNA_MATH_COMMON_TEST_ARGUMENTS_H
#define RDNA_MATH_COMMON_TEST_ARGUMENTS_H

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "math/common/test/device.h"
#include "rdna/op.h"

/* Sets of types. */
#define BIT(dtype) (UINT64_C(1) << (dtype))
enum {
  F32 = BIT(RDNA_F32),
  F64 = BIT(RDNA_F64),
  FLOATS = BIT(RDNA_F32) | BIT(RDNA_F16) | BIT(RDNA_BF16),
  REALS = FLOATS | BIT(RDNA_F64),
  BYTES = BIT(RDNA_U8) | BIT(RDNA_BOOL),
  INDICES = BIT(RDNA_I32) | BIT(RDNA_I64),
  INTEGERS = BIT(RDNA_I8) | BIT(RDNA_I16) | INDICES | BYTES,
  FLOATS8 = BIT(RDNA_F8_E4M3FN) | BIT(RDNA_F8_E5M2) | BIT(RDNA_F8_E4M3FNUZ) | BIT(RDNA_F8_E5M2FNUZ),
};
/* more than an enumerator holds */
#define UNSIGNED (BIT(RDNA_U16) | BIT(RDNA_U32) | BIT(RDNA_U64))
#define NUMBERS (REALS | INTEGERS | UNSIGNED)
#define PLAIN (NUMBERS | FLOATS8) /* all but the quantized ones */
#define QUANTIZED (BIT(RDNA_DTYPE_COUNT) - 1 - PLAIN)

/* The type of an argument: a given one, or the row's main type (MAIN); and the types that it may have instead while all
 * other arguments keep theirs. */
typedef struct type {
  int dtype;
  uint64_t also, also_of_rest; /* sets: if the main type is the row's first, if it is another */
} type;
enum { MAIN_TYPE = -1, SUM_TYPE = -2 };
#define MAIN ((type){MAIN_TYPE, 0, 0})
#define MAIN_OR(types) ((type){MAIN_TYPE, types, types})
#define FIRST_OR(types) ((type){MAIN_TYPE, types, 0}) /* the row's first type may be replaced by those */
#define ONLY(dtype) ((type){dtype, 0, 0})
#define ANY(dtype, types) ((type){dtype, types, types})
#define SUMS ((type){SUM_TYPE, 0, 0}) /* f32, or f64 where the main type is it */

/* Other forms of an argument that the operator accepts. */
enum {
  OPTIONAL = 1 << 0,   /* NULL is as good */
  STRIDED = 1 << 1,    /* any strides */
  MORE_DIMS = 1 << 2,  /* one dimension more in front is as good */
  FEWER_DIMS = 1 << 3, /* one less as well */
  ALIGNED = 1 << 4,    /* to 16 bytes at least */
  ONE_BEHIND = 1 << 5, /* one more of size 1 behind the others is as good */
  FREE = 1 << 8,       /* of any size in dimension 0; shifted by d in dimension d */
  FREE_ALL = 0xff * FREE,
};

#define SHAPE(...) \
  (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) { __VA_ARGS__ }
#define ONE 0, NULL /* the shape of a single value */

/* Sizes of rows' tensors: any of them may become 0, see |empty|. */
static int64_t M, N, K, B;

typedef struct row {
  const char *op_name, *variant;
  rdna_status (*call)(void);
  uint64_t types;          /* the main type's; 0 for f32 alone */
  uint64_t besides;        /* types that the operator takes, but not for all arguments or in another row */
  const char *empty;       /* letters of sizes that may be 0 */
  const char *never_empty; /* and of those for which there is no answer: a failure */
  const char *same;        /* "out=x dx=dout": what is written may be exactly that input, if values are of one size */
  struct row *next;
} row;

static row *rows, **last_row = &rows;

/* OPERATOR(name, variant, .types = …) { return rdna_op_name(stream, …); } */
#define OPERATOR(operator_name, variant_name, ...)                                                      \
  static rdna_status call_##operator_name##_##variant_name(void);                                       \
  __attribute__((constructor)) static void row_of_##operator_name##_##variant_name(void) {              \
    static row r = {#operator_name, #variant_name, call_##operator_name##_##variant_name, __VA_ARGS__}; \
    *last_row = &r;                                                                                     \
    last_row = &r.next;                                                                                 \
  }                                                                                                     \
  static rdna_status call_##operator_name##_##variant_name(void)

/* ---- what the valid call of a row has ---- */

enum { MOST_ARGUMENTS = 24, SLOT = 32768, LIST = 8 };
typedef struct argument {
  const char *name;
  bool written;
  type type;
  unsigned flags;
  rdna_tensor tensor; /* as it is when nothing is spoilt */
} argument;
typedef struct number_argument {
  const char *name;
  double good[LIST], bad[LIST];
  int goods, bads;
} number_argument;

static argument arguments[MOST_ARGUMENTS];
static number_argument numbers[MOST_ARGUMENTS];
static const char *pointers[MOST_ARGUMENTS];
static bool is_options[MOST_ARGUMENTS]; /* of the pointers */
static int argument_count, number_count, pointer_count;
static rdna_dtype main_type;
static bool first_type;

/* What replaces one argument in this call. */
enum what { NOTHING, TENSOR_NULL, TENSOR, NUMBER, POINTER, SIZE_UNSET, NEWER, STREAM };
static struct {
  enum what what;
  int index;
  rdna_tensor tensor;
  double number;
} spoilt;

_Alignas(64) static unsigned char arena[MOST_ARGUMENTS * SLOT], arena_before[MOST_ARGUMENTS * SLOT];

static int find_argument(const char *name) {
  int i = 0;
  while (i < argument_count && strcmp(arguments[i].name, name) != 0) i++;
  return i;
}

static const rdna_tensor *note(const char *name, bool written, type t, unsigned flags, int rank, const int64_t *shape) {
  static rdna_tensor passed[MOST_ARGUMENTS];
  int i = find_argument(name);
  if (i == argument_count) {
    assert_true(argument_count < MOST_ARGUMENTS);
    argument_count++;
  }
  rdna_dtype dtype = (rdna_dtype)t.dtype;
  if (t.dtype == MAIN_TYPE) dtype = main_type;
  if (t.dtype == SUM_TYPE) dtype = main_type == RDNA_F64 ? RDNA_F64 : RDNA_F32;
  rdna_tensor tensor = rdna_tensor_contiguous(arena + (size_t)i * SLOT, dtype, rank, shape);
  if (rdna_tensor_count(&tensor) == 0) tensor.data = NULL;
  arguments[i] = (argument){name, written, t, flags, tensor};
  passed[i] = spoilt.what == TENSOR && spoilt.index == i ? spoilt.tensor : tensor;
  return spoilt.what == TENSOR_NULL && spoilt.index == i ? NULL : &passed[i];
}
/* Each is for one call: the pointer stays good until the next one by that name. */
static const rdna_tensor *in(const char *name, type t, unsigned flags, int rank, const int64_t *shape) {
  return note(name, false, t, flags, rank, shape);
}
static const rdna_tensor *out(const char *name, type t, unsigned flags, int rank, const int64_t *shape) {
  return note(name, true, t, flags, rank, shape);
}

static int read_list(const char *text, double *list) {
  int count = 0;
  for (char *end; *text; text = end + strspn(end, " ")) {
    assert_true(count < LIST);
    list[count++] = strtod(text, &end);
    assert_true(end > text);
  }
  return count;
}
/* A number that is |usual|; |good| and |bad| are lists of others, "0 1" and "-1 nan inf". */
static double number(const char *name, double usual, const char *good, const char *bad) {
  int i = 0;
  while (i < number_count && strcmp(numbers[i].name, name) != 0) i++;
  if (i == number_count) {
    assert_true(number_count < MOST_ARGUMENTS);
    number_argument *n = &numbers[number_count++];
    n->name = name;
    n->goods = read_list(good, n->good);
    n->bads = read_list(bad, n->bad);
  }
  return spoilt.what == NUMBER && spoilt.index == i ? spoilt.number : usual;
}

/* A pointer to something else than a tensor, which must not be NULL. */
static const void *given(const char *name, const void *pointer) {
  int i = 0;
  while (i < pointer_count && strcmp(pointers[i], name) != 0) i++;
  if (i == pointer_count) is_options[i] = false, pointers[pointer_count++] = name;
  return spoilt.what == POINTER && spoilt.index == i ? NULL : pointer;
}

/* The same of a struct of options, which begins with its size: spoilt are also a size that was never set, and a field
 * of a newer header that is set. */
#define given_options(name, ...) given_options_(name, __VA_ARGS__, sizeof *(__VA_ARGS__))
static const void *given_options_(const char *name, const void *options, size_t bytes) {
  static _Alignas(16) uint8_t copy[512];
  int i = 0;
  const void *pointer = given(name, options);
  while (strcmp(pointers[i], name) != 0) i++;
  is_options[i] = true;
  if (spoilt.index != i || (spoilt.what != SIZE_UNSET && spoilt.what != NEWER)) return pointer;
  size_t size = spoilt.what == NEWER ? bytes + sizeof size : 0;
  memset(copy, 0, sizeof copy);
  memcpy(copy, options, bytes);
  memcpy(copy, &size, sizeof size);
  copy[bytes + sizeof size - 1] = 1;
  return copy;
}

/* ---- calls ---- */

static int complaints;
static long calls;
static char what[256]; /* is being called */
static const row *in_call;
#define WHAT(...) (snprintf(what, sizeof what, __VA_ARGS__), what)

__attribute__((format(printf, 2, 3))) static void complain(const row *r, const char *format, ...) {
  va_list list;
  printf("rdna_op_%s (%s, %s): ", r->op_name, r->variant, rdna_dtype_name(main_type));
  va_start(list, format);
  vprintf(format, list);
  va_end(list);
  printf("\n");
  complaints++;
}

/* Inputs are zeros, which as indices are right too; what is written is a pattern. */
static rdna_status call(const row *r) {
  size_t used = (size_t)argument_count * SLOT;
  for (int i = 0; i < argument_count; i++) memset(arena + i * SLOT, arguments[i].written ? 0x5a : 0, SLOT);
  memcpy(arena_before, arena, used);
  rdna_stream *good = rdna_device_default_stream(device);
  stream = spoilt.what == STREAM ? NULL : good;
  calls++;
  in_call = r;
  rdna_status status = r->call();
  if (rdna_stream_synchronize(good) != RDNA_OK) complain(r, "the stream: %s", rdna_last_error());
  return status;
}

static bool is_of_word(char c) { return isalnum((unsigned char)c) || c == '_'; }
static bool has_word(const char *sentence, const char *word) {
  size_t length = strlen(word);
  for (const char *at = sentence; (at = strstr(at, word)) != NULL; at++) {
    if ((at == sentence || !is_of_word(at[-1])) && !is_of_word(at[length])) return true;
  }
  return false;
}

/* A name may be two words, of which the second is what sentences call the first. */
static bool has_name(const char *sentence, const char *name) {
  char word[64];
  snprintf(word, sizeof word, "%.*s", (int)strcspn(name, " "), name);
  const char *second = strchr(name, ' ');
  return has_word(sentence, word) || (second && has_word(sentence, second + 1));
}

/* The call fails, names |name| or, with NULL, a tensor or a type, and wrote nothing. */
static void must_fail(const row *r, const char *name, const char *text) {
  rdna_status status = call(r);
  const char *sentence = rdna_last_error();
  if (status == RDNA_OK) {
    complain(r, "%s is taken", text);
    return;
  }
  if (status != RDNA_INVALID_ARGUMENT && status != RDNA_UNSUPPORTED) {
    complain(r, "%s gives %s: %s", text, rdna_status_name(status), sentence);
  }
  bool named = name && has_name(sentence, name);
  if (!name)
    named = has_word(sentence, rdna_dtype_name(spoilt.tensor.dtype)) || has_word(sentence, rdna_dtype_name(main_type));
  for (int i = 0; i < argument_count && !name; i++) named = named || has_name(sentence, arguments[i].name);
  if (!named) complain(r, "%s: the sentence does not name %s: '%s'", text, name ? name : "a tensor", sentence);
  if (memcmp(arena, arena_before, (size_t)argument_count * SLOT) != 0) complain(r, "%s: fails, but writes", text);
}
static void must_pass(const row *r, const char *text) {
  if (call(r) != RDNA_OK) complain(r, "%s fails: %s", text, rdna_last_error());
}

/* ---- what is spoilt ---- */

static size_t bytes_of(const rdna_tensor *t) {
  int64_t values = rdna_dtype_block_values(t->dtype);
  return (size_t)((rdna_tensor_count(t) + values - 1) / values) * rdna_dtype_block_bytes(t->dtype);
}

/* Contiguous with another shape. */
static rdna_tensor reshaped(const argument *a, int rank, const int64_t *shape) {
  return rdna_tensor_contiguous(a->tensor.data, a->tensor.dtype, rank, shape);
}

static void spoil_descriptor(const row *r, const argument *a) {
  const rdna_tensor good = a->tensor;
  rdna_tensor *t = &spoilt.tensor;
  spoilt.what = TENSOR_NULL;
  if (a->flags & OPTIONAL) {
    must_pass(r, WHAT("%s NULL", a->name));
  } else {
    must_fail(r, a->name, WHAT("%s NULL", a->name));
  }
  spoilt.what = TENSOR;
  *t = good, t->data = NULL;
  must_fail(r, a->name, WHAT("%s without data", a->name));
  for (int k = 0; k < 2; k++) {
    *t = good, t->dtype = (rdna_dtype)(k ? RDNA_DTYPE_COUNT : -1);
    must_fail(r, a->name, WHAT("%s of type number %d", a->name, (int)t->dtype));
    *t = good, t->rank = k ? RDNA_MAX_RANK + 1 : -1;
    must_fail(r, a->name, WHAT("%s of rank %d", a->name, t->rank));
  }
  for (int d = 0; d < good.rank; d++) {
    *t = good, t->shape[d] = -good.shape[d];
    must_fail(r, a->name, WHAT("%s with size %d negative", a->name, d));
    *t = good, t->shape[d] = INT64_MAX / 2;
    must_fail(r, a->name, WHAT("%s with size %d of 2^62", a->name, d));
  }
  size_t value = rdna_dtype_block_bytes(good.dtype);
  if (rdna_dtype_block_values(good.dtype) == 1 && value > 1) {
    *t = good, t->data = (char *)good.data + 1;
    must_fail(r, a->name, WHAT("%s at an odd address", a->name));
  }
  if (a->flags & ALIGNED) {
    *t = good, t->data = (char *)good.data + (rdna_dtype_block_values(good.dtype) == 1 ? value : 1);
    must_fail(r, a->name, WHAT("%s not aligned", a->name));
  }
}

static void pass_or_fail(const row *r, bool passes, const char *text) {
  if (passes) {
    must_pass(r, text);
  } else {
    must_fail(r, NULL, text);
  }
}

static void spoil_type(const row *r, const argument *a) {
  uint64_t also = first_type ? a->type.also : a->type.also_of_rest;
  for (int dtype = 0; dtype < RDNA_DTYPE_COUNT; dtype++) {
    if (dtype == (int)a->tensor.dtype) continue;
    spoilt.tensor = a->tensor, spoilt.tensor.dtype = (rdna_dtype)dtype;
    pass_or_fail(r, also >> dtype & 1, WHAT("%s of %s", a->name, rdna_dtype_name((rdna_dtype)dtype)));
  }
}

static void spoil_sizes(const row *r, const argument *a) {
  const rdna_tensor good = a->tensor;
  rdna_tensor *t = &spoilt.tensor;
  int64_t shape[RDNA_MAX_RANK];
  for (int d = 0; d < good.rank; d++) {
    memcpy(shape, good.shape, sizeof good.shape);
    shape[d] += rdna_dtype_block_values(good.dtype) > 1 && d == good.rank - 1 ? 256 : 1;
    *t = reshaped(a, good.rank, shape);
    pass_or_fail(r, a->flags & (unsigned)FREE << d, WHAT("%s with size %d of %lld", a->name, d, (long long)shape[d]));
    *t = good, t->stride[d] = 0;
    if (a->written && good.shape[d] > 1) must_fail(r, NULL, WHAT("%s with stride %d of 0", a->name, d));
  }
  if (good.rank == 0 || good.shape[good.rank - 1] == 1) return;
  *t = good;
  for (int d = 0; d < good.rank; d++) t->stride[d] *= 2;
  pass_or_fail(r, a->flags & STRIDED, WHAT("%s with gaps", a->name));
}

static void spoil_rank(const row *r, const argument *a) {
  const rdna_tensor good = a->tensor;
  rdna_tensor *t = &spoilt.tensor;
  int64_t shape[RDNA_MAX_RANK + 1] = {2};
  memcpy(shape + 1, good.shape, (size_t)good.rank * sizeof *shape);
  *t = reshaped(a, good.rank + 1, shape);
  pass_or_fail(r, a->flags & MORE_DIMS, WHAT("%s with a dimension more", a->name));
  if (good.rank == 0) return; /* more dimensions of 1 are a single value still */
  *t = good, t->rank++, t->shape[good.rank] = t->stride[good.rank] = 1;
  if (!(a->flags & MORE_DIMS)) {
    pass_or_fail(r, a->flags & ONE_BEHIND, WHAT("%s with a dimension of 1 behind", a->name));
  }
  *t = reshaped(a, good.rank - 1, good.shape + 1);
  pass_or_fail(r, a->flags & FEWER_DIMS, WHAT("%s with a dimension less", a->name));
  *t = good, t->rank--; /* what is past the rank looks right */
  if (!(a->flags & FEWER_DIMS)) must_fail(r, NULL, WHAT("%s without its last dimension", a->name));
}

static bool may_be_same(const row *r, const argument *o, const argument *a) {
  char pair[128];
  snprintf(pair, sizeof pair, "%s=%s", o->name, a->name);
  if (rdna_dtype_block_bytes(o->tensor.dtype) != rdna_dtype_block_bytes(a->tensor.dtype)) return false;
  return r->same && has_word(r->same, pair);
}

/* Makes an output overlap another argument: at the same address, and shifted. */
static void spoil_place(const row *r, const argument *o, const argument *a) {
  size_t bytes = bytes_of(&a->tensor), shift = bytes > 32 ? 32 : bytes / 2;
  shift -= shift % rdna_dtype_block_bytes(o->tensor.dtype);
  spoilt.tensor = o->tensor, spoilt.tensor.data = a->tensor.data;
  pass_or_fail(r, may_be_same(r, o, a), WHAT("%s at %s", o->name, a->name));
  if (shift == 0) return;
  spoilt.tensor.data = (char *)a->tensor.data + shift;
  must_fail(r, NULL, WHAT("%s %zu bytes into %s", o->name, shift, a->name));
}

static void spoil_argument(const row *r, int i) {
  const argument a = arguments[i];
  if (rdna_tensor_count(&a.tensor) == 0) return;
  spoilt.index = i;
  spoil_descriptor(r, &a);
  spoil_type(r, &a);
  spoil_sizes(r, &a);
  spoil_rank(r, &a);
  for (int k = 0; k < argument_count && a.written; k++) {
    const argument other = arguments[k];
    if (k != i && rdna_tensor_count(&other.tensor) > 0) spoil_place(r, &a, &other);
  }
  spoilt.what = NOTHING;
}

static void spoil_numbers(const row *r) {
  for (int i = 0; i < number_count; i++) {
    const number_argument n = numbers[i];
    spoilt.what = NUMBER, spoilt.index = i;
    for (int k = 0; k < n.goods; k++) {
      spoilt.number = n.good[k];
      must_pass(r, WHAT("%s of %g", n.name, n.good[k]));
    }
    for (int k = 0; k < n.bads; k++) {
      spoilt.number = n.bad[k];
      must_fail(r, n.name, WHAT("%s of %g", n.name, n.bad[k]));
    }
  }
  for (int i = 0; i < pointer_count; i++) {
    spoilt.what = POINTER, spoilt.index = i;
    must_fail(r, pointers[i], WHAT("%s NULL", pointers[i]));
    if (!is_options[i]) continue;
    spoilt.what = SIZE_UNSET;
    must_fail(r, pointers[i], WHAT("%s without its size", pointers[i]));
    spoilt.what = NEWER;
    must_fail(r, pointers[i], WHAT("%s with a field that is not known", pointers[i]));
  }
  spoilt.what = STREAM;
  must_fail(r, "stream", WHAT("a stream of NULL"));
  spoilt.what = NOTHING;
}

static void set_sizes(char empty) {
  M = empty == 'M' ? 0 : 3;
  N = empty == 'N' ? 0 : 8;
  K = empty == 'K' ? 0 : 256;
  B = empty == 'B' ? 0 : 2;
}

static void empty_sizes(const row *r) {
  for (const char *size = r->empty ? r->empty : ""; *size; size++) {
    set_sizes(*size);
    must_pass(r, WHAT("%c of 0", *size));
  }
  for (const char *size = r->never_empty ? r->never_empty : ""; *size; size++) {
    set_sizes(*size);
    must_fail(r, NULL, WHAT("%c of 0", *size));
  }
  set_sizes(0);
}

static void test_row(const row *r) {
  uint64_t types = r->types ? r->types : F32;
  int first = 0;
  while (!(types >> first & 1)) first++;
  for (int dtype = first; dtype < RDNA_DTYPE_COUNT; dtype++) {
    main_type = (rdna_dtype)dtype, first_type = dtype == first;
    if (first_type) argument_count = number_count = pointer_count = 0;
    spoilt.what = NOTHING;
    if (!(types >> dtype & 1)) continue;
    int before = complaints;
    must_pass(r, WHAT("the valid call"));
    if (complaints > before) continue;
    if (first_type) must_pass(r, WHAT("the valid call again")); /* now with its arguments known and filled */
    for (int i = 0; i < argument_count; i++) spoil_argument(r, i);
    spoil_numbers(r);
    empty_sizes(r);
  }
  bool has_main = false;
  for (int i = 0; i < argument_count; i++) has_main = has_main || arguments[i].type.dtype == MAIN_TYPE;
  for (int dtype = 0; dtype < RDNA_DTYPE_COUNT && has_main; dtype++) {
    main_type = (rdna_dtype)dtype;
    if (!((types | r->besides) >> dtype & 1)) must_fail(r, NULL, WHAT("a type that is not offered"));
  }
}

/* ---- what rows of several families use ---- */

#define EPSILON number("epsilon", 1e-5, "0 1", "-1 nan inf")
#define ACTIVATION (rdna_activation) number("activation", RDNA_ACTIVATION_RELU, "0 1 6", "-1 7")
#define HALVES (BIT(RDNA_F16) | BIT(RDNA_BF16))
#define DIM (int)number("dim", 1, "0 -1 -2", "2 -3")
#define ADAPTED (STRIDED | FREE << 2 | FREE << 3)
#define ANY_PLACES (STRIDED | MORE_DIMS | FEWER_DIMS | FREE_ALL)
static const rdna_scalar two = {2, 2};

#endif
