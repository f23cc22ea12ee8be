// libFuzzer: any bytes as code of each target and wave size. The decoder must stay inside the input, and what it
// accepts must print and have operands inside the register files.
#include <stdlib.h>
#include <string.h>

#include "isa/isa.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
  if (!condition) abort();
}

static void check_operand(const struct emu_isa *target, const struct emu_operand *operand) {
  require(operand->type < EMU_TYPE_COUNT);
  if (operand->kind == EMU_OPERAND_VECTOR) {
    require(operand->reg % EMU_ACCUMULATOR + operand->dwords <= EMU_ACCUMULATOR);
    require(operand->reg < EMU_ACCUMULATOR || target->accumulators);
  }
  if (operand->kind == EMU_OPERAND_SCALAR && operand->reg != EMU_NULL) {
    require(operand->reg + operand->dwords <= EMU_SCALAR_COUNT);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 1) return 0;
  const struct emu_isa *target = emu_isa_at(data[0] / 2 % EMU_ISA_COUNT);
  unsigned wave = data[0] & 1 ? 64 : 32;
  size_t count = (size - 1) / 4;
  uint32_t *words = malloc(count * 4 + 1);  // of its own, so that the sanitizer sees a read past it
  if (!words) return 0;
  memcpy(words, data + 1, count * 4);
  for (size_t at = 0; at < count;) {
    struct emu_inst inst;
    enum emu_decode_status status = emu_isa_decode(target, wave, words + at, count - at, &inst);
    require(inst.size >= 4 && inst.size % 4 == 0 && at + inst.size / 4 <= count);
    require((status == EMU_DECODE_OK) == (inst.op != EMU_OP_NONE) && inst.op < EMU_OP_COUNT);
    if (status == EMU_DECODE_OK) {
      char text[EMU_ISA_TEXT];
      require(emu_isa_print(&inst, target, text, sizeof(text)) < sizeof(text));
      check_operand(target, &inst.dst);
      check_operand(target, &inst.sdst);
      for (int i = 0; i < 4; i++) check_operand(target, &inst.src[i]);
      check_operand(target, &inst.y.dst);
      for (int i = 0; i < 3; i++) check_operand(target, &inst.y.src[i]);
    }
    at += inst.size / 4;
  }
  free(words);
  return 0;
}
