/* Writing GGUF files. Keys are encoded when they are put; the file is
 *
 *     "GGUF", version, counts | keys | tensor infos | padding | data, padding | data, padding | …
 *                                                   ^ offsets count from the first data
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "model/gguf/gguf.h"

enum {
  VERSION = 3,
  MAX_NAME_BYTES = 65535, /* the format's limit on a key */
  MAX_RANK = 4,
  DEFAULT_ALIGNMENT = 32,
  LEAST_ALIGNMENT = 8,
  MOST_ALIGNMENT = 65536,
};

/* Bytes that grow. */
typedef struct bytes {
  uint8_t *data;
  size_t size, capacity;
} bytes;

typedef struct key {
  char *name;
  bytes value; /* as in the file, from the type on */
} key;

typedef struct tensor {
  rdna_gguf_tensor info; /* the name is ours, |bytes| is right, |data| the caller's */
  rdna_status (*fill)(void *data, rdna_gguf_writer *writer);
  void *fill_data;
} tensor;

struct rdna_gguf_writer {
  key *keys;
  size_t key_count, key_capacity;
  rdna__strmap key_by_name;
  tensor *tensors;
  size_t tensor_count, tensor_capacity;
  rdna__strmap tensor_by_name;
  uint64_t alignment;
  /* while it writes */
  FILE *file;           /* or to memory, from |memory| on */
  uint8_t *memory;      /* NULL: to |file| */
  size_t left;          /* bytes that the tensor at hand still lacks */
  uint64_t done, total; /* bytes of data */
  void (*progress)(void *data, double share);
  void *progress_data;
};

/* ---- bytes ---- */

static rdna_status append(bytes *to, const void *data, size_t size) {
  if (size > to->capacity - to->size) {
    size_t capacity = 2 * to->capacity + size;
    uint8_t *grown = realloc(to->data, capacity);
    if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %zu bytes of a GGUF file's keys", capacity);
    to->data = grown;
    to->capacity = capacity;
  }
  if (size) memcpy(to->data + to->size, data, size);
  to->size += size;
  return RDNA_OK;
}

static rdna_status append_u32(bytes *to, uint32_t value) { return append(to, &value, sizeof value); }
static rdna_status append_u64(bytes *to, uint64_t value) { return append(to, &value, sizeof value); }

static rdna_status append_text(bytes *to, const char *text, size_t size) {
  RDNA_TRY(append_u64(to, size));
  return append(to, text, size);
}

static rdna_status grow(void **rows, size_t count, size_t *capacity, size_t row_bytes) {
  if (count < *capacity) return RDNA_OK;
  size_t wanted = *capacity ? 2 * *capacity : 64;
  void *grown = realloc(*rows, wanted * row_bytes);
  if (!grown) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for what a GGUF file is to hold");
  *rows = grown;
  *capacity = wanted;
  return RDNA_OK;
}

/* ---- what the file is to hold ---- */

rdna_status rdna_gguf_writer_create(rdna_gguf_writer **out_writer) {
  if (!out_writer) return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_gguf_writer_create needs a place");
  rdna_gguf_writer *writer = calloc(1, sizeof *writer);
  if (!writer) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory to write a GGUF file");
  writer->alignment = DEFAULT_ALIGNMENT;
  *out_writer = writer;
  return RDNA_OK;
}

void rdna_gguf_writer_release(rdna_gguf_writer *writer) {
  if (!writer) return;
  for (size_t i = 0; i < writer->key_count; i++) {
    free(writer->keys[i].name);
    free(writer->keys[i].value.data);
  }
  for (size_t i = 0; i < writer->tensor_count; i++) free((char *)writer->tensors[i].info.name);
  free(writer->keys);
  free(writer->tensors);
  rdna__strmap_deinit(&writer->key_by_name);
  rdna__strmap_deinit(&writer->tensor_by_name);
  free(writer);
}

/* |name| as a string of ours. */
static rdna_status copy_name(const char *name, const char *what, char **out) {
  size_t size = name ? strlen(name) : 0;
  if (size == 0 || size > MAX_NAME_BYTES)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the name of a %s has %zu bytes; 1 to %d are possible", what, size,
                      MAX_NAME_BYTES);
  *out = strdup(name);
  return *out ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the name of a %s", what);
}

