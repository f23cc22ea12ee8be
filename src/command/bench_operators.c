/* Operators on data several times the size of a cache, as a share of the device's own copy rate. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/block_formats.h"
#include "base/random.h"
#include "base/status.h"
#include "command/bench.h"
#include "command/command.h"
#include "math/quant/quant_case.h"
#include "rdna/memory.h"
#include "rdna/op.h"

enum { ROWS = 4096, COLS = 4096, MAX_BUFFERS = 8, SAMPLES = 9, STAGE_BYTES = 1 << 22 };

typedef struct bench {
  rdna_device *device;
  rdna_stream *stream;
  rdna__random random;
  rdna_event *start, *end;
  uint8_t *stage; /* (STAGE_BYTES) random values on their way to the device */
  void *buffers[MAX_BUFFERS];
  int buffer_count;
  rdna_tensor t[6]; /* what the row's prepare made, for its run */
  void *workspace;
  size_t workspace_bytes;
  rdna_attention attention;
  rdna_convolution conv;
  rdna_sdpa sdpa;
  rdna_tensor gradients[3];
  int turn; /* of experts */
  const struct row *row;
  double bytes, flops; /* that one call must move and do */
  double copy_rate;    /* bytes a second */
} bench;

typedef struct row {
  const char *name;
  rdna_status (*prepare)(bench *b, rdna_dtype dtype);
  rdna_status (*run)(bench *b);
  rdna_dtype dtype;
} row;

/* Random values of |dtype| that are ordinary numbers. */
static void fill_stage(bench *b, rdna_dtype dtype) {
  for (size_t i = 0; i < STAGE_BYTES; i += 8) {
    uint64_t bits = rdna__random_bits(&b->random);
    memcpy(b->stage + i, &bits, 8);
  }
  size_t block = rdna_dtype_block_bytes(dtype);
  if (rdna_dtype_block_values(dtype) > 1) {
    rdna__fill_blocks(&b->random, dtype, b->stage, (int64_t)(STAGE_BYTES / block) * rdna_dtype_block_values(dtype));
    return;
  }
  for (size_t i = 0; i + block <= STAGE_BYTES; i += block) {
    uint8_t *at = b->stage + i;
    uint16_t half = (uint16_t)(0x2400 | (at[0] & 0xff));
    if (dtype == RDNA_F32) {
      float value = (float)at[0] / 128.0f - 1.0f + (float)at[1] / 65536.0f;
      memcpy(at, &value, 4);
    } else if (dtype == RDNA_F16) {
      half = (uint16_t)((at[1] & 0x83) | 0x30) << 8 | at[0];
      memcpy(at, &half, 2);
    } else if (dtype == RDNA_BF16) {
      half = (uint16_t)((at[1] & 0x80) | 0x3e) << 8 | at[0];
      memcpy(at, &half, 2);
    }
  }
}

static rdna_status make(bench *b, int slot, rdna_dtype dtype, int rank, const int64_t *shape) {
  int64_t count = 1;
  for (int i = 0; i < rank; i++) count *= shape[i];
  size_t bytes = rdna_dtype_bytes(dtype, count);
  void *data;
  RDNA_TRY(rdna_memory_alloc_named(b->device, bytes, b->stream, "bench", &data));
  b->buffers[b->buffer_count++] = data;
  b->t[slot] = rdna_tensor_contiguous(data, dtype, rank, shape);
  if (dtype == RDNA_I32 || dtype == RDNA_I64) return RDNA_OK; /* its maker fills it, or it is written */
  fill_stage(b, dtype);
  size_t block = rdna_dtype_block_bytes(dtype), whole = STAGE_BYTES / block * block;
  for (size_t done = 0; done < bytes; done += whole) {
    size_t part = bytes - done < whole ? bytes - done : whole;
    RDNA_TRY(rdna_copy_to_device(b->stream, (char *)data + done, b->stage, part));
  }
  return rdna_stream_synchronize(b->stream);
}

static rdna_status make_indices(bench *b, int slot, int count, int below) {
  int64_t shape = count;
  RDNA_TRY(make(b, slot, RDNA_I32, 1, &shape));
  int32_t *ids = (int32_t *)b->stage; /* at most STAGE_BYTES / 4 of them */
  for (int i = 0; i < count; i++) ids[i] = below ? (int32_t)rdna__random_below(&b->random, (uint64_t)below) : i;
  RDNA_TRY(rdna_copy_to_device(b->stream, b->t[slot].data, ids, (size_t)count * sizeof *ids));
  return rdna_stream_synchronize(b->stream);
}

static double size_of(const rdna_tensor *t) { return (double)rdna_dtype_bytes(t->dtype, rdna_tensor_count(t)); }

/* ---- what each row does ---- */

static const int64_t plane[] = {ROWS, COLS};
static const rdna_scalar zero; /* parameters that an operation does not look at */

