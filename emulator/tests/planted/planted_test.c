// The checker against planted.hip, or planted_gfx9.hip where waves have 64 lanes: each mistake is reported at its line,
// as what it is, and its repaired twin is not. Kernels lint_… (gfx9_lint_…) do what is defined and hardly ever meant:
// that is no error, and is told where lints are asked for.
//
//   planted_test SOURCE OBJECT REPAIRED_OBJECT
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "machine/machine.h"
#include "object/lines.h"
#include "object/object.h"

static const char *source_path, *object_path[2];  // as it is, and repaired

struct plant {
  const char *kernel, *kind;  // kind NULL: correct in both objects; "a|b": either, as the target has it
  unsigned groups, threads;
};

static const struct plant plants[] = {
    {"store_past_end", "out of bounds", 1, 96},
    {"load_past_end", "out of bounds", 1, 96},
    {"load_before_start", "out of bounds", 1, 96},
    {"lds_overflow", "out of bounds", 1, 64},
    {"lds_straddles_end", "out of bounds", 1, 64},
    {"lds_atomic_misaligned", "misaligned", 1, 64},
    {"lds_atomic_misaligned_wide", "misaligned", 1, 64},
    {"variable_past_end", "out of bounds", 1, 32},
    {"variable_before_start", "out of bounds", 1, 32},
    {"variable_counted_past", "out of bounds", 1, 32},
    {"variable_counted_down", "out of bounds", 1, 32},
    {"variable_counted_before", "out of bounds", 1, 32},
    {"variable_of_structs", "out of bounds", 1, 32},
    {"variable_of_bytes", "out of bounds", 1, 32},
    {"variable_of_static", "out of bounds", 1, 32},
    {"variable_of_linker", "out of bounds", 1, 32},
    {"variable_stored", "out of bounds", 1, 32},
    {"variable_counted", "out of bounds", 1, 32},
    {"variable_of_waves", "out of bounds", 1, 64},
    {"variable_straddled", "out of bounds", 1, 32},
    {"variable_selected", "out of bounds", 1, 32},
    {"variable_chosen", "out of bounds", 1, 32},
    {"variable_branched", "out of bounds", 1, 32},
    {"variable_passed", "out of bounds", 1, 32},
    {"variable_moved", "out of bounds", 1, 32},
    {"lds_read_before_write", "uninitialized", 1, 64},
    {"memory_never_written", "uninitialized", 1, 64},
    {"undefined_branch", "uninitialized", 1, 64},
    {"undefined_address", "uninitialized", 1, 32},
    {"undefined_store", "uninitialized", 1, 32},
    {"argument_missing", "uninitialized", 1, 64},
    {"odd_bytes", "uninitialized", 1, 32},
    {"undefined_swizzled", "uninitialized", 1, 32},
    {"undefined_permuted", "uninitialized", 1, 32},
    {"undefined_sent", "uninitialized", 1, 32},
    {"undefined_half", "uninitialized", 1, 32},
    {"undefined_sign", "uninitialized", 1, 32},
    {"undefined_sign_of_half", "uninitialized", 1, 32},
    {"undefined_sign_of_low_half", "uninitialized", 1, 32},
    {"undefined_relative", "uninitialized", 1, 32},
    {"undefined_swapped", "uninitialized", 1, 32},
    {"undefined_scalar", "uninitialized", 1, 32},
    {"undefined_distance", "uninitialized", 1, 32},
    {"missing_barrier", "race", 1, 64},
    {"wave64_assumed", "race", 1, 64},
    {"missing_second_barrier", "race", 1, 64},
    {"stores_differ", "race", 1, 64},
    {"stores_differ_in_a_byte", "race", 1, 64},
    {"stores_undefined", "race", 1, 64},
    {"store_after_equal_ones", "race", 1, 96},
    {"equal_store_read", "race", 1, 64},
    {"store_after_reads", "race", 1, 64},
    {"store_after_halves_read", "race", 1, 64},
    {"load_after_halves_stored", "race", 1, 64},
    {"groups_store_equal", "race", 4, 32},
    {"counter_race", "race", 4, 32},
    {"groups_overlap", "race", 4, 64},
    {"in_place_neighbour", "race", 4, 64},
    {"divergent_waves", "divergent barrier", 1, 64},
    {"divergent_lanes", "divergent barrier", 1, 32},
    {"split_second_signal", "split barrier", 1, 64},
    {"split_no_signal", "split barrier", 1, 64},
    {"split_no_wait", "split barrier", 1, 32},
    {"split_early_read", "race", 1, 64},
    {"missing_vmcnt", "missing wait", 1, 64},
    {"wait_too_short", "missing wait", 1, 64},
    {"wait_beside_lds", "missing wait", 1, 64},
    {"missing_lgkmcnt", "missing wait", 1, 64},
    {"missing_scalar_wait", "missing wait", 1, 32},
    {"overwritten_in_flight", "missing wait", 1, 32},
    {"lint_cast_store", "misaligned", 1, 64},
    {"lint_cast_load", "misaligned", 1, 64},
    {"lint_cast_pair", "misaligned", 1, 64},
    {"lint_dpp", "inactive lane", 1, 32},
    {"lint_bpermute", "inactive lane", 1, 32},
    {"lint_permlane", "inactive lane", 1, 32},
    {"lint_wmma", "inactive lane", 1, 32},
    {"right_split", NULL, 1, 64},
    {"right_last_group", NULL, 4, 64},
    {"right_chain", NULL, 4, 64},
    {"right_swap_loop", NULL, 4, 64},
    {"right_flag", NULL, 1, 64},
    {"right_halves", NULL, 1, 32},
    {"right_lock", NULL, 4, 64},
    {"right_histogram", NULL, 4, 64},
    {"right_bytes", NULL, 1, 64},
    {"right_equal_stores", NULL, 1, 96},
    {"right_packed", NULL, 1, 64},
    {"right_backwards", NULL, 1, 64},
    {"right_scalar_halves", NULL, 1, 32},
    {"right_not_zero", NULL, 1, 32},
    {"right_exchange", NULL, 1, 32},
    {"right_undefined", NULL, 1, 64},
    {"right_from_end", NULL, 1, 32},
    {"right_to_end", NULL, 1, 32},
    {"right_from_one", NULL, 1, 32},
    {"right_in_turn", NULL, 1, 32},
    {"right_distance", NULL, 1, 32},
    {"right_distances", NULL, 1, 32},
    {"right_widened", NULL, 1, 32},
    {"right_reused", NULL, 1, 32},
    {"gfx9_missing_barrier", "race", 1, 128},
    {"gfx9_right_wave", NULL, 1, 64},
    {"gfx9_right_chain", NULL, 4, 64},
    {"gfx9_half_barrier", "divergent barrier", 1, 64},
    {"gfx9_lds_whole", "out of bounds", 1, 64},
    {"gfx9_undefined_upper", "uninitialized", 1, 64},
    {"gfx9_undefined_broadcast", "uninitialized", 1, 64},
    {"gfx9_lint_shift", "inactive lane", 1, 64},
    {"gfx9_undefined_part", "uninitialized", 1, 64},
    {"gfx9_undefined_indexed", "uninitialized", 1, 64},
    {"gfx9_store_counts", "missing wait", 1, 64},
    {"gfx9_acc_undefined", "uninitialized", 1, 64},
    {"gfx9_acc_product", "uninitialized", 1, 64},
    {"gfx9_acc_lint_result", "hazard", 1, 64},
    {"gfx9_acc_lint_addend", "hazard", 1, 64},
    {"model_pass_no_acquire", "missing acquire", 2, 128},
    {"model_late_no_acquire", "missing acquire", 2, 64},
    {"model_pass_no_release", "missing release", 2, 64},
    {"model_pass_plain_store", "missing release", 2, 64},
    {"model_pass_narrow_acquire", "narrow scope|missing acquire|race", 2, 64},
    {"model_pass_narrow_release", "missing release|narrow scope", 2, 64},
    {"model_pass_by_add", "missing release", 2, 64},
    {"model_add_no_acquire", "missing acquire", 2, 64},
    {"model_fence_no_release", "missing release", 2, 64},
    {"model_fence_no_acquire", "missing acquire", 2, 64},
    {"model_fence_narrow", "narrow scope|missing acquire", 2, 64},
    {"model_fence_too_early", "missing release", 2, 64},
    {"model_other_flag", "missing release|race", 2, 64},
    {"model_lock_no_acquire", "missing acquire", 4, 64},
    {"model_lock_no_release", "missing release", 4, 64},
    {"model_lock_swapped_back", "missing release", 4, 64},
    {"model_ticket_no_acquire", "missing acquire", 4, 64},
    {"model_ticket_no_release", "missing release", 4, 64},
    {"model_last_no_fence", "missing release", 4, 128},
    {"model_last_no_acquire", "missing acquire", 4, 128},
    {"model_last_no_barrier", "race|missing release", 4, 128},
    {"model_scan_no_acquire", "missing acquire", 4, 64},
    {"model_scan_no_release", "missing release", 4, 64},
    {"model_grid_no_release", "missing release|race", 4, 128},
    {"model_grid_no_acquire", "missing acquire", 4, 128},
    {"model_waves_no_release", "missing release", 1, 64},
    {"model_waves_no_acquire", "missing acquire", 1, 64},
    {"model_sum_read_plainly", "missing release|missing acquire", 4, 64},
    {"model_set_back", "race", 4, 64},
    {"model_set_back_last", "race", 4, 64},
    {"model_right_chain", NULL, 4, 64},
    {"model_right_fence", NULL, 2, 64},
    {"model_right_spread", NULL, 4, 128},
    {"model_right_swap_loop", NULL, 4, 128},
    {"model_right_rounds", NULL, 4, 128},
    {"model_right_system", NULL, 2, 64},
    {"model_right_readers", NULL, 4, 64},
    {"model_right_set_back", NULL, 4, 64},
    {"model_right_together", NULL, 4, 64},
    {"model_right_waves", NULL, 1, 64},
    {"model_right_lds_ticket", NULL, 2, 128},
};
enum { PLANTS = sizeof(plants) / sizeof(plants[0]), BUFFERS = 4, ROOM = 8, SMALL = 64 * 4, LARGE = 4096 * 4 };

