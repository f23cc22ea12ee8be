#include <math.h>
#include <string.h>

#include "base/block_formats.h"
#include "base/status.h"
#include "model/gguf/gguf.h"

const char *rdna_gguf_type_name(rdna_gguf_type type) {
  static const char *const names[RDNA_GGUF_TYPE_COUNT] = {"u8",   "i8",   "u16",   "i16", "u32", "i32", "f32",
                                                          "bool", "text", "array", "u64", "i64", "f64"};
  return (unsigned)type < RDNA_GGUF_TYPE_COUNT ? names[type] : "?";
}

size_t rdna__gguf_type_bytes(rdna_gguf_type type) {
  static const uint8_t bytes[RDNA_GGUF_TYPE_COUNT] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return (unsigned)type < RDNA_GGUF_TYPE_COUNT ? bytes[type] : 0;
}

#define BLOCKS(X, name, NAME, ggml, values, bytes, ...) , [ggml] = {#NAME, values, bytes, RDNA_##NAME}
/* Numbers and block sizes: ggml.h (enum ggml_type) and ggml-common.h of github.com/ggml-org/ggml. */
rdna__gguf_tensor_type rdna__gguf_tensor_type_of(uint32_t ggml_type) {
  static const rdna__gguf_tensor_type types[] = {
      [0] = {"F32", 1, 4, RDNA_F32},
      [1] = {"F16", 1, 2, RDNA_F16} RDNA_BLOCK_FORMATS(BLOCKS, ),
      [9] = {"Q8_1", 32, 36, RDNA_DTYPE_COUNT},
      [15] = {"Q8_K", 256, 292, RDNA_DTYPE_COUNT},
      [24] = {"I8", 1, 1, RDNA_I8},
      [25] = {"I16", 1, 2, RDNA_I16},
      [26] = {"I32", 1, 4, RDNA_I32},
      [27] = {"I64", 1, 8, RDNA_I64},
      [28] = {"F64", 1, 8, RDNA_F64},
      [30] = {"BF16", 1, 2, RDNA_BF16},
      [40] = {"NVFP4", 64, 36, RDNA_DTYPE_COUNT},
      [41] = {"Q1_0", 128, 18, RDNA_DTYPE_COUNT},
  };
  if (ggml_type < sizeof types / sizeof *types && types[ggml_type].name) return types[ggml_type];
  return (rdna__gguf_tensor_type){"?", 0, 0, RDNA_DTYPE_COUNT};
}

uint32_t rdna__gguf_number_of(rdna_dtype dtype) {
  enum { MOST_TYPES = 64 }; /* more than are assigned */
  for (uint32_t i = 0; i < MOST_TYPES; i++) {
    rdna__gguf_tensor_type type = rdna__gguf_tensor_type_of(i);
    if (type.block_values && type.dtype == dtype) return i;
  }
  return UINT32_MAX;
}

const char *rdna_gguf_tensor_type_name(uint32_t ggml_type) { return rdna__gguf_tensor_type_of(ggml_type).name; }

uint32_t rdna_gguf_version(const rdna_gguf *file) { return file->parts[0].version; }
size_t rdna_gguf_key_count(const rdna_gguf *file) { return file->parts[0].keys.count; }

static rdna_gguf_key describe(const rdna__gguf_value *value) {
  return (rdna_gguf_key){value->name, value->type, value->element_type, value->count};
}

rdna_status rdna_gguf_key_at(const rdna_gguf *file, size_t index, rdna_gguf_key *out_key) {
  const rdna__gguf_keys *keys = &file->parts[0].keys;
  if (index >= keys->count)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "key %zu was asked for, the file has %zu", index, keys->count);
  *out_key = describe(&keys->values[index]);
  return RDNA_OK;
}

static const rdna__gguf_value *find(const rdna__gguf_keys *keys, const char *name) {
  uint32_t index;
  return rdna__strmap_find(&keys->by_name, name, strlen(name), &index) ? &keys->values[index] : NULL;
}

bool rdna_gguf_find_key(const rdna_gguf *file, const char *name, rdna_gguf_key *out_key) {
  const rdna__gguf_value *value = find(&file->parts[0].keys, name);
  if (value && out_key) *out_key = describe(value);
  return value != NULL;
}

static rdna_status get(const rdna__gguf_keys *keys, const char *name, const rdna__gguf_value **out) {
  *out = find(keys, name);
  return *out ? RDNA_OK : rdna__fail(RDNA_NOT_FOUND, "the model file has no key %s", name);
}

static rdna_status wrong_type(const rdna__gguf_value *value, const char *wanted) {
  if (value->type == RDNA_GGUF_TYPE_ARRAY)
    return rdna__fail(RDNA_BAD_DATA, "key %s holds an array of %s, not %s", value->name,
                      rdna_gguf_type_name(value->element_type), wanted);
  return rdna__fail(RDNA_BAD_DATA, "key %s holds a %s, not %s", value->name, rdna_gguf_type_name(value->type), wanted);
}