static rdna_status prepare_pointwise(bench *b, rdna_dtype dtype) {
  for (int i = 0; i < 3; i++) RDNA_TRY(make(b, i, dtype, 2, plane));
  b->bytes = 3 * size_of(&b->t[0]);
  return RDNA_OK;
}
static rdna_status prepare_one(bench *b, rdna_dtype dtype) {
  for (int i = 0; i < 2; i++) RDNA_TRY(make(b, i, dtype, 2, plane));
  b->bytes = 2 * size_of(&b->t[0]);
  return RDNA_OK;
}
static rdna_status run_copy(bench *b) {
  return rdna_copy_on_device(b->stream, b->t[1].data, b->t[0].data, (size_t)size_of(&b->t[0]));
}
static rdna_status run_add(bench *b) {
  return rdna_op_zip(b->stream, RDNA_ZIP_ADD, &b->t[0], &b->t[1], zero, zero, &b->t[2]);
}
static rdna_status run_mul(bench *b) {
  return rdna_op_zip(b->stream, RDNA_ZIP_MUL, &b->t[0], &b->t[1], zero, zero, &b->t[2]);
}
/* bias, activation, residual; the bias is a row of the residual */
static rdna_status run_fused(bench *b) {
  static const rdna_fused_step steps[] = {{.op = RDNA_ZIP_ADD, .is_zip = true, .input = 1},
                                          {.op = RDNA_MAP_RELU},
                                          {.op = RDNA_ZIP_ADD, .is_zip = true, .input = 2}};
  rdna_tensor bias = rdna_tensor_contiguous(b->t[1].data, b->t[1].dtype, 1, &b->t[1].shape[1]);
  return rdna_op_fused(b->stream, steps, 3, (const rdna_tensor *[]){&b->t[0], &bias, &b->t[1]}, 3, &b->t[2]);
}
static rdna_status run_swiglu(bench *b) { return rdna_op_swiglu(b->stream, &b->t[0], &b->t[1], &b->t[2]); }
static rdna_status run_silu(bench *b) { return rdna_op_map(b->stream, RDNA_MAP_SILU, &b->t[0], zero, zero, &b->t[1]); }
static rdna_status run_softmax(bench *b) { return rdna_op_softmax(b->stream, &b->t[0], 1, 1.0f, &b->t[1]); }
static rdna_status prepare_cast(bench *b, rdna_dtype dtype) {
  RDNA_TRY(make(b, 0, RDNA_F32, 2, plane));
  RDNA_TRY(make(b, 1, dtype, 2, plane));
  b->bytes = size_of(&b->t[0]) + size_of(&b->t[1]);
  return RDNA_OK;
}
static rdna_status run_cast(bench *b) { return rdna_op_cast(b->stream, &b->t[0], &b->t[1]); }
static rdna_status prepare_norm(bench *b, rdna_dtype dtype) {
  RDNA_TRY(prepare_one(b, dtype));
  return make(b, 2, RDNA_F32, 1, &plane[1]);
}
static rdna_status run_rms_norm(bench *b) { return rdna_op_rms_norm(b->stream, &b->t[0], &b->t[2], 1e-5, &b->t[1]); }
/* (n, channels, height, width), as in the middle of a residual network */
static const int64_t images[] = {32, 256, 56, 56};
static rdna_status prepare_channel_norm(bench *b, rdna_dtype dtype, int rank, const int64_t *statistics) {
  for (int i = 0; i < 2; i++) RDNA_TRY(make(b, i, dtype, 4, images));
  for (int i = 2; i < 4; i++) RDNA_TRY(make(b, i, RDNA_F32, rank, statistics));
  b->bytes = 3 * size_of(&b->t[0]); /* x is read for its statistics, and again */
  return RDNA_OK;
}
static rdna_status prepare_batch_norm(bench *b, rdna_dtype dtype) {
  return prepare_channel_norm(b, dtype, 1, &images[1]);
}
static rdna_status run_batch_norm(bench *b) {
  return rdna_op_batch_norm(b->stream, &b->t[0], NULL, NULL, NULL, NULL, 0, 1e-5, &b->t[1], &b->t[2], &b->t[3]);
}
static rdna_status prepare_group_norm(bench *b, rdna_dtype dtype) {
  return prepare_channel_norm(b, dtype, 2, (int64_t[]){images[0], 32});
}
static rdna_status run_group_norm(bench *b) {
  return rdna_op_group_norm(b->stream, &b->t[0], 32, NULL, NULL, 1e-5, &b->t[1], &b->t[2], &b->t[3]);
}
static rdna_status prepare_max_pool(bench *b, rdna_dtype dtype) {
  const int64_t halves[] = {images[0], images[1], images[2] / 2, images[3] / 2};
  RDNA_TRY(make(b, 0, dtype, 4, images));
  RDNA_TRY(make(b, 1, dtype, 4, halves));
  RDNA_TRY(make(b, 2, RDNA_I64, 4, halves));
  b->bytes = size_of(&b->t[0]) + size_of(&b->t[1]) + size_of(&b->t[2]);
  return RDNA_OK;
}
static rdna_status run_max_pool(bench *b) {
  const rdna_pooling pool = {RDNA_POOLING_INIT, .spatial_dims = 2, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}};
  return rdna_op_max_pool(b->stream, &pool, &b->t[0], &b->t[1], &b->t[2]);
}
static rdna_status prepare_upsample(bench *b, rdna_dtype dtype) {
  RDNA_TRY(make(b, 0, dtype, 4, (int64_t[]){images[0], images[1], images[2] / 2, images[3] / 2}));
  RDNA_TRY(make(b, 1, dtype, 4, images));
  b->bytes = size_of(&b->t[0]) + size_of(&b->t[1]);
  return RDNA_OK;
}
static rdna_status run_upsample(bench *b) {
  const rdna_upsample how = {RDNA_UPSAMPLE_INIT, .mode = RDNA_UPSAMPLE_MODE_LINEAR};
  return rdna_op_upsample(b->stream, &how, &b->t[0], &b->t[1]);
}
static rdna_status prepare_rope(bench *b, rdna_dtype dtype) {
  const int64_t heads[] = {ROWS, 32, COLS / 32};
  for (int i = 0; i < 2; i++) RDNA_TRY(make(b, i, dtype, 3, heads));
  RDNA_TRY(make_indices(b, 2, ROWS, ROWS));
  RDNA_TRY(make(b, 3, RDNA_F32, 1, (int64_t[]){COLS / 64}));
  b->bytes = 2 * size_of(&b->t[0]);
  return RDNA_OK;
}
static rdna_status run_rope(bench *b) {
  rdna_rope rope = {RDNA_ROPE_INIT, RDNA_ROPE_LAYOUT_INTERLEAVED, &b->t[2], &b->t[3], 1.0f};
  return rdna_op_rope(b->stream, &rope, &b->t[0], &b->t[1]);
}
static rdna_status prepare_argmax(bench *b, rdna_dtype dtype) {
  RDNA_TRY(make(b, 0, dtype, 2, plane));
  RDNA_TRY(make(b, 1, RDNA_I32, 1, plane));
  b->bytes = size_of(&b->t[0]);
  return RDNA_OK;
}
static rdna_status run_argmax(bench *b) {
  return rdna_op_reduce(b->stream, RDNA_REDUCTION_ARGMAX, &b->t[0], 2, 0, &b->t[1]);
}
static rdna_status prepare_gather(bench *b, rdna_dtype dtype) {
  RDNA_TRY(make(b, 0, dtype, 2, (int64_t[]){32768, COLS}));
  RDNA_TRY(make_indices(b, 1, ROWS, 32768));
  RDNA_TRY(make(b, 2, RDNA_F32, 2, plane));
  b->bytes = (double)rdna_dtype_bytes(dtype, (int64_t)ROWS * COLS) + size_of(&b->t[2]);
  return RDNA_OK;
}
static rdna_status run_gather(bench *b) { return rdna_op_embedding(b->stream, &b->t[0], &b->t[1], &b->t[2], NULL); }

