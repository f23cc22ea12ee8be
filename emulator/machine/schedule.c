// Spreads a grid over threads, and a thread's time over the waves of its groups.
//
// Groups start in ascending order. A group runs in slices, its waves in turn; one that has not ended after its slice
// (it computes for long, or it spins on what another group writes) stays, and another group is started beside it. So
// no wave waits for ever for one that was never begun, and ordinary grids run group after group. No more groups stay
// than the card would hold, so that a kernel which needs more of them at once waits here as it would there; watch.c
// sees that.
//
// With a shuffle groups start in another order, and the waves of a group have their turns in another: what gives other
// results then depends on an order that a card does not promise.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <immintrin.h>

#include "machine/checker.h"
#include "machine/observe.h"
#include "machine/schedule.h"
#include "machine/valu.h"
#include "machine/watch.h"

enum { WAVE_SLICE = 20000, GROUP_SLICE = 1 << 20, RESIDENT = 4096, RESIDENT_BYTES = 1 << 28 };

// ---- kernels

void emu_kernel_parse(const void *descriptor, struct emu_kernel *out) {
  const uint8_t *at = descriptor;
  memset(out, 0, sizeof(*out));
  memcpy(&out->lds_bytes, at, 4);
  memcpy(&out->scratch_bytes, at + 4, 4);
  memcpy(&out->kernarg_bytes, at + 8, 4);
  memcpy(&out->entry, at + 16, 8);
  memcpy(&out->rsrc3, at + 44, 4);
  memcpy(&out->rsrc1, at + 48, 4);
  memcpy(&out->rsrc2, at + 52, 4);
  memcpy(&out->properties, at + 56, 2);
  memcpy(&out->preload, at + 58, 2);
}

unsigned emu_kernel_wave(const struct emu_kernel *kernel) {
  return emu__bits(kernel->properties, EMU_PROPERTY_ENABLE_WAVEFRONT_SIZE32) ? 32 : 64;
}

// Of each of its files, where accumulation registers have one of their own.
unsigned emu_kernel_counted_vgprs(const struct emu_isa *target, const struct emu_kernel *kernel) {
  unsigned granules = emu__bits(kernel->rsrc1, EMU_RSRC1_GRANULATED_WORKITEM_VGPR_COUNT) + 1;
  return granules * target->count_granule * 64 / emu_kernel_wave(kernel);
}

unsigned emu_kernel_accumulators(const struct emu_isa *target, const struct emu_kernel *kernel) {
  if (target->accumulators_apart) return emu_kernel_counted_vgprs(target, kernel);
  return target->accumulators ? 4 * (emu__bits(kernel->rsrc3, EMU_RSRC3_ACCUM_OFFSET) + 1) : 0;
}

unsigned emu_kernel_vgprs(const struct emu_isa *target, const struct emu_kernel *kernel) {
  return emu_kernel_counted_vgprs(target, kernel) * (target->accumulators_apart ? 2 : 1);
}

unsigned emu_kernel_occupancy(const struct emu_isa *target, const struct emu_kernel *kernel, unsigned threads,
                              unsigned lds_bytes) {
  unsigned wave = emu_kernel_wave(kernel), file = target->simd_registers * 32u / wave;
  unsigned granule = target->simd_granule * 32u / wave;
  unsigned registers = (emu_kernel_counted_vgprs(target, kernel) + granule - 1) / granule * granule;
  unsigned waves = file / registers < target->simd_waves ? file / registers : target->simd_waves;
  unsigned in_group = (threads + wave - 1) / wave;
  if (lds_bytes && in_group) {
    unsigned groups = target->simd_lds / lds_bytes, by_lds = (groups * in_group + 3) / 4;
    if (by_lds < waves) waves = by_lds;
  }
  return waves;
}

// ---- counters

const char *emu_class_name(enum emu_class klass) {
  static const char *const names[EMU_CLASS_COUNT] = {"salu",           "smem",   "branch",  "wait",   "valu", "valu64",
                                                     "transcendental", "vopd",   "dot",     "wmma",   "lds",  "load",
                                                     "store",          "atomic", "scratch", "barrier"};
  return klass < EMU_CLASS_COUNT ? names[klass] : "?";
}

void emu__counters_add(struct emu_counters *to, const struct emu_counters *from) {
  uint64_t *t = (uint64_t *)to;
  const uint64_t *f = (const uint64_t *)from;
  for (size_t i = 0; i < sizeof(*to) / sizeof(uint64_t); i++) t[i] += f[i];
}

