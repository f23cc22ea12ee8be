/* Of a weight W, out x in, files have with a scale that is 1 where nothing is said of alpha:
 *
 *     lora_up (out, rank), lora_down (rank, in)                  W + alpha / rank up down
 *     hada_w1_a, w1_b, w2_a, w2_b, each pair as up and down      W + alpha / rank (w1_a w1_b) * (w2_a w2_b)
 *     diff, diff_b of a bias                                     W + diff
 *     lokr_w1 (a, b), lokr_w2 (out / a, in / b), or either as    W + alpha / rank w1 (x) w2, Kronecker's product; with
 *       a pair w1_a w1_b                                         neither as a pair W + w1 (x) w2
 *
 * The last two are LyCORIS' (Hyeon-Woo et al., 2022; Yeh et al., 2024). Windows count to what is read. Names are those
 * of kohya-ss' scripts, of PEFT in diffusers, or of diffusers before it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "math/common/plan/scratch.h"
#include "model/image/lora_files.h"
#include "rdna/memory.h"
#include "rdna/op.h"

typedef rdna__lora_file file;

/* down or the like, and up */
static const char *const low_rank[][2] = {{"lora_down.weight", "lora_up.weight"},
                                          {"lora_A.weight", "lora_B.weight"},
                                          {"lora_A.default.weight", "lora_B.default.weight"},
                                          {"lora.down.weight", "lora.up.weight"},
                                          {"lora_linear_layer.down.weight", "lora_linear_layer.up.weight"},
                                          {"down.weight", "up.weight"}};
enum { LOW_RANKS = sizeof low_rank / sizeof *low_rank };
static const char *const others[] = {"hada_w1_a", "lokr_w1", "lokr_w1_a", "diff"};

static bool has_change(const file *f, const char *base, bool bias) {
  if (bias) return rdna__lora_ask(f, base, "diff_b", false) != NULL;
  for (int i = 0; i < LOW_RANKS; i++)
    if (rdna__lora_ask(f, base, low_rank[i][0], false)) return true;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (rdna__lora_ask(f, base, others[i], false)) return true;
  return false;
}

/* The one of |bases| (count) by which the file has a change; NULL: none, or it is left out. */
static const rdna__lora_base *find_change(const file *f, const rdna__lora_base *bases, int count, bool bias) {
  for (int k = 0; k < count && f->scale != 0; k++)
    if (has_change(f, bases[k].name, bias)) return &bases[k];
  return NULL;
}

bool rdna__loras_change(const rdna__loras *l, const rdna__lora_module *module) {
  rdna__lora_base bases[RDNA__LORA_BASES];
  int count = l ? rdna__lora_names(module, bases) : 0;
  for (int i = 0; l && i < l->count; i++)
    if (find_change(&l->files[i], bases, count, module->bias)) return true;
  return false;
}

/* ---- adding ---- */

typedef struct adding {
  file *file;
  const char *base;
  rdna__lora_part part;
  rdna_stream *stream;
  bool bias, ambiguous;      /* the latter: it may be of the last norm, and the file's halves lie otherwise */
  int64_t out, in;           /* of the weight */
  int64_t first, rows;       /* of what the file has: the first that is the weight's, and all */
  bool swapped;              /* the weight's halves are the file's the other way round */
  const rdna_tensor *weight; /* (out, in), f32 */
  rdna__scratch scratch;
} adding;

/* The file's of the weight's row |i|. */
static int64_t row_of(const adding *a, int64_t i) { return a->first + (a->swapped ? (i + a->out / 2) % a->out : i); }

/* Sizes of a tensor as a matrix, windows with the columns. */
static void sizes_of(const rdna__safetensor *t, int64_t *rows, int64_t *columns) {
  *rows = t->rank > 0 ? t->shape[0] : 1;
  *columns = 1;
  for (int i = 1; i < t->rank; i++) *columns *= t->shape[i];
}

static rdna_status check_sizes(const rdna__safetensor *t, int64_t rows, int64_t columns) {
  int64_t r, c;
  sizes_of(t, &r, &c);
  if (r == rows && c == columns) return RDNA_OK;
  return rdna__fail(
      RDNA_BAD_DATA,
      "tensor '%.160s' is %lld x %lld, and the model asks for %lld x %lld: the LoRA is for another version "
      "of it",
      t->name, (long long)r, (long long)c, (long long)rows, (long long)columns);
}

