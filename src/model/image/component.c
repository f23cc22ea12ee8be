#include "model/image/component.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "rdna/memory.h"
#include "rdna/op/movement.h"

enum { PATH_BYTES = 4096, NAME_BYTES = 96 };

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

/* Weights as they are before those of the variant fp16, which is left to where there are no others. */
static rdna_status open_tensors(const char *folder, const char *stem, rdna__safetensors **out) {
  static const char *const forms[2][2] = {{"%s.safetensors", "%s.safetensors.index.json"},
                                          {"%s.fp16.safetensors", "%s.safetensors.index.fp16.json"}};
  char names[2][2][NAME_BYTES];
  for (int variant = 0; variant < 2; variant++)
    for (int index = 0; index < 2; index++) snprintf(names[variant][index], NAME_BYTES, forms[variant][index], stem);
  bool plain = has_file(folder, names[0][0]) || has_file(folder, names[0][1]);
  bool half = !plain && (has_file(folder, names[1][0]) || has_file(folder, names[1][1]));
  return rdna__safetensors_open_named(folder, names[half][0], names[half][1], out);
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
  RDNA_TRY(rdna__safetensors_open_file(file, &c->tensors));
  rdna_status status = rdna__checkpoint_detect(c->tensors, &family);
  if (status == RDNA_OK) status = rdna__checkpoint_read(c->tensors, family, name, &c->settings, &c->part);
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

static void write_shape(char *out, size_t size, int rank, const int64_t *shape) {
  size_t at = 0;
  *out = 0;
  for (int i = 0; i < rank && at < size; i++)
    at += (size_t)snprintf(out + at, size - at, i ? " x %lld" : "%lld", (long long)shape[i]);
}

static rdna_status check(const rdna__safetensor *t, const char *name, int rank, const int64_t *shape) {
  char wanted[96], found[192];
  if (!t) return rdna__fail(RDNA_BAD_DATA, "there is no tensor '%s'", name);
  if (t->dtype != RDNA_F32 && t->dtype != RDNA_F16 && t->dtype != RDNA_BF16)
    return rdna__fail(RDNA_UNSUPPORTED, "tensor '%s' is of type %s; F32, F16 and BF16 are read", name, t->type);
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

/* Whether weights called |name| are changed on their way; |module| becomes the name without its end. */
static bool is_changed(const rdna__component *c, const char *name, char module[RDNA__COMPONENT_NAME]) {
  size_t length = strlen(name), end = strlen(".weight");
  if (!c->loras || length <= end || strcmp(name + length - end, ".weight") != 0) return false;
  snprintf(module, RDNA__COMPONENT_NAME, "%.*s", (int)(length - end), name);
  return rdna__loras_change(c->loras, c->of, &c->names, module);
}

/* to = from and its changes, which are added in f32 */
static rdna_status copy_changed(const rdna__component *c, const char *module, const rdna_tensor *from,
                                const rdna_tensor *to) {
  rdna_device *device = c->network->device;
  rdna_stream *stream = rdna_device_default_stream(device);
  rdna_tensor sum = rdna_tensor_contiguous(NULL, RDNA_F32, from->rank, from->shape);
  RDNA_TRY(rdna_memory_alloc_named(device, rdna_dtype_bytes(RDNA_F32, rdna_tensor_count(&sum)), NULL, "loading weights",
                                   &sum.data));
  rdna_status status = rdna_op_copy(stream, from, &sum);
  if (status == RDNA_OK) status = rdna__loras_add(c->loras, c->of, &c->names, module, stream, &sum);
  if (status == RDNA_OK) status = rdna_op_copy(stream, &sum, to);
  rdna_status freed = rdna_memory_free(device, sum.data);
  return status == RDNA_OK ? freed : status;
}

/* |to|, which is dense, becomes the values of |t|, which was asked for as |name|. From a copy: what is in the file's
 * map may change or vanish. */
static rdna_status upload(const rdna__component *c, const rdna__safetensor *t, const char *name, bool as_it_is,
                          const rdna_tensor *to) {
  rdna_device *device = c->network->device;
  rdna_stream *stream = rdna_device_default_stream(device);
  char module[RDNA__COMPONENT_NAME];
  bool changed = is_changed(c, name, module);
  uint8_t *bytes = malloc(t->bytes ? t->bytes : 1);
  if (!bytes) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for tensor '%s'", t->name);
  rdna_tensor from = rdna_tensor_contiguous(NULL, t->dtype, t->rank, t->shape);
  if (c->transposed) {
    from.stride[0] = 1;
    from.stride[1] = t->shape[0];
  }
  rdna_status status = rdna__file_read(t->data, t->bytes, bytes);
  if (as_it_is && !c->transposed && !changed) {
    if (status == RDNA_OK) status = rdna_copy_to_device(stream, to->data, bytes, t->bytes);
  } else {
    if (status == RDNA_OK) status = rdna_memory_alloc_named(device, t->bytes, NULL, "loading weights", &from.data);
    if (status == RDNA_OK) status = rdna_copy_to_device(stream, from.data, bytes, t->bytes);
    if (status == RDNA_OK) status = changed ? copy_changed(c, module, &from, to) : rdna_op_copy(stream, &from, to);
    rdna_status freed = rdna_memory_free(device, from.data);
    if (status == RDNA_OK) status = freed;
  }
  free(bytes);
  return status;
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
  return upload(c, t, full, t->dtype == dtype, out);
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

rdna_status rdna__component_fetch(rdna__component *c, const char *prefix, const char *name, const rdna_tensor *to) {
  char full[RDNA__COMPONENT_NAME];
  const rdna__safetensor *t;
  RDNA_TRY(look_up(c, prefix, name, to, full, &t));
  return upload(c, t, full, t->dtype == to->dtype, to);
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
