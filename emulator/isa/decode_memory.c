// SMEM, DS, FLAT and its segments, MUBUF, MTBUF, LDSDIR.
#include "isa/decode.h"

static int32_t sign_extend(uint32_t value, unsigned bits) { return (int32_t)(value << (32 - bits)) >> (32 - bits); }

static uint32_t field(const struct emu_decoder *d, struct emu_field f) { return emu__decode_field(d, f); }

static enum emu_decode_status decode_smem(struct emu_decoder *d) {
  const struct emu_smem_fields *f = &d->target->encoding->smem;
  struct emu_inst *inst = d->inst;
  enum emu_format base;
  enum emu_op op = emu__op_find(d->target, EMU_SMEM, field(d, f->op), &base);
  inst->op = (uint16_t)op;
  if (!op) return EMU_DECODE_OPCODE;
  const uint8_t *type = emu__op_rows[op].type;
  inst->glc = field(d, f->glc) & 1;
  inst->dlc = field(d, f->dlc) & 1;
  inst->temporal = (uint8_t)field(d, f->temporal);
  inst->scope = (uint8_t)field(d, f->scope);
  bool prefetch = emu__op_rows[op].flags & EMU_FLAG_PREFETCH;
  if (prefetch) inst->prefetch = (uint8_t)emu__bits(d->word[0], 6, 7);
  if (inst->prefetch > 31) return EMU_DECODE_RESERVED;
  if (type[0]) EMU_DECODE_TRY(emu__decode_scalar(d, emu__bits(d->word[0], 6, 7), type[0], &inst->dst));
  if (inst->dst.reg >= EMU_M0) return EMU_DECODE_OPERAND;
  if (!type[2]) {
    bool set = field(d, f->immediate) || (f->policy_is_read && (inst->glc || inst->dlc));
    return set ? EMU_DECODE_RESERVED : EMU_DECODE_OK;
  }
  // sbase is the register's number halved
  if (type[1]) EMU_DECODE_TRY(emu__decode_scalar(d, emu__bits(d->word[0], 0, 6) * 2, type[1], &inst->src[0]));
  inst->imm = sign_extend(field(d, f->offset), f->offset.bits);
  if (f->immediate.bits) {
    bool immediate = field(d, f->immediate), too = field(d, f->register_too);
    inst->no_offset = !immediate;
    if (immediate && !too) return EMU_DECODE_OK;
    if (!immediate) inst->imm = 0;
    unsigned code = too ? emu__bits(d->word[1], 25, 7) : field(d, f->offset) & 127;
    return emu__decode_scalar(d, code, type[2], &inst->src[1]);
  }
  EMU_DECODE_TRY(emu__decode_scalar(d, emu__bits(d->word[1], 25, 7), type[2], &inst->src[1]));
  if (inst->src[1].reg == EMU_NULL) inst->src[1] = (struct emu_operand){0};
  return EMU_DECODE_OK;
}

// The data of an access, not its address, are in accumulation registers.
static void accumulate(struct emu_inst *inst, int first, int sources) {
  if (inst->dst.kind == EMU_OPERAND_VECTOR) inst->dst.reg += EMU_ACCUMULATOR;
  for (int i = first; i < sources; i++)
    if (inst->src[i].kind == EMU_OPERAND_VECTOR) inst->src[i].reg += EMU_ACCUMULATOR;
}

static enum emu_decode_status decode_ds(struct emu_decoder *d) {
  uint32_t w = d->word[0], v = d->word[1];
  struct emu_inst *inst = d->inst;
  enum emu_format base;
  enum emu_op op = emu__op_find(d->target, EMU_DS, field(d, d->target->encoding->ds.op), &base);
  inst->op = (uint16_t)op;
  if (!op) return EMU_DECODE_OPCODE;
  const struct emu_op_row *row = &emu__op_rows[op];
  inst->imm = (int32_t)emu__bits(w, 0, 16);
  inst->gds = field(d, d->target->encoding->ds.gds) & 1;
  if (inst->gds && !d->target->encoding->gds) return EMU_DECODE_RESERVED;
  if (row->flags & EMU_FLAG_GDS && !inst->gds) return EMU_DECODE_RESERVED;
  if (row->flags & EMU_FLAG_NOGDS && inst->gds) return EMU_DECODE_RESERVED;
  if (op == EMU_DS_NOP && (inst->imm || inst->gds)) return EMU_DECODE_RESERVED;
  if (d->target->encoding->gds_alone && !(row->flags & EMU_FLAG_GDS)) inst->gds = false;
  bool bare = !row->type[0] && !row->type[1] && !row->type[2];
  if (bare && field(d, d->target->encoding->ds.spare)) return EMU_DECODE_RESERVED;
  if (row->type[0]) EMU_DECODE_TRY(emu__decode_vector(d, emu__bits(v, 24, 8), row->type[0], &inst->dst));
  for (unsigned i = 0; i < 3; i++) {
    if (row->type[i + 1])
      EMU_DECODE_TRY(emu__decode_vector(d, emu__bits(v, 8 * i, 8), row->type[i + 1], &inst->src[i]));
  }
  if (field(d, d->target->encoding->ds.accumulators)) accumulate(inst, row->flags & EMU_FLAG_GDS ? 0 : 1, 3);
  return EMU_DECODE_OK;
}