/* Values of |t|, |scale| times, by rows or by columns; the caller's to free. With |of| the weight's rows alone. */
static rdna_status read_values(const adding *of, const rdna__safetensor *t, bool turned, double scale, float **out) {
  int64_t rows, columns;
  sizes_of(t, &rows, &columns);
  if (of) rows = of->out;
  uint8_t *bytes = malloc(t->bytes + 1); /* a copy, as what is in the file's map may change or vanish */
  float *values = malloc((size_t)(rows * columns) * sizeof *values + 1);
  rdna_status status = bytes && values ? rdna__file_read(t->data, t->bytes, bytes)
                                       : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for tensor '%s'", t->name);
  rdna__safetensor copy = *t;
  copy.data = bytes;
  for (int64_t i = 0; status == RDNA_OK && i < rows; i++) {
    int64_t from = (of ? row_of(of, i) : i) * columns;
    for (int64_t k = 0; k < columns; k++)
      values[turned ? k * rows + i : i * columns + k] =
          (float)(scale * (double)rdna__safetensor_value(&copy, from + k));
  }
  free(bytes);
  if (status != RDNA_OK) free(values);
  *out = status == RDNA_OK ? values : NULL;
  return status;
}

/* |t| on the device as a matrix of f32: of what makes the weight's rows those alone, and of others it may be turned. */
static rdna_status put(adding *a, const rdna__safetensor *t, bool makes, bool turned, double scale, rdna_tensor *out) {
  int64_t rows, columns;
  float *values;
  sizes_of(t, &rows, &columns);
  if (makes) rows = a->out;
  const int64_t shape[] = {turned ? columns : rows, turned ? rows : columns};
  RDNA_TRY(rdna__scratch_tensor(&a->scratch, RDNA_F32, 2, shape, out));
  RDNA_TRY(read_values(makes ? a : NULL, t, turned, scale, &values));
  rdna_status status = rdna_copy_to_device(a->stream, out->data, values, rdna_dtype_bytes(RDNA_F32, rows * columns));
  rdna_status waited = rdna_stream_synchronize(a->stream);
  free(values);
  return status == RDNA_OK ? waited : status;
}

/* The file's scale times alpha / |rank|; rank 0: there is none, and so no alpha. */
static rdna_status scale_of(const adding *a, int64_t rank, double *out) {
  double said = a->file->said[a->part].rank;
  const rdna__safetensor *t = rdna__lora_ask(a->file, a->base, "alpha", true);
  int64_t rows, columns;
  float *alpha;
  *out = a->file->scale * (said > 0 && rank ? a->file->said[a->part].scale : 1);
  if (said > 0 && rank && said != (double)rank)
    return rdna__fail(RDNA_BAD_DATA, "its metadata says rank %g, and '%.160s' has rank %lld", said, a->base,
                      (long long)rank);
  if (!t || !rank) return RDNA_OK;
  sizes_of(t, &rows, &columns);
  if (rows * columns != 1) return rdna__fail(RDNA_BAD_DATA, "tensor '%.160s' is no single number", t->name);
  RDNA_TRY(read_values(NULL, t, false, 1, &alpha));
  *out = a->file->scale * (double)*alpha / (double)rank;
  free(alpha);
  return RDNA_OK;
}

/* A tensor of |kind| that must be there. */
static rdna_status need(const adding *a, const char *kind, const rdna__safetensor **out) {
  *out = rdna__lora_ask(a->file, a->base, kind, true);
  return *out ? RDNA_OK : rdna__fail(RDNA_BAD_DATA, "there is no tensor '%.160s.%s'", a->base, kind);
}

/* The pair of matrices whose product is the change; NULL: it is of another kind. */
static rdna_status find_product(const adding *a, const rdna__safetensor **down, const rdna__safetensor **up) {
  *down = *up = NULL;
  for (int i = 0; i < LOW_RANKS && !*down; i++) {
    *down = rdna__lora_ask(a->file, a->base, low_rank[i][0], true);
    if (*down) RDNA_TRY(need(a, low_rank[i][1], up));
  }
  return RDNA_OK;
}

static rdna_status check_product(const adding *a, const rdna__safetensor *down, const rdna__safetensor *up,
                                 double *scale) {
  int64_t rank, columns;
  sizes_of(down, &rank, &columns);
  RDNA_TRY(check_sizes(down, rank, a->in));
  RDNA_TRY(check_sizes(up, a->rows, rank));
  return scale_of(a, rank, scale);
}

