/* What operators share in checking their arguments. Tensors of many rows are those of the null device, whose memory
 * costs nothing and whose kernels do nothing. */
#include "math/common/plan/check.h"

#include "math/common/test/operand.h"
#include "rdna/op/norm.h"
#include "rdna/op/softmax.h"

enum { MANY = (1 << 24) + 5 }; /* rows, more than the groups of a launch */

static void *null_memory(rdna_device *null, size_t bytes) {
  void *memory;
  assert_ok(rdna_memory_alloc(null, bytes, rdna_device_default_stream(null), &memory));
  return memory;
}

/* Kernels whose groups stride over rows take more rows than a launch has groups. */
static void more_rows_than_groups(void **state) {
  rdna_device *null;
  assert_ok(rdna_device_open("null", &null));
  rdna_stream *on = rdna_device_default_stream(null);
  const int64_t widths[] = {1, 8, 200};
  void *memory = null_memory(null, (size_t)MANY * 256 * 2), *one = null_memory(null, 512);
  for (int i = 0; i < 3; i++) {
    int64_t shape[] = {MANY, widths[i]};
    rdna_tensor x = rdna_tensor_contiguous(one, RDNA_F16, 2, shape);
    rdna_tensor y = rdna_tensor_contiguous(memory, RDNA_F16, 2, shape);
    x.stride[0] = 0;
    assert_ok(rdna_op_softmax(on, &x, 1, 1, &y));
    assert_ok(rdna_op_log_softmax_backward(on, &x, &x, 1, 1, &y));
    assert_ok(rdna_op_rms_norm(on, &x, NULL, 1e-5f, &y));
    assert_ok(rdna_op_layer_norm(on, &x, NULL, NULL, 1e-5f, &y, NULL, NULL));
    assert_ok(rdna_op_layer_norm_backward(on, &x, &x, NULL, 1e-5f, NULL, NULL, &y, NULL, NULL));
  }
  /* a thread a value here */
  rdna_tensor y = rdna_tensor_contiguous(memory, RDNA_F16, 3, (int64_t[]){MANY, 1, 256});
  assert_ok(rdna_op_softmax(on, &y, 1, 1, &y));
  assert_ok(rdna_op_softmax_backward(on, &y, &y, 1, 1, &y));
  assert_ok(rdna_memory_free(null, memory));
  assert_ok(rdna_memory_free(null, one));
  assert_true(rdna__groups_of_waves(on, INT64_MAX / 2, 1, 256) <= RDNA__GRID_X_MAX);
  assert_true(rdna__groups_of_waves(on, INT64_MAX / 2, 1 << 20, 256) <= RDNA__GRID_X_MAX);
  assert_int_equal(rdna__groups_of_waves(on, 8, 1 << 20, 256), 1);
  assert_int_equal(rdna__groups_of_waves(on, 9, 1 << 20, 256), 2);
  assert_int_equal(rdna__groups_of_waves(on, 0, 4, 256), 0);
  rdna_device_release(null);
}

/* Written rows may have gaps and negative strides, but may not overlap. */
static void written_rows_are_apart(void **state) {
  const int64_t shape[] = {4, 6}, strides[] = {0, 5, -5, 1};
  const rdna_status bad = RDNA_INVALID_ARGUMENT;
  operand x = operand_make(RDNA_F32, 2, shape, NULL, 0), y = operand_make(RDNA_F32, 2, shape, NULL, 0);
  operand_upload(&x), operand_upload(&y);
  const rdna_tensor *X = &x.tensor;
  for (int i = 0; i < 4; i++) {
    rdna_tensor out = y.tensor;
    char text[32];
    snprintf(text, sizeof text, "rows %d apart", (int)strides[i]);
    out.stride[0] = strides[i];
    if (strides[i] < 0) out.data = (float *)out.data + 18;
    assert_refused(rdna_op_softmax(stream, X, 1, 1, &out), bad, "softmax: out is f32 (4, 6)", text);
    assert_refused(rdna_op_log_softmax(stream, &out, 1, 1, &out), bad, "log_softmax: out", text);
    assert_refused(rdna_op_softmax_backward(stream, X, X, 1, 1, &out), bad, "softmax_backward: dx", text);
    assert_refused(rdna_op_rms_norm(stream, X, NULL, 0, &out), bad, "rms_norm: out", text);
    assert_refused(rdna_op_rms_norm_backward(stream, X, X, NULL, 0, &out, NULL), bad, "rms_norm_backward: dx", text);
  }
  assert_refused(rdna_op_layer_norm(NULL, X, NULL, NULL, 0, &y.tensor, NULL, NULL), bad, "layer_norm: the stream",
                 "NULL");
  operand_download(&y);
  for (int64_t i = 0; i < 24; i++) assert_true(operand_is_poison(&y, i));
  for (int64_t i = 0; i < 24; i++) operand_set(&x, i, (double)(i / 6));
  operand_upload(&x);
  rdna_tensor out = y.tensor;
  out.stride[0] = -6, out.data = (float *)out.data + 18;
  assert_ok(rdna_op_softmax(stream, X, 1, 1, &out));
  operand_download(&y);
  for (int64_t i = 0; i < 24; i++) assert_float_equal(operand_get(&y, i), 1.0 / 6, 1e-6);
  operand_free(&x), operand_free(&y);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(more_rows_than_groups), cmocka_unit_test(written_rows_are_apart)};
  return cmocka_run_group_tests(tests, open_device, close_device);
}
