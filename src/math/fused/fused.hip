/* Chains of operations; the interpreter's registers are the value and the inputs of each of a thread's places. */
#include "kernel/arguments.h"
#include "math/fused/fused_kernels.h"
#include "math/fused/fused_ops.h"
#include "math/values.h"

struct fused_step {
  uint32_t word;
  float p, q;
};

#ifdef RDNA_AMD
#define STEP_OF(kernel)                                               \
  struct step_of_##kernel {                                           \
    RDNA_DEVICE fused_step at(const fused_args &a, uint32_t i) {      \
      return fused_step{wave_uniform_u32(a.step[i]), a.p[i], a.q[i]}; \
    }                                                                 \
  }
#else
/* The compiler would copy arguments that are indexed to the stack, where ptxas reads them in place. */
#define STEP_OF(kernel)                                                                                               \
  struct step_of_##kernel {                                                                                           \
    RDNA_DEVICE uint32_t argument(uint32_t offset) {                                                                  \
      uint32_t v;                                                                                                     \
      asm("{ .reg .b64 at;\n\tmov.b64 at, " #kernel "_param_0;\n\tadd.u64 at, at, %1;\n\tld.param.u32 %0, [at];\n\t}" \
          : "=r"(v)                                                                                                   \
          : "l"((uint64_t)offset));                                                                                   \
      return v;                                                                                                       \
    }                                                                                                                 \
    RDNA_DEVICE fused_step at(const fused_args &, uint32_t i) {                                                       \
      return fused_step{argument(offsetof(fused_args, step) + i * 4),                                                 \
                        bits_as<float>(argument(offsetof(fused_args, p) + i * 4)),                                    \
                        bits_as<float>(argument(offsetof(fused_args, q) + i * 4))};                                   \
    }                                                                                                                 \
  }
#endif

/* |count| neighbours of an operand from |place| on, or one value, as they lie in memory: what is converted waits for
 * its load. */
template <typename type, int count>
RDNA_DEVICE uint4 load_input(const fused_args &args, int k, const fused_place &place) {
  typedef typename type::stored stored;
  const fused_args &a = arguments_again(args);
  const fused_operand &from = a.operand[k];
  const stored *at = (const stored *)from.data + fused_offset(&from, &place);
  if (count > 1 && (a.vectors >> k & 1)) return load_as<uint4>(at);
  int64_t step = from.stride[0];
  uint4 bits = {};
#pragma unroll
  for (int j = 0; j < count; j++) {
    stored v = step == 0 ? at[0] : at[j * step];
    if constexpr (sizeof v == 4) {
      bits[j] = bits_as<uint32_t>(v);
    } else {
      bits[j / 2] |= (uint32_t)v << 16 * (j % 2);
    }
  }
  return bits;
}

template <typename type, int count>
RDNA_DEVICE void unpack_input(uint4 bits, float *v) {
  if constexpr (count == 1) {
    float all[type::IN_16];
    type::unpack(bits, all);
    v[0] = all[0];
  } else {
    type::unpack(bits, v);
  }
}

/* Keeps what stands under a branch there: selecting among all inputs costs more than jumping over the others. */
RDNA_DEVICE void under_branch(void) { asm volatile(""); }

/* What the steps make of |vectors| times |count| values from |first| on, |apart| from each other. There are at most
 * |most| inputs. */
