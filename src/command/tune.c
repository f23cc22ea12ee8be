/* rdna tune: measures the implementations of matrix products and keeps what was found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/status.h"
#include "command/command.h"
#include "device/traits.h"
#include "kernel/tuner.h"
#include "kernel/tuner_shipped.h"
#include "rdna/memory.h"
#include "rdna/op/gemm.h"

typedef struct shape {
  int64_t m, n, k;
} shape;

/* Squares, and the layers of models of 1, 7 and 8 billion parameters for one token, some and a prompt. */
static const shape squares[] = {
    {512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096}, {8192, 8192, 8192}};
static const shape weights[] = {{0, 2048, 2048},  {0, 5632, 2048},  {0, 2048, 5632},  {0, 4096, 4096}, {0, 11008, 4096},
                                {0, 4096, 11008}, {0, 14336, 4096}, {0, 4096, 14336}, {0, 1024, 4096}, {0, 32000, 4096},
                                {0, 768, 768},    {0, 3072, 768},   {0, 768, 3072},   {0, 50304, 768}};
static const int64_t rows[] = {1, 4, 16, 64, 256, 512, 2048, 8192};
enum {
  SQUARES = sizeof squares / sizeof *squares,
  WEIGHTS = sizeof weights / sizeof *weights,
  ROWS = sizeof rows / sizeof *rows,
  ALL = SQUARES + WEIGHTS * ROWS
};

static void default_shapes(shape out[ALL]) {
  memcpy(out, squares, sizeof squares);
  for (int i = 0; i < WEIGHTS * ROWS; i++)
    out[SQUARES + i] = (shape){rows[i % ROWS], weights[i / ROWS].n, weights[i / ROWS].k};
}

/* c (m, n) = a (m, k) b (n, k)^T, as a layer does. */
static rdna_status tune_product(rdna_device *device, rdna_dtype dtype, shape s) {
  rdna_stream *stream = rdna_device_default_stream(device);
  int64_t shapes[3][2] = {{s.m, s.k}, {s.n, s.k}, {s.m, s.n}};
  rdna_tensor t[3];
  void *data[3] = {NULL, NULL, NULL};
  rdna_status status = RDNA_OK;
  for (int i = 0; i < 3 && status == RDNA_OK; i++) {
    size_t bytes = rdna_dtype_bytes(dtype, shapes[i][0] * shapes[i][1]);
    status = rdna_memory_alloc(device, bytes, stream, &data[i]);
    /* 0x2c2c is 0.065 in f16 and small in the others: arithmetic on zeros takes less power, and so less time */
    if (status == RDNA_OK) status = rdna_fill_bytes(stream, data[i], 0x2c, bytes);
    t[i] = rdna_tensor_contiguous(data[i], dtype, 2, shapes[i]);
  }
  if (status == RDNA_OK) {
    rdna_tensor b = {.data = t[1].data, .dtype = dtype, .rank = 2, .shape = {s.k, s.n}, .stride = {1, s.k}};
    status = rdna_op_gemm(stream, 1, &t[0], &b, 0, NULL, &t[2]);
  }
  if (status == RDNA_OK) status = rdna_stream_synchronize(stream);
  for (int i = 0; i < 3; i++)
    if (rdna_memory_free(device, data[i]) != RDNA_OK && status == RDNA_OK) status = RDNA_DEVICE_ERROR;
  return status;
}

typedef struct line {
  const char *operator_name;
  char shape[RDNA__TUNER_SHAPE];
  rdna__tuner_result result;
} line;
typedef struct lines {
  line *all;
  size_t count, room;
} lines;

static void add_line(void *context, const char *operator_name, const char *shape_text,
                     const rdna__tuner_result *result) {
  lines *l = context;
  if (l->count == l->room) {
    size_t room = l->room ? 2 * l->room : 64;
    line *grown = realloc(l->all, room * sizeof *grown);
    if (!grown) return;
    l->all = grown, l->room = room;
  }
  line *to = &l->all[l->count++];
  to->operator_name = operator_name, to->result = *result;
  snprintf(to->shape, sizeof to->shape, "%s", shape_text);
}
static int by_shape(const void *a, const void *b) {
  return strverscmp(((const line *)a)->shape, ((const line *)b)->shape);
}