/* The key |name| with |value|, which is the writer's from here on, also after a failure. */
static rdna_status keep(rdna_gguf_writer *writer, const char *name, bytes value) {
  uint32_t index;
  if (name && rdna__strmap_find(&writer->key_by_name, name, strlen(name), &index)) {
    free(writer->keys[index].value.data);
    writer->keys[index].value = value;
    return RDNA_OK;
  }
  char *copy = NULL;
  bool inserted;
  rdna_status status = copy_name(name, "key", &copy);
  if (status == RDNA_OK)
    status = grow((void **)&writer->keys, writer->key_count, &writer->key_capacity, sizeof *writer->keys);
  if (status == RDNA_OK)
    status = rdna__strmap_insert(&writer->key_by_name, copy, strlen(copy), (uint32_t)writer->key_count, &inserted);
  if (status == RDNA_OK) {
    writer->keys[writer->key_count++] = (key){copy, value};
  } else {
    free(copy);
    free(value.data);
  }
  return status;
}

static bool is_integer(rdna_gguf_type type) {
  return type <= RDNA_GGUF_TYPE_I32 || type == RDNA_GGUF_TYPE_U64 || type == RDNA_GGUF_TYPE_I64;
}

/* What general.alignment says holds for the file that is written. A negative number is too large here. */
static rdna_status take_alignment(rdna_gguf_writer *writer, rdna_gguf_type type, const void *value) {
  uint64_t alignment = 0;
  if (is_integer(type)) memcpy(&alignment, value, rdna__gguf_type_bytes(type));
  if (alignment < LEAST_ALIGNMENT || alignment > MOST_ALIGNMENT || (alignment & (alignment - 1)))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "general.alignment must be a whole number, a power of two from %d to %d",
                      LEAST_ALIGNMENT, MOST_ALIGNMENT);
  writer->alignment = alignment;
  return RDNA_OK;
}

static rdna_status encode(rdna_gguf_type type, const void *values, uint64_t count, bytes *to) {
  if (type == RDNA_GGUF_TYPE_TEXT) {
    const rdna_text *texts = values;
    for (uint64_t i = 0; i < count; i++) RDNA_TRY(append_text(to, texts[i].data, texts[i].size));
    return RDNA_OK;
  }
  size_t size;
  if (__builtin_mul_overflow(rdna__gguf_type_bytes(type), count, &size) || size > SIZE_MAX / 4)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%llu values are more than memory holds", (unsigned long long)count);
  return append(to, values, size);
}

static rdna_status put(rdna_gguf_writer *writer, const char *name, bool array, rdna_gguf_type type, const void *values,
                       uint64_t count) {
  if (!writer || (!values && count)) return rdna__fail(RDNA_INVALID_ARGUMENT, "a key needs a writer and a value");
  if ((unsigned)type >= RDNA_GGUF_TYPE_COUNT || type == RDNA_GGUF_TYPE_ARRAY)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "key %s: values of type %d cannot be put", name ? name : "", (int)type);
  if (name && strcmp(name, "general.alignment") == 0)
    RDNA_TRY(take_alignment(writer, array ? RDNA_GGUF_TYPE_ARRAY : type, values));
  bytes value = {0};
  rdna_status status = append_u32(&value, array ? RDNA_GGUF_TYPE_ARRAY : type);
  if (status == RDNA_OK && array) status = append_u32(&value, type);
  if (status == RDNA_OK && array) status = append_u64(&value, count);
  if (status == RDNA_OK) status = encode(type, values, count, &value);
  if (status == RDNA_OK) return keep(writer, name, value);
  free(value.data);
  return status;
}

rdna_status rdna_gguf_writer_put(rdna_gguf_writer *writer, const char *name, rdna_gguf_type type, const void *value) {
  return put(writer, name, false, type, value, 1);
}

rdna_status rdna_gguf_writer_put_array(rdna_gguf_writer *writer, const char *name, rdna_gguf_type element_type,
                                       const void *values, uint64_t count) {
  return put(writer, name, true, element_type, values, count);
}

rdna_status rdna_gguf_writer_copy_key(rdna_gguf_writer *writer, const rdna_gguf *file, const char *name) {
  const rdna__gguf_keys *keys = &file->parts[0].keys;
  uint32_t index;
  if (!rdna__strmap_find(&keys->by_name, name, strlen(name), &index))
    return rdna__fail(RDNA_NOT_FOUND, "the model file has no key %s", name);
  const rdna__gguf_value *from = &keys->values[index];
  if (strcmp(name, "general.alignment") == 0) RDNA_TRY(take_alignment(writer, from->type, from->data));
  bytes value = {0};
  rdna_status status = append_u32(&value, from->type);
  if (status == RDNA_OK && from->type == RDNA_GGUF_TYPE_ARRAY) status = append_u32(&value, from->element_type);
  if (status == RDNA_OK && from->type == RDNA_GGUF_TYPE_ARRAY) status = append_u64(&value, from->count);
  if (status == RDNA_OK) status = append(&value, from->data, from->bytes);
  if (status == RDNA_OK) return keep(writer, name, value);
  free(value.data);
  return status;
}

