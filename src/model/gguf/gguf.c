#include "model/gguf/gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum {
  HEADER_BYTES = 24,
  MAX_NAME_BYTES = 65535, /* the format's limit on a key */
  MAX_RANK = 4,
  MAX_ARRAY_DEPTH = 4,
  DEFAULT_ALIGNMENT = 32,
  MAX_PARTS = 99999, /* what the file names can count */
};

/* What is left of a part. Each read says what it was after, for the sentence. */
typedef struct reader {
  const uint8_t *start, *at, *end;
} reader;

static size_t left(const reader *r) { return (size_t)(r->end - r->at); }

static rdna_status cut_short(const reader *r, const char *what) {
  return rdna__fail(RDNA_BAD_DATA, "the file ends inside %s, at byte %zu of %zu; it may be incomplete", what,
                    (size_t)(r->at - r->start), (size_t)(r->end - r->start));
}

static rdna_status read_bytes(reader *r, const char *what, void *out, size_t size) {
  if (left(r) < size) return cut_short(r, what);
  memcpy(out, r->at, size);
  r->at += size;
  return RDNA_OK;
}

static rdna_status read_text(reader *r, const char *what, rdna_text *out) {
  uint64_t size = 0;
  RDNA_TRY(read_bytes(r, what, &size, sizeof size));
  if (size > left(r)) return cut_short(r, what);
  *out = (rdna_text){(const char *)r->at, (size_t)size};
  r->at += size;
  return RDNA_OK;
}

/* A name becomes a C string of ours. */
static rdna_status read_name(reader *r, const char *what, char **out, size_t *out_size) {
  rdna_text text;
  RDNA_TRY(read_text(r, what, &text));
  if (text.size > MAX_NAME_BYTES)
    return rdna__fail(RDNA_BAD_DATA, "%s has %zu bytes, the format allows %d", what, text.size, MAX_NAME_BYTES);
  if (text.size && memchr(text.data, 0, text.size)) return rdna__fail(RDNA_BAD_DATA, "%s holds a zero byte", what);
  char *name = malloc(text.size + 1);
  if (!name) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %s", what);
  if (text.size) memcpy(name, text.data, text.size);
  name[text.size] = 0;
  *out = name;
  *out_size = text.size;
  return RDNA_OK;
}

static rdna_status check_bools(const rdna__gguf_value *value) {
  for (uint64_t i = 0; i < value->count; i++)
    if (value->data[i] > 1) return rdna__fail(RDNA_BAD_DATA, "a bool is %d, neither 0 nor 1", value->data[i]);
  return RDNA_OK;
}

static rdna_status read_type(reader *r, rdna_gguf_type *out) {
  uint32_t type = 0;
  RDNA_TRY(read_bytes(r, "the type of a value", &type, sizeof type));
  if (type >= RDNA_GGUF_TYPE_COUNT)
    return rdna__fail(RDNA_BAD_DATA, "a value has type %u, the format knows 0 to %d", (unsigned)type,
                      RDNA_GGUF_TYPE_COUNT - 1);
  *out = (rdna_gguf_type)type;
  return RDNA_OK;
}

static rdna_status read_texts(reader *r, rdna__gguf_value *value) {
  if (value->count > left(r) / sizeof(uint64_t)) return cut_short(r, "an array of texts");
  if (value->count == 0) return RDNA_OK;
  value->texts = malloc((size_t)value->count * sizeof *value->texts);
  if (!value->texts)
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %llu texts", (unsigned long long)value->count);
  for (uint64_t i = 0; i < value->count; i++) RDNA_TRY(read_text(r, "a text", &value->texts[i]));
  return RDNA_OK;
}

