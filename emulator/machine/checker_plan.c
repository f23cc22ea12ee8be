// What each opcode means to the checker.
#include "machine/checker_state.h"

static void add_operand(struct emu_set *set, const struct emu_operand *o) {
  if (o->kind == EMU_OPERAND_SPECIAL && o->reg == EMU_SCC) emu__set_put(set, EMU_SET_SCC, true);
  if (o->kind != EMU_OPERAND_VECTOR && o->kind != EMU_OPERAND_SCALAR) return;
  if (o->kind == EMU_OPERAND_SCALAR && o->reg == EMU_NULL) return;
  unsigned first = o->kind == EMU_OPERAND_VECTOR ? o->reg : EMU_SET_SCALAR + o->reg;
  for (unsigned k = 0; k < o->dwords; k++) emu__set_put(set, first + k, true);
}

// Plain instructions on 32 or 64 bits.
static uint8_t bits_rule(unsigned op) {
  switch (op) {
    case EMU_V_NOT_B32:
      return EMU_RULE_MOVE;
    case EMU_V_AND_B32:
      return EMU_RULE_AND;
    case EMU_V_OR_B32:
      return EMU_RULE_OR;
    case EMU_V_XOR_B32:
    case EMU_V_XNOR_B32:
      return EMU_RULE_XOR;
    case EMU_V_ADD_NC_U32:
    case EMU_V_SUB_NC_U32:
    case EMU_V_SUBREV_NC_U32:
    case EMU_V_ADD3_U32:
    case EMU_V_MUL_LO_U32:
    case EMU_V_ADD_CO_U32:
    case EMU_V_SUB_CO_U32:
    case EMU_V_SUBREV_CO_U32:
    case EMU_V_ADD_NC_U16:
    case EMU_V_SUB_NC_U16:
    case EMU_V_SUBREV_NC_U16:
    case EMU_V_MAD_LEGACY_U16:
    case EMU_V_MUL_LO_U16:
    case EMU_V_MAD_U16:
      return EMU_RULE_LEFT;
    case EMU_V_MUL_U32_U24:
    case EMU_V_MUL_I32_I24:
    case EMU_V_MAD_U32_U24:
    case EMU_V_MAD_I32_I24:
      return EMU_RULE_LEFT_24;
    case EMU_V_LSHLREV_B32:
    case EMU_V_LSHRREV_B32:
    case EMU_V_ASHRREV_I32:
    case EMU_V_LSHLREV_B16:
    case EMU_V_LSHRREV_B16:
    case EMU_V_ASHRREV_I16:
    case EMU_V_LSHLREV_B64:
    case EMU_V_LSHRREV_B64:
    case EMU_V_ASHRREV_I64:
    case EMU_V_BFE_U32:
    case EMU_V_BFE_I32:
    case EMU_V_BFREV_B32:
    case EMU_V_ALIGNBIT_B32:
    case EMU_V_ALIGNBYTE_B32:
      return EMU_RULE_SHIFT;
    case EMU_V_BFI_B32:
      return EMU_RULE_BFI;
    case EMU_V_PERM_B32:
      return EMU_RULE_PERM;
    case EMU_V_AND_OR_B32:
      return EMU_RULE_AND_OR;
    case EMU_V_OR3_B32:
      return EMU_RULE_OR3;
    case EMU_V_XOR3_B32:
      return EMU_RULE_XOR;
    case EMU_V_LSHL_OR_B32:
      return EMU_RULE_SHIFT_OR;
    case EMU_V_LSHL_ADD_U32:
    case EMU_V_ADD_LSHL_U32:
      return EMU_RULE_SHIFT_LEFT;
    case EMU_V_MAD_U64_U32:
    case EMU_V_MAD_I64_I32:
      return EMU_RULE_MAD64;
    default:
      return EMU_RULE_ANY;
  }
}

