// What vector arithmetic shares. Private to emulator/machine.
#ifndef EMULATOR_MACHINE_VALU_H
#define EMULATOR_MACHINE_VALU_H

#include <immintrin.h>

#include "machine/wave.h"

enum { EMU_MXCSR_DEFAULT = 0x1f80 };  // round to nearest, denormals kept, no exception trapped

// Completes a decoded step of vector arithmetic; `pair` is the second half's of a VOPD. false: it has a modifier that
// is not executed.
bool emu__valu_prepare(const struct emu_isa *target, unsigned lanes, struct emu_step *step, struct emu_step *pair);

// The instruction's output multiplier and clamp on a float result of 32 lanes.
void emu__valu_finish(const struct emu_wave *wave, const struct emu_inst *inst, uint32_t *value);

// The lane that DPP reads for `lane`, both counted in the wave. *inside: there is one.
unsigned emu__dpp_lane(const struct emu_inst *inst, unsigned lane, bool *inside);
// Whether DPP reads from the other half of a wave of 64.
static inline bool emu__dpp_crosses(const struct emu_inst *inst) {
  return inst->lanes == EMU_LANES_DPP16 &&
         ((inst->dpp_ctrl >= EMU_DPP_WAVE_SHL && inst->dpp_ctrl <= EMU_DPP_WAVE_ROR) ||
          inst->dpp_ctrl == EMU_DPP_ROW_BCAST15 || inst->dpp_ctrl == EMU_DPP_ROW_BCAST31);
}

// Binary16; to it, rounding as MXCSR says.
static inline float emu__f16_to_f32(uint16_t bits) { return _cvtsh_ss(bits); }
static inline uint16_t emu__f32_to_f16(float value) { return _cvtss_sh(value, _MM_FROUND_CUR_DIRECTION); }

// Rounded once: to odd in between, so that the second rounding cannot see a tie that is none.
static inline uint16_t emu__f64_to_f16(double value) {
  float f = (float)value;
  uint32_t bits = emu__bits32(f);
  double back = f;
  if (back != value && value == value) {
    if ((emu__bits64(back) & INT64_MAX) > (emu__bits64(value) & INT64_MAX)) bits--;
    bits |= 1;
  }
  return emu__f32_to_f16(emu__f32(bits));
}

