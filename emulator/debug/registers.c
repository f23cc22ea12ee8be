// The registers of a wave as GDB sees them.
#include "debug/registers.h"

#include <string.h>

enum {
  RIP = 16,
  EFLAGS = 17,
  ST0 = 24,
  FCTRL = 32,
  EXEC = 64,
  VCC = 65,
  M0 = 66,
  SCC = 67,
  MODE = 68,
  TTMP = 72,
  SCALARS = 96,
  VECTORS = 272,
  ACCUMULATORS = 528,
  END = 784
};
enum { TTMP_COUNT = 16, SCALAR_COUNT = 106 };

static void add_core(struct emu_text *out) {
  static const char *const wide[] = {"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp",
                                     "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
  static const char *const narrow[] = {"eflags", "cs", "ss", "ds", "es", "fs", "gs"};
  static const char *const floats[] = {"fctrl", "fstat", "ftag", "fiseg", "fioff", "foseg", "fooff", "fop"};
  emu_text_add(out, "<architecture>i386:x86-64</architecture><feature name=\"org.gnu.gdb.i386.core\">\n");
  for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
    emu_text_add(out, "<reg name=\"%s\" bitsize=\"64\" type=\"int64\" regnum=\"%zu\" group=\"system\"/>\n", wide[i], i);
  emu_text_add(out, "<reg name=\"rip\" bitsize=\"64\" type=\"code_ptr\" regnum=\"%d\"/>\n", RIP);
  for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
    emu_text_add(out, "<reg name=\"%s\" bitsize=\"32\" type=\"int32\" regnum=\"%zu\" group=\"system\"/>\n", narrow[i],
                 EFLAGS + i);
  for (int i = 0; i < FCTRL - ST0; i++)
    emu_text_add(out, "<reg name=\"st%d\" bitsize=\"80\" type=\"i387_ext\" regnum=\"%d\"/>\n", i, ST0 + i);
  for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
    emu_text_add(out, "<reg name=\"%s\" bitsize=\"32\" type=\"int\" regnum=\"%zu\" group=\"float\"/>\n", floats[i],
                 FCTRL + i);
  emu_text_add(out, "</feature>\n");
}

static void add_rows(struct emu_text *out, const char *name, int first, int count, unsigned bits, const char *type,
                     const char *group) {
  for (int i = 0; i < count; i++)
    emu_text_add(out, "<reg name=\"%s%d\" bitsize=\"%u\" type=\"%s\" regnum=\"%d\" group=\"%s\"/>\n", name, i, bits,
                 type, first + i, group);
}

void emu_registers_describe(const struct emu_isa *target, unsigned lanes, struct emu_text *out) {
  emu_text_add(out, "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\">\n<target version=\"1.0\">");
  add_core(out);
  emu_text_add(out, "<feature name=\"rdna.emulator.wave\">\n");
  static const struct {
    const char *name, *type;
  } views[] = {{"u32", "uint32"}, {"i32", "int32"}, {"f32", "ieee_single"}};
  for (int i = 0; i < 3; i++)
    emu_text_add(out, "<vector id=\"lanes_%s\" type=\"%s\" count=\"%u\"/>\n", views[i].name, views[i].type, lanes);
  emu_text_add(out, "<union id=\"lanes\">");
  for (int i = 0; i < 3; i++) emu_text_add(out, "<field name=\"%s\" type=\"lanes_%s\"/>", views[i].name, views[i].name);
  emu_text_add(out, "</union>\n");
  emu_text_add(out, "<reg name=\"exec\" bitsize=\"64\" type=\"uint64\" regnum=\"%d\"/>\n", EXEC);
  emu_text_add(out, "<reg name=\"vcc\" bitsize=\"64\" type=\"uint64\" regnum=\"%d\"/>\n", VCC);
  emu_text_add(out, "<reg name=\"m0\" bitsize=\"32\" type=\"uint32\" regnum=\"%d\"/>\n", M0);
  emu_text_add(out, "<reg name=\"scc\" bitsize=\"32\" type=\"uint32\" regnum=\"%d\"/>\n", SCC);
  emu_text_add(out, "<reg name=\"mode\" bitsize=\"32\" type=\"uint32\" regnum=\"%d\"/>\n", MODE);
  add_rows(out, "ttmp", TTMP, TTMP_COUNT, 32, "uint32", "system");
  add_rows(out, "s", SCALARS, SCALAR_COUNT, 32, "uint32", "general");
  add_rows(out, "v", VECTORS, ACCUMULATORS - VECTORS, lanes * 32, "lanes", "vector");
  if (target->accumulators) add_rows(out, "a", ACCUMULATORS, END - ACCUMULATORS, lanes * 32, "lanes", "vector");
  emu_text_add(out, "</feature></target>\n");
}

// Where a scalar register of one or two dwords stands; NULL: it is none of them.
static uint32_t *scalar_at(const struct emu_wave_view *view, uint64_t number, size_t *bytes) {
  *bytes = number == EXEC || number == VCC ? 8 : 4;
  if (number == EXEC) return &view->s[EMU_EXEC_LO];
  if (number == VCC) return &view->s[EMU_VCC_LO];
  if (number == M0) return &view->s[EMU_M0];
  if (number >= TTMP && number < TTMP + TTMP_COUNT) return &view->s[EMU_TTMP0 + number - TTMP];
  if (number >= SCALARS && number < SCALARS + SCALAR_COUNT) return &view->s[number - SCALARS];
  return NULL;
}

// Where a vector register stands; NULL: the wave lacks it.
static uint32_t *vector_at(const struct emu_wave_view *view, uint64_t number) {
  bool accumulator = number >= ACCUMULATORS;
  if (accumulator && !view->accumulators) return NULL;
  uint64_t row = number - (accumulator ? ACCUMULATORS - view->accumulators : VECTORS);
  uint64_t end = !accumulator && view->accumulators ? view->accumulators : view->vgprs;
  return row < end ? view->v + row * view->lanes : NULL;
}

size_t emu_register_read(const struct emu_wave *wave, unsigned lanes, uint64_t number, uint8_t out[EMU_REGISTER_BYTES],
                         bool *known) {
  struct emu_wave_view view;
  size_t bytes;
  emu_wave_look(wave, &view);
  memset(out, 0, EMU_REGISTER_BYTES);
  *known = number < ST0 || number >= EXEC;
  if (number == RIP) memcpy(out, &view.pc, sizeof view.pc);
  if (number < EMU_REGISTERS_CORE) return number <= RIP ? 8 : number >= ST0 && number < FCTRL ? 10 : 4;
  const uint32_t *scalar = scalar_at(&view, number, &bytes);
  if (scalar) {
    memcpy(out, scalar, bytes);
    return bytes;
  }
  if (number == SCC || number == MODE) {
    uint32_t value = number == SCC ? view.scc : view.mode;
    memcpy(out, &value, sizeof value);
    return sizeof value;
  }
  if (number < VECTORS || number >= (view.target->accumulators ? END : ACCUMULATORS)) return 0;
  const uint32_t *row = vector_at(&view, number);
  *known = row != NULL;
  if (row) memcpy(out, row, 4 * (size_t)(lanes < view.lanes ? lanes : view.lanes));
  return 4 * (size_t)lanes;
}

bool emu_register_write(struct emu_wave *wave, unsigned lanes, uint64_t number, const uint8_t *data, size_t bytes) {
  struct emu_wave_view view;
  size_t wanted;
  uint64_t value = 0;
  emu_wave_look(wave, &view);
  if (bytes <= sizeof value) memcpy(&value, data, bytes);
  if (number == RIP) return bytes == 8 && view.doing != EMU_WAVE_IS_OVER && emu_wave_set_pc(wave, value);
  uint32_t *scalar = scalar_at(&view, number, &wanted);
  if (scalar) {
    if (bytes != wanted || (number == EXEC && view.lanes == 32 && value >> 32)) return false;
    memcpy(scalar, data, bytes);
    return true;
  }
  if (number == SCC && bytes == 4 && value < 2) {
    emu_wave_set_scc(wave, value);
    return true;
  }
  if (number == MODE && bytes == 4) {
    emu_wave_set_mode(wave, (uint32_t)value);
    return true;
  }
  if (number < VECTORS || number >= END || bytes != 4 * (size_t)lanes) return false;
  uint32_t *row = vector_at(&view, number);
  if (!row) return false;
  memcpy(row, data, 4 * (size_t)(lanes < view.lanes ? lanes : view.lanes));
  return true;
}
