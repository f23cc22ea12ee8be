#include "model/weights/quantize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/block_formats.h"
#include "base/log.h"
#include "base/status.h"
#include "model/gguf/gguf.h"
#include "model/weights/transcode.h"

/* ---- which type ---- */

#define MADE_OWN(name) " " #name
#define MADE_PACKED(name) " " #name
#define MADE_GRID(name) " " #name
#define MADE_NONE(name)
#define MADE(X, name, NAME, ggml, values, bytes, quantize, ...) MADE_##quantize(name)
#define BLOCK_TYPES RDNA_BLOCK_FORMATS(MADE, )
static const char block_types[] = BLOCK_TYPES, weight_types[] = "f32 f16 bf16" BLOCK_TYPES;

/* One of |types|, between spaces or ends. */
static bool parse_type(const char *name, const char *types, rdna_dtype *out) {
  for (rdna_dtype type = 0; type < RDNA_DTYPE_COUNT; type++) {
    if (strcasecmp(name, rdna_dtype_name(type)) != 0) continue;
    const char *at = strstr(types, rdna_dtype_name(type));
    size_t length = strlen(name);
    if (!at || (at != types && at[-1] != ' ') || (at[length] != ' ' && at[length] != 0)) return false;
    *out = type;
    return true;
  }
  return false;
}

rdna_status rdna__weight_type_parse(const char *name, rdna_dtype *out_type) {
  if (parse_type(name, weight_types, out_type)) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "weights cannot be made '%.40s'; types are %s", name, weight_types);
}

rdna_status rdna__block_type_parse(const char *name, rdna_dtype *out_type) {
  if (parse_type(name, block_types, out_type)) return RDNA_OK;
  return rdna__fail(RDNA_INVALID_ARGUMENT, "weights cannot be rounded to '%.40s'; types of blocks are%s", name,
                    block_types);
}

rdna_status rdna__weight_recipe_parse(const char *name, rdna_dtype *out_type, const rdna__mix **out_mix) {
  char names[128];
  *out_mix = rdna__mix_find(name);
  if (*out_mix) {
    *out_type = rdna__mix_type(*out_mix);
    return RDNA_OK;
  }
  rdna__mix_names(names, sizeof names);
  return rdna__annotate(rdna__weight_type_parse(name, out_type), "no mix either (%s)", names);
}

/* llama.h of github.com/ggml-org/llama.cpp, enum llama_ftype; of the names with _S and _M the plain one. */
uint32_t rdna__weight_file_type(rdna_dtype type) {
  static const struct {
    rdna_dtype dtype;
    uint32_t number;
  } types[] = {{RDNA_F32, 0},    {RDNA_F16, 1},    {RDNA_Q4_0, 2},     {RDNA_Q4_1, 3},    {RDNA_Q8_0, 7},
               {RDNA_Q5_0, 8},   {RDNA_Q5_1, 9},   {RDNA_Q2_K, 10},    {RDNA_Q3_K, 11},   {RDNA_Q4_K, 14},
               {RDNA_Q5_K, 16},  {RDNA_Q6_K, 18},  {RDNA_IQ4_NL, 25},  {RDNA_IQ4_XS, 30}, {RDNA_BF16, 32},
               {RDNA_TQ1_0, 36}, {RDNA_TQ2_0, 37}, {RDNA_IQ2_XXS, 19}, {RDNA_IQ2_XS, 20}, {RDNA_IQ3_XXS, 23},
               {RDNA_IQ1_S, 24}, {RDNA_IQ3_S, 26}, {RDNA_IQ2_S, 28},   {RDNA_IQ1_M, 31},  {RDNA_MXFP4, 38}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i].dtype == type) return types[i].number;
  return 1024; /* "guessed" */
}

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), end_length = strlen(end);
  return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Whether |tensor| is one of the matrices that a model's type is named for. */
static bool is_matrix(const rdna_gguf_tensor *tensor) {
  return tensor->rank >= 2 && ends_with(tensor->name, ".weight") && !ends_with(tensor->name, "_norm.weight") &&
         !ends_with(tensor->name, "ffn_gate_inp.weight") && !ends_with(tensor->name, "ssm_conv1d.weight") &&
         !ends_with(tensor->name, "shortconv.conv.weight") && strcmp(tensor->name, "position_embd.weight") != 0 &&
         strcmp(tensor->name, "token_types.weight") != 0;
}