static rdna_status prepare_linear(bench *b, rdna_dtype dtype, int64_t m, int64_t n, int64_t k) {
  RDNA_TRY(make(b, 0, RDNA_F32, 2, (int64_t[]){m, k}));
  RDNA_TRY(make(b, 1, dtype, 2, (int64_t[]){n, k}));
  RDNA_TRY(make(b, 2, RDNA_F32, 2, (int64_t[]){m, n}));
  b->bytes = size_of(&b->t[0]) + size_of(&b->t[1]) + size_of(&b->t[2]);
  b->flops = 2.0 * (double)m * (double)n * (double)k;
  return RDNA_OK;
}
static rdna_status prepare_vector(bench *b, rdna_dtype dtype) { return prepare_linear(b, dtype, 1, 14336, 4096); }
static rdna_status prepare_matrix(bench *b, rdna_dtype dtype) { return prepare_linear(b, dtype, 512, 14336, 4096); }
static rdna_status prepare_square(bench *b, rdna_dtype dtype) { return prepare_linear(b, dtype, 1, 4096, 4096); }
static rdna_status prepare_down(bench *b, rdna_dtype dtype) { return prepare_linear(b, dtype, 1, 4096, 14336); }
static rdna_status run_linear(bench *b) { return rdna_op_linear(b->stream, &b->t[0], &b->t[1], NULL, &b->t[2]); }

/* Layers of 128 experts, of which 8 are chosen, with sizes of Qwen 3's. Turns of one token choose others each time, so
 * that weights come from memory. */
enum { EXPERTS = 128, CHOSEN = 8, TURNS = EXPERTS / CHOSEN };
static rdna_status prepare_experts(bench *b, rdna_dtype dtype, int64_t tokens, bool down) {
  int64_t wide = 2048, narrow = 768, n = down ? wide : 2 * narrow, k = down ? narrow : wide, rows = tokens * CHOSEN;
  RDNA_TRY(make(b, 0, RDNA_F32, down ? 3 : 2, down ? (int64_t[]){tokens, CHOSEN, k} : (int64_t[]){tokens, k}));
  RDNA_TRY(make(b, 1, dtype, 3, (int64_t[]){EXPERTS, n, k}));
  RDNA_TRY(make(b, 2, RDNA_F32, down ? 2 : 3, down ? (int64_t[]){tokens, n} : (int64_t[]){tokens, CHOSEN, n}));
  RDNA_TRY(make_indices(b, 3, (int)rows * TURNS, EXPERTS));
  for (int i = 0; i < EXPERTS; i++) ((int32_t *)b->stage)[i] = (i * 37) % EXPERTS; /* those of one token */
  if (tokens == 1) RDNA_TRY(rdna_copy_to_device(b->stream, b->t[3].data, b->stage, EXPERTS * sizeof(int32_t)));
  b->t[3] = rdna_tensor_contiguous(b->t[3].data, RDNA_I32, 2, (int64_t[]){tokens, CHOSEN});
  RDNA_TRY(make(b, 4, RDNA_F32, 2, (int64_t[]){tokens, CHOSEN}));
  int64_t touched = rows < EXPERTS ? rows : EXPERTS;
  b->bytes = size_of(&b->t[0]) + size_of(&b->t[1]) * (double)touched / EXPERTS + size_of(&b->t[2]);
  b->flops = 2.0 * (double)rows * (double)n * (double)k;
  return RDNA_OK;
}
static rdna_status prepare_experts_up(bench *b, rdna_dtype dtype) { return prepare_experts(b, dtype, 1, false); }
static rdna_status prepare_experts_down(bench *b, rdna_dtype dtype) { return prepare_experts(b, dtype, 1, true); }
static rdna_status prepare_experts_512(bench *b, rdna_dtype dtype) { return prepare_experts(b, dtype, 512, false); }
static rdna_status run_experts(bench *b) {
  bool down = b->t[2].rank == 2;
  rdna_tensor chosen = b->t[3];
  chosen.data = (int32_t *)chosen.data + b->turn++ % TURNS * rdna_tensor_count(&chosen);
  rdna_moe_product product = {RDNA_MOE_PRODUCT_INIT, .shares = down ? &b->t[4] : NULL};
  return rdna_op_moe_linear(b->stream, &product, &b->t[0], &b->t[1], &chosen, &b->t[2]);
}

