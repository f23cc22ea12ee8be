#include "model/image/component.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "device/driver.h"
#include "model/weights/quantize.h"
#include "rdna/memory.h"
#include "rdna/op/cast.h"
#include "rdna/op/movement.h"
#include "rdna/op/pointwise.h"
#include "rdna/op/quant.h"

enum { PATH_BYTES = 4096, NAME_BYTES = 96, PIECE_BYTES = 8 << 20 };

/* ---- what a network has ---- */

void rdna__network_deinit(rdna__network *network) {
  for (size_t i = 0; i < network->count; i++) (void)!rdna_memory_free(network->device, network->blocks[i]);
  free(network->blocks);
  network->blocks = NULL;
  network->count = network->capacity = network->bytes = 0;
}

static rdna_status take(rdna__network *n, size_t bytes, void **out_data) {
  if (n->count == n->capacity) {
    size_t capacity = n->capacity ? 2 * n->capacity : 256;
    void **grown = realloc(n->blocks, capacity * sizeof *grown);
    if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a list of tensors");
    n->blocks = grown;
    n->capacity = capacity;
  }
  RDNA_TRY(rdna_memory_alloc_named(n->device, bytes, NULL, "weights", out_data));
  n->blocks[n->count++] = *out_data;
  n->bytes += bytes;
  return RDNA_OK;
}

/* ---- files ---- */

static bool has_file(const char *folder, const char *name) {
  char path[PATH_BYTES];
  return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path && access(path, F_OK) == 0;
}

/* Weights as they are before those of a variant of 16 bits, which are left to where there are no others. */
static rdna_status open_tensors(const char *folder, const char *stem, rdna__safetensors **out) {
  static const char *const forms[][2] = {{"%s.safetensors", "%s.safetensors.index.json"},
                                         {"%s.fp16.safetensors", "%s.safetensors.index.fp16.json"},
                                         {"%s.bf16.safetensors", "%s.safetensors.index.bf16.json"}};
  enum { FORMS = sizeof forms / sizeof *forms };
  char names[FORMS][2][NAME_BYTES];
  int found = -1;
  for (int form = FORMS - 1; form >= 0; form--) {
    for (int index = 0; index < 2; index++) snprintf(names[form][index], NAME_BYTES, forms[form][index], stem);
    if (has_file(folder, names[form][0]) || has_file(folder, names[form][1])) found = form;
  }
  const int form = found < 0 ? 0 : found;
  return rdna__safetensors_open_named(folder, names[form][0], names[form][1], out);
}

bool rdna__component_is_file(const char *path) {
  struct stat at;
  return stat(path, &at) == 0 && S_ISREG(at.st_mode);
}

/* Whether |path| names a part behind the name of a file, which |file| becomes. */
static bool is_part(const char *path, char file[PATH_BYTES]) {
  const char *slash = strrchr(path, '/');
  return slash && snprintf(file, PATH_BYTES, "%.*s", (int)(slash - path), path) < PATH_BYTES &&
         rdna__component_is_file(file);
}

static rdna_status open_part(const char *file, const char *name, rdna__component *c) {
  rdna__checkpoint_family family;
  RDNA_TRY(rdna__safetensors_open_either(file, &c->tensors));
  rdna_status status;
  if (strcmp(name, RDNA__CHECKPOINT_CONTROL) == 0) {
    status = rdna__checkpoint_read_control(c->tensors, &c->settings, &c->part);
  } else if (strcmp(name, RDNA__CHECKPOINT_ADAPTER) == 0) {
    c->part = (rdna__checkpoint_part){CHECKPOINT_DIFFUSERS, "", 0, 0, 0};
    c->settings = json_object();
    status = c->settings ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for settings");
  } else if (strcmp(name, RDNA__CHECKPOINT_TINY) == 0) {
    status = rdna__checkpoint_is_vae(c->tensors) ? rdna__checkpoint_read_vae(c->tensors, &c->settings, &c->part)
                                                 : rdna__checkpoint_read_tiny(c->tensors, &c->settings, &c->part);
  } else if (strcmp(name, "unet") == 0) { /* which may be all that the file has */
    status = rdna__checkpoint_read_unet(c->tensors, &c->settings, &c->part);
  } else if (rdna__checkpoint_is_flow(c->tensors, name)) {
    status = rdna__checkpoint_read_flow(c->tensors, name, &c->settings, &c->part);
  } else {
    status = rdna__checkpoint_detect(c->tensors, &family);
    if (status == RDNA_OK) status = rdna__checkpoint_read(c->tensors, family, name, &c->settings, &c->part);
  }
  return rdna__annotate(status, "%s", file);
}

