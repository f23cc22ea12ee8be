/* Operators give the same bits from run to run, and on the host whatever the number of threads: with RDNA_DETERMINISTIC
 * set, processes with one, two and five threads run each operator twice on sizes that are shared among threads. On an
 * emulated card the processes shuffle the order of work-groups and waves instead, each in another way. Operators are
 * those that sum in parts, whose indices collide, or whose kernels have atomics. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/status.h"
#include "math/common/test/device.h"
#include "rdna/op.h"
#include "rdna/tune.h"

enum { ROWS = 300, COLUMNS = 1030, BUFFERS = 8 };
static const size_t buffer_bytes = (size_t)ROWS * COLUMNS * 4;
static float *buffers[BUFFERS]; /* 0 to 3 hold inputs, 4 to 7 results */

/* Many more indices than there are places for them. */
enum { PLACES = 37, INDICES = 20000 };
static int64_t *indices;

static rdna_tensor tensor(int buffer, rdna_dtype dtype, int rank, int64_t a, int64_t b, int64_t c, int64_t d) {
  return rdna_tensor_contiguous(buffers[buffer], dtype, rank, (int64_t[]){a, b, c, d});
}
#define MATRIX(buffer) tensor(buffer, RDNA_F32, 2, ROWS, COLUMNS, 0, 0)
#define VECTOR(buffer, count) tensor(buffer, RDNA_F32, 1, count, 0, 0, 0)
#define IMAGES(buffer) tensor(buffer, RDNA_F32, 4, 10, 30, 30, 30)

#define OPERATOR(name) static rdna_status run_##name(void)
OPERATOR(gemm) {
  rdna_tensor a = tensor(0, RDNA_F32, 2, 250, 700, 0, 0), b = tensor(1, RDNA_F32, 2, 700, 300, 0, 0);
  rdna_tensor bias = VECTOR(2, 300), c = tensor(4, RDNA_F32, 2, 250, 300, 0, 0);
  return rdna_op_gemm(stream, 0.5f, &a, &b, 0, &bias, &c);
}
OPERATOR(gemm_f16) {
  rdna_tensor a = tensor(0, RDNA_F16, 2, 250, 704, 0, 0), b = tensor(1, RDNA_F16, 2, 704, 304, 0, 0);
  rdna_tensor c = tensor(4, RDNA_F32, 2, 250, 304, 0, 0);
  return rdna_op_gemm(stream, 1, &a, &b, 0, NULL, &c);
}
OPERATOR(linear) {
  rdna_tensor x = tensor(0, RDNA_F32, 2, 1, 1024, 0, 0), w = tensor(1, RDNA_F32, 2, 290, 1024, 0, 0);
  rdna_tensor out = tensor(4, RDNA_F32, 2, 1, 290, 0, 0);
  return rdna_op_linear(stream, &x, &w, NULL, &out);
}
static const rdna_convolution conv = {RDNA_CONVOLUTION_INIT, .spatial_dims = 2,   .stride = {1, 1}, .dilation = {1, 1},
                                      .pad_before = {1, 1},  .pad_after = {1, 1}, .groups = 1};