/* Arrays of arrays are stepped over: the format allows them, no key that we know uses them. */
static rdna_status skip_arrays(reader *r, uint64_t count, int depth) {
  if (depth > MAX_ARRAY_DEPTH) return rdna__fail(RDNA_BAD_DATA, "arrays are nested more than %d deep", MAX_ARRAY_DEPTH);
  for (uint64_t i = 0; i < count; i++) {
    rdna__gguf_value inner = {0};
    RDNA_TRY(read_type(r, &inner.element_type));
    RDNA_TRY(read_bytes(r, "the length of an array", &inner.count, sizeof inner.count));
    if (inner.element_type == RDNA_GGUF_TYPE_ARRAY) {
      RDNA_TRY(skip_arrays(r, inner.count, depth + 1));
    } else if (inner.element_type == RDNA_GGUF_TYPE_TEXT) {
      rdna_text text;
      for (uint64_t j = 0; j < inner.count; j++) RDNA_TRY(read_text(r, "a text", &text));
    } else {
      size_t bytes = rdna__gguf_type_bytes(inner.element_type);
      if (inner.count > left(r) / bytes) return cut_short(r, "an array");
      inner.data = r->at;
      r->at += inner.count * bytes;
      if (inner.element_type == RDNA_GGUF_TYPE_BOOL) RDNA_TRY(check_bools(&inner));
    }
  }
  return RDNA_OK;
}

static rdna_status read_elements(reader *r, rdna__gguf_value *value) {
  if (value->element_type == RDNA_GGUF_TYPE_ARRAY) return skip_arrays(r, value->count, 2);
  if (value->element_type == RDNA_GGUF_TYPE_TEXT) return read_texts(r, value);
  size_t bytes = rdna__gguf_type_bytes(value->element_type);
  if (value->count > left(r) / bytes) return cut_short(r, "a value");
  r->at += value->count * bytes;
  return value->element_type == RDNA_GGUF_TYPE_BOOL ? check_bools(value) : RDNA_OK;
}

static rdna_status read_value(reader *r, rdna__gguf_value *value) {
  RDNA_TRY(read_type(r, &value->type));
  value->element_type = value->type;
  value->count = 1;
  if (value->type == RDNA_GGUF_TYPE_ARRAY) {
    RDNA_TRY(read_type(r, &value->element_type));
    RDNA_TRY(read_bytes(r, "the length of an array", &value->count, sizeof value->count));
  }
  value->data = r->at;
  RDNA_TRY(read_elements(r, value));
  value->bytes = (size_t)(r->at - value->data);
  return RDNA_OK;
}

static rdna_status read_keys(reader *r, uint64_t count, rdna__gguf_keys *keys) {
  enum { LEAST_BYTES = 8 + 4 + 1 };
  if (count > left(r) / LEAST_BYTES)
    return rdna__fail(RDNA_BAD_DATA, "the file claims %llu keys, more than its %zu bytes can hold",
                      (unsigned long long)count, (size_t)(r->end - r->start));
  if (count == 0) return RDNA_OK;
  keys->values = calloc((size_t)count, sizeof *keys->values);
  if (!keys->values) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %llu keys", (unsigned long long)count);
  RDNA_TRY(rdna__strmap_init(&keys->by_name, (size_t)count));
  for (uint64_t i = 0; i < count; i++) {
    rdna__gguf_value *value = &keys->values[i];
    size_t size = 0;
    RDNA_TRY(read_name(r, "the name of a key", &value->name, &size));
    keys->count = (size_t)i + 1; /* so that a failure from here on frees this one too */
    bool inserted;
    RDNA_TRY(rdna__strmap_insert(&keys->by_name, value->name, size, (uint32_t)i, &inserted));
    if (!inserted) return rdna__fail(RDNA_BAD_DATA, "key %s is there twice", value->name);
    RDNA_TRY(rdna__annotate(read_value(r, value), "key %s", value->name));
  }
  return RDNA_OK;
}

