/* Reductions over any dimensions: the kernels, and those that join slices. reduce_states.h says what is kept of values,
 * reduce_any.h has tensors of any strides, reduce_lines.h dense rows, reduce_sums.h their sums. */
#include "math/reduce/reduce_any.h"
#include "math/reduce/reduce_lines.h"
#include "math/reduce/reduce_sums.h"

#define REDUCE(name, type, state)                                                 \
  RDNA_KERNEL(REDUCE_DIMS_THREADS) name(struct reduce_dims_args a) {              \
    RDNA_SHARED static uint64_t scratch[REDUCE_DIMS_THREADS * sizeof(state) / 8]; \
    reduce_any<type, state>(a, scratch);                                          \
  }
#define REDUCE_FOUR(type, acc)                   \
  REDUCE(reduce_sum_##type, type, sum_of<acc>)   \
  REDUCE(reduce_prod_##type, type, prod_of<acc>) \
  REDUCE(reduce_max_##type, type, max_of<acc>)   \
  REDUCE(reduce_arg_##type, type, arg_of<acc>)
#define REDUCE_FLOATS(type, acc) \
  REDUCE_FOUR(type, acc)         \
  REDUCE(reduce_var_##type, type, var_of<acc>)
REDUCE_FLOATS(f32, float)
REDUCE_FLOATS(f16, float)
REDUCE_FLOATS(bf16, float)
REDUCE_FLOATS(f64, double)
REDUCE_FOUR(i32, int64_t)
REDUCE_FOUR(i64, int64_t)
REDUCE_FOUR(u8, int64_t)
REDUCE(reduce_lse_f32, f32, lse_of<float>)
REDUCE(reduce_lse_f16, f16, lse_of<float>)
REDUCE(reduce_lse_bf16, bf16, lse_of<float>)

#define LINES(name, resident, type, state)                                                    \
  RDNA_KERNEL_RESIDENT(REDUCE_DIMS_THREADS, resident) name(struct reduce_dims_args a) {       \
    RDNA_SHARED static uint64_t scratch[REDUCE_DIMS_THREADS / WAVE_SIZE * sizeof(state) / 4]; \
    lines<type, state>(a, scratch);                                                           \
  }
#define LINES_OF(type)                                  \
  LINES(reduce_sum_line_##type, 4, type, sum_of<float>) \
  LINES(reduce_max_line_##type, 4, type, max_of<float>) \
  LINES(reduce_var_line_##type, 4, type, var_of<float>) \
  LINES(reduce_lse_line_##type, 4, type, lse_of<float>) \
  LINES(reduce_arg_line_##type, 4, type, arg_of<float>)
LINES_OF(f32)
LINES_OF(f16)
LINES_OF(bf16)

#define PLAIN_SUMS(type)                                                                                             \
  RDNA_KERNEL(REDUCE_DIMS_THREADS) reduce_sum_wave_##type(struct reduce_dims_args a) { sum_rows_of_waves<type>(a); } \
  RDNA_KERNEL(REDUCE_DIMS_THREADS) reduce_sum_long_##type(struct reduce_dims_args a) {                               \
    RDNA_SHARED static float scratch[GROUP_SCRATCH(REDUCE_DIMS_THREADS)];                                            \
    sum_long_rows<type>(a, scratch);                                                                                 \
  }                                                                                                                  \
  RDNA_KERNEL(REDUCE_DIMS_THREADS) reduce_sum_columns_##type(struct reduce_dims_args a) {                            \
    RDNA_SHARED static float scratch[REDUCE_DIMS_THREADS * type::IN_16];                                             \
    sum_columns<type>(a, scratch);                                                                                   \
  }                                                                                                                  \
  RDNA_KERNEL(REDUCE_DIMS_THREADS) reduce_sum_alone_##type(struct reduce_dims_args a) { sum_alone<type>(a); }
PLAIN_SUMS(f32)
PLAIN_SUMS(f16)
PLAIN_SUMS(bf16)

/* A wave joins the slices of an output, or a group does where they are many. */
template <typename state>
RDNA_DEVICE void join_slices(const reduce_join_args &a, void *scratch) {
  typedef typename state::kept acc;
  const bool group = a.slices > REDUCE_JOIN_WAVE_SLICES;
  const uint32_t team = group ? REDUCE_DIMS_THREADS : WAVE_SIZE, rank = thread_id() & (team - 1);
  const int64_t at_once = REDUCE_DIMS_THREADS / team;
  for (int64_t first = group_id_x() * at_once; first < a.outs; first += group_count_x() * at_once) {
    int64_t out = first + thread_id() / team;
    state s;
#pragma nounroll
    for (int64_t slice = rank; slice < a.slices && out < a.outs; slice += team) {
      state o;
      acc *parts = (acc *)&o;
#pragma unroll
      for (int i = 0; i < state::PARTS; i++) parts[i] = ((const acc *)a.partial)[(i * a.slices + slice) * a.outs + out];
      if constexpr (state::KIND == REDUCE_ARG) o.index = a.partial_index[slice * a.outs + out];
      state::join(s, o);
    }
    s = wave_join(s);
    if (group) s = group_join<REDUCE_DIMS_THREADS>(s, (state *)scratch);
    if (rank == 0 && out < a.outs) store(a.out, out, a.out_dtype, state::end(s, a.end, a.parameter));
  }
}

template <typename acc>
RDNA_DEVICE void join_kind(const reduce_join_args &a, void *scratch) {
  switch (a.kind) {
    case REDUCE_SUM:
      return join_slices<sum_of<acc>>(a, scratch);
    case REDUCE_PROD:
      return join_slices<prod_of<acc>>(a, scratch);
    case REDUCE_MAX:
      return join_slices<max_of<acc>>(a, scratch);
    case REDUCE_ARG:
      return join_slices<arg_of<acc>>(a, scratch);
    case REDUCE_VAR:
      if constexpr (acc(0.5) != 0) join_slices<var_of<acc>>(a, scratch);
      return;
    default:
      if constexpr (sizeof(acc) == 4) join_slices<lse_of<acc>>(a, scratch);
  }
}

RDNA_KERNEL(REDUCE_DIMS_THREADS) reduce_join(struct reduce_join_args a) {
  RDNA_SHARED static uint64_t scratch[REDUCE_DIMS_THREADS / WAVE_SIZE * sizeof(moments<double>) / 8];
  switch (a.keeper) {
    case RDNA_F32:
      return join_kind<float>(a, scratch);
    case RDNA_F64:
      return join_kind<double>(a, scratch);
    default:
      return join_kind<int64_t>(a, scratch);
  }
}
