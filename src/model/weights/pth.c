#include "model/weights/pth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/* Each tensor is looked for among the entries of the zip: together they limit the time that takes. */
enum { MOST_ENTRIES = 1 << 13, MOST_TENSORS = 1 << 13 };

enum { MOST_VALUES = 1 << 20, MOST_RANK = RDNA_MAX_RANK, NAME_BYTES = 256, MOST_FILE = 1 << 30 };

typedef struct text {
  const uint8_t *data;
  size_t size;
} text;

static bool is(text t, const char *name) { return t.size == strlen(name) && memcmp(t.data, name, t.size) == 0; }

enum { SHOWN = 81 };

/* |t| for a sentence, whatever its bytes are. */
static const char *show(text t, char out[SHOWN]) {
  size_t size = t.size < SHOWN - 1 ? t.size : SHOWN - 1;
  for (size_t i = 0; i < size; i++) out[i] = t.data[i] >= ' ' && t.data[i] <= '~' ? (char)t.data[i] : '?';
  out[size] = 0;
  return out;
}

static rdna_status breaks_off(const char *what) { return rdna__fail(RDNA_BAD_DATA, "%s breaks off", what); }

/* ---- the zip ---- */

typedef struct archive {
  text file, directory; /* of which the latter has |count| entries */
  unsigned count;
  text root; /* what all names begin with, with its slash */
} archive;

static uint32_t number(const uint8_t *at, int bytes) {
  uint32_t value = 0;
  for (int i = 0; i < bytes; i++) value |= (uint32_t)at[i] << (8 * i);
  return value;
}

/* Its end is in the last 64 KiB, behind which a comment may stand. */
static rdna_status open_archive(const uint8_t *data, size_t size, archive *out) {
  enum { END = 22, COMMENT = 65535 };
  size_t least = size > END + COMMENT ? size - END - COMMENT : 0;
  *out = (archive){.file = {data, size}};
  for (size_t at = size >= END ? size - END + 1 : 0; at-- > least;) {
    if (memcmp(data + at, "PK\5\6", 4) != 0) continue;
    size_t bytes = number(data + at + 12, 4), begin = number(data + at + 16, 4);
    if (begin > at || bytes > at - begin)
      return rdna__fail(RDNA_UNSUPPORTED,
                        "its directory, of %zu bytes, does not stand before its end; files of 4 GiB "
                        "and more are not read",
                        bytes);
    out->count = number(data + at + 10, 2);
    out->directory = (text){data + begin, bytes};
    if (out->count <= MOST_ENTRIES) return RDNA_OK;
    return rdna__fail(RDNA_UNSUPPORTED, "it has %u entries; up to %d are read", out->count, MOST_ENTRIES);
  }
  return rdna__fail(RDNA_BAD_DATA, "it is no zip, or breaks off: there is no end of a directory");
}

/* The entry |name|, behind the root unless that is not known yet, when it is what ends so. */
static rdna_status find_entry(archive *a, text name, text *out) {
  enum { HEAD = 46, LOCAL = 30 };
  char shown[SHOWN];
  const uint8_t *at = a->directory.data, *end = at + a->directory.size;
  for (unsigned i = 0; i < a->count; i++) {
    if (end - at < HEAD || memcmp(at, "PK\1\2", 4) != 0) return breaks_off("its directory");
    size_t length = number(at + 28, 2), more = number(at + 30, 2) + number(at + 32, 2);
    if ((size_t)(end - at) - HEAD < length + more) return breaks_off("its directory");
    text found = {at + HEAD, length};
    size_t bytes = number(at + 24, 4), place = number(at + 42, 4), packed = number(at + 10, 2);
    at += HEAD + length + more;
    if (found.size < name.size || memcmp(found.data + found.size - name.size, name.data, name.size) != 0) continue;
    text root = {found.data, found.size - name.size};
    if (root.size == 0 || root.data[root.size - 1] != '/') continue;
    if (a->root.data && (root.size != a->root.size || memcmp(root.data, a->root.data, root.size) != 0)) continue;
    if (packed)
      return rdna__fail(RDNA_UNSUPPORTED, "its entry '%s' is packed, which PyTorch's are not", show(found, shown));
    if (place > a->file.size || a->file.size - place < LOCAL) return breaks_off("an entry");
    size_t skip = LOCAL + number(a->file.data + place + 26, 2) + number(a->file.data + place + 28, 2);
    if (a->file.size - place < skip || a->file.size - place - skip < bytes) return breaks_off("an entry");
    a->root = root;
    *out = (text){a->file.data + place + skip, bytes};
    return RDNA_OK;
  }
  return rdna__fail(RDNA_BAD_DATA, "it has no entry '%s', as files of torch.save have", show(name, shown));
}