static bool has_fewer_bits(rdna_dtype a, rdna_dtype b) {
  return rdna_dtype_block_bytes(a) * (size_t)rdna_dtype_block_values(b) <
         rdna_dtype_block_bytes(b) * (size_t)rdna_dtype_block_values(a);
}

rdna_dtype rdna__weight_type_fitting(rdna_dtype type, int64_t columns, rdna_dtype before) {
  static const rdna_dtype smaller_blocks[RDNA_DTYPE_COUNT] = {
      [RDNA_Q2_K] = RDNA_Q4_0,    [RDNA_Q3_K] = RDNA_Q4_0,      [RDNA_Q4_K] = RDNA_Q5_0,
      [RDNA_Q5_K] = RDNA_Q5_1,    [RDNA_Q6_K] = RDNA_Q8_0,      [RDNA_IQ4_XS] = RDNA_IQ4_NL,
      [RDNA_TQ1_0] = RDNA_Q4_0,   [RDNA_TQ2_0] = RDNA_Q4_0,     [RDNA_IQ1_S] = RDNA_IQ4_NL,
      [RDNA_IQ1_M] = RDNA_IQ4_NL, [RDNA_IQ2_XXS] = RDNA_IQ4_NL, [RDNA_IQ2_XS] = RDNA_IQ4_NL,
      [RDNA_IQ2_S] = RDNA_IQ4_NL, [RDNA_IQ3_XXS] = RDNA_IQ4_NL, [RDNA_IQ3_S] = RDNA_IQ4_NL};
  if (columns % rdna_dtype_block_values(type) == 0) return type;
  if (rdna_dtype_block_values(type) == 256) return rdna__weight_type_fitting(smaller_blocks[type], columns, before);
  return before == RDNA_BF16 ? RDNA_BF16 : RDNA_F16;
}

static bool makes_logits(const rdna_gguf_tensor *tensor, bool tied) {
  return strcmp(tensor->name, tied ? "token_embd.weight" : "output.weight") == 0;
}

/* What |tensor| would be if blocks could be of any length. */
static rdna_dtype wanted_type(const rdna_gguf_tensor *tensor, rdna_dtype type, bool tied) {
  if (!is_matrix(tensor)) return RDNA_F32;
  return makes_logits(tensor, tied) && has_fewer_bits(type, RDNA_Q6_K) ? RDNA_Q6_K : type;
}
/* The same of a mix. */
static rdna_dtype mixed_type(const rdna_gguf *file, const rdna_gguf_tensor *tensor, const rdna__mix *mix, bool tied) {
  if (!is_matrix(tensor)) return RDNA_F32;
  return makes_logits(tensor, tied) ? rdna__mix_logits_type(mix) : rdna__mix_type_of(mix, file, tensor);
}

static rdna_dtype possible_type(const rdna_gguf_tensor *tensor, rdna_dtype wanted) {
  if (!rdna__transcodes_from(tensor->dtype)) return tensor->dtype;
  return tensor->rank == 0 ? wanted : rdna__weight_type_fitting(wanted, tensor->shape[tensor->rank - 1], tensor->dtype);
}

rdna_dtype rdna__weight_type_for(const rdna_gguf_tensor *tensor, rdna_dtype type, bool tied) {
  return possible_type(tensor, wanted_type(tensor, type, tied));
}

void rdna__weight_count(rdna__weight_counts *counts, bool after, const rdna_gguf_tensor *tensor) {
  uint32_t type = tensor->dtype == RDNA_DTYPE_COUNT ? tensor->ggml_type : rdna__gguf_number_of(tensor->dtype);
  if (type >= RDNA__WEIGHT_TYPES) return; /* no type has such a number */
  rdna_tensor shaped = rdna_tensor_contiguous(NULL, tensor->dtype, tensor->rank, tensor->shape);
  size_t bytes =
      tensor->dtype == RDNA_DTYPE_COUNT ? tensor->bytes : rdna_dtype_bytes(tensor->dtype, rdna_tensor_count(&shaped));
  (after ? counts->after : counts->before)[type].tensors++;
  (after ? counts->after : counts->before)[type].bytes += bytes;
}

