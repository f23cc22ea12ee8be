// Fields of hand-made encodings (numbers from the ISA guides), and robustness on random words. The text is held
// against LLVM in isa_llvm_test and isa_objects_test.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "isa/isa.h"
#include "isa/isa_llvm_exceptions.h"
#include "isa/isa_samples.h"

static struct emu_inst decode(const struct emu_isa *target, unsigned wave, uint32_t w0, uint32_t w1, uint32_t w2) {
  const uint32_t words[3] = {w0, w1, w2};
  struct emu_inst inst;
  assert_int_equal(emu_isa_decode(target, wave, words, 3, &inst), EMU_DECODE_OK);
  return inst;
}

static void expect_text(const struct emu_inst *inst, const struct emu_isa *target, const char *expected) {
  char text[EMU_ISA_TEXT];
  assert_int_equal(emu_isa_print(inst, target, text, sizeof(text)), strlen(expected));
  assert_string_equal(text, expected);
}

static void reads_modifiers(void **state) {
  // v_fma_f32 v5, -v1, |v2|, s3 clamp mul:4
  struct emu_inst inst = decode(&emu_isa_gfx1100, 32, 0xd6138205, 0x300e0501 | 1u << 29, 0);
  assert_int_equal(inst.op, EMU_V_FMA_F32);
  assert_int_equal(inst.format, EMU_VOP3);
  assert_int_equal(inst.size, 8);
  assert_true(inst.src[0].neg && !inst.src[0].abs && !inst.src[1].neg && inst.src[1].abs && !inst.src[2].neg);
  assert_true(inst.clamp);
  assert_int_equal(inst.omod, 2);
  assert_int_equal(inst.src[2].kind, EMU_OPERAND_SCALAR);
  assert_int_equal(inst.src[2].reg, 3);
  expect_text(&inst, &emu_isa_gfx1100, "v_fma_f32 v5, -v1, |v2|, s3 clamp mul:4");
}

static void widens_constants(void **state) {
  // 1.0 (code 242) in 32, 64 and 16 bits, as a float and as an integer
  assert_int_equal(decode(&emu_isa_gfx1100, 32, 0x060002f2, 0, 0).src[0].value, 0x3f800000);  // v_add_f32
  assert_int_equal(decode(&emu_isa_gfx1100, 32, 0x640002f2, 0, 0).src[0].value, 0x3c00);      // v_add_f16
  assert_int_equal(decode(&emu_isa_gfx1100, 32, 0xd7270000, 0x000202f2, 0).src[0].value,
                   0x3ff0000000000000);                                                       // v_add_f64
  assert_int_equal(decode(&emu_isa_gfx1100, 32, 0x4a0002f2, 0, 0).src[0].value, 0x3f800000);  // v_add_nc_u32
  // -16 (code 208) in 32 and 64 bits
  assert_int_equal(decode(&emu_isa_gfx1100, 32, 0xbe8000d0, 0, 0).src[0].value, 0xfffffff0);     // s_mov_b32
  assert_int_equal(decode(&emu_isa_gfx1100, 32, 0xbe8001d0, 0, 0).src[0].value, (uint64_t)-16);  // s_mov_b64
  // the literal 0x80000000: zero-extended for b64, sign-extended for i64, the high word of f64
  assert_int_equal(decode(&emu_isa_gfx1100, 32, 0xbe8001ff, 0x80000000, 0).src[0].value, 0x80000000);  // s_mov_b64
  assert_int_equal(decode(&emu_isa_gfx1100, 32, 0x868080ff, 0x80000000, 0).src[0].value,
                   0xffffffff80000000);  // s_ashr_i64
  assert_int_equal(decode(&emu_isa_gfx1100, 32, 0xd7270000, 0x000202ff, 0x80000000).src[0].value,
                   0x8000000000000000);  // v_add_f64
}