static rdna_status add_product(adding *a, const rdna__safetensor *down, const rdna__safetensor *up) {
  double scale;
  rdna_tensor x, w;
  RDNA_TRY(check_product(a, down, up, &scale));
  RDNA_TRY(put(a, up, true, false, scale, &x));
  RDNA_TRY(put(a, down, false, true, 1, &w));
  return rdna_op_linear_add(a->stream, &x, &w, NULL, a->weight);
}

static rdna_status add_hadamard(adding *a) {
  static const char *const kinds[] = {"hada_w1_a", "hada_w1_b", "hada_w2_a", "hada_w2_b"};
  const rdna_scalar zero = rdna_scalar_real(0);
  rdna_tensor products[2];
  int64_t rank, columns;
  double scale;
  const rdna__safetensor *t[4];
  for (int i = 0; i < 4; i++) RDNA_TRY(need(a, kinds[i], &t[i]));
  sizes_of(t[1], &rank, &columns);
  RDNA_TRY(scale_of(a, rank, &scale));
  for (int i = 0; i < 2; i++) {
    rdna_tensor x, w;
    sizes_of(t[2 * i + 1], &rank, &columns);
    RDNA_TRY(check_sizes(t[2 * i], a->rows, rank));
    RDNA_TRY(check_sizes(t[2 * i + 1], rank, a->in));
    RDNA_TRY(put(a, t[2 * i], true, false, i ? 1 : scale, &x));
    RDNA_TRY(put(a, t[2 * i + 1], false, true, 1, &w));
    RDNA_TRY(rdna__scratch_tensor(&a->scratch, RDNA_F32, 2, a->weight->shape, &products[i]));
    RDNA_TRY(rdna_op_linear(a->stream, &x, &w, NULL, &products[i]));
  }
  RDNA_TRY(rdna_op_zip(a->stream, RDNA_ZIP_MUL, &products[0], &products[1], zero, zero, &products[0]));
  return rdna_op_zip(a->stream, RDNA_ZIP_ADD, a->weight, &products[0], zero, zero, a->weight);
}

/* One of Kronecker's two factors: |left| alone, or |left| |right|. */
typedef struct factor {
  const rdna__safetensor *left, *right;
  int64_t rows, columns, rank; /* 0: |left| alone */
} factor;

/* Its sizes are the file's word, and may be of anything: nothing is read yet. */
static rdna_status find_factor(const adding *a, const char *name, factor *out) {
  char kind[32];
  *out = (factor){.left = rdna__lora_ask(a->file, a->base, name, true)};
  if (out->left) {
    sizes_of(out->left, &out->rows, &out->columns);
    return RDNA_OK;
  }
  int64_t same;
  snprintf(kind, sizeof kind, "%s_a", name);
  RDNA_TRY(need(a, kind, &out->left));
  snprintf(kind, sizeof kind, "%s_b", name);
  RDNA_TRY(need(a, kind, &out->right));
  sizes_of(out->right, &out->rank, &out->columns);
  sizes_of(out->left, &out->rows, &same);
  return check_sizes(out->left, out->rows, out->rank);
}

/* (rows, columns) values, the caller's to free. */
static rdna_status read_factor(const factor *f, float **out) {
  float *left = NULL, *right = NULL;
  *out = NULL;
  if (!f->right) return read_values(NULL, f->left, false, 1, out);
  rdna_status status = read_values(NULL, f->left, false, 1, &left);
  if (status == RDNA_OK) status = read_values(NULL, f->right, false, 1, &right);
  float *product = calloc((size_t)(f->rows * f->columns) + 1, sizeof *product);
  if (status == RDNA_OK && !product) status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a LoRA");
  for (int64_t i = 0; status == RDNA_OK && i < f->rows; i++)
    for (int64_t j = 0; j < f->rank; j++)
      for (int64_t k = 0; k < f->columns; k++)
        product[i * f->columns + k] += left[i * f->rank + j] * right[j * f->columns + k];
  free(left);
  free(right);
  if (status == RDNA_OK)
    *out = product;
  else
    free(product);
  return status;
}

/* whole = scale first (x) second, the weight's rows of it; the second's columns, with its window, are those of a
 * channel that is read */
static void multiply_kronecker(const adding *a, const factor f[2], const float *first, const float *second,
                               double scale, float *whole) {
  int64_t rows = f[1].rows, columns = f[1].columns, in = f[0].columns * columns;
  for (int64_t i = 0; i < a->out; i++) {
    int64_t of = row_of(a, i);
    for (int64_t k = 0; k < in; k++)
      whole[i * in + k] = (float)(scale * (double)first[of / rows * f[0].columns + k / columns] *
                                  (double)second[of % rows * columns + k % columns]);
  }
}