static void add_instructions(struct emu_counters *to, const struct emu_wave *wave) {
  static const uint8_t cost[EMU_CLASS_COUNT] = {[EMU_CLASS_TRANSCENDENTAL] = 4, [EMU_CLASS_WMMA] = 32};
  for (int k = 0; k < EMU_CLASS_COUNT; k++) {
    unsigned cycles = cost[k] ? cost[k] : 1;
    if (k >= EMU_CLASS_VALU && k < EMU_CLASS_WMMA) cycles *= wave->lanes / EMU_HALF;
    to->instructions[k] += wave->instructions[k];
    to->issue_cycles[k] += wave->instructions[k] * cycles;
  }
}

// ---- groups

struct worker {
  struct emu_run *run;
  struct emu_counters counters;
  struct emu_group *groups[RESIDENT];
  struct emu_group *spare;  // memory of a group that ended
  unsigned count;
  struct emu_watch watch;
  bool no_memory;
  pthread_t thread;
};

static void tell_ended(const struct emu_group *group) {
  const struct emu_observer *observer = group->run->dispatch->observer;
  for (unsigned i = 0; observer && i < group->waves; i++) observer->ended(observer->context, &group->wave[i]);
}

static void free_group(struct emu_group *group) {
  if (!group) return;
  emu__check_group_release(group);
  free(group->wave);
  free(group->registers);
  free(group->scratch);
  free(group->lds);
  free(group);
}

static void *aligned_room(size_t bytes) { return aligned_alloc(64, (bytes + 127) / 64 * 64); }

static struct emu_group *make_group(struct emu_run *run) {
  struct emu_group *group = calloc(1, sizeof(*group));
  if (!group) return NULL;
  const struct emu_dispatch *d = run->dispatch;
  unsigned vgprs = emu_kernel_vgprs(run->target, &d->kernel);
  size_t a_wave = (size_t)vgprs * run->lanes;
  group->run = run;
  group->waves = run->waves_per_group;
  group->lds_bytes = run->lds_bytes;
  group->wave = aligned_room(group->waves * sizeof(*group->wave));
  group->registers = aligned_room(group->waves * a_wave * 4);
  group->scratch = aligned_room((size_t)group->waves * run->scratch_bytes * run->lanes);
  group->lds = aligned_room(run->lds_bytes);
  if (!group->wave || !group->registers || !group->scratch || !group->lds) {
    free_group(group);
    return NULL;
  }
  memset(group->wave, 0, group->waves * sizeof(*group->wave));
  for (unsigned i = 0; i < group->waves; i++) {
    group->wave[i].v = group->registers + i * a_wave;
    group->wave[i].vgprs = vgprs;
  }
  if (d->check && !emu__check_group_create(group)) {
    free_group(group);
    return NULL;
  }
  return group;
}

// Hashes the shuffle's seed, |a| and |b|. Source of the shifts and the last two factors: MurmurHash3, fmix64.
static uint64_t mixed(const struct emu_run *run, uint64_t a, uint64_t b) {
  uint64_t x = run->shuffle ^ a * 0x9e3779b97f4a7c15u ^ b * 0xc2b2ae3d27d4eb4fu;
  x = (x ^ x >> 33) * 0xff51afd7ed558ccdu;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53u;
  return x ^ x >> 33;
}

// The group that starts as number |index|: a random permutation of the groups, computed without a table. Four rounds of
// a Feistel network permute the numbers of 2 * bits bits, of which the grid may be only a part; a result past the grid
// is permuted again until it lies within ("cycle walking"), which is a permutation of the grid.
static uint64_t group_in_turn(const struct emu_run *run, uint64_t index) {
  if (!run->shuffle || run->group_count < 2) return index;
  unsigned bits = (64 - (unsigned)__builtin_clzll(run->group_count - 1) + 1) / 2;
  uint64_t mask = ((uint64_t)1 << bits) - 1;
  do {
    uint64_t left = index >> bits, right = index & mask;
    for (unsigned round = 0; round < 4; round++) {
      uint64_t next = left ^ (mixed(run, right, round) & mask);
      left = right;
      right = next;
    }
    index = left << bits | right;
  } while (index >= run->group_count);
  return index;
}