/* ---- the pickle ---- */

typedef enum kind { OTHER, MARK, INTEGER, TEXT, TUPLE, DICTIONARY, STORAGE, TENSOR, CALL, TYPE } kind;

typedef enum call { ORDERED, REBUILD, PARAMETER } call;

typedef struct value {
  kind kind;
  int64_t number;      /* of an integer; the call's; which dictionary, tensor or type */
  text text;           /* of a text, and of a storage its key */
  size_t first, count; /* of a tuple, among |items| */
} value;

typedef struct tensor {
  int type;
  text key;
  int64_t offset, shape[MOST_RANK];
  int rank;
} tensor;

typedef struct entry { /* of a dictionary */
  int64_t of;
  text name;
  kind kind; /* TENSOR or DICTIONARY */
  int64_t which;
} entry;

/* Of each there are |count|, and room for |room|. */
#define LIST(type)      \
  struct {              \
    type *all;          \
    size_t count, room; \
  }

typedef struct machine {
  const uint8_t *at, *end;
  LIST(value) stack;
  LIST(value) items;
  LIST(value) memo;
  LIST(tensor) tensors;
  LIST(entry) entries;
  int64_t dictionaries;
} machine;

static const struct {
  const char *storage, *name;
  int bytes;
} types[] = {{"FloatStorage", "F32", 4},  {"HalfStorage", "F16", 2}, {"BFloat16Storage", "BF16", 2},
             {"DoubleStorage", "F64", 8}, {"LongStorage", "I64", 8}, {"IntStorage", "I32", 4},
             {"ShortStorage", "I16", 2},  {"CharStorage", "I8", 1},  {"ByteStorage", "U8", 1},
             {"BoolStorage", "BOOL", 1}};
enum { TYPES = sizeof types / sizeof *types };

static rdna_status grow(void **all, size_t count, size_t *room, size_t each) {
  if (count < *room) return RDNA_OK;
  if (count >= MOST_VALUES) return rdna__fail(RDNA_UNSUPPORTED, "its pickle has more than %d values", MOST_VALUES);
  size_t more = *room ? 2 * *room : 64;
  void *grown = realloc(*all, more * each);
  if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a pickle");
  *all = grown;
  *room = more;
  return RDNA_OK;
}
#define ADD(list, ...)                                                                    \
  do {                                                                                    \
    RDNA_TRY(grow((void **)&(list).all, (list).count, &(list).room, sizeof *(list).all)); \
    (list).all[(list).count++] = __VA_ARGS__;                                             \
  } while (0)

static rdna_status push(machine *m, value v) {
  ADD(m->stack, v);
  return RDNA_OK;
}

static rdna_status pop(machine *m, value *out) {
  if (m->stack.count == 0) return rdna__fail(RDNA_BAD_DATA, "its pickle takes more values than it made");
  *out = m->stack.all[--m->stack.count];
  return RDNA_OK;
}

static rdna_status take(machine *m, size_t size, text *out) {
  if ((size_t)(m->end - m->at) < size) return breaks_off("its pickle");
  *out = (text){m->at, size};
  m->at += size;
  return RDNA_OK;
}

static rdna_status take_line(machine *m, text *out) {
  const uint8_t *line = memchr(m->at, '\n', (size_t)(m->end - m->at));
  if (!line) return breaks_off("its pickle");
  *out = (text){m->at, (size_t)(line - m->at)};
  m->at = line + 1;
  return RDNA_OK;
}

static rdna_status push_number(machine *m, size_t bytes, bool is_signed) {
  text t = {0};
  RDNA_TRY(take(m, bytes, &t));
  uint64_t n = 0;
  for (size_t i = 0; i < bytes; i++) n |= (uint64_t)t.data[i] << (8 * i);
  if (is_signed && bytes > 0 && bytes < 8 && n >> (8 * bytes - 1)) n -= UINT64_C(1) << (8 * bytes);
  return push(m, (value){.kind = INTEGER, .number = (int64_t)n});
}

