/* Of a weight W, out x in, files have with a scale that is 1 where nothing is said of alpha:
 *
 *     lora_up (out, rank), lora_down (rank, in)                  W + alpha / rank up down
 *     hada_w1_a, w1_b, w2_a, w2_b, each pair as up and down      W + alpha / rank (w1_a w1_b) * (w2_a w2_b)
 *     lokr_w1 (a, b), lokr_w2 (out / a, in / b), or either as    W + alpha / rank w1 (x) w2, Kronecker's product; with
 *       a pair w1_a w1_b                                         neither as a pair W + w1 (x) w2
 *
 * The last two are LyCORIS' (Hyeon-Woo et al., 2022; Yeh et al., 2024). Windows count to what is read. Names are those
 * of kohya-ss' scripts, of PEFT in diffusers, or of diffusers before it. */
#include "model/image/lora.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "math/common/plan/scratch.h"
#include "model/image/settings.h"
#include "rdna/memory.h"
#include "rdna/op.h"

enum { NAME_BYTES = 512, BASES = 6 };

typedef struct file {
  rdna__safetensors *tensors;
  char *path;
  double opened, scale; /* what it is added by: as it was opened, and now; 0: it is left out */
  bool *used;           /* (tensors) */
  struct {
    double rank, scale; /* alpha / rank; rank 0: nothing is said */
  } said[LORA_PARTS];   /* by the file of itself */
} file;

struct rdna__loras {
  file files[RDNA__IMAGE_LORAS];
  int count;
};

/* ---- whose a tensor is ---- */

static const struct {
  const char *prefix;
  rdna__lora_part part;
} owners[] = {{"lora_unet_", LORA_UNET},       {"unet.", LORA_UNET},
              {"diffusion_model.", LORA_UNET}, {"lora_te_", LORA_ENCODER},
              {"lora_te1_", LORA_ENCODER},     {"text_encoder.", LORA_ENCODER},
              {"lora_te2_", LORA_ENCODER_2},   {"text_encoder_2.", LORA_ENCODER_2}};

/* LORA_PARTS: nobody's. */
static rdna__lora_part owner_of(const char *name) {
  for (size_t i = 0; i < sizeof owners / sizeof *owners; i++)
    if (strncmp(name, owners[i].prefix, strlen(owners[i].prefix)) == 0) return owners[i].part;
  return LORA_PARTS;
}

static rdna_status check_owners(const file *f, int encoders) {
  for (size_t i = 0; i < rdna__safetensors_count(f->tensors); i++) {
    const rdna__safetensor *t = rdna__safetensors_at(f->tensors, i);
    rdna__lora_part part = owner_of(t->name);
    if (part == LORA_PARTS)
      return rdna__fail(RDNA_UNSUPPORTED, "tensor '%.120s' is called as no LoRA's of Stable Diffusion", t->name);
    if (part == LORA_ENCODER_2 && encoders < 2)
      return rdna__fail(
          RDNA_BAD_DATA,
          "tensor '%.120s' is for a second text encoder, which the model has not: the LoRA is for another "
          "version",
          t->name);
    if (t->dtype != RDNA_F32 && t->dtype != RDNA_F16 && t->dtype != RDNA_BF16)
      return rdna__fail(RDNA_UNSUPPORTED, "tensor '%.120s' is of type %s; F32, F16 and BF16 are read", t->name,
                        t->type);
    for (int k = 0; k < t->rank; k++)
      if (t->shape[k] < 1) return rdna__fail(RDNA_BAD_DATA, "tensor '%.120s' has no values", t->name);
  }
  return RDNA_OK;
}

/* ---- what a file says of itself ---- */

static bool is_empty(const json_t *value) {
  return !value || json_is_null(value) || (json_is_object(value) && json_object_size(value) == 0);
}