rdna_status rdna__component_open(const char *folder, const char *stem, rdna__network *network,
                                 rdna__component *out_component) {
  *out_component = (rdna__component){.network = network};
  char file[PATH_BYTES];
  rdna_status status;
  if (is_part(folder, file)) {
    status = open_part(file, strrchr(folder, '/') + 1, out_component);
  } else {
    RDNA_TRY(rdna__settings_open(folder, &out_component->settings));
    status = open_tensors(folder, stem, &out_component->tensors);
  }
  if (status != RDNA_OK) rdna__component_close(out_component);
  return status;
}

void rdna__component_close(rdna__component *c) {
  rdna__strmap_deinit(&c->read);
  rdna__safetensors_close(c->tensors);
  json_decref(c->settings);
  *c = (rdna__component){0};
}

/* ---- tensors ---- */

static rdna_status find(rdna__component *c, const char *prefix, const char *name, char out_name[RDNA__COMPONENT_NAME],
                        const rdna__safetensor **out) {
  const char *point = *prefix && *name ? "." : "";
  if (snprintf(out_name, RDNA__COMPONENT_NAME, "%s%s%s", prefix, point, name) >= RDNA__COMPONENT_NAME)
    return rdna__fail(RDNA_INTERNAL, "the tensor's name '%s%s%s' is too long", prefix, point, name);
  c->transposed = false;
  *out = c->part.kind ? rdna__checkpoint_find(c->tensors, &c->part, out_name, &c->view, &c->transposed)
                      : rdna__safetensors_find(c->tensors, out_name);
  return RDNA_OK;
}

int rdna__component_rank(rdna__component *c, const char *prefix, const char *name) {
  char full[RDNA__COMPONENT_NAME];
  const rdna__safetensor *t = NULL;
  return find(c, prefix, name, full, &t) == RDNA_OK && t ? t->rank : -1;
}

static bool is_plain(rdna_dtype dtype) { return dtype == RDNA_F32 || dtype == RDNA_F16 || dtype == RDNA_BF16; }
static bool is_small(rdna_dtype dtype) { return dtype == RDNA_F8_E4M3FN || dtype == RDNA_F8_E5M2; }
static bool is_blocks(rdna_dtype dtype) { return dtype < RDNA_DTYPE_COUNT && rdna_dtype_block_values(dtype) > 1; }

static void write_shape(char *out, size_t size, int rank, const int64_t *shape) {
  size_t at = 0;
  *out = 0;
  for (int i = 0; i < rank && at < size; i++)
    at += (size_t)snprintf(out + at, size - at, i ? " x %lld" : "%lld", (long long)shape[i]);
}

static rdna_status check(const rdna__safetensor *t, const char *name, int rank, const int64_t *shape) {
  char wanted[96], found[192];
  if (!t) return rdna__fail(RDNA_BAD_DATA, "there is no tensor '%s'", name);
  if (!is_plain(t->dtype) && !is_small(t->dtype) && !is_blocks(t->dtype))
    return rdna__fail(RDNA_UNSUPPORTED, "tensor '%s' is of type %s; F32, F16, BF16 and 8-bit floats are read, and %s",
                      name, t->type, "GGUF's blocks");
  bool same = t->rank == rank;
  for (int i = 0; i < rank && same; i++) same = t->shape[i] == shape[i];
  if (same) return RDNA_OK;
  write_shape(wanted, sizeof wanted, rank, shape);
  write_shape(found, sizeof found, t->rank, t->shape);
  return rdna__fail(RDNA_BAD_DATA, "tensor '%s' is %s; the settings ask for %s", name, found, wanted);
}

void rdna__component_change(rdna__component *c, rdna__loras *loras, rdna__lora_part part,
                            const rdna__checkpoint_part *names) {
  c->loras = loras;
  c->of = part;
  c->names = *names;
}

/* What LoRAs change. */
typedef struct changing {
  char name[RDNA__COMPONENT_NAME]; /* the weights' without its end */
  rdna__lora_module module;
} changing;

static bool ends_with(const char *name, const char *end) {
  size_t length = strlen(name), size = strlen(end);
  return length > size && strcmp(name + length - size, end) == 0;
}