static char *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  char *data = malloc(*size + 1);
  assert_int_equal(fread(data, 1, *size, file), *size);
  data[*size] = 0;
  fclose(file);
  return data;
}

// Whether the source's line says that the kernel is found there.
static bool is_marked(const char *source, unsigned line, const char *kernel) {
  const char *at = source;
  for (unsigned i = 1; i < line && at; i++) at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL;
  assert_non_null(at);
  const char *end = strchr(at, '\n'), *mark = strstr(at, "// FINDS ");
  size_t length = strlen(kernel);
  return mark && mark < end && !strncmp(mark + 9, kernel, length) && mark + 9 + length == end;
}

struct loaded {
  char *data;
  struct emu_image image;
  struct emu_object object;
  struct emu_lines *lines;
  uint8_t *memory;
  struct emu_program *program;
  struct emu_symbol *symbols;
  struct emu_variable *variables;
};

static bool line_of(void *context, uint64_t pc, char *text, size_t size) {
  const char *file;
  unsigned line;
  if (!emu_lines_find(context, pc, &file, &line)) return false;
  snprintf(text, size, "%s:%u", file, line);
  return true;
}

static void load_object(struct loaded *l, const char *path) {
  struct emu_object_error error;
  size_t size;
  memset(l, 0, sizeof(*l));
  l->data = read_file(path, &size);
  assert_int_equal(emu_image_find(l->data, size, NULL, &l->image, &error), EMU_OBJECT_OK);
  assert_int_equal(emu_object_open(&l->image, &l->object, &error), EMU_OBJECT_OK);
  struct emu_line_sections s = {0};
  s.line = emu_object_section(&l->object, ".debug_line", &s.line_bytes);
  s.line_str = emu_object_section(&l->object, ".debug_line_str", &s.line_str_bytes);
  s.str = emu_object_section(&l->object, ".debug_str", &s.str_bytes);
  l->lines = emu_lines_create(&s);
  assert_non_null(l->lines);
  l->memory = calloc(1, l->object.high);
  for (unsigned i = 0; i < l->object.segment_count; i++) {
    const struct emu_segment *g = &l->object.segments[i];
    memcpy(l->memory + g->address, g->data, g->file_bytes);
  }
  for (unsigned i = 0; i < l->object.relocation_count; i++) {  // the linker's table of addresses
    const struct emu_relocation *r = &l->object.relocations[i];
    assert_int_equal(r->kind, EMU_ABS64);
    uint64_t value = (uint64_t)(uintptr_t)l->memory + r->symbol + (uint64_t)r->addend;
    memcpy(l->memory + r->address, &value, 8);
  }
  const struct emu_isa *target = emu_isa_find(emu_mach_name(l->object.flags));
  assert_non_null(target);
  l->program = emu_program_create(target, l->memory, l->object.high, (uint64_t)(uintptr_t)l->memory);
  assert_non_null(l->program);
  unsigned count;
  l->symbols = emu_object_variables(&l->object, &count);
  assert_non_null(l->symbols);
  l->variables = calloc(count, sizeof(*l->variables));
  for (unsigned i = 0; i < count; i++) {
    const struct emu_symbol *v = &l->symbols[i];
    l->variables[i] = (struct emu_variable){(uint64_t)(uintptr_t)l->memory + v->address, v->bytes, v->name};
  }
  assert_true(emu_program_variables(l->program, l->variables, count));
}

