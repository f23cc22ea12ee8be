#include "model/weights/safetensors.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/strmap.h"
#include "kernel/host.h"

enum {
  MAX_HEADER_BYTES = 100 << 20, /* the format's own limit */
  MAX_FILES = 10000,
  MAX_TYPE_BYTES = 32,
};

typedef struct part {
  rdna__file map;
  json_t *header; /* names and types are borrowed from it */
} part;

struct rdna__safetensors {
  part *parts;
  size_t part_count;
  rdna__safetensor *tensors;
  size_t count, capacity;
  rdna__strmap by_name;
  rdna_gguf *gguf; /* whose tensors they are, or NULL */
};

static rdna_dtype dtype_of(const char *type) {
  static const struct {
    const char *name;
    rdna_dtype dtype;
  } types[] = {{"F64", RDNA_F64}, {"F32", RDNA_F32},   {"F16", RDNA_F16},           {"BF16", RDNA_BF16},
               {"I64", RDNA_I64}, {"I32", RDNA_I32},   {"I16", RDNA_I16},           {"I8", RDNA_I8},
               {"U8", RDNA_U8},   {"BOOL", RDNA_BOOL}, {"F8_E4M3", RDNA_F8_E4M3FN}, {"F8_E5M2", RDNA_F8_E5M2}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(type, types[i].name) == 0) return types[i].dtype;
  return RDNA_DTYPE_COUNT;
}

static rdna_status read_shape(const json_t *shape, rdna__safetensor *t) {
  if (!json_is_array(shape)) return rdna__fail(RDNA_BAD_DATA, "it has no array 'shape'");
  if (json_array_size(shape) > RDNA_MAX_RANK)
    return rdna__fail(RDNA_BAD_DATA, "it has %zu dimensions; %d at most are read", json_array_size(shape),
                      RDNA_MAX_RANK);
  t->rank = (int)json_array_size(shape);
  for (int i = 0; i < t->rank; i++) {
    const json_t *size = json_array_get(shape, (size_t)i);
    if (!json_is_integer(size) || json_integer_value(size) < 0)
      return rdna__fail(RDNA_BAD_DATA, "dimension %d is no whole number from 0", i);
    t->shape[i] = json_integer_value(size);
  }
  return RDNA_OK;
}

/* |out_begin| and |t->bytes| from the offsets, which lie inside |room| bytes of data. */
static rdna_status read_offsets(const json_t *offsets, uint64_t room, uint64_t *out_begin, rdna__safetensor *t) {
  const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
  if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end))
    return rdna__fail(RDNA_BAD_DATA, "its 'data_offsets' are not two whole numbers");
  json_int_t from = json_integer_value(begin), to = json_integer_value(end);
  if (from < 0 || to < from || (uint64_t)to > room)
    return rdna__fail(RDNA_BAD_DATA, "its data, from %lld to %lld, is not inside the file's %llu bytes of data",
                      (long long)from, (long long)to, (unsigned long long)room);
  *out_begin = (uint64_t)from;
  t->bytes = (size_t)(to - from);
  return RDNA_OK;
}

static rdna_status check_size(const rdna__safetensor *t) {
  if (t->dtype == RDNA_DTYPE_COUNT) return RDNA_OK;
  int64_t bytes = (int64_t)rdna_dtype_block_bytes(t->dtype);
  bool fits = true;
  for (int i = 0; i < t->rank && fits; i++) fits = !__builtin_mul_overflow(bytes, t->shape[i], &bytes);
  for (int i = 0; i < t->rank; i++) /* an empty tensor may have any other sizes */
    if (t->shape[i] == 0) fits = true, bytes = 0;
  if (!fits || (uint64_t)bytes != t->bytes)
    return rdna__fail(RDNA_BAD_DATA, "its data has %zu bytes, which its shape and the type %s do not make", t->bytes,
                      t->type);
  return RDNA_OK;
}

