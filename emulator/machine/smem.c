// Scalar loads.
#include "machine/memory.h"

static void load(struct emu_wave *w, const struct emu_step *step) {
  const struct emu_inst *inst = step->inst;
  unsigned dwords = inst->dst.dwords;
  uint64_t address = emu__scalar_read64(w, &inst->src[0]) + (uint64_t)(int64_t)inst->imm;
  if (inst->src[1].kind) address += emu__scalar_read(w, &inst->src[1]);
  address &= ~UINT64_C(3);
  unsigned there = emu__memory_scalar(w, address, dwords * 4);
  if (!there) {
    if (!emu__memory_check_one(w, step, -1, address, dwords * 4, false)) return;
    there = dwords * 4;
  }
  if (w->tag) emu__tell_scalar(w, address, there);
  uint32_t value[16];
  if (there < dwords * 4) memset(value, 0xcd, sizeof(value));
  memcpy(value, (const void *)(uintptr_t)address, there);
  if (inst->dst.reg != EMU_NULL) memcpy(&w->s[inst->dst.reg], value, dwords * 4);
}

// Through a V#: `count` elements, of which what lies outside of it reads as zero. false: the wave has trapped.
static bool read_buffer(struct emu_wave *w, const struct emu_step *step, unsigned bytes, unsigned count, void *to) {
  const struct emu_inst *inst = step->inst;
  const uint32_t *v = &w->s[inst->src[0].reg];
  uint64_t base = v[0] | (uint64_t)emu__bits(v[1], EMU_V1_BASE_HIGH) << 32, stride = emu__bits(v[1], EMU_V1_STRIDE);
  uint64_t size = stride ? stride * v[2] : v[2], offset = (uint64_t)(int64_t)inst->imm;
  if (inst->src[1].kind) offset += emu__scalar_read(w, &inst->src[1]);
  offset &= ~(uint64_t)(bytes - 1);
  for (unsigned i = 0; i < count; i++, offset += bytes) {
    if (offset + bytes > size) continue;
    if (!emu__memory_check_one(w, step, -1, base + offset, bytes, false)) return false;
    if (w->tag) emu__tell_scalar(w, base + offset, bytes);
    memcpy((uint8_t *)to + bytes * i, (const void *)(uintptr_t)(base + offset), bytes);
  }
  return true;
}

static void buffer_load(struct emu_wave *w, const struct emu_step *step) {
  const struct emu_operand *dst = &step->inst->dst;
  uint32_t value[16] = {0};
  if (read_buffer(w, step, 4, dst->dwords, value) && dst->reg != EMU_NULL)
    memcpy(&w->s[dst->reg], value, dst->dwords * 4u);
}

// One byte or word, extended.
static void load_narrow(struct emu_wave *w, const struct emu_step *step, unsigned bytes, bool is_signed) {
  const struct emu_inst *inst = step->inst;
  uint32_t value = 0;
  if (inst->src[0].dwords == 4) {
    if (!read_buffer(w, step, bytes, 1, &value)) return;
  } else {
    uint64_t address = emu__scalar_read64(w, &inst->src[0]) + (uint64_t)(int64_t)inst->imm;
    if (inst->src[1].kind) address += emu__scalar_read(w, &inst->src[1]);
    address &= ~(uint64_t)(bytes - 1);
    if (!emu__memory_check_one(w, step, -1, address, bytes, false)) return;
    if (w->tag) emu__tell_scalar(w, address, bytes);
    memcpy(&value, (const void *)(uintptr_t)address, bytes);
  }
  unsigned above = 32 - 8 * bytes;
  if (is_signed) value = (uint32_t)((int32_t)(value << above) >> above);
  emu__scalar_write(w, inst->dst.reg, value);
}
static void load_i8(struct emu_wave *w, const struct emu_step *step) { load_narrow(w, step, 1, true); }
static void load_u8(struct emu_wave *w, const struct emu_step *step) { load_narrow(w, step, 1, false); }
static void load_i16(struct emu_wave *w, const struct emu_step *step) { load_narrow(w, step, 2, true); }
static void load_u16(struct emu_wave *w, const struct emu_step *step) { load_narrow(w, step, 2, false); }

#define ROW(name, function) {.op = EMU_##name, .klass = EMU_CLASS_SMEM, .run = function}
const struct emu_action emu__smem_actions[] = {ROW(S_LOAD_B32, load),
                                               ROW(S_LOAD_B64, load),
                                               ROW(S_LOAD_B96, load),
                                               ROW(S_LOAD_B128, load),
                                               ROW(S_LOAD_I8, load_i8),
                                               ROW(S_LOAD_U8, load_u8),
                                               ROW(S_LOAD_I16, load_i16),
                                               ROW(S_LOAD_U16, load_u16),
                                               ROW(S_BUFFER_LOAD_B96, buffer_load),
                                               ROW(S_BUFFER_LOAD_I8, load_i8),
                                               ROW(S_BUFFER_LOAD_U8, load_u8),
                                               ROW(S_BUFFER_LOAD_I16, load_i16),
                                               ROW(S_BUFFER_LOAD_U16, load_u16),
                                               ROW(S_LOAD_B256, load),
                                               ROW(S_LOAD_B512, load),
                                               ROW(S_BUFFER_LOAD_B32, buffer_load),
                                               ROW(S_BUFFER_LOAD_B64, buffer_load),
                                               ROW(S_BUFFER_LOAD_B128, buffer_load),
                                               ROW(S_BUFFER_LOAD_B256, buffer_load),
                                               ROW(S_BUFFER_LOAD_B512, buffer_load),
                                               {0}};