static rdna_status prepare_attention(bench *b, rdna_dtype dtype, int tokens, int length) {
  enum { HEADS = 32, KV_HEADS = 8, DIM = 128 };
  RDNA_TRY(make(b, 0, RDNA_F32, 3, (int64_t[]){tokens, HEADS, DIM}));
  RDNA_TRY(make(b, 1, dtype, 3, (int64_t[]){length, KV_HEADS, DIM}));
  RDNA_TRY(make(b, 2, dtype, 3, (int64_t[]){length, KV_HEADS, DIM}));
  RDNA_TRY(make(b, 3, RDNA_F32, 3, (int64_t[]){tokens, HEADS, DIM}));
  RDNA_TRY(make_indices(b, 4, tokens, 1)); /* all of the sequence at row 0 */
  RDNA_TRY(make_indices(b, 5, tokens, 0));
  int32_t *positions = (int32_t *)b->stage;
  for (int i = 0; i < tokens; i++) positions[i] = length - tokens + i;
  RDNA_TRY(rdna_copy_to_device(b->stream, b->t[5].data, positions, (size_t)tokens * sizeof *positions));
  RDNA_TRY(rdna_stream_synchronize(b->stream));
  b->attention =
      (rdna_attention){RDNA_ATTENTION_INIT, .scale = 0.088388348f, .max_queries = tokens, .max_length = length};
  b->workspace_bytes = rdna_op_attention_workspace(b->device, &b->attention, tokens, HEADS, KV_HEADS, DIM);
  RDNA_TRY(rdna_memory_alloc_named(b->device, b->workspace_bytes, b->stream, "bench", &b->workspace));
  if (b->workspace) b->buffers[b->buffer_count++] = b->workspace;
  b->bytes = 2 * size_of(&b->t[0]) + 2 * size_of(&b->t[1]);
  b->flops = 4.0 * HEADS * DIM * tokens * (length - 0.5 * (tokens - 1));
  return RDNA_OK;
}
static rdna_status prepare_attention_decode(bench *b, rdna_dtype dtype) { return prepare_attention(b, dtype, 1, 8192); }
static rdna_status prepare_attention_prefill(bench *b, rdna_dtype dtype) {
  return prepare_attention(b, dtype, 512, 512);
}
static rdna_status run_attention(bench *b) {
  return rdna_op_attention(b->stream, &b->attention, &b->t[0], &b->t[1], &b->t[2], &b->t[4], &b->t[5], b->workspace,
                           b->workspace_bytes, &b->t[3]);
}

