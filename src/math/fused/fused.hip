/* Chains of operations: an interpreter. A thread loads the inputs of its units (fused_kernels.h) into registers,
 * applies each step to the values there, and stores the result. */
#include "kernel/arguments.h"
#include "math/common/device/fast.h"
#include "math/common/device/values.h"
#include "math/fused/fused_kernels.h"
#include "math/fused/fused_ops.h"

/* A step as it is read from the arguments: its word (fused_kernels.h) and two parameters. */
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
/* Reads arguments at an index by ld.param, in place: the compiler would first copy them all to the stack. */
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

/* Keeps the compiler from turning a branch into selects: here jumping costs less. */
RDNA_DEVICE void under_branch(void) { asm volatile(""); }

/* Apply |op| to |n| values if it is quick (fused_ops.h), else return false; close_map for f32, fast_map for 16 bits. */
#define QUICK_MAP(name, f)                                                           \
  RDNA_DEVICE bool name(uint32_t op, float *__restrict v, int n, float p, float q) { \
    typedef float pw_value;                                                          \
    switch (op) {                                                                    \
      FUSED_QUICK_MAPS(f)                                                            \
      default:                                                                       \
        return false;                                                                \
    }                                                                                \
    return true;                                                                     \
  }
QUICK_MAP(close_map, close)
QUICK_MAP(fast_map, fast)
/* Apply an operation that is not quick. */
RDNA_DEVICE void other_map(uint32_t op, float *__restrict v, int n, float p, float q) {
  typedef float pw_value;
  switch (op) { FUSED_SAME_MAPS default : __builtin_unreachable(); }
}
RDNA_DEVICE void other_zip(uint32_t op, float *__restrict v, const float *__restrict w, int n, float p, float q) {
  typedef float pw_value;
  switch (op) { FUSED_ANY_ZIPS default : __builtin_unreachable(); }
}

template <typename type>
RDNA_DEVICE void set_value(uint4 &bits, int j, typename type::stored v) {
  if constexpr (type::BYTES == 4) {
    bits[j] = bits_as<uint32_t>(v);
  } else {
    bits[j / 2] |= (uint32_t)v << 16 * (j % 2);
  }
}

/* Loads a unit of an input, as bits: converting them would wait for the load. If |vector| it is 16 bytes of values, of
 * which only the first |tail| exist where that is not 0; else it is one value, repeated for all. */
template <typename type>
RDNA_DEVICE uint4 load_wide(const void *data, int32_t offset, bool vector, uint32_t tail) {
  const typename type::stored *from = (const typename type::stored *)data + offset;
  uint4 bits = {};
  if (vector) {
    if (tail == 0) return load_as<uint4>(from);
    under_branch();
#pragma unroll
    for (int j = 0; j < type::IN_16; j++) {
      if ((uint32_t)j < tail) set_value<type>(bits, j, from[j]);
    }
    return bits;
  }
  typename type::stored value = from[0];
#pragma unroll
  for (int j = 0; j < type::IN_16; j++) set_value<type>(bits, j, value);
  return bits;
}
template <typename type>
RDNA_DEVICE void store_wide(void *data, int32_t offset, uint32_t tail, const float *v) {
  char *to = (char *)data + (int64_t)offset * type::BYTES;
  if (tail == 0) {
    type::store_16(to, v);
    return;
  }
  under_branch();
#pragma unroll
  for (int j = 0; j < type::IN_16; j++) {
    if ((uint32_t)j < tail) type::store(to, j, v[j]);
  }
}

/* Makes ptxas take a vector for a new one: it would otherwise put the results of operations that branch into registers
 * of their own, and move the values at every step. Nothing changes, as no step's |word| has bit 31. */
template <typename type>
RDNA_DEVICE void copy_vector(float *v, uint32_t word) {
#ifdef RDNA_NVIDIA
#pragma unroll
  for (int j = 0; j < type::IN_16; j++) v[j] = bits_as<float>(bits_as<uint32_t>(v[j]) | word >> 31);
#endif
}

/* Picks input |k|, at least |from|, by comparisons: registers cannot be indexed. */
template <int most, int from>
RDNA_DEVICE uint4 pick_input(const uint4 inputs[most][1], uint32_t k) {
  if constexpr (from + 1 < most) {
    if (k != from) return pick_input<most, from + 1>(inputs, k);
  }
  return again(inputs[from][0]);
}

/* Applies |op| to the values and input |k|, at least |from|, if it is quick; else returns false. */
#define QUICK_ZIP(NAME, name, types, chain, integer, f32, ...) FUSED_IF_QUICK_##chain(QUICK_ZIP_CASE(NAME, f32))
#define QUICK_ZIP_CASE(NAME, expression)                        \
  case RDNA_ZIP_##NAME: {                                       \
    _Pragma("unroll") for (int i = 0; i < vectors; i++) {       \
      float w[type::IN_16], *v = value + i * type::IN_16;       \
      type::unpack(again(inputs[from][i]), w);                  \
      _Pragma("unroll") for (int j = 0; j < type::IN_16; j++) { \
        float a = v[j], b = w[j];                               \
        v[j] = expression;                                      \
      }                                                         \
    }                                                           \
    return true;                                                \
  }