static void unload_object(struct loaded *l) {
  emu_program_release(l->program);
  free(l->variables);
  free(l->symbols);
  emu_lines_release(l->lines);
  emu_object_close(&l->object);
  emu_image_release(&l->image);
  free(l->memory);
  free(l->data);
}

struct outcome {
  enum emu_status status;
  struct emu_report reports[ROOM], failure;
  uint32_t count, lints;
};

static bool is_lint(const struct plant *plant) { return strstr(plant->kernel, "lint_"); }

// Split barriers and accumulation registers are not on every target, and GFX9 has kernels of its own; all else that is
// planted must be there.
static bool is_here(const struct loaded *l, const struct plant *plant) {
  const struct emu_isa *target = emu_isa_find(emu_mach_name(l->object.flags));
  bool model = !strncmp(plant->kernel, "model_", 6);
  if (model != !!strstr(source_path, "planted_model")) return false;
  if (model) return emu_object_kernel(&l->object, plant->kernel);  // some mistakes are none on some targets
  if (!strncmp(plant->kernel, "gfx9_acc_", 9)) return target->accumulators;
  if (target->lanes == 64) return !strncmp(plant->kernel, "gfx9_", 5);
  bool gfx9 = !strncmp(plant->kernel, "gfx9_", 5),
       split = !strncmp(plant->kernel, "split_", 6) || !strcmp(plant->kernel, "right_split");
  return !gfx9 && (!split || target->split_counters);
}