/* One entry of a header. |data|, with |room| bytes, is what lies behind the header. */
static rdna_status read_tensor(const json_t *entry, const uint8_t *data, uint64_t room, rdna__safetensor *t) {
  t->type = json_string_value(json_object_get(entry, "dtype"));
  if (!t->type || strlen(t->type) > MAX_TYPE_BYTES) return rdna__fail(RDNA_BAD_DATA, "it has no 'dtype'");
  t->dtype = dtype_of(t->type);
  RDNA_TRY(read_shape(json_object_get(entry, "shape"), t));
  uint64_t begin = 0;
  RDNA_TRY(read_offsets(json_object_get(entry, "data_offsets"), room, &begin, t));
  RDNA_TRY(check_size(t));
  t->data = t->bytes ? data + begin : NULL;
  return RDNA_OK;
}

static rdna_status add_tensor(rdna__safetensors *s, const rdna__safetensor *t) {
  if (s->count == s->capacity) {
    size_t capacity = s->capacity ? 2 * s->capacity : 256;
    rdna__safetensor *grown = realloc(s->tensors, capacity * sizeof *grown);
    if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a list of tensors");
    s->tensors = grown;
    s->capacity = capacity;
  }
  bool inserted;
  RDNA_TRY(rdna__strmap_insert(&s->by_name, t->name, strlen(t->name), (uint32_t)s->count, &inserted));
  if (!inserted) return rdna__fail(RDNA_BAD_DATA, "another file has it too");
  s->tensors[s->count++] = *t;
  return RDNA_OK;
}

static int by_place(const void *a, const void *b) {
  const rdna__safetensor *const *x = a, *const *y = b;
  return ((*x)->data > (*y)->data) - ((*x)->data < (*y)->data);
}

/* No byte belongs to two of the tensors from |first| on, which are those of one file. */
static rdna_status check_overlap(const rdna__safetensors *s, size_t first) {
  size_t count = 0;
  const rdna__safetensor **sorted = malloc((s->count - first + 1) * sizeof *sorted);
  if (!sorted) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a list of tensors");
  for (size_t i = first; i < s->count; i++)
    if (s->tensors[i].bytes) sorted[count++] = &s->tensors[i];
  qsort(sorted, count, sizeof *sorted, by_place);
  rdna_status status = RDNA_OK;
  for (size_t i = 1; i < count && status == RDNA_OK; i++)
    if (sorted[i - 1]->data + sorted[i - 1]->bytes > sorted[i]->data)
      status = rdna__fail(RDNA_BAD_DATA, "tensors '%s' and '%s' share bytes", sorted[i - 1]->name, sorted[i]->name);
  free(sorted);
  return status;
}

/* The tensors of |p|'s header, with |room| bytes of |data|. */
static rdna_status read_entries(rdna__safetensors *s, const part *p, const uint8_t *data, uint64_t room) {
  size_t first = s->count;
  const char *name;
  json_t *entry;
  json_object_foreach(p->header, name, entry) {
    if (strcmp(name, "__metadata__") == 0) continue;
    rdna__safetensor t = {.name = name};
    rdna_status status = read_tensor(entry, data, room, &t);
    if (status == RDNA_OK) status = add_tensor(s, &t);
    RDNA_TRY(rdna__annotate(status, "tensor '%.200s'", name));
  }
  return check_overlap(s, first);
}