static rdna_status push_text(machine *m) {
  text size = {0}, t = {0};
  RDNA_TRY(take(m, 4, &size));
  RDNA_TRY(take(m, number(size.data, 4), &t));
  return push(m, (value){.kind = TEXT, .text = t});
}

static rdna_status push_global(machine *m) {
  text module = {0}, name = {0};
  RDNA_TRY(take_line(m, &module));
  RDNA_TRY(take_line(m, &name));
  if (is(module, "collections") && is(name, "OrderedDict")) return push(m, (value){.kind = CALL, .number = ORDERED});
  if (is(module, "torch._utils") && is(name, "_rebuild_tensor_v2"))
    return push(m, (value){.kind = CALL, .number = REBUILD});
  if (is(module, "torch._utils") && is(name, "_rebuild_parameter"))
    return push(m, (value){.kind = CALL, .number = PARAMETER});
  for (int i = 0; i < TYPES && is(module, "torch"); i++)
    if (is(name, types[i].storage)) return push(m, (value){.kind = TYPE, .number = i});
  char shown[2][SHOWN];
  return rdna__fail(RDNA_UNSUPPORTED,
                    "its pickle asks for %s.%s, which is not known; nothing is run that a file asks for",
                    show(module, shown[0]), show(name, shown[1]));
}

/* Where the last mark is on the stack. */
static rdna_status find_mark(const machine *m, size_t *out) {
  for (size_t i = m->stack.count; i-- > 0;)
    if (m->stack.all[i].kind == MARK) {
      *out = i;
      return RDNA_OK;
    }
  return rdna__fail(RDNA_BAD_DATA, "its pickle ends a list that it has not begun");
}

/* The values from |first| on become one tuple in their place, or in that of the mark before them. */
static rdna_status make_tuple(machine *m, size_t first, bool marked) {
  value made = {.kind = TUPLE, .first = m->items.count, .count = m->stack.count - first};
  for (size_t i = first; i < m->stack.count; i++) ADD(m->items, m->stack.all[i]);
  m->stack.count = first - marked;
  return push(m, made);
}

static rdna_status put_dictionary(machine *m) {
  return push(m, (value){.kind = DICTIONARY, .number = m->dictionaries++});
}

/* Names and values from |first| on are the dictionary's before them. */
static rdna_status set_items(machine *m, size_t first, bool marked) {
  if (first < 1u + marked || (m->stack.count - first) % 2 != 0)
    return rdna__fail(RDNA_BAD_DATA, "its pickle fills no dictionary");
  const value *to = &m->stack.all[first - 1 - marked];
  for (size_t i = first; i < m->stack.count && to->kind == DICTIONARY; i += 2) {
    const value *name = &m->stack.all[i], *v = &m->stack.all[i + 1];
    if (name->kind == TEXT && (v->kind == TENSOR || v->kind == DICTIONARY))
      ADD(m->entries, (entry){to->number, name->text, v->kind, v->number});
  }
  m->stack.count = first - marked;
  return RDNA_OK;
}

static const value *item(const machine *m, const value *tuple, size_t i, kind wanted) {
  const value *v = tuple->kind == TUPLE && i < tuple->count ? &m->items.all[tuple->first + i] : NULL;
  return v && v->kind == wanted ? v : NULL;
}

/* ("storage", type, key, place, count) */
static rdna_status make_storage(machine *m) {
  value of = {0};
  RDNA_TRY(pop(m, &of));
  const value *type = item(m, &of, 1, TYPE), *key = item(m, &of, 2, TEXT);
  if (!type || !key) return rdna__fail(RDNA_BAD_DATA, "its pickle has a storage without a type or a key");
  return push(m, (value){.kind = STORAGE, .number = type->number, .text = key->text});
}