static bool lints;  // of every kernel
static void launch(const struct loaded *l, const struct plant *plant, struct outcome *out) {
  static const char *const names[BUFFERS] = {"out", "in", "tmp", "counter"};
  static const size_t bytes[BUFFERS] = {SMALL, SMALL, LARGE, SMALL};
  static const bool written[BUFFERS] = {false, true, false, true};
  struct emu_memory *memory = emu_memory_create();
  emu_memory_watch(memory);
  uint8_t *room = calloc(1, 1 << 20);  // apart, so that what leaves one does not meet another
  uint8_t kernarg[512] = {0};
  for (int i = 0; i < BUFFERS; i++) {
    uint64_t at = (uint64_t)(uintptr_t)room + ((uint64_t)i << 18) + 4096;
    at = (at + 255) / 256 * 256;
    assert_true(emu_memory_add(memory, at, bytes[i], names[i], false));
    if (written[i]) emu_memory_written(memory, at, bytes[i]);
    memcpy(kernarg + 8 * i, &at, 8);
  }
  for (unsigned i = 0; i < l->object.segment_count; i++) {
    const struct emu_segment *g = &l->object.segments[i];
    uint64_t at = (uint64_t)(uintptr_t)l->memory + g->address;
    if (g->writable) assert_true(emu_memory_add(memory, at, g->memory_bytes, "device variables", true));
  }
  int32_t n = 64;
  memcpy(kernarg + 32, &n, 4);
  if (!strcmp(plant->kernel, "odd_bytes")) {
    uint64_t at;
    memcpy(&at, kernarg + 16, 8);
    emu_memory_written(memory, at, 7);
  }
  // in_place_neighbour reads what it overwrites
  if (!strcmp(plant->kernel, "in_place_neighbour")) {
    uint64_t at;
    memcpy(&at, kernarg + 16, 8);
    emu_memory_written(memory, at, LARGE);
  }
  const struct emu_object_kernel *kernel = emu_object_kernel(&l->object, plant->kernel);
  assert_non_null(kernel);
  struct emu_dispatch d = {.program = l->program,
                           .name = plant->kernel,
                           .groups = {plant->groups, 1, 1},
                           .threads = {plant->threads, 1, 1},
                           .kernarg = (uint64_t)(uintptr_t)kernarg,
                           .kernarg_bytes = sizeof(kernarg),
                           .host_threads = 1,
                           .memory = memory,
                           .check = true,
                           .lint = lints,
                           .reports = out->reports,
                           .report_room = ROOM,
                           .source_line = line_of,
                           .source_context = l->lines};
  if (!strcmp(plant->kernel, "argument_missing")) d.kernarg_missing[0] = 24, d.kernarg_missing[1] = 36;
  emu_kernel_parse(l->memory + kernel->descriptor, &d.kernel);
  d.entry = kernel->descriptor + (uint64_t)d.kernel.entry;
  memset(out, 0, sizeof(*out));
  out->status = emu_dispatch_run(&d, &out->failure);
  out->count = d.report_count;
  out->lints = d.lint_count;
  emu_memory_release(memory);
  free(room);
}