static int print_lines(rdna_device *device, lines *l, bool json) {
  char where[RDNA__TUNER_TEXT];
  qsort(l->all, l->count, sizeof *l->all, by_shape);
  rdna__tuner_device_text(device, where);
  json_t *array = json_array();
  if (!json) printf("%s\n\n%-64s %-16s %10s  %-16s %10s  %s\n", where, "shape", "fastest", "ms", "next", "ms", "from");
  for (size_t i = 0; i < l->count; i++) {
    const rdna__tuner_result *r = &l->all[i].result;
    if (json)
      json_array_append_new(array, json_pack("{s:s, s:s, s:s, s:s, s:f, s:s, s:f}", "operator", l->all[i].operator_name,
                                             "shape", l->all[i].shape, "implementation", r->implementation, "why",
                                             r->why, "ms", r->ms, "next", r->next, "next_ms", r->next_ms));
    else
      printf("%-64s %-16s %10.4f  %-16s %10.4f  %s\n", l->all[i].shape, r->implementation, r->ms, r->next, r->next_ms,
             r->why);
  }
  free(l->all);
  if (json) return print_json(json_pack("{s:s, s:o}", "device", where, "choices", array));
  json_decref(array);
  return EXIT_OK;
}

typedef struct transfer {
  FILE *file;
  rdna__tuner_store *store;
  rdna_status status;
  int count;
} transfer;

static void export_row(void *context, const rdna__tuner_row *row) {
  transfer *t = context;
  char text[1024];
  if (t->status == RDNA_OK) t->status = rdna__tuner_text_write(row, text);
  if (t->status == RDNA_OK && fprintf(t->file, "%s\n", text) < 0)
    t->status = rdna__fail(RDNA_IO_ERROR, "the measurements could not be written");
  t->count++;
}
static void import_row(void *context, const rdna__tuner_row *row) {
  transfer *t = context;
  if (t->status == RDNA_OK) t->status = rdna__tuner_store_write(t->store, row);
  t->count++;
}

static rdna_status read_file(const char *path, char **out_text, size_t *out_size) {
  enum { MOST = 64 << 20 };
  FILE *file = fopen(path, "rb");
  *out_text = malloc(MOST);
  *out_size = file && *out_text ? fread(*out_text, 1, MOST, file) : 0;
  bool good = file && *out_text && !ferror(file) && *out_size < MOST;
  if (file) fclose(file);
  if (good) return RDNA_OK;
  free(*out_text);
  *out_text = NULL;
  return rdna__fail(RDNA_IO_ERROR, "'%s' cannot be read, or is larger than %d MiB: %m", path, MOST >> 20);
}

static rdna_status open_store(rdna__tuner_store **out_store) {
  char path[4096];
  rdna__tuner_store_path(path);
  if (!path[0])
    return rdna__fail(RDNA_NOT_FOUND, "there is no cache folder: set RDNA_TUNE_FILE, XDG_CACHE_HOME or HOME");
  return rdna__tuner_store_open(path, out_store);
}

static rdna_status export_to(const char *path, int *out_count) {
  transfer t = {.status = RDNA_OK};
  RDNA_TRY(open_store(&t.store));
  t.file = fopen(path, "w");
  if (!t.file) {
    rdna__tuner_store_close(t.store);
    return rdna__fail(RDNA_IO_ERROR, "'%s' cannot be written: %m", path);
  }
  fprintf(t.file, "%s\n", RDNA__TUNER_TEXT_HEADER);
  rdna_status status = rdna__tuner_store_read(t.store, NULL, NULL, export_row, &t);
  if (status == RDNA_OK) status = t.status;
  if (fclose(t.file) != 0 && status == RDNA_OK) status = rdna__fail(RDNA_IO_ERROR, "'%s' cannot be written: %m", path);
  rdna__tuner_store_close(t.store);
  *out_count = t.count;
  return status;
}

static rdna_status import_from(const char *path, int *out_count) {
  transfer t = {.status = RDNA_OK};
  char *text;
  size_t size;
  RDNA_TRY(read_file(path, &text, &size));
  rdna_status status = open_store(&t.store);
  if (status == RDNA_OK) status = rdna__tuner_text_read(text, size, import_row, &t);
  if (status == RDNA_OK) status = t.status;
  rdna__tuner_store_close(t.store);
  free(text);
  *out_count = t.count;
  return status;
}