/* The tensors of |p|, whose file is mapped. */
static rdna_status read_part(rdna__safetensors *s, part *p) {
  uint64_t length = 0;
  if (p->map.size < sizeof length)
    return rdna__fail(RDNA_BAD_DATA, "not a safetensors file: it has only %zu bytes", p->map.size);
  memcpy(&length, p->map.data, sizeof length);
  if (memcmp(&length, "PK\3\4", 4) == 0)
    return rdna__fail(
        RDNA_BAD_DATA,
        "a zip, as PyTorch saves files (.pth, .pt, .bin), of which upscalers alone are read; with PyTorch "
        "and safetensors: safetensors.torch.save_file(torch.load(FILE, weights_only=True), "
        "'FILE.safetensors')");
  if (length > MAX_HEADER_BYTES)
    return rdna__fail(RDNA_BAD_DATA, "not a safetensors file: its header would have %llu bytes",
                      (unsigned long long)length);
  uint64_t room = p->map.size - sizeof length;
  if (length > room)
    return rdna__fail(RDNA_BAD_DATA, "its header has %llu bytes, but the file only %llu; it may be incomplete",
                      (unsigned long long)length, (unsigned long long)room);
  json_error_t error;
  const uint8_t *header = p->map.data + sizeof length;
  p->header = json_loadb((const char *)header, (size_t)length, JSON_REJECT_DUPLICATES, &error);
  if (!json_is_object(p->header))
    return rdna__fail(RDNA_BAD_DATA, "its header is no JSON object: %s",
                      p->header ? "it is another value" : error.text);
  return read_entries(s, p, header + length, room - length);
}

static rdna_status create(size_t parts, rdna__safetensors **out) {
  rdna__safetensors *s = calloc(1, sizeof *s);
  if (s) s->parts = calloc(parts, sizeof *s->parts);
  if (!s || !s->parts) {
    free(s);
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for safetensors");
  }
  *out = s;
  return RDNA_OK;
}

void rdna__safetensors_close(rdna__safetensors *s) {
  if (!s) return;
  for (size_t i = 0; i < s->part_count; i++) {
    json_decref(s->parts[i].header);
    rdna__file_unmap(&s->parts[i].map);
  }
  rdna__strmap_deinit(&s->by_name);
  rdna_gguf_close(s->gguf);
  free(s->tensors);
  free(s->parts);
  free(s);
}

rdna_status rdna__safetensors_open_memory(const void *data, size_t size, rdna__safetensors **out_tensors) {
  rdna__safetensors *s;
  RDNA_TRY(create(1, &s));
  part borrowed = {.map = {data, size}};
  rdna_status status = read_part(s, &borrowed);
  s->parts[s->part_count++].header = borrowed.header; /* and nothing to unmap */
  if (status == RDNA_OK) {
    *out_tensors = s;
  } else {
    rdna__safetensors_close(s);
  }
  return status;
}

static rdna_status add_path(rdna__safetensors *s, const char *path) {
  part *p = &s->parts[s->part_count++];
  RDNA_TRY(rdna__annotate(rdna__file_map(path, &p->map), "%s", path));
  return rdna__annotate(read_part(s, p), "%s", path);
}

static rdna_status add_file(rdna__safetensors *s, const char *folder, const char *name) {
  char path[4096];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of %s is too long", name);
  return add_path(s, path);
}

rdna_status rdna__safetensors_open_file(const char *path, rdna__safetensors **out_tensors) {
  rdna__safetensors *s;
  RDNA_TRY(create(1, &s));
  rdna_status status = add_path(s, path);
  if (status == RDNA_OK)
    *out_tensors = s;
  else
    rdna__safetensors_close(s);
  return status;
}

rdna_status rdna__safetensors_of_header(rdna__file *map, json_t *header, rdna__safetensors **out_tensors) {
  rdna__safetensors *s;
  rdna_status status = create(1, &s);
  if (status != RDNA_OK) {
    rdna__file_unmap(map);
    json_decref(header);
    return status;
  }
  part *p = &s->parts[s->part_count++];
  *p = (part){*map, header};
  status = read_entries(s, p, p->map.data, p->map.size);
  if (status == RDNA_OK)
    *out_tensors = s;
  else
    rdna__safetensors_close(s);
  return status;
}

/* ---- GGUF ---- */

/* ComfyUI-GGUF's converter lays windows, and matrices of other widths, out as rows of 256 values, which become blocks,
 * and says what they were (github.com/city96/ComfyUI-GGUF, tools/convert.py). */