/* Fills |tensor|'s shape, count of values and bytes from the dimensions as the file has them. */
static rdna_status measure(rdna_gguf_tensor *tensor, const uint64_t *dims) {
  uint64_t count = 1;
  for (int d = 0; d < tensor->rank; d++) {
    if (dims[d] > INT64_MAX || __builtin_mul_overflow(count, dims[d], &count) || count > INT64_MAX)
      return rdna__fail(RDNA_BAD_DATA, "tensor %s: its dimensions multiply to more than 63 bits", tensor->name);
    tensor->shape[tensor->rank - 1 - d] = (int64_t)dims[d];
  }
  rdna__gguf_tensor_type type = rdna__gguf_tensor_type_of(tensor->ggml_type);
  tensor->dtype = type.dtype;
  if (type.block_values == 0) return RDNA_OK; /* of unknown size: only its name can be told */
  uint64_t row = tensor->rank ? dims[0] : 1;
  if (row % type.block_values)
    return rdna__fail(RDNA_BAD_DATA, "tensor %s: its rows have %llu values, not a multiple of the %u in a block of %s",
                      tensor->name, (unsigned long long)row, (unsigned)type.block_values, type.name);
  uint64_t bytes;
  if (__builtin_mul_overflow(count / type.block_values, (uint64_t)type.block_bytes, &bytes) || bytes > SIZE_MAX / 2)
    return rdna__fail(RDNA_BAD_DATA, "tensor %s: its size does not fit this machine's memory", tensor->name);
  tensor->bytes = (size_t)bytes;
  return RDNA_OK;
}

/* |out_offset| is from the start of the data, which lies behind all tensor infos. */
static rdna_status read_tensor_info(reader *r, rdna_gguf *file, uint64_t *out_offset) {
  rdna_gguf_tensor *tensor = &file->tensors[file->tensor_count];
  *tensor = (rdna_gguf_tensor){0};
  char *name = NULL;
  size_t name_size = 0;
  RDNA_TRY(read_name(r, "the name of a tensor", &name, &name_size));
  tensor->name = name;
  file->tensor_count++;
  bool inserted;
  RDNA_TRY(rdna__strmap_insert(&file->tensor_by_name, name, name_size, (uint32_t)(file->tensor_count - 1), &inserted));
  if (!inserted) return rdna__fail(RDNA_BAD_DATA, "tensor %s is there twice", name);
  uint32_t rank = 0;
  RDNA_TRY(read_bytes(r, "the rank of a tensor", &rank, sizeof rank));
  if (rank > MAX_RANK)
    return rdna__fail(RDNA_BAD_DATA, "tensor %s has %u dimensions, the format allows %d", name, (unsigned)rank,
                      MAX_RANK);
  tensor->rank = (int)rank;
  uint64_t dims[MAX_RANK];
  RDNA_TRY(read_bytes(r, "the dimensions of a tensor", dims, rank * sizeof *dims));
  RDNA_TRY(read_bytes(r, "the type of a tensor", &tensor->ggml_type, sizeof tensor->ggml_type));
  RDNA_TRY(read_bytes(r, "the offset of a tensor", out_offset, sizeof *out_offset));
  return measure(tensor, dims);
}

static rdna_status read_alignment(const rdna__gguf_keys *keys, uint64_t *out) {
  *out = DEFAULT_ALIGNMENT;
  uint32_t index;
  if (!rdna__strmap_find(&keys->by_name, "general.alignment", strlen("general.alignment"), &index)) return RDNA_OK;
  RDNA_TRY(rdna__gguf_keys_get_u64(keys, "general.alignment", out));
  /* the format wants a multiple of 8; every writer uses a power of two, and nothing else keeps data in place */
  if (*out < 8 || (*out & (*out - 1)) || *out > UINT32_MAX)
    return rdna__fail(RDNA_BAD_DATA, "general.alignment is %llu, but must be a power of two from 8",
                      (unsigned long long)*out);
  return RDNA_OK;
}