// The upper half of a float's bits, rounded to the nearest even.
static inline uint32_t emu__bfloat_of(uint32_t bits) {
  if (emu__is_nan32(bits)) return bits >> 16 | 0x40;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

// The NaN that an operation returns: its first NaN source made quiet, else the default.
static inline uint32_t emu__nan32(uint32_t a, uint32_t b, uint32_t c) {
  return emu__is_nan32(a)   ? a | 0x400000
         : emu__is_nan32(b) ? b | 0x400000
         : emu__is_nan32(c) ? c | 0x400000
                            : 0xffc00000;
}
static inline uint32_t emu__nan16(uint32_t a, uint32_t b, uint32_t c) {
  return emu__is_nan16(a)   ? (a & 0xffff) | 0x200
         : emu__is_nan16(b) ? (b & 0xffff) | 0x200
         : emu__is_nan16(c) ? (c & 0xffff) | 0x200
                            : 0xfe00;
}
static inline uint64_t emu__nan64(uint64_t a, uint64_t b, uint64_t c) {
  const uint64_t quiet = UINT64_C(1) << 51;
  return emu__is_nan64(a)   ? a | quiet
         : emu__is_nan64(b) ? b | quiet
         : emu__is_nan64(c) ? c | quiet
                            : 0xfff8000000000000;
}

// Lanes of a register seen as floats.
typedef float emu_f32 __attribute__((may_alias));

// 32 lanes, in whole vectors: a copy in smaller pieces would stall whoever loads them next.
static inline void emu__copy(uint32_t *to, const void *from) {
  for (int i = 0; i < EMU_HALF / 8; i++) {
    _mm256_storeu_si256((__m256i *)to + i, _mm256_loadu_si256((const __m256i *)from + i));
  }
}

// The lanes that are on.
static inline void emu__store_masked(uint32_t *to, const uint32_t *from, uint32_t exec) {
  EMU_EACH to[l] = exec >> l & 1 ? from[l] : to[l];
}

// A bit for each lane whose value is negative, as EMU_EACH makes it with -(uint32_t)condition.
static inline uint32_t emu__mask_of(const uint32_t *value) {
  uint32_t mask = 0;
  for (int i = 0; i < EMU_HALF / 8; i++)
    mask |= (uint32_t)_mm256_movemask_ps(_mm256_loadu_ps((const float *)value + 8 * i)) << 8 * i;
  return mask;
}

static inline uint64_t emu__pair(const uint32_t *value, int lane) {
  return value[lane] | (uint64_t)value[lane + EMU_HALF] << 32;
}
static inline void emu__set_pair(uint32_t *to, int lane, uint64_t value) {
  to[lane] = (uint32_t)value;
  to[lane + EMU_HALF] = (uint32_t)(value >> 32);
}

// Values of two dwords, four of eight lanes at a time: lanes 0, 1, 4 and 5, and the others.
typedef uint64_t emu_fours __attribute__((vector_size(32)));
struct emu_pairs {
  emu_fours first, second;
};
static inline struct emu_pairs emu__pairs_of(__m256i low, __m256i high) {
  return (struct emu_pairs){(emu_fours)_mm256_unpacklo_epi32(low, high), (emu_fours)_mm256_unpackhi_epi32(low, high)};
}
// Of lanes l to l + 7.
static inline struct emu_pairs emu__pairs(const uint32_t *value, int l) {
  return emu__pairs_of(_mm256_loadu_si256((const __m256i *)(value + l)),
                       _mm256_loadu_si256((const __m256i *)(value + EMU_HALF + l)));
}
// One dword each, with zeros above.
static inline struct emu_pairs emu__extended(const uint32_t *value, int l) {
  return emu__pairs_of(_mm256_loadu_si256((const __m256i *)(value + l)), _mm256_setzero_si256());
}
static inline void emu__put_pairs(uint32_t *to, int l, struct emu_pairs v) {
  __m256 a = (__m256)v.first, b = (__m256)v.second;
  _mm256_storeu_ps((float *)to + l, _mm256_shuffle_ps(a, b, 0x88));
  _mm256_storeu_ps((float *)to + EMU_HALF + l, _mm256_shuffle_ps(a, b, 0xdd));
}

// ---- an instruction on plain operands: one dword from each source, no modifier, one dword out

static inline const uint32_t *emu__plain_source(const struct emu_wave *wave, const struct emu_source *source,
                                                unsigned half, uint32_t *room) {
  if (source->kind == EMU_OPERAND_VECTOR) return emu__vector(wave, source->value, half * EMU_HALF);
  uint32_t value = source->kind == EMU_OPERAND_CONSTANT ? source->value
                   : source->kind == EMU_OPERAND_SCALAR ? wave->s[source->value]
                                                        : emu__special_value(wave, source->value, 0);
  EMU_EACH room[l] = value;
  return room;
}

static inline bool emu__governed(const struct emu_wave *wave, const struct emu_step *step) {
  return step->floats & wave->unusual;
}

// Whether a step's operands are rows of 32 lanes, all of which are on, and MODE is as usual: so it is mostly.
static inline bool emu__is_rows(const struct emu_wave *wave, const struct emu_step *step) {
  return __builtin_expect(step->vectors && wave->s[EMU_EXEC_LO] == UINT32_MAX && !emu__governed(wave, step), 1);
}
// Field by field: a copy of the whole would wait for them.
__attribute__((always_inline)) static inline void emu__rows_of(const struct emu_wave *wave, const struct emu_step *step,
                                                               const struct emu_source *sources, unsigned count,
                                                               unsigned dst, struct emu_half_wave *x) {
  x->d = wave->v + (size_t)dst * EMU_HALF;
  for (unsigned i = 0; i < count; i++) x->s[i] = wave->v + (size_t)sources[i].value * EMU_HALF;
  x->exec = UINT32_MAX;
  x->mask_in = wave->s[EMU_VCC_LO];
  x->mask_out = 0;
  x->mode = wave->mode;
  x->half = 0;
  x->inst = step->inst;
}
__attribute__((always_inline)) static inline void emu__rows(const struct emu_wave *wave, const struct emu_step *step,
                                                            unsigned count, struct emu_half_wave *x) {
  emu__rows_of(wave, step, step->src, count, step->dst, x);
}
// Those of the second half of a VOPD.
__attribute__((always_inline)) static inline void emu__second_rows(const struct emu_wave *wave,
                                                                   const struct emu_step *step, unsigned count,
                                                                   struct emu_half_wave *x) {
  emu__rows_of(wave, step, step->also_src, count, step->also_dst, x);
}

// `lanes` and `sources` may be known to the compiler, which then makes one function of it all.
__attribute__((always_inline)) static inline void emu__run_plain(struct emu_wave *wave, const struct emu_step *step,
                                                                 emu_lanes_fn *lanes, unsigned sources) {
  uint32_t room[3][EMU_HALF] __attribute__((aligned(64))), out[EMU_HALF] __attribute__((aligned(64)));
  if (__builtin_expect(emu__governed(wave, step), 0)) {
    emu__valu_run(wave, step);
    return;
  }
  for (unsigned half = 0; half < wave->lanes / EMU_HALF; half++) {
    struct emu_half_wave x;
    x.exec = wave->s[EMU_EXEC_LO + half];
    if (!x.exec) continue;
    x.inst = step->inst;
    x.mode = wave->mode;
    x.half = half;
    for (unsigned i = 0; i < sources; i++) x.s[i] = emu__plain_source(wave, &step->src[i], half, room[i]);
    uint32_t *to = emu__vector(wave, step->dst, half * EMU_HALF);
    x.d = x.exec == UINT32_MAX ? to : out;
    lanes(&x);
    if (x.exec != UINT32_MAX) emu__store_masked(to, out, x.exec);
  }
}

// ---- the same where operands may have two dwords, and masks go in or out

static inline const uint32_t *emu__whole_source(const struct emu_wave *wave, const struct emu_step *step, unsigned i,
                                                unsigned half, uint32_t *room) {
  const struct emu_source *source = &step->src[i];
  if (source->kind == EMU_OPERAND_VECTOR) {
    const uint32_t *from = emu__vector(wave, source->value, half * EMU_HALF);
    if (source->dwords == 1 || wave->lanes == EMU_HALF) return from;
    emu__copy(room, from);  // the operation wants the second dword behind the first
    emu__copy(room + EMU_HALF, from + wave->lanes);
    return room;
  }
  for (unsigned k = 0; k < source->dwords; k++) {
    uint32_t value = source->kind == EMU_OPERAND_CONSTANT ? (uint32_t)(step->inst->src[i].value >> 32 * k)
                     : source->kind != EMU_OPERAND_SCALAR ? emu__special_value(wave, source->value, k)
                     : source->value == EMU_NULL          ? 0
                                                          : wave->s[source->value + k];
    EMU_EACH room[k * EMU_HALF + (unsigned)l] = value;
  }
  return room;
}

static inline uint32_t emu__read_mask(const struct emu_wave *wave, const struct emu_inst *inst, unsigned half) {
  const struct emu_operand *o = inst->src[3].kind ? &inst->src[3] : &inst->src[2];
  if (o->kind != EMU_OPERAND_SCALAR || o->type != EMU_MASK || o->reg == EMU_NULL) return 0;
  return wave->s[o->reg + half];
}

static inline void emu__splat(uint32_t *to, uint32_t value) {
  const __m256i v = _mm256_set1_epi32((int)value);
  for (int i = 0; i < EMU_HALF / 8; i++) _mm256_store_si256((__m256i *)to + i, v);
}
// Of a step of `rows`.
static inline const uint32_t *emu__row_source(const struct emu_wave *wave, const struct emu_step *step, unsigned i,
                                              uint32_t *room) {
  const struct emu_source *source = &step->src[i];
  if (source->kind == EMU_OPERAND_VECTOR) return wave->v + (size_t)source->value * EMU_HALF;
  bool constant = source->kind == EMU_OPERAND_CONSTANT;
  emu__splat(room, constant ? source->value : wave->s[source->value]);
  if (source->dwords == 2) {
    uint32_t high = constant ? (uint32_t)(step->inst->src[i].value >> 32) : wave->s[source->value + 1];
    emu__splat(room + EMU_HALF, !constant && source->value == EMU_NULL ? 0 : high);
  }
  return room;
}

__attribute__((always_inline)) static inline void emu__run_whole(struct emu_wave *wave, const struct emu_step *step,
                                                                 emu_lanes_fn *lanes, unsigned sources) {
  uint32_t room[3][2 * EMU_HALF] __attribute__((aligned(64))), out[2 * EMU_HALF] __attribute__((aligned(64)));
  const struct emu_inst *inst = step->inst;
  struct emu_half_wave x;
  uint32_t masks[2] = {0, 0};
  unsigned halves = wave->lanes / EMU_HALF;
  if (__builtin_expect(emu__governed(wave, step), 0)) {
    emu__valu_run(wave, step);
    return;
  }
  for (unsigned half = 0; half < halves; half++) {
    x.exec = wave->s[EMU_EXEC_LO + half];
    if (!x.exec) continue;
    x.inst = inst;
    x.mode = wave->mode;
    x.half = half;
    x.d = out;
    for (unsigned i = 0; i < sources; i++) x.s[i] = emu__whole_source(wave, step, i, half, room[i]);
    x.mask_in = emu__read_mask(wave, inst, half);
    x.mask_out = 0;
    lanes(&x);
    masks[half] = x.mask_out & x.exec;
    for (unsigned k = 0; k < inst->dst.dwords; k++) {
      uint32_t *to = emu__vector(wave, inst->dst.reg + k, half * EMU_HALF);
      if (x.exec == UINT32_MAX) {
        emu__copy(to, out + k * EMU_HALF);
      } else {
        emu__store_masked(to, out + k * EMU_HALF, x.exec);
      }
    }
  }
  if (inst->sdst.kind == EMU_OPERAND_SCALAR && inst->sdst.reg != EMU_NULL) {
    for (unsigned half = 0; half < halves; half++) wave->s[inst->sdst.reg + half] = masks[half];
  }
  if (!step->to_exec) return;
  for (unsigned half = 0; half < halves; half++) wave->s[EMU_EXEC_LO + half] = masks[half];
}

// Both ways, for an operation of so many sources.
#define EMU_LANES __attribute__((always_inline)) static inline void  // so that it has no call
#define EMU_PLAIN(name, sources) EMU_PLAIN_ROWS(name, sources, (name(&x), true))
// `rows` does the arithmetic on rows, x, and is true; or it does nothing and is false where `name` has to look. What is
// not of rows stands apart, so that the usual function is short and needs no room on the stack.
#define EMU_PLAIN_ROWS(name, sources, rows)                                                        \
  __attribute__((noinline)) static void name##_any(struct emu_wave *w, const struct emu_step *s) { \
    emu__run_plain(w, s, name, sources);                                                           \
  }                                                                                                \
  static void name##_plain(struct emu_wave *w, const struct emu_step *s) {                         \
    if (emu__is_rows(w, s)) {                                                                      \
      struct emu_half_wave x;                                                                      \
      emu__rows(w, s, sources, &x);                                                                \
      if (rows) return;                                                                            \
    }                                                                                              \
    name##_any(w, s);                                                                              \
  }
