/* Model files and what stands before and after the network: GGUF, tokenizer, sampler. */
#ifndef RDNA_MODEL_H
#define RDNA_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rdna/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of text that someone else owns. Not NUL-terminated, and may hold zeros. */
typedef struct rdna_text {
  const char *data;
  size_t size;
} rdna_text;

/* ---- GGUF (github.com/ggml-org/ggml, docs/gguf.md), versions 2 and 3, little-endian ---- */

/* An open model file: metadata keys and tensors, mapped into memory and read only. Everything that the getters hand
 * out is borrowed and lives until rdna_gguf_close. Any number of threads may read at once. */
typedef struct rdna_gguf rdna_gguf;

/* Values as numbered in the file. */
typedef enum rdna_gguf_type {
  RDNA_GGUF_TYPE_U8 = 0,
  RDNA_GGUF_TYPE_I8,
  RDNA_GGUF_TYPE_U16,
  RDNA_GGUF_TYPE_I16,
  RDNA_GGUF_TYPE_U32,
  RDNA_GGUF_TYPE_I32,
  RDNA_GGUF_TYPE_F32,
  RDNA_GGUF_TYPE_BOOL,
  RDNA_GGUF_TYPE_TEXT,
  RDNA_GGUF_TYPE_ARRAY,
  RDNA_GGUF_TYPE_U64,
  RDNA_GGUF_TYPE_I64,
  RDNA_GGUF_TYPE_F64,
  RDNA_GGUF_TYPE_COUNT
} rdna_gguf_type;

typedef struct rdna_gguf_key {
  const char *name;
  rdna_gguf_type type;
  rdna_gguf_type element_type; /* of an array; otherwise the same as |type| */
  uint64_t count;              /* elements of an array; otherwise 1 */
} rdna_gguf_key;

typedef struct rdna_gguf_tensor {
  const char *name;
  uint32_t ggml_type; /* as numbered in the file */
  rdna_dtype dtype;   /* RDNA_DTYPE_COUNT when this library has no such type */
  int rank;           /* 0 to 4 */
  int64_t shape[4];   /* slowest dimension first, as everywhere here; the file says fastest first */
  const void *data;   /* in the file's own map, aligned to at least 8 bytes; NULL when |bytes| is 0 */
  size_t bytes;
} rdna_gguf_tensor;

/* Opens |path|. Of a model in several files (name-00001-of-00003.gguf) any one may be named: all are opened, keys are
 * those of the first. The file must not change while it is open: pages are read when they are touched.
 * RDNA_NOT_FOUND, RDNA_IO_ERROR: no such file, or it cannot be read. RDNA_UNSUPPORTED: version 1 or big-endian.
 * RDNA_BAD_DATA: anything that breaks the format, with what and where; every length is checked before use. */
RDNA_CHECKED rdna_status rdna_gguf_open(const char *path, rdna_gguf **out_file);
/* The same over |size| bytes at |data|, aligned to 8 bytes; the caller keeps them until close. Refuses one part of a
 * model in several files. */
RDNA_CHECKED rdna_status rdna_gguf_open_memory(const void *data, size_t size, rdna_gguf **out_file);
/* Opens the model at |path|: a file as rdna_gguf_open does, or a folder of Hugging Face's (config.json, safetensors,
 * the files of a tokenizer) as the GGUF file that it would become, of which nothing is written: tensors that stay what
 * they are lie in the maps of the folder's files, aligned to at least 8 bytes, others are made in memory when they are
 * first asked for. RDNA_NOT_FOUND, RDNA_BAD_DATA, RDNA_UNSUPPORTED: with the file and what is wrong in it. */
RDNA_CHECKED rdna_status rdna_model_open(const char *path, rdna_gguf **out_file);
RDNA_API void rdna_gguf_close(rdna_gguf *file); /* NULL is fine */

RDNA_API uint32_t rdna_gguf_version(const rdna_gguf *file); /* of the format: 2 or 3 */
RDNA_API size_t rdna_gguf_key_count(const rdna_gguf *file); /* of the metadata, not those for tensors */
/* In the file's order. RDNA_INVALID_ARGUMENT past the last. */
RDNA_CHECKED rdna_status rdna_gguf_key_at(const rdna_gguf *file, size_t index, rdna_gguf_key *out_key);
RDNA_API const char *rdna_gguf_type_name(rdna_gguf_type type); /* "u8", "text", …; "?" outside the enumeration */

/* All getters: RDNA_NOT_FOUND when there is no such key, RDNA_BAD_DATA when its value is of another type or does not
 * fit; out parameters are then untouched. Find looks without making a sentence. */