rdna_status rdna__weight_count_file(const rdna_gguf *file, rdna_dtype type, rdna__weight_counts *counts) {
  bool tied = !rdna_gguf_has_tensor(file, "output.weight");
  for (size_t i = 0; i < rdna_gguf_tensor_count(file); i++) {
    rdna_gguf_tensor tensor;
    RDNA_TRY(rdna_gguf_tensor_at(file, i, &tensor));
    rdna__weight_count(counts, true, &tensor);
    bool asked = type != RDNA_DTYPE_COUNT && tensor.dtype != RDNA_MXFP4; /* that stays what it was */
    if (asked && tensor.dtype != wanted_type(&tensor, type, tied)) counts->fallbacks++;
  }
  return RDNA_OK;
}

/* ---- writing ---- */

typedef struct job {
  rdna_gguf_tensor from;
  rdna_dtype to;
  rdna__transcoder *transcoder;
  bool searches;      /* for the block's scales */
  const float *means; /* (matrices, columns) of an importance matrix; NULL: columns count alike */
  int64_t matrices;
} job;

/* |means| (columns) over their own mean, so that products of them stay near 1; all 1 where none counts. */
static void level(const float *means, int64_t columns, float *out) {
  double sum = 0;
  for (int64_t i = 0; means && i < columns; i++) sum += (double)means[i];
  for (int64_t i = 0; i < columns; i++) out[i] = sum > 0 ? (float)((double)means[i] * (double)columns / sum) : 1;
}

static rdna_status fill_searching(const job *j, rdna_gguf_writer *writer) {
  rdna_tensor shaped = rdna_tensor_contiguous(NULL, j->from.dtype, j->from.rank, j->from.shape);
  int64_t columns = j->from.shape[j->from.rank - 1], matrices = j->means ? j->matrices : 1;
  int64_t count = rdna_tensor_count(&shaped) / matrices;
  float *importance = malloc((size_t)columns * sizeof *importance);
  if (!importance) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %lld columns", (long long)columns);
  rdna_status status = RDNA_OK;
  for (int64_t i = 0; i < matrices && status == RDNA_OK; i++) {
    const char *values = (const char *)j->from.data + rdna_dtype_bytes(j->from.dtype, i * count);
    level(j->means ? j->means + i * columns : NULL, columns, importance);
    status = rdna__transcode_weighted(j->transcoder, writer, values, j->from.dtype, j->to, count, importance, columns);
  }
  free(importance);
  return status;
}

static rdna_status fill(void *data, rdna_gguf_writer *writer) {
  const job *j = data;
  rdna_tensor shaped = rdna_tensor_contiguous(NULL, j->from.dtype, j->from.rank, j->from.shape);
  rdna_status status = j->searches ? fill_searching(j, writer)
                                   : rdna__transcode(j->transcoder, writer, j->from.data, j->from.dtype, j->to,
                                                     rdna_tensor_count(&shaped), 0);
  return rdna__annotate(status, "tensor %s", j->from.name);
}

static rdna_status put_keys(rdna_gguf_writer *writer, const rdna_gguf *file, rdna_dtype type, const rdna__mix *mix) {
  for (size_t i = 0; i < rdna_gguf_key_count(file); i++) {
    rdna_gguf_key key;
    RDNA_TRY(rdna_gguf_key_at(file, i, &key));
    if (strncmp(key.name, "split.", strlen("split.")) == 0) continue; /* it is one file now */
    RDNA_TRY(rdna_gguf_writer_copy_key(writer, file, key.name));
  }
  uint32_t file_type = mix ? rdna__mix_file_type(mix) : rdna__weight_file_type(type),
           version = 2; /* of the layout of blocks: since May 2023 */
  RDNA_TRY(rdna_gguf_writer_put(writer, "general.file_type", RDNA_GGUF_TYPE_U32, &file_type));
  if (rdna_dtype_block_values(type) == 1) return RDNA_OK;
  return rdna_gguf_writer_put(writer, "general.quantization_version", RDNA_GGUF_TYPE_U32, &version);
}