// Every kernel is tried before the test fails.
static unsigned wrong;
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  wrong++;
}

static void expect_finding(const struct loaded *l, const char *source, const struct plant *plant,
                           const struct emu_report *report, uint32_t place) {
  const char *file = NULL;
  unsigned line = 0;
  // what has been read too early has no value yet
  bool follows = place && !strcmp(plant->kernel, "wave64_assumed") && !strcmp(report->kind, "uninitialized");
  if (!strstr(plant->kind, report->kind) && !follows)
    say("%s: found as \"%s\": %s", plant->kernel, report->kind, report->text);
  if (!emu_lines_find(l->lines, report->pc, &file, &line)) {
    say("%s: no line for %s", plant->kernel, report->text);
    return;
  }
  if (report->lint != is_lint(plant)) say("%s: %s lint: %s", plant->kernel, report->lint ? "a" : "no", report->text);
  if (!is_marked(source, line, plant->kernel)) say("%s: at line %u: %s", plant->kernel, line, report->text);
  char where[40];
  const char *name = strrchr(source_path, '/');
  snprintf(where, sizeof(where), "%s:%u)", name ? name + 1 : source_path, line);
  if (!strstr(report->text, plant->kernel) || !strstr(report->text, where)) say("not named: %s", report->text);
}

static void finds_what_is_planted(void **state) {
  (void)state;
  size_t size;
  char *source = read_file(source_path, &size);
  struct loaded l;
  struct outcome o;
  wrong = 0;
  load_object(&l, object_path[0]);
  for (int i = 0; i < PLANTS; i++) {
    if (!plants[i].kind || !is_here(&l, &plants[i])) continue;
    bool lint = is_lint(&plants[i]);
    lints = lint;
    launch(&l, &plants[i], &o);
    bool goes_on = strstr(plants[i].kernel, "lds_") || !strncmp(plants[i].kernel, "variable_", 9);
    bool fails = !strcmp(plants[i].kind, "out of bounds") && !goes_on;
    if (o.status != (fails ? EMU_FAULT : lint ? EMU_OK : EMU_CHECK)) say("%s: status %d", plants[i].kernel, o.status);
    if (o.status == EMU_FAULT) expect_finding(&l, source, &plants[i], &o.failure, 0);
    for (uint32_t k = 0; k < o.count && k < ROOM; k++) expect_finding(&l, source, &plants[i], &o.reports[k], k);
    if (o.count > ROOM || (fails && o.count)) say("%s: %u findings", plants[i].kernel, o.count);
    if (lint && (!o.count || o.lints != o.count)) say("%s: %u lints of %u", plants[i].kernel, o.lints, o.count);
  }
  lints = false;
  unload_object(&l);
  free(source);
  assert_int_equal(wrong, 0);
}