RDNA_API bool rdna_gguf_find_key(const rdna_gguf *file, const char *name, rdna_gguf_key *out_key);
RDNA_CHECKED rdna_status rdna_gguf_get_u64(const rdna_gguf *file, const char *name, uint64_t *out); /* any integer */
RDNA_CHECKED rdna_status rdna_gguf_get_i64(const rdna_gguf *file, const char *name, int64_t *out);  /* any integer */
/* Any number; a 64-bit integer must be exact in a double. */
RDNA_CHECKED rdna_status rdna_gguf_get_f64(const rdna_gguf *file, const char *name, double *out);
RDNA_CHECKED rdna_status rdna_gguf_get_bool(const rdna_gguf *file, const char *name, bool *out);
RDNA_CHECKED rdna_status rdna_gguf_get_text(const rdna_gguf *file, const char *name, rdna_text *out);
/* An array of texts, whole. */
RDNA_CHECKED rdna_status rdna_gguf_get_texts(const rdna_gguf *file, const char *name, const rdna_text **out_texts,
                                             size_t *out_count);
/* Copies elements [first, first + count) of an array: of any integers or bools into i32, of any floats or integers into
 * f32. RDNA_INVALID_ARGUMENT when the range is not inside the array, RDNA_BAD_DATA when an element does not fit. */
RDNA_CHECKED rdna_status rdna_gguf_read_i32(const rdna_gguf *file, const char *name, uint64_t first, size_t count,
                                            int32_t *out);
RDNA_CHECKED rdna_status rdna_gguf_read_f32(const rdna_gguf *file, const char *name, uint64_t first, size_t count,
                                            float *out);

RDNA_API size_t rdna_gguf_tensor_count(const rdna_gguf *file); /* in all files of the model */
/* In the file's order, of all files. Also describes tensors whose type this library does not have.
 * RDNA_INVALID_ARGUMENT past the last. */
RDNA_CHECKED rdna_status rdna_gguf_tensor_at(const rdna_gguf *file, size_t index, rdna_gguf_tensor *out_tensor);
/* RDNA_NOT_FOUND, or RDNA_UNSUPPORTED when the tensor's type is one that this library cannot use. */
RDNA_CHECKED rdna_status rdna_gguf_get_tensor(const rdna_gguf *file, const char *name, rdna_gguf_tensor *out_tensor);
RDNA_API bool rdna_gguf_has_tensor(const rdna_gguf *file, const char *name);
/* "F32", "Q4_K", "IQ2_XXS", …; "?" for a number that is not assigned. */
RDNA_API const char *rdna_gguf_tensor_type_name(uint32_t ggml_type);

/* ---- Writing GGUF, version 3 ---- */

/* Keys and tensors that become a file when they are written, in the order in which they came. It copies names and the
 * values of keys; the data of tensors stays the caller's until the file is written. Use from one thread at a time. */
typedef struct rdna_gguf_writer rdna_gguf_writer;

/* Without keys and tensors. */
RDNA_CHECKED rdna_status rdna_gguf_writer_create(rdna_gguf_writer **out_writer);
RDNA_API void rdna_gguf_writer_release(rdna_gguf_writer *writer); /* NULL is fine */

/* A key with one value: |value| points to a uint8_t, …, a bool, an rdna_text. A key that is there already takes the
 * new value and keeps its place. general.alignment says how tensors are aligned, which is to 32 bytes otherwise.
 * RDNA_INVALID_ARGUMENT: no name or one of more than 65535 bytes, no such type, an alignment that is no power of two
 * from 8 to 65536. */
RDNA_CHECKED rdna_status rdna_gguf_writer_put(rdna_gguf_writer *writer, const char *name, rdna_gguf_type type,
                                              const void *value);
/* The same with |count| values of |element_type|, which may be any but RDNA_GGUF_TYPE_ARRAY. */
RDNA_CHECKED rdna_status rdna_gguf_writer_put_array(rdna_gguf_writer *writer, const char *name,
                                                    rdna_gguf_type element_type, const void *values, uint64_t count);
/* A key of |file| as it stands there, arrays of arrays too. RDNA_NOT_FOUND: there is no such key. */
RDNA_CHECKED rdna_status rdna_gguf_writer_copy_key(rdna_gguf_writer *writer, const rdna_gguf *file, const char *name);