// `name` reads all before it writes: the result may be a source's register.
#define EMU_WHOLE(name, sources)                                                                         \
  __attribute__((noinline)) static void name##_whole_any(struct emu_wave *w, const struct emu_step *s) { \
    emu__run_whole(w, s, name, sources);                                                                 \
  }                                                                                                      \
  static void name##_whole(struct emu_wave *w, const struct emu_step *s) {                               \
    uint32_t room[sources][2 * EMU_HALF] __attribute__((aligned(64)));                                   \
    if (!s->rows || w->s[EMU_EXEC_LO] != UINT32_MAX || emu__governed(w, s)) {                            \
      name##_whole_any(w, s);                                                                            \
      return;                                                                                            \
    }                                                                                                    \
    struct emu_half_wave x;                                                                              \
    emu__rows_of(w, s, s->src, 0, s->dst, &x);                                                           \
    for (unsigned i = 0; i < sources; i++) x.s[i] = emu__row_source(w, s, i, room[i]);                   \
    x.mask_in = emu__read_mask(w, s->inst, 0);                                                           \
    name(&x);                                                                                            \
    if (s->inst->sdst.kind == EMU_OPERAND_SCALAR) emu__scalar_write(w, s->inst->sdst.reg, x.mask_out);   \
  }

// The VOPD of these two; NULL: there is no function of its own.
emu_step_fn *emu__float_pair(emu_lanes_fn *first, emu_lanes_fn *second);