static rdna_status add_whole(adding *a, const float *values) {
  const rdna_scalar zero = rdna_scalar_real(0);
  rdna_tensor change;
  RDNA_TRY(rdna__scratch_tensor(&a->scratch, RDNA_F32, 2, a->weight->shape, &change));
  RDNA_TRY(rdna_copy_to_device(a->stream, change.data, values, rdna_dtype_bytes(RDNA_F32, rdna_tensor_count(&change))));
  RDNA_TRY(rdna_op_zip(a->stream, RDNA_ZIP_ADD, a->weight, &change, zero, zero, a->weight));
  return rdna_stream_synchronize(a->stream); /* |values| are the caller's */
}

/* first * second == product, whatever the two are */
static bool makes(int64_t first, int64_t second, int64_t product) {
  return first > 0 && product % first == 0 && product / first == second;
}

static rdna_status add_kronecker(adding *a) {
  factor f[2];
  float *first = NULL, *second = NULL, *whole = NULL;
  double scale;
  RDNA_TRY(find_factor(a, "lokr_w1", &f[0]));
  RDNA_TRY(find_factor(a, "lokr_w2", &f[1]));
  const int64_t asked[] = {a->rows, a->in};
  if (!makes(f[0].rows, f[1].rows, asked[0]) || !makes(f[0].columns, f[1].columns, asked[1]))
    return rdna__fail(RDNA_BAD_DATA,
                      "'%.160s' has factors of %lld x %lld and %lld x %lld, and the model asks for %lld x %lld: the "
                      "LoRA is for another version of it",
                      a->base, (long long)f[0].rows, (long long)f[0].columns, (long long)f[1].rows,
                      (long long)f[1].columns, (long long)asked[0], (long long)asked[1]);
  int64_t rank = f[1].rank ? f[1].rank : f[0].rank;
  RDNA_TRY(scale_of(a, rank, &scale));
  rdna_status status = read_factor(&f[0], &first);
  if (status == RDNA_OK) status = read_factor(&f[1], &second);
  if (status == RDNA_OK && !(whole = malloc((size_t)rdna_tensor_count(a->weight) * sizeof *whole + 1)))
    status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a LoRA");
  if (status == RDNA_OK) {
    multiply_kronecker(a, f, first, second, scale, whole);
    status = add_whole(a, whole);
  }
  free(first);
  free(second);
  free(whole);
  return status;
}

static rdna_status check_kind(const adding *a) {
  static const char *const unknown[] = {"dora_scale", "lora_mid.weight", "hada_t1", "lokr_t2", "lora_magnitude_vector"};
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
    if (rdna__lora_ask(a->file, a->base, unknown[i], false))
      return rdna__fail(RDNA_UNSUPPORTED,
                        "it has '%.160s.%s'; changes with magnitudes (DoRA) or cores (Tucker) are not "
                        "known",
                        a->base, unknown[i]);
  return RDNA_OK;
}

/* The change itself, as programs write it that compare two models. */
static rdna_status add_difference(adding *a, const char *kind) {
  const rdna__safetensor *t;
  float *values;
  RDNA_TRY(need(a, kind, &t));
  RDNA_TRY(check_sizes(t, a->rows, a->in));
  RDNA_TRY(read_values(a, t, false, a->file->scale, &values));
  rdna_status status = add_whole(a, values);
  free(values);
  return status;
}

/* Whatever the file has of the module. */
static rdna_status add_one(adding *a) {
  const rdna__safetensor *down, *up;
  if (a->bias && a->ambiguous)
    return rdna__fail(RDNA_UNSUPPORTED,
                      "it has '%.160s.diff_b', whose halves lie otherwise in the last block, which a bias does not say",
                      a->base);
  if (a->bias) return add_difference(a, "diff_b");
  RDNA_TRY(check_kind(a));
  RDNA_TRY(find_product(a, &down, &up));
  if (down) return add_product(a, down, up);
  if (rdna__lora_ask(a->file, a->base, "diff", false)) return add_difference(a, "diff");
  return rdna__lora_ask(a->file, a->base, "hada_w1_a", false) ? add_hadamard(a) : add_kronecker(a);
}

/* ---- all files ---- */

/* The last norm's rows that scale and shift, of a text that is not needed behind the last block, too. */
static bool is_last_norm(const char *module, int64_t out, int64_t in) {
  const char *dot = strstr(module, "norm1_context.linear");
  return strcmp(module, "norm_out.linear") == 0 || (dot && out == 2 * in);
}