static uint8_t vector_rule(const struct emu_inst *inst, unsigned op) {
  bool packed = inst->format == EMU_VOP3P, plain = inst->lanes == EMU_LANES_PLAIN;
  bool compares = inst->sdst.kind && !inst->dst.kind;
  if (compares) return EMU_RULE_COMPARE;
  switch (op) {
    case EMU_V_MOV_B32:
    case EMU_V_MOV_B16:
      return EMU_RULE_MOVE;
    case EMU_V_MOV_B64:
    case EMU_V_ACCVGPR_MOV_B32:
    case EMU_V_ACCVGPR_READ_B32:
    case EMU_V_ACCVGPR_WRITE_B32:
      return EMU_RULE_MOVE;
    case EMU_V_PK_MOV_B32:
      return EMU_RULE_PAIR;
    case EMU_V_PK_FMA_F32:
    case EMU_V_PK_MUL_F32:
    case EMU_V_PK_ADD_F32:
      return EMU_RULE_WORDS;
    case EMU_V_PACK_B32_F16:
      return EMU_RULE_PACK;
    case EMU_V_CNDMASK_B32:
    case EMU_V_CNDMASK_B16:
      return plain ? EMU_RULE_SELECT : EMU_RULE_ANY;
    case EMU_V_CVT_F32_UBYTE0:
    case EMU_V_CVT_F32_UBYTE1:
    case EMU_V_CVT_F32_UBYTE2:
    case EMU_V_CVT_F32_UBYTE3:
    case EMU_V_CVT_F32_FP8:
    case EMU_V_CVT_F32_BF8:
      return plain ? EMU_RULE_BYTE : EMU_RULE_ANY;
    case EMU_V_DOT2_F32_F16:
    case EMU_V_DOT2_F32_BF16:
    case EMU_V_DOT2_I32_I16:
    case EMU_V_DOT2_U32_U16:
    case EMU_V_DOT4_I32_IU8:
    case EMU_V_DOT4_I32_I8:
    case EMU_V_DOT4_U32_U8:
    case EMU_V_DOT8_I32_IU4:
    case EMU_V_DOT8_I32_I4:
    case EMU_V_DOT8_U32_U4:
    case EMU_V_FMA_MIX_F32:
    case EMU_V_FMA_MIXLO_F16:
    case EMU_V_FMA_MIXHI_F16:
    case EMU_V_MAD_MIX_F32:
    case EMU_V_MAD_MIXLO_F16:
    case EMU_V_MAD_MIXHI_F16:
      return EMU_RULE_ANY;
    case EMU_V_PK_FMAC_F16:
      return EMU_RULE_HALVES;
    default:
      break;
  }
  if (packed) return EMU_RULE_HALVES;
  if (inst->clamp) return EMU_RULE_ANY;  // a result that saturates depends on all bits
  uint8_t rule = bits_rule(op);
  if (plain || rule == EMU_RULE_XOR || rule == EMU_RULE_LEFT) return rule;
  // of another lane or a part of a register only the undefined bits are at hand, not the values
  return rule == EMU_RULE_AND || rule == EMU_RULE_OR ? EMU_RULE_XOR : EMU_RULE_ANY;
}

