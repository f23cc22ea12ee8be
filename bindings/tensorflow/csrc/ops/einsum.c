/* Sums of products by index (Einstein's convention) of one operand or two: dimensions that only one operand has and the
 * result has not are summed, the rest is a batch of products of matrices. */
#include <ctype.h>
#include <string.h>

#include "ops.h"
#include "rdna/op/gemm.h"
#include "rdna/op/movement.h"
#include "rdna/op/reduce.h"

enum { LABELS = 128 };

/* A tensor with a label, a character, for each dimension; those of an ellipsis are 1, 2, … from its end. */
struct operand {
  rdna_tensor tensor;
  char labels[RDNA_MAX_RANK + 1];
};

/* Reads the part of an equation from |text| to |end|; dimensions that "..." stands for are |rank| less the named. */
static rdna_status read_labels(call *c, const char *text, const char *end, int rank, char *labels) {
  int named = 0, used = 0;
  for (const char *at = text; at < end; at++) named += isalpha((unsigned char)*at) != 0;
  for (const char *at = text; at < end; at++) {
    if (*at == ' ') continue;
    if (strncmp(at, "...", 3) == 0) {
      for (int i = rank - named; i > 0 && used < RDNA_MAX_RANK; i--) labels[used++] = (char)i;
      at += 2;
    } else if (isalpha((unsigned char)*at) && used < RDNA_MAX_RANK) {
      if (memchr(labels, *at, (size_t)used)) return call_fail(c, RDNA_UNSUPPORTED, "Einsum '%s' has a diagonal", text);
      labels[used++] = *at;
    } else {
      return call_fail(c, RDNA_INVALID_ARGUMENT, "'%c' in the equation of Einsum", *at);
    }
  }
  if (used != rank)
    return call_fail(c, RDNA_INVALID_ARGUMENT, "Einsum '%s': an operand has %d dimensions", c->attributes->equation,
                     rank);
  labels[used] = 0;
  return RDNA_OK;
}

static rdna_status sum_over(call *c, struct operand *x, uint32_t dims) {
  if (!dims) return RDNA_OK;
  int64_t shape[RDNA_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < x->tensor.rank; i++) {
    if (dims >> i & 1) continue;
    x->labels[rank] = x->labels[i];
    shape[rank++] = x->tensor.shape[i];
  }
  x->labels[rank] = 0;
  rdna_tensor sum;
  TRY(call_scratch(c, x->tensor.dtype, rank, shape, &sum));
  TRY(rdna_op_reduce(c->stream, RDNA_REDUCTION_SUM, &x->tensor, dims, 0, &sum));
  x->tensor = sum;
  return RDNA_OK;
}

/* Dimensions of |x| that neither |other| nor the result has. */
static uint32_t only_here(const struct operand *x, const char *other, const char *result) {
  uint32_t dims = 0;
  for (int i = 0; i < x->tensor.rank; i++)
    if (!strchr(other, x->labels[i]) && !strchr(result, x->labels[i])) dims |= 1u << i;
  return dims;
}

/* |x| with its dimensions in the order of |labels|. */
static rdna_tensor ordered(const struct operand *x, const char *labels) {
  rdna_tensor view = x->tensor;
  for (int i = 0; labels[i]; i++) {
    int from = (int)(strchr(x->labels, labels[i]) - x->labels);
    view.shape[i] = x->tensor.shape[from];
    view.stride[i] = x->tensor.stride[from];
  }
  return view;
}

/* The same as one matrix for each of the batch: (batch, rows, columns), with the sizes of |size|. Copied where its
 * order is another, or a size of an ellipsis is 1 here and more there. */
static rdna_status as_matrices(call *c, const struct operand *x, const char *labels, const int64_t *size,
                               const int64_t *flat, rdna_tensor *out) {
  rdna_tensor view = ordered(x, labels), whole;
  bool copied = strcmp(labels, x->labels) != 0;
  for (int i = 0; labels[i]; i++) {
    if (view.shape[i] == size[(int)labels[i]]) continue;
    view.shape[i] = size[(int)labels[i]];
    view.stride[i] = 0;
    copied = true;
  }
  if (copied) {
    TRY(call_scratch(c, view.dtype, view.rank, view.shape, &whole));
    TRY(rdna_op_copy(c->stream, &view, &whole));
    view = whole;
  }
  *out = reshaped(&view, 3, flat);
  return RDNA_OK;
}

static void append(char *labels, char label) {
  size_t length = strlen(labels);
  labels[length] = label;
  labels[length + 1] = 0;
}

/* What the labels of two operands are to a product: of the batch, rows, columns, or summed; with their sizes. */
struct roles {
  char batch[RDNA_MAX_RANK + 1], rows[RDNA_MAX_RANK + 1], columns[RDNA_MAX_RANK + 1], summed[RDNA_MAX_RANK + 1];
  int64_t size[LABELS];
};

