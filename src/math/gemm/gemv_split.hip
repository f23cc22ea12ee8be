/* A vector times the transpose of B. |shares| neighbouring sets of 32 lanes share 4 rows of B, each a part of k; a lane
 * loads 16 bytes of each row in two places a step, 128 bytes in flight. B is read once: 2 FLOPs a value, and about 2.5
 * instructions.
 *
 *     shares 2     row r    | set 0 | set 1 | set 0 | set 1 | ...     32 chunks of 16 bytes each
 *
 * With a gate two of the rows are the gate's and two those that it multiplies. */
#include "math/gemm/gemv_split_kernels.h"

#include "math/gemm/gemm_tile.h"
#include "math/gemm/gemv_steps.h"

template <typename type>
RDNA_DEVICE void gemv_split(const struct gemv_split_args &split) {
  typedef dense_weight<type> weight;
  constexpr int rows = GEMV_SPLIT_ROWS, sets = GEMV_SPLIT_THREADS / 32, at_once = 2, length = weight::length;
  RDNA_SHARED static float sums[sets][rows], squares[sets];
  const struct gemm_args &args = split.of.product;
  const float *norm = split.of.steps.norm;
  bool gated = split.of.steps.gated;
  int lane = (int)thread_id() % 32, set = (int)thread_id() / 32, shares = split.shares, share = set % shares;
  int made = gated ? rows / 2 : rows; /* of C */
  int first = ((int)group_id_x() * (sets / shares) + set / shares) * made;
  const char *row[rows];
  const float *x = (const float *)args.a;
  float sum[rows] = {}, square = 0;
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    int j = first + (gated ? r % (rows / 2) : r);
    j = (j < args.n ? j : args.n - 1) + (gated && r >= rows / 2 ? args.n : 0);
    row[r] = (const char *)args.b + j * weight::row_bytes(args.ldb);
  }

  int chunks = weight::chunks(args.k), step = shares * 32;
#pragma unroll 1
  for (int at = share * 32 + lane; at < chunks; at += step * at_once) {
    bool more = at + step < chunks;
    int chunk[at_once] = {at, more ? at + step : at};
    typename weight::raw raw[at_once][rows];
#pragma unroll
    for (int u = 0; u < at_once; ++u)
#pragma unroll
      for (int r = 0; r < rows; ++r) raw[u][r] = weight::load(row[r], chunk[u]);
#pragma unroll
    for (int u = 0; u < at_once; ++u) {
      if (u > 0 && !more) break;
      float v[length];
      load_run<f32, length>(x + chunk[u] * length, v);
      if (norm) {
        float w[length];
        load_run<f32, length>(norm + chunk[u] * length, w);
#pragma unroll
        for (int i = 0; i < length; ++i) square = fma_f32(v[i], v[i], square), v[i] *= w[i];
      }
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        float w[length];
        weight::decode(raw[u][r], 0, w);
#pragma unroll
        for (int i = 0; i < length; ++i) sum[r] = fma_f32(w[i], v[i], sum[r]);
      }
    }
  }
  int rest = chunks * length + lane;
  if (share == 0 && rest < args.k) {
    float v = global(x)[rest];
    if (norm) square = fma_f32(v, v, square), v *= global(norm)[rest];
#pragma unroll
    for (int r = 0; r < rows; ++r) sum[r] = fma_f32(weight::tail(row[r], rest), v, sum[r]);
  }

#pragma unroll
  for (int r = 0; r < rows; ++r) {
#pragma unroll
    for (uint32_t mask = 1; mask < 32; mask *= 2) sum[r] += wave_shuffle_xor_f32(sum[r], mask);
    if (lane == r) sums[set][r] = sum[r];
  }
  if (norm) {
#pragma unroll
    for (uint32_t mask = 1; mask < 32; mask *= 2) square += wave_shuffle_xor_f32(square, mask);
    if (lane == 0) squares[set] = square;
  }
  group_barrier();
  int j = first + lane;
  if (share != 0 || lane >= made || j >= args.n) return;
  float all = 0, up = 0;
  for (int s = 0; s < shares; ++s) all += sums[set + s][lane];
  for (int s = 0; gated && s < shares; ++s) up += sums[set + s][lane + rows / 2];
  if (norm) {
    float total = 0;
    for (int s = 0; s < shares; ++s) total += squares[set + s];
    float scale = gemv_norm_scale(split.of.steps, split.of.product.k, total);
    all *= scale, up *= scale;
  }
  if (gated) all = gemm_activate(args.activation, all) * up;
  float *out = (float *)args.c + j;
  *out = gemm_finish1<f32>(args, out, 0, 0, j, all);
}

RDNA_KERNEL_RESIDENT(GEMV_SPLIT_THREADS, 2) gemv_split_f32(struct gemv_split_args args) { gemv_split<f32>(args); }
RDNA_KERNEL_RESIDENT(GEMV_SPLIT_THREADS, 2) gemv_split_f16(struct gemv_split_args args) { gemv_split<f16>(args); }
RDNA_KERNEL_RESIDENT(GEMV_SPLIT_THREADS, 2) gemv_split_bf16(struct gemv_split_args args) { gemv_split<bf16>(args); }