template <typename type, int vectors, int most, int from>
RDNA_DEVICE bool quick_zip(const uint4 inputs[most][vectors], uint32_t k, uint32_t op, float *__restrict value,
                           float p) {
  if constexpr (from + 1 < most) {
    if (k != from) return quick_zip<type, vectors, most, from + 1>(inputs, k, op, value, p);
  }
  switch (op) {
    RDNA_POINTWISE_ZIPS(QUICK_ZIP, QUICK_ZIP, pw32)
    default:
      return false;
  }
}

/* Puts the values into slot |k|, at least |from|, and leaves them as they are read back from there; or takes them. */
template <typename type, int vectors, int most, int from>
RDNA_DEVICE void keep_values(uint4 slots[most][vectors], uint32_t k, float *__restrict value) {
  if constexpr (from + 1 < most) {
    if (k != from) return keep_values<type, vectors, most, from + 1>(slots, k, value);
  }
#pragma unroll
  for (int v = 0; v < vectors; v++) {
    slots[from][v] = type::pack(value + v * type::IN_16);
    type::unpack(slots[from][v], value + v * type::IN_16);
  }
}
template <typename type, int vectors, int most, int from>
RDNA_DEVICE void take_values(const uint4 slots[most][vectors], uint32_t k, float *__restrict value) {
  if constexpr (from + 1 < most) {
    if (k != from) return take_values<type, vectors, most, from + 1>(slots, k, value);
  }
#pragma unroll
  for (int v = 0; v < vectors; v++) type::unpack(again(slots[from][v]), value + v * type::IN_16);
}

/* Runs all steps on |vectors| vectors of each of at most |most| inputs. |value| begins as input 0 and becomes the
 * result. With one vector steps may be any, with several they are quick. */
template <typename type, typename steps, int vectors, int most>
RDNA_DEVICE void run_steps(const fused_args &a, uint4 inputs[most][vectors], float *value) {
  constexpr int values = vectors * type::IN_16;
#pragma unroll
  for (int v = 0; v < vectors; v++) type::unpack(inputs[0][v], value + v * type::IN_16);
#pragma unroll 1
  for (uint32_t s = 0; s < a.steps; s++) {
    fused_step step = steps::at(arguments_again(a), s);
    uint32_t op = step.word & FUSED_OP_MASK, input = step.word >> FUSED_INPUT_SHIFT;
    bool first = step.word & FUSED_INPUT_FIRST;
    if (!(step.word & FUSED_IS_ZIP)) {
      bool done =
          type::BYTES == 4 ? close_map(op, value, values, step.p, step.q) : fast_map(op, value, values, step.p, step.q);
      if (done) continue;
      if (step.word & FUSED_IS_MOVE) {
        if (op == FUSED_KEEP) {
          keep_values<type, vectors, most, 0>(inputs, input, value);
        } else {
          take_values<type, vectors, most, 0>(inputs, input, value);
        }
        continue;
      }
      if constexpr (vectors == 1) {
        copy_vector<type>(value, step.word);
        other_map(op, value, values, step.p, step.q);
      }
    } else {
      bool done = (vectors > 1 || !first) && quick_zip<type, vectors, most, 0>(inputs, input, op, value, step.p);
      if constexpr (vectors == 1) {
        if (done) continue;
        float other[values];
        type::unpack(pick_input<most, 0>(inputs, input), other);
        copy_vector<type>(value, step.word);
        if (first) {
          under_branch();
#pragma unroll
          for (int j = 0; j < values; j++) {
            float before = value[j];
            value[j] = other[j], other[j] = before;
          }
        }
        other_zip(op, value, other, values, step.p, step.q);
      }
    }
  }
}

/* Loads FUSED_ROWS vectors of one column of each input; for rows past the end the last row is read again. |plain|: all
 * are whole vectors. */