/* Checks |t| and fills its number and its bytes. */
static rdna_status measure(rdna_gguf_tensor *t) {
  if (t->rank < 0 || t->rank > MAX_RANK)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "tensor %s has %d dimensions, the format allows %d", t->name, t->rank,
                      MAX_RANK);
  if (t->dtype != RDNA_DTYPE_COUNT) t->ggml_type = rdna__gguf_number_of(t->dtype);
  rdna__gguf_tensor_type type = rdna__gguf_tensor_type_of(t->ggml_type);
  if (type.block_values == 0)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "tensor %s: the format has no type %s", t->name,
                      t->dtype == RDNA_DTYPE_COUNT ? "of this number" : rdna_dtype_name(t->dtype));
  int64_t count = 1;
  for (int i = 0; i < t->rank; i++)
    if (t->shape[i] < 0 || __builtin_mul_overflow(count, t->shape[i], &count))
      return rdna__fail(RDNA_INVALID_ARGUMENT, "tensor %s: its dimensions are negative, or too large together",
                        t->name);
  int64_t row = t->rank ? t->shape[t->rank - 1] : 1;
  if (row % type.block_values)
    return rdna__fail(RDNA_INVALID_ARGUMENT,
                      "tensor %s: its rows have %lld values, not a multiple of the %u in a block of %s", t->name,
                      (long long)row, (unsigned)type.block_values, type.name);
  int64_t size;
  if (__builtin_mul_overflow(count / type.block_values, (int64_t)type.block_bytes, &size))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "tensor %s: its size does not fit a file", t->name);
  t->bytes = (size_t)size;
  return RDNA_OK;
}

rdna_status rdna_gguf_writer_add_tensor(rdna_gguf_writer *writer, const rdna_gguf_tensor *given,
                                        rdna_status (*fill)(void *data, rdna_gguf_writer *writer), void *data) {
  if (!writer || !given)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_gguf_writer_add_tensor needs a writer and a tensor");
  tensor added = {*given, fill, data};
  char *name = NULL;
  RDNA_TRY(copy_name(given->name, "tensor", &name));
  added.info.name = name;
  uint32_t index;
  bool inserted;
  rdna_status status = measure(&added.info);
  if (status == RDNA_OK && !fill && !given->data && added.info.bytes)
    status = rdna__fail(RDNA_INVALID_ARGUMENT, "tensor %s has no data", name);
  if (status == RDNA_OK && rdna__strmap_find(&writer->tensor_by_name, name, strlen(name), &index))
    status = rdna__fail(RDNA_INVALID_ARGUMENT, "tensor %s is there already", name);
  if (status == RDNA_OK)
    status = grow((void **)&writer->tensors, writer->tensor_count, &writer->tensor_capacity, sizeof *writer->tensors);
  if (status == RDNA_OK)
    status =
        rdna__strmap_insert(&writer->tensor_by_name, name, strlen(name), (uint32_t)writer->tensor_count, &inserted);
  if (status == RDNA_OK) {
    writer->tensors[writer->tensor_count++] = added;
  } else {
    free(name);
  }
  return status;
}

/* ---- writing ---- */

static uint64_t padding(const rdna_gguf_writer *writer, uint64_t size) { return -size & (writer->alignment - 1); }

static rdna_status write_bytes(rdna_gguf_writer *writer, const void *data, size_t size) {
  if (writer->memory && size) {
    memcpy(writer->memory, data, size);
    writer->memory += size;
    return RDNA_OK;
  }
  if (size && fwrite(data, 1, size, writer->file) != size) return rdna__fail(RDNA_IO_ERROR, "%s", strerror(errno));
  return RDNA_OK;
}

static rdna_status write_zeros(rdna_gguf_writer *writer, uint64_t count) {
  static const uint8_t zeros[MOST_ALIGNMENT];
  return write_bytes(writer, zeros, (size_t)count);
}