/* Of (storage, offset, shape, strides, …). */
static rdna_status rebuild(machine *m, const value *of) {
  const value *storage = item(m, of, 0, STORAGE), *offset = item(m, of, 1, INTEGER), *shape = item(m, of, 2, TUPLE),
              *strides = item(m, of, 3, TUPLE);
  if (!storage || !offset || !shape || !strides || shape->count != strides->count || shape->count > MOST_RANK ||
      offset->number < 0)
    return rdna__fail(RDNA_BAD_DATA, "its pickle rebuilds a tensor of what is none");
  tensor t = {.type = (int)storage->number, .key = storage->text, .offset = offset->number, .rank = (int)shape->count};
  int64_t next = 1;
  for (int i = t.rank - 1; i >= 0; i--) {
    const value *size = item(m, shape, (size_t)i, INTEGER), *stride = item(m, strides, (size_t)i, INTEGER);
    if (!size || !stride || size->number < 0 || size->number > INT32_MAX)
      return rdna__fail(RDNA_BAD_DATA, "its pickle has a tensor with a size that is none");
    if (size->number > 1 && stride->number != next)
      return rdna__fail(RDNA_UNSUPPORTED, "its pickle has a tensor that is not contiguous");
    t.shape[i] = size->number;
    /* a size of 0 leaves strides and limits of those before it as they are */
    if (__builtin_mul_overflow(next, size->number > 1 ? size->number : 1, &next))
      return rdna__fail(RDNA_BAD_DATA, "its pickle has a tensor of more than 2^63 values");
  }
  ADD(m->tensors, t);
  return push(m, (value){.kind = TENSOR, .number = (int64_t)m->tensors.count - 1});
}

static rdna_status reduce(machine *m) {
  value of = {0}, called = {0};
  RDNA_TRY(pop(m, &of));
  RDNA_TRY(pop(m, &called));
  if (called.kind != CALL || of.kind != TUPLE)
    return rdna__fail(RDNA_BAD_DATA, "its pickle calls what is no function, or with no arguments");
  if (called.number == ORDERED) return put_dictionary(m);
  if (called.number == REBUILD) return rebuild(m, &of);
  const value *data = item(m, &of, 0, TENSOR);
  return data ? push(m, *data) : rdna__fail(RDNA_BAD_DATA, "its pickle makes a parameter of what is no tensor");
}

static rdna_status remember(machine *m, size_t bytes) {
  text t = {0};
  RDNA_TRY(take(m, bytes, &t));
  size_t which = number(t.data, (int)bytes);
  if (m->stack.count == 0 || which >= MOST_VALUES)
    return rdna__fail(RDNA_BAD_DATA, "its pickle keeps nothing, or too much");
  while (m->memo.count <= which) ADD(m->memo, (value){0});
  m->memo.all[which] = m->stack.all[m->stack.count - 1];
  return RDNA_OK;
}

static rdna_status recall(machine *m, size_t bytes) {
  text t = {0};
  RDNA_TRY(take(m, bytes, &t));
  size_t which = number(t.data, (int)bytes);
  if (which >= m->memo.count) return rdna__fail(RDNA_BAD_DATA, "its pickle takes what it has not kept");
  return push(m, m->memo.all[which]);
}

/* Some of the last values become one. */
static rdna_status make_small_tuple(machine *m, size_t count) {
  if (m->stack.count < count) return rdna__fail(RDNA_BAD_DATA, "its pickle takes more values than it made");
  return make_tuple(m, m->stack.count - count, false);
}

static rdna_status drop(machine *m, size_t count) {
  value gone = {0};
  for (size_t i = 0; i < count; i++) RDNA_TRY(pop(m, &gone));
  return RDNA_OK;
}

/* Instructions up to protocol 2, by the numbers of Python's pickle.py. Lists and what else there is beside tensors are
 * values that nobody asks for. */
