/* Host twins of the strided operations. Runs along the fastest dimension are gathered into buffers, of the type that
 * they are computed in, small enough to stay in the first-level cache. */
#include "math/common/host/values.h"
#include "math/pointwise/pointwise_elementary.h"
#include "math/pointwise/pointwise_f64_kernels.h"

enum { GRAIN = 8192 }; /* values that a thread takes at least */

/* gather_*: loads |n| values that lie |step| apart, from value |at| of the operand on. */
#define GATHER_AS(name, type, stored, expression)                                             \
  static void gather_##name(const void *data, int64_t at, int64_t step, int64_t n, type *v) { \
    const stored *from = (const stored *)data + at;                                           \
    if (step == 1) {                                                                          \
      for (int64_t i = 0; i < n; i++) v[i] = expression(from[i]);                             \
    } else {                                                                                  \
      for (int64_t i = 0; i < n; i++) v[i] = expression(from[i * step]);                      \
    }                                                                                         \
  }
#define SCATTER_AS(name, type, stored, expression)                                             \
  static void scatter_##name(void *data, int64_t at, int64_t step, int64_t n, const type *v) { \
    stored *to = (stored *)data + at;                                                          \
    if (step == 1) {                                                                           \
      for (int64_t i = 0; i < n; i++) to[i] = (stored)expression(v[i]);                        \
    } else {                                                                                   \
      for (int64_t i = 0; i < n; i++) to[i * step] = (stored)expression(v[i]);                 \
    }                                                                                          \
  }
#define SAME(v) v
#define IS_SET(v) ((v) != 0)
#define TURNED(v) ((v) ^ INT64_MIN) /* signed values in the order of the unsigned ones */
GATHER_AS(f32, float, float, SAME)
GATHER_AS(f16, float, uint16_t, f16_to_f32)
GATHER_AS(bf16, float, uint16_t, bf16_to_f32)
GATHER_AS(f64, double, double, SAME)
GATHER_AS(i8, int64_t, int8_t, SAME)
GATHER_AS(u8, int64_t, uint8_t, SAME)
GATHER_AS(bool, int64_t, uint8_t, IS_SET)
GATHER_AS(i16, int64_t, int16_t, SAME)
GATHER_AS(i32, int64_t, int32_t, SAME)
GATHER_AS(i64, int64_t, int64_t, SAME)
GATHER_AS(u16, int64_t, uint16_t, SAME)
GATHER_AS(u32, int64_t, uint32_t, SAME)
GATHER_AS(u64, int64_t, int64_t, TURNED)
SCATTER_AS(f32, float, float, SAME)
SCATTER_AS(f16, float, uint16_t, f32_to_f16)
SCATTER_AS(bf16, float, uint16_t, f32_to_bf16)
SCATTER_AS(f64, double, double, SAME)
SCATTER_AS(u8, int64_t, uint8_t, SAME)
SCATTER_AS(bool, int64_t, uint8_t, IS_SET)
SCATTER_AS(i16, int64_t, int16_t, SAME)
SCATTER_AS(i32, int64_t, int32_t, SAME)
SCATTER_AS(i64, int64_t, int64_t, SAME)
SCATTER_AS(u64, int64_t, int64_t, TURNED)

static void gather_int(rdna_dtype dtype, const void *data, int64_t at, int64_t step, int64_t n, int64_t *v) {
  switch (dtype) {
    case RDNA_I8:
      gather_i8(data, at, step, n, v);
      break;
    case RDNA_I16:
      gather_i16(data, at, step, n, v);
      break;
    case RDNA_I32:
      gather_i32(data, at, step, n, v);
      break;
    case RDNA_I64:
      gather_i64(data, at, step, n, v);
      break;
    case RDNA_U16:
      gather_u16(data, at, step, n, v);
      break;
    case RDNA_U32:
      gather_u32(data, at, step, n, v);
      break;
    case RDNA_U64:
      gather_u64(data, at, step, n, v);
      break;
    case RDNA_BOOL:
      gather_bool(data, at, step, n, v);
      break;
    default:
      gather_u8(data, at, step, n, v);
  }
}
static void scatter_int(rdna_dtype dtype, void *data, int64_t at, int64_t step, int64_t n, const int64_t *v) {
  switch (dtype) {
    case RDNA_I16:
    case RDNA_U16:
      scatter_i16(data, at, step, n, v);
      break;
    case RDNA_I32:
    case RDNA_U32:
      scatter_i32(data, at, step, n, v);
      break;
    case RDNA_I64:
      scatter_i64(data, at, step, n, v);
      break;
    case RDNA_U64:
      scatter_u64(data, at, step, n, v);
      break;
    case RDNA_BOOL:
      scatter_bool(data, at, step, n, v);
      break;
    default:
      scatter_u8(data, at, step, n, v);
  }
}

/* The kernels of one type. LOAD(k, v) fills v from operand k, STORE(v) writes the result. The operands' offsets are
 * computed once for a run. */
#define LOAD_F(type)                                                \
  if (a->constants >> k & 1)                                        \
    for (int64_t i = 0; i < n; i++) v[i] = (float)a->constant.real; \
  else                                                              \
    gather_##type(a->operand[k].data, at[k], a->operand[k].stride[0], n, v);
#define LOAD_D(type)                                         \
  if (a->constants >> k & 1)                                 \
    for (int64_t i = 0; i < n; i++) v[i] = a->constant.real; \
  else                                                       \
    gather_f64(a->operand[k].data, at[k], a->operand[k].stride[0], n, v);
