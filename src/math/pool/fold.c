#include "base/options.h"
#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/volume.h"
#include "math/pool/fold_kernels.h"
#include "rdna/op/pool.h"

static const rdna__route routes[] = {{.name = "fold", .kernels = {"fold_{real}"}, .when = "all"}};
RDNA_FIXED_ROUTES(rdna__fold_routes, "fold (col2im)", routes)

/* |columns| (n, channels * values of a window, windows) for |out| (n, channels, spatial…). */
static rdna_status check(const rdna_pooling *p, const rdna_tensor *columns, const rdna_tensor *out,
                         struct pool_axis axis[3]) {
  const char *name = "fold";
  char text[RDNA__TENSOR_TEXT], out_text[RDNA__TENSOR_TEXT];
  const int64_t most = 1 << 28; /* so that sums of a few stay in 31 bits */
  if (p->spatial_dims < 1 || p->spatial_dims > 3) {
    return rdna__fail(RDNA_INVALID_ARGUMENT, "%s: pooling has spatial_dims %d; it must be 1, 2 or 3", name,
                      p->spatial_dims);
  }
  RDNA_TRY(rdna__check_tensor(name, "columns", columns));
  RDNA_TRY(rdna__check_volume(name, "out", out, p->spatial_dims));
  RDNA_TRY(rdna__check_same_dtype(name, "columns", columns, "out", out));
  RDNA_TRY(rdna__check_contiguous(name, "columns", columns));
  RDNA_TRY(rdna__check_contiguous(name, "out", out));
  RDNA_TRY(rdna__check_apart(name, "out", out, "columns", columns));
  int64_t taps = 1, windows = 1;
  for (int d = 0; d < 3; d++) {
    int from = d + p->spatial_dims - 3;
    axis[d] = (struct pool_axis){.in = 1, .out = 1, .window = 1, .stride = 1, .dilation = 1};
    if (from < 0) continue;
    const int64_t given[] = {p->window[from], p->stride[from], p->dilation[from], p->pad_before[from],
                             p->pad_after[from]};
    for (int i = 0; i < 5; i++) {
      if (given[i] < (i < 3) || given[i] > most || p->window[from] * p->dilation[from] > most) {
        return rdna__fail(RDNA_INVALID_ARGUMENT,
                          "%s: dimension %d has window %lld, stride %lld, dilation %lld, padding %lld and %lld; the "
                          "first three must be at least 1, padding at least 0, and each fit in 28 bits",
                          name, from, (long long)given[0], (long long)given[1], (long long)given[2],
                          (long long)given[3], (long long)given[4]);
      }
    }
    int64_t in = out->shape[from + 2], count = rdna_pooling_size(p, from, in);
    if (count < 1 || in > 1 << 30) {
      return rdna__fail(count < 1 ? RDNA_INVALID_ARGUMENT : RDNA_UNSUPPORTED,
                        "%s: out is %s; dimension %d must hold a window and have at most 2^30 values", name,
                        rdna__tensor_text(out, out_text), from + 2);
    }
    if (__builtin_mul_overflow(taps, p->window[from], &taps) || __builtin_mul_overflow(windows, count, &windows)) {
      return rdna__fail(RDNA_UNSUPPORTED, "%s: out is %s; its windows, or a window's values, must be below 2^63", name,
                        rdna__tensor_text(out, out_text));
    }
    axis[d] = (struct pool_axis){.in = (int32_t)in,
                                 .out = (int32_t)count,
                                 .window = (int32_t)p->window[from],
                                 .stride = (int32_t)p->stride[from],
                                 .dilation = (int32_t)p->dilation[from],
                                 .pad_before = (int32_t)p->pad_before[from],
                                 .pad_after = (int32_t)p->pad_after[from]};
  }
  if (columns->rank != 3 || columns->shape[0] != out->shape[0] || columns->shape[1] % taps != 0 ||
      columns->shape[1] / taps != out->shape[1] || columns->shape[2] != windows) {
    return rdna__fail(
        RDNA_INVALID_ARGUMENT,
        "%s: columns are %s and out is %s; columns must be of rank 3 with %lld windows of %lld values for "
        "each of out's channels",
        name, rdna__tensor_text(columns, text), rdna__tensor_text(out, out_text), (long long)windows, (long long)taps);
  }
  return RDNA_OK;
}

rdna_status rdna_op_fold(rdna_stream *stream, const rdna_pooling *pooling, const rdna_tensor *columns,
                         const rdna_tensor *out) {
  struct fold_args a;
  rdna_pooling known;
  rdna_grid grid = {1, 1, 1};
  RDNA_TRY(rdna__check_stream("fold", stream));
  RDNA_TRY(RDNA__OPTIONS("fold", "pooling", pooling, &known));
  RDNA_TRY(check(&known, columns, out, a.axis));
  int64_t count = rdna_tensor_count(out);
  if (count == 0) return RDNA_OK;
  if (count > INT32_MAX) {
    return rdna__fail(RDNA_UNSUPPORTED, "fold: out has %lld values; it must have fewer than 2^31", (long long)count);
  }
  a.columns = columns->data, a.out = out->data, a.count = (uint32_t)count;
  RDNA_TRY(rdna__check_groups("fold", count, FOLD_THREADS, &grid.x));
  return RDNA__ROUTE_LAUNCH(stream, &routes[0], 0, grid, &a, rdna_dtype_name(out->dtype));
}
