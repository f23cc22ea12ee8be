// The "amdhsa.kernels" of a code object's note: MessagePack, read in place.
#include <stdlib.h>
#include <string.h>

#include "object/bytes.h"
#include "object/object.h"

enum { MAX_DEPTH = 32 };

enum value_kind { VALUE_OTHER, VALUE_INTEGER, VALUE_TEXT, VALUE_ARRAY, VALUE_MAP };

typedef struct cursor {
  const uint8_t *data;
  size_t size, at;
} cursor;

typedef struct value {
  enum value_kind kind;
  uint64_t number;  // an integer, or how many elements follow (pairs, of a map)
  const char *text;
  size_t length;
} value;

static bool read_big(cursor *c, unsigned bytes, uint64_t *out) {
  if (!emu_within(c->at, bytes, c->size)) return false;
  *out = 0;
  for (unsigned i = 0; i < bytes; i++) *out = *out << 8 | c->data[c->at++];
  return true;
}

static bool take_text(cursor *c, uint64_t length, value *out) {
  if (!emu_within(c->at, length, c->size)) return false;
  *out = (value){VALUE_TEXT, 0, (const char *)c->data + c->at, length};
  c->at += length;
  return true;
}

// Reads one value; of an array or a map only its head. false: not MessagePack, or not all there.
static bool read_value(cursor *c, value *out) {
  uint64_t n = 0;
  *out = (value){VALUE_OTHER};
  if (!read_big(c, 1, &n)) return false;
  unsigned tag = (unsigned)n;
  if (tag < 0x80 || tag >= 0xe0) {
    *out = (value){.kind = VALUE_INTEGER, .number = (uint64_t)(int64_t)(int8_t)tag};
    return true;
  }
  if (tag < 0x90) return *out = (value){.kind = VALUE_MAP, .number = tag & 15}, true;
  if (tag < 0xa0) return *out = (value){.kind = VALUE_ARRAY, .number = tag & 15}, true;
  if (tag < 0xc0) return take_text(c, tag & 31, out);
  switch (tag) {
    case 0xc0:
      return true;
    case 0xc2:
    case 0xc3:
      *out = (value){.kind = VALUE_INTEGER, .number = tag & 1};
      return true;
    case 0xc4:
    case 0xc5:
    case 0xc6:  // bytes
      if (!read_big(c, 1u << (tag - 0xc4), &n) || !take_text(c, n, out)) return false;
      out->kind = VALUE_OTHER;
      return true;
    case 0xca:
    case 0xcb:  // floats
      return read_big(c, tag == 0xca ? 4 : 8, &n);
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3: {
      unsigned bytes = 1u << (tag & 3);
      if (!read_big(c, bytes, &n)) return false;
      if (tag >= 0xd0 && bytes < 8 && n >> (8 * bytes - 1)) n |= ~UINT64_C(0) << (8 * bytes);
      *out = (value){.kind = VALUE_INTEGER, .number = n};
      return true;
    }
    case 0xd9:
    case 0xda:
    case 0xdb:
      return read_big(c, 1u << (tag - 0xd9), &n) && take_text(c, n, out);
    case 0xdc:
    case 0xdd:
    case 0xde:
    case 0xdf:
      if (!read_big(c, tag & 1 ? 4 : 2, &n)) return false;
      *out = (value){.kind = tag < 0xde ? VALUE_ARRAY : VALUE_MAP, .number = n};
      return true;
    default:
      return false;  // extensions: metadata has none
  }
}

// Passes over what follows the head `v`.
static bool skip_rest(cursor *c, const value *v, unsigned depth) {
  if (v->kind != VALUE_ARRAY && v->kind != VALUE_MAP) return true;
  if (depth > MAX_DEPTH) return false;
  uint64_t elements = v->kind == VALUE_MAP ? 2 * v->number : v->number;
  for (uint64_t i = 0; i < elements; i++) {
    value element;
    if (!read_value(c, &element) || !skip_rest(c, &element, depth + 1)) return false;
  }
  return true;
}