// Both read before either writes.
__attribute__((always_inline)) static inline void emu__run_dual(struct emu_wave *wave, const struct emu_step *step,
                                                                emu_lanes_fn *one, unsigned one_sources,
                                                                emu_lanes_fn *two, unsigned two_sources) {
  uint32_t first[EMU_HALF] __attribute__((aligned(64))), second[EMU_HALF] __attribute__((aligned(64)));
  uint32_t room[3][EMU_HALF] __attribute__((aligned(64)));
  bool odd_mode = emu__governed(wave, step);
  if (odd_mode) _mm_setcsr(wave->mxcsr[0]);
  for (unsigned half = 0; half < wave->lanes / EMU_HALF; half++) {
    struct emu_half_wave x = {
        .d = first, .exec = wave->s[EMU_EXEC_LO + half], .mode = wave->mode, .half = half, .inst = step->inst};
    x.mask_in = wave->s[EMU_VCC_LO + half];
    uint32_t *to = emu__vector(wave, step->dst, half * EMU_HALF),
             *also = emu__vector(wave, step->also_dst, half * EMU_HALF);
    for (unsigned i = 0; i < one_sources; i++) x.s[i] = emu__plain_source(wave, &step->src[i], half, room[i]);
    one(&x);
    for (unsigned i = 0; i < two_sources; i++) x.s[i] = emu__plain_source(wave, &step->also_src[i], half, room[i]);
    x.d = x.exec == UINT32_MAX ? also : second;
    two(&x);
    if (__builtin_expect(x.exec == UINT32_MAX, 1)) {
      emu__copy(to, first);
      continue;
    }
    emu__store_masked(to, first, x.exec);
    emu__store_masked(also, second, x.exec);
  }
  if (odd_mode) _mm_setcsr(EMU_MXCSR_DEFAULT);
}