static rdna_status place_tensor(rdna_gguf_tensor *tensor, const rdna__gguf_part *part, uint64_t start, uint64_t offset,
                                uint64_t alignment) {
  if (offset % alignment)
    return rdna__fail(RDNA_BAD_DATA, "tensor %s starts at %llu, which is not aligned to %llu", tensor->name,
                      (unsigned long long)offset, (unsigned long long)alignment);
  uint64_t room = part->size > start ? part->size - start : 0;
  if (offset > room || tensor->bytes > room - offset)
    return rdna__fail(RDNA_BAD_DATA,
                      "tensor %s wants %zu bytes at %llu, but the file holds %llu bytes of data; it may be incomplete",
                      tensor->name, tensor->bytes, (unsigned long long)offset, (unsigned long long)room);
  if (tensor->bytes) tensor->data = part->data + start + offset;
  return RDNA_OK;
}

static rdna_status read_tensors(reader *r, rdna_gguf *file, const rdna__gguf_part *part, uint64_t count) {
  enum { LEAST_BYTES = 8 + 4 + 4 + 8 };
  if (count > left(r) / LEAST_BYTES)
    return rdna__fail(RDNA_BAD_DATA, "the file claims %llu tensors, more than its %zu bytes can hold",
                      (unsigned long long)count, part->size);
  uint64_t alignment;
  RDNA_TRY(read_alignment(&part->keys, &alignment));
  if (count == 0) return RDNA_OK;
  size_t first = file->tensor_count;
  rdna_gguf_tensor *grown = realloc(file->tensors, (first + (size_t)count) * sizeof *grown);
  if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %llu tensors", (unsigned long long)count);
  file->tensors = grown;
  uint64_t *offsets = malloc((size_t)count * sizeof *offsets);
  if (!offsets) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %llu tensors", (unsigned long long)count);
  rdna_status status = RDNA_OK;
  for (uint64_t i = 0; i < count && status == RDNA_OK; i++) status = read_tensor_info(r, file, &offsets[i]);
  uint64_t start = ((uint64_t)(r->at - r->start) + alignment - 1) & ~(alignment - 1);
  for (uint64_t i = 0; i < count && status == RDNA_OK; i++)
    status = place_tensor(&file->tensors[first + i], part, start, offsets[i], alignment);
  free(offsets);
  return status;
}

static rdna_status read_header(reader *r, uint32_t *out_version, uint64_t *out_tensors, uint64_t *out_keys) {
  if (left(r) < 4 || memcmp(r->at, "GGUF", 4) != 0)
    return rdna__fail(RDNA_BAD_DATA, "not a GGUF file: it does not start with the letters GGUF");
  r->at += 4;
  RDNA_TRY(read_bytes(r, "the header", out_version, sizeof *out_version));
  if (*out_version && (*out_version & 0xffff) == 0)
    return rdna__fail(RDNA_UNSUPPORTED, "a big-endian GGUF file; convert the model again for little-endian machines");
  if (*out_version == 1)
    return rdna__fail(RDNA_UNSUPPORTED, "GGUF version 1, which was replaced in 2023; convert the model again");
  if (*out_version < 2 || *out_version > 3)
    return rdna__fail(RDNA_UNSUPPORTED, "GGUF version %u; this build reads 2 and 3", (unsigned)*out_version);
  RDNA_TRY(read_bytes(r, "the header", out_tensors, sizeof *out_tensors));
  return read_bytes(r, "the header", out_keys, sizeof *out_keys);
}

static rdna_status parse_part(rdna_gguf *file, rdna__gguf_part *part) {
  reader r = {part->data, part->data, part->data + part->size};
  uint64_t tensor_count = 0, key_count = 0;
  RDNA_TRY(read_header(&r, &part->version, &tensor_count, &key_count));
  RDNA_TRY(read_keys(&r, key_count, &part->keys));
  return read_tensors(&r, file, part, tensor_count);
}

static rdna_status map_file(const char *path, rdna__gguf_part *part) {
  RDNA_TRY(rdna__file_map(path, &part->mapped));
  part->data = part->mapped.data;
  part->size = part->mapped.size;
  if (part->size < HEADER_BYTES) return rdna__fail(RDNA_BAD_DATA, "not a GGUF file: it has only %zu bytes", part->size);
  return RDNA_OK;
}