// The cache policy of a vector access, from the places of glc, slc, dlc, the temporal hint and the scope.
static void read_policy(struct emu_decoder *d, const struct emu_op_row *row, const struct emu_field at[5]) {
  struct emu_inst *inst = d->inst;
  inst->glc = field(d, at[0]) & 1;
  inst->slc = field(d, at[1]) & 1;
  inst->dlc = field(d, at[2]) & 1;
  inst->temporal = (uint8_t)field(d, at[3]);
  inst->scope = (uint8_t)field(d, at[4]);
  if (row->flags & EMU_FLAG_ATOMIC && inst->temporal & 1) inst->glc = true;
}

static bool returns_nothing(const struct emu_decoder *d, enum emu_op op) {
  bool sum = op == EMU_GLOBAL_ATOMIC_ADD_F32 || op == EMU_GLOBAL_ATOMIC_PK_ADD_F16 || op == EMU_BUFFER_ATOMIC_ADD_F32 ||
             op == EMU_BUFFER_ATOMIC_PK_ADD_F16;
  return sum && d->target->encoding->silent_sums;
}

static enum emu_decode_status decode_flat(struct emu_decoder *d) {
  const struct emu_flat_fields *f = &d->target->encoding->flat;
  struct emu_inst *inst = d->inst;
  if (f->words > 2) EMU_DECODE_TRY(emu__decode_word(d, &d->word[2]));
  static const uint8_t segments[3] = {EMU_FLAT, EMU_SCRATCH, EMU_GLOBAL};
  unsigned segment = field(d, f->segment);
  if (segment > 2) return EMU_DECODE_OPCODE;
  enum emu_format format = (enum emu_format)segments[segment], base;
  enum emu_op op = emu__op_find(d->target, format, field(d, f->op), &base);
  inst->op = (uint16_t)op;
  inst->format = (uint8_t)format;
  if (!op) return EMU_DECODE_OPCODE;
  const struct emu_op_row *row = &emu__op_rows[op];
  read_policy(d, row, (struct emu_field[]){f->glc, f->slc, f->dlc, f->temporal, f->scope});
  // these have a zero where the others have a bit that is ignored
  bool set = inst->glc || emu__bits(d->word[0], 25, 1);
  if (set && returns_nothing(d, op)) return EMU_DECODE_RESERVED;
  inst->lds = field(d, f->lds) & 1;
  if (inst->lds && (!(row->flags & EMU_FLAG_LDS) || field(d, f->nv) || field(d, f->accumulators)))
    return EMU_DECODE_RESERVED;
  unsigned bits = f->offset.bits;
  // a flat address may have no sign in its offset: the segments lie apart
  bool positive = format == EMU_FLAT && !f->flat_signed;
  inst->imm =
      positive ? (int32_t)(field(d, f->offset) & ((1u << (bits - 1)) - 1)) : sign_extend(field(d, f->offset), bits);
  unsigned saddr = field(d, f->saddr);
  bool vector = field(d, f->vector);
  if (vector && (!f->vector_is_set || format != EMU_SCRATCH)) return EMU_DECODE_RESERVED;