static rdna_status do_one(machine *m, uint8_t code) {
  text skipped = {0};
  size_t mark = 0;
  switch (code) {
    case 0x80: /* PROTO */
      return take(m, 1, &skipped);
    case '}': /* EMPTY_DICT */
      return put_dictionary(m);
    case ')': /* EMPTY_TUPLE */
      return make_small_tuple(m, 0);
    case 0x85: /* TUPLE1 and its like */
    case 0x86:
    case 0x87:
      return make_small_tuple(m, code - 0x84u);
    case ']':  /* EMPTY_LIST */
    case 'N':  /* NONE */
    case 0x88: /* NEWTRUE */
    case 0x89: /* NEWFALSE */
      return push(m, (value){.kind = OTHER});
    case '(':
      return push(m, (value){.kind = MARK});
    case 't': /* TUPLE */
      RDNA_TRY(find_mark(m, &mark));
      return make_tuple(m, mark + 1, true);
    case 'u': /* SETITEMS */
      RDNA_TRY(find_mark(m, &mark));
      return set_items(m, mark + 1, true);
    case 'e': /* APPENDS */
      RDNA_TRY(find_mark(m, &mark));
      m->stack.count = mark;
      return RDNA_OK;
    case 's': /* SETITEM */
      return m->stack.count < 2 ? breaks_off("its pickle") : set_items(m, m->stack.count - 2, false);
    case 'a': /* APPEND */
    case 'b': /* BUILD: what else a dictionary has, as "_metadata" */
      return drop(m, 1);
    case 'X': /* BINUNICODE */
      return push_text(m);
    case 'K': /* BININT1 */
      return push_number(m, 1, false);
    case 'M': /* BININT2 */
      return push_number(m, 2, false);
    case 'J': /* BININT */
      return push_number(m, 4, true);
    case 0x8a: /* LONG1 */
      RDNA_TRY(take(m, 1, &skipped));
      if (skipped.data[0] > 8) return rdna__fail(RDNA_UNSUPPORTED, "its pickle has a number of more than 64 bits");
      return push_number(m, skipped.data[0], true);
    case 'G': /* BINFLOAT */
      RDNA_TRY(take(m, 8, &skipped));
      return push(m, (value){.kind = OTHER});
    case 'c':
      return push_global(m);
    case 'Q': /* BINPERSID */
      return make_storage(m);
    case 'R':
      return reduce(m);
    case 'q': /* BINPUT */
      return remember(m, 1);
    case 'r': /* LONG_BINPUT */
      return remember(m, 4);
    case 'h': /* BINGET */
      return recall(m, 1);
    case 'j': /* LONG_BINGET */
      return recall(m, 4);
    default:
      return rdna__fail(RDNA_UNSUPPORTED, "its pickle has the instruction %d, which tensors are not made of", code);
  }
}

/* |*out| is the dictionary that the file is. */
static rdna_status run(machine *m, int64_t *out) {
  while (m->at < m->end) {
    uint8_t code = *m->at++;
    if (code != '.') {
      RDNA_TRY(do_one(m, code));
      continue;
    }
    value made = {0};
    RDNA_TRY(pop(m, &made));
    *out = made.number;
    return made.kind == DICTIONARY ? RDNA_OK : rdna__fail(RDNA_UNSUPPORTED, "it holds no dictionary of tensors");
  }
  return breaks_off("its pickle");
}

/* ---- both ---- */