/* Opens |path| as the next part of |file|. */
static rdna_status add_part(rdna_gguf *file, const char *path) {
  rdna__gguf_part *part = &file->parts[file->part_count++];
  RDNA_TRY(rdna__annotate(map_file(path, part), "%s", path));
  return rdna__annotate(parse_part(file, part), "%s", path);
}

typedef struct split {
  uint64_t number, count; /* number from 0; count is 1 when the model is one file */
  uint64_t tensor_count;  /* of all parts; UINT64_MAX when the file does not say */
} split;

static rdna_status get_optional(const rdna__gguf_keys *keys, const char *name, uint64_t initial, uint64_t *out) {
  uint32_t index;
  *out = initial;
  if (!rdna__strmap_find(&keys->by_name, name, strlen(name), &index)) return RDNA_OK;
  return rdna__gguf_keys_get_u64(keys, name, out);
}

static rdna_status read_split(const rdna__gguf_keys *keys, split *out) {
  RDNA_TRY(get_optional(keys, "split.count", 1, &out->count));
  RDNA_TRY(get_optional(keys, "split.no", 0, &out->number));
  RDNA_TRY(get_optional(keys, "split.tensors.count", UINT64_MAX, &out->tensor_count));
  if (out->count == 0) out->count = 1; /* what a merge of parts leaves behind */
  if (out->count > MAX_PARTS || out->number >= out->count)
    return rdna__fail(RDNA_BAD_DATA, "the file says that it is part %llu of %llu", (unsigned long long)out->number + 1,
                      (unsigned long long)out->count);
  return RDNA_OK;
}

enum { SUFFIX_BYTES = sizeof "-00001-of-00003.gguf" };

static void name_suffix(const split *parts, uint64_t number, char out[SUFFIX_BYTES]) {
  snprintf(out, SUFFIX_BYTES, "-%05u-of-%05u.gguf", (unsigned)(number + 1) % 100000u, (unsigned)parts->count % 100000u);
}

/* |path| with part |number| in place of its own. Free the result with free(). */
static rdna_status sibling_path(const char *path, const split *own, uint64_t number, char **out) {
  char suffix[SUFFIX_BYTES];
  name_suffix(own, own->number, suffix);
  size_t length = strlen(path), suffix_length = strlen(suffix);
  if (length < suffix_length || strcmp(path + length - suffix_length, suffix) != 0)
    return rdna__fail(RDNA_BAD_DATA,
                      "%s: part %llu of %llu of a model; its name must end in %s so that the others can be found", path,
                      (unsigned long long)own->number + 1, (unsigned long long)own->count, suffix);
  char *sibling = strdup(path);
  if (!sibling) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a path");
  name_suffix(own, number, suffix);
  memcpy(sibling + length - suffix_length, suffix, suffix_length);
  *out = sibling;
  return RDNA_OK;
}

/* The parts behind the first, which is open. */
static rdna_status add_siblings(rdna_gguf *file, const char *path, const split *first) {
  rdna__gguf_part *grown = realloc(file->parts, (size_t)first->count * sizeof *grown);
  if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %llu files", (unsigned long long)first->count);
  file->parts = grown;
  memset(grown + 1, 0, (size_t)(first->count - 1) * sizeof *grown);
  for (uint64_t i = 1; i < first->count; i++) {
    char *sibling;
    RDNA_TRY(sibling_path(path, first, i, &sibling));
    rdna_status status = add_part(file, sibling);
    free(sibling);
    RDNA_TRY(status);
    split own;
    RDNA_TRY(read_split(&file->parts[i].keys, &own));
    if (own.number != i || own.count != first->count)
      return rdna__fail(RDNA_BAD_DATA, "%s: the file named as part %llu says that it is part %llu of %llu", path,
                        (unsigned long long)i + 1, (unsigned long long)own.number + 1, (unsigned long long)own.count);
  }
  if (first->tensor_count != UINT64_MAX && first->tensor_count != file->tensor_count)
    return rdna__fail(RDNA_BAD_DATA, "%s: all parts together hold %zu tensors, but the first says %llu", path,
                      file->tensor_count, (unsigned long long)first->tensor_count);
  return RDNA_OK;
}