  if (row->type[0] && !inst->lds && (!(row->flags & EMU_FLAG_ATOMIC) || inst->glc)) {
    EMU_DECODE_TRY(emu__decode_vector(d, field(d, f->dst), row->type[0], &inst->dst));
  }
  if (row->type[2]) EMU_DECODE_TRY(emu__decode_vector(d, field(d, f->data), row->type[2], &inst->src[1]));
  if (field(d, f->accumulators)) accumulate(inst, 1, 2);
  if (field(d, f->accumulators) && !row->type[0] && !row->type[2]) return EMU_DECODE_RESERVED;
  if (format == EMU_FLAT) {
    if (saddr != f->flat_none || inst->lds) return EMU_DECODE_RESERVED;
  } else if (saddr != f->none) {
    enum emu_type type = format == EMU_SCRATCH ? EMU_B32 : EMU_B64;
    EMU_DECODE_TRY(emu__decode_scalar(d, saddr, type, &inst->src[2]));
    bool alone = d->target->encoding->scratch_alone || inst->lds;  // as LLVM has it
    if (format == EMU_SCRATCH && saddr == EMU_EXEC_HI && !alone) return EMU_DECODE_OPERAND;
    if (inst->src[2].reg == EMU_NULL) inst->src[2] = (struct emu_operand){0};
  }
  if (!row->type[0] && !row->type[1] && !row->type[2])
    return inst->src[2].kind ? EMU_DECODE_OPERAND : EMU_DECODE_OK;  // of a cache
  if (!row->type[1]) return EMU_DECODE_OK;
  enum emu_type type = format == EMU_GLOBAL && inst->src[2].kind ? EMU_B32 : (enum emu_type)row->type[1];
  // without the bit EXEC_HI stands for an address that is the offset alone
  bool neither = format == EMU_SCRATCH && saddr == EMU_EXEC_HI && saddr != f->none;
  bool has_vector = format != EMU_SCRATCH || (f->vector_is_set ? vector : !inst->src[2].kind);
  if (neither) inst->src[2] = (struct emu_operand){0};
  if (has_vector) EMU_DECODE_TRY(emu__decode_vector(d, field(d, f->vaddr), type, &inst->src[0]));
  return EMU_DECODE_OK;
}