static rdna_status tune(rdna_device *device, rdna_dtype dtype, bool has_dtype, const shape *shapes, int count) {
  static const rdna_dtype all[] = {RDNA_F16, RDNA_BF16, RDNA_F32};
  const rdna_dtype *dtypes = has_dtype ? &dtype : all;
  int dtype_count = has_dtype ? 1 : 3;
  for (int i = 0; i < dtype_count * count; i++) {
    show_progress("measuring", (double)i / (dtype_count * count));
    rdna_status status = tune_product(device, dtypes[i / count], shapes[i % count]);
    if (status == RDNA_OUT_OF_MEMORY) continue; /* a small card has no such layer */
    RDNA_TRY(status);
  }
  end_progress();
  return RDNA_OK;
}

static bool read_shape(const char *text, shape *out) {
  int used = 0;
  return sscanf(text, "%ldx%ldx%ld%n", &out->m, &out->n, &out->k, &used) == 3 && text[used] == 0 && out->m > 0 &&
         out->n > 0 && out->k > 0 && out->m <= INT32_MAX && out->n <= INT32_MAX && out->k <= INT32_MAX;
}

int command_tune(int argc, char **argv) {
  device_choice choice = DEVICE_CHOICE_DEFAULT;
  bool json = false;
  const char *type = "all", *export_path = "", *import_path = "";
  const option_row options[] = {
      DEVICE_OPTIONS(choice),
      {"--type", OPTION_CHOICE, &type, "all|f16|bf16|f32", "of the matrices", 0, 0},
      {"--export", OPTION_TEXT, &export_path, "FILE", "write all that is in the database as text, and measure nothing",
       0, 0},
      {"--import", OPTION_TEXT, &import_path, "FILE", "put such a text into the database, and measure nothing", 0, 0},
      {"--json", OPTION_FLAG, &json, NULL, "print JSON", 0, 0}};
  const command_line line_ = {"rdna tune",
                              "Measures which implementation is the fastest for products of matrices, M x K by K x N, "
                              "and keeps it for later processes.",
                              "[MxNxK ...]",
                              0,
                              POSITIONAL_MAX,
                              options,
                              sizeof options / sizeof *options};
  const char *positionals[POSITIONAL_MAX];
  int count, exit_status, moved = 0;
  shape shapes[ALL + POSITIONAL_MAX];
  if (!parse_command_line(&line_, argc, argv, positionals, &count, &exit_status)) return exit_status;
  for (int i = 0; i < count; i++) {
    if (read_shape(positionals[i], &shapes[i])) continue;
    fprintf(stderr, "rdna tune: '%s' is no shape; it must be as 512x4096x4096\n", positionals[i]);
    return EXIT_USAGE;
  }
  if (export_path[0] || import_path[0]) {
    rdna_status status = import_path[0] ? import_from(import_path, &moved) : RDNA_OK;
    if (status == RDNA_OK && export_path[0]) status = export_to(export_path, &moved);
    if (status != RDNA_OK) return fail_with_status();
    printf("%d measurement%s\n", moved, moved == 1 ? "" : "s");
    return EXIT_OK;
  }
  rdna_device *device;
  if (rdna__config_set(RDNA__CONFIG_TUNE, "full") != RDNA_OK || open_chosen_device(&choice, &device) != RDNA_OK)
    return fail_with_status();
  const rdna_device_info *info = rdna_device_get_info(device);
  bool is_gpu = rdna__device_traits_of(info)->is_gpu;
  if (!is_gpu || info->emulated) {
    fprintf(stderr, "rdna tune: %s\n",
            is_gpu ? "an emulated card's times say nothing about a card"
                   : "there is nothing to choose on this device: it has one implementation of each operator");
    rdna_device_release(device);
    return EXIT_FAILED;
  }
  if (count == 0) {
    default_shapes(shapes);
    count = ALL;
  }
  rdna_dtype dtype = strcmp(type, "f16") == 0 ? RDNA_F16 : strcmp(type, "bf16") == 0 ? RDNA_BF16 : RDNA_F32;
  lines found = {NULL, 0, 0};
  exit_status = tune(device, dtype, strcmp(type, "all") != 0, shapes, count) == RDNA_OK ? EXIT_OK : fail_with_status();
  rdna__tuner_visit(device, add_line, &found);
  if (exit_status == EXIT_OK)
    exit_status = print_lines(device, &found, json);
  else
    free(found.all);
  rdna_device_release(device);
  return exit_status;
}