// The wave that has turn |i| of round |round|. With a shuffle the order begins at a random wave and goes up or down.
static unsigned wave_in_turn(const struct emu_group *group, unsigned i, unsigned round) {
  if (!group->run->shuffle) return i;
  uint64_t way = mixed(group->run, group->linear, round + 4);
  unsigned from = (unsigned)((way >> 1) % group->waves);
  return (way & 1 ? from + i : from + group->waves - i) % group->waves;
}

// Takes room on the card for one more group. false: there is none.
static bool take_place(struct emu_run *run) {
  uint32_t room = run->dispatch->resident_groups, before = (uint32_t)atomic_fetch_add(&run->resident, 1);
  if (!room || before < room) return true;
  atomic_fetch_sub(&run->resident, 1);
  return false;
}

static bool start_group(struct worker *worker) {
  struct emu_run *run = worker->run;
  uint64_t index = atomic_fetch_add(&run->next_group, 1);
  if (index >= run->group_count) return false;
  index = group_in_turn(run, index);
  struct emu_group *group = worker->spare ? worker->spare : make_group(run);
  worker->spare = NULL;
  if (!group) {
    worker->no_memory = true;
    atomic_store(&run->stop, true);
    return false;
  }
  const uint32_t *size = run->dispatch->groups;
  group->linear = index;
  group->id[0] = (uint32_t)(index % size[0]);
  group->id[1] = (uint32_t)(index / size[0] % size[1]);
  group->id[2] = (uint32_t)(index / size[0] / size[1]);
  group->ended = group->waiting = group->epoch = 0;
  group->failed = false;
  emu__watch_moved(&worker->watch);
  memset(group->lds, 0xcd, group->lds_bytes);
  for (unsigned i = 0; i < group->waves; i++) {
    struct emu_wave *wave = &group->wave[i];
    memset(wave->instructions, 0, sizeof(wave->instructions));
    wave->counters = run->dispatch->counters ? &worker->counters : NULL;
    wave->check = run->dispatch->check;
    emu__wave_begin(wave, group, i);
  }
  if (group->checker) emu__check_group_begin(group);
  const struct emu_observer *observer = run->dispatch->observer;
  for (unsigned i = 0; i < group->waves; i++)
    group->wave[i].tag = observer ? observer->begun(observer->context, &group->wave[i]) : 0;
  worker->groups[worker->count++] = group;
  return true;
}

// true: all waves ended.
static bool run_group(struct emu_group *group) {
  int64_t budget = GROUP_SLICE;
  unsigned round = 0;
  while (budget > 0 && group->ended < group->waves && !group->failed) {
    bool moved = false;
    round++;
    for (unsigned i = 0; i < group->waves && !group->failed; i++) {
      struct emu_wave *wave = &group->wave[wave_in_turn(group, i, round)];
      if (wave->state != EMU_WAVE_READY) continue;
      wave->sleeping = 0;
      emu__watch_slice(wave, group->waves == 1 ? GROUP_SLICE : WAVE_SLICE);
      budget -= WAVE_SLICE / 4;
      moved = moved || !wave->sleeping;
    }
    if (group->waves == 1 || !moved) break;  // all of them sleep: the other groups' turn
  }
  return group->ended == group->waves || group->failed;
}

static void finish_group(struct worker *worker, unsigned slot) {
  struct emu_group *group = worker->groups[slot];
  if (worker->run->dispatch->counters && !group->failed) {
    worker->counters.groups++;
    worker->counters.waves += group->waves;
    for (unsigned i = 0; i < group->waves; i++) add_instructions(&worker->counters, &group->wave[i]);
  }
  tell_ended(group);
  // the order among the groups that stay is kept
  memmove(&worker->groups[slot], &worker->groups[slot + 1], (worker->count - slot - 1) * sizeof(worker->groups[0]));
  worker->count--;
  atomic_fetch_sub(&worker->run->resident, 1);
  emu__watch_moved(&worker->watch);
  if (worker->spare) {
    free_group(group);
  } else {
    worker->spare = group;
  }
}

// How many groups a thread may have begun at once.
static unsigned resident_groups(const struct emu_run *run) {
  if (run->dispatch->together) return RESIDENT;
  size_t vectors = (size_t)emu_kernel_vgprs(run->target, &run->dispatch->kernel) * 4 + run->scratch_bytes;
  size_t bytes = (vectors * run->lanes + sizeof(struct emu_wave)) * run->waves_per_group + run->lds_bytes;
  size_t groups = RESIDENT_BYTES / bytes + 1;
  return groups < RESIDENT ? (unsigned)groups : RESIDENT;
}