OPERATOR(conv) {
  rdna_tensor x = IMAGES(0), w = tensor(1, RDNA_F32, 4, 30, 30, 3, 3), y = IMAGES(4);
  return rdna_op_conv(stream, &conv, &x, &w, NULL, &y);
}
OPERATOR(conv_backward_data) {
  rdna_tensor y = IMAGES(0), w = tensor(1, RDNA_F32, 4, 30, 30, 3, 3), x = IMAGES(4);
  return rdna_op_conv_backward_data(stream, &conv, &y, &w, NULL, &x);
}
OPERATOR(conv_backward_weight) {
  rdna_tensor y = IMAGES(0), x = IMAGES(1), w = tensor(4, RDNA_F32, 4, 30, 30, 3, 3);
  return rdna_op_conv_backward_weight(stream, &conv, &y, &x, &w);
}
OPERATOR(softmax) {
  rdna_tensor x = MATRIX(0), out = MATRIX(4);
  return rdna_op_softmax(stream, &x, 1, 1, &out);
}
OPERATOR(softmax_backward) {
  rdna_tensor dout = MATRIX(0), out = MATRIX(1), dx = MATRIX(4);
  return rdna_op_softmax_backward(stream, &dout, &out, 1, 1, &dx);
}
OPERATOR(rms_norm_backward) {
  rdna_tensor dout = MATRIX(0), x = MATRIX(1), w = VECTOR(2, COLUMNS), dx = MATRIX(4), dw = VECTOR(5, COLUMNS);
  return rdna_op_rms_norm_backward(stream, &dout, &x, &w, 1e-5, &dx, &dw);
}
OPERATOR(layer_norm) {
  rdna_tensor x = MATRIX(0), w = VECTOR(1, COLUMNS), b = VECTOR(2, COLUMNS), out = MATRIX(4);
  return rdna_op_layer_norm(stream, &x, &w, &b, 1e-5, &out, NULL, NULL);
}
OPERATOR(layer_norm_backward) {
  rdna_tensor dout = MATRIX(0), x = MATRIX(1), w = VECTOR(2, COLUMNS), dx = MATRIX(4), dw = VECTOR(5, COLUMNS);
  rdna_tensor db = VECTOR(6, COLUMNS);
  return rdna_op_layer_norm_backward(stream, &dout, &x, &w, 1e-5, NULL, NULL, &dx, &dw, &db);
}
OPERATOR(batch_norm) {
  rdna_tensor x = IMAGES(0), w = VECTOR(1, 30), b = VECTOR(2, 30), out = IMAGES(4), mean = VECTOR(5, 30);
  rdna_tensor inverse = VECTOR(6, 30);
  return rdna_op_batch_norm(stream, &x, &w, &b, NULL, NULL, 0.1, 1e-5, &out, &mean, &inverse);
}
OPERATOR(batch_norm_backward) {
  rdna_tensor dout = IMAGES(0), x = IMAGES(1), w = VECTOR(2, 30), mean = VECTOR(2, 30), inverse = VECTOR(3, 30);
  rdna_tensor dx = IMAGES(4), dw = VECTOR(5, 30), db = VECTOR(6, 30);
  return rdna_op_batch_norm_backward(stream, &dout, &x, &w, &mean, &inverse, &dx, &dw, &db);
}
OPERATOR(sum_of_rows) {
  rdna_tensor x = tensor(0, RDNA_F32, 2, 3, 100000, 0, 0), out = VECTOR(4, 3);
  return rdna_op_reduce(stream, RDNA_REDUCTION_SUM, &x, 2, 0, &out);
}
OPERATOR(mean_of_rows) {
  rdna_tensor x = MATRIX(0), out = VECTOR(4, ROWS);
  return rdna_op_reduce(stream, RDNA_REDUCTION_MEAN, &x, 2, 0, &out);
}
OPERATOR(cumsum) {
  rdna_tensor x = tensor(0, RDNA_F32, 1, 300000, 0, 0, 0), out = tensor(4, RDNA_F32, 1, 300000, 0, 0, 0);
  return rdna_op_cumsum(stream, &x, 0, &out);
}
OPERATOR(loss) {
  rdna_tensor x = MATRIX(0), target = MATRIX(1), out = tensor(4, RDNA_F32, 0, 0, 0, 0, 0);
  return rdna_op_loss(stream, RDNA_LOSS_MSE, 1, RDNA_LOSS_REDUCTION_MEAN, &x, &target, NULL, &out);
}
OPERATOR(grad_norm) {
  rdna_tensor x = MATRIX(0), y = MATRIX(1), norm = tensor(4, RDNA_F32, 0, 0, 0, 0, 0);
  rdna_tensor factor = tensor(5, RDNA_F32, 0, 0, 0, 0, 0);
  const rdna_tensor *grads[] = {&x, &y};
  return rdna_op_grad_norm(stream, grads, 2, 1, &norm, &factor);
}
OPERATOR(gemm_deep) { /* a sum along k for few results */
  rdna_tensor a = tensor(0, RDNA_F32, 2, 20, 8192, 0, 0), b = tensor(1, RDNA_F32, 2, 8192, 24, 0, 0);
  rdna_tensor c = tensor(4, RDNA_F32, 2, 20, 24, 0, 0);
  return rdna_op_gemm(stream, 1, &a, &b, 0, NULL, &c);
}
static rdna_status convolve_back(int64_t groups, int64_t stride) {
  rdna_convolution strided = conv;
  strided.groups = groups;
  strided.stride[0] = strided.stride[1] = stride;
  int64_t size = (30 + 2 - 3) / stride + 1;
  rdna_tensor y = tensor(0, RDNA_F32, 4, 10, 30, size, size), x = IMAGES(1), w = IMAGES(5), dx = IMAGES(4);
  w = tensor(5, RDNA_F32, 4, 30, 30 / groups, 3, 3);
  RDNA_TRY(rdna_op_conv_backward_weight(stream, &strided, &y, &x, &w));
  return rdna_op_conv_backward_data(stream, &strided, &y, &w, NULL, &dx);
}
OPERATOR(conv_backward_depthwise) { return convolve_back(30, 1); }
OPERATOR(conv_backward_strided) { return convolve_back(3, 2); }
OPERATOR(sdpa_backward) {
  enum { B = 2, H = 4, KV = 2, Q = 70, K = 90, D = 32 };
  rdna_tensor q = tensor(0, RDNA_F32, 4, B, H, Q, D), k = tensor(1, RDNA_F32, 4, B, KV, K, D), mask;
  rdna_tensor v = tensor(2, RDNA_F32, 4, B, KV, K, D), out = tensor(4, RDNA_F32, 4, B, H, Q, D);
  rdna_tensor lse = tensor(5, RDNA_F32, 3, B, H, Q, 0), dout = tensor(3, RDNA_F32, 4, B, H, Q, D);
  rdna_tensor dq = tensor(6, RDNA_F32, 4, B, H, Q, D), dk = tensor(7, RDNA_F32, 4, B, KV, K, D), dv = dk, dmask;
  dv.data = (float *)dk.data + B * KV * K * D;
  mask = tensor(3, RDNA_F32, 4, 1, 1, Q, K);
  dmask = tensor(7, RDNA_F32, 4, 1, 1, Q, K);
  dmask.data = (float *)dv.data + B * KV * K * D;
  const rdna_sdpa options = {RDNA_SDPA_INIT, .scale = 0.2f, .dropout = 0.1f, .seed = 5, .mask = &mask};
  RDNA_TRY(rdna_op_sdpa(stream, &options, &q, &k, &v, &out, &lse));
  return rdna_op_sdpa_backward(stream, &options, &q, &k, &v, &out, &lse, &dout, &dq, &dk, &dv, &dmask);
}
OPERATOR(attention) { /* one query over keys that are shared among groups */
  enum { LENGTH = 2000, HEADS = 2, D = 64 };
  rdna_tensor q = tensor(0, RDNA_F32, 3, 1, HEADS, D, 0), k = tensor(1, RDNA_F32, 3, LENGTH, HEADS, D, 0);
  rdna_tensor v = tensor(2, RDNA_F32, 3, LENGTH, HEADS, D, 0), out = tensor(4, RDNA_F32, 3, 1, HEADS, D, 0);
  int32_t place[] = {0, LENGTH - 1};
  void *places = test_upload(place, sizeof place), *workspace = NULL;
  rdna_tensor base = rdna_tensor_contiguous(places, RDNA_I32, 1, (int64_t[]){1}), position = base;
  position.data = (int32_t *)places + 1;
  const rdna_attention options = {RDNA_ATTENTION_INIT, .scale = 0.1f, .max_queries = 1, .max_length = LENGTH};
  size_t size = rdna_op_attention_workspace(device, &options, 1, HEADS, HEADS, D);
  rdna_status status = size ? rdna_memory_alloc(device, size, stream, &workspace) : RDNA_OK;
  if (status == RDNA_OK)
    status = rdna_op_attention(stream, &options, &q, &k, &v, &base, &position, workspace, size, &out);
  test_release(workspace);
  test_release(places);
  return status;
}
OPERATOR(group_norm_backward) {
  rdna_tensor dout = IMAGES(0), x = IMAGES(1), w = VECTOR(2, 30), mean = tensor(2, RDNA_F32, 2, 10, 5, 0, 0);
  rdna_tensor inverse = tensor(3, RDNA_F32, 2, 10, 5, 0, 0), dx = IMAGES(4), dw = VECTOR(5, 30), db = VECTOR(6, 30);
  return rdna_op_group_norm_backward(stream, &dout, &x, 5, &w, &mean, &inverse, &dx, &dw, &db);
}
static rdna_status reduce(rdna_reduction reduction, uint32_t dims) {
  rdna_tensor x = tensor(0, RDNA_F32, 3, 60, 70, 73, 0), out = tensor(4, RDNA_F32, 0, 0, 0, 0, 0);
  if (dims != 7) out = VECTOR(4, dims == 3 ? 73 : 60);
  return rdna_op_reduce(stream, reduction, &x, dims, 1, &out);
}
OPERATOR(sum_of_all) { return reduce(RDNA_REDUCTION_SUM, 7); }
OPERATOR(sum_of_columns) { return reduce(RDNA_REDUCTION_SUM, 3); }
OPERATOR(variance) { return reduce(RDNA_REDUCTION_VAR, 6); }
OPERATOR(product_of_all) { return reduce(RDNA_REDUCTION_PROD, 7); }
OPERATOR(argmax_of_equals) {
  rdna_tensor x = rdna_tensor_contiguous(indices, RDNA_I64, 1, (int64_t[]){INDICES});
  rdna_tensor out = tensor(4, RDNA_I64, 0, 0, 0, 0, 0);
  return rdna_op_reduce(stream, RDNA_REDUCTION_ARGMAX, &x, 1, 0, &out);
}
OPERATOR(cross_entropy) {
  const rdna_cross_entropy options = {RDNA_CROSS_ENTROPY_INIT, .reduction = RDNA_LOSS_REDUCTION_MEAN,
                                      .ignore_index = -100, .label_smoothing = 0.1f};
  rdna_tensor x = tensor(0, RDNA_F32, 2, 3000, PLACES, 0, 0), out = tensor(4, RDNA_F32, 0, 0, 0, 0, 0);
  rdna_tensor target = rdna_tensor_contiguous(indices, RDNA_I64, 1, (int64_t[]){3000}), weight = VECTOR(1, PLACES);
  rdna_tensor lse = VECTOR(5, 3000), total = VECTOR(6, 1), dx = tensor(7, RDNA_F32, 2, 3000, PLACES, 0, 0);
  RDNA_TRY(rdna_op_cross_entropy(stream, &options, &x, &target, &weight, &out, &lse, &total));
  return rdna_op_cross_entropy_backward(stream, &options, &out, &x, &target, &weight, &lse, &total, &dx);
}
OPERATOR(cross_entropy_of_long_rows) {
  const rdna_cross_entropy options = {RDNA_CROSS_ENTROPY_INIT, .reduction = RDNA_LOSS_REDUCTION_SUM,
                                      .ignore_index = -100};
  rdna_tensor x = tensor(0, RDNA_F32, 2, 3, 100000, 0, 0), out = tensor(4, RDNA_F32, 0, 0, 0, 0, 0);
  rdna_tensor target = rdna_tensor_contiguous(indices, RDNA_I64, 1, (int64_t[]){3}), lse = VECTOR(5, 3);
  rdna_tensor total = VECTOR(6, 1);
  return rdna_op_cross_entropy(stream, &options, &x, &target, NULL, &out, &lse, &total);
}
/* Each window shares values with the next ones. */
static const rdna_pooling pool = {RDNA_POOLING_INIT, .spatial_dims = 2, {4, 5}, {2, 2}, {1, 2}, {1, 2}, {1, 1}};
OPERATOR(max_pool_backward) {
  rdna_tensor x = IMAGES(0), out = tensor(4, RDNA_F32, 4, 10, 30, 15, 15),
              dout = tensor(1, RDNA_F32, 4, 10, 30, 15, 15);
  rdna_tensor where = tensor(5, RDNA_I64, 4, 10, 30, 15, 15), dx = IMAGES(6);
  RDNA_TRY(rdna_op_max_pool(stream, &pool, &x, &out, &where));
  return rdna_op_max_pool_backward(stream, &pool, &dout, &where, &dx);
}
OPERATOR(average_pool_backward) {
  rdna_tensor dout = tensor(0, RDNA_F32, 4, 10, 30, 15, 15), dx = IMAGES(4);
  return rdna_op_average_pool_backward(stream, &pool, &dout, &dx);
}
OPERATOR(adaptive_pools_backward) {
  rdna_tensor x = IMAGES(0), out = tensor(4, RDNA_F32, 4, 10, 30, 13, 17),
              dout = tensor(1, RDNA_F32, 4, 10, 30, 13, 17);
  rdna_tensor where = tensor(5, RDNA_I64, 4, 10, 30, 13, 17), dx = IMAGES(6), average = IMAGES(7);
  RDNA_TRY(rdna_op_adaptive_max_pool(stream, &x, &out, &where));
  RDNA_TRY(rdna_op_adaptive_max_pool_backward(stream, &dout, &where, &dx));
  return rdna_op_adaptive_average_pool_backward(stream, &dout, &average);
}
static rdna_status upsample_back(rdna_upsample_mode mode) {
  const rdna_upsample how = {RDNA_UPSAMPLE_INIT, .mode = mode};
  rdna_tensor dout = IMAGES(0), dx = tensor(4, RDNA_F32, 4, 10, 30, 11, 13);
  return rdna_op_upsample_backward(stream, &how, &dout, &dx);
}
OPERATOR(upsample_nearest_backward) { return upsample_back(RDNA_UPSAMPLE_MODE_NEAREST); }
OPERATOR(upsample_linear_backward) { return upsample_back(RDNA_UPSAMPLE_MODE_LINEAR); }
OPERATOR(upsample_cubic_backward) { return upsample_back(RDNA_UPSAMPLE_MODE_CUBIC); }