/* Whether weights called |name| are changed, or a bias. */
static bool is_changed(const rdna__component *c, const char *name, changing *out) {
  bool bias = ends_with(name, ".bias");
  size_t length = strlen(name), end = strlen(bias ? ".bias" : ".weight");
  if (!c->loras || (!bias && !ends_with(name, ".weight"))) return false;
  snprintf(out->name, sizeof out->name, "%.*s", (int)(length - end), name);
  bool swapped = c->part.kind == CHECKPOINT_FLUX || c->part.kind == CHECKPOINT_SD3;
  out->module = (rdna__lora_module){c->of, &c->names, swapped, out->name, bias};
  return rdna__loras_change(c->loras, &out->module);
}

/* ---- on the way to the device ---- */

/* What a tensor of the file goes through: |from|, as the file has it, and |wide|, where it is not copied at once. */
typedef struct passage {
  const rdna__component *c;
  rdna_stream *stream;
  const rdna__safetensor *t;
  const rdna__lora_module *module; /* that LoRAs change; NULL: none does */
  double scale;                    /* of 8-bit floats */
  bool as_it_is;                   /* bytes are copied */
  bool wide;
  int64_t rows, piece; /* of the first dimension: all, and so many at a time */
  uint8_t *bytes;      /* of a piece, each of these */
  void *from_data, *wide_data;
} passage;

/* Blocks of |from|, which may go from one row on to the next. */
static rdna_status unpack(const passage *p, const rdna_tensor *from, const rdna_tensor *wide) {
  const int64_t flat[] = {1, rdna_tensor_count(from)};
  const rdna_tensor row = rdna_tensor_contiguous(from->data, from->dtype, 2, flat),
                    values = rdna_tensor_contiguous(wide->data, RDNA_F32, 2, flat);
  return rdna_op_dequantize(p->stream, &row, &values);
}

/* |to| of |from|'s values in f32, with what is added to them there */
static rdna_status pass_wide(const passage *p, const rdna_tensor *from, const rdna_tensor *to) {
  const rdna__component *c = p->c;
  rdna_tensor wide = rdna_tensor_contiguous(p->wide_data, RDNA_F32, from->rank, from->shape);
  if (is_blocks(from->dtype)) {
    if (p->module && c->transposed)
      return rdna__fail(RDNA_UNSUPPORTED, "a LoRA changes '%s', which is transposed and in blocks", p->t->name);
    RDNA_TRY(unpack(p, from, &wide));
    memcpy(wide.stride, from->stride, sizeof wide.stride); /* values lie as the blocks did, which may be transposed */
  } else if (is_small(from->dtype)) {
    RDNA_TRY(rdna_op_cast(p->stream, from, &wide));
  } else {
    RDNA_TRY(rdna_op_copy(p->stream, from, &wide));
  }
  if (p->scale != 1)
    RDNA_TRY(rdna_op_map(p->stream, RDNA_MAP_AFFINE, &wide, rdna_scalar_real(p->scale), rdna_scalar_real(0), &wide));
  if (p->module) RDNA_TRY(rdna__loras_add(c->loras, p->module, p->stream, &wide));
  return is_blocks(to->dtype) ? rdna_op_quantize(p->stream, &wide, to) : rdna_op_copy(p->stream, &wide, to);
}

/* |from| is a convolution's over time: its last one, which is asked for alone. */
static void take_last_time(rdna_tensor *from) {
  from->data = (char *)from->data + rdna_dtype_bytes(from->dtype, (from->shape[2] - 1) * from->stride[2]);
  for (int i = 2; i < 4; i++) from->shape[i] = from->shape[i + 1], from->stride[i] = from->stride[i + 1];
  from->rank = 4;
}

/* Rows from |first| on of |to|. From a copy: what is in the file's map may change or vanish. On a device that only
 * counts nothing is read. */
static rdna_status pass_rows(const passage *p, int64_t first, int64_t rows, const rdna_tensor *to) {
  size_t row = p->t->bytes / (size_t)p->rows, size = row * (size_t)rows;
  rdna_tensor part = *to, from = rdna_tensor_contiguous(p->from_data, p->t->dtype, p->t->rank, p->t->shape);
  bool counts = rdna__device_is_rehearsal(p->c->network->device);
  if (!counts) RDNA_TRY(rdna__file_read(p->t->data + row * (size_t)first, size, p->bytes));
  if (p->piece < p->rows) {
    part.data = (char *)to->data + rdna_dtype_bytes(to->dtype, first * to->stride[0]);
    part.shape[0] = from.shape[0] = rows;
  }
  if (p->as_it_is) return rdna_copy_to_device(p->stream, part.data, p->bytes, size);
  if (p->c->transposed) {
    from.stride[0] = 1;
    from.stride[1] = p->t->shape[0];
  }
  if (from.rank == 5 && to->rank == 4) take_last_time(&from);
  RDNA_TRY(rdna_copy_to_device(p->stream, p->from_data, p->bytes, size));
  return p->wide ? pass_wide(p, &from, &part) : rdna_op_copy(p->stream, &from, &part);
}