static rdna_status encode_head(const rdna_gguf_writer *writer, bytes *head) {
  RDNA_TRY(append(head, "GGUF", 4));
  RDNA_TRY(append_u32(head, VERSION));
  RDNA_TRY(append_u64(head, writer->tensor_count));
  RDNA_TRY(append_u64(head, writer->key_count));
  for (size_t i = 0; i < writer->key_count; i++) {
    const key *k = &writer->keys[i];
    RDNA_TRY(append_text(head, k->name, strlen(k->name)));
    RDNA_TRY(append(head, k->value.data, k->value.size));
  }
  uint64_t offset = 0;
  for (size_t i = 0; i < writer->tensor_count; i++) {
    const rdna_gguf_tensor *t = &writer->tensors[i].info;
    RDNA_TRY(append_text(head, t->name, strlen(t->name)));
    RDNA_TRY(append_u32(head, (uint32_t)t->rank));
    for (int d = t->rank - 1; d >= 0; d--) RDNA_TRY(append_u64(head, (uint64_t)t->shape[d]));
    RDNA_TRY(append_u32(head, t->ggml_type));
    RDNA_TRY(append_u64(head, offset));
    offset += t->bytes + padding(writer, t->bytes);
  }
  return RDNA_OK;
}

rdna_status rdna_gguf_writer_append(rdna_gguf_writer *writer, const void *data, size_t size) {
  enum { AT_ONCE = 8 << 20 }; /* so that progress shows */
  if (size > writer->left)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%zu bytes were appended to a tensor that lacks %zu", size, writer->left);
  writer->left -= size;
  for (const uint8_t *at = data; size;) {
    size_t n = size < AT_ONCE ? size : AT_ONCE;
    RDNA_TRY(write_bytes(writer, at, n));
    at += n;
    size -= n;
    writer->done += n;
    if (writer->progress) writer->progress(writer->progress_data, (double)writer->done / (double)writer->total);
  }
  return RDNA_OK;
}

static rdna_status append_tensor(rdna_gguf_writer *writer, const tensor *t) {
  writer->left = t->info.bytes;
  RDNA_TRY(t->fill ? t->fill(t->fill_data, writer) : rdna_gguf_writer_append(writer, t->info.data, t->info.bytes));
  if (writer->left)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "tensor %s lacks %zu of its %zu bytes", t->info.name, writer->left,
                      t->info.bytes);
  return RDNA_OK;
}

static rdna_status write_tensor(rdna_gguf_writer *writer, const tensor *t) {
  RDNA_TRY(append_tensor(writer, t));
  return write_zeros(writer, padding(writer, t->info.bytes));
}

static rdna_status write_all(rdna_gguf_writer *writer) {
  bytes head = {0};
  rdna_status status = encode_head(writer, &head);
  if (status == RDNA_OK) status = write_bytes(writer, head.data, head.size);
  if (status == RDNA_OK) status = write_zeros(writer, padding(writer, head.size));
  free(head.data);
  for (size_t i = 0; i < writer->tensor_count && status == RDNA_OK; i++)
    status = write_tensor(writer, &writer->tensors[i]);
  /* a disk may say only now that it is full */
  if (status == RDNA_OK && (fflush(writer->file) != 0 || fsync(fileno(writer->file)) != 0))
    status = rdna__fail(RDNA_IO_ERROR, "%s", strerror(errno));
  return status;
}

/* Opens a new file beside |path|. */
static rdna_status open_partial(const char *path, char *partial, size_t partial_size, FILE **out_file) {
  struct stat found;
  if (stat(path, &found) == 0 && !S_ISREG(found.st_mode))
    return rdna__fail(RDNA_INVALID_ARGUMENT, "it is there and no regular file, which alone is written over");
  if (snprintf(partial, partial_size, "%s.%ld.partial", path, (long)getpid()) >= (int)partial_size)
    return rdna__fail(RDNA_INVALID_ARGUMENT, "the path is too long");
  int descriptor = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) return rdna__fail(RDNA_IO_ERROR, "%s", strerror(errno));
  *out_file = fdopen(descriptor, "wb");
  if (*out_file) return RDNA_OK;
  close(descriptor);
  unlink(partial);
  return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for a file");
}

/* What is there and no GGUF file is somebody's, weights of another format perhaps. */
static rdna_status check_replaceable(const char *path) {
  char magic[4];
  FILE *file = fopen(path, "rb");
  if (!file) return RDNA_OK;
  size_t got = fread(magic, 1, sizeof magic, file);
  fclose(file);
  if (got == 0 || (got == sizeof magic && memcmp(magic, "GGUF", sizeof magic) == 0)) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "it is there and no GGUF file; choose another name");
}