/* |rows| values go to each of 70 columns of PLACES rows; a row's index is its own, or each value's. */
static rdna_status scatter(rdna_dtype dtype, rdna_scatter mode, bool by_rows) {
  enum { COUNT = 280, WIDTH = 70 };
  rdna_tensor dst = tensor(4, dtype, 2, PLACES, WIDTH, 0, 0), src = tensor(0, dtype, 2, COUNT, WIDTH, 0, 0);
  rdna_tensor to = rdna_tensor_contiguous(indices, RDNA_I64, 2, (int64_t[]){COUNT, WIDTH});
  if (by_rows) to.stride[0] = 1, to.stride[1] = 0;
  return rdna_op_scatter(stream, &dst, 0, &to, &src, mode, true, NULL);
}
OPERATOR(scatter_assign) { return scatter(RDNA_F32, RDNA_SCATTER_ASSIGN, false); }
OPERATOR(scatter_last) { return scatter(RDNA_F32, RDNA_SCATTER_LAST, true); }
OPERATOR(scatter_add) { return scatter(RDNA_F32, RDNA_SCATTER_ADD, false); }
OPERATOR(scatter_add_f16) { return scatter(RDNA_F16, RDNA_SCATTER_ADD, false); }
OPERATOR(scatter_add_rows) { return scatter(RDNA_F32, RDNA_SCATTER_ADD, true); }
OPERATOR(scatter_prod) { return scatter(RDNA_F32, RDNA_SCATTER_PROD, false); }
OPERATOR(scatter_mean) { return scatter(RDNA_F32, RDNA_SCATTER_MEAN, true); }
static rdna_status copy_rows(rdna_scatter mode) {
  enum { COUNT = 900, WIDTH = 50 };
  rdna_tensor dst = tensor(4, RDNA_F32, 2, PLACES, WIDTH, 0, 0), src = tensor(0, RDNA_F32, 2, COUNT, WIDTH, 0, 0);
  rdna_tensor to = rdna_tensor_contiguous(indices, RDNA_I64, 1, (int64_t[]){COUNT});
  return rdna_op_index_copy(stream, &dst, 0, &to, &src, mode, true, NULL);
}
OPERATOR(index_copy) { return copy_rows(RDNA_SCATTER_ASSIGN); }
OPERATOR(index_add) { return copy_rows(RDNA_SCATTER_ADD); }
static rdna_status put(rdna_scatter mode) {
  enum { COUNT = 9000 };
  rdna_tensor dst = tensor(4, RDNA_F32, 2, PLACES, PLACES, 0, 0), values = VECTOR(0, COUNT);
  rdna_tensor rows = rdna_tensor_contiguous(indices, RDNA_I64, 1, (int64_t[]){COUNT}), columns = rows;
  columns.data = indices + COUNT;
  return rdna_op_index_put(stream, &dst, (const rdna_tensor *[]){&rows, &columns}, &values, mode, NULL);
}
OPERATOR(index_put) { return put(RDNA_SCATTER_ASSIGN); }
OPERATOR(index_put_accumulate) { return put(RDNA_SCATTER_ADD); }
static rdna_status embed_back(rdna_dtype dtype, bool by_frequency) {
  rdna_tensor dout = tensor(0, dtype, 2, 3000, 40, 0, 0), dtable = tensor(4, dtype, 2, PLACES, 40, 0, 0);
  rdna_tensor ids = rdna_tensor_contiguous(indices, RDNA_I64, 1, (int64_t[]){3000});
  return rdna_op_embedding_backward(stream, &dout, &ids, 3, by_frequency, &dtable, NULL);
}
OPERATOR(embedding_backward) { return embed_back(RDNA_F32, false); }
OPERATOR(embedding_backward_f16) { return embed_back(RDNA_F16, true); }