/* Element |index| as an integer: |out_negative| tells whether |out| is to be read as int64_t. False for other types. */
static bool load_integer(const rdna__gguf_value *value, uint64_t index, uint64_t *out, bool *out_negative) {
  size_t bytes = rdna__gguf_type_bytes(value->element_type);
  uint64_t raw = 0;
  memcpy(&raw, value->data + index * bytes, bytes);
  int64_t number;
  switch (value->element_type) {
    case RDNA_GGUF_TYPE_U8:
    case RDNA_GGUF_TYPE_U16:
    case RDNA_GGUF_TYPE_U32:
    case RDNA_GGUF_TYPE_U64:
      *out = raw;
      *out_negative = false;
      return true;
    case RDNA_GGUF_TYPE_I8:
      number = (int8_t)raw;
      break;
    case RDNA_GGUF_TYPE_I16:
      number = (int16_t)raw;
      break;
    case RDNA_GGUF_TYPE_I32:
      number = (int32_t)raw;
      break;
    case RDNA_GGUF_TYPE_I64:
      number = (int64_t)raw;
      break;
    default:
      return false;
  }
  *out = (uint64_t)number;
  *out_negative = number < 0;
  return true;
}

static bool load_float(const rdna__gguf_value *value, uint64_t index, double *out) {
  if (value->element_type == RDNA_GGUF_TYPE_F32) {
    float number;
    memcpy(&number, value->data + index * sizeof number, sizeof number);
    *out = number;
    return true;
  }
  if (value->element_type == RDNA_GGUF_TYPE_F64) {
    memcpy(out, value->data + index * sizeof *out, sizeof *out);
    return true;
  }
  return false;
}

static rdna_status get_integer(const rdna__gguf_keys *keys, const char *name, uint64_t *out, bool *out_negative) {
  const rdna__gguf_value *value;
  RDNA_TRY(get(keys, name, &value));
  if (value->type == RDNA_GGUF_TYPE_ARRAY || value->type == RDNA_GGUF_TYPE_TEXT) return wrong_type(value, "an integer");
  if (!load_integer(value, 0, out, out_negative)) return wrong_type(value, "an integer");
  return RDNA_OK;
}

rdna_status rdna__gguf_keys_get_u64(const rdna__gguf_keys *keys, const char *name, uint64_t *out) {
  uint64_t raw;
  bool negative;
  RDNA_TRY(get_integer(keys, name, &raw, &negative));
  if (negative) return rdna__fail(RDNA_BAD_DATA, "key %s is %lld, but cannot be negative", name, (long long)raw);
  *out = raw;
  return RDNA_OK;
}

rdna_status rdna_gguf_get_u64(const rdna_gguf *file, const char *name, uint64_t *out) {
  return rdna__gguf_keys_get_u64(&file->parts[0].keys, name, out);
}

rdna_status rdna_gguf_get_i64(const rdna_gguf *file, const char *name, int64_t *out) {
  uint64_t raw;
  bool negative;
  RDNA_TRY(get_integer(&file->parts[0].keys, name, &raw, &negative));
  if (!negative && raw > INT64_MAX)
    return rdna__fail(RDNA_BAD_DATA, "key %s is %llu, more than a signed 64-bit number holds", name,
                      (unsigned long long)raw);
  *out = (int64_t)raw;
  return RDNA_OK;
}

rdna_status rdna_gguf_get_f64(const rdna_gguf *file, const char *name, double *out) {
  const rdna__gguf_value *value;
  RDNA_TRY(get(&file->parts[0].keys, name, &value));
  if (value->type == RDNA_GGUF_TYPE_ARRAY || value->type == RDNA_GGUF_TYPE_TEXT) return wrong_type(value, "a number");
  if (load_float(value, 0, out)) return RDNA_OK;
  uint64_t raw;
  bool negative;
  if (!load_integer(value, 0, &raw, &negative)) return wrong_type(value, "a number");
  uint64_t magnitude = negative ? -raw : raw;
  if (magnitude > UINT64_C(1) << 53)
    return rdna__fail(RDNA_BAD_DATA, "key %s is an integer beyond 2^53, which a double does not hold", name);
  *out = negative ? -(double)magnitude : (double)magnitude;
  return RDNA_OK;
}

rdna_status rdna_gguf_get_bool(const rdna_gguf *file, const char *name, bool *out) {
  const rdna__gguf_value *value;
  RDNA_TRY(get(&file->parts[0].keys, name, &value));
  if (value->type != RDNA_GGUF_TYPE_BOOL) return wrong_type(value, "a bool");
  *out = value->data[0] != 0;
  return RDNA_OK;
}

rdna_status rdna_gguf_get_text(const rdna_gguf *file, const char *name, rdna_text *out) {
  const rdna__gguf_value *value;
  RDNA_TRY(get(&file->parts[0].keys, name, &value));
  if (value->type != RDNA_GGUF_TYPE_TEXT) return wrong_type(value, "a text");
  *out = value->texts[0];
  return RDNA_OK;
}

rdna_status rdna_gguf_get_texts(const rdna_gguf *file, const char *name, const rdna_text **out_texts,
                                size_t *out_count) {
  const rdna__gguf_value *value;
  RDNA_TRY(get(&file->parts[0].keys, name, &value));
  if (value->type != RDNA_GGUF_TYPE_ARRAY || value->element_type != RDNA_GGUF_TYPE_TEXT)
    return wrong_type(value, "an array of text");
  *out_texts = value->texts;
  *out_count = (size_t)value->count;
  return RDNA_OK;
}

