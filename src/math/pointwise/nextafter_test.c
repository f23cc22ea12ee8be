/* The neighbours of values beside the C library's, and of 16-bit types beside all of their values in order. */
#include "base/testing.h"

#include "math/common/test/operand.h"
#include "rdna/op/pointwise.h"

/* The values of a type in order, found by counting: those of 16 bits are all there are. */
static void check_neighbours(rdna_dtype dtype, const operand *all, int64_t from, int64_t count) {
  const double toward[] = {(double)INFINITY, -(double)INFINITY};
  const int64_t shape[] = {count};
  for (int side = 0; side < 2; side++) {
    operand x = operand_make(dtype, 1, shape, NULL, 0), out = operand_make(dtype, 1, shape, NULL, 0);
    for (int64_t i = 0; i < count; i++) operand_set(&x, i, operand_get(all, from + i));
    operand_upload(&x), operand_upload(&out);
    assert_ok(rdna_op_zip_scalar(stream, RDNA_ZIP_NEXTAFTER, &x.tensor, rdna_scalar_real(toward[side]), false,
                                 rdna_scalar_real(0), rdna_scalar_real(0), &out.tensor));
    operand_download(&out);
    for (int64_t i = 0; i < count; i++) {
      double before = operand_get(&x, i), want, got = operand_get(&out, i);
      if (dtype == RDNA_F64) {
        want = nextafter(before, toward[side]);
      } else if (dtype == RDNA_F32) {
        want = (double)nextafterf((float)before, (float)toward[side]);
      } else { /* in |all| zero is there once */
        int64_t at = from + i + (side ? -1 : 1), most = all->tensor.shape[0] - 1;
        want = operand_get(all, at < 0 ? 0 : at > most ? most : at);
      }
      if (got != want) fail_msg("%s: %a has %a, it should be %a", rdna_dtype_name(dtype), before, got, want);
    }
    operand_free(&x), operand_free(&out);
  }
}

static void neighbours_of_every_type(void **state) {
  for (int t = 0; t < 2; t++) { /* bits of the positive ones count up, and of infinity they are the highest */
    const rdna_dtype dtype = t ? RDNA_BF16 : RDNA_F16;
    const int64_t infinite = t ? 0x7f80 : 0x7c00, shape[] = {2 * infinite + 1};
    operand all = operand_make(dtype, 1, shape, NULL, 0);
    uint16_t *bits = (uint16_t *)all.host;
    for (int64_t i = 0; i <= infinite; i++)
      bits[infinite + i] = (uint16_t)i, bits[infinite - i] = (uint16_t)(i ? 0x8000 + i : 0);
    check_neighbours(dtype, &all, 0, shape[0]);
    operand_free(&all);
  }
  const double in[] = {0,
                       -0.0,
                       0x1p-149,
                       -0x1p-149,
                       0x1p-126,
                       -0x1p-126,
                       0x1.fffffep-127,
                       1,
                       -1,
                       1.5,
                       -0x1.fffffep127,
                       0x1.fffffep127,
                       (double)INFINITY,
                       -(double)INFINITY,
                       0x1p-1074,
                       -0x1p-1074,
                       1e-310,
                       0x1p-1022,
                       0x1.fffffffffffffp1023,
                       -3e7};
  const int64_t shape[] = {sizeof in / sizeof *in};
  for (int t = 0; t < 2; t++) {
    const rdna_dtype dtype = t ? RDNA_F64 : RDNA_F32;
    operand all = operand_make(dtype, 1, shape, NULL, 0);
    for (int i = 0; i < shape[0]; i++) operand_set(&all, i, in[i]);
    check_neighbours(dtype, &all, 0, shape[0]);
    operand_free(&all);
  }
}

/* Towards what lies below, above and at it, and a NaN. */
static void a_neighbour_lies_towards_the_other(void **state) {
  const double x[] = {1, 1, 1, 0, -0.0, 0, 0, 2, (double)NAN}, y[] = {2, 0, 1, -1, 1, -0.0, (double)NAN, -2, 1};
  enum { N = sizeof x / sizeof *x };
  const int64_t shape[] = {N};
  operand a = operand_make(RDNA_F32, 1, shape, NULL, 0), b = operand_make(RDNA_F32, 1, shape, NULL, 0),
          out = operand_make(RDNA_F32, 1, shape, NULL, 0);
  for (int i = 0; i < N; i++) operand_set(&a, i, x[i]), operand_set(&b, i, y[i]);
  operand_upload(&a), operand_upload(&b), operand_upload(&out);
  assert_ok(rdna_op_zip(stream, RDNA_ZIP_NEXTAFTER, &a.tensor, &b.tensor, rdna_scalar_real(0), rdna_scalar_real(0),
                        &out.tensor));
  operand_download(&out);
  for (int i = 0; i < N; i++) {
    float want = nextafterf((float)x[i], (float)y[i]), got = (float)operand_get(&out, i);
    if (isnan(want) ? !isnan(got) : got != want || signbit(got) != signbit(want))
      fail_msg("from %g to %g comes %a, it should be %a", x[i], y[i], (double)got, (double)want);
  }
  operand_free(&a), operand_free(&b), operand_free(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(neighbours_of_every_type),
      cmocka_unit_test(a_neighbour_lies_towards_the_other),
  };
  return cmocka_run_group_tests(tests, open_device, close_device);
}
