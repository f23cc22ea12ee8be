// Executes what a test sends through a pipe, many cases in one process: instructions on given registers, or launches.
//
// A case begins with a struct step_case or launch_case and what it announces; the answer follows at once. The formats
// are those of emulator/tests/emulator.py. Memory lies at MEMORY, so that a case can hold addresses.
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "machine/schedule.h"
#include "machine/valu.h"

#define MEMORY UINT64_C(0x200000000000)
#define IMAGE UINT64_C(0x300000000000)
enum { MEMORY_BYTES = 1 << 28, IMAGE_BYTES = 1 << 26, CASE_STEP = 1, CASE_LAUNCH = 2 };

struct step_case {
  uint32_t target, lanes, code_bytes, vgprs, lds_bytes, memory_bytes, mode, scc, scratch_bytes;
};

struct launch_case {
  uint32_t target, image_bytes, kernarg_bytes, allocations, memory_bytes, flags, host_threads, dynamic_lds, report_room;
  uint32_t groups[3], threads[3], shuffle;
  uint64_t entry;
  uint8_t descriptor[64];
};
struct launch_allocation {
  uint64_t offset, bytes;
  uint32_t initialized, pad;
};

static bool take(void *to, size_t bytes) { return fread(to, 1, bytes, stdin) == bytes; }
static void give(const void *from, size_t bytes) {
  if (fwrite(from, 1, bytes, stdout) != bytes) exit(3);
}
static void *room(size_t bytes) {
  void *p = aligned_alloc(64, (bytes + 127) / 64 * 64);
  if (!p) exit(4);
  return p;
}

static bool run_step(void) {
  struct step_case c;
  if (!take(&c, sizeof(c))) return false;
  uint32_t scalars[EMU_SCALAR_COUNT];
  uint32_t *vectors = room((size_t)c.vgprs * c.lanes * 4), *code = room(c.code_bytes);
  uint8_t *lds = room(c.lds_bytes), *scratch = room((size_t)c.scratch_bytes * c.lanes);
  if (!take(scalars, sizeof(scalars)) || !take(vectors, (size_t)c.vgprs * c.lanes * 4)) return false;
  if (!take(code, c.code_bytes) || !take(lds, c.lds_bytes)) return false;
  if (c.memory_bytes > MEMORY_BYTES || !take((void *)MEMORY, c.memory_bytes)) return false;
  if (!take(scratch, (size_t)c.scratch_bytes * c.lanes)) return false;

  struct emu_memory *memory = emu_memory_create();
  emu_memory_add(memory, MEMORY, c.memory_bytes ? c.memory_bytes : 1, "memory", true);
  struct emu_program *program = emu_program_create(emu_isa_at(c.target), code, c.code_bytes, IMAGE);
  struct emu_dispatch dispatch = {
      .program = program, .name = "step", .groups = {1, 1, 1}, .threads = {c.lanes, 1, 1}, .memory = memory};
  struct emu_run *run = room(sizeof(*run));
  memset(run, 0, sizeof(*run));
  run->dispatch = &dispatch;
  run->program = program;
  run->target = emu_isa_at(c.target);
  run->lanes = c.lanes;
  run->accumulators = run->target->accumulators ? c.vgprs / 8 * 4 : 0;  // the upper half
  run->step_set = emu__program_set(run->lanes, run->accumulators);
  run->waves_per_group = 1;
  run->lds_bytes = c.lds_bytes;
  run->scratch_bytes = c.scratch_bytes;
  struct emu_wave *wave = room(sizeof(*wave));
  memset(wave, 0, sizeof(*wave));
  struct emu_group group = {
      .run = run, .lds = lds, .lds_bytes = c.lds_bytes, .waves = 1, .wave = wave, .scratch = scratch};
  wave->v = room((size_t)c.vgprs * c.lanes * 4);
  wave->vgprs = c.vgprs;
  emu__wave_begin(wave, &group, 0);
  memcpy(wave->s, scalars, sizeof(scalars));
  wave->s[EMU_NULL] = 0;
  uint32_t *flat_scratch = &wave->s[EMU_FLAT_SCRATCH_LO];  // a case cannot know the address
  bool points = run->target->scratch_in_sgprs && c.scratch_bytes;
  if (points) memcpy(flat_scratch, &wave->scratch, 8);
  memcpy(wave->v, vectors, (size_t)c.vgprs * c.lanes * 4);
  wave->scc = c.scc;
  emu__wave_set_mode(wave, c.mode);
  // random code may never end
  for (int i = 0; i < 64 && wave->state == EMU_WAVE_READY; i++) emu__wave_slice(wave, 1 << 12);

  uint32_t head[3] = {atomic_load(&run->failed) ? run->failure.status : 0, wave->scc, emu__wave_mode(wave)};
  give(head, sizeof(head));
  give(run->failure.text, sizeof(run->failure.text));
  if (points && memcmp(flat_scratch, &wave->scratch, 8) == 0) memcpy(flat_scratch, &scalars[EMU_FLAT_SCRATCH_LO], 8);
  give(wave->s, sizeof(scalars));
  give(wave->v, (size_t)c.vgprs * c.lanes * 4);
  give(lds, c.lds_bytes);
  give((void *)MEMORY, c.memory_bytes);
  give(scratch, (size_t)c.scratch_bytes * c.lanes);
  emu_program_release(program);
  emu_memory_release(memory);
  free(scratch);
  free(wave->v);
  free(wave);
  free(run);
  free(vectors);
  free(code);
  free(lds);
  return true;
}

