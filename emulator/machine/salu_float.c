// Scalar arithmetic in floats, and transcendental functions of scalar registers: each is what its vector operation
// does, on one lane.
#include "machine/valu.h"

#define FLOATS(X)                               \
  X(S_CEIL_F32, V_CEIL_F32)                     \
  X(S_CEIL_F16, V_CEIL_F16)                     \
  X(S_FLOOR_F32, V_FLOOR_F32)                   \
  X(S_FLOOR_F16, V_FLOOR_F16)                   \
  X(S_TRUNC_F32, V_TRUNC_F32)                   \
  X(S_TRUNC_F16, V_TRUNC_F16)                   \
  X(S_RNDNE_F32, V_RNDNE_F32)                   \
  X(S_RNDNE_F16, V_RNDNE_F16)                   \
  X(S_CVT_F32_I32, V_CVT_F32_I32)               \
  X(S_CVT_F32_U32, V_CVT_F32_U32)               \
  X(S_CVT_I32_F32, V_CVT_I32_F32)               \
  X(S_CVT_U32_F32, V_CVT_U32_F32)               \
  X(S_CVT_F16_F32, V_CVT_F16_F32)               \
  X(S_CVT_F32_F16, V_CVT_F32_F16)               \
  X(S_CVT_HI_F32_F16, V_CVT_F32_F16)            \
  X(S_ADD_F32, V_ADD_F32)                       \
  X(S_ADD_F16, V_ADD_F16)                       \
  X(S_SUB_F32, V_SUB_F32)                       \
  X(S_SUB_F16, V_SUB_F16)                       \
  X(S_MIN_F32, V_MIN_F32)                       \
  X(S_MIN_F16, V_MIN_F16)                       \
  X(S_MAX_F32, V_MAX_F32)                       \
  X(S_MAX_F16, V_MAX_F16)                       \
  X(S_MINIMUM_F32, V_MINIMUM_F32)               \
  X(S_MINIMUM_F16, V_MINIMUM_F16)               \
  X(S_MAXIMUM_F32, V_MAXIMUM_F32)               \
  X(S_MAXIMUM_F16, V_MAXIMUM_F16)               \
  X(S_MUL_F32, V_MUL_F32)                       \
  X(S_MUL_F16, V_MUL_F16)                       \
  X(S_FMAC_F32, V_FMAC_F32)                     \
  X(S_FMAC_F16, V_FMAC_F16)                     \
  X(S_FMAAK_F32, V_FMAAK_F32)                   \
  X(S_FMAMK_F32, V_FMAMK_F32)                   \
  X(S_CVT_PK_RTZ_F16_F32, V_CVT_PK_RTZ_F16_F32) \
  X(S_CMP_LT_F32, V_CMP_LT_F32)                 \
  X(S_CMP_EQ_F32, V_CMP_EQ_F32)                 \
  X(S_CMP_LE_F32, V_CMP_LE_F32)                 \
  X(S_CMP_GT_F32, V_CMP_GT_F32)                 \
  X(S_CMP_LG_F32, V_CMP_LG_F32)                 \
  X(S_CMP_GE_F32, V_CMP_GE_F32)                 \
  X(S_CMP_O_F32, V_CMP_O_F32)                   \
  X(S_CMP_U_F32, V_CMP_U_F32)                   \
  X(S_CMP_NGE_F32, V_CMP_NGE_F32)               \
  X(S_CMP_NLG_F32, V_CMP_NLG_F32)               \
  X(S_CMP_NGT_F32, V_CMP_NGT_F32)               \
  X(S_CMP_NLE_F32, V_CMP_NLE_F32)               \
  X(S_CMP_NEQ_F32, V_CMP_NEQ_F32)               \
  X(S_CMP_NLT_F32, V_CMP_NLT_F32)               \
  X(S_CMP_LT_F16, V_CMP_LT_F16)                 \
  X(S_CMP_EQ_F16, V_CMP_EQ_F16)                 \
  X(S_CMP_LE_F16, V_CMP_LE_F16)                 \
  X(S_CMP_GT_F16, V_CMP_GT_F16)                 \
  X(S_CMP_LG_F16, V_CMP_LG_F16)                 \
  X(S_CMP_GE_F16, V_CMP_GE_F16)                 \
  X(S_CMP_O_F16, V_CMP_O_F16)                   \
  X(S_CMP_U_F16, V_CMP_U_F16)                   \
  X(S_CMP_NGE_F16, V_CMP_NGE_F16)               \
  X(S_CMP_NLG_F16, V_CMP_NLG_F16)               \
  X(S_CMP_NGT_F16, V_CMP_NGT_F16)               \
  X(S_CMP_NLE_F16, V_CMP_NLE_F16)               \
  X(S_CMP_NEQ_F16, V_CMP_NEQ_F16)               \
  X(S_CMP_NLT_F16, V_CMP_NLT_F16)               \
  X(V_S_EXP_F32, V_EXP_F32)                     \
  X(V_S_EXP_F16, V_EXP_F16)                     \
  X(V_S_LOG_F32, V_LOG_F32)                     \
  X(V_S_LOG_F16, V_LOG_F16)                     \
  X(V_S_RCP_F32, V_RCP_F32)                     \
  X(V_S_RCP_F16, V_RCP_F16)                     \
  X(V_S_RSQ_F32, V_RSQ_F32)                     \
  X(V_S_RSQ_F16, V_RSQ_F16)                     \
  X(V_S_SQRT_F32, V_SQRT_F32)                   \
  X(V_S_SQRT_F16, V_SQRT_F16)