/* The gated delta rule of a layer of Qwen3-Next: 16 key heads, 32 value heads, each with a state of 128 x 128. */
static rdna_status prepare_delta(bench *b, int sequences, int tokens) {
  enum { K_HEADS = 16, REPEATS = 2, DIM = 128 };
  int64_t rows = (int64_t)sequences * tokens, channels = (2 + REPEATS) * K_HEADS * DIM;
  RDNA_TRY(make(b, 0, RDNA_F32, 2, (int64_t[]){rows, channels})); /* q, k and v of all tokens */
  RDNA_TRY(make(b, 1, RDNA_F32, 3, (int64_t[]){rows, K_HEADS, REPEATS}));
  RDNA_TRY(make(b, 2, RDNA_F32, 2, (int64_t[]){K_HEADS, REPEATS}));
  RDNA_TRY(make(b, 3, RDNA_F32, 5, (int64_t[]){sequences, K_HEADS, REPEATS, DIM, DIM}));
  RDNA_TRY(make(b, 4, RDNA_F32, 4, (int64_t[]){rows, K_HEADS, REPEATS, DIM}));
  RDNA_TRY(make_indices(b, 5, 2 * sequences + 1, 0)); /* starts, then slots */
  int32_t *list = (int32_t *)b->stage;
  for (int i = 0; i <= sequences; i++) list[i] = i * tokens;
  for (int i = 0; i < sequences; i++) list[sequences + 1 + i] = i;
  RDNA_TRY(rdna_copy_to_device(b->stream, b->t[5].data, list, (2 * (size_t)sequences + 1) * sizeof *list));
  RDNA_TRY(rdna_stream_synchronize(b->stream));
  float *rate = (float *)(void *)b->stage; /* negative, so that states do not grow from call to call */
  for (int i = 0; i < K_HEADS * REPEATS; i++) rate[i] = -0.1f;
  RDNA_TRY(rdna_copy_to_device(b->stream, b->t[2].data, rate, K_HEADS * REPEATS * sizeof *rate));
  b->bytes = size_of(&b->t[0]) + 2 * size_of(&b->t[1]) + 2 * size_of(&b->t[3]) + size_of(&b->t[4]);
  b->flops = 7.0 * (double)rows * K_HEADS * REPEATS * DIM * DIM;
  return rdna_stream_synchronize(b->stream);
}
static rdna_status prepare_delta_steps(bench *b, rdna_dtype dtype) { return prepare_delta(b, 64, 1); }
static rdna_status prepare_delta_prompt(bench *b, rdna_dtype dtype) { return prepare_delta(b, 1, 512); }
static rdna_status run_delta(bench *b) {
  const rdna_tensor *state = &b->t[3];
  int64_t rows = b->t[0].shape[0], heads = state->shape[1], dim = state->shape[4], sequences = state->shape[0];
  const int64_t more = sequences + 1;
  rdna_tensor q = rdna_tensor_contiguous(b->t[0].data, RDNA_F32, 3, (int64_t[]){rows, heads, dim}), k;
  rdna_tensor v = rdna_tensor_contiguous(b->t[0].data, RDNA_F32, 4, b->t[4].shape);
  q.stride[0] = v.stride[0] = b->t[0].shape[1];
  k = q;
  k.data = (float *)q.data + heads * dim, v.data = (float *)q.data + 2 * heads * dim;
  rdna_tensor starts = rdna_tensor_contiguous(b->t[5].data, RDNA_I32, 1, &more);
  rdna_tensor slots = rdna_tensor_contiguous((int32_t *)b->t[5].data + more, RDNA_I32, 1, &sequences);
  rdna_sequences order = {RDNA_SEQUENCES_INIT, &starts, &slots, rows / sequences};
  rdna_gated_delta options = {RDNA_GATED_DELTA_INIT, 0.088388348f, 1e-6f, &b->t[2], &b->t[2]};
  return rdna_op_gated_delta(b->stream, &options, &order, &q, &k, &v, &b->t[1], &b->t[1], state, &b->t[4]);
}

/* c = a b, or a b^T of |transposed|: square and contiguous. */
static rdna_status prepare_gemm(bench *b, rdna_dtype dtype, int64_t side, bool transposed) {
  for (int i = 0; i < 3; i++) RDNA_TRY(make(b, i, dtype, 2, (int64_t[]){side, side}));
  if (transposed) b->t[1].stride[0] = 1, b->t[1].stride[1] = side;
  b->bytes = 3 * size_of(&b->t[0]);
  b->flops = 2.0 * (double)side * (double)side * (double)side;
  return RDNA_OK;
}
static rdna_status prepare_gemm_1024(bench *b, rdna_dtype dtype) { return prepare_gemm(b, dtype, 1024, false); }
static rdna_status prepare_gemm_4096(bench *b, rdna_dtype dtype) { return prepare_gemm(b, dtype, 4096, false); }
static rdna_status prepare_gemm_transposed(bench *b, rdna_dtype dtype) { return prepare_gemm(b, dtype, 4096, true); }
static rdna_status prepare_gemm_8192(bench *b, rdna_dtype dtype) { return prepare_gemm(b, dtype, 8192, false); }
static rdna_status run_gemm(bench *b) { return rdna_op_gemm(b->stream, 1, &b->t[0], &b->t[1], 0, NULL, &b->t[2]); }

/* A convolution of ResNet-50 that keeps its channels and size, 64 images, channels-last. */
static rdna_status prepare_conv(bench *b, rdna_dtype dtype, int64_t in, int64_t out, int64_t size, int64_t window) {
  const int64_t n = 64;
  RDNA_TRY(make(b, 0, dtype, 4, (int64_t[]){n, size, size, in}));
  RDNA_TRY(make(b, 1, dtype, 4, (int64_t[]){out, window, window, in}));
  RDNA_TRY(make(b, 2, dtype, 4, (int64_t[]){n, size, size, out}));
  for (int i = 0; i < 3; i++) { /* channels become the second dimension, wherever they lie */
    rdna_tensor *t = &b->t[i], last = *t;
    for (int d = 1; d < 4; d++) {
      t->shape[d] = last.shape[d == 1 ? 3 : d - 1];
      t->stride[d] = last.stride[d == 1 ? 3 : d - 1];
    }
  }
  int64_t pad = window / 2;
  b->conv = (rdna_convolution){RDNA_CONVOLUTION_INIT,   .spatial_dims = 2,  .stride = {1, 1}, .pad_before = {pad, pad},
                               .pad_after = {pad, pad}, .dilation = {1, 1}, .groups = 1};
  b->bytes = size_of(&b->t[0]) + size_of(&b->t[1]) + size_of(&b->t[2]);
  b->flops = 2.0 * (double)(n * size * size) * (double)(in * out * window * window);
  return RDNA_OK;
}
static rdna_status prepare_conv_64(bench *b, rdna_dtype dtype) { return prepare_conv(b, dtype, 64, 64, 56, 3); }
static rdna_status prepare_conv_128(bench *b, rdna_dtype dtype) { return prepare_conv(b, dtype, 128, 128, 28, 3); }
static rdna_status prepare_conv_256(bench *b, rdna_dtype dtype) { return prepare_conv(b, dtype, 256, 256, 14, 3); }
static rdna_status prepare_conv_512(bench *b, rdna_dtype dtype) { return prepare_conv(b, dtype, 512, 512, 7, 3); }
static rdna_status prepare_conv_k1(bench *b, rdna_dtype dtype) { return prepare_conv(b, dtype, 256, 256, 56, 1); }
static rdna_status run_conv(bench *b) { return rdna_op_conv(b->stream, &b->conv, &b->t[0], &b->t[1], NULL, &b->t[2]); }
static rdna_status run_conv_data(bench *b) {
  return rdna_op_conv_backward_data(b->stream, &b->conv, &b->t[2], &b->t[1], NULL, &b->t[0]);
}
static rdna_status run_conv_weight(bench *b) {
  return rdna_op_conv_backward_weight(b->stream, &b->conv, &b->t[2], &b->t[0], &b->t[1]);
}

