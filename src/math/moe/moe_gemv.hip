/* Products of few rows with the weights of their experts: the kernels of quant_gemv.h and gemm_tile.h, whose weights
 * begin where a slot's expert says. */
#include "math/moe/moe_product.h"
#include "math/pointwise/pointwise_scalar.h"
#include "math/quant/quant_gemv.h"

/* The expert of this work-group's slot, in group memory: lanes ask for it at each row while their weights are in
 * flight, and a load from global memory would wait for all of these. */
RDNA_DEVICE int32_t *expert_in_group(void) {
  RDNA_SHARED static int32_t expert;
  return &expert;
}
RDNA_DEVICE void find_expert(const struct moe_product_args &a) {
  if (thread_id() == 0) *expert_in_group() = (int32_t)moe_expert_of(a, moe_slot()).number;
  group_barrier();
}

/* As weights of quant_gemv. */
template <typename format>
struct expert_weights : block_weights<format> {
  typedef struct moe_product_args args;
  static constexpr bool has_steps = true, can_gate = true;
  RDNA_DEVICE bool gated(const args &a) { return a.up; }
  RDNA_DEVICE struct gemm_args product(const args &a) {
    struct gemm_args p = a.product;
    p.a = moe_x_of(a, moe_slot());
    return p;
  }
  RDNA_DEVICE const char *row_of(const args &a, int j) {
    bool of_up = a.up && j >= a.product.n;
    int64_t blocks = (int64_t)*expert_in_group() * (a.product.stride_b / format::block_values) +
                     (int64_t)(of_up ? j - a.product.n : j) * (a.product.k / format::block_values);
    return (const char *)(of_up ? a.up : a.product.b) + blocks * format::block_bytes;
  }
  RDNA_DEVICE float open_gate(const args &a, int j, float sum) {
    const float *bias = lane_id() % 32 ? a.up_bias : (const float *)a.product.bias;
    if (bias && j < a.product.n) sum += global(bias)[(int64_t)*expert_in_group() * a.product.n + j];
    float other = wave_shuffle_xor_f32(sum, 1);
    if (a.limit > 0) return pw32_swiglu_clamped(sum, other, a.slope, a.limit);
    return gemm_activate(a.product.activation, sum) * other;
  }
  RDNA_DEVICE void finish(const args &a, int i, int j, float sum) { moe_finish(a, j, sum); }
};

struct expert_store {
  const struct moe_product_args &a;
  RDNA_MEMBER void operator()(const struct gemm_args &args, int row, int column, float sum) const {
    moe_finish(a, column, sum);
  }
};
template <typename type>
RDNA_DEVICE void expert_gemv(const struct moe_product_args &a) {
  struct gemm_args p = a.product;
  p.a = moe_x_of(a, moe_slot());
  p.b = (const typename type::stored *)p.b + moe_expert_of(a, moe_slot()).number * p.stride_b;
  gemv_rows<f32, dense_weight<type>, f32, 1, 1>(p, expert_store{a});
}

#define MOE_GEMV_DENSE(type) \
  RDNA_KERNEL(GEMV_THREADS) moe_gemv_##type(struct moe_product_args args) { expert_gemv<type>(args); }
MOE_GEMV_DENSE(f32)
MOE_GEMV_DENSE(f16)
MOE_GEMV_DENSE(bf16)
#define MOE_GEMV(F, NAME)                                                  \
  RDNA_KERNEL_RESIDENT(QUANT_GEMV_THREADS, MOE_GEMV_RESIDENT(RDNA_##NAME)) \
  moe_gemv_##F(struct moe_product_args args) {                             \
    find_expert(args);                                                     \
    quant_gemv<expert_weights<F>, 1>(args);                                \
  }
RDNA_QUANT_FORMATS(MOE_GEMV)