// The program of the last launch is kept while the image stays the same, as a loaded module would be.
static bool run_launch(void) {
  struct launch_case c;
  if (!take(&c, sizeof(c))) return false;
  if (c.image_bytes > IMAGE_BYTES || c.memory_bytes > MEMORY_BYTES || !take((void *)IMAGE, c.image_bytes)) return false;
  uint8_t *kernarg = room(c.kernarg_bytes);
  if (!take(kernarg, c.kernarg_bytes)) return false;
  struct emu_memory *memory = emu_memory_create();
  if (c.flags & 1) emu_memory_watch(memory);
  for (uint32_t i = 0; i < c.allocations; i++) {
    struct launch_allocation a;
    char name[32];
    if (!take(&a, sizeof(a))) return false;
    snprintf(name, sizeof(name), "buffer %u", i);
    if (!emu_memory_add(memory, MEMORY + a.offset, a.bytes, name, a.initialized)) return false;
  }
  if (!take((void *)MEMORY, c.memory_bytes)) return false;
  struct emu_program *program = emu_program_create(emu_isa_at(c.target), (void *)IMAGE, c.image_bytes, IMAGE);
  struct emu_counters counters = {0};
  struct emu_report *reports = calloc(c.report_room + 1, sizeof(*reports)), failure = {0};
  struct emu_dispatch d = {.program = program,
                           .entry = c.entry,
                           .name = "kernel",
                           .kernarg = (uint64_t)(uintptr_t)kernarg,
                           .kernarg_bytes = c.kernarg_bytes,
                           .memory = memory,
                           .dynamic_lds_bytes = c.dynamic_lds,
                           .host_threads = c.host_threads,
                           .shuffle = c.shuffle,
                           .check = c.flags & 1,
                           .lint = c.flags & 4,
                           .reports = reports,
                           .report_room = c.report_room,
                           .counters = c.flags & 2 ? &counters : NULL};
  memcpy(d.groups, c.groups, sizeof(d.groups));
  memcpy(d.threads, c.threads, sizeof(d.threads));
  emu_kernel_parse(c.descriptor, &d.kernel);
  struct timespec from, to;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
  uint32_t head[2] = {emu_dispatch_run(&d, &failure), 0};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
  double seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9;
  head[1] = d.report_count;
  give(head, sizeof(head));
  give(&seconds, sizeof(seconds));
  give(failure.text, sizeof(failure.text));
  give(&counters, sizeof(counters));
  for (uint32_t i = 0; i < c.report_room; i++) {
    uint64_t pc_lane[2] = {reports[i].pc, (uint64_t)(int64_t)reports[i].lane};
    give(pc_lane, sizeof(pc_lane));
    give(reports[i].kind, sizeof(reports[i].kind));
    give(reports[i].text, sizeof(reports[i].text));
  }
  give((void *)MEMORY, c.memory_bytes);
  free(reports);
  free(kernarg);
  emu_program_release(program);
  emu_memory_release(memory);
  return true;
}

int main(void) {
  const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, may = PROT_READ | PROT_WRITE;
  if (mmap((void *)MEMORY, MEMORY_BYTES, may, how, -1, 0) == MAP_FAILED) return 2;
  if (mmap((void *)IMAGE, IMAGE_BYTES, may, how, -1, 0) == MAP_FAILED) return 2;
  uint32_t kind;
  while (take(&kind, sizeof(kind))) {
    bool ok = kind == CASE_STEP ? run_step() : kind == CASE_LAUNCH && run_launch();
    if (!ok) {
      fprintf(stderr, "emu_step: a case of kind %u is not as announced\n", kind);
      return 1;
    }
    fflush(stdout);
  }
  return 0;
}