static rdna_status get_range(const rdna_gguf *file, const char *name, uint64_t first, size_t count,
                             const rdna__gguf_value **out) {
  RDNA_TRY(get(&file->parts[0].keys, name, out));
  if ((*out)->type != RDNA_GGUF_TYPE_ARRAY) return wrong_type(*out, "an array of numbers");
  if (first > (*out)->count || count > (*out)->count - first)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "elements %llu to %llu of key %s were asked for, it has %llu",
                      (unsigned long long)first, (unsigned long long)first + count, name,
                      (unsigned long long)(*out)->count);
  return RDNA_OK;
}

static bool holds_numbers(rdna_gguf_type type) { return type != RDNA_GGUF_TYPE_TEXT && type != RDNA_GGUF_TYPE_ARRAY; }

rdna_status rdna_gguf_read_i32(const rdna_gguf *file, const char *name, uint64_t first, size_t count, int32_t *out) {
  const rdna__gguf_value *value;
  RDNA_TRY(get_range(file, name, first, count, &value));
  if (value->element_type == RDNA_GGUF_TYPE_BOOL) {
    for (size_t i = 0; i < count; i++) out[i] = value->data[first + i];
    return RDNA_OK;
  }
  if (!holds_numbers(value->element_type) || value->element_type == RDNA_GGUF_TYPE_F32 ||
      value->element_type == RDNA_GGUF_TYPE_F64)
    return wrong_type(value, "an array of integers");
  for (int pass = 0; pass < 2; pass++) { /* check all first, so that a failure leaves |out| untouched */
    for (size_t i = 0; i < count; i++) {
      uint64_t raw;
      bool negative;
      (void)load_integer(value, first + i, &raw, &negative);
      if (negative ? (int64_t)raw < INT32_MIN : raw > INT32_MAX)
        return rdna__fail(RDNA_BAD_DATA, "element %llu of key %s does not fit 32 bits", (unsigned long long)first + i,
                          name);
      if (pass) out[i] = (int32_t)(int64_t)raw;
    }
  }
  return RDNA_OK;
}

rdna_status rdna_gguf_read_f32(const rdna_gguf *file, const char *name, uint64_t first, size_t count, float *out) {
  const rdna__gguf_value *value;
  RDNA_TRY(get_range(file, name, first, count, &value));
  if (!holds_numbers(value->element_type) || value->element_type == RDNA_GGUF_TYPE_BOOL)
    return wrong_type(value, "an array of numbers");
  for (int pass = 0; pass < 2; pass++) {
    for (size_t i = 0; i < count; i++) {
      double number;
      uint64_t raw;
      bool negative;
      if (!load_float(value, first + i, &number)) {
        (void)load_integer(value, first + i, &raw, &negative);
        number = negative ? (double)(int64_t)raw : (double)raw;
      }
      if (isfinite(number) && !isfinite((float)number))
        return rdna__fail(RDNA_BAD_DATA, "element %llu of key %s, %g, is beyond the range of f32",
                          (unsigned long long)first + i, name, number);
      if (pass) out[i] = (float)number;
    }
  }
  return RDNA_OK;
}

size_t rdna_gguf_tensor_count(const rdna_gguf *file) { return file->tensor_count; }

rdna_status rdna_gguf_tensor_at(const rdna_gguf *file, size_t index, rdna_gguf_tensor *out_tensor) {
  if (index >= file->tensor_count)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "tensor %zu was asked for, the file has %zu", index, file->tensor_count);
  if (file->maker) RDNA_TRY(rdna__gguf_make(file->maker, index));
  *out_tensor = file->tensors[index];
  return RDNA_OK;
}

bool rdna_gguf_has_tensor(const rdna_gguf *file, const char *name) {
  uint32_t index;
  return rdna__strmap_find(&file->tensor_by_name, name, strlen(name), &index);
}

#define NAMES(X, name, NAME, ...) ", " #NAME
rdna_status rdna_gguf_get_tensor(const rdna_gguf *file, const char *name, rdna_gguf_tensor *out_tensor) {
  uint32_t index;
  if (!rdna__strmap_find(&file->tensor_by_name, name, strlen(name), &index))
    return rdna__fail(RDNA_NOT_FOUND, "the model file has no tensor %s", name);
  const rdna_gguf_tensor *tensor = &file->tensors[index];
  if (tensor->dtype == RDNA_DTYPE_COUNT)
    return rdna__fail(RDNA_UNSUPPORTED,
                      "tensor %s has type %s (%u), which this build cannot compute with; use a file of F32, F16, "
                      "BF16" RDNA_BLOCK_FORMATS(NAMES, ),
                      name, rdna_gguf_tensor_type_name(tensor->ggml_type), (unsigned)tensor->ggml_type);
  if (file->maker) RDNA_TRY(rdna__gguf_make(file->maker, index));
  *out_tensor = *tensor;
  return RDNA_OK;
}