#define LOAD_I(type)                                            \
  if (a->constants >> k & 1)                                    \
    for (int64_t i = 0; i < n; i++) v[i] = a->constant.integer; \
  else                                                          \
    gather_int((rdna_dtype)a->dtype, a->operand[k].data, at[k], a->operand[k].stride[0], n, v);
#define STORE_F(type) scatter_##type(a->operand[0].data, at[0], a->operand[0].stride[0], n, v);
#define STORE_D(type) STORE_F(type)
#define STORE_I(type) scatter_int((rdna_dtype)a->dtype, a->operand[0].data, at[0], a->operand[0].stride[0], n, v);

#define CONSTANT_F(s) (float)(s).real
#define CONSTANT_D(s) (s).real
#define CONSTANT_I(s) (s).integer

/* Finds the run that begins at value |begin|: its offset in each operand. Returns its length. */
static int64_t next_run(const struct pointwise_args *a, int operands, int64_t begin, int64_t end, int64_t *at) {
  int64_t left = a->shape.size[0] - (uint32_t)begin % a->shape.size[0];
  strided_offsets(&a->shape, a->operand, operands, (uint32_t)begin, at);
  return run_length(left < end - begin ? left : end - begin);
}

#define PIECE(kind, type, operands, body) PIECE_OF(kind##_strided_##type, operands, body)
#define PIECE_OF(name, operands, body)                                  \
  static void name##_piece(void *context, int64_t begin, int64_t end) { \
    const struct pointwise_args *a = context;                           \
    for (int64_t n; begin < end; begin += n) {                          \
      int64_t at[4];                                                    \
      n = next_run(a, operands, begin, end, at);                        \
      body                                                              \
    }                                                                   \
  }                                                                     \
  void RDNA_HOST_KERNEL(name)(const void *args, rdna_grid grid) {       \
    struct pointwise_args a = *(const struct pointwise_args *)args;     \
    rdna__parallel_for(a.shape.count, GRAIN, name##_piece, &a);         \
  }

#define KINDS(type, C, value, computed)                                                                             \
  static void load_##type(const struct pointwise_args *a, int k, const int64_t *at, int64_t n, value *v) {          \
    LOAD_##C(type)                                                                                                  \
  }                                                                                                                 \
  static void save_##type(const struct pointwise_args *a, const int64_t *at, int64_t n, const value *v){            \
      STORE_##C(type)} PIECE(map, type, 2, value v[RUN]; load_##type(a, 1, at, n, v);                               \
                             pointwise_map_##computed(a->op, v, (int)n, CONSTANT_##C(a->p), CONSTANT_##C(a->q));    \
                             save_##type(a, at, n, v);)                                                             \
      PIECE(zip, type, 3, value v[RUN]; value w[RUN]; load_##type(a, 1, at, n, v); load_##type(a, 2, at, n, w);     \
            pointwise_zip_##computed(a->op, v, w, (int)n, CONSTANT_##C(a->p), CONSTANT_##C(a->q));                  \
            save_##type(a, at, n, v);)                                                                              \
          PIECE(zip3, type, 4, value v[RUN]; value w[RUN]; value u[RUN]; load_##type(a, 1, at, n, v);               \
                load_##type(a, 2, at, n, w); load_##type(a, 3, at, n, u);                                           \
                pointwise_zip3_##computed(a->op, v, w, u, (int)n, CONSTANT_##C(a->p)); save_##type(a, at, n, v);)   \
              PIECE(compare, type, 3, value v[RUN]; value w[RUN]; uint8_t answer[RUN]; load_##type(a, 1, at, n, v); \
                    load_##type(a, 2, at, n, w); pointwise_compare_##computed(a->op, v, w, (int)n, answer);         \
                    uint8_t *out = (uint8_t *)a->operand[0].data + at[0];                                           \
                    for (int64_t i = 0; i < n; i++) out[i * a->operand[0].stride[0]] = answer[i];)
KINDS(f32, F, float, f32)
KINDS(f16, F, float, f32)
KINDS(bf16, F, float, f32)
KINDS(f64, D, double, f64)
KINDS(int, I, int64_t, i64)

PIECE_OF(map_elementary_f64, 2, double v[RUN]; load_f64(a, 1, at, n, v);
         pointwise_map_elementary(a->op, v, (int)n, a->p.real, a->q.real); save_f64(a, at, n, v);)
PIECE_OF(zip_elementary_f64, 3, double v[RUN]; double w[RUN]; load_f64(a, 1, at, n, v); load_f64(a, 2, at, n, w);
         pointwise_zip_elementary(a->op, v, w, (int)n, a->p.real, a->q.real); save_f64(a, at, n, v);)

#define WHERE(bits, type)                                                                                   \
  PIECE(where, bits, 4, {                                                                                   \
    const struct strided_operand *o = a->operand;                                                           \
    type *out = (type *)o[0].data + at[0];                                                                  \
    const uint8_t *condition = (const uint8_t *)o[1].data + at[1];                                          \
    type constant = (type)a->constant.integer;                                                              \
    const type *yes = a->constants & 4 ? &constant : (const type *)o[2].data + at[2];                       \
    const type *no = (const type *)o[3].data + at[3];                                                       \
    int64_t yes_step = a->constants & 4 ? 0 : o[2].stride[0];                                               \
    for (int64_t i = 0; i < n; i++) {                                                                       \
      out[i * o[0].stride[0]] = condition[i * o[1].stride[0]] ? yes[i * yes_step] : no[i * o[3].stride[0]]; \
    }                                                                                                       \
  })
WHERE(8, uint8_t)
WHERE(16, uint16_t)
WHERE(32, uint32_t)
WHERE(64, uint64_t)