/* A tensor of |tensor|'s name, shape and |dtype|, or of |ggml_type| where |dtype| is RDNA_DTYPE_COUNT; |bytes| is not
 * looked at. Its data is |data|, or, where |fill| is not NULL, what |fill| appends when the file is written.
 * RDNA_INVALID_ARGUMENT: a name that is there already or too long, more than 4 dimensions, a type that the format has
 * not, rows that are no whole blocks, no data. */
RDNA_CHECKED rdna_status rdna_gguf_writer_add_tensor(rdna_gguf_writer *writer, const rdna_gguf_tensor *tensor,
                                                     rdna_status (*fill)(void *data, rdna_gguf_writer *writer),
                                                     void *data);
/* For |fill|: the next |size| bytes of its tensor. RDNA_INVALID_ARGUMENT: more than the tensor has. */
RDNA_CHECKED rdna_status rdna_gguf_writer_append(rdna_gguf_writer *writer, const void *bytes, size_t size);

/* Writes the file beside |path| and renames it when it is whole, so that a failure leaves what was at |path|; it may be
 * a file that is open. |progress|, or NULL, hears from time to time how much of the data is written, 0 to 1. What
 * |fill| returns is passed on. RDNA_IO_ERROR: the folder or the disk refuses. RDNA_INVALID_ARGUMENT: |fill| appended
 * less than its tensor has; |path| is there and no GGUF file. */
RDNA_CHECKED rdna_status rdna_gguf_writer_write(rdna_gguf_writer *writer, const char *path,
                                                void (*progress)(void *data, double share), void *progress_data);

/* ---- Tokenizer: text to token ids and back, from the vocabulary in a GGUF file ---- */

/* Never changes after it is opened; any number of threads may use it at once. */
typedef struct rdna_tokenizer rdna_tokenizer;

/* Types as numbered in the file. */
typedef enum rdna_token_type {
  RDNA_TOKEN_TYPE_UNDEFINED = 0,
  RDNA_TOKEN_TYPE_NORMAL,
  RDNA_TOKEN_TYPE_UNKNOWN,      /* stands for what the vocabulary cannot say */
  RDNA_TOKEN_TYPE_CONTROL,      /* steers the model; in text only when asked for */
  RDNA_TOKEN_TYPE_USER_DEFINED, /* always found in text, whole */
  RDNA_TOKEN_TYPE_UNUSED,
  RDNA_TOKEN_TYPE_BYTE, /* one byte, for what has no other token */
  RDNA_TOKEN_TYPE_COUNT
} rdna_token_type;

typedef struct rdna_tokenizer_info {
  const char *model;         /* "llama", "gpt2", "gemma4", "no_vocab": tokenizer.ggml.model */
  const char *pre;           /* which pre-tokenizer: tokenizer.ggml.pre; "" when it has none */
  size_t token_count;        /* 0 for "no_vocab": the model can be used with ids only */
  int32_t bos, eos, unknown; /* -1 when there is none */
  bool add_bos, add_eos;     /* what RDNA_ENCODE_ADD_SPECIAL does */
} rdna_tokenizer_info;

/* |file| must stay open as long as the tokenizer: texts are borrowed from it.
 * RDNA_NOT_FOUND: the file has no vocabulary at all. RDNA_UNSUPPORTED: a kind of tokenizer or pre-tokenizer that this
 * build does not have, with its name. RDNA_BAD_DATA: a vocabulary that contradicts itself. */
RDNA_CHECKED rdna_status rdna_tokenizer_open(const rdna_gguf *file, rdna_tokenizer **out_tokenizer);
RDNA_API void rdna_tokenizer_close(rdna_tokenizer *tokenizer); /* NULL is fine */
RDNA_API const rdna_tokenizer_info *rdna_tokenizer_get_info(const rdna_tokenizer *tokenizer);

/* A list of ids that grows. All zeros is an empty one. */
typedef struct rdna_tokens {
  int32_t *ids;
  size_t count, capacity;
} rdna_tokens;

RDNA_API void rdna_tokens_deinit(rdna_tokens *tokens); /* leaves an empty list */
RDNA_CHECKED rdna_status rdna_tokens_append(rdna_tokens *tokens, int32_t id);

enum {
  RDNA_ENCODE_ADD_SPECIAL = 1,  /* BOS before and EOS behind, as the file says */
  RDNA_ENCODE_PARSE_SPECIAL = 2 /* control tokens written in the text become those tokens; never for text of others */
};

/* Appends the ids of |size| bytes of text. Any bytes are text: what is not UTF-8 becomes byte tokens.
 * On failure |tokens| is as it was. RDNA_UNSUPPORTED: no vocabulary; a byte that the vocabulary has no token for;
 * more than 512 MiB. */