/* Of many equal values, which ones and in what order. */
static rdna_tensor equals(int64_t rows) {
  return rdna_tensor_contiguous(indices, RDNA_I64, 2, (int64_t[]){rows, INDICES / rows});
}
OPERATOR(sort_of_equals) {
  rdna_tensor x = equals(1), values = tensor(4, RDNA_I64, 2, 1, INDICES, 0, 0), where = values;
  where.data = buffers[5];
  return rdna_op_sort(stream, &x, 1, false, &values, &where);
}
OPERATOR(topk_of_equals) {
  rdna_tensor x = equals(2), values = tensor(4, RDNA_I64, 2, 2, 700, 0, 0), where = values;
  where.data = buffers[5];
  return rdna_op_topk(stream, &x, 1, true, &values, &where);
}
OPERATOR(kth_of_equals) {
  rdna_tensor x = equals(2), values = tensor(4, RDNA_I64, 2, 2, 1, 0, 0), where = values;
  where.data = buffers[5];
  return rdna_op_kth_value(stream, &x, 4321, 1, &values, &where);
}
OPERATOR(random_permutation) {
  rdna_tensor out = tensor(4, RDNA_I64, 1, 30000, 0, 0, 0);
  return rdna_op_random_permutation(stream, 3, 9, &out);
}
OPERATOR(nonzero) {
  rdna_tensor x = equals(100), out = tensor(4, RDNA_I64, 2, INDICES, 2, 0, 0);
  return rdna_op_nonzero(stream, &x, &out);
}
OPERATOR(masked_select) {
  rdna_tensor x = VECTOR(0, INDICES * 8), out = VECTOR(4, INDICES * 8);
  rdna_tensor mask = rdna_tensor_contiguous(indices, RDNA_U8, 1, (int64_t[]){INDICES * 8});
  return rdna_op_masked_select(stream, &x, &mask, &out);
}
OPERATOR(cummax_of_equals) {
  rdna_tensor x = equals(1), values = tensor(4, RDNA_I64, 2, 1, INDICES, 0, 0), where = values;
  where.data = buffers[5];
  return rdna_op_cummax_indices(stream, &x, 1, &values, &where);
}
OPERATOR(logcumsumexp) {
  rdna_tensor x = VECTOR(0, 100000), out = VECTOR(4, 100000);
  return rdna_op_logcumsumexp(stream, &x, 0, &out);
}
OPERATOR(random_gamma) {
  rdna_tensor shape = VECTOR(0, 5000), out = VECTOR(4, 5000);
  return rdna_op_random_gamma(stream, 7, 3, &shape, &out);
}
OPERATOR(random_poisson) {
  rdna_tensor rate = VECTOR(0, 5000), out = VECTOR(4, 5000);
  return rdna_op_random_poisson(stream, 7, 3, &rate, &out);
}
OPERATOR(random_dirichlet) {
  rdna_tensor shape = tensor(0, RDNA_F32, 2, 7, 300, 0, 0), out = tensor(4, RDNA_F32, 2, 7, 300, 0, 0);
  return rdna_op_random_dirichlet(stream, 7, 3, &shape, &out);
}
OPERATOR(random_normal) {
  rdna_tensor out = MATRIX(4);
  return rdna_op_random_normal(stream, 7, 3, 0, 1, &out);
}
#undef OPERATOR