// MUBUF and MTBUF, which share everything but their opcode and a format.
static enum emu_decode_status decode_buffer(struct emu_decoder *d, enum emu_format format) {
  const struct emu_buffer_fields *f = &d->target->encoding->buffer;
  struct emu_inst *inst = d->inst;
  if (f->words > 2) EMU_DECODE_TRY(emu__decode_word(d, &d->word[2]));
  if (field(d, f->typed)) format = EMU_MTBUF;
  inst->format = (uint8_t)format;
  bool typed = format == EMU_MTBUF;
  unsigned code = !typed ? field(d, f->op) : field(d, f->typed_op) | field(d, f->typed_op_high) << f->typed_op.bits;
  enum emu_format base;
  enum emu_op op = emu__op_find(d->target, format, code, &base);
  inst->op = (uint16_t)op;
  if (!op) return EMU_DECODE_OPCODE;
  const struct emu_op_row *row = &emu__op_rows[op];
  inst->imm = (int32_t)field(d, f->offset);
  if (f->offset_signed) inst->imm = sign_extend(field(d, f->offset), f->offset.bits);
  if (typed) inst->buffer_format = (uint8_t)(field(d, f->format) | field(d, f->number_format) << f->format.bits);
  struct emu_field slc = typed && f->typed_slc.bits ? f->typed_slc : f->slc;
  struct emu_field dlc = typed && f->typed_dlc.bits && f->dlc.bits ? f->typed_dlc : f->dlc;
  read_policy(d, row, (struct emu_field[]){f->glc, slc, dlc, f->temporal, f->scope});
  inst->tfe = field(d, f->tfe) & 1;
  inst->offen = field(d, f->offen) & 1;
  inst->idxen = field(d, f->idxen) & 1;
  inst->lds = !typed && field(d, f->lds);
  bool atomic = row->flags & EMU_FLAG_ATOMIC;
  unsigned data = field(d, f->data);
  bool wide = d->target->encoding->wide_lds && (op == EMU_BUFFER_LOAD_B96 || op == EMU_BUFFER_LOAD_B128);
  if (inst->lds && !(row->flags & EMU_FLAG_LDS) && !wide) return EMU_DECODE_RESERVED;
  bool floats = op == EMU_BUFFER_ATOMIC_ADD_F32 || op == EMU_BUFFER_ATOMIC_PK_ADD_F16 ||
                op == EMU_BUFFER_ATOMIC_PK_ADD_BF16 || op == EMU_BUFFER_ATOMIC_ADD_F64 ||
                op == EMU_BUFFER_ATOMIC_MIN_F64 || op == EMU_BUFFER_ATOMIC_MAX_F64;
  bool has_dlc = f->atomic_dlc && !(floats && f->accumulators.bits && !f->policy_alone);
  if (!has_dlc && atomic && inst->dlc) return EMU_DECODE_RESERVED;
  if (inst->glc && returns_nothing(d, op)) return EMU_DECODE_RESERVED;
  if (inst->tfe && (typed || atomic || inst->lds || !(row->type[0] || row->type[2]))) return EMU_DECODE_RESERVED;
  if (row->type[2]) {
    EMU_DECODE_TRY(emu__decode_vector(d, data, row->type[2], &inst->src[1]));
    if (inst->tfe && data + ++inst->src[1].dwords > 256) return EMU_DECODE_OPERAND;
  }
  if (row->type[0] && !inst->lds && (!atomic || inst->glc)) {
    EMU_DECODE_TRY(emu__decode_vector(d, data, row->type[0], &inst->dst));
    // a failed texture fetch writes one more register
    if (inst->tfe && data + ++inst->dst.dwords > 256) return EMU_DECODE_OPERAND;
  }
  if (field(d, f->accumulators)) accumulate(inst, 1, 2);
  if (inst->lds && field(d, f->accumulators)) return EMU_DECODE_RESERVED;
  if (!row->type[1] && field(d, f->accumulators)) return EMU_DECODE_RESERVED;
  if (op == EMU_BUFFER_WBL2 || op == EMU_BUFFER_INV) {
    inst->slc = false;
    if (!f->policy_alone) inst->glc = inst->dlc = false;
    return inst->lds || inst->offen || inst->idxen ? EMU_DECODE_RESERVED : EMU_DECODE_OK;
  }
  if (!row->type[1]) {  // a cache invalidation
    bool set = inst->glc || inst->dlc || inst->lds || inst->offen || inst->idxen || field(d, f->spare);
    return set ? EMU_DECODE_RESERVED : EMU_DECODE_OK;
  }
  if (inst->offen || inst->idxen) {
    EMU_DECODE_TRY(
        emu__decode_vector(d, field(d, f->vaddr), inst->offen && inst->idxen ? EMU_B64 : EMU_B32, &inst->src[0]));
  }
  unsigned resource = field(d, f->resource) * f->resource_unit;
  if (resource >= EMU_SCALAR_COUNT) return EMU_DECODE_OPERAND;
  EMU_DECODE_TRY(emu__decode_scalar(d, resource, EMU_B128, &inst->src[2]));
  return emu__decode_source(d, field(d, f->soffset), EMU_B32, &inst->src[3]);
}

static enum emu_decode_status decode_ldsdir(struct emu_decoder *d) {
  uint32_t w = d->word[0];
  enum emu_format base;
  d->inst->op = (uint16_t)emu__op_find(d->target, EMU_LDSDIR, emu__bits(w, 20, 2), &base);
  bool vsrc = d->target->encoding->ldsdir_vsrc;
  if (!d->inst->op) return emu__bits(w, 20, vsrc ? 3 : 4) == 0 ? EMU_DECODE_GRAPHICS : EMU_DECODE_OPCODE;
  if (emu__bits(w, 22, vsrc ? 1 : 2)) return EMU_DECODE_OPCODE;
  d->inst->wait_vsrc = vsrc && emu__bits(w, 23, 1);
  d->inst->wait_vdst = emu__bits(w, 16, 4) & 15;
  return emu__decode_vector(d, emu__bits(w, 0, 8), EMU_B32, &d->inst->dst);
}

enum emu_decode_status emu__decode_memory(struct emu_decoder *d, enum emu_format format) {
  switch (format) {
    case EMU_SMEM:
      return decode_smem(d);
    case EMU_DS:
      return decode_ds(d);
    case EMU_FLAT:
      return decode_flat(d);
    case EMU_MUBUF:
    case EMU_MTBUF:
      return decode_buffer(d, format);
    case EMU_MIMG:
      return emu__decode_image(d);
    case EMU_LDSDIR:
      return decode_ldsdir(d);
    default:
      return EMU_DECODE_OPCODE;
  }
}