static rdna_status pass_all(passage *p, const rdna_tensor *to) {
  rdna_device *device = p->c->network->device;
  size_t row = p->t->bytes / (size_t)p->rows, size = row * (size_t)p->piece;
  size_t values = (size_t)(rdna_tensor_count(to) / p->rows * p->piece);
  if (!(p->bytes = malloc(size))) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for tensor '%s'", p->t->name);
  if (!p->as_it_is) RDNA_TRY(rdna_memory_alloc_named(device, size, NULL, "loading weights", &p->from_data));
  if (p->wide)
    RDNA_TRY(rdna_memory_alloc_named(device, values * sizeof(float), NULL, "loading weights", &p->wide_data));
  for (int64_t first = 0; first < p->rows; first += p->piece)
    RDNA_TRY(pass_rows(p, first, p->rows - first < p->piece ? p->rows - first : p->piece, to));
  return RDNA_OK;
}

/* By which 8-bit floats are multiplied: a tensor of one value beside them. */
static rdna_status find_scale(rdna__component *c, const rdna__safetensor *t, double *out) {
  /* what is said of a module's activations is for who rounds them */
  static const char *const ends[] = {"scale_weight", "weight_scale", "scale_input", "input_scale", "comfy_quant"};
  char name[2 * RDNA__COMPONENT_NAME];
  size_t length = strlen(t->name), end = strlen("weight");
  bool scaled = false;
  *out = 1;
  if (length < end || strcmp(t->name + length - end, "weight") != 0) return RDNA_OK;
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    bool inserted;
    if (snprintf(name, sizeof name, "%.*s%s", (int)(length - end), t->name, ends[i]) >= (int)sizeof name) break;
    const rdna__safetensor *beside = rdna__safetensors_find(c->tensors, name);
    if (!beside) continue;
    RDNA_TRY(rdna__strmap_insert(&c->read, beside->name, strlen(beside->name), 0, &inserted));
    if (i > 1) continue;
    if (i == 1 && scaled) return rdna__fail(RDNA_BAD_DATA, "'%s' has two scales, '%s' for one", t->name, name);
    scaled = true;
    float value = 0;
    if (!is_plain(beside->dtype) || beside->bytes != rdna_dtype_block_bytes(beside->dtype))
      return rdna__fail(RDNA_UNSUPPORTED,
                        "tensor '%s' is no number of F32, F16 or BF16, by which all of '%s' could be "
                        "multiplied",
                        name, t->name);
    *out = value = rdna__safetensor_value(beside, 0);
    if (!isfinite(value) || value == 0) return rdna__fail(RDNA_BAD_DATA, "the scale '%s' is %g", name, (double)value);
  }
  return RDNA_OK;
}

/* Whether what the first dimension counts is whole blocks, where there are some: a vector's are one row. */
static bool has_whole_rows(const rdna__safetensor *t) {
  int64_t values = 1;
  for (int i = 1; i < t->rank; i++) values *= t->shape[i];
  return !is_blocks(t->dtype) || values % (int64_t)rdna_dtype_block_values(t->dtype) == 0;
}

/* |to|, which is dense, becomes the values of |t|, changed as |module| is, if that is not NULL. */
static rdna_status pass(rdna__component *c, const rdna__safetensor *t, const rdna__lora_module *module, bool may_copy,
                        const rdna_tensor *to) {
  rdna_device *device = c->network->device;
  passage p = {.c = c, .stream = rdna_device_default_stream(device), .t = t, .scale = 1, .rows = 1, .piece = 1};
  p.module = module;
  if (is_small(t->dtype)) RDNA_TRY(find_scale(c, t, &p.scale));
  if (t->bytes == 0) return RDNA_OK;
  p.as_it_is = may_copy && t->dtype == to->dtype && !p.module && !c->transposed;
  p.wide = !p.as_it_is && (!is_plain(t->dtype) || is_blocks(to->dtype) || p.module);
  if (t->rank > 0 && !c->transposed && has_whole_rows(t)) {
    int64_t fit = (int64_t)(PIECE_BYTES / (t->bytes / (size_t)t->shape[0]));
    p.rows = t->shape[0];
    p.piece = p.module || fit > p.rows ? p.rows : fit < 1 ? 1 : fit;
  }
  rdna_status status = pass_all(&p, to);
  void *const data[] = {p.from_data, p.wide_data};
  for (int i = 0; i < 2; i++) {
    rdna_status freed = data[i] ? rdna_memory_free(device, data[i]) : RDNA_OK;
    if (status == RDNA_OK) status = freed;
  }
  free(p.bytes);
  return status;
}