template <typename type, int count, int vectors, int most, typename steps>
RDNA_DEVICE void fused_values(const fused_args &a, uint32_t first, uint32_t apart) {
  uint4 inputs[most][vectors];
  float value[vectors][count];
  fused_place place[vectors];
#pragma unroll
  for (uint32_t v = 0; v < vectors; v++) place[v] = fused_place_of(&a.shape, first + v * apart);
#pragma unroll
  for (int k = 0; k < most; k++) {
#pragma unroll
    for (uint32_t v = 0; v < vectors; v++) inputs[k][v] = uint4{};
    if ((uint32_t)k >= a.inputs) continue;
#pragma unroll
    for (uint32_t v = 0; v < vectors; v++) {
      if (first + v * apart < a.shape.count) inputs[k][v] = load_input<type, count>(a, k + 1, place[v]);
    }
  }
#pragma unroll
  for (int v = 0; v < vectors; v++) unpack_input<type, count>(inputs[0][v], value[v]);
#pragma unroll 1
  for (uint32_t s = 0; s < a.steps; s++) {
    fused_step step = steps::at(arguments_again(a), s);
    uint32_t op = step.word & FUSED_OP_MASK, input = step.word >> FUSED_INPUT_SHIFT;
    if (!(step.word & FUSED_IS_ZIP)) {
      fused_map(op, value[0], vectors * count, step.p, step.q);
      continue;
    }
    float other[vectors][count];
    uint4 picked[vectors];
#pragma unroll
    for (int v = 0; v < vectors; v++) picked[v] = inputs[0][v];
#pragma unroll
    for (uint32_t k = 1; k < most; k++) {
      if (input != k) continue;
      under_branch();
#pragma unroll
      for (int v = 0; v < vectors; v++) picked[v] = inputs[k][v];
    }
#pragma unroll
    for (int v = 0; v < vectors; v++) unpack_input<type, count>(picked[v], other[v]);
    if (step.word & FUSED_INPUT_FIRST) {
      under_branch();
#pragma unroll
      for (int v = 0; v < vectors; v++) {
#pragma unroll
        for (int j = 0; j < count; j++) {
          float before = value[v][j];
          value[v][j] = other[v][j], other[v][j] = before;
        }
      }
    }
    fused_zip(op, value[0], other[0], vectors * count, step.p, step.q);
  }

  const fused_args &now = arguments_again(a);
  const fused_operand &to = now.operand[0];
#pragma unroll
  for (uint32_t v = 0; v < vectors; v++) {
    if (first + v * apart >= now.shape.count) break;
    char *at = (char *)to.data + fused_offset(&to, &place[v]) * type::BYTES;
    if (count > 1 && (now.vectors & 1)) {
      type::store_16(at, value[v]);
      continue;
    }
#pragma unroll
    for (int j = 0; j < count; j++) type::store(at + j * (int64_t)to.stride[0] * type::BYTES, 0, value[v][j]);
  }
}

template <typename type, typename steps>
RDNA_DEVICE void fused(const fused_args &a) {
  constexpr uint32_t count = type::IN_16, width = RDNA__FUSED_THREADS * count;
  /* the thread's place is in both, or the group's would stay in a scalar register, of which the steps need all */
  uint32_t start = group_id_x() * FUSED_VECTORS * width + thread_id(), first = start + thread_id() * (count - 1);
  if (!a.together) {
#pragma unroll 1
    for (uint32_t j = 0; j < FUSED_VECTORS * count; j++) {
      uint32_t i = start + j * RDNA__FUSED_THREADS;
      if (i < a.shape.count) fused_values<type, 1, 1, RDNA_FUSED_MAX_INPUTS, steps>(arguments_again_wide(a), i, 0);
    }
  } else if (a.inputs <= FUSED_FEW) {
    if (first < a.shape.count)
      fused_values<type, count, FUSED_VECTORS, FUSED_FEW, steps>(arguments_again_wide(a), first, width);
  } else {
#pragma unroll 1
    for (uint32_t v = 0; v < FUSED_VECTORS; v++, first += width) {
      if (first < a.shape.count)
        fused_values<type, count, 1, RDNA_FUSED_MAX_INPUTS, steps>(arguments_again_wide(a), first, 0);
    }
  }
}

#define FUSED(name, type) \
  STEP_OF(name);          \
  RDNA_KERNEL(RDNA__FUSED_THREADS) name(struct fused_args a) { fused<type, step_of_##name>(a); }
FUSED(fused_f32, f32)
FUSED(fused_f16, f16)
FUSED(fused_bf16, bf16)