#define CONV_ROWS(NAME, prepare)                                                                             \
  {"conv " NAME, prepare, run_conv, RDNA_BF16}, {"conv " NAME " data", prepare, run_conv_data, RDNA_BF16}, { \
    "conv " NAME " weight", prepare, run_conv_weight, RDNA_BF16                                              \
  }

/* As a language model trains: 4 sequences, 32 heads of 128, (batch, tokens, heads, d) in memory. */
static rdna_status prepare_sdpa(bench *b, rdna_dtype dtype, int64_t tokens) {
  enum { BATCH = 4, HEADS = 32, DIM = 128 };
  for (int i = 0; i < 4; i++) {
    RDNA_TRY(make(b, i, dtype, 4, (int64_t[]){BATCH, tokens, HEADS, DIM}));
    b->t[i].shape[1] = HEADS, b->t[i].shape[2] = tokens;
    b->t[i].stride[1] = DIM, b->t[i].stride[2] = HEADS * DIM;
    b->bytes += size_of(&b->t[i]);
  }
  RDNA_TRY(make(b, 4, RDNA_F32, 3, (int64_t[]){BATCH, HEADS, tokens}));
  b->sdpa = (rdna_sdpa){RDNA_SDPA_INIT, .scale = 0.088388348f, .causal = true};
  b->flops = 2.0 * BATCH * HEADS * DIM * (double)tokens * (double)tokens;
  return RDNA_OK;
}
static rdna_status prepare_sdpa_1024(bench *b, rdna_dtype dtype) { return prepare_sdpa(b, dtype, 1024); }
static rdna_status prepare_sdpa_4096(bench *b, rdna_dtype dtype) { return prepare_sdpa(b, dtype, 4096); }
static rdna_status prepare_sdpa_16384(bench *b, rdna_dtype dtype) { return prepare_sdpa(b, dtype, 16384); }
static rdna_status run_sdpa(bench *b) {
  return rdna_op_sdpa(b->stream, &b->sdpa, &b->t[0], &b->t[1], &b->t[2], &b->t[3], &b->t[4]);
}

/* q, k, v and their gradients, with out standing in for its own gradient. */
static rdna_status prepare_sdpa_backward(bench *b, rdna_dtype dtype, int64_t tokens) {
  RDNA_TRY(prepare_sdpa(b, dtype, tokens));
  for (int i = 0; i < 3; i++) {
    rdna_tensor kept = b->t[5];
    RDNA_TRY(make(b, 5, dtype, 4, (int64_t[]){b->t[0].shape[0], tokens, b->t[0].shape[1], b->t[0].shape[3]}));
    b->gradients[i] = b->t[i];
    b->gradients[i].data = b->t[5].data;
    b->t[5] = kept;
    b->bytes += size_of(&b->t[i]);
  }
  b->flops *= 2.5;
  return rdna_op_sdpa(b->stream, &b->sdpa, &b->t[0], &b->t[1], &b->t[2], &b->t[3], &b->t[4]);
}
static rdna_status prepare_sdpa_backward_1024(bench *b, rdna_dtype dtype) {
  return prepare_sdpa_backward(b, dtype, 1024);
}
static rdna_status prepare_sdpa_backward_4096(bench *b, rdna_dtype dtype) {
  return prepare_sdpa_backward(b, dtype, 4096);
}
static rdna_status prepare_sdpa_backward_16384(bench *b, rdna_dtype dtype) {
  return prepare_sdpa_backward(b, dtype, 16384);
}
static rdna_status run_sdpa_backward(bench *b) {
  const rdna_tensor *t = b->t, *g = b->gradients;
  return rdna_op_sdpa_backward(b->stream, &b->sdpa, &t[0], &t[1], &t[2], &t[3], &t[4], &t[3], &g[0], &g[1], &g[2],
                               NULL);
}