static rdna_status find_shape(const rdna_gguf *file, rdna__safetensor *t) {
  char name[256];
  rdna_gguf_key key;
  int32_t sizes[4];
  int64_t count = 1, had = 1;
  if (snprintf(name, sizeof name, "comfy.gguf.orig_shape.%s", t->name) >= (int)sizeof name ||
      !rdna_gguf_find_key(file, name, &key))
    return RDNA_OK;
  if (key.count < 1 || key.count > 4 || key.element_type == key.type)
    return rdna__fail(RDNA_BAD_DATA, "'%s' is no array of 1 to 4 sizes", name);
  RDNA_TRY(rdna_gguf_read_i32(file, name, 0, (size_t)key.count, sizes));
  for (int i = 0; i < t->rank; i++) had *= t->shape[i];
  for (uint64_t i = 0; i < key.count; i++) {
    if (sizes[i] < 1 || sizes[i] > had / count)
      return rdna__fail(RDNA_BAD_DATA, "'%s' has sizes that the tensor has not", name);
    count *= sizes[i];
  }
  if (count != had)
    return rdna__fail(RDNA_BAD_DATA, "'%s' is of %lld values, and the tensor has %lld", name, (long long)count,
                      (long long)had);
  t->rank = (int)key.count;
  for (int i = 0; i < t->rank; i++) t->shape[i] = sizes[i];
  return RDNA_OK;
}

rdna_status rdna__safetensors_of_gguf(rdna_gguf *file, rdna__safetensors **out_tensors) {
  rdna__safetensors *s;
  RDNA_TRY(create(1, &s));
  rdna_status status = RDNA_OK;
  for (size_t i = 0; i < rdna_gguf_tensor_count(file) && status == RDNA_OK; i++) {
    rdna_gguf_tensor from;
    status = rdna_gguf_tensor_at(file, i, &from);
    if (status != RDNA_OK) break;
    rdna__safetensor t = {.name = from.name,
                          .type = rdna_gguf_tensor_type_name(from.ggml_type),
                          .dtype = from.dtype,
                          .rank = from.rank,
                          .data = from.data,
                          .bytes = from.bytes};
    memcpy(t.shape, from.shape, sizeof from.shape);
    status = find_shape(file, &t);
    if (status == RDNA_OK) status = add_tensor(s, &t);
  }
  if (status == RDNA_OK) {
    s->gguf = file;
    *out_tensors = s;
  } else {
    rdna__safetensors_close(s);
  }
  return status;
}

const rdna_gguf *rdna__safetensors_gguf(const rdna__safetensors *s) { return s->gguf; }

static bool is_gguf(const char *path) {
  char magic[4] = "";
  FILE *file = fopen(path, "rb");
  bool is = file && fread(magic, 1, sizeof magic, file) == sizeof magic && memcmp(magic, "GGUF", sizeof magic) == 0;
  if (file) fclose(file);
  return is;
}

rdna_status rdna__safetensors_open_either(const char *path, rdna__safetensors **out_tensors) {
  if (!is_gguf(path)) return rdna__safetensors_open_file(path, out_tensors);
  rdna_gguf *file;
  RDNA_TRY(rdna_gguf_open(path, &file));
  rdna_status status = rdna__annotate(rdna__safetensors_of_gguf(file, out_tensors), "%s", path);
  if (status != RDNA_OK) rdna_gguf_close(file);
  return status;
}

/* ---- folders ---- */