/* diffusers has PEFT's settings of each part in "lora_adapter_metadata". */
static rdna_status read_ratios(const json_t *json, file *f) {
  static const char *const parts[] = {"unet", "text_encoder", "text_encoder_2"};
  for (int i = 0; i < LORA_PARTS; i++) {
    char names[6][64];
    static const char *const forms[] = {"r", "lora_alpha", "use_rslora", "use_dora", "rank_pattern", "alpha_pattern"};
    for (int k = 0; k < 6; k++) snprintf(names[k], sizeof names[k], "%s.%s", parts[i], forms[k]);
    const json_t *rank = json_object_get(json, names[0]), *alpha = json_object_get(json, names[1]);
    if (!rank && !alpha) continue;
    double r = json_number_value(rank), a = json_number_value(alpha);
    if (!(r >= 1) || !json_is_number(alpha))
      return rdna__fail(RDNA_BAD_DATA, "its metadata says '%s' and '%s' as no numbers", names[0], names[1]);
    if (json_is_true(json_object_get(json, names[3])) || !is_empty(json_object_get(json, names[4])) ||
        !is_empty(json_object_get(json, names[5])))
      return rdna__fail(
          RDNA_UNSUPPORTED,
          "its metadata says '%s', '%s' or '%s'; one rank and alpha for a part are known, and no magnitudes", names[3],
          names[4], names[5]);
    f->said[i].rank = r;
    f->said[i].scale = a / (json_is_true(json_object_get(json, names[2])) ? sqrt(r) : r);
  }
  return RDNA_OK;
}

static rdna_status read_metadata(file *f) {
  const char *text = rdna__safetensors_metadata(f->tensors, "lora_adapter_metadata");
  json_t *json = NULL;
  if (!text) return RDNA_OK;
  RDNA_TRY(rdna__annotate(rdna__settings_parse(text, strlen(text), &json), "its lora_adapter_metadata"));
  rdna_status status = read_ratios(json, f);
  json_decref(json);
  return status;
}

/* ---- opening ---- */

static rdna_status open_one(const rdna_image_lora *given, int encoders, file *f) {
  f->opened = f->scale = given->scale;
  f->path = strdup(given->path);
  if (!f->path) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a path");
  RDNA_TRY(rdna__safetensors_open_file(given->path, &f->tensors));
  size_t count = rdna__safetensors_count(f->tensors);
  f->used = calloc(count + 1, sizeof *f->used);
  if (!f->used) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a LoRA");
  rdna_status status = count ? check_owners(f, encoders) : rdna__fail(RDNA_BAD_DATA, "it has no tensors");
  if (status == RDNA_OK) status = read_metadata(f);
  return rdna__annotate(status, "%s", given->path);
}

rdna_status rdna__loras_open(const rdna_image_lora *given, int count, int encoders, rdna__loras **out) {
  *out = NULL;
  if (count == 0) return RDNA_OK;
  if (count < 0 || count > RDNA__IMAGE_LORAS)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%d LoRAs; up to %d may be", count, RDNA__IMAGE_LORAS);
  rdna__loras *l = calloc(1, sizeof *l);
  if (!l) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for LoRAs");
  rdna_status status = RDNA_OK;
  for (int i = 0; i < count && status == RDNA_OK; i++) {
    if (!given[i].path || !isfinite(given[i].scale))
      status = rdna__fail(RDNA_INVALID_ARGUMENT, "LoRA %d has no path, or a scale that is no number", i);
    else
      status = open_one(&given[i], encoders, &l->files[l->count++]);
  }
  if (status == RDNA_OK)
    *out = l;
  else
    rdna__loras_close(l);
  return status;
}

void rdna__loras_close(rdna__loras *l) {
  if (!l) return;
  for (int i = 0; i < l->count; i++) {
    rdna__safetensors_close(l->files[i].tensors);
    free(l->files[i].path);
    free(l->files[i].used);
  }
  free(l);
}

int rdna__loras_count(const rdna__loras *l) { return l ? l->count : 0; }
const char *rdna__loras_path(const rdna__loras *l, int i) { return l->files[i].path; }
double rdna__loras_opened_scale(const rdna__loras *l, int i) { return l->files[i].opened; }

bool rdna__loras_use(rdna__loras *l, const double *scales, double used[RDNA__IMAGE_LORAS]) {
  bool other = false;
  for (int i = 0; l && i < l->count; i++) {
    double scale = scales ? scales[i] : l->files[i].opened;
    other |= used[i] != scale;
    used[i] = l->files[i].scale = scale;
  }
  return other;
}

/* ---- names ---- */

static void underscore(char *name) {
  for (; *name; name++)
    if (*name == '.') *name = '_';
}