static rdna_status find_roles(call *c, const struct operand *a, const struct operand *b, const char *result,
                              struct roles *roles) {
  memset(roles, 0, sizeof *roles);
  for (int i = 0; i < a->tensor.rank; i++) {
    char label = a->labels[i];
    roles->size[(int)label] = a->tensor.shape[i];
    bool shared = strchr(b->labels, label) != NULL;
    append(!shared ? roles->rows : strchr(result, label) ? roles->batch : roles->summed, label);
  }
  for (int i = 0; i < b->tensor.rank; i++) {
    char label = b->labels[i];
    bool broadcast = label <= RDNA_MAX_RANK; /* of an ellipsis */
    if (!strchr(a->labels, label))
      append(roles->columns, label);
    else if (broadcast && b->tensor.shape[i] == 1)
      continue;
    else if (roles->size[(int)label] != b->tensor.shape[i] && !(broadcast && roles->size[(int)label] == 1))
      return call_fail(c, RDNA_UNSUPPORTED, "Einsum '%s': sizes %lld and %lld of one dimension",
                       c->attributes->equation, (long long)roles->size[(int)label], (long long)b->tensor.shape[i]);
    roles->size[(int)label] = b->tensor.shape[i];
  }
  return RDNA_OK;
}

static int64_t count_of(const struct roles *roles, const char *labels) {
  int64_t count = 1;
  for (; *labels; labels++) count *= roles->size[(int)*labels];
  return count;
}

static void joined(char *out, const char *a, const char *b, const char *c) {
  out[0] = 0;
  strcat(strcat(strcat(out, a), b), c);
}

static rdna_status multiply(call *c, const struct operand *a, const struct operand *b, const char *result) {
  struct roles roles;
  struct operand product;
  char labels[3 * RDNA_MAX_RANK + 1];
  int64_t shape[RDNA_MAX_RANK];
  rdna_tensor matrix_a, matrix_b, out;
  TRY(find_roles(c, a, b, result, &roles));
  int64_t batch = count_of(&roles, roles.batch), m = count_of(&roles, roles.rows), n = count_of(&roles, roles.columns),
          k = count_of(&roles, roles.summed);
  joined(labels, roles.batch, roles.rows, roles.summed);
  TRY(as_matrices(c, a, labels, roles.size, (int64_t[]){batch, m, k}, &matrix_a));
  joined(labels, roles.batch, roles.summed, roles.columns);
  TRY(as_matrices(c, b, labels, roles.size, (int64_t[]){batch, k, n}, &matrix_b));
  joined(labels, roles.batch, roles.rows, roles.columns);
  if (strlen(labels) != strlen(result) || strlen(result) > RDNA_MAX_RANK)
    return call_fail(c, RDNA_UNSUPPORTED, "Einsum '%s': the result has a dimension that no operand has",
                     c->attributes->equation);
  int rank = (int)strlen(result);
  for (int i = 0; i < rank; i++) shape[i] = roles.size[(int)result[i]];
  TRY(call_output(c, 0, rank, shape, &out));
  if (rdna_tensor_count(&out) == 0) return RDNA_OK;
  bool direct = strcmp(labels, result) == 0;
  for (int i = 0; i < rank; i++) shape[i] = roles.size[(int)labels[i]];
  product.tensor = out;
  if (!direct) TRY(call_scratch(c, out.dtype, rank, shape, &product.tensor));
  rdna_tensor matrices = reshaped(&product.tensor, 3, (int64_t[]){batch, m, n});
  TRY(rdna_op_gemm(c->stream, 1, &matrix_a, &matrix_b, 0, NULL, &matrices));
  if (direct) return RDNA_OK;
  strcpy(product.labels, labels);
  rdna_tensor view = ordered(&product, result);
  return rdna_op_copy(c->stream, &view, &out);
}

rdna_status compute_einsum(call *c) {
  const char *equation = c->attributes->equation, *arrow = strstr(equation, "->"), *comma = strchr(equation, ',');
  struct operand x[2];
  char result[RDNA_MAX_RANK + 1];
  int count = call_inputs(c), spread = 0;
  if (!arrow || count > 2 || (count == 2) != (comma != NULL))
    return call_fail(c, RDNA_UNSUPPORTED, "Einsum '%s' of %d operands; RDNA has one or two, and '->'", equation, count);
  for (int i = 0; i < count; i++) {
    TRY(call_input(c, i, &x[i].tensor));
    TRY(read_labels(c, i ? comma + 1 : equation, i || !comma ? arrow : comma, x[i].tensor.rank, x[i].labels));
    for (const char *at = x[i].labels; *at; at++)
      if (*at <= RDNA_MAX_RANK && *at > spread) spread = *at;
  }
  int named = 0;
  for (const char *at = arrow + 2; *at; at++) named += isalpha((unsigned char)*at) != 0;
  int rank = named + (strstr(arrow, "...") ? spread : 0);
  if (rank > RDNA_MAX_RANK) return call_fail(c, RDNA_UNSUPPORTED, "Einsum '%s': %d dimensions", equation, rank);
  TRY(read_labels(c, arrow + 2, arrow + strlen(arrow), rank, result));
  for (int i = 0; i < count; i++) TRY(sum_over(c, &x[i], only_here(&x[i], count == 2 ? x[1 - i].labels : "", result)));
  if (count == 2) return multiply(c, &x[0], &x[1], result);
  if (x[0].tensor.rank != rank || strspn(result, x[0].labels) != (size_t)rank)
    return call_fail(c, RDNA_UNSUPPORTED, "Einsum '%s': the result has a dimension that the operand has not", equation);
  rdna_tensor view = ordered(&x[0], result), out;
  TRY(call_output(c, 0, view.rank, view.shape, &out));
  return rdna_op_copy(c->stream, &view, &out);
}