static const row rows[] = {
    {"copy", prepare_one, run_copy, RDNA_F32}, /* first: the others are measured against it */
    {"add", prepare_pointwise, run_add, RDNA_F32},
    {"add", prepare_pointwise, run_add, RDNA_F16},
    {"mul", prepare_pointwise, run_mul, RDNA_F32},
    {"fused 3 steps", prepare_pointwise, run_fused, RDNA_F32},
    {"fused 3 steps", prepare_pointwise, run_fused, RDNA_F16},
    {"swiglu", prepare_pointwise, run_swiglu, RDNA_F32},
    {"silu", prepare_one, run_silu, RDNA_F32},
    {"silu", prepare_one, run_silu, RDNA_BF16},
    {"cast f32 to", prepare_cast, run_cast, RDNA_F16},
    {"rms_norm", prepare_norm, run_rms_norm, RDNA_F32},
    {"batch_norm", prepare_batch_norm, run_batch_norm, RDNA_F32},
    {"batch_norm", prepare_batch_norm, run_batch_norm, RDNA_F16},
    {"group_norm", prepare_group_norm, run_group_norm, RDNA_F32},
    {"max_pool", prepare_max_pool, run_max_pool, RDNA_F32},
    {"upsample", prepare_upsample, run_upsample, RDNA_F32},
    {"rope", prepare_rope, run_rope, RDNA_F32},
    {"softmax", prepare_one, run_softmax, RDNA_F32},
    {"argmax", prepare_argmax, run_argmax, RDNA_F32},
    {"gather", prepare_gather, run_gather, RDNA_F16},
    {"gather", prepare_gather, run_gather, RDNA_Q8_0},
    {"linear m=1", prepare_vector, run_linear, RDNA_F32},
    {"linear m=1", prepare_vector, run_linear, RDNA_F16},
    {"linear m=1", prepare_vector, run_linear, RDNA_BF16},
#define LINEAR(X, name, NAME, ...) {"linear m=1", prepare_vector, run_linear, RDNA_##NAME},
    RDNA_BLOCK_FORMATS(LINEAR, )
#undef LINEAR
        {"linear m=1 4096x4096", prepare_square, run_linear, RDNA_Q8_0},
    {"linear m=1 4096x4096", prepare_square, run_linear, RDNA_Q4_0},
    {"linear m=1 4096x4096", prepare_square, run_linear, RDNA_Q4_K},
    {"linear m=1 4096x14336", prepare_down, run_linear, RDNA_Q8_0},
    {"linear m=1 4096x14336", prepare_down, run_linear, RDNA_Q4_0},
    {"linear m=1 4096x14336", prepare_down, run_linear, RDNA_Q4_K},
    {"linear m=512", prepare_matrix, run_linear, RDNA_F32},
    {"linear m=512", prepare_matrix, run_linear, RDNA_F16},
    {"linear m=512", prepare_matrix, run_linear, RDNA_BF16},
    {"linear m=512", prepare_matrix, run_linear, RDNA_Q8_0},
    {"linear m=512", prepare_matrix, run_linear, RDNA_Q4_0},
    {"linear m=512", prepare_matrix, run_linear, RDNA_Q4_K},
    {"linear m=512", prepare_matrix, run_linear, RDNA_Q6_K},
    {"experts up m=1", prepare_experts_up, run_experts, RDNA_F16},
    {"experts up m=1", prepare_experts_up, run_experts, RDNA_Q8_0},
    {"experts up m=1", prepare_experts_up, run_experts, RDNA_Q4_K},
    {"experts up m=1", prepare_experts_up, run_experts, RDNA_MXFP4},
    {"experts down m=1", prepare_experts_down, run_experts, RDNA_F16},
    {"experts down m=1", prepare_experts_down, run_experts, RDNA_Q8_0},
    {"experts down m=1", prepare_experts_down, run_experts, RDNA_Q4_K},
    {"experts down m=1", prepare_experts_down, run_experts, RDNA_MXFP4},
    {"experts up m=512", prepare_experts_512, run_experts, RDNA_F16},
    {"experts up m=512", prepare_experts_512, run_experts, RDNA_Q4_K},
    {"gemm 1024", prepare_gemm_1024, run_gemm, RDNA_BF16},
    {"gemm 4096", prepare_gemm_4096, run_gemm, RDNA_BF16},
    {"gemm 4096 b^T", prepare_gemm_transposed, run_gemm, RDNA_BF16},
    {"gemm 4096", prepare_gemm_4096, run_gemm, RDNA_F16},
    {"gemm 8192", prepare_gemm_8192, run_gemm, RDNA_BF16},
    {"gemm 1024", prepare_gemm_1024, run_gemm, RDNA_F32},
    {"gemm 4096", prepare_gemm_4096, run_gemm, RDNA_F32},
    {"gemm 4096 b^T", prepare_gemm_transposed, run_gemm, RDNA_F32},
    {"gemm 8192", prepare_gemm_8192, run_gemm, RDNA_F32},
    CONV_ROWS("64 56x56 k3", prepare_conv_64),
    CONV_ROWS("128 28x28 k3", prepare_conv_128),
    CONV_ROWS("256 14x14 k3", prepare_conv_256),
    CONV_ROWS("512 7x7 k3", prepare_conv_512),
    CONV_ROWS("256 56x56 k1", prepare_conv_k1),
    {"conv 64 56x56 k3", prepare_conv_64, run_conv, RDNA_F32},
    {"attention 1 x 8192", prepare_attention_decode, run_attention, RDNA_F16},
    {"attention 512 x 512", prepare_attention_prefill, run_attention, RDNA_F16},
    {"gated_delta 64 x 1", prepare_delta_steps, run_delta, RDNA_F32},
    {"gated_delta 1 x 512", prepare_delta_prompt, run_delta, RDNA_F32},
    {"sdpa 1024", prepare_sdpa_1024, run_sdpa, RDNA_F16},
    {"sdpa 1024", prepare_sdpa_1024, run_sdpa, RDNA_BF16},
    {"sdpa 4096", prepare_sdpa_4096, run_sdpa, RDNA_F16},
    {"sdpa 4096", prepare_sdpa_4096, run_sdpa, RDNA_BF16},
    {"sdpa 16384", prepare_sdpa_16384, run_sdpa, RDNA_F16},
    {"sdpa_backward 1024", prepare_sdpa_backward_1024, run_sdpa_backward, RDNA_F16},
    {"sdpa_backward 4096", prepare_sdpa_backward_4096, run_sdpa_backward, RDNA_F16},
    {"sdpa_backward 4096", prepare_sdpa_backward_4096, run_sdpa_backward, RDNA_BF16},
    {"sdpa_backward 16384", prepare_sdpa_backward_16384, run_sdpa_backward, RDNA_F16},
};