// What a scalar operation does to undefined bits and to SCC; without a row, any undefined bit makes all undefined.
struct scalar_rule {
  bool listed;
  uint8_t rule, scc;
};
#define ONE(op, rule_, scc_) [EMU_##op] = {true, EMU_RULE_##rule_, EMU_SCC_##scc_},
#define BOTH(op, rule_, scc_) ONE(op##_B32, rule_, scc_) ONE(op##_B64, rule_, scc_)
// clang-format off
static const struct scalar_rule scalar_rules[EMU_OP_COUNT] = {
    BOTH(S_MOV, MOVE, KEPT)
    BOTH(S_BREV, PLACED, KEPT)
    ONE(S_SEXT_I32_I8, PLACED, KEPT)
    ONE(S_SEXT_I32_I16, PLACED, KEPT)
    ONE(S_BITREPLICATE_B64_B32, PLACED, KEPT)
    ONE(S_PACK_LL_B32_B16, PLACED, KEPT)
    ONE(S_PACK_LH_B32_B16, PLACED, KEPT)
    ONE(S_PACK_HH_B32_B16, PLACED, KEPT)
    ONE(S_PACK_HL_B32_B16, PLACED, KEPT)
    ONE(S_CTZ_I32_B32, ANY, KEPT)
    ONE(S_CTZ_I32_B64, ANY, KEPT)
    ONE(S_CLZ_I32_U32, ANY, KEPT)
    ONE(S_CLZ_I32_U64, ANY, KEPT)
    ONE(S_CLS_I32, ANY, KEPT)
    ONE(S_CLS_I32_I64, ANY, KEPT)
    ONE(S_FF0_I32_B32, ANY, KEPT)
    ONE(S_FF0_I32_B64, ANY, KEPT)
    ONE(S_MUL_HI_U32, ANY, KEPT)
    ONE(S_MUL_HI_I32, ANY, KEPT)
    BOTH(S_BFM, ANY, KEPT)
    ONE(S_MUL_I32, LEFT, KEPT)
    ONE(S_ADD_NC_U64, ANY, KEPT)
    ONE(S_SUB_NC_U64, ANY, KEPT)
    ONE(S_MUL_U64, ANY, KEPT)
    ONE(S_MULK_I32, LEFT, KEPT)
    ONE(S_MOVK_I32, DEFINED, KEPT)
    ONE(S_GETPC_B64, DEFINED, KEPT)
    ONE(S_GETREG_B32, DEFINED, KEPT)
    ONE(S_SETREG_B32, DEFINED, KEPT)
    ONE(S_SETREG_IMM32_B32, DEFINED, KEPT)
    ONE(S_DENORM_MODE, DEFINED, KEPT)
    ONE(S_ROUND_MODE, DEFINED, KEPT)
    BOTH(S_CMOV, CMOVE, KEPT)
    ONE(S_CMOVK_I32, CMOVE, KEPT)
    BOTH(S_CSELECT, SELECT, KEPT)
    BOTH(S_NOT, MOVE, NONZERO)
    BOTH(S_AND, AND, NONZERO)
    BOTH(S_NAND, AND, NONZERO)
    BOTH(S_OR, OR, NONZERO)
    BOTH(S_NOR, OR, NONZERO)
    BOTH(S_XOR, XOR, NONZERO)
    BOTH(S_XNOR, XOR, NONZERO)
    BOTH(S_AND_NOT1, AND_NOT1, NONZERO)
    BOTH(S_OR_NOT1, OR_NOT1, NONZERO)
    BOTH(S_LSHL, PLACED, NONZERO)
    BOTH(S_LSHR, PLACED, NONZERO)
    ONE(S_ASHR_I32, PLACED, NONZERO)
    ONE(S_ASHR_I64, PLACED, NONZERO)
    ONE(S_BFE_U32, PLACED, NONZERO)
    ONE(S_BFE_I32, PLACED, NONZERO)
    ONE(S_BFE_U64, PLACED, NONZERO)
    ONE(S_BFE_I64, PLACED, NONZERO)
    BOTH(S_BITSET0, BITSET, KEPT)
    BOTH(S_BITSET1, BITSET, KEPT)
    BOTH(S_BITCMP0, BITCMP, ANY)
    BOTH(S_BITCMP1, BITCMP, ANY)
    ONE(S_ADD_U32, LEFT, ANY)
    ONE(S_SUB_U32, LEFT, ANY)
    ONE(S_ADD_I32, LEFT, ANY)
    ONE(S_SUB_I32, LEFT, ANY)
    ONE(S_ADDC_U32, LEFT, ANY)
    ONE(S_SUBB_U32, LEFT, ANY)
    ONE(S_ADDK_I32, LEFT, ANY)
    ONE(S_LSHL1_ADD_U32, SHIFT_LEFT, ANY)
    ONE(S_LSHL2_ADD_U32, SHIFT_LEFT, ANY)
    ONE(S_LSHL3_ADD_U32, SHIFT_LEFT, ANY)
    ONE(S_LSHL4_ADD_U32, SHIFT_LEFT, ANY)
    BOTH(S_MOVRELS, RELATIVE_FROM, KEPT)
    BOTH(S_MOVRELD, RELATIVE_TO, KEPT)
    ONE(S_MOVRELSD_2_B32, DEFINED, KEPT)
};
// clang-format on

static void scalar_rule(struct emu_plan *plan, unsigned op) {
  const struct scalar_rule *row = &scalar_rules[op];
  enum emu_rule rule = row->listed ? (enum emu_rule)row->rule : EMU_RULE_ANY;
  enum emu_scc scc = row->listed ? (enum emu_scc)row->scc : EMU_SCC_ANY;
  if (emu__is_scalar_float(op)) scc = emu__scalar_float_compares(op) ? EMU_SCC_ANY : EMU_SCC_KEPT;
  plan->rule = rule;
  plan->scc = scc;
  bool reads_scc = rule == EMU_RULE_CMOVE || op == EMU_S_CSELECT_B32 || op == EMU_S_CSELECT_B64 ||
                   op == EMU_S_ADDC_U32 || op == EMU_S_SUBB_U32;
  if (reads_scc) emu__set_put(&plan->reads, EMU_SET_SCC, true);
  if (scc != EMU_SCC_KEPT) emu__set_put(&plan->writes, EMU_SET_SCC, true);
  if (rule == EMU_RULE_CMOVE || rule == EMU_RULE_RELATIVE_FROM || rule == EMU_RULE_RELATIVE_TO) plan->always = true;
}

// The families op_saveexec and op_wrexec, in the order of the table: of 32 and 64 bits by turns.
static bool is_saveexec(unsigned op) { return op >= EMU_S_AND_SAVEEXEC_B32 && op <= EMU_S_AND_NOT1_WREXEC_B64; }