static void *work(void *context) {
  struct worker *worker = context;
  struct emu_run *run = worker->run;
  unsigned saved = _mm_getcsr();
  _mm_setcsr(EMU_MXCSR_DEFAULT);
  bool more = true;
  unsigned room = resident_groups(run);
  for (;;) {
    if (more && worker->count < room && take_place(run)) more = start_group(worker);
    if ((!worker->count && !more) || atomic_load_explicit(&run->stop, memory_order_relaxed)) break;
    for (unsigned i = 0; i < worker->count;) {
      if (run_group(worker->groups[i])) {
        finish_group(worker, i);
      } else {
        i++;
      }
      if (atomic_load_explicit(&run->stop, memory_order_relaxed)) break;
    }
    emu__watch_round(&worker->watch, run, worker->groups, worker->count);
  }
  emu__watch_end(&worker->watch, run);
  for (unsigned i = 0; i < worker->count; i++) {
    tell_ended(worker->groups[i]);
    free_group(worker->groups[i]);
  }
  free_group(worker->spare);
  _mm_setcsr(saved);
  return NULL;
}

// ---- the dispatch

static enum emu_status invalid(struct emu_report *failure, const char *format, unsigned a, unsigned b) {
  *failure = (struct emu_report){.status = EMU_INVALID, .lane = -1, .kind = "invalid"};
  snprintf(failure->text, sizeof(failure->text), format, a, b);
  return EMU_INVALID;
}

static enum emu_status validate(const struct emu_dispatch *d, struct emu_report *failure) {
  uint64_t threads = (uint64_t)d->threads[0] * d->threads[1] * d->threads[2];
  uint64_t lds = (uint64_t)d->kernel.lds_bytes + d->dynamic_lds_bytes;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c")) {
    return invalid(failure, "The emulator needs a processor with AVX2, FMA and F16C; this one lacks them.", 0, 0);
  }
  if (!threads || threads > 1024) {
    return invalid(failure, "A block has %u work-items; it must have 1 to 1024.", (unsigned)threads, 0);
  }
  if (!d->groups[0] || !d->groups[1] || !d->groups[2]) return invalid(failure, "The grid is empty.", 0, 0);
  unsigned most = emu__program_target(d->program)->group_lds;
  if (lds > most)
    return invalid(failure, "The launch asks for %u bytes of LDS; a group may have %u.", (unsigned)lds, most);
  return EMU_OK;
}

static void fill_packet(struct emu_run *run) {
  const struct emu_dispatch *d = run->dispatch;
  uint8_t *p = run->packet_bytes;
  memset(p, 0, 64);
  uint16_t header = 2 | 1 << 8, setup = 3;  // a kernel dispatch, of three dimensions
  memcpy(p, &header, 2);
  memcpy(p + 2, &setup, 2);
  for (int i = 0; i < 3; i++) {
    uint16_t size = (uint16_t)d->threads[i];
    uint32_t grid = d->threads[i] * d->groups[i];
    memcpy(p + 4 + 2 * i, &size, 2);
    memcpy(p + 12 + 4 * i, &grid, 4);
  }
  memcpy(p + 24, &run->scratch_bytes, 4);
  memcpy(p + 28, &run->lds_bytes, 4);
  memcpy(p + 40, &d->kernarg, 8);
  run->packet = (uint64_t)(uintptr_t)p;
}

static unsigned thread_count(const struct emu_dispatch *d, uint64_t groups) {
  long count = d->host_threads;
  if (!count) {
    const char *text = getenv("RDNA_EMULATE_THREADS");
    count = text ? strtol(text, NULL, 10) : 0;
  }
  if (count <= 0) count = sysconf(_SC_NPROCESSORS_ONLN);
  if (count > 256) count = 256;
  return (uint64_t)count > groups ? (unsigned)groups : (unsigned)count;
}

static uint64_t shuffle_seed(const struct emu_dispatch *d) {
  const char *text = getenv("RDNA_EMULATE_SHUFFLE");
  return d->shuffle ? d->shuffle : text ? strtoull(text, NULL, 10) : 0;
}