// Tables of actions are written with these.
#define EMU_ALU(name, function) {.op = EMU_##name, .klass = EMU_CLASS_VALU, .lanes = function}
#define EMU_ALU_SAT(name, function) {.op = EMU_##name, .klass = EMU_CLASS_VALU, .lanes = function, .saturates = true}
#define EMU_ALU_PLAIN(name, function) \
  {.op = EMU_##name, .klass = EMU_CLASS_VALU, .lanes = function, .plain = function##_plain}
#define EMU_ALU_SAT_PLAIN(name, function) \
  {.op = EMU_##name, .klass = EMU_CLASS_VALU, .lanes = function, .plain = function##_plain, .saturates = true}
#define EMU_ALU_WHOLE(name, function) \
  {.op = EMU_##name, .klass = EMU_CLASS_VALU, .lanes = function, .whole = function##_whole}
#define EMU_ALU_SAT_WHOLE(name, function) \
  {.op = EMU_##name, .klass = EMU_CLASS_VALU, .lanes = function, .whole = function##_whole, .saturates = true}
#define EMU_ALU_F_PLAIN(name, function, which) \
  {.op = EMU_##name, .klass = EMU_CLASS_VALU, .floats = EMU_FLOAT_##which, .lanes = function, .plain = function##_plain}
#define EMU_ALU_F(name, function, which) \
  {.op = EMU_##name, .klass = EMU_CLASS_VALU, .floats = EMU_FLOAT_##which, .lanes = function}
#define EMU_ALU_C(name, function, which, what) \
  {.op = EMU_##name, .klass = EMU_CLASS_##what, .floats = EMU_FLOAT_##which, .lanes = function}

#endif