/* ---- timing and output ---- */

static int by_size(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

/* The median of several samples of as many calls as fill 20 ms. */
static rdna_status time_row(bench *b, double *out_seconds) {
  float samples[SAMPLES], ms = 0;
  int calls = 1;
  for (int i = -2; i < SAMPLES; i++) { /* two to warm up, the second of which sets the number of calls */
    RDNA_TRY(rdna_event_record(b->start, b->stream));
    for (int j = 0; j < calls; j++) RDNA_TRY(b->row->run(b));
    RDNA_TRY(rdna_event_record(b->end, b->stream));
    RDNA_TRY(rdna_event_synchronize(b->end));
    RDNA_TRY(rdna_event_elapsed(b->start, b->end, &ms));
    if (i >= 0) samples[i] = ms / (float)calls;
    if (i == -1 && ms < 20) calls = ms > 0.02f ? (int)(20 / ms) + 1 : 1000;
  }
  qsort(samples, SAMPLES, sizeof *samples, by_size);
  *out_seconds = samples[SAMPLES / 2] * 1e-3;
  return RDNA_OK;
}

static void report(const bench *b, double s, json_t *json) {
  double gb = b->bytes / s / 1e9, gflop = b->flops / s / 1e9;
  if (json) {
    json_array_append_new(
        json, json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:f}", "op", b->row->name, "dtype",
                        rdna_dtype_name(b->row->dtype), "milliseconds", s * 1e3, "bytes", b->bytes, "gb_per_second", gb,
                        "share_of_copy", b->bytes / s / b->copy_rate, "gflop_per_second", gflop));
    return;
  }
  printf("%-24s %-5s %10.3f ms %9.1f GB/s %5.0f %% of copy", b->row->name, rdna_dtype_name(b->row->dtype), s * 1e3, gb,
         100 * b->bytes / s / b->copy_rate);
  if (b->flops > 0) printf(" %10.1f GFLOP/s", gflop);
  printf("\n");
  fflush(stdout);
}

static rdna_status bench_row(bench *b, const row *r, bool shown, json_t *json) {
  b->row = r;
  b->bytes = b->flops = 0;
  b->workspace = NULL;
  double s = 0;
  rdna_status status = r->prepare(b, r->dtype);
  if (status == RDNA_OK) status = time_row(b, &s);
  while (b->buffer_count > 0) {
    rdna_status freed = rdna_memory_free(b->device, b->buffers[--b->buffer_count]);
    if (status == RDNA_OK) status = freed;
  }
  if (status != RDNA_OK) return rdna__annotate(status, "bench of %s %s", r->name, rdna_dtype_name(r->dtype));
  if (r == &rows[0]) b->copy_rate = b->bytes / s;
  if (shown) report(b, s, json);
  return RDNA_OK;
}

rdna_status bench_operators(rdna_device *device, const char *filter, json_t *json) {
  bench b = {.device = device};
  rdna__random_seed(&b.random, 1);
  b.stage = malloc(STAGE_BYTES);
  rdna_status status = b.stage ? RDNA_OK : rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the benchmark's data");
  if (status == RDNA_OK) status = rdna_stream_create(device, 0, &b.stream);
  if (status == RDNA_OK) status = rdna_event_create(device, true, &b.start);
  if (status == RDNA_OK) status = rdna_event_create(device, true, &b.end);
  bool matched = false;
  for (size_t i = 0; status == RDNA_OK && i < sizeof rows / sizeof *rows; i++) {
    bool shown = strstr(rows[i].name, filter) != NULL;
    matched |= shown;
    if (shown || i == 0) status = bench_row(&b, &rows[i], shown, json);
  }
  if (status == RDNA_OK && !matched)
    status = rdna__fail(RDNA_NOT_FOUND, "no operator of the benchmark has '%s' in its name", filter);
  rdna_event_release(b.start);
  rdna_event_release(b.end);
  rdna_stream_release(b.stream);
  free(b.stage);
  return status;
}