static void plan_control(struct emu_plan *plan, const struct emu_inst *inst) {
  switch (inst->op) {
    case EMU_S_CBRANCH_SCC0:
    case EMU_S_CBRANCH_SCC1:
      plan->kind = EMU_PLAN_BRANCH;
      emu__set_put(&plan->reads, EMU_SET_SCC, true);
      break;
    case EMU_S_CBRANCH_VCCZ:
    case EMU_S_CBRANCH_VCCNZ:
      plan->kind = EMU_PLAN_BRANCH;
      emu__set_put(&plan->reads, EMU_SET_SCALAR + EMU_VCC_LO, true);
      if (inst->wave == 64) emu__set_put(&plan->reads, EMU_SET_SCALAR + EMU_VCC_HI, true);
      break;
    case EMU_S_SETPC_B64:
    case EMU_S_SWAPPC_B64:
    case EMU_S_CALL_B64:
      plan->kind = EMU_PLAN_JUMP;
      break;
    case EMU_S_WAITCNT:
    case EMU_S_WAITCNT_VMCNT:
    case EMU_S_WAITCNT_LGKMCNT:
    case EMU_S_WAIT_IDLE:
    case EMU_S_WAIT_LOADCNT:
    case EMU_S_WAIT_DSCNT:
    case EMU_S_WAIT_KMCNT:
    case EMU_S_WAIT_SAMPLECNT:
    case EMU_S_WAIT_LOADCNT_DSCNT:
    case EMU_S_WAIT_STORECNT_DSCNT:
    case EMU_S_WAIT_STORECNT:
    case EMU_S_WAITCNT_VSCNT:
      plan->waits = plan->always = true;
      break;
    case EMU_DS_GWS_BARRIER:
      plan->acquires = plan->always = true;
      break;
    case EMU_S_SENDMSG_RTN_B32:
    case EMU_S_SENDMSG_RTN_B64:
    case EMU_S_MEMTIME:
    case EMU_S_MEMREALTIME:
      plan->raises = EMU_WAIT_LOOSE, plan->always = true;
      break;
    default:
      break;
  }
}

static bool is_shuffle(unsigned op) {
  return op == EMU_DS_BPERMUTE_B32 || op == EMU_DS_PERMUTE_B32 || op == EMU_DS_SWIZZLE_B32;
}

static void plan_memory(struct emu_plan *plan, const struct emu_step *step, const struct emu_isa *target) {
  const struct emu_inst *inst = step->inst;
  bool returns = inst->dst.kind, atomic = step->klass == EMU_CLASS_ATOMIC;
  plan->kind = is_shuffle(inst->op) ? EMU_PLAN_SHUFFLE : EMU_PLAN_MEMORY;
  bool shared = inst->format == EMU_DS || inst->format == EMU_FLAT, global = inst->format != EMU_DS;
  bool counted = returns || target->counts_stores;
  bool samples = inst->format == EMU_MIMG && inst->src[3].kind && target->split_counters;
  unsigned memory = samples ? EMU_WAIT_SAMPLE : EMU_WAIT_VM;
  plan->raises = (uint8_t)((shared ? EMU_WAIT_LDS : 0) | (global && counted ? memory : 0));
  plan->always = plan->raises || atomic;
  char name[64];
  const char *half = strstr(emu_isa_name((enum emu_op)inst->op, name), "d16");
  plan->half = !half ? 3 : strncmp(half, "d16_hi", 6) == 0 ? 2 : 1;
}

static void plan_by_class(struct emu_plan *plan, const struct emu_step *step, const struct emu_isa *target) {
  const struct emu_inst *inst = step->inst;
  switch (step->klass) {
    case EMU_CLASS_SALU:
      if (inst->op == EMU_S_GETREG_B32 || !is_saveexec(inst->op)) {
        plan->kind = EMU_PLAN_SCALAR;
        scalar_rule(plan, inst->op);
      } else {
        plan->kind = EMU_PLAN_SAVEEXEC;
        emu__set_put(&plan->writes, EMU_SET_SCC, true);
      }
      plan_control(plan, inst);
      break;
    case EMU_CLASS_SMEM:
      plan->kind = EMU_PLAN_SMEM;
      plan->raises = EMU_WAIT_LOOSE;
      plan->always = true;
      break;
    case EMU_CLASS_BRANCH:
    case EMU_CLASS_WAIT:
    case EMU_CLASS_BARRIER:
      plan_control(plan, inst);
      break;
    case EMU_CLASS_WMMA:
      plan->kind = EMU_PLAN_WMMA;
      break;
    case EMU_CLASS_LDS:
    case EMU_CLASS_LOAD:
    case EMU_CLASS_STORE:
    case EMU_CLASS_ATOMIC:
    case EMU_CLASS_SCRATCH:
      plan_memory(plan, step, target);
      break;
    default:
      plan->kind = step->action && step->action->lanes ? EMU_PLAN_VECTOR : EMU_PLAN_CROSS;
      plan->rule = vector_rule(inst, inst->op);
      if (inst->format == EMU_VOPD) plan->pair_rule = vector_rule(inst, inst->y.op);
  }
}