RDNA_CHECKED rdna_status rdna_tokenizer_encode(const rdna_tokenizer *tokenizer, const char *text, size_t size,
                                               unsigned flags, rdna_tokens *tokens);

/* The id of the token whose text, as it stands in the file, is |text|. RDNA_NOT_FOUND. */
RDNA_CHECKED rdna_status rdna_tokenizer_find(const rdna_tokenizer *tokenizer, const char *text, size_t size,
                                             int32_t *out_id);
/* The bytes that token |id| stands for, control tokens as they are written. In UTF-8 only together with its neighbours.
 * RDNA_INVALID_ARGUMENT: no such id. Both borrowed from the tokenizer. */
RDNA_CHECKED rdna_status rdna_tokenizer_piece(const rdna_tokenizer *tokenizer, int32_t id, rdna_text *out_piece);
RDNA_CHECKED rdna_status rdna_tokenizer_type(const rdna_tokenizer *tokenizer, int32_t id, rdna_token_type *out_type);
/* Whether |id| ends a reply: EOS, or another end of turn or message that the file or its names declare. */
RDNA_API bool rdna_tokenizer_is_end(const rdna_tokenizer *tokenizer, int32_t id);

/* Turns ids back into text, one at a time. Use from one thread at a time; the tokenizer must stay open. */
typedef struct rdna_detokenizer rdna_detokenizer;

/* Leaves out control tokens unless |show_control|. The space that a tokenizer puts before a text is taken away. */
RDNA_CHECKED rdna_status rdna_detokenizer_create(const rdna_tokenizer *tokenizer, bool show_control,
                                                 rdna_detokenizer **out_detokenizer);
RDNA_API void rdna_detokenizer_release(rdna_detokenizer *detokenizer); /* NULL is fine */
/* |out_text|, valid until the next call, is what |id| completes: a character that is split over tokens is held back
 * until its last byte is there. Bytes that cannot become UTF-8 come out as they are. */
RDNA_CHECKED rdna_status rdna_detokenizer_push(rdna_detokenizer *detokenizer, int32_t id, rdna_text *out_text);
/* What is still held back. The next push starts a new text. */
RDNA_API void rdna_detokenizer_finish(rdna_detokenizer *detokenizer, rdna_text *out_text);

/* ---- Sampler: from the logits of a step to the next token ---- */

typedef struct rdna_sampling {
  size_t size;              /* of the struct: RDNA_SAMPLING_INIT sets it */
  float temperature;        /* 1; 0 takes the most likely token always */
  int32_t top_k;            /* 0: all tokens; otherwise only the k most likely */
  float top_p;              /* 1: all; otherwise the fewest of the most likely whose probabilities reach p together */
  float min_p;              /* 0: all; otherwise only those at least min_p times as likely as the most likely */
  float repetition_penalty; /* 1: none; logits of recent tokens are divided by it when positive, else multiplied */
  int32_t repeat_last_n;    /* 128: how many recent tokens that means */
  uint64_t seed;            /* 0; the same seed and logits give the same tokens, on any machine with the same libm */
} rdna_sampling;
/* As noted above: draws from the model's own distribution. */
#define RDNA_SAMPLING_INIT \
  .size = sizeof(rdna_sampling), .temperature = 1, .top_p = 1, .repetition_penalty = 1, .repeat_last_n = 128

/* Applies, in this order: repetition penalty (Keskar et al., 2019), top-k, top-p (Holtzman et al., 2020), min-p
 * (Nguyen et al., 2024), temperature. Each works on what the one before it left; of equal logits the smaller id counts
 * as the more likely. One sampler is one sequence; use from one thread at a time. */
typedef struct rdna_sampler rdna_sampler;

/* RDNA_INVALID_ARGUMENT: a number outside its range, with its name. */
RDNA_CHECKED rdna_status rdna_sampler_create(const rdna_sampling *sampling, rdna_sampler **out_sampler);
RDNA_API void rdna_sampler_release(rdna_sampler *sampler); /* NULL is fine */
/* Makes |id| the most recent token: for the prompt; sampled tokens are counted by themselves. */
RDNA_CHECKED rdna_status rdna_sampler_accept(rdna_sampler *sampler, int32_t id);
/* |logits| (count) are read only; minus infinity rules a token out. RDNA_BAD_DATA: NaN, plus infinity, or all ruled
 * out; then nothing was drawn or counted. */
RDNA_CHECKED rdna_status rdna_sampler_sample(rdna_sampler *sampler, const float *logits, size_t count, int32_t *out_id);

#ifdef __cplusplus
}
#endif
#endif