static rdna_status add_tensor(rdna_gguf_writer *writer, const rdna_gguf *file, size_t index, rdna_dtype type,
                              const rdna__mix *mix, const rdna__imatrix *imatrix, job *j, rdna__weight_counts *counts) {
  RDNA_TRY(rdna_gguf_tensor_at(file, index, &j->from));
  bool tied = !rdna_gguf_has_tensor(file, "output.weight");
  rdna__weight_count(counts, false, &j->from);
  if (j->from.dtype == RDNA_DTYPE_COUNT && is_matrix(&j->from))
    return rdna__fail(RDNA_UNSUPPORTED,
                      "tensor %s is of type %s, which cannot be read here; take a file of another type", j->from.name,
                      rdna_gguf_tensor_type_name(j->from.ggml_type));
  rdna_dtype wanted = mix ? mixed_type(file, &j->from, mix, tied) : wanted_type(&j->from, type, tied);
  j->to = possible_type(&j->from, wanted);
  rdna_gguf_tensor to = j->from;
  to.dtype = j->to;
  rdna__weight_count(counts, true, &to);
  if (rdna__transcodes_from(j->from.dtype) && j->to != wanted) counts->fallbacks++;
  j->searches = imatrix && j->to != j->from.dtype && rdna_dtype_block_values(j->to) > 1 && j->to != RDNA_Q8_0;
  if (j->searches) {
    RDNA_TRY(rdna__imatrix_find(imatrix, &j->from, &j->means, &j->matrices));
    counts->unimportant += !j->means;
  }
  return rdna_gguf_writer_add_tensor(writer, &to, j->to == j->from.dtype ? NULL : fill, j);
}

/* Whether |type| has so few bits that it matters much which columns they are for. */
static bool wants_importance(rdna_dtype type) {
#define GRID(X, name, NAME, ggml, values, bytes, quantize, ...) RDNA_BLOCK_GRID_IF_##quantize##_(|| type == RDNA_##NAME)
  bool searched = false RDNA_BLOCK_FORMATS(GRID, );
#undef GRID
  return searched && has_fewer_bits(type, RDNA_Q2_K);
}

rdna_status rdna__quantize(const rdna_gguf *file, const char *path, rdna_dtype type, const rdna__mix *mix,
                           const rdna__imatrix *imatrix, rdna_device *device,
                           void (*progress)(void *data, double share), void *progress_data,
                           rdna__weight_counts *out_counts) {
  size_t count = rdna_gguf_tensor_count(file);
  rdna_gguf_writer *writer = NULL;
  rdna__transcoder *transcoder = NULL;
  *out_counts = (rdna__weight_counts){0};
  if (!imatrix && wants_importance(type))
    rdna__log(
        RDNA__LOG_WARNING,
        "%s without an importance matrix: all columns of a matrix count the same, which loses much in so few bits; "
        "rdna imatrix makes one",
        rdna_dtype_name(type));
  job *jobs = calloc(count + 1, sizeof *jobs);
  rdna_status status =
      jobs ? rdna_gguf_writer_create(&writer) : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for %zu tensors", count);
  if (status == RDNA_OK) status = rdna__transcoder_create(device, &transcoder);
  if (status == RDNA_OK) status = put_keys(writer, file, type, mix);
  if (status == RDNA_OK && imatrix) {
    int32_t entries = (int32_t)rdna__imatrix_count(imatrix);
    status = rdna_gguf_writer_put(writer, "quantize.imatrix.entries_count", RDNA_GGUF_TYPE_I32, &entries);
  }
  for (size_t i = 0; i < count && status == RDNA_OK; i++) {
    jobs[i].transcoder = transcoder;
    status = add_tensor(writer, file, i, type, mix, imatrix, &jobs[i], out_counts);
  }
  if (status == RDNA_OK) status = rdna_gguf_writer_write(writer, path, progress, progress_data);
  rdna__transcoder_release(transcoder);
  rdna_gguf_writer_release(writer);
  free(jobs);
  return status;
}
