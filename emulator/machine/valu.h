// What vector arithmetic shares. Private to emulator/machine.
#ifndef EMULATOR_MACHINE_VALU_H
#define EMULATOR_MACHINE_VALU_H

#include <immintrin.h>

#include "machine/wave.h"

enum { EMU_MXCSR_DEFAULT = 0x1f80 };  // round to nearest, denormals kept, no exception trapped

// Completes a decoded step of vector arithmetic; `pair` is the second half's of a VOPD. false: it has a modifier that
// is not executed.
bool emu__valu_prepare(const struct emu_isa *target, struct emu_step *step, struct emu_step *pair);

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

static inline uint64_t emu__pair(const uint32_t *value, int lane) {
  return value[lane] | (uint64_t)value[lane + EMU_HALF] << 32;
}
static inline void emu__set_pair(uint32_t *to, int lane, uint64_t value) {
  to[lane] = (uint32_t)value;
  to[lane + EMU_HALF] = (uint32_t)(value >> 32);
}

// Tables of actions are written with these.
#define EMU_ALU(name, function) {.op = EMU_##name, .klass = EMU_CLASS_VALU, .lanes = function}
#define EMU_ALU_SAT(name, function) {.op = EMU_##name, .klass = EMU_CLASS_VALU, .lanes = function, .saturates = true}
#define EMU_ALU_F(name, function, which) \
  {.op = EMU_##name, .klass = EMU_CLASS_VALU, .floats = EMU_FLOAT_##which, .lanes = function}
#define EMU_ALU_C(name, function, which, what) \
  {.op = EMU_##name, .klass = EMU_CLASS_##what, .floats = EMU_FLOAT_##which, .lanes = function}

#endif