/* What files may call the module, before the tensor's own name. */
static int name_module(rdna__lora_part part, const rdna__checkpoint_part *names, const char *module,
                       char bases[BASES][NAME_BYTES]) {
  char there[NAME_BYTES];
  int count = 0;
  if (part == LORA_UNET) {
    snprintf(bases[count++], NAME_BYTES, "lora_unet_%s", module);
    bool known = rdna__checkpoint_name(names, module, there, sizeof there);
    if (known) snprintf(bases[count++], NAME_BYTES, "lora_unet_%s", there);
    for (int i = 0; i < count; i++) underscore(bases[i]);
    snprintf(bases[count++], NAME_BYTES, "unet.%s", module);
    if (known) snprintf(bases[count++], NAME_BYTES, "diffusion_model.%s", there);
    const char *last = strstr(module, ".to_");
    if (last) { /* as processors of attention had them; "to_out.0" without its number */
      int length = (int)strcspn(last + 1, ".");
      snprintf(bases[count++], NAME_BYTES, "unet.%.*s.processor.%.*s_lora", (int)(last - module), module, length,
               last + 1);
    }
    return count;
  }
  static const char *const kinds[2][3] = {{"lora_te_", "lora_te1_", "text_encoder."},
                                          {"lora_te2_", "lora_te2_", "text_encoder_2."}};
  bool whole = strncmp(module, "text_model.", 11) == 0 || strncmp(module, "text_projection", 15) == 0;
  for (int i = 0; i < 3; i++) {
    const char *kind = kinds[part == LORA_ENCODER_2][i];
    snprintf(bases[count], NAME_BYTES, "%s%s%s", kind, whole ? "" : "text_model.", module);
    if (i < 2) underscore(bases[count]);
    count++;
  }
  return count;
}

/* The tensor |base|.|kind| of the file, which counts as used; NULL: there is none. */
static const rdna__safetensor *ask(const file *f, const char *base, const char *kind, bool use) {
  char name[NAME_BYTES + 64];
  snprintf(name, sizeof name, "%s.%s", base, kind);
  const rdna__safetensor *t = rdna__safetensors_find(f->tensors, name);
  if (t && use) f->used[t - rdna__safetensors_at(f->tensors, 0)] = true;
  return t;
}

/* down or the like, and up */
static const char *const low_rank[][2] = {{"lora_down.weight", "lora_up.weight"},
                                          {"lora_A.weight", "lora_B.weight"},
                                          {"lora_A.default.weight", "lora_B.default.weight"},
                                          {"lora.down.weight", "lora.up.weight"},
                                          {"lora_linear_layer.down.weight", "lora_linear_layer.up.weight"},
                                          {"down.weight", "up.weight"}};
enum { LOW_RANKS = sizeof low_rank / sizeof *low_rank };
static const char *const others[] = {"hada_w1_a", "lokr_w1", "lokr_w1_a"};

static bool has_change(const file *f, const char *base) {
  for (int i = 0; i < LOW_RANKS; i++)
    if (ask(f, base, low_rank[i][0], false)) return true;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (ask(f, base, others[i], false)) return true;
  return false;
}

bool rdna__loras_change(const rdna__loras *l, rdna__lora_part part, const rdna__checkpoint_part *names,
                        const char *module) {
  char bases[BASES][NAME_BYTES];
  int count = l ? name_module(part, names, module, bases) : 0;
  for (int i = 0; l && i < l->count; i++)
    for (int k = 0; k < count; k++)
      if (l->files[i].scale != 0 && has_change(&l->files[i], bases[k])) return true;
  return false;
}

/* ---- adding ---- */

typedef struct adding {
  file *file;
  const char *base;
  rdna__lora_part part;
  rdna_stream *stream;
  rdna_tensor weight; /* (out, in), f32 */
  rdna__scratch scratch;
} adding;

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

/* Values of |t|, |scale| times, by rows or by columns; the caller's to free. */
static rdna_status read_values(const rdna__safetensor *t, bool turned, double scale, float **out) {
  int64_t rows, columns;
  sizes_of(t, &rows, &columns);
  uint8_t *bytes = malloc(t->bytes + 1); /* a copy, as what is in the file's map may change or vanish */
  float *values = malloc((size_t)(rows * columns) * sizeof *values + 1);
  rdna_status status = bytes && values ? rdna__file_read(t->data, t->bytes, bytes)
                                       : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for tensor '%s'", t->name);
  rdna__safetensor copy = *t;
  copy.data = bytes;
  for (int64_t i = 0; status == RDNA_OK && i < rows; i++)
    for (int64_t k = 0; k < columns; k++)
      values[turned ? k * rows + i : i * columns + k] =
          (float)(scale * (double)rdna__safetensor_value(&copy, i * columns + k));
  free(bytes);
  if (status != RDNA_OK) free(values);
  *out = status == RDNA_OK ? values : NULL;
  return status;
}