/* |index| maps the tensors' names to files of |folder|. */
static rdna_status add_listed(const char *folder, const json_t *index, rdna__safetensors **out) {
  json_t *map = json_object_get(index, "weight_map");
  if (!json_is_object(map)) return rdna__fail(RDNA_BAD_DATA, "it has no object 'weight_map'");
  rdna__strmap files = {0};
  rdna_status status = create(MAX_FILES, out);
  const char *name;
  json_t *value;
  json_object_foreach(map, name, value) {
    if (status != RDNA_OK) break;
    const char *file = json_string_value(value);
    bool inserted = false;
    if (!file || !*file || strchr(file, '/'))
      status = rdna__fail(RDNA_BAD_DATA, "the file of tensor '%.200s' is no name of a file in its folder", name);
    if (status == RDNA_OK) status = rdna__strmap_insert(&files, file, strlen(file), 0, &inserted);
    if (inserted && files.count > MAX_FILES)
      status = rdna__fail(RDNA_BAD_DATA, "more than %d files are listed", MAX_FILES);
    if (status == RDNA_OK && inserted) status = add_file(*out, folder, file);
  }
  rdna__strmap_deinit(&files);
  json_object_foreach(map, name, value) {
    if (status != RDNA_OK) break;
    if (!rdna__safetensors_find(*out, name))
      status = rdna__fail(RDNA_BAD_DATA, "tensor '%.200s' is listed, but not in %s", name, json_string_value(value));
  }
  return status;
}

static rdna_status open_listed(const char *folder, const char *path, const rdna__file *file, rdna__safetensors **out) {
  json_error_t error;
  json_t *index = json_loadb((const char *)file->data, file->size, JSON_REJECT_DUPLICATES, &error);
  rdna_status status = index ? add_listed(folder, index, out) : rdna__fail(RDNA_BAD_DATA, "no JSON: %s", error.text);
  json_decref(index);
  return rdna__annotate(status, "%s", path);
}

/* One file, or those of the index when there is no such file. */
static rdna_status open_folder(const char *folder, const char *name, const char *index_name, rdna__safetensors **out) {
  char path[4096];
  RDNA_TRY(create(1, out));
  rdna_status status = add_file(*out, folder, name);
  if (status != RDNA_NOT_FOUND) return status;
  rdna__file index = {0};
  if (snprintf(path, sizeof path, "%s/%s", folder, index_name) >= (int)sizeof path)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the path of %s is too long", index_name);
  status = rdna__file_map(path, &index);
  if (status == RDNA_NOT_FOUND)
    return rdna__fail(RDNA_NOT_FOUND, "%s holds neither %s nor %s", folder, name, index_name);
  RDNA_TRY(rdna__annotate(status, "%s", path));
  rdna__safetensors_close(*out);
  *out = NULL;
  status = open_listed(folder, path, &index, out);
  rdna__file_unmap(&index);
  return status;
}

rdna_status rdna__safetensors_open_named(const char *folder, const char *file, const char *index,
                                         rdna__safetensors **out_tensors) {
  rdna__safetensors *s = NULL;
  rdna_status status = open_folder(folder, file, index, &s);
  if (status == RDNA_OK) {
    *out_tensors = s;
  } else {
    rdna__safetensors_close(s);
  }
  return status;
}

rdna_status rdna__safetensors_open(const char *folder, rdna__safetensors **out_tensors) {
  return rdna__safetensors_open_named(folder, "model.safetensors", "model.safetensors.index.json", out_tensors);
}

const char *rdna__safetensors_metadata(const rdna__safetensors *s, const char *key) {
  return json_string_value(json_object_get(json_object_get(s->parts[0].header, "__metadata__"), key));
}

size_t rdna__safetensors_count(const rdna__safetensors *s) { return s->count; }

const rdna__safetensor *rdna__safetensors_at(const rdna__safetensors *s, size_t index) { return &s->tensors[index]; }

float rdna__safetensor_value(const rdna__safetensor *tensor, int64_t i) {
  uint16_t half;
  if (tensor->dtype == RDNA_F32) {
    float value;
    memcpy(&value, tensor->data + 4 * i, sizeof value);
    return value;
  }
  memcpy(&half, tensor->data + 2 * i, sizeof half);
  return tensor->dtype == RDNA_BF16 ? bf16_to_f32(half) : f16_to_f32(half);
}

const rdna__safetensor *rdna__safetensors_find(const rdna__safetensors *s, const char *name) {
  uint32_t index;
  return rdna__strmap_find(&s->by_name, name, strlen(name), &index) ? &s->tensors[index] : NULL;
}