static adding begin(file *f, const rdna__lora_base *base, const rdna__lora_module *m, rdna_stream *stream, int64_t out,
                    int64_t in) {
  adding a = {.file = f, .base = base->name, .part = m->part, .stream = stream, .bias = m->bias, .out = out, .in = in};
  int64_t shares = base->end - base->first, share = out / shares;
  a.first = base->first * share;
  a.rows = out % shares == 0 ? base->parts * share : 0; /* of which no tensor is */
  a.swapped = base->made_first != m->swapped && m->names->kind >= CHECKPOINT_FLUX && is_last_norm(m->name, out, in);
  a.ambiguous = base->made_first != m->swapped && m->names->kind == CHECKPOINT_SD3 && strstr(m->name, "norm1_context");
  a.scratch = (rdna__scratch){.stream = stream, .holder = "a LoRA"};
  return a;
}

rdna_status rdna__loras_add(rdna__loras *l, const rdna__lora_module *module, rdna_stream *stream,
                            const rdna_tensor *weight) {
  rdna__lora_base bases[RDNA__LORA_BASES];
  int count = rdna__lora_names(module, bases);
  int64_t out = weight->shape[0], all = rdna_tensor_count(weight);
  const int64_t shape[] = {out, out ? all / out : 0};
  const rdna_tensor matrix = rdna_tensor_contiguous(weight->data, RDNA_F32, 2, shape);
  for (int i = 0; i < l->count; i++) {
    const rdna__lora_base *base = find_change(&l->files[i], bases, count, module->bias);
    if (!base) continue;
    adding a = begin(&l->files[i], base, module, stream, shape[0], shape[1]);
    a.weight = &matrix;
    rdna_status status = rdna__scratch_release(&a.scratch, add_one(&a));
    if (status != RDNA_OK) return rdna__annotate(status, "%s", l->files[i].path);
  }
  return RDNA_OK;
}

int64_t rdna__loras_rank(const rdna__loras *l, const rdna__lora_module *module) {
  rdna__lora_base bases[RDNA__LORA_BASES];
  int count = rdna__lora_names(module, bases);
  int64_t sum = 0;
  for (int i = 0; i < l->count; i++) {
    const rdna__lora_base *base = find_change(&l->files[i], bases, count, module->bias);
    const rdna__safetensor *down = NULL;
    for (int k = 0; base && k < LOW_RANKS && !down; k++)
      down = rdna__lora_ask(&l->files[i], base->name, low_rank[k][0], false);
    if (base && !down) return 0;
    int64_t rank = 0, columns;
    if (down) sizes_of(down, &rank, &columns);
    sum += rank;
  }
  return sum;
}

/* Of |one| its two matrices, from |at| on. */
static rdna_status load_one(adding *one, int64_t at, const rdna_tensor *down, const rdna_tensor *up, int64_t *rank) {
  const rdna__safetensor *files[2];
  double scale;
  rdna_tensor made, read, above = *up, below = *down;
  RDNA_TRY(check_kind(one));
  RDNA_TRY(find_product(one, &files[0], &files[1]));
  RDNA_TRY(check_product(one, files[0], files[1], &scale));
  RDNA_TRY(put(one, files[1], true, false, scale, &made));
  RDNA_TRY(put(one, files[0], false, false, 1, &read));
  *rank = read.shape[0];
  above.data = (char *)up->data + rdna_dtype_bytes(up->dtype, at);
  above.shape[1] = below.shape[0] = *rank;
  below.data = (char *)down->data + rdna_dtype_bytes(down->dtype, at * down->stride[0]);
  RDNA_TRY(rdna_op_copy(one->stream, &made, &above));
  return rdna_op_copy(one->stream, &read, &below);
}

rdna_status rdna__loras_load(rdna__loras *l, const rdna__lora_module *module, rdna_stream *stream,
                             const rdna_tensor *down, const rdna_tensor *up) {
  rdna__lora_base bases[RDNA__LORA_BASES];
  int count = rdna__lora_names(module, bases);
  int64_t at = 0, rank = 0;
  for (int i = 0; i < l->count; i++) {
    const rdna__lora_base *base = find_change(&l->files[i], bases, count, module->bias);
    if (!base) continue;
    adding a = begin(&l->files[i], base, module, stream, up->shape[0], down->shape[1]);
    rdna_status status = rdna__scratch_release(&a.scratch, load_one(&a, at, down, up, &rank));
    if (status != RDNA_OK) return rdna__annotate(status, "%s", l->files[i].path);
    at += rank;
  }
  return RDNA_OK;
}