static void numbers_scalar_registers_alike(void **state) {
  // s_mov_b32 m0, s1: 124 on GFX10, 125 on GFX11, where 124 is null
  struct emu_inst gfx10 = decode(&emu_isa_gfx1030, 32, 0xbefc0301, 0, 0),
                  gfx11 = decode(&emu_isa_gfx1100, 32, 0xbefd0001, 0, 0);
  assert_int_equal(gfx10.op, EMU_S_MOV_B32);
  assert_int_equal(gfx10.dst.reg, EMU_M0);
  assert_int_equal(gfx11.op, EMU_S_MOV_B32);
  assert_int_equal(gfx11.dst.reg, EMU_M0);
  assert_int_equal(decode(&emu_isa_gfx1100, 32, 0xbefc0001, 0, 0).dst.reg, EMU_NULL);
  assert_int_equal(decode(&emu_isa_gfx1030, 32, 0xbefd0301, 0, 0).dst.reg, EMU_NULL);
}

static void reads_special_values(void **state) {
  // what v_mov_b32 v0 reads, as LLVM names it; its codes do not hang together
  static const struct {
    uint32_t code;
    const char *name;
  } rows[] = {{235, "shared_base"},          {236, "shared_limit"}, {237, "private_base"}, {238, "private_limit"},
              {239, "pops_exiting_wave_id"}, {251, "vccz"},         {252, "execz"},        {253, "scc"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    for (unsigned target = 0; target < EMU_ISA_COUNT; target++) {
      const struct emu_isa *at = emu_isa_at(target);
      char text[64];
      snprintf(text, sizeof(text), "v_mov_b32_e32 v0, src_%s", rows[i].name);
      struct emu_inst inst = decode(at, 32, 0x7e000200 | rows[i].code, 0, 0);
      assert_int_equal(inst.src[0].kind, EMU_OPERAND_SPECIAL);
      expect_text(&inst, at, text);
    }
  }
}

static void sizes_masks_by_the_wave(void **state) {
  // v_cmp_lt_f32 with VCC implied, v_cmpx with EXEC
  struct emu_inst narrow = decode(&emu_isa_gfx1100, 32, 0x7c220501, 0, 0),
                  wide = decode(&emu_isa_gfx1100, 64, 0x7c220501, 0, 0);
  assert_int_equal(narrow.sdst.reg, EMU_VCC_LO);
  assert_int_equal(narrow.sdst.dwords, 1);
  assert_int_equal(wide.sdst.dwords, 2);
  expect_text(&wide, &emu_isa_gfx1100, "v_cmp_lt_f32_e32 vcc, v1, v2");
  assert_int_equal(decode(&emu_isa_gfx1100, 32, 0x7d220501, 0, 0).sdst.reg, EMU_EXEC_LO);
  // v_add_co_ci_u32 v3, vcc, v1, v2, vcc
  struct emu_inst carry = decode(&emu_isa_gfx1100, 32, 0x40060501, 0, 0);
  assert_int_equal(carry.sdst.reg, EMU_VCC_LO);
  assert_int_equal(carry.src[2].reg, EMU_VCC_LO);
}

static void reads_dual_issue(void **state) {
  // v_dual_mul_f32 v7, v2, v1 :: v_dual_mov_b32 v0, s4: the second destination is even because the first is odd
  struct emu_inst inst =
      decode(&emu_isa_gfx1100, 32, 0xc8000000 | 3u << 22 | 8u << 17 | 1u << 9 | 0x102, 7u << 24 | 4, 0);
  assert_int_equal(inst.format, EMU_VOPD);
  assert_int_equal(inst.op, EMU_V_MUL_F32);
  assert_int_equal(inst.dst.reg, 7);
  assert_int_equal(inst.y.op, EMU_V_MOV_B32);
  assert_int_equal(inst.y.dst.reg, 0);
  assert_int_equal(inst.y.src[0].reg, 4);
  assert_int_equal(inst.y.src[1].kind, EMU_OPERAND_NONE);
  const uint32_t words[2] = {0xc8000000 | 3u << 22 | 8u << 17 | 1u << 9 | 0x102, 7u << 24 | 4};
  assert_int_equal(emu_isa_decode(&emu_isa_gfx1100, 64, words, 2, &inst), EMU_DECODE_OPCODE);  // waves of 32 only
}

static void reads_lane_controls(void **state) {
  // v_add_f32_dpp v0, v1, v2 row_shr:1 row_mask:0xf bank_mask:0xa bound_ctrl:1
  struct emu_inst inst = decode(&emu_isa_gfx1100, 32, 0x060004fa, 0xfa091101, 0);
  assert_int_equal(inst.lanes, EMU_LANES_DPP16);
  assert_int_equal(inst.dpp_ctrl, EMU_DPP_ROW_SHR + 1);
  assert_int_equal(inst.row_mask, 15);
  assert_int_equal(inst.bank_mask, 10);
  assert_true(inst.bound_ctrl && !inst.fetch_inactive);
  assert_int_equal(inst.src[0].reg, 1);
  assert_int_equal(inst.size, 8);
  // v_mov_b32_dpp v0, v1 dpp8:[1,0,3,2,5,4,7,6]: lane i takes lane i ^ 1
  inst = decode(&emu_isa_gfx1100, 32, 0x7e0002e9, 0xde54c101, 0);
  assert_int_equal(inst.lanes, EMU_LANES_DPP8);
  for (unsigned i = 0; i < 8; i++) assert_int_equal(inst.dpp8 >> 3 * i & 7, i ^ 1);
  // v_add_f32_sdwa v0, v1, v2 on GFX10: src0 byte 2, src1 word 1, the rest of the destination preserved
  inst = decode(&emu_isa_gfx1030, 32, 0x060004f9, 0x05021401, 0);
  assert_int_equal(inst.lanes, EMU_LANES_SDWA);
  assert_int_equal(inst.dst_sel, EMU_WORD_0);
  assert_int_equal(inst.dst_unused, EMU_UNUSED_PRESERVE);
  assert_int_equal(inst.src_sel[0], EMU_BYTE_2);
  assert_int_equal(inst.src_sel[1], EMU_WORD_1);
}

static void reads_half_registers(void **state) {
  // v_add_f16 v0.l, v1.h, v2.l: bit 7 of a GFX11 16-bit vector operand is the half. GFX10 has no halves there.
  struct emu_inst inst = decode(&emu_isa_gfx1100, 32, 0x64000581, 0, 0);
  assert_int_equal(inst.src[0].reg, 1);
  assert_true(inst.src[0].high && !inst.src[1].high && !inst.dst.high);
  inst = decode(&emu_isa_gfx1030, 32, 0x64000581, 0, 0);
  assert_int_equal(inst.src[0].reg, 129);
  assert_false(inst.src[0].high);
  // v_add_f16_e64 v0.h, v1.l, v2.h: op_sel
  inst = decode(&emu_isa_gfx1100, 32, 0xd5325000, 0x00020501, 0);
  assert_true(inst.dst.high && !inst.src[0].high && inst.src[1].high);
  // v_mov_b16 v175.l, v41.h: the long form reaches halves of v128 and above
  inst = decode(&emu_isa_gfx1100, 32, 0xd59c08af, 0x00000129, 0);
  assert_int_equal(inst.op, EMU_V_MOV_B16);
  assert_int_equal(inst.dst.reg, 175);
  assert_int_equal(inst.src[0].reg, 41);
  assert_true(!inst.dst.high && inst.src[0].high);
}

static void reads_memory_operands(void **state) {
  // global_load_b64 v[4:5], v2, s[6:7] offset:-8 glc
  struct emu_inst inst = decode(&emu_isa_gfx1100, 32, 0xdc567ff8, 0x04060002, 0);
  assert_int_equal(inst.op, EMU_GLOBAL_LOAD_B64);
  assert_int_equal(inst.imm, -8);
  assert_int_equal(inst.dst.dwords, 2);
  assert_int_equal(inst.src[0].dwords, 1);
  assert_int_equal(inst.src[2].reg, 6);
  assert_true(inst.glc);
  expect_text(&inst, &emu_isa_gfx1100, "global_load_b64 v[4:5], v2, s[6:7] offset:-8 glc dlc");
  // the same on GFX10, whose fields lie elsewhere
  inst = decode(&emu_isa_gfx1030, 32, 0xdc358ff8, 0x04060002, 0);
  assert_int_equal(inst.op, EMU_GLOBAL_LOAD_B64);
  assert_int_equal(inst.imm, -8);
  expect_text(&inst, &emu_isa_gfx1030, "global_load_dwordx2 v[4:5], v2, s[6:7] offset:-8 glc");
  // ds_load_2addr_b32 v[8:9], v1 offset0:3 offset1:255
  inst = decode(&emu_isa_gfx1100, 32, 0xd8dcff03, 0x08000001, 0);
  assert_int_equal(inst.op, EMU_DS_LOAD_2ADDR_B32);
  assert_true(emu_isa_is_pair((enum emu_op)inst.op));
  assert_int_equal(inst.imm, 3 | 255 << 8);
  assert_false(emu_isa_is_pair(EMU_DS_LOAD_B32));
  // an atomic has a destination when it returns, and only then
  assert_int_equal(decode(&emu_isa_gfx1100, 32, 0xdcd60000, 0x057c0402, 0).dst.kind, EMU_OPERAND_NONE);
  assert_int_equal(decode(&emu_isa_gfx1100, 32, 0xdcd64000, 0x057c0402, 0).dst.reg, 5);
}

static void splits_wait_counts(void **state) {
  struct emu_waitcnt wait = emu_isa_waitcnt(&emu_isa_gfx1100, (int16_t)0xfc07);  // lgkmcnt(0)
  assert_int_equal(wait.vm, 63);
  assert_int_equal(wait.exp, 7);
  assert_int_equal(wait.lgkm, 0);
  wait = emu_isa_waitcnt(&emu_isa_gfx1030, 0x3f70);  // vmcnt(0): its two high bits lie apart
  assert_int_equal(wait.vm, 0);
  assert_int_equal(wait.exp, 7);
  assert_int_equal(wait.lgkm, 63);
}

static void refuses_with_the_reason(void **state) {
  static const struct {
    const struct emu_isa *target;
    uint32_t words[2];
    enum emu_decode_status status;
  } cases[] = {
      {&emu_isa_gfx1100, {0x80000000 | 0x5fu << 23, 0}, EMU_DECODE_OPCODE},    // SOP2 95
      {&emu_isa_gfx1100, {0xd5258000 | 1, 0x40020501}, EMU_DECODE_RESERVED},   // v_add_nc_u32 with a sign
      {&emu_isa_gfx1100, {0x06000000 | 209, 0}, EMU_DECODE_OPERAND},           // a source code that means nothing
      {&emu_isa_gfx1100, {0xd7270000 | 255, 0x00020501}, EMU_DECODE_OPERAND},  // v_add_f64 v[255:256]
      {&emu_isa_gfx1100, {0xf0000000, 0}, EMU_DECODE_GRAPHICS},                // an image instruction
      {&emu_isa_gfx1030, {0xc8000000, 0}, EMU_DECODE_GRAPHICS},                // interpolation
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct emu_inst inst;
    assert_int_equal(emu_isa_decode(cases[i].target, 32, cases[i].words, 2, &inst), cases[i].status);
    assert_int_equal(inst.op, EMU_OP_NONE);
    assert_true(strlen(emu_isa_reason(cases[i].status)) > 10);
  }
}

static void marks_misaligned_scalars(void **state) {
  struct emu_inst inst = decode(&emu_isa_gfx1100, 32, 0xbe810102, 0, 0);  // s_mov_b64 s[1:2], s[2:3]
  assert_true(inst.misaligned);
  assert_int_equal(inst.dst.reg, 0);
  assert_false(decode(&emu_isa_gfx1100, 32, 0xbe820104, 0, 0).misaligned);
  assert_false(decode(&emu_isa_gfx1100, 32, 0xbe810003, 0, 0).misaligned);  // s_mov_b32 s1, s3
}

static void ignores_unused_sources(void **state) {
  // current compilers write 0x80 into the third source of an instruction that has two
  struct emu_inst inst = decode(&emu_isa_gfx1100, 32, 0xd5030000, 0x02020501, 0);
  assert_int_equal(inst.op, EMU_V_ADD_F32);
  assert_int_equal(inst.src[2].kind, EMU_OPERAND_NONE);
}

static void names_every_opcode_once(void **state) {
  static char names[EMU_OP_COUNT][64];
  for (unsigned at = 0; at < EMU_ISA_COUNT; at++) {
    const struct emu_isa *target = emu_isa_at(at);
    unsigned count = 0;
    for (int op = 1; op < EMU_OP_COUNT; op++) {
      if (emu_isa_mnemonic(target, (enum emu_op)op, names[count])) count++;
    }
    assert_true(count > 900);
    for (unsigned i = 0; i < count; i++) {
      for (unsigned j = 0; j < i; j++) assert_string_not_equal(names[i], names[j]);
    }
  }
  char name[64];
  assert_string_equal(emu_isa_mnemonic(&emu_isa_gfx1030, EMU_DS_LOAD_2ADDR_STRIDE64_B64, name), "ds_read2st64_b64");
  assert_string_equal(emu_isa_name(EMU_DS_LOAD_2ADDR_STRIDE64_B64, name), "ds_load_2addr_stride64_b64");
  assert_null(emu_isa_mnemonic(&emu_isa_gfx1030, EMU_V_WMMA_F32_16X16X16_F16, name));
  assert_ptr_equal(emu_isa_find("gfx1030"), &emu_isa_gfx1030);
  assert_null(emu_isa_find("gfx9999"));
}

// What LLVM prints for words that the decoder refused for an operand: only where a register must stand is a special
// value ours to refuse. Elsewhere the refusal is a mistake of the decoder's, which the comparison with LLVM must show.
static void excuses_special_values_in_place_of_registers(void **state) {
  static const struct {
    const struct emu_isa *target;
    const char *theirs;
    bool excused;
  } cases[] = {
      {&emu_isa_gfx1030, "v_readlane_b32 src_shared_base, v103, s8", true},
      {&emu_isa_gfx1100, "v_readfirstlane_b32 src_pops_exiting_wave_id, v238", true},
      {&emu_isa_gfx1100, "v_cmp_ge_i16_e64 null, v146, 44", true},
      {&emu_isa_gfx1100, "v_swaprel_b32 v7, null", true},
      {&emu_isa_gfx1100, "v_movrelsd_b32_e32 v45, null", true},
      {&emu_isa_gfx1100, "v_cndmask_b32_e64 v1, v2, v3, src_scc", true},
      {&emu_isa_gfx1100, "v_max_u16_e64_dpp v169, v57, src_vccz dpp8:[0,4,5,0,0,4,6,4]", true},
      {&emu_isa_gfx1100, "v_add_f32_e32 v1, src_lds_direct, v2", true},
      {&emu_isa_gfx1030, "v_add_f32_e32 v1, src_lds_direct, v2", false},
      {&emu_isa_gfx1100, "v_add_f32_e32 v1, src_shared_base, v2", false},
      {&emu_isa_gfx1030, "s_add_u32 s1, s2, src_scc", false},
      {&emu_isa_gfx1100, "s_add_u32 s1, null, s2", false},
      {&emu_isa_gfx1100, "v_add_f32_e32 v1, s2, v3", false},
      {&emu_isa_gfx1100, "s_endpgm", false},
  };
  uint32_t words[2] = {0};
  struct emu_inst inst = {0};
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    assert_int_equal(isa_find_exception(cases[i].target, words, EMU_DECODE_OPERAND, &inst, "", true, cases[i].theirs),
                     cases[i].excused ? ISA_WRONG_REGISTER : ISA_NO_EXCEPTION);
  }
  const char *refused = "v_swaprel_b32 v7, null";  // for another reason, or by LLVM too
  assert_int_equal(isa_find_exception(&emu_isa_gfx1100, words, EMU_DECODE_RESERVED, &inst, "", true, refused), 0);
  assert_int_equal(isa_find_exception(&emu_isa_gfx1100, words, EMU_DECODE_OPERAND, &inst, "", false, refused), 0);
}