static const uint16_t vector_of[EMU_OP_COUNT] = {
#define X(scalar, vector) [EMU_##scalar] = EMU_##vector,
    FLOATS(X)
#undef X
};

bool emu__is_scalar_float(unsigned op) { return vector_of[op]; }
bool emu__scalar_float_compares(unsigned op) { return op >= EMU_S_CMP_LT_F32 && op <= EMU_S_CMP_NLT_F16; }

static uint32_t source(const struct emu_wave *w, const struct emu_operand *o) {
  bool half = o->type == EMU_F16 || o->type == EMU_B16;
  uint32_t v = emu__scalar_read(w, o), sign = half ? 0x8000 : 0x80000000u;
  if (half) v &= 0xffff;
  if (o->abs) v &= ~sign;
  return o->neg ? v ^ sign : v;
}

static uint32_t flush_half(uint32_t bits) { return bits & 0x7c00 ? bits : bits & 0xfc00; }

static void run(struct emu_wave *w, const struct emu_step *step) {
  const struct emu_inst *inst = step->inst;
  bool halves = w->unusual & EMU_FLOAT_64, flushes_in = halves && !(w->mode >> 6 & 1);
  const struct emu_action *action = emu__action_of(w->group->run->target, (enum emu_op)vector_of[inst->op]);
  uint32_t from[3][EMU_HALF] __attribute__((aligned(64))) = {{0}}, to[EMU_HALF] __attribute__((aligned(64)));
  bool accumulates = inst->op == EMU_S_FMAC_F32 || inst->op == EMU_S_FMAC_F16;
  struct emu_half_wave x = {
      .d = to, .s = {from[0], from[1], from[2]}, .exec = UINT32_MAX, .mode = w->mode, .inst = inst};
  for (unsigned i = 0; i < 3; i++) {
    const struct emu_operand *o = i == 2 && accumulates ? &inst->dst : &inst->src[i];
    uint32_t v = o->kind ? source(w, o) : 0;
    if (inst->op == EMU_S_CVT_HI_F32_F16) v >>= 16;
    if (flushes_in && (o->type == EMU_F16 || o->type == EMU_B16)) v = flush_half(v);
    EMU_EACH from[i][l] = v;
  }
  bool odd_mode = action->floats & w->unusual;
  if (odd_mode) _mm_setcsr(w->mxcsr[action->floats == EMU_FLOAT_32 ? 0 : 1]);
  action->lanes(&x);
  emu__valu_finish(w, inst, to);
  if (odd_mode) _mm_setcsr(EMU_MXCSR_DEFAULT);
  if (halves && !(w->mode >> 7 & 1) && inst->dst.type == EMU_F16 && action->floats) to[0] = flush_half(to[0]);
  if (emu__scalar_float_compares(inst->op)) {
    w->scc = x.mask_out & 1;
  } else {
    emu__scalar_write(w, inst->dst.reg, inst->dst.type == EMU_F16 ? to[0] & 0xffff : to[0]);
  }
}

const struct emu_action emu__scalar_float_actions[] = {
#define X(scalar, vector) {.op = EMU_##scalar, .klass = EMU_CLASS_SALU, .run = run},
    FLOATS(X)
#undef X
        {0}};
