#include <math.h>

#include "math/common/plan/check.h"
#include "math/common/plan/route.h"
#include "math/common/plan/scratch.h"
#include "math/common/plan/strided.h"
#include "math/vision/nms_kernels.h"
#include "rdna/op/sort.h"
#include "rdna/op/vision.h"

enum { BOXES, PAIRS, CHOOSE, LATER };
static const rdna__route route[] = {
    {.name = "chunks",
     .kernels = {"nms_boxes_{real}", "nms_pairs_{f32|f64}", "nms_choose", "nms_later_{f32|f64}"},
     .when = "boxes by their scores, then chunks: pairs, the choice, what it covers of later ones"}};
RDNA_FIXED_ROUTES(rdna__nms_routes, "nms", route)

static const char *const name = "nms";

static rdna_status check(rdna_stream *stream, const rdna_tensor *boxes, const rdna_tensor *scores, double threshold,
                         const rdna_tensor *kept, const rdna_tensor *count) {
  char text[RDNA__TENSOR_TEXT];
  RDNA_TRY(rdna__check_stream(name, stream));
  RDNA_TRY(rdna__check_real(name, "boxes", boxes));
  RDNA_TRY(rdna__check_rank(name, "boxes", boxes, 2));
  RDNA_TRY(rdna__check_size(name, "boxes", boxes, 1, 4, "the corners of a box"));
  RDNA_TRY(rdna__check_tensor(name, "scores", scores));
  RDNA_TRY(rdna__check_same_dtype(name, "scores", scores, "boxes", boxes));
  RDNA_TRY(rdna__check_rank(name, "scores", scores, 1));
  RDNA_TRY(rdna__check_size(name, "scores", scores, 0, boxes->shape[0], "one for each of boxes"));
  RDNA_TRY(rdna__check_tensor(name, "kept", kept));
  RDNA_TRY(rdna__check_dtype(name, "kept", kept, RDNA_I64));
  RDNA_TRY(rdna__check_rank(name, "kept", kept, 1));
  RDNA_TRY(rdna__check_size(name, "kept", kept, 0, boxes->shape[0], "one for each of boxes"));
  RDNA_TRY(rdna__check_contiguous(name, "kept", kept));
  RDNA_TRY(rdna__check_tensor(name, "count", count));
  RDNA_TRY(rdna__check_dtype(name, "count", count, RDNA_I64));
  RDNA_TRY(rdna__check_one_value(name, "count", count));
  const rdna__named written[] = {{"kept", kept}, {"count", count}}, read[] = {{"boxes", boxes}, {"scores", scores}};
  RDNA_TRY(rdna__check_written_apart(name, written, 2, read, 2, 0));
  if (isnan(threshold)) return rdna__fail(RDNA_INVALID_ARGUMENT, "nms: the threshold is NaN; it must be a number");
  if (boxes->shape[0] > INT32_MAX) {
    return rdna__fail(RDNA_UNSUPPORTED, "nms: boxes is %s; at most 2^31 - 1 are offered",
                      rdna__tensor_text(boxes, text));
  }
  return RDNA_OK;
}

/* Returns the largest f32 that is not above |v|: of two f32, one is above |v| where it is above this. */
static float not_above(double v) {
  float f = (float)v;
  return (double)f > v ? nextafterf(f, -INFINITY) : f;
}

struct run {
  struct nms_boxes_args boxes;
  struct nms_pairs_args pairs;
  struct nms_choose_args choose;
  struct nms_later_args later;
};