static void cuts_text_that_does_not_fit(void **state) {
  struct emu_inst inst = decode(&emu_isa_gfx1100, 32, 0xbf810000, 0, 0);
  char text[8];
  memset(text, 'x', sizeof(text));
  size_t length = emu_isa_print(&inst, &emu_isa_gfx1100, text, 6);
  assert_true(length > 6);
  assert_int_equal(strlen(text), 5);
  assert_int_equal(text[6], 'x');
  assert_int_equal(emu_isa_print(&inst, &emu_isa_gfx1100, NULL, 0), length);
}

// Words stand right before a page that cannot be read.
static void never_reads_past_the_code(void **state) {
  size_t page = 65536;
  char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(pages != MAP_FAILED);
  assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
  uint64_t seed = 11;
  for (int i = 0; i < 200000; i++) {
    const struct emu_isa *target = emu_isa_at((unsigned)i / 2 % EMU_ISA_COUNT);
    unsigned wave = i & 1 ? 64 : 32;
    uint32_t words[SAMPLE_WORDS];
    struct emu_inst whole, part;
    isa_sample(target, &seed, words);
    enum emu_decode_status status = emu_isa_decode(target, wave, words, SAMPLE_WORDS, &whole);
    size_t length = whole.size / 4;
    assert_in_range(length, 1, 5);
    for (size_t n = 0; n <= length; n++) {
      uint32_t *end = (uint32_t *)(void *)(pages + page) - n;
      memcpy(end, words, n * 4);
      enum emu_decode_status cut = emu_isa_decode(target, wave, end, n, &part);
      if (n == length) {
        assert_int_equal(cut, status);
        assert_memory_equal(&whole, &part, sizeof(whole));
      } else {
        assert_int_not_equal(cut, EMU_DECODE_OK);
        if (status == EMU_DECODE_OK) assert_int_equal(cut, EMU_DECODE_TRUNCATED);
      }
    }
    char text[EMU_ISA_TEXT];
    if (status == EMU_DECODE_OK) assert_true(emu_isa_print(&whole, target, text, sizeof(text)) < sizeof(text));
  }
  munmap(pages, 2 * page);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_modifiers),
      cmocka_unit_test(widens_constants),
      cmocka_unit_test(numbers_scalar_registers_alike),
      cmocka_unit_test(reads_special_values),
      cmocka_unit_test(sizes_masks_by_the_wave),
      cmocka_unit_test(reads_dual_issue),
      cmocka_unit_test(reads_lane_controls),
      cmocka_unit_test(reads_half_registers),
      cmocka_unit_test(reads_memory_operands),
      cmocka_unit_test(splits_wait_counts),
      cmocka_unit_test(refuses_with_the_reason),
      cmocka_unit_test(marks_misaligned_scalars),
      cmocka_unit_test(ignores_unused_sources),
      cmocka_unit_test(names_every_opcode_once),
      cmocka_unit_test(excuses_special_values_in_place_of_registers),
      cmocka_unit_test(cuts_text_that_does_not_fit),
      cmocka_unit_test(never_reads_past_the_code),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