static rdna_status create(rdna_gguf **out_file) {
  rdna_gguf *file = calloc(1, sizeof *file);
  if (file) file->parts = calloc(1, sizeof *file->parts);
  if (!file || !file->parts) {
    free(file);
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a model file");
  }
  *out_file = file;
  return RDNA_OK;
}

void rdna_gguf_close(rdna_gguf *file) {
  if (!file) return;
  rdna__gguf_maker_free(file->maker);
  for (size_t p = 0; p < file->part_count; p++) {
    rdna__gguf_part *part = &file->parts[p];
    for (size_t i = 0; i < part->keys.count; i++) {
      free(part->keys.values[i].name);
      free(part->keys.values[i].texts);
    }
    free(part->keys.values);
    rdna__strmap_deinit(&part->keys.by_name);
    rdna__file_unmap(&part->mapped);
  }
  for (size_t i = 0; i < file->tensor_count; i++) free((char *)file->tensors[i].name);
  free(file->tensors);
  rdna__strmap_deinit(&file->tensor_by_name);
  free(file->parts);
  free(file);
}

/* Opens the part at |path| alone, and tells which one it is. */
static rdna_status open_one(const char *path, rdna_gguf **out_file, split *out_split) {
  rdna_gguf *file;
  RDNA_TRY(create(&file));
  rdna_status status = add_part(file, path);
  if (status == RDNA_OK) status = rdna__annotate(read_split(&file->parts[0].keys, out_split), "%s", path);
  if (status == RDNA_OK) {
    *out_file = file;
  } else {
    rdna_gguf_close(file);
  }
  return status;
}

static rdna_status open_first(const char *path, rdna_gguf **out_file) {
  split parts;
  rdna_gguf *file;
  RDNA_TRY(open_one(path, &file, &parts));
  rdna_status status = RDNA_OK;
  if (parts.number != 0)
    status = rdna__fail(RDNA_BAD_DATA, "%s: the file named as the first part says that it is part %llu", path,
                        (unsigned long long)parts.number + 1);
  else if (parts.count > 1)
    status = add_siblings(file, path, &parts);
  if (status == RDNA_OK) {
    *out_file = file;
  } else {
    rdna_gguf_close(file);
  }
  return status;
}

rdna_status rdna_gguf_open(const char *path, rdna_gguf **out_file) {
  if (!path || !out_file) return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_gguf_open needs a path and a place");
  split parts;
  rdna_gguf *file;
  RDNA_TRY(open_one(path, &file, &parts));
  if (parts.count == 1) {
    *out_file = file;
    return RDNA_OK;
  }
  rdna_gguf_close(file);
  char *first;
  RDNA_TRY(sibling_path(path, &parts, 0, &first));
  rdna_status status = open_first(first, out_file);
  free(first);
  return status;
}

rdna_status rdna_gguf_open_memory(const void *data, size_t size, rdna_gguf **out_file) {
  if (!data || !out_file || ((uintptr_t)data & 7))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_gguf_open_memory needs data aligned to 8 bytes, and a place");
  rdna_gguf *file;
  RDNA_TRY(create(&file));
  file->part_count = 1;
  file->parts[0].data = data;
  file->parts[0].size = size;
  rdna_status status = parse_part(file, &file->parts[0]);
  split parts;
  if (status == RDNA_OK) status = read_split(&file->parts[0].keys, &parts);
  if (status == RDNA_OK && parts.count > 1)
    status = rdna__fail(RDNA_UNSUPPORTED, "part %llu of %llu of a model cannot be opened from memory; open it by path",
                        (unsigned long long)parts.number + 1, (unsigned long long)parts.count);
  if (status == RDNA_OK) {
    *out_file = file;
  } else {
    rdna_gguf_close(file);
  }
  return status;
}