static rdna_status choose_chunk(rdna_stream *stream, struct run *r, uint32_t first, const char *wide) {
  uint32_t n = r->boxes.n, count = n - first < NMS_CHUNK ? n - first : NMS_CHUNK;
  uint32_t words = (count + NMS_TILE - 1) / NMS_TILE;
  r->pairs.first = r->choose.first = first, r->pairs.count = r->choose.count = count;
  r->later.first = first + count;
  rdna_grid grid = {(count + NMS_THREADS - 1) / NMS_THREADS, words, 1}, one = {1, 1, 1}, later = {0, 1, 1};
  RDNA_TRY(RDNA__ROUTE_LAUNCH(stream, route, PAIRS, grid, &r->pairs, wide));
  RDNA_TRY(RDNA__ROUTE_LAUNCH(stream, route, CHOOSE, one, &r->choose, NULL));
  if (r->later.first == n) return RDNA_OK;
  RDNA_TRY(rdna__check_groups(name, n - r->later.first, NMS_THREADS, &later.x));
  return RDNA__ROUTE_LAUNCH(stream, route, LATER, later, &r->later, wide);
}

static rdna_status run(rdna__scratch *scratch, const rdna_tensor *boxes, const rdna_tensor *scores, double threshold,
                       const rdna_tensor *kept, const rdna_tensor *count) {
  rdna_stream *stream = scratch->stream;
  int64_t n = boxes->shape[0];
  bool wide = boxes->dtype == RDNA_F64;
  rdna_tensor order;
  struct run r = {.boxes = {.boxes = boxes->data, .stride = {boxes->stride[0], boxes->stride[1]}, .n = (uint32_t)n},
                  .pairs = {.threshold = not_above(threshold), .threshold_f64 = threshold},
                  .choose = {.kept = kept->data, .total = count->data}};
  void *sorted, *pairs, *covered, *places, *range;
  RDNA_TRY(rdna__scratch_tensor(scratch, RDNA_I64, 1, &n, &order));
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)n * 4 * (wide ? 8 : 4), &sorted));
  RDNA_TRY(rdna__scratch_take(scratch, sizeof(uint32_t) * NMS_WORDS * NMS_CHUNK, &pairs));
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)n, &covered));
  RDNA_TRY(rdna__scratch_take(scratch, (size_t)n * sizeof(uint32_t), &places));
  RDNA_TRY(rdna__scratch_take(scratch, 2 * sizeof(uint32_t), &range));
  r.boxes.order = r.choose.order = order.data, r.boxes.sorted = sorted;
  r.pairs.sorted = r.later.sorted = sorted, r.pairs.pairs = pairs, r.choose.pairs = pairs;
  r.choose.covered = r.later.covered = covered, r.choose.places = places, r.later.places = places;
  r.choose.range = range, r.later.range = range;
  r.later.n = (uint32_t)n, r.later.threshold = r.pairs.threshold, r.later.threshold_f64 = threshold;

  RDNA_TRY(rdna_op_sort(stream, scores, 0, true, NULL, &order));
  RDNA_TRY(rdna_fill_bytes(stream, covered, 0, (size_t)n));
  RDNA_TRY(rdna_fill_bytes(stream, range, 0, 2 * sizeof(uint32_t)));
  rdna_grid grid = {0, 1, 1};
  RDNA_TRY(rdna__check_groups(name, n, NMS_THREADS, &grid.x));
  RDNA_TRY(RDNA__ROUTE_LAUNCH(stream, route, BOXES, grid, &r.boxes, rdna_dtype_name(boxes->dtype)));
  for (uint32_t first = 0; first < n; first += NMS_CHUNK) {
    RDNA_TRY(choose_chunk(stream, &r, first, wide ? "f64" : "f32"));
  }
  return RDNA_OK;
}

rdna_status rdna_op_nms(rdna_stream *stream, const rdna_tensor *boxes, const rdna_tensor *scores, double threshold,
                        const rdna_tensor *kept, const rdna_tensor *count) {
  RDNA_TRY(check(stream, boxes, scores, threshold, kept, count));
  if (boxes->shape[0] == 0) return rdna_fill_bytes(stream, count->data, 0, sizeof(int64_t));
  rdna__scratch scratch = {.stream = stream, .holder = name};
  return rdna__scratch_release(&scratch, run(&scratch, boxes, scores, threshold, kept, count));
}