/* As programs for training save what they trained. */
static int64_t choose(const machine *m, int64_t root) {
  static const char *const names[] = {"params_ema", "params", "state_dict"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    for (size_t i = 0; i < m->entries.count; i++)
      if (m->entries.all[i].of == root && m->entries.all[i].kind == DICTIONARY && is(m->entries.all[i].name, names[k]))
        return m->entries.all[i].which;
  return root;
}

static rdna_status describe(archive *a, const tensor *t, json_t **out) {
  char name[NAME_BYTES];
  text bytes = {0};
  int64_t count = 1;
  int length =
      snprintf(name, sizeof name, "data/%.*s", (int)(t->key.size < 128 ? t->key.size : 128), (const char *)t->key.data);
  RDNA_TRY(find_entry(a, (text){(const uint8_t *)name, (size_t)length}, &bytes));
  json_t *shape = json_array();
  for (int i = 0; i < t->rank; i++) {
    count *= t->shape[i]; /* rebuild saw that no product of them is too large */
    json_array_append_new(shape, json_integer(t->shape[i]));
  }
  int64_t each = types[t->type].bytes, room = (int64_t)bytes.size / each;
  if (t->offset > room || count > room - t->offset) {
    json_decref(shape);
    return rdna__fail(RDNA_BAD_DATA, "a tensor has %lld values from %lld on, and its storage %lld", (long long)count,
                      (long long)t->offset, (long long)room);
  }
  int64_t from = bytes.data - a->file.data + t->offset * each;
  *out = json_pack("{s:s, s:o, s:[I, I]}", "dtype", types[t->type].name, "shape", shape, "data_offsets",
                   (json_int_t)from, (json_int_t)(from + count * each));
  return *out ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a list of tensors");
}

static rdna_status list(archive *a, const machine *m, int64_t of, json_t *header) {
  size_t listed = 0;
  for (size_t i = 0; i < m->entries.count; i++) {
    const entry *e = &m->entries.all[i];
    char name[NAME_BYTES], shown[SHOWN];
    json_t *made = NULL;
    if (e->of != of || e->kind != TENSOR) continue;
    if (++listed > MOST_TENSORS) return rdna__fail(RDNA_UNSUPPORTED, "it names more than %d tensors", MOST_TENSORS);
    if (e->name.size >= sizeof name || memchr(e->name.data, 0, e->name.size))
      return rdna__fail(RDNA_BAD_DATA, "a tensor's name has %zu bytes, or a zero among them", e->name.size);
    snprintf(name, sizeof name, "%.*s", (int)e->name.size, (const char *)e->name.data);
    RDNA_TRY(rdna__annotate(describe(a, &m->tensors.all[e->which], &made), "tensor '%s'", show(e->name, shown)));
    if (json_object_set_new(header, name, made) != 0) return rdna__fail(RDNA_BAD_DATA, "a tensor's name is no UTF-8");
  }
  return RDNA_OK;
}

/* Numbers lie as on the machine that wrote them, which since 2.0 is said. */
static rdna_status check_order(archive *a) {
  static const char name[] = "byteorder";
  text order = {0};
  if (find_entry(a, (text){(const uint8_t *)name, sizeof name - 1}, &order) != RDNA_OK || is(order, "little"))
    return RDNA_OK;
  return rdna__fail(RDNA_UNSUPPORTED, "its numbers have their highest byte first");
}

rdna_status rdna__pth_header(const uint8_t *data, size_t size, json_t **out) {
  static const char pickle[] = "data.pkl";
  archive a;
  text program = {0};
  int64_t root = 0;
  RDNA_TRY(open_archive(data, size, &a));
  RDNA_TRY(find_entry(&a, (text){(const uint8_t *)pickle, sizeof pickle - 1}, &program));
  RDNA_TRY(check_order(&a));
  machine m = {.at = program.data, .end = program.data + program.size};
  json_t *header = json_object();
  rdna_status status = header ? run(&m, &root) : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a list of tensors");
  if (status == RDNA_OK) status = list(&a, &m, choose(&m, root), header);
  if (status == RDNA_OK)
    *out = header;
  else
    json_decref(header);
  free(m.stack.all), free(m.items.all), free(m.memo.all), free(m.tensors.all), free(m.entries.all);
  return status;
}

static rdna_status open_pth(const char *path, rdna__safetensors **out_tensors) {
  rdna__file map = {0};
  json_t *header = NULL;
  RDNA_TRY(rdna__annotate(rdna__file_map(path, &map), "%s", path));
  uint8_t *copy = map.size <= MOST_FILE ? malloc(map.size + 1) : NULL;
  rdna_status status = RDNA_OK;
  if (!copy)
    status = rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a file of %zu bytes; up to %d are read", map.size,
                        MOST_FILE);
  if (status == RDNA_OK) status = rdna__file_read(map.data, map.size, copy);
  if (status == RDNA_OK) status = rdna__pth_header(copy, map.size, &header);
  free(copy);
  if (status != RDNA_OK)
    rdna__file_unmap(&map);
  else
    status = rdna__safetensors_of_header(&map, header, out_tensors);
  return rdna__annotate(status, "%s", path);
}

rdna_status rdna__pth_open_either(const char *path, rdna__safetensors **out_tensors) {
  uint8_t begin[4] = {0};
  FILE *file = fopen(path, "rb");
  size_t size = file ? fread(begin, 1, sizeof begin, file) : 0;
  if (file) fclose(file);
  if (size == sizeof begin && memcmp(begin, "PK\3\4", sizeof begin) == 0) return open_pth(path, out_tensors);
  if (size < sizeof begin || memcmp(begin, "\x80\2\x8a\n", sizeof begin) != 0) /* a pickle of a long number */
    return rdna__safetensors_open_file(path, out_tensors);
  return rdna__fail(RDNA_UNSUPPORTED,
                    "%s: PyTorch wrote files so before 1.6, which are not read; with PyTorch and safetensors: m = "
                    "torch.load(FILE, weights_only=True); m = m.get('params_ema', m.get('params', m)); "
                    "safetensors.torch.save_file(m, 'FILE.safetensors')",
                    path);
}