void emu__check_fill_plan(struct emu_plan *plan, const struct emu_step *step, const struct emu_isa *target) {
  const struct emu_inst *inst = step->inst;
  for (int i = 0; i < 4; i++) add_operand(&plan->reads, &inst->src[i]);
  for (unsigned k = 0; k < inst->image.words; k++) emu__set_put(&plan->reads, inst->image.reg[k], true);
  add_operand(&plan->writes, &inst->dst);
  add_operand(&plan->writes, &inst->sdst);
  if (inst->format == EMU_VOPD) {
    for (int i = 0; i < 3; i++) add_operand(&plan->reads, &inst->y.src[i]);
    add_operand(&plan->writes, &inst->y.dst);
  }
  if (inst->y.op == EMU_V_MFMA_LD_SCALE_B32)
    for (int i = 0; i < 2; i++) add_operand(&plan->reads, &inst->y.src[i]);
  plan_by_class(plan, step, target);
  plan->cache = emu__model_cache_of(inst, target);
  if (plan->cache) plan->always = true;
  switch (inst->op) {  // both are read and written
    case EMU_V_SWAP_B32:
    case EMU_V_PERMLANE16_SWAP_B32:
    case EMU_V_PERMLANE32_SWAP_B32:
      add_operand(&plan->writes, &inst->src[0]), add_operand(&plan->reads, &inst->dst);
      break;
    case EMU_V_MOVRELS_B32:
    case EMU_V_MOVRELD_B32:
    case EMU_V_MOVRELSD_B32:
    case EMU_V_MOVRELSD_2_B32:
    case EMU_V_SWAPREL_B32:
    case EMU_S_MOVRELD_B32:
    case EMU_S_MOVRELD_B64:
    case EMU_S_GETPC_B64:
      plan->always = plan->roots = true;
      break;
    default:
      break;
  }
  // accumulators are sources too
  if (plan->kind == EMU_PLAN_VECTOR) {
    unsigned named = 0;
    while (named < 3 && inst->src[named].kind && inst->src[named].type != EMU_MASK) named++;
    if (step->nsrc > named) add_operand(&plan->reads, &inst->dst);
    if (step->pair) {
      for (named = 0; named < 3 && inst->y.src[named].kind && inst->y.src[named].type != EMU_MASK;) named++;
      if (step->pair->nsrc > named) add_operand(&plan->reads, &inst->y.dst);
    }
  }
  unsigned used = 0;
  for (int i = 0; i < EMU_SET_SIZE / 64; i++) {
    uint64_t word = plan->reads.word[i] | plan->writes.word[i];
    plan->touch.word[i] = word;
    if (!word) continue;
    plan->many = used == EMU_PLAN_WORDS;
    if (plan->many) continue;
    plan->touched[used] = word;
    plan->touched_at[used++] = (uint8_t)i;
  }
}

// What reads other lanes without wanting those that are off, and what works on the whole wave whatever EXEC says.
static bool takes_from_lanes(const struct emu_step *step) {
  const struct emu_inst *inst = step->inst;
  bool dpp = inst->lanes == EMU_LANES_DPP16 || inst->lanes == EMU_LANES_DPP8;
  bool permlane = inst->op == EMU_V_PERMLANE16_B32 || inst->op == EMU_V_PERMLANEX16_B32;
  bool shuffle = inst->op == EMU_DS_BPERMUTE_B32 || inst->op == EMU_DS_SWIZZLE_B32;
  return ((dpp || permlane) && !inst->fetch_inactive) || shuffle || step->klass == EMU_CLASS_WMMA;
}

const struct emu_plan *emu__check_plan(const struct emu_wave *wave, const struct emu_step *step) {
  static const struct emu_plan nothing;
  if (!step->inst || !step->action) return &nothing;
  struct emu_plan *plan = emu__program_keep(wave->group->run->program, sizeof(*plan));
  if (!plan) return NULL;
  emu__check_fill_plan(plan, step, wave->group->run->target);
  plan->lints = takes_from_lanes(step);
  // another thread may have made the same: both stay
  __atomic_store_n(&((struct emu_step *)step)->plan, plan, __ATOMIC_RELEASE);
  return plan;
}