/* The same of |t|, which was asked for as |name|. */
static rdna_status upload(rdna__component *c, const rdna__safetensor *t, const char *name, bool may_copy,
                          const rdna_tensor *to) {
  changing changed;
  return pass(c, t, is_changed(c, name, &changed) ? &changed.module : NULL, may_copy, to);
}

/* The tensor of |to|'s shape. */
static rdna_status look_up(rdna__component *c, const char *prefix, const char *name, const rdna_tensor *to,
                           char full[RDNA__COMPONENT_NAME], const rdna__safetensor **out) {
  bool inserted;
  RDNA_TRY(find(c, prefix, name, full, out));
  RDNA_TRY(check(*out, full, to->rank, to->shape));
  return rdna__strmap_insert(&c->read, (*out)->name, strlen((*out)->name), 0, &inserted);
}

rdna_status rdna__component_load(rdna__component *c, const char *prefix, const char *name, rdna_dtype dtype, int rank,
                                 const int64_t *shape, rdna_tensor *out) {
  char full[RDNA__COMPONENT_NAME];
  const rdna__safetensor *t;
  *out = rdna_tensor_contiguous(NULL, dtype, rank, shape);
  RDNA_TRY(look_up(c, prefix, name, out, full, &t));
  RDNA_TRY(rdna__network_tensor(c->network, dtype, rank, shape, out));
  return upload(c, t, full, true, out);
}

/* Of a matrix with so many columns: blocks as the file has them, or what the network's are rounded to, or its own. */
static rdna_dtype type_of_matrix(const rdna__component *c, rdna_dtype in_file, int64_t columns) {
  const rdna__network *n = c->network;
  if (is_blocks(in_file) && columns % (int64_t)rdna_dtype_block_values(in_file) == 0) return in_file;
  if (!is_blocks(n->weights) || c->kept) return n->dtype;
  rdna_dtype fitting = rdna__weight_type_fitting(n->weights, columns, RDNA_F16);
  return is_blocks(fitting) ? fitting : n->dtype;
}

static rdna_status load_changes(rdna__component *c, const rdna__lora_module *module, int64_t rank, int64_t out,
                                int64_t in, rdna_tensor *out_down, rdna_tensor *out_up) {
  rdna_stream *stream = rdna_device_default_stream(c->network->device);
  RDNA_TRY(rdna__network_tensor(c->network, c->network->dtype, 2, (const int64_t[]){rank, in}, out_down));
  RDNA_TRY(rdna__network_tensor(c->network, c->network->dtype, 2, (const int64_t[]){out, rank}, out_up));
  return rdna__loras_load(c->loras, module, stream, out_down, out_up);
}

rdna_status rdna__component_load_matrix(rdna__component *c, const char *prefix, const char *name, int64_t out,
                                        int64_t in, rdna_tensor *out_weight) {
  return rdna__component_load_beside(c, prefix, name, out, in, out_weight, NULL, NULL);
}

rdna_status rdna__component_load_beside(rdna__component *c, const char *prefix, const char *name, int64_t out,
                                        int64_t in, rdna_tensor *out_weight, rdna_tensor *out_down,
                                        rdna_tensor *out_up) {
  const int64_t shape[] = {out, in, 1, 1};
  int rank = rdna__component_rank(c, prefix, name) == 4 ? 4 : 2;
  const rdna_tensor like = rdna_tensor_contiguous(NULL, RDNA_F32, rank, shape);
  char full[RDNA__COMPONENT_NAME];
  rdna__safetensor t;
  const rdna__safetensor *found;
  RDNA_TRY(look_up(c, prefix, name, &like, full, &found));
  t = *found;
  t.rank = 2; /* a window of 1 x 1 lies as the matrix does */
  RDNA_TRY(rdna__network_tensor(c->network, type_of_matrix(c, t.dtype, in), 2, shape, out_weight));
  changing changed;
  if (!is_changed(c, full, &changed)) return pass(c, &t, NULL, true, out_weight);
  bool beside = out_down && is_blocks(t.dtype) && out_weight->dtype == t.dtype && !c->transposed;
  int64_t low = beside ? rdna__loras_rank(c->loras, &changed.module) : 0;
  RDNA_TRY(pass(c, &t, low ? NULL : &changed.module, true, out_weight));
  return low ? load_changes(c, &changed.module, low, out, in, out_down, out_up) : RDNA_OK;
}