static rdna_status write_file(rdna_gguf_writer *writer, const char *path) {
  char partial[4096];
  RDNA_TRY(check_replaceable(path));
  RDNA_TRY(open_partial(path, partial, sizeof partial, &writer->file));
  rdna_status status = write_all(writer);
  if (fclose(writer->file) != 0 && status == RDNA_OK) status = rdna__fail(RDNA_IO_ERROR, "%s", strerror(errno));
  writer->file = NULL;
  if (status == RDNA_OK && rename(partial, path) != 0) status = rdna__fail(RDNA_IO_ERROR, "%s", strerror(errno));
  if (status != RDNA_OK) unlink(partial);
  return status;
}

rdna_status rdna_gguf_writer_write(rdna_gguf_writer *writer, const char *path,
                                   void (*progress)(void *data, double share), void *progress_data) {
  if (!writer || !path) return rdna__fail(RDNA_INVALID_ARGUMENT, "rdna_gguf_writer_write needs a writer and a path");
  writer->progress = progress;
  writer->progress_data = progress_data;
  writer->done = writer->total = 0;
  for (size_t i = 0; i < writer->tensor_count; i++) writer->total += writer->tensors[i].info.bytes;
  return rdna__annotate(write_file(writer, path), "cannot write %s", path);
}

/* ---- a file in memory ---- */

struct rdna__gguf_maker {
  pthread_mutex_t lock;
  rdna_gguf_writer *writer;
  uint8_t *data; /* of the first tensor */
  bool *made;    /* (tensors) */
  void (*release)(void *owner);
  void *owner;
};

/* Memory for the whole file, which takes pages where it is written: those of tensors that lie elsewhere stay away. */
static rdna_status reserve(const rdna_gguf_writer *writer, const bytes *head, rdna__file *out) {
  uint64_t size = head->size + padding(writer, head->size);
  for (size_t i = 0; i < writer->tensor_count; i++)
    size += writer->tensors[i].info.bytes + padding(writer, writer->tensors[i].info.bytes);
  void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED)
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no addresses for %llu bytes of a model", (unsigned long long)size);
  memcpy(data, head->data, head->size);
  *out = (rdna__file){data, (size_t)size};
  return RDNA_OK;
}

static rdna_status make_maker(rdna_gguf_writer *writer, rdna_gguf *file, size_t head, rdna__gguf_maker **out) {
  rdna__gguf_maker *maker = calloc(1, sizeof *maker);
  if (maker) maker->made = calloc(writer->tensor_count + 1, sizeof *maker->made);
  if (!maker || !maker->made) {
    free(maker);
    return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %zu tensors", writer->tensor_count);
  }
  pthread_mutex_init(&maker->lock, NULL);
  maker->writer = writer;
  maker->data = (uint8_t *)file->parts[0].data + head;
  for (size_t i = 0; i < writer->tensor_count; i++) {
    const tensor *t = &writer->tensors[i];
    maker->made[i] = !t->fill;
    if (!t->fill) file->tensors[i].data = t->info.data;
  }
  *out = maker;
  return RDNA_OK;
}

rdna_status rdna__gguf_open_writer(rdna_gguf_writer *writer, void (*release)(void *owner), void *owner,
                                   rdna_gguf **out_file) {
  bytes head = {0};
  rdna__file whole = {0};
  rdna_gguf *file = NULL;
  rdna_status status = encode_head(writer, &head);
  if (status == RDNA_OK) status = reserve(writer, &head, &whole);
  if (status == RDNA_OK) status = rdna_gguf_open_memory(whole.data, whole.size, &file);
  if (status == RDNA_OK)
    status = make_maker(writer, file, head.size + (size_t)padding(writer, head.size), &file->maker);
  free(head.data);
  if (status == RDNA_OK) {
    file->parts[0].mapped = whole;
    file->maker->release = release;
    file->maker->owner = owner;
    *out_file = file;
  } else {
    rdna_gguf_close(file);
    rdna__file_unmap(&whole);
  }
  return status;
}

rdna_status rdna__gguf_make(rdna__gguf_maker *maker, size_t index) {
  rdna_gguf_writer *writer = maker->writer;
  rdna_status status = RDNA_OK;
  pthread_mutex_lock(&maker->lock);
  if (!maker->made[index]) {
    writer->memory = maker->data;
    for (size_t i = 0; i < index; i++)
      writer->memory += writer->tensors[i].info.bytes + padding(writer, writer->tensors[i].info.bytes);
    status = append_tensor(writer, &writer->tensors[index]);
    maker->made[index] = status == RDNA_OK;
  }
  pthread_mutex_unlock(&maker->lock);
  return status;
}

void rdna__gguf_maker_free(rdna__gguf_maker *maker) {
  if (!maker) return;
  maker->release(maker->owner);
  pthread_mutex_destroy(&maker->lock);
  free(maker->made);
  free(maker);
}