#define ROW(name) {#name, run_##name, false}
#define ROW_OF_UNITS(name) {#name, run_##name, true}
static const struct {
  const char *name;
  rdna_status (*run)(void);
  bool of_units; /* has as many parts as keep the device's units busy, which on the host are the threads */
} operators[] = {
    ROW(gemm),
    ROW(gemm_f16),
    ROW(linear),
    ROW(conv),
    ROW(conv_backward_data),
    ROW(conv_backward_weight),
    ROW(softmax),
    ROW(softmax_backward),
    ROW(rms_norm_backward),
    ROW(layer_norm),
    ROW(layer_norm_backward),
    ROW(batch_norm),
    ROW(batch_norm_backward),
    ROW(sum_of_rows),
    ROW(mean_of_rows),
    ROW(cumsum),
    ROW(loss),
    ROW(grad_norm),
    ROW(gemm_deep),
    ROW(conv_backward_depthwise),
    ROW(conv_backward_strided),
    ROW(sdpa_backward),
    ROW_OF_UNITS(attention),
    ROW(group_norm_backward),
    ROW(sum_of_all),
    ROW(sum_of_columns),
    ROW(variance),
    ROW(product_of_all),
    ROW(argmax_of_equals),
    ROW(cross_entropy),
    ROW(cross_entropy_of_long_rows),
    ROW(max_pool_backward),
    ROW(average_pool_backward),
    ROW(adaptive_pools_backward),
    ROW(upsample_nearest_backward),
    ROW(upsample_linear_backward),
    ROW(upsample_cubic_backward),
    ROW(scatter_assign),
    ROW(scatter_last),
    ROW(scatter_add),
    ROW(scatter_add_f16),
    ROW(scatter_add_rows),
    ROW(scatter_prod),
    ROW(scatter_mean),
    ROW(index_copy),
    ROW(index_add),
    ROW(index_put),
    ROW(index_put_accumulate),
    ROW(embedding_backward),
    ROW(embedding_backward_f16),
    ROW(sort_of_equals),
    ROW(topk_of_equals),
    ROW(kth_of_equals),
    ROW(random_permutation),
    ROW(nonzero),
    ROW(masked_select),
    ROW(cummax_of_equals),
    ROW(logcumsumexp),
    ROW(random_normal),
    ROW(random_gamma),
    ROW(random_poisson),
    ROW(random_dirichlet),
};
#undef ROW
#undef ROW_OF_UNITS
enum { OPERATORS = sizeof operators / sizeof *operators };