template <typename type, bool plain>
RDNA_DEVICE void load_rows(const fused_args &a, const int32_t at[FUSED_ROWS][FUSED_FEW + 1],
                           const uint32_t tail[FUSED_ROWS], uint4 inputs[FUSED_FEW][FUSED_ROWS]) {
#pragma unroll
  for (int k = 0; k < FUSED_FEW; k++) {
    if ((uint32_t)k >= a.inputs) break;
    const void *data = a.operand[k + 1].data;
#pragma unroll
    for (int v = 0; v < FUSED_ROWS; v++) {
      inputs[k][v] = plain ? load_as<uint4>((const char *)data + (int64_t)at[v][k + 1] * type::BYTES)
                           : load_wide<type>(data, at[v][k + 1], a.vectors >> (k + 1) & 1, tail[v]);
    }
  }
}
template <typename type, typename steps>
RDNA_DEVICE void fused_few(const fused_args &a) {
  uint32_t i = group_id_x() * RDNA__FUSED_THREADS + thread_id(), column, row;
  if (i >= a.shape.count) return;
  int32_t at[FUSED_ROWS][FUSED_FEW + 1];
  fused_begin(&a, FUSED_FEW + 1, i, &column, &row, at[0]);
  uint32_t unit = row * a.shape.size[0] + column, tail[FUSED_ROWS], rows = 1;
  if (unit >= a.units) return;
  tail[0] = unit + 1 == a.units ? a.tail : 0;
#pragma unroll
  for (int v = 1; v < FUSED_ROWS; v++) {
    unit += a.shape.size[0];
    bool is = unit < a.units;
    if (is) rows = v + 1;
    tail[v] = unit + 1 == a.units ? a.tail : is ? 0 : tail[v - 1];
#pragma unroll
    for (int k = 0; k <= FUSED_FEW; k++) at[v][k] = at[v - 1][k] + (is ? a.operand[k].stride[1] : 0);
  }
  uint4 inputs[FUSED_FEW][FUSED_ROWS];
  bool plain = a.vectors == (2u << a.inputs) - 1 && a.tail == 0;
  if (plain) {
    load_rows<type, true>(a, at, tail, inputs);
  } else {
    load_rows<type, false>(a, at, tail, inputs);
  }
  float value[FUSED_ROWS * type::IN_16];
  run_steps<type, steps, FUSED_ROWS, FUSED_FEW>(a, inputs, value);
  void *to = arguments_again(a).operand[0].data;
#pragma unroll
  for (int v = 0; v < FUSED_ROWS; v++) {
    if ((uint32_t)v < rows) store_wide<type>(to, at[v][0], plain ? 0 : tail[v], value + v * type::IN_16);
  }
}

/* Loads thread |i|'s part of each input: a vector, or one value of each of as many rows as a vector has values. */
template <typename type>
RDNA_DEVICE void load_any(const fused_args &a, uint32_t i, uint4 inputs[RDNA_FUSED_MAX_INPUTS][1]) {
  constexpr int most = RDNA_FUSED_MAX_INPUTS;
  typedef typename type::stored stored;
  uint32_t column, row;
  int32_t at[most + 1];
  fused_begin(&a, most + 1, i, &column, &row, at);
  uint32_t unit = row * a.shape.size[0] + column, tail = unit + 1 == a.units ? a.tail : 0;
#pragma unroll
  for (int k = 0; k < most; k++) {
    const fused_args &b = arguments_again(a);
    if ((uint32_t)k >= b.inputs) break;
    const stored *from = (const stored *)b.operand[k + 1].data;
    if (b.wide) {
      if (unit < b.units) inputs[k][0] = load_wide<type>(from, at[k + 1], b.vectors >> (k + 1) & 1, tail);
      continue;
    }
    from += at[k + 1];
#pragma unroll
    for (int j = 0; j < type::IN_16; j++) {
      if (unit + j * b.shape.size[0] < b.units) set_value<type>(inputs[k][0], j, from[0]);
      from += b.operand[k + 1].stride[1];
    }
  }
}
template <typename type>
RDNA_DEVICE void store_any(const fused_args &a, uint32_t i, const float *value) {
  uint32_t column, row;
  int32_t at[1];
  fused_begin(&a, 1, i, &column, &row, at);
  uint32_t unit = row * a.shape.size[0] + column;
  if (a.wide) {
    if (unit < a.units) store_wide<type>(a.operand[0].data, at[0], unit + 1 == a.units ? a.tail : 0, value);
    return;
  }
  char *to = (char *)a.operand[0].data + (int64_t)at[0] * type::BYTES;
#pragma unroll
  for (int j = 0; j < type::IN_16; j++) {
    if (unit + j * a.shape.size[0] >= a.units) break;
    type::store(to, 0, value[j]);
    to += (int64_t)a.operand[0].stride[1] * type::BYTES;
  }
}
/* Takes any chain. Offsets are computed again for the output rather than kept: inputs and values fill the registers. */
template <typename type, typename steps>
RDNA_DEVICE void fused_any(const fused_args &a) {
  uint32_t i = group_id_x() * RDNA__FUSED_THREADS + thread_id();
  if (i >= a.shape.count) return;
  uint4 inputs[RDNA_FUSED_MAX_INPUTS][1] = {};
  float value[type::IN_16];
  load_any<type>(a, i, inputs);
  run_steps<type, steps, 1, RDNA_FUSED_MAX_INPUTS>(arguments_again(a), inputs, value);
  store_any<type>(arguments_again(a), group_id_x() * RDNA__FUSED_THREADS + thread_id(), value);
}

#define FUSED(type)                                                                    \
  STEP_OF(fused_##type);                                                               \
  STEP_OF(fused_any_##type);                                                           \
  RDNA_KERNEL_RESIDENT(RDNA__FUSED_THREADS, 4) fused_##type(struct fused_args a) {     \
    fused_few<type, step_of_fused_##type>(a);                                          \
  }                                                                                    \
  RDNA_KERNEL_RESIDENT(RDNA__FUSED_THREADS, 4) fused_any_##type(struct fused_args a) { \
    fused_any<type, step_of_fused_any_##type>(a);                                      \
  }
FUSED(f32)
FUSED(f16)
FUSED(bf16)