static void expect_silence(const struct loaded *l, const struct plant *plant) {
  struct outcome o;
  if (!is_here(l, plant)) return;
  launch(l, plant, &o);
  if (o.count) say("%s: %s", plant->kernel, o.reports[0].text);
  if (o.status != EMU_OK && o.status != EMU_CHECK) say("%s: %s", plant->kernel, o.failure.text);
}

static void is_silent_about_the_repaired(void **state) {
  (void)state;
  struct loaded l;
  wrong = 0;
  load_object(&l, object_path[1]);
  for (int i = 0; i < PLANTS; i++) {
    lints = is_lint(&plants[i]);
    expect_silence(&l, &plants[i]);
  }
  lints = false;
  unload_object(&l);
  assert_int_equal(wrong, 0);
}

static void is_silent_about_what_is_right(void **state) {
  (void)state;
  struct loaded l;
  wrong = 0;
  load_object(&l, object_path[0]);
  for (int i = 0; i < PLANTS; i++) {
    if (!plants[i].kind) expect_silence(&l, &plants[i]);
  }
  unload_object(&l);
  assert_int_equal(wrong, 0);
}

static void lints_only_where_asked(void **state) {
  (void)state;
  struct loaded l;
  wrong = 0;
  load_object(&l, object_path[0]);
  for (int i = 0; i < PLANTS; i++) {
    if (is_lint(&plants[i])) expect_silence(&l, &plants[i]);
  }
  unload_object(&l);
  assert_int_equal(wrong, 0);
}

static const struct plant *plant_of(const char *kernel) {
  for (int i = 0; i < PLANTS; i++) {
    if (!strcmp(plants[i].kernel, kernel)) return &plants[i];
  }
  fail_msg("no kernel is planted as %s", kernel);
  return NULL;
}

// A right copy of packed data and a wrong cast are the same instructions, so that the one is a lint as well.
static void cannot_tell_packed_data_from_a_cast(void **state) {
  (void)state;
  struct loaded l;
  struct outcome o;
  load_object(&l, object_path[1]);
  lints = true;
  launch(&l, plant_of("right_packed"), &o);
  lints = false;
  assert_int_equal(o.status, EMU_OK);
  assert_int_equal(o.count, 2);  // the store and the load
  assert_int_equal(o.lints, 2);
  for (int k = 0; k < 2; k++) {
    assert_string_equal(o.reports[k].kind, "misaligned");
    assert_non_null(strstr(o.reports[k].text, "copies of packed data are compiled to it"));
    assert_non_null(strstr(o.reports[k].text, "A pointer that was cast to a wider type at a wrong place"));
  }
  unload_object(&l);
}