/* |t| on the device as a matrix. */
static rdna_status put(adding *a, const rdna__safetensor *t, bool turned, double scale, rdna_tensor *out) {
  int64_t rows, columns;
  float *values;
  sizes_of(t, &rows, &columns);
  const int64_t shape[] = {turned ? columns : rows, turned ? rows : columns};
  RDNA_TRY(rdna__scratch_tensor(&a->scratch, RDNA_F32, 2, shape, out));
  RDNA_TRY(read_values(t, turned, scale, &values));
  rdna_status status = rdna_copy_to_device(a->stream, out->data, values, rdna_dtype_bytes(RDNA_F32, rows * columns));
  rdna_status waited = rdna_stream_synchronize(a->stream);
  free(values);
  return status == RDNA_OK ? waited : status;
}

/* The file's scale times alpha / |rank|; rank 0: there is none, and so no alpha. */
static rdna_status scale_of(const adding *a, int64_t rank, double *out) {
  double said = a->file->said[a->part].rank;
  const rdna__safetensor *t = ask(a->file, a->base, "alpha", true);
  int64_t rows, columns;
  float *alpha;
  *out = a->file->scale * (said > 0 && rank ? a->file->said[a->part].scale : 1);
  if (said > 0 && rank && said != (double)rank)
    return rdna__fail(RDNA_BAD_DATA, "its metadata says rank %g, and '%.160s' has rank %lld", said, a->base,
                      (long long)rank);
  if (!t || !rank) return RDNA_OK;
  sizes_of(t, &rows, &columns);
  if (rows * columns != 1) return rdna__fail(RDNA_BAD_DATA, "tensor '%.160s' is no single number", t->name);
  RDNA_TRY(read_values(t, false, 1, &alpha));
  *out = a->file->scale * (double)*alpha / (double)rank;
  free(alpha);
  return RDNA_OK;
}

static rdna_status add_product(adding *a, const rdna__safetensor *down, const rdna__safetensor *up) {
  int64_t rank, columns;
  double scale;
  rdna_tensor x, w;
  sizes_of(down, &rank, &columns);
  RDNA_TRY(check_sizes(down, rank, a->weight.shape[1]));
  RDNA_TRY(check_sizes(up, a->weight.shape[0], rank));
  RDNA_TRY(scale_of(a, rank, &scale));
  RDNA_TRY(put(a, up, false, scale, &x));
  RDNA_TRY(put(a, down, true, 1, &w));
  return rdna_op_linear_add(a->stream, &x, &w, NULL, &a->weight);
}

/* A tensor of |kind| that must be there. */
static rdna_status need(const adding *a, const char *kind, const rdna__safetensor **out) {
  *out = ask(a->file, a->base, kind, true);
  return *out ? RDNA_OK : rdna__fail(RDNA_BAD_DATA, "there is no tensor '%.160s.%s'", a->base, kind);
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
    RDNA_TRY(check_sizes(t[2 * i], a->weight.shape[0], rank));
    RDNA_TRY(check_sizes(t[2 * i + 1], rank, a->weight.shape[1]));
    RDNA_TRY(put(a, t[2 * i], false, i ? 1 : scale, &x));
    RDNA_TRY(put(a, t[2 * i + 1], true, 1, &w));
    RDNA_TRY(rdna__scratch_tensor(&a->scratch, RDNA_F32, 2, a->weight.shape, &products[i]));
    RDNA_TRY(rdna_op_linear(a->stream, &x, &w, NULL, &products[i]));
  }
  RDNA_TRY(rdna_op_zip(a->stream, RDNA_ZIP_MUL, &products[0], &products[1], zero, zero, &products[0]));
  return rdna_op_zip(a->stream, RDNA_ZIP_ADD, &a->weight, &products[0], zero, zero, &a->weight);
}

/* One of Kronecker's two factors: |left| alone, or |left| |right|. */
typedef struct factor {
  const rdna__safetensor *left, *right;
  int64_t rows, columns, rank; /* 0: |left| alone */
} factor;