// Races and what is missing for an order come first: a value that nobody has written yet is often what they lead to.
static bool is_of_order(const char *kind) {
  return !strcmp(kind, "race") || !strcmp(kind, "missing release") || !strcmp(kind, "missing acquire") ||
         !strcmp(kind, "narrow scope");
}
static void order_reports(struct emu_dispatch *d) {
  uint32_t kept = d->report_count < d->report_room ? d->report_count : d->report_room, races = 0;
  for (uint32_t i = 0; i < kept; i++) {
    if (!is_of_order(d->reports[i].kind)) continue;
    struct emu_report race = d->reports[i];
    memmove(&d->reports[races + 1], &d->reports[races], (i - races) * sizeof(race));
    d->reports[races++] = race;
  }
}

static enum emu_status conclude(struct emu_run *run, struct worker *workers, unsigned count,
                                struct emu_report *failure) {
  struct emu_dispatch *d = run->dispatch;
  bool no_memory = false;
  for (unsigned i = 0; i < count; i++) {
    no_memory = no_memory || workers[i].no_memory;
    if (d->counters) emu__counters_add(d->counters, &workers[i].counters);
  }
  d->report_count = (uint32_t)atomic_load(&run->report_count);
  d->lint_count = (uint32_t)atomic_load(&run->lint_count);
  order_reports(d);
  if (atomic_load(&run->failed)) {
    *failure = run->failure;
    return failure->status;
  }
  if (no_memory) {
    *failure = (struct emu_report){.status = EMU_NO_MEMORY, .lane = -1, .kind = "no memory"};
    snprintf(failure->text, sizeof(failure->text),
             "There is no memory for the registers, LDS and scratch of kernel %s.", d->name ? d->name : "?");
    return EMU_NO_MEMORY;
  }
  return d->report_count > d->lint_count ? EMU_CHECK : EMU_OK;
}

enum emu_status emu_dispatch_run(struct emu_dispatch *d, struct emu_report *failure) {
  enum emu_status status = validate(d, failure);
  d->report_count = d->lint_count = 0;
  if (status != EMU_OK) return status;
  struct emu_run *run = aligned_alloc(64, (sizeof(*run) + 63) / 64 * 64);
  if (!run) return invalid(failure, "There is no memory for a launch.", 0, 0);
  memset(run, 0, sizeof(*run));
  run->dispatch = d;
  if (d->check) run->check_start = emu__check_start();
  run->program = d->program;
  run->target = emu__program_target(d->program);
  run->lanes = emu_kernel_wave(&d->kernel);
  run->accumulators = emu_kernel_accumulators(run->target, &d->kernel);
  run->step_set = emu__program_set(run->lanes, run->accumulators);
  unsigned threads = d->threads[0] * d->threads[1] * d->threads[2];
  run->waves_per_group = (threads + run->lanes - 1) / run->lanes;
  run->group_count = (uint64_t)d->groups[0] * d->groups[1] * d->groups[2];
  run->lds_bytes = d->kernel.lds_bytes + d->dynamic_lds_bytes;
  run->scratch_bytes = ((d->scratch_bytes ? d->scratch_bytes : d->kernel.scratch_bytes) + 15) / 16 * 16;
  run->shuffle = shuffle_seed(d);
  run->packet = d->packet;
  if (!run->packet) fill_packet(run);

  unsigned count = thread_count(d, run->group_count), started = 1;
  struct worker *workers = calloc(count, sizeof(*workers));
  if (!workers) {
    if (d->check) emu__check_stop(run);
    free(run);
    return invalid(failure, "There is no memory for %u threads.", count, 0);
  }
  for (unsigned i = 0; i < count; i++) workers[i].run = run;
  // fewer threads than asked for do the same work
  run->threads = count;
  emu__watch_dispatch(1);
  if (d->observer) d->observer->launched(d->observer->context, d);
  for (; started < count; started++) {
    if (pthread_create(&workers[started].thread, NULL, work, &workers[started])) break;
  }
  atomic_fetch_add(&run->waiting, count - started);
  work(&workers[0]);
  for (unsigned i = 1; i < started; i++) pthread_join(workers[i].thread, NULL);
  emu__watch_dispatch(-1);
  if (d->observer) d->observer->finished(d->observer->context, d);
  status = conclude(run, workers, started, failure);
  if (d->check) emu__check_stop(run);
  free(workers);
  free(run);
  return status;
}