static const struct emu_report *report_of(const struct outcome *o) { return o->count ? o->reports : &o->failure; }

// Texts name the allocation, the distance, the lane and the other party.
static void says_where(void **state) {
  (void)state;
  struct loaded l;
  struct outcome o;
  load_object(&l, object_path[0]);
  launch(&l, plant_of("store_past_end"), &o);
  assert_non_null(strstr(report_of(&o)->text, "0 bytes past the end of out, which has 256 bytes"));
  assert_int_equal(o.failure.wave, 2);
  assert_int_equal(o.failure.lane, 0);
  launch(&l, plant_of("load_before_start"), &o);
  assert_non_null(strstr(report_of(&o)->text, "4 bytes before in, which has 256 bytes"));
  launch(&l, plant_of("lds_overflow"), &o);
  assert_non_null(strstr(report_of(&o)->text, "of LDS, of which the work-group has 256: 0 bytes past the end"));
  launch(&l, plant_of("memory_never_written"), &o);
  assert_non_null(strstr(report_of(&o)->text, "in tmp"));
  launch(&l, plant_of("argument_missing"), &o);
  assert_non_null(strstr(report_of(&o)->text, "read byte 32 of its arguments"));
  assert_non_null(strstr(report_of(&o)->text, "the launch has passed 24 of 36"));
  launch(&l, plant_of("counter_race"), &o);
  assert_non_null(strstr(report_of(&o)->text, "byte 0 of counter, which wave 0 of work-group (0, 0, 0)"));
  launch(&l, plant_of("stores_differ"), &o);
  assert_non_null(strstr(report_of(&o)->text, "LDS at byte 20, which wave 0 of the same group wrote at 0x"));
  launch(&l, plant_of("store_after_equal_ones"), &o);
  assert_non_null(strstr(report_of(&o)->text, "LDS at byte 0, which another wave wrote with no synchronization"));
  launch(&l, plant_of("variable_past_end"), &o);
  assert_non_null(
      strstr(report_of(&o)->text, "byte 0 of second and 0 bytes past the end of first, which has 64 bytes. Th"));
  assert_int_equal(o.reports[0].lane, 16);
  launch(&l, plant_of("variable_counted_down"), &o);
  assert_non_null(
      strstr(report_of(&o)->text, "byte 0 of second and 0 bytes past the end of first, which has 64 bytes. Th"));
  launch(&l, plant_of("variable_counted_before"), &o);
  assert_non_null(strstr(report_of(&o)->text, "byte 0 of second and 0 bytes past the end of first"));
  launch(&l, plant_of("variable_of_static"), &o);
  assert_non_null(strstr(report_of(&o)->text, "past the end of order, which has 64 bytes"));
  launch(&l, plant_of("variable_straddled"), &o);
  assert_non_null(strstr(report_of(&o)->text, "It reads 8 bytes at 0x"));
  assert_non_null(strstr(report_of(&o)->text, "byte 0 of second and 0 bytes past the end of first"));
  unload_object(&l);
}

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: planted_test SOURCE OBJECT REPAIRED_OBJECT\n");
    return 2;
  }
  source_path = argv[1];
  object_path[0] = argv[2];
  object_path[1] = argv[3];
  const struct CMUnitTest of_all[] = {
      cmocka_unit_test(finds_what_is_planted),
      cmocka_unit_test(is_silent_about_the_repaired),
      cmocka_unit_test(is_silent_about_what_is_right),
      cmocka_unit_test(lints_only_where_asked),
  };
  const struct CMUnitTest of_kernels[] = {
      cmocka_unit_test(cannot_tell_packed_data_from_a_cast),
      cmocka_unit_test(says_where),
  };
  int failed = cmocka_run_group_tests(of_all, NULL, NULL);
  if (!strstr(source_path, "planted_gfx9") && !strstr(source_path, "planted_model"))
    failed += cmocka_run_group_tests(of_kernels, NULL, NULL);
  return failed;
}