static uint64_t hash_results(void) {
  static char bytes[sizeof(float) * ROWS * COLUMNS];
  uint64_t hash = 0;
  for (int i = 4; i < BUFFERS; i++) {
    test_download(bytes, buffers[i], buffer_bytes);
    hash = XXH3_64bits_withSeed(bytes, sizeof bytes, hash);
  }
  return hash;
}

/* Values between 0.5 and 1.5, also when read as f16. */
static void fill(uint64_t *state, float *values, size_t count) {
  for (size_t i = 0; i < count; i++) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    uint32_t bits = 0x3f003800u | ((uint32_t)(*state >> 33) & 0x00ff07ffu);
    memcpy(&values[i], &bits, sizeof bits);
  }
}

static bool emulated(void) { return getenv("RDNA_EMULATE") && getenv("RDNA_TEST_DEVICE"); }

static uint64_t hash_of(rdna_status (*run)(void), const char *name, int *failed) {
  for (int b = 4; b < BUFFERS; b++) assert_ok(rdna_fill_bytes(stream, buffers[b], 0x3c, buffer_bytes));
  if (run() != RDNA_OK) {
    printf("%s: %s\n", name, rdna_last_error());
    ++*failed;
  }
  return hash_results();
}

/* A child's: hashes to |to|, one an operator, and last that of one whose result may depend on the order; returns how
 * many operators failed. */