rdna_status rdna__network_tensor(rdna__network *n, rdna_dtype dtype, int rank, const int64_t *shape, rdna_tensor *out) {
  *out = rdna_tensor_contiguous(NULL, dtype, rank, shape);
  return take(n, rdna_dtype_bytes(dtype, rdna_tensor_count(out)), &out->data);
}

rdna_status rdna__network_window(rdna__network *n, int64_t out, int64_t in, int64_t height, int64_t width,
                                 rdna_tensor *out_weight) {
  *out_weight = (rdna_tensor){.dtype = n->dtype,
                              .rank = 4,
                              .shape = {out, in, height, width},
                              .stride = {height * width * in, 1, width * in, in}};
  return take(n, rdna_dtype_bytes(n->dtype, rdna_tensor_count(out_weight)), &out_weight->data);
}

rdna_status rdna__component_load_window(rdna__component *c, const char *prefix, const char *name, int out, int in,
                                        int height, int width, rdna_tensor *out_weight) {
  const rdna_tensor like = rdna_tensor_contiguous(NULL, RDNA_F32, 4, (const int64_t[]){out, in, height, width});
  char full[RDNA__COMPONENT_NAME];
  const rdna__safetensor *t;
  RDNA_TRY(look_up(c, prefix, name, &like, full, &t));
  RDNA_TRY(rdna__network_window(c->network, out, in, height, width, out_weight));
  return upload(c, t, full, false, out_weight);
}

rdna_status rdna__component_load_last_window(rdna__component *c, const char *prefix, const char *name, int out, int in,
                                             int time, int height, int width, rdna_tensor *out_weight) {
  const rdna_tensor like = rdna_tensor_contiguous(NULL, RDNA_F32, 5, (const int64_t[]){out, in, time, height, width});
  char full[RDNA__COMPONENT_NAME];
  const rdna__safetensor *t;
  RDNA_TRY(look_up(c, prefix, name, &like, full, &t));
  RDNA_TRY(rdna__network_window(c->network, out, in, height, width, out_weight));
  return upload(c, t, full, false, out_weight);
}

rdna_status rdna__component_fetch(rdna__component *c, const char *prefix, const char *name, const rdna_tensor *to) {
  char full[RDNA__COMPONENT_NAME];
  const rdna__safetensor *t;
  RDNA_TRY(look_up(c, prefix, name, to, full, &t));
  return upload(c, t, full, true, to);
}

rdna_status rdna__component_leave(rdna__component *c, const char *prefix) {
  size_t before = c->part.kind ? strlen(c->part.prefix) : 0;
  for (size_t i = 0; i < rdna__safetensors_count(c->tensors); i++) {
    const char *name = rdna__safetensors_at(c->tensors, i)->name;
    bool inserted;
    if (strncmp(name, before ? c->part.prefix : "", before) == 0 && strncmp(name + before, prefix, strlen(prefix)) == 0)
      RDNA_TRY(rdna__strmap_insert(&c->read, name, strlen(name), 0, &inserted));
  }
  return RDNA_OK;
}

rdna_status rdna__component_check_all_read(const rdna__component *c) {
  size_t count = rdna__safetensors_count(c->tensors), unread = 0;
  const char *first = "";
  RDNA_TRY(rdna_stream_synchronize(rdna_device_default_stream(c->network->device)));
  for (size_t i = count; i-- > 0;) {
    const char *name = rdna__safetensors_at(c->tensors, i)->name;
    uint32_t value;
    if (c->part.kind && rdna__checkpoint_leaves(&c->part, name)) continue;
    if (rdna__strmap_find(&c->read, name, strlen(name), &value)) continue;
    unread++;
    first = name;
  }
  if (!unread) return rdna__loras_check_used(c->loras, c->of);
  return rdna__fail(RDNA_UNSUPPORTED,
                    "it has %zu tensor%s that its settings do not speak of, '%.120s' for one; without what they hold "
                    "it would be another model",
                    unread, unread == 1 ? "" : "s", first);
}