/* Its sizes are the file's word, and may be of anything: nothing is read yet. */
static rdna_status find_factor(const adding *a, const char *name, factor *out) {
  char kind[32];
  *out = (factor){.left = ask(a->file, a->base, name, true)};
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
  if (!f->right) return read_values(f->left, false, 1, out);
  rdna_status status = read_values(f->left, false, 1, &left);
  if (status == RDNA_OK) status = read_values(f->right, false, 1, &right);
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

/* whole = scale first (x) second; the second's columns, with its window, are those of a channel that is read */
static void multiply_kronecker(const factor f[2], const float *first, const float *second, double scale, float *whole) {
  int64_t rows = f[1].rows, columns = f[1].columns, in = f[0].columns * columns;
  for (int64_t i = 0; i < f[0].rows * rows; i++)
    for (int64_t k = 0; k < in; k++)
      whole[i * in + k] = (float)(scale * (double)first[i / rows * f[0].columns + k / columns] *
                                  (double)second[i % rows * columns + k % columns]);
}

static rdna_status add_whole(adding *a, const float *values) {
  const rdna_scalar zero = rdna_scalar_real(0);
  rdna_tensor change;
  RDNA_TRY(rdna__scratch_tensor(&a->scratch, RDNA_F32, 2, a->weight.shape, &change));
  RDNA_TRY(rdna_copy_to_device(a->stream, change.data, values, rdna_dtype_bytes(RDNA_F32, rdna_tensor_count(&change))));
  RDNA_TRY(rdna_op_zip(a->stream, RDNA_ZIP_ADD, &a->weight, &change, zero, zero, &a->weight));
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
  const int64_t *asked = a->weight.shape;
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
  if (status == RDNA_OK && !(whole = malloc((size_t)rdna_tensor_count(&a->weight) * sizeof *whole + 1)))
    status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a LoRA");
  if (status == RDNA_OK) {
    multiply_kronecker(f, first, second, scale, whole);
    status = add_whole(a, whole);
  }
  free(first);
  free(second);
  free(whole);
  return status;
}

/* Whatever the file has of the module. */
static rdna_status add_one(adding *a) {
  static const char *const unknown[] = {"dora_scale", "lora_mid.weight", "hada_t1", "lokr_t2", "lora_magnitude_vector"};
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
    if (ask(a->file, a->base, unknown[i], false))
      return rdna__fail(RDNA_UNSUPPORTED,
                        "it has '%.160s.%s'; changes with magnitudes (DoRA) or cores (Tucker) are not "
                        "known",
                        a->base, unknown[i]);
  for (int i = 0; i < LOW_RANKS; i++) {
    const rdna__safetensor *down = ask(a->file, a->base, low_rank[i][0], true), *up;
    if (!down) continue;
    RDNA_TRY(need(a, low_rank[i][1], &up));
    return add_product(a, down, up);
  }
  return ask(a->file, a->base, "hada_w1_a", false) ? add_hadamard(a) : add_kronecker(a);
}

rdna_status rdna__loras_add(rdna__loras *l, rdna__lora_part part, const rdna__checkpoint_part *names,
                            const char *module, rdna_stream *stream, const rdna_tensor *weight) {
  char bases[BASES][NAME_BYTES];
  int count = name_module(part, names, module, bases);
  int64_t out = weight->shape[0], all = rdna_tensor_count(weight);
  const int64_t shape[] = {out, out ? all / out : 0};
  for (int i = 0; i < l->count; i++)
    for (int k = 0; k < count; k++) {
      if (l->files[i].scale == 0 || !has_change(&l->files[i], bases[k])) continue;
      adding a = {.file = &l->files[i], .base = bases[k], .part = part, .stream = stream};
      a.weight = rdna_tensor_contiguous(weight->data, RDNA_F32, 2, shape);
      a.scratch = (rdna__scratch){.stream = stream, .holder = "a LoRA"};
      rdna_status status = rdna__scratch_release(&a.scratch, add_one(&a));
      if (status != RDNA_OK) return rdna__annotate(status, "%s", l->files[i].path);
      break;
    }
  return RDNA_OK;
}

rdna_status rdna__loras_check_used(const rdna__loras *l, rdna__lora_part part) {
  for (int i = 0; l && i < l->count; i++) {
    const file *f = &l->files[i];
    const char *first = NULL;
    size_t unused = 0;
    if (f->scale == 0) continue;
    for (size_t k = rdna__safetensors_count(f->tensors); k-- > 0;) {
      const char *name = rdna__safetensors_at(f->tensors, k)->name;
      if (f->used[k] || owner_of(name) != part) continue;
      unused++;
      first = name;
    }
    if (unused)
      return rdna__fail(
          RDNA_BAD_DATA,
          "%s: %zu tensors, '%.120s' for one, fit nothing in the model: the LoRA is for another version of "
          "it, or of a kind that is not known",
          f->path, unused, first);
  }
  return RDNA_OK;
}