static int run_all(const char *variant, int to) {
  setenv(emulated() ? "RDNA_EMULATE_SHUFFLE" : "RDNA_THREADS", variant, 1);
  setenv("RDNA_EMULATE_CHECK", "0", 1); /* it would tell of the race that the last hash is for */
  setenv("RDNA_DETERMINISTIC", "1", 1);
  int failed = 0;
  uint64_t state = 5, hashes[OPERATORS + 1];
  float *values = malloc(buffer_bytes);
  static int64_t places[INDICES];
  open_device(NULL);
  assert_true(rdna_deterministic_get());
  for (int i = 0; i < BUFFERS; i++) {
    fill(&state, values, buffer_bytes / 4);
    buffers[i] = test_upload(values, buffer_bytes);
  }
  for (int i = 0; i < INDICES; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    places[i] = (int64_t)((state >> 33) % PLACES);
  }
  indices = test_upload(places, sizeof places);
  for (int i = 0; i < OPERATORS; i++) {
    hashes[i] = hash_of(operators[i].run, operators[i].name, &failed);
    if (!emulated() && hash_of(operators[i].run, operators[i].name, &failed) != hashes[i]) {
      printf("%s with %s threads: other bits in the second run\n", operators[i].name, variant);
      failed++;
    }
  }
  rdna_deterministic_set(false);
  hashes[OPERATORS] = hash_of(run_scatter_assign, "scatter_assign", &failed);
  for (int i = 0; i < BUFFERS; i++) test_release(buffers[i]);
  test_release(indices);
  close_device(NULL);
  free(values);
  return write(to, hashes, sizeof hashes) != (ssize_t)sizeof hashes || failed;
}

static void the_same_bits(void **state) {
  static const char *const variants[] = {"1", "2", "5"}; /* threads, or seeds */
  uint64_t first[OPERATORS + 1], hashes[OPERATORS + 1];
  int different = 0;
  bool order_shows = false;
  for (int i = 0; i < 3; i++) {
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) exit(run_all(variants[i], ends[1]) != 0);
    close(ends[1]); /* or a child that died would be waited for */
    assert_int_equal(read(ends[0], hashes, sizeof hashes), sizeof hashes);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(ends[0]);
    if (i == 0) memcpy(first, hashes, sizeof first);
    order_shows |= hashes[OPERATORS] != first[OPERATORS];
    for (int k = 0; k < OPERATORS; k++) {
      if (hashes[k] == first[k] || (operators[k].of_units && !emulated())) continue;
      printf("%s: other bits with %s %s than with %s\n", operators[k].name, variants[i],
             emulated() ? "as the seed" : "threads", variants[0]);
      different++;
    }
  }
  assert_int_equal(different, 0);
  for (int k = 1; k < OPERATORS; k++) assert_int_not_equal(first[k], first[k - 1]); /* they did something */
  if (emulated()) assert_true(order_shows);                                         /* the shuffle would have told */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_bits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