static bool is(const value *v, const char *text) {
  return v->kind == VALUE_TEXT && v->length == strlen(text) && memcmp(v->text, text, v->length) == 0;
}

static enum emu_arg_kind arg_kind(const value *v) {
  static const struct {
    const char *name;
    enum emu_arg_kind kind;
  } kinds[] = {{"by_value", EMU_ARG_BY_VALUE},
               {"hidden_block_count_x", EMU_ARG_BLOCK_COUNT_X},
               {"hidden_block_count_y", EMU_ARG_BLOCK_COUNT_Y},
               {"hidden_block_count_z", EMU_ARG_BLOCK_COUNT_Z},
               {"hidden_group_size_x", EMU_ARG_GROUP_SIZE_X},
               {"hidden_group_size_y", EMU_ARG_GROUP_SIZE_Y},
               {"hidden_group_size_z", EMU_ARG_GROUP_SIZE_Z},
               {"hidden_remainder_x", EMU_ARG_REMAINDER_X},
               {"hidden_remainder_y", EMU_ARG_REMAINDER_Y},
               {"hidden_remainder_z", EMU_ARG_REMAINDER_Z},
               {"hidden_grid_dims", EMU_ARG_GRID_DIMS},
               {"hidden_dynamic_lds_size", EMU_ARG_DYNAMIC_LDS_SIZE},
               {"hidden_hostcall_buffer", EMU_ARG_HOSTCALL_BUFFER},
               {"hidden_heap_v1", EMU_ARG_HEAP},
               {"hidden_multigrid_sync_arg", EMU_ARG_GRID_SYNC}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (is(v, kinds[i].name)) return kinds[i].kind;
  return v->kind == VALUE_TEXT && v->length > 7 && memcmp(v->text, "hidden_", 7) == 0 ? EMU_ARG_HIDDEN_ZERO
                                                                                      : EMU_ARG_POINTER;
}

static bool read_arg(cursor *c, struct emu_arg *out) {
  value head, key, v;
  if (!read_value(c, &head) || head.kind != VALUE_MAP) return false;
  for (uint64_t i = 0; i < head.number; i++) {
    if (!read_value(c, &key) || key.kind != VALUE_TEXT || !read_value(c, &v)) return false;
    if (is(&key, ".offset") && v.kind == VALUE_INTEGER) out->offset = (uint32_t)v.number;
    if (is(&key, ".size") && v.kind == VALUE_INTEGER) out->size = (uint32_t)v.number;
    if (is(&key, ".value_kind")) out->kind = arg_kind(&v);
    if (!skip_rest(c, &v, 0)) return false;
  }
  return true;
}

typedef struct kernel_record {
  value symbol, name;
  struct emu_arg *args;
  unsigned arg_count;
  bool has_args, dynamic_stack;
  uint64_t kernarg_bytes, max_threads;
} kernel_record;

static bool read_args(cursor *c, uint64_t count, kernel_record *out) {
  if (count > 4096 || out->args) return false;
  out->args = calloc(count + 1, sizeof *out->args);
  out->has_args = out->args != NULL;
  for (uint64_t i = 0; out->args && i < count; i++, out->arg_count++)
    if (!read_arg(c, &out->args[i])) return false;
  return out->args != NULL;
}

static bool read_record(cursor *c, kernel_record *out) {
  value head, key, v;
  if (!read_value(c, &head) || head.kind != VALUE_MAP) return false;
  for (uint64_t i = 0; i < head.number; i++) {
    if (!read_value(c, &key) || key.kind != VALUE_TEXT || !read_value(c, &v)) return false;
    if (is(&key, ".args") && v.kind == VALUE_ARRAY) {
      if (!read_args(c, v.number, out)) return false;
      continue;
    }
    if (is(&key, ".symbol")) out->symbol = v;
    if (is(&key, ".name")) out->name = v;
    if (is(&key, ".kernarg_segment_size") && v.kind == VALUE_INTEGER) out->kernarg_bytes = v.number;
    if (is(&key, ".max_flat_workgroup_size") && v.kind == VALUE_INTEGER) out->max_threads = v.number;
    if (is(&key, ".uses_dynamic_stack") && v.kind == VALUE_INTEGER) out->dynamic_stack = v.number != 0;
    if (!skip_rest(c, &v, 0)) return false;
  }
  return true;
}

static struct emu_object_kernel *kernel_of(struct emu_object *object, const value *symbol) {
  if (symbol->kind != VALUE_TEXT || symbol->length < 4) return NULL;
  size_t length = symbol->length - 3;  // without ".kd"
  for (unsigned i = 0; i < object->kernel_count; i++) {
    const char *name = object->kernels[i].name;
    if (strlen(name) == length && memcmp(name, symbol->text, length) == 0) return &object->kernels[i];
  }
  return NULL;
}

// Whether the arguments can be laid out: none beyond the segment, hidden ones of their own size.
static bool fits(const kernel_record *record, uint32_t kernarg_bytes) {
  if (record->kernarg_bytes > 1 << 20 || record->kernarg_bytes < kernarg_bytes) return false;
  for (unsigned i = 0; i < record->arg_count; i++) {
    const struct emu_arg *a = &record->args[i];
    unsigned least = a->kind >= EMU_ARG_GROUP_SIZE_X && a->kind <= EMU_ARG_GRID_DIMS           ? 2
                     : a->kind >= EMU_ARG_BLOCK_COUNT_X && a->kind <= EMU_ARG_DYNAMIC_LDS_SIZE ? 4
                     : a->kind >= EMU_ARG_HOSTCALL_BUFFER && a->kind <= EMU_ARG_GRID_SYNC      ? 8
                                                                                               : 0;
    if (!emu_within(a->offset, a->size, record->kernarg_bytes) || a->size < least) return false;
  }
  return true;
}

static bool read_kernel(cursor *c, struct emu_object *object) {
  kernel_record record = {.max_threads = 1024};
  bool good = read_record(c, &record);
  struct emu_object_kernel *kernel = good ? kernel_of(object, &record.symbol) : NULL;
  if (kernel && (kernel->args || !fits(&record, kernel->kernarg_bytes))) good = false;
  if (!good || !kernel) {
    free(record.args);
    return good;  // a record without its descriptor is of no use, and harmless
  }
  kernel->args = record.args;
  kernel->arg_count = record.arg_count;
  // a kernel without arguments may have no ".args" at all
  kernel->has_args = record.has_args || record.kernarg_bytes == 0;
  kernel->kernarg_bytes = (uint32_t)record.kernarg_bytes;
  kernel->max_threads = record.max_threads > 1024 ? 1024 : (uint32_t)record.max_threads;
  kernel->dynamic_stack = record.dynamic_stack;
  return true;
}

enum emu_object_status emu_metadata_read(struct emu_object *object, const uint8_t *data, size_t size,
                                         struct emu_object_error *error) {
  cursor c = {data, size, 0};
  value head, key, v;
  if (!read_value(&c, &head) || head.kind != VALUE_MAP) goto corrupt;
  for (uint64_t i = 0; i < head.number; i++) {
    if (!read_value(&c, &key) || key.kind != VALUE_TEXT || !read_value(&c, &v)) goto corrupt;
    if (is(&key, "amdhsa.kernels") && v.kind == VALUE_ARRAY) {
      for (uint64_t k = 0; k < v.number; k++)
        if (!read_kernel(&c, object)) goto corrupt;
    } else if (!skip_rest(&c, &v, 0)) {
      goto corrupt;
    }
  }
  return EMU_OBJECT_OK;
corrupt:
  return emu_object_fail(error, EMU_OBJECT_CORRUPT, "the code object's metadata is not what MessagePack can be, at %zu",
                         c.at);
}
